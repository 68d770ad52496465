# %%
#| default_exp shape.making

# %% [markdown]
# # Making arrays
# > Zeros, ranges, grids and diagonals of a size that is not known; and questions about shapes.

# %%
#| hide
#| export
from functools import reduce

import numpy as np

from bendml.shape.sizes import Dim
from bendml.shape.facts import claim
from bendml.shape.trace import branch, choose, holds, refuse
from bendml.shape.opaque import Opaque
from bendml.shape.symbols import METHODS, Array, Size, as_dim, axis, axis as new_axis, number, rule
from bendml.shape.ranges import TRUTH, as_size, below, bounded, copied, from_to, locked, range_of, ranged, union, unknown, view
from bendml.shape.operators import no_axes
from bendml.shape.elementwise import broadcast, lift, same
from bendml.shape.reductions import axis_number, axis_numbers
from bendml.shape.moves import _sizes, broadcast_to, ravel, shape_of


# %% [markdown]
# In a trace, `np.zeros((B, 3))` has a shape that is not known; these are reached when a traced function calls them.

# %%
#| export
@rule(np.full)
def full(shape, fill_value, dtype=None, **_):
    value, axes = lift(fill_value), [axis(s, one='declared' if s == 1 else '') for s in shape_of(shape)]
    if value.axes: broadcast_to(value, [a.size for a in axes])
    new = Array(axes, dtype if dtype is not None else value.dtype, sure=dtype is not None and type(dtype) is not Opaque)
    return copied(value, new) if axes else new  # one without axes can be changed under all its names: `c += 1`


# %%
#| export
def _new(f, value):
    @rule(f)
    def new(shape, dtype=None, *_, **__): return full(shape, value, np.float64 if dtype is None else dtype)


# %%
#| export
for _f, _value in ((np.zeros, 0), (np.ones, 1), (np.empty, 0)): _new(_f, _value)


# %%
#| export
@rule(np.full_like)
def full_like(a, fill_value, dtype=None, *_, shape=None, **__):
    x = lift(a)
    made = Array(x.axes if shape is None else full(shape, 0).axes, dtype if dtype is not None else x.dtype)
    if lift(fill_value).axes: broadcast_to(fill_value, made.sizes)
    return copied(lift(fill_value), made)


# %%
#| export
def _like(f, value):
    @rule(f)
    def like(a, dtype=None, *args, **kwargs): return full_like(a, value, dtype, *args, **kwargs)


# %%
#| export
for _f, _value in ((np.zeros_like, 0), (np.ones_like, 1), (np.empty_like, 0)): _like(_f, _value)

@rule(np.eye)
def eye(N, M=None, k=0, dtype=float, **_): return ranged(Array(map(axis, shape_of((N, N if M is None else M))), dtype), TRUTH)

@rule(np.identity)
def identity(n, dtype=float): return eye(n, dtype=dtype)

@rule(np.tri)
def tri(N, M=None, k=0, dtype=float): return eye(N, M, dtype=dtype)


# %%
#| export
@rule(np.tril, np.triu)
def tril(m, k=0):
    x = lift(m)
    if x.ndim < 2: refuse('a matrix is needed', 'Mat<m, n>', x, operand=0)
    return ranged(Array(x.axes, x.dtype), union(range_of(x), from_to(0, 0)))


# %%
#| export
@rule(np.arange)
def arange(start, stop=None, step=1, dtype=None, **_):
    if stop is None: start, stop = 0, start
    whole = lambda v: type(v) is Array and not v.axes and v.dtype.kind in 'iu'
    for v in (start, stop, step):
        if isinstance(v, list | tuple | np.ndarray) and lift(v).axes: no_axes(lift(v), 'np.arange')
    ends = [as_size(v) if whole(v) else as_dim(v) for v in (start, stop, step)]
    kind = dtype if dtype is not None else int if None not in ends else float
    if None in ends: return Array((unknown('k'),), kind)
    a, b, c = ends
    if c.const is None or c.const == 0: refuse(f'steps of {c}', 'a known step that is not 0', c)
    length = -((a - b)//c) if c.const > 0 else -((b - a)//-c)
    if length.const is None and not branch(claim(length, '>=', 0)): length = Dim(0)
    sure = dtype is None and Array not in map(type, (start, stop, step))
    line = Array((axis(Dim(max(length.const, 0)) if length.const is not None else length),), kind, sure=sure)
    return ranged(line, from_to(a, b - 1) if c.const > 0 else from_to(b + 1, a))


# %%
#| export
@rule(np.linspace, np.geomspace)
def linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0):
    ends = broadcast(lift(start), lift(stop))
    i = axis_number(axis, len(ends) + 1)
    line = Array((*ends[:i], new_axis(shape_of((num,))[0]), *ends[i:]), dtype if dtype is not None else np.float64)
    return (line, Array(ends)) if retstep else line

@rule(np.logspace)
def logspace(start, stop, num=50, endpoint=True, base=10.0, dtype=None, axis=0): return linspace(start, stop, num, dtype=dtype, axis=axis)

@rule(np.hanning, np.hamming, np.blackman, np.bartlett)
def window(M):
    n, = _sizes((M,))
    return Array((axis(n if branch(claim(n, '>=', 0)) else 0),))


# %%
#| export
@rule(np.meshgrid)
def meshgrid(*xi, indexing='xy', sparse=False, copy=True):
    sizes = [ravel(lift(x)).axes[0] for x in xi]
    order = list(range(len(sizes)))
    if indexing == 'xy' and len(sizes) > 1: order[:2] = 1, 0
    own = lambda i, k: sizes[k] if not sparse or i == k else axis(1, one='written')
    return [(copied if copy is True else view)(lift(x), Array((own(i, k) for k in order), lift(x).dtype)) for i, x in enumerate(xi)]


# %%
#| export
@rule(np.diag)
def diag(v, k=0):
    x = lift(v)
    if not isinstance(k, int): refuse('a diagonal that is not known', 'a number', k)
    if x.ndim not in (1, 2): refuse('one or two axes are needed', 'Vec<n> or Mat<m, n>', x, operand=0)
    if x.ndim == 1:
        n = x.axes[0].size + abs(k)
        return ranged(Array((axis(n), axis(n)), x.dtype), union(range_of(x), from_to(0, 0)))
    return diagonal(x, k)


# %%
#| export
@rule(np.diagonal)
def diagonal(a, offset=0, axis1=0, axis2=1):
    x = lift(a)
    if x.ndim < 2: refuse('a matrix is needed', 'Mat<m, n>', x, operand=0)
    i, j = axis_numbers((axis1, axis2), x.ndim)
    m, n = x.axes[i].size - max(-offset, 0), x.axes[j].size - max(offset, 0)
    short = m if same(m, n).holds or branch(claim(m, '<=', n)) else n
    if not branch(claim(short, '>=', 0)): short = Dim(0)
    return locked(view(x, Array((*(b for c, b in enumerate(x.axes) if c not in (i, j)), axis(short)), x.dtype)))


# %%
#| export
@rule(np.diagflat)
def diagflat(v, k=0): return diag(ravel(lift(v)), k)

METHODS |= {'diagonal': np.diagonal}


# %%
#| export
@rule(np.indices)
def indices(dimensions, dtype=int, sparse=False):
    sizes = shape_of(dimensions)
    if sparse:
        own = lambda i, k: axis(sizes[k]) if i == k else axis(1, one='written')
        return tuple(ranged(Array((own(i, k) for k in range(len(sizes))), dtype), below(sizes[i])) for i in range(len(sizes)))
    return ranged(Array((axis(len(sizes)), *map(axis, sizes)), dtype), reduce(union, map(below, sizes), from_to(0, 0)))


# %% [markdown]
# Places, to be used as an index.

# %%
#| export
@rule(np.diag_indices)
def diag_indices(n, ndim=2): return (bounded(Array(map(axis, shape_of(n)), np.int64), shape_of(n)[0]),)*ndim

@rule(np.triu_indices, np.tril_indices)
def triu_indices(n, k=0, m=None):
    found, = new_axis(unknown('k').size),
    return tuple(bounded(Array((found,), np.int64), shape_of(size)[0]) for size in (n, n if m is None else m))


# %%
#| export
@rule(np.triu_indices_from, np.tril_indices_from)
def triu_indices_from(arr, k=0):
    if lift(arr).ndim != 2: refuse('a matrix is needed', 'Mat<m, n>', lift(arr), operand=0)
    return triu_indices(lift(arr).shape[0], k, lift(arr).shape[1])

@rule(np.diag_indices_from)
def diag_indices_from(arr):
    x = lift(arr)
    if x.ndim < 2: refuse('a matrix is needed', 'Mat<n, n>', x, operand=0)
    for a in x.axes[1:]:
        if not (verdict := same(a.size, x.axes[0].size)).holds: refuse('the axes have different sizes', x.axes[0].size, a.size, verdict=verdict, operand=0)
    return diag_indices(x.shape[0], x.ndim)


# %%
#| export
@rule(np.ravel_multi_index)
def ravel_multi_index(multi_index, dims, mode='raise', order='C'):
    sizes, places = shape_of(dims), [lift(i) for i in (multi_index if isinstance(multi_index, tuple | list) else [lift(multi_index)[k] for k in range(len(shape_of(dims)))])]
    if len(places) != len(sizes): refuse('an index for each axis', f'{len(sizes)} axes', f'{len(places)} indices', operand=0)
    axes = places[0].axes
    for p, size in zip(places, sizes):
        axes, r = broadcast(Array(axes), p), range_of(p)
        if p.dtype.kind not in 'iu': refuse(f'an index of {p.dtype}', 'whole numbers', p, operand=0)
        if mode == 'raise' and not r.given and not (None not in (r.low, r.high) and holds(claim(r.low, '>=', 0)).holds and holds(claim(r.high, '<', size)).holds):
            refuse(f'places on an axis of size {size}', f'0 to {size - 1}', r, f'np.clip(..., 0, {size - 1})', operand=0)
    return bounded(Array(axes, np.int64), reduce(lambda a, b: a*b, sizes, Dim(1)))


# %%
#| export
@rule(np.unravel_index)
def unravel_index(indices, shape, order='C'):
    i, sizes = lift(indices), shape_of(shape)
    most, r = reduce(lambda a, b: a*b, sizes, Dim(1)), range_of(i)
    if not r.given and not (None not in (r.low, r.high) and holds(claim(r.low, '>=', 0)).holds and holds(claim(r.high, '<', most)).holds):
        refuse(f'places in an array of {most} entries', f'0 to {most - 1}', r, operand=0)
    return tuple(bounded(Array(i.axes, np.int64), s) for s in sizes)


# %% [markdown]
# ## Asking

# %%
#| export
@rule(np.shape)
def shape(a): return lift(a).shape

@rule(np.ndim)
def ndim(a): return lift(a).ndim

@rule(np.size)
def size(a, axis=None): return lift(a).size if axis is None else lift(a).shape[axis_number(axis, lift(a).ndim)]

@rule(np.iterable)
def iterable(y): return lift(y).ndim > 0

@rule(np.isscalar)
def isscalar(element): return type(element) is Size

@rule(np.iscomplexobj)
def iscomplexobj(x): return lift(x).dtype.kind == 'c' if lift(x).sure else choose()

@rule(np.isrealobj)
def isrealobj(x): return not iscomplexobj(x)

@rule(np.broadcast_shapes)
def broadcast_shapes(*args):
    axes = ()
    for s in args: axes = broadcast(Array(axes), Array(axis(n, one='written' if n == 1 else '') for n in shape_of(s)))
    return Array(axes).shape

@rule(np.can_cast)
def can_cast(from_, to, casting='safe'):
    return choose() if type(from_) is Opaque or type(to) is Opaque or type(from_) is Array and not from_.sure else np.can_cast(lift(from_).dtype, to, casting)

@rule(np.result_type, np.promote_types, np.common_type)
def result_type(*args):
    kind = np.result_type(*(a.dtype if type(a) is Array else a._like_ if type(a) is Opaque else a for a in args))
    return Opaque('dtype', np.dtype, kind) if any(type(a) is Opaque or type(a) is Array and not a.sure for a in args) else kind

@rule(np.shares_memory, np.may_share_memory)
def shares_memory(a, b, *_): return number(bool)


# %%
from bendml.shape.trace import Trace, tracing
n = Dim('n')
with tracing(Trace(plan=(True,))): print(np.zeros_like(Array([axis(n)])), np.diag(Array([axis(n)])), arange(0, n, 2))

# %% [markdown]
# ## What this does not show
#
# The numbers in these arrays are not known, only [their range](22a_ranges.ipynb).
