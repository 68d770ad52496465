# %%
#| default_exp tensor.bands

# %% [markdown]
# # Bands
# > A matrix cut into parts that are multiplied apart, and yet not a bit changes.

# %% [markdown]
# To share out a product among threads, a matrix is cut in two, and each half again, as often as wanted: a tree of bands. The
# products of all bands, put one after another, are the product of the whole matrix, whatever the tree; and there are exactly
# as many numbers as rows. No law about numbers is needed for that, so it holds for floats.

# %%
#| hide
#| export
from typing import Self

from bendml.laws import List, datatype, law, prove, pure
from bendml.lists import append, append_assoc, length, length_append
from bendml.nat import Nat, add, half, half_cover, sub
from bendml.tensor.lists import R, matvec


# %% [markdown]
# ## A tree of bands

# %%
#| export
@datatype
class Bands:
    class Leaf: rows: List[List[R]]
    class Node:
        left: Self
        right: Self
Leaf, Node = Bands.Leaf, Bands.Node

@pure
def banded(b: Bands, v: List[R]) -> List[R]:
    "The product of each band, one after another."
    match b:
        case Leaf(rows): return matvec(rows, v)
        case Node(l, r): return append(banded(l, v), banded(r, v))

@pure
def rows_of(b: Bands) -> List[List[R]]:
    "The rows of all bands."
    match b:
        case Leaf(rows): return rows
        case Node(l, r): return append(rows_of(l), rows_of(r))

@pure
def halved(n: Nat, b: Bands) -> bool:
    "Are n rows cut in halves all the way down?"
    match b:
        case Leaf(rows): return length(rows) == n
        case Node(l, r): return halved(half(n), l) and halved(sub(n, half(n)), r)


# %%
#| export
@law(induct='s')
def matvec_append(s: List[List[R]], t: List[List[R]], v: List[R]):
    "The product of rows put together is the products put together."
    return matvec(append(s, t), v) == append(matvec(s, v), matvec(t, v))

@law(induct='b', cite=[matvec_append])
def bands_are_rows(b: Bands, v: List[R]):
    "Any tree of bands gives what the whole matrix gives, in the same order of additions."
    return banded(b, v) == matvec(rows_of(b), v)

@law(induct='s')
def band_len(s: List[List[R]], v: List[R]):
    "A band of r rows gives r numbers."
    return length(matvec(s, v)) == length(s)

@law(induct='b', gen=['n'], cite=[band_len, length_append, half_cover.here(n='n')])
def exact_length(n: Nat, b: Bands, v: List[R]):
    "The banded product over the whole tree gives exactly n numbers."
    assert halved(n, b)
    return length(banded(b, v)) == n


# %% [markdown]
# ## Read from the right
#
# A list grows at its front, so the results are read from the last band to the first, each put in front of what is there.

# %%
#| export
@pure
def read_into(b: Bands, v: List[R], acc: List[R]) -> List[R]:
    "The product of the bands, put in front of what was read before."
    match b:
        case Leaf(rows): return append(matvec(rows, v), acc)
        case Node(l, r): return read_into(l, v, read_into(r, v, acc))

@law(induct='b', gen=['acc'], cite=[append_assoc])
def reader(b: Bands, v: List[R], acc: List[R]):
    "Reading into what was there is putting the product in front of it."
    return read_into(b, v, acc) == append(banded(b, v), acc)

@law(cite=[reader, length_append])
def leaf_len(b: Bands, v: List[R], acc: List[R]):
    "The reader adds exactly as many numbers as the bands give."
    return length(read_into(b, v, acc)) == add(length(banded(b, v)), length(acc))


# %% [markdown]
# ## All of them

# %%
from bendml.laws import Law
for name, each in list(globals().items()):
    if isinstance(each, Law) and each.__doc__ and each.__module__ == __name__: print(f'{name:20} {prove(each).verdict:10} {each.__doc__}')

# %% [markdown]
# ## What this does not show
#
# That threads which run at the same time keep to their own cells. The [kernels](29c_sums.ipynb) prove that of themselves.
