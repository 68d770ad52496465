"Constructs that the check refuses; the docstring is the reason it gives."
import collections, itertools, math, random
import numpy as np
from numpy import zeros as zz
from bendml.shape import Arr, Bool, Dim, Grad, InOut, Int, L, Mat, OutIn, Vec, dims, refuse, rule, typed

B, T, C, H, D, V, N, P, n, m, d, p, k, h, w, s = dims('B T C H D V N P n m d p k h w s')


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
    "the result has size c + 1 on axis 0, not 1"
    c = 0
    for _r in x: c += 1
    return np.zeros(c)


@typed
def counter_as_size(x: Mat[n, d]) -> Vec[d]:
    "the result has size it + 1 on axis 0, not d"
    it = 0
    while x.sum() > 1: x = x/2; it += 1
    return np.zeros(it)


@typed
def counter_as_index(x: Mat[n, d]) -> Vec[n]:
    "index i of an axis of size n"
    out, i = np.zeros(len(x)), 0
    for r in x:
        out[i] = r.sum()
        i += 1
    return out


@typed
def counter_as_slice(x: Mat[n, d]) -> Mat[n, d]:
    "the result has size it + 1 on axis 0, not n"
    it = 0
    while x.sum() > 1 and it + 1 < len(x): x = x/2; it += 1
    return x[:it] if it else x


@typed
def counter_steers(x: Mat[n, d]) -> Mat[n, d]:
    "the result has size d on axis 0, not n"
    it = 0
    for _r in x:
        it += 1
        if it == 3: return x.T
    return x


@typed
def counter_set_back(x: Mat[n, d]) -> Mat[n, d]:
    "the result has size d on axis 0, not n"
    it, y = 0, x
    for _r in x:
        it += 1
        if it % 7 == 6: it = -10
        if it == -9: y = x.T
    return y


@typed
def counter_down(x: Mat[n, d]) -> Mat[n, d]:
    "the result has size 1 on axis 0, not n"
    left, y = len(x), x
    for _r in x:
        left -= 1
        if left < 0: y = np.zeros((1, 1))
    return y


@typed
def first_turn_remembered(x: Mat[n, m]) -> Mat[n, m]:
    "the result has size 7 on axis 0, not n"
    seen, h = 0, x
    for i in range(len(x)):
        if i == 0: seen = 1
        if i == 2 and seen == 1: h = np.zeros((7, 7))
    return h


@typed
def last_turn_raises(x: Mat[n, m]) -> Vec[n]:
    "the result has size 2 on axis 0, not n"
    h, done = np.zeros(len(x)), 0
    for i in range(len(x)):
        if done: raise ValueError
        if i == len(x) - 1 and i > 0: done, h = 1, np.zeros(2)
    return h


@typed
def last_turn_returns(x: Mat[n, m]) -> Vec[n]:
    "the result has size 2 on axis 0, not n"
    h, done = np.zeros(len(x)), 0
    for r in x:
        if done: return np.zeros(len(x))
        if len(x) > 1 and r.sum() > 0: done, h = 1, np.zeros(2)
    return h


@typed
def forever_then(x: Mat[n, m]) -> Mat[n, m]:
    "the result has size m on axis 0, not n"
    it = 0
    while True:
        it += 1
        if x.sum() > it: return x.T
        x = x*2


@typed
def from_any_turn(x: Mat[n, d]) -> Mat[2, d]:
    "the result does not fit where it is written"
    y, z = x[:1], np.zeros((2, x.shape[1]))
    for i in range(len(x)):
        if x[i].sum() > 0: y = x[:len(x) - i]
    z[:len(y)] = y
    return z


@typed
def mixed_appends(x: Mat[n, d]) -> float:
    "a list gets different elements in each turn"
    out, started = [np.zeros(2)], 0
    for r in x:
        if started:
            if r.sum() > 0: out.append(np.zeros(2))
            elif r.max() > 0: out.append(np.zeros(3))
        started = 1
    return np.array(out).sum()


@typed
def mixed_comprehension(x: Mat[n, d]) -> float:
    "the elements of this list differ"
    return np.stack([np.zeros(2) if r.sum() > 0 else np.zeros(3) for r in x]).sum()


@typed
def some_rows_count(x: Mat[n, d]) -> Mat[n, d]:
    "the result has size c on axis 0, not n"
    out = [x[i] for i in range(len(x)) if i % 3 != 2]
    return np.stack(out) if out else x


def growing(x):
    i = 0
    for r in x:
        i += 1
        yield x[:i]

@typed
def generator_sizes(x: Mat[n, d]) -> Vec[d]:
    "the result has size"
    y = np.zeros(x.shape[1])
    for b in growing(x): y = b.sum(1)
    return y


def rows_of(x):
    for r in x: yield r

@typed
def generator_counts(x: Mat[n, d]) -> Vec[d]:
    "the result has size y + 1 on axis 0, not d"
    y = 0
    for _b in rows_of(x): y += 1
    return np.zeros(y)


@typed
def generator_listed(x: Mat[n, d]) -> Mat[n, d]:
    "rows_of is a generator, and only a for loop takes what it yields"
    return np.stack(list(rows_of(x)))


@typed
def generator_shrinks(x: Mat[n, d]) -> Vec[d]:
    "axis -1 has size d on the left and k on the right"
    y = np.zeros(x.shape[1])
    for b in rows_of(x): y = y + b[b > 0]
    return y


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
    "the result has size c on axis 0, not n"
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
def stack_then_break(x: Mat[n, d]) -> Mat[n, d]:
    "a list is read while a loop fills it, or after a loop that may end early"
    out = []
    for r in x:
        out.append(r)
        if r.sum() > 0: break
    return np.stack(out)


@typed
def conditional_append(x: Mat[n, d]) -> Mat[n, d]:
    "the result has size c on axis 0, not n"
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
    "x changes its shape in each turn of the loop"
    while np.abs(x).sum() > 1: x = x[:-1]
    return x


@typed
def while_shrink_to_nothing(x: Vec[n]) -> Vec[n]:
    "max: n - 1 can be 0, and then there is nothing to choose from"
    while np.abs(x).max() > 1: x = x[:-1]
    return x


@typed
def while_list(x: Vec[n]) -> Mat[2, n]:
    "the result has size turns on axis 0, not 2"
    out = []
    while np.abs(x).max() > 1:
        x = x/2
        out.append(x)
    return np.stack(out)


@typed
def list_read_while_filled(x: Mat[n, d]) -> float:
    "a list is read while a loop fills it, or after a loop that may end early"
    out, s = [], 0.0
    for r in x:
        out.append(r)
        s += np.stack(out).sum()
    return s


@typed
def while_counter(x: Vec[n]) -> Vec[2]:
    "the result has size k + 1 on axis 0, not 2"
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
def finally_swallows(x: Vec[n], y: Vec[m]) -> Vec[n]:
    "add: axis -1 has size n on the left and m on the right"
    try: return x + y
    finally: return x


@typed
def finally_raises(x: Vec[n], y: Vec[m]) -> Vec[n]:
    "add: axis -1 has size n on the left and m on the right"
    try: return x + y
    finally: raise ValueError


@typed
def finally_fails_too(x: Vec[n], y: Vec[m]) -> Vec[n]:
    "add: axis -1 has size n on the left and m on the right"
    try: return x + y
    finally: return x @ np.zeros((len(y), 2))


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
    "the result has 1 axis, not 2"
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
    "numpy.require has no shape rule"
    return np.require(x, float)


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
def only_in_the_result(x: Vec[n]) -> Vec[m]:
    "the result names m, which no parameter has"
    return x


@typed(where='m <= 3')
def only_in_a_condition(x: Vec[n]) -> Vec[n]:
    "names m, which no parameter has"
    return x


@typed
def result_of_floats(x: Vec[n]) -> Int[Vec[n]]:
    "the result holds float64"
    return x


@typed
def merged_for_the_result(x: Arr[T, H, D]) -> Mat[T, 'D*H']:
    "the result was merged in another order"
    return x.reshape(len(x), -1)


@typed
def merged_for_a_weight(x: Arr[T, H, D], w: Mat['D*H', C]) -> Mat[T, C]:
    "matmul: an axis was merged in another order than the weight expects"
    return x.reshape(len(x), -1) @ w


@typed
def sum_of_two_orders(x: Arr[T, H, D], y: Arr[T, D, H]) -> Mat[T, H*D]:
    "add: axis -1 holds H*D on the left and D*H on the right: the same size in another order"
    t, h, d = x.shape
    return x.reshape(t, h*d) + y.reshape(t, d*h)


@typed
def split_in_another_order(x: Mat[T, 'H*D'], w: Mat[D, H]) -> Arr[T, D, H]:
    "reshape: an axis that holds H*D is split as D*H"
    return x.reshape(len(x), *w.shape) + w


@typed
def order_left_of_a_sum(x: Arr[T, H, D], z: Mat[T, H*D]) -> Arr[T, D, H]:
    "reshape: an axis that holds H*D is split as D*H"
    t, h, d = x.shape
    return (x.reshape(t, h*d) + z).reshape(t, d, h)


@typed
def order_right_of_a_sum(x: Arr[T, H, D], z: Mat[T, H*D]) -> Arr[T, D, H]:
    "reshape: an axis that holds H*D is split as D*H"
    t, h, d = x.shape
    return (z + x.reshape(t, h*d)).reshape(t, d, h)


@typed
def layout_left_of_a_product(x: Mat[B, C], w: OutIn[Mat[C, C]], m: Mat[C, C]) -> Mat[B, C]:
    "matmul: an activation meets the out axis of a weight"
    return x @ (w*m)


@typed
def layout_right_of_a_product(x: Mat[B, C], w: OutIn[Mat[C, C]], m: Mat[C, C]) -> Mat[B, C]:
    "matmul: an activation meets the out axis of a weight"
    return x @ (m*w)


@typed
def column_and_row(x: Mat[n, 1], y: Mat[1, n]) -> Mat[n, n]:
    "which makes every combination: an array of shape (n, n)"
    return x - y


@typed
def rows_less_their_sums(x: Mat[n, n]) -> Mat[n, n]:
    "subtract: its axis -1 is axis -2 of the other operand, where it is paired with axis -1"
    return x - x.sum(1)


@typed
def out_of_another_dtype(x: Vec[n], i: Int[Vec[n]]) -> Int[Vec[n]]:
    "multiply: numbers of dtype float64 are written into an array of int64"
    return np.multiply(x, 2, out=i)


@typed
def copied_to_another_dtype(x: Vec[n], i: Int[Vec[n]]) -> Int[Vec[n]]:
    "copyto: numbers of dtype float64 are written into an array of int64"
    np.copyto(i, x)
    return i


@typed(keep='B')
def mean_over_what_is_kept(x: Mat[B, D]) -> Vec[D]:
    "mean: reduces over axis -2, which is B: keep='B' says that nothing may"
    return x.mean(0)


@typed(keep='B')
def mean_over_what_is_kept_after_a_sum(x: Mat[B, D], y: Mat[B, D]) -> Vec[D]:
    "mean: reduces over axis -2, which is B: keep='B' says that nothing may"
    return (x + y).mean(0)


@typed(keep='B')
def mean_over_what_is_kept_after_a_reshape(x: Arr[B, T, D]) -> Vec['T*D']:
    "mean: reduces over axis -2, which is B: keep='B' says that nothing may"
    return x.reshape(len(x), -1).mean(0)


@typed
def any_place(x: Vec[n], k: int) -> Vec[n]:
    "partition: the place k of n entries"
    return np.partition(x, k)


@typed
def any_place_of_an_order(x: Vec[n], k: int) -> Int[Vec[n]]:
    "argpartition: the place k of n entries"
    return np.argpartition(x, k)


@typed
def reshape_for_transpose(x: Mat[n, m]) -> Mat[m, n]:
    "reshape: the axis m would change places, and a reshape does not move entries"
    return x.reshape(x.shape[1], x.shape[0])


@typed
def reshape_to_negative_sizes(x: Mat[n, m]) -> Mat[n, m]:
    "reshape: -n can be negative"
    return x.reshape(-len(x), -x.shape[1])


@typed
def reshape_by_columns(x: Mat[n, m]) -> Vec['n*m']:
    "reshape: order='F' has no rule"
    return x.reshape(-1, order='F')


@typed
def transpose_of_one_axis_twice(x: Mat[n, n]) -> Mat[n, n]:
    "transpose: the same axis twice"
    return x.transpose(0, 0)


@typed
def sum_of_one_axis_twice(x: Mat[n, n]) -> Vec[n]:
    "sum: the same axis twice"
    return x.sum((0, -2))


@typed
def split_beyond(x: Vec[n]) -> Vec[n]:
    "split: a cut at 4 of n entries"
    a, b = np.split(x, [4])
    return np.concatenate([a, b])


@typed
def take_along_of_fewer_axes(x: Mat[n, d], i: Int[Vec[n]]) -> Mat[n, d]:
    "take_along_axis: as many axes in the indices as in the array"
    return np.take_along_axis(x, i, 1)


@typed
def take_along_of_floats(x: Mat[n, d]) -> Mat[n, d]:
    "take_along_axis: indices of dtype float64"
    return np.take_along_axis(x, x, 1)


@typed
def reads_a_file(x: Vec[n]) -> Vec[n]:
    "a file is opened"
    with open('numbers.txt') as f: return x*float(f.read())


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


@typed
def index_shifted_in_place(x: Vec[n]) -> Vec[n]:
    "indices up to n of an axis of size n"
    i = np.arange(len(x)); i += 1
    return x[i]


@typed
def index_written(x: Vec[n]) -> Vec[n]:
    "nothing bounds the numbers of this index"
    i = np.arange(len(x)); i[0] = 99
    return x[i]


@typed
def index_shifted_through_a_view(x: Vec[n]) -> Vec[n]:
    "indices up to n of an axis of size n"
    i = np.argsort(x); j = i[:]; j += 1
    return x[i]


@typed
def index_of_floats(x: Vec[n]) -> Vec[n]:
    "nothing bounds the numbers"
    return x[(x*10).astype(int)]


@typed
def order_of_another(x: Vec[n], y: Vec[m]) -> Vec[n]:
    "indices up to n - 1 of an axis of size m"
    return y[np.argsort(x)]


@typed
def searchsorted_to_the_end(x: Vec[n]) -> Vec[n]:
    "indices up to n of an axis of size n"
    s = np.sort(x)
    return s[np.searchsorted(s, x)]


@typed
def index_too_far_back(x: Vec[n]) -> Vec[n]:
    "indices down to -n - 1"
    return x[-np.arange(len(x)) - 2]


@typed
def given_plus_one(ids: Int[Vec[T]], e: Mat[V, d]) -> Mat[T, d]:
    "nothing bounds the numbers"
    return e[ids + 1]


@typed(where='ids < V')
def bounded_plus_one(ids: Int[Vec[T]], e: Mat[V, d]) -> Mat[T, d]:
    "indices up to V of an axis of size V"
    return e[ids + 1]


@typed
def count_as_index(x: Vec[n]) -> float:
    "of an axis of size n"
    k = (x > 0).sum()
    return x[k]


@typed
def index_of_small_dtype(x: Vec[n]) -> Vec[n]:
    "nothing bounds the numbers"
    return x[np.arange(len(x), dtype=np.uint8) - 1]


@typed
def index_written_by_out(x: Vec[n]) -> Vec[n]:
    "indices up to n + 2"
    i = np.arange(len(x))
    np.add(i, 3, out=i)
    return x[i]


@typed
def index_written_by_at(x: Vec[n]) -> Vec[n]:
    "nothing bounds the numbers"
    i = np.arange(len(x))
    np.add.at(i, [0], 30)
    return x[i]


@typed(where=['h >= 3', 'w >= 3'])
def convolution_off_by_one(x: Mat[h, w], f: Mat[3, 3]) -> Mat['h-2', 'w-2']:
    "axis -2 has size h - 2 on the left and h - 1 on the right"
    out = np.zeros((x.shape[0] - 2, x.shape[1] - 2))
    for i in range(3):
        for j in range(3): out += f[i, j]*x[i:i + x.shape[0] - 1, j:j + x.shape[1] - 2]
    return out


@typed
def pooling_of_odd_sizes(x: Arr[B, C, h, w]) -> Arr[B, C, 'h//2', 'w//2']:
    "maximum: axis -2 has size"
    return np.maximum(np.maximum(x[:, :, ::2, ::2], x[:, :, 1::2, ::2]), np.maximum(x[:, :, ::2, 1::2], x[:, :, 1::2, 1::2]))


@typed
def shift_too_far(x: Vec[n], k: int) -> Vec[n]:
    "the result has size k on axis 0, not n"
    return np.concatenate([np.zeros(k), x[:-k]])


@typed
def set_in_a_loop_of_no_turns(x: Mat[n, d]) -> Vec[d]:
    "UnboundLocalError"
    for i in range(1, len(x)): acc = np.abs(x[i] - x[i - 1])
    return acc


@typed
def largest_of_an_empty_class(x: Mat[n, d], y: Int[Vec[n]], c: int) -> Mat['c', d]:
    "can be 0, and then there is nothing to choose from"
    return np.stack([x[y == j].max(0) for j in range(c)])


@typed
def another_mask(x: Mat[n, d]) -> Mat[n, d]:
    "the result does not fit where it is written"
    m = x > x.mean()
    x[m] = x[~m]
    return x


@typed(where='0 <= k <= n')
def last_none(x: Vec[n], k: int) -> Vec[k]:
    "the result has size n on axis 0, not k"
    return np.sort(x)[-k:]


@typed
def convolution_in_another_order(x: Arr[B, C, h, w], k: Arr[D, C, 3, 3]) -> Arr[B, D, h, w]:
    "the result has size h on axis 1, not D"
    xp = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    v = np.lib.stride_tricks.sliding_window_view(xp, (3, 3), axis=(2, 3))
    return np.tensordot(v, k, ([1, 4, 5], [1, 2, 3]))


@typed(where=['k <= h', 's >= 1'])
def strided_off_by_one(x: Mat[h, h], k: int, s: int) -> Mat['(h-k)//s', '(h-k)//s']:
    "the result has size"
    v = np.lib.stride_tricks.sliding_window_view(x, (k, k))
    return v[::s, ::s].mean((2, 3))


@typed
def diff_too_short(x: Vec[n]) -> Vec['n-1']:
    "the result has size n + 1 on axis 0, not n - 1"
    return np.diff(x, prepend=[0, 0])


@typed
def means_of_the_other_axis(x: Mat[n, d]) -> Mat[n, d]:
    "indices up to d - 1 of an axis of size n"
    r, c = np.where(np.isnan(x))
    x[r, c] = np.nanmean(x, axis=1)[c]
    return x


@typed
def any_of_what_was(x: Vec[n]) -> float:
    "can be 0, and then there is nothing to choose from"
    m = x > 0
    a = m.any()
    m[:] = False
    if a: return x[m].max()
    return 0.0


@typed
def nonzero_of_what_was(x: Vec[n]) -> float:
    "subtract: axis -1 has size k"
    a = np.nonzero(x)[0]
    x[0] = 0
    b = np.nonzero(x)[0]
    return (a - b).sum()


@typed
def generator_in_a_loop(x: Mat[n, d]) -> Vec[2]:
    "the result has size c + 1 on axis 0, not 2"
    def rows():
        for r in x: yield r
    c = 0
    for r in rows(): c += 1
    return np.zeros(c)


class Slotted:
    __slots__ = 'n',
    def __init__(self): self.n = 0

@typed
def counter_in_slots(x: Mat[n, d]) -> Vec[2]:
    "a changes its value in each turn of the loop"
    a = Slotted()
    for r in x: a.n += 1
    return np.zeros(a.n)


@typed
def counter_in_a_class(x: Mat[n, d]) -> Vec[2]:
    "K changes its value in each turn of the loop"
    class K: n = 0
    for r in x: K.n += 1
    return np.zeros(K.n)


@typed
def queue_in_a_loop(x: Mat[n, d]) -> Vec[2]:
    "q changes its value in each turn of the loop"
    q = collections.deque()
    for r in x: q.append(r)
    return np.zeros(len(q))


@typed
def bytes_in_a_loop(x: Mat[n, d]) -> Vec[2]:
    "q changes its value in each turn of the loop"
    q = bytearray()
    for r in x: q.append(1)
    return np.zeros(len(q))


@typed
def iterator_in_a_loop(x: Mat[n, d]) -> Vec[2]:
    "c changes its value in each turn of the loop"
    c = itertools.count()
    for r in x: next(c)
    return np.zeros(next(c))


@typed
def three_turns_apart(x: Mat[n, d], y: Vec[m]) -> Vec[m]:
    "the result has size d on axis 0, not m"
    q = r = y
    def g(): return q
    def h(): return r
    for i in range(len(x)):
        z = g()
        q = h()
        r = x[i]
    return z


@typed
def sum_of_ones(x: Mat[n, d]) -> Vec[2]:
    "the result has size n on axis 0, not 2"
    return np.zeros(sum(1 for r in x))


@typed
def sum_of_places(x: Mat[n, d]) -> Vec[n]:
    "nothing bounds the numbers of this index"
    return x[sum(r.argmax() % 1 + 1 for r in x)]


@typed
def max_of_arrays(x: Vec[n], y: Vec[n]) -> Vec[n]:
    "max() of an array with n entries"
    return max(x, y)


@typed
def max_of_three(x: Vec[n]) -> float:
    "indices up to"
    return x[max(int(x.argmax()), 0, x.argmin() + 1)]


@typed
def clip_from_above(x: Vec[n]) -> Vec[n]:
    "indices down to -3 of an axis of size n"
    return x[np.clip(np.argsort(x), None, 0) - 3]


@typed
def delete_a_list(x: Vec[n]) -> float:
    "indices up to 3 of an axis of size n"
    return np.delete(x, [3]).sum()


@typed
def diff_of_other_axes(x: Mat[n, d], y: Vec[d]) -> Mat[n, d]:
    "diff: as many axes as the array has"
    return np.diff(x, prepend=y, axis=0)


@typed
def norm_of_three_axes(x: Arr[n, m, d]) -> float:
    "norm: ValueError: Improper number of dimensions to norm."
    return np.linalg.norm(x, 'fro')


@typed
def full_of_a_row(x: Mat[n, d]) -> Mat[n, n]:
    "full: this does not stretch to that shape"
    return np.full((len(x), len(x)), x[0])


@typed
def out_stretches(x: Vec[n]) -> Vec[n]:
    "sum: the result does not fit where it is written"
    return np.sum(x, axis=0, out=np.zeros(len(x)))


@typed
def fromiter_counts(x: Mat[n, d]) -> Vec[3]:
    "3 of n things"
    return np.fromiter((r.sum() for r in x), float, count=3)


@typed
def more_than_there_are(x: Vec[n]) -> Vec[3]:
    "3 of n without replacement"
    return np.random.default_rng(0).choice(x, 3, replace=False)


@typed
def a_draw_for_each(x: Vec[n]) -> float:
    "the result has 1 axis, not 0"
    return np.random.default_rng(0).normal(x, 1.0)


@typed
def correlate_is_valid(x: Vec[n]) -> Vec['2*n-1']:
    "the result has size 1 on axis 0, not 2*n - 1"
    return np.correlate(x, x)


@typed
def none_entry_by_entry(x: Vec[n]) -> Vec[n]:
    "None meets an array, entry by entry"
    return x if x != None else x[:1]


@typed
def stars(x: Vec[n], *rest) -> Vec[n]:
    "what *rest holds is not known"
    return rest[0][:1] if rest else x


@typed
def changed_default(x: Vec[n], seen=[]) -> Vec[n]:
    "a default is changed, which outlives the call"
    seen.append(x)
    return seen[-1]


cache = {}

@typed
def changed_global(x: Vec[n]) -> Vec[n]:
    "cache is changed, which outlives the call"
    if 'last' not in cache: cache['last'] = x
    return cache['last']


@typed
def itself(x: Vec[n]) -> Vec[n]:
    "the result has size n - 1 on axis 0, not n"
    return itself(x[1:]) if len(x) > 1 else x


@typed
def while_true_with_other_results(x: Vec[n]) -> Vec[n]:
    "the result has size 1 on axis 0, not n"
    while True:
        x = x/2
        if np.abs(x).max() < 1: return x[:1]


@typed
def while_true_and_a_counter(x: Vec[n]) -> Vec[n]:
    "the result has size 1 on axis 0, not n"
    i = 0
    while True:
        i += 1
        if x[0] > i: return x[:i]


class Swallow:
    def __enter__(self): return self
    def __exit__(self, *error): return True

@typed
def suppressed(x: Vec[n]) -> Vec[n]:
    "exceptions may be suppressed"
    y = x[:1]
    with Swallow():
        np.linalg.cholesky(np.eye(2)*x[0])
        y = x
    return y


@typed
def needs_the_numbers(x: Vec[n]) -> Vec[n]:
    "the values of an array are needed here, and a trace has none"
    return np.array([v*2 for v in x.tolist()])


def wrong_rule(x): return x.tolist()

@rule(wrong_rule)
def _(x):
    if x.ndim < 2: refuse('a matrix is needed', 'Mat<m, n>', x, operand=0)
    return x @ np.ones(3)

@typed
def refused_by_a_rule(x: Vec[n]) -> Vec[n]:
    "wrong_rule: a matrix is needed"
    return wrong_rule(x)

@typed
def refused_in_a_rule(x: Mat[n, d]) -> Vec[n]:
    "in the rule of wrong_rule: matmul: the left side has d columns, the right side 3 rows"
    return wrong_rule(x)


def zeros_says_the_rule(x): return x.argmax(axis=1)

@rule(zeros_says_the_rule)
def _(x): return np.zeros(len(x), int)

@typed
def numbers_of_a_rule(x: Mat[n, d], y: Vec[m]) -> Vec[n]:
    "nothing bounds the numbers of this index"
    return y[zeros_says_the_rule(x)]


def doubled(a): return np.concatenate([a, a]).tolist()

@rule(doubled)
def _(a): return np.zeros((*a.shape[:-1], 2*a.shape[-1]))

@typed
def result_of_a_rule(x: Vec[n]) -> Vec[n]:
    "the result has size 2*n on axis 0, not n"
    return doubled(x)


@typed
def wrong_einsum_gradient(x: Mat[B, D], dy: Grad[Mat[B, D]]) -> InOut[Mat[D, D]]:
    "the result is stored the other way round"
    return np.einsum('bi,bj->ji', x, dy)


@typed
def wrong_einsum_gradient_swapped(x: Mat[B, D], dy: Grad[Mat[B, D]]) -> InOut[Mat[D, D]]:
    "the result is stored the other way round"
    return np.einsum('bi,bj->ij', dy, x)


@typed
def wrong_einsum_gradient_of_time(x: Arr[B, T, D], dy: Grad[Arr[B, T, D]]) -> InOut[Mat[D, D]]:
    "the result is stored the other way round"
    return np.einsum('bti,btj->ji', x, dy)


@typed
def wrong_einsum_forward(x: Mat[B, D], w: InOut[Mat[D, D]]) -> Mat[B, D]:
    "an activation meets the out axis of a weight"
    return np.einsum('bi,ji->bj', x, w)


@typed
def wrong_einsum_back(dy: Grad[Mat[B, D]], w: InOut[Mat[D, D]]) -> Mat[B, D]:
    "a gradient meets the in axis of a weight"
    return np.einsum('bj,ji->bi', dy, w)


@typed
def wrong_tensordot_gradient(x: Mat[B, D], dy: Grad[Mat[B, D]]) -> InOut[Mat[D, D]]:
    "the result is stored the other way round"
    return np.tensordot(dy, x, axes=(0, 0))


@typed
def wrong_einsum_of_samples(w: InOut[Mat[D, D]], x: Mat[B, D], dy: Grad[Mat[B, D]]) -> InOut[Mat[D, D]]:
    "one of the two is stored the other way round"
    return w - np.einsum('bi,bj->bij', dy, x).sum(0)


@typed
def first_meets_third(x: Vec[d], y: Vec[m], z: Mat[n, p]) -> Vec[m]:
    "axis -1 has size d on the left and m on the right"
    acc = out = y
    for i in range(len(z)):
        if i == 0: acc = x
        if i == 2: out = acc + y
    return out


@typed
def early_meets_late(x: Vec[d], y: Vec[m]) -> Vec[m]:
    "axis -1 has size d on the left and m on the right"
    acc = out = y
    for i in range(100):
        if i == 50: acc = x
        if i == 70: out = acc + y
    return out


@typed
def first_meets_third_nested(x: Mat[n, n], y: Vec[m], v: Vec[k]) -> Vec[m]:
    "axis -1 has size m on the left and k on the right"
    b = y
    for i in range(len(x)):
        for j in range(len(x)):
            if i < 1 and j < 1: b = v
            if i > 5 and j > 5: y = y + b
    return y


@typed(where='n >= 4')
def kept_from_any_turn(x: Vec[n]) -> Vec['n-1']:
    "the result has size i on axis 0, not n - 1"
    out = x[1:]
    for i in range(len(x)):
        if i % 2 == 1: out = x[:i]
    return out


@typed
def elements_differ(x: Vec[n], y: Vec[m], z: Mat[k, d]) -> float:
    "the elements of this list differ"
    return np.stack([x if row.sum() > 0 else y for row in z]).sum()


@typed
def first_element_differs(x: Vec[n], y: Vec[m], z: Mat[k, d]) -> float:
    "the elements of this list differ"
    return np.stack([x if i == 0 else y for i in range(len(z))]).sum()


@typed
def column_of_a_product(x: Mat[B, d], w: Vec[d], y: Vec[B]) -> float:
    "pairs Mat<B, 1> with Vec<B>, which makes every combination"
    return ((x @ w[:, None] - y)**2).mean()


@typed
def column_of_a_layer(x: Mat[B, d], w: Vec[d], b: float, y: Vec[B]) -> float:
    "pairs Mat<B, 1> with Vec<B>, which makes every combination"
    return ((x @ w.reshape(-1, 1) + b - y)**2).mean()


@typed
def column_of_einsum(x: Mat[B, d], w: Vec[d], y: Vec[B]) -> float:
    "pairs Mat<B, 1> with Vec<B>, which makes every combination"
    return ((np.einsum('bd,dk->bk', x, w[:, None]) - y)**2).mean()


@typed
def column_of_stack(x: Vec[B], y: Vec[B]) -> float:
    "pairs Mat<B, 1> with Vec<B>, which makes every combination"
    return ((np.stack([x], 1) - y)**2).mean()


@typed
def column_of_atleast_2d(x: Vec[B], y: Vec[B]) -> float:
    "pairs Mat<B, 1> with Vec<B>, which makes every combination"
    return ((np.atleast_2d(x).T - y)**2).mean()


@typed
def column_and_row_of_two_names(x: Mat[B, 1], y: Vec[m]) -> float:
    "pairs Mat<B, 1> with Vec<m>, which makes every combination"
    return ((x - y)**2).mean()


@typed
def clears(mask: Bool[Vec[n]]) -> float:
    if len(mask) > 3 and mask.any(): mask[:] = False
    return 0.0


@typed
def shifts(i: Int[Vec[n]]) -> float:
    view = i[:2]
    view += 1
    return 0.0


@typed
def shifts_in_turn(i: Int[Vec[n]]) -> float: return shifts(i)


@typed
def three_or_four(x: Vec[n]) -> Vec[n]:
    assert len(x) == 3 or len(x) == 4
    return x


@typed
def not_both_small(x: Mat[n, m]) -> Mat[n, m]:
    scale = 2 if x.sum() > 0 else 3
    if len(x) < 3 and x.shape[1] < 3: raise ValueError('small')
    return x*scale


@typed
def mask_that_a_callee_writes(x: Vec[n], y: Vec[n]) -> float:
    "multiply: axis -1 has size"
    mask = x > 0
    some = x[mask]
    clears(mask)
    return (some*y[mask]).sum()


@typed
def index_that_a_callee_writes(x: Vec[n]) -> float:
    "nothing bounds the numbers of this index"
    i = np.arange(len(x))
    shifts_in_turn(i)
    return x[i].sum()


@typed
def neither_three_nor_four(x: Vec[m]) -> Vec[m]:
    "needs n == 3 or n == 4"
    return three_or_four(x)


@typed
def both_small(x: Mat[n, m]) -> Mat[n, m]:
    "needs n >= 3 or m >= 3"
    return not_both_small(x)


@typed(keep='B')
def keep_einsum(x: Mat[B, d]) -> Vec[d]:
    "sums over an axis that is B"
    return np.einsum('bd->d', x)


@typed(keep='B')
def keep_product(x: Mat[B, d]) -> Vec[d]:
    "sums over an axis that is B"
    return np.ones(len(x)) @ x


@typed(keep='B')
def keep_gram(x: Mat[B, d]) -> Mat[d, d]:
    "sums over an axis that is B"
    return x.T @ x


@typed(keep='B')
def keep_tensordot(x: Mat[B, d], y: Mat[B, m]) -> Mat[d, m]:
    "sums over an axis that is B"
    return np.tensordot(x, y, axes=([0], [0]))


@typed(keep='B')
def keep_running(x: Mat[B, d]) -> Mat[B, d]:
    "reduces over axis -2, which is B"
    return x.cumsum(0)


@typed(keep='B', where='B >= 2')
def keep_slice(x: Mat[B, d]) -> Vec[d]:
    "reduces over axis -2, which is B"
    return x[1:].sum(0)


@typed(keep='B')
def keep_mask(x: Mat[B, d]) -> Vec[d]:
    "reduces over axis -2, which is B"
    return x[x[:, 0] > 0].sum(0)


@typed(keep='B')
def keep_index(x: Mat[B, d]) -> Vec[d]:
    "reduces over axis -2, which is B"
    return x[np.argsort(x[:, 0])].sum(0)


@typed(keep='B')
def keep_merged(x: Arr[B, n, d]) -> Vec[d]:
    "reduces over axis -2, which is B"
    return x.reshape(-1, x.shape[2]).mean(0)


@typed(keep='B')
def keep_joined(x: Mat[B, d]) -> Vec[d]:
    "reduces over axis -2, which is B"
    return np.concatenate([x, x]).mean(0)


@typed
def column_sums(x: Mat[B, d]) -> Vec[d]: return x.sum(0)


@typed(keep='B')
def keep_call(x: Mat[B, d]) -> Vec[d]:
    "takes an axis that is B, and returns none"
    return column_sums(x)


@typed
def a_triangle_of_rows(x: Mat[n, d]) -> Mat['n*(n-1)', d]:
    "the result has size c on axis 0, not n**2 - n"
    out = []
    for i in range(len(x)):
        for _j in range(i): out.append(x[0])
    return np.stack(out)


@typed
def places_of_some_in_one(x: Vec[n]) -> float:
    "indices up to n - 1 of an axis of size 1"
    found = []
    for i in range(len(x)):
        if x[i] > 0: found.append(i)
    if not len(found): return 0.0
    return x[:1][np.array(found)].sum()


@typed
def place_of_any_turn(x: Vec[n]) -> float:
    "of an axis of size 1"
    best = 0
    for i in range(len(x)):
        if x[i] > 0: best = i
    return x[:1][best]


@typed
def places_of_any_turn(x: Vec[n]) -> Vec[n]:
    "best may keep its value of an earlier turn of the loop, and that depends on which one"
    best = 0, 0
    for i in range(len(x)):
        if x[i] > 0: best = i, i + 1
    return x[:best[1]] if best[1] == len(x) else x


@typed
def flag_of_the_first_turn(x: Vec[n], y: Vec[m]) -> Vec[n]:
    "the result has size m on axis 0, not n"
    seen, out = False, x
    for i in range(len(x)):
        if seen: out = y
        if i == 4: seen = True
    return out


@typed
def second_element_differs(x: Mat[n, d], y: Vec[m]) -> Mat[n, d]:
    "a list gets different elements in each turn"
    out = []
    for i, row in enumerate(x): out.append(y if i == 1 else row)
    return np.stack(out)


@typed
def three_elements(x: Mat[n, d]) -> Mat[n, d]:
    "the result has size c on axis 0, not n"
    out = []
    for i, row in enumerate(x):
        if i < 3: out.append(row)
    return np.stack(out)


@typed
def a_state_that_ends_it(x: Vec[n]) -> Vec[n]:
    "the result has size 1 on axis 0, not n"
    state = 0
    while state != 2:
        if x.sum() > 0: state = (state + 1) % 3
        if state == 2: x = x[:1]
    return x


@typed
def third_turn_of_while(x: Vec[n], y: Vec[m]) -> Vec[n]:
    "changes its shape in each turn of the loop"
    a = b = c = x
    while x.sum() > 0: c, b, a = b, a, y
    return c
