# %%
#| default_exp decode

# %% [markdown]
# # One token at a time
# > GPT-2 and Llama as one compiled function: a row comes in, the cache grows by one entry a layer, scores come out.

# %% [markdown]
# [GPT-2](72_gpt2.ipynb) and [Llama](74_llama.ipynb) read a whole text and answer for each position. To write, only the answer
# at the end is wanted, and everything before it can be [kept](71_kvcache.ipynb). This page is that: a function that takes one
# token through all the layers. It calls nothing, allocates nothing, and reads every weight once, in order.
#
# There is one such function for both families. Where Llama has no biases, it adds zero; where GPT-2 has no rotary positions,
# it turns by an angle of zero. Two questions remain that numbers cannot settle: is the mean subtracted before a row is
# scaled, and is there a gate?

# %%
#| hide
#| export
import math
from typing import NamedTuple

import numpy as np
from numpy import float32

from bendml import gpt2, llama
from bendml.attention import split_heads
from bendml.checkpoint.gguf import read_gguf
from bendml.checks import ContextError, check_ids, check_shapes
from bendml.curves import gelu_row, soften, swiglu
from bendml.kvarray import keep
from bendml.look import look_mix, look_scores
from bendml.matvec import Fixed, fixed, rows, to_fixed
from bendml.rope import angles, rotate_pairs
from bendml.stored import FORMATS, Memory, Tensor, memory, pack, tensor, unpack
from bendml.threads import get_threads
from numba import njit, prange


# %% [markdown]
# ## A network for the compiler
#
# Compiled code wants flat arrays. A matrix is a format and a byte offset into one memory; there are seven in a layer.

# %%
#| export
class Sizes(NamedTuple):
    "What the loops run to, and the two questions."
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

MATRICES = ('q', 'k', 'v', 'o', 'gate', 'up', 'down')

class Net(NamedTuple):
    "The weights: matrices by format number and byte offset, vectors as float32."
    number: np.ndarray  # (layers, 7)
    at: np.ndarray      # (layers, 7)
    head_number: int
    head_at: int
    gain1: np.ndarray   # (layers, C)
    shift1: np.ndarray  # (layers, C)
    gain2: np.ndarray   # (layers, C)
    shift2: np.ndarray  # (layers, C)
    gain: np.ndarray    # (C,)
    shift: np.ndarray   # (C,)
    bq: np.ndarray      # (layers, H·D)
    bk: np.ndarray      # (layers, G·D)
    bv: np.ndarray      # (layers, G·D)
    bo: np.ndarray      # (layers, C)
    bup: np.ndarray     # (layers, F)
    bdown: np.ndarray   # (layers, C)
    cos: np.ndarray     # (T, D/2)
    sin: np.ndarray     # (T, D/2)

class Work(NamedTuple):
    "Room for one token on its way through a layer."
    x: np.ndarray        # (C,) what is carried from layer to layer
    h: np.ndarray        # (C,)
    q: np.ndarray        # (H·D,)
    k: np.ndarray        # (G·D,)
    v: np.ndarray        # (G·D,)
    o: np.ndarray        # (H·D,)
    y: np.ndarray        # (C,)
    gate: np.ndarray     # (F,)
    up: np.ndarray       # (F,)
    scores: np.ndarray   # (H, T), T rounded up to eights
    logits: np.ndarray   # (V,)

def work(s: Sizes) -> Work:
    "Room for one token."
    c, wide, narrow, f = s.channels, s.heads*s.size, s.shared*s.size, s.hidden
    lengths = (c, c, wide, narrow, narrow, wide, c, f, f)
    return Work(*(np.zeros(n, float32) for n in lengths), np.zeros((s.heads, -(-s.context//8)*8), float32), np.zeros(s.vocab, float32))


# %% [markdown]
# ## The pieces, for one row

# %%
#| export
@njit
def _norm(x, gain, shift, eps, centred, out):
    "Scale a row to mean square 1, if `centred` around its mean."
    mean, square = float32(0), float32(0)
    if centred:
        for i in range(len(x)): mean += x[i]
        mean /= float32(len(x))
    for i in range(len(x)): square += (x[i] - mean)*(x[i] - mean)
    scale = float32(1/math.sqrt(square/float32(len(x)) + float32(eps)))
    for i in range(len(x)): out[i] = (x[i] - mean)*scale*gain[i] + shift[i]

@njit
def _turn(x, cos, sin):
    "Turn neighbours, head by head; `cos` and `sin` have half a head's numbers."
    for i in range(0, len(x), 2):
        c, s, a, b = cos[(i >> 1) % len(cos)], sin[(i >> 1) % len(cos)], x[i], x[i + 1]
        x[i], x[i + 1] = a*c - b*s, a*s + b*c

@njit
def _activate(gate, up, gated, i0, i1):
    "SwiGLU or GELU in place of `up`, from i0 to i1, multiples of 8."
    if gated: swiglu(gate, up, i0, i1)
    else: gelu_row(up, i0, i1)

@njit
def _add_bias(y, b, i0, i1):
    for i in range(i0, i1): y[i] += b[i]

@njit
def _add_to(x, y, b, i0, i1):
    for i in range(i0, i1): x[i] += y[i] + b[i]


# %% [markdown]
# The cache is one array for keys and one for values, laid out as [proved](71b_kvarray.ipynb): region $l\,G + g$ has room for
# $T$ rows of $D$ numbers, and row $t$ begins $t D$ further on. The loop that writes it is the one proved there; those that read it stay
# within these rows, which is [proved too](71c_look.ipynb), and are held there to a plain loop of which is known what it computes.

# %%
#| export
_scores, _mix = look_scores.inner, look_mix.inner

@njit
def _look(q, first, keys, values, start, count, D, scores, out):
    "One head: the mean of `count` rows of values, from `start` on, weighted by how well the keys fit. Writes out[first:first + D]."
    top = _scores(D, keys, start, count, q, first, float32(1/math.sqrt(D)), scores, 0)
    _mix(D, values, start, count, scores, 0, soften(scores, count, top), out, first)


# %% [markdown]
# ## The step
#
# Four times a layer the work is shared out to the threads, each with its own range of rows; what lies between is short.
# Attention is shared out when the text is long enough to be worth it.

# %%
#| export
@njit
def _part(t, parts, n):
    "The t-th of so many ranges of 0 to n."
    return t*n//parts, (t + 1)*n//parts

@njit
def _heads(s, l, h0, h1, keys, values, pos, w):
    "Attention of some heads."
    for h in range(h0, h1):
        start = (l*s.shared + h*s.shared//s.heads)*(s.context*s.size)
        _look(w.q, h*s.size, keys, values, start, pos + 1, s.size, w.scores[h], w.o)

@njit
def _project(s, m, n, l, w, fx, t, parts):
    "One thread's share of queries, keys and values."
    C = s.channels
    a, b = _part(t, parts, s.heads*s.size)
    rows(n.number[l, 0], m, n.at[l, 0], C, w.h, fx, w.q, a, b)
    _add_bias(w.q, n.bq[l], a, b)
    a, b = _part(t, parts, s.shared*s.size)
    rows(n.number[l, 1], m, n.at[l, 1], C, w.h, fx, w.k, a, b)
    _add_bias(w.k, n.bk[l], a, b)
    rows(n.number[l, 2], m, n.at[l, 2], C, w.h, fx, w.v, a, b)
    _add_bias(w.v, n.bv[l], a, b)

@njit
def _feed(s, m, n, l, w, fx, t, parts):
    "One thread's share of the feed-forward network's first half."
    a, b = _part(t, parts, s.hidden >> 3)
    a, b = 8*a, 8*b
    if s.gated: rows(n.number[l, 4], m, n.at[l, 4], s.channels, w.h, fx, w.gate, a, b)
    rows(n.number[l, 5], m, n.at[l, 5], s.channels, w.h, fx, w.up, a, b)
    _add_bias(w.up, n.bup[l], a, b)
    _activate(w.gate, w.up, s.gated, a, b)


# %%
#| export
LONG = 256  # tokens from which on attention is shared out
_keep = keep.inner

@njit(cache=True, parallel=True)
def _step(s, m, n, keys, values, pos, w, fx, parts):
    "One token, whose row is in w.x, through all layers; scores for the next one in w.logits."
    C, D, T = s.channels, s.size, s.context
    for l in range(s.layers):
        _norm(w.x, n.gain1[l], n.shift1[l], s.eps, s.centred, w.h)
        to_fixed(w.h, C, fx)
        for t in prange(parts): _project(s, m, n, l, w, fx, t, parts)
        _turn(w.q, n.cos[pos], n.sin[pos])
        _turn(w.k, n.cos[pos], n.sin[pos])
        for g in range(s.shared):
            _keep(s.layers*s.shared, T, D, keys, l*s.shared + g, pos, w.k, g*D)
            _keep(s.layers*s.shared, T, D, values, l*s.shared + g, pos, w.v, g*D)
        if pos < LONG: _heads(s, l, 0, s.heads, keys, values, pos, w)
        else:
            for t in prange(parts):
                a, b = _part(t, parts, s.heads)
                _heads(s, l, a, b, keys, values, pos, w)
        to_fixed(w.o, s.heads*D, fx)
        for t in prange(parts):
            a, b = _part(t, parts, C)
            rows(n.number[l, 3], m, n.at[l, 3], s.heads*D, w.o, fx, w.y, a, b)
            _add_to(w.x, w.y, n.bo[l], a, b)
        _norm(w.x, n.gain2[l], n.shift2[l], s.eps, s.centred, w.h)
        to_fixed(w.h, C, fx)
        for t in prange(parts): _feed(s, m, n, l, w, fx, t, parts)
        to_fixed(w.up, s.hidden, fx)
        for t in prange(parts):
            a, b = _part(t, parts, C)
            rows(n.number[l, 6], m, n.at[l, 6], s.hidden, w.up, fx, w.y, a, b)
            _add_to(w.x, w.y, n.bdown[l], a, b)
    _norm(w.x, n.gain, n.shift, s.eps, s.centred, w.h)
    to_fixed(w.h, C, fx)
    for t in prange(parts):
        a, b = _part(t, parts, s.vocab)
        rows(n.head_number, m, n.head_at, C, w.h, fx, w.logits, a, b)


# %% [markdown]
# ## A decoder
#
# The cache belongs to a text, the decoder to a model. Any number of texts can be read with one decoder, each with its own
# cache.

# %%
#| export
class Cache:
    "What a model keeps of a text: keys and values of every layer, and how many tokens there are."
    def __init__(self, s: Sizes):
        self.keys = np.zeros(s.layers*s.shared*s.context*s.size, float32)
        self.values = np.zeros_like(self.keys)
        self.length = 0

    def cut(self, length: int) -> None:
        "Forget all but the first tokens."
        if not 0 <= length <= self.length: raise ValueError(f'cut\n- expected : 0 to {self.length}\n- observed : {length}')
        self.length = length


# %%
#| export
class Decoder:
    "A model ready to write: give it tokens and a cache, and it gives scores for the next token."
    def __init__(self, sizes: Sizes, net: Net, tokens: Tensor, positions: np.ndarray | None, matrices: tuple[tuple[Tensor | None, ...], ...], head: Tensor):
        self.sizes, self.net, self.tokens, self.positions = sizes, net, tokens, positions
        self.matrices, self.head, self.work = matrices, head, work(sizes)
        self.rounded = fixed(max(sizes.channels, sizes.heads*sizes.size, sizes.hidden))

    def __repr__(self): return f'Decoder({self.sizes.layers} layers, {self.sizes.vocab} tokens, context {self.sizes.context}, {self.bytes/1e6:.0f} MB a token)'

    @property
    def bytes(self) -> int:
        "How many bytes of weights one token reads."
        return sum(t.size for layer in self.matrices for t in layer if t) + self.head.size

    def cache(self) -> Cache: return Cache(self.sizes)

    def embed(self, ids: np.ndarray, pos: int) -> np.ndarray:
        "The rows of tokens (N, C), the first of which is at position `pos`."
        t = self.tokens
        row = t.size//t.shape[0]
        x = np.concatenate([unpack(t._replace(at=t.at + int(i)*row, shape=(1, t.shape[1]))) for i in ids])
        return x if self.positions is None else x + self.positions[pos:pos + len(ids)]

    def check(self, cache: Cache, ids) -> np.ndarray:
        "Tokens that may follow what is in the cache; `ContextError` if there is no room."
        ids = check_ids(ids, self.sizes.vocab, max(self.sizes.context, len(ids)))
        if cache.length + len(ids) > self.sizes.context:
            raise ContextError(f'the text is too long\n- expected : at most {self.sizes.context} tokens\n- observed : {cache.length} tokens and {len(ids)} more')
        return ids

    def step(self, cache: Cache, id: int) -> np.ndarray:
        "One token more: the scores (V,) for the next one. The array is used again by the next step."
        self.work.x[:] = self.embed(self.check(cache, [id]), cache.length)[0]
        _step(self.sizes, self.head.memory, self.net, cache.keys, cache.values, cache.length, self.work, self.rounded, get_threads())
        cache.length += 1
        return self.work.logits


# %% [markdown]
# ### Many tokens at once
#
# A prompt is known as a whole, so its tokens go through a layer together. Then a matrix product does much work for each
# weight, and BLAS is the fastest at that, in `float32`; small weights are unpacked for it one layer at a time.

# %%
#| export
@njit(cache=True, parallel=True)
def _soft_rows(scores, first):
    "Softmax of the first `first + i + 1` scores of each row i, in place; the others become 0. scores: (H, N, T), T a multiple of 8."
    H, N, T = scores.shape
    for j in prange(H*N):
        row, count = scores[j//N, j%N], first + j%N + 1
        top = row[0]
        for t in range(1, count): top = max(top, row[t])
        total = soften(row, count, top)
        for t in range(count): row[t] /= total
        for t in range(count, T): row[t] = 0

@njit(cache=True, parallel=True)
def _activate_rows(gate, up, gated):
    for i in prange(len(up)): _activate(gate[i], up[i], gated, 0, up.shape[1])

ROWS = 128  # rows of attention at a time

def _attend(q, k, v, before):
    "Causal attention: q (H, N, D) of the last N tokens, k and v (G, T, D); `before` tokens come before them."
    out = np.empty_like(q)
    q = q*float32(1/math.sqrt(q.shape[2]))
    for i in range(0, q.shape[1], ROWS):
        part = q[:, i:i + ROWS]
        seen = before + i + part.shape[1]
        grouped = part.reshape(len(k), -1, q.shape[2])   # the heads that share keys, one below the other
        scores = np.zeros((len(k), grouped.shape[1], -(-seen//8)*8), float32)
        scores[:, :, :seen] = grouped @ k[:, :seen].swapaxes(1, 2)
        scores = scores.reshape(len(q), part.shape[1], -1)
        _soft_rows(scores, before + i)
        out[:, i:i + ROWS] = (scores.reshape(len(k), grouped.shape[1], -1)[:, :, :seen] @ v[:, :seen]).reshape(part.shape)
    return out


# %%
#| export
FEW = 4  # tokens up to which one at a time is faster

def _dense(t: Tensor) -> np.ndarray:
    "A matrix as float32: the memory itself, if it is stored so."
    if t.format != 'F32': return unpack(t)
    return t.memory.f32[t.at//4:t.at//4 + t.shape[0]*t.shape[1]].reshape(t.shape)

def _norm_rows(x, gain, shift, s):
    if s.centred: x = x - x.mean(axis=1, keepdims=True)
    return x/np.sqrt(np.square(x).mean(axis=1, keepdims=True) + float32(s.eps))*gain + shift

def read(d: Decoder, cache: Cache, ids) -> np.ndarray:
    "Tokens at once: the scores (V,) for what follows the last one."
    ids = d.check(cache, ids)
    if len(ids) <= FEW:
        for i in ids: logits = d.step(cache, i)
        return logits
    x = _layers(d, cache, ids)
    d.work.h[:] = _norm_rows(x[-1:], d.net.gain, d.net.shift, d.sizes)[0]
    d.work.logits[:] = _dense(d.head) @ d.work.h
    return d.work.logits

def _layers(d: Decoder, cache: Cache, ids: np.ndarray) -> np.ndarray:
    "Tokens at once through all layers: rows (N, C). The cache grows."
    s, n, pos = d.sizes, d.net, cache.length
    keys, values = (a.reshape(s.layers, s.shared, s.context, s.size) for a in (cache.keys, cache.values))
    turn, end = (n.cos[pos:pos + len(ids)], n.sin[pos:pos + len(ids)]), pos + len(ids)
    x = d.embed(ids, pos)
    for l, (q, k, v, o, gate, up, down) in enumerate(d.matrices):
        h = _norm_rows(x, n.gain1[l], n.shift1[l], s)
        keys[l, :, pos:end] = rotate_pairs(split_heads(h @ _dense(k).T + n.bk[l], s.shared), *turn)
        values[l, :, pos:end] = split_heads(h @ _dense(v).T + n.bv[l], s.shared)
        asked = rotate_pairs(split_heads(h @ _dense(q).T + n.bq[l], s.heads), *turn)
        found = _attend(asked, keys[l, :, :end], values[l, :, :end], pos)
        x = x + found.swapaxes(0, 1).reshape(len(ids), -1) @ _dense(o).T + n.bo[l]
        h = _norm_rows(x, n.gain2[l], n.shift2[l], s)
        wide = h @ _dense(up).T + n.bup[l]
        _activate_rows(h @ _dense(gate).T if s.gated else wide, wide, s.gated)
        x = x + wide @ _dense(down).T + n.bdown[l]
    cache.length = end
    return x


# %% [markdown]
# ## From a model
#
# Matrices of a model in `float32` are packed into one memory, in any [format](75_stored.ipynb).

# %%
#| export
def gather(
    matrices: list[np.ndarray],  # float32
    format: str,
) -> list[Tensor]:
    "Matrices packed in a format, side by side in one memory."
    packed = [pack(w, format) for w in matrices]
    starts = np.cumsum([0] + [-(-len(p)//64)*64 for p in packed])
    data = np.zeros(int(starts[-1]) + 64, np.uint8)
    skip = -data.ctypes.data % 64
    for p, start in zip(packed, starts): data[skip + start:skip + start + len(p)] = p
    m = memory(data[skip:skip + int(starts[-1])])
    return [tensor(m, format, int(start), w.shape) for w, start in zip(matrices, starts)]

def _net(s: Sizes, matrices, head: Tensor, vectors: dict, turn) -> Net:
    "The arrays that compiled code wants; vectors that are not given are zero, gains one."
    number = np.array([[FORMATS[t.format].number if t else 0 for t in layer] for layer in matrices], np.int64)
    at = np.array([[t.at if t else 0 for t in layer] for layer in matrices], np.int64)
    wide, narrow = s.heads*s.size, s.shared*s.size
    zero = lambda n: np.zeros((s.layers, n), float32)
    usual = dict(gain1=zero(s.channels) + 1, shift1=zero(s.channels), gain2=zero(s.channels) + 1, shift2=zero(s.channels),
                 gain=np.ones(s.channels, float32), shift=np.zeros(s.channels, float32), bq=zero(wide), bk=zero(narrow), bv=zero(narrow),
                 bo=zero(s.channels), bup=zero(s.hidden), bdown=zero(s.channels))
    vectors = {name: np.ascontiguousarray(a, float32) for name, a in (usual | vectors).items()}
    return Net(number, at, FORMATS[head.format].number, head.at, *(vectors[name] for name in usual), *turn)


# %%
#| export
def of_gpt2(model: gpt2.Gpt2, format: str = 'F32') -> Decoder:
    "A decoder for a GPT-2, its matrices in a format."
    c, b = model.config, model.blocks
    s = Sizes(c.layers, c.heads, c.heads, c.channels//c.heads, c.channels, 4*c.channels, c.vocab, c.context, c.eps, True, False)
    thirds = lambda a: np.split(a, 3)
    *flat, tokens = gather([w for x in b for w in (*thirds(x.qkv.w), x.proj.w, x.up.w, x.down.w)] + [model.tokens], format)
    matrices = tuple((q, k, v, o, None, up, down) for q, k, v, o, up, down in (flat[i:i + 6] for i in range(0, len(flat), 6)))
    biases = [thirds(x.qkv.b) for x in b]
    vectors = dict(gain1=[x.norm1.gain for x in b], shift1=[x.norm1.bias for x in b], gain2=[x.norm2.gain for x in b], shift2=[x.norm2.bias for x in b],
                   gain=model.norm.gain, shift=model.norm.bias, bq=[q for q, _, _ in biases], bk=[k for _, k, _ in biases], bv=[v for _, _, v in biases],
                   bo=[x.proj.b for x in b], bup=[x.up.b for x in b], bdown=[x.down.b for x in b])
    still = np.ones((c.context, s.size//2), float32), np.zeros((c.context, s.size//2), float32)
    return Decoder(s, _net(s, matrices, tokens, vectors, still), tokens, model.positions, matrices, tokens)


# %%
#| export
def _llama_sizes(c: llama.Config, context: int | None) -> Sizes:
    return Sizes(c.layers, c.heads, c.shared, c.size, c.channels, c.hidden, c.vocab, min(context or c.context, c.context), c.eps, False, True)

def of_llama(model: llama.Llama, format: str = 'F32', context: int | None = None) -> Decoder:
    "A decoder for a Llama, its matrices in a format."
    c, s = model.config, _llama_sizes(model.config, context)
    *flat, tokens, head = gather([getattr(b, name) for b in model.blocks for name in MATRICES] + [model.tokens] + [model.head][c.tied:], format) + [None]*c.tied
    head = head or tokens
    matrices = tuple(tuple(flat[i:i + 7]) for i in range(0, len(flat), 7))
    vectors = dict(gain1=[b.norm1 for b in model.blocks], gain2=[b.norm2 for b in model.blocks], gain=model.norm)
    return Decoder(s, _net(s, matrices, head, vectors, angles(s.context, s.size, c.base)), tokens, None, matrices, head)

def open_gguf(
    path,                        # of a Llama
    context: int | None = None,  # a shorter longest text
) -> Decoder:
    "A decoder on a GGUF file's own bytes: nothing is unpacked or copied."
    w, names = read_gguf(path), llama.GGUF_NAMES
    c = llama.config_of(w)
    s = _llama_sizes(c, context)
    check_shapes(llama.wanted(c, names), {name: t.shape for name, t in w.stored.items()}, [names['head'], 'rope_freqs.weight'])
    m = memory(w.data)
    matrix = lambda name: tensor(m, w.stored[name].dtype, w.stored[name].begin, w.stored[name].shape)
    matrices = tuple(tuple(matrix(names['block'].format(i) + names[f]) for f in MATRICES) for i in range(c.layers))
    tokens = matrix(names['tokens'])
    head = tokens if c.tied else matrix(names['head'])
    norms = {to: [w.float32(names['block'].format(i) + names[f]) for i in range(c.layers)] for to, f in (('gain1', 'norm1'), ('gain2', 'norm2'))}
    vectors = norms | {'gain': w.float32(names['norm'])}
    return Decoder(s, _net(s, matrices, head, vectors, angles(s.context, s.size, c.base)), tokens, None, matrices, head)


# %% [markdown]
# ## The same numbers
#
# Held to the references: every split of a text into a part that is read at once and tokens that follow one by one.

# %%
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
# - Compiled code does not look whether an index is right. `tensor` has checked that every matrix lies in its memory, and
#   `check` that there is room in the cache; that the loops stay within what was checked is tested, not proved.
# - A token that is read together with others is computed by BLAS, which adds in another order than the step. The two differ
#   in the last digits, and where two tokens are as good as equally likely, either may win.
