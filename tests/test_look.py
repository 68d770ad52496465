"The loops that read the cache: the fast ones against the proved one, and what they must not see. PYTEST_DONT_REWRITE"
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from bendml.decode.curves import soften
from bendml.kvarray import keep
from bendml.look import look, look_heads
from bendml.decode.onerow import look_mix, look_scores

f32 = np.float32
sizes = st.tuples(st.integers(1, 3), st.integers(1, 20), st.sampled_from([8, 16, 40, 64])).flatmap(
    lambda s: st.tuples(*map(st.just, s), st.integers(0, s[0] - 1), st.integers(1, s[1]), st.integers(0, 3), st.integers(0, 2**32 - 1)))

@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(sizes)
def test_fast_loops_do_what_the_proved_one_does(size):
    "Up to (D + 2t) 2**-22 of the largest value; and they write where they should, and nowhere else."
    R, T, D, region, count, first, seed = size
    rng = np.random.default_rng(seed)
    keys, values = rng.standard_normal((2, R*T*D), f32)
    q, c, start = rng.standard_normal(first + D + 2, f32), f32(D**-.5), region*T*D
    w = rng.standard_normal(T + 11, f32)
    slow, fast, scores = np.full(first + D + 5, 7, f32), np.full(first + D + 5, 7, f32), w.copy()
    look(R, T, D, keys, values, region, count, q, first, c, w, 3, slow)
    before = scores[count:].copy()
    top = look_scores(D, keys, start, count, q, first, c, scores, 0)
    assert np.array_equal(scores[count:], before) and f32(top) == scores[:count].max()
    total = f32(soften(scores, 0, count, f32(top)))
    look_mix(D, values, start, count, scores, 0, total, fast, first)
    assert abs(slow - fast).max() <= (D + 2*count)*2.**-22*abs(values).max()
    outside = np.r_[0:first, first + D:len(fast)]
    assert (slow[outside] == 7).all() and (fast[outside] == 7).all()

@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(st.integers(1, 2), st.integers(1, 3), st.integers(1, 3), st.integers(1, 6), st.integers(1, 9), st.integers(0, 2**32 - 1))
def test_all_heads_against_the_formula(L, G, share, T, D, seed):
    "And what is not among the first rows changes no bit."
    rng = np.random.default_rng(seed)
    H, layer, count = G*share, int(rng.integers(L)), int(rng.integers(1, T + 1))
    keys, values = rng.standard_normal((2, L*G*T*D), f32)
    q, out, again = rng.standard_normal(H*D, f32), np.zeros(H*D, f32), np.zeros(H*D, f32)
    run = lambda k, v, out: look_heads(L, G, share, T, D, k, v, layer, count, q, f32(.5), np.zeros(H*T, f32), out)
    run(keys, values, out)
    k, v = (a.reshape(L, G, T, D)[layer, :, :count].repeat(share, 0).astype(float) for a in (keys, values))
    s = np.einsum('hd,htd->ht', q.reshape(H, D).astype(float), k)*.5
    p = np.exp(s - s.max(1, keepdims=True))
    assert np.allclose(out.reshape(H, D), np.einsum('ht,htd->hd', p/p.sum(1, keepdims=True), v), rtol=1e-4, atol=1e-5)
    for a in (keys, values):
        hidden = np.ones((L, G, T, D), bool)
        hidden[layer, :, :count] = False
        a[hidden.reshape(-1)] = np.nan
    run(keys, values, again)
    assert np.array_equal(out.view(np.uint32), again.view(np.uint32))

def test_a_row_kept_later_is_not_seen():
    rng = np.random.default_rng(0)
    L, G, share, T, D = 2, 2, 2, 5, 8
    keys, values = rng.standard_normal((2, L*G*T*D), f32)
    q, w, before, after = rng.standard_normal(G*share*D, f32), np.zeros(G*share*T, f32), *np.zeros((2, G*share*D), f32)
    look_heads(L, G, share, T, D, keys, values, 1, 3, q, f32(1), w, before)
    for a in (keys, values):
        for r in range(L*G): keep(L*G, T, D, a, r, 3, rng.standard_normal(D, f32), 0)
    look_heads(L, G, share, T, D, keys, values, 1, 3, q, f32(1), w, after)
    assert np.array_equal(before, after)
