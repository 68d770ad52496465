# %%
#| default_exp shape.operators

# %% [markdown]
# # What NumPy and Python ask of an array
# > Protocols, operators, methods and loops lead to the table; what needs a number says so.

# %% [markdown]
# `np.exp(x)` asks `x.__array_ufunc__`, `x + 1` asks `x.__add__`, and `x.sum()` looks for a method. All of them are one call of
# [`perform`](22_symbols.ipynb). This page gives them to the class `Array`, which stood without them until here.

# %%
#| hide
#| export
import dis, sys
from types import FrameType
from typing import Any, Callable, Iterator

import numpy as np

from bendml.shape.sizes import Dim
from bendml.shape.facts import Verdict, claim
from bendml.shape.messages import place_of
from bendml.shape.trace import branch, choose, current, holds, refuse, user_frame
from bendml.shape.opaque import Opaque
from bendml.shape.symbols import METHODS, OWN_LOOP, RULE, Array, Size, entries, perform, size_value
from bendml.shape.ranges import outdated


# %%
#| export
def _protocols(cls: type) -> type:
    "Let NumPy's functions, Python's operators and an array's methods find the table."
    def __array_ufunc__(self, ufunc, how, *args, **kwargs):
        return perform(ufunc, args, kwargs) if how == '__call__' else perform(f'ufunc.{how}', (ufunc, *args), kwargs)
    def __array_function__(self, f, types, args, kwargs): return perform(f, args, kwargs)
    def __array__(self, *_, **__): refuse('the numbers of an array are needed here, and a trace has none',
                                          hint=f'a function that is compiled can have a rule: {RULE}')
    def __getattr__(self, name):
        if name in METHODS: return _Method(self, METHODS[name])
        if hasattr(np.ndarray, name) and name[0] != '_':
            refuse(f'the array method {name!r} has no shape rule', hint=RULE)
        raise AttributeError(f'an array has no {name!r}')
    for method in (__array_ufunc__, __array_function__, __array__, __getattr__): setattr(cls, method.__name__, method)
    for name, f in OPERATORS.items(): setattr(cls, name, f)
    return cls


# %%
#| export
class _Method:
    "A method of a symbolic array, bound to it."
    __slots__ = 'array', 'function'
    def __init__(self, array: Array, function: Any): self.array, self.function = array, function
    def __call__(self, *args, **kwargs): return perform(self.function, (self.array, *args), kwargs, method=True)


# %%
#| export
_OPERANDS = bool | int | float | complex | np.generic | np.ndarray | list | tuple

def _binary(ufunc: np.ufunc, flip: bool = False, reflected: str = ''):
    def method(self, other):
        if other is None: refuse('None meets an array, entry by entry', hint='it may be None: test that first, with `is None`')
        if type(other) not in (Array, Size, Dim) and not isinstance(other, _OPERANDS):
            return NotImplemented if flip else _with_other(self, other, ufunc, reflected)
        return perform(ufunc, (other, self) if flip else (self, other), {})
    return method

def _with_other(x: Array, other: Any, ufunc: np.ufunc, reflected: str) -> Any:
    "An array and something else: NumPy takes the entries one by one, unless the other's class says that it is not to."
    kind, equal = type(other), ufunc in (np.equal, np.not_equal)
    text = kind in (str, bytes) or kind is Opaque and other._class_ in (str, bytes)
    own = kind is Opaque or hasattr(kind, '__array_ufunc__') or getattr(kind, '__array_priority__', 0) > 0 or kind.__module__.startswith('bendml.')
    if not x.axes or own and not text: return NotImplemented
    if equal: return Array(x.axes, bool)
    if text or not hasattr(kind, reflected): return NotImplemented
    refuse(f'NumPy calls {kind.__name__}.{reflected} with each entry, one by one', 'a call with the whole array', 'a call for each entry',
           f'write __array_ufunc__ = None in the class {kind.__name__}')


# %%
#| export
def _in_place(ufunc: np.ufunc):
    def method(self, other):  # NumPy's numbers, unlike its arrays, are not changed in place; an array without axes is
        if not self.axes: outdated(self.dtype.kind)
        return perform(ufunc, (self, other), {'out': self} if self.axes else {})
    return method


# %%
#| export
def _operators() -> dict[str, Callable]:
    names = dict(add=np.add, sub=np.subtract, mul=np.multiply, truediv=np.true_divide, floordiv=np.floor_divide, mod=np.remainder,
                 pow=np.power, matmul=np.matmul, divmod=np.divmod, and_=np.bitwise_and, or_=np.bitwise_or, xor=np.bitwise_xor,
                 lshift=np.left_shift, rshift=np.right_shift)
    found = {}
    for name, ufunc in names.items():
        name = name.rstrip('_')
        found |= {f'__{name}__': _binary(ufunc, reflected=f'__r{name}__'), f'__r{name}__': _binary(ufunc, True), f'__i{name}__': _in_place(ufunc)}
    for name in ('equal', 'not_equal', 'less', 'less_equal', 'greater', 'greater_equal'):
        found[{'equal': '__eq__', 'not_equal': '__ne__', 'less': '__lt__', 'less_equal': '__le__', 'greater': '__gt__',
               'greater_equal': '__ge__'}[name]] = _binary(getattr(np, name))
    for name, ufunc in dict(neg=np.negative, pos=np.positive, abs=np.absolute, invert=np.invert).items():
        found[f'__{name}__'] = lambda self, ufunc=ufunc: perform(ufunc, (self,), {})
    return found


# %%
#| export
OPERATORS = _operators()
_protocols(Array)


# %% [markdown]
# A condition on numbers goes both ways. An array with several entries has no truth value, in NumPy as here.

# %%
#| export
def _truth(self: Array) -> bool:
    one_entry(self, 'the truth value', 'write .any() or .all()')
    if (fixed := current().state.get('fixed', {}).get(id(self))): return _same_way(fixed)
    _, meaning = current().state.get('answers', {}).get(id(self), (self, None))
    r = self.known and self.known.range
    if meaning is None and r and r.low is not None and r.low == r.high: meaning = claim(r.low, '!=', 0)
    return choose() if meaning is None else branch(meaning)


# %%
#| export
def _same_way(answer: list) -> bool:
    "A flag that is a parameter: what is asked twice is answered in the same way."
    if answer[1] is None: answer[1] = choose()
    return answer[1]


# %%
#| export
def one_entry(x: Array, what: str, hint: str = 'reduce it first') -> None:
    "Refuse unless an array surely holds one number."
    verdict = holds(claim(entries(x), '==', 1))
    if not verdict.holds: refuse(f'{what} of an array with {entries(x)} entries', 'a number', x, hint, verdict)

def no_axes(x: Array, what: str, hint: str = 'reduce it first') -> None:
    "Refuse an array with axes where Python needs a number: NumPy makes none of it, even if it holds only one."
    one_entry(x, what, hint)
    if x.axes: refuse(f'{what} of an array with an axis', 'a number', x, 'take the number out: .item()')


# %%
#| export
def _opaque(what: str, hint: str = RULE):
    def method(self, *_): refuse(f'{what} of an array are needed here, and a trace has none' if what.endswith('s') else
                                 f'{what} of an array is needed here, and a trace has none', hint=hint)
    return method


# %%
#| export
for _name in '__float__ __int__ __index__ __complex__'.split(): setattr(Array, _name, _opaque('the value'))
Array.tolist = _opaque('the values', f'an array does as well where a list is looped over or indexed; for anything else, {RULE}')
Array.__bool__ = _truth


# %% [markdown]
# `a, b = x` takes two rows. Whoever means two columns has forgotten a `.T`.

# %%
#| export
def _names_to_fill(frame: FrameType) -> int | None:
    "How many names an unpacking has, where a traced function is at one."
    code, at = frame.f_code.co_code, frame.f_lasti
    return code[at + 1] if '__bendml__' in frame.f_globals and code[at] == dis.opmap['UNPACK_SEQUENCE'] else None

def _not_so_many(x: Array, names: int, verdict: Verdict) -> None:
    "Refuse to unpack so many rows into so many names."
    frame, size, what = user_frame(), x.axes[0].size, 'entries' if x.ndim == 1 else 'rows'
    written = place_of(frame, 0) != place_of(frame)  # not so for the target of a loop
    if x.ndim > 1 and x.axes[1].size == names: hint = ('write {0.T}' if x.ndim == 2 else 'write {0}.swapaxes(0, 1)') if written else 'turn each one: its second axis has that size'
    elif size.const is None: hint = ''
    else: hint = f'write {size} names' + (f', or {{0}}[:{names}]' if size.const > names and written else '')
    refuse(f'{names} names for an array of {size} {what}', f'{names} {what}', f'{size} {what}', hint, verdict, 0)


# %%
#| export
def _rows(self: Array) -> Iterator[Any]:
    "Iterate over the first axis where its length is known: `a, b = pair`."
    if not self.axes: refuse('iteration over a number')
    size, names = self.axes[0].size, _names_to_fill(sys._getframe(1))
    if names is None and size.const is None: refuse(f'something that is not traced goes through an axis of size {size}', hint=OWN_LOOP)
    if names is not None and not (verdict := holds(claim(size, '==', names))).holds: _not_so_many(self, names, verdict)
    return iter([self[i] for i in range(size.const if names is None else names)])


# %%
#| export
def _length(self: Array) -> int:
    if not self.axes: refuse('len() of a number')
    return size_value(self.axes[0].size)


# %%
#| export
Array.__iter__ = _rows
Array.__len__ = lambda self: _length(self)
Array.__contains__ = lambda self, value: choose()

# %%
from bendml.shape.messages import ShapeError
from bendml.shape.symbols import axis
from bendml.shape.trace import Trace, tracing
with tracing(Trace()):
    x = Array([axis(Dim('n')), axis(2)])
    for ask in (lambda: float(x), lambda: x.nosuch, lambda: x.tobytes()):
        try: ask()
        except (ShapeError, AttributeError) as e: print(str(e).split('\n')[0])

# %% [markdown]
# ## What this does not show
#
# What an operator does: its rule is on one of the next pages. Code that is not traced, such as a compiled extension, asks for the numbers,
# and is refused.
