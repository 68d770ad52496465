"GPT-2 against PyTorch at seeded random weights, the published names and layouts, and what is refused."
import numpy as np, pytest
from bendml.attention import softmax
from bendml.checks import ContextError, WeightsError, check_ids
from bendml.gpt2 import SIZES, Config, Norm, forward, from_tensors, gelu, init, layer_norm, published, to_tensors


def pytorch(tensors: dict, ids, heads: int) -> np.ndarray:
    "GPT-2's forward pass in PyTorch, from the published names and layouts."
    import torch
    import torch.nn.functional as F
    w = {name: torch.from_numpy(np.ascontiguousarray(a)) for name, a in tensors.items()}
    c = w['wte.weight'].shape[1]
    conv1d = lambda x, name: x @ w[name + '.weight'] + w[name + '.bias']
    norm = lambda x, name: F.layer_norm(x, (c,), w[name + '.weight'], w[name + '.bias'], 1e-5)
    with torch.inference_mode():
        x = w['wte.weight'][torch.as_tensor(ids)] + w['wpe.weight'][:len(ids)]
        for i in range(sum(n.endswith('ln_1.weight') for n in w)):
            q, k, v = (p.view(len(ids), heads, -1).transpose(0, 1)[None] for p in conv1d(norm(x, f'h.{i}.ln_1'), f'h.{i}.attn.c_attn').split(c, 1))
            a = F.scaled_dot_product_attention(q, k, v, is_causal=True)[0].transpose(0, 1).reshape(len(ids), c)
            x = x + conv1d(a, f'h.{i}.attn.c_proj')
            x = x + conv1d(F.gelu(conv1d(norm(x, f'h.{i}.ln_2'), f'h.{i}.mlp.c_fc'), approximate='tanh'), f'h.{i}.mlp.c_proj')
        return (norm(x, 'ln_f') @ w['wte.weight'].T).numpy()


def noisy(config: Config, seed: int = 1):
    "A random model whose biases and gains are random too, so that leaving one out shows."
    rng = np.random.default_rng(seed)
    tensors = to_tensors(init(config, seed))
    for name, a in tensors.items():
        if a.ndim == 1: tensors[name] = a + rng.standard_normal(a.shape, np.float32)*np.float32(0.1)
    return tensors


def relative(a, b) -> float: return float(np.abs(a - b).max()/np.abs(b).max())


@pytest.mark.parametrize('tokens', [1, 2, 17, 32])
def test_equals_pytorch(tokens):
    tensors = noisy(Config(3, 2, 128, vocab=300, context=32))
    ids = np.random.default_rng(tokens).integers(0, 300, tokens)
    assert relative(forward(from_tensors(tensors), ids), pytorch(tensors, ids, 2)) < 5e-6


@pytest.fixture(scope='module')
def small():
    tensors = noisy(SIZES['small'])
    return tensors, from_tensors(tensors)


@pytest.mark.slow
@pytest.mark.parametrize('tokens', [1, 64, 1024])
def test_real_size_equals_pytorch(small, tokens):
    "GPT-2 small at its real sizes, seeded random weights."
    tensors, model = small
    ids = np.random.default_rng(tokens).integers(0, 50_257, tokens)
    ours, theirs = forward(model, ids), pytorch(tensors, ids, 12)
    assert relative(ours, theirs) < 5e-6
    assert (ours.argmax(1) == theirs.argmax(1)).mean() > 0.99 and ours[-1].argmax() == theirs[-1].argmax()


@pytest.mark.slow
def test_real_size_writes_what_pytorch_would(small):
    "The decoder at GPT-2 small's sizes: the same greedy tokens, with the whole prompt at once and then token by token."
    from bendml.decode import of_gpt2, read
    tensors, model = small
    d = of_gpt2(model)
    cache, ids = d.cache(), np.random.default_rng(9).integers(0, 50_257, 40).tolist()
    rows = [read(d, cache, ids).copy()]
    for _ in range(12):
        ids.append(int(rows[-1].argmax()))
        rows.append(d.step(cache, ids[-1]).copy())
    theirs = pytorch(tensors, ids, 12)[39:]
    assert relative(np.array(rows), theirs) < 5e-6 and [r.argmax() for r in rows] == theirs.argmax(1).tolist()


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
