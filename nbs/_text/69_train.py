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
import json, math, os, signal, threading, time, zlib
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Callable

import numpy as np

from bendml.checkpoint import CheckpointError, load, save, write_atomically
from bendml.nn.layer import Layer, leaves
from bendml.nn.layers import cross_entropy
from bendml.optim import Optimizer, State, clip
from bendml.processes import Alone, ProcessError, agreed, try_all


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
# ## Parts of a batch
#
# A batch may be too large for the memory, or be shared out to several processes. Then it is cut into equal parts along its
# first axis; an input of another kind says itself what its `part` is. Each part's gradient is computed by itself, and they
# are added up in order. So one process that computes four parts gets the bits of four processes with a part each.

# %%
#| export
def part(x: Any, i: int, n: int) -> Any:
    "Part i of n equal parts of a batch; `ValueError` if it cannot be cut so."
    if n == 1: return x
    if isinstance(x, tuple): return tuple(part(v, i, n) for v in x)
    if len(x) % n or not len(x): raise ValueError(f'a batch in {n} parts\n- expected : a multiple of {n} examples\n- observed : {len(x)}\nhint: parts are equally large, since their mean is taken')
    if hasattr(x, 'part'): return x.part(i, n)
    return x[i*len(x)//n:(i + 1)*len(x)//n]

def add(g: tuple, d: tuple) -> None:
    "g += d, for gradients."
    for a, b in zip(leaves(g), leaves(d), strict=True): a += b


# %% [markdown]
# ## A step
#
# `g` is the gradient's memory, all zero before and after.

# %%
#| export
Batch = Callable[[np.random.Generator, int], tuple[Any, Any]]   # generator, step -> inputs, targets
Loss = Callable[[Any, Any], tuple[float, Any]]                  # outputs, targets -> loss, its derivative

class TrainError(ArithmeticError):
    "The loss is no longer a number."
    told = everywhere = True   # all processes see the same loss

def gradient(model: Layer, loss: Loss, p: tuple, g: tuple, x: Any, target: Any) -> float:
    "The loss of a batch; its gradient is added to `g`."
    y, saved = model.forward(p, x)
    value, dy = loss(y, target)
    model.backward(p, saved, dy, g)
    return float(value)

def share_of(world: Alone, micro: int, model: Layer, loss: Loss, run: Run, g: tuple, batch: Batch) -> float:
    "This process's part of a step: the sum of its parts' losses; the sum of their gradients is in `g`."
    x, target = batch(run.rng, run.steps)
    total, n = 0., world.size*micro
    for i in range(world.rank*micro, (world.rank + 1)*micro):
        own = g if i % micro == 0 else model.zeros()
        total += gradient(model, loss, run.parameters, own, part(x, i, n), part(target, i, n))
        if own is not g: add(g, own)
    return total

def step(model: Layer, loss: Loss, rule: Optimizer, run: Run, g: tuple, batch: Batch, micro: int = 1, longest: float = math.inf, world: Alone = Alone()) -> tuple[Run, float]:
    "One step; the parameters change in place. The state after it, and the mean loss before it."
    n = world.size*micro
    value = sum(try_all(world, lambda: share_of(world, micro, model, loss, run, g, batch)))/n
    if not math.isfinite(value): raise TrainError(f'the loss is {value} at step {run.steps + 1}\nhint: try a smaller learning rate, or clip the gradient (longest=1.)')
    if world.size > 1:
        world.add_up(row := model.dump(g))
        for a, b in zip(leaves(g), leaves(model.load(row))): a[...] = b
    scale = clip(g, longest*n)[1]/n if math.isfinite(longest) else 1/n
    return replace(run, optimizer=rule.step(model, run.parameters, g, run.optimizer, scale)), value


# %% [markdown]
# ## Saved, and continued
#
# With the state goes what it is a state of: the model, the optimizer's settings, the data's name. A run is continued with the
# same ones or not at all; a learning rate may be changed. Of several processes, the first one saves, and all of them read.

# %%
#| export
def about(model: Layer, rule: Optimizer, data: str) -> dict[str, str]:
    "What a run is a run of."
    plain = lambda v: getattr(v, '__qualname__', repr(v))
    settings = ', '.join(f'{f.name}={plain(getattr(rule, f.name))}' for f in fields(rule) if f.name != 'lr')
    return {'model': repr(model), 'optimizer': f'{type(rule).__name__}({settings})', 'data': data}

def resume(path: str | os.PathLike, run: Run, this: dict[str, str]) -> Run:
    "The state in a file; `CheckpointError` if it is one of another model, optimizer or data."
    saved = load(path, {'about': this, 'run': run})
    for key, want in this.items():
        if saved['about'][key] != want: raise CheckpointError(path, f'a run with another {key}', _cut(want), _cut(saved['about'][key]), 'go on with the settings that it was begun with, or name another file')
    return saved['run']

def begin(world: Alone, model: Layer, run: Run, checkpoint: str | os.PathLike | None, this: dict[str, str]) -> tuple[Run, int]:
    "The state to begin with, and the step at which it is saved, -1 if it is not; `ProcessError` if the processes differ."
    there = bool(checkpoint) and os.path.exists(checkpoint)
    if len(set(world.share(there))) > 1: raise ProcessError('the checkpoint', 'a file that all processes see', 'some of them see it', 'put it into a folder that they share')
    if there:
        found = []
        try_all(world, lambda: found.append(resume(checkpoint, run, this)))
        run, = found
    starts = [0] if world.size == 1 else world.share([run.steps, zlib.crc32(model.dump(run.parameters)), *this.values()])
    if any(s != starts[0] for s in starts): raise ProcessError('processes begin differently', 'one model, optimizer and data, the same parameters', f'process {next(i for i, s in enumerate(starts) if s != starts[0])} has others')
    return run, run.steps if there else -1

def _cut(text: str) -> str: return text if len(text) <= 300 else f'{text[:300]}… ({zlib.crc32(text.encode()):08x})'


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
    micro: int = 1,                  # parts that a process computes its share of a batch in
    longest: float = math.inf,       # of the gradient, see `clip`
    progress: bool = True,
    seed: int = 0,                   # of fresh parameters and batches
    data: str = '',                  # the data's name; a run is continued with the same
    world: Alone = Alone(),          # the processes that share out each batch, see `bendml.processes.together`
    after: Callable[[Run, float], None] = lambda run, value: None,   # called after each step, with its loss
    one: Callable = step,            # what makes a step: this one, or a quicker one with the same arguments and bits
) -> Run:
    "Train until `steps` steps were made; `TrainError` if the loss is no longer a number. Ctrl-C saves, and is then raised."
    if steps < 0 or every < 1 or evaluate_every < 1 or micro < 1: raise ValueError(f'train\n- expected : steps >= 0, every, evaluate_every and micro >= 1\n- observed : {steps}, {every}, {evaluate_every}, {micro}')
    first, this = world.rank == 0, about(model, rule, data)
    run = start(model, rule, seed) if run is None else run
    with world:
        run, saved_at = begin(world, model, run, checkpoint, this)
        def keep(): save(checkpoint, {'about': this, 'run': run}) if first else None
        g = model.zeros()
        with _log(log if first else None, run.steps) as write, _Patiently() as stop, _bar(steps, run.steps, progress and first) as bar:
            while run.steps < steps and not any(world.share(stop.asked)):
                began = time.perf_counter()
                run, value = one(model, loss, rule, run, g, batch, micro, longest, world)
                seen = dict(step=run.steps, loss=value, seconds=round(time.perf_counter() - began, 6))
                if evaluate and (run.steps % evaluate_every == 0 or run.steps == steps):
                    seen |= try_all(world, lambda: evaluate(model.evaluating(), run.parameters) if first else {})[0]
                write(seen)
                bar(value)
                after(run, value)
                if checkpoint and run.steps % every == 0: try_all(world, keep); saved_at = run.steps
            if checkpoint and saved_at != run.steps: try_all(world, keep)
            if any(world.share(stop.asked)): raise agreed(KeyboardInterrupt())
    return run


# %% [markdown]
# An interrupt in the middle of a step would leave half of the parameters moved. So it is only noted, and acted on between
# two steps, by all processes at the same one; a second one acts at once.

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

class _bar:
    "A progress bar with the loss; without one, nothing."
    def __init__(self, steps: int, done: int, shown: bool): self.steps, self.done, self.shown = steps, done, shown
    def __enter__(self) -> Callable[[float], None]:
        from tqdm import tqdm
        self.bar = tqdm(total=self.steps, initial=self.done, unit=' steps', leave=False, disable=None if self.shown else True)
        if self.bar.disable: return lambda value: None
        def show(value):
            if self.bar.update(): self.bar.set_postfix(loss=f'{value:.4f}', refresh=False)
        return show
    def __exit__(self, *_): self.bar.close()


# %%
#| export
class _log:
    "A file of JSON lines, open for more; lines from later steps than `steps` are dropped."
    def __init__(self, path, steps: int): self.path, self.steps = path, steps
    def __enter__(self) -> Callable[[dict], None]:
        if self.path is None: return lambda seen: None
        kept = [line for line in read_log(self.path) if line['step'] <= self.steps] if os.path.exists(self.path) else []
        write_atomically(self.path, (f'{json.dumps(line)}\n'.encode() for line in kept))
        self.file = open(self.path, 'a', buffering=1)
        return lambda seen: print(json.dumps(seen), file=self.file)
    def __exit__(self, *_):
        if self.path is not None: self.file.close()

def read_log(path: str | os.PathLike) -> list[dict]:
    "The lines of a log, up to one that was cut off or is none."
    out = []
    for line in Path(path).read_text().splitlines():
        try: seen = json.loads(line)
        except (ValueError, RecursionError): break
        if not isinstance(seen, dict) or not isinstance(seen.get('step'), int): break
        out.append(seen)
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
# ## Stopped and continued
#
# A small language model on a sentence, with dropout, AdamW and random batches: twelve steps at once, or five, a new start
# from the file, and seven more. The same bits.

# %%
import tempfile
from bendml.nn.layer import Residual, Seq
from bendml.nn.layers import Dropout, Embedding, LayerNorm, Linear, self_attention, swiglu
from bendml.optim import SGD, AdamW

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
# Four parts of a batch, one after the other: the bits of four processes, and, to rounding, the result of the batch as a whole.

# %%
parted = train(model, some, AdamW(lr=1e-2), 12, micro=4, progress=False)
max(abs(a - b).max() for a, b in zip(leaves(whole.parameters), leaves(parted.parameters))).round(6)

# %% [markdown]
# ## What is refused
#
# A state of another model, and one of an optimizer with other settings:

# %%
with tempfile.TemporaryDirectory() as folder:
    train(model, some, AdamW(lr=1e-2), 1, checkpoint=f'{folder}/run', progress=False)
    for other, rule in ((Seq(*model.parts()[:3], Dropout(.2), model.parts()[4]), AdamW(lr=1e-2)), (model, AdamW(lr=1e-2, betas=(.9, .95)))):
        try: train(other, some, rule, 2, checkpoint=f'{folder}/run', progress=False)
        except CheckpointError as e: print(str(e).replace(folder, '…'), '\n')

# %% [markdown]
# A batch that cannot be cut into equal parts; and a learning rate that is too large is not left to run until morning:

# %%
try: train(model, some, AdamW(lr=1e-2), 12, micro=3, progress=False)
except ValueError as e: print(e, '\n')
with np.errstate(all='ignore'):
    try: train(model, some, SGD(lr=1e30), 20, progress=False)
    except TrainError as e: print(e)

# %% [markdown]
# ## What this does not show
#
# - That a loss goes down.
# - Several processes at work: that is on [MNIST](70_mnist.ipynb), and the tests kill them at random moments.
