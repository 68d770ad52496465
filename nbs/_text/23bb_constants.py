# %%
#| default_exp shape.constants

# %% [markdown]
# # A constant that is written to
# > `F = np.eye(4)`, and then `F[0, 2] = dt`: from where it was made, it is an array whose numbers are not known.

# %% [markdown]
# An array of numbers that are all known is a real one in a trace: `np.eye(4)` is computed, and `x[:, order]` knows its columns.
# It cannot take a number that is not known. By then it may have other names, and views; so the check begins again, and puts
# a symbolic array of its shape in its place at the call or the operator that made it. Whatever comes from it is symbolic then.

# %%
#| hide
#| export
import sys, weakref
from typing import Any

import numpy as np

from bendml.shape.trace import current, refuse, user_frame
from bendml.shape.symbols import OPS, Op, number
from bendml.shape.elementwise import lift
from bendml.shape.copies import HOOKS


# %% [markdown]
# ## Who else holds it?
#
# That is right for an array that nobody else holds: what was just made, and not a global that a helper returns. Python counts
# the references to a value. For a view, the array behind it may have no other either.

# %%
#| export
def _references(value: Any) -> int: return sys.getrefcount(value)

_ALONE = _references(np.zeros(1))  # that of a value that only the function holds to which it is given


# %%
#| export
def made(value: Any) -> Any:
    "What a call or an operator has just made; a symbolic array for a real one that is written to later."
    if type(value) is not np.ndarray or value.dtype.kind not in 'biufc' or sys.getrefcount(value) > _ALONE: return value
    owner = value if value.base is None else value.base
    if owner is not value and sys.getrefcount(owner) > _ALONE + 1 or not _owns(owner): return value
    trace, frame = current(), user_frame()
    place = frame and (frame.f_code, frame.f_lasti, 'made')
    if place in trace.some: return lift(value) if value.ndim else number(value.dtype)  # `w += 1` gives such a one another value under all its names
    trace.state.setdefault('made', {})[id(owner)] = weakref.ref(owner), place
    return value

def _owns(a: Any) -> bool: return type(a) is np.ndarray and a.base is None and a.flags.owndata


# %% [markdown]
# ## Beginning again
#
# The places are noted where all paths see them, as for the [lists](23_loops.ipynb) that only some turns append to.

# %%
#| export
_INTO = 'a number that is not known is written into an array that is'

def begin_again(a: np.ndarray) -> None:
    "Give up this path, so that the array is symbolic on the next ones; nothing where it was not made in this trace."
    owner, trace = a if a.base is None else a.base, current()
    found, place = trace.state.get('made', {}).get(id(owner), (lambda: None, None))
    if found() is not owner: return
    trace.some.add(place)
    trace.state['tentative'] = True
    refuse(_INTO)

def written_to(a: Any) -> None:
    "Refuse an unknown number in a real array, if it cannot be made symbolic."
    if type(a) is np.ndarray: begin_again(a)
    refuse(_INTO if isinstance(a, np.ndarray) else f'out= is a {type(a).__name__}', hint='write into a copy that has a name of its own: k = K.copy()')


# %%
#| export
OPS |= {'written to': Op('written to', written_to), 'begin again': Op('begin again', begin_again)}  # for the pages before
HOOKS['__bendml_made__'] = made

# %%
from bendml.shape.trace import Trace, tracing
from bendml.shape.messages import ShapeError
K = np.eye(2)
with tracing(Trace()) as trace:
    F = made(np.eye(2))
    made(K)
    for a in (F.T, K):
        try: written_to(a)
        except ShapeError as e: print(e, end='\n\n')

# %% [markdown]
# ## What this does not show
#
# A global, a default and what else a function finds are never replaced: others see what is written into them.
