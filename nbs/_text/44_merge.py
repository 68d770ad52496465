# %%
#| default_exp tokenizer.merge

# %% [markdown]
# # Merging
# > Lowest rank first: a scan for short words, sweeps and buckets for long ones.

# %% [markdown]
# The specification says: while some pair of neighbours is in the table, merge the leftmost of those with the lowest
# rank. Done to the letter, every merge looks at the whole word again. For a word of ten bytes nothing is faster. For
# a megabyte of one letter it takes hours, and such texts exist.
#
# This page has the scan, for words up to `SHORT`, and two algorithms whose time grows with the length of the word, not
# with its square, for longer ones. The next page merges a text, and only the words that it has not met before.

# %%
#| hide
#| export
from typing import NamedTuple

import numpy as np
from numba import njit

from bendml.tokenizer.steps import close_gap, lowest, merge_at, sweep

# %% [markdown]
# ## Which pair becomes what
#
# The table of pairs is asked for every two neighbours, and its answer is a rank. A slot is one number: the two tokens, 21
# bits each, and 21 bits for the rank, or -1 where it is free. So GPT-2's fifty thousand merges are one megabyte, which a
# processor keeps near. `made` has the new token of each rank.

# %%
#| export
BITS = 21                      # of a token, and of a rank; a vocabulary has fewer than 2**BITS ids
NOTHING = np.int64(2**63 - 1)  # this pair is not in the table: above every rank

@njit
def _pair(a, b): return np.int64(a) << BITS | np.int64(b)

@njit
def _slot(pair, pairs):
    "Where a pair is looked for first: bits of a product that depend on all of its own."
    return np.int64(np.uint64(pair)*np.uint64(0x9E3779B97F4A7C15) >> np.uint64(32)) & len(pairs) - 1

@njit
def look(pairs, a, b):
    "The rank of a pair of tokens, or `NOTHING`."
    pair = _pair(a, b)
    k = _slot(pair, pairs)
    while pairs[k] >> BITS != pair:
        if pairs[k] < 0: return NOTHING
        k = (k + 1) & len(pairs) - 1
    return pairs[k] & (1 << BITS) - 1


# %%
#| export
@njit
def insert(pairs, a, b, rank):
    "Put a pair that is not there into the table."
    pair = _pair(a, b)
    k = _slot(pair, pairs)
    while pairs[k] >= 0: k = (k + 1) & len(pairs) - 1
    pairs[k] = pair << BITS | rank

@njit(cache=True)
def _insert_all(pairs, merges):
    for rank in range(len(merges)): insert(pairs, merges[rank, 0], merges[rank, 1], rank)

def empty_table(merges: int) -> np.ndarray:  # int64 (slots,)
    "A table with room for so many pairs, at most half full."
    return np.full(1 << max(2*merges, 2).bit_length(), -1)

def pair_table(merges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # int32 (merges, 3): left, right, new
    "The table of pairs, each ranked by its place, and the token that each makes, int32 (merges,)."
    merges = np.ascontiguousarray(merges, np.int32).reshape(-1, 3)
    pairs = empty_table(len(merges))
    _insert_all(pairs, merges)
    return pairs, merges[:, 2].copy()


# %%
pairs, made = pair_table(np.array([(97, 97, 256), (256, 97, 257), (257, 98, 258)]))
look(pairs, 256, 97), made[1], look(pairs, 98, 98) == NOTHING

# %% [markdown]
# ## A short word
#
# Given what the table says about each pair of neighbours: take the lowest; close the gap; ask anew about the two pairs
# that changed. This is the specification's step, on an array; its three loops are the proved kernels of the page before.

# %%
#| export
_lowest, _merge_at, _close_gap, _sweep = (k.inner for k in (lowest, merge_at, close_gap, sweep))  # compiled, to be called from compiled code

@njit(cache=True)
def merge_short(tokens, ranks, place, n, pairs, made):
    "Merge `tokens[:n]` (int64), whose pairs have these ranks, in place, lowest rank first; how many are left."
    while n > 1:
        _lowest(n - 1, ranks, place)
        k = place[0]
        if ranks[k] == NOTHING: break
        _merge_at(n, k, made[ranks[k]], tokens)
        _close_gap(n - 1, k, ranks)
        n -= 1
        if k > 0: ranks[k - 1] = look(pairs, tokens[k - 1], tokens[k])
        if k < n - 1: ranks[k] = look(pairs, tokens[k], tokens[k + 1])
    return n


# %%
ranks_of = lambda tokens: np.array([look(pairs, a, b) for a, b in zip(tokens, tokens[1:])], np.int64)
tokens, place = np.array(list(b'aaabdaaabac')), np.empty(1, np.int64)
tokens[:merge_short(tokens, ranks_of(tokens), place, 11, pairs, made)]

# %% [markdown]
# ## A long word, all pairs of a rank at once
#
# A word of a megabyte is one letter again and again, or a drawing in a comment, or data. In the first two, one pair is
# everywhere. That merging all pairs of the lowest rank in one go gives the same tokens is a law of the specification,
# `rank_all_is_in_order`. So as long as the lowest rank makes up a sixteenth of the word, it is read from left to right and
# written back shorter, by the proved kernel `sweep` of the page before.

# %%
#| export
RARE = 16  # a rank with less than one pair in so many is not worth a sweep

@njit
def lowest_rank(tokens, n, pairs):
    "The lowest rank of two neighbours in `tokens[:n]`, where it first stands, and how often."
    rank, place, count = NOTHING, 0, 0
    for i in range(n - 1):
        found = look(pairs, tokens[i], tokens[i + 1])
        if found < rank: rank, place, count = found, i, 0
        if found == rank: count += 1
    return rank, place, count


# %%
tokens = np.array(list(b'aaabdaaabac'), np.int32)
rank, i, count = lowest_rank(tokens, 11, pairs)
sweep(11, int(tokens[i]), int(tokens[i + 1]), int(made[rank]), tokens, place)
rank, i, count, tokens[:place[0]]

# %% [markdown]
# ## A long word, pair by pair
#
# When the lowest rank is rare, only the places where it stands should be touched. In a table where both parts of a pair
# are older than the pair, a merge of rank $r$ can only bring forth pairs of ranks above $r$. So the ranks come in order,
# and three things follow.
#
# 1. Pairs can wait in one bucket per rank, and the buckets be emptied in order: no priority queue.
# 2. All pairs of one rank can be merged in one go, by the same law.
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
    rank = look(pairs, cells[i, TOKEN], cells[j, TOKEN]) if j != NONE else NOTHING
    if rank == NOTHING: return
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
def empty_bucket(cells, heads, flags, pairs, rank, new):
    "Merge all pairs of one rank, each run of equal tokens from its beginning."
    while heads[rank] != NONE:
        i = heads[rank]
        while cells[i, BEFORE] != NONE and cells[cells[i, BEFORE], RANK] == rank: i = cells[i, BEFORE]
        while i != NONE and cells[i, RANK] == rank:
            following = cells[cells[i, AFTER], AFTER]
            join(cells, heads, flags, pairs, i, new)
            i = following


# %%
#| export
@njit
def merge_rare(tokens, n, heads, flags, pairs, made):
    "Merge `tokens[:n]` in place, pair by pair in the order of ranks; how many are left."
    cells = np.empty((n, 6), np.int32)
    for i in range(n):
        cells[i, TOKEN], cells[i, BEFORE], cells[i, AFTER] = tokens[i], i - 1, i + 1 if i + 1 < n else NONE
        cells[i, RANK] = NONE
        if i > 0: wait(cells, heads, flags, pairs, i - 1)
    for flag in range(len(flags)):
        if flags[flag]:
            for rank in range(flag << 6, min((flag + 1) << 6, len(heads))):
                empty_bucket(cells, heads, flags, pairs, rank, made[rank])
            flags[flag] = 0
    left = 0
    for i in range(n):
        if cells[i, TOKEN] != NONE:
            tokens[left] = cells[i, TOKEN]
            left += 1
    return left


# %%
#| export
@njit(cache=True)
def merge_long(tokens, n, heads, flags, pairs, made):
    "Merge `tokens[:n]` in place, lowest rank first; how many are left."
    left = np.empty(1, np.int64)
    while True:
        rank, i, count = lowest_rank(tokens, n, pairs)
        if rank == NOTHING: return n
        if count*RARE < n: return merge_rare(tokens, n, heads, flags, pairs, made)
        _sweep(n, tokens[i], tokens[i + 1], made[rank], tokens, left)
        n = left[0]


# %% [markdown]
# The same results, on all words of up to eight letters `a` and `b`:

# %%
import itertools
queue = buckets(3)
for n in range(1, 9):
    for word in itertools.product([97, 98], repeat=n):
        one, two, three = np.array(word), np.array(word, np.int32), np.array(word, np.int32)
        short = merge_short(one, ranks_of(one), place, n, pairs, made)
        long, rare = merge_long(two, n, *queue, pairs, made), merge_rare(three, n, *queue, pairs, made)
        assert one[:short].tolist() == two[:long].tolist() == three[:rare].tolist()

# %% [markdown]
# ## A word
#
# Most questions are about two bytes that stand side by side in a word. For these there is a table without hashing,
# `first`; the part of it that text needs fits into the fastest memory.

# %%
#| export
SHORT = 128  # bytes: longer words go through sweeps and buckets

def first_ranks(byte_ids: np.ndarray, merges: np.ndarray) -> np.ndarray:  # int32 (256, 256)
    "The rank of the pair of any two bytes; -1 if it is not in the table."
    first, byte = np.full((256, 256), -1, np.int32), {int(i): b for b, i in enumerate(byte_ids)}
    for rank, (a, b, _) in enumerate(merges.tolist()):
        if a in byte and b in byte: first[byte[a], byte[b]] = rank
    return first

@njit
def scratch():
    "Space for `merge_word` to work in."
    return np.empty(SHORT, np.int64), np.empty(SHORT, np.int64), np.empty(1, np.int64)

@njit
def merge_word(text, i, size, byte_ids, first, pairs, made, tokens, ranks, place, heads, flags, out, at):
    "Merge the word `text[i:i + size]` into `out` from `at` on; how many tokens there are."
    if size > SHORT:
        long = out[at:at + size]
        for k in range(size): long[k] = byte_ids[text[i + k]]
        return merge_long(long, size, heads, flags, pairs, made)
    for k in range(size): tokens[k] = byte_ids[text[i + k]]
    for k in range(size - 1):
        rank = first[text[i + k], text[i + k + 1]]
        ranks[k] = rank if rank >= 0 else NOTHING
    n = merge_short(tokens, ranks, place, size, pairs, made)
    for k in range(n): out[at + k] = tokens[k]
    return n


# %% [markdown]
# ## Pairs from tokens alone
#
# Some vocabularies list tokens in order, and not the pairs that they are made of. Those can be found again: run over
# a token's bytes, the merges of all earlier tokens leave the two parts.

# %%
#| export
@njit(nogil=True, cache=True)
def _pairs_of_tokens(text, ends, byte_ids, first, pairs, made, heads, flags, found):
    (tokens, ranks, place), out, start, count = scratch(), np.empty(len(text), np.int32), 0, 0
    for new in range(len(ends)):
        size = ends[new] - start
        if size > 1 and merge_word(text, start, size, byte_ids, first, pairs, made, tokens, ranks, place, heads, flags, out, 0) == 2:
            if size == 2: first[text[start], text[start + 1]] = count
            found[count, 0], found[count, 1], found[count, 2] = out[0], out[1], new
            insert(pairs, out[0], out[1], count)
            made[count] = new
            count += 1
        start = ends[new]
    return count

def pairs_of_tokens(text: np.ndarray, ends: np.ndarray,
                    byte_ids: np.ndarray) -> np.ndarray:  # int32 (pairs, 3)
    "The pairs that make tokens, which stand one behind another in `text` in the order of their ranks."
    found = np.empty((len(ends), 3), np.int32)
    return found[:_pairs_of_tokens(text, ends, byte_ids, np.full((256, 256), -1, np.int32), empty_table(len(ends)),
                                   np.empty(len(ends), np.int32), *buckets(len(ends)), found)]


# %%
pairs_of_tokens(np.frombuffer(b'abc' + b'ab' + b'abc', np.uint8), np.array([1, 2, 3, 5, 8]),
                np.arange(256, dtype=np.int32)).tolist()

# %% [markdown]
# ## What this does not show
#
# The long way is correct only for tables in which both parts of every pair are older than the pair; the vocabulary's
# page refuses others.
