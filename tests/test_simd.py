"The SIMD words, compiled, equal their meaning in Python; also for a processor without AVX2."
import os, subprocess, sys
import numpy as np, pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp
from numba import njit
from bendml.fixed import FULL, products_split_i4, products_split_i8, split128, split256
from bendml.simd import (fma, hsum, load, load_bf16, load_high4, load_i8, load_low4, one, one_bf16, one_high4, one_i8, one_low4, products,
                         products_bf16, products_i8, splat, store, to_bf16)
from bendml.tiles import has_avx512, lanes, tile, tile_fma, tile_load, tile_mul_add, tile_store, wide, wide_fma, wide_load, wide_store

F32 = hnp.arrays(np.float32, 24, elements=st.floats(width=32))
PLAIN = hnp.arrays(np.float32, 24, elements=st.floats(-1e3, 1e3, width=32))
SAME = dict(equal_nan=True)
unhurried = settings(deadline=None)  # the first call compiles


def compiled(word):
    "A function that stores what a word gives into an array."
    return njit(lambda a, i, out: store(out, 0, word(a, i)))


WIDEN = {'load': (load, np.float32), 'bf16': (load_bf16, np.uint16), 'i8': (load_i8, np.int8), 'low4': (load_low4, np.uint8), 'high4': (load_high4, np.uint8)}
READ = {name: compiled(word) for name, (word, _) in WIDEN.items()}


@pytest.mark.parametrize('name', WIDEN)
@unhurried
@given(data=st.data(), i=st.integers(0, 16))
def test_a_load_is_its_meaning(name, data, i):
    word, dtype = WIDEN[name]
    a = data.draw(hnp.arrays(dtype, 24))
    out = np.empty(8, np.float32)
    READ[name](a, i, out)
    assert np.array_equal(out, word(a, i), **SAME)
    if name != 'bf16' and name != 'load': assert np.array_equal(out, np.rint(out))


ONE = {'load': one, 'bf16': one_bf16, 'i8': one_i8, 'low4': one_low4, 'high4': one_high4}
READ_ONE = {name: (lambda word: njit(lambda a, i: word(a, i)))(word) for name, word in ONE.items()}


@pytest.mark.parametrize('name', ONE)
@unhurried
@given(data=st.data(), i=st.integers(0, 16))
def test_one_cell_is_the_first_of_eight(name, data, i):
    word, dtype = WIDEN[name]
    a = data.draw(hnp.arrays(dtype, 24))
    assert np.array_equal([READ_ONE[name](a, i), ONE[name](a, i)], [word(a, i)[0]]*2, **SAME)
    with pytest.raises(IndexError): ONE[name](a, 24)


def compiled_products(word): return njit(lambda w, i, x, j, out: store(out, 0, word(w, i, x, j)))


PRODUCTS = {name: (word, dtype, compiled_products(word))
            for name, word, dtype in (('f32', products, np.float32), ('bf16', products_bf16, np.uint16), ('i8', products_i8, np.int8))}


@pytest.mark.parametrize('name', PRODUCTS)
@unhurried
@given(i=st.integers(0, 16), j=st.integers(0, 16), seed=st.integers(0, 999))
def test_sixty_four_products_are_their_meaning(name, i, j, seed):
    "Exact for small whole numbers; else within a rounding for each of the at most nine additions."
    word, dtype, run = PRODUCTS[name]
    rng, out = np.random.default_rng(seed), np.empty(8, np.float32)
    for w, x in ((rng.integers(-100, 100, 80), rng.integers(-9, 9, 80)), (rng.standard_normal(80)*50, rng.standard_normal(80))):
        w, x = w.astype(np.float32), x.astype(np.float32)
        w = to_bf16(w) if name == 'bf16' else w.astype(dtype)
        wide = (w.astype(np.uint32) << 16).view(np.float32) if name == 'bf16' else w
        run(w, i, x, j, out)
        terms = wide[i:i + 64].astype(float)*x[j:j + 64]
        exact, size = terms.reshape(8, 8).sum(0), abs(terms).reshape(8, 8).sum(0)
        for got in (out, word(w, i, x, j)): assert (abs(got - exact) <= 9*2.**-24*size*(terms != np.rint(terms)).any()).all()
    with pytest.raises(IndexError): word(w, 17, x, j)


@njit
def arithmetic(a, b, out):
    x, y = load(a, 0), load(b, 0)
    store(out, 0, x + y)
    store(out, 8, x - y)
    store(out, 16, x*y)


@njit
def total(a): return hsum(load(a, 0))


@unhurried
@given(F32, F32)
def test_arithmetic_rounds_as_numpy_does(a, b):
    out = np.empty(24, np.float32)
    arithmetic(a, b, out)
    with np.errstate(all='ignore'):
        x, y = a[:8], b[:8]
        assert np.array_equal(out, np.concatenate([x + y, x - y, x*y]), **SAME)
        assert np.array_equal(total(a), hsum(load(a, 0)), **SAME)


@njit
def multiply_add(a, b, c, out): store(out, 0, fma(load(a, 0), load(b, 0), load(c, 0)))


@unhurried
@given(PLAIN, PLAIN, PLAIN)
def test_fma_is_within_its_bound(a, b, c):
    "Against exact arithmetic: one rounding, or two where there is no fused instruction."
    out = np.empty(8, np.float32)
    multiply_add(a, b, c, out)
    a, b, c = (v[:8].astype(np.longdouble) for v in (a, b, c))
    bound = 2.**-24*(abs(a*b) + abs(a*b + c)) + 2.**-148
    assert (abs(out - (a*b + c)) <= bound).all()
    assert (abs(fma(*(v.astype(np.float32) for v in (a, b, c))) - (a*b + c)) <= bound).all()


@njit
def product(a, b, c, k, step, fused):
    t = tile_load(c, 0, 20)
    for p in range(k): t = tile_fma(t, a, p, step, b, 16*p) if fused else tile_mul_add(t, a, p, step, b, 16*p)
    tile_store(c, 0, 20, t)


@unhurried
@given(st.integers(0, 7), st.integers(0, 99))
def test_a_tile_is_its_meaning(k, seed):
    draw = np.random.default_rng(seed).standard_normal
    a, b, c = (draw(n).astype(np.float32) for n in (6*7 + 7, 16*7, 6*20))
    plain, exact, before = c.copy(), c.copy(), c.copy()
    product.py_func(a, b, plain, k, 7, False)
    product(a, b, c, k, 7, False)
    assert np.array_equal(c, plain)
    product(a, b, exact, k, 7, True)
    assert np.allclose(exact, plain, rtol=0, atol=(k + 1)*2.**-23*16)
    outside = np.ones(120, bool)
    for r in range(6): outside[20*r:20*r + 16] = False
    assert np.array_equal(c[outside], before[outside])


@njit
def wide_product(a, b, c, k, step):
    t = wide_load(c, 0, 36)
    for p in range(k): t = wide_fma(t, a, p, step, b, 32*p)
    wide_store(c, 0, 36, t)
    wide_store(c, 500, 32, wide())
    return lanes()


@unhurried
@given(st.integers(0, 7), st.integers(0, 99))
def test_a_wide_tile_is_its_meaning(k, seed):
    draw = np.random.default_rng(seed).integers
    a, b, c = (draw(-9, 9, n).astype(np.float32) for n in (12*7 + 7, 32*7, 900))   # whole numbers: nothing is rounded
    plain = c.copy()
    assert wide_product.py_func(a, b, plain, k, 7) == wide_product(a, b, c, k, 7) == (16 if has_avx512() else 8)
    assert np.array_equal(c, plain)


@njit
def split(x, per, a, b):
    split256(x, 2, per, 128, a, 3)
    split128(x, 1, per, 8, b, 0)


@njit
def multiply_split(w, q, scale, a, b, out):
    store(out, 0, products_split_i8(w, 5, a, 3))
    store(out, 8, products_split_i4(q, 7, scale, 1, b, 0))


@unhurried
@given(st.integers(0, 999), st.sampled_from([1., 1e-30, 1e30]), st.booleans())
def test_three_bytes_are_their_meaning(seed, size, extreme):
    "The bytes are the same; the sums are off by a few roundings, however large all numbers are."
    rng = np.random.default_rng(seed)
    x = (rng.choice([-1., 1.], 260)*(1 if extreme else rng.random(260))*size).astype(np.float32)
    w, q, scale = rng.choice([-128, 127], 261) if extreme else rng.integers(-128, 128, 261), rng.integers(0, 256, 71, np.uint8), rng.random(5, np.float32)
    w, per, step = w.astype(np.int8), np.float32(1)/(np.float32(size)*np.float32(1/FULL)), size/FULL
    cells = [[np.zeros(n, np.float32) for n in (227, 128)] for _ in range(2)]
    split(x, per, *cells[0])
    split.py_func(x, per, *cells[1])
    assert all(np.array_equal(a.view(np.int32), b.view(np.int32)) for a, b in zip(*cells))
    out, plain = np.empty(16, np.float32), np.empty(16, np.float32)
    multiply_split(w, q, scale, *cells[0], out)
    multiply_split.py_func(w, q, scale, *cells[0], plain)
    small = np.concatenate((q[7:] & 15, q[7:] >> 4)).astype(float) - 8
    for terms, weights, at, numbers in ((w[5:].astype(float)*x[2:258], w[5:].astype(float), 0, 256), (small*x[1:129]*np.tile(np.repeat(scale[1:], 16), 2), small*np.tile(np.repeat(scale[1:], 16), 2), 8, 128)):
        lanes16 = lambda t: t.reshape(-1, 16, 4).sum((0, 2))
        exact, bound = lanes16(terms), 2.**-22*lanes16(abs(terms)) + step*.51*lanes16(abs(weights))
        for got in (out, plain): assert (abs(got[at:at + 8].astype(float)*step - exact[:8] - exact[8:]) <= bound[:8] + bound[8:]).all()


@pytest.mark.parametrize('word, array', [(load, np.zeros(8)), (load, np.zeros((8, 8), np.float32)), (load, np.zeros(16, np.float32)[::2]),
                                         (load_i8, np.zeros(8, np.uint8)), (load_bf16, np.zeros(8, np.int16)), (load_low4, np.zeros(8, np.int8))])
def test_a_wrong_array_is_refused_when_compiled(word, array):
    from numba.core.errors import TypingError
    with pytest.raises(TypingError, match=word.__name__): njit(lambda a: hsum(word(a, 0)))(array)


@pytest.mark.parametrize('i', [-1, 1, 9])
def test_a_load_past_the_end_is_an_error_in_python(i):
    with pytest.raises(IndexError): load(np.zeros(8, np.float32), i)


@unhurried
@given(hnp.arrays(np.float32, 16, elements=st.floats(width=32)))
def test_to_bf16_rounds_to_the_nearest_even(x):
    y = (to_bf16(x).astype(np.uint32) << 16).view(np.float32)
    assert np.array_equal(np.isnan(x), np.isnan(y))
    x, y = x[np.isfinite(x) & np.isfinite(y)], y[np.isfinite(x) & np.isfinite(y)]
    assert (abs(x.astype(float) - y) <= np.maximum(2.**-8*abs(y.astype(float)), 2.**-134)).all()
    assert np.array_equal(to_bf16(y) << np.uint32(16), y.view(np.uint32))


def test_every_word_says_what_it_gives_and_touches():
    gives = {'f32': {hsum, lanes, *ONE.values()}, 'tile': {tile, tile_fma, tile_mul_add, tile_load, wide, wide_fma, wide_load}, None: {store, tile_store, wide_store, split128, split256},
             'vector': {load, load_bf16, load_i8, load_low4, load_high4, splat, fma, products, products_bf16, products_i8, products_split_i8, products_split_i4}}
    assert all(word.__word__[0] == kind for kind, words in gives.items() for word in words)
    touch = {w for words in gives.values() for w in words if w.__word__[1]}
    assert touch == {products, products_bf16, products_i8, products_split_i8, products_split_i4, load, store, load_bf16, load_i8, load_low4, load_high4, *ONE.values(),
                     tile_fma, tile_mul_add, tile_load, tile_store, wide_fma, wide_load, wide_store, split128, split256}
    assert {w for w in touch if any(t.write for t in w.__word__[1])} == {store, tile_store, wide_store, split128, split256}


@pytest.mark.slow
@pytest.mark.skipif('BENDML_PORTABLE' in os.environ, reason='is the portable run itself')
def test_the_same_words_without_avx2(tmp_path):
    "Compile for the oldest 64-bit processor: no wide registers, no fused multiply-add. Every test of this file passes there too."
    env = {k: v for k, v in os.environ.items() if k != 'CI'} | {'NUMBA_CPU_NAME': 'generic', 'NUMBA_CPU_FEATURES': '', 'BENDML_PORTABLE': '1', 'NUMBA_CACHE_DIR': str(tmp_path)}
    code = 'from bendml.simd import has_avx2, _fused; assert not has_avx2() and not _fused()'
    subprocess.run([sys.executable, '-c', code], env=env, check=True)
    run = subprocess.run([sys.executable, '-m', 'pytest', '-q', '-p', 'no:cacheprovider', __file__], env=env, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[-3000:]
