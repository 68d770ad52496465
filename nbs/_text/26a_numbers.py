# %%
#| default_exp kernel.numbers

# %% [markdown]
# # Floats without algebra
# > What a kernel does with floats, said without assuming anything about them.

# %% [markdown]
# Floats round. $(a + b) + c$ is not $a + (b + c)$, and no law of algebra holds for them. So to say what a kernel computes, we
# assume none: `fadd` is *some* function of two numbers, `fmul` another one. A proof about these holds for floats, bit for bit,
# because it holds for anything: it can only say that a kernel does *the same operations in the same order* as its specification.
#
# A specification is a `@pure` function. This one is the sum of products from left to right:
#
# ```python
# @pure(measure='p')
# def dot(a: Array[int, Number], b: Array[int, Number], p: int) -> Number:
#     if p <= 0: return fnum(0)
#     return fadd(dot(a, b, p - 1), fmul(select(a, p - 1), select(b, p - 1)))
# ```

# %%
#| hide
#| export
import math
from fractions import Fraction

import numpy as np
from numpy import float32

from bendml.laws.reflect import abstract


# %%
#| export
@abstract
class Number:
    "A float, of which nothing is known."
    samples = (float32(0), float32(1), float32(-2), float32(0.5))


# %%
#| export
@abstract
def fnum(n: int) -> Number:
    "A whole number as a float."
    return float32(n)

@abstract
def freal(x: Fraction) -> Number:
    "A number written with a point as a float."
    return float32(float(x))

@abstract
def fadd(x: Number, y: Number) -> Number: return x + y
@abstract
def fsub(x: Number, y: Number) -> Number: return x - y
@abstract
def fmul(x: Number, y: Number) -> Number: return x*y
@abstract
def fdiv(x: Number, y: Number) -> Number: return x/y
@abstract
def fneg(x: Number) -> Number: return -x
@abstract
def fmin(x: Number, y: Number) -> Number: return min(x, y)
@abstract
def fmax(x: Number, y: Number) -> Number: return max(x, y)
@abstract
def flt(x: Number, y: Number) -> bool: return bool(x < y)
@abstract
def fle(x: Number, y: Number) -> bool: return bool(x <= y)
@abstract
def feq(x: Number, y: Number) -> bool: return bool(x == y)


# %% [markdown]
# Functions of one number are as unknown as the rest.

# %%
#| export
@abstract
def fexp(x: Number) -> Number: return type(x)(math.exp(x))
@abstract
def flog(x: Number) -> Number: return type(x)(math.log(x))
@abstract
def fsqrt(x: Number) -> Number: return type(x)(math.sqrt(x))
@abstract
def ftanh(x: Number) -> Number: return type(x)(math.tanh(x))
@abstract
def fsin(x: Number) -> Number: return type(x)(math.sin(x))
@abstract
def fcos(x: Number) -> Number: return type(x)(math.cos(x))
@abstract
def fabs(x: Number) -> Number: return abs(x)

FUNCTIONS = {math.exp: fexp, math.log: flog, math.sqrt: fsqrt, math.tanh: ftanh, math.sin: fsin, math.cos: fcos, math.fabs: fabs, abs: fabs}
OPERATIONS = {'+': fadd, '-': fsub, '*': fmul, '/': fdiv, '<': flt, '<=': fle, '==': feq}

# %%
float(fadd(float32(0.1), float32(0.2))), float(fdiv(fnum(1), fnum(3)))

# %% [markdown]
# ## What this does not show
#
# Anything about sizes of rounding errors. Two orders of addition are two functions here, and nothing relates them.
