# %%
#| default_exp llama

# %% [markdown]
# # Llama
# > What changed in five years: four small things. The network behind most open models, in NumPy.

# %% [markdown]
# Between GPT-2 (2019) and the models that anyone can run at home today lie trillions of words of training, and four
# changes to the network. Put beside [GPT-2](72_gpt2.ipynb):
#
# | | GPT-2 | Llama ([Touvron and others 2023](https://arxiv.org/abs/2302.13971)) |
# |---|---|---|
# | size of a row | layer norm: mean 0, variance 1 | **RMS norm**: mean square 1 |
# | positions | a learnt row for each | **rotary**: queries and keys are turned |
# | feed-forward network | GELU | **SwiGLU**: one half gates the other |
# | keys and values | each head its own | **shared** by a few heads |
#
# And no biases. The model on this page is any of that family; the one that everyone can run is
# [SmolLM2-135M](https://arxiv.org/abs/2502.02737), whose weights `bendml data smollm2` fetches: 135 million, in 98 MB.

# %%
#| hide
#| export
import json, math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy import float32

from bendml.attention import attend, join_heads, split_heads
from bendml.checkpoint.gguf import read_gguf
from bendml.checkpoint.weights import Weights
from bendml.checks import Wanted, WeightsError, check_claims, check_ids, check_shapes, check_tied, setting
from bendml.rope import angles, rotate_pairs, to_pairs
from bendml.shape import Arr, Int, Mat, OutIn, Vec, dims, typed

C, D, F, G, H, P, R, T, V = dims('C D F G H P R T V')


# %% [markdown]
# ## Sizes

# %%
#| export
@dataclass(frozen=True)
class Config:
    "The sizes of a Llama."
    layers: int
    heads: H
    shared: G             # keys and values; divides H
    size: D               # numbers a head
    channels: C
    hidden: F             # of the feed-forward network
    vocab: V
    context: P            # the longest text
    eps: float = 1e-5     # keeps a norm from dividing by zero
    base: float = 10_000. # of the rotary angles
    tied: bool = True     # is the head the table of tokens?

    def __post_init__(self):
        sizes = (self.layers, self.heads, self.shared, self.size, self.channels, self.hidden, self.vocab, self.context)
        if min(sizes) < 1 or self.heads % self.shared or self.size % 2 or not (self.eps > 0 and 0 < self.base < math.inf):
            raise WeightsError('a Llama of these sizes', 'all at least 1, heads a multiple of shared, an even head size, eps and base above 0', f'{self}')
        check_claims(self.layers, self.context)


# %%
#| export
class Block(NamedTuple):
    "One layer."
    norm1: Vec[C]
    q: OutIn[Mat['H*D', C]]   # rows arranged so that neighbours are turned together
    k: OutIn[Mat['G*D', C]]   # likewise
    v: OutIn[Mat['G*D', C]]
    o: OutIn[Mat[C, 'H*D']]
    norm2: Vec[C]
    gate: OutIn[Mat[F, C]]
    up: OutIn[Mat[F, C]]
    down: OutIn[Mat[C, F]]

class Llama(NamedTuple):
    "A Llama with its parameters, float32."
    config: Config
    tokens: Mat[V, C]
    blocks: tuple[Block, ...]
    norm: Vec[C]
    head: OutIn[Mat[V, C]]   # the table of tokens itself if it is tied


# %% [markdown]
# ## The pieces
#
# **RMS norm**: no mean is subtracted, and there is no bias.
#
# $$\frac{x}{\sqrt{\overline{x^2} + \epsilon}} \cdot g$$

# %%
#| export
@typed(keep='T')
def rms_norm(x: Mat[T, C], gain: Vec[C], eps: float) -> Mat[T, C]:
    "Each row with mean square 1, then stretched."
    return x/np.sqrt(np.square(x).mean(axis=1, keepdims=True) + eps)*gain


# %% [markdown]
# **SwiGLU**: two layers side by side, and one decides how much of the other passes, channel by channel.
# $\mathrm{silu}(z) = z/(1 + e^{-z})$ is about $z$ where $z$ is large and about nothing where it is very negative.

# %%
#| export
def silu(z: np.ndarray) -> np.ndarray:
    "z / (1 + exp(-z))"
    with np.errstate(over='ignore'): return z/(1 + np.exp(-z))

@typed
def feed_forward(x: Mat[T, C], gate: OutIn[Mat[F, C]], up: OutIn[Mat[F, C]], down: OutIn[Mat[C, F]]) -> Mat[T, C]:
    "SwiGLU: a gate, what it lets through, and back to C channels."
    return (silu(x @ gate.T)*(x @ up.T)) @ down.T


# %% [markdown]
# **Attention** with [rotary positions](73_rope.ipynb), which turn the $R = D/2$ pairs of queries and keys, but not values; and
# with keys and values that are shared: SmolLM2 has nine heads and three sets of keys and values, so its cache is a third as large.

# %%
#| export
@typed(where=['H % G == 0', 'D == 2*R'])
def attention(x: Mat[T, C], block: Block, heads: H, shared: G, cos: Mat[T, R], sin: Mat[T, R]) -> Mat[T, C]:
    "Each token reads from itself and the tokens before it."
    q = rotate_pairs(split_heads(x @ block.q.T, heads), cos, sin)    # (H, T, D)
    k = rotate_pairs(split_heads(x @ block.k.T, shared), cos, sin)   # (G, T, D)
    v = split_heads(x @ block.v.T, shared)                           # (G, T, D)
    return join_heads(attend(q, k, v)) @ block.o.T


# %% [markdown]
# ## The network

# %%
#| export
@typed(where=['H % G == 0', 'D == 2*R', 'ids < V'])
def network(model: Llama, ids: Int[Vec[T]], cos: Mat[T, R], sin: Mat[T, R]) -> Mat[T, V]:
    "The whole network: for each position a score for every token that may come next."
    c, x = model.config, model.tokens[ids]
    for block in model.blocks:
        x = x + attention(rms_norm(x, block.norm1, c.eps), block, c.heads, c.shared, cos, sin)
        x = x + feed_forward(rms_norm(x, block.norm2, c.eps), block.gate, block.up, block.down)
    return rms_norm(x, model.norm, c.eps) @ model.head.T

def forward(
    model: Llama,
    ids: np.ndarray,  # (T,) token numbers
) -> Mat[T, V]:
    "The scores for a text; `ContextError` if it is too long, `ValueError` for an unknown token."
    c, ids = model.config, check_ids(ids, model.config.vocab, model.config.context)
    return network(model, ids, *angles(len(ids), c.size, c.base))


# %% [markdown]
# Checked for all sizes, whatever the number of layers, of heads and of keys that they share:

# %%
network.__shapes__.report()

# %% [markdown]
# Forget that there are fewer keys than queries, or take the output's weights the wrong way round (they are square in most models),
# and it does not get as far as a file:

# %%
from bendml.shape import ShapeError
try:
    @typed(where='H % G == 0')
    def bad(x: Mat[T, C], k: OutIn[Mat['G*D', C]], heads: H, shared: G) -> Arr[G, T, D]: return split_heads(x @ k.T, heads)
except ShapeError as e: print(e, '\n')

try:
    @typed
    def bad(x: Mat[T, C], o: OutIn[Mat[C, C]]) -> Mat[T, C]: return x @ o
except ShapeError as e: print(e)

# %% [markdown]
# ## Names in files
#
# There are two families of files, with two sets of names for the same tensors. [GGUF](65b_gguf.ipynb) is what llama.cpp
# reads, and has its sizes inside; Hugging Face's [safetensors](64c_safetensors.ipynb) come with a `config.json`.

# %%
#| export
GGUF_NAMES = {'tokens': 'token_embd.weight', 'norm': 'output_norm.weight', 'head': 'output.weight', 'block': 'blk.{}.',
              'norm1': 'attn_norm.weight', 'q': 'attn_q.weight', 'k': 'attn_k.weight', 'v': 'attn_v.weight', 'o': 'attn_output.weight',
              'norm2': 'ffn_norm.weight', 'gate': 'ffn_gate.weight', 'up': 'ffn_up.weight', 'down': 'ffn_down.weight'}

HF_NAMES = {'tokens': 'model.embed_tokens.weight', 'norm': 'model.norm.weight', 'head': 'lm_head.weight', 'block': 'model.layers.{}.',
            'norm1': 'input_layernorm.weight', 'q': 'self_attn.q_proj.weight', 'k': 'self_attn.k_proj.weight',
            'v': 'self_attn.v_proj.weight', 'o': 'self_attn.o_proj.weight', 'norm2': 'post_attention_layernorm.weight',
            'gate': 'mlp.gate_proj.weight', 'up': 'mlp.up_proj.weight', 'down': 'mlp.down_proj.weight'}

def block_shapes(c: Config) -> dict[str, tuple[int, ...]]:
    "The shapes of one layer's tensors, by field of `Block`."
    wide, narrow = c.heads*c.size, c.shared*c.size
    return {'norm1': (c.channels,), 'q': (wide, c.channels), 'k': (narrow, c.channels), 'v': (narrow, c.channels), 'o': (c.channels, wide),
            'norm2': (c.channels,), 'gate': (c.hidden, c.channels), 'up': (c.hidden, c.channels), 'down': (c.channels, c.hidden)}

def wanted(c: Config, names: Mapping[str, str]) -> dict[str, Wanted]:
    "The tensors of a file, by name; without the head, which may be tied."
    out = {names['tokens']: Wanted((c.vocab, c.channels)), names['norm']: Wanted((c.channels,))}
    for i in range(c.layers):
        out |= {names['block'].format(i) + names[field]: Wanted(shape) for field, shape in block_shapes(c).items()}
    return out


# %% [markdown]
# ## Settings
#
# What a file says about itself is checked like everything else: a setting that is missing, or that asks for something this
# page does not do, is refused by name. Silently leaving out, say, a stretching of the rotary angles would give a model
# that works on short texts and falls apart on long ones.

# %%
#| export
def gguf_config(settings: Mapping, vocab: int, tied: bool) -> Config:
    "The sizes that a GGUF file's settings say."
    if (family := setting(settings, 'general.architecture', (str,))) != 'llama': raise WeightsError('another family of models', 'llama', repr(family)[:60])
    if 'llama.rope.scaling.type' in settings and settings['llama.rope.scaling.type'] != 'none':
        raise WeightsError('rotary angles that are stretched', 'no llama.rope.scaling.type', repr(settings['llama.rope.scaling.type'])[:60])
    of = lambda name, *more: setting(settings, 'llama.' + name, *more)
    heads, channels, number = of('attention.head_count'), of('embedding_length'), (float, int)
    size = of('attention.key_length', (int,), channels//max(heads, 1))
    turned = of('rope.dimension_count', (int,), size)
    if turned != size: raise WeightsError('rotary positions', f'all {size} numbers of a head turned', f'{turned}')
    return Config(of('block_count'), heads, of('attention.head_count_kv', (int,), heads), size, channels, of('feed_forward_length'), vocab,
                  of('context_length'), float(of('attention.layer_norm_rms_epsilon', number)), float(of('rope.freq_base', number, 10_000.)), tied)

def hf_config(settings: Mapping) -> Config:
    "The sizes that a config.json says."
    if (family := setting(settings, 'model_type', (str,))) != 'llama': raise WeightsError('another family of models', 'llama', repr(family)[:60])
    for name, plain in (('rope_scaling', None), ('hidden_act', 'silu'), ('attention_bias', False), ('mlp_bias', False)):
        if settings.get(name, plain) != plain: raise WeightsError(f'setting {name}', repr(plain), repr(settings[name])[:60])
    of, number = lambda *args: setting(settings, *args), (float, int)
    rope = settings.get('rope_parameters') or {}   # where newer files have the angles
    if not isinstance(rope, Mapping) or rope.get('rope_type', 'default') != 'default': raise WeightsError('rotary angles that are stretched', "rope_type 'default'", repr(rope)[:60])
    heads, channels = of('num_attention_heads'), of('hidden_size')
    return Config(of('num_hidden_layers'), heads, of('num_key_value_heads', (int,), heads), of('head_dim', (int,), channels//max(heads, 1)),
                  channels, of('intermediate_size'), of('vocab_size'), of('max_position_embeddings'), float(of('rms_norm_eps', number)),
                  float(setting(settings | rope, 'rope_theta', number, 10_000.)), of('tie_word_embeddings', (bool,), False))


# %%
for settings in ({'model_type': 'llama', 'rope_scaling': {'factor': 8}}, {'model_type': 'gpt2'}, {'model_type': 'llama', 'num_attention_heads': '9'}):
    try: hf_config(settings)
    except WeightsError as e: print(e)


# %% [markdown]
# ## Loading
#
# GGUF stores the rows of the query and key matrices so that neighbours are turned together, Hugging Face so that halves
# are. The [law](73_rope.ipynb) says that rearranging the rows is all the difference.

# %%
#| export
def from_tensors(
    tensors: Mapping[str, np.ndarray],  # float32
    config: Config,
    names: Mapping[str, str] = HF_NAMES,
) -> Llama:
    "A Llama from named tensors; `WeightsError` says what is missing, unexpected or of another shape."
    check_shapes(wanted(config, names), {n: a.shape for n, a in tensors.items()}, [names['head']])
    tokens, head = tensors[names['tokens']], tensors.get(names['head'])
    check_tied(config.tied, names['head'], head, tokens)
    turn = to_pairs if names is HF_NAMES else lambda w, heads: w
    def block(i):
        at = {field: tensors[names['block'].format(i) + names[field]] for field in Block._fields}
        return Block(**at | {'q': turn(at['q'], config.heads), 'k': turn(at['k'], config.shared)})
    return Llama(config, tokens, tuple(map(block, range(config.layers))), tensors[names['norm']], tokens if config.tied else head)

def config_of(weights: Weights) -> Config:
    "The sizes of a GGUF file's model."
    tokens = GGUF_NAMES['tokens']
    if tokens not in weights or len(weights.stored[tokens].shape) != 2: raise WeightsError('tensors are missing', 'a table of tokens', f'without a matrix {tokens}')
    return gguf_config(weights.metadata, weights.stored[tokens].shape[0], GGUF_NAMES['head'] not in weights)

def load_gguf(
    path,  # a GGUF file, or what `read_gguf` gave for it
) -> Llama:
    "A Llama from a GGUF file, its weights unpacked to float32."
    weights = path if isinstance(path, Weights) else read_gguf(path)
    return from_tensors({name: weights.float32(name) for name in weights}, config_of(weights), GGUF_NAMES)


# %% [markdown]
# ## SmolLM2

# %%
from bendml.data import fetch
smol = load_gguf(fetch('smollm2')/'SmolLM2-135M-Instruct.Q4_1.gguf')
smol.config

# %% [markdown]
# "The capital of France is", as the model's token numbers. Which five tokens does it think most likely to come next?

# %%
words = read_gguf(fetch('smollm2')/'SmolLM2-135M-Instruct.Q4_1.gguf').metadata['tokenizer.ggml.tokens']
prompt = [words.index(w) for w in ('The', 'Ġcapital', 'Ġof', 'ĠFrance', 'Ġis')]
scores = forward(smol, prompt)[-1]
for i in np.argsort(-scores)[:5]: print(f'{scores[i]:7.3f}  {words[i]}')
assert words[scores.argmax()] == 'ĠParis'

# %% [markdown]
# Many of the 135 million weights are the table of tokens, which is used twice:

# %%
sum(a.size for b in smol.blocks for a in b), smol.tokens.size


# %% [markdown]
# ## A random one
#
# For tests of arithmetic, a network that has learnt nothing.

# %%
#| export
def init(
    config: Config,
    seed: int = 0,
) -> Llama:
    "A fresh network: normal weights with standard deviation 0.02, gains 1."
    rng = np.random.default_rng(seed)
    draw = lambda shape: rng.standard_normal(shape, float32)*float32(0.02) if len(shape) > 1 else np.ones(shape, float32)
    tokens, shapes = draw((config.vocab, config.channels)), block_shapes(config)
    blocks = tuple(Block(**{field: draw(shape) for field, shape in shapes.items()}) for _ in range(config.layers))
    return Llama(config, tokens, blocks, draw((config.channels,)), tokens if config.tied else draw(tokens.shape))


# %%
tiny = init(Config(layers=2, heads=4, shared=2, size=16, channels=64, hidden=96, vocab=100, context=32))
ids = np.arange(20)
assert np.abs(forward(tiny, ids)[:12] - forward(tiny, ids[:12])).max() < 1e-6   # causality, in floating point

# %% [markdown]
# ## What this does not show
#
# - Which of the tensors of a file was trained for what. The names say it, and they are believed.
# - Stretched rotary angles, sliding windows, mixtures of experts: members of the family that have them are refused.
