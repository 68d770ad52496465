# %%
#| default_exp tensor.lists

# %% [markdown]
# # Matrices as lists
# > What a matrix product is, said so simply that laws about it can be proved.

# %% [markdown]
# Before matrices are made fast, they are made plain. A vector is a list of numbers and a matrix a list of rows. On
# this page and the next three every function is a few lines that walk down a list, and every property that later pages rely on is
# proved about these lines, for all sizes: the product and its adjoint here, then [turning](40b_transpose.ipynb) a matrix,
# cutting it into [bands](40c_bands.ipynb), and [sizes](40d_sizes.ipynb).
#
# What is a number here? Anything that can be added and multiplied by the rules known from school. The laws hold for whole
# numbers, fractions, and real numbers. They do not all hold for floating-point numbers, where $(a + b) + c$ and
# $a + (b + c)$ may differ in the last digit; so it is said which rules a law rests on.

# %%
#| hide
#| export
from bendml.laws import Cons, List, Nil, abstract, axiom, law, prove, pure


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
# ## All of them

# %%
from bendml.laws import Law
for name, each in list(globals().items()):
    if isinstance(each, Law) and each.__doc__ and each.__module__ == __name__: print(f'{name:20} {prove(each).verdict:10} {each.__doc__}')

# %% [markdown]
# ## What this does not show
#
# - Anything about floating-point numbers where a law rests on an axiom, as `adjoint` does.
# - That the loops compute these functions: [lists and loops](40e_order.ipynb) does, for the sequential order.
