# %%
#| default_exp curves

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
import math, operator

import numpy as np
from llvmlite import ir
from numpy import float32

from bendml.simd import _V, _VI, _word, f32x8, fma, load, splat, store
from numba import njit

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
    b, all = e.builder, lambda v: ir.Constant(_V, [v]*8)
    x = e.call('llvm.minnum.v8f32', _V, e.call('llvm.maxnum.v8f32', _V, x, all(-87.)), all(88.))
    n = e.call('llvm.rint.v8f32', _V, b.fmul(x, all(float(float32(1/math.log(2))))))
    r = e.fma(n, all(float(float32(-LN2_LOW))), e.fma(n, all(-LN2_HIGH), x))
    total = all(float(float32(1/math.factorial(7))))
    for k in range(6, -1, -1): total = e.fma(total, r, all(float(float32(1/math.factorial(k)))))
    power = b.shl(b.add(b.fptosi(n, _VI), ir.Constant(_VI, [127]*8)), ir.Constant(_VI, [23]*8))
    return b.fmul(total, b.bitcast(power, _V))

@_word((f32x8,), f32x8, _exp)
def exp8(x: np.ndarray) -> np.ndarray:
    "The exponentials of eight numbers between -87 and 88."
    return np.exp(np.clip(x, -87, 88))

_word((f32x8, f32x8), f32x8, lambda e, a, b: e.builder.fdiv(a, b))(operator.truediv)


# %% [markdown]
# ## For a row
#
# A softmax in place, and the two activations. Lengths are rounded up to eights where there is room for it.

# %%
#| export
@njit
def soften(scores, count, top):
    "scores[t] = exp(scores[t] - top) for t below count, up to the next multiple of 8. The sum of the first count."
    for t in range(0, count, 8): store(scores, t, exp8(load(scores, t) - splat(top)))
    total = float32(0)
    for t in range(count): total += scores[t]
    return total

@njit
def swiglu(gate, up, i0, i1):
    "up *= gate/(1 + exp(-gate)), from i0 to i1, multiples of 8."
    one, zero = splat(float32(1)), splat(float32(0))
    for i in range(i0, i1, 8):
        g = load(gate, i)
        store(up, i, g/(one + exp8(zero - g))*load(up, i))

@njit
def gelu_row(up, i0, i1):
    "GELU in place, from i0 to i1, multiples of 8: 0.5 z (1 + tanh u) is z/(1 + exp(-2u))."
    one, c, d = splat(float32(1)), splat(float32(-2*math.sqrt(2/math.pi))), splat(float32(0.044715))
    for i in range(i0, i1, 8):
        z = load(up, i)
        store(up, i, z/(one + exp8(c*fma(d*z*z, z, z))))


# %%
from bendml.gpt2 import gelu
from bendml.llama import silu
x = np.linspace(-86, 87, 80_000).astype(float32)

@njit
def exps(x, y):
    for i in range(0, len(x), 8): store(y, i, exp8(load(x, i)))

y = np.empty_like(x)
exps(x, y)
worst = np.abs(y/np.exp(x.astype(np.float64)) - 1).max()
assert worst < 3e-7
worst

# %%
z = np.linspace(-12, 12, 800).astype(float32)
a, b = z.copy(), z.copy()
swiglu(z, a, 0, 800)
gelu_row(b, 0, 800)
assert np.abs(a - silu(z)*z).max() < 1e-4 and np.abs(b - gelu(z)).max() < 2e-6
np.abs(a - silu(z)*z).max(), np.abs(b - gelu(z)).max()

# %% [markdown]
# ## What this does not show
#
# What becomes of a number that is none: `exp8` of NaN is some number, since the cut takes the bound.
