# %%
#| default_exp autograd.scalar

# %% [markdown]
# # Derivatives, forwards and backwards
# > Two ways to differentiate an expression, and a proof that they always agree.

# %% [markdown]
# To train a network one must know, for each of its numbers, how the loss changes when that number changes. There are two
# ways through an expression. *Forward*: choose a direction for the inputs to move in, and carry along how fast everything
# else moves. One pass gives one direction. *Backward*: start at the result, and hand down to each part how much the
# result depends on it. One pass gives all inputs at once, which is why every network is trained that way.
#
# The forward rules are those of school: they *are* the derivative. The backward rules are the ones that are easy to get
# wrong. So the theorem of this page is: **for every expression, backward gives what forward gives.**

# %%
#| hide
#| export
from typing import Self

from bendml.laws import Cons, List, Nil, abstract, axiom, datatype, law, prove, pure, to_list


# %% [markdown]
# ## Numbers of any kind
#
# What must a number be able to do? Be added and multiplied, with the laws of school arithmetic; nothing is subtracted or
# divided. Integers do, fractions, real numbers, polynomials. We leave open which, so that the theorem holds for all of
# them; the function bodies are only the model on which the laws are run as tests.

# %%
#| export
@abstract
class R:
    "Numbers that can be added and multiplied: a commutative semiring."
    samples = (0, 1, 2, 3)

@abstract
def plus(x: R, y: R) -> R: return x + y

@abstract
def times(x: R, y: R) -> R: return x*y

@abstract
def zero() -> R: return 0

@abstract
def one() -> R: return 1


# %%
#| export
@axiom
def plus_comm(x: R, y: R): return plus(x, y) == plus(y, x)

@axiom(trigger=('plus(plus(x, y), z)', 'plus(x, plus(y, z))'))
def plus_assoc(x: R, y: R, z: R): return plus(plus(x, y), z) == plus(x, plus(y, z))

@axiom
def plus_zero(x: R): return plus(x, zero()) == x

@axiom
def times_comm(x: R, y: R): return times(x, y) == times(y, x)

@axiom(trigger=('times(times(x, y), z)', 'times(x, times(y, z))'))
def times_assoc(x: R, y: R, z: R): return times(times(x, y), z) == times(x, times(y, z))

@axiom
def times_one(x: R): return times(x, one()) == x

@axiom
def times_zero(x: R): return times(x, zero()) == zero()

@axiom
def distribute(x: R, y: R, z: R): return times(x, plus(y, z)) == plus(times(x, y), times(x, z))


# %% [markdown]
# ## Expressions
#
# An expression is a constant, one of the inputs, a sum or a product. Inputs stand in a list, and a place in the list is
# `Here()` or `Next(place)`. Reading past the end gives zero.

# %%
#| export
@datatype
class Place:
    "A place in a list."
    class Here: pass
    class Next: place: Self
Here, Next = Place.Here, Place.Next

@datatype
class Expr:
    "An expression in any number of inputs."
    class Const: value: R
    class Input: place: Place
    class Add:
        left: Self
        right: Self
    class Mul:
        left: Self
        right: Self
Const, Input, Add, Mul = Expr.Const, Expr.Input, Expr.Add, Expr.Mul


# %%
#| export
@pure
def read(i: Place, xs: List[R]) -> R:
    "The number at a place; zero past the end."
    match i, xs:
        case _, Nil(): return zero()
        case Here(), Cons(x, _): return x
        case Next(j), Cons(_, r): return read(j, r)

@pure
def value(e: Expr, xs: List[R]) -> R:
    "The value of an expression, for these inputs."
    match e:
        case Const(c): return c
        case Input(i): return read(i, xs)
        case Add(a, b): return plus(value(a, xs), value(b, xs))
        case Mul(a, b): return times(value(a, xs), value(b, xs))


# %% [markdown]
# ## Forward
#
# The inputs move as fast as `dxs` says; how fast does the value move? A constant stands still, speeds add in a sum, and
# in a product each factor's speed is multiplied by the other factor: $(ab)' = a'b + ab'$.

# %%
#| export
@pure
def forward(e: Expr, xs: List[R], dxs: List[R]) -> R:
    "The derivative of the value when the inputs move in the direction `dxs`."
    match e:
        case Const(_): return zero()
        case Input(i): return read(i, dxs)
        case Add(a, b): return plus(forward(a, xs, dxs), forward(b, xs, dxs))
        case Mul(a, b): return plus(times(forward(a, xs, dxs), value(b, xs)), times(value(a, xs), forward(b, xs, dxs)))


# %% [markdown]
# ## Backward
#
# `g` is how much the final result changes for each unit that this expression changes. A sum hands `g` on to both sides; a
# product hands on `g` times the other side. Where it arrives at an input, it is added to what had arrived there before: an
# input that is used twice is pushed twice.

# %%
#| export
@pure
def bump(i: Place, g: R, grad: List[R]) -> List[R]:
    "The list with `g` added at one place."
    match i, grad:
        case _, Nil(): return Nil()
        case Here(), Cons(x, r): return Cons(plus(x, g), r)
        case Next(j), Cons(x, r): return Cons(x, bump(j, g, r))

@pure
def reverse(e: Expr, xs: List[R], g: R, grad: List[R]) -> List[R]:
    "The gradients so far, with this expression's contributions added."
    match e:
        case Const(_): return grad
        case Input(i): return bump(i, g, grad)
        case Add(a, b): return reverse(b, xs, g, reverse(a, xs, g, grad))
        case Mul(a, b): return reverse(b, xs, times(g, value(a, xs)), reverse(a, xs, times(g, value(b, xs)), grad))


# %%
#| export
@pure
def zeros(xs: List[R]) -> List[R]:
    "As many zeros."
    match xs:
        case Nil(): return Nil()
        case Cons(_, r): return Cons(zero(), zeros(r))

@pure
def gradient(e: Expr, xs: List[R]) -> List[R]:
    "The derivative by each input, in one backward pass."
    return reverse(e, xs, one(), zeros(xs))


# %% [markdown]
# $y = (a + b) + ab + (a + b)\,ab$ at $a = 2$, $b = 3$. Both inputs are used three times.

# %%
a, b = Input(Here()), Input(Next(Here()))
c, d = Add(a, b), Mul(a, b)
y, at = Add(Add(c, d), Mul(c, d)), to_list([2, 3])
assert gradient(y, at) == to_list([25, 19])
print('value', value(y, at), ' gradient', gradient(y, at), ' forward', [forward(y, at, to_list(v)) for v in ([1, 0], [0, 1])])

# %% [markdown]
# Values rise (↑), derivatives descend (↓). Move the inputs.

# %%
#| echo: false
from bendml.widgets import widget
widget('graph', names=['a', 'b'], inputs=[2, 3],
       nodes=[['in', 0], ['in', 1], ['+', 0, 1], ['*', 0, 1], ['+', 2, 3], ['*', 2, 3], ['+', 4, 5]],
       places=[[.25, .9], [.65, .9], [.25, .65], [.65, .65], [.25, .38], [.65, .38], [.45, .1]])


# %% [markdown]
# ## The theorem
#
# A plain induction fails: inside a product, `g` is no longer one. What can be proved is stronger, about every `g` and
# every list of gradients that had arrived before. Gradients and a direction meet in a dot product:
#
# $$\langle\, \mathrm{reverse}(e, x, g, s),\; d \,\rangle \;=\; \langle s, d\rangle + g \cdot \mathrm{forward}(e, x, d)$$

# %%
#| export
@pure
def dot(u: List[R], v: List[R]) -> R:
    "The sum of the products, place by place."
    match u, v:
        case Nil(), _: return zero()
        case _, Nil(): return zero()
        case Cons(a, x), Cons(b, y): return plus(times(a, b), dot(x, y))

@pure
def alike(u: List[R], v: List[R]) -> bool:
    "Equally long."
    match u, v:
        case Nil(), Nil(): return True
        case Cons(_, x), Cons(_, y): return alike(x, y)
        case _, _: return False


# %% [markdown]
# First, what happens at an input, and that no gradient is lost or added on the way.

# %%
#| export
@law(induct='i', gen=['grad', 'd'], split=['grad', 'd'], trigger='bump(i, g, grad); alike(grad, d)')
def bump_alike(i: Place, g: R, grad: List[R], d: List[R]):
    assert alike(grad, d)
    return alike(bump(i, g, grad), d)

@law(induct='e', gen=['g', 'grad'], cite=[bump_alike], trigger='reverse(e, xs, g, grad); alike(grad, d)', ih='reverse(e, xs, g, grad); alike(grad, d)')
def reverse_alike(e: Expr, xs: List[R], g: R, grad: List[R], d: List[R]):
    "There are as many gradients afterwards as before."
    assert alike(grad, d)
    return alike(reverse(e, xs, g, grad), d)

@law(induct='i', gen=['grad', 'd'], split=['grad', 'd'], cite=[plus_comm, plus_assoc, plus_zero, times_comm, times_zero, distribute])
def dot_bump(i: Place, g: R, grad: List[R], d: List[R]):
    assert alike(grad, d)
    return dot(bump(i, g, grad), d) == plus(dot(grad, d), times(g, read(i, d)))


# %% [markdown]
# Then the algebra of a sum and of a product, apart from any list, so that the induction need not look inside.

# %%
#| export
@law(cite=[plus_assoc, distribute])
def sum_rule(g: R, da: R, db: R, s: R):
    return plus(plus(s, times(g, da)), times(g, db)) == plus(s, times(g, plus(da, db)))

@law(cite=[plus_assoc, times_assoc, times_comm, distribute])
def product_rule(g: R, a: R, b: R, da: R, db: R, s: R):
    return plus(plus(s, times(times(g, b), da)), times(times(g, a), db)) == plus(s, times(g, plus(times(da, b), times(a, db))))

@law(induct='e', gen=['g', 'grad'], cite=[reverse_alike, dot_bump, product_rule, sum_rule, plus_zero, times_zero],
     opaque=[alike, dot, bump, read])
def reverse_is_forward(e: Expr, xs: List[R], g: R, grad: List[R], d: List[R]):
    "Whatever had arrived before, and whatever g is: backward adds g times the forward derivative."
    assert alike(grad, d)
    return dot(reverse(e, xs, g, grad), d) == plus(dot(grad, d), times(g, forward(e, xs, d)))


# %%
t = prove(reverse_is_forward)
assert t.verdict == 'confirmed'
t


# %% [markdown]
# ## What it means
#
# For one input, the classic form: start with $g = 1$ and nothing, and what arrives is the derivative.

# %%
#| export
@law(cite=[reverse_is_forward.at(e='e', xs='Cons(x, Nil())', g='one()', grad='Cons(zero(), Nil())', d='Cons(one(), Nil())'),
           reverse_alike.at(e='e', xs='Cons(x, Nil())', g='one()', grad='Cons(zero(), Nil())', d='Cons(zero(), Nil())'),
           plus_comm, plus_zero, times_comm, times_one, times_zero],
     opaque=[reverse, forward], split=['reverse(e, Cons(x, Nil()), one(), Cons(zero(), Nil())).tail'])
def reverse_eq_forward(e: Expr, x: R):
    "For every expression in one variable, the backward pass gives the derivative."
    return reverse(e, Cons(x, Nil()), one(), Cons(zero(), Nil())) == Cons(forward(e, Cons(x, Nil()), Cons(one(), Nil())), Nil())


# %% [markdown]
# For any number of inputs: the gradient, dotted with a direction, is the derivative in that direction.

# %%
#| export
@law(induct='d', gen=['xs'], split=['xs'], cite=[plus_zero, times_comm, times_zero])
def dot_zeros(xs: List[R], d: List[R]): return dot(zeros(xs), d) == zero()

@law(induct='xs', gen=['d'], split=['d'])
def zeros_alike(xs: List[R], d: List[R]):
    assert alike(xs, d)
    return alike(zeros(xs), d)

@law(cite=[reverse_is_forward.here(g='one()', grad='zeros(xs)'), zeros_alike.here(), dot_zeros.here(), plus_comm, plus_zero, times_comm, times_one],
     opaque=[reverse, forward, dot, zeros, alike])
def gradient_is_forward(e: Expr, xs: List[R], d: List[R]):
    "The gradient gives the derivative in every direction."
    assert alike(xs, d)
    return dot(gradient(e, xs), d) == forward(e, xs, d)


# %%
for claim in (reverse_eq_forward, gradient_is_forward):
    t = prove(claim)
    assert t.verdict == 'confirmed'
    print(t, '\n')
print('resting on', ', '.join(x.__name__ for x in t.axioms))


# %% [markdown]
# ## A rule that is wrong
#
# Swap what a product hands down, $g\,a$ to $a$ and $g\,b$ to $b$. All shapes are right, and so is every sum. The law runs
# on small expressions, smallest first, and finds one:

# %%
@pure
def swapped(e: Expr, xs: List[R], g: R, grad: List[R]) -> List[R]:
    match e:
        case Const(_): return grad
        case Input(i): return bump(i, g, grad)
        case Add(a, b): return swapped(b, xs, g, swapped(a, xs, g, grad))
        case Mul(a, b): return swapped(b, xs, times(g, value(b, xs)), swapped(a, xs, times(g, value(a, xs)), grad))

@law(induct='e', gen=['g', 'grad'], cite=[dot_bump, product_rule, sum_rule, plus_zero, times_zero])
def swapped_is_forward(e: Expr, xs: List[R], g: R, grad: List[R], d: List[R]):
    assert alike(grad, d)
    return dot(swapped(e, xs, g, grad), d) == plus(dot(grad, d), times(g, forward(e, xs, d)))

t = prove(swapped_is_forward)
assert t.verdict == 'refuted'
t

# %% [markdown]
# ## What this does not show
#
# - Sums and products only. The exponential, the tanh and their like enter on [Gradient rules](52_symbols.ipynb), where each
#   backward rule is checked against the derivative of its forward rule.
# - Floating-point numbers are not a semiring: their addition is not associative. There the two passes agree up to rounding.
# - An expression here is a tree: `c` above is walked through twice. [Gradients of array functions](51_gradients.ipynb)
#   keeps shared parts shared.
