# %%
#| default_exp tokenizer.words

# %% [markdown]
# # A table of words
# > Byte strings as keys, eight bytes at a time.

# %% [markdown]
# Real text repeats its words. The tokenizer merges a word once and remembers the result; the trainer counts a word
# once and multiplies. Both need the same thing: a table that finds a word, a slice of a long text, in a few
# nanoseconds.
#
# Most words are at most 16 bytes long, and 16 bytes are two machine words. So the table holds the bytes themselves as
# two 64-bit keys, and comparing a word costs two comparisons. Only a longer word is known by its hash, and then
# compared byte by byte with a copy.

# %%
#| hide
#| export
from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from bendml.tokenizer.chars import padded


# %% [markdown]
# ## Eight bytes at once
#
# NumPy has no way to read a 64-bit number from any place in a byte array, so we tell the compiler. Reading past the
# last word is harmless, since every text ends with `PAD` zeros.

# %%
#| export
@intrinsic
def _load8(typingctx, text, i):
    "The eight bytes of a byte array from `i`, as one little-endian number."
    def codegen(context, builder, signature, args):
        array = context.make_array(signature.args[0])(context, builder, args[0])
        place = cgutils.pointer_add(builder, array.data, args[1])
        value = builder.load(builder.bitcast(place, ir.IntType(64).as_pointer()))
        value.align = 1
        return value
    return types.uint64(text, types.int64), codegen


# %%
#| export
@njit
def _first(value, size):
    "The first `size` (1 to 8) of eight bytes; zeros for the others."
    return value & (np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - 8*size))

@njit
def _mix(a, b):
    "Two numbers into one whose bits depend on all of theirs."
    h = (a ^ np.uint64(0x9E3779B97F4A7C15)) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(32)) ^ b) * np.uint64(0x94D049BB133111EB)
    return h ^ (h >> np.uint64(29))


# %%
#| export
@njit
def _keys(text, i, size):
    "Two keys of a word: its bytes; of a word longer than 16 bytes its hash, and zero."
    zero = np.uint64(0)
    if size <= 8: return _first(_load8(text, i), size), zero
    if size <= 16: return _load8(text, i), _first(_load8(text, i + 8), size - 8)
    h = np.uint64(size)
    for k in range(i, i + size - 8, 8): h = _mix(h, _load8(text, k))
    return _mix(h, _load8(text, i + size - 8)), zero


# %% [markdown]
# ## The table
#
# A slot is four numbers: the keys, the word's length (0: the slot is free) and a value, whatever the caller wants to
# remember. Words stand one behind another in `pool`, in the order in which they came.

# %%
#| export
class Words(NamedTuple):
    "A table of words: open addressing, a power of two of slots."
    slots: np.ndarray  # uint64 (slots, 4): key, key, length, value
    pool: np.ndarray   # uint8 (bytes,): the words, one behind another
    ends: np.ndarray   # int64 (words,): where each ends in the pool
    fill: np.ndarray   # int64 (2,): words, bytes of the pool in use

KEY, MORE, SIZE, VALUE = range(4)

def words(slots: int, pool: int) -> Words:
    "An empty table for at most 3/4 as many words as it has slots, a power of two."
    return Words(np.zeros((slots, 4), np.uint64), np.empty(pool, np.uint8),
                 np.empty(slots//4*3, np.int64), np.zeros(2, np.int64))


# %%
#| export
@njit
def _same(pool, start, text, i, size):
    "Are the words `pool[start:start + size]` and `text[i:i + size]` equal?"
    for k in range(size):
        if pool[start + k] != text[i + k]: return False
    return True

@njit
def find(slots, pool, text, i, size):
    "The slot of the word `text[i:i + size]`, or the free slot where it belongs."
    key, more = _keys(text, i, size)
    mask = len(slots) - 1
    k = np.int64(_mix(key, more ^ np.uint64(size))) & mask
    while slots[k, SIZE] != 0:
        if slots[k, KEY] == key and slots[k, SIZE] == np.uint64(size):
            if size <= 16:
                if slots[k, MORE] == more: return k
            elif _same(pool, np.int64(slots[k, MORE]), text, i, size): return k
        k = (k + 1) & mask
    return k


# %%
#| export
@njit
def has_room(pool, ends, fill, size):
    "Can one more word, of this length, be added?"
    return fill[0] < len(ends) and fill[1] + size <= len(pool)

@njit
def put(slots, slot, text, i, size, start, value):
    "Fill a free slot; a word of more than 16 bytes has a copy that starts at `start` in the pool."
    key, more = _keys(text, i, size)
    slots[slot, KEY], slots[slot, MORE] = key, more if size <= 16 else np.uint64(start)
    slots[slot, SIZE], slots[slot, VALUE] = size, value

@njit(cache=True)
def add(slots, pool, ends, fill, slot, text, i, size, value):
    "Put a word into its free slot and into the pool; its number, counted from 0."
    number, start = fill[0], fill[1]
    for k in range(size): pool[start + k] = text[i + k]
    ends[number] = fill[1] = start + size
    fill[0] = number + 1
    put(slots, slot, text, i, size, start, value)
    return number


# %%
@njit
def count_distinct(words, text, n, size):
    slots, pool, ends, fill = words
    for i in range(0, n, size):
        slot = find(slots, pool, text, i, size)
        if slots[slot, SIZE] == 0: add(slots, pool, ends, fill, slot, text, i, size, 0)
    return fill[0]

for size in (1, 7, 8, 9, 16, 17, 40):
    data = b''.join(bytes([65 + k*k % 23])*size for k in range(100))
    distinct = {data[i:i + size] for i in range(0, len(data), size)}
    assert count_distinct(words(64, 4096), padded(data), len(data), size) == len(distinct) == 12


# %% [markdown]
# A full table is moved to a larger one.

# %%
#| export
def grow(words: Words, size: int) -> Words:
    "The same words in a table with room for more of them, the next of length `size` among them."
    slots = len(words.slots) * (2 if words.fill[0] == len(words.ends) else 1)
    pool = np.empty(max(len(words.pool)*3//2, int(words.fill[1]) + size), np.uint8)
    larger = Words(np.zeros((slots, 4), np.uint64), pool, np.empty(slots//4*3, np.int64), words.fill.copy())
    count, used = words.fill
    larger.pool[:used], larger.ends[:count] = words.pool[:used], words.ends[:count]
    move(words.slots, larger.slots)
    return larger


# %%
#| export
@njit(cache=True)
def move(old, new):
    "Every slot in use to its place in a larger table."
    mask = len(new) - 1
    for slot in old:
        if slot[SIZE] != 0:
            more = slot[MORE] if slot[SIZE] <= 16 else np.uint64(0)
            k = np.int64(_mix(slot[KEY], more ^ slot[SIZE])) & mask
            while new[k, SIZE] != 0: k = (k + 1) & mask
            new[k] = slot


# %%
small = words(4, 64)
text = padded(b'a' + b'b' + b'c'*20)
for i, size in ((0, 1), (1, 1), (2, 20)):
    add(*small, find(small.slots, small.pool, text, i, size), text, i, size, i)
larger = grow(small, 1)
for i, size in ((0, 1), (1, 1), (2, 20)):
    assert larger.slots[find(larger.slots, larger.pool, text, i, size), VALUE] == i

# %% [markdown]
# ## What this does not show
#
# The hash is quick, not secret. Someone who knows it can construct words that fall into one place, and make the table
# slow; it cannot be made to confuse two words, since words are compared in full.
