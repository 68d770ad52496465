# %%
#| default_exp decode.__init__

# %% [markdown]
# # One token at a time
# > GPT-2 and Llama, ready to write: what is checked once, and a cache for each text.

# %% [markdown]
# Three compiled functions know how to take tokens through the layers: [one](75e_onerow.ipynb), [many](75f_reading.ipynb), or one of
# [each of several texts](75g_batch.ipynb). This page brings models to them, whose weights are [laid out](75h_layout.ipynb) for that,
# and checks once what the functions rely on.

# %%
#| hide
#| export
import mmap
from typing import TYPE_CHECKING

import numpy as np
from numpy import float32

from bendml import llama
from bendml.checkpoint.gguf import read_gguf
from bendml.checkpoint.weights import Weights
from bendml.checks import ContextError, check_ids, check_shapes
from bendml.decode.batch import step_all
from bendml.decode.layout import MATRICES, Net, Sizes, cells, dense, from_file, lay_out, units
from bendml.decode.onerow import step
from bendml.decode.reading import read_all
from bendml.decode.stored import FORMATS, UNIT, Tensor, rows_of
from bendml.rope import angles
from bendml.threads import get_threads
if TYPE_CHECKING: from bendml.gpt2 import Gpt2


# %% [markdown]
# ## A cache
#
# The cache belongs to a text, the decoder to a model. Any number of texts can be read with one decoder, each with its own cache.
# Caches of texts that are written side by side lie in the same two arrays.

# %%
#| export
def _zeros(n: int) -> np.ndarray:
    "Zeros that take memory page by page, as they are written; NumPy asks for pages of 2 MB, and one token touches them all."
    private = {'flags': mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, 'MAP_ANONYMOUS') else {}
    return np.frombuffer(mmap.mmap(-1, 4*n, **private), float32)

class Cache:
    "What a model keeps of a text: keys and values of every layer, and how many tokens there are."
    def __init__(self, s: Sizes, shared: tuple[np.ndarray, np.ndarray], base: int):
        region = s.context*s.size
        self.shared, self.base, self.length = shared, base, 0   # the arrays of all texts, and this text's first region in them
        self.keys, self.values = (a[base*region:(base + s.layers*s.shared)*region] for a in shared)

    def cut(self, length: int) -> None:
        "Forget all but the first tokens."
        if not 0 <= length <= self.length: raise ValueError(f'cut\n- expected : 0 to {self.length}\n- observed : {length}')
        self.length = length


# %% [markdown]
# ## A decoder
#
# What the functions are told, in their order; what a text may be; and the steps.

# %%
#| export
def _told(s: Sizes, n: Net) -> tuple:
    "What kernels are told of sizes and weights, in their order."
    size = [FORMATS[f].size for f in n.formats]
    qkv, _, up, _ = map(units, s.rows)
    far = 6*s.channels + UNIT*(qkv + up)
    return (s.layers, s.shared, s.heads//s.shared, s.size//8, s.context, s.channels//32, s.heads*s.size//32, s.hidden//32, qkv, up, units(s.vocab),
            s.eps, s.centred, s.gated, s.turned, n.w, n.stride, *size, *n.at[1:], n.v, far, n.cos, n.sin)


# %%
#| export
class Loaded:
    "A model's weights, the caches that fit, and what may be asked of it."
    def __init__(self, sizes: Sizes, net: Net, tokens: Tensor, positions: np.ndarray | None = None):
        self.sizes, self.net, self.tokens, self.positions = sizes, net, tokens, positions
        self.told, self.x, self.logits = _told(sizes, net), np.zeros(sizes.channels, float32), np.zeros(UNIT*units(sizes.vocab), float32)

    def __repr__(self): return f'{type(self).__name__}({self.sizes.layers} layers, {self.sizes.vocab} tokens, context {self.sizes.context}, {self.bytes/1e6:.0f} MB a token)'

    @property
    def bytes(self) -> int:
        "How many bytes of weights one token reads."
        s, n = self.sizes, self.net
        return 4*(s.layers*n.stride + cells(s.vocab, s.channels, n.formats[-1]))

    def caches(self, n: int) -> list[Cache]:
        "Room for n texts, that `step_all` takes together. What is not written yet takes no memory."
        s = self.sizes
        regions = s.layers*s.shared
        shared = tuple(_zeros(n*regions*s.context*s.size) for _ in range(2))
        return [Cache(s, shared, i*regions) for i in range(n)]

    def cache(self) -> Cache: return self.caches(1)[0]

    def embed(self, ids: np.ndarray, pos: np.ndarray) -> np.ndarray:
        "The rows (N, C) of tokens at their positions."
        x = rows_of(self.tokens, ids)
        return x if self.positions is None else x + self.positions[pos]

    def check(self, ids, there: int = 0) -> np.ndarray:
        "Tokens that may follow so many others; `ContextError` if there is no room."
        ids = check_ids(ids, self.sizes.vocab, max(self.sizes.context, len(ids)))
        if there + len(ids) > self.sizes.context:
            raise ContextError(f'the text is too long\n- expected : at most {self.sizes.context} tokens\n- observed : {there} tokens and {len(ids)} more')
        return ids


# %%
#| export
class Decoder(Loaded):
    "A model ready to write: give it tokens and a cache, and it gives scores for the next token."
    def step(self, cache: Cache, id: int) -> np.ndarray:
        "One token more: the scores (V,) for the next one. The array is used again by the next step."
        self.x[:] = self.embed(self.check([id], cache.length), [cache.length])[0]
        step(*self.told, cache.keys, cache.values, cache.length, self.x, self.logits, get_threads())
        cache.length += 1
        return self.logits[:self.sizes.vocab]

    def step_all(self, caches: list[Cache], ids) -> np.ndarray:
        "One token more of each of several texts, whose caches were made together: their scores (B, V), the bits of each alone."
        (keys, values), where = caches[0].shared, [(c.base, c.length) for c in caches]
        if len({base for base, _ in where}) != len(ids) or any(c.shared[0] is not keys for c in caches):
            raise ValueError(f'step_all\n- expected : a token for each of several texts, whose caches were made together\n- observed : {len(ids)} tokens, {len(caches)} caches')
        ids, (base, pos) = np.concatenate([self.check([i], c.length) for i, c in zip(ids, caches)]), np.array(where, np.int64).T.copy()
        x = self.embed(ids, pos).reshape(-1)
        logits, regions = np.empty((len(ids), len(self.logits)), float32), len(keys)//(self.sizes.context*self.sizes.size)
        step_all(*self.told, regions, keys, values, len(ids), base, pos, x, logits.reshape(-1), get_threads())
        for c in caches: c.length += 1
        return logits[:, :self.sizes.vocab]


# %% [markdown]
# A few tokens are read one by one, which takes about as long; more of them together.

# %%
#| export
FEW = 8  # tokens

def read(d: Decoder, cache: Cache, ids) -> np.ndarray:
    "Tokens at once: the scores (V,) for what follows the last one. The array is used again."
    ids = d.check(ids, cache.length)
    if len(ids) <= FEW:
        for i in ids: logits = d.step(cache, int(i))
        return logits
    x = d.embed(ids, np.arange(cache.length, cache.length + len(ids))).reshape(-1)
    read_all(*d.told, cache.keys, cache.values, cache.length, len(ids), x, d.logits, get_threads())
    cache.length += len(ids)
    return d.logits[:d.sizes.vocab]


# %% [markdown]
# ## From a model

# %%
#| export
def _longest(context: int | None, most: int) -> int:
    "The longest text: what was asked for, and no more than the model can read."
    if context is not None and context < 1: raise ValueError(f'context\n- expected : at least 1 token\n- observed : {context}')
    return min(context or most, most)

def of_gpt2(model: 'Gpt2', format: str = 'F32', context: int | None = None) -> Decoder:
    "A decoder for a GPT-2, its matrices in a format."
    c, b, longest = model.config, model.blocks, _longest(context, model.config.context)
    s = Sizes(c.layers, c.heads, c.heads, c.channels//c.heads, c.channels, 4*c.channels, c.vocab, longest, c.eps, True, False, False)
    layers = [{'q': dense(x.qkv.w, format), 'o': dense(x.proj.w, format), 'up': dense(x.up.w, format), 'down': dense(x.down.w, format)} for x in b]
    vectors = dict(gain1=[x.norm1.gain for x in b], shift1=[x.norm1.bias for x in b], gain2=[x.norm2.gain for x in b], shift2=[x.norm2.bias for x in b],
                   gain=model.norm.gain, shift=model.norm.bias, bqkv=[x.qkv.b for x in b], bo=[x.proj.b for x in b], bup=[x.up.b for x in b], bdown=[x.down.b for x in b])
    still = np.zeros((longest, s.size//2)), np.zeros((longest, s.size//2))
    return Decoder(s, *lay_out(s, layers, dense(model.tokens, format), None, vectors, still), model.positions[:longest])


# %%
#| export
def _llama_sizes(c: llama.Config, context: int | None) -> Sizes:
    return Sizes(c.layers, c.heads, c.shared, c.size, c.channels, c.hidden, c.vocab, _longest(context, c.context), c.eps, False, True, True)

def of_llama(model: llama.Llama, format: str = 'F32', context: int | None = None) -> Decoder:
    "A decoder for a Llama, its matrices in a format."
    c, s = model.config, _llama_sizes(model.config, context)
    layers = [{name: dense(getattr(b, name), format) for name in MATRICES} for b in model.blocks]
    vectors = dict(gain1=[b.norm1 for b in model.blocks], gain2=[b.norm2 for b in model.blocks], gain=model.norm)
    head = None if c.tied else dense(model.head, format)
    return Decoder(s, *lay_out(s, layers, dense(model.tokens, format), head, vectors, angles(s.context, s.size, c.base)))

def open_gguf(
    path,                        # of a Llama, or what `read_gguf` gave for it
    context: int | None = None,  # a shorter longest text
) -> Decoder:
    "A decoder with a GGUF file's weights, in the formats that the file has them in. Pages of the file that were read are let go."
    w, names = path if isinstance(path, Weights) else read_gguf(path), llama.GGUF_NAMES
    c = llama.config_of(w)
    s = _llama_sizes(c, context)
    check_shapes(llama.wanted(c, names), {name: t.shape for name, t in w.stored.items()}, [names['head'], 'rope_freqs.weight'])
    of = lambda l, field: names['block'].format(l) + names[field]
    layers = [{field: from_file(w, of(l, field)) for field in MATRICES} for l in range(c.layers)]
    vectors = {to: [w.float32(of(l, field)) for l in range(c.layers)] for to, field in (('gain1', 'norm1'), ('gain2', 'norm2'))} | {'gain': w.float32(names['norm'])}
    let_go = (lambda: w.data.madvise(mmap.MADV_DONTNEED)) if hasattr(mmap, 'MADV_DONTNEED') else lambda: None
    head = None if c.tied else from_file(w, names['head'])
    return Decoder(s, *lay_out(s, layers, from_file(w, names['tokens']), head, vectors, angles(s.context, s.size, c.base), let_go))


# %% [markdown]
# ## The same numbers
#
# Held to the references: every split of a text into a part that is read at once and tokens that follow one by one.

# %%
from bendml import gpt2
ids = np.random.default_rng(0).integers(0, 100, 24)
for model, forward, decoder in (
        (gpt2.init(gpt2.Config(2, 2, 64, vocab=100, context=32)), gpt2.forward, of_gpt2),
        (llama.init(llama.Config(2, 4, 2, 16, 64, 96, 100, 32)), llama.forward, of_llama)):
    d, wanted, worst = decoder(model), forward(model, ids), 0
    for cut in range(1, 25):
        cache = d.cache()
        for n, scores in enumerate([read(d, cache, ids[:cut]).copy()] + [d.step(cache, i).copy() for i in ids[cut:]], cut):
            worst = max(worst, np.abs(scores - wanted[n - 1]).max()/np.abs(wanted).max())
    print(f'{type(model).__name__}: at most {worst:.0e} off, over all splits')
    assert worst < 1e-5

# %% [markdown]
# Texts side by side get the bits that each gets alone:

# %%
texts = [ids[:n] for n in (3, 9, 1)]
alone, side = d.caches(3), d.caches(3)
for caches in (alone, side):
    for cache, text in zip(caches, texts): read(d, cache, text)
scores = [d.step(cache, n).copy() for n, cache in enumerate(alone)]
assert np.array_equal(d.step_all(side, range(3)), scores)

# %% [markdown]
# When the context is full, the decoder stops, by name:

# %%
cache = d.cache()
read(d, cache, list(range(30)))
for i in range(2): d.step(cache, i)
try: d.step(cache, 2)
except ContextError as e: print(e)

# %% [markdown]
# ## SmolLM2 goes on

# %%
from bendml.data import fetch
path = fetch('smollm2')/'SmolLM2-135M-Instruct.Q4_1.gguf'
smol, words = open_gguf(path), read_gguf(path).metadata['tokenizer.ggml.tokens']
cache = smol.cache()
scores = read(smol, cache, [words.index(w) for w in ('The', 'Ġcapital', 'Ġof', 'ĠFrance', 'Ġis')])
for _ in range(12):
    print(words[scores.argmax()].replace('Ġ', ' ').replace('Ċ', '↵'), end='')
    scores = smol.step(cache, scores.argmax())

# %% [markdown]
# ## What this does not show
#
# - That the layers compute what the [references](72_gpt2.ipynb) do. It is tested, here and for the real model; proved is that no
#   index leaves its array, and that the cache is [written](71b_kvarray.ipynb) and [read](71c_look.ipynb) in the right places.
# - Attention adds in one order for a token alone and in another for many together. The two differ in the last digits, and where
#   two tokens are as good as equally likely, either may win. Products of whole numbers have the same bits in both.
