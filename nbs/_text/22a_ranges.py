# %%
#| default_exp shape.ranges

# %% [markdown]
# # What is known of whole numbers
# > An index is in range if all its numbers are. So whole numbers carry an interval, as in interval analysis.

# %% [markdown]
# Shapes alone do not say whether `x[i]` is in range: the numbers in `i` do. They are not known, but often bounded:
# `np.argsort(x)` holds numbers from 0 to `n - 1`, a count is at most `n`, `np.clip` says so itself. This page keeps such an
# interval for each array of whole numbers. An index that nothing bounds is refused; numbers that come from outside, a
# parameter `ids: Int[Vec[T]]`, are the caller's word, and `where="ids < V"` makes the caller keep it.

# %%
#| hide
#| export
from dataclasses import dataclass, replace
from typing import Any, Callable

import numpy as np

from bendml.shape.sizes import Dim, DimError, fresh
from bendml.shape.facts import Claim, _at_once, assume, bound, claim
from bendml.shape.trace import current, refuse, user_frame
from bendml.shape.symbols import OPS, Array, Axis, as_dim, axis, entries


# %% [markdown]
# ## Intervals
#
# An end is a size, or None where nothing bounds that side. Counts know one thing more, their `total`: the group sizes of
# `n` things add up to `n`, so their running sums stay below, though each group alone may have `n`.

# %%
#| export
@dataclass(frozen=True)
class Range:
    "Whole numbers from `low` to `high`; those that are `given` come from outside, and are not in it."
    low: Dim | None = None
    high: Dim | None = None
    total: Dim | None = None  # what they add up to, at most
    given: bool = False
    def __str__(self):
        if self.low is self.high is None: return 'any number'
        return f'{"-∞" if self.low is None else self.low} to {"∞" if self.high is None else self.high}'

UNBOUNDED, GIVEN, TRUTH = Range(), Range(given=True), Range(Dim(0), Dim(1))


# %%
#| export
def from_to(low: Dim | int, high: Dim | int) -> Range: return Range(Dim(low), Dim(high))

def below(size: Dim | int) -> Range: return from_to(0, Dim(size) - 1)


# %%
#| export
def _surely(a: Dim, op: str, b: Dim) -> bool:
    "Only what the normal form decides at once: a bound that is not seen is a bound less, not a mistake."
    return _at_once(current().facts, claim(a, op, b)) is True


# %%
#| export
def _least(a: Dim | None, b: Dim | None) -> Dim | None:
    "The smaller of two sizes, where it is known which one that is."
    if a is None or b is None: return None
    return a if _surely(a, '<=', b) else b if _surely(b, '<=', a) else None

def _lower(a: Dim | None, b: Dim | None) -> Dim | None:
    "A size that is below both: the smaller, or 0."
    low = _least(a, b)
    return Dim(0) if low is None and None not in (a, b) and _surely(a, '>=', Dim(0)) and _surely(b, '>=', Dim(0)) else low

def _greatest(a: Dim | None, b: Dim | None) -> Dim | None:
    if a is None or b is None: return None
    return b if _surely(a, '<=', b) else a if _surely(b, '<=', a) else None


# %%
#| export
def union(a: Range, b: Range) -> Range:
    "Numbers of which each is in one range or the other."
    if UNBOUNDED in (a, b): return UNBOUNDED
    if a == GIVEN: return replace(b, given=True, total=None)
    if b == GIVEN: return replace(a, given=True, total=None)
    low, high = _lower(a.low, b.low), _greatest(a.high, b.high)
    return UNBOUNDED if low is high is None else Range(low, high, given=a.given or b.given)


# %% [markdown]
# ## Of an array
#
# A view shares its numbers with what it is a view of, so it shares the record too: who writes through one writes through
# both. A copy has a record of its own.

# %%
#| export
class Known:
    "What is known of the numbers that some arrays share."
    __slots__ = 'range', 'shared'
    def __init__(self, range: Range): self.range, self.shared = range, frozenset()  # others that may be the same numbers


# %%
#| export
def range_of(value: Any) -> Range:
    "The range of a whole number, or of all those in an array."
    if isinstance(value, bool | np.bool_): return TRUTH
    if (dim := as_dim(value)) is not None: return Range(dim, dim)
    if type(value) is Array: return TRUTH if value.dtype == bool else value.known.range if value.known else UNBOUNDED
    if not isinstance(value, np.ndarray) or value.dtype.kind not in 'iub' or not value.size: return UNBOUNDED
    return from_to(int(value.min()), int(value.max()))


# %%
#| export
def ranged(x: Array, r: Range) -> Array:
    "The array, with what is known of its numbers; a dtype that may not hold them makes them unknown."
    if x.dtype.kind in 'iu': object.__setattr__(x, 'known', Known(r) if r.given or _held(r, x.dtype) else None)
    return x


# %%
#| export
def _held(r: Range, dtype: np.dtype) -> bool:
    if dtype.itemsize >= 4 and (dtype.kind == 'i' or r.low is not None and _surely(r.low, '>=', Dim(0))): return True
    ends = [end and end.const for end in (r.low, r.high)]
    return None not in ends and np.iinfo(dtype).min <= ends[0] and ends[1] <= np.iinfo(dtype).max


# %% [markdown]
# `Int[Vec[n]]` may be called with int8, and 300 is no int8: there `i % 300` stops. So the whole numbers that meet such an array
# are noted, for the call to be checked against them. A size may be anything that 32 bits hold.

# %%
#| export
NARROW, WIDE, ANY = (0, 0), (0, 2**31 - 1), (-1, 2**31 - 1)

def hull(*spans: tuple[int, int]) -> tuple[int, int]: return min(a for a, _ in spans), max(b for _, b in spans)

def must_hold(*numbers: Dim | None) -> None:
    "Note numbers that arrays of a width that nobody has said must be able to hold."
    for d in (d for d in numbers if d is not None):
        held = current().state.get('held', NARROW)
        if d.const is None and hull(held, ANY) == held: continue  # it can be no more
        span = hull(NARROW, (d.const, d.const)) if d.const is not None else WIDE if _surely(d, '>=', Dim(0)) else ANY
        current().state['held'] = hull(held, span)

def holds_all(dtype: np.dtype, span: tuple[int, int]) -> bool:
    "Can whole numbers of this kind be all of these?"
    if dtype == np.uint64: return span == NARROW  # with int64 it makes float64
    return dtype.kind not in 'iu' or np.iinfo(dtype).min <= span[0] and span[1] <= np.iinfo(dtype).max


# %%
#| export
def bounded(x: Array, size: Dim) -> Array:
    "An array whose numbers are known to be at least 0 and smaller than a size."
    return ranged(x, below(size))

def copied(x: Array, new: Array) -> Array:
    "An array of some of the numbers of another."
    return ranged(new, range_of(x))

def view(x: Array, new: Array) -> Array:
    "An array that shares its numbers with another."
    if new.dtype == x.dtype:
        object.__setattr__(new, 'known', x.known)
        object.__setattr__(new, 'sure', x.sure or new.sure)
        object.__setattr__(new, 'locked', x.locked and bool(new.axes))
    return new

def locked(x: Array) -> Array:
    "A view into which NumPy does not let write."
    object.__setattr__(x, 'locked', bool(x.axes))
    return x

def may_share(new: Array, old: Array) -> None:
    "Note that an array may be another, or a view of it: what is written into one may be read in the other."
    for x in (new, old):
        if not x.known: object.__setattr__(x, 'known', Known(UNBOUNDED))
    olds = {old.known, *old.known.shared} - {new.known}
    for k in olds: k.shared |= {new.known}
    new.known.shared |= olds
    if old.locked: locked(new)

def converted(x: Array, new: Array) -> Array:
    "Numbers in another dtype: a copy, but where the array has that dtype after all."
    copied(x, new)
    if not x.sure and new.dtype.kind == x.dtype.kind: may_share(new, x)
    return new


# %%
#| export
def outdated(kind: str) -> None:
    "What was found in arrays of this kind of numbers may not be there any more."
    for found in map(current().state.get, ('masks', 'numbers')):
        for key in [k for k, (_, x) in (found or {}).items() if x.dtype.kind == kind]: del found[key]


# %%
#| export
def written(x: Array, r: Range) -> None:
    "Note that some numbers of an array are overwritten."
    if type(x) is not Array: OPS['written to'].shape(x)
    if x.locked: refuse('the numbers of this view can only be read', hint='write into a copy: .copy()')
    current().state.get('fixed', {}).pop(id(x), None)
    outdated(x.dtype.kind)  # it, or a view of it, may now pick another number
    for known in (x.known, *x.known.shared) if x.known else ():
        known.range = union(known.range, r)
        current().state.setdefault('written', []).append(known)

def forget(x: Array) -> None:
    "From here on, nothing is known of these numbers."
    object.__setattr__(x, 'sure', x.dtype == bool)
    outdated(x.dtype.kind)
    if x.known: x.known.range = UNBOUNDED


# %% [markdown]
# ## Arithmetic on intervals

# %%
#| export
def _ends(f: Callable[[Dim, Dim], Dim], a: Dim | None, b: Dim | None) -> Dim | None:
    try: return None if a is None or b is None else f(a, b)
    except (DimError, ZeroDivisionError): return None  # too large to work with: then nothing is known


# %%
#| export
def _plus(a: Range, b: Range) -> Range:
    return Range(*(_ends(Dim.__add__, p, q) for p, q in ((a.low, b.low), (a.high, b.high))))

def _minus(a: Range, b: Range) -> Range:
    return Range(*(_ends(Dim.__sub__, p, q) for p, q in ((a.low, b.high), (a.high, b.low))))

def _negative(a: Range) -> Range: return _minus(from_to(0, 0), a)

def _from_0(r: Range) -> bool: return r.low is not None and _surely(r.low, '>=', Dim(0))


# %%
#| export
def _times(a: Range, b: Range) -> Range:
    "Where both are at least 0, or one is a number."
    if _from_0(a) and _from_0(b): return Range(_ends(Dim.__mul__, a.low, b.low), _ends(Dim.__mul__, a.high, b.high))
    for r, other in ((a, b), (b, a)):
        if r.low is not None and r.low == r.high and (c := r.low.const) is not None:
            ends = [_ends(Dim.__mul__, end, r.low) for end in (other.low, other.high)]
            return Range(*(ends if c >= 0 else ends[::-1]))
    return UNBOUNDED


# %%
#| export
def _quotient(a: Range, b: Range) -> Range:
    if b.low is None or not _surely(b.low, '>=', Dim(1)): return UNBOUNDED
    if b.low == b.high: return Range(_ends(Dim.__floordiv__, a.low, b.low), _ends(Dim.__floordiv__, a.high, b.low))
    return Range(Dim(0), a.high) if _from_0(a) else UNBOUNDED


# %%
#| export
def _remainder(a: Range, b: Range) -> Range:
    if b.low is None or not _surely(b.low, '>=', Dim(1)): return UNBOUNDED
    return Range(Dim(0), None if b.high is None else b.high - 1)


# %% [markdown]
# The smaller of two numbers is below both upper ends. If it is not known which of them is lower, the one that is a single
# number is meant: `np.minimum(i, len(x) - 1)`.

# %%
#| export
def _minimum(a: Range, b: Range) -> Range:
    tops = [r.high for r in sorted((a, b), key=lambda r: r.low != r.high) if r.high is not None]
    return Range(_lower(a.low, b.low), (_least(*tops) or tops[0]) if len(tops) == 2 else tops[0] if tops else None)

def _maximum(a: Range, b: Range) -> Range: return _negative(_minimum(_negative(a), _negative(b)))

def _magnitude(a: Range) -> Range: return a if _from_0(a) else _maximum(a, _negative(a))


# %%
#| export
ARITHMETIC: dict[Any, Callable[..., Range]] = {
    np.add: _plus, np.subtract: _minus, np.multiply: _times, np.floor_divide: _quotient, np.remainder: _remainder,
    np.negative: _negative, np.positive: lambda a: a, np.absolute: _magnitude, np.minimum: _minimum, np.maximum: _maximum,
    np.clip: lambda a, low, high: _minimum(_maximum(a, low), high), np.sign: lambda a: from_to(-1, 1)}


# %%
#| export
def computed(f: Any, operands: list) -> Range:
    "The range of what a function makes of some operands, entry by entry."
    if f not in ARITHMETIC: return UNBOUNDED
    return ARITHMETIC[f](*(UNBOUNDED if (r := range_of(o)).given else replace(r, total=None) for o in operands))


# %%
#| export
def summed(x: Array, count: Dim) -> Range:
    "The range of sums of at most `count` of the numbers of an array, and at least one."
    r = range_of(x)
    if r.given: return UNBOUNDED
    low = r.low if _from_0(r) else _ends(Dim.__mul__, r.low, count)
    return Range(low, r.total if r.total is not None else _ends(Dim.__mul__, r.high, count) if _from_0(r) else None)


# %% [markdown]
# ## A number as a size
#
# A number that steers a shape, such as the end of a slice or `int(x.argmax())`, is a size that nobody has named, between its
# bounds. The same number is the same size, until something is written, or in another turn of a loop.

# %%
#| export
def unknown(
    name: str,
    least: int | None = 0,
    told: str = '',    # what it is, for messages; {it}: the expression, {at}: its line
    own: str = '',     # 'index' or 'counter': the name is the program's own, for the turns of a loop or for what it counts
) -> Axis:
    "An axis whose size only the numbers know."
    trace, frame = current(), user_frame()
    size = fresh(name, next(trace.count))
    trace.state.setdefault('told', {})[str(size)] = own, told, (frame.f_code, frame.f_lasti) if frame else None
    trace.facts = bound(trace.facts, str(size), least)
    trace.state.setdefault('fresh', {})[str(size)] = least
    return axis(size)


# %%
#| export
def as_size(x: Array) -> Dim:
    "The number in an array, as a size."
    if id(x) in current().state.get('wrapped', ()):
        refuse('an unsigned number may have gone below 0, and is a very large one then', '0 or more', x.dtype, 'subtract from int(...)')
    r = range_of(x)
    if r.low is not None and r.low == r.high: return r.low
    seen = current().state.setdefault('numbers', {})  # what bounds two slices cuts both at the same place
    if id(x) in seen: return seen[id(x)][0]
    size = unknown('i', None).size
    for limit, op in () if r.given else ((r.low, '>='), (r.high, '<=')):
        if limit is not None: current().facts = assume(current().facts, claim(size, op, limit))
    seen[id(x)] = size, x
    return size


# %% [markdown]
# ## A number of entries
#
# A mask picks a number of entries that only the data know: a fresh size `k` between 0 and `n`. The same mask picks the same
# number again, until something is written. `mask.sum()` is that number, and if `mask.any()` is true it is at least 1.

# %%
#| export
def picked(mask: Array) -> Axis:
    "The axis that a mask leaves."
    seen = current().state.setdefault('masks', {})
    if id(mask) not in seen:
        new = unknown('k', told='how many entries are true in the mask of {it} ({at})')
        current().facts = assume(current().facts, claim(new.size, '<=', entries(mask)))
        seen[id(mask)] = (new, mask)
    return seen[id(mask)][0]


# %%
#| export
def meaning(answer: Array, c: Claim) -> Array:
    "Note what it says about sizes that this number is true."
    current().state.setdefault('answers', {})[id(answer)] = answer, c
    return answer


# %%
#| export
_COMPARISONS = {np.equal: '==', np.not_equal: '!=', np.less: '<', np.less_equal: '<=', np.greater: '>', np.greater_equal: '>='}

def compared(f: Any, operands: list, answer: Array) -> Array:
    "A comparison of two numbers that are sizes, such as `mask.sum() > 0`, says something about them."
    if f not in _COMPARISONS or answer.axes: return answer
    ranges = [range_of(o) for o in operands]
    exact = all(r.low is not None and r.low == r.high for r in ranges)
    return meaning(answer, claim(ranges[0].low, _COMPARISONS[f], ranges[1].low)) if exact else answer


# %%
from bendml.shape.trace import Trace, tracing
n = Dim('n')
with tracing(Trace()):
    i = bounded(Array([axis(n)], int), n)
    print(range_of(i), computed(np.add, [i, 1]), computed(np.floor_divide, [i, 2]), computed(np.remainder, [i, 10]), sep='; ')
    written(i, from_to(99, 99))
    print(range_of(i))

# %% [markdown]
# ## What this does not show
#
# Numbers that were never written, those of `np.empty`, are taken for zeros. A sum is taken to fit into its 64 bits. What a
# parameter or another typed function's result holds is the caller's word, unless `where=` says what it must be.
