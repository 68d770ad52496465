# %% [markdown]
# # One broken kernel after another
# > Ten ways to go wrong in a loop, and what each looks like when it is refused.

# %% [markdown]
# Why prove that an index is in bounds? Because nobody tells you when it is not. Python would raise an error. Compiled code reads
# the neighbour's memory, or writes into it, and goes on; the wrong number shows up elsewhere, or the program ends in the middle of
# something else. Tests find it if they happen to try the size on which it happens.
#
# A *race* is worse, since it may not even happen the second time. Two iterations run on two cores; both read a cell, both add to
# it, both write it back, and one of the two additions is lost.

# %%
#| hide
import os, tempfile
os.environ['BENDML_CACHE'] = tempfile.mkdtemp()

# %%
import numpy as np
from bendml.kernel import *

def refused(fn):
    "Define a kernel, and show why it is refused."
    try: kernel(fn)
    except KernelError as e: print(e)


# %% [markdown]
# ## 1. One step too far
#
# `range(k + 1)`: the most common slip of all.

# %%
@refused
def matmul(n: Size, k: Size, m: Size, A: Buf["n*k", f32], B: Buf["k*m", f32], C: Buf["n*m", f32]):
    for i in prange(n):
        for j in range(m):
            for p in range(k + 1): C[i*m + j] += A[i*k + p]*B[p*m + j]


# %% [markdown]
# Read it like this: with one row, one column and nothing to add up, the loop still runs once, for `p=0`, and looks at the cell 0
# of a buffer that has none. The last line says that the kernel was run on these sizes, and that the buffer saw it.
#
# ## 2. A wrong stride
#
# `C` is $n \times m$, and its rows are $m$ long, not $k$.

# %%
@refused
def matmul(n: Size, k: Size, m: Size, A: Buf["n*k", f32], B: Buf["k*m", f32], C: Buf["n*m", f32]):
    for i in range(n):
        for j in range(m):
            for p in range(k): C[i*k + j] += A[i*k + p]*B[p*m + j]


# %% [markdown]
# ## 3. Many tokens, one row
#
# The gradient of an embedding adds, for each token of a text, to the row of that token's number. The same token may stand there
# twice. Then two iterations add to the same row.

# %%
@refused
def embedding_backward(n: Size, V: Size, D: Size, ids: Buf["n", i64, "0 <= ids < V"], dW: Buf["V*D", f32], dy: Buf["n*D", f32]):
    for t in prange(n):
        for d in range(D): dW[ids[t]*D + d] += dy[t*D + d]


# %% [markdown]
# Shared out over the columns instead, each iteration has cells of its own, whatever the tokens are:

# %%
@kernel
def embedding_backward(n: Size, V: Size, D: Size, ids: Buf["n", i64, "0 <= ids < V"], dW: Buf["V*D", f32], dy: Buf["n*D", f32]):
    for d in prange(D):
        for t in range(n): dW[ids[t]*D + d] += dy[t*D + d]

embedding_backward


# %% [markdown]
# ## 4. Bands that overlap
#
# Rows are shared out in bands, and each band takes one row too many.

# %%
@refused
def bands(n: Size, count: Size, size: Size, x: Buf["n", f32]):
    requires(count*size < n + size)
    for b in prange(count):
        for i in range(min(n, b*size), min(n, b*size + size + 1)): x[i] = f32(b)


# %%
#| echo: false
import matplotlib.pyplot as plt
fig, axes = plt.subplots(1, 2, figsize=(8, 1.7), layout='constrained')
for ax, extra, title in zip(axes, (0, 1), ('bands of 3', 'bands of 3, and one too many')):
    for b in range(4):
        ax.broken_barh([(3*b, min(3 + extra, 12 - 3*b))], (b + .1, .8), color=f'C{b}', alpha=.7)
    for i in range(13): ax.axvline(i, color='gray', lw=.4)
    if extra:
        for b in (1, 2, 3): ax.axvspan(3*b, 3*b + 1, color='red', alpha=.25)
    ax.set(title=title, xlabel='row', ylabel='iteration', yticks=[.5, 1.5, 2.5, 3.5], yticklabels=range(4), xlim=(0, 12))
    ax.invert_yaxis()


# %% [markdown]
# ## 5. One buffer under two names
#
# That two arguments are two buffers cannot be seen in the source. So it is checked at each call.

# %%
@kernel
def shift(n: Size, x: Buf["n", f32], y: Buf["n", f32]):
    for i in prange(n): y[i] = x[n - 1 - i]

x = np.arange(6, dtype=f32)
try: shift(4, x[:4], x[2:])
except KernelError as e: print(e)


# %% [markdown]
# ## 6. A number that does not fit
#
# Each pair of sizes has a buffer that would hold their product. The three together have none, and 64 bits are not enough.

# %%
@refused
def count_operations(n: Size, k: Size, m: Size, A: Buf["n*k", f32], B: Buf["k*m", f32], C: Buf["n*m", f32], out: Buf["1", i64]):
    out[0] = 2*n*k*m


# %% [markdown]
# ## 7. Eight at a time
#
# A load of a vector touches eight cells. The last one may hang over.

# %%
from bendml.kernel import word, Touches

@word('vector', Touches(array=0, index=1, cells=8))
def load8(a, i): return a[i:i + 8]
@word(None, Touches(array=0, index=1, cells=8, write=True))
def store8(a, i, v): a[i:i + 8] = v


# %%
@refused
def double(n: Size, x: Buf["n", f32]):
    for i in range(0, n, 8): store8(x, i, load8(x, i) + load8(x, i))


# %% [markdown]
# Done right, the rest is done one by one. That nothing is left out and nothing is done twice is proved as well:

# %%
@kernel
def double(n: Size, x: Buf["n", f32]):
    for i in prange(n//8): store8(x, 8*i, load8(x, 8*i) + load8(x, 8*i))
    for i in range(n//8*8, n): x[i] = x[i] + x[i]
    ensures(filled(x), once(x))

double


# %% [markdown]
# ## 8. A sum that everybody adds to

# %%
@refused
def total(n: Size, x: Buf["n", f32], out: Buf["1", f32]):
    for i in prange(n): out[0] += x[i]


# %% [markdown]
# ## 9. The neighbour
#
# Smoothing in place: an iteration reads what the next one writes.

# %%
@refused
def smooth(n: Size, x: Buf["n + 1", f32]):
    for i in prange(n): x[i] = f32(0.5)*(x[i] + x[i + 1])


# %% [markdown]
# ## 10. An index from a file
#
# Nothing is known of these numbers. A contract for each cell, `Buf["n", i64, "0 <= ids < V"]`, would be checked at every call.

# %%
@refused
def gather(n: Size, V: Size, ids: Buf["n", i64], W: Buf["V", f32], y: Buf["n", f32]):
    for i in range(n): y[i] = W[ids[i]]


# %% [markdown]
# ## And three that leave the path
#
# A loop that may not end; a cell that is not always written; small integers, which wrap around.

# %%
@refused
def halve(n: Size, x: Buf["n", f32]):
    i = n
    while i > 0:
        invariant(0 <= i, i <= n)
        decreases(i)
        x[i - 1] = 0
        i = (i + 1)//2


# %%
@refused
def positive(n: Size, x: Buf["n", f32], y: Buf["n", f32]):
    for i in range(n):
        if x[i] > f32(0): y[i] = x[i]
    ensures(filled(y))


# %%
@refused
def differences(n: Size, x: Buf["n + 1", u8], y: Buf["n", f32]):
    for i in range(n): y[i] = f32(x[i + 1] - x[i])

# %% [markdown]
# ## What this does not show
#
# That these are all the ways to go wrong. They are the ones that a proof of bounds, races, overflow and ends can see. A kernel
# may pass all of this and compute something else than it should: that is for [contracts about values](28c_functional.ipynb).
