# %%
#| default_exp shape.moves

# %% [markdown]
# # Moving axes
# > Transposing, reshaping, axes of size 1: the same numbers in another order.

# %%
#| hide
#| export
from typing import Any, Iterable

import numpy as np

from bendml.shape.sizes import Dim, Floor
from bendml.shape.facts import claim
from bendml.shape.annotations import spelled
from bendml.shape.trace import add_where, current, holds, refuse
from bendml.shape.symbols import METHODS, Array, Axis, as_dim, axis, entries, inherit, rule
from bendml.shape.ranges import as_size, copied, locked, range_of, ranged, view
from bendml.shape.elementwise import broadcast, dtypes, lift, same, unstretched
from bendml.shape.reductions import axis_number, axis_numbers


# %% [markdown]
# ## Transposing
#
# The axes move and keep their identity, so a transposed weight is known to be one.

# %%
#| export
@rule(np.transpose, np.permute_dims)
def transpose(a, axes=None):
    x = lift(a)
    order = tuple(range(x.ndim))[::-1] if axes is None else axis_numbers(tuple(axes), x.ndim)
    if len(order) != x.ndim: refuse('every axis must be named once', f'{x.ndim} axes', f'{len(order)} axes', operand=1)
    return view(x, Array((x.axes[i] for i in order), x.dtype))


# %%
#| export
@rule('transpose')
def transpose_method(a, *axes):
    return transpose(a, axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes or None)


# %%
#| export
@rule(np.swapaxes)
def swapaxes(a, axis1, axis2):
    x = lift(a)
    order = list(range(x.ndim))
    i, j = axis_number(axis1, x.ndim), axis_number(axis2, x.ndim)
    order[i], order[j] = j, i
    return transpose(x, order)


# %%
#| export
@rule(np.moveaxis)
def moveaxis(a, source, destination):
    x = lift(a)
    come, go = axis_numbers(source, x.ndim), axis_numbers(destination, x.ndim)
    if len(come) != len(go): refuse('as many sources as destinations', len(come), len(go), operand=2)
    order = [i for i in range(x.ndim) if i not in come]
    for to, i in sorted(zip(go, come)): order.insert(to, i)
    return transpose(x, order)


# %%
#| export
@rule(np.matrix_transpose)
def matrix_transpose(a): return swapaxes(a, -1, -2)

METHODS |= {'transpose': 'transpose', 'swapaxes': np.swapaxes}
Array.T = property(lambda self: transpose(self))
Array.mT = property(lambda self: swapaxes(self, -1, -2))
Array.real = property(lambda self: view(self, Array(self.axes, dtypes(np.absolute, [self])[0])))
Array.imag = property(lambda self: (view if self.dtype.kind == 'c' else _zeros)(self, Array(self.axes, dtypes(np.absolute, [self])[0])))

def _zeros(x: Array, new: Array) -> Array: return locked(ranged(new, range_of(0)))  # what a real array has for imaginary parts

@rule(np.real)
def real(val): return lift(val).real

@rule(np.imag)
def imag(val): return lift(val).imag


# %% [markdown]
# ## Reshaping
#
# The number of entries must stay the same, for every size; `-1` asks for what is left. The entries keep their order: axes
# are merged and split, never moved. Where an axis would change places, as in `(H, T, D)` to `(T, H*D)`, numbers would be
# mixed that have nothing to do with each other, so that is refused: transpose first.

# %%
#| export
def _sizes(shape: Any) -> list[Dim]:
    "A shape argument as sizes."
    found, several = [], isinstance(shape, tuple | list | np.ndarray) and not (type(shape) is Array and not shape.axes)
    for n in shape if several else (shape,):
        dim = as_dim(n)
        if type(n) is Array and not n.axes and n.dtype.kind in 'iu': dim = as_size(n)
        if dim is None:
            refuse(f'a shape holds {"a number that is not known" if type(n) is Array else repr(n)}', 'a whole number', n,
                   'write // instead of /' if type(n) is Array and n.dtype.kind == 'f' else 'a size read from numbers must be declared')
        found.append(dim)
    return found


# %%
#| export
def _positive(dim: Dim) -> str:
    if "'" in str(dim): return 'write // for /, or max(..., 0)'  # a number that nobody has named
    return add_where(claim(dim, '>=', 0))


# %%
#| export
def shape_of(shape: Any) -> list[Dim]:
    "A shape argument as sizes that are at least 0."
    for dim in (found := _sizes(shape)):
        if not (verdict := holds(claim(dim, '>=', 0))).holds: refuse(f'{dim} can be negative', f'{dim} >= 0', dim, _positive(dim), verdict)
    return found


# %%
#| export
@rule(np.reshape)
def reshape(a, shape=None, order='C', *, newshape=None, copy=None):
    x, target = lift(a), _sizes(shape if shape is not None else newshape)
    if order not in ('C', 'A'): refuse(f'order={order!r} has no rule', 'C', order)
    total = current().facts.normal(entries(x))
    if target.count(-1) > 1: refuse('more than one -1', 'one -1', target.count(-1), operand=1)
    if -1 in target: target = _fill(x, total, target)
    product = Dim(1)
    for t in target: product = product*t
    verdict = same(product, total)
    if not verdict.holds:
        given = '' if all(holds(claim(t, '>=', 0)).holds for t in target) else 'a size below 0 is none'  # NumPy may fill it in
        refuse(f'{entries(x)} entries cannot become {"*".join(map(str, target))}', entries(x), product, _divisible(x, target),
               verdict, 1, given)
    for t in target:
        if not (positive := holds(claim(t, '>=', 0))).holds:
            refuse(f'{t} can be negative', f'{t} >= 0', t, verdict=positive, operand=1)
    return view(x, Array(_regrouped(x, target), x.dtype))


# %%
#| export
def _fill(x: Array, total: Dim, target: list[Dim]) -> list[Dim]:
    "Put the size that is left in the place of -1."
    rest = Dim(1)
    for t in target:
        if t != -1: rest = rest*t
    if not (verdict := holds(claim(rest, '>=', 1))).holds:
        refuse(f'-1 needs the other sizes to be at least 1, and {rest} can be 0', f'{rest} >= 1', rest, verdict=verdict, operand=1)
    rest = current().facts.normal(rest)
    if not (verdict := holds(claim(total % rest, '==', 0))).holds:
        refuse(f'{total} entries cannot be split into groups of {rest}', f'a multiple of {rest}', total, _divisible(x, target),
               verdict, 1)
    return [(entries(x)//rest if len(target) > 1 else entries(x)) if t == -1 else t for t in target]


# %%
#| export
def _divisible(x: Array, target: list[Dim]) -> str:
    "A hint for a quotient that does not come out."
    for t in target:
        for m, _ in t.terms:
            for atom, _ in m:
                if isinstance(atom, Floor):
                    return f'{atom.num} need not be divisible by {atom.den}: declare it as a product, or add where=["{atom.num} % {atom.den} == 0"]'
    if x.ndim > 1 and len(target) == 1: return ''
    return ''


# %%
#| export
def _regrouped(x: Array, target: list[Dim]) -> tuple[Axis, ...]:
    "Merge and split axes in order; those that come through whole keep their identity."
    if _total(x.sizes) == 0: return tuple(map(axis, target))
    own = [a for a in x.axes if a.size != 1]
    axes, todo = [], list(target)
    while todo:
        if current().facts.normal(todo[0]) == 1: axes.append(axis(todo.pop(0))); continue
        group, wanted = [own.pop(0)] if own else [], [todo.pop(0)]
        while (left := _total(a.size for a in group)) != (right := _total(wanted)):
            if own and (not todo or _divides(left, right)): group.append(own.pop(0))
            elif todo: wanted.append(todo.pop(0))
            else: break
        axes += _group(x, group, wanted, target)
    return tuple(axes)


# %%
#| export
def _total(sizes: Iterable[Dim]) -> Dim:
    product = Dim(1)
    for s in sizes: product = product*s
    return current().facts.normal(product)


# %%
#| export
def _divides(a: Dim, b: Dim) -> bool: return a != 0 and current().facts.normal(b % a) == 0


# %%
#| export
def _group(x: Array, group: list[Axis], wanted: list[Dim], target: list[Dim]) -> list[Axis]:
    "The axes that one group of axes becomes."
    if len(group) == len(wanted) == 1: return [group[0]]
    if len(wanted) == 1:
        parts = tuple(p for a in group for p in (a.parts or (a.size,)))
        return [inherit(axis(wanted[0], parts=parts), *group)]
    if len(group) == 1: return _split_axis(group[0], wanted, x)
    moved = [w for w in wanted if w != 1 and any(same(w, a.size).holds for a in group) and w.const is None]
    if moved:
        refuse(f'the axis {moved[0]} would change places, and a reshape does not move entries', spelled(a.size for a in x.axes), spelled(target),
               f'transpose first, so that {moved[0]} stands where it should', operand=1)
    return [inherit(axis(w), *group) for w in wanted]


# %%
#| export
def _split_axis(a: Axis, wanted: list[Dim], x: Array) -> list[Axis]:
    "Split one axis; one that was merged comes apart in the order of its parts."
    parts = [p for p in a.parts if p != 1]
    asked = [w for w in wanted if w != 1]
    if len(parts) == len(asked) and parts != asked and sorted(map(str, parts)) == sorted(map(str, asked)):
        refuse(f'an axis that holds {"*".join(map(str, parts))} is split as {"*".join(map(str, asked))}: the same size in another order',
               '*'.join(map(str, parts)), '*'.join(map(str, asked)), operand=1)
    return [inherit(axis(w), a) for w in wanted]


# %%
#| export
@rule('reshape')
def reshape_method(a, *shape, order='C', **_): return reshape(a, shape[0] if len(shape) == 1 else shape, order)

@rule(np.ravel)
def ravel(a, order='C'): return reshape(a, (-1,)) if lift(a).ndim != 1 else lift(a)  # one axis, in whatever order

@rule('flatten')
def flatten(a, order='C'): return copied(a, Array(ravel(a).axes, a.dtype))

METHODS |= {'reshape': 'reshape', 'ravel': np.ravel, 'flatten': 'flatten'}
Array.flat = property(lambda self: ravel(self))


# %% [markdown]
# ## Axes of size 1

# %%
#| export
@rule(np.expand_dims)
def expand_dims(a, axis):
    x, new = lift(a), axis if isinstance(axis, tuple | list) else (axis,)
    places = axis_numbers(new, x.ndim + len(new))
    rest = iter(x.axes)
    return view(x,
                        Array((axis_(1, one='written') if i in places else next(rest) for i in range(x.ndim + len(places))), x.dtype))


# %%
#| export
axis_ = axis


# %%
#| export
@rule(np.squeeze)
def squeeze(a, axis=None):
    x = lift(a)
    if axis is None:
        for i, b in enumerate(x.axes):
            if b.size != 1 and not holds(claim(b.size, '!=', 1)).holds:
                refuse(f'the number of axes of the result depends on {b.size}', f'{b.size} != 1, or axis={i}', x,
                       'say which axis: squeeze(axis=...)', holds(claim(b.size, '!=', 1)), 0)
        return view(x, Array((b for b in x.axes if b.size != 1), x.dtype))
    gone = axis_numbers(axis, x.ndim)
    for i in gone:
        if not (verdict := same(x.axes[i].size, Dim(1))).holds:
            refuse(f'axis {i} has size {x.axes[i].size}', 1, x.axes[i].size, verdict=verdict, operand=1)
    return view(x, Array((b for i, b in enumerate(x.axes) if i not in gone), x.dtype))


# %%
#| export
METHODS['squeeze'] = np.squeeze


# %%
#| export
def _at_least(n: int, functions):
    for f in functions:
        @rule(f)
        def at_least(*arrays, n=n):
            results = [x if (x := lift(a)).ndim >= n else view(x, Array((*(axis_(1) for _ in range(n - x.ndim)), *x.axes), x.dtype)) for a in arrays]
            return results[0] if len(results) == 1 else tuple(results)


# %%
#| export
_at_least(1, [np.atleast_1d])
_at_least(2, [np.atleast_2d])


# %%
#| export
@rule(np.broadcast_to)
def broadcast_to(array, shape, subok=False):
    x, sizes = lift(array), shape_of(shape)
    if x.ndim > len(sizes): refuse('more axes than the shape has', spelled(sizes), x, operand=0)
    for a, s in zip(x.axes[::-1], sizes[::-1]):
        if a.size != 1 and not same(a.size, s).holds:
            refuse('this does not stretch to that shape', spelled(sizes), x, verdict=unstretched(a.size, s, a.size), operand=0)
    own = (None,)*(len(sizes) - x.ndim) + x.axes
    return locked(view(x, Array((axis(s, one='written' if s == 1 else '') if a is None or a.size != s else a for a, s in zip(own, sizes)), x.dtype)))


# %%
#| export
@rule(np.broadcast_arrays)
def broadcast_arrays(*arrays, subok=False):
    sizes = lift(arrays[0]).axes
    for a in arrays[1:]: sizes = broadcast(Array(sizes), lift(a))
    return tuple(view(x := lift(a), Array(sizes, x.dtype)) for a in arrays)


# %%
from bendml.shape.trace import Trace, tracing
from bendml.shape.messages import ShapeError
B, T, H, D = map(Dim, 'BTHD')
with tracing(Trace()):
    x = Array([axis(B), axis(T), axis(H*D)])
    heads = x.reshape(B, T, H, D).transpose(0, 2, 1, 3)
    print(heads, heads.transpose(0, 2, 1, 3).reshape(B, T, -1), np.expand_dims(x, 0))
    try: heads.reshape(B, T, H*D)
    except ShapeError as e: print(e)

# %% [markdown]
# ## What this does not show
#
# A wrong transpose that is followed by no reshape and no product with a named axis goes unseen if the sizes agree.
