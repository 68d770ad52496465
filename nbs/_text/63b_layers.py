# %%
#| default_exp nn.layers

# %% [markdown]
# # Layers
# > What stands between linear maps: activations, norms, dropout, attention; and the losses that networks learn from.

# %% [markdown]
# Each layer here is a record of sizes around a pair of passes from [Rows](61_rows.ipynb) or [Attention](62b_blocks.ipynb),
# so there is little left to say: how its parameters are shaped, and what is kept for the way back.

# %%
#| hide
#| export
from dataclasses import dataclass, replace
from typing import Callable

import numpy as np
from numpy import float32, uint32

from bendml.nn.attention import CONVENTIONS, angles, rotate
from bendml.nn.blocks import attend_rows, attend_rows_back
from bendml.nn.elementary import mix, sigmoid, tanh
from bendml.nn.layer import Fork, Layer, LayerError, Mul, Residual, Seq
from bendml.nn.linear import Embedding, Linear, LinearFirst, Positions, Tied, check_ids
from bendml.nn.room import room
from bendml.nn import rows
from bendml.threads import get_threads
from numba import njit, prange


# %% [markdown]
# ## Activations

# %%
#| export
@dataclass(frozen=True)
class Activation(Layer):
    "A function of each number, and what it does to a derivative."
    forwards = backwards = None
    keeps_output = False   # whether the way back needs the output, or the input
    def _forward(self, p, x):
        x = np.ascontiguousarray(x)
        rows.map_all(type(self).forwards, x.reshape(-1), (y := room(*x.shape)).reshape(-1))
        return y, y if self.keeps_output else x
    def _backward(self, p, saved, dy, g):
        rows.map_back(type(self).backwards, saved.reshape(-1), np.ascontiguousarray(dy).reshape(-1), (dx := room(*saved.shape)).reshape(-1))
        return dx

def _activation(name: str, doc: str, forwards: Callable, backwards: Callable, keeps_output: bool = False) -> type:
    made = type(name, (Activation,), dict(__doc__=doc, __module__=__name__, __qualname__=name, forwards=forwards, backwards=backwards, keeps_output=keeps_output))
    return dataclass(frozen=True)(made)

ReLU = _activation('ReLU', 'What is negative becomes 0.', rows.relu, rows.relu_back, True)
Sigmoid = _activation('Sigmoid', '1/(1 + exp(-x)).', sigmoid, rows.sigmoid_back, True)
Tanh = _activation('Tanh', 'The hyperbolic tangent.', tanh, rows.tanh_back, True)
SiLU = _activation('SiLU', 'x sigmoid(x).', rows.silu, rows.silu_back)
GELU = _activation('GELU', "GPT-2's GELU, with tanh.", rows.gelu, rows.gelu_back)
GELUErf = _activation('GELUErf', 'The GELU with erf.', rows.gelu_erf, rows.gelu_erf_back)

# %%
x = np.array([1, -2], float32)
print('with tanh', GELU().forward((), x)[0], ' with erf', GELUErf().forward((), x)[0])


# %% [markdown]
# ## Softmax and norms

# %%
#| export
@dataclass(frozen=True)
class Softmax(Layer):
    "Each row becomes positive and sums to one."
    forwards, backwards = rows.softmax_row, rows.softmax_row_back
    def _forward(self, p, x):
        y = room(*x.shape)
        if x.shape[-1]: rows.rows_all(type(self).forwards, _rows(x), _rows(y))
        return y, y
    def _backward(self, p, y, dy, g):
        dx = room(*y.shape)
        if y.shape[-1]: rows.rows_back(type(self).backwards, _rows(y), _rows(dy), _rows(dx))
        return dx

class LogSoftmax(Softmax):
    "The logarithm of the softmax, computed without it."
    forwards, backwards = rows.log_softmax_row, rows.log_softmax_row_back

def _rows(x): return np.ascontiguousarray(x).reshape(-1, x.shape[-1])

@dataclass(frozen=True)
class LayerNorm(Layer):
    "Mean 0, variance 1 in each row; then a gain and a bias for each column."
    width: int
    eps: float = 1e-5
    takes = gives = property(lambda self: self.width)
    def shapes(self): return {'gain': (self.width,), 'bias': (self.width,)}
    def fresh(self, rng): return np.ones(self.width, float32), np.zeros(self.width, float32)
    def _forward(self, p, x):
        x, y = np.ascontiguousarray(x), room(*x.shape)
        mean, r = np.empty((2, x.size//self.width), float32)
        rows.layer_norm_rows(_rows(x), *p, float32(self.eps), _rows(y), mean, r)
        return y, (x, p[0], mean, r)
    def _backward(self, p, saved, dy, g):
        x, gain, mean, r = saved
        rows.layer_norm_rows_back(_rows(x), gain, mean, r, _rows(dy), _rows(dx := room(*x.shape)), *g)
        return dx

@dataclass(frozen=True)
class RMSNorm(Layer):
    "Mean square 1 in each row; then a gain for each column."
    width: int
    eps: float = 1e-5
    takes = gives = property(lambda self: self.width)
    def shapes(self): return {'gain': (self.width,)}
    def fresh(self, rng): return np.ones(self.width, float32),
    def _forward(self, p, x):
        x, y, r = np.ascontiguousarray(x), room(*x.shape), np.empty(x.size//self.width, float32)
        rows.rms_norm_rows(_rows(x), *p, float32(self.eps), _rows(y), r)
        return y, (x, p[0], r)
    def _backward(self, p, saved, dy, g):
        x, gain, r = saved
        rows.rms_norm_rows_back(_rows(x), gain, r, _rows(dy), _rows(dx := room(*x.shape)), *g)
        return dx


# %% [markdown]
# ## Dropout
#
# While training, each number is zero with probability $p$, and the others are scaled up to make good for it. The decision
# for number $i$ at step $t$ is a hash of both, so the way back makes the same one, and a run can be repeated. The step
# count is the layer's only parameter, and is saved with the others, as bits.

# %%
#| export
@njit(cache=True, parallel=True)
def _dropout(x, key, p, scale, y):
    for i in prange(len(x)):
        u = float32(mix(uint32(key + uint32(i))) >> uint32(8))*float32(2**-24)
        y[i] = x[i]*scale if u >= p else float32(0)

@dataclass(frozen=True)
class Dropout(Layer):
    "Zero with probability p; the rest times 1/(1 - p)."
    p: float
    seed: int = 0
    def __post_init__(self):
        if not 0 <= self.p < 1: raise LayerError('Dropout', 'a probability from 0 up to, but without, 1', self.p)
    def shapes(self): return {'step': (1,)}
    def evaluating(self): return replace(self, p=0.)
    def _apply(self, key, x):
        if self.p == 0: return x
        y = np.empty_like(x, order='C')
        _dropout(np.ascontiguousarray(x).ravel(), key, float32(self.p), float32(1/(1 - self.p)), y.reshape(-1))
        return y
    def _forward(self, p, x):
        key = uint32(mix(uint32(self.seed % 2**32) ^ mix(p[0].view(uint32)[0])))
        return self._apply(key, x), key
    def _backward(self, p, key, dy, g): return self._apply(key, dy)
    def step(self, update, p, g, *s): p[0].view(uint32)[0] += 1


# %%
layer = Dropout(.25)
p = layer.zeros()
y, saved = layer.forward(p, np.ones(8, float32))
assert (layer.backward(p, saved, np.ones(8, float32), layer.zeros()) == y).all()
first = y
layer.step(None, p, None)
print(first, layer.forward(p, np.ones(8, float32))[0], sep='\n')


# %% [markdown]
# ## Attention
#
# `Attend` has no parameters: it takes each position's queries, keys and values, side by side, and gives the answers. With
# a linear layer on either side it is causal self-attention.

# %%
#| export
def check_attention(heads: int, size: int, groups: int, rotary: str | None) -> None:
    "`LayerError` for sizes of attention that do not fit together."
    if heads < 1 or heads % groups: raise LayerError('Attend', 'heads that can be divided into the groups', f'{heads} heads, {groups} groups')
    if rotary is None: return
    if rotary not in CONVENTIONS: raise LayerError('Attend', ' or '.join(CONVENTIONS), rotary)
    angles(0, size)

def turn(x: np.ndarray, turned: int, size: int, rotary: str, base: float, back: bool = False) -> None:
    "In place: the first `turned` parts of each row, queries and keys, are turned by their position; values are not."
    x = x.reshape(*x.shape[:2], -1, size)
    x[:, :, :turned] = rotate(np.ascontiguousarray(x[:, :, :turned]), *angles(x.shape[1], size, base), rotary, back)


# %%
#| export
@dataclass(frozen=True)
class Attend(Layer):
    "Causal attention: (B, T, (heads + 2 groups) size) to (B, T, heads size)."
    heads: int
    size: int                    # D, numbers in a head
    groups: int = 0              # keys and values; 0: as many as heads
    rotary: str | None = None    # 'interleaved', 'half', or None
    base: float = 10000.         # of the rotary angles
    kv = property(lambda self: self.groups or self.heads)
    takes = property(lambda self: (self.heads + 2*self.kv)*self.size)
    gives = property(lambda self: self.heads*self.size)
    def __post_init__(self): check_attention(self.heads, self.size, self.kv, self.rotary)
    def _turn(self, x, back=False): turn(x, self.heads + self.kv, self.size, self.rotary, self.base, back)
    def _forward(self, p, x):
        if x.ndim != 3: raise LayerError(self.name, f'(B, T, {self.takes})', x.shape)
        if self.rotary: self._turn(x := x.copy('C'))
        x = np.ascontiguousarray(x)
        y, logs = attend_rows(x, self.kv, self.heads//self.kv)
        return y, (x, y, logs)
    def _backward(self, p, saved, dy, g):
        x, y, logs = saved
        dx = attend_rows_back(x, self.kv, self.heads//self.kv, y, logs, dy)
        if self.rotary: self._turn(dx, back=True)
        return dx


# %%
#| export
def self_attention(width: int, heads: int, groups: int = 0, rotary: str | None = None, base: float = 10000., bias: bool = True) -> Layer:
    "Causal self-attention: queries, keys and values from one linear layer, the answers through another."
    if width % heads: raise LayerError('self_attention', 'a width that can be divided into the heads', f'{width} numbers, {heads} heads')
    core = Attend(heads, width//heads, groups, rotary, base)
    return Seq(Linear(width, core.takes, bias), core, Linear(width, width, bias))

def swiglu(width: int, hidden: int) -> Layer:
    "Llama's feed-forward layer: W2 (SiLU(W1 x) * W3 x), without biases."
    return Seq(Fork(Seq(Linear(width, hidden, False), SiLU()), Linear(width, hidden, False)), Mul(), Linear(hidden, width, False))


# %%
block = Seq(Residual(RMSNorm(8), self_attention(8, 4, groups=2, rotary='half', bias=False)), Residual(RMSNorm(8), swiglu(8, 16)))
p = block.init(np.random.default_rng(0))
y, _ = block.forward(p, np.ones((2, 5, 8), float32))
print(block.count, 'parameters,', block.names()[:4], y.shape)


# %% [markdown]
# ## Losses
#
# A loss is one number; with it comes its derivative by the scores. `cross_entropy` writes the derivative over the
# scores, which saves memory, unless told to keep them.

# %%
#| export
def cross_entropy(
    z: np.ndarray,          # (..., V) float32 scores
    labels: np.ndarray,     # (...,) whole numbers from 0 to V - 1
    keep: bool = False,     # do not overwrite the scores
) -> tuple[float, np.ndarray]:   # the mean loss, and its derivative by the scores
    "How surprised the softmax of the scores is by the labels, on average."
    if z.dtype != float32 or z.ndim < 1 or not z.shape[-1]: raise LayerError('cross_entropy', 'float32 scores, at least one class', f'{z.dtype} {z.shape}')
    if labels.shape != z.shape[:-1] or not np.issubdtype(labels.dtype, np.integer): raise LayerError('cross_entropy', f'whole numbers {z.shape[:-1]}, a label for each row', f'{labels.dtype} {labels.shape}')
    if not labels.size: raise LayerError('cross_entropy', 'at least one row', z.shape)
    check_ids(labels, z.shape[-1], 'cross_entropy: labels')
    dz = z.copy() if keep or not z.flags.writeable else np.ascontiguousarray(z)
    losses = np.empty(labels.size, float32)
    rows.cross_entropy_rows(_rows(dz), labels.ravel(), losses)
    return float(losses.mean(dtype=np.float64)), dz

def mean_squared_error(y: np.ndarray, target: np.ndarray) -> tuple[float, np.ndarray]:
    "The mean of (y - target)^2, and its derivative by y. The shapes are the same; nothing is stretched."
    if y.shape != target.shape or not y.size: raise LayerError('mean_squared_error', y.shape, target.shape, 'one shape for both, not empty')
    d = y - target
    return float(np.mean(d*d, dtype=np.float64)), d*y.dtype.type(2/d.size)


# %%
loss, dz = cross_entropy(np.array([[1e4, 9999, 0]], float32), np.array([1]))
print(round(loss, 6), dz)

# %%
for bad in (lambda: cross_entropy(np.zeros((2, 3), float32), np.array([0, 3])), lambda: cross_entropy(np.zeros((2, 3), float32), np.array([0])),
            lambda: mean_squared_error(np.ones((3, 1), float32), np.ones(3, float32)), lambda: Seq(Linear(784, 128), ReLU(), Linear(64, 10))):
    try: bad()
    except LayerError as e: print(e, '\n')

# %% [markdown]
# ## What this does not show
#
# There is no batch norm, since it mixes the examples of a batch.
