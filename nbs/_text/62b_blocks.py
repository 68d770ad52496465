# %%
#| default_exp nn.blocks

# %% [markdown]
# # Attention in blocks
# > The same answers without a matrix of all weights: a band of queries at a time, the lower triangle alone, and nothing turned but the queries.

# %% [markdown]
# [Attention](62_attention.ipynb) as it is written down makes a square of weights for each head, half of which are zero, and
# walks over it a dozen times. For texts of 256 that took longer than all else but the large products. This page computes the
# same in bands of 48 queries (Dao and others, *FlashAttention*, 2022):
#
# - A band needs the keys up to its end and no others, so the zeros above the diagonal are mostly never computed.
# - The scores of a band fit into the cache. On the way forward only one number a query is kept, the logarithm $\ell_t$ of the
#   sum of its exponentials; on the way back the weights are computed again, $p_{tu} = e^{s_{tu} - \ell_t}$.
# - The queries of a band stand side by side, as columns: scores are $S = K Q^\top$, a row for each key. So the largest score of each
#   query is found for sixteen queries at once, with no step from one lane of a register to the next, and of all factors only
#   the queries are turned.

# %%
#| hide
#| export
import math

import numpy as np
from numpy import float32

from bendml.kernel import Buf, Size, f32, kernel, prange, requires, word
from bendml.nn.elementary import exp
from bendml.nn.attention import score_back
from bendml.nn.room import room
from bendml.tensor.gemm import product_tile
from bendml.tiles import COLS, ROWS

# %%
#| export
BAND = 48   # queries in a band
_ANY = {'contract', 'reassoc', 'nsz'}   # sums in any order: eight or sixteen lanes
word('f32')(exp)   # known to a kernel as a function of one number


# %% [markdown]
# ## Products of blocks
#
# All of them are [tiles](42_gemm.ipynb) of 6×16 sums. The columns are always a multiple of 16, since rows are filled up with zeros;
# of rows there may be up to five too many, for which every array has room. The asserts are steps of the proof that no index
# leaves its array, for all sizes; a solver would not guess them.

# %%
#| export
@kernel
def tiles(n: Size, k: Size, m: Size, a: Buf[f32], i: Size, da: Size, step: Size, b: Buf[f32], j: Size, db: Size, c: Buf[f32], at: Size, stride: Size, first: bool):
    "c (n, m) = a (n, k) b (k, m), in whole tiles: m is a multiple of 16, and up to five more rows are read and written. Not `first`: added to c."
    requires(len(a) < 2**44, len(b) < 2**44, len(c) < 2**44, step < 2**44, stride < 2**44)
    requires(1 <= n, 1 <= k, m % 16 == 0, i + (k - 1)*da + (n + 4)*step < len(a), j + (k - 1)*db + m <= len(b), at + (n + 4)*stride + m <= len(c))
    for y in range(0, m, COLS):
        for x in range(0, n, ROWS):
            assert x*step + 5*step <= (n + 4)*step
            assert x*stride + 5*stride <= (n + 4)*stride
            product_tile(k, a, i + x*step, da, step, b, j + y, db, c, at + x*stride + y, stride, first, True)


# %% [markdown]
# `max(..., 0)` below changes nothing. It tells the compiler what was proved, that the place is not negative: numba would else look,
# at each number, whether to count from the end of the array, and could not take eight at a time.

# %%
#| export
@kernel(fastmath=_ANY)
def copy_rows(x: Buf[f32], at: Size, stride: Size, n: Size, m: Size, out: Buf[f32], wide: Size):
    "n rows of m numbers, `stride` apart, to rows that are `wide` apart, filled up with zeros."
    requires(n == 0 or at + (n - 1)*stride + m <= len(x), m <= wide, n*wide <= len(out))
    for i in range(n):
        assert i*wide + wide <= n*wide
        p, q = max(at + i*stride, 0), max(i*wide, 0)
        for j in range(m): out[q + j] = x[p + j]
        for j in range(m, wide): out[q + j] = f32(0)

@kernel(fastmath=_ANY)
def turn_rows(x: Buf[f32], at: Size, stride: Size, n: Size, m: Size, scale: f32, out: Buf[f32], w: Size):
    "n rows of m numbers become columns of m rows, times scale; the columns from n to w are zero."
    requires(n == 0 or at + (n - 1)*stride + m <= len(x), n <= w, m*w <= len(out))
    for j in range(m):
        assert j*w + w <= m*w
        q = max(j*w, 0)
        for i in range(n):
            assert i*stride <= (n - 1)*stride
            out[q + i] = scale*x[max(at + i*stride + j, 0)]
        for i in range(n, w): out[q + i] = f32(0)


# %% [markdown]
# ## The softmax of columns
#
# A query must not see later keys. Their scores become so small that the exponential makes zeros of them.

# %%
#| export
@kernel(fastmath=_ANY)
def hide_future(t: Size, w: Size, s: Buf[f32]):
    "Scores of w queries from t on, columns of s: those of keys that come after a query are made tiny."
    requires((t + w)*w <= len(s), t < 2**20, w < 2**20)
    for u in range(t, t + w):
        assert u*w + w <= (t + w)*w
        q = max(u*w, 0)
        for i in range(u - t): s[q + i] = f32(-3e38)

@kernel(fastmath=_ANY)
def soften(m: Size, w: Size, s: Buf[f32], top: Buf[f32], total: Buf[f32]):
    "In place: the exponential of each column of s (m, w), less its largest; the largest of each column, and the sum."
    requires(1 <= m, m*w <= len(s), w <= len(top), w <= len(total), m < 2**21, w < 2**20)
    for i in range(w):
        top[i] = f32(-3e38)
        total[i] = f32(0)
    for u in range(m):
        assert u*w + w <= m*w
        q = max(u*w, 0)
        for i in range(w): top[i] = max(top[i], s[q + i])
    for u in range(m):
        assert u*w + w <= m*w
        q = max(u*w, 0)
        for i in range(w):
            s[q + i] = exp(s[q + i] - top[i])
            total[i] += s[q + i]


# %% [markdown]
# On the way back $ds_{tu} = p_{tu}\,(dp_{tu} - \sum_u p_{tu}\,dp_{tu})$, and that sum needs no weights: it is $do_t \cdot o_t$.
# `score_back` is that formula, with its proof on the page before.

# %%
#| export
@kernel(fastmath=_ANY)
def soften_back(m: Size, w: Size, s: Buf[f32], ds: Buf[f32], log: Buf[f32], inner: Buf[f32], scale: f32):
    "In place: scores become weights again, and the derivative by the weights that by the scores, times scale."
    requires(m*w <= len(s), m*w <= len(ds), w <= len(log), w <= len(inner), m < 2**21, w < 2**20)
    for u in range(m):
        assert u*w + w <= m*w
        q = max(u*w, 0)
        for i in range(w):
            s[q + i] = exp(s[q + i] - log[i])
            ds[q + i] = scale*score_back(s[q + i], ds[q + i], inner[i])

@kernel(fastmath=_ANY)
def band_inner(n: Size, w: Size, D: Size, wide: Size, given: Buf[f32], y: Buf[f32], o: Size, out: Size, logs: Buf[f32], l: Size, log: Buf["BAND", f32], inner: Buf["BAND", f32]):
    "For each query the logarithm from the way there, and the sum of weights times their derivatives: the derivative by the answer times the answer."
    requires(1 <= n, n <= w, w <= BAND, D <= wide, n*wide <= len(given), o + (n - 1)*out + D <= len(y), l + n <= len(logs))
    for i in range(n):
        assert i*wide + wide <= n*wide
        assert i*out <= (n - 1)*out
        total, a, p = f32(0), max(i*wide, 0), max(o + i*out, 0)
        for d in range(D): total += given[a + d]*y[p + d]
        log[i], inner[i] = logs[l + i], total
    for i in range(n, w): log[i], inner[i] = f32(0), f32(0)


# %% [markdown]
# ## One head
#
# `q` is the place in `x` of the head's first query, and its rows are `row` apart; keys and values were copied, `wide` apart. The answers
# go to `y`, from `o` on, `out` apart. The buffers at the end are room to work in. The answers are divided by the sums at the end, when
# they are few, and not the weights, which are many.

# %%
#| export
@kernel
def attend_head(T: Size, D: Size, wide: Size, x: Buf[f32], q: Size, row: Size, scale: f32, keys: Buf["(T + 20)*wide", f32], values: Buf["(T + 20)*wide", f32],
                y: Buf[f32], o: Size, out: Size, logs: Buf[f32], l: Size,
                band: Buf["BAND*wide", f32], s: Buf["(T + 24)*BAND", f32], top: Buf["BAND", f32], total: Buf["BAND", f32], own: Buf["(BAND + 5)*wide", f32]):
    "The answers of one head to one sequence, and for each query the logarithm of the sum of its exponentials."
    requires(1 <= T, 1 <= D, D <= wide, wide % 16 == 0, T < 2**20, wide < 2**20, row < 2**32, out < 2**32, len(x) < 2**44, len(y) < 2**44)
    requires(q + (T - 1)*row + D <= len(x), o + (T - 1)*out + D <= len(y), l + T <= len(logs))
    for b in range((T + BAND - 1)//BAND):
        t = b*BAND
        n = min(BAND, T - t)
        w = (n + 15)//16*16
        m = t + w   # keys that are seen
        assert t*row + (n - 1)*row <= (T - 1)*row
        assert D*w <= wide*BAND
        assert m*w <= (T + 15)*BAND
        assert (m + 5)*w <= (T + 20)*BAND
        assert (m + 5)*wide <= (T + 20)*wide
        assert (n + 5)*wide <= (BAND + 5)*wide
        turn_rows(x, q + t*row, row, n, D, scale, band, w)
        tiles(m, D, w, keys, 0, 1, wide, band, 0, w, s, 0, w, True)
        hide_future(t, w, s)
        soften(m, w, s, top, total)
        tiles(n, m, wide, s, 0, w, 1, values, 0, wide, own, 0, wide, True)
        for i in range(n):
            assert (t + i)*out <= (T - 1)*out
            assert i*wide + wide <= BAND*wide
            logs[l + t + i] = top[i] + math.log(total[i])
            r, p, a = f32(1)/total[i], max(o + (t + i)*out, 0), max(i*wide, 0)
            for d in range(D): y[p + d] = own[a + d]*r


# %% [markdown]
# Backwards, a band has five products. With $S$ and $dS$ of a band:
# $dQ = dS^\top K$, and $dK \mathrel{+}= dS\,Q$, $dV \mathrel{+}= P\,dO$ for the keys that it has seen.

# %%
#| export
@kernel
def attend_head_back(T: Size, D: Size, wide: Size, x: Buf[f32], q: Size, row: Size, scale: f32, keys: Buf["(T + 20)*wide", f32], values: Buf["(T + 20)*wide", f32],
                     y: Buf[f32], dy: Buf[f32], o: Size, out: Size, logs: Buf[f32], l: Size, dx: Buf[f32], dq: Size, dkeys: Buf["(T + 20)*wide", f32], dvalues: Buf["(T + 20)*wide", f32],
                     band: Buf["BAND*wide", f32], dband: Buf["BAND*wide", f32], asked: Buf["BAND*wide", f32], given: Buf["BAND*wide", f32],
                     s: Buf["(T + 24)*BAND", f32], ds: Buf["(T + 24)*BAND", f32], log: Buf["BAND", f32], inner: Buf["BAND", f32], own: Buf["(BAND + 5)*wide", f32]):
    "The way back of one head, into dx from dq on; the derivatives by keys and values are added to dkeys and dvalues."
    requires(1 <= T, 1 <= D, D <= wide, wide % 16 == 0, T < 2**20, wide < 2**20, row < 2**32, out < 2**32, len(x) < 2**44, len(y) < 2**44, len(dx) < 2**44, len(logs) < 2**44, len(dy) == len(y))
    requires(q + (T - 1)*row + D <= len(x), dq + (T - 1)*row + D <= len(dx), o + (T - 1)*out + D <= len(y), l + T <= len(logs))
    for b in range((T + BAND - 1)//BAND):
        t = b*BAND
        n = min(BAND, T - t)
        w = (n + 15)//16*16
        m = t + w
        assert t*row + (n - 1)*row <= (T - 1)*row
        assert t*out + (n - 1)*out <= (T - 1)*out
        assert D*w <= wide*BAND
        assert n*wide <= BAND*wide
        assert m*w <= (T + 15)*BAND
        assert (m + 5)*w <= (T + 20)*BAND
        assert (m + 5)*wide <= (T + 20)*wide
        assert (n + 5)*wide <= (BAND + 5)*wide
        turn_rows(x, q + t*row, row, n, D, scale, band, w)
        turn_rows(dy, o + t*out, out, n, D, f32(1), dband, w)
        copy_rows(x, q + t*row, row, n, D, asked, wide)
        copy_rows(dy, o + t*out, out, n, D, given, wide)
        band_inner(n, w, D, wide, given, y, o + t*out, out, logs, l + t, log, inner)
        tiles(m, D, w, keys, 0, 1, wide, band, 0, w, s, 0, w, True)
        tiles(m, D, w, values, 0, 1, wide, dband, 0, w, ds, 0, w, True)
        hide_future(t, w, s)
        soften_back(m, w, s, ds, log, inner, scale)
        tiles(n, m, wide, ds, 0, w, 1, keys, 0, wide, own, 0, wide, True)
        tiles(m, n, wide, s, 0, 1, w, given, 0, wide, dvalues, 0, wide, False)
        tiles(m, n, wide, ds, 0, 1, w, asked, 0, wide, dkeys, 0, wide, False)
        for i in range(n):
            assert (t + i)*row <= (T - 1)*row
            assert i*wide + wide <= BAND*wide
            p, a = max(dq + (t + i)*row, 0), max(i*wide, 0)
            for d in range(D): dx[p + d] = own[a + d]


# %% [markdown]
# ## All heads, all sequences
#
# A row of `x` holds H = K·G queries, K keys and K values, each of D numbers. Threads share out the sequences; each works in an
# array of its own and copies it to its place, which makes it plain that no two threads write one cell.

# %%
#| export
@kernel
def attend_sequence(T: Size, K: Size, G: Size, D: Size, wide: Size, row: Size, x: Buf[f32], at: Size, scale: f32, y: Buf["T*(K*G*D)", f32], logs: Buf["K*G*T", f32]):
    "All heads of the sequence that begins at `at`."
    requires(1 <= T, 1 <= D, D <= wide, wide % 16 == 0, T < 2**20, wide < 2**20, K*G < 2**20, row == (K*G + 2*K)*D, row < 2**32, K*G*D < 2**32, len(x) < 2**44, T*(K*G*D) < 2**44, at + T*row <= len(x))
    keys = np.zeros((T + 20)*wide, f32)
    values = np.zeros((T + 20)*wide, f32)
    band = np.empty(BAND*wide, f32)
    own = np.empty((BAND + 5)*wide, f32)
    s = np.empty((T + 24)*BAND, f32)
    top = np.empty(BAND, f32)
    total = np.empty(BAND, f32)
    for j in range(K):
        k, v = (K*G + j)*D, (K*G + K + j)*D
        assert (T - 1)*row + row <= T*row
        assert k + D <= row
        assert v + D <= row
        assert T*wide <= (T + 20)*wide
        copy_rows(x, at + k, row, T, D, keys, wide)
        copy_rows(x, at + v, row, T, D, values, wide)
        for g in range(G):
            h = j*G + g
            assert h + 1 <= K*G
            assert h*D + D <= K*G*D
            assert K*G*D <= row
            assert (T - 1)*(K*G*D) + K*G*D <= T*(K*G*D)
            assert h*T + T <= K*G*T
            attend_head(T, D, wide, x, at + h*D, row, scale, keys, values, y, h*D, K*G*D, logs, h*T, band, s, top, total, own)


# %%
#| export
@kernel
def attend_all(B: Size, T: Size, K: Size, G: Size, D: Size, row: Size, x: Buf["B*(T*row)", f32], scale: f32, y: Buf["B*(T*(K*G*D))", f32], logs: Buf["B*(K*G*T)", f32]):
    "All sequences."
    requires(1 <= T, 1 <= D, T < 2**20, D < 2**19, K*G < 2**20, row == (K*G + 2*K)*D, row < 2**32, K*G*D < 2**32, len(x) < 2**44, len(y) < 2**44, len(logs) < 2**44)
    for b in prange(B):
        assert b*(T*row) + T*row <= B*(T*row)
        assert T*(K*G*D) <= B*(T*(K*G*D))
        assert K*G*T <= B*(K*G*T)
        own = np.empty(T*(K*G*D), f32)
        rest = np.empty(K*G*T, f32)
        attend_sequence(T, K, G, D, (D + 15)//16*16, row, x, b*(T*row), scale, own, rest)
        for i in range(T*(K*G*D)): y[b*(T*(K*G*D)) + i] = own[i]
        for i in range(K*G*T): logs[b*(K*G*T) + i] = rest[i]


# %%
#| export
@kernel
def attend_sequence_back(T: Size, K: Size, G: Size, D: Size, wide: Size, row: Size, x: Buf[f32], at: Size, scale: f32, y: Buf[f32], dy: Buf[f32], o: Size, logs: Buf[f32], l: Size, dx: Buf["T*row", f32]):
    "The way back of one sequence."
    requires(1 <= T, 1 <= D, D <= wide, wide % 16 == 0, T < 2**20, wide < 2**20, K*G < 2**20, row == (K*G + 2*K)*D, row < 2**32, K*G*D < 2**32, len(x) < 2**44, len(y) < 2**44, len(logs) < 2**44)
    requires(at + T*row <= len(x), len(dy) == len(y), o + T*(K*G*D) <= len(y), l + K*G*T <= len(logs))
    keys = np.zeros((T + 20)*wide, f32)
    values = np.zeros((T + 20)*wide, f32)
    dkeys = np.empty((T + 20)*wide, f32)
    dvalues = np.empty((T + 20)*wide, f32)
    band = np.empty(BAND*wide, f32)
    dband = np.empty(BAND*wide, f32)
    asked = np.empty(BAND*wide, f32)
    given = np.empty(BAND*wide, f32)
    s = np.empty((T + 24)*BAND, f32)
    ds = np.empty((T + 24)*BAND, f32)
    own = np.empty((BAND + 5)*wide, f32)
    log = np.empty(BAND, f32)
    inner = np.empty(BAND, f32)
    for j in range(K):
        k, v = (K*G + j)*D, (K*G + K + j)*D
        assert (T - 1)*row + row <= T*row
        assert k + D <= row
        assert v + D <= row
        assert T*wide <= (T + 20)*wide
        copy_rows(x, at + k, row, T, D, keys, wide)
        copy_rows(x, at + v, row, T, D, values, wide)
        for i in range((T + 20)*wide): dkeys[i], dvalues[i] = f32(0), f32(0)
        for g in range(G):
            h = j*G + g
            assert h + 1 <= K*G
            assert h*D + D <= K*G*D
            assert K*G*D <= row
            assert (T - 1)*(K*G*D) + K*G*D <= T*(K*G*D)
            assert h*T + T <= K*G*T
            attend_head_back(T, D, wide, x, at + h*D, row, scale, keys, values, y, dy, o + h*D, K*G*D, logs, l + h*T, dx, h*D, dkeys, dvalues, band, dband, asked, given, s, ds, log, inner, own)
        for i in range(T):
            assert i*row + row <= T*row
            assert i*wide + wide <= T*wide
            p, a = max(i*row, 0), max(i*wide, 0)
            for d in range(D): dx[p + k + d], dx[p + v + d] = dkeys[a + d], dvalues[a + d]


# %%
#| export
@kernel
def attend_all_back(B: Size, T: Size, K: Size, G: Size, D: Size, row: Size, x: Buf["B*(T*row)", f32], scale: f32, y: Buf["B*(T*(K*G*D))", f32], dy: Buf["B*(T*(K*G*D))", f32],
                    logs: Buf["B*(K*G*T)", f32], dx: Buf["B*(T*row)", f32]):
    "The way back of all sequences."
    requires(1 <= T, 1 <= D, T < 2**20, D < 2**19, K*G < 2**20, row == (K*G + 2*K)*D, row < 2**32, K*G*D < 2**32, len(x) < 2**44, len(y) < 2**44, len(logs) < 2**44)
    for b in prange(B):
        assert b*(T*row) + T*row <= B*(T*row)
        assert b*(T*(K*G*D)) + T*(K*G*D) <= B*(T*(K*G*D))
        assert b*(K*G*T) + K*G*T <= B*(K*G*T)
        assert T*row <= B*(T*row)
        own = np.empty(T*row, f32)
        attend_sequence_back(T, K, G, D, (D + 15)//16*16, row, x, b*(T*row), scale, y, dy, b*(T*(K*G*D)), logs, b*(K*G*T), own)
        for i in range(T*row): dx[b*(T*row) + i] = own[i]


# %% [markdown]
# ## What a layer calls

# %%
#| export
def attend_rows(
    x: np.ndarray,   # (B, T, (K G + 2 K) D): in each row queries, keys and values
    K: int,          # heads of keys and values
    G: int,          # queries that share them
) -> tuple[np.ndarray, np.ndarray]:   # (B, T, K G D) and (B, K G, T)
    "Causal attention: the answers, and the logarithms that the way back needs."
    B, T, row = x.shape
    D = row//(K*(G + 2))
    y, logs = room(B, T, K*G*D), np.empty((B, K*G, T), float32)
    if y.size: attend_all(B, T, K, G, D, row, x.reshape(-1), D**-.5, y.reshape(-1), logs.reshape(-1))
    return y, logs

def attend_rows_back(x: np.ndarray, K: int, G: int, y: np.ndarray, logs: np.ndarray, dy: np.ndarray) -> np.ndarray:
    "The derivative by x."
    B, T, row = x.shape
    D, dx = row//(K*(G + 2)), room(*x.shape)
    if y.size: attend_all_back(B, T, K, G, D, row, x.reshape(-1), D**-.5, y.reshape(-1), np.ascontiguousarray(dy).reshape(-1), logs.reshape(-1), dx.reshape(-1))
    return dx


# %% [markdown]
# Against the plain passes, for two sequences of 100, three heads of keys, each for two of queries:

# %%
from bendml.nn.attention import attend, attend_back
rng = np.random.default_rng(0)
B, T, K, G, D = 2, 100, 3, 2, 16
q, k, v = (rng.normal(size=(B, K, n, T, D)).astype(float32) for n in (G, 1, 1))
do = rng.normal(size=q.shape).astype(float32)
rows = lambda *a: np.concatenate([np.moveaxis(x, 3, 1).reshape(B, T, -1) for x in a], 2)

want, p = attend(q, k, v)
y, logs = attend_rows(x := rows(q, k, v), K, G)
assert abs(y - rows(want)).max() < 1e-5
dx = attend_rows_back(x, K, G, y, logs, rows(do))
assert abs(dx - rows(*attend_back(q, k, v, p, do))).max() < 1e-5
print(attend_head, attend_head_back, attend_all, attend_all_back, sep='\n')

# %% [markdown]
# ## What this does not show
#
# - That the bands compute attention: the proofs are about memory and threads. The plain passes are held to calculus, and the
#   bands to the plain passes, by numbers.
# - Threads share out sequences. A single long text is computed by one of them.
