# %%
#| default_exp nn.layers

# %% [markdown]
# # Layers
# > What networks are made of: linear maps, embeddings, activations, norms, attention, and the losses they learn from.

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

from bendml.autograd.symbols import RULES, Rule, check
from bendml.nn.attention import CONVENTIONS, angles, rotate
from bendml.nn.blocks import attend_rows, attend_rows_back
from bendml.nn.elementary import mix, sigmoid, tanh
from bendml.nn.products import product
from bendml.nn.room import room
from bendml.nn.layer import Add, Fork, Id, Layer, LayerError, Mul, Residual, Seq, accumulate
from bendml.nn import rows
from bendml.nn.rows import _ALL
from bendml.threads import get_threads
from numba import njit, prange


# %% [markdown]
# ## Linear
#
# $y = xW^\top + b$. A row of $W$ holds the weights of one output, as PyTorch and Llama files store it. On the way back
# $dx = dy\,W$, $dW = dy^\top x$, and $db$ is the sum of $dy$ over all rows. The output starts as the bias, and the
# [product](60c_products.ipynb) is added to it; likewise $dW$ to what is there.

# %%
#| export
@dataclass(frozen=True)
class Linear(Layer):
    "y = x W^T + b, W (m, n)."
    n: int              # numbers in
    m: int              # numbers out
    bias: bool = True
    takes, gives = property(lambda self: self.n), property(lambda self: self.m)
    def shapes(self): return {'w': (self.m, self.n)} | ({'b': (self.m,)} if self.bias else {})
    def fresh(self, rng):
        w = rng.uniform(-self.n**-.5, self.n**-.5, (self.m, self.n)).astype(float32)
        return (w, np.zeros(self.m, float32))[:1 + self.bias]
    def _forward(self, p, x):
        rows = x.reshape(-1, self.n)
        if self.bias: product(rows, p[0].T, y := _spread(p[1], len(rows)), add=True)
        else: y = product(rows, p[0].T)
        return y.reshape(*x.shape[:-1], self.m), (p[0], x)
    def _parameters_back(self, saved, dy, g):
        product(dy.T, saved[1].reshape(-1, self.n), g[0], add=True)
        if self.bias: accumulate(g[1], dy.sum(0), 'b')
    def _backward(self, p, saved, dy, g):
        dy = dy.reshape(-1, self.m)
        self._parameters_back(saved, dy, g)
        return product(dy, saved[0]).reshape(saved[1].shape)

def _spread(b: np.ndarray, n: int) -> np.ndarray:
    "n rows of b, to add to."
    if b.dtype != float32: return np.repeat(b[None], n, 0)
    np.copyto(y := room(n, len(b)), b)
    return y

class LinearFirst(Linear):
    "A linear layer that stands first: nobody needs the derivative by its input, and it is zero."
    def _backward(self, p, saved, dy, g):
        self._parameters_back(saved, dy.reshape(-1, self.m), g)
        return np.broadcast_to(float32(0), saved[1].shape)


# %%
#| hide
#| export
def _layer(layer, inputs):
    "A layer's passes on symbols: its parameters are inputs, and so is x, unless it is given."
    shapes = layer.shapes()
    def passes(forward, back):
        def ahead(**a): return forward(layer, tuple(a[n] for n in shapes), a.get('x', inputs))
        def backward(saved, dy):
            g = tuple(np.zeros(s, object) for s in shapes.values())
            dx = back(layer, (), saved, dy, g)
            return ((dx,) if dx is not None else ()) + g
        return ahead, backward
    return passes


# %%
#| export
RULES['linear'] = Rule(Linear._forward, Linear._backward, _layer(Linear(2, 3), None), {'x': (2, 2), 'w': (3, 2), 'b': (3,)})


# %%
#| hide
def show(*names):
    for name in names:
        c = check(name)
        assert c.verdict == 'confirmed', c
        print(c)


# %%
show('linear')


# %% [markdown]
# ## Embedding
#
# A table with one row for each token. On the way back every token adds to its row, in order. Tokens are checked first:
# a number outside of the table would read, or write, somewhere else.

# %%
#| export
@njit(cache=True, parallel=True)
def _scatter(ids, dy, g):
    "g[ids[i]] += dy[i], in the order of i; the columns are shared out, so no two threads meet."
    n, (_, m) = len(ids), g.shape
    for block in prange((m + 15)//16):
        for i in range(n):
            for j in range(16*block, min(16*block + 16, m)): g[ids[i], j] += dy[i, j]

def check_ids(ids: np.ndarray, size: int, where: str) -> None:
    "`LayerError` unless all are from 0 to size - 1."
    if ids.size and not (0 <= ids.min() and ids.max() < size):
        bad = ids.ravel()[np.flatnonzero((ids.ravel() < 0) | (ids.ravel() >= size))[0]]
        raise LayerError(where, f'whole numbers from 0 to {size - 1}', int(bad))

@dataclass(frozen=True)
class Embedding(Layer):
    "A row for each token."
    size: int   # V, how many tokens there are
    width: int  # C, numbers in a row
    takes, gives = 'ids', property(lambda self: self.width)
    def shapes(self): return {'table': (self.size, self.width)}
    def fresh(self, rng): return rng.normal(0, .02, (self.size, self.width)).astype(float32),
    def _forward(self, p, ids):
        check_ids(ids, self.size, self.name)
        return p[0][ids], ids
    def _backward(self, p, ids, dy, g):
        _scatter_into(ids.ravel(), dy.reshape(-1, self.width), g[0])

def _scatter_into(ids, dy, g): (_scatter if dy.dtype == float32 else _scatter.py_func)(ids, np.ascontiguousarray(dy), g)

@dataclass(frozen=True)
class Positions(Layer):
    "Adds a learnt row to each position: (B, T, C) to (B, T, C)."
    longest: int  # positions
    width: int
    takes = gives = property(lambda self: self.width)
    def shapes(self): return {'table': (self.longest, self.width)}
    def fresh(self, rng): return rng.normal(0, .02, (self.longest, self.width)).astype(float32),
    def _forward(self, p, x):
        if x.ndim < 2 or x.shape[-2] > self.longest: raise LayerError(self.name, f'(B, T, {self.width}) with T up to {self.longest}', x.shape)
        return x + p[0][:x.shape[-2]], None
    def _backward(self, p, saved, dy, g):
        T = dy.shape[-2]
        accumulate(g[0][:T], dy.reshape(-1, T, self.width).sum(0), 'positions')
        return dy


# %%
#| export
RULES['embedding'] = Rule(Embedding._forward, Embedding._backward, _layer(Embedding(3, 2), np.array([2, 0, 2])), {'table': (3, 2)})

# %%
show('embedding')   # one token occurs twice


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
        rows.map_all(type(self).forwards, x.ravel(), (y := room(*x.shape)).reshape(-1))
        return y, y if self.keeps_output else x
    def _backward(self, p, saved, dy, g):
        rows.map_back(type(self).backwards, saved.ravel(), np.ascontiguousarray(dy).ravel(), (dx := room(*saved.shape)).reshape(-1))
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
@dataclass(frozen=True)
class Attend(Layer):
    "Causal attention: (B, T, (heads + 2 groups) size) to (B, T, heads size)."
    heads: int
    size: int                    # D, numbers in a head
    groups: int = 0              # keys and values; 0: as many as heads
    rotary: str | None = None    # 'interleaved', 'half', or None
    base: float = 10000.         # of the rotary angles
    def __post_init__(self):
        if self.heads < 1 or self.heads % self.kv: raise LayerError('Attend', 'heads that can be divided into the groups', f'{self.heads} heads, {self.kv} groups')
        if self.rotary is not None:
            if self.rotary not in CONVENTIONS: raise LayerError('Attend', ' or '.join(CONVENTIONS), self.rotary)
            angles(0, self.size)
    kv = property(lambda self: self.groups or self.heads)
    takes = property(lambda self: (self.heads + 2*self.kv)*self.size)
    gives = property(lambda self: self.heads*self.size)
    def _turn(self, x, back=False):
        "Queries and keys, (B, T, H + 2 K, D), are turned; values are not."
        turned = self.heads + self.kv
        x[:, :, :turned] = rotate(np.ascontiguousarray(x[:, :, :turned]), *angles(x.shape[1], self.size, self.base), self.rotary, back)
    def _forward(self, p, x):
        if x.ndim != 3: raise LayerError(self.name, f'(B, T, {self.takes})', x.shape)
        if self.rotary: self._turn((x := x.copy('C')).reshape(*x.shape[:2], -1, self.size))
        x = np.ascontiguousarray(x)
        y, logs = attend_rows(x, self.kv, self.heads//self.kv)
        return y, (x, y, logs)
    def _backward(self, p, saved, dy, g):
        x, y, logs = saved
        dx = attend_rows_back(x, self.kv, self.heads//self.kv, y, logs, dy)
        if self.rotary: self._turn(dx.reshape(*x.shape[:2], -1, self.size), back=True)
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
# There is no batch norm, since it mixes the examples of a batch, and no convolution yet.
