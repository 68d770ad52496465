# %%
#| default_exp shape.typing

# %% [markdown]
# # `@typed`
# > Checked once, at definition, for all sizes.

# %%
#| hide
#| export
import functools, inspect, sys, threading, types
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce
from typing import Any, Callable

import numpy as np

from bendml.shape.sizes import Dim, named, names_of, substitute
from bendml.shape.facts import Claim, assume, claim, decide
from bendml.shape.messages import ShapeError, place_of, place_of_code
from bendml.shape.annotations import ArraySpec, SizeSpec, TupleSpec, _scope, read_annotation, read_signature
from bendml.shape.trace import current, holds, refuse, user_frame
from bendml.shape.symbols import Array, Axis, as_dim, inherit
from bendml.shape.ranges import GIVEN, UNBOUNDED, range_of, written
from bendml.shape.elementwise import lift
from bendml.shape.paths import _arrays_in, fits, make, parts_of
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
    report = shapes.report({n: bound.arguments[n] for n in shapes.statics})
    names = _Names()
    names.learn([(spec, bound.arguments[name]) for name, spec in shapes.signature.params])
    for i, (name, spec) in enumerate(shapes.signature.params): _argument_fits(spec, bound.arguments[name], name, names, i)
    for n, size in names.sizes.items():
        least = shapes.lower.get(n, 1)
        if least is not None and not (verdict := holds(claim(size, '>=', least))).holds:
            refuse(f'needs {n} >= {least}, and {n} is {size}', f'{size} >= {least}', size, f'test it first, or let {shapes.f.__name__} allow it: where=["{n} >= 0"]', verdict)
    for n, limit in shapes.limits.items():
        r, most = range_of(bound.arguments[n]), names.put(limit)
        if r.given or None in (r.low, r.high) or not (holds(claim(r.low, '>=', 0)).holds and holds(claim(r.high, '<', most)).holds):
            refuse(f'needs {n} < {most}', f'0 to {most - 1}', 'any number' if r in (GIVEN, UNBOUNDED) else r, f'add where=["... < {most}"] for it')
    for c in [*shapes.claims, *report.requires]:
        if not (verdict := holds(Claim(names.put(c.dim), c.kind, ''))).holds:
            refuse(f'needs {c}', c, names.shown(c.dim), verdict=verdict)
    for all_of in report.unless: _not_together(all_of, names)
    for n in report.writes:
        for x in _arrays_in(bound.arguments[n]): written(x, UNBOUNDED)
    state['op'] = before or ('', False)
    if (spec := shapes.signature.result) is None:
        refuse(f'{shapes.f.__name__} declares no result', hint='write -> Mat[...] after its parameters')
    return _still_there(_identified(make(spec, names.put), spec, names), bound.arguments)


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
def _argument_fits(spec: Any, value: Any, name: str, names: '_Names', i: int) -> None:
    if spec is None: return
    try: fits(spec, value, f'argument {name}', names.put)
    except ShapeError as e:
        if (frame := user_frame()): e.place = place_of(frame, i)
        raise


# %%
#| export
class _Names:
    "What the names of a called function are in the caller's sizes."
    def __init__(self): self.sizes, self.ids = {}, {}
    def put(self, size: Dim) -> Dim: return substitute(size, self.sizes)
    def shown(self, size: Dim) -> str:
        return ', '.join(f'{n} = {self.sizes[n]}' for n in sorted(names_of(size) & self.sizes.keys()))

    def learn(self, given: list[tuple[Any, Any]]) -> None:
        "Read names off all arguments: first those that stand alone, then one unknown factor of a product."
        found = [(s, a) for spec, value in given for path, sub in parts_of(spec, '')
                 for s, a in zip((sub.size,) if isinstance(sub, SizeSpec) else sub.sizes, _at(spec, value, path))]
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
    where = (where,) if isinstance(where, str) else tuple(where)
    if f is None: return lambda f: _typed(f, where, keep, shapes, known)
    return _typed(f, where, keep, shapes, known)


# %%
#| export
_collecting = threading.local()


# %%
#| export
@contextmanager
def collecting():
    "Within it, `@typed` lists what it finds, `(function, report or refusal)`, instead of raising."
    _collecting.found = []
    try: yield _collecting.found
    finally: del _collecting.found


# %%
#| export
def _typed(f: Callable, where: tuple[str, ...], keep: str, extra: dict[str, Any] | None = None,
           known: dict[str, Any] | None = None) -> Callable:
    if not isinstance(f, types.FunctionType): raise TypeError(f'@typed is for functions written in Python, not {type(f).__name__}')
    first = next(iter(inspect.signature(f).parameters), None)
    try:
        if first == 'self' and 'self' not in f.__annotations__ and (own := _self_spec(f)): extra = {'self': own} | (extra or {})
        made = Shapes(f, read_signature(f, extra), where, tuple(keep.replace(',', ' ').split()), known or {})
        _names_are_known(made)
        made.report()
    except ShapeError as e:
        if (found := getattr(_collecting, 'found', None)) is None: raise e.with_traceback(None)  # its text says where
        found.append((f, e))
        return f
    if (found := getattr(_collecting, 'found', None)) is not None: found.append((f, made.report()))
    quick = functools.wraps(f)(_quick(made))
    quick.__shapes__ = made
    return quick


# %%
#| export
def _names_are_known(shapes: Shapes) -> None:
    "Refuse a name in the result or a condition that no parameter has."
    given = {n for name, spec in shapes.signature.params for n in _names(spec, name)}
    wanted = {n: 'the result' for n in _names(shapes.signature.result, 'result')}
    wanted |= {n: f'where={list(shapes.where)}' for c in shapes.claims for n in names_of(c.dim)}
    for n, what in wanted.items():
        if n not in given and not n.startswith('?'):
            raise ShapeError(f'{what} names {n}, which no parameter has', hint=f'add a parameter {n}: int, or annotate what has this size (of self: attributes of the class, above the method)',
                             place=place_of_code(shapes.f.__code__))


# %%
#| export
def _names(spec: Any, name: str) -> set[str]:
    return set().union(*(names_of(s) for _, p in parts_of(spec, name) for s in ((p.size,) if isinstance(p, SizeSpec) else p.sizes)))


# %%
#| export
def _self_spec(f: Callable) -> TupleSpec | None:
    "What `self` has, for a method: the fields that its class has annotated above it."
    frame = sys._getframe(1)
    while frame and frame.f_code.co_name != f.__qualname__.split('.')[-2:][0]: frame = frame.f_back
    if frame is None: return None
    scope = _scope(f) | {k: v for k, v in frame.f_locals.items() if not k.startswith('__')}
    read = {n: read_annotation(a, scope, n) for n, a in frame.f_locals.get('__annotations__', {}).items()}
    read = {n: s for n, s in read.items() if s is not None}
    like = type(frame.f_code.co_name, (),
                {k: v for k, v in frame.f_locals.items() if k not in ('__dict__', '__weakref__', '__slots__', *read)} | {'__stands_in__': True})
    return TupleSpec(tuple(read.values()), tuple(read), like)


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
# A method knows of `self` what its class has annotated above it.

# %%
class Linear:
    w: Mat[B, D]
    def __init__(self, w): self.w = w
    @typed
    def __call__(self, x: Vec[D]) -> Vec[B]: return self.w @ x

Linear(np.ones((2, 3)))(np.ones(3))

# %% [markdown]
# ## What this does not show
#
# What a function does with arguments that are not arrays is decided for the values that it was called with, once for each.
