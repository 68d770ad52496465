# %%
#| default_exp look

# %% [markdown]
# # The loop that looks back
# > Attention over a flat cache with shared heads and room for more: what it computes, cell by cell, and what it cannot see.

# %% [markdown]
# [The law of the cache](71_kvcache.ipynb) holds whatever attention is, as long as it is a function of the query and of the first
# $n + 1$ entries. On [flat arrays](71b_kvarray.ipynb) these entries are rows of a region, and behind them lies whatever was there
# before. So of the loop that reads them there are two things to know: which numbers it computes, and that they depend on those rows
# and on nothing else. This page proves both, the first of the loop's own source.

# %%
#| hide
#| export
import math

from bendml.kernel import Buf, Size, ensures, f32, invariant, kernel, prange, requires
from bendml.kernel.functional import old
from bendml.kernel.numbers import Number, fadd, fdiv, fexp, fmax, fmul, fnum, fsub
from bendml.kvarray import row_fits
from bendml.laws import Array, law, prove, pure, select


# %% [markdown]
# ## What is computed
#
# A query of $D$ numbers begins in `q` at `first`; the rows of keys and values begin at `start`, $D$ apart. The score of row $t$ is
# $s_t = c \sum_d q_d k_{td}$; its weight is $e^{s_t - m}$, where $m$ is the greatest of the scores, divided by the sum of all weights;
# and the answer is the sum of the values, each times its weight. Every sum runs from left to right.

# %%
#| export
@pure(measure='d')
def fit(q: Array[int, Number], K: Array[int, Number], first: int, at: int, d: int) -> Number:
    "The first d products of a query and the key that begins at `at`."
    if d <= 0: return fnum(0)
    return fadd(fit(q, K, first, at, d - 1), fmul(select(q, first + (d - 1)), select(K, at + (d - 1))))

@pure(measure='t')
def best(q: Array[int, Number], K: Array[int, Number], first: int, start: int, D: int, c: Number, t: int) -> Number:
    "The greatest of the first t scores."
    if t <= 0: return fnum(0)
    if t == 1: return fmul(fit(q, K, first, start + (t - 1)*D, D), c)
    return fmax(best(q, K, first, start, D, c, t - 1), fmul(fit(q, K, first, start + (t - 1)*D, D), c))

@pure(measure='t')
def total(q: Array[int, Number], K: Array[int, Number], first: int, start: int, D: int, c: Number, top: Number, t: int) -> Number:
    "The sum of the first t weights."
    if t <= 0: return fnum(0)
    return fadd(total(q, K, first, start, D, c, top, t - 1), fexp(fsub(fmul(fit(q, K, first, start + (t - 1)*D, D), c), top)))

@pure(measure='t')
def mixed(q: Array[int, Number], K: Array[int, Number], V: Array[int, Number], first: int, start: int, D: int, c: Number, top: Number, sum: Number, d: int, t: int) -> Number:
    "The sum of the first t values at d, each times its share of the weights."
    if t <= 0: return fnum(0)
    return fadd(mixed(q, K, V, first, start, D, c, top, sum, d, t - 1),
                fmul(fdiv(fexp(fsub(fmul(fit(q, K, first, start + (t - 1)*D, D), c), top)), sum), select(V, start + (t - 1)*D + d)))

@pure
def seen(q: Array[int, Number], K: Array[int, Number], V: Array[int, Number], first: int, start: int, D: int, c: Number, d: int, t: int) -> Number:
    "Number d of the answer, from the first t rows."
    return mixed(q, K, V, first, start, D, c, best(q, K, first, start, D, c, t), total(q, K, first, start, D, c, best(q, K, first, start, D, c, t), t), d, t)


# %% [markdown]
# ## The loop
#
# One head. The cache has `R` regions with room for `T` rows, of which `count` are looked at; the scores are kept in `w` from `at` on.

# %%
#| export
@kernel
def look(R: Size, T: Size, D: Size, keys: Buf["R*(T*D)", f32], values: Buf["R*(T*D)", f32], region: int, count: Size,
         q: Buf[f32], first: Size, c: f32, w: Buf[f32], at: Size, out: Buf[f32]):
    "out[first:first + D] = what a query sees in the first `count` rows of a region."
    requires(0 <= region and region < R, 1 <= count and count <= T, first + D <= len(q), first + D <= len(out), at + count <= len(w))
    assert count*D <= T*D
    assert region*(T*D) + T*D <= R*(T*D)
    start = region*(T*D)
    top = f32(0)
    for t in range(count):
        invariant(top == best(q, keys, first, start, D, c, t), all(w[at + u] == fmul(fit(q, keys, first, start + u*D, D), c) for u in range(t)))
        s = f32(0)
        assert t*D + D <= count*D
        for d in range(D):
            invariant(s == fit(q, keys, first, start + t*D, d))
            s += q[first + d]*keys[start + t*D + d]
        w[at + t] = s*c
        top = s*c if t == 0 else max(top, s*c)
    sum = f32(0)
    for t in range(count):
        invariant(sum == total(q, keys, first, start, D, c, top, t),
                  all(w[at + u] == fexp(fsub(fmul(fit(q, keys, first, start + u*D, D), c), top)) for u in range(t)),
                  all(w[at + u] == fmul(fit(q, keys, first, start + u*D, D), c) for u in range(t, count)))
        w[at + t] = math.exp(w[at + t] - top)
        sum += w[at + t]
    for d in range(D):
        invariant(all(out[first + e] == seen(q, keys, values, first, start, D, c, e, count) for e in range(d)),
                  all(out[j] == old(out)[j] for j in range(first)), all(out[j] == old(out)[j] for j in range(first + D, len(out))))
        o = f32(0)
        for t in range(count):
            invariant(o == mixed(q, keys, values, first, start, D, c, top, sum, d, t))
            assert t*D + D <= count*D
            o += w[at + t]/sum*values[start + t*D + d]
        out[first + d] = o
    ensures(all(out[first + d] == seen(q, keys, values, first, start, D, c, d, count) for d in range(D)),
            all(out[j] == old(out)[j] for j in range(first)), all(out[j] == old(out)[j] for j in range(first + D, len(out))))


# %%
look.proof


# %% [markdown]
# ## All heads
#
# Several heads of queries share the keys and values of one region: of `G` regions in a layer, head $h$ looks into number
# $\lfloor h/s \rfloor$, where $s$ heads share one. The heads are done at the same time, each with scores and an answer of its own.

# %%
#| export
@kernel
def look_heads(L: Size, G: Size, share: Size, T: Size, D: Size, keys: Buf["L*G*(T*D)", f32], values: Buf["L*G*(T*D)", f32], layer: Size, count: Size,
               q: Buf["G*share*D", f32], c: f32, w: Buf["G*share*T", f32], out: Buf["G*share*D", f32]):
    "What all heads of a layer see in the first `count` rows of their regions."
    requires(layer < L, 1 <= count and count <= T, 1 <= share, L*G < 2**40, G*share*D < 2**40, G*share*T < 2**40)
    for h in prange(G*share):
        invariant(all(out[g*D + d] == seen(q, keys, values, g*D, (layer*G + g//share)*(T*D), D, c, d, count) for g in range(h) for d in range(D)))
        g = h//share
        assert layer*G + G <= L*G
        assert h*D + D <= G*share*D
        assert h*T + T <= G*share*T
        look(L*G, T, D, keys, values, layer*G + g, count, q, h*D, c, w, h*T, out)
    ensures(all(out[g*D + d] == seen(q, keys, values, g*D, (layer*G + g//share)*(T*D), D, c, d, count) for g in range(G*share) for d in range(D)))


# %%
look_heads.proof


# %% [markdown]
# ## What it cannot see
#
# The law of the cache wants attention to be a function of the first rows. Here it is: if two caches agree on the first $t$ rows of the
# region, the answers are the same, whatever else the caches hold: later rows of the region, that a longer text left there, or
# other regions. (`not x != y` is `x == y`, as a truth value of Python's and not one of NumPy's.)

# %%
#| export
@pure(measure='n')
def agree(a: Array[int, Number], b: Array[int, Number], at: int, n: int) -> bool:
    "Whether the n cells from `at` on are the same."
    if n <= 0: return True
    return agree(a, b, at, n - 1) and not select(a, at + (n - 1)) != select(b, at + (n - 1))

@law(induct='n')
def agree_cell(a: Array[int, Number], b: Array[int, Number], at: int, n: int, i: int):
    "Cells that agree are the same, each of them."
    assert agree(a, b, at, n) and 0 <= i and i < n
    return not select(a, at + i) != select(b, at + i)

@law(induct='n')
def agree_less(a: Array[int, Number], b: Array[int, Number], at: int, n: int, m: int):
    "Cells that agree do so from the first to any of them."
    assert agree(a, b, at, n) and m <= n
    return agree(a, b, at, m)

@law(induct='d', cite=[agree_cell.at(n='n', i='i + (d - 1)')])
def fit_agrees(q: Array[int, Number], a: Array[int, Number], b: Array[int, Number], first: int, at: int, n: int, i: int, d: int):
    "A score depends on the cells of its key."
    assert agree(a, b, at, n) and 0 <= i and i + d <= n
    return not fit(q, a, first, at + i, d) != fit(q, b, first, at + i, d)


# %%
#| export
@law(induct='t', cite=[row_fits.here(t='t - 1', T='t'), fit_agrees.here(at='start', i='(t - 1)*D', d='D')])
def best_agrees(q: Array[int, Number], a: Array[int, Number], b: Array[int, Number], first: int, start: int, n: int, D: int, c: Number, t: int):
    "The greatest score depends on the rows that are looked at."
    assert agree(a, b, start, n) and 0 <= D and t*D <= n
    return not best(q, a, first, start, D, c, t) != best(q, b, first, start, D, c, t)

@law(induct='t', cite=[row_fits.here(t='t - 1', T='t'), fit_agrees.here(at='start', i='(t - 1)*D', d='D')])
def total_agrees(q: Array[int, Number], a: Array[int, Number], b: Array[int, Number], first: int, start: int, n: int, D: int, c: Number, top: Number, t: int):
    "The sum of the weights depends on the rows that are looked at."
    assert agree(a, b, start, n) and 0 <= D and t*D <= n
    return not total(q, a, first, start, D, c, top, t) != total(q, b, first, start, D, c, top, t)

@law(induct='t', cite=[row_fits.here(t='t - 1', T='t'), fit_agrees.here(at='start', i='(t - 1)*D', d='D'),
                       agree_cell.here(a='v', b='w', at='start', i='(t - 1)*D + d')])
def mixed_agrees(q: Array[int, Number], a: Array[int, Number], b: Array[int, Number], v: Array[int, Number], w: Array[int, Number],
                 first: int, start: int, n: int, D: int, c: Number, top: Number, sum: Number, d: int, t: int):
    "The mixture depends on the rows that are looked at."
    assert agree(a, b, start, n) and agree(v, w, start, n) and 0 <= d and d < D and t*D <= n
    return not mixed(q, a, v, first, start, D, c, top, sum, d, t) != mixed(q, b, w, first, start, D, c, top, sum, d, t)

@law(cite=[best_agrees.here(n='t*D'), total_agrees.here(n='t*D', top='best(q, a, first, start, D, c, t)'),
           mixed_agrees.here(n='t*D', top='best(q, a, first, start, D, c, t)', sum='total(q, a, first, start, D, c, best(q, a, first, start, D, c, t), t)')],
     opaque=[best, total, mixed])
def only_the_rows_count(q: Array[int, Number], a: Array[int, Number], b: Array[int, Number], v: Array[int, Number], w: Array[int, Number],
                        first: int, start: int, D: int, c: Number, d: int, t: int):
    "What a query sees is a function of the first t rows of keys and values."
    assert agree(a, b, start, t*D) and agree(v, w, start, t*D) and 0 <= d and d < D
    return not seen(q, a, v, first, start, D, c, d, t) != seen(q, b, w, first, start, D, c, d, t)


# %%
prove(only_the_rows_count)


# %% [markdown]
# A loop that looked one row too far would depend on a row that is not there yet:

# %%
@law
def one_row_too_far(q: Array[int, Number], a: Array[int, Number], b: Array[int, Number], first: int, start: int, D: int, c: Number, t: int):
    assert agree(a, b, start, t*D) and 0 <= D and 0 <= t
    return not best(q, a, first, start, D, c, t + 1) != best(q, b, first, start, D, c, t + 1)

prove(one_row_too_far)

# %% [markdown]
# ## What this does not show
#
# - What the decoder runs does the same [eight numbers at a time](75e_onerow.ipynb). That it computes what `look` does is tested there, not
#   proved: it adds in another order, and has exponentials of its own.
# - That the decoder passes the right `start` and `count` is tested; `look_heads` says which ones are right.
# - That the cells agree with the list of [the law](71_kvcache.ipynb): `keep` has written them there, one row at a time, and
#   `write_is_snoc` says that this is the list.
