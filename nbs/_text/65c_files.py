# %%
#| default_exp checkpoint.files

# %% [markdown]
# # Opening a model
# > One function for every format; and every name that does not fit, in one message.

# %% [markdown]
# Who runs a model has a path: a file, or a folder with a file in it, or with many, since large models come in pieces. And
# they have a program that knows which tensors it needs. Most of what goes wrong with published weights goes wrong here:
# a piece is missing, a name has another prefix, a matrix lies the other way round.

# %%
#| hide
#| export
import os, re
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from bendml.checkpoint.gguf import read_gguf
from bendml.checkpoint.safetensors import Words, read_names, read_plain, read_safetensors, read_string
from bendml.checkpoint.weights import CheckpointError, Weights, map_file, short

# %% [markdown]
# ## Files in pieces
#
# A model in pieces has an index, JSON that tells in which file each tensor is. The file names come from a stranger, so they
# may only be names: with a path in them, the index could have us open anything.

# %%
#| export
MAX_INDEX = 100_000_000   # bytes

def read_index(path: str | os.PathLike) -> dict[str, str]:
    "The file of each tensor, from an index; `CheckpointError` for anything that is not one."
    data = map_file(path, 2)
    if len(data) > MAX_INDEX:
        raise CheckpointError(path, 'index too large', f'at most {MAX_INDEX} bytes', f'{len(data)} bytes')
    words, files = Words(path, data, 0, len(data)), None
    for key in read_names(words):
        if key == 'weight_map': files = {name: _plain_name(words) for name in read_names(words)}
        elif key == 'metadata':
            for _ in read_names(words): read_plain(words)
        else: raise words.refuse('index', 'metadata and weight_map', short(key))
    words.end_of_text()
    if not files: raise CheckpointError(path, 'index', 'weight_map, with at least one tensor', 'none')
    return files


# %%
#| export
def _plain_name(words: Words) -> str:
    "A file's name, without a path."
    name = read_string(words)
    if name in ('', '.', '..') or re.search(r'[/\\\0:]', name) or len(name.encode()) > 255:
        raise words.refuse('index', 'the name of a file in the same folder', short(name))
    return name


# %%
#| export
class Shards(Weights):
    "The tensors of several files as if they were in one."
    def __init__(self, path: Path, files: Mapping[str, Weights], metadata: Mapping):
        self.path, self.files, self.metadata = path, files, metadata
        self.stored = {name: w.stored[name] for name, w in files.items()}

    def __repr__(self):
        files = len({w.path for w in self.files.values()})
        return f'Shards({self.path.name}: {len(self)} tensors in {files} files)'

    def __getitem__(self, name: str) -> np.ndarray:
        self.find(name)
        return self.files[name][name]

    def float32(self, name: str) -> np.ndarray:
        self.find(name)
        return self.files[name].float32(name)


# %%
#| export
def read_shards(path: str | os.PathLike) -> Shards:
    "The tensors of a model in pieces, from its index; `CheckpointError` names what is not there."
    path, index = Path(path), read_index(path)
    names = sorted(set(index.values()))
    if lost := [n for n in names if not (path.parent/n).is_file()]:
        raise CheckpointError(path, 'a piece is missing', listed(names), f'not there: {listed(lost)}',
                              'fetch it again')
    pieces = {n: read_safetensors(path.parent/n) for n in names}
    if lost := [t for t, n in index.items() if t not in pieces[n]]:
        raise CheckpointError(path, 'tensors are not where the index says', f'{listed(lost)}',
                              f'not in {listed({index[t] for t in lost})}')
    if more := [t for n, w in pieces.items() for t in w if index.get(t) != n]:
        raise CheckpointError(path, 'tensors that the index does not name', 'each tensor once',
                              listed(more))
    return Shards(path, {t: pieces[n] for t, n in index.items()}, {})


# %%
#| export
def listed(names: Iterable[str], most: int = 10) -> str:
    "Names in a line, so many of them."
    names = sorted(names)
    shown = ', '.join(short(n)[1:-1] for n in names[:most])
    return shown + (f' and {len(names) - most} more' if len(names) > most else '')


# %% [markdown]
# ## Settings
#
# Beside the tensors lies a `config.json` with the sizes of the model. It is read like every other file, word by word.

# %%
#| export
MAX_SETTINGS, MAX_DEPTH = 1_000_000, 8   # bytes; lists and objects inside each other
_LIST, _OBJECT, _MORE = (re.compile(rb'[ \t\n\r]*(' + c + rb')') for c in (rb'\[', rb'\{', rb'[,\]]'))

def read_settings(path: str | os.PathLike) -> dict:
    "The settings in a config.json; `CheckpointError` for anything that is not one."
    data = map_file(path, 2)
    if len(data) > MAX_SETTINGS: raise CheckpointError(path, 'too large', f'at most {MAX_SETTINGS} bytes', f'{len(data)} bytes')
    words = Words(path, data, 0, len(data))
    settings = {name: _value(words, 1) for name in read_names(words)}
    words.end_of_text()
    return settings

def _value(words: Words, depth: int):
    "What stands behind a name: a text, a number, true, false, null, or a list or object of these."
    if depth > MAX_DEPTH: raise words.refuse('nested too deeply', f'at most {MAX_DEPTH} levels')
    if _OBJECT.match(words.text, words.at, words.end): return {name: _value(words, depth + 1) for name in read_names(words)}
    if not _LIST.match(words.text, words.at, words.end): return read_plain(words)
    words.take(_LIST, '[')
    found, more = [], not (end := _MORE.match(words.text, words.at, words.end)) or end[1] == b','
    if not more: words.take(_MORE, ']')
    while more:
        found.append(_value(words, depth + 1))
        more = words.take(_MORE, ', or ]') == b','
    return found


# %%
#| hide
import os, tempfile
folder = tempfile.TemporaryDirectory()
os.chdir(folder.name)

# %%
Path('config.json').write_text('{"n_layer": 12, "eps": 1e-5, "names": ["a", null], "inner": {"x": true}}')
print(read_settings('config.json'))
for wrong in ('{"n_layer": 12, "n_layer": 6}', '['*100_000, '{"a": ' + '['*9 + ']'*9 + '}'):
    Path('config.json').write_text(wrong)
    try: read_settings('config.json')
    except CheckpointError as e: print(e)

# %%
#| hide
os.chdir('/')
folder.cleanup()


# %% [markdown]
# ## One function

# %%
#| export
def open_weights(
    path: str | os.PathLike,  # a file of safetensors or GGUF, an index, or a folder with one of these
) -> Weights:
    "The tensors of a model, from any of the formats; `CheckpointError` if it is none, or broken."
    path = Path(path)
    if path.is_dir(): path = _inside(path)
    if path.name.endswith('.index.json'): return read_shards(path)
    return read_gguf(path) if map_file(path, 8)[:4] == b'GGUF' else read_safetensors(path)


# %%
#| export
def _inside(folder: Path) -> Path:
    "The file in a folder that its tensors are to be read from."
    for pattern in ('*.safetensors.index.json', 'model.safetensors', '*.safetensors', '*.gguf'):
        found = sorted(folder.glob(pattern))
        if len(found) == 1: return found[0]
        if found:
            raise CheckpointError(folder, 'more than one model', 'one', listed(p.name for p in found),
                                  'name the file')
    raise CheckpointError(folder, 'no model', 'a file of safetensors or GGUF',
                          listed(p.name for p in folder.iterdir()) or 'an empty folder')


# %%
from bendml.data import fetch
w = open_weights(fetch('smollm2'))
w


# %% [markdown]
# ## Which tensor is which
#
# A model says which names it needs and of what shapes. What is missing, what nobody asked for, and what has another shape
# is told in one message, so that the second fault is not found only after the first is mended. GPT-2 was published with
# its matrices the other way round, in×out, and a shape that fits when reversed gets that hint. (A square matrix fits both
# ways. No check of shapes can see it; a program has to know its file's layout.)
#
# Some models use the embedding a second time, as their last layer, and then the file need not have it twice. `tied` says
# so. A file that has it all the same must hold the same bytes: if not, one of the two would be silently dropped.

# %%
#| export
def find_tensors(
    weights: Weights,
    shapes: Mapping[str, tuple[int, ...]],  # the names that a model needs, with their shapes
    tied: Mapping[str, str] = {},           # names that may be left out, for others: {'lm_head': 'wte'}
    ignore: str = '',                       # a regular expression for names that are not needed
) -> dict[str, str]:                        # for each name, the one under which it is stored
    "Where each tensor of a model is stored; `CheckpointError` names all that do not fit."
    found = {name: name if name in weights else tied.get(name, name) for name in shapes}
    missing = [name for name, at in found.items() if at not in weights]
    unexpected = [name for name in weights if name not in shapes and not re.fullmatch(ignore, name)]
    wrong = {name: weights.stored[at].shape for name, at in found.items()
             if at in weights and weights.stored[at].shape != tuple(shapes[name])}
    if missing or unexpected or wrong: raise _misfits(weights.path, shapes, missing, unexpected, wrong)
    for name, other in tied.items():
        if name in weights and not same_bytes(weights[name], weights[other]):
            raise CheckpointError(weights.path, f'tensor {short(name)}: conflict',
                                  f'the bytes of {other}, which it is tied to', 'other bytes')
    return found


# %%
#| export
def _misfits(path, shapes: Mapping, missing: list, unexpected: list, wrong: dict) -> CheckpointError:
    "All that does not fit, in one message."
    said = lambda of: [f'{short(name)[1:-1]} of shape {of[name]}' for name in sorted(wrong)[:10]]
    expected = [f'missing: {listed(missing)}']*bool(missing) + said({n: tuple(s) for n, s in shapes.items()})
    observed = [f'unexpected: {listed(unexpected)}']*bool(unexpected) + said(wrong)
    turned = [name for name, s in wrong.items() if s == tuple(shapes[name])[::-1]]
    hint = f'transpose: stored as in×out ({listed(turned)})' if turned else ''
    return CheckpointError(path, 'tensors do not fit the model', '; '.join(expected) or 'no others',
                           '; '.join(observed) or 'not there', hint)


# %%
#| export
def same_bytes(a: np.ndarray, b: np.ndarray) -> bool:
    "Whether two arrays hold the same bytes, NaNs and signs of zero included."
    if a.dtype != b.dtype or a.shape != b.shape: return False
    x, y, step = a.reshape(-1).view(np.uint8), b.reshape(-1).view(np.uint8), 1 << 20
    return all(np.array_equal(x[i:i + step], y[i:i + step]) for i in range(0, len(x), step))


# %%
first = {name: w.stored[name].shape for name in list(w)[:3]}
find_tensors(w, first, ignore=r'.*')

# %%
wrong = {'token_embd.weight': (576, 49152), 'output.weight': (49152, 576)}
try: find_tensors(w, first | wrong, ignore=r'blk\.(?!29).*')
except CheckpointError as e: print(str(e).replace(str(w.path.parent.parent), 'data'))

# %% [markdown]
# Tied, the missing one is found:

# %%
tied = {'output.weight': 'token_embd.weight'}
find_tensors(w, {'output.weight': (49152, 576)}, tied, ignore=r'.*')

# %% [markdown]
# ## What this does not show
#
# That the tensors are the model's is decided by their names and shapes. Weights of another model of the same shape are
# accepted, and say what that model says.
