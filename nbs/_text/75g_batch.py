# %%
#| default_exp decode.batch

# %% [markdown]
# # Several texts at once
# > A token of each of several texts: the weights are read once, and multiplied with a row for each.

# %% [markdown]
# Where [one text](75e_onerow.ipynb) is written, each weight comes out of memory, is used once, and memory is what one waits for. A server
# writes several texts. If each takes its turn, each turn reads all weights. Side by side, sixteen rows of a matrix are read
# from memory once and stay in the cache for as long as it takes to multiply them with a row of each text.
#
# The sums are taken by the very loops that one text uses, in their order. So a text gets the same bits, alone or among others.

# %%
#| hide
#| export
import numpy as np
from numpy import float32

from bendml.decode.curves import gelu_row, swiglu
from bendml.decode.matvec import ROUNDED, fix, rows
from bendml.decode.onerow import add, look, norm, turn
from bendml.decode.several import many_q4, many_q8
from bendml.decode.stored import Q4, Q8
from bendml.kernel import Buf, Size, f32, i64, kernel, prange, requires
from bendml.kvarray import keep
from bendml.simd import load, store


# %% [markdown]
# ## A product
#
# Threads share out the rows of the matrix: each takes a band of `high` units, and writes its results for all texts into a part of its
# own; afterwards they are put in rows. Of whole numbers four texts are done [together](75d_several.ipynb), which takes a weight apart once for
# all four, and has the same bits.

# %%
#| export
@kernel
def by_rows(lo: Size, count: Size, units: Size, B: Size, z: Buf["units*(16*B)", f32], y: Buf["B*(16*units)", f32]):
    "What a band of `count` units from `lo` on gave for each text, put into the text's row."
    requires(lo + count <= units)
    assert lo*(16*B) + count*(16*B) <= units*(16*B)
    for b in range(B):
        assert b*(16*units) + 16*units <= B*(16*units)
        assert b*(16*count) + 16*count <= count*(16*B)
        for i in range(2*count): store(y, b*(16*units) + 16*lo + 8*i, load(z, lo*(16*B) + b*(16*count) + 8*i))

@kernel
def times_all(size: Size, w: Buf[f32], at: Size, n: Size, units: Size, B: Size, x: Buf["B*(32*n)", f32], y: Buf["B*(16*units)", f32], parts: Size):
    "y = x W^T for B rows, on so many threads; the bits of each row by itself."
    requires(1 <= parts, parts < 2**20, at + units*(n*size) <= len(w), len(w) < 2**44, n < 2**20, B < 2**10, units < 2**30, size <= 512)
    z = np.empty(units*(16*B), f32)
    fx = np.empty(B*(n*ROUNDED), f32)
    if size == Q8 or size == Q4: fix(x, 0, B*n, fx, 0)
    high = (units + parts - 1)//parts
    for t in prange(parts):
        lo = t*high
        if lo < units:
            count = min(high, units - lo)
            assert count*(16*B) <= high*(16*B)
            assert lo*(16*B) + count*(16*B) <= units*(16*B)
            own = np.empty(count*(16*B), f32)
            fours = B//4
            assert (4*fours)*(16*count) <= count*(16*B)
            assert (4*fours)*(n*ROUNDED) <= B*(n*ROUNDED)
            assert lo*(n*size) + count*(n*size) <= units*(n*size)
            if size == Q8: many_q8(w, at + lo*(n*size), n, count, fx, own, 16*count, fours)
            if size == Q4: many_q4(w, at + lo*(n*size), n, count, fx, own, 16*count, fours)
            done = 4*fours if size == Q8 or size == Q4 else 0
            for u in range(count):
                assert (lo + u)*(n*size) + n*size <= units*(n*size)
                for b in range(done, B):
                    assert b*(32*n) + 32*n <= B*(32*n)
                    assert b*(n*ROUNDED) + n*ROUNDED <= B*(n*ROUNDED)
                    assert b*(16*count) + 16*count <= count*(16*B)
                    rows(size, w, at + (lo + u)*(n*size), n, x, fx, b, own, b*(16*count) + 16*u, 0, 1)
            for i in range(count*(16*B)): z[lo*(16*B) + i] = own[i]
    for t in range(parts):
        lo = t*high
        if lo < units: by_rows(lo, min(high, units - lo), units, B, z, y)


# %% [markdown]
# ## A layer
#
# The texts share two arrays for keys and values. Each has its own regions of them, the first of which is `base`, and a position of its
# own.

# %%
#| export
@kernel
def ask_all(B: Size, G: Size, share: Size, d: Size, T: Size, c: Size, units: Size, eps: f32, centred: bool, turned: bool, w: Buf[f32], size: Size, at: Size,
            v: Buf[f32], bias: Size, cos: Buf["T*(4*d)", f32], sin: Buf["T*(4*d)", f32], pos: Buf["B", i64, "0 <= pos < T"], x: Buf["B*(32*c)", f32],
            qkv: Buf["B*(16*units)", f32], parts: Size):
    "Queries, keys and values for a row of each text."
    requires(1 <= parts, parts < 2**20, (G*share + 2*G)*(8*d) <= 16*units, at + units*(c*size) <= len(w), bias + 64*c + 16*units <= len(v), size <= 512)
    requires(len(w) < 2**44, len(v) < 2**44, T < 2**20, G < 2**10, share < 2**10, d < 2**10, c < 2**20, units < 2**20, B < 2**10)
    h = np.empty(B*(32*c), f32)
    for b in range(B):
        assert b*(32*c) + 32*c <= B*(32*c)
        norm(x, b*(32*c), 4*c, v, bias, eps, centred, h, b*(32*c))
    times_all(size, w, at, c, units, B, h, qkv, parts)
    for b in range(B):
        assert b*(16*units) + 16*units <= B*(16*units)
        add(qkv, b*(16*units), v, bias + 64*c, 2*units)
        at_pos = pos[b]
        assert at_pos*(4*d) + 4*d <= T*(4*d)
        if turned: turn(qkv, b*(16*units), G*share + G, 4*d, cos, sin, at_pos*(4*d))


# %%
#| export
@kernel
def look_texts(B: Size, G: Size, share: Size, d: Size, T: Size, units: Size, R: Size, own_regions: Size, region: Size, base: Buf["B", i64, "0 <= base <= R - own_regions"],
               pos: Buf["B", i64, "0 <= pos < T"], keys: Buf["R*(T*(8*d))", f32], values: Buf["R*(T*(8*d))", f32], qkv: Buf["B*(16*units)", f32],
               o: Buf["(B*(G*share))*(8*d)", f32]):
    "Keep the keys and values of each text's row, and let its heads look at what its own regions hold."
    requires(own_regions <= R, region + G <= own_regions, 1 <= share, (G*share + 2*G)*(8*d) <= 16*units, len(keys) < 2**44, len(qkv) < 2**44)
    requires(T < 2**20, G < 2**10, share < 2**10, d < 2**10, units < 2**20, B < 2**10)
    for b in range(B):
        assert b*(16*units) + 16*units <= B*(16*units)
        for g in range(G):
            assert g*(8*d) + 8*d <= G*(8*d)
            keep(R, T, 8*d, keys, base[b] + region + g, pos[b], qkv, b*(16*units) + (G*share)*(8*d) + g*(8*d))
            keep(R, T, 8*d, values, base[b] + region + g, pos[b], qkv, b*(16*units) + (G*share + G)*(8*d) + g*(8*d))
    for n in prange(B*(G*share)):
        b, h = n//(G*share), n % (G*share)
        assert b < B
        g, first, seen = h//share, base[b], pos[b] + 1
        assert g < G
        assert (first + region + g)*(T*(8*d)) + T*(8*d) <= R*(T*(8*d))
        assert seen*(8*d) <= T*(8*d)
        assert h*(8*d) + 8*d <= (G*share)*(8*d)
        assert b*(16*units) + 16*units <= B*(16*units)
        assert n*(8*d) + 8*d <= (B*(G*share))*(8*d)
        scores = np.empty(seen + 7, f32)
        own = np.empty(8*d, f32)
        look(qkv, b*(16*units) + h*(8*d), keys, values, (first + region + g)*(T*(8*d)), seen, d, scores, own, 0)
        for i in range(8*d): o[n*(8*d) + i] = own[i]


# %%
#| export
@kernel
def answer_all(B: Size, c: Size, e: Size, f: Size, qkv_units: Size, units: Size, eps: f32, centred: bool, gated: bool, w: Buf[f32], o_size: Size, o_at: Size,
               up_size: Size, up_at: Size, down_size: Size, down_at: Size, v: Buf[f32], bias: Size, o: Buf["B*(32*e)", f32], x: Buf["B*(32*c)", f32], parts: Size):
    "The rest of a layer for a row of each text, in place."
    requires(1 <= parts, parts < 2**20, units == 4*f if gated else units == 2*f, len(w) < 2**44, len(v) < 2**44, B < 2**10)
    requires(o_size <= 512, up_size <= 512, down_size <= 512, c < 2**20, e < 2**20, f < 2**20, qkv_units < 2**20, units < 2**23)
    requires(o_at + (2*c)*(e*o_size) <= len(w), up_at + units*(c*up_size) <= len(w), down_at + (2*c)*(f*down_size) <= len(w))
    requires(bias + 192*c + 16*qkv_units + 16*units <= len(v))
    h = np.empty(B*(32*c), f32)
    y = np.empty(B*(32*c), f32)
    wide = np.empty(B*(16*units), f32)
    mid = np.empty(B*(32*f), f32)
    times_all(o_size, w, o_at, e, 2*c, B, o, y, parts)
    for b in range(B):
        assert b*(32*c) + 32*c <= B*(32*c)
        add(x, b*(32*c), y, b*(32*c), 4*c)
        add(x, b*(32*c), v, bias + 64*c + 16*qkv_units, 4*c)
        norm(x, b*(32*c), 4*c, v, bias + 96*c + 16*qkv_units, eps, centred, h, b*(32*c))
    times_all(up_size, w, up_at, c, units, B, h, wide, parts)
    for b in range(B):
        assert b*(16*units) + 16*units <= B*(16*units)
        assert b*(32*f) + 32*f <= B*(32*f)
        add(wide, b*(16*units), v, bias + 160*c + 16*qkv_units, 2*units)
        if gated: swiglu(wide, b*(16*units), 4*f)
        else: gelu_row(wide, b*(16*units), 4*f)
        for j in range(4*f): store(mid, b*(32*f) + 8*j, load(wide, b*(16*units) + 8*j))
    times_all(down_size, w, down_at, f, 2*c, B, mid, y, parts)
    for b in range(B):
        assert b*(32*c) + 32*c <= B*(32*c)
        add(x, b*(32*c), y, b*(32*c), 4*c)
        add(x, b*(32*c), v, bias + 160*c + 16*qkv_units + 16*units, 4*c)


# %% [markdown]
# ## The step

# %%
#| export
@kernel
def step_all(layers: Size, G: Size, share: Size, d: Size, T: Size, c: Size, e: Size, f: Size, qkv_units: Size, up_units: Size, units: Size,
             eps: f32, centred: bool, gated: bool, turned: bool, w: Buf[f32], stride: Size, qkv_size: Size, o_size: Size, up_size: Size, down_size: Size,
             head_size: Size, o_at: Size, up_at: Size, down_at: Size, head_at: Size, v: Buf[f32], far: Size, cos: Buf["T*(4*d)", f32], sin: Buf["T*(4*d)", f32],
             R: Size, keys: Buf["R*(T*(8*d))", f32], values: Buf["R*(T*(8*d))", f32], B: Size, base: Buf["B", i64, "0 <= base <= R - layers*G"],
             pos: Buf["B", i64, "0 <= pos < T"], x: Buf["B*(32*c)", f32], logits: Buf["B*(16*units)", f32], parts: Size):
    "One token of each text, whose rows are in x, through all layers: scores for what follows each."
    requires(1 <= parts, parts < 2**20, 1 <= share, (G*share)*(8*d) == 32*e, (G*share + 2*G)*(8*d) <= 16*qkv_units, up_units == 4*f if gated else up_units == 2*f)
    requires(len(keys) < 2**44, len(w) < 2**44, len(v) < 2**44, T < 2**20, G < 2**10, share < 2**10, d < 2**10, c < 2**20, e < 2**20, f < 2**20, qkv_units < 2**20)
    requires(qkv_size <= 512, o_size <= 512, up_size <= 512, down_size <= 512, head_size <= 512, units < 2**30, layers < 2**20, B < 2**10, layers*G <= R)
    requires(qkv_units*(c*qkv_size) <= stride, o_at + (2*c)*(e*o_size) <= stride, up_at + up_units*(c*up_size) <= stride, down_at + (2*c)*(f*down_size) <= stride)
    requires(layers*stride <= len(w), head_at + units*(c*head_size) <= len(w), far == 192*c + 16*qkv_units + 16*up_units, layers*far + 64*c <= len(v))
    qkv = np.empty(B*(16*qkv_units), f32)
    o = np.empty(B*(32*e), f32)
    h = np.empty(B*(32*c), f32)
    for l in range(layers):
        assert l*stride + stride <= layers*stride
        assert l*far + far <= layers*far
        assert l*G + G <= layers*G
        ask_all(B, G, share, d, T, c, qkv_units, eps, centred, turned, w, qkv_size, l*stride, v, l*far, cos, sin, pos, x, qkv, parts)
        look_texts(B, G, share, d, T, qkv_units, R, layers*G, l*G, base, pos, keys, values, qkv, o)
        answer_all(B, c, e, f, qkv_units, up_units, eps, centred, gated, w, o_size, l*stride + o_at, up_size, l*stride + up_at, down_size, l*stride + down_at,
                   v, l*far, o, x, parts)
    for b in range(B):
        assert b*(32*c) + 32*c <= B*(32*c)
        norm(x, b*(32*c), 4*c, v, layers*far, eps, centred, h, b*(32*c))
    times_all(head_size, w, head_at, c, units, B, h, logits, parts)


# %%
times_all, look_texts, step_all

# %% [markdown]
# Five rows at once have the bits of each of them alone, in every format:

# %%
from bendml.decode.matvec import product
from bendml.decode.stored import FORMATS, store_as

rng = np.random.default_rng(0)
w, x = rng.standard_normal((80, 416), float32), rng.standard_normal((5, 416), float32)
for name in FORMATS:
    t, y = store_as(w, name), np.empty((5, 80), float32)
    times_all(FORMATS[name].size, t.cells, 0, 13, 5, 5, x.reshape(-1), y.reshape(-1), 2)
    assert np.array_equal(y, [product(t, row) for row in x])

# %% [markdown]
# ## What this does not show
#
# - That eight texts take as long as one. Weights in 8 or 4 bits take nearly as long to multiply as to arrive.
