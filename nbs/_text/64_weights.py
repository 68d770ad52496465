# %%
#| default_exp checkpoint.weights

# %% [markdown]
# # Weights in a file
# > Named arrays that are views of the file's own bytes, and one way to say what is wrong with a file.

# %% [markdown]
# A language model is a few hundred arrays with names, in a file of some hundred megabytes. This page is what all file
# formats share: how a file becomes arrays without being copied, and how it is refused. Whether a file may be believed is
# decided on the [next page](64b_layout.ipynb); the formats follow after that.

# %%
#| hide
#| export
import math, mmap, os, stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np


# %% [markdown]
# ## Refusing
#
# A refusal says where, what was expected, what was observed, and perhaps what to do. What a file says may be long or hold
# characters that do things to a terminal, so it is made fit to be shown first.

# %%
#| export
class CheckpointError(ValueError):
    "A file of weights is not what was expected: where, expected, observed, and perhaps a hint."
    def __init__(self, where, problem: str, expected: str, observed: str, hint: str = ''):
        text = f'{where}: {problem}\n- expected : {expected}\n- observed : {observed}'
        super().__init__(text + (f'\nhint: {hint}' if hint else ''))
        self.problem = problem
    def __str__(self): return self.args[0]


# %%
#| export
class Missing(CheckpointError, KeyError):
    "There is nothing of that name."

def short(text: object) -> str:
    "Something that a file says, fit to be shown: no control characters, and not much of it."
    shown = ascii(text[:61] if isinstance(text, (str, bytes)) else text)
    return shown if len(shown) <= 60 else shown[:57] + '...'


# %%
print(CheckpointError('a.gguf', f'tensor {short(chr(7)*3)}', '4 bytes', '3 bytes', 'fetch it again'))


# %% [markdown]
# ## A mapped file
#
# A file is *mapped*: its bytes appear in memory as they are touched, and an array is a view of them. Opening a file of
# 500 MB takes a few milliseconds, and two programs that read it share the memory. Nobody can write through a view. Only a
# tensor that begins at an address that does not fit its type is copied; files written by today's libraries have none.

# %%
#| export
def map_file(
    path: str | os.PathLike,
    least: int,               # bytes; a shorter file is refused
) -> mmap.mmap:
    "The bytes of a file, mapped; `CheckpointError` for what is no file, or too short."
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise CheckpointError(path, 'not a file', 'a regular file', 'a folder or a device')
    with open(path, 'rb') as f:
        size = os.fstat(f.fileno()).st_size
        if size < least:
            raise CheckpointError(path, 'truncated', f'a file of {least} bytes or more', f'{size} bytes')
        return mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)


# %%
#| export
def view(data: mmap.mmap, dtype: str, shape: tuple[int, ...], begin: int) -> np.ndarray:
    "An array on the file's own bytes, read only; a copy where they are not aligned."
    a = np.ndarray(shape, dtype, data, begin)
    if not a.flags.aligned:
        a = a.copy()
        a.flags.writeable = False
    return a


# %% [markdown]
# The first test image of MNIST, 16 bytes into its file:

# %%
from bendml.data import fetch
data = map_file(fetch('mnist')/'t10k-images-idx3-ubyte', 16)
images = view(data, 'u1', (10_000, 28, 28), 16)
images[0, 8:12, 6:14]

# %%
try: images[0] = 0
except ValueError as e: print(e)


# %% [markdown]
# ## Element types
#
# NumPy has no bfloat16. It is float32 without its lower 16 bits, so widening it is exact: put the zeros back. The other
# way rounds to the nearest, and to the even one of two that are equally near; a NaN stays one.

# %%
#| export
def widen(bits: np.ndarray) -> np.ndarray:
    "bfloat16, as uint16, to float32, exactly."
    return (bits.astype(np.uint32) << 16).view(np.float32)

def narrow(x: np.ndarray) -> np.ndarray:
    "float32 to the nearest bfloat16, as uint16; ties to even, NaN to NaN."
    bits = np.asarray(x, np.float32).view(np.uint32)
    nearest = bits + (0x7fff + (bits >> 16 & 1)) >> 16
    return np.where(np.isnan(x), bits >> 16 | 0x40, nearest).astype(np.uint16)


# %%
widen(np.array([0x3f80, 0xc000, 0x7f80, 0x7fc0], np.uint16))

# %%
halfway = np.float32([1 + 2**-8, 1 + 3*2**-8])   # each between two bfloat16 numbers
widen(narrow(halfway))


# %% [markdown]
# A type says how many bytes hold how many elements. Most hold one; formats that squeeze a number into 4 bits hold 32
# together. Such a block comes as bytes, and so does what NumPy has no type for.

# %%
#| export
class Type(NamedTuple):
    "An element type: `size` bytes hold `block` elements, and NumPy shows them as `numpy`."
    block: int
    size: int
    numpy: str                                                 # u1 for bytes
    float32: Callable[[np.ndarray], np.ndarray] | None = None  # what they are as float32


# %%
#| export
def as_float32(a: np.ndarray) -> np.ndarray:
    "Numbers as float32, as they are if they are float32."
    return a.astype(np.float32, copy=False)

class Stored(NamedTuple):
    "A tensor in a file: its type's name, its shape, and its bytes."
    dtype: str
    shape: tuple[int, ...]
    begin: int   # byte offset
    end: int     # one past the last byte


# %%
#| export
def possible(shape: tuple[int, ...]) -> bool:
    "Whether an array can have this shape: NumPy's sizes have 63 bits, zeros left out."
    return len(shape) <= 64 and math.prod(d for d in shape if d) < 1 << 59


# %% [markdown]
# ## Tensors by name

# %%
#| export
class Weights(Mapping[str, np.ndarray]):
    "The tensors of a file by name: views of it, read only, made when they are asked for."
    def __init__(self, path: str | os.PathLike, data: mmap.mmap, types: Mapping[str, Type],
                 stored: dict[str, Stored], metadata: Mapping):
        self.path, self.data, self.types, self.stored, self.metadata = Path(path), data, types, stored, metadata

    def __iter__(self): return iter(self.stored)
    def __len__(self): return len(self.stored)
    def __contains__(self, name): return name in self.stored
    def __repr__(self): return f'Weights({self.path.name}: {len(self)} tensors, {len(self.data):,} bytes)'

    def find(self, name: str) -> Stored:
        "Where a tensor is stored; `Missing` if it is not."
        if name in self.stored: return self.stored[name]
        raise Missing(self.path, 'no such tensor', short(name), f'{len(self)} other tensors')

    def __getitem__(self, name: str) -> np.ndarray:
        s = self.find(name)
        a = view(self.data, self.types[s.dtype].numpy, _shown(s, self.types[s.dtype]), s.begin)
        if a.dtype == bool and a.size and a.view('u1').max() > 1:
            raise CheckpointError(self.path, f'tensor {short(name)}', 'booleans, 0 or 1',
                                  f'a byte {a.view("u1").max()}')
        return a

    def float32(self, name: str) -> np.ndarray:
        "A tensor as float32: the view itself if it is stored so, else converted."
        s = self.find(name)
        if convert := self.types[s.dtype].float32: return convert(self[name])
        raise CheckpointError(self.path, f'tensor {short(name)}', 'a type that float32 can show',
                              s.dtype, 'take the bits, and convert them yourself')


# %%
#| export
def _shown(s: Stored, t: Type) -> tuple[int, ...]:
    "The shape in which NumPy shows a tensor: where blocks fill its rows, the last axis counts bytes."
    if t.block == 1: return s.shape
    if s.shape and s.shape[-1] % t.block == 0: return (*s.shape[:-1], s.shape[-1]//t.block*t.size)
    return (s.end - s.begin,)


# %%
types = {'U8': Type(1, 1, 'u1', as_float32), 'pair': Type(2, 1, 'u1')}
stored = {'first': Stored('U8', (28, 28), 16, 800), 'nibbles': Stored('pair', (28, 56), 800, 1584)}
w = Weights('digits', data, types, stored, {})
w, w['first'].shape, w.float32('first').dtype, w['nibbles'].shape

# %%
try: w['last']
except KeyError as e: print(e)

# %% [markdown]
# ## What this does not show
#
# A file that another program cuts short while it is mapped ends this one: the operating system has no bytes to show, and
# sends a signal instead of an error. Replace such a file by a new one (`bendml` does when it writes); do not shorten it.
