# %%
#| default_exp shape.builtins

# %% [markdown]
# # Python's own functions
# > `len`, `range`, `sum`, `sorted` and the others, where sizes and numbers are not known.

# %%
#| hide
#| export
import contextlib, functools, itertools, math, operator, random, time, types, warnings
from functools import reduce
from typing import Any, Callable

import numpy as np

from bendml.shape.sizes import Dim
from bendml.shape.facts import claim
from bendml.shape.trace import branch, choose, holds, refuse, user_frame
from bendml.shape.opaque import Opaque
from bendml.shape.symbols import OPS, Array, Op, Size, as_dim, is_symbolic, number, perform, size_value
from bendml.shape.ranges import copied, unknown
from bendml.shape.operators import no_axes, one_entry
from bendml.shape.elementwise import lift
from bendml.shape.states import FEWER, Growing, Turns, as_turns, backwards, enumerated, int_of, symbolic_range, zipped
from bendml.shape.several import combinations, ndenumerate, ndindex, pairwise, product
from bendml.shape.loops import Yields, comprehension, each, loop
from bendml.shape.copies import HOOKS
from bendml.shape.questions import ANSWERS, asked, from_outside


# %% [markdown]
# A traced function calls these in place of Python's own. What is known is left to Python: `len` of a tuple is its length. The length of
# a list that a loop has made is a size; and what cannot be said is refused, with what to write in its place.

# %%
#| export
def _call(f: Callable, *args: Any) -> Any: return OPS['call'].shape(f, *args)  # as the page after this one does


# %% [markdown]
# ## Numbers and lengths

# %%
#| export
def _length(values: Any) -> Any:
    if isinstance(values, Growing): return size_value(values.total())
    if type(values) is Array: return Array.__len__(values)
    if isinstance(values, Turns): return size_value(values.count)
    if not isinstance(own := getattr(type(values), '__len__', None), types.FunctionType) or from_outside(own): return len(values)
    if (size := as_dim(made := _call(own, values))) is None or not holds(claim(size, '>=', 0)).holds:
        refuse(f'{own.__qualname__} need not give a length', 'a whole number, at least 0', made)
    return made


# %%
#| export
def _enumerated(values: Any, start: int = 0) -> Any:
    if not isinstance(values, Yields): return enumerated(values, start)
    number = lambda: size_value(as_dim(start) + unknown('i', 0, 'the number of a turn of the loop over {it} ({at})').size)
    return Yields(values.generator, lambda v: (number(), v))


# %%
#| export
def _float(value: Any = 0.0) -> Any:
    if type(value) is Array: no_axes(value, 'float()')
    return number(float) if type(value) in (Array, Size) else float(value)


# %%
#| export
def _rounded(value: Any, n: Any = None) -> Any:
    if type(value) is not Array: return round(value) if n is None else round(value, n)
    if value.axes: refuse('round() of an array', 'a number', value, 'write .round(2) after it, or np.round')
    return perform(np.round, (value,), {}) if n is not None else copied(value, number(int))

def _int(value: Any = 0, *base: Any) -> Any: return int_of(value) if type(value) in (Array, Size) else int(value, *base)


# %% [markdown]
# `math.ceil(n/k)` is a size, since the quotient of two sizes is that exact: a size is below $2^{53}$.

# %%
#| export
def ratio(f: Any, a: Any, b: Any) -> Any:
    "`f(a/b)`."
    num, den = as_dim(a), as_dim(b)
    if None not in (num, den) and is_symbolic((a, b)) and any(f is g for g in (math.ceil, math.floor, math.trunc, int)) and holds(claim(den, '>=', 1)).holds:
        if f is math.ceil: return size_value((num + den - 1)//den)
        if f is math.floor or holds(claim(num, '>=', 0)).holds: return size_value(num//den)
    return _call(f, a/b)


# %% [markdown]
# ## Several values

# %%
#| export
class _Iterated:
    "What `iter` makes of something whose length is not known: `next` takes its elements one by one."
    def __init__(self, values: Any): self.values, self.taken = values, 0
    def __iter__(self): refuse('a loop over what `next` has taken from', hint='write x[0], and a loop over x[1:]')
    __next__ = __iter__

def _iterator(values: Any, *rest: Any) -> Any: return iter(values, *rest) if as_turns(values) is None else _Iterated(values)

def _next(it: Any, *default: Any) -> Any:
    if type(it) is not _Iterated: return next(it, *default)
    if default and not branch(claim(as_turns(it.values).count, '>', it.taken)): return default[0]
    it.taken += 1
    return it.values[it.taken - 1]


# %%
#| export
def _listed(values: Any = ()) -> Any:
    if isinstance(values, Growing): return values[:]
    turns = as_turns(values)
    return Growing(values) if turns is None else comprehension(lambda: [v for v in each(turns, 'list', 1)])


# %%
#| export
def _tupled(values: Any = ()) -> Any:
    return tuple(values) if as_turns(values) is None else refuse('a tuple of an unknown number of values')


# %%
#| export
def _set_of(values: Any = ()) -> Any:
    return set(values) if as_turns(values) is None else refuse('a set of an unknown number of values', hint='np.unique(...) has each number once')


# %%
#| export
def _mapped(f: Callable, *values: Any) -> Any:
    if all(as_turns(v) is None for v in values): return map(lambda *v: _call(f, *v), *values)
    made = comprehension(lambda: [_call(f, *v) for v in each(zipped(*values), 'list', 1)], user_frame())
    made.lazy = True
    return made


# %%
#| export
def _sorted(values: Any, key: Callable | None = None, reverse: bool = False) -> Any:
    if type(values) is Opaque: return asked(sorted, (values,), {})
    if (turns := as_turns(values)) is None: return sorted(values, key=key, reverse=reverse)
    made = comprehension(lambda: [v for v in each(turns, 'list', 1)], user_frame())
    made.mixed = True  # where an element stands is not known any more
    for v in made.counted():
        if lift(rank := _call(key, v[0]) if key else v[0]).axes: refuse('rows are sorted, and have no order', 'a number', rank, 'x[np.argsort(x[:, 0])], or sorted(x, key=lambda row: row[0])')
    return made


# %%
#| export
def _accumulated(values: Any, *rest: Any, **options: Any) -> Any:
    return itertools.accumulate(values, *rest, **options) if as_turns(values) is None else refuse('accumulate() of an unknown number of values', hint='np.cumsum, or a for loop that appends to a list')


# %%
#| export
def _reduced(f: Callable, values: Any, *start: Any) -> Any:
    "`functools.reduce`: the loop that it is."
    if type(values) is Opaque: return asked(functools.reduce, (f, values), {})
    if (turns := as_turns(values)) is None: return functools.reduce(lambda a, b: _call(f, a, b), values, *start)
    if not start and not holds(claim(turns.count, '>=', 1)).holds: refuse('reduce() of several values, and there may be none', hint=FEWER)
    result, rest = (start[0], turns) if start else (turns.item(Dim(0)), Turns(turns.count - 1, lambda k: turns.item(k + 1)))
    for value in loop(rest, ('value',)): result = _call(f, result, value)
    return result


# %%
#| export
def _from_iterable(values: Any, dtype: Any = float, count: int = -1, **_) -> Any:
    x = perform(np.array, (_listed(values) if isinstance(values, list) else list(values), dtype), {})
    return x if as_dim(count) == -1 else x[:_at_most(count, x.axes[0].size)]


# %%
#| export
def _at_most(count: Any, size: Dim) -> Any:
    if not (verdict := holds(claim(as_dim(count), '<=', size))).holds: refuse(f'{count} of {size} things', f'{count} <= {size}', count, verdict=verdict)
    return count


# %% [markdown]
# ## One out of several

# %%
#| export
def _total(values: Any, start: Any = 0) -> Any:
    if type(values) is Array and values.ndim:
        return perform(np.sum, (values,),
                       {'axis': 0}) + start if branch(claim(values.axes[0].size, '>=', 1)) else start  # nothing: the int 0
    if isinstance(start, list) and (isinstance(values, Growing) or as_turns(values) is None): return _one_list(values, start)
    if isinstance(values, Growing) and not values.plain(): return _total_of(values, start)
    if as_turns(values) is not None: refuse('sum() of an unknown number of values', hint='np.sum, or a loop')
    return sum(values, start)


# %%
#| export
def _one_list(values: Any, start: list) -> Any:
    "The sum of lists is one list; that of a list and arrays is theirs."
    parts = [(start, Dim(1)), *(values.counted() if isinstance(values, Growing) else ((v, Dim(1)) for v in values))]
    if not all(isinstance(p, list) for p, _ in parts): return _total_of(values, start) if isinstance(values, Growing) and not values.plain() else sum(values, start)
    inside = [(v, n*m) for p, n in parts for v, m in (p if isinstance(p, Growing) else Growing(p)).counted()]
    return Growing([v for v, _ in inside], [n for _, n in inside])

def _total_of(values: Growing, start: Any) -> Any:
    "The sum of a list whose length is not known: sizes are added up, of numbers nothing is known."
    found = [(as_dim(v), n) for v, n in values.counted()]
    if all(v is not None for v, _ in found): return start + size_value(sum((v*n for v, n in found), Dim(0)))
    x = lift(values.any_element())
    total = lift(perform(np.add, (perform(np.add, (start, x), {}), x), {}))
    return Array(total.axes, int if total.dtype == bool else total.dtype)


# %%
#| export
def _extreme(f: Callable) -> Callable:
    def extreme(*args, **kwargs):
        if len(args) == 1 and type(args[0]) is Array and args[0].ndim == 1: return perform(np.max if f is max else np.min, args, {})
        if len(args) == 1 and type(args[0]) is Array:
            refuse(f'{f.__name__}() of rows, which have no order', 'Vec<n>', args[0], 'write .max() or .min()')
        if len(args) == 1 and as_turns(args[0]) is not None:
            return args[0].any_element() if isinstance(args[0], Growing) else unknown('i', None).size
        if any(type(a) is Array for a in args):
            for a in args: one_entry(lift(a), f'{f.__name__}()', 'write np.maximum or np.minimum')
            if len({lift(a).ndim for a in args}) > 1: refuse(f'{f.__name__}() of a number and an array with an axis', 'numbers', list(args), 'take the number out: .item()')
            return reduce(lambda a, b: perform(np.maximum if f is max else np.minimum, (a, b), {}), args)
        return f(*args, **kwargs)
    return extreme


# %%
#| export
def _quantified(f: Callable) -> Callable:
    def quantified(values):
        if type(values) is Array:
            return perform(np.any if f is any else np.all, (values,), {'axis': None}) if values.ndim == 1 else f(values)
        return choose() if as_turns(values) is not None else f(values)
    return quantified


# %%
#| export
def _quiet(*_, **__): return None

def _suppressed(*_): refuse('exceptions are suppressed', hint='write try and except, with one step after try:')

def _opened(*_, **__): refuse('a file is opened', hint='a typed function is run once to check it, so it should only compute')


# %% [markdown]
# ## The table

# %%
#| export
SPECIAL: dict[Any, Callable] = {
    len: _length, iter: _iterator, next: _next, range: symbolic_range, zip: zipped, enumerate: _enumerated, map: _mapped, np.fromiter: _from_iterable, reversed: backwards,
    float: _float, int: _int, list: _listed, tuple: _tupled, set: _set_of, sum: _total, max: _extreme(max), min: _extreme(min),
    any: _quantified(any), all: _quantified(all), print: _quiet, warnings.warn: _quiet, open: _opened, input: _opened,
    contextlib.suppress: _suppressed, functools.reduce: _reduced, sorted: _sorted, itertools.accumulate: _accumulated, itertools.product: product, itertools.combinations: combinations,
    itertools.pairwise: pairwise, np.ndindex: ndindex, np.ndenumerate: ndenumerate,
    round: _rounded,
    bool: lambda v=False: bool(v), slice: slice,
    math.prod: lambda values, start=1: _multiplied(values, start),
    random.Random: lambda *_: random.Random(0), time.time: lambda: number(float), time.perf_counter: lambda: number(float),
    np.poly1d.__call__: lambda p, x: perform(np.polyval, (p.coeffs, x), {}) if is_symbolic(x) else p(x),
    operator.index: lambda v: v if type(v) is Size else operator.index(v), **ANSWERS,
}


# %%
#| export
def _multiplied(values: Any, start: Any) -> Any:
    for v in values: start = start*v
    return start


# %% [markdown]
# `math` on numbers that are not known gives numbers that are not known.

# %%
#| export
def _unknown_number(dtype: type, whole: bool = False):
    def result(*args, **_):
        for a in args:
            if type(a) is Array: no_axes(a, 'math')
            if whole and type(a) is Array and a.dtype.kind not in 'iu': refuse(f'a number of {a.dtype}', 'whole numbers', a, 'write int(...)')
        return number(dtype) if dtype is not int else Size(unknown('i', None).size)
    return result


# %%
#| export
_TO_INT = 'floor ceil isqrt trunc gcd comb factorial'.split()
_TO_BOOL = 'isnan isinf isfinite isclose'.split()
_TO_FLOAT = '''sqrt exp log log2 log10 log1p expm1 sin cos tan tanh sinh cosh asin acos atan atan2 pow fabs erf erfc gamma lgamma hypot
               copysign fmod'''.split()

for _names, _kind in ((_TO_INT, int), (_TO_BOOL, bool), (_TO_FLOAT, float)):
    for _f in _names: OPS[getattr(math, _f)] = Op(f'math.{_f}', _unknown_number(_kind, _f in ('isqrt', 'gcd', 'comb', 'factorial')))

# %%
#| export
HOOKS['__bendml_ratio__'] = ratio

# %%
from bendml.shape.symbols import axis
from bendml.shape.trace import Trace, tracing
n, k = Dim('n'), Dim('k')
with tracing(Trace()):
    x = Array([axis(n), axis(3)])
    print(SPECIAL[len](x), ratio(math.ceil, size_value(n), size_value(k)), SPECIAL[sum](x), SPECIAL[max](x[:, 0]))

# %% [markdown]
# ## What this does not show
#
# `sorted` of rows, `sum` of a generator and `tuple` of an unknown number of values are refused, not followed. That the quotient of two
# sizes rounds as it should is arithmetic on floats below $2^{53}$, which is said here and not proved.
