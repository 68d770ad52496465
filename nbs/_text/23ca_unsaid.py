# %%
#| default_exp shape.unsaid

# %% [markdown]
# # What an annotation leaves open
# > Sizes that only the result names, parameters of which nothing is said, and how to convert what does not fit.

# %%
#| hide
#| export
import inspect
from typing import Any, Callable

import numpy as np

from bendml.shape.sizes import Dim, names_of, substitute
from bendml.shape.messages import ShapeError, place_of_code
from bendml.shape.annotations import ArraySpec, DictSpec, MaybeSpec, Signature, TupleSpec
from bendml.shape.trace import current
from bendml.shape.symbols import Array
from bendml.shape.elementwise import lift


# %% [markdown]
# ## A size that is found when the function runs
#
# `-> Mat[k, d]`, where no parameter has a `k`, is for the rows that a mask picks, or the classes in a list of labels. Such a
# size is whatever is there, and the same wherever the result names it; a caller knows that it is at least 0, and no more. One that
# the names of the parameters can say is a slip.

# %%
#| export
def found_sizes(signature: Signature, result: Any) -> Callable[[Dim], Dim]:
    "What the names are that only the result has; a function that puts them in."
    sizes: dict[str, Dim] = {}
    def look(spec: Any, value: Any) -> None:
        match spec:
            case MaybeSpec(inner): look(inner, value)
            case ArraySpec(wanted) if type(value) in (Array, np.ndarray) and len(wanted) == value.ndim:
                for s, a in zip(wanted, lift(value).axes):
                    if str(s) in signature.found: sizes.setdefault(str(s), a.size)
            case TupleSpec(items, names, cls) if cls or isinstance(value, tuple | list):
                for s, v in zip(items, [getattr(value, n, None) for n in names] if cls else value): look(s, v)
            case DictSpec(items) if isinstance(value, dict):
                for k, s in items: look(s, value.get(k))
            case list(): look(TupleSpec(tuple(spec)), value)
    if signature.found: look(signature.result, result)
    current().state['found'] = {n: current().facts.shown(s) for n, s in sizes.items() if not n.startswith('?')}
    return lambda size: substitute(size, sizes)


# %%
#| export
def nothing_to_find(found: list[dict[str, Dim]], signature: Signature, f: Callable) -> None:
    "Refuse a name of the result's own for a size that has one already: `found` is what it was on each path."
    for name in sorted(frozenset().union(*found)):
        sizes = {path[name] for path in found if name in path}
        if not all(names_of(s) <= signature.given for s in sizes): continue
        text = ' or '.join(sorted(map(str, sizes)))
        raise ShapeError(f'the result names {name}, which no parameter has, and it is {text} at every call', text, name,
                         (f'write {text} for it' if len(sizes) == 1 else 'write Any for it') + '; a name of its own is for a size that only the data decide',
                         place=place_of_code(f.__code__))


# %% [markdown]
# ## A parameter of which nothing is said

# %%
#| export
_HINTS = {  # a word in an annotation: what to write
    'Callable': 'say which function it is checked for: @typed(known={{"{0}": np.tanh}})',
    'ndarray': 'say its sizes: {0}: Vec[n], {0}: Mat[n, d] or {0}: Arr[n, d, 3]',
    'NDArray': 'say its sizes: {0}: Vec[n], {0}: Mat[n, d] or {0}: Arr[n, d, 3]',
    **dict.fromkeys(('list', 'List', 'tuple', 'Tuple', 'dict', 'Dict', 'Sequence'),
                    'say what it holds: {0}: list[Vec[d]], {0}: tuple[Mat[n, d], Vec[d]], {0}: {{"w": Mat[d, m], "b": Vec[m]}}')}


# %%
#| export
def nothing_said(name: str, p: inspect.Parameter, f: Callable) -> ShapeError:
    "The refusal of a parameter whose annotation says nothing of shapes, or that has none."
    known, place = f'@typed(known={{"{name}": ...}}) checks for one value', place_of_code(f.__code__)
    if p.annotation is p.empty:
        return ShapeError(f'the parameter {name} of {f.__name__} has no annotation and no default', 'an annotation', 'none',
                          f'write {name}: Mat[n, d] for an array, {name}: int for a size, {name}: float for a number, '
                          f'{name}: np.random.Generator or another class; for a function, {known}', place=place)
    shown = p.annotation if isinstance(p.annotation, str) else inspect.formatannotation(p.annotation)
    hint = next((h.format(name) for word, h in _HINTS.items() if word in shown), f'{known}; for an array, write {name}: Mat[n, d]')
    return ShapeError(f'the annotation of {name} in {f.__name__} says nothing of shapes', f'{name}: Mat[n, d], for example',
                      f'{name}: {shown}', hint, place=place)


# %%
from bendml.shape.annotations import read_signature

def apply(f: Callable, xs): return f(xs)
for name, p in inspect.signature(apply).parameters.items(): print(nothing_said(name, p, apply).hint)


# %% [markdown]
# ## What does not fit at a call

# %%
#| export
def a(value: Any) -> str:
    "What a value is, in words: an int, a list, None."
    kind = type(value).__name__
    return 'None' if value is None else f'a{"n" if kind[0] in "aeiouAEIO" else ""} {kind}'


# %%
#| export
def conversion(value: Any, name: str) -> str:
    "How to make an array of something else."
    module = type(value).__module__.partition('.')[0]
    if value is None: return f'if it may be None, say so, {name}: ... | None, and test it in the function'
    if module in ('pandas', 'polars'): return f'pass {name}.to_numpy()'
    if module == 'torch': return f'pass {name}.detach().cpu().numpy()'
    if isinstance(value, np.ma.MaskedArray): return f'pass {name}.filled(np.nan), or {name}.data'
    return f'pass np.asarray({name})' if isinstance(value, list | tuple | np.ndarray) or hasattr(value, '__array__') else ''


# %%
#| export
def other_rank(shape: tuple[int, ...], wanted: int, name: str) -> str:
    "How to get another number of axes."
    if len(shape) == 2 and wanted == 1 and 1 in shape: return f'pass {name}.ravel()'
    return f'a column is {name}[:, None], a row {name}[None]' if (len(shape), wanted) == (1, 2) else ''


# %%
#| export
def contents(dtype: np.dtype) -> str:
    "What an array of a dtype holds, in words."
    return {'O': 'objects', 'U': 'text', 'S': 'bytes', 'M': 'dates', 'm': 'time spans', 'V': 'records'}.get(dtype.kind, str(dtype))


# %%
print(a(3), a([1]), conversion(np.matrix('1 2'), 'x'), other_rank((3,), 2, 'x'), contents(np.dtype('U3')), sep='; ')

# %% [markdown]
# ## What this does not show
#
# A size that only the result names, and only in arithmetic (`Vec["2*k"]`), is not solved for: it is refused. In a list of
# arrays, `list[Vec[k]]`, each may have another size: write `Any`.
