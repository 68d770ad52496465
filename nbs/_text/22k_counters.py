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
from dataclasses import replace
from typing import Any

import numpy as np

from bendml.shape.sizes import Dim, substitute
from bendml.shape.facts import assume, claim
from bendml.shape.trace import current, holds, refuse, user_frame
from bendml.shape.symbols import OPS, Array, Size, as_dim, number, size_value
from bendml.shape.ranges import unknown
from bendml.shape.states import _forget_in, _names, _plain, _shifted, _state, _variables, fingerprint


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
# bound, which is dropped step by step if a turn does not keep it. Of a tuple, `best = j, error`, each part is a counter of its own.

# %%
#| export
class Counters:
    "The variables of a function that count the turns of a loop, or something in them."
    def __init__(self, frame: types.FrameType, names: tuple[str, ...] = ()):
        self.line = (frame if '__bendml__' in frame.f_globals else user_frame() or frame).f_lineno
        self.frame, self.least, self.floats, self.tuples = frame, {}, {}, {}
        for name in names:
            value = frame.f_locals.get(name)
            if type(value) in (int, Size): self.widen(name, [('int', as_dim(value))])
            elif isinstance(value, float): self.widen(name, [('float', '')])
        self.renew()

    def widen(self, name: str, marks: list[tuple]) -> bool:
        "From now on the variable is any number like those that these fingerprints tell of; False if they are no numbers."
        kind = _kind(marks)
        if kind == 'float': self.floats[name] = np.float64
        elif type(kind) is tuple: self.least[name], = kind
        else: return self._widen_parts(name, marks)
        return True

    def _widen_parts(self, name: str, marks: list[tuple]) -> bool:
        "The same for a tuple, where what all have in common stays."
        if not all(m and m[0] == 'tuple' for m in marks) or len({len(m[1]) for m in marks}) > 1: return False
        parts = list(zip(*(m[1] for m in marks)))
        kinds = self.tuples.get(name, [None]*len(parts))
        kinds = [kind if p.count(p[0]) == len(p) or any(m[0] == 'counter' for m in p) else _kind(p) or 'no number' for kind, p in zip(kinds, parts)]
        if 'no number' in kinds: return False
        self.tuples[name] = kinds
        return True

    def renew(self) -> None:
        "Before a turn: each counter is any number that keeps its bound."
        for name, least in self.least.items(): put(self.frame, name, self._any(name, name, least))
        for name, dtype in self.floats.items(): put(self.frame, name, number(dtype))
        for name, kinds in self.tuples.items():
            values = enumerate(zip(self.frame.f_locals[name], kinds))
            put(self.frame, name, tuple(v if kind is None else number() if kind == 'float' else self._any(name, f'{name}[{i}]', *kind) for i, (v, kind) in values))

    def _any(self, name: str, what: str, least: int | None) -> Any:
        bound = 'any whole number' if least is None else f'at least {least}, and not known otherwise'
        return size_value(unknown(name, least, f'what {what} is before a turn of the loop in line {self.line}: {bound}', 'counter').size)

    def settled(self, state: dict) -> dict:
        "The state after a turn, where a counter that kept its bound counts as unchanged; another one gets a lower bound."
        for name, least in list(self.least.items()):
            mark = state.get(name)
            if not mark or mark[0] != 'int': del self.least[name]; continue  # no number any more
            self.least[name] = least = _kept(least, mark[1])
            state[name] = 'counter', least
        for name in list(self.floats):
            if _float(state.get(name)): state[name] = 'counter', 'float'
            else: del self.floats[name]
        for name, kinds in list(self.tuples.items()):
            mark = state.get(name)
            if not mark or mark[0] != 'tuple' or len(mark[1]) != len(kinds): del self.tuples[name]; continue
            for i, (m, kind) in enumerate(zip(mark[1], kinds)):
                if type(kind) is tuple: kinds[i] = (_kept(*kind, m[1]),) if m[0] == 'int' else None
                elif kind and not _float(m): kinds[i] = None
            state[name] = 'tuple', tuple(m if kind is None else ('counter', kind) for m, kind in zip(mark[1], kinds))
        return state


# %%
#| export
def _kind(marks: Any) -> Any:
    "What numbers these fingerprints tell of: 'float', or whole ones, `(low,)`, with their lower bound; None if they are no numbers."
    if all(map(_float, marks)): return 'float'
    if not all(m and m[0] == 'int' for m in marks): return None
    ends = [m[1] for m in marks]
    low = min(e.const for e in ends) if all(e.const is not None for e in ends) else 0
    return (low if all(holds(claim(e, '>=', low)).holds for e in ends) else None),

def _kept(least: int | None, end: Dim) -> int | None:
    "The bound if a number keeps it; else a lower one, or none."
    if least is None or holds(claim(end, '>=', least)).holds: return least
    return 0 if least > 0 and holds(claim(end, '>=', 0)).holds else None


# %%
#| export
def _float(mark: tuple | None) -> bool:
    "Is it the fingerprint of a float, known or not?"
    return bool(mark) and (mark[0] == 'float' or mark[0] == 'array' and mark[1] == () and mark[2] == 'float64')


# %% [markdown]
# ## All that a loop may change
#
# What is compared from turn to turn are the function's variables and what they hold. Counters are left out: they are not
# known, in every turn anew. A range that grows (a counter in an array) is forgotten, and one more turn is
# traced without it: this is what abstract interpretation calls widening.

# %%
#| export
class Watched:
    "The variables that a loop may change: its function's and, if that is a generator, those of the loop that it feeds."
    def __init__(self, frame: types.FrameType, dead: tuple[str, ...], counted: tuple[str, ...]):
        self.parts, fed = [(frame, dead, Counters(frame, counted))], current().state.get('fed', {})
        while outer := fed.get(id(self.parts[-1][0])): self.parts.append(outer)
        self.line, self.held = self.parts[-1][2].line, [[] for _ in self.parts]

    def state(self) -> dict:
        own, *outer = [counters.settled(_state(frame, dead)) for frame, dead, counters in self.parts]
        return own | {f'{name} of {f.f_code.co_name}': mark for (f, *_), found in zip(self.parts[1:], outer) for name, mark in found.items()}

    def renew(self, hold: bool = True) -> None:
        for own, (frame, dead, counters) in zip(self.held, self.parts):
            if hold: own.append({n: frame.f_locals.get(n) for n in dead})
            counters.renew()

    def kept(self, k: Dim, loose: tuple[str, ...]) -> bool:
        "Is there a value that speaks of the turn `k`, and that a later one may keep?"
        return any(str(k) in _names(fingerprint(frame.f_locals.get(n))) for i, (frame, dead, _) in enumerate(self.parts) for n in (dead if i else loose))

    def from_any_turn(self, k: Dim, count: Dim) -> None:
        "What the last turn did not set comes from any turn before it: its sizes may not speak of the last one."
        for held, (frame, dead, _) in zip(self.held, self.parts):
            for name, value in held[-1].items() if held else ():
                if frame.f_locals.get(name) is not value or str(k) not in _names(fingerprint(value)): continue
                j = unknown('i', None, f'the number of the turn of the loop in line {self.line} that sets {name}').size
                turn = j + next(i for i, h in enumerate(held) if h[name] is value)  # in the turn `k + i` it was set
                current().facts = assume(assume(current().facts, claim(j, '>=', 0)), claim(turn, '<=', count - 1))
                other = lambda size: substitute(size, {str(k): j})
                if type(value) is Array: put(frame, name, Array((replace(a, size=other(a.size)) for a in value.axes), value.dtype))
                elif (dim := as_dim(value)) is not None: put(frame, name, size_value(other(dim)))
                else: refuse(f'{name} may keep its value of an earlier turn of the loop, and that depends on which one', hint='set it in every turn')

    def widened(self, first: dict, second: dict, step: dict[str, Dim]) -> bool:
        "Forget the numbers that a turn has changed; False if it has changed something else."
        for i, (frame, dead, counters) in enumerate(self.parts):
            for name, value in _variables(frame, dead).items():
                key = f'{name} of {frame.f_code.co_name}' if i else name
                a, b = _shifted(first.get(key), step), _shifted(second.get(key), {})
                if a == b or b and b[0] == 'counter': continue
                if type(value) is np.ndarray and a and a[:3] == b[:3]: OPS['begin again'].shape(value)
                if _plain(a) == _plain(b): _forget_in(value)
                elif name not in frame.f_locals or not counters.widen(name, [_shifted(first.get(key), {}), a, b]): return False
        return True


# %%
import sys
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
