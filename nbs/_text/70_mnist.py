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
# This page says it twice: in NumPy, to be read; and from [layers](63_layer.ipynb), an [optimizer](68_optim.ipynb) and the
# [training loop](69_train.ipynb), where every rounding is fixed, and where it is fast because blank pixels cost nothing. The usual
# case, plain descent in one process, is compiled [in one piece](69b_onestep.ipynb), with the same bits.

# %%
#| hide
#| export
import functools, math, operator, os, sys, time, zlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Callable, Iterator, NamedTuple

import click
import numpy as np
from numpy import float32

from bendml import train as training
from bendml.data import Mnist, load_mnist
from bendml.nn.conv import Conv2d, Conv2dFirst, MaxPool
from bendml.nn.layer import Grid, Layer, Seq, accumulate, leaves
from bendml.nn.layers import Linear, ReLU
from bendml.onestep import descend
from bendml.optim import SGD, AdamW, Optimizer, warmup_cosine
from bendml.processes import Alone, together
from bendml.tensor import col_sums, cross_entropy, matmul, matmul_tn, sparse, sparse_matmul
from bendml.threads import get_threads, set_threads

# %% [markdown]
# ## The network
#
# A picture is 784 numbers between 0 and 1, the row $x$. The first layer mixes them into 128 sums and keeps the positive
# ones; the second mixes those into ten scores, one a digit:
#
# $$h = \max(0,\; x W_1 + b_1) \qquad z = h W_2^\top + b_2$$
#
# The weights start as small random numbers, $W_1$ drawn before $W_2$, each uniform in $\pm 1/\sqrt{\text{inputs}}$. The
# same seed gives the same network anywhere, so that results can be compared digit by digit.

# %%
#| export
PIXELS, HIDDEN, CLASSES = 784, 128, 10

def init(
    seed: int = 0,  # of `numpy.random.default_rng`
) -> tuple:         # (W1 (784, 128), b1 (128,)), (), (W2 (10, 128), b2 (10,))
    "A fresh network: uniform weights, zero biases."
    draw = np.random.default_rng(seed).uniform
    weights = lambda n, m: draw(-1/np.sqrt(n), 1/np.sqrt(n), (n, m)).astype(float32)
    w1, w2 = weights(PIXELS, HIDDEN), weights(HIDDEN, CLASSES).T.copy()
    return (w1, np.zeros(HIDDEN, float32)), (), (w2, np.zeros(CLASSES, float32))

def pixels(
    images: np.ndarray,  # (N, 28, 28) bytes
) -> np.ndarray:         # (N, 784) float32, from 0 to 1
    "Pictures as rows of numbers."
    return images.reshape(len(images), -1)/float32(255)


# %% [markdown]
# ## One step, in NumPy
#
# The softmax turns ten scores into ten probabilities $p_c = e^{z_c}/\sum_k e^{z_k}$, and the loss is $-\log p_y$: how
# surprised the network is by the true digit $y$. Its derivative by the scores is as simple as it could be, $p$ minus one
# at the true digit. From there the chain rule walks back through the two layers, a product with a transposed matrix each,
# and every parameter moves a little against its derivative. `dz` is the derivative of the loss by `z`, and has its shape.

# %%
def numpy_step(p, x, y, lr):
    n, ((w1, b1), _, (w2, b2)) = len(x), p
    h = np.maximum(x @ w1 + b1, 0)                               # (n, 128)
    z = h @ w2.T + b2                                            # (n, 10)
    prob = np.exp(z - z.max(axis=1, keepdims=True))
    prob /= prob.sum(axis=1, keepdims=True)
    loss = -np.log(prob[np.arange(n), y]).mean()
    dz = prob
    dz[np.arange(n), y] -= 1
    dz /= n
    dh = (dz @ w2)*(h > 0)                                       # (n, 128)
    for w, dw in ((w1, x.T @ dh), (b1, dh.sum(0)), (w2, dz.T @ h), (b2, dz.sum(0))): w -= float32(lr)*dw
    return loss


# %%
digits = load_mnist()
x, y = pixels(digits.train_images), digits.train_labels
p = init()
losses = [numpy_step(p, x[i:i + 100], y[i:i + 100], 0.1) for i in range(0, 5000, 100)]
print(f'50 steps: loss {np.mean(losses):.4f}')
assert abs(np.mean(losses) - 1.6616004) < 1e-5


# %% [markdown]
# ## The order of additions
#
# Floating-point addition is not associative: another order of the same sum gives other last digits, and a matrix product
# is free to choose. So "the loss after one epoch" has no last digit, until the order is fixed. Here it is, as plainly as
# possible: every sum from left to right, starting at zero, each product rounded and then each addition.
#
# Four pixels of five are blank. Adding $0 \cdot w$ to a sum changes nothing, not even a rounding, so the blank pixels can
# be [left out](44b_sparse.ipynb), in both products with the pictures. Each batch is written as two lists of non-zero pixels,
# picture by picture for the way forward and pixel by pixel for the way back. Pictures are independent of each other on the way
# forward, and the 784 rows of $W_1$ on the way back, so both are shared out to the threads, and the bits do not depend on how many
# there are.

# %% [markdown]
# ## The first layer
#
# A batch of pictures in this form is still a matrix of type `Mat<B, 784>`, only stored in another way. The first layer takes
# both forms, and gives the same bits for both. It keeps $W_1$ as 784 rows, one a pixel, since those are what is added up.

# %%
#| export
class Pictures:
    "A batch of pictures, (n, 784), as lists of its non-zero pixels, made when they are first needed."
    type = PIXELS
    def __init__(self, images: np.ndarray): self.images, self.parts = images.reshape(len(images), -1), {}
    def __len__(self): return len(self.images)
    shape = property(lambda self: self.images.shape)
    by_picture = functools.cached_property(lambda self: sparse(self.images))
    by_pixel = functools.cached_property(lambda self: sparse(np.ascontiguousarray(self.images.T)))
    def part(self, i: int, n: int) -> 'Pictures':
        "Part i of n."
        if (i, n) not in self.parts: self.parts[i, n] = Pictures(training.part(self.images, i, n))
        return self.parts[i, n]

@dataclass(frozen=True)
class Pixels(Layer):
    "y = x W + b for pictures, W (784, 128); nobody needs the derivative by a picture, and it is zero."
    takes, gives = PIXELS, HIDDEN
    def shapes(self): return {'w': (PIXELS, HIDDEN), 'b': (HIDDEN,)}
    def _forward(self, p, x):
        y = sparse_matmul(x.by_picture, p[0]) if isinstance(x, Pictures) else matmul(x, p[0], order='sequential')
        y += p[1]
        return y, x
    def _backward(self, p, x, dy, g):
        if isinstance(x, Pictures): sparse_matmul(x.by_pixel, dy, out=g[0], add=True)
        else: accumulate(g[0], matmul_tn(x, dy, order='sequential'), 'W')
        accumulate(g[1], col_sums(dy), 'b')
        return np.broadcast_to(float32(0), x.shape)

MLP = Seq(Pixels(), ReLU(), Linear(HIDDEN, CLASSES, order='sequential'))

# %%
a, b = (MLP.forward(init(), form)[0] for form in (Pictures(digits.test_images[:50]), pixels(digits.test_images[:50])))
assert np.array_equal(a, b)
MLP, MLP.count

# %% [markdown]
# A network whose layers do not fit is refused as it is put together:

# %%
from bendml.nn.layer import LayerError
try: Seq(Pixels(), ReLU(), Linear(64, 10))
except LayerError as e: print(e)


# %% [markdown]
# ## Training
#
# Where a step can be made in one piece, it is; a batch in parts, several processes, a clipped gradient or another optimizer go
# through the layers.

# %%
#| export
def step(model: Layer, loss: Callable, rule: Optimizer, run: training.Run, g: tuple, batch: training.Batch, micro: int = 1, longest: float = math.inf, world: Alone = Alone()) -> tuple:
    "A step of the training loop: in one piece where there is one, else through the layers."
    plain = rule == SGD(lr=rule.lr) and loss is cross_entropy
    if model is not MLP or not plain or micro*world.size > 1 or longest < math.inf: return training.step(model, loss, rule, run, g, batch, micro, longest, world)
    x, labels = batch(run.rng, run.steps)
    if not isinstance(x, Pictures): return training.step(model, loss, rule, run, g, lambda *_: (x, labels))
    value = descend(x.by_picture, x.by_pixel, labels, run.parameters, rule.rate(run.steps), run.steps + 1)
    return replace(run, optimizer=replace(run.optimizer, steps=run.steps + 1)), value


# %%
#| export
ORDERS = {'fast': Pictures, 'sequential': pixels}   # the form of a batch, for `MLP`

def batches(data: Mnist, size: int, form: Callable, count: int) -> training.Batch:
    "The first `count` batches in file order, again and again; lists of pixels are kept."
    labels = data.train_labels.astype(np.int64)
    def at(i: int):
        here = slice(i*size, (i + 1)*size)
        return form(data.train_images[here]), labels[here]
    kept = functools.cache(at) if form is Pictures else at
    return lambda rng, step: kept(step % count)

def list_pixels(batch: training.Batch, count: int, world: Alone) -> None:
    "Make the lists that training will need, before a clock starts."
    for i in range(count):
        x = batch(None, i)[0]
        if isinstance(x, Pictures) and len(x) % world.size == 0:
            own = training.part(x, world.rank, world.size)
            own.by_picture, own.by_pixel

def guess(
    p: tuple,            # parameters
    images: np.ndarray,  # (N, 28, 28) bytes
    network: Layer = MLP,
) -> np.ndarray:         # (N,) digits
    "The digit with the highest score, for each picture."
    form = Pictures if network is MLP else pixels
    return np.concatenate([network.forward(p, form(images[i:i + 500]))[0].argmax(1) for i in range(0, len(images), 500)])


# %% [markdown]
# Ten steps, in one piece and through the layers. Not a bit differs, in any parameter:

# %%
def ten(one):
    p, rule = init(), SGD(lr=.1)
    run = training.train(MLP, batches(digits, 100, Pictures, 10), rule, 10, cross_entropy, training.Run(p, rule.start(MLP), None), progress=False, one=one)
    return MLP.dump(run.parameters)

assert np.array_equal(ten(step), ten(training.step))


# %%
#| export
class Epoch(NamedTuple):
    "What one pass over the pictures gave."
    number: int      # from 1
    loss: float32    # the mean of the batches' losses, as they were seen
    hits: int        # test pictures that are read rightly afterwards
    seconds: float   # of training alone
    losses: list     # each batch's loss


# %%
#| export
def train(
    p: tuple,                  # changes in place
    data: Mnist,
    epochs: int = 1,
    steps: int | None = None,  # stop each epoch after so many batches
    order: str = 'fast',       # a key of `ORDERS`
    batch: int = 100,          # pictures a step, in file order
    network: Layer = MLP,
    rule: Optimizer = SGD(lr=.1),
    world: Alone = Alone(),    # processes that share out each batch
    checkpoint: str | os.PathLike | None = None,   # continue from this file if it is there; the losses stand beside it
    progress: bool = False,    # show a bar
    **options: Any,            # for the training loop
) -> Iterator[Epoch]:
    "Train by gradient descent; one `Epoch` after each pass. `TrainError` if the loss is no longer a number."
    count = steps_of(data, batch, steps)
    source = batches(data, batch, ORDERS[order] if network is MLP else pixels, count)
    list_pixels(source, count, world)
    run, log = training.Run(p, rule.start(network), np.random.default_rng(0)), checkpoint and f'{checkpoint}.log'
    step(network, cross_entropy, rule, replace(run, parameters=network.load(network.dump(p))), network.zeros(), source)   # compiles
    options |= dict(progress=progress, checkpoint=checkpoint, log=log, world=world, data=name(data, batch, count))
    for e in range(epochs):
        losses, begin = [], time.perf_counter()
        run = training.train(network, source, rule, (e + 1)*count, cross_entropy, run, after=lambda run, loss: losses.append(float32(loss)), one=step, **options)
        seconds = time.perf_counter() - begin
        for w, v in zip(leaves(p), leaves(run.parameters)): w[...] = v   # where they came from a file
        if run.steps > (e + 1)*count: continue   # a run that is continued was beyond this epoch
        if log: losses = [float32(line['loss']) for line in training.read_log(log)[e*count:(e + 1)*count]]
        hits = int((guess(run.parameters, data.test_images, network) == data.test_labels).sum())
        yield Epoch(e + 1, functools.reduce(operator.add, losses, float32(0))/float32(count), hits, seconds, losses)


# %%
#| export
def steps_of(data: Mnist, batch: int, steps: int | None) -> int:
    "How many steps an epoch has."
    return min(-(-len(data.train_labels)//batch), steps or sys.maxsize)

def name(data: Mnist, batch: int, count: int) -> str:
    "A name for the batches, by which a checkpoint knows them again."
    return f'{count} batches of {batch} from {zlib.crc32(data.train_labels, zlib.crc32(data.train_images)):08x}'


# %% [markdown]
# Fifty steps, which gave the source system 1.6616004 and 7829:

# %%
for order in ORDERS:
    e, = train(init(), digits, steps=50, order=order)
    print(f'{order:10}  loss {e.loss!s}  hits {e.hits}/10000')
    assert (str(e.loss), e.hits) == ('1.6616004', 7829)

# %% [markdown]
# And the two forms are the same, bit for bit, in every one of the 101,770 numbers:

# %%
slow, fast = init(), init()
for p, order in ((slow, 'sequential'), (fast, 'fast')): list(train(p, digits, steps=20, order=order, progress=False))
assert np.array_equal(MLP.dump(slow), MLP.dump(fast))

# %% [markdown]
# ## A whole epoch

# %%
p = init()
e, = train(p, digits)
print(f'loss {e.loss!s}  hits {e.hits}/10000')
assert (str(e.loss), e.hits) == ('0.5204771', 9129)


# %%
#| export
def picture(p: tuple, data: Mnist, losses: list, path: str | os.PathLike, network: Layer = MLP) -> None:
    "Draw the loss of each step, and the first test pictures with the network's guesses; wrong ones in red."
    from matplotlib.figure import Figure
    fig = Figure(figsize=(9, 3.2), layout='constrained')
    curve, shown = fig.subfigures(1, 2, width_ratios=(1.1, 1))
    ax = curve.subplots()
    ax.plot(losses, lw=.7)
    ax.set(xlabel='step', ylabel='loss', ylim=(0, None))
    for ax, image, label, seen in zip(shown.subplots(3, 6).flat, data.test_images, data.test_labels, guess(p, data.test_images[:18], network)):
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
# ## A network that sees
#
# To the network above, every pixel is a thing of its own. [Convolutions](63bc_conv.ipynb) look for small patterns anywhere, with
# 5,994 parameters in all. The rest of this page knows nothing of what a network is made of.

# %%
#| export
CONV = Seq(Conv2dFirst(Grid(28, 28, 1), 8, 5), MaxPool(Grid(24, 24, 8)), ReLU(),
           Conv2d(Grid(12, 12, 8), 16, 5), MaxPool(Grid(8, 8, 16)), ReLU(), Linear(256, CLASSES))
MODELS = {   # a network, a learning rate, and the optimizer that it learns well with, in so many steps
    'mlp': (MLP, .1, lambda lr, steps: SGD(lr=lr)),
    'conv': (CONV, .01, lambda lr, steps: AdamW(lr=warmup_cosine(lr, steps//10, steps)))}

def fresh(network: Layer, seed: int = 0) -> tuple:
    "Parameters before the first step."
    return init(seed) if network is MLP else network.init(np.random.default_rng(seed))


# %%
network, lr, rule = MODELS['conv']
e, = train(fresh(network), digits, network=network, rule=rule(lr, 600))
assert e.hits >= 9800
print(f'{network.count} parameters, loss {e.loss:.3f}  hits {e.hits}/10000')


# %% [markdown]
# ## On the command line
#
# `bendml mnist` is this page as a command.

# %%
#| export
@click.command()
@click.option('--model', type=click.Choice(list(MODELS)), default='mlp', show_default=True, help='Two layers, or convolutions.')
@click.option('--epochs', type=click.IntRange(1), default=1, show_default=True, help='Passes over the 60,000 pictures.')
@click.option('--steps', type=click.IntRange(1), help='Stop each epoch after so many steps.')
@click.option('--order', type=click.Choice(list(ORDERS)), default='fast', show_default=True, help='How to add up; both give the same bits.')
@click.option('--seed', type=click.IntRange(0), default=0, show_default=True, help='Of the first weights.')
@click.option('--batch', type=click.IntRange(1, 60_000), default=100, show_default=True, help='Pictures a step.')
@click.option('--micro', type=click.IntRange(1), default=1, show_default=True, help='Parts that a batch is computed in.')
@click.option('--lr', type=click.FloatRange(0, min_open=True), help='Learning rate; default: 0.1, and up to 0.01 for convolutions.')
@click.option('--threads', type=click.IntRange(1), help='Default: one a core.')
@click.option('--mpi', is_flag=True, help='Share out each batch to the processes that mpiexec has started.')
@click.option('--checkpoint', type=click.Path(dir_okay=False), help='Save to this file, and continue from it if it is there.')
@click.option('--out', type=click.Path(file_okay=False), default='.', show_default=True, help='Folder for mnist.png.')
def command(model, epochs, steps, order, seed, batch, micro, lr, threads, mpi, checkpoint, out):
    "Train a network to read handwritten digits."
    drawing, world, (network, usual, rule) = Path(out)/'mnist.png', Alone(), MODELS[model]
    try:
        world = together() if mpi else world
        with world:
            say = click.echo if world.rank == 0 else lambda text: None
            if threads or mpi: set_threads(threads or max(1, get_threads()//world.here))
            data, p, losses = load_mnist(), fresh(network, seed), []
            say(f'{len(data.train_labels)} pictures to learn from; the loss curve goes to {drawing}')
            if mpi: say(f'{world.size} processes' if world.size > 1 else 'one process; `mpiexec -n 2 bendml mnist --mpi` starts two')
            rule = rule(lr or usual, epochs*steps_of(data, batch, steps))
            for e in train(p, data, epochs, steps, order, batch, network, rule, world, checkpoint, progress=True, micro=micro):
                say(f'epoch {e.number}  loss {e.loss!s}  hits {e.hits}/10000  {e.seconds:.1f} s')
                losses += e.losses
            if world.rank == 0: picture(p, data, losses, drawing, network)
    except (ArithmeticError, ValueError, OSError, RuntimeError) as error:
        if world.rank == 0 or not getattr(error, 'everywhere', False): raise click.ClickException(str(error))
        sys.exit(1)   # process 0 says it


# %% [markdown]
# ## Two processes
#
# `mpiexec -n 2 bendml mnist --mpi` starts two, and each computes half of every batch. The sum of two halves is rounded in
# another place than the sum of the whole, so the last digits are others. They are, bit for bit, those of one process
# that computes the same halves one after the other:

# %%
#| hide
import subprocess
def run(*command):
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([*command, '--out', folder], capture_output=True, text=True, timeout=300)
    return next(line for line in done.stdout.splitlines() if line.startswith('epoch')).rsplit('  ', 1)[0]
bin = Path(sys.executable).parent

# %%
two = run(bin/'mpiexec', '-n', '2', bin/'bendml', 'mnist', '--mpi', '--steps', '100')
one = run(bin/'bendml', 'mnist', '--micro', '2', '--steps', '100')
assert one == two
print('two processes:', two, '\none after the other:', one)

# %% [markdown]
# ## What this does not show
#
# - The digits hold for this order of additions and for the exponential and logarithm of the machine's C library; another
#   library may round them differently in the last bit, and after an epoch that is visible in the seventh digit of the loss.
# - Leaving out zeros is the same bits only while every number is finite: $0 \cdot \infty$ is not a number, and the plain
#   loops would say so earlier.
# - 91 of 100 is a beginner's result. Trained for longer, the first network reaches 98, and the second passes 99.
