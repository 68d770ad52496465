# %%
#| default_exp mnist

# %% [markdown]
# # MNIST
# > A network learns to read handwritten digits: the whole of training on one page.

# %% [markdown]
# 60,000 small pictures of digits, each with the digit that its writer meant. A network of two layers sees them once, a
# hundred at a time, and then reads 91 of 100 digits that it has never seen. That is all of deep learning in miniature: a
# function with many numbers in it, a measure of how wrong it is, and the derivative that says how to change the numbers.
#
# This page says it three times: in NumPy, to be read; as plain loops, which fix every rounding; and fast, with the very
# same bits.

# %%
#| hide
#| export
import functools, math, os, sys, time
from pathlib import Path
from typing import Callable, Iterator, NamedTuple

import click
import numpy as np
from numpy import float32

from bendml.data import Mnist, load_mnist
from bendml.tensor import add_row, col_sums, cross_entropy, descend, matmul, matmul_nt, matmul_tn, relu, relu_back
from bendml.threads import caching, set_threads
from numba import njit, prange

# %% [markdown]
# ## The network
#
# A picture is 784 numbers between 0 and 1, the row $x$. The first layer mixes them into 128 sums and keeps the positive
# ones; the second mixes those into ten scores, one a digit:
#
# $$h = \max(0,\; x W_1 + b_1) \qquad z = h W_2 + b_2$$

# %%
#| export
PIXELS, HIDDEN, CLASSES = 784, 128, 10

class Mlp(NamedTuple):
    "The network's parameters, float32."
    w1: np.ndarray  # (784, 128)
    b1: np.ndarray  # (128,)
    w2: np.ndarray  # (128, 10)
    b2: np.ndarray  # (10,)


# %% [markdown]
# The weights start as small random numbers, $w_1$ drawn before $w_2$, each uniform in $\pm 1/\sqrt{\text{inputs}}$. The
# same seed gives the same network anywhere, so that results can be compared digit by digit.

# %%
#| export
def init(
    seed: int = 0,  # of `numpy.random.default_rng`
) -> Mlp:
    "A fresh network: uniform weights, zero biases."
    draw = np.random.default_rng(seed).uniform
    layer = lambda n, m: draw(-1/np.sqrt(n), 1/np.sqrt(n), (n, m)).astype(float32)
    w1, w2 = layer(PIXELS, HIDDEN), layer(HIDDEN, CLASSES)
    return Mlp(w1, np.zeros(HIDDEN, float32), w2, np.zeros(CLASSES, float32))


# %%
#| export
def pixels(
    images: np.ndarray,  # (N, 28, 28) bytes
) -> np.ndarray:         # (N, 784) float32, from 0 to 1
    "Pictures as rows of numbers."
    return images.reshape(len(images), -1)/float32(255)


# %%
#| export
def guess(
    p: Mlp,
    images: np.ndarray,  # (N, 28, 28) bytes
) -> np.ndarray:         # (N,) digits
    "The digit with the highest score, for each picture."
    return (np.maximum(pixels(images) @ p.w1 + p.b1, 0) @ p.w2 + p.b2).argmax(1)


# %% [markdown]
# A network that has learnt nothing is right one time in ten.

# %%
digits = load_mnist()
(guess(init(), digits.test_images) == digits.test_labels).mean()


# %% [markdown]
# ## One step, in NumPy
#
# The softmax turns ten scores into ten probabilities $p_c = e^{z_c}/\sum_k e^{z_k}$, and the loss is $-\log p_y$: how
# surprised the network is by the true digit $y$. Its derivative by the scores is as simple as it could be, $p$ minus one
# at the true digit. From there the chain rule walks back through the two layers, a product with a transposed matrix each,
# and every parameter moves a little against its derivative. `dz` is the derivative of the loss by `z`, and has its shape.

# %%
def numpy_step(p, x, y, lr):
    n = len(x)
    h = np.maximum(x @ p.w1 + p.b1, 0)                           # (n, 128)
    z = h @ p.w2 + p.b2                                          # (n, 10)
    prob = np.exp(z - z.max(axis=1, keepdims=True))
    prob /= prob.sum(axis=1, keepdims=True)
    loss = -np.log(prob[np.arange(n), y]).mean()
    dz = prob
    dz[np.arange(n), y] -= 1
    dz /= n
    dh = (dz @ p.w2.T)*(h > 0)                                   # (n, 128)
    for w, dw in zip(p, (x.T @ dh, dh.sum(0), h.T @ dz, dz.sum(0))): w -= float32(lr)*dw
    return loss


# %%
x, y = pixels(digits.train_images), digits.train_labels
p = init()
losses = [numpy_step(p, x[i:i + 100], y[i:i + 100], 0.1) for i in range(0, 5000, 100)]
print(f'50 steps: loss {np.mean(losses):.4f}, {(guess(p, digits.test_images) == digits.test_labels).sum()} of 10000 right')
assert abs(np.mean(losses) - 1.6616004) < 1e-5

# %% [markdown]
# ## The order of additions
#
# Floating-point addition is not associative: another order of the same sum gives other last digits, and a matrix product
# is free to choose. So "the loss after one epoch" has no last digit, until the order is fixed. Here it is, as plainly as
# possible: every sum from left to right, starting at zero, each product rounded and then each addition. The functions of
# [tensor](46_tensor.ipynb) do that when they are told `'sequential'`, and their loops are proved not to leave their arrays.

# %%
#| export
_matmul, _matmul_nt, _matmul_tn = (functools.partial(f, order='sequential') for f in (matmul, matmul_nt, matmul_tn))

def _sequential_step(x, y, w1, b1, w2, b2, lr):
    "One step of gradient descent on a batch, x (n, 784), y (n,); the parameters change in place. Returns the mean loss."
    h = relu(add_row(_matmul(x, w1), b1))
    loss, dz = cross_entropy(add_row(_matmul(h, w2), b2), y)
    dh = relu_back(_matmul_nt(dz, w2), h)
    descend(w1, _matmul_tn(x, dh), lr)
    descend(b1, col_sums(dh), lr)
    descend(w2, _matmul_tn(h, dz), lr)
    descend(b2, col_sums(dz), lr)
    return loss


# %% [markdown]
# ## Fast, with the same bits
#
# Four pixels of five are blank. Adding $0 \cdot w$ to a sum changes nothing, not even a rounding, so the blank pixels can
# be left out, in both products with the pictures: that is the one idea of the fast path. Each batch is written as two
# lists of non-zero pixels, picture by picture for the way forward and pixel by pixel for the way back.

# %%
#| export
class Sparse(NamedTuple):
    "The non-zero entries of a matrix, row after row: row i has those from `start[i]` to `start[i + 1]`."
    start: np.ndarray  # (rows + 1,) int32
    index: np.ndarray  # (entries,) int32, the column
    value: np.ndarray  # (entries,) float32


# %%
#| export
@njit(cache=caching())
def _nonzeros(x, start, index, value):
    k = 0
    for i in range(x.shape[0]):
        start[i] = k
        for j in range(x.shape[1]):
            index[k] = j
            value[k] = float32(x[i, j])/float32(255)
            k += x[i, j] != 0
    start[x.shape[0]] = k
    return k

def sparse(
    x: np.ndarray,  # (rows, columns) bytes
) -> Sparse:
    "The non-zero bytes of a matrix, divided by 255."
    start, index, value = np.empty(len(x) + 1, np.int32), np.empty(x.size + 1, np.int32), np.empty(x.size + 1, float32)
    k = _nonzeros(x, start, index, value)
    return Sparse(start, index[:k].copy(), value[:k].copy())


# %%
s = sparse(np.array([[0, 255, 0], [0, 0, 0], [51, 0, 255]], np.uint8))
assert s.start.tolist() == [0, 1, 1, 3] and s.index.tolist() == [1, 0, 2]
s


# %% [markdown]
# The small loops between the products, a picture at a time:

# %%
#| export
@njit(cache=caching())
def _hidden(h, b1):
    "One row of the hidden layer, in place: add the bias, keep what is positive."
    for j in range(HIDDEN):
        v = h[j] + b1[j]
        h[j] = v if v > 0 else float32(0)


# %%
#| export
@njit(cache=caching())
def _cross_entropy(z, b2, label, n, dz):
    "One row: the loss -log(softmax(z + b2)[label]), and `dz`, its derivative in a batch of n rows."
    for c in range(CLASSES): z[c] += b2[c]
    top, total = z[0], float32(0)
    for c in range(1, CLASSES): top = max(top, z[c])
    for c in range(CLASSES):
        dz[c] = math.exp(z[c] - top)
        total += dz[c]
    for c in range(CLASSES): dz[c] /= total
    loss = -math.log(dz[label])
    dz[label] -= float32(1)
    for c in range(CLASSES): dz[c] /= float32(n)
    return loss


# %%
#| export
@njit(cache=caching())
def _descend(w, dw, lr):
    "w -= lr*dw, in place."
    for i in range(w.shape[0]):
        for j in range(w.shape[1]): w[i, j] -= lr*dw[i, j]

@njit(cache=caching())
def _descend_bias(b, d, lr):
    "b -= lr*(the sum of d's rows), in place."
    for j in range(b.shape[0]):
        total = float32(0)
        for i in range(d.shape[0]): total += d[i, j]
        b[j] -= lr*total


# %% [markdown]
# One loop does the work of both products: a row of 128 sums takes in row after row of a matrix, each times a number. Four
# rows at a time, so that the sums travel to memory and back once instead of four times; still strictly from left to right.

# %%
#| export
@njit(cache=caching())
def _accumulate(sums, start, end, index, value, rows):
    "sums[j] += value[k]*rows[index[k], j] for k from start to end, in this order."
    four = start + (end - start)//4*4
    for k in range(start, four, 4):
        a, b, c, d = value[k], value[k + 1], value[k + 2], value[k + 3]
        p, q, r, s = rows[index[k]], rows[index[k + 1]], rows[index[k + 2]], rows[index[k + 3]]
        for j in range(HIDDEN): sums[j] = (((sums[j] + a*p[j]) + b*q[j]) + c*r[j]) + d*s[j]
    for k in range(four, end):
        a, p = value[k], rows[index[k]]
        for j in range(HIDDEN): sums[j] += a*p[j]


# %%
#| export
@njit(cache=caching())
def _picture(h, z, dz, dh, label, n, b1, w2, w2t, b2):
    "One picture from its 128 sums to the loss, and the derivative's way back to them."
    _hidden(h, b1)
    for c in range(CLASSES): z[c] = 0
    for j in range(HIDDEN):
        a = h[j]
        if a != 0:
            for c in range(CLASSES): z[c] += a*w2[j, c]
    loss = _cross_entropy(z, b2, label, n, dz)
    for j in range(HIDDEN): dh[j] = 0
    for c in range(CLASSES):
        for j in range(HIDDEN): dh[j] += dz[c]*w2t[c, j]
    for j in range(HIDDEN):
        if not h[j] > 0: dh[j] = 0
    return loss


# %% [markdown]
# Pictures are independent of each other on the way forward, and the 784 rows of $W_1$ on the way back; both are shared out
# to the threads. Since each number is computed by one thread, in the one order, the bits do not depend on how many there are.

# %%
#| export
@njit(cache=caching(), parallel=True)
def _fast_step(by_picture, by_pixel, y, w1, b1, w2, b2, lr):
    "The same step as `_sequential_step`, bit for bit, from the non-zero pixels of a batch."
    n, w2t = len(y), w2.T.copy()
    h, dh = np.empty((n, HIDDEN), float32), np.empty((n, HIDDEN), float32)
    z, dz, losses = np.empty((n, CLASSES), float32), np.empty((n, CLASSES), float32), np.empty(n, float32)
    for i in prange(n):
        for j in range(HIDDEN): h[i, j] = 0
        _accumulate(h[i], by_picture.start[i], by_picture.start[i + 1], by_picture.index, by_picture.value, w1)
        losses[i] = _picture(h[i], z[i], dz[i], dh[i], y[i], n, b1, w2, w2t, b2)
    for row in prange(28):
        sums = np.empty(HIDDEN, float32)
        for p in range(28*row, 28*row + 28):
            for j in range(HIDDEN): sums[j] = 0
            _accumulate(sums, by_pixel.start[p], by_pixel.start[p + 1], by_pixel.index, by_pixel.value, dh)
            for j in range(HIDDEN): w1[p, j] -= lr*sums[j]
    _descend_second(w2, b1, b2, h, dz, dh, lr)
    loss = float32(0)
    for i in range(n): loss += losses[i]
    return loss*(float32(1)/float32(n))


# %%
#| export
@njit(cache=caching())
def _descend_second(w2, b1, b2, h, dz, dh, lr):
    "Move the second layer and the biases; its gradient is held transposed, so that the long axis is the inner one."
    dw2t = np.zeros((CLASSES, HIDDEN), float32)
    for i in range(len(h)):
        for c in range(CLASSES):
            for j in range(HIDDEN): dw2t[c, j] += h[i, j]*dz[i, c]
    _descend(w2, dw2t.T, lr)
    _descend_bias(b1, dh, lr)
    _descend_bias(b2, dz, lr)


# %% [markdown]
# ## Training
#
# A step function takes the number of the batch; making it prepares whatever that order of computing needs.

# %%
#| export
def sequential_steps(p: Mlp, images: np.ndarray, labels: np.ndarray, batch: int, lr: float) -> Callable[[int], float32]:
    "Steps in plain loops, each sum from left to right."
    lr = float32(lr)
    def step(i):
        part = slice(i*batch, (i + 1)*batch)
        return _sequential_step(pixels(images[part]), labels[part], *p, lr)
    return step

def fast_steps(p: Mlp, images: np.ndarray, labels: np.ndarray, batch: int, lr: float) -> Callable[[int], float32]:
    "Steps that leave out the blank pixels, on all threads; the same bits."
    lr, flat = float32(lr), images.reshape(len(images), -1)
    batches = []
    for i in range(0, len(flat), batch):
        x = flat[i:i + batch]
        batches.append((sparse(x), sparse(np.ascontiguousarray(x.T)), labels[i:i + batch]))
    return lambda i: _fast_step(*batches[i], *p, lr)


# %%
#| export
ORDERS = {'fast': fast_steps, 'sequential': sequential_steps}

class Epoch(NamedTuple):
    "What one pass over the pictures gave."
    loss: float32    # the mean of the batches' losses, as they were seen
    hits: int        # test pictures that are read rightly afterwards
    seconds: float   # of training alone
    losses: list     # each batch's loss


# %%
#| export
def train(
    p: Mlp,                    # changes in place
    data: Mnist,
    epochs: int = 1,
    steps: int | None = None,  # stop each epoch after so many batches
    order: str = 'fast',       # a key of `ORDERS`
    batch: int = 100,          # pictures a step, in file order
    lr: float = 0.1,           # how far to move against the gradient
    progress: bool = False,    # show a bar
) -> Iterator[Epoch]:
    "Train by gradient descent; one `Epoch` after each pass. `FloatingPointError` if the loss is no longer a number."
    from tqdm import tqdm
    make = ORDERS[order]
    make(Mlp(*map(np.copy, p)), data.train_images[:batch], data.train_labels[:batch], batch, lr)(0)  # compiles, before the clock starts
    step = make(p, data.train_images, data.train_labels, batch, lr)
    count = min(-(-len(data.train_labels)//batch), steps or sys.maxsize)
    for e in range(epochs):
        losses, total, begin = [], float32(0), time.perf_counter()
        for i in tqdm(range(count), f'epoch {e + 1}', leave=False, unit=' steps', disable=None if progress else True):
            losses.append(float32(step(i)))
            total += losses[-1]
        seconds = time.perf_counter() - begin
        if not np.isfinite(total):
            at = int(np.flatnonzero(~np.isfinite(losses))[0])
            raise FloatingPointError(f'the loss is {losses[at]} at step {at + 1} of epoch {e + 1}: try a smaller learning rate than {lr}')
        hits = int((guess(p, data.test_images) == data.test_labels).sum())
        yield Epoch(total/float32(count), hits, seconds, losses)


# %% [markdown]
# Fifty steps, which gave the source system 1.6616004 and 7829:

# %%
for order in ORDERS:
    e, = train(init(), digits, steps=50, order=order)
    print(f'{order:10}  loss {e.loss!s}  hits {e.hits}/10000')
    assert (str(e.loss), e.hits) == ('1.6616004', 7829)

# %% [markdown]
# And the two orders are the same, bit for bit, in every one of the 101,770 numbers:

# %%
slow, fast = init(), init()
for p, order in ((slow, 'sequential'), (fast, 'fast')): list(train(p, digits, steps=20, order=order))
assert all(np.array_equal(a, b) for a, b in zip(slow, fast))

# %% [markdown]
# ## A whole epoch

# %%
p = init()
e, = train(p, digits)
print(f'loss {e.loss!s}  hits {e.hits}/10000')
assert (str(e.loss), e.hits) == ('0.5204771', 9129)


# %%
#| export
def picture(p: Mlp, data: Mnist, losses: list, path: str | os.PathLike) -> None:
    "Draw the loss of each step, and the first test pictures with the network's guesses; wrong ones in red."
    from matplotlib.figure import Figure
    fig = Figure(figsize=(9, 3.2), layout='constrained')
    curve, shown = fig.subfigures(1, 2, width_ratios=(1.1, 1))
    ax = curve.subplots()
    ax.plot(losses, lw=.7)
    ax.set(xlabel='step', ylabel='loss', ylim=(0, None))
    for ax, image, label, seen in zip(shown.subplots(3, 6).flat, data.test_images, data.test_labels, guess(p, data.test_images[:18])):
        ax.imshow(image, cmap='gray_r')
        ax.set_title(str(seen), color='black' if seen == label else 'red', fontsize=9)
        ax.axis('off')
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    fig.savefig(path, dpi=110)


# %%
#| echo: false
import tempfile
from IPython.display import Image
with tempfile.TemporaryDirectory() as folder:
    picture(p, digits, e.losses, f'{folder}/mnist.png')
    shown = Image(f'{folder}/mnist.png', embed=True)
shown


# %% [markdown]
# ## On the command line
#
# `bendml mnist` is this page as a command.

# %%
#| export
@click.command()
@click.option('--epochs', type=click.IntRange(1), default=1, show_default=True, help='Passes over the 60,000 pictures.')
@click.option('--steps', type=click.IntRange(1), help='Stop each epoch after so many steps.')
@click.option('--order', type=click.Choice(list(ORDERS)), default='fast', show_default=True, help='How to add up; both give the same bits.')
@click.option('--seed', type=click.IntRange(0), default=0, show_default=True, help='Of the first weights.')
@click.option('--batch', type=click.IntRange(1, 60_000), default=100, show_default=True, help='Pictures a step.')
@click.option('--lr', type=click.FloatRange(0, min_open=True), default=0.1, show_default=True, help='Learning rate.')
@click.option('--threads', type=click.IntRange(1), help='Default: one a core.')
@click.option('--out', type=click.Path(file_okay=False), default='.', show_default=True, help='Folder for mnist.png.')
def command(epochs, steps, order, seed, batch, lr, threads, out):
    "Train a network to read handwritten digits."
    drawing = Path(out)/'mnist.png'
    try:
        if threads: set_threads(threads)
        data, p, losses = load_mnist(), init(seed), []
        click.echo(f'{len(data.train_labels)} pictures to learn from; the loss curve goes to {drawing}')
        for n, e in enumerate(train(p, data, epochs, steps, order, batch, lr, progress=True), 1):
            click.echo(f'epoch {n}  loss {e.loss!s}  hits {e.hits}/10000  {e.seconds:.1f} s')
            losses += e.losses
    except (FloatingPointError, ValueError, OSError) as error: raise click.ClickException(str(error))
    picture(p, data, losses, drawing)

# %% [markdown]
# ## What this does not show
#
# - The digits hold for this order of additions and for the exponential and logarithm of the machine's C library; another
#   library may round them differently in the last bit, and after an epoch that is visible in the seventh digit of the loss.
# - Leaving out zeros is the same bits only while every number is finite: $0 \cdot \infty$ is not a number, and the plain
#   loops would say so earlier.
# - 91 of 100 is a beginner's result. Trained for longer, this network reaches 98; a small convolution network passes 99.
