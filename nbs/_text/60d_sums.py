# %%
#| default_exp nn.sums

# %% [markdown]
# # Sums of rows
# > What stands between the products of a training step: a bias under every row, two arrays that are added, a sum over all rows.

# %% [markdown]
# Each is one line of NumPy, and NumPy's lines run on one core. Between products that use all of them, such lines are a
# twentieth of a training step on two cores. So here they are as loops that share out their rows.

# %%
#| hide
#| export
import numpy as np
from numpy import float32

from bendml.kernel import Buf, Size, f32, kernel, prange, requires
from bendml.nn.room import LARGE, room


# %%
#| export
@kernel
def fill_rows(n: Size, m: Size, b: Buf["m", f32], y: Buf["n*m", f32]):
    "Every row of y becomes b."
    for i in prange(n):
        assert i*m + m <= n*m
        a = max(i*m, 0)
        for j in range(m): y[a + j] = b[j]

@kernel
def add_all(n: Size, a: Buf["n", f32], b: Buf["n", f32], y: Buf["n", f32]):
    "y = a + b."
    for i in prange(n): y[i] = a[i] + b[i]


# %% [markdown]
# A sum over rows is sixteen sums, each always over the same rows, and then their sum: the bits do not depend on the number of threads.

# %%
#| export
PARTS = 16

@kernel
def sum_rows(n: Size, m: Size, x: Buf["n*m", f32], parts: Buf["PARTS*m", f32], total: Buf["m", f32]):
    "The sum of all rows of x."
    requires(n < 2**40)
    for k in prange(PARTS):
        a = max(k*m, 0)
        for j in range(m): parts[a + j] = f32(0)
        for i in range(n*k//PARTS, n*(k + 1)//PARTS):
            assert i*m + m <= n*m
            row = max(i*m, 0)
            for j in range(m): parts[a + j] += x[row + j]
    for j in range(m): total[j] = f32(0)
    for k in range(PARTS):
        for j in range(m): total[j] += parts[k*m + j]


# %% [markdown]
# ## What layers call
#
# For small arrays NumPy is as quick, and for numbers of another kind it is all there is.

# %%
#| export
def _large(*arrays: np.ndarray) -> bool: return arrays[0].size >= LARGE and all(a.dtype == float32 and a.flags.c_contiguous for a in arrays)

def rows_of(
    b: np.ndarray,   # (m,) float32
    n: int,
) -> np.ndarray:     # (n, m)
    "n times the same row."
    y = room(n, len(b))
    if y.size >= LARGE and b.flags.c_contiguous: fill_rows(n, len(b), b, y.reshape(-1))
    else: np.copyto(y, b)
    return y

def plus(
    a: np.ndarray,
    b: np.ndarray,   # of the same shape
) -> np.ndarray:
    "a + b."
    if a.shape != b.shape or not _large(a, b): return a + b
    add_all(a.size, a.reshape(-1), b.reshape(-1), (y := room(*a.shape)).reshape(-1))
    return y

def row_sum(
    x: np.ndarray,   # (n, m)
) -> np.ndarray:     # (m,)
    "The sum of all rows."
    if not _large(x): return x.sum(0)
    sum_rows(*x.shape, x.reshape(-1), np.empty(PARTS*x.shape[1], float32), total := np.empty(x.shape[1], float32))
    return total


# %%
rng = np.random.default_rng(0)
x, b = rng.standard_normal((1000, 300), float32), rng.standard_normal(300, float32)
assert np.array_equal(plus(x, y := rows_of(b, 1000)), x + b) and np.array_equal(y[7], b)
assert abs(row_sum(x) - x.sum(0, np.float64)).max() < 1e-4
print(fill_rows, add_all, sum_rows, sep='\n')

# %% [markdown]
# ## What this does not show
#
# Whether the passes could be left out. A bias could be added while the product is written, and a norm computed while a sum is at hand.
