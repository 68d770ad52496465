# %%
#| default_exp nn.layer

# %% [markdown]
# # What a layer is
# > Eight functions, the same for every layer; and the ways to put layers together, which are layers again.

# %% [markdown]
# A layer takes arrays to arrays, and on the way back takes derivatives to derivatives. It is a record of a few sizes that
# never change. Its numbers, the parameters, live outside of it, so there is no hidden state: what a pass needs, it is
# given, and what it makes, it returns.
#
# | function | |
# |---|---|
# | `forward(p, x)` | the output, and what the way back will need |
# | `backward(p, saved, dy, g)` | the derivative by the input; those by the parameters are *added* to `g` |
# | `step(update, p, g, s)` | let an optimizer move the parameters |
# | `zeros()` | parameters that are all zero: a fresh gradient |
# | `dump(p)`, `load(a, at)`, `store(p, a, at)` | parameters as one row of numbers, and back |
# | `count` | how many numbers they are |
#
# Two layers fit if the first one's output is what the second takes. That is checked when they are put together, before any
# number is computed. How many examples there are, and how long a text is, may be known only at run time.

# %%
#| hide
#| export
import functools
from dataclasses import dataclass
from typing import Any, Callable, Iterator

import numpy as np
from numpy import float32

from bendml.nn.sums import plus


# %% [markdown]
# ## Types
#
# The type of an array is the size of its last axis; the axes before it are batch and time, and free. Whole numbers, such as
# tokens, have the type `'ids'`. A pair of arrays has a pair of types. `None` is not known yet. What is stored in another way
# than as an array, such as a matrix of which most entries are zero, says its type itself.
#
# A row may be a picture: its numbers are height × width × channels. Its type is then a `Grid`. A picture fits where any row of
# its size fits, but a picture of other sides does not.

# %%
#| export
@dataclass(frozen=True)
class Grid:
    "The type of rows that are pictures."
    height: int
    width: int
    channels: int    # innermost
    sides = property(lambda self: (self.height, self.width, self.channels))
    size = property(lambda self: self.height*self.width*self.channels)
    def __str__(self): return f'{self.height}×{self.width}×{self.channels}'

Type = int | str | tuple | Grid | None

class LayerError(ValueError):
    "Layers, arrays or derivatives that do not fit: where, expected, observed, and a hint."
    def __init__(self, where: str, expected: Any, observed: Any, hint: str = ''):
        super().__init__(f'{where}\n- expected : {expected}\n- observed : {observed}' + (f'\nhint: {hint}' if hint else ''))

def show(t: Type) -> str:
    "A type in words."
    if isinstance(t, tuple): return f"({', '.join(map(show, t))})"
    return f'Mat<B, {t}>' if isinstance(t, int | Grid) else 'whole numbers' if t == 'ids' else 'anything'

def meet(a: Type, b: Type, where: str) -> Type:
    "The type that is both; `LayerError` if there is none."
    if a is None or b is None or a == b: return b if a is None else a
    for grid, row in ((a, b), (b, a)):
        if isinstance(grid, Grid) and row == grid.size: return grid
    if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b): return tuple(meet(x, y, where) for x, y in zip(a, b))
    raise LayerError(where, show(a), show(b))

def type_of(x: Any, where: str) -> Type:
    "The type of an array or a pair of arrays; `LayerError` for what is neither float32 nor whole numbers."
    if isinstance(x, tuple): return tuple(type_of(v, where) for v in x)
    if not isinstance(x, np.ndarray):
        if isinstance(t := getattr(x, 'type', None), int | Grid): return t
        raise LayerError(where, 'an array', type(x).__name__)
    if np.issubdtype(x.dtype, np.integer): return 'ids'
    if x.dtype != float32: raise LayerError(where, 'float32', x.dtype, 'x.astype(np.float32)')
    if x.ndim == 0: raise LayerError(where, 'at least one axis', 'a single number')
    return x.shape[-1]

def shape_of(x: Any) -> Any: return tuple(map(shape_of, x)) if isinstance(x, tuple) else np.shape(x)


# %% [markdown]
# ## The protocol
#
# A layer of its own has named parameters with shapes; a combination has parts. Everything that only walks over parameters
# is written here, once.

# %%
#| export
def leaves(p: Any) -> Iterator[np.ndarray]:
    "The arrays of nested tuples, in order."
    if isinstance(p, tuple):
        for q in p: yield from leaves(q)
    else: yield p

@dataclass(frozen=True)
class Parameters:
    "What has parameters, named arrays of known shapes, of its own or in its parts."
    def shapes(self) -> dict[str, tuple[int, ...]]:
        "The names and shapes of its own parameters."
        return {}
    def parts(self) -> tuple['Layer', ...]:
        "The layers that it is made of."
        return ()
    @functools.cached_property
    def name(self) -> str: return repr(self) if len(repr(self)) < 60 else type(self).__name__
    @property
    def count(self) -> int:
        "How many numbers its parameters are."
        return sum(int(np.prod(s)) for s in self.shapes().values()) + sum(q.count for q in self.parts())
    def make(self, fn: Callable) -> tuple:
        "Parameters from fn(name, shape)."
        return tuple(q.make(lambda n, s, i=i: fn(f'{i}.{n}', s)) for i, q in enumerate(self.parts())) or tuple(fn(n, s) for n, s in self.shapes().items())
    def names(self) -> list[str]:
        "A name for each parameter, in order: the places of the parts, and the own name."
        return list(leaves(self.make(lambda n, s: n)))
    def zeros(self) -> tuple: return self.make(lambda n, s: np.zeros(s, float32))
    def init(self, rng: np.random.Generator | int) -> tuple:
        "Fresh parameters, from a generator or a seed."
        rng = np.random.default_rng(rng)
        return tuple(q.init(rng) for q in self.parts()) or self.fresh(rng)
    def fresh(self, rng: np.random.Generator) -> tuple: return self.zeros()


# %%
#| export
class Flat(Parameters):
    "Parameters as one row of numbers, and back."
    def dump(self, p: tuple) -> np.ndarray:
        "All parameters as one row of numbers."
        self.store(p, a := np.empty(self.count, float32))
        return a
    def load(self, a: np.ndarray, at: int = 0) -> tuple:
        "Parameters from a row of numbers, from place `at` on."
        if at < 0 or len(a) < at + self.count: raise LayerError(f'load into {self.name}', f'{self.count} numbers from place {at}', f'{len(a)} numbers in all')
        def take(name, shape):
            nonlocal at
            size = int(np.prod(shape))
            at += size
            return a[at - size:at].astype(float32).reshape(shape)
        return self.make(take)
    def store(self, p: tuple, a: np.ndarray, at: int = 0) -> None:
        "Write parameters into a row of numbers, from place `at` on."
        if at < 0 or len(a) < at + self.count: raise LayerError(f'store {self.name}', f'room for {self.count} numbers from place {at}', f'{len(a)} numbers in all')
        for w in leaves(p): a[at:at + w.size] = w.ravel(); at += w.size


# %%
#| export
@dataclass(frozen=True)
class Layer(Flat):
    "The protocol. A new layer defines `_forward` and `_backward`, and what it has of `shapes`, `takes` and `gives`."
    takes = gives = None   # types; None: anything, and the same as the input

    def out(self, t: Type = None) -> Type:
        "The type of the output for an input of type `t`; `LayerError` if it does not fit."
        t = meet(self.takes, t, self.name)
        return t if self.gives is None else self.gives
    def _forward(self, p, x): raise NotImplementedError
    def _backward(self, p, saved, dy, g): raise NotImplementedError

    def forward(self, p: tuple, x: Any) -> tuple[Any, tuple]:
        "The output, and what the way back needs."
        self.out(type_of(x, f'the input of {self.name}'))
        y, saved = self._forward(p, x)
        return y, (shape_of(x), shape_of(y), saved)
    def backward(self, p: tuple, saved: tuple, dy: Any, g: tuple) -> Any:
        "The derivative by the input, from the one by the output; those by the parameters are added to `g`."
        x_shape, y_shape, inner = saved
        if shape_of(dy) != y_shape: raise LayerError(f'the derivative by the output of {self.name}', y_shape, shape_of(dy), 'it has the shape of the output')
        dx = self._backward(p, inner, dy, g)
        if dx is not None and shape_of(dx) != x_shape: raise LayerError(f'the derivative by the input of {self.name}', x_shape, shape_of(dx), 'it has the shape of the input')
        return dx
    def step(self, update: Callable, p: tuple, g: tuple, *s: tuple) -> None:
        "Call update(p, g, *s) on each parameter, its gradient and what the optimizer has for it."
        for i, q in enumerate(self.parts()): q.step(update, p[i], g[i], *(t[i] for t in s))
        if not self.parts():
            for w in zip(p, g, *s): update(*w)
    def evaluating(self) -> 'Layer':
        "The same layer, as it is used after training: nothing is dropped."
        return self


# %% [markdown]
# Gradients are added up through `accumulate`, which refuses a gradient of another shape. NumPy would stretch it, or, for
# a square matrix, take its transpose for the matrix itself.

# %%
#| export
def accumulate(into: np.ndarray, d: np.ndarray, name: str) -> None:
    "into += d, if they have one shape."
    if into.shape != d.shape: raise LayerError(f'the derivative by {name}', _mat(into.shape), _mat(d.shape), 'transposed?' if into.shape == d.shape[::-1] else '')
    into += d

def _mat(shape: tuple) -> str: return f"Mat<{', '.join(map(str, shape))}>"


# %% [markdown]
# ## Putting layers together
#
# `Seq` runs one after the other; on the way back, in the opposite order. Its law, that the backward pass of a composition
# is the composition of the backward passes, is proved on [Laws of layers](67_layer_laws.ipynb).

# %%
#| export
@dataclass(frozen=True)
class Id(Layer):
    "Nothing happens."
    def _forward(self, p, x): return x, None
    def _backward(self, p, saved, dy, g): return dy

@dataclass(frozen=True, init=False)
class _Parts(Layer):
    "A combination of layers."
    layers: tuple[Layer, ...]
    def __init__(self, *layers: Layer):
        if wrong := [q for q in layers if not isinstance(q, Layer)]: raise LayerError(type(self).__name__, 'layers', type(wrong[0]).__name__)
        object.__setattr__(self, 'layers', layers)
        self.out()
    def __repr__(self): return f"{type(self).__name__}({', '.join(map(repr, self.layers))})"
    def parts(self): return self.layers
    def evaluating(self): return type(self)(*(q.evaluating() for q in self.layers))

class Seq(_Parts):
    "Layers one after the other."
    @property
    def takes(self):
        for q in self.layers:
            if q.takes is not None or q.gives is not None: return q.takes
    def out(self, t=None):
        t, before = meet(self.takes, t, 'Seq'), 'its input'
        for i, q in enumerate(self.layers):
            try: t, before = q.out(t), q.name
            except LayerError as e: raise LayerError(f'Seq: layer {i}, {q.name}, after {before}', *_facts(e)) from None
        return t
    def _forward(self, p, x):
        saved = []
        for q, w in zip(self.layers, p):
            x, s = q.forward(w, x)
            saved.append(s)
        return x, saved
    def _backward(self, p, saved, dy, g):
        for q, w, s, d in zip(self.layers[::-1], p[::-1], saved[::-1], g[::-1]): dy = q.backward(w, s, dy, d)
        return dy

def _facts(e: LayerError) -> tuple[str, str]: return tuple(line.split(' : ')[1] for line in str(e).splitlines()[1:3])


# %% [markdown]
# `Fork` hands its input to two layers; on the way back their derivatives add up. `Both` takes a pair apart. `Add` and
# `Mul` make one out of two. With them, `Residual(f)`, $x + f(x)$, is no new idea.

# %%
#| export
class Fork(_Parts):
    "One input for two layers, a pair of outputs."
    @property
    def takes(self): return meet(self.layers[0].takes, self.layers[1].takes, 'Fork: both take the same')
    def out(self, t=None):
        t = meet(self.takes, t, 'Fork')
        return tuple(q.out(t) for q in self.layers)
    def _forward(self, p, x):
        (a, s), (b, t) = (q.forward(w, x) for q, w in zip(self.layers, p))
        return (a, b), (s, t)
    def _backward(self, p, saved, dy, g):
        a, b = (q.backward(w, s, d, h) for q, w, s, d, h in zip(self.layers, p, saved, dy, g))
        return _plus(a, b)

class Both(_Parts):
    "Two layers side by side: a pair in, a pair out."
    @property
    def takes(self): return tuple(q.takes for q in self.layers)
    def out(self, t=None): return tuple(q.out(s) for q, s in zip(self.layers, meet(self.takes, t, 'Both')))
    def _forward(self, p, x):
        (a, s), (b, t) = (q.forward(w, v) for q, w, v in zip(self.layers, p, x))
        return (a, b), (s, t)
    def _backward(self, p, saved, dy, g): return tuple(q.backward(w, s, d, h) for q, w, s, d, h in zip(self.layers, p, saved, dy, g))

def _plus(a, b):
    if isinstance(a, tuple): return tuple(map(_plus, a, b))
    return plus(a, b)


# %%
#| export
@dataclass(frozen=True)
class _Pair(Layer):
    takes = (None, None)
    def out(self, t=None):
        a, b = meet(self.takes, t, self.name)
        return meet(a, b, f'{self.name}: two of the same')
    def same(self, x):
        if x[0].shape != x[1].shape: raise LayerError(f'{self.name}: two of the same', x[0].shape, x[1].shape, 'nothing is stretched silently')

@dataclass(frozen=True)
class Add(_Pair):
    "The sum of a pair."
    def _forward(self, p, x): self.same(x); return _plus(*x), None
    def _backward(self, p, saved, dy, g): return dy, dy

@dataclass(frozen=True)
class Mul(_Pair):
    "The product of a pair, element by element."
    def _forward(self, p, x): self.same(x); return x[0]*x[1], x
    def _backward(self, p, saved, dy, g): return dy*saved[1], dy*saved[0]

def Residual(*layers: Layer) -> Layer:
    "x + f(x), where f is the layers one after the other."
    return Seq(Fork(Id(), Seq(*layers) if len(layers) > 1 else layers[0]), Add())


# %% [markdown]
# ## A layer of your own
#
# Multiply every column by a number that is learnt:

# %%
@dataclass(frozen=True)
class Scale(Layer):
    size: int
    takes = gives = property(lambda self: self.size)
    def shapes(self): return {'k': (self.size,)}
    def _forward(self, p, x): return x*p[0], x
    def _backward(self, p, x, dy, g):
        accumulate(g[0], (dy*x).sum(0), 'k')
        return dy*p[0]

net = Residual(Scale(2), Scale(2))
p = net.load(np.array([1, 2, 3, 4], float32))
y, saved = net.forward(p, np.ones((1, 2), float32))
g = net.zeros()
dx = net.backward(p, saved, np.ones((1, 2), float32), g)
print(net.count, net.names(), y, dx, net.dump(g))

# %% [markdown]
# What does not fit is refused when it is put together:

# %%
for build in (lambda: Seq(Scale(3), Id(), Scale(4)), lambda: Seq(Fork(Scale(3), Seq()), Both(Id(), Scale(4))), lambda: Seq(Add(), Scale(2), Mul())):
    try: build()
    except LayerError as e: print(e, '\n')


# %% [markdown]
# And a derivative that comes back in another shape, when it comes back:

# %%
class Turned(Scale):
    def _backward(self, p, x, dy, g): return dy.T

for layer in (Turned(2),):
    y, saved = layer.forward(layer.zeros(), np.ones((3, 2), float32))
    try: layer.backward(layer.zeros(), saved, y, layer.zeros())
    except LayerError as e: print(e)

# %% [markdown]
# ## What this does not show
#
# Types here know the last axis. Whether two arrays have the same number of rows is found out at run time, by the layers
# that care. [Shapes](20_sizes.ipynb) checks whole functions for all sizes before they run.
