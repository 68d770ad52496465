# %%
#| default_exp nn.linear

# %% [markdown]
# # Linear maps and tables
# > The layers that hold most of a network's numbers: matrices that mix, and tables with a row for each token or position.

# %% [markdown]
# Each is a [layer](63_layer.ipynb): a record of sizes, a forward and a backward pass. Under each stands the check that the second
# is the derivative of the first.

# %%
#| hide
#| export
from dataclasses import dataclass
from typing import Callable, NamedTuple

import numpy as np
from numpy import float32

from bendml.autograd.symbols import RULES, Rule, confirm
from bendml.nn.layer import Layer, LayerError, accumulate, meet
from bendml.nn.products import product
from bendml.nn.sums import row_sum, rows_of
from bendml.tensor import col_sums, matmul, matmul_nt, matmul_tn
from bendml.threads import get_threads
from numba import njit, prange


# %% [markdown]
# ## Linear
#
# $y = xW^\top + b$. A row of $W$ holds the weights of one output, as PyTorch and Llama files store it. On the way back
# $dx = dy\,W$, $dW = dy^\top x$, and $db$ is the sum of $dy$ over all rows.
#
# The quick [products](60c_products.ipynb) add up in an order of their own. Where every bit counts, `order='sequential'` adds from
# left to right, with the [proved loops](42_gemm.ipynb).

# %%
#| export
class Products(NamedTuple):
    "The products that a linear layer needs, in one order of additions."
    forward: Callable   # x (N, n), w (m, n), b (m,) or None -> x w^T + b
    weights: Callable   # dy (N, m), x (N, n), g (m, n): g += dy^T x
    inputs: Callable    # dy (N, m), w (m, n) -> dy w
    sums: Callable      # of each column

def _forward_fast(x, w, b):
    "The output starts as the bias, and the product is added to it."
    if b is None: return product(x, w.T)
    if b.dtype != float32: return product(x, w.T) + b
    return product(x, w.T, rows_of(b, len(x)), add=True)

def _forward_sequential(x, w, b):
    y = matmul_nt(x, w, order='sequential')
    return y if b is None else y + b

ORDERS = {
    'fast': Products(_forward_fast, lambda dy, x, g: product(dy.T, x, g, add=True), product, row_sum),
    'sequential': Products(_forward_sequential, lambda dy, x, g: accumulate(g, matmul_tn(dy, x, order='sequential'), 'W'),
                           lambda dy, w: matmul(dy, w, order='sequential'), col_sums)}


# %%
#| export
@dataclass(frozen=True)
class Linear(Layer):
    "y = x W^T + b, W (m, n)."
    n: int              # numbers in
    m: int              # numbers out
    bias: bool = True
    order: str = 'fast'  # of additions; 'sequential': from left to right
    takes, gives = property(lambda self: self.n), property(lambda self: self.m)
    def __post_init__(self):
        if self.order not in ORDERS: raise LayerError('Linear', ' or '.join(ORDERS), self.order)
    def shapes(self): return {'w': (self.m, self.n)} | ({'b': (self.m,)} if self.bias else {})
    def fresh(self, rng):
        w = rng.uniform(-self.n**-.5, self.n**-.5, (self.m, self.n)).astype(float32)
        return (w, np.zeros(self.m, float32))[:1 + self.bias]
    def _forward(self, p, x):
        y = ORDERS[self.order].forward(x.reshape(-1, self.n), p[0], p[1] if self.bias else None)
        return y.reshape(*x.shape[:-1], self.m), (p[0], x)
    def _parameters_back(self, saved, dy, g):
        ORDERS[self.order].weights(dy, saved[1].reshape(-1, self.n), g[0])
        if self.bias: accumulate(g[1], ORDERS[self.order].sums(dy), 'b')
    def _backward(self, p, saved, dy, g):
        dy = dy.reshape(-1, self.m)
        self._parameters_back(saved, dy, g)
        return ORDERS[self.order].inputs(dy, saved[0]).reshape(saved[1].shape)

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
confirm('linear')


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


# %%
#| export
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
confirm('embedding')   # one token occurs twice


# %% [markdown]
# ## One table, used twice
#
# A language model begins with a row for each token and ends with a score for each token, and often uses the same table for
# both. It is then one parameter, not two that are equal: one gradient, to which both ends add, one state in the optimizer, and one
# step. So it belongs to one layer, which has the layers between as its part.

# %%
#| export
@dataclass(frozen=True)
class Tied(Layer):
    "Tokens to rows, a layer between, and scores by the same table: table(inner(table[ids]))."
    table: Embedding
    inner: Layer
    takes, gives = 'ids', property(lambda self: self.table.size)
    def __post_init__(self): meet(self.table.width, self.inner.out(self.table.width), 'Tied: what the inner layer gives')
    def parts(self): return self.table, self.inner
    def evaluating(self): return Tied(self.table, self.inner.evaluating())
    def _forward(self, p, ids):
        x, s = self.table.forward(p[0], ids)
        h, t = self.inner.forward(p[1], x)
        return product(h.reshape(-1, self.table.width), p[0][0].T).reshape(*h.shape[:-1], -1), (h, s, t)
    def _backward(self, p, saved, dy, g):
        h, s, t = saved
        rows, d = h.reshape(-1, self.table.width), dy.reshape(-1, self.table.size)
        product(d.T, rows, g[0][0], add=True)
        self.table.backward(p[0], s, self.inner.backward(p[1], t, product(d, p[0][0]).reshape(h.shape), g[1]), g[0])


# %%
model = Tied(Embedding(100, 8), Linear(8, 8))
model.count, model.names()

# %% [markdown]
# ## What is refused

# %%
for bad in (lambda: Linear(784, 128).forward(Linear(784, 128).zeros(), np.zeros((2, 783), float32)),
            lambda: Embedding(5, 4).forward(Embedding(5, 4).zeros(), np.array([0, 5])), lambda: Linear(3, 4, order='any'), lambda: Tied(Embedding(5, 4), Linear(4, 3))):
    try: bad()
    except LayerError as e: print(e, '\n')

# %% [markdown]
# ## What this does not show
#
# The rule of `linear` is checked at small sizes. For all sizes, on integers, there is a law, `adjoint` on
# [Laws of rows](67b_row_laws.ipynb).
