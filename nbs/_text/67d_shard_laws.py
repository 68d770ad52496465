# %%
#| default_exp nn.shard_laws

# %% [markdown]
# # Laws of shards
# > A batch may be cut in any way: the gradients of its shards add up to the gradient of the whole.

# %% [markdown]
# Examples are shared out to several processes. Each computes the gradient of its shard, they are added up, and everybody moves
# the parameters by the sum. That this is the gradient of the whole batch is why it may be done at all; so here it is, about
# the [backward pass](50_derivatives.ipynb) itself: for losses that are any expressions, in any number of parameters, over
# any numbers that add and multiply as in school, and for any split, equal or not.

# %%
#| hide
#| export
from fractions import Fraction

from bendml.autograd.scalar import (Add, Const, Expr, Mul, Place, R, alike, bump, distribute, gradient, one, plus_assoc, plus_zero, reverse,
                                    reverse_alike, times, times_assoc, times_comm, times_one, times_zero, zero, zeros)
from bendml.laws import Cons, List, Nil, abstract, axiom, law, prove, pure
from bendml.lists import append, length, length_append
from bendml.nat import Nat, S, Z, mul
from bendml.nn.layer_laws import confirm
from bendml.nn.row_laws import plus_rows, scale


# %% [markdown]
# ## The loss of a batch
#
# Each example has a loss, an expression in the parameters. The loss of a batch is their sum, times a constant: one divided by
# the number of examples.

# %%
#| export
@pure
def total(losses: List[Expr]) -> Expr:
    "The sum of expressions."
    match losses:
        case Nil(): return Const(zero())
        case Cons(e, r): return Add(e, total(r))

@pure
def batch_gradient(c: R, losses: List[Expr], p: List[R]) -> List[R]:
    "The gradient of c times the sum of the losses, by the parameters."
    return gradient(Mul(Const(c), total(losses)), p)

@pure
def shard_gradients(c: R, shards: List[List[Expr]], p: List[R]) -> List[R]:
    "The sum of the shards' gradients, in order."
    match shards:
        case Nil(): return zeros(p)
        case Cons(s, r): return plus_rows(batch_gradient(c, s, p), shard_gradients(c, r, p))

@pure
def whole(shards: List[List[Expr]]) -> List[Expr]:
    "All examples."
    match shards:
        case Nil(): return Nil()
        case Cons(s, r): return append(s, whole(r))


# %% [markdown]
# A backward pass adds to what is there already: it is the same to start it on $u + v$, or on $v$ and add $u$ later. This is
# shown for a single input, then for every expression. Going back through a sum of two batches is going back through one
# and, on top of that, through the other.

# %%
#| export
@law(induct='i', gen=['u', 'v'], split=['u', 'v'], cite=[plus_assoc])
def bump_adds(i: Place, g: R, u: List[R], v: List[R]):
    assert alike(v, u)
    return bump(i, g, plus_rows(u, v)) == plus_rows(u, bump(i, g, v))

@law(induct='e', gen=['g', 'v'], cite=[bump_adds, reverse_alike], opaque=[bump, plus_rows, alike])
def reverse_adds(e: Expr, p: List[R], g: R, u: List[R], v: List[R]):
    "Going back on top of u is going back and adding u."
    assert alike(v, u)
    return reverse(e, p, g, plus_rows(u, v)) == plus_rows(u, reverse(e, p, g, v))

@law(induct='a', gen=['v'])
def reverse_append(a: List[Expr], b: List[Expr], p: List[R], g: R, v: List[R]):
    "Two batches, one on top of the other."
    return reverse(total(append(a, b)), p, g, v) == reverse(total(b), p, g, reverse(total(a), p, g, v))


# %% [markdown]
# Lists that are equally long, and zeros that change nothing:

# %%
#| export
@law(induct='p', gen=['u'], split=['u'], cite=[plus_zero])
def plus_rows_zeros(p: List[R], u: List[R]):
    assert alike(u, p)
    return plus_rows(u, zeros(p)) == u

@law(induct='p')
def zeros_like(p: List[R]): return alike(zeros(p), p)

@law(induct='u', gen=['v', 'w'], split=['v', 'w'])
def alike_swap(u: List[R], v: List[R], w: List[R]):
    assert alike(u, w) and alike(v, w)
    return alike(u, v)


# %% [markdown]
# ## Any split
#
# $$\nabla\Big(c\sum_{e \in \mathrm{whole}} \ell_e\Big) = \sum_{\mathrm{shards}} \nabla\Big(c\sum_{e \in \mathrm{shard}} \ell_e\Big)$$

# %%
#| export
@law(cite=[reverse_append.here(g='times(one(), c)', v='zeros(p)'),
           plus_rows_zeros.here(u='reverse(total(a), p, times(one(), c), zeros(p))'),
           reverse_alike.at(e='total(a)', xs='p', g='times(one(), c)', grad='zeros(p)', d='p'), zeros_like,
           reverse_adds.at(e='total(b)', p='p', g='times(one(), c)', u='reverse(total(a), p, times(one(), c), zeros(p))', v='zeros(p)'),
           alike_swap.at(u='zeros(p)', v='reverse(total(a), p, times(one(), c), zeros(p))', w='p')],
     opaque=[plus_rows, zeros, total, append, alike])
def two_shards(c: R, a: List[Expr], b: List[Expr], p: List[R]):
    "The gradient of two batches in one is the sum of their gradients."
    return batch_gradient(c, append(a, b), p) == plus_rows(batch_gradient(c, a, p), batch_gradient(c, b, p))

@law
def empty_batch(c: R, p: List[R]): return batch_gradient(c, Nil(), p) == zeros(p)

@law(induct='shards', cite=[two_shards.at(c='c', a='shards.head', b='whole(shards.tail)', p='p'), empty_batch.here()], opaque=[batch_gradient, plus_rows, zeros])
def shards_add_up(c: R, shards: List[List[Expr]], p: List[R]):
    "However a batch is cut: the shards' gradients add up to its gradient."
    return batch_gradient(c, whole(shards), p) == shard_gradients(c, shards, p)


# %%
confirm(two_shards, shards_add_up)


# %% [markdown]
# A process does not know the size of the whole, and divides by its own: $1/m$ for its $m$ examples. With $n$ equal shards
# the sum of their gradients is then scaled by $1/n$, and the constants multiply: $c\,d = \frac1m\cdot\frac1n$.

# %%
#| export
@law(induct='i', gen=['v'], split=['v'], cite=[distribute])
def bump_scales(i: Place, d: R, g: R, v: List[R]): return bump(i, times(d, g), scale(d, v)) == scale(d, bump(i, g, v))

@law(induct='e', gen=['g', 'v'], cite=[bump_scales, times_assoc], opaque=[bump, scale])
def reverse_scales(e: Expr, p: List[R], d: R, g: R, v: List[R]):
    "Going back with a multiple gives the multiple."
    return reverse(e, p, times(d, g), scale(d, v)) == scale(d, reverse(e, p, g, v))

@law(induct='p', cite=[times_zero])
def scale_zeros(d: R, p: List[R]): return scale(d, zeros(p)) == zeros(p)

@law(cite=[times_comm, times_one])
def one_times(x: R): return times(one(), x) == x

@law(cite=[reverse_scales.at(e='total(a)', p='p', d='d', g='c', v='zeros(p)'), scale_zeros.here(), one_times], opaque=[total, zeros, scale])
def batch_scales(d: R, c: R, a: List[Expr], p: List[R]):
    return batch_gradient(times(d, c), a, p) == scale(d, batch_gradient(c, a, p))

@law(cite=[shards_add_up.here(), batch_scales.here(a='whole(shards)')], opaque=[batch_gradient, shard_gradients, whole, scale])
def mean_gradient(d: R, c: R, shards: List[List[Expr]], p: List[R]):
    "The sum of the gradients, scaled afterwards, is the gradient of the whole with the product of both constants."
    return scale(d, shard_gradients(c, shards, p)) == batch_gradient(times(d, c), whole(shards), p)


# %%
confirm(mean_gradient)


# %% [markdown]
# ## The mean of means
#
# That $\tfrac1m\cdot\tfrac1n$ is the right constant is a law about lengths. All that is used: gradients add up, can be
# divided by a number, and $\tfrac1{nm} = \tfrac1n\cdot\tfrac1m$.

# %%
#| export
@abstract
class G: "Gradients."; samples = (Fraction(0), Fraction(1), Fraction(2))
@abstract
def gplus(x: G, y: G) -> G: return x + y
@abstract
def gzero() -> G: return Fraction(0)
@abstract
def part(n: Nat, x: G) -> G: return x/max(int(n), 1)

@axiom(trigger=('gplus(gplus(x, y), z)', 'gplus(x, gplus(y, z))'))
def gplus_assoc(x: G, y: G, z: G): return gplus(gplus(x, y), z) == gplus(x, gplus(y, z))
@axiom
def gzero_plus(x: G): return gplus(gzero(), x) == x
@axiom
def part_plus(n: Nat, x: G, y: G): return part(n, gplus(x, y)) == gplus(part(n, x), part(n, y))
@axiom
def part_zero(n: Nat): return part(n, gzero()) == gzero()
@axiom(trigger='part(n, part(m, x))')
def part_part(n: Nat, m: Nat, x: G):
    assert n != Z() and m != Z()
    return part(n, part(m, x)) == part(mul(n, m), x)


# %%
#| export
@pure
def gsum(gs: List[G]) -> G:
    match gs:
        case Nil(): return gzero()
        case Cons(g, r): return gplus(g, gsum(r))

@pure
def joined(shards: List[List[G]]) -> List[G]:
    match shards:
        case Nil(): return Nil()
        case Cons(s, r): return append(s, joined(r))

@pure
def mean(gs: List[G]) -> G: return part(length(gs), gsum(gs))

@pure
def means(shards: List[List[G]]) -> List[G]:
    match shards:
        case Nil(): return Nil()
        case Cons(s, r): return Cons(mean(s), means(r))

@pure
def all_of(m: Nat, shards: List[List[G]]) -> bool:
    "Each shard has m examples."
    match shards:
        case Nil(): return True
        case Cons(s, r): return length(s) == m and all_of(m, r)


# %%
#| export
@law(induct='s', cite=[gplus_assoc, gzero_plus])
def gsum_append(s: List[G], t: List[G]): return gsum(append(s, t)) == gplus(gsum(s), gsum(t))

@law(induct='s', cite=[length_append], trigger='joined(s); all_of(m, s)')
def join_length(m: Nat, s: List[List[G]]):
    assert all_of(m, s)
    return length(joined(s)) == mul(length(s), m)

@law(induct='s', cite=[part_plus, part_zero, gsum_append], trigger='means(s); all_of(m, s)')
def means_sum(m: Nat, s: List[List[G]]):
    assert all_of(m, s)
    return gsum(means(s)) == part(m, gsum(joined(s)))

@law(induct='s')
def means_length(s: List[List[G]]): return length(means(s)) == length(s)

@law(cite=[join_length, means_sum, means_length, part_part], opaque=[gsum, length, joined, means, mul, all_of], split=['s', 'm'])
def mean_of_shards(m: Nat, s: List[List[G]]):
    "The mean of the shards' means is the mean of all."
    assert all_of(m, s) and m != Z() and length(s) != Z()
    return mean(means(s)) == mean(joined(s))


# %%
confirm(mean_of_shards)


# %% [markdown]
# Shards of different sizes are another matter:

# %%
@law
def unequal(s: List[List[G]]): return mean(means(s)) == mean(joined(s))

t = prove(unequal)
assert t.verdict == 'refuted'
t


# %% [markdown]
# ## In parts, with the same bits
#
# Now floats, whose sums depend on their order. [Processes](68b_processes.ipynb) add up rows of numbers in the order of the
# ranks, but each process only a part of the places. Nothing at all is assumed of the addition here, so the law holds for
# floats, bit by bit.

# %%
#| export
@abstract
class V: "Numbers of any kind, floats included."; samples = (0, 1, 2)
@abstract
def fplus(x: V, y: V) -> V: return 2*x + y

@pure
def row_sum(u: List[V], v: List[V]) -> List[V]:
    "The sum, place by place."
    match u, v:
        case Nil(), _: return v
        case _, Nil(): return u
        case Cons(a, x), Cons(b, y): return Cons(fplus(a, b), row_sum(x, y))

@pure
def sum_in_order(so_far: List[V], rows: List[List[V]]) -> List[V]:
    "Row after row is added."
    match rows:
        case Nil(): return so_far
        case Cons(r, rest): return sum_in_order(row_sum(so_far, r), rest)


# %%
#| export
@pure
def first(n: Nat, s: List[V]) -> List[V]:
    match n, s:
        case S(m), Cons(a, r): return Cons(a, first(m, r))
        case _, _: return Nil()

@pure
def rest(n: Nat, s: List[V]) -> List[V]:
    match n, s:
        case Z(), _: return s
        case S(_), Nil(): return Nil()
        case S(m), Cons(_, r): return rest(m, r)

@pure
def firsts(n: Nat, rows: List[List[V]]) -> List[List[V]]:
    match rows:
        case Nil(): return Nil()
        case Cons(r, more): return Cons(first(n, r), firsts(n, more))

@pure
def rests(n: Nat, rows: List[List[V]]) -> List[List[V]]:
    match rows:
        case Nil(): return Nil()
        case Cons(r, more): return Cons(rest(n, r), rests(n, more))


# %%
#| export
@law(induct='n', gen=['s'], split=['s'])
def first_rest(n: Nat, s: List[V]): return append(first(n, s), rest(n, s)) == s

@law(induct='n', gen=['u', 'v'], split=['u', 'v'])
def first_sum(n: Nat, u: List[V], v: List[V]): return first(n, row_sum(u, v)) == row_sum(first(n, u), first(n, v))

@law(split=['u'])
def row_sum_nil(u: List[V]): return row_sum(u, Nil()) == u

@law(induct='n', gen=['u', 'v'], split=['u', 'v'], cite=[row_sum_nil])
def rest_sum(n: Nat, u: List[V], v: List[V]): return rest(n, row_sum(u, v)) == row_sum(rest(n, u), rest(n, v))

@law(induct='rows', gen=['s'], cite=[first_rest, first_sum, rest_sum], opaque=[first, rest, row_sum, append],
     ih='sum_in_order(s, rows)')
def sum_in_parts(n: Nat, s: List[V], rows: List[List[V]]):
    "Adding up the first n places and the others apart is adding up rows."
    return append(sum_in_order(first(n, s), firsts(n, rows)), sum_in_order(rest(n, s), rests(n, rows))) == sum_in_order(s, rows)


# %%
confirm(sum_in_parts)

# %% [markdown]
# ## What this does not show
#
# Float sums depend on their order, and a sum of sums is another order than one long sum. Two processes give the bits of one
# only if the one adds up the same two halves; [MNIST](70_mnist.ipynb) does both, and compares.
