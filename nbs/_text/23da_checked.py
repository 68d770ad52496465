# %%
#| default_exp shape.checked

# %% [markdown]
# # Checked once
# > What is kept of a check, and how functions that call each other, or themselves, lean on what they promise.

# %%
#| hide
#| export
import threading
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Callable, Iterator

from bendml.shape.sizes import Dim, names_of
from bendml.shape.facts import parse_claim
from bendml.shape.messages import ShapeError, place_of_code
from bendml.shape.annotations import Signature, SizeSpec, TupleSpec
from bendml.shape.objects import Own
from bendml.shape.paths import Report, _is_self, check, is_number, parts_of, split_conditions, start_facts


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
# ## The checks of a function

# %%
#| export
class Checks:
    "A function's signature and conditions, and the reports of its checks, one for each choice of its settings."
    def __init__(self, f: Callable, signature: Signature, where: tuple[str, ...], keep: tuple[str, ...], known: dict[str, Any]):
        self.f, self.signature, self.keep = f, signature, keep
        self.where, self.limits = split_conditions(where, signature)
        self.lower = dict(start_facts(self.where).lower)
        self.claims = [c for text in self.where for c in parse_claim(text)]
        self.statics = {n: known.get(n, signature.python.parameters[n].default) for n,
                        s in signature.params if s is None and (n in known or not self._free(n))}
        self.reports: list[tuple[dict, Report]] = []
        self.names: dict[str, Any] = {}            # names of its own: itself
        self.pending, self.whole = True, False     # not checked yet; its class is known
        self.quick: Callable | None = None         # the function that stands in for it
        self.selves: list[str] = []                # for a method: what is annotated as an object of its class
        self.refusal: ShapeError | None = None     # of its check for the settings that are its defaults

    def complete(self, first: Any = None) -> None: "For a method: learn what its class has, once it exists."

    def _free(self, name: str) -> bool:
        p = self.signature.python.parameters[name]
        return is_number(p) or p.annotation is bool or p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD)

    def report(self, statics: dict[str, Any] | None = None) -> Report:
        "The report for these settings (the defaults if none are given); checks them if they are new."
        self.complete()
        wanted = self.statics if statics is None else statics
        for known, report in self.reports:
            if _alike(known, wanted): return report
        if (promised := _leaned_on(self, wanted)): return promised
        try: return self._checked(wanted)
        except ShapeError as e:
            e.place = e.place or place_of_code(self.f.__code__)
            raise

    def _checked(self, statics: dict[str, Any]) -> Report:
        _names_are_known(self, Report('', 0, 0, (), (), ''))
        guess = Guess(self, statics, self.promised())
        for _ in range(ROUNDS):
            guess.used = False
            with guessing(guess): found = check(self.f, self.signature, self.where, self.keep, statics, self.limits, self.names)
            if not guess.used or _says(found) == _says(guess.report): break
            guess.report = found
        else: raise ShapeError(f'{self.f.__name__} calls itself, and what it needs grows', hint='write a loop', place=place_of_code(self.f.__code__))
        _names_are_known(self, found)
        if not guess.leans: self.reports.append((statics, found))
        return found

    def promised(self) -> Report:
        "What the signature alone says."
        nothing = self.signature.python.return_annotation in (None, 'None')
        return Report(self.f.__name__, 0, 0, (), (), 'None' if nothing else '', Own() if self.signature.params and _is_self(self.signature.params[0][1]) else None)

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
def _says(report: Report) -> tuple: return report.requires, report.own, report.result == 'None'

def _alike(known: dict[str, Any], wanted: dict[str, Any]) -> bool: return all(_equal(known[n], wanted[n]) for n in known)

def _equal(a: Any, b: Any) -> bool:
    try: return a is b or type(a) is type(b) and bool(a == b)
    except Exception: return False


# %%
#| export
def _names_are_known(shapes: Checks, report: Report) -> None:
    "Refuse a name in the result or a condition that no parameter has."
    given = {n for name, spec in shapes.params(report) for n in _names(spec, name)}
    wanted = {n: 'the result' for n in _names(shapes.signature.result, 'result') if not (report.own and report.own.gives)}
    wanted |= {n: f'where={list(shapes.where)}' for c in shapes.claims for n in names_of(c.dim)}
    wanted |= {n: f'self.{a}' for a, s in _sets(shapes, report) for n in _names(s, a)}
    for n, what in wanted.items():
        if n not in given and not n.startswith('?'):
            raise ShapeError(f'{what} names {n}, which no parameter has', hint=f'add a parameter {n}: int, or annotate what has this size (of self: attributes of the class, above the method)',
                             place=place_of_code(shapes.f.__code__))


# %%
#| export
def _sets(shapes: Checks, report: Report) -> list[tuple[str, Any]]:
    "The annotated attributes that a method sets."
    return [(n, s) for n, s in shapes.attributes().items() if n in report.own.sets] if report.own else []


# %%
#| export
def _names(spec: Any, name: str) -> set[str]:
    return set().union(*(names_of(s) for _, p in parts_of(spec, name) for s in ((p.size,) if isinstance(p, SizeSpec) else p.sizes)))


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
