# %%
#| default_exp decode.matvec

# %% [markdown]
# # Weights at the speed of memory
# > To write one token a model reads every weight once. So its speed is the size of its weights.

# %% [markdown]
# Multiplying a matrix by one row of numbers takes each weight out of memory, multiplies it once, adds it once, and never
# sees it again. A core could do thirty multiplications in the time in which one `float32` arrives. So it waits, and there
# are two ways to make it wait less: read in the order that memory likes, from front to back, and store the weights small.
# The [page before](75_stored.ipynb) has stored them so; here they are read.

# %%
#| hide
#| export
import time

import numpy as np
from llvmlite import ir
from numpy import float32

from bendml.decode.stored import BF16, F32, FORMATS, Q4, Q8, Tensor, TensorError, store_as, unpack
from bendml.fixed import fours
from bendml.kernel import Buf, Size, f32, kernel, prange, requires
from bendml.simd import FLOAT, INT, INTS, VECTOR, Access, f32x8, flat, fma, hsum, index, load, new_word, splat, store
from bendml.threads import get_threads
from numba import types

# %% [markdown]
# What a format costs is plain: so many bytes are read for each weight. At 20 GB/s a model of 124 million weights can write
# at most so many tokens a second:

# %%
for name, f in FORMATS.items(): print(f'{name:5} {f.bytes/32:6.3f} bytes a weight   {20e9/(124e6*f.bytes/32):4.0f} tokens a second')

# %% [markdown]
# ## Floating point
#
# Sixteen sums grow at a time, and four of each, so that no addition waits for the one before. The cells are one long run, which the
# processor recognises; a loop that asked for cells in advance was slower, by a tenth. The words that read a `bfloat16` come first: a
# cell holds two.

# %%
#| export
_cells = flat(types.float32)
_all = lambda n: ir.Constant(INTS, [n]*8)
_eight = lambda a, i: a[i:i + 8].view(np.uint32)

@new_word((_cells, index), f32x8, lambda e, a, i: e.builder.bitcast(e.builder.shl(e.load(e.address(a, i), INTS), _all(16)), VECTOR), Access(0, 1, 8))
def bf16_low(a: np.ndarray, i: int) -> np.ndarray:
    "The bfloat16 numbers in the lower halves of eight cells."
    return (_eight(a, i) << 16).view(float32)

@new_word((_cells, index), f32x8, lambda e, a, i: e.builder.bitcast(e.builder.and_(e.load(e.address(a, i), INTS), _all(-65536)), VECTOR), Access(0, 1, 8))
def bf16_high(a: np.ndarray, i: int) -> np.ndarray:
    "The bfloat16 numbers in the upper halves of eight cells."
    return (_eight(a, i) & 0xffff0000).view(float32)


# %%
#| export
@kernel
def rows_f32(w: Buf[f32], at: Size, n: Size, x: Buf[f32], first: Size, y: Buf[f32], to: Size, u0: Size, u1: Size):
    "y = W x for the units u0 to u1 of a matrix with rows of 32*n numbers. x begins at `first`, and unit 0 of y at `to`."
    requires(u0 <= u1, at + u1*(n*F32) <= len(w), first + 32*n <= len(x), to + 16*u1 <= len(y))
    for u in range(u0, u1):
        assert u*(n*F32) + n*F32 <= u1*(n*F32)
        p, z = at + u*(n*F32), splat(f32(0))
        a0, a1, a2, a3, b0, b1, b2, b3 = z, z, z, z, z, z, z, z
        for i in range(first, first + 32*n, 4):
            s0, s1, s2, s3 = splat(x[i]), splat(x[i + 1]), splat(x[i + 2]), splat(x[i + 3])
            a0, b0 = fma(s0, load(w, p), a0), fma(s0, load(w, p + 8), b0)
            a1, b1 = fma(s1, load(w, p + 16), a1), fma(s1, load(w, p + 24), b1)
            a2, b2 = fma(s2, load(w, p + 32), a2), fma(s2, load(w, p + 40), b2)
            a3, b3 = fma(s3, load(w, p + 48), a3), fma(s3, load(w, p + 56), b3)
            p += 64
        store(y, to + 16*u, (a0 + a1) + (a2 + a3))
        store(y, to + 16*u + 8, (b0 + b1) + (b2 + b3))

@kernel
def rows_bf16(w: Buf[f32], at: Size, n: Size, x: Buf[f32], first: Size, y: Buf[f32], to: Size, u0: Size, u1: Size):
    "The same for bfloat16."
    requires(u0 <= u1, at + u1*(n*BF16) <= len(w), first + 32*n <= len(x), to + 16*u1 <= len(y))
    for u in range(u0, u1):
        assert u*(n*BF16) + n*BF16 <= u1*(n*BF16)
        p, z = at + u*(n*BF16), splat(f32(0))
        a0, a1, a2, a3, b0, b1, b2, b3 = z, z, z, z, z, z, z, z
        for i in range(first, first + 32*n, 4):
            s0, s1, s2, s3 = splat(x[i]), splat(x[i + 1]), splat(x[i + 2]), splat(x[i + 3])
            a0, b0 = fma(s0, bf16_low(w, p), a0), fma(s0, bf16_low(w, p + 8), b0)
            a1, b1 = fma(s1, bf16_high(w, p), a1), fma(s1, bf16_high(w, p + 8), b1)
            a2, b2 = fma(s2, bf16_low(w, p + 16), a2), fma(s2, bf16_low(w, p + 24), b2)
            a3, b3 = fma(s3, bf16_high(w, p + 16), a3), fma(s3, bf16_high(w, p + 24), b3)
            p += 32
        store(y, to + 16*u, (a0 + a1) + (a2 + a3))
        store(y, to + 16*u + 8, (b0 + b1) + (b2 + b3))


# %% [markdown]
# ## Whole numbers
#
# Weights of 8 and 4 bits are whole numbers times a scale. Turning 32 of them into floats takes longer than they take to
# arrive. Processors have a faster word for whole numbers: it multiplies 32 pairs of bytes and adds up each four products, all
# at once. For this the input row has to be whole numbers too. llama.cpp rounds it to 8 bits. We round it to 16, in two
# bytes, $x \approx s\,(256\,h + l)$, and use the word twice: that is nearly as fast, and 256 times closer.
#
# So 32 numbers of the input become 20 cells: eight with the bytes $h$, eight with $l$, the step $s$, the sum of the 32 as a float,
# and the sum of the whole numbers, $\sum (256\,h + l)$; one is left over. A number that is not finite makes the step NaN.

# %%
#| export
ROUNDED = 20  # cells for 32 numbers

def _round32(e, a, i, out, j):
    b, zero = e.builder, ir.Constant(VECTOR, [0.]*8)
    real = lambda v: ir.Constant(VECTOR, [v]*8)
    def folded(v, fold):
        for d in (4, 2, 1): v = fold(v, e.shuffle(v, [lane ^ d for lane in range(8)]))
        return v
    at = e.address(a, i)
    xs = [e.load(b.gep(at, [ir.Constant(INT, 8*n)])) for n in range(4)]
    top, bad = zero, zero
    for x in xs: top, bad = e.call('llvm.maxnum.v8f32', VECTOR, top, e.call('llvm.fabs.v8f32', VECTOR, x)), b.fadd(bad, b.fmul(x, zero))
    top = b.fadd(folded(top, lambda p, q: e.call('llvm.maxnum.v8f32', VECTOR, p, q)), folded(bad, b.fadd))
    per = b.select(b.fcmp_ordered('>', top, real(float(float32(1e-30)))), b.fdiv(real(32639.), top), zero)
    qs = [e.call('llvm.fptosi.sat.v8i32.v8f32', INTS, e.call('llvm.rint.v8f32', VECTOR, b.fmul(x, per))) for x in xs]
    highs = [b.ashr(b.add(q, _all(128)), _all(8)) for q in qs]
    step, total = b.fmul(top, real(float(float32(1/32639)))), folded(b.add(b.add(qs[0], qs[1]), b.add(qs[2], qs[3])), b.add)
    to, bytes_ = e.address(out, j, 2), ir.VectorType(ir.IntType(8), 8)
    for n in range(4):
        e.store(b.gep(to, [ir.Constant(INT, 2*n)]), b.trunc(highs[n], bytes_))
        e.store(b.gep(to, [ir.Constant(INT, 8 + 2*n)]), b.trunc(b.sub(qs[n], b.shl(highs[n], _all(8))), bytes_))
    first = lambda v: b.extract_element(v, ir.Constant(INT, 0))
    for n, v in ((16, step), (17, b.fmul(step, b.sitofp(total, VECTOR))), (18, b.bitcast(total, VECTOR))): e.store(b.gep(to, [ir.Constant(INT, n)]), first(v))
    return e.nothing()

@new_word((_cells, index, _cells, index), types.none, _round32, Access(0, 1, 32), Access(2, 3, 19, True))
def round32(x: np.ndarray, i: int, out: np.ndarray, j: int) -> None:
    "Round x[i:i + 32] to 16 bits: 19 cells from out[j] on."
    row = x[i:i + 32]
    top = np.abs(row).max() if np.isfinite(row).all() else float32(np.nan)
    q = np.rint(row*(float32(32639)/top)).astype(np.int32) if top > 1e-30 else np.zeros(32, np.int32)
    high = (q + 128) >> 8
    out[j:j + 8], out[j + 8:j + 16] = high.astype(np.int8).view(float32), (q - 256*high).astype(np.int8).view(float32)
    step = top*float32(1/32639)
    out[j + 16:j + 19] = step, step*float32(q.sum()), q.sum(dtype=np.int32).view(float32)

@kernel
def fix(x: Buf[f32], i: Size, n: Size, out: Buf[f32], j: Size):
    "Round 32*n numbers of x from x[i] on."
    requires(i + 32*n <= len(x), j + n*ROUNDED <= len(out))
    for b in range(n): round32(x, i + 32*b, out, j + ROUNDED*b)


# %%
numbers, cells = np.linspace(-1, 2, 32).astype(float32), np.zeros(ROUNDED, float32)
fix(numbers, 0, 1, cells, 0)
back = cells[16]*(256*cells[:8].view(np.int8).astype(int) + cells[8:16].view(np.int8))
print(np.abs(back - numbers).max(), cells[17] - numbers.sum())

# %% [markdown]
# ### Words
#
# `dot4` and `dot8` multiply 32 columns of eight rows, stored in four bits and in eight, with 32 numbers of the input: eight sums.
# `dot8` takes off again the 128 that was added to each weight. Where a processor does not have the word for bytes, the products
# are written out, slower and with the same bits: sums of whole numbers have no rounding.

# %%
#| export
_B32 = ir.VectorType(ir.IntType(8), 32)

def _dot(e, weights, x, j, start):
    "Eight sums of weights times 256*high + low, as floats. weights: eight times four columns of eight rows."
    b, at = e.builder, e.address(x, j, 2)
    def same(cell): return b.bitcast(e.shuffle(b.insert_element(ir.Constant(INTS, ir.Undefined), e.load(b.gep(at, [ir.Constant(INT, cell)]), INT), ir.Constant(INT, 0)), [0]*8), _B32)
    high, low = [_all(0), _all(0)], [start(same), _all(0)]   # two of each, so that none waits for the other
    for c, w in enumerate(weights): high[c % 2], low[c % 2] = fours(e, high[c % 2], w, same(c)), fours(e, low[c % 2], w, same(8 + c))
    return b.sitofp(b.add(b.shl(b.add(*high), _all(8)), b.add(*low)), VECTOR)


# %%
#| export
def _dot4(e, w, i, x, j):
    b, at, fifteen = e.builder, e.address(w, i), ir.Constant(_B32, [15]*32)
    load_at = lambda n: e.load(b.gep(at, [ir.Constant(INT, 8*n)]), _B32)
    low = [b.and_(load_at(n), fifteen) for n in range(4)]
    return _dot(e, low + [b.and_(b.lshr(load_at(n), ir.Constant(_B32, [4]*32)), fifteen) for n in range(4)], x, j, lambda same: _all(0))

def _dot8(e, w, i, x, j):
    at = e.address(w, i)
    weights = [e.load(e.builder.gep(at, [ir.Constant(INT, 8*n)]), _B32) for n in range(8)]
    return _dot(e, weights, x, j, lambda same: e.builder.mul(e.builder.bitcast(same(18), INTS), _all(-128)))

def _whole(x, j): return 256*x[j:j + 8].view(np.int8).astype(int) + x[j + 8:j + 16].view(np.int8)

@new_word((_cells, index, _cells, index), f32x8, _dot4, Access(0, 1, 32), Access(2, 3, 19))
def dot4(w: np.ndarray, i: int, x: np.ndarray, j: int) -> np.ndarray:
    "32 columns of eight rows in 4 bits, times 32 rounded numbers."
    q = w[i:i + 32].view(np.uint8).reshape(4, 8, 4).swapaxes(0, 1).reshape(8, 16)
    return (np.hstack((q & 15, q >> 4)).astype(int) @ _whole(x, j)).astype(float32)

@new_word((_cells, index, _cells, index), f32x8, _dot8, Access(0, 1, 64), Access(2, 3, 19))
def dot8(w: np.ndarray, i: int, x: np.ndarray, j: int) -> np.ndarray:
    "32 columns of eight rows in 8 bits, less 128, times 32 rounded numbers."
    q = w[i:i + 64].view(np.uint8).reshape(8, 8, 4).swapaxes(0, 1).reshape(8, 32)
    return ((q.astype(int) - 128) @ _whole(x, j)).astype(float32)


# %% [markdown]
# And the scales, float16 numbers for which numba has no word yet: eight in four cells, or in the lower and upper halves of
# eight.

# %%
#| export
_H8 = ir.VectorType(ir.HalfType(), 8)

def _half(shift):
    def code(e, a, i):
        bits = e.builder.trunc(e.builder.lshr(e.load(e.address(a, i), INTS), _all(shift)), ir.VectorType(ir.IntType(16), 8))
        return e.builder.fpext(e.builder.bitcast(bits, _H8), VECTOR)
    return code

@new_word((_cells, index), f32x8, lambda e, a, i: e.builder.fpext(e.load(e.address(a, i), _H8), VECTOR), Access(0, 1, 4))
def halves(a: np.ndarray, i: int) -> np.ndarray:
    "Eight float16 numbers in four cells."
    return a[i:i + 4].view(np.float16).astype(float32)

@new_word((_cells, index), f32x8, _half(0), Access(0, 1, 8))
def half_low(a: np.ndarray, i: int) -> np.ndarray:
    "The float16 numbers in the lower halves of eight cells."
    return a[i:i + 8].view(np.float16)[::2].astype(float32)

@new_word((_cells, index), f32x8, _half(16), Access(0, 1, 8))
def half_high(a: np.ndarray, i: int) -> np.ndarray:
    "The float16 numbers in the upper halves of eight cells."
    return a[i:i + 8].view(np.float16)[1::2].astype(float32)


# %% [markdown]
# A block is then $d \sum q x$, and what the smallest numbers add is $m$ times the sum of the inputs, which is known.

# %%
#| export
@kernel
def rows_q8(w: Buf[f32], at: Size, n: Size, x: Buf[f32], first: Size, y: Buf[f32], to: Size, u0: Size, u1: Size):
    "y = W x for the units u0 to u1 of a matrix in 8 bits; x is rounded."
    requires(u0 <= u1, at + u1*(n*Q8) <= len(w), first + n*ROUNDED <= len(x), to + 16*u1 <= len(y))
    for g in range(2*u0, 2*u1):
        assert g*(n*68) + n*68 <= (2*u1)*(n*68)
        p, j, sums = at + g*(n*68), first, splat(f32(0))
        for b in range(n):
            sums = fma(halves(w, p)*splat(x[j + 16]), dot8(w, p + 4, x, j), sums)
            p += 68
            j += ROUNDED
        store(y, to + 8*g, sums)

@kernel
def rows_q4(w: Buf[f32], at: Size, n: Size, x: Buf[f32], first: Size, y: Buf[f32], to: Size, u0: Size, u1: Size):
    "The same in 4 bits."
    requires(u0 <= u1, at + u1*(n*Q4) <= len(w), first + n*ROUNDED <= len(x), to + 16*u1 <= len(y))
    for g in range(2*u0, 2*u1):
        assert g*(n*40) + n*40 <= (2*u1)*(n*40)
        p, j, sums, low = at + g*(n*40), first, splat(f32(0)), splat(f32(0))
        for b in range(n):
            sums = fma(half_low(w, p)*splat(x[j + 16]), dot4(w, p + 8, x, j), sums)
            low = fma(half_high(w, p), splat(x[j + 17]), low)
            p += 40
            j += ROUNDED
        store(y, to + 8*g, sums + low)


# %% [markdown]
# ## One function for all formats
#
# The format is known by its size. A product on several threads gives each a band of units.

# %%
#| export
@kernel
def rows(size: Size, w: Buf[f32], at: Size, n: Size, x: Buf[f32], fx: Buf[f32], r: Size, y: Buf[f32], to: Size, u0: Size, u1: Size):
    "y = W x for some units. Row r of x is the input, which floating-point formats take, and row r of fx the same rounded, for the others."
    requires(u0 <= u1, at + u1*(n*size) <= len(w), r*(32*n) + 32*n <= len(x), r*(n*ROUNDED) + n*ROUNDED <= len(fx), to + 16*u1 <= len(y), len(x) < 2**44, len(fx) < 2**44)
    if size == F32: rows_f32(w, at, n, x, r*(32*n), y, to, u0, u1)
    if size == BF16: rows_bf16(w, at, n, x, r*(32*n), y, to, u0, u1)
    if size == Q8: rows_q8(w, at, n, fx, r*(n*ROUNDED), y, to, u0, u1)
    if size == Q4: rows_q4(w, at, n, fx, r*(n*ROUNDED), y, to, u0, u1)

@kernel
def times(size: Size, w: Buf[f32], at: Size, n: Size, units: Size, x: Buf[f32], fx: Buf[f32], y: Buf[f32], parts: Size):
    "y = W x on so many threads. fx is room for the rounded input."
    requires(1 <= parts, at + units*(n*size) <= len(w), 32*n <= len(x), n*ROUNDED <= len(fx), 16*units <= len(y), len(x) < 2**44, len(fx) < 2**44)
    if size == Q8 or size == Q4: fix(x, 0, n, fx, 0)
    high = (units + parts - 1)//parts
    for t in prange(parts):
        lo = min(units, t*high)
        hi = min(units, lo + high)
        assert hi*(n*size) <= units*(n*size)
        rows(size, w, at, n, x, fx, 0, y, 0, lo, hi)

def product(
    w: Tensor,      # (rows, k)
    x: np.ndarray,  # (k,) float32
) -> np.ndarray:    # (rows,) float32
    "Matrix times row, on all threads."
    x = np.ascontiguousarray(x, float32)
    if x.shape != w.shape[1:]: raise TensorError(f'matrix times row\n- expected : {w.shape[1:]}\n- observed : {x.shape}')
    y, n = np.empty(16*w.units, float32), len(x)//32
    times(FORMATS[w.format].size, w.cells, w.at, n, w.units, x, np.empty(n*ROUNDED, float32), y, get_threads())
    return y[:w.shape[0]]


# %%
rng = np.random.default_rng(0)
w, x = rng.standard_normal((300, 768), float32), rng.standard_normal(768, float32)
for name in FORMATS:
    t = store_as(w, name)
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
@kernel
def add_up(a: Buf[f32], lines: Size, total: Buf["16*parts", f32], parts: Size):
    "The sum of 32*lines numbers, in parts, one a thread."
    requires(1 <= parts, 32*lines <= len(a))
    high = (lines + parts - 1)//parts
    for t in prange(parts):
        lo, z = min(lines, t*high), splat(f32(0))
        s0, s1, s2, s3 = z, z, z, z
        for i in range(lo, min(lines, lo + high)):
            s0, s1, s2, s3 = s0 + load(a, 32*i), s1 + load(a, 32*i + 8), s2 + load(a, 32*i + 16), s3 + load(a, 32*i + 24)
        store(total, 16*t, (s0 + s1) + (s2 + s3))

def read_speed(
    megabytes: int = 256,  # far more than a cache holds
    rounds: int = 5,
) -> float:                # bytes a second
    "How fast the threads read memory, the best of several rounds."
    a = np.ones(megabytes << 18, float32)
    seconds, parts = [], get_threads()
    for _ in range(rounds + 1):
        begin = time.perf_counter()
        add_up(a, len(a)//32, np.empty(16*parts, float32), parts)
        seconds.append(time.perf_counter() - begin)
    return a.nbytes/min(seconds[1:])


# %%
#| echo: false
import matplotlib.pyplot as plt
big = rng.standard_normal((24_000, 2048), float32)
x, speeds = rng.standard_normal(2048, float32), {'reading alone': (read_speed(), 4)}
for name in FORMATS:
    t = store_as(big, name)
    seconds = []
    for _ in range(7):
        begin = time.perf_counter()
        product(t, x)
        seconds.append(time.perf_counter() - begin)
    speeds[name] = 4*t.size/min(seconds[1:]), FORMATS[name].bytes/32
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
# - That the words of this page touch no more than they declare, and compute what their Python says. That is tested.
# - The last bits differ between processors that round once in $ab + c$ and those that round twice.
