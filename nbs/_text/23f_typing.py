# %%
#| default_exp shape.typing

# %% [markdown]
# # `@typed`
# > Checked once, at definition, for all sizes.

# %%
#| hide
#| export
import ast, functools, inspect, sys, types, typing
from dataclasses import replace
from typing import Any, Callable, Self

from bendml.shape.sizes import DimError
from bendml.shape.messages import ShapeError, place_of_code
from bendml.shape.annotations import TupleSpec, _scope, read_annotation, read_signature
from bendml.shape.copies import function_node
from bendml.shape.objects import Watched, _inner, class_of, set_by_methods, stand_in, stand_in_for, to_come
from bendml.shape.boundary import Shapes, _quick
from bendml.shape.signatures import _collecting


# %% [markdown]
# ## The decorator

# %%
#| export
def typed(
    f: Callable | None = None,
    *,
    where: list[str] | tuple[str, ...] | str = (),   # conditions: "C % H == 0", "T <= 1024", "P >= 0", "ids < V"
    keep: str = '',                                  # sizes that nothing may reduce over: "B T"
    shapes: dict[str, Any] | None = None,            # annotations from outside, by parameter; "return" for the result
    known: dict[str, Any] | None = None,             # values of settings that have no default: n_head=12
) -> Callable:
    "Check a function's shapes for all sizes, now; at a call, check only that the arguments are what it says."
    try:
        _well_used(f, where, keep, shapes, known)
        if f is None: return functools.partial(typed, where=where, keep=keep, shapes=shapes, known=known)
        if isinstance(f, classmethod | staticmethod): return type(f)(_typed(f.__func__, where, keep, shapes, known))
        return _typed(f, where, keep, shapes, known)
    except ShapeError as e:
        e.__traceback__, e.__suppress_context__ = None, True  # its text says where; `raise` alone adds nothing of the inside
        raise


# %%
#| export
def _well_used(f: Any, where: Any, keep: Any, shapes: Any, known: Any) -> None:
    "Say what was expected of a use of `@typed`, and what to write."
    def wrong(what: str, wanted: str, seen: Any, hint: str): raise ShapeError(f'@typed: {what}', wanted, seen, hint)
    kind = type(f).__name__
    if isinstance(f, str): wrong('a condition goes into where=', 'a function', repr(f), f'@typed(where={f!r})')
    if isinstance(f, type): wrong('it stands above a function', 'a function', f'the class {f.__name__}', f'write @typed above the methods of {f.__name__}')
    if isinstance(f, property) or kind == '_lru_cache_wrapper':
        wrong('another decorator has made something else of the function', 'a function', kind, 'put @typed underneath the other decorators')
    if f is not None and not isinstance(f, types.FunctionType | classmethod | staticmethod):
        wrong('only functions written in Python can be checked', 'a function', kind, 'call it in a function of your own, and write @typed above that')
    if not isinstance(where, str) and not (isinstance(where, list | tuple) and all(isinstance(w, str) for w in where)):
        wrong('where= takes conditions as text', 'text, or a list of it', where if isinstance(where, list | tuple) else type(where).__name__, 'where="n >= 2", or where=["n >= 2", "d >= 2"]')
    if not isinstance(keep, str): wrong('keep= takes names as text', 'text', keep, 'keep="B T"')
    for name, value in dict(shapes=shapes, known=known).items():
        if value is not None and not isinstance(value, dict): wrong(f'{name}= takes a dictionary', 'one entry a parameter', type(value).__name__, f'{name}={{"x": ...}}')


# %% [markdown]
# A function may use what is defined further down, as a method uses its class. Then it is checked when it is called, or
# asked for its report; `bendml check` checks when it has executed all definitions.

# %%
#| export
def _typed(f: Callable, where: tuple[str, ...] | list[str] | str, keep: str, extra: dict[str, Any] | None = None,
           known: dict[str, Any] | None = None) -> Callable:
    found, where = getattr(_collecting, 'found', None), (where,) if isinstance(where, str) else tuple(where)
    try:
        made, written = _shapes(f, where, keep, extra, known)
        if found is None and not written: made.report()
        made.pending = found is not None or written
    except ShapeError as e:
        if found is not None: found.append((f, e)); return f
        if not e.later: raise
    except DimError as e:
        e = ShapeError(str(e), hint=getattr(e, 'hint', ''), place=place_of_code(f.__code__))
        if found is None: raise e from None
        found.append((f, e))
        return f
    if found is not None: found.append((f, made))
    if not made.pending: made.settle()
    return made.quick


# %%
#| export
def _shapes(f: Callable, where: tuple[str, ...], keep: str, extra: dict | None, known: dict | None) -> tuple[Shapes, bool]:
    "What is known of a function now, and whether it must wait for its class."
    owner, first = _owner(f), next(iter(inspect.signature(f).parameters), None)
    selves = ['self']*(first == 'self' and 'self' not in f.__annotations__)
    selves += [n for n, a in f.__annotations__.items() if isinstance(a, str) and a in ('Self', owner) or a is Self]
    own = _self_spec(f, owner) if owner and selves else None
    selves = selves if own else []
    made = Shapes(f, read_signature(f, dict.fromkeys(selves, own) | (extra or {}), where, known or ()), where, tuple(keep.replace(',', ' ').split()), known or {})
    made.selves, made.quick = selves, functools.wraps(f)(_quick(made))
    made.quick.__shapes__ = made
    if _is_outermost(f):
        if own: setattr(own.make, f.__name__, made.quick)
        elif not owner: made.names = {f.__name__: made.quick}
    return made, bool(owner) and first == 'cls' and first in made.statics


# %%
#| export
def _owner(f: Callable) -> str:
    "The name of the class that a function is defined in, if it is."
    parts = f.__qualname__.split('.')
    return parts[-2] if len(parts) > 1 and parts[-2] != '<locals>' else ''


# %%
#| export
def _is_outermost(f: Callable) -> bool:
    "Is `@typed` what gives the function's name its meaning?"
    if f.__globals__.get(f.__name__) is f: return True
    first = next(iter(getattr(function_node(f.__code__), 'decorator_list', ())), None)
    first = first.func if isinstance(first, ast.Call) else first
    return getattr(first, 'attr', getattr(first, 'id', '')) == 'typed' or isinstance(first, ast.Name) and f.__globals__.get(first.id) is typed


# %% [markdown]
# ## Methods

# %%
#| export
def _self_spec(f: Callable, owner: str) -> TupleSpec | None:
    "What `self` has, while its class is being written: the fields that are annotated above the method."
    frame = sys._getframe(1)
    while frame and frame.f_code.co_name != owner: frame = frame.f_back
    if frame is None: return None
    body = dict(frame.f_locals)
    fields = _fields(body.get('__annotations__', {}), _scope(f) | {k: v for k, v in body.items() if not k.startswith('__')})
    return TupleSpec(tuple(fields.values()), tuple(fields), stand_in(owner, body, tuple(fields), set_by_methods(f, owner), to_come(f, owner)))


# %%
#| export
def _fields(annotations: dict[str, Any], scope: dict[str, Any]) -> dict[str, Any]:
    return {n: s for n, a in annotations.items() if (s := read_annotation(a, scope, n)) is not None}


# %%
#| export
def complete(shapes: Shapes, first: Any = None) -> None:
    "Read anew what `self` has, when its class exists; `first` is the first argument of a call."
    if shapes.whole or not shapes.pending: return
    kind = first if isinstance(first, type) else type(first)
    cls = class_of(shapes.f) or next((c for c in kind.__mro__ if _inner(vars(c).get(shapes.f.__name__)) is shapes.f and not issubclass(c, Watched)), None)
    if cls is None: return
    shapes.whole = True
    if 'cls' in shapes.statics: shapes.statics['cls'] = cls
    if not shapes.selves: return
    old = shapes.signature
    spec = (dict(old.params) | {'return': old.result})[shapes.selves[0]]
    fields = dict(zip(spec.names, spec.items))  # as they were read then: a name may mean something else by now
    for c in cls.__mro__:
        more = {n: a for n, a in vars(c).get('__annotations__', {}).items() if n not in fields}
        fields |= _fields(more, _scope(shapes.f) | vars(sys.modules.get(c.__module__, typing)) | dict(vars(c)))
    own = TupleSpec(tuple(fields.values()), tuple(fields), stand_in_for(cls, tuple(fields)))
    shapes.signature = replace(old, params=tuple((n, own if n in shapes.selves else s) for n, s in old.params),
                               result=own if 'return' in shapes.selves else old.result)

Shapes.complete = complete

# %%
import numpy as np
from bendml.shape.sizes import Dim
from bendml.shape.annotations import Mat, Vec
B, D = Dim('B'), Dim('D')

@typed
def layer(x: Mat[B, D], w: Mat[D, '4*D'], b: Vec['4*D']) -> Mat[B, '4*D']:
    return np.maximum(x @ w + b, 0)

layer.__shapes__.report()

# %%
try: layer(np.ones((2, 3)), np.ones((12, 3)), np.zeros(12))
except ShapeError as e: print(e)

# %% [markdown]
# How many rows a mask picks is not known before. A name that only the result has stands for it, and is a size of its own in each
# call: two such results need not fit.

# %%
k = Dim('k')
@typed
def positive(x: Mat[B, D]) -> Mat[k, D]: return x[x[:, 0] > 0]

try:
    @typed
    def both(x: Mat[B, D], y: Mat[B, D]) -> Mat[k, D]: return positive(x) + positive(y)
except ShapeError as e: print(e)


# %% [markdown]
# A method knows of `self` what its class has annotated. What it sets need not be there before, and must be what the class
# says when the method ends. `return self` is known to be `self`.

# %%
class Mean:
    w: Vec[D]
    @typed
    def fit(self, x: Mat[B, D]) -> 'Mean':
        self.w = x.mean(0)
        return self
    @typed
    def score(self, x: Mat[B, D]) -> Vec[B]: return -((x - self.w)**2).sum(1)
    @typed
    def spread(self, x: Mat[B, D]) -> Vec[B]: return self.fit(x).score(x)

Mean().fit(np.eye(3)).score(np.ones((2, 3))), sorted(Mean.fit.__shapes__.report().own.sets)

# %%
try: Mean().score(np.ones((2, 3)))
except ShapeError as e: print(e)

# %%
try:
    class Wrong:
        w: Vec[D]
        @typed
        def fit(self, x: Mat[B, D]) -> None:
            self.w = x.mean(1)
except ShapeError as e: print(e)


# %% [markdown]
# What is defined further down is waited for; the mistake is found when the function is asked for its report, or called.

# %%
@typed
def scores(x: Mat[B, D], w: Vec[D]) -> Vec[B]: return sigmoid(x @ w)
def sigmoid(z): return 1/(1 + np.exp(-z))

scores.__shapes__.report()


# %% [markdown]
# A function that calls itself leans on [its own promise](23da_checked.ipynb).

# %%
@typed
def total(x: Vec[D]) -> float: return x[0] if len(x) == 1 else x[0] + total(x[1:])

try:
    @typed
    def tail(x: Vec[D]) -> Vec[D]: return x if len(x) == 1 else tail(x[1:])
except ShapeError as e: print(e)

# %% [markdown]
# A use of the decorator that cannot be meant is answered with what to write.

# %%
try: typed('B >= 2')
except ShapeError as e: print(e)

# %% [markdown]
# ## What this does not show
#
# What a function does with arguments that are not arrays is decided for the values that it was called with, once for each. In
# a notebook, a name that no cell ever defines is refused at the first call only, as Python does.
