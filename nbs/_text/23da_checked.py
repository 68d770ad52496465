# %%
#| default_exp shape.checked

# %% [markdown]
# # Checked once
# > What is kept of a check, and how functions that call each other, or themselves, lean on what they promise.

# %%
#| hide
#| export
import ast, difflib, enum, threading, types
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Callable, Iterator

import numpy as np

from bendml.shape.sizes import Dim, names_of
from bendml.shape.facts import _holds, parse_claim
from bendml.shape.messages import ShapeError, place_of_code
from bendml.shape.annotations import ArraySpec, DictSpec, MaybeSpec, Signature, SizeSpec, TupleSpec, names_in
from bendml.shape.opaque import Opaque
from bendml.shape.copies import function_node
from bendml.shape.objects import Own
from bendml.shape.values import parts_of
from bendml.shape.paths import SOON, Report, _is_self, _too_much, check, split_conditions, start_facts
from bendml.shape.symbols import Array, Size, as_dim
from bendml.shape.states import _checksum, _settings, attributes


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
        self.others: list[list] = []               # what arrays held that are no floats, for which settings, and the refusal
        self.zeros: dict[str, bool] = {}           # whether it would be right if this size could be 0
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

    def at_its_word(self) -> Report:
        "What is taken of a function that is refused: what it says, and that a method sets its attributes to what the class says."
        report, stored = self.promised(), function_node(self.f.__code__)
        if report.own is None or stored is None: return report
        names = {n.attr for n in ast.walk(stored) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)}
        return replace(report, own=Own(sets=frozenset(names & self.attributes().keys())))

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

    def may_be_0(self, name: str) -> bool:
        "Would the function be right if this size could be 0? Not asked where that takes long."
        if name not in self.zeros and self.reports: self.zeros[name] = next(iter(self.reports.values()))[1].seconds < SOON and self._right_for_0(name)
        return self.zeros.get(name, False)

    def _right_for_0(self, name: str) -> bool:
        try: found = check(self.f, self.signature, (*self.where, f'{name} >= 0'), self.keep, self.statics, self.limits, self.names)
        except ShapeError: return False
        return not any(_holds(c, {name: 0}) is False for c in (*self.claims, *found.requires) if names_of(c.dim) == {name})


# %% [markdown]
# An annotation that says sizes only is checked for floats. But `x += 0.5` stops where `x` holds whole numbers, and `x - x`
# where it holds truth values. So the first call with such an array checks once more, for what it holds.

# %%
#| export
def refusal_for(shapes: Checks, given: dict[str, Any]) -> tuple[str, str, ShapeError] | None:
    "Where arrays hold no floats, though only their sizes are declared: which one, what it holds, and the refusal that this brings."
    held: dict[str, str] = {}
    params = tuple((n, _holding(s, given.get(n), n, held)) for n, s in shapes.signature.params)
    if not held: return None
    statics = {n: given[n] for n in shapes.statics}
    seen = next((s for s in shapes.others if s[0] == held and _alike(s[1], statics)), None)
    if seen is None:
        shapes.others.append(seen := [held, statics, None])
        try: check(shapes.f, replace(shapes.signature, params=params), shapes.where, shapes.keep, statics, shapes.limits, shapes.names)
        except ShapeError as e: seen[2] = None if _too_much(e) else e
    return seen[2] and (*next(iter(held.items())), seen[2])

def not_as_floats(path: str, held: str, e: ShapeError) -> tuple[str, str, str, str]:
    "The parts of that refusal, as of a wrong argument."
    line = f' (line {e.place.line})' if e.place else ''
    return f'{path} holds {held}: {e.reason}{line}', f'convert it: {path}.astype(float)', 'floats', held

def _holding(spec: Any, value: Any, path: str, held: dict[str, str]) -> Any:
    "An annotation that says what the numbers are, where they are no floats and it leaves that open."
    match spec:
        case ArraySpec(sizes, dtype='') if sizes and getattr(value, 'dtype', np.dtype(float)).kind in 'biu':
            held[path] = str(value.dtype) if getattr(value, 'sure', True) else 'int'
            return replace(spec, dtype=held[path])
        case MaybeSpec(inner) if value is not None: return _holding(inner, value, path, held)
        case TupleSpec(items, _, None) if isinstance(value, tuple | list) and len(value) == len(items):
            return replace(spec, items=tuple(_holding(s, v, f'{path}[{i}]', held) for i, (s, v) in enumerate(zip(items, value))))
        case DictSpec(items) if isinstance(value, dict): return replace(spec, items=tuple((k, _holding(s, value.get(k), f'{path}[{k!r}]', held)) for k, s in items))
    return spec


# %%
#| export
def _says(report: Report) -> tuple: return report.requires, report.unless, report.writes, report.shares, report.own, report.result == 'None'

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
