# %%
#| default_exp shape.blocks

# %% [markdown]
# # Turning, inserting, blocks
# > A picture turned, a row put in, a matrix made of matrices, an array cut to another length.

# %%
#| hide
#| export
from typing import Any

import numpy as np

from bendml.shape.sizes import Dim
from bendml.shape.facts import claim
from bendml.shape.trace import add_where, branch, holds, refuse
from bendml.shape.symbols import OPS, Array, Axis, axis, axis as axis_, entries, rule
from bendml.shape.ranges import GIVEN, copied, from_to, range_of, ranged, union, view, written
from bendml.shape.elementwise import dtypes, filled, lift, same, stored
from bendml.shape.reductions import _same_shape, axis_number, axis_numbers, cumulative, flip, not_empty
from bendml.shape.moves import expand_dims, moveaxis, ravel, shape_of, swapaxes
from bendml.shape.joining import concatenate, members, split, vstack
from bendml.shape.searching import some


# %% [markdown]
# ## Turning

# %%
#| export
@rule(np.fliplr)
def fliplr(m): return flip(m, 1)

@rule(np.flipud)
def flipud(m): return flip(m, 0)

@rule(np.rollaxis)
def rollaxis(a, axis, start=0):
    x = lift(a)
    i = axis_number(axis, x.ndim)
    if not isinstance(start, int) or not -x.ndim <= start <= x.ndim: refuse(f'start={start!r}', f'{-x.ndim} to {x.ndim}', start, operand=2)
    start += x.ndim*(start < 0)
    return moveaxis(x, i, start - (i < start))


# %%
#| export
@rule(np.rot90)
def rot90(m, k=1, axes=(0, 1)):
    x, where = lift(m), axis_numbers(tuple(axes), lift(m).ndim)
    if len(where) != 2: refuse('two axes are turned', 2, len(where), operand=2)
    if type(k) is not int: refuse('a number of turns that is not known', 'a number', k, operand=1)
    return swapaxes(x, *where) if k % 2 else view(x, Array(x.axes, x.dtype))


# %% [markdown]
# ## Matrices made of matrices

# %%
#| export
@rule(np.atleast_3d)
def atleast_3d(*arrays):
    def one(a):
        x = lift(a)
        return expand_dims(x, {0: (0, 1, 2), 1: (0, 2), 2: (2,)}[x.ndim]) if x.ndim < 3 else x
    return one(arrays[0]) if len(arrays) == 1 else tuple(map(one, arrays))

@rule(np.dstack)
def dstack(tup): return concatenate([atleast_3d(x) for x in _each_once(tup)], 2)

@rule(np.dsplit)
def dsplit(ary, indices_or_sections): return split(ary, indices_or_sections, 2)


# %%
#| export
def _each_once(arrays: Any) -> list[Array]:
    found = members(arrays)
    if any(n != 1 for _, n in found): refuse('an unknown number of arrays', 'a known number', found[0][1], 'np.stack them, and move the axis')
    return [x for x, _ in found]

@rule(np.block)
def block(arrays):
    depth = _nested(arrays)
    rank = max(depth, *(lift(a).ndim for a in _leaves(arrays)))
    x = _blocks(arrays, depth, rank)
    return copied(x, Array(x.axes, x.dtype))


# %%
#| export
def _nested(arrays: Any) -> int:
    "How deep the lists go; every branch goes as deep."
    if not isinstance(arrays, list): return 0
    depths = {_nested(a) for a in arrays}
    if len(depths) != 1: refuse('lists of different depths' if depths else 'an empty list', 'lists of one depth', sorted(depths))
    return 1 + depths.pop()

def _leaves(arrays: Any) -> list: return [leaf for a in arrays for leaf in _leaves(a)] if isinstance(arrays, list) else [arrays]

def _blocks(arrays: Any, depth: int, rank: int) -> Array:
    if depth: return concatenate([_blocks(a, depth - 1, rank) for a in arrays], -depth)
    return expand_dims(x, tuple(range(rank - x.ndim))) if (x := lift(arrays)).ndim < rank else x


# %% [markdown]
# ## Putting in
#
# With one index, as many rows are put in as there are values; with several, one value for each.

# %%
#| export
@rule(np.insert)
def insert(arr, obj, values, axis=None):
    x, v = lift(arr) if axis is not None else ravel(lift(arr)), lift(values, 2)
    i = 0 if axis is None else axis_number(axis, x.ndim)
    where = lift(obj, 1)
    if where.dtype.kind not in 'iu' or where.ndim > 1:
        refuse(f'the place is {where} of {where.dtype}', 'a whole number, or one axis of them', where, operand=1)
    if v.ndim > x.ndim: refuse('the values have more axes than the array', f'at most {x.ndim} axes', v, operand=2)
    v = expand_dims(v, tuple(range(x.ndim - v.ndim))) if v.ndim < x.ndim else v
    if not where.axes: v = moveaxis(v, 0, i)
    _between(where, x.axes[i].size)
    count = v.axes[i].size if not where.axes else _a_value_each(where.axes[0].size, v.axes[i].size)
    slot = Array((*x.axes[:i], axis_(count), *x.axes[i + 1:]), x.dtype)
    stored(Array((Axis(b.size, one='written') for b in v.axes), x.dtype), slot)
    return ranged(Array((*x.axes[:i], axis_(x.axes[i].size + count), *x.axes[i + 1:]), x.dtype), union(range_of(x), range_of(v)))


# %%
#| export
def _a_value_each(places: Dim, values: Dim) -> Dim:
    if values != 1 and not (verdict := same(places, values)).holds: refuse('a value for each place', places, values, verdict=verdict, operand=2)
    return places

def _between(where: Array, size: Dim) -> None:
    "Refuse a place that may be neither before, between nor after the entries."
    r = range_of(where)
    if r == GIVEN: return
    for end, op, limit in ((r.high, '<=', size), (r.low, '>=', -size)):
        if end is None: refuse(f'nothing bounds the place, and there are {size} entries', f'0 to {size}', r, f'np.clip(..., 0, {size})', operand=1)
        if not (verdict := holds(claim(end, op, limit))).holds:
            refuse(f'the place {end} of {size} entries', f'{end} {op} {limit}', end, add_where(claim(end, op, limit)) if verdict.fails_at else '', verdict, 1)


# %% [markdown]
# ## Another length

# %%
#| export
@rule(np.resize)
def resize(a, new_shape): return ranged(Array(map(axis, shape_of(new_shape)), lift(a).dtype), union(range_of(lift(a)), from_to(0, 0)))

@rule(np.ediff1d)
def ediff1d(ary, to_end=None, to_begin=None):
    x = lift(ary)
    size = entries(x) - 1 if branch(claim(entries(x), '>=', 1)) else Dim(0)
    for more in (to_end, to_begin):
        if more is None: continue
        if not np.can_cast(lift(more).dtype, x.dtype, 'same_kind'): refuse(f'{lift(more).dtype} among differences of {x.dtype}', x.dtype, lift(more).dtype)
        size = size + entries(lift(more))
    return Array((axis(size),), dtypes(np.subtract, [x, x])[0])


# %%
#| export
@rule(np.trim_zeros)
def trim_zeros(filt, trim='fb', axis=None):
    x = lift(filt)
    if x.ndim != 1: refuse('one axis is needed', 'Vec<n>', x, operand=0)
    return view(x, Array((some(x.axes[0].size),), x.dtype))


# %%
#| export
@rule(np.packbits)
def packbits(a, axis=None, bitorder='big'):
    x = lift(a) if axis is not None else ravel(lift(a))
    i = 0 if axis is None else axis_number(axis, x.ndim)
    if x.dtype.kind not in 'iub': refuse(f'bits of {x.dtype}', 'whole numbers or truth values', x, operand=0)
    return Array((*x.axes[:i], axis_((x.axes[i].size + 7)//8), *x.axes[i + 1:]), np.uint8)

@rule(np.unpackbits)
def unpackbits(a, axis=None, count=None, bitorder='big'):
    x = lift(a) if axis is not None else ravel(lift(a))
    i = 0 if axis is None else axis_number(axis, x.ndim)
    if x.dtype != np.uint8: refuse(f'bytes of {x.dtype}', 'uint8', x, operand=0)
    size = 8*x.axes[i].size if count is None else shape_of(count)[0]  # more than there are may be anything
    return ranged(Array((*x.axes[:i], axis_(size), *x.axes[i + 1:]), np.uint8), from_to(0, 1 if count is None else 255))


# %% [markdown]
# ## NumPy 2's names
#
# New functions that do what others do.

# %%
#| export
def _newer(name: str, shape: Any) -> None:
    "The rule of a function that older versions of NumPy lack."
    if f := getattr(np, name, None): rule(f)(shape)

_newer('row_stack', vstack)


# %%
#| export
def _cumulative(x, /, *, axis=None, dtype=None, out=None, include_initial=False):
    v = lift(x)
    if axis is None and v.ndim != 1: refuse('say along which axis', 'Vec<n>, or axis=', v, operand=0)
    i = axis_number(0 if axis is None else axis, v.ndim)
    result = cumulative(v, i, dtype)
    if include_initial: result = Array((*v.axes[:i], axis_(v.axes[i].size + 1), *v.axes[i + 1:]), result.dtype)
    return filled(result, out)

for _name in ('cumulative_sum', 'cumulative_prod'): _newer(_name, _cumulative)


# %%
#| export
def _unstack(x, /, *, axis=0):
    v = lift(x)
    i = axis_number(axis, v.ndim)
    if (n := v.axes[i].size.const) is None: refuse(f'{v.axes[i].size} arrays', 'a known number', v.axes[i].size, 'loop over the array, or index it', operand=0)
    return tuple(view(v, Array((*v.axes[:i], *v.axes[i + 1:]), v.dtype)) for _ in range(n))

_newer('unstack', _unstack)
_newer('astype', lambda x, dtype, /, *, copy=True, device=None: OPS['astype'].shape(lift(x), dtype, copy=copy))


# %% [markdown]
# ## Writing where a mask says

# %%
#| export
@rule(np.putmask, np.place)
def putmask(a, mask, values):
    if type(a) is not Array: OPS['written to'].shape(a)
    _same_shape(a, lift(mask, 1))
    not_empty([entries(lift(values, 2))], lift(values))
    written(a, range_of(lift(values)))


# %%
from bendml.shape.trace import Trace, tracing
from bendml.shape.messages import ShapeError
n, m = map(Dim, 'nm')
with tracing(Trace()):
    x = Array([axis(n), axis(m)])
    print(np.rot90(x), np.insert(x, 0, 1.0, axis=1), np.block([[x, x[:, :1]], [x[:1], np.zeros((1, 1))]]), np.dstack([x, x]))
    try: np.insert(x, x.shape[0] + 1, 0.0, axis=0)
    except ShapeError as e: print(e)

# %% [markdown]
# ## What this does not show
#
# `x.resize(...)` changes the shape of an array where it is, for everyone who holds it: it has no rule, `np.resize` has.
