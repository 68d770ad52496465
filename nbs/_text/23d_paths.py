# %%
#| default_exp shape.paths

# %% [markdown]
# # Every path
# > A function is traced once for each way its conditions can go; each path must fit.

# %%
#| hide
#| export
import inspect, re, time, types
from dataclasses import dataclass
from functools import reduce
from typing import Any, Callable, Iterator

import numpy as np

from bendml.shape.sizes import Dim, names_of, parse_dim, substitute
from bendml.shape.facts import Claim, Facts, assume, bound, claim, decide, parse_claim
from bendml.shape.messages import Place, ShapeError, place_at, place_of, place_of_code
from bendml.shape.annotations import ArraySpec, DictSpec, ManySpec, MaybeSpec, Signature, SizeSpec, TupleSpec, spelled
from bendml.shape.trace import Trace, choose, current, refuse, tracing
from bendml.shape.symbols import Array, Axis, Size, as_dim, axis, number, size_value
from bendml.shape.ranges import GIVEN, UNBOUNDED, Known, bounded, ranged
from bendml.shape.elementwise import _fit, lift, same
from bendml.shape.ranges import unknown
from bendml.shape.states import Turns, fingerprint, outside
from bendml.shape.loops import MAX_SECONDS, Endless
from bendml.shape.copies import copy_of, reads, unused_names
from bendml.shape import calls  # what the copies' calls go through

# %% [markdown]
# ## From an annotation to a symbolic value

# %%
#| export
_DTYPES = {'': np.float64, 'float': np.float64, 'int': np.int64, 'bool': np.bool_}
_ROLES = {'in×out': ('in', 'out'), 'out×in': ('out', 'in')}


# %%
#| export
def make(spec: Any, put: Callable[[Dim], Dim] = lambda d: d) -> Any:
    "A symbolic value for an annotation; `put` replaces its sizes."
    match spec:
        case ArraySpec(): return _array(spec, put)
        case SizeSpec(size): return size_value(put(size))
        case MaybeSpec(inner): return make(inner, put) if choose('an optional argument is given') else None
        case ManySpec(inner): return Turns(unknown('n').size, lambda k: make(inner, put))
        case TupleSpec(items, names, cls): return _record(cls, names, [make(s, put) for s in items])
        case DictSpec(items): return {k: make(s, put) for k, s in items}
        case list(): return [make(s, put) for s in spec]
    return spec


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
    return ranged(Array(axes, np.dtype(_DTYPES.get(spec.dtype, spec.dtype))), GIVEN)  # its numbers are the caller's word


# %%
#| export
def _record(cls: Any, names: tuple[str, ...], values: list) -> Any:
    if cls is None: return tuple(values)
    if hasattr(cls, '_fields'): return cls(*values)
    made = object.__new__(cls)
    for n, v in zip(names, values): object.__setattr__(made, n, v)
    return made


# %%
#| export
def parts_of(spec: Any, name: str) -> list[tuple[str, ArraySpec | SizeSpec]]:
    "The arrays and sizes in an annotation, each with the expression that reaches it."
    match spec:
        case ArraySpec() | SizeSpec(): return [(name, spec)]
        case MaybeSpec(inner): return parts_of(inner, name)
        case ManySpec(inner): return parts_of(inner, f'{name}[0]')
        case TupleSpec(items, names, cls):
            return [a for i, s in enumerate(items) for a in parts_of(s, f'{name}.{names[i]}' if cls else f'{name}[{i}]')]
        case DictSpec(items): return [a for k, s in items for a in parts_of(s, f'{name}[{k!r}]')]
        case list(): return [a for i, s in enumerate(spec) for a in parts_of(s, f'{name}[{i}]')]
    return []

def arrays_of(spec: Any, name: str) -> list[tuple[str, ArraySpec]]:
    "The arrays in an annotation, each with the expression that reaches it."
    return [(path, s) for path, s in parts_of(spec, name) if isinstance(s, ArraySpec)]


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
            for v in (value.item(unknown('k').size),) if isinstance(value, Turns) else value: fits(inner, v, f'{what}, one of its parts', put)
        case SizeSpec(size):
            if (dim := as_dim(value)) is None or not (verdict := same(dim, put(size))).holds:
                refuse(f'{what} is not that size', put(size), value, verdict=None if dim is None else verdict)
        case ArraySpec(): _array_fits(spec, value, what, put)
        case TupleSpec(items, names, cls):
            values = [getattr(value, n, None) for n in names] if cls else value if isinstance(value, tuple | list) else (value,)
            if len(values) != len(items): refuse(f'{what} has another number of values', spec, f'{len(values)} values')
            for i, (s, v) in enumerate(zip(items, values)): fits(s, v, f'{what}, part {i}', put)
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
    x = lift(value)
    if x.ndim != len(sizes):
        refuse(f'{what} has {x.ndim} axes, not {len(sizes)}', wanted, x, _fit(Array(map(Axis, sizes)), x) or _flatten(sizes, x))
    for i, (a, s) in enumerate(zip(x.axes, sizes)):
        if not str(s).startswith('?') and not (verdict := same(a.size, s)).holds:
            hint = "the check cannot tell this size: leave out this annotation, or fill an array that has the declared size" if "'" in str(a.size) else ''
            refuse(f'{what} has size {a.size} on axis {i}, not {s}', wanted, x, _fit(Array(map(Axis, sizes)), x) or hint, verdict)
    _same_order(spec, x, what, put)
    kind = np.dtype(_DTYPES.get(spec.dtype, spec.dtype)) if spec.dtype else x.dtype
    if spec.dtype and (kind.kind != x.dtype.kind and not (kind.kind in 'iu' and x.dtype.kind in 'iu')):
        refuse(f'{what} holds {x.dtype}', wanted, f'{x} of {x.dtype}', 'convert with .astype')


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
    return Path(trace, False, _shown(result))


# %%
#| export
def _as_refusal(e: BaseException, trace: Trace) -> ShapeError:
    "An exception inside a trace, as a refusal with its place."
    place, tb = None, e.__traceback__
    while tb:
        if '__bendml__' in tb.tb_frame.f_globals: place = place_at(tb.tb_frame.f_code, tb.tb_lasti)
        tb = tb.tb_next
    text = str(e).replace(' (expected ', ', expected ')
    known = tuple(dict.fromkeys(c.text for c in trace.facts.claims if c.text))
    hint = 'as many names as the array has axes' if 'values to unpack' in text else ''
    if isinstance(e, RecursionError): hint = 'tracing does not end'
    return ShapeError(f'{type(e).__name__}: {text}', hint=hint, known=known, place=place)


# %%
#| export
def _shown(value: Any) -> str:
    if type(value) is Array: return re.sub(r"\w+'\d+", '?', str(value))  # a size that nobody named
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
        else: raise ShapeError(f'the parameter {name} of {f.__name__} has no shape and no default', 'an annotation', 'none',
                               f'write {name}: Mat[...], {name}: int for a size, {name}: float for a number, or give it a default',
                               place=place_of_code(f.__code__))
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
          limits: dict[str, Dim] | None = None, itself: Any = None) -> Report:
    "Trace a function on every path; `ShapeError` if a path does not fit its annotations."
    began, copy = time.perf_counter(), copy_of(f, itself)
    if inspect.isgeneratorfunction(f):
        raise ShapeError(f'{f.__name__} is a generator, which is traced only where a loop takes what it yields',
                         hint='annotate the function that has this loop', place=place_of_code(f.__code__))
    if copy is None:
        raise ShapeError(f'{f.__name__} cannot be traced: its source is not there', place=place_of_code(f.__code__))
    writes = set()
    def run(trace: Trace) -> Any:
        before = fingerprint(outside(f))
        args, kwargs = arguments(signature, statics or {}, f)
        given = signature.python.bind(*args, **kwargs).arguments
        for x in (x for v in given.values() for x in _arrays_in(v) if not x.known): object.__setattr__(x, 'known', Known(UNBOUNDED))
        for name, limit in (limits or {}).items(): bounded(signature.python.bind(*args, **kwargs).arguments[name], limit)
        trace.state |= {'root': copy.__code__, 'unused': unused_names(f.__code__), 'kept': _kept((args, kwargs), keep)}
        own = {id(x.known): name for name, v in given.items() for x in _arrays_in(v)}
        result = copy(*args, **kwargs)
        writes.update(own[id(k)] for k in trace.state.get('written', ()) if id(k) in own)
        if (after := fingerprint(outside(f))) != before: _refuse_lasting(before, after, f)
        trace.state['op'] = ('', False)
        if signature.result is not None: _result_fits(signature.result, result, trace, f)
        return result
    paths = _all_paths(run, start_facts(where))
    done = [p for p in paths if not p.raised]
    if not done and all(p.endless for p in paths):
        raise ShapeError(f'{f.__name__} has a loop that never ends', place=place_of_code(f.__code__))
    if not done:
        raise ShapeError(f'{f.__name__} raises an exception at every size that its annotations allow',
                         place=place_of_code(f.__code__))
    decided = {}
    for p in paths:
        for by, n in p.trace.by.items(): decided[by] = decided.get(by, 0) + n
    requires, unless = _required(paths, where)
    return Report(f.__name__, time.perf_counter() - began, len(paths), tuple(sorted(decided.items())), requires,
                  str(signature.result) if signature.result else ' or '.join(dict.fromkeys(p.result for p in done)), unless, tuple(sorted(writes)))


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
def _result_fits(spec: Any, result: Any, trace: Trace, f: Callable) -> None:
    try: fits(spec, result, 'the result')
    except ShapeError as e:
        e.place = place_at(*trace.state['returned']) if 'returned' in trace.state else place_of_code(f.__code__)
        raise


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
# numbers only the kind is compared, and an annotation without a dtype is traced as float64: what a function does
# for another dtype (`if x.dtype == ...`) goes unseen, and a float64 where `F32[...]` is declared goes unseen, since a Python float, which NumPy
# fits to the array, is not told from a float64.
