# %%
#| default_exp shape.products

# %% [markdown]
# # Products
# > Rows of the left against columns of the right: what must be equal, and which axis of a weight may meet which.

# %%
#| hide
#| export
from dataclasses import replace
from typing import Iterable

import numpy as np

from bendml.shape.sizes import Dim
from bendml.shape.annotations import spelled
from bendml.shape.trace import current, refuse
from bendml.shape.symbols import METHODS, OPS, Array, Axis, axis, number, rule
from bendml.shape.ranges import view
from bendml.shape.elementwise import asked, broadcast, dtypes, elementwise, filled, lift, same, unstretched
from bendml.shape.reductions import axis_numbers


# %% [markdown]
# ## Contraction
#
# In a product, one axis of the left meets one of the right and both disappear. Their sizes must be equal. If one belongs to
# a stored weight, there is more to ask: an activation meets the weight's *in* axis, a gradient on its way back meets its
# *out* axis. For a square weight that is the only thing that tells `x @ w` from `x @ w.T`.

# %%
#| export
def meet(a: Axis, b: Axis, left: Array, right: Array) -> None:
    "Refuse two axes that may not be summed over together, for their roles or their order."
    for own, other, weight, who in ((b, a, right, 1), (a, b, left, 0)):
        if own.role == 'in' and other.role == 'grad':
            refuse('a gradient meets the in axis of a weight; on the way back it meets the out axis', 'the axis out',
                   'the axis in', 'transpose the weight', operand=who)
        if own.role == 'out' and other.role == '' and other.id != own.id:  # what came out of it may go back the same way
            refuse('an activation meets the out axis of a weight', 'the axis in', 'the axis out',
                   'the weight is stored the other way round: transpose it, or write Grad[...] around the annotation of a gradient', operand=who)
    if a.parts and b.parts and a.parts != b.parts and sorted(map(str, a.parts)) == sorted(map(str, b.parts)):
        order = ['*'.join(map(str, p)) for p in (b.parts, a.parts)]
        refuse('an axis was merged in another order than the weight expects', order[0], order[1],
               'transpose before the reshape that merged it', operand=0)


# %% [markdown]
# The gradient of a weight, `x.T @ dy`, is a contraction over the batch. What is left is an in axis and an out axis, in the
# order in which the product was written, so that `dy.T @ x` is seen to be the other way round.

# %%
#| export
def _roles(a: Axis, b: Axis, left: Axis | None, right: Axis | None) -> tuple[Axis | None, Axis | None]:
    "The two axes that remain, with the roles that they now have."
    def remains(own, other, met, met_by):
        if own is None: return None
        if met.role in ('in', 'out') or met_by.role in ('in', 'out'):
            return replace(own,
                           role='grad' if 'grad' in (met.role, met_by.role) or met.id == met_by.id else '' if own.role in ('in', 'out') else own.role)
        if 'grad' in (met.role, met_by.role): return replace(own, role=own.role or 'grad')
        if other is not None and own.role == 'grad': return replace(own, role='out')
        if other is not None and other.role == 'grad' and own.role == '': return replace(own, role='in')
        return own
    return remains(left, right, a, b), remains(right, left, b, a)


# %%
#| export
def _remaining(met: list[tuple[Axis, Axis]], left: tuple[Axis, ...], right: tuple[Axis, ...]) -> tuple[tuple[Axis, ...], tuple[Axis, ...]]:
    "The axes that remain on each side of any product; of several, the last are those of a matrix."
    one, two = left[-1] if left else None, right[-1] if right else None
    if met: one, two = _roles(*max(met, key=lambda pair: bool(pair[0].role or pair[1].role)), one, two)
    elif one and two and 'grad' in (one.role, two.role): one, two = (replace(v, role='out' if v.role == 'grad' else 'in') for v in (one, two))
    return (*left[:-1], one) if one else (), (*right[:-1], two) if two else ()


# %%
#| export
def apart(axes: tuple[Axis, ...], new: Axis) -> Axis:
    "An axis for a result that may already have one with this identity."
    return replace(new, id=axis(1).id) if new.size != 1 and new.id in {a.id for a in axes} else new


# %% [markdown]
# A sum over an axis that `keep=` names leaves nothing of it, unless the result still has an axis of that size, as in
# attention, where each time step becomes a mixture of all.

# %%
#| export
def _summed_over(gone: tuple[Axis, ...], axes: tuple[Axis, ...]) -> None:
    "Refuse a product that sums over a kept axis of which the result has nothing left."
    kept = current().state.get('kept', {})
    for a in gone:
        if a.id in kept and not any(kept.get(b.id) == kept[a.id] or b.size == a.size for b in axes):
            refuse(f'sums over an axis that is {kept[a.id]}: keep={kept[a.id]!r} says that nothing may', hint='is it the right way round?')

def _made(axes: Iterable[Axis]) -> tuple[Axis, ...]:
    "The axes of a product: a 1 that was written in an operand is not written here."
    return tuple(replace(a, one='') if a.one == 'written' else a for a in axes)


# %%
#| export
@rule(np.matmul)
def matmul(a, b, out=None, **_):
    x, y = lift(a, 0), lift(b, 1)
    for i, v in enumerate((x, y)):
        if not v.axes: refuse('one side is a number', 'at least one axis', 'a number', 'write * to scale', operand=i)
    row, column = x.axes[-1], y.axes[-2 if y.ndim > 1 else -1]
    verdict = same(row.size, column.size)
    if not verdict.holds:
        wanted = (*y.sizes[:-2], row.size, y.sizes[-1]) if y.ndim > 1 else (row.size,)
        refuse(f'the left side has {row.size} columns, the right side {column.size} rows', spelled(wanted), spelled(y.sizes),
               _transposed(x, y), verdict, 1)
    meet(row, column, x, y)
    batch = broadcast(Array(x.axes[:-2]), Array(y.axes[:-2])) if x.ndim > 2 or y.ndim > 2 else ()
    left, right = _roles(row, column, x.axes[-2] if x.ndim > 1 else None, y.axes[-1] if y.ndim > 1 else None)
    axes = (*batch, *((left,) if left else ()))
    if right: axes = (*axes, apart(axes, right))
    _summed_over((row, column), axes)
    return filled(Array((*batch, *_made(axes[len(batch):])), dtypes(np.matmul, [Array(x.axes[:1], x.dtype), Array(y.axes[:1], y.dtype)])[0]), out)


# %%
#| export
def _transposed(x: Array, y: Array) -> str:
    "Which side would fit if it were transposed."
    equal = lambda a, b: a.size == b.size
    if y.ndim == 2 and equal(x.axes[-1], y.axes[-1]): return '{it} is the other way round: write {it.T}'
    if y.ndim > 2 and equal(x.axes[-1], y.axes[-1]): return '{it} is the other way round: write {it}.swapaxes(-1, -2)'
    if y.ndim == x.ndim > 2 and all(map(equal, (*x.axes[:-2], x.axes[-1]), (*y.axes[:1:-1], y.axes[0]))):
        return '{it} has its axes in reverse order: write {it.T}.swapaxes(-1, -2)'  # what .T does to more than two
    if x.ndim > 1 and equal(x.axes[-2], y.axes[-2 if y.ndim > 1 else -1]):
        return 'the left side is the other way round: write ' + ('{0.T}' if x.ndim == 2 else '{0}.swapaxes(-1, -2)')
    if y.ndim > 1 and x.ndim > 1 and equal(y.axes[-1], x.axes[-2]) and all(map(equal, x.axes[-3::-1], y.axes[-3::-1])): return 'the two sides are swapped'
    product = Dim(1)
    for a in x.axes[1:]: product = product*a.size
    rows = y.axes[-2 if y.ndim > 1 else -1].size
    if product == rows: return f'flatten the left side first: .reshape({x.axes[0].size}, {rows})'
    if (d := (rows - x.axes[-1].size).const) is not None and abs(d) <= 2 and x.axes[-1].size.const is None:
        return f'the sizes differ by {abs(d)}: is a slice one too long or too short?'
    return ''


# %%
#| export
@rule(np.dot)
def dot(a, b, out=None):
    x, y = lift(a), lift(b)
    if not x.axes or not y.axes: return elementwise(np.multiply, [a, b], out)
    if y.ndim <= 2 and x.ndim <= 2: return matmul(a, b, out)
    return filled(_contract(x, y, (x.ndim - 1,), (y.ndim - 2 if y.ndim > 1 else 0,)), out)


# %%
#| export
def _contract(x: Array, y: Array, left: tuple[int, ...], right: tuple[int, ...]) -> Array:
    "Sum over pairs of axes; what remains stands in order, the left's first."
    for i, j in zip(left, right):
        if not (verdict := same(x.axes[i].size, y.axes[j].size)).holds:
            refuse(f'axis {i} of the left has size {x.axes[i].size}, axis {j} of the right {y.axes[j].size}', x.axes[i].size,
                   y.axes[j].size, verdict=verdict, operand=1)
        meet(x.axes[i], y.axes[j], x, y)
    own, others = (tuple(a for i, a in enumerate(v.axes) if i not in gone) for v, gone in ((x, left), (y, right)))
    axes, others = _remaining([(x.axes[i], y.axes[j]) for i, j in zip(left, right)], own, others)
    for b in others: axes = (*axes, apart(axes, b))
    _summed_over((*(x.axes[i] for i in left), *(y.axes[j] for j in right)), axes)
    return Array(_made(axes), dtypes(np.multiply, [x, y])[0])


# %%
#| export
@rule(np.tensordot)
def tensordot(a, b, axes=2):
    x, y = lift(a), lift(b)
    if isinstance(axes, int): axes = (tuple(range(x.ndim - axes, x.ndim)), tuple(range(axes)))
    left, right = (axis_numbers(n, v.ndim) for n, v in zip(axes, (x, y)))
    if len(left) != len(right): refuse('as many axes of the left as of the right', len(left), len(right), operand=2)
    return _contract(x, y, left, right)


# %%
#| export
@rule(np.inner)
def inner(a, b):
    x, y = lift(a), lift(b)
    return _contract(x, y, (x.ndim - 1,), (y.ndim - 1,)) if x.axes and y.axes else elementwise(np.multiply, [a, b])


# %%
#| export
@rule(np.vdot)
def vdot(a, b):
    flat = [OPS[np.ravel].shape(lift(v)) for v in (a, b)]
    return _contract(*flat, (0,), (0,))


# %%
#| export
@rule(np.outer)
def outer(a, b, out=None):
    flat = [OPS[np.ravel].shape(lift(v)) for v in (a, b)]
    (left,), (right,) = _remaining([], flat[0].axes, flat[1].axes)
    return filled(Array((left, apart((left,), right)), dtypes(np.multiply, flat)[0]), out)


# %%
#| export
METHODS |= {'dot': np.dot}


# %%
#| export
@rule(np.kron)
def kron(a, b):
    x, y = lift(a), lift(b)
    n = max(x.ndim, y.ndim)
    sizes = [(Dim(1),)*(n - v.ndim) + v.sizes for v in (x, y)]
    return Array((axis(s*t) for s, t in zip(*sizes)), dtypes(np.multiply, [x, y])[0])


# %%
#| export
@rule(np.cross)
def cross(a, b, axisa=-1, axisb=-1, axisc=-1, axis=None):
    axisa, axisb, axisc = (axisa, axisb, axisc) if axis is None else (axis,)*3
    moved = lambda v, i, j: v if (i, j) == (-1, -1) else OPS[np.moveaxis].shape(v, i, j)
    x, y = moved(lift(a), axisa, -1), moved(lift(b), axisb, -1)
    for i, v in enumerate((x, y)):
        if not v.axes or v.axes[-1].size != 3: refuse('vectors of 3 entries are needed along that axis', 3, v.axes[-1].size if v.axes else v, operand=i)
    return moved(Array(broadcast(x, y), dtypes(np.subtract, [x, y])[0]), -1, axisc)


# %% [markdown]
# ## einsum
#
# Each letter is an axis; equal letters must have equal sizes, and a letter that is missing on the right of the arrow is
# summed over.

# %%
#| export
@rule(np.einsum)
def einsum(subscripts, *operands, out=None, optimize=False, dtype=None, **_):
    if not isinstance(subscripts, str): refuse('the first argument is not text', "'ij,jk->ik'", subscripts)
    arrays = [lift(o, i + 1) for i, o in enumerate(operands)]
    asked(np.einsum, subscripts, *arrays)
    inputs, arrow, output = subscripts.replace(' ', '').partition('->')
    terms = inputs.split(',')
    if len(terms) != len(arrays): refuse(f'{subscripts!r} is for {len(terms)} arrays', len(terms), len(arrays), operand=0)
    ranks = [x.ndim - len(t.replace('...', '')) for t, x in zip(terms, arrays)]
    for t, x, extra in zip(terms, arrays, ranks):
        if extra < 0 or (extra and '...' not in t):
            refuse(f'{t!r} is for {len(t.replace("...", ""))} axes', f'{len(t.replace("...", ""))} axes', x)
    dots = 'ΑΒΓΔΕΖΗΘ'[:max(ranks, default=0)]  # letters for the axes that ... stands for
    terms = [t.replace('...', dots[len(dots) - extra:]) for t, extra in zip(terms, ranks)]
    if not arrow: output = dots + ''.join(sorted(c for c in set(''.join(terms)) - set(dots) if ''.join(terms).count(c) == 1))
    found, output = _letters(terms, arrays), output.replace('...', dots)
    if len(terms) == 2: found |= _sides(terms, arrays, output, found)
    axes = ()
    for c in output:
        if c not in found: refuse(f'{c!r} is on the right of the arrow only', 'a letter of the left', c, operand=0)
        axes = (*axes, apart(axes, found[c]))
    _summed_over(tuple(a for t, x in zip(terms, arrays) for c, a in zip(t, x.axes) if c not in output.replace('...', dots)), axes)
    result = Array(_made(axes), dtype or dtypes(np.multiply, [*arrays, *arrays][:2])[0])
    if len(arrays) == 1 and {*terms[0]} == {*output}: view(arrays[0], result)  # nothing is summed
    return filled(result, out)


# %%
#| export
def _sides(terms: list[str], arrays: list[Array], output: str, found: dict[str, Axis]) -> dict[str, Axis]:
    "The axes that stand on one side only, as a product of the two sides leaves them."
    met = [(arrays[0].axes[terms[0].index(c)], arrays[1].axes[terms[1].index(c)]) for c in dict.fromkeys(terms[0]) if c in terms[1] and c not in output]
    alone = [[c for c in dict.fromkeys(t) if c not in u and c in output] for t, u in (terms, terms[::-1])]
    new = _remaining(met, *(tuple(found[c] for c in letters) for letters in alone))
    return {c: a for letters, axes in zip(alone, new) for c, a in zip(letters, axes)}


# %%
#| export
def _letters(terms: list[str], arrays: list[Array]) -> dict[str, Axis]:
    "The axis that each letter stands for."
    found: dict[str, tuple[Axis, Array]] = {}
    for term, x in zip(terms, arrays):
        for c, a in zip(term, x.axes):
            b, y = found.get(c, (a, x))
            if b.size == 1 and y is not x: b = a  # a size 1 stretches, as everywhere
            verdict = same(a.size, b.size)
            if not verdict.holds and (a.size != 1 or y is x):
                if y is not x: verdict = unstretched(a.size, b.size, a.size, b.size)
                refuse(f'{c!r} stands for {b.size} and for {a.size}', b.size, a.size, verdict=verdict)
            if y is not x: meet(b, a, y, x)
            found[c] = (b, y)
    return {c: a for c, (a, _) in found.items()}


# %%
from bendml.shape.trace import Trace, tracing
from bendml.shape.messages import ShapeError
B, H, T, D = map(Dim, 'BHTD')
with tracing(Trace()):
    q, k = Array(map(axis, (B, H, T, D))), Array(map(axis, (B, H, T, D)))
    print(np.einsum('bhqd,bhkd->bhqk', q, k))
    try: q @ k
    except ShapeError as e: print(e)

# %% [markdown]
# ## What this does not show
#
# That `k` and `v`, of one shape, are not swapped.
