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

from bendml.shape.sizes import Dim, names_of
from bendml.shape.facts import assume, claim
from bendml.shape.annotations import spelled
from bendml.shape.trace import add_where, branch, current, holds, refuse
from bendml.shape.symbols import METHODS, Array, Axis, as_dim, axis, entries, inherit, number, perform, rule
from bendml.shape.ranges import GIVEN, UNBOUNDED, Range, as_size, copied, picked, range_of, unknown, view, written
from bendml.shape.operators import one_entry
from bendml.shape.elementwise import broadcast, chosen, elementwise, filled, lift, same, stored
from bendml.shape.reductions import axis_number
from bendml.shape.moves import ravel

# %% [markdown]
# ## One axis at a time
#
# A number must be in range, surely. A slice is cut off at the ends silently, in Python as here; where it depends on the
# sizes whether it is, there is a path for each.

# %%
#| export
COUNTED = 'a loop sets it: keep what it picks, in place of its number; or write % len(...)'

def _counted(index: Dim) -> bool:
    told = current().state.get('told', {})
    return any(told[n][0] == 'counter' for n in names_of(index) if n in told)


# %%
#| export
def _in_range(index: Dim, a: Axis) -> None:
    "Refuse an index that may be outside of an axis."
    for op, opposite, end in (('<', '>=', a.size), ('>=', '<', -a.size)):
        if (verdict := holds(claim(index, op, end))).holds: continue
        hint = add_where(claim(index, op, end)) if verdict.fails_at else ''
        refuse(f'index {index} of an axis of size {a.size}', f'{index} {op} {end}', f'{index} {opposite} {end}',
               (COUNTED if _counted(index) else 'does the range go too far?') if "'" in str(index) else hint, verdict, 1)


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
    start = first if s.start is None else _bound(s.start, a, forward)
    stop = last if s.stop is None else _bound(s.stop, a, forward)
    length = -((start - stop)//step) if forward else -((stop - start)//-step)
    if not branch(claim(length, '>=', 0)): return axis(0)
    return a if forward and same(length, a.size).holds and step == 1 else inherit(axis(length), a)


# %%
#| export
def _bound(value: Any, a: Axis, forward: bool) -> Dim:
    "A bound of a slice, counted from the front, and not outside of the axis."
    dim = as_dim(value)
    if dim is None and type(value) is Array and not value.axes and value.dtype.kind in 'iu': dim = as_size(value)
    if dim is None: refuse(f'a slice bound is {value!r}', 'a whole number', value, operand=1)
    if forward and current().state.get('rolled') and _from_data(dim): return _somewhere(dim, a.size)
    return _clamped(dim if branch(claim(dim, '>=', 0)) else a.size + dim, a, forward)


# %%
#| export
def _clamped(dim: Dim, a: Axis, forward: bool) -> Dim:
    low, high = (Dim(0), a.size) if forward else (Dim(-1), a.size - 1)
    if not branch(claim(dim, '>=', low)): return low
    return dim if branch(claim(dim, '<=', high)) else high


# %% [markdown]
# ## Everything at once
#
# NumPy's rule for several index arrays: they are stretched against each other, and the result stands where the first of them
# stood, or in front if something stands between them.

# %% [markdown]
# Each question doubles the paths. Where they are too many, a bound that only the data know is some number from 0 to the size,
# for the same bound and size the same one.

# %%
#| export
def _from_data(dim: Dim) -> bool:
    "Is it made of numbers that only the data know?"
    told = current().state.get('told', {})
    return any(n in told for n in names_of(dim)) and all(told[n][0] == '' for n in names_of(dim) if n in told)

def _somewhere(dim: Dim, size: Dim) -> Dim:
    trace = current()
    seen, key = trace.state.setdefault('bounds', {}), (dim, size)
    if key not in seen:
        if holds(claim(dim, '>=', 0)).holds and holds(claim(dim, '<=', size)).holds: return dim
        seen[key] = unknown('i').size
        trace.facts = assume(trace.facts, claim(seen[key], '<=', size))
    return seen[key]


# %%
#| export
def index_of(value: Any) -> Array:
    "A list of indices as an array; NumPy takes one that is empty for whole numbers."
    x = lift(value, 1)
    return Array(x.axes, int) if isinstance(value, list) and entries(x) == 0 else x

def _expanded(x: Array, index: Any) -> list[Any]:
    "The index as one entry a axis (masks count for as many as they have), `...` written out."
    index = list(index) if isinstance(index, tuple) else [index]
    index = [index_of(i) if isinstance(i, list | np.ndarray | range) or hasattr(i, 'numbers') else i for i in index]
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
        elif type(p) is Array: _index_array(x.axes[i], p); arrays.append(_taken(p, x.axes[i])); spots.append(len(axes)); axes.append(None); i += 1
        else:
            if (dim := as_dim(p)) is None: refuse(f'an index is {p!r}', 'a number, slice, mask or array', p, operand=1)
            _in_range(dim, x.axes[i])
            i += 1
            if advanced: arrays.append(number(int)); spots.append(len(axes)); axes.append(None)
    shared = not axes and isinstance(index, tuple) and any(p is Ellipsis for p in index)
    if shared and x.known and not x.known.range.given: x.known.range = UNBOUNDED  # `c = x[0, ...]; c += 1` changes x
    if not arrays: return view(x, Array(axes, x.dtype, x.lost if len(axes) == x.ndim else ()))
    return copied(x, Array(_placed(axes, arrays, spots), x.dtype))


# %%
#| export
def _mask(x: Array, mask: Array, i: int, arrays: list, axes: list, spots: list) -> int:
    for k, a in enumerate(mask.axes):
        if not (verdict := same(a.size, x.axes[i + k].size)).holds:
            refuse('the mask has another shape', spelled(b.size for b in x.axes[i:i + mask.ndim]), mask, verdict=verdict, operand=1)
    arrays.append(_taken(Array((picked(mask),), int), *x.axes[i:i + mask.ndim]))
    spots.append(len(axes))
    axes.append(None)
    return i + mask.ndim


# %%
#| export
def _taken(index: Array, *old: Axis) -> Array:
    "An index, with axes of its own if nothing may reduce over what it picks from."
    if not {a.id for a in old} & current().state.get('kept', {}).keys(): return index
    return Array((inherit(axis(a.size, one=a.one), *old) for a in index.axes), index.dtype)


# %%
#| export
def _index_array(a: Axis, index: Array) -> None:
    if index.dtype.kind not in 'iu':
        refuse(f'an index array of dtype {index.dtype}', 'whole numbers or truth values', f'{index} of {index.dtype}',
               'declare it: Int[...] or Bool[...] around its annotation', operand=1)
    r = range_of(index)
    if entries(index) == 0: return
    if r.given: _something(a, index)
    if r != GIVEN: _within_axis(r, a)

def _something(a: Axis, index: Array) -> None:
    "Refuse to take from an axis that may have no entries."
    if entries(index) != 0 and not (verdict := holds(claim(a.size, '>=', 1))).holds:
        refuse(f'an axis of size {a.size}, which can be 0, has nothing to take', f'{a.size} >= 1', a.size, verdict=verdict, operand=1)


# %%
#| export
def _within_axis(r: Range, a: Axis) -> None:
    "Refuse numbers that may be outside of an axis."
    if r.low is None or r.high is None:
        side = '' if r.low is r.high else ' from below' if r.low is None else ' from above'
        refuse(f'nothing bounds the numbers of this index{side}, and the axis has size {a.size}', f'0 to {a.size - 1}', r,
               f'np.clip(..., 0, {a.size - 1}), or % {a.size}; or take it as a parameter, with where="i < {a.size}"', operand=1)
    if not (verdict := holds(claim(r.high, '<', a.size))).holds:
        hint = add_where(claim(r.high, '<', a.size), '') if verdict.fails_at else f'np.minimum(..., {a.size - 1})'
        if not hint and any(sum(p for _, p in m) > 1 for m, _ in r.high.terms): hint = 'if it counts all entries of a table, as argmax() without axis= does: np.unravel_index(..., shape) gives an index for each axis'
        refuse(f'indices up to {r.high} of an axis of size {a.size}', f'{r.high + 1} <= {a.size}', f'{r.high + 1} > {a.size}', hint, verdict, 1, f'an index is {r.high}')
    if not (verdict := holds(claim(r.low, '>=', -a.size))).holds:
        refuse(f'indices down to {r.low} of an axis of size {a.size}', f'{r.low} >= {-a.size}', f'{r.low} < {-a.size}',
               f'np.maximum(..., {-a.size}), or count from the front', verdict, 1, f'an index is {r.low}')


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
    _one_by_one(x, index, target, new)
    if new.ndim > target.ndim and all(a.size == 1 for a in new.axes[:new.ndim - target.ndim]):
        new = copied(new, Array(new.axes[new.ndim - target.ndim:], new.dtype))
    dtype = np.result_type(new.dtype) if new.dtype != bool else target.dtype
    dtype = target.dtype if np.can_cast(dtype, target.dtype, 'same_kind') or {dtype.kind, target.dtype.kind} <= set('fiub') else dtype
    stored(copied(new, Array(new.axes, dtype, new.lost)), target)
    written(x, range_of(new))  # a target picked by an array of indices is no view


# %%
#| export
def _one_by_one(x: Array, index: Any, target: Array, new: Array) -> None:
    "Refuse an array, even of one entry, for an entry that numbers pick, and more than one axis for what a mask picks."
    each = index if isinstance(index, tuple) else (index,)
    if new.axes and not target.axes and not any(i is Ellipsis for i in each) and all(a.size == 1 for a in new.axes):
        refuse('an entry is assigned an array', 'a number', new, 'take the number out: .item(); or write into a slice, [i:i + 1]')
    if new.ndim > 1 and len(each) == 1 and type(each[0]) is Array and each[0].dtype == bool and each[0].ndim == x.ndim:
        refuse('what a mask picks is assigned an array of at most one axis', 'a number, or Vec<k>', new, 'write .ravel() after it')

Array.__getitem__ = lambda self, index: perform('getitem', (self, index), {})
Array.__setitem__ = lambda self, index, value: perform('setitem', (self, index, value), {})

@rule('fill')
def fill(x, value):
    if lift(value).axes: refuse('it is filled with an array', 'a number', lift(value), 'write x[...] = ...', operand=1)
    stored(copied(lift(value), Array((), x.dtype)), x)

@rule('item')
def item(x, *index):
    if index: return getitem(x if len(index) > 1 else ravel(x), index)
    one_entry(x, 'item()', 'reduce it first, or say which: .item(0)')
    return x[(0,)*x.ndim]

METHODS |= {'fill': 'fill', 'item': 'item'}

@rule(np.copyto)
def copyto(dst, src, casting='same_kind', where=True):
    if where is not True: chosen(lift(dst), where)
    stored(elementwise(np.positive, [src]) if lift(src).dtype != bool else lift(src), dst)

@rule(np.fill_diagonal)
def fill_diagonal(a, val, wrap=False):
    if a.ndim < 2 or a.ndim > 2 and not all(same(b.size, a.axes[0].size).holds for b in a.axes): refuse('a matrix, or equal sizes', 'Mat<m, n>', a, operand=0)
    if lift(val).axes and not (verdict := holds(claim(entries(lift(val)), '>=', 1))).holds: refuse('nothing to fill with', 'at least one entry', lift(val), verdict=verdict)
    written(a, range_of(lift(val)))


# %% [markdown]
# ## Taking

# %%
#| export
@rule(np.take)
def take(a, indices, axis=None, out=None, mode='raise'):
    x, ids = (lift(a) if axis is not None else ravel(lift(a))), index_of(indices)
    i = 0 if axis is None else axis_number(axis, x.ndim)
    if mode == 'raise' or ids.dtype.kind not in 'iu': _index_array(x.axes[i], ids)
    else: _something(x.axes[i], ids)
    return filled(copied(x, Array((*x.axes[:i], *_taken(ids, x.axes[i]).axes, *x.axes[i + 1:]), x.dtype)), out)


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
    return copied(x, Array((*(ids.axes[k] if k == i or x.axes[k].size == 1 else x.axes[k] for k in range(x.ndim)),), x.dtype))


# %%
#| export
@rule(np.put_along_axis)
def put_along_axis(arr, indices, values, axis):
    broadcast(take_along_axis(arr, indices, axis), lift(values))
    written(arr, range_of(lift(values)))

@rule(np.put)
def put(a, ind, v, mode='raise'):
    i, values = lift(ind, 1), lift(v, 2)
    if mode == 'raise': _index_array(ravel(a).axes[0], i)
    else: _something(ravel(a).axes[0], i)
    if not values.axes or holds(claim(entries(values), '>=', 1)).holds: written(a, range_of(values))
    else: refuse('no values to put', 'at least one', values, operand=2)

METHODS |= {'take': np.take, 'put': np.put}

# %%
from bendml.shape.trace import Trace, tracing
from bendml.shape.messages import ShapeError
n, d, V = map(Dim, ('n', 'd', 'V'))
with tracing(Trace()):
    x, ids = Array([axis(n), axis(d)]), np.argsort(Array([axis(n)]))
    print(x[:, None], x[0], x[1:], x[::2], x[ids], x[x[:, 0] > 0])
    for wrong in (lambda: x[:, d], lambda: x[ids + 1], lambda: x[x[:, 0].astype(int)]):
        try: wrong()
        except ShapeError as e: print(e, end='\n\n')

# %% [markdown]
# A number that bounds two slices cuts both at the same place: the best entry's, here. Another number need not.

# %%
with tracing(Trace()):
    a, b = Array([axis(n)]), Array([axis(n)])
    i = a.argmax()
    print(a[:i].sizes == b[:i].sizes, a[:i].sizes == b[:b.argmax()].sizes)

# %% [markdown]
# ## What this does not show
#
# Two readings of one entry, `y[0]` and `y[0]` again, are two numbers: give it a name. Whether indices that come from outside
# are in range is not shown: a wrong token id is an `IndexError` when the program runs, unless `where="ids < V"` has it refused
# at the call.
