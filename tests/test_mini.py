"The small GPT-2 that comes with bendml: what is in the clone, what it says, and that its training is that of PyTorch."
import json, os, subprocess, sys
from pathlib import Path
import numpy as np, pytest
import oracle
from bendml import gpt2
from bendml.checkpoint import open_weights
from bendml.checkpoint.files import read_settings
from bendml.data import bundled
from bendml.generate import complete, load_model
from bendml.mini import MINI, as_ids, fresh, from_layers, judged, learn_model, learn_words, network, sources, to_layers
from bendml.nn.layer import leaves
from bendml.nn.layers import cross_entropy

FOLDER = bundled('mini')


@pytest.fixture(scope='module')
def mini(): return load_model('mini')


@pytest.fixture(scope='module')
def theirs():
    from transformers import GPT2LMHeadModel
    oracle._quiet()
    return GPT2LMHeadModel.from_pretrained(FOLDER, dtype='float32', local_files_only=True).eval()


def test_what_is_in_the_folder():
    weights = open_weights(FOLDER)
    assert {n: w.shape for n, w in weights.stored.items()} == {n: w.shape for n, w in gpt2.published(MINI).items()}
    assert gpt2.hf_config(read_settings(FOLDER/'config.json')) == MINI
    assert sum(f.stat().st_size for f in FOLDER.iterdir()) < 8_000_000
    facts = json.loads((FOLDER/'training.json').read_text())
    assert facts['bits_a_byte'] < 2 and facts['held'][-1][1] < 4


def test_it_says_what_transformers_says(mini, theirs):
    weights = open_weights(FOLDER)
    model = gpt2.from_tensors({n: weights.float32(n) for n in weights}, MINI)
    ids = mini.tokenizer.encode('import os\n\nclass Path:\n    def __init__(self, path):\n        self.path = path\n')
    assert oracle.relative(gpt2.forward(model, ids), oracle.scores(theirs, ids)) < 5e-6
    for prompt in ('def ', 'if not isinstance(name, str):\n    raise', 'class Error(Exception):\n    def '):
        text = complete(mini, prompt, 40)
        assert text.ids == oracle.greedy(theirs, text.prompt, 40)[:len(text.ids)]


def test_what_it_says(mini):
    "Always the same, greedily."
    text = complete(mini, 'def ', 24)
    assert text.text == 'validate_float(float):\n    """\n    Callow a string to the string.\n\n    This is' and text.ids[:5] == [866, 392, 95, 102, 1347]


def test_its_words_are_those_of_tokenizers(mini):
    from tokenizers import Tokenizer
    theirs = Tokenizer.from_file(str(FOLDER/'tokenizer.json'))
    for text in ('def f(x): return x**2  # ä €', Path(__file__).read_text()): assert mini.tokenizer.encode(text) == theirs.encode(text).ids


@pytest.mark.slow
def test_the_command_from_a_clone_without_a_network(tmp_path):
    env = os.environ | {'BENDML_DATA': str(tmp_path), 'HTTPS_PROXY': 'http://127.0.0.1:9', 'HTTP_PROXY': 'http://127.0.0.1:9', 'PIP_NO_INDEX': '1'}
    run = subprocess.run([sys.executable, '-W', 'ignore', '-c', 'from bendml.cli import main; main()', 'generate', '--model', 'mini', 'def ', '-n', '24'], env=env, capture_output=True, text=True)
    assert run.returncode == 0 and run.stdout.startswith('def ') and len(run.stdout) > 20, run.stderr
    assert list(tmp_path.iterdir()) == []


def test_gradients_are_those_of_pytorch():
    "By the published names; the table at both ends has one derivative, the sum."
    import torch
    c = gpt2.Config(2, 2, 64, vocab=50, context=16)
    model = gpt2.init(c, 3)
    net, p = network(c), to_layers(model)
    ids = np.random.default_rng(0).integers(0, 50, (3, 13))
    z, saved = net.forward(p, ids[:, :-1])
    loss, dz = cross_entropy(z, ids[:, 1:])
    g = net.zeros()
    net.backward(p, saved, dz, g)
    theirs = oracle.gpt2(gpt2.to_tensors(model), 2)
    theirs.requires_grad_()
    out = torch.nn.functional.cross_entropy(theirs(torch.as_tensor(ids[:, :-1])).logits.flatten(0, 1), torch.as_tensor(ids[:, 1:]).flatten())
    out.backward()
    assert abs(out.item() - loss) < 1e-5
    grads = {n.removeprefix('transformer.'): w.grad.numpy() for n, w in theirs.named_parameters()}
    for name, ours in gpt2.to_tensors(from_layers(c, g)).items(): assert np.abs(ours - grads[name]).max() < 2e-6 + 1e-4*np.abs(grads[name]).max(), name


def test_training_goes_on_where_it_stopped(tmp_path):
    learn, judge = sources()
    words = learn_words(learn[:2])
    ids, c = as_ids(words, learn[:2]), gpt2.Config(1, 1, 64, vocab=2048, context=32)
    whole = learn_model(ids, c, 6, 1e-3, texts=2, progress=False)
    for steps in (2, 6): parts = learn_model(ids, c, steps, 1e-3, texts=2, progress=False, checkpoint=tmp_path/'run')
    assert all(a.tobytes() == b.tobytes() for a, b in zip(leaves(whole.parameters), leaves(parts.parameters), strict=True))
    assert judged(network(c), whole.parameters, ids[:500], 32) < judged(network(c), to_layers(fresh(c)), ids[:500], 32)
