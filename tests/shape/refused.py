"Constructs that the check refuses; the docstring is the reason it gives."
import math, random
import numpy as np
from numpy import zeros as zz
from bendml.shape import Arr, Bool, Dim, Grad, InOut, Int, L, Mat, OutIn, Vec, dims, typed

B, T, C, H, D, V, N, P, n, m, d, p = dims('B T C H D V N P n m d p')


@typed
def float_steers(x: Vec[n], y: Vec[m]) -> Vec[n]:
    "the result has size m on axis 0, not n"
    if float(x.sum()) > 0: return x
    return y


@typed
def math_sqrt_steers(x: Vec[n], y: Vec[m]) -> Vec[n]:
    "the result has size m on axis 0, not n"
    s = math.sqrt(len(x))
    if s > 3: return y
    return x


@typed
def counter(x: Mat[n, d]) -> Vec[1]:
    "c changes its value in each turn of the loop"
    c = 0
    for r in x: c += 1
    return np.zeros(c)


@typed
def dict_counter(x: Mat[n, d]) -> Vec[2]:
    "s changes its value in each turn of the loop"
    s = {'n': 0}
    for r in x: s['n'] += 1
    return np.zeros(s['n'])


@typed
def zero_turns(x: Mat[n, d]) -> Vec[d]:
    "UnboundLocalError: cannot access local variable 'r' where it is not associated with a value"
    for i in range(len(x) - 1):
        r = x[i]
    return r


@typed
def zero_turns_shape(x: Mat[n, d]) -> Vec[d]:
    "the result has size 3 on axis 0, not d"
    r = np.zeros(3)
    for i in range(len(x) - 1):
        r = x[i]
    return r


@typed
def acc_concat(x: Mat[n, d]) -> Mat[n, d]:
    "acc changes its shape in each turn of the loop"
    acc = np.zeros((0, x.shape[1]))
    for r in x: acc = np.concatenate([acc, r[None]])
    return acc


@typed
def listcomp_len(x: Mat[n, d]) -> Vec[1]:
    "the result has size n on axis 0, not 1"
    return np.zeros(len([r for r in x]))


@typed
def listcomp_if(x: Mat[n, d]) -> Mat[n, d]:
    "a list comprehension over an unknown number of elements"
    return np.stack([r for r in x if r.sum() > 0])


@typed
def break_then_stack(x: Mat[n, d]) -> Mat[n, d]:
    "need at least one array to stack"
    out = []
    for r in x:
        if r.sum() > 0: break
        out.append(r)
    return np.stack(out)


@typed
def conditional_append(x: Mat[n, d]) -> Mat[n, d]:
    "a list gets different elements in each turn"
    out = []
    for r in x:
        if r.sum() > 0: out.append(r)
    return np.stack(out)


@typed
def zero_turn_stack(x: Mat[n, d]) -> Mat['n-1', d]:
    "need at least one array to stack"
    out = []
    for i in range(len(x) - 1):
        out.append(x[i])
    return np.stack(out)


@typed
def varying_rows(x: Vec[n]) -> Mat[n, n]:
    "the elements have different sizes"
    return np.stack([x[:i+1] for i in range(len(x))])


@typed
def zip_lengths(x: Mat[n, d], y: Vec[m]) -> Mat[n, d]:
    "zip() of different lengths"
    out = np.empty(x.shape)
    for i, (r, t) in enumerate(zip(x, y)):
        out[i] = r * t
    return out


@typed
def index_range(x: Mat[n, d]) -> Vec[d]:
    "of an axis of size n"
    s = x[0]
    for i in range(len(x)): s = s + x[i + 1]
    return s


@typed
def while_shrink(x: Vec[n]) -> Vec[n]:
    "max: n - 1 can be 0, and then there is nothing to choose from"
    while np.abs(x).max() > 1: x = x[:-1]
    return x


@typed
def while_counter(x: Vec[n]) -> Vec[2]:
    "k changes its value in each turn of the loop"
    k = 0
    while np.abs(x).max() > 1:
        x = x / 2; k += 1
    return np.zeros(k)


@typed
def data_branch_shapes(x: Vec[n], y: Vec[m]) -> Vec[n]:
    "the result has size m on axis 0, not n"
    if x.sum() > 0: z = x
    else: z = y
    return z


@typed
def try_swallow(x: Vec[n], y: Vec[m]) -> Vec[n]:
    "add: axis -1 has size n on the left and m on the right"
    try: return x + y
    except Exception: return x


@typed
def except_typeerror(x: Vec[n], y: Vec[m]) -> Vec[n]:
    "add: axis -1 has size n on the left and m on the right"
    try:
        z = x + y
    except TypeError: pass
    return x


@typed
def try_two_steps(x: Mat[n, n], y: Vec[n]) -> Mat[n, n]:
    "try/except"
    z = x
    try:
        z = y
        z = np.linalg.inv(x)
    except np.linalg.LinAlgError: pass
    return z


@typed
def handler_of_another_shape(x: Mat[n, n], y: Vec[n]) -> Mat[n, n]:
    "the result has 1 axes, not 2"
    try: z = np.linalg.inv(x)
    except np.linalg.LinAlgError as e: z = y
    return z


@typed
def from_numpy_import_zeros_wrong(x: Vec[n]) -> Vec[n]:
    "add: axis -1 has size n on the left and n + 1 on the right"
    return x + zz(len(x) + 1)


@typed
def np_random_steers(x: Vec[n], y: Vec[m]) -> Vec[n]:
    "the result has size m on axis 0, not n"
    if np.random.rand() > 2: return y
    return x


@typed
def mask_different(x: Vec[n], y: Vec[n]) -> float:
    "multiply: axis -1 has size k"
    return (x[x > 0] * y[y > 0]).sum()


@typed
def mask_changed_between(x: Vec[n], y: Vec[n]) -> float:
    "multiply: axis -1 has size k"
    m = x > 0
    a = x[m]
    m[0] = True
    return (a * y[m]).sum()


@typed
def mask_changed_in_place_op(x: Vec[n], y: Vec[n]) -> float:
    "multiply: axis -1 has size k"
    m = x > 0
    a = x[m]
    m |= y > 0
    return (a * y[m]).sum()


@typed
def mask_changed_through_view(x: Vec[n], y: Vec[n]) -> float:
    "multiply: axis -1 has size k"
    m = x > 0
    v = m[:]
    a = x[m]
    v[0] = True
    return (a * y[m]).sum()


@typed
def mask_max(x: Vec[n]) -> float:
    "can be 0, and then there is nothing to choose from"
    return x[x > 0].max()


@typed
def bool_vec(x: Vec[n]) -> Vec[n]:
    "the truth value of an array with n entries"
    if x > 0: return x
    return -x


@typed
def no_rule(x: Vec[n]) -> Vec[n]:
    "numpy.apply_along_axis has no shape rule"
    return np.apply_along_axis(np.sort, 0, x)


@typed
def dtype_index(x: Vec[n], i: Vec[m]) -> Vec[m]:
    "getitem: an index array of dtype float64"
    return x[i]


@typed
def unpack(x: Mat[n, d]) -> Vec[n]:
    "not enough values to unpack"
    a, b, c = x.shape
    return x[:, 0]


@typed
def no_guard(x: Vec[n]) -> Vec['n-2']:
    "the result has size 0 on axis 0, not n - 2"
    return x[1:-1]


@typed
def set_size_key(x: Mat[n, d]) -> Vec[n]:
    "the size n is used as a key of a dictionary or set"
    return np.zeros(max({len(x), 3}))


@typed
def int_of_float(x: Vec[n]) -> Vec[n]:
    "can be negative"
    return np.zeros(int(x.sum()))


@typed
def unused(x: Vec[n], y: Vec[n]) -> Vec[n]:
    "y is never used"
    return x + x


@typed
def id_state_default(x: Mat[n, d], acc=[]) -> Vec['1']:
    "acc changes its value in each turn of the loop"
    for r in x: acc.append(1)
    return np.zeros(len(acc))


@typed
def inout_square(x: Mat[B, C], w: OutIn[Mat[C, C]]) -> Mat[B, C]:
    "matmul: an activation meets the out axis of a weight"
    return x @ w


@typed
def grad_transposed(x: Mat[B, C], w: InOut[Mat[C, C]], dy: Grad[Mat[B, C]]) -> tuple[Mat[B, C], InOut[Mat[C, C]]]:
    "the result, part 1 is stored the other way round"
    return dy @ w.T, dy.T @ x


@typed
def grad_w(x: Mat[B, C], w: InOut[Mat[C, C]], dy: Grad[Mat[B, C]]) -> tuple[Mat[B, C], InOut[Mat[C, C]]]:
    "matmul: a gradient meets the in axis of a weight; on the way back it meets the out axis"
    return dy @ w, x.T @ dy


@typed(where=["0 <= p <= N"])
def prealloc_bad(K: Mat["N", d], k: Vec[d], p: int) -> Mat["p+1", d]:
    "setitem: index p of an axis of size N"
    K[p] = k
    return K[:p + 1]
