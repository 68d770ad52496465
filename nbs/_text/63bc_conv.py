# %%
#| default_exp nn.conv

# %% [markdown]
# # Convolution
# > The same small pattern is looked for at every place of a picture: a matrix product with a clever way to read its input.

# %% [markdown]
# A linear layer treats every pixel by itself, so a digit that is moved by one pixel is a new digit. A convolution looks at
# small windows, with the same weights at every place. It has few parameters, and what it learns in one corner it knows in all.

# %%
#| hide
#| export
from dataclasses import dataclass

import numpy as np
from numpy import float32

from bendml.autograd.symbols import RULES, Rule, check, confirm
from bendml.nn.layer import Grid, Layer, LayerError, accumulate
from bendml.nn.linear import _layer
from bendml.nn.rows import _ALL
from bendml.threads import get_threads
from numba import njit, prange


# %% [markdown]
# ## Windows
#
# A picture is a row of height × width × channels numbers, channels innermost; its type is a `Grid`, a row that knows its
# sides. `windows` lays every window of $k \times k$ pixels out as a row of its own. In a picture stored like this, a line of a
# window lies together in memory, $kC$ numbers. On the way back each number is added to where it was read.

# %%
#| export
@njit(**_ALL)
def _read(x, C, rows):
    "rows (B, h, w, k, k C) from lines of pictures, x (B, H, W C)."
    B, h, w, k, n = rows.shape
    for b in prange(B):
        for i in range(h):
            for j in range(w):
                for u in range(k):
                    for q in range(n): rows[b, i, j, u, q] = x[b, i + u, j*C + q]

@njit(**_ALL)
def _put_back(rows, C, dx):
    "The other way: dx (B, H, W C) += rows."
    B, h, w, k, n = rows.shape
    for b in prange(B):
        for i in range(h):
            for j in range(w):
                for u in range(k):
                    for q in range(n): dx[b, i + u, j*C + q] += rows[b, i, j, u, q]

def _run(fn, a: np.ndarray): return fn if a.dtype != object else fn.py_func   # symbols run in plain Python

def windows(
    x: np.ndarray,       # (B, H, W, C)
    k: int,              # the window's side
) -> np.ndarray:         # (B, H-k+1, W-k+1, k, k C)
    "Every window, line by line."
    B, H, W, C = x.shape
    rows = np.empty((B, H - k + 1, W - k + 1, k, k*C), x.dtype)
    _run(_read, x)(np.ascontiguousarray(x).reshape(B, H, W*C), C, rows)
    return rows


# %%
windows(np.arange(9, dtype=float32).reshape(1, 3, 3, 1), 2).reshape(4, 4)


# %% [markdown]
# ## The layer
#
# With the windows as rows $X$, the convolution is $Y = XW^\top + b$: [linear](63a_linear.ipynb), and so are two of its three
# derivatives. For the third, each window's derivative is added back to the pixels that it was read from.

# %%
#| export
@dataclass(frozen=True)
class Conv2d(Layer):
    "y = windows(x) W^T + b, at every place where a window fits."
    grid: Grid           # of the input
    channels: int        # of the output
    k: int = 3           # the window's side
    def __post_init__(self):
        if not 1 <= self.k <= min(self.grid.height, self.grid.width): raise LayerError('Conv2d', f'a window that fits into {self.grid}', f'{self.k} × {self.k}')
    takes = property(lambda self: self.grid)
    gives = property(lambda self: Grid(self.grid.height - self.k + 1, self.grid.width - self.k + 1, self.channels))
    def shapes(self): return {'w': (self.channels, self.k*self.k*self.grid.channels), 'b': (self.channels,)}
    def fresh(self, rng):
        shape = self.shapes()['w']
        return rng.uniform(-shape[1]**-.5, shape[1]**-.5, shape).astype(float32), np.zeros(self.channels, float32)
    def _forward(self, p, x):
        rows = windows(x.reshape(-1, *self.grid.sides), self.k).reshape(-1, p[0].shape[1])
        return (rows @ p[0].T + p[1]).reshape(len(x), -1), (p[0], rows)
    def _parameters_back(self, rows, dy, g):
        accumulate(g[0], dy.T @ rows, 'W')
        accumulate(g[1], dy.sum(0), 'b')
    def _backward(self, p, saved, dy, g):
        (w, rows), n, k, (H, W, C) = saved, len(dy), self.k, self.grid.sides
        dy = dy.reshape(-1, self.channels)
        self._parameters_back(rows, dy, g)
        dx = np.zeros((n, H, W*C), dy.dtype)
        _run(_put_back, dy)((dy @ w).reshape(n, *self.gives.sides[:2], k, k*C), C, dx)
        return dx.reshape(n, -1)

class Conv2dFirst(Conv2d):
    "A convolution that stands first: nobody needs the derivative by its input, and it is zero."
    def _backward(self, p, saved, dy, g):
        self._parameters_back(saved[1], dy.reshape(-1, self.channels), g)
        return np.broadcast_to(float32(0), (len(dy), self.grid.size))


# %% [markdown]
# ## Pooling
#
# Of each block of $k \times k$ pixels the largest goes on, and on the way back it gets the whole derivative; of several that
# are equally large, the first. What is not a number goes on too.

# %%
#| export
@njit(**_ALL)
def _pool(x, k, y, at):
    "x (B, H, W, C); y and at (B, h, w, C): the largest of a block, and which one it is."
    B, h, w, C = y.shape
    for b in prange(B):
        for i in range(h):
            for j in range(w):
                for c in range(C):
                    y[b, i, j, c], at[b, i, j, c] = x[b, k*i, k*j, c], 0
                    for n in range(1, k*k):
                        v = x[b, k*i + n//k, k*j + n % k, c]
                        if v > y[b, i, j, c] or v != v: y[b, i, j, c], at[b, i, j, c] = v, n

@njit(**_ALL)
def _pool_back(dy, at, k, dx):
    B, h, w, C = dy.shape
    for b in prange(B):
        for i in range(h):
            for j in range(w):
                for c in range(C): dx[b, k*i + at[b, i, j, c]//k, k*j + at[b, i, j, c] % k, c] = dy[b, i, j, c]

@dataclass(frozen=True)
class MaxPool(Layer):
    "The largest of each block, channel by channel."
    grid: Grid           # of the input
    k: int = 2           # the block's side
    def __post_init__(self):
        if self.k < 1 or self.grid.height % self.k or self.grid.width % self.k: raise LayerError('MaxPool', f'blocks that divide {self.grid}', f'{self.k} × {self.k}')
    takes = property(lambda self: self.grid)
    gives = property(lambda self: Grid(self.grid.height//self.k, self.grid.width//self.k, self.grid.channels))
    def _forward(self, p, x):
        y = np.empty((len(x), *self.gives.sides), x.dtype)
        _run(_pool, x)(np.ascontiguousarray(x).reshape(-1, *self.grid.sides), self.k, y, at := np.empty(y.shape, np.int32))
        return y.reshape(len(x), -1), at
    def _backward(self, p, at, dy, g):
        dx = np.zeros((len(dy), *self.grid.sides), dy.dtype)
        _run(_pool_back, dy)(np.ascontiguousarray(dy).reshape(at.shape), at, self.k, dx)
        return dx.reshape(len(dy), -1)


# %% [markdown]
# ## Proved
#
# As for the [other layers](63c_rules.ipynb): the backward code is the derivative of the forward code, for the layer and for the
# loops. The pool is looked at twice, since its comparisons may come out in several ways.

# %%
#| hide
#| export
def _plain(fn): return getattr(fn, 'py_func', fn)

def _loops(shape, C):
    "Windows of this shape, on symbols."
    def passes(forward, back):
        def ahead(x): _plain(forward)(x, C, rows := np.empty(shape, object)); return rows, x.shape
        def backward(saved, d): _plain(back)(d, C, dx := np.zeros(saved, object)); return dx,
        return ahead, backward
    return passes

def _pooling(forward, back):
    "A pool of 2 × 2, on symbols."
    def ahead(x):
        B, H, W, C = x.shape
        _plain(forward)(x, 2, y := np.empty((B, H//2, W//2, C), object), at := np.empty(y.shape, int))
        return y, (at, x.shape)
    def backward(saved, dy): _plain(back)(dy, saved[0], 2, dx := np.zeros(saved[1], object)); return dx,
    return ahead, backward


# %%
#| export
RULES['convolution'] = Rule(Conv2d._forward, Conv2d._backward, _layer(Conv2d(Grid(3, 2, 2), 2, 2), None), {'x': (1, 12), 'w': (2, 8), 'b': (2,)})
RULES['windows'] = Rule(_read, _put_back, _loops((1, 2, 1, 2, 4), 2), {'x': (1, 3, 4)})
RULES['max pool'] = Rule(_pool, _pool_back, _pooling, {'x': (1, 4, 4, 1)}, (0, 1))

# %%
confirm('convolution', 'windows', 'max pool')


# %% [markdown]
# A slip: the derivative of a window is put back one pixel too far to the right. Every shape is right.

# %%
def shifted(layer, p, saved, dy, g):
    dx = Conv2d._backward(layer, p, saved, dy, g)
    return np.roll(dx, layer.grid.channels, 1)

print(wrong := check('convolution', shifted))
assert wrong.verdict == 'refuted'

# %% [markdown]
# ## A small network
#
# Twice a convolution, a pool and a ReLU, then a linear layer. A picture may be read as a row, so the last layer takes what the pool
# gives; but a row is not read as just any picture.

# %%
from bendml.nn.layer import Seq
from bendml.nn.layers import Linear, ReLU
net = Seq(Conv2d(Grid(28, 28, 1), 8, 5), MaxPool(Grid(24, 24, 8)), ReLU(), Conv2d(Grid(12, 12, 8), 16, 5), MaxPool(Grid(8, 8, 16)), ReLU(), Linear(256, 10))
y, _ = net.forward(net.init(np.random.default_rng(0)), np.zeros((2, 784), float32))
print(net.count, 'parameters,', y.shape)

# %%
for build in (lambda: Seq(Conv2d(Grid(28, 28, 1), 8, 5), MaxPool(Grid(12, 48, 8))), lambda: MaxPool(Grid(5, 4, 1)), lambda: Conv2d(Grid(3, 3, 1), 2, 4)):
    try: build()
    except LayerError as e: print(e, '\n')

# %% [markdown]
# ## What this does not show
#
# Strides and padding are not there; the networks of these pages do without. Every window is copied, k² times the memory of
# the picture; libraries for large pictures avoid that.
