# %%
#| default_exp shape.__init__

# %% [markdown]
# # Shapes
# > A program whose shapes do not fit is refused before it runs, for every size, with the smallest sizes that fail.

# %% [markdown]
# ## What a matrix product is
#
# A matrix is a table of numbers; `Mat[2, 3]` has 2 rows and 3 columns. To multiply two of them, take a row of the left one
# and a column of the right one, multiply number by number, and add up. That needs the row to be as long as the column: the
# left one's columns must be as many as the right one's rows.
#
# $$\text{Mat}[n, k] \cdot \text{Mat}[k, m] = \text{Mat}[n, m]$$

# %%
#| hide
#| export
_HOME = {  # name: the module that it lives in
    'typed': 'typing', 'stored': 'boundary', 'ShapeError': 'messages', 'Dim': 'sizes', 'dims': 'sizes',
    'Mat': 'annotations', 'Vec': 'annotations', 'Arr': 'annotations', 'L': 'annotations',
    'Int': 'annotations', 'Bool': 'annotations', 'Float': 'annotations', 'F32': 'annotations', 'F64': 'annotations',
    'InOut': 'annotations', 'OutIn': 'annotations', 'Grad': 'annotations', 'rule': 'calls', 'refuse': 'symbols', 'as_mat': 'boundary',
}
__all__ = list(_HOME)


# %%
#| hide
#| export
def __getattr__(name: str):
    if name not in _HOME: raise AttributeError(f'module bendml.shape has no attribute {name!r}; it has {", ".join(__all__)}')
    from importlib import import_module
    return getattr(import_module(f'bendml.shape.{_HOME[name]}'), name)

def __dir__() -> list[str]: return sorted(__all__)


# %%
import numpy as np
np.array([[1, 2, 3], [4, 5, 6]]) @ np.array([[1, 0], [0, 1], [1, 1]])

# %% [markdown]
# ## A program that is refused
#
# With `@typed` above it, a function says what its arguments are, and is checked where it is defined. This one multiplies 2×3
# by 4×5. It is never called.

# %%
from bendml.shape import Arr, Bool, Dim, Grad, InOut, Int, L, Mat, OutIn, ShapeError, Vec, dims, stored, typed

# %%
try:
    @typed
    def bad_matmul(a: Mat[2, 3], b: Mat[4, 5]) -> Mat[2, 5]:
        return a @ b
except ShapeError as e: print(e)


# %% [markdown]
# With the right number of rows it is accepted, and is an ordinary function.

# %%
@typed
def matmul(a: Mat[2, 3], b: Mat[3, 4]) -> Mat[2, 4]:
    return a @ b

matmul(np.full((2, 3), 2.0), np.full((3, 4), 3.0))

# %% [markdown]
# ## Sizes with names
#
# How many rows a batch has is not known until the program runs. So a size can be a name. What is accepted below is right for
# every `B`, and so is a refusal: it names the smallest sizes that fail.

# %%
B, T, C, H, D, n = dims('B T C H D n')

@typed
def layer(x: Mat[B, 4], w: Mat[4, 3], b: Vec[3]) -> Mat[B, 3]:
    return np.maximum(x @ w + b, 0)


# %%
try:
    @typed
    def runtime_batch_bad(x: Mat[B, 4], y: Mat[n, 3]) -> Mat[B, 3]:
        return x[:, :3] + y
except ShapeError as e: print(e)

# %% [markdown]
# The number of rows may come from a file. `B` is bound when the function is called, once for each call; the next call may
# have another.

# %%
import io
file = io.StringIO('3\n.5 1 -.5 2\n1.5 -2 .25 0\n-1 .5 3 1\n')
rows = int(file.readline())
x = np.loadtxt(file).reshape(rows, 4)
w = np.array([[.5, -1, .25], [1, .5, -.5], [-.25, .75, 1], [.1, .2, .3]])
print(layer(x, w, np.array([.1, -.2, .05])))
layer(x[:1], w, np.zeros(3)).shape

# %% [markdown]
# What does not fit is refused at the call, before any arithmetic:

# %%
try: layer(x, w.T, np.zeros(3))
except ShapeError as e: print(e)


# %% [markdown]
# ## Reshaping
#
# A reshape must keep the number of entries. For sizes that are not known, two products must be equal: `n*6` is `(n*2)*3` for
# every `n`, because multiplication is associative.

# %%
@typed
def symbolic_reshape(x: Mat[n, 6]) -> Mat['2*n', 3]:
    return x.reshape(2*len(x), 3)

symbolic_reshape(np.arange(12.0).reshape(2, 6)).shape

# %%
try:
    @typed
    def symbolic_reshape_bad(x: Mat[n, 6]) -> Mat[n, 5]:
        return x.reshape(len(x), 5)
except ShapeError as e: print(e)

# %%
try:
    @typed
    def bad_reshape(x: Mat[2, 6]) -> Mat[5, 3]:
        return x.reshape(5, 3)
except ShapeError as e: print(e)


# %% [markdown]
# Where it depends on the sizes, say so. An `assert` at the beginning is a hypothesis: it is assumed below it, and checked at
# every call by Python itself. `where=` is the same for the caller.

# %%
@typed
def reshape(x: Mat['r1', 'c1'], r2: int, c2: int) -> Mat['r2', 'c2']:
    assert x.shape[0]*x.shape[1] == r2*c2
    return x.reshape(r2, c2)


# %%
@typed(where='C % H == 0')
def heads(x: Arr[B, T, C], H: int) -> Arr[B, H, T, 'C//H']:
    b, t, c = x.shape
    return x.reshape(b, t, H, c//H).transpose(0, 2, 1, 3)


# %% [markdown]
# ## The smallest sizes that fail
#
# Without that condition, the same function is refused, with the smallest `C` and `H` for which it would stop.

# %%
try:
    @typed
    def heads(x: Arr[B, T, C], H: int) -> Arr[B, H, T, 'C//H']:
        b, t, c = x.shape
        return x.reshape(b, t, H, c//H).transpose(0, 2, 1, 3)
except ShapeError as e: print(e)

# %% [markdown]
# ## By accident
#
# NumPy would compute this loss without a word, and it would be wrong: each prediction is compared with every target. For
# predictions `[[1], [2], [3]]` and targets `[1, 2, 3]` it says 1.33 where the truth is 0. The [rule](22b_elementwise.ipynb)
# says when two arrays of different ranks may meet.

# %%
try:
    @typed
    def mse(pred: Mat[B, 1], target: Vec[B]) -> float:
        return ((pred - target)**2).mean()
except ShapeError as e: print(e)


# %%
@typed
def mse(pred: Mat[B, 1], target: Vec[B]) -> float:
    return ((pred[:, 0] - target)**2).mean()

mse(np.array([[1.], [2.], [3.]]), np.array([1., 2., 3.]))

# %% [markdown]
# ## Gradients
#
# A gradient has the shape of what it is the gradient of. `bad_grad` returns it transposed:

# %%
try:
    @typed
    def bad_grad(x: Mat[100, 784], dy: Mat[100, 128]) -> Mat[784, 128]:
        return dy.T @ x
except ShapeError as e: print(e)


# %%
@typed
def gradient(x: Mat[100, 784], dy: Mat[100, 128]) -> Mat[784, 128]:
    return x.T @ dy


# %% [markdown]
# A square weight can be stored the wrong way round, and every shape still fits. So a weight says how it is stored:
# `InOut[...]` to be used as `x @ w`, `OutIn[...]` as `x @ w.T`.

# %%
try:
    @typed
    def square_transpose_bad(x: Mat[B, D], w: OutIn[Mat[D, D]]) -> Mat[B, D]:
        return x @ w
except ShapeError as e: print(e)


# %%
@typed
def project(x: Mat[B, D], w: InOut[Mat[D, D]]) -> Mat[B, D]: return x @ w

loaded = stored(np.eye(3), 'out×in')  # what a loader that knows its file says
try: project(np.ones((2, 3)), loaded)
except ShapeError as e: print(e)
project(np.ones((2, 3)), loaded.T).shape

# %% [markdown]
# Work that is cut into bands is a slice; this one has 2304 columns where the next step takes 768.

# %%
try:
    @typed
    def bad_bands(x: Mat[1, 2304], w: Mat[768, 768]) -> Mat[1, 768]:
        return x @ w
except ShapeError as e: print(e)


# %%
@typed
def bands(x: Mat[1, 2304], w: Mat[768, 768]) -> Mat[1, 768]:
    return x[:, 768:1536] @ w


# %% [markdown]
# ## Functions that call each other
#
# A typed function is known by its signature. 784 into 128, then 64 into 10, does not compose:

# %%
@typed
def first(x: Mat[B, 784], w: Mat[784, 128]) -> Mat[B, 128]: return np.maximum(x @ w, 0)
@typed
def second(h: Mat[B, 64], w: Mat[64, 10]) -> Mat[B, 10]: return h @ w

try:
    @typed
    def network(x: Mat[B, 784], w1: Mat[784, 128], w2: Mat[64, 10]) -> Mat[B, 10]:
        return second(first(x, w1), w2)
except ShapeError as e: print(e)


# %%
@typed
def narrow(x: Mat[B, 784], w: Mat[784, 64]) -> Mat[B, 64]: return np.maximum(x @ w, 0)

@typed
def network(x: Mat[B, 784], w1: Mat[784, 64], w2: Mat[64, 10]) -> Mat[B, 10]:
    return second(narrow(x, w1), w2)


# %% [markdown]
# ## A training step, and a transformer's block
#
# Plain NumPy, forwards and backwards, for every batch size and every width:

# %%
@typed
def train_step(x: Mat[B, 784], y: Int[Vec[B]], w1: Mat[784, H], b1: Vec[H], w2: Mat[H, 10], b2: Vec[10], lr: float
               ) -> tuple[float, Mat[784, H], Vec[H], Mat[H, 10], Vec[10]]:
    h = np.maximum(x @ w1 + b1, 0)
    z = h @ w2 + b2
    e = np.exp(z - z.max(axis=1, keepdims=True))
    p = e/e.sum(axis=1, keepdims=True)
    rows = np.arange(len(x))
    loss = -np.log(p[rows, y]).mean()
    p[rows, y] -= 1
    dz = p/len(x)
    dh = dz @ w2.T*(h > 0)
    return loss, w1 - lr*(x.T @ dh), b1 - lr*dh.sum(0), w2 - lr*(h.T @ dz), b2 - lr*dz.sum(0)

train_step.__shapes__.report()


# %%
def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e/e.sum(axis=-1, keepdims=True)

def layer_norm(x, g, b):
    return g*(x - x.mean(-1, keepdims=True))/np.sqrt(x.var(-1, keepdims=True) + 1e-5) + b

def gelu(x): return 0.5*x*(1 + np.tanh(np.sqrt(2/np.pi)*(x + 0.044715*x**3)))


# %%
@typed(where='C % H == 0', keep='B T')
def block(x: Arr[B, T, C], g1: Vec[C], b1: Vec[C], wqkv: Mat[C, '3*C'], bqkv: Vec['3*C'], wo: InOut[Mat[C, C]], bo: Vec[C],
          g2: Vec[C], b2: Vec[C], wfc: Mat[C, '4*C'], bfc: Vec['4*C'], wproj: Mat['4*C', C], bproj: Vec[C], H: int) -> Arr[B, T, C]:
    b, t, c = x.shape
    split = lambda m: m.reshape(b, t, H, c//H).transpose(0, 2, 1, 3)
    q, k, v = map(split, np.split(layer_norm(x, g1, b1) @ wqkv + bqkv, 3, axis=-1))
    scores = q @ k.swapaxes(-1, -2)/np.sqrt(c//H) + (1 - np.tri(t))*-1e10
    x = x + (softmax(scores) @ v).transpose(0, 2, 1, 3).reshape(b, t, c) @ wo + bo
    return x + gelu(layer_norm(x, g2, b2) @ wfc + bfc) @ wproj + bproj

block.__shapes__.report()

# %% [markdown]
# `keep='B T'` says that no reduction or running sum may go over the batch or over time, nor over what is sliced, merged or
# joined from these axes; that a typed function which takes one of them must return one; and that a product may sum over one
# only if its result still has an axis of that size, as in attention, where each time step becomes a mixture of all of them.
# (What a loop adds up row by row is not seen.) A layer norm over the wrong axis has the right shape, and is refused by that:

# %%
try:
    @typed(keep='B T')
    def wrong_axis(x: Arr[B, T, C], g: Vec[C]) -> Arr[B, T, C]:
        return g*(x - x.mean(-2, keepdims=True))
except ShapeError as e: print(e)

# %% [markdown]
# ## In the editor, on the command line
#
# The annotations are ordinary generics to a type checker: a stub makes `Dim` a type variable and `L[784]` a literal type, so
# that pyright and mypy flag `Mat[L[2], L[3]] @ Mat[L[4], L[5]]` while you type, with no plugin. `bendml check` does the full
# check for files and modules, see [the command](24b_check.ipynb), and `bendml lsp` shows it [in the editor](24d_editor.ipynb)
# when a file is saved; [your own script](24c_howto.ipynb) is a good place to
# start, and [the puzzles](25_puzzles.ipynb) to practise.
#
# ## What this does not show
#
# A program that is accepted computes arrays of the right shapes. It may still compute the wrong numbers. In a
# [trial](https://github.com/bendml/bendml/blob/main/tests/shape/mutants.py) that changes six programs at one point each, and
# is part of the tests, every change that NumPy would stop at, or that gives another shape, is refused, and more than a third
# of those that only make the numbers wrong: seven in ten of these because a name is then never used, the others by a weight's
# layout, the order of axes that are merged, and `keep=`. What remains unseen is of these kinds:
#
# - another array of the same shape (`k` for `v`, `q` for `e`), where both are still used somewhere;
# - a step left out or doubled that keeps the shape: a bias, an activation, a scale; operands of `-` or `/` swapped;
# - a number that is no size: `0.5`, an exponent, the `+ 1` in a scale; `sqrt(H)` for `sqrt(D)`;
# - a reduction over the wrong axis with `keepdims=True`, where `keep=` does not name that axis;
# - a square weight transposed, where its annotation has no layout; a square table of distances transposed;
# - axes in another order before they are merged into one that the annotation calls by a single name.
#
# An index that comes from outside may be out of range, unless `where="ids < V"` has that refused at the call; one that is
# computed must be [known to fit](22a_ranges.ipynb).
