"Six scripts as scientists write them, with annotations in the form that editors read: neither pyright nor mypy has a word to say."
from typing import Annotated, Any
import numpy as np
from bendml.shape import Arr, Dim, Int, L, Mat, Vec, typed

n = Dim("n")
m = Dim("m")
d = Dim("d")
k = Dim("k")
h = Dim("h")
T = Dim("T")
f = Dim("f")
m1 = Annotated[Any, "m + 1"]
size = Annotated[Any, "n"]
many = Annotated[Any, "many"]
steps1 = Annotated[Any, "nsteps + 1"]
frames = Annotated[Any, "1 + (n - width)//hop"]
wide = Annotated[Any, "width"]
wide_in = Annotated[Any, "d_in"]
wide_out = Annotated[Any, "d_out"]
freqs = Annotated[Any, "width//2 + 1"]


# Bayesian regression.

@typed
def design_matrix(x: Vec[n], centers: Vec[m], width: float) -> Mat[n, m1]:
    d = x[:, None] - centers[None, :]
    return np.hstack([np.ones((len(x), 1)), np.exp(-0.5 * (d / width) ** 2)])

@typed
def posterior(Phi: Mat[n, m], t: Vec[n], alpha: float, beta: float) -> tuple[Vec[m], Mat[m, m]]:
    M = Phi.shape[1]
    S_inv = alpha * np.eye(M) + beta * Phi.T @ Phi
    S = np.linalg.inv(S_inv)
    return beta * S @ Phi.T @ t, S

@typed
def predictive(Phi: Mat[k, m], mean: Vec[m], S: Mat[m, m], beta: float) -> tuple[Vec[k], Vec[k]]:
    return Phi @ mean, 1 / beta + np.sum(Phi @ S * Phi, axis=1)

@typed
def log_evidence(Phi: Mat[n, m], t: Vec[n], alpha: float, beta: float) -> float:
    N, M = Phi.shape
    mean, S = posterior(Phi, t, alpha, beta)
    resid = t - Phi @ mean
    E = 0.5 * beta * resid @ resid + 0.5 * alpha * mean @ mean
    return 0.5 * M * np.log(alpha) + 0.5 * N * np.log(beta) - E + 0.5 * np.linalg.slogdet(S)[1]


# The heat equation.

@typed
def neumann(u: Mat[n, m]) -> Mat[n, m]:
    u[0, :] = u[-1, :]
    u[:, 0] = u[:, -1]
    return u

@typed
def laplacian(u: Mat[n, m], dx: float, dy: float) -> Mat[n, m]:
    lap = np.zeros_like(u)
    lap[1:-1, 1:-1] = (u[2:, 1:-1] - 2 * u[1:-1, 1:-1] + u[:-2, 1:-1]) / dx ** 2 + (u[1:-1, 2:] - 2 * u[1:-1, 1:-1] + u[1:-1, :-2]) / dy ** 2
    return lap

@typed
def step(u: Mat[n, m], dt: float) -> Mat[n, m]:
    return neumann(u + 0.01 * dt * laplacian(u, 0.1, 0.1))

@typed
def matrices(n: int, r: float) -> tuple[Mat[size, size], Mat[size, size]]:
    lap = np.diag(-2 * np.ones(n))
    return np.eye(n) - 0.5 * r * lap, np.eye(n) + 0.5 * r * lap

@typed
def crank_nicolson(u0: Vec[n], nsteps: int, r: float) -> Mat[steps1, n]:
    n = len(u0)
    A, B = matrices(n, r)
    out = np.empty((nsteps + 1, n))
    out[0] = u0
    for i in range(nsteps): out[i + 1] = np.linalg.solve(A, B @ out[i])
    return out


# A Kalman filter.

@typed
def update(x: Vec[n], P: Mat[n, n], z: Vec[m], H: Mat[m, n], R: Mat[m, m]) -> tuple[Vec[n], Mat[n, n]]:
    y = z - H @ x
    S = H @ P @ H.T + R
    K = P @ H.T @ np.linalg.inv(S)
    x = x + K @ y
    P = (np.eye(len(x)) - K @ H) @ P
    return x, P

@typed
def kalman(zs: Mat[T, m], x0: Vec[n], P0: Mat[n, n], F: Mat[n, n], H: Mat[m, n], R: Mat[m, m]) -> tuple[Mat[T, n], Arr[T, n, n]]:
    T, n = zs.shape[0], x0.shape[0]
    xs, Ps = np.zeros((T, n)), np.zeros((T, n, n))
    x, P = x0, P0
    for t in range(T):
        x, P = update(F @ x, F @ P @ F.T, zs[t], H, R)
        xs[t] = x
        Ps[t] = P
    return xs, Ps

@typed
def rmse(a: Mat[n, m], b: Mat[n, m]) -> Vec[m]:
    return np.sqrt(np.mean((a - b) ** 2, axis=0))


# K-means.

@typed
def pairwise(X: Mat[n, d], C: Mat[k, d]) -> Mat[n, k]:
    return ((X[:, None, :] - C[None, :, :]) ** 2).sum(axis=-1)

@typed
def assign(X: Mat[n, d], C: Mat[k, d]) -> Int[Vec[n]]:
    return np.argmin(pairwise(X, C), axis=1)

@typed
def centers(X: Mat[n, d], labels: Int[Vec[n]], C: Mat[k, d]) -> Mat[k, d]:
    new = C.copy()
    for j in range(C.shape[0]):
        mask = labels == j
        if mask.any(): new[j] = X[mask].mean(axis=0)
    return new


# A small network.

@typed
def softmax(z: Mat[n, k]) -> Mat[n, k]:
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)

@typed
def forward(X: Mat[n, d], W1: Mat[d, h], b1: Vec[h], W2: Mat[h, k], b2: Vec[k]) -> tuple[Mat[n, h], Mat[n, k]]:
    hidden = np.maximum(X @ W1 + b1, 0)
    return hidden, softmax(hidden @ W2 + b2)

@typed
def gradients(X: Mat[n, d], y: Int[Vec[n]], W1: Mat[d, h], b1: Vec[h], W2: Mat[h, k], b2: Vec[k], reg: float = 1e-3) -> tuple[float, Mat[d, h], Vec[h], Mat[h, k], Vec[k]]:
    n = X.shape[0]
    hidden, p = forward(X, W1, b1, W2, b2)
    loss = -np.log(p[np.arange(n), y] + 1e-12).mean()
    loss += 0.5 * reg * (np.sum(W1 * W1) + np.sum(W2 * W2))
    dz = (p - np.eye(p.shape[1])[y]) / n
    dh = dz @ W2.T
    dh[hidden <= 0] = 0
    return loss, X.T @ dh + reg * W1, dh.sum(axis=0), hidden.T @ dz + reg * W2, dz.sum(axis=0)

@typed
def loss_and_gradient(x: Mat[n, d], y: Vec[n], w: Mat[d, L[1]]) -> tuple[float, Mat[d, L[1]]]:
    error = x @ w - y[:, None]
    return (error**2).mean(), 2*x.T @ error/len(x)


# Spectra.

@typed(where="width <= n")
def frame(x: Vec[n], width: int, hop: int) -> Mat[frames, wide]:
    rows = 1 + (len(x) - width) // hop
    i = np.arange(width)[None, :] + hop * np.arange(rows)[:, None]
    return x[np.clip(i, 0, len(x) - 1)]

@typed(where="width <= n")
def stft(x: Vec[n], width: int, hop: int) -> Mat[frames, freqs]:
    w = np.hanning(width)
    return np.fft.rfft(frame(x, width, hop) * w, axis=1)

@typed
def normalise(spec: Mat[f, T]) -> Mat[f, T]:
    return (spec - spec.mean(axis=1, keepdims=True)) / (spec.std(axis=1, keepdims=True) + 1e-9)

@typed
def smooth(psd: Vec[n], width: float = 5) -> Vec[n]:
    return psd * width / 2.0 - abs(psd) ** 2 % 3


# A class.

class Linear:
    w: Mat[wide_in, wide_out]
    def __init__(self, w: np.ndarray): self.w = w
    @typed
    def __call__(self, x: Mat[n, wide_in]) -> Mat[n, wide_out]: return x @ self.w


def main():
    print(Linear(np.ones((2, 3)))(np.ones((4, 2))).shape)
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0, 1, 60))
    Phi = design_matrix(x, np.linspace(0, 1, 9), 0.1)
    mean, S = posterior(Phi, np.sin(x), 1.0, 25.0)
    print(predictive(Phi, mean, S, 25.0), log_evidence(Phi, np.sin(x), 1.0, 25.0))
    u = step(np.ones((4, 5)), 0.1)
    print(u.shape, crank_nicolson(u[:, 2], 50, 0.4).max())
    zs = rng.normal(size=(50, 2))
    xs, Ps = kalman(zs, np.zeros(2), np.eye(2), np.eye(2), np.eye(2), np.eye(2))
    print(rmse(xs[:, :2], zs), Ps.shape)
    C = zs[:3]
    for _ in range(3): C = centers(zs, assign(zs, C), C)
    w = np.zeros((2, 1))
    for _ in range(3): w = w - 0.1 * loss_and_gradient(zs, zs[:, 0], w)[1]
    print(gradients(zs, assign(zs, C), np.ones((2, 3)), np.zeros(3), np.ones((3, 3)), np.zeros(3))[0])
    print(normalise(np.abs(stft(x, 16, 8)).T).shape, smooth(x)[:2])


if __name__ == "__main__": main()
