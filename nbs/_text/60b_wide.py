# %%
#| default_exp nn.wide

# %% [markdown]
# # Sixteen numbers at a time
# > A tile of sums for registers of 512 bits: 8 rows and 48 columns.

# %% [markdown]
# *Hypothesis: the tile should be wider.* With registers of sixteen numbers, 8 rows of $A$ meet 48 columns of $B$: 24 registers
# of sums, and only 11 loads for 24 multiplications. On the processor of this page the inner loop reaches 98 % of what the
# multipliers can do; the tile of [rung 4](42_gemm.ipynb) has 12 multiplications for 8 loads.

# %%
#| hide
#| export
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import models
from numba.extending import register_model
from numpy import float32

from bendml.kernel import word
from bendml.simd import Access, _F32, _I32, _features, _flat, _index, _word

# %% [markdown]
# ## The tile
#
# The same four words as on the page about [vectors](04_simd.ipynb), in another size. In Python a tile is an array of 8×48.

# %%
#| export
HIGH, LONG, LANES = 8, 48, 16
_V16 = ir.VectorType(_F32, LANES)

class F32x16(types.Type):
    "numba's type of sixteen float32 numbers in one register."
    def __init__(self): super().__init__(name='f32x16')

f32x16 = F32x16()
_wide = types.UniTuple(f32x16, HIGH*LONG//LANES)

@register_model(F32x16)
class _Model16(models.PrimitiveModel):
    def __init__(self, manager, of): super().__init__(manager, of, _V16)

def has_avx512() -> bool:
    "Are there registers of 512 bits? Without them the same words work, but slower than the library."
    return _features().get('avx512f', False)


# %%
#| export
def _lanes(e, a, i, stride):
    "The addresses of a tile's registers."
    stride, start = e.context.cast(e.builder, stride, e.sig.args[2], types.intp), e.address(a, i)
    for n in range(_wide.count):
        away = e.builder.add(e.builder.mul(stride, ir.Constant(stride.type, n//3)), ir.Constant(stride.type, n % 3*LANES))
        yield e.builder.gep(start, [away])

def _load_code(e, a, i, stride): return e.context.make_tuple(e.builder, _wide, [e.load(w, _V16) for w in _lanes(e, a, i, stride)])

def _store_code(e, a, i, stride, t):
    for where, v in zip(_lanes(e, a, i, stride), cgutils.unpack_tuple(e.builder, t)): e.store(where, v)
    return e.nothing()

def _step_code(e, t, a, i, step, b, j):
    sums, at, at_b = cgutils.unpack_tuple(e.builder, t), e.address(a, i, 1), e.address(b, j, 4)
    row = [e.load(e.builder.gep(at_b, [ir.Constant(_I32, c)]), _V16) for c in range(0, LONG, LANES)]
    step = e.context.cast(e.builder, step, e.sig.args[3], types.intp)
    none, order = ir.Constant(_V16, ir.Undefined), ir.Constant(ir.VectorType(_I32, LANES), [0]*LANES)
    for n in range(len(sums)):
        if n % 3 == 0:
            x = e.load(e.builder.gep(at, [e.builder.mul(step, ir.Constant(step.type, n//3))]), _F32)
            x = e.builder.shuffle_vector(e.builder.insert_element(none, x, ir.Constant(_I32, 0)), none, order)
        sums[n] = e.call('llvm.fma.v16f32', _V16, x, row[n % 3], sums[n])
    return e.context.make_tuple(e.builder, _wide, sums)


# %%
#| export
@word('tile')
@_word((), _wide, lambda e: e.context.make_tuple(e.builder, _wide, [ir.Constant(_V16, [0.0]*LANES)]*_wide.count))
def wide() -> np.ndarray:
    "8×48 sums, all of them zero."
    return np.zeros((HIGH, LONG), float32)

@word('tile', Access(0, 1, LONG, rows=HIGH, stride=2))
@_word((_flat(types.float32), _index, _index), _wide, _load_code)
def wide_load(a: np.ndarray, i: int, stride: int) -> np.ndarray:
    "Eight rows of 48 numbers; row r begins at a[i + r*stride]."
    return np.array([a[i + r*stride:][:LONG] for r in range(HIGH)])

@word(None, Access(0, 1, LONG, True, HIGH, 2))
@_word((_flat(types.float32), _index, _index, _wide), types.none, _store_code)
def wide_store(a: np.ndarray, i: int, stride: int, t: np.ndarray) -> None:
    "Write eight rows of 48 numbers."
    for r in range(HIGH): a[i + r*stride:][:LONG] = t[r]

@word('tile', Access(1, 2, 1, rows=HIGH, stride=3), Access(4, 5, LONG))
@_word((_wide, _flat(types.float32), _index, _index, _flat(types.float32), _index), _wide, _step_code)
def wide_fma(t: np.ndarray, a: np.ndarray, i: int, step: int, b: np.ndarray, j: int) -> np.ndarray:
    "Add to the tile a[i], a[i + step], ..., eight of them, times b[j:j + 48]; rounded once."
    return t + np.outer([a[i + r*step] for r in range(HIGH)], b[j:j + LONG])


# %% [markdown]
# Compiled, and in Python:

# %%
from numba import njit

def step(a, b, c):
    wide_store(c, 0, LONG, wide_fma(wide(), a, 0, 1, b, 0))

a, b = np.arange(8, dtype=float32), np.arange(48, dtype=float32)
slow, fast = np.empty(8*48, float32), np.empty(8*48, float32)
step(a, b, slow)
njit(step)(a, b, fast)
assert np.array_equal(slow, fast) and np.array_equal(slow.reshape(8, 48), np.outer(a, b))

# %% [markdown]
# ## What this does not show
#
# That an index is right: compiled code trusts it. The kernels on the [next page](60c_products.ipynb) are proved to keep it right.
