# %%
#| default_exp decode.reading

# %% [markdown]
# # Many tokens through the layers
# > A prompt is read layer by layer, all its tokens together.

# %% [markdown]
# [One token](75e_onerow.ipynb) at a time, a model reads as fast as it writes, and a prompt of 500 tokens takes seconds. Together, they use each
# weight [many times](75d_several.ipynb), and a hundred tokens take hardly longer than five.

# %%
#| hide
#| export
import math

import numpy as np
from numpy import float32

from bendml.decode.curves import LEAST, gelu_row, higher, hmax, soften, swiglu
from bendml.decode.matvec import ROUNDED, times
from bendml.decode.onerow import add, norm, turn
from bendml.decode.several import many
from bendml.kernel import Buf, Size, f32, kernel, prange, requires
from bendml.kvarray import keep
from bendml.simd import load, splat, store
from bendml.tensor.gemm import gemm_panels

# %% [markdown]
# ## Rows in blocks
#
# The tokens are shared out to the threads, and each takes its own in blocks of 132, whose numbers the second cache holds: the weights of a layer come
# from memory once for each block, and with 48 rows a sixth of the time went into that. Up to the attention it is: a norm, the matrix of queries, keys and values, and its biases.

# %%
#| export
BLOCK = 132  # tokens

@kernel
def ask(first: Size, count: Size, c: Size, units: Size, eps: f32, centred: bool, w: Buf[f32], size: Size, at: Size, v: Buf[f32], bias: Size,
        x: Buf[f32], out: Buf["count*(16*units)", f32]):
    "Queries, keys and values of `count` rows of x, from row `first` on."
    requires((first + count)*(32*c) <= len(x), bias + 64*c + 16*units <= len(v), at + units*(c*size) <= len(w), size <= 512, c < 2**20, units < 2**20)
    requires(len(w) < 2**44, len(v) < 2**44, len(x) < 2**44)
    h = np.zeros(BLOCK*(32*c), f32)
    fx = np.empty(BLOCK*(c*ROUNDED), f32)
    y = np.empty(BLOCK*(16*units), f32)
    for b in range((count + BLOCK - 1)//BLOCK):
        own = min(BLOCK, count - BLOCK*b)
        for i in range(own):
            assert i*(32*c) + 32*c <= BLOCK*(32*c)
            assert (first + BLOCK*b + i)*(32*c) + 32*c <= (first + count)*(32*c)
            norm(x, (first + BLOCK*b + i)*(32*c), 4*c, v, bias, eps, centred, h, i*(32*c))
        twelves = (own + 11)//12
        many(size, w, at, c, units, h, fx, y, 16*units, twelves)
        for i in range(own):
            assert i*(16*units) + 16*units <= BLOCK*(16*units)
            assert (BLOCK*b + i)*(16*units) + 16*units <= count*(16*units)
            add(y, i*(16*units), v, bias + 64*c, 2*units)
            for j in range(2*units): store(out, (BLOCK*b + i)*(16*units) + 8*j, load(y, i*(16*units) + 8*j))


# %% [markdown]
# After it: what the heads have read comes together, and the feed-forward network follows.

# %%
#| export
@kernel
def joined(first: Size, i: Size, N: Size, heads: Size, d: Size, o: Buf["heads*(N*(8*d))", f32], a: Buf[f32], at: Size):
    "What all heads have read for token first + i, side by side."
    requires(first + i < N, at + heads*(8*d) <= len(a))
    for h in range(heads):
        assert h*(N*(8*d)) + N*(8*d) <= heads*(N*(8*d))
        assert (first + i)*(8*d) + 8*d <= N*(8*d)
        assert h*(8*d) + 8*d <= heads*(8*d)
        for j in range(d): store(a, at + h*(8*d) + 8*j, load(o, h*(N*(8*d)) + (first + i)*(8*d) + 8*j))


# %%
#| export
@kernel
def answer(first: Size, count: Size, N: Size, heads: Size, d: Size, c: Size, e: Size, f: Size, qkv_units: Size, units: Size, eps: f32, centred: bool, gated: bool,
           w: Buf[f32], o_size: Size, o_at: Size, up_size: Size, up_at: Size, down_size: Size, down_at: Size, v: Buf[f32], bias: Size,
           x: Buf[f32], o: Buf["heads*(N*(8*d))", f32], out: Buf["count*(32*c)", f32]):
    "A layer's new rows, `count` of them from row `first` on, once attention is done."
    requires(first + count <= N, N*(32*c) <= len(x), heads*(8*d) == 32*e, units == 4*f if gated else units == 2*f, len(w) < 2**44, len(v) < 2**44, len(x) < 2**44, len(o) < 2**44)
    requires(o_size <= 512, up_size <= 512, down_size <= 512, c < 2**20, e < 2**20, f < 2**20, qkv_units < 2**20, heads < 2**20, d < 2**20)
    requires(o_at + (2*c)*(e*o_size) <= len(w), up_at + units*(c*up_size) <= len(w), down_at + (2*c)*(f*down_size) <= len(w))
    requires(bias + 192*c + 16*qkv_units + 16*units <= len(v))
    a = np.zeros(BLOCK*(32*e), f32)
    y = np.empty(BLOCK*(32*c), f32)
    r = np.empty(BLOCK*(32*c), f32)
    h = np.zeros(BLOCK*(32*c), f32)
    wide = np.zeros(BLOCK*(16*units), f32)
    mid = np.zeros(BLOCK*(32*f), f32)
    fx = np.empty(BLOCK*((c + e + f)*ROUNDED), f32)
    for b in range((count + BLOCK - 1)//BLOCK):
        own = min(BLOCK, count - BLOCK*b)
        twelves = (own + 11)//12
        for i in range(own):
            assert i*(32*e) + 32*e <= BLOCK*(32*e)
            joined(first, BLOCK*b + i, N, heads, d, o, a, i*(32*e))
        many(o_size, w, o_at, e, 2*c, a, fx, y, 32*c, twelves)
        for i in range(own):
            assert i*(32*c) + 32*c <= BLOCK*(32*c)
            assert (first + BLOCK*b + i)*(32*c) + 32*c <= N*(32*c)
            for j in range(4*c): store(r, i*(32*c) + 8*j, load(x, (first + BLOCK*b + i)*(32*c) + 8*j) + load(y, i*(32*c) + 8*j))
            add(r, i*(32*c), v, bias + 64*c + 16*qkv_units, 4*c)
            norm(r, i*(32*c), 4*c, v, bias + 96*c + 16*qkv_units, eps, centred, h, i*(32*c))
        many(up_size, w, up_at, c, units, h, fx, wide, 16*units, twelves)
        for i in range(own):
            assert i*(16*units) + 16*units <= BLOCK*(16*units)
            assert i*(32*f) + 32*f <= BLOCK*(32*f)
            add(wide, i*(16*units), v, bias + 160*c + 16*qkv_units, 2*units)
            if gated: swiglu(wide, i*(16*units), 4*f)
            else: gelu_row(wide, i*(16*units), 4*f)
            for j in range(4*f): store(mid, i*(32*f) + 8*j, load(wide, i*(16*units) + 8*j))
        many(down_size, w, down_at, f, 2*c, mid, fx, y, 32*c, twelves)
        for i in range(own):
            assert i*(32*c) + 32*c <= BLOCK*(32*c)
            assert (BLOCK*b + i)*(32*c) + 32*c <= count*(32*c)
            add(r, i*(32*c), y, i*(32*c), 4*c)
            add(r, i*(32*c), v, bias + 160*c + 16*qkv_units + 16*units, 4*c)
            for j in range(4*c): store(out, (BLOCK*b + i)*(32*c) + 8*j, load(r, i*(32*c) + 8*j))


# %% [markdown]
# ## Attention in blocks
#
# A head's queries look at all keys up to their own, 96 queries at a time: a [product](42_gemm.ipynb) gives their scores, a softmax of each
# row up to its own token makes shares of them, and a second product mixes the values. What lies behind a row's own token is set
# to zero. Of the $T \\times T$ table only 96 rows exist at a time.

# %%
#| export
QUERIES = 96

@kernel
def shares(scores: Buf[f32], at: Size, visible: Size, width: Size, scale: f32):
    "A row of scores to shares that sum to one: the first `visible`, and zeros up to `width`."
    requires(1 <= visible, visible <= width, at + width + 8 <= len(scores))
    peak, by = splat(f32(LEAST)), splat(scale)
    for j in range(visible//8):
        s = load(scores, at + 8*j)*by
        peak = higher(peak, s)
        store(scores, at + 8*j, s)
    top = hmax(peak)
    for t in range(visible//8*8, visible):
        scores[at + t] = scores[at + t]*scale
        top = max(top, scores[at + t])
    part = splat(f32(1)/soften(scores, at, visible, top))
    for j in range((visible + 7)//8): store(scores, at + 8*j, load(scores, at + 8*j)*part)
    for t in range(visible, width): scores[at + t] = f32(0)


# %%
#| export
@kernel
def attend_head(first: Size, far: Size, start: Size, d: Size, pos: Size, N: Size, qkv: Buf[f32], keys: Buf[f32], values: Buf[f32], out: Buf["N*(8*d)", f32]):
    "A head's attention for N tokens that stand at `pos` and after it. Their queries begin at qkv[first], `far` apart."
    requires(1 <= d, 1 <= N, first + (N - 1)*far + 8*d <= len(qkv), start + (pos + N)*(8*d) <= len(keys), start + (pos + N)*(8*d) <= len(values))
    requires(len(qkv) < 2**44, len(keys) < 2**44, len(values) < 2**44, pos + N < 2**20, d < 2**10)
    width = pos + N + 8
    assert (pos + N + 31)*(8*d) <= (2**20 + 31)*(8*d)
    assert (8*d + 31)*(pos + N) <= (2**13 + 31)*(pos + N)
    scores = np.empty(QUERIES*width + 8, f32)
    scale = f32(1)/f32(math.sqrt(f32(8*d)))
    for b in range((N + QUERIES - 1)//QUERIES):
        own = min(QUERIES, N - QUERIES*b)
        seen = pos + QUERIES*b + own
        assert (QUERIES*b)*far + (own - 1)*far <= (N - 1)*far
        assert seen*(8*d) <= (pos + N)*(8*d)
        assert (seen + 31)*(8*d) <= (pos + N + 31)*(8*d)
        assert (8*d + 31)*seen <= (8*d + 31)*(pos + N)
        assert (own - 1)*width + width <= QUERIES*width
        assert (QUERIES*b)*(8*d) + own*(8*d) <= N*(8*d)
        gemm_panels(qkv, first + (QUERIES*b)*far, far, 1, keys, start, 1, 8*d, scores, 0, width, own, 8*d, seen, True)
        for i in range(own):
            assert i*width + width <= QUERIES*width
            shares(scores, i*width, pos + QUERIES*b + i + 1, seen, scale)
        gemm_panels(scores, 0, width, 1, values, start, 8*d, 1, out, (QUERIES*b)*(8*d), 8*d, own, seen, 8*d, True)


# %% [markdown]
# ## A layer
#
# Twice the tokens are shared out, and once the heads. Each thread writes to an array of its own, which is then copied to its
# place: that costs a hundredth of the time, and makes it plain that no two threads write one cell.

# %%
#| export
@kernel
def read_layer(G: Size, share: Size, d: Size, T: Size, c: Size, e: Size, f: Size, qkv_units: Size, up_units: Size, eps: f32, centred: bool, gated: bool, turned: bool,
               w: Buf[f32], qkv_size: Size, qkv_at: Size, o_size: Size, o_at: Size, up_size: Size, up_at: Size, down_size: Size, down_at: Size, v: Buf[f32], bias: Size,
               cos: Buf["T*(4*d)", f32], sin: Buf["T*(4*d)", f32], R: Size, region: Size, keys: Buf["R*(T*(8*d))", f32], values: Buf["R*(T*(8*d))", f32], pos: Size,
               N: Size, skip: Size, x: Buf["N*(32*c)", f32], qkv: Buf["N*(16*qkv_units)", f32], o: Buf["(G*share)*(N*(8*d))", f32], new: Buf["N*(32*c)", f32], parts: Size):
    "N tokens, whose rows are in x, through one layer: the new rows, but for the first `skip`, in `new`. qkv and o are room for what lies between."
    requires(1 <= parts, parts < 2**20, skip < N, pos + N <= T, region + G <= R, 1 <= d, (G*share)*(8*d) == 32*e, (G*share + 2*G)*(8*d) <= 16*qkv_units)
    requires(up_units == 4*f if gated else up_units == 2*f, len(keys) < 2**44, len(w) < 2**44, len(v) < 2**44, T < 2**20, G < 2**10, share < 2**10, d < 2**10)
    requires(c < 2**20, e < 2**20, f < 2**20, qkv_units < 2**20, len(qkv) < 2**44, len(o) < 2**44, len(x) < 2**44)
    requires(qkv_size <= 512, o_size <= 512, up_size <= 512, down_size <= 512, qkv_at + qkv_units*(c*qkv_size) <= len(w), o_at + (2*c)*(e*o_size) <= len(w))
    requires(up_at + up_units*(c*up_size) <= len(w), down_at + (2*c)*(f*down_size) <= len(w), bias + 192*c + 16*qkv_units + 16*up_units <= len(v))
    high = (N + parts - 1)//parts
    assert 1 <= high
    for t in prange(parts):
        lo = t*high
        if lo < N:
            count = min(high, N - lo)
            assert count*(16*qkv_units) <= high*(16*qkv_units)
            assert lo*(16*qkv_units) + count*(16*qkv_units) <= N*(16*qkv_units)
            assert (lo + count)*(32*c) <= N*(32*c)
            own = np.empty(count*(16*qkv_units), f32)
            ask(lo, count, c, qkv_units, eps, centred, w, qkv_size, qkv_at, v, bias, x, own)
            for i in range(count*(16*qkv_units)): qkv[lo*(16*qkv_units) + i] = own[i]
    for i in range(N):
        at = i*(16*qkv_units)
        assert i*(16*qkv_units) + 16*qkv_units <= N*(16*qkv_units)
        assert (pos + i)*(4*d) + 4*d <= T*(4*d)
        if turned: turn(qkv, at, G*share + G, 4*d, cos, sin, (pos + i)*(4*d))
        for g in range(G):
            assert g*(8*d) + 8*d <= G*(8*d)
            keep(R, T, 8*d, keys, region + g, pos + i, qkv, at + (G*share)*(8*d) + g*(8*d))
            keep(R, T, 8*d, values, region + g, pos + i, qkv, at + (G*share + G)*(8*d) + g*(8*d))
    for h in prange(G*share):
        g = h//share
        assert g < G
        assert (region + g)*(T*(8*d)) + T*(8*d) <= R*(T*(8*d))
        assert (pos + N)*(8*d) <= T*(8*d)
        assert h*(8*d) + 8*d <= (G*share)*(8*d)
        assert skip*(16*qkv_units) + (N - skip - 1)*(16*qkv_units) + 16*qkv_units <= N*(16*qkv_units)
        assert h*(N*(8*d)) + N*(8*d) <= (G*share)*(N*(8*d))
        assert skip*(8*d) + (N - skip)*(8*d) <= N*(8*d)
        own = np.empty((N - skip)*(8*d), f32)
        attend_head(skip*(16*qkv_units) + h*(8*d), 16*qkv_units, (region + g)*(T*(8*d)), d, pos + skip, N - skip, qkv, keys, values, own)
        for i in range((N - skip)*(8*d)): o[h*(N*(8*d)) + skip*(8*d) + i] = own[i]
    left = N - skip
    high = (left + parts - 1)//parts
    assert 1 <= high
    assert skip*(32*c) + left*(32*c) <= N*(32*c)
    for t in prange(parts):
        lo = t*high
        if lo < left:
            count = min(high, left - lo)
            assert count*(32*c) <= high*(32*c)
            assert lo*(32*c) + count*(32*c) <= left*(32*c)
            own = np.empty(count*(32*c), f32)
            answer(skip + lo, count, N, G*share, d, c, e, f, qkv_units, up_units, eps, centred, gated, w, o_size, o_at, up_size, up_at, down_size, down_at, v, bias, x, o, own)
            for i in range(count*(32*c)): new[skip*(32*c) + lo*(32*c) + i] = own[i]


# %% [markdown]
# ## All layers
#
# Only the last token's scores are asked for. So in the last layer all tokens leave their keys and values in the cache, and the last one alone
# goes on.

# %%
#| export
@kernel
def read_all(layers: Size, G: Size, share: Size, d: Size, T: Size, c: Size, e: Size, f: Size, qkv_units: Size, up_units: Size, units: Size,
             eps: f32, centred: bool, gated: bool, turned: bool, w: Buf[f32], stride: Size, qkv_size: Size, o_size: Size, up_size: Size, down_size: Size,
             head_size: Size, o_at: Size, up_at: Size, down_at: Size, head_at: Size, v: Buf[f32], far: Size, cos: Buf["T*(4*d)", f32], sin: Buf["T*(4*d)", f32],
             keys: Buf["(layers*G)*(T*(8*d))", f32], values: Buf["(layers*G)*(T*(8*d))", f32], pos: Size, N: Size, x: Buf["N*(32*c)", f32],
             logits: Buf["16*units", f32], parts: Size):
    "N tokens, whose rows are in x, through all layers: scores for what follows the last one."
    requires(1 <= parts, parts < 2**20, 1 <= N, pos + N <= T, 1 <= d, (G*share)*(8*d) == 32*e, (G*share + 2*G)*(8*d) <= 16*qkv_units)
    requires(up_units == 4*f if gated else up_units == 2*f, len(keys) < 2**44, len(w) < 2**44, len(v) < 2**44, T < 2**20, G < 2**10, share < 2**10, d < 2**10)
    requires(c < 2**18, e < 2**18, f < 2**20, qkv_units < 2**18, layers < 2**20, units < 2**30)
    requires(qkv_size <= 512, o_size <= 512, up_size <= 512, down_size <= 512, head_size <= 512)
    requires(qkv_units*(c*qkv_size) <= stride, o_at + (2*c)*(e*o_size) <= stride, up_at + up_units*(c*up_size) <= stride, down_at + (2*c)*(f*down_size) <= stride)
    requires(layers*stride <= len(w), head_at + units*(c*head_size) <= len(w), far == 192*c + 16*qkv_units + 16*up_units, layers*far + 64*c <= len(v))
    qkv = np.empty(N*(16*qkv_units), f32)
    o = np.empty((G*share)*(N*(8*d)), f32)
    new = np.empty(N*(32*c), f32)
    for l in range(layers):
        assert l*stride + stride <= layers*stride
        assert l*far + far <= layers*far
        assert l*G + G <= layers*G
        skip = N - 1 if l == layers - 1 else 0
        read_layer(G, share, d, T, c, e, f, qkv_units, up_units, eps, centred, gated, turned, w, qkv_size, l*stride, o_size, l*stride + o_at, up_size, l*stride + up_at,
                   down_size, l*stride + down_at, v, l*far, cos, sin, layers*G, l*G, keys, values, pos, N, skip, x, qkv, o, new, parts)
        for i in range(N*(4*c)): store(x, 8*i, load(new, 8*i))
    h = np.empty(32*c, f32)
    fx = np.empty(c*ROUNDED, f32)
    assert (N - 1)*(32*c) + 32*c <= N*(32*c)
    norm(x, (N - 1)*(32*c), 4*c, v, layers*far, eps, centred, h, 0)
    times(head_size, w, head_at, c, units, h, fx, logits, parts)


# %%
read_layer, read_all

# %% [markdown]
# ## What this does not show
#
# - That attention gives the same bits as one token at a time. It adds in another order; where two tokens are as good as equally
#   likely, either may win.
