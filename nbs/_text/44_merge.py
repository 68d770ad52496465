# %%
#| default_exp tokenizer.merge

# %% [markdown]
# # Merging
# > Lowest rank first: a scan for short words, buckets for long ones, and a memory for words seen before.

# %% [markdown]
# The specification says: while some pair of neighbours is in the table, merge the leftmost of those with the lowest
# rank. Done to the letter, every merge looks at the whole word again. For a word of ten bytes nothing is faster. For
# a megabyte of one letter it takes hours, and such texts exist.
#
# This page does three things: the scan, for words up to `SHORT`; an algorithm whose time grows with the length of the
# word, not with its square, for longer ones; and the loop over a text that merges only words that it has not met
# before.

# %%
#| hide
#| export
from typing import NamedTuple

import numpy as np
from numba import njit

from bendml.tokenizer.chars import PAD, padded
from bendml.tokenizer.split import BLOCK, split_words
from bendml.tokenizer.steps import close_gap, lowest, merge_at
from bendml.tokenizer.words import SIZE, VALUE, Words, _mix, add, find, has_room, words

# %% [markdown]
# ## Which pair becomes what
#
# The table of pairs is asked for every two neighbours. Its answer is one number, the rank in the upper half and the
# id of the new token in the lower one, so that the lowest answer is the lowest rank.

# %%
#| export
NOTHING = np.int64(2**63 - 1)  # this pair is not in the table: above every rank
NO_PAIR = np.uint64(2**64 - 1)

@njit
def _pair(a, b): return np.uint64(a) << np.uint64(32) | np.uint64(b)

@njit
def look(pairs, a, b):
    "`rank << 32 | id` of a pair of tokens, or `NOTHING`."
    key, mask = _pair(a, b), len(pairs) - 1
    k = np.int64(_mix(key, key)) & mask
    while pairs[k, 0] != key:
        if pairs[k, 0] == NO_PAIR: return NOTHING
        k = (k + 1) & mask
    return np.int64(pairs[k, 1])


# %%
#| export
@njit
def insert(pairs, a, b, rank, new):
    "Put a pair that is not there into the table."
    key, mask = _pair(a, b), len(pairs) - 1
    k = np.int64(_mix(key, key)) & mask
    while pairs[k, 0] != NO_PAIR: k = (k + 1) & mask
    pairs[k, 0], pairs[k, 1] = key, np.uint64(rank) << np.uint64(32) | np.uint64(new)

@njit(cache=True)
def _insert_all(pairs, merges):
    for rank in range(len(merges)):
        insert(pairs, merges[rank, 0], merges[rank, 1], rank, merges[rank, 2])

def empty_table(merges: int) -> np.ndarray:  # uint64 (slots, 2)
    "A table with room for so many pairs."
    return np.full((1 << max(2*merges, 2).bit_length(), 2), NO_PAIR)

def pair_table(merges: np.ndarray) -> np.ndarray:  # int32 (merges, 3): left, right, new -> uint64 (slots, 2)
    "The table of pairs, each ranked by its place."
    pairs = empty_table(len(merges))
    _insert_all(pairs, np.ascontiguousarray(merges, np.int32).reshape(-1, 3))
    return pairs


# %%
pairs = pair_table(np.array([(97, 97, 256), (256, 97, 257), (257, 98, 258)]))
look(pairs, 256, 97) >> 32, look(pairs, 256, 97) & 0xFFFFFFFF, look(pairs, 98, 98) == NOTHING

# %% [markdown]
# ## A short word
#
# Keep what the table said about each pair of neighbours; take the lowest; close the gap; ask anew about the two pairs
# that changed. This is the specification's step, on an array; its three loops are the proved kernels of the page before.

# %%
#| export
_lowest, _merge_at, _close_gap = lowest.inner, merge_at.inner, close_gap.inner  # compiled, to be called from compiled code

@njit(cache=True)
def merge_short(tokens, ranks, place, n, pairs):
    "Merge `tokens[:n]` (int64) in place, lowest rank first; how many are left."
    for k in range(n - 1): ranks[k] = look(pairs, tokens[k], tokens[k + 1])
    while n > 1:
        _lowest(n - 1, ranks, place)
        k = place[0]
        if ranks[k] == NOTHING: break
        _merge_at(n, k, ranks[k] & 0xFFFFFFFF, tokens)
        _close_gap(n - 1, k, ranks)
        n -= 1
        if k > 0: ranks[k - 1] = look(pairs, tokens[k - 1], tokens[k])
        if k < n - 1: ranks[k] = look(pairs, tokens[k], tokens[k + 1])
    return n


# %%
tokens, ranks, place = np.array(list(b'aaabdaaabac')), np.empty(11, np.int64), np.empty(1, np.int64)
tokens[:merge_short(tokens, ranks, place, 11, pairs)]

# %% [markdown]
# ## A long word
#
# In a table where both parts of a pair are older than the pair, a merge of rank $r$ can only bring forth pairs of
# ranks above $r$. So the ranks come in order, and three things follow.
#
# 1. Pairs can wait in one bucket per rank, and the buckets be emptied in order: no priority queue.
# 2. All pairs of one rank can be merged in one go. That this changes nothing is a law of the specification,
#    `rank_all_is_in_order`.
# 3. Within a bucket, order matters only where occurrences overlap. They overlap only when both parts are the same
#    token, in a run `x x x x`, and there it is enough to start at the beginning of the run.
#
# A word's tokens are a linked list, so that a merge moves nothing; and each bucket is a linked list of the places
# where its pairs start, so that a pair can leave it. What belongs to one place lies side by side in one row. `NONE`
# ends a list.

# %%
#| export
NONE = -1
TOKEN, BEFORE, AFTER = 0, 1, 2  # a token and its neighbours
RANK, AHEAD, BEHIND = 3, 4, 5   # the rank of the pair that starts here, and the pair's neighbours in the bucket

class Buckets(NamedTuple):
    "For each rank a place where such a pair starts; for 64 ranks, whether any was used. Left empty."
    heads: np.ndarray
    flags: np.ndarray

def buckets(merges: int) -> Buckets:
    "Empty buckets for so many ranks."
    return Buckets(np.full(merges, NONE, np.int32), np.zeros((merges >> 6) + 1, np.int32))


# %%
#| export
@njit
def leave(cells, heads, i):
    "Take the pair that starts at `i` out of its bucket."
    rank, ahead, behind = cells[i, RANK], cells[i, AHEAD], cells[i, BEHIND]
    if rank == NONE: return
    if ahead == NONE: heads[rank] = behind
    else: cells[ahead, BEHIND] = behind
    if behind != NONE: cells[behind, AHEAD] = ahead
    cells[i, RANK] = NONE

@njit
def wait(cells, heads, flags, pairs, i):
    "Put the pair that starts at `i` into its bucket, if it is in the table."
    j = cells[i, AFTER]
    leave(cells, heads, i)
    found = look(pairs, cells[i, TOKEN], cells[j, TOKEN]) if j != NONE else NOTHING
    if found == NOTHING: return
    rank = found >> 32
    first = heads[rank]
    cells[i, RANK], cells[i, AHEAD], cells[i, BEHIND] = rank, NONE, first
    if first != NONE: cells[first, AHEAD] = i
    heads[rank] = i
    flags[rank >> 6] = 1


# %%
#| export
@njit
def join(cells, heads, flags, pairs, i, new):
    "Merge the pair that starts at `i`, and let its new neighbours wait."
    j = cells[i, AFTER]
    k, h = cells[j, AFTER], cells[i, BEFORE]
    leave(cells, heads, j)
    cells[i, TOKEN], cells[j, TOKEN], cells[i, AFTER] = new, NONE, k
    if k != NONE: cells[k, BEFORE] = i
    if h != NONE: wait(cells, heads, flags, pairs, h)
    wait(cells, heads, flags, pairs, i)

@njit
def empty_bucket(cells, heads, flags, pairs, rank):
    "Merge all pairs of one rank, each run of equal tokens from its beginning."
    while heads[rank] != NONE:
        i = heads[rank]
        while cells[i, BEFORE] != NONE and cells[cells[i, BEFORE], RANK] == rank: i = cells[i, BEFORE]
        new = look(pairs, cells[i, TOKEN], cells[cells[i, AFTER], TOKEN]) & 0xFFFFFFFF
        while i != NONE and cells[i, RANK] == rank:
            following = cells[cells[i, AFTER], AFTER]
            join(cells, heads, flags, pairs, i, new)
            i = following


# %%
#| export
@njit(cache=True)
def merge_long(tokens, n, heads, flags, pairs):
    "Merge `tokens[:n]` in place, lowest rank first; how many are left."
    first = 0
    while first + 1 < n and look(pairs, tokens[first], tokens[first + 1]) == NOTHING: first += 1
    if first + 1 >= n: return n
    cells = np.empty((n, 6), np.int32)
    for i in range(n):
        cells[i, TOKEN], cells[i, BEFORE], cells[i,
                                                 AFTER] = tokens[i], i - 1, i + 1 if i + 1 < n else NONE
        cells[i, RANK] = NONE
        if i > first: wait(cells, heads, flags, pairs, i - 1)
    for flag in range(len(flags)):
        if flags[flag]:
            for rank in range(flag << 6, min((flag + 1) << 6, len(heads))):
                empty_bucket(cells, heads, flags, pairs, rank)
            flags[flag] = 0
    left = 0
    for i in range(n):
        if cells[i, TOKEN] != NONE:
            tokens[left] = cells[i, TOKEN]
            left += 1
    return left


# %% [markdown]
# The same results, on all words of up to eight letters `a` and `b`:

# %%
import itertools
queue = buckets(3)
for n in range(1, 9):
    for word in itertools.product([97, 98], repeat=n):
        one, two = np.array(word), np.array(word, np.int32)
        short, long = merge_short(one, ranks, place, n, pairs), merge_long(two, n, *queue, pairs)
        assert one[:short].tolist() == two[:long].tolist()

# %% [markdown]
# ## A text
#
# `Memory` is what one thread remembers: the words that it has met, and their tokens. Two threads never share one, so
# nothing needs a lock.

# %%
#| export
SHORT = 128       # bytes: longer words go through the buckets
REMEMBERED = 256  # bytes: longer words are merged anew each time

class Memory(NamedTuple):
    "Words met before with their tokens, and scratch space; one thread's own."
    whole: Words          # words that are one token whatever the merges say; never forgotten
    words: Words          # value: how many tokens << 32 | the token, or where they are in `tokens`
    tokens: np.ndarray    # int32
    used: np.ndarray      # int64 (1,): tokens in use
    buckets: Buckets
    ranks: np.ndarray     # int64 (SHORT,): scratch, as all that follows
    work: np.ndarray      # int64 (SHORT,)
    place: np.ndarray     # int64 (1,)
    kinds: np.ndarray     # uint8 (2*(BLOCK + PAD),)
    ends: np.ndarray      # int64 (BLOCK + PAD,)

def memory(merges: int, slots: int = 1 << 17, whole: dict[bytes, int] | None = None) -> Memory:
    "An empty memory for a table with so many merges."
    whole = whole or {}
    slots = max(slots, 1 << (3*len(whole)).bit_length())
    always = words(max(4, 1 << (2*len(whole)).bit_length()), sum(map(len, whole)))
    for word, token in whole.items():
        text = padded(word)
        add(*always, find(always.slots, always.pool, text, 0, len(word)), text, 0, len(word),
            np.uint64(1 << 32 | token))
    empty = Memory(always, words(slots, 8*slots + len(always.pool)), np.empty(4*slots, np.int32),
                   np.zeros(1, np.int64), buckets(merges),
                   np.empty(SHORT, np.int64), np.empty(SHORT, np.int64), np.empty(1, np.int64),
                   np.empty(2*(BLOCK + PAD), np.uint8), np.empty(BLOCK + PAD,
                                                                                            np.int64))
    forget(empty)
    return empty

@njit(cache=True)
def forget(memory):
    "Make room: forget all words but those that are never forgotten."
    slots, pool, ends, fill = memory.words
    slots[:], fill[:], memory.used[0] = 0, 0, 0
    always, start = memory.whole, 0
    text = np.concatenate((always.pool, np.zeros(PAD, np.uint8)))
    for k in range(always.fill[0]):
        size = always.ends[k] - start
        value = always.slots[find(always.slots, always.pool, text, start, size), VALUE]
        add(slots, pool, ends, fill, find(slots, pool, text, start, size), text, start, size, value)
        start = always.ends[k]


# %%
#| export
@njit
def merge_word(text, i, size, byte_ids, pairs, ranks, work, place, heads, flags, out, at):
    "Merge the word `text[i:i + size]` into `out` from `at` on; how many tokens there are."
    if size > SHORT:
        tokens = out[at:at + size]
        for k in range(size): tokens[k] = byte_ids[text[i + k]]
        return merge_long(tokens, size, heads, flags, pairs)
    for k in range(size): work[k] = byte_ids[text[i + k]]
    n = merge_short(work, ranks, place, size, pairs)
    for k in range(n): out[at + k] = work[k]
    return n

@njit
def note(known, used, out, at, n):
    "Note the tokens of a new word; the value by which its slot knows them."
    place = np.int64(out[at])
    if n > 1:
        place = used[0]
        for k in range(n): known[place + k] = out[at + k]
        used[0] = place + n
    return np.uint64(n << 32 | place)


# %% [markdown]
# The loop takes the arrays out of their records once: inside, each record would cost more than the word.

# %%
#| export
@njit(nogil=True, cache=True)
def encode_words(text, i, n, bound, pattern, classes, byte_ids, pairs, memory, out):
    "Encode the words of `text[i:n]` that end by `bound` into `out`: where the last ends, how many tokens."
    slots, pool, word_ends, fill = memory.words
    heads, flags = memory.buckets
    known, used, ends = memory.tokens, memory.used, memory.ends
    ranks, work, spot = memory.ranks, memory.work, memory.place
    count = 0
    while True:
        batch = split_words(text, i, n, bound, pattern, classes, memory.kinds, ends)
        if batch == 0: return i, count
        for k in range(batch):
            size = ends[k] - i
            if size == 1:
                out[count] = byte_ids[text[i]]
                count += 1
            else:
                slot = find(slots, pool, text, i, size)
                value = np.int64(slots[slot, VALUE])
                tokens, place = value >> 32, value & 0xFFFFFFFF
                if slots[slot, SIZE] == 0:
                    if size <= REMEMBERED and not (has_room(pool, word_ends, fill, size)
                                                   and used[0] + size <= len(known)):
                        forget(memory)
                        slot = find(slots, pool, text, i, size)
                    tokens = merge_word(text, i, size, byte_ids, pairs, ranks, work, spot, heads, flags,
                                        out, count)
                    if size <= REMEMBERED:
                        add(slots, pool, word_ends, fill, slot, text, i, size,
                            note(known, used, out, count, tokens))
                    count += tokens
                elif tokens == 1:
                    out[count] = place
                    count += 1
                else:
                    for j in range(tokens): out[count + j] = known[place + j]
                    count += tokens
            i = ends[k]


# %% [markdown]
# ## Pairs from tokens alone
#
# Some vocabularies list tokens in order, and not the pairs that they are made of. Those can be found again: run over
# a token's bytes, the merges of all earlier tokens leave the two parts.

# %%
#| export
@njit(nogil=True, cache=True)
def _pairs_of_tokens(text, ends, byte_ids, pairs, heads, flags, found):
    ranks, work, place = np.empty(SHORT, np.int64), np.empty(SHORT, np.int64), np.empty(1, np.int64)
    start = count = 0
    for new in range(len(ends)):
        size = ends[new] - start
        if size > 1:
            tokens = byte_ids[text[start:ends[new]]]
            if size > SHORT: left = merge_long(tokens, size, heads, flags, pairs)
            else:
                work[:size] = tokens
                left = merge_short(work, ranks, place, size, pairs)
                tokens[:left] = work[:left]
            if left == 2:
                found[count, 0], found[count, 1], found[count, 2] = tokens[0], tokens[1], new
                insert(pairs, tokens[0], tokens[1], count, new)
                count += 1
        start = ends[new]
    return count

def pairs_of_tokens(text: np.ndarray, ends: np.ndarray,
                    byte_ids: np.ndarray) -> np.ndarray:  # int32 (pairs, 3)
    "The pairs that make tokens, which stand one behind another in `text` in the order of their ranks."
    found = np.empty((len(ends), 3), np.int32)
    return found[:_pairs_of_tokens(text, ends, byte_ids, empty_table(len(ends)), *buckets(len(ends)),
                                   found)]


# %%
pairs_of_tokens(np.frombuffer(b'abc' + b'ab' + b'abc', np.uint8), np.array([1, 2, 3, 5, 8]),
                np.arange(256, dtype=np.int32)).tolist()


# %% [markdown]
# Many texts in one call, so that many short texts do not queue for Python's lock:

# %%
#| export
@njit(nogil=True, cache=True)
def encode_texts(text, starts, ends, counts, pattern, classes, byte_ids, pairs, memory, out):
    "Encode each `text[starts[k]:ends[k]]` into `out`, one behind another; `counts`: how many tokens."
    total = 0
    for k in range(len(starts)):
        counts[k] = encode_words(text, starts[k], ends[k], ends[k], pattern, classes, byte_ids, pairs,
                                 memory, out[total:])[1]
        total += counts[k]
    return total


# %%
from bendml.tokenizer.chars import class_table
from bendml.tokenizer.split import GPT2
text = padded(b'aaab daaab aaab')
out = np.empty(len(text), np.int32)
stopped, count = encode_words(text, 0, 15, 15, GPT2, class_table(False), np.arange(256, dtype=np.int32),
                              pairs, memory(3, 64), out)
stopped, out[:count]

# %% [markdown]
# ## What this does not show
#
# The long way is correct only for tables in which both parts of every pair are older than the pair; the vocabulary's
# page refuses others. How fast all this is, `make bench` tells.
