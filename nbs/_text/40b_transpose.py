# %%
#| default_exp tensor.transpose

# %% [markdown]
# # The transposed matrix
# > Rows become columns, and the product goes the other way.

# %% [markdown]
# A matrix is turned by putting each row in front of what is already turned, as a new column. Two things are worth knowing about
# it: turned twice, a matrix is what it was; and to take a vector through $W$ backwards is to multiply with the turned matrix, which
# is how a gradient finds its way back through a layer.

# %%
#| hide
#| export
from bendml.laws import Cons, List, Nil, law, prove, pure
from bendml.tensor.lists import R, a_zero, adjoint, dot, m_comm, matvec, scale, vadd, vecmat


# %% [markdown]
# ## Columns in front of columns

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


# %%
#| export
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


# %% [markdown]
# ## The adjoint, turned
#
# With the law `adjoint` of the page before: $\langle g, W v\rangle = \langle W^\top g, v\rangle$.

# %%
#| export
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


# %% [markdown]
# ## Turned twice

# %%
#| export
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
# ## All of them

# %%
from bendml.laws import Law
for name, each in list(globals().items()):
    if isinstance(each, Law) and each.__doc__ and each.__module__ == __name__: print(f'{name:20} {prove(each).verdict:10} {each.__doc__}')

# %% [markdown]
# ## What this does not show
#
# Both say something about matrices all of whose rows are equally long. Of other lists of rows they say nothing.
