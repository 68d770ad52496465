# %%
#| default_exp rope

# %% [markdown]
# # Rotary positions
# > A clock hand for each pair of numbers: why a turn by the position tells how far apart two tokens are.

# %% [markdown]
# Attention compares a query with keys, and a product of two rows does not know where in the text they stand. GPT-2 adds a
# learnt row to each token, one for each position, and can read no further than it has rows. Llama does something else
# ([Su and others 2021](https://arxiv.org/abs/2104.09864)): it takes the numbers of a query or key two at a time, as points
# in the plane, and turns each point by an angle that grows with the position $n$. The first pairs turn fast, like the hand
# for seconds, the last ones slowly, like the hand for hours: pair $i$ of $D/2$ turns by $n\,\theta_i$ with $\theta_i =
# b^{-2i/D}$.
#
# $$\begin{pmatrix} x \\ y \end{pmatrix} \mapsto \begin{pmatrix} x\cos n\theta - y\sin n\theta \\ x\sin n\theta + y\cos n\theta \end{pmatrix}$$
#
# Two things are proved on this page. The product of a turned query and a turned key depends on the *distance* of their
# positions alone. And the two ways in which programs pair the numbers, which are confused so often, differ by a
# rearrangement and by nothing else.

# %%
#| hide
#| export
from fractions import Fraction

import numpy as np
from bendml.kvcache import take
from bendml.laws import A, Cons, List, Nil, abstract, axiom, law, prove, pure, to_list
from bendml.lists import append, length, length_append
from bendml.nat import Nat, S, Z, add, add_succ


# %% [markdown]
# ## In NumPy
#
# The angles of all positions are tabulated once. Which numbers make a pair? In the paper neighbours do: the first and the
# second, the third and the fourth (*interleaved*). In the files of Hugging Face, number $i$ goes with number $i + D/2$
# (*halves*).

# %%
#| export
def angles(
    context: int,           # T, how many positions
    size: int,              # D, numbers of a query or key; even
    base: float = 10_000.,  # b
) -> tuple[np.ndarray, np.ndarray]:  # cosines and sines, (T, D/2) float32
    "The turn of each pair at each position."
    if size % 2: raise ValueError(f'rotary positions need pairs\n- expected : an even number of channels a head\n- observed : {size}')
    turn = np.outer(np.arange(context), base**(-np.arange(0, size, 2)/size))
    return np.cos(turn).astype(np.float32), np.sin(turn).astype(np.float32)

def rotate_pairs(x: np.ndarray, cos: np.ndarray, sin: np.ndarray) -> np.ndarray:
    "Turn neighbours: x (..., T, D), cos and sin (T, D/2)."
    out = np.empty_like(x)
    a, b = x[..., 0::2], x[..., 1::2]
    out[..., 0::2], out[..., 1::2] = a*cos - b*sin, a*sin + b*cos
    return out

def rotate_halves(x: np.ndarray, cos: np.ndarray, sin: np.ndarray) -> np.ndarray:
    "Turn number i with number i + D/2: x (..., T, D), cos and sin (T, D/2)."
    a, b = np.split(x, 2, axis=-1)
    return np.concatenate((a*cos - b*sin, a*sin + b*cos), axis=-1)


# %%
x, (cos, sin) = np.array([[1, 2, 3, 4]]*2, np.float32), angles(2, 4)
print(rotate_pairs(x, cos, sin))
print(rotate_halves(x, cos, sin))

# %% [markdown]
# At position 0 both do nothing, so a test with one token cannot tell them apart. At position 1 they do.

# %%
try: angles(8, 5)
except ValueError as e: print(e)


# %% [markdown]
# ## Only the distance counts
#
# For the proof a row is a list of real numbers. The cosine and sine of $n\theta$ are some functions of $n$ and $\theta$,
# of which two things are assumed, the formulas for the difference of two angles. To run the laws we take angles whose
# cosine and sine are fractions, such as 3/5 and 4/5, and turn by multiplying complex numbers; nothing is rounded.

# %%
#| export
@abstract
class Angle:
    "What a pair turns by at each step."
    samples = ((Fraction(3, 5), Fraction(4, 5)), (Fraction(-1), Fraction(0)), (Fraction(5, 13), Fraction(-12, 13)))

def _turns(n: int, h: tuple[Fraction, Fraction]) -> tuple[Fraction, Fraction]:
    "The angle h, n times."
    c, s = (Fraction(1), Fraction(0)) if n == 0 else _turns(abs(n)//2, h)
    c, s = c*c - s*s, 2*c*s
    if n % 2: c, s = c*h[0] - s*h[1], s*h[0] + c*h[1]
    return (c, s) if n >= 0 else (c, -s)

@abstract
def cosine(n: int, h: Angle) -> Fraction: return _turns(n, h)[0]
@abstract
def sine(n: int, h: Angle) -> Fraction: return _turns(n, h)[1]

@axiom
def cosine_difference(m: int, n: int, h: Angle):
    return cosine(n - m, h) == cosine(m, h)*cosine(n, h) + sine(m, h)*sine(n, h)
@axiom
def sine_difference(m: int, n: int, h: Angle):
    return sine(n - m, h) == sine(n, h)*cosine(m, h) - cosine(n, h)*sine(m, h)


# %%
#| export
@pure
def first(c: Fraction, s: Fraction, a: Fraction, b: Fraction) -> Fraction:
    "The first number of a turned pair."
    return c*a - s*b
@pure
def second(c: Fraction, s: Fraction, a: Fraction, b: Fraction) -> Fraction:
    "The second number of a turned pair."
    return s*a + c*b
@pure
def dot2(a: Fraction, b: Fraction, x: Fraction, y: Fraction) -> Fraction:
    "The product of two pairs."
    return a*x + b*y

@pure
def dot(u: List[Fraction], v: List[Fraction]) -> Fraction:
    "The product of two rows."
    match u, v:
        case Cons(a, x), Cons(b, y): return a*b + dot(x, y)
        case _, _: return Fraction(0)

@pure
def turned(n: int, hs: List[Angle], v: List[Fraction]) -> List[Fraction]:
    "A row at position n, its neighbours turned, each pair by its own angle."
    match hs, v:
        case Cons(h, more), Cons(a, Cons(b, rest)):
            c = cosine(n, h)
            s = sine(n, h)
            return Cons(first(c, s, a, b), Cons(second(c, s, a, b), turned(n, more, rest)))
        case _, _: return v

@pure
def paired(u: List[Fraction], v: List[Fraction]) -> bool:
    "Two rows of the same even length."
    match u, v:
        case Nil(), Nil(): return True
        case Cons(_, Cons(_, x)), Cons(_, Cons(_, y)): return paired(x, y)
        case _, _: return False


# %% [markdown]
# For one pair it is a polynomial identity: multiply out, and it is there. The induction over the row then never has to
# look inside a pair.

# %%
#| export
@law(inline=[dot2, first, second])
def pair_product(c: Fraction, s: Fraction, d: Fraction, t: Fraction, a: Fraction, b: Fraction, x: Fraction, y: Fraction):
    "The product of two turned pairs is that of one pair with the other turned by the difference."
    return (dot2(first(c, s, a, b), second(c, s, a, b), first(d, t, x, y), second(d, t, x, y))
            == dot2(a, b, first(c*d + s*t, t*c - d*s, x, y), second(c*d + s*t, t*c - d*s, x, y)))

@law(cite=[cosine_difference.here(), sine_difference.here(), pair_product.here(c='cosine(m, h)', s='sine(m, h)', d='cosine(n, h)', t='sine(n, h)')],
     opaque=[dot2, first, second])
def pair_relative(m: int, n: int, h: Angle, a: Fraction, b: Fraction, x: Fraction, y: Fraction):
    "For one pair, only the distance of the positions counts."
    return (dot2(first(cosine(m, h), sine(m, h), a, b), second(cosine(m, h), sine(m, h), a, b),
                 first(cosine(n, h), sine(n, h), x, y), second(cosine(n, h), sine(n, h), x, y))
            == dot2(a, b, first(cosine(n - m, h), sine(n - m, h), x, y), second(cosine(n - m, h), sine(n - m, h), x, y)))

@law
def dot_pair(a: Fraction, b: Fraction, u: List[Fraction], x: Fraction, y: Fraction, v: List[Fraction]):
    "The product of rows, two numbers at a time."
    return dot(Cons(a, Cons(b, u)), Cons(x, Cons(y, v))) == dot2(a, b, x, y) + dot(u, v)


# %%
#| export
@law(induct='hs', gen=['q', 'k'], cite=[pair_relative, dot_pair], opaque=[dot2, first, second, dot],
     split=['q', 'k', 'q.tail', 'k.tail'], ih='paired(q, k)')
def rope_relative(m: int, n: int, hs: List[Angle], q: List[Fraction], k: List[Fraction]):
    "A query at m and a key at n: their product is that of the query at 0 and the key at n - m."
    assert paired(q, k)
    return dot(turned(m, hs, q), turned(n, hs, k)) == dot(q, turned(n - m, hs, k))

@law(cite=[rope_relative.here(), rope_relative.here(m='m + d', n='n + d')], opaque=[dot, turned, paired])
def rope_shift(m: int, n: int, d: int, hs: List[Angle], q: List[Fraction], k: List[Fraction]):
    "Moving both by d changes nothing: a text reads the same wherever it begins."
    assert paired(q, k)
    return dot(turned(m + d, hs, q), turned(n + d, hs, k)) == dot(turned(m, hs, q), turned(n, hs, k))


# %%
prove(rope_relative), prove(rope_shift)


# %% [markdown]
# If the keys were turned the other way, everything would look just as smooth. It is refuted:

# %%
@law
def wrong_way(n: int, h: Angle, a: Fraction, b: Fraction):
    row = Cons(a, Cons(b, Nil()))
    hs = Cons(h, Nil())
    return dot(turned(n, hs, row), turned(-n, hs, row)) == dot(row, row)

prove(wrong_way)


# %% [markdown]
# ## Neighbours or halves
#
# Rearrange a row so that its first, third, fifth… numbers come first and the others after them. Then number $i$ and number
# $i + D/2$ are those that were neighbours. So turning halves of the rearranged row should be turning neighbours of the
# row. What a turn does to a pair is left open here, so this holds for floating point, rounding included, and also
# when only the first pairs are turned.

# %%
#| export
@abstract
class Number: "A number."
@abstract
class Turn: "A cosine and a sine."
@abstract
def one(t: Turn, a: Number, b: Number) -> Number: return 'one', t, a, b
@abstract
def other(t: Turn, a: Number, b: Number) -> Number: return 'other', t, a, b

@pure
def by_pairs(ts: List[Turn], v: List[Number]) -> List[Number]:
    "Neighbours turned."
    match ts, v:
        case Cons(t, more), Cons(a, Cons(b, rest)): return Cons(one(t, a, b), Cons(other(t, a, b), by_pairs(more, rest)))
        case _, _: return v

@pure
def ones(ts: List[Turn], u: List[Number], v: List[Number]) -> List[Number]:
    "The first numbers of turned pairs, whose parts are in two lists."
    match ts, u, v:
        case Cons(t, more), Cons(a, x), Cons(b, y): return Cons(one(t, a, b), ones(more, x, y))
        case _, _, _: return u

@pure
def others(ts: List[Turn], u: List[Number], v: List[Number]) -> List[Number]:
    "The second numbers."
    match ts, u, v:
        case Cons(t, more), Cons(a, x), Cons(b, y): return Cons(other(t, a, b), others(more, x, y))
        case _, _, _: return v


# %%
#| export
@pure
def evens(v: List[Number]) -> List[Number]:
    "The first, the third, the fifth ..."
    match v:
        case Cons(a, Cons(_, rest)): return Cons(a, evens(rest))
        case _: return v

@pure
def odds(v: List[Number]) -> List[Number]:
    "The second, the fourth ..."
    match v:
        case Cons(_, Cons(b, rest)): return Cons(b, odds(rest))
        case _: return Nil()

@pure
def even(v: List[Number]) -> bool:
    "An even number of numbers?"
    match v:
        case Nil(): return True
        case Cons(_, Nil()): return False
        case Cons(_, Cons(_, rest)): return even(rest)

@pure
def half(n: Nat) -> Nat:
    "Half a number, rounded down."
    match n:
        case S(S(m)): return S(half(m))
        case _: return Z()

@pure
def drop(n: Nat, xs: List[Number]) -> List[Number]:
    "All but the first n."
    match n, xs:
        case S(m), Cons(_, rest): return drop(m, rest)
        case _, _: return xs

@pure
def by_halves(ts: List[Turn], v: List[Number]) -> List[Number]:
    "Number i turned with number i + D/2."
    h = half(length(v))
    return append(ones(ts, take(h, v), drop(h, v)), others(ts, take(h, v), drop(h, v)))

@pure
def rearranged(v: List[Number]) -> List[Number]:
    "First the even places, then the odd ones."
    return append(evens(v), odds(v))


# %%
#| export
@law(induct='v', depth=2)
def evens_odds(v: List[Number]):
    "There are as many even places as odd ones."
    assert even(v)
    return length(evens(v)) == length(odds(v))

@law(induct='n', cite=[add_succ])
def half_double(n: Nat):
    "Half of twice is once."
    return half(add(n, n)) == n

@law(induct='s')
def take_front(s: List[Number], t: List[Number]):
    "The front is what was put in front."
    return take(length(s), append(s, t)) == s

@law(induct='s')
def drop_front(s: List[Number], t: List[Number]):
    "Without the front, what was put behind it."
    return drop(length(s), append(s, t)) == t

@law(induct='v', depth=2, gen=['ts'], split=['ts'])
def ones_evens(ts: List[Turn], v: List[Number]):
    "The first numbers of turned pairs are at the even places of the turned row."
    assert even(v)
    return ones(ts, evens(v), odds(v)) == evens(by_pairs(ts, v))

@law(induct='v', depth=2, gen=['ts'], split=['ts'])
def others_odds(ts: List[Turn], v: List[Number]):
    "The second numbers are at the odd places."
    assert even(v)
    return others(ts, evens(v), odds(v)) == odds(by_pairs(ts, v))

_at = dict(s='evens(v)', t='odds(v)')

@law(cite=[evens_odds, half_double, length_append.here(xs='evens(v)', ys='odds(v)'), take_front.at(**_at), drop_front.at(**_at), ones_evens, others_odds],
     opaque=[half, length, add, take, drop, evens, odds, ones, others, by_pairs, append])
def halves_are_pairs(ts: List[Turn], v: List[Number]):
    "Turning halves of the rearranged row is rearranging the row with turned neighbours."
    assert even(v)
    return by_halves(ts, rearranged(v)) == rearranged(by_pairs(ts, v))


# %%
prove(halves_are_pairs)


# %% [markdown]
# A row of three has no such law, which is why an odd size is refused.

# %%
@law
def also_for_odd(ts: List[Turn], v: List[Number]): return by_halves(ts, rearranged(v)) == rearranged(by_pairs(ts, v))

prove(also_for_odd)


# %% [markdown]
# So a model that was stored for one convention runs under the other, once the rows of its query and key weights are
# rearranged. GGUF files come with Llama's weights rearranged for neighbours; Hugging Face's are for halves. In NumPy:

# %%
#| export
def to_pairs(w: np.ndarray, heads: int) -> np.ndarray:
    "Rows of a query or key matrix (heads·D, C), from halves to neighbours."
    return w.reshape(heads, 2, -1, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)


# %%
rng = np.random.default_rng(0)
x, cos, sin = rng.standard_normal((5, 8), np.float32), *angles(5, 8)
turn = lambda x: to_pairs(x.T, 1).T
assert np.array_equal(turn(rotate_halves(x, cos, sin)), rotate_pairs(turn(x), cos, sin))

# %% [markdown]
# ## All of them

# %%
#| echo: false
from bendml.laws import Law
for name, each in list(globals().items()):
    if isinstance(each, Law) and each.__doc__ and each.__module__ == __name__: print(f'{name:18} {prove(each).verdict:10} {each.__doc__}')

# %% [markdown]
# ## What this does not show
#
# - That only the distance counts holds for real numbers. In floating point the cosine of $n\theta$ is rounded, and far out
#   in a text the products differ in their last digits.
# - That a model understands distances it has never seen. It can compute them, which is another thing.
