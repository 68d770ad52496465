# %%
#| default_exp decode.stored

# %% [markdown]
# # Stored weights
# > A matrix in 32, 16, 8 or 4 bits a number, lying in memory in the order in which it will be read.

# %% [markdown]
# Most weights of a language model do not need 32 bits. A number of 16, 8 or 4 bits is made a `float32` as it is read. This
# page says how matrices lie in memory; the [next page](75b_matvec.ipynb) multiplies with them.
#
# A processor works on eight numbers at a time, and likes to read memory from front to back. In a matrix that lies row after
# row, eight neighbours belong to one sum, and at the end of the row they have to be added up; where a few neighbours share a
# scale, that happens every 32 numbers. So rows are interleaved: neighbours in memory belong to different rows, and eight
# sums grow side by side. Weights are rearranged once, when a model is loaded. It takes a tenth of a second for a hundred megabytes.

# %%
#| hide
#| export
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy import float32

from bendml.kernel import Buf, Size, f32, kernel
from bendml.simd import to_bf16

# %% [markdown]
# ## Cells
#
# All weights of a model are one array. A cell of it is four bytes, and is called a `float32` whatever is in it: one number
# of 32 bits, two of 16, four of 8, or eight of 4. One type of array is enough then, and one proof that no index leaves it.
#
# A *unit* is sixteen rows. A matrix is unit after unit; rows that are missing in the last one are zeros. In a unit, 32
# numbers of each of the sixteen rows take so many cells:

# %%
#| export
UNIT = 16  # rows

F32, BF16, Q8, Q4 = 512, 256, 136, 80  # cells for 32 numbers of 16 rows

class Format(NamedTuple):
    "How a matrix is stored."
    size: int            # cells for 32 numbers of a unit, by which kernels know it
    bytes: int           # for 32 numbers of one row, in a file
    arrange: Callable    # a file's bytes (rows, k/32, bytes) -> cells, 16 rows at a time
    numbers: Callable    # cells of some units, and a row of each -> float32 (rows, k)


# %% [markdown]
# ## Turned over
#
# To interleave rows is to transpose them, cell by cell, a few rows at a time. The function that does it is proved to stay inside its
# arrays ([kernels](29b_kernel.ipynb)). It moves cells, and does not ask what is in them.

# %%
#| export
@kernel
def interleave(groups: Size, rows: Size, n: Size, x: Buf["groups*(rows*n)", f32], y: Buf["groups*(n*rows)", f32]):
    "Groups of `rows` rows of n cells, each group transposed."
    for g in range(groups):
        assert g*(rows*n) + rows*n <= groups*(rows*n)
        assert g*(n*rows) + n*rows <= groups*(n*rows)
        for i in range(n):
            assert i*rows + rows <= n*rows
            for r in range(rows):
                assert r*n + n <= rows*n
                y[g*(n*rows) + i*rows + r] = x[g*(rows*n) + r*n + i]

def _turned(b: np.ndarray, rows: int) -> np.ndarray:
    "Bytes of some rows (rows, ...), in groups of so many, to cells of each group."
    x = np.ascontiguousarray(b).reshape(-1).view(float32)
    groups, n = len(b)//rows, len(x)//len(b)
    y = np.empty_like(x)
    interleave(groups, rows, n, x, y)
    return y.reshape(groups, -1)


# %% [markdown]
# ## Floating point
#
# Sixteen rows are interleaved. A `bfloat16` is the upper half of a `float32`; a cell holds two of them, neighbours in a row.

# %%
#| export
def _sixteen(b): return _turned(b, UNIT)

def _of_f32(c, row): return c.reshape(len(c), -1, UNIT)[np.arange(len(c)), :, row]
def _of_bf16(c, row): return (_of_f32(c, row).copy().view(np.uint16).astype(np.uint32) << 16).view(float32)


# %% [markdown]
# ## Whole numbers with a scale
#
# The other formats come from llama.cpp's GGUF: 32 neighbours of a row share a scale, a float16. The weight is $d\,q$ with $q$
# from −127 to 127 (`Q8_0`), or $d\,q + m$ with $q$ from 0 to 15 (`Q4_1`). `Q4_0` has $d\,(q - 8)$, which is a `Q4_1` with $m = -8d$,
# exactly.
#
# Here eight rows are interleaved, and a unit is two such groups. Of `Q4_1` each row has a cell with $d$ and $m$, then four with
# the numbers; a byte holds column $i$ and column $16 + i$, in its lower and upper half. Of `Q8_0` the eight scales
# come first, in four cells, then eight cells of each row. To these numbers 128 is added, so that they have no sign; the processor's
# word wants it so.

# %%
#| export
def _eight_q4(b): return _turned(b, 8)

def _eight_q8(b):
    rows, n, _ = b.shape
    cells = np.empty((rows//8, n, Q8//2), float32)
    scales = np.ascontiguousarray(b[..., :2]).view(np.uint16).reshape(-1, 8, n)
    cells[..., :4] = np.ascontiguousarray(scales.swapaxes(1, 2)).view(float32)
    cells[..., 4:] = _turned(b[..., 2:] ^ np.uint8(128), 8).reshape(-1, n, 64)
    return cells

def q4_0_as_q4_1(b: np.ndarray) -> np.ndarray:
    "Blocks of Q4_0 (..., 18) as blocks of Q4_1 (..., 20): the smallest number is -8 times the scale."
    low = (b[..., :2].copy().view(np.float16)*np.float16(-8)).view(np.uint8)
    return np.concatenate((b[..., :2], low, b[..., 2:]), axis=-1)


# %%
#| export
def _lane(c, row, size, first):
    "A row out of each unit: its float16 numbers (rows, k/32, n), and its bytes. `first` cells of a group are before them."
    c = c.reshape(len(c), 2, -1, size)[np.arange(len(c)), row//8]
    halves = c[..., :first].view(np.float16).reshape(*c.shape[:2], 8, -1)
    small = c[..., first:].view(np.uint8).reshape(*c.shape[:2], -1, 8, 4)
    each = np.arange(len(c))
    return halves[each, :, row % 8].astype(float32), small[each, :, :, row % 8].reshape(*c.shape[:2], -1)

def _of_q8(c, row):
    d, q = _lane(c, row, Q8//2, 4)
    return (d*(q.astype(float32) - 128)).reshape(len(c), -1)

def _of_q4(c, row):
    d, q = _lane(c, row, Q4//2, 8)
    return (d[..., :1]*np.concatenate((q & 15, q >> 4), axis=2) + d[..., 1:]).reshape(len(c), -1)


# %%
#| export
FORMATS = {'F32': Format(F32, 128, _sixteen, _of_f32), 'BF16': Format(BF16, 64, _sixteen, _of_bf16),
           'Q8_0': Format(Q8, 34, _eight_q8, _of_q8), 'Q4_1': Format(Q4, 20, _eight_q4, _of_q4)}


# %% [markdown]
# ## A tensor
#
# Compiled code does not look whether a cell is there. So a tensor is made in one place, which does.

# %%
#| export
class TensorError(ValueError):
    "A matrix cannot be stored."

def _wrong(what: str, expected: object, observed: object) -> TensorError: return TensorError(f'{what}\n- expected : {expected}\n- observed : {observed}')

class Tensor(NamedTuple):
    "A matrix in an array of cells."
    cells: np.ndarray
    format: str
    at: int                 # its first cell
    shape: tuple[int, int]  # rows, numbers a row

    @property
    def units(self) -> int: return -(-self.shape[0]//UNIT)
    @property
    def size(self) -> int:
        "Cells."
        return self.units*(self.shape[1]//32)*FORMATS[self.format].size

def tensor(cells: np.ndarray, format: str, at: int, shape: tuple[int, int]) -> Tensor:
    "A matrix from cell `at` on; `TensorError` if its format is not known, its rows are no multiples of 32, or the cells end before it does."
    if format not in FORMATS: raise _wrong('a format to multiply with', ', '.join(FORMATS), format)
    if len(shape) != 2 or min(shape) < 1 or shape[1] % 32: raise _wrong('a matrix of this shape', 'two axes, rows of a multiple of 32 numbers', f'{shape}')
    t = Tensor(cells, format, at, shape)
    if not 0 <= at <= len(cells) - t.size: raise _wrong('a matrix outside the memory', f'{t.size} cells from cell {at} on', f'{len(cells)} cells')
    return t

def memory(
    size: int,        # cells
) -> np.ndarray:
    "Room for weights, that begins where a line of the cache does."
    a = np.empty(size + 16, float32)
    skip = -a.ctypes.data % 64//4
    return a[skip:skip + size]


# %%
#| export
def place(
    blocks: list[np.ndarray],  # bytes as a file has them, (rows, k/32, n); one matrix below the other
    t: Tensor,                 # where to put them
) -> None:
    "Write a matrix into its cells, a few rows at a time."
    cells, step = t.cells[t.at:t.at + t.size].reshape(t.units, -1), 16*UNIT
    rows = np.concatenate(blocks) if len(blocks) > 1 else blocks[0]
    for begin in range(0, len(rows), step):
        part = rows[begin:begin + step]
        if len(part) % UNIT: part = np.concatenate((part, np.zeros((-len(part) % UNIT, *part.shape[1:]), np.uint8)))
        cells[begin//UNIT:begin//UNIT + len(part)//UNIT] = FORMATS[t.format].arrange(part).reshape(len(part)//UNIT, -1)

def rows_of(
    t: Tensor,
    ids: np.ndarray,  # (N,) which rows
) -> np.ndarray:      # (N, k) float32
    "Some rows of a matrix as numbers."
    ids = np.asarray(ids)
    cells = t.cells[t.at:t.at + t.size].reshape(t.units, -1)
    with np.errstate(all='ignore'): return FORMATS[t.format].numbers(cells[ids//UNIT], ids % UNIT)

def unpack(t: Tensor) -> np.ndarray:
    "The whole matrix as numbers."
    return np.concatenate([rows_of(t, np.arange(i, min(i + 256, t.shape[0]))) for i in range(0, t.shape[0], 256)])


# %% [markdown]
# ## Making them small
#
# For weights that come as `float32`. Each block of 32 keeps its largest number (`Q8_0`), or its smallest and largest (`Q4_1`).

# %%
#| export
def pack(
    w: np.ndarray,  # (rows, k) float32, k a multiple of 32
    format: str,    # F32, BF16, Q8_0 or Q4_1
) -> np.ndarray:    # uint8 (rows, k/32, n), as a file has them
    "Weights in a format; what is lost is half a step of the scale."
    w = np.ascontiguousarray(w, float32)
    if format not in FORMATS: raise _wrong('a format to pack into', ', '.join(FORMATS), format)
    if w.ndim != 2 or w.shape[1] % 32: raise _wrong('a matrix of this shape', 'two axes, rows of a multiple of 32 numbers', f'{w.shape}')
    bytes_of = lambda a: np.ascontiguousarray(a).view(np.uint8).reshape(len(w), w.shape[1]//32, -1)
    if format == 'F32': return bytes_of(w)
    if format == 'BF16': return bytes_of(to_bf16(w))
    blocks, steps = w.reshape(-1, 32), 254 if format == 'Q8_0' else 15
    low = -np.abs(blocks).max(1, keepdims=True) if format == 'Q8_0' else blocks.min(1, keepdims=True)
    high = -low if format == 'Q8_0' else blocks.max(1, keepdims=True)
    with np.errstate(over='ignore', invalid='ignore'): d, low = ((high - low)/steps).astype(np.float16), low.astype(np.float16)
    if not (np.isfinite(d).all() and np.isfinite(low).all()): raise _wrong(f'weights to pack into {format}', 'finite, at most 65504', np.abs(w).max())
    step = np.where(d == 0, 1, d.astype(float32))
    if format == 'Q8_0': return np.concatenate((bytes_of(d), bytes_of(np.rint(blocks/step).clip(-127, 127).astype(np.int8))), axis=2)
    q = np.rint((blocks - low.astype(float32))/step).clip(0, 15).astype(np.uint8)
    return np.concatenate((bytes_of(d), bytes_of(low), bytes_of(q[:, :16] | q[:, 16:] << 4)), axis=2)

def store_as(
    w: np.ndarray,  # (rows, k) float32
    format: str,
) -> Tensor:
    "A matrix in a memory of its own."
    blocks = pack(w, format)
    t = Tensor(np.empty(0, float32), format, 0, w.shape)
    t = tensor(memory(t.size), format, 0, w.shape)
    place([blocks], t)
    return t


# %%
rng = np.random.default_rng(0)
w = rng.standard_normal((300, 768), float32)
for name in FORMATS:
    t = store_as(w, name)
    print(f'{name:5} {FORMATS[name].bytes/32:6.3f} bytes a weight, of which at most {np.abs(unpack(t) - w).max():.4f} is lost')

# %%
np.array_equal(rows_of(t, [299, 4]), unpack(t)[[299, 4]])

# %% [markdown]
# What is refused:

# %%
for wrong in (('F32', 0, (300, 769)), ('F32', 80_000, (300, 768)), ('Q3_K', 0, (1, 256))):
    try: tensor(t.cells, *wrong)
    except TensorError as e: print(e)

# %% [markdown]
# ## What this does not show
#
# - That a model with smaller weights says the same. It does not, quite; the pages on the models say how much is lost.
# - The K formats of llama.cpp, which have scales of scales. They can be [read](65_blocks.ipynb), and then packed.
