# %%
#| default_exp shape.loops

# %% [markdown]
# # Loops that run an unknown number of times
# > The first turn and one that may be any other stand for all of them, if the second leaves everything as it found it.

# %% [markdown]
# A loop over the rows of an array has as many turns as there are rows, and that is not known. So the first turn is traced, at
# index 0, and then one at an index `k` of which only `k >= 1` is known: what the first has found out about its own index says
# nothing about another. If that turn leaves every variable in the shape in which it found it, then it has that shape after
# any number of turns, by induction. If it does not, one more is traced, at `k + 1`, which must leave what the one at `k`
# left, with `k + 1` for `k`. What differs (a counter, an array that grows, an attribute that is counted up) is refused.

# %%
#| hide
#| export
import inspect, sys, time, types
from typing import Any, Callable, Iterator

import numpy as np

from bendml.shape.sizes import Dim, named, names_of, substitute
from bendml.shape.facts import Facts, assume, bound, claim
from bendml.shape.trace import branch, current, refuse
from bendml.shape.symbols import Array, Size, number
from bendml.shape.ranges import Range, range_of, ranged, union, unknown
from bendml.shape.elementwise import lift
from bendml.shape.states import (Growing, Turns, _forget_in, _one_of, _plain, _refuse_change, _shifted, _state, _unchanged, _variables,
                                 as_turns, fingerprint)

# %% [markdown]
# ## The loop
#
# A traced `for x in values:` iterates over `loop(values, ...)`. It yields these turns, checks, and goes on with what
# holds after the last one. If there may be no turn at all, that is a path of its own.

# %%
#| export
MAX_SECONDS, MAX_TURNS = 20.0, 10_000


# %%
#| export
def tick() -> None:
    "Refuse a check that takes too long."
    if time.thread_time() > current().state.get('until', float('inf')):
        refuse(f'the check takes longer than {MAX_SECONDS:.0f} s',
               hint='the function runs its loops while it is checked: split it, or declare smaller ones with @typed')


# %%
#| export
def loop(values: Any, dead: tuple[str, ...] = (), name: str = 'turn', loose: tuple[str, ...] = ()) -> Iterator[Any]:
    "The turns of a for loop. `dead` names the variables that no turn inherits; those that a turn may leave unset are `loose`; `name` the one it counts."
    if (turns := as_turns(values)) is None:
        for value in values: tick(); yield value
        return
    if not branch(claim(turns.count, '>=', 1)): return
    yield from _turns(turns, _own_frame(sys._getframe(1)), dead, name, loose)


# %%
#| export
def _own_frame(frame: types.FrameType) -> types.FrameType:
    "The frame of a loop. One in a generator would run its caller's loop along, which does not see that two turns stand for all."
    if frame.f_code.co_flags & inspect.CO_GENERATOR: refuse('a generator that yields an unknown number of times', hint='return a list')
    return frame


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
def _turns(turns: Turns, frame: types.FrameType, dead: tuple[str, ...], name: str, loose: tuple[str, ...]) -> Iterator[Any]:
    trace, base = current(), current().facts
    with _Filling() as lists:
        yield turns.item(Dim(0))
        lists.turn()
        if not branch(claim(turns.count, '>=', 2)): lists.close(turns.count, '', {}); return  # a loop that ends here is a path of its own
        before, k = _state(frame, dead), unknown(name, None).size
        step, last, kept = {str(k): k + 1}, k, False
        while True:
            trace.facts = _about(_others(base, trace, k), k, last, turns.count)
            yield turns.item(last)
            lists.turn()
            after, done = _state(frame, dead), (last - k).const
            kept = _keeps(frame, loose, str(k)) or kept
            if done == 0 and not kept and _unchanged(before, after, {}): break
            if done > 0 and _unchanged(before, after, step): break
            if done > 0 and _widened(frame, dead, before, after, step) and done < 4: after = _state(frame, dead)
            elif done >= 3: _refuse_change(before, after, step)
            if not branch(claim(turns.count, '>=', done + 3)): break
            before, last = after, last + 1  # the second turn may change what the first has set up: then a third must not
        lists.close(turns.count, str(k), step)
    trace.facts = _others(base, trace, k)
    trace.facts = _about(trace.facts, k, last, turns.count) if kept else assume(trace.facts, claim(last, '==', turns.count - 1))


# %% [markdown]
# A variable that a turn may leave unset keeps the value of some earlier turn, nobody knows which. Its shape must not depend on
# the index, and where a number does, the index is not taken for the last one.

# %%
#| export
def _keeps(frame: types.FrameType, loose: tuple[str, ...], k: str) -> bool:
    "May a variable hold the index of an earlier turn?"
    found = False
    for name in loose:
        mark = fingerprint(frame.f_locals.get(name))
        if not _mentions(mark, k): continue
        if mark[0] != 'int' and _mentions(_plain(mark), k):
            refuse(f'{name} may keep its value of an earlier turn of the loop, and that depends on which one', hint='set it in every turn')
        found = True
    return found


# %%
#| export
def _mentions(mark: Any, k: str) -> bool: return any(k in names_of(d) for d in _dims(mark))


# %%
#| export
def _about(facts: Facts, k: Dim, last: Dim, count: Dim) -> Facts:
    "What is known of an index that is not the first."
    return assume(assume(facts, claim(k, '>=', 1)), claim(last, '<=', count - 1))

def _others(base: Facts, trace: Any, k: Dim) -> Facts:
    "All that was decided since and does not speak of one turn."
    facts, known = base, dict(base.lower)
    for name, least in trace.state.get('fresh', {}).items():
        if name not in known: facts = bound(facts, name, least)
    for c in trace.facts.claims[len(base.claims):]:
        if str(k) not in names_of(c.dim): facts = assume(facts, c)
    return facts


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
            if k and not _begins(_shifted(_plain(tuple(seen[0])), {}), _shifted(_plain(tuple(seen[1])), {k: Dim(0)})):
                refuse('a list gets different elements in each turn', hint='append one element of one shape in each turn')
            runs, seen = runs[bool(k):], seen[bool(k):]  # the first is as the others are at k = 0
            if any(_shifted(_plain(tuple(p)), step) != _shifted(_plain(tuple(q)), {}) for p, q in zip(seen, seen[1:])):
                refuse('a list gets different elements in each turn', hint='append one element of one shape in each turn')
            made = [(in_turn(v, k, count), n) for v, n in runs[0]]
            if any(_mentions(_plain(fingerprint(v)), k) for v, _ in made):
                refuse('a list gets elements of a different size in each turn', hint='np.stack needs elements of one shape')
            if any(p != seen[0] for p in seen) or _mentions(tuple(seen[0]), k): _forget_in(runs)
            list.__delitem__(g, slice(start, None))
            del g.counts[start:]
            for v, n in made: list.append(g, v); g.counts.append(n*count)
            g.dirty = self.trace.state['depth'] - 1 > g.depth


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
def in_turn(value: Any, k: str, count: Dim) -> Any:
    "A size that each turn counts on, `[i for i in range(n)]`, as a number that is in range."
    if type(value) is not Size or k not in names_of(value.dim): return value
    at = lambda turn: substitute(value.dim, {k: turn})
    step = (at(named(k) + 1) - value.dim).const
    if step is None: return number(int)
    return ranged(number(int), Range(at(0), at(count - 1)) if step >= 0 else Range(at(count - 1), at(0)))


# %%
#| export
def _dims(mark: Any) -> Iterator[Dim]:
    if isinstance(mark, Dim): yield mark
    elif isinstance(mark, tuple):
        for m in mark: yield from _dims(m)


# %% [markdown]
# A `while` loop on data has no index; its two turns must leave exactly the same state. A third turn would then be as the
# second, whose ways out are paths of their own, so a path that goes on is left there. A loop whose turns are known is run as it is.

# %%
#| export
class Again(BaseException):
    "A path that does again what it has done."


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
        if len(trace.made) == made: continue
        if not condition(): return
        break  # a turn that depends on numbers, as in `while True: ... if done: break`
    frame = _own_frame(sys._getframe(1))
    with _Filling() as lists:
        yield
        first = _state(frame, dead)
        lists.turn()
        if any(m[-1] != m[0] for m in lists.marks):
            refuse('a list grows in a while loop, whose number of turns is not known', hint='use a for loop')
        going = condition()
        while going:
            yield
            after = _state(frame, dead)
            if not (going := condition()): return
            if _unchanged(first, after, {}): raise Again
            if not _widened(frame, dead, first, after, {}): _refuse_change(first, after, {})
            first = _state(frame, dead)


# %% [markdown]
# ## Comprehensions
#
# `[f(row) for row in x]` is the same: one element, as often as there are rows. Where a condition has split the path, another
# turn may go the other way: then a second element is made, which must be like the first.

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
        made, entered = len(trace.made), trace.facts
        yield turns.item(k)
        lists.turn()
        if any(m[-1] != m[0] for m in lists.marks): refuse('a list grows inside a comprehension', hint='write a for loop')
        during = trace.facts
        if len(trace.made) > made:
            trace.facts = _others(entered, trace, k)
            yield turns.item(k)
    trace.state['comprehended'] = turns.count, str(k), during
    trace.facts = assume(_others(base, trace, k), claim(k, '==', turns.count - 1))


# %%
#| export
def _either(value: Any, other: Any = None) -> Any:
    "One element for two that different turns may make: alike, or two numbers."
    if other is None: return value
    numbers = [v for v in (value, other) if type(v) in (bool, int, float, Size, Array) and not lift(v).axes]
    if len(numbers) == 2 and fingerprint(value) != fingerprint(other): return ranged(number(np.result_type(*(lift(v).dtype for v in numbers))), union(*map(range_of, numbers)))
    return _one_of([value, other], 'the elements differ from turn to turn', 'np.stack needs elements of one shape')


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
    values = [_either(*(in_turn(v, k, count) for v in values))]
    varies = any(_mentions(_plain(fingerprint(v)), k) for v in values)
    for v in values:
        if _mentions(fingerprint(v), k): _forget_in(v)
    trace.facts = after
    if varies: refuse('the elements have different sizes', hint='np.stack needs elements of one shape')
    return Growing(values, [count])

# %% [markdown]
# ## What this does not show
#
# What a loop does to objects that it reaches neither through its variables nor through what they hold (a module's global,
# say) is not compared; a traced function that declares a variable `global` is refused for that reason. Two turns say that
# shapes stay as they are, not that the loop ends.
