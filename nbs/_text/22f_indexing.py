# %%
#| default_exp shape.indexing

# %% [markdown]
# # Indexing
# > Numbers, slices with bounds that are not known, masks, and arrays of indices.

# %%
#| hide
#| export
from typing import Any

import numpy as np

from bendml.shape.annotations import spelled
from bendml.shape.sizes import Dim
from bendml.shape.facts import Verdict, claim
from bendml.shape.symbols import (METHODS, OPS, Array, Axis, as_dim, axis, bounded, bounded_like, branch, current, entries,
                                  holds, number, perform, refuse, rule)
from bendml.shape.elementwise import broadcast, dtypes, elementwise, lift, same, stored
from bendml.shape.reductions import axis_number, not_empty, reduced
from bendml.shape.products import unknown
from bendml.shape.moves import concatenate, members, ravel, reshape


# %% [markdown]
# ## One axis at a time
#
# A number must be in range, surely. A slice is cut off at the ends silently, in Python as here; where it depends on the
# sizes whether it is, there is a path for each.

# %%
#| export
def _in_range(index: Dim, a: Axis) -> None:
    "Refuse an index that may be outside of an axis."
    for op, opposite, end in (('<', '>=', a.size), ('>=', '<', -a.size)):
        if (verdict := holds(claim(index, op, end))).holds: continue
        hint = f'add where=["{index} {op} {end}"], or test it first' if verdict.fails_at else ''
        refuse(f'index {index} of an axis of size {a.size}', f'{index} {op} {end}', f'{index} {opposite} {end}',
               'does the range go too far?' if "'" in str(index) else hint, verdict, 1)


# %%
#| export
def slice_axis(a: Axis, s: slice) -> Axis:
    "The axis that a slice leaves."
    step = Dim(1) if s.step is None else as_dim(s.step)
    if step is None or step == 0 or step.const is None and not holds(claim(step, '>=', 1)).holds:
        refuse(f'a slice in steps of {s.step}', 'a number that is not 0', s.step, operand=1)
    if s.start is None and s.stop is None and step.const in (1, -1): return a
    forward = step.const is None or step.const > 0
    first, last = (Dim(0), a.size) if forward else (a.size - 1, Dim(-1))
    start = first if s.start is None else _clamped(_position(s.start, a), a, forward)
    stop = last if s.stop is None else _clamped(_position(s.stop, a), a, forward)
    length = -((start - stop)//step) if forward else -((stop - start)//-step)
    if not branch(claim(length, '>=', 0)): return axis(0)
    return a if forward and same(length, a.size).holds and step == 1 else axis(length)


# %%
#| export
def _position(value: Any, a: Axis) -> Dim:
    "A bound of a slice, counted from the front."
    dim = as_dim(value)
    if dim is None and type(value) is Array and not value.axes and value.dtype.kind in 'iu': dim = unknown('i', None).size
    if dim is None: refuse(f'a slice bound is {value!r}', 'a whole number', value, operand=1)
    return dim if branch(claim(dim, '>=', 0)) else a.size + dim


# %%
#| export
def _clamped(dim: Dim, a: Axis, forward: bool) -> Dim:
    low, high = (Dim(0), a.size) if forward else (Dim(-1), a.size - 1)
    if not branch(claim(dim, '>=', low)): return low
    return dim if branch(claim(dim, '<=', high)) else high


# %% [markdown]
# ## Masks
#
# A mask picks a number of entries that only the data know: a fresh size `k` between 0 and `n`. The same mask picks the same
# number again.

# %%
#| export
def picked(mask: Array) -> Axis:
    "The axis that a mask leaves."
    seen = current().state.setdefault('masks', {})
    if id(mask) not in seen:
        new = unknown('k')
        current().facts = _assume(claim(new.size, '<=', entries(mask)))
        seen[id(mask)] = (new, mask)
    return seen[id(mask)][0]


# %%
#| export
def _assume(c):
    from bendml.shape.facts import assume
    return assume(current().facts, c)


# %% [markdown]
# ## Everything at once
#
# NumPy's rule for several index arrays: they are stretched against each other, and the result stands where the first of them
# stood, or in front if something stands between them.

# %%
#| export
def _expanded(x: Array, index: Any) -> list[Any]:
    "The index as one entry a axis (masks count for as many as they have), `...` written out."
    index = list(index) if isinstance(index, tuple) else [index]
    index = [lift(i) if isinstance(i, list | np.ndarray | range) or hasattr(i, 'numbers') else i for i in index]
    used = sum(i.ndim if type(i) is Array and i.dtype == bool else 1 for i in index if i is not None and i is not Ellipsis)
    if used > x.ndim: refuse(f'{used} indices for {x.ndim} axes', f'at most {x.ndim}', used, operand=1)
    dots = [k for k, i in enumerate(index) if i is Ellipsis]
    if len(dots) > 1: refuse('more than one ...', 'one', len(dots), operand=1)
    at = dots[0] if dots else len(index)
    return index[:at] + [slice(None)]*(x.ndim - used) + index[at + 1:]


# %%
#| export
@rule('getitem')
def getitem(x, index):
    if isinstance(index, str): refuse('a field name', 'an index', index)
    axes, arrays, spots, i = [], [], [], 0
    parts = _expanded(x, index)
    advanced = any(type(p) is Array for p in parts)
    for p in parts:
        if p is None: axes.append(axis(1, one='written'))
        elif isinstance(p, slice): axes.append(slice_axis(x.axes[i], p)); i += 1
        elif type(p) is Array and p.dtype == bool: i = _mask(x, p, i, arrays, axes, spots)
        elif type(p) is Array: _index_array(x.axes[i], p); arrays.append(p); spots.append(len(axes)); axes.append(None); i += 1
        else:
            if (dim := as_dim(p)) is None: refuse(f'an index is {p!r}', 'a number, slice, mask or array', p, operand=1)
            _in_range(dim, x.axes[i])
            i += 1
            if advanced: arrays.append(number(int)); spots.append(len(axes)); axes.append(None)
    if not arrays: return bounded_like(x, Array(axes, x.dtype, x.lost if len(axes) == x.ndim else ()))
    return bounded_like(x, Array(_placed(axes, arrays, spots), x.dtype))


# %%
#| export
def _mask(x: Array, mask: Array, i: int, arrays: list, axes: list, spots: list) -> int:
    for k, a in enumerate(mask.axes):
        if not (verdict := same(a.size, x.axes[i + k].size)).holds:
            refuse('the mask has another shape', spelled(b.size for b in x.axes[i:i + mask.ndim]), mask, verdict=verdict, operand=1)
    arrays.append(Array((picked(mask),), int))
    spots.append(len(axes))
    axes.append(None)
    return i + mask.ndim


# %%
#| export
def _index_array(a: Axis, index: Array) -> None:
    if index.dtype.kind not in 'iu':
        refuse(f'an index array of dtype {index.dtype}', 'whole numbers or truth values', f'{index} of {index.dtype}',
               'declare it: Int[...] or Bool[...] around its annotation', operand=1)
    if index.below is None and entries(index) != 0 and not (verdict := holds(claim(a.size, '>=', 1))).holds:
        refuse(f'an axis of size {a.size}, which can be 0, has nothing to take', f'{a.size} >= 1', a.size, verdict=verdict,
               operand=1)
    if index.below is not None and not (verdict := holds(claim(index.below, '<=', a.size))).holds:
        refuse(f'indices up to {index.below - 1} of an axis of size {a.size}', f'{index.below} <= {a.size}',
               f'{index.below} > {a.size}', f'add where=["{index.below} <= {a.size}"]', verdict, 1)


# %%
#| export
def _placed(axes: list, arrays: list[Array], spots: list[int]) -> list[Axis]:
    "The axes of the index arrays, put where they belong."
    block = arrays[0].axes
    for k, b in enumerate(arrays[1:]): block = broadcast(Array(block), b)
    together = spots == list(range(spots[0], spots[0] + len(spots)))
    at = spots[0] if together else 0
    before = [a for a in axes[:at] if a is not None]
    return [*before, *block, *(a for a in axes[at:] if a is not None)]


# %% [markdown]
# ## Writing
#
# What is written must fit into what is there; the array keeps its shape.

# %%
#| export
@rule('setitem')
def setitem(x, index, value):
    if not x.axes: refuse('a number is assigned into', 'an array', x, operand=0)
    target, new = getitem(x, index), lift(value, 1)
    if new.ndim > target.ndim and all(a.size == 1 for a in new.axes[:new.ndim - target.ndim]):
        new = Array(new.axes[new.ndim - target.ndim:], new.dtype)
    dtype = np.result_type(new.dtype) if new.dtype != bool else target.dtype
    stored(Array(new.axes, target.dtype if np.can_cast(dtype, target.dtype, 'same_kind') or dtype.kind in 'fiub'
                 and target.dtype.kind in 'fiub' else dtype, new.lost), target)


# %%
#| export
Array.__getitem__ = lambda self, index: perform('getitem', (self, index), {})
Array.__setitem__ = lambda self, index, value: perform('setitem', (self, index, value), {})

@rule('fill')
def fill(x, value): stored(Array(lift(value).axes, x.dtype), x)

@rule('item')
def item(x, *index): return number(x.dtype)

METHODS |= {'fill': 'fill'}

@rule(np.copyto)
def copyto(dst, src, casting='same_kind', where=True):
    stored(elementwise(np.positive, [src]) if lift(src).dtype != bool else lift(src), dst)

@rule(np.fill_diagonal)
def fill_diagonal(a, val, wrap=False): lift(val)


# %% [markdown]
# ## Taking

# %%
#| export
@rule(np.take)
def take(a, indices, axis=None, out=None, mode='raise'):
    x, ids = (lift(a) if axis is not None else ravel(lift(a))), lift(indices, 1)
    i = 0 if axis is None else axis_number(axis, x.ndim)
    _index_array(x.axes[i], ids)
    if as_dim(indices) is not None: _in_range(as_dim(indices), x.axes[i])
    return stored(Array((*x.axes[:i], *ids.axes, *x.axes[i + 1:]), x.dtype), out)


# %%
#| export
@rule(np.take_along_axis)
def take_along_axis(arr, indices, axis=-1):
    x, ids = lift(arr), lift(indices)
    if axis is None: x, axis = ravel(x), 0
    i = axis_number(axis, x.ndim)
    if ids.ndim != x.ndim:
        refuse('as many axes in the indices as in the array', f'{x.ndim} axes', ids, 'write [..., None] after the indices',
               operand=1)
    if ids.dtype.kind not in 'iu': refuse(f'indices of dtype {ids.dtype}', 'whole numbers', ids, 'declare it: Int[...]', operand=1)
    _index_array(x.axes[i], ids)
    broadcast(*(Array((*v.axes[:i], *v.axes[i + 1:])) for v in (x, ids)))
    return Array((*(ids.axes[k] if k == i or x.axes[k].size == 1 else x.axes[k] for k in range(x.ndim)),), x.dtype)


# %%
#| export
@rule(np.put_along_axis)
def put_along_axis(arr, indices, values, axis): broadcast(take_along_axis(arr, indices, axis), lift(values))

METHODS |= {'take': np.take}


# %% [markdown]
# ## What only the numbers know
#
# How many entries are not zero, or different: a fresh size.

# %%
#| export
@rule(np.nonzero)
def nonzero(a):
    x = lift(a)
    if not x.axes: refuse('a number has no places', 'at least one axis', x)
    k = picked(x)
    return tuple(bounded(Array((k,), np.int64), b.size) for b in x.axes)


# %%
#| export
@rule(np.flatnonzero)
def flatnonzero(a): return nonzero(ravel(lift(a)) if lift(a).ndim != 1 else lift(a))[0]

@rule(np.argwhere)
def argwhere(a): return Array((picked(lift(a)), axis(lift(a).ndim)), np.int64)

METHODS |= {'nonzero': np.nonzero}


# %%
#| export
def some(n: Dim, least: int = 0) -> Axis:
    "A number of entries from `least` to n."
    new = unknown('k', least)
    current().facts = _assume(claim(new.size, '<=', n))
    return new


# %%
#| export
@rule(np.unique)
def unique(ar, return_index=False, return_inverse=False, return_counts=False, axis=None, **_):
    x = lift(ar)
    i = None if axis is None else axis_number(axis, x.ndim)
    n = entries(x) if i is None else x.axes[i].size
    k = some(n, 1 if holds(claim(n, '>=', 1)).holds else 0)
    values = Array((k,) if i is None else (*x.axes[:i], k, *x.axes[i + 1:]), x.dtype)
    inverse = bounded(Array(x.axes if i is None else (x.axes[i],), np.int64), k.size)
    more = [v for wanted,
            v in ((return_index, bounded(Array((k,), np.int64), n)), (return_inverse, inverse), (return_counts, Array((k,), np.int64))) if wanted]
    return (values, *more) if more else values


# %%
#| export
@rule(np.compress)
def compress(condition, a, axis=None, out=None):
    x = lift(a) if axis is not None else ravel(lift(a))
    i, c = 0 if axis is None else axis_number(axis, x.ndim), lift(condition)
    if not (verdict := holds(claim(c.axes[0].size, '<=', x.axes[i].size))).holds:
        refuse('the condition is longer than the axis', x.axes[i].size, c, verdict=verdict)
    return stored(Array((*x.axes[:i], picked(c), *x.axes[i + 1:]), x.dtype), out)


# %%
#| export
@rule(np.extract)
def extract(condition, arr): return compress(ravel(lift(condition)), ravel(lift(arr)))

@rule(np.isin)
def isin(element, test_elements, *_, **__): return Array(lift(element).axes, bool)

@rule(np.intersect1d, np.setdiff1d)
def intersect1d(ar1, ar2, *_, **__): return Array((some(entries(lift(ar1))),), lift(ar1).dtype)

@rule(np.union1d)
def union1d(ar1, ar2): return Array((some(entries(lift(ar1)) + entries(lift(ar2))),), lift(ar1).dtype)


# %%
#| export
@rule(np.searchsorted)
def searchsorted(a, v, side='left', sorter=None):
    x = lift(a)
    if x.ndim != 1: refuse('one axis is needed', 'Vec<n>', x, operand=0)
    return bounded(Array(lift(v).axes, np.int64), x.axes[0].size + 1)


# %%
#| export
@rule(np.digitize)
def digitize(x, bins, right=False): return searchsorted(bins, x)


# %%
#| export
@rule(np.bincount)
def bincount(x, /, weights=None, minlength=0):
    v = lift(x)
    if v.ndim != 1: refuse('one axis is needed', 'Vec<n>', v, operand=0)
    if weights is not None and not (verdict := same(lift(weights).axes[0].size, v.axes[0].size)).holds:
        refuse('a weight for each entry', v, lift(weights), verdict=verdict, operand=1)
    k, least = unknown('k'), as_dim(minlength)
    current().facts = _assume(claim(k.size, '>=', least))
    return Array((k,), np.int64 if weights is None else np.float64)


# %%
#| export
@rule(np.histogram)
def histogram(a, bins=10, range=None, density=None, weights=None):
    lift(a)
    n = as_dim(bins)
    n = lift(bins).axes[0].size - 1 if n is None else n
    return Array((axis(n),), np.int64 if not density else np.float64), Array((axis(n + 1),))


# %%
#| export
@rule(np.delete)
def delete(arr, obj, axis=None):
    x = lift(arr) if axis is not None else ravel(lift(arr))
    i = 0 if axis is None else axis_number(axis, x.ndim)
    if (dim := as_dim(obj)) is None: return Array((*x.axes[:i], some(x.axes[i].size), *x.axes[i + 1:]), x.dtype)
    _in_range(dim, x.axes[i])
    return Array((*x.axes[:i], axis_(x.axes[i].size - 1), *x.axes[i + 1:]), x.dtype)


# %%
#| export
axis_ = axis


# %%
#| export
@rule(np.ix_)
def ix_(*args):
    def one(k, a):
        a = lift(a)
        if a.ndim != 1: refuse('one axis is needed', 'Vec<n>', a, operand=k)
        own = picked(a) if a.dtype == bool else a.axes[0]
        kind = Array((own if j == k else axis(1, one='written') for j in range(len(args))), np.int64)
        return bounded(kind, a.below) if a.below is not None else kind
    return tuple(one(k, a) for k, a in enumerate(args))


# %%
#| export
@rule(np.interp)
def interp(x, xp, fp, *_, **__):
    for i, v in enumerate((xp, fp), 1):
        if lift(v).ndim != 1: refuse('one axis is needed', 'Vec<n>', lift(v), operand=i)
    not_empty([lift(xp).axes[0].size], lift(xp))
    if not (verdict := same(lift(xp).axes[0].size, lift(fp).axes[0].size)).holds:
        refuse('as many values as places', lift(xp), lift(fp), verdict=verdict, operand=2)
    return Array(lift(x).axes, np.float64)


# %%
#| export
@rule(np.convolve, np.correlate)
def convolve(a, v, mode='full'):
    x, y = lift(a), lift(v)
    for k, w in enumerate((x, y)):
        if w.ndim != 1: refuse('one axis is needed', 'Vec<n>', w, operand=k)
    n, m = x.axes[0].size, y.axes[0].size
    if not branch(claim(n, '>=', m)): n, m = m, n
    if not (verdict := holds(claim(m, '>=', 1))).holds: refuse('nothing to slide', 'at least one entry', m, verdict=verdict)
    return Array((axis({'full': n + m - 1, 'same': n, 'valid': n - m + 1}[mode]),), dtypes(np.multiply, [x, y])[0])


# %%
#| export
@rule(np.lib.stride_tricks.sliding_window_view)
def sliding_window_view(x, window_shape, axis=None, *, subok=False, writeable=False):
    a = lift(x)
    windows = [as_dim(w) for w in (window_shape if isinstance(window_shape, tuple | list) else (window_shape,))]
    where = range(a.ndim) if axis is None else [axis_number(i, a.ndim)
                                                for i in (axis if isinstance(axis, tuple | list) else (axis,))]
    if len(windows) != len(where): refuse('a window for each axis', f'{len(where)} sizes', f'{len(windows)} sizes', operand=1)
    axes = list(a.axes)
    for w, i in zip(windows, where):
        if not (verdict := holds(claim(w, '<=', axes[i].size))).holds:
            refuse('the window is larger than the axis', f'{w} <= {axes[i].size}', w, verdict=verdict, operand=1)
        axes[i] = axis_(axes[i].size - w + 1)
    return Array((*axes, *map(axis_, windows)), a.dtype)


# %%
#| export
@rule(np.vander)
def vander(x, N=None, increasing=False):
    n = lift(x).axes[0]
    return Array((n, axis(n.size if N is None else as_dim(N))), lift(x).dtype)


# %%
#| export
@rule(np.gradient)
def gradient(f, *varargs, axis=None, edge_order=1):
    x = lift(f)
    for i in (range(x.ndim) if axis is None else [axis_number(axis, x.ndim)]):
        if not (verdict := holds(claim(x.axes[i].size, '>=', edge_order + 1))).holds:
            refuse('too few entries for a difference', f'at least {edge_order + 1}', x.axes[i].size, verdict=verdict)
    one = Array(x.axes, dtypes(np.true_divide, [x, 1.0])[0])
    return one if axis is not None or x.ndim == 1 else tuple(one for _ in x.axes)


# %%
#| export
@rule(np.trapezoid)
def trapezoid(y, x=None, dx=1.0, axis=-1):
    v = lift(y)
    if x is not None: broadcast(v, lift(x))
    return reduced(v, axis, dtype=dtypes(np.true_divide, [v, 1.0])[0])


# %%
#| export
@rule(np.polyval)
def polyval(p, x): return elementwise(np.multiply, [Array(lift(x).axes, lift(x).dtype), number(lift(p).dtype)])


# %%
#| export
@rule(np.select)
def select(condlist, choicelist, default=0):
    if len(condlist) != len(choicelist): refuse('a choice for each condition', len(condlist), len(choicelist))
    result = default
    for condition, choice in zip(condlist, choicelist): result = OPS[np.where].shape(condition, choice, result)
    return result


# %%
from bendml.shape.symbols import Trace, tracing
from bendml.shape.messages import ShapeError
n, d, V = map(Dim, ('n', 'd', 'V'))
with tracing(Trace()):
    x, ids = Array([axis(n), axis(d)]), Array([axis(n)], int)
    print(x[:, None], x[0], x[1:], x[::2], x[ids], x[x[:, 0] > 0])
    try: x[:, d]
    except ShapeError as e: print(e)

# %% [markdown]
# ## What this does not show
#
# Whether the numbers in an array of indices are in range: a wrong token id is an `IndexError` when the program runs.
