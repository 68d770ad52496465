# %%
#| default_exp shape.symbols

# %% [markdown]
# # Arrays without numbers
# > An array that knows its axes and nothing else, and a size that is not known yet: ordinary code runs on both.

# %% [markdown]
# To check a function we [run it](21c_trace.ipynb) on arrays that have a shape and no numbers. NumPy lets an object stand in for an
# array: `np.exp(x)` asks `x` what to do (`__array_ufunc__`, `__array_function__`), and so do operators and methods. What
# each operation does to shapes is written once, in a table; this page defines the objects and the table, the next pages
# fill it.

# %%
#| hide
#| export
from dataclasses import dataclass
from functools import lru_cache
from inspect import Signature, signature
from typing import Any, Callable, Iterable, NamedTuple

import numpy as np

from bendml.shape.sizes import Dim, DimError
from bendml.shape.facts import claim
from bendml.shape.messages import ShapeError
from bendml.shape.annotations import spelled
from bendml.shape.trace import branch, choose, current, holds, refuse
from bendml.shape.opaque import Opaque, told

# %% [markdown]
# ## Sizes at run time
#
# `x.shape[0]` is a `Size`: it adds and multiplies like an int, and comparing it asks the facts. What needs its value, such
# as an index into a Python list, is refused.

# %%
#| export
RULE = 'put this into a function f of its own, and write @rule(f) above one with its parameters that returns np.zeros(...) of the right shape'
OWN_LOOP = 'write what it does as a for loop of your own, or as a list, [... for v in ...]'
AS_KEY = 'an array, or one of its numbers, is used as a key of a dictionary or set'
KEYS = 'append to a list, and np.stack it after the loop; or fill an array with a row for each: for i, c in enumerate(np.unique(y)): out[i] = ...; np.unique(y, return_counts=True) counts'


# %%
#| export
def size_value(dim: Dim | int) -> 'Size | int':
    "A size as the program sees it: an int where it is known."
    facts, dim = current().facts, Dim(dim)
    return Size(facts.shown(dim)) if (number := facts.normal(dim).const) is None else number


# %%
#| export
def as_dim(value: Any) -> Dim | None:
    "The Dim of an int or Size; None for anything else."
    if type(value) is Size: return value.dim
    if isinstance(value, int | np.integer) and not isinstance(value, bool): return Dim(int(value))
    return value if isinstance(value, Dim) else None


# %%
#| export
def _arithmetic(op: Callable[[Dim, Dim], Dim]):
    def method(self: 'Size', other: Any):
        if (dim := as_dim(other)) is not None: return size_value(op(self.dim, dim))
        return number(type(other)) if isinstance(other, float | complex | np.inexact) else NotImplemented
    return method


# %%
#| export
def _division(op: Callable[[Dim, Dim], Dim], flip: bool = False):
    def method(self: 'Size', other: Any):
        dim = as_dim(other)
        if dim is None: return number(float) if isinstance(other, float | np.floating) else NotImplemented
        num, den = (dim, self.dim) if flip else (self.dim, dim)
        if not (verdict := holds(claim(den, '>=', 1))).holds:
            refuse(f'division by {den}, which need not be at least 1', verdict=verdict)
        return size_value(op(num, den))
    return method


# %%
#| export
def _comparison(op: str):
    def method(self: 'Size', other: Any):
        if (dim := as_dim(other)) is not None: return branch(claim(self.dim, op, dim))
        if isinstance(other, float) and op != '==' and op != '!=': return choose()
        return NotImplemented
    return method


# %%
#| export
class Size:
    "A size inside a trace."
    __slots__ = ('dim',)
    def __init__(self, dim: Dim): self.dim = dim
    __class__ = property(lambda self: int)  # isinstance(n, int) is true, as it will be when the program runs
    __add__ = __radd__ = _arithmetic(lambda a, b: a + b)
    __mul__ = __rmul__ = _arithmetic(lambda a, b: a*b)
    __sub__, __rsub__ = _arithmetic(lambda a, b: a - b), _arithmetic(lambda a, b: b - a)
    __floordiv__, __rfloordiv__ = _division(lambda a, b: a//b), _division(lambda a, b: a//b, True)
    __mod__, __rmod__ = _division(lambda a, b: a % b), _division(lambda a, b: a % b, True)
    __eq__, __ne__, __lt__, __le__, __gt__, __ge__ = map(_comparison, ('==', '!=', '<', '<=', '>', '>='))
    def __divmod__(self, other): return self//other, self % other
    def __rdivmod__(self, other): return other//self, other % self
    def __truediv__(self, other): return number(float) if as_dim(other) is not None or isinstance(other, float) else NotImplemented
    __rtruediv__ = __truediv__
    def __pow__(self, n): return size_value(self.dim**n) if type(n) is int and n >= 0 else number(float)
    def _bits(self, other): return NotImplemented if as_dim(other) is None else number(int)
    def __lshift__(self, n): return self*2**n if type(n) is int else self*OPS['power of two'].shape(n.dim) if type(n) is Size else self._bits(n)
    def __rlshift__(self, n): return n*OPS['power of two'].shape(self.dim) if type(n) is int else self._bits(n)
    def __rshift__(self, n): return self//2**n if type(n) is int else self._bits(n)
    def __and__(self, n): return self % (n + 1) if type(n) is int and n > 0 == n & n + 1 else self._bits(n)  # the last bits
    __rand__, __or__, __ror__, __xor__, __rxor__, __rrshift__ = __and__, *(_bits,)*5
    def __rpow__(self, base):
        if base == 2 and type(base) is int and self.dim in current().state.get('bits', {}).values(): return 1 << self
        return number(float if isinstance(base, float) else int)
    def __neg__(self): return size_value(-self.dim)
    def __pos__(self): return self
    def __invert__(self): return -self - 1
    def __abs__(self): return self if self >= 0 else -self
    def __round__(self, n=None): return self
    def __bool__(self): return self != 0
    def __str__(self): return told(str(self.dim))
    __repr__ = __str__
    def __format__(self, spec): return told(str(self.dim))
    def __hash__(self): refuse(f'the size {self} is used as a key of a dictionary or set', hint=KEYS)
    def _no_value(self, *_): refuse(f'the value of the size {self} is needed here, and it is not known until the program runs',
                                    hint=f'what needs it is not traced; {RULE}')
    __index__ = __int__ = _no_value
    def __float__(self):
        refuse(f'the value of the size {self} is needed here', hint=f'math and NumPy functions accept it; {RULE}')
    def bit_length(self): return OPS['bit_length'].shape(self.dim)
    real = property(lambda self: self)


# %%
from bendml.shape.trace import Trace, tracing
with tracing(Trace(plan=(True,))) as trace:
    n = Size(Dim('n'))
    print(n + 1 > 0, (4*n)//4 == n, n % 2 == 0, trace.facts.claims)


# %% [markdown]
# ## Axes with an identity
#
# Two axes can have the same size and still be different: the rows of a batch and its columns. So an axis carries an
# identity through transposes and element-wise operations, which is how `s / s.sum(1)` on a square `s` is caught.

# %%
#| export
@dataclass(frozen=True)
class Axis:
    "One axis of a symbolic array."
    size: Dim
    id: int = -1
    role: str = ''               # of a stored weight: 'in' or 'out'; of a gradient: 'grad'
    parts: tuple[Dim, ...] = ()  # the factors it was merged from, in order
    one: str = ''                # a size 1: 'written' (None, reshape), 'kept' (keepdims) or 'declared'


# %%
#| export
def axis(size: Dim | int, **more) -> Axis:
    "A new axis, with an identity of its own."
    facts, size = current().facts, Dim(size)
    size = facts.shown(size) if (number := facts.normal(size).const) is None else Dim(number)
    return Axis(size, next(current().count), **more)


# %% [markdown]
# The axes that `keep=` names are known by their identity, and what is cut, merged or joined from one is one of them too.

# %%
#| export
def inherit(new: Axis, *old: Axis) -> Axis:
    "An axis made of others: if nothing may reduce over one of them, nothing may over it."
    kept = current().state.get('kept', {})
    for a in old:
        if a.id in kept: kept.setdefault(new.id, kept[a.id])
    return new


# %%
#| export
class Array:
    "An array inside a trace: its axes and dtype, no numbers."
    __slots__ = 'axes', 'dtype', 'lost', 'known', 'sure', 'locked', '__weakref__'
    __array_priority__ = 1000
    def __init__(self, axes: Iterable[Axis], dtype: Any = float, lost: tuple = (), sure: bool = False):
        object.__setattr__(self, 'axes', tuple(axes))
        object.__setattr__(self, 'dtype', np.dtype(dtype))
        if self.dtype.subdtype: refuse('this dtype has an axis of its own', 'a dtype of numbers', self.dtype, f'write the axis into the shape, and the dtype {self.dtype.base}')
        object.__setattr__(self, 'lost', lost)  # (axis number, text) of an axis that a reduction removed, for hints
        object.__setattr__(self, 'known', None)  # what is known of whole numbers, see the next page
        object.__setattr__(self, 'sure', sure or self.dtype == bool)  # is it of this dtype, or only of one that behaves alike?
        object.__setattr__(self, 'locked', False)  # a view into which NumPy does not let write

    __class__ = property(lambda self: np.ndarray)
    def __hash__(self): raise TypeError(AS_KEY)
    def __setattr__(self, name, value):
        refuse(f'an array\'s `{name}` is assigned', hint='write x = x.reshape(...) or x.astype(...)')
    sizes = property(lambda self: tuple(a.size for a in self.axes))
    shape = property(lambda self: tuple(size_value(a.size) for a in self.axes))
    ndim = property(lambda self: len(self.axes))
    size = property(lambda self: size_value(entries(self)))
    itemsize = property(lambda self: self.dtype.itemsize if self.sure else number(int))
    nbytes = property(lambda self: self.size*self.itemsize)
    def __str__(self): return told(spelled(self.sizes))
    __repr__ = __str__
    def __format__(self, spec):
        if spec and self.axes: refuse(f'an array has no format {spec!r}', 'a number', self, 'format an entry of it, or write np.round(..., 2) and no format')
        return told('a number') if spec else str(self)


# %%
#| export
def entries(x: Array) -> Dim:
    "How many numbers an array holds."
    product = Dim(1)
    for a in x.axes: product = product*a.size
    return product


# %%
#| export
def number(dtype: Any = float) -> Array:
    "A number that is not known."
    return Array((), dtype)


# %%
#| export
def is_symbolic(value: Any, depth: int = 4) -> bool:
    "Does a value contain a symbolic array or size?"
    if type(value) in (Array, Size, Dim): return True
    if type(value) is Opaque: return False
    if hasattr(value, 'grown') and not value.plain(): return True
    if depth and isinstance(value, list | tuple): return any(is_symbolic(v, depth - 1) for v in value)
    if depth and isinstance(value, dict): return any(is_symbolic(v, depth - 1) for v in value.values())
    return isinstance(value, slice) and any(is_symbolic(v) for v in (value.start, value.stop, value.step))


# %% [markdown]
# ## The table of operations
#
# One record an operation. `shape` computes the result from symbolic arrays and is all that this package needs; the kernel and the
# gradient are filled in by the packages above, for [bendml's own operations](45_ops.ipynb) and for [NumPy's](50b_operations.ipynb).
# A rule on these pages is one function with the same parameters as NumPy's, decorated with what it is the rule of. It returns
# symbolic arrays, and calls `refuse` when the operation would fail. [Rules of your own](23c_calls.ipynb) are ordinary NumPy.

# %%
#| export
class Gradient(NamedTuple):
    "How small changes go through an operation."
    back: Callable                  # (i, g, result, inputs, options) -> the derivative by input i; g is the one by the result
    ahead: Callable | None = None   # (changes, result, inputs, options) -> the change of the result; None in changes: that input stands still
    names: Signature | None = None  # of the inputs and options that it knows
    many: bool = False              # the first argument is a list of inputs

@dataclass
class Op:
    "One operation: what it does to shapes, and what others know about it."
    name: str
    shape: Callable | None
    kernel: Callable | None = None
    gradient: Gradient | None = None


# %%
#| export
OPS: dict[Any, Op] = {}


# %%
#| export
def rule(*functions: Callable) -> Callable:
    "Declare the shape rule of some functions: `@rule(np.trace)` above a function of symbolic arrays."
    def register(shape: Callable) -> Callable:
        for f in functions: OPS[f] = Op(getattr(f, '__name__', str(f)), shape)
        return shape
    return register


# %%
#| export
def op_of(f: Any) -> Op | None:
    "The record of an operation; every ufunc that works entry by entry has one, SciPy's included."
    if isinstance(f, np.ufunc) and f.signature is None and f not in OPS:
        OPS[f] = Op(f.__name__, lambda *args, **kwargs: OPS['ufunc'].shape(f, *args, **kwargs))
    try: return OPS.get(f) or OPS.get(_named(f))
    except TypeError: return None  # not hashable, so not an operation


# %%
#| export
def _named(f: Any) -> str:
    "A function of a package that need not be installed is found by name: `scipy.linalg.inv`."
    module = getattr(f, '__module__', None) or ''
    return f'{".".join(module.split(".")[:2])}.{getattr(f, "__name__", "")}' if module.startswith('scipy') else ''


# %% [markdown]
# A rule that does not read an option of its function has `**_` for those that change no shape, which are listed here; any
# other is refused by name.

# %%
#| export
SILENT = set('''order subok casting optimize kind stable like device copy rtol atol equal_nan assume_unique invert rcond hermitian tol ddof
                correction bias decimals nan posinf neginf method interpolation overwrite_input left right period initial mean sorted
                constant_values end_values stat_length reflect_type deg'''.split())

@lru_cache(1024)
def _read(shape: Callable) -> frozenset[str] | None:
    "The options that a rule reads; None if it passes all of them on."
    parameters = signature(shape).parameters.values()
    if not any(p.kind is p.VAR_KEYWORD and p.name[0] == '_' for p in parameters): return None
    return frozenset(p.name for p in parameters)

def all_read(name: str, shape: Callable, options: dict) -> None:
    "Refuse an option that a rule does not read and that may change a shape."
    if options and (known := _read(shape)) is not None and (unread := sorted(options.keys() - known - SILENT)):
        refuse(f'{unread[0]}= has no rule', hint=f'leave it out, or {RULE}')


# %%
#| export
LONG = 'split the function: what a typed function returns has the sizes that it declares'

def perform(f: Callable, args: tuple, kwargs: dict, method: bool = False) -> Any:
    "Apply the rule of `f`; a failure inside it is a refusal."
    trace, op = current(), op_of(f)
    if op is None: no_rule(f)
    before, trace.state['op'] = trace.state.get('op', ('', False)), (op.name, method)
    try:
        all_read(op.name, op.shape, kwargs)
        return op.shape(*args, **kwargs)
    except (TypeError, ValueError, IndexError, AttributeError, NotImplementedError) as e:
        if isinstance(e, ShapeError): raise
        if isinstance(e, DimError): refuse(str(e), hint=LONG)
        text = str(e).replace(f'{op.shape.__name__}()', 'the rule')
        refuse(f'{type(e).__name__}: {text}')
    finally: trace.state['op'] = before


# %%
#| export
def no_rule(f: Callable) -> None:
    name = f'{getattr(f, "__module__", None) or "numpy"}.{getattr(f, "__name__", f)}'
    refuse(f'{name} has no shape rule',
           hint=f'add one: @rule({name}) above a function with its parameters that returns an array of the right shape, np.zeros(...)')


# %%
#| export
METHODS: dict[str, Any] = {}  # the name of an array's method -> the function whose rule it follows

# %% [markdown]
# ## What this does not show
#
# The rules themselves are on the next pages, after [what is known of whole numbers](22a_ranges.ipynb) and [how NumPy and Python ask](22aa_operators.ipynb): [element by element](22b_elementwise.ipynb), [reductions](22c_reductions.ipynb),
# [products](22d_products.ipynb), [matrices](22da_matrices.ipynb), [moving axes](22e_moves.ipynb), [joining](22f_joining.ipynb), [indexing](22g_indexing.ipynb),
# [searching](22h_searching.ipynb) and [making arrays](22i_making.ipynb).
