# %%
#| default_exp onestep

# %% [markdown]
# # A step in one piece
# > The two layers that read digits, their loss and plain descent as two compiled loops, with the bits of the layers.

# %% [markdown]
# [Layers](63_layer.ipynb) hand arrays to each other, and an [optimizer](68_optim.ipynb) gets all gradients as arrays. For a large
# network that costs nothing. A step of the network on [MNIST](70_mnist.ipynb) takes half a millisecond through the layers, and nearly
# half of that goes into handing over: a dozen small arrays, and a gradient of 400 KB that is written, read, and set to zero again.
#
# So here is that step without arrays in between. It is the same arithmetic: the layers are what it means, and the page about MNIST
# compares the two bit by bit. There are two loops, since the loss must be known to be a number before any parameter moves.

# %%
#| hide
#| export
import math

import numpy as np
from numpy import float32

from bendml.kernel import Buf, Size, f32, i32, i64, kernel, prange, requires
from bendml.simd import load, splat, store
from bendml.tensor.rows import cross_entropy_row
from bendml.tensor.nonzeros import Sparse, take_rows
from bendml.train import TrainError


# %% [markdown]
# ## A picture on the way forward
#
# From the non-zero pixels of picture $i$ to its 128 sums, their positive parts $h$, and ten scores. Ten sums of 128 products each would
# be added up one after the other; side by side they fit into two [registers](04_simd.ipynb), if $W_2^\top$ has rows of 16, six of them
# empty.

# %%
#| export
@kernel
def hidden(i: Size, n: Size, start: Buf["n + 1", i32, "0 <= start <= entries"], entries: Size, index: Buf["entries", i32, "0 <= index < 784"], value: Buf["entries", f32],
           w: Buf["784*128", f32], b: Buf["128", f32], h: Buf["n*128", f32]):
    "h[i] = max(0, x[i] w + b)."
    requires(i < n, n < 2**30)
    assert i*128 + 128 <= n*128
    for j in range(0, 128, 8): store(h, i*128 + j, splat(f32(0)))
    take_rows(i64(start[i]), i64(start[i + 1]), entries, index, value, 784, 128, w, h, i*128)
    for j in range(0, 128, 8): store(h, i*128 + j, load(h, i*128 + j) + load(b, j))
    for j in range(i*128, i*128 + 128): h[j] = f32(0) if h[j] < 0 else h[j]

@kernel
def scores(i: Size, n: Size, h: Buf["n*128", f32], turned: Buf["128*16", f32], b: Buf["10", f32], z: Buf["n*16", f32]):
    "z[i] = h[i] w^T + b; w^T (128, 10) in rows of 16."
    requires(i < n, n < 2**30)
    assert i*128 + 128 <= n*128
    assert i*16 + 16 <= n*16
    s0, s1 = splat(f32(0)), splat(f32(0))
    for j in range(128):
        x = splat(h[i*128 + j])
        s0, s1 = s0 + x*load(turned, j*16), s1 + x*load(turned, j*16 + 8)
    store(z, i*16, s0)
    store(z, i*16 + 8, s1)
    for c in range(10): z[i*16 + c] += b[c]


# %% [markdown]
# ## And back
#
# The derivative by $h$, which passes where $h$ is positive.

# %%
#| export
@kernel
def hidden_back(i: Size, n: Size, dz: Buf["n*16", f32], w: Buf["10*128", f32], h: Buf["n*128", f32], dh: Buf["n*128", f32]):
    "dh[i] = dz[i] w where h[i] > 0."
    requires(i < n, n < 2**30)
    assert i*128 + 128 <= n*128
    assert i*16 + 16 <= n*16
    for j in range(0, 128, 8):
        s = splat(f32(0))
        for c in range(10): s = s + splat(dz[i*16 + c])*load(w, c*128 + j)
        store(dh, i*128 + j, s)
    for j in range(i*128, i*128 + 128): dh[j] = f32(0) if h[j] <= 0 else dh[j]


# %% [markdown]
# Pictures are shared out to the threads. The losses are added up afterwards, in order.

# %%
#| export
@kernel
def to_loss(start: Buf["n + 1", i32, "0 <= start <= entries"], entries: Size, index: Buf["entries", i32, "0 <= index < 784"], value: Buf["entries", f32],
            labels: Buf["n", i64, "0 <= labels < 10"], n: Size, w1: Buf["784*128", f32], b1: Buf["128", f32], w2: Buf["10*128", f32], b2: Buf["10", f32],
            turned: Buf["128*16", f32], h: Buf["n*128", f32], dh: Buf["n*128", f32], z: Buf["n*16", f32], dz: Buf["n*16", f32], losses: Buf["n", f32]):
    "The mean loss; h, and the derivatives by z and h, for each of n pictures."
    requires(n < 2**30)
    for j in range(128):
        for c in range(10): turned[j*16 + c] = w2[c*128 + j]
    for i in prange(n):
        hidden(i, n, start, entries, index, value, w1, b1, h)
        scores(i, n, h, turned, b2, z)
        losses[i] = cross_entropy_row(z, i*16, 10, labels[i], n, dz)
        hidden_back(i, n, dz, w2, h, dh)
    total = f32(0)
    for i in range(n): total += losses[i]
    return total*(f32(1)/f32(n))


# %% [markdown]
# ## Downhill
#
# A row of $W_1$ moves as soon as its gradient is known, in the list of its pixel; where all pictures are blank, nothing is read. Rows
# are shared out in bands of 28.

# %%
#| export
@kernel
def descend_pixels(start: Buf["785", i32, "0 <= start <= entries"], entries: Size, index: Buf["entries", i32, "0 <= index < n"], value: Buf["entries", f32],
                   n: Size, dh: Buf["n*128", f32], lr: f32, w: Buf["784*128", f32]):
    "w -= lr x^T dh."
    requires(n < 2**30)
    for band in prange(28):
        sums = np.zeros(128, f32)
        for p in range(28*band, 28*band + 28):
            if i64(start[p]) < i64(start[p + 1]):
                for j in range(0, 128, 8): store(sums, j, splat(f32(0)))
                take_rows(i64(start[p]), i64(start[p + 1]), entries, index, value, n, 128, dh, sums, 0)
                for j in range(0, 128, 8): store(w, p*128 + j, load(w, p*128 + j) - splat(lr)*load(sums, j))

@kernel
def descend_rest(n: Size, h: Buf["n*128", f32], dh: Buf["n*128", f32], dz: Buf["n*16", f32], lr: f32, b1: Buf["128", f32], w2: Buf["10*128", f32], b2: Buf["10", f32]):
    "b1 -= lr sum dh, w2 -= lr dz^T h, b2 -= lr sum dz."
    requires(n < 2**30)
    sums = np.zeros(12*128, f32)
    for i in range(n):
        assert i*128 + 128 <= n*128
        assert i*16 + 16 <= n*16
        for j in range(128): sums[j] += dh[i*128 + j]
        for c in range(10):
            d = dz[i*16 + c]
            sums[128 + c] += d
            for j in range(128): sums[(c + 2)*128 + j] += d*h[i*128 + j]
    for j in range(128): b1[j] -= lr*sums[j]
    for c in range(10): b2[c] -= lr*sums[128 + c]
    for j in range(1280): w2[j] -= lr*sums[256 + j]


# %% [markdown]
# ## The step

# %%
#| export
def descend(
    by_picture: Sparse,  # (n, 784)
    by_pixel: Sparse,    # the same, (784, n)
    labels: np.ndarray,  # (n,) int64
    p: tuple,            # (W1 (784, 128), b1), (), (W2 (10, 128), b2); changes in place
    lr: float,
    at: int = 1,         # the step's number, for the message
) -> float:
    "One step of gradient descent on a batch, and its mean loss before; `TrainError` if that is no number, and then nothing has moved."
    n, ((w1, b1), _, (w2, b2)) = len(labels), p
    h, dh, z, dz = (np.empty(n*m, float32) for m in (128, 128, 16, 16))
    u1, u2, count = w1.reshape(-1), w2.reshape(-1), len(by_picture.index)
    loss = to_loss(by_picture.start, count, by_picture.index, by_picture.value, labels, n, u1, b1, u2, b2, np.zeros(2048, float32), h, dh, z, dz, np.empty(n, float32))
    if not math.isfinite(loss): raise TrainError(f'the loss is {loss} at step {at}\nhint: try a smaller learning rate, or clip the gradient (longest=1.)')
    descend_pixels(by_pixel.start, count, by_pixel.index, by_pixel.value, n, dh, float32(lr), u1)
    descend_rest(n, h, dh, dz, float32(lr), b1, u2, b2)
    return float(loss)


# %% [markdown]
# A batch of a hundred pictures, again and again; NumPy's own formulas for one step are on the page about
# [MNIST](70_mnist.ipynb), and so is the comparison with the layers.

# %%
from bendml.tensor.nonzeros import sparse
rng = np.random.default_rng(0)
x = (rng.integers(0, 256, (100, 784))*(rng.random((100, 784)) < .2)).astype(np.uint8)
labels = rng.integers(0, 10, 100)
p = ((.05*rng.standard_normal((784, 128), float32), np.zeros(128, float32)), (), (.1*rng.standard_normal((10, 128), float32), np.zeros(10, float32)))
lists = sparse(x), sparse(np.ascontiguousarray(x.T))
losses = [descend(*lists, labels, p, .1) for _ in range(50)]
assert losses[-1] < .5*losses[0]
print(f'loss {losses[0]:.3f}, after 50 steps {losses[-1]:.3f}')

# %% [markdown]
# A label that there is not would be a score of another picture. It is refused before anything is read; a loss that is no number,
# before anything has moved:

# %%
from bendml.kernel import KernelError
try: descend(*lists, labels + 1, p, .1)
except KernelError as e: print(e, '\n')

p[0][1][0] = np.inf
p[2][0][:, 0] = [np.nan, *[0]*9]
moved = p[2][0].copy()
try: descend(*lists, labels, p, .1)
except TrainError as e: print(e)
assert np.array_equal(moved, p[2][0], equal_nan=True)

# %% [markdown]
# ## What this does not show
#
# - That the result is that of the layers for every input: the proofs above say that no loop leaves its arrays. That no bit differs is
#   tested, over whole epochs.
# - Another network, or another optimizer. They go through the layers.
