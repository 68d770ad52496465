# %%
#| default_exp mini

# %% [markdown]
# # A GPT-2 of our own
# > A small model that comes with bendml, and how it was trained: on what every Python brings along.

# %% [markdown]
# The published GPT-2 is half a gigabyte, which nobody wants in a repository. So that everyone has a model which says
# something, and every test can have one, there is `mini`: the same network, fifty times smaller, trained on the
# sources of Python's standard library, which lie on every machine that runs this page. It has learnt to write what
# looks like Python. It does not know what the programs do.

# %%
#| hide
#| export
import json, sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy import float32

from bendml import gpt2
from bendml.checkpoint.safetensors import write_safetensors
from bendml.nn.layer import Layer, Residual, Seq, accumulate, leaves
from bendml.nn.layers import GELU, Embedding, LayerNorm, Linear, Positions, cross_entropy, self_attention
from bendml.optim import AdamW, warmup_cosine
from bendml.tokenizer import Tokenizer
from bendml.train import Run, train

# %% [markdown]
# ## The text
#
# Some eight megabytes of Python, without the tests, and without files that are tables rather than programs. Every
# twentieth file is held back: what the model says about those shows what it has learnt and not only kept.

# %%
#| export
LEFT_OUT = {'site-packages', 'dist-packages', 'test', 'tests', 'idlelib', 'lib2to3', 'turtledemo', 'ensurepip',
            'encodings', 'pydoc_data', '__pycache__'}

def sources() -> tuple[list[Path], list[Path]]:
    "The files of the standard library: to learn from, and to be judged by."
    root = Path(sysconfig.get_path('stdlib'))
    found = [p for p in sorted(root.rglob('*.py')) if not LEFT_OUT & {*p.relative_to(root).parts} and not p.name.startswith('_sysconfig')]
    return [p for i, p in enumerate(found) if i % 20], found[::20]


# %% [markdown]
# Its words are cut as GPT-2 cuts them, and 1,791 merges are learnt from the files themselves. A special token stands
# between two files.

# %%
#| export
VOCAB, END = 2048, '<|endoftext|>'

def learn_words(files: list[Path]) -> Tokenizer:
    "A tokenizer for these files."
    return Tokenizer.train(files, VOCAB, special_tokens=[END], progress=False)

def as_ids(tokenizer: Tokenizer, files: list[Path]) -> np.ndarray:
    "The files' tokens one after the other, (N,) int64, each file ended by the special token."
    end = tokenizer.vocab.special[END]
    return np.concatenate([a for p in files for a in (tokenizer.encode(p.read_bytes(), as_array=True, disallowed_special=()), [end])]).astype(np.int64)


# %%
learn, judge = sources()
len(learn) > 100, len(judge) > 5


# %% [markdown]
# ## The network
#
# GPT-2 as [layers](63b_layers.ipynb), which know the way back. Its head is the table of tokens that it begins with, so
# this table gets two derivatives, one from either end, and is one parameter: the optimizer moves it once.

# %%
#| export
@dataclass(frozen=True)
class Tied(Layer):
    "A table of tokens at both ends of a network: (B, T) whole numbers to (B, T, V) scores."
    table: Embedding
    inner: Layer
    takes = 'ids'
    gives = property(lambda self: self.table.size)
    def parts(self): return self.table, self.inner
    def out(self, t=None):
        self.inner.out(self.table.out(t))
        return self.gives
    def _forward(self, p, ids):
        x, s = self.table.forward(p[0], ids)
        y, t = self.inner.forward(p[1], x)
        return (y.reshape(-1, y.shape[-1]) @ p[0][0].T).reshape(*ids.shape, -1), (s, t, y)
    def _backward(self, p, saved, dz, g):
        s, t, y = saved
        dz = dz.reshape(-1, dz.shape[-1])
        accumulate(g[0][0], dz.T @ y.reshape(len(dz), -1), 'the table')
        dx = self.inner.backward(p[1], t, (dz @ p[0][0]).reshape(y.shape), g[1])
        return self.table.backward(p[0], s, dx, g[0])


# %%
#| export
def network(c: gpt2.Config) -> Tied:
    "GPT-2 in layers. Its parameters come in the order of the published file."
    block = lambda: (Residual(LayerNorm(c.channels), self_attention(c.channels, c.heads)),
                     Residual(LayerNorm(c.channels), Linear(c.channels, 4*c.channels), GELU(), Linear(4*c.channels, c.channels)))
    return Tied(Embedding(c.vocab, c.channels), Seq(Positions(c.context, c.channels), *(part for _ in range(c.layers) for part in block()), LayerNorm(c.channels)))

def to_layers(model: gpt2.Gpt2) -> tuple:
    "A model's parameters for `network`."
    arrays = iter(gpt2.parameters(model))
    return network(model.config).make(lambda name, shape: np.ascontiguousarray(next(arrays)))

def from_layers(c: gpt2.Config, p: tuple) -> gpt2.Gpt2:
    "And back."
    return gpt2.from_parameters(c, leaves(p))


# %% [markdown]
# The same scores as the page on [GPT-2](72_gpt2.ipynb) computes, for every text of a batch:

# %%
tiny = gpt2.init(gpt2.Config(2, 2, 64, vocab=100, context=32))
net, ids = network(tiny.config), np.random.default_rng(0).integers(0, 100, (3, 20))
scores, _ = net.forward(to_layers(tiny), ids)
off = max(np.abs(s - gpt2.forward(tiny, i)).max() for s, i in zip(scores, ids))
assert off < 1e-5 and net.count == gpt2.count(tiny)
off

# %% [markdown]
# ## Learning
#
# At the beginning the layers that add to what a token knows are small, one part in $\sqrt{2L}$, so that many of them together
# do not drown it. Then: texts of 256 tokens from anywhere, eight at a time; [AdamW](68_optim.ipynb), with a learning rate that
# climbs, falls slowly, and at the end quickly. All random numbers come from seeds.

# %%
#| export
MINI = gpt2.Config(layers=4, heads=3, channels=192, vocab=VOCAB, context=256)
STEPS, FALL, TEXTS = 3300, 2500, 8

def rate(step: int) -> float:
    "The learning rate of a step: a climb, the slow fall of a cosine, and from step 2,500 on a straight line to nothing."
    slow = warmup_cosine(2e-3, 200, 5000, 2e-4)
    return slow(step) if step < FALL else slow(FALL)*max(0., (STEPS - step)/(STEPS - FALL))

def fresh(c: gpt2.Config, seed: int = 0) -> gpt2.Gpt2:
    "Parameters to begin with: normal, 0.02, and smaller where a layer adds to what is there."
    model, small = gpt2.init(c, seed), float32((2*c.layers)**-.5)
    shrink = lambda layer: layer._replace(w=layer.w*small)
    return model._replace(blocks=tuple(b._replace(proj=shrink(b.proj), down=shrink(b.down)) for b in model.blocks))

def windows(ids: np.ndarray, at: np.ndarray, length: int) -> tuple[np.ndarray, np.ndarray]:
    "Texts that begin at places `at`, and the same one token further on: what comes next."
    places = at[:, None] + np.arange(length + 1)
    return ids[places[:, :-1]], ids[places[:, 1:]]

def judged(net: Layer, p: tuple, ids: np.ndarray, context: int, texts: int = 8) -> float:
    "The mean surprise, in nats a token, over all of a text."
    starts = np.arange(0, len(ids) - context - 1, context)
    losses = []
    for i in range(0, len(starts), texts):
        x, y = windows(ids, starts[i:i + texts], context)
        losses += [cross_entropy(net.forward(p, x)[0], y)[0]]*len(x)
    return float(np.mean(losses))


# %%
#| export
def learn_model(
    ids: np.ndarray,    # (N,) tokens to learn from
    c: gpt2.Config,
    steps: int,         # in all, those made before included
    lr,                 # the learning rate, or one for each step
    texts: int = TEXTS,
    **more,             # for `train`: checkpoint, log, evaluate
) -> Run:
    "Train a GPT-2 on tokens; it goes on from a checkpoint, if there is one."
    net = network(c)
    rule = AdamW(lr=lr, decay=.1, betas=(.9, .95))
    rng = np.random.default_rng(1)
    p = to_layers(fresh(c))
    return train(net, lambda rng, step: windows(ids, rng.integers(0, len(ids) - c.context - 1, texts), c.context), rule, steps,
                 run=Run(p, rule.start(net), rng), longest=1., **more)


# %% [markdown]
# In small: forty steps on a few files, and the surprise falls from that of guessing, $\ln V$.

# %%
words = learn_words(learn[:3])
few = as_ids(words, learn[:3])
small = gpt2.Config(1, 1, 64, vocab=VOCAB, context=64)
before = judged(network(small), to_layers(fresh(small)), few[:2000], 64)
after = judged(network(small), learn_model(few, small, 40, 2e-3, texts=4, progress=False).parameters, few[:2000], 64)
assert after < 6 < before < 8
round(before, 2), round(after, 2)


# %% [markdown]
# ## Written down
#
# In the names and layouts of the published GPT-2, so that any program that reads those reads this one; with 16 bits a
# number, which is half the size and as good.

# %%
#| export
def write_model(folder: Path, model: gpt2.Gpt2, tokenizer: Tokenizer) -> None:
    "config.json, model.safetensors and tokenizer.json, as Hugging Face's programs read them."
    c, end = model.config, tokenizer.vocab.special[END]
    settings = {'architectures': ['GPT2LMHeadModel'], 'model_type': 'gpt2', 'vocab_size': c.vocab, 'n_positions': c.context, 'n_embd': c.channels,
                'n_layer': c.layers, 'n_head': c.heads, 'layer_norm_epsilon': c.eps, 'activation_function': 'gelu_new', 'tie_word_embeddings': True,
                'bos_token_id': end, 'eos_token_id': end}
    folder.mkdir(parents=True, exist_ok=True)
    (folder/'config.json').write_text(json.dumps(settings, indent=1) + '\n')
    write_safetensors(folder/'model.safetensors', {n: np.ascontiguousarray(a, np.float16) for n, a in gpt2.to_tensors(model).items()})
    tokenizer.save(folder/'tokenizer.json')


# %% [markdown]
# `tools/train_mini.py` does all of this. It can be stopped and continued, and gives the same bits as if it had not been, as
# [training](69_train.ipynb) promises. This is what it wrote down when the model in this repository was trained: how surprised
# the model was by files that it had never seen.

# %%
from bendml.data import bundled
facts = json.loads((bundled('mini')/'training.json').read_text())
print(f'{facts["tokens"]:,} tokens in {facts["files"]} files of Python {facts["python"]}, {facts["steps"]} steps of {TEXTS*MINI.context} tokens')
print(f'on {facts["held_back_files"]} files held back: {facts["nats_a_token"]} nats a token, {facts["bits_a_byte"]} bits a byte')

# %%
#| echo: false
import matplotlib.pyplot as plt
fig, ax = plt.subplots(figsize=(5, 2), layout='constrained')
ax.plot(*zip(*facts['held']), color='#6d4aff', marker='.')
ax.set(xlabel='step', ylabel='nats a token, held back')
for side in ('top', 'right'): ax.spines[side].set_visible(False)

# %% [markdown]
# ## What it writes

# %%
from bendml.generate import Sampling, complete, load_model
mini = load_model('mini')
for start in ('    try:\n        return self._data[key]\n    except', 'if not isinstance(name, str):\n    raise'):
    print(start + complete(mini, start, 24).text, '\n' + '-'*40)

# %% [markdown]
# The most likely token every time is dull, and soon repeats itself. Drawn at random:

# %%
print('def ' + complete(mini, 'def ', 80, Sampling(temperature=.7, top_p=.95, seed=4)).text)

# %% [markdown]
# On the command line, `bendml generate "def " --model mini`.

# %% [markdown]
# ## What this does not show
#
# - That what it writes runs. It has seen two and a half million tokens, two or three times; models that write working programs have seen
#   a million times as many.
# - The same bits on another kind of processor, with another version of NumPy, or from another Python's library. What a model
#   learns depends on the last digit of every sum. The model in this repository made its first 2,435 steps with two threads and
#   the others with one, as the program does now, so one run of the program gives a sister of it, not a twin.
