# %%
#| default_exp nn.stored_laws

# %% [markdown]
# # Laws of stored parameters
# > Written into a large array and read back, taken apart and put together: nothing is lost, and nothing else is touched.

# %% [markdown]
# [Laws of layers](67_layer_laws.ipynb) wrote parameters as a list. Now they stand in an array among other things, from some
# place on; and an optimizer's numbers stand beside them.

# %%
#| hide
#| export
from bendml.laws import Array, Cons, List, Nil, datatype, law, prove, pure, select, store
from bendml.lists import length
from bendml.nn.layer_laws import Leaf, Pair, Params, R, Unit, confirm
from typing import Self


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


# %%
#| export
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


# %%
#| export
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
confirm(store_frame, load_store)


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


# %%
#| export
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
confirm(join_split, split_join_w, split_join_m, split_join_v)


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
# That `store` and `load` of [a layer](63_layer.ipynb) follow the same recursion on arrays; the tests compare them with these
# functions, on the same networks.
