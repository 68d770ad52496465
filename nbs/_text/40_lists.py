# %%
#| default_exp tensor.lists

# %% [markdown]
# # Matrices as lists
# > What a matrix product is, said so simply that laws about it can be proved.

# %% [markdown]
# Before matrices are made fast, they are made plain. A vector is a list of numbers and a matrix a list of rows. On
# this page every function is a few lines that walk down a list, and every property that later pages rely on is proved about
# these lines, for all sizes.
#
# What is a number here? Anything that can be added and multiplied by the rules known from school. The laws hold for whole
# numbers, fractions, and real numbers. They do not all hold for floating-point numbers, where $(a + b) + c$ and
# $a + (b + c)$ may differ in the last digit; so it is said which rules a law rests on.

# %%
#| hide
#| export
from typing import Self

from bendml.laws import Cons, List, Nil, abstract, axiom, datatype, law, prove, pure
from bendml.lists import append, append_assoc, length, length_append
from bendml.nat import Nat, S, Z, add, cap_ok, half, half_cover, half_le, le, mul, mul_comm, mul_one_left, sub


# %% [markdown]
# ## Numbers by their rules

# %%
#| export
@abstract
class R:
    samples = (0, 1, 2)

@abstract
def radd(x: R, y: R) -> R: return x + y

@abstract
def rmul(x: R, y: R) -> R: return x*y

@abstract
def r0() -> R: return 0


# %%
#| export
@axiom
def a_comm(x: R, y: R): return radd(x, y) == radd(y, x)

@axiom(trigger=('radd(radd(x, y), z)', 'radd(x, radd(y, z))'))
def a_assoc(x: R, y: R, z: R): return radd(radd(x, y), z) == radd(x, radd(y, z))

@axiom
def a_zero(x: R): return radd(x, r0()) == x

@axiom
def m_comm(x: R, y: R): return rmul(x, y) == rmul(y, x)

@axiom(trigger=('rmul(rmul(x, y), z)', 'rmul(x, rmul(y, z))'))
def m_assoc(x: R, y: R, z: R): return rmul(rmul(x, y), z) == rmul(x, rmul(y, z))

@axiom
def m_zero(x: R): return rmul(x, r0()) == r0()

@axiom
def dist(x: R, y: R, z: R): return rmul(x, radd(y, z)) == radd(rmul(x, y), rmul(x, z))


# %% [markdown]
# ## Vectors and matrices
#
# `dot` is $\sum_i u_i v_i$. `vadd` adds entry by entry; the end of a longer vector is kept, as if the shorter one went on with zeros.

# %%
#| export
Vec, Mat = List[R], List[List[R]]

@pure
def dot(u: List[R], v: List[R]) -> R:
    "The sum of the products, entry by entry."
    match u, v:
        case Cons(a, x), Cons(b, y): return radd(rmul(a, b), dot(x, y))
        case _, _: return r0()

@pure
def vadd(u: List[R], v: List[R]) -> List[R]:
    "u + v"
    match u, v:
        case Nil(), _: return v
        case Cons(_, _), Nil(): return u
        case Cons(a, x), Cons(b, y): return Cons(radd(a, b), vadd(x, y))

@pure
def scale(g: R, v: List[R]) -> List[R]:
    "g v"
    match v:
        case Nil(): return Nil()
        case Cons(a, x): return Cons(rmul(g, a), scale(g, x))


# %%
#| export
@pure
def matvec(w: List[List[R]], v: List[R]) -> List[R]:
    "W v: the product of each row with v."
    match w:
        case Nil(): return Nil()
        case Cons(r, rest): return Cons(dot(r, v), matvec(rest, v))

@pure
def vecmat(g: List[R], w: List[List[R]]) -> List[R]:
    "g W: the rows of W, each times its number of g, added up."
    match g, w:
        case Cons(a, rest), Cons(r, rows): return vadd(scale(a, r), vecmat(rest, rows))
        case _, _: return Nil()

@pure
def matmul(a: List[List[R]], b: List[List[R]]) -> List[List[R]]:
    "A B: each row of A times B."
    match a:
        case Nil(): return Nil()
        case Cons(r, rest): return Cons(vecmat(r, b), matmul(rest, b))


# %%
from bendml.laws import to_list
rows = lambda m: to_list([to_list(r) for r in m])
a, b = rows([[1, 2], [3, 4]]), rows([[1, 0], [1, 1]])
matmul(a, b)


# %% [markdown]
# ## The adjoint
#
# $\langle g, W v\rangle = \langle g W, v\rangle$: to multiply with $W$ and then compare with $g$ is to take $g$ through $W$ the
# other way and compare with $v$. It is why the gradient of a layer is a product with the transposed matrix.

# %%
#| export
@law(induct='u')
def dot_nil(u: List[R]):
    "Nothing in common with the empty vector."
    return dot(u, Nil()) == r0()

@law(cite=[a_comm, a_assoc])
def swap4(a: R, b: R, c: R, d: R):
    "Four numbers added crosswise."
    return radd(radd(a, b), radd(c, d)) == radd(radd(a, c), radd(b, d))

@law(induct='u', gen=['w', 'v'], cite=[a_zero, a_comm, dist, m_comm, swap4])
def dot_vadd(u: List[R], w: List[R], v: List[R]):
    "The product with a sum is the sum of the products."
    return dot(vadd(u, w), v) == radd(dot(u, v), dot(w, v))

@law(induct='u', gen=['v'], cite=[m_zero, dist, m_assoc])
def dot_scale(g: R, u: List[R], v: List[R]):
    "A factor may be taken out."
    return dot(scale(g, u), v) == rmul(g, dot(u, v))

@law(induct='w', gen=['g'], cite=[dot_vadd, dot_scale, dot_nil])
def adjoint(w: List[List[R]], g: List[R], v: List[R]):
    "W on the right is W on the left, the other way round."
    return dot(g, matvec(w, v)) == dot(vecmat(g, w), v)


# %%
prove(adjoint)


# %% [markdown]
# ## The transposed matrix
#
# A matrix is turned by putting each row in front of what is already turned, as a new column.

# %%
#| export
@pure
def column(r: List[R], t: List[List[R]]) -> List[List[R]]:
    "r as the first column in front of t."
    match r, t:
        case Nil(), _: return Nil()
        case Cons(a, x), Nil(): return Cons(Cons(a, Nil()), column(x, Nil()))
        case Cons(a, x), Cons(c, y): return Cons(Cons(a, c), column(x, y))

@pure
def transpose(w: List[List[R]]) -> List[List[R]]:
    "Rows become columns."
    match w:
        case Nil(): return Nil()
        case Cons(r, rest): return column(r, transpose(rest))


# %%
#| export
@pure
def as_long(r: List[R], t: List[List[R]]) -> bool:
    "Has t as many rows as r has numbers?"
    match r, t:
        case Nil(), Nil(): return True
        case Cons(_, x), Cons(_, y): return as_long(x, y)
        case _, _: return False

@pure
def same(u: List[R], v: List[R]) -> bool:
    "Are two vectors equally long?"
    match u, v:
        case Nil(), Nil(): return True
        case Cons(_, x), Cons(_, y): return same(x, y)
        case _, _: return False

@pure
def rectangular(r: List[R], w: List[List[R]]) -> bool:
    "Is every row of w as long as r?"
    match w:
        case Nil(): return True
        case Cons(q, rest): return same(r, q) and rectangular(r, rest)

@pure
def matching(g: List[R], w: List[List[R]]) -> bool:
    "Has w as many rows as g has numbers?"
    match g, w:
        case Nil(), Nil(): return True
        case Cons(_, x), Cons(_, y): return matching(x, y)
        case _, _: return False


# %%
#| export
@law(induct='r', cite=[a_zero, m_comm])
def column_alone(r: List[R], a: R, g: List[R]):
    "One column times a vector."
    return matvec(column(r, Nil()), Cons(a, g)) == scale(a, r)

@law(induct='r', gen=['t'], cite=[m_comm])
def column_times(r: List[R], t: List[List[R]], a: R, g: List[R]):
    "A column in front adds its multiple."
    assert as_long(r, t)
    return matvec(column(r, t), Cons(a, g)) == vadd(scale(a, r), matvec(t, g))

@law(induct='r', gen=['t'])
def column_long(r: List[R], t: List[List[R]]):
    "A column in front leaves the number of rows."
    assert as_long(r, t)
    return as_long(r, column(r, t))

@law(induct='r')
def column_long_alone(r: List[R]): return as_long(r, column(r, Nil()))

@law(induct='u', gen=['v', 't'], trigger='same(u, v); as_long(u, t)')
def as_long_same(u: List[R], v: List[R], t: List[List[R]]):
    "Equally long vectors fit the same matrices."
    assert same(u, v)
    assert as_long(u, t)
    return as_long(v, t)

@law(induct='u', gen=['v', 't'], trigger='same(u, v); as_long(v, t)')
def as_long_same_back(u: List[R], v: List[R], t: List[List[R]]):
    assert same(u, v)
    assert as_long(v, t)
    return as_long(u, t)


# %%
#| export
@law(induct='w', cite=[as_long_same, as_long_same_back, column_long.seen('column(r, t)'), column_long_alone.seen('column(r, Nil())')],
     split=['w.tail'], trigger='rectangular(r, w)')
def transpose_long(r: List[R], w: List[List[R]]):
    "The transposed matrix has as many rows as the matrix has columns."
    assert rectangular(r, w)
    assert w != Nil()
    return as_long(r, transpose(w))

@law(induct='u')
def vadd_nil(u: List[R]):
    "Adding nothing changes nothing."
    return vadd(u, Nil()) == u

@law(induct='w', gen=['g'], cite=[transpose_long, column_alone, column_times, vadd_nil, as_long_same], split=['w.tail', 'g', 'g.tail'],
     trigger='rectangular(r, w); matvec(transpose(w), g)')
def transpose_vecmat(r: List[R], w: List[List[R]], g: List[R]):
    "The transposed matrix times g is g times the matrix."
    assert rectangular(r, w)
    assert w != Nil()
    assert matching(g, w)
    return matvec(transpose(w), g) == vecmat(g, w)

@law(cite=[adjoint, transpose_vecmat])
def adjoint_transpose(r: List[R], w: List[List[R]], g: List[R], v: List[R]):
    "The adjoint of a matrix is its transpose."
    assert rectangular(r, w)
    assert w != Nil()
    assert matching(g, w)
    return dot(g, matvec(w, v)) == dot(matvec(transpose(w), g), v)

@law(induct='r', gen=['t'], split=['t', 't.tail', 'r.tail', 'column(r.tail, t.tail)'])
def transpose_column(r: List[R], t: List[List[R]]):
    "Turned, a first column is the first row again."
    assert as_long(r, t)
    assert r != Nil()
    return transpose(column(r, t)) == Cons(r, transpose(t))


@law(induct='r')
def transpose_alone(r: List[R]):
    "Turned, a single column is a row."
    assert r != Nil()
    return transpose(column(r, Nil())) == Cons(r, Nil())

@law(induct='w', cite=[transpose_long, as_long_same, transpose_column, transpose_alone], split=['w.tail', 'w.head', 'r'])
def transpose_transpose(r: List[R], w: List[List[R]]):
    "Turned twice, a matrix is what it was."
    assert rectangular(r, w)
    assert r != Nil()
    return transpose(transpose(w)) == w


# %% [markdown]
# ## Bands
#
# A matrix can be cut in two, and each half again, as often as wanted; a tree of bands. The products of all bands, put one after
# another, are the product of the whole matrix, whatever the tree; and there are exactly as many numbers as rows.

# %%
#| export
@datatype
class Bands:
    class Leaf: rows: List[List[R]]
    class Node:
        left: Self
        right: Self
Leaf, Node = Bands.Leaf, Bands.Node

@pure
def banded(b: Bands, v: List[R]) -> List[R]:
    "The product of each band, one after another."
    match b:
        case Leaf(rows): return matvec(rows, v)
        case Node(l, r): return append(banded(l, v), banded(r, v))

@pure
def rows_of(b: Bands) -> List[List[R]]:
    "The rows of all bands."
    match b:
        case Leaf(rows): return rows
        case Node(l, r): return append(rows_of(l), rows_of(r))

@pure
def halved(n: Nat, b: Bands) -> bool:
    "Are n rows cut in halves all the way down?"
    match b:
        case Leaf(rows): return length(rows) == n
        case Node(l, r): return halved(half(n), l) and halved(sub(n, half(n)), r)


# %%
#| export
@law(induct='s')
def matvec_append(s: List[List[R]], t: List[List[R]], v: List[R]):
    "The product of rows put together is the products put together."
    return matvec(append(s, t), v) == append(matvec(s, v), matvec(t, v))

@law(induct='b', cite=[matvec_append])
def bands_are_rows(b: Bands, v: List[R]):
    "Any tree of bands gives what the whole matrix gives, in the same order of additions."
    return banded(b, v) == matvec(rows_of(b), v)

@law(induct='s')
def band_len(s: List[List[R]], v: List[R]):
    "A band of r rows gives r numbers."
    return length(matvec(s, v)) == length(s)

@law(induct='b', gen=['n'], cite=[band_len, length_append, half_cover.here(n='n')])
def exact_length(n: Nat, b: Bands, v: List[R]):
    "The banded product over the whole tree gives exactly n numbers."
    assert halved(n, b)
    return length(banded(b, v)) == n

@pure
def read_into(b: Bands, v: List[R], acc: List[R]) -> List[R]:
    "The product of the bands, put in front of what was read before."
    match b:
        case Leaf(rows): return append(matvec(rows, v), acc)
        case Node(l, r): return read_into(l, v, read_into(r, v, acc))

@law(induct='b', gen=['acc'], cite=[append_assoc])
def reader(b: Bands, v: List[R], acc: List[R]):
    "Reading into what was there is putting the product in front of it."
    return read_into(b, v, acc) == append(banded(b, v), acc)

@law(cite=[reader, length_append])
def leaf_len(b: Bands, v: List[R], acc: List[R]):
    "The reader adds exactly as many numbers as the bands give."
    return length(read_into(b, v, acc)) == add(length(banded(b, v)), length(acc))


# %% [markdown]
# ## Sizes
#
# `reshape` keeps the numbers and changes how they are counted off; that needs $r c$ to stay the same. A product has the rows of
# its left side and the columns of its right side, and distributes over addition.

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

@pure
def widths(c: Nat, a: List[List[R]]) -> bool:
    "Has every row c numbers?"
    match a:
        case Nil(): return True
        case Cons(r, rest): return length(r) == c and widths(c, rest)

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
# - Anything about floating-point numbers where a law rests on an axiom: `adjoint` does, `bands_are_rows` and the lengths do not.
# - That the fast loops compute these functions. The kernels' own contracts say so, for the sequential order.
