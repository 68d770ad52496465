# %%
#| default_exp tokenizer.steps

# %% [markdown]
# # The inner step
# > Find the lowest rank, merge, close the gap: what the engine does to its arrays, proved for every size.

# %% [markdown]
# The specification takes one step at a time: it finds the leftmost pair of the lowest rank and makes it one token. The
# engine takes the same step on an array, some hundred million times a minute. The three loops of that step are kernels:
# they stay inside their arrays for every size, and what they leave there is what the contract at their end says.

# %%
#| hide
#| export
from bendml.kernel import Buf, Size, ensures, i64, invariant, kernel, requires
from bendml.kernel.functional import old


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
# ## The same step on lists
#
# Read off an array, the result is the list that the specification gives. Here on all texts of four letters `a` and `b`:

# %%
import itertools
import numpy as np
from bendml.bpe import B, M
from bendml.laws import Cons, Nil, to_list
from bendml.bpe.ranks import merge_one

def values(s): return [] if s == Nil() else [s.head.n if isinstance(s.head, B) else 256 + s.head.k, *values(s.tail)]

for word in itertools.product([97, 98], repeat=4):
    if (97, 98) not in zip(word, word[1:]): continue
    k, tokens = list(zip(word, word[1:])).index((97, 98)), np.array(word)
    merge_at(4, k, 256, tokens)
    assert tokens[:3].tolist() == values(merge_one(0, B(97), B(98), to_list([B(n) for n in word])))

# %% [markdown]
# ## What this does not show
#
# The contracts speak of these loops, each alone. That the engine calls them in the right order, and looks the right pairs
# up between them, is tested on ten thousand tables and texts, not proved.
#
# The tokenizer's other compiled loops are no kernels, and are tested only: splitting (42) and the table of words (43) read eight
# bytes at once from any place, which a buffer of single bytes does not describe; looking a pair up (44) hashes it, with products
# that are meant to overflow; buckets (44) and training (45) follow places that stand in arrays, whose bounds are a matter of how
# the arrays were filled; and the loop over a text (44b) passes its buffers from one of these to the next.
