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
from bendml.lists import append, append_assoc, append_nil


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


# %%
#| export
@datatype
class Tree:
    "Parameters: none, an array, or two parts."
    class Empty: pass
    class Leaf: values: List[Number]
    class Both:
        left: Self
        right: Self

Empty, Leaf, Both = Tree.Empty, Tree.Leaf, Tree.Both


# %%
#| export
@pure
def cells(v: List[A]) -> int:
    "How many cells of an array it takes, as a Python number."
    match v:
        case Nil(): return 0
        case Cons(_, rest): return 1 + cells(rest)


# %%
#| export
@pure
def size(p: Tree) -> int:
    "How many numbers a model has."
    match p:
        case Empty(): return 0
        case Leaf(v): return cells(v)
        case Both(l, r): return size(l) + size(r)


# %%
#| export
@pure
def same(q: Tree, p: Tree) -> bool:
    "Whether two models have the same shape, whatever their numbers are."
    match q, p:
        case Empty(), Empty(): return True
        case Leaf(v), Leaf(w): return cells(v) == cells(w)
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
def first(v: List[A], s: List[A]) -> List[A]:
    "The first of `s`, as many as `v` has."
    match v, s:
        case Cons(_, more), Cons(h, rest): return Cons(h, first(more, rest))
        case _: return Nil()


# %%
#| export
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


# %%
#| export
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
# What these three do to lists:

# %%
#| export
@law(induct='v', trigger='cells(v)')
def cells_pos(v: List[A]):
    "No list takes fewer than no cells."
    return cells(v) >= 0

@law(induct='v', gen='w', cite=[cells_pos], split='w')
def first_append(v: List[A], w: List[A], s: List[A]):
    "Of a list that begins with as many as there shall be, the first are its beginning."
    assert cells(v) == cells(w)
    return first(v, append(w, s)) == w


# %%
#| export
@law(induct='v', gen='w', cite=[cells_pos], split='w')
def after_append(v: List[A], w: List[A], s: List[A]):
    "What is left of a list without its beginning is the rest."
    assert cells(v) == cells(w)
    return after(v, append(w, s)) == s


# %%
#| export
@law(induct='s', trigger='cells(append(s, t))')
def cells_append(s: List[A], t: List[A]):
    "Two lists together take the cells of both."
    return cells(append(s, t)) == cells(s) + cells(t)


# %% [markdown]
# **Loading what was dumped gives the model back**, whatever model of the same shape is the pattern:
# $\mathrm{load}(q, \mathrm{dump}(p)) = p$. The proof goes along the pattern. It needs the claim for a list that goes on
# behind the model's numbers, since the left part is loaded from a list that holds the right part too.

# %%
#| export
@law(induct='q', gen='p', cite=[cells_append], trigger='same(q, p)', split='p')
def same_cells(q: Tree, p: Tree):
    "Models of the same shape have as many numbers."
    assert same(q, p)
    return cells(dump(q)) == cells(dump(p))


# %%
#| export
@law(induct='q', gen=['p', 's'], split='p', cite=[first_append, append_assoc, same_cells,
     after_append.here(v='dump(q.left)', w='dump(p.left)', s='append(dump(p.right), s)')])
def load_dump_rest(q: Tree, p: Tree, s: List[Number]):
    "A model that was dumped in front of a list is loaded as it was."
    assert same(q, p)
    return load(q, append(dump(p), s)) == p


# %%
#| export
@law(cite=[load_dump_rest.here(s='Nil()'), append_nil])
def load_dump(q: Tree, p: Tree):
    "A model that was dumped is loaded as it was."
    assert same(q, p)
    return load(q, dump(p)) == p


# %%
assert prove(load_dump).holds
prove(load_dump)


# %% [markdown]
# A `load` that forgets to leave out what the left part took is found out, by the smallest model on which it matters:

# %%
@pure
def load_wrong(q: Tree, s: List[Number]) -> Tree:
    match q:
        case Empty(): return Empty()
        case Leaf(v): return Leaf(first(v, s))
        case Both(l, r): return Both(load_wrong(l, s), load_wrong(r, s))

@law(induct='p')
def loses_nothing(p: Tree): return load_wrong(p, dump(p)) == p


# %%
assert prove(loses_nothing).verdict == 'refuted'
prove(loses_nothing)


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


# %%
#| export
@pure
def read(v: List[Number], at: int, a: Array[int, Number]) -> List[Number]:
    "As many numbers as `v` has, from `at` on."
    match v:
        case Nil(): return Nil()
        case Cons(_, rest): return Cons(select(a, at), read(rest, at + 1, a))


# %%
#| export
@pure
def store_at(p: Tree, at: int, a: Array[int, Number]) -> Array[int, Number]:
    "The array with a model in its cells from `at` on."
    match p:
        case Empty(): return a
        case Leaf(v): return write(v, at, a)
        case Both(l, r): return store_at(r, at + size(l), store_at(l, at, a))


# %%
#| export
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
@law(induct='p', cite=[cells_pos], trigger='size(p)')
def size_pos(p: Tree):
    "No model has fewer than no numbers."
    return size(p) >= 0

@law(induct='v', gen=['at', 'a'], cite=[cells_pos], trigger='select(write(v, at, a), i)')
def write_frame(v: List[Number], at: int, a: Array[int, Number], i: int):
    "Writing numbers changes no other cell."
    assert i < at or i >= at + cells(v)
    return select(write(v, at, a), i) == select(a, i)


# %%
#| export
@law(induct='p', gen=['at', 'a'], cite=[write_frame, size_pos], trigger='select(store_at(p, at, a), i)')
def store_frame(p: Tree, at: int, a: Array[int, Number], i: int):
    "Storing a model changes no other cell."
    assert i < at or i >= at + size(p)
    return select(store_at(p, at, a), i) == select(a, i)


# %%
#| export
@law(induct='u', gen='x', cite=[store_frame, cells_pos], opaque=[store_at])
def read_frame(u: List[Number], x: int, p: Tree, at: int, a: Array[int, Number]):
    "What lies before a model reads the same when the model was stored."
    assert x + cells(u) <= at
    return read(u, x, store_at(p, at, a)) == read(u, x, a)


# %%
#| export
@law(induct='q', gen='x', cite=[read_frame, size_pos], opaque=[store_at])
def load_frame(q: Tree, x: int, p: Tree, at: int, a: Array[int, Number]):
    "A model that lies before another loads the same when the other was stored."
    assert x + size(q) <= at
    return load_at(q, x, store_at(p, at, a)) == load_at(q, x, a)


# %% [markdown]
# **Loading from where a model was stored gives it back**: $\mathrm{load}(q, o, \mathrm{store}(p, o, a)) = p$.

# %%
#| export
@law(induct='u', gen=['v', 'at', 'a'], cite=[write_frame, cells_pos], split='v')
def read_write(u: List[Number], v: List[Number], at: int, a: Array[int, Number]):
    "Numbers that were written are read as they were."
    assert cells(u) == cells(v)
    return read(u, at, write(v, at, a)) == v


# %%
#| export
@law(induct='q', gen='p', split='p', trigger='same(q, p)')
def same_size(q: Tree, p: Tree):
    "Models of the same shape have the same size."
    assert same(q, p)
    return size(q) == size(p)


# %%
#| export
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
# ## What this does not show
#
# Files, names, and numbers that are more than one byte are not in this model. The code on the next page finds a tensor by
# its name, not by its place in a row, and where its bytes lie is checked by the [page on layout](64b_layout.ipynb). That
# the code does what the model does is tested there.
