# %%
#| default_exp shape.opaque

# %% [markdown]
# # What has no shape
# > A text, an object, the kind of an array's numbers: not known in a trace, so that a question about it goes both ways.

# %% [markdown]
# A function takes more than arrays: a name, a random generator, an object. And an array whose annotation says nothing of its
# numbers may hold any: `if x.dtype == np.float32` is a question whose answer nobody knows at definition. Such a value is
# `Opaque`: it can be passed on, printed and asked, and each question is a [choice](21c_trace.ipynb).

# %%
#| hide
#| export
from typing import Any, Callable

import numpy as np

from bendml.shape.trace import _running, choose, current, refuse


# %% [markdown]
# ## One value
#
# What is asked twice is answered twice in the same way, unless the value is one of many (a text made in a loop). A text that
# is `"a"` is not `"b"`.

# %%
#| export
class _Asked:
    "What is known of a value, and what was answered about it on this path."
    __slots__ = '_name_', '_class_', '_like_', '_fixed_'  # no names that a program would ask for
    def __init__(self,
        name: str,           # how the program speaks of it, for messages
        cls: type = object,
        like: Any = None,    # for the kind of numbers: one that it may be
        fixed: bool = True,  # always the same value
    ):
        self._name_, self._class_, self._like_, self._fixed_ = name, cls, like, fixed

    @property
    def _hint_(self) -> str:
        if self._like_ is not None: return 'say what the numbers are: F32[...], F64[...] or Bool[...] around the annotation'
        name = self._name_.partition('.')[0].partition('[')[0]
        if not name.isidentifier(): return ''
        values = f'say which values it has: {name}: Literal["a", "b"], or ' if self._class_ is str else ''
        return f'{values}check it for one value: @typed(known={{"{name}": ...}})'

    @property
    def _answers_(self) -> dict:
        "What was answered on this path; in another trace it may be answered in another way."
        return current().state.setdefault('asked', {}).setdefault(id(self), (self, {}))[1]

    def _ask_(self, *question: Any) -> bool:
        "Yes or no: both are traced."
        if not self._fixed_: return choose()
        key = tuple(map(_key, question))
        if key not in self._answers_: self._answers_[key] = choose(), question  # what was asked about is kept, and so its id
        return self._answers_[key][0]

    def _part_(self, name: str, question: tuple, cls: type | None = None, like: Any = None) -> 'Opaque':
        "What an attribute or function says of it."
        if not self._fixed_: return Opaque(name, cls or Part, like, False)
        key = ('part', *map(_key, question))
        if key not in self._answers_: self._answers_[key] = Opaque(name, cls or Part, like), question
        return self._answers_[key][0]


# %%
#| export
class Opaque(_Asked):
    "A value that is not known, of a class that is."
    __slots__ = ()
    __array_ufunc__ = None  # NumPy leaves an operator with it to us
    __class__ = property(lambda self: self._class_)  # isinstance says what it will say when the program runs
    __hash__ = lambda self: refuse(f'{self} is looked up in a dictionary or set, and its value is not known', hint=self._hint_)

    def __eq__(self, other):
        if other is self: return True
        if self._class_ in (str, bytes) and getattr(other, 'axes', ()): return NotImplemented  # the array's turn
        if self._class_ is np.dtype: other = _dtype(other)
        if self._class_ not in (str, np.dtype) or not isinstance(other, self._class_) or type(other) is Opaque: return self._ask_('==', other)
        found = next((q[1] for way, q in self._answers_.values() if way is True and q[0] == '=='), None)
        return self._ask_('==', other) if found is None else found == other
    def __ne__(self, other):
        if self._class_ in (str, bytes) and getattr(other, 'axes', ()): return NotImplemented
        return not self == other
    def __bool__(self): return self._ask_('is true')
    def __contains__(self, other): return self._ask_('in', other)

    def __getattr__(self, name):
        if name.startswith('__') or name in ('numbers', 'grown') or name == 'dtype' and self._like_ is None: raise AttributeError(name)
        if name == 'dtype': return self._like_  # np.zeros(3, x.dtype)
        if self._class_ is not Part and (self._class_ is object or not hasattr(self._class_, name)):
            refuse(f'{self}.{name} is not known', hint=f'annotate the class of {self} with the shapes of its fields, as a dataclass, or check '
                   f'for one: @typed(known={{"{self._name_}": ...}})')
        kind = str if self._class_ is np.dtype and name in ('kind', 'name', 'char', 'str') else None
        return self._part_(f'{self._name_}.{name}', (name,), kind, self._like_ if name == 'type' else None)
    def __call__(self, *_, **__): return Opaque(f'{self._name_}()', Part, fixed=False)
    def __iter__(self): refuse(f'iteration over {self}, which is not known', hint=self._hint_)
    def __len__(self): refuse(f'the length of {self} is not known', hint=self._hint_)
    def __str__(self): return told(self._name_)
    def __format__(self, _): return told(self._name_)
    __repr__ = __str__


# %%
#| export
class Part:
    "What a method or attribute of an opaque value gives: nothing is known of it."


# %%
#| export
def _key(value: Any) -> Any: return value if isinstance(value, str | type | np.dtype) and type(value) is not Opaque else id(value)

def _dtype(value: Any) -> Any:
    try: return value if type(value) is Opaque else np.dtype(value)
    except TypeError: return value


# %% [markdown]
# Arithmetic gives another such value; with an array it is refused, since the result would have a shape.

# %%
#| export
def _no_number(value: Opaque, *_: Any) -> None:
    refuse(f'{value} is used as a number, and nothing says that it is one', hint=value._hint_)


# %%
#| export
def _operator(sign: str, question: bool) -> Callable:
    def method(self: Opaque, other: Any, *_: Any) -> Any:
        if hasattr(type(other), '__array_function__'): _no_number(self)
        return self._ask_(sign, other) if question else Opaque(f'{self._name_} {sign} ...', Part, fixed=False)
    return method


# %%
#| export
for _name, _sign in dict(add='+', radd='+', sub='-', rsub='-', mul='*', rmul='*', truediv='/', rtruediv='/', floordiv='//', mod='%',
                         rmod='%', pow='**', rpow='**', matmul='@', rmatmul='@', getitem='[]').items():
    setattr(Opaque, f'__{_name}__', _operator(_sign, False))
for _name in ('float', 'int', 'index', 'round', 'neg', 'abs'): setattr(Opaque, f'__{_name}__', _no_number)
for _name, _sign in dict(lt='<', le='<=', gt='>', ge='>=').items(): setattr(Opaque, f'__{_name}__', _operator(_sign, True))


# %% [markdown]
# ## Texts
#
# `f"n is {len(x)}"` is a text that is not known. The parts that make it so tell it.

# %%
#| export
def told(text: str) -> str:
    "A placeholder in a text, for something that is not known."
    if (trace := getattr(_running, 'trace', None)): trace.state['answered'] = True
    return text


# %%
#| export
def listening() -> Any:
    "Begin to listen; returns what `text` needs."
    state = current().state
    before, state['answered'] = state.get('answered'), False
    return before


# %%
#| export
def text(before: Any, made: str) -> 'str | Opaque':
    "A text that was made, opaque if one of its parts was not known."
    state = current().state
    unknown, state['answered'] = state['answered'], before or state['answered']
    return Opaque(made, str, fixed=False) if unknown else made


# %%
from bendml.shape.trace import Trace, tracing
with tracing(Trace(plan=(False,))) as trace:
    mode = Opaque('mode', str)
    print(mode == 'a', mode == 'a', mode == 'b', mode == 'c', trace.made)

# %% [markdown]
# ## What this does not show
#
# Two values are never taken for the same one, also where the program could know it: `a.lower() == a.lower()` goes both ways.
