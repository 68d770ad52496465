# %%
#| default_exp tensor.gemm

# %% [markdown]
# # The matrix product
# > One loop nest, six times: from three plain loops to the speed of a tuned library, and the same bits four times.

# %% [markdown]
# Nine tenths of the time that machine learning takes is spent in this:
#
# $$C_{ij} = \sum_{p < k} A_{ip} B_{pj}$$
#
# It can be said in three loops, and then takes fifty times longer than it must. This page climbs from there to the top, a
# rung at a time. Each rung has one idea, and is held to the first one.

# %%
#| hide
#| export
import numpy as np
from bendml.threads import get_threads
from numba import prange
from numpy import float32

from bendml.kernel import Buf, Size, f32, kernel, requires
from bendml.simd import load, splat, store
from bendml.tensor.arrays import TensorError, dense, result, typed
from bendml.tiles import (COLS, HIGH, LONG, ROWS, lanes, tile, tile_fma, tile_load, tile_mul_add, tile_store,
                          wide, wide_fma, wide_load, wide_store)

# %% [markdown]
# ## Rung 1: three loops
#
# The definition, with the strides that were explained on the page about [arrays](41_arrays.ipynb): $A_{ip}$ stands at
# `i*ar + p*ac`, $B_{pj}$ at `p*br + j*bc`. With other strides the same loops multiply transposed matrices. Each sum runs
# from left to right and starts at zero; each product is rounded, then each sum. That is the *sequential order*, and it is
# what all other rungs are compared with.
#
# These three loops stand on the page about [sums in order](29c_sums.ipynb), where it is proved that they compute just this sum in
# just this order, for every size and stride. Here they are in Python:

# %%
from bendml.kernel.sums import gemm as gemm_loops

a, b, c = np.arange(6, dtype=float32), np.ones(6, float32), np.empty(4, float32)
gemm_loops.plain(2, 3, 2, 3, 1, 2, 1, a, b, c)
c


# %% [markdown]
# The other rungs are kernels too. `@kernel` ([kernels](29b_kernel.ipynb)) compiles a loop only after it has proved, for every
# size and stride that `requires` lets through, that no index leaves its array and that no two threads write one cell.

# %% [markdown]
# ## Rung 2: eight sums at a time
#
# *Hypothesis: the innermost loop should walk along memory.* With `p` innermost, $B$ is read down a column, each number from
# another cache line, and every addition waits for the one before. With `j` innermost the sums of a row grow side by side,
# eight to a register ([simd](04_simd.ipynb)). Each single sum still takes its terms in the same order: not a bit changes.

# %%
#| export
@kernel
def gemm_rows(a: Buf[f32], ar: Size, ac: Size, b: Buf[f32], br: Size, c: Buf["n*m", f32], n: Size, k: Size, m: Size):
    "Rung 2. The same sums, eight of a row at a time; the rows of b contiguous."
    requires(n == 0 or k == 0 or (n - 1)*ar + (k - 1)*ac < len(a), m == 0 or k == 0 or (k - 1)*br + m <= len(b), m % 8 == 0)
    for i in range(n):
        for j in range(0, m, 8):
            assert j + 8 <= m
            store(c, i*m + j, splat(f32(0)))
        for p in range(k):
            x = splat(a[i*ar + p*ac])
            for j in range(0, m, 8):
                assert j + 8 <= m
                store(c, i*m + j, load(c, i*m + j) + x*load(b, p*br + j))


# %% [markdown]
# ## Rung 3: a tile in registers
#
# *Hypothesis: the sums should not travel.* Rung 2 loads and stores every sum once per term. Sums that are kept in registers
# are stored once: six rows times sixteen columns of them fit. For six numbers of $A$ and sixteen of $B$ that are loaded
# there are now 96 multiplications, instead of one for every two loads.

# %%
#| export
@kernel
def product_tile(k: Size, a: Buf[f32], i: Size, da: Size, step: Size, b: Buf[f32], j: Size, db: Size, c: Buf[f32], at: Size, stride: Size, first: bool, fused: bool):
    "The tile of c that begins at `at`: six rows of a, `step` apart, times sixteen columns of b. Not `first`: add to what is there."
    requires(1 <= k, i + (k - 1)*da + 5*step < len(a), j + (k - 1)*db + 16 <= len(b), at + 5*stride + 16 <= len(c))
    t = tile() if first else tile_load(c, at, stride)
    if fused:
        for p in range(k): t = tile_fma(t, a, i + p*da, step, b, j + p*db)
    else:
        for p in range(k): t = tile_mul_add(t, a, i + p*da, step, b, j + p*db)
    tile_store(c, at, stride, t)

@kernel
def gemm_tiles(a: Buf[f32], ar: Size, ac: Size, b: Buf[f32], br: Size, c: Buf["n*m", f32], n: Size, k: Size, m: Size):
    "Rung 3. Whole tiles only: n a multiple of 6, m of 16; the rows of b contiguous."
    requires(1 <= k, n == 0 or (n - 1)*ar + (k - 1)*ac < len(a), m == 0 or (k - 1)*br + m <= len(b))
    requires(n % 6 == 0, m % 16 == 0, len(a) < 2**44, len(b) < 2**44, len(c) < 2**44)
    for j in range(0, m, COLS):
        for i in range(0, n, ROWS):
            assert j + 16 <= m and i + 6 <= n
            assert (i + 5)*m + m <= n*m
            product_tile(k, a, i*ar, ac, ar, b, j, br, c, i*m + j, m, True, False)


# %% [markdown]
# ## Rung 4: panels
#
# *Hypothesis: what is left is waiting for memory.* A column of tiles reads sixteen columns of $B$ over and over; in a wide
# matrix they lie far apart, and do not stay in the cache. So all of $B$ is copied once into *panels*, one for every 32 columns,
# where they are neighbours. Rows of $A$ whose numbers are neighbours stay where they are; others are copied too, twelve by twelve, and
# so are the last ones if they do not fill a tile.

# %%
#| export
DEEP, TALL, SPAN = 384, 192, 384   # numbers in a sum at a time; rows and columns of a block, whose panels stay in the second cache

@kernel
def pack_panel(b: Buf[f32], at: Size, br: Size, bc: Size, k: Size, cols: Size, out: Buf[f32], to: Size):
    "Copy `cols` columns of b, k deep, into the panel from `to` on, filled up with zeros."
    requires(1 <= cols, cols <= LONG, k == 0 or at + (k - 1)*br + (cols - 1)*bc < len(b), to + 32*k <= len(out))
    for p in range(k):
        assert p*br + br <= k*br
        q, o = max(at + p*br, 0), max(to + 32*p, 0)
        if bc == 1 and cols == LONG:
            for x in range(0, 32, 8): store(out, o + x, load(b, q + x))
        else:
            for x in range(cols):
                assert x*bc + bc <= cols*bc
                out[o + x] = b[q + x*bc]
            for x in range(cols, 32): out[o + x] = f32(0)

@kernel
def pack_cols(b: Buf[f32], at: Size, br: Size, bc: Size, k: Size, m: Size, out: Buf[f32]):
    "Copy b (k, m) into panels of 32 columns, one panel after the other."
    requires(1 <= k, m == 0 or at + (k - 1)*br + (m - 1)*bc < len(b), (m + 31)*k <= len(out), len(b) < 2**44, len(out) < 2**44)
    for j in range(0, m, LONG):
        cols = min(LONG, m - j)
        assert (j + 32)*k <= (m + 31)*k
        assert j*bc + (cols - 1)*bc <= (m - 1)*bc
        pack_panel(b, at + j*bc, br, bc, k, cols, out, j*k)


# %%
#| export
@kernel
def pack_rows(a: Buf[f32], at: Size, ar: Size, ac: Size, n: Size, k: Size, out: Buf[f32]):
    "Copy a (n, k) into panels of 12 rows, one panel after the other, filled up with zeros."
    requires(1 <= k, n == 0 or at + (n - 1)*ar + (k - 1)*ac < len(a), (n + 11)*k <= len(out))
    for i in range(0, n, HIGH):
        rows = min(HIGH, n - i)
        assert i*k + 12*k <= (n + 11)*k
        for p in range(k):
            assert p*ac + ac <= k*ac
            q, o = max(at + i*ar + p*ac, 0), max(i*k + 12*p, 0)
            if ar == 1 and rows == HIGH:
                store(out, o, load(a, q))
                store(out, o + 4, load(a, q + 4))   # the middle four once more
            else:
                for x in range(rows):
                    assert (i + x)*ar + ar <= n*ar
                    out[o + x] = a[q + x*ar]
                for x in range(rows, 12): out[o + x] = f32(0)


# %% [markdown]
# ## Rung 5: longer registers
#
# *Hypothesis: fewer, longer instructions.* Where registers hold [sixteen numbers](04a_tiles.ipynb), one tile of 12×32 takes the place of four,
# and 14 loads are enough for 24 multiplications, instead of 8 for 12. Each number is rounded as before, so no bit changes.
# The sequential order stays with four tiles: its multiplications and additions go to different units, which twelve registers keep busy.

# %%
#| export
@kernel
def product_wide(k: Size, a: Buf[f32], i: Size, da: Size, step: Size, b: Buf[f32], j: Size, c: Buf[f32], at: Size, stride: Size, first: bool, fused: bool):
    "The wide tile of c that begins at `at`: twelve rows of a, `step` apart, times a panel of b. Not `first`: add to what is there."
    requires(1 <= k, i + (k - 1)*da + 11*step < len(a), j + 32*k <= len(b), at + 11*stride + 32 <= len(c))
    requires(len(a) < 2**44, len(b) < 2**44, len(c) < 2**44)
    if fused and lanes() > f32(8):
        t = wide() if first else wide_load(c, at, stride)
        for p in range(k): t = wide_fma(t, a, i + p*da, step, b, j + 32*p)
        wide_store(c, at, stride, t)
    else:
        for y in range(0, LONG, COLS):
            for x in range(0, HIGH, ROWS): product_tile(k, a, i + x*step, da, step, b, j + y, LONG, c, at + x*stride + y, stride, first, fused)


# %% [markdown]
# At the right and lower edge a tile hangs over. It is computed in a small square of its own, and the part that exists is
# copied.

# %%
#| export
@kernel
def product_cut(k: Size, a: Buf[f32], i: Size, da: Size, step: Size, b: Buf[f32], j: Size, c: Buf[f32], at: Size, stride: Size,
                rows: Size, cols: Size, first: bool, fused: bool, square: Buf["HIGH*LONG", f32]):
    "A tile of which `rows` by `cols` exist."
    requires(1 <= k, i + (k - 1)*da + 11*step < len(a), j + 32*k <= len(b), len(a) < 2**44, len(b) < 2**44, len(c) < 2**44)
    requires(1 <= rows, rows <= HIGH, 1 <= cols, cols <= LONG, at + (rows - 1)*stride + cols <= len(c))
    if rows == HIGH and cols == LONG: product_wide(k, a, i, da, step, b, j, c, at, stride, first, fused)
    else:
        for x in range(rows):
            for y in range(cols): square[x*LONG + y] = f32(0) if first else c[at + x*stride + y]
        product_wide(k, a, i, da, step, b, j, square, 0, LONG, False, fused)
        for x in range(rows):
            for y in range(cols): c[at + x*stride + y] = square[x*LONG + y]


# %% [markdown]
# A block of rows meets a block of columns, one row of tiles after the other. Panels hold `k` numbers of a column, of which `deep` are
# at work, from `p` on: so many that a row of tiles stays in the nearest cache.

# %%
#| export
@kernel
def product_block(a: Buf[f32], at_a: Size, ar: Size, ac: Size, panel_a: Buf[f32], panels: Buf[f32], at_b: Size, k: Size, p: Size, c: Buf[f32], at: Size, stride: Size,
                  n: Size, copied: Size, deep: Size, m: Size, first: bool, fused: bool, square: Buf["HIGH*LONG", f32]):
    "n rows of a times panels. From row `copied` on, a multiple of 12, they are in panel_a."
    requires(copied % HIGH == 0, copied <= n, 1 <= n, 1 <= deep, p + deep <= k, 1 <= m, at_a + (n - 1)*ar + (deep - 1)*ac < len(a), (n + 11)*deep <= len(panel_a))
    requires(at_b + (m + 31)*k <= len(panels), at + (n - 1)*stride + m <= len(c), len(a) < 2**44, len(c) < 2**44, len(panel_a) < 2**44, len(panels) < 2**44)
    for i in range(0, n, HIGH):
        for j in range(0, m, LONG):
            rows, cols, to, q = min(HIGH, n - i), min(LONG, m - j), at + i*stride + j, at_b + j*k + 32*p
            assert (j + 32)*k <= (m + 31)*k
            if i < copied:
                assert (i + 12)*ar <= n*ar
                product_cut(deep, a, at_a + i*ar, ac, ar, panels, q, c, to, stride, rows, cols, first, fused, square)
            else: product_cut(deep, panel_a, (i - copied)*deep, HIGH, 1, panels, q, c, to, stride, rows, cols, first, fused, square)


# %%
#| export
@kernel
def product_panels(a: Buf[f32], at_a: Size, ar: Size, ac: Size, panels: Buf[f32], at_b: Size, c: Buf[f32], at: Size, stride: Size, n: Size, k: Size, m: Size, fused: bool):
    "The part of c (n, m) that begins at `at`: rows of a times panels."
    requires(1 <= n, 1 <= k, 1 <= m, at_a + (n - 1)*ar + (k - 1)*ac < len(a), at_b + (m + 31)*k <= len(panels), at + (n - 1)*stride + m <= len(c))
    requires(len(a) < 2**44, len(c) < 2**44, len(panels) < 2**44)
    panel_a = np.empty((min(TALL, n) + 11)*min(DEEP, k), f32)
    square = np.empty(HIGH*LONG, f32)
    for s in range((k + DEEP - 1)//DEEP):
        p = s*DEEP
        deep = min(DEEP, k - p)
        for i in range(0, n, TALL):
            tall = min(TALL, n - i)
            copied = tall - tall % HIGH if ac == 1 and ar % 1024 != 0 else 0   # rows 4 KB apart push each other out of the nearest cache
            if copied < tall: pack_rows(a, at_a + (i + copied)*ar + p*ac, ar, ac, tall - copied, deep, panel_a)
            for j in range(0, m, SPAN):
                span = min(SPAN, m - j)
                assert j*k + (span + 31)*k <= (m + 31)*k
                assert i*stride + (tall - 1)*stride <= (n - 1)*stride
                product_block(a, at_a + i*ar + p*ac, ar, ac, panel_a, panels, at_b + j*k, k, p, c, at + i*stride + j, stride, tall, copied, deep, span, s == 0, fused, square)

@kernel
def gemm_panels(a: Buf[f32], at_a: Size, ar: Size, ac: Size, b: Buf[f32], at_b: Size, br: Size, bc: Size, c: Buf[f32], at: Size, stride: Size,
                n: Size, k: Size, m: Size, fused: bool):
    "Rungs 4 and 5. The part of c (n, m) that begins at `at` and whose rows are `stride` apart."
    requires(1 <= n, 1 <= k, 1 <= m, len(a) < 2**44, len(b) < 2**44, len(c) < 2**44, (m + 31)*k < 2**44)
    requires(at_a + (n - 1)*ar + (k - 1)*ac < len(a), at_b + (k - 1)*br + (m - 1)*bc < len(b), at + (n - 1)*stride + m <= len(c))
    panels = np.empty((m + 31)*k, f32)
    pack_cols(b, at_b, br, bc, k, m, panels)
    product_panels(a, at_a, ar, ac, panels, 0, c, at, stride, n, k, m, fused)


# %% [markdown]
# ## Several threads
#
# They share out the panels to be copied, and then bands of rows. Every sum is still computed by one thread, in the one order. Each
# fills a band of its own, small enough to stay in its cache, and then copies or adds it to its place: that costs a fiftieth of the time,
# and makes it plain that no two threads write one cell. `max(..., 0)` changes nothing; it tells the compiler what was proved, that the place is
# not negative, so that it copies many numbers at once. Without it, and with panels that one thread made for all, two threads were
# worth 1.6 instead of 1.9.

# %%
#| export
@kernel
def gemm_parallel(a: Buf[f32], ar: Size, ac: Size, b: Buf[f32], br: Size, bc: Size, c: Buf["n*m", f32], n: Size, k: Size, m: Size, add: bool, fused: bool, tall: Size):
    "Rungs 4 and 5 on several threads: c (n, m) = a b, or c += a b, in bands of `tall` rows."
    requires(1 <= n, 1 <= k, 1 <= m, 1 <= tall, n*m < 2**40, len(a) < 2**44, len(b) < 2**44, (m + 31)*k < 2**44)
    requires((n - 1)*ar + (k - 1)*ac < len(a), (k - 1)*br + (m - 1)*bc < len(b))
    panels = np.empty((m + 31)*k, f32)
    for q in prange((m + LONG - 1)//LONG):
        j = q*LONG
        assert (j + 32)*k <= (m + 31)*k
        assert j*bc + (min(LONG, m - j) - 1)*bc <= (m - 1)*bc
        pack_panel(b, j*bc, br, bc, k, min(LONG, m - j), panels, q*(32*k))
    for t in prange((n + tall - 1)//tall):
        i = t*tall
        rows = min(tall, n - i)
        assert i < n
        assert rows*m <= n*m
        assert i*ar + rows*ar <= n*ar
        own = np.empty(rows*m, f32)
        to = max(i*m, 0)
        product_panels(a, i*ar, ar, ac, panels, 0, own, 0, m, rows, k, m, fused)
        if add:
            for x in range(rows*m): c[to + x] += own[x]
        else:
            for x in range(rows*m): c[to + x] = own[x]


# %% [markdown]
# ## Rung 6: the library
#
# [OpenBLAS](https://www.openblas.net) comes with NumPy, and its inner loops are written in assembly for each processor.
# `np.dot(a, b, out=c)` calls it directly. It is free to choose its own order of additions.
#
# It also has threads of its own, and those that have nothing to do keep their cores for up to 25 milliseconds, looking for more
# work. Our loops before and after a product want these cores. So a large product on several threads is computed by rung 5, on
# the threads that all our loops share. A small one is over before a sleeping thread of ours has woken, and goes to the library, as does
# any product on one thread, where its inner loops win by a twentieth. [Layers](60c_products.ipynb), whose products stand between
# loops, ask for rung 5 earlier.
#
# ## Multiplying
#
# The functions for users have two orders. `'fast'` takes the fastest way there is. `'sequential'` promises bits: those of rung
# 1, on any number of threads. It is rung 4 with the product and the sum rounded one after the other.

# %%
#| export
SMALL, BIG = 20_000, 2**28  # multiplications: below, handing out work costs more than it saves; above, our own threads are the better ones

def _tall(n: int, threads: int) -> int:
    "How many rows a band has: whole tiles, at most a block, and the same number of bands for each thread."
    bands = (n + TALL - 1)//TALL
    bands += -bands % threads
    return (n + bands*HIGH - 1)//(bands*HIGH)*HIGH

def _panels(a: np.ndarray, b: np.ndarray, c: np.ndarray, add: bool, fused: bool) -> None:
    "c = a b, or c += a b, by panels; a and b may be transposed views."
    flat = lambda x: x.reshape(-1) if x.flags.c_contiguous else x.T.reshape(-1)
    (n, k), m = a.shape, b.shape[1]
    ar, ac, br, bc = (s//4 for s in a.strides + b.strides)
    if n*k*m > SMALL: gemm_parallel(flat(a), ar, ac, flat(b), br, bc, c.reshape(-1), n, k, m, add, fused, _tall(n, get_threads()))
    else:
        fresh = np.zeros(n*m, float32)
        if n*k*m: gemm_panels(flat(a), 0, ar, ac, flat(b), 0, br, bc, fresh, 0, m, n, k, m, fused)
        c[:] = c + fresh.reshape(n, m) if add else fresh.reshape(n, m)

def product(
    a: np.ndarray,     # (n, k) float32, contiguous or a transposed view
    b: np.ndarray,     # (k, m) likewise
    c: np.ndarray,     # (n, m) contiguous: where to put it
    add: bool = False, # add to what is in c
    least: int = BIG   # multiplications from which on it is done by panels; below, and always on one thread unless this is given, by the library
) -> None:
    "c = a b, or c += a b, the fastest way, for arrays that are known to fit."
    times = np.multiply if 1 in (a.size, b.size) else np.dot   # a single number that is zero would be left out, and a NaN be lost
    if a.size*b.shape[1] >= least and (least < BIG or get_threads() > 1): _panels(a, b, c, add, True)
    elif add: c += times(a, b)
    else: times(a, b, out=c)

ORDERS = {'fast': product, 'sequential': lambda a, b, c, add: _panels(a, b, c, add, False)}


# %%
#| export
def _product(where: str, a: np.ndarray, b: np.ndarray, turn: str, out: np.ndarray | None, add: bool, order: str) -> np.ndarray:
    "Check, multiply, and add if wanted. `turn` names the sides that are stored transposed."
    a, b = dense(f'{where}: a', a, 2), dense(f'{where}: b', b, 2)
    x, y = a.T if 'a' in turn else a, b.T if 'b' in turn else b
    if x.shape[1] != y.shape[0]:
        wanted = (b.shape[0], x.shape[1]) if 'b' in turn else (x.shape[1], b.shape[1])
        raise TensorError(where, f'sums of {x.shape[1]} products on the left, of {y.shape[0]} on the right', typed(wanted), typed(b.shape), _hint(turn, a, b))
    if order not in ORDERS: raise TensorError(where, 'no such order', ' or '.join(map(repr, ORDERS)), repr(order))
    shape = x.shape[0], y.shape[1]
    if out is None and add: raise TensorError(where, 'add=True without out', 'an array to add to', None)
    out = result(f'{where}: out', out, shape, (a, b))
    ORDERS[order](x, y, out, add)
    return out

def _hint(turn: str, a: np.ndarray, b: np.ndarray) -> str:
    fits = {'': a.shape[1] == b.shape[0], 'b': a.shape[1] == b.shape[1], 'a': a.shape[0] == b.shape[0]}
    return next((f'matmul{dict(a="_tn", b="_nt").get(t, "")} would fit' for t, ok in fits.items() if ok and t != turn), '')


# %%
#| export
def matmul(
    a: np.ndarray,                   # (n, k) float32
    b: np.ndarray,                   # (k, m) float32
    out: np.ndarray | None = None,   # (n, m): where to put it
    add: bool = False,               # add to what is in `out`
    order: str = 'fast',             # or 'sequential': the bits of three plain loops
) -> np.ndarray:                     # (n, m)
    "a times b; `TensorError` for what does not fit."
    return _product('matmul', a, b, '', out, add, order)

def matmul_nt(
    a: np.ndarray,                   # (n, k)
    b: np.ndarray,                   # (m, k)
    out: np.ndarray | None = None, add: bool = False, order: str = 'fast',
) -> np.ndarray:                     # (n, m)
    "a times b transposed: every row of a with every row of b."
    return _product('matmul_nt', a, b, 'b', out, add, order)

def matmul_tn(
    a: np.ndarray,                   # (k, n)
    b: np.ndarray,                   # (k, m)
    out: np.ndarray | None = None, add: bool = False, order: str = 'fast',
) -> np.ndarray:                     # (n, m)
    "a transposed times b: a sum over rows, as in the gradient of a weight."
    return _product('matmul_tn', a, b, 'a', out, add, order)


# %%
a, b = np.arange(6, dtype=float32).reshape(2, 3), np.ones((3, 2), float32)
matmul(a, b)

# %%
try: matmul(np.zeros((2, 3), float32), np.zeros((4, 3), float32))
except TensorError as e: print(e)

# %% [markdown]
# ## All rungs, side by side
#
# The same bits from rung 1 to rung 4, on any number of threads:

# %%
rng = np.random.default_rng(0)
def all_rungs(n, k, m):
    "The product of two random matrices, by each rung that can."
    a, b = rng.standard_normal((n, k), float32), rng.standard_normal((k, m), float32)
    fresh = lambda: np.empty(n*m, float32)
    x, y, args = a.ravel(), b.ravel(), (n, k, m)
    rungs = {
        '1 three loops': (c1 := fresh(), lambda: gemm_loops(*args, k, 1, m, 1, x, y, c1)),
        '2 rows': (c2 := fresh(), lambda: gemm_rows(x, k, 1, y, m, c2, *args)),
        '3 tiles': (c3 := fresh(), lambda: gemm_tiles(x, k, 1, y, m, c3, *args)),
        '4 panels': (c4 := fresh(), lambda: gemm_panels(x, 0, k, 1, y, 0, m, 1, c4, 0, m, *args, False)),
        '5 long registers': (c5 := fresh(), lambda: gemm_panels(x, 0, k, 1, y, 0, m, 1, c5, 0, m, *args, True)),
        '6 library': (c6 := fresh(), lambda: np.dot(a, b, out=c6.reshape(n, m))),
    }
    for _, run in rungs.values(): run()
    return rungs

small = all_rungs(60, 784, 128)
first = small['1 three loops'][0]
print({name: bool(np.array_equal(c, first)) for name, (c, _) in small.items()})
assert all(np.array_equal(small[name][0], first) for name in ('2 rows', '3 tiles', '4 panels'))

# %% [markdown]
# Their speed here, on one thread, as multiplications and additions per second:

# %%
import timeit
from bendml.threads import set_threads

before = get_threads()
set_threads(1)
speed = {}
for size in ((60, 784, 128), (516, 1024, 1024)):
    for name, (_, run) in all_rungs(*size).items():
        rounds = 1 if size[0] > 60 and name < '2' else 5
        speed.setdefault(name, []).append(2*np.prod(size)/min(timeit.repeat(run, number=1, repeat=rounds))/1e9)
set_threads(before)
for name, (s, l) in speed.items(): print(f'{name:16} {s:6.1f}  {l:6.1f}  billion a second')

# %% [markdown]
# Two things are worth a second look. The sequential order costs a fifth: it has two instructions for each of the others' one, and the
# sixteen columns of a tile are every other line of a panel of 32. And rung 3 falls behind on a large matrix, where the columns of $B$
# are 4 KB apart, as soon as memory has other work as well.

# %% [markdown]
# ## What this does not show
#
# - The last bit of the fast order: it is the library's, or that of fused steps, and differs between machines and numbers of threads.
# - Very small and very flat products. A single row is a product of matrix and [vector](43_matvec.ipynb).
