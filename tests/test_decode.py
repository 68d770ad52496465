"Stored weights, products, and decoding: against NumPy and the reference models, at every split; what is refused."
import os
import numpy as np, pytest
from hypothesis import given, settings, strategies as st
from bendml import gpt2, llama
from bendml.decode import matvec, several
from bendml.checks import ContextError
from bendml.decode import of_gpt2, of_llama, open_gguf, read
from bendml.decode.matvec import ROUNDED, bf16_high, bf16_low, dot4, dot8, fix, half_high, half_low, halves, product, round32
from bendml.decode.stored import FORMATS, TensorError, memory, pack, place, q4_0_as_q4_1, rows_of, store_as, tensor, unpack
from bendml.threads import get_threads, set_threads


@pytest.mark.parametrize('format', FORMATS)
@pytest.mark.parametrize('rows, k', [(1, 32), (7, 96), (64, 768), (33, 1600)])
def test_product_is_that_of_the_unpacked_matrix(format, rows, k):
    rng = np.random.default_rng(rows)
    w, x = rng.standard_normal((rows, k), np.float32), rng.standard_normal(k, np.float32)
    t = store_as(w, format)
    exact = unpack(t).astype(np.float64) @ x
    size = np.abs(unpack(t)).astype(np.float64) @ np.abs(x)   # what rounding can be measured by
    assert (np.abs(product(t, x) - exact) <= 3e-5*size + 1e-12).all()


@pytest.mark.parametrize('name, stored', [('Q4_0', 'Q4_1'), ('Q4_1', 'Q4_1'), ('Q8_0', 'Q8_0')])
def test_blocks_mean_what_the_reader_of_gguf_says(name, stored):
    "Any bytes: 4- and 8-bit blocks as `bendml.checkpoint` reads them."
    from bendml.checkpoint.blocks import TYPES
    rng = np.random.default_rng(3)
    blocks = rng.integers(0, 256, (600, TYPES[name].size), np.uint8)
    for at in (0, 2) if name == 'Q4_1' else (0,): blocks[:, at:at + 2] = rng.standard_normal(600).astype(np.float16).view(np.uint8).reshape(-1, 2)
    t = tensor(memory(7*6*FORMATS[stored].size), stored, 0, (100, 192))
    place([(q4_0_as_q4_1(blocks) if name == 'Q4_0' else blocks).reshape(100, 6, -1)], t)
    theirs = TYPES[name].float32(blocks.reshape(100, -1))
    np.testing.assert_allclose(unpack(t), theirs, rtol=2e-7, atol=1e-7)
    assert np.array_equal(rows_of(t, [99, 0, 17]), unpack(t)[[99, 0, 17]])
    x = rng.standard_normal(192, np.float32)
    assert (np.abs(product(t, x) - theirs.astype(np.float64) @ x) <= 3e-5*(np.abs(theirs) @ np.abs(x)) + 1e-6).all()


@pytest.mark.parametrize('format, bound', [('F32', 0), ('BF16', 2**-8), ('Q8_0', 1/250), ('Q4_1', 1/14)])
def test_packing_loses_at_most_half_a_step(format, bound):
    w = np.random.default_rng(1).uniform(-1, 1, (50, 64)).astype(np.float32)
    assert np.abs(unpack(store_as(w, format)) - w).max() <= bound


@pytest.mark.parametrize('format', FORMATS)
@pytest.mark.parametrize('value', [0., 3., -1e-30, 1e4])
def test_packing_constants(format, value):
    w = np.full((2, 32), value, np.float32)
    np.testing.assert_allclose(unpack(store_as(w, format)), w, rtol=5e-3, atol=1e-7)


def test_weights_that_are_too_large_are_refused():
    for format in ('Q8_0', 'Q4_1'):
        for value in (1e9, np.nan, np.inf):
            with pytest.raises(TensorError, match='finite'): pack(np.array([[value] + [0]*31], np.float32), format)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=32, max_size=32))
def test_sixteen_bits_are_close(xs):
    x, out = np.array(xs, np.float32), np.zeros(ROUNDED, np.float32)
    fix(x, 0, 1, out, 0)
    back = out[16]*(256*out[:8].view(np.int8).astype(float) + out[8:16].view(np.int8))
    assert np.abs(back - x).max() <= np.abs(x).max()*(0.5/32639 + 1e-6) + 1e-30
    assert abs(out[17] - back.sum()) <= 1e-5*np.abs(back).sum() + 1e-30


@pytest.mark.parametrize('bad', [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_not_rounded_away(bad):
    x, out = np.ones(64, np.float32), np.zeros(2*ROUNDED, np.float32)
    x[7] = bad
    fix(x, 0, 2, out, 0)
    assert np.isnan(out[16]) and out[ROUNDED + 16] == np.float32(1)*np.float32(1/32639)


def compiled_words():
    "Each word of matvec in a compiled function that stores what it gives."
    from numba import njit
    from bendml.simd import store
    one = lambda word: njit(lambda w, i, x, j, out: store(out, 0, word(w, i)))
    two = lambda word: njit(lambda w, i, x, j, out: store(out, 0, word(w, i, x, j)))
    return {w: one(w) for w in (bf16_low, bf16_high, halves, half_low, half_high)} | {w: two(w) for w in (dot4, dot8)}


def test_words_mean_the_same_compiled_as_in_python():
    rng = np.random.default_rng(0)
    w, x, out = rng.integers(0, 256, 400, np.uint8).view(np.float32), np.zeros(2*ROUNDED, np.float32), np.zeros(8, np.float32)
    fix(rng.standard_normal(64, np.float32), 0, 2, x, 0)
    for word, compiled in compiled_words().items():
        for i, j in ((0, 0), (5, ROUNDED), (36, 0)):
            compiled(w, i, x, j, out)
            meant = word(w, i, x, j) if word in (dot4, dot8) else word(w, i)
            assert np.array_equal(out, meant, equal_nan=True), word.__name__


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(-20, 20))
def test_rounding_means_the_same_compiled_as_in_python(seed, size):
    x = (np.random.default_rng(seed).standard_normal(40)*10**size).astype(np.float32)
    python, compiled = np.zeros((2, 30), np.float32)
    round32(x, 5, python, 3)
    fix(x, 5, 1, compiled, 3)
    q = lambda a: 256*a[3:11].view(np.int8).astype(int) + a[11:19].view(np.int8)
    assert np.abs(q(python) - q(compiled)).max() <= 1 and np.array_equal(python[:3], compiled[:3])   # a half may go either way
    np.testing.assert_allclose(python[19:21], compiled[19:21], rtol=1e-4, atol=python[19]*2)


def test_every_word_says_what_it_touches():
    "In an array that ends where the word says it ends, and holds what it may not change."
    sizes = {bf16_low: 8, bf16_high: 8, halves: 4, half_low: 8, half_high: 8, dot4: 32, dot8: 64}
    for word, cells in sizes.items(): assert (word.__word__[1][0].cells, word.__word__[0]) == (cells, 'vector')
    assert [(a.cells, a.write) for a in round32.__word__[1]] == [(32, False), (19, True)]
    out = np.full(40, 7, np.float32)
    fix(np.ones(32, np.float32), 0, 1, out, 10)
    assert (out[:10] == 7).all() and (out[29:] == 7).all()


@pytest.mark.parametrize('format', FORMATS)
def test_kernels_compute_in_plain_python_what_they_compute_compiled(format):
    rng = np.random.default_rng(4)
    t, x = store_as(rng.standard_normal((20, 64), np.float32), format), rng.standard_normal((12, 64), np.float32)
    size, n = FORMATS[format].size, 2
    outs = []
    for one, more in ((matvec.rows, several.many), (matvec.rows.plain, several.many.plain)):
        fx, y, ys = np.zeros(12*n*ROUNDED, np.float32), np.zeros(32, np.float32), np.zeros((12, 32), np.float32)
        fix(x[0], 0, n, fx, 0)
        one(size, t.cells, 0, n, x[0], fx, 0, y, 0, 0, 2)
        more(size, t.cells, 0, n, 2, x.reshape(-1), fx, ys.reshape(-1), 32, 1)
        outs.append(np.vstack((y, ys)))
    np.testing.assert_allclose(outs[0], outs[1], rtol=1e-4, atol=2e-3)


@pytest.mark.parametrize('format', ['Q8_0', 'Q4_1'])
@pytest.mark.parametrize('k', [32, 96, 416])
def test_several_rows_have_the_bits_of_one(format, k):
    rng = np.random.default_rng(k)
    t, x, y = store_as(rng.standard_normal((48, k), np.float32), format), rng.standard_normal((24, k), np.float32), np.empty((24, 48), np.float32)
    several.many(FORMATS[format].size, t.cells, 0, k//32, 3, x.reshape(-1), np.empty(24*k//32*ROUNDED, np.float32), y.reshape(-1), 48, 2)
    assert np.array_equal(y, [product(t, row) for row in x])


@pytest.mark.slow
def test_words_without_the_processors_help(tmp_path):
    "The products written out give the same bits."
    import os, subprocess, sys
    code = ('import numpy as np\nfrom bendml.fixed import has_vnni\nfrom bendml.decode.matvec import product\nfrom bendml.decode.stored import store_as\n'
            'r = np.random.default_rng(0); w = r.standard_normal((9, 96), np.float32); x = r.standard_normal(96, np.float32)\n'
            'print(has_vnni(8), *(product(store_as(w, f), x).tobytes().hex() for f in ("Q8_0", "Q4_1", "BF16", "F32")))')
    run = lambda **env: subprocess.run([sys.executable, '-W', 'ignore', '-c', code], env=os.environ | env, capture_output=True, text=True, check=True).stdout.split()
    with_help, without = run(), run(NUMBA_CPU_NAME='haswell', NUMBA_CPU_FEATURES='+avx2,+fma,+f16c', NUMBA_CACHE_DIR=str(tmp_path))
    assert without[0] == 'False' and with_help[1:] == without[1:]


@pytest.mark.parametrize('format, at, shape', [('F32', 0, (2, 33)), ('F32', 1, (16, 32)), ('F32', -4, (1, 32)), ('Q2_K', 0, (1, 256)),
                                               ('F32', 0, (17, 32)), ('F32', 0, (0, 32)), ('F32', 0, (32,)), ('Q4_1', 0, (1 << 40, 1 << 20))])
def test_bad_tensors_are_refused(format, at, shape):
    with pytest.raises(TensorError): tensor(np.zeros(512, np.float32), format, at, shape)


@pytest.mark.parametrize('sizes', [dict(heads=4, shared=2, size=12), dict(channels=48), dict(hidden=40)])
def test_networks_whose_rows_do_not_come_in_eights_are_refused(sizes):
    c = llama.Config(**dict(layers=1, heads=4, shared=2, size=16, channels=64, hidden=96, vocab=50, context=16) | sizes)
    with pytest.raises(TensorError, match='a multiple of'): of_llama(llama.init(c))


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
    assert relative(read(d, d.cache(), ids), scores) < 2e-3   # attention adds in another order


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


def test_a_long_text_on_two_threads():
    "More tokens than a block of rows, or of queries, and attention shared out while writing."
    model = llama.init(llama.Config(2, 6, 2, 16, 64, 96, 100, 300), 2)
    ids, before = np.random.default_rng(6).integers(0, 100, 300), get_threads()
    d, whole = of_llama(model), llama.forward(model, ids)
    try:
        for threads, cut in ((1, 270), (2, 131), (2, 49)):
            set_threads(threads)
            cache = d.cache()
            assert relative(read(d, cache, ids[:cut]), whole[cut - 1]) < 1e-5
            assert relative(read(d, cache, ids[cut:295]), whole[294]) < 1e-5
            for i in range(295, 300): assert relative(d.step(cache, int(ids[i])), whole[i]) < 1e-5
    finally: set_threads(before)


def test_two_formats_in_one_matrix_lose_nothing():
    "Queries in 8 bits and values in 16, in one matrix: they are stored as float32."
    from bendml.decode.layout import Source, _one_format, _place
    rng = np.random.default_rng(7)
    parts = [store_as(rng.standard_normal((16, 64), np.float32), f) for f in ('Q8_0', 'BF16', 'Q8_0')]
    sources = [Source(t.format, t.shape, None, lambda t=t: unpack(t)) for t in parts]
    format = _one_format(sources)
    t = _place(sources, memory(3*2*FORMATS[format].size), format, 0)
    assert format == 'F32' and np.array_equal(unpack(t), np.vstack([unpack(p) for p in parts]))
    assert _one_format(sources[::2]) == 'Q8_0'


def test_what_compiling_knows_of_a_kernel_is_what_a_walk_through_all_it_calls_finds():
    from bendml.kernel.calls import KernelWalk
    from bendml.decode.onerow import look_all
    for k in (matvec.times, several.many, look_all):
        walk = KernelWalk(k.source).run()
        assert k.written == {a.buffer.name for a in walk.accesses if a.write and a.buffer.given}
        assert all(walk.kinds[n] == kind for n, kind in k.known.kinds.items())


@pytest.mark.parametrize('threads', [1, 2])
@pytest.mark.parametrize('name', MODELS)
def test_texts_side_by_side_have_the_bits_of_each_alone(name, threads):
    "Every format, several numbers of texts of different lengths, in any order."
    model, before = MODELS[name][0], get_threads()
    set_threads(threads)
    try:
        for format, count in (('F32', 2), ('BF16', 5), ('Q8_0', 9), ('Q4_1', 7), ('Q4_1', 1)):
            d, rng = MODELS[name][2](model, format), np.random.default_rng(count)
            alone, side = d.caches(count), d.caches(count)
            for n in rng.permutation(count):
                ids = rng.integers(0, 100, 1 + n)
                for cache in (alone[n], side[n]): read(d, cache, ids)
            for _ in range(3):
                order, ids = rng.permutation(count), rng.integers(0, 100, count)
                expected = [d.step(alone[n], int(i)).copy() for n, i in zip(order, ids)]
                assert np.array_equal(d.step_all([side[n] for n in order], ids), expected)
    finally: set_threads(before)


def test_texts_that_do_not_lie_side_by_side_are_refused():
    d = MODELS['llama'][2](MODELS['llama'][0])
    a, b = d.caches(2)
    for caches, ids in (([a, a], [1, 2]), ([a, d.cache()], [1, 2]), ([a, b], [1])):
        with pytest.raises(ValueError, match='made together'): d.step_all(caches, ids)
    read(d, a, [1]*d.sizes.context)
    with pytest.raises(ContextError): d.step_all([b, a], [1, 2])
    assert (a.length, b.length) == (d.sizes.context, 0)


def test_a_cache_takes_memory_as_it_fills():
    d = of_llama(llama.init(llama.Config(2, 4, 2, 16, 64, 96, 100, 1 << 17), 1))
    resident = lambda: int(open('/proc/self/statm').read().split()[1])*os.sysconf('SC_PAGE_SIZE')
    d.step(d.cache(), 1)
    before, cache = resident(), d.cache()
    d.step(cache, 1)
    assert cache.keys.nbytes == cache.values.nbytes == 1 << 25 and resident() - before < 1 << 20
