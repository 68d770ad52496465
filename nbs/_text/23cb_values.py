# %%
#| default_exp shape.values

# %% [markdown]
# # Values for annotations
# > What a trace begins with, made from a function's annotations; and whether what it ends with is what they say.

# %%
#| hide
#| export
import re
from dataclasses import is_dataclass
from typing import Any, Callable

import numpy as np

from bendml.shape.sizes import Dim, substitute
from bendml.shape.facts import claim
from bendml.shape.annotations import ArraySpec, DictSpec, ManySpec, MaybeSpec, OneSpec, OpaqueSpec, SizeSpec, TupleSpec, names_in, spelled
from bendml.shape.trace import choose, current, holds, refuse
from bendml.shape.opaque import Opaque, Part
from bendml.shape.symbols import Array, Axis, Size, as_dim, axis, size_value
from bendml.shape.ranges import GIVEN, ranged, unknown
from bendml.shape.elementwise import _fit, lift, same
from bendml.shape.states import FEWER, Growing, Turns
from bendml.shape.objects import Watched, stand_in_for

# %% [markdown]
# ## From an annotation to a symbolic value

# %%
#| export
_GENERATORS = {np.random.Generator: np.random.default_rng, np.random.RandomState: np.random.RandomState}  # what they draw has a rule
_DTYPES = {'': np.float64, 'float': np.float64, 'int': np.int64, 'bool': np.bool_}
_ROLES = {'in×out': ('in', 'out'), 'out×in': ('out', 'in')}


# %%
#| export
def itself(size: Dim) -> Dim: return size

def make(spec: Any, put: Callable[[Dim], Dim] = itself) -> Any:
    "A symbolic value for an annotation; `put` replaces its sizes."
    match spec:
        case ArraySpec(): return _array(spec, put)
        case SizeSpec(size): return size_value(put(size))
        case OpaqueSpec(cls, name):
            return _GENERATORS[cls](0) if cls in _GENERATORS else Opaque(name or f'a {cls.__name__}', cls, fixed=cls in (str, bytes))
        case OneSpec(values): return next((v for v in values[:-1] if choose()), values[-1])
        case MaybeSpec(inner): return make(inner, put) if choose('an optional argument is given') else None
        case ManySpec(inner): return _many(inner, put)
        case TupleSpec(items, names, cls): return _record(cls, names, [make(s, put) for s in items])
        case DictSpec(items): return {k: make(s, put) for k, s in items}
        case list(): return [make(s, put) for s in spec]
    return spec


# %%
#| export
def _many(inner: Any, put: Callable[[Dim], Dim]) -> Turns:
    "Values of one kind, of which nobody knows how many; arrays can be stacked, if there is one."
    any_size = {n for n in names_in(inner) if n.startswith('?')}  # each has its own
    def item(_: Any) -> Any:
        own = {n: unknown('k').size for n in any_size}
        return make(inner, (lambda size: put(substitute(size, own))) if own else put)
    def listed(turns: Turns) -> Growing:
        if not holds(claim(turns.count, '>=', 1)).holds: refuse('there may be no array in it', hint=FEWER)
        if any_size or not isinstance(inner, ArraySpec): refuse('their sizes may differ', hint='name the size, instead of Any')
        return Growing([item(0)], [turns.count])
    turns = Turns(unknown('n', told=f'the length of a list of {inner}').size, item)
    turns.listed = listed
    return turns


# %%
#| export
def _array(spec: ArraySpec, put: Callable[[Dim], Dim]) -> Array:
    rank = len(spec.sizes)
    roles = ('',)*rank
    if spec.layout in _ROLES and rank >= 2: roles = ('',)*(rank - 2) + _ROLES[spec.layout]
    if spec.layout == 'grad' and rank: roles = ('',)*(rank - 1) + ('grad',)
    parts = spec.factors or ((),)*rank
    axes = [axis(put(s), role=r, parts=tuple(map(put, p)), one='declared' if put(s) == 1 else '') for s, r,
            p in zip(spec.sizes, roles, parts)]
    sure = rank > 0 and spec.dtype not in _DTYPES and put is itself  # a parameter's is checked at the call, a result's as far as it is known
    x = ranged(Array(axes, np.dtype(_DTYPES.get(spec.dtype, spec.dtype)), sure=sure), GIVEN)  # its numbers are the caller's word
    if not rank and x.dtype == bool: current().state.setdefault('fixed', {})[id(x)] = [x, None]
    return x


# %%
#| export
def _record(cls: Any, names: tuple[str, ...], values: list) -> Any:
    if cls is None: return tuple(values)
    if hasattr(cls, '_fields'): return cls(*values)
    made = object.__new__(cls if is_dataclass(cls) or issubclass(cls, Watched) else stand_in_for(cls, names))
    for n, v in zip(names, values): object.__setattr__(made, n, v)
    return made


# %%
#| export
def parts_of(spec: Any, name: str, kinds: Any = ArraySpec | SizeSpec) -> list[tuple[str, Any]]:
    "The arrays and sizes in an annotation, or its parts of other kinds, each with the expression that reaches it."
    own = [(name, spec)] if isinstance(spec, kinds) else []
    match spec:
        case MaybeSpec(inner): return parts_of(inner, name, kinds)
        case ManySpec(inner): return parts_of(inner, f'{name}[0]', kinds)
        case TupleSpec(items, names, cls):
            return own + [a for i, s in enumerate(items) for a in parts_of(s, f'{name}.{names[i]}' if cls else f'{name}[{i}]', kinds)]
        case DictSpec(items): return own + [a for k, s in items for a in parts_of(s, f'{name}[{k!r}]', kinds)]
        case list(): return own + [a for i, s in enumerate(spec) for a in parts_of(s, f'{name}[{i}]', kinds)]
    return own

def arrays_of(spec: Any, name: str) -> list[tuple[str, ArraySpec]]:
    "The arrays in an annotation, each with the expression that reaches it."
    return parts_of(spec, name, ArraySpec)


# %% [markdown]
# ## Does the result fit?

# %%
#| export
def fits(spec: Any, value: Any, what: str, put: Callable[[Dim], Dim] = lambda d: d) -> None:
    "Refuse a value that is not what an annotation says."
    match spec:
        case None: return
        case MaybeSpec(inner): return None if value is None else fits(inner, value, what, put)
        case ManySpec(inner):
            if not isinstance(value, Turns | tuple | list): refuse(f'{what} is not several values', spec, type(value).__name__)
            if isinstance(value, Turns): value = value.item(unknown('k').size),
            if isinstance(value, Growing): value = [v for v, _ in value.counted()]
            for v in value: fits(inner, v, f'{what}, one of its parts', put)
        case SizeSpec(size):
            if (dim := as_dim(value)) is None or not (verdict := same(dim, put(size))).holds:
                refuse(f'{what} is not that size', put(size), value, verdict=None if dim is None else verdict)
        case ArraySpec(): _array_fits(spec, value, what, put)
        case OpaqueSpec(cls):
            if not isinstance(value, cls) and not (type(value) is Opaque and value._class_ is Part):
                refuse(f'{what} is not {spec}', spec, _shown(value))
        case OneSpec(values):
            if type(value) is Opaque or value not in values: refuse(f'{what} is none of these', spec, _shown(value))
        case TupleSpec(items, names, cls):
            if cls and not issubclass(cls, Watched) and not isinstance(value, cls | Watched): refuse(f'{what} is not {spec}', spec, _shown(value))
            values = [getattr(value, n, None) for n in names] if cls else value if isinstance(value, tuple | list) else (value,)
            if len(values) != len(items): refuse(f'{what} has another number of values', spec, f'{len(values)} value{"s"*(len(values) != 1)}')
            if not cls and not isinstance(value, tuple): refuse(f'{what} is no tuple', spec, 'a list' if isinstance(value, list) else value, 'make it one: tuple(...)' if isinstance(value, list) else 'a tuple of one value is (x,)')
            for i, (s, v) in enumerate(zip(items, values)): fits(s, v, f'{what}.{names[i]}' if cls else f'{what}, part {i}', put)
        case DictSpec(items):
            if not isinstance(value, dict): refuse(f'{what} is not a dictionary', spec, type(value).__name__)
            for k, s in items:
                if k not in value: refuse(f'{what} has no key {k!r}', s, 'nothing')
                fits(s, value[k], f'{what}[{k!r}]', put)
            if (wrong := other_keys(value, [k for k, _ in items], what.removeprefix('argument '))): refuse(wrong[0], *wrong[2:], wrong[1] if what.startswith('argument') else '')
        case list():
            if not isinstance(value, list): refuse(f'{what} is no list', spec, 'a tuple' if isinstance(value, tuple) else value, 'make it one: list(...)')
            fits(TupleSpec(tuple(spec)), tuple(value), what, put)


# %% [markdown]
# A loop over a dictionary meets every key, and in their order. So both belong to what the annotation says.

# %%
#| export
def other_keys(value: dict, wanted: list, name: str) -> tuple[str, str, str, str] | None:
    "What is wrong with the keys of a dictionary, if something is."
    if (keys := list(value)) == wanted: return None
    more = [k for k in keys if k not in wanted]
    what = f'the key {more[0]!r}, which the annotation has not' if more else 'its keys in another order'
    own = name if name.isidentifier() else 'p'
    shown = lambda ks: ', '.join(map(repr, ks))
    return f'{name} has {what}', f'pass {{k: {own}[k] for k in ({shown(wanted)}{","*(len(wanted) == 1)})}}', shown(wanted), shown(keys)


# %%
#| export
def _array_fits(spec: ArraySpec, value: Any, what: str, put: Callable[[Dim], Dim]) -> None:
    sizes = tuple(current().facts.shown(put(s)) for s in spec.sizes)
    wanted = spelled(sizes, spec.dtype)
    if value is None or isinstance(value, str | dict) or type(value).__name__ == 'Growing' and not value.plain():
        refuse(f'{what} is no array', wanted, 'a list' if isinstance(value, list) else value)
    if isinstance(value, Watched): refuse(f'{what} is no array', wanted, f'an object of the class {type(value).__name__}')
    x = lift(value)
    if x.ndim != len(sizes):
        count = '1 axis' if x.ndim == 1 else f'{x.ndim} axes'
        refuse(f'{what} has {count}, not {len(sizes)}', wanted, x, _turned(sizes, x, what) or _flatten(sizes, x))
    for i, (a, s) in enumerate(zip(x.axes, sizes)):
        if not str(s).startswith('?') and not (verdict := same(a.size, s)).holds:
            hint = "the check cannot tell this size: leave out this annotation, or fill an array that has the declared size" if "'" in str(a.size) else ''
            if '//' in str(a.size) and any(not g.plain() for g in current().state.get('lists', ())):
                hint = 'may the last piece be shorter? Then fill an array that has the declared size: out[i:i + k] = ... in the loop'
            refuse(f'{what} has size {a.size} on axis {i}, not {s}', wanted, x, _turned(sizes, x, what) or hint, verdict)
    _same_order(spec, x, what, put)
    kind = np.dtype(_DTYPES.get(spec.dtype, spec.dtype)) if spec.dtype else x.dtype
    if spec.dtype and (kind.kind != x.dtype.kind and not (kind.kind in 'iu' and x.dtype.kind in 'iu')):
        refuse(f'{what} holds {x.dtype}', wanted, f'{x} of {x.dtype}', 'convert with .astype')
    if spec.dtype not in _DTYPES and x.sure and x.dtype != kind:
        refuse(f'{what} holds {x.dtype}', wanted, f'{x} of {x.dtype}',
               f'convert with .astype(np.{kind}), or make what it is computed from with dtype=np.{kind}')


# %%
#| export
def _turned(sizes: tuple[Dim, ...], x: Array, what: str) -> str:
    "What would make an array fit; a part of a value has no source of its own."
    hint = _fit(Array(map(Axis, sizes)), x, exact=True)
    return hint if re.fullmatch(r'the result|argument \w+', what) else hint.replace('{it.T}', 'its transpose').replace('{it}', 'it')


# %%
#| export
def _flatten(sizes: tuple[Dim, ...], x: Array) -> str:
    product = Dim(1)
    for a in x.axes[len(sizes) - 1:]: product = product*a.size
    return f'flatten it: .reshape({", ".join(map(str, sizes))})' if x.ndim > len(sizes) > 0 and product == sizes[-1] else ''


# %%
#| export
def _same_order(spec: ArraySpec, x: Array, what: str, put: Callable[[Dim], Dim]) -> None:
    roles = tuple(a.role for a in x.axes[-2:])
    if spec.layout in _ROLES and {*roles} <= {'in', 'out'} and roles != _ROLES[spec.layout]:
        refuse(f'{what} is stored the other way round', spec.layout, '×'.join(roles), 'transpose it: .T')
    for a, p in zip(x.axes, spec.factors):
        p = tuple(map(put, p))
        if a.parts and p and a.parts != p and sorted(map(str, a.parts)) == sorted(map(str, p)):
            refuse(f'{what} was merged in another order', '*'.join(map(str, p)), '*'.join(map(str, a.parts)),
                   'transpose before the reshape that merged it')


# %%
#| export
def _shown(value: Any) -> str:
    if type(value) is Array: return re.sub(r"\w+'\d+", '?', str(value))  # a size that nobody named
    if isinstance(value, Growing) and not value.plain(): return f'a list of {value.total()}'
    if isinstance(value, tuple | list): return '(' + ', '.join(map(_shown, value)) + ')'
    return f'the size {value}' if type(value) is Size else 'None' if value is None else type(value).__name__


# %%
from bendml.shape.annotations import Mat, Vec
from bendml.shape.messages import ShapeError
from bendml.shape.trace import Trace, tracing
n, d = Dim('n'), Dim('d')
with tracing(Trace()):
    x = make(Mat[n, d])
    fits(Vec[d], x.sum(0), 'the result')
    try: fits(Vec[d], x.sum(1), 'the result')
    except ShapeError as e: print(e)

# %% [markdown]
# ## What this does not show
#
# Of a result's numbers only the kind is compared, and an exact dtype where it is certain.
