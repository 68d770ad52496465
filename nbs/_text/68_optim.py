# %%
#| default_exp optim

# %% [markdown]
# # Optimizers
# > Small steps downhill: gradient descent, momentum, Adam and AdamW, in PyTorch's order of operations, in one pass over memory.

# %% [markdown]
# The gradient says in which direction the loss grows. An optimizer moves every parameter a little the other way. The
# simplest subtracts the gradient times a learning rate; Adam keeps two running means for each parameter, of its gradient
# and of the square of it, and steps by their ratio, so that steep and flat directions are walked at one pace.
#
# All of this is a few operations on each number, and hundreds of millions of numbers: it is bounded by how fast memory can
# be read and written. So each optimizer here is one loop that reads every number once, writes it once, and sets the
# gradient to zero in the same pass.

# %%
#| hide
#| export
import math
from dataclasses import dataclass, replace
from typing import Any, Callable

import numpy as np
from numpy import float32, uint16, uint32

from bendml.nn.layer import Layer, leaves
from bendml.threads import get_threads
from numba import njit, prange

# %% [markdown]
# ## Plain descent, and with momentum
#
# $w \leftarrow w - \eta\,g$; with momentum, $b \leftarrow \mu b + g$ first, and $w \leftarrow w - \eta\,b$. Weight decay adds
# $\lambda w$ to the gradient. `scale` is 1, or less if the gradient is clipped.

# %%
#| export
_PASS = dict(fastmath={'contract'}, error_model='numpy', cache=True, parallel=True)

_PLAIN = dict(error_model='numpy', cache=True)   # each product and each sum is rounded

@njit(**_PLAIN)
def sgd_few(w, g, lr, decay, scale):
    for i in range(len(w)):
        w[i] -= lr*(g[i]*scale + decay*w[i])
        g[i] = 0

@njit(parallel=True, **_PLAIN)
def sgd_pass(w, g, lr, decay, scale):
    "The same, shared out to threads."
    for i in prange(len(w)):
        w[i] -= lr*(g[i]*scale + decay*w[i])
        g[i] = 0

@njit(**_PASS)
def momentum_pass(w, g, b, lr, mu, decay, scale):
    for i in prange(len(w)):
        b[i] = b[i]*mu + (g[i]*scale + decay*w[i])
        w[i] += -lr*b[i]
        g[i] = 0


# %% [markdown]
# ## Adam and AdamW
#
# With $c_1 = 1 - \beta_1$ and $c_2 = 1 - \beta_2$, in this order:
#
# $$m \leftarrow m + c_1 (g - m) \qquad v \leftarrow \beta_2 v + (c_2\,g)\,g \qquad
# w \leftarrow w - \frac{\eta}{1 - \beta_1^t}\; m \Big/ \Big(\frac{\sqrt v}{\sqrt{1 - \beta_2^t}} + \varepsilon\Big)$$
#
# AdamW first shrinks the weights, $w \leftarrow (1 - \eta\lambda)\,w$; Adam adds $\lambda w$ to the gradient instead, which
# is not the same, since Adam then divides it by $\sqrt v$.
#
# $c_2$ is 0.001 only if it is computed in float64 and rounded once. In float32, `1 - 0.999` is 0.0009999871, wrong in the
# fifth digit, and after a hundred steps the losses differ in the fifth digit too.

# %%
#| export
@njit(fastmath={'contract'}, error_model='numpy', cache=True, forceinline=True)
def _adam(w, d, m, v, c1, b2, c2, step, root, eps):
    m = m + c1*(d - m)
    v = v*b2 + (c2*d)*d
    return w + (-step*m)/(math.sqrt(v)/root + eps), m, v

@njit(**_PASS)
def adam_pass(w, g, m, v, c1, b2, c2, step, root, eps, keep, l2, scale):
    "AdamW if l2 is 0; Adam if keep, 1 - lr*decay, is 1."
    for i in prange(len(w)):
        x = w[i]*keep
        w[i], m[i], v[i] = _adam(x, g[i]*scale + l2*x, m[i], v[i], c1, b2, c2, step, root, eps)
        g[i] = 0


# %%
print(np.float32(1) - np.float32(.999), np.float32(1 - .999))


# %% [markdown]
# ## Half the memory
#
# The two running means can be kept in bfloat16, the upper half of a float32, at no visible loss: 8 bits of precision are
# enough for a mean that is only a hint. Rounding is to the nearest, ties to even; what is not a number stays so.

# %%
#| export
@njit(fastmath=False, cache=True, forceinline=True)
def to_bf16(x):
    bits = float32(x).view(uint32)
    if x != x: return uint16(0xffff)
    return uint16((bits + uint32(0x7fff) + ((bits >> uint32(16)) & uint32(1))) >> uint32(16))

@njit(fastmath=False, cache=True, forceinline=True)
def from_bf16(h): return uint32(uint32(h) << uint32(16)).view(float32)

@njit(**_PASS)
def adam_bf16_pass(w, g, m, v, c1, b2, c2, step, root, eps, keep, l2, scale):
    "The same, with the means in bfloat16."
    for i in prange(len(w)):
        x = w[i]*keep
        w[i], a, b = _adam(x, g[i]*scale + l2*x, from_bf16(m[i]), from_bf16(v[i]), c1, b2, c2, step, root, eps)
        m[i], v[i] = to_bf16(a), to_bf16(b)
        g[i] = 0


# %%
assert [int(to_bf16(float32(x))) for x in (1., -2., np.inf, np.nan)] == [0x3f80, 0xc000, 0x7f80, 0xffff]


# %% [markdown]
# ## What you use
#
# An optimizer is a record of its settings. Its state, how many steps were made and the means, is apart and is passed in
# and out, so that it can be saved. Settings that contradict themselves are refused.

# %%
#| export
class OptimError(ValueError):
    "Settings of an optimizer that make no sense: where, expected, observed."
    def __init__(self, where: str, expected: Any, observed: Any, hint: str = ''):
        super().__init__(f'{where}\n- expected : {expected}\n- observed : {observed}' + (f'\nhint: {hint}' if hint else ''))

@dataclass(frozen=True)
class State:
    "How many steps were made, and what is kept for each parameter."
    steps: int
    kept: tuple   # trees of arrays, each like the parameters


# %% [markdown]
# Not all parameters are alike: a bias should not decay, and when a trained network learns something new, its first layers should
# move less than its last. So a function says of each parameter, by its name and its shape, what the learning rate and the decay
# are multiplied by; those with the same two factors are what PyTorch calls a parameter group.

# %%
#| export
Factors = Callable[[str, tuple[int, ...]], tuple[float, float]]   # a parameter's name and shape -> factors of lr and decay

def matrices(name: str, shape: tuple[int, ...]) -> tuple[float, float]:
    "Biases and gains do not decay; matrices and tables do."
    return 1, len(shape) > 1


# %%
#| export
@dataclass(frozen=True)
class Optimizer:
    "The protocol: `start` a state, `step` parameters."
    lr: float | Callable[[int], float] = 1e-3      # learning rate, or a schedule: step, from 0 -> learning rate
    decay: float = 0.                              # weight decay
    factors: Factors = matrices                    # of lr and decay, for each parameter
    kinds = ()                                     # dtypes of what is kept for each parameter

    def __post_init__(self):
        self.range('decay', self.decay, 0, math.inf)
        if not callable(self.lr): self.range('lr', self.lr, 0, math.inf)
    def range(self, name: str, x: float, low: float, high: float) -> None:
        if not low <= x < high: raise OptimError(f'{type(self).__name__}: {name}', f'{low} <= {name} < {high}', x)
    def start(self, layer: Layer) -> State:
        "The state before the first step."
        return State(0, tuple(layer.make(lambda n, s: np.zeros(s, kind)) for kind in self.kinds))
    def rate(self, steps: int) -> float: return float(self.lr(steps)) if callable(self.lr) else self.lr
    def group(self, name: str, shape: tuple[int, ...]) -> tuple[float, float]:
        "A parameter's two factors; `OptimError` if they are none."
        two = self.factors(name, shape)
        if not (isinstance(two, tuple) and len(two) == 2 and all(0 <= x < math.inf for x in two)): raise OptimError(f'{type(self).__name__}: the factors of {name}', 'two numbers from 0 on: of lr and of decay', two)
        return two
    def step(self, layer: Layer, p: tuple, g: tuple, state: State, scale: float = 1.) -> State:
        "Move the parameters, set the gradient to zero, both in place; the state after it."
        lr, t, scale = self.rate(state.steps), state.steps + 1, float32(scale)
        if len({id(w) for w in leaves(p)}) < sum(1 for _ in leaves(p)): raise OptimError(type(self).__name__, 'each array once', 'an array in two places, which would make two steps', '`Tied` has one table for both ends')
        def update(w, dw, group, *kept):
            for a in (w, dw, *kept):
                if a.shape != w.shape or not a.flags.c_contiguous: raise OptimError(type(self).__name__, f'arrays of the shape {w.shape}, in C order', [a.shape for a in (dw, *kept)])
            self.update(w.reshape(-1), dw.reshape(-1), *(a.reshape(-1) for a in kept), lr=lr*group[0], t=t, decay=self.decay*group[1], scale=scale)
        layer.step(update, p, g, layer.make(self.group), *state.kept)
        return replace(state, steps=t)


# %%
#| export
@dataclass(frozen=True)
class SGD(Optimizer):
    "Gradient descent; with momentum if it is not 0."
    momentum: float = 0.
    def __post_init__(self):
        super().__post_init__()
        self.range('momentum', self.momentum, 0, 1)
    kinds = property(lambda self: (float32,) if self.momentum else ())
    def update(self, w, g, *kept, lr, t, decay, scale):
        if self.momentum: momentum_pass(w, g, *kept, float32(lr), float32(self.momentum), float32(decay), scale)
        else: (sgd_pass if len(w) > 4096 else sgd_few)(w, g, float32(lr), float32(decay), scale)

@dataclass(frozen=True)
class AdamW(Optimizer):
    "Adam with weight decay beside it (Loshchilov and Hutter 2019)."
    decay: float = .01
    betas: tuple[float, float] = (.9, .999)
    eps: float = 1e-8
    c: tuple[float, float] | None = None   # 1 - betas, if you have them more exactly
    bf16: bool = False                     # keep the means in bfloat16
    l2 = False                             # decay through the gradient
    kinds = property(lambda self: (uint16 if self.bf16 else float32,)*2)
    def __post_init__(self):
        super().__post_init__()
        for name, b in zip(('beta 1', 'beta 2'), self.betas): self.range(name, b, 0, 1)
        self.range('eps', self.eps, 0, math.inf)
        for b, c in zip(self.betas, self.complements):
            if not (0 < c <= 1 and abs(1 - b - c) <= 1e-6*c): raise OptimError(f'{type(self).__name__}: c does not match betas', f'{1 - b:.9g}, 1 - {b}', c)
    @property
    def complements(self) -> tuple[float, float]: return self.c or tuple(1 - b for b in self.betas)
    def update(self, w, g, m, v, *, lr, t, decay, scale):
        (b1, b2), (c1, c2) = self.betas, self.complements
        step, root = lr/(1 - b1**t), math.sqrt(1 - b2**t)
        run = adam_bf16_pass if self.bf16 else adam_pass
        numbers = (c1, b2, c2, step, root, self.eps, 1. if self.l2 else 1 - lr*decay, decay if self.l2 else 0.)
        run(w, g, m, v, *map(float32, numbers), scale)

@dataclass(frozen=True)
class Adam(AdamW):
    "Adam (Kingma and Ba 2015); weight decay, if any, goes through the gradient."
    decay: float = 0.
    l2 = True


# %% [markdown]
# With weight 1, gradient 0.5, learning rate and decay 0.1, the two decays differ:

# %%
from bendml.nn.layers import Linear
for rule in (AdamW(lr=.1, decay=.1), Adam(lr=.1, decay=.1)):
    net = Linear(1, 1, bias=False)
    p, g = (np.ones((1, 1), float32),), (np.full((1, 1), .5, float32),)
    state = rule.step(net, p, g, rule.start(net))
    print(f'{type(rule).__name__:6} {p[0].item():.3f}', state.steps, g[0].item())

# %% [markdown]
# The first layer at a tenth of the pace, and no decay on biases. A parameter's name begins with its layer's place:

# %%
from bendml.nn.layer import Seq
def gently(name, shape): return .1 if name.startswith('0.') else 1, len(shape) > 1

two, rule = Seq(Linear(1, 1), Linear(1, 1)), AdamW(lr=.1, decay=.5, factors=gently)
p, g = (two.make(lambda name, shape: np.ones(shape, float32)) for _ in range(2))
rule.step(two, p, g, rule.start(two))
print(*(f'{name} {w.item():.3f}' for name, w in zip(two.names(), leaves(p))), sep='\n')

# %% [markdown]
# $\varepsilon$ stands beside $\sqrt{\hat v}$. In any other place, a first gradient of $10^{-6}$ would give another step:

# %%
rule, p, g = AdamW(lr=.1, decay=0.), (np.zeros((1, 1), float32),), (np.full((1, 1), 1e-6, float32),)
rule.step(net, p, g, rule.start(net))
assert abs(-p[0].item() - .0990099) < 1e-7
p[0].item()


# %% [markdown]
# ## Clipping
#
# A rare example can have a huge gradient. If the length of the whole gradient is above a bound, it is scaled down to it.
# The squares are added up in float64, block by block, so the result does not depend on the number of threads.

# %%
#| export
@njit(fastmath={'contract', 'reassoc', 'nsz'}, cache=True, parallel=True)
def _squares(g, blocks):
    sums = np.zeros(blocks)
    for b in prange(blocks):
        total = 0.
        for i in range(len(g)*b//blocks, len(g)*(b + 1)//blocks): total += np.float64(g[i])*np.float64(g[i])
        sums[b] = total
    return sums.sum()

def grad_norm(g: tuple) -> float:
    "The length of the gradient: the root of the sum of all squares."
    return math.sqrt(sum(_squares(d.reshape(-1), 1 + d.size//65536) for d in leaves(g)))

def clip(g: tuple, longest: float) -> tuple[float, float]:
    "The gradient's length, and the `scale` for `step` that makes it no longer than `longest`."
    norm = grad_norm(g)
    return norm, min(1., longest/(norm + 1e-6))


# %%
clip((np.array([3, 4], float32),), 1.)


# %% [markdown]
# ## Schedules
#
# A learning rate may change with the step: a short climb, since the means are not yet worth much, and then a slow descent
# along a cosine.

# %%
#| export
def warmup_cosine(peak: float, warmup: int, total: int, floor: float = 0.) -> Callable[[int], float]:
    "A learning rate that climbs to `peak` in `warmup` steps, then follows a cosine down to `floor` at step `total`."
    if not 0 <= warmup < total or not 0 <= floor <= peak: raise OptimError('warmup_cosine', '0 <= warmup < total and 0 <= floor <= peak', f'warmup {warmup}, total {total}, floor {floor}, peak {peak}')
    def rate(step: int) -> float:
        if step < warmup: return peak*(step + 1)/warmup
        done = min(1., (step - warmup)/(total - warmup))
        return floor + (peak - floor)*(1 + math.cos(math.pi*done))/2
    return rate

def linear_decay(peak: float, total: int, floor: float = 0.) -> Callable[[int], float]:
    "A learning rate that falls in a straight line from `peak` to `floor` at step `total`."
    if total < 1: raise OptimError('linear_decay', 'at least 1 step', total)
    return lambda step: floor + (peak - floor)*(1 - min(1., step/total))


# %%
#| echo: false
import matplotlib.pyplot as plt
fig, ax = plt.subplots(figsize=(5, 1.8), layout='constrained')
ax.plot([warmup_cosine(1., 10, 100, .1)(i) for i in range(110)], label='warmup_cosine')
ax.plot([linear_decay(1., 100, .1)(i) for i in range(110)], label='linear_decay')
ax.set(xlabel='step', ylabel='of the peak', ylim=(0, None))
ax.legend(frameon=False);


# %% [markdown]
# ## What is refused

# %%
def step_with(factors): SGD(factors=factors).step(two, two.zeros(), two.zeros(), State(0, ()))

for bad in (lambda: AdamW(c=(.1, .01)), lambda: AdamW(betas=(.9, 1.)), lambda: SGD(lr=-1.), lambda: step_with(lambda name, shape: (1, -1))):
    try: bad()
    except OptimError as e: print(e, '\n')

# %% [markdown]
# ## What this does not show
#
# That a minimum is found. An optimizer is a recipe that works well in practice; no law here says that the loss goes down.
