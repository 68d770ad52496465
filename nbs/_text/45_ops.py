# %%
#| default_exp tensor.ops

# %% [markdown]
# # The table of operations
# > One record an operation: what it does to shapes, the loop that computes it, and the way back.

# %% [markdown]
# An operation is written once, and four parts of bendml read it. The shape checker asks for its rule, before anything runs. The
# runtime calls its kernel. Training walks back through its gradient. And the laws say what holds of it. This page puts the
# first three into one record.
#
# A **shape rule** is a line of text in the notation of `einsum`, `nk, km -> nm`: an axis is a letter, equal letters are equal
# sizes, and nothing else is asked. It can be read in two ways, for sizes that are numbers and for sizes that are not known
# yet. A **gradient** takes the derivative by the result, the inputs and the result, and gives the derivatives by the inputs, in
# their order and shapes; `None` where there is none.

# %%
#| hide
#| export
from dataclasses import dataclass
from typing import Any, Callable

import numpy as np

from bendml.tensor.arrays import TensorError, typed
from bendml.tensor.gemm import matmul, matmul_nt, matmul_tn
from bendml.tensor.weights import matvec
from bendml.tensor.rows import add_row, col_sums, cross_entropy, relu, relu_back


# %%
#| export
@dataclass(frozen=True)
class Op:
    "An operation: its name, what it does to shapes, its kernel, and its gradient."
    name: str
    rule: str                 # 'nk, km -> nm'
    kernel: Callable          # (inputs...) -> result
    gradient: Callable        # (dy, inputs, result) -> a derivative, or None, for each input

    def shape(self, *sizes: tuple, where: str = '') -> tuple:
        "The result's shape, from the inputs'; sizes may be anything that can be compared. `TensorError` if they do not fit."
        inputs, output = (side.strip() for side in self.rule.split('->'))
        letters, inputs = {}, [i.strip() for i in inputs.split(',')]
        if len(sizes) != len(inputs): raise TensorError(where or self.name, 'wrong number of inputs', len(inputs), len(sizes))
        for n, (axes, have) in enumerate(zip(inputs, sizes)):
            if len(axes) != len(have): raise TensorError(where or self.name, f'input {n + 1}', f'{len(axes)} axes', typed(have))
            want = tuple(letters.setdefault(a, s) for a, s in zip(axes, have))
            if want != tuple(have): raise TensorError(where or self.name, f'input {n + 1} of {self.rule}', typed(want), typed(have))
        return tuple(letters[a] for a in output)

    def __call__(self, *inputs: np.ndarray) -> Any: return self.kernel(*inputs)


# %% [markdown]
# The gradients of the products are products: with $C = AB$ and $G$ the derivative by $C$, those by $A$ and $B$ are $G B^T$ and
# $A^T G$. That these are the adjoints, is the law `adjoint` on the page about [lists](40_lists.ipynb).

# %%
#| export
def _outer(a: np.ndarray, b: np.ndarray) -> np.ndarray: return matmul(a[:, None], b[None, :])

OPS: dict[str, Op] = {op.name: op for op in (
    Op('matmul', 'nk, km -> nm', matmul, lambda g, x, y: (matmul_nt(g, x[1]), matmul_tn(x[0], g))),
    Op('matmul_nt', 'nk, mk -> nm', matmul_nt, lambda g, x, y: (matmul(g, x[1]), matmul_tn(g, x[0]))),
    Op('matmul_tn', 'kn, km -> nm', matmul_tn, lambda g, x, y: (matmul_nt(x[1], g), matmul(x[0], g))),
    Op('matvec', 'rc, c -> r', matvec, lambda g, x, y: (_outer(g, x[1]), matmul(g[None, :], x[0])[0])),
    Op('add_row', 'nm, m -> nm', add_row, lambda g, x, y: (g, col_sums(g))),
    Op('col_sums', 'nm -> m', col_sums, lambda g, x, y: (add_row(np.zeros_like(x[0]), g),)),
    Op('relu', 'nm -> nm', relu, lambda g, x, y: (relu_back(g, y),)),
    Op('add', 'nm, nm -> nm', lambda a, b: a + b, lambda g, x, y: (g, g)),
    Op('cross_entropy', 'nm, n -> ', lambda z, labels: cross_entropy(z, labels)[0], lambda g, x, y: (cross_entropy(*x)[1]*np.float32(g), None)),
)}

# %%
for op in OPS.values(): print(f'{op.name:14} {op.rule}')

# %% [markdown]
# With numbers, and with names for sizes that are not known yet:

# %%
OPS['matmul'].shape((100, 784), (784, 128)), OPS['matmul'].shape(('B', 784), (784, 'H'))

# %%
try: OPS['matmul_tn'].shape(('B', 784), (784, 'H'))
except TensorError as e: print(e)


# %% [markdown]
# Every gradient, against differences of the kernel itself:

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
sizes = dict(n=3, m=4, k=5, r=3, c=4)
for op in OPS.values():
    axes = [a.strip() for a in op.rule.split('->')[0].split(',')]
    inputs = [rng.standard_normal([sizes[a] for a in i]).astype(np.float32) for i in axes]
    if op.name == 'cross_entropy': inputs[1] = np.array([0, 3, 1])
    y = op(*inputs)
    assert np.shape(y) == op.shape(*(x.shape for x in inputs))
    g = rng.standard_normal(np.shape(y)).astype(np.float32)
    for n, dx in enumerate(op.gradient(g, inputs, y)):
        if dx is not None: assert dx.shape == inputs[n].shape and abs(dx - by_differences(op, inputs, n, g)).max() < 2e-3, op.name

# %% [markdown]
# ## What this does not show
#
# A gradient is checked here at random points; that it is the derivative of the operation's formula is proved where layers are made of
# these.
