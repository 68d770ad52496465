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
import math
from dataclasses import dataclass
from typing import Callable

import numpy as np
from numpy import float32

from bendml.autograd.symbols import RULES, Rule, check, confirm
from bendml.kernel import Buf, Size, f32, kernel, requires
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
@kernel
def read_windows(B: Size, H: Size, line: Size, size: Size, h: Size, w: Size, k: Size, n: Size, piece: Size, wide: Size, many: Size, down: Size, right: Size,
                 x: Buf["B*size", f32], rows: Buf["B*many", f32]):
    "Windows of pictures of H lines: h*w of each, `down` lines and `right` numbers apart, k pieces of lines with n numbers."
    requires(size == H*line, piece == k*n, wide == w*piece, many == h*wide, B*size < 2**44, B*many < 2**44)
    requires(1 <= h, 1 <= w, (h - 1)*down + k <= H, (w - 1)*right + n <= line, size < 2**44, many < 2**44)
    for b in prange(B):
        assert b*size + size <= B*size
        assert b*many + many <= B*many
        for i in range(h):
            for j in range(w):
                for u in range(k):
                    assert i*wide + wide <= many
                    assert j*piece + piece <= wide
                    assert u*n + n <= piece
                    assert i*down <= (h - 1)*down
                    assert j*right <= (w - 1)*right
                    assert (i*down + u)*line + line <= size
                    p, q = (i*down + u)*line + j*right, i*wide + j*piece + u*n
                    assert p + n <= size
                    assert q + n <= many
                    for c in range(n): rows[b*many + (q + c)] = x[b*size + (p + c)]


# %%
#| export
@kernel
def put_back(B: Size, H: Size, line: Size, size: Size, h: Size, w: Size, k: Size, n: Size, piece: Size, wide: Size, many: Size, down: Size, right: Size,
             rows: Buf["B*many", f32], dx: Buf["B*size", f32]):
    "The other way: dx += rows."
    requires(size == H*line, piece == k*n, wide == w*piece, many == h*wide, B*size < 2**44, B*many < 2**44)
    requires(1 <= h, 1 <= w, (h - 1)*down + k <= H, (w - 1)*right + n <= line, size < 2**44, many < 2**44)
    for b in prange(B):
        assert b*size + size <= B*size
        assert b*many + many <= B*many
        for i in range(h):
            for j in range(w):
                for u in range(k):
                    assert i*wide + wide <= many
                    assert j*piece + piece <= wide
                    assert u*n + n <= piece
                    assert i*down <= (h - 1)*down
                    assert j*right <= (w - 1)*right
                    assert (i*down + u)*line + line <= size
                    p, q = (i*down + u)*line + j*right, i*wide + j*piece + u*n
                    assert p + n <= size
                    assert q + n <= many
                    for c in range(n):
                        assert p + c < size
                        assert q + c < many
                        dx[b*size + (p + c)] += rows[b*many + (q + c)]


# %% [markdown]
# What stands outside of a picture, if windows shall begin there, is zero: `pad` pixels on each side.

# %%
#| export
def _sizes(shape: tuple, k: int, stride: int) -> tuple:
    "What both loops want to know: of pictures (B, H, W, C), and windows k × k that are `stride` pixels apart."
    B, H, W, C = shape
    h, w = (H - k)//stride + 1, (W - k)//stride + 1
    return B, H, W*C, H*W*C, h, w, k, k*C, k*k*C, w*k*k*C, h*w*k*k*C, stride, stride*C

def _run(fn: Callable, a: np.ndarray) -> Callable: return fn if a.dtype != object else _plain(fn)   # symbols run in plain Python
def _plain(fn: Callable) -> Callable: return getattr(fn, 'plain', getattr(fn, 'py_func', fn))

def windows(
    x: np.ndarray,       # (B, H, W, C)
    k: int,              # the window's side
    stride: int = 1,     # pixels from one window to the next
    pad: int = 0,        # pixels of zeros around the picture
) -> np.ndarray:         # (B, h w, k k C)
    "Every window, line by line."
    if pad: x = np.pad(x, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    *_, many, _, _ = sizes = _sizes(x.shape, k, stride)
    rows = np.empty(len(x)*many, x.dtype)
    if rows.size: _run(read_windows, x)(*sizes, np.ascontiguousarray(x).reshape(-1), rows)
    return rows.reshape(len(x), -1, k*k*x.shape[3])

def windows_back(
    drows: np.ndarray,   # (B, h w, k k C)
    shape: tuple,        # of the pictures
    k: int, stride: int = 1, pad: int = 0,
) -> np.ndarray:         # (B, H, W, C)
    "The derivative by the pictures."
    B, H, W, C = shape
    dx = np.zeros((B, H + 2*pad, W + 2*pad, C), drows.dtype)
    if drows.size: _run(put_back, drows)(*_sizes(dx.shape, k, stride), np.ascontiguousarray(drows).reshape(-1), dx.reshape(-1))
    return dx[:, pad:pad + H, pad:pad + W]


# %%
windows(np.arange(9, dtype=float32).reshape(1, 3, 3, 1), 2)[0]

# %%
windows(np.arange(1, 10, dtype=float32).reshape(1, 3, 3, 1), 2, stride=3, pad=1)[0]


# %% [markdown]
# ## The layer
#
# With the windows as rows $X$, the convolution is $Y = XW^\top + b$: [linear](63a_linear.ipynb), and so are two of its three
# derivatives. For the third, each window's derivative is added back to the pixels that it was read from. Along a side of $H$ pixels
# there are $\lfloor (H + 2p - k)/s \rfloor + 1$ windows.

# %%
#| export
@dataclass(frozen=True)
class Conv2d(Layer):
    "y = windows(x) W^T + b, at every place where a window fits."
    grid: Grid           # of the input
    channels: int        # of the output
    k: int = 3           # the window's side
    stride: int = 1      # pixels from one window to the next
    pad: int = 0         # pixels of zeros around the picture
    def __post_init__(self):
        side = min(self.grid.height, self.grid.width) + 2*self.pad
        if self.stride < 1 or not 0 <= self.pad < max(self.k, 1): raise LayerError('Conv2d', 'stride >= 1, and pad from 0 to k - 1', f'stride {self.stride}, pad {self.pad}', 'a window that sees nothing but zeros learns nothing')
        if not 1 <= self.k <= side: raise LayerError('Conv2d', f'a window that fits into {self.grid}' + f' with {self.pad} around it'*(self.pad > 0), f'{self.k} × {self.k}')
    takes = property(lambda self: self.grid)
    @property
    def gives(self):
        h, w = ((n + 2*self.pad - self.k)//self.stride + 1 for n in self.grid.sides[:2])
        return Grid(h, w, self.channels)
    def shapes(self): return {'w': (self.channels, self.k*self.k*self.grid.channels), 'b': (self.channels,)}
    def fresh(self, rng):
        shape = self.shapes()['w']
        return rng.uniform(-shape[1]**-.5, shape[1]**-.5, shape).astype(float32), np.zeros(self.channels, float32)
    def _forward(self, p, x):
        rows = windows(x.reshape(-1, *self.grid.sides), self.k, self.stride, self.pad).reshape(-1, p[0].shape[1])
        return (rows @ p[0].T + p[1]).reshape(len(x), -1), (p[0], rows)
    def _parameters_back(self, rows, dy, g):
        accumulate(g[0], dy.T @ rows, 'W')
        accumulate(g[1], dy.sum(0), 'b')
    def _backward(self, p, saved, dy, g):
        (w, rows), n = saved, len(dy)
        dy = dy.reshape(-1, self.channels)
        self._parameters_back(rows, dy, g)
        return windows_back((dy @ w).reshape(n, -1, w.shape[1]), (n, *self.grid.sides), self.k, self.stride, self.pad).reshape(n, -1)

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
def _loops(shape, k, stride):
    "Windows of this shape, on symbols."
    *_, many, _, _ = sizes = _sizes(shape, k, stride)
    def passes(forward, back):
        def ahead(x): _plain(forward)(*sizes, x, rows := np.empty(shape[0]*many, object)); return rows, ()
        def backward(saved, d): _plain(back)(*sizes, d, dx := np.zeros(math.prod(shape), object)); return dx,
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
RULES['convolution, apart'] = Rule(Conv2d._forward, Conv2d._backward, _layer(Conv2d(Grid(3, 2, 1), 1, 2, 2, 1), None), {'x': (1, 6), 'w': (1, 4), 'b': (1,)})
RULES['windows'] = Rule(read_windows, put_back, _loops((1, 3, 3, 1), 2, 1), {'x': (9,)})
RULES['max pool'] = Rule(_pool, _pool_back, _pooling, {'x': (1, 4, 4, 1)}, (0, 1))

# %%
confirm('convolution', 'convolution, apart', 'windows', 'max pool')


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
for build in (lambda: Seq(Conv2d(Grid(28, 28, 1), 8, 5), MaxPool(Grid(12, 48, 8))), lambda: MaxPool(Grid(5, 4, 1)), lambda: Conv2d(Grid(3, 3, 1), 2, 4), lambda: Conv2d(Grid(3, 3, 1), 2, 3, pad=3)):
    try: build()
    except LayerError as e: print(e, '\n')

# %% [markdown]
# ## What this does not show
#
# Every window is copied, k² times the memory of the picture; libraries for large pictures avoid that. The loops of the pool are
# tested, and not proved to stay in their arrays.
