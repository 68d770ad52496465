# %%
#| default_exp autograd.arrays

# %% [markdown]
# # Gradients of array functions
# > Write a function in NumPy; get its derivative, exact to rounding, at the cost of about one more run.

# %% [markdown]
# `grad(f)` is the function that gives the derivative of `f`. You write `f` in plain NumPy. It is run once with arrays that
# remember how they were made; then the chain rule walks back from the result, through the rules of
# [the table](50b_operations.ipynb), as in the [theorem](50_derivatives.ipynb), but over a graph instead of a tree: a value that is
# used twice is visited once, after everything that uses it.

# %%
#| hide
#| export
from typing import Any, Callable

import numpy as np

from bendml.autograd.table import OPS, GradError, Gradient, Op, op_of

# %% [markdown]
# ## Arrays that remember
#
# A `Traced` array has a value, and how it was made. NumPy lets such a class take over its functions
# ([NEP 13](https://numpy.org/neps/nep-0013-ufunc-overrides.html), [NEP 18](https://numpy.org/neps/nep-0018-array-function-protocol.html)),
# so code that was written for arrays runs on it unchanged. A comparison gives a plain array: it has no derivative, and `if` needs one.

# %%
#| export
_PLAIN = {np.greater, np.greater_equal, np.less, np.less_equal, np.equal, np.not_equal, np.sign, np.isfinite, np.isnan, np.floor,
          np.argmax, np.argmin, np.argsort, np.shape, np.ndim, np.size, np.zeros_like, np.ones_like, np.full_like, np.allclose, np.rint}

class Traced(np.lib.mixins.NDArrayOperatorsMixin):
    "An array that remembers how it was made."
    __slots__ = ('value', 'level', 'number', 'op', 'inputs', 'options')
    count = 0
    def __init__(self, value, level: int, op: Op | None = None, inputs: tuple = (), options: dict = {}):
        Traced.count += 1
        self.value, self.level, self.number, self.op, self.inputs, self.options = value, level, Traced.count, op, inputs, options

    shape = property(lambda self: np.shape(self.value))
    ndim = property(lambda self: np.ndim(self.value))
    size = property(lambda self: np.size(self.value))
    dtype = property(lambda self: self.value.dtype)
    T = property(lambda self: np.transpose(self))
    def __len__(self): return self.shape[0]
    def __getitem__(self, index): return apply(OPS['getitem'], (self,), dict(index=index))
    def __iter__(self): return (self[i] for i in range(len(self)))
    def __repr__(self): return f'Traced({self.value!r})'
    def sum(self, axis=None, keepdims=False): return np.sum(self, axis=axis, keepdims=keepdims)
    def mean(self, axis=None, keepdims=False): return np.mean(self, axis=axis, keepdims=keepdims)
    def max(self, axis=None, keepdims=False): return np.max(self, axis=axis, keepdims=keepdims)
    def min(self, axis=None, keepdims=False): return np.min(self, axis=axis, keepdims=keepdims)
    def reshape(self, *shape): return np.reshape(self, shape[0] if len(shape) == 1 else shape)
    def ravel(self): return np.ravel(self)
    def transpose(self, *axes): return np.transpose(self, (axes[0] if len(axes) == 1 else axes) or None)
    def swapaxes(self, a, b): return np.swapaxes(self, a, b)

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **options):
        if out is not None: raise GradError(f'np.{ufunc.__name__} in place', 'a new array', 'an array that is overwritten', 'write x = x + y instead of x += y')
        if method != '__call__': raise GradError(f'np.{ufunc.__name__}.{method}', 'a function of the table', method, 'np.sum, np.max, np.cumsum are in it')
        return call(ufunc, inputs, options)
    def __array_function__(self, fn, types, args, kwargs): return call(fn, args, kwargs)
    def __array__(self, *_, **__): raise GradError('a traced array became a plain one', 'operations of NumPy', 'np.asarray or a function outside of the table', 'the derivative would be lost')
    def __float__(self): raise GradError('a traced number became a plain one', 'operations of NumPy', 'float(x), a function of math, or y[i] = x', 'np.sin(x) instead of math.sin(x), np.stack(...) instead of y[i] = x')
    def __setitem__(self, index, value): raise GradError('an assignment into an array', 'a new array', 'x[...] = value', 'np.where chooses between two arrays')
    def __bool__(self): raise GradError('a truth value', 'a comparison', 'a traced array')


# %%
#| export
def call(fn: Callable, args: tuple, kwargs: dict) -> Any:
    "Call a function of NumPy on traced arrays: look it up in the table, and sort inputs from options."
    if fn in _PLAIN: return fn(*(_untraced(a) for a in args), **kwargs)
    op = op_of(fn)
    if op is None or op.gradient is None: raise GradError(f'np.{fn.__name__}', 'a function with a gradient', f'np.{fn.__name__}', f'give it one with bendml.autograd.with_gradient; there are {", ".join(differentiable())}')
    known = op.gradient.names
    try: bound = known.bind(*args, **kwargs)
    except TypeError as e: raise GradError(f'np.{fn.__name__}', str(known), f'{e}') from None
    names, count = list(known.parameters), sum(n not in _OPTIONS for n in known.parameters)
    return apply(op, tuple(args[0]) if op.gradient.many else tuple(bound.arguments[n] for n in names[:count]),
                 {n: bound.arguments[n] for n in names[count:] if n in bound.arguments})

_OPTIONS = 'shape axis axis1 axis2 axes source destination k keepdims index'.split()  # the parameters that are no arrays

def differentiable() -> list[str]:
    "The functions of NumPy that have a gradient."
    return sorted(f.__name__ for f, op in OPS.items() if op.gradient and getattr(np, op.name, None) is f)

def _untraced(x):
    while isinstance(x, Traced): x = x.value
    return x


# %%
#| export
def apply(op: Op, inputs: tuple, options: dict) -> Traced:
    "Run an operation on the values, and remember it."
    level = max(x.level for x in inputs if isinstance(x, Traced))
    values = [x.value if _at(x, level) else x for x in inputs]
    value = op.kernel(values, **options) if op.gradient.many else op.kernel(*values, **options)
    return Traced(value, level, op, inputs, options)

def _at(x, level: int) -> bool: return isinstance(x, Traced) and x.level == level

def _values(t: Traced) -> tuple: return tuple(x.value if _at(x, t.level) else x for x in t.inputs)


# %% [markdown]
# ## Both ways through the graph
#
# A value is made after its inputs, so its number is larger. Walking in the order of the numbers, downwards, meets each
# value after all its uses; no recursion, and a chain of any length is only a long list.

# %%
#| export
def history(y: Traced) -> list[Traced]:
    "All values of its level that a result was made of, oldest first."
    seen, todo = {}, [y]
    while todo:
        t = todo.pop()
        if t.number in seen: continue
        seen[t.number] = t
        todo += [x for x in t.inputs if _at(x, y.level)]
    return [seen[n] for n in sorted(seen)]

def pull(y: Traced, g: np.ndarray, leaves: list[Traced]) -> list:
    "The derivative by each leaf, when `g` is the derivative by the result."
    grads = {y.number: g}
    for t in reversed(history(y)):
        g = grads.get(t.number) if t.op is None else grads.pop(t.number, None)
        if g is None or t.op is None: continue
        values = _values(t)
        for i, x in enumerate(t.inputs):
            if not _at(x, t.level): continue
            d = fits(t.op.gradient.back(i, g, t.value, values, t.options), x.value, t.op.name)
            grads[x.number] = grads[x.number] + d if x.number in grads else d
    return [grads.get(x.number, np.zeros_like(x.value)) for x in leaves]

def push(y: Traced, changes: dict[int, np.ndarray]) -> np.ndarray:
    "How the result changes, when leaves change: number of a leaf -> its change."
    changes = dict(changes)
    for t in history(y):
        if t.op is None: continue
        ds = [changes.get(x.number) if _at(x, t.level) else None for x in t.inputs]
        if any(d is not None for d in ds):
            if t.op.gradient.ahead is None: raise GradError(f'jvp of {t.op.name}', 'a rule for the forward way', 'a backward rule only')
            d = t.op.gradient.ahead(ds, t.value, _values(t), t.options)
            changes[t.number] = np.broadcast_to(d, t.shape) if np.shape(d) != t.shape else d
    return changes.get(y.number, np.zeros_like(y.value))


# %% [markdown]
# A derivative has the shape of what it is the derivative by. A rule that returns anything else is refused; NumPy would
# stretch it silently, and the sum would be wrong by a factor.

# %%
#| export
def fits(d: np.ndarray, x: np.ndarray, name: str) -> np.ndarray:
    "A derivative, if it has the shape of its input; in the input's precision."
    if np.shape(d) != np.shape(x): raise GradError(f'the gradient rule of {name}', np.shape(x), np.shape(d), 'a derivative has the shape of what it is the derivative by')
    return d if isinstance(d, Traced) or d.dtype == x.dtype else d.astype(x.dtype)


# %% [markdown]
# ## What you call
#
# Arguments may be numbers, arrays, or tuples, lists and dictionaries of them; the gradient has the same form.

# %%
#| export
def tree_map(fn: Callable, tree: Any, *others: Any) -> Any:
    "Apply a function to every leaf of nested tuples, lists and dictionaries."
    if isinstance(tree, dict): return {k: tree_map(fn, v, *(o[k] for o in others)) for k, v in tree.items()}
    if isinstance(tree, (tuple, list)):
        made = [tree_map(fn, *vs) for vs in zip(tree, *others)]
        return type(tree)(*made) if hasattr(tree, '_fields') else type(tree)(made)
    return fn(tree, *others)

def _leaf(x, where: str) -> np.ndarray:
    a = np.asarray(x) if not isinstance(x, Traced) else x
    if not np.issubdtype(a.dtype, np.floating): raise GradError(where, 'floating-point numbers', f'{a.dtype}', 'x.astype(np.float32), or name the argument to differentiate by in wrt')
    return a

_LEVEL = [0]

def trace(f: Callable, args: tuple, where: str) -> tuple[Any, list, tuple]:
    "Run a function on traced arguments: its result, the leaves, and the level."
    leaves = []
    _LEVEL[0] += 1
    def start(x): leaves.append(Traced(_leaf(x, where), _LEVEL[0])); return leaves[-1]
    try: return f(*tree_map(start, args)), leaves, _LEVEL[0]
    finally: _LEVEL[0] -= 1


# %%
#| export
def vjp(f: Callable, *args: Any) -> tuple[Any, Callable]:
    "The value of f(*args), and a function from a derivative by that value to the derivatives by the arguments."
    y, leaves, level = trace(f, args, f'vjp of {_name(f)}')
    if not isinstance(y, (Traced, np.ndarray, float, np.floating)): raise GradError(f'vjp of {_name(f)}', 'a function that returns one array', type(y).__name__)
    value = y.value if _at(y, level) else y
    def back(g):
        if np.shape(g) != np.shape(value): raise GradError(f'vjp of {_name(f)}', np.shape(value), np.shape(g), 'the derivative by the result has the shape of the result')
        g = g if isinstance(g, Traced) else np.asarray(g, np.asarray(_untraced(value)).dtype)
        ds = iter(pull(y, g, leaves) if _at(y, level) else [np.zeros_like(x.value) for x in leaves])
        return tree_map(lambda x: _like(next(ds), x), args)
    return value, back

def _like(d, x): return float(d) if type(x) is float and not isinstance(d, Traced) else d

def _name(f: Callable) -> str: return getattr(f, '__name__', repr(f))


# %%
#| export
def value_and_grad(f: Callable, wrt: int | tuple[int, ...] = 0) -> Callable:
    "A function that gives f(*args), a single number, and its derivative by the arguments at the positions `wrt`."
    places = (wrt,) if isinstance(wrt, int) else wrt
    def both(*args):
        def part(*chosen):
            at = dict(zip(places, chosen))
            return f(*(at.get(i, a) for i, a in enumerate(args)))
        part.__name__ = _name(f)
        y, back = vjp(part, *(args[i] for i in places))
        if np.shape(y) != (): raise GradError(f'grad of {_name(f)}', 'a single number', f'shape {np.shape(y)}', 'sum it up, or use vjp')
        ds = back(np.ones_like(y) if not isinstance(y, float) else 1.)
        return y, ds[0] if isinstance(wrt, int) else ds
    return both

def grad(f: Callable, wrt: int | tuple[int, ...] = 0) -> Callable:
    "The derivative of f, which returns a single number, by the arguments at the positions `wrt`."
    both = value_and_grad(f, wrt)
    return lambda *args: both(*args)[1]

def jvp(f: Callable, args: tuple, changes: tuple) -> tuple[Any, Any]:
    "f(*args), and how it changes when the arguments change by `changes`: the forward way."
    y, leaves, level = trace(f, args, f'jvp of {_name(f)}')
    given = []
    tree_map(lambda x, d: given.append(np.asarray(d)), args, changes)
    for x, d in zip(leaves, given):
        if d.shape != x.shape: raise GradError(f'jvp of {_name(f)}', x.shape, d.shape, 'a change has the shape of what it changes')
    if not _at(y, level): return y, np.zeros_like(y)
    return y.value, push(y, {x.number: d for x, d in zip(leaves, given)})


# %%
loss = lambda w, x, y: np.mean((np.tanh(x @ w) - y)**2)
rng = np.random.default_rng(0)
w, x, y = rng.normal(size=(3, 2)), rng.normal(size=(5, 3)), rng.normal(size=(5, 2))
value_and_grad(loss)(w, x, y)

# %% [markdown]
# The gradient has the type of the argument: `float32` stays `float32`, a `float` a `float`, a dictionary a dictionary.

# %%
assert grad(loss)(w.astype(np.float32), x, y).dtype == np.float32
grad(lambda p: p['a']*p['b'])({'a': 2., 'b': 3.})

# %% [markdown]
# Second derivatives are gradients of gradients: $\left(x^4\right)'' = 12x^2$.

# %%
assert grad(grad(lambda x: x**4))(3.) == 108.


# %% [markdown]
# ## Shared parts, long chains, stretched arrays
#
# The expression of the page before, where `c` and `d` are used twice; recursion without the right order gives (29, 22).

# %%
def shared(a, b):
    c, d = a + b, a*b
    return (c + d) + c*d

assert grad(shared, (0, 1))(2., 3.) == (25., 19.)


# %%
def chain(x):
    for _ in range(5000): x = x + 1
    return x

assert grad(chain)(0.) == 1.

# %% [markdown]
# A (1, 4) row is added to each of three rows: its derivative is (1, 4), the sums of the columns.

# %%
g = grad(lambda a, b, g: np.sum((a + b)*g), 1)(np.ones((3, 4)), np.ones((1, 4)), np.arange(12.).reshape(3, 4))
assert g.tolist() == [[12., 15., 18., 21.]]


# %% [markdown]
# ## Checking
#
# `check_grad` compares with the slope between two nearby points, in float64, and the two directions with each other.

# %%
#| export
def check_grad(
    f: Callable,           # returns one array, of any shape
    *args: Any,            # where to check; taken as float64
    step: float = 1e-6,    # how far apart the nearby points are
    tol: float = 1e-5,     # relative
    seed: int = 0,         # of the random direction
) -> float:                # the relative difference that was found
    "Check backward, forward and a difference quotient against each other at one point; `GradError` if they differ."
    rng = np.random.default_rng(seed)
    args = tree_map(lambda x: np.asarray(x, np.float64), args)
    changes = tree_map(lambda x: rng.standard_normal(x.shape), args)
    y, back = vjp(f, *args)
    g = rng.standard_normal(np.shape(y))
    along = lambda t: f(*tree_map(lambda x, d: x + t*d, args, changes))
    slope, inner, worst = np.sum(g*(along(step) - along(-step))/(2*step)), [], 0.
    tree_map(lambda a, d: inner.append(np.sum(a*d)), back(g), changes)
    for way, got in (('backward', lambda: sum(inner)), ('forward', lambda: np.sum(g*jvp(f, args, changes)[1]))):
        off = abs(got() - slope)/max(abs(slope), 1e-6)
        if not off <= tol: raise GradError(f'the {way} derivative of {_name(f)}', f'{slope:.9g}, the slope between two nearby points', f'{got():.9g}')
        worst = max(worst, off)
    return worst


# %%
assert check_grad(loss, w, x, y) < 1e-6


# %% [markdown]
# ## A rule of your own
#
# `with_gradient` gives a function a hand-written rule. It is then treated like any other operation, and its shapes are held
# to the same law.

# %%
#| export
def with_gradient(f: Callable, back: Callable) -> Callable:
    "`f`, differentiated by `back(g, y, *args)`, which returns a derivative for each argument."
    one = lambda i, g, y, inputs, options: _each(back(g, y, *inputs), len(inputs))[i]
    return from_table(Op(_name(f), None, f, Gradient(one)))

def from_table(op: Op) -> Callable:
    "An operation, differentiated by its own gradient."
    def call(*args): return apply(op, args, {}) if any(isinstance(a, Traced) for a in args) else op.kernel(*args)
    call.__name__, call.__doc__ = op.name, op.kernel.__doc__
    return call

def _each(ds, n: int) -> tuple: return ds if isinstance(ds, tuple) else (ds,)*n if n == 1 else tuple(ds)


# %%
wrong = with_gradient(lambda x: x*2, lambda g, y, x: np.ones((4, 3)))
try: grad(lambda x: np.sum(wrong(x)))(np.ones(3))
except GradError as e: print(e)

# %% [markdown]
# The operations of [bendml's own](45_ops.ipynb) stand in the same table, and bring their gradients with them.

# %%
from bendml.tensor import OPS as TABLE
product, add_row, loss = (from_table(TABLE[n]) for n in ('matmul', 'add_row', 'mean_loss'))
labels = np.array([0, 1, 1, 0, 1])
by_table = grad(lambda w, b: loss(add_row(product(x.astype(np.float32), w), b), labels), (0, 1))

def by_numpy(w, b):
    z = x @ w + b
    return np.mean(np.log(np.sum(np.exp(z), 1)) - np.sum(z*np.eye(2)[labels], 1))

b = np.zeros(2)
for d, e in zip(by_table(w.astype(np.float32), b.astype(np.float32)), grad(by_numpy, (0, 1))(w, b)): assert d.dtype == np.float32 and abs(d - e).max() < 1e-6


# %% [markdown]
# ## What is refused

# %%
def overwritten(x):
    x += 1
    return np.sum(x)

for bad, at in ((lambda x: np.sum(x), np.arange(3)), (lambda x: x*2, np.ones(3)), (overwritten, np.ones(3)),
                (lambda x: np.linalg.det(x), np.eye(2))):
    try: grad(bad)(at)
    except GradError as e: print(str(e).split('\nhint: give it')[0], '\n')

# %% [markdown]
# ## What this does not show
#
# - That a rule in the table is right: the tests check each against difference quotients and against PyTorch, at random
#   points. A proof, for the layers, is on [Gradient rules](52_symbols.ipynb).
# - Speed: remembering costs a few microseconds an operation. The layers have backward passes of their own.
