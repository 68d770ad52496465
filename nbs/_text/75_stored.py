# %%
#| default_exp stored

# %% [markdown]
# # Stored weights
# > A matrix in the file's own bytes, in 32, 16, 8 or 4 bits a number.

# %% [markdown]
# Most weights of a language model do not need 32 bits. A number of 16, 8 or 4 bits is made a `float32` as it is read. This
# page says how matrices lie in memory and how their numbers are taken out; the [next page](75b_matvec.ipynb) multiplies with
# them. A model's weights stay where they are, in the file, which is mapped into memory; nothing is unpacked ahead of time,
# and nothing is copied.

# %%
#| hide
#| export
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numpy import float32

from bendml.threads import get_threads
from bendml.simd import (_F32, Access, _flat, _index, _word, fma, load, load_bf16, load_high4, load_i8, load_low4, splat, store, to_bf16)
from numba import njit, prange, types


# %% [markdown]
# ## Bytes
#
# The weights of a model are one piece of memory. Different formats want to see it as numbers of different kinds, so we
# hold it as four arrays on the same bytes, and say where a tensor begins in bytes.

# %%
#| export
class Memory(NamedTuple):
    "One piece of memory, as numbers of four kinds."
    u8: np.ndarray
    i8: np.ndarray
    u16: np.ndarray
    f32: np.ndarray

def memory(
    data,  # bytes, a mapped file, or an array of uint8
) -> Memory:
    "Memory as arrays that cannot be written; a wider number that the end cuts off is left out."
    u8 = np.frombuffer(data, np.uint8)
    u8.flags.writeable = False
    return Memory(u8, u8.view(np.int8), u8[:len(u8)//2*2].view(np.uint16), u8[:len(u8)//4*4].view(float32))


# %% [markdown]
# ## Formats
#
# A format turns bytes into numbers, 32 at a time, in four registers of eight. `at` is where a row begins, `n` is which 32
# of the row. The plain ones first. A `bfloat16` is the upper half of a `float32`.

# %%
#| export
@njit
def f32(m, at, n):
    "Stored as they are."
    p = (at >> 2) + 32*n
    return load(m.f32, p), load(m.f32, p + 8), load(m.f32, p + 16), load(m.f32, p + 24)

@njit
def bf16(m, at, n):
    "16 bits each, exact in float32."
    p = (at >> 1) + 32*n
    return load_bf16(m.u16, p), load_bf16(m.u16, p + 8), load_bf16(m.u16, p + 16), load_bf16(m.u16, p + 24)


# %% [markdown]
# The others come from llama.cpp's GGUF. They share a scale among the 32: the weight is $d\,q$, or $d\,q + m$. The scale is a
# 16-bit float, for which numba has no word yet. We add one to [those for registers](04_simd.ipynb).

# %%
#| export
def _half(e, a, i): return e.builder.fpext(e.load(e.address(a, i), ir.HalfType(), 2), _F32)

@_word((_flat(types.uint16), _index), types.float32, _half, Access(0, 1, 1))
def half(a: np.ndarray, i: int) -> float32:
    "a[i], the bits of a float16, as a float32."
    return float32(a[i:i + 1].view(np.float16)[0])


# %%
#| export
@njit
def q8_0(m, at, n):
    "34 bytes: the scale, then 32 numbers from -127 to 127."
    p = at + 34*n
    d = splat(half(m.u16, p >> 1))
    return d*load_i8(m.i8, p + 2), d*load_i8(m.i8, p + 10), d*load_i8(m.i8, p + 18), d*load_i8(m.i8, p + 26)

@njit
def q4_0(m, at, n):
    "18 bytes: the scale, then 32 numbers from -8 to 7; the first 16 are the lower halves of the bytes."
    p = at + 18*n
    d = splat(half(m.u16, p >> 1))
    eight = splat(float32(8))
    return (d*(load_low4(m.u8, p + 2) - eight), d*(load_low4(m.u8, p + 10) - eight),
            d*(load_high4(m.u8, p + 2) - eight), d*(load_high4(m.u8, p + 10) - eight))

@njit
def q4_1(m, at, n):
    "20 bytes: the scale and the smallest, then 32 numbers from 0 to 15."
    p = at + 20*n
    d, low = splat(half(m.u16, p >> 1)), splat(half(m.u16, (p >> 1) + 1))
    return (fma(load_low4(m.u8, p + 4), d, low), fma(load_low4(m.u8, p + 12), d, low),
            fma(load_high4(m.u8, p + 4), d, low), fma(load_high4(m.u8, p + 12), d, low))


# %%
#| export
class Format(NamedTuple):
    "How 32 weights are stored."
    number: int       # what kernels know it by
    size: int         # bytes for 32
    decode: Callable

FORMATS = {'F32': Format(0, 128, f32), 'BF16': Format(1, 64, bf16), 'Q8_0': Format(2, 34, q8_0),
           'Q4_0': Format(3, 18, q4_0), 'Q4_1': Format(4, 20, q4_1)}


# %% [markdown]
# ## A tensor
#
# Compiled code does not look whether a byte is there. So a tensor is made in one place, which does.

# %%
#| export
class TensorError(ValueError):
    "A matrix cannot be read in place."

class Tensor(NamedTuple):
    "A matrix in memory, row after row, in one of the formats."
    memory: Memory
    format: str
    at: int                 # byte offset of the first row
    shape: tuple[int, int]  # rows, numbers a row

    @property
    def size(self) -> int: return self.shape[0]*self.shape[1]//32*FORMATS[self.format].size

def tensor(m: Memory, format: str, at: int, shape: tuple[int, int]) -> Tensor:
    "A matrix at byte `at`; `TensorError` if its format is not known, its rows are no multiples of 32, or the memory ends before it does."
    wrong = lambda what, expected, observed: TensorError(f'{what}\n- expected : {expected}\n- observed : {observed}')
    if format not in FORMATS: raise wrong('a format that cannot be multiplied in place', ', '.join(FORMATS), format)
    if len(shape) != 2 or min(shape) < 1 or shape[1] % 32: raise wrong('a matrix of this shape', 'two axes, rows of a multiple of 32 numbers', f'{shape}')
    t = Tensor(m, format, at, shape)
    if not 0 <= at <= len(m.u8) - t.size: raise wrong('a matrix outside the memory', f'{t.size} bytes from byte {at} on', f'{len(m.u8)} bytes')
    if at % (4 if format == 'F32' else 2): raise wrong('a matrix at an odd place', 'a multiple of 4 bytes for F32, of 2 for others', f'{at}')
    return t


# %% [markdown]
# ## Taking the numbers out
#
# Plain `float32` of a tensor, which is what long prompts are computed with.

# %%
#| export
def _unpacker(decode):
    "A loop that writes out the numbers from block n0 to block n1."
    @njit
    def unpack(m, at, n0, n1, out):
        for n in range(n0, n1):
            w0, w1, w2, w3 = decode(m, at, n)
            store(out, 32*n, w0)
            store(out, 32*n + 8, w1)
            store(out, 32*n + 16, w2)
            store(out, 32*n + 24, w3)
    return unpack

_f32, _bf16, _q8_0, _q4_0, _q4_1 = map(_unpacker, (f32, bf16, q8_0, q4_0, q4_1))

@njit(cache=True, parallel=True)
def _unpack_all(number, m, at, count, out, parts):
    for t in prange(parts):
        n0, n1 = t*count//parts, (t + 1)*count//parts
        if number == 0: _f32(m, at, n0, n1, out)
        elif number == 1: _bf16(m, at, n0, n1, out)
        elif number == 2: _q8_0(m, at, n0, n1, out)
        elif number == 3: _q4_0(m, at, n0, n1, out)
        else: _q4_1(m, at, n0, n1, out)


# %%
#| export
def unpack(w: Tensor) -> np.ndarray:
    "The matrix as float32."
    out = np.empty(w.shape, float32)
    _unpack_all(FORMATS[w.format].number, w.memory, w.at, out.size//32, out.reshape(-1), get_threads())
    return out


# %% [markdown]
# ## Making them small
#
# The other way round, for weights that come as `float32`. Each block of 32 keeps its largest number (`Q8_0`), or its
# smallest and largest (`Q4_1`).

# %%
#| export
def pack(
    w: np.ndarray,  # (rows, k) float32, k a multiple of 32
    format: str,    # F32, BF16, Q8_0 or Q4_1
) -> np.ndarray:    # bytes
    "Weights in a format; what is lost is half a step of the scale."
    w = np.ascontiguousarray(w, float32)
    if format == 'F32': return w.reshape(-1).view(np.uint8)
    if format == 'BF16': return to_bf16(w).reshape(-1).view(np.uint8)
    if format not in ('Q8_0', 'Q4_1'): raise TensorError(f'a format to pack into\n- expected : F32, BF16, Q8_0, Q4_1\n- observed : {format}')
    blocks, steps = w.reshape(-1, 32), 254 if format == 'Q8_0' else 15
    low = -np.abs(blocks).max(1, keepdims=True) if format == 'Q8_0' else blocks.min(1, keepdims=True)
    high = -low if format == 'Q8_0' else blocks.max(1, keepdims=True)
    with np.errstate(over='ignore', invalid='ignore'): d, low = ((high - low)/steps).astype(np.float16), low.astype(np.float16)
    if not (np.isfinite(d).all() and np.isfinite(low).all()): raise TensorError(f'weights to pack into {format}\n- expected : finite, at most 65504\n- observed : {np.abs(w).max()}')
    step = np.where(d == 0, 1, d.astype(float32))
    half_bits = lambda a: a.view(np.uint8).reshape(-1, 2)
    if format == 'Q8_0':
        q = np.rint(blocks/step).clip(-127, 127).astype(np.int8)
        return np.hstack((half_bits(d), q.view(np.uint8))).reshape(-1)
    q = np.rint((blocks - low.astype(float32))/step).clip(0, 15).astype(np.uint8)
    return np.hstack((half_bits(d), half_bits(low), q[:, :16] | q[:, 16:] << 4)).reshape(-1)


# %%
rng = np.random.default_rng(0)
w = rng.standard_normal((300, 768), float32)
for name in ('F32', 'BF16', 'Q8_0', 'Q4_1'):
    t = tensor(memory(pack(w, name)), name, 0, w.shape)
    print(f'{name:5} {FORMATS[name].size/32:6.3f} bytes a weight, of which at most {np.abs(unpack(t) - w).max():.4f} is lost')

# %% [markdown]
# What is refused, before a byte is touched:

# %%
for wrong in (('F32', 0, (300, 769)), ('F32', 4, (300, 768)), ('Q3_K', 0, (1, 256))):
    try: tensor(memory(pack(w, 'F32')), *wrong)
    except TensorError as e: print(e)

# %% [markdown]
# ## What this does not show
#
# - That a model with smaller weights says the same. It does not, quite; the pages on the models say how much is lost.
# - The K formats of llama.cpp, which have scales of scales. They can be [read](65_blocks.ipynb), and then packed.
