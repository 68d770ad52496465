# %%
#| default_exp shape.annotations

# %% [markdown]
# # Annotations
# > `Mat[B, L[784]]`: what a function says about its arrays, read into one small record.

# %% [markdown]
# The notation is chosen so that a type checker reads it too (see [the stub](24_shape.ipynb)): names of sizes are type
# variables to it, and `L[784]` is a literal. At run time more is understood: plain numbers, arithmetic, text such as
# `"4*D"`, and [jaxtyping](https://docs.kidger.site/jaxtyping/)'s annotations, so that code which has them is checked as it
# stands.

# %%
#| hide
#| export
import dataclasses, enum, inspect, itertools, numbers, re, sys, typing
from collections import abc
from dataclasses import dataclass, replace
from typing import Any, Callable

import numpy as np

from bendml.shape.sizes import Dim, DimError, named, names_of, parse_dim
from bendml.shape.messages import ShapeError, place_of, place_of_code


# %% [markdown]
# ## Axes
#
# An axis has a size. If the size was written as a product, the order of its factors is kept: `"H*D"` says that an axis
# holds `H` blocks of `D`, and that is not the same as `D` blocks of `H`.

# %%
#| export
def read_size(written: Any) -> tuple[Dim, tuple[Dim, ...]]:
    "A size as it may be written in an annotation, and its factors in order."
    match written:
        case Dim(): return written, ()
        case bool(): pass
        case int() if written >= 0: return Dim(written), ()
        case str(): return parse_dim(written), _factors(written)
        case typing.TypeVar(__name__=name): return Dim(name), ()
    if written is Any: return named(f'?{next(_ANY)}'), ()
    if typing.get_origin(written) is typing.Literal: return read_size(typing.get_args(written)[0])
    if text := getattr(written, '__metadata__', None): return read_size(text[0])   # Annotated[Any, "4*D"]
    if hasattr(written, '__value__'): return read_size(written.__value__)          # type D4 = ...
    raise DimError(f'{written!r} is not a size; write a Dim, L[784], or text such as "4*D"')


# %%
#| export
_ANY = itertools.count(1)  # each `Any` is a size of its own, that nobody can name


# %%
#| export
def _factors(text: str) -> tuple[Dim, ...]:
    parts = text.split('*')
    return tuple(map(parse_dim, parts)) if len(parts) > 1 and all(p.strip().isidentifier() for p in parts) else ()


# %%
assert read_size(784)[0] == read_size('784')[0] == read_size(typing.Literal[784])[0] == 784
assert read_size(typing.Annotated[Any, '4*D'])[0] == 4*Dim('D')
read_size('H*D')


# %% [markdown]
# ## Arrays
#
# `Vec`, `Mat` and `Arr` say how many axes; a wrapper around them says what the numbers are, or how a weight is stored.

# %%
#| export
@dataclass(frozen=True)
class ArraySpec:
    "What an annotation says about an array."
    sizes: tuple[Dim, ...]
    factors: tuple[tuple[Dim, ...], ...] = ()  # one a axis, empty where the size was not written as a product
    dtype: str = ''                            # 'int', 'bool', 'float', 'float32', ...; empty: any number
    layout: str = ''                           # 'in×out' or 'out×in' for a stored weight, 'grad' for a gradient
    def __str__(self): return spelled(self.sizes, self.dtype)
    def __getitem__(self, _): raise TypeError(f'{self} already has its sizes')
    def __call__(self, *_): raise TypeError(f'{self} is an annotation; make an array with NumPy')  # lets typing accept it
    def __or__(self, other): return typing.Union[self, other]
    def __ror__(self, other): return typing.Union[other, self]


# %%
#| export
def spelled(sizes: typing.Iterable[Dim | int], dtype: str = '') -> str:
    "How a shape is shown: `Vec<n>`, `Mat<3, 5>`, `Arr<B, T, C>`."
    sizes = tuple(sizes)
    if not sizes: return 'a number'
    name = {1: 'Vec', 2: 'Mat'}.get(len(sizes), 'Arr')
    return f'{name}<{", ".join(map(str, sizes))}>' + (f' of {dtype}' if dtype else '')


# %%
#| export
def _spec(rank: int | None, sizes: Any) -> ArraySpec:
    sizes = sizes if isinstance(sizes, tuple) else (sizes,)
    if rank is not None and len(sizes) != rank:
        name, shown = ('Vec', 'Mat')[rank - 1], ', '.join(map(_written, sizes))
        other = f'{("Arr", "Vec", "Mat", "Arr")[min(len(sizes), 3)]}[{shown or "()"}]'
        if len(sizes) == 1 and isinstance(sizes[0], str) and len(parts := sizes[0].replace(',', ' ').split()) == rank:
            other = f'{name}[{", ".join(map(_written, parts))}]'
        raise DimError(f'{name} has {rank} size{"s"*(rank > 1)}, not {len(sizes)}; write {other}?')
    read = [read_size(s) for s in sizes if sizes != ((),)]
    return ArraySpec(tuple(s for s, _ in read), tuple(f for _, f in read))


# %%
#| export
def _written(size: Any) -> str: return f'"{size}"' if isinstance(size, str) else str(size)


# %%
#| export
class AnnotationError(ShapeError, DimError):
    "An annotation that cannot be read; its place is the line that has it."

def _read(read: Callable, *written: Any) -> Any:
    try: return read(*written)
    except DimError as e: reason, _, hint = str(e).partition('; ')
    raise AnnotationError(reason, hint=hint, place=place_of(sys._getframe(2)))


# %%
#| export
class _Brackets:
    def __init__(self, *sizes): raise DimError(f'write brackets: {type(self).__name__}[{", ".join(map(_written, sizes)) or "n, d"}]')


# %%
#| export
class Vec(_Brackets):
    "An array with one axis: `Vec[n]`."
    def __class_getitem__(cls, size) -> ArraySpec: return _read(_spec, 1, size)


# %%
#| export
class Mat(_Brackets):
    "An array with two axes: `Mat[rows, columns]`."
    def __class_getitem__(cls, sizes) -> ArraySpec: return _read(_spec, 2, sizes)


# %%
#| export
class Arr(_Brackets):
    "An array with any number of axes: `Arr[B, T, C]`; `Arr[()]` is a number that NumPy holds."
    def __class_getitem__(cls, sizes) -> ArraySpec: return _read(_spec, None, sizes)


# %%
#| export
class L:
    "A size that is a number, or text: `L[784]`, `L[\"4*D\"]`. To a type checker it is `typing.Literal`."
    def __class_getitem__(cls, size) -> Dim | str: return size if isinstance(size, str) else _read(read_size, size)[0]


# %%
B, D = Dim('B'), Dim('D')
Mat[B, L[784]], Vec['4*D'], Arr[B, D, 4*D, D + 1]

# %%
try: Vec['D/2']
except ShapeError as e: print(e)


# %%
#| export
class _Wrapper:
    "`Int[Vec[n]]`: the same array, and what its numbers are or how it is stored."
    changes: dict = {}
    def __class_getitem__(cls, spec: ArraySpec) -> ArraySpec:
        if not isinstance(spec, ArraySpec):
            raise DimError(f'{cls.__name__}[...] takes an annotation such as {cls.__name__}[Vec[n]], not {spec!r}')
        return replace(spec, **cls.changes)


# %%
#| export
class Int(_Wrapper): "Whole numbers, which can be used as an index: `Int[Vec[n]]`."; changes = {'dtype': 'int'}
class Bool(_Wrapper): "Truth values, which can be used as a mask: `Bool[Vec[n]]`."; changes = {'dtype': 'bool'}
class Float(_Wrapper): "Floating point of any width."; changes = {'dtype': 'float'}
class F32(_Wrapper): "float32."; changes = {'dtype': 'float32'}
class F64(_Wrapper): "float64."; changes = {'dtype': 'float64'}


# %% [markdown]
# A weight of a layer can be stored `in×out`, to be used as `x @ w`, or `out×in`, to be used as `x @ w.T`. When it is square,
# its shape cannot tell which. The layout does.

# %%
#| export
class InOut(_Wrapper): "A weight stored in×out, used as `x @ w`."; changes = {'layout': 'in×out'}
class OutIn(_Wrapper): "A weight stored out×in, used as `x @ w.T`."; changes = {'layout': 'out×in'}
class Grad(_Wrapper): "A gradient that flows back: it meets a weight's out axis, not its in axis."; changes = {'layout': 'grad'}


# %%
InOut[Mat[D, D]], Int[Vec[B]]


# %% [markdown]
# ## Several values, and records

# %%
#| export
@dataclass(frozen=True)
class TupleSpec:
    "Several values: a tuple, or the fields of a NamedTuple or dataclass."
    items: tuple[Any, ...]
    names: tuple[str, ...] = ()
    make: Callable | None = None  # the record's class
    def __str__(self):
        if not self.make: return f'({", ".join(map(str, self.items))})'
        return f'{self.make.__name__}({", ".join(f"{n}: {s}" for n, s in zip(self.names, self.items))})'


# %%
#| export
@dataclass(frozen=True)
class SizeSpec:
    "A whole number that is a size: an `int` parameter, or one annotated with a Dim."
    size: Dim
    def __str__(self): return f'the size {self.size}'


# %%
#| export
@dataclass(frozen=True)
class MaybeSpec:
    "A value or None: `Vec[n] | None`."
    inner: Any
    def __str__(self): return f'{self.inner} or None'


# %%
#| export
@dataclass(frozen=True)
class ManySpec:
    "Any number of values of one kind: `tuple[Block, ...]`."
    inner: Any
    def __str__(self): return f'any number of {self.inner}'


# %%
#| export
def _maybe(inner: Any) -> MaybeSpec | None: return inner and MaybeSpec(inner)


# %%
#| export
@dataclass(frozen=True)
class DictSpec:
    "A dictionary with fixed keys, written as a dictionary of annotations or as a TypedDict."
    items: tuple[tuple[str, Any], ...]
    def __str__(self): return '{' + ', '.join(f'{k!r}: {s}' for k, s in self.items) + '}'


# %% [markdown]
# A value that is no array has no shape: a text, a random generator, an object. In a trace it is [opaque](21d_opaque.ipynb),
# unless its type says which values there are.

# %%
#| export
@dataclass(frozen=True)
class OpaqueSpec:
    "A value of a class that says nothing of shapes: `rng: np.random.Generator`, `name: str`."
    cls: type
    name: str = ''
    def __str__(self): return f'a {self.cls.__name__}'


# %%
#| export
@dataclass(frozen=True)
class OneSpec:
    "One of some values: `Literal[\"valid\", \"same\"]`, or a member of an Enum."
    values: tuple[Any, ...]
    def __str__(self): return ' or '.join(map(repr, self.values))


# %%
#| export
Spec = ArraySpec | TupleSpec | DictSpec | SizeSpec | MaybeSpec | ManySpec | OpaqueSpec | OneSpec


# %% [markdown]
# `read_annotation` turns whatever stands after the colon into one of these; None means that it says nothing about shapes.

# %%
#| export
def read_annotation(written: Any, scope: dict[str, Any], name: str = '') -> Spec | list | None:
    "Read an annotation; `scope` resolves text, `name` is the parameter's."
    if isinstance(written, str):
        try: written = eval(written, scope)  # the user's own annotation, in the user's own module, as Python itself would
        except DimError: raise
        except Exception as e: raise DimError(f'{written!r} cannot be read as an annotation: {e}') from None
    if isinstance(written, Spec) or written is None: return written
    if isinstance(written, Dim | typing.TypeVar): return SizeSpec(read_size(written)[0])
    if written is int and name: return SizeSpec(Dim(name))
    if written in (int, float, bool, complex): return ArraySpec((), dtype='' if written is float else written.__name__)
    if typing.get_origin(written) is typing.Literal: return OneSpec(typing.get_args(written))
    if type(None) in (kinds := typing.get_args(written)) and len(kinds) == 2:
        return _maybe(read_annotation(kinds[kinds[0] is type(None)], scope, name))
    if isinstance(written, dict): return DictSpec(tuple((k, read_annotation(v, scope)) for k, v in written.items()))
    if isinstance(written, list): return [read_annotation(w, scope) for w in written]
    if isinstance(written, tuple) and written and all(isinstance(w, Dim | int | str | typing.TypeVar) for w in written): _no_tuple(written)
    if isinstance(written, tuple): return TupleSpec(tuple(read_annotation(w, scope) for w in written))
    if hasattr(written, 'dim_str') and hasattr(written, 'dtypes'): return _jaxtyping(written)
    if typing.get_origin(written) is tuple and typing.get_args(written)[-1:] == (...,):
        return (inner := read_annotation(typing.get_args(written)[0], scope)) and ManySpec(inner)
    if typing.get_origin(written) is tuple: return TupleSpec(tuple(read_annotation(a, scope) for a in typing.get_args(written)))
    if typing.get_origin(written) in (list, abc.Sequence): return (inner := read_annotation(typing.get_args(written)[0], scope)) and ManySpec(inner)
    if isinstance(written, type) and issubclass(written, _Brackets | _Wrapper):
        sizes = 'n' if written is Vec else 'Mat[n, d]' if issubclass(written, _Wrapper) else 'n, d'
        raise DimError(f'{written.__name__} says no sizes; write {written.__name__}[{sizes}]')
    return _record(written) or _opaque(written, name)


# %%
#| export
def _no_tuple(written: tuple) -> None:
    shown, name = ', '.join(map(_written, written)), ('Vec', 'Mat', 'Arr')[min(len(written), 3) - 1]
    raise DimError(f'({shown}) could be an array or a tuple; write {name}[{shown}] for an array, tuple[{shown}] for several sizes')


# %%
#| export
def _opaque(written: Any, name: str) -> OpaqueSpec | OneSpec | None:
    if not isinstance(written, type) or typing.get_origin(written) or typing.is_typeddict(written): return None
    if issubclass(written, enum.Enum): return OneSpec(tuple(written))
    for kind, dtype in (np.bool_, 'bool'), (np.integer, 'int'), (np.number, ''), (numbers.Integral, 'int'), (numbers.Number, ''):
        if issubclass(written, kind): return ArraySpec((), dtype=dtype)
    container = written in (object, list, tuple, dict, set, frozenset, type) or hasattr(written, '__array__')
    unclear = written.__module__ == 'collections.abc' or getattr(written, '_is_protocol', False)
    return None if container or unclear else OpaqueSpec(written, name)


# %%
#| export
def _record(cls: Any) -> TupleSpec | DictSpec | None:
    "A NamedTuple, dataclass or TypedDict with annotated fields, or any class that says the shapes of some attributes."
    if not isinstance(cls, type) or not getattr(cls, '__annotations__', None): return None
    scope = vars(inspect.getmodule(cls) or typing)
    plain = not typing.is_typeddict(cls) and not dataclasses.is_dataclass(cls) and not hasattr(cls, '_fields')
    fields = {n: read_annotation(a, scope, n*plain) for n, a in cls.__annotations__.items()}
    if typing.is_typeddict(cls): return DictSpec(tuple(fields.items()))
    if dataclasses.is_dataclass(cls): fields = {f.name: fields.get(f.name) for f in dataclasses.fields(cls) if f.init}
    elif plain: fields = {n: s for n, s in fields.items() if s} if any(getattr(s, 'sizes', ()) for s in fields.values()) else {'': None}
    if not all(fields.values()): return None
    return TupleSpec(tuple(fields.values()), tuple(fields), cls)


# %%
class Layer(typing.NamedTuple):
    w: Mat[Dim('N'), Dim('M')]
    b: Vec[Dim('M')]

for written in (Layer, tuple[Vec[B], Mat[B, D]], tuple[Layer, ...]): print(read_annotation(written, globals()))


# %% [markdown]
# ## jaxtyping
#
# `Float[ndarray, "batch 784"]` keeps its text and its dtypes as attributes, so it is read without importing jaxtyping.

# %%
#| export
def _jaxtyping(written: Any) -> ArraySpec:
    sizes, dtypes = [], tuple(written.dtypes) if isinstance(written.dtypes, list | tuple) else ()
    for token in written.dim_str.split():
        token = token.partition('=')[2] or token
        if token in ('...', '_') or token[0] in '*?#':
            raise DimError(f'{token!r} in {written.dim_str!r}: write each axis with a name; bendml needs to know how many there are')
        sizes.append(read_size(int(token) if token.isdigit() else token))
    kinds = [k for k, starts in {'int': ('int', 'uint'), 'bool': ('bool',), 'float': ('float', 'bfloat')}.items()
             if dtypes and all(d.startswith(starts) for d in dtypes)]
    dtype = dtypes[0] if len(dtypes) == 1 else kinds[0] if kinds else ''
    return ArraySpec(tuple(s for s, _ in sizes), tuple(f for _, f in sizes), dtype)


# %% [markdown]
# ## A function's signature

# %%
#| export
def names_in(spec: Any) -> frozenset[str]:
    "The names of sizes that occur in an annotation."
    match spec:
        case ArraySpec(sizes): return frozenset().union(*map(names_of, sizes))
        case SizeSpec(size): return names_of(size)
        case MaybeSpec(inner) | ManySpec(inner): return names_in(inner)
        case TupleSpec(items) | list(items): return frozenset().union(*map(names_in, items))
        case DictSpec(items): return frozenset().union(*(names_in(s) for _, s in items))
    return frozenset()


# %%
#| export
@dataclass(frozen=True)
class Signature:
    "A function's parameters and result, as far as they speak of shapes."
    params: tuple[tuple[str, Spec | None], ...]
    result: Spec | None
    python: inspect.Signature = dataclasses.field(compare=False)

    @property
    def given(self) -> frozenset[str]:
        "The names of sizes that a call binds."
        return frozenset().union(*(names_in(s) for _, s in self.params))
    @property
    def found(self) -> frozenset[str]:
        "Those that only the result has."
        return names_in(self.result) - self.given


# %%
#| export
def _scope(f: Callable) -> dict[str, Any]:
    "The names that an annotation written as text may use: the module's, and those around the function."
    cells = {}
    for n, c in zip(f.__code__.co_freevars, f.__closure__ or ()):
        try: cells[n] = c.cell_contents
        except ValueError: pass
    return {**f.__globals__, **cells}


# %%
#| export
def _with_default(spec: Any, name: str, default: Any, named: frozenset[str]) -> Any:
    "`eps=1e-5` is a number, `w: Vec[d] = None` may be None; an int or text with a default is a setting, unless an annotation names the int as a size."
    if spec is None and isinstance(default, float): return ArraySpec(())
    inner = spec.inner if isinstance(spec, MaybeSpec) else spec
    setting = isinstance(inner, SizeSpec) and inner.size == Dim(name) and name not in named
    if default is None: return _maybe(inner)
    return None if setting or isinstance(inner, OneSpec) or isinstance(inner, OpaqueSpec) and inner.cls in (str, bytes) else spec


# %%
#| export
def read_signature(f: Callable, extra: dict[str, Any] | None = None, where: tuple[str, ...] = (), known: Any = ()) -> Signature:
    "Read a function's annotations; `extra` adds or replaces some (`return` for the result); a parameter that is `known` needs none."
    python, scope = inspect.signature(f), _scope(f)
    written = {n: p.annotation for n, p in python.parameters.items()} | {'return': python.return_annotation} | (extra or {})
    if unknown := set(extra or {}) - {*python.parameters, 'return'}:
        raise DimError(f'{f.__name__} has no parameter {", ".join(sorted(unknown))}')
    read = {}
    for name, a in written.items():
        try: read[name] = None if a is inspect.Parameter.empty else read_annotation(a, scope, '' if name == 'return' else name)
        except DimError as e: raise ShapeError(f'{name}: {e.args[0]}', hint=getattr(e, 'hint', ''), place=place_of_code(f.__code__)) from None
    named = frozenset(re.findall(r'\w+', ' '.join(where)))
    for name, p in python.parameters.items():
        others = named.union(*(names_in(s) for n, s in read.items() if n != name))
        if p.default is not p.empty and (read[name] or name not in known): read[name] = _with_default(read[name], name, p.default, others)
        inner = read[name].inner if isinstance(read[name], MaybeSpec) else read[name]
        if name in known and isinstance(inner, OpaqueSpec | OneSpec): read[name] = None
    return Signature(tuple((n, read[n]) for n in python.parameters), read['return'], python)


# %%
def step(x: Mat[B, D], y: 'Int[Vec[B]]', n_head: int, eps=1e-5) -> Mat[B, D]: ...
for name, spec in read_signature(step).params: print(f'{name:7}{spec}')

# %% [markdown]
# ## What this does not show
#
# An annotation for any number of axes (`"*batch C"`) is refused: a function is checked for a number of axes that is known.
# An `int` parameter that has a default is a size if the other annotations or a condition name it; otherwise it is a setting, as
# a text with a default is, and the function is checked for the value it is called with.
