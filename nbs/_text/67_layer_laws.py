# %%
#| default_exp nn.layer_laws

# %% [markdown]
# # Laws of layers
# > Backward passes compose, and parameters survive being written down: for all networks.

# %% [markdown]
# [Gradient rules](52_symbols.ipynb) checked one layer at a time, at small sizes. This page is about what holds for stacks of
# any depth and parameters of any number, and needs no calculus at all. The functions here are *models* of the ones in
# [What a layer is](63_layer.ipynb): the same recursion, on lists instead of arrays. The tests run both on the same networks.

# %%
#| hide
#| export
from typing import Self

from bendml.laws import Cons, List, Nil, abstract, axiom, datatype, law, prove, pure
from bendml.lists import append, append_assoc, append_nil, length, length_append
from bendml.nat import Nat, S, Z, add


# %% [markdown]
# Two solvers have to agree on each law:

# %%
#| export
def confirm(*claims) -> None:
    "Prove laws and print what they say; `AssertionError` unless both solvers agree."
    for claim in claims:
        t = prove(claim)
        assert t.verdict == 'confirmed', t
        print(f'{claim.__name__:24} {t.verdict}   {claim.__doc__ or ""}')


# %% [markdown]
# ## A stack of layers
#
# Take any set of layers, of activations, of derivatives. Nothing is known of a layer but that it has a forward pass, a
# backward pass, a gradient for its parameters, and a true derivative, *slope*. (The bodies are a toy, to run the laws on.)

# %%
#| export
@abstract
class L: "Layers."; samples = (0, 1, 2)
@abstract
class X: "Activations."; samples = (0, 1, 2)
@abstract
class G: "Derivatives."; samples = (0, 1, 2)
@abstract
class W: "Gradients of parameters."; samples = (0, 1)
@abstract
class R: "Numbers."; samples = (0, 1)

@abstract
def forward(l: L, x: X) -> X: return l + x*x
@abstract
def backward(l: L, x: X, dy: G) -> G: return (2*x + l)*dy
@abstract
def slope(l: L, x: X, dx: G) -> G: return (2*x + l)*dx
@abstract
def gradient(l: L, x: X, dy: G) -> W: return x*dy + l
@abstract
def inner(a: G, b: G) -> R: return a*b


# %%
#| export
@pure
def forward_all(ls: List[L], x: X) -> X:
    "Layer after layer."
    match ls:
        case Nil(): return x
        case Cons(l, r): return forward_all(r, forward(l, x))

@pure
def backward_all(ls: List[L], x: X, dy: G) -> G:
    "Through the later layers first."
    match ls:
        case Nil(): return dy
        case Cons(l, r): return backward(l, x, backward_all(r, forward(l, x), dy))

@pure
def gradient_all(ls: List[L], x: X, dy: G) -> List[W]:
    "The gradients of all parameters, in the order of the layers."
    match ls:
        case Nil(): return Nil()
        case Cons(l, r): return Cons(gradient(l, x, backward_all(r, forward(l, x), dy)), gradient_all(r, forward(l, x), dy))

@pure
def slope_all(ls: List[L], x: X, dx: G) -> G:
    "The true derivative: how the output moves when the input moves by dx."
    match ls:
        case Nil(): return dx
        case Cons(l, r): return slope_all(r, forward(l, x), slope(l, x, dx))


# %% [markdown]
# $$\mathrm{back}_{a \,;\, b}(x, dy) = \mathrm{back}_a\big(x,\, \mathrm{back}_b(\mathrm{fwd}_a(x),\, dy)\big)$$

# %%
#| export
@law(induct='a', gen=['x'])
def forward_compose(a: List[L], b: List[L], x: X):
    "Running a stack of two stacks is running one after the other."
    return forward_all(append(a, b), x) == forward_all(b, forward_all(a, x))

@law(induct='a', gen=['x'])
def backward_compose(a: List[L], b: List[L], x: X, dy: G):
    "The backward pass of a composition is the composition of the backward passes."
    return backward_all(append(a, b), x, dy) == backward_all(a, x, backward_all(b, forward_all(a, x), dy))

@law(induct='a', gen=['x'], cite=[backward_compose])
def gradient_compose(a: List[L], b: List[L], x: X, dy: G):
    "And the gradients of the parameters stand one after the other."
    return gradient_all(append(a, b), x, dy) == append(gradient_all(a, x, backward_all(b, forward_all(a, x), dy)), gradient_all(b, forward_all(a, x), dy))

@law(induct='a', gen=['x', 'dx'])
def slope_compose(a: List[L], b: List[L], x: X, dx: G):
    "The chain rule."
    return slope_all(append(a, b), x, dx) == slope_all(b, forward_all(a, x), slope_all(a, x, dx))


# %% [markdown]
# If each layer's backward pass is the *adjoint* of its derivative, $\langle dy, \mathrm{slope}(dx)\rangle =
# \langle \mathrm{back}(dy), dx\rangle$, then so is the stack's. This is the step from the rules of single layers to whole
# networks.

# %%
#| export
@axiom(trigger=('inner(dy, slope(l, x, dx))', 'inner(backward(l, x, dy), dx)'))
def layer_adjoint(l: L, x: X, dy: G, dx: G): return inner(dy, slope(l, x, dx)) == inner(backward(l, x, dy), dx)

@law(induct='ls', gen=['x', 'dx'], cite=[layer_adjoint])
def stack_adjoint(ls: List[L], x: X, dy: G, dx: G):
    "A stack of layers with right backward passes has a right backward pass."
    return inner(dy, slope_all(ls, x, dx)) == inner(backward_all(ls, x, dy), dx)

@pure
def saved_all(ls: List[L], x: X) -> List[X]:
    "The inputs of the layers, as the forward pass saves them."
    match ls:
        case Nil(): return Nil()
        case Cons(l, r): return Cons(x, saved_all(r, forward(l, x)))

@pure
def backward_saved(ls: List[L], xs: List[X], dy: G) -> G:
    "The backward pass from what was saved."
    match ls, xs:
        case Cons(l, r), Cons(x, rest): return backward(l, x, backward_saved(r, rest, dy))
        case _, _: return dy

@law(induct='ls', gen=['x'])
def saved_is_enough(ls: List[L], x: X, dy: G):
    "Going back from saved activations is the same as computing them again."
    return backward_saved(ls, saved_all(ls, x), dy) == backward_all(ls, x, dy)


# %%
confirm(forward_compose, backward_compose, gradient_compose, slope_compose, stack_adjoint, saved_is_enough)


# %% [markdown]
# ## Parameters as a row of numbers
#
# Parameters are nothing, a leaf of some numbers, or those of two parts. `dump` writes them in a row, `load` reads them from
# a row into the shape of a model.

# %%
#| export
@datatype
class Params:
    class Unit: pass
    class Leaf: numbers: List[R]
    class Pair:
        first: Self
        second: Self
Unit, Leaf, Pair = Params.Unit, Params.Leaf, Params.Pair

@pure
def count(p: Params) -> Nat:
    match p:
        case Unit(): return Z()
        case Leaf(v): return length(v)
        case Pair(a, b): return add(count(a), count(b))

@pure
def dump(p: Params) -> List[R]:
    match p:
        case Unit(): return Nil()
        case Leaf(v): return v
        case Pair(a, b): return append(dump(a), dump(b))


# %%
#| export
@pure
def take(n: Nat, s: List[R]) -> List[R]:
    match n, s:
        case S(m), Cons(h, r): return Cons(h, take(m, r))
        case _, _: return Nil()

@pure
def drop(n: Nat, s: List[R]) -> List[R]:
    match n, s:
        case S(m), Cons(_, r): return drop(m, r)
        case _, _: return s

@pure
def load(model: Params, s: List[R]) -> Params:
    "The numbers of the model are not used, only how many there are."
    match model:
        case Unit(): return Unit()
        case Leaf(v): return Leaf(take(length(v), s))
        case Pair(a, b): return Pair(load(a, s), load(b, drop(count(a), s)))

@pure
def alike(q: Params, p: Params) -> bool:
    match q, p:
        case Unit(), Unit(): return True
        case Leaf(v), Leaf(w): return length(v) == length(w)
        case Pair(a, b), Pair(c, d): return alike(a, c) and alike(b, d)
        case _, _: return False


# %%
#| export
@law(induct='s')
def take_append(s: List[R], t: List[R]): return take(length(s), append(s, t)) == s

@law(induct='s', trigger=('drop(length(s), append(s, t))', 'append(s, t)'))
def drop_append(s: List[R], t: List[R]): return drop(length(s), append(s, t)) == t

@law
def count_pair(a: Params, b: Params):
    "A combination has as many numbers as its parts together."
    return count(Pair(a, b)) == add(count(a), count(b))

@law(induct='p', cite=[length_append])
def dump_length(p: Params):
    "As many numbers are written as were counted."
    return length(dump(p)) == count(p)

@law(induct='q', gen=['p'], split=['p'], trigger='alike(q, p)')
def count_alike(q: Params, p: Params):
    assert alike(q, p)
    return count(q) == count(p)

@law(induct='q', gen=['p', 's'], split=['p'], cite=[take_append, append_assoc, count_alike, dump_length, drop_append.at(s='dump(p.first)', t='append(dump(p.second), s)')])
def load_dump_rest(q: Params, p: Params, s: List[R]):
    "Whatever follows in the row does not matter."
    assert alike(q, p)
    return load(q, append(dump(p), s)) == p

@law(cite=[load_dump_rest.here(s='Nil()'), append_nil])
def load_dump(q: Params, p: Params):
    "What was dumped can be loaded, into any model of the same shape."
    assert alike(q, p)
    return load(q, dump(p)) == p


# %%
confirm(count_pair, dump_length, load_dump)

# %% [markdown]
# ## What this does not show
#
# The laws are about models in lists and abstract layers. That `Seq`, `dump` and `load` follow the same recursion on arrays
# is what the tests compare; that a layer's backward pass is an adjoint at all is the work of
# [Gradient rules](52_symbols.ipynb).
