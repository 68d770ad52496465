# %%
#| default_exp decode.onerow

# %% [markdown]
# # One token through the layers
# > A row comes in, the cache grows by one entry a layer, scores come out: one compiled function, and a proof that it stays inside its arrays.

# %% [markdown]
# [GPT-2](72_gpt2.ipynb) and [Llama](74_llama.ipynb) read a whole text and answer for each position. To write, only the answer
# at the end is wanted, and everything before it can be [kept](71_kvcache.ipynb). This page is that: a function that takes one
# token through all the layers, and reads every weight once, in order.
#
# There is one such function for both families. Where Llama has no biases, it adds zero. Three questions remain that numbers
# cannot settle: is the mean subtracted before a row is scaled, is there a gate, and are queries and keys turned?

# %%
#| hide
#| export
import math

import numpy as np
from numpy import float32

from bendml.decode.curves import gelu_row, soften, swiglu
from bendml.decode.matvec import ROUNDED, times
from bendml.kernel import Buf, Size, f32, kernel, prange, requires
from bendml.kvarray import keep
from bendml.simd import fma, hsum, load, splat, store


# %% [markdown]
# ## The pieces, for one row
#
# Each is a loop that is [proved](29b_kernel.ipynb) to stay inside its arrays, for all sizes. Rows come in eights of numbers. A network's vectors
# lie in one array `v`; of a norm's, the gains come first and then the shifts.

# %%
#| export
@kernel
def norm(x: Buf[f32], i: Size, n: Size, v: Buf[f32], g: Size, eps: f32, centred: bool, out: Buf[f32], o: Size):
    "Scale x[i:i + 8n] to mean square 1, if `centred` around its mean, then stretch and shift it."
    requires(i + 8*n <= len(x), g + 16*n <= len(v), o + 8*n <= len(out))
    total, square = splat(f32(0)), splat(f32(0))
    if centred:
        for j in range(n): total = total + load(x, i + 8*j)
    mean = splat(hsum(total)/f32(8*n))
    for j in range(n):
        away = load(x, i + 8*j) - mean
        square = fma(away, away, square)
    scale = splat(f32(1)/f32(math.sqrt(hsum(square)/f32(8*n) + eps)))
    for j in range(n): store(out, o + 8*j, fma((load(x, i + 8*j) - mean)*scale, load(v, g + 8*j), load(v, g + 8*n + 8*j)))

@kernel
def add(x: Buf[f32], i: Size, v: Buf[f32], g: Size, n: Size):
    "x[i:i + 8n] += v[g:g + 8n]"
    requires(i + 8*n <= len(x), g + 8*n <= len(v))
    for j in range(n): store(x, i + 8*j, load(x, i + 8*j) + load(v, g + 8*j))

@kernel
def turn(x: Buf[f32], i: Size, heads: Size, half: Size, cos: Buf[f32], sin: Buf[f32], c: Size):
    "Turn neighbours, head by head; half a head's numbers in `cos` and `sin` from c on."
    requires(i + heads*(2*half) <= len(x), c + half <= len(cos), c + half <= len(sin))
    for h in range(heads):
        assert h*(2*half) + 2*half <= heads*(2*half)
        at = i + h*(2*half)
        for j in range(half):
            a, b = x[at + 2*j], x[at + 2*j + 1]
            x[at + 2*j], x[at + 2*j + 1] = a*cos[c + j] - b*sin[c + j], a*sin[c + j] + b*cos[c + j]


# %% [markdown]
# ## Looking back
#
# The cache is one array for keys and one for values, laid out as [proved](71b_kvarray.ipynb): region $l\,G + g$ has room for
# $T$ rows of $D = 8d$ numbers, and row $t$ begins $t D$ further on. The loop that writes it is the one proved there. Of the one that reads
# it a [plain form](71c_look.ipynb) is proved to compute what it should; here it takes eight numbers at a time. The eight lanes of a score are
# summed apart and then joined, and so are the weights.

# %%
#| export
LOWEST = f32(-math.inf)

@kernel
def look_scores(D: Size, keys: Buf[f32], start: Size, count: Size, q: Buf[f32], first: Size, c: f32, w: Buf[f32], at: Size):
    "w[at:at + count] = the scores of `count` keys from `start` on; the greatest of them."
    requires(D % 8 == 0, start + count*D <= len(keys), first + D <= len(q), at + count <= len(w))
    top = LOWEST
    for t in range(count):
        assert t*D + D <= count*D
        sums = splat(f32(0))
        for i in range(0, D, 8):
            assert i + 8 <= D
            sums = fma(load(q, first + i), load(keys, start + t*D + i), sums)
        w[at + t] = hsum(sums)*c
        top = max(top, w[at + t])
    return top

@kernel
def look_mix(D: Size, values: Buf[f32], start: Size, count: Size, w: Buf[f32], at: Size, total: f32, out: Buf[f32], first: Size):
    "out[first:first + D] = the sum of `count` values from `start` on, each times its weight in w, divided by `total`."
    requires(D % 8 == 0, start + count*D <= len(values), first + D <= len(out), at + count <= len(w))
    for i in range(0, D, 8):
        assert i + 8 <= D
        store(out, first + i, splat(f32(0)))
    for t in range(count):
        assert t*D + D <= count*D
        share = splat(w[at + t]/total)
        for i in range(0, D, 8):
            assert i + 8 <= D
            store(out, first + i, fma(share, load(values, start + t*D + i), load(out, first + i)))

@kernel
def look(q: Buf[f32], i: Size, keys: Buf[f32], values: Buf[f32], start: Size, count: Size, d: Size, scores: Buf[f32], out: Buf[f32], o: Size):
    "One head: the mean of `count` rows of values, from `start` on, weighted by how well the keys fit. Writes out[o:o + 8d]."
    requires(i + 8*d <= len(q), o + 8*d <= len(out), start + count*(8*d) <= len(keys), start + count*(8*d) <= len(values), count + 7 <= len(scores), d < 2**44)
    top = look_scores(8*d, keys, start, count, q, i, f32(1)/f32(math.sqrt(f32(8*d))), scores, 0)
    total = soften(scores, 0, count, top)
    look_mix(8*d, values, start, count, scores, 0, total, out, o)


# %% [markdown]
# Proved of these is that they touch no cell outside. That they compute what the plain loop does, up to rounding, is tested, with the bound
# $(D + 2t)\,2^{-22}$ relative to the largest value:

# %%
from bendml.look import look as plain_look

def compare(T, D, region, count, rng):
    "The largest difference between the two ways, in units of the bound."
    keys, values = rng.standard_normal((2, 3*T*D), float32)
    q, scores, slow, fast = rng.standard_normal(D, float32), np.zeros(T + 7, float32), np.zeros(D, float32), np.zeros(D, float32)
    plain_look(3, T, D, keys, values, region, count, q, 0, float32(D**-.5), scores, 0, slow)
    look(q, 0, keys, values, region*T*D, count, D//8, scores, fast, 0)
    return abs(slow - fast).max()/((D + 2*count)*2.**-22*abs(values).max())

rng = np.random.default_rng(0)
worst = max(compare(T, D, region, count, rng) for T, D, region, count in ((1, 8, 0, 1), (40, 64, 2, 40), (100, 32, 1, 77), (9, 128, 2, 5)))
print(f'at most {worst:.4f} of the bound')
assert worst < 1


# %% [markdown]
# Each head looks into the region that it shares with others:

# %%
#| export
@kernel
def look_head(h: Size, G: Size, share: Size, d: Size, T: Size, R: Size, region: Size, pos: Size, q: Buf[f32], keys: Buf["R*(T*(8*d))", f32],
              values: Buf["R*(T*(8*d))", f32], scores: Buf[f32], out: Buf[f32]):
    "Attention of head h, of G*share heads; `share` of them have keys and values in common, the first of which are in `region`."
    requires(h < G*share, region + G <= R, pos < T, pos + 8 <= len(scores), (G*share)*(8*d) <= len(q), (G*share)*(8*d) <= len(out))
    requires(len(q) < 2**44, len(out) < 2**44, len(keys) < 2**44, T < 2**44, G < 2**20, share < 2**20)
    g = h//share
    assert g < G
    assert (region + g)*(T*(8*d)) + T*(8*d) <= R*(T*(8*d))
    assert (pos + 1)*(8*d) <= T*(8*d)
    assert h*(8*d) + 8*d <= (G*share)*(8*d)
    look(q, h*(8*d), keys, values, (region + g)*(T*(8*d)), pos + 1, d, scores, out, h*(8*d))


# %%
#| export
@kernel
def look_all(G: Size, share: Size, d: Size, T: Size, R: Size, region: Size, pos: Size, q: Buf[f32], keys: Buf["R*(T*(8*d))", f32],
             values: Buf["R*(T*(8*d))", f32], out: Buf[f32]):
    "Attention of all heads, one after the other."
    requires(region + G <= R, pos < T, (G*share)*(8*d) <= len(q), (G*share)*(8*d) <= len(out))
    requires(len(q) < 2**44, len(out) < 2**44, len(keys) < 2**44, T < 2**44, G < 2**20, share < 2**20)
    scores = np.empty(pos + 8, f32)
    for h in range(G*share): look_head(h, G, share, d, T, R, region, pos, q, keys, values, scores, out)

@kernel
def look_shared(G: Size, share: Size, d: Size, T: Size, R: Size, region: Size, pos: Size, q: Buf[f32], keys: Buf["R*(T*(8*d))", f32],
                values: Buf["R*(T*(8*d))", f32], out: Buf[f32]):
    "Attention of all heads, on several threads."
    requires(region + G <= R, pos < T, (G*share)*(8*d) <= len(q), (G*share)*(8*d) <= len(out))
    requires(len(q) < 2**44, len(out) < 2**44, len(keys) < 2**44, T < 2**44, G < 2**20, share < 2**20)
    for h in prange(G*share):
        scores = np.empty(pos + 8, f32)
        look_head(h, G, share, d, T, R, region, pos, q, keys, values, scores, out)


# %% [markdown]
# ## The step
#
# Four matrices a layer: queries, keys and values in one; what they have read; the feed-forward network's first half, the gate
# before it; and its second half. They lie behind one another in one array `w`, the layers `stride` apart, and each is
# multiplied on all threads. What lies between is short, and done by one; attention is shared out when the text is long enough
# to be worth it.
#
# Sizes are in 32s of numbers: $C = 32c$ channels, $H D = 32e$ numbers of all heads, $F = 32f$ in the feed-forward network. Rows that
# matrices give are in units of 16.

# %%
#| export
LONG = 256  # tokens from which on attention is shared out

@kernel
def layer(G: Size, share: Size, d: Size, T: Size, c: Size, e: Size, f: Size, qkv_units: Size, up_units: Size, eps: f32, centred: bool, gated: bool, turned: bool,
          w: Buf[f32], qkv_size: Size, qkv_at: Size, o_size: Size, o_at: Size, up_size: Size, up_at: Size, down_size: Size, down_at: Size, v: Buf[f32], bias: Size,
          cos: Buf["T*(4*d)", f32], sin: Buf["T*(4*d)", f32], R: Size, region: Size, keys: Buf["R*(T*(8*d))", f32], values: Buf["R*(T*(8*d))", f32], pos: Size,
          x: Buf["32*c", f32], parts: Size):
    "One token, whose row is in x, through one layer."
    requires(1 <= parts, pos < T, region + G <= R, (G*share)*(8*d) == 32*e, (G*share + 2*G)*(8*d) <= 16*qkv_units, up_units == 4*f if gated else up_units == 2*f)
    requires(len(keys) < 2**44, len(w) < 2**44, len(v) < 2**44, T < 2**20, G < 2**10, share < 2**10, d < 2**10, c < 2**20, e < 2**20, f < 2**20, qkv_units < 2**20)
    requires(qkv_size <= 512, o_size <= 512, up_size <= 512, down_size <= 512, qkv_at + qkv_units*(c*qkv_size) <= len(w), o_at + (2*c)*(e*o_size) <= len(w))
    requires(up_at + up_units*(c*up_size) <= len(w), down_at + (2*c)*(f*down_size) <= len(w), bias + 192*c + 16*qkv_units + 16*up_units <= len(v))
    h = np.empty(32*c, f32)
    qkv = np.empty(16*qkv_units, f32)
    o = np.empty(32*e, f32)
    y = np.empty(32*c, f32)
    wide = np.empty(16*up_units, f32)
    fx = np.empty((c + e + f)*ROUNDED, f32)
    norm(x, 0, 4*c, v, bias, eps, centred, h, 0)
    times(qkv_size, w, qkv_at, c, qkv_units, h, fx, qkv, parts)
    add(qkv, 0, v, bias + 64*c, 2*qkv_units)
    assert pos*(4*d) + 4*d <= T*(4*d)
    if turned: turn(qkv, 0, G*share + G, 4*d, cos, sin, pos*(4*d))
    for g in range(G):
        assert g*(8*d) + 8*d <= G*(8*d)
        keep(R, T, 8*d, keys, region + g, pos, qkv, (G*share)*(8*d) + g*(8*d))
        keep(R, T, 8*d, values, region + g, pos, qkv, (G*share + G)*(8*d) + g*(8*d))
    if pos < LONG or parts == 1: look_all(G, share, d, T, R, region, pos, qkv, keys, values, o)
    else: look_shared(G, share, d, T, R, region, pos, qkv, keys, values, o)
    times(o_size, w, o_at, e, 2*c, o, fx, y, parts)
    add(x, 0, y, 0, 4*c)
    add(x, 0, v, bias + 64*c + 16*qkv_units, 4*c)
    norm(x, 0, 4*c, v, bias + 96*c + 16*qkv_units, eps, centred, h, 0)
    times(up_size, w, up_at, c, up_units, h, fx, wide, parts)
    add(wide, 0, v, bias + 160*c + 16*qkv_units, 2*up_units)
    if gated: swiglu(wide, 0, 4*f)
    else: gelu_row(wide, 0, 4*f)
    times(down_size, w, down_at, f, 2*c, wide, fx, y, parts)
    add(x, 0, y, 0, 4*c)
    add(x, 0, v, bias + 160*c + 16*qkv_units + 16*up_units, 4*c)


# %%
#| export
@kernel
def step(layers: Size, G: Size, share: Size, d: Size, T: Size, c: Size, e: Size, f: Size, qkv_units: Size, up_units: Size, units: Size,
         eps: f32, centred: bool, gated: bool, turned: bool, w: Buf[f32], stride: Size, qkv_size: Size, o_size: Size, up_size: Size, down_size: Size,
         head_size: Size, o_at: Size, up_at: Size, down_at: Size, head_at: Size, v: Buf[f32], far: Size, cos: Buf["T*(4*d)", f32], sin: Buf["T*(4*d)", f32],
         keys: Buf["(layers*G)*(T*(8*d))", f32], values: Buf["(layers*G)*(T*(8*d))", f32], pos: Size, x: Buf["32*c", f32], logits: Buf["16*units", f32], parts: Size):
    "One token, whose row is in x, through all layers: scores for the next one."
    requires(1 <= parts, pos < T, (G*share)*(8*d) == 32*e, (G*share + 2*G)*(8*d) <= 16*qkv_units, up_units == 4*f if gated else up_units == 2*f)
    requires(len(keys) < 2**44, len(w) < 2**44, len(v) < 2**44, T < 2**20, G < 2**10, share < 2**10, d < 2**10, c < 2**20, e < 2**20, f < 2**20, qkv_units < 2**20)
    requires(qkv_size <= 512, o_size <= 512, up_size <= 512, down_size <= 512, head_size <= 512, units < 2**30, layers < 2**20)
    requires(qkv_units*(c*qkv_size) <= stride, o_at + (2*c)*(e*o_size) <= stride, up_at + up_units*(c*up_size) <= stride, down_at + (2*c)*(f*down_size) <= stride)
    requires(layers*stride <= len(w), head_at + units*(c*head_size) <= len(w), far == 192*c + 16*qkv_units + 16*up_units, layers*far + 64*c <= len(v))
    for l in range(layers):
        assert l*stride + stride <= layers*stride
        assert l*far + far <= layers*far
        assert l*G + G <= layers*G
        layer(G, share, d, T, c, e, f, qkv_units, up_units, eps, centred, gated, turned, w, qkv_size, l*stride, o_size, l*stride + o_at, up_size, l*stride + up_at,
              down_size, l*stride + down_at, v, l*far, cos, sin, layers*G, l*G, keys, values, pos, x, parts)
    h = np.empty(32*c, f32)
    fx = np.empty(c*ROUNDED, f32)
    norm(x, 0, 4*c, v, layers*far, eps, centred, h, 0)
    times(head_size, w, head_at, c, units, h, fx, logits, parts)


# %% [markdown]
# What is proved of it is that no index leaves its array, that no two threads meet, and that no integer is too large, whatever the
# sizes, as long as the first lines hold; they are checked at each call.

# %%
layer, step

# %% [markdown]
# ## What this does not show
#
# - That the sums are right: that is tested, on the [page](76_decode.ipynb) where models use this.
