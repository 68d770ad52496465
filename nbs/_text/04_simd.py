# %%
#| default_exp simd

# %% [markdown]
# # Eight numbers at a time
# > A dozen words for the vector registers of a processor, to be used in numba loops.

# %% [markdown]
# A processor adds eight pairs of numbers as fast as one pair: its registers are 256 bits wide, and a `float32` takes 32.
# Compilers use this by themselves in simple loops. They may not where it would change the order of a sum, and they do not
# where numbers are stored in 16, 8 or 4 bits. Then one has to say it.
#
# The words below work in two places. In Python each is a few lines of NumPy, which *are* its meaning. In a function that
# numba compiles, each becomes one or two instructions. The two are tested against each other.

# %%
#| hide
#| export
import functools, inspect, operator
from typing import Callable, NamedTuple

import numpy as np
from llvmlite import binding, ir
from numba.core import cgutils, config, types
from numba.core.datamodel import models
from numba.extending import lower_builtin, register_model, type_callable
from numpy import float32

# %% [markdown]
# ## The type
#
# Eight `float32` numbers; to numba a value like any other. In Python they are an array of length 8.

# %%
#| export
_WIDTH = 8
_F32, _I32 = ir.FloatType(), ir.IntType(32)
_V, _VI = ir.VectorType(_F32, _WIDTH), ir.VectorType(_I32, _WIDTH)

class F32x8(types.Type):
    "numba's type of eight float32 numbers in one register."
    def __init__(self): super().__init__(name='f32x8')

f32x8 = F32x8()

@register_model(F32x8)
class _Model(models.PrimitiveModel):
    def __init__(self, manager, of): super().__init__(manager, of, _V)


# %% [markdown]
# ## What the processor can do
#
# LLVM, the compiler behind numba, translates eight-wide code for any processor: into one instruction with AVX2, into two
# for narrower registers. Only the fused multiply-add matters to results: $a b + c$ with one rounding where the processor
# has it, with two where it does not.

# %%
#| export
@functools.cache
def _features() -> dict:
    "What the processor that numba compiles for has; `NUMBA_CPU_FEATURES` and `NUMBA_CPU_NAME` override the machine."
    if config.CPU_FEATURES is None: return dict(binding.get_host_cpu_features())
    return {f[1:]: f[0] == '+' for f in config.CPU_FEATURES.split(',') if f}

def has_avx2() -> bool:
    "Are there 256-bit registers and fused multiply-adds? Without them the same words work, at a fraction of the speed."
    return all(_features().get(f, False) for f in ('avx2', 'fma'))

def _fused() -> bool: return _features().get('fma', False) or _features().get('neon', False)


# %%
has_avx2()


# %% [markdown]
# ## Words
#
# A word is declared once: what it takes, what it gives, its LLVM code, and below them its meaning in Python. Its attribute
# `__word__` says what it gives and which memory it touches, which is what a checker of bounds has to know.

# %%
#| export
class Access(NamedTuple):
    "A word's access to memory: `cells` cells of its argument `array` from its argument `index` on; `rows` times, `stride` apart."
    array: int               # the number of an argument
    index: int               # likewise
    cells: int
    write: bool = False
    rows: int = 1
    stride: int | None = None  # the number of an argument

def _word(takes: tuple, gives: types.Type, code: Callable, *access: Access) -> Callable:
    "Make a Python function known to numba: the types of its arguments, of its result, and its code."
    fits = lambda want, got: want(got) if callable(want) and not isinstance(want, types.Type) else want == got
    def register(meaning):
        def typer(context):
            def typed(*args): return gives if all(map(fits, takes, args)) else None
            typed.__signature__ = inspect.signature(meaning)
            return typed
        type_callable(meaning)(typer)
        known = [t if isinstance(t, types.Type) else types.Any for t in takes]
        lower_builtin(meaning, *known)(lambda context, builder, sig, args: code(_Emit(context, builder, sig), *args))
        if meaning.__module__ != operator.add.__module__: meaning.__word__ = (_GIVES.get(gives), access)
        return meaning
    return register

_GIVES = {types.float32: 'f32', f32x8: 'vector'}

def _flat(dtype: types.Type) -> Callable:
    return lambda t: isinstance(t, types.Array) and t.ndim == 1 and t.layout == 'C' and t.aligned and t.dtype == dtype
def _index(t) -> bool: return isinstance(t, types.Integer)
def _number(t) -> bool: return t == types.float32


# %%
#| export
class _Emit:
    "Writes LLVM code for one use of a word."
    def __init__(self, context, builder, sig): self.context, self.builder, self.sig = context, builder, sig

    def address(self, array, index, which: int = 0):
        "Where the cell `index` of the argument `which` is; the index is the next argument."
        at = self.context.cast(self.builder, index, self.sig.args[which + 1], types.intp)
        return self.builder.gep(self.context.make_array(self.sig.args[which])(self.context, self.builder, array).data, [at])
    def load(self, where, of=_V, align=4): return self.builder.load(self.builder.bitcast(where, of.as_pointer()), align=align, typ=of)
    def store(self, where, value): self.builder.store(value, self.builder.bitcast(where, value.type.as_pointer()), align=4)
    def nothing(self): return self.context.get_dummy_value()
    def splat(self, x, of=_V):
        none, order = ir.Constant(of, ir.Undefined), ir.Constant(ir.VectorType(_I32, of.count), [0]*of.count)
        return self.builder.shuffle_vector(self.builder.insert_element(none, x, ir.Constant(_I32, 0)), none, order)
    def shuffle(self, v, order): return self.builder.shuffle_vector(v, ir.Constant(v.type, ir.Undefined), ir.Constant(_VI, order))
    def call(self, name, result, *args):
        function = cgutils.get_or_insert_function(self.builder.module, ir.FunctionType(result, [a.type for a in args]), name)
        return self.builder.call(function, args)
    def fma(self, a, b, c):
        return self.call(f'llvm.fma.v{a.type.count}f32', a.type, a, b, c) if _fused() else self.builder.fadd(self.builder.fmul(a, b), c)


# %% [markdown]
# ### Memory and registers
#
# Arrays are flat: one axis, contiguous. A load past the end of an array is an error in Python; compiled, nothing checks it,
# as with any index in numba, and that is what `bendml.kernel` is for.

# %%
#| export
def _cells(a: np.ndarray, i: int, n: int = _WIDTH) -> np.ndarray:
    if not 0 <= i <= len(a) - n: raise IndexError(f'{n} cells from {i} on, in an array of {len(a)}')
    return a[i:i + n]

@_word((_flat(types.float32), _index), f32x8, lambda e, a, i: e.load(e.address(a, i)), Access(0, 1, _WIDTH))
def load(a: np.ndarray, i: int) -> np.ndarray:
    "Eight numbers from a[i] on."
    return _cells(a, i).copy()

def _store(e, a, i, v):
    e.store(e.address(a, i), v)
    return e.nothing()

@_word((_flat(types.float32), _index, f32x8), types.none, _store, Access(0, 1, _WIDTH, True))
def store(a: np.ndarray, i: int, v: np.ndarray) -> None:
    "a[i:i + 8] = v"
    _cells(a, i)[:] = v

@_word((_number,), f32x8, lambda e, x: e.splat(x))
def splat(x: float32) -> np.ndarray:
    "The same number, eight times."
    return np.full(_WIDTH, x, float32)


# %%
a = np.arange(12, dtype=float32)
store(a, 4, load(a, 0))
a

# %%
try: load(a, 5)
except IndexError as e: print(e)


# %% [markdown]
# ### Arithmetic
#
# `+`, `-` and `*` work lane by lane. Compiled, `fma` rounds once; its meaning in Python rounds twice. The two differ by at
# most half a unit in the last place of the product, a relative $2^{-24}$ of $|ab|$, and then the last rounding.

# %%
#| export
@_word((f32x8, f32x8, f32x8), f32x8, lambda e, a, b, c: e.fma(a, b, c))
def fma(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    "a*b + c, lane by lane; rounded once where the processor can."
    return a*b + c

def _operator(op: Callable, code: str) -> None:
    _word((f32x8, f32x8), f32x8, lambda e, a, b: getattr(e.builder, code)(a, b))(op)

for _op, _code in ((operator.add, 'fadd'), (operator.sub, 'fsub'), (operator.mul, 'fmul')): _operator(_op, _code)


# %% [markdown]
# The sum of the eight lanes, in a fixed order: halves onto each other, three times.

# %%
#| export
def _halves(e: _Emit, v):
    for distance in (4, 2, 1): v = e.builder.fadd(v, e.shuffle(v, [lane ^ distance for lane in range(_WIDTH)]))
    return e.builder.extract_element(v, ir.Constant(_I32, 0))

@_word((f32x8,), types.float32, _halves)
def hsum(v: np.ndarray) -> float32:
    "The sum of eight lanes: ((v0 + v4) + (v2 + v6)) + ((v1 + v5) + (v3 + v7))."
    v = v[:4] + v[4:]
    v = v[:2] + v[2:]
    return v[0] + v[1]


# %% [markdown]
# ### Widening
#
# Weights are often stored small, and widened as they are read: a `bfloat16` is the upper half of a `float32`, eight-bit and
# four-bit integers are whole numbers that a scale makes into weights. All of them are exact. Two four-bit numbers share a
# byte, and whoever packed them decides which two; so there is a word for the lower and one for the upper halves.

# %%
#| export
def _widen(bits: int, to_float: Callable) -> Callable:
    "Load eight small integers and widen them."
    small = ir.VectorType(ir.IntType(bits), _WIDTH)
    return lambda e, a, i: to_float(e.builder, e.load(e.address(a, i), small, bits//8))

def _all(n: int): return ir.Constant(_VI, [n]*_WIDTH)
_8CELLS = Access(0, 1, _WIDTH)

@_word((_flat(types.uint16), _index), f32x8, _widen(16, lambda b, v: b.bitcast(b.shl(b.zext(v, _VI), _all(16)), _V)), _8CELLS)
def load_bf16(a: np.ndarray, i: int) -> np.ndarray:
    "Eight bfloat16 numbers, whose bits are in a uint16 array."
    return (_cells(a, i).astype(np.uint32) << 16).view(float32)

@_word((_flat(types.int8), _index), f32x8, _widen(8, lambda b, v: b.sitofp(b.sext(v, _VI), _V)), _8CELLS)
def load_i8(a: np.ndarray, i: int) -> np.ndarray:
    "Eight whole numbers from -128 to 127."
    return _cells(a, i).astype(float32)

@_word((_flat(types.uint8), _index), f32x8, _widen(8, lambda b, v: b.uitofp(b.and_(b.zext(v, _VI), _all(15)), _V)), _8CELLS)
def load_low4(a: np.ndarray, i: int) -> np.ndarray:
    "The lower four bits of eight bytes: whole numbers from 0 to 15."
    return (_cells(a, i) & 15).astype(float32)

@_word((_flat(types.uint8), _index), f32x8, _widen(8, lambda b, v: b.uitofp(b.lshr(b.zext(v, _VI), _all(4)), _V)), _8CELLS)
def load_high4(a: np.ndarray, i: int) -> np.ndarray:
    "The upper four bits of eight bytes: whole numbers from 0 to 15."
    return (_cells(a, i) >> 4).astype(float32)


# %% [markdown]
# ### Sixty-four products
#
# A row of weights times a vector is nothing but loads, widening and multiply-adds, and where the weights are small the widening
# takes longest. So there is one word for sixty-four of them, in pieces of sixteen: a processor with 512-bit registers widens
# sixteen weights with one instruction, another does it in two halves. The sixty-four products are added up to eight sums.

# %%
#| export
_BLOCK = 64
_V16, _VI16 = ir.VectorType(_F32, 16), ir.VectorType(_I32, 16)

def _products(small: ir.Type, to_float: Callable) -> Callable:
    "Widen sixty-four numbers of a type and multiply them with as many floats."
    align = 4 if small == _F32 else small.width//8
    def code(e, w, i, x, j):
        w, x, total = e.address(w, i), e.address(x, j, 2), None
        for n in range(0, _BLOCK, 16):
            at = [ir.Constant(_I32, n)]
            a = to_float(e.builder, e.load(e.builder.gep(w, at), ir.VectorType(small, 16), align))
            b = e.load(e.builder.gep(x, at), _V16)
            total = e.builder.fmul(a, b) if total is None else e.fma(a, b, total)
        return e.builder.fadd(e.shuffle(total, list(range(8))), e.shuffle(total, list(range(8, 16))))
    return code

def _all16(n: int): return ir.Constant(_VI16, [n]*16)
def _eight_sums(w: np.ndarray, x: np.ndarray, j: int) -> np.ndarray: return (w*_cells(x, j, _BLOCK)).reshape(-1, _WIDTH).sum(0)
_64CELLS = Access(0, 1, _BLOCK), Access(2, 3, _BLOCK)
_floats = _flat(types.float32)

@_word((_floats, _index, _floats, _index), f32x8, _products(_F32, lambda b, v: v), *_64CELLS)
def products(w: np.ndarray, i: int, x: np.ndarray, j: int) -> np.ndarray:
    "w[i:i + 64] times x[j:j + 64], each eighth added up."
    return _eight_sums(_cells(w, i, _BLOCK), x, j)

@_word((_flat(types.uint16), _index, _floats, _index), f32x8, _products(ir.IntType(16), lambda b, v: b.bitcast(b.shl(b.zext(v, _VI16), _all16(16)), _V16)), *_64CELLS)
def products_bf16(w: np.ndarray, i: int, x: np.ndarray, j: int) -> np.ndarray:
    "The same for bfloat16 numbers."
    return _eight_sums((_cells(w, i, _BLOCK).astype(np.uint32) << 16).view(float32), x, j)

@_word((_flat(types.int8), _index, _floats, _index), f32x8, _products(ir.IntType(8), lambda b, v: b.sitofp(b.sext(v, _VI16), _V16)), *_64CELLS)
def products_i8(w: np.ndarray, i: int, x: np.ndarray, j: int) -> np.ndarray:
    "The same for whole numbers from -128 to 127."
    return _eight_sums(_cells(w, i, _BLOCK).astype(float32), x, j)


# %% [markdown]
# And one at a time, for what is left over at the end of a row:

# %%
#| export
def _narrow(e: _Emit, a, i):
    bits = e.builder.load(e.address(a, i))
    return e.builder.bitcast(e.builder.shl(e.builder.zext(bits, _I32), ir.Constant(_I32, 16)), _F32)

@_word((_flat(types.float32), _index), types.float32, lambda e, a, i: e.builder.load(e.address(a, i)), Access(0, 1, 1))
def one(a: np.ndarray, i: int) -> float32:
    "a[i]"
    return _cells(a, i, 1)[0]

@_word((_flat(types.uint16), _index), types.float32, _narrow, Access(0, 1, 1))
def one_bf16(a: np.ndarray, i: int) -> float32:
    "One bfloat16 number."
    return (_cells(a, i, 1).astype(np.uint32) << 16).view(float32)[0]

@_word((_flat(types.int8), _index), types.float32, lambda e, a, i: e.builder.sitofp(e.builder.load(e.address(a, i)), _F32), Access(0, 1, 1))
def one_i8(a: np.ndarray, i: int) -> float32:
    "One whole number from -128 to 127."
    return float32(_cells(a, i, 1)[0])

def _half(code: str, n: int) -> Callable:
    "Half a byte as a number."
    return lambda e, a, i: e.builder.uitofp(getattr(e.builder, code)(byte := e.builder.load(e.address(a, i)), ir.Constant(byte.type, n)), _F32)

@_word((_flat(types.uint8), _index), types.float32, _half('and_', 15), Access(0, 1, 1))
def one_low4(a: np.ndarray, i: int) -> float32:
    "The lower four bits of a byte: a whole number from 0 to 15."
    return float32(_cells(a, i, 1)[0] & 15)

@_word((_flat(types.uint8), _index), types.float32, _half('lshr', 4), Access(0, 1, 1))
def one_high4(a: np.ndarray, i: int) -> float32:
    "The upper four bits of a byte."
    return float32(_cells(a, i, 1)[0] >> 4)


# %%
load_low4(np.arange(0, 256, 17, dtype=np.uint8), 2), one_high4(np.array([0x7f], np.uint8), 0)


# %%
#| export
def to_bf16(
    x: np.ndarray,  # float32
) -> np.ndarray:    # uint16, of the same shape
    "The nearest bfloat16 numbers, ties to even; what is not a number stays so."
    bits = np.ascontiguousarray(x, float32).view(np.uint32)
    rounded = (bits + (0x7fff + (bits >> 16 & 1)).astype(np.uint32)) >> 16
    return np.where(np.isnan(x), bits >> 16 | 0x40, rounded).astype(np.uint16)


# %%
load_bf16(to_bf16(np.array([1, -2, np.pi, 1e-40, np.inf, 0, 3e38, 255], float32)), 0)

# %% [markdown]
# ### Words of one's own
#
# Other pages add words for what they store. They declare them with the same tools.

# %%
#| export
new_word, flat, index, features = _word, _flat, _index, _features
VECTOR, INTS, INT, FLOAT = _V, _VI, _I32, _F32

# %% [markdown]
# ## Compiled, against its meaning

# %%
from numba import njit

def dot(a, b, n):
    "n is a multiple of 8."
    total = splat(float32(0))
    for i in range(0, n, 8): total = fma(load(a, i), load(b, i), total)
    return hsum(total)

rng = np.random.default_rng(0)
a, b = rng.integers(-9, 9, (2, 64)).astype(float32)
print(dot(a, b, 64), njit(dot)(a, b, 64), a @ b)
assert dot(a, b, 64) == njit(dot)(a, b, 64) == a @ b  # whole numbers: nothing is rounded

# %% [markdown]
# Wrong types are refused when the loop is compiled:

# %%
try: njit(lambda a: load(a, 0))(np.zeros(8))  # float64
except Exception as e: print(next(line for line in str(e).splitlines() if 'load' in line))

# %% [markdown]
# ## What this does not show
#
# - That an index is right. Compiled code trusts it.
# - Longer registers. The next page, on [tiles](04a_tiles.ipynb), has some.
