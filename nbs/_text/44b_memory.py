# %%
#| default_exp tokenizer.memory

# %% [markdown]
# # A text, word by word
# > Words that are tokens are looked up, words met before are remembered, and only the others are merged.

# %% [markdown]
# A megabyte of text has two hundred thousand words, of which ten thousand are different, and half of those are tokens as
# they stand. So the loop over a text merges few of them; most of its time goes into finding words in two tables.

# %%
#| hide
#| export
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numba import njit, types
from numba.extending import intrinsic

from bendml.tokenizer.chars import PAD, padded
from bendml.tokenizer.merge import BITS, buckets, first_ranks, merge_word, pair_table, scratch
from bendml.tokenizer.split import BLOCK, split_words
from bendml.tokenizer.words import SIZE, VALUE, add, find, move, put, words


# %% [markdown]
# ## Words that are tokens
#
# A word that is a token need not be merged: look it up. But a token need not be
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
    slots: np.ndarray     # of a table of words; value: how many tokens << 42 | the tokens if one or two, else where they are in `known`
    pool: np.ndarray      # uint8: copies of words longer than 16 bytes
    known: np.ndarray     # int32: tokens
    fill: np.ndarray      # int64 (4,): slots of the table; words; bytes of the pool, and tokens, in use
    heads: np.ndarray     # `Buckets`
    flags: np.ndarray

IN_TABLE, WORDS, IN_POOL, KNOWN = range(4)

def memory(merges: int, slots: int = 1 << 17, at_first: int = 1 << 14) -> Memory:
    "An empty memory for a table with so many merges; `slots`, a power of two from 64 on, and how many of them at first."
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
    start = fill[IN_POOL]
    if size > 16:
        for k in range(size): pool[start + k] = text[i + k]
        fill[IN_POOL] += size
    if n <= 2: value = np.int64(out[at]) | (np.int64(out[at + 1]) << BITS if n == 2 else 0)
    else:
        value = fill[KNOWN]
        for k in range(n): known[value + k] = out[at + k]
        fill[KNOWN] += n
    put(slots, slot, text, i, size, start, np.uint64(n << 2*BITS | value))
    fill[WORDS] += 1


# %% [markdown]
# The loop takes the arrays out of their records once: inside, each record would cost more than the word. Nine words of ten have
# one or two tokens, and which of the two cannot be foreseen; so both cells are written, and the next word writes over what was
# too much. There is room, since such a word has two bytes or more.

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
                many, start = value >> 2*BITS, value & (1 << 2*BITS) - 1
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
                elif many <= 2: out[count], out[count + 1] = start & (1 << BITS) - 1, start >> BITS
                else:
                    for j in range(many): out[count + j] = known[start + j]
                count += many
            i = ends[k]


# %% [markdown]
# ## Many texts, several threads
#
# Each thread makes one call and does not hold Python's lock meanwhile. A counter that all threads share hands the texts
# out: whoever is ready takes the next few. The processor adds to it in one indivisible step, for which numba has no
# word, so we tell the compiler. Each thread writes the ids of its texts into an array of its own, one text behind another, and
# notes where they are.

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
def encode_texts(text, starts, ends, counter, step, me, places, pattern, tables, memory, out):
    "Encode texts that no other thread has taken, `step` at a time, until none is left; `places`: who did it, and from where to where."
    at, first = 0, _take(counter, step)
    while first < len(starts):
        for k in range(first, min(first + step, len(starts))):
            _, count = encode_words(text, starts[k], ends[k], ends[k], pattern, tables, memory, out[at:])
            places[k, 0], places[k, 1], places[k, 2] = me, at, at + count
            at += count
        first = _take(counter, step)


# %%
from bendml.tokenizer.chars import class_table
from bendml.tokenizer.split import GPT2
text = padded(b'aaab daaab aaab')
example = tables(class_table(False), np.arange(256, dtype=np.int32), np.array([(97, 97, 256), (256, 97, 257), (257, 98, 258)]))
out = np.empty(len(text), np.int32)
stopped, count = encode_words(text, 0, 15, 15, GPT2, tuple(example), tuple(memory(3, 64)), out)
stopped, out[:count]

# %% [markdown]
# ## What this does not show
#
# That these loops together do what the specification says is tested, not proved: on ten thousand random tables and texts,
# and against tiktoken. How fast they are, `python tests/bench_tokenizer.py` tells.
