# What pyright and mypy must say about this file: an error on each line that ends in "# error", and on no other.
from typing import Annotated, Any
import numpy as np
from bendml.shape import Arr, Dim, Grad, InOut, Int, L, Mat, Vec, as_mat, typed

B = Dim("B")
T = Dim("T")
C = Dim("C")
H = Dim("H")
D4 = Annotated[Any, "4*C"]


def matmul(a: Mat[L[2], L[3]], b: Mat[L[3], L[4]]) -> Mat[L[2], L[4]]:
    return a @ b

def bad_matmul(a: Mat[L[2], L[3]], b: Mat[L[4], L[5]]) -> None:
    a @ b  # error

def bad_result(a: Mat[L[2], L[3]], b: Mat[L[3], L[4]]) -> Mat[L[2], L[5]]:
    c = a @ b
    return c  # error

def transposed(a: Mat[L[2], L[3]], b: Mat[L[4], L[3]]) -> Mat[L[2], L[4]]:
    return a @ b.T

@typed
def layer(x: Mat[B, L[784]], w: Mat[L[784], L[128]], b: Vec[L[128]]) -> Mat[B, L[128]]:
    return x @ w + b

@typed
def head(h: Mat[B, L[64]], w: Mat[L[64], L[10]]) -> Mat[B, L[10]]:
    return h @ w

def network(x: Mat[B, L[784]], w1: Mat[L[784], L[128]], b1: Vec[L[128]], w2: Mat[L[64], L[10]]) -> None:
    h = layer(x, w1, b1)
    head(h, w2)  # error

def wrong_bias(x: Mat[B, L[784]], w: Mat[L[784], L[128]], b: Vec[L[64]]) -> None:
    x @ w + b  # error

def wrong_layer(x: Mat[B, L[10]], w: Mat[L[784], L[128]], b: Vec[L[128]]) -> None:
    layer(x, w, b)  # error

@typed
def grad(x: Mat[B, L[784]], dy: Mat[B, L[128]]) -> Mat[L[784], L[128]]:
    return x.T @ dy

def bad_grad(x: Mat[B, L[784]], dy: Mat[B, L[128]]) -> Mat[L[784], L[128]]:
    dw = dy.T @ x
    return dw  # error

def step(w: Mat[L[784], L[128]], dw: Mat[L[784], L[128]], lr: float) -> Mat[L[784], L[128]]:
    return w - lr * dw

def bad_step(w: Mat[L[784], L[128]], dw: Mat[L[128], L[784]], lr: float) -> None:
    w - lr * dw  # error

def named(x: Mat[B, C], w: Mat[C, H]) -> Mat[B, H]:
    return x @ w

def bad_named(x: Mat[B, C], w: Mat[H, C]) -> None:
    x @ w  # error

def batched(x: Arr[B, T, C], w: Mat[C, H], b: Vec[H]) -> Arr[B, T, H]:
    return x @ w + b

def bad_batched(x: Arr[B, T, C], w: Mat[H, C]) -> None:
    x @ w  # error

def ffn(x: Mat[B, C], w: InOut[Mat[C, D4]], v: InOut[Mat[D4, C]]) -> Mat[B, C]:
    return np.maximum(x @ w, 0) @ v

def use_ffn(x: Mat[L[2], L[8]], w: Mat[L[8], L[32]], v: Mat[L[32], L[8]]) -> Mat[L[2], L[8]]:
    return ffn(x, w, v)

def lookup(table: Mat[H, C], ids: Int[Vec[B]]) -> Mat[B, C]:
    return table[ids]

def plain(a: np.ndarray, w: Mat[L[784], L[128]]) -> Mat[Any, L[128]]:
    return as_mat(a) @ w

def gradient(dy: Grad[Mat[B, H]], w: InOut[Mat[C, H]]) -> Mat[B, C]:
    return dy @ w.T

def scaled(x: Mat[B, C]) -> Mat[B, C]:
    return (2 * x - 1) / 3 + x ** 2 - x.mean(0)

def with_arrays(x: Mat[B, C], y: Vec[B], a: np.ndarray) -> Mat[B, C]:
    z = np.maximum(a @ x.T, 0) + np.zeros((3, 4)) * a - (a - y)[:, None]
    x[0] = z[:len(y)].mean()
    x += np.eye(len(x)) @ np.stack([x[i] for i in range(x.shape[0])])
    n, d = x.shape
    return np.linalg.inv(x.T @ x + 1e-3 * np.eye(d)) if n > 2 * d else x / float(abs(x).max())

def columns(x: Mat[B, C], c: Mat[B, L[1]], r: Mat[L[1], C], q: Arr[B, T, C], s: Arr[B, T, L[1]]) -> tuple[Mat[B, C], Arr[B, T, C]]:
    return c * x - r * (x > 0) % 2, q / s + q @ q.swapaxes(1, 2) @ q

def called_with_arrays(a: np.ndarray) -> Any:
    w = np.zeros((784, 128))
    for _ in range(3): w = w - 0.1 * grad(a, layer(a, w, np.zeros(128)))
    return w
