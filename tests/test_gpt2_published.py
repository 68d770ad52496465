"""The published GPT-2 small, where `bendml data gpt2` could fetch it; elsewhere this file is not collected (tests/conftest.py).

The first prompt's ids and scores were published with the source system; the others are held to transformers on the same file.
"""
import numpy as np, pytest
import oracle
from bendml.checkpoint import open_weights
from bendml.data import fetch
from bendml.generate import complete, load_model

PROMPTS = {'The capital of France is': 8, 'Wait — the café costs €5 😀 and': 6, 'Machine learning is': 8, '1, 2, 3, 4,': 6, 'def fibonacci(n):': 12, 'Once upon a time': 32,
           'The quick brown fox jumps over the lazy dog. The': 10, 'Q: What is 2 + 2?\nA:': 8, 'Paris is the capital of': 6, 'In 1969, humans first': 10,
           'import numpy as np\n\n': 10}
FRANCE = {262: -100.24986, 3139: -97.601974, 286: -49.064972, 4141: -88.8842, 2066: -96.78347, 11: -57.253235, 290: -102.21436}


@pytest.fixture(scope='module')
def model(): return load_model('gpt2')


@pytest.fixture(scope='module')
def theirs():
    weights = open_weights(fetch('gpt2'))
    return oracle.gpt2({n: weights.float32(n) for n in weights if not n.endswith('attn.bias')}, 12)


def test_the_published_ids_and_scores(model):
    text = complete(model, 'The capital of France is', 8)
    assert text.prompt == [464, 3139, 286, 4881, 318] and text.ids == [262, 3139, 286, 262, 4141, 2066, 11, 290]
    assert text.text == ' the capital of the French Republic, and'
    d, cache = model.decoder, model.decoder.cache()
    for i in text.prompt: scores = d.step(cache, i)
    for n, i in enumerate(text.ids):
        if n != 3: assert abs(scores[i] - FRANCE[i]) < 5e-2, (i, scores[i])
        else: assert abs(scores[i] + 73.67762) < 5e-2
        scores = d.step(cache, i)


@pytest.mark.parametrize('prompt', PROMPTS)
def test_what_transformers_writes(model, theirs, prompt):
    text = complete(model, prompt, PROMPTS[prompt])
    assert text.ids == oracle.greedy(theirs, text.prompt, PROMPTS[prompt])
    rows, d, cache = oracle.scores(theirs, text.prompt + text.ids), model.decoder, model.decoder.cache()
    for i, row in zip(text.prompt + text.ids, rows): assert np.abs(d.step(cache, i) - row).max() < 5e-3
