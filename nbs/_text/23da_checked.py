# %%
#| default_exp shape.checked

# %% [markdown]
# # Checked once
# > What is kept of a check, and how functions that call each other, or themselves, lean on what they promise.

# %%
#| hide
#| export
import difflib, enum, threading, types
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Callable, Iterator

import numpy as np

from bendml.shape.sizes import Dim, names_of
from bendml.shape.facts import parse_claim
from bendml.shape.messages import ShapeError, place_of_code
from bendml.shape.annotations import ArraySpec, Signature, SizeSpec, TupleSpec, names_in
from bendml.shape.opaque import Opaque
from bendml.shape.symbols import Array, Size, as_dim
from bendml.shape.states import _checksum, _settings, attributes
from bendml.shape.objects import Own
from bendml.shape.values import parts_of
from bendml.shape.paths import Report, _is_self, check, split_conditions, start_facts


# %% [markdown]
# ## A function that calls itself
#
# While a function is checked, a call of it in its own body is taken at its word: its signature. That is no circle: the
# innermost call makes none, and is right; so is one that leans on it, and so on. What the signature does not say, which
# sizes the function refuses by itself and what a method does to `self`, is guessed: nothing, and checked again with what was
# found until the guess is right.

# %%
#| export
@dataclass(eq=False)
class Guess:
    "A check that is going on, and what is assumed of its result."
    shapes: 'Checks'
    statics: dict[str, Any]
    report: Report
    used: bool = False    # somebody has leaned on it
    leans: bool = False   # its check has leaned on a guess further out


# %%
#| export
_going_on = threading.local()
ROUNDS = 5


# %%
#| export
@contextmanager
def guessing(guess: Guess) -> Iterator[None]:
    _going_on.all = [*getattr(_going_on, 'all', ()), guess]
    try: yield
    finally: _going_on.all = _going_on.all[:-1]


# %%
#| export
def _leaned_on(shapes: 'Checks', statics: dict[str, Any]) -> Report | None:
    "What is assumed of a function that is being checked; every check inside that one leans on it."
    going = getattr(_going_on, 'all', [])
    for i, guess in enumerate(going):
        if guess.shapes is shapes and _alike(guess.statics, statics):
            guess.used = True
            for inner in going[i + 1:]: inner.leans = True
            return guess.report
    return None


# %% [markdown]
# ## Settings
#
# A function is checked for the value that a setting has. Another call leans on that check if its value is the same to the last
# attribute: `(1.0, 2)` is not `(1, 2)`, and an object may have changed since. A NumPy integer, which counts otherwise than
# Python's own (`np.uint8(200) + 100` is 44), becomes an `int` first.

# %%
#| export
_SAME = type | types.FunctionType | types.BuiltinFunctionType | types.ModuleType | np.ufunc | enum.Enum
_VALUES = bool | int | float | complex | str | bytes | type(None) | np.generic

def mark(value: Any, seen: tuple = ()) -> tuple:
    "What a setting is, as something that compares."
    kind = type(value)
    if kind is Size: return kind, as_dim(value)
    if kind in (Opaque, Array) or isinstance(value, _SAME) or id(value) in seen or len(seen) > 8: return 'same', id(value)
    if isinstance(value, _VALUES): return kind, value if isinstance(value, int | str | bytes) else repr(value)
    if isinstance(value, np.ndarray): return kind, value.shape, str(value.dtype), _checksum(value)
    inside = lambda v: mark(v, (*seen, id(value)))
    if isinstance(value, types.MethodType): return kind, id(value.__func__), inside(value.__self__)
    own = () if kind.__module__ == 'builtins' else tuple((n, inside(v)) for n, v in [*attributes(value).items(), *(s for c in kind.__mro__ for s in _settings(c))])
    if isinstance(value, dict): return kind, own, tuple((inside(k), inside(v)) for k, v in value.items())
    if isinstance(value, list | tuple): return kind, own, tuple(map(inside, value))
    if isinstance(value, set | frozenset): return kind, own, frozenset(map(inside, value))
    return (kind, own) if own else ('same', id(value))


# %%
#| export
def plain(value: Any) -> Any:
    "A setting with Python's own whole numbers."
    if isinstance(value, np.integer): return int(value)
    return tuple(map(plain, value)) if type(value) is tuple else value

def lasting(value: Any) -> bool:
    "Is a value always what it is now, so that it need not be looked into?"
    return all(map(lasting, value)) if type(value) is tuple else isinstance(value, _SAME | _VALUES)


# %%
mark((1, 2)) == mark((1.0, 2)), plain((np.uint8(200), 'a')), lasting([1])


# %% [markdown]
# ## The checks of a function

# %%
#| export
class Promise:
    "What a function's signature and conditions say of it."
    def __init__(self, f: Callable, signature: Signature, where: tuple[str, ...], keep: tuple[str, ...], known: dict[str, Any]):
        self.f, self.signature, self.keep = f, signature, keep
        self.where, self.limits = split_conditions(where, signature)
        self.lower = dict(start_facts(self.where).lower)
        self.claims = [c for text in self.where for c in parse_claim(text)]
        self.statics = {n: plain(known.get(n, signature.python.parameters[n].default)) for n,
                        s in signature.params if s is None and (n in known or not self._free(n))}
        self.reports: dict[tuple, tuple[dict, Report]] = {}   # by the mark of the settings, which are kept, and so their ids
        self.names: dict[str, Any] = {}            # names of its own: itself
        self.pending, self.whole = True, False     # not checked yet; its class is known
        self.quick: Callable | None = None         # the function that stands in for it
        self.selves: list[str] = []                # for a method: what is annotated as an object of its class
        self.refusal: ShapeError | None = None     # of its check for the settings that are its defaults

    def complete(self, first: Any = None) -> None: "For a method: learn what its class has, once it exists."

    def _free(self, name: str) -> bool:
        p = self.signature.python.parameters[name]
        return p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD)

    def promised(self) -> Report:
        "What the signature alone says."
        nothing = self.signature.python.return_annotation in (None, 'None')
        own = Own() if self.signature.params and _is_self(self.signature.params[0][1]) else None
        return Report(self.f.__name__, 0, 0, (), (), 'None' if nothing else '', own)

    def attributes(self) -> dict[str, Any]:
        "What the class of a method's `self` says of its attributes."
        spec = self.signature.params[0][1]
        return dict(zip(spec.names, spec.items))

    def params(self, report: Report) -> tuple[tuple[str, Any], ...]:
        "The parameters; of `self`, the attributes that are needed."
        (first, spec), *rest = self.signature.params or [('', None)]
        if report.own is None or not isinstance(spec, TupleSpec): return self.signature.params
        kept = [(n, s) for n, s in zip(spec.names, spec.items) if n in report.own.needs]
        return (first, replace(spec, names=tuple(n for n, _ in kept), items=tuple(s for _, s in kept))), *rest


# %%
#| export
class Checks(Promise):
    "The reports of a function's checks, one for each choice of its settings."
    def report(self, statics: dict[str, Any] | None = None) -> Report:
        "The report for these settings (the defaults if none are given); checks them if they are new."
        self.complete()
        wanted = self.statics if statics is None else statics
        if (known := self.reports.get(mark(wanted))): return known[1]
        if (promised := _leaned_on(self, wanted)): return promised
        try: return self._checked(wanted)
        except ShapeError as e:
            e.place = e.place or place_of_code(self.f.__code__)
            raise

    def _checked(self, statics: dict[str, Any]) -> Report:
        _names_are_known(self, Report('', 0, 0, (), (), ''))
        _defaults_fit(self)
        guess, seen = Guess(self, statics, self.promised()), mark(statics)
        for _ in range(ROUNDS):
            guess.used = False
            with guessing(guess): found = check(self.f, self.signature, self.where, self.keep, statics, self.limits, self.names)
            if not guess.used or _says(found) == _says(guess.report): break
            guess.report = found
        else: raise ShapeError(f'{self.f.__name__} calls itself, and what it needs grows', hint='write a loop', place=place_of_code(self.f.__code__))
        _names_are_known(self, found)
        if not guess.leans: self.reports[seen] = statics, found
        return found


# %%
#| export
def _says(report: Report) -> tuple: return report.requires, report.unless, report.writes, report.own, report.result == 'None'

def _alike(known: dict[str, Any], wanted: dict[str, Any]) -> bool: return mark(known) == mark(wanted)


# %%
#| export
def _names_are_known(shapes: Checks, report: Report) -> None:
    "Refuse a name in a condition that no parameter has, and one in the result that is a slip, or cannot be found."
    given = frozenset().union(*(names_in(s) for _, s in shapes.params(report)))
    add = 'add a parameter {0}: int, or annotate what has this size (of self: attributes of the class, above the method)'
    unknown = lambda what, n, hint: ShapeError(f'{what} names {n}, which no parameter has', hint=hint, place=place_of_code(shapes.f.__code__))
    wanted = {n: f'where={list(shapes.where)}' for c in shapes.claims for n in sorted(names_of(c.dim))}
    wanted |= {n: f'self.{a}' for a, s in _sets(shapes, report) for n in sorted(names_in(s))}
    for n, what in wanted.items():
        if n not in given and not n.startswith('?'): raise unknown(what, n, _near(n, given) or add.format(n))
    if report.own and report.own.gives: return
    alone = {str(s) for _, p in parts_of(shapes.signature.result, '', ArraySpec) for s in p.sizes}
    for n in sorted(n for n in names_in(shapes.signature.result) - given if not n.startswith('?')):
        if (near := _near(n, given)): near += '; for a size that is found when it runs, write Any or a name less like it'
        if near or n not in alone:
            raise unknown('the result', n, near or 'it is in no place of an array alone, so that it cannot be found: annotate a parameter with it, or write Any')


# %%
#| export
def _near(name: str, given: frozenset[str]) -> str:
    near = difflib.get_close_matches(name, sorted(given), 1)
    return f'did you mean {near[0]}?' if near else ''


# %%
#| export
def _defaults_fit(shapes: Checks) -> None:
    "Refuse a size whose default is none."
    for name, spec in shapes.signature.params:
        default, least = shapes.signature.python.parameters[name].default, shapes.lower.get(name, 1)
        if isinstance(spec, SizeSpec) and isinstance(default, int) and least is not None and default < least:
            raise ShapeError(f'the default of {name} is {default}, and sizes are at least {least}', f'{name} >= {least}', default,
                             f'say that it may be: @typed(where="{name} >= {default}")', place=place_of_code(shapes.f.__code__))


# %%
#| export
def _sets(shapes: Checks, report: Report) -> list[tuple[str, Any]]:
    "The annotated attributes that a method sets."
    return [(n, s) for n, s in shapes.attributes().items() if n in report.own.sets] if report.own else []


# %%
from bendml.shape.annotations import Vec, read_signature
n = Dim('n')
def halved(x: Vec[n], step=1) -> Vec[n]: return x[::step]

shapes = Checks(halved, read_signature(halved), (), (), {})
shapes.report()

# %%
try: shapes.report({'step': 2})
except ShapeError as e: print(e)
len(shapes.reports)

# %% [markdown]
# ## What this does not show
#
# That a recursion ends. What is shown is that where it does, the result has the shape that was promised.
