# %%
#| default_exp nat

# %% [markdown]
# # Natural numbers
# > What a proof is, on the smallest things there are: counting, adding, multiplying, comparing.

# %% [markdown]
# Everybody knows that $x + y = y + x$. How do you know? You have tried a few numbers. Perhaps you see rows of pebbles, that
# can be counted from either end. But no one has tried all numbers, and a computer cannot either.
#
# This page proves it, about a Python function `add` that you can call. Nothing is taken from the arithmetic that is built
# into Python or into a solver: numbers here are only *zero* and *one more than a number*, and everything else follows.

# %%
#| hide
#| export
from typing import Self

from bendml.laws import datatype, law, prove, pure


# %% [markdown]
# ## Numbers
#
# A natural number is made in one of two ways, and in no other (Giuseppe Peano, 1889): it is `Z()`, zero, or it is `S(n)`,
# the successor of a number `n`. Three is `S(S(S(Z())))`; we print it as `3n`.

# %%
#| export
@datatype
class Nat:
    "A natural number: zero, or the successor of one."
    class Z: pass
    class S: pred: Self
    def __int__(self):
        n = 0
        while self.__match_args__: n, self = n + 1, self.pred
        return n
    def __repr__(self): return f'{int(self)}n'

Z, S = Nat.Z, Nat.S


# %%
#| export
def nat(n: int) -> Nat:
    "A Python number, not negative, as a natural number."
    if n < 0: raise ValueError(f'a natural number\n- expected : 0 or more\n- observed : {n}')
    made = Z()
    for _ in range(n): made = S(made)
    return made


# %%
S(S(S(Z()))), int(nat(1000)), nat(2) == S(S(Z()))


# %% [markdown]
# ## Adding
#
# Zero plus `y` is `y`. One more than `m`, plus `y`, is one more than `m` plus `y`. That is all there is to adding.
# `@pure` reads these two lines as two equations, and leaves `add` as it is.

# %%
#| export
@pure
def add(x: Nat, y: Nat) -> Nat:
    "x + y"
    match x:
        case Z(): return y
        case S(m): return S(add(m, y))


# %%
add(nat(2), nat(3))


# %% [markdown]
# ## The first proof
#
# `add(Z(), y)` is `y`, as the first line of `add` says. And `add(x, Z())`? That is not written there. The definition
# looks at the first number only, and walks down it. So here is our first law:

# %%
#| export
@law(induct='x')
def add_zero(x: Nat):
    "Adding zero on the right changes nothing."
    return add(x, Z()) == x


# %% [markdown]
# It is a Python function, and can be tried:

# %%
add_zero(nat(0)), add_zero(nat(7))

# %% [markdown]
# `induct='x'` says how to prove it: with dominoes. Stand all numbers in a row, 0, 1, 2, ...
#
# - **The first falls.** `add(Z(), Z())` is `Z()`, by the first line of `add`.
# - **Each brings down the next.** Suppose that the law holds for a number `m`, so `add(m, Z())` is `m`. Then for the next
#   number, `add(S(m), Z())` is `S(add(m, Z()))`, by the second line of `add`; and that is `S(m)`, by what we supposed.
#
# So all of them fall. This is *induction*, and what was supposed for `m` is the *induction hypothesis*. `prove` sends both
# points, one text each, to two solvers.

# %%
prove(add_zero)


# %% [markdown]
# `unsat` means: it is impossible that everything above is as said and this case is nevertheless false. Both solvers say
# so about both cases; the law is `confirmed`.
#
# ## Why $x + y = y + x$ needs two lemmas first
#
# Let us go at it directly.

# %%
@law(induct='x')
def add_comm_at_once(x: Nat, y: Nat): return add(x, y) == add(y, x)

prove(add_comm_at_once)


# %% [markdown]
# `open`: no proof, and no counterexample either. Look at the cases to see what is missing.
#
# - For `Z()`: `add(Z(), y) == add(y, Z())`. The left side is `y`. The right side should be `y` too, but that is our law
#   `add_zero`, which has to be proved by walking down `y`; and here we are walking down `x`.
# - For `S(m)`: the left side is `S(add(m, y))`. The right side is `add(y, S(m))`, and `add` can do nothing with it, since
#   it looks at its first number only. We need to know that an `S` on the right can be moved to the front.
#
# The second point is a law of its own:

# %%
#| export
@law(induct='x')
def add_succ(x: Nat, y: Nat):
    "One more on the right is one more in all."
    return add(x, S(y)) == S(add(x, y))


# %% [markdown]
# With both, it goes through. A law that is used in the proof of another is called a *lemma*; `cite` names it.

# %%
#| export
@law(induct='x', cite=[add_zero, add_succ])
def add_comm(x: Nat, y: Nat):
    "The order in which we add does not matter."
    return add(x, y) == add(y, x)


# %%
prove(add_comm)


# %% [markdown]
# Only one of them is not enough. With `add_zero` alone, the first case is proved and the second is not:

# %%
@law(induct='x', cite=[add_zero])
def add_comm_with_one(x: Nat, y: Nat): return add(x, y) == add(y, x)

prove(add_comm_with_one)


# %% [markdown]
# ## A false law
#
# When something is false, no lemma helps. Taking away is not like adding: it stops at zero.

# %%
#| export
@pure
def sub(x: Nat, y: Nat) -> Nat:
    "x - y, and zero if y is larger"
    match x, y:
        case Z(), _: return Z()
        case S(_), Z(): return x
        case S(m), S(k): return sub(m, k)


# %%
@law(induct='x', gen=['y'])
def sub_comm(x: Nat, y: Nat): return sub(x, y) == sub(y, x)

prove(sub_comm)


# %% [markdown]
# The law was run on all small numbers, smallest first, and this pair is the first for which it is false: $0 - 1$ is 0
# here, and $1 - 0$ is 1.
#
# ## More about adding and multiplying
#
# From here on the laws stand under their functions, each with what it cites; at the end of the page they are all proved.

# %%
#| export
@law(induct='x')
def add_assoc(x: Nat, y: Nat, z: Nat):
    "Brackets do not matter when we add."
    return add(add(x, y), z) == add(x, add(y, z))


# %%
#| export
@pure
def mul(x: Nat, y: Nat) -> Nat:
    "x · y"
    match x:
        case Z(): return Z()
        case S(m): return add(y, mul(m, y))


# %% [markdown]
# The way to `mul_comm` is the way to `add_comm`, one floor higher: what `mul` does with zero and with a successor on the right.

# %%
#| export
@law(induct='x')
def mul_zero(x: Nat):
    "Nothing times over is nothing."
    return mul(x, Z()) == Z()

@law(induct='x', cite=[add_assoc, add_comm])
def mul_succ(x: Nat, y: Nat):
    "One more on the right is one more x."
    return mul(x, S(y)) == add(x, mul(x, y))

@law(induct='x', cite=[mul_zero, mul_succ])
def mul_comm(x: Nat, y: Nat):
    "The order in which we multiply does not matter."
    return mul(x, y) == mul(y, x)


# %%
#| export
@law(induct='x', cite=[add_assoc])
def mul_dist(x: Nat, y: Nat, z: Nat):
    "Multiplying a sum is multiplying each part."
    return mul(add(x, y), z) == add(mul(x, z), mul(y, z))

@law(cite=[mul_comm, mul_dist])
def mul_dist_left(x: Nat, y: Nat, z: Nat):
    "The same with the sum on the right."
    return mul(x, add(y, z)) == mul(add(y, z), x) == add(mul(y, x), mul(z, x)) == add(mul(x, y), mul(x, z))


# %% [markdown]
# `mul_dist_left` is a calculation: a chain of equations, as on paper. Each `==` is proved by itself.

# %%
prove(mul_dist_left)


# %%
#| export
@law(induct='x', cite=[mul_dist])
def mul_assoc(x: Nat, y: Nat, z: Nat):
    "Brackets do not matter when we multiply."
    return mul(mul(x, y), z) == mul(x, mul(y, z))

@law(cite=[add_zero])
def mul_one_left(x: Nat):
    "Once x is x."
    return mul(S(Z()), x) == x

@law(induct='x')
def mul_one_right(x: Nat):
    "x times one is x."
    return mul(x, S(Z())) == x


# %% [markdown]
# ## Comparing

# %%
#| export
@pure
def le(x: Nat, y: Nat) -> bool:
    "x ≤ y"
    match x, y:
        case Z(), _: return True
        case S(_), Z(): return False
        case S(m), S(k): return le(m, k)


# %% [markdown]
# A law may assume something: its asserts. And here both numbers shrink together, so the hypothesis must hold for every `y`
# and `z`, not only for those that we started with. `gen` says so: it makes the hypothesis more *general*.

# %%
#| export
@law(induct='x')
def le_refl(x: Nat):
    "Every number is at most itself."
    return le(x, x)

@law(induct='x', gen=['y', 'z'])
def le_trans(x: Nat, y: Nat, z: Nat):
    "At most, and again at most."
    assert le(x, y)
    assert le(y, z)
    return le(x, z)

@law(induct='x', gen=['y'])
def le_antisym(x: Nat, y: Nat):
    "Two numbers that are at most each other are the same."
    assert le(x, y)
    assert le(y, x)
    return x == y

@law(induct='x', gen=['y'])
def le_total(x: Nat, y: Nat):
    "Of two numbers, one is at most the other."
    return le(x, y) or le(y, x)


# %% [markdown]
# Without `gen`, the hypothesis of `le_trans` is about the numbers `y` and `z` that we started with, and it says nothing
# about the smaller ones:

# %%
@law(induct='x')
def le_trans_without_gen(x: Nat, y: Nat, z: Nat):
    assert le(x, y)
    assert le(y, z)
    return le(x, z)

prove(le_trans_without_gen)


# %%
#| export
@law(induct='x', gen=['y'])
def le_succ(x: Nat, y: Nat):
    "At most y, so at most one more."
    assert le(x, y)
    return le(x, S(y))

@law(induct='x', cite=[le_refl, le_succ])
def le_add(x: Nat, y: Nat):
    "A sum is no less than its part."
    return le(y, add(x, y))

@law(induct='z')
def le_add_mono(x: Nat, y: Nat, z: Nat):
    "Adding the same on both sides keeps the order."
    assert le(x, y)
    return le(add(z, x), add(z, y))

@law(cite=[le_add, add_comm])
def le_add_left(x: Nat, y: Nat):
    "A sum is no less than its other part."
    return le(x, add(x, y))


# %% [markdown]
# ## Room enough
#
# A tree of depth $d$ has $2^d$ leaves. How deep must a tree be, to hold `n` things? `cap_depth` walks down `n` and adds
# a floor whenever the next one does not fit. That it is always enough is a law that later pages build on.

# %%
#| export
@pure
def pow2(d: Nat) -> Nat:
    "2 to the d"
    match d:
        case Z(): return S(Z())
        case S(e): return add(pow2(e), pow2(e))

@pure
def cap_depth(n: Nat) -> Nat:
    "The depth of a tree that has room for n leaves."
    match n:
        case Z(): return Z()
        case S(m):
            d = cap_depth(m)
            return d if le(S(m), pow2(d)) else S(d)


# %%
[(int(n), int(cap_depth(n)), int(pow2(cap_depth(n)))) for n in map(nat, range(10))]


# %%
#| export
@law(induct='d', split=['pow2(d.pred)'])
def pow2_pos(d: Nat):
    "A power of two is at least one."
    return le(S(Z()), pow2(d))

@law(induct='d', cite=[le_add.seen('add(x, y)'), le_trans])
def le_add_one(x: Nat, y: Nat, d: Nat):
    "What is at most y is, one more, at most y and something."
    assert le(x, y)
    assert le(S(Z()), d)
    return le(S(x), add(d, y))

@law(induct='n', cite=[pow2_pos, le_add_one])
def cap_ok(n: Nat):
    "n things have room in a tree of depth `cap_depth(n)`."
    return le(n, pow2(cap_depth(n)))


# %%
prove(cap_ok)


# %% [markdown]
# With one floor too few it would be false, and we would be told for which `n`:

# %%
@law(induct='n')
def cap_off_by_one(n: Nat): return le(S(n), pow2(cap_depth(n)))

prove(cap_off_by_one)


# %% [markdown]
# ## Halving
#
# Work is split in two: a half, rounded down, and the rest. The two together are everything, for an odd number as well.
# `half` takes two steps at once, so its induction looks two constructors deep: zero, one, and `m + 2`.

# %%
#| export
@pure
def half(n: Nat) -> Nat:
    "n / 2, rounded down"
    match n:
        case S(S(m)): return S(half(m))
        case _: return Z()

@law(induct='n', depth=2, cite=[le_succ])
def half_le(n: Nat):
    "A half is no more than the whole."
    return le(half(n), n)

@law(induct='h', gen=['n'])
def add_sub(h: Nat, n: Nat):
    "What was taken away can be put back."
    assert le(h, n)
    return add(h, sub(n, h)) == n

@law(cite=[half_le, add_sub])
def half_cover(n: Nat):
    "A half and the rest are the whole."
    return add(half(n), sub(n, half(n))) == n


# %%
prove(half_cover)


# %% [markdown]
# ## Python's numbers
#
# Solvers know integers of their own, and so does Python. One function leads from ours to those, and two laws say that
# it does not matter whether we calculate before or after.

# %%
#| export
@pure
def nat_to_int(n: Nat) -> int:
    "The integer that a natural number is."
    match n:
        case Z(): return 0
        case S(m): return nat_to_int(m) + 1

@law(induct='x')
def nat_to_int_add(x: Nat, y: Nat):
    "Adding natural numbers is adding integers."
    return nat_to_int(add(x, y)) == nat_to_int(x) + nat_to_int(y)

@law(induct='x', cite=[nat_to_int_add])
def nat_to_int_mul(x: Nat, y: Nat):
    "Multiplying natural numbers is multiplying integers."
    return nat_to_int(mul(x, y)) == nat_to_int(x)*nat_to_int(y)


# %% [markdown]
# ## All of them

# %%
from bendml.laws import Law

for name, each in list(globals().items()):
    if isinstance(each, Law) and each.__doc__: print(f'{name:20} {prove(each).verdict:10} {each.__doc__}')

# %% [markdown]
# ## What this does not show
#
# These numbers count with fingers: a million is a million objects, and no program should calculate with them. They are for
# proving things about sizes. That the integers of a solver are those that Python has is taken for granted.
