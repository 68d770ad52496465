# %%
#| default_exp autograd.table

# %% [markdown]
# # Operations and their gradients
# > A table: for each function of NumPy, how a small change goes through it, forwards and backwards.

# %% [markdown]
# Differentiating a program is differentiating its steps, one after the other. A program in NumPy is made of a few dozen
# functions, and this page has a rule for each. The [next page](51_gradients.ipynb) puts the rules together.

# %%
#| hide
#| export
import inspect
from typing import Callable, Hashable, Iterator

import numpy as np

from bendml.shape import indexing, joining, making, moves, products, reductions, searching  # they fill the table
from bendml.shape.symbols import OPS, Gradient, Op, op_of


# %% [markdown]
# ## Three kinds of operation
#
# In [the table](22_symbols.ipynb) each function already has a record with its shape rule. What must be known beyond? How a small change of its inputs changes its output (*ahead*), and how a derivative
# by its output becomes one by its inputs (*back*). Almost every operation is of one of three kinds, and for each kind both
# directions follow from one statement.
#
# | kind | stated | ahead | back |
# |---|---|---|---|
# | element-wise, $y = f(a, b)$ | partial derivatives | $f_a\,\dot a + f_b\,\dot b$ | $g f_a,\; g f_b$ |
# | linear, $y = Lx$ | the transpose $L^\top$ | $L\dot x$ | $L^\top g$ |
# | bilinear, $y = B(a, b)$ | a transpose for each side | $B(\dot a, b) + B(a, \dot b)$ | both transposes |

# %%
#| export
class GradError(ValueError):
    "A function that cannot be differentiated as asked: where, expected, observed, and a hint."
    def __init__(self, where: str, expected: object, observed: object, hint: str = ''):
        super().__init__(f'{where}\n- expected : {expected}\n- observed : {observed}' + (f'\nhint: {hint}' if hint else ''))


# %% [markdown]
# Where NumPy has stretched an input to fit the other (broadcasting), each of its entries was used many times, and its
# derivative is the sum over those uses. Forgetting this sum is a classic; here it is done in one place.

# %%
#| export
def unbroadcast(g: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    "Sum a derivative over the axes along which an input of this shape was stretched."
    if g.shape == shape: return g
    new = g.ndim - len(shape)
    g = np.sum(g, axis=tuple(range(new)) + tuple(new + i for i, n in enumerate(shape) if n == 1 != g.shape[new + i]), keepdims=True)
    return np.reshape(g, shape)

def _names(rule: Callable, skip: int) -> inspect.Signature:
    "The inputs and options that a rule knows, by its own parameters."
    s = inspect.signature(rule)
    return s.replace(parameters=list(s.parameters.values())[skip:])

def _register(fn: Callable, gradient: Gradient, key: Hashable = None) -> None:
    op = op_of(key or fn)
    op.kernel, op.gradient = fn, gradient

def _total(changes: Iterator) -> np.ndarray:
    parts = list(changes)
    return sum(parts[1:], parts[0])


# %%
#| export
def elementwise(fn: Callable, *partials: Callable) -> None:
    "Register `fn`, with one partial derivative (output, *inputs) for each input."
    def ahead(changes, y, inputs, options): return _total(p(y, *inputs)*d for p, d in zip(partials, changes) if d is not None)
    def back(i, g, y, inputs, options): return unbroadcast(g*partials[i](y, *inputs), np.shape(inputs[i]))
    _register(fn, Gradient(back, ahead, _names(partials[0], 1)))

def linear(fn: Callable, transpose: Callable, key: Hashable = None) -> None:
    "Register a linear `fn`, with its transpose (g, x, **options); under its own name, or another key of the table."
    def ahead(changes, y, inputs, options): return fn(changes[0], **options)
    def back(i, g, y, inputs, options): return transpose(g, *inputs, **options)
    _register(fn, Gradient(back, ahead, _names(transpose, 1)), key)

def bilinear(fn: Callable, *transposes: Callable) -> None:
    "Register a bilinear `fn`, with a transpose (g, a, b, **options) for each side."
    def ahead(changes, y, inputs, options):
        put = lambda i, d: fn(*inputs[:i], d, *inputs[i + 1:], **options)
        return _total(put(i, d) for i, d in enumerate(changes) if d is not None)
    def back(i, g, y, inputs, options): return unbroadcast(transposes[i](g, *inputs, **options), np.shape(inputs[i]))
    _register(fn, Gradient(back, ahead, _names(transposes[0], 1)))


# %% [markdown]
# ## The table
#
# Element-wise first. Where a maximum is a tie, each side gets half: the derivative of $\max(a, b)$ at $a = b$ is a choice,
# and this is ours.

# %%
#| export
elementwise(np.add, lambda y, a, b: 1., lambda y, a, b: 1.)
elementwise(np.subtract, lambda y, a, b: 1., lambda y, a, b: -1.)
elementwise(np.multiply, lambda y, a, b: b, lambda y, a, b: a)
elementwise(np.divide, lambda y, a, b: 1/b, lambda y, a, b: -y/b)
elementwise(np.power, lambda y, a, b: b*a**(b - 1), lambda y, a, b: y*np.log(a))
elementwise(np.negative, lambda y, x: -1.)
elementwise(np.positive, lambda y, x: 1.)
elementwise(np.exp, lambda y, x: y)
elementwise(np.expm1, lambda y, x: y + 1)
elementwise(np.log, lambda y, x: 1/x)
elementwise(np.log1p, lambda y, x: 1/(1 + x))
elementwise(np.sqrt, lambda y, x: .5/y)
elementwise(np.square, lambda y, x: 2*x)
elementwise(np.reciprocal, lambda y, x: -y*y)
elementwise(np.tanh, lambda y, x: 1 - y*y)
elementwise(np.sin, lambda y, x: np.cos(x))
elementwise(np.cos, lambda y, x: -np.sin(x))
elementwise(np.arctan, lambda y, x: 1/(1 + x*x))
elementwise(np.absolute, lambda y, x: np.sign(x))
elementwise(np.maximum, lambda y, a, b: _wins(a, b), lambda y, a, b: _wins(b, a))
elementwise(np.minimum, lambda y, a, b: _wins(b, a), lambda y, a, b: _wins(a, b))
elementwise(np.logaddexp, lambda y, a, b: np.exp(a - y), lambda y, a, b: np.exp(b - y))
elementwise(np.where, lambda y, c, a, b: 0., lambda y, c, a, b: 1.*c, lambda y, c, a, b: 1. - c)
elementwise(np.clip, lambda y, a, a_min, a_max: 1.*((a >= a_min) & (a <= a_max)), lambda y, a, a_min, a_max: 1.*(a < a_min),
            lambda y, a, a_min, a_max: 1.*(a > a_max))

def _wins(a, b): return (1.*(a > b) + 1.*(a >= b))/2


# %% [markdown]
# Linear ones only move, repeat or add up entries; the transpose puts them back.

# %%
#| export
def _spread(g, x, axis=None, keepdims=False):
    "The transpose of a sum: each term gets the same."
    if axis is not None and not keepdims: g = np.expand_dims(g, axis)
    return np.broadcast_to(g, np.shape(x))

def _scatter(g, x, index):
    "The transpose of picking: put back, and add up what was picked more than once."
    if hasattr(g, 'op'): raise GradError('a second derivative through an index', 'a first derivative', 'the gradient of a gradient', 'pick with np.where or a product')
    out = np.zeros(np.shape(x), g.dtype)
    np.add.at(out, index, g)
    return out

def _pick(x, index): return x[index]

def _count(x, axis): return np.prod([np.shape(x)[i] for i in np.atleast_1d(range(np.ndim(x)) if axis is None else axis)], dtype=int)

linear(np.sum, _spread)
linear(np.mean, lambda g, a, axis=None, keepdims=False: _spread(g/_count(a, axis), a, axis, keepdims))
linear(np.reshape, lambda g, a, shape: np.reshape(g, np.shape(a)))
linear(np.ravel, lambda g, a: np.reshape(g, np.shape(a)))
linear(np.transpose, lambda g, a, axes=None: np.transpose(g, None if axes is None else np.argsort(axes)))
linear(np.swapaxes, lambda g, a, axis1, axis2: np.swapaxes(g, axis1, axis2))
linear(np.moveaxis, lambda g, a, source, destination: np.moveaxis(g, destination, source))
linear(np.expand_dims, lambda g, a, axis: np.reshape(g, np.shape(a)))
linear(np.squeeze, lambda g, a, axis=None: np.reshape(g, np.shape(a)))
linear(np.broadcast_to, lambda g, a, shape: unbroadcast(g, np.shape(a)))
linear(np.cumsum, lambda g, a, axis=0: np.flip(np.cumsum(np.flip(g, axis), axis), axis))
linear(np.flip, lambda g, a, axis=None: np.flip(g, axis))
linear(np.tril, lambda g, a, k=0: np.tril(g, k))
linear(np.triu, lambda g, a, k=0: np.triu(g, k))
linear(_pick, _scatter, 'getitem')


# %% [markdown]
# The matrix product is linear in each side. A vector counts as a row on the left and as a column on the right, as in NumPy.

# %%
#| export
def _T(x): return np.swapaxes(x, -1, -2)

def _product_left(g, a, b):
    if np.ndim(b) == 1: return np.expand_dims(g, -1)*b if np.ndim(a) > 1 else g*b
    if np.ndim(a) == 1: return np.sum(np.expand_dims(g, -2)*b, -1)
    return np.matmul(g, _T(b))

def _product_right(g, a, b):
    if np.ndim(a) == 1: return np.expand_dims(a, -1)*np.expand_dims(g, -2) if np.ndim(b) > 1 else g*a
    if np.ndim(b) == 1: return np.sum(np.expand_dims(g, -1)*a, tuple(range(np.ndim(a) - 1)))
    return np.matmul(_T(a), g)

bilinear(np.matmul, _product_left, _product_right)
bilinear(np.outer, lambda g, a, b: np.matmul(g, b), lambda g, a, b: np.matmul(_T(g), a))


# %% [markdown]
# A few are none of the three: those that pick the largest entry, and those that join arrays.

# %%
#| export
def _extreme(fn):
    def share(y, x, axis, keepdims):
        hit = 1.*(x == (y if keepdims or axis is None else np.expand_dims(y, axis)))
        return hit/np.sum(hit, axis, keepdims=True)
    def ahead(changes, y, inputs, o):
        axis, keep = o.get('axis'), o.get('keepdims', False)
        return np.sum(changes[0]*share(y, inputs[0], axis, keep), axis, keepdims=keep)
    def back(i, g, y, inputs, o):
        axis, keep = o.get('axis'), o.get('keepdims', False)
        return _spread(g, inputs[0], axis, keep)*share(y, inputs[0], axis, keep)
    _register(fn, Gradient(back, ahead, _names(_spread, 1)))

def _joining(fn, part):
    def ahead(changes, y, inputs, o):
        return fn([np.zeros(np.shape(x)) if d is None else d for d, x in zip(changes, inputs)], **o)
    _register(fn, Gradient(part, ahead, _names(lambda arrays, axis=0: 0, 0), many=True))

def _own_part(i, g, y, inputs, o):
    axis, start = o.get('axis', 0), sum(np.shape(x)[o.get('axis', 0)] for x in inputs[:i])
    return g[(slice(None),)*(axis % np.ndim(y)) + (slice(start, start + np.shape(inputs[i])[axis]),)]

_extreme(np.max); _extreme(np.min)
_joining(np.concatenate, _own_part)
_joining(np.stack, lambda i, g, y, inputs, o: g[(slice(None),)*(o.get('axis', 0) % np.ndim(y)) + (i,)])

# %% [markdown]
# ## What this does not show
#
# That a rule in the table is right: the tests check each against difference quotients and against PyTorch, at random
# points. A proof, for the layers, is on [Gradient rules](52_symbols.ipynb).
