# %% [markdown]
# # Puzzles
# > Twelve programs that are refused. Make each one pass.

# %% [markdown]
# Each cell below defines a function that is refused, and prints why. Change as little as you can in the body until it is
# accepted; the annotations are right and stay (in two of them a condition is missing). The last cell tries the solutions on
# numbers: try yours there too, since shapes alone are not enough. Solutions are at the end.

# %%
import numpy as np
from bendml.shape import Arr, Dim, Grad, InOut, Int, Mat, OutIn, ShapeError, Vec, dims, typed
B, T, C, D, H, K, n, d = dims('B T C D H K n d')


# %%
#| hide
def refused(define):
    "Run a definition, and show why it is refused."
    try: define()
    except ShapeError as e: print(e)


# %% [markdown]
# ## 1. The other way round

# %%
def puzzle():
    @typed
    def project(x: Mat[B, D], w: Mat[K, D]) -> Mat[B, K]:
        return x @ w
refused(puzzle)


# %% [markdown]
# ## 2. The lost axis

# %%
def puzzle():
    @typed
    def centre_rows(x: Mat[n, d]) -> Mat[n, d]:
        return x - x.mean(axis=1)
refused(puzzle)


# %% [markdown]
# ## 3. Every combination

# %%
def puzzle():
    @typed
    def absolute_error(prediction: Mat[B, 1], target: Vec[B]) -> float:
        return np.abs(prediction - target).mean()
refused(puzzle)


# %% [markdown]
# ## 4. One too many

# %%
def puzzle():
    @typed(where='n >= 2')
    def slopes(t: Vec[n], y: Vec[n]) -> Vec['n - 1']:
        return np.diff(y)/t[1:-1]
refused(puzzle)


# %% [markdown]
# ## 5. A table of distances

# %%
def puzzle():
    @typed
    def distances(a: Mat[n, d], b: Mat[K, d]) -> Mat[n, K]:
        return np.sqrt(((a - b)**2).sum(axis=-1))
refused(puzzle)


# %% [markdown]
# ## 6. Heads that were never moved back

# %%
def puzzle():
    @typed
    def merge(o: Arr[B, H, T, D]) -> Arr[B, T, 'H*D']:
        b, h, t, d = o.shape
        return o.reshape(b, t, h*d)
refused(puzzle)


# %% [markdown]
# ## 7. Not for every size

# %%
def puzzle():
    @typed
    def halves(x: Mat[n, d]) -> Mat[n, 'd//2']:
        a, b = np.split(x, 2, axis=1)
        return a*b
refused(puzzle)


# %% [markdown]
# ## 8. The batch of one

# %%
def puzzle():
    @typed
    def flat(x: Mat[B, 1]) -> Vec[B]:
        return x.squeeze()
refused(puzzle)


# %% [markdown]
# ## 9. A gradient of a square weight

# %%
def puzzle():
    @typed
    def gradient(x: Mat[B, D], dy: Grad[Mat[B, D]]) -> InOut[Mat[D, D]]:
        return dy.T @ x
refused(puzzle)


# %% [markdown]
# ## 10. A window too far

# %%
def puzzle():
    @typed(where='n >= 3')
    def smooth(x: Vec[n]) -> Vec['n - 2']:
        y = np.empty(len(x) - 2)
        for i in range(len(x)):
            y[i] = (x[i] + x[i + 1] + x[i + 2])/3
        return y
refused(puzzle)


# %% [markdown]
# ## 11. A loop that counts

# %%
def puzzle():
    @typed
    def running(x: Mat[n, d]) -> Mat[n, d]:
        total, out = np.zeros(x.shape[1]), np.zeros((0, x.shape[1]))
        for row in x:
            total = total + row
            out = np.concatenate([out, total[None]])
        return out
refused(puzzle)


# %% [markdown]
# ## 12. Past the end of the table

# %%
def puzzle():
    @typed
    def embed(ids: Int[Vec[T]], words: Mat[K, C], places: Mat[1024, C]) -> Mat[T, C]:
        return words[ids] + places[np.arange(len(ids))]
refused(puzzle)


# %% [markdown]
# ## Solutions

# %%
@typed
def project(x: Mat[B, D], w: Mat[K, D]) -> Mat[B, K]: return x @ w.T
@typed
def centre_rows(x: Mat[n, d]) -> Mat[n, d]: return x - x.mean(axis=1, keepdims=True)
@typed
def absolute_error(prediction: Mat[B, 1], target: Vec[B]) -> float: return np.abs(prediction[:, 0] - target).mean()
@typed(where='n >= 2')
def slopes(t: Vec[n], y: Vec[n]) -> Vec['n - 1']: return np.diff(y)/np.diff(t)
@typed
def distances(a: Mat[n, d], b: Mat[K, d]) -> Mat[n, K]: return np.sqrt(((a[:, None] - b)**2).sum(axis=-1))
@typed
def merge(o: Arr[B, H, T, D]) -> Arr[B, T, 'H*D']:
    b, h, t, d = o.shape
    return o.transpose(0, 2, 1, 3).reshape(b, t, h*d)


# %%
@typed(where='d % 2 == 0')
def halves(x: Mat[n, d]) -> Mat[n, 'd//2']:
    a, b = np.split(x, 2, axis=1)
    return a*b
@typed
def flat(x: Mat[B, 1]) -> Vec[B]: return x.squeeze(axis=1)
@typed
def gradient(x: Mat[B, D], dy: Grad[Mat[B, D]]) -> InOut[Mat[D, D]]: return x.T @ dy
@typed(where='n >= 3')
def smooth(x: Vec[n]) -> Vec['n - 2']:
    y = np.empty(len(x) - 2)
    for i in range(len(x) - 2): y[i] = (x[i] + x[i + 1] + x[i + 2])/3
    return y
@typed
def running(x: Mat[n, d]) -> Mat[n, d]:
    total, out = np.zeros(x.shape[1]), []
    for row in x:
        total = total + row
        out.append(total)
    return np.stack(out)
@typed(where=['T <= 1024', 'ids < K'])
def embed(ids: Int[Vec[T]], words: Mat[K, C], places: Mat[1024, C]) -> Mat[T, C]: return words[ids] + places[np.arange(len(ids))]


# %% [markdown]
# And on numbers:

# %%
x = np.arange(12.0).reshape(3, 4)
assert np.allclose(project(x, np.eye(4)[:2]), x[:, :2])
assert np.allclose(centre_rows(x).sum(1), 0) and absolute_error(x[:, :1], x[:, 0]) == 0
assert np.allclose(slopes(x[0], 2*x[0]), 2) and np.allclose(distances(x, x)[1, 1], 0)
assert np.allclose(merge(x.reshape(1, 2, 3, 2))[0, 0], [0, 1, 6, 7]) and halves(x).shape == (3, 2)
assert flat(x[:1, :1]).shape == (1,) and gradient(x, x).shape == (4, 4)
assert np.allclose(smooth(x[0]), [1, 2]) and np.allclose(running(x)[-1], x.sum(0))
assert embed(np.array([2, 0]), x, np.zeros((1024, 4))).tolist() == [[8, 9, 10, 11], [0, 1, 2, 3]]

# %% [markdown]
# ## What this does not show
#
# Every one of these has other solutions, some of which are accepted and compute something else: in the second, the mean over
# `axis=0` fits too.
