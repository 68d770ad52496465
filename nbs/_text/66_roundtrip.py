# %%
#| default_exp checkpoint.roundtrip

# %% [markdown]
# # Nothing is lost
# > Store a model and load it again: the same model, proved for every shape that a model can have.

# %% [markdown]
# A model is a tree. A network has layers, a layer has layers inside it or arrays of numbers. A file is flat: one number after
# the other. So storing is flattening, and loading is cutting the flat row into pieces again, with the shape of a model
# that is there already as the pattern. A mistake of one in a single offset would put every later number into the wrong
# place, and often nothing fails: the sizes fit, and the model only talks nonsense.
#
# This page is a model of what the [next page](66b_checkpoint.ipynb) does, small enough to prove.

# %%
#| hide
#| export
from typing import Self

from bendml.laws import A, Array, Cons, List, Nil, abstract, datatype, law, prove, pure, select, store


# %% [markdown]
# ## A model as a tree
#
# What a number is does not matter here. Nothing is computed; numbers are only moved.

# %%
#| export
@abstract
class Number:
    "A number of any kind."
    samples = (0, 1, 2)

@datatype
class Tree:
    "Parameters: none, an array, or two parts."
    class Empty: pass
    class Leaf: values: List[Number]
    class Both:
        left: Self
        right: Self

Empty, Leaf, Both = Tree.Empty, Tree.Leaf, Tree.Both

@pure
def length(v: List[A]) -> int:
    "How many there are."
    match v:
        case Nil(): return 0
        case Cons(_, rest): return 1 + length(rest)

@pure
def size(p: Tree) -> int:
    "How many numbers a model has."
    match p:
        case Empty(): return 0
        case Leaf(v): return length(v)
        case Both(l, r): return size(l) + size(r)

@pure
def same(q: Tree, p: Tree) -> bool:
    "Whether two models have the same shape, whatever their numbers are."
    match q, p:
        case Empty(), Empty(): return True
        case Leaf(v), Leaf(w): return length(v) == length(w)
        case Both(a, b), Both(c, d): return same(a, c) and same(b, d)
        case _: return False


# %% [markdown]
# ## As a list
#
# `dump` puts all numbers in a row. `load` takes as many of them as the pattern has, and leaves the others to what comes
# after.

# %%
#| export
@pure
def append(s: List[A], t: List[A]) -> List[A]:
    "One list after the other."
    match s:
        case Nil(): return t
        case Cons(h, rest): return Cons(h, append(rest, t))

@pure
def first(v: List[A], s: List[A]) -> List[A]:
    "The first of `s`, as many as `v` has."
    match v, s:
        case Cons(_, more), Cons(h, rest): return Cons(h, first(more, rest))
        case _: return Nil()

@pure
def after(v: List[A], s: List[A]) -> List[A]:
    "What is left of `s` without as many as `v` has."
    match v, s:
        case Cons(_, more), Cons(_, rest): return after(more, rest)
        case _: return s


# %%
#| export
@pure
def dump(p: Tree) -> List[Number]:
    "All numbers of a model, in order."
    match p:
        case Empty(): return Nil()
        case Leaf(v): return v
        case Both(l, r): return append(dump(l), dump(r))

@pure
def load(q: Tree, s: List[Number]) -> Tree:
    "A model of the shape of `q` with the numbers of `s`."
    match q:
        case Empty(): return Empty()
        case Leaf(v): return Leaf(first(v, s))
        case Both(l, r): return Both(load(l, s), load(r, after(dump(l), s)))


# %%
from bendml.laws import to_list
p = Both(Leaf(to_list([1, 2])), Both(Leaf(to_list([3])), Empty()))
zeros = Both(Leaf(to_list([0, 0])), Both(Leaf(to_list([0])), Empty()))
assert load(zeros, dump(p)) == p
dump(p)


# %% [markdown]
# What is known about lists:

# %%
#| export
@law(induct='v', trigger='length(v)')
def length_pos(v: List[A]): return length(v) >= 0

@law(induct='v', gen='w', cite=[length_pos], split='w')
def first_append(v: List[A], w: List[A], s: List[A]):
    assert length(v) == length(w)
    return first(v, append(w, s)) == w

@law(induct='v', gen='w', cite=[length_pos], split='w')
def after_append(v: List[A], w: List[A], s: List[A]):
    assert length(v) == length(w)
    return after(v, append(w, s)) == s

@law(induct='s')
def append_nil(s: List[A]): return append(s, Nil()) == s

@law(induct='s')
def append_assoc(s: List[A], t: List[A], u: List[A]): return append(append(s, t), u) == append(s, append(t, u))

@law(induct='s', trigger='length(append(s, t))')
def length_append(s: List[A], t: List[A]): return length(append(s, t)) == length(s) + length(t)


# %% [markdown]
# **Loading what was dumped gives the model back**, whatever model of the same shape is the pattern:
# $\mathrm{load}(q, \mathrm{dump}(p)) = p$. The proof goes along the pattern. It needs the claim for a list that goes on
# behind the model's numbers, since the left part is loaded from a list that holds the right part too.

# %%
#| export
@law(induct='q', gen='p', cite=[length_append], trigger='same(q, p)', split='p')
def same_length(q: Tree, p: Tree):
    assert same(q, p)
    return length(dump(q)) == length(dump(p))

@law(induct='q', gen=['p', 's'], split='p', cite=[first_append, append_assoc, same_length,
     after_append.here(v='dump(q.left)', w='dump(p.left)', s='append(dump(p.right), s)')])
def load_dump_rest(q: Tree, p: Tree, s: List[Number]):
    assert same(q, p)
    return load(q, append(dump(p), s)) == p

@law(cite=[load_dump_rest.here(s='Nil()'), append_nil])
def load_dump(q: Tree, p: Tree):
    "A model that was dumped is loaded as it was."
    assert same(q, p)
    return load(q, dump(p)) == p


# %%
assert prove(load_dump).holds
prove(load_dump)


# %% [markdown]
# ## At an offset
#
# A file is written in place: the model's numbers go to the cells from `at` on, the left part first, the right part as far
# behind it as the left one is large. Whatever was in the array before, and wherever the model is put, reading from the
# same place gives it back.

# %%
#| export
@pure
def write(v: List[Number], at: int, a: Array[int, Number]) -> Array[int, Number]:
    "The array with numbers in its cells from `at` on."
    match v:
        case Nil(): return a
        case Cons(h, rest): return write(rest, at + 1, store(a, at, h))

@pure
def read(v: List[Number], at: int, a: Array[int, Number]) -> List[Number]:
    "As many numbers as `v` has, from `at` on."
    match v:
        case Nil(): return Nil()
        case Cons(_, rest): return Cons(select(a, at), read(rest, at + 1, a))

@pure
def store_at(p: Tree, at: int, a: Array[int, Number]) -> Array[int, Number]:
    "The array with a model in its cells from `at` on."
    match p:
        case Empty(): return a
        case Leaf(v): return write(v, at, a)
        case Both(l, r): return store_at(r, at + size(l), store_at(l, at, a))

@pure
def load_at(q: Tree, at: int, a: Array[int, Number]) -> Tree:
    "A model of the shape of `q` with the numbers from `at` on."
    match q:
        case Empty(): return Empty()
        case Leaf(v): return Leaf(read(v, at, a))
        case Both(l, r): return Both(load_at(l, at, a), load_at(r, at + size(l), a))


# %%
store_at(p, 5, Array(0))


# %% [markdown]
# Writing in one place changes nothing in another. This is said of a list, of a model, and of what is read:

# %%
#| export
@law(induct='p', cite=[length_pos], trigger='size(p)')
def size_pos(p: Tree): return size(p) >= 0

@law(induct='v', gen=['at', 'a'], cite=[length_pos], trigger='select(write(v, at, a), i)')
def write_frame(v: List[Number], at: int, a: Array[int, Number], i: int):
    assert i < at or i >= at + length(v)
    return select(write(v, at, a), i) == select(a, i)

@law(induct='p', gen=['at', 'a'], cite=[write_frame, size_pos], trigger='select(store_at(p, at, a), i)')
def store_frame(p: Tree, at: int, a: Array[int, Number], i: int):
    assert i < at or i >= at + size(p)
    return select(store_at(p, at, a), i) == select(a, i)

@law(induct='u', gen='x', cite=[store_frame, length_pos], opaque=[store_at])
def read_frame(u: List[Number], x: int, p: Tree, at: int, a: Array[int, Number]):
    assert x + length(u) <= at
    return read(u, x, store_at(p, at, a)) == read(u, x, a)

@law(induct='q', gen='x', cite=[read_frame, size_pos], opaque=[store_at])
def load_frame(q: Tree, x: int, p: Tree, at: int, a: Array[int, Number]):
    assert x + size(q) <= at
    return load_at(q, x, store_at(p, at, a)) == load_at(q, x, a)


# %% [markdown]
# **Loading from where a model was stored gives it back**: $\mathrm{load}(q, o, \mathrm{store}(p, o, a)) = p$.

# %%
#| export
@law(induct='u', gen=['v', 'at', 'a'], cite=[write_frame, length_pos], split='v')
def read_write(u: List[Number], v: List[Number], at: int, a: Array[int, Number]):
    assert length(u) == length(v)
    return read(u, at, write(v, at, a)) == v

@law(induct='q', gen='p', split='p', trigger='same(q, p)')
def same_size(q: Tree, p: Tree):
    assert same(q, p)
    return size(q) == size(p)

@law(induct='q', gen=['p', 'at', 'a'], split='p', ih='same(q, p); store_at(p, at, a)', cite=[same_size, read_write,
     load_frame.here(q='q.left', x='at', p='p.right', at='at + size(p.left)', a='store_at(p.left, at, a)')])
def load_store(q: Tree, p: Tree, at: int, a: Array[int, Number]):
    "A model that was stored is loaded as it was, from any place, whatever was there before."
    assert same(q, p)
    return load_at(q, at, store_at(p, at, a)) == p


# %%
assert prove(load_store).holds
prove(load_store)


# %% [markdown]
# An offset that forgets how large the left part is, and so writes the right part over it, is found out:

# %%
@pure
def store_wrong(p: Tree, at: int, a: Array[int, Number]) -> Array[int, Number]:
    match p:
        case Empty(): return a
        case Leaf(v): return write(v, at, a)
        case Both(l, r): return store_wrong(r, at, store_wrong(l, at, a))

@law(induct='p', gen=['at', 'a'])
def load_wrong(p: Tree, at: int, a: Array[int, Number]): return load_at(p, at, store_wrong(p, at, a)) == p

assert prove(load_wrong).verdict == 'refuted'
prove(load_wrong)

# %% [markdown]
# ## What this does not show
#
# Files, names, and numbers that are more than one byte are not in this model. The code on the next page finds a tensor by
# its name, not by its place in a row, and where its bytes lie is checked by the [page on layout](64b_layout.ipynb). That
# the code does what the model does is tested there.
