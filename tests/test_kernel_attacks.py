"""Kernels that must be refused: what a verifier that is too trusting would let through. PYTEST_DONT_REWRITE"""
import math
import numba
import numpy as np
import pytest
from bendml.kernel import *

HUGE = 2**63
N = 16

class Yes:
    "Equal to everything."
    def __eq__(self, other): return True
    def __call__(self, *args): return range(10**6)
    __hash__ = object.__hash__
    __name__ = 'range'
yes = Yes()

def prange_(n): return range(2*n)
prange_.__name__ = 'prange'

@kernel
def fill(n: Size, x: Buf["n", f32], v: f32):
    for i in range(n): x[i] = v

@kernel
def copy(n: Size, x: Buf["n", f32], y: Buf["n", f32]):
    for i in range(n): y[i] = x[i]

@kernel
def needs_positive(n: Size, x: Buf["n", f32]):
    requires(n > 0)
    x[n - 1] = 0

ATTACKS = []
def attack(fn):
    ATTACKS.append(fn)
    return fn

@attack
def before_the_start(n: Size, x: Buf["n", f32]):
    for i in range(n): x[i] = x[i - 1]
@attack
def past_the_end(n: Size, x: Buf["n", f32]):
    for i in range(n + 1): x[i] = 0
@attack
def last_of_nothing(n: Size, x: Buf["n", f32]):
    x[n - 1] = 0
@attack
def loop_number_afterwards(n: Size, x: Buf["n", f32]):
    for i in range(n): x[i] = 0
    x[i] = 1
@attack
def name_of_a_loop_that_may_not_run(n: Size, x: Buf["n", f32]):
    for i in range(n): j = i
    x[j] = 0
@attack
def name_of_one_branch(n: Size, x: Buf["n", f32]):
    if n > 3: j = 0
    if n > 3: x[j] = 0
@attack
def index_from_memory(n: Size, ids: Buf["n", i64], x: Buf["n", f32]):
    for i in range(n): x[ids[i]] = 0
@attack
def contract_broken_on_the_way(n: Size, ids: Buf["n", i64, "0 <= ids < n"], x: Buf["n", f32]):
    for i in range(n): ids[i] = n
    for i in range(n): x[ids[i]] = 0
@attack
def a_cell_that_changed(ids: Buf["1", i64], x: Buf["10", f32]):
    a = ids[0]
    if 0 <= a and a < 10:
        for i in range(3):
            x[ids[0]] = 0
            ids[0] = i64(100)
@attack
def too_small_an_integer(n: Size, c: Buf["n", i8]):
    for i in range(n): c[i] = i
@attack
def small_integers_wrap(n: Size, c: Buf["n", u8], x: Buf["512", f32]):
    for i in range(n): x[c[i] + 1] = 0
@attack
def negated_small(n: Size, c: Buf["n", i8], x: Buf["129", f32]):
    for i in range(n): x[-c[i] if c[i] < 0 else 0] = 0
@attack
def int_of_unsigned(c: Buf["2", u8], x: Buf["512", f32]):
    x[int(c[0]) - int(c[1]) + 255] = 0
@attack
def a_float_as_index(n: Size, x: Buf["n", f32]):
    for i in range(n): x[int(x[i])] = 0
@attack
def a_product_that_overflows(n: Size, m: Size, k: Size, x: Buf["1", f32]):
    if n*m*k < 0: x[0] = 0
@attack
def overflow_seen_elsewhere(n: Size, x: Buf["10", i64]):
    if n < 1000: x[0] = n*n*n*n
    x[1] = n*n*n*n
@attack
def huge_constant(x: Buf["1", i64]):
    x[0] = HUGE
@attack
def huge_literal(x: Buf["1", i64]):
    x[0] = 9223372036854775808
@attack
def shift_out(n: Size, x: Buf["1", i64]):
    x[0] = n << 40
@attack
def overflowing_contract(n: Size, V: Size, ids: Buf["n", i64, "0 <= ids < V*V*V*V"], x: Buf[f32]):
    for i in range(n): x[ids[i] if ids[i] < len(x) else 0] = 0
@attack
def divided_by_nothing(n: Size, x: Buf["n + 1", f32]):
    x[n//n] = 0
@attack
def remainder_of_a_negative(n: int, x: Buf["10", f32]):
    x[10 % n] = 0
@attack
def step_of_zero(n: Size, s: Size, x: Buf["n", f32]):
    for i in range(0, n, s): x[i] = 0
@attack
def steps_past_the_end(n: Size, x: Buf["n", f32]):
    for i in range(0, n, 4):
        for j in range(4): x[i + j] = 0
@attack
def counting_down_too_far(n: Size, x: Buf["n", f32]):
    for i in range(n - 1, -2, -1): x[i] = 0
@attack
def counter_too_fast(n: Size, x: Buf["n", f32]):
    p = 0
    for i in range(n):
        x[p] = 0
        p += 2
@attack
def counter_in_a_branch(n: Size, x: Buf["n", f32], y: Buf["n", f32]):
    p = 0
    for i in range(n):
        y[p + 1] = 0
        if x[i] > 0: p += 1
@attack
def invariant_that_is_not(n: Size, x: Buf["n", f32]):
    p = 0
    for i in range(n):
        invariant(p <= i)
        x[p] = 0
        p += 1 if i < 5 else 2
@attack
def invariant_false_at_first(n: Size, x: Buf["n", f32]):
    p = 5
    for i in range(n):
        invariant(p == i)
        x[p] = 0
        p = i + 1
@attack
def while_without_measure(n: Size, x: Buf["n", f32]):
    i = 0
    while i < n:
        invariant(0 <= i)
        x[i] = 0
        i += 1
@attack
def while_forever(n: Size, x: Buf["n", f32]):
    i = 0
    while i < n:
        invariant(0 <= i)
        decreases(n - i)
        x[i] = 0
@attack
def while_past_the_end(n: Size, x: Buf["n", f32]):
    i = 0
    while i <= n:
        invariant(0 <= i)
        decreases(n + 1 - i)
        x[i] = 0
        i += 1
@attack
def leaves_early(n: Size, x: Buf["n", f32]):
    for i in range(n):
        if x[i] > 0: return i
@attack
def breaks(n: Size, x: Buf["n", f32]):
    for i in range(n):
        if x[i] > 0: break
@attack
def a_slice(n: Size, x: Buf["n", f32]):
    x[0:n + 1] = 0
@attack
def a_tuple_index(n: Size, x: Buf["n", f32]):
    x[0, 0] = 0
@attack
def another_name(n: Size, x: Buf["n", f32]):
    y = x
    y[n] = 0
@attack
def whole_buffer_arithmetic(n: Size, x: Buf["n", f32]):
    x += 1
@attack
def walrus(n: Size, x: Buf["n", f32]):
    x[(k := n)] = 0
@attack
def nested_function(n: Size, x: Buf["n", f32]):
    def g(i): x[i] = 0
    g(n)
@attack
def comprehension(n: Size, x: Buf["n", f32]):
    y = [x[i] for i in range(n + 1)]
@attack
def a_range_of_ones_own(n: Size, x: Buf["n", f32]):
    for i in prange_(n): x[i] = 0
@attack
def equal_to_everything(n: Size, x: Buf["n", f32]):
    for i in yes(n): x[i] = 0
@attack
def a_condition_in_arithmetic(n: Size, x: Buf["n", f32]):
    k = 0
    for i in range(n):
        k += x[i] != 0
        x[k] = 0
@attack
def changes_kind(n: Size, x: Buf["n", f32]):
    a = 0
    for i in range(n): a = x[i]
@attack
def unknown_call(n: Size, x: Buf["n", f32]):
    np.put(x, n, 0)
@attack
def shared_sum(n: Size, x: Buf["n", f32], y: Buf["1", f32]):
    s = f32(0)
    for i in prange(n): s += x[i]
    y[0] = s
@attack
def shared_cell(n: Size, x: Buf["n", f32], y: Buf["1", f32]):
    for i in prange(n): y[0] += x[i]
@attack
def neighbours(n: Size, x: Buf["n + 1", f32]):
    for i in prange(n): x[i] = x[i + 1]
@attack
def shared_scratch(n: Size, x: Buf["n", f32]):
    t = np.zeros(1, f32)
    for i in prange(n):
        t[0] = x[i]
        x[i] = t[0]
@attack
def numbas_prange(n: Size, x: Buf["n", f32]):
    for i in numba.prange(n): x[0] = i
@attack
def race_in_a_helper(n: Size, m: Size, x: Buf["n", f32]):
    for i in prange(m): fill(n, x, f32(i))
@attack
def race_by_remainder(n: Size, x: Buf["n", f32]):
    for i in prange(n): x[i % 7 if n > 7 else i] = 0
@attack
def overlapping_bands(n: Size, bands: Size, size: Size, x: Buf["n", f32]):
    requires(bands < 1000)
    for t in prange(bands):
        for i in range(min(n, t*size), min(n, t*size + size + 1)): x[i] = t
@attack
def two_loops_meet(n: Size, x: Buf["2*n", f32]):
    for i in prange(n):
        x[i] = 0
        x[2*i] = 1
@attack
def helper_with_a_wrong_length(n: Size, x: Buf["n", f32]):
    fill(n + 1, x, f32(0))
@attack
def helper_whose_contract_is_broken(n: Size, x: Buf["n", f32]):
    needs_positive(n, x)
@attack
def helper_with_a_negative_size(n: int, x: Buf[f32]):
    fill(n, x, f32(0))
@attack
def helper_with_another_type(n: Size, x: Buf["n", f64]):
    fill(n, x, f32(0))
@attack
def not_filled(n: Size, x: Buf["n", f32]):
    if n > 5:
        for i in range(n): x[i] = 0
    ensures(filled(x))
@attack
def filled_by_chance(n: Size, x: Buf["n", f32], y: Buf["n", f32]):
    for i in range(n):
        if y[i] > 0: x[i] = 0
    ensures(filled(x))
@attack
def filled_but_one(n: Size, x: Buf["n", f32]):
    for i in range(n - 1): x[i] = 0
    ensures(filled(x))
@attack
def written_twice(n: Size, x: Buf["n", f32]):
    for i in range(n): x[i] = 0
    for i in range(n): x[i] = 1
    ensures(once(x))
@attack
def impossible_contract(n: Size, x: Buf["n", f32]):
    requires(n > 3, n < 3)
    x[n + 7] = 0
@attack
def impossible_length(n: Size, x: Buf["-1", f32]):
    x[7] = 0
@attack
def contract_about_cells(n: Size, x: Buf["n", f32]):
    requires(x[0] > 0)
    x[n] = 0
@attack
def ensures_too_soon(n: Size, x: Buf["n", f32]):
    ensures(filled(x))
    for i in range(n): x[i] = 0
@attack
def negative_memory(n: int, x: Buf["10", f32]):
    y = np.zeros(n, f32)
    x[0] = len(y)
@attack
def scratch_too_small(n: Size, x: Buf["n", f32]):
    t = np.zeros(n, f32)
    t[n] = 0
@attack
def false_assertion(n: Size, x: Buf["n", f32]):
    assert n > 0
    x[0] = 0
@attack
def deleted(n: Size, x: Buf["n", f32]):
    del x
@attack
def made_again(n: Size, x: Buf["n", f32]):
    t = np.zeros(n, f32)
    if n > 1: t = np.zeros(1, f32)
    t[n - 1] = 0


@pytest.mark.parametrize('fn', ATTACKS, ids=[f.__name__ for f in ATTACKS])
def test_attack_is_refused(fn, monkeypatch, tmp_path):
    monkeypatch.setenv('BENDML_CACHE', str(tmp_path))
    with pytest.raises(KernelError) as e: kernel(fn)
    assert '- expected :' in str(e.value) and '- observed :' in str(e.value)


# Kernels that compute something else than they say

from bendml.kernel.functional import old
from bendml.kernel.numbers import Number, fadd, fmul, fnum
from bendml.laws import Array, pure, select

@pure(measure='p')
def dot(a: Array[int, Number], b: Array[int, Number], k: int, m: int, i: int, j: int, p: int) -> Number:
    if p <= 0: return fnum(0)
    return fadd(dot(a, b, k, m, i, j, p - 1), fmul(select(a, i*k + (p - 1)), select(b, (p - 1)*m + j)))

MATMUL = """
def f(n: Size, k: Size, m: Size, A: Buf["n*k", f32], B: Buf["k*m", f32], C: Buf["n*m", f32]):
    for i in prange(n):
        invariant(all(C[x*m + y] == dot(A, B, k, m, x, y, k) for x in range(i) for y in range(m)))
        for j in range(m):
            invariant(all(C[i*m + y] == dot(A, B, k, m, i, y, k) for y in range(j)))
            acc = f32(0)
            for p in range(k):
                invariant(acc == dot(A, B, k, m, i, j, p))
                acc += A[i*k + p]*B[p*m + j]
            C[i*m + j] = acc
    ensures(all(C[x*m + y] == dot(A, B, k, m, x, y, k) for x in range(n) for y in range(m)))
"""
SUM = """
def f(n: Size, x: Buf["n", f32], y: Buf["n", f32]):
    for i in range(n):
        invariant(all(y[j] == fadd(x[j], x[j]) for j in range(i)), all(x[j] == old(x)[j] for j in range(n)))
        y[i] = x[i] + x[i]
    ensures(all(y[j] == fadd(old(x)[j], old(x)[j]) for j in range(n)))
"""
MUTANTS = [(MATMUL, *m) for m in [
    ('acc = f32(0)', 'acc = f32(1)'), ('for p in range(k):', 'for p in range(1, k):'), ('for p in range(k):', 'for p in range(k - 1):'),
    ('acc += A[i*k + p]*B[p*m + j]', 'acc += B[p*m + j]*A[i*k + p]'), ('acc += A[i*k + p]*B[p*m + j]', 'acc = A[i*k + p]*B[p*m + j] + acc'),
    ('acc += A[i*k + p]*B[p*m + j]', 'acc += A[i*k + p]*B[p*m]'), ('acc += A[i*k + p]*B[p*m + j]', 'acc -= A[i*k + p]*B[p*m + j]'),
    ('C[i*m + j] = acc', 'C[i*m] = acc'), ('C[i*m + j] = acc', 'C[i*m + j] += acc'), ('C[i*m + j] = acc', 'C[i*m + j] = acc\n            C[0] = f32(0)'),
    ('            C[i*m + j] = acc\n', ''), ('for j in range(m):', 'for j in range(1, m):'), ('for i in prange(n):', 'for i in prange(1, n):'),
    ('                invariant(acc == dot(A, B, k, m, i, j, p))\n', ''), ('y, k) for x in range(n)', 'y, k - 1) for x in range(n)'),
    ('acc += A[i*k + p]*B[p*m + j]', 'acc += f32(2)*A[i*k + p]*B[p*m + j]'), ('acc += A[i*k + p]*B[p*m + j]', 'acc += A[i*k + p]*B[p*m + j]\n                A[0] = f32(0)')]]
MUTANTS += [(SUM, *m) for m in [('x[i] + x[i]', 'x[i] + f32(0)'), ('y[i] = x[i] + x[i]', 'y[i] = x[i] + x[i]\n        x[i] = f32(0)'), ('x[i] + x[i]', 'f32(2)*x[i]'), ('all(y[j]', 'all(x[j]')]]

def made(text, tmp_path, n):
    "A function from text, in a file, since the source of a kernel is read from its file."
    import importlib.util
    path = tmp_path/f'kernel_{n}.py'
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    module.__dict__.update({k: v for k, v in globals().items() if k[:2] != '__'})
    spec.loader.exec_module(module)
    return module.f

@pytest.mark.parametrize('text', [MATMUL, SUM])
def test_right_claims_are_proved(text, tmp_path, monkeypatch):
    monkeypatch.setenv('BENDML_CACHE', str(tmp_path))
    proof = kernel(made(text, tmp_path, 0)).proof
    assert proof.confirmed == proof.conditions and proof.values > 0

@pytest.mark.parametrize('n', range(len(MUTANTS)))
def test_wrong_claims_are_refused(n, tmp_path, monkeypatch):
    monkeypatch.setenv('BENDML_CACHE', str(tmp_path))
    text, before, after = MUTANTS[n]
    assert before in text
    with pytest.raises(KernelError): kernel(made(text.replace(before, after), tmp_path, n))
