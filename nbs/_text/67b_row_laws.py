# %%
#| default_exp nn.row_laws

# %% [markdown]
# # Laws of rows
# > The linear layer and the softmax for all sizes, causality, the two conventions of rotary positions, and the mean of shards.

# %% [markdown]
# Obligations at fixed sizes leave a doubt: perhaps it goes wrong at 50,257. Here are laws for rows of every length. As on
# the page before, the functions are models, in lists, of the loops that run.

# %%
#| hide
#| export
from fractions import Fraction
from typing import Self

from bendml.autograd.scalar import R, distribute, dot, plus, plus_assoc, plus_comm, plus_zero, times, times_assoc, times_comm, times_zero, zero
from bendml.laws import Cons, List, Nil, abstract, axiom, datatype, law, prove, pure
from bendml.lists import append, length, length_append
from bendml.nat import Nat, S, Z, le, mul


# %%
#| hide
def show(*claims):
    for claim in claims:
        t = prove(claim)
        assert t.verdict == 'confirmed', t
        print(f'{claim.__name__:24} {t.verdict}   {claim.__doc__ or ""}')


# %% [markdown]
# ## A linear layer is the adjoint of its way back
#
# $W v$ on the way forward, $W^\top g$ on the way back. They belong together because
# $\langle g, W v\rangle = \langle W^\top g, v\rangle$, for matrices of every size and numbers from any commutative semiring.

# %%
#| export
@pure
def plus_rows(u: List[R], v: List[R]) -> List[R]:
    "The sum, place by place; the longer row's rest is kept."
    match u, v:
        case Nil(), _: return v
        case _, Nil(): return u
        case Cons(a, x), Cons(b, y): return Cons(plus(a, b), plus_rows(x, y))

@pure
def scale(g: R, v: List[R]) -> List[R]:
    match v:
        case Nil(): return Nil()
        case Cons(a, r): return Cons(times(g, a), scale(g, r))

@pure
def linear(w: List[List[R]], v: List[R]) -> List[R]:
    "W v: each row of W with v."
    match w:
        case Nil(): return Nil()
        case Cons(r, rest): return Cons(dot(r, v), linear(rest, v))

@pure
def linear_back(w: List[List[R]], g: List[R]) -> List[R]:
    "The rows of W, each times its g, added up."
    match w, g:
        case Cons(r, rest), Cons(a, more): return plus_rows(scale(a, r), linear_back(rest, more))
        case _, _: return Nil()

@law(induct='u')
def dot_nil(u: List[R]): return dot(u, Nil()) == zero()

@law(cite=[plus_comm, plus_assoc])
def swap(a: R, b: R, c: R, d: R): return plus(plus(a, b), plus(c, d)) == plus(plus(a, c), plus(b, d))

@law(induct='u', gen=['w', 'v'], split=['w', 'v'], cite=[plus_zero, plus_comm, distribute, times_comm, swap])
def dot_plus(u: List[R], w: List[R], v: List[R]): return dot(plus_rows(u, w), v) == plus(dot(u, v), dot(w, v))

@law(induct='u', gen=['v'], split=['v'], cite=[times_zero, distribute, times_assoc])
def dot_scale(g: R, u: List[R], v: List[R]): return dot(scale(g, u), v) == times(g, dot(u, v))

@law(induct='w', gen=['g'], split=['g'], cite=[dot_plus, dot_scale, dot_nil])
def adjoint(g: List[R], w: List[List[R]], v: List[R]):
    "g with W v is W^T g with v."
    return dot(g, linear(w, v)) == dot(linear_back(w, g), v)


# %%
show(adjoint)


# %% [markdown]
# ## The softmax's backward pass, for all lengths
#
# Now real numbers. If the input moves by $\dot x$, the softmax $y$ moves by $y\,(\dot x - \langle y, \dot x\rangle)$; the
# backward pass is $y\,(g - \langle y, g\rangle)$: the same formula, so the law says that it is its own adjoint.

# %%
#| export
@pure
def inner(u: List[Fraction], v: List[Fraction]) -> Fraction:
    match u, v:
        case Cons(a, x), Cons(b, y): return a*b + inner(x, y)
        case _, _: return Fraction(0)

@pure
def weighted(y: List[Fraction], d: List[Fraction], c: Fraction) -> List[Fraction]:
    "y (d - c), place by place."
    match y, d:
        case Cons(a, x), Cons(b, z): return Cons(a*(b - c), weighted(x, z, c))
        case _, _: return Nil()

@pure
def product(u: List[Fraction], v: List[Fraction]) -> List[Fraction]:
    match u, v:
        case Cons(a, x), Cons(b, y): return Cons(a*b, product(x, y))
        case _, _: return Nil()

@law(induct='y', gen=['g', 'd'], split=['g', 'd'])
def inner_left(y: List[Fraction], g: List[Fraction], d: List[Fraction], c: Fraction):
    assert length(y) == length(g) and length(y) == length(d)
    return inner(g, weighted(y, d, c)) == inner(product(y, g), d) - c*inner(y, g)

@law(induct='y', gen=['g', 'd'], split=['g', 'd'])
def inner_right(y: List[Fraction], g: List[Fraction], d: List[Fraction], c: Fraction):
    assert length(y) == length(g) and length(y) == length(d)
    return inner(weighted(y, g, c), d) == inner(product(y, g), d) - c*inner(y, d)

@law(cite=[inner_left.here(c='inner(y, d)'), inner_right.here(c='inner(y, g)')], opaque=[inner, weighted, product, length])
def softmax_adjoint(y: List[Fraction], g: List[Fraction], d: List[Fraction]):
    "The softmax's backward pass is the adjoint of its derivative, for rows of every length."
    assert length(y) == length(g) and length(y) == length(d)
    return inner(g, weighted(y, d, inner(y, d))) == inner(weighted(y, g, inner(y, g)), d)


# %%
show(softmax_adjoint)


# %% [markdown]
# ## Causality
#
# The causal row of [Attention](62_attention.ipynb), as a model: read the first $n$ scores, exponentiate, divide by the sum.
# It reads $n$ scores, and what comes after them changes nothing. All that is known of the exponential is that it is
# positive.

# %%
#| export
@abstract
def exp(x: Fraction) -> Fraction: return Fraction(1) if x <= 0 else 1 + x

@axiom(trigger='exp(x)')
def exp_positive(x: Fraction): return exp(x) > Fraction(0)

@pure
def total(n: Nat, s: List[Fraction]) -> Fraction:
    "The sum of the first n exponentials."
    match n, s:
        case S(m), Cons(a, r): return exp(a) + total(m, r)
        case _, _: return Fraction(0)

@pure
def read(n: Nat, s: List[Fraction]) -> Nat:
    "How many scores that loop looks at."
    match n, s:
        case S(m), Cons(_, r): return S(read(m, r))
        case _, _: return Z()

@pure
def shares(n: Nat, s: List[Fraction], t: Fraction) -> List[Fraction]:
    "The first n exponentials, each times t."
    match n, s:
        case S(m), Cons(a, r): return Cons(exp(a)*t, shares(m, r, t))
        case _, _: return Nil()

@pure
def first(n: Nat, s: List[Fraction]) -> List[Fraction]:
    match n, s:
        case S(m), Cons(a, r): return Cons(a, first(m, r))
        case _, _: return Nil()

@law(induct='n', gen=['s'], split=['s'])
def causal(n: Nat, s: List[Fraction]):
    "A row of at least n scores: n of them are read. At position t, n is t + 1."
    assert le(n, length(s))
    return read(n, s) == n

@law(induct='n', gen=['s', 'z'], split=['s', 'z'])
def total_first(n: Nat, s: List[Fraction], z: List[Fraction]):
    assert first(n, s) == first(n, z)
    return total(n, s) == total(n, z)

@law(induct='n', gen=['s', 'z'], split=['s', 'z'])
def shares_first(n: Nat, s: List[Fraction], z: List[Fraction], t: Fraction):
    "Rows that agree up to n give the same weights, whatever follows."
    assert first(n, s) == first(n, z)
    return shares(n, s, t) == shares(n, z, t)


# %%
show(causal, total_first, shares_first)


# %% [markdown]
# ## One convention is the other, rearranged
#
# `interleaved` turns neighbours; `half` turns the first half with the second. Put the even places first and the odd ones
# after them, turn by halves: that is turning neighbours and then putting even places first. The turning itself is left
# open, so the law holds for floats too, bit by bit. For a row of odd length it is false, and odd sizes are refused.

# %%
#| export
@abstract
class V: "Numbers of any kind."; samples = (0, 1, 2, 3)
@abstract
def low(c: V, s: V, a: V, b: V) -> V: return c*a - s*b
@abstract
def high(c: V, s: V, a: V, b: V) -> V: return s*a + c*b

@datatype
class Angles:
    class Done: pass
    class Turn:
        cos: V
        sin: V
        rest: Self
Done, Turn = Angles.Done, Angles.Turn

@pure
def even(v: List[V]) -> bool:
    match v:
        case Nil(): return True
        case Cons(_, Nil()): return False
        case Cons(_, Cons(_, r)): return even(r)

@pure
def evens(v: List[V]) -> List[V]:
    match v:
        case Cons(a, Cons(_, r)): return Cons(a, evens(r))
        case _: return v

@pure
def odds(v: List[V]) -> List[V]:
    match v:
        case Cons(_, Cons(b, r)): return Cons(b, odds(r))
        case _: return Nil()

@pure
def interleaved(c: Angles, v: List[V]) -> List[V]:
    match c, v:
        case Turn(p, q, r), Cons(a, Cons(b, w)): return Cons(low(p, q, a, b), Cons(high(p, q, a, b), interleaved(r, w)))
        case _, _: return v

@pure
def lows(c: Angles, a: List[V], b: List[V]) -> List[V]:
    match c, a, b:
        case Turn(p, q, r), Cons(x, u), Cons(y, w): return Cons(low(p, q, x, y), lows(r, u, w))
        case _, _, _: return a

@pure
def highs(c: Angles, a: List[V], b: List[V]) -> List[V]:
    match c, a, b:
        case Turn(p, q, r), Cons(x, u), Cons(y, w): return Cons(high(p, q, x, y), highs(r, u, w))
        case _, _, _: return b

@pure
def halves(c: Angles, a: List[V], b: List[V]) -> List[V]:
    "The row whose two halves are a and b, turned by halves."
    return append(lows(c, a, b), highs(c, a, b))

@law(induct='v', gen=['c'], depth=2, split=['c'])
def lows_evens(c: Angles, v: List[V]):
    assert even(v)
    return lows(c, evens(v), odds(v)) == evens(interleaved(c, v))

@law(induct='v', gen=['c'], depth=2, split=['c'])
def highs_odds(c: Angles, v: List[V]):
    assert even(v)
    return highs(c, evens(v), odds(v)) == odds(interleaved(c, v))

@law(induct='v', depth=2)
def halves_are_equal(v: List[V]):
    "There are as many even places as odd ones, so evens and odds are the two halves."
    assert even(v)
    return length(evens(v)) == length(odds(v))

@law(cite=[lows_evens, highs_odds], opaque=[lows, highs, evens, odds, interleaved, append, even])
def conventions(c: Angles, v: List[V]):
    "Rearranged and turned by halves is turned by neighbours and rearranged."
    assert even(v)
    return halves(c, evens(v), odds(v)) == append(evens(interleaved(c, v)), odds(interleaved(c, v)))


# %%
show(halves_are_equal, conventions)


# %% [markdown]
# ## The mean of shards
#
# Examples are shared out to several computers, equally many to each. The mean of their mean gradients is the mean over all
# examples. All that is used: gradients add up, can be scaled, and $\tfrac1{nm} = \tfrac1n\cdot\tfrac1m$.

# %%
#| export
@abstract
class G: "Gradients."; samples = (Fraction(0), Fraction(1), Fraction(2))
@abstract
def gplus(x: G, y: G) -> G: return x + y
@abstract
def gzero() -> G: return Fraction(0)
@abstract
def part(n: Nat, x: G) -> G: return x/max(int(n), 1)

@axiom(trigger=('gplus(gplus(x, y), z)', 'gplus(x, gplus(y, z))'))
def gplus_assoc(x: G, y: G, z: G): return gplus(gplus(x, y), z) == gplus(x, gplus(y, z))
@axiom
def gzero_plus(x: G): return gplus(gzero(), x) == x
@axiom
def part_plus(n: Nat, x: G, y: G): return part(n, gplus(x, y)) == gplus(part(n, x), part(n, y))
@axiom
def part_zero(n: Nat): return part(n, gzero()) == gzero()
@axiom(trigger='part(n, part(m, x))')
def part_part(n: Nat, m: Nat, x: G):
    assert n != Z() and m != Z()
    return part(n, part(m, x)) == part(mul(n, m), x)

@pure
def gsum(gs: List[G]) -> G:
    match gs:
        case Nil(): return gzero()
        case Cons(g, r): return gplus(g, gsum(r))

@pure
def join(shards: List[List[G]]) -> List[G]:
    match shards:
        case Nil(): return Nil()
        case Cons(s, r): return append(s, join(r))

@pure
def mean(gs: List[G]) -> G: return part(length(gs), gsum(gs))

@pure
def means(shards: List[List[G]]) -> List[G]:
    match shards:
        case Nil(): return Nil()
        case Cons(s, r): return Cons(mean(s), means(r))

@pure
def all_of(m: Nat, shards: List[List[G]]) -> bool:
    "Each shard has m examples."
    match shards:
        case Nil(): return True
        case Cons(s, r): return length(s) == m and all_of(m, r)

@law(induct='s', cite=[gplus_assoc, gzero_plus])
def gsum_append(s: List[G], t: List[G]): return gsum(append(s, t)) == gplus(gsum(s), gsum(t))

@law(induct='s', cite=[length_append], trigger='join(s); all_of(m, s)')
def join_length(m: Nat, s: List[List[G]]):
    assert all_of(m, s)
    return length(join(s)) == mul(length(s), m)

@law(induct='s', cite=[part_plus, part_zero, gsum_append], trigger='means(s); all_of(m, s)')
def means_sum(m: Nat, s: List[List[G]]):
    assert all_of(m, s)
    return gsum(means(s)) == part(m, gsum(join(s)))

@law(induct='s')
def means_length(s: List[List[G]]): return length(means(s)) == length(s)

@law(cite=[join_length, means_sum, means_length, part_part], opaque=[gsum, length, join, means, mul, all_of], split=['s', 'm'])
def mean_of_shards(m: Nat, s: List[List[G]]):
    "The mean of the shards' means is the mean of all."
    assert all_of(m, s) and m != Z() and length(s) != Z()
    return mean(means(s)) == mean(join(s))


# %%
show(mean_of_shards)


# %% [markdown]
# Shards of different sizes are another matter:

# %%
@law
def unequal(s: List[List[G]]): return mean(means(s)) == mean(join(s))

t = prove(unequal)
assert t.verdict == 'refuted'
t

# %% [markdown]
# ## What this does not show
#
# Float sums depend on their order. Two computers give the bits of one only if the one adds up in the same two parts.
