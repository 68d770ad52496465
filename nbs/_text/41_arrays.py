# %%
#| default_exp tensor.arrays

# %% [markdown]
# # Arrays
# > A matrix as one row of numbers in memory, and what may go wrong when one is handed over.

# %% [markdown]
# The list form of a matrix is easy to reason about and slow to compute with: each number is an object somewhere in memory,
# and the next one is somewhere else. An array is the opposite: one block of memory, number after number, row after row. A
# processor fetches 64 bytes at a time, and in an array these are the sixteen numbers that are needed next.
#
# Here is what the difference costs, for a hundred thousand additions:

# %%
#| hide
#| export
from collections.abc import Iterable, Sequence

import numpy as np
from numpy import float32

# %%
import timeit
numbers = list(map(float, range(100_000)))
array = np.arange(100_000, dtype=float32)
times = [min(timeit.repeat(f, number=10, repeat=5)) for f in (lambda: sum(numbers), lambda: np.add.reduce(array))]
print(f'the array is {times[0]/times[1]:.0f} times faster')

# %%
#| echo: false
from matplotlib import pyplot as plt
from matplotlib.patches import Rectangle
fig, ax = plt.subplots(figsize=(8, 2.3))
colors = ('#4c72b0', '#55a868', '#c44e52')
for r in range(3):
    for c in range(4):
        for x, y in ((c, 3.2 - r), (7 + r*4 + c, 2.2)):
            ax.add_patch(Rectangle((x, y), 1, 1, facecolor=colors[r], alpha=.55, edgecolor='white'))
            ax.text(x + .5, y + .5, f'{r},{c}', ha='center', va='center', fontsize=9)
        ax.text(7 + r*4 + c + .5, 1.8, r*4 + c, ha='center', fontsize=8, color='gray')
ax.annotate('', (6.8, 2.7), (4.2, 2.7), arrowprops={'arrowstyle': '->'})
ax.text(2, .6, 'a 3×4 matrix', ha='center')
ax.text(13, .6, 'the same in memory: (i, j) stands at i*4 + j', ha='center')
ax.set(xlim=(-.2, 19.2), ylim=(.3, 4.4), aspect='equal')
ax.axis('off')
plt.show()

# %% [markdown]
# That is called *row-major*: in a matrix with $c$ columns, cell $(i, j)$ stands at $i c + j$. Going down a column means
# jumping $c$ numbers at a time. Both are cases of one rule: cell $(i, j)$ stands at $i s_0 + j s_1$, and the *strides*
# $(s_0, s_1)$ are $(c, 1)$. Swapping the two strides transposes a matrix without moving a number; that is all that
# NumPy's `.T` does.

# %%
a = np.arange(12, dtype=float32).reshape(3, 4)
[s//4 for s in a.strides], [s//4 for s in a.T.strides]


# %% [markdown]
# ## What is accepted
#
# bendml's arrays are NumPy's: `float32`, flat and row-major in memory. What is not is refused by name, before any compiled
# loop sees it.

# %%
#| export
class TensorError(ValueError):
    "An array is not what a function takes: which function and argument, expected, observed, a hint."
    def __init__(self, where: str, problem: str, expected: object, observed: object, hint: str = ''):
        super().__init__(f'{where}: {problem}\n- expected : {expected}\n- observed : {observed}' + f'\n- hint     : {hint}'*bool(hint))


# %%
#| export
def typed(shape: Sequence[int]) -> str:
    "A shape in words: Vec<3>, Mat<3, 4>."
    name = {1: 'Vec', 2: 'Mat'}.get(len(shape), 'Arr')
    return f"{name}<{', '.join(map(str, shape))}>"

def _kind(x: object) -> str:
    return f'{typed(x.shape)} of {x.dtype}' if isinstance(x, np.ndarray) else type(x).__name__


# %%
#| export
def dense(
    where: str,             # 'function: argument', for the message
    x: np.ndarray,
    ndim: int,
    dtype: type = float32,
) -> np.ndarray:            # the same array; a copy if it was strided or not aligned
    "An array that compiled loops can take; `TensorError` for anything else."
    if type(x) is not np.ndarray and not isinstance(x, np.memmap): raise TensorError(where, 'not an array', 'a NumPy array', _kind(x), 'np.asarray(x, np.float32)')
    if x.dtype != dtype: raise TensorError(where, 'wrong type of numbers', np.dtype(dtype), x.dtype, f'.astype(np.{np.dtype(dtype)})')
    if x.ndim != ndim: raise TensorError(where, 'wrong number of axes', {1: 'Vec', 2: 'Mat'}.get(ndim, f'{ndim} axes'), typed(x.shape))
    return x if x.flags.c_contiguous and x.flags.aligned else np.array(x, order='C')


# %%
try: dense('example: x', np.zeros(3), 2)
except TensorError as e: print(e)


# %% [markdown]
# An array to write into must be the very one that was given, so it is not copied but refused if a copy would be needed. It
# must not be one of the inputs either: what is read would change while it is being read.

# %%
#| export
def result(
    where: str,
    out: np.ndarray | None,           # the array to write into; None: make one
    shape: tuple[int, ...],
    inputs: Iterable[np.ndarray] = (),  # which `out` must not overlap
) -> np.ndarray:
    "The array that a function writes its result into."
    if out is None: return np.empty(shape, float32)
    if dense(where, out, len(shape)) is not out: raise TensorError(where, 'cannot be written in place', 'a contiguous array', f'strides {out.strides}')
    if out.shape != shape: raise TensorError(where, 'wrong shape', typed(shape), typed(out.shape))
    if not out.flags.writeable: raise TensorError(where, 'cannot be written', 'a writeable array', 'a read-only one')
    if any(np.may_share_memory(out, x) for x in inputs): raise TensorError(where, 'shares memory with an input', 'an array of its own', 'an overlap')
    return out


# %% [markdown]
# `may_share_memory` compares the ends of the two blocks. It never misses an overlap.

# %%
x = np.zeros((4, 4), float32)
try: result('example: out', x[:2], (2, 4), [x[1:]])
except TensorError as e: print(e)


# %% [markdown]
# ## Making arrays
#
# Numbers from elsewhere come as lists, and a list can have the wrong length. `of_list` gives `None` then, for a caller who
# wants to go on; `mat` and `vec` refuse.

# %%
#| export
def of_list(
    values: Sequence[float],  # row after row
    r: int,
    c: int,
) -> np.ndarray | None:       # (r, c)
    "A matrix from r*c numbers; None for any other count."
    r, c, x = size('of_list: r', r), size('of_list: c', c), vec(values)
    return x.reshape(r, c) if len(x) == r*c else None

def size(where: str, n: int) -> int:
    "A number of rows or columns: a whole number, zero or more."
    if isinstance(n, (int, np.integer)) and not isinstance(n, bool) and n >= 0: return int(n)
    raise TensorError(where, 'not a size', 'a whole number, 0 or more', repr(n))


# %%
#| export
def vec(
    values: Sequence[float],
) -> np.ndarray:  # (n,)
    "A vector from a list of numbers; `TensorError` if one is not a number, or too large for float32."
    try:
        values = list(values)
        if np.iscomplexobj(np.array(values)): raise TypeError('complex numbers')
        x = np.array([float(v) for v in values])
    except (TypeError, ValueError, OverflowError) as e: raise TensorError('vec', 'not a list of numbers', 'numbers', str(e)) from None
    with np.errstate(over='ignore'): y = x.astype(float32)
    if (lost := np.isinf(y) & np.isfinite(x)).any():
        raise TensorError('vec', 'too large', f'at most {np.finfo(float32).max}', f'{x[lost][0]} at index {int(lost.argmax())}')
    return y

def mat(
    rows: Sequence[Sequence[float]],
) -> np.ndarray:  # (r, c)
    "A matrix from its rows; `TensorError` if they differ in length."
    try: rows = list(rows)
    except TypeError: raise TensorError('mat', 'not a list of rows', 'rows of numbers', type(rows).__name__) from None
    made = [vec(row) for row in rows]
    for i, row in enumerate(made):
        if len(row) != len(made[0]): raise TensorError('mat', f'row {i} has another length than row 0', f'{len(made[0])} numbers', f'{len(row)} numbers')
    return np.array(made, float32).reshape(len(made), len(made[0]) if made else 0)


# %%
assert of_list([1, 2, 3, 4, 5], 2, 3) is None
of_list([1, 2, 3, 4, 5, 6], 2, 3)

# %%
try: mat([[1, 2], [3]])
except TensorError as e: print(e)


# %%
#| export
def zeros(r: int, c: int) -> np.ndarray:
    "The matrix (r, c) of zeros."
    return fill(r, c, 0)

def fill(r: int, c: int, value: float) -> np.ndarray:
    "The matrix (r, c) with the same number everywhere; `TensorError` for a size that no memory holds."
    shape = size('fill: r', r), size('fill: c', c)
    try: return np.full(shape, vec([value])[0])
    except (MemoryError, ValueError): raise TensorError('fill', 'too large', 'a matrix that fits into memory', typed(shape)) from None

# %% [markdown]
# ## What this does not show
#
# Only `float32` is computed with. Weights may be stored smaller; the page about [matrix times vector](43_matvec.ipynb)
# reads them.
