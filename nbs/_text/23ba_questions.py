# %%
#| default_exp shape.questions

# %% [markdown]
# # Questions
# > `isinstance`, `hasattr`, `is`, `x.dtype`: what a program asks of a value that is not known goes both ways.

# %%
#| hide
#| export
import functools, operator, os, re, sysconfig, types
from typing import Any, Callable, Iterable, Iterator, cast

import numpy as np

from bendml.shape.trace import choose, current, refuse
from bendml.shape.opaque import Opaque, Part, listening, text
from bendml.shape.symbols import Array, Size, is_symbolic, number
from bendml.shape.copies import HOOKS


# %% [markdown]
# ## The kind of an array's numbers
#
# `x: Mat[n, d]` may hold numbers of any kind, and the trace computes with one that behaves alike. So `x.dtype` is
# [opaque](21d_opaque.ipynb), except where it is certain: `F32[Mat[n, d]]`, `np.zeros(n)`, `x > 0`, and what is computed from these.

# %%
#| export
def dtype_of(value: Any) -> Any:
    "What the traced function sees as `value.dtype`."
    if type(value) is not Array or value.sure: return value.dtype
    seen = current().state.setdefault('dtypes', {})
    if id(value) not in seen: seen[id(value)] = value, Opaque('dtype', np.dtype, like=value.dtype)
    return seen[id(value)][1]


# %% [markdown]
# ## Is it one?
#
# The arrays of a call are NumPy's own, or of a class that computes shapes as they do, which the [check at the call](23e_boundary.ipynb)
# makes sure of. A number may be Python's or NumPy's.

# %%
#| export
OWN = {'filename', 'offset', 'mode', 'layout'}  # attributes that an array may have besides ndarray's: np.memmap's, a stored weight's


# %%
#| export
def is_instance(value: Any, kinds: Any) -> bool:
    each = kinds if isinstance(kinds, tuple) else (kinds,)
    if type(value) not in (Array, Opaque): return isinstance(value, kinds)
    if any(type(k) is Opaque for k in each): return choose()
    if type(value) is Array: return _of_array(isinstance(value, kinds), each) if value.ndim else object in each or choose()
    return isinstance(value, kinds) or value._class_ not in (str, bytes, np.dtype) and value._ask_('isinstance', *each)


# %%
#| export
def _of_array(known: bool, kinds: tuple) -> bool:
    "Is the class of an array one of these, if that of np.ndarray is known to be one, or to be none?"
    may_be = lambda k: isinstance(k, type) and issubclass(k, np.ndarray) and not issubclass(k, np.matrix | np.ma.MaskedArray)
    return known or any(map(may_be, kinds)) and choose()


# %%
#| export
def is_subclass(cls: Any, kinds: Any) -> bool:
    each = kinds if isinstance(kinds, tuple) else (kinds,)
    if not any(type(k) is Opaque for k in (cls, *each)): return issubclass(cls, kinds)
    return _of_array(issubclass(np.ndarray, kinds), each) if plain_type(cls) is np.ndarray else choose()


# %%
#| export
def has_attribute(value: Any, name: str) -> bool:
    if type(value) is Opaque:
        return hasattr(value._class_, name) or value._class_ not in (str, bytes, np.dtype) and value._ask_('hasattr', name)
    if type(value) is Size: return hasattr(int, name)
    if type(value) is not Array: return hasattr(value, name)
    if not value.ndim: return hasattr(np.ndarray, name) and hasattr(float, name) or choose()
    return hasattr(np.ndarray, name) or name in OWN and choose()


# %%
#| export
def attribute(value: Any, name: str, *default: Any) -> Any:
    if name == 'dtype' and type(value) is Array: return dtype_of(value)
    if type(value) is Opaque and default and not hasattr(value._class_, name): return value._part_(f'{value._name_}.{name}', (name, *default))
    if type(value) is not Array or not default: return getattr(value, name, *default)
    try: return getattr(value, name)
    except AttributeError:
        if value.ndim and not hasattr(np.ndarray, name) and name not in OWN: return default[0]
        refuse(f'the attribute {name!r} of an array has no rule')


# %%
#| export
def type_of(value: Any, *rest: Any) -> Any:
    if type(value) is Array: return Opaque('type of an array' if value.ndim else 'type of a number', type, fixed=False)
    return int if type(value) is Size else Opaque(f'type({value._name_})', type, fixed=False) if type(value) is Opaque else type(value, *rest)


# %%
#| export
def plain_type(value: Any) -> Any:
    "NumPy's class for the type of an array: what a function with a cache is asked about, which needs a key."
    return np.ndarray if type(value) is Opaque and value._name_ == 'type of an array' else value


# %%
#| export
def is_same(a: Any, b: Any) -> bool:
    "`a is b`, where neither is None."
    for one, other in ((a, b), (b, a)):
        if type(one) is Opaque and other is not None: return one is other or one._ask_('is', other)
        number = type(one) is Size or type(one) is Array and not one.ndim
        if one is not other and other is not None and (number or type(one) is type(other) is Array): return choose()
    return a is b


# %%
#| export
def subject(value: Any) -> Any:
    "What is matched against classes, or True and False: Python asks these itself, and gets one answer."
    if has_unknown((value,)): refuse('a value that is not known is matched against a class, or True and False', hint='write if and isinstance')
    return value


# %% [markdown]
# `functools.singledispatch` asks for the class of its first argument. Where the classes that it may have lead to different
# functions, the check does not know which one is called.

# %%
#| export
_DISPATCH = functools.singledispatch(abs).__code__, next(c for c in functools.singledispatchmethod.__get__.__code__.co_consts if isinstance(c, types.CodeType))
_NUMBERS = bool, int, float, complex, np.ndarray, *dict.fromkeys(np.sctypeDict.values())

def dispatched(f: Any, args: tuple) -> Callable | None:
    "The function that a `singledispatch` function calls for these arguments; None if `f` is none."
    code = getattr(f, '__code__', None)
    if code not in _DISPATCH or not args: return None
    around = dict(zip(code.co_freevars, (c.cell_contents for c in f.__closure__)))
    dispatcher = around['self'].dispatcher if 'self' in around else f
    found = {id(g): g for g in map(dispatcher.dispatch, _classes(args[0], dispatcher.registry))}
    if len(found) != 1: refuse(f'which function {f.__name__} calls depends on the class of {args[0]}, which is not known', hint='call the one that you mean by its own name')
    chosen, = found.values()
    return chosen.__get__(around['obj'], around['cls']) if 'self' in around else chosen

def _classes(value: Any, registered: Iterable) -> tuple:
    "The classes that a value may have when the program runs."
    if type(value) is Array: return (np.ndarray, *(c for c in registered if issubclass(c, np.ndarray))) if value.ndim else _NUMBERS
    if type(value) is Size: return int, *(c for c in _NUMBERS if issubclass(c, np.integer))
    if type(value) is Opaque: return value._class_, *(registered if value._class_ not in (str, bytes) else ())
    return (list, tuple) if hasattr(value, 'listed') else (list,) if hasattr(value, 'grown') else (type(value),)


# %% [markdown]
# ## Texts

# %%
#| export
def has_unknown(values: Iterable) -> bool:
    "Is there a symbolic or opaque value among some, or in a list or tuple of them?"
    inside = lambda v: list.__iter__(v) if isinstance(v, list) else v if isinstance(v, tuple) else ()
    return any(type(v) is Opaque or is_symbolic(v) or has_unknown(inside(v)) for v in values)


# %%
#| export
def percent(left: Any, right: Any) -> Any:
    "`text % values`, or the remainder of numbers."
    if type(left) is not str or not has_unknown((right,)): return left % right
    for value, kind in _filled_in(left, right):
        if kind not in 'sra' and type(value) is Array and value.axes: refuse(f'%{kind} of an array', 'a number', value, 'write %s, or an entry of it')
    return Opaque(left, str, fixed=False)

_PLACE = re.compile(r'%(?:\((\w*)\))?[-#0 +]*(\*|\d*)(?:\.(\*|\d*))?[hlL]?([a-zA-Z%])')

def _filled_in(form: str, values: Any) -> Iterator[tuple[Any, str]]:
    "What `%` fills into a text, and how each is written."
    rest = iter(values if isinstance(values, tuple) else (values,))
    for name, width, places, kind in _PLACE.findall(form):
        for part in ('*' in width)*'*' + ('*' in places)*'*': next(rest, None)
        if kind != '%': yield values.get(name) if name and isinstance(values, dict) else next(rest, None), kind


# %%
#| export
def _worded(f: Callable) -> Callable:
    def worded(*args, **kwargs):
        if not has_unknown((*args, *kwargs.values())): return f(*args, **kwargs)
        if f.__name__ == 'format': f(*args, **kwargs)  # an array says if it has that format
        return Opaque(f'{f.__name__}(...)', str, fixed=False)
    return worded


# %%
#| export
HOOKS |= {'__bendml_dtype__': dtype_of, '__bendml_is__': is_same, '__bendml_subject__': subject, '__bendml_percent__': percent, '__bendml_text__': text,
          '__bendml_listening__': listening}

# %% [markdown]
# ## Functions that have no rule
#
# What a function outside of the trace says of an opaque value is opaque too: `np.issubdtype(x.dtype, np.integer)`,
# `os.path.exists(name)`. A list or dictionary that takes it up does so for real.

# %%
#| export
OUTSIDE = (sysconfig.get_path('stdlib'), '<frozen', os.path.dirname(np.__file__))

def from_outside(f: types.FunctionType) -> bool:
    "Is it a function that is not traced: Python's, NumPy's or this package's?"
    file, numpy = f.__code__.co_filename, OUTSIDE[2]
    if file.startswith(numpy) or (f.__module__ or '').startswith('bendml.shape.'): return True
    return file.startswith(OUTSIDE) and 'site-packages' not in file


# %%
#| export
def typed_shapes(f: Any) -> Any:
    "What is known of a typed function; None for another, also where `functools.wraps` has made it look like a typed one."
    shapes = getattr(f, '__shapes__', None)
    return shapes if shapes is not None and shapes.quick is getattr(f, '__func__', f) else None


# %%
#| export
def _only_reads(f: Any) -> bool:
    if isinstance(f, types.FunctionType): return not hasattr(f, '__shapes__') and from_outside(f)
    if isinstance(f, types.BuiltinFunctionType) and not isinstance(f.__self__, types.ModuleType | str | None): return False
    package = (getattr(f, '__module__', None) or '').partition('.')[0]
    return isinstance(f, types.BuiltinFunctionType) or package in ('numpy', 'pathlib', 'decimal', 'fractions')


# %%
#| export
def asked(f: Any, args: tuple, kwargs: dict) -> Any:
    "What such a function says of opaque arguments; NotImplemented if it is none of these."
    if isinstance(f, operator.attrgetter) and is_symbolic(args): refuse('attrgetter of an array', hint='write the attribute')
    if isinstance(getattr(f, '__self__', None), str) and has_unknown((*args, *kwargs.values())): return _worded(f)(*args, **kwargs)
    if not any(type(v) is Opaque for v in (*args, *kwargs.values())) or not _only_reads(f): return NotImplemented
    first = next((a for a in args if type(a) is Opaque), None)
    if first is None or kwargs: return Opaque(f'{f.__name__}(...)', Part, fixed=False)
    if f is np.dtype: return first
    if f in (np.finfo, np.iinfo) and first._like_ is not None: return _Limits(first._like_)
    if first._class_ is not np.dtype: return Opaque(f'{f.__name__}(...)', Part, fixed=False)
    return first._part_(f'{f.__name__}({first._name_}, ...)', (f, *args))


# %%
#| export
class _Limits:
    "`np.finfo(x.dtype)`, for numbers of a kind that is not known."
    def __init__(self, kind: np.dtype): self.kind = kind
    def __getattr__(self, name): return number(self.kind)


# %%
#| export
def _seeded(f: Callable) -> Callable:
    "A random generator, whose seed need not be known."
    return lambda *args, **kwargs: f(0) if has_unknown((*args, *kwargs.values())) else f(*args, **kwargs)

_GENERATORS = np.random.default_rng, np.random.RandomState, np.random.SeedSequence, np.random.PCG64, np.random.MT19937, np.random.Philox

ANSWERS: dict[Any, Callable] = {
    id: lambda v: number(int) if has_unknown((v,)) else id(v), isinstance: is_instance, issubclass: is_subclass,
    cast: lambda kind, value: value, hasattr: has_attribute, getattr: attribute, type: type_of,
    **{f: _worded(f) for f in (str, repr, format, ascii)}, **{f: _seeded(f) for f in _GENERATORS}}

# %%
from bendml.shape.trace import Trace, tracing
from bendml.shape.symbols import axis
from bendml.shape.sizes import Dim
from bendml.shape.copies import copy_of
from bendml.shape import moves  # the rule of .T

def turned(x):
    if x.dtype == np.float32: return x.T
    return x

for plan in (True,), (False,):
    with tracing(Trace(plan=plan)): print(copy_of(turned)(Array([axis(Dim('n')), axis(Dim('d'))])))

# %% [markdown]
# ## What this does not show
#
# Two questions that mean the same are two questions: `x.dtype == np.int64` and `x.dtype.kind == 'i'`.
