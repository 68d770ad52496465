# %%
#| default_exp nn.row_laws

# %% [markdown]
# # Laws of rows
# > The linear layer and the softmax for all sizes, and causality.

# %% [markdown]
# Obligations at fixed sizes leave a doubt: perhaps it goes wrong at 50,257. Here are laws for rows of every length. As on
# [Laws of layers](67_layer_laws.ipynb), the functions are models, in lists, of the loops that run.

# %%
#| hide
#| export
from fractions import Fraction

from bendml.autograd.scalar import R, distribute, dot, plus, plus_assoc, plus_comm, plus_zero, times, times_assoc, times_comm, times_zero, zero
from bendml.laws import Cons, List, Nil, abstract, axiom, law, pure
from bendml.lists import length
from bendml.nat import Nat, S, Z, le
from bendml.nn.layer_laws import confirm


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
confirm(adjoint)


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
confirm(softmax_adjoint)


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


# %%
#| export
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
confirm(causal, total_first, shares_first)

# %% [markdown]
# ## What this does not show
#
# Real numbers, not floats: a float sum depends on its order, and these laws hold for floats up to rounding.
