# %%
#| default_exp tensor.weights

# %% [markdown]
# # Matrix times vector
# > When each weight is used once, reading it is all the work.

# %% [markdown]
# In a product of two matrices each number is used many times. In $y = W x$ each weight is read, used once, and not needed
# again. A language model that writes a sentence does almost nothing else: for each word it reads all of its weights. So
# this page counts bytes, not operations. Two things help: to read as fast as memory allows, and to store the weights in fewer bytes.

# %%
#| hide
#| export
import numpy as np
from bendml.threads import get_threads
from numba import prange
from numpy import float32

from bendml.fixed import FULL, has_vnni, products_split_i8, split256
from bendml.kernel import Buf, Size, f32, i8, kernel, requires, u16
from bendml.simd import (fma, hsum, load, load_bf16, load_i8, one, one_bf16, one_i8, products, products_bf16, products_i8, splat,
                         to_bf16 as bits_of_bf16)
from bendml.tensor.arrays import TensorError, dense, result, typed


# %% [markdown]
# ## In sequence
#
# The definition is $y_i = \sum_p W_{ip} x_p$, from left to right; the loop that is proved to compute it is on the page about
# [sums in order](29c_sums.ipynb). A sum that must keep its order waits three or four cycles for each addition; four rows side by
# side wait together.

# %%
#| export
@kernel
def matvec_fours(w: Buf["r*c", f32], x: Buf["c", f32], y: Buf["r", f32], lo: Size, hi: Size, r: Size, c: Size):
    "y[lo:hi] = w[lo:hi] x, each sum from left to right, four of them at a time."
    requires(lo <= hi, hi <= r)
    fours = (hi - lo)//4
    for q in range(fours):
        i = lo + 4*q
        s0, s1, s2, s3 = f32(0), f32(0), f32(0), f32(0)
        for p in range(c):
            s0 += w[i*c + p]*x[p]
            s1 += w[(i + 1)*c + p]*x[p]
            s2 += w[(i + 2)*c + p]*x[p]
            s3 += w[(i + 3)*c + p]*x[p]
        y[i], y[i + 1], y[i + 2], y[i + 3] = s0, s1, s2, s3
    for i in range(lo + 4*fours, hi):
        total = f32(0)
        for p in range(c): total += w[i*c + p]*x[p]
        y[i] = total


# %% [markdown]
# ## As fast as memory
#
# One row at a time, straight through memory, [sixty-four products](04_simd.ipynb) a step. Two things look cleverer and are not.
# Reading several rows at once: the memory then sees many places instead of one long run. And asking for the bytes some
# kilobytes in advance: an older processor was faster that way, but one that recognises a long run by itself was slower by a
# quarter.
#
# But $x$ has to stay in the nearest cache while the weights rush through it, and that holds 32 KB. So rows longer than 2048 are
# read in pieces, sixteen rows a piece.

# %%
#| export
PIECE, GROUP = 2048, 16  # columns; rows

def _dot(dtype, products, widen, one):
    "The product of a piece of a row of weights with x, sixty-four at a time."
    @kernel
    def dot(w: Buf[dtype], at: Size, x: Buf[f32], p: Size, n: Size):
        requires(at + n <= len(w), p + n <= len(x))
        total, rest = splat(f32(0)), f32(0)
        for q in range(0, n//64*64, 64): total = total + products(w, at + q, x, p + q)
        for q in range(n//64*64, n//8*8, 8): total = fma(widen(w, at + q), load(x, p + q), total)
        for q in range(n//8*8, n): rest += one(w, at + q)*x[p + q]
        return hsum(total) + rest
    return dot


# %%
#| export
def _rows(dtype, products, widen, one):
    "The rows lo to hi of a product, each times its scale if there is one."
    dot = _dot(dtype, products, widen, one)

    @kernel
    def rows(w: Buf["r*c", dtype], scale: Buf[f32], x: Buf["c", f32], y: Buf["r", f32], lo: Size, hi: Size, r: Size, c: Size):
        requires(lo <= hi, hi <= r, r*c < 2**44, len(scale) == 0 or len(scale) == r)
        for group in range(lo, hi, GROUP):
            last = min(hi, group + GROUP)
            for i in range(group, last): y[i] = f32(0)
            for p in range(0, c, PIECE):
                for i in range(group, last): y[i] += dot(w, i*c + p, x, p, min(PIECE, c - p))
            if len(scale) > 0:
                for i in range(group, last): y[i] *= scale[i]
    return rows


# %% [markdown]
# ## Weights of eight bits
#
# Making floats of them takes longer than memory takes to bring them: that loop reads 0.6 of what memory could. So $x$ becomes
# [whole numbers of three bytes](04b_fixed.ipynb) instead, once, with a step for each piece. No number of $x$ is then off by more than
# $2^{-24}$ of the largest in its piece. A piece that has none of a size that can be divided by, or one that is not finite, keeps its floats,
# as do the columns after the last 256, and all of $x$ where a processor cannot multiply bytes; the step is written as zero then.

# %%
#| export
LEAST, MOST = 1e-30, 1e30  # largest numbers of a piece that are split

@kernel
def fixed_step(x: Buf[f32], p: Size, n: Size, split: bool):
    "The step of x[p:p + n], or zero."
    requires(p + n <= len(x))
    top, total = f32(0), f32(0)
    for q in range(n):
        top = max(top, abs(x[p + q]))
        total += abs(x[p + q])   # not finite if one of them is not
    return top*f32(1/FULL) if split and top > f32(LEAST) and total < f32(MOST) else f32(0)

@kernel
def fix_i8(x: Buf["c", f32], c: Size, d: Buf["c//256*224", f32], steps: Buf["(c + 2047)//2048", f32], split: bool):
    "All of x, 256 numbers at a time, and the step of each piece."
    requires(c < 2**40)
    for s in range((c + PIECE - 1)//PIECE):
        p = s*PIECE
        n = min(PIECE, c - p)
        steps[s] = fixed_step(x, p, n, split)
        if steps[s] > f32(0):
            for q in range(n//256): split256(x, p + 256*q, f32(1)/steps[s], 128, d, (p//256 + q)*224)


# %%
#| export
_dot_i8 = _dot(i8, products_i8, load_i8, one_i8)

@kernel
def rows_i8(w: Buf["r*c", i8], scale: Buf["r", f32], x: Buf["c", f32], d: Buf["c//256*224", f32], steps: Buf["(c + 2047)//2048", f32], y: Buf["r", f32], lo: Size, hi: Size, r: Size, c: Size):
    "The rows lo to hi of a product with weights of eight bits."
    requires(lo <= hi, hi <= r, r*c < 2**44, c < 2**40)
    for group in range(lo, hi, GROUP):
        last = min(hi, group + GROUP)
        for i in range(group, last): y[i] = f32(0)
        for s in range((c + PIECE - 1)//PIECE):
            p = s*PIECE
            n = min(PIECE, c - p)
            split = n//256 if steps[s] > f32(0) else 0
            for i in range(group, last):
                assert i*c + c <= r*c
                total = splat(f32(0))
                for q in range(split): total = total + products_split_i8(w, i*c + p + 256*q, d, (p//256 + q)*224)
                y[i] += hsum(total)*steps[s] + _dot_i8(w, i*c + p + 256*split, x, p + 256*split, n - 256*split)
        for i in range(group, last): y[i] *= scale[i]


# %%
#| export
@kernel
def bands_i8(w: Buf["r*c", i8], scale: Buf["r", f32], x: Buf["c", f32], d: Buf["c//256*224", f32], y: Buf["r", f32], r: Size, c: Size, parts: Size, split: bool):
    "The same in `parts` bands of rows. d is room for the bytes of x."
    requires(1 <= parts, r*c < 2**44, c < 2**40)
    steps = np.empty((c + 2047)//2048, f32)
    fix_i8(x, c, d, steps, split)
    high = (r + parts - 1)//parts
    for t in prange(parts):
        lo = min(r, t*high)
        rows_i8(w, scale, x, d, steps, y, lo, min(r, lo + high), r, c)

def in_lines(n: int) -> np.ndarray:
    "Room for n cells, from the beginning of a line of the cache on: a register of 64 bytes is then filled from one line."
    a = np.empty(n + 15, float32)
    start = -a.ctypes.data % 64//4
    return a[start:start + n]


# %% [markdown]
# ## Bands
#
# On several threads each takes a *band* of rows, about the same number. No two write the same number, and a row is summed by one
# thread: the bits do not depend on how many there are. That the bands together give exactly $r$ numbers is proved on the
# page about [bands](40c_bands.ipynb), `exact_length`.

# %%
#| export
def _bands(dtype, rows):
    "A product on several threads: `parts` bands of rows."
    @kernel
    def bands(w: Buf["r*c", dtype], scale: Buf[f32], x: Buf["c", f32], y: Buf["r", f32], r: Size, c: Size, parts: Size):
        requires(1 <= parts, r*c < 2**44, len(scale) == 0 or len(scale) == r)
        high = (r + parts - 1)//parts
        for t in prange(parts):
            lo = min(r, t*high)
            rows(w, scale, x, y, lo, min(r, lo + high), r, c)
    return bands

@kernel
def _in_order(w: Buf["r*c", f32], scale: Buf[f32], x: Buf["c", f32], y: Buf["r", f32], lo: Size, hi: Size, r: Size, c: Size):
    requires(lo <= hi, hi <= r)
    matvec_fours(w, x, y, lo, hi, r, c)

_STORED = {np.dtype(f32): (f32, products, load, one), np.dtype(u16): (u16, products_bf16, load_bf16, one_bf16)}
_FAST = {dtype: _rows(*how) for dtype, how in _STORED.items()}
_BANDS = {dtype: _bands(dtype.type, rows) for dtype, rows in _FAST.items()}
_bands_in_order = _bands(f32, _in_order)

# %%
#| export
SMALL = 20_000  # weights below which handing out work costs more than it saves
_NO_SCALE = np.empty(0, float32)

def matvec(
    w: np.ndarray,                   # (r, c): float32, or bfloat16 as uint16, or int8
    x: np.ndarray,                   # (c,) float32
    out: np.ndarray | None = None,   # (r,) float32
    scale: np.ndarray | None = None, # (r,) float32: what each row is multiplied by; int8 needs one
    order: str = 'fast',             # or 'sequential': the bits of a plain loop; float32 only
) -> np.ndarray:                     # (r,) float32
    "w x, row by row; the bits do not depend on the number of threads. `TensorError` for what does not fit."
    dtype = getattr(w, 'dtype', None)
    if dtype not in (*_STORED, np.int8): raise TensorError('matvec: w', 'weights of a type that is not known', 'float32, bfloat16 as uint16, or int8', dtype or type(w).__name__)
    w, x = dense('matvec: w', w, 2, dtype), dense('matvec: x', x, 1)
    r, c = w.shape
    if x.shape != (c,): raise TensorError('matvec', f'rows of {c} weights', typed((c,)), typed(x.shape))
    scale = _NO_SCALE if scale is None else dense('matvec: scale', scale, 1)
    if (dtype == np.int8 or scale.size) and scale.shape != (r,): raise TensorError('matvec: scale', 'one number a row', typed((r,)), typed(scale.shape))
    if order not in ('fast', 'sequential') or (order == 'sequential' and (dtype != float32 or scale.size)):
        raise TensorError('matvec: order', 'not an order for these weights', "'fast'" + (", or 'sequential'" if dtype == float32 else ''), repr(order))
    y = result('matvec: out', out, (r,), (w, x, scale))
    parts = get_threads() if w.size > SMALL else 1
    if order == 'sequential': _bands_in_order(w.reshape(-1), scale, x, y, r, c, parts)
    elif dtype == np.int8: bands_i8(w.reshape(-1), scale, x, in_lines(c//256*224), y, r, c, parts, has_vnni())
    elif parts == 1: _FAST[dtype](w.reshape(-1), scale, x, y, 0, r, r, c)
    else: _BANDS[dtype](w.reshape(-1), scale, x, y, r, c, parts)
    return y


# %% [markdown]
# ## Fewer bytes
#
# `to_bf16` keeps the upper half of each number, about three digits. `to_i8` keeps eight bits: each row is divided by its
# largest weight, and rounded to whole numbers from -127 to 127.

# %%
#| export
def to_bf16(
    w: np.ndarray,   # float32, any shape
) -> np.ndarray:     # uint16, of the same shape
    "The bits of the nearest bfloat16 numbers; `TensorError` for another type of numbers."
    return bits_of_bf16(dense('to_bf16: w', w, getattr(w, 'ndim', 2)))

def to_i8(
    w: np.ndarray,                        # (r, c) float32
) -> tuple[np.ndarray, np.ndarray]:       # int8 (r, c), and the scale of each row (r,)
    "The nearest whole numbers from -127 to 127, times a scale a row; `TensorError` if a weight is not a finite number."
    w = dense('to_i8: w', w, 2)
    if not np.isfinite(w).all(): raise TensorError('to_i8: w', 'not finite', 'finite numbers', str(w[~np.isfinite(w)][0]))
    scale = np.abs(w).max(axis=1, initial=0)/float32(127)
    safe = np.where(scale > 0, scale, float32(1))
    return np.rint(np.clip(w/safe[:, None], -127, 127)).astype(np.int8), scale


# %%
rng = np.random.default_rng(0)
w, x = rng.standard_normal((1000, 768), float32), rng.standard_normal(768, float32)
exact = w.astype(np.float64) @ x
error = lambda y: float(abs(y - exact).max()/abs(exact).max())
small, scale = to_i8(w)
for name, y in {'float32': matvec(w, x), 'bfloat16': matvec(to_bf16(w), x), 'int8': matvec(small, x, scale=scale)}.items():
    print(f'{name:9} largest error {error(y):.0e}')

# %% [markdown]
# The sequential order has the bits of the loop that is proved:

# %%
from bendml.kernel.sums import matvec as matvec_loops
y = np.empty(1000, float32)
matvec_loops(1000, 768, w.ravel(), x, y)
assert np.array_equal(matvec(w, x, order='sequential'), y)

# %%
try: matvec(small, x)
except TensorError as e: print(e)

# %% [markdown]
# ## How fast
#
# 64 MB of numbers, and the speed at which each kind is read, in this run on this machine:

# %%
import timeit
w, x = rng.standard_normal((8192, 2048), float32), rng.standard_normal(2048, float32)
small, scale = to_i8(w)
kinds = {'float32': lambda: matvec(w, x), 'bfloat16': lambda w=to_bf16(w): matvec(w, x), 'int8': lambda: matvec(small, x, scale=scale), 'NumPy, float32': lambda: w @ x}
best = {name: min(timeit.repeat(f, number=1, repeat=7)) for name, f in kinds.items()}
for name, t in best.items(): print(f'{name:15} {1e3*t:5.1f} ms  {best["float32"]/t:.1f}x')

# %% [markdown]
# ## What this does not show
#
# - How far the fast order is from the exact sum. A test holds it to $(c/64 + 20)\, 2^{-24} \sum_p |w_p x_p|$, and for weights of eight bits,
#   where $x$ is rounded, to that and $2^{-24} \sum_p |w_p| \max |x|$, the largest number being that of a piece.
# - Rounding $x$ to fewer bits. Some programs store it in eight as well; that is faster and less exact. The page on
#   [weights at the speed of memory](75b_matvec.ipynb) has sixteen.
