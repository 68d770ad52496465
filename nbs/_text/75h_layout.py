# %%
#| default_exp decode.layout

# %% [markdown]
# # A model in one row
# > All weights of a model in a single array, in the order in which a token reads them.

# %% [markdown]
# The compiled functions that take tokens through the layers know nothing of models. They are told sizes, and where in one long array
# each matrix begins; so memory is read from front to back, layer after layer, and nothing is looked up on the way. This page lays
# the weights out, whatever format they come in.

# %%
#| hide
#| export
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy import float32

from bendml.checkpoint.weights import Weights
from bendml.decode.stored import FORMATS, UNIT, Tensor, TensorError, memory, pack, place, q4_0_as_q4_1, tensor


# %% [markdown]
# ## What a network is, to a loop

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

def units(rows: int) -> int:
    "How many units of rows a matrix takes."
    return -(-rows//UNIT)

def cells(rows: int, width: int, format: str) -> int:
    "How many cells a matrix takes."
    return units(rows)*(width//32)*FORMATS[format].size


# %% [markdown]
# The loops take eight lanes of a head, and blocks of 32 numbers. Other networks are refused:

# %%
#| export
def check_sizes(s: Sizes) -> None:
    "What the compiled loops need; `TensorError` for other networks."
    for what, n, by in (('numbers a head', s.size, 8), ('channels', s.channels, 32), ('numbers of all heads', s.heads*s.size, 32), ('hidden channels', s.hidden, 32)):
        if n % by: raise TensorError(f'{what}\n- expected : a multiple of {by}\n- observed : {n}')


# %%
small = Sizes(2, 4, 2, 16, 64, 96, 100, 32, 1e-5, False, True, True)
check_sizes(small)
try: check_sizes(small._replace(hidden=100))
except TensorError as e: print(e)

# %% [markdown]
# ## Matrices
#
# Matrices come as bytes, as files have them, and are placed in their [order](75_stored.ipynb). All layers have a matrix in the same
# format; if a file has it in two, it is stored as `float32`, which loses nothing. Queries, keys and values are one matrix to the
# loops, and so are gate and up.

# %%
#| export
STACKS = (('q', 'k', 'v'), ('o',), ('gate', 'up'), ('down',))
MATRICES = [name for names in STACKS for name in names]

class Source(NamedTuple):
    "A matrix to be stored."
    format: str
    shape: tuple[int, int]
    blocks: Callable[[], np.ndarray]     # its bytes (rows, k/32, n), made when they are needed
    numbers: Callable[[], np.ndarray]    # its numbers, if it has to be stored in another format

def _place(sources: list[Source], cells: np.ndarray, format: str, at: int) -> Tensor:
    "Store matrices below one another."
    t = tensor(cells, format, at, (sum(s.shape[0] for s in sources), sources[0].shape[1]))
    place([s.blocks() if s.format == format else pack(s.numbers(), format) for s in sources], t)
    return t

def _one_format(sources: list[Source]) -> str:
    "The format of matrices that are stored alike."
    formats = {s.format for s in sources}
    return formats.pop() if len(formats) == 1 else 'F32'


# %% [markdown]
# A matrix comes from an array of numbers, or from a GGUF file.

# %%
#| export
def dense(w: np.ndarray, format: str) -> Source:
    "A matrix of numbers, to be stored in a format."
    return Source(format, w.shape, lambda: pack(w, format), lambda: w)

def from_file(w: Weights, name: str) -> Source:
    "A matrix of a GGUF file, in its format or in the one that holds its numbers exactly."
    t = w.stored[name]
    raw = lambda: w[name].reshape(t.shape[0], t.shape[1]//32, -1)
    numbers = lambda: w.float32(name)
    if t.dtype == 'Q4_0': return Source('Q4_1', t.shape, lambda: q4_0_as_q4_1(raw()), numbers)
    if t.dtype == 'F16': return Source('F32', t.shape, lambda: pack(numbers(), 'F32'), numbers)
    if t.dtype in ('F32', 'BF16'): return Source(t.dtype, t.shape, lambda: np.ascontiguousarray(w[name]).view(np.uint8).reshape(t.shape[0], t.shape[1]//32, -1), numbers)
    if t.dtype not in FORMATS: raise TensorError(f'tensor {name}\n- expected : {", ".join(FORMATS)}, Q4_0 or F16\n- observed : {t.dtype}')
    return Source(t.dtype, t.shape, raw, numbers)


# %% [markdown]
# ## All of them
#
# One layer after the other, then the head, and the table of tokens, which is the head where the two are tied.

# %%
#| export
def lay_out(s: Sizes, layers: list[dict[str, Source]], tokens: Source, head: Source | None, vectors: dict, turn: tuple,
            placed: Callable[[], None] = lambda: None) -> tuple[Net, Tensor]:
    "The weights in one row, and the table of tokens in it. Vectors that are not given are zero, gains one. `placed` is called after each layer."
    check_sizes(s)
    stacks = [[[layer[name] for name in names if name in layer] for names in STACKS] for layer in layers]
    formats = [_one_format([m for stack in stacks for m in stack[i]]) for i in range(4)]
    *at, stride = np.cumsum([0, *map(cells, s.rows, s.widths, formats)]).tolist()
    last, of = head or tokens, lambda m: cells(s.vocab, s.channels, m.format)
    head_at, table_at = s.layers*stride, s.layers*stride + of(last)
    w = memory(table_at + (of(tokens) if head else 0))
    for l, stack in enumerate(stacks):
        for i in range(4): _place(stack[i], w, formats[i], l*stride + at[i])
        placed()
    scores = _place([last], w, last.format, head_at)
    table = _place([tokens], w, tokens.format, table_at) if head else scores
    placed()
    return Net((*formats, last.format), (*at, head_at), stride, w, _vectors(s, vectors), *(a.astype(float32).reshape(-1) for a in turn)), table

def _vectors(s: Sizes, given: dict) -> np.ndarray:
    "Gains, shifts and biases in the step's order, layer after layer."
    wide = {'gain1': s.channels, 'shift1': s.channels, 'bqkv': UNIT*units(s.rows[0]), 'bo': s.channels, 'gain2': s.channels, 'shift2': s.channels,
            'bup': UNIT*units(s.rows[2]), 'bdown': s.channels}
    v = np.zeros((s.layers, sum(wide.values())), float32)
    for (name, n), end in zip(wide.items(), np.cumsum(list(wide.values()))):
        if name in given: v[:, end - n:end - n + len(given[name][0])] = given[name]
        elif 'gain' in name: v[:, end - n:end] = 1
    last = given.get('gain', np.ones(s.channels)), given.get('shift', np.zeros(s.channels))
    return np.concatenate((v.reshape(-1), *last)).astype(float32)


# %% [markdown]
# A small network, its matrices in 8 bits but for one, which one layer has in 4. That one is stored as `float32`, in both:

# %%
rng = np.random.default_rng(0)
def layer(down):
    shapes = dict(q=(64, 64), k=(32, 64), v=(32, 64), o=(64, 64), gate=(96, 64), up=(96, 64), down=(64, 96))
    return {name: dense(rng.standard_normal(shape, float32), down if name == 'down' else 'Q8_0') for name, shape in shapes.items()}

tokens = dense(rng.standard_normal((100, 64), float32), 'Q8_0')
net, table = lay_out(small, [layer('Q8_0'), layer('Q4_1')], tokens, None, {}, (np.zeros((32, 8)), np.zeros((32, 8))))
print(net.formats, net.at, net.stride, len(net.w))
assert net.formats[3] == 'F32' and len(net.w) == 2*net.stride + cells(100, 64, 'Q8_0')

# %% [markdown]
# ## What this does not show
#
# That a matrix stands where the loops look for it. Each page about them is tested by itself; together they are held to the
# [references](72_gpt2.ipynb) on the [next page](76_decode.ipynb).
