# %%
#| default_exp shape.joining

# %% [markdown]
# # Joining and splitting
# > Concatenating, stacking, splitting, repeating, padding: where sizes add up and where they must agree.

# %%
#| hide
#| export
from functools import reduce
from typing import Any

import numpy as np

from bendml.shape.sizes import Dim
from bendml.shape.facts import claim
from bendml.shape.trace import holds, refuse
from bendml.shape.symbols import METHODS, OPS, Array, Axis, as_dim, axis, inherit, is_symbolic, rule
from bendml.shape.ranges import Range, converted, copied, range_of, ranged, union, unknown, view
from bendml.shape.elementwise import filled, lift, same
from bendml.shape.reductions import axis_, axis_number, not_empty
from bendml.shape.moves import _sizes, expand_dims, ravel, shape_of


# %% [markdown]
# ## Joining
#
# Along the axis of joining the sizes add up; elsewhere they must be equal. A list that grew in a loop stands for as many
# rows as the loop has turns.

# %%
#| export
def members(arrays: Any) -> list[tuple[Array, Dim]]:
    "The arrays of a list or tuple, each with how often it occurs."
    if type(arrays) is Array: return [(arrays[0], arrays.axes[0].size)]
    if getattr(arrays, 'lazy', False) or not hasattr(arrays, '__getitem__') and not hasattr(arrays, 'counted'):
        refuse('NumPy takes a list or tuple here', 'a list', 'a map' if hasattr(arrays, 'lazy') else type(arrays).__name__, 'write list(...) around it', operand=0)
    if hasattr(arrays, 'counted'): return [(lift(a), n) for a, n in arrays.counted()]
    return [(lift(a), Dim(1)) for a in arrays]


# %%
#| export
@rule(np.concatenate)
def concatenate(arrays, axis=0, out=None, dtype=None, casting=None):
    found = members(arrays)
    if not found: refuse('nothing to join', 'at least one array', 'an empty list')
    if axis is None: found, axis = [(ravel(a), n) for a, n in found], 0
    first = found[0][0]
    if not first.axes: refuse('numbers cannot be joined', 'at least one axis', 'a number', 'write np.stack, or np.array')
    i, total = axis_number(axis, first.ndim), Dim(0)
    for k, (x, n) in enumerate(found):
        _same_elsewhere(first, x, i, k)
        total = total + x.axes[i].size*n
    whole = first.axes[i] if len(found) == 1 and found[0][1] == 1 else inherit(axis_(total), *(x.axes[i] for x, _ in found))
    kind = dtype or np.result_type(*(x.dtype for x, _ in found))
    return filled(ranged(Array((*first.axes[:i], whole, *first.axes[i + 1:]), kind), _together(found)), out)


# %%
#| export
def _together(found: list[tuple[Array, Dim]]) -> Range: return reduce(union, (range_of(x) for x, _ in found))


# %%
#| export
def _same_elsewhere(first: Array, x: Array, i: int | None, k: int) -> None:
    if x.ndim != first.ndim: refuse(f'part {k} has {x.ndim} axes, the first {first.ndim}', first, x, operand=0)
    for j, (a, b) in enumerate(zip(first.axes, x.axes)):
        if j == i or (verdict := same(a.size, b.size)).holds: continue
        others = [] if i is None else [c for c in range(first.ndim) if all(p.size == q.size for d,
                                                      (p, q) in enumerate(zip(first.axes, x.axes)) if d != c)]
        refuse(f'part {k} differs along axis {j}', first, x, f'axis={others[0]} fits' if others else '', verdict, 0)


# %%
#| export
@rule(np.stack)
def stack(arrays, axis=0, out=None, *, dtype=None, casting=None):
    found = members(arrays)
    if not found: refuse('nothing to stack', 'at least one array', 'an empty list')
    first, total = found[0][0], Dim(0)
    for k, (x, n) in enumerate(found):
        _same_elsewhere(first, x, None, k)
        total = total + n
    i = axis_number(axis, first.ndim + 1)
    kind = dtype or np.result_type(*(x.dtype for x, _ in found))
    whole = axis_(total)
    return filled(ranged(Array((*first.axes[:i], whole, *first.axes[i:]), kind), _together(found)), out)


# %%
#| export
def _each(arrays: Any, change) -> Any:
    "A list of arrays with each one changed, counts kept."
    return Counted([(change(x), n) for x, n in members(arrays)])


# %%
#| export
class Counted:
    "Arrays with how often each occurs."
    def __init__(self, pairs): self.pairs = pairs
    def counted(self): return self.pairs


# %%
#| export
@rule(np.vstack)
def vstack(tup, **kwargs): return concatenate(_each(tup, lambda x: OPS[np.atleast_2d].shape(x)), 0)


# %%
#| export
@rule(np.hstack)
def hstack(tup, **kwargs):
    flat = _each(tup, lambda x: OPS[np.atleast_1d].shape(x))
    return concatenate(flat, 0 if flat.pairs[0][0].ndim == 1 else 1)


# %%
#| export
@rule(np.column_stack)
def column_stack(tup): return concatenate(_each(tup, lambda x: expand_dims(x, 1) if x.ndim == 1 else x), 1)

@rule(np.append)
def append(arr, values, axis=None):
    return concatenate([arr, values] if axis is not None else [ravel(arr), ravel(values)], axis or 0)


# %%
#| export
@rule(np.asarray, np.asanyarray)
def asarray(a, dtype=None, *_, ndmin=0, **__):
    if type(a) is Array or not isinstance(a, list | tuple): x = lift(a)
    elif not is_symbolic(a): x = lift(np.asarray(a))
    else: x = stack(a)
    if dtype is not None and x.dtype != dtype: x = converted(x, Array(x.axes, dtype, x.lost))
    return expand_dims(x, tuple(range(ndmin - x.ndim))) if ndmin > x.ndim else x

@rule(np.array)
def array(a, *args, copy=True, **kwargs):
    x = asarray(a, *args, **kwargs)
    return copied(x, Array(x.axes, x.dtype, x.lost)) if copy is True else x


# %% [markdown]
# ## Splitting

# %%
#| export
def _pieces(x: Array, i: int, starts: list[Dim], ends: list[Dim]) -> list[Array]:
    for a, b in zip(starts, ends):
        if not (verdict := holds(claim(a, '<=', b))).holds:
            refuse(f'a piece from {a} to {b}', f'{a} <= {b}', f'{a} > {b}', verdict=verdict, operand=1)
    return [view(x, Array((*x.axes[:i], inherit(axis(b - a), x.axes[i]), *x.axes[i + 1:]), x.dtype)) for a, b in zip(starts, ends)]


# %%
#| export
@rule(np.split)
def split(ary, indices_or_sections, axis=0):
    x = lift(ary)
    i, parts = axis_number(axis, x.ndim), indices_or_sections
    whole = x.axes[i].size
    if (n := as_dim(parts)) is None: cuts = [_within(whole, c) for c in _sizes(parts)]
    else:
        if n.const is None or n.const < 1: refuse(f'split into {n} pieces', 'a known number of pieces', n, operand=1)
        if not (verdict := holds(claim(whole % n, '==', 0))).holds:
            refuse(f'{whole} is split into {n} equal pieces', f'a multiple of {n}', whole,
                   f'add where=["{whole} % {n} == 0"], or declare a size of {n}*...', verdict, 0)
        cuts = [whole//n*k for k in range(1, n.const)]
    return _pieces(x, i, [Dim(0), *cuts], [*cuts, whole])


# %%
#| export
def _within(whole: Dim, cut: Dim) -> Dim:
    if not (verdict := holds(claim(cut, '<=', whole))).holds:
        refuse(f'a cut at {cut} of {whole} entries', f'{cut} <= {whole}', cut, verdict=verdict, operand=1, given='an empty piece is not meant')
    if not (verdict := holds(claim(cut, '>=', 0))).holds: refuse(f'a cut at {cut}', f'{cut} >= 0', cut, verdict=verdict, operand=1)
    return cut


# %%
#| export
@rule(np.array_split)
def array_split(ary, indices_or_sections, axis=0):
    x, n = lift(ary), as_dim(indices_or_sections)
    if n is None: return split(ary, indices_or_sections, axis)
    i = axis_number(axis, x.ndim)
    if n.const is None or n.const < 1: refuse(f'split into {n} pieces', 'a known number of pieces', n, operand=1)
    whole = x.axes[i].size
    sizes = [(whole + n.const - 1 - k)//n for k in range(n.const)]  # the first ones are longer by one
    return [view(x, Array((*x.axes[:i], inherit(axis_(s), x.axes[i]), *x.axes[i + 1:]), x.dtype)) for s in sizes]


# %%
#| export
@rule(np.vsplit)
def vsplit(ary, indices_or_sections):
    if lift(ary).ndim < 2: refuse('at least two axes are needed', 'Mat<m, n>', lift(ary), 'write np.split', operand=0)
    return split(ary, indices_or_sections, 0)

@rule(np.hsplit)
def hsplit(ary, indices_or_sections): return split(ary, indices_or_sections, 0 if lift(ary).ndim == 1 else 1)


# %% [markdown]
# ## Repeating

# %%
#| export
@rule(np.repeat)
def repeat(a, repeats, axis=None):
    x = lift(a) if axis is not None else ravel(a)
    i = 0 if axis is None else axis_number(axis, x.ndim)
    n = as_dim(repeats)
    if n is None:
        return copied(x, Array((*x.axes[:i], unknown('k'), *x.axes[i + 1:]), x.dtype)) if _one_each(x.axes[i], lift(repeats)) else None
    shape_of(n)
    return copied(x, Array((*x.axes[:i], inherit(axis_(x.axes[i].size*n), x.axes[i]), *x.axes[i + 1:]), x.dtype))


# %%
#| export
def _one_each(a: Axis, counts: Array) -> bool:
    if counts.ndim != 1 or not (same(counts.axes[0].size, a.size)).holds:
        refuse('one count for each entry', f'Vec<{a.size}>', counts, operand=1)
    return True


# %%
#| export
@rule(np.tile)
def tile(A, reps):
    x, n = lift(A), shape_of(reps)
    rank = max(x.ndim, len(n))
    own = [axis(1)]*(rank - x.ndim) + list(x.axes)
    return copied(x, Array((a if r == 1 else inherit(axis(a.size*r), a) for a, r in zip(own, [Dim(1)]*(rank - len(n)) + n)), x.dtype))


# %%
#| export
@rule(np.pad)
def pad(array, pad_width, mode='constant', **_):
    x = lift(array)
    if mode != 'constant': not_empty(list(x.sizes), x)
    width = pad_width if isinstance(pad_width, list | tuple) else (pad_width,)
    if all(as_dim(w) is not None for w in width): width = [tuple(width)*(3 - len(width))]
    width = [tuple(w)*(3 - len(w)) if isinstance(w, list | tuple) else (w, w) for w in width]
    if len(width) == 1: width = width*x.ndim
    if len(width) != x.ndim: refuse('a width for each axis', f'{x.ndim} widths', f'{len(width)} widths', operand=1)
    return Array((a if before == after == 0 else inherit(axis(a.size + b + c), a) for a, (before, after) in zip(x.axes, width) for b,
                  c in [shape_of((before, after))]), x.dtype)


# %%
#| export
METHODS |= {'repeat': np.repeat}

# %%
from bendml.shape.trace import Trace, tracing
from bendml.shape.messages import ShapeError
B, C = map(Dim, 'BC')
with tracing(Trace()):
    x, y = Array([axis(B), axis(C)]), Array([axis(B), axis(3)])
    print(np.concatenate([x, y], axis=1), np.stack([x, x]), [str(p) for p in np.split(np.concatenate([x, x, x], -1), 3, axis=-1)])
    try: np.concatenate([x, y])
    except ShapeError as e: print(e)

# %% [markdown]
# ## What this does not show
#
# `np.pad` with widths that only the numbers know, and `np.repeat` with a count for each entry, give a size that nobody has named.
