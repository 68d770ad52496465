# %%
#| default_exp shape.states

# %% [markdown]
# # The state of a loop
# > Things whose length is not known, lists that grow, and how two states of a function are compared.

# %% [markdown]
# To say that one more turn of a [loop](23_loops.ipynb) changes nothing, one must be able to compare: all the variables of a
# function, and what can be reached from them.

# %%
#| hide
#| export
import operator, types, zlib
from collections.abc import Collection, Iterable, Iterator
from typing import Any, Callable

import numpy as np

from bendml.shape.sizes import Dim, names_of, substitute
from bendml.shape.facts import claim
from bendml.shape.trace import branch, current, holds, refuse, user_frame
from bendml.shape.opaque import Opaque
from bendml.shape.symbols import OPS, OWN_LOOP, Array, Size, as_dim, size_value
from bendml.shape.ranges import as_size, forget, range_of, view
from bendml.shape.operators import no_axes
from bendml.shape.elementwise import same


# %% [markdown]
# ## What is iterated over

# %%
#| export
class Turns:
    "Something to iterate over whose length is not known: `item(k)` is its element number k."
    named = False  # does the program give the number of a turn a name?
    def __init__(self, count: Dim, item: Callable[[Dim], Any]): self.count, self.item = count, item
    listed = None  # for several values that are a parameter: the list that NumPy may take
    def __iter__(self):
        refuse('something that is not traced goes through an unknown number of values', hint=OWN_LOOP)
    def __len__(self): refuse('the length of this is not known here')
    def __bool__(self): return branch(claim(self.count, '>=', 1))
    def __getitem__(self, i):
        if (at := as_dim(i)) is None: refuse('part of several values, of which it is not known how many there are', hint='write a for loop')
        if at.const is not None and at.const < 0: at = self.count + at
        inside = holds(claim(at, '>=', 0)).holds and holds(claim(at, '<', self.count)).holds
        return self.item(at) if inside else refuse(f'element {i} of several values, and there may be fewer', hint=FEWER)


# %%
#| export
FEWER = 'test it first: if len(...) == 0: raise ValueError("nothing given")'

def as_turns(values: Any) -> Turns | None:
    "The turns of an iterable; None if it can simply be iterated over."
    if isinstance(values, Turns): return values
    if type(values) is Array and values.axes and values.axes[0].size.const is None:
        return Turns(values.axes[0].size, lambda k: view(values, Array(values.axes[1:], values.dtype)))
    if isinstance(values, Growing) and not values.plain(): return Turns(values.total(), lambda k: values.any_element())


# %% [markdown]
# A range that is known but long (epochs of training, say) is treated in the same way; a short one is run as it is, unless that makes too many paths.

# %%
#| export
UNROLLED = 24

def symbolic_range(*ends: Any) -> Any:
    "`range` with bounds that may be sizes."
    start, stop, step = (0, *ends, 1) if len(ends) == 1 else (*ends, 1)[:3]
    a, b, c = map(_whole, (start, stop, step))
    if None not in (a.const, b.const, c.const) and len(known := range(a.const, b.const, c.const)) <= (1 if current().state.get('rolled') else UNROLLED): return known
    if c == 0 or c.const is None and not holds(claim(c, '>=', 1)).holds: refuse(f'range() in steps of {c}', 'a step that is not 0', c)
    count = -((a - b)//c) if c.const is None or c.const > 0 else -((b - a)//-c)
    turns = Turns(count, lambda k: size_value(a + k*c))
    turns.numbers, turns.named = lambda: OPS[np.arange].shape(start, stop, step), True
    return turns


# %%
#| export
def int_of(value: Any) -> Any:
    "`int(value)`: of a number that is not known, a size that is not known."
    if type(value) is not Array: return value if type(value) is Size else int(value)
    no_axes(value, 'int()')
    return size_value(as_size(value))

def _whole(value: Any) -> Dim:
    "A bound of a range, which Python does not round."
    if type(value) is Array: no_axes(value, 'range()')
    if type(value) is Array and value.dtype.kind not in 'iu':
        refuse(f'range() of a number of {value.dtype}', 'a whole number', value.dtype, 'write // instead of /, or int(...)')
    if type(value) is Opaque or isinstance(value, bool): value = int(value)
    if (dim := as_dim(int_of(value) if type(value) is Array else value)) is None: refuse(f'range() of {value}', 'a whole number', value, 'write // instead of /, or int(...)')
    return dim


# %%
#| export
def zipped(*values: Any, strict: bool = False) -> Any:
    "`zip`; the shortest ends it, so where lengths are not known they must be equal."
    turns = [as_turns(v) for v in values]
    if all(t is None for t in turns): return zip(*values, strict=strict)
    turns = [_known(v) if t is None else t for t, v in zip(turns, values)]
    for i, t in enumerate(turns[1:], 1):
        if not (verdict := same(t.count, turns[0].count)).holds:
            lost = 'strict=True raises a ValueError' if strict else 'the shortest ends the loop, and the rest is lost'
            more = (t.count - turns[0].count).const
            so = f'assert len({{0}}) == len({{{i}}}), if it is so' if more is None else f'leave out what is not meant of the longer one: [:-{abs(more)}] or [{abs(more)}:]'
            refuse('zip() of different lengths', turns[0].count, t.count, f'{lost}; write before it: {so}' if more is None else f'{lost}; {so}',
                   verdict, given='' if strict else 'the rest is needed')
    return Turns(turns[0].count, lambda k: tuple(t.item(k) for t in turns))


# %%
#| export
def _known(values: Any) -> Turns:
    "The turns of an iterable whose length is known."
    if operator.length_hint(values, -1) < 0: refuse(f'zip() of a {type(values).__name__}, which does not say how long it is', hint='make it a list first; in place of a counter, write enumerate')
    values = list(values)
    return Turns(Dim(len(values)), lambda k: _alike(values))


# %%
#| export
def _alike(values: Any) -> Any:
    return _one_of(list(values), 'a list of different things, in a loop with an unknown number of turns')


# %%
#| export
def enumerated(values: Any, start: int = 0) -> Any:
    turns = as_turns(values)
    if turns is None: return enumerate(values, start)
    found = Turns(turns.count, lambda k: (size_value(k + as_dim(start)), turns.item(k)))
    found.named = True
    return found


# %%
#| export
def backwards(values: Any) -> Any:
    turns = as_turns(values)
    return reversed(values) if turns is None else Turns(turns.count, lambda k: turns.item(turns.count - 1 - k))


# %% [markdown]
# ## Lists that grow
#
# `out.append(row)` in such a loop makes a list whose length is not known. It remembers each element with how often it
# occurs, `(row, n)`; `np.stack` makes `(n, ...)` of it. While the loop runs,
# the list can be read [at its end](22ja_several.ipynb) and nowhere else.

# %%
#| export
class Growing(list):
    "A list made by a traced function."
    lazy = False  # it stands for a `map`, which NumPy does not take for a list
    def __init__(self, values: Iterable[Any] = (), counts: list[Dim] | None = None):
        super().__init__(values)
        trace = current()
        self.counts = counts or [Dim(1)]*super().__len__()
        self.depth, self.dirty, self.grown = trace.state.get('depth', 0), False, True
        self.broken = False   # has a loop that fills it ended early?
        self.several = False  # does it stand for several lists?
        self.mixed = False    # has a loop put something in front?
        self.key = (frame.f_code, frame.f_lasti) if (frame := user_frame()) else None  # where it is made: the same on every path
        trace.state.setdefault('lists', []).append(self)

    def plain(self) -> bool: return not self.dirty and not self.mixed and all(c == 1 for c in self.counts)
    def total(self) -> Dim: return sum((self._readable().counts), Dim(0))
    def counted(self) -> list[tuple[Any, Dim]]: return list(zip(list.__iter__(self._readable()), self.counts))

    def any_element(self) -> Any:
        "An element that stands for all: they must be alike."
        return _one_of(list(list.__iter__(self._readable())), 'the elements of this list differ', 'make two lists')

    def _readable(self) -> 'Growing':
        if self.dirty:
            refuse('a list is read while a loop fills it, or after a loop that may end early',
                   hint='use it after the loop; keep the last element in a variable')
        return self

    def append(self, value):
        if self.several: self._refuse_change()
        self.dirty |= current().state.get('depth', 0) > self.depth
        super().append(value)
        self.counts.append(Dim(1))

    def _refuse_change(self):
        refuse('a list that stands for several is changed', hint='make each list in full before it is put among the others, or fill an array: out[i, j] = ...')

    def extend(self, values):
        for v in values: self.append(v)
    def __iadd__(self, values):
        self.extend(values)
        return self
    def __bool__(self): return list.__len__(self._readable()) > 0


# %%
#| export
def _only_plain(name: str):
    "A list method that needs every element to be there."
    own = getattr(list, name)
    changes = name in ('insert', 'pop', 'remove', 'clear', 'reverse', 'sort', '__setitem__', '__delitem__', '__imul__')
    def method(self, *args, **kwargs):
        if not self.plain():
            self._readable()
            refuse(f'a list of {self.total()} elements is used one by one', hint='np.stack it, or loop over it; where elements are set, begin with np.zeros')
        if changes and self.several: self._refuse_change()
        if changes and current().state.get('depth', 0) > self.depth:
            refuse('a list is changed in a loop with an unknown number of turns', hint='only append to it')
        result = own(self, *args, **kwargs)
        if changes: self.counts = [Dim(1)]*list.__len__(self)
        return Growing(result) if name in ('__add__', '__mul__', '__rmul__',
                                           'copy') or name == '__getitem__' and isinstance(result, list) else result
    return method


# %%
#| export
def _repeated(own: Callable) -> Callable:
    "`[0.0]*n`: so many times the same."
    def method(self, n):
        if type(n) is not Size: return own(self, n)
        found = self.counted() if branch(claim(n.dim, '>=', 1)) else []
        return Growing([v for v, _ in found], [c*n.dim for _, c in found])
    return method


# %%
#| export
for _name in '''__getitem__ __iter__ __len__ __contains__ __add__ __mul__ __rmul__ __eq__ __reversed__ index count copy insert pop
                remove clear reverse sort __setitem__ __delitem__ __imul__'''.split():
    setattr(Growing, _name, _only_plain(_name))
Growing.__mul__ = Growing.__rmul__ = _repeated(Growing.__mul__)


# %% [markdown]
# ## What a variable looks like
#
# Two states are compared by their fingerprints: the shape, dtype and range of arrays, the value of everything else, and
# whatever can be reached from there.

# %%
#| export
def fingerprint(value: Any, seen: tuple = ()) -> Any:
    "What is known of a value, as something that compares."
    trace = current()
    if type(value) is Array: return 'array', tuple(map(trace.facts.normal, value.sizes)), str(value.dtype), *('locked',)*value.locked, _range_mark(value)
    if type(value) is Opaque: return 'opaque', value._class_.__name__, id(value) if value._fixed_ else 0
    if (dim := as_dim(value)) is not None and not isinstance(value, bool): return 'int', trace.facts.normal(dim)
    if isinstance(value, float | complex | str | bytes | bool | type(None) | np.generic): return type(value).__name__, repr(value)
    if isinstance(value, np.ndarray): return 'ndarray', value.shape, str(value.dtype), _checksum(value)
    if id(value) in seen or len(seen) > 8: return 'again', type(value).__name__
    inside = lambda v: fingerprint(v, (*seen, id(value)))
    if isinstance(value, Growing):
        if any(value is g for g in trace.state.get('filling', ())): return 'filling', id(value)
        return 'list', (value.dirty, value.mixed), tuple((inside(v), c) for v, c in zip(list.__iter__(value), value.counts))
    if isinstance(value, dict): return 'dict', tuple((repr(k), inside(v)) for k, v in value.items())
    if isinstance(value, list | tuple): return type(value).__name__, tuple(map(inside, value))
    if isinstance(value, set | frozenset): return 'set', repr(sorted(map(repr, value)))
    if isinstance(value, types.FunctionType): return 'function', value.__qualname__, tuple(map(inside, _reached(value)))
    if type(value) is type: return 'class', value.__qualname__, tuple((k, inside(v)) for k, v in _settings(value))
    if isinstance(value, types.ModuleType | type | types.BuiltinFunctionType):
        return 'same', getattr(value, '__qualname__', id(value))
    if isinstance(value, Turns): return 'turns', value.count, value.item
    if isinstance(value, range): return 'range', repr(value)
    if _compiled(value): return type(value).__name__, tuple(map(inside, value))
    if isinstance(value, Iterator): return _place(value, inside)
    own = tuple((k, inside(v)) for k, v in attributes(value).items())
    return type(value).__name__, own or id(value), inside(type(value))


# %%
#| export
def _compiled(value: Any) -> bool:
    "Is it a collection such as a deque, whose entries are all that it holds?"
    return isinstance(value, Collection) and not hasattr(value, '__dict__')

def attributes(value: Any) -> dict[str, Any]:
    "What an object holds, in its dictionary or in slots."
    slots = (n for c in type(value).__mro__ for n in np.atleast_1d(vars(c).get('__slots__', ())))
    return {str(n): getattr(value, n) for n in slots if hasattr(value, n)} | getattr(value, '__dict__', {})

def _settings(cls: type) -> Iterator[tuple[str, Any]]:
    "The attributes of a class that are no methods."
    return ((k, v) for k, v in vars(cls).items() if k[:2] != '__' and not callable(v) and not hasattr(v, '__get__'))


# %%
#| export
def _place(it: Iterator, inside: Callable) -> tuple:
    "How far an iterator has come; one that does not say is taken for another each time."
    try: return 'iterator', inside(it.__reduce__())
    except TypeError: return 'iterator', next(current().count)


# %%
#| export
def _range_mark(x: Array) -> tuple:
    r = range_of(x)
    picks, _ = current().state.get('masks', {}).get(id(x), (None, None))
    return 'range', picks and str(picks.size), x.sure, r.given, *(end and current().facts.normal(end) for end in (r.low, r.high, r.total))

def _plain(mark: Any) -> Any:
    "A fingerprint without ranges."
    if isinstance(mark, dict): return {n: _plain(m) for n, m in mark.items()}
    return tuple(_plain(m) for m in mark if not (isinstance(m, tuple) and m[:1] == ('range',))) if isinstance(mark, tuple) else mark


# %%
#| export
def _dims(mark: Any) -> Iterator[Dim]:
    if isinstance(mark, Dim): yield mark
    elif isinstance(mark, tuple):
        for m in mark: yield from _dims(m)


# %%
#| export
def _names(mark: Any) -> set[str]:
    "The names in a fingerprint, or in a run of them."
    return {n for m in _dims(mark) for n in names_of(m)}


# %%
#| export
def _one_of(values: list, reason: str, hint: str = '') -> Any:
    "One value that stands for several: they must be alike, and only their numbers may have different ranges."
    marks = [fingerprint(v) for v in values]
    if any(_plain(m) != _plain(marks[0]) for m in marks): refuse(reason, hint=hint)
    if any(m != marks[0] for m in marks): _forget_in(values[0])
    return _stand_in(values[0])


# %%
#| export
def _stand_in(value: Any) -> Any:
    "Another one of the same kind: of two masks that look alike each picks a number of its own, and what one list gets the others do not."
    if type(value) is Array: return view(value, Array(value.axes, value.dtype, value.lost, value.sure))
    if type(value) is Opaque or not isinstance(value, tuple | Growing): return value
    if isinstance(value, tuple): return type(value)(*map(_stand_in, value)) if hasattr(value, '_fields') else tuple(map(_stand_in, value))
    made = Growing(list.__iter__(value), list(value.counts))
    made.dirty, made.mixed, made.several = value.dirty, value.mixed, True
    return made


# %%
#| export
def _forget_in(value: Any, seen: tuple = ()) -> None:
    "Forget the ranges of all arrays that a value holds."
    if type(value) is Array: return forget(value)
    if id(value) in seen or len(seen) > 8 or isinstance(value, types.ModuleType | type): return
    inside = list.__iter__(value) if isinstance(value, list) else value if isinstance(value, tuple) else \
        value.values() if isinstance(value, dict) else _reached(value) if isinstance(value, types.FunctionType) else \
        value if _compiled(value) else attributes(value).values()
    for v in inside: _forget_in(v, (*seen, id(value)))


# %%
#| export
def _checksum(a: np.ndarray) -> int:
    return zlib.crc32(np.ascontiguousarray(a)) if a.dtype != object and a.nbytes < 1 << 22 else id(a)


# %%
#| export
def _shifted(mark: Any, step: dict[str, Dim]) -> Any:
    "A fingerprint with `k + 1` for `k`."
    if isinstance(mark, Dim): return current().facts.normal(substitute(mark, step))
    return tuple(_shifted(m, step) for m in mark) if isinstance(mark, tuple) else mark


# %%
#| export
def _variables(frame: types.FrameType, dead: tuple[str, ...]) -> dict[str, Any]:
    "A function's variables, and the globals that it names."
    own = {n: v for n, v in frame.f_locals.items() if n not in dead}
    shared = {n: frame.f_globals[n] for n in frame.f_code.co_names if n in frame.f_globals and n not in own}
    return {n: v for n, v in (shared | own).items() if not n.startswith(('__bendml', '.'))}  # .0: what a comprehension iterates over

def _state(frame: types.FrameType, dead: tuple[str, ...]) -> dict[str, Any]:
    return {n: fingerprint(v) for n, v in _variables(frame, dead).items()}


# %%
#| export
def _reached(f: types.FunctionType) -> Iterator[Any]:
    "What a helper can change: the variables around it, and the globals that it names."
    if (f.__module__ or '').partition('.')[0] in ('bendml', 'numpy'): return
    for cell in f.__closure__ or ():
        try: yield cell.cell_contents
        except ValueError: pass
    yield from (f.__globals__[n] for n in f.__code__.co_names if n in f.__globals__
                and not isinstance(f.__globals__[n], types.ModuleType | type))


# %%
#| export
def _unchanged(first: dict, second: dict, step: dict[str, Dim]) -> bool:
    return all(_shifted(first.get(name), step) == _shifted(mark, {}) for name, mark in second.items())

def _refuse_change(first: dict, second: dict, step: dict[str, Dim]) -> None:
    "Refuse a variable that one more turn changes."
    for name, mark in second.items():
        before = _shifted(first.get(name), step)
        if before == _shifted(mark, {}): continue
        if before and before[0] == mark[0] == 'tuple' and len(before[1]) == len(mark[1]):  # which of its parts?
            parts = [(a, b, i) for i, (a, b) in enumerate(zip(before[1], _shifted(mark[1], {}))) if a != b]
            i = min(parts, key=lambda p: p[0][0] == p[1][0] and p[1][0] in ('int', 'float', 'counter'))[2]  # a number, if it is no other
            name, before, mark = f'{name}[{i}]', before[1][i], mark[1][i]
        what = 'its shape' if mark[0] == 'array' and before and before[0] == 'array' else 'its value'
        if _plain(before) == _plain(mark): what = 'its numbers'
        simple = all(m and m[0] in ('int', 'array', 'float', 'bool', 'str') and len(m) > 1 for m in (before, mark))
        shown = [str(m[1]) if simple else None for m in (before, mark)]
        hint = 'the loop runs an unknown number of times, so a counter or flag has no known value; if no shape needs it, begin with np.zeros(())'
        if mark and mark[0] == 'turns': hint = 'several values must be the same ones in each turn: make them before the loop, or write the loop outside of functions with @typed'
        if what == 'its shape': hint = 'append to a list, and np.stack it after the loop'
        refuse(f'{name} changes {what} in each turn of the loop', shown[0], shown[1], hint)


# %%
from bendml.shape.trace import Trace, tracing
from bendml.shape.symbols import axis
n, k = Dim('n'), Dim("k")
with tracing(Trace()):
    before, after = {'row': fingerprint(Array([axis(n)]))}, {'row': fingerprint(Array([axis(n - k)]))}
    print(_unchanged(before, before, {}), _unchanged(before, after, {}))

# %% [markdown]
# ## What this does not show
#
# Objects that hide what they hold (compiled classes that are no collection) are compared by identity: a change inside is not seen.
