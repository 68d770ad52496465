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
class Opaque:
    "A value that is not known, of a class that is."
    __slots__ = 'name', 'cls', 'like', 'fixed', 'answers'
    __array_ufunc__ = None  # NumPy leaves an operator with it to us

    def __init__(self,
        name: str,           # how the program speaks of it, for messages
        cls: type = object,
        like: Any = None,    # for the kind of numbers: one that it may be
        fixed: bool = True,  # always the same value
    ):
        self.name, self.cls, self.like, self.fixed, self.answers = name, cls, like, fixed, {}

    __class__ = property(lambda self: self.cls)  # isinstance says what it will say when the program runs
    __hash__ = lambda self: refuse(f'{self} is looked up in a dictionary or set, and its value is not known', hint=self.hint)
    @property
    def hint(self) -> str:
        if self.like is not None: return 'say what the numbers are: F32[...], F64[...] or Bool[...] around the annotation'
        name = self.name.partition('.')[0].partition('[')[0]
        return f'say which values it has: {name}: Literal["a", "b"], or check it for one: @typed(known={{"{name}": ...}})'

    def ask(self, *question: Any) -> bool:
        "Yes or no: both are traced."
        if not self.fixed: return choose()
        key = tuple(map(_key, question))
        if key not in self.answers: self.answers[key] = choose(), question  # what was asked about is kept, and so its id
        return self.answers[key][0]

    def part(self, name: str, question: tuple, cls: type | None = None, like: Any = None) -> 'Opaque':
        "What an attribute or function says of it."
        if not self.fixed: return Opaque(name, cls or Part, like, False)
        key = ('part', *map(_key, question))
        if key not in self.answers: self.answers[key] = Opaque(name, cls or Part, like), question
        return self.answers[key][0]

    def __eq__(self, other):
        if other is self: return True
        if self.cls is np.dtype: other = _dtype(other)
        if self.cls not in (str, np.dtype) or not isinstance(other, self.cls) or type(other) is Opaque: return self.ask('==', other)
        found = next((q[1] for way, q in self.answers.values() if way is True and q[0] == '=='), None)
        return self.ask('==', other) if found is None else found == other
    def __ne__(self, other): return not self == other
    def __bool__(self): return self.ask('is true')
    def __contains__(self, other): return self.ask('in', other)

    def __getattr__(self, name):
        if name.startswith('__') or name == 'dtype' and self.like is None: raise AttributeError(name)
        if name == 'dtype': return self.like  # np.zeros(3, x.dtype)
        if self.cls is not Part and (self.cls is object or not hasattr(self.cls, name)):
            refuse(f'{self}.{name} is not known', hint=f'annotate the class of {self} with the shapes of its fields, as a dataclass, or check '
                   f'for one: @typed(known={{"{self.name}": ...}})')
        kind = str if self.cls is np.dtype and name in ('kind', 'name', 'char', 'str') else None
        return self.part(f'{self.name}.{name}', (name,), kind, self.like if name == 'type' else None)
    def __call__(self, *_, **__): return Opaque(f'{self.name}()', Part, fixed=False)
    def __iter__(self): refuse(f'iteration over {self}, which is not known', hint=self.hint)
    def __len__(self): refuse(f'the length of {self} is not known', hint=self.hint)
    def __str__(self): return told(self.name)
    def __format__(self, _): return told(self.name)
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
def _operator(sign: str, question: bool) -> Callable:
    def method(self: Opaque, other: Any) -> Any:
        if hasattr(type(other), '__array_function__') or type(other).__name__ == 'Array':
            refuse(f'{self} is used as a number, and nothing says that it is one', hint=self.hint)
        return self.ask(sign, other) if question else Opaque(f'{self.name} {sign} ...', Part, fixed=False)
    return method


# %%
#| export
for _name, _sign in dict(add='+', radd='+', sub='-', rsub='-', mul='*', rmul='*', truediv='/', rtruediv='/', floordiv='//', mod='%',
                         rmod='%', getitem='[]').items():
    setattr(Opaque, f'__{_name}__', _operator(_sign, False))
for _name, _sign in dict(lt='<', le='<=', gt='>', ge='>=').items(): setattr(Opaque, f'__{_name}__', _operator(_sign, True))


# %% [markdown]
# ## Texts
#
# `f"n is {len(x)}"` is a text that is not known. The parts that make it so tell it.

# %%
#| export
def told(text: str) -> str:
    "A placeholder in a text, for something that is not known."
    if (trace := getattr(_running, 'trace', None)): trace.state['told'] = True
    return text


# %%
#| export
def listening() -> Any:
    "Begin to listen; returns what `text` needs."
    state = current().state
    before, state['told'] = state.get('told'), False
    return before


# %%
#| export
def text(before: Any, made: str) -> 'str | Opaque':
    "A text that was made, opaque if one of its parts was not known."
    state = current().state
    unknown, state['told'] = state['told'], before or state['told']
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
