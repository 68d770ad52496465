# %%
#| default_exp kernel.contracts

# %% [markdown]
# # Contracts
# > What a loop function says about its arguments: how long each buffer is, and what may be relied upon.

# %% [markdown]
# numba turns a Python loop into machine code, and machine code does not look where it writes. `a[i]` with `i` past the end
# reads or destroys whatever lies there: no error, a wrong number, or a crash far away. To prove that this cannot happen, for
# every size, one has to know how long `a` is. Python's annotations are a good place to say so:
#
# ```python
# @kernel
# def scale(n: Size, x: Buf["n", f32], a: f32):
#     for i in range(n): x[i] = a*x[i]
# ```
#
# This page defines the words: `Size`, `Buf`, and the contracts `requires`, `ensures`, `invariant` and `decreases`.

# %%
#| hide
#| export
import ast, inspect, sys, types
from dataclasses import dataclass
from typing import Callable, NamedTuple, NewType

import numpy as np

from bendml.laws.datatypes import LawError
from bendml.laws.read import look_up, read_source


# %% [markdown]
# ## When a kernel is refused

# %%
#| export
class KernelError(Exception):
    "A kernel that is not proved, or a call that breaks its contract: where, expected, observed, the smallest sizes, a hint."
    def __init__(self, where: str, problem: str, expected: str, observed: str, more: str = '', hint: str = ''):
        lines = [f'{where}: {problem}', f'- expected : {expected}', f'- observed : {observed}', *more.splitlines()]
        super().__init__('\n'.join(lines + [f'- hint     : {hint}']*bool(hint)))
        self.problem, self.expected, self.observed, self.hint = problem, expected, observed, hint


# %% [markdown]
# ## Types
#
# The types of cells are NumPy's, by short names. `Size` is an `int` that is not negative.

# %%
#| export
f32, f64 = np.float32, np.float64
i8, i16, i32, i64 = np.int8, np.int16, np.int32, np.int64
u8, u16 = np.uint8, np.uint16
Size = NewType('Size', int)

FLOATS, INTS = (f32, f64), (i8, i16, i32, i64, u8, u16)

def int_range(dtype: type) -> tuple[int, int]:
    "The smallest and the greatest number of an integer type."
    return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)


# %% [markdown]
# A buffer is a flat array: one axis, contiguous. `Buf["n*k", f32]` has exactly `n*k` cells. `Buf[f32]` has any number; its
# contract may speak of `len(x)`. A buffer of integers that are used as indices says between what they lie, with the buffer's
# own name for any of its cells: `Buf["n", i64, "0 <= ids < V"]`.

# %%
#| export
class Buf:
    "A flat array: `Buf[length, type]`, `Buf[type]`, or `Buf[length, type, contract of each cell]`."
    def __init__(self, length: str | None, dtype: type, element: str | None = None): self.length, self.dtype, self.element = length, dtype, element

    def __class_getitem__(cls, items) -> 'Buf':
        items = items if isinstance(items, tuple) else (items,)
        match items:
            case [type() as dtype]: made = cls(None, dtype)
            case [str() | int() as length, type() as dtype]: made = cls(str(length), dtype)
            case [str() | int() as length, type() as dtype, str() as element]: made = cls(str(length), dtype, element)
            case _: raise KernelError(f'Buf{list(items)}', 'not a buffer', 'Buf["n*k", f32], Buf[f32] or Buf["n", i64, "0 <= ids < V"]', repr(items))
        if made.dtype not in FLOATS + INTS: raise KernelError(repr(made), 'not a type for cells', ', '.join(t.__name__ for t in FLOATS + INTS), made.dtype.__name__)
        if made.element and made.dtype in FLOATS: raise KernelError(repr(made), 'a contract for cells that are not integers', 'a buffer of integers', made.dtype.__name__)
        return made

    def __repr__(self):
        parts = [repr(self.length)]*(self.length is not None) + [self.dtype.__name__] + [repr(self.element)]*(self.element is not None)
        return f"Buf[{', '.join(parts)}]"


# %%
Buf["n", i64, "0 <= ids < V"]

# %%
try: Buf["n", complex]
except KernelError as e: print(e)


# %% [markdown]
# ## Contracts
#
# They are statements at the top of a function, or of a loop's body. In the plain Python function they are checked while it
# runs. The compiled one does not have them: what was proved need not be looked at again.

# %%
#| export
def _hold(name: str) -> Callable:
    def contract(*conditions: bool) -> None:
        for n, c in enumerate(conditions, 1):
            if not c: raise AssertionError(f'{name}: condition {n} does not hold')
    contract.__name__ = contract.__qualname__ = name
    return contract

requires, ensures, invariant = map(_hold, ('requires', 'ensures', 'invariant'))
requires.__doc__ = "What a caller has to see to; checked at every call, in constant time."
ensures.__doc__ = "What a kernel promises of its buffers when it is done."
invariant.__doc__ = "At the top of a loop's body: what holds whenever the loop gets there, and when it is done."

def decreases(measure: int) -> None:
    "At the top of a `while` loop's body: a number that shrinks with every round, and is never negative."


# %% [markdown]
# Two promises about writing, for `ensures`: that every cell of a buffer is written, and that none is written twice.

# %%
#| export
def filled(buffer: np.ndarray) -> bool:
    "In `ensures`: every cell of the buffer is written."
    return True

def once(buffer: np.ndarray) -> bool:
    "In `ensures`: no cell of the buffer is written twice."
    return True

CONTRACTS = (requires, ensures, invariant, decreases)


# %% [markdown]
# ## Parallel loops
#
# Like numba's `prange`, which may be used instead; this one does not load numba before it is needed.

# %%
#| export
def prange(*bounds: int) -> range:
    "In a kernel: a range whose iterations run at the same time. In plain Python: a range."
    return range(*bounds)

def is_prange(meaning: object) -> bool:
    "Is this a parallel range, ours or numba's?"
    numba = sys.modules.get('numba')
    return meaning is prange or numba is not None and meaning is numba.prange

def one_of(thing: object, *others: object) -> bool:
    "Is it one of these very things? What only says that it equals one is not."
    return any(thing is o for o in others)


# %% [markdown]
# ## Words
#
# A function that numba knows as one machine instruction, such as a load of eight cells, is a *word*. Its attribute
# `__word__` says what it gives ('f32', 'vector', 'tile' or nothing) and what memory it touches.

# %%
#| export
class Touches(NamedTuple):
    "Memory that a word touches: in each of `rows` rows, `cells` cells of argument `array` from argument `index` on."
    array: int
    index: int
    cells: int
    write: bool = False
    rows: int = 1
    stride: int | None = None   # the argument that tells how far apart the rows are

def word(gives: str | None = None, *touches: Touches) -> Callable:
    "Declare what a word gives and what it touches."
    def mark(fn: Callable) -> Callable:
        fn.__word__ = (gives, touches)
        return fn
    return mark


# %% [markdown]
# ## A kernel's source
#
# It is read once, when the kernel is defined, together with what every global name in it means then. The proof is about this
# tree, and this tree is what gets compiled, with these meanings: nothing that happens to the file or to the module later can
# come between the two.

# %%
#| export
class Param(NamedTuple):
    "A parameter: an integer, a float, or a buffer."
    name: str
    type: object                      # int, Size, bool, f32, f64, or a Buf
    length: ast.expr | None = None    # of a buffer
    element: ast.expr | None = None   # of a buffer of integers: what holds of each cell

@dataclass(frozen=True)
class Source:
    "A kernel as it was read."
    name: str
    file: str                         # as it is shown
    path: str                         # as numba needs it
    node: ast.FunctionDef
    params: tuple[Param, ...]
    meanings: dict                    # dotted name -> object

    def where(self, node: ast.AST | None = None) -> str: return f'{self.file}:{getattr(node, "lineno", self.node.lineno)} in {self.name}'


# %%
#| export
def dotted(node: ast.expr) -> str:
    "`np.zeros` as text; '' for what is no name."
    if isinstance(node, ast.Name): return node.id
    base = dotted(node.value) if isinstance(node, ast.Attribute) else ''
    return f'{base}.{node.attr}' if base else ''

def _meanings(fn: types.FunctionType, node: ast.FunctionDef) -> dict:
    "What the global names in a function mean; only those that mean something."
    local = {a.arg for a in node.args.args} | {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    names = {dotted(n) for s in node.body for n in ast.walk(s) if isinstance(n, (ast.Name, ast.Attribute))} - {''}
    found = {n: look_up(fn, n) for n in sorted(names) if n.split('.')[0] not in local}
    nothing = look_up(fn, 'no such name.')
    return {n: m for n, m in found.items() if m is not nothing}

def _param(name: str, annotation: object, where: str) -> Param:
    if annotation in (int, Size, bool, f32, f64): return Param(name, annotation)
    if not isinstance(annotation, Buf):
        raise KernelError(where, f'{name} has no type that a kernel knows', 'int, Size, bool, f32, f64 or a Buf', getattr(annotation, '__name__', repr(annotation)))
    parse = lambda text: None if text is None else ast.parse(text.strip(), mode='eval').body
    try: return Param(name, annotation, parse(annotation.length), parse(annotation.element))
    except SyntaxError as e: raise KernelError(where, f'the type of {name} cannot be read', 'Python expressions', str(e.text).strip()) from None

def read_kernel(fn: types.FunctionType) -> Source:
    "Read a kernel's source; `KernelError` for parameters that are not understood."
    try: node, file = read_source(fn)
    except LawError as e:
        said = dict(line.lstrip('- ').replace(' : ', ': ', 1).split(': ', 1) for line in str(e).splitlines()[1:])
        raise KernelError(str(e).split(': ')[0], e.problem, said.get('expected', ''), said.get('observed', ''), hint=said.get('hint', '')) from None
    if 'ipython-input' in file or '/ipykernel_' in fn.__code__.co_filename: file = 'cell'
    where, a = f'{file}:{node.lineno} in {fn.__name__}', node.args
    if len(node.decorator_list) > 1: raise KernelError(where, 'more than one decorator', 'one', ', '.join(map(ast.unparse, node.decorator_list)), hint='another decorator could change what runs')
    if a.defaults or a.kw_defaults or a.vararg or a.kwarg or a.kwonlyargs or a.posonlyargs:
        raise KernelError(where, 'not understood', 'parameters without defaults and stars', ast.unparse(a))
    if fn.__code__.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE): raise KernelError(where, 'not understood', 'a plain function', 'a generator')
    if not all(n.isascii() for n in (fn.__name__, *fn.__code__.co_varnames)): raise KernelError(where, 'not understood', 'names in ASCII', fn.__name__)
    given = inspect.get_annotations(fn, eval_str=True)
    params = tuple(_param(p.arg, given.get(p.arg), where) for p in a.args)
    return Source(fn.__name__, file, fn.__code__.co_filename, node, params, _meanings(fn, node))


# %%
def scale(n: Size, x: Buf["n", f32], a: f32):
    for i in range(n): x[i] = a*x[i]

read_kernel(scale).params


# %% [markdown]
# A parameter without a type is refused:

# %%
def unknown(n, x: Buf["n", f32]): x[0] = 1

try: read_kernel(unknown)
except KernelError as e: print(e)

# %% [markdown]
# ## What this does not show
#
# - That a word touches no more than it declares. Whoever writes a word vouches for it, and tests it.
# - Arrays with several axes. A kernel's buffers are flat; `a.reshape(-1)` of a contiguous array costs nothing.
