# %%
#| default_exp tensor.order

# %% [markdown]
# # Lists and loops
# > What the proved loops compute, said of lists: the same numbers, added in the same order.

# %% [markdown]
# A law on the pages before is about lists. A [kernel](29c_sums.ipynb) runs through arrays, and its contract says which sum it leaves in
# each cell, in terms of places in those arrays. Between the two is a gap: are these the sums that the laws are about? This page
# closes it, in two steps. For floats, a kernel's sum is that of two lists, added from left to right, to the last bit. And for numbers
# that obey the rules of school, adding from left to right is `dot`.

# %%
#| hide
#| export
from bendml.kernel.numbers import Number, fadd, fmul, fnum
from bendml.kernel.sums import column, dot as gemm_sum, row as matvec_sum
from bendml.laws import Array, Cons, List, Nil, law, prove, pure, select
from bendml.lists import append, length, length_append
from bendml.tensor.lists import R, a_assoc, a_zero, dot, radd, rmul


# %% [markdown]
# ## An array as a list
#
# A row of a matrix, or a column, is a walk through memory: from a place on, in steps of some width.

# %%
#| export
@pure(measure='n')
def cells(a: Array[int, Number], at: int, step: int, n: int) -> List[Number]:
    "The n cells from `at` on, `step` apart, as a list."
    if n <= 0: return Nil()
    return append(cells(a, at, step, n - 1), Cons(select(a, at + (n - 1)*step), Nil()))

@law(induct='n', cite=[length_append])
def cells_alike(a: Array[int, Number], at: int, step: int, b: Array[int, Number], bt: int, bstep: int, n: int):
    "The same number of cells makes lists of the same length, wherever they lie."
    return length(cells(a, at, step, n)) == length(cells(b, bt, bstep, n))


# %% [markdown]
# ## From left to right
#
# `fadd` and `fmul` are a float's sum and product, of which nothing is known, no rule of algebra. So what is proved with them
# holds to the last bit. (`not x != y` is `x == y`, as a truth value of Python's and not one of NumPy's.)

# %%
#| export
@pure
def from_left(acc: Number, u: List[Number], v: List[Number]) -> Number:
    "acc, and then the products, entry by entry."
    match u, v:
        case Cons(x, r), Cons(y, s): return from_left(fadd(acc, fmul(x, y)), r, s)
        case _, _: return acc

@law(induct='u', gen=['acc', 'v'], split=['v'])
def last_is_added_last(acc: Number, u: List[Number], v: List[Number], x: Number, y: Number):
    "The product of what stands at the end of both lists is added last."
    assert length(u) == length(v)
    return not from_left(acc, append(u, Cons(x, Nil())), append(v, Cons(y, Nil()))) != fadd(from_left(acc, u, v), fmul(x, y))


# %% [markdown]
# ## The kernels' sums
#
# The left sides are the specifications to which [`gemm` and `matvec`](29c_sums.ipynb) are proved. In a product, row $i$ of $A$ begins at
# `i*ar` and goes on in steps of `ac`; column $j$ of $B$ begins at `j*bc` and goes on in steps of `br`.

# %%
#| export
@law(induct='p', cite=[
    cells_alike.at(a='a', at='i*ar', step='ac', b='b', bt='j*bc', bstep='br', n='p - 1'),
    last_is_added_last.at(acc='fnum(0)', u='cells(a, i*ar, ac, p - 1)', v='cells(b, j*bc, br, p - 1)',
                          x='select(a, i*ar + (p - 1)*ac)', y='select(b, j*bc + (p - 1)*br)')])
def gemm_adds_lists(a: Array[int, Number], b: Array[int, Number], i: int, ar: int, ac: int, j: int, br: int, bc: int, p: int):
    "A cell of a product: a row and a column, multiplied entry by entry and added from left to right."
    return not gemm_sum(a, b, i, ar, ac, j, br, bc, p) != from_left(fnum(0), cells(a, i*ar, ac, p), cells(b, j*bc, br, p))

@law(induct='p', cite=[
    cells_alike.at(a='w', at='i*k', step='1', b='v', bt='0', bstep='1', n='p - 1'),
    last_is_added_last.at(acc='fnum(0)', u='cells(w, i*k, 1, p - 1)', v='cells(v, 0, 1, p - 1)',
                          x='select(w, i*k + (p - 1))', y='select(v, p - 1)')])
def matvec_adds_lists(w: Array[int, Number], v: Array[int, Number], k: int, i: int, p: int):
    "A number of a matrix times a vector, in bands or not: a row and the vector."
    return not matvec_sum(w, v, k, i, p) != from_left(fnum(0), cells(w, i*k, 1, p), cells(v, 0, 1, p))


# %%
prove(gemm_adds_lists)


# %% [markdown]
# A sum of a column has no products; the walk is the same.

# %%
#| export
@pure
def sum_from_left(acc: Number, u: List[Number]) -> Number:
    "acc, and then the numbers of a list."
    match u:
        case Nil(): return acc
        case Cons(x, r): return sum_from_left(fadd(acc, x), r)

@law(induct='u', gen=['acc'])
def last_number_last(acc: Number, u: List[Number], x: Number):
    "The number at the end of a list is added last."
    return not sum_from_left(acc, append(u, Cons(x, Nil()))) != fadd(sum_from_left(acc, u), x)

@law(induct='p', cite=[last_number_last.at(acc='fnum(0)', u='cells(b, j, m, p - 1)', x='select(b, j + (p - 1)*m)')])
def col_sums_adds_lists(b: Array[int, Number], m: int, j: int, p: int):
    "A sum of a column: its cells, from the top down."
    return not column(b, m, j, p) != sum_from_left(fnum(0), cells(b, j, m, p))


# %% [markdown]
# With the strides exchanged it is another list, and another sum:

# %%
@law
def exchanged(a: Array[int, Number], b: Array[int, Number], i: int, ar: int, ac: int, j: int, br: int, bc: int, p: int):
    return not gemm_sum(a, b, i, ar, ac, j, br, bc, p) != from_left(fnum(0), cells(a, i*ac, ar, p), cells(b, j*bc, br, p))

assert prove(exchanged).verdict == 'refuted'
prove(exchanged)


# %% [markdown]
# ## Where the rules hold
#
# `dot` adds from right to left, as a list is taken apart. For floats that may be another number. For numbers whose brackets may be
# moved it is the same, and so the laws about `dot`, `matvec` and `matmul` are laws about what the kernels would compute without rounding.

# %%
#| export
@pure
def exact_from_left(acc: R, u: List[R], v: List[R]) -> R:
    "The same as `from_left`, for numbers that obey the rules."
    match u, v:
        case Cons(x, r), Cons(y, s): return exact_from_left(radd(acc, rmul(x, y)), r, s)
        case _, _: return acc

@law(induct='u', gen=['acc', 'v'], cite=[a_assoc, a_zero])
def left_is_dot(acc: R, u: List[R], v: List[R]):
    "From left to right is `dot`, put on top of what was there."
    return exact_from_left(acc, u, v) == radd(acc, dot(u, v))


# %%
prove(left_is_dot)

# %% [markdown]
# In floats, the two orders do differ:

# %%
import numpy as np
from bendml.laws import to_list
u, v = [to_list(map(np.float32, x)) for x in ([1, 1e8, -1e8], [1, 1, 1])]
from_left(np.float32(0), u, v), dot(u, v)

# %% [markdown]
# ## All of them

# %%
from bendml.laws import Law
for name, each in list(globals().items()):
    if isinstance(each, Law) and each.__doc__ and each.__module__ == __name__: print(f'{name:20} {prove(each).verdict:10} {each.__doc__}')

# %% [markdown]
# ## What this does not show
#
# - That a float's sum is near the exact one: reordered and rounded sums are held to a bound by tests.
# - `from_left` and `exact_from_left` are the same lines for two kinds of numbers; that they are, the reader sees.
