# %%
#| default_exp shape.paths

# %% [markdown]
# # Every path
# > A function is traced once for each way its conditions can go; each path must fit.

# %%
#| hide
#| export
import inspect, re, time, types
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Callable, Iterator

import numpy as np

from bendml.shape.sizes import Dim, DimError, parse_dim
from bendml.shape.facts import Claim, Facts, assume, bound, decide, impossible, parse_claim
from bendml.shape.messages import Place, ShapeError, defines_somewhere, place_at, place_of_code, source_of
from bendml.shape.annotations import ArraySpec, DictSpec, MaybeSpec, Signature, TupleSpec, names_in
from bendml.shape.trace import MAX_SECONDS, Trace, at_place, known, tracing
from bendml.shape.symbols import AS_KEY, KEYS, LONG, Array, number
from bendml.shape.ranges import NARROW, UNBOUNDED, Known, bounded, hull
from bendml.shape.loops import Endless
from bendml.shape.copies import copy_of, reads, unused_names, why_no_copy
from bendml.shape.lasting import Lasting
from bendml.shape.unsaid import found_sizes, nothing_said, nothing_to_find
from bendml.shape.objects import Own, Watched, own_of, take_notes
from bendml.shape.values import _shown, fits, make
from bendml.shape import calls  # what the copies' calls go through


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
    shares: tuple[str, ...] = ()          # those whose arrays it may return, or views of them
    held: tuple[int, int] = NARROW        # the whole numbers that arrays of them must be able to hold
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
    wide: bool = False,            # early choices first: soon it is known that there are too many paths
) -> list[Path]:
    "Run once for each way that the conditions can go."
    plans, paths, some, refusal = [()], [], set(), None
    until = time.thread_time() + seconds
    while plans:
        plan, known = plans.pop(0 if wide else -1), len(some)
        trace = Trace(facts, plan, keep=keep, some=some, state=dict(until=until, rolled=rolled))
        try:
            with tracing(trace): paths.append(_one_path(run, trace))
        except ShapeError as e:
            if _too_much(e): raise
            if not trace.state.get('tentative'): raise refusal or e
            refusal = refusal or e  # it took a list to be filled in every turn: another path may know better
        if len(some) > known: plans, paths, refusal = [()], [], None; continue
        plans += [(*trace.made[:i], not trace.made[i]) for i in range(len(plan), len(trace.made))]
        if len(paths) + wide*len(plans) > MAX_PATHS: raise refusal or _too_many(trace)
    if refusal: raise refusal
    return paths


# %%
#| export
def _too_many(trace: Trace) -> ShapeError:
    lines = sorted({place_at(*at).line for about, at, _, by_rule in trace.ways if at and about != '' and not by_rule})
    at = f' (line{"s"*(len(lines) > 1)} {", ".join(map(str, lines))})'*bool(lines)
    return ShapeError(f'more than {MAX_PATHS} paths: each condition on sizes or numbers doubles them',
                      hint=f'write the body of the loop, or some of the conditions{at}, as a function of its own with @typed: here a call of it is no condition')


# %% [markdown]
# A loop with ten turns and a condition in each has a thousand paths. If that is too much, it is looped over as one that nobody
# has counted.

# %%
#| export
def _all_paths(run: Callable[[Trace], Any], facts: Facts) -> list[Path]:
    "All paths, by the way that is fast enough."
    end = time.thread_time() + MAX_SECONDS
    try: return explore(run, facts, seconds=SOON)
    except ShapeError as e:
        if not _too_much(e): raise
        first = e
    try: return explore(run, facts, seconds=SOON, rolled=True)
    except ShapeError:
        if 'longer' not in first.reason: raise first from None
    return explore(run, facts, seconds=end - time.thread_time(), wide=True)

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
    place, given, tb, local = None, '', e.__traceback__, set()
    while tb:
        if '__bendml__' in tb.tb_frame.f_globals: place, given = (place_at(tb.tb_frame.f_code, tb.tb_lasti, i) for i in (None, 0))
        local |= {*tb.tb_frame.f_code.co_cellvars}
        tb = tb.tb_next
    text = re.sub(r' \((expected [^()]*)\)', r', \1', str(e)).replace("'Array'", "'ndarray'").replace("'Size'", "'int'")
    hint = '' if 'values to unpack' not in text else 'as many names as the array has axes' if source_of(given).endswith('.shape') else 'as many names as there are values'
    if "'NoneType'" in text: hint = NONE
    if isinstance(e, RecursionError): hint = 'tracing does not end'
    if isinstance(e, DimError): hint = LONG
    if isinstance(e, AttributeError) and getattr(type(e.obj), '__annotations__', None):
        hint = f'write {e.name}: Vec[...], {e.name}: int for a size or {e.name}: float for a number in the class {type(e.obj).__name__}'
    if text == AS_KEY: hint = KEYS
    plain = text == AS_KEY or isinstance(e, DimError)
    error = ShapeError(text if plain else f'{type(e).__name__}: {text}', hint=trace.state.get('empty') or hint, known=known(trace), place=place)
    if isinstance(e, NameError) and not isinstance(e, UnboundLocalError): error.missing = e.name or ''
    begun = isinstance(e, AttributeError) and getattr(getattr(e.obj, '__spec__', None), '_initializing', False)  # a module that is being imported
    error.later = begun or 'empty __class__ cell' in text or error.missing != '' and ('free variable' in text and e.name not in local or place is not None and defines_somewhere(place.file, e.name))
    return error


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
def check(f: Callable, signature: Signature, where: tuple[str, ...] = (), keep: tuple[str, ...] = (), statics: dict[str, Any] | None = None,
          limits: dict[str, Dim] | None = None, names: dict[str, Any] = {}) -> Report:
    "Trace a function on every path; `ShapeError` if a path does not fit its annotations. `names` are names of its own."
    began, copy = time.perf_counter(), copy_of(f, names)
    if copy is None or inspect.isgeneratorfunction(f):
        why, hint = why_no_copy(f)
        raise ShapeError(f'{f.__name__} cannot be checked: {why}', hint=hint, place=place_of_code(f.__code__))
    writes, shares, lasting = set(), set(), Lasting()
    sizes = frozenset().union(*(names_in(s) for s in (*(s for _, s in signature.params), signature.result)))
    lasting.note(f)
    for name, value in (statics or {}).items(): lasting.keep(value, name, f)
    def run(trace: Trace) -> Any:
        args, kwargs = arguments(signature, statics or {}, f)
        given = signature.python.bind(*args, **kwargs).arguments
        for x in (x for v in given.values() for x in _arrays_in(v) if not x.known): object.__setattr__(x, 'known', Known(UNBOUNDED))
        for name, limit in (limits or {}).items(): bounded(signature.python.bind(*args, **kwargs).arguments[name], limit)
        if args and isinstance(args[0], Watched): lasting.keep(type(args[0]), type(args[0]).__name__, f)
        trace.state |= {'lasting': lasting, 'root': copy.__code__, 'sizes': sizes, 'unused': unused_names(f.__code__), 'kept': _kept((args, kwargs), keep)}
        notes = take_notes(args[0]) if args and _is_self(signature.params[0][1]) else None
        own = {id(x.known): name for name, v in given.items() for x in _arrays_in(v)}
        try: result = copy(*args, **kwargs)
        finally:
            if (changed := lasting.put_back()) and not trace.refused: raise changed from None
        writes.update(own[id(k)] for k in trace.state.get('written', ()) if id(k) in own)
        returned = (k for x in _arrays_in(result) if x.known for k in (x.known, *x.known.shared)) if signature.result is not None else ()
        shares.update(own[id(k)] for k in returned if id(k) in own)
        trace.state['op'] = ('', False)
        if notes: trace.state |= {'changed': notes.changed(), 'gives': result is notes.me}
        if signature.result is not None and not (trace.state.get('gives') and _is_self(signature.result)): _result_fits(signature, result, trace, f)
        _still_fit(signature, given, trace, f)
        return result
    if where and (no := impossible(start_facts(where))) is not False:
        what = 'no sizes satisfy it' if no else 'no small sizes satisfy it, and no others are known'
        raise ShapeError(f'where={list(where)}: {what}',
                         hint='sizes are at least 1, unless it has a lower bound for them, such as "n >= 0"', place=place_of_code(f.__code__))
    try: paths = _all_paths(run, start_facts(where))
    except ShapeError as e:
        if e.proposed and not _helps(e, run, where): e.hint = ''
        e.proposed = ''
        raise
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
                  str(signature.result) if signature.result else ' or '.join(dict.fromkeys(p.result for p in done)), _own(done, paths, f), unless, tuple(sorted(writes)),
                  tuple(sorted(shares)), hull(NARROW, *(p.trace.state.get('held', NARROW) for p in paths)))


# %% [markdown]
# A condition that a hint proposes is tried first: it may be that the program fails at the same place without it, on another way.

# %%
#| export
def _helps(e: ShapeError, run: Callable[[Trace], Any], where: tuple[str, ...]) -> bool:
    "Is this no longer refused, and something left that does not raise, under the condition that its hint proposes?"
    if impossible(facts := start_facts((*where, e.proposed))) is not False: return False
    try: return any(not p.raised for p in explore(run, facts, seconds=SOON))
    except ShapeError as other: return not _too_much(other) and other.place != e.place


# %%
#| export
def _arrays_in(value: Any, kinds: tuple = (Array,)) -> Iterator[Array]:
    "The arrays that an argument holds."
    if type(value) in kinds: yield value
    elif isinstance(value, dict | list | tuple):
        for v in value.values() if isinstance(value, dict) else list.__iter__(value) if isinstance(value, list) else value: yield from _arrays_in(v, kinds)
    elif hasattr(value, '__dict__') and not isinstance(value, type | types.FunctionType | types.ModuleType):
        for v in vars(value).values(): yield from _arrays_in(v, kinds)


# %%
#| export
def _result_fits(signature: Signature, result: Any, trace: Trace, f: Callable) -> None:
    with at_place(lambda: (place_at(*trace.state['returned']) if 'returned' in trace.state else place_of_code(f.__code__), True)):
        fits(signature.result, result, 'the result', found_sizes(signature, result))


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
