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

from bendml.autograd.symbols import RULES, Rule, check
from bendml.nn.layer import Grid, Layer, LayerError, accumulate
from bendml.nn.layers import _layer


# %% [markdown]
# ## Windows
#
# A picture is a row of height × width × channels numbers, channels innermost; its type is a `Grid`, a row that knows its
# sides. `windows` lays every window of $k \times k$ pixels out as a row of its own. In a picture stored like this, a line of a
# window lies together in memory, so the rows are copied a line at a time.

# %%
#| export
def windows(
    x: np.ndarray,       # (B, H, W, C)
    k: int,              # the window's side
) -> np.ndarray:         # (B (H-k+1) (W-k+1), k k C), a copy
    "Every window as a row."
    B, H, W, C = x.shape
    b, h, w, c = np.ascontiguousarray(x).strides
    lines = np.lib.stride_tricks.as_strided(x, (B, H - k + 1, W - k + 1, k, k*C), (b, h, w, h, c), writeable=False)
    return lines.reshape(-1, k*k*C)


# %%
windows(np.arange(9).reshape(1, 3, 3, 1), 2)


# %% [markdown]
# ## The layer
#
# With the windows as rows $X$, the convolution is $Y = XW^\top + b$: [linear](63b_layers.ipynb), and so are two of its three
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
        if not 1 <= self.k <= min(self.grid.height, self.grid.width): raise LayerError('Conv2d', f'a window that fits into {self.grid}', f'{self.k} x {self.k}')
    takes = property(lambda self: self.grid)
    gives = property(lambda self: Grid(self.grid.height - self.k + 1, self.grid.width - self.k + 1, self.channels))
    def shapes(self): return {'w': (self.channels, self.k*self.k*self.grid.channels), 'b': (self.channels,)}
    def fresh(self, rng):
        shape = self.shapes()['w']
        return rng.uniform(-shape[1]**-.5, shape[1]**-.5, shape).astype(float32), np.zeros(self.channels, float32)
    def _forward(self, p, x):
        rows = windows(x.reshape(-1, *self.grid.sides), self.k)
        return (rows @ p[0].T + p[1]).reshape(len(x), -1), (p[0], rows)
    def _parameters_back(self, rows, dy, g):
        accumulate(g[0], dy.T @ rows, 'W')
        accumulate(g[1], dy.sum(0), 'b')
    def _backward(self, p, saved, dy, g):
        (w, rows), n, k = saved, len(dy), self.k
        dy = dy.reshape(-1, self.channels)
        self._parameters_back(rows, dy, g)
        return self._put_back((dy @ w).reshape(n, *self.gives.sides[:2], k, k, -1))
    def _put_back(self, d):
        "The sum, for each pixel, over the windows that it is in."
        (B, H, W, k), out = d.shape[:4], np.zeros((len(d), *self.grid.sides), d.dtype)
        for u in range(k):
            for v in range(k): out[:, u:u + H, v:v + W] += d[:, :, :, u, v]
        return out.reshape(B, -1)

class Conv2dFirst(Conv2d):
    "A convolution that stands first: nobody needs the derivative by its input, and it is zero."
    def _backward(self, p, saved, dy, g):
        self._parameters_back(saved[1], dy.reshape(-1, self.channels), g)
        return np.broadcast_to(float32(0), (len(dy), self.grid.size))


# %% [markdown]
# ## Pooling
#
# Of each block of $k \times k$ pixels the largest goes on, and on the way back it gets the whole derivative; of several that
# are equally large, the first.

# %%
#| export
@dataclass(frozen=True)
class MaxPool(Layer):
    "The largest of each block, channel by channel."
    grid: Grid           # of the input
    k: int = 2           # the block's side
    def __post_init__(self):
        if self.k < 1 or self.grid.height % self.k or self.grid.width % self.k: raise LayerError('MaxPool', f'blocks that divide {self.grid}', f'{self.k} x {self.k}')
    takes = property(lambda self: self.grid)
    gives = property(lambda self: Grid(self.grid.height//self.k, self.grid.width//self.k, self.grid.channels))
    def _blocks(self, x):
        "(B, h, w, C, k k)."
        (h, w, C), k = self.gives.sides, self.k
        return x.reshape(-1, h, k, w, k, C).transpose(0, 1, 3, 5, 2, 4).reshape(-1, h, w, C, k*k)
    def _forward(self, p, x):
        blocks = self._blocks(x)
        at = blocks.argmax(-1)[..., None]
        return np.take_along_axis(blocks, at, -1).reshape(len(x), -1), at
    def _backward(self, p, at, dy, g):
        (h, w, C), k = self.gives.sides, self.k
        d = np.zeros((*at.shape[:-1], k*k), dy.dtype)
        np.put_along_axis(d, at, dy.reshape(at.shape), -1)
        return d.reshape(-1, h, w, C, k, k).transpose(0, 1, 4, 2, 5, 3).reshape(len(dy), -1)


# %% [markdown]
# ## Proved
#
# As for the [other layers](63c_rules.ipynb): the backward code is the derivative of the forward code. The pool is looked at
# twice, since its comparisons may come out in several ways.

# %%
#| export
RULES['convolution'] = Rule(Conv2d._forward, Conv2d._backward, _layer(Conv2d(Grid(3, 2, 2), 2, 2), None), {'x': (1, 12), 'w': (2, 8), 'b': (2,)})
RULES['max pool'] = Rule(MaxPool._forward, MaxPool._backward, _layer(MaxPool(Grid(2, 4, 1)), None), {'x': (1, 8)}, (0, 1))

# %%
for name in ('convolution', 'max pool'):
    c = check(name)
    assert c.verdict == 'confirmed', c
    print(c)


# %% [markdown]
# Forgetting that windows overlap: every pixel gets the derivative of the last window only. Every shape is right.

# %%
class Overwritten(Conv2d):
    def _put_back(self, d):
        (B, H, W, k), out = d.shape[:4], np.zeros((len(d), *self.grid.sides), d.dtype)
        for u in range(k):
            for v in range(k): out[:, u:u + H, v:v + W] = d[:, :, :, u, v]
        return out.reshape(B, -1)

print(wrong := check('convolution', lambda layer, p, saved, dy, g: Conv2d._backward(Overwritten(layer.grid, layer.channels, layer.k), p, saved, dy, g)))
assert wrong.verdict == 'refuted'

# %% [markdown]
# ## A small network
#
# Twice a convolution and a pool, then a linear layer. A picture may be read as a row, so the last layer takes what the pool
# gives; but a row is not read as just any picture.

# %%
from bendml.nn.layer import Seq
from bendml.nn.layers import Linear, ReLU
net = Seq(Conv2d(Grid(28, 28, 1), 8, 5), ReLU(), MaxPool(Grid(24, 24, 8)), Conv2d(Grid(12, 12, 8), 16, 5), ReLU(), MaxPool(Grid(8, 8, 16)), Linear(256, 10))
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
