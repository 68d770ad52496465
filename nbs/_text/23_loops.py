# %%
#| default_exp shape.loops

# %% [markdown]
# # Loops that run an unknown number of times
# > Two turns stand for all of them, if the second leaves everything as the first did.

# %% [markdown]
# A loop over the rows of an array has as many turns as there are rows, and that is not known. So two turns are traced: one
# at an arbitrary index `k`, one at `k + 1`. After the first, every variable has some shape; if after the second it has the
# same one, with `k + 1` for `k`, then it has that shape after any number of turns, by induction. What differs (a counter, an
# array that grows, an attribute that is counted up) is refused.

# %%
#| hide
#| export
import sys, time, types, zlib
from typing import Any, Callable, Iterable, Iterator

import numpy as np

from bendml.shape.sizes import Dim, names_of, substitute
from bendml.shape.facts import Facts, assume, bound, claim
from bendml.shape.trace import branch, current, holds, refuse
from bendml.shape.symbols import OPS, Array, Size, as_dim, one_entry, size_value
from bendml.shape.ranges import as_size, forget, range_of, unknown, view
from bendml.shape.elementwise import same


# %% [markdown]
# ## What is iterated over

# %%
#| export
class Turns:
    "Something to iterate over whose length is not known: `item(k)` is its element number k."
    def __init__(self, count: Dim, item: Callable[[Dim], Any]): self.count, self.item = count, item
    def __iter__(self):
        refuse('iteration an unknown number of times, in code that is not traced', hint='write a for loop in the traced function')
    def __len__(self): refuse('the length of this is not known here')


# %%
#| export
def as_turns(values: Any) -> Turns | None:
    "The turns of an iterable; None if it can simply be iterated over."
    if isinstance(values, Turns): return values
    if type(values) is Array and values.axes and values.axes[0].size.const is None:
        return Turns(values.axes[0].size, lambda k: view(values, Array(values.axes[1:], values.dtype)))
    if isinstance(values, Growing) and not values.plain(): return Turns(values.total(), lambda k: values.any_element())


# %% [markdown]
# A range that is known but long (epochs of training, say) is treated in the same way; a short one is run as it is.

# %%
#| export
UNROLLED = 24

def symbolic_range(*ends: Any) -> Any:
    "`range` with bounds that may be sizes."
    start, stop, step = (0, *ends, 1) if len(ends) == 1 else (*ends, 1)[:3]
    a, b, c = (as_dim(int_of(v)) for v in (start, stop, step))
    if None in (a, b, c): refuse('range() of something that is not a whole number', 'a whole number', [start, stop, step])
    if None not in (a.const, b.const, c.const) and len(known := range(a.const, b.const, c.const)) <= UNROLLED: return known
    if c == 0 or c.const is None and not holds(claim(c, '>=', 1)).holds: refuse(f'range() in steps of {c}', 'a step that is not 0', c)
    count = -((a - b)//c) if c.const is None or c.const > 0 else -((b - a)//-c)
    turns = Turns(count, lambda k: size_value(a + k*c))
    turns.numbers = lambda: OPS[np.arange].shape(start, stop, step)
    return turns


# %%
#| export
def int_of(value: Any) -> Any:
    "`int(value)`: of a number that is not known, a size that is not known."
    if type(value) is not Array: return value if type(value) is Size else int(value)
    one_entry(value, 'int()')
    return size_value(as_size(value))


# %%
#| export
def zipped(*values: Any, strict: bool = False) -> Any:
    "`zip`; the shortest ends it, so where lengths are not known they must be equal."
    turns = [as_turns(v) for v in values]
    if all(t is None for t in turns): return zip(*values, strict=strict)
    turns = [Turns(Dim(len(v)), lambda k, v=v: _alike(v)) if t is None else t for t, v in zip(turns, values)]
    for t in turns[1:]:
        if not (verdict := same(t.count, turns[0].count)).holds:
            refuse('zip() of different lengths', turns[0].count, t.count, 'the shortest ends the loop, and the rest is lost',
                   verdict)
    return Turns(turns[0].count, lambda k: tuple(t.item(k) for t in turns))


# %%
#| export
def _alike(values: Any) -> Any:
    return _one_of(list(values), 'a list of different things, in a loop with an unknown number of turns')


# %%
#| export
def enumerated(values: Any, start: int = 0) -> Any:
    turns = as_turns(values)
    if turns is None: return enumerate(values, start)
    return Turns(turns.count, lambda k: (size_value(k + as_dim(start)), turns.item(k)))


# %%
#| export
def backwards(values: Any) -> Any:
    turns = as_turns(values)
    return reversed(values) if turns is None else Turns(turns.count, lambda k: turns.item(turns.count - 1 - k))


# %% [markdown]
# ## Lists that grow
#
# `out.append(row)` in such a loop makes a list whose length is not known. It remembers each element with how often it
# occurs, `(row, n)`; `np.stack` makes `(n, ...)` of it. While the loop runs the list cannot be read.

# %%
#| export
class Growing(list):
    "A list made by a traced function."
    def __init__(self, values: Iterable[Any] = (), counts: list[Dim] | None = None):
        super().__init__(values)
        trace = current()
        self.counts = counts or [Dim(1)]*super().__len__()
        self.depth, self.dirty, self.grown = trace.state.get('depth', 0), False, True
        trace.state.setdefault('lists', []).append(self)

    def plain(self) -> bool: return not self.dirty and all(c == 1 for c in self.counts)
    def total(self) -> Dim: return sum((self._readable().counts), Dim(0))
    def counted(self) -> list[tuple[Any, Dim]]: return list(zip(list.__iter__(self._readable()), self.counts))

    def any_element(self) -> Any:
        "An element that stands for all: they must be alike."
        return _one_of(list(list.__iter__(self._readable())), 'the elements of this list differ', 'make two lists')

    def _readable(self) -> 'Growing':
        if self.dirty:
            refuse('a list is read while a loop fills it, or after a loop that may end early',
                   hint='use it after the loop; keep the last element in a variable')
        return self

    def append(self, value):
        self.dirty |= current().state.get('depth', 0) > self.depth
        super().append(value)
        self.counts.append(Dim(1))

    def extend(self, values):
        for v in values: self.append(v)
    def __iadd__(self, values):
        self.extend(values)
        return self
    def __bool__(self): return list.__len__(self._readable()) > 0


# %%
#| export
def _only_plain(name: str):
    "A list method that needs every element to be there."
    own = getattr(list, name)
    changes = name in ('insert', 'pop', 'remove', 'clear', 'reverse', 'sort', '__setitem__', '__delitem__', '__imul__')
    def method(self, *args, **kwargs):
        if not self.plain():
            self._readable()
            refuse(f'a list of {self.total()} elements, made in a loop, is used one by one', hint='np.stack it, or loop over it')
        if changes and current().state.get('depth', 0) > self.depth:
            refuse('a list is changed in a loop with an unknown number of turns', hint='only append to it')
        result = own(self, *args, **kwargs)
        if changes: self.counts = [Dim(1)]*list.__len__(self)
        return Growing(result) if name in ('__add__', '__mul__', '__rmul__',
                                           'copy') or name == '__getitem__' and isinstance(result, list) else result
    return method


# %%
#| export
for _name in '''__getitem__ __iter__ __len__ __contains__ __add__ __mul__ __rmul__ __eq__ __reversed__ index count copy insert pop
                remove clear reverse sort __setitem__ __delitem__ __imul__'''.split():
    setattr(Growing, _name, _only_plain(_name))


# %% [markdown]
# ## What a variable looks like
#
# Two states are compared by their fingerprints: the shape, dtype and range of arrays, the value of everything else, and
# whatever can be reached from there.

# %%
#| export
def fingerprint(value: Any, seen: tuple = ()) -> Any:
    "What is known of a value, as something that compares."
    trace = current()
    if type(value) is Array: return 'array', tuple(map(trace.facts.normal, value.sizes)), str(value.dtype), _range_mark(value)
    if (dim := as_dim(value)) is not None and not isinstance(value, bool): return 'int', trace.facts.normal(dim)
    if isinstance(value, float | complex | str | bytes | bool | type(None) | np.generic): return type(value).__name__, repr(value)
    if isinstance(value, np.ndarray): return 'ndarray', value.shape, str(value.dtype), _checksum(value)
    if id(value) in seen or len(seen) > 8: return 'again', type(value).__name__
    inside = lambda v: fingerprint(v, (*seen, id(value)))
    if isinstance(value, Growing):
        if any(value is g for g in trace.state.get('filling', ())): return 'filling', id(value)
        return 'list', value.dirty, tuple((inside(v), c) for v, c in zip(list.__iter__(value), value.counts))
    if isinstance(value, dict): return 'dict', tuple((repr(k), inside(v)) for k, v in value.items())
    if isinstance(value, list | tuple): return type(value).__name__, tuple(map(inside, value))
    if isinstance(value, set | frozenset): return 'set', repr(sorted(map(repr, value)))
    if isinstance(value, types.FunctionType): return 'function', value.__qualname__, tuple(map(inside, _reached(value)))
    if isinstance(value, types.ModuleType | type | types.BuiltinFunctionType):
        return 'same', getattr(value, '__qualname__', id(value))
    if isinstance(value, Turns): return 'turns', value.count
    if not hasattr(value, '__dict__'): return type(value).__name__, id(value)
    return type(value).__name__, tuple((k, inside(v)) for k, v in vars(value).items())


# %%
#| export
def _range_mark(x: Array) -> tuple:
    r = range_of(x)
    return 'range', r.given, *(end and current().facts.normal(end) for end in (r.low, r.high, r.total))

def _plain(mark: Any) -> Any:
    "A fingerprint without ranges."
    if isinstance(mark, dict): return {n: _plain(m) for n, m in mark.items()}
    return tuple(_plain(m) for m in mark if not (isinstance(m, tuple) and m[:1] == ('range',))) if isinstance(mark, tuple) else mark


# %%
#| export
def _one_of(values: list, reason: str, hint: str = '') -> Any:
    "One value that stands for several: they must be alike, and only their numbers may have different ranges."
    marks = [fingerprint(v) for v in values]
    if any(_plain(m) != _plain(marks[0]) for m in marks): refuse(reason, hint=hint)
    if any(m != marks[0] for m in marks): _forget_in(values[0])
    return values[0]


# %%
#| export
def _forget_in(value: Any, seen: tuple = ()) -> None:
    "Forget the ranges of all arrays that a value holds."
    if type(value) is Array: return forget(value)
    if id(value) in seen or len(seen) > 8 or isinstance(value, types.ModuleType | type): return
    inside = list.__iter__(value) if isinstance(value, list) else value if isinstance(value, tuple) else \
        value.values() if isinstance(value, dict) else _reached(value) if isinstance(value, types.FunctionType) else \
        vars(value).values() if hasattr(value, '__dict__') else ()
    for v in inside: _forget_in(v, (*seen, id(value)))


# %%
#| export
def _checksum(a: np.ndarray) -> int:
    return zlib.crc32(np.ascontiguousarray(a)) if a.dtype != object and a.nbytes < 1 << 22 else id(a)


# %%
#| export
def _shifted(mark: Any, step: dict[str, Dim]) -> Any:
    "A fingerprint with `k + 1` for `k`."
    if isinstance(mark, Dim): return current().facts.normal(substitute(mark, step))
    return tuple(_shifted(m, step) for m in mark) if isinstance(mark, tuple) else mark


# %%
#| export
def _variables(frame: types.FrameType, dead: tuple[str, ...]) -> dict[str, Any]:
    "A function's variables, and the globals that it names."
    own = {n: v for n, v in frame.f_locals.items() if n not in dead}
    shared = {n: frame.f_globals[n] for n in frame.f_code.co_names if n in frame.f_globals and n not in own}
    return {n: v for n, v in (shared | own).items() if not n.startswith('__bendml')}

def _state(frame: types.FrameType, dead: tuple[str, ...]) -> dict[str, Any]:
    return {n: fingerprint(v) for n, v in _variables(frame, dead).items()}


# %% [markdown]
# A range that grows from turn to turn (a counter in an array) is forgotten, and one more turn is traced without it: this is
# what abstract interpretation calls widening.

# %%
#| export
def _widened(frame: types.FrameType, dead: tuple[str, ...], first: dict, second: dict, step: dict[str, Dim]) -> bool:
    "Forget the ranges that a turn has changed; False if it has changed something else."
    if not _unchanged(_plain(first), _plain(second), step): return False
    for name, value in _variables(frame, dead).items():
        if _shifted(first.get(name), step) != _shifted(second.get(name), {}): _forget_in(value)
    return True


# %%
#| export
def _reached(f: types.FunctionType) -> Iterator[Any]:
    "What a helper can change: the variables around it, and the globals that it names."
    if (f.__module__ or '').partition('.')[0] in ('bendml', 'numpy'): return
    for cell in f.__closure__ or ():
        try: yield cell.cell_contents
        except ValueError: pass
    yield from (f.__globals__[n] for n in f.__code__.co_names if n in f.__globals__
                and not isinstance(f.__globals__[n], types.ModuleType | type))


# %%
#| export
def _unchanged(first: dict, second: dict, step: dict[str, Dim]) -> bool:
    return all(_shifted(first.get(name), step) == _shifted(mark, {}) for name, mark in second.items())

def _refuse_change(first: dict, second: dict, step: dict[str, Dim]) -> None:
    "Refuse a variable that one more turn changes."
    for name, mark in second.items():
        before = _shifted(first.get(name), step)
        if before == _shifted(mark, {}): continue
        what = 'its shape' if mark[0] == 'array' and before and before[0] == 'array' else 'its value'
        if _plain(before) == _plain(mark): what = 'its numbers'
        shown = [str(m[1]) if m and len(m) > 1 and m[0] in ('int', 'array', 'float', 'bool') else str(m and m[0])
                 for m in (before, mark)]
        hint = 'the loop runs an unknown number of times, so a counter or flag has no known value'
        if what == 'its shape': hint = 'append to a list, and np.stack it after the loop'
        refuse(f'{name} changes {what} in each turn of the loop', shown[0], shown[1], hint)


# %% [markdown]
# ## The loop
#
# A traced `for x in values:` iterates over `loop(values, ...)`. It yields two turns, checks, and goes on with what holds
# after the last one. If there may be no turn at all, that is a path of its own.

# %%
#| export
MAX_SECONDS, MAX_TURNS = 20.0, 10_000


# %%
#| export
def tick() -> None:
    "Refuse a trace that takes too long."
    state = current().state
    if time.monotonic() > state.setdefault('until', time.monotonic() + MAX_SECONDS):
        refuse(f'the check takes longer than {MAX_SECONDS:.0f} s',
               hint='the function runs its loops while it is checked: split it, or declare smaller ones with @typed')


# %%
#| export
def loop(values: Any, dead: tuple[str, ...] = (), name: str = 'turn') -> Iterator[Any]:
    "The turns of a for loop. `dead` names the variables that each turn sets before it reads them; `name` the one it counts."
    if (turns := as_turns(values)) is None:
        for value in values: tick(); yield value
        return
    if not branch(claim(turns.count, '>=', 1)): return
    yield from _two_turns(turns, sys._getframe(1), dead, name)


# %%
#| export
def _two_turns(turns: Turns, frame: types.FrameType, dead: tuple[str, ...], name: str) -> Iterator[Any]:
    trace, base, k = current(), current().facts, unknown(name, None).size
    trace.facts = assume(assume(trace.facts, claim(k, '>=', 0)), claim(k, '<=', turns.count - 1))
    step, done = {str(k): k + 1}, 1
    with _Filling() as lists:
        yield turns.item(k)
        before = _state(frame, dead)
        lists.turn()
        while branch(claim(turns.count, '>=', done + 1)):  # a loop that ends here is a path of its own
            trace.facts = assume(trace.facts, claim(k + done, '<=', turns.count - 1))
            yield turns.item(k + done)
            lists.turn()
            after, done = _state(frame, dead), done + 1
            if _unchanged(before, after, step): break
            if _widened(frame, dead, before, after, step) and done < 5: after = _state(frame, dead)
            elif done >= 3: _refuse_change(before, after, step)
            before = after  # the second turn may change what the first has set up: then a third must not
        lists.close(turns.count, str(k), step)
    trace.facts = _after(base, trace, k, turns.count - done)


# %%
#| export
def _after(base: Facts, trace: Any, k: Dim, last: Dim) -> Facts:
    "What holds after the loop: all that was decided and does not speak of one turn; and `k` was the last."
    facts, known = base, dict(base.lower)
    for name, least in trace.state.get('fresh', {}).items():
        if name not in known: facts = bound(facts, name, least)
    for c in trace.facts.claims[len(base.claims):]:
        if str(k) not in names_of(c.dim): facts = assume(facts, c)
    return assume(facts, claim(k, '==', last))


# %%
#| export
class _Filling:
    "The lists that exist when a loop begins, and what each turn appends to them."
    def __enter__(self):
        self.trace = current()
        self.trace.state['depth'] = self.trace.state.get('depth', 0) + 1
        self.lists = list(self.trace.state.get('lists', ()))
        self.before, self.trace.state['filling'] = self.trace.state.get('filling', ()), self.lists
        self.marks = [[list.__len__(g)] for g in self.lists]
        return self
    def turn(self) -> None:
        for g, marks in zip(self.lists, self.marks): marks.append(list.__len__(g))
    def __exit__(self, *_):
        self.trace.state['depth'] -= 1
        self.trace.state['filling'] = self.before

    def close(self, count: Dim, k: str, step: dict[str, Dim]) -> None:
        "Every turn appended the same: write down how often."
        for g, (start, *ends) in zip(self.lists, self.marks):
            if ends[-1] == start: continue
            runs = [list(zip(list(list.__iter__(g))[a:b], g.counts[a:b])) for a, b in zip((start, *ends), ends)]
            seen = [[(fingerprint(v), n) for v, n in run] for run in runs]
            if any(_shifted(_plain(tuple(p)), step) != _shifted(_plain(tuple(q)), {}) for p, q in zip(seen, seen[1:])):
                refuse('a list gets different elements in each turn', hint='append one element of one shape in each turn')
            if k in {n for m in _dims(_plain(tuple(seen[0]))) for n in names_of(m)}:
                refuse('a list gets elements of a different size in each turn', hint='np.stack needs elements of one shape')
            if any(p != seen[0] for p in seen) or k in {n for m in _dims(tuple(seen[0])) for n in names_of(m)}: _forget_in(runs)
            list.__delitem__(g, slice(start, None))
            del g.counts[start:]
            for v, n in runs[0]: list.append(g, v); g.counts.append(n*count)
            g.dirty = self.trace.state['depth'] - 1 > g.depth


# %%
#| export
def _dims(mark: Any) -> Iterator[Dim]:
    if isinstance(mark, Dim): yield mark
    elif isinstance(mark, tuple):
        for m in mark: yield from _dims(m)


# %% [markdown]
# A `while` loop on data has no index; its two turns must leave exactly the same state. One whose condition is known is run
# as it is.

# %%
#| export
def while_loop(condition: Callable[[], Any], dead: tuple[str, ...] = ()) -> Iterator[None]:
    "The turns of a while loop."
    trace, frame, turns = current(), sys._getframe(1), 0
    while True:
        made = len(trace.made)
        going, forked = bool(condition()), len(trace.made) > made
        if not going: return
        if forked: break
        tick()
        if (turns := turns + 1) > MAX_TURNS: refuse(f'a while loop with more than {MAX_TURNS} turns')
        yield
    frame = sys._getframe(1)
    with _Filling() as lists:
        yield
        first = _state(frame, dead)
        lists.turn()
        if any(m[-1] != m[0] for m in lists.marks):
            refuse('a list grows in a while loop, whose number of turns is not known', hint='use a for loop')
        while condition():
            yield
            if _unchanged(first, after := _state(frame, dead), {}): return
            if not _widened(frame, dead, first, after, {}): _refuse_change(first, after, {})
            first = _state(frame, dead)


# %% [markdown]
# ## Comprehensions
#
# `[f(row) for row in x]` is the same: one element, as often as there are rows.

# %%
#| export
def each(values: Any, kind: str, parts: int) -> Iterator[Any]:
    "What a comprehension iterates over."
    if (turns := as_turns(values)) is None: yield from values; return
    if kind != 'list' or parts != 1:
        refuse(f'a {kind} comprehension over an unknown number of elements', hint='write a for loop that appends to a list')
    if not branch(claim(turns.count, '>=', 1)): return
    trace, base, k = current(), current().facts, unknown('t', None).size
    trace.facts = assume(assume(trace.facts, claim(k, '>=', 0)), claim(k, '<=', turns.count - 1))
    with _Filling() as lists:
        yield turns.item(k)
        lists.turn()
        if any(m[-1] != m[0] for m in lists.marks): refuse('a list grows inside a comprehension', hint='write a for loop')
    trace.state['comprehended'] = turns.count, str(k), trace.facts
    trace.facts = _after(base, trace, k, turns.count - 1)


# %%
#| export
def comprehension(make: Callable[[], list], frame: types.FrameType | None = None) -> Growing:
    "The list that a comprehension makes in a frame of the traced function."
    state = current().state
    outer, state['comprehended'] = state.get('comprehended'), None
    before = _state(frame := frame or sys._getframe(1), ())
    values, counted = make(), state['comprehended']
    state['comprehended'] = outer
    if counted is None: return Growing(values)
    count, k, during = counted
    if not _unchanged(before, now := _state(frame, ()), {}): _refuse_change(before, now, {})
    trace = current()
    after, trace.facts = trace.facts, during  # where k is any index, not the last one
    mentions = lambda mark: any(k in names_of(d) for d in _dims(mark))
    varies = any(mentions(_plain(fingerprint(v))) for v in values)
    for v in values:
        if mentions(fingerprint(v)): _forget_in(v)
    trace.facts = after
    if varies: refuse('the elements have different sizes', hint='np.stack needs elements of one shape')
    return Growing(values, [count])

# %% [markdown]
# ## What this does not show
#
# What a loop does to objects that it reaches neither through its variables nor through what they hold (a module's global,
# say) is not compared; a traced function that declares a variable `global` is refused for that reason. Two turns say that
# shapes stay as they are, not that the loop ends.
