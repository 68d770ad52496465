# %%
#| default_exp kvarray

# %% [markdown]
# # The cache as an array
# > A mask of zeros is the same as not looking; a row written at the right place is a list that grew.

# %% [markdown]
# [The page before](71_kvcache.ipynb) proved that a cache gives the answers of the full forward pass. It spoke of lists:
# a row looks at the first $n + 1$ entries, and the cache grows by one entry at its end. No program works with such lists.
# A program that reads a whole text looks at *all* the entries and multiplies by zero what it should not see. And its cache
# is one long array of numbers, allocated once, in which row $t$ lies at the offset $t \cdot D$.
#
# So there are two gaps between the law and the code, and this page closes them.

# %%
#| hide
#| export
from bendml.kernel import Buf, Size, ensures, f32, invariant, kernel, requires
from bendml.kernel.functional import old
from bendml.kvcache import take
from bendml.laws import Array, Cons, List, Nil, abstract, axiom, datatype, law, prove, pure, select, store
from bendml.lists import length
from bendml.nat import Nat, S, Z


# %% [markdown]
# ## Attention, in numbers
#
# A query is compared with each key, which gives a weight, always positive: the exponential of their product. The answer
# is the weighted mean of the values:
#
# $$\frac{\sum_i w_i v_i}{\sum_i w_i} \qquad w_i = e^{q \cdot k_i}$$
#
# What numbers are is left open again. We need addition and multiplication, but none of the laws of algebra except what
# zero and one do, given below.

# %%
#| export
@abstract
class Number: "A number."; samples = (0, 1, 2)

@abstract
class Value: "A row of numbers: what attention mixes."; samples = (0, 1, 2)

@abstract
class Query: "What a row asks."

@abstract
class Key: "What a row is found by."

@abstract
def weight(q: Query, k: Key) -> Number: return 1 + q + 3*k
@abstract
def plus(x: Number, y: Number) -> Number: return x + y
@abstract
def times(x: Number, y: Number) -> Number: return x*y
@abstract
def zero() -> Number: return 0
@abstract
def one() -> Number: return 1
@abstract
def vplus(v: Value, w: Value) -> Value: return v + w
@abstract
def vtimes(x: Number, v: Value) -> Value: return x*v
@abstract
def vzero() -> Value: return 0
@abstract
def mean(total: Value, weights: Number) -> Value: return total, weights


# %%
#| export
@datatype
class Pair:
    "A key and its value."
    class KV: key: Key; value: Value

KV = Pair.KV

@pure
def weights(q: Query, cache: List[Pair]) -> Number:
    "The sum of the weights."
    match cache:
        case Nil(): return zero()
        case Cons(KV(k, v), rest): return plus(weight(q, k), weights(q, rest))

@pure
def mixed(q: Query, cache: List[Pair]) -> Value:
    "The sum of the values, each times its weight."
    match cache:
        case Nil(): return vzero()
        case Cons(KV(k, v), rest): return vplus(vtimes(weight(q, k), v), mixed(q, rest))

@pure
def look(q: Query, cache: List[Pair]) -> Value:
    "Attention: the weighted mean of all values in the cache."
    return mean(mixed(q, cache), weights(q, cache))


# %% [markdown]
# ## A mask of zeros
#
# The whole-text form computes a $T \times T$ table of weights, and multiplies it by a table of ones and zeros: row $n$ has
# $n + 1$ ones. (Programs set the score to $-\infty$ before the exponential, which is the same: $e^{-\infty} = 0$.)

# %%
#| export
@pure
def masked_weights(n: Nat, q: Query, cache: List[Pair]) -> Number:
    "The sum of all weights, the first n times one and the others times zero."
    match n, cache:
        case _, Nil(): return zero()
        case Z(), Cons(KV(k, v), rest): return plus(times(zero(), weight(q, k)), masked_weights(Z(), q, rest))
        case S(m), Cons(KV(k, v), rest): return plus(times(one(), weight(q, k)), masked_weights(m, q, rest))

@pure
def masked_mixed(n: Nat, q: Query, cache: List[Pair]) -> Value:
    "The sum of all values, the weights of the first n times one and the others times zero."
    match n, cache:
        case _, Nil(): return vzero()
        case Z(), Cons(KV(k, v), rest): return vplus(vtimes(times(zero(), weight(q, k)), v), masked_mixed(Z(), q, rest))
        case S(m), Cons(KV(k, v), rest): return vplus(vtimes(times(one(), weight(q, k)), v), masked_mixed(m, q, rest))

@pure
def masked(n: Nat, qs: List[Query], cache: List[Pair]) -> List[Value]:
    "All rows of the table, the first of which sees n + 1 entries."
    match qs:
        case Nil(): return Nil()
        case Cons(q, rest): return Cons(mean(masked_mixed(S(n), q, cache), masked_weights(S(n), q, cache)), masked(S(n), rest, cache))

@pure
def prefixes(n: Nat, qs: List[Query], cache: List[Pair]) -> List[Value]:
    "Each row looks at what it may see, and at nothing else."
    match qs:
        case Nil(): return Nil()
        case Cons(q, rest): return Cons(look(q, take(S(n), cache)), prefixes(S(n), rest, cache))


# %% [markdown]
# What has to be true of zero and one for the two to agree:

# %%
#| export
@axiom
def zero_times(x: Number): return times(zero(), x) == zero()
@axiom
def one_times(x: Number): return times(one(), x) == x
@axiom
def zero_plus(x: Number): return plus(zero(), x) == x
@axiom
def zero_vtimes(v: Value): return vtimes(zero(), v) == vzero()
@axiom
def vzero_plus(v: Value): return vplus(vzero(), v) == v


# %%
#| export
@law(induct='cache', cite=[zero_times, zero_plus])
def masked_weights_none(q: Query, cache: List[Pair]):
    "Weights that are all times zero add up to zero."
    return masked_weights(Z(), q, cache) == zero()

@law(induct='cache', cite=[zero_times, zero_vtimes, vzero_plus])
def masked_mixed_none(q: Query, cache: List[Pair]):
    "Values that are all times zero add up to zero."
    return masked_mixed(Z(), q, cache) == vzero()

@law(induct='n', gen=['cache'], cite=[masked_weights_none, one_times], split=['cache'])
def masked_weights_take(n: Nat, q: Query, cache: List[Pair]):
    "The masked sum of weights is the sum over the first n."
    return masked_weights(n, q, cache) == weights(q, take(n, cache))

@law(induct='n', gen=['cache'], cite=[masked_mixed_none, one_times], split=['cache'])
def masked_mixed_take(n: Nat, q: Query, cache: List[Pair]):
    "The masked sum of values is the sum over the first n."
    return masked_mixed(n, q, cache) == mixed(q, take(n, cache))

@law(induct='qs', gen=['n'], cite=[masked_weights_take, masked_mixed_take], opaque=[masked_weights, masked_mixed, weights, mixed, take])
def masked_is_prefix(n: Nat, qs: List[Query], cache: List[Pair]):
    "The masked table is the same as looking at a prefix, row by row."
    return masked(n, qs, cache) == prefixes(n, qs, cache)


# %%
prove(masked_is_prefix)


# %% [markdown]
# In floating point the axioms hold for all finite numbers (up to the sign of zero). They fail for one value: $0 \cdot
# \infty$ is not a number. So a mask that multiplies is only as good as the numbers behind it are finite, and a masked
# table with an infinity in a later row would spoil an earlier one. Looking at a prefix has no such case.
#
# The mask that is one too long, the oldest mistake of all:

# %%
@pure
def masked_late(n: Nat, qs: List[Query], cache: List[Pair]) -> List[Value]:
    match qs:
        case Nil(): return Nil()
        case Cons(q, rest): return Cons(mean(masked_mixed(S(S(n)), q, cache), masked_weights(S(S(n)), q, cache)), masked_late(S(n), rest, cache))

@law
def mask_off_by_one(n: Nat, qs: List[Query], cache: List[Pair]): return masked_late(n, qs, cache) == prefixes(n, qs, cache)

prove(mask_off_by_one)


# %% [markdown]
# ## One long array
#
# Now the memory. A row of $D$ numbers is written from an offset on, and $t$ rows are read one after the other, each
# $D$ further than the last. `select` and `store` are reading and writing a cell.

# %%
#| export
@pure
def write(row: List[Number], at: int, a: Array[int, Number]) -> Array[int, Number]:
    "The array with a row written from offset `at` on."
    match row:
        case Nil(): return a
        case Cons(x, rest): return write(rest, at + 1, store(a, at, x))

@pure
def read(d: Nat, at: int, a: Array[int, Number]) -> List[Number]:
    "The row of d numbers from offset `at` on."
    match d:
        case Z(): return Nil()
        case S(m): return Cons(select(a, at), read(m, at + 1, a))

@pure
def count(d: Nat) -> int:
    "A natural number as an integer."
    match d:
        case Z(): return 0
        case S(m): return count(m) + 1

@pure
def rows(t: Nat, d: Nat, at: int, a: Array[int, Number]) -> List[List[Number]]:
    "t rows of d numbers, from offset `at` on."
    match t:
        case Z(): return Nil()
        case S(m): return Cons(read(d, at, a), rows(m, d, at + count(d), a))

@pure
def offset(t: Nat, d: Nat, at: int) -> int:
    "Where row t begins."
    match t:
        case Z(): return at
        case S(m): return offset(m, d, at + count(d))

@pure
def snoc(xs: List[List[Number]], x: List[Number]) -> List[List[Number]]:
    "A list with one more element at its end."
    match xs:
        case Nil(): return Cons(x, Nil())
        case Cons(y, rest): return Cons(y, snoc(rest, x))


# %% [markdown]
# Writing changes the cells of the row and no others, before it or after it. This is what lets all the layers and heads of
# a model live in one array: each has its own region, and none can disturb another.

# %%
#| export
@law(induct='d', trigger='count(d)')
def count_positive(d: Nat):
    "A count is not negative."
    return count(d) >= 0

@law(induct='row', gen=['at', 'a'], trigger='select(write(row, at, a), i)')
def write_before(row: List[Number], at: int, a: Array[int, Number], i: int):
    "Cells before the row keep what they hold."
    assert i < at
    return select(write(row, at, a), i) == select(a, i)

@law(induct='row', gen=['at', 'a'], cite=[count_positive], trigger='select(write(row, at, a), i)')
def write_after(row: List[Number], at: int, a: Array[int, Number], i: int):
    "Cells after the row keep what they hold."
    assert at + count(length(row)) <= i
    return select(write(row, at, a), i) == select(a, i)


# %%
#| export
@law(induct='d', gen=['i'], cite=[write_before, count_positive], opaque=[write])
def read_before(d: Nat, i: int, row: List[Number], at: int, a: Array[int, Number]):
    "A row that ends before another one is written stays as it is."
    assert i + count(d) <= at
    return read(d, i, write(row, at, a)) == read(d, i, a)

@law(induct='row', gen=['at', 'a'], cite=[write_before])
def read_write(row: List[Number], at: int, a: Array[int, Number]):
    "What was written is read."
    return read(length(row), at, write(row, at, a)) == row

@law(induct='t', gen=['at'], cite=[count_positive], trigger='offset(t, d, at)')
def offset_after(t: Nat, d: Nat, at: int):
    "Row t does not begin before row 0."
    return offset(t, d, at) >= at

@law(induct='t', gen=['at'])
def offset_formula(t: Nat, d: Nat, at: int):
    "Row t begins t times d cells further on."
    return offset(t, d, at) == at + count(t)*count(d)


# %% [markdown]
# And the one that matters: writing row $t$ at its offset, and then reading $t + 1$ rows, is the list with one more element.

# %%
#| export
@law(induct='t', gen=['at'], cite=[read_before, read_write, offset_after], opaque=[write, read], ih='offset(t, length(row), at)')
def write_is_snoc(t: Nat, at: int, row: List[Number], a: Array[int, Number]):
    "The array cache is the list cache: a row written at offset t*d is an element appended."
    return rows(S(t), length(row), at, write(row, offset(t, length(row), at), a)) == snoc(rows(t, length(row), at, a), row)


# %%
prove(write_is_snoc)


# %% [markdown]
# A wrong stride, one cell too short, overwrites the end of the row before:

# %%
@law
def short_stride(t: Nat, row: List[Number], a: Array[int, Number]):
    at = count(t)*(count(length(row)) - 1)
    return rows(S(t), length(row), 0, write(row, at, a)) == snoc(rows(t, length(row), 0, a), row)

prove(short_stride)


# %% [markdown]
# ## The region of a head
#
# The array holds, for each layer and each head, room for $T$ rows: a region of $T D$ cells. Row $t$ of region $r$ begins at
# $r\,(T D) + t D$. While $t < T$ the row stays inside its region, and so, by the laws above, no other region changes. At
# $t = T$ it would not: there a program has to stop, and ours does, by name.

# %%
#| export
@pure
def start(r: int, t: int, T: int, D: int) -> int:
    "Where row t of region r begins, when a region has T rows of D cells."
    return r*(T*D) + t*D

@law(induct='D')
def row_fits(t: int, T: int, D: int):
    "When t < T, row t ends before T rows do."
    assert 0 <= t and t < T and 0 <= D
    return 0 <= t*D and t*D + D <= T*D

@law(cite=[row_fits.here()])
def row_in_region(r: int, t: int, T: int, D: int):
    "A row with t < T lies inside its region."
    assert 0 <= t and t < T and 0 <= D
    return start(r, 0, T, D) <= start(r, t, T, D) and start(r, t, T, D) + D <= start(r + 1, 0, T, D)


# %%
prove(row_in_region)


# %%
@law
def one_row_too_many(r: int, t: int, T: int, D: int):
    assert 0 <= t and t <= T and 0 <= D
    return start(r, t, T, D) + D <= start(r + 1, 0, T, D)

prove(one_row_too_many)


# %% [markdown]
# ## The loop that runs
#
# And this is the loop that writes a row, as the decoder runs it: a [kernel](29b_kernel.ipynb), compiled from the very source
# that its contract is proved about, for all sizes. The contract says what `write_is_snoc` and `row_in_region` said of the
# model: the cells of row $t$ of the region hold the row, and every other cell of the whole cache, before and after, is what it was.
# The row may lie anywhere inside of a longer one, since a layer makes the keys of all heads side by side.

# %%
#| export
@kernel
def keep(R: Size, T: Size, D: Size, cache: Buf["R*(T*D)", f32], region: int, t: int, row: Buf[f32], first: int):
    "Write row[first:first + D] as row t of a region: there are R regions, with room for T rows of D numbers each."
    requires(0 <= region and region < R and 0 <= t and t < T and 0 <= first and first + D <= len(row))
    assert t*D + D <= T*D
    assert region*(T*D) + T*D <= R*(T*D)
    start = region*(T*D) + t*D
    for i in range(D):
        invariant(all(cache[start + j] == row[first + j] for j in range(i)),
                  all(cache[j] == old(cache)[j] for j in range(start)),
                  all(cache[j] == old(cache)[j] for j in range(start + D, R*(T*D))))
        cache[start + i] = row[first + i]
    ensures(all(cache[start + j] == row[first + j] for j in range(D)),
            all(cache[j] == old(cache)[j] for j in range(start)),
            all(cache[j] == old(cache)[j] for j in range(start + D, R*(T*D))))


# %%
keep.proof

# %%
import numpy as np
cache = np.zeros(2*(3*4), np.float32)
keep(2, 3, 4, cache, 1, 2, np.arange(8, dtype=np.float32), 4)
cache.reshape(2, 3, 4)

# %% [markdown]
# A fourth row in a region for three is refused before the loop runs:

# %%
from bendml.kernel import KernelError
try: keep(2, 3, 4, cache, 0, 3, np.arange(8, dtype=np.float32), 4)
except KernelError as e: print(e)

# %% [markdown]
# ## All of them

# %%
#| echo: false
from bendml.laws import Law
for name, each in list(globals().items()):
    if isinstance(each, Law) and each.__doc__ and each.__module__ == __name__: print(f'{name:20} {prove(each).verdict:10} {each.__doc__}')

# %% [markdown]
# ## What this does not show
#
# - The loop that reads the cache, the attention of the decoder: [the next page](71c_look.ipynb).
# - That the numbers of a computer are those of the axioms: they are, for finite values.
# - That the weights are divided by their sum in one order or another. `mean` may be any function of the two sums; that it
#   is the quotient plays no part here.
