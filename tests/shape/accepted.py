"Constructs that the check accepts."
import math, random
import numpy as np
from numpy import zeros as zz
from bendml.shape import Arr, Bool, Dim, Grad, InOut, Int, L, Mat, OutIn, Vec, dims, rule, typed

B, T, C, H, D, V, N, P, n, m, d, p, k, h, w, s = dims('B T C H D V N P n m d p k h w s')


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
def converges(x: Vec[d], tol: float, maxit: int) -> tuple[Vec[d], int]:
    it, err = 0, 1.0
    while err > tol and it < maxit:
        new = np.tanh(x)
        err, x = np.abs(new - x).max(), new
        it += 1
    return x, it


@typed
def converges_or_leaves(x: Vec[d], tol: float) -> Vec[d]:
    it, rate, history = 0, 0.1, []
    while True:
        g = 2*x
        if np.linalg.norm(g) < tol or it > 100: break
        x, rate = x - rate*g, rate*0.9
        it += 1
    return x/max(it, 1)


@typed
def history(x: Vec[d], tol: float) -> tuple[Vec[d], float]:
    errors = [1.0]
    while np.linalg.norm(x) > tol:
        x = x/2
        errors.append(np.linalg.norm(x))
    return x, np.array(errors).mean()


@typed
def mean_of_some(x: Mat[n, d]) -> Vec[d]:
    total, count, weight = np.zeros(x.shape[1]), 0, 0.0
    for r in x:
        if r.sum() > 0:
            total += r
            count = count + 1
            weight += 1
    return total/max(count, 1)/(weight + 1)


@typed
def accelerated(x: Vec[d], steps: int) -> Vec[d]:
    t, y = 1.0, x
    for _i in range(steps):
        new, t_new = np.tanh(y), (1 + math.sqrt(1 + 4*t*t))/2
        y, x, t = new + (t - 1)/t_new*(new - x), new, t_new
    return x


@typed
def counter_in_range(x: Mat[n, d]) -> Vec[d]:
    i = 0
    while i < len(x) - 1:
        if x[i].sum() > 3: break
        i += 1
    return x[min(i, len(x) - 1)]


@typed
def some_rows(x: Mat[n, d]) -> Vec[d]:
    out = []
    for r in x:
        if r.sum() > 0: out.append(r)
    if not out: return np.zeros(x.shape[1])
    return np.stack(out).mean(0)


@typed
def some_rows_listed(x: Mat[n, d]) -> Vec[d]:
    out = [r for r in x if r.sum() > 0]
    return np.mean(out, axis=0) if len(out) > 0 else x[0]


@typed
def some_of_each(x: Arr[B, n, d]) -> Vec[d]:
    out = [np.zeros(x.shape[2])]
    for m in x:
        for r in m:
            if r.sum() > 0: out.append(r)
    return np.array(out).sum(0)


def batches(x, size):
    order = np.random.permutation(len(x))
    for s in range(0, len(x), size): yield x[order[s:s + size]]

@typed
def generator(x: Mat[n, d], w: Vec[d]) -> tuple[Vec[d], int]:
    seen = 0
    for _epoch in range(100):
        for i, b in enumerate(batches(x, 32)):
            w = w + b.mean(0)*i
            seen += len(b)
    return w, seen


def rows_of(x):
    for r in x: yield r

@typed
def generator_fills_a_list(x: Mat[n, d]) -> Vec[n]:
    out = []
    for b in rows_of(x): out.append(b.sum())
    return np.array(out)

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


@typed
def index_clipped(x: Vec[n]) -> Vec[n]:
    return x[np.clip((x*10).astype(int), 0, len(x) - 1)]


@typed
def index_remainder(x: Vec[n]) -> Vec[n]:
    return x[(x*10).astype(int) % len(x)]


@typed
def labels_filled_in_a_loop(x: Mat[n, d], c: Mat[k, d]) -> Mat[n, d]:
    a = np.empty(len(x), dtype=int)
    for i, r in enumerate(x): a[i] = ((c - r)**2).sum(1).argmin()
    return c[a]


@typed
def loop_over_an_order(x: Vec[n]) -> float:
    s = 0.0
    for i in np.argsort(x): s += x[i]
    return s


@typed
def searchsorted_less_one(x: Vec[n]) -> Vec[n]:
    s = np.sort(x)
    return s[np.searchsorted(s, x) - 1]


@typed
def index_minimum(x: Vec[n]) -> Vec[n]:
    s = np.sort(x)
    return s[np.minimum(np.searchsorted(s, x), len(s) - 1)]


@typed
def int_of_argmax(x: Mat[n, d]) -> Vec[n]:
    j = int(np.argmax(x.sum(0)))
    return x[:, j]


@typed
def index_halved(x: Vec[n]) -> Vec[n]:
    i = np.arange(len(x))*2
    return x[i//2]


@typed
def index_from_the_back(x: Vec[n]) -> Vec[n]:
    return x[-np.arange(len(x)) - 1]


@typed(where='ids < V')
def index_plus_one(ids: Int[Vec[T]], e: Mat['V+1', d]) -> Mat[T, d]:
    return e[ids + 1]


@typed
def table_by_a_mask(x: Vec[n]) -> Vec[n]:
    return np.array([1.0, 2.0])[(x > 0).astype(int)]


@typed
def index_by_a_count(x: Vec[n]) -> float:
    k = (x > 0).sum()
    return np.append(x, 0.0)[k]


@typed
def copy_of_an_order(x: Vec[n]) -> Vec[n]:
    i = np.argsort(x)
    j = i.copy()
    j += 1
    return x[i]


@typed
def index_rolled(x: Vec[n], k: int) -> Vec[n]:
    return x[(np.arange(len(x)) + k) % len(x)]


@typed
def best_row(x: Mat[n, d]) -> Vec[d]:
    best, at = -np.inf, 0
    for i, r in enumerate(x):
        if r.sum() > best: best, at = r.sum(), i
    return x[at]


@typed
def same_convolution(x: Mat[h, w], f: Mat[3, 3]) -> Mat['h', 'w']:
    xp = np.pad(x, 1)
    out = np.zeros(x.shape)
    for i in range(3):
        for j in range(3): out += f[i, j]*xp[i:i + x.shape[0], j:j + x.shape[1]]
    return out


@typed(where=['k <= h', 'k <= w'])
def windows(x: Arr[B, h, w], f: Mat[k, k]) -> Arr[B, 'h-k+1', 'w-k+1']:
    v = np.lib.stride_tricks.sliding_window_view(x, f.shape, axis=(1, 2))
    return np.einsum('bhwij,ij->bhw', v, f)


@typed
def shift_with_zeros(x: Vec[n], k: int) -> Vec['n']:
    return np.concatenate([np.zeros(min(k, len(x))), x[:max(len(x) - k, 0)]])


@typed
def class_means(x: Mat[n, d], y: Int[Vec[n]], c: int) -> Mat['c', d]:
    return np.stack([x[y == j].mean(0) for j in range(c)])


@typed
def masks_in_place(x: Mat[n, d]) -> Mat[n, d]:
    m = x > x.mean()
    x[m] = x[m]*2
    x[~m] = 0
    return x


@typed
def ranks_by_an_order(x: Vec[n]) -> Vec[n]:
    i = np.argsort(x)[::-1]
    r = np.empty(len(x), int)
    r[i] = np.arange(len(x))
    return x[r]


@typed
def while_else(x: Vec[n]) -> Vec[n]:
    y = x.copy()
    for _ in range(10):
        y = y - 0.1*(y - x)
        if np.abs(y - x).max() < 1e-6: break
    else: y = x
    return y


@typed
def column_of_ones(x: Mat[n, d]) -> Mat[n, 'd+1']:
    return np.c_[x, np.ones(len(x))]


@typed
def max_of_rows(x: Mat[n, d]) -> float:
    return max(r.sum() for r in x)


@typed
def fromiter(x: Mat[n, d]) -> Vec[n]:
    return np.fromiter((r.sum() for r in x), float)


@typed(where='m >= 2')
def interpolate(x: Vec[n], grid: Vec[m]) -> Vec[n]:
    i = np.searchsorted(grid, x).clip(1, len(grid) - 1)
    return grid[i] - grid[i - 1]


@typed
def sparse_grid(x: Vec[n], y: Vec[m]) -> tuple[Mat[1, n], Mat[m, 1]]:
    return tuple(np.meshgrid(x, y, sparse=True))


@typed
def linspace_of_rows(x: Vec[n]) -> Mat[n, 5]:
    return np.linspace(x, x + 1, 5, axis=1)


@typed
def convolution_layer(x: Arr[B, C, h, w], k: Arr[D, C, 3, 3]) -> Arr[B, D, h, w]:
    xp = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    v = np.lib.stride_tricks.sliding_window_view(xp, (3, 3), axis=(2, 3))
    return np.tensordot(v, k, ([1, 4, 5], [1, 2, 3])).transpose(0, 3, 1, 2)


@typed(where=['k <= h', 's >= 1'])
def strided_windows(x: Mat[h, h], k: int, s: int) -> Mat['(h-k)//s+1', '(h-k)//s+1']:
    v = np.lib.stride_tricks.sliding_window_view(x, (k, k))
    return v[::s, ::s].mean((2, 3))


@typed
def diff_with_a_number(x: Vec[n]) -> Vec[n]:
    return np.diff(x, prepend=0)


@typed
def diff_with_two(x: Vec[n]) -> Vec['n+1']:
    return np.diff(x, prepend=[0, 0])


@typed
def counts_of_a_remainder(x: Vec[n], bins: int) -> Int[Vec["bins"]]:
    return np.bincount((x > 0).astype(int) % bins, minlength=bins)


@typed
def counts_of_bins(x: Vec[n], k: int) -> Int[Vec[k]]:
    i = np.clip(np.floor(x).astype(int), 0, k - 1)
    return np.bincount(i, minlength=k)


@typed
def place_of_the_largest(x: Mat[n, d]) -> float:
    i = np.unravel_index(x.argmax(), x.shape)
    return x[i]


@typed
def guarded_by_any(x: Vec[n]) -> Vec[n]:
    m = x > 0
    if not m.any(): return x
    return x - x[m].min()


@typed
def guarded_by_sum(x: Vec[n]) -> float:
    m = x > 0
    if m.any(): m[:] = False
    if m.sum() == 0: return 0.0
    return x[m].max()


@typed
def kmeans(x: Mat[n, d], centers: Mat[k, d], iters: int = 10) -> tuple[Mat[k, d], Int[Vec[n]]]:
    for _ in range(iters):
        dist = ((x[:, None, :] - centers[None, :, :])**2).sum(-1)
        label = dist.argmin(1)
        for j in range(len(centers)):
            members = x[label == j]
            if len(members): centers[j] = members.mean(0)
    return centers, label


@typed
def pagerank(A: Mat[n, n], alpha: float = 0.85, tol: float = 1e-8) -> Vec[n]:
    N = A.shape[0]
    M = A/A.sum(axis=0, keepdims=True)
    r = np.ones(N)/N
    while True:
        new = alpha*M @ r + (1 - alpha)/N
        if np.abs(new - r).sum() < tol: return new
        r = new


@typed
def perceptron(X: Mat[n, d], y: Vec[n]) -> Vec[d]:
    w = np.zeros(X.shape[1])
    converged = False
    while not converged:
        converged = True
        for xi, yi in zip(X, y):
            if yi*(w @ xi) <= 0:
                w += yi*xi
                converged = False
    return w


@typed
def resize_bilinear(img: Mat[n, m], h: int, w: int) -> Mat['h', 'w']:
    y = np.linspace(0, img.shape[0] - 1, h); x = np.linspace(0, img.shape[1] - 1, w)
    y0 = np.clip(np.floor(y).astype(int), 0, img.shape[0] - 1); x0 = np.clip(np.floor(x).astype(int), 0, img.shape[1] - 1)
    y1 = np.minimum(y0 + 1, img.shape[0] - 1); x1 = np.minimum(x0 + 1, img.shape[1] - 1)
    wy = (y - y0)[:, None]; wx = (x - x0)[None, :]
    return (1 - wy)*((1 - wx)*img[np.ix_(y0, x0)] + wx*img[np.ix_(y0, x1)]) + wy*((1 - wx)*img[np.ix_(y1, x0)] + wx*img[np.ix_(y1, x1)])


@typed
def fftconv(a: Vec[n], b: Vec[m]) -> Vec['n+m-1']:
    size = len(a) + len(b) - 1
    return np.fft.irfft(np.fft.rfft(a, size)*np.fft.rfft(b, size), size)


@typed
def corr(x: Vec[n], y: Vec[n]) -> float: return np.corrcoef(x, y)[0, 1]


@typed(where='w <= n')
def moving(x: Vec[n], w: int) -> Vec['n-w+1']:
    c = np.cumsum(np.insert(x, 0, 0.0))
    return (c[w:] - c[:-w])/w


@typed
def fft_rec(x: Vec[n]) -> Vec[n]:
    N = len(x)
    if N % 2: 
        k = np.arange(N)
        return np.exp(-2j*np.pi*k[:, None]*k/N) @ x
    e, o = fft_rec(x[::2]), fft_rec(x[1::2])
    t = np.exp(-2j*np.pi*np.arange(N//2)/N)*o
    return np.concatenate([e + t, e - t])


@typed(where='k <= n')
def knn(train: Mat[n, d], y: Int[Vec[n]], test: Mat[m, d], k: int) -> Int[Vec[m]]:
    d2 = (test**2).sum(1)[:, None] + (train**2).sum(1)[None] - 2*test @ train.T
    idx = np.argpartition(d2, k - 1, axis=1)[:, :k]
    votes = y[idx]
    out = np.empty(len(test), dtype=int)
    for i in range(len(test)):
        out[i] = np.bincount(votes[i]).argmax()
    return out


@typed
def life(g: Int[Mat[n, m]]) -> Int[Mat[n, m]]:
    nb = sum(np.roll(np.roll(g, i, 0), j, 1) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0))
    return ((nb == 3) | ((g == 1) & (nb == 2))).astype(int)


@typed
def places(x: Mat[n, d]) -> Mat[n, d]:
    i, j = list(range(len(x))), []
    for k in range(len(x)): j.append(len(x) - k)
    return x[i] + x[np.array(j) - 1]


@typed
def bits(x: Vec[n], k: int) -> Vec['2*n']:
    assert k & (k - 1) == 0
    return np.zeros((len(x) << 2) >> 1) + (k & 3)


@typed
def cholesky(x: Mat[n, n]) -> Mat[n, n]:
    out = np.zeros_like(x)
    for i in range(len(x)):
        for j in range(i + 1):
            s = x[i, j] - out[i, :j] @ out[j, :j]
            out[i, j] = np.sqrt(s) if i == j else s/out[j, j]
    return out


@typed
def last_turn(x: Vec[n]) -> Vec[n]:
    y = np.zeros(len(x))
    for i in range(len(x)): y[i] = x[i] if i == len(x) - 1 else x[i + 1]
    return y


class Timer:
    def __enter__(self): return self
    def __exit__(self, *error): pass

@typed
def timed(x: Vec[n]) -> Vec[n]:
    with Timer() as _t, np.errstate(all='ignore'): return x/2


def halved(a, axis=-1): return a.tolist()[::2]

@rule(halved)
def _(a, axis=-1):
    if a.ndim == 1: return np.zeros((a.shape[-1] + 1)//2)
    rows = [np.arange(a.shape[-1]//2 + 1) for _ in range(len(a))]
    return np.stack(rows).astype(complex)

@typed
def with_a_rule(x: Vec[n]) -> Vec['(n + 1)//2']: return halved(x)

@typed
def with_a_rule_of_rows(x: Mat[n, d]) -> Mat[n, 'd//2 + 1']: return halved(x, axis=1)

@typed
def spectrum(x: Mat[n, m]) -> tuple[Mat[n, 'm//2 + 1'], Mat[n, m]]:
    s = np.fft.rfft(x, axis=1)*np.fft.rfftfreq(x.shape[1])
    return s, np.fft.irfft(s, n=x.shape[1])

@typed
def one_number(x: Mat[n, d]) -> float: return x.sum(keepdims=True).item() + x[0].item(0)


@typed
def einsum_gradient(x: Mat[B, D], dy: Grad[Mat[B, D]]) -> InOut[Mat[D, D]]: return np.einsum('bi,bj->ij', x, dy)

@typed
def einsum_turned(x: Mat[B, D], dy: Grad[Mat[B, D]]) -> InOut[Mat[D, D]]: return np.einsum('bi,bj->ij', dy, x).T

@typed
def einsum_gradient_of_time(x: Arr[B, T, D], dy: Grad[Arr[B, T, D]]) -> InOut[Mat[D, D]]: return np.einsum('bti,btj->ij', x, dy)

@typed
def einsum_forward(x: Mat[B, D], w: InOut[Mat[D, D]]) -> Mat[B, D]: return np.einsum('bi,ij->bj', x, w)

@typed
def einsum_back(dy: Grad[Mat[B, D]], w: InOut[Mat[D, D]]) -> Mat[B, D]: return np.einsum('bj,ij->bi', dy, w)

@typed
def einsum_two_layers(x: Mat[B, D], w: InOut[Mat[D, D]], v: InOut[Mat[D, D]]) -> Mat[B, D]: return np.einsum('bi,ij->bj', np.einsum('bi,ij->bj', x, w), v)

@typed
def tensordot_gradient(x: Mat[B, D], dy: Grad[Mat[B, D]]) -> InOut[Mat[D, D]]: return np.tensordot(x, dy, axes=(0, 0))

@typed
def einsum_of_samples(w: InOut[Mat[D, D]], x: Mat[B, D], dy: Grad[Mat[B, D]]) -> InOut[Mat[D, D]]: return w - np.einsum('bi,bj->bij', x, dy).sum(0)


@typed
def first_turn_begins(x: Mat[n, d]) -> Vec[d]:
    for i in range(len(x)):
        if i == 0: total = x[i]
        else: total = total + x[i]
    return total


@typed
def first_of_a_hundred_begins(x: Vec[d]) -> Vec[d]:
    for i in range(100):
        if i == 0: total = x
        if i > 5: total = total + x/i
    return total


@typed
def the_best_of_all(x: Vec[n]) -> float:
    best, most = 0, 0.0
    for i, value in enumerate(x):
        if value > most: best, most = i, value
    return x[best]


@typed
def table_with_borders(x: Mat[n, m]) -> Mat[n, m]:
    best = np.zeros_like(x)
    for i in range(len(x)):
        for j in range(x.shape[1]):
            if i == 0 and j == 0: best[i, j] = x[i, j]
            elif i == 0: best[i, j] = x[i, j] + best[i, j - 1]
            elif j == 0: best[i, j] = x[i, j] + best[i - 1, j]
            else: best[i, j] = x[i, j] + min(best[i - 1, j], best[i, j - 1])
    return best


@typed
def elements_alike(x: Mat[n, d], y: Vec[d]) -> tuple[Mat[n, d], Vec[n]]:
    return np.stack([row if row.sum() > 0 else y for row in x]), np.array([i if row.sum() > 0 else 0.5 for i, row in enumerate(x)])


@typed
def columns_meant(x: Mat[B, d], w: Vec[d], y: Vec[B], z: Mat[n, d]) -> tuple[Mat[B, B], Vec[B], Mat[B, n], Mat[B, 1]]:
    p = x @ w.reshape(-1, 1)
    return p[:, 0][:, None] - y, p[:, 0] - y, (x**2).sum(1, keepdims=True) + (z**2).sum(1) - 2*x @ z.T, p - y.reshape(-1, 1)


@typed
def scales(x: Vec[n], i: Int[Vec[n]]) -> Vec[n]:
    own = i.copy()
    own += 1
    return x*own


@typed
def index_that_a_callee_copies(x: Vec[n]) -> float:
    i = np.arange(len(x))
    return scales(x, i)[i].sum()


@typed
def not_both_small(x: Mat[n, m]) -> Mat[n, m]:
    if len(x) < 3 and x.shape[1] < 3: raise ValueError('small')
    return x


@typed(where='n >= 3')
def one_is_large(x: Mat[n, m]) -> Mat[n, m]: return not_both_small(x)


@typed
def negative_sum_raises(x: Vec[n]) -> Vec[n]:
    if len(x) > 5 and x.sum() < 0: raise ValueError('negative')
    return x


@typed
def it_depends_on_numbers(x: Vec[m]) -> Vec[m]: return negative_sum_raises(x)


@typed(keep='B T')
def keep_attention(x: Arr[B, T, C], w: Mat[C, C]) -> Arr[B, T, C]:
    scores = x @ x.swapaxes(1, 2)
    e = np.exp(scores - scores.max(-1, keepdims=True))
    mixed = np.einsum('bts,bsc->btc', e/e.sum(-1, keepdims=True), x @ w)
    return mixed[:, ::-1][:, ::-1] + np.tril(np.ones((x.shape[1], x.shape[1]))) @ x


@typed
def doubled(x: Mat[n, d]) -> Mat[n, d]: return 2*x


@typed(keep='B')
def keep_call(x: Mat[B, d], w: Mat[d, m]) -> Vec[B]: return (doubled(x) @ w).sum(1)


@typed
def places_of_some(x: Vec[n]) -> float:
    found = []
    for i in range(len(x)):
        if x[i] > 0: found.append(i)
    if not len(found): return 0.0
    return x[np.array(found)].sum()


@typed
def first_element_alike(x: Mat[n, d]) -> Mat[n, d]:
    out = []
    for i, row in enumerate(x): out.append(row if i else 0*row)
    return np.stack(out)


@typed
def flag_and_counter(x: Vec[n]) -> Vec[n]:
    done, turns = False, 0
    while not done and turns < 100:
        x, turns = x/2, turns + 1
        done = x.max() < 1
    return x


@typed
def known_turns_with_conditions(x: Vec[n]) -> Vec[n]:
    i = 0
    while i < 3:
        if x.sum() > 0: x = x/2
        i += 1
    return x
