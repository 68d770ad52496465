# %%
#| default_exp shape.loops

# %% [markdown]
# # Loops that run an unknown number of times
# > The first turn and one that may be any other stand for all of them, if the second leaves everything as it found it.

# %% [markdown]
# A loop over the rows of an array has as many turns as there are rows, and that is not known. So the first turn is traced, at
# index 0, and then one at an index `k` of which only `k >= 1` is known. If that turn leaves every variable in the shape in
# which it found it, then it has that shape after any number of turns, by induction. If it does not, one more is traced, at
# `k + 1`, which must leave what the one at `k` left, with `k + 1` for `k`. What differs (an array that grows, an attribute
# that is counted up) is refused.

# %%
#| hide
#| export
import sys, types
from functools import reduce
from typing import Any, Callable, Iterator

import numpy as np

from bendml.shape.sizes import Dim, named, names_of, substitute
from bendml.shape.facts import Claim, Facts, _at_once, assume, bound, claim
from bendml.shape.trace import branch, current, refuse, tick
from bendml.shape.symbols import Array, Size, number
from bendml.shape.ranges import Range, range_of, ranged, union, unknown
from bendml.shape.elementwise import lift
from bendml.shape.states import (Growing, Turns, _forget_in, _names, _one_of, _plain, _refuse_change, _shifted, _state,
                                 _unchanged, as_turns, fingerprint)
from bendml.shape.counters import Counters, Watched

# %% [markdown]
# ## The loop
#
# A traced `for x in values:` iterates over `loop(values, ...)`. It yields these turns, checks, and goes on with what
# holds after the last one. If there may be no turn at all, that is a path of its own.

# %%
#| export
MAX_TURNS = 10_000


# %%
#| export
def loop(values: Any, dead: tuple[str, ...] = (), name: str = 'turn',
         counted: tuple[str, ...] = (), loose: tuple[str, ...] = ()) -> Iterator[Any]:
    "The turns of a for loop. The copy says which variables no turn inherits, the name of the turn, what is counted, and what a turn may leave unset."
    frame = sys._getframe(1)
    if isinstance(values, Yields): yield from _taken(values, frame, dead, counted); return
    if (turns := as_turns(values)) is None:
        for value in values: tick(); yield value
        return
    if not _any(turns): return
    yield from _turns(turns, Watched(frame, dead, counted), name if turns.named else 'turn', loose)


# %%
#| export
def _any(turns: Turns) -> bool:
    "Is there a turn? A list that the loop would have filled is empty otherwise, which a hint may say."
    if not (some := branch(claim(turns.count, '>=', 1), turns=True)): current().state['without'] = 'its loop makes no turn'
    return some


# %% [markdown]
# Where a turn is a later one, what was so in the one before (`if i == 5`) is forgotten, except for what it says about sizes
# alone. And wherever the loop may end, it also does, since there may have been other turns that left everything as it was.
# A variable that a turn may leave unset keeps its value of some earlier one: if that speaks of the index, one more turn is traced.

# %%
#| export
def _turns(turns: Turns, watched: Watched, name: str, loose: tuple[str, ...]) -> Iterator[Any]:
    trace, base = current(), current().facts
    with _Filling(watched.line) as lists:
        start = watched.state()
        yield turns.item(Dim(0))
        lists.turn()
        if not branch(claim(turns.count, '>=', 2), False): lists.close(turns.count); return
        before = watched.state()
        still, done, step = int(_unchanged(start, before, {})), 0, {}  # so many turns, one after the other, have changed nothing
        k = unknown(name, None, f'the number of a later turn of the loop in line {watched.line}, from 0', 'index').size
        while True:
            within = claim(turns.count, '>=', done + 2), claim(k, '>=', 1), claim(k + done, '<=', turns.count - 1)
            trace.facts = reduce(assume, within, _later(base, trace, k))
            watched.renew(done > 0)
            yield turns.item(k + done)
            lists.turn()
            after, done = watched.state(), done + 1
            if _unchanged(before, after, step): still += 1
            elif done > 1 and watched.widened(before, after, step) and done < 6: after, still = watched.state(), 0
            elif done > 3 + lists.partly: _refuse_change(before, after, step)
            else: still = 0  # the second turn may change what the first has set up: then a third must not
            if still > lists.partly and (done > 1 or not watched.kept(k, loose)): break
            if not branch(claim(k + done, '<=', turns.count - 1), False): break
            before, step = after, {str(k): k + 1}
        lists.close(turns.count, str(k))
        trace.facts = _later(base, trace, k)
    watched.from_any_turn(k, turns.count)
    trace.facts = assume(trace.facts, claim(k, '==', turns.count - done))


# %%
#| export
def _later(base: Facts, trace: Any, *turns: Dim) -> Facts:
    "All that was decided since and does not speak of one turn, and what the rest says about sizes alone."
    facts, known, during = base, dict(base.lower), trace.facts
    for name, least in trace.state.get('fresh', {}).items():
        if name not in known: facts = bound(facts, name, least)
    names = set(map(str, turns))
    claims = list(during.claims[len(base.claims):])
    for k in turns: claims += _projected(during, str(k))
    for c in claims:
        if not names & names_of(c.dim): facts = assume(facts, c)
    return facts


# %%
#| export
def _projected(facts: Facts, k: str) -> Iterator[Claim]:
    "What the claims about `k` say about everything else: with its value put in, or from each pair of a lower and an upper bound."
    about, value = [c for c in facts.claims if k in names_of(c.dim)], dict(facts.solved).get(k)
    if value is not None: yield from (Claim(substitute(c.dim, {k: value}), c.kind) for c in about)
    ends = {1: [], -1: []}
    for c in about:
        factor = dict(c.dim.terms).get(((k, 1),), 0)
        rest = c.dim - factor*named(k)
        if c.kind == '>=' and factor in ends and k not in names_of(rest): ends[factor].append(rest)
    for low in ends[1]:
        for high in ends[-1]:
            if _at_once(facts, new := Claim(low + high, '>=')) is not True: yield new


# %% [markdown]
# If every turn appends the same to a list, it has as many elements as there are turns. If some do and others do not, nobody
# knows how many: a fresh number, at most one a turn. Which it is shows only when all paths were traced, so paths tell each
# other (`some`), and are traced anew. A list that may have got nothing is empty on a path of its own, where it cannot be
# stacked.

# %%
#| export
class _Marks:
    "The lists that exist when a loop begins, and what each turn appends to them."
    def __init__(self, line: int): self.trace, self.line = current(), line
    def __enter__(self):
        self.trace.state['depth'] = self.trace.state.get('depth', 0) + 1
        self.lists = list(self.trace.state.get('lists', ()))
        self.before, self.trace.state['filling'] = self.trace.state.get('filling', ()), self.lists
        self.marks = [[list.__len__(g)] for g in self.lists]
        self.seen, self.made = [[] for _ in self.lists], len(self.trace.made)
        self.picked = set(self.trace.state.get('masks', ()))
        self.apart()
        return self
    def apart(self) -> None:
        "What a turn has found in a number or a mask is not what another one finds."
        self.trace.state.pop('numbers', None)
        masks = self.trace.state.get('masks', {})
        for key in masks.keys() - self.picked: del masks[key]
    def turn(self) -> None:
        self.apart()
        for g, marks, seen in zip(self.lists, self.marks, self.seen):
            start = marks[-1]
            marks.append(list.__len__(g))
            seen.append(tuple((fingerprint(v), n) for v, n in zip(list(list.__iter__(g))[start:], g.counts[start:])))
        if self.lists and len(self.trace.made) > self.made: self.trace.state['tentative'] = True
    def __exit__(self, kind, *_):
        self.trace.state['depth'] -= 1
        self.trace.state['filling'] = self.before
        for g, (start, *_) in zip(self.lists, self.marks): g.broken |= kind is GeneratorExit and list.__len__(g) > start  # a break
        self.apart()

    @property
    def partly(self) -> bool:
        "Is there a list that only some of the turns append to?"
        return any(g.key in self.trace.some for g, marks in zip(self.lists, self.marks) if marks[-1] > marks[0])


# %%
#| export
def _begins(first: Any, other: Any) -> bool:
    "Is what the first turn appends as in any other turn? A number that is known there may be unknown later."
    if isinstance(first, tuple) and first[:1] in (('float',), ('int',)) and other[:2] == ('array', ()):
        return np.dtype(other[2]).kind == ('f' if first[0] == 'float' else 'i')
    if not (isinstance(first, tuple) and isinstance(other, tuple)): return first == other
    return len(first) == len(other) and all(map(_begins, first, other))


# %%
#| export
def in_turn(value: Any, k: str, count: Dim, done: int = 0) -> Any:
    "A size that the turn `k + done` counts on, `[i for i in range(n)]`, as a number that is in range."
    if type(value) is not Size or k not in names_of(value.dim): return value
    at = lambda turn: substitute(value.dim, {k: turn - done})
    step = (at(named(k) + done + 1) - value.dim).const
    if step is None: return number(int)
    return ranged(number(int), Range(at(0), at(count - 1)) if step >= 0 else Range(at(count - 1), at(0)))


# %%
#| export
def found_anew(value: Any, own: set[str]) -> Any:
    "A size that each turn finds anew, `[int(row.argmax()) for row in x]`, as a number between its bounds."
    if type(value) is tuple: return tuple(found_anew(v, own) for v in value)
    if type(value) is not Size or not (names := names_of(value.dim) & own): return value
    least = current().facts.least(min(names))
    name, ends = named(min(names)), {1: None if least is None else Dim(least), -1: None}
    for c in current().facts.claims:
        factor = dict(c.dim.terms).get(((min(names), 1),), 0)
        rest = c.dim - factor*name
        if c.kind == '>=' and factor in ends and not names_of(rest) & own: ends[factor] = -factor*rest
    beyond = value.dim - name
    low, high = (None if end is None or names_of(beyond) & own else end + beyond for end in ends.values())
    return ranged(number(int), Range(low, high))


# %%
#| export
class _Filling(_Marks):
    "What the turns have appended to the lists, written down as so many times the same."
    def close(self, count: Dim, k: str = '') -> None:
        "Write down how often each element was appended."
        for g, (start, *_), seen in zip(self.lists, self.marks, self.seen):
            g.dirty &= self.trace.state['depth'] - 1 > g.depth
            if not any(seen): continue
            elements, (at, run) = list(list.__iter__(g))[start:], self._alike(seen, k)
            first = sum(map(len, seen[:at]))
            made = [in_turn(v, k, count, at - 1) for v in elements[first:first + len(run)]]
            if k in _names(_plain(tuple(map(fingerprint, made)))):
                refuse('a list gets elements of a different size in each turn', hint='np.stack needs elements of one shape')
            now = [*map(fingerprint, elements)]  # a later turn may have written to what an earlier one has appended
            written = any(now[i:i + len(run)] != now[:len(run)] for i in range(0, len(now), len(run)))
            if written or len({m for s in seen if s for m in [tuple(f for f, _ in s)]}) > 1 or k in _names(run): _forget_in(elements)
            exact = all(tuple(n for _, n in s) == tuple(n for _, n in run) for s in seen)
            if not exact: self.trace.some.add(g.key)
            list.__delitem__(g, slice(start, None))
            del g.counts[start:]
            g.dirty = self.trace.state['depth'] - 1 > g.depth
            totals = [n*count for _, n in run] if g.key not in self.trace.some else self._some([s for s in seen if s], count)
            for v, n in zip(made, totals): list.append(g, v); g.counts.append(n)

    def _alike(self, seen: list, k: str) -> tuple[int, tuple]:
        "A turn that appends something, not the first if there is another, and what: in each turn the same."
        full = [(i, s, _plain(tuple(f for f, _ in s))) for i, s in enumerate(seen) if s]
        for (i, _, p), (j, _, q) in zip(full, full[1:]):
            if k and not i: alike = _begins(_shifted(p, {}), _shifted(q, {k: Dim(1 - j)}))  # at index 0
            else: alike = _shifted(p, {k: named(k) + j - i} if k else {}) == _shifted(q, {})
            if not alike: refuse('a list gets different elements in each turn', hint='append elements of one shape')
        return full[min(len(full) - 1, not full[0][0])][:2]

    def _some(self, full: list, count: Dim) -> list[Dim]:
        "A number of turns that only the data know, for each element of a turn; none at all is a path of its own."
        told = f'how many elements the loop in line {self.line} appends'
        each = [n for _, n in full[0]]
        if any([n for _, n in s] != each for s in full) or any("'" in str(n) for n in each): found = [unknown('c', 0, told).size for _ in each]
        else:
            turns = unknown('c', 0, told if each == [1] else f'how many turns of the loop in line {self.line} append').size
            self.trace.facts = assume(self.trace.facts, claim(turns, '<=', count))
            found = [n*turns for n in each]
        if branch(claim(found[0], '>=', 1), False): return found
        self.trace.state['without'] = 'no turn appends to it'
        return []


# %% [markdown]
# A `while` loop on data has no index; its two turns must leave exactly the same state. One whose condition is known is run
# as it is, as long as its turns do not depend on numbers or come nearer to the end. `while True` ends by a `break` or `return`
# in its body, and in no other way.

# %%
#| export
class Endless(BaseException):
    "This path goes on for ever: nothing comes after it, and no handler of the program sees it."

def while_loop(condition: Callable[[], Any], dead: tuple[str, ...] = (), counted: tuple[str, ...] = (), forever: bool = False) -> Iterator[None]:
    "The turns of a while loop."
    trace, frame, turns = current(), sys._getframe(1), 0
    state = lambda: _state(frame, (*dead, *counted))
    before = state()
    while True:
        made = len(trace.made)
        going, forked = bool(condition()), len(trace.made) > made
        if not going: return
        if forked: break
        tick()
        if (turns := turns + 1) > MAX_TURNS: refuse(f'a while loop with more than {MAX_TURNS} turns')
        yield
        if len(trace.made) == made: continue
        if forever or _unchanged(before, now := state(), {}):  # a turn that depends on numbers, and comes no nearer to an end
            if not condition(): return
            break
        before = now
    yield from _any_turns(condition, Watched(frame, dead, counted), forever)


# %%
#| export
def _any_turns(condition: Callable[[], Any], watched: Watched, forever: bool) -> Iterator[None]:
    if watched.parts[0][2].least and not condition(): return
    with _Filling(watched.line) as lists:
        turns, still, before = unknown('turns', 1, f'how many turns the loop in line {watched.line} makes').size, 0, None
        while still <= lists.partly:
            yield
            tick()
            lists.turn()
            after = watched.state()
            if before is not None and _unchanged(before, after, {}): still += 1
            elif before is not None and not watched.widened(before, after, {}):
                if not condition(): break  # what it changes is that it ends
                _refuse_change(before, after, {})
            else: still = 0
            before = watched.state()
            if still > lists.partly: break
            watched.renew()
            if not condition(): break
        if forever: raise Endless
        lists.close(turns)


# %% [markdown]
# ## Generators
#
# A generator function of the program is traced as it stands: where it yields, the loop that takes what it yields makes its
# turn, inside the generator's own loop. So what that turn changes is compared there.

# %%
#| export
class Yields:
    "What a generator function of the traced program yields."
    def __init__(self, generator: types.GeneratorType, each: Callable[[Any], Any] = lambda v: v):
        self.generator, self.each = generator, each
    def __iter__(self):
        name = self.generator.__name__
        refuse(f'{name} is a generator, and only a for loop takes what it yields', hint=f'write `for ... in {name}(...):`, or its loop here')
    __next__ = __len__ = __iter__


# %%
#| export
def _taken(values: Yields, frame: types.FrameType, dead: tuple[str, ...], counted: tuple[str, ...]) -> Iterator[Any]:
    "The turns of a loop over a generator."
    fed, counters, source = current().state.setdefault('fed', {}), Counters(frame, counted), values.generator.gi_frame
    fed[id(source)] = frame, dead, counters
    try:
        for value in values.generator:
            tick()
            counters.renew()
            yield values.each(value)
            counters.settled(_state(frame, dead))
    finally: fed.pop(id(source), None)


# %% [markdown]
# ## Comprehensions
#
# `[f(row) for row in x]` is the same: one element, as often as there are rows. Where something in it goes one way or another,
# two elements are made, and must be alike; `if` in it picks a number of them that nobody knows.

# %%
#| export
_INSTEAD = {'dict': 'write a list, [...], which np.stack takes; np.unique(y, return_counts=True) counts',
            'set': 'write a list, [...]; the different numbers of an array are np.unique(...)', 'list': 'write a for loop that appends to a list'}

def each(values: Any, kind: str, loops: int = 1, ifs: int = 0) -> Iterator[Any]:
    "What a comprehension iterates over."
    if (turns := as_turns(values)) is None: yield from values; return
    if kind == 'generator': refuse('a generator expression over an unknown number of elements', hint='write [...] in place of (...)')
    if kind != 'list' or loops != 1: refuse(f'a {kind} comprehension over an unknown number of elements', hint=_INSTEAD[kind])
    if not _any(turns): return
    trace, base, made, ks, earlier = current(), current().facts, len(current().made), [], set(current().state.get('fresh', ()))
    with _Filling(sys._getframe(1).f_lineno) as lists:
        while not ks or len(ks) < 2 and len(trace.made) > made:
            ks.append(k := unknown('t', None, 'the number of an element of {it} ({at}), from 0', 'index').size)
            trace.facts = assume(assume(trace.facts, claim(k, '>=', 0)), claim(k, '<=', turns.count - 1))
            yield turns.item(k)
            lists.turn()
        if any(m[-1] != m[0] for m in lists.marks): refuse('a list grows inside a comprehension', hint='write a for loop')
    own = trace.state['fresh'].keys() - earlier  # sizes that are found in a turn, others in each
    trace.state['comprehended'] = turns.count, {*map(str, ks)}, trace.facts, ifs, own
    trace.facts = _later(base, trace, *ks)


# %%
#| export
def _either(value: Any, other: Any) -> Any:
    "One element for two that different turns may make: alike, or two numbers."
    numbers = [v for v in (value, other) if type(v) in (bool, int, float, Size, Array) and not lift(v).axes]
    if len(numbers) == 2 and fingerprint(value) != fingerprint(other): return ranged(number(np.result_type(*(lift(v).dtype for v in numbers))), union(*map(range_of, numbers)))
    return _one_of([value, other], 'the elements of this list differ', 'make elements of one shape')


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
    count, ks, during, ifs, own = counted
    if not _unchanged(before, now := _state(frame, ()), {}): _refuse_change(before, now, {})
    if not values:
        state['without'] = 'nothing is chosen'
        return Growing()
    trace = current()
    after, trace.facts = trace.facts, during  # where k is any index, not the last one
    values = [found_anew(reduce(lambda v, k: in_turn(v, k, count), ks, v), own) for v in values]
    if len(values) == 2: values = [_either(*values)]
    varies = any(ks & _names(_plain(fingerprint(v))) or any(names_of(s) & own for s in _array_sizes(v)) for v in values)
    for v in values:
        if ks & _names(fingerprint(v)): _forget_in(v)
    trace.facts = after
    if varies: refuse('the elements have different sizes', hint='np.stack needs elements of one shape')
    if ifs:
        some = unknown('c', 1, 'how many elements {it} has ({at})').size
        trace.facts, count = assume(trace.facts, claim(some, '<=', count)), some
    return Growing(values, [count])


# %%
#| export
def _array_sizes(value: Any) -> Iterator[Dim]:
    if type(value) is Array: yield from map(current().facts.shown, value.sizes)
    elif type(value) is Size: yield value.dim
    elif isinstance(value, list | tuple):
        for v in list.__iter__(value) if isinstance(value, list) else value: yield from _array_sizes(v)

# %% [markdown]
# ## What this does not show
#
# What a loop does to objects that it reaches neither through its variables nor through what they hold (a module's global,
# say) is not compared; a traced function that declares a variable `global` is refused for that reason. Two turns say that
# shapes stay as they are, not that the loop ends.
