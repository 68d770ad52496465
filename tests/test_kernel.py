"""Proved kernels: what they compute, what a call costs, how a proof is remembered. PYTEST_DONT_REWRITE"""
import json, os, subprocess, sys, time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from bendml.kernel import *
from bendml.kernel import KERNELS, Kernel
from bendml.kernel import sums
from bendml.kernel.command import own_kernels
from bendml.kernel.contracts import read_kernel
from bendml.kernel.functional import Cells, _run
from bendml.kernel.proofs import PROOFS, digest

ROOT = Path(__file__).resolve().parent.parent
rng = np.random.default_rng(0)
floats = lambda *shape: rng.standard_normal(int(np.prod(shape)), dtype=np.float32)
same = lambda a, b: np.array_equal(a.view(np.uint32), b.view(np.uint32))


def arguments(k, n, m, h):
    "Arguments of the right sizes for one of our kernels."
    zeros = lambda size: np.zeros(size, np.float32)
    return {
        'gemm': (n, m, h, m, 1, h, 1, floats(n*m), floats(m*h), zeros(n*h)),
        'matvec': (n, m, floats(n*m), floats(m), zeros(n)),
        'matvec_rows': (n//2, n, m, floats(n*m), floats(m), zeros(n)),
        'matvec_bands': (n, m, h + 1, floats(n*m), floats(m), zeros(n)),
        'col_sums': (n, m, floats(n*m), zeros(m)),
        'rope_pairs': (h, floats(h), floats(h), floats(2*h)),
        'rope_halves': (h, floats(h), floats(h), floats(2*h)),
        'halves_of_pairs': (h, floats(2*h), zeros(2*h)),
        'rope_by_halves': (h, floats(h), floats(h), floats(2*h), zeros(2*h)),
        'attend': (n + 1, m, h, n, floats(m*h), floats((n + 1)*m*h), floats((n + 1)*m*h), zeros(m*(n + 1)), zeros(m*h)),
        'softmax': (n + 1, floats(n + 1), zeros(n + 1)),
    }[k]

OURS = {k.__name__: k for k in vars(sums).values() if isinstance(k, Kernel)}
copied = lambda args: [a.copy() if isinstance(a, np.ndarray) else a for a in args]
arrays = lambda args: [a for a in args if isinstance(a, np.ndarray)]

@pytest.mark.slow
@pytest.mark.parametrize('name', OURS)
def test_compiled_equals_plain_bit_for_bit(name):
    "On shapes with 0 and 1 in them. Exponentials are left out: Python's and the compiler's may differ in the last bit."
    k = OURS[name]
    for n, m, h in [(0, 0, 0), (1, 1, 1), (0, 3, 2), (3, 0, 2), (2, 3, 0), (5, 4, 3), (7, 1, 6), (1, 8, 2)]:
        args = arguments(name, n, m, h)
        fast, slow = copied(args), copied(args)
        k(*fast)
        k.plain(*slow)
        for a, b in zip(arrays(fast), arrays(slow)):
            assert np.allclose(a, b, rtol=1e-6) if name in ('attend', 'softmax') else same(a, b)

@pytest.mark.parametrize('name', OURS)
def test_contracts_hold_when_run(name):
    "The plain function with its invariants and promises switched on."
    k = OURS[name]
    for n, m, h in [(0, 0, 0), (1, 1, 1), (3, 2, 2), (2, 3, 1)]:
        args = [Cells([np.float32(x) for x in a]) if isinstance(a, np.ndarray) else a for a in arguments(name, n, m, h)]
        assert _run(k.source, args) == ''

@pytest.mark.parametrize('threads', [1, 2])
def test_the_same_bits_on_any_number_of_threads(threads):
    import bendml.threads as t
    if threads > t.get_threads(): pytest.skip('fewer cores')
    args, before = arguments('gemm', 33, 17, 29), t.get_threads()
    one, two = copied(args), copied(args)
    t.set_threads(1); sums.gemm(*one)
    t.set_threads(threads); sums.gemm(*two)
    t.set_threads(before)
    assert same(one[-1], two[-1])


def test_every_kernel_of_the_package_is_shipped_with_its_proof():
    "Else an import would ask the solvers. `bendml kernels --record` writes them."
    shipped = json.loads(PROOFS.shipped.read_text())
    assert [k.__name__ for k in own_kernels() if k.unchecked is None and k.digest not in shipped] == []
    assert set(shipped) == {k.digest for k in own_kernels() if k.proof}

CVC5_GIVES_UP = {'keep', 'gemm_rows', 'gemm_tiles', 'gemm_panels', 'gemm_parallel', 'product_block'}  # on a few of their conditions: products of sizes

@pytest.mark.slow
def test_all_kernels_of_the_package_are_proved_anew():
    run = subprocess.run([sys.executable, '-c', 'from bendml.cli import main; main()', 'kernels'], capture_output=True, text=True, cwd=ROOT)
    last = run.stdout.splitlines()[-1]
    assert run.returncode == 0 and last.startswith('ALL KERNELS PROVED'), run.stdout[-3000:] + run.stderr[-1000:]
    kernels = int(last.split(': ')[1].split()[0])
    assert kernels == len([k for k in own_kernels() if k.proof])
    rows = [line.split() for line in run.stdout.splitlines()[1:-1] if line and line.split()[-1] in ('proved', 'confirmed')]
    assert len(rows) == kernels and {r[0] for r in rows if r[-1] == 'proved'} <= CVC5_GIVES_UP

def test_an_import_asks_no_solver(tmp_path):
    code = 'import bendml.laws.solvers as s; n = []; s.discharge, d = (lambda *a, **k: n.append(1) or d(*a, **k)), s.discharge; import bendml.kernel.proofs as p; p.discharge = s.discharge; import bendml.kernel.sums; print(len([x for x in n]), "numba" in __import__("sys").modules)'
    run = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, cwd=ROOT, env=os.environ | {'BENDML_CACHE': str(tmp_path)})
    assert not list(tmp_path.rglob('*.json')), 'something was proved'   # nothing new was remembered
    assert run.stdout.split()[-1] == 'False', run.stdout + run.stderr    # and numba was not loaded


FILE = '''
from bendml.kernel import *
STEP = {step}
@kernel
def f(n: Size, x: Buf["n", f32]):
    for i in range(0, n, STEP): x[i] = {value}
'''
def load(path):
    import importlib.util
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

def test_a_proof_is_of_one_source(tmp_path, monkeypatch):
    "Another value of a global, another letter in the body: another proof."
    monkeypatch.setenv('BENDML_CACHE', str(tmp_path/'cache'))
    seen = set()
    for n, (step, value) in enumerate([(1, 0), (2, 0), (1, 5)]):
        path = tmp_path/f'a{n}.py'
        path.write_text(FILE.format(step=step, value=value))
        seen.add(load(path).f.digest)
    assert len(seen) == 3
    before = set((tmp_path/'cache').rglob('*.json'))
    load(tmp_path/'a0.py')
    assert set((tmp_path/'cache').rglob('*.json')) == before and len(before) == 3

def test_globals_are_taken_when_the_kernel_is_defined(tmp_path, monkeypatch):
    monkeypatch.setenv('BENDML_CACHE', str(tmp_path/'cache'))
    path = tmp_path/'b.py'
    path.write_text(FILE.format(step=1, value=5))
    module = load(path)
    module.STEP = -1
    module.range = lambda *a: [100]
    x = np.zeros(4, np.float32)
    module.f(4, x)
    assert x.tolist() == [5]*4

def test_an_edited_file_is_refused(tmp_path, monkeypatch):
    path = tmp_path/'c.py'
    path.write_text('def f(n):\n    return n\n')
    f = load(path).f
    path.write_text('def f(n):\n    return n + 1\n')
    import linecache; linecache.clearcache()
    with pytest.raises(KernelError, match='not the code that runs'): kernel(f)


@kernel
def axpy(n: Size, a: f32, x: Buf["n", f32], y: Buf["n", f32]):
    for i in range(n): y[i] += a*x[i]
@kernel
def gather(n: Size, V: Size, ids: Buf["n", i32, "0 <= ids < V"], W: Buf["V", f32], out: Buf["n", f32]):
    for i in prange(n): out[i] = W[i64(ids[i])]

ok = lambda n=4: np.ones(n, np.float32)
frozen = ok(); frozen.flags.writeable = False
SHARED = np.ones(8, np.float32)
BAD_CALLS = [
    (axpy, (5, 1.0, ok(), ok()), 'x is not as required'), (axpy, (-1, 1.0, ok(), ok()), 'n is not as required'), (axpy, (4.0, 1.0, ok(), ok()), 'n is not as required'),
    (axpy, ('4', 1.0, ok(), ok()), 'n is not'), (axpy, (True, 1.0, ok(1), ok(1)), 'n is not'), (axpy, (2**70, 1.0, ok(), ok()), 'n is not'), (axpy, (None, 1.0, ok(), ok()), 'n is not'),
    (axpy, (4, 1.0, ok().astype(np.float64), ok()), 'x is not such a buffer'), (axpy, (4, 1.0, SHARED[::2], ok()), 'x is not such a buffer'),
    (axpy, (4, 1.0, ok().reshape(2, 2), ok()), 'x is not such'), (axpy, (4, 1.0, [1.0]*4, ok()), 'x is not such'), (axpy, (4, 1.0, None, ok()), 'x is not such'),
    (axpy, (4, 1.0, ok(), frozen), 'y is not such a buffer'), (axpy, (4, 1.0, SHARED[:4], SHARED[2:6]), 'x and y overlap'), (axpy, (4, 1.0, SHARED[:4], SHARED[:4]), 'overlap'),
    (axpy, (4, 'a', ok(), ok()), 'a is not'), (axpy, (4, 1j, ok(), ok()), 'a is not'), (axpy, (4, 1.0, np.frombuffer(b'\0'*17, np.uint8)[1:].view(np.float32), ok()), 'x is not such a buffer'),
    (axpy, (4, 1.0, ok().astype('>f4'), ok()), 'x is not such a buffer'),
    (gather, (2, 3, np.array([0, 3], np.int32), ok(3), ok(2)), 'a cell of ids'), (gather, (2, 3, np.array([-1, 0], np.int32), ok(3), ok(2)), 'a cell of ids'),
    (gather, (2, 3, np.array([0, 1], np.int64), ok(3), ok(2)), 'ids is not such a buffer'), (gather, (1, 0, np.array([0], np.int32), ok(0), ok(1)), 'a cell of ids'),
]
@pytest.mark.parametrize('n', range(len(BAD_CALLS)))
def test_a_call_that_breaks_the_contract_is_refused(n):
    k, args, problem = BAD_CALLS[n]
    before = copied(args)
    with pytest.raises(KernelError, match=problem) as e: k(*args)
    assert '- expected :' in str(e.value) and '- observed :' in str(e.value)
    assert all(np.array_equal(a, b) for a, b in zip(arrays(args), arrays(before)))

def test_good_calls_are_taken():
    y = ok()
    axpy(np.int64(4), 2, frozen, y)
    axpy(4, np.float32(1), SHARED[:4], y)
    assert y.tolist() == [4.0]*4
    nans = np.full(3, np.nan, np.float32)
    axpy(3, 1.0, nans, nans.copy())
    with pytest.raises(TypeError): axpy(4, 1.0)

@settings(max_examples=150, deadline=None)
@given(st.data())
def test_any_call_is_refused_or_right(data):
    "Whatever is passed: a named refusal, or the right value; never a crash of the process."
    def buffer():
        kind = data.draw(st.sampled_from(['f32', 'f64', 'strided', 'frozen', 'list', 'two axes', 'none']))
        size = data.draw(st.integers(0, 4))
        a = np.array(data.draw(st.lists(st.floats(width=32), min_size=size, max_size=size)), np.float32)
        frozen = a.copy(); frozen.flags.writeable = False
        return {'f32': a, 'f64': a.astype(np.float64), 'strided': np.repeat(a, 2)[::2], 'frozen': frozen, 'list': a.tolist(), 'two axes': a.reshape(1, -1), 'none': None}[kind]
    n, a, x, y = data.draw(st.sampled_from([0, 1, 2, 3, 4, -1, 2**48, 2**62, 1.5, np.int32(2)])), data.draw(st.floats(width=32)), buffer(), buffer()
    fits = all(isinstance(b, np.ndarray) and b.dtype == np.float32 and b.ndim == 1 and b.flags.c_contiguous and len(b) == n for b in (x, y)) and n == int(n) and type(n) is not float
    if fits and y.flags.writeable:
        with np.errstate(all='ignore'): want = y + np.float32(a)*x
        axpy(n, a, x, y)
        assert np.array_equal(y, want, equal_nan=True)
    else:
        with pytest.raises(KernelError): axpy(n, a, x, y)


def test_a_call_costs_little_more_than_numbas():
    "At most 3 microseconds over the dispatcher's own call, best of many, alternating."
    args = (4, 1.0, ok(), ok())
    axpy(*args); axpy.inner(*args)
    def one(f):
        start = time.perf_counter()
        for _ in range(1000): f(*args)
        return (time.perf_counter() - start)/1000
    best = [min(t) for t in zip(*[(one(axpy), one(axpy.inner)) for _ in range(20)])]
    assert best[0] - best[1] < 3e-6

@pytest.mark.slow
def test_where_nothing_can_be_kept_it_says_so_once(tmp_path):
    "A folder that cannot be written, and no home: compiled anyway, with one warning."
    path = tmp_path/'here'/'d.py'
    path.parent.mkdir()
    path.write_text("import sys, warnings\nimport numpy as np\nfrom bendml.kernel import *\nfrom numba.core import caching\n"
                    "caching._CacheLocator.ensure_cache_path = lambda self: (_ for _ in ()).throw(OSError('read-only'))\n"
                    '@kernel\ndef f(n: Size, x: Buf["n", f32]):\n    for i in range(n): x[i] = 1\n'
                    '@kernel\ndef g(n: Size, x: Buf["n", f32]):\n    for i in range(n): x[i] = 2\n'
                    'x = np.zeros(3, np.float32)\nwith warnings.catch_warnings(record=True) as w:\n    warnings.simplefilter("always")\n    f(3, x); g(3, x)\nprint(x.tolist(), len([v for v in w if "kept on disk" in str(v.message)]))')
    run = subprocess.run([sys.executable, path], capture_output=True, text=True, cwd=ROOT, env=os.environ | {'BENDML_CACHE': '/proc/none', 'PYTHONPATH': str(ROOT)})
    assert run.stdout.strip() == '[2.0, 2.0, 2.0] 1', run.stdout + run.stderr

def test_fastmath_must_be_safe_and_sums_in_order_have_none():
    def f(n: Size, x: Buf["n", f32]):
        for i in range(n): x[i] = x[i] + 1
    with pytest.raises(KernelError, match='fast, and not safe'): kernel(fastmath={'nnan'})(f)
    assert kernel(fastmath={'reassoc'})(f).proof
    with pytest.raises(KernelError, match='in any order'): kernel(fastmath={'reassoc'})(sums.col_sums.checked)


def test_the_command(tmp_path):
    from click.testing import CliRunner
    from bendml.cli import main
    def run(text):
        path = tmp_path/'mine.py'
        path.write_text(text)
        import linecache; linecache.clearcache()
        r = CliRunner().invoke(main, ['kernels', str(path)])
        return r.exit_code, r.output
    head = 'from bendml.kernel import *\n'
    good = '@kernel\ndef f(n: Size, x: Buf["n", f32]):\n    for i in range(n): x[i] = 1\n'
    bad = '@kernel\ndef g(n: Size, x: Buf["n", f32]):\n    x[n] = 1\n'
    code, out = run(head + good)
    assert code == 0 and out.splitlines()[-1].startswith('ALL KERNELS PROVED: 1 kernels')
    code, out = run(head + good + bad)
    assert code == 1 and out.splitlines()[-1] == 'SOME KERNELS FAIL: 1 of 2 refused' and 'index 0' in out
    code, out = run(head + bad.replace('@kernel', '@kernel(unchecked="old")'))
    assert code == 0 and 'unchecked: old' in out and '1 unchecked' in out.splitlines()[-1]
    code, out = run('x = 1\n')
    assert code == 1 and 'no kernels' in out
    code, out = run('x = 1/0\n')
    assert code == 1 and 'ZeroDivisionError' in out
