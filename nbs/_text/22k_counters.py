# %%
#| default_exp shape.counters

# %% [markdown]
# # Counters
# > A number that each turn of a loop changes: known from below, and otherwise not at all.

# %% [markdown]
# `steps += 1` in a loop that runs an unknown number of times has another value in each turn. What can be said of it is what
# all turns leave as it is: it is a whole number, and at least what it was at the start. So when the loop begins, the number is
# replaced by one that is not known, and each turn is checked to keep the bound. This is what abstract interpretation calls
# widening. Where such a number then steers a shape, as in `x[:steps]`, what its bound does not decide is refused.

# %%
#| hide
#| export
import types
from typing import Any

import numpy as np

from bendml.shape.facts import claim
from bendml.shape.trace import holds
from bendml.shape.symbols import Size, as_dim, number, size_value
from bendml.shape.ranges import unknown


# %% [markdown]
# ## A variable of the traced function is set from outside
#
# Python keeps a function's variables in its frame. Since 3.13 they can be written there; before, Python has to be told that
# they were.

# %%
#| export
def put(frame: types.FrameType, name: str, value: Any) -> None:
    "Give a variable of a running function another value."
    import ctypes
    frame.f_locals[name] = value
    ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), 0)


# %% [markdown]
# ## The numbers that a loop counts
#
# Which variables are counted the copy knows: those that a turn computes from themselves by arithmetic, `n += 1` or
# `n = n + 1`. Those that hold a number when the loop begins are widened. A float loses its value; a whole number keeps a
# bound, which is dropped step by step if a turn does not keep it.

# %%
#| export
class Counters:
    "The variables of a function that count the turns of a loop, or something in them."
    def __init__(self, frame: types.FrameType, names: tuple[str, ...] = ()):
        self.frame, self.line, self.least, self.floats = frame, frame.f_lineno, {}, {}
        for name in names:
            value = frame.f_locals.get(name)
            if type(value) in (int, Size): self.widen(name, [('int', as_dim(value))])
            elif isinstance(value, float): self.widen(name, [('float', '')])
        self.renew()

    def widen(self, name: str, marks: list[tuple]) -> bool:
        "From now on the variable is any number like those that these fingerprints tell of; False if they are no numbers."
        if all(m and m[0] == 'int' for m in marks):
            ends = [m[1] for m in marks]
            low = min(e.const for e in ends) if all(e.const is not None for e in ends) else 0
            self.least[name] = low if all(holds(claim(e, '>=', low)).holds for e in ends) else None
        elif all(map(_float, marks)): self.floats[name] = np.float64
        else: return False
        return True

    def renew(self) -> None:
        "Before a turn: each counter is any number that keeps its bound."
        for name, least in self.least.items():
            bound = 'any whole number' if least is None else f'at least {least}, and not known otherwise'
            new = unknown(name, least, f'what {name} is before a turn of the loop in line {self.line}: {bound}', 'counter')
            put(self.frame, name, size_value(new.size))
        for name, dtype in self.floats.items(): put(self.frame, name, number(dtype))

    def settled(self, state: dict) -> dict:
        "The state after a turn, where a counter that kept its bound counts as unchanged; another one gets a lower bound."
        for name, least in list(self.least.items()):
            mark = state.get(name)
            if not mark or mark[0] != 'int': del self.least[name]; continue  # no number any more
            if least is not None and not holds(claim(mark[1], '>=', least)).holds:
                self.least[name] = least = 0 if least > 0 and holds(claim(mark[1], '>=', 0)).holds else None
            state[name] = 'counter', least
        for name in list(self.floats):
            if _float(state.get(name)): state[name] = 'counter', 'float'
            else: del self.floats[name]
        return state


# %%
#| export
def _float(mark: tuple | None) -> bool:
    "Is it the fingerprint of a float, known or not?"
    return bool(mark) and (mark[0] == 'float' or mark[0] == 'array' and mark[1] == () and mark[2] == 'float64')


# %%
import sys
from bendml.shape.sizes import Dim
from bendml.shape.trace import Trace, tracing
def count():
    n = 3
    counters = Counters(sys._getframe(), ('n',))
    n = n + 1
    return n, counters.settled({'n': ('int', as_dim(n))})

with tracing(Trace()): print(*count())

# %% [markdown]
# ## What this does not show
#
# A counter in an attribute or in a dictionary is not widened, and refused. Nor is it seen that a counter goes with the turns
# of the loop (`out[n] = row` after each `n += 1`): `enumerate` says that.
