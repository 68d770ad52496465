# %%
#| default_exp nn.rope_laws

# %% [markdown]
# # Laws of rotary positions
# > The two conventions are one and the same turn, on a row that is rearranged.

# %% [markdown]
# Models trained with one [convention](62_attention.ipynb) give nonsense with the other, and no shape shows it. What connects the
# two is a law, for heads of every size.

# %%
#| hide
#| export
from typing import Self

from bendml.laws import Cons, List, Nil, abstract, datatype, law, pure
from bendml.lists import append, length
from bendml.nn.layer_laws import confirm


# %% [markdown]
# ## One convention is the other, rearranged
#
# `interleaved` turns neighbours; `half` turns the first half with the second. Put the even places first and the odd ones
# after them, turn by halves: that is turning neighbours and then putting even places first. The turning itself is left
# open, so the law holds for floats too, bit by bit. For a row of odd length it is false, and odd sizes are refused.

# %%
#| export
@abstract
class V: "Numbers of any kind."; samples = (0, 1, 2, 3)
@abstract
def low(c: V, s: V, a: V, b: V) -> V: return c*a - s*b
@abstract
def high(c: V, s: V, a: V, b: V) -> V: return s*a + c*b

@datatype
class Angles:
    class Done: pass
    class Turn:
        cos: V
        sin: V
        rest: Self
Done, Turn = Angles.Done, Angles.Turn

@pure
def even(v: List[V]) -> bool:
    match v:
        case Nil(): return True
        case Cons(_, Nil()): return False
        case Cons(_, Cons(_, r)): return even(r)

@pure
def evens(v: List[V]) -> List[V]:
    match v:
        case Cons(a, Cons(_, r)): return Cons(a, evens(r))
        case _: return v

@pure
def odds(v: List[V]) -> List[V]:
    match v:
        case Cons(_, Cons(b, r)): return Cons(b, odds(r))
        case _: return Nil()


# %%
#| export
@pure
def interleaved(c: Angles, v: List[V]) -> List[V]:
    match c, v:
        case Turn(p, q, r), Cons(a, Cons(b, w)): return Cons(low(p, q, a, b), Cons(high(p, q, a, b), interleaved(r, w)))
        case _, _: return v

@pure
def lows(c: Angles, a: List[V], b: List[V]) -> List[V]:
    match c, a, b:
        case Turn(p, q, r), Cons(x, u), Cons(y, w): return Cons(low(p, q, x, y), lows(r, u, w))
        case _, _, _: return a

@pure
def highs(c: Angles, a: List[V], b: List[V]) -> List[V]:
    match c, a, b:
        case Turn(p, q, r), Cons(x, u), Cons(y, w): return Cons(high(p, q, x, y), highs(r, u, w))
        case _, _, _: return b


# %%
#| export
@pure
def halves(c: Angles, a: List[V], b: List[V]) -> List[V]:
    "The row whose two halves are a and b, turned by halves."
    return append(lows(c, a, b), highs(c, a, b))

@law(induct='v', gen=['c'], depth=2, split=['c'])
def lows_evens(c: Angles, v: List[V]):
    assert even(v)
    return lows(c, evens(v), odds(v)) == evens(interleaved(c, v))

@law(induct='v', gen=['c'], depth=2, split=['c'])
def highs_odds(c: Angles, v: List[V]):
    assert even(v)
    return highs(c, evens(v), odds(v)) == odds(interleaved(c, v))

@law(induct='v', depth=2)
def halves_are_equal(v: List[V]):
    "There are as many even places as odd ones, so evens and odds are the two halves."
    assert even(v)
    return length(evens(v)) == length(odds(v))

@law(cite=[lows_evens, highs_odds], opaque=[lows, highs, evens, odds, interleaved, append, even])
def conventions(c: Angles, v: List[V]):
    "Rearranged and turned by halves is turned by neighbours and rearranged."
    assert even(v)
    return halves(c, evens(v), odds(v)) == append(evens(interleaved(c, v)), odds(interleaved(c, v)))


# %%
confirm(halves_are_equal, conventions)

# %% [markdown]
# ## What this does not show
#
# Which convention the weights in a file were trained with. Only a text that makes sense shows that.
