# %%
#| default_exp tokenizer.train

# %% [markdown]
# # Training
# > Merge the most frequent pair, again and again, without looking at the text again.

# %% [markdown]
# The specification counts all pairs, merges the most frequent one everywhere, and counts anew. On ten megabytes and
# five thousand merges that is hours. This page computes the same merges in a fraction of a second, from three
# observations.
#
# 1. Words repeat. Every distinct word is kept once, with its number of occurrences; the page before counts them.
# 2. A merge changes only the pairs beside it. So counts are corrected, not computed anew.
# 3. A pair's occurrences all come to be in one step, that in which the younger of its two tokens comes to be. From
#    then on its count only falls, and its first occurrence only moves back. So a list of places, made once, serves
#    for good; places that have gone are skipped. And the best pair can be kept on a heap whose entries are corrected
#    only when they come up.
#
# The tie rule is the specification's. Among the most frequent pairs, the one that appears first in the text as it
# stands. The first occurrence of a pair lies in the first occurrence of its word; with the words in the order in
# which they first appear, "first in the text" is "first in the list of words".

# %%
#| hide
#| export
from typing import NamedTuple

import numpy as np
from numba import njit

from bendml.tokenizer.merge import _pair, _slot


# %% [markdown]
# ## The text as it is being merged
#
# All words stand one behind another in an array with one cell a byte. A token stands in the first of its cells; the
# second and the last hold minus its length, so that the neighbours on both sides can be found. One bit a cell says
# whether a word begins there; that, with the number of words before every 64th cell, also tells which word a place is
# in, and so how much an occurrence counts.

# %%
#| export
class Text(NamedTuple):
    "The distinct words as tokens, and how often each occurs."
    tokens: np.ndarray  # int32 (cells,): a token, or minus its length
    begins: np.ndarray  # uint64 (cells//64 + 1,): a bit for each cell, and one behind the last: a word begins here
    number: np.ndarray  # int32 (cells//64 + 1,): how many words begin before these 64 cells
    counts: np.ndarray  # int64 (words,)

@njit(cache=True)
def _mark(ends, begins, number):
    begins[0] = 1
    for end in ends: begins[end >> 6] |= np.uint64(1) << np.uint64(end & 63)
    for k in range(1, len(number)): number[k] = number[k - 1] + _ones(begins[k - 1])

def as_text(words: np.ndarray, ends: np.ndarray, counts: np.ndarray) -> Text:
    "What `WordCounter.result` gives, ready to be merged."
    if len(words) >= 2**31:
        raise ValueError('too much text to train on\n- expected : fewer than 2**31 bytes in distinct words\n'
                         f'- observed : {len(words)}')
    blocks = len(words)//64 + 1
    text = Text(words.astype(np.int32), np.zeros(blocks, np.uint64), np.zeros(blocks, np.int32), counts.copy())
    _mark(ends, text.begins, text.number)
    return text


# %%
#| export
@njit
def _ones(x):
    "How many bits of a number are 1; the compiler knows this as one instruction."
    x = x - (x >> np.uint64(1) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + (x >> np.uint64(2) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64(x*np.uint64(0x0101010101010101) >> np.uint64(56))

@njit
def begins(text, i):
    "Does a word begin at cell `i`, or the text end?"
    return text.begins[i >> 6] >> np.uint64(i & 63) & np.uint64(1) != 0

@njit
def weight(text, i):
    "How often the word occurs that cell `i` is in."
    upto = text.begins[i >> 6] << np.uint64(63 - (i & 63))
    return text.counts[text.number[i >> 6] + _ones(upto) - 1]


# %%
#| export
@njit
def after(text, i):
    "The place of the next token of the word, or -1."
    j = i + 1
    if begins(text, j): return -1
    if text.tokens[j] < 0: j = i - text.tokens[j]
    return -1 if begins(text, j) else j

@njit
def before(text, i):
    "The place of the token before, in the same word, or -1."
    if begins(text, i): return -1
    return i - 1 if text.tokens[i - 1] >= 0 else i + text.tokens[i - 1]

@njit
def fuse(tokens, i, j, new):
    "Make the tokens at `i` and `j`, neighbours, one."
    end = j + 1 if j + 1 == len(tokens) or tokens[j + 1] >= 0 else j - tokens[j + 1]
    tokens[i] = new
    tokens[i + 1] = tokens[j] = tokens[end - 1] = i - end


# %% [markdown]
# ## Pairs
#
# What is known of each pair that ever was: its two tokens, its count, which slice of `places` lists its occurrences,
# and what the heap believes of it. `index`, a table of their numbers, finds a pair by its tokens.

# %%
#| export
LEFT, RIGHT, COUNT, BEGIN, END, BELIEVED, FIRST = range(7)  # the columns of `pairs`, int64 (pairs, 7)

@njit
def number_of(index, pairs, a, b):
    "The number of a pair, or -1."
    k = _slot(_pair(a, b), index)
    while index[k] >= 0:
        if pairs[index[k], LEFT] == a and pairs[index[k], RIGHT] == b: return np.int64(index[k])
        k = (k + 1) & len(index) - 1
    return np.int64(-1)

@njit
def list_pairs(first, last, pairs, index):
    "Put the pairs from number `first` to before `last` into the index."
    for q in range(first, last):
        k = _slot(_pair(pairs[q, LEFT], pairs[q, RIGHT]), index)
        while index[k] >= 0: k = (k + 1) & len(index) - 1
        index[k] = q

@njit
def first_place(pairs, p, places, text):
    "The first occurrence of a pair that is still there."
    tokens = text.tokens
    while True:
        i = places[pairs[p, BEGIN]]
        j = after(text, i) if tokens[i] == pairs[p, LEFT] else -1
        if j >= 0 and tokens[j] == pairs[p, RIGHT]: return i
        pairs[p, BEGIN] += 1

@njit
def better(pairs, p, q):
    "Is `p` to be merged before `q`, by what the heap believes: more frequent, or as frequent and earlier?"
    if pairs[p, BELIEVED] != pairs[q, BELIEVED]: return pairs[p, BELIEVED] > pairs[q, BELIEVED]
    return pairs[p, FIRST] < pairs[q, FIRST]


# %% [markdown]
# The heap is a binary one, of the pairs' numbers.

# %%
#| export
@njit
def rise(heap, k, pairs):
    "Move the pair at `k` up to where it belongs."
    while k > 0 and better(pairs, heap[k], heap[(k - 1)//2]):
        heap[k], heap[(k - 1)//2] = heap[(k - 1)//2], heap[k]
        k = (k - 1)//2

@njit
def sink(heap, n, pairs):
    "Move the pair at the top down to where it belongs."
    k = 0
    while 2*k + 1 < n:
        child = 2*k + 1
        if child + 1 < n and better(pairs, heap[child + 1], heap[child]): child += 1
        if not better(pairs, heap[child], heap[k]): return
        heap[k], heap[child] = heap[child], heap[k]
        k = child

@njit
def most_frequent(heap, n, pairs, places, text):
    "Bring the pair to merge next to the top; the size of the heap. Pairs that are gone are dropped."
    while n > 0:
        p = heap[0]
        if pairs[p, COUNT] == 0:
            n -= 1
            heap[0] = heap[n]
        else:
            first = first_place(pairs, p, places, text)
            if pairs[p, BELIEVED] == pairs[p, COUNT] and pairs[p, FIRST] == first: return n
            pairs[p, BELIEVED], pairs[p, FIRST] = pairs[p, COUNT], first
        sink(heap, n, pairs)
    return n


# %% [markdown]
# ## One merge
#
# First, every occurrence of the pair is fused, from left to right, and the pairs beside it lose what they had there.
# The places of the fused tokens are kept where the list of the pair was. A neighbour that is the new token itself was
# dealt with a moment ago.

# %%
#| export
@njit
def fuse_all(p, new, pairs, places, text, index):
    "Merge every occurrence of a pair; how many there were. Their places are now first in the pair's list."
    tokens = text.tokens
    a, b, fused = pairs[p, LEFT], pairs[p, RIGHT], 0
    for k in range(pairs[p, BEGIN], pairs[p, END]):
        i = places[k]
        j = after(text, i) if tokens[i] == a else -1
        if j < 0 or tokens[j] != b: continue
        times, left, right = weight(text, i), before(text, i), after(text, j)
        if left >= 0 and tokens[left] != new:
            pairs[number_of(index, pairs, tokens[left], a), COUNT] -= times
        if right >= 0: pairs[number_of(index, pairs, b, tokens[right]), COUNT] -= times
        fuse(tokens, i, j, new)
        places[pairs[p, BEGIN] + fused] = i
        fused += 1
    pairs[p, COUNT] = 0
    return fused


# %% [markdown]
# Then the pairs of the new token are found, beside each of those places. `known` tells which pair a neighbour makes
# with the new token, before it and behind it. The lists are laid out by counting first and filling afterwards, so
# that each is in the order of the text.

# %%
#| export
@njit
def neighbours(p, fused, new, pairs, places, text, known, number, fill):
    "Count (or, if `fill`, list) the occurrences of the new token's pairs; how many pairs there are."
    tokens = text.tokens
    for k in range(pairs[p, BEGIN], pairs[p, BEGIN] + fused):
        i = places[k]
        for side in range(2):
            start = before(text, i) if side == 0 else i
            if start < 0 or side == 0 and tokens[start] == new: continue
            end = after(text, start)
            if end < 0: continue
            x = tokens[start] if side == 0 else tokens[end]
            q = known[side, x]
            if q < 0:
                q = known[side, x] = number
                pairs[q, LEFT], pairs[q, RIGHT] = tokens[start], tokens[end]
                pairs[q, COUNT] = pairs[q, END] = 0
                number += 1
            if fill: places[pairs[q, END]] = start
            else: pairs[q, COUNT] += weight(text, i)
            pairs[q, END] += 1
    return number

@njit
def lay_out(first, number, used, pairs):
    "Give each new pair a slice of `places`, one for each occurrence; how many places are then used."
    for q in range(first, number):
        length = pairs[q, END]
        pairs[q, BEGIN] = pairs[q, END] = used
        used += length
    return used


# %% [markdown]
# The lists of old pairs only shrink. When space runs out, what is gone is squeezed out. No place is in two lists, so
# that what is left always fits.

# %%
#| export
@njit
def squeeze(number, pairs, places, text, p, fused):
    "Drop from all lists what is gone (of `p`, keep what was just fused); how many places are in use."
    tokens, used = text.tokens, 0
    for q in range(number):
        begin = used
        end = pairs[q, BEGIN] + fused if q == p else pairs[q, END] if pairs[q, COUNT] else 0
        for k in range(pairs[q, BEGIN], end):
            i = places[k]
            j = after(text, i) if tokens[i] == pairs[q, LEFT] else -1
            if q == p or j >= 0 and tokens[j] == pairs[q, RIGHT]:
                places[used] = i
                used += 1
        pairs[q, BEGIN], pairs[q, END] = begin, used
    return used


# %% [markdown]
# ## All merges
#
# The first pairs are those of bytes. Their rows are made for many more to come, since what is not written to takes no memory;
# should they not do, twice as many are made. And as the text gets shorter, so do the lists of places.

# %%
#| export
@njit
def first_pairs(text, places):
    "The pairs of bytes in the order in which they first appear, with their lists; how many there are."
    tokens = text.tokens
    known, number = np.full((256, 256), -1, np.int32), 0
    pairs = np.empty((len(tokens)//4 + (1 << 17), 7), np.int64)
    for fill in range(2):
        for i in range(len(tokens) - 1):
            if begins(text, i + 1): continue
            q = known[tokens[i], tokens[i + 1]]
            if q < 0:
                q = known[tokens[i], tokens[i + 1]] = number
                pairs[q, LEFT], pairs[q, RIGHT] = tokens[i], tokens[i + 1]
                pairs[q, COUNT] = pairs[q, END] = 0
                number += 1
            if fill: places[pairs[q, END]] = i
            else: pairs[q, COUNT] += weight(text, i)
            pairs[q, END] += 1
        if not fill: lay_out(0, number, 0, pairs)
    return pairs, number

@njit
def resized(array, length, used):
    "The first `used` rows of an array, in one of another length."
    other = np.empty((length, array.shape[1]), array.dtype)
    other[:used] = array[:used]
    return other

@njit
def enter(first, number, pairs, places, text, index, heap, size):
    "Put new pairs into the index and on the heap; the size of the heap."
    list_pairs(first, number, pairs, index)
    for q in range(first, number):
        pairs[q, BELIEVED], pairs[q, FIRST] = pairs[q, COUNT], first_place(pairs, q, places, text)
        heap[size, 0] = q
        rise(heap[:, 0], size, pairs)
        size += 1
    return size


# %%
#| export
@njit(nogil=True, cache=True)
def merge_all(text, merges, progress):
    "Fill `merges`; how many before the pairs run out. `progress`: merges done; set from outside: stop."
    places = np.empty(len(text.tokens) + len(text.tokens)//16 + 1024, np.int32)
    pairs, number = first_pairs(text, places)
    used = pairs[number - 1, END] if number else 0
    known = np.full((2, 256 + len(merges)), -1, np.int32)
    index, heap = np.full(1 << 18, -1, np.int32), np.empty((len(pairs), 1), np.int32)
    size = enter(0, number, pairs, places, text, index, heap, 0)
    for done in range(len(merges)):
        size = most_frequent(heap[:, 0], size, pairs, places, text)
        if size == 0 or progress[1]: return done
        p, new = heap[0, 0], 256 + done
        merges[done, 0], merges[done, 1] = pairs[p, LEFT], pairs[p, RIGHT]
        fused = fuse_all(p, new, pairs, places, text, index)
        if used + 2*fused > len(places):
            used = squeeze(number, pairs, places, text, p, fused)
            room = (used + 2*fused)*5//4 + 1024
            if room < len(places)*3//4: places = places[:room].copy()
        most = number + 2*min(fused, new) + 2  # pairs that there may be after this merge
        if most > len(pairs): pairs, heap = resized(pairs, 2*most, number), resized(heap, 2*most, size)
        if 4*most > 3*len(index):
            slots = len(index)
            while 4*most > 3*slots: slots *= 2
            index = np.full(slots, -1, np.int32)
            list_pairs(0, number, pairs, index)
        first, number = number, neighbours(p, fused, new, pairs, places, text, known, number, False)
        used = lay_out(first, number, used, pairs)
        neighbours(p, fused, new, pairs, places, text, known, number, True)
        size = enter(first, number, pairs, places, text, index, heap, size)
        for q in range(first, number):
            side = int(pairs[q, LEFT] == new)
            known[side, pairs[q, RIGHT] if side else pairs[q, LEFT]] = -1
        progress[0] = done + 1
    return len(merges)


# %%
#| export
def train_words(
    text: Text,
    merges: int,                         # how many at most
    progress: np.ndarray | None = None,  # int64 (2,): merges done; whether to stop
) -> np.ndarray:                         # int32 (merges, 2): token 256 + k is made of the two in row k
    "The merges that the specification's `train` finds. Uses the text up."
    found = np.empty((merges, 2), np.int32)
    return found[:merge_all(text, found, np.zeros(2, np.int64) if progress is None else progress)]


# %% [markdown]
# The textbook example, without words, and then words of a text:

# %%
one = np.frombuffer(b'aaabdaaabac', np.uint8)
train_words(as_text(one, np.array([11]), np.array([1])), 3).tolist()

# %%
from bendml.tokenizer.counting import WordCounter
counter = WordCounter()
counter.add(b'the cat and the dog and the cow')
train_words(as_text(*counter.result()), 4).tolist()


# %% [markdown]
# ## The same as a plain loop
#
# What all this replaces, word for word: count, take the most frequent (a dictionary remembers what came first, and
# `max` takes the first of equals), merge everywhere.

# %%
def plain(words, merges):
    words, found = [list(w) for w in words], []
    for new in range(256, 256 + merges):
        counts = {}
        for w in words:
            for pair in zip(w, w[1:]): counts[pair] = counts.get(pair, 0) + 1
        if not counts: break
        a, b = max(counts, key=counts.get)
        found.append([a, b])
        for w in words:
            i = 0
            while i < len(w) - 1:
                if w[i] == a and w[i + 1] == b: w[i:i + 2] = [new]
                i += 1
    return found


# %%
from bendml.tokenizer.split import split
for sample in (b'aaaaaaa aaaa aaa', b'ab abab ababab ba',
               'the café, the CAFÉ and the cafés; cafés!'.encode(), bytes(range(50))*2):
    counter = WordCounter()
    counter.add(sample)
    assert train_words(as_text(*counter.result()), 50).tolist() == plain(split(sample), 50)

# %% [markdown]
# ## What this does not show
#
# That these loops compute the specification's merges is tested, not proved. And a merge that occurs once is still a
# merge: like the specification, training stops only when no pair is left or the vocabulary is full.
