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
import inspect, sys, time, types
from typing import Any, Callable, Iterator

from bendml.shape.sizes import Dim, named, names_of, substitute
from bendml.shape.facts import Facts, assume, bound, claim
from bendml.shape.trace import branch, current, refuse
from bendml.shape.symbols import Size, number
from bendml.shape.ranges import Range, ranged, unknown
from bendml.shape.states import (Growing, Turns, _forget_in, _plain, _refuse_change, _shifted, _state, _unchanged, _variables,
                                 as_turns, fingerprint)

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
    "Refuse a check that takes too long."
    if time.thread_time() > current().state.get('until', float('inf')):
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
    yield from _two_turns(turns, _own_frame(sys._getframe(1)), dead, name)


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
            made = [(in_turn(v, k, count), n) for v, n in runs[0]]
            if k in {n for v, _ in made for m in _dims(_plain(fingerprint(v))) for n in names_of(m)}:
                refuse('a list gets elements of a different size in each turn', hint='np.stack needs elements of one shape')
            if any(p != seen[0] for p in seen) or k in {n for m in _dims(tuple(seen[0])) for n in names_of(m)}: _forget_in(runs)
            list.__delitem__(g, slice(start, None))
            del g.counts[start:]
            for v, n in made: list.append(g, v); g.counts.append(n*count)
            g.dirty = self.trace.state['depth'] - 1 > g.depth


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
    values = [in_turn(v, k, count) for v in values]
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
