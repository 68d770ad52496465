# %%
#| default_exp tensor.sizes

# %% [markdown]
# # Sizes of products
# > How many rows and columns a product has, and that it distributes over addition.

# %% [markdown]
# `reshape` keeps the numbers and changes how they are counted off; that needs $r c$ to stay the same. A product has the rows of
# its left side and the columns of its right side, and distributes over addition.

# %%
#| hide
#| export
from bendml.laws import Cons, List, Nil, law, prove, pure
from bendml.lists import length
from bendml.nat import Nat, S, Z, mul, mul_comm, mul_one_left
from bendml.tensor.lists import R, a_assoc, a_comm, dist, matmul, scale, vadd, vecmat
from bendml.tensor.transpose import vadd_nil


# %% [markdown]
# ## Reshaping

# %%
#| export
@law(cite=[mul_comm])
def reshape_swap(r: Nat, c: Nat):
    "r rows of c are as many numbers as c rows of r."
    return mul(r, c) == mul(c, r)

@law(cite=[mul_one_left])
def reshape_flat(r: Nat, c: Nat):
    "All in one row."
    return mul(r, c) == mul(S(Z()), mul(r, c))


# %% [markdown]
# ## Sums of vectors

# %%
#| export
@law(induct='v')
def scale_len(g: R, v: List[R]):
    "A multiple is as long."
    return length(scale(g, v)) == length(v)

@law(induct='u', gen=['v'])
def vadd_len(u: List[R], v: List[R]):
    "A sum of two equally long vectors is as long."
    assert length(u) == length(v)
    return length(vadd(u, v)) == length(v)

@law(induct='u', gen=['w', 'v'], cite=[a_assoc])
def vadd_assoc(u: List[R], w: List[R], v: List[R]):
    "Brackets do not matter when vectors are added."
    return vadd(vadd(u, w), v) == vadd(u, vadd(w, v))

@law(induct='u', gen=['v'], cite=[a_comm])
def vadd_comm(u: List[R], v: List[R]):
    "Nor does the order."
    return vadd(u, v) == vadd(v, u)

@law(induct='u', gen=['v'], cite=[dist])
def scale_vadd(g: R, u: List[R], v: List[R]):
    "A multiple of a sum is the sum of the multiples."
    return scale(g, vadd(u, v)) == vadd(scale(g, u), scale(g, v))


# %% [markdown]
# ## The product distributes

# %%
#| export
@pure
def madd(a: List[List[R]], b: List[List[R]]) -> List[List[R]]:
    "A + B, row by row."
    match a, b:
        case Nil(), _: return b
        case Cons(_, _), Nil(): return a
        case Cons(x, r), Cons(y, s): return Cons(vadd(x, y), madd(r, s))

@law(cite=[vadd_assoc, vadd_comm])
def vadd_swap(a: List[R], b: List[R], c: List[R], d: List[R]):
    "Four vectors added crosswise."
    return vadd(vadd(a, b), vadd(c, d)) == vadd(a, vadd(b, vadd(c, d))) == vadd(a, vadd(vadd(b, c), d)) == vadd(a, vadd(vadd(c, b), d)) == vadd(a, vadd(c, vadd(b, d))) == vadd(vadd(a, c), vadd(b, d))

@law(induct='g', gen=['a', 'b'], cite=[scale_vadd, vadd_swap, vadd_nil], split=['a', 'b'])
def vecmat_madd(g: List[R], a: List[List[R]], b: List[List[R]]):
    "A vector times a sum of matrices is the sum of the products."
    assert length(a) == length(b)
    return vecmat(g, madd(a, b)) == vadd(vecmat(g, a), vecmat(g, b))

@law(induct='c', cite=[vecmat_madd])
def matmul_madd(c: List[List[R]], a: List[List[R]], b: List[List[R]]):
    "The product distributes over addition."
    assert length(a) == length(b)
    return matmul(c, madd(a, b)) == madd(matmul(c, a), matmul(c, b))


# %% [markdown]
# ## Rows and columns of a product

# %%
#| export
@pure
def widths(c: Nat, a: List[List[R]]) -> bool:
    "Has every row c numbers?"
    match a:
        case Nil(): return True
        case Cons(r, rest): return length(r) == c and widths(c, rest)

@law(induct='a', gen=['g'], cite=[scale_len, vadd_len], split=['a.tail', 'g', 'g.tail'])
def vecmat_len(c: Nat, g: List[R], a: List[List[R]]):
    "g W has as many numbers as W has columns."
    assert widths(c, a)
    assert a != Nil()
    assert length(g) == length(a)
    return length(vecmat(g, a)) == c

@law(induct='a', cite=[vecmat_len])
def product_columns(k: Nat, c: Nat, a: List[List[R]], b: List[List[R]]):
    "A product has as many columns as its right side."
    assert widths(k, a)
    assert widths(c, b)
    assert b != Nil()
    assert length(b) == k
    return widths(c, matmul(a, b))

@law(induct='a')
def product_rows(a: List[List[R]], b: List[List[R]]):
    "A product has as many rows as its left side."
    return length(matmul(a, b)) == length(a)


# %% [markdown]
# ## All of them

# %%
from bendml.laws import Law
for name, each in list(globals().items()):
    if isinstance(each, Law) and each.__doc__ and each.__module__ == __name__: print(f'{name:20} {prove(each).verdict:10} {each.__doc__}')

# %% [markdown]
# ## What this does not show
#
# What becomes of rows of different lengths: the functions then do something, and no law here speaks of it.
