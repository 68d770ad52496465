# %%
#| default_exp shape.matrices

# %% [markdown]
# # Matrices
# > Inverses, equations, decompositions: what needs to be square, and what comes out.

# %%
#| hide
#| export
from typing import Any

import numpy as np

from bendml.shape.sizes import Dim
from bendml.shape.facts import claim
from bendml.shape.annotations import spelled
from bendml.shape.trace import branch, holds, refuse
from bendml.shape.symbols import METHODS, OPS, RULE, Array, Axis, all_read, as_dim, axis, number, rule
from bendml.shape.ranges import unknown
from bendml.shape.elementwise import asked, broadcast, dtypes, elementwise, filled, lift, same
from bendml.shape.reductions import axis_numbers, may_reduce, reduced
from bendml.shape.products import apart, matmul


# %% [markdown]
# ## Square matrices
#
# Functions of the last two axes. Most of them need as many rows as columns.

# %%
#| export
def square(x: Array) -> Axis:
    "The size of a square matrix; refused if it need not be square."
    if x.ndim < 2: refuse('a matrix is needed', 'Mat<n, n>', x, operand=0)
    if not (verdict := same(x.axes[-2].size, x.axes[-1].size)).holds:
        refuse('a square matrix is needed', spelled((*x.sizes[:-2], x.sizes[-2], x.sizes[-2])), x, verdict=verdict, operand=0)
    return x.axes[-1]


# %%
#| export
def _real(x: Array) -> np.dtype: return dtypes(np.true_divide, [x, 1.0])[0]

def _magnitude(x: Array) -> np.dtype: return dtypes(np.absolute, [Array(x.axes, _real(x))])[0]


# %%
#| export
@rule(np.linalg.inv, np.linalg.cholesky)
def inv(a, **_):
    x = lift(a)
    square(x)
    return Array(x.axes, _real(x))


# %%
#| export
@rule(np.linalg.matrix_power)
def matrix_power(a, n):
    if as_dim(n) is None: refuse('a power that is no whole number', 'a whole number', n, operand=1)
    return inv(a)


# %%
#| export
@rule(np.linalg.det)
def det(a):
    x = lift(a)
    square(x)
    return Array(x.axes[:-2], _real(x))


# %%
#| export
@rule(np.linalg.slogdet)
def slogdet(a): return det(a), Array(det(a).axes, _magnitude(lift(a)))


# %%
#| export
@rule(np.linalg.eigh)
def eigh(a, UPLO='L'):
    x = lift(a)
    n = square(x)
    return Array((*x.axes[:-2], axis(n.size)), _magnitude(x)), Array((*x.axes[:-1], axis(n.size)), _real(x))


# %%
#| export
@rule(np.linalg.eigvalsh)
def eigvalsh(a, UPLO='L'): return eigh(a)[0]


# %%
#| export
@rule(np.linalg.solve)
def solve(a, b):
    x, y = lift(a), lift(b)
    n = square(x)
    i = 0 if y.ndim == 1 else -2
    if not (verdict := same(n.size, y.axes[i].size)).holds:
        refuse('as many rows on the right as there are equations', n.size, y.axes[i].size, verdict=verdict, operand=1)
    batch = broadcast(Array(x.axes[:-2]), Array(y.axes[:-2])) if y.ndim > 1 else x.axes[:-2]
    return Array((*batch, x.axes[-1], *(y.axes[-1:] if y.ndim > 1 else ())), dtypes(np.true_divide, [x, y])[0])


# %%
#| export
@rule(np.linalg.pinv)
def pinv(a, *_, **__):
    x = lift(a)
    return Array((*x.axes[:-2], x.axes[-1], x.axes[-2]), _real(x))


# %%
#| export
@rule(np.linalg.norm)
def norm(x, ord=None, axis=None, keepdims=False):
    asked(np.linalg.norm, lift(x), ord, axis)
    if ord in (np.inf, -np.inf, 1, -1, 2, -2): reduced(lift(x), axis, needs_one=True)
    return OPS[np.sum].shape(elementwise(np.absolute, [lift(x)*1.0]), axis, keepdims=keepdims)

@rule(np.linalg.matrix_rank)
def matrix_rank(a, *_, **__): return Array(lift(a).axes[:-2], int)


# %%
#| export
@rule(np.linalg.lstsq)
def lstsq(a, b, rcond=None):
    x, y = lift(a), lift(b)
    asked(np.linalg.lstsq, x, y)
    if not (verdict := same(x.axes[0].size, y.axes[0].size)).holds:
        refuse('as many rows on both sides', x.axes[0].size, y.axes[0].size, verdict=verdict, operand=1)
    return Array((x.axes[1], *y.axes[1:])), Array((unknown('r'),)), number(int), Array((lesser(x.axes[0], x.axes[1]),))


# %%
#| export
@rule(np.linalg.multi_dot)
def multi_dot(arrays, *, out=None):
    ends = (1, 2)
    for i, a in enumerate(arrays):
        if lift(a).ndim not in (ends if i in (0, len(arrays) - 1) else (2,)): refuse(f'part {i} has {lift(a).ndim} axes', 'matrices, with vectors at the ends', a, operand=0)
    if len(arrays) < 2: refuse('a product of fewer than two', 'at least two', len(arrays), operand=0)
    product = arrays[0]
    for a in arrays[1:]: product = matmul(product, a)
    return filled(product, out)


# %% [markdown]
# SciPy's functions of the same name do the same to shapes.

# %%
#| export
OPTIONS = {'check_finite', 'overwrite_a', 'overwrite_b', 'lapack_driver', 'assume_a', 'lower', 'unit_diagonal', 'cond', 'rcond'}

def _as_in_scipy(name: str, f: Any) -> None:
    @rule(f'scipy.linalg.{name}')
    def same_shape(*args, **kwargs):
        options = {k: v for k, v in kwargs.items() if k not in OPTIONS}
        all_read(name, OPS[f].shape, options)
        if f is np.linalg.solve and lift(args[1]).ndim > 2: refuse(f'a right side with {lift(args[1]).ndim} axes', 'one axis, or two', lift(args[1]), operand=1)
        return OPS[f].shape(*args, **options)


# %%
#| export
for _name in 'inv det cholesky solve norm pinv svd svdvals'.split(): _as_in_scipy(_name, getattr(np.linalg, _name))
_as_in_scipy('solve_triangular', np.linalg.solve)
for _name in 'expm logm sqrtm'.split(): _as_in_scipy(_name, np.linalg.inv)

@rule('scipy.linalg.eigh')
def scipy_eigh(a, b=None, *, lower=True, eigvals_only=False, overwrite_a=False, overwrite_b=False, check_finite=True):
    if b is not None and not (verdict := same(square(lift(a)).size, square(lift(b)).size)).holds:
        refuse('both matrices have one size', lift(a), lift(b), verdict=verdict, operand=1)
    values, vectors = eigh(a)
    return values if eigvals_only else (values, vectors)

@rule('scipy.linalg.eigvalsh')
def scipy_eigvalsh(a, b=None, **more): return scipy_eigh(a, b, eigvals_only=True, **more)


# %%
#| export
@rule('scipy.special.softmax', 'scipy.special.log_softmax')
def softmax(x, axis=None):
    a = lift(x)
    for i in axis_numbers(axis, a.ndim): may_reduce(a, i)
    dtypes(np.subtract, [a, a])
    return Array(a.axes, _real(a))

@rule('scipy.special.logsumexp')
def logsumexp(a, axis=None, b=None, keepdims=False, return_sign=False):
    x = lift(a)
    if b is not None: x = Array(broadcast(x, lift(b)), x.dtype)
    result = reduced(x, axis, keepdims, _real(x))
    return (result, result) if return_sign else result


# %% [markdown]
# The thin factorisations have as many columns as the smaller side; which one that is may depend on the sizes, and then there
# is a path for each.

# %%
#| export
def lesser(a: Axis, b: Axis) -> Axis:
    "The smaller of two axes; one path for each answer."
    return axis(a.size if branch(claim(a.size, '<=', b.size)) else b.size)


# %%
#| export
@rule(np.linalg.svd)
def svd(a, full_matrices=True, compute_uv=True, hermitian=False):
    x = lift(a)
    if hermitian: square(x)
    m, n, k = x.axes[-2], x.axes[-1], lesser(x.axes[-2], x.axes[-1])
    s = Array((*x.axes[:-2], k), _magnitude(x))
    if not compute_uv: return s
    left, right = ((m.size, n.size) if full_matrices else (k.size, k.size))
    return Array((*x.axes[:-1], axis(left)), _real(x)), s, Array((*x.axes[:-2], axis(right), n), _real(x))


# %%
#| export
@rule(np.linalg.svdvals)
def svdvals(x): return svd(x, compute_uv=False)


# %%
#| export
@rule(np.linalg.qr)
def qr(a, mode='reduced'):
    x = lift(a)
    if mode == 'r': return qr(a)[1]
    k = {'reduced': lambda: lesser(x.axes[-2], x.axes[-1]), 'complete': lambda: axis(x.axes[-2].size)}[mode]()
    return Array((*x.axes[:-1], k), _real(x)), Array((*x.axes[:-2], k, x.axes[-1]), _real(x))


# %%
#| export
@rule(np.cov, np.corrcoef)
def cov(m, y=None, rowvar=True, *_, **more):
    x = lift(m)
    if x.ndim > 2: refuse('at most two axes', 'Mat<m, n>', x, operand=0)
    if more.keys() & {'fweights', 'aweights'}: refuse('weights have no rule', hint=RULE)
    if y is not None: x, rowvar = OPS[np.vstack].shape([v if rowvar or v.ndim < 2 else OPS[np.transpose].shape(v) for v in (x, lift(y))]), True
    kind = np.result_type(x.dtype, float)
    if x.ndim < 2: return number(kind)
    n = x.axes[0 if rowvar else 1]
    may_reduce(x, 1 if rowvar else 0)
    if not (verdict := holds(claim(n.size, '!=', 1))).holds:
        refuse(f'the number of axes of the result depends on {n.size}', f'{n.size} != 1', x,
               'np.atleast_2d of the result, with where=', verdict, 0)
    return Array((n, apart((n,), n)), kind)


# %%
#| export
@rule(np.trace)
def trace(a, offset=0, axis1=0, axis2=1, dtype=None, out=None):
    x = lift(a)
    gone = axis_numbers((axis1, axis2), x.ndim)
    return filled(Array((b for i, b in enumerate(x.axes) if i not in gone), dtype or dtypes(np.sum, [Array((Axis(Dim(1)),), x.dtype)])[0]), out)


# %%
#| export
METHODS['trace'] = np.trace

# %%
from bendml.shape.trace import Trace, tracing
from bendml.shape.messages import ShapeError
n, m = Dim('n'), Dim('m')
with tracing(Trace()):
    x, square_one = Array(map(axis, (n, m))), Array(map(axis, (n, n)))
    print(*np.linalg.svd(x, full_matrices=False), np.linalg.solve(square_one, x))
    try: np.linalg.inv(x)
    except ShapeError as e: print(e)

# %% [markdown]
# ## What this does not show
#
# That a matrix has an inverse, that a system can be solved: those depend on numbers.
