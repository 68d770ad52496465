# %%
#| default_exp nn.layer_laws

# %% [markdown]
# # Laws of layers
# > Backward passes compose, parameters survive being written down, optimizer state comes apart and together: for all networks.

# %% [markdown]
# [Gradient rules](52_symbols.ipynb) checked one layer at a time, at small sizes. This page is about what holds for stacks of
# any depth and parameters of any number, and needs no calculus at all. The functions here are *models* of the ones in
# [What a layer is](63_layer.ipynb): the same recursion, on lists instead of arrays. The tests run both on the same networks.

# %%
#| hide
#| export
from typing import Self

from bendml.laws import Array, Cons, List, Nil, abstract, axiom, datatype, law, prove, pure, select, store
from bendml.lists import append, append_assoc, append_nil, length, length_append
from bendml.nat import Nat, S, Z, add


# %%
#| hide
def show(*claims):
    for claim in claims:
        t = prove(claim)
        assert t.verdict == 'confirmed', t
        print(f'{claim.__name__:22} {t.verdict}   {claim.__doc__ or ""}')


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
show(forward_compose, backward_compose, gradient_compose, slope_compose, stack_adjoint, saved_is_enough)


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
show(count_pair, dump_length, load_dump)


# %% [markdown]
# ## In an array, from some place on
#
# `store` writes into an array that may hold other things, from place `o` on; reading there gives the parameters back, and
# nothing else was touched.

# %%
#| export
@pure
def size(v: List[R]) -> int:
    match v:
        case Nil(): return 0
        case Cons(_, r): return size(r) + 1

@pure
def room(p: Params) -> int:
    match p:
        case Unit(): return 0
        case Leaf(v): return size(v)
        case Pair(a, b): return room(a) + room(b)

@pure
def write(v: List[R], o: int, a: Array[int, R]) -> Array[int, R]:
    match v:
        case Nil(): return a
        case Cons(h, r): return write(r, o + 1, store(a, o, h))

@pure
def read(v: List[R], o: int, a: Array[int, R]) -> List[R]:
    "As many numbers as v has."
    match v:
        case Nil(): return Nil()
        case Cons(_, r): return Cons(select(a, o), read(r, o + 1, a))

@pure
def store_at(p: Params, o: int, a: Array[int, R]) -> Array[int, R]:
    match p:
        case Unit(): return a
        case Leaf(v): return write(v, o, a)
        case Pair(l, r): return store_at(r, o + room(l), store_at(l, o, a))

@pure
def load_at(q: Params, o: int, a: Array[int, R]) -> Params:
    match q:
        case Unit(): return Unit()
        case Leaf(v): return Leaf(read(v, o, a))
        case Pair(l, r): return Pair(load_at(l, o, a), load_at(r, o + room(l), a))

@pure
def fits(q: Params, p: Params) -> bool:
    match q, p:
        case Unit(), Unit(): return True
        case Leaf(v), Leaf(w): return size(v) == size(w)
        case Pair(a, b), Pair(c, d): return fits(a, c) and fits(b, d)
        case _, _: return False


# %%
#| export
@law(induct='v', trigger='size(v)')
def size_pos(v: List[R]): return size(v) >= 0

@law(induct='p', cite=[size_pos], trigger='room(p)')
def room_pos(p: Params): return room(p) >= 0

@law(induct='v', gen=['o', 'a'], cite=[size_pos], trigger='select(write(v, o, a), i)')
def write_frame(v: List[R], o: int, a: Array[int, R], i: int):
    assert i < o or i >= o + size(v)
    return select(write(v, o, a), i) == select(a, i)

@law(induct='p', gen=['o', 'a'], cite=[write_frame, room_pos], trigger='select(store_at(p, o, a), i)')
def store_frame(p: Params, o: int, a: Array[int, R], i: int):
    "Storing touches no other place."
    assert i < o or i >= o + room(p)
    return select(store_at(p, o, a), i) == select(a, i)

@law(induct='u', gen=['v', 'o', 'a'], cite=[write_frame, size_pos], split=['v'])
def read_write(u: List[R], v: List[R], o: int, a: Array[int, R]):
    assert size(u) == size(v)
    return read(u, o, write(v, o, a)) == v

@law(induct='u', gen=['x'], cite=[store_frame, size_pos], opaque=[store_at])
def read_store(u: List[R], x: int, p: Params, o: int, a: Array[int, R]):
    assert x + size(u) <= o
    return read(u, x, store_at(p, o, a)) == read(u, x, a)

@law(induct='q', gen=['x'], cite=[read_store, room_pos], opaque=[store_at])
def load_store_frame(q: Params, x: int, p: Params, o: int, a: Array[int, R]):
    assert x + room(q) <= o
    return load_at(q, x, store_at(p, o, a)) == load_at(q, x, a)

@law(induct='q', gen=['p'], split=['p'], trigger='fits(q, p)')
def room_fits(q: Params, p: Params):
    assert fits(q, p)
    return room(q) == room(p)

@law(induct='q', gen=['p', 'o', 'a'], split=['p'], ih='fits(q, p); store_at(p, o, a)',
     cite=[load_store_frame.at(q='q.first', x='o', p='p.second', o='o + room(p.first)', a='store_at(p.first, o, a)'), room_fits, read_write])
def load_store(q: Params, p: Params, o: int, a: Array[int, R]):
    "What was stored at a place can be loaded from there, whatever the array held."
    assert fits(q, p)
    return load_at(q, o, store_at(p, o, a)) == p


# %%
show(store_frame, load_store)


# %% [markdown]
# ## The state of an optimizer
#
# AdamW holds three numbers for each parameter: itself and two means. They can be kept as one list of triples or as three
# lists, and one form comes from the other without loss.

# %%
#| export
@datatype
class Triples:
    class End: pass
    class Triple:
        w: R
        m: R
        v: R
        rest: Self
End, Triple = Triples.End, Triples.Triple

@pure
def join(w: List[R], m: List[R], v: List[R]) -> Triples:
    match w, m, v:
        case Cons(a, x), Cons(b, y), Cons(c, z): return Triple(a, b, c, join(x, y, z))
        case _, _, _: return End()

@pure
def ws(t: Triples) -> List[R]:
    match t:
        case End(): return Nil()
        case Triple(a, _, _, r): return Cons(a, ws(r))

@pure
def ms(t: Triples) -> List[R]:
    match t:
        case End(): return Nil()
        case Triple(_, b, _, r): return Cons(b, ms(r))

@pure
def vs(t: Triples) -> List[R]:
    match t:
        case End(): return Nil()
        case Triple(_, _, c, r): return Cons(c, vs(r))

@law(induct='t')
def join_split(t: Triples):
    "Taken apart and put together, a state is what it was."
    return join(ws(t), ms(t), vs(t)) == t

@law(induct='w', gen=['m', 'v'], split=['m', 'v'])
def split_join_w(w: List[R], m: List[R], v: List[R]):
    assert length(w) == length(m) and length(w) == length(v)
    return ws(join(w, m, v)) == w

@law(induct='w', gen=['m', 'v'], split=['m', 'v'])
def split_join_m(w: List[R], m: List[R], v: List[R]):
    assert length(w) == length(m) and length(w) == length(v)
    return ms(join(w, m, v)) == m

@law(induct='w', gen=['m', 'v'], split=['m', 'v'])
def split_join_v(w: List[R], m: List[R], v: List[R]):
    "And three lists put together come apart as they were."
    assert length(w) == length(m) and length(w) == length(v)
    return vs(join(w, m, v)) == v


# %%
show(join_split, split_join_w, split_join_m, split_join_v)


# %% [markdown]
# A wrong version is found out by running it on the smallest states: here the two means are swapped.

# %%
@law(induct='t')
def swapped(t: Triples): return join(ws(t), vs(t), ms(t)) == t

t = prove(swapped)
assert t.verdict == 'refuted'
t

# %% [markdown]
# ## What this does not show
#
# The laws are about models in lists and abstract layers. That `Seq`, `dump` and `load` follow the same recursion on arrays
# is what the tests compare; that a layer's backward pass is an adjoint at all is the work of
# [Gradient rules](52_symbols.ipynb).
