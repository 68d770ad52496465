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
# *Hypothesis: the tile should be wider.* With registers of sixteen numbers, 8 rows of $A$ meet 48 columns of $B$: 24 registers
# of sums, and only 11 loads for 24 multiplications. The rows of $A$ stay where they are. On the processor of this page the inner
# loop reaches 98 % of what the multipliers can do; [rung 4](42_gemm.ipynb) has 12 multiplications for 8 loads.

# %%
#| hide
#| export
import numpy as np
from llvmlite import ir
from numba import prange
from numba.core import cgutils, types
from numba.core.datamodel import models
from numba.extending import register_model
from numpy import float32

from bendml.kernel import Buf, Size, f32, kernel, requires, word
from bendml.nn.room import room
from bendml.simd import Access, _F32, _I32, _features, _flat, _index, _word, load, store
from bendml.threads import get_threads

# %% [markdown]
# ## The tile
#
# The same four words as on the page about [vectors](04_simd.ipynb), in another size. In Python a tile is an array of 8×48.

# %%
#| export
HIGH, LONG, LANES = 8, 48, 16
_V16 = ir.VectorType(_F32, LANES)

class F32x16(types.Type):
    "numba's type of sixteen float32 numbers in one register."
    def __init__(self): super().__init__(name='f32x16')

f32x16 = F32x16()
_wide = types.UniTuple(f32x16, HIGH*LONG//LANES)

@register_model(F32x16)
class _Model16(models.PrimitiveModel):
    def __init__(self, manager, of): super().__init__(manager, of, _V16)

def has_avx512() -> bool:
    "Are there registers of 512 bits? Without them the same words work, but slower than the library."
    return _features().get('avx512f', False)


# %%
#| export
def _lanes(e, a, i, stride):
    "The addresses of a tile's registers."
    stride, start = e.context.cast(e.builder, stride, e.sig.args[2], types.intp), e.address(a, i)
    for n in range(_wide.count):
        away = e.builder.add(e.builder.mul(stride, ir.Constant(stride.type, n//3)), ir.Constant(stride.type, n % 3*LANES))
        yield e.builder.gep(start, [away])

def _load_code(e, a, i, stride): return e.context.make_tuple(e.builder, _wide, [e.load(w, _V16) for w in _lanes(e, a, i, stride)])

def _store_code(e, a, i, stride, t):
    for where, v in zip(_lanes(e, a, i, stride), cgutils.unpack_tuple(e.builder, t)): e.store(where, v)
    return e.nothing()

def _step_code(e, t, a, i, step, b, j):
    sums, at, at_b = cgutils.unpack_tuple(e.builder, t), e.address(a, i, 1), e.address(b, j, 4)
    row = [e.load(e.builder.gep(at_b, [ir.Constant(_I32, c)]), _V16) for c in range(0, LONG, LANES)]
    step = e.context.cast(e.builder, step, e.sig.args[3], types.intp)
    none, order = ir.Constant(_V16, ir.Undefined), ir.Constant(ir.VectorType(_I32, LANES), [0]*LANES)
    for n in range(len(sums)):
        if n % 3 == 0:
            x = e.load(e.builder.gep(at, [e.builder.mul(step, ir.Constant(step.type, n//3))]), _F32)
            x = e.builder.shuffle_vector(e.builder.insert_element(none, x, ir.Constant(_I32, 0)), none, order)
        sums[n] = e.call('llvm.fma.v16f32', _V16, x, row[n % 3], sums[n])
    return e.context.make_tuple(e.builder, _wide, sums)


# %%
#| export
@word('tile')
@_word((), _wide, lambda e: e.context.make_tuple(e.builder, _wide, [ir.Constant(_V16, [0.0]*LANES)]*_wide.count))
def wide() -> np.ndarray:
    "8×48 sums, all of them zero."
    return np.zeros((HIGH, LONG), float32)

@word('tile', Access(0, 1, LONG, rows=HIGH, stride=2))
@_word((_flat(types.float32), _index, _index), _wide, _load_code)
def wide_load(a: np.ndarray, i: int, stride: int) -> np.ndarray:
    "Eight rows of 48 numbers; row r begins at a[i + r*stride]."
    return np.array([a[i + r*stride:][:LONG] for r in range(HIGH)])

@word(None, Access(0, 1, LONG, True, HIGH, 2))
@_word((_flat(types.float32), _index, _index, _wide), types.none, _store_code)
def wide_store(a: np.ndarray, i: int, stride: int, t: np.ndarray) -> None:
    "Write eight rows of 48 numbers."
    for r in range(HIGH): a[i + r*stride:][:LONG] = t[r]

@word('tile', Access(1, 2, 1, rows=HIGH, stride=3), Access(4, 5, LONG))
@_word((_wide, _flat(types.float32), _index, _index, _flat(types.float32), _index), _wide, _step_code)
def wide_fma(t: np.ndarray, a: np.ndarray, i: int, step: int, b: np.ndarray, j: int) -> np.ndarray:
    "Add to the tile a[i], a[i + step], ..., eight of them, times b[j:j + 48]; rounded once."
    return t + np.outer([a[i + r*step] for r in range(HIGH)], b[j:j + LONG])


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
        assert j*k + 48*k <= (m + 47)*k
        for p in range(k):
            q, o = max(at + p*br + j*bc, 0), max(to + j*k + p*LONG, 0)
            if bc == 1 and left == LONG:
                for x in range(0, LONG, 8): store(out, o + x, load(b, q + x))
            else:
                for x in range(left): out[o + x] = b[q + x*bc]
                for x in range(left, LONG): out[o + x] = f32(0)

@kernel
def pack_high(a: Buf[f32], at: Size, ar: Size, ac: Size, n: Size, k: Size, out: Buf[f32]):
    "Copy a (n, k) into panels of 8 rows, one after the other, filled up with zeros."
    requires(1 <= k, n == 0 or at + (n - 1)*ar + (k - 1)*ac < len(a), (n + 7)*k <= len(out))
    for i in range(0, n, HIGH):
        left = min(HIGH, n - i)
        assert i*k + 8*k <= (n + 7)*k
        for p in range(k):
            q, o = max(at + i*ar + p*ac, 0), max(i*k + p*HIGH, 0)
            if ar == 1 and left == HIGH: store(out, o, load(a, q))
            else:
                for x in range(left): out[o + x] = a[q + x*ar]
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
            if i < copied: wide_cut(k, a, at_a + i*ar, ac, ar, panels, at_b + j*k, c, to, stride, rows, cols, first, square)
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
        rows = min(tall, n - i)
        assert rows*m <= n*m
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
