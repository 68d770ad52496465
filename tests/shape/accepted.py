"Constructs that the check accepts."
import math, random
import numpy as np
from numpy import zeros as zz
from bendml.shape import Arr, Bool, Dim, Grad, InOut, Int, L, Mat, OutIn, Vec, dims, typed

B, T, C, H, D, V, N, P, n, m, d, p = dims('B T C H D V N P n m d p')


@typed
def zero_turns_ok(x: Mat[n, d]) -> Vec[d]:
    r = x[0]
    for i in range(len(x) - 1):
        r = r + x[i + 1]
    return r


@typed
def listcomp(x: Mat[n, d]) -> Mat[n, d]:
    return np.array([r * 2 for r in x])


@typed
def append_after(x: Mat[n, d]) -> Mat['n+1', d]:
    out = [x[0]]
    for r in x: out.append(r)
    return np.stack(out)


@typed
def nested_lists(x: Arr[B, n, d]) -> Mat['B*n', d]:
    out = []
    for m in x:
        for r in m: out.append(r)
    return np.stack(out)


@typed
def nested_listcomp(x: Arr[B, n, d]) -> Arr[B, n, d]:
    return np.array([[r + 1 for r in m] for m in x])


@typed
def enumerate_zip(x: Mat[n, d], y: Vec[n]) -> Mat[n, d]:
    out = np.empty(x.shape)
    for i, (r, t) in enumerate(zip(x, y)):
        out[i] = r * t
    return out


@typed
def while_data(x: Vec[n]) -> Vec[n]:
    while np.abs(x).max() > 1: x = x / 2
    return x


@typed
def concrete_loop(x: Vec[n]) -> Vec['n+3']:
    for i in range(3): x = np.append(x, 0)
    return x


@typed
def size_branch(x: Vec[n]) -> Vec[n]:
    if len(x) % 2 == 0: h = len(x)//2; return np.concatenate([x[:h], x[h:]])
    return x


@typed
def from_numpy_import_zeros(x: Vec[n]) -> Vec[n]:
    return x + zz(len(x))


@typed
def mask_same(x: Vec[n], y: Vec[n]) -> float:
    m = x > 0
    return (x[m] * y[m]).sum()


@typed
def guard(x: Vec[n]) -> Vec['n-2']:
    if len(x) < 3: raise ValueError('short')
    return x[1:-1]


@typed
def int_of_float_guarded(x: Vec[n]) -> Vec[n]:
    k = int(x.sum())
    if k != len(x): raise ValueError
    return np.zeros(k)


@typed
def inout_square_ok(x: Mat[B, C], w: OutIn[Mat[C, C]]) -> Mat[B, C]:
    return x @ w.T


@typed
def grad(x: Mat[B, C], w: InOut[Mat[C, C]], dy: Grad[Mat[B, C]]) -> tuple[Mat[B, C], InOut[Mat[C, C]]]:
    return dy @ w.T, x.T @ dy


@typed(where=["P >= 0"])
def cache(K: Mat[P, d], k: Vec[d]) -> Mat["P+1", d]:
    return np.concatenate([K, k[None]])


@typed(where=["0 <= p < N"])
def prealloc(K: Mat["N", d], k: Vec[d], p: int) -> Mat["p+1", d]:
    K[p] = k
    return K[:p + 1]


@typed
def try_one_step(x: Mat[n, n]) -> Mat[n, n]:
    try: z = np.linalg.inv(x)
    except np.linalg.LinAlgError: z = np.linalg.pinv(x)
    return z


@typed
def try_and_raise(x: Mat[n, n]) -> Mat[n, n]:
    try:
        y = x + 1
        z = np.linalg.cholesky(y)
    except np.linalg.LinAlgError as e: raise ValueError('not positive') from e
    return z


@typed
def generator_sum(x: Mat[n, d]) -> Vec[d]:
    return sum(r for r in x)


@typed
def map_lambda(x: Mat[n, d]) -> Mat[n, d]:
    return np.stack(list(map(lambda r: r * 2, x)))
