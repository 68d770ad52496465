# %%
#| default_exp checkpoint.layout

# %% [markdown]
# # Where tensors lie
# > If the check accepts a file, every byte of its data belongs to exactly one tensor: proved, for all files.

# %% [markdown]
# The header of a file says where each tensor's bytes begin and end, and a header can lie. Two tensors may overlap, so that
# writing one changes the other. One may end after the file does, and reading it reads somebody else's memory; programs
# that load weights have had this fault more than once. This page is the one function that decides, and the proof of what
# it means when it says yes.

# %%
#| hide
#| export
import math, os
from collections.abc import Mapping

from bendml.checkpoint.weights import CheckpointError, Stored, Type, short
from bendml.laws import Cons, List, Nil, datatype, law, prove, pure, to_list
from bendml.lists import append


# %% [markdown]
# ## Where the bytes lie
#
# A tensor says four things: its element type, its shape, and where its bytes begin and end. The type is here what a
# check needs of it: `size` bytes hold `block` elements. One float32 is 4 bytes, two 4-bit numbers are one byte, and
# 32 numbers of GGUF's type Q4_1 are 20 bytes.

# %%
#| export
@datatype
class Place:
    "Where a tensor says that its bytes lie."
    class Bytes:
        block: int        # elements
        size: int         # bytes of a block
        shape: List[int]
        begin: int        # byte offset in the data
        end: int          # one past the last byte


# %%
#| export
@datatype
class Reach:
    "How far the tensors reach, if all is well so far; or what is not."
    class Upto: at: int
    class Overlap: pass
    class Hole: pass
    class Backwards: pass
    class Outside: pass
    class WrongSize: pass

Bytes = Place.Bytes
Upto, Overlap, Hole, Backwards, Outside, WrongSize = Reach.__constructors__


# %%
#| export
@pure
def count(shape: List[int]) -> int:
    "The number of elements."
    match shape:
        case Nil(): return 1
        case Cons(d, rest): return d*count(rest)


# %% [markdown]
# Take the tensors in the order in which they begin. The data are `n` bytes, and the tensors so far reach up to `at`.
# May the next one be where it says? It has to begin less than `gap` bytes behind (safetensors: 1, so at once; GGUF: 32,
# since it rounds up to multiples of 32), to end inside the data, and to be as long as its type and shape say.

# %%
#| export
@pure
def place(
    t: Place,
    at: int,     # where the tensor before it ends
    n: int,      # bytes of data
    gap: int,    # the next tensor begins less than this behind it
) -> Reach:
    "Whether a tensor may follow, and how far it reaches."
    match t:
        case Bytes(block, size, shape, begin, end):
            if begin < at: return Overlap()
            if begin >= at + gap: return Hole()
            if end < begin: return Backwards()
            if end > n: return Outside()
            if block*(end - begin) != size*count(shape): return WrongSize()
            return Upto(end)


# %%
two_by_two = lambda begin, end: Bytes(1, 4, to_list([2, 2]), begin, end)
print(place(two_by_two(0, 16), 0, 16, 1), place(two_by_two(0, 4), 0, 16, 1), place(two_by_two(8, 24), 0, 24, 1))


# %% [markdown]
# For a list of tensors: one after the other, up to the first that may not be there.

# %%
#| export
@pure
def layout(ts: List[Place], at: int, n: int, gap: int) -> Reach:
    "How far tensors reach, one after the other."
    match ts:
        case Nil(): return Upto(at)
        case Cons(t, rest):
            match place(t, at, n, gap):
                case Upto(end): return layout(rest, end, n, gap)
                case wrong: return wrong


# %% [markdown]
# ## What acceptance means
#
# **In bounds, and of the right size.** If the check accepts, every tensor lies inside the data, and its bytes are as many
# as its type and its shape need:
# $0 \le \mathrm{begin} \le \mathrm{end} \le n$ and $\mathrm{block}\cdot(\mathrm{end}-\mathrm{begin}) = \mathrm{size}\cdot\prod\mathrm{shape}$.

# %%
#| export
@pure
def sound(ts: List[Place], n: int) -> bool:
    "Whether every tensor lies inside the data and is of the right size."
    match ts:
        case Nil(): return True
        case Cons(Bytes(block, size, shape, begin, end), rest):
            right = block*(end - begin) == size*count(shape)
            return 0 <= begin and begin <= end and end <= n and right and sound(rest, n)


# %%
#| export
@law(induct='ts', gen='at', opaque=[count], ih='layout(ts, at, n, gap)')
def in_bounds(ts: List[Place], at: int, n: int, gap: int, m: int):
    "Accepted tensors lie inside the data, and are of the right size."
    assert layout(ts, at, n, gap) == Upto(m)
    assert 0 <= at
    return sound(ts, n)


# %%
assert prove(in_bounds).holds
prove(in_bounds)


# %% [markdown]
# **Disjoint and complete.** How many tensors does a byte belong to? At most one, so nothing that is written through one
# name changes another. And where tensors follow each other at once, each byte that they reach belongs to exactly one.

# %%
#| export
@pure
def owners(ts: List[Place], x: int) -> int:
    "How many tensors the byte `x` of the data belongs to."
    match ts:
        case Nil(): return 0
        case Cons(Bytes(_, _, _, begin, end), rest): return owners(rest, x) + (1 if begin <= x and x < end else 0)


# %%
#| export
@law(induct='ts', gen='at', opaque=[count], ih='layout(ts, at, n, gap)')
def none_before(ts: List[Place], at: int, n: int, gap: int, m: int, x: int):
    "Tensors placed from `at` on own nothing before it."
    assert layout(ts, at, n, gap) == Upto(m)
    assert x < at
    return owners(ts, x) == 0


# %%
#| export
@law(induct='ts', gen='at', opaque=[count], ih='layout(ts, at, n, gap)',
     cite=[none_before.here(ts='ts.tail', at='ts.head.end')])
def disjoint(ts: List[Place], at: int, n: int, gap: int, m: int, x: int):
    "No byte belongs to two accepted tensors."
    assert layout(ts, at, n, gap) == Upto(m)
    return owners(ts, x) <= 1


# %%
#| export
@law(induct='ts', gen='at', opaque=[count], ih='layout(ts, at, n, 1)',
     cite=[none_before.here(ts='ts.tail', at='ts.head.end', gap='1')])
def complete(ts: List[Place], at: int, n: int, m: int, x: int):
    "Without gaps, every byte that is reached belongs to exactly one tensor."
    assert layout(ts, at, n, 1) == Upto(m)
    assert at <= x
    assert x < m
    return owners(ts, x) == 1


# %%
assert prove(disjoint).holds and prove(complete).holds
prove(complete)


# %% [markdown]
# **Nothing right is refused.** A check that refuses everything would obey all three laws. So also the other way round:
# tensors that tile the data are accepted.

# %%
#| export
@pure
def tiled(ts: List[Place], at: int, n: int) -> bool:
    "Whether tensors of the right size fill the data from `at` to `n`, one beside the other."
    match ts:
        case Nil(): return at == n
        case Cons(Bytes(block, size, shape, begin, end), rest):
            right = block*(end - begin) == size*count(shape)
            return begin == at and begin <= end and end <= n and right and tiled(rest, end, n)


# %%
#| export
@law(induct='ts', gen='at', opaque=[count])
def accepted(ts: List[Place], at: int, n: int):
    "What tiles the data is accepted, up to its end."
    assert tiled(ts, at, n)
    return layout(ts, at, n, 1) == Upto(n)


# %%
assert prove(accepted).holds
prove(accepted)


# %% [markdown]
# **The loop.** `layout` calls itself once a tensor, and Python allows no more than a thousand calls inside each other. So
# the reader goes through the tensors in a loop, with `at` kept in a variable. The loop is right because `at` is, at each
# turn, what `layout` says about the tensors so far; this is the law of one turn.

# %%
#| export
@law(induct='s', gen='at', opaque=[count, place], split=['place(t, e, n, gap)'], ih='layout(s, at, n, gap)')
def one_more(s: List[Place], t: Place, at: int, n: int, gap: int, e: int):
    "If tensors reach up to `e`, then with one more they reach as far as `place` says from there."
    assert layout(s, at, n, gap) == Upto(e)
    return layout(append(s, Cons(t, Nil())), at, n, gap) == place(t, e, n, gap)


# %%
#| export
def check_layout(
    path: str | os.PathLike,
    tensors: Mapping[str, Stored],  # offsets count from the beginning of the data
    types: Mapping[str, Type],
    n: int,                         # bytes of data
    gap: int = 1,
) -> int:                           # how far they reach
    "Check that tensors lie where they may; `CheckpointError` names the first that does not."
    at = 0
    for name, s in sorted(tensors.items(), key=lambda item: item[1][2:]):
        t = Bytes(types[s.dtype].block, types[s.dtype].size, to_list(s.shape), s.begin, s.end)
        match place(t, at, n, gap):
            case Upto(end): at = end
            case wrong: raise _misplaced(path, name, t, at, n, gap, wrong)
    return at


# %%
#| export
def _misplaced(path, name: str, t: Bytes, at: int, n: int, gap: int, wrong: Reach) -> CheckpointError:
    "What is wrong with a tensor's place, in words."
    whole, part = divmod(t.size*math.prod(t.shape), t.block)
    need = str(whole)[:40] + f' {part}/{t.block}'*(part > 0) + f' bytes for the shape {list(t.shape)}'
    said = {Overlap: ('overlaps the tensor before it', f'begin at {at}', f'begin at {t.begin}'),
            Hole: ('a hole before it', f'begin at {at}' + f' to {at + gap - 1}'*(gap > 1), f'begin at {t.begin}'),
            Backwards: ('ends before it begins', f'end at {t.begin} or later', f'end at {t.end}'),
            Outside: ('lies outside the file (truncated?)', f'{t.end} bytes of data', f'{n} bytes of data'),
            WrongSize: ('size does not fit type and shape', need[:160], f'{t.end - t.begin} bytes')}
    problem, expected, observed = said[type(wrong)]
    return CheckpointError(path, f'tensor {short(name)}: {problem}', expected, observed)


# %%
assert prove(one_more).holds
prove(one_more)

# %%
a, b = Stored('F32', (2, 2), 0, 16), Stored('F32', (2, 2), 8, 24)
try: check_layout('a file', {'a': a, 'b': b}, {'F32': Type(1, 4, '<f4')}, 24)
except CheckpointError as e: print(e)

# %% [markdown]
# ## What this does not show
#
# - The laws speak of places. That a file's header means these places is for the pages about the formats, where it is
#   tested.
# - With gaps, as GGUF has them, the bytes between two tensors belong to none; `disjoint` and `in_bounds` hold, and
#   `complete` says nothing.
# - Python's own loop and list are trusted. `one_more` is about what happens at each turn, not about `for`.
