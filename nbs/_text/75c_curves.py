# %%
#| default_exp decode.curves

# %% [markdown]
# # Exponentials, eight at a time
# > The one function that attention and gates cannot do without, in the registers of a processor.

# %% [markdown]
# A token of SmolLM2 needs some 60,000 exponentials: one for each token that a head looks at, and one for each channel of a
# gate. They have to be done between the products, while the
# weights wait; so they are done eight at a time.

# %%
#| hide
#| export
import math

import numpy as np
from llvmlite import ir
from numba import types
from numpy import float32

from bendml.kernel import Buf, Size, f32, kernel, requires
from bendml.simd import INT, INTS, VECTOR, f32x8, fma, hsum, load, new_word, splat, store

# %% [markdown]
# ## The method
#
# $e^x = 2^n e^r$ with a whole number $n$, so that $|r| \le \tfrac12 \ln 2$. A power of two is an exponent in a float's bits,
# and for such a small $r$ eight terms of $\sum r^k/k!$ are exact to the last bit or so. $\ln 2$ is subtracted in two parts,
# the first of which has so few bits that $n$ times it is exact. Below −87 the result would be smaller than a float can be,
# above 88 larger; there $x$ is cut.

# %%
#| export
LN2_HIGH = 355/512                  # 9 bits of ln 2
LN2_LOW = math.log(2) - LN2_HIGH

def _exp(e, x):
    b, all = e.builder, lambda v: ir.Constant(VECTOR, [v]*8)
    x = e.call('llvm.minnum.v8f32', VECTOR, e.call('llvm.maxnum.v8f32', VECTOR, x, all(-87.)), all(88.))
    n = e.call('llvm.rint.v8f32', VECTOR, b.fmul(x, all(float(float32(1/math.log(2))))))
    r = e.fma(n, all(float(float32(-LN2_LOW))), e.fma(n, all(-LN2_HIGH), x))
    total = all(float(float32(1/math.factorial(7))))
    for k in range(6, -1, -1): total = e.fma(total, r, all(float(float32(1/math.factorial(k)))))
    power = b.shl(b.add(b.fptosi(n, INTS), ir.Constant(INTS, [127]*8)), ir.Constant(INTS, [23]*8))
    return b.fmul(total, b.bitcast(power, VECTOR))

@new_word((f32x8,), f32x8, _exp)
def exp8(x: np.ndarray) -> np.ndarray:
    "The exponentials of eight numbers between -87 and 88."
    return np.exp(np.clip(x, -87, 88))

@new_word((f32x8, f32x8), f32x8, lambda e, a, b: e.builder.fdiv(a, b))
def over(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    "a/b, lane by lane."
    return a/b

@new_word((f32x8, f32x8), f32x8, lambda e, a, b: e.call('llvm.maxnum.v8f32', VECTOR, a, b))
def higher(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    "The greater of a and b, lane by lane."
    return np.fmax(a, b)

def _hmax(e, v):
    for distance in (4, 2, 1): v = e.call('llvm.maxnum.v8f32', VECTOR, v, e.shuffle(v, [lane ^ distance for lane in range(8)]))
    return e.builder.extract_element(v, ir.Constant(INT, 0))

@new_word((f32x8,), types.float32, _hmax)
def hmax(v: np.ndarray) -> float32:
    "The greatest of eight lanes."
    return np.fmax.reduce(v)


# %% [markdown]
# ## For a row
#
# A softmax in place, and the two activations, [proved](29b_kernel.ipynb) to stay inside their rows. A softmax works on eights: what lies between
# the last score and the next multiple of eight is overwritten, first by numbers so small that they do not count.

# %%
#| export
LEAST, SLOPE = -3e38, -2*math.sqrt(2/math.pi)

@kernel
def soften(scores: Buf[f32], first: Size, count: Size, top: f32):
    "scores[t] = exp(scores[t] - top) for `count` numbers from `first` on. Gives their sum. There must be room up to the next multiple of 8."
    requires(first + count + 7 <= len(scores))
    eights = (count + 7)//8
    for t in range(count, 8*eights): scores[first + t] = f32(LEAST)
    total, most = splat(f32(0)), splat(top)
    for t in range(eights):
        share = exp8(load(scores, first + 8*t) - most)
        total = total + share
        store(scores, first + 8*t, share)
    return hsum(total)

@kernel
def swiglu(wide: Buf[f32], at: Size, n: Size):
    "wide[at:at + 8n] becomes the gate times what it lets through, which is the 8n numbers after it."
    requires(at + 16*n <= len(wide))
    one, zero = splat(f32(1)), splat(f32(0))
    for i in range(n):
        gate = load(wide, at + 8*i)
        store(wide, at + 8*i, over(gate, one + exp8(zero - gate))*load(wide, at + 8*n + 8*i))

@kernel
def gelu_row(wide: Buf[f32], at: Size, n: Size):
    "GELU of wide[at:at + 8n] in place: 0.5 z (1 + tanh u) is z/(1 + exp(-2u))."
    requires(at + 8*n <= len(wide))
    one, c, d = splat(f32(1)), splat(f32(SLOPE)), splat(f32(0.044715))
    for i in range(n):
        z = load(wide, at + 8*i)
        store(wide, at + 8*i, over(z, one + exp8(c*fma(d*z*z, z, z))))


# %%
from bendml.gpt2 import gelu
from bendml.llama import silu
x = np.linspace(-86, 87, 80_000).astype(float32)

@kernel
def exps(n: Size, x: Buf["8*n", f32], y: Buf["8*n", f32]):
    for i in range(n): store(y, 8*i, exp8(load(x, 8*i)))

y = np.empty_like(x)
exps(10_000, x, y)
worst = np.abs(y/np.exp(x.astype(np.float64)) - 1).max()
assert worst < 3e-7
worst

# %%
z = np.linspace(-12, 12, 800).astype(float32)
a, b = np.tile(z, 2), z.copy()
swiglu(a, 0, 100)
gelu_row(b, 0, 100)
a = a[:800]
assert np.abs(a - silu(z)*z).max() < 1e-4 and np.abs(b - gelu(z)).max() < 2e-6
np.abs(a - silu(z)*z).max(), np.abs(b - gelu(z)).max()

# %% [markdown]
# ## What this does not show
#
# What becomes of a number that is none: `exp8` of NaN is some number, since the cut takes the bound.
