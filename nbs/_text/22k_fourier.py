# %%
#| default_exp shape.fourier

# %% [markdown]
# # Fourier transforms
# > Of n numbers come n frequencies, or n//2 + 1 of them if the numbers are real.

# %% [markdown]
# The transform of real numbers is symmetric, so `rfft` keeps half of it: `n//2 + 1` frequencies. On the way back that is
# ambiguous, 4 and 5 numbers both have 3 frequencies; `irfft` takes the even one unless it is told.

# %%
#| hide
#| export
from typing import Any, Callable

import numpy as np

from bendml.shape.sizes import Dim
from bendml.shape.facts import claim
from bendml.shape.trace import holds, refuse
from bendml.shape.symbols import Array, as_dim, axis, rule
from bendml.shape.elementwise import dtypes, lift, filled
from bendml.shape.reductions import axis_number, axis_numbers
from bendml.shape.moves import shape_of


# %% [markdown]
# ## Along one axis
#
# A transform takes a number of points, all that are there unless `n` says how many (the rest is cut off, or zeros), and at
# least one.

# %%
#| export
def _points(size: Dim, operand: int = 0) -> Dim:
    "A number of points; refused if it can be 0."
    if not (verdict := holds(claim(size, '>=', 1))).holds:
        refuse(f'a transform of {size} points', 'at least 1 point', size, 'say how many there are: n=...', verdict, operand)
    return size


# %%
#| export
WHOLE = lambda n: (n, n)                    # entries of the axis -> (points taken, entries made)
HALVED = lambda n: (n, n//2 + 1)            # real numbers
DOUBLED = lambda n: (2*(n - 1), 2*(n - 1))  # back to real numbers


# %%
#| export
def _along(x: Array, i: int, n: Any, how: Callable, kind: np.dtype) -> Array:
    "A transform along axis i, with n points if n is not None."
    if n is None: taken, made = how(x.axes[i].size)
    else: taken = made = as_dim(n)
    if taken is None: refuse(f'{n!r} points', 'a whole number', n, operand=1)
    if n is not None and how is HALVED: made = taken//2 + 1
    _points(taken)
    return Array((*x.axes[:i], axis(made), *x.axes[i + 1:]), kind)


# %%
#| export
def _scaled(norm: Any) -> None:
    if norm not in (None, 'backward', 'ortho', 'forward'): refuse(f'norm={norm!r}', "'backward', 'ortho' or 'forward'", norm)

def _kind(how: Callable, x: Array, real: bool = False) -> np.dtype:
    return dtypes(np.fft.irfft, [x], n=2)[0] if how is DOUBLED else dtypes(np.fft.rfft if real else np.fft.fft, [x])[0]


# %%
#| export
def _one(name: str, how: Callable) -> None:
    real = name == 'rfft'  # ihfft, of real numbers too, drops an imaginary part
    @rule(getattr(np.fft, name), f'scipy.fft.{name}')
    def transform(a, n=None, axis=-1, norm=None, out=None, **_):
        x = lift(a)
        _scaled(norm)
        return filled(_along(x, axis_number(axis, x.ndim), n, how, _kind(how, x, real)), out)


# %%
#| export
for _names, _how in (('fft ifft', WHOLE), ('rfft ihfft', HALVED), ('irfft hfft', DOUBLED)):
    for _name in _names.split(): _one(_name, _how)


# %% [markdown]
# ## Along several
#
# Each axis on its own; of real numbers, the last one that is named is halved. `s` has a number of points for each.

# %%
#| export
def _several(name: str, how: Callable, default: tuple | None) -> None:
    @rule(getattr(np.fft, name), f'scipy.fft.{name}')
    def transform(a, s=None, axes=default, norm=None, out=None, **_):
        x = lift(a)
        _scaled(norm)
        if axes is None and s is not None: axes = tuple(range(-len(s), 0))
        where = axis_numbers(axes, x.ndim)
        if not where and how is not WHOLE: refuse('no axis to transform', 'at least one axis', x, operand=0)
        points = [None]*len(where) if s is None else [x.axes[i].size if n is None or as_dim(n) == -1 else n for i, n in zip(where, s)]
        if s is not None and len(s) != len(where): refuse('a number of points for each axis', f'{len(where)} numbers', f'{len(s)} numbers', operand=1)
        kind = _kind(how, x, name.startswith('rfft'))
        for i, n in zip(where[:-1], points): x = _along(x, i, n, WHOLE, kind)
        return filled(_along(x, where[-1], points[-1], how, kind) if where else Array(x.axes, kind), out)


# %%
#| export
for _name, _how in (('fft', WHOLE), ('ifft', WHOLE), ('rfft', HALVED), ('irfft', DOUBLED)):
    _several(f'{_name}2', _how, (-2, -1))
    _several(f'{_name}n', _how, None)


# %% [markdown]
# ## Around it
#
# The frequencies, the order that puts 0 in the middle, and a window before the transform.

# %%
#| export
@rule(np.fft.fftfreq, 'scipy.fft.fftfreq')
def fftfreq(n, d=1.0, **_):
    if lift(d).axes: refuse('one distance is needed', 'a number', lift(d), operand=1)
    if as_dim(n) is None: refuse(f'{n!r} points', 'a whole number', n, operand=0)
    return Array([axis(_points(as_dim(n)))])

@rule(np.fft.rfftfreq, 'scipy.fft.rfftfreq')
def rfftfreq(n, d=1.0, **_): return Array([axis(fftfreq(n, d).axes[0].size//2 + 1)])


# %%
#| export
@rule(np.fft.fftshift, np.fft.ifftshift, 'scipy.fft.fftshift', 'scipy.fft.ifftshift')
def fftshift(x, axes=None):
    x = lift(x)
    axis_numbers(axes, x.ndim)
    return Array(x.axes, x.dtype)

@rule(np.kaiser)
def kaiser(M, beta):
    if lift(beta).axes: refuse('one beta is needed', 'a number', lift(beta), operand=1)
    return Array(map(axis, shape_of(M)))


# %% [markdown]
# ## Phases
#
# The angles of a spectrum jump by a turn; `unwrap` undoes that.

# %%
#| export
@rule(np.unwrap)
def unwrap(p, discont=None, axis=-1, *, period=2*np.pi):
    x = lift(p)
    axis_number(axis, x.ndim)
    return Array(x.axes, dtypes(np.unwrap, [x])[0], x.lost)


# %%
from bendml.shape.trace import Trace, tracing
from bendml.shape.messages import ShapeError
c, n, k = map(Dim, 'cnk')
with tracing(Trace()):
    x = Array([axis(c), axis(n)])
    print(np.fft.rfft(x), np.fft.irfft(np.fft.rfft(x), n), np.fft.fftn(x, axes=0), np.fft.rfft2(x, s=(8, 8)))
    print(np.fft.irfft(np.fft.rfft(Array([axis(5)]))))
    try: np.fft.irfft(np.fft.rfft(x))
    except ShapeError as e: print(e)

# %% [markdown]
# ## What this does not show
#
# A spectrum is an axis of its own: that its frequencies belong to the times that it was made of, nothing checks.
