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
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numba import njit, types
from numba.extending import intrinsic

from bendml.tokenizer.chars import PAD, padded
from bendml.tokenizer.split import BLOCK, split_words
from bendml.tokenizer.steps import close_gap, lowest, merge_at
from bendml.tokenizer.words import SIZE, VALUE, add, find, move, put, words

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
_lowest, _merge_at, _close_gap = lowest.inner, merge_at.inner, close_gap.inner  # compiled, to be called from compiled code

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
# `rank_all_is_in_order`. So as long as the lowest rank makes up a sixteenth of the word, read it from left to right and
# write it back shorter: `sweep` is the specification's `merge`, on an array.

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

@njit
def sweep(tokens, n, a, b, new):
    "Every `a` followed by `b` becomes `new`, from left to right; how many tokens are left."
    left = i = 0
    while i < n:
        hit = i + 1 < n and tokens[i] == a and tokens[i + 1] == b
        tokens[left] = new if hit else tokens[i]
        left, i = left + 1, i + 1 + hit
    return left


# %%
tokens = np.array(list(b'aaabdaaabac'), np.int32)
print(lowest_rank(tokens, 11, pairs))
tokens[:sweep(tokens, 11, 97, 97, 256)]

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
    while True:
        rank, i, count = lowest_rank(tokens, n, pairs)
        if rank == NOTHING: return n
        if count*RARE < n: return merge_rare(tokens, n, heads, flags, pairs, made)
        n = sweep(tokens, n, tokens[i], tokens[i + 1], made[rank])


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
# ## Words that are tokens
#
# Half of the words that a text has are one token. Instead of merging their bytes, look them up. But a token need not be
# what merging makes of its own bytes: with merges `a b`, `b c` and `a bc`, the text `abc` becomes `ab` and `c`, and never
# `abc`. So each token is merged once, and those that come out whole are kept. Some vocabularies say that words are looked
# up first whatever the merges say; their tokens are `forced`.

# %%
#| export
@njit(cache=True)
def _keep_whole(text, ends, forced, byte_ids, first, pairs, made, heads, flags, whole):
    slots, pool, word_ends, fill = whole
    (tokens, ranks, place), out, start = scratch(), np.empty(len(pool), np.int32), 0
    for token in range(len(ends)):
        size = ends[token] - start
        if size > 1 and (forced[token] or merge_word(text, start, size, byte_ids, first, pairs, made, tokens, ranks,
                                                     place, heads, flags, out, 0) == 1):
            add(slots, pool, word_ends, fill, find(slots, pool, text, start, size), text, start, size, token)
        start = ends[token]


# %%
#| export
class Tables(NamedTuple):
    "A vocabulary for the compiled loops. It never changes, so all threads read the same."
    classes: np.ndarray   # of characters
    byte_ids: np.ndarray  # int32 (256,): the token of each byte
    first: np.ndarray     # int32 (256, 256)
    pairs: np.ndarray     # int64 (slots,)
    made: np.ndarray      # int32 (merges,)
    whole: np.ndarray     # the slots of a table of words that are one token; value: the token
    pool: np.ndarray      # and its pool

def tables(classes: np.ndarray, byte_ids: np.ndarray, merges: np.ndarray, tokens: Sequence[bytes] = (),
           forced: Sequence[int] = ()) -> Tables:
    "The tables of a vocabulary."
    ends, whatever = np.cumsum([len(t) for t in tokens], dtype=np.int64), np.zeros(len(tokens), np.bool_)
    whatever[list(forced)] = True
    (pairs, made), whole = pair_table(merges), words(1 << (2*len(tokens) + 2).bit_length(), sum(map(len, tokens)))
    first = first_ranks(byte_ids, merges)
    _keep_whole(padded(b''.join(tokens)), ends, whatever, byte_ids, first, pairs, made, *buckets(len(made)), whole)
    return Tables(classes, byte_ids, first, pairs, made, whole.slots, whole.pool)


# %% [markdown]
# ## A text
#
# `Memory` is what one thread remembers: the words that it has met, and their tokens. Two threads never share one, so
# nothing needs a lock.

# %%
#| export
REMEMBERED = 256  # bytes: longer words are merged anew each time

class Memory(NamedTuple):
    "Words met before with their tokens; one thread's own."
    slots: np.ndarray     # of a table of words; value: how many tokens << 32 | the token, or where they are in `known`
    pool: np.ndarray      # uint8: copies of words longer than 16 bytes
    known: np.ndarray     # int32: tokens
    fill: np.ndarray      # int64 (4,): slots of the table; words; bytes of the pool, and tokens, in use
    heads: np.ndarray     # `Buckets`
    flags: np.ndarray

IN_TABLE, WORDS, IN_POOL, KNOWN = range(4)

def memory(merges: int, slots: int = 1 << 17, at_first: int = 1 << 14) -> Memory:
    "An empty memory for a table with so many merges."
    table, at_first = np.empty((slots, 4), np.uint64), min(slots, at_first)
    table[:at_first] = 0
    return Memory(table, np.empty(8*slots, np.uint8), np.empty(4*slots, np.int32), np.array([at_first, 0, 0, 0]), *buckets(merges))


# %% [markdown]
# The table begins small, so that a short text does not wait for the system to clear four megabytes. When it is three
# quarters full, it takes all of its slots; when that is full, or the space for copies or tokens, all words are forgotten.

# %%
#| export
@njit
def has_room(pool, known, fill, size, n):
    "Is there room for one more word, of `size` bytes and `n` tokens?"
    return 4*fill[WORDS] < 3*fill[IN_TABLE] and fill[IN_POOL] + size <= len(pool) and fill[KNOWN] + n <= len(known)

@njit(cache=True)
def make_room(slots, fill):
    "Take all slots, or forget all words."
    grows = fill[IN_TABLE] < len(slots)
    old = slots[:fill[IN_TABLE] if grows else 0].copy()
    if not grows: fill[:] = 0
    fill[IN_TABLE] = len(slots)
    slots[:] = 0
    move(old, slots)

@njit
def remember(slots, pool, known, fill, slot, text, i, size, out, at, n):
    "Put a new word and its tokens, `out[at:at + n]`, into their places."
    start, value = fill[IN_POOL], np.int64(out[at])
    if size > 16:
        for k in range(size): pool[start + k] = text[i + k]
        fill[IN_POOL] += size
    if n > 1:
        value = fill[KNOWN]
        for k in range(n): known[value + k] = out[at + k]
        fill[KNOWN] += n
    put(slots, slot, text, i, size, start, np.uint64(n << 32 | value))
    fill[WORDS] += 1


# %% [markdown]
# The loop takes the arrays out of their records once: inside, each record would cost more than the word.

# %%
#| export
@njit(nogil=True, cache=True)
def encode_words(text, i, n, bound, pattern, tables, memory, out):
    "Encode the words of `text[i:n]` that end by `bound` into `out`: where the last ends, how many tokens."
    classes, byte_ids, first, pairs, made, whole, whole_pool = tables
    slots, pool, known, fill, heads, flags = memory
    table, (tokens, ranks, place), count = slots[:fill[IN_TABLE]], scratch(), 0
    kinds, ends = np.empty(2*(BLOCK + PAD), np.uint8), np.empty(BLOCK + PAD, np.int64)
    while True:
        batch = split_words(text, i, n, bound, pattern, classes, kinds, ends)
        if batch == 0: return i, count
        for k in range(batch):
            size = ends[k] - i
            if size == 1:
                out[count] = byte_ids[text[i]]
                count += 1
            else:
                slot = find(table, pool, text, i, size)
                value = np.int64(table[slot, VALUE])
                many, start = value >> 32, value & 0xFFFFFFFF
                if table[slot, SIZE] == 0:
                    token = find(whole, whole_pool, text, i, size)
                    if whole[token, SIZE] != 0: out[count], many = whole[token, VALUE], 1
                    else: many = merge_word(text, i, size, byte_ids, first, pairs, made, tokens, ranks, place, heads, flags, out, count)
                    if size <= REMEMBERED:
                        while not has_room(pool, known, fill, size, many):
                            make_room(slots, fill)
                            table = slots
                            slot = find(table, pool, text, i, size)
                        remember(table, pool, known, fill, slot, text, i, size, out, count, many)
                elif many == 1: out[count] = start
                else:
                    for j in range(many): out[count + j] = known[start + j]
                count += many
            i = ends[k]


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
# ## Many texts, several threads
#
# Each thread makes one call and does not hold Python's lock meanwhile. A counter that all threads share hands the texts
# out: whoever is ready takes the next few. The processor adds to it in one indivisible step, for which numba has no
# word, so we tell the compiler. The ids of a text, never more than it has bytes, go to the same place in `out` as its
# bytes have in `text`, so that no two threads write to the same cells.

# %%
#| export
@intrinsic
def _take(typingctx, counter, count):
    "Add to `counter[0]`, indivisibly; what it was before."
    def codegen(context, builder, signature, args):
        array = context.make_array(signature.args[0])(context, builder, args[0])
        return builder.atomic_rmw('add', array.data, args[1], 'monotonic')
    return types.int64(counter, types.int64), codegen

@njit(nogil=True, cache=True)
def encode_texts(text, starts, ends, counter, step, counts, pattern, tables, memory, out):
    "Encode texts that no other thread has taken, `step` at a time, until none is left; `counts`: how many tokens each has."
    first = _take(counter, step)
    while first < len(starts):
        for k in range(first, min(first + step, len(starts))):
            counts[k] = encode_words(text, starts[k], ends[k], ends[k], pattern, tables, memory, out[starts[k]:])[1]
        first = _take(counter, step)


# %%
from bendml.tokenizer.chars import class_table
from bendml.tokenizer.split import GPT2
text = padded(b'aaab daaab aaab')
example = tables(class_table(False), np.arange(256, dtype=np.int32), np.array([(97, 97, 256), (256, 97, 257), (257, 98, 258)]))
out = np.empty(len(text), np.int32)
stopped, count = encode_words(text, 0, 15, 15, GPT2, example, memory(3, 64), out)
stopped, out[:count]

# %% [markdown]
# ## What this does not show
#
# The long way is correct only for tables in which both parts of every pair are older than the pair; the vocabulary's
# page refuses others. How fast all this is, `make bench` tells.
