# %%
#| default_exp matvec

# %% [markdown]
# # Weights at the speed of memory
# > To write one token a model reads every weight once. So its speed is the size of its weights.

# %% [markdown]
# Multiplying a matrix by one row of numbers takes each weight out of memory, multiplies it once, adds it once, and never
# sees it again. A core could do thirty multiplications in the time in which one `float32` arrives. So it waits, and there
# are two ways to make it wait less: read in the order that memory likes, from front to back, and store the weights small.

# %%
#| hide
#| export
import time
from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numpy import float32

from bendml.stored import FORMATS, Memory, Tensor, TensorError, bf16, f32, half, memory, pack, tensor, unpack
from bendml.threads import get_threads
from bendml.simd import _I32, _V, _VI, Access, _features, _flat, _index, _word, f32x8, fma, hsum, load, prefetch, splat
from numba import njit, prange, types

# %% [markdown]
# What a format costs is plain: so many bytes are read for each weight. At 20 GB/s a model of 124 million weights can write
# at most so many tokens a second:

# %%
for name, f in FORMATS.items(): print(f'{name:5} {f.size/32:6.3f} bytes a weight   {20e9/(124e6*f.size/32):4.0f} tokens a second')

# %% [markdown]
# ## Floating point
#
# One row at a time, front to back, with four registers of partial sums that are added at the end. `ahead` asks for the
# bytes that will be needed 3 KB later.

# %%
#| export
AHEAD = 3072  # bytes

def _float_rows(decode, size):
    "The product for a format whose weights are decoded, 32 of them in `size` bytes."
    @njit
    def product(m, at, k, x, y, r0, r1):
        for r in range(r0, r1):
            row, zero = at + r*(k >> 5)*size, splat(float32(0))
            a, b, c, d = zero, zero, zero, zero
            for n in range(k >> 5):
                for line in range(0, size, 64): prefetch(m.u8, row + n*size + line + AHEAD)
                w0, w1, w2, w3 = decode(m, row, n)
                a, b = fma(w0, load(x, 32*n), a), fma(w1, load(x, 32*n + 8), b)
                c, d = fma(w2, load(x, 32*n + 16), c), fma(w3, load(x, 32*n + 24), d)
            y[r] = hsum((a + b) + (c + d))
    return product


# %% [markdown]
# ## Whole numbers
#
# Weights of 8 and 4 bits are whole numbers times a scale. Turning 32 of them into floats takes longer than they take to
# arrive. Processors have a faster word for whole numbers: it multiplies 32 pairs of bytes and adds up each four products, all
# at once. For this the input row has to be whole numbers too. llama.cpp rounds it to 8 bits. We round it to 16, in two
# bytes, $x \approx s\,(256\,h + l)$, and use the word twice: that is nearly as fast, and 256 times closer.

# %%
#| export
class Fixed(NamedTuple):
    "A row of numbers as 16-bit whole numbers, 32 of which share a step: step*(256*high + low)."
    high: np.ndarray   # (k,) int8
    low: np.ndarray    # (k,) int8
    step: np.ndarray   # (k/32,) float32
    total: np.ndarray  # (k/32,) float32, the sum of each 32

def fixed(
    k: int,
) -> Fixed:
    "Room for a row of k numbers."
    return Fixed(np.zeros(k, np.int8), np.zeros(k, np.int8), np.zeros(k//32, float32), np.zeros(k//32, float32))

@njit(fastmath={'nnan', 'nsz', 'reassoc'})
def to_fixed(x, k, out):
    "Round the first k numbers of x to 16 bits, 32 at a time."
    for n in range(k >> 5):
        top, total = float32(0), np.int32(0)
        for i in range(32*n, 32*n + 32): top = max(top, abs(x[i]))
        per = float32(32639)/top if top > float32(1e-30) else float32(0)
        for i in range(32*n, 32*n + 32):
            q = np.int32(np.rint(x[i]*per))
            high = (q + np.int32(128)) >> np.int32(8)
            out.high[i], out.low[i] = high, q - (high << np.int32(8))
            total += q
        step = top/float32(32639)
        out.step[n], out.total[n] = step, step*float32(total)


# %%
x = fixed(32)
numbers = np.linspace(-1, 2, 32).astype(float32)
to_fixed(numbers, 32, x)
np.abs(x.step[0]*(256*x.high.astype(int) + x.low) - numbers).max()

# %% [markdown]
# ### Two words
#
# `dot4` takes 32 weights of 4 bits out of 16 bytes, `dot8` 32 of 8 bits; `dot8` adds 128 to each, so that none is negative,
# as the processor's word wants it. Where a processor does not have that word, the products are written out, slower and with
# the same bits: sums of whole numbers have no rounding.

# %%
#| export
_B16, _B32, _I32x32 = ir.VectorType(ir.IntType(8), 16), ir.VectorType(ir.IntType(8), 32), ir.VectorType(_I32, 32)

def has_vnni() -> bool:
    "Does the processor have a word that multiplies and adds bytes?"
    return _features().get('avx512vnni', False) and _features().get('avx512vl', False) or _features().get('avxvnni', False)

def _fours(e, total, w, x):
    "total + the sums of each four products of bytes, w without sign, x with."
    b = e.builder
    if has_vnni(): return e.call('llvm.x86.avx512.vpdpbusd.256', _VI, total, b.bitcast(w, _VI), b.bitcast(x, _VI))
    products = b.mul(b.zext(w, _I32x32), b.sext(x, _I32x32))
    for n in range(4): total = b.add(total, b.shuffle_vector(products, products, ir.Constant(_VI, list(range(n, 32, 4)))))
    return total

def _dot(e, w, high, low, j):
    "The sums of each four of w times 256*high + low, as floats."
    at = lambda a: e.load(e.address(a, j, 2), _B32, 1)
    of_high = _fours(e, ir.Constant(_VI, [0]*8), w, at(high))
    return e.builder.sitofp(_fours(e, e.builder.shl(of_high, ir.Constant(_VI, [8]*8)), w, at(low)), _V)


# %%
#| export
def _nibbles(e, w, i):
    b, bytes_ = e.builder, e.load(e.address(w, i), _B16, 1)
    low, high = b.and_(bytes_, ir.Constant(_B16, [15]*16)), b.lshr(bytes_, ir.Constant(_B16, [4]*16))
    return b.shuffle_vector(low, high, ir.Constant(_I32x32, list(range(32))))

def _raised(e, w, i): return e.builder.xor(e.load(e.address(w, i), _B32, 1), ir.Constant(_B32, [128]*32))

_bytes, _signed = _flat(types.uint8), _flat(types.int8)
_reads = (Access(2, 3, 32), Access(4, 3, 32))

@_word((_bytes, _index, _signed, _index, _signed), f32x8, lambda e, w, i, high, j, low: _dot(e, _nibbles(e, w, i), high, low, j), Access(0, 1, 16), *_reads)
def dot4(w: np.ndarray, i: int, high: np.ndarray, j: int, low: np.ndarray) -> np.ndarray:
    "The 32 numbers in the low halves and then the high halves of 16 bytes, times 256*high + low; each four products added up."
    q = np.concatenate((w[i:i + 16] & 15, w[i:i + 16] >> 4)).astype(int)
    return (q*(256*high[j:j + 32].astype(int) + low[j:j + 32])).reshape(8, 4).sum(1).astype(float32)

@_word((_bytes, _index, _signed, _index, _signed), f32x8, lambda e, w, i, high, j, low: _dot(e, _raised(e, w, i), high, low, j), Access(0, 1, 32), *_reads)
def dot8(w: np.ndarray, i: int, high: np.ndarray, j: int, low: np.ndarray) -> np.ndarray:
    "32 bytes with a sign, each plus 128, times 256*high + low; each four products added up."
    q = w[i:i + 32].view(np.int8).astype(int) + 128
    return (q*(256*high[j:j + 32].astype(int) + low[j:j + 32])).reshape(8, 4).sum(1).astype(float32)


# %% [markdown]
# A block of 32 is then $d \sum q x$, and what was added to each weight comes off again, times the sum of the inputs, which
# is known. The three formats differ in where the bytes are and in what comes off.

# %%
#| export
@njit
def _block8_0(m, p, x, n):
    d = half(m.u16, p >> 1)
    return dot8(m.u8, p + 2, x.high, 32*n, x.low), d, float32(-128)*d

@njit
def _block4_0(m, p, x, n):
    d = half(m.u16, p >> 1)
    return dot4(m.u8, p + 2, x.high, 32*n, x.low), d, float32(-8)*d

@njit
def _block4_1(m, p, x, n):
    return dot4(m.u8, p + 4, x.high, 32*n, x.low), half(m.u16, p >> 1), half(m.u16, (p >> 1) + 1)

def _fixed_rows(block, size):
    "The product for a format whose weights are whole numbers, two blocks at a time."
    @njit
    def product(m, at, k, x, y, r0, r1):
        for r in range(r0, r1):
            p, a, b = at + r*(k >> 5)*size, splat(float32(0)), splat(float32(0))
            low_a, low_b = float32(0), float32(0)
            for n in range(0, (k >> 5) - 1, 2):
                prefetch(m.u8, p + AHEAD)
                sums, d, low = block(m, p, x, n)
                a, low_a = fma(splat(d*x.step[n]), sums, a), low_a + low*x.total[n]
                sums, d, low = block(m, p + size, x, n + 1)
                b, low_b = fma(splat(d*x.step[n + 1]), sums, b), low_b + low*x.total[n + 1]
                p += 2*size
            if (k >> 5) & 1:
                sums, d, low = block(m, p, x, (k >> 5) - 1)
                a, low_a = fma(splat(d*x.step[(k >> 5) - 1]), sums, a), low_a + low*x.total[(k >> 5) - 1]
            y[r] = hsum(a + b) + (low_a + low_b)
    return product


# %% [markdown]
# ## One function for all formats

# %%
#| export
_f32, _bf16 = _float_rows(f32, 128), _float_rows(bf16, 64)
_q8_0, _q4_0, _q4_1 = _fixed_rows(_block8_0, 34), _fixed_rows(_block4_0, 18), _fixed_rows(_block4_1, 20)

@njit
def rows(number, m, at, k, x, fx, y, r0, r1):
    "y[r] = row r times the input, for r from r0 to r1. The input is x for floating-point formats, and fx for the others."
    if number == 0: _f32(m, at, k, x, y, r0, r1)
    elif number == 1: _bf16(m, at, k, x, y, r0, r1)
    elif number == 2: _q8_0(m, at, k, fx, y, r0, r1)
    elif number == 3: _q4_0(m, at, k, fx, y, r0, r1)
    else: _q4_1(m, at, k, fx, y, r0, r1)

@njit(cache=True, parallel=True)
def _product(number, m, at, k, x, fx, y, parts):
    to_fixed(x, k, fx)
    for t in prange(parts): rows(number, m, at, k, x, fx, y, t*len(y)//parts, (t + 1)*len(y)//parts)

def product(
    w: Tensor,      # (rows, k)
    x: np.ndarray,  # (k,) float32
) -> np.ndarray:    # (rows,) float32
    "Matrix times row, on all threads."
    x = np.ascontiguousarray(x, float32)
    if x.shape != w.shape[1:]: raise TensorError(f'matrix times row\n- expected : {w.shape[1:]}\n- observed : {x.shape}')
    y = np.empty(w.shape[0], float32)
    _product(FORMATS[w.format].number, w.memory, w.at, w.shape[1], x, fixed(len(x)), y, get_threads())
    return y


# %%
rng = np.random.default_rng(0)
w, x = rng.standard_normal((300, 768), float32), rng.standard_normal(768, float32)
for name in ('F32', 'BF16', 'Q8_0', 'Q4_1'):
    t = tensor(memory(pack(w, name)), name, 0, w.shape)
    exact = unpack(t).astype(np.float64) @ x
    ours, numpys = (np.abs(y - exact).max()/np.abs(exact).max() for y in (product(t, x), unpack(t) @ x))
    print(f'{name:5} off by {ours:.0e} of the largest result; NumPy in float32 by {numpys:.0e}')
    assert ours < 2e-5

# %%
try: product(t, x[:32])
except TensorError as e: print(e)


# %% [markdown]
# ## How fast memory is
#
# To say what share of the possible a kernel reaches, one has to measure what is possible: how fast the threads read a
# large array and add it up.

# %%
#| export
@njit(cache=True, parallel=True)
def _sum(a, parts):
    total = np.zeros(16*parts, float32)
    for t in prange(parts):
        zero = splat(float32(0))
        s0, s1, s2, s3 = zero, zero, zero, zero
        for i in range(t*len(a)//32//parts, (t + 1)*len(a)//32//parts):
            s0, s1, s2, s3 = s0 + load(a, 32*i), s1 + load(a, 32*i + 8), s2 + load(a, 32*i + 16), s3 + load(a, 32*i + 24)
        total[16*t] = hsum((s0 + s1) + (s2 + s3))
    return total.sum()

def read_speed(
    megabytes: int = 256,  # far more than a cache holds
    rounds: int = 5,
) -> float:                # bytes a second
    "How fast the threads read memory, the best of several rounds."
    a = np.ones(megabytes << 18, float32)
    seconds = []
    for _ in range(rounds + 1):
        begin = time.perf_counter()
        _sum(a, get_threads())
        seconds.append(time.perf_counter() - begin)
    return a.nbytes/min(seconds[1:])


# %%
#| echo: false
import matplotlib.pyplot as plt
big = rng.standard_normal((24_000, 2048), float32)
x, speeds = rng.standard_normal(2048, float32), {'reading alone': (read_speed(), 4)}
for name in ('F32', 'BF16', 'Q8_0', 'Q4_1'):
    t = tensor(memory(pack(big, name)), name, 0, big.shape)
    seconds = []
    for _ in range(7):
        begin = time.perf_counter()
        product(t, x)
        seconds.append(time.perf_counter() - begin)
    speeds[name] = t.size/min(seconds[1:]), FORMATS[name].size/32
fig, axes = plt.subplots(1, 2, figsize=(8, 2.4), sharey=True)
for ax, title, values in zip(axes, ('GB/s', 'billion weights a second'), ([s/1e9 for s, _ in speeds.values()], [s/b/1e9 for s, b in speeds.values()])):
    ax.barh(list(speeds), values, color=['#f2b84b'] + ['#6d4aff']*4)
    ax.set_title(title, fontsize=10)
    for side in ('top', 'right'): ax.spines[side].set_visible(False)
axes[0].invert_yaxis()

# %% [markdown]
# Left: how much memory a product reads in a second. Right: what one is after, how many weights. Measured where this page
# was made, on a machine that others use too.

# %% [markdown]
# ## What this does not show
#
# - That an index is right: compiled code trusts it. `tensor` has checked that the matrix lies in the memory.
# - The last bits differ between processors that round once in $ab + c$ and those that round twice.
