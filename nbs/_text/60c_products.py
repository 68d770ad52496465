# %%
#| default_exp nn.products

# %% [markdown]
# # Products for training
# > The five rungs of the matrix product had a sixth: registers of 512 bits, panels that are packed once, and results that are added in place.

# %% [markdown]
# Four fifths of a training step are products of matrices with thousands of rows, three for each linear layer: one forwards,
# and on the way back one for the input's derivative and one for the weights', which is *added* to what was there. They come in
# between short loops of our own. The library's products are fast, but its threads go on looking for work for milliseconds after
# each of them, and keep a core from the loops that follow. With the same threads for all, two cores are worth two.
#
# This page has a sixth rung: the [tile for wide registers](60b_wide.ipynb), panels that are packed once, rows of $A$ that stay
# where they are, and results that are added in place.

# %%
#| hide
#| export
import numpy as np
from numpy import float32

from bendml.kernel import Buf, Size, f32, kernel, prange, requires
from bendml.nn.room import room
from bendml.nn.wide import HIGH, LONG, has_avx512, wide, wide_fma, wide_load, wide_store
from bendml.simd import load, store
from bendml.threads import get_threads


# %% [markdown]
# ## A tile of the result

# %%
#| export
@kernel
def wide_tile(k: Size, a: Buf[f32], i: Size, da: Size, step: Size, b: Buf[f32], j: Size, c: Buf[f32], at: Size, stride: Size, first: bool):
    "The tile of c that begins at `at`. Not `first`: added to what is there."
    requires(1 <= k, i + (k - 1)*da + 7*step < len(a), j + 48*k <= len(b), at + 7*stride + 48 <= len(c))
    t = wide() if first else wide_load(c, at, stride)
    for p in range(k): t = wide_fma(t, a, i + p*da, step, b, j + p*LONG)
    wide_store(c, at, stride, t)

@kernel
def wide_cut(k: Size, a: Buf[f32], i: Size, da: Size, step: Size, b: Buf[f32], j: Size, c: Buf[f32], at: Size, stride: Size,
             rows: Size, cols: Size, first: bool, square: Buf["HIGH*LONG", f32]):
    "A tile of which `rows` by `cols` exist."
    requires(1 <= k, i + (k - 1)*da + 7*step < len(a), j + 48*k <= len(b))
    requires(1 <= rows, rows <= HIGH, 1 <= cols, cols <= LONG, at + (rows - 1)*stride + cols <= len(c))
    if rows == HIGH and cols == LONG: wide_tile(k, a, i, da, step, b, j, c, at, stride, first)
    else:
        for x in range(rows):
            for y in range(cols): square[x*LONG + y] = f32(0) if first else c[at + x*stride + y]
        wide_tile(k, a, i, da, step, b, j, square, 0, LONG, False)
        for x in range(rows):
            for y in range(cols): c[at + x*stride + y] = square[x*LONG + y]


# %% [markdown]
# ## Panels
#
# All of $B$ is copied into panels of 48 columns, once, and shared by the threads. Rows of $A$ whose numbers are not neighbours
# are copied as well, eight by eight, as are the last rows if they do not fill a tile.

# %%
#| export
DEPTH, BLOCK, SPAN = 384, 192, 384   # numbers in a sum at a time; rows and columns of a block, whose panels stay in the second cache

@kernel
def pack_long(b: Buf[f32], at: Size, br: Size, bc: Size, k: Size, m: Size, out: Buf[f32], to: Size):
    "Copy b (k, m) into panels of 48 columns, one after the other, from `to` on, filled up with zeros."
    requires(1 <= k, m == 0 or at + (k - 1)*br + (m - 1)*bc < len(b), to + (m + 47)*k <= len(out))
    for j in range(0, m, LONG):
        left = min(LONG, m - j)
        assert (j + 48)*k <= (m + 47)*k
        for p in range(k):
            assert p*br + br <= k*br
            q, o = max(at + p*br + j*bc, 0), max(to + j*k + p*LONG, 0)
            if bc == 1 and left == LONG:
                for x in range(0, LONG, 8): store(out, o + x, load(b, q + x))
            else:
                for x in range(left):
                    assert (j + x)*bc + bc <= m*bc
                    out[o + x] = b[q + x*bc]
                for x in range(left, LONG): out[o + x] = f32(0)

@kernel
def pack_high(a: Buf[f32], at: Size, ar: Size, ac: Size, n: Size, k: Size, out: Buf[f32]):
    "Copy a (n, k) into panels of 8 rows, one after the other, filled up with zeros."
    requires(1 <= k, n == 0 or at + (n - 1)*ar + (k - 1)*ac < len(a), (n + 7)*k <= len(out))
    for i in range(0, n, HIGH):
        left = min(HIGH, n - i)
        assert i*k + 8*k <= (n + 7)*k
        for p in range(k):
            assert p*ac + ac <= k*ac
            q, o = max(at + i*ar + p*ac, 0), max(i*k + p*HIGH, 0)
            if ar == 1 and left == HIGH: store(out, o, load(a, q))
            else:
                for x in range(left):
                    assert (i + x)*ar + ar <= n*ar
                    out[o + x] = a[q + x*ar]
                for x in range(left, HIGH): out[o + x] = f32(0)


# %%
#| export
@kernel
def wide_block(a: Buf[f32], at_a: Size, ar: Size, ac: Size, panel_a: Buf[f32], panels: Buf[f32], at_b: Size, c: Buf[f32], at: Size, stride: Size,
               n: Size, copied: Size, k: Size, m: Size, first: bool, square: Buf["HIGH*LONG", f32]):
    "A block of c: n rows of a times panels. From row `copied` on, a multiple of 8, they are in panel_a."
    requires(copied % HIGH == 0, copied <= n, 1 <= n, 1 <= k, 1 <= m, at_a + (n - 1)*ar + (k - 1)*ac < len(a), len(a) < 2**44, len(c) < 2**44, len(panel_a) < 2**44, len(panels) < 2**44)
    requires((n + 7)*k <= len(panel_a), at_b + (m + 47)*k <= len(panels), at + (n - 1)*stride + m <= len(c))
    for i in range(0, n, HIGH):
        for j in range(0, m, LONG):
            rows, cols, to = min(HIGH, n - i), min(LONG, m - j), at + i*stride + j
            if i < copied:
                assert (i + 8)*ar <= n*ar
                wide_cut(k, a, at_a + i*ar, ac, ar, panels, at_b + j*k, c, to, stride, rows, cols, first, square)
            else: wide_cut(k, panel_a, (i - copied)*k, HIGH, 1, panels, at_b + j*k, c, to, stride, rows, cols, first, square)


# %%
#| export
@kernel
def wide_band(a: Buf[f32], at_a: Size, ar: Size, ac: Size, panels: Buf["(m + 47)*k", f32], c: Buf[f32], at: Size, n: Size, k: Size, m: Size, add: bool):
    "n whole rows of c, from `at` on."
    requires(1 <= n, 1 <= k, 1 <= m, at_a + (n - 1)*ar + (k - 1)*ac < len(a), len(a) < 2**44, len(c) < 2**44, len(panels) < 2**44, at + n*m <= len(c))
    panel_a = np.empty((min(BLOCK, n) + 7)*min(DEPTH, k), f32)
    square = np.empty(HIGH*LONG, f32)
    for s in range((k + DEPTH - 1)//DEPTH):
        p = s*DEPTH
        depth = min(DEPTH, k - p)
        first = s == 0 and not add
        for i in range(0, n, BLOCK):
            tall = min(BLOCK, n - i)
            copied = tall - tall % HIGH if ac == 1 else 0
            if copied < tall: pack_high(a, at_a + (i + copied)*ar + p*ac, ar, ac, tall - copied, depth, panel_a)
            for j in range(0, m, SPAN):
                span = min(SPAN, m - j)
                assert (m + 47)*p + (m + 47)*depth <= (m + 47)*k
                assert j*depth + (span + 47)*depth <= (m + 47)*depth
                assert i*m + (tall - 1)*m + m <= n*m
                wide_block(a, at_a + i*ar + p*ac, ar, ac, panel_a, panels, (m + 47)*p + j*depth, c, at + i*m + j, m, tall, copied, depth, span, first, square)


# %% [markdown]
# One thread writes into C itself. Several share out bands of rows; each computes a band in an array of its own, and then copies
# it, which makes it plain that no two write one cell.

# %%
#| export
@kernel
def pack_all(b: Buf[f32], br: Size, bc: Size, k: Size, m: Size, panels: Buf["(m + 47)*k", f32]):
    "All panels of b (k, m): those of the first DEPTH rows, then those of the next."
    requires(1 <= k, 1 <= m, (k - 1)*br + (m - 1)*bc < len(b), len(b) < 2**44, len(panels) < 2**44)
    for s in range((k + DEPTH - 1)//DEPTH):
        p = s*DEPTH
        depth = min(DEPTH, k - p)
        assert (m + 47)*p + (m + 47)*depth <= (m + 47)*k
        pack_long(b, p*br, br, bc, depth, m, panels, (m + 47)*p)

@kernel
def product_alone(a: Buf[f32], ar: Size, ac: Size, b: Buf[f32], br: Size, bc: Size, c: Buf["n*m", f32], n: Size, k: Size, m: Size, add: bool):
    "c (n, m) = a b, or c += a b, with strides, on one thread."
    requires(1 <= n, 1 <= k, 1 <= m, (n - 1)*ar + (k - 1)*ac < len(a), (k - 1)*br + (m - 1)*bc < len(b), len(a) < 2**44, len(b) < 2**44, len(c) < 2**44, (m + 47)*k < 2**44)
    panels = np.empty((m + 47)*k, f32)
    pack_all(b, br, bc, k, m, panels)
    wide_band(a, 0, ar, ac, panels, c, 0, n, k, m, add)

@kernel
def product_shared(a: Buf[f32], ar: Size, ac: Size, b: Buf[f32], br: Size, bc: Size, c: Buf["n*m", f32], n: Size, k: Size, m: Size, add: bool, tall: Size):
    "The same on several threads: bands of `tall` rows."
    requires(1 <= n, 1 <= k, 1 <= m, 1 <= tall, (n - 1)*ar + (k - 1)*ac < len(a), (k - 1)*br + (m - 1)*bc < len(b), len(a) < 2**44, len(b) < 2**44, n*m < 2**40, (m + 47)*k < 2**44)
    panels = np.empty((m + 47)*k, f32)
    pack_all(b, br, bc, k, m, panels)
    for t in prange((n + tall - 1)//tall):
        i = t*tall
        assert i < n
        rows = min(tall, n - i)
        assert rows*m <= n*m
        assert rows*m <= tall*m
        assert i*ar + rows*ar <= n*ar
        own = np.empty(rows*m, f32)
        if add:
            for x in range(rows*m): own[x] = c[i*m + x]
        wide_band(a, i*ar, ar, ac, panels, own, 0, rows, k, m, add)
        for x in range(rows*m): c[i*m + x] = own[x]


# %% [markdown]
# ## Multiplying
#
# On processors without these registers, and for small matrices, the library multiplies.

# %%
#| export
TINY = 2_000_000   # multiplications below which the library is as fast

def product(
    a: np.ndarray,                   # (n, k) float32, or a transposed view
    b: np.ndarray,                   # (k, m) likewise
    out: np.ndarray | None = None,   # (n, m), contiguous: where to put it
    add: bool = False,               # add to what is in `out`
) -> np.ndarray:                     # (n, m)
    "a times b, in the fastest order; the same bits for any number of threads, if the processor has wide registers."
    (n, k), m = a.shape, b.shape[1]
    if k != len(b) or out is not None and out.shape != (n, m):
        raise ValueError(f'product\n- expected : {k} rows on the right, a result {(n, m)}\n- observed : {len(b)}, {np.shape(out)}')
    known = (out is None or out.dtype == float32 and out.flags.c_contiguous) and all(x.dtype == float32 and (x.flags.c_contiguous or x.flags.f_contiguous) for x in (a, b))
    if not known or n*k*m < TINY or not has_avx512():
        if not add: return np.matmul(a, b, out=out)
        out += np.matmul(a, b)
        return out
    if out is None: out = room(n, m)
    flat = lambda x: x.reshape(-1) if x.flags.c_contiguous else x.T.reshape(-1)
    args = flat(a), a.strides[0]//4, a.strides[1]//4, flat(b), b.strides[0]//4, b.strides[1]//4, out.reshape(-1), n, k, m, add
    if get_threads() == 1: product_alone(*args)
    else: product_shared(*args, _tall(n, get_threads()))
    return out

def _tall(n: int, threads: int) -> int:
    "How many rows a band has: whole tiles, at most a block, and as many bands for each thread."
    bands = (n + BLOCK - 1)//BLOCK
    bands += -bands % threads
    return (n + bands*HIGH - 1)//(bands*HIGH)*HIGH


# %% [markdown]
# Sums like these differ from the library's by rounding only:

# %%
rng = np.random.default_rng(0)
a, b, c = (rng.standard_normal(s, float32) for s in ((200, 300), (300, 150), (200, 150)))
want = a.astype(float) @ b
assert abs(product(a, b) - want).max() < 1e-4 and abs(product(a, b, c.copy(), add=True) - want - c).max() < 1e-4

# %% [markdown]
# ## What this does not show
#
# - The speed on other processors. Without registers of 512 bits the library multiplies, and its threads are its own.
# - Sums in the sequential order: [`matmul`](42_gemm.ipynb) has them.
