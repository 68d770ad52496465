# %%
#| default_exp kernel.sums

# %% [markdown]
# # Sums in order
# > Products, sums and rotations, each proved to do exactly the additions that it says, in that order.

# %% [markdown]
# These kernels are plain loops. They are the reference that faster ones are held to: each cell is a sum from left to right,
# begun at zero, and the proof says so for every size. No law of algebra is used, so it holds for floats, to the last bit.

# %%
#| hide
#| export
import math
from fractions import Fraction

from bendml.kernel import Buf, Size, ensures, f32, filled, invariant, kernel, once, prange, requires
from bendml.kernel.functional import old
from bendml.kernel.numbers import Number, fadd, fdiv, fexp, fmax, fmul, fnum, fsub
from bendml.laws.datatypes import Array, select
from bendml.laws.prove import axiom, law, prove
from bendml.laws.reflect import abstract, pure


# %% [markdown]
# ## A matrix product
#
# The specification first. The matrices may lie any way in memory: `ar` and `ac` say how far apart $A$'s rows and columns are, so
# that a transposed matrix is the same buffer with the two exchanged. The first `p` products of cell $(i, j)$:
#
# $$\mathrm{dot}(p) = \mathrm{dot}(p - 1) + A_{i,p-1} B_{p-1,j}, \qquad \mathrm{dot}(0) = 0.$$

# %%
#| export
@pure(measure='p')
def dot(a: Array[int, Number], b: Array[int, Number], i: int, ar: int, ac: int, j: int, br: int, bc: int, p: int) -> Number:
    "The first p products of row i of a and column j of b, added from left to right."
    if p <= 0: return fnum(0)
    return fadd(dot(a, b, i, ar, ac, j, br, bc, p - 1), fmul(select(a, i*ar + (p - 1)*ac), select(b, (p - 1)*br + j*bc)))


# %% [markdown]
# Then the kernel, with what holds in each of its loops: the rows above $i$ are done; in row $i$, the cells before $j$; of the sum,
# the products before $p$.

# %%
#| export
@kernel
def gemm(n: Size, k: Size, m: Size, ar: Size, ac: Size, br: Size, bc: Size, A: Buf[f32], B: Buf[f32], C: Buf["n*m", f32]):
    "C = A B, A (n, k) and B (k, m) lying any way, C row after row."
    requires((n - 1)*ar + (k - 1)*ac < len(A), (k - 1)*br + (m - 1)*bc < len(B))
    for i in prange(n):
        invariant(all(C[x*m + y] == dot(A, B, x, ar, ac, y, br, bc, k) for x in range(i) for y in range(m)))
        for j in range(m):
            invariant(all(C[i*m + y] == dot(A, B, i, ar, ac, y, br, bc, k) for y in range(j)))
            acc = f32(0)
            for p in range(k):
                invariant(acc == dot(A, B, i, ar, ac, j, br, bc, p))
                acc += A[i*ar + p*ac]*B[p*br + j*bc]
            C[i*m + j] = acc
    ensures(all(C[x*m + y] == dot(A, B, x, ar, ac, y, br, bc, k) for x in range(n) for y in range(m)), filled(C), once(C))


# %%
gemm


# %% [markdown]
# ## Three that are wrong
#
# A sum that begins at one; one that leaves out the first product; a product with $B$'s strides exchanged. Each stays inside its
# buffers, and each computes something else. The refusal shows a run.

# %%
def refused(fn):
    try: kernel(fn)
    except Exception as e: print(e)


# %%
@refused
def begins_at_one(n: Size, x: Buf["n", f32], y: Buf["n", f32], out: Buf["1", f32]):
    acc = f32(1)
    for p in range(n):
        invariant(acc == dot(x, y, 0, 0, 1, 0, 1, 0, p))
        acc += x[p]*y[p]
    out[0] = acc
    ensures(out[0] == dot(x, y, 0, 0, 1, 0, 1, 0, n))


# %%
@refused
def leaves_one_out(n: Size, x: Buf["n", f32], y: Buf["n", f32], out: Buf["1", f32]):
    acc = f32(0)
    for p in range(1, n):
        invariant(acc == dot(x, y, 0, 0, 1, 0, 1, 0, p))
        acc += x[p]*y[p]
    out[0] = acc
    ensures(out[0] == dot(x, y, 0, 0, 1, 0, 1, 0, n))


# %%
@refused
def exchanges_strides(k: Size, m: Size, A: Buf["k", f32], B: Buf["k*k", f32], C: Buf["k", f32]):
    for j in range(k):
        invariant(all(C[y] == dot(A, B, 0, 0, 1, y, k, 1, k) for y in range(j)))
        acc = f32(0)
        for p in range(k):
            invariant(acc == dot(A, B, 0, 0, 1, j, k, 1, p))
            acc += A[p]*B[p + j*k]
        C[j] = acc
    ensures(all(C[y] == dot(A, B, 0, 0, 1, y, k, 1, k) for y in range(k)))


# %% [markdown]
# ## A matrix times a vector, in bands
#
# Each thread takes a band of rows. That the bands cover all rows, and that no two overlap, is part of what is proved: $y$ is
# filled, no cell twice, with the sums of the plain product.

# %%
#| export
@pure(measure='p')
def row(w: Array[int, Number], v: Array[int, Number], k: int, i: int, p: int) -> Number:
    "The first p products of row i of w and a vector."
    if p <= 0: return fnum(0)
    return fadd(row(w, v, k, i, p - 1), fmul(select(w, i*k + (p - 1)), select(v, p - 1)))

@kernel
def matvec_rows(first: Size, end: Size, k: Size, W: Buf[f32], v: Buf["k", f32], y: Buf[f32]):
    "y[i] = W[i] v, for the rows from `first` to `end`."
    requires(end*k <= len(W), end <= len(y))
    for i in range(first, end):
        invariant(all(y[x] == row(W, v, k, x, k) for x in range(first, i)))
        acc = f32(0)
        for p in range(k):
            invariant(acc == row(W, v, k, i, p))
            acc += W[i*k + p]*v[p]
        y[i] = acc


# %%
#| export
@kernel
def matvec(n: Size, k: Size, W: Buf["n*k", f32], v: Buf["k", f32], y: Buf["n", f32]):
    "y = W v."
    matvec_rows(0, n, k, W, v, y)
    ensures(all(y[x] == row(W, v, k, x, k) for x in range(n)), filled(y), once(y))

@kernel
def matvec_bands(n: Size, k: Size, bands: Size, W: Buf["n*k", f32], v: Buf["k", f32], y: Buf["n", f32]):
    "y = W v, the rows in bands that are done at the same time."
    requires(bands > 0)
    size = (n + bands - 1)//bands
    for b in prange(bands):
        invariant(all(y[x] == row(W, v, k, x, k) for x in range(min(n, b*size))))
        matvec_rows(min(n, b*size), min(n, b*size + size), k, W, v, y)
    ensures(all(y[x] == row(W, v, k, x, k) for x in range(n)), filled(y), once(y))


# %% [markdown]
# ## Sums of columns

# %%
#| export
@pure(measure='p')
def column(b: Array[int, Number], m: int, j: int, p: int) -> Number:
    "The first p cells of column j, added from the top down."
    if p <= 0: return fnum(0)
    return fadd(column(b, m, j, p - 1), select(b, (p - 1)*m + j))

@kernel
def col_sums(n: Size, m: Size, B: Buf["n*m", f32], s: Buf["m", f32]):
    "s[j] = the sum of column j of B (n, m)."
    for j in range(m):
        invariant(all(s[y] == column(B, m, y, 0) for y in range(j)))
        s[j] = f32(0)
    for i in range(n):
        invariant(all(s[y] == column(B, m, y, i) for y in range(m)))
        for j in range(m):
            invariant(all(s[y] == column(B, m, y, i + 1) for y in range(j)), all(s[y] == column(B, m, y, i) for y in range(j, m)))
            s[j] += B[i*m + j]
    ensures(all(s[y] == column(B, m, y, n) for y in range(m)), filled(s))


# %% [markdown]
# ## Rotations (RoPE)
#
# A position is written into a vector by turning pairs of its numbers. Two conventions are in use: the pairs are neighbours,
# $(x_{2i}, x_{2i+1})$, or half a vector apart, $(x_i, x_{i+h})$. `old(x)` is the vector before.

# %%
#| export
@kernel
def rope_pairs(h: Size, c: Buf["h", f32], s: Buf["h", f32], x: Buf["2*h", f32]):
    "Turn the pairs (x[2i], x[2i + 1]) by angles of cosine c[i] and sine s[i]."
    for i in range(h):
        invariant(all(x[2*j] == fsub(fmul(c[j], old(x)[2*j]), fmul(s[j], old(x)[2*j + 1])) for j in range(i)),
                  all(x[2*j + 1] == fadd(fmul(s[j], old(x)[2*j]), fmul(c[j], old(x)[2*j + 1])) for j in range(i)),
                  all(x[j] == old(x)[j] for j in range(2*i, 2*h)))
        a, b = x[2*i], x[2*i + 1]
        x[2*i] = c[i]*a - s[i]*b
        x[2*i + 1] = s[i]*a + c[i]*b
    ensures(all(x[2*j] == fsub(fmul(c[j], old(x)[2*j]), fmul(s[j], old(x)[2*j + 1])) for j in range(h)),
            all(x[2*j + 1] == fadd(fmul(s[j], old(x)[2*j]), fmul(c[j], old(x)[2*j + 1])) for j in range(h)), filled(x), once(x))


# %%
#| export
@kernel
def rope_halves(h: Size, c: Buf["h", f32], s: Buf["h", f32], x: Buf["2*h", f32]):
    "Turn the pairs (x[i], x[i + h])."
    for i in range(h):
        invariant(all(x[j] == fsub(fmul(c[j], old(x)[j]), fmul(s[j], old(x)[j + h])) for j in range(i)),
                  all(x[j + h] == fadd(fmul(s[j], old(x)[j]), fmul(c[j], old(x)[j + h])) for j in range(i)),
                  all(x[j] == old(x)[j] for j in range(i, h)), all(x[j] == old(x)[j] for j in range(h + i, 2*h)))
        a, b = x[i], x[i + h]
        x[i] = c[i]*a - s[i]*b
        x[i + h] = s[i]*a + c[i]*b
    ensures(all(x[j] == fsub(fmul(c[j], old(x)[j]), fmul(s[j], old(x)[j + h])) for j in range(h)),
            all(x[j + h] == fadd(fmul(s[j], old(x)[j]), fmul(c[j], old(x)[j + h])) for j in range(h)), filled(x), once(x))


# %% [markdown]
# One becomes the other by a permutation: first the numbers with even index, then those with odd. Turning halves of the permuted
# vector gives, cell by cell, what turning pairs of the vector gives.

# %%
#| export
@kernel
def halves_of_pairs(h: Size, x: Buf["2*h", f32], y: Buf["2*h", f32]):
    "y = the cells of x with even index, then those with odd."
    for i in range(h):
        invariant(all(y[j] == x[2*j] for j in range(i)), all(y[j] == x[2*(j - h) + 1] for j in range(h, h + i)))
        y[i] = x[2*i]
        y[h + i] = x[2*i + 1]
    ensures(all(y[j] == x[2*j] for j in range(h)), all(y[j] == x[2*(j - h) + 1] for j in range(h, 2*h)), filled(y), once(y))

@kernel
def rope_by_halves(h: Size, c: Buf["h", f32], s: Buf["h", f32], x: Buf["2*h", f32], y: Buf["2*h", f32]):
    "Permute x, and turn halves: y[i] and y[i + h] are what `rope_pairs` makes of x[2i] and x[2i + 1]."
    halves_of_pairs(h, x, y)
    rope_halves(h, c, s, y)
    ensures(all(y[j] == fsub(fmul(c[j], x[2*j]), fmul(s[j], x[2*j + 1])) for j in range(h)),
            all(y[j] == fadd(fmul(s[j - h], x[2*(j - h)]), fmul(c[j - h], x[2*(j - h) + 1])) for j in range(h, 2*h)))


# %% [markdown]
# ## Attention over a cache
#
# One query looks back at the keys of all positions up to its own, and mixes their values: position $t$ with the weight
# $e^{q \cdot k_t}$, divided by the sum of the weights. Keys and values of all heads lie in flat caches, row after row.

# %%
#| export
@pure(measure='d')
def score(q: Array[int, Number], K: Array[int, Number], H: int, D: int, h: int, t: int, d: int) -> Number:
    "The first d products of head h's query and its key at position t."
    if d <= 0: return fnum(0)
    return fadd(score(q, K, H, D, h, t, d - 1), fmul(select(q, h*D + (d - 1)), select(K, (t*H + h)*D + (d - 1))))

@pure(measure='t')
def weights(q: Array[int, Number], K: Array[int, Number], H: int, D: int, h: int, t: int) -> Number:
    "The sum of the first t positions' weights."
    if t <= 0: return fnum(0)
    return fadd(weights(q, K, H, D, h, t - 1), fexp(score(q, K, H, D, h, t - 1, D)))

@pure(measure='t')
def mixed(q: Array[int, Number], K: Array[int, Number], V: Array[int, Number], H: int, D: int, h: int, d: int, t: int) -> Number:
    "The sum of the first t positions' values at d, each times its weight."
    if t <= 0: return fnum(0)
    return fadd(mixed(q, K, V, H, D, h, d, t - 1), fmul(fexp(score(q, K, H, D, h, t - 1, D)), select(V, ((t - 1)*H + h)*D + d)))


# %%
#| export
@kernel
def attend(T: Size, H: Size, D: Size, pos: Size, q: Buf["H*D", f32], K: Buf["T*H*D", f32], V: Buf["T*H*D", f32],
           w: Buf["H*T", f32], out: Buf["H*D", f32]):
    "One position's attention: q (H, D), caches K and V (T, H, D), weights w (H, T), out (H, D)."
    requires(pos < T)
    for h in prange(H):
        invariant(all(out[g*D + d] == fdiv(mixed(q, K, V, H, D, g, d, pos + 1), weights(q, K, H, D, g, pos + 1)) for g in range(h) for d in range(D)))
        total = f32(0)
        for t in range(pos + 1):
            invariant(total == weights(q, K, H, D, h, t), all(w[h*T + u] == fexp(score(q, K, H, D, h, u, D)) for u in range(t)))
            a = f32(0)
            for d in range(D):
                invariant(a == score(q, K, H, D, h, t, d))
                a += q[h*D + d]*K[(t*H + h)*D + d]
            w[h*T + t] = math.exp(a)
            total += w[h*T + t]
        for d in range(D):
            invariant(all(out[h*D + e] == fdiv(mixed(q, K, V, H, D, h, e, pos + 1), weights(q, K, H, D, h, pos + 1)) for e in range(d)))
            o = f32(0)
            for t in range(pos + 1):
                invariant(o == mixed(q, K, V, H, D, h, d, t))
                o += w[h*T + t]*V[(t*H + h)*D + d]
            out[h*D + d] = o/total
    ensures(all(out[g*D + d] == fdiv(mixed(q, K, V, H, D, g, d, pos + 1), weights(q, K, H, D, g, pos + 1)) for g in range(H) for d in range(D)),
            filled(out), once(out))


# %% [markdown]
# ## Softmax
#
# The greatest score is subtracted first, so that no exponential overflows. What the kernel computes is said in floats.

# %%
#| export
@pure(measure='p')
def greatest(x: Array[int, Number], p: int) -> Number:
    "The greatest of the first p cells."
    if p <= 1: return select(x, 0)
    return fmax(greatest(x, p - 1), select(x, p - 1))

@pure(measure='p')
def exps(x: Array[int, Number], top: Number, p: int) -> Number:
    "The sum of the exponentials of the first p cells, less top."
    if p <= 0: return fnum(0)
    return fadd(exps(x, top, p - 1), fexp(fsub(select(x, p - 1), top)))

@kernel
def softmax(n: Size, x: Buf["n", f32], y: Buf["n", f32]):
    "y[j] = exp(x[j] - top)/sum, where top is the greatest of x."
    requires(n > 0)
    top = x[0]
    for j in range(1, n):
        invariant(top == greatest(x, j))
        top = max(top, x[j])
    total = f32(0)
    for j in range(n):
        invariant(total == exps(x, top, j), all(y[i] == fexp(fsub(x[i], top)) for i in range(j)))
        y[j] = math.exp(x[j] - top)
        total += y[j]
    for j in range(n):
        invariant(all(y[i] == fdiv(fexp(fsub(x[i], top)), total) for i in range(j)), all(y[i] == fexp(fsub(x[i], top)) for i in range(j, n)))
        y[j] /= total
    ensures(all(y[i] == fdiv(fexp(fsub(x[i], greatest(x, n))), exps(x, greatest(x, n), n)) for i in range(n)), filled(y))


# %% [markdown]
# That the shares sum to one is true of exact numbers, not of rounded ones. Here is that law, about the same formula with fractions
# in the place of floats, and with nothing known of the exponential but that it is positive.

# %%
#| export
@abstract
def exact_exp(x: Fraction) -> Fraction: return Fraction(2)**int(x)
@axiom
def exp_positive(x: Fraction): return exact_exp(x) > Fraction(0)

@pure(measure='p')
def exact_exps(x: Array[int, Fraction], top: Fraction, p: int) -> Fraction:
    "The sum of the exponentials of the first p cells, less top."
    if p <= 0: return Fraction(0)
    return exact_exps(x, top, p - 1) + exact_exp(select(x, p - 1) - top)

@pure
def share(e: Fraction, total: Fraction) -> Fraction:
    "A part of a total."
    return Fraction(0) if total == Fraction(0) else e/total

@pure(measure='p')
def shares(x: Array[int, Fraction], top: Fraction, total: Fraction, p: int) -> Fraction:
    "The sum of the first p cells' shares."
    if p <= 0: return Fraction(0)
    return shares(x, top, total, p - 1) + share(exact_exp(select(x, p - 1) - top), total)


# %%
#| export
@law
def share_adds(a: Fraction, b: Fraction, total: Fraction):
    "The share of a sum is the sum of the shares."
    return share(a, total) + share(b, total) == share(a + b, total)

@law(induct='p', cite=[share_adds])
def shares_add_up(x: Array[int, Fraction], top: Fraction, total: Fraction, p: int):
    "All shares together are the share of all together."
    return shares(x, top, total, p) == share(exact_exps(x, top, p), total)

@law(induct='p', cite=[exp_positive])
def exps_not_negative(x: Array[int, Fraction], top: Fraction, p: int):
    "A sum of exponentials is not negative."
    return exact_exps(x, top, p) >= Fraction(0)

@law(cite=[exp_positive, exps_not_negative.at(p='p - 1')])
def exps_positive(x: Array[int, Fraction], top: Fraction, p: int):
    "A sum of at least one exponential is positive."
    assert p > 0
    return exact_exps(x, top, p) > Fraction(0)

@law(cite=[shares_add_up, exps_positive])
def softmax_sums_to_one(x: Array[int, Fraction], top: Fraction, p: int):
    "The shares of at least one cell sum to one."
    assert p > 0
    return shares(x, top, exact_exps(x, top, p), p) == Fraction(1)


# %%
[(l.__name__, prove(l).verdict) for l in (share_adds, shares_add_up, exps_not_negative, exps_positive, softmax_sums_to_one)]

# %% [markdown]
# ## What this does not show
#
# - That the law about fractions and the kernel speak of the same formula: both are on this page, and it is the reader who compares.
# - Rounding. The kernel's shares sum to one up to a rounding error, which is tested, not proved.
# - Reordered sums. A faster kernel that adds in another order computes another float; it is held to these by a bound.
