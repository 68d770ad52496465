# %%
#| default_exp shape.drawing

# %% [markdown]
# # Random numbers
# > They have the shape that is asked for; without one, that of their parameters.

# %%
#| hide
#| export
from typing import Any

import numpy as np

from bendml.shape.sizes import Dim
from bendml.shape.facts import claim
from bendml.shape.trace import add_where, holds, refuse
from bendml.shape.symbols import Array, as_dim, axis, entries, number, perform
from bendml.shape.ranges import UNBOUNDED, Range, below, copied, range_of, ranged, written
from bendml.shape.elementwise import broadcast, filled, lift, same
from bendml.shape.reductions import axis_number, not_empty
from bendml.shape.moves import broadcast_to, shape_of
from bendml.shape.matrices import square

# %% [markdown]
# ## Distributions
#
# The names of the parameters of each, in order; after them comes `size`. The old functions of `np.random` are the same.

# %%
#| export
DISTRIBUTIONS = {
    'beta': 'a b', 'chisquare': 'df', 'exponential': 'scale', 'f': 'dfnum dfden', 'gamma': 'shape scale', 'gumbel': 'loc scale', 'laplace': 'loc scale',
    'logistic': 'loc scale', 'lognormal': 'mean sigma', 'noncentral_chisquare': 'df nonc', 'noncentral_f': 'dfnum dfden nonc', 'normal': 'loc scale',
    'pareto': 'a', 'power': 'a', 'rayleigh': 'scale', 'standard_gamma': 'shape', 'standard_t': 'df', 'triangular': 'left mode right', 'uniform': 'low high',
    'vonmises': 'mu kappa', 'wald': 'mean scale', 'weibull': 'a', 'standard_cauchy': '', 'standard_exponential': '', 'standard_normal': '', 'random': '',
    'random_sample': '', 'sample': '', 'ranf': ''}
COUNTS = {'binomial': 'n p', 'geometric': 'p', 'hypergeometric': 'ngood nbad nsample', 'logseries': 'p', 'negative_binomial': 'n p', 'poisson': 'lam',
          'zipf': 'a', 'integers': 'low high', 'randint': 'low high'}


# %%
#| export
def draw(name: str, args: tuple, kwargs: dict, old: bool = False) -> Any:
    "What a random generator returns; the old one, behind `np.random.choice`, chooses from one axis."
    if old and name == 'choice' and as_dim(args[0]) is None: _row(args[0], 0)
    if name in OTHERS: return OTHERS[name](*args, **kwargs)
    if name not in DISTRIBUTIONS and name not in COUNTS:
        refuse(f'the random function {name} has no shape rule', hint='draw outside, and pass the array')
    names = (DISTRIBUTIONS | COUNTS)[name].split()
    given = dict(zip([*names, 'size'], args)) | kwargs
    shape, parameters = given.get('size'), [lift(given[n]) for n in names if given.get(n) is not None]
    for i, p in enumerate(parameters):
        if p.dtype.kind not in 'fiub': refuse(f'a parameter of {p.dtype}', 'real numbers', p, operand=i)
    axes = parameters[0].axes if parameters else ()
    for i, p in enumerate(parameters[1:], 1): axes = broadcast(Array(axes), p, 0, i)
    if shape is not None: axes = broadcast_to(Array(axes), tuple(shape_of(shape))).axes
    kind = given.get('dtype', args[len(names) + 1] if len(args) > len(names) + 1 else None) or (np.int64 if name in COUNTS else float)
    drawn = ranged(Array(axes, kind), _whole_numbers(given, args) if name in ('integers', 'randint') else UNBOUNDED)
    return _into(drawn, given['out'], shape) if given.get('out') is not None else drawn


# %%
#| export
def _into(drawn: Array, out: Array, shape: Any) -> Array:
    "Written into `out`, which has the shape if there is no other."
    return filled(drawn if shape is not None else Array(lift(out).axes, drawn.dtype), out)


# %%
#| export
def _whole_numbers(given: dict, args: tuple) -> Range:
    "The range of random whole numbers."
    low, high = given.get('low', 0), given.get('high')
    if high is None: low, high = 0, low
    low, high, last = range_of(low), range_of(high), 0 if given.get('endpoint') or args[4:5] == (True,) else 1
    if None in (low.low, high.high): return UNBOUNDED
    if low.low == low.high and high.low == high.high and not (verdict := holds(claim(high.high - last, '>=', low.low))).holds:
        refuse(f'no number from {low.low} to {high.high - last}', f'{low.low} <= {high.high - last}', high.high - last,
               add_where(claim(low.low, '<=', high.high - last)) if verdict.fails_at else '', verdict)
    return Range(low.low, high.high - last)


# %% [markdown]
# ## Vectors
#
# These make one vector, or as many as are asked for.

# %%
#| export
def _vectors(k: Any, size: Any, kind: Any, more: tuple = ()) -> Array:
    return Array((*(more if size is None else map(axis, shape_of(size))), k), kind)

def _row(x: Any, operand: int) -> Array:
    if lift(x).ndim != 1: refuse('one axis is needed', 'Vec<n>', lift(x), operand=operand)
    not_empty([lift(x).axes[0].size], lift(x))
    return lift(x)


# %%
#| export
def dirichlet(alpha, size=None): return _vectors(_row(alpha, 0).axes[0], size, float)

def multinomial(n, pvals, size=None):
    p = lift(pvals)
    not_empty([p.axes[-1].size], p)
    more = broadcast(lift(n), Array(p.axes[:-1]))
    if size is not None: broadcast_to(Array(more), tuple(shape_of(size)))
    return _vectors(p.axes[-1], size, np.int64, more)

def multivariate_hypergeometric(colors, nsample, size=None, method='marginals'): return _vectors(_row(colors, 0).axes[0], size, np.int64)


# %%
#| export
def multivariate_normal(mean, cov, size=None, *_, **__):
    m, c = _row(mean, 0), lift(cov)
    if c.ndim != 2 or not (verdict := same(square(c).size, m.axes[0].size)).holds:
        refuse('a covariance for each pair', f'Mat<{m.axes[0].size}, {m.axes[0].size}>', c, verdict=None if c.ndim != 2 else verdict, operand=1)
    return _vectors(m.axes[0], size, float)


# %% [markdown]
# ## Some of what is there

# %%
#| export
def choice(a, size=None, replace=True, p=None, axis=0, shuffle=True):
    one = as_dim(a) is not None
    x = Array((new_axis(as_dim(a)),), np.int64) if one else lift(a)
    i = axis_number(axis, x.ndim)
    n, shape = x.axes[i].size, () if size is None else tuple(shape_of(size))
    not_empty([n], x)
    if p is not None and not (verdict := same(n, _row(p, 3).axes[0].size)).holds: refuse('a probability for each', f'Vec<{n}>', lift(p), verdict=verdict)
    wanted = entries(Array(map(new_axis, shape)))
    if replace is not True and not (verdict := holds(claim(wanted, '<=', n))).holds:
        refuse(f'{wanted} of {n} without replacement', f'{wanted} <= {n}', wanted, add_where(claim(wanted, '<=', n)) if verdict.fails_at else '', verdict)
    made = Array((*x.axes[:i], *map(new_axis, shape), *x.axes[i + 1:]), x.dtype)
    return ranged(made, below(n)) if one else copied(x, made)


# %%
#| export
new_axis = axis

def permutation(x, axis=0):
    if as_dim(x) is not None: return perform(np.arange, (x,), {})
    return permuted(x, axis=axis)

def permuted(x, *, axis=None, out=None):
    v = lift(x)
    if axis is not None: axis_number(axis, v.ndim)
    return filled(copied(v, Array(v.axes, v.dtype)), out)


# %%
#| export
def _in_place(x, axis=0):
    if not isinstance(x, np.ndarray): return
    axis_number(axis, x.ndim)
    written(x, range_of(x))

def _sizes_first(*shape): return draw('random', (shape,) if shape else (), {})

OTHERS = {'dirichlet': dirichlet, 'multinomial': multinomial, 'multivariate_hypergeometric': multivariate_hypergeometric, 'choice': choice,
          'multivariate_normal': multivariate_normal, 'permutation': permutation, 'permuted': permuted, 'shuffle': _in_place,
          'seed': lambda *_, **__: None, 'rand': _sizes_first, 'randn': _sizes_first}

# %%
from bendml.shape.trace import Trace, tracing
from bendml.shape.messages import ShapeError
n, k, d = map(Dim, 'nkd')
with tracing(Trace()):
    means, x = Array([new_axis(k)]), Array([new_axis(n), new_axis(d)])
    print(draw('normal', (means, 1.0), {}), draw('dirichlet', (means,), {'size': n}), draw('choice', (x,), {'size': 1, 'replace': False}))
    for wrong in (lambda: draw('normal', (means, 1.0, n), {}), lambda: draw('choice', (x, k), {'replace': False})):
        try: wrong()
        except ShapeError as e: print(e, end='\n\n')

# %% [markdown]
# ## What this does not show
#
# That parameters are in their domains (a scale that is negative, probabilities that do not add up) depends on numbers.
# `bytes` and the state of a generator have no shape.
