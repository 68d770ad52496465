# %%
#| default_exp shape.calls

# %% [markdown]
# # Calls in a trace
# > NumPy's functions go to the table, the user's own are traced too, and Python's own have a stand-in each.

# %%
#| hide
#| export
import contextlib, math, operator, os, random, sysconfig, time, types, warnings
from functools import reduce
from typing import Any, Callable

import numpy as np

from bendml.shape.facts import claim
from bendml.shape.sizes import Dim
from bendml.shape.trace import branch, choose, current, holds, refuse, user_frame
from bendml.shape.symbols import (OPS, Array, Op, Size, _Method, as_dim, axis, entries, is_symbolic, no_rule, number, one_entry, op_of,
                                  perform, size_value)
from bendml.shape.ranges import UNBOUNDED, Range, below, copied, range_of, ranged, unknown
from bendml.shape.elementwise import broadcast, lift, same
from bendml.shape.moves import shape_of
from bendml.shape.states import Growing, Turns, as_turns, backwards, enumerated, int_of, symbolic_range, zipped
from bendml.shape.loops import Yields, comprehension, each, loop, tick, while_loop
from bendml.shape.copies import HOOKS, copy_of
from bendml.shape import indexing, joining, making, moves, products, reductions, searching  # their rules

# %% [markdown]
# ## Calls
#
# Every call of the copy comes here. NumPy functions go to the table when a symbolic value is among their arguments; Python
# functions are copied and so traced too, except those of the standard library; typed functions are checked by their
# signature.

# %%
#| export
STDLIB = (sysconfig.get_path('stdlib'), '<frozen', os.path.dirname(np.__file__))
ALWAYS = {np.zeros, np.ones, np.empty, np.full, np.zeros_like, np.ones_like, np.empty_like, np.full_like}


# %%
#| export
def call(f: Any, /, *args: Any, **kwargs: Any) -> Any:
    "What `f(*args, **kwargs)` does in a trace."
    tick()
    if (special := _special(f)) is not None: return special(*args, **kwargs)
    if hasattr(f, '__shapes__'): return f.__shapes__.by_signature(args, kwargs)
    if op_of(f) is not None and (_known(f) or is_symbolic(args) or is_symbolic(kwargs)): return perform(f, args, kwargs)
    if (is_symbolic(args) or is_symbolic(kwargs)) and (getattr(f, '__module__', None) or '').partition('.')[0] == 'numpy':
        if isinstance(f, type) and issubclass(f, np.generic): return perform('astype', (lift(args[0]), f), {})
        if isinstance(f, types.FunctionType | type) and f not in (np.errstate, np.vectorize): no_rule(f)
    owner = getattr(f, '__self__', None)
    if isinstance(owner, np.ufunc) and is_symbolic(args): return perform(f'ufunc.{f.__name__}', (owner, *args), kwargs)
    if isinstance(owner, np.random.Generator | np.random.RandomState): return _random(f.__name__, args, kwargs, isinstance(owner, np.random.RandomState))
    if isinstance(f, types.MethodType):
        return call(f.__func__, f.__self__, *args, **kwargs) if isinstance(f.__func__, types.FunctionType) else f(*args, **kwargs)
    if isinstance(f, types.FunctionType):
        copy = _traced(f)
        result = _deeper(copy or f, args, kwargs)
        return Yields(result) if copy and isinstance(result, types.GeneratorType) else result
    if isinstance(f, type): return _instance(f, args, kwargs)
    if isinstance(f, np.vectorize):
        refuse('np.vectorize hides a loop', hint='declare its shapes: a function that calls it, with @typed')
    method = getattr(type(f), '__call__', None)
    if isinstance(method, types.FunctionType) and type(f) is not _Method and not isinstance(f, np.ufunc):
        return call(method, f, *args, **kwargs)
    return f(*args, **kwargs)


# %%
#| export
def _known(f: Any) -> bool:
    try: return f in ALWAYS
    except TypeError: return False


# %%
#| export
MAX_CALLS = 400  # inside one another: Python's own limit may be set higher than its stack can bear

def _deeper(f: Callable, args: tuple, kwargs: dict) -> Any:
    "Call a function of the program."
    state = current().state
    state['calls'] = state.get('calls', 0) + 1
    if state['calls'] > MAX_CALLS: raise RecursionError(f'more than {MAX_CALLS} calls inside one another')
    try: return f(*args, **kwargs)
    finally: state['calls'] -= 1


# %%
#| export
def _traced(f: types.FunctionType) -> types.FunctionType | None:
    if f.__code__.co_filename.startswith(STDLIB) and 'site-packages' not in f.__code__.co_filename: return None
    if f.__code__.co_filename.startswith(STDLIB[2]) or (f.__module__ or '').startswith('bendml.shape.'): return None
    return copy_of(f)


# %%
#| export
def _instance(cls: type, args: tuple, kwargs: dict) -> Any:
    "Make an object, tracing its `__init__`."
    init, new = cls.__init__, cls.__new__
    if not isinstance(init,
                      types.FunctionType) or new is not object.__new__ or type(cls).__call__ is not type.__call__ or issubclass(cls, BaseException):
        return cls(*args, **kwargs)
    made = new(cls)
    call(init, made, *args, **kwargs)
    return made


# %% [markdown]
# An array that is really there, a table in a global variable say, has numbers, and keeps them; but NumPy would ask an index
# that is not known for its value. So it is looked up here.

# %%
#| export
class _Table:
    "A real array that may be indexed by what is not known."
    __slots__ = 'numbers',
    def __init__(self, numbers: np.ndarray): self.numbers = numbers
    def __getitem__(self, index: Any) -> Any:
        return lift(self.numbers)[index] if is_symbolic(index) else self.numbers[index]
    def __setitem__(self, index: Any, value: Any) -> None:
        if is_symbolic(index) or is_symbolic(value):
            refuse('a number that is not known is written into an array that is', hint='make the array with np.zeros or np.full')
        self.numbers[index] = value


# %%
#| export
def table(values: Any) -> Any:
    if values is np.r_ or values is np.c_: return _Joiner(values)
    if values is np.mgrid or values is np.ogrid: return _Grid(values)
    return _Table(values) if type(values) is np.ndarray else values


# %%
#| export
class _Grid:
    "`np.mgrid` and `np.ogrid`, of what is known."
    __slots__ = 'real',
    def __init__(self, real: Any): self.real = real
    def __getitem__(self, index: Any) -> Any:
        if is_symbolic(index): refuse('a grid of a size that is not known', hint='write np.meshgrid of np.arange or np.linspace')
        return self.real[index]


# %%
#| export
class _Joiner:
    "`np.r_` and `np.c_`: concatenation, written as an index."
    __slots__ = 'real',
    def __init__(self, real: Any): self.real = real
    def __getitem__(self, index: Any) -> Any:
        if not is_symbolic(index): return self.real[index]
        parts = []
        for part in index if isinstance(index, tuple) else (index,):
            if isinstance(part, str): refuse('np.r_ with text', hint='write np.concatenate or np.stack')
            if isinstance(part, slice): part = perform(np.arange, (part.start or 0, part.stop, part.step or 1), {})
            parts.append(perform(np.atleast_1d, (part,), {}))
        if self.real is np.r_: return perform(np.concatenate, (parts,), {})
        return perform(np.concatenate, ([perform(np.expand_dims, (p, 1), {}) if p.ndim == 1 else p for p in parts], -1), {})


# %% [markdown]
# ## Python's own functions

# %%
#| export
def _special(f: Any) -> Callable | None:
    try: return SPECIAL.get(f)
    except TypeError: return None


# %%
#| export
def _length(values: Any) -> Any:
    if isinstance(values, Growing): return size_value(values.total())
    if type(values) is Array: return Array.__len__(values)
    return size_value(values.count) if isinstance(values, Turns) else len(values)


# %%
#| export
def _enumerated(values: Any, start: int = 0) -> Any:
    if not isinstance(values, Yields): return enumerated(values, start)
    number = lambda: size_value(as_dim(start) + unknown('i', 0, 'the number of a turn of the loop over {it} ({at})').size)
    return Yields(values.generator, lambda v: (number(), v))


# %%
#| export
def _float(value: Any = 0.0) -> Any:
    if type(value) is Array: one_entry(value, 'float()')
    return number(float) if type(value) in (Array, Size) else float(value)


# %%
#| export
def _int(value: Any = 0, *base: Any) -> Any: return int_of(value) if type(value) in (Array, Size) else int(value, *base)


# %%
#| export
def _listed(values: Any = ()) -> Any:
    if isinstance(values, Growing): return Growing(list.__iter__(values._readable()), list(values.counts))
    turns = as_turns(values)
    return Growing(values) if turns is None else comprehension(lambda: [v for v in each(turns, 'list', 1)])


# %%
#| export
def _tupled(values: Any = ()) -> Any:
    return tuple(values) if as_turns(values) is None else refuse('a tuple of an unknown number of values')


# %%
#| export
def _mapped(f: Callable, *values: Any) -> Any:
    if all(as_turns(v) is None for v in values): return map(lambda *v: call(f, *v), *values)
    return comprehension(lambda: [call(f, *v) for v in each(zipped(*values), 'list', 1)], user_frame())


# %%
#| export
def _from_iterable(values: Any, dtype: Any = float, count: int = -1, **_) -> Any:
    x = perform(np.array, (values if isinstance(values, list) else list(values), dtype), {})
    return x if as_dim(count) == -1 else x[:_at_most(count, x.axes[0].size)]


# %%
#| export
def _at_most(count: Any, size: Dim) -> Any:
    if not (verdict := holds(claim(as_dim(count), '<=', size))).holds: refuse(f'{count} of {size} things', f'{count} <= {size}', count, verdict=verdict)
    return count


# %%
#| export
def _total(values: Any, start: Any = 0) -> Any:
    if type(values) is Array and values.ndim:
        return perform(np.sum, (values,),
                       {'axis': 0}) + start if branch(claim(values.axes[0].size, '>=', 1)) else start  # nothing: the int 0
    if isinstance(values, Growing) and not values.plain(): return _total_of(values, start)
    if as_turns(values) is not None: refuse('sum() of an unknown number of values', hint='np.sum, or a loop')
    return sum(values, start)


# %%
#| export
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


# %%
#| export
SPECIAL: dict[Any, Callable] = {
    len: _length, range: symbolic_range, zip: zipped, enumerate: _enumerated, map: _mapped, np.fromiter: _from_iterable, reversed: backwards,
    float: _float, int: _int, list: _listed, tuple: _tupled, sum: _total, max: _extreme(max), min: _extreme(min),
    any: _quantified(any), all: _quantified(all), print: _quiet, warnings.warn: _quiet, open: _opened, input: _opened,
    contextlib.suppress: _suppressed,
    type: lambda v, *rest: np.ndarray if type(v) is Array else int if type(v) is Size else type(v, *rest),
    round: lambda v, n=None: perform(np.round, (v,), {}) if type(v) is Array else round(v, n) if n is not None else round(v),
    bool: lambda v=False: bool(v), slice: slice, isinstance: isinstance, getattr: getattr, hasattr: hasattr,
    math.prod: lambda values, start=1: _multiplied(values, start),
    random.random: lambda: number(float), time.time: lambda: number(float), time.perf_counter: lambda: number(float),
    operator.index: lambda v: v if type(v) is Size else operator.index(v),
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
def _unknown_number(dtype: type):
    def result(*args, **_):
        for a in args:
            if type(a) is Array: one_entry(a, 'math')
        return number(dtype) if dtype is not int else Size(unknown('i', None).size)
    return result


# %%
#| export
_TO_INT = 'floor ceil isqrt trunc gcd comb factorial'.split()
_TO_BOOL = 'isnan isinf isfinite isclose'.split()
_TO_FLOAT = '''sqrt exp log log2 log10 log1p expm1 sin cos tan tanh sinh cosh asin acos atan atan2 pow fabs erf erfc gamma lgamma hypot
               copysign fmod'''.split()

for _names, _kind in ((_TO_INT, int), (_TO_BOOL, bool), (_TO_FLOAT, float)):
    for _f in _names: OPS[getattr(math, _f)] = Op(f'math.{_f}', _unknown_number(_kind))

# %% [markdown]
# Random numbers have the shape that is asked for, and no value here.

# %%
#| export
_SIZE_AT = {'random': 0, 'random_sample': 0, 'standard_normal': 0, 'bytes': 0, 'normal': 2, 'uniform': 2, 'integers': 2,
            'randint': 2, 'choice': 1, 'exponential': 1, 'poisson': 1, 'binomial': 2, 'beta': 2, 'gamma': 2}


# %%
#| export
def _random(name: str, args: tuple, kwargs: dict, old: bool = False) -> Any:
    "What a random generator returns."
    if name in ('seed', 'shuffle'): return None
    if name == 'permutation':
        if type(args[0]) is Array: return copied(args[0], Array(args[0].axes, args[0].dtype))
        return perform(np.arange, args, {})
    if name in ('rand', 'randn'): shape = args
    elif name not in _SIZE_AT: refuse(f'the random function {name} has no shape rule', hint='draw outside, and pass the array')
    else: shape = kwargs.get('size', args[_SIZE_AT[name]] if len(args) > _SIZE_AT[name] else None)
    kind = np.int64 if name in ('integers', 'randint', 'poisson', 'binomial') else float
    r = _drawn(name, args, kwargs)
    axes = () if shape is None else tuple(map(axis, shape_of(shape)))
    if name == 'choice': return ranged(_chosen(old, axes, *args, **kwargs), r)
    for a in [*args, *kwargs.values()] if name not in ('rand', 'randn') else ():  # the distribution of each number
        if type(a) is Array and a is not shape and a.axes:
            if shape is None: axes = broadcast(Array(axes), a)
            else: perform(np.broadcast_to, (a, [b.size for b in axes]), {})
    return ranged(Array(axes, kind), r)


# %%
#| export
def _chosen(old: bool, axes: tuple, a: Any, size: Any = None, replace: Any = True, p: Any = None, axis: int = 0, **_) -> Array:
    "What `choice` takes from an array, or from the whole numbers below a size."
    x = lift(perform(np.arange, (a,), {}) if as_dim(a) is not None else a)
    if not x.axes or axis != 0 or old and x.ndim != 1: refuse('choice from this', 'a size, or an array along its first axis', a)
    least, n = Dim(1) if replace is True else entries(Array(axes)), x.axes[0].size
    if not (verdict := holds(claim(n, '>=', least))).holds: refuse(f'{least} are taken from {n}', f'{n} >= {least}', n, f'add where=["{n} >= {least}"]', verdict)
    if p is not None and lift(p).ndim != 1: refuse('a probability for each', f'Vec<{n}>', lift(p))
    if p is not None and not (verdict := same(lift(p).axes[0].size, n)).holds: refuse('a probability for each', n, lift(p), verdict=verdict)
    return Array((*axes, *x.axes[1:]), x.dtype)


# %%
#| export
def _drawn(name: str, args: tuple, kwargs: dict) -> Range:
    "The range of random whole numbers."
    if name == 'choice': return below(dim) if (dim := as_dim(args[0])) is not None else range_of(lift(args[0]))
    if name not in ('integers', 'randint'): return UNBOUNDED
    low, high = kwargs.get('low', args[0] if args else 0), kwargs.get('high', args[1] if len(args) > 1 else None)
    if high is None: low, high = 0, low
    low, high = range_of(low), range_of(high)
    more = bool(kwargs.get('endpoint'))
    if low.low is not None and low.low == low.high and high.low is not None and high.low == high.high:
        if not (verdict := holds(claim(low.low, '<', high.low + more))).holds:
            refuse(f'nothing from {low.low} to {high.low}', f'{low.low} < {high.low}', high.low, f'add where=["{high.low} > {low.low}"]', verdict)
    if None in (low.low, high.high): return UNBOUNDED
    return Range(low.low, high.high if kwargs.get('endpoint') else high.high - 1)


# %%
#| export
HOOKS |= {'__bendml_call__': call, '__bendml_loop__': loop, '__bendml_while__': while_loop, '__bendml_list__': Growing,
          '__bendml_each__': each, '__bendml_comprehension__': comprehension, '__bendml_table__': table}

# %%
from bendml.shape.trace import Trace, tracing
from bendml.shape.symbols import axis
from bendml.shape.sizes import Dim

def softmax(x): return np.exp(x - x.max(-1, keepdims=True))
def rows(x):
    out = []
    for row in x: out.append(softmax(row))
    return np.stack(out)

n, m = Dim('n'), Dim('m')
with tracing(Trace()): print(copy_of(rows)(Array([axis(n), axis(m)])))

# %% [markdown]
# ## What this does not show
#
# The body of a function is run when it is checked, with what it does besides: it should only compute. Printing and warnings
# are silent, opening a file is refused; a call that sends or deletes something would be made. Globals are read as they are
# when the function is checked. A size turned into text is its name: that `len(str(n))` depends on it goes unseen.
