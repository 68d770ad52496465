# %%
#| default_exp shape.typing

# %% [markdown]
# # `@typed`
# > Checked once, at definition, for all sizes.

# %%
#| hide
#| export
import ast, functools, inspect, itertools, re, sys, threading, types, typing
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce
from typing import Any, Callable, Self

import numpy as np

from bendml.shape.sizes import Dim, DimError, _wrapped, named, names_of, substitute
from bendml.shape.facts import Claim, assume, claim, decide
from bendml.shape.messages import Place, ShapeError, place_of, place_of_code, source_of
from bendml.shape.annotations import ArraySpec, MaybeSpec, SizeSpec, TupleSpec, _scope, names_in, read_annotation, read_signature
from bendml.shape.copies import function_node
from bendml.shape.objects import Watched, _inner, class_of, set_by_methods, stand_in, stand_in_for, to_come
from bendml.shape.trace import _as_one, at_place, current, holds, refuse, user_frame
from bendml.shape.symbols import Array, Axis, as_dim, inherit
from bendml.shape.ranges import GIVEN, NARROW, UNBOUNDED, holds_all, may_share, must_hold, range_of, unknown, written
from bendml.shape.elementwise import lift, same
from bendml.shape.states import _names, as_turns, fingerprint
from bendml.shape.values import fits, make, parts_of
from bendml.shape.paths import Report, _arrays_in
from bendml.shape.checked import _alike, not_as_floats, plain, refusal_for
from bendml.shape.boundary import Shapes, _quick, stored, as_mat


# %% [markdown]
# ## Calls of one typed function by another
#
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
    trusted = shapes.signature.params[:1] if shapes.refusal and not report.paths else ()  # what it needs of `self` is not known
    names.learn([(spec, bound.arguments[name]) for name, spec in (*params, *trusted)])
    given = [*list(bound.signature.parameters)[:len(args)], *kwargs]
    for name, spec in params: _argument_fits(spec, bound.arguments[name], name, names, lambda: _places(shapes.f.__name__, given).get(name))
    for n, size in names.sizes.items():
        least = shapes.lower.get(n, 1)
        if least is not None and not (verdict := holds(claim(size, '>=', least))).holds:
            refuse(f'needs {n} >= {least}, and {n} is {size}', f'{size} >= {least}', size, _more_allowed(shapes, n, size), verdict)
    for n, limit in shapes.limits.items():
        r, most = range_of(bound.arguments[n]), names.put(limit)
        if r.given or None in (r.low, r.high) or not (holds(claim(r.low, '>=', 0)).holds and holds(claim(r.high, '<', most)).holds):
            refuse(f'needs {n} < {most}', f'0 to {most - 1}', 'any number' if r in (GIVEN, UNBOUNDED) else r, f'add where=["... < {most}"] for it')
    for c in [*shapes.claims, *report.requires]:
        if not (verdict := holds(Claim(names.put(c.dim), c.kind, ''))).holds:
            refuse(f'needs {c}', c, names.shown(c.dim), names.repeated(c), verdict)
    for all_of in report.unless: _not_together(all_of, names)
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

def _share(made: Any, given: list) -> None:
    "What a call makes may be one of the arrays that it was given, or a view of one."
    for new in _arrays_in(made):
        for old in _arrays_in(given):
            if new.axes and old.axes and new.dtype.kind == old.dtype.kind: may_share(new, old)


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
Shapes.by_signature = by_signature


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
def _changes(shapes: Shapes, report: Report, me: Any, names: '_Names', given: list) -> None:
    "What a method has set, it has set to what the class says."
    fields, notes, frame = shapes.attributes(), current().state.get('notes'), user_frame()
    for name in report.own.sets:
        names.found(fields.get(name))  # of a method that is refused
        if name in fields: object.__setattr__(me, name, new := make(fields[name], names.put)); _share(new, given)
        if notes and notes.me is me and frame: notes.places[name] = place_of(frame)
        if name not in fields: object.__getattribute__(me, '__dict__').pop(name, None)  # nobody knows


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
# ## The decorator

# %%
#| export
def typed(
    f: Callable | None = None,
    *,
    where: list[str] | tuple[str, ...] | str = (),   # conditions: "C % H == 0", "T <= 1024", "P >= 0", "ids < V"
    keep: str = '',                                  # sizes that nothing may reduce over: "B T"
    shapes: dict[str, Any] | None = None,            # annotations from outside, by parameter; "return" for the result
    known: dict[str, Any] | None = None,             # values of settings that have no default: n_head=12
) -> Callable:
    "Check a function's shapes for all sizes, now; at a call, check only that the arguments are what it says."
    try:
        _well_used(f, where, keep, shapes, known)
        if f is None: return functools.partial(typed, where=where, keep=keep, shapes=shapes, known=known)
        if isinstance(f, classmethod | staticmethod): return type(f)(_typed(f.__func__, where, keep, shapes, known))
        return _typed(f, where, keep, shapes, known)
    except ShapeError as e:
        e.__traceback__, e.__suppress_context__ = None, True  # its text says where; `raise` alone adds nothing of the inside
        raise


# %%
#| export
def _well_used(f: Any, where: Any, keep: Any, shapes: Any, known: Any) -> None:
    "Say what was expected of a use of `@typed`, and what to write."
    def wrong(what: str, wanted: str, seen: Any, hint: str): raise ShapeError(f'@typed: {what}', wanted, seen, hint)
    kind = type(f).__name__
    if isinstance(f, str): wrong('a condition goes into where=', 'a function', repr(f), f'@typed(where={f!r})')
    if isinstance(f, type): wrong('it stands above a function', 'a function', f'the class {f.__name__}', f'write @typed above the methods of {f.__name__}')
    if isinstance(f, property) or kind == '_lru_cache_wrapper':
        wrong('another decorator has made something else of the function', 'a function', kind, 'put @typed underneath the other decorators')
    if f is not None and not isinstance(f, types.FunctionType | classmethod | staticmethod):
        wrong('only functions written in Python can be checked', 'a function', kind, 'call it in a function of your own, and write @typed above that')
    if not isinstance(where, str) and not (isinstance(where, list | tuple) and all(isinstance(w, str) for w in where)):
        wrong('where= takes conditions as text', 'text, or a list of it', where if isinstance(where, list | tuple) else type(where).__name__, 'where="n >= 2", or where=["n >= 2", "d >= 2"]')
    if not isinstance(keep, str): wrong('keep= takes names as text', 'text', keep, 'keep="B T"')
    for name, value in dict(shapes=shapes, known=known).items():
        if value is not None and not isinstance(value, dict): wrong(f'{name}= takes a dictionary', 'one entry a parameter', type(value).__name__, f'{name}={{"x": ...}}')


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


# %% [markdown]
# A function may use what is defined further down, as a method uses its class. Then it is checked when it is called, or
# asked for its report; `bendml check` checks when it has executed all definitions.

# %%
#| export
def _typed(f: Callable, where: tuple[str, ...] | list[str] | str, keep: str, extra: dict[str, Any] | None = None,
           known: dict[str, Any] | None = None) -> Callable:
    found, where = getattr(_collecting, 'found', None), (where,) if isinstance(where, str) else tuple(where)
    try:
        made, written = _shapes(f, where, keep, extra, known)
        if found is None and not written: made.report()
        made.pending = found is not None or written
    except ShapeError as e:
        if found is not None: found.append((f, e)); return f
        if not e.later: raise
    except DimError as e:
        e = ShapeError(str(e), hint=getattr(e, 'hint', ''), place=place_of_code(f.__code__))
        if found is None: raise e from None
        found.append((f, e))
        return f
    if found is not None: found.append((f, made))
    if not made.pending: made.settle()
    return made.quick


# %%
#| export
def _shapes(f: Callable, where: tuple[str, ...], keep: str, extra: dict | None, known: dict | None) -> tuple[Shapes, bool]:
    "What is known of a function now, and whether it must wait for its class."
    owner, first = _owner(f), next(iter(inspect.signature(f).parameters), None)
    selves = ['self']*(first == 'self' and 'self' not in f.__annotations__)
    selves += [n for n, a in f.__annotations__.items() if isinstance(a, str) and a in ('Self', owner) or a is Self]
    own = _self_spec(f, owner) if owner and selves else None
    selves = selves if own else []
    made = Shapes(f, read_signature(f, dict.fromkeys(selves, own) | (extra or {}), where, known or ()), where, tuple(keep.replace(',', ' ').split()), known or {})
    made.selves, made.quick = selves, functools.wraps(f)(_quick(made))
    made.quick.__shapes__ = made
    if _is_outermost(f):
        if own: setattr(own.make, f.__name__, made.quick)
        elif not owner: made.names = {f.__name__: made.quick}
    return made, bool(owner) and first == 'cls' and first in made.statics


# %%
#| export
def _owner(f: Callable) -> str:
    "The name of the class that a function is defined in, if it is."
    parts = f.__qualname__.split('.')
    return parts[-2] if len(parts) > 1 and parts[-2] != '<locals>' else ''


# %%
#| export
def _is_outermost(f: Callable) -> bool:
    "Is `@typed` what gives the function's name its meaning?"
    if f.__globals__.get(f.__name__) is f: return True
    first = next(iter(getattr(function_node(f.__code__), 'decorator_list', ())), None)
    first = first.func if isinstance(first, ast.Call) else first
    return getattr(first, 'attr', getattr(first, 'id', '')) == 'typed' or isinstance(first, ast.Name) and f.__globals__.get(first.id) is typed


# %% [markdown]
# ## Methods

# %%
#| export
def _self_spec(f: Callable, owner: str) -> TupleSpec | None:
    "What `self` has, while its class is being written: the fields that are annotated above the method."
    frame = sys._getframe(1)
    while frame and frame.f_code.co_name != owner: frame = frame.f_back
    if frame is None: return None
    body = dict(frame.f_locals)
    fields = _fields(body.get('__annotations__', {}), _scope(f) | {k: v for k, v in body.items() if not k.startswith('__')})
    return TupleSpec(tuple(fields.values()), tuple(fields), stand_in(owner, body, tuple(fields), set_by_methods(f, owner), to_come(f, owner)))


# %%
#| export
def _fields(annotations: dict[str, Any], scope: dict[str, Any]) -> dict[str, Any]:
    return {n: s for n, a in annotations.items() if (s := read_annotation(a, scope, n)) is not None}


# %%
#| export
def complete(shapes: Shapes, first: Any = None) -> None:
    "Read anew what `self` has, when its class exists; `first` is the first argument of a call."
    if shapes.whole or not shapes.pending: return
    kind = first if isinstance(first, type) else type(first)
    cls = class_of(shapes.f) or next((c for c in kind.__mro__ if _inner(vars(c).get(shapes.f.__name__)) is shapes.f and not issubclass(c, Watched)), None)
    if cls is None: return
    shapes.whole = True
    if 'cls' in shapes.statics: shapes.statics['cls'] = cls
    if not shapes.selves: return
    old = shapes.signature
    spec = (dict(old.params) | {'return': old.result})[shapes.selves[0]]
    fields = dict(zip(spec.names, spec.items))  # as they were read then: a name may mean something else by now
    for c in cls.__mro__:
        more = {n: a for n, a in vars(c).get('__annotations__', {}).items() if n not in fields}
        fields |= _fields(more, _scope(shapes.f) | vars(sys.modules.get(c.__module__, typing)) | dict(vars(c)))
    own = TupleSpec(tuple(fields.values()), tuple(fields), stand_in_for(cls, tuple(fields)))
    shapes.signature = replace(old, params=tuple((n, own if n in shapes.selves else s) for n, s in old.params),
                               result=own if 'return' in shapes.selves else old.result)

Shapes.complete = complete

# %%
from bendml.shape.annotations import Mat, Vec
B, D = Dim('B'), Dim('D')

@typed
def layer(x: Mat[B, D], w: Mat[D, '4*D'], b: Vec['4*D']) -> Mat[B, '4*D']:
    return np.maximum(x @ w + b, 0)

layer.__shapes__.report()

# %%
try: layer(np.ones((2, 3)), np.ones((12, 3)), np.zeros(12))
except ShapeError as e: print(e)

# %% [markdown]
# How many rows a mask picks is not known before. A name that only the result has stands for it, and is a size of its own in each
# call: two such results need not fit.

# %%
k = Dim('k')
@typed
def positive(x: Mat[B, D]) -> Mat[k, D]: return x[x[:, 0] > 0]

try:
    @typed
    def both(x: Mat[B, D], y: Mat[B, D]) -> Mat[k, D]: return positive(x) + positive(y)
except ShapeError as e: print(e)


# %% [markdown]
# A method knows of `self` what its class has annotated. What it sets need not be there before, and must be what the class
# says when the method ends. `return self` is known to be `self`.

# %%
class Mean:
    w: Vec[D]
    @typed
    def fit(self, x: Mat[B, D]) -> 'Mean':
        self.w = x.mean(0)
        return self
    @typed
    def score(self, x: Mat[B, D]) -> Vec[B]: return -((x - self.w)**2).sum(1)
    @typed
    def spread(self, x: Mat[B, D]) -> Vec[B]: return self.fit(x).score(x)

Mean().fit(np.eye(3)).score(np.ones((2, 3))), sorted(Mean.fit.__shapes__.report().own.sets)

# %%
try: Mean().score(np.ones((2, 3)))
except ShapeError as e: print(e)

# %%
try:
    class Wrong:
        w: Vec[D]
        @typed
        def fit(self, x: Mat[B, D]) -> None:
            self.w = x.mean(1)
except ShapeError as e: print(e)


# %% [markdown]
# What is defined further down is waited for; the mistake is found when the function is asked for its report, or called.

# %%
@typed
def scores(x: Mat[B, D], w: Vec[D]) -> Vec[B]: return sigmoid(x @ w)
def sigmoid(z): return 1/(1 + np.exp(-z))

scores.__shapes__.report()


# %% [markdown]
# A function that calls itself leans on [its own promise](23da_checked.ipynb).

# %%
@typed
def total(x: Vec[D]) -> float: return x[0] if len(x) == 1 else x[0] + total(x[1:])

try:
    @typed
    def tail(x: Vec[D]) -> Vec[D]: return x if len(x) == 1 else tail(x[1:])
except ShapeError as e: print(e)

# %% [markdown]
# A use of the decorator that cannot be meant is answered with what to write.

# %%
try: typed('B >= 2')
except ShapeError as e: print(e)

# %% [markdown]
# ## What this does not show
#
# What a function does with arguments that are not arrays is decided for the values that it was called with, once for each. In
# a notebook, a name that no cell ever defines is refused at the first call only, as Python does.
