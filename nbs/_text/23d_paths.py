# %%
#| default_exp shape.paths

# %% [markdown]
# # Every path
# > A function is traced once for each way its conditions can go; each path must fit.

# %%
#| hide
#| export
import inspect, re, time, types
from dataclasses import dataclass, field, is_dataclass
from functools import reduce
from typing import Any, Callable, Iterator

import numpy as np

from bendml.shape.sizes import Dim, names_of, parse_dim, substitute
from bendml.shape.facts import Claim, Facts, assume, bound, claim, decide, impossible, parse_claim
from bendml.shape.messages import Place, ShapeError, defines_somewhere, place_at, place_of, place_of_code
from bendml.shape.annotations import ArraySpec, DictSpec, ManySpec, MaybeSpec, OneSpec, OpaqueSpec, Signature, SizeSpec, TupleSpec, names_in, spelled
from bendml.shape.trace import Trace, choose, current, holds, refuse, tracing
from bendml.shape.opaque import Opaque, Part
from bendml.shape.symbols import Array, Axis, Size, as_dim, axis, number, size_value
from bendml.shape.ranges import GIVEN, UNBOUNDED, Known, bounded, ranged
from bendml.shape.elementwise import _fit, lift, same
from bendml.shape.ranges import unknown
from bendml.shape.states import FEWER, Growing, Turns, fingerprint, outside
from bendml.shape.loops import MAX_SECONDS, Endless
from bendml.shape.copies import copy_of, reads, unused_names, why_no_copy
from bendml.shape.unsaid import found_sizes, nothing_said, nothing_to_find
from bendml.shape import calls  # what the copies' calls go through
from bendml.shape.objects import Own, Watched, own_of, stand_in_for, take_notes

# %% [markdown]
# ## From an annotation to a symbolic value

# %%
#| export
_GENERATORS = {np.random.Generator: np.random.default_rng, np.random.RandomState: np.random.RandomState}  # what they draw has a rule
_DTYPES = {'': np.float64, 'float': np.float64, 'int': np.int64, 'bool': np.bool_}
_ROLES = {'in×out': ('in', 'out'), 'out×in': ('out', 'in')}


# %%
#| export
def itself(size: Dim) -> Dim: return size

def make(spec: Any, put: Callable[[Dim], Dim] = itself) -> Any:
    "A symbolic value for an annotation; `put` replaces its sizes."
    match spec:
        case ArraySpec(): return _array(spec, put)
        case SizeSpec(size): return size_value(put(size))
        case OpaqueSpec(cls, name):
            return _GENERATORS[cls](0) if cls in _GENERATORS else Opaque(name or f'a {cls.__name__}', cls, fixed=cls in (str, bytes))
        case OneSpec(values): return next((v for v in values[:-1] if choose()), values[-1])
        case MaybeSpec(inner): return make(inner, put) if choose('an optional argument is given') else None
        case ManySpec(inner): return _many(inner, put)
        case TupleSpec(items, names, cls): return _record(cls, names, [make(s, put) for s in items])
        case DictSpec(items): return {k: make(s, put) for k, s in items}
        case list(): return [make(s, put) for s in spec]
    return spec


# %%
#| export
def _many(inner: Any, put: Callable[[Dim], Dim]) -> Turns:
    "Values of one kind, of which nobody knows how many; arrays can be stacked, if there is one."
    any_size = {n for n in names_in(inner) if n.startswith('?')}  # each has its own
    def item(_: Any) -> Any:
        own = {n: unknown('k').size for n in any_size}
        return make(inner, (lambda size: put(substitute(size, own))) if own else put)
    def listed() -> Growing:
        if not holds(claim(turns.count, '>=', 1)).holds: refuse('there may be no array in it', hint=FEWER)
        if any_size or not isinstance(inner, ArraySpec): refuse('their sizes may differ', hint='name the size, instead of Any')
        return Growing([item(0)], [turns.count])
    turns = Turns(unknown('n').size, item)
    turns.listed = listed
    return turns


# %%
#| export
def _array(spec: ArraySpec, put: Callable[[Dim], Dim]) -> Array:
    rank = len(spec.sizes)
    roles = ('',)*rank
    if spec.layout in _ROLES and rank >= 2: roles = ('',)*(rank - 2) + _ROLES[spec.layout]
    if spec.layout == 'grad' and rank: roles = ('',)*(rank - 1) + ('grad',)
    parts = spec.factors or ((),)*rank
    axes = [axis(put(s), role=r, parts=tuple(map(put, p)), one='declared' if put(s) == 1 else '') for s, r,
            p in zip(spec.sizes, roles, parts)]
    sure = rank > 0 and spec.dtype not in _DTYPES and put is itself  # a parameter's is checked at the call, a result's as far as it is known
    x = ranged(Array(axes, np.dtype(_DTYPES.get(spec.dtype, spec.dtype)), sure=sure), GIVEN)  # its numbers are the caller's word
    if not rank and x.dtype == bool: current().state.setdefault('fixed', {})[id(x)] = [x, None]
    return x


# %%
#| export
def _record(cls: Any, names: tuple[str, ...], values: list) -> Any:
    if cls is None: return tuple(values)
    if hasattr(cls, '_fields'): return cls(*values)
    made = object.__new__(cls if is_dataclass(cls) or issubclass(cls, Watched) else stand_in_for(cls, names))
    for n, v in zip(names, values): object.__setattr__(made, n, v)
    return made


# %%
#| export
def parts_of(spec: Any, name: str, kinds: Any = ArraySpec | SizeSpec) -> list[tuple[str, Any]]:
    "The arrays and sizes in an annotation, or its parts of other kinds, each with the expression that reaches it."
    match spec:
        case MaybeSpec(inner): return parts_of(inner, name, kinds)
        case ManySpec(inner): return parts_of(inner, f'{name}[0]', kinds)
        case TupleSpec(items, names, cls):
            return [a for i, s in enumerate(items) for a in parts_of(s, f'{name}.{names[i]}' if cls else f'{name}[{i}]', kinds)]
        case DictSpec(items): return [a for k, s in items for a in parts_of(s, f'{name}[{k!r}]', kinds)]
        case list(): return [a for i, s in enumerate(spec) for a in parts_of(s, f'{name}[{i}]', kinds)]
    return [(name, spec)] if isinstance(spec, kinds) else []

def arrays_of(spec: Any, name: str) -> list[tuple[str, ArraySpec]]:
    "The arrays in an annotation, each with the expression that reaches it."
    return parts_of(spec, name, ArraySpec)


# %% [markdown]
# ## Does the result fit?

# %%
#| export
def fits(spec: Any, value: Any, what: str, put: Callable[[Dim], Dim] = lambda d: d) -> None:
    "Refuse a value that is not what an annotation says."
    match spec:
        case None: return
        case MaybeSpec(inner): return None if value is None else fits(inner, value, what, put)
        case ManySpec(inner):
            if not isinstance(value, Turns | tuple | list): refuse(f'{what} is not several values', spec, type(value).__name__)
            if isinstance(value, Turns): value = value.item(unknown('k').size),
            if isinstance(value, Growing): value = [v for v, _ in value.counted()]
            for v in value: fits(inner, v, f'{what}, one of its parts', put)
        case SizeSpec(size):
            if (dim := as_dim(value)) is None or not (verdict := same(dim, put(size))).holds:
                refuse(f'{what} is not that size', put(size), value, verdict=None if dim is None else verdict)
        case ArraySpec(): _array_fits(spec, value, what, put)
        case OpaqueSpec(cls):
            if not isinstance(value, cls) and not (type(value) is Opaque and value._class_ is Part):
                refuse(f'{what} is not {spec}', spec, _shown(value))
        case OneSpec(values):
            if type(value) is Opaque or value not in values: refuse(f'{what} is none of these', spec, _shown(value))
        case TupleSpec(items, names, cls):
            values = [getattr(value, n, None) for n in names] if cls else value if isinstance(value, tuple | list) else (value,)
            if len(values) != len(items): refuse(f'{what} has another number of values', spec, f'{len(values)} values')
            for i, (s, v) in enumerate(zip(items, values)): fits(s, v, f'{what}.{names[i]}' if cls else f'{what}, part {i}', put)
        case DictSpec(items):
            if not isinstance(value, dict): refuse(f'{what} is not a dictionary', spec, type(value).__name__)
            for k, s in items:
                if k not in value: refuse(f'{what} has no key {k!r}', s, 'nothing')
                fits(s, value[k], f'{what}[{k!r}]', put)
        case list(): fits(TupleSpec(tuple(spec)), tuple(value), what, put)


# %%
#| export
def _array_fits(spec: ArraySpec, value: Any, what: str, put: Callable[[Dim], Dim]) -> None:
    sizes = tuple(current().facts.shown(put(s)) for s in spec.sizes)
    wanted = spelled(sizes, spec.dtype)
    if value is None or isinstance(value, str | dict) or type(value).__name__ == 'Growing' and not value.plain():
        refuse(f'{what} is no array', wanted, 'a list' if isinstance(value, list) else value)
    if isinstance(value, Watched): refuse(f'{what} is no array', wanted, f'an object of the class {type(value).__name__}')
    x = lift(value)
    if x.ndim != len(sizes):
        count = '1 axis' if x.ndim == 1 else f'{x.ndim} axes'
        refuse(f'{what} has {count}, not {len(sizes)}', wanted, x, _fit(Array(map(Axis, sizes)), x) or _flatten(sizes, x))
    for i, (a, s) in enumerate(zip(x.axes, sizes)):
        if not str(s).startswith('?') and not (verdict := same(a.size, s)).holds:
            hint = "the check cannot tell this size: leave out this annotation, or fill an array that has the declared size" if "'" in str(a.size) else ''
            refuse(f'{what} has size {a.size} on axis {i}, not {s}', wanted, x, _fit(Array(map(Axis, sizes)), x) or hint, verdict)
    _same_order(spec, x, what, put)
    kind = np.dtype(_DTYPES.get(spec.dtype, spec.dtype)) if spec.dtype else x.dtype
    if spec.dtype and (kind.kind != x.dtype.kind and not (kind.kind in 'iu' and x.dtype.kind in 'iu')):
        refuse(f'{what} holds {x.dtype}', wanted, f'{x} of {x.dtype}', 'convert with .astype')
    if spec.dtype not in _DTYPES and x.sure and x.dtype != kind:
        refuse(f'{what} holds {x.dtype}', wanted, f'{x} of {x.dtype}',
               f'convert with .astype(np.{kind}), or make what it is computed from with dtype=np.{kind}')


# %%
#| export
def _flatten(sizes: tuple[Dim, ...], x: Array) -> str:
    product = Dim(1)
    for a in x.axes[len(sizes) - 1:]: product = product*a.size
    return f'flatten it: .reshape({", ".join(map(str, sizes))})' if x.ndim > len(sizes) > 0 and product == sizes[-1] else ''


# %%
#| export
def _same_order(spec: ArraySpec, x: Array, what: str, put: Callable[[Dim], Dim]) -> None:
    roles = tuple(a.role for a in x.axes[-2:])
    if spec.layout in _ROLES and {*roles} <= {'in', 'out'} and roles != _ROLES[spec.layout]:
        refuse(f'{what} is stored the other way round', spec.layout, '×'.join(roles), 'transpose it: .T')
    for a, p in zip(x.axes, spec.factors):
        p = tuple(map(put, p))
        if a.parts and p and a.parts != p and sorted(map(str, a.parts)) == sorted(map(str, p)):
            refuse(f'{what} was merged in another order', '*'.join(map(str, p)), '*'.join(map(str, a.parts)),
                   'transpose before the reshape that merged it')


# %% [markdown]
# ## One path, and all of them
#
# A path on which every turn of a loop appends to a list cannot know that on another some turns do not. So what it refuses
# waits for the other paths; if one of them finds such a list, all are traced anew, and count it as not known.

# %%
#| export
@dataclass(frozen=True)
class Report:
    "What the check of a function found."
    name: str
    seconds: float
    paths: int
    decided: tuple[tuple[str, int], ...]  # how many questions the normal form, trying and z3 have answered
    requires: tuple[Claim, ...]           # conditions on sizes that the function checks itself
    result: str                           # the shape of what it returns
    own: Own | None = None                # what a method does with `self`
    unless: tuple[tuple[Claim, ...], ...] = ()  # conditions under which it raises, each of several that hold together
    writes: tuple[str, ...] = ()          # the parameters into whose arrays it may write
    def __repr__(self): return f'{self.name} -> {self.result}: accepted on {self.paths} path{"s"*(self.paths != 1)}'
    def __str__(self):
        how = ', '.join(f'{n} by {by}' for by, n in self.decided)
        return f'{self.name} -> {self.result}: {self.paths} path{"s"*(self.paths != 1)}, {how or "nothing to decide"}, {1000*self.seconds:.1f} ms'


# %%
#| export
@dataclass
class Path:
    "What happened on one path."
    trace: Trace
    raised: bool     # it ended in an exception that the function raises itself
    result: str = ''
    endless: bool = False  # it goes on for ever
    changed: dict[str, Any] = field(default_factory=dict)  # what it did to `self`


# %%
#| export
MAX_PATHS, SOON = 400, 1.0  # s


# %%
#| export
def explore(
    run: Callable[[Trace], Any],
    facts: Facts,
    keep: frozenset[str] = frozenset(),
    seconds: float = MAX_SECONDS,  # for all paths together
    rolled: bool = False,          # two turns stand for all, in short loops too
) -> list[Path]:
    "Run once for each way that the conditions can go."
    plans, paths, some, refusal = [()], [], set(), None
    until = time.thread_time() + seconds
    while plans:
        plan, known = plans.pop(), len(some)
        trace = Trace(facts, plan, keep=keep, some=some, state=dict(until=until, rolled=rolled))
        try:
            with tracing(trace): paths.append(_one_path(run, trace))
        except ShapeError as e:
            if _too_much(e): raise
            if not trace.state.get('tentative'): raise refusal or e
            refusal = refusal or e  # it took a list to be filled in every turn: another path may know better
        if len(some) > known: plans, paths, refusal = [()], [], None; continue
        plans += [(*trace.made[:i], not trace.made[i]) for i in range(len(plan), len(trace.made))]
        if len(paths) > MAX_PATHS:
            raise refusal or ShapeError(f'more than {MAX_PATHS} paths: too many conditions on sizes or numbers',
                                        hint='split the function into smaller typed ones')
    if refusal: raise refusal
    return paths


# %% [markdown]
# A loop with ten turns and a condition in each has a thousand paths. If that is too much, it is looped over as one that nobody
# has counted.

# %%
#| export
def _all_paths(run: Callable[[Trace], Any], facts: Facts) -> list[Path]:
    "All paths, by the way that is fast enough."
    try: return explore(run, facts, seconds=SOON)
    except ShapeError as e:
        if not _too_much(e): raise
        first = e
    try: return explore(run, facts, seconds=SOON, rolled=True)
    except ShapeError:
        if 'longer' not in first.reason: raise first from None
    return explore(run, facts)

def _too_much(e: ShapeError) -> bool: return e.reason.startswith(('more than', 'the check takes longer'))


# %%
#| export
def _one_path(run: Callable[[Trace], Any], trace: Trace) -> Path:
    try: result = run(trace)
    except ShapeError as e: raise trace.refused or e
    except Endless: return Path(trace, True, endless=True)
    except (Exception, SystemExit) as e:
        if trace.refused: raise trace.refused from None
        if trace.state.get('raised') is e: return Path(trace, True)
        raise _as_refusal(e, trace) from None
    if trace.refused: raise trace.refused  # something swallowed it
    return Path(trace, False, _shown(result), changed=trace.state.get('changed', {}))


# %%
#| export
NONE = 'it may be None: test that first, `if ... is None`; or leave out the default None'

def _as_refusal(e: BaseException, trace: Trace) -> ShapeError:
    "An exception inside a trace, as a refusal with its place."
    place, tb, local = None, e.__traceback__, set()
    while tb:
        if '__bendml__' in tb.tb_frame.f_globals: place = place_at(tb.tb_frame.f_code, tb.tb_lasti)
        local |= {*tb.tb_frame.f_code.co_cellvars}
        tb = tb.tb_next
    text = str(e).replace(' (expected ', ', expected ').replace("'Array'", "'ndarray'").replace("'Size'", "'int'")
    known = tuple(dict.fromkeys(c.text for c in trace.facts.claims if c.text))
    hint = 'as many names as the array has axes' if 'values to unpack' in text else ''
    if "'NoneType'" in text: hint = NONE
    if isinstance(e, RecursionError): hint = 'tracing does not end'
    if isinstance(e, AttributeError) and getattr(type(e.obj), '__annotations__', None):
        hint = f'write {e.name}: Vec[...], {e.name}: int for a size or {e.name}: float for a number in the class {type(e.obj).__name__}'
    error = ShapeError(f'{type(e).__name__}: {text}', hint=hint, known=known, place=place)
    if isinstance(e, NameError) and not isinstance(e, UnboundLocalError): error.missing = e.name or ''
    error.later = 'empty __class__ cell' in text or error.missing != '' and ('free variable' in text and e.name not in local or place is not None and defines_somewhere(place.file, e.name))
    return error


# %%
#| export
def _shown(value: Any) -> str:
    if type(value) is Array: return re.sub(r"\w+'\d+", '?', str(value))  # a size that nobody named
    if isinstance(value, Growing) and not value.plain(): return f'a list of {value.total()}'
    if isinstance(value, tuple | list): return '(' + ', '.join(map(_shown, value)) + ')'
    return f'the size {value}' if type(value) is Size else 'None' if value is None else type(value).__name__


# %% [markdown]
# ## The check of a function

# %%
#| export
def start_facts(where: tuple[str, ...]) -> Facts:
    "What is known at the start: sizes are at least 1, unless `where` says otherwise."
    facts = Facts()
    for text in where:
        for c in parse_claim(text):
            match c.dim.terms if c.kind == '>=' else ():
                case ((((str(n), 1),), 1),): facts = bound(facts, n, 0)
                case ((((str(n), 1),), 1), ((), b)) if -b < 1: facts = bound(facts, n, -b)
            facts = assume(facts, c)
    return facts


# %%
#| export
def split_conditions(where: tuple[str, ...], signature: Signature) -> tuple[tuple[str, ...], dict[str, Dim]]:
    "Conditions on sizes, and those of the form `ids < V` on the numbers in an array of whole numbers."
    kinds = {n: s for n, s in signature.params if isinstance(s, ArraySpec) and s.dtype == 'int'}
    limits, sizes = {}, []
    for text in where:
        name, less, limit = text.removeprefix('0 <= ').partition(' < ')
        if less and name.strip() in kinds: limits[name.strip()] = parse_dim(limit)
        else: sizes.append(text)
    return tuple(sizes), limits


# %%
#| export
def arguments(signature: Signature, statics: dict[str, Any], f: Callable) -> tuple[list, dict]:
    "Symbolic arguments for a signature."
    args, kwargs = [], {}
    for name, spec in signature.params:
        p = signature.python.parameters[name]
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            if reads(f.__code__, name): _refuse_star(p, f)
            continue
        if spec is not None: value = make(spec)
        elif name in statics and statics[name] is not p.empty: value = statics[name]
        elif is_number(p): value = number(float)
        elif p.annotation is bool: value = number(bool)
        elif p.default is not p.empty: value = p.default
        else: raise nothing_said(name, p, f)
        if p.kind is p.KEYWORD_ONLY: kwargs[name] = value
        else: args.append(value)
    return args, kwargs


# %%
#| export
def _refuse_star(p: inspect.Parameter, f: Callable) -> None:
    star = '*' if p.kind is p.VAR_POSITIONAL else '**'
    raise ShapeError(f'what {star}{p.name} holds is not known', 'parameters with names', f'{star}{p.name}', f'write {p.name}: tuple[Vec[n], ...], without the star, or declare the function that calls {f.__name__}',
                     place=place_of_code(f.__code__))


# %%
#| export
def is_number(p: inspect.Parameter) -> bool:
    "A parameter that holds some float: its value is not looked at."
    return p.annotation in (float, 'float') or isinstance(p.default, float)


# %%
#| export
def check(f: Callable, signature: Signature, where: tuple[str, ...] = (), keep: tuple[str, ...] = (), statics: dict[str, Any] | None = None,
          limits: dict[str, Dim] | None = None, names: dict[str, Any] = {}) -> Report:
    "Trace a function on every path; `ShapeError` if a path does not fit its annotations. `names` are names of its own."
    began, copy = time.perf_counter(), copy_of(f, names)
    if copy is None or inspect.isgeneratorfunction(f):
        why, hint = why_no_copy(f)
        raise ShapeError(f'{f.__name__} cannot be checked: {why}', hint=hint, place=place_of_code(f.__code__))
    writes = set()
    def run(trace: Trace) -> Any:
        before = fingerprint(outside(f))
        args, kwargs = arguments(signature, statics or {}, f)
        given = signature.python.bind(*args, **kwargs).arguments
        for x in (x for v in given.values() for x in _arrays_in(v) if not x.known): object.__setattr__(x, 'known', Known(UNBOUNDED))
        for name, limit in (limits or {}).items(): bounded(signature.python.bind(*args, **kwargs).arguments[name], limit)
        trace.state |= {'root': copy.__code__, 'unused': unused_names(f.__code__), 'kept': _kept((args, kwargs), keep)}
        notes = take_notes(args[0]) if args and _is_self(signature.params[0][1]) else None
        own = {id(x.known): name for name, v in given.items() for x in _arrays_in(v)}
        result = copy(*args, **kwargs)
        writes.update(own[id(k)] for k in trace.state.get('written', ()) if id(k) in own)
        if (after := fingerprint(outside(f))) != before: _refuse_lasting(before, after, f)
        trace.state['op'] = ('', False)
        if notes: trace.state |= {'changed': notes.changed(), 'gives': result is notes.me}
        if signature.result is not None and not (trace.state.get('gives') and _is_self(signature.result)): _result_fits(signature, result, trace, f)
        _still_fit(signature, given, trace, f)
        return result
    if where and (no := impossible(start_facts(where))) is not False:
        what = 'no sizes satisfy it' if no else 'no small sizes satisfy it, and no others are known'
        raise ShapeError(f'where={list(where)}: {what}',
                         hint='sizes are at least 1, unless it has a lower bound for them, such as "n >= 0"', place=place_of_code(f.__code__))
    paths = _all_paths(run, start_facts(where))
    done = [p for p in paths if not p.raised]
    if not done and all(p.endless for p in paths):
        raise ShapeError(f'{f.__name__} has a loop that never ends', place=place_of_code(f.__code__))
    if not done:
        raise ShapeError(f'{f.__name__} raises an exception at every size that its annotations allow',
                         place=place_of_code(f.__code__))
    nothing_to_find([p.trace.state.get('found', {}) for p in done], signature, f)
    decided = {}
    for p in paths:
        for by, n in p.trace.by.items(): decided[by] = decided.get(by, 0) + n
    requires, unless = _required(paths, where)
    return Report(f.__name__, time.perf_counter() - began, len(paths), tuple(sorted(decided.items())), requires,
                  str(signature.result) if signature.result else ' or '.join(dict.fromkeys(p.result for p in done)), _own(done, paths, f), unless, tuple(sorted(writes)))


# %%
#| export
def _arrays_in(value: Any) -> Iterator[Array]:
    "The arrays that an argument holds."
    if type(value) is Array: yield value
    elif isinstance(value, dict | list | tuple):
        for v in value.values() if isinstance(value, dict) else value: yield from _arrays_in(v)
    elif hasattr(value, '__dict__') and not isinstance(value, type | types.FunctionType | types.ModuleType):
        for v in vars(value).values(): yield from _arrays_in(v)


# %%
#| export
def _refuse_lasting(before: tuple, after: tuple, f: Callable) -> None:
    "Refuse a change of what outlives the call: a global, a default."
    name = next(n[1:-1] for (n, a), (_, b) in zip(before[1], after[1]) if a != b)
    raise ShapeError(f'{name} is changed, which outlives the call', hint='take it as a parameter, and return what is new', place=place_of_code(f.__code__))


# %%
#| export
def _result_fits(signature: Signature, result: Any, trace: Trace, f: Callable) -> None:
    try: fits(signature.result, result, 'the result', found_sizes(signature, result))
    except ShapeError as e:
        e.place = place_at(*trace.state['returned']) if 'returned' in trace.state else place_of_code(f.__code__)
        raise


# %% [markdown]
# What a function may have changed of its arguments, attributes, entries of a dictionary or a list, is what the annotation
# says when it ends too: its callers count on it. An attribute of `self` that was not set need not be there.

# %%
#| export
def _still_fit(signature: Signature, given: dict[str, Any], trace: Trace, f: Callable) -> None:
    notes = trace.state.get('notes')
    for name, spec in signature.params:
        if notes is None or given.get(name) is not notes.me:
            if name in given and _mutable(spec): _fits_at(place_of_code(f.__code__), spec, given[name], name, f'so it is when {f.__name__} ends: its callers count on the annotation')
            continue
        for n, s in zip(spec.names, spec.items):
            held, changed = object.__getattribute__(notes.me, '__dict__'), n in trace.state['changed']
            if changed or _mutable(s):
                _fits_at(notes.places.get(n, place_of_code(f.__code__)), s, held[n], f'{name}.{n}',
                         f'the class {type(notes.me).__name__} says that {n} is {s}; the names of sizes are the same in its methods')


# %%
#| export
def _mutable(spec: Any) -> bool:
    "Can what an annotation speaks of get other parts?"
    if isinstance(spec, MaybeSpec): return _mutable(spec.inner)
    if isinstance(spec, TupleSpec): return spec.make is not None and not hasattr(spec.make, '_fields') or any(map(_mutable, spec.items))
    return isinstance(spec, DictSpec | list)


# %%
#| export
def _fits_at(place: Place, spec: Any, value: Any, what: str, hint: str = '') -> None:
    try: fits(spec, value, what)
    except ShapeError as e:
        e.place, e.hint = place, e.hint or hint
        raise


# %%
#| export
def _own(done: list[Path], paths: list[Path], f: Callable) -> Own | None:
    "What a method does with `self`, on all paths together."
    gives = [p.trace.state.get('gives', False) for p in done]
    if any(gives) and not all(gives):
        raise ShapeError(f'{f.__name__} returns self on one way and something else on another', hint='return self on each way, or on none', place=place_of_code(f.__code__))
    return own_of([(notes, p.raised, p.changed, p.trace.state.get('gives', False)) for p in paths if (notes := p.trace.state.get('notes'))])


# %%
#| export
def _is_self(spec: Any) -> bool: return isinstance(spec, TupleSpec) and isinstance(spec.make, type) and issubclass(spec.make, Watched)


# %%
#| export
def _kept(values: Any, keep: tuple[str, ...]) -> dict[int, str]:
    "The identities of the axes that nothing may reduce over."
    return {a.id: str(a.size) for x in _arrays_in(values) for a in x.axes if str(a.size) in keep}


# %%
#| export
def _required(paths: list[Path], where: tuple[str, ...]) -> tuple[tuple[Claim, ...], tuple[tuple[Claim, ...], ...]]:
    "The conditions on sizes whose failure makes the function raise, and those that make it raise together; a caller must meet them."
    start = start_facts(where)
    made = lambda p: [c for c in p.trace.facts.claims[len(start.claims):] if c.text]
    done = [made(p) for p in paths if not p.raised]
    found, together = [], []
    for p in sorted((p for p in paths if p.raised and not p.endless), key=lambda p: len(made(p))):
        named = [c for c in made(p) if "'" not in c.text]
        if len(named) != len(p.trace.made) and not _by_sizes(start, named, done): continue  # it depends on numbers
        left = [c for c in named if c not in found and not decide(start, c).holds]
        if len(left) == 1: found.append(~left[0])
        elif left and tuple(left) not in together: together.append(tuple(left))
    return tuple(found), tuple(together)


# %%
#| export
def _by_sizes(start: Facts, claims: list[Claim], done: list[list[Claim]]) -> bool:
    "Does no way through the function return where these claims hold?"
    facts = reduce(assume, claims, start)
    return all(any(decide(facts, ~c).holds for c in way) for way in done)


# %%
from bendml.shape.annotations import Int, Mat, Vec, L, read_signature
B = Dim('B')

def layer(x: Mat[B, L[784]], w: Mat[L[784], L[128]], b: Vec[L[128]]) -> Mat[B, L[128]]:
    if len(x) % 2: raise ValueError('an odd batch')
    return np.maximum(x @ w + b, 0)

report = check(layer, read_signature(layer))
report, report.requires


# %% [markdown]
# Where several conditions together make it raise, a caller must rule out that they all hold. And what a function may write
# into is noted, since its caller knows nothing of those numbers afterwards.

# %%
def either(x: Mat[B, L[784]], i: Int[Vec[B]]) -> Mat[B, L[784]]:
    assert len(x) == 3 or len(x) == 4
    i += 1
    return x

report = check(either, read_signature(either))
report.unless, report.writes

# %% [markdown]
# Sizes that fail are stated only as far as they fail for certain. Here they hang on how often a condition was so.

# %%
n = Dim('n')
def every_other(u: Vec[n], steps: int) -> Mat['1 + steps', n]:
    out = [u]
    for i in range(steps):
        if i % 2 == 0: out.append(u)
    return np.stack(out)

try: check(every_other, read_signature(every_other))
except ShapeError as e: print(e)


# %% [markdown]
# A loop until the numbers say so is accepted, and what it counts is a whole number that nobody knows.

# %%
def until_small(x: Vec[n], most: int) -> tuple[Vec[n], int]:
    turns = 0
    while np.abs(x).max() > 1 and turns < most: x, turns = x/2, turns + 1
    return x, turns

check(until_small, read_signature(until_small))

# %% [markdown]
# ## What this does not show
#
# An exception that the function raises itself is taken for a condition on its caller, whatever it says. Of a result's
# numbers only what is certain is compared: `np.zeros(n)` is no `F32[Vec[n]]`, nor is a float32 to which that is added; but what
# comes of a reduction, or of an array whose annotation names no dtype, goes unseen.
