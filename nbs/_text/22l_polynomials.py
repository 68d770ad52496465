# %%
#| default_exp shape.polynomials

# %% [markdown]
# # Polynomials
# > A polynomial is a row of coefficients, one more than its degree.

# %%
#| hide
#| export
from typing import Any

import numpy as np

from bendml.shape.sizes import Dim
from bendml.shape.facts import claim
from bendml.shape.trace import branch, holds, refuse
from bendml.shape.symbols import Array, as_dim, axis, number, rule
from bendml.shape.ranges import unknown
from bendml.shape.elementwise import dtypes, lift, same, stored
from bendml.shape.reductions import not_empty
from bendml.shape.matrices import square
from bendml.shape.searching import some


# %%
#| export
def _row(p: Any, operand: int = 0) -> Array:
    "Coefficients: one axis."
    x = lift(p, operand)
    if x.ndim != 1: refuse('coefficients have one axis', 'Vec<n>', x, operand=operand)
    return x


# %% [markdown]
# ## Fitting and evaluating

# %%
#| export
@rule(np.polyfit)
def polyfit(x, y, deg, rcond=None, full=False, w=None, cov=False):
    at, values = _row(x), lift(y, 1)
    if values.ndim not in (1, 2): refuse('one or two axes are needed', 'Vec<n> or Mat<n, k>', values, operand=1)
    not_empty([at.axes[0].size], at)
    for operand, v in ((1, values), (5, lift(w) if w is not None else at)):
        if not (verdict := same(at.axes[0].size, v.axes[0].size)).holds:
            refuse('as many values as places', at.axes[0].size, v.axes[0].size, verdict=verdict, operand=operand)
    if (degree := as_dim(deg)) is None: refuse(f'the degree is {deg!r}', 'a whole number', deg, operand=2)
    if not (verdict := holds(claim(degree, '>=', 0))).holds: refuse(f'degree {degree} can be negative', f'{degree} >= 0', degree, verdict=verdict, operand=2)
    n, kind = axis(degree + 1), dtypes(np.true_divide, [values, at])[0]
    found = Array((n, *values.axes[1:]), kind)
    if full: return found, Array((unknown('r'),), kind), number(np.int32), Array((n,), kind), number()
    return (found, _spread(at.axes[0].size, n, values, kind, cov)) if cov else found


# %%
#| export
def _spread(points: Dim, n: Any, values: Array, kind: np.dtype, cov: Any) -> Array:
    if cov != 'unscaled' and not (verdict := holds(claim(points, '>', n.size))).holds:
        refuse(f'{points} points say nothing about the error of {n.size} coefficients', f'{points} > {n.size}', points, verdict=verdict, operand=0)
    return Array((n, axis(n.size), *values.axes[1:]), kind)


# %%
#| export
@rule(np.polyval)
def polyval(p, x): return Array(lift(x).axes, dtypes(np.multiply, [_row(p), lift(x)])[0])


# %% [markdown]
# ## Arithmetic
#
# A product drops leading zeros, a quotient has a remainder of some size: only the numbers know how many coefficients are
# left.

# %%
#| export
def longer(a: Dim, b: Dim) -> Dim:
    "The larger of two sizes; one path for each answer."
    return a if branch(claim(a, '>=', b)) else b

@rule(np.polyadd, np.polysub)
def polyadd(a1, a2):
    p, q = _row(a1, 0), _row(a2, 1)
    return Array((axis(longer(p.axes[0].size, q.axes[0].size)),), dtypes(np.add, [p, q])[0])


# %%
#| export
@rule(np.polymul)
def polymul(a1, a2):
    p, q = _row(a1, 0), _row(a2, 1)
    n, m = (longer(x.axes[0].size, Dim(1)) for x in (p, q))  # no coefficient is the coefficient 0
    return Array((some(n + m - 1, 1),), dtypes(np.multiply, [p, q])[0])


# %%
#| export
@rule(np.polydiv)
def polydiv(u, v):
    p, q = _row(u, 0), _row(v, 1)
    for x in (p, q): not_empty([x.axes[0].size], x)
    kind = dtypes(np.true_divide, [p, q])[0]
    return Array((axis(longer(p.axes[0].size - q.axes[0].size + 1, Dim(1))),), kind), Array((some(p.axes[0].size, 1),), kind)


# %%
#| export
@rule(np.polyder)
def polyder(p, m=1):
    x, size = _row(p), _row(p).axes[0].size - _times(m)
    return Array((axis(size if branch(claim(size, '>=', 0)) else 0),), dtypes(np.multiply, [x, 1])[0])

@rule(np.polyint)
def polyint(p, m=1, k=None):
    if k is not None and lift(k).axes and not same(lift(k).axes[0].size, Dim(_times(m))).holds:
        refuse('a constant for each time that it is integrated', m, lift(k), operand=2)
    return Array((axis(_row(p).axes[0].size + _times(m)),), dtypes(np.true_divide, [_row(p), 1])[0])


# %%
#| export
def _times(m: Any) -> int:
    if not isinstance(m, int) or type(m) is not int or m < 1: refuse(f'{m!r} times', 'a number from 1', m, operand=1)
    return m


# %% [markdown]
# ## Roots
#
# A polynomial of n coefficients has up to n - 1 roots; n roots make one of n + 1 coefficients.

# %%
#| export
@rule(np.roots)
def roots(p):
    size = _row(p).axes[0].size - 1
    return Array((some(size) if branch(claim(size, '>=', 0)) else axis(0),), np.complex128)

@rule(np.poly)
def poly(seq_of_zeros):
    x = lift(seq_of_zeros)
    n = square(x).size if x.ndim == 2 else _row(x).axes[0].size
    not_empty([n], x)
    return Array((axis(n + 1),), dtypes(np.multiply, [x, 1.0])[0])


# %%
from bendml.shape.trace import Trace, tracing
from bendml.shape.messages import ShapeError
n, m = map(Dim, 'nm')
with tracing(Trace()):
    x, y = Array([axis(n)]), Array([axis(n)])
    print(np.polyfit(x, y, 2), np.polyval(np.polyfit(x, y, 2), x), np.polyder(np.polyfit(x, y, 3)), np.polymul(x, y))
    try: np.polyfit(x[1:], y, 2)
    except ShapeError as e: print(e)

# %% [markdown]
# ## What this does not show
#
# The classes of `numpy.polynomial` keep their coefficients inside, and have no rules. An `np.poly1d` of known numbers
# can be called; of an array it has none either.
