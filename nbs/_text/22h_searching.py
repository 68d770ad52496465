# %%
#| default_exp shape.searching

# %% [markdown]
# # Searching, counting, sliding
# > How many entries are different, where a number belongs, what a window sees: sizes that only the numbers know.

# %%
#| hide
#| export
from functools import reduce

import numpy as np

from bendml.shape.sizes import Dim
from bendml.shape.facts import assume, claim
from bendml.shape.trace import branch, current, holds, refuse
from bendml.shape.symbols import METHODS, OPS, Array, Axis, as_dim, axis, entries, is_symbolic, rule
from bendml.shape.ranges import Range, below, bounded, copied, locked, picked, range_of, ranged, union, unknown, view
from bendml.shape.elementwise import dtypes, filled, lift, same
from bendml.shape.reductions import _same_shape, axis_number, not_empty, reduced
from bendml.shape.moves import ravel, shape_of
from bendml.shape.indexing import _in_range, _index_array, getitem, index_of


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
def argwhere(a):
    x = lift(a)
    found = Array((picked(x), axis(x.ndim)), np.int64)
    return ranged(found, reduce(union, (below(b.size) for b in x.axes))) if x.axes else found

METHODS |= {'nonzero': np.nonzero}


# %%
#| export
def some(n: Dim, least: int = 0) -> Axis:
    "A number of entries from `least` to n."
    new = unknown('k', least)
    current().facts = assume(current().facts, claim(new.size, '<=', n))
    return new


# %%
#| export
@rule(np.unique)
def unique(ar, return_index=False, return_inverse=False, return_counts=False, axis=None, **_):
    x = lift(ar)
    i = None if axis is None else axis_number(axis, x.ndim)
    n = entries(x) if i is None else x.axes[i].size
    k = some(n, 1 if holds(claim(n, '>=', 1)).holds else 0)
    values = copied(x, Array((k,) if i is None else (*x.axes[:i], k, *x.axes[i + 1:]), x.dtype))
    inverse = bounded(Array(x.axes if i is None else (x.axes[i],), np.int64), k.size)
    more = [v for wanted,
            v in ((return_index, bounded(Array((k,), np.int64), n)), (return_inverse, inverse), (return_counts, ranged(Array((k,), np.int64), Range(Dim(1), n, n)))) if wanted]
    return (values, *more) if more else values


# %%
#| export
def _unique_parts(name: str, *wanted: str) -> None:
    f = getattr(np, name, None)  # not in every version
    @rule(*[f] if f else [])
    def parts(x, /):
        made = unique(x, **dict.fromkeys(wanted, True))
        return type(f(np.zeros(1)))(*made) if wanted else made

_unique_parts('unique_values')
_unique_parts('unique_counts', 'return_counts')
_unique_parts('unique_inverse', 'return_inverse')
_unique_parts('unique_all', 'return_index', 'return_inverse', 'return_counts')


# %%
#| export
@rule(np.compress)
def compress(condition, a, axis=None, out=None):
    x = lift(a) if axis is not None else ravel(lift(a))
    i, c = 0 if axis is None else axis_number(axis, x.ndim), lift(condition)
    if c.ndim != 1: refuse('one axis is needed', 'Vec<n>', c, operand=0)
    known = None if is_symbolic(condition) else np.flatnonzero(condition)  # False may go on beyond the end
    least = c.axes[0].size if known is None else Dim(int(known.max(initial=-1)) + 1)
    if not (verdict := holds(claim(least, '<=', x.axes[i].size))).holds:
        refuse('the condition is longer than the axis', x.axes[i].size, c, verdict=verdict, given='' if known is not None else 'an entry beyond it is true')
    return filled(copied(x, Array((*x.axes[:i], picked(c) if known is None else axis_(len(known)), *x.axes[i + 1:]), x.dtype)), out)


# %%
#| export
@rule('compress')
def compress_method(a, condition, axis=None, out=None): return compress(condition, a, axis, out)

METHODS['compress'] = 'compress'


# %%
#| export
@rule(np.extract)
def extract(condition, arr): return compress(ravel(lift(condition)), ravel(lift(arr)))

@rule(np.isin)
def isin(element, test_elements, *_, **__): return Array(lift(element).axes, bool)

@rule(np.intersect1d, np.setdiff1d)
def intersect1d(ar1, ar2, *_, **__): return copied(lift(ar1), Array((some(entries(lift(ar1))),), lift(ar1).dtype))

@rule(np.union1d, np.setxor1d)
def union1d(ar1, ar2, *_, **__):
    x, y = lift(ar1), lift(ar2)
    return ranged(Array((some(entries(x) + entries(y)),), dtypes(np.add, [x, y])[0]), union(range_of(x), range_of(y)))


# %%
#| export
@rule(np.searchsorted)
def searchsorted(a, v, side='left', sorter=None):
    x = lift(a)
    if x.ndim != 1: refuse('one axis is needed', 'Vec<n>', x, operand=0)
    if sorter is not None:
        s = lift(sorter)
        if s.dtype.kind not in 'iu' or s.ndim != 1 or not same(s.axes[0].size, x.axes[0].size).holds: refuse('sorter= is no order of its entries', f'Vec<{x.axes[0].size}, int>', s, 'np.argsort')
        _index_array(x.axes[0], s)
    return bounded(Array(lift(v).axes, np.int64), x.axes[0].size + 1)


# %%
#| export
@rule(np.digitize)
def digitize(x, bins, right=False): return searchsorted(bins, x)

METHODS['searchsorted'] = np.searchsorted


# %%
#| export
@rule(np.bincount)
def bincount(x, /, weights=None, minlength=0):
    v = lift(x)
    if v.ndim != 1: refuse('one axis is needed', 'Vec<n>', v, operand=0)
    if weights is not None and lift(weights).ndim != 1: refuse('one axis is needed', 'Vec<n>', lift(weights), operand=1)
    if weights is not None and not (verdict := same(lift(weights).axes[0].size, v.axes[0].size)).holds:
        refuse('a weight for each entry', v, lift(weights), verdict=verdict, operand=1)
    r, least = range_of(v), as_dim(minlength)
    if not r.given and not (r.low is not None and holds(claim(r.low, '>=', 0)).holds):
        refuse('the numbers that are counted may be negative', 'at least 0', r, 'np.clip(..., 0, None)', operand=0)
    if r.high is not None and not r.given and holds(claim(r.high, '<', least)).holds: k = axis(least)  # none is larger
    else:
        k = unknown('k', 1 if holds(claim(entries(v), '>=', 1)).holds else 0)  # up to the largest
        current().facts = assume(current().facts, claim(k.size, '>=', least))
    return ranged(Array((k,), np.int64), Range(Dim(0), entries(v), entries(v))) if weights is None else Array((k,))


# %%
#| export
def _bins(bins: object) -> Dim:
    "How many bins: a number, or one less than there are edges; for a method's name, only the numbers know."
    if isinstance(bins, str): return unknown('k', 1).size
    if (n := as_dim(bins)) is None:
        if lift(bins).ndim != 1: refuse('the edges have one axis', 'Vec<n>', lift(bins), operand=1)
        if not (verdict := holds(claim(lift(bins).axes[0].size, '>=', 1))).holds: refuse('no edges', 'at least 1', lift(bins), verdict=verdict, operand=1)
        return lift(bins).axes[0].size - 1
    if not (verdict := holds(claim(n, '>=', 1))).holds: refuse(f'{n} bins', 'at least 1', n, verdict=verdict, operand=1)
    return n

def _ordered(a: object, operand: int) -> Array:
    if (x := lift(a, operand)).dtype.kind == 'c': refuse('complex numbers have no order', 'real numbers', f'{x} of {x.dtype}', operand=operand)
    return x

@rule(np.histogram)
def histogram(a, bins=10, range=None, density=None, weights=None):
    _ordered(a, 0)
    if weights is not None: _same_shape(lift(a), lift(weights))
    n = _bins(bins)
    edges = Array((axis(n + 1),), float if as_dim(bins) is not None or isinstance(bins, str) else lift(bins).dtype)
    if density: return Array((axis(n),)), edges
    if weights is not None: return Array((axis(n),), lift(weights).dtype), edges
    return ranged(Array((axis(n),), np.int64), Range(Dim(0), entries(lift(a)), entries(lift(a)))), edges


# %%
#| export
@rule(np.histogram_bin_edges)
def histogram_bin_edges(a, bins=10, range=None, weights=None):
    _ordered(a, 0)
    return Array((axis(_bins(bins) + 1),))

@rule(np.histogram2d)
def histogram2d(x, y, bins=10, range=None, density=None, weights=None):
    for i, v in enumerate((x, y)):
        if _ordered(v, i).ndim != 1: refuse('one axis is needed', 'Vec<n>', lift(v), operand=i)
    if not (verdict := same(lift(x).axes[0].size, lift(y).axes[0].size)).holds: refuse('as many of one as of the other', lift(x), lift(y), verdict=verdict, operand=1)
    two = bins if isinstance(bins, list | tuple) and len(bins) == 2 else (bins, bins)
    n, m = map(_bins, two)
    return Array((axis(n), axis(m))), Array((axis(n + 1),)), Array((axis(m + 1),))


# %%
#| export
@rule(np.histogramdd)
def histogramdd(sample, bins=10, range=None, density=None, weights=None):
    x = _ordered(sample, 0)
    if x.ndim != 2 or x.axes[1].size.const is None: refuse('rows of a known length are needed', 'Mat<n, 3>', x, operand=0)
    each = list(bins) if isinstance(bins, list | tuple) else [bins]*x.axes[1].size.const
    if len(each) != x.axes[1].size: refuse('bins for each column', x.axes[1].size, len(each), operand=1)
    sizes = [_bins(b) for b in each]
    return Array(map(axis, sizes)), tuple(Array((axis(n + 1),)) for n in sizes)


# %%
#| export
def _places(x: Array, i: int, places: Array) -> None:
    "What an array of indices, or a mask, must be for one axis."
    if places.dtype == bool: getitem(x, (slice(None),)*i + (places,))
    else: _index_array(x.axes[i], places)


# %%
#| export
@rule(np.delete)
def delete(arr, obj, axis=None):
    x = lift(arr) if axis is not None else ravel(lift(arr))
    i = 0 if axis is None else axis_number(axis, x.ndim)
    if not isinstance(obj, slice) and (dim := as_dim(obj)) is None: _places(x, i, index_of(obj))
    if isinstance(obj, slice) or dim is None: return copied(x, Array((*x.axes[:i], some(x.axes[i].size), *x.axes[i + 1:]), x.dtype))
    _in_range(dim, x.axes[i])
    return copied(x, Array((*x.axes[:i], axis_(x.axes[i].size - 1), *x.axes[i + 1:]), x.dtype))


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
        return bounded(kind, a.axes[0].size) if a.dtype == bool else view(a, Array(kind.axes, a.dtype))
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
@rule(np.correlate)
def correlate(a, v, mode='valid'): return convolve(a, v, mode)

@rule(np.convolve)
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
    windows = shape_of(window_shape if isinstance(window_shape, tuple | list) else (window_shape,))
    where = range(a.ndim) if axis is None else [axis_number(i, a.ndim)
                                                for i in (axis if isinstance(axis, tuple | list) else (axis,))]
    if len(windows) != len(where): refuse('a window for each axis', f'{len(where)} sizes', f'{len(windows)} sizes', operand=1)
    axes = list(a.axes)
    for w, i in zip(windows, where):
        if not (verdict := holds(claim(w, '<=', axes[i].size))).holds:
            refuse('the window is larger than the axis', f'{w} <= {axes[i].size}', w, verdict=verdict, operand=1)
        axes[i] = axis_(axes[i].size - w + 1)
    made = view(a, Array((*axes, *map(axis_, windows)), a.dtype))
    return made if writeable is True else locked(made)


# %%
#| export
@rule(np.vander)
def vander(x, N=None, increasing=False):
    if lift(x).ndim != 1: refuse('one axis is needed', 'Vec<n>', lift(x), operand=0)
    n = lift(x).axes[0]
    return Array((n, axis(n.size if N is None else shape_of(N)[0])), lift(x).dtype)


# %%
#| export
@rule(np.gradient)
def gradient(f, *varargs, axis=None, edge_order=1):
    x = lift(f)
    dtypes(np.subtract, [x, x])
    along = range(x.ndim) if axis is None else [axis_number(axis, x.ndim)]
    if edge_order not in (1, 2): refuse(f'edge_order={edge_order!r}', '1 or 2', edge_order)
    if len(varargs) > 1 and len(varargs) != len(along): refuse(f'{len(varargs)} spacings for {len(along)} axes', len(along), len(varargs))
    for i, d in zip(along, map(lift, varargs)):
        if d.axes and (d.ndim > 1 or len(varargs) != len(along) or not same(d.axes[0].size, x.axes[i].size).holds):
            refuse('a spacing is a number, or a place for each entry', f'Vec<{x.axes[i].size}>', d, operand=1)
    for i in along:
        if not (verdict := holds(claim(x.axes[i].size, '>=', edge_order + 1))).holds:
            refuse('too few entries for a difference', f'at least {edge_order + 1}', x.axes[i].size, verdict=verdict)
    one = Array(x.axes, dtypes(np.true_divide, [x, 1.0])[0])
    return one if axis is not None or x.ndim == 1 else tuple(one for _ in x.axes)


# %%
#| export
@rule(np.trapezoid)
def trapezoid(y, x=None, dx=1.0, axis=-1):
    v = lift(y)
    if x is not None:
        i, w = axis_number(axis, v.ndim), lift(x)
        if w.ndim == 1 and not (verdict := same(w.axes[0].size, v.axes[i].size)).holds: refuse('a place for each entry', f'Vec<{v.axes[i].size}>', w, verdict=verdict, operand=1)
        if w.ndim != 1: _same_shape(v, w)
    return reduced(v, axis, dtype=dtypes(np.true_divide, [v, 1.0])[0])


# %%
#| export
@rule(np.select)
def select(condlist, choicelist, default=0):
    if len(condlist) != len(choicelist): refuse('a choice for each condition', len(condlist), len(choicelist))
    if not len(condlist): refuse('no condition', 'at least one', 'an empty list')
    for c in condlist:
        if lift(c).dtype != bool: refuse(f'a condition of {lift(c).dtype}', 'truth values', lift(c), 'compare with something', operand=0)
    result = default
    for condition, choice in zip(condlist, choicelist): result = OPS[np.where].shape(condition, choice, result)
    return result


# %%
from bendml.shape.trace import Trace, tracing
from bendml.shape.messages import ShapeError
n, w = Dim('n'), Dim('w')
with tracing(Trace()):
    x = Array([axis(n)])
    print(np.unique(x), np.searchsorted(np.sort(x), x), np.lib.stride_tricks.sliding_window_view(x, 1))
    try: np.lib.stride_tricks.sliding_window_view(x, w)
    except ShapeError as e: print(e)

# %% [markdown]
# ## What this does not show
#
# A size that only the numbers know is bounded, not known: two calls of `np.unique` on the same array give two sizes.
