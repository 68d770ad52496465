# %%
#| default_exp tensor.rows

# %% [markdown]
# # Row by row
# > Everything that a network does between two products: add, squash, sum, compare.

# %% [markdown]
# These functions touch each number once or twice. None of them takes long by itself; together they can take longer than the
# products, if each is a walk through memory of its own. So they are loops, each does as much as it can on one walk, and each
# number is computed in one order, whatever the number of threads.

# %%
#| hide
#| export
import functools, math
from typing import Callable

import numpy as np
import bendml.threads
from numba import njit, prange
from numpy import float32

from bendml.kernel import Buf, Size, ensures, f32, filled, i64, invariant, kernel, once, requires
from bendml.tensor.arrays import TensorError, dense, result, typed


# %% [markdown]
# ## Any function, number by number
#
# `map_cells` applies a function of one number to each, `zip_cells` a function of two. The function is compiled into the
# loop, once.

# %%
#| export
@functools.lru_cache(256)
def _compiled(f: Callable, arity: int) -> Callable:
    inner = njit(f)
    if arity == 1:
        @njit(parallel=True, error_model='numpy')
        def loop(x, out):
            for i in prange(len(out)): out[i] = inner(x[i])
    else:
        @njit(parallel=True, error_model='numpy')
        def loop(x, y, out):
            for i in prange(len(out)): out[i] = inner(x[i], y[i])
    return loop

def _cells(where: str, f: Callable, arrays: tuple[np.ndarray, ...], out: np.ndarray | None) -> np.ndarray:
    if not callable(f): raise TensorError(f'{where}: f', 'not a function', f'a function of {len(arrays)} numbers', type(f).__name__)
    first = arrays[0]
    arrays = tuple(dense(f'{where}: x{n}', x, getattr(first, 'ndim', 1)) for n, x in enumerate(arrays, 1))
    for x in arrays[1:]:
        if x.shape != first.shape: raise TensorError(where, 'different shapes', typed(first.shape), typed(x.shape))
    out = result(f'{where}: out', out, first.shape)
    for x in arrays:
        if np.may_share_memory(x, out) and x is not out: raise TensorError(f'{where}: out', 'shares memory with an input', 'an input itself, or an array of its own', 'an overlap')
    try: _compiled(f, len(arrays))(*(x.reshape(-1) for x in arrays), out.reshape(-1))
    except Exception as e: raise TensorError(f'{where}: f', 'cannot be compiled', f'a function of {len(arrays)} numbers that numba understands', _first_line(e)) from None
    return out

def _first_line(e: Exception) -> str: return next((line for line in str(e).splitlines() if line.strip() and 'nopython' not in line), type(e).__name__)[:100]


# %%
#| export
def map_cells(
    f: Callable[[float], float],
    x: np.ndarray,                  # float32, any shape
    out: np.ndarray | None = None,  # of the same shape; may be x itself
) -> np.ndarray:
    "f of each number; `TensorError` if f cannot be compiled."
    return _cells('map_cells', f, (x,), out)

def zip_cells(
    f: Callable[[float, float], float],
    x: np.ndarray,                  # float32, any shape
    y: np.ndarray,                  # of the same shape
    out: np.ndarray | None = None,  # likewise; may be x or y itself
) -> np.ndarray:
    "f of each pair of numbers; `TensorError` if f cannot be compiled, or for different shapes."
    return _cells('zip_cells', f, (x, y), out)


# %%
x = np.array([[-1, 0, 2], [3, -4, 5]], float32)
map_cells(lambda v: v if v > 0 else 0, x)

# %%
try: zip_cells(lambda a, b: a*b, x, x.T)
except TensorError as e: print(e)


# %% [markdown]
# ## Rows and columns
#
# A bias is added to every row of a batch; on the way back its derivative is the sum over the rows. Each column is summed from the first
# row to the last.

# %%
#| export
@kernel
def add_row_loops(x: Buf["n*m", f32], b: Buf["m", f32], out: Buf["n*m", f32], n: Size, m: Size):
    "out (n, m) = x plus the row b."
    for i in range(n):
        for j in range(m): out[i*m + j] = x[i*m + j] + b[j]
    ensures(filled(out), once(out))

@kernel
def col_sums_loops(x: Buf["n*m", f32], out: Buf["m", f32], n: Size, m: Size):
    "out (m,) = the sum of the rows of x, from the first to the last."
    for j in range(m): out[j] = f32(0)
    for i in range(n):
        for j in range(m): out[j] += x[i*m + j]


# %%
#| export
def add_row(
    x: np.ndarray,                   # (n, m)
    b: np.ndarray,                   # (m,)
    out: np.ndarray | None = None,   # (n, m)
) -> np.ndarray:
    "b added to each row of x; `TensorError` for a row of another length."
    x, b = dense('add_row: x', x, 2), dense('add_row: b', b, 1)
    if b.shape != x.shape[1:]: raise TensorError('add_row', f'rows of {x.shape[1]}', typed(x.shape[1:]), typed(b.shape))
    y = result('add_row: out', out, x.shape, (x, b))
    add_row_loops(x.reshape(-1), b, y.reshape(-1), *x.shape)
    return y

def col_sums(
    x: np.ndarray,                   # (n, m)
    out: np.ndarray | None = None,   # (m,)
    add: bool = False,               # add to what is in `out`
) -> np.ndarray:                     # (m,)
    "The sum of each column, from the first row to the last."
    x = dense('col_sums: x', x, 2)
    if out is None and add: raise TensorError('col_sums', 'add=True without out', 'an array to add to', None)
    y = result('col_sums: out', out, x.shape[1:], (x,))
    fresh = np.empty_like(y) if add else y
    col_sums_loops(x.reshape(-1), fresh, *x.shape)
    if add: y += fresh
    return y


# %%
add_row(x, np.array([10, 20, 30], float32)), col_sums(x)


# %% [markdown]
# ## The rectifier
#
# Negative numbers become zero. On the way back, what arrives passes where the result was positive.

# %%
#| export
@kernel
def relu_loops(x: Buf["n", f32], out: Buf["n", f32], n: Size):
    for i in range(n): out[i] = x[i] if x[i] > 0 else f32(0)
    ensures(filled(out), once(out))

@kernel
def relu_back_loops(dy: Buf["n", f32], y: Buf["n", f32], out: Buf["n", f32], n: Size):
    for i in range(n): out[i] = dy[i] if y[i] > 0 else f32(0)
    ensures(filled(out), once(out))

def relu(
    x: np.ndarray,                   # float32, (n, m)
    out: np.ndarray | None = None,   # (n, m)
) -> np.ndarray:
    "max(0, x), number by number; what is not a number becomes 0."
    x = dense('relu: x', x, 2)
    y = result('relu: out', out, x.shape, (x,))
    relu_loops(x.reshape(-1), y.reshape(-1), x.size)
    return y

def relu_back(
    dy: np.ndarray,                  # (n, m), the derivative by the result
    y: np.ndarray,                   # (n, m), the result
    out: np.ndarray | None = None,   # (n, m)
) -> np.ndarray:                     # (n, m), the derivative by the input
    "dy where y is positive, else 0; `TensorError` for different shapes."
    dy, y = dense('relu_back: dy', dy, 2), dense('relu_back: y', y, 2)
    if dy.shape != y.shape: raise TensorError('relu_back', 'different shapes', typed(y.shape), typed(dy.shape))
    dx = result('relu_back: out', out, y.shape, (dy, y))
    relu_back_loops(dy.reshape(-1), y.reshape(-1), dx.reshape(-1), y.size)
    return dx


# %% [markdown]
# ## Loss and hits
#
# A row of scores becomes probabilities, $p_c = e^{z_c - \max z}/\sum_k e^{z_k - \max z}$; taking the maximum away changes
# nothing but keeps the exponentials from overflowing. The loss of a row is $-\log p_y$ for its true label $y$, its derivative by the
# scores $p$ with one taken away at $y$. The loss of a batch is the mean, and so the derivative is divided by the number of
# rows.

# %%
#| export
@kernel
def cross_entropy_row(z: Buf[f32], at: Size, m: Size, label: Size, n: Size, dz: Buf[f32]):
    "One of n rows of m scores, from `at` on: its loss; and into dz its derivative."
    requires(label < m, at + m <= len(z), at + m <= len(dz))
    top, total = z[at], f32(0)
    for c in range(1, m): top = max(top, z[at + c])
    for c in range(m):
        dz[at + c] = math.exp(z[at + c] - top)
        total += dz[at + c]
    for c in range(m): dz[at + c] /= total
    loss = -math.log(max(dz[at + label], f32(1e-12)))
    dz[at + label] -= f32(1)
    for c in range(m): dz[at + c] /= f32(n)
    return loss

@kernel
def cross_entropy_loops(z: Buf["n*m", f32], labels: Buf["n", i64, "0 <= labels < m"], dz: Buf["n*m", f32], n: Size, m: Size):
    requires(n*m < 2**44)
    total = f32(0)
    for i in range(n): total += cross_entropy_row(z, i*m, m, labels[i], n, dz)
    return total*(f32(1)/f32(n))

@kernel
def hits_loops(z: Buf["n*m", f32], labels: Buf["n", i64], n: Size, m: Size):
    "How often the greatest score of a row is at its label; of equal ones the first counts."
    requires(1 <= m)
    hits = 0
    for i in range(n):
        invariant(0 <= hits, hits <= i)
        best = 0
        for c in range(1, m):
            invariant(0 <= best, best < m)
            if z[i*m + c] > z[i*m + best]: best = c
        if best == labels[i]: hits += 1
    return hits


# %% [markdown]
# Labels are indices into a row, so a wrong one would read a neighbour's score. As many are wanted as there are rows, each from
# 0 to $m - 1$.

# %%
#| export
def _labels(where: str, labels: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    "Labels as int64, one a row, each a column; `TensorError` if not."
    if not isinstance(labels, np.ndarray) or labels.dtype.kind not in 'iu' or labels.ndim != 1:
        raise TensorError(f'{where}: labels', 'not labels', f'{shape[0]} whole numbers', f'{typed(labels.shape)} of {labels.dtype}' if isinstance(labels, np.ndarray) else type(labels).__name__)
    if labels.shape != shape[:1]: raise TensorError(f'{where}: labels', 'one label a row', typed(shape[:1]), typed(labels.shape))
    wrong = (labels < 0) | (labels >= shape[1])
    if wrong.any(): raise TensorError(f'{where}: labels', 'no such column', f'labels from 0 to {shape[1] - 1}', f'{labels[wrong][0]} in row {int(wrong.argmax())}')
    return labels.astype(np.int64)

def cross_entropy(
    z: np.ndarray,                   # (n, m) scores
    labels: np.ndarray,              # (n,) whole numbers from 0 to m - 1
    out: np.ndarray | None = None,   # (n, m): where to put the derivative
) -> tuple[float32, np.ndarray]:     # the mean loss, and its derivative by z
    "Mean cross-entropy of the softmax of each row; `TensorError` for labels that do not fit, or no rows."
    z = dense('cross_entropy: z', z, 2)
    labels = _labels('cross_entropy', labels, z.shape)
    if not z.size: raise TensorError('cross_entropy: z', 'no scores', 'at least one row and column', typed(z.shape))
    dz = result('cross_entropy: out', out, z.shape, (z,))
    return float32(cross_entropy_loops(z.reshape(-1), labels, dz.reshape(-1), *z.shape)), dz

def hits(
    z: np.ndarray,       # (n, m) scores
    labels: np.ndarray,  # (n,)
) -> int:
    "In how many rows the greatest score is at the label; of equal ones the first counts."
    z = dense('hits: z', z, 2)
    labels = _labels('hits', labels, z.shape)
    return int(hits_loops(z.reshape(-1), labels, *z.shape)) if z.size else 0


# %%
z = np.array([[2, 1, 0], [0, 0, 3]], float32)
loss, dz = cross_entropy(z, np.array([0, 1]))
print(loss, hits(z, np.array([0, 1])))
dz

# %%
try: cross_entropy(z, np.array([0, 1, 2]))
except TensorError as e: print(e)

# %%
try: hits(z, np.array([0, 3]))
except TensorError as e: print(e)


# %% [markdown]
# ## A step downhill

# %%
#| export
@kernel
def descend_loops(w: Buf["n", f32], dw: Buf["n", f32], n: Size, lr: f32):
    for i in range(n): w[i] -= lr*dw[i]

def descend(
    w: np.ndarray,   # float32, changes in place
    dw: np.ndarray,  # of the same shape
    lr: float,
) -> None:
    "w -= lr*dw; `TensorError` for different shapes."
    ndim = getattr(w, 'ndim', 1)
    dense('descend: w', w, ndim)
    dw = dense('descend: dw', dw, ndim)
    result('descend: w', w, dw.shape, (dw,))
    descend_loops(w.reshape(-1), dw.reshape(-1), w.size, float32(lr))

# %% [markdown]
# ## What this does not show
#
# Exponential and logarithm are those of the machine's C library; another library may round their last bit differently.
