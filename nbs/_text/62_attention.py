# %%
#| default_exp nn.attention

# %% [markdown]
# # Attention
# > Each position looks at those before it: causal attention with grouped queries, and rotary positions in both conventions.

# %% [markdown]
# A word's meaning depends on the words before it. In attention each position $t$ asks a question $q_t$; every earlier
# position $u$ offers a key $k_u$ and a value $v_u$; the answer is a mean of the values, weighted by how well keys fit the
# question:
#
# $$p_{tu} = \mathrm{softmax}_{u \le t}\big(q_t \cdot k_u/\sqrt D\big) \qquad o_t = \sum_{u \le t} p_{tu}\,v_u$$
#
# Several such *heads* work side by side. To save memory, a group of heads may share one set of keys and values.

# %%
#| hide
#| export
import numpy as np
from numpy import float32

from bendml.autograd.symbols import RULES, Rule, check, confirm, on_symbols
from bendml.kernel import word
from bendml.nn.rows import _ALL, _ONE, _ROW, softmax_row, softmax_row_back
from bendml.threads import get_threads
from numba import njit, prange


# %% [markdown]
# ## The causal softmax
#
# Row $t$ of the scores is read up to column $t$ and no further; the rest is set to zero. It returns how many scores it has
# read, and the law `causal` on [Laws of rows](67b_row_laws.ipynb) says that this is $t + 1$.

# %%
#| export
@njit(**_ROW)
def causal_row(s, t, scale):
    "In place: the softmax of the first t + 1 scores, times `scale` before; zeros after. Returns how many were read."
    for u in range(t + 1): s[u] *= scale
    softmax_row(s[:t + 1], s[:t + 1])
    for u in range(t + 1, len(s)): s[u] = float32(0)
    return t + 1

@njit(**_ROW)
def causal_row_back(p, t, scale, dp):
    "In place: from the derivative by the weights to the one by the scores."
    softmax_row_back(p[:t + 1], dp[:t + 1], dp[:t + 1])
    for u in range(t + 1): dp[u] *= scale
    for u in range(t + 1, len(p)): dp[u] = float32(0)

@njit(**_ALL)
def causal_rows(s, scale):
    "All rows of scores, (N, T, T), in place."
    T = s.shape[1]
    for i in prange(s.shape[0]*T): causal_row(s[i//T, i % T], i % T, scale)

@njit(**_ALL)
def causal_rows_back(p, scale, dp):
    T = p.shape[1]
    for i in prange(p.shape[0]*T): causal_row_back(p[i//T, i % T], i % T, scale, dp[i//T, i % T])


# %%
s = np.zeros((1, 3, 3), float32)
causal_rows(s, float32(1))
s[0].round(3)


# %% [markdown]
# ## Forwards and backwards
#
# Queries are (B, K, G, T, D): batch, groups, heads in a group, time, head size; keys and values (B, K, 1, T, D). The
# products are BLAS's.

# %%
#| export
def _t(x): return np.swapaxes(x, -1, -2)

def attend(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    "The answers, shaped as q, and the weights (B, K, G, T, T)."
    p = np.matmul(q, _t(k))
    causal_rows(p.reshape(-1, *p.shape[-2:]), _scale(q))
    return np.matmul(p, v), p

def attend_back(q: np.ndarray, k: np.ndarray, v: np.ndarray, p: np.ndarray, do: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    "The derivatives by q, k and v; those that share a key or value add up."
    dv = np.matmul(_t(p), do)
    ds = np.matmul(do, _t(v))
    causal_rows_back(p.reshape(-1, *p.shape[-2:]), _scale(q), ds.reshape(-1, *p.shape[-2:]))
    return np.matmul(ds, k), np.matmul(_t(ds), q).sum(2, keepdims=True), dv.sum(2, keepdims=True)

def _scale(q): return float32(q.shape[-1]**-.5)


# %%
#| hide
#| export
def _attention(forward, back):
    def ahead(q, k, v):
        y, p = on_symbols(forward)(q, k, v)
        return y, (q, k, v, p)
    return ahead, lambda saved, dy: on_symbols(back)(*saved, dy)


# %%
#| export
RULES['attention'] = Rule(attend, attend_back, _attention, {n: (1, 1, 1, 2, 2) for n in 'qkv'})
RULES['attention, grouped'] = Rule(attend, attend_back, _attention, {'q': (1, 1, 2, 2, 1), 'k': (1, 1, 1, 2, 1), 'v': (1, 1, 1, 2, 1)})

# %%
confirm('attention', 'attention, grouped')


# %% [markdown]
# The scale forgotten on the way back, a slip that only makes learning slower:

# %%
def unscaled(q, k, v, p, do):
    dq, dk, dv = on_symbols(attend_back)(q, k, v, p, do)
    return dq*2**.5, dk, dv

print(wrong := check('attention', unscaled))
assert wrong.verdict == 'refuted'


# %% [markdown]
# ## One score
#
# The way back of a softmax, one number at a time: for code that does not keep the weights but computes them again. `inner` is
# $\sum_u p_{tu}\,dp_{tu}$.

# %%
#| export
@word('f32')
@njit(**_ONE)
def score_back(p, dp, inner): return p*(dp - inner)


# %%
#| hide
#| export
def _scores(forward, back):
    "The softmax, and on its way back one score at a time."
    def ahead(x):
        on_symbols(forward)(x, y := np.full(len(x), None, object))
        return y, y
    def backward(y, dy):
        inner = sum(y[1:]*dy[1:], y[0]*dy[0])
        return np.array([on_symbols(back)(p, d, inner) for p, d in zip(y, dy)], object),
    return ahead, backward


# %%
#| export
RULES['attention, a score'] = Rule(softmax_row, score_back, _scores, {'x': (3,)}, (0, 1))

# %%
confirm('attention, a score')

# %% [markdown]
# ## Rotary positions
#
# Attention alone does not see order. RoPE turns each pair of numbers of a query or key by an angle that grows with its
# position; a dot product then depends on the *difference* of two positions. Which numbers form a pair is a convention,
# and there are two in the wild: `interleaved` turns neighbours, (0, 1), (2, 3), …; `half` turns number $i$ with number
# $i + D/2$. Weights trained with one give nonsense with the other, and no shape shows it; at position 0 the two agree. So
# the convention has a name here, and no default.

# %%
#| export
CONVENTIONS = ('interleaved', 'half')

def angles(
    positions: int,       # T, how many
    size: int,            # D, the head size, even
    base: float = 10000.,
) -> tuple[np.ndarray, np.ndarray]:   # cos and sin, each (T, D/2) float32
    "The angles of each position and pair: t/base^(2i/D). `ValueError` for an odd size."
    if size % 2: raise ValueError(f'rotary positions\n- expected : an even head size\n- observed : {size}\nhint: numbers are turned in pairs')
    a = np.outer(np.arange(positions), float(base)**(-np.arange(0, size, 2)/size))
    return np.cos(a).astype(float32), np.sin(a).astype(float32)


# %%
#| export
@njit(**_ROW)
def rotate_row(x, cos, sin, step, y):
    "Turn pairs: `step` 1 for neighbours, else half of the size."
    for i in range(len(cos)):
        a = 2*i if step == 1 else i
        b = a + step
        u, v = x[a], x[b]
        y[a] = cos[i]*u - sin[i]*v
        y[b] = sin[i]*u + cos[i]*v

@njit(**_ALL)
def rotate_rows(x, cos, sin, step, y):
    "x (N, T, H, D): row t of each sequence is turned by the angles of position t."
    N, T, H, D = x.shape
    for i in prange(N*T):
        for h in range(H): rotate_row(x[i//T, i % T, h], cos[i % T], sin[i % T], step, y[i//T, i % T, h])

def rotate(
    x: np.ndarray,       # (B, T, H, D)
    cos: np.ndarray,     # (at least T, D/2)
    sin: np.ndarray,
    convention: str,     # 'interleaved' or 'half'
    back: bool = False,  # turn the other way: the derivative's way
) -> np.ndarray:         # as x
    "Rotary positions."
    if convention not in CONVENTIONS: raise ValueError(f'rotary positions\n- expected : {" or ".join(CONVENTIONS)}\n- observed : {convention!r}')
    if 2*cos.shape[1] != x.shape[3] or len(cos) < x.shape[1]:
        raise ValueError(f'rotary positions\n- expected : angles for ({x.shape[1]}, {x.shape[3]//2})\n- observed : {cos.shape}')
    y = np.empty_like(x)
    rotate_rows(x, cos, -sin if back else sin, 1 if convention == 'interleaved' else x.shape[3]//2, y)
    return y


# %%
x, a = np.array([1, 2, 3, 4], float32).reshape(1, 1, 1, 4), np.array([[1., .01]])
cos, sin = np.cos(a).astype(float32), np.sin(a).astype(float32)
for convention in CONVENTIONS: print(f'{convention:12}', rotate(x, cos, sin, convention).ravel())


# %% [markdown]
# Turning is linear, and its transpose is turning back.

# %%
#| export
def _turning(convention):
    cos, sin = (f(np.array([[1, .01]])).astype(float32) for f in (np.cos, np.sin))
    def passes(forward, back):
        return (lambda x: (on_symbols(forward)(x, cos, sin, convention), ()), lambda _, dy: (on_symbols(back)(dy, cos, sin, convention, True),))
    return passes

RULES |= {f'RoPE, {c}': Rule(rotate, rotate, _turning(c), {'x': (1, 1, 1, 4)}) for c in CONVENTIONS}

# %%
confirm(*(f'RoPE, {c}' for c in CONVENTIONS))

# %%
try: angles(4, 5)
except ValueError as e: print(e)

# %% [markdown]
# ## What this does not show
#
# The weights $p$ are kept for the way back, $T^2$ numbers a head, half of them zeros. [Attention in blocks](62b_blocks.ipynb)
# computes the same without; it is what layers use. For one token after another, with a cache, the models have code of their own.
