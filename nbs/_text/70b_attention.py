# %%
#| default_exp attention

# %% [markdown]
# # Attention
# > How the words of a text look at each other: a weighted mean, told from zero.

# %% [markdown]
# "The trophy did not fit into the suitcase because it was too big." What was too big? To know what "it" means, one has to
# look at "trophy" and at "suitcase" and weigh them. A network that reads word by word, each by itself, cannot do that.
# *Attention* ([Vaswani and others 2017](https://arxiv.org/abs/1706.03762)) is the part where words meet, and it is a mean.
#
# Letters for sizes, here and on the pages about models: $T$ tokens of a text (a token is a word or a piece of one), $C$
# channels (the numbers that stand for one token), $H$ heads, $D$ numbers a head, $V$ tokens that there are. They stand in
# the signatures, and there they are no comments: `@typed` [checks](24_shape.ipynb) each function for all sizes, when it is
# defined.

# %%
#| hide
#| export
import math

import numpy as np
from numpy import float32

from bendml.shape import Arr, Mat, dims, typed

C, D, G, H, N, P, T = dims('C D G H N P T')


# %% [markdown]
# ## Weights that add up to one
#
# Numbers of any sign become weights: the exponential makes each positive, and dividing by the sum makes them add up to
# one. That is the **softmax**. A number that is larger by one has a weight that is larger 2.7 times.

# %%
#| export
def softmax(
    scores: np.ndarray,  # (..., T)
) -> np.ndarray:         # (..., T), positive, each row adds up to 1
    "Exponentials divided by their sum. The maximum is subtracted first: it changes nothing, and nothing overflows."
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights/weights.sum(axis=-1, keepdims=True)


# %%
print(softmax(np.array([1, 2, 3], float32)))
softmax(np.array([10_000, 9_999, 0], float32))


# %% [markdown]
# ## Queries, keys and values
#
# Each token asks a question, a row of $D$ numbers, the **query**. Each token also offers a **key**, to be found by, and a
# **value**, to be read. How well a query fits a key is their product; divided by $\sqrt D$ it stays in reasonable size
# when rows are long. The softmax of a query's scores are weights, and what the token takes away is the mean of the values
# with these weights:
#
# $$\mathrm{softmax}\Big(\frac{Q K^\top}{\sqrt D}\Big)\, V$$
#
# One more thing. The network is to guess how a text goes on, so a token must not look ahead. Scores above the diagonal
# become $-\infty$, and their weights zero: that is the **mask**. That it is the same as looking at a prefix is
# [proved](71b_kvarray.ipynb).
#
# All this happens $H$ times side by side. Each **head** has its own queries, keys and values, so that one can look for the
# verb while another looks for the comma. Newer models let a few heads share their keys and values, which makes what has
# to be remembered smaller; head $h$ of $H$ then reads the shared one number $\lfloor h G/H \rfloor$ of $G$.

# %%
#| export
@typed(where=['H % G == 0', 'N <= T'])
def attend(
    q: Arr[H, N, D],   # the last N of T tokens ask
    k: Arr[G, T, D],
    v: Arr[G, T, D],
) -> Arr[H, N, D]:
    "Each token takes the mean of the values that it and the tokens before it offer, weighted by how well their keys fit."
    share = len(q)//len(k)
    k, v = np.repeat(k, share, axis=0), np.repeat(v, share, axis=0)
    scores = q @ k.swapaxes(1, 2)/math.sqrt(q.shape[2])             # (H, N, T)
    ahead = np.triu(np.full(scores.shape[1:], -np.inf, float32), k=1 + k.shape[1] - q.shape[1])
    return softmax(scores + ahead) @ v


# %% [markdown]
# A text of three tokens, one head of two numbers. The third token's query fits the first key, so it reads mostly what the
# first token offers. The first token can look at nothing but itself.

# %%
k = np.array([[[4, 0], [0, 4], [0, 0]]], float32)
v = np.array([[[1, 0], [0, 1], [0.5, 0.5]]], float32)
q = np.array([[[0, 4], [0, 4], [4, 0]]], float32)
attend(q, k, v).round(3)

# %% [markdown]
# The weights of a longer text, with random queries and keys. White is zero: nobody looks ahead.

# %%
#| echo: false
import matplotlib.pyplot as plt
rng = np.random.default_rng(3)
q, k = rng.standard_normal((2, 1, 12, 12), float32)
fig, ax = plt.subplots(figsize=(3.2, 3.2))
ax.imshow(attend(q, k, np.eye(12, dtype=float32)[None])[0], cmap='Purples', vmin=0, vmax=1)   # values that name their token
ax.set(xlabel='reads from', ylabel='token', xticks=[], yticks=[]);

# %% [markdown]
# What the check is for. Without the `swapaxes`, queries would be multiplied with keys the wrong way round, and for the one
# text whose length is the size of a head, nobody would notice:

# %%
from bendml.shape import ShapeError
try:
    @typed(where='N <= T')
    def bad_scores(q: Arr[H, N, D], k: Arr[H, T, D]) -> Arr[H, N, T]: return q @ k
except ShapeError as e: print(e)


# %% [markdown]
# ## Heads
#
# The $C$ channels of a token are dealt out to the heads, and put together again afterwards.

# %%
#| export
@typed(where='C % H == 0')
def split_heads(x: Mat[T, C], heads: H) -> Arr[H, T, 'C//H']:
    "The channels of a row, dealt out to the heads."
    return x.reshape(len(x), heads, -1).swapaxes(0, 1)

@typed
def join_heads(x: Arr[H, T, D]) -> Mat[T, 'H*D']:
    "The heads' numbers side by side again."
    return x.swapaxes(0, 1).reshape(x.shape[1], -1)


# %%
x = np.arange(24.).reshape(2, 12)
assert np.array_equal(join_heads(split_heads(x, 3)), x)
split_heads(x, 3).shape

# %% [markdown]
# Both orders of axes have the same shape when put together. The check knows that a row of $D \cdot H$ numbers is no row of
# $H \cdot D$:

# %%
try:
    @typed
    def bad_join(x: Arr[H, T, D]) -> Mat[T, 'H*D']: return x.transpose(1, 2, 0).reshape(x.shape[1], -1)
except ShapeError as e: print(e)


# %% [markdown]
# ## With a cache
#
# The last rows alone, with all the keys and values, are the last rows of the whole. So the keys and values of $P$ tokens can
# be kept while $N$ more are read. [That this is right](71_kvcache.ipynb) is proved later; that it fits is decided here, for
# every $P$, zero included, and every $N$.

# %%
#| export
@typed(where=['H % G == 0', 'P >= 0'])
def attend_after(
    q: Arr[H, N, D],        # of the new tokens
    k: Arr[G, N, D],
    v: Arr[G, N, D],
    keys: Arr[G, P, D],     # of the tokens before them
    values: Arr[G, P, D],
) -> tuple[Arr[H, N, D], Arr[G, 'P + N', D], Arr[G, 'P + N', D]]:
    "What new tokens read, and the keys and values to keep for the next."
    keys, values = np.concatenate((keys, k), axis=1), np.concatenate((values, v), axis=1)
    return attend(q, keys, values), keys, values


# %%
rng = np.random.default_rng(0)
q, k, v = (rng.standard_normal((h, 6, 8), float32) for h in (4, 2, 2))
for p in range(6):
    new, keys, _ = attend_after(q[:, p:], k[:, p:], v[:, p:], k[:, :p], v[:, :p])
    assert np.allclose(new, attend(q, k, v)[:, p:], atol=1e-6) and np.array_equal(keys, k)

# %% [markdown]
# ## What this does not show
#
# Where the queries, keys and values come from: each model makes them from its channels, as its page says. And what a head
# looks for. Nobody writes that down; it is learnt.
