# %%
#| default_exp shape.signatures

# %% [markdown]
# # Calls by signature
# > One typed function calls another: what its signature says is all that the caller needs.

# %%
#| hide
#| export
import inspect, itertools, re, threading
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce
from typing import Any, Callable

import numpy as np

from bendml.shape.sizes import Dim, _wrapped, named, names_of, substitute
from bendml.shape.facts import Claim, assume, claim, decide
from bendml.shape.messages import Place, ShapeError, place_of, source_of
from bendml.shape.annotations import ArraySpec, MaybeSpec, SizeSpec, names_in
from bendml.shape.trace import _as_one, at_place, current, holds, refuse, user_frame
from bendml.shape.symbols import Array, Axis, as_dim, inherit
from bendml.shape.ranges import GIVEN, NARROW, UNBOUNDED, holds_all, may_share, must_hold, range_of, unknown, written
from bendml.shape.elementwise import lift, same
from bendml.shape.states import _names, as_turns, fingerprint
from bendml.shape.values import fits, make, parts_of
from bendml.shape.paths import Report, _arrays_in
from bendml.shape.checked import _alike, not_as_floats, plain, refusal_for
from bendml.shape.boundary import Shapes


# %% [markdown]
# Inside a trace a typed function is not entered: its signature says what it needs and what it gives. Its conditions must be
# met by what the caller knows.

# %%
#| export
def by_signature(shapes: Shapes, args: tuple, kwargs: dict) -> Any:
    "The result of a call in a trace."
    before, state = current().state.get('op'), current().state
    state['op'] = (shapes.f.__name__, False)
    try: bound = shapes.signature.python.bind(*args, **kwargs)
    except TypeError as e: refuse(str(e))
    bound.apply_defaults()
    first = next(iter(bound.arguments.values()), None)
    shapes.complete(first)
    settings = {n: plain(bound.arguments[n]) for n in shapes.statics}
    for n, v in settings.items(): _is_known(v, n, shapes.f.__name__)
    report = _report(shapes, settings)
    names, params = _Names(), shapes.params(report)
    for n in sorted(report.own.needs if report.own else ()):
        if getattr(first, n, None) is None and not isinstance(shapes.attributes()[n], MaybeSpec):
            refuse(f'needs self.{n}, which is not set', shapes.attributes()[n], 'nothing', 'call the method that sets it first')
    _taken(shapes, report, names, bound, [*list(bound.signature.parameters)[:len(args)], *kwargs])
    _meets(shapes, report, names, bound.arguments)
    if report.paths and (found := refusal_for(shapes, bound.arguments)):
        reason, hint, *seen = not_as_floats(*found)
        refuse(reason, *seen, hint=hint)
    _wide_enough(report, params, bound.arguments)
    _write(report, bound.arguments)
    state['op'] = before or ('', False)
    if report.own: _changes(shapes, report, first, names, [v for v in bound.arguments.values() if v is not first])
    if report.own and report.own.gives: return first
    if (spec := shapes.signature.result) is None and report.result == 'None': return None
    if spec is None:
        refuse(f'{shapes.f.__name__} declares no result', hint='write -> Mat[...] after its parameters')
    names.found(spec)
    result = _identified(make(spec, names.put), spec, names)
    _share(result, [bound.arguments[n] for n in report.shares])
    return _still_there(result, bound.arguments)


# %% [markdown]
# The arguments must fit, which says what the callee's names are in the caller's sizes; then the callee's conditions must hold.

# %%
#| export
def _taken(shapes: Shapes, report: Report, names: '_Names', bound: inspect.BoundArguments, given: list[str]) -> None:
    "Refuse arguments that are not what the signature says; learn its names from them."
    params = shapes.params(report)
    trusted = shapes.signature.params[:1] if shapes.refusal and not report.paths else ()  # what it needs of `self` is not known
    names.learn([(spec, bound.arguments[name]) for name, spec in (*params, *trusted)])
    for name, spec in params: _argument_fits(spec, bound.arguments[name], name, names, lambda: _places(shapes.f.__name__, given).get(name))


# %%
#| export
def _meets(shapes: Shapes, report: Report, names: '_Names', given: dict[str, Any]) -> None:
    "Refuse a call that does not meet the callee's conditions."
    for n, size in names.sizes.items():
        least = shapes.lower.get(n, 1)
        if least is not None and not (verdict := holds(claim(size, '>=', least))).holds:
            refuse(f'needs {n} >= {least}, and {n} is {size}', f'{size} >= {least}', size, _more_allowed(shapes, n, size), verdict)
    for n, limit in shapes.limits.items():
        r, most = range_of(given[n]), names.put(limit)
        if r.given or None in (r.low, r.high) or not (holds(claim(r.low, '>=', 0)).holds and holds(claim(r.high, '<', most)).holds):
            refuse(f'needs {n} < {most}', f'0 to {most - 1}', 'any number' if r in (GIVEN, UNBOUNDED) else r, f'add where=["... < {most}"] for it')
    for c in [*shapes.claims, *report.requires]:
        if not (verdict := holds(Claim(names.put(c.dim), c.kind, ''))).holds:
            refuse(f'needs {c}', c, names.shown(c.dim), names.repeated(c), verdict)
    for all_of in report.unless: _not_together(all_of, names)


# %%
#| export
def _more_allowed(shapes: Shapes, n: str, size: Dim) -> str:
    "A hint for a size that may be too small for a function that is called."
    allow = holds(claim(size, '>=', 0)).holds and shapes.may_be_0(n)
    return f'test it first, or let {shapes.f.__name__} allow it: where=["{n} >= 0"]' if allow else 'test it first, and raise an exception where it is not so'


# %%
#| export
def _is_known(value: Any, name: str, function: str) -> None:
    "Refuse a size of the caller, or an array, for a setting: the function was checked for values only."
    if _names(fingerprint(value)):
        refuse(f'{name} is a setting of {function}, and what it is here is not known', hint=f'annotate it there: {name}: int for a size, which another annotation names, {name}: Vec[...] for an array')


# %%
#| export
def _wide_enough(report: Report, params: tuple, given: dict[str, Any]) -> None:
    "Refuse whole numbers that are too narrow for the sizes that they meet there; of what nobody has said, note it."
    for n, x in ((n, x) for n, _ in params if report.held != NARROW for x in _arrays_in(given[n]) if x.dtype.kind in 'iu'):
        if not x.sure: must_hold(*map(Dim, report.held))
        elif not holds_all(x.dtype, report.held): refuse(f'{n} holds {x.dtype}, too narrow for the sizes that it meets', hint='.astype(int)')


# %%
#| export
def _write(report: Report, given: dict[str, Any]) -> None:
    "What a function writes into, nobody knows afterwards; it must be no part of another argument."
    arrays = [(n, x) for n, v in given.items() if report.writes for x in _arrays_in(v, (Array, np.ndarray))]
    for i, (n, x) in enumerate(arrays):
        if n not in report.writes: continue
        other = next((m for k, (m, y) in enumerate(arrays) if k != i and type(x) is type(y) is Array and x.dtype.kind in 'iu' and x.known and x.known is y.known), None)
        if other: refuse(f'{n} and {other} share memory, and it writes into {n}', hint='pass a copy: .copy()')
        written(x, UNBOUNDED)


# %%
#| export
def _not_together(claims: tuple[Claim, ...], names: '_Names') -> None:
    "Refuse a call at which all of these may hold: the function raises then."
    put = [Claim(names.put(c.dim), c.kind, '') for c in claims]
    verdicts = [decide(reduce(assume, (d for d in put if d is not c), current().facts), ~c) for c in put]
    if any(v.holds for v in verdicts): return
    wanted = ' or '.join(str(~c) for c in claims)
    refuse(f'needs {wanted}', wanted, ', '.join(dict.fromkeys(names.shown(c.dim) for c in claims)), verdict=verdicts[0])


# %% [markdown]
# ## What a call leaves

# %%
#| export
def _share(made: Any, given: list) -> None:
    "What a call makes may be one of the arrays that it was given, or a view of one."
    for new in _arrays_in(made):
        for old in _arrays_in(given):
            if new.axes and old.axes and new.dtype.kind == old.dtype.kind: may_share(new, old)


# %%
#| export
def _still_there(result: Any, given: dict[str, Any]) -> Any:
    "What a function returns, which must have the axes that `keep=` names and that it was given."
    kept = current().state.get('kept', {})
    ids = [a for x in _arrays_in(given) for a in x.axes if a.id in kept]
    for a in ids:
        for b in (b for x in _arrays_in(result) for b in x.axes if names_of(b.size) & names_of(a.size)): inherit(b, a)
        if not any(kept.get(b.id) == kept[a.id] for x in _arrays_in(result) for b in x.axes):
            refuse(f'takes an axis that is {kept[a.id]}, and returns none: keep={kept[a.id]!r} says that nothing may reduce over it')
    return result


# %%
#| export
def _changes(shapes: Shapes, report: Report, me: Any, names: '_Names', given: list) -> None:
    "What a method has set, it has set to what the class says."
    fields, notes, frame = shapes.attributes(), current().state.get('notes'), user_frame()
    for name in report.own.sets:
        names.found(fields.get(name))  # of a method that is refused
        if name in fields: object.__setattr__(me, name, new := make(fields[name], names.put)); _share(new, given)
        if notes and notes.me is me and frame: notes.places[name] = place_of(frame)
        if name not in fields: object.__getattribute__(me, '__dict__').pop(name, None)  # nobody knows


# %% [markdown]
# ## Arguments and names

# %%
#| export
def _places(name: str, given: list[str]) -> dict[str, Place]:
    "Where the arguments of a call stand; nowhere if they came another way, by `*args` or `map(f, xs)`. An object before the dot is no operand."
    if (frame := user_frame()) is None: return {}
    whole = place_of(frame)
    found = list(itertools.takewhile(lambda p: p != whole, (place_of(frame, i) for i in range(len(given) + 1))))
    called, texts = source_of(whole).partition('(')[0].rpartition('.')[2], [source_of(p).rpartition('.')[2] for p in found]
    itself = len(found) == len(given) and texts[:1] != [name] and (called == name or given[:1] != ['self'])
    if not itself and len(found) != len(given) - 1 or any(t.startswith('*') for t in texts): return {}
    return dict(zip(given[len(given) - len(found):], found))


# %%
#| export
def _argument_fits(spec: Any, value: Any, name: str, names: '_Names', stands: Callable[[], Place | None]) -> None:
    if spec is None: return
    whole = lambda: place_of(frame) if (frame := user_frame()) else None
    with at_place(lambda: (place, True) if (place := stands()) else (whole(), False)):
        try: fits(spec, value, f'argument {name}', names.put)
        except ShapeError as e:
            if (place := stands()) and _one_of_many(spec, value, names): e.hint, e.proposed = f'write {_as_one(source_of(place) or "it")}[None], if it is to be the only one', ''
            raise


# %%
#| export
def _one_of_many(spec: Any, value: Any, names: '_Names') -> bool:
    "Is this one row, where rows are wanted, as many as there are?"
    if not isinstance(spec, ArraySpec) or type(value) is not Array or value.ndim != len(spec.sizes) - 1: return False
    (first, *rest), bound = spec.sizes, names.sizes
    return str(first) in names_of(first) - bound.keys() and all(names_of(s) <= bound.keys() and same(a.size, names.put(s)).holds for a, s in zip(value.axes, rest))


# %%
#| export
class _Names:
    "What the names of a called function are in the caller's sizes."
    def __init__(self): self.sizes, self.ids = {}, {}
    def put(self, size: Dim) -> Dim: return substitute(size, self.sizes)
    def found(self, spec: Any) -> None:
        "What has no size yet is found when it runs, each time anew."
        for n in sorted(names_in(spec) - self.sizes.keys()): self.sizes[n] = unknown(n.replace('?', 'k'), 0).size
    def shown(self, size: Dim) -> str:
        return ', '.join(f'{n} = {self.sizes[n]}' for n in sorted(names_of(size) & self.sizes.keys()))

    def repeated(self, c: Claim) -> str:
        "A hint: the condition in the caller's sizes."
        text = re.sub(r'[^\W\d]\w*', lambda m: _wrapped(self.sizes[m[0]]) if m[0] in self.sizes else m[0], str(c))
        if "'" in text: return 'test it before the call, and raise an exception where it is not so'
        return f'say it of this function too: @typed(where="{text}"), or test it before the call'

    def learn(self, given: list[tuple[Any, Any]]) -> None:
        "Read names off all arguments: first those that stand alone, then one unknown factor of a product."
        found = []
        for path, sub, value, spec in ((path, sub, value, spec) for spec, value in given for path, sub in parts_of(spec, '')):
            sizes, axes = (sub.size,) if isinstance(sub, SizeSpec) else sub.sizes, _at(spec, value, path)
            if len(sizes) == len(axes): found += zip(sizes, axes)
        for s, a in found:
            if str(s) not in names_of(s): continue
            self.sizes.setdefault(str(s), a.size)
            if a.id >= 0: self.ids.setdefault(str(s), a.id)
        for solve in (self._factor, self._whole):
            for s, a in found:
                unknown = names_of(s) - self.sizes.keys()
                if unknown and (len(unknown) == 1) == (solve == self._factor): solve(s, a, *unknown)

    def _factor(self, s: Dim, a: Axis, name: str) -> None:
        slope = self.put(substitute(s, {name: 2}) - substitute(s, {name: 1}))
        rest = self.put(substitute(s, {name: 0}))
        if slope != 0 and holds(claim(slope, '>=', 1)).holds: self.sizes[name] = (a.size - rest)//slope

    def _whole(self, s: Dim, a: Axis, *_: str) -> None:
        "A product of several unknown factors: if the caller's axis was merged from as many parts, those are they."
        factors = [n for m, c in s.terms for n, p in m] if len(s.terms) == 1 and s.terms[0][1] == 1 else []
        own = [p for p in a.parts] or [named(n) for m, _ in a.size.terms for n, _ in m if len(a.size.terms) == 1]
        if len(factors) == len(own) > 0: self.sizes |= {n: p for n, p in zip(factors, own) if n not in self.sizes}


# %%
#| export
def _at(spec: Any, value: Any, path: str) -> tuple[Axis, ...]:
    "The axes of the array that a path leads to, a size as one; nothing if it is not there."
    if path.startswith('[0]') and type(value) is not Array and (turns := as_turns(value)) is not None:
        value, path = turns.item(unknown('k').size), path[3:]  # any one of several values
    try: found = eval(f'_v{path}', {'_v': value}) if path else value  # a path made by arrays_of: fields and keys of the annotation
    except Exception: return ()
    if (dim := as_dim(found)) is not None: return Axis(dim),
    return lift(found).axes if type(found) is Array or isinstance(found, np.ndarray) else ()


# %%
#| export
def _identified(value: Any, spec: Any, names: _Names) -> Any:
    "An axis of the result that has a parameter's name is that parameter's axis."
    if type(value) is not Array or not isinstance(spec, ArraySpec): return value
    axes = [replace(a, id=names.ids[str(s)]) if str(s) in names.ids and [str(t) for t in spec.sizes].count(str(s)) == 1 else a
            for a, s in zip(value.axes, spec.sizes)]
    return Array(axes, value.dtype)


# %% [markdown]
# ## A whole file
#
# `bendml check` lists the typed functions of a file first, and checks them when all are defined.

# %%
#| export
_collecting = threading.local()


# %%
#| export
@contextmanager
def collecting():
    "Within it, `@typed` checks nothing, but lists what is to be checked: `(function, its shapes or the refusal of its annotations)`."
    _collecting.found = []
    try: yield _collecting.found
    finally: del _collecting.found


# %%
#| export
def _report(shapes: Shapes, statics: dict[str, Any]) -> Report:
    "The report of a called function. When a whole file is checked, one that is refused is taken at its word: one fault, one refusal."
    if not hasattr(_collecting, 'found') or not _alike(shapes.statics, statics): return shapes.report(statics)
    return found if isinstance(found := outcome(shapes), Report) else shapes.at_its_word()


# %%
#| export
def outcome(shapes: Shapes) -> Report | ShapeError:
    "What the check of a function finds."
    if shapes.refusal: return shapes.refusal
    try:
        found = shapes.report()
        shapes.pending = False
        return found
    except ShapeError as e:
        shapes.refusal = e
        return e


# %%
#| export
Shapes.by_signature = by_signature

# %%
from bendml.shape.annotations import Mat
from bendml.shape.symbols import axis
from bendml.shape.trace import Trace, tracing
n, m = Dim('n'), Dim('m')
with tracing(Trace()):
    names = _Names()
    names.learn([(Mat['D', '4*D'], Array([axis(n + 1), axis(4*n + 4)]))])
    print(names.sizes, names.put(Dim('D')*2))

# %% [markdown]
# ## What this does not show
#
# A name that occurs only in a product with another (`Vec["n*m"]`) is known to the caller if its own axis was made of two; otherwise
# the call is refused, though there may be such numbers.
