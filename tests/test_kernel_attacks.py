"""Kernels that must be refused: what a verifier that is too trusting would let through. PYTEST_DONT_REWRITE"""
import math
import numba
import numpy as np
import pytest
from bendml.kernel import *
from bendml.kernel.search import run_watched
from bendml.simd import load, load_low4, splat, store
from bendml.tiles import tile, tile_store

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

@kernel
def fill_to(lo: Size, hi: Size, x: Buf[f32]):
    requires(hi <= len(x))
    for i in range(lo, hi): x[i] = 0

@kernel
def scatter_add(n: Size, V: Size, ids: Buf["n", i64, "0 <= ids < V"], y: Buf["V", f32]):
    for i in range(n): y[ids[i]] += 1

@kernel
def move(n: Size, x: Buf["n", f32], y: Buf["n", f32]):
    for i in prange(n): y[i] = x[n - 1 - i]

@kernel
def last(n: Size, x: Buf["n", f32]):
    requires(n > 0)
    return n - 1

@kernel
def spoil(n: Size, ids: Buf["n", i64]):
    for i in range(n): ids[i] = n

@kernel
def spoil_first(n: Size, ids: Buf["n", i64]):
    requires(n > 0)
    ids[0] = n
    return 0

@kernel(unchecked="its two buffers are one in an attack")
def look_and_write(n: Size, a: Buf["n", i64], b: Buf["n", i64], x: Buf["n", f32]):
    for i in range(n):
        if 0 <= a[i] < n:
            b[i] = n
            x[a[i]] = 0

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

@attack
def mod_const_race(n: Size, x: Buf["8", f32]):
    for i in prange(n): x[i & 7] += 1
@attack
def swap_race(n: Size, x: Buf["n", f32]):
    for i in prange(n):
        t = x[i]
        x[i] = x[n - 1 - i]
        x[n - 1 - i] = t
@attack
def xor_like(n: Size, x: Buf["2*n", f32]):
    for i in prange(n): x[2*i] = x[(2*i + 2) % (2*n)]
@attack
def rows_overlap(n: Size, m: Size, x: Buf["n*m + 1", f32]):
    for i in prange(n):
        for j in range(m + 1): x[i*m + j] = 1
@attack
def rows_bad_stride(n: Size, m: Size, s: Size, x: Buf[f32]):
    requires(n*s + m <= len(x))
    for i in prange(n):
        for j in range(m): x[i*s + j] = 1
@attack
def rows_vector(n: Size, m: Size, x: Buf["n*m + 7", f32]):
    for i in prange(n):
        for j in range(0, m, 8): store(x, i*m + j, splat(f32(0)))
@attack
def tile_rows(n: Size, x: Buf["n*16", f32]):
    requires(n > 5)
    tile_store(x, 0, 17, tile())
@attack
def tile_neg_stride(n: Size, s: int, x: Buf["n*96", f32]):
    requires(n > 0, s <= 16)
    tile_store(x, 0, s, tile())
@attack
def tile_race(n: Size, x: Buf["n*96 + 96", f32]):
    for i in prange(n): tile_store(x, i*96, 17, tile())
@attack
def neg_step2(n: Size, x: Buf["n", f32]):
    for i in range(n - 1, -1, -2): x[i - 1] = 0
@attack
def step_over(n: Size, s: Size, x: Buf["n", f32]):
    requires(s > 0)
    for i in range(0, n, s): x[i + s - 1] = 0
@attack
def step_count(n: Size, x: Buf["n", f32]):
    p = 0
    for i in range(0, n, 3):
        x[p] = 0
        p += 4
@attack
def step_after(n: Size, x: Buf["n", f32]):
    p = 0
    for i in range(0, n, 3): p += 3
    x[p - 1 if p > 0 else 0] = 0
@attack
def u8_under(c: Buf["2", u8], x: Buf["256", f32]):
    x[i64(c[0]) - i64(c[1])] = 0
@attack
def u16_sum(c: Buf["2", u16], x: Buf["65536", f32]):
    x[i64(c[0]) + i64(c[1])] = 0
@attack
def i64_mul(a: Buf["2", i64], x: Buf["1", i64]):
    x[0] = a[0]*a[1]
@attack
def i64_neg(a: Buf["1", i64], x: Buf["1", i64]):
    x[0] = -a[0]
@attack
def ovf_loop(n: Size, x: Buf["1", i64]):
    p = 1
    for i in range(n): p += p
    x[0] = p
@attack
def ovf_cmp(a: Buf["2", i64], x: Buf["10", f32]):
    if a[0] - a[1] > 0: x[0] = 0
@attack
def ovf_step(n: Size, a: Buf["1", i64], x: Buf["10", f32]):
    s = a[0]
    if s > 0:
        for i in range(0, 9, s): x[i] = 0
@attack
def neg_floor(n: Size, x: Buf["n + 1", f32]):
    for i in range(n + 1): x[(i - 1)//2] = 0
@attack
def neg_mod(n: int, x: Buf["3", f32]):
    x[n % 4] = 0
@attack
def div_var(n: Size, k: int, x: Buf["n + 1", f32]):
    requires(k != 0)
    x[n // k if n // k > 0 else 0] = 0
@attack
def shift_neg(n: int, x: Buf["10", f32]):
    requires(-4 <= n, n < 10)
    x[n >> 1] = 0
@attack
def mask_neg(n: int, x: Buf["7", f32]):
    x[n & 7] = 0
@attack
def shift_big(n: Size, x: Buf["1", i64]):
    requires(n < 2**40)
    x[0] = n << 30
@attack
def bool_stale(n: Size, x: Buf["n + 1", f32]):
    ok = n > 0
    for i in range(n + 1):
        if ok: x[i] = 0
        ok = i > 3
    if ok: x[n + 1] = 0
@attack
def bool_or(n: Size, x: Buf["n", f32]):
    for i in range(n):
        if i > 0 or x[i - 1] > f32(0): x[i] = 0
@attack
def bool_not(n: Size, k: int, x: Buf["n", f32]):
    if not (k < 0 and k >= n): x[k] = 0
@attack
def empty_max(n: Size, x: Buf["n", f32]):
    x[max(n - 1, 0)] = 0
@attack
def empty_tail(n: Size, x: Buf["n", f32]):
    for i in range(n//8): store(x, 8*i, splat(f32(0)))
    store(x, n - 8, splat(f32(0)))
@attack
def grown_bound(n: Size, x: Buf["n", f32]):
    k = n
    for i in range(n):
        k += 1
        for j in range(k): x[j] = 0
@attack
def while_late_inv(n: Size, x: Buf["n", f32]):
    i = n
    while i >= 0:
        invariant(i <= n)
        decreases(i + 1)
        x[i] = 0
        i -= 1
@attack
def nested_inner(n: Size, m: Size, x: Buf["n*m", f32], s: Buf["n", f32]):
    for i in prange(n):
        for j in prange(m): s[i] += x[i*m + j]
@attack
def nested_scratch(n: Size, m: Size, x: Buf["n*m", f32]):
    for i in prange(n):
        t = np.zeros(1, f32)
        for j in prange(m):
            t[0] = x[i*m + j]
            x[i*m + j] = t[0]
@attack
def call_alias(n: Size, x: Buf["n", f32]):
    move(n, x, x)
@attack
def call_bands(n: Size, b: Size, x: Buf["n", f32]):
    requires(b > 0)
    for t in prange(b): fill_to(min(n, t*(n//b)), min(n, t*(n//b) + n//b + 1), x)
@attack
def call_ids(n: Size, V: Size, ids: Buf["n", i64], y: Buf["V", f32]):
    scatter_add(n, V, ids, y)
@attack
def call_ids_changed(n: Size, V: Size, ids: Buf["n", i64, "0 <= ids < V"], y: Buf["V - 1", f32]):
    requires(V > 1)
    scatter_add(n, V - 1, ids, y)
@attack
def call_result(n: Size, x: Buf["n + 1", f32]):
    x[last(n, x) + 1] = 0
@attack
def call_big2(n: Size, m: Size, x: Buf[f32]):
    requires(n*m < 2**62)
    fill_to(n*m, 0, x)
@attack
def call_int_scratch(n: Size, V: Size, y: Buf["V", f32]):
    ids = np.empty(n, i64)
    scatter_add(n, V, ids, y)
@attack
def int_other_iteration(n: Size, c: Buf["n + 1", i64]):
    for i in prange(n): c[i] = c[i + 1]
@attack
def sorted_assumed(n: Size, off: Buf["n + 1", i64, "0 <= off <= n"], x: Buf["n", f32]):
    for i in prange(n):
        for j in range(off[i], off[i + 1]): x[j] = 1
@attack
def perm_assumed(n: Size, p: Buf["n", i64, "0 <= p < n"], x: Buf["n", f32]):
    for i in prange(n): x[p[i]] = f32(i)
@attack
def same_cell_twice(ids: Buf["1", i64], x: Buf["10", f32]):
    if 0 <= ids[0] and ids[0] < 10:
        ids[0] = ids[0] + 1 if ids[0] < 100 else 0
        x[ids[0]] = 0
@attack
def element_empty(n: Size, V: Size, ids: Buf["n", i64, "0 <= ids < V"], x: Buf["V", f32]):
    x[0] = 0
@attack
def element_other(n: Size, V: Size, ids: Buf["n", i64, "0 <= ids <= V"], x: Buf["V", f32]):
    for i in range(n): x[ids[i]] = 0
@attack
def once_mod(n: Size, x: Buf["n", f32]):
    for i in range(2*n): x[i % n if n > 0 else 0] = 0
    ensures(once(x))
@attack
def filled_step(n: Size, x: Buf["n", f32]):
    for i in range(0, n, 2): x[i] = 0
    ensures(filled(x))
@attack
def filled_rows(n: Size, m: Size, x: Buf["n*m", f32]):
    for i in range(n):
        for j in range(i % 2, m): x[i*m + j] = 0
    ensures(filled(x))
@attack
def filled_tri(n: Size, x: Buf["n*n", f32]):
    for i in range(n):
        for j in range(i): x[i*n + j] = 0
        for j in range(i + 1, n): x[i*n + j] = 0
    ensures(filled(x))
@attack
def low4_past(n: Size, w: Buf["n//2", u8], y: Buf["n", f32]):
    for i in range(0, n, 16):
        store(y, i, load_low4(w, i//2))
@attack
def ensures_int(n: Size, x: Buf["n", f32]):
    k = 0
    for i in range(n):
        if x[i] > f32(0): k += 1
    ensures(k == n)
    return k
class a: b_c = 3
class a_b: c = 1000
@attack
def filled_by_two_rounds_that_contradict(n: Size, m: Size, x: Buf["n + 1", f32]):
    requires(m == 1)
    x[0] = 0
    for i in range(n):
        for j in range(0, 2*i, 2):
            if i < 0:
                x[i*m + j] = 0
                x[i*m + j + 1] = 0
    ensures(filled(x))
@attack
def one_product_too_many(n: Size, k: Size, m: Size, A: Buf["n*k", f32], B: Buf["k*m", f32], C: Buf["n*m", f32]):
    for i in prange(n):
        for j in range(m):
            for p in range(k + 1): C[i*m + j] += A[i*k + p]*B[p*m + j]
@attack
def wrong_stride(n: Size, k: Size, m: Size, A: Buf["n*k", f32], B: Buf["k*m", f32], C: Buf["n*m", f32]):
    for i in range(n):
        for j in range(m):
            for p in range(k): C[i*k + j] += A[i*k + p]*B[p*m + j]
@attack
def embedding_over_tokens(n: Size, V: Size, D: Size, ids: Buf["n", i64, "0 <= ids < V"], dW: Buf["V*D", f32], dy: Buf["n*D", f32]):
    for t in prange(n):
        for d in range(D): dW[ids[t]*D + d] += dy[t*D + d]

# A cell that was looked at, and is another one, or another number, when it is used
@attack
def guard_of_another_cell(n: Size, ids: Buf["n", i64], x: Buf["n", f32]):
    for i in range(n):
        if 0 <= ids[i] < n: x[ids[n - 1 - i]] = 0
@attack
def guard_that_may_be_left_out(n: Size, ids: Buf["n", i64], x: Buf["n", f32]):
    for i in range(n):
        if x[i] > f32(0) or 0 <= ids[i] < n: x[ids[i]] = 0
@attack
def guard_overwritten(n: Size, ids: Buf["n", i64], x: Buf["n", f32]):
    for i in range(n):
        if 0 <= ids[i] < n:
            ids[i] = n
            x[ids[i]] = 0
@attack
def guard_overwritten_by_another_index(n: Size, ids: Buf["n", i64], x: Buf["n", f32]):
    for i in range(n):
        if 0 <= ids[i] < n:
            ids[n - 1 - i] = n
            x[ids[i]] = 0
@attack
def guard_overwritten_by_another_name(n: Size, ids: Buf["n", i64], x: Buf["n", f32]):
    look_and_write(n, ids, ids, x)
@attack
def guard_overwritten_by_a_call(n: Size, ids: Buf["n", i64], x: Buf["n", f32]):
    for i in range(n):
        if 0 <= ids[i] < n:
            spoil(n, ids)
            x[ids[i]] = 0
@attack
def guard_overwritten_in_a_condition(n: Size, ids: Buf["n", i64], x: Buf["n", f32]):
    if n > 0 and 0 <= ids[0] < n and (x[0] > f32(0) or spoil_first(n, ids) == 0): x[ids[0]] = 0
@attack
def guard_overwritten_on_one_way_of_an_expression(n: Size, ids: Buf["n", i64], x: Buf["n", f32]):
    if n > 0 and 0 <= ids[0] < n:
        k = spoil_first(n, ids) if x[0] > f32(0) else ids[0]
        x[ids[0]] = f32(k)
@attack
def guard_overwritten_on_one_way(n: Size, ids: Buf["n", i64], x: Buf["n", f32]):
    for i in range(n):
        if 0 <= ids[i] < n:
            if x[i] > f32(0): ids[i] = n
            x[ids[i]] = 0
@attack
def guard_overwritten_between_two_targets(n: Size, ids: Buf["n", i64], x: Buf["n", f32]):
    for i in range(n):
        if 0 <= ids[i] < n: ids[i], x[ids[i]] = n, f32(0)
@attack
def guard_overwritten_in_the_round_before(n: Size, ids: Buf["n", i64], x: Buf["n", f32], y: Buf["n", f32]):
    if n > 0 and 0 <= ids[0] < n:
        for i in range(n):
            t = x[ids[0]]
            ids[0] = n
@attack
def guard_overwritten_in_a_loop(n: Size, ids: Buf["n", i64], x: Buf["n", f32]):
    if n > 0 and 0 <= ids[0] < n:
        for i in range(n):
            ids[i] = n
            if 0 <= ids[0] < n: x[ids[0]] = 1
        x[ids[0]] = 0
@attack
def guard_of_a_while_overwritten(n: Size, ids: Buf["n", i64], x: Buf["n", f32]):
    k = n
    while k > 0 and 0 <= ids[0] < n:
        invariant(k <= n)
        decreases(k)
        k -= 1
        ids[0] = n
        x[ids[0]] = 0
@attack
def guard_overwritten_in_a_while(n: Size, ids: Buf["n", i64], x: Buf["n", f32]):
    k = n
    if n > 0 and 0 <= ids[0] < n:
        while k > 0:
            invariant(0 <= k, k <= n)
            decreases(k)
            t = x[ids[0]]
            ids[0] = n
            k -= 1
@attack
def guard_overwritten_by_another_iteration(n: Size, ids: Buf["n", i64], x: Buf["n", f32], y: Buf["n", f32]):
    for i in prange(n):
        if 0 <= ids[0] < n: y[i] = x[ids[0]]
        ids[i] = n
@attack
def one_more_than_was_looked_at(n: Size, m: Size, counts: Buf["n", i64, "0 <= counts <= m"], x: Buf["m", f32]):
    for i in range(n):
        if counts[i] < m:
            counts[i] += 1
            x[counts[i]] = 0

SHOWN = {   # the line and the sizes that a refusal shows
    one_product_too_many: ('A[i * k + p]', 'n=1, k=0, m=1, at i=0, j=0, p=0', 'A[0], and A has 0 cells'), wrong_stride: ('C[i * k + j]', 'n=2, k=2, m=1, at i=1, j=0, p=1'),
    embedding_over_tokens: ('dW[ids[t] * D + d]', 'n=2, V=1, D=1', 'iterations 0 and 1 meet in dW[0]'), overlapping_bands: ('x[i] = t', 'n=1, bands=2, size=0', 'meet in x[0]'),
    call_alias: ('x[n - 1 - i]', 'n=2'), a_product_that_overflows: ('n * m', 'n=4294967296, m=4294967296, k=0'), empty_tail: ('store(x, n - 8, splat(f32(0)))', 'n=0'), rows_vector: ('store(x, i * m + j', 'n=2, m=1'),
    shared_cell: ('y[0] += x[i]', 'n=2'), neighbours: ('x[i] = x[i + 1]', 'n=2', 'meet in x[1]'), index_from_memory: ('x[ids[i]] = 0', 'n=1, at i=0'), filled_but_one: ('filled(x)', 'n=1')}

@pytest.mark.parametrize('fn', ATTACKS, ids=[f.__name__ for f in ATTACKS])
def test_attack_is_refused(fn, monkeypatch, tmp_path):
    monkeypatch.setenv('BENDML_CACHE', str(tmp_path))
    with pytest.raises(KernelError) as e: kernel(fn)
    assert '- expected :' in str(e.value) and '- observed :' in str(e.value)
    if fn in SHOWN:
        line, sizes, *run = SHOWN[fn]
        for shown in (f'- line     : {line}', f'- smallest : {sizes}', *run): assert shown in str(e.value), str(e.value)


# Kernels that are right, and are accepted

RIGHT = []
def right(fn):
    RIGHT.append(fn)
    return fn

@right
def right_evenodd(n: Size, x: Buf["2*n", f32]):
    for i in prange(n):
        x[2*i] = x[2*i + 1] + f32(1)
@right
def right_down3(n: Size, x: Buf["n", f32]):
    for i in range(n - 1, -1, -3): x[i] = f32(i)
@right
def right_steps(n: Size, x: Buf["4*n", f32]):
    for i in range(0, 4*n, 4):
        for j in range(4): x[i + j] = f32(i*j)
@right
def right_nested(n: Size, m: Size, x: Buf["n*m", f32], y: Buf["n*m", f32]):
    for i in prange(n):
        for j in prange(m): y[i*m + j] = x[i*m + j] + f32(i - j)
@right
def right_scratch(n: Size, m: Size, x: Buf["n*m", f32]):
    for i in prange(n):
        t = np.zeros(m, f32)
        for j in range(m): t[j] = x[i*m + j]*f32(2)
        for j in range(m): x[i*m + j] = t[m - 1 - j]
@right
def right_gather8(n: Size, m: Size, ids: Buf["n", u8, "ids < m"], x: Buf["m", f32], y: Buf["n", f32]):
    for i in prange(n): y[i] = x[i64(ids[i])]
@right
def right_sum_int(n: Size, c: Buf["n", i8], x: Buf["1", f32]):
    s = 0
    for i in range(n):
        invariant(-128*i <= s, s <= 127*i)
        s += i64(c[i])
    x[0] = f32(s)
@right
def right_while(n: Size, x: Buf["n", f32]):
    i = n
    while i > 0:
        invariant(0 <= i, i <= n)
        decreases(i)
        i -= 1
        x[i] = f32(i)
@right
def right_binary(n: Size, x: Buf["n", f32], y: Buf["1", i64, "0 <= y"]):
    lo, hi = 0, n
    while lo < hi:
        invariant(0 <= lo, lo <= hi, hi <= n)
        decreases(hi - lo)
        mid = (lo + hi)//2
        if x[mid] < f32(0.5): lo = mid + 1
        else: hi = mid
    y[0] = lo
@right
def right_bools(n: Size, b: bool, x: Buf["n", f32]):
    for i in range(n):
        c = b and x[i] > f32(0) or i % 2 == 0
        x[i] = f32(1) if c else f32(0)
@right
def right_ret(n: Size, x: Buf["n", f32]):
    if n > 0: x[last(n, x)] = 1
@right
def right_bound_kept(n: Size, x: Buf["n", f32]):
    k = n
    for i in range(k):
        k = 0
        x[i] = f32(k)
@right
def right_u8(n: Size, c: Buf["n", u8], d: Buf["n", u8]):
    for i in range(n): d[i] = (i64(c[i]) + 200) % 256
@right
def right_filled2(n: Size, m: Size, x: Buf["n*m", f32]):
    for i in range(n):
        for j in range(m//2): x[i*m + 2*j] = 1
        for j in range(m//2): x[i*m + 2*j + 1] = 2
        if m % 2 == 1: x[i*m + m - 1] = 3
@right
def right_transpose(n: Size, m: Size, x: Buf["n*m", f32], y: Buf["n*m", f32]):
    for i in prange(n):
        for j in range(m): y[j*n + i] = x[i*m + j]
    ensures(filled(y), once(y))
@right
def right_count_to_the_top(n: Size, m: Size, ids: Buf["n", i64, "0 <= ids < m"], counts: Buf["m", i64, "0 <= counts <= n"]):
    for i in range(n):
        if counts[ids[i]] < n: counts[ids[i]] += 1
@right
def right_look_first(n: Size, m: Size, ids: Buf["n", i64], x: Buf["m", f32], y: Buf["n", f32]):
    for i in prange(n):
        if i > 0 and 0 <= ids[i - 1] and ids[i - 1] < m: y[i] = x[ids[i - 1]]
@right
def right_look_on_both_ways(n: Size, m: Size, ids: Buf["n", i64], x: Buf["m", f32]):
    for i in range(n):
        if not (ids[i] < 0 or m <= ids[i]):
            if n > 2: t = x[ids[i]]
            else: t = f32(0)
            x[ids[i]] = t

@pytest.mark.parametrize('fn', RIGHT, ids=[f.__name__ for f in RIGHT])
def test_what_is_right_is_accepted_and_runs_clean(fn, monkeypatch, tmp_path):
    monkeypatch.setenv('BENDML_CACHE', str(tmp_path))
    source = kernel(fn).source
    assert not any(run_watched(source, {'n': n, 'm': m}) for n in range(6) for m in range(5))


# Names that could be taken for each other

@kernel
def two_names(x: Buf["10", f32]):
    x[a.b_c] = 1
    if a_b.c < 10: x[a_b.c] = 2

@kernel
def names_of_the_check(n: Size, at_ids: Size, cell_of_ids: Size, place_of_ids: Size, ids: Buf["n", i64, "0 <= ids < n"], x: Buf["at_ids + cell_of_ids + place_of_ids + 1", f32]):
    x[at_ids + cell_of_ids + place_of_ids] = 1

@kernel
def negative_rounds(n: Size, x: Buf["n", f32], y: Buf["n", f32]):
    for j in range(n):
        t = x[j]
        y[j] = t
    for i in prange(n):
        t = f32(0)
        t += f32((i - 7)//3) + f32((i - 7) % 3) + f32((3 - i) >> 1) + f32((2 - i) & 3)
        y[i] = t if i - 1 < 0 else y[i] + x[i - 1]

@pytest.mark.slow
def test_compiled_code_means_the_same():
    x, y, z = np.zeros(10, np.float32), np.zeros(4, np.float32), np.zeros(10, np.float32)
    two_names(x)
    assert x.tolist() == [0, 0, 0, 1, 0, 0, 0, 0, 0, 0]
    names_of_the_check(5, 1, 1, 1, np.zeros(5, np.int64), y)
    assert y.tolist() == [0, 0, 0, 1]
    negative_rounds(10, x, y := np.zeros(10, np.float32))
    negative_rounds.plain(10, x, z)
    assert np.array_equal(y, z)


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
    ('acc += A[i*k + p]*B[p*m + j]', 'acc += A[i*k + p]*B[p + j*k]'), ('acc += A[i*k + p]*B[p*m + j]', 'acc += A[i*k + p]*B[p*m]'), ('acc += A[i*k + p]*B[p*m + j]', 'acc -= A[i*k + p]*B[p*m + j]'),
    ('C[i*m + j] = acc', 'C[i*m] = acc'), ('C[i*m + j] = acc', 'C[i*m + j] += acc'), ('C[i*m + j] = acc', 'C[i*m + j] = acc\n            C[0] = f32(0)'),
    ('            C[i*m + j] = acc\n', ''), ('for j in range(m):', 'for j in range(1, m):'), ('for i in prange(n):', 'for i in prange(1, n):'),
    ('                invariant(acc == dot(A, B, k, m, i, j, p))\n', ''), ('y, k) for x in range(n)', 'y, k - 1) for x in range(n)'),
    ('acc += A[i*k + p]*B[p*m + j]', 'acc += f32(2)*A[i*k + p]*B[p*m + j]'), ('acc += A[i*k + p]*B[p*m + j]', 'acc += A[i*k + p]*B[p*m + j]\n                A[0] = f32(0)')]]
MUTANTS += [(SUM, *m) for m in [('x[i] + x[i]', 'x[i] + f32(0)'), ('y[i] = x[i] + x[i]', 'y[i] = x[i] + x[i]\n        x[i] = f32(0)'), ('x[i] + x[i]', 'f32(2)*x[i]'), ('all(y[j]', 'all(x[j]')]]

REFUTED = {   # a wrong start, a product left out, exchanged strides: refuted by a run, whose values are shown
    'acc = f32(1)': 'n=1, k=0, m=1, A=[', 'for p in range(1, k):': 'n=1, k=1, m=1, A=[', 'for p in range(k - 1):': 'n=1, k=1, m=1, A=[', 'acc += A[i*k + p]*B[p + j*k]': 'n=1, k=2, m=2, A=['}

@kernel
def poke(x: Buf["1", f32]):
    x[0] = f32(7)
    return 1

CLAIMS = []
def claim(fn):
    CLAIMS.append(fn)
    return fn

@claim
def a_kernel_in_an_assert(x: Buf["1", f32]):
    x[0] = f32(1)
    assert poke(x) == 1 and x[0] == x[0]
    ensures(x[0] == fnum(7))
@claim
def a_cell_that_is_not_there(n: Size, V: Size, ids: Buf["n", i64, "0 <= ids < V"], out: Buf["1", f32]):
    assert ids[0] == ids[0]
    out[0] = f32(1) if V > 0 else f32(2)
    ensures(out[0] == fnum(1))
@claim
def a_negative_divisor_in_a_claim(k: int, x: Buf["10", f32]):
    requires(-3 <= k, k <= -2)
    for i in range(10):
        invariant(all(x[j] == fnum(0) for j in range(i)))
        x[i] = f32(0)
    ensures(x[5 + 7 // k] == fnum(0))
@claim
def all_inside_all(n: Size, x: Buf["n", f32]):
    for i in range(n):
        invariant(all(x[j] == fnum(0) for j in range(i)))
        x[i] = f32(0)
    ensures(all(all(x[j] == fnum(0) for j in range(i)) for i in range(n)))
@claim
def no_rounds(n: Size, x: Buf["1", f32]):
    for i in range(n): x[0] = f32(1)
    ensures(x[0] == fnum(1))
@claim
def what_was_there_before(n: Size, x: Buf["n", f32], y: Buf["n", f32]):
    for i in range(n):
        invariant(all(x[j] == fnum(0) for j in range(i)))
        x[i] = f32(0)
    for i in range(n):
        invariant(all(y[j] == old(x)[j] for j in range(i)))
        y[i] = x[i]
    ensures(all(y[j] == old(x)[j] for j in range(n)))
@claim
def the_other_way_round(a: f32, b: f32, x: Buf["1", f32]):
    x[0] = b + a
    ensures(x[0] == fadd(a, b))
@claim
def twice_is_not_two_times(a: f32, x: Buf["1", f32]):
    x[0] = a + a
    ensures(x[0] == fmul(fnum(2), a))

@pytest.mark.parametrize('fn', CLAIMS, ids=[f.__name__ for f in CLAIMS])
def test_claim_is_refused(fn, monkeypatch, tmp_path):
    monkeypatch.setenv('BENDML_CACHE', str(tmp_path))
    with pytest.raises(KernelError) as e: kernel(fn)
    assert '- expected :' in str(e.value) and '- observed :' in str(e.value)


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
    with pytest.raises(KernelError) as e: kernel(made(text.replace(before, after), tmp_path, n))
    if after in REFUTED: assert 'does not hold' in str(e.value) and f'- values   : {REFUTED[after]}' in str(e.value), str(e.value)
