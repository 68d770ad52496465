# %%
#| default_exp nn.blocks

# %% [markdown]
# # Attention in blocks
# > The same answers without a matrix of all weights: a band of queries at a time, the lower triangle alone, and no copies of heads.

# %% [markdown]
# [Attention](62_attention.ipynb) as it is written down makes a square of weights for each head, half of which are zero, and
# walks over it a dozen times. For texts of 256 that took longer than all else but the large products. This page computes the
# same in bands of 48 queries (Dao and others, *FlashAttention*, 2022):
#
# - A band needs the keys up to its end and no others, so the zeros above the diagonal are mostly never computed.
# - The scores of a band fit into the cache. On the way forward only one number a query is kept, the logarithm $\ell_t$ of the
#   sum of its exponentials; on the way back the weights are computed again, $p_{tu} = e^{s_{tu} - \ell_t}$.
# - Queries, keys and values are read where they are, a stride apart. Nothing is rearranged before or after.

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
from bendml.tensor.gemm import HIGH, LONG, pack_cols, product_cut

# %%
#| export
BAND = 48   # queries in a band: whole tiles of 12
_ANY = {'contract', 'reassoc', 'nsz'}   # sums in any order: eight or sixteen lanes
word('f32')(exp)   # known to a kernel as a function of one number


# %% [markdown]
# ## Products of blocks
#
# All of them are rows of a matrix times [panels](42_gemm.ipynb) of another. The asserts are steps of the proof that no index
# leaves its array, for all sizes; a solver would not guess them. `square` is room for one tile, 12×32 = 384 numbers.

# %%
#| export
@kernel
def tiles(n: Size, k: Size, m: Size, a: Buf[f32], i: Size, da: Size, step: Size, b: Buf[f32], deep: Size, c: Buf[f32], at: Size, stride: Size,
          first: bool, square: Buf["384", f32]):
    "c (n, m) = a (n, k) times panels of b, `deep` numbers deep, of which the upper k are used. Not `first`: added to c."
    requires(len(a) < 2**44, len(b) < 2**44, len(c) < 2**44, step < 2**44, stride < 2**44)
    requires(1 <= n, 1 <= k, k <= deep, 1 <= m, i + (k - 1)*da + (n + 10)*step < len(a), (m + 31)*deep <= len(b), at + (n - 1)*stride + m <= len(c))
    for y in range(0, m, LONG):
        assert y*deep + 32*deep <= (m + 31)*deep
        for x in range(0, n, HIGH):
            assert x*step + 11*step <= (n + 10)*step
            rows, cols = min(HIGH, n - x), min(LONG, m - y)
            assert x*stride + (rows - 1)*stride <= (n - 1)*stride
            product_cut(k, a, i + x*step, da, step, b, y*deep, c, at + x*stride + y, stride, rows, cols, first, True, square)

@kernel(fastmath=_ANY)
def copy_band(x: Buf[f32], at: Size, stride: Size, n: Size, m: Size, scale: f32, out: Buf[f32]):
    "n rows of m numbers, times scale, side by side."
    requires(n == 0 or at + (n - 1)*stride + m <= len(x), n*m <= len(out))
    for i in range(n):
        assert i*m + m <= n*m
        start, to = max(at + i*stride, 0), max(i*m, 0)
        for j in range(m): out[to + j] = x[start + j]*scale


# %% [markdown]
# `max(..., 0)` changes nothing. It tells the compiler what was proved, that the place is not negative: numba would else look,
# at each number, whether to count from the end of the array, and could not take eight at a time.
#
# ## A row of scores

# %%
#| export
@kernel(fastmath=_ANY)
def causal_softmax(s: Buf[f32], at: Size, n: Size, m: Size):
    "In place: the softmax of the n scores from `at` on, and zeros up to m. Returns the logarithm of the sum of their exponentials."
    requires(1 <= n, n <= m, at + m <= len(s))
    a = max(at, 0)
    top, total = s[a], f32(0)
    for u in range(1, n): top = max(top, s[a + u])
    for u in range(n):
        s[a + u] = exp(s[a + u] - top)
        total += s[a + u]
    scale = f32(1)/total
    for u in range(n): s[a + u] *= scale
    for u in range(n, m): s[a + u] = f32(0)
    return top + math.log(total)


# %% [markdown]
# On the way back $ds_{tu} = p_{tu}\,(dp_{tu} - \sum_u p_{tu}\,dp_{tu})$, and that sum needs no weights: it is $do_t \cdot o_t$.
# `score_back` is that formula, with its proof on the page before.

# %%
#| export
@kernel(fastmath=_ANY)
def causal_softmax_back(s: Buf[f32], ds: Buf[f32], at: Size, n: Size, m: Size, log: f32, inner: f32):
    "In place: scores become weights again, and the derivative by the weights that by the scores; zeros from n to m."
    requires(n <= m, at + m <= len(s), at + m <= len(ds))
    a = max(at, 0)
    for u in range(n):
        s[a + u] = exp(s[a + u] - log)
        ds[a + u] = score_back(s[a + u], ds[a + u], inner)
    for u in range(n, m):
        s[a + u] = f32(0)
        ds[a + u] = f32(0)


# %% [markdown]
# ## One head
#
# `q`, `k` and `v` are the places in `x` of the head's first query, key and value; their rows are `row` apart. The answers go to
# `y`, from `o` on, `out` apart. The buffers at the end are room to work in.

# %%
#| export
@kernel
def attend_head(T: Size, D: Size, x: Buf[f32], q: Size, k: Size, v: Size, row: Size, scale: f32, y: Buf[f32], o: Size, out: Size, logs: Buf[f32], l: Size,
                keys: Buf["(T + 31)*D", f32], values: Buf["(D + 31)*T", f32], band: Buf["(BAND + 12)*D", f32], s: Buf["(BAND + 12)*T", f32], square: Buf["384", f32]):
    "The answers of one head to one sequence, and for each query the logarithm of the sum of its exponentials."
    requires(1 <= T, 1 <= D, T < 2**20, D < 2**20, row < 2**32, out < 2**32, len(x) < 2**44, len(y) < 2**44)
    requires(q + (T - 1)*row + D <= len(x), k + (T - 1)*row + D <= len(x), v + (T - 1)*row + D <= len(x), o + (T - 1)*out + D <= len(y), l + T <= len(logs))
    pack_cols(x, k, 1, row, D, T, keys)
    pack_cols(x, v, row, 1, T, D, values)
    for b in range((T + BAND - 1)//BAND):
        t = b*BAND
        n = min(BAND, T - t)
        m = t + n   # keys that are seen
        assert t*row + (n - 1)*row <= (T - 1)*row
        assert t*out + (n - 1)*out <= (T - 1)*out
        assert n*D <= BAND*D
        copy_band(x, q + t*row, row, n, D, scale, band)
        tiles(n, D, m, band, 0, 1, D, keys, D, s, 0, T, True, square)
        for i in range(n):
            assert i*T + T <= BAND*T
            logs[l + t + i] = causal_softmax(s, i*T, t + i + 1, m)
        tiles(n, m, D, s, 0, 1, T, values, T, y, o + t*out, out, True, square)


# %% [markdown]
# Backwards, a band has five products. With $S$ and $dS$ of a band:
# $dQ = dS\,K$, and $dK \mathrel{+}= dS^\top Q$, $dV \mathrel{+}= P^\top dO$ for the keys that it has seen.

# %%
#| export
@kernel(fastmath=_ANY)
def band_back(n: Size, D: Size, T: Size, t: Size, dband: Buf["(BAND + 12)*D", f32], y: Buf[f32], o: Size, out: Size, logs: Buf[f32], l: Size,
              s: Buf["(BAND + 12)*T", f32], ds: Buf["(BAND + 12)*T", f32]):
    "Scores and derivatives by weights become weights and derivatives by scores, in a band of n queries from t on."
    requires(1 <= n, n <= BAND, t + n <= T, T < 2**20, D < 2**20, out < 2**32, o + (n - 1)*out + D <= len(y), l + n <= len(logs), len(y) < 2**44)
    for i in range(n):
        assert i*T + T <= BAND*T
        assert i*D + D <= BAND*D
        assert i*out <= (n - 1)*out
        inner, a, b = f32(0), max(i*D, 0), max(o + i*out, 0)
        for d in range(D): inner += dband[a + d]*y[b + d]
        causal_softmax_back(s, ds, i*T, t + i + 1, t + n, logs[l + i], inner)


# %%
#| export
@kernel
def attend_head_back(T: Size, D: Size, x: Buf[f32], q: Size, k: Size, v: Size, row: Size, scale: f32, y: Buf[f32], dy: Buf[f32], o: Size, out: Size, logs: Buf[f32], l: Size,
                     dx: Buf[f32], dq: Size, dk: Size, dv: Size, keys: Buf["(T + 31)*D", f32], values: Buf["(T + 31)*D", f32], across: Buf["(D + 31)*T", f32],
                     band: Buf["(BAND + 12)*D", f32], dband: Buf["(BAND + 12)*D", f32], panel: Buf["(D + 31)*BAND", f32], s: Buf["(BAND + 12)*T", f32], ds: Buf["(BAND + 12)*T", f32], square: Buf["384", f32]):
    "The way back of one head, into dx from dq, dk and dv on; the derivatives by keys and values are added to what is there."
    requires(1 <= T, 1 <= D, T < 2**20, D < 2**20, row < 2**32, out < 2**32, len(x) < 2**44, len(y) < 2**44, len(dx) < 2**44, len(logs) < 2**44, len(dy) == len(y), o + (T - 1)*out + D <= len(y), l + T <= len(logs))
    requires(q + (T - 1)*row + D <= len(x), k + (T - 1)*row + D <= len(x), v + (T - 1)*row + D <= len(x))
    requires(dq + (T - 1)*row + D <= len(dx), dk + (T - 1)*row + D <= len(dx), dv + (T - 1)*row + D <= len(dx))
    pack_cols(x, k, 1, row, D, T, keys)
    pack_cols(x, v, 1, row, D, T, values)
    pack_cols(x, k, row, 1, T, D, across)
    for b in range((T + BAND - 1)//BAND):
        t = b*BAND
        n = min(BAND, T - t)
        m = t + n
        assert t*row + (n - 1)*row <= (T - 1)*row
        assert t*out + (n - 1)*out <= (T - 1)*out
        assert (m - 1)*row <= (T - 1)*row
        assert n*D <= BAND*D
        assert (D + 31)*n <= (D + 31)*BAND
        assert (n - 1)*T + m + 10 < (BAND + 12)*T
        copy_band(x, q + t*row, row, n, D, scale, band)
        copy_band(dy, o + t*out, out, n, D, f32(1), dband)
        tiles(n, D, m, band, 0, 1, D, keys, D, s, 0, T, True, square)
        tiles(n, D, m, dband, 0, 1, D, values, D, ds, 0, T, True, square)
        band_back(n, D, T, t, dband, y, o + t*out, out, logs, l + t, s, ds)
        tiles(n, m, D, ds, 0, 1, T, across, T, dx, dq + t*row, row, True, square)
        for i in range(n):
            assert i*row <= (n - 1)*row
            for d in range(D): dx[dq + t*row + i*row + d] *= scale
        pack_cols(dband, 0, D, 1, n, D, panel)
        tiles(m, n, D, s, 0, T, 1, panel, n, dx, dv, row, False, square)
        pack_cols(band, 0, D, 1, n, D, panel)
        tiles(m, n, D, ds, 0, T, 1, panel, n, dx, dk, row, False, square)


# %% [markdown]
# ## All heads, all sequences
#
# A row of `x` holds H = K·G queries, K keys and K values, each of D numbers. Threads share out the sequences; each works in an
# array of its own and copies it to its place, which makes it plain that no two threads write one cell.

# %%
#| export
@kernel
def attend_sequence(T: Size, K: Size, G: Size, D: Size, row: Size, x: Buf[f32], at: Size, scale: f32, y: Buf["T*(K*G*D)", f32], logs: Buf["K*G*T", f32]):
    "All heads of the sequence that begins at `at`."
    requires(1 <= T, 1 <= D, T < 2**20, D < 2**20, K*G < 2**20, row == (K*G + 2*K)*D, row < 2**32, K*G*D < 2**32, len(x) < 2**44, T*(K*G*D) < 2**44, at + T*row <= len(x))
    keys = np.empty((T + 31)*D, f32)
    values = np.empty((D + 31)*T, f32)
    band = np.zeros((BAND + 12)*D, f32)
    s = np.zeros((BAND + 12)*T, f32)
    square = np.empty(384, f32)
    for j in range(K):
        for g in range(G):
            h = j*G + g
            assert h + 1 <= K*G
            q, k, v = h*D, (K*G + j)*D, (K*G + K + j)*D
            assert q + D <= K*G*D
            assert K*G*D <= row
            assert k + D <= row
            assert v + D <= row
            assert (T - 1)*row + row <= T*row
            assert (T - 1)*(K*G*D) + K*G*D <= T*(K*G*D)
            assert h*T + T <= K*G*T
            attend_head(T, D, x, at + q, at + k, at + v, row, scale, y, q, K*G*D, logs, h*T, keys, values, band, s, square)


# %%
#| export
@kernel
def attend_all(B: Size, T: Size, K: Size, G: Size, D: Size, row: Size, x: Buf["B*(T*row)", f32], scale: f32, y: Buf["B*(T*(K*G*D))", f32], logs: Buf["B*(K*G*T)", f32]):
    "All sequences."
    requires(1 <= T, 1 <= D, T < 2**20, D < 2**20, K*G < 2**20, row == (K*G + 2*K)*D, row < 2**32, K*G*D < 2**32, len(x) < 2**44, len(y) < 2**44, len(logs) < 2**44)
    for b in prange(B):
        assert b*(T*row) + T*row <= B*(T*row)
        assert T*(K*G*D) <= B*(T*(K*G*D))
        assert K*G*T <= B*(K*G*T)
        own = np.empty(T*(K*G*D), f32)
        rest = np.empty(K*G*T, f32)
        attend_sequence(T, K, G, D, row, x, b*(T*row), scale, own, rest)
        for i in range(T*(K*G*D)): y[b*(T*(K*G*D)) + i] = own[i]
        for i in range(K*G*T): logs[b*(K*G*T) + i] = rest[i]


# %%
#| export
@kernel
def attend_sequence_back(T: Size, K: Size, G: Size, D: Size, row: Size, x: Buf[f32], at: Size, scale: f32, y: Buf[f32], dy: Buf[f32], o: Size, logs: Buf[f32], l: Size, dx: Buf["T*row", f32]):
    "The way back of one sequence."
    requires(1 <= T, 1 <= D, T < 2**20, D < 2**20, K*G < 2**20, row == (K*G + 2*K)*D, row < 2**32, K*G*D < 2**32, len(x) < 2**44, len(y) < 2**44, len(logs) < 2**44)
    requires(at + T*row <= len(x), len(dy) == len(y), o + T*(K*G*D) <= len(y), l + K*G*T <= len(logs))
    keys = np.empty((T + 31)*D, f32)
    values = np.empty((T + 31)*D, f32)
    across = np.empty((D + 31)*T, f32)
    band = np.zeros((BAND + 12)*D, f32)
    dband = np.zeros((BAND + 12)*D, f32)
    panel = np.empty((D + 31)*BAND, f32)
    s = np.zeros((BAND + 12)*T, f32)
    ds = np.zeros((BAND + 12)*T, f32)
    square = np.empty(384, f32)
    for i in range(T*row): dx[i] = f32(0)
    for j in range(K):
        for g in range(G):
            h = j*G + g
            assert h + 1 <= K*G
            q, k, v = h*D, (K*G + j)*D, (K*G + K + j)*D
            assert q + D <= K*G*D
            assert K*G*D <= row
            assert k + D <= row
            assert v + D <= row
            assert (T - 1)*row + row <= T*row
            assert (T - 1)*(K*G*D) + K*G*D <= T*(K*G*D)
            assert h*T + T <= K*G*T
            attend_head_back(T, D, x, at + q, at + k, at + v, row, scale, y, dy, o + q, K*G*D, logs, l + h*T, dx, q, k, v, keys, values, across, band, dband, panel, s, ds, square)


# %%
#| export
@kernel
def attend_all_back(B: Size, T: Size, K: Size, G: Size, D: Size, row: Size, x: Buf["B*(T*row)", f32], scale: f32, y: Buf["B*(T*(K*G*D))", f32], dy: Buf["B*(T*(K*G*D))", f32],
                    logs: Buf["B*(K*G*T)", f32], dx: Buf["B*(T*row)", f32]):
    "The way back of all sequences."
    requires(1 <= T, 1 <= D, T < 2**20, D < 2**20, K*G < 2**20, row == (K*G + 2*K)*D, row < 2**32, K*G*D < 2**32, len(x) < 2**44, len(y) < 2**44, len(logs) < 2**44)
    for b in prange(B):
        assert b*(T*row) + T*row <= B*(T*row)
        assert b*(T*(K*G*D)) + T*(K*G*D) <= B*(T*(K*G*D))
        assert b*(K*G*T) + K*G*T <= B*(K*G*T)
        assert T*row <= B*(T*row)
        own = np.empty(T*row, f32)
        attend_sequence_back(T, K, G, D, row, x, b*(T*row), scale, y, dy, b*(T*(K*G*D)), logs, b*(K*G*T), own)
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
