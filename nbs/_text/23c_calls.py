# %%
#| default_exp shape.calls

# %% [markdown]
# # Calls in a trace
# > NumPy's functions go to the table, the user's own are traced too, and Python's own have a stand-in each.

# %%
#| hide
#| export
import ast, functools, os, sys, types
from typing import Any, Callable

import numpy as np

from bendml.shape.messages import ShapeError, place_of, source_of
from bendml.shape.trace import current, refuse, tick, user_frame
from bendml.shape.opaque import Opaque
from bendml.shape.symbols import METHODS, OPS, RULE, Array, Op, axis, is_symbolic, no_rule, number, op_of, perform, rule as table_rule
from bendml.shape.operators import _Method
from bendml.shape.elementwise import lift
from bendml.shape.states import Growing, Turns
from bendml.shape.loops import Yields, comprehension, each, loop, while_loop
from bendml.shape.copies import HOOKS, copy_of
from bendml.shape.questions import asked, dispatched, from_outside, has_unknown, plain_type, typed_shapes
from bendml.shape.constants import made, written_to
from bendml.shape.builtins import SPECIAL
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
def _special(f: Any) -> Callable | None:
    try: return SPECIAL.get(f)
    except TypeError: return None


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
