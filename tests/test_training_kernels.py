"Products with wide tiles, attention in bands, and arrays that are used again: against plain NumPy, in compiled code and in Python."
import os, subprocess, sys
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from bendml.nn import blocks, products
from bendml.nn.attention import attend, attend_back
from bendml.nn.blocks import attend_rows, attend_rows_back
from bendml.nn.products import product
from bendml.nn.room import LARGE, forget, room
from bendml.tensor.gemm import gemm_panels, gemm_parallel

f32 = np.float32
RNG = np.random.default_rng(0)


def draw(*shape): return RNG.normal(size=shape).astype(f32)


def flat(x): return x.reshape(-1) if x.flags.c_contiguous else x.T.reshape(-1)


# Products

@settings(max_examples=60, deadline=None)
@given(st.integers(1, 60), st.integers(1, 60), st.integers(1, 120), st.booleans(), st.booleans(), st.booleans(), st.booleans(), st.integers(1, 70))
def test_panels(n, k, m, a_turned, b_turned, add, fused, tall):
    "Any sizes and strides, on one thread and on several, put or added, by long registers or short ones."
    a, b = draw(k, n).T if a_turned else draw(n, k), draw(m, k).T if b_turned else draw(k, m)
    args = flat(a), a.strides[0]//4, a.strides[1]//4, flat(b), b.strides[0]//4, b.strides[1]//4
    before = draw(n, m)
    want = a.astype(float) @ b
    alone, shared = np.full((n + 2, m + 3), np.nan, f32), before.copy()
    gemm_panels(flat(a), 0, *args[1:3], flat(b), 0, *args[4:], alone.reshape(-1), m + 4, m + 3, n, k, m, fused)
    gemm_parallel(*args, shared.reshape(-1), n, k, m, add, fused, tall)
    assert np.abs(alone[1:-1, 1:-2] - want).max() < 1e-4 and np.abs(shared - want - add*before).max() < 1e-4
    alone[1:-1, 1:-2] = np.nan
    assert np.isnan(alone).all()   # nothing else was written


@pytest.mark.parametrize('n, k, m', [(200, 800, 131), (97, 401, 500), (1000, 7, 999), (9, 900, 300), (390, 385, 386)])
def test_large_products(n, k, m):
    for a in (draw(n, k), draw(k, n).T):
        for b in (draw(k, m), draw(m, k).T):
            want, c = a.astype(float) @ b, np.ones((n, m), f32)
            assert np.abs(product(a, b) - want).max() < 2e-4 and np.abs(product(a, b, c, add=True) - want - 1).max() < 2e-4


def test_product_refuses_what_does_not_fit():
    for bad in (lambda: product(draw(3, 4), draw(3, 4)), lambda: product(draw(3, 4), draw(4, 5), draw(5, 3), add=True)):
        with pytest.raises(ValueError, match='- expected : .*\n- observed : '): bad()


def test_product_without_wide_registers(monkeypatch):
    a, b, c = draw(200, 100), draw(100, 300), draw(200, 300)
    want = a.astype(float) @ b
    monkeypatch.setattr(products, 'has_avx512', lambda: False)
    assert np.abs(product(a, b) - want).max() < 1e-4 and np.abs(product(a, b, c.copy(), add=True) - want - c).max() < 1e-4
    into = np.zeros((300, 400), f32)[:, ::2]   # not contiguous
    assert product(a, b[:, :200], into[:200], add=True).base is into.base and np.abs(into[:200] - want[:, :200]).max() < 1e-4


# Attention

def in_rows(*heads): return np.concatenate([np.moveaxis(x, 3, 1).reshape(x.shape[0], x.shape[3], -1) for x in heads], 2)


@pytest.mark.parametrize('B, T, K, G, D', [(1, 1, 1, 1, 1), (2, 7, 1, 3, 2), (1, 48, 2, 1, 8), (2, 49, 1, 2, 5), (1, 100, 2, 2, 16), (1, 193, 1, 1, 33)])
def test_bands_against_plain_attention(B, T, K, G, D):
    q, k, v, do = (draw(B, K, n, T, D) for n in (G, 1, 1, G))
    want, p = attend(q, k, v)
    y, logs = attend_rows(x := in_rows(q, k, v), K, G)
    dx = attend_rows_back(x, K, G, y, logs, in_rows(do))
    assert np.abs(y - in_rows(want)).max() < 1e-5 and np.abs(dx - in_rows(*attend_back(q, k, v, p, do))).max() < 2e-5


def test_bands_with_large_scores():
    "Scores of some thousands: nothing overflows, and the greatest wins."
    x = np.zeros((1, 60, 3*4), f32)
    x[..., :4], x[..., 4:8], x[..., 8:] = 60, np.arange(60)[:, None], draw(1, 60, 4)
    y, logs = attend_rows(x, 1, 1)
    dx = attend_rows_back(x, 1, 1, y, logs, y)
    assert np.array_equal(y, x[..., 8:]) and np.isfinite(dx).all() and np.isfinite(logs).all()


def test_bands_in_plain_python():
    "The proved kernels' Python meaning gives what the compiled ones give."
    T, D = 5, 2
    x, y, logs = draw(T*3*D), np.zeros(T*D, f32), np.zeros(T, f32)
    blocks.attend_sequence.plain(T, 1, 1, D, 16, 3*D, x, 0, f32(D**-.5), y, logs)
    assert np.abs(y.reshape(T, D) - attend_rows(x.reshape(1, T, -1), 1, 1)[0][0]).max() < 1e-6


# Room

def test_room_is_given_once():
    forget()
    held = [room(LARGE) for _ in range(3)]
    assert len({a.ctypes.data for a in held}) == 3
    view = held[1].reshape(-1, 2)[::2].T
    free = {held[0].ctypes.data, held[2].ctypes.data}
    del held
    again = [room(LARGE), room(2, LARGE//2)]
    assert {a.ctypes.data for a in again} == free   # used again, and not the one of which a view is held
    assert not any(np.shares_memory(room(LARGE), a) for a in (view, *again))
    assert forget() > 0 and room(3).shape == (3,)


def test_same_bits_on_any_number_of_threads():
    code = '''
import sys, numpy as np
from bendml.threads import set_threads
set_threads(int(sys.argv[1]))
from bendml.nn import Linear, self_attention
rng = np.random.default_rng(0)
for layer, n in ((Linear(384, 200), 384), (self_attention(192, 3), 192)):
    p, x, g = layer.init(rng), rng.normal(size=(3, 100, n)).astype('f4'), layer.zeros()
    y, s = layer.forward(p, x)
    print(hash(y.tobytes() + layer.backward(p, s, y, g).tobytes() + layer.dump(g).tobytes()))
'''
    if not products.has_avx512(): code = 'print("the library multiplies")'
    outs = [subprocess.run([sys.executable, '-W', 'ignore', '-c', code, n], capture_output=True, text=True, check=True, env=os.environ | {'PYTHONHASHSEED': '0', 'OPENBLAS_NUM_THREADS': '1'}).stdout for n in '12']
    assert outs[0] == outs[1] != ''
