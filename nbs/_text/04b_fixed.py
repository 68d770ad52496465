# %%
#| default_exp fixed

# %% [markdown]
# # Three bytes instead of a float
# > Whole numbers are multiplied four at a time. For that, a row of floats becomes whole numbers of 24 bits.

# %% [markdown]
# Weights of eight or four bits are whole numbers times a scale. Making a float of each takes three instructions for every
# sixteen weights, and longer than memory takes to bring them. Processors have an instruction that multiplies 64 pairs of bytes and adds up
# each four products, without rounding. For it, the other side has to be bytes too.
#
# So $x$ becomes whole numbers times a step, $x \approx s\,(2^{16} h + 2^8 m + l)$, with three bytes from -128 to 127. The step is the largest
# number of a piece, divided by $2^{23} - 2^{15} - 2^7 - 1$, and no number is off by more than half a step: $2^{-24}$ of the largest one,
# about what a float is off at that size. All sums of products are then exact, until they become floats. So such a product is as
# good as one with floats, unless most of the numbers in a piece are much smaller than the largest.

# %%
#| hide
#| export
import numpy as np
from llvmlite import ir
from numba import types
from numpy import float32

from bendml.simd import INT, Access, f32x8, features, flat, index, new_word

# %%
#| export
FULL = 127*(2**16 + 2**8 + 1)   # the largest whole number of three such bytes
_V, _I, _B16, _B64 = (ir.VectorType(t, n) for t, n in ((ir.FloatType(), 16), (INT, 16), (ir.IntType(8), 16), (ir.IntType(8), 64)))
_floats = flat(types.float32)

def has_vnni(lanes: int = 16) -> bool:
    "Does the processor multiply and add four bytes in each of 8 or 16 lanes? Without it the products are written out, slower and with the same bits."
    has = lambda name: features().get(name, False)
    return has('avx512vnni') and (lanes == 16 or has('avx512vl')) or lanes == 8 and has('avxvnni')

def fours(e, total, w, x):
    "total + the sums of each four products of bytes, w without sign, x with."
    b, of = e.builder, total.type
    if has_vnni(of.count): return e.call(f'llvm.x86.avx512.vpdpbusd.{32*of.count}', of, total, b.bitcast(w, of), b.bitcast(x, of))
    wide = ir.VectorType(INT, 4*of.count)
    products = b.mul(b.zext(w, wide), b.sext(x, wide))
    for n in range(4): total = b.add(total, b.shuffle_vector(products, products, ir.Constant(of, list(range(n, 4*of.count, 4)))))
    return total

def _same(of: ir.VectorType, n): return ir.Constant(of, [n]*of.count)
def _at(e, start, cell: int, of: ir.VectorType): return e.load(e.builder.gep(start, [ir.Constant(INT, cell)]), of)


# %% [markdown]
# ## Splitting
#
# 64 numbers become 48 cells: their bytes $h$, then $m$, then $l$. The other side must be without sign, so that 128 is added to weights of
# eight bits, and 8 to those of four. What that adds to the sums is known here, and is written after the bytes, to be taken off:
# 16 cells for $h$ and $m$ together, 16 for $l$.

# %%
#| export
def _split(blocks: int):
    def code(e, x, i, per, added, out, j):
        b, start, to = e.builder, e.address(x, i), e.address(out, j, 4)
        added = e.splat(b.trunc(e.context.cast(b, added, e.sig.args[3], types.int64), ir.IntType(8)), _B64)
        sums = [_same(_I, 0)]*3
        for n in range(blocks):
            qs = [b.fptosi(e.call('llvm.rint.v16f32', _V, b.fmul(_at(e, start, 64*n + 16*v, _V), e.splat(per, _V))), _I) for v in range(4)]
            for digit in (2, 1, 0):
                parts = [b.trunc(q, _B16) for q in qs]
                for v, part in enumerate(parts): e.store(b.gep(to, [ir.Constant(INT, 48*n + 16*digit + 4*v)]), part)
                sums[digit] = fours(e, sums[digit], added, _at(e, to, 48*n + 16*digit, _B64))
                qs = [b.ashr(b.add(q, _same(_I, 128)), _same(_I, 8)) for q in qs]
        e.store(b.gep(to, [ir.Constant(INT, 48*blocks)]), b.neg(b.add(b.shl(sums[0], _same(_I, 8)), sums[1])))
        e.store(b.gep(to, [ir.Constant(INT, 48*blocks + 16)]), b.neg(sums[2]))
        return e.nothing()
    return code

def _split_meaning(blocks, x, i, per, added, out, j):
    q = np.rint(x[i:i + 64*blocks]*per).astype(np.int32).reshape(blocks, 64)
    middle = (q + 128) >> 8
    digits = np.stack(((middle + 128) >> 8, middle, q), 1).astype(np.int8)
    h, m, l = -added*digits.reshape(blocks, 3, 16, 4).sum((0, 3), dtype=np.int32)
    out[j:j + 48*blocks] = digits.reshape(-1).view(float32)
    out[j + 48*blocks:j + 48*blocks + 32] = np.concatenate((256*h + m, l)).astype(np.int32).view(float32)

_takes = _floats, index, lambda t: t == types.float32, index, _floats, index

@new_word(_takes, types.none, _split(4), Access(0, 1, 256), Access(4, 5, 224, True))
def split256(x: np.ndarray, i: int, per: float32, added: int, out: np.ndarray, j: int) -> None:
    "x[i:i + 256] times `per`, rounded to whole numbers, in 224 cells."
    _split_meaning(4, x, i, per, added, out, j)

@new_word(_takes, types.none, _split(2), Access(0, 1, 128), Access(4, 5, 128, True))
def split128(x: np.ndarray, i: int, per: float32, added: int, out: np.ndarray, j: int) -> None:
    "x[i:i + 128] likewise, in 128 cells."
    _split_meaning(2, x, i, per, added, out, j)


# %% [markdown]
# ## Products
#
# Sixteen sums grow at a time. That of $h$ is moved up by eight bits and added to that of $m$: both together still fit 32 bits.

# %%
#| export
def _sums(e, weights, d, blocks: int):
    "Sixteen sums of weights times whole numbers."
    b, total = e.builder, [_same(_I, 0), _same(_I, 0), _at(e, d, 48*blocks + 16, _I)]
    for n, w in enumerate(weights): total = [fours(e, t, w, _at(e, d, 48*n + 16*digit, _B64)) for digit, t in enumerate(total)]
    upper = b.add(b.add(b.shl(total[0], _same(_I, 8)), total[1]), _at(e, d, 48*blocks, _I))
    return e.fma(b.sitofp(upper, _V), _same(_V, 256.), b.sitofp(total[2], _V))

def _eight(e, v):
    half = lambda lanes: e.builder.shuffle_vector(v, ir.Constant(_V, ir.Undefined), ir.Constant(ir.VectorType(INT, 8), lanes))
    return e.builder.fadd(half(list(range(8))), half(list(range(8, 16))))

def _products_i8(e, w, i, d, j):
    w, d = e.address(w, i), e.address(d, j, 2)
    return _eight(e, _sums(e, [e.builder.xor(e.load(e.builder.gep(w, [ir.Constant(INT, 64*n)]), _B64, 1), _same(_B64, -128)) for n in range(4)], d, 4))

def _products_i4(e, w, i, scale, s, d, j):
    b, scale = e.builder, e.load(e.address(scale, s, 2), four := ir.VectorType(ir.FloatType(), 4))
    w, d = e.load(e.address(w, i), _B64, 1), e.address(d, j, 4)
    halves = b.and_(w, _same(_B64, 15)), b.lshr(w, _same(_B64, 4))
    return _eight(e, b.fmul(_sums(e, halves, d, 2), b.shuffle_vector(scale, ir.Constant(four, ir.Undefined), ir.Constant(_I, [n//4 for n in range(16)]))))

def _whole(d, j, blocks):
    "The whole numbers that were split."
    digits = d[j:j + 48*blocks].view(np.int8).reshape(blocks, 3, 64).astype(np.int64)
    return (digits*np.array([2**16, 2**8, 1])[:, None]).sum(1).reshape(-1)


# %%
#| export
@new_word((flat(types.int8), index, _floats, index), f32x8, _products_i8, Access(0, 1, 256), Access(2, 3, 224))
def products_split_i8(w: np.ndarray, i: int, d: np.ndarray, j: int) -> np.ndarray:
    "256 weights of eight bits times what `split256` has split, 128 having been added: eight sums."
    sums = (w[i:i + 256].astype(np.int64)*_whole(d, j, 4)).reshape(4, 16, 4).sum((0, 2))
    return sums[:8].astype(float32) + sums[8:].astype(float32)

@new_word((flat(types.uint8), index, _floats, index, _floats, index), f32x8, _products_i4, Access(0, 1, 64), Access(2, 3, 4), Access(4, 5, 128))
def products_split_i4(w: np.ndarray, i: int, scale: np.ndarray, s: int, d: np.ndarray, j: int) -> np.ndarray:
    "64 bytes of two weights, the lower halves first, times what `split128` has split, 8 having been added; each 16 bytes times a scale of four: eight sums."
    q = np.concatenate((w[i:i + 64] & 15, w[i:i + 64] >> 4)).astype(np.int64) - 8
    sums = (q*_whole(d, j, 2)).reshape(2, 16, 4).sum((0, 2)).astype(float32)*np.repeat(scale[s:s + 4], 4)
    return sums[:8] + sums[8:]


# %% [markdown]
# Compiled, and in Python:

# %%
from numba import njit
from bendml.simd import store

def eight(w, x, per, out):
    cells = np.empty(224, float32)
    split256(x, 0, per, 128, cells, 0)
    store(out, 0, products_split_i8(w, 0, cells, 0))

rng = np.random.default_rng(0)
w, x = rng.integers(-128, 128, 256).astype(np.int8), rng.standard_normal(256).astype(float32)
slow, fast, per = np.empty(8, float32), np.empty(8, float32), float32(FULL)/abs(x).max()
eight(w, x, per, slow)
njit(eight)(w, x, per, fast)
exact = w.astype(float) @ x
assert np.allclose(slow, fast, rtol=1e-6)
print('off by', abs(fast.sum()/per - exact), 'of', exact)

# %% [markdown]
# ## What this does not show
#
# That numbers fit: whoever splits has to know the largest one. [Matrix times vector](43_matvec.ipynb) looks for it.
