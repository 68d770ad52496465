# %%
#| default_exp checkpoint.blocks

# %% [markdown]
# # Numbers in blocks
# > How four bits hold a weight: a few neighbours share one scale.

# %% [markdown]
# A step of a language model reads every weight once, so its speed is the size of its weights. Most weights do not need 32
# bits, nor 16. If 32 neighbours share one scale, each of them needs only a small whole number, and the loss is hardly
# felt. The files of [llama.cpp](https://github.com/ggml-org/llama.cpp) store weights like this, in a dozen ways. This
# page turns these blocks back into float32, with the same bits as llama.cpp's own Python library does. Models that
# decode fast do not do this: they compute on the blocks. Here is what they must agree with.

# %%
#| hide
#| export
from collections.abc import Callable

import numpy as np

from bendml.checkpoint.weights import Type, as_float32, widen


# %% [markdown]
# ## Two ways to read bytes
#
# A scale is a float16. Small numbers are fields of a few bits, and the order is the same in all formats: a run of bytes
# holds the lowest field of each of its bytes first, then the next field of each.

# %%
#| export
def _half(b: np.ndarray, at: int) -> np.ndarray:
    "The float16 at an offset of each block, as float32, (N, 1)."
    return b[:, at:at + 2].copy().view('<f2').astype(np.float32)

def fields(
    b: np.ndarray,  # (N, K) bytes
    bits: int,      # of one field: 1, 2 or 4
    run: int,       # bytes whose first fields come before their second ones
) -> np.ndarray:    # (N, 8K/bits) int8
    "Small numbers out of bytes."
    shifts = np.arange(0, 8, bits, dtype=np.uint8)[:, None]
    return (b.reshape(len(b), -1, 1, run) >> shifts & (1 << bits) - 1).reshape(len(b), -1).view(np.int8)


# %%
two = np.array([[0x21, 0x43]], np.uint8)
fields(two, 4, 2), fields(two, 4, 1)


# %% [markdown]
# ## 32 numbers and a scale
#
# In the oldest formats a number is $d\,q$, or $d\,q + m$ where the block also has a smallest value. Of five bits, the
# fifth ones lie apart from the rest.

# %%
#| export
def q8_0(b): return _half(b, 0)*b[:, 2:].view(np.int8)
def q4_0(b): return _half(b, 0)*(fields(b[:, 2:], 4, 16) - 8)
def q4_1(b): return _half(b, 0)*fields(b[:, 4:], 4, 16) + _half(b, 2)
def q5_0(b): return _half(b, 0)*((fields(b[:, 6:], 4, 16) | fields(b[:, 2:6], 1, 1) << 4) - 16)
def q5_1(b): return _half(b, 0)*(fields(b[:, 8:], 4, 16) | fields(b[:, 4:8], 1, 1) << 4) + _half(b, 2)


# %% [markdown]
# A block of Q4_0 in full: a scale of 0.5 and sixteen bytes `0xf1`. The low halves are $0.5\,(1-8)$, the high halves
# $0.5\,(15-8)$.

# %%
block = np.frombuffer(np.float16(0.5).tobytes() + b'\xf1'*16, np.uint8)[None]
q4_0(block)


# %% [markdown]
# ## 256 numbers in groups
#
# The later *K* formats take 256 numbers together, in groups of 32 or 16. Each group has a scale of its own, and this too is
# a small number: of six bits, times one float16 for all 256. The eight scales and eight offsets of Q4_K and Q5_K share
# twelve bytes: the first four of each are the low six bits of a byte; the last four take four bits from the third row,
# and the two bits that the first rows had left over.

# %%
#| export
def _six(b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    "Eight scales and eight offsets of six bits out of twelve bytes, (N, 8) each."
    first, second, third = b[:, :4], b[:, 4:8], b[:, 8:]
    scales = np.hstack([first & 63, third & 15 | first >> 6 << 4])
    return scales, np.hstack([second & 63, third >> 4 | second >> 6 << 4])


# %%
#| export
def _each(d: np.ndarray, q: np.ndarray) -> np.ndarray:
    "The value of its group, for each number."
    return np.repeat(d, q.shape[1]//d.shape[1], axis=1)

def _scaled(b: np.ndarray, q: np.ndarray) -> np.ndarray:
    "What Q4_K and Q5_K have in common: scales and offsets of eight groups."
    scales, offsets = _six(b[:, 4:16])
    return _each(_half(b, 0)*scales, q)*q - _each(_half(b, 2)*offsets, q)


# %%
#| export
def q4_k(b): return _scaled(b, fields(b[:, 16:], 4, 32))
def q5_k(b): return _scaled(b, fields(b[:, 48:], 4, 32) | fields(b[:, 16:48], 1, 32) << 4)

def q6_k(b):
    q = (fields(b[:, :128], 4, 64) | fields(b[:, 128:192], 2, 32) << 4) - 32
    return _each(_half(b, 208)*b[:, 192:208].view(np.int8), q)*q


# %% [markdown]
# ## Rows
#
# A tensor's rows are whole blocks. They are converted some thousand blocks at a time, so that what is needed in between
# stays small.

# %%
#| export
def _rows(decode: Callable[[np.ndarray], np.ndarray], block: int, size: int) -> Type:
    "The type whose blocks of `size` bytes hold `block` numbers each."
    def float32(a: np.ndarray) -> np.ndarray:
        blocks = a.reshape(-1, size)
        out = np.empty((len(blocks), block), np.float32)
        with np.errstate(all='ignore'):   # a broken scale is inf or nan, and no reason to stop
            for i in range(0, len(blocks), 4096): out[i:i + 4096] = decode(blocks[i:i + 4096])
        return out.reshape(*a.shape[:-1], a.shape[-1]//size*block)
    return Type(block, size, 'u1', float32)


# %% [markdown]
# The types by name, and the number that stands for each in a file. Those without a conversion can be opened, and their
# bytes taken.

# %%
#| export
TYPES = {'F32': Type(1, 4, '<f4', as_float32), 'F16': Type(1, 2, '<f2', as_float32), 'F64': Type(1, 8, '<f8', as_float32),
         'BF16': Type(1, 2, '<u2', widen),
         'Q8_0': _rows(q8_0, 32, 34), 'Q4_0': _rows(q4_0, 32, 18), 'Q4_1': _rows(q4_1, 32, 20),
         'Q5_0': _rows(q5_0, 32, 22), 'Q5_1': _rows(q5_1, 32, 24),
         'Q4_K': _rows(q4_k, 256, 144), 'Q5_K': _rows(q5_k, 256, 176), 'Q6_K': _rows(q6_k, 256, 210),
         'I8': Type(1, 1, 'i1'), 'I16': Type(1, 2, '<i2'), 'I32': Type(1, 4, '<i4'), 'I64': Type(1, 8, '<i8'),
         'Q2_K': Type(256, 84, 'u1'), 'Q3_K': Type(256, 110, 'u1'),
         'IQ4_NL': Type(32, 18, 'u1'), 'IQ4_XS': Type(256, 136, 'u1')}

NUMBERS = {0: 'F32', 1: 'F16', 2: 'Q4_0', 3: 'Q4_1', 6: 'Q5_0', 7: 'Q5_1', 8: 'Q8_0', 10: 'Q2_K', 11: 'Q3_K',
           12: 'Q4_K', 13: 'Q5_K', 14: 'Q6_K', 20: 'IQ4_NL', 23: 'IQ4_XS', 24: 'I8', 25: 'I16', 26: 'I32',
           27: 'I64', 28: 'F64', 30: 'BF16'}

# %% [markdown]
# How many bits a number takes, and what a made-up block of each type looks like:

# %%
rng = np.random.default_rng(0)
for name, t in TYPES.items():
    if t.block > 1 and t.float32:
        b = rng.integers(0, 256, (1, t.size), np.uint8)
        for at in (0, 2, 208): b[:, at + 1:at + 2] &= 0x3f   # scales that are small numbers
        print(f'{name}: {8*t.size/t.block} bits,', t.float32(b)[0, :4].round(3))

# %% [markdown]
# ## What this does not show
#
# How well the numbers were squeezed: that was decided when the file was made. That models whose kernels compute on the
# blocks agree with these float32 numbers is shown on the pages of those models.
