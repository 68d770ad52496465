# %% [markdown]
# # Puzzles
# > Twelve programs that are refused. Make each one pass, and compute what it says.

# %% [markdown]
# Each cell below defines a function that is refused, and prints why. Change the body, in the cell, and run it again; the
# annotations are right and stay (in two of them a condition is missing). When it is accepted, it is tried on numbers, since
# shapes alone are not enough. Solutions are at the end.

# %%
import numpy as np
from bendml.shape import Arr, Grad, InOut, Int, Mat, ShapeError, Vec, dims, typed
B, T, C, D, H, K, n, d = dims('B T C D H K n d')

# %%
TRIES = {}

def puzzle(*tries, where=()):
    "Check a function, and try it on numbers: a try has the arguments, and what must come out."
    def check(f):
        own = TRIES[f.__name__] = tries or TRIES[f.__name__]
        try: solved = typed(f, where=where)
        except ShapeError as e: return print(e)
        for *args, wanted in own:
            if said := differs(solved, args, wanted): return print(f'{f.__name__} is accepted, but of', *args, said, sep='\n')
        print(f'{f.__name__}: solved')
        return solved
    return check

def differs(f, args, wanted):
    "What is wrong with the result, if anything is."
    try: found = np.asarray(f(*map(np.copy, args)))
    except Exception as e: return None if wanted is type(e) else f'comes {type(e).__name__}: {e}'
    if wanted is ShapeError: return f'comes {found}, and it should be refused'
    if found.shape != np.shape(wanted) or not np.allclose(found, wanted): return f'comes\n{found}\nand not\n{np.asarray(wanted)}'

x = np.array([[0, 2, 1, 5], [3, 1, 4, 1], [5, 9, 2, 6.0]])


# %% [markdown]
# ## 1. The other way round

# %%
@puzzle((x, x[:2] + 1, [[38, 19], [20, 36], [72, 60]]))
def project(x: Mat[B, D], w: Mat[K, D]) -> Mat[B, K]:
    return x @ w


# %% [markdown]
# ## 2. The lost axis

# %%
@puzzle((x[:2], [[-2, 0, -1, 3], [.75, -1.25, 1.75, -1.25]]))
def centre_rows(x: Mat[n, d]) -> Mat[n, d]:
    return x - x.mean(axis=1)


# %% [markdown]
# ## 3. Every combination

# %%
@puzzle((x[:, :1], x[:, 0], 0), (x[:, :1], x[:, 1], 8/3))
def absolute_error(prediction: Mat[B, 1], target: Vec[B]) -> float:
    return np.abs(prediction - target).mean()


# %% [markdown]
# ## 4. One too many

# %%
@puzzle(([0, 1, 3, 7], [0, 2, 4, 0], [2, 1, -1]), where='n >= 2')
def slopes(t: Vec[n], y: Vec[n]) -> Vec['n - 1']:
    return np.diff(y)/t[1:-1]


# %% [markdown]
# ## 5. A table of distances

# %%
@puzzle(([[0, 0], [3, 4]], [[0, 0], [3, 0], [0, 4]], [[0, 3, 4], [5, 4, 3]]))
def distances(a: Mat[n, d], b: Mat[K, d]) -> Mat[n, K]:
    return np.sqrt(((a - b)**2).sum(axis=-1))


# %% [markdown]
# ## 6. Heads that were never moved back
#
# Time `t` of the result holds what all heads have for it, one head after the other.

# %%
@puzzle((np.arange(12).reshape(1, 2, 3, 2), [[[0, 1, 6, 7], [2, 3, 8, 9], [4, 5, 10, 11]]]))
def merge(o: Arr[B, H, T, D]) -> Arr[B, T, 'H*D']:
    b, h, t, d = o.shape
    return o.reshape(b, t, h*d)


# %% [markdown]
# ## 7. Not for every size
#
# The left half times the right half. Here the body is right: write the condition, `where=` in `@puzzle(...)`, as `@typed` has it.

# %%
@puzzle((x, [[0, 10], [12, 1], [10, 54]]))
def halves(x: Mat[n, d]) -> Mat[n, 'd//2']:
    a, b = np.split(x, 2, axis=1)
    return a*b


# %% [markdown]
# ## 8. The batch of one
#
# It should work for a batch of one, too.

# %%
@puzzle((x[:, 1:2], [2, 1, 9]), (x[:1, 1:2], [2]))
def flat(x: Mat[B, 1]) -> Vec[B]:
    return x.squeeze()


# %% [markdown]
# ## 9. A gradient of a square weight
#
# The layer computes `x @ w`.

# %%
@puzzle((x[:2], 2*x[1:], [[30, 54, 12, 36], [22, 22, 20, 16], [46, 74, 24, 50], [40, 28, 44, 22]]))
def gradient(x: Mat[B, D], dy: Grad[Mat[B, D]]) -> InOut[Mat[D, D]]:
    return dy.T @ x


# %% [markdown]
# ## 10. A window too far

# %%
@puzzle(([0, 3, 6, 0, 3], [3, 3, 3]), ([3, 0, 0], [1]), where='n >= 3')
def smooth(x: Vec[n]) -> Vec['n - 2']:
    y = np.empty(len(x) - 2)
    for i in range(len(x)):
        y[i] = (x[i] + x[i + 1] + x[i + 2])/3
    return y


# %% [markdown]
# ## 11. A loop that counts

# %%
@puzzle((x[:, :2], [[0, 2], [3, 3], [8, 12]]))
def running(x: Mat[n, d]) -> Mat[n, d]:
    total, out = np.zeros(x.shape[1]), np.zeros((0, x.shape[1]))
    for row in x:
        total = total + row
        out = np.concatenate([out, total[None]])
    return out


# %% [markdown]
# ## 12. Past the end of the table
#
# Conditions again, two: there are 1024 places, and a number that is no word's should be refused at the call.

# %%
@puzzle(([2, 3], x, np.zeros((1024, 4)), ShapeError), ([2, 0], x, np.arange(4096).reshape(1024, 4)/8, [[5, 9.125, 2.25, 6.375], [.5, 2.625, 1.75, 5.875]]))
def embed(ids: Int[Vec[T]], words: Mat[K, C], places: Mat[1024, C]) -> Mat[T, C]:
    return words[ids] + places[np.arange(len(ids))]


# %% [markdown]
# ## Solutions

# %%
@puzzle()
def project(x: Mat[B, D], w: Mat[K, D]) -> Mat[B, K]: return x @ w.T
@puzzle()
def centre_rows(x: Mat[n, d]) -> Mat[n, d]: return x - x.mean(axis=1, keepdims=True)
@puzzle()
def absolute_error(prediction: Mat[B, 1], target: Vec[B]) -> float: return np.abs(prediction[:, 0] - target).mean()
@puzzle(where='n >= 2')
def slopes(t: Vec[n], y: Vec[n]) -> Vec['n - 1']: return np.diff(y)/np.diff(t)
@puzzle()
def distances(a: Mat[n, d], b: Mat[K, d]) -> Mat[n, K]: return np.sqrt(((a[:, None] - b)**2).sum(axis=-1))
@puzzle()
def merge(o: Arr[B, H, T, D]) -> Arr[B, T, 'H*D']:
    b, h, t, d = o.shape
    return o.transpose(0, 2, 1, 3).reshape(b, t, h*d)


# %%
@puzzle(where='d % 2 == 0')
def halves(x: Mat[n, d]) -> Mat[n, 'd//2']:
    a, b = np.split(x, 2, axis=1)
    return a*b
@puzzle()
def flat(x: Mat[B, 1]) -> Vec[B]: return x.squeeze(axis=1)
@puzzle()
def gradient(x: Mat[B, D], dy: Grad[Mat[B, D]]) -> InOut[Mat[D, D]]: return x.T @ dy
@puzzle(where='n >= 3')
def smooth(x: Vec[n]) -> Vec['n - 2']:
    y = np.empty(len(x) - 2)
    for i in range(len(x) - 2): y[i] = (x[i] + x[i + 1] + x[i + 2])/3
    return y
@puzzle()
def running(x: Mat[n, d]) -> Mat[n, d]:
    total, out = np.zeros(x.shape[1]), []
    for row in x:
        total = total + row
        out.append(total)
    return np.stack(out)
@puzzle(where=['T <= 1024', 'ids < K'])
def embed(ids: Int[Vec[T]], words: Mat[K, C], places: Mat[1024, C]) -> Mat[T, C]: return words[ids] + places[np.arange(len(ids))]


# %%
#| hide
assert None not in (project, centre_rows, absolute_error, slopes, distances, merge, halves, flat, gradient, smooth, running, embed)


# %% [markdown]
# A solution that is accepted and wrong is caught by the numbers only:

# %%
@puzzle()
def centre_rows(x: Mat[n, d]) -> Mat[n, d]: return x - x.mean(axis=0)

# %% [markdown]
# ## What this does not show
#
# Two or three tries are no proof: they catch what is likely to be written, not everything that has the right shape.
