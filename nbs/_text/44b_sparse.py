# %%
#| default_exp tensor.nonzeros

# %% [markdown]
# # Leaving out zeros
# > A matrix as the list of its numbers that are not zero, and both of its products, with the same bits.

# %% [markdown]
# Four pixels of five in a picture of a digit are blank. Adding $0 \cdot w$ to a sum changes nothing, not even a rounding, as
# long as $w$ is finite. So a product with such a matrix need only look at the others. That wants a list of them: row after
# row, the column and the value of each.

# %%
#| hide
#| export
from typing import NamedTuple

import numpy as np
from numpy import float32

from bendml.kernel import Buf, Size, f32, i32, i64, invariant, kernel, prange, requires, u8
from bendml.simd import load, splat, store
from bendml.tensor.arrays import TensorError, dense, result, typed


# %% [markdown]
# ## The list

# %%
#| export
class Sparse(NamedTuple):
    "The non-zero entries of a matrix, row after row: row i has those from `start[i]` to `start[i + 1]`."
    start: np.ndarray  # (rows + 1,) int32
    index: np.ndarray  # (entries,) int32, the column
    value: np.ndarray  # (entries,) float32


# %% [markdown]
# Each byte is written down, and the end of the list moves on only if it was not zero: there is no branch that the processor
# could guess wrongly. The list has one place more than the matrix, for the last of these.

# %%
#| export
@kernel
def list_nonzeros(x: Buf["n*m", u8], start: Buf["n + 1", i32], index: Buf["n*m + 1", i32], value: Buf["n*m + 1", f32], n: Size, m: Size):
    "List the bytes of x (n, m) that are not zero, divided by 255; how many there are."
    requires(n*m < 2**31)
    k = 0
    for i in range(n):
        invariant(0 <= k, k <= i*m)
        start[i] = k
        for j in range(m):
            invariant(0 <= k, k <= i*m + j)
            assert i*m + j < n*m
            index[k] = j
            value[k] = f32(x[i*m + j])/f32(255)
            if i64(x[i*m + j]) != 0: k += 1
    start[n] = k
    return k

def sparse(
    x: np.ndarray,  # (rows, columns) bytes
) -> Sparse:
    "The non-zero bytes of a matrix, divided by 255; `TensorError` for anything but bytes."
    x = dense('sparse: x', x, 2, np.uint8)
    start, index, value = np.empty(len(x) + 1, np.int32), np.empty(x.size + 1, np.int32), np.empty(x.size + 1, float32)
    k = list_nonzeros(x.reshape(-1), start, index, value, *x.shape)
    return Sparse(start, index[:k].copy(), value[:k].copy())


# %%
sparse(np.array([[0, 255, 0], [0, 0, 0], [51, 0, 255]], np.uint8))


# %% [markdown]
# ## Both products
#
# $x W$ and $x^\top G$ are the same loop, once with the list of $x$ and once with that of $x^\top$: a row of sums takes in row
# after row of a matrix, each times a number. A hundred and twenty-eight sums at a time stay in [sixteen registers](04_simd.ipynb) until they are
# done, and each grows strictly from left to right.
#
# What makes this safe is a promise about the numbers *in* the lists: each column must be one that there is, and no row may
# end after the list. `Buf` says so, and it is looked at whenever one of the two products is called.

# %%
#| export
@kernel
def take_rows(first: Size, last: Size, entries: Size, index: Buf["entries", i32, "0 <= index < k"], value: Buf["entries", f32], k: Size, m: Size,
              rows: Buf["k*m", f32], sums: Buf[f32], at: Size):
    "sums[at + j] += value[e]*rows[index[e]*m + j] for each j < m, for e from first to last, in this order."
    requires(last <= entries, m % 128 == 0, at + m <= len(sums), k*m < 2**44, len(sums) < 2**44)
    for c in range(0, m, 128):
        assert c + 128 <= m
        p = at + c
        a0, a1, a2, a3 = load(sums, p), load(sums, p + 8), load(sums, p + 16), load(sums, p + 24)
        b0, b1, b2, b3 = load(sums, p + 32), load(sums, p + 40), load(sums, p + 48), load(sums, p + 56)
        c0, c1, c2, c3 = load(sums, p + 64), load(sums, p + 72), load(sums, p + 80), load(sums, p + 88)
        d0, d1, d2, d3 = load(sums, p + 96), load(sums, p + 104), load(sums, p + 112), load(sums, p + 120)
        for e in range(first, last):
            i = i64(index[e])
            assert i*m + m <= k*m
            x, r = splat(value[e]), i*m + c
            a0, a1, a2, a3 = a0 + x*load(rows, r), a1 + x*load(rows, r + 8), a2 + x*load(rows, r + 16), a3 + x*load(rows, r + 24)
            b0, b1, b2, b3 = b0 + x*load(rows, r + 32), b1 + x*load(rows, r + 40), b2 + x*load(rows, r + 48), b3 + x*load(rows, r + 56)
            c0, c1, c2, c3 = c0 + x*load(rows, r + 64), c1 + x*load(rows, r + 72), c2 + x*load(rows, r + 80), c3 + x*load(rows, r + 88)
            d0, d1, d2, d3 = d0 + x*load(rows, r + 96), d1 + x*load(rows, r + 104), d2 + x*load(rows, r + 112), d3 + x*load(rows, r + 120)
        store(sums, p, a0)
        store(sums, p + 8, a1)
        store(sums, p + 16, a2)
        store(sums, p + 24, a3)
        store(sums, p + 32, b0)
        store(sums, p + 40, b1)
        store(sums, p + 48, b2)
        store(sums, p + 56, b3)
        store(sums, p + 64, c0)
        store(sums, p + 72, c1)
        store(sums, p + 80, c2)
        store(sums, p + 88, c3)
        store(sums, p + 96, d0)
        store(sums, p + 104, d1)
        store(sums, p + 112, d2)
        store(sums, p + 120, d3)


# %% [markdown]
# Each iteration fills a row of its own and then copies it to its place, or adds it to what is there: the derivatives of several
# batches add up.

# %%
#| export
@kernel
def take_all(start: Buf["n + 1", i32, "0 <= start <= entries"], entries: Size, index: Buf["entries", i32, "0 <= index < k"], value: Buf["entries", f32],
             n: Size, k: Size, m: Size, rows: Buf["k*m", f32], out: Buf["n*m", f32], add: bool):
    "out (n, m) = x times rows (k, m); or that added to it."
    requires(m % 128 == 0, k*m < 2**44, n*m < 2**44)
    for i in prange(n):
        sums = np.zeros(m, f32)
        take_rows(i64(start[i]), i64(start[i + 1]), entries, index, value, k, m, rows, sums, 0)
        if add:
            for j in range(m): out[i*m + j] += sums[j]
        else:
            for j in range(m): out[i*m + j] = sums[j]


# %%
#| export
WIDTH = 128  # rows of a matrix that a list is multiplied with are as long as this, or twice, ...

def sparse_matmul(
    x: Sparse,                      # (n, k)
    w: np.ndarray,                  # (k, m), m a multiple of `WIDTH`
    out: np.ndarray | None = None,  # (n, m)
    add: bool = False,              # add to what is in `out`
) -> np.ndarray:                    # (n, m)
    "x w, in the bits of three plain loops; `TensorError` for what does not fit."
    w = dense('sparse_matmul: w', w, 2)
    if w.shape[1] % WIDTH: raise TensorError('sparse_matmul: w', 'wrong number of columns', f'a multiple of {WIDTH}', typed(w.shape))
    if out is None and add: raise TensorError('sparse_matmul', 'add=True without out', 'an array to add to', None)
    start, index, value = (dense(f'sparse_matmul: {n}', a, 1, t) for n, a, t in zip(x._fields, x, (np.int32, np.int32, float32)))
    if not len(start) or len(index) != len(value): raise TensorError('sparse_matmul: x', 'not a list of entries', 'as many columns as values', f'{len(index)} and {len(value)}')
    out = result('sparse_matmul: out', out, (len(start) - 1, w.shape[1]), (w, start, index, value))
    take_all(start, len(index), index, value, len(out), len(w), w.shape[1], w.reshape(-1), out.reshape(-1), add)
    return out


# %% [markdown]
# The same bits as a product that looks at every number:

# %%
from bendml.tensor.gemm import matmul
rng = np.random.default_rng(0)
x = rng.integers(0, 256, (5, 784), np.uint8)*(rng.random((5, 784)) < .2)
w = rng.standard_normal((784, 128), float32)
assert np.array_equal(sparse_matmul(sparse(x.astype(np.uint8)), w), matmul(x/float32(255), w, order='sequential'))

# %% [markdown]
# A list that promises a column too many is refused before anything is read:

# %%
from bendml.kernel import KernelError
s = sparse(np.eye(2, dtype=np.uint8))
try: sparse_matmul(s._replace(index=s.index + 1), np.zeros((2, 128), float32))
except KernelError as e: print(e)

# %% [markdown]
# ## What this does not show
#
# Leaving out zeros is the same bits only while every number of the other matrix is finite: $0 \cdot \infty$ is not a number,
# and three plain loops would say so.
