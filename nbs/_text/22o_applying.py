# %%
#| default_exp shape.applying

# %% [markdown]
# # Functions of functions
# > `np.apply_along_axis(f, 1, x)`: what `f` does to one row says what becomes of all.

# %% [markdown]
# Some NumPy functions take a function and apply it to pieces of an array. The function is traced on one piece; a piece stands
# for all others, which have the same shape.

# %%
#| hide
#| export
from typing import Any, Callable

import numpy as np

from bendml.shape.sizes import Dim
from bendml.shape.facts import claim
from bendml.shape.trace import holds, refuse
from bendml.shape.symbols import METHODS, OPS, Array, Op, axis as axis_, entries, number, rule
from bendml.shape.ranges import copied, range_of, ranged, union
from bendml.shape.elementwise import broadcast, lift
from bendml.shape.reductions import _same_shape, axis_number
from bendml.shape.moves import expand_dims
from bendml.shape.indexing import _index_array, getitem, setitem


# %%
#| export
def _apply(f: Callable, *args: Any, **kwargs: Any) -> Any:
    "What a function makes of symbolic arguments."
    return OPS['call'].shape(f, *args, **kwargs)


# %%
#| export
def _some(size: Dim, what: str) -> None:
    "Refuse where there may be no piece to apply the function to."
    if not (verdict := holds(claim(size, '>=', 1))).holds: refuse(f'{what} of nothing', f'{size} >= 1', size, verdict=verdict)


# %% [markdown]
# ## Rows

# %%
#| export
@rule(np.apply_along_axis)
def apply_along_axis(func1d, axis, arr, *args, **kwargs):
    x = lift(arr, 2)
    i = axis_number(axis, x.ndim)
    others = (*x.axes[:i], *x.axes[i + 1:])
    _some(entries(Array(others)), 'rows')
    made = lift(_apply(func1d, copied(x, Array((x.axes[i],), x.dtype)), *args, **kwargs))
    return Array((*x.axes[:i], *made.axes, *x.axes[i + 1:]), made.dtype)


# %%
#| export
@rule(np.apply_over_axes)
def apply_over_axes(func, a, axes):
    x = lift(a, 1)
    for i in axes if isinstance(axes, tuple | list) else (axes,):
        k = axis_number(i, x.ndim)
        made = lift(_apply(func, x, k))
        if made.ndim == x.ndim - 1: made = expand_dims(made, k)
        if made.ndim != x.ndim: refuse('the function returns another number of axes', f'{x.ndim} axes, or {x.ndim - 1}', made, operand=0)
        x = made
    return x


# %% [markdown]
# ## Entries
#
# `np.vectorize` looks at the first result to find the dtype; so it must have one, unless it is told.

# %%
#| export
@rule('vectorize')
def vectorize(v, *args, **kwargs):
    if v.signature is not None or v.excluded: refuse('np.vectorize with signature= or excluded=', hint='loop over the rows, or give the function a rule: @rule')
    arrays = [lift(a, i) for i, a in enumerate(args)] + [lift(a) for a in kwargs.values()]
    axes = arrays[0].axes if arrays else ()
    for i, x in enumerate(arrays[1:], 1): axes = broadcast(Array(axes), x, 0, i)
    if v.otypes is None: _some(entries(Array(axes)), 'entries')
    one = [copied(x, number(x.dtype)) for x in arrays]
    made = _apply(v.pyfunc, *one[:len(args)], **dict(zip(kwargs, one[len(args):])))
    results = [Array(axes, _entry(m, i, v.otypes)) for i, m in enumerate(made if isinstance(made, tuple) else (made,))]
    return tuple(results) if isinstance(made, tuple) else results[0]


# %%
#| export
def _entry(made: Any, i: int, otypes: str | None) -> np.dtype:
    x = lift(made)
    if x.axes: refuse('the function returns an array for one entry', 'a number', x, 'np.apply_along_axis, or a loop over the rows')
    return np.dtype(otypes[i]) if otypes else x.dtype


# %%
#| export
@rule(np.fromfunction)
def fromfunction(function, shape, *, dtype=float, like=None, **kwargs):
    places = OPS[np.indices].shape(shape, dtype)
    return _apply(function, *(places[i] for i in range(len(shape))), **kwargs)


# %% [markdown]
# ## One of several
#
# Where a condition holds, a function of what is there, or a number.

# %%
#| export
@rule(np.piecewise)
def piecewise(x, condlist, funclist, *args, **kw):
    x = lift(x)
    if not isinstance(condlist, list | tuple): condlist = [condlist]
    conditions = [lift(c) for c in condlist]
    if len(funclist) not in (len(conditions), len(conditions) + 1):
        refuse('a function for each condition, and perhaps one for the rest', len(conditions), len(funclist), operand=2)
    if len(funclist) > len(conditions): conditions.append(Array(x.axes, bool))
    made = copied(x, Array(x.axes, x.dtype))
    for c, f in zip(conditions, funclist):
        _same_shape(x, c)
        if c.dtype != bool: refuse(f'a condition of {c.dtype}', 'truth values', c, operand=1)
        value = _apply(f, getitem(x, c), *args, **kw) if callable(f) else f
        if x.axes: setitem(made, c, value)
        elif lift(value).ndim > 1: refuse('the function returns an array for a number', 'a number', lift(value), operand=2)
    return ranged(made, union(range_of(made), ranged(number(x.dtype), range_of(0)).known.range)) if x.dtype.kind in 'iu' else made


# %%
#| export
@rule(np.choose)
def choose(a, choices, out=None, mode='raise'):
    which = lift(a)
    choices = [lift(c) for c in (choices if isinstance(choices, list | tuple) else _rows(choices))]
    if which.dtype.kind not in 'iub': refuse(f'a choice by {which.dtype}', 'whole numbers', which, operand=0)
    if mode == 'raise': _known_choice(which, len(choices))
    axes = which.axes
    for c in choices: axes = broadcast(Array(axes), c)
    result = Array(axes, np.result_type(*(c.dtype for c in choices)))
    if out is not None: refuse('out= has no rule here')
    for c in choices: result = ranged(result, union(range_of(result), range_of(c)) if result.known else range_of(c))
    return result


# %%
#| export
METHODS['choose'] = np.choose

def _known_choice(which: Array, count: int) -> None:
    r = range_of(which)
    if which.dtype != bool and r.low is not None and not holds(claim(r.low, '>=', 0)).holds: refuse('a choice below 0', '0 or more', r, operand=0)
    _index_array(axis_(count), which if which.dtype != bool else ranged(Array(which.axes, np.int64), r))

def _rows(x: Any) -> list:
    y = lift(x)
    if not y.axes or y.axes[0].size.const is None: refuse('an unknown number of choices', 'a list of arrays', y, operand=1)
    return [y[i] for i in range(y.axes[0].size.const)]


# %%
from bendml.shape.trace import Trace, tracing
n, m = map(Dim, 'nm')
with tracing(Trace()):
    x = Array([axis_(n), axis_(m)])
    OPS['call'] = Op('call', lambda f, *args: f(*args))  # the real one, which traces it, comes with calls
    print(np.apply_along_axis(np.diff, 1, x[:, :1]), np.apply_over_axes(np.sum, x, [0, 1]), np.fromfunction(lambda i, j: i + j, (3, 4)).shape)

# %% [markdown]
# ## What this does not show
#
# That a function gives the same for every piece is taken for granted: one whose result's shape depends on the numbers in a row
# gives a size that nobody has named, and it is the same one for every row, as NumPy demands.
