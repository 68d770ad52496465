# %%
#| default_exp shape.elementwise

# %% [markdown]
# # Element by element
# > When may two arrays of different shapes be added? Where the code says so, and not by accident.

# %%
#| hide
#| export
import warnings
from functools import lru_cache
from typing import Any

import numpy as np

from bendml.shape.sizes import Dim, names_of
from bendml.shape.facts import Verdict, assume, claim, decide
from bendml.shape.annotations import spelled
from bendml.shape.trace import current, holds, refuse
from bendml.shape.opaque import Opaque
from bendml.shape.symbols import METHODS, OPS, Array, Axis, Size, as_dim, axis, number, rule
from bendml.shape.ranges import Range, compared, computed, converted, copied, must_hold, range_of, ranged, union, view, written
from bendml.shape import operators  # x + y


# %% [markdown]
# ## Operands
#
# Anything that NumPy accepts as an array becomes a symbolic one. A list of arrays is an array with one more axis.

# %%
#| export
def lift(value: Any, operand: int | None = None) -> Array:
    "A value as a symbolic array."
    if type(value) is Array: return value
    if type(value) is Opaque: refuse(f'{value} is not known to be an array', 'an array', value._class_.__name__, value._hint_, operand=operand)
    if type(value) is Size or isinstance(value, Dim): return ranged(number(int), range_of(value))
    if isinstance(value, list | tuple): return OPS[np.array].shape(value)
    if isinstance(value, range): return lift(np.asarray(value))
    if hasattr(value, 'numbers'): return value.numbers()  # a range whose length is not known
    if isinstance(value, bool | int | float | complex | np.ndarray | np.generic):
        if isinstance(value, np.matrix | np.ma.MaskedArray): refuse(f'an operand is a {type(value).__name__}, which computes other shapes', hint='make it an array: np.asarray(...)', operand=operand)
        value = np.asarray(value)
        x = Array((axis(n) for n in value.shape), value.dtype, sure=True)
        return ranged(x, range_of(value))
    if hasattr(value, '__array__') and not callable(getattr(value, 'shape', None)): return lift(np.asarray(value))
    refuse(f'an operand is {"None" if value is None else f"a {type(value).__name__}"}', 'an array', value, 'test it first: `if ... is None`' if value is None else '', operand=operand)


# %%
#| export
def same(a: Dim, b: Dim) -> Verdict:
    "Are two sizes equal, at every size?"
    return Verdict(True) if a == b else holds(claim(a, '==', b))


# %%
#| export
def unstretched(a: Dim, b: Dim, *stretch: Dim) -> Verdict:
    "The verdict on two unequal sizes, with sizes that fail in NumPy too: where one that can be stretched is 1, it is no failure."
    facts = current().facts
    for d in stretch: facts = assume(facts, claim(d, '!=', 1)) if d.const is None else facts
    verdict = decide(facts, claim(a, '==', b))
    if verdict.holds is not False: return Verdict(None)
    each = [decide(facts, claim(d, '==', 1)) for d in stretch if not holds(claim(d, '!=', 1)).holds]
    return verdict if verdict.fails_at else next((v for v in each if v.fails_at), Verdict(None) if each else verdict)


# %%
#| export
def with_new_ids(x: Array) -> Array:
    return Array((axis(a.size, one=a.one, parts=a.parts) for a in x.axes), x.dtype)


# %% [markdown]
# ## The rule of broadcasting
#
# NumPy stretches an axis of size 1 to any size, and puts missing axes in front. That is a great convenience, and the
# source of the most common silent mistake: `pred - y` with `pred` of shape `(B, 1)` and `y` of shape `(B,)` is a `(B, B)`
# matrix, and its mean a wrong loss. So:
#
# 1. With the same number of axes, a 1 stretches. Exception: two *declared* 1s that stretch against each other to the same
#    size, `(B, 1)` with `(1, B)`.
# 2. With fewer axes on one side (a bias row), a 1 of the other side must not be stretched by it, unless it was written with
#    `None` or `expand_dims` and no matrix product has come between, or the stretched size is different from the other sizes
#    there. A difference or `==` of a column and a row is refused in that last case too, if the column is not of `keepdims=True`.
# 3. An axis keeps its identity. One that comes from another place of the larger operand does not fit here, though its size
#    may: `s / s.sum(1)` on a square `s`.
# 4. A named size is never taken for 1.

# %%
#| export
def broadcast(a: Array, b: Array, first: int = 0, second: int = 1) -> tuple[Axis, ...]:
    "The axes of `a + b`; `first` and `second` are the operands' numbers, for messages."
    n = max(a.ndim, b.ndim)
    pairs = [(_at(a, i - n), _at(b, i - n)) for i in range(n)]
    axes = tuple(_pair(x, y, a, b, (first, second), i - n) for i, (x, y) in enumerate(pairs))
    if a.ndim == b.ndim:
        _mutual(pairs, a, b, first, second)
        _other_way_round(a, b, second)
    elif min(a.ndim, b.ndim) > 0:
        big, small, other, who = (a, b, first, second) if a.ndim > b.ndim else (b, a, second, first)
        _stretched_by_fewer(big, small, other, who)
        _from_another_place(big, small, who)
    return axes


# %%
#| export
def _at(x: Array, i: int) -> Axis | None: return x.axes[i] if -i <= x.ndim else None


# %%
#| export
def _pair(x: Axis | None, y: Axis | None, a: Array, b: Array, who: tuple[int, int], i: int) -> Axis:
    "One axis of the result."
    if x is None or y is None: return x or y
    if x.size == 1 and y.size != 1: return y
    if y.size == 1 and x.size != 1: return x
    if not same(x.size, y.size).holds: _mismatch(a, b, who, i, x, y)
    if x.parts and y.parts and x.parts != y.parts and sorted(map(str, x.parts)) == sorted(map(str, y.parts)):
        orders = ['*'.join(map(str, v.parts)) for v in (x, y)]
        refuse(f'axis {i} holds {orders[0]} on the left and {orders[1]} on the right: the same size in another order',
               spelled(a.sizes), spelled(b.sizes), 'transpose before the reshape that merged them', operand=who[1])
    one = 'declared' if 'declared' in (x.one, y.one) else x.one or y.one
    return Axis(x.size, x.id, x.role or y.role, x.parts or y.parts, one)


# %%
#| export
def _mismatch(a: Array, b: Array, who: tuple[int, int], i: int, x: Axis, y: Axis) -> None:
    blame = who[1] if b.ndim <= a.ndim else who[0]
    seen, wanted = (b, a) if blame == who[1] else (a, b)
    refuse(f'axis {i} has size {x.size} on the left and {y.size} on the right', spelled(wanted.sizes), spelled(seen.sizes),
           _fit(wanted, seen) or _pairs(wanted, seen, who[0]), unstretched(x.size, y.size, x.size, y.size), blame)


# %%
#| export
def _pairs(a: Array, b: Array, left: int) -> str:
    rows = a.ndim == b.ndim == 2 and a.axes[1].size == b.axes[1].size
    return f'to pair every row with every row, write {{{left}}}[:, None]' if rows else ''


# %%
#| export
def _index(*parts: str) -> str: return f'[{", ".join(parts)}]'


# %%
#| export
def _fit(wanted: Array, seen: Array, exact: bool = False) -> str:
    "What would make `seen` fit `wanted`; `exact`: nothing is stretched."
    ones = [a for a in wanted.axes if a.size == 1]
    if seen.lost and seen.ndim == wanted.ndim - 1 and (ones or not exact):
        position, text = seen.lost
        return f'a reduction lost axis {position}: write keepdims=True in it, or {text}'
    if seen.ndim == wanted.ndim > 1 and _fits(seen.axes[:-2] + seen.axes[:-3:-1], wanted.axes, exact):
        return '{it} is the other way round: write {it.T}' if seen.ndim == 2 else 'two axes are the other way round: swapaxes(-1, -2)'
    if seen.ndim == 1 < wanted.ndim and any(a.size == seen.axes[0].size for a in wanted.axes[:-1]) and (not exact or len(ones) == wanted.ndim - 1):
        at = next(k for k, a in enumerate(wanted.axes) if a.size == seen.axes[0].size)
        return f'write {{it}}{_index(":", *["None"]*(wanted.ndim - 1 - at))} to put its axis in that place'
    ones = [k for k, a in enumerate(wanted.axes) if a.size == 1 and seen.ndim == wanted.ndim - 1 and _fits(seen.axes, wanted.axes[:k] + wanted.axes[k + 1:], exact)]
    if ones: return f'write {{it}}{_index(*[":"]*ones[0], "None")} to put a 1 in that place'
    differences = {(w.size - s.size).const for w, s in zip(wanted.axes, seen.axes) if exact or 1 not in (w.size, s.size)} - {0} if seen.ndim == wanted.ndim else set()
    near = len(differences) == 1 and None not in differences and max(map(abs, differences)) <= 2
    return f'the sizes differ by {abs(differences.pop())}: is a slice one too long or too short?' if near else ''


# %%
#| export
def _fits(axes: tuple[Axis, ...], wanted: tuple[Axis, ...], exact: bool = False) -> bool:
    return all(a.size == w.size or a.size == 1 and not exact for a, w in zip(axes, wanted))


# %%
#| export
def _mutual(pairs: list, a: Array, b: Array, first: int, second: int) -> None:
    "Rule 1's exception: (B, 1) with (1, B), both declared so."
    grown = {side: [pair[1 - side].size for pair in pairs if pair[side].size == 1 and pair[side].one == 'declared' and pair[1 - side].size != 1]
             for side in (0, 1)}
    if not any(x == y for x in grown[0] for y in grown[1]): return
    which = (second, b) if {v.size for v in b.axes} == {Dim(1), *grown[0]} else (first, a)
    every = f'; for every pair, {{{first}}}[:, 0][:, None] and {{{second}}}[0]' if a.axes[-1].size == b.axes[0].size == 1 and a.ndim == 2 else ''
    _every_combination(a, b, second, f'both have {a.ndim} axes: write {{{which[0]}.T}} so that the same ones meet{every}')


# %%
#| export
def _every_combination(a: Array, b: Array, operand: int, hint: str) -> None:
    sizes = ', '.join(str(y if x == 1 else x) for x, y in zip((1,)*(b.ndim - a.ndim) + a.sizes, (1,)*(a.ndim - b.ndim) + b.sizes))
    refuse(f'pairs {a} with {b}, which makes every combination: an array of shape ({sizes})', spelled(a.sizes), spelled(b.sizes), hint,
           Verdict(False, _two(a, b)), operand, 'that is not meant')


# %%
#| export
def _two(a: Array, b: Array) -> tuple[tuple[str, int], ...]:
    "Sizes at which it shows: every named size that is stretched is 2."
    return tuple(sorted({(n, 2) for s in (*a.sizes, *b.sizes) for n in names_of(s)}))


# %%
#| export
def _other_way_round(a: Array, b: Array, operand: int) -> None:
    "A weight and a gradient of it, with in and out exchanged."
    for weight, other in ((a, b), (b, a)):
        for i, (w, o) in enumerate(zip(weight.axes, other.axes)):
            elsewhere = {v.id for k, v in enumerate(weight.axes) if k != i}
            if w.role in ('in', 'out') and (o.role in ('in', 'out') and o.role != w.role or o.id != w.id and o.id in elsewhere):
                refuse('one of the two is stored the other way round', '×'.join(v.role for v in a.axes),
                       '×'.join(v.role or '?' for v in b.axes), 'transpose it: .T', operand=operand)


# %%
#| export
_COMPARING = 'subtract', 'equal', 'not_equal'  # where a column meets a row by accident: a loss, an accuracy

def _stretched_by_fewer(big: Array, small: Array, other: int, operand: int) -> None:
    "Rule 2: a 1 that nobody wrote is stretched by an operand with fewer axes."
    comparing = small.ndim == 1 and current().state.get('op', ('',))[0] in _COMPARING
    for i in range(-small.ndim, 0):
        own, new = big.axes[i], small.axes[i]
        if own.size == 1 and own.one != 'written' and new.size != 1:
            places = [k for k in range(-big.ndim, 0) if k != i and same(new.size, big.axes[k].size).holds]
            if places or comparing and own.one != 'kept': _every_combination(big, small, operand, _same_rank(big, small, i, places, other, operand))


# %%
#| export
def _same_rank(big: Array, small: Array, i: int, places: list[int], other: int, operand: int) -> str:
    "What to write so that the axis i of the smaller one, which meets a 1, meets the axis of its own size."
    ways, at = [], small.ndim + i
    for k in places:
        if k < i: ways.append((small.axes[:at + 1] + (axis(1, one='written'),)*(i - k) + small.axes[at + 1:], big.axes, f'{{{operand}}}{_index(*[":"]*(at + 1), *["None"]*(i - k))}'))
    ways.append((small.axes, big.axes[:i] + big.axes[i:][1:], f'{{{other}}}{_index(*[":"]*(big.ndim + i), "0")}'))
    fits = [text for one, two, text in ways if len(one) <= len(two) and _fits(one, two[len(two) - len(one):])]
    every = f'; for every pair, {{{operand}}}{_index(*["None"]*(big.ndim - small.ndim))}'
    return f'write {" or ".join(fits)}{every}' if fits else 'write the 1 with None, where it is meant'


# %%
#| export
def _from_another_place(big: Array, small: Array, operand: int) -> None:
    "Rule 3: an axis that belongs to another place of the larger operand."
    ids = [a.id for a in big.axes]
    for i in range(-small.ndim, 0):
        own = small.axes[i]
        if own.size != 1 and own.id in ids and big.axes[i].id != own.id and big.axes[i].size != 1:
            k = ids.index(own.id) - len(ids)
            refuse(f'its axis {i} is axis {k} of the other operand, where it is paired with axis {i}', spelled(big.sizes), spelled(small.sizes),
                   'write keepdims=True in the reduction' if small.lost else
                   f'write {{it}}{_index(":", *["None"]*(-k - 1))} to put it in its place', operand=operand)


# %% [markdown]
# ## Functions of entries
#
# Every NumPy function that works entry by entry (a ufunc) has this one rule. Its dtype is NumPy's own answer, for arrays
# with a single entry.

# %%
#| export
@lru_cache(4096)
def _answer(f: Any, kinds: tuple, kwargs: tuple = ()) -> tuple[np.dtype, ...]:
    "The dtypes that a function returns for operands of these dtypes (or Python types)."
    ones = [k(1) if isinstance(k, type) else np.ones((), k) if one else np.ones(1, k) for k, one in kinds]
    with warnings.catch_warnings(), np.errstate(all='ignore'):
        warnings.simplefilter('ignore')
        result = f(*ones, **dict(kwargs))
    return tuple(np.asarray(r).dtype for r in (result if isinstance(result, tuple) else (result,)))


# %%
#| export
def dtypes(f: Any, operands: list, **kwargs) -> tuple[np.dtype, ...]:
    "What NumPy answers for operands like these."
    kinds = tuple((type(o), False) if type(o) in (bool, int, float, complex) else
                  (int, False) if as_dim(o) is not None else (lift(o).dtype, not lift(o).axes) for o in operands)
    try: return _answer(f, kinds, tuple(sorted(kwargs.items())))
    except TypeError as e:
        refuse(str(e).split(', and')[0].split(" for the input types")[0],
               hint='declare what the numbers are: Int[...] or Bool[...] around the annotation')


# %% [markdown]
# What NumPy refuses for the number of axes, or for an option, it refuses for arrays with one entry too.

# %%
#| export
def asked(f: Any, *args, **kwargs) -> None:
    "Call NumPy with one entry in each array; what it raises becomes the refusal."
    ones = [np.ones((1,)*a.ndim, a.dtype) if type(a) is Array else a for a in args]
    with warnings.catch_warnings(), np.errstate(all='ignore'):
        warnings.simplefilter('ignore')
        f(*ones, **kwargs)


# %%
#| export
def _sure(operand: Any) -> bool:
    "Is its dtype certain? A number of Python's own takes that of what it meets."
    return type(operand) in (bool, int, float, complex) or as_dim(operand) is not None or lift(operand).sure


# %%
#| export
def _widths(f: Any, arrays: list, operands: list, r: Range) -> None:
    "Note what whole numbers meet, if the width of some is not known; those of 64 bits make all so wide, but for uint64."
    whole = [x for x, o in zip(arrays, operands) if x.dtype.kind in 'iu' and as_dim(o) is None]
    if len(whole) > 1: must_hold(Dim(1))
    if not whole or any(x.sure and x.dtype == np.int64 for x in whole): return
    ends = () if r.given or f in (np.minimum, np.maximum, np.remainder, np.floor_divide) else (r.low, r.high)  # these go no further than their operands
    must_hold(*map(as_dim, operands), *ends)


# %%
#| export
def _whole_power(f: Any, operands: list, kinds: tuple) -> None:
    "Refuse 1, 2, 3 to a negative power."
    if f is np.power and kinds[0].kind in 'iu' and (n := as_dim(operands[1])) is not None and not holds(claim(n, '>=', 0)).holds:
        refuse('whole numbers have no negative powers', 'a power of at least 0', n, f'write {n}.0' if n.const is not None else 'make them numbers first: .astype(float)', operand=1)

def _below_0(f: Any, operands: list, result: Array, low: Dim | None) -> None:
    "Note an unsigned number that may have gone below 0, where it is a very large one: no size is made of it."
    wrapped = current().state.setdefault('wrapped', {})
    may = f in (np.subtract, np.negative) and (low is None or not holds(claim(low, '>=', 0)).holds)
    if may or any(id(o) in wrapped for o in operands): wrapped[id(result)] = result


# %%
#| export
def elementwise(f: Any, operands: list, out: Any = None, where: Any = True, dtype: Any = None) -> Any:
    "The result of a function that works entry by entry."
    arrays = [lift(o, i) for i, o in enumerate(operands)]
    axes = arrays[0].axes if arrays else ()
    for i, x in enumerate(arrays[1:], 1): axes = broadcast(Array(axes, lost=arrays[0].lost if i == 1 else ()), x, 0, i)
    kinds = (np.dtype(dtype),)*getattr(f, 'nout', 1) if dtype is not None else dtypes(f, operands)
    _whole_power(f, operands, kinds)
    if type(where) is Array:
        if where.dtype != bool: refuse(f'where= of {where.dtype}', 'truth values', where)
        axes = broadcast(Array(axes), where)
    lost = next((x.lost for x in arrays if x.lost and x.ndim == len(axes)), ())
    sure = type(dtype) is not Opaque and (dtype is not None or all(map(_sure, operands)))
    parts = (np.floor_divide, np.remainder) if f is np.divmod else (f,)
    found = [computed(g, operands) for g in parts]
    if not sure and kinds[0].kind in 'iu' and f is not np.clip: _widths(f, arrays, operands, found[0])
    results = tuple(compared(f, operands, ranged(Array(axes, kind, lost, sure), r)) for kind, r in zip(kinds, found*len(kinds)))
    if kinds[0].kind == 'u' and not axes: _below_0(f, operands, results[0], found[0].low)
    return stored(results if len(results) > 1 else results[0], out)


# %%
#| export
def stored(result: Any, out: Any) -> Any:
    "Write a result into `out`, whose shape must not change."
    target = out[0] if isinstance(out, tuple) else out
    if target is None: return result
    if type(target) is not Array: OPS['written to'].shape(target)
    if not target.axes and current().state['op'][0] not in ('setitem', 'fill'): refuse('a number is written into', 'an array', target, 'NumPy changes no number in place: write into a slice, [i:i + 1]')
    if result.ndim > target.ndim: _does_not_fit(target, result)
    for x, y in zip(target.axes[::-1], result.axes[::-1]):
        verdict = same(x.size, y.size)
        if not verdict.holds and y.size != 1: _does_not_fit(target, result, unstretched(x.size, y.size, y.size))
    if result.ndim < target.ndim or result.sizes != target.sizes: broadcast(target, result)
    if not np.can_cast(result.dtype, target.dtype, 'same_kind'):
        refuse(f'numbers of dtype {result.dtype} are written into an array of {target.dtype}',
               hint='write x = x + y, or convert with .astype')
    written(target, range_of(result))
    return target


# %%
#| export
def filled(result: Any, out: Any) -> Any:
    "Write a result into `out`, which must have exactly its shape: only what works entry by entry stretches."
    target = out[0] if isinstance(out, tuple) else out
    if type(target) is Array and not (target.ndim == result.ndim and all(same(a.size, b.size).holds for a, b in zip(target.axes, result.axes))):
        _does_not_fit(target, result)
    return stored(result, out)


# %%
#| export
def _does_not_fit(target: Array, result: Array, verdict: Verdict | None = None) -> None:
    written = current().state['op'][0] == 'setitem'  # then the right side is to blame, and the place is the left side
    hint = _fit(target, result)
    if written: hint = hint.replace('{it.T}', 'its .T').replace('{it}', 'what is written')
    refuse('the result does not fit where it is written', target, result, hint, verdict, None if written else 1)


# %%
#| export
@rule('ufunc')
def ufunc(f, *operands, out=None, where=True, dtype=None, casting=None, order=None, subok=None):
    if len(operands) > f.nin: operands, out = operands[:f.nin], operands[f.nin]
    return elementwise(f, list(operands), out, where, dtype)


# %%
#| export
def chosen(x: Array, where: Any) -> None:
    "What `where=` of a reduction must be: truth values that stretch to the array."
    w = lift(where)
    if w.dtype != bool: refuse(f'where= holds {w.dtype}', 'truth values', w, 'compare with something')
    if w.ndim > x.ndim or any(not same(a.size, b.size).holds for a, b in zip(broadcast(x, w), x.axes)): refuse('where= does not stretch to the array', x, w)


# %%
#| export
@rule(np.where)
def where(condition, x=None, y=None):
    if x is None: return OPS[np.nonzero].shape(condition)
    arrays = [lift(v, i) for i, v in enumerate((condition, x, y))]
    axes = broadcast(Array(broadcast(arrays[0], arrays[1])), arrays[2], 0, 2)
    return ranged(Array(axes, dtypes(np.add, [x, y])[0] if dtypes(np.add, [x, y])[0] != bool else bool), union(*map(range_of, (x, y))))


# %%
#| export
@rule(np.clip)
def clip(a, a_min=None, a_max=None, out=None, *, min=None, max=None, **_):
    bounds = [b for b in (a_min, a_max, min, max) if b is not None]
    if len(bounds) == 1: return elementwise(np.minimum if a_min is min is None else np.maximum, [a, bounds[0]], out)
    return stored(elementwise(np.clip, [a, *bounds]), out)


# %%
#| export
METHODS['clip'] = np.clip


# %% [markdown]
# Functions of one array that keep its shape and are not ufuncs.

# %%
#| export
def _keeps(*functions, dtype=None):
    for f in functions:
        @rule(f)
        def keeps(a, *args, out=None, f=f, **kwargs):
            x = lift(a)
            if x.dtype == bool: asked(f, x, *args, **kwargs)
            return stored(Array(x.axes, dtype or dtypes(f, [x])[0], x.lost), out)


# %%
#| export
_keeps(np.round, np.around, np.angle, np.sinc, np.i0, np.fix)
_keeps(np.isneginf, np.isposinf, np.iscomplex, np.isreal, dtype=bool)
METHODS |= {'round': np.round, 'conj': 'conjugate', 'conjugate': 'conjugate'}

@rule('conjugate')
def conjugate(a): return elementwise(np.conjugate, [a]) if a.dtype.kind == 'c' else view(a, Array(a.axes, a.dtype, a.lost))

@rule(np.real_if_close)
def real_if_close(a, tol=100): return view(x := lift(a), Array(x.axes, dtypes(np.real_if_close, [x])[0], x.lost))

@rule(np.nan_to_num)
def nan_to_num(x, copy=True, nan=0.0, posinf=None, neginf=None):
    x = lift(x)
    if x.dtype == bool: asked(np.nan_to_num, x)
    if copy is True: return Array(x.axes, x.dtype, x.lost)
    written(x, range_of(x))
    return view(x, Array(x.axes, x.dtype, x.lost))

@rule(np.isclose)
def isclose(a, b, rtol=1e-5, atol=1e-8, equal_nan=False): return elementwise(np.equal, [a, b])


# %%
#| export
@rule(np.allclose)
def allclose(a, b, *_, **__):
    broadcast(lift(a), lift(b))
    return number(bool)

@rule(np.array_equal, np.array_equiv)
def array_equal(a, b, *_, **__):
    lift(a), lift(b)
    return number(bool)


# %% [markdown]
# ## Conversions

# %%
#| export
@rule('astype')
def astype(x, dtype, *_, copy=True, **__):
    new = Array(x.axes, dtype, x.lost, sure=type(dtype) is not Opaque)
    return copied(x, new) if copy is True else view(x, new) if new.dtype == x.dtype else converted(x, new)


# %%
#| export
@rule('copy', np.copy)
def copy(a, *args, dtype=None, **__):
    x = lift(a)
    return copied(x, Array(x.axes, x.dtype if dtype is None else dtype, x.lost, sure=x.sure if dtype is None else type(dtype) is not Opaque))

@rule(np.ascontiguousarray, np.asfortranarray, np.asarray_chkfinite)
def contiguous(a, dtype=None, *_, **__):
    x = lift(a)
    return view(x, Array(x.axes, x.dtype, x.lost)) if dtype is None or x.dtype == dtype else converted(x, Array(x.axes, dtype, x.lost))


# %%
#| export
METHODS |= {'astype': 'astype', 'copy': 'copy', '__copy__': 'copy', '__deepcopy__': 'copy'}

# %%
from bendml.shape.trace import Trace, tracing
from bendml.shape.messages import ShapeError
B, T = Dim('B'), Dim('T')
with tracing(Trace()):
    x, row, scale = Array([axis(B), axis(T)]), Array([axis(T)]), Array([axis(B), axis(1, one='declared')])
    print(x + row, x*scale, np.exp(x) > 0, np.where(x > 0, x, 0.0))

# %% [markdown]
# A prediction with a column, and targets without one:

# %%
with tracing(Trace()):
    pred, y = Array([axis(B), axis(1, one='declared')]), Array([axis(B)])
    try: (pred - y)**2
    except ShapeError as e: print(e)

# %% [markdown]
# ## What this does not show
#
# The rule refuses by shape and origin, not by meaning. Weights of rows, `(n,)`, against a square `(n, n)` are stretched
# along its columns without a word, if rows and columns have the same name; give them two names. And an intended
# `a / sqrt(a.sum(1))` on a symmetric matrix is refused; write `[None, :]`.
