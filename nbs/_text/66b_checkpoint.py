# %%
#| default_exp checkpoint.__init__

# %% [markdown]
# # Checkpoints
# > Everything that training needs to go on, in one file that is whole or not there.

# %% [markdown]
# Training takes hours, and machines stop. To go on as if nothing had happened, the parameters are not enough: the
# optimizer has its moments, the data have a position, and the random numbers must continue where they were. If one of these
# is forgotten, training goes on, a little worse, and nobody notices. So a checkpoint holds the whole state, and the test
# is strict: stopping and resuming gives the same bits as not stopping.

# %%
#| hide
#| export
import json, os
from collections.abc import Mapping
from dataclasses import fields, is_dataclass

import numpy as np

from bendml.checkpoint.files import find_tensors, listed, open_weights
from bendml.checkpoint.gguf import read_gguf
from bendml.checkpoint.safetensors import (SaveError, Words, read_names, read_plain, read_safetensors,
                                           write_atomically, write_safetensors)
from bendml.checkpoint.weights import CheckpointError, Missing, Weights, narrow, short, widen
_all_ = ['CheckpointError', 'Missing', 'SaveError', 'Weights', 'find_tensors', 'narrow', 'open_weights',
         'read_gguf', 'read_safetensors', 'widen', 'write_atomically', 'write_safetensors']


# %% [markdown]
# ## A state is a tree
#
# What training needs is kept in records, dictionaries and lists, with arrays, numbers and a random generator at the ends.
# `flatten` gives every end a name, the path that leads to it.

# %%
#| export
def _parts(node: object) -> dict[str, object] | None:
    "The parts of a tree's node by name; None for an end."
    if isinstance(node, np.random.Generator): return _parts_of_generator(node)
    if is_dataclass(node) and not isinstance(node, type):
        return {f.name: getattr(node, f.name) for f in fields(node) if f.init}
    if isinstance(node, tuple) and hasattr(node, '_fields'): return node._asdict()
    if isinstance(node, (list, tuple)): return {str(i): part for i, part in enumerate(node)}
    return dict(node) if isinstance(node, Mapping) else None


# %%
#| export
def flatten(state: object, name: str = '') -> dict[str, object]:
    "The ends of a state, each with its path as its name; `CheckpointError` for what cannot be stored."
    ends, todo = {}, [(name, state)]
    while todo:
        name, node = todo.pop()
        parts = _parts(node)
        if name.count('.') > 99:
            raise CheckpointError(f'state {short(name)}', 'too deep', 'at most 100 levels',
                                  'more; is it inside itself?')
        if parts is None:
            if name in ends:
                raise CheckpointError('state', 'two parts of one name', 'names without dots', short(name))
            ends[name] = _end(name, node)
            continue
        if bad := [key for key in parts if not isinstance(key, str)]:
            raise CheckpointError(f'state {name}', 'a name', 'text', short(bad[0]))
        todo += [(f'{name}.{key}' if name else key, part) for key, part in reversed(parts.items())]
    return ends


# %%
#| export
def _end(name: str, value: object) -> object:
    "A value that can be stored."
    if isinstance(value, np.generic): value = np.asarray(value)
    if type(value) in (bool, int, float, str, type(None)) or isinstance(value, np.ndarray): return value
    raise CheckpointError(f'state {name}', 'cannot be stored',
                          'an array, a number, text, None, or a numpy.random.Generator', type(value).__name__)


# %% [markdown]
# A generator is stored as the numbers that make up its state. Some generators also keep a position in a buffer, which NumPy
# does not check; a hostile file could make it read outside. Those are refused.

# %%
#| export
_GENERATORS = ('PCG64', 'PCG64DXSM', 'SFC64')

def _parts_of_generator(g: np.random.Generator) -> dict[str, object]:
    "What makes up a generator's state."
    state = g.bit_generator.state
    if state['bit_generator'] not in _GENERATORS:
        raise CheckpointError('state', 'a generator that cannot be stored', ' or '.join(_GENERATORS),
                              state['bit_generator'], 'numpy.random.default_rng is PCG64')
    return state


# %%
#| export
def _generator(like: np.random.Generator, state: dict, name: str) -> np.random.Generator:
    "A generator in a given state."
    bits = type(like.bit_generator)(0)
    try: bits.state = state
    except (ValueError, TypeError, KeyError, OverflowError) as e:
        raise CheckpointError(f'state {name}', 'not the state of a generator', type(bits).__name__,
                              short(str(e))) from None
    return np.random.Generator(bits)


# %%
flatten({'step': 3, 'layers': [{'w': np.zeros(2), 'b': 0.5}], 'rng': np.random.default_rng(0)}).keys()

# %% [markdown]
# ## Saving
#
# Arrays go into a safetensors file, which any program can read; the rest goes into its metadata, as JSON. The file is
# [written entirely or not at all](64c_safetensors.ipynb).

# %%
#| export
_PLAIN = 'bendml.state'   # the name in the metadata

def save(
    path: str | os.PathLike,
    state: object,            # records, dictionaries, lists, tuples of arrays, numbers, texts, generators
) -> None:
    "Save a state, entirely or not at all; `SaveError` for a full disk, `CheckpointError` for what cannot be stored."
    ends = flatten(state)
    arrays = {name: value for name, value in ends.items() if isinstance(value, np.ndarray)}
    plain = {name: value for name, value in ends.items() if name not in arrays}
    write_safetensors(path, arrays, {_PLAIN: json.dumps(plain)})


# %% [markdown]
# ## Loading
#
# A state is loaded into the shape of another one, the state before the first step: a record becomes a record, and what is
# an array of some shape has to be one. Nothing in the file decides what is made; it only brings the numbers.

# %%
#| export
def load(
    path: str | os.PathLike,
    like: object,             # a state of the same shape; its numbers do not matter
) -> object:                  # of the same types as `like`, with arrays of its own
    "Load a state of training; `CheckpointError` names all that is missing, not expected, or of another shape."
    w = read_safetensors(path)
    want, have = flatten(like), {name: w[name] for name in w} | _plain(path, w.metadata)
    missing, unexpected = want.keys() - have.keys(), have.keys() - want.keys()
    wrong = [name for name in want.keys() & have.keys() if not _alike(want[name], have[name])]
    if missing or unexpected or wrong: raise _other_state(path, want, have, missing, unexpected, wrong)
    own = {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in have.items()}
    return _rebuild(like, own, '')


# %%
#| export
def _plain(path, metadata: Mapping[str, str]) -> dict[str, object]:
    "The ends that are no arrays."
    if _PLAIN not in metadata:
        raise CheckpointError(path, 'not a checkpoint', f'metadata {_PLAIN}',
                              'a safetensors file without it')
    text = metadata[_PLAIN].encode()
    words = Words(f'{path}, metadata {_PLAIN}', text, 0, len(text))
    plain = {name: read_plain(words) for name in read_names(words)}
    words.end_of_text()
    return plain


# %%
#| export
def _alike(a: object, b: object) -> bool:
    "Whether an end may stand for another: same type and shape. None may become a value, and a value None."
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray): return a.dtype == b.dtype and a.shape == b.shape
    return type(a) is type(b) or (a is None or b is None) and not isinstance(b, np.ndarray)


# %%
#| export
def _rebuild(like: object, ends: dict[str, object], name: str) -> object:
    "The tree of `like` with other ends."
    parts = _parts(like)
    if parts is None: return ends[name]
    parts = {key: _rebuild(part, ends, f'{name}.{key}' if name else key) for key, part in parts.items()}
    if isinstance(like, np.random.Generator): return _generator(like, parts, name)
    if is_dataclass(like): return type(like)(**parts)
    if isinstance(like, tuple) and hasattr(like, '_fields'): return type(like)(**parts)
    return type(like)(parts.values()) if isinstance(like, (list, tuple)) else parts


# %%
#| export
def _other_state(path, want, have, missing, unexpected, wrong) -> CheckpointError:
    "All in which a file's state differs from the one that was asked for."
    kind = lambda v: f'{v.dtype}{list(v.shape)}' if isinstance(v, np.ndarray) else type(v).__name__
    said = lambda of: [f'{short(name)[1:-1]} {kind(of[name])}' for name in sorted(wrong)[:10]]
    expected = [f'missing: {listed(missing)}']*bool(missing) + said(want)
    observed = [f'unexpected: {listed(unexpected)}']*bool(unexpected) + said(have)
    return CheckpointError(path, 'another state', '; '.join(expected) or 'no others',
                           '; '.join(observed) or 'not there')


# %%
#| hide
import os, tempfile
folder = tempfile.TemporaryDirectory()
os.chdir(folder.name)

# %% [markdown]
# ## Stop and resume
#
# A line through points, by stochastic gradient descent with momentum. The state has everything: the parameters, the
# optimizer's memory, the step, where we are in the data, and the generator that shuffles them.

# %%
from typing import NamedTuple

class State(NamedTuple):
    step: int
    w: np.ndarray          # (3,)
    momentum: np.ndarray   # (3,)
    position: int          # in `order`
    order: np.ndarray      # (100,) the data of this epoch, shuffled
    rng: np.random.Generator

X = np.random.default_rng(1).normal(size=(100, 3))
y = X@[1., -2., 0.5]

def start(): return State(0, np.zeros(3), np.zeros(3), 0, np.arange(100), np.random.default_rng(7))


# %%
def train(s: State, steps: int) -> State:
    for _ in range(steps):
        order = s.rng.permutation(100) if s.position == 0 else s.order
        i = order[s.position]
        momentum = 0.9*s.momentum + (X[i]@s.w - y[i])*X[i]
        s = State(s.step + 1, s.w - 0.01*momentum, momentum, (s.position + 1) % 100, order, s.rng)
    return s


# %% [markdown]
# Once without a stop, and once with the state on disk in between:

# %%
straight = train(start(), 500)
save('run.safetensors', train(start(), 230))
resumed = train(load('run.safetensors', like=start()), 270)
assert resumed.w.tobytes() == straight.w.tobytes() and resumed.rng.random() == straight.rng.random()
resumed.step, resumed.w


# %% [markdown]
# A pulled plug in the middle of writing: the checkpoint from before is there, and nothing else.

# %%
def blocks():
    yield b'half a file'
    raise OSError(28, 'No space left on device')

try: write_atomically('run.safetensors', blocks())
except SaveError as e: print(e)
os.listdir(), load('run.safetensors', like=start()).step


# %% [markdown]
# ## What is refused
#
# A state of another model:

# %%
class Bigger(NamedTuple):
    step: float
    w: np.ndarray
    bias: np.ndarray

try: load('run.safetensors', like=Bigger(0.0, np.zeros(4), np.zeros(1)))
except CheckpointError as e: print(e)

# %% [markdown]
# A file that was cut off:

# %%
with open('run.safetensors', 'r+b') as f: f.truncate(900)
try: load('run.safetensors', like=start())
except CheckpointError as e: print(e)

# %%
#| hide
os.chdir('/')
folder.cleanup()

# %% [markdown]
# ## What this does not show
#
# - That a disk keeps what it said it had written. `fsync` asks for it, and some disks lie.
# - A checkpoint does not know what it forgot: a random number taken from elsewhere, or data that were changed in between,
#   are not in the state. That resuming gives the same bits is tested here for this state; a program with another state has
#   to test it again.
# - Two programs that save to one path at the same time; the file would be whole, and it is not said whose it is.
