# %%
#| default_exp shape.lasting

# %% [markdown]
# # What outlives a call
# > A cache, a counter, a list of a class: a function that changes one is refused, and it is put back as it was.

# %% [markdown]
# A check runs a function on arrays without numbers. If the function, or a helper that it calls, kept one of them in a dictionary
# of its module, the first real call would find it there. And a function whose result depends on what an earlier call has left is not
# described by its annotations. So before a function is traced, all that it can reach and that was there before is written
# down; afterwards it is compared, and put back.

# %%
#| hide
#| export
import functools, io, logging, sys, types
from collections import OrderedDict, deque
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

import numpy as np

from bendml.shape.messages import ShapeError, place_of_code
from bendml.shape.states import _checksum, _settings, attributes, fingerprint
from bendml.shape.questions import from_outside

# %% [markdown]
# ## What a thing holds

# %%
#| export
APART = logging.Logger | PurePath | io.IOBase  # they keep what they have found out
_OWN = {'__wrapped__', '__shapes__'}           # what decorators have written into a function

def _held(value: Any) -> dict[Any, Any]:
    "What something holds, by key, number or attribute."
    if isinstance(value, np.ndarray): return dict(enumerate(value.flat)) if value.dtype == object else {'numbers': _checksum(value)}
    if isinstance(value, dict): return dict((OrderedDict if isinstance(value, OrderedDict) else dict).items(value))
    if isinstance(value, list): return dict(enumerate(list.__iter__(value)))
    if isinstance(value, tuple | deque): return dict(enumerate(value))
    if isinstance(value, set | frozenset): return {id(v): v for v in value}
    if isinstance(value, types.FunctionType): return {n: v for n, v in vars(value).items() if n not in _OWN}
    if isinstance(value, types.MethodType): return {'self': value.__self__, 'function': value.__func__}
    if isinstance(value, functools.partial): return {'function': value.func, 'arguments': value.args, 'keywords': value.keywords}
    if isinstance(value, type): return dict(_settings(value))
    if isinstance(value, Iterator): return {'place': _place(value)}
    return attributes(value)

def _place(it: Iterator) -> str:
    "How far an iterator has come, if it says so."
    frame = getattr(it, 'gi_frame', None)
    try: return str((frame.f_lasti, frame.f_locals) if frame else it.__reduce__())
    except TypeError: return ''


# %%
#| export
def _put_back(value: Any, held: dict[Any, Any], numbers: np.ndarray | None) -> None:
    "Make something hold again what it held."
    match value:
        case np.ndarray():
            if numbers is not None: value[...] = numbers
        case dict():
            kind = OrderedDict if isinstance(value, OrderedDict) else dict
            kind.clear(value)
            kind.update(value, held)
        case list(): list.__setitem__(value, slice(None), list(held.values()))
        case deque() | set():
            value.clear()
            value.extend(held.values()) if isinstance(value, deque) else value.update(held.values())
        case tuple() | frozenset() | types.MethodType() | functools.partial() | Iterator(): pass
        case _:
            change, drop = (type.__setattr__, type.__delattr__) if isinstance(value, type) else (object.__setattr__, object.__delattr__)
            for n in _held(value).keys() - held.keys(): drop(value, n)
            for n, v in held.items(): change(value, n, v)


# %%
#| export
def _identical(a: Any, b: Any) -> bool: return a is b or type(a) is type(b) in (int, str, bool, bytes) and a == b

def _alike(a: dict, b: dict) -> bool:
    "Do two things that were held look the same?"
    return list(a) == list(b) and all(_identical(v, b[k]) or fingerprint(v) == fingerprint(b[k]) for k, v in a.items())


# %% [markdown]
# ## What a function can reach
#
# Globals that it names (of a module, those of its attributes that it names), variables around it, defaults, its own attributes; what
# these hold; and what functions and methods among them can reach in turn. What Python and NumPy have is not looked at.

# %%
#| export
def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for c in code.co_consts:
        if isinstance(c, types.CodeType): yield from _codes(c)

def _of_program(module: str) -> bool:
    top = module.partition('.')[0]
    return top not in sys.stdlib_module_names and top not in ('builtins', 'numpy') and not module.startswith('bendml.shape')


# %%
#| export
MOST = 5_000
_NOTHING = object()

class Lasting:
    "What the functions of a trace can reach, as it was before."
    def __init__(self):
        self.functions: dict[int, types.FunctionType] = {}
        self.kept: dict[int, tuple] = {}      # by identity: (it, what it held, its numbers, its name, the function that reaches it)
        self.modules: list[tuple] = []        # (module, an attribute, its value, function)

    def note(self, f: types.FunctionType) -> None:
        "Write down what a function can reach, once."
        if id(f) in self.functions or len(self.kept) > MOST or from_outside(f) or '__bendml__' in f.__globals__: return
        self.functions[id(f)] = f
        names = {n for c in _codes(f.__code__) for n in c.co_names}
        for n in sorted(names & f.__globals__.keys()): self._named(n, f.__globals__[n], names, f)
        for n, cell in zip(f.__code__.co_freevars, f.__closure__ or ()):
            try: self.keep(cell.cell_contents, n, f)
            except ValueError: pass
        for n, v in (f.__name__, f), ('a default', f.__defaults__ or ()), ('a keyword default', f.__kwdefaults__ or {}): self.keep(v, n, f)

    def _named(self, name: str, value: Any, names: set[str], f: types.FunctionType, depth: int = 0) -> None:
        if not isinstance(value, types.ModuleType): return self.keep(value, name, f)
        if depth > 4 or not _of_program(value.__name__): return
        for n in sorted(names):
            found = vars(value).get(n, _NOTHING)
            if not isinstance(found, types.ModuleType): self.modules.append((value, n, found, f))
            if found is not _NOTHING: self._named(f'{name}.{n}', found, names, f, depth + 1)

    def keep(self, value: Any, name: str, f: types.FunctionType, depth: int = 0) -> None:
        "Write down what something holds, and all that can be reached from there."
        kind = value if isinstance(value, type) else type(value)
        if isinstance(value, int | float | complex | str | bytes | types.NoneType): return
        if depth > 8 or id(value) in self.kept or len(self.kept) > MOST or isinstance(value, types.ModuleType | APART): return
        if isinstance(value, type) and not _of_program(value.__module__) or kind.__module__.startswith('bendml.shape'): return
        if isinstance(value, types.FunctionType) and from_outside(value): return self.keep(getattr(value, '__wrapped__', None), name, f, depth + 1)
        held, small = _held(value), isinstance(value, np.ndarray) and value.flags.writeable and value.nbytes < 1 << 22
        own = isinstance(value, types.FunctionType)
        self.kept[id(value)] = value, held, value.copy() if small else None, name, f
        if own and 'site-packages' not in value.__code__.co_filename: self.note(value)
        inside = vars(value) if isinstance(value, type) else held | {_NOTHING: kind}
        for v in list(inside.values()): self.keep(v, name, f, depth + 1)

    def put_back(self) -> ShapeError | None:
        "Put everything back; the refusal if something was changed."
        changed = None
        for value, held, numbers, name, f in self.kept.values():
            now = _held(value)
            if list(now) == list(held) and all(map(_identical, now.values(), held.values())): continue
            if not _alike(held, now): changed = changed or (name, f)
            _put_back(value, held, numbers)
        for module, n, value, f in self.modules:
            if (now := vars(module).get(n, _NOTHING)) is value: continue
            changed = changed or (f'{module.__name__}.{n}', f)
            vars(module).pop(n) if value is _NOTHING else setattr(module, n, value)
        if changed is None: return None
        return ShapeError(f'{changed[0]} is changed, which outlives the call', place=place_of_code(changed[1].__code__),
                          hint='take it as a parameter, and return what is new; for a cache, write @functools.lru_cache above a function that makes what is kept')


# %%
from bendml.shape.trace import Trace, tracing
CACHE = {}
def table(k):
    if k not in CACHE: CACHE[k] = np.arange(k)
    return CACHE[k]

lasting = Lasting()
lasting.note(table)
with tracing(Trace()):
    table(3)
    print(lasting.put_back(), CACHE)

# %% [markdown]
# ## What this does not show
#
# What an object of a compiled class hides, unless it is a collection, is not seen. More than eight steps away, and beyond five thousand things,
# nothing is written down. An iterator that has moved on is not put back. A thing that another thread changes while a function that reaches it is
# checked looks as if the function had changed it: check first, then start threads.
