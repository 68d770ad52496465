"Six programs in plain NumPy, for the mutation trial: each with its sizes at two settings."
import numpy as np
from bendml.shape import Arr, Dim, Grad, InOut, Int, Mat, OutIn, Vec, dims, typed

B, T, C, H, D, N, V, n, d, k, p = dims('B T C H D N V n d k p')


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e/e.sum(axis=-1, keepdims=True)


def layer_norm(x, g, b):
    mean = x.mean(axis=-1, keepdims=True)
    var = x.var(axis=-1, keepdims=True)
    return g*(x - mean)/np.sqrt(var + 1e-5) + b


@typed(where='y < C')
def mlp_step(x: Mat[B, D], y: Int[Vec[B]], w1: InOut[Mat[D, H]], b1: Vec[H], w2: InOut[Mat[H, C]], b2: Vec[C], lr: float
             ) -> tuple[float, InOut[Mat[D, H]], Vec[H], InOut[Mat[H, C]], Vec[C]]:
    h = np.maximum(x @ w1 + b1, 0)
    z = h @ w2 + b2
    e = np.exp(z - z.max(axis=1, keepdims=True))
    q = e/e.sum(axis=1, keepdims=True)
    rows = np.arange(x.shape[0])
    loss = -np.log(q[rows, y]).mean()
    dz = q.copy()
    dz[rows, y] -= 1
    dz /= x.shape[0]
    dw2 = h.T @ dz
    db2 = dz.sum(axis=0)
    dh = (dz @ w2.T)*(h > 0)
    dw1 = x.T @ dh
    db1 = dh.sum(axis=0)
    return loss, w1 - lr*dw1, b1 - lr*db1, w2 - lr*dw2, b2 - lr*db2


@typed(where='C % H == 0', keep='B T')
def block(x: Arr[B, T, C], g1: Vec[C], b1: Vec[C], wq: InOut[Mat[C, C]], wk: InOut[Mat[C, C]], wv: InOut[Mat[C, C]], wo: InOut[Mat[C, C]],
          g2: Vec[C], b2: Vec[C], wf: InOut[Mat[C, '4*C']], bf: Vec['4*C'], wp: InOut[Mat['4*C', C]], bp: Vec[C], H: int) -> Arr[B, T, C]:
    b, t, c = x.shape
    a = layer_norm(x, g1, b1)
    q = (a @ wq).reshape(b, t, H, c//H).transpose(0, 2, 1, 3)
    key = (a @ wk).reshape(b, t, H, c//H).transpose(0, 2, 1, 3)
    v = (a @ wv).reshape(b, t, H, c//H).transpose(0, 2, 1, 3)
    scores = q @ key.swapaxes(-1, -2)/np.sqrt(c//H)
    scores = np.where(np.tri(t) > 0, scores, -1e10)
    o = (softmax(scores) @ v).transpose(0, 2, 1, 3).reshape(b, t, c)
    x = x + o @ wo
    f = layer_norm(x, g2, b2) @ wf + bf
    f = 0.5*f*(1 + np.tanh(np.sqrt(2/np.pi)*(f + 0.044715*f**3)))
    return x + f @ wp + bp


@typed(where='n >= 0')
def decode(x: Vec['H*D'], wq: InOut[Mat['H*D', 'H*D']], wk: InOut[Mat['H*D', 'H*D']], wv: InOut[Mat['H*D', 'H*D']], wo: InOut[Mat['H*D', 'H*D']],
           keys: Arr[H, n, D], values: Arr[H, n, D]) -> tuple[Vec['H*D'], Arr[H, 'n + 1', D], Arr[H, 'n + 1', D]]:
    h, _, d = keys.shape
    q = (x @ wq).reshape(h, d)
    keys = np.concatenate([keys, (x @ wk).reshape(h, 1, d)], axis=1)
    values = np.concatenate([values, (x @ wv).reshape(h, 1, d)], axis=1)
    scores = np.einsum('hd,hnd->hn', q, keys)/np.sqrt(d)
    weights = softmax(scores)
    o = (weights[:, None, :] @ values)[:, 0, :]
    return x + o.reshape(h*d) @ wo, keys, values


@typed
def rnn(xs: Arr[T, B, D], w: InOut[Mat[D, H]], u: InOut[Mat[H, H]], bias: Vec[H], head: InOut[Mat[H, V]]) -> Arr[T, B, V]:
    state = np.zeros((xs.shape[1], u.shape[0]))
    out = []
    for x in xs:
        state = np.tanh(x @ w + state @ u + bias)
        out.append(state @ head)
    return np.stack(out)


@typed
def kmeans(x: Mat[n, d], centres: Mat[k, d]) -> tuple[Mat[k, d], float]:
    distance = (x**2).sum(axis=1)[:, None] - 2*x @ centres.T + (centres**2).sum(axis=1)[None, :]
    nearest = distance.argmin(axis=1)
    member = (nearest[:, None] == np.arange(centres.shape[0])[None, :])*1.0
    count = member.sum(axis=0)
    total = member.T @ x
    new = np.where(count[:, None] > 0, total/np.maximum(count, 1)[:, None], centres)
    return new, distance.min(axis=1).mean()


@typed(where=['T >= 3', 'N >= 2'], keep='B')
def conv_net(x: Arr[B, T, C], w: Arr[3, C, H], bias: Vec[H], head: InOut[Mat[H, V]], table: Mat[N, V]) -> Mat[B, N]:
    b, t, c = x.shape
    windows = np.stack([x[:, i:t - 2 + i, :] for i in range(3)], axis=2)
    y = windows.reshape(b, t - 2, 3*c) @ w.reshape(3*c, -1) + bias
    y = np.maximum(y, 0)
    pooled = y.max(axis=1)
    z = pooled @ head
    z = z/np.sqrt((z**2).sum(axis=-1, keepdims=True) + 1e-6)
    return z @ table.T


def _floats(rng, *shapes): return [rng.normal(size=s) for s in shapes]

ARGUMENTS = {  # program -> a function of (rng, setting) that makes its arguments
    'mlp_step': lambda rng, s: [*_floats(rng, (s.B, s.D)), rng.integers(0, s.C, s.B), *_floats(rng, (s.D, s.H), s.H, (s.H, s.C), s.C), 0.1],
    'block': lambda rng, s: [*_floats(rng, (s.B, s.T, s.H*s.D), s.H*s.D, s.H*s.D, *((s.H*s.D, s.H*s.D),)*4, s.H*s.D, s.H*s.D,
                                      (s.H*s.D, 4*s.H*s.D), 4*s.H*s.D, (4*s.H*s.D, s.H*s.D), s.H*s.D), s.H],
    'decode': lambda rng, s: _floats(rng, s.H*s.D, *((s.H*s.D, s.H*s.D),)*4, (s.H, s.n, s.D), (s.H, s.n, s.D)),
    'rnn': lambda rng, s: _floats(rng, (s.T, s.B, s.D), (s.D, s.H), (s.H, s.H), s.H, (s.H, s.V)),
    'kmeans': lambda rng, s: _floats(rng, (s.n, s.d), (s.k, s.d)),
    'conv_net': lambda rng, s: _floats(rng, (s.B, s.T, s.C), (3, s.C, s.H), s.H, (s.H, s.V), (s.N, s.V)),
}
SETTINGS = [dict(B=2, T=5, C=4, H=3, D=2, N=7, V=6, n=8, d=3, k=4), dict(B=5, T=4, C=3, H=2, D=3, N=5, V=4, n=6, d=5, k=3)]
