# %%
#| default_exp tensor.ops

# %% [markdown]
# # The table of operations
# > One record an operation: what it does to shapes, the loop that computes it, and the way back.

# %% [markdown]
# An operation is written once, and four parts of bendml read it. The [shape checker](24_shape.ipynb) asks for its rule, before
# anything runs. The runtime calls its kernel. Training walks back through its gradient. And the laws say what holds of it. This
# page puts the first three into one record. The table is the one of the [shape checker](22_symbols.ipynb), in which NumPy's
# functions stand: there each record has room for a kernel and a gradient, and here they are filled in.
#
# A **shape rule** is a line of text in the notation of `einsum`, `nk, km -> nm`: an axis is a letter, equal letters are equal
# sizes, and nothing else is asked. It can be read in two ways, for sizes that are numbers and for sizes that are not known
# yet. The **way back** is a function for each input: it takes the derivative by the result, the result and the inputs, and gives the
# derivative by that input, in its shape.

# %%
#| hide
#| export
from dataclasses import dataclass
from typing import Any, Callable

import numpy as np

from bendml.shape.annotations import spelled
from bendml.shape.symbols import OPS as TABLE, Array, Axis, Gradient, Op as Record, refuse
from bendml.shape.elementwise import lift, same, stored
from bendml.shape.products import apart, meet
from bendml.tensor.arrays import TensorError, typed
from bendml.tensor.gemm import matmul, matmul_nt, matmul_tn
from bendml.tensor.weights import matvec
from bendml.tensor.rows import add_row, col_sums, cross_entropy, hits, relu, relu_back


# %% [markdown]
# ## Reading a rule
#
# Both readings walk through the letters in the same way. They differ in what an axis is, in when two are equal, and in how a
# mismatch is told.

# %%
#| export
def _read(rule: str, shapes: list[tuple], equal: Callable, wrong: Callable) -> list:
    "The axes of each result. `wrong(input, expected, observed)` is called for what does not fit, and raises."
    (inputs, outputs), first = ([part.strip() for part in side.split(',')] for side in rule.split('->')), {}
    if len(shapes) != len(inputs): wrong(None, f'{len(inputs)} inputs', f'{len(shapes)} inputs')
    for n, (letters, have) in enumerate(zip(inputs, shapes)):
        if len(letters) != len(have): wrong(n, f'{len(letters)} axes', have)
        want = tuple(first.setdefault(a, axis) for a, axis in zip(letters, have))
        if not all(map(equal, want, have)): wrong(n, want, have)
    return [[first[a] for a in output] for output in outputs]

def _one(results: list) -> Any: return results[0] if len(results) == 1 else tuple(results)


# %%
#| export
def _symbolic(rule: str, dtype: type) -> Callable:
    "The rule as the shape checker calls it: symbolic arrays in, symbolic arrays out."
    def shape(*inputs: Any, out: Any = None, **_) -> Array:
        arrays = [lift(x, n) for n, x in enumerate(inputs)]
        show = lambda axes: spelled([a.size for a in axes]) if isinstance(axes, tuple) else axes
        def wrong(n, want, have): refuse(f'input {n + 1} of {rule}' if n is not None else 'the number of inputs', show(want), show(have), operand=n)
        results = _read(rule, [x.axes for x in arrays], lambda a, b: same(a.size, b.size).holds, wrong)
        _contracted(rule, arrays)
        return _one([*(Array(_apart(axes), dtype) for axes in results[:-1]), stored(Array(_apart(results[-1]), dtype), out)])
    return shape

def _apart(axes: list[Axis]) -> list[Axis]:
    seen: list[Axis] = []
    for axis in axes: seen.append(apart(tuple(seen), axis))
    return seen

def _contracted(rule: str, arrays: list[Array]) -> None:
    "Two axes that are summed over together must be allowed to meet: an activation the in axis of a weight, for instance."
    inputs, output = (side.replace(' ', '') for side in rule.split('->'))
    if len(arrays) == 2:
        left, right = inputs.split(',')
        for a in set(left) & set(right) - set(output): meet(arrays[0].axes[left.index(a)], arrays[1].axes[right.index(a)], *arrays)


# %% [markdown]
# ## The record

# %%
#| export
@dataclass
class Op(Record):
    "An operation: its name, its rule for symbolic arrays, its kernel and its gradient, and the text of its rule."
    rule: str = ''  # 'nk, km -> nm'

    def sizes(self, *shapes: tuple) -> tuple:
        "The result's shape, from the inputs'; sizes may be anything that can be compared. `TensorError` if they do not fit."
        show = lambda s: typed(s) if isinstance(s, tuple) else s
        def wrong(n, want, have): raise TensorError(self.name, f'input {n + 1} of {self.rule}' if n is not None else 'wrong number of inputs', show(want), show(have))
        return _one([tuple(axes) for axes in _read(self.rule, shapes, lambda a, b: a == b, wrong)])

    def __call__(self, *inputs: np.ndarray) -> Any: return self.kernel(*inputs)

def operation(
    rule: str,                 # 'nk, km -> nm'
    kernel: Callable,          # (inputs...) -> result
    *back: Callable,           # for each input: (g, result, *inputs) -> the derivative by it, where g is the one by the result
    dtype: type = np.float32,  # of the results
) -> Op:
    "Write an operation into the table; an input with no way back, such as labels, has zeros for a derivative."
    def gradient(i, g, y, inputs, options): return back[i](g, y, *inputs) if i < len(back) else np.zeros_like(inputs[i])
    TABLE[kernel] = op = Op(kernel.__name__, _symbolic(rule, dtype), kernel, Gradient(gradient) if back else None, rule)
    return op


# %% [markdown]
# The gradients of the products are products: with $C = AB$ and $G$ the derivative by $C$, those by $A$ and $B$ are $G B^T$ and
# $A^T G$. That these are the adjoints, is the law `adjoint` on the page about [lists](40_lists.ipynb).

# %%
#| export
def _outer(a: np.ndarray, b: np.ndarray) -> np.ndarray: return matmul(a[:, None], b[None, :])

def add(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    "a + b, of one shape."
    return a + b

def mean_loss(z: np.ndarray, labels: np.ndarray) -> np.float32:
    "The mean cross-entropy, without its derivative."
    return cross_entropy(z, labels)[0]

OPS: dict[str, Op] = {op.name: op for op in (
    operation('nk, km -> nm', matmul, lambda g, y, a, b: matmul_nt(g, b), lambda g, y, a, b: matmul_tn(a, g)),
    operation('nk, mk -> nm', matmul_nt, lambda g, y, a, b: matmul(g, b), lambda g, y, a, b: matmul_tn(g, a)),
    operation('kn, km -> nm', matmul_tn, lambda g, y, a, b: matmul_nt(b, g), lambda g, y, a, b: matmul(a, g)),
    operation('rc, c -> r', matvec, lambda g, y, w, x: _outer(g, x), lambda g, y, w, x: matmul(g[None, :], w)[0]),
    operation('nm, m -> nm', add_row, lambda g, y, a, b: g, lambda g, y, a, b: col_sums(g)),
    operation('nm -> m', col_sums, lambda g, y, a: add_row(np.zeros_like(a), g)),
    operation('nm -> nm', relu, lambda g, y, x: relu_back(g, y)),
    operation('nm, nm -> nm', add, lambda g, y, a, b: g, lambda g, y, a, b: g),
    operation('nm, n -> ', mean_loss, lambda g, y, z, labels: cross_entropy(z, labels)[1]*np.float32(g)),
)}

# %% [markdown]
# Three more have a rule, and no gradient: they are used on the way back, or count.

# %%
#| export
for _op in (operation('nm, nm -> nm', relu_back), operation('nm, n -> , nm', cross_entropy), operation('nm, n -> ', hits, dtype=np.int64)): OPS[_op.name] = _op

# %%
for op in OPS.values(): print(f'{op.name:14} {op.rule}')

# %% [markdown]
# With numbers, and with names for sizes that are not known yet:

# %%
OPS['matmul'].sizes((100, 784), (784, 128)), OPS['matmul'].sizes(('B', 784), (784, 'H'))

# %%
try: OPS['matmul_tn'].sizes(('B', 784), (784, 'H'))
except TensorError as e: print(e)

# %% [markdown]
# ## What reads it
#
# The shape checker, when a function that is defined with `@typed` calls one of these:

# %%
from bendml.shape import Dim, Mat, ShapeError, Vec, typed as checked
B, H = Dim('B'), Dim('H')

@checked
def layer(x: Mat[B, 784], w: Mat[784, H], b: Vec[H]) -> Mat[B, H]: return relu(add_row(matmul(x, w), b))


# %%
try:
    @checked
    def turned(x: Mat[B, 784], w: Mat[H, 784], b: Vec[H]) -> Mat[B, H]: return relu(add_row(matmul(x, w), b))
except ShapeError as e: print(e)


# %% [markdown]
# And [autograd](51_gradients.ipynb), for the gradient. Here is every gradient against differences of the kernel itself:

# %%
def by_differences(op, inputs, n, g, h=2**-6):
    "The derivative of the sum of g times op(inputs), by each number of input n."
    out = np.zeros_like(inputs[n])
    for i in np.ndindex(*out.shape):
        moved = [[a.copy() for a in inputs] for _ in range(2)]
        moved[0][n][i] += h
        moved[1][n][i] -= h
        up, down = (float(np.sum(g*op(*m), dtype=np.float64)) for m in moved)
        out[i] = (up - down)/(2*h)
    return out

rng = np.random.default_rng(0)
lengths = dict(n=3, m=4, k=5, r=3, c=4)
for op in (op for op in OPS.values() if op.gradient):
    axes = [a.strip() for a in op.rule.split('->')[0].split(',')]
    inputs = [rng.standard_normal([lengths[a] for a in i]).astype(np.float32) for i in axes]
    if op is OPS['mean_loss']: inputs[1] = np.array([0, 3, 1])
    y = op(*inputs)
    assert np.shape(y) == op.sizes(*(x.shape for x in inputs))
    g = rng.standard_normal(np.shape(y)).astype(np.float32)
    for n, x in enumerate(inputs):
        dx = op.gradient.back(n, g, y, inputs, {})
        if x.dtype == np.float32: assert dx.shape == x.shape and abs(dx - by_differences(op, inputs, n, g)).max() < 2e-3, op.name

# %% [markdown]
# ## What this does not show
#
# A gradient is checked here at random points; that it is the derivative of the operation's formula is proved where layers are made of
# these.
