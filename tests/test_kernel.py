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
from bendml.kernel.functional import Cells, _run, old
from bendml.kernel.numbers import fadd
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

@pytest.mark.slow
def test_all_kernels_of_the_package_are_proved_anew():
    "By z3, and each condition confirmed by cvc5."
    run = subprocess.run([sys.executable, '-c', 'from bendml.cli import main; main()', 'kernels'], capture_output=True, text=True, cwd=ROOT)
    last = run.stdout.splitlines()[-1]
    assert run.returncode == 0 and last.startswith('ALL KERNELS PROVED'), run.stdout[-3000:] + run.stderr[-1000:]
    kernels = int(last.split(': ')[1].split()[0])
    assert kernels == len([k for k in own_kernels() if k.proof])
    rows = [line.split() for line in run.stdout.splitlines()[1:-1] if line and line.split()[-1] in ('proved', 'confirmed')]
    assert len(rows) == kernels and [r[0] for r in rows if r[-1] != 'confirmed'] == []

EVERY_MODULE = """
import importlib, pkgutil, bendml, bendml.laws.solvers as solvers
import bendml.kernel.sums
print('numba' in __import__('sys').modules)
for m in pkgutil.walk_packages(bendml.__path__, 'bendml.'):
    if not m.name.endswith('__main__'): importlib.import_module(m.name)
print(solvers._WORKERS, next(solvers._NUMBER))
"""

@pytest.mark.slow
def test_an_import_asks_no_solver(tmp_path):
    "Of any module: proofs of kernels, measures and divisors come with the package. `bendml kernels --record` writes them."
    run = subprocess.run([sys.executable, '-c', EVERY_MODULE], capture_output=True, text=True, cwd=ROOT, env=os.environ | {'BENDML_CACHE': str(tmp_path)})
    assert run.stdout.split('\n')[:2] == ['False', '{} 0'], run.stdout + run.stderr   # numba was not loaded for the sums; no process, no question
    assert not list(tmp_path.rglob('*.json')), 'something was proved'

def test_what_pure_functions_need_is_shipped(tmp_path):
    from bendml.laws.reflect import CHECKED, check_name, function_of
    shipped = json.loads(CHECKED.shipped.read_text())
    own = {check_name(c.text) for m in (sums,) for thing in vars(m).values() if (f := function_of(thing)) for c in f.checks}
    assert own and own <= set(shipped)

def test_a_measure_that_is_not_remembered_is_proved(tmp_path, monkeypatch):
    "Another text, another question; and what is remembered is not taken for the proof of a kernel."
    from bendml.laws import LawError, solvers
    from bendml.laws.reflect import pure
    monkeypatch.setenv('BENDML_CACHE', str(tmp_path))
    def shrinks(n: int) -> int: return 0 if n <= 12345 else shrinks(n - 7)
    def grows(n: int) -> int: return 0 if n <= 12345 else grows(n + 7)
    asked = lambda: solvers._NUMBER.__reduce__()[1][0]
    before = asked()
    pure(measure='n')(shrinks)
    assert asked() == before + 1 and len(list(tmp_path.rglob('*.json'))) == 1
    del shrinks.__reflected__
    pure(measure='n')(shrinks)
    assert asked() == before + 1
    with pytest.raises(LawError, match='may not end'): pure(measure='n')(grows)


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

def test_a_kernel_that_is_called_stays_what_it_was(tmp_path, monkeypatch):
    "Defined again with another contract, it is another kernel; the one that calls it was proved with the first, and runs it."
    monkeypatch.setenv('BENDML_CACHE', str(tmp_path/'cache'))
    f, g = FILE.format(step=1, value=5), '@kernel\ndef g(n: Size, x: Buf["n", f32]): f(n, x)\n'
    other = f.replace('x[i] = 5', 'x[i] = 7').replace('f32]):', 'f32]):\n    requires(n > 2)')
    for name, text in (('one', f + g), ('two', other), ('three', other + g)): (tmp_path/f'{name}.py').write_text(text)
    one, two = load(tmp_path/'one.py'), load(tmp_path/'two.py')
    one.f = two.f
    x = np.zeros(1, np.float32)
    one.g(1, x)
    assert x.tolist() == [5]
    with pytest.raises(KernelError, match='a call that may break a contract'): load(tmp_path/'three.py')

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
    "At most 3 microseconds over the dispatcher's own call, best of many, alternating; also with ten arguments."
    for k, args in ((axpy, (4, 1.0, ok(), ok())), (sums.gemm, (1, 1, 1, 1, 1, 1, 1, ok(1), ok(1), ok(1)))):
        k(*args); k.inner(*args)
        def one(f):
            start = time.perf_counter()
            for _ in range(1000): f(*args)
            return (time.perf_counter() - start)/1000
        best = [min(t) for t in zip(*[(one(k), one(k.inner)) for _ in range(20)])]
        assert best[0] - best[1] < 3e-6, k

SAYS = """
import sys, warnings
import numpy as np
from bendml.kernel import *
from bendml.laws import pure
from numba.core import caching
if 'no machine code' in sys.argv: caching._CacheLocator.ensure_cache_path = lambda self: (_ for _ in ()).throw(OSError('read-only'))
def f(n: Size, x: Buf["n", f32]):
    for i in range(n): x[i] = 1
def g(n: Size, x: Buf["n", f32]):
    for i in range(n): x[i] = 2
def h(n: int) -> int: return 0 if n <= 0 else h(n - 1)
with warnings.catch_warnings(record=True) as w:
    warnings.simplefilter('always')
    x, one, two = np.zeros(3, np.float32), kernel(f), kernel(g)
    pure(measure='n')(h)
    one(3, x); two(3, x)
print(x.tolist(), *(sum(what in str(v.message) for v in w) for what in ('kept on disk', 'proofs cannot be kept')))
"""

@pytest.mark.slow
@pytest.mark.parametrize('where', ['a file', 'a folder that is read-only', 'no folder at all'])
def test_where_nothing_can_be_kept_it_says_so_once(tmp_path, where):
    "Proofs, and machine code: made anyway, with one warning each."
    path, folder = tmp_path/'here'/'d.py', {'a file': tmp_path/'file'/'cache', 'a folder that is read-only': tmp_path/'folder', 'no folder at all': '/proc/none'}[where]
    path.parent.mkdir()
    path.write_text(SAYS)
    (tmp_path/'file').write_text('')
    (tmp_path/'folder').mkdir(mode=0o555)
    told = 0 if os.access(folder, os.W_OK) else 1   # who may write everywhere is told nothing
    run = subprocess.run([sys.executable, path, 'no machine code'], capture_output=True, text=True, cwd=ROOT, env=os.environ | {'BENDML_CACHE': str(folder), 'PYTHONPATH': str(ROOT)})
    assert run.stdout.strip() == f'[2.0, 2.0, 2.0] 1 {told}', run.stdout + run.stderr

def test_fastmath_must_be_safe_and_sums_in_order_have_none():
    def f(n: Size, x: Buf["n", f32]):
        for i in range(n): x[i] = x[i] + 1
    with pytest.raises(KernelError, match='fast, and not safe'): kernel(fastmath={'nnan'})(f)
    assert kernel(fastmath={'reassoc'})(f).proof
    with pytest.raises(KernelError, match='in any order'): kernel(fastmath={'reassoc'})(sums.col_sums.checked)
    def two(x: Buf["2", f32]): x[0] = x[0] + x[1]
    loose, exact = kernel(fastmath={'reassoc'})(two), kernel(two)
    def with_loose(x: Buf["2", f32]):
        loose(x)
        ensures(x[0] == fadd(old(x)[0], old(x)[1]))
    def with_exact(x: Buf["2", f32]):
        exact(x)
        ensures(x[0] == fadd(old(x)[0], old(x)[1]))
    assert kernel(with_exact).proof.values
    with pytest.raises(KernelError, match='in any order'): kernel(with_loose)


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
    assert code == 0 and out.splitlines()[-1].startswith('ALL KERNELS PROVED: 1 kernel,')
    code, out = run(head + good + bad)
    assert code == 1 and out.splitlines()[-1] == 'SOME KERNELS FAIL: 1 of 2 refused' and 'index 0' in out
    code, out = run(head + bad.replace('@kernel', '@kernel(unchecked="old")'))
    assert code == 0 and 'unchecked: old' in out and '1 unchecked' in out.splitlines()[-1]
    code, out = run('x = 1\n')
    assert code == 1 and 'no kernels' in out
    code, out = run('x = 1/0\n')
    assert code == 1 and 'ZeroDivisionError' in out
