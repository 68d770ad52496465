# %%
#| default_exp decode.__init__

# %% [markdown]
# # One token at a time
# > GPT-2 and Llama, ready to write: weights in the order in which they are read, and a cache for each text.

# %% [markdown]
# Three compiled functions know how to take tokens through the layers: [one](75e_onerow.ipynb), [many](75f_reading.ipynb), or one of
# [each of several texts](75g_batch.ipynb). This page brings models to them: it lays out the weights, and checks once what the
# functions rely on.

# %%
#| hide
#| export
import mmap
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy import float32

from bendml import llama
from bendml.decode.batch import step_all
from bendml.checkpoint.gguf import read_gguf
from bendml.checkpoint.weights import Weights
from bendml.checks import ContextError, check_ids, check_shapes
from bendml.decode.onerow import step
from bendml.decode.reading import read_all
from bendml.rope import angles
from bendml.decode.stored import FORMATS, UNIT, Tensor, TensorError, memory, pack, place, q4_0_as_q4_1, rows_of, tensor
from bendml.threads import get_threads
if TYPE_CHECKING: from bendml.gpt2 import Gpt2


# %% [markdown]
# ## A decoder
#
# What the step is told of a network, by name. The cache belongs to a text, the decoder to a model. Any number of texts can be
# read with one decoder, each with its own cache. Caches of texts that are written side by side lie in the same two arrays.

# %%
#| export
class Sizes(NamedTuple):
    "What the loops run to, and the three questions."
    layers: int
    heads: int      # H
    shared: int     # G, keys and values
    size: int       # D
    channels: int   # C
    hidden: int     # F
    vocab: int      # V
    context: int    # T, the longest text
    eps: float
    centred: bool   # is the mean subtracted before a row is scaled?
    gated: bool     # SwiGLU, or GELU?
    turned: bool    # are there rotary positions?

    @property
    def rows(self) -> tuple[int, int, int, int]:
        "How many rows each of a layer's matrices has."
        return (self.heads + 2*self.shared)*self.size, self.channels, self.hidden*(1 + self.gated), self.channels

    @property
    def widths(self) -> tuple[int, int, int, int]:
        "How many numbers a row of each has."
        return self.channels, self.heads*self.size, self.channels, self.hidden

class Net(NamedTuple):
    "The weights: matrices in cells, vectors as float32."
    formats: tuple[str, ...]  # of a layer's four matrices, and the head's
    at: tuple[int, ...]       # where each begins in its layer; where the head begins
    stride: int               # cells a layer
    w: np.ndarray
    v: np.ndarray
    cos: np.ndarray           # (T, D/2), flat
    sin: np.ndarray           # (T, D/2), flat

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


# %%
#| export
def _units(rows: int) -> int: return -(-rows//UNIT)

def _told(s: Sizes, n: Net) -> tuple:
    "What kernels are told of sizes and weights, in their order."
    size = [FORMATS[f].size for f in n.formats]
    qkv, _, up, _ = map(_units, s.rows)
    far = 6*s.channels + UNIT*(qkv + up)
    return (s.layers, s.shared, s.heads//s.shared, s.size//8, s.context, s.channels//32, s.heads*s.size//32, s.hidden//32, qkv, up, _units(s.vocab),
            s.eps, s.centred, s.gated, s.turned, n.w, n.stride, *size, *n.at[1:], n.v, far, n.cos, n.sin)

class Decoder:
    "A model ready to write: give it tokens and a cache, and it gives scores for the next token."
    def __init__(self, sizes: Sizes, net: Net, tokens: Tensor, positions: np.ndarray | None = None):
        self.sizes, self.net, self.tokens, self.positions = sizes, net, tokens, positions
        self.told, self.x, self.logits = _told(sizes, net), np.zeros(sizes.channels, float32), np.zeros(UNIT*_units(sizes.vocab), float32)

    def __repr__(self): return f'Decoder({self.sizes.layers} layers, {self.sizes.vocab} tokens, context {self.sizes.context}, {self.bytes/1e6:.0f} MB a token)'

    @property
    def bytes(self) -> int:
        "How many bytes of weights one token reads."
        s, sizes = self.sizes, [FORMATS[f].size for f in self.net.formats]
        layer = sum(_units(r)*(k//32)*size for r, k, size in zip(s.rows, s.widths, sizes))
        return 4*(s.layers*layer + _units(s.vocab)*(s.channels//32)*sizes[-1])

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
#
# Matrices come as bytes, as files have them, and are placed in their [order](75_stored.ipynb), one layer after the other. All layers have a
# matrix in the same format; if a file has it in two, it is stored as `float32`, which loses nothing.

# %%
#| export
STACKS = (('q', 'k', 'v'), ('o',), ('gate', 'up'), ('down',))

class Source(NamedTuple):
    "A matrix to be stored."
    format: str
    shape: tuple[int, int]
    blocks: Callable[[], np.ndarray]     # its bytes (rows, k/32, n), made when they are needed
    numbers: Callable[[], np.ndarray]    # its numbers, if it has to be stored in another format

def _check_sizes(s: Sizes) -> None:
    "What the compiled loops need; `TensorError` for other networks."
    for what, n, by in (('numbers a head', s.size, 8), ('channels', s.channels, 32), ('numbers of all heads', s.heads*s.size, 32), ('hidden channels', s.hidden, 32)):
        if n % by: raise TensorError(f'{what}\n- expected : a multiple of {by}\n- observed : {n}')

def _place(sources: list[Source], cells: np.ndarray, format: str, at: int) -> Tensor:
    "Store matrices below one another."
    t = tensor(cells, format, at, (sum(s.shape[0] for s in sources), sources[0].shape[1]))
    place([s.blocks() if s.format == format else pack(s.numbers(), format) for s in sources], t)
    return t

def _one_format(sources: list[Source]) -> str:
    "The format of matrices that are stored alike."
    formats = {s.format for s in sources}
    return formats.pop() if len(formats) == 1 else 'F32'


# %%
#| export
def assemble(s: Sizes, layers: list[dict[str, Source]], tokens: Source, head: Source | None, vectors: dict, turn: tuple,
             positions: np.ndarray | None = None, placed: Callable[[], None] = lambda: None) -> Decoder:
    "A decoder from its parts; head None: the tokens' table. Vectors that are not given are zero, gains one. `placed` is called after each layer."
    _check_sizes(s)
    stacks = [[[layer[name] for name in names if name in layer] for names in STACKS] for layer in layers]
    formats = [_one_format([m for stack in stacks for m in stack[i]]) for i in range(4)]
    cells = [_units(r)*(k//32)*FORMATS[f].size for r, k, f in zip(s.rows, s.widths, formats)]
    *at, stride = np.cumsum([0, *cells]).tolist()
    of = lambda m: _units(s.vocab)*(s.channels//32)*FORMATS[m.format].size
    head_at, table_at = s.layers*stride, s.layers*stride + of(head or tokens)
    w = memory(table_at + (of(tokens) if head else 0))
    for l, stack in enumerate(stacks):
        for i in range(4): _place(stack[i], w, formats[i], l*stride + at[i])
        placed()
    last = _place([head or tokens], w, (head or tokens).format, head_at)
    table = _place([tokens], w, tokens.format, table_at) if head else last
    placed()
    net = Net((*formats, last.format), (*at, head_at), stride, w, _vectors(s, vectors), *(a.astype(float32).reshape(-1) for a in turn))
    return Decoder(s, net, table, positions)

def _vectors(s: Sizes, given: dict) -> np.ndarray:
    "Gains, shifts and biases in the step's order, layer after layer."
    wide = {'gain1': s.channels, 'shift1': s.channels, 'bqkv': UNIT*_units(s.rows[0]), 'bo': s.channels, 'gain2': s.channels, 'shift2': s.channels,
            'bup': UNIT*_units(s.rows[2]), 'bdown': s.channels}
    v = np.zeros((s.layers, sum(wide.values())), float32)
    for (name, n), end in zip(wide.items(), np.cumsum(list(wide.values()))):
        if name in given: v[:, end - n:end - n + len(given[name][0])] = given[name]
        elif 'gain' in name: v[:, end - n:end] = 1
    last = given.get('gain', np.ones(s.channels)), given.get('shift', np.zeros(s.channels))
    return np.concatenate((v.reshape(-1), *last)).astype(float32)


# %%
#| export
def _dense(w: np.ndarray, format: str) -> Source: return Source(format, w.shape, lambda: pack(w, format), lambda: w)

def _longest(context: int | None, most: int) -> int:
    "The longest text: what was asked for, and no more than the model can read."
    if context is not None and context < 1: raise ValueError(f'context\n- expected : at least 1 token\n- observed : {context}')
    return min(context or most, most)

def of_gpt2(model: 'Gpt2', format: str = 'F32', context: int | None = None) -> Decoder:
    "A decoder for a GPT-2, its matrices in a format."
    c, b, longest = model.config, model.blocks, _longest(context, model.config.context)
    s = Sizes(c.layers, c.heads, c.heads, c.channels//c.heads, c.channels, 4*c.channels, c.vocab, longest, c.eps, True, False, False)
    layers = [{'q': _dense(x.qkv.w, format), 'o': _dense(x.proj.w, format), 'up': _dense(x.up.w, format), 'down': _dense(x.down.w, format)} for x in b]
    vectors = dict(gain1=[x.norm1.gain for x in b], shift1=[x.norm1.bias for x in b], gain2=[x.norm2.gain for x in b], shift2=[x.norm2.bias for x in b],
                   gain=model.norm.gain, shift=model.norm.bias, bqkv=[x.qkv.b for x in b], bo=[x.proj.b for x in b], bup=[x.up.b for x in b], bdown=[x.down.b for x in b])
    still = np.zeros((longest, s.size//2)), np.zeros((longest, s.size//2))
    return assemble(s, layers, _dense(model.tokens, format), None, vectors, still, model.positions[:longest])


# %%
#| export
def _llama_sizes(c: llama.Config, context: int | None) -> Sizes:
    return Sizes(c.layers, c.heads, c.shared, c.size, c.channels, c.hidden, c.vocab, _longest(context, c.context), c.eps, False, True, True)

MATRICES = [name for names in STACKS for name in names]

def of_llama(model: llama.Llama, format: str = 'F32', context: int | None = None) -> Decoder:
    "A decoder for a Llama, its matrices in a format."
    c, s = model.config, _llama_sizes(model.config, context)
    layers = [{name: _dense(getattr(b, name), format) for name in MATRICES} for b in model.blocks]
    vectors = dict(gain1=[b.norm1 for b in model.blocks], gain2=[b.norm2 for b in model.blocks], gain=model.norm)
    return assemble(s, layers, _dense(model.tokens, format), None if c.tied else _dense(model.head, format), vectors, angles(s.context, s.size, c.base))

def _from_file(w, name: str) -> Source:
    "A matrix of a GGUF file, in its format or in the one that holds its numbers exactly."
    t = w.stored[name]
    raw = lambda: w[name].reshape(t.shape[0], t.shape[1]//32, -1)
    numbers = lambda: w.float32(name)
    if t.dtype == 'Q4_0': return Source('Q4_1', t.shape, lambda: q4_0_as_q4_1(raw()), numbers)
    if t.dtype == 'F16': return Source('F32', t.shape, lambda: pack(numbers(), 'F32'), numbers)
    if t.dtype in ('F32', 'BF16'): return Source(t.dtype, t.shape, lambda: np.ascontiguousarray(w[name]).view(np.uint8).reshape(t.shape[0], t.shape[1]//32, -1), numbers)
    if t.dtype not in FORMATS: raise TensorError(f'tensor {name}\n- expected : {", ".join(FORMATS)}, Q4_0 or F16\n- observed : {t.dtype}')
    return Source(t.dtype, t.shape, raw, numbers)

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
    layers = [{field: _from_file(w, of(l, field)) for field in MATRICES} for l in range(c.layers)]
    vectors = {to: [w.float32(of(l, field)) for l in range(c.layers)] for to, field in (('gain1', 'norm1'), ('gain2', 'norm2'))} | {'gain': w.float32(names['norm'])}
    let_go = (lambda: w.data.madvise(mmap.MADV_DONTNEED)) if hasattr(mmap, 'MADV_DONTNEED') else lambda: None
    return assemble(s, layers, _from_file(w, names['tokens']), None if c.tied else _from_file(w, names['head']), vectors, angles(s.context, s.size, c.base), None, let_go)


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
