# %%
#| default_exp tiles

# %% [markdown]
# # Tiles of sums
# > What a matrix product spends its time in: many sums in registers, and how few numbers have to be loaded for them.

# %% [markdown]
# A matrix product spends its time in this: six rows of $A$ meet sixteen columns of $B$. Twelve registers hold the 6×16 sums,
# two hold a piece of a row of $B$, one a number of $A$, and all fifteen stay where they are while $k$ runs. `tile_fma` is
# one step of $k$: it reads six numbers and sixteen, and does ninety-six multiplications and additions with them.
#
# There are two kinds of step: `tile_fma` rounds once, `tile_mul_add` rounds the product and then the sum, as three plain
# loops would.

# %%
#| hide
#| export
from typing import Callable

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import models
from numba.extending import register_model
from numpy import float32

from bendml.simd import Access, _cells, _Emit, _F32, _features, _flat, _GIVES, _I32, _index, _V, _V16, _word, f32x8

# %% [markdown]
# ## Two sizes
#
# Some processors have registers twice as long, and twice as many. There a tile of 12×32 fits, in 24 registers of sixteen numbers: the
# four words that begin with `wide`. A loop asks `lanes()` how long a register is, and takes one wide tile or four others; the
# answer is known when it is compiled, and only one of the two is left.

# %%
#| export
ROWS, COLS = 6, 16
HIGH, LONG = 2*ROWS, 2*COLS   # of the wide tile

class F32x16(types.Type):
    "numba's type of sixteen float32 numbers in one register."
    def __init__(self): super().__init__(name='f32x16')

@register_model(F32x16)
class _Model16(models.PrimitiveModel):
    def __init__(self, manager, of): super().__init__(manager, of, _V16)

_tile, _wide = types.UniTuple(f32x8, ROWS*COLS//8), types.UniTuple(F32x16(), HIGH*LONG//16)
_GIVES.update({_tile: 'tile', _wide: 'tile'})

def has_avx512() -> bool:
    "Are there registers of 512 bits?"
    return _features().get('avx512f', False)

@_word((), types.float32, lambda e: ir.Constant(_F32, 16. if has_avx512() else 8.))
def lanes() -> float32:
    "How many numbers the longest register holds: 16, or 8."
    return float32(16 if has_avx512() else 8)


# %% [markdown]
# In LLVM a tile is a row of registers, in Python an array. Both sizes share their code.

# %%
#| export
def _zeros(of: types.UniTuple, register: ir.Type) -> Callable:
    return lambda e: e.context.make_tuple(e.builder, of, [ir.Constant(register, [0.0]*register.count)]*of.count)

def _step(of: types.UniTuple, register: ir.Type, fused: bool) -> Callable:
    "One step of k, for a tile whose rows take two registers each."
    def code(e, t, a, i, step, b, j):
        sums, at, at_b = cgutils.unpack_tuple(e.builder, t), e.address(a, i, 1), e.address(b, j, 4)
        row = [e.load(e.builder.gep(at_b, [ir.Constant(_I32, c*register.count)]), register) for c in range(2)]
        step = e.context.cast(e.builder, step, e.sig.args[3], types.intp)
        for n in range(len(sums)):
            if n % 2 == 0: x = e.splat(e.load(e.builder.gep(at, [e.builder.mul(step, ir.Constant(step.type, n//2))]), _F32), register)
            sums[n] = e.fma(x, row[n % 2], sums[n]) if fused else e.builder.fadd(sums[n], e.builder.fmul(x, row[n % 2]))
        return e.context.make_tuple(e.builder, of, sums)
    return code

def _outer(t, a, i, step, b, j): return t + np.outer([a[i + r*step] for r in range(len(t))], _cells(b, j, t.shape[1]))


# %%
#| export
def _step_takes(of: types.UniTuple) -> tuple: return of, _flat(types.float32), _index, _index, _flat(types.float32), _index
def _step_reads(rows: int, cols: int) -> tuple: return Access(1, 2, 1, rows=rows, stride=3), Access(4, 5, cols)

@_word((), _tile, _zeros(_tile, _V))
def tile() -> np.ndarray:
    "6×16 sums, all of them zero."
    return np.zeros((ROWS, COLS), float32)

@_word((), _wide, _zeros(_wide, _V16))
def wide() -> np.ndarray:
    "12×32 sums, all of them zero."
    return np.zeros((HIGH, LONG), float32)

@_word(_step_takes(_tile), _tile, _step(_tile, _V, True), *_step_reads(ROWS, COLS))
def tile_fma(t: np.ndarray, a: np.ndarray, i: int, step: int, b: np.ndarray, j: int) -> np.ndarray:
    "Add to the tile a[i], a[i + step], ..., six of them, times b[j:j + 16]; rounded once where the processor can."
    return _outer(t, a, i, step, b, j)

@_word(_step_takes(_tile), _tile, _step(_tile, _V, False), *_step_reads(ROWS, COLS))
def tile_mul_add(t: np.ndarray, a: np.ndarray, i: int, step: int, b: np.ndarray, j: int) -> np.ndarray:
    "The same, the product rounded and then the sum."
    return _outer(t, a, i, step, b, j)

@_word(_step_takes(_wide), _wide, _step(_wide, _V16, True), *_step_reads(HIGH, LONG))
def wide_fma(t: np.ndarray, a: np.ndarray, i: int, step: int, b: np.ndarray, j: int) -> np.ndarray:
    "Add to the wide tile a[i], a[i + step], ..., twelve of them, times b[j:j + 32]; rounded once."
    return _outer(t, a, i, step, b, j)


# %% [markdown]
# A tile comes from a matrix whose rows are `stride` apart, and goes back there.

# %%
#| export
def _places(e: _Emit, a, i, stride, of: types.UniTuple, register: ir.Type):
    "The addresses of a tile's registers, two in a row."
    stride, start = e.context.cast(e.builder, stride, e.sig.args[2], types.intp), e.address(a, i)
    for n in range(of.count):
        away = e.builder.add(e.builder.mul(stride, ir.Constant(stride.type, n//2)), ir.Constant(stride.type, n % 2*register.count))
        yield e.builder.gep(start, [away])

def _load_tile(of: types.UniTuple, register: ir.Type) -> Callable:
    return lambda e, a, i, stride: e.context.make_tuple(e.builder, of, [e.load(w, register) for w in _places(e, a, i, stride, of, register)])

def _store_tile(of: types.UniTuple, register: ir.Type) -> Callable:
    def code(e, a, i, stride, t):
        for where, v in zip(_places(e, a, i, stride, of, register), cgutils.unpack_tuple(e.builder, t)): e.store(where, v)
        return e.nothing()
    return code

_at = _flat(types.float32), _index, _index


# %%
#| export
@_word(_at, _tile, _load_tile(_tile, _V), Access(0, 1, COLS, rows=ROWS, stride=2))
def tile_load(a: np.ndarray, i: int, stride: int) -> np.ndarray:
    "Six rows of sixteen numbers; row r begins at a[i + r*stride]."
    return np.array([_cells(a, i + r*stride, COLS) for r in range(ROWS)])

@_word(_at, _wide, _load_tile(_wide, _V16), Access(0, 1, LONG, rows=HIGH, stride=2))
def wide_load(a: np.ndarray, i: int, stride: int) -> np.ndarray:
    "Twelve rows of 32 numbers; row r begins at a[i + r*stride]."
    return np.array([_cells(a, i + r*stride, LONG) for r in range(HIGH)])

@_word((*_at, _tile), types.none, _store_tile(_tile, _V), Access(0, 1, COLS, True, ROWS, 2))
def tile_store(a: np.ndarray, i: int, stride: int, t: np.ndarray) -> None:
    "Write six rows of sixteen numbers; row r begins at a[i + r*stride]."
    for r in range(ROWS): _cells(a, i + r*stride, COLS)[:] = t[r]

@_word((*_at, _wide), types.none, _store_tile(_wide, _V16), Access(0, 1, LONG, True, HIGH, 2))
def wide_store(a: np.ndarray, i: int, stride: int, t: np.ndarray) -> None:
    "Write twelve rows of 32 numbers; row r begins at a[i + r*stride]."
    for r in range(HIGH): _cells(a, i + r*stride, LONG)[:] = t[r]


# %% [markdown]
# ## Compiled, against its meaning

# %%
from numba import njit

def product(a, b, c, k):
    "c (6, 16) = a, stored column after column, times b (k, 16)."
    t = tile()
    for p in range(k): t = tile_mul_add(t, a, 6*p, 1, b, 16*p)
    tile_store(c, 0, 16, t)

rng = np.random.default_rng(0)
a, b = rng.standard_normal(60, float32), rng.standard_normal(160, float32)
slow, fast = np.empty(96, float32), np.empty(96, float32)
product(a, b, slow, 10)
njit(product)(a, b, fast, 10)
assert np.array_equal(slow, fast)  # the same bits

# %% [markdown]
# ## What this does not show
#
# - That an index is right. Compiled code trusts it; the kernels of the [matrix product](42_gemm.ipynb) are proved to keep it right.
# - That a processor is faster with longer registers. On the one of this page both tiles do the same number of multiplications in a
#   cycle; the wide one loads less for them.
