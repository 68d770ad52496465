# %%
#| default_exp gpt2

# %% [markdown]
# # GPT-2
# > A language model in forty lines of NumPy, told from zero, which reads the published weights.

# %% [markdown]
# In February 2019 [Radford and others](https://cdn.openai.com/better-language-models/language_models_are_unsupervised_multitask_learners.pdf)
# published a network that had learnt one thing: to guess the next token of a text. Asked how "The capital of France is"
# goes on, it can name Paris, though nobody taught it geography. Everything that has come since, of this kind, is a
# larger relative with small changes; [the page on Llama](74_llama.ipynb) counts them.
#
# This page is the whole network, written to be read. It is also the reference: the fast version on
# [a later page](76_decode.ipynb) is held to its numbers.
#
# Letters for sizes: $T$ tokens of a text, $C$ channels (the numbers that stand for one token), $H$ heads, $D = C/H$ numbers a
# head, $V$ tokens that there are, $P$ positions. In the signatures they are [checked](24_shape.ipynb): whatever `@typed` accepts
# fits for every size, every length of text, and any number of layers.

# %%
#| hide
#| export
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy import float32

from bendml.attention import attend, join_heads, split_heads
from bendml.checks import Wanted, WeightsError, check_claims, check_ids, check_shapes, check_tied, setting, some
from bendml.shape import Int, Mat, OutIn, Vec, dims, typed
from bendml.shape.annotations import TupleSpec

C, H, K, M, P, T, V = dims('C H K M P T V')


# %% [markdown]
# ## Sizes
#
# GPT-2 was published in four sizes. They differ in three numbers.

# %%
#| export
@dataclass(frozen=True)
class Config:
    "The sizes of a GPT-2."
    layers: int
    heads: H
    channels: C
    vocab: V = 50_257
    context: P = 1024     # the longest text
    eps: float = 1e-5     # keeps a layer norm from dividing by zero

    def __post_init__(self):
        sizes = (self.layers, self.heads, self.channels, self.vocab, self.context)
        if min(sizes) < 1 or self.channels % self.heads or not 0 < self.eps < math.inf:
            raise WeightsError('a GPT-2 of these sizes', 'all at least 1, channels a multiple of heads, eps above 0', f'{self}')
        check_claims(self.layers, self.context)

SIZES = {
    'small': Config(12, 12, 768),
    'medium': Config(24, 16, 1024),
    'large': Config(36, 20, 1280),
    'xl': Config(48, 25, 1600),
}


# %% [markdown]
# ## Parameters
#
# A linear layer holds a row of weights for each number it puts out, `OutIn`. The published files hold the transpose; loading
# turns them, below. `Linear['3*C', C]` in a signature is such a layer with $3C$ rows of $C$ weights.

# %%
#| export
class Norm(NamedTuple):
    "A layer norm."
    gain: Vec[C]
    bias: Vec[C]

class Linear(NamedTuple):
    "A linear layer."
    w: np.ndarray
    b: np.ndarray
    @classmethod
    def __class_getitem__(cls, sizes):
        out, into = sizes
        return TupleSpec((OutIn[Mat[out, into]], Vec[out]), cls._fields, cls)

class Block(NamedTuple):
    "One layer of the network: attention, then a small network for each token."
    norm1: Norm
    qkv: Linear['3*C', C]   # queries, keys and values, one below the other
    proj: Linear[C, C]
    norm2: Norm
    up: Linear['4*C', C]
    down: Linear[C, '4*C']

class Gpt2(NamedTuple):
    "A GPT-2 with its parameters, float32."
    config: Config
    tokens: Mat[V, C]       # what each token means; at the end also what each answer means
    positions: Mat[P, C]
    blocks: tuple[Block, ...]
    norm: Norm


# %% [markdown]
# ## The pieces
#
# A token comes in as $C$ numbers, and they are kept in reasonable size by a **layer norm**: subtract the mean, divide by
# the standard deviation, then stretch and shift each channel as learnt.
#
# $$\frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} \cdot g + b$$

# %%
#| export
@typed(keep='T')
def layer_norm(x: Mat[T, C], norm: Norm, eps: float = 1e-5) -> Mat[T, C]:
    "Each row with mean 0 and variance 1, then stretched and shifted."
    centred = x - x.mean(axis=1, keepdims=True)
    variance = np.square(centred).mean(axis=1, keepdims=True)
    return centred/np.sqrt(variance + eps)*norm.gain + norm.bias


# %% [markdown]
# The variance is the mean of the squared distances from the mean. The shortcut $\overline{x^2} - \overline{x}^2$ would
# subtract two large numbers from each other: for the row 40000, 40001, 40002, 40003 in `float32` it gives −128, and its
# root is not a number.

# %%
row = np.array([[40000, 40001, 40002, 40003]], float32)
print((row**2).mean() - row.mean()**2)
layer_norm(row, Norm(np.ones(4, float32), np.zeros(4, float32)))


# %% [markdown]
# A **linear layer** mixes the channels, and **GELU** lets through what is positive, and a little of what is not:

# %%
#| export
@typed
def linear(x: Mat[T, K], layer: Linear[M, K]) -> Mat[T, M]:
    "x Wᵀ + b"
    return x @ layer.w.T + layer.b

def gelu(x: np.ndarray) -> np.ndarray:
    "0.5 x (1 + tanh(√(2/π) (x + 0.044715 x³))), the form that GPT-2 was trained with (Hendrycks and Gimpel 2016)."
    return 0.5*x*(1 + np.tanh(math.sqrt(2/math.pi)*(x + 0.044715*x*x*x)))


# %%
gelu(np.array([1, -2], float32))   # GELU's other form, with erf, would give 0.8413447 and -0.0455003


# %% [markdown]
# ## Attention
#
# Up to here each token was looked at by itself. [Attention](70b_attention.ipynb) is where they meet: one linear layer makes
# the queries, keys and values of all heads, each token reads from itself and the tokens before it, and a second layer mixes
# what the heads have read.

# %%
#| export
@typed(where='C % H == 0')
def attention(x: Mat[T, C], block: Block, heads: H) -> Mat[T, C]:
    "Each token reads from itself and the tokens before it."
    q, k, v = (split_heads(part, heads) for part in np.split(linear(x, block.qkv), 3, axis=1))  # (H, T, D) each
    return linear(join_heads(attend(q, k, v)), block.proj)


# %% [markdown]
# ## The network
#
# A block adds to each token what it read, and then what a small network makes of it. Everything is *added* to what was
# there, so that what a token knows is carried from the first block to the last.

# %%
#| export
@typed(where='C % H == 0')
def block_forward(x: Mat[T, C], block: Block, heads: H, eps: float) -> Mat[T, C]:
    "One layer."
    x = x + attention(layer_norm(x, block.norm1, eps), block, heads)
    return x + linear(gelu(linear(layer_norm(x, block.norm2, eps), block.up)), block.down)

@typed(where=['C % H == 0', 'T <= P', 'ids < V'])
def network(model: Gpt2, ids: Int[Vec[T]]) -> Mat[T, V]:
    "The whole network: for each position a score for every token that may come next."
    x = model.tokens[ids] + model.positions[:len(ids)]
    for block in model.blocks: x = block_forward(x, block, model.config.heads, model.config.eps)
    return layer_norm(x, model.norm, model.config.eps) @ model.tokens.T


# %% [markdown]
# That is all of it. The last line compares each row with the meaning of every token, which is the same table that the
# tokens came in by: the head is *tied*. The check followed it through no layer, one, and any number of them:

# %%
network.__shapes__.report()


# %% [markdown]
# Whoever calls it may have a list of numbers, and too many of them:

# %%
#| export
def forward(
    model: Gpt2,
    ids: np.ndarray,  # (T,) token numbers
) -> Mat[T, V]:
    "The scores for a text; `ContextError` if it is too long, `ValueError` for an unknown token."
    return network(model, check_ids(ids, model.config.vocab, model.config.context))


# %% [markdown]
# Four ways to get it wrong, each of them a slip of one word. The first two would stop at some sizes and not at others; the third
# is right for every shape that NumPy looks at, since the weights are square; the last would run, and mix positions.

# %%
from bendml.shape import Arr, ShapeError
D = dims('D')[0]

def refused(build):
    try: build()
    except ShapeError as e: print(e, '\n')

def thirds_of_rows():
    @typed
    def bad(x: Mat[T, C], qkv: Linear['3*C', C]) -> Mat[T, C]:
        q, k, v = np.split(linear(x, qkv), 3, axis=0)
        return q

def no_transpose():
    @typed
    def bad(x: Mat[T, C], tokens: Mat[V, C]) -> Mat[T, V]: return x @ tokens

def stored_the_other_way():
    @typed
    def bad(x: Mat[T, C], proj: Linear[C, C]) -> Mat[T, C]: return x @ proj.w + proj.b

def norm_over_positions():
    @typed(keep='T')
    def bad(x: Mat[T, C], norm: Norm) -> Mat[T, C]: return (x - x.mean(axis=0))*norm.gain + norm.bias

for build in (thirds_of_rows, no_transpose, stored_the_other_way, norm_over_positions): refused(build)


# %% [markdown]
# ## A network that has learnt nothing
#
# Random weights, of the sizes that the real ones begin with (normal, 0.02). Such a network says nothing sensible, but it
# computes the same things, which is what tests of arithmetic and speed need.

# %%
#| export
def init(
    config: Config,
    seed: int = 0,
) -> Gpt2:
    "A fresh network: normal weights with standard deviation 0.02, gains 1, biases 0."
    rng, c = np.random.default_rng(seed), config.channels
    draw = lambda *shape: rng.standard_normal(shape, float32)*float32(0.02)
    norm = lambda: Norm(np.ones(c, float32), np.zeros(c, float32))
    layer = lambda out, into: Linear(draw(out, into), np.zeros(out, float32))
    tokens, positions = draw(config.vocab, c), draw(config.context, c)
    blocks = tuple(Block(norm(), layer(3*c, c), layer(c, c), norm(), layer(4*c, c), layer(c, 4*c)) for _ in range(config.layers))
    return Gpt2(config, tokens, positions, blocks, norm())

def parameters(model: Gpt2) -> list[np.ndarray]:
    "All parameters, in the order of the published file."
    return [model.tokens, model.positions, *(a for block in model.blocks for pair in block for a in pair), *model.norm]

def from_parameters(config: Config, arrays: Iterable[np.ndarray]) -> Gpt2:
    "A network from its parameters in that order."
    left = iter(arrays)
    pair = lambda kind: kind(next(left), next(left))
    tokens, positions = next(left), next(left)
    blocks = tuple(Block(*map(pair, (Norm, Linear, Linear, Norm, Linear, Linear))) for _ in range(config.layers))
    return Gpt2(config, tokens, positions, blocks, pair(Norm))

def count(model: Gpt2) -> int:
    "How many parameters a network has."
    return sum(a.size for a in parameters(model))


# %%
tiny = init(Config(layers=2, heads=4, channels=64, vocab=100, context=32))
forward(tiny, [5, 3, 8]).shape, count(tiny)

# %% [markdown]
# The first rows do not depend on the later ones, as [the law](71_kvcache.ipynb) says; here in floating point:

# %%
ids = np.arange(20)
ahead = np.abs(forward(tiny, ids)[:12] - forward(tiny, ids[:12])).max()
assert ahead < 1e-6
ahead

# %%
for wrong in (np.arange(33), [3, 100]):
    try: forward(tiny, wrong)
    except ValueError as e: print(type(e).__name__, e, sep=': ')


# %% [markdown]
# ## The published weights
#
# In the published file a linear layer is stored as `(in, out)`, the transpose of ours (its authors called it *Conv1D*).
# For the square matrices no shape can tell which is which; so it is written down, for each name, and not guessed.

# %%
#| export
def published(config: Config) -> dict[str, Wanted]:
    "The tensors of the published file, by name."
    c, out = config.channels, {}
    def norm(name): out[name + '.weight'] = out[name + '.bias'] = Wanted((c,))
    def conv1d(name, into, to): out[name + '.weight'], out[name + '.bias'] = Wanted((into, to), True), Wanted((to,))
    out['wte.weight'], out['wpe.weight'] = Wanted((config.vocab, c)), Wanted((config.context, c))
    for i in range(config.layers):
        norm(f'h.{i}.ln_1')
        conv1d(f'h.{i}.attn.c_attn', c, 3*c)
        conv1d(f'h.{i}.attn.c_proj', c, c)
        norm(f'h.{i}.ln_2')
        conv1d(f'h.{i}.mlp.c_fc', c, 4*c)
        conv1d(f'h.{i}.mlp.c_proj', 4*c, c)
    norm('ln_f')
    return out


# %%
list(published(SIZES['small']).items())[:6]


# %% [markdown]
# A file that is not a GPT-2 is refused with the names of what is missing and of what should not be there. Two things
# are allowed besides: the causal masks, which some files carry along, and the head, if it is byte for byte the table of
# tokens that it is tied to.

# %%
#| export
def check_tensors(tensors: Mapping[str, np.ndarray], config: Config) -> None:
    "Are all of the model's tensors there, of the right shapes, and no others? `WeightsError` names those that are not."
    masks = [f'h.{i}.attn.{name}' for i in range(config.layers) for name in ('bias', 'masked_bias')]
    check_shapes(published(config), {name: a.shape for name, a in tensors.items()}, ['lm_head.weight', *masks])
    check_tied(True, 'lm_head.weight', tensors.get('lm_head.weight'), tensors['wte.weight'])


# %% [markdown]
# Names may begin with `transformer.`, as in files that were saved together with the head. Matrices that were
# [turned before](72b_turned.ipynb) are taken as they are.

# %%
#| export
def from_tensors(
    tensors: Mapping[str, np.ndarray],  # float32, in the published names and layouts
    config: Config | None = None,       # None: as the tensors' shapes say
    turned: Mapping[str, np.ndarray] = {},  # some of the matrices, transposed already
) -> Gpt2:
    "A GPT-2 from the tensors of a published file; `WeightsError` says what is missing, unexpected or of another shape."
    tensors = {name.removeprefix('transformer.'): a for name, a in tensors.items()}
    config = config or sizes_of(tensors)
    check_tensors(tensors, config)
    def take(name, wanted):
        if not wanted.transposed: return tensors[name]
        return turned[name] if name in turned else np.ascontiguousarray(tensors[name].T)
    return from_parameters(config, [take(*item) for item in published(config).items()])

def sizes_of(tensors: Mapping[str, np.ndarray]) -> Config:
    "The sizes that the tensors' shapes say; every GPT-2 has 64 channels a head."
    if missing := [n for n in ('wte.weight', 'wpe.weight') if n not in tensors or tensors[n].ndim != 2]:
        raise WeightsError('not a GPT-2', 'matrices wte.weight and wpe.weight', f'no {some(missing)}')
    (vocab, channels), context = tensors['wte.weight'].shape, len(tensors['wpe.weight'])
    layers = 1 + max((int(n.split('.')[1]) for n in tensors if n.startswith('h.') and n.split('.')[1].isdigit()), default=-1)
    if layers < 1 or channels < 64 or channels % 64: raise WeightsError('not a GPT-2', 'layers, and a multiple of 64 channels', f'{layers} layers, {channels} channels')
    return Config(layers, channels//64, channels, vocab, context)


# %% [markdown]
# Files in the manner of Hugging Face say their sizes in a `config.json`; a setting that asks for another network is refused.

# %%
#| export
def hf_config(settings: Mapping) -> Config:
    "The sizes that a config.json says."
    if (family := setting(settings, 'model_type', (str,))) != 'gpt2': raise WeightsError('another family of models', 'gpt2', repr(family)[:60])
    channels = setting(settings, 'n_embd')
    usual = {'activation_function': ('gelu_new', 'gelu_pytorch_tanh'), 'n_inner': (None, 4*channels), 'scale_attn_weights': (True,),
             'scale_attn_by_inverse_layer_idx': (False,), 'add_cross_attention': (False,), 'tie_word_embeddings': (True,)}
    for name, values in usual.items():
        if settings.get(name, values[0]) not in values: raise WeightsError(f'setting {name}', ' or '.join(map(repr, values)), repr(settings[name])[:60])
    return Config(setting(settings, 'n_layer'), setting(settings, 'n_head'), channels, setting(settings, 'vocab_size'),
                  setting(settings, 'n_positions'), float(setting(settings, 'layer_norm_epsilon', (float, int), 1e-5)))


# %%
for settings in ({'model_type': 'gpt2', 'n_embd': 64, 'n_inner': 100}, {'model_type': 'gpt2', 'n_embd': 64}):
    try: hf_config(settings)
    except WeightsError as e: print(e)


# %% [markdown]
# And back, for the tests: the parameters under their published names.

# %%
#| export
def to_tensors(model: Gpt2) -> dict[str, np.ndarray]:
    "The parameters in the published names and layouts."
    return {name: a.T if wanted.transposed else a for (name, wanted), a in zip(published(model.config).items(), parameters(model))}


# %%
small = init(Config(layers=1, heads=2, channels=128, vocab=50, context=16))
again = from_tensors(to_tensors(small))
assert np.array_equal(forward(again, [1, 2, 3]), forward(small, [1, 2, 3]))
again.config

# %%
tensors = to_tensors(small)
del tensors['h.0.ln_2.bias']
try: from_tensors(tensors)
except WeightsError as e: print(e)

# %%
tensors = to_tensors(small)
tensors['h.0.mlp.c_fc.weight'] = tensors['h.0.mlp.c_fc.weight'].T
try: from_tensors(tensors)
except WeightsError as e: print(e)

# %% [markdown]
# ## It says something
#
# The published weights are half a gigabyte. With bendml comes a [small GPT-2](79_mini.ipynb) that was trained on Python's own
# library, in the same names and layouts:

# %%
from bendml.checkpoint import open_weights
from bendml.checkpoint.files import read_settings
from bendml.data import bundled
from bendml.tokenizer import Tokenizer
folder = bundled('mini')
weights, words = open_weights(folder), Tokenizer.load(folder)
mini = from_tensors({name: weights.float32(name) for name in weights}, hf_config(read_settings(folder/'config.json')))
ids = words.encode('if not isinstance(name, str):\n    raise')
scores = forward(mini, ids)[-1]
print(f'{count(mini):,} parameters')
for i in np.argsort(-scores)[:5]: print(f'{scores[i]:7.3f}  {words.decode([int(i)])!r}')

# %% [markdown]
# Take the best token, put it behind the text, and read the longer text again, twenty-four times:

# %%
for _ in range(24): ids.append(int(forward(mini, ids)[-1].argmax()))
print(words.decode(ids))

# %% [markdown]
# ## Paris
#
# When a network goes on with "Paris", what has happened? Not that it looked something up. In the texts it learnt from,
# "France" and "Paris" stand near each other as "Italy" and "Rome" do, and weights that guess such texts well are weights
# that give "Paris" a high score there. Attention is what makes it possible: the position that has to answer reads from the
# position that says "France". Where in the network the pair is stored, these pages do not say.
#
# And it need not happen. GPT-2 small, with its published weights, goes on "The capital of France is the capital of the
# French Republic, and": at each step the most likely token, fluent, and empty. The score of a token says how often such a
# text went on that way. It is not a score for being true.

# %% [markdown]
# ## What this does not show
#
# - That the weights are any good; training them is not on this page.
# - Speed. Every token reads the whole text again here.
