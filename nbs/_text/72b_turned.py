# %%
#| default_exp turned

# %% [markdown]
# # Turned once
# > GPT-2's matrices lie the other way round in their file. What was turned is kept on disk, and is not believed blindly.

# %% [markdown]
# The published file stores its matrices in×out; a product with one row of numbers wants them out×in, so that a row of memory
# is one sum. Turning them takes a third of a second and a second copy in memory, each time a program starts. So they are turned once and
# written to a file of their own, which the next program maps, as it maps the model.
#
# A cache is a promise that may be broken: the model's file was replaced, the disk was full, somebody edited the folder. This
# page says what is done about each.

# %%
#| hide
#| export
import hashlib, os, warnings
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from bendml import gpt2
from bendml.checkpoint.files import open_weights
from bendml.checkpoint.safetensors import read_safetensors, write_safetensors
from bendml.checkpoint.weights import CheckpointError, Weights
from bendml.data import data_dir

# %% [markdown]
# ## Which file
#
# The name of a kept file comes from the place, size, time and number of the model's file. If any of them changes, it is
# another name, and the old file is not looked at again.

# %%
#| export
LEAST, MOST = 64 << 20, 4 << 30   # bytes: less is not worth a file; more is not kept, the oldest goes first

def kept_at(path: Path, folder: Path) -> Path:
    "Where the turned matrices of a file are kept."
    s = os.stat(path)
    text = f'out×in {os.path.realpath(path)} {s.st_size} {s.st_mtime_ns} {s.st_ino} {s.st_dev}'
    return folder/f'{hashlib.sha256(text.encode()).hexdigest()[:32]}.safetensors'


# %% [markdown]
# ## Is it right?
#
# A kept file is read like a stranger's. Names, types and shapes must be those that are wanted. And numbers are compared with
# the model's own, a few small squares of each matrix, in places that only the name decides. That reads a few kilobytes, and finds
# a file that was replaced by a program which puts the old time back.

# %%
#| export
SIDE, SQUARES = 8, 4

def same_numbers(weights: Weights, name: str, turned: np.ndarray) -> bool:
    "Do some squares of a matrix say the same in the model's file and turned?"
    stored, convert = weights[name], weights.types[weights.stored[name].dtype].float32
    rng = np.random.default_rng(list(name.encode()))
    for _ in range(SQUARES):
        i, j = (int(rng.integers(0, max(n - SIDE, 1))) for n in stored.shape)
        if not np.array_equal(convert(stored[i:i + SIDE, j:j + SIDE]).T, turned[j:j + SIDE, i:i + SIDE], equal_nan=True): return False
    return True

def read_kept(weights: Weights, names: Iterable[str], file: Path) -> Mapping[str, np.ndarray] | None:
    "The turned matrices, if they are there and right."
    try: kept = read_safetensors(file)
    except (OSError, CheckpointError): return None
    if set(kept) != set(names): return None
    for name, s in kept.stored.items():
        if s.dtype != 'F32' or s.shape != weights.stored[name].shape[::-1] or not same_numbers(weights, name, kept[name]): return None
    return kept


# %% [markdown]
# ## Keeping
#
# Written entirely or not at all, by [the same function](64c_safetensors.ipynb) that writes checkpoints. Where it cannot be
# written, one warning says so, and everything goes on without. The folder may be deleted at any time.

# %%
#| export
def keep(turned: Mapping[str, np.ndarray], file: Path, most: int = MOST) -> None:
    "Write turned matrices, and make room: the files that were used longest ago go first."
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_safetensors(file, turned, {'layout': 'out×in'})
        room = most
        for f in sorted(file.parent.glob('*.safetensors'), key=lambda f: (f != file, -f.stat().st_mtime_ns)):
            room -= f.stat().st_size
            if room < 0 and f != file: f.unlink()
    except OSError as e: warnings.warn(f'turned matrices are not kept, and will be turned again: {e}', stacklevel=3)

def turned(
    weights: Weights,
    names: list[str],            # of matrices that are stored in×out
    folder: Path | None = None,  # None: `turned` among the data sets
    least: int = LEAST,
) -> Mapping[str, np.ndarray]:   # out×in, float32
    "Matrices of a file, transposed: from the disk if they were kept there, else made and kept."
    if sum(weights.stored[n].end - weights.stored[n].begin for n in names) < least: return {}
    file = kept_at(weights.path, folder or data_dir()/'turned')
    if (kept := read_kept(weights, names, file)) is not None:
        try: os.utime(file)
        except OSError: pass
        return kept
    made = {n: np.ascontiguousarray(weights.float32(n).T) for n in names}
    keep(made, file)
    return made


# %%
#| export
def load_gpt2(
    path,                                # a file of published tensors, an index, or a folder with one of these
    config: gpt2.Config | None = None,   # None: as the tensors' shapes say
    folder: Path | None = None,          # where turned matrices are kept
    least: int = LEAST,                  # bytes of them from which on
) -> gpt2.Gpt2:
    "A GPT-2 from its file, its matrices turned once."
    weights = open_weights(path)
    plain = {name.removeprefix('transformer.'): name for name in weights}
    tensors = {short: weights[name] if short.endswith(('attn.bias', 'attn.masked_bias')) else weights.float32(name) for short, name in plain.items()}
    config = config or gpt2.sizes_of(tensors)
    gpt2.check_tensors(tensors, config)
    if hasattr(weights, 'files'): return gpt2.from_tensors(tensors, config)   # in pieces: turned each time
    names = {plain[short]: short for short, wanted in gpt2.published(config).items() if wanted.transposed}
    found = turned(weights, list(names), folder, least)
    return gpt2.from_tensors(tensors, config, {names[name]: a for name, a in found.items()})


# %% [markdown]
# A small model, with the bound set to zero so that it is kept all the same:

# %%
#| hide
import tempfile
temporary = tempfile.TemporaryDirectory()
folder = Path(temporary.name)

# %%
model = gpt2.init(gpt2.Config(1, 2, 128, vocab=50, context=16))
write_safetensors(folder/'model.safetensors', gpt2.to_tensors(model))
first = load_gpt2(folder/'model.safetensors', folder=folder/'turned', least=0)
again = load_gpt2(folder/'model.safetensors', folder=folder/'turned', least=0)
assert all(np.array_equal(a, b) for a, b in zip(gpt2.parameters(first), gpt2.parameters(again), strict=True))
first.blocks[0].up.w.flags.owndata, again.blocks[0].up.w.flags.owndata, len(list((folder/'turned').iterdir()))

# %% [markdown]
# A kept file with another number in it is not believed, and made anew:

# %%
kept = next((folder/'turned').iterdir())
write_safetensors(kept, {n: a + 1 for n, a in read_safetensors(kept).items()})
mended = load_gpt2(folder/'model.safetensors', folder=folder/'turned', least=0)
assert np.array_equal(mended.blocks[0].up.w, model.blocks[0].up.w)

# %%
#| hide
temporary.cleanup()

# %% [markdown]
# ## What this does not show
#
# A single bit that flips on the disk is not found; it would not be found in the model's own file either. Models whose files
# hold 16 bits a number are kept with 32, which is twice as much.
