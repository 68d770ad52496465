# %%
#| default_exp decode.several

# %% [markdown]
# # Several rows at once
# > A prompt is known as a whole. Then each weight that arrives can be used many times.

# %% [markdown]
# Reading a prompt of 512 tokens, a weight is multiplied 512 times. Memory no longer matters; what does is how many
# multiplications a core can do. In `float32` that is sixteen in each cycle. With the [words for bytes](75b_matvec.ipynb) it is 32 with
# an input of 16 bits: a model in 4 or 8 bits is read faster than one in `float32`, and there is no need to unpack it.

# %%
#| hide
#| export
import numpy as np
from numpy import float32

from bendml.decode.matvec import ROUNDED, bf16_high, bf16_low, dot4, dot8, fix, half_high, half_low, halves
from bendml.decode.stored import BF16, F32, FORMATS, Q4, Q8, Tensor, store_as
from bendml.kernel import Buf, Size, f32, kernel, requires
from bendml.simd import fma, load, splat, store
from bendml.tensor.gemm import product_tile


# %% [markdown]
# ## Whole numbers
#
# Four rows at a time: the weights are taken apart once for all four. The sums are those of a single row, in the same order, so
# the results have the same bits. The rows of `y` are `far` apart.

# %%
#| export
@kernel
def many_q4(w: Buf[f32], at: Size, n: Size, units: Size, x: Buf[f32], y: Buf[f32], far: Size, fours: Size):
    "y = x W^T for 4*fours rounded rows of x."
    requires(at + units*(n*Q4) <= len(w), (4*fours)*(n*ROUNDED) <= len(x), (4*fours)*far <= len(y), 16*units <= far)
    for g in range(2*units):
        assert g*(n*40) + n*40 <= (2*units)*(n*40)
        for q in range(fours):
            assert q*(4*(n*ROUNDED)) + 4*(n*ROUNDED) <= fours*(4*(n*ROUNDED))
            assert q*(4*far) + 4*far <= fours*(4*far)
            p, j, z = at + g*(n*40), q*(4*(n*ROUNDED)), splat(f32(0))
            a0, a1, a2, a3, b0, b1, b2, b3 = z, z, z, z, z, z, z, z
            for b in range(n):
                d, m = half_low(w, p), half_high(w, p)
                j1, j2, j3 = j + n*ROUNDED, j + 2*(n*ROUNDED), j + 3*(n*ROUNDED)
                a0, b0 = fma(d*splat(x[j + 16]), dot4(w, p + 8, x, j), a0), fma(m, splat(x[j + 17]), b0)
                a1, b1 = fma(d*splat(x[j1 + 16]), dot4(w, p + 8, x, j1), a1), fma(m, splat(x[j1 + 17]), b1)
                a2, b2 = fma(d*splat(x[j2 + 16]), dot4(w, p + 8, x, j2), a2), fma(m, splat(x[j2 + 17]), b2)
                a3, b3 = fma(d*splat(x[j3 + 16]), dot4(w, p + 8, x, j3), a3), fma(m, splat(x[j3 + 17]), b3)
                p += 40
                j += ROUNDED
            to = q*(4*far) + 8*g
            store(y, to, a0 + b0)
            store(y, to + far, a1 + b1)
            store(y, to + 2*far, a2 + b2)
            store(y, to + 3*far, a3 + b3)


# %%
#| export
@kernel
def many_q8(w: Buf[f32], at: Size, n: Size, units: Size, x: Buf[f32], y: Buf[f32], far: Size, fours: Size):
    "The same in 8 bits."
    requires(at + units*(n*Q8) <= len(w), (4*fours)*(n*ROUNDED) <= len(x), (4*fours)*far <= len(y), 16*units <= far)
    for g in range(2*units):
        assert g*(n*68) + n*68 <= (2*units)*(n*68)
        for q in range(fours):
            assert q*(4*(n*ROUNDED)) + 4*(n*ROUNDED) <= fours*(4*(n*ROUNDED))
            assert q*(4*far) + 4*far <= fours*(4*far)
            p, j, z = at + g*(n*68), q*(4*(n*ROUNDED)), splat(f32(0))
            a0, a1, a2, a3 = z, z, z, z
            for b in range(n):
                d, j1, j2, j3 = halves(w, p), j + n*ROUNDED, j + 2*(n*ROUNDED), j + 3*(n*ROUNDED)
                a0 = fma(d*splat(x[j + 16]), dot8(w, p + 4, x, j), a0)
                a1 = fma(d*splat(x[j1 + 16]), dot8(w, p + 4, x, j1), a1)
                a2 = fma(d*splat(x[j2 + 16]), dot8(w, p + 4, x, j2), a2)
                a3 = fma(d*splat(x[j3 + 16]), dot8(w, p + 4, x, j3), a3)
                p += 68
                j += ROUNDED
            to = q*(4*far) + 8*g
            store(y, to, a0)
            store(y, to + far, a1)
            store(y, to + 2*far, a2)
            store(y, to + 3*far, a3)


# %% [markdown]
# ## Floating point
#
# A unit of a `float32` matrix *is* a panel of sixteen columns, as the [matrix product](42_gemm.ipynb) wants them; its tile of six
# rows does the work, 384 columns deep at a time, which the nearest cache holds. A `bfloat16` is widened into such a panel first.

# %%
#| export
DEEP = 12  # blocks of 32 columns

@kernel
def many_f32(w: Buf[f32], at: Size, n: Size, units: Size, x: Buf[f32], y: Buf[f32], far: Size, sixes: Size):
    "y = x W^T for 6*sixes rows of x."
    requires(at + units*(n*F32) <= len(w), (6*sixes)*(32*n) <= len(x), (6*sixes)*far <= len(y), 16*units <= far)
    requires(len(w) < 2**44, len(x) < 2**44, len(y) < 2**44)
    for u in range(units):
        assert u*(n*F32) + n*F32 <= units*(n*F32)
        for s in range((n + DEEP - 1)//DEEP):
            deep = min(DEEP, n - DEEP*s)
            for q in range(sixes):
                assert q*(6*(32*n)) + 6*(32*n) <= sixes*(6*(32*n))
                assert q*(6*far) + 6*far <= sixes*(6*far)
                product_tile(32*deep, x, q*(6*(32*n)) + 32*(DEEP*s), 1, 32*n, w, at + u*(n*F32) + F32*(DEEP*s), 16, y, q*(6*far) + 16*u, far, s == 0, True)

@kernel
def many_bf16(w: Buf[f32], at: Size, n: Size, units: Size, x: Buf[f32], y: Buf[f32], far: Size, sixes: Size):
    "The same for bfloat16."
    requires(at + units*(n*BF16) <= len(w), (6*sixes)*(32*n) <= len(x), (6*sixes)*far <= len(y), 16*units <= far)
    requires(len(w) < 2**44, len(x) < 2**44, len(y) < 2**44)
    panel = np.empty(DEEP*F32, f32)
    for u in range(units):
        assert u*(n*BF16) + n*BF16 <= units*(n*BF16)
        for s in range((n + DEEP - 1)//DEEP):
            deep = min(DEEP, n - DEEP*s)
            for i in range(16*deep):
                p = at + u*(n*BF16) + BF16*(DEEP*s) + 16*i
                store(panel, 32*i, bf16_low(w, p))
                store(panel, 32*i + 8, bf16_low(w, p + 8))
                store(panel, 32*i + 16, bf16_high(w, p))
                store(panel, 32*i + 24, bf16_high(w, p + 8))
            for q in range(sixes):
                assert q*(6*(32*n)) + 6*(32*n) <= sixes*(6*(32*n))
                assert q*(6*far) + 6*far <= sixes*(6*far)
                product_tile(32*deep, x, q*(6*(32*n)) + 32*(DEEP*s), 1, 32*n, panel, 0, 16, y, q*(6*far) + 16*u, far, s == 0, True)


# %% [markdown]
# ## One function for all formats

# %%
#| export
@kernel
def many(size: Size, w: Buf[f32], at: Size, n: Size, units: Size, x: Buf[f32], fx: Buf[f32], y: Buf[f32], far: Size, twelves: Size):
    "y = x W^T for 12*twelves rows of x. fx is room for the rounded rows."
    requires(at + units*(n*size) <= len(w), (12*twelves)*(32*n) <= len(x), (12*twelves)*(n*ROUNDED) <= len(fx), (12*twelves)*far <= len(y), 16*units <= far)
    requires(len(w) < 2**44, len(x) < 2**44, len(y) < 2**44, len(fx) < 2**44, twelves < 2**40, n < 2**40)
    if size == Q8 or size == Q4: fix(x, 0, (12*twelves)*n, fx, 0)
    if size == F32: many_f32(w, at, n, units, x, y, far, 2*twelves)
    if size == BF16: many_bf16(w, at, n, units, x, y, far, 2*twelves)
    if size == Q8: many_q8(w, at, n, units, fx, y, far, 3*twelves)
    if size == Q4: many_q4(w, at, n, units, fx, y, far, 3*twelves)


# %% [markdown]
# Against the product of [one row](75b_matvec.ipynb): the same bits for whole numbers, and nearly the same for floats.

# %%
from bendml.decode.matvec import product

rng = np.random.default_rng(0)
w, x = rng.standard_normal((48, 416), float32), rng.standard_normal((24, 416), float32)
for name in FORMATS:
    t, y = store_as(w, name), np.empty((24, 48), float32)
    many(FORMATS[name].size, t.cells, 0, 13, 3, x.reshape(-1), np.empty(24*13*ROUNDED, float32), y.reshape(-1), 48, 2)
    one = np.array([product(t, row) for row in x])
    print(f'{name:5} largest difference {np.abs(y - one).max():.0e}')
    assert np.abs(y - one).max() <= (0 if name in ('Q8_0', 'Q4_1') else 1e-4)

# %% [markdown]
# ## How fast
#
# Multiplications and additions a second, on one thread, where this page was made:

# %%
import time
w, x = rng.standard_normal((1536, 576), float32), rng.standard_normal((48, 576), float32)
def speed(run):
    seconds = []
    for _ in range(7):
        begin = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - begin)
    return 2*w.size*len(x)/min(seconds)/1e9

for name in FORMATS:
    t, y, fx = store_as(w, name), np.empty(48*1536, float32), np.empty(48*18*ROUNDED, float32)
    print(f'{name:5} {speed(lambda: many(FORMATS[name].size, t.cells, 0, 18, 96, x.reshape(-1), fx, y, 1536, 4)):4.0f} billion')

# %% [markdown]
# ## What this does not show
#
# - Processors without the word for bytes. There the products are written out, and a prompt is read much more slowly.
