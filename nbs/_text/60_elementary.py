# %%
#| default_exp nn.elementary

# %% [markdown]
# # Elementary functions
# > The exponential, tanh and erf in float32: within about one unit in the last place, and eight or more at a time.

# %% [markdown]
# A softmax over fifty thousand scores is fifty thousand exponentials. The C library computes them one by one; a processor
# could compute eight or sixteen at once, if only the code had no calls and no branches. So here they are without: a few
# multiplications and additions each, which the compiler lays side by side.
#
# The unit of error is the *ulp*, the distance to the next float32. A correctly rounded result is off by at most 0.5 ulp.

# %%
#| hide
#| export
import math

import numpy as np
from numpy import float32, int32, uint32

from bendml.autograd.symbols import primitive
from numba import njit, prange

# %% [markdown]
# Only one liberty is granted to the compiler: to round once instead of twice in $ab + c$, as the processor's own
# instruction does.

# %%
#| export
_FAST = dict(fastmath={'contract'}, error_model='numpy', cache=True, forceinline=True)
_LOG2E, _LN2_HIGH, _LN2_LOW = float32(1.4426950408889634), float32(0.693145751953125), float32(1.42860682030941723e-6)


# %% [markdown]
# ## The exponential
#
# $e^x = 2^k e^r$ with $k$ the nearest integer to $x/\ln 2$: then $|r| \le \tfrac12\ln 2$, where a short polynomial does, and
# $2^k$ is only an exponent, written straight into the bits. $\ln 2$ is subtracted in two parts, the first of which has so
# few digits that $k \ln 2$ is exact. Beyond the range of float32 the result is 0 or infinity; what is not a number stays so.

# %%
#| export
@njit(**_FAST)
def _scaled(k, r):
    "2^k e^r."
    p = float32(.00139336) + r*float32(.00019890989)
    p = float32(.041666467) + r*(float32(.0083333105) + r*p)
    p = float32(.5) + r*(float32(.16666667) + r*p)
    y = float32(1.) + (r + r*r*p)
    return y*int32((int32(k) + 127) << 23).view(float32)

@primitive
@njit(**_FAST)
def exp(x):
    "e to the x, float32."
    x = float32(-88.) if x < float32(-88.) else x
    x = float32(89.) if x > float32(89.) else x
    k = np.floor(x*_LOG2E + float32(.5))
    return _scaled(k, (x - k*_LN2_HIGH) - k*_LN2_LOW)

@njit(**_FAST)
def _exp_sum(x, y):
    "e to the x + y, where the rounding of that sum would be seen; from -80 to 80."
    k = np.floor((x + y)*_LOG2E + float32(.5))
    return _scaled(k, ((x - k*_LN2_HIGH) - k*_LN2_LOW) + y)


# %% [markdown]
# ## tanh
#
# Near zero a polynomial, $x + x^3 q(x^2)$; elsewhere $1 - 2/(e^{2x} + 1)$. Both are computed and one is chosen, which costs
# less than a branch.

# %%
#| export
@primitive
@njit(**_FAST)
def tanh(x):
    "The hyperbolic tangent, float32."
    t, z = abs(x), x*x
    q = float32(.021762503) + z*(float32(-.008323187) + z*float32(.0022695018))
    q = float32(-.33333334) + z*(float32(.133333) + z*(float32(-.05395846) + z*q))
    near = x + x*z*q
    far = float32(1.) - float32(2.)/(exp(t + t) + float32(1.))
    far = -far if x < float32(0.) else far
    return far if t > float32(.6) else near

@primitive
@njit(**_FAST)
def sigmoid(x):
    "1/(1 + exp(-x)), float32."
    return float32(1.)/(float32(1.) + exp(-x))


# %% [markdown]
# ## erf
#
# The share of a bell curve between $-x$ and $x$. Near zero, $x + x\,q(x^2)$; further out $1 - e^{-2x - w(x)}$, where $w$ is a
# polynomial: $2x + w = -\ln \operatorname{erfc}$. A sum of nearly 2 would be rounded too coarsely for an exponent, so the two
# parts are added only when the whole powers of two are gone. From 4 on the nearest float32 is 1.

# %%
#| export
@primitive
@njit(**_FAST)
def erf(x):
    "The error function, float32."
    t, z = abs(x), x*x
    t = float32(4.) if t > float32(4.) else t
    q = float32(.005203865) + z*(float32(-.0008175696) + z*float32(.000085133186))
    q = float32(.12837917) + z*(float32(-.37612635) + z*(float32(.11283715) + z*(float32(-.02686051) + z*q)))
    w = float32(.0041562556) + t*(float32(-.00043139374) + t*float32(.000020828633))
    w = float32(.63340086) + t*(float32(.1082203849) + t*(float32(-.0250806175) + t*w))
    w = float32(-.000169205305) + t*(float32(-.8705115914) + t*w)
    y = float32(1.) - _exp_sum(float32(-2.)*t, -w) if t > float32(.9) else t + t*q
    return -y if x < float32(0.) else y


# %% [markdown]
# ## How exact
#
# Measured against float64, in ulps of the true result, over all floats between two bounds (or every `stride`-th of them:
# consecutive floats are consecutive integers, if one looks at the bits).

# %%
#| export

def worst_ulps(fn, low: float, high: float, stride: int = 1) -> float:
    "The largest error of exp, tanh or erf over the floats from low to high, two numbers of one sign, in units in the last place."
    first, last = sorted(int(float32(v).view(uint32)) for v in (low, high))
    return _worst(fn, njit(_wide(fn.__name__)), first, last, stride)

def _wide(name):
    truth = getattr(math, name)
    return lambda x: truth(x)

@njit(parallel=True)
def _worst(fn, truth, first, last, stride):
    blocks = 64
    found, each = np.zeros(blocks), (last - first)//(blocks*stride) + 1
    for b in prange(blocks):
        for i in range(each):
            bits = first + (b*each + i)*stride
            if bits > last: break
            x = uint32(bits).view(float32)
            y = truth(np.float64(x))
            ulp = 2.**max(math.floor(math.log2(abs(y))) - 23, -149) if y != 0 else 2.**-149
            found[b] = max(found[b], abs(np.float64(fn(x)) - y)/ulp)
    return found.max()


# %%
for fn, low, high in ((exp, -1e-30, -87.), (exp, 1e-30, 88.), (tanh, 1e-30, 10.), (erf, 1e-30, 5.), (erf, -1e-30, -5.)):
    print(f'{fn.__name__:5} from {low:6.0e} to {high:3.0f}: {worst_ulps(fn, low, high, 97):.2f} ulp')
    assert worst_ulps(fn, low, high, 997) < (1.5 if fn is tanh else 1.)

# %% [markdown]
# What is not finite:

# %%
inf, nan = float32(np.inf), float32(np.nan)
assert [float(exp(v)) for v in (-inf, inf, float32(-1e4), float32(0))] == [0, np.inf, 0, 1] and all(np.isnan(f(nan)) for f in (exp, tanh, erf))
assert [float(f(v)) for f in (tanh, erf) for v in (-inf, inf)] == [-1, 1, -1, 1]


# %% [markdown]
# ## Random numbers that can be found again
#
# Dropout needs a random decision for each number, and the same one again on the way back. Instead of storing them, each is
# computed from its position: a hash that scrambles a counter
# ([lowbias32](https://nullprogram.com/blog/2018/07/31/), with constants found by search to be nearly free of bias).

# %%
#| export
@njit(cache=True)
def mix(x):
    "A scrambled 32-bit number."
    x = uint32(x)
    x = uint32((x ^ (x >> uint32(16)))*uint32(2146121005))
    x = uint32((x ^ (x >> uint32(15)))*uint32(2221713035))
    return uint32(x ^ (x >> uint32(16)))


# %%
u = np.array([mix(i) >> 8 for i in range(100_000)])/2**24
assert abs(u.mean() - .5) < .005 and abs(np.corrcoef(u[1:], u[:-1])[0, 1]) < .01
u[:4].round(3)

# %% [markdown]
# ## What this does not show
#
# The bounds are measured, not proved; those above at a sample of the numbers. For erf they were measured once at every float32
# from 0 to the largest, on one machine: at most 0.854 ulp (`tests/every_float.py`). Results below the smallest normal float32, $10^{-38}$, are flushed to zero, and
# `exp` is infinite from 88.38 on, a little below the largest float32.
