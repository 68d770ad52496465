# %%
#| default_exp shape.reductions

# %% [markdown]
# # Reductions
# > Sums, means, maxima: which axis is lost, which must not be, and which must not be empty.

# %%
#| hide
#| export
from typing import Any

import numpy as np

from bendml.shape.sizes import Dim
from bendml.shape.facts import claim
from bendml.shape.trace import add_where, branch, current, holds, refuse
from bendml.shape.symbols import METHODS, OPS, Array, Axis, as_dim, axis, entries, inherit, rule
from bendml.shape.ranges import (UNBOUNDED, Range, bounded, computed, copied, from_to, meaning, picked, range_of, ranged, summed,
                                 union, view, written)
from bendml.shape.elementwise import asked, chosen, dtypes, elementwise, filled, lift, same, stored


# %% [markdown]
# ## Which axis
#
# An axis number counts from the front or from the back. Python's own rule: `-1` is the last.

# %%
#| export
def axis_number(number: Any, ndim: int, operand: int = 1) -> int:
    "An axis number from 0 to ndim - 1."
    dim = as_dim(number)
    if dim is None or dim.const is None: refuse(f'the axis is {number!r}', 'a known whole number', number)
    if not -ndim <= dim.const < ndim:
        refuse(f'axis {dim.const} of an array with {ndim} axes', f'{-ndim} to {ndim - 1}', dim.const, operand=operand)
    return dim.const % ndim


# %%
#| export
def axis_numbers(numbers: Any, ndim: int) -> tuple[int, ...]:
    "One axis, several, or None: all of them."
    if numbers is None: return tuple(range(ndim))
    found = tuple(axis_number(n, ndim) for n in (numbers if isinstance(numbers, tuple | list) else (numbers,)))
    if len(set(found)) < len(found): refuse('the same axis twice', 'different axes', numbers)
    return found


# %% [markdown]
# ## The shape of a reduction
#
# An axis that `keep=` names (the batch of a forward pass, say) may not be reduced over, by its identity rather than its
# position.

# %%
#| export
def reduced(x: Array, numbers: Any, keepdims: Any = False, dtype: Any = float, needs_one: bool = False) -> Array:
    "The array without the axes that are reduced over, or with size 1 there."
    gone = axis_numbers(numbers, x.ndim)
    for i in gone: may_reduce(x, i)
    if needs_one: not_empty([x.axes[i].size for i in gone] if numbers is not None else [entries(x)], x)
    if keepdims: return Array((axis(1, one='kept') if i in gone else a for i, a in enumerate(x.axes)), dtype)
    lost = ()
    if len(gone) == 1:
        at = ', '.join([':']*gone[0] + ['None'] + [':']*(x.ndim - gone[0] - 1))
        lost = (gone[0] - x.ndim, f'[{at if gone[0] < x.ndim - 1 else "..., None"}] after it')
    return Array((a for i, a in enumerate(x.axes) if i not in gone), dtype, lost)


# %%
#| export
def may_reduce(x: Array, i: int) -> None:
    "Refuse to sum, average or run along an axis that `keep=` names."
    name = current().state.get('kept', {}).get(x.axes[i].id)
    if name:
        refuse(f'reduces over axis {i - x.ndim}, which is {name}: keep={name!r} says that nothing may',
               hint='is the axis number right?')


# %%
#| export
def not_empty(sizes: list[Dim], x: Array) -> None:
    "Refuse where there may be nothing to take the maximum of."
    for size in sizes:
        verdict = holds(claim(size, '>=', 1))
        if not verdict.holds:
            refuse(f'{size} can be 0, and then there is nothing to choose from', f'{size} >= 1', x,
                   'guard it: if x.size == 0: ...', verdict, 0)


# %%
#| export
def _reduction(*functions, needs_one=False, as_dtype=None):
    for f in functions:
        @rule(f)
        def reduce(a, axis=None, dtype=None, out=None, keepdims=False, *, f=f, where=None, **_):
            x = lift(a)
            if where is not None and where is not True: chosen(x, where)
            kind = dtype or as_dtype or dtypes(f, [Array((Axis(Dim(1)),), x.dtype)])[0]
            if f is np.any and axis is None and x.dtype == bool and x.axes and out is None and not keepdims and where is None:
                return meaning(reduced(x, None, dtype=bool), claim(picked(x).size, '>=', 1))
            result = reduced(x, axis, keepdims, kind, needs_one and _.get('initial') is None)
            return filled(_summed(f, x, axis, result) if where is None and 'initial' not in _ else result, out)


# %%
#| export
def _sums(f: Any, x: Array, axis: Any) -> Range:
    "The range of the sums along an axis."
    if f not in (np.sum, np.nansum, np.cumsum): return UNBOUNDED
    if f is np.sum and x.dtype == bool and axis is None and x.axes: return from_to(k := picked(x).size, k)
    count = entries(x) if axis is None else entries(Array(x.axes[i] for i in axis_numbers(axis, x.ndim)))
    return summed(x, count)

def _summed(f: Any, x: Array, axis: Any, result: Array) -> Array:
    r = _sums(f, x, axis)
    exact = r.low is not None and r.low == r.high
    return ranged(result, r if exact or r == UNBOUNDED else union(r, from_to(0, 0)))  # the sum of nothing is 0


# %%
#| export
_reduction(np.sum, np.prod, np.mean, np.std, np.var, np.nansum, np.nanprod, np.nanmean, np.nanstd, np.nanvar)
_reduction(np.any, np.all, as_dtype=bool)


# %% [markdown]
# The maximum has no `dtype` parameter, so its second positional argument after the axis is `out`.

# %%
#| export
def _choosing(*functions, as_dtype=None, needs_one=True):
    for f in functions:
        @rule(f)
        def choose(a, axis=None, out=None, keepdims=False, *, initial=None, where=None, f=f, **_):
            x = lift(a)
            if where is not None and where is not True:
                if initial is None: refuse('where= may leave nothing to choose from', 'initial=', 'none', 'write initial=...')
                chosen(x, where)
            kind = as_dtype or dtypes(f, [Array((Axis(Dim(1)),), x.dtype)])[0]
            result = reduced(x, axis, keepdims, kind, needs_one and initial is None)
            if as_dtype: bounded(result, entries(x) if axis is None else x.axes[axis_number(axis, x.ndim)].size)
            elif f is not np.ptp and initial is None: copied(x, result)
            return filled(result, out)


# %%
#| export
_choosing(np.max, np.min, np.amax, np.amin, np.nanmax, np.nanmin, np.ptp)
_choosing(np.argmax, np.argmin, np.nanargmax, np.nanargmin, as_dtype=np.int64)
_choosing(np.median, np.nanmedian, needs_one=False)
METHODS |= {n: getattr(np, n) for n in 'sum prod mean std var any all max min argmax argmin'.split()}


# %% [markdown]
# `x.any(1)` and `np.any(x, 1)` take `out` second; their rule is the first one, where it is third, so a positional `out`
# is refused by its type rather than misread.

# %%
#| export
@rule(np.count_nonzero)
def count_nonzero(a, axis=None, *, keepdims=False):
    x = lift(a)
    return OPS[np.sum].shape(x if x.dtype == bool else x != 0, axis, keepdims=keepdims)


# %%
#| export
@rule(np.average)
def average(a, axis=None, weights=None, returned=False, *, keepdims=False):
    x = lift(a)
    if weights is not None:
        w = lift(weights)
        if w.ndim != x.ndim:
            i = axis_number(axis, x.ndim)
            if w.ndim != 1: refuse('weights of this shape', x, w, operand=2)
            verdict = same(w.axes[0].size, x.axes[i].size)
            if not verdict.holds:
                refuse('a weight for each entry along the axis', f'Vec<{x.axes[i].size}>', w, verdict=verdict, operand=2)
        else: _same_shape(x, w)
        not_empty([x.axes[axis_number(axis, x.ndim)].size if axis is not None else entries(x)], x)
    result = reduced(x, axis, keepdims, dtypes(np.true_divide, [x, 1.0])[0])
    return (result, result) if returned else result


# %%
#| export
def _same_shape(x: Array, y: Array) -> None:
    if x.ndim != y.ndim: refuse('the shapes differ', x, y, operand=1)
    for a, b in zip(x.axes, y.axes):
        if not (verdict := same(a.size, b.size)).holds: refuse('the shapes differ', x, y, verdict=verdict, operand=1)


# %%
#| export
@rule(np.percentile, np.quantile, np.nanpercentile, np.nanquantile)
def quantile(a, q, axis=None, out=None, *_, keepdims=False, **__):
    most = 100 if current().state['op'][0].endswith('percentile') else 1
    if isinstance(q, int | float) and not 0 <= q <= most: refuse(f'{q} of {most}', f'0 to {most}', q, operand=1)
    dtypes(np.subtract, [a, a])
    result = reduced(lift(a), axis, keepdims, np.float64, needs_one=True)
    return filled(Array((*lift(q).axes, *result.axes), np.float64), out)


# %%
#| export
@rule(np.cumsum, np.cumprod, np.nancumsum, np.nancumprod)
def cumulative(a, axis=None, dtype=None, out=None):
    x = lift(a)
    kind = dtype or dtypes(np.cumsum, [x])[0]
    i = None if axis is None else axis_number(axis, x.ndim)
    for k in range(x.ndim) if i is None else (i,): may_reduce(x, k)
    return filled(ranged(Array((_flat(x),) if i is None else x.axes, kind), _sums(np.cumsum, x, axis)), out)


# %%
#| export
def _flat(x: Array) -> Axis: return x.axes[0] if x.ndim == 1 else inherit(axis(entries(x)), *x.axes)

METHODS |= {'cumsum': np.cumsum, 'cumprod': np.cumprod}


# %%
#| export
@rule(np.diff)
def diff(a, n=1, axis=-1, prepend=None, append=None):
    x = lift(a)
    i = axis_number(axis, x.ndim)
    if not (verdict := holds(claim(as_dim(n), '>=', 0))).holds: refuse(f'{n} differences', 'at least 0', n, verdict=verdict)
    if as_dim(n) == 0: return x  # whatever is put before or after it
    size, added = x.axes[i].size - as_dim(n), [lift(v) for v in (prepend, append) if v is not None]
    if added and not holds(claim(as_dim(n), '>=', 1)).holds: refuse(f'{n} differences', 'at least 1', n)
    for more in added:
        if more.axes and more.ndim != x.ndim: refuse('as many axes as the array has', x, more)
        if more.axes: _same_shape(*(Array(b for k, b in enumerate(v.axes) if k != i) for v in (x, more)))
        size = size + (more.axes[i].size if more.axes else 1)
    if not branch(claim(size, '>=', 0)): size = Dim(0)
    kind = np.result_type(x.dtype, *(more.dtype for more in added))  # of NumPy's arrays: a bool stays one
    return ranged(Array((inherit(axis_(size), b) if k == i else b for k, b in enumerate(x.axes)), kind),
                  computed(np.subtract, [x, x]) if n == 1 and not added else UNBOUNDED)


# %%
#| export
axis_ = axis


# %%
#| export
@rule(np.flip)
def flip(m, axis=None):
    axis_numbers(axis, lift(m).ndim)
    return view(lift(m), Array(lift(m).axes, lift(m).dtype))


# %%
#| export
@rule(np.roll)
def roll(a, shift, axis=None):
    asked(np.roll, lift(a), [1]*len(shift) if isinstance(shift, tuple | list) else 1, axis)
    for s in shift if isinstance(shift, tuple | list) else [shift]:
        if lift(s).dtype.kind not in 'iub': refuse(f'a shift of {lift(s).dtype}', 'whole numbers', s, 'write // instead of /', operand=1)
    return copied(lift(a), Array(lift(a).axes, lift(a).dtype))


# %%
#| export
@rule(np.sort)
def sort(a, axis=-1, **_):
    x = lift(a)
    if axis is not None: axis_number(axis, x.ndim)
    return copied(x, Array((_flat(x),) if axis is None else x.axes, x.dtype))


@rule(np.sort_complex)
def sort_complex(a): return Array(lift(a).axes, dtypes(np.sort_complex, [lift(a)])[0])

@rule('sort in place')
def sort_in_place(a, axis=-1, **_):
    axis_number(axis, a.ndim)
    written(a, range_of(a))

@rule(np.lexsort)
def lexsort(keys, axis=-1):
    x = lift(keys)
    if not (verdict := holds(claim(x.axes[0].size, '>=', 1))).holds: refuse('there may be nothing to sort by', f'{x.axes[0].size} >= 1', x, verdict=verdict, operand=0)
    return bounded(Array(x.axes[1:], np.int64), x.axes[axis_number(axis, x.ndim - 1) + 1].size)


# %%
#| export
@rule(np.argsort)
def argsort(a, axis=-1, **_):
    x = sort(a, axis)
    return bounded(Array(x.axes, np.int64), x.axes[axis_number(-1 if axis is None else axis, x.ndim)].size)


# %%
#| export
def _kth(x: Array, kth: Any, axis: Any) -> None:
    size = sort(x, axis).axes[axis_number(-1 if axis is None else axis, x.ndim)].size
    for k in kth if isinstance(kth, list | tuple) else [kth]:
        refused = lambda **more: refuse(f'the place {k} of {size} entries', f'{-size} <= {k} < {size}', k, operand=1, **more)
        if (dim := as_dim(k)) is None: refused()
        for wanted in (claim(dim, '<', size), claim(dim, '>=', -size)):
            if not (verdict := holds(wanted)).holds: refused(hint=add_where(wanted) if verdict.fails_at else '', verdict=verdict)


# %%
#| export
@rule(np.partition)
def partition(a, kth, axis=-1, **_):
    _kth(lift(a), kth, axis)
    return sort(a, axis)


# %%
#| export
@rule('partition in place')
def partition_in_place(a, kth, axis=-1, **_):
    _kth(a, kth, axis)
    written(a, range_of(a))

@rule(np.argpartition)
def argpartition(a, kth, axis=-1, **_):
    _kth(lift(a), kth, axis)
    return argsort(a, axis)


# %%
#| export
METHODS |= {'sort': 'sort in place', 'partition': 'partition in place', 'argsort': np.argsort, 'argpartition': np.argpartition}


# %% [markdown]
# ## The methods of a ufunc
#
# `np.add.reduce` is a sum, `np.add.outer` every pair, `np.add.at` a write that adds.

# %%
#| export
@rule('ufunc.reduce')
def ufunc_reduce(f, a, axis=0, dtype=None, out=None, keepdims=False, initial=None, where=None):
    x = lift(a)
    asked(f.reduce, x, axis)
    if where is not None and where is not True:
        if f.identity is None and initial is None: refuse('where= may leave nothing to reduce', 'initial=', 'none', 'write initial=...')
        chosen(x, where)
    kind = dtype or dtypes(f.reduce, [Array((Axis(Dim(1)),), x.dtype)])[0]
    return filled(reduced(x, axis, keepdims, kind, f.identity is None and initial is None), out)


# %%
#| export
@rule('ufunc.accumulate')
def ufunc_accumulate(f, a, axis=0, dtype=None, out=None):
    x = lift(a)
    may_reduce(x, axis_number(axis, x.ndim))
    return filled(Array(x.axes, dtype or dtypes(f.accumulate, [Array((Axis(Dim(1)),), x.dtype)])[0]), out)


# %%
#| export
@rule('ufunc.outer')
def ufunc_outer(f, a, b, **_):
    x, y = lift(a), lift(b)
    return Array((*x.axes, *(axis(c.size) if c.id in {d.id for d in x.axes} else c for c in y.axes)), dtypes(f, [x, y])[0])


# %%
#| export
@rule('ufunc.at')
def ufunc_at(f, a, indices, b=None):
    if type(a) is not Array: written(a, UNBOUNDED)
    target = OPS['getitem'].shape(a, indices)
    if b is not None: stored(elementwise(f, [target, b]), target)
    written(a, UNBOUNDED)


# %%
from bendml.shape.trace import Trace, tracing
from bendml.shape.messages import ShapeError
B, C = Dim('B'), Dim('C')
with tracing(Trace()):
    x = Array([axis(B), axis(C)])
    print(x.mean(-1), x.mean(-1, keepdims=True), x.argmax(1).dtype, np.add.outer(x.sum(0), x.sum(1)))
    try: x - x.mean(-1)
    except ShapeError as e: print(e)

# %% [markdown]
# ## What this does not show
#
# The mean of nothing is `nan`, with a warning; that is not refused, since the shape is right.
