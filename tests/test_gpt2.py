"GPT-2 against transformers at seeded random weights, the published names and layouts, and what is refused."
import numpy as np, pytest
import oracle
from oracle import relative
from bendml.attention import softmax
from bendml.checks import ContextError, WeightsError, check_ids
from bendml.gpt2 import SIZES, Config, Norm, forward, from_tensors, gelu, hf_config, init, layer_norm, published, to_tensors


def noisy(config: Config, seed: int = 1):
    "A random model whose biases and gains are random too, so that leaving one out shows."
    rng = np.random.default_rng(seed)
    tensors = to_tensors(init(config, seed))
    for name, a in tensors.items():
        if a.ndim == 1: tensors[name] = a + rng.standard_normal(a.shape, np.float32)*np.float32(0.1)
    return tensors


@pytest.fixture(scope='module')
def little():
    tensors = noisy(Config(3, 2, 128, vocab=300, context=64))
    return from_tensors(tensors), oracle.gpt2(tensors, 2)


@pytest.mark.parametrize('tokens', [1, 2, 17, 64])
def test_equals_transformers(little, tokens):
    ours, theirs = little
    ids = np.random.default_rng(tokens).integers(0, 300, tokens)
    assert relative(forward(ours, ids), oracle.scores(theirs, ids)) < 5e-6


def test_batch_and_single_and_cache_agree_with_transformers(little):
    "Greedy: the decoder one text at a time, several prompts, transformers' own loop; and each position's scores in a batch of theirs."
    from bendml.decode import of_gpt2, read
    ours, theirs = little
    prompts = np.random.default_rng(4).integers(0, 300, (3, 20))
    d = of_gpt2(ours)
    for ids, row in zip(prompts.tolist(), oracle.scores(theirs, prompts)):
        cache = d.cache()
        written, last = [], read(d, cache, ids).copy()
        assert relative(last, row[-1]) < 5e-6
        for _ in range(16):
            written.append(int(last.argmax()))
            last = d.step(cache, written[-1]).copy()
        assert written == oracle.greedy(theirs, ids, 16)


def test_transformers_reads_what_we_write_and_we_read_what_it_writes(tmp_path):
    from transformers import GPT2LMHeadModel
    from bendml.mini import write_model
    from bendml.checkpoint import open_weights
    from bendml.checkpoint.files import read_settings
    from bendml.tokenizer import Tokenizer
    c = Config(2, 2, 128, vocab=260, context=32)
    tokenizer = Tokenizer.train(b'abcabc', 260, special_tokens=['<|endoftext|>'])
    tensors = {n: a.astype(np.float16).astype(np.float32) for n, a in noisy(c).items()}
    write_model(tmp_path/'ours', from_tensors(tensors, c), tokenizer)
    model = GPT2LMHeadModel.from_pretrained(tmp_path/'ours', dtype='float32', local_files_only=True).eval()
    ids = np.random.default_rng(0).integers(0, 260, 32)
    assert relative(forward(from_tensors(tensors), ids), oracle.scores(model, ids)) < 5e-6
    model.save_pretrained(tmp_path/'theirs', max_shard_size='400KB')
    weights = open_weights(tmp_path/'theirs')
    again = from_tensors({n: weights.float32(n) for n in weights}, hf_config(read_settings(tmp_path/'theirs'/'config.json')))
    assert type(weights).__name__ == 'Shards' and np.array_equal(forward(again, ids), forward(from_tensors(tensors), ids))


@pytest.fixture(scope='module')
def small():
    tensors = noisy(SIZES['small'])
    return from_tensors(tensors), oracle.gpt2(tensors, 12)


@pytest.mark.slow
@pytest.mark.parametrize('tokens', [1, 64, 1024])
def test_real_size_equals_transformers(small, tokens):
    "GPT-2 small at its real sizes, seeded random weights."
    ours, theirs = small
    ids = np.random.default_rng(tokens).integers(0, 50_257, tokens)
    a, b = forward(ours, ids), oracle.scores(theirs, ids)
    print(f'{tokens} tokens: {relative(a, b):.1e} off')
    assert relative(a, b) < 5e-6 and a[-1].argmax() == b[-1].argmax() and (a.argmax(1) == b.argmax(1)).mean() > 0.99


@pytest.mark.slow
def test_real_size_writes_what_transformers_would(small):
    "The decoder at GPT-2 small's sizes: the whole prompt at once, then token by token; the same greedy tokens, and scores."
    from bendml.decode import of_gpt2, read
    ours, theirs = small
    d = of_gpt2(ours)
    cache, prompt = d.cache(), np.random.default_rng(9).integers(0, 50_257, 40).tolist()
    rows, written = [read(d, cache, prompt).copy()], []
    for _ in range(24):
        written.append(int(rows[-1].argmax()))
        rows.append(d.step(cache, written[-1]).copy())
    assert written == oracle.greedy(theirs, prompt, 24)
    off = relative(np.array(rows), oracle.scores(theirs, prompt + written)[39:])
    print(f'24 tokens with a cache: {off:.1e} off')
    assert off < 5e-6


@pytest.mark.parametrize('name, parameters', [('small', 124_439_808), ('medium', 354_823_168), ('large', 774_030_080), ('xl', 1_557_611_200)])
def test_the_four_sizes(name, parameters):
    assert sum(int(np.prod(s.shape)) for s in published(SIZES[name]).values()) == parameters


@pytest.mark.parametrize('cut', [1, 5, 19])
def test_first_rows_do_not_depend_on_later_ones(cut):
    model = from_tensors(noisy(Config(2, 2, 128, vocab=90, context=20)))
    ids = np.random.default_rng(0).integers(0, 90, 20)
    assert relative(forward(model, ids)[:cut], forward(model, ids[:cut])) < 5e-6


@pytest.mark.parametrize('row', [[40000, 40001, 40002, 40003], [80000, 80001, 80002, 80003]])
def test_layer_norm_of_large_numbers(row):
    y = layer_norm(np.array([row], np.float32), Norm(np.ones(4, np.float32), np.zeros(4, np.float32)))
    np.testing.assert_allclose(y[0], [-1.3416355, -0.4472118, 0.4472118, 1.3416355], rtol=1e-5)


@pytest.mark.parametrize('row', [[2.]*4, [1234.]*256])
def test_layer_norm_of_a_constant_is_the_bias(row):
    bias = np.arange(len(row), dtype=np.float32)
    assert np.array_equal(layer_norm(np.array([row], np.float32), Norm(np.ones_like(bias), bias))[0], bias)


def test_gelu_is_the_tanh_form():
    np.testing.assert_allclose(gelu(np.array([1, -2], np.float32)), [0.8411920, -0.0454023], rtol=1e-5)


def test_softmax_of_large_scores():
    np.testing.assert_allclose(softmax(np.array([1e4, 9999, 0], np.float32)), [0.7310586, 0.2689414, 0], rtol=1e-5)


def refused(match, change, config=Config(2, 1, 64, vocab=20, context=8)):
    tensors = to_tensors(init(config))
    change(tensors)
    with pytest.raises(WeightsError, match=match): from_tensors(tensors)


def test_missing_and_unexpected_tensors_are_named():
    refused(r'missing[\s\S]*h\.1\.attn\.c_proj\.bias', lambda t: t.pop('h.1.attn.c_proj.bias'))
    refused(r'unexpected[\s\S]*h\.0\.attn\.q', lambda t: t.update({'h.0.attn.q': np.zeros(3, np.float32)}))
    refused(r'not a GPT-2', lambda t: t.pop('wte.weight'))
    refused(r'missing[\s\S]*and 8 more', lambda t: [t.pop(n) for n in list(t) if n.startswith('h.0.')])


def test_a_transposed_tensor_is_named_with_a_hint():
    refused(r'h\.0\.attn\.c_attn\.weight has another shape\n- expected : \(64, 192\)\n- observed : \(192, 64\)\n- hint     : transpose',
            lambda t: t.update({'h.0.attn.c_attn.weight': t['h.0.attn.c_attn.weight'].T}))


def test_a_tied_head_may_be_there_if_it_is_the_same():
    tensors = to_tensors(init(Config(1, 1, 64, vocab=20, context=8)))
    head = tensors['wte.weight'].copy()
    from_tensors(tensors | {'lm_head.weight': head, 'h.0.attn.bias': np.ones((1, 1, 8, 8), np.float32)})
    from_tensors({'transformer.' + n: a for n, a in tensors.items()} | {'lm_head.weight': head})
    head[3, 3] += 1
    with pytest.raises(WeightsError, match='two heads'): from_tensors(tensors | {'lm_head.weight': head})


def test_bad_texts_are_refused():
    with pytest.raises(ContextError, match='at most 8 tokens\n- observed : 9 tokens'): check_ids([0]*9, 20, 8)
    for wrong in ([], [[1]], [0.5], [20], [-1]):
        with pytest.raises(ValueError): check_ids(wrong, 20, 8)


HF = {'model_type': 'gpt2', 'n_layer': 2, 'n_head': 2, 'n_embd': 128, 'vocab_size': 100, 'n_positions': 32}

def test_settings(): assert hf_config(HF) == hf_config(HF | {'n_inner': 512, 'activation_function': 'gelu_new'}) == Config(2, 2, 128, 100, 32)

@pytest.mark.parametrize('change', [{'model_type': 'bert'}, {'activation_function': 'relu'}, {'n_inner': 100}, {'tie_word_embeddings': False}, {'n_head': '2'}, {'n_head': 3},
                                    {'n_layer': 0}, {'n_layer': 10**6}, {'n_layer': 10**40}, {'n_positions': 1 << 30}, {'layer_norm_epsilon': float('nan')},
                                    {'layer_norm_epsilon': -1}, {'scale_attn_by_inverse_layer_idx': True}, {'vocab_size': None}, {'n_embd': [128]}])
def test_bad_settings_are_refused(change):
    with pytest.raises(WeightsError): hf_config(HF | change)
