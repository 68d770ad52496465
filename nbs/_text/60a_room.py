# %%
#| default_exp nn.room

# %% [markdown]
# # Room for results
# > Large arrays that nobody holds any more are used again, so that a training step asks the system for no memory.

# %% [markdown]
# A fresh array of 12 MB costs two milliseconds before a number is computed: the system hands out memory in pages, clears each,
# and does so when it is first touched. A training step makes a hundred such arrays, keeps them until the way back, and lets
# them go; and the next step makes them again. So the layers take large results from here. An array is free if only this page
# still knows it. CPython counts who knows an object, views of it included, so nothing has to be given back.

# %%
#| hide
#| export
import math, sys, threading

import numpy as np
from numpy import float32

# %%
#| export
LARGE = 1 << 18   # numbers, 1 MB; what is smaller is quick to get
_kept: dict[int, list[np.ndarray]] = {}   # by size
_lock = threading.Lock()

def _holders(kept: list[np.ndarray]) -> int:
    "How many know the first array of a list, when one looks at it in a loop."
    for a in kept: return sys.getrefcount(a)

_FREE = _holders([np.empty(0)])   # that of an array that only the list holds

def room(
    *shape: int,
) -> np.ndarray:   # float32, C order
    "An array of any content, that nobody else holds."
    size = math.prod(shape)
    if size < LARGE: return np.empty(shape, float32)
    with _lock:
        for a in (kept := _kept.setdefault(size, [])):
            if sys.getrefcount(a) == _FREE: return a.reshape(shape)
        kept.append(np.empty(size, float32))
        return kept[-1].reshape(shape)

def forget() -> int:
    "Let go of all arrays that are kept; how many bytes they have. Those in use stay as they are."
    with _lock:
        total = sum(a.nbytes for kept in _kept.values() for a in kept)
        _kept.clear()
    return total


# %% [markdown]
# While `a`, or any view of it, is held, its memory is not given away; then it is.

# %%
forget()
a = room(1000, 500)
part, where = a[3:5, ::2], a.ctypes.data
del a
assert room(500, 1000).ctypes.data != where
del part
assert room(500, 1000).ctypes.data == where and forget() == 2*1000*500*4

# %% [markdown]
# ## What this does not show
#
# How much is kept: as much as was in use at once, for each size. After training, `forget()` gives it back.
