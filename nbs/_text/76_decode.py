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
# There is one such function for both families. Where Llama has no biases, it adds zero. Three questions remain that numbers
# cannot settle: is the mean subtracted before a row is scaled, is there a gate, and are queries and keys turned?

# %%
#| hide
#| export
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy import float32

from bendml import gpt2, llama
from bendml.checkpoint.gguf import read_gguf
from bendml.checks import ContextError, check_ids, check_shapes
from bendml.curves import LEAST, gelu_row, soften, swiglu
from bendml.kernel import Buf, Size, f32, kernel, prange, requires
from bendml.kvarray import keep
from bendml.matvec import ROUNDED, times
from bendml.rope import angles
from bendml.stored import FORMATS, UNIT, Tensor, TensorError, memory, pack, place, q4_0_as_q4_1, rows_of, tensor
from bendml.simd import fma, hsum, load, splat, store
from bendml.threads import get_threads


# %% [markdown]
# ## The pieces, for one row
#
# Each is a loop that is [proved](29b_kernel.ipynb) to stay inside its arrays, for all sizes. Rows come in eights of numbers. A network's vectors
# lie in one array `v`; of a norm's, the gains come first and then the shifts.

# %%
#| export
@kernel
def norm(x: Buf[f32], i: Size, n: Size, v: Buf[f32], g: Size, eps: f32, centred: bool, out: Buf[f32], o: Size):
    "Scale x[i:i + 8n] to mean square 1, if `centred` around its mean, then stretch and shift it."
    requires(i + 8*n <= len(x), g + 16*n <= len(v), o + 8*n <= len(out))
    total, square = splat(f32(0)), splat(f32(0))
    if centred:
        for j in range(n): total = total + load(x, i + 8*j)
    mean = splat(hsum(total)/f32(8*n))
    for j in range(n):
        away = load(x, i + 8*j) - mean
        square = fma(away, away, square)
    scale = splat(f32(1)/f32(math.sqrt(hsum(square)/f32(8*n) + eps)))
    for j in range(n): store(out, o + 8*j, fma((load(x, i + 8*j) - mean)*scale, load(v, g + 8*j), load(v, g + 8*n + 8*j)))

@kernel
def add(x: Buf[f32], i: Size, v: Buf[f32], g: Size, n: Size):
    "x[i:i + 8n] += v[g:g + 8n]"
    requires(i + 8*n <= len(x), g + 8*n <= len(v))
    for j in range(n): store(x, i + 8*j, load(x, i + 8*j) + load(v, g + 8*j))

@kernel
def turn(x: Buf[f32], i: Size, heads: Size, half: Size, cos: Buf[f32], sin: Buf[f32], c: Size):
    "Turn neighbours, head by head; half a head's numbers in `cos` and `sin` from c on."
    requires(i + heads*(2*half) <= len(x), c + half <= len(cos), c + half <= len(sin))
    for h in range(heads):
        assert h*(2*half) + 2*half <= heads*(2*half)
        at = i + h*(2*half)
        for j in range(half):
            a, b = x[at + 2*j], x[at + 2*j + 1]
            x[at + 2*j], x[at + 2*j + 1] = a*cos[c + j] - b*sin[c + j], a*sin[c + j] + b*cos[c + j]


# %% [markdown]
# The cache is one array for keys and one for values, laid out as [proved](71b_kvarray.ipynb): region $l\,G + g$ has room for
# $T$ rows of $D = 8d$ numbers, and row $t$ begins $t D$ further on. The loop that writes it is the one proved there. This one
# reads it.

# %%
#| export
@kernel
def look(q: Buf[f32], i: Size, keys: Buf[f32], values: Buf[f32], start: Size, count: Size, d: Size, scores: Buf[f32], out: Buf[f32], o: Size):
    "One head: the mean of `count` rows of values, from `start` on, weighted by how well the keys fit. Writes out[o:o + 8d]."
    requires(i + 8*d <= len(q), o + 8*d <= len(out), start + count*(8*d) <= len(keys), start + count*(8*d) <= len(values), count + 7 <= len(scores))
    top, scale = f32(LEAST), f32(1)/f32(math.sqrt(f32(8*d)))
    for t in range(count):
        assert t*(8*d) + 8*d <= count*(8*d)
        total = splat(f32(0))
        for j in range(d): total = fma(load(q, i + 8*j), load(keys, start + t*(8*d) + 8*j), total)
        score = hsum(total)*scale
        scores[t] = score
        top = max(top, score)
    weight = soften(scores, 0, count, top)
    for j in range(d): store(out, o + 8*j, splat(f32(0)))
    for t in range(count):
        assert t*(8*d) + 8*d <= count*(8*d)
        share = splat(scores[t]/weight)
        for j in range(d): store(out, o + 8*j, fma(share, load(values, start + t*(8*d) + 8*j), load(out, o + 8*j)))

@kernel
def look_head(h: Size, G: Size, share: Size, d: Size, T: Size, R: Size, region: Size, pos: Size, q: Buf[f32], keys: Buf["R*(T*(8*d))", f32],
              values: Buf["R*(T*(8*d))", f32], scores: Buf[f32], out: Buf[f32]):
    "Attention of head h, of G*share heads; `share` of them have keys and values in common, the first of which are in `region`."
    requires(h < G*share, region + G <= R, pos < T, pos + 8 <= len(scores), (G*share)*(8*d) <= len(q), (G*share)*(8*d) <= len(out))
    requires(len(q) < 2**44, len(out) < 2**44, len(keys) < 2**44, T < 2**44, G < 2**20, share < 2**20)
    g = h//share
    assert g < G
    assert (region + g)*(T*(8*d)) + T*(8*d) <= R*(T*(8*d))
    assert (pos + 1)*(8*d) <= T*(8*d)
    assert h*(8*d) + 8*d <= (G*share)*(8*d)
    look(q, h*(8*d), keys, values, (region + g)*(T*(8*d)), pos + 1, d, scores, out, h*(8*d))

@kernel
def look_all(G: Size, share: Size, d: Size, T: Size, R: Size, region: Size, pos: Size, q: Buf[f32], keys: Buf["R*(T*(8*d))", f32],
             values: Buf["R*(T*(8*d))", f32], out: Buf[f32]):
    "Attention of all heads, one after the other."
    requires(region + G <= R, pos < T, (G*share)*(8*d) <= len(q), (G*share)*(8*d) <= len(out))
    requires(len(q) < 2**44, len(out) < 2**44, len(keys) < 2**44, T < 2**44, G < 2**20, share < 2**20)
    scores = np.empty(pos + 8, f32)
    for h in range(G*share): look_head(h, G, share, d, T, R, region, pos, q, keys, values, scores, out)

@kernel
def look_shared(G: Size, share: Size, d: Size, T: Size, R: Size, region: Size, pos: Size, q: Buf[f32], keys: Buf["R*(T*(8*d))", f32],
                values: Buf["R*(T*(8*d))", f32], out: Buf[f32]):
    "Attention of all heads, on several threads."
    requires(region + G <= R, pos < T, (G*share)*(8*d) <= len(q), (G*share)*(8*d) <= len(out))
    requires(len(q) < 2**44, len(out) < 2**44, len(keys) < 2**44, T < 2**44, G < 2**20, share < 2**20)
    for h in prange(G*share):
        scores = np.empty(pos + 8, f32)
        look_head(h, G, share, d, T, R, region, pos, q, keys, values, scores, out)


# %% [markdown]
# ## The step
#
# Four matrices a layer: queries, keys and values in one; what they have read; the feed-forward network's first half, the gate
# before it; and its second half. They lie behind one another in one array `w`, the layers `stride` apart, and each is
# multiplied on all threads. What lies between is short, and done by one; attention is shared out when the text is long enough
# to be worth it.
#
# Sizes are in 32s of numbers: $C = 32c$ channels, $H D = 32e$ numbers of all heads, $F = 32f$ in the feed-forward network. Rows that
# matrices give are in units of 16.

# %%
#| export
LONG = 256  # tokens from which on attention is shared out

@kernel
def step(layers: Size, G: Size, share: Size, d: Size, T: Size, c: Size, e: Size, f: Size, qkv_units: Size, up_units: Size, units: Size,
         eps: f32, centred: bool, gated: bool, turned: bool, w: Buf[f32], stride: Size, qkv_size: Size, o_size: Size, up_size: Size, down_size: Size,
         head_size: Size, o_at: Size, up_at: Size, down_at: Size, head_at: Size, v: Buf[f32], far: Size, cos: Buf["T*(4*d)", f32], sin: Buf["T*(4*d)", f32],
         keys: Buf["(layers*G)*(T*(8*d))", f32], values: Buf["(layers*G)*(T*(8*d))", f32], pos: Size, x: Buf["32*c", f32], logits: Buf["16*units", f32], parts: Size):
    "One token, whose row is in x, through all layers: scores for the next one."
    requires(1 <= parts, pos < T, 1 <= c, 1 <= d, (G*share)*(8*d) == 32*e, (G*share + 2*G)*(8*d) <= 16*qkv_units, up_units == 4*f if gated else up_units == 2*f)
    requires(len(keys) < 2**44, len(w) < 2**44, len(v) < 2**44, layers < 2**20, T < 2**20, G < 2**10, share < 2**10, d < 2**10, c < 2**20, e < 2**20, f < 2**20, qkv_units < 2**20, units < 2**30, stride < 2**44)
    requires(qkv_size <= 512, o_size <= 512, up_size <= 512, down_size <= 512, head_size <= 512)
    requires(qkv_units*(c*qkv_size) <= o_at, o_at + (2*c)*(e*o_size) <= up_at, up_at + up_units*(c*up_size) <= down_at, down_at + (2*c)*(f*down_size) <= stride)
    requires(layers*stride <= head_at, head_at + units*(c*head_size) <= len(w), far == 192*c + 16*qkv_units + 16*up_units, layers*far + 64*c <= len(v))
    h = np.empty(32*c, f32)
    qkv = np.empty(16*qkv_units, f32)
    o = np.empty(32*e, f32)
    y = np.empty(32*c, f32)
    wide = np.empty(16*up_units, f32)
    fx = np.empty((c + e + f)*ROUNDED, f32)
    for l in range(layers):
        assert l*stride + stride <= layers*stride
        assert l*far + far <= layers*far
        assert l*G + G <= layers*G
        at, bias = l*stride, l*far
        norm(x, 0, 4*c, v, bias, eps, centred, h, 0)
        times(qkv_size, w, at, c, qkv_units, h, fx, qkv, parts)
        add(qkv, 0, v, bias + 64*c, 2*qkv_units)
        if turned: turn(qkv, 0, G*share + G, 4*d, cos, sin, pos*(4*d))
        for g in range(G):
            assert g*(8*d) + 8*d <= G*(8*d)
            keep(layers*G, T, 8*d, keys, l*G + g, pos, qkv, (G*share)*(8*d) + g*(8*d))
            keep(layers*G, T, 8*d, values, l*G + g, pos, qkv, (G*share + G)*(8*d) + g*(8*d))
        if pos < LONG or parts == 1: look_all(G, share, d, T, layers*G, l*G, pos, qkv, keys, values, o)
        else: look_shared(G, share, d, T, layers*G, l*G, pos, qkv, keys, values, o)
        times(o_size, w, at + o_at, e, 2*c, o, fx, y, parts)
        add(x, 0, y, 0, 4*c)
        add(x, 0, v, bias + 64*c + 16*qkv_units, 4*c)
        norm(x, 0, 4*c, v, bias + 96*c + 16*qkv_units, eps, centred, h, 0)
        times(up_size, w, at + up_at, c, up_units, h, fx, wide, parts)
        add(wide, 0, v, bias + 160*c + 16*qkv_units, 2*up_units)
        if gated: swiglu(wide, 0, 4*f)
        else: gelu_row(wide, 0, 4*f)
        times(down_size, w, at + down_at, f, 2*c, wide, fx, y, parts)
        add(x, 0, y, 0, 4*c)
        add(x, 0, v, bias + 160*c + 16*qkv_units + 16*up_units, 4*c)
    norm(x, 0, 4*c, v, layers*far, eps, centred, h, 0)
    times(head_size, w, head_at, c, units, h, fx, logits, parts)


# %% [markdown]
# ## A decoder
#
# What the step is told of a network, by name. The cache belongs to a text, the decoder to a model. Any number of texts can be
# read with one decoder, each with its own cache.

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

    def cache(self) -> Cache: return Cache(self.sizes)

    def embed(self, ids: np.ndarray, pos: int) -> np.ndarray:
        "The rows of tokens (N, C), the first of which is at position `pos`."
        x = rows_of(self.tokens, ids)
        return x if self.positions is None else x + self.positions[pos:pos + len(ids)]

    def check(self, cache: Cache, ids) -> np.ndarray:
        "Tokens that may follow what is in the cache; `ContextError` if there is no room."
        ids = check_ids(ids, self.sizes.vocab, max(self.sizes.context, len(ids)))
        if cache.length + len(ids) > self.sizes.context:
            raise ContextError(f'the text is too long\n- expected : at most {self.sizes.context} tokens\n- observed : {cache.length} tokens and {len(ids)} more')
        return ids

    def step(self, cache: Cache, id: int) -> np.ndarray:
        "One token more: the scores (V,) for the next one. The array is used again by the next step."
        self.x[:] = self.embed(self.check(cache, [id]), cache.length)[0]
        step(*self.told, cache.keys, cache.values, cache.length, self.x, self.logits, get_threads())
        cache.length += 1
        return self.logits[:self.sizes.vocab]


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

def assemble(s: Sizes, layers: list[dict[str, Source]], tokens: Source, head: Source | None, vectors: dict, turn: tuple, positions: np.ndarray | None = None) -> Decoder:
    "A decoder from its parts; head None: the tokens' table. Vectors that are not given are zero, gains one."
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
    last = _place([head or tokens], w, (head or tokens).format, head_at)
    table = _place([tokens], w, tokens.format, table_at) if head else last
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

def of_gpt2(model: gpt2.Gpt2, format: str = 'F32') -> Decoder:
    "A decoder for a GPT-2, its matrices in a format."
    c, b = model.config, model.blocks
    s = Sizes(c.layers, c.heads, c.heads, c.channels//c.heads, c.channels, 4*c.channels, c.vocab, c.context, c.eps, True, False, False)
    layers = [{'q': _dense(x.qkv.w, format), 'o': _dense(x.proj.w, format), 'up': _dense(x.up.w, format), 'down': _dense(x.down.w, format)} for x in b]
    vectors = dict(gain1=[x.norm1.gain for x in b], shift1=[x.norm1.bias for x in b], gain2=[x.norm2.gain for x in b], shift2=[x.norm2.bias for x in b],
                   gain=model.norm.gain, shift=model.norm.bias, bqkv=[x.qkv.b for x in b], bo=[x.proj.b for x in b], bup=[x.up.b for x in b], bdown=[x.down.b for x in b])
    still = np.zeros((c.context, s.size//2)), np.zeros((c.context, s.size//2))
    return assemble(s, layers, _dense(model.tokens, format), None, vectors, still, model.positions)


# %%
#| export
def _llama_sizes(c: llama.Config, context: int | None) -> Sizes:
    return Sizes(c.layers, c.heads, c.shared, c.size, c.channels, c.hidden, c.vocab, min(context or c.context, c.context), c.eps, False, True, True)

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
    path,                        # of a Llama
    context: int | None = None,  # a shorter longest text
) -> Decoder:
    "A decoder with a GGUF file's weights, in the formats that the file has them in."
    w, names = read_gguf(path), llama.GGUF_NAMES
    c = llama.config_of(w)
    s = _llama_sizes(c, context)
    check_shapes(llama.wanted(c, names), {name: t.shape for name, t in w.stored.items()}, [names['head'], 'rope_freqs.weight'])
    of = lambda l, field: names['block'].format(l) + names[field]
    layers = [{field: _from_file(w, of(l, field)) for field in MATRICES} for l in range(c.layers)]
    vectors = {to: [w.float32(of(l, field)) for l in range(c.layers)] for to, field in (('gain1', 'norm1'), ('gain2', 'norm2'))} | {'gain': w.float32(names['norm'])}
    return assemble(s, layers, _from_file(w, names['tokens']), None if c.tied else _from_file(w, names['head']), vectors, angles(s.context, s.size, c.base))


# %% [markdown]
# ### Many tokens at once

# %%
#| export
def read(d: Decoder, cache: Cache, ids) -> np.ndarray:
    "Tokens at once: the scores (V,) for what follows the last one."
    for i in d.check(cache, ids): logits = d.step(cache, int(i))
    return logits


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
