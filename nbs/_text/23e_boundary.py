# %%
#| default_exp shape.boundary

# %% [markdown]
# # At a call
# > A typed function is checked when it is defined. When it is called, only the arguments are: are they what the signature says?

# %%
#| hide
#| export
import functools, inspect, sys
from typing import Any, Callable

import numpy as np

from bendml.shape.sizes import Dim, evaluate, named, names_of, substitute
from bendml.shape.messages import ShapeError, place_of
from bendml.shape.annotations import ArraySpec, DictSpec, ManySpec, MaybeSpec, OneSpec, OpaqueSpec, SizeSpec, TupleSpec, names_in, spelled
from bendml.shape.unsaid import a, contents, conversion, other_rank
from bendml.shape.objects import Watched
from bendml.shape.values import _ROLES, other_keys, parts_of
from bendml.shape.checked import Checks, lasting, not_as_floats, plain, refusal_for
from bendml.shape.ranges import NARROW
from bendml.shape.binding import Binding
from bendml.shape.wholes import apart, not_usable, widths


# %% [markdown]
# ## Weights that know how they are stored
#
# A loader that knows how a file stores its matrices says so with `stored(w, 'out×in')`. A function whose parameter is
# `InOut[Mat[C, C]]` then refuses it, though the shape fits.

# %%
#| export
class Weight(np.ndarray):
    "An array that remembers whether it is stored in×out or out×in."
    layout: str | None = None
    def __array_finalize__(self, _): self.layout = None
    def transpose(self, *axes):
        flipped = super().transpose(*axes)
        if self.ndim == 2 and flipped.strides == self.strides[::-1]:
            flipped.layout = {'in×out': 'out×in', 'out×in': 'in×out'}.get(self.layout)
        return flipped
    T = property(lambda self: self.transpose())


# %%
#| export
def stored(
    w: np.ndarray,   # r×c
    layout: str,     # 'in×out' or 'out×in'
) -> np.ndarray:
    "The same array, tagged with how a layer's weights are stored in it."
    if layout not in _ROLES: raise ShapeError('a layout is one of two', ' or '.join(_ROLES), layout)
    tagged = np.asarray(w).view(Weight)
    tagged.layout = layout
    return tagged


# %%
w = stored(np.zeros((3, 3)), 'out×in')
w.layout, w.T.layout, (w + 1).layout


# %%
#| export
def as_mat(
    a: Any,           # an array with two axes
) -> np.ndarray:      # the same; to a type checker, a Mat of any size
    "An array whose shape a type checker does not know, as a matrix; `ShapeError` if it is none."
    a = np.asarray(a)
    if a.ndim != 2: raise ShapeError('as_mat', 'Mat<?, ?>', spelled(a.shape))
    return a


# %% [markdown]
# ## The careful check
#
# It finds the fault and words it. It runs when the quick check below says no.

# %%
#| export
class Shapes(Checks):
    "What `@typed` knows of a function."
    def at_call(self, arguments: dict[str, Any]) -> None:
        "Refuse arguments that are not what the signature says."
        self.complete(next(iter(arguments.values()), None))
        report = self.report({n: plain(arguments[n]) for n in self.statics})
        if self.pending: self.settle()
        binding = Binding(self.lower, self.may_be_0)
        for name, spec in self.params(report): _bind(spec, arguments[name], name, binding, self._error(name))
        binding.finish(self.claims, self._error(None))
        self._numbers_fit(arguments, binding.sizes)
        if (wrong := not_usable(self.params(report), report, arguments, self.f.__name__)): self._error(wrong[0])(*wrong[1:])

    def _numbers_fit(self, arguments: dict[str, Any], sizes: dict[str, int]) -> None:
        "Refuse numbers in an array that a condition excludes; a limit of which no array was given may be any."
        free = 1 + max((int(arguments[n].max(initial=0)) for n in self.limits), default=0)
        for name, limit in self.limits.items():
            n = evaluate(limit, {k: max(free, self.lower.get(k, 1) or 0) for k in names_of(limit)} | sizes)
            if not _below(arguments[name], n):
                self._error(name)(f'{name} holds {_outside(arguments[name], n)}', '', f'numbers from 0 to {n - 1}',
                                  _outside(arguments[name], n))
        if (found := refusal_for(self, arguments)): self._error(found[0].partition('[')[0])(*not_as_floats(*found))

    def _error(self, name: str | None):
        def error(reason: str, hint: str = '', expected: Any = None, observed: Any = None, at: str = ''):
            frame = sys._getframe(1)
            while frame and frame.f_globals.get('__name__',
                                                '').startswith('bendml.shape') or frame and frame.f_code.co_filename.startswith('<bendml'):
                frame = frame.f_back
            index = list(self.signature.python.parameters).index(name) if name else None
            what = f'{self.f.__name__}, argument {at or name}' if name else self.f.__name__
            raise ShapeError(f'{what}: {reason}', expected, observed, hint, place=place_of(frame, index, [*self.signature.python.parameters][:1] in (['self'], ['cls'])) if frame else None)
        return error


# %%
#| export
def _below(ids: np.ndarray, limit: int) -> bool: return not ids.size or bool(ids.min() >= 0 and ids.max() < limit)
def _outside(ids: np.ndarray, limit: int) -> int: return int(ids[(ids < 0) | (ids >= limit)].flat[0])


# %%
#| export
_KINDS = {'': 'biufc', 'int': 'iu', 'bool': 'b', 'float': 'f'}
ARRAYS = frozenset({np.ndarray, np.memmap, Weight})  # other classes may compute other shapes: a column of an np.matrix is a matrix
_NUMBERS = frozenset(map(np.dtype, '?bhilqBHILQefdgFDG'))


# %%
#| export
def _bind(spec: Any, value: Any, name: str, binding: Binding, error: Callable) -> None:
    "Bind the sizes of one argument, or of a part of it."
    error = functools.partial(error, at=name)
    match spec:
        case None: return
        case MaybeSpec(inner): return None if value is None else _bind(inner, value, name, binding, error)
        case ManySpec(inner):
            if not isinstance(value, tuple | list): error('not what is expected', expected=spec, observed=type(value).__name__)
            for i, v in enumerate(value):
                _bind(inner, v, f'{name}[{i}]', binding, error)
                for n in names_in(inner): binding.forget(n)
        case OpaqueSpec(cls):
            if not isinstance(value, cls): error(f'{name} is {a(value)}', '', spec, type(value).__name__)
        case OneSpec(values):
            if not any(value is v or type(value) is type(v) and value == v for v in values): error(f'{name} is none of these', '', spec, repr(value))
        case SizeSpec(size):
            if not isinstance(value, int | np.integer) or isinstance(value, bool):
                error('a size is a whole number', expected=spec, observed=repr(value))
            if isinstance(value, np.integer) and not name.isidentifier() and value.dtype != np.int64:
                error(f'{name} is a {value.dtype}, which counts otherwise than an int', f'pass int({name})', spec, repr(value))
            binding.axis(size, int(value), name, error)
        case ArraySpec(): _bind_array(spec, value, name, binding, error)
        case TupleSpec(items, names, cls):
            if not (cls and issubclass(cls, Watched)) and not isinstance(value, cls or tuple): _no_tuple(cls or tuple, spec, value, name, error)
            if not cls and len(value) != len(items): error(f'{name} has {_count(value)}, not {len(items)}', '', spec, _count(value))
            for i, s in enumerate(items):
                where = f'{name}.{names[i]}' if cls else f'{name}[{i}]'
                if cls and getattr(value, names[i], None) is None and not isinstance(s, MaybeSpec):
                    error(f'{where} is not set', 'call the method that sets it first', s, 'None' if hasattr(value, names[i]) else 'nothing')
                _bind(s, getattr(value, names[i]) if cls else value[i], where, binding, error)
        case DictSpec(items):
            for k, s in items:
                if not isinstance(value, dict) or k not in value: error(f'{name} has no key {k!r}', expected=s, observed='nothing')
                _bind(s, value[k], f'{name}[{k!r}]', binding, error)
            if (wrong := other_keys(value, [k for k, _ in items], name)): error(*wrong)
        case list():
            if not isinstance(value, list): _no_tuple(list, spec, value, name, error)
            _bind(TupleSpec(tuple(spec)), tuple(value), name, binding, error)


# %%
#| export
def _no_tuple(wanted: type, spec: Any, value: Any, name: str, error: Callable) -> None:
    many = wanted in (tuple, list) and isinstance(value, tuple | list | np.ndarray)
    error(f'{name} is {a(value)}, not a {wanted.__name__}', f'pass {wanted.__name__}({name})' if many else '', spec, type(value).__name__)

def _count(values: Any) -> str: return f'{len(values)} value{"s"*(len(values) != 1)}'


# %%
#| export
def _bind_array(spec: ArraySpec, value: Any, name: str, binding: Binding, error: Callable) -> None:
    if type(value) not in ARRAYS and not isinstance(value, np.generic) and (spec.sizes or not isinstance(value, int | float | complex)):
        error(f'{name} is {a(value)}', conversion(value, name), spec, type(value).__name__)
    shape = np.shape(value)
    seen = lambda: spelled(shape)
    known = lambda: spelled(substitute(s, binding.sizes) for s in spec.sizes)
    if len(shape) != len(spec.sizes):
        count = '1 axis' if len(shape) == 1 else f'{len(shape)} axes'
        error(f'{name} has {count}, not {len(spec.sizes)}', other_rank(shape, len(spec.sizes), name), known(), seen())
    turned = len(shape) == 2 and shape[0] != shape[1] and 0 not in shape and _would_fit(spec, shape[::-1], binding)
    hint = f'{name} is stored the other way round, transpose: pass {name}.T' if turned else ''
    dtype = value.dtype if hasattr(value, 'dtype') else np.dtype(type(value))
    if dtype.kind not in _KINDS.get(spec.dtype, 'biufc') or spec.sizes and spec.dtype not in _KINDS and dtype.name != spec.dtype:
        wanted = {'': 'float', 'bool': 'bool', 'int': 'int', 'float': 'float'}.get(spec.dtype, f'np.{spec.dtype}')
        error(f'{name} holds {contents(dtype)}', f'convert it: {name}.astype({wanted})', spec if spec.dtype else f'{spec} of numbers',
              spelled(shape, str(dtype)))
    if spec.layout in _ROLES and getattr(value, 'layout', None) not in (None, spec.layout):
        error(f'{name} is stored {value.layout}', f'pass {name}.T', f'{known()}, {spec.layout}', f'{seen()}, {value.layout}')
    for s, n in zip(spec.sizes, shape):
        binding.axis(s, n, name, lambda reason, more='': error(reason, hint or more, known(), seen()))


# %%
#| export
def _would_fit(spec: ArraySpec, shape: tuple[int, ...], binding: Binding) -> bool:
    return all(names_of(s) - binding.sizes.keys() or evaluate(s, binding.sizes) == n for s, n in zip(spec.sizes, shape))


# %% [markdown]
# ## The quick check
#
# One straight-line function a signature, generated from it: it takes the parameters under their own names, so keywords and
# defaults cost nothing, compares, and calls the function. For
#
#     def layer(x: Mat[B, D], w: Mat[D, "4*D"], b: Vec["4*D"])
#
# it is, in essence,
#
#     def layer(x, w, b):
#         (B, D), (a1, a2), (a3,) = x.shape, w.shape, b.shape
#         if not (B and D and a1 == D and a2 == 4*D and a3 == 4*D): careful(...)
#         return raw(x, w, b)

# %%
#| export
def _quick(shapes: Shapes) -> Callable:
    "The function that stands in for the user's. Where the function is not checked yet, each call goes the careful way."
    python, tests, names, unpack, known = shapes.signature.python, [], [], [], {}
    space: dict[str, Any] = {'__raw': shapes.f, '__careful': shapes.at_call, '__below': _below, '__refused': ShapeError, '__arrays': ARRAYS, '__numbers': _NUMBERS, '__seen': set(), '__plain': plain, '__share': np.may_share_memory}
    pending, held = [], []
    report = None if shapes.pending else shapes.report()
    params = shapes.params(report) if report else shapes.signature.params
    for name, spec in params:
        tests += _containers(spec, name, space)
        for path, s in parts_of(spec, name, ArraySpec | SizeSpec | OpaqueSpec | OneSpec):
            if isinstance(s, OpaqueSpec | OneSpec):
                own = f'__c{len(space)}'
                space[own] = s.cls if isinstance(s, OpaqueSpec) else s.values
                tests.append(f'isinstance({path}, {own})' if isinstance(s, OpaqueSpec) else f'{path} in {own}')
                continue
            if isinstance(s, SizeSpec):
                pending.append((s.size, path))
                tests.append(f'type({path}) is int')
                continue
            if not s.sizes and s.dtype in ('', 'int', 'bool'):   # a number of Python's own
                tests.append(f'type({path}) is {s.dtype or "float"}')
                continue
            own = [f'_{len(names) + i}' for i in range(len(s.sizes))]
            names += own
            unpack.append((f'({", ".join(own)},)' if own else '()', f'{path}.shape'))
            pending += zip(s.sizes, own)
            if own: tests.append(f'{path}.__class__ in __arrays')
            wide = widths(report) if s.dtype == 'int' and report and report.held != NARROW else ''
            exact = f'{path}.dtype.char in {wide!r}' if wide else f'{path}.dtype.kind in {_KINDS[s.dtype]!r}' if s.dtype in _KINDS else f'{path}.dtype == {s.dtype!r}'
            if s.sizes and not s.dtype: held.append(f'{path}.dtype')
            else: tests.append(exact if s.dtype else f'{path}.dtype in __numbers')
            if s.layout in _ROLES: tests.append(f'getattr({path}, "layout", None) in (None, {s.layout!r})')
    exact = _comparisons(pending, known, tests, shapes)
    tests += [f'__below({n}, {_code(limit, known)})' for n, limit in shapes.limits.items() if names_of(limit) <= known.keys()]
    settings = [f'{n} is __d_{n}' for n in shapes.statics]
    space |= {f'__d_{n}': default for n, default in shapes.statics.items()}
    seen = [f'({", ".join(held)},)'] if held else []  # what the arrays hold, where it is not declared: the first time, the careful way
    tests += settings + [f'{kinds} in __seen' for kinds in seen]
    noted = [f'        if {" and ".join(settings) or "True"}: __seen.add({kinds})' for kinds in seen]
    if report: tests += apart(params, report)
    simple = exact and report and all(_straight(s) for _, s in params) and all(map(lasting, shapes.statics.values()))
    whole = [n for n, s in params if isinstance(s.inner if isinstance(s, MaybeSpec) else s, SizeSpec) or n in shapes.statics]
    code = _source(python, unpack, tests, simple, space, whole, noted)
    exec(compile(code, f'<bendml {shapes.f.__name__}>', 'exec'), space)  # made of numbers and the parameters' own names
    return space['__typed']


# %%
#| export
def _containers(spec: Any, path: str, space: dict[str, Any]) -> list[str]:
    "Tests that what holds the arrays is what the annotation says."
    if isinstance(spec, MaybeSpec | ManySpec): return []   # the careful check's
    items = spec.items if isinstance(spec, TupleSpec | DictSpec) else spec if isinstance(spec, list) else ()
    if isinstance(spec, DictSpec):
        own = f'__k{len(space)}'
        space[own] = [k for k, _ in items]
        return [f'type({path}) is dict and [*{path}] == {own}', *(t for k, s in items for t in _containers(s, f'{path}[{k!r}]', space))]
    cls = getattr(spec, 'make', None)
    inside = [t for i, s in enumerate(items) for t in _containers(s, f'{path}.{spec.names[i]}' if cls else f'{path}[{i}]', space)]
    if not cls: return [f'type({path}) is {"list" if isinstance(spec, list) else "tuple"} and len({path}) == {len(items)}', *inside] if items else []
    if issubclass(cls, Watched): return inside
    own = f'__c{len(space)}'
    space[own] = cls
    return [f'isinstance({path}, {own})', *inside]


# %%
#| export
def _straight(spec: Any) -> bool:
    "Does each path lead to one value, whatever the argument is?"
    if isinstance(spec, TupleSpec | list): return all(map(_straight, spec if isinstance(spec, list) else spec.items))
    if isinstance(spec, DictSpec): return all(_straight(s) for _, s in spec.items)
    return not isinstance(spec, MaybeSpec | ManySpec)


# %%
#| export
def _comparisons(pending: list, known: dict, tests: list, shapes: Shapes) -> bool:
    "Tests that compare every axis; False where a product must be solved, which only the careful check does."
    for size, own in sorted(pending, key=lambda t: str(t[0]) not in names_of(t[0])):  # names that stand alone come first
        bare = len(names_of(size)) == 1 and str(size) in names_of(size)
        if bare and str(size) not in known:
            known[str(size)] = own
            least = shapes.lower.get(str(size), 1)
            if least is not None and (least > 0 or not own.startswith('_')):
                tests.append(own if least == 1 and own.startswith('_') else f'{own} >= {least}')
        elif names_of(size) <= known.keys(): tests.append(f'{own} == {_code(size, known)}')
        else: return False
    for c in shapes.claims:
        if not names_of(c.dim) <= known.keys(): return False
        tests.append(f'{_code(c.dim, known)} {c.kind} 0')
    return True


# %%
#| export
def _code(size: Dim, known: dict[str, str]) -> str:
    "A size as an expression over the generated function's variables."
    return '(' + str(substitute(size, {n: named(v) for n, v in known.items()})) + ')'


# %%
#| export
def _source(python: inspect.Signature, unpack: list, tests: list, simple: bool, space: dict, whole: list[str], noted: list[str]) -> str:
    "The text of the generated function."
    params, passed, star = [], [], False
    last = next((p for p in reversed(python.parameters.values()) if p.kind is p.POSITIONAL_ONLY), None)
    for p in python.parameters.values():
        if p.kind is p.KEYWORD_ONLY and not star: params.append('*'); star = True
        mark = {p.VAR_POSITIONAL: '*', p.VAR_KEYWORD: '**'}.get(p.kind, '')
        star |= mark == '*'
        if p.default is not p.empty: space[f'__p_{p.name}'] = plain(p.default)
        params.append(f'{mark}{p.name}' + (f'=__p_{p.name}' if p.default is not p.empty else ''))
        if p is last: params.append('/')
        passed.append(f'{mark}{p.name}' if mark or p.kind is not p.KEYWORD_ONLY else f'{p.name}={p.name}')
    args = 'dict(' + ', '.join(f'{n}={n}' for n in python.parameters) + ')'
    lines = [f'def __typed({", ".join(params)}):']
    if simple:
        lines += ['    try:', f'        {", ".join(a for a, _ in unpack) or "_"} = {", ".join(b for _, b in unpack) or "()"}',
                  f'        __ok = {" and ".join(tests) or "True"}',
                  '    except (AttributeError, ValueError, TypeError, KeyError, IndexError): __ok = False',
                  '    if not __ok:', *_careful(args), *noted]
    else: lines += ['    if True:', *_careful(args)]
    lines += [f'        {n} = __plain({n})' for n in whole]
    return '\n'.join([*lines, f'    return __raw({", ".join(passed)})', ''])


# %% [markdown]
# A refusal leaves no trace of what happened inside: `raise` alone adds none of its own, so that the traceback shows the
# user's line and no other.

# %%
#| export
def _careful(args: str) -> list[str]:
    return [f'        try: __careful({args})', '        except __refused as e:', '            e.__traceback__ = None', '            raise']


# %%
#| export
def _settle(shapes: Shapes) -> None:
    "The function has been checked: put the quick check in its place."
    shapes.pending, quick = False, shapes.quick
    if quick is not None:
        new = _quick(shapes)
        quick.__globals__.update(new.__globals__)
        quick.__code__ = new.__code__

Shapes.settle = _settle

# %%
from bendml.shape.annotations import Mat, Vec, read_signature
B, D = Dim('B'), Dim('D')
def layer(x: Mat[B, D], w: Mat[D, '4*D'], b: Vec['4*D']) -> Mat[B, '4*D']: return np.maximum(x @ w + b, 0)

shapes = Shapes(layer, read_signature(layer), (), (), {})
shapes.report()
shapes.pending = False
quick = _quick(shapes)
quick(np.ones((2, 3)), np.ones((3, 12)), np.zeros(12)).shape

# %% [markdown]
# An array of another class may compute other shapes: a column of an `np.matrix` is a matrix. So it is stopped here.

# %%
try: quick(np.matrix('1 2 3'), np.ones((3, 12)), np.zeros(12))
except ShapeError as e: print(e)

# %% [markdown]
# ## What this does not show
#
# The result of a call is not looked at: it was decided at definition, for every size. A product of which a factor is not known,
# `Vec["H*D"]`, an array that may be left out and a setting that can change are compared the careful way, which takes some tens
# of microseconds, and more where [numbers are tried](23db_binding.ipynb).
