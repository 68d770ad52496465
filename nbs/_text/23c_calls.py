# %%
#| default_exp shape.calls

# %% [markdown]
# # Calls in a trace
# > NumPy's functions go to the table, the user's own are traced too, and Python's own have a stand-in each.

# %%
#| hide
#| export
import ast, contextlib, functools, itertools, math, operator, os, random, sys, time, types, warnings
from functools import reduce
from typing import Any, Callable

import numpy as np

from bendml.shape.facts import claim
from bendml.shape.sizes import Dim
from bendml.shape.messages import ShapeError, place_of, source_of
from bendml.shape.trace import branch, choose, current, holds, refuse, tick, user_frame
from bendml.shape.opaque import Opaque
from bendml.shape.symbols import (METHODS, OPS, RULE, Array, Op, Size, _Method, as_dim, axis, is_symbolic, no_axes, no_rule, number, one_entry, op_of,
                                  perform, rule as table_rule, size_value)
from bendml.shape.ranges import copied, unknown
from bendml.shape.elementwise import lift
from bendml.shape.states import FEWER, Growing, Turns, as_turns, backwards, enumerated, int_of, symbolic_range, zipped
from bendml.shape.several import combinations, ndenumerate, ndindex, pairwise, product
from bendml.shape.loops import Yields, comprehension, each, loop, while_loop
from bendml.shape.copies import HOOKS, copy_of
from bendml.shape.questions import ANSWERS, asked, dispatched, from_outside, has_unknown, plain_type, typed_shapes
from bendml.shape.constants import made, written_to
from bendml.shape.drawing import draw
from bendml.shape.chance import chance, drawn
from bendml.shape import (applying, bits, blocks, fourier, indexing, joining, linear, making, matrices, moves, polynomials, products, reductions,
                          searching)  # their rules

# %% [markdown]
# ## Calls
#
# Every call of the copy comes here. NumPy functions go to the table when a symbolic value is among their arguments; Python
# functions are copied and so traced too, except those of the standard library; typed functions are checked by their
# signature.

# %%
#| export
ALWAYS = {np.zeros, np.ones, np.empty, np.full, np.zeros_like, np.ones_like, np.empty_like, np.full_like}


# %%
#| export
def call(f: Any, /, *args: Any, **kwargs: Any) -> Any:
    "What `f(*args, **kwargs)` does in a trace."
    tick()
    if type(f) is Opaque: return number(f._like_) if f._like_ is not None else f(*args, **kwargs)  # x.dtype.type(0)
    if (special := _special(f)) is not None: return special(*args, **kwargs)
    if (chosen := dispatched(f, args)) is not None: return call(chosen, *args, **kwargs)
    if (name := drawn(f)): return chance(name, args, kwargs)
    if (shapes := typed_shapes(f)):
        return shapes.by_signature((f.__self__, *args) if isinstance(f, types.MethodType) else args, kwargs)
    if any(type(a) is Turns for a in args) and op_of(f) is not None: args = tuple(_as_listed(a) if type(a) is Turns else a for a in args)
    if op_of(f) is not None: _empty_list(args)
    if op_of(f) is not None and (_known(f) or is_symbolic(args) or is_symbolic(kwargs) or _has_dtype(args, kwargs)): return perform(f, args, kwargs)
    if (is_symbolic(args) or is_symbolic(kwargs)) and (getattr(f, '__module__', None) or '').partition('.')[0] == 'numpy':
        if isinstance(f, type) and issubclass(f, np.generic): return perform('astype', (lift(args[0]), f), {})
        if isinstance(f, types.FunctionType | type) and f not in (np.errstate, np.vectorize): no_rule(f)
    if isinstance(f, functools._lru_cache_wrapper):
        args = tuple(map(plain_type, args))
        return call(f.__wrapped__, *args, **kwargs) if has_unknown((*args, *kwargs.values())) else f(*args, **kwargs)
    if (answer := asked(f, args, kwargs)) is not NotImplemented: return answer
    owner = getattr(f, '__self__', None)
    if type(owner) is np.ndarray and f.__name__ in METHODS and (is_symbolic(args) or is_symbolic(kwargs)):
        if f.__name__ in ('fill', 'put', 'sort', 'partition'): written_to(owner)
        return perform(METHODS[f.__name__], (lift(owner), *args), kwargs, method=True)
    if isinstance(owner, np.ufunc) and is_symbolic(args): return perform(f'ufunc.{f.__name__}', (owner, *args), kwargs)
    if isinstance(owner, np.random.Generator | np.random.RandomState | np.random.BitGenerator): return draw(f.__name__, args, kwargs, isinstance(owner, np.random.RandomState))
    if isinstance(f, types.MethodType):
        return call(f.__func__, f.__self__, *args, **kwargs) if isinstance(f.__func__, types.FunctionType) else f(*args, **kwargs)
    if isinstance(f, types.FunctionType):
        result = _deeper(_entered, (f, args, kwargs), {})
        return Yields(result) if isinstance(result, types.GeneratorType) and _traced(f) else result
    if isinstance(f, type): return _instance(f, args, kwargs)
    if isinstance(f, np.vectorize): return perform('vectorize', (f, *args), kwargs)
    method = getattr(type(f), '__call__', None)
    if isinstance(method, types.FunctionType) and type(f) is not _Method and not isinstance(f, np.ufunc):
        return call(method, f, *args, **kwargs)
    return made(f(*args, **kwargs))


# %%
#| export
def _as_listed(turns: Turns) -> Any:
    "What NumPy takes for several values, or for a range."
    return turns.listed(turns) if turns.listed else turns.numbers() if hasattr(turns, 'numbers') else turns

def _has_dtype(args: tuple, kwargs: dict) -> bool:
    "Is one of them the dtype of an array, which need not be known?"
    return any(type(v) is Opaque and v._like_ is not None for v in (*args, *kwargs.values()))

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
    try: return made(f(*args, **kwargs))
    finally: state['calls'] -= 1


# %% [markdown]
# A list that a loop fills is empty where the loop makes no turn, and an array of shape (0,) to NumPy, whatever its elements
# would have been. What is refused because of that says so.

# %%
#| export
def _empty_list(args: tuple) -> None:
    "Note for the hint of a refusal that NumPy takes a list that has remained empty."
    if not args or type(args[0]) is not Growing or list.__len__(args[0]) or not (why := current().state.get('without')): return
    text = source_of(place_of(frame, 0)) if (frame := user_frame()) else ''
    if text == '[]': return
    if (name := _iterated(text)) and (type(given := frame.f_locals.get(name)) is Growing or getattr(given, 'listed', None)): text = name
    test = 'if len({0}) == 0: raise ValueError("nothing given")'.format
    how = f'test it first: {test(text)}' if text.isidentifier() else f'give it a name and test it: values = [...], and {test("values")}'
    current().state['empty'] = f'the list is empty where {why}; {how}'


# %%
#| export
def _iterated(text: str) -> str:
    "The list xs that makes `[f(x) for x in xs]` empty if it is."
    try: node = ast.parse(text, mode='eval').body
    except SyntaxError: return ''
    match node:
        case ast.ListComp(generators=[ast.comprehension(iter=ast.Name(name), ifs=[])]): return name
    return ''


# %%
#| export
def _traced(f: types.FunctionType) -> types.FunctionType | None: return None if from_outside(f) else copy_of(f)


# %% [markdown]
# Another package's function is traced like the user's own. Where that does not work, a rule does.

# %%
#| export
def _entered(f: types.FunctionType, args: tuple, kwargs: dict) -> Any:
    "Trace a function; a refusal inside another package than its caller's is shown at the call, and says how to give it a rule."
    copy, frame, own = _traced(f) or f, user_frame(), (f.__module__ or '').partition('.')[0]
    if (lasting := current().state.get('lasting')) is not None: lasting.note(f)
    if 'site-packages' not in f.__code__.co_filename or frame and frame.f_globals.get('__name__', '').partition('.')[0] == own:
        return copy(*args, **kwargs)
    name = _public_name(f)
    try: return copy(*args, **kwargs)
    except ShapeError as e:
        where = f', {os.path.basename(e.place.file)}:{e.place.line}' if e.place else ''
        e.reason, e.place = f'in {name}{where}: {e.reason}', frame and place_of(frame)
        e.args = e.reason,
        if not e.hint or RULE in e.hint: e.hint = f'give it a rule: @rule({name}) above a function with its parameters that returns np.zeros(...) of the right shape'
        raise
    except Exception as e:
        if current().state.get('raised') is e: raise
        refuse(f'in {name}: {type(e).__name__}: {e}', hint=f'give it a rule: @rule({name})')


# %%
#| export
def _public_name(f: types.FunctionType) -> str:
    "The name by which a function is imported: scipy.signal.medfilt, not scipy.signal._signaltools.medfilt."
    public = '.'.join(p for p in f.__module__.split('.') if not p.startswith('_'))
    return f'{public if getattr(sys.modules.get(public), f.__name__, None) is f else f.__module__}.{f.__name__}'


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
        return lift(self.numbers)[index] if is_symbolic(index) else made(self.numbers[index])
    def __setitem__(self, index: Any, value: Any) -> None:
        if is_symbolic(index) or is_symbolic(value): written_to(self.numbers)
        self.numbers[index] = value


# %%
#| export
def table(values: Any) -> Any:
    if values is np.r_ or values is np.c_: return _Joiner(values)
    if values is np.mgrid or values is np.ogrid: return _Grid(values)
    return _Table(values) if type(values) is np.ndarray else values


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


# %%
#| export
class _Grid:
    "`np.mgrid` and `np.ogrid`: ranges, and all their combinations."
    __slots__ = 'real',
    def __init__(self, real: Any): self.real = real
    def __getitem__(self, index: Any) -> Any:
        if not is_symbolic(index): return self.real[index]
        one = lambda s: (perform(np.linspace, (s.start or 0, s.stop, int(abs(s.step))), {}) if isinstance(s.step, complex) else
                         perform(np.arange, (s.start or 0, s.stop, s.step or 1), {}))
        if isinstance(index, slice): return one(index)
        grids = perform(np.meshgrid, tuple(map(one, index)), {'indexing': 'ij', 'sparse': self.real is np.ogrid})
        return tuple(grids) if self.real is np.ogrid else perform(np.stack, (grids,), {})


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
    if isinstance(values, Turns): return size_value(values.count)
    if not isinstance(own := getattr(type(values), '__len__', None), types.FunctionType) or from_outside(own): return len(values)
    if (size := as_dim(made := call(own, values))) is None or not holds(claim(size, '>=', 0)).holds:
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
    return call(f, a/b)


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
    if all(as_turns(v) is None for v in values): return map(lambda *v: call(f, *v), *values)
    made = comprehension(lambda: [call(f, *v) for v in each(zipped(*values), 'list', 1)], user_frame())
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
        if lift(rank := call(key, v[0]) if key else v[0]).axes: refuse('rows are sorted, and have no order', 'a number', rank, 'x[np.argsort(x[:, 0])], or sorted(x, key=lambda row: row[0])')
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
    if (turns := as_turns(values)) is None: return functools.reduce(lambda a, b: call(f, a, b), values, *start)
    if not start and not holds(claim(turns.count, '>=', 1)).holds: refuse('reduce() of several values, and there may be none', hint=FEWER)
    result, rest = (start[0], turns) if start else (turns.item(Dim(0)), Turns(turns.count - 1, lambda k: turns.item(k + 1)))
    for value in loop(rest, ('value',)): result = call(f, result, value)
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


# %% [markdown]
# ## Rules of your own
#
# `bendml.shape.rule` gives any function a rule: one of NumPy's, of another package, or your own. Its body is traced as a typed
# function's is, so it is ordinary NumPy. It says which shape there is, not which numbers; and what is refused in it is shown
# where the function is called.

# %%
#| export
def rule(*functions: Callable) -> Callable:
    "Declare the shape rule of some functions: `@rule(f)` above one with f's parameters that returns `np.zeros(...)` of the right shape."
    def register(shape: Callable) -> Callable:
        table_rule(*functions)(_from_outside(shape))
        return shape
    return register


# %%
#| export
def _from_outside(shape: Callable) -> Callable:
    def traced(*args, **kwargs):
        name, method = current().state['op']
        try: return _without_numbers(call(shape, *args, **kwargs))
        except ShapeError as e:
            if e.reason.startswith(f'{name}: '): e.place = place_of(user_frame(), e.operand, method)
            else: e.reason, e.place = f'in the rule of {name}: {e.reason}', place_of(user_frame())
            e.args = e.reason,
            raise
        except Exception as e: refuse(': '.join(filter(None, (type(e).__name__, str(e)))))
    traced.__name__ = shape.__name__
    return traced


# %%
#| export
def _without_numbers(made: Any) -> Any:
    "What a rule returns, with nothing known of the numbers in it; a whole number is a size."
    if isinstance(made, list | tuple):
        inside = list(map(_without_numbers, made))
        return type(made)(*inside) if hasattr(made, '_fields') else tuple(inside) if isinstance(made, tuple) else inside
    if type(made) is Array: return Array(made.axes, made.dtype, made.lost)
    if type(made) is np.ndarray: return Array(map(axis, made.shape), made.dtype)
    return number(type(made)) if isinstance(made, bool | float | complex | np.generic) else made


# %%
#| export
OPS['call'] = Op('call', call)  # for the pages before: a function that is an argument

# %%
#| export
HOOKS |= {'__bendml_call__': call, '__bendml_ratio__': ratio, '__bendml_loop__': loop, '__bendml_while__': while_loop, '__bendml_list__': Growing,
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


# %%
def secret(x): return [sum(row) for row in x.tolist()]

@rule(secret)
def _(x): return np.zeros(len(x))

with tracing(Trace()): print(call(secret, Array([axis(n), axis(m)])))

# %% [markdown]
# ## What this does not show
#
# The body of a function is run when it is checked, with what it does besides: it should only compute. Printing and warnings
# are silent, opening a file is refused; a call that sends or deletes something would be made. Globals are read as they are
# when the function is checked. A size turned into text is its name: that `len(str(n))` depends on it goes unseen.
