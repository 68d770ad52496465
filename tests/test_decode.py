"Stored weights, products, and decoding: against NumPy and the reference models, at every split; what is refused."
import numpy as np, pytest
from hypothesis import given, settings, strategies as st
from bendml import gpt2, llama, matvec, stored
from bendml.checks import ContextError
from bendml.decode import gather, of_gpt2, of_llama, read
from bendml.matvec import dot4, dot8, fixed, product, to_fixed
from bendml.stored import FORMATS, TensorError, half, memory, pack, tensor, unpack
from bendml.threads import get_threads, set_threads

PACKED = ('F32', 'BF16', 'Q8_0', 'Q4_1')


def stored_as(w, format): return tensor(memory(pack(w, format)), format, 0, w.shape)


@pytest.mark.parametrize('format', PACKED)
@pytest.mark.parametrize('rows, k', [(1, 32), (7, 96), (64, 768), (33, 1600)])
def test_product_is_that_of_the_unpacked_matrix(format, rows, k):
    rng = np.random.default_rng(rows)
    w, x = rng.standard_normal((rows, k), np.float32), rng.standard_normal(k, np.float32)
    t = stored_as(w, format)
    exact = unpack(t).astype(np.float64) @ x
    size = np.abs(unpack(t)).astype(np.float64) @ np.abs(x)   # what rounding can be measured by
    assert (np.abs(product(t, x) - exact) <= 3e-5*size + 1e-12).all()


@pytest.mark.parametrize('name', ['Q4_0', 'Q4_1', 'Q8_0'])
def test_blocks_mean_what_the_reader_of_gguf_says(name):
    "Any bytes: 4- and 8-bit blocks as `bendml.checkpoint` reads them."
    from bendml.checkpoint.blocks import TYPES
    rng = np.random.default_rng(3)
    blocks = rng.integers(0, 256, (600, FORMATS[name].size), np.uint8)
    for at in (0, 2) if name == 'Q4_1' else (0,): blocks[:, at:at + 2] = rng.standard_normal(600).astype(np.float16).view(np.uint8).reshape(-1, 2)
    t = tensor(memory(blocks.reshape(-1)), name, 0, (100, 192))
    theirs = TYPES[name].float32(blocks.reshape(100, -1))
    np.testing.assert_allclose(unpack(t), theirs, rtol=2e-7, atol=1e-7)
    x = rng.standard_normal(192, np.float32)
    assert (np.abs(product(t, x) - theirs.astype(np.float64) @ x) <= 3e-5*(np.abs(theirs) @ np.abs(x)) + 1e-9).all()


@pytest.mark.parametrize('format, bound', [('F32', 0), ('BF16', 2**-8), ('Q8_0', 1/250), ('Q4_1', 1/14)])
def test_packing_loses_at_most_half_a_step(format, bound):
    w = np.random.default_rng(1).uniform(-1, 1, (50, 64)).astype(np.float32)
    assert np.abs(unpack(stored_as(w, format)) - w).max() <= bound


@pytest.mark.parametrize('format', PACKED)
@pytest.mark.parametrize('value', [0., 3., -1e-30, 1e4])
def test_packing_constants(format, value):
    w = np.full((2, 32), value, np.float32)
    np.testing.assert_allclose(unpack(stored_as(w, format)), w, rtol=5e-3, atol=1e-7)


def test_weights_that_are_too_large_are_refused():
    for format in ('Q8_0', 'Q4_1'):
        for value in (1e9, np.nan, np.inf):
            with pytest.raises(TensorError, match='finite'): pack(np.array([[value] + [0]*31], np.float32), format)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=32, max_size=32))
def test_sixteen_bits_are_close(xs):
    x, out = np.array(xs, np.float32), fixed(32)
    to_fixed(x, 32, out)
    back = out.step[0]*(256*out.high.astype(float) + out.low)
    assert np.abs(back - x).max() <= np.abs(x).max()*(0.5/32639 + 1e-6) + 1e-37
    assert abs(out.total[0] - back.sum()) <= 1e-5*np.abs(back).sum() + 1e-30


def test_words_mean_the_same_compiled_as_in_python():
    from numba import njit
    from bendml.simd import load, store
    rng = np.random.default_rng(0)
    w, high, low = rng.integers(0, 256, 64, np.uint8), *rng.integers(-127, 128, (2, 64)).astype(np.int8)
    @njit
    def compiled(w, i, high, j, low, out4, out8):
        store(out4, 0, dot4(w, i, high, j, low))
        store(out8, 0, dot8(w, i, high, j, low))
    out4, out8 = np.zeros((2, 8), np.float32)
    for i, j in ((0, 0), (5, 32), (32, 1)):
        compiled(w, i, high, j, low, out4, out8)
        assert np.array_equal(out4, dot4(w, i, high, j, low)) and np.array_equal(out8, dot8(w, i, high, j, low))
    assert np.array_equal([njit(lambda a, i: half(a, i))(np.array([x], np.float16).view(np.uint16), 0) for x in (1, -2.5, 6e-8, 65504)], [1, -2.5, np.float16(6e-8), 65504])


@pytest.mark.slow
def test_words_without_the_processors_help(tmp_path):
    "The products written out give the same bits."
    import os, subprocess, sys
    code = ('import numpy as np\nfrom bendml.matvec import has_vnni, product\nfrom bendml.stored import *\nfrom bendml.stored import memory\n'
            'r = np.random.default_rng(0); w = r.standard_normal((9, 96), np.float32); x = r.standard_normal(96, np.float32)\n'
            'print(has_vnni(), *(product(tensor(memory(pack(w, f)), f, 0, w.shape), x).tobytes().hex() for f in ("Q8_0", "Q4_1")))')
    run = lambda **env: subprocess.run([sys.executable, '-W', 'ignore', '-c', code], env=os.environ | env, capture_output=True, text=True, check=True).stdout.split()
    with_help, without = run(), run(NUMBA_CPU_NAME='haswell', NUMBA_CPU_FEATURES='+avx2,+fma,+f16c', NUMBA_CACHE_DIR=str(tmp_path))
    assert without[0] == 'False' and with_help[1:] == without[1:]


@pytest.mark.parametrize('format, at, shape', [('F32', 0, (2, 33)), ('F32', 4, (2, 32)), ('F32', 2, (1, 32)), ('F32', -4, (1, 32)), ('Q2_K', 0, (1, 256)),
                                               ('BF16', 1, (1, 32)), ('F32', 0, (0, 32)), ('F32', 0, (32,)), ('Q4_1', 0, (1 << 40, 1 << 20))])
def test_bad_tensors_are_refused(format, at, shape):
    with pytest.raises(TensorError): tensor(memory(np.zeros(256, np.uint8)), format, at, shape)


MODELS = {'gpt2': (gpt2.init(gpt2.Config(2, 2, 64, vocab=100, context=32), 1), gpt2.forward, of_gpt2),
          'llama': (llama.init(llama.Config(2, 4, 2, 16, 64, 96, 100, 32), 1), llama.forward, of_llama)}


def relative(a, b) -> float: return float(np.abs(a - b).max()/np.abs(b).max())


@pytest.mark.parametrize('threads', [1, 2])
@pytest.mark.parametrize('name', MODELS)
def test_every_split_gives_the_full_pass(name, threads):
    "Read a part at once, and the rest token by token or in a second part."
    model, forward, decoder = MODELS[name]
    before = get_threads()
    set_threads(threads)
    try:
        d, ids = decoder(model), np.random.default_rng(5).integers(0, 100, 32)
        whole = forward(model, ids)
        for cut in range(1, 32):
            cache, again = d.cache(), d.cache()
            rows = [read(d, cache, ids[:cut]).copy()] + [d.step(cache, i).copy() for i in ids[cut:]]
            assert relative(np.array(rows), whole[cut - 1:]) < 1e-5
            read(d, again, ids[:cut])
            assert relative(read(d, again, ids[cut:]), whole[-1]) < 1e-5
    finally: set_threads(before)


@pytest.mark.parametrize('format, bound', [('BF16', 0.02), ('Q8_0', 0.02), ('Q4_1', 0.3)])
@pytest.mark.parametrize('name', MODELS)
def test_packed_models_are_close(name, format, bound):
    model, forward, decoder = MODELS[name]
    d, ids = decoder(model, format), list(range(20))
    cache = d.cache()
    for i in ids: scores = d.step(cache, i)
    assert relative(scores, forward(model, ids)[-1]) < bound
    assert relative(read(d, d.cache(), ids), scores) < 2e-3   # unpacked for BLAS, or in place


def test_the_context_is_full():
    d = MODELS['gpt2'][2](MODELS['gpt2'][0])
    cache = d.cache()
    read(d, cache, list(range(28)))
    with pytest.raises(ContextError, match='at most 32 tokens\n- observed : 28 tokens and 10 more'): read(d, cache, list(range(10)))
    for i in range(4): d.step(cache, i)
    with pytest.raises(ContextError): d.step(cache, 1)
    assert cache.length == 32
    cache.cut(10)
    d.step(cache, 1)
    with pytest.raises(ValueError): cache.cut(12)


def test_two_texts_do_not_disturb_each_other():
    d = MODELS['llama'][2](MODELS['llama'][0])
    alone = d.cache()
    expected = [d.step(alone, i).copy() for i in (3, 1, 4)]
    a, b = d.cache(), d.cache()
    for n, i in enumerate((3, 1, 4)):
        assert np.array_equal(d.step(a, i), expected[n])
        d.step(b, 50 + n)


def test_unknown_tokens_are_refused():
    d = MODELS['gpt2'][2](MODELS['gpt2'][0])
    for wrong in (100, -1):
        with pytest.raises(ValueError, match='0 to 99'): d.step(d.cache(), wrong)
    with pytest.raises(ValueError): read(d, d.cache(), [])
