# %%
#| default_exp shape.linear

# %% [markdown]
# # More linear algebra
# > Eigenvalues, condition, norms, tensor equations, and products along the last axis.

# %%
#| hide
#| export
from functools import lru_cache
from typing import Any, Callable

import numpy as np

from bendml.shape.sizes import Dim
from bendml.shape.annotations import spelled
from bendml.shape.facts import claim
from bendml.shape.trace import holds, refuse
from bendml.shape.symbols import OPS, Array, axis, axis as axis_, rule
from bendml.shape.elementwise import broadcast, dtypes, elementwise, filled, lift, same
from bendml.shape.reductions import axis_number, axis_numbers, not_empty
from bendml.shape.products import meet
from bendml.shape.matrices import _magnitude, _real, square


# %% [markdown]
# ## Eigenvalues
#
# NumPy returns real numbers if all of them are, so their dtype depends on the numbers; here they are complex.

# %%
#| export
@rule(np.linalg.eigvals)
def eigvals(a):
    x = lift(a)
    return Array((*x.axes[:-2], axis(square(x).size)), np.complex128)

@rule(np.linalg.eig)
def eig(a): return eigvals(a), Array((*lift(a).axes[:-1], axis(lift(a).axes[-1].size)), np.complex128)

@rule('scipy.linalg.eig')
def scipy_eig(a, *_, **__): return eig(a)

@rule('scipy.linalg.eigvals')
def scipy_eigvals(a, *_, **__): return eigvals(a)


# %% [markdown]
# What NumPy returns under names can be taken by these names: `np.linalg.svd(x).S`.

# %%
#| export
@lru_cache
def _record(f: Callable) -> type: return type(f(np.eye(1)))

def _with_names(f: Callable) -> None:
    shape = OPS[f].shape
    @rule(f)
    def named(*args, **kwargs):
        made = shape(*args, **kwargs)
        return _record(f)(*made) if isinstance(made, tuple) else made

for _f in (np.linalg.eig, np.linalg.eigh, np.linalg.svd, np.linalg.qr, np.linalg.slogdet): _with_names(_f)


# %% [markdown]
# ## One number of a matrix

# %%
#| export
@rule(np.linalg.cond)
def cond(x, p=None):
    m = lift(x)
    if m.ndim < 2: refuse('a matrix is needed', 'Mat<m, n>', m, operand=0)
    if p not in (None, 2, -2): square(m)
    not_empty([a.size for a in m.axes], m)
    return Array(m.axes[:-2], _magnitude(m))


# %% [markdown]
# ## Tensor equations

# %%
#| export
def _as_many(left: tuple, right: tuple, x: Array) -> None:
    products = []
    for axes in (left, right):
        product = Dim(1)
        for a in axes: product = product*a.size
        products.append(product)
    if not (verdict := same(*products)).holds: refuse(f'{products[0]} equations for {products[1]} unknowns', products[1], products[0], verdict=verdict, operand=0)

@rule(np.linalg.tensorinv)
def tensorinv(a, ind=2):
    x = lift(a)
    if type(ind) is not int or not 0 < ind <= x.ndim: refuse(f'ind={ind!r}', f'1 to {x.ndim}', ind, operand=1)
    _as_many(x.axes[:ind], x.axes[ind:], x)
    for size in x.sizes[ind:]:
        if not (verdict := holds(claim(size, '>=', 1))).holds: refuse('there may be nothing to invert', f'{size} >= 1', x, verdict=verdict, operand=0)
    return Array(map(axis, (*x.sizes[ind:], *x.sizes[:ind])), _real(x))


# %%
#| export
@rule(np.linalg.tensorsolve)
def tensorsolve(a, b, axes=None):
    x, y = lift(a), lift(b)
    if axes is not None:
        last = axis_numbers(axes, x.ndim)
        x = Array((*(v for i, v in enumerate(x.axes) if i not in last), *(x.axes[i] for i in last)), x.dtype)
    if y.ndim > x.ndim: refuse('more axes on the right than on the left', x, y, operand=1)
    unknowns = x.axes[y.ndim:]
    _as_many(x.axes[:y.ndim], unknowns, x)
    for v, w in zip(x.axes, y.axes):
        if not (verdict := same(v.size, w.size)).holds: refuse('the sides differ', spelled(x.sizes[:y.ndim]), y, verdict=verdict, operand=1)
    return Array(map(axis, (v.size for v in unknowns)), dtypes(np.true_divide, [x, y])[0])


# %% [markdown]
# ## NumPy 2's names
#
# Products along the last axis, and what others call a function of `np.linalg`.

# %%
#| export
def _newer(name: str, shape: Any, places: tuple = (np, np.linalg)) -> None:
    "The rule of a function that older versions of NumPy lack."
    for f in {getattr(p, name) for p in places if hasattr(p, name)}: rule(f)(shape)


# %%
#| export
def _vecdot(x1, x2, /, out=None, *, axis=-1, dtype=None, **_):
    x, y = lift(x1), lift(x2)
    if not x.axes or not y.axes: refuse('vectors are needed', 'at least one axis', 'a number', operand=0 if not x.axes else 1)
    i, j = axis_number(axis, x.ndim), axis_number(axis, y.ndim)
    if not (verdict := same(x.axes[i].size, y.axes[j].size)).holds: refuse('the vectors have different lengths', x, y, verdict=verdict, operand=1)
    meet(x.axes[i], y.axes[j], x, y)
    axes = broadcast(*(Array((*v.axes[:k], *v.axes[k + 1:])) for v, k in ((x, i), (y, j))))
    return filled(Array(axes, dtype or dtypes(np.multiply, [Array((axis_(1),), v.dtype) for v in (x, y)])[0]), out)

_newer('vecdot', _vecdot)


# %%
#| export
def _enough(matrix: Array, vector: Array) -> None:
    if matrix.ndim < 2 or not vector.axes: refuse('a matrix and a vector are needed', 'Mat<m, n>, Vec<n>', f'{matrix}, {vector}')

def _matvec(x1, x2, /, out=None, **_):
    v = lift(x2, 1)
    _enough(lift(x1), v)
    y = OPS[np.matmul].shape(x1, v[..., None] if v.ndim > 1 else v)
    return filled(y[..., 0] if v.ndim > 1 else y, out)

def _vecmat(x1, x2, /, out=None, **_):
    v = lift(x1, 0)
    _enough(lift(x2), v)
    y = OPS[np.matmul].shape(v[..., None, :] if v.ndim > 1 else v, x2)
    return filled(y[..., 0, :] if v.ndim > 1 else y, out)

_newer('matvec', _matvec)
_newer('vecmat', _vecmat)


# %%
#| export
def _the_same(name: str, f: Callable, change: Callable = lambda *args, **kwargs: (args, kwargs)) -> None:
    def same_shape(*args, **kwargs):
        args, kwargs = change(*args, **kwargs)
        return OPS[f].shape(*args, **kwargs)
    _newer(name, same_shape, (np.linalg,))

def _last_two(x, /, *, offset=0, **kwargs): return (x, offset, -2, -1), kwargs

for _name in ('matmul', 'tensordot', 'cross', 'matrix_transpose'): _the_same(_name, getattr(np, _name))
for _name in ('trace', 'diagonal'): _the_same(_name, getattr(np, _name), _last_two)
_the_same('matrix_norm', np.linalg.norm, lambda x, /, *, keepdims=False, ord='fro': ((x, ord, (-2, -1), keepdims), {}))


# %%
#| export
def _outer(x1, x2, /):
    for i, x in enumerate((x1, x2)):
        if lift(x).ndim != 1: refuse('one axis is needed', 'Vec<n>', lift(x), operand=i)
    return OPS[np.outer].shape(x1, x2)

_newer('outer', _outer, (np.linalg,))
_newer('vector_norm', lambda x, /, *, axis=None, keepdims=False, ord=2: OPS[np.sum].shape(elementwise(np.absolute, [lift(x)*1.0]), axis, keepdims=keepdims),
       (np.linalg,))

# %%
from bendml.shape.trace import Trace, tracing
from bendml.shape.messages import ShapeError
n, m = map(Dim, 'nm')
with tracing(Trace()):
    a, x = Array([axis(n), axis(n)]), Array([axis(n), axis(m)])
    print(np.linalg.eig(a).eigenvalues, np.linalg.cond(x), np.linalg.svd(a).S, np.linalg.vector_norm(x, axis=-1), np.linalg.matrix_norm(x))
    try: np.linalg.eig(x)
    except ShapeError as e: print(e)

# %% [markdown]
# ## What this does not show
#
# Eigenvalues that happen to be real are real numbers in NumPy; a step that needs them to be complex, or must not have them so,
# is not told from the other.
