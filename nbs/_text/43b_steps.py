# %%
#| default_exp tokenizer.steps

# %% [markdown]
# # The inner step
# > Find the lowest rank, merge, close the gap: what the engine does to its arrays, proved for every size.

# %% [markdown]
# The specification takes one step at a time: it finds the leftmost pair of the lowest rank and makes it one token. The
# engine takes the same step on an array, some hundred million times a minute. The three loops of that step are kernels:
# they stay inside their arrays for every size, and what they leave there is what the contract at their end says. So is the loop
# that merges a pair everywhere in one go.

# %%
#| hide
#| export
from bendml.kernel import Buf, Size, decreases, ensures, i32, i64, invariant, kernel, requires
from bendml.kernel.functional import old
from bendml.laws import Array, pure, select


# %% [markdown]
# ## The lowest rank
#
# Of all pairs, the lowest; of several that are equally low, the leftmost: everything before it is higher.

# %%
#| export
@kernel
def lowest(n: Size, ranks: Buf["n", i64], place: Buf["1", i64]):
    "Where the first of the lowest of `ranks` is."
    requires(0 < n)
    best, low = 0, ranks[0]
    for k in range(1, n):
        invariant(0 <= best)
        invariant(best < k)
        invariant(low == ranks[best])
        invariant(all(ranks[best] <= ranks[x] for x in range(k)))
        invariant(all(ranks[best] < ranks[x] for x in range(best)))
        if ranks[k] < low: best, low = k, ranks[k]
    place[0] = best
    ensures(0 <= place[0])
    ensures(place[0] < n)
    ensures(all(ranks[place[0]] <= ranks[x] for x in range(n)))
    ensures(all(ranks[place[0]] < ranks[x] for x in range(place[0])))


# %%
lowest.proof


# %% [markdown]
# ## Merging in place
#
# The tokens at $k$ and $k + 1$ become one, everything before stays, and everything behind moves one place to the left. On lists
# that is the specification's `merge_one` with the pair at place $k$. The last cell is left as it was; it no longer counts.

# %%
#| export
@kernel
def merge_at(n: Size, k: Size, new: int, tokens: Buf["n", i64]):
    "Make the tokens at `k` and `k + 1` one, and close the gap."
    requires(k + 1 < n)
    tokens[k] = new
    for j in range(k + 1, n - 1):
        invariant(tokens[k] == new)
        invariant(all(tokens[x] == old(tokens)[x] for x in range(k)))
        invariant(all(tokens[x] == old(tokens)[x + 1] for x in range(k + 1, j)))
        invariant(all(tokens[x] == old(tokens)[x] for x in range(j, n)))
        tokens[j] = tokens[j + 1]
    ensures(tokens[k] == new)
    ensures(all(tokens[x] == old(tokens)[x] for x in range(k)))
    ensures(all(tokens[x] == old(tokens)[x + 1] for x in range(k + 1, n - 1)))


# %%
merge_at.proof


# %% [markdown]
# And the ranks of the pairs close the gap in the same way, before the two ranks beside it are looked up anew.

# %%
#| export
@kernel
def close_gap(n: Size, k: Size, ranks: Buf["n", i64]):
    "Move everything behind `k` one place to the left."
    requires(k < n)
    for j in range(k, n - 1):
        invariant(all(ranks[x] == old(ranks)[x] for x in range(k)))
        invariant(all(ranks[x] == old(ranks)[x + 1] for x in range(k, j)))
        invariant(all(ranks[x] == old(ranks)[x] for x in range(j, n)))
        ranks[j] = ranks[j + 1]
    ensures(all(ranks[x] == old(ranks)[x] for x in range(k)))
    ensures(all(ranks[x] == old(ranks)[x + 1] for x in range(k, n - 1)))


# %%
close_gap.proof


# %% [markdown]
# ## Every occurrence
#
# In a long word of few letters, one pair is everywhere. Then one loop goes from left to right, with one place to read from and
# another, never ahead of it, to write to. What it leaves is said by two functions of the tokens $x$ as they were: `origin`, where the
# token at place $k$ comes from, and `swept`, what it is.

# %%
#| export
@pure
def pair_at(x: Array[int, int], n: int, a: int, b: int, i: int) -> bool:
    "Of the first n tokens, is the one at i an a and the next a b?"
    return i + 1 < n and select(x, i) == a and select(x, i + 1) == b

@pure(measure='k')
def origin(x: Array[int, int], n: int, a: int, b: int, k: int) -> int:
    "Where the k-th token that is left comes from: one place on from the last, or two behind a pair."
    if k <= 0: return 0
    return origin(x, n, a, b, k - 1) + (2 if pair_at(x, n, a, b, origin(x, n, a, b, k - 1)) else 1)

@pure
def swept(x: Array[int, int], n: int, a: int, b: int, new: int, k: int) -> int:
    "The k-th token that is left: the new one where a pair was."
    return new if pair_at(x, n, a, b, origin(x, n, a, b, k)) else select(x, origin(x, n, a, b, k))


# %%
#| export
@kernel
def sweep(n: Size, a: int, b: int, new: int, tokens: Buf["n", i32], left: Buf["1", i64]):
    "Every `a` followed by `b` becomes `new`, from left to right; `left`: how many tokens there are then."
    requires(0 <= new)
    requires(new < 2**31)
    i, k = 0, 0
    while i < n:
        decreases(n - i)
        invariant(0 <= k)
        invariant(k <= i)
        invariant(i <= n)
        invariant(i == origin(old(tokens), n, a, b, k))
        invariant(all(tokens[x] == swept(old(tokens), n, a, b, new, x) for x in range(k)))
        invariant(all(tokens[x] == old(tokens)[x] for x in range(i, n)))
        if i + 1 < n and i64(tokens[i]) == a and i64(tokens[i + 1]) == b:
            tokens[k] = new
            i += 2
        else:
            tokens[k] = i64(tokens[i])
            i += 1
        k += 1
    left[0] = k
    ensures(left[0] <= n)
    ensures(origin(old(tokens), n, a, b, left[0]) == n)
    ensures(all(tokens[x] == swept(old(tokens), n, a, b, new, x) for x in range(left[0])))


# %%
sweep.proof

# %% [markdown]
# ## The same steps on lists
#
# Read off an array, the results are the lists that the specification gives, `merge_one` and `merge`. Here on all texts of five
# letters `a` and `b`:

# %%
import itertools
import numpy as np
from bendml.bpe import B, merge
from bendml.laws import Nil, to_list
from bendml.bpe.ranks import merge_one

def values(s): return [] if s == Nil() else [s.head.n if isinstance(s.head, B) else 256 + s.head.k, *values(s.tail)]

for word in itertools.product([97, 98], repeat=5):
    listed, pairs = to_list([B(n) for n in word]), list(zip(word, word[1:]))
    for a, b in set(pairs):
        one, all_of_them, left = np.array(word), np.array(word, np.int32), np.empty(1, np.int64)
        merge_at(5, pairs.index((a, b)), 256, one)
        sweep(5, a, b, 256, all_of_them, left)
        assert one[:4].tolist() == values(merge_one(0, B(a), B(b), listed))
        assert all_of_them[:left[0]].tolist() == values(merge(0, B(a), B(b), listed))

# %% [markdown]
# ## What this does not show
#
# Four loops of the engine have a contract that is proved: `lowest`, `merge_at`, `close_gap` and `sweep`. Each contract speaks of
# its loop alone, and of arrays; that arrays and lists agree is checked above on short texts. That the engine calls them in the
# right order, looks the right pairs up between them, and gives them arrays that are long enough, is tested on ten thousand tables
# and texts, not proved.
#
# All other compiled loops of the tokenizer are no kernels, and are tested only.
#
# - Splitting (`split_words`, page 42) looks characters up in a table by numbers that it reads from the text.
# - The table of words (`find`, `add`, `move`, page 43) reads eight bytes at once from any place, which a buffer of single bytes
#   does not describe; and its hash is made of products that are meant to overflow.
# - Looking a pair up (`look`, `insert`, and `lowest_rank`, which calls it, page 44) has such a product as well, and goes on until it
#   meets a free slot: that there is one is a matter of how the table was filled.
# - Merging by buckets (`merge_rare`, page 44) and training (`merge_all`, page 45) follow places that stand in arrays.
# - The loops over words and texts (`merge_word`, `encode_words`, `encode_texts`, `count_words`, pages 44, 44b and 44c) pass slices
#   and records of arrays from one of these to the next.
