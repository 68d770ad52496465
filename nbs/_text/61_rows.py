# %%
#| default_exp nn.rows

# %% [markdown]
# # Forwards and backwards, a row at a time
# > The activations, softmaxes, norms and the loss as loops, each backward pass proved to be the derivative of its forward pass.

# %% [markdown]
# Every function on this page comes in two: what it computes, and what it does to a derivative on the way back. They stand
# side by side, as plain loops that numba compiles. And under each pair stands the question that no shape answers: is the
# second one the derivative of the first? [Gradient rules](52_symbols.ipynb) runs the very same code on symbols, and two
# solvers answer.

# %%
#| hide
#| export
import math

import numpy as np
from numpy import float32, int32

from bendml.autograd.symbols import RULES, TWO_BY_ROOT_PI, Rule, check, confirm, on_symbols, stands_for
from bendml.nn.elementary import erf, exp, sigmoid, tanh
from bendml.threads import get_threads
from numba import njit, prange

# %% [markdown]
# Sums may be taken in any order here, so that eight or sixteen lanes can add at once; the bits are still the same in every
# run, and for any number of threads.

# %%
#| export
_ONE = dict(fastmath={'contract'}, error_model='numpy', cache=True, forceinline=True)
_ROW = dict(fastmath={'contract', 'reassoc', 'nsz'}, error_model='numpy', cache=True)
_ALL = dict(fastmath={'contract', 'reassoc', 'nsz'}, error_model='numpy', cache=True, parallel=True)


# %%
#| hide
#| export
def _each(forward, back):
    "An element-wise pair that saves its input, as passes over an array of symbols."
    f, b = on_symbols(forward), on_symbols(back)
    def ahead(x): return np.array([f(v) for v in x], object), x
    return ahead, lambda x, dy: (np.array([b(v, g) for v, g in zip(x, dy)], object),)

def _each_y(forward, back):
    "The same, where the output is saved."
    ahead, backward = _each(forward, back)
    def saves(x): y, _ = ahead(x); return y, y
    return saves, backward

def _empty(*shape): return np.full(shape, None, object)


# %% [markdown]
# ## Activations
#
# `dy` is the derivative of the loss by the output $y$; what comes back is the derivative by $x$.
#
# $$\mathrm{ReLU}(x) = \max(0, x) \qquad \mathrm{SiLU}(x) = x\,\sigma(x) \qquad \mathrm{GELU}(x) = x\,\Phi(x)$$
#
# $\sigma(x) = 1/(1 + e^{-x})$, and $\Phi$ is the share of a bell curve to the left of $x$: computed with erf, or with
# GPT-2's formula $\Phi(x) \approx \tfrac12(1 + \tanh u)$, $u = \sqrt{2/\pi}\,(x + 0.044715\,x^3)$. Since
# $\tfrac12(1 + \tanh u) = \sigma(2u)$, one exponential is enough, and nothing cancels for negative $x$.

# %%
#| export
@njit(**_ONE)
def relu(x): return float32(0) if x < 0 else x          # a NaN passes

@njit(**_ONE)
def relu_back(y, dy): return float32(0) if y <= 0 else dy

@njit(**_ONE)
def sigmoid_back(y, dy): return dy*y*(float32(1) - y)

@njit(**_ONE)
def tanh_back(y, dy): return dy*(float32(1) - y*y)

@njit(**_ONE)
def silu(x): return x*sigmoid(x)

@njit(**_ONE)
def silu_back(x, dy):
    s = sigmoid(x)
    return dy*s*(float32(1) + x*(float32(1) - s))


# %% [markdown]
# The sigmoid is checked first, in its own code; where others call it, it is then taken as a known function.

# %%
#| export
RULES['ReLU'] = Rule(relu, relu_back, _each_y, {'x': (3,)}, (0, 1, 2))   # samples on both sides of the kink
RULES['sigmoid'] = Rule(sigmoid.py_func, sigmoid_back, _each_y, {'x': (2,)})
RULES['tanh'] = Rule(tanh, tanh_back, _each_y, {'x': (2,)})
RULES['SiLU'] = Rule(silu, silu_back, _each, {'x': (2,)})

# %%
confirm('ReLU', 'sigmoid', 'tanh', 'SiLU')

# %%
#| export
_A, _C = float32(.044715), float32(1.5957691216057308)   # 2·√(2/π)
_R, _P = float32(.7071067811865476), float32(TWO_BY_ROOT_PI)   # 1/√2; erf'(0)

@njit(**_ONE)
def gelu(x): return x*sigmoid(_C*(x + _A*x*x*x))

@njit(**_ONE)
def gelu_back(x, dy):
    s = sigmoid(_C*(x + _A*x*x*x))
    return dy*(s + x*s*(float32(1) - s)*_C*(float32(1) + float32(3)*(_A*x*x)))

@njit(**_ONE)
def gelu_erf(x): return float32(.5)*x*(float32(1) + erf(x*_R))

@njit(**_ONE)
def gelu_erf_back(x, dy):
    u = x*_R
    return dy*(float32(.5)*(float32(1) + erf(u)) + float32(.5)*u*_P*exp(-(u*u)))


# %%
#| export
RULES['GELU, tanh'] = Rule(gelu, gelu_back, _each, {'x': (2,)})
RULES['GELU, erf'] = Rule(gelu_erf, gelu_erf_back, _each, {'x': (2,)})

# %%
confirm('GELU, tanh', 'GELU, erf')


# %% [markdown]
# ## Softmax
#
# $$y_j = \frac{e^{x_j - m}}{\sum_k e^{x_k - m}},\; m = \max_k x_k \qquad dx_j = y_j\Big(dy_j - \sum_k y_k\,dy_k\Big)$$
#
# Without subtracting $m$ the result would be the same in exact arithmetic, and an overflow in float32 at scores of 89.

# %%
#| export
@stands_for(max)
@njit(cache=True)
def row_max(x):
    "The largest; NaN if there is one. Compares bits: turned over where negative, they are whole numbers in the order of the floats."
    bits, top, low = x.view(int32), int32(-2**31), int32(0x7fffffff)
    for j in range(len(bits)):
        key = int32(bits[j] ^ (int32(bits[j] >> 31) & low))
        top = key if key > top else top
    return int32(top ^ (int32(top >> 31) & low)).view(float32)

@njit(**_ROW)
def softmax_row(x, y):
    top, total = row_max(x), float32(0)
    for j in range(len(x)):
        y[j] = exp(x[j] - top)
        total += y[j]
    scale = float32(1)/total
    for j in range(len(x)): y[j] *= scale

@njit(**_ROW)
def softmax_row_back(y, dy, dx):
    inner = float32(0)
    for j in range(len(y)): inner += y[j]*dy[j]
    for j in range(len(y)): dx[j] = y[j]*(dy[j] - inner)


# %% [markdown]
# $\log y_j = x_j - m - \log\sum_k e^{x_k - m}$, and on the way back $dx_j = dy_j - e^{y_j}\sum_k dy_k$.

# %%
#| export
@njit(**_ROW)
def log_softmax_row(x, y):
    top, total = row_max(x), float32(0)
    for j in range(len(x)): total += exp(x[j] - top)
    shift = top + math.log(total)
    for j in range(len(x)): y[j] = x[j] - shift

@njit(**_ROW)
def log_softmax_row_back(y, dy, dx):
    total = float32(0)
    for j in range(len(y)): total += dy[j]
    for j in range(len(y)): dx[j] = dy[j] - exp(y[j])*total


# %% [markdown]
# The rule for the log-softmax needs one more fact about the exponential, $e^{a - \log t} = e^a/t$, at its outputs.

# %%
#| hide
#| export
def _row(forward, back):
    "A row kernel that saves its output, on symbols."
    f, b = on_symbols(forward), on_symbols(back)
    def ahead(x):
        f(x, y := _empty(len(x)))
        return y, y
    def backward(y, dy):
        b(y, dy, dx := _empty(len(y)))
        return dx,
    return ahead, backward

def _log_row(forward, back):
    ahead, _ = _row(forward, back)
    def saves(x):
        e = np.array([np.exp(v - max(x)) for v in x])
        y, _ = ahead(x)
        return y, (y, e, sum(e[1:], e[0]))
    def backward(saved, dy):
        y, e, total = saved
        on_symbols(back)(y, dy, dx := _empty(len(y)))
        for v, w in zip(y, e): v.sheet.facts.append(f'(= {v.exp().name} {(w/total).name})')
        return dx,
    return saves, backward


# %%
#| export
RULES['softmax'] = Rule(softmax_row, softmax_row_back, _row, {'x': (3,)}, (0, 1))
RULES['log-softmax'] = Rule(log_softmax_row, log_softmax_row_back, _log_row, {'x': (3,)}, (0, 1))

# %%
confirm('softmax', 'log-softmax')


# %% [markdown]
# ## The loss
#
# Cross-entropy is $-\log$ of the probability given to the true class. Its derivative by the scores is the softmax minus one
# at the true class, so one visit to the row gives both, and the derivative takes the place of the scores.

# %%
#| export
@njit(**_ROW)
def cross_entropy_row(z, label, scale):
    "The loss of one row; the scores become its derivative times `scale`."
    top, at, total = row_max(z), z[label], float32(0)
    for j in range(len(z)):
        z[j] = exp(z[j] - top)
        total += z[j]
    k = scale/total
    for j in range(len(z)): z[j] *= k
    z[label] -= scale
    return math.log(total) + (top - at)

@njit(**_ALL)
def cross_entropy_rows(z, labels, losses):
    "All rows; the derivative is that of the mean."
    scale = float32(1)/float32(len(z))
    for i in prange(len(z)): losses[i] = cross_entropy_row(z[i], labels[i], scale)


# %%
#| hide
#| export
def _loss(forward, back):
    "Loss and derivative come from one code; it is run once for the one and once for the other."
    def ahead(z):
        loss = on_symbols(forward)(z.copy(), 1, 1.)
        return np.array([loss], object), (z, loss)
    def backward(saved, g):
        z, loss = saved
        if on_symbols(back)(dz := z.copy(), 1, 1.).sample != loss.sample: raise ValueError('another loss')
        return dz*g[0],
    return ahead, backward


# %%
#| export
RULES['cross-entropy'] = Rule(cross_entropy_row, cross_entropy_row, _loss, {'z': (3,)}, (0, 1))

# %%
confirm('cross-entropy')


# %% [markdown]
# ## Norms
#
# Layer norm shifts and scales each row to mean 0 and variance 1, then gives every column a gain and a bias of its own. With
# $\hat x = (x - \mu)\,r$, $r = 1/\sqrt{\sigma^2 + \varepsilon}$ and $d\hat x = g \cdot dy$:
#
# $$y = \hat x\,g + b \qquad dx = r\,\big(d\hat x - \overline{d\hat x} - \hat x\;\overline{d\hat x\,\hat x}\big)$$
#
# The mean is subtracted before squaring. The shortcut $\overline{x^2} - \bar x^2$ would cancel: for a row 40000 to 40003 it
# gives a variance of −128 in float32.

# %%
#| export
@njit(**_ROW)
def layer_norm_row(x, gain, bias, eps, y):
    "One row; returns the mean and 1/√(variance + eps)."
    n, total, squares = len(x), float32(0), float32(0)
    for j in range(n): total += x[j] - x[0]
    mean = x[0] + total/float32(n)
    for j in range(n): squares += (x[j] - mean)*(x[j] - mean)
    r = float32(1)/math.sqrt(squares/float32(n) + eps)
    for j in range(n): y[j] = (x[j] - mean)*r*gain[j] + bias[j]
    return mean, r

@njit(**_ROW)
def layer_norm_row_back(x, gain, mean, r, dy, dx, dgain, dbias):
    "One row; the derivatives by gain and bias are added to what is there."
    n, a, b = len(x), float32(0), float32(0)
    for j in range(n):
        d = dy[j]*gain[j]
        a += d
        b += d*((x[j] - mean)*r)
    for j in range(n): dgain[j] += dy[j]*((x[j] - mean)*r)
    for j in range(n): dbias[j] += dy[j]
    a, b = a/float32(n), b/float32(n)
    for j in range(n): dx[j] = r*(dy[j]*gain[j] - a - (x[j] - mean)*r*b)


# %% [markdown]
# RMS norm leaves out the mean and the bias: $y = x\,r\,g$, $r = 1/\sqrt{\overline{x^2} + \varepsilon}$.

# %%
#| export
@njit(**_ROW)
def rms_norm_row(x, gain, eps, y):
    "One row; returns 1/√(mean square + eps)."
    squares = float32(0)
    for j in range(len(x)): squares += x[j]*x[j]
    r = float32(1)/math.sqrt(squares/float32(len(x)) + eps)
    for j in range(len(x)): y[j] = x[j]*r*gain[j]
    return r

@njit(**_ROW)
def rms_norm_row_back(x, gain, r, dy, dx, dgain):
    "One row; the derivative by the gain is added to what is there."
    b = float32(0)
    for j in range(len(x)): b += dy[j]*gain[j]*x[j]*r
    for j in range(len(x)): dgain[j] += dy[j]*x[j]*r
    b = b/float32(len(x))
    for j in range(len(x)): dx[j] = r*(dy[j]*gain[j] - x[j]*r*b)


# %%
#| hide
#| export
def _norm(forward, back):
    "A norm with its parameters: what it saves is its inputs but the bias, and what it returns."
    def ahead(**a):
        made = on_symbols(forward)(*a.values(), 1e-5, y := _empty(len(a['x'])))
        return y, (a['x'], a['gain'], *(made if isinstance(made, tuple) else (made,)), len(a))
    def backward(saved, dy):
        n = len(dy)
        out = _empty(n), *(np.zeros(n, object) for _ in range(saved[-1] - 1))
        on_symbols(back)(*saved[:-1], dy, *out)
        return out
    return ahead, backward


# %%
#| export
RULES['layer norm'] = Rule(layer_norm_row, layer_norm_row_back, _norm, {'x': (3,), 'gain': (3,), 'bias': (3,)})
RULES['RMS norm'] = Rule(rms_norm_row, rms_norm_row_back, _norm, {'x': (3,), 'gain': (3,)})

# %%
confirm('layer norm', 'RMS norm')


# %% [markdown]
# A famous slip: leaving out the mean of $d\hat x$. Every shape is right, and training still works, a little worse.

# %%
def forgetful(x, gain, mean, r, dy, dx, dgain, dbias):
    xhat, d = (x - mean)*r, dy*gain
    dx[:], dgain[:], dbias[:] = r*(d - xhat*((d*xhat).sum()/3)), dy*xhat, dy

print(wrong := check('layer norm', forgetful))
assert wrong.verdict == 'refuted'


# %% [markdown]
# ## Whole arrays
#
# Rows are shared out to the threads. Gains are shared by all rows, so their derivatives are sums over rows: sixteen partial
# sums, always over the same rows, so that the bits do not depend on the number of threads.

# %%
#| export
@njit(**_ALL)
def map_all(fn, x, y):
    "y = fn(x), element by element."
    for i in prange(len(x)): y[i] = fn(x[i])

@njit(**_ALL)
def map_back(fn, s, dy, dx):
    "dx = fn(s, dy), element by element; s is what the forward pass saved, its input or its output."
    for i in prange(len(s)): dx[i] = fn(s[i], dy[i])

@njit(**_ALL)
def rows_all(fn, x, y):
    for i in prange(len(x)): fn(x[i], y[i])

@njit(**_ALL)
def rows_back(fn, y, dy, dx):
    for i in prange(len(y)): fn(y[i], dy[i], dx[i])


# %%
#| export
_BLOCKS = 16

@njit(**_ALL)
def layer_norm_rows(x, gain, bias, eps, y, mean, r):
    for i in prange(len(x)): mean[i], r[i] = layer_norm_row(x[i], gain, bias, eps, y[i])

@njit(**_ALL)
def layer_norm_rows_back(x, gain, mean, r, dy, dx, dgain, dbias):
    n, parts = len(x), np.zeros((2, _BLOCKS, len(gain)), float32)
    for k in prange(_BLOCKS):
        for i in range(n*k//_BLOCKS, n*(k + 1)//_BLOCKS):
            layer_norm_row_back(x[i], gain, mean[i], r[i], dy[i], dx[i], parts[0, k], parts[1, k])
    for k in range(_BLOCKS):
        for j in range(len(gain)):
            dgain[j] += parts[0, k, j]
            dbias[j] += parts[1, k, j]

@njit(**_ALL)
def rms_norm_rows(x, gain, eps, y, r):
    for i in prange(len(x)): r[i] = rms_norm_row(x[i], gain, eps, y[i])

@njit(**_ALL)
def rms_norm_rows_back(x, gain, r, dy, dx, dgain):
    n, parts = len(x), np.zeros((_BLOCKS, len(gain)), float32)
    for k in prange(_BLOCKS):
        for i in range(n*k//_BLOCKS, n*(k + 1)//_BLOCKS): rms_norm_row_back(x[i], gain, r[i], dy[i], dx[i], parts[k])
    for k in range(_BLOCKS):
        for j in range(len(gain)): dgain[j] += parts[k, j]


# %%
x = np.array([[40000, 40001, 40002, 40003], [2, 2, 2, 2]], float32)
y, one = np.empty_like(x), np.ones(4, float32)
layer_norm_rows(x, one, 0*one, float32(1e-5), y, np.empty(2, float32), np.empty(2, float32))
assert abs(y[0] - [-1.3416355, -.4472118, .4472118, 1.3416355]).max() < 1e-6 and (y[1] == 0).all()
print(y[0])

# %% [markdown]
# ## What this does not show
#
# - The obligations are about real numbers, at the sizes shown. Against PyTorch's numbers, in float32 and at large sizes, the
#   tests compare.
# - The loops are read as they are, one row at a time; that the compiler's vector instructions do the same is its promise.
