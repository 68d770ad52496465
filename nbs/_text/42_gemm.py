# %%
#| default_exp tensor.gemm

# %% [markdown]
# # The matrix product
# > One loop nest, five times: from three plain loops to the speed of a tuned library, and the same bits four times.

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
from bendml.simd import COLS, ROWS, load, splat, store, tile, tile_fma, tile_load, tile_mul_add, tile_store
from bendml.tensor.arrays import TensorError, dense, result, typed

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
# matrix they lie far apart, and do not stay in the cache. So they are copied once into a *panel*, where they are neighbours,
# and only as many rows of $B$ at a time as fit into the nearest cache. Rows of $A$ that lie in memory as they are needed stay
# there; the others are copied too.

# %%
#| export
DEEP, TALL, WIDE = 400, 240, 512  # rows of b in a panel (25 KB: the nearest cache); rows of a at a time; columns of b at a time

@kernel
def pack_cols(b: Buf[f32], at: Size, br: Size, bc: Size, k: Size, m: Size, out: Buf[f32]):
    "Copy b (k, m) into panels of 16 columns, one panel after the other, filled up with zeros."
    requires(1 <= k, m == 0 or at + (k - 1)*br + (m - 1)*bc < len(b), (m + 15)*k <= len(out))
    for j in range(0, m, COLS):
        left = min(COLS, m - j)
        for p in range(k):
            q = at + p*br + j*bc
            o = j*k + p*COLS
            assert j*k + 16*k <= (m + 15)*k
            if bc == 1 and left == COLS:
                store(out, o, load(b, q))
                store(out, o + 8, load(b, q + 8))
            else:
                for x in range(COLS): out[o + x] = b[q + x*bc] if x < left else f32(0)

@kernel
def pack_rows(a: Buf[f32], at: Size, ar: Size, ac: Size, n: Size, k: Size, out: Buf[f32]):
    "Copy a (n, k) into panels of 6 rows, one panel after the other, filled up with zeros."
    requires(1 <= k, n == 0 or at + (n - 1)*ar + (k - 1)*ac < len(a), (n + 5)*k <= len(out))
    for i in range(0, n, ROWS):
        left = min(ROWS, n - i)
        for p in range(k):
            q = at + i*ar + p*ac
            for x in range(ROWS): out[i*k + p*ROWS + x] = a[q + x*ar] if x < left else f32(0)


# %% [markdown]
# At the right and lower edge a tile hangs over. It is computed in a small square of its own, and the part that exists is
# copied.

# %%
#| export
@kernel
def product_cut(k: Size, a: Buf[f32], i: Size, da: Size, step: Size, b: Buf[f32], j: Size, c: Buf[f32], at: Size, stride: Size,
                rows: Size, cols: Size, first: bool, fused: bool, square: Buf["ROWS*COLS", f32]):
    "A tile of which `rows` by `cols` exist."
    requires(1 <= k, i + (k - 1)*da + 5*step < len(a), j + 16*k <= len(b))
    requires(1 <= rows, rows <= ROWS, 1 <= cols, cols <= COLS, at + (rows - 1)*stride + cols <= len(c))
    if rows == ROWS and cols == COLS: product_tile(k, a, i, da, step, b, j, COLS, c, at, stride, first, fused)
    else:
        for x in range(rows):
            for y in range(cols): square[x*COLS + y] = f32(0) if first else c[at + x*stride + y]
        product_tile(k, a, i, da, step, b, j, COLS, square, 0, COLS, False, fused)
        for x in range(rows):
            for y in range(cols): c[at + x*stride + y] = square[x*COLS + y]


# %%
#| export
@kernel
def product_block(a: Buf[f32], at_a: Size, ar: Size, ac: Size, panel_a: Buf[f32], panel_b: Buf[f32], c: Buf[f32], at: Size, stride: Size,
                  n: Size, k: Size, m: Size, first: bool, fused: bool, square: Buf["ROWS*COLS", f32]):
    "A block of c: n rows of a times panels of b."
    requires(1 <= n, 1 <= k, 1 <= m, at_a + (n - 1)*ar + (k - 1)*ac < len(a), len(a) < 2**44, len(c) < 2**44, len(panel_a) < 2**44, len(panel_b) < 2**44)
    requires((n + 5)*k <= len(panel_a), (m + 15)*k <= len(panel_b))
    requires(at + (n - 1)*stride + m <= len(c))
    in_place = ac == 1 or (ar == 1 and k <= 128)  # else whole rows of a are copied; the cut ones always are
    copied = n - n % ROWS if in_place else 0
    if copied < n: pack_rows(a, at_a + copied*ar, ar, ac, n - copied, k, panel_a)
    for j in range(0, m, COLS):
        for i in range(0, n, ROWS):
            rows, cols, to = min(ROWS, n - i), min(COLS, m - j), at + i*stride + j
            if i < copied:
                assert i + 6 <= n
                assert (i + 5)*ar + ar <= n*ar
                product_cut(k, a, at_a + i*ar, ac, ar, panel_b, j*k, c, to, stride, rows, cols, first, fused, square)
            else: product_cut(k, panel_a, (i - copied)*k, ROWS, 1, panel_b, j*k, c, to, stride, rows, cols, first, fused, square)

@kernel
def gemm_panels(a: Buf[f32], at_a: Size, ar: Size, ac: Size, b: Buf[f32], at_b: Size, br: Size, bc: Size, c: Buf[f32], at: Size, stride: Size,
                n: Size, k: Size, m: Size, fused: bool):
    "Rung 4. The part of c (n, m) that begins at `at` and whose rows are `stride` apart."
    requires(1 <= n, 1 <= k, 1 <= m, len(a) < 2**44, len(b) < 2**44, len(c) < 2**44)
    requires(at_a + (n - 1)*ar + (k - 1)*ac < len(a), at_b + (k - 1)*br + (m - 1)*bc < len(b), at + (n - 1)*stride + m <= len(c))
    panel_a = np.empty((min(TALL, n) + ROWS)*min(DEEP, k), f32)
    panel_b = np.empty((min(WIDE, m) + COLS)*min(DEEP, k), f32)
    square = np.empty(ROWS*COLS, f32)
    for s in range((k + DEEP - 1)//DEEP):
        p = s*DEEP
        depth = min(DEEP, k - p)
        for j in range(0, m, WIDE):
            wide = min(WIDE, m - j)
            pack_cols(b, at_b + p*br + j*bc, br, bc, depth, wide, panel_b)
            for i in range(0, n, TALL):
                high = min(TALL, n - i)
                product_block(a, at_a + i*ar + p*ac, ar, ac, panel_a, panel_b, c, at + i*stride + j, stride, high, depth, wide, s == 0, fused, square)


# %% [markdown]
# Several threads share the longer side of $C$. Every sum is still computed by one of them, in the one order. Each thread fills a
# block of its own and copies it to its place: that costs a hundredth of the time, and makes it plain that no two threads
# write one cell.

# %%
#| export
@kernel
def gemm_parallel(a: Buf[f32], ar: Size, ac: Size, b: Buf[f32], br: Size, bc: Size, c: Buf["n*m", f32], n: Size, k: Size, m: Size, fused: bool, parts: Size):
    "Rung 4 on several threads: `parts` blocks of rows, or of columns."
    requires(1 <= n, 1 <= k, 1 <= m, 1 <= parts, n*m < 2**40, len(a) < 2**44, len(b) < 2**44)
    requires((n - 1)*ar + (k - 1)*ac < len(a), (k - 1)*br + (m - 1)*bc < len(b))
    if n > m:
        high = (n + ROWS*parts - 1)//(ROWS*parts)*ROWS
        for t in prange(parts):
            i = t*high
            if i < n:
                rows = min(high, n - i)
                assert rows*m <= n*m
                own = np.empty(rows*m, f32)
                gemm_panels(a, i*ar, ar, ac, b, 0, br, bc, own, 0, m, rows, k, m, fused)
                for x in range(rows*m): c[i*m + x] = own[x]
    else:
        wide = (m + COLS*parts - 1)//(COLS*parts)*COLS
        for t in prange(parts):
            j = t*wide
            if j < m:
                cols = min(wide, m - j)
                assert n*cols <= n*m
                own = np.empty(n*cols, f32)
                gemm_panels(a, 0, ar, ac, b, j*bc, br, bc, own, 0, cols, n, k, cols, fused)
                for x in range(n):
                    for y in range(cols):
                        assert j + y < j + wide and j + y < m
                        c[x*m + j + y] = own[x*cols + y]


# %% [markdown]
# ## Rung 5: the library
#
# [OpenBLAS](https://www.openblas.net) comes with NumPy, and its inner loops are written in assembly for each processor.
# `np.dot(a, b, out=c)` calls it directly. It is free to choose its own order of additions.
#
# It also has threads of its own, and those that have nothing to do keep their cores for up to 25 milliseconds, looking for more
# work. Our loops before and after a product want these cores. So a large product on several threads is computed by rung 4, on
# the threads that all our loops share: as fast as the library on a quiet machine, and faster among other work. A small one is
# over before a sleeping thread of ours has woken, and goes to the library, as does any product on one thread, where its inner
# loops win by a twentieth.
#
# ## Multiplying
#
# The function for users has two orders. `'fast'` takes the fastest way there is. `'sequential'` promises bits: those of rung
# 1, on any number of threads. It is rung 4 with the product and the sum rounded one after the other.

# %%
#| export
SMALL, BIG = 20_000, 2**28  # multiplications: below, handing out work costs more than it saves; above, our own threads are the better ones

def _panels(a: np.ndarray, b: np.ndarray, c: np.ndarray, fused: bool) -> None:
    "c = a b by rung 4; a and b may be transposed views."
    flat = lambda x: x.reshape(-1) if x.flags.c_contiguous else x.T.reshape(-1)
    (n, k), m = a.shape, b.shape[1]
    ar, ac, br, bc = (s//4 for s in a.strides + b.strides)
    parts = get_threads() if n*k*m > SMALL else 1
    if not n*k*m: c.fill(0)
    elif parts == 1: gemm_panels(flat(a), 0, ar, ac, flat(b), 0, br, bc, c.reshape(-1), 0, m, n, k, m, fused)
    else: gemm_parallel(flat(a), ar, ac, flat(b), br, bc, c.reshape(-1), n, k, m, fused, parts)

def _fast(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> None:
    "c = a b: by our own threads if it is large and there are several of them, else by the library."
    if a.size*b.shape[1] >= BIG and get_threads() > 1: _panels(a, b, c, True)
    else: np.dot(a, b, out=c)

ORDERS = {'fast': _fast, 'sequential': lambda a, b, c: _panels(a, b, c, False)}


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
    fresh = np.empty(shape, float32) if add else out
    ORDERS[order](x, y, fresh)
    if add: out += fresh
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
        '4 panels, fused': (c5 := fresh(), lambda: gemm_panels(x, 0, k, 1, y, 0, m, 1, c5, 0, m, *args, True)),
        '5 library': (c6 := fresh(), lambda: np.dot(a, b, out=c6.reshape(n, m))),
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
# Two things are worth a second look. The rungs that keep the sequential order are as fast as the fused ones or nearly so: this
# processor multiplies and adds in different units, so that two instructions cost little more than one. And rung 3 falls
# behind on the large matrix, where the columns of $B$ are 4 KB apart.

# %% [markdown]
# ## What this does not show
#
# - The last bit of the fast order: it is the library's, or that of fused steps, and differs between machines and numbers of threads.
# - Very small and very flat products. A single row is a product of matrix and [vector](43_matvec.ipynb).
