# %%
#| default_exp train

# %% [markdown]
# # Training
# > One loop for any network and any loss: it shows where it is, writes down what it saw, and can be stopped and continued.

# %% [markdown]
# Training is a loop of four lines: forward, loss, backward, step. Around them stands what one comes to miss otherwise: how
# long will it take, is the loss still a number, what if the machine stops tonight. This page is that loop. Everything that
# it needs to go on is one record, so a run that was stopped and continued gives the same bits as one that was not.

# %%
#| hide
#| export
import json, math, os, signal, threading, time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Callable

import numpy as np

from bendml.checkpoint import load, save
from bendml.nn.layer import Layer
from bendml.nn.layers import cross_entropy
from bendml.optim import Optimizer, State, clip


# %% [markdown]
# ## The state
#
# The parameters, the optimizer's state, and a random generator from which the batches are drawn. There is no separate
# position in the data: a batch is a function of the generator and of the step, so the two are the position.

# %%
#| export
@dataclass(frozen=True)
class Run:
    "All that training needs to go on."
    parameters: tuple
    optimizer: State
    rng: np.random.Generator

    @property
    def steps(self) -> int:
        "How many steps were made."
        return self.optimizer.steps

def start(model: Layer, rule: Optimizer, seed: int = 0) -> Run:
    "The state before the first step: fresh parameters."
    rng = np.random.default_rng(seed)
    return Run(model.init(rng), rule.start(model), rng)


# %% [markdown]
# ## A step
#
# `g` is the gradient's memory, all zero before and after. With several *micro-batches* the gradients are added up, in order,
# and their mean is used; each is a batch that fits into memory.

# %%
#| export
Batch = Callable[[np.random.Generator, int], tuple[np.ndarray, np.ndarray]]   # generator, step -> inputs, targets
Loss = Callable[[np.ndarray, np.ndarray], tuple[float, np.ndarray]]           # outputs, targets -> loss, its derivative

class TrainError(ArithmeticError):
    "The loss is no longer a number."

def step(model: Layer, loss: Loss, rule: Optimizer, run: Run, g: tuple, batch: Batch, micro: int = 1, longest: float = math.inf) -> tuple[Run, float]:
    "One step; the parameters change in place. The state after it, and the mean loss before it."
    total = 0.
    for _ in range(micro):
        x, target = batch(run.rng, run.steps)
        y, saved = model.forward(run.parameters, x)
        value, dy = loss(y, target)
        model.backward(run.parameters, saved, dy, g)
        total += value
    if not math.isfinite(total): raise TrainError(f'the loss is {total/micro} at step {run.steps + 1}\nhint: try a smaller learning rate, or clip the gradient (longest=1.)')
    scale = clip(g, longest*micro)[1]/micro if math.isfinite(longest) else 1/micro
    return replace(run, optimizer=rule.step(model, run.parameters, g, run.optimizer, scale)), total/micro


# %% [markdown]
# ## The loop
#
# Every `every` steps the state is saved, and at Ctrl-C too; the file is whole or not there. The log is one line of JSON a
# step; when a run is continued, lines after the point where it continues are dropped, since they will be written again.

# %%
#| export
def train(
    model: Layer,
    batch: Batch,
    rule: Optimizer,
    steps: int,                      # in all, those made before included
    loss: Loss = cross_entropy,
    run: Run | None = None,          # where to begin; None: fresh parameters
    checkpoint: str | os.PathLike | None = None,   # continue from this file if it is there, and save to it
    every: int = 1000,               # steps between two checkpoints
    log: str | os.PathLike | None = None,          # a file of JSON lines
    evaluate: Callable[[Layer, tuple], dict] | None = None,   # (model, parameters) -> numbers for the log
    evaluate_every: int = 1000,
    micro: int = 1,                  # batches a step
    longest: float = math.inf,       # of the gradient, see `clip`
    progress: bool = True,
    seed: int = 0,                   # of fresh parameters and batches
) -> Run:
    "Train until `steps` steps were made; `TrainError` if the loss is no longer a number. Ctrl-C saves, and is then raised."
    if steps < 0 or every < 1 or evaluate_every < 1 or micro < 1: raise ValueError(f'train\n- expected : steps >= 0, every, evaluate_every and micro >= 1\n- observed : {steps}, {every}, {evaluate_every}, {micro}')
    run = start(model, rule, seed) if run is None else run
    if checkpoint and os.path.exists(checkpoint): run = load(checkpoint, run)
    g, saved_at = model.zeros(), run.steps if checkpoint and os.path.exists(checkpoint) else -1
    from tqdm import tqdm
    with _log(log, run.steps) as write, _Patiently() as stop, tqdm(total=steps, initial=run.steps, unit=' steps', disable=None if progress else True) as bar:
        while run.steps < steps and not stop.asked:
            began = time.perf_counter()
            run, value = step(model, loss, rule, run, g, batch, micro, longest)
            seen = dict(step=run.steps, loss=value, seconds=round(time.perf_counter() - began, 6))
            if evaluate and (run.steps % evaluate_every == 0 or run.steps == steps): seen |= evaluate(model.evaluating(), run.parameters)
            write(seen)
            bar.set_postfix(loss=f'{value:.4f}', refresh=False)
            bar.update()
            if checkpoint and run.steps % every == 0: save(checkpoint, run); saved_at = run.steps
        if checkpoint and saved_at != run.steps: save(checkpoint, run)
    if stop.asked: raise KeyboardInterrupt
    return run


# %% [markdown]
# An interrupt in the middle of a step would leave half of the parameters moved. So it is only noted, and acted on between
# two steps; a second one acts at once.

# %%
#| export
class _Patiently:
    "Ctrl-C is noted in `asked`."
    asked = False
    def note(self, *_):
        if self.asked: raise KeyboardInterrupt
        self.asked = True
    def __enter__(self):
        self.main = threading.current_thread() is threading.main_thread()
        if self.main: self.old = signal.signal(signal.SIGINT, self.note)
        return self
    def __exit__(self, *_):
        if self.main: signal.signal(signal.SIGINT, self.old)


# %%
#| export
class _log:
    "A file of JSON lines, open for more; lines from later steps than `steps` are dropped."
    def __init__(self, path, steps: int): self.path, self.steps = path, steps
    def __enter__(self) -> Callable[[dict], None]:
        if self.path is None: return lambda seen: None
        kept = [line for line in read_log(self.path) if line['step'] <= self.steps] if os.path.exists(self.path) else []
        self.file = open(self.path, 'w', buffering=1)
        for line in kept: print(json.dumps(line), file=self.file)
        return lambda seen: print(json.dumps(seen), file=self.file)
    def __exit__(self, *_):
        if self.path is not None: self.file.close()

def read_log(path: str | os.PathLike) -> list[dict]:
    "The lines of a log; a last line that was cut off is left out."
    out = []
    for line in Path(path).read_text().splitlines():
        try: out.append(json.loads(line))
        except json.JSONDecodeError: break
    return out

def plot_log(path: str | os.PathLike, to: str | os.PathLike) -> None:
    "Draw the loss of each step of a log, thin, and its running mean."
    from matplotlib.figure import Figure
    seen = read_log(path)
    steps, losses = [s['step'] for s in seen], np.array([s['loss'] for s in seen])
    n = max(1, len(losses)//50)
    fig = Figure(figsize=(6, 3), layout='constrained')
    ax = fig.subplots()
    ax.plot(steps, losses, lw=.5, alpha=.5)
    if len(losses) >= n: ax.plot(steps[n - 1:], np.convolve(losses, np.ones(n)/n, 'valid'), lw=1.5)
    ax.set(xlabel='step', ylabel='loss')
    fig.savefig(to, dpi=110)


# %% [markdown]
# ## MNIST, from layers
#
# The network of [MNIST](70_mnist.ipynb) is three layers in a row. Fifty steps in file order, from the same numbers, give
# the loss of that page.

# %%
from bendml.data import load_mnist
from bendml.mnist import guess, init, pixels, Mlp
from bendml.nn.layer import Seq
from bendml.nn.layers import Linear, LinearFirst, ReLU
from bendml.optim import SGD

digits = load_mnist()
net, rule = Seq(LinearFirst(784, 128), ReLU(), Linear(128, 10)), SGD(lr=.1)
def in_order(rng, step):
    part = slice(100*step, 100*step + 100)
    return pixels(digits.train_images[part]), digits.train_labels[part].astype(np.int64)

w = init()
same = Run(((w.w1.T.copy(), w.b1.copy()), (), (w.w2.T.copy(), w.b2.copy())), rule.start(net), np.random.default_rng(0))

# %%
import tempfile
with tempfile.TemporaryDirectory() as folder:
    run = train(net, in_order, rule, 50, run=same, log=f'{folder}/log.jsonl', progress=False)
    losses = [line['loss'] for line in read_log(f'{folder}/log.jsonl')]
(w1, b1), _, (w2, b2) = run.parameters
hits = (guess(Mlp(w1.T, b1, w2.T, b2), digits.test_images) == digits.test_labels).sum()
print(f'loss {np.mean(losses):.6f}  hits {hits}/10000')
assert abs(np.mean(losses) - 1.6616004) < 1e-5 and abs(int(hits) - 7829) <= 1

# %% [markdown]
# ## Stopped and continued
#
# A small language model on a sentence, with dropout, AdamW and random batches: twelve steps at once, or five, a new start
# from the file, and seven more. The same bits.

# %%
from bendml.nn.layer import Residual, leaves
from bendml.nn.layers import Dropout, Embedding, LayerNorm, self_attention, swiglu
from bendml.optim import AdamW

text = np.frombuffer(b'the quick brown fox jumps over the lazy dog. ' * 8, np.uint8).astype(np.int64)
model = Seq(Embedding(128, 16), Residual(LayerNorm(16), self_attention(16, 2, rotary='half')), Residual(LayerNorm(16), swiglu(16, 32)), Dropout(.1), Linear(16, 128))
def some(rng, step):
    at = rng.integers(0, len(text) - 17, 4)[:, None] + np.arange(17)
    return text[at[:, :-1]], text[at[:, 1:]]

with tempfile.TemporaryDirectory() as folder:
    whole = train(model, some, AdamW(lr=1e-2), 12, progress=False)
    for steps in (5, 12): parts = train(model, some, AdamW(lr=1e-2), steps, checkpoint=f'{folder}/run', progress=False)
assert all(a.tobytes() == b.tobytes() for a, b in zip(leaves(whole.parameters), leaves(parts.parameters), strict=True))
whole.steps, parts.steps

# %% [markdown]
# A learning rate that is too large is not left to run until morning:

# %%
with np.errstate(all='ignore'):
    try: train(net, in_order, SGD(lr=1e6), 20, progress=False)
    except TrainError as e: print(e)

# %% [markdown]
# ## What this does not show
#
# One process, on one machine. The law that the mean of shards' gradients is the gradient of the whole,
# [mean_of_shards](67b_row_laws.ipynb), is what several would rest on.
