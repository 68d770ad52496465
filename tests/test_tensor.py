"""PYTEST_DONT_REWRITE (laws are read from source). Tensor functions: the right value or a named refusal, for any input; the same bits on any number of threads.

The fuzz test runs for three seconds; with BENDML_FUZZ set to a number of seconds, the fuzz test runs that long (`make fuzz`)."""
import os, subprocess, sys, time
import numpy as np, pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from hypothesis.extra import numpy as hnp
from bendml import tensor
from bendml.kernel import KernelError
from bendml.kernel.sums import gemm as proved_gemm
from bendml.tensor import TensorError, four_bits, weights
from bendml.tensor.gemm import BIG, gemm_panels, gemm_parallel, gemm_rows, gemm_tiles
from bendml.threads import get_threads, set_threads

FUZZ = float(os.environ.get('BENDML_FUZZ', 3))
unhurried = settings(deadline=None, suppress_health_check=list(HealthCheck))
SIZE = st.integers(0, 20) | st.sampled_from([31, 48, 97])
draw = np.random.default_rng(0).standard_normal
f32 = np.float32


def in_order(a, b):
    "The product in plain Python's order: each sum from left to right, product and sum rounded one after the other."
    c = np.zeros((a.shape[0], b.shape[1]), f32)
    for p in range(a.shape[1]): c = c + a[:, p, None]*b[None, p]
    return c


def sides(n, k, m, turn):
    a, b = draw((k, n) if turn == 'tn' else (n, k)).astype(f32), draw((m, k) if turn == 'nt' else (k, m)).astype(f32)
    return a, b, (a.T if turn == 'tn' else a), (b.T if turn == 'nt' else b)


MATMUL = {'nn': tensor.matmul, 'nt': tensor.matmul_nt, 'tn': tensor.matmul_tn}


@pytest.mark.parametrize('turn', MATMUL)
@unhurried
@given(n=SIZE, k=SIZE | st.sampled_from([399, 401, 850]), m=SIZE)
def test_the_sequential_order_has_the_bits_of_plain_loops(turn, n, k, m):
    a, b, x, y = sides(n, k, m, turn)
    assert np.array_equal(MATMUL[turn](a, b, order='sequential'), in_order(x, y))


@unhurried
@given(n=SIZE, k=SIZE, m=SIZE)
def test_against_three_loops_in_plain_python(n, k, m):
    n, k, m = n % 7, k % 9, m % 7
    a, b = draw((n, k)).astype(f32), draw((k, m)).astype(f32)
    c = np.empty((n, m), f32)
    for i in range(n):
        for j in range(m):
            total = f32(0)
            for p in range(k): total += a[i, p]*b[p, j]
            c[i, j] = total
    assert np.array_equal(tensor.matmul(a, b, order='sequential'), c)


@pytest.mark.parametrize('turn', MATMUL)
@unhurried
@given(n=SIZE, k=SIZE, m=SIZE)
def test_the_fast_order_is_within_its_bound(turn, n, k, m):
    "Any order of k products: at most k roundings of size 2**-24 on each term."
    a, b, x, y = sides(n, k, m, turn)
    exact, size = x.astype(float) @ y.astype(float), abs(x).astype(float) @ abs(y).astype(float)
    assert (abs(MATMUL[turn](a, b) - exact) <= (k + 2)*2.**-24*size).all()
    out = draw((n, m)).astype(f32)
    apart = out + MATMUL[turn](a, b)
    assert MATMUL[turn](a, b, out=out, add=True) is out and np.array_equal(out, apart)


@pytest.mark.parametrize('turn', MATMUL)
def test_a_large_product_is_within_its_bound(turn):
    "One that is computed by our own threads, where there are several."
    n, k, m = 601, 817, 563
    assert n*k*m > BIG
    a, b, x, y = sides(n, k, m, turn)
    exact, size = x.astype(float) @ y.astype(float), abs(x).astype(float) @ abs(y).astype(float)
    assert (abs(MATMUL[turn](a, b) - exact) <= (k + 2)*2.**-24*size).all()


def test_every_rung_has_the_bits_of_the_proved_kernel():
    n, k, m = 18, 413, 32
    a, b = draw((n, k)).astype(f32), draw((k, m)).astype(f32)
    x, y, c = a.ravel(), b.ravel(), np.empty(n*m, f32)
    proved_gemm(n, k, m, k, 1, m, 1, x, y, c)
    assert np.array_equal(c.reshape(n, m), in_order(a, b))
    for run in (lambda o: gemm_rows(x, k, 1, y, m, o, n, k, m), lambda o: gemm_tiles(x, k, 1, y, m, o, n, k, m),
                lambda o: gemm_panels(x, 0, k, 1, y, 0, m, 1, o, 0, m, n, k, m, False), lambda o: gemm_parallel(x, k, 1, y, m, 1, o, n, k, m, False, False, 7)):
        out = np.full(n*m, np.nan, f32)
        run(out)
        assert np.array_equal(out, c)


THREADS = '''
import hashlib, numpy as np, sys
from bendml import tensor
from bendml.threads import blas_threads, get_threads, set_threads
n = int(sys.argv[1])
set_threads(n)
assert get_threads() == blas_threads() == n
draw, h = np.random.default_rng(1).standard_normal, hashlib.sha256()
for n, k, m in ((100, 784, 128), (784, 100, 128), (1, 300, 500), (257, 66, 3), (64, 900, 700)):
    a, b = draw((n, k)).astype(np.float32), draw((k, m)).astype(np.float32)
    h.update(tensor.matmul(a, b, order='sequential').tobytes())
    h.update(tensor.matmul_nt(a, b.T.copy(), order='sequential').tobytes())
    for order in ('sequential', 'fast'): h.update(tensor.matvec(a, b[:, 0].copy(), order=order).tobytes())
    h.update(tensor.matvec(tensor.to_bf16(a), b[:, 0].copy()).tobytes())
    q, scale = tensor.to_i8(a)
    h.update(tensor.matvec(q, b[:, 0].copy(), scale=scale).tobytes())
print(h.hexdigest())
'''


def test_the_same_bits_at_one_two_and_four_threads():
    env = {k: v for k, v in os.environ.items() if k not in ('OPENBLAS_NUM_THREADS', 'OMP_NUM_THREADS')} | {'NUMBA_NUM_THREADS': '4', 'OPENBLAS_NUM_THREADS': '4'}
    run = lambda n: subprocess.run([sys.executable, '-W', 'ignore', '-c', THREADS, str(n)], env=env, capture_output=True, text=True, check=True).stdout
    assert run(1) == run(2) == run(4)


@pytest.mark.parametrize('kind', ['f32', 'bf16', 'i8'])
@unhurried
@given(r=SIZE, c=SIZE | st.sampled_from([255, 256, 1000, 2047, 2049, 4200]), split=st.booleans())
def test_matvec_is_within_its_bound(monkeypatch, kind, r, c, split):
    w, x = draw((r, c)).astype(f32), draw(c).astype(f32)
    scale = None
    if kind == 'bf16': w = tensor.to_bf16(w)
    if kind == 'i8': w, scale = tensor.to_i8(w)
    wide = (w.astype(np.uint32) << 16).view(f32) if kind == 'bf16' else w
    exact, size = wide.astype(float) @ x.astype(float), abs(wide.astype(float)) @ abs(x).astype(float)
    rounded = 0
    monkeypatch.setattr(weights, 'has_vnni', lambda: split)   # without the word for bytes, x stays as it is
    if kind == 'i8': exact, size, rounded = exact*scale, size*abs(scale), abs(wide.astype(float)).sum(1)*abs(x).max(initial=0)*scale   # x is rounded
    assert (abs(tensor.matvec(w, x, scale=scale) - exact) <= 2.**-24*((c/64 + 20)*size + rounded) + 1e-37).all()
    if kind == 'f32': assert np.array_equal(tensor.matvec(w, x, order='sequential'), in_order(w, x[:, None])[:, 0])


@unhurried
@given(r=SIZE, groups=st.integers(0, 40) | st.sampled_from([64, 135]), split=st.booleans())
def test_four_bits_are_the_nearest_and_their_product_is_within_its_bound(monkeypatch, r, groups, split):
    monkeypatch.setattr(four_bits, 'has_vnni', lambda: split)
    w, x = draw((r, 32*groups)).astype(f32), draw(32*groups).astype(f32)
    q, scale = tensor.to_i4(w)
    stored = tensor.from_i4(q, scale).astype(float)
    assert q.nbytes == w.size//2 and (abs(stored - w) <= np.repeat(scale, 32, axis=1)*.5001).all()
    y, size = tensor.matvec_i4(q, scale, x), abs(stored) @ abs(x).astype(float)
    rounded = abs(stored).sum(1)*abs(x).max(initial=0)
    assert (abs(y - stored @ x.astype(float)) <= 2.**-24*((groups + 12)*size + rounded) + 1e-37).all()
    if r and groups:   # the same loop in plain Python, where the words are NumPy
        from bendml.tensor.four_bits import dot_i4
        assert abs(dot_i4.plain(q.reshape(-1), 0, scale.reshape(-1), 0, x, 0, groups) - y[0]) <= (groups + 12)*2.**-23*size[0]


def test_numbers_that_cannot_be_split_keep_their_floats():
    "Pieces that are zero, tiny, huge or not finite, beside one that is none of it."
    w, s = tensor.to_i8(draw((9, 5*2048)).astype(f32))
    q, t = tensor.to_i4(draw((9, 5*2048)).astype(f32))
    for value in (0, 1e-38, 1e35, np.inf, np.nan):
        x = draw(5*2048).astype(f32)
        x[2048:4096], x[7000] = value if value < 1 else 1, value
        with np.errstate(all='ignore'):
            for y, exact in ((tensor.matvec(w, x, scale=s), (w*s[:, None].astype(float)) @ x), (tensor.matvec_i4(q, t, x), tensor.from_i4(q, t).astype(float) @ x)):
                assert np.allclose(y, exact.astype(f32), rtol=1e-5, atol=1e-4, equal_nan=True)


@unhurried
@given(n=SIZE, k=SIZE, m=st.sampled_from([0, 128, 256]), seed=st.integers(0, 99), add=st.booleans())
def test_leaving_out_zeros_changes_no_bit(n, k, m, seed, add):
    rng = np.random.default_rng(seed)
    x = (rng.integers(0, 256, (n, k))*(rng.random((n, k)) < .3)).astype(np.uint8)
    w, before = rng.standard_normal((k, m), f32), rng.standard_normal((n, m), f32)
    plain = in_order(x/f32(255), w)
    s = tensor.sparse(x)
    assert len(s.index) == len(s.value) == (x != 0).sum()
    if add: assert np.array_equal(tensor.sparse_matmul(s, w, before.copy(), add=True), before + plain)
    else: assert np.array_equal(tensor.sparse_matmul(s, w), plain)


@pytest.mark.parametrize('wrong', [dict(index=np.array([0, 2], np.int32)), dict(index=np.array([0, -1], np.int32)), dict(start=np.array([0, 1, 3], np.int32)), dict(start=np.array([-1, 1, 2], np.int32))])
def test_a_list_that_points_outside_is_refused(wrong):
    "A column that is not there, and an end after the list."
    good = tensor.sparse(np.eye(2, dtype=np.uint8))
    with pytest.raises(KernelError, match='- expected : '): tensor.sparse_matmul(good._replace(**wrong), np.zeros((2, 128), f32))


@unhurried
@given(st.data())
def test_a_rule_allows_what_the_kernel_allows(data):
    "For each operation of the table: its rule refuses the sizes that its kernel refuses, and gives the shape that the kernel gives."
    for op in tensor.OPS.values():
        if op.name == 'add': continue   # NumPy's + stretches what the rule does not
        shapes = [tuple(data.draw(st.lists(st.integers(1, 3), min_size=len(i.strip()), max_size=len(i.strip())))) for i in op.rule.split('->')[0].split(',')]
        inputs = [np.zeros(s, np.int64 if op.name in ('mean_loss', 'cross_entropy', 'hits') and len(s) == 1 else f32) for s in shapes]
        try: expected = op.sizes(*shapes)
        except TensorError:
            with pytest.raises(TensorError): op(*inputs)
        else:
            got = op(*inputs)
            assert (tuple(map(np.shape, got)) if type(got) is tuple else np.shape(got)) == expected


def test_the_shape_checker_and_autograd_read_the_same_record():
    from bendml.autograd.arrays import from_table, grad
    from bendml.shape import Arr, Dim, Int, Mat, ShapeError, Vec, typed
    from bendml.shape.symbols import OPS as TABLE
    assert all(TABLE[op.kernel] is op for op in tensor.OPS.values())
    B = Dim('B')

    @typed
    def fits(x: Mat[B, 3], w: Mat[5, 3]) -> Mat[B, 5]: return tensor.matmul_nt(x, w)
    for fn in (tensor.matmul, tensor.matmul_tn):
        with pytest.raises(ShapeError, match='input 2 of'):
            @typed
            def turned(x: Mat[B, 3], w: Mat[5, 3]) -> Mat[B, 5]: return fn(x, w)

    @typed
    def step(z: Mat[B, 5], labels: Int[Vec[B]]) -> tuple[Arr[()], Mat[B, 5], Arr[()]]:
        loss, dz = tensor.cross_entropy(z, labels)
        return loss, dz, np.float32(tensor.hits(z, labels)/len(z))
    with pytest.raises(ShapeError, match='input 2 of'):
        @typed
        def unlabelled(z: Mat[B, 5], labels: Int[Vec[5]]) -> Arr[()]: return tensor.cross_entropy(z, labels)[0]
    x, w = draw((4, 3)).astype(f32), draw((5, 3)).astype(f32)
    product = from_table(tensor.OPS['matmul_nt'])
    assert np.array_equal(grad(lambda w: np.sum(product(x, w)))(w), tensor.OPS['matmul_nt'].gradient.back(1, np.ones((4, 5), f32), None, (x, w), {}))


def test_columns_are_summed_in_the_bits_of_the_proved_kernel():
    from bendml.kernel.sums import col_sums
    for n, m in ((0, 3), (1, 1), (57, 31)):
        x, y = draw((n, m)).astype(f32), np.empty(m, f32)
        col_sums(n, m, x.ravel(), y)
        assert np.array_equal(tensor.col_sums(x), y)


@given(hnp.arrays(f32, st.tuples(st.integers(1, 5), st.integers(1, 9)), elements=st.floats(-2.**99, 2.**99, width=32)))
def test_to_i8_is_the_nearest(w):
    q, scale = tensor.to_i8(w)
    assert q.min() >= -127 and (abs(q*scale[:, None].astype(float) - w) <= scale[:, None]*.5001 + 1e-36).all()


@unhurried
@given(n=st.integers(1, 9), m=st.integers(1, 9), seed=st.integers(0, 99))
def test_loss_against_its_formula(n, m, seed):
    rng = np.random.default_rng(seed)
    z, labels = (5*rng.standard_normal((n, m))).astype(f32), rng.integers(0, m, n)
    e = np.exp(z.astype(float) - z.max(1, keepdims=True))
    p = e/e.sum(1, keepdims=True)
    loss, dz = tensor.cross_entropy(z, labels)
    assert np.isclose(loss, -np.log(p[np.arange(n), labels]).mean(), rtol=1e-5, atol=1e-6)
    p[np.arange(n), labels] -= 1
    assert np.allclose(dz, p/n, atol=1e-6) and tensor.hits(z, labels) == (z.argmax(1) == labels).sum()


REFUSED = {
    'labels too few': lambda: tensor.cross_entropy(np.zeros((2, 3), f32), np.array([0])),
    'labels too many': lambda: tensor.hits(np.zeros((2, 3), f32), np.array([0, 1, 2])),
    'a label out of range': lambda: tensor.hits(np.zeros((2, 3), f32), np.array([0, 3])),
    'a negative label': lambda: tensor.cross_entropy(np.zeros((2, 3), f32), np.array([0, -1])),
    'labels that are floats': lambda: tensor.cross_entropy(np.zeros((2, 3), f32), np.array([0., 1.])),
    'float64': lambda: tensor.matmul(np.zeros((2, 2)), np.zeros((2, 2), f32)),
    'a list': lambda: tensor.matmul([[1.]], np.zeros((1, 1), f32)),
    'a wrong size': lambda: tensor.matmul(np.zeros((2, 3), f32), np.zeros((4, 5), f32)),
    'three axes': lambda: tensor.matmul(np.zeros((2, 3, 1), f32), np.zeros((3, 1), f32)),
    'a read-only result': lambda: tensor.matmul(np.zeros((2, 2), f32), np.zeros((2, 2), f32), out=np.broadcast_to(f32(0), (2, 2))),
    'int8 without a scale': lambda: tensor.matvec(np.zeros((2, 2), np.int8), np.zeros(2, f32)),
    'an unknown order': lambda: tensor.matmul(np.zeros((2, 2), f32), np.zeros((2, 2), f32), order='slow'),
    'adding to nothing': lambda: tensor.col_sums(np.zeros((2, 2), f32), add=True),
    'ragged rows': lambda: tensor.mat([[1, 2], [3]]),
    'words': lambda: tensor.vec(['a']),
    'too large': lambda: tensor.vec([1e40]),
    'a negative size': lambda: tensor.zeros(-1, 2),
    'more than memory holds': lambda: tensor.zeros(2**40, 2**40),
    'a function numba cannot compile': lambda: tensor.map_cells(lambda x: open('f'), np.zeros(3, f32)),
    'no weights to change': lambda: tensor.descend(None, np.zeros(0, f32), 0.5),
    'a masked array': lambda: tensor.relu(np.ma.zeros((2, 2), f32)),
}


@pytest.mark.parametrize('name', REFUSED)
def test_a_refusal_has_a_name(name):
    with pytest.raises(TensorError, match='- expected : '): REFUSED[name]()


@pytest.mark.filterwarnings('error')
def test_complex_numbers_are_refused_not_cut():
    for values in (np.ones(2, complex), [1j, 2.], [np.complex64(1)]):
        with pytest.raises(TensorError, match='complex numbers'): tensor.vec(values)


def test_of_list_gives_none_for_a_wrong_count():
    assert tensor.of_list([1, 2, 3], 2, 2) is None and tensor.of_list([1, 2, 3, 4], 2, 2).tolist() == [[1, 2], [3, 4]]


# Anything at all. Each argument is sometimes what is wanted, and sometimes strange; the oracle is NumPy.
DTYPES = st.sampled_from([f32, f32, f32, f32, np.float64, np.float16, np.int8, np.uint16, np.int32, '>f4', bool, complex])
SPECIAL = st.sampled_from([0., -0., 1., -2., np.nan, np.inf, -np.inf, 3e38, 1e-45])


@st.composite
def anything(draw, ndim=None):
    "An array: often a good one, else of a strange type, strided, read-only, not aligned, empty; or no array."
    if draw(st.integers(0, 30)) == 0: return draw(st.sampled_from([None, 3, 'x', [1., 2.], np.ma.zeros(3, f32)]))
    shape = draw(st.lists(st.integers(0, 6), min_size=ndim or 0, max_size=ndim or 3))
    dtype = np.dtype(draw(DTYPES))
    values = draw(st.lists(SPECIAL, min_size=1, max_size=4))
    with np.errstate(all='ignore'):
        x = np.resize(np.array(values), shape)
        x = (np.nan_to_num(x, posinf=9, neginf=-9).clip(-9, 9) if dtype.kind in 'iub' else x).astype(dtype)
    match draw(st.integers(0, 5)):
        case 0 if x.ndim: x = np.repeat(x, 2, axis=-1)[..., ::2]
        case 1: x = np.asfortranarray(x)
        case 2: x = np.frombuffer(x.tobytes(), x.dtype).reshape(x.shape)  # read-only
        case 3 if x.ndim and x.size: x = np.frombuffer(b'?' + x.tobytes(), np.uint8)[1:].view(x.dtype).reshape(x.shape)
    return x


def wide(x): return np.asarray(x, np.float64)
def listed(x, w): return np.where(x[:, :, None] != 0, wide(x)[:, :, None]/255*wide(w), 0).sum(1)  # 0*NaN is left out


CALLS = {
    'matmul': (lambda a, b: tensor.matmul(a, b), lambda a, b: wide(a) @ wide(b), 2),
    'matmul in order': (lambda a, b: tensor.matmul(a, b, order='sequential'), lambda a, b: wide(a) @ wide(b), 2),
    'matmul_nt': (lambda a, b: tensor.matmul_nt(a, b), lambda a, b: wide(a) @ wide(b).T, 2),
    'matmul_nt in order': (lambda a, b: tensor.matmul_nt(a, b, order='sequential'), lambda a, b: wide(a) @ wide(b).T, 2),
    'matmul_tn': (lambda a, b: tensor.matmul_tn(a, b), lambda a, b: wide(a).T @ wide(b), 2),
    'matmul_tn in order': (lambda a, b: tensor.matmul_tn(a, b, order='sequential'), lambda a, b: wide(a).T @ wide(b), 2),
    'matmul out': (lambda a, b, o: tensor.matmul(a, b, out=o), lambda a, b, o: wide(a) @ wide(b), 3),
    'matmul add': (lambda a, b, o: tensor.matmul(a, b, out=o, add=True), None, 3),
    'matvec': (lambda w, x: tensor.matvec(w, x), lambda w, x: wide(w) @ wide(x) if w.dtype == f32 else None, 2),
    'matvec in order': (lambda w, x: tensor.matvec(w, x, order='sequential'), lambda w, x: wide(w) @ wide(x), 2),
    'matvec scale': (lambda w, x, s: tensor.matvec(w, x, scale=s), None, 3),
    'add_row': (tensor.add_row, lambda x, b: wide(x) + wide(b), 2),
    'col_sums': (tensor.col_sums, lambda x: wide(x).sum(0), 1),
    'col_sums add': (lambda x, o: tensor.col_sums(x, o, add=True), None, 2),
    'relu': (tensor.relu, lambda x: np.where(wide(x) > 0, wide(x), 0), 1),
    'relu_back': (tensor.relu_back, lambda d, y: np.where(wide(y) > 0, wide(d), 0), 2),
    'cross_entropy': (lambda z, l: tensor.cross_entropy(z, l)[0], None, 2),
    'hits': (tensor.hits, None, 2),
    'descend': (lambda w, d: tensor.descend(w, d, 0.5), None, 2),
    'map_cells': (lambda x: tensor.map_cells(double, x), lambda x: 2*wide(x), 1),
    'zip_cells': (lambda x, y: tensor.zip_cells(minus, x, y), lambda x, y: wide(x) - wide(y), 2),
    'to_bf16': (tensor.to_bf16, None, 1),
    'to_i8': (lambda x: tensor.to_i8(x)[0], None, 1),
    'to_i4': (lambda x: tensor.to_i4(x)[0], None, 1),
    'from_i4': (tensor.from_i4, None, 2),
    'matvec_i4': (tensor.matvec_i4, None, 3),
    'sparse': (lambda x: tensor.sparse(x).value, lambda x: x[x != 0]/255, 1),
    'sparse_matmul': (lambda x, w: tensor.sparse_matmul(tensor.sparse(x), w), lambda x, w: listed(x, w), 2),
    'sparse_matmul out': (lambda x, w, o: tensor.sparse_matmul(tensor.sparse(x), w, out=o), lambda x, w, o: listed(x, w), 3),
    'mat': (tensor.mat, None, 1),
    'vec': (tensor.vec, None, 1),
    'of_list': (lambda x: tensor.of_list(x, 2, 2), None, 1),
    'fill': (lambda x: tensor.fill(x, 2, 1.), None, 1),
    'zeros': (lambda x: tensor.zeros(2, x), None, 1),
}
def double(v): return 2*v
def minus(a, b): return a - b


def try_call(name, args):
    "Call it: a TensorError, or the right value."
    call, oracle, _ = CALLS[name]
    kept = [np.array(a) if isinstance(a, np.ndarray) else a for a in args]
    with np.errstate(all='ignore'):
        try: got = call(*args)
        except TensorError as e:
            assert '- expected : ' in str(e) and '- observed : ' in str(e)
            return 'refused'
        want = oracle(*kept) if oracle else None
        if want is not None:
            sums = np.isfinite(want) & (abs(want) < 1e37)   # near float32's largest number, sums may overflow
            assert np.shape(got) == np.shape(want)
            huge = any(np.isfinite(wide(a)).any() and (abs(wide(a)[np.isfinite(wide(a))]) > 1e18).any() for a in kept)
            assert huge or np.allclose(np.asarray(got)[sums], want[sums], rtol=1e-4, atol=1e-5)
            assert huge or np.array_equal(np.isnan(got), np.isnan(want))
    return 'right'


@st.composite
def calls(draw):
    name = draw(st.sampled_from(sorted(CALLS)))
    count = CALLS[name][2]
    if draw(st.booleans()):  # sizes that fit
        n, k = draw(st.integers(0, 9)), draw(st.integers(0, 9))
        x = np.resize(np.array(draw(st.lists(SPECIAL, min_size=1, max_size=5)), f32), (n, k))
        y = np.resize(np.array(draw(st.lists(SPECIAL, min_size=1, max_size=5)), f32), (k, n))
        if name in ('from_i4', 'matvec_i4'):
            q = draw(hnp.arrays(np.uint8, (n, 16*k)))
            return name, [q, np.resize(x, (n, k)), np.resize(y, 32*k)][:count]
        if name.startswith('sparse_matmul'): return name, [draw(hnp.arrays(np.uint8, (n, k))), np.resize(x, (k, 128*draw(st.integers(0, 2)))), np.zeros((n, 128), f32)][:count]
        if name in ('to_i4', 'sparse'): return name, [np.resize(x, (n, 32*k)) if name == 'to_i4' else draw(hnp.arrays(np.uint8, (n, k)))]
        other = {'matmul_nt': x, 'matmul_nt in order': x, 'matmul_tn': x, 'matmul_tn in order': x, 'add_row': y[:, :1].ravel() if n else np.zeros(k, f32),
                 'relu_back': x + x, 'zip_cells': x[::-1], 'descend': x[:, ::-1], 'hits': np.zeros(n, np.int32), 'cross_entropy': np.zeros(n, np.uint8)}
        second = other.get(name, (y[:, :1].ravel() if n else np.zeros(k, f32)) if 'matvec' in name else y)
        out = np.zeros(k, f32) if name == 'col_sums add' else np.zeros((n, n), f32) if 'matmul' in name else np.ones(n, f32)
        return name, [x, out if name == 'col_sums add' else second, out][:count]
    return name, [draw(anything(draw(st.sampled_from([None, 1, 2, 2])))) for _ in range(count)]


@pytest.mark.parametrize('name, a, b', [('matmul', (1, 1), (1, 2)), ('matmul_tn', (1, 1), (1, 2)), ('matmul_nt', (1, 1), (2, 1)), ('matmul', (3, 1), (1, 1)), ('matmul', (2, 3), (3, 1))])
def test_zero_times_nan_is_nan(name, a, b):
    for x, y in ((np.zeros(a, f32), np.full(b, np.nan, f32)), (np.full(a, np.nan, f32), np.zeros(b, f32))): assert np.isnan(getattr(tensor, name)(x, y)).all()


def test_every_public_function_is_called():
    functions = {name for name in tensor.__all__ if isinstance(getattr(tensor, name), type(test_fuzz))}
    assert functions == {name.split()[0] for name in CALLS}


@settings(deadline=None, max_examples=300, suppress_health_check=list(HealthCheck))
@given(calls())
def test_anything_is_refused_or_right(call): try_call(*call)


@pytest.mark.slow
def test_fuzz():
    "The same for a long time; each round with other random numbers."
    end, count = time.monotonic() + FUZZ, 0
    while time.monotonic() < end:
        @settings(deadline=None, max_examples=2000, database=None, suppress_health_check=list(HealthCheck))
        @given(calls())
        def rounds(call):
            nonlocal count
            count += 1
            if time.monotonic() < end: try_call(*call)
        rounds()
    print(f'{count} calls')


def test_every_law_of_the_list_form_is_confirmed():
    from bendml.laws import Law, prove
    from bendml.tensor import bands, lists, order, sizes, transpose
    laws = [v for m in (lists, transpose, bands, sizes, order) for v in vars(m).values() if isinstance(v, Law) and v.__module__ == m.__name__ and not v.assumed]
    assert len(laws) >= 40 and [l.__name__ for l in laws if prove(l).verdict != 'confirmed'] == []


def test_a_wrong_law_is_refuted():
    "The product the wrong way round, and a band too many."
    from bendml.laws import List, law, prove
    from bendml.tensor.lists import R, dot, matvec

    @law
    def unturned(w: List[List[R]], g: List[R], v: List[R]): return dot(g, matvec(w, v)) == dot(matvec(w, g), v)
    assert prove(unturned).verdict == 'refuted'
