# %%
#| default_exp tensor.four_bits

# %% [markdown]
# # Four bits a weight
# > An eighth of the bytes, and a scale for every thirty-two weights.

# %% [markdown]
# On the page about [matrix times vector](43_matvec.ipynb) a weight took 32, 16 or 8 bits, and the fewer, the faster it could be read.
# Four bits are sixteen steps. A whole row cannot share one scale then: its largest weight would push all small ones to zero. So
# each *group* of 32 weights has a scale of its own, which costs one bit a weight more.
#
# Two weights share a byte. The first sixteen of a group are the lower halves of its sixteen bytes, the others the upper ones, so that
# eight neighbours are eight halves of neighbouring bytes, which is what the [widening words](04_simd.ipynb) read.

# %%
#| hide
#| export
import numpy as np
from bendml.threads import get_threads
from numpy import float32

from bendml.fixed import has_vnni, products_split_i4, split128
from bendml.kernel import Buf, Size, f32, kernel, prange, requires, u8
from bendml.simd import fma, hsum, load, load_high4, load_low4, splat
from bendml.tensor.arrays import TensorError, dense, result, typed
from bendml.tensor.weights import SMALL, fixed_step, in_lines

# %% [markdown]
# ## Packing
#
# A number $w$ becomes the whole number $q$ from 1 to 15 with $w \approx (q - 8)\, s$, where the scale $s$ is a seventh of the
# largest number of the group. So no weight is off by more than half a scale. `from_i4` is what the packed numbers mean.

# %%
#| export
GROUP = 32  # weights that share a scale; they take 16 bytes

def to_i4(
    w: np.ndarray,                   # (r, c) float32, c a multiple of 32
) -> tuple[np.ndarray, np.ndarray]:  # uint8 (r, c/2), and the scales (r, c/32)
    "The nearest 4-bit numbers; `TensorError` for rows that are not whole groups, or a weight that is not a finite number."
    w = dense('to_i4: w', w, 2)
    if w.shape[1] % GROUP: raise TensorError('to_i4: w', 'rows that are not whole groups', f'a multiple of {GROUP} columns', typed(w.shape))
    if not np.isfinite(w).all(): raise TensorError('to_i4: w', 'not finite', 'finite numbers', str(w[~np.isfinite(w)][0]))
    groups = w.reshape(len(w), w.shape[1]//GROUP, GROUP)
    scale = np.abs(groups).max(axis=2, initial=0)/float32(7)
    q = np.rint(np.clip(groups/np.where(scale > 0, scale, float32(1))[..., None], -7, 7)).astype(np.int8) + 8
    return (q[..., :16] | q[..., 16:] << 4).astype(np.uint8).reshape(len(w), w.shape[1]//2), scale

def from_i4(
    w: np.ndarray,      # uint8 (r, c/2)
    scale: np.ndarray,  # (r, c/32)
) -> np.ndarray:        # (r, c) float32
    "What 4-bit numbers stand for; `TensorError` if there is not one scale a group."
    w, scale = _packed('from_i4', w, scale)
    halves = w.reshape(*scale.shape, GROUP//2)
    q = np.concatenate((halves & 15, halves >> 4), axis=2).astype(float32) - 8
    return (q*scale[..., None]).reshape(len(w), 2*w.shape[1])

def _packed(where: str, w: np.ndarray, scale: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    w, scale = dense(f'{where}: w', w, 2, np.uint8), dense(f'{where}: scale', scale, 2)
    if w.shape[1] % 16: raise TensorError(f'{where}: w', 'rows that are not whole groups', 'a multiple of 16 bytes', typed(w.shape))
    if scale.shape != (len(w), w.shape[1]//16): raise TensorError(f'{where}: scale', 'one number a group', typed((len(w), w.shape[1]//16)), typed(scale.shape))
    return w, scale


# %%
rng = np.random.default_rng(0)
w = rng.standard_normal((1000, 768), float32)
small, scale = to_i4(w)
print(f'{w.nbytes/(small.nbytes + scale.nbytes):.1f} times fewer bytes, largest error {abs(from_i4(small, scale) - w).max():.2f}')


# %% [markdown]
# ## The product
#
# A group can be widened in four pieces, eight weights each, and multiplied with its 32 numbers of $x$; its sum is then scaled. What is
# proved, for every size, is that no byte outside the matrix is read and that no two threads write one number.

# %%
#| export
@kernel
def dot_i4(w: Buf[u8], at: Size, scale: Buf[f32], s: Size, x: Buf[f32], p: Size, groups: Size):
    "A row of 4-bit weights times x[p:p + 32*groups]."
    requires(at + 16*groups <= len(w), s + groups <= len(scale), p + 32*groups <= len(x))
    eight, total = splat(f32(8)), splat(f32(0))
    for g in range(groups):
        i, j = at + 16*g, p + 32*g
        a, b = (load_low4(w, i) - eight)*load(x, j), (load_low4(w, i + 8) - eight)*load(x, j + 8)
        a, b = fma(load_high4(w, i) - eight, load(x, j + 16), a), fma(load_high4(w, i + 8) - eight, load(x, j + 24), b)
        total = fma(splat(scale[s + g]), a + b, total)
    return hsum(total)


# %% [markdown]
# That takes three times longer than memory needs. So, as with weights of [eight bits](43_matvec.ipynb), $x$ is split into three
# [bytes](04b_fixed.ipynb), with a step for each piece of 2048 numbers, and four groups are multiplied at once. The first halves of the four come first
# then, as they do in the weights: `turned` is $x$ in this order. Pieces that cannot be split, and the last groups, keep their floats.

# %%
#| export
@kernel
def fix_i4(turned: Buf["128*fours", f32], fours: Size, d: Buf["128*fours", f32], steps: Buf["(fours + 15)//16", f32], split: bool):
    "x, four groups at a time, and the step of each piece."
    requires(fours < 2**40)
    for s in range((fours + 15)//16):
        first = 16*s
        n = min(16, fours - first)
        steps[s] = fixed_step(turned, 128*first, 128*n, split)
        if steps[s] > f32(0):
            for u in range(first, first + n): split128(turned, 128*u, f32(1)/steps[s], 8, d, 128*u)

@kernel
def row_i4(w: Buf[u8], at: Size, scale: Buf[f32], g: Size, x: Buf["32*groups", f32], d: Buf["groups//4*128", f32], steps: Buf["(groups//4 + 15)//16", f32], groups: Size):
    "A row of 4-bit weights times x."
    requires(at + 16*groups <= len(w), g + groups <= len(scale), groups < 2**40, at < 2**44, g < 2**44)
    fours, y = groups//4, f32(0)
    for s in range((fours + 15)//16):
        first = 16*s
        n = min(16, fours - first)
        if steps[s] > f32(0):
            total = splat(f32(0))
            for u in range(first, first + n): total = total + products_split_i4(w, at + 64*u, scale, g + 4*u, d, 128*u)
            y += hsum(total)*steps[s]
        else: y += dot_i4(w, at + 64*first, scale, g + 4*first, x, 128*first, 4*n)
    return y + dot_i4(w, at + 64*fours, scale, g + 4*fours, x, 128*fours, groups - 4*fours)

@kernel
def matvec_i4_loops(w: Buf["r*groups*16", u8], scale: Buf["r*groups", f32], x: Buf["32*groups", f32], turned: Buf["groups//4*128", f32], d: Buf["groups//4*128", f32], y: Buf["r", f32], r: Size, groups: Size, parts: Size, split: bool):
    "Each row times x, in `parts` bands of rows. d is room for the bytes of x."
    requires(1 <= parts, r*groups < 2**40, groups < 2**40)
    fours = groups//4
    steps = np.empty((fours + 15)//16, f32)
    fix_i4(turned, fours, d, steps, split)
    high = (r + parts - 1)//parts
    for t in prange(parts):
        for i in range(min(r, t*high), min(r, t*high + high)):
            assert i*groups + groups <= r*groups
            y[i] = row_i4(w, i*groups*16, scale, i*groups, x, d, steps, groups)


# %%
#| export
def matvec_i4(
    w: np.ndarray,                  # uint8 (r, c/2), from `to_i4`
    scale: np.ndarray,              # (r, c/32)
    x: np.ndarray,                  # (c,) float32
    out: np.ndarray | None = None,  # (r,)
) -> np.ndarray:                    # (r,) float32
    "w x for 4-bit weights; the bits do not depend on the number of threads. `TensorError` for what does not fit."
    w, scale = _packed('matvec_i4', w, scale)
    x = dense('matvec_i4: x', x, 1)
    if x.shape != (2*w.shape[1],): raise TensorError('matvec_i4', f'rows of {2*w.shape[1]} weights', typed((2*w.shape[1],)), typed(x.shape))
    y = result('matvec_i4: out', out, (len(w),), (w, scale, x))
    parts = get_threads() if 2*w.size > SMALL else 1
    turned = x[:len(x)//128*128].reshape(-1, 4, 2, 16).swapaxes(1, 2).reshape(-1)
    matvec_i4_loops(w.reshape(-1), scale.reshape(-1), x, np.ascontiguousarray(turned), in_lines(len(turned)), y, len(w), scale.shape[1], parts, has_vnni())
    return y


# %%
x = rng.standard_normal(768, float32)
exact = from_i4(small, scale).astype(np.float64) @ x
assert abs(matvec_i4(small, scale, x) - exact).max() < 1e-5*abs(exact).max()
float(abs(exact - w @ x).max()/abs(w @ x).max())  # what four bits cost

# %%
try: matvec_i4(small, scale[:, :1], x)
except TensorError as e: print(e)

# %% [markdown]
# ## What this does not show
#
# - How far the product is from the exact sum. A test holds it to $2^{-24} \big((c/32 + 12) \sum_p |w_p x_p| + \sum_p |w_p| \max |x|\big)$ for the
#   numbers that are stored.
# - Other ways of packing. Files in the format GGUF have several; [decoding](75b_matvec.ipynb) reads those as they are.
