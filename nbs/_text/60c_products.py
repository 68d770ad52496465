# %%
#| default_exp nn.products

# %% [markdown]
# # Products for training
# > The tensors' matrix product, into memory that is used again.

# %% [markdown]
# Four fifths of a training step are products of matrices with thousands of rows, three for each linear layer: one forwards,
# and on the way back one for the input's derivative and one for the weights', which is *added* to what was there. They come in
# between short loops of our own. The [tensors' product](42_gemm.ipynb) shares its threads with those loops, and adds in place; what
# is left to this page is where results go, and numbers of other types.

# %%
#| hide
#| export
import numpy as np
from numpy import float32

from bendml.nn.room import room
from bendml.tensor import gemm
from bendml.tiles import has_avx512

# %% [markdown]
# NumPy's library would make many of these products as fast, but its threads go on looking for work for milliseconds after each of
# them, and keep a core from the loops that follow. So where registers are long, only small ones are left to it. Layers are also run
# on `float64`, to check derivatives, and on symbols, to prove them. NumPy multiplies those.

# %%
#| export
TINY = 2_000_000   # multiplications from which on panels are as fast, where registers are long

def _flat(x: np.ndarray) -> bool: return x.dtype == float32 and (x.flags.c_contiguous or x.flags.f_contiguous)

def product(
    a: np.ndarray,                   # (n, k) float32, or a transposed view
    b: np.ndarray,                   # (k, m) likewise
    out: np.ndarray | None = None,   # (n, m), contiguous: where to put it
    add: bool = False,               # add to what is in `out`
) -> np.ndarray:                     # (n, m)
    "a times b, in the fastest order; the same bits for any number of threads, if the product is large and registers are long."
    (n, k), m = a.shape, b.shape[1]
    if k != len(b) or out is not None and out.shape != (n, m):
        raise ValueError(f'product\n- expected : {k} rows on the right, a result {(n, m)}\n- observed : {len(b)}, {np.shape(out)}')
    if not (_flat(a) and _flat(b) and (out is None or out.dtype == float32 and out.flags.c_contiguous)):
        if not add: return np.matmul(a, b, out=out)
        out += np.matmul(a, b)
        return out
    if out is None: out = room(n, m)
    gemm.product(a, b, out, add, TINY if has_avx512() else gemm.BIG)
    return out


# %% [markdown]
# Sums like these differ from NumPy's by rounding only:

# %%
rng = np.random.default_rng(0)
a, b, c = (rng.standard_normal(s, float32) for s in ((200, 300), (300, 150), (200, 150)))
want = a.astype(float) @ b
assert abs(product(a, b) - want).max() < 1e-4 and abs(product(a, b, c.copy(), add=True) - want - c).max() < 1e-4

# %%
try: product(a, b.T)
except ValueError as e: print(e)

# %% [markdown]
# ## What this does not show
#
# Sums in the sequential order: [`matmul`](42_gemm.ipynb) has them.
