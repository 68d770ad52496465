# %%
#| default_exp shape.several

# %% [markdown]
# # One of several
# > An element or a slice of a list whose length is not known, and Python's ways to go through several things.

# %% [markdown]
# The backward pass of a network goes through its layers from the last to the first, beside what the forward pass has kept:
# `for w, a in zip(reversed(ws), reversed(ins))`, or `for i in reversed(range(len(ws)))`. Nobody knows how many layers there
# are. But where all elements of a list are alike, one stands for each of them, and a slice of it is a shorter list.

# %%
#| hide
#| export
import functools, itertools
from typing import Any, Callable

import numpy as np

from bendml.shape.sizes import Dim
from bendml.shape.facts import assume, claim
from bendml.shape.trace import branch, current, holds, refuse
from bendml.shape.symbols import Array, Size, as_dim, axis, number, size_value
from bendml.shape.ranges import as_size, unknown
from bendml.shape.indexing import slice_axis
from bendml.shape.states import FEWER, Growing, Turns, _forget_in, _known, _stand_in, as_turns, backwards, symbolic_range


# %% [markdown]
# ## An element
#
# An index must lie inside. At the ends of a list, before and behind what a loop has appended, it is known which element is meant;
# elsewhere all elements must be alike.

# %%
#| export
def _place(count: Dim, i: Any) -> Dim:
    "The place that an index means, from the front; refused where it may lie outside."
    at = as_size(i) if type(i) is Array and not i.axes and i.dtype.kind in 'iu' else as_dim(i)
    if at is None: refuse('part of several values, of which it is not known how many there are', hint='write a for loop')
    if holds(claim(at, '<', 0)).holds: at = count + at
    if not (holds(claim(at, '>=', 0)).holds and holds(claim(at, '<', count)).holds):
        refuse(f'element {i} of several values, and there may be fewer',
               hint=FEWER if type(i) is int and not current().state.get('depth') else 'go to its own length, range(len(...)); or say first how long it is: assert len(...) == ...')
    return at


# %%
#| export
def _solid(value: Any) -> bool:
    "Is it nothing that could be changed to have another shape?"
    if isinstance(value, tuple): return all(map(_solid, value))
    return type(value) in (Array, Size) or isinstance(value, int | float | complex | str | np.generic | type(None))


# %%
#| export
def _at_an_end(g: Growing, from_front: Dim, from_back: Dim) -> int | None:
    "The number of the element in `g` if it is surely this one: all before it, or all behind, are single ones."
    for place, turned in () if g.mixed else ((from_front.const, False), (from_back.const, True)):
        counts = g.counts[::-1] if turned else g.counts
        if place is not None and 0 <= place < len(counts) and all(c == 1 for c in counts[:place + 1]): return ~place if turned else place


# %%
#| export
def _element(g: Growing, i: Any) -> Any:
    if g.dirty: return _last(g, i)
    at = _place(g.total(), i)
    if (known := _at_an_end(g, at, g.total() - 1 - at)) is not None: return list.__getitem__(g, known)
    value = g.any_element()
    return value if _solid(value) else refuse('one of several lists or objects that a loop has made', hint='loop over them')


# %% [markdown]
# While a loop fills a list, its last element can be read: `acts.append(f(acts[-1]))`. In any later turn that is what the turn
# before it has appended, and that all turns append alike is checked when the loop ends. Of its numbers nothing is known.

# %%
#| export
def _last(g: Growing, i: Any) -> Any:
    if as_dim(i) != -1 or g.broken or g.mixed or current().state.get('depth', 0) <= g.depth: g._readable()
    values = list(list.__iter__(g))
    if not values or not holds(claim(sum(g.counts, Dim(0)), '>=', 1)).holds: refuse('the last element of a list that may be empty', hint='begin with one that holds something, or keep the last element in a variable')
    if g.counts[-1] != 1 and len(values) > 1: g._readable()
    if not _solid(values[-1]): g._readable()
    _forget_in(values[-1])
    return _any_number(values[-1])


# %%
#| export
def _any_number(value: Any) -> Any:
    "A value like this one, with other numbers."
    if type(value) in (Size, int, float, bool): return number(int if type(value) is Size else type(value))
    if isinstance(value, tuple): return type(value)(*map(_any_number, value)) if hasattr(value, '_fields') else tuple(map(_any_number, value))
    return _stand_in(value)


# %% [markdown]
# ## A slice

# %%
#| export
def _left(count: Dim, s: slice) -> Dim:
    "How many of so many things a slice leaves."
    return slice_axis(axis(count), s).size


# %%
#| export
def _part(g: Growing, s: slice) -> Growing:
    total = g.total()
    if s.start is s.stop is None and s.step in (None, 1, -1):
        made = Growing(list(list.__iter__(g))[::s.step], g.counts[::s.step])
        made.mixed = g.mixed
        return made
    value, count = g.any_element(), _left(total, s)
    return Growing([value], [count]) if branch(claim(count, '>=', 1), False) else Growing()


# %%
#| export
def _item(own: Callable) -> Callable:
    def item(self, i):
        if self.plain(): return own(self, i)
        return _part(self, i) if isinstance(i, slice) else _element(self, i)
    return item

def _turned(own: Callable) -> Callable:
    def reverse(self):
        if self.plain() or self.dirty or current().state.get('depth', 0) > self.depth: return own(self)
        values, counts = list(list.__iter__(self))[::-1], self.counts[::-1]
        list.__setitem__(self, slice(None), values)
        self.counts = counts
    return reverse

def _put_in_front(own: Callable) -> Callable:
    def insert(self, i, value):
        if as_dim(i) != 0 or current().state.get('depth', 0) <= self.depth: return own(self, i, value)
        self.append(value)
        self.mixed = True  # where an element stands is not known any more
    return insert

Growing.__getitem__, Growing.reverse, Growing.insert = _item(Growing.__getitem__), _turned(Growing.reverse), _put_in_front(Growing.insert)


# %%
#| export
def _of_turns(turns: Turns, i: Any) -> Any:
    "An element of several values, or a part of a list that is a parameter."
    if not isinstance(i, slice): return turns.item(_place(turns.count, i))
    if not turns.listed: return backwards(turns) if (i.start, i.stop, i.step) == (None, None, -1) else refuse('part of several values, of which it is not known how many there are', hint='write a for loop')
    part = Turns(_left(turns.count, i), turns.item)
    part.listed = turns.listed
    return part

Turns.__getitem__ = _of_turns


# %%
#| export
def _no_change(name: str) -> Callable:
    return lambda self, *_, **__: refuse(f'{name}() of a list that is a parameter' if self.listed else f'{name}() of what is no list',
                                         hint='the caller has it too: make one of your own first, list(...)' if self.listed else 'make one first, list(...)')

for _name in 'append extend insert pop remove clear reverse sort'.split(): setattr(Turns, _name, _no_change(_name))


# %% [markdown]
# ## Every combination
#
# `itertools.product(range(n), range(m))` and `np.ndindex(n, m)` are two loops, one in the other, written as one. So a turn gets
# any index of each axis.

# %%
#| export
def _any_place(least: Dim, count: Dim) -> Dim:
    "Any number from `least` to `count - 1`, in a turn that may be any."
    if (count - least) == 1: return least
    i = unknown('i', None, 'an index in a turn of the loop in {at}').size
    current().facts = assume(assume(current().facts, claim(i, '>=', least)), claim(i, '<=', count - 1))
    return i


# %%
#| export
def _exactly(values: Any) -> Turns:
    "The turns of an iterable; those of a range give each number."
    return Turns(Dim(len(values)), lambda k: size_value(values.start + k*values.step)) if isinstance(values, range) else as_turns(values) or _known(values)


# %%
#| export
def product(*values: Any, repeat: int = 1) -> Any:
    "`itertools.product`."
    if all(as_turns(v) is None for v in values): return itertools.product(*values, repeat=repeat)
    turns = [_exactly(v) for v in values]*repeat
    if not all(branch(claim(t.count, '>=', 1)) for t in turns): return ()
    return Turns(functools.reduce(Dim.__mul__, (t.count for t in turns), Dim(1)), lambda k: tuple(t.item(_any_place(Dim(0), t.count)) for t in turns))


# %%
#| export
def combinations(values: Any, r: int) -> Any:
    "`itertools.combinations`, of two."
    if (turns := as_turns(values)) is None: return itertools.combinations(values, r)
    if r != 2: refuse(f'combinations of {r}', hint='write a loop in a loop: for i in range(len(x)): for j in range(i): ...')
    if not branch(claim(turns.count, '>=', 2)): return ()
    def item(_: Any) -> tuple:
        i = _any_place(Dim(0), turns.count - 1)
        return turns.item(i), turns.item(_any_place(i + 1, turns.count))
    return Turns(turns.count*(turns.count - 1)//2, item)


# %%
#| export
def pairwise(values: Any) -> Any:
    "`itertools.pairwise`: each element and the one after it."
    turns = as_turns(values)
    if turns is None: return itertools.pairwise(values)
    return Turns(turns.count - 1, lambda k: (turns.item(k), turns.item(k + 1))) if branch(claim(turns.count, '>=', 2)) else ()


# %%
#| export
def ndindex(*shape: Any) -> Any:
    "`np.ndindex`."
    if len(shape) == 1 and isinstance(shape[0], tuple | list): shape = tuple(shape[0])
    return product(*map(symbolic_range, shape))

def ndenumerate(values: Any) -> Any:
    "`np.ndenumerate`: each index, and the number there."
    if type(values) is not Array: return np.ndenumerate(values)
    places = ndindex(*values.shape)
    if not isinstance(places, Turns): return [(at, values[at]) for at in places]
    def item(k: Dim) -> tuple:
        at = places.item(k)
        return at, values[at]
    return Turns(places.count, item)


# %%
from bendml.shape.messages import ShapeError
from bendml.shape.trace import Trace, tracing
n, m = Dim('n'), Dim('m')
with tracing(Trace()):
    layers = Growing([Array([axis(m)]), Array([axis(m)])], [Dim(1), n])
    print(layers[0], layers[n], layers[:-1].total())
    try: layers[n + 1]
    except ShapeError as e: print(e)

# %% [markdown]
# ## What this does not show
#
# A list of lists that a loop has made, and elements of different shapes: these are looped over, or put into lists of their own.
