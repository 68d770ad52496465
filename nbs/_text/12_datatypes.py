# %%
#| default_exp laws.datatypes

# %% [markdown]
# # Datatypes
# > Values that can be made in a few ways, and in no other.

# %% [markdown]
# A natural number is zero, or the successor of a natural number. A list is empty, or a head before a list. Said like this,
# "all natural numbers" becomes something that can be walked through: if a claim holds for zero, and passes from each
# number to its successor, then it holds for all of them, like dominoes. This page lets you say it:
#
# ```python
# @datatype
# class Nat:
#     class Z: pass
#     class S: pred: Self
# ```
#
# `Nat.Z()` and `Nat.S(n)` are then values that cannot change, that compare by what they are, and that `match` takes apart.
# The logic gets the same constructors, and knows that there are no others.

# %%
#| hide
#| export
import itertools, random, typing
from fractions import Fraction
from typing import Generic, Iterator, Self, TypeVar

from bendml.laws.terms import BOOL, INT, REAL, Sort, constructors, fields


# %% [markdown]
# ## From annotations to sorts

# %%
#| export
class LawError(Exception):
    "Something that bendml does not accept in a datatype, a pure function or a law: where, expected, observed, and a hint."
    def __init__(self, where: str, problem: str, expected: str, observed: str, hint: str = ''):
        super().__init__(f'{where}: {problem}\n- expected : {expected}\n- observed : {observed}' + (f'\nhint: {hint}' if hint else ''))
        self.problem = problem


# %%
#| export
I, V = TypeVar('I'), TypeVar('V')


# %%
#| export
class Array(Generic[I, V]):
    "A cell for every integer, all but a few of them alike. It does not change; `store` makes another."
    __slots__ = ('default', 'cells')
    def __init__(self, default, cells=()):
        object.__setattr__(self, 'default', default)
        object.__setattr__(self, 'cells', {i: v for i, v in dict(cells).items() if v != default})
    def __setattr__(self, *_): raise AttributeError('an Array does not change; `store` makes another')
    def __eq__(self, other): return isinstance(other, Array) and (self.default, self.cells) == (other.default, other.cells)
    def __hash__(self): return hash((self.default, frozenset(self.cells.items())))
    def __repr__(self): return f"Array({self.default!r}{f', {self.cells}' if self.cells else ''})"


# %%
#| export
def select(a: Array[int, V], i: int) -> V:
    "The cell at index `i`."
    return a.cells.get(i, a.default)

def store(a: Array[int, V], i: int, value: V) -> Array[int, V]:
    "The array with another value in the cell at `i`."
    return Array(a.default, a.cells | {i: value})


# %%
a = store(Array(0), 3, 7)
assert select(a, 3) == 7 and select(a, 2) == 0 and store(a, 3, 0) == Array(0)
a

# %%
#| export
_PLAIN = {int: INT, bool: BOOL, Fraction: REAL}


# %%
#| export
def sort_of(annotation: object, where: str) -> Sort:
    "The sort that an annotation stands for; `LawError` for one that the logic has no sort for."
    refuse = lambda observed, hint: LawError(where, 'not a type that the logic knows', 'int, bool, Fraction, Array[int, ...], a datatype, an abstract class or a type variable', observed, hint)
    if isinstance(annotation, str): raise refuse(f'the text {annotation!r}', 'write the class itself, without quotes; in a datatype, write Self')
    if annotation is float: raise refuse('float', 'floats round, and no law of algebra holds for them; Fraction is exact')
    if annotation in _PLAIN: return _PLAIN[annotation]
    if isinstance(annotation, TypeVar): return Sort(annotation)
    head, args = typing.get_origin(annotation) or annotation, typing.get_args(annotation)
    args = tuple(sort_of(a, where) for a in args)
    if head is Array and len(args) == 2:
        if args[0] != INT: raise refuse(str(annotation), 'an array is indexed by int')
        return Sort('Array', args)
    if not isinstance(head, type) or not ('__constructors__' in vars(head) or '__samples__' in vars(head)):
        hint = "Python's own lists can change; write List[...], with Nil and Cons, from bendml.laws" if head is list else 'is it a class with @datatype or @abstract above it?'
        raise refuse(getattr(annotation, '__name__', str(annotation)), hint)
    if len(args) != len(head.__parameters__): raise refuse(str(annotation), f'{head.__name__} takes {len(head.__parameters__)} types in brackets')
    return Sort(head, args)


# %% [markdown]
# What the values of a sort are to Python; constructors check it when they are called. `True` is no `int` here.

# %%
#| export
def kind_of(s: Sort) -> type | None:
    "The type of a sort's values; None where any value may be one."
    if s.head == 'Array': return Array
    plain = {v: k for k, v in _PLAIN.items()}.get(s)
    return plain or (s.head if constructors(s) or isinstance(s.head, type) and '__constructors__' in vars(s.head) else None)


# %% [markdown]
# ## Values
#
# Values may be deep: a list of ten thousand numbers is ten thousand constructors inside each other. So comparing and
# printing go step by step instead of recursing, and the hash is kept.

# %%
#| export
_EXACT = {int, bool, Fraction, Array}


# %%
#| export
class _Value:
    "What all constructors share. They define it themselves, so that no datatype's class can change it."
    def init(self, *args):
        names, kinds = self.__match_args__, self.__kinds__
        if len(args) != len(kinds): raise TypeError(f'{type(self).__name__} takes {len(kinds)} values, not {len(args)}')
        for name, kind, value in zip(names, kinds, args):
            if kind is not None and type(value) is not kind and (kind in _EXACT or not isinstance(value, kind)):
                raise TypeError(f'{type(self).__name__}: {name} is {kind.__name__}, and {value!r:.60} is not')
            self.__dict__[name] = value
        self.__dict__['_hash'] = hash((type(self), *args))

    def equal(self, other):
        todo = [(self, other)]
        while todo:
            a, b = todo.pop()
            if a is b: continue
            if '_hash' not in getattr(a, '__dict__', ()):
                if a != b: return False
            elif type(a) is not type(b) or a._hash != b._hash: return False
            else: todo += [(getattr(a, n), getattr(b, n)) for n in a.__match_args__]
        return True

    def show(self):
        out, todo = [], [self]
        while todo:
            v = todo.pop()
            if isinstance(v, str): out.append(v)
            elif getattr(type(v), '__repr__', 0) is not _Value.show: out.append(repr(v))
            else:
                inside = [x for n in v.__match_args__ for x in (', ', getattr(v, n))][1:]
                todo += [')', *reversed(inside), type(v).__name__ + '(']
        return ''.join(out)

    def unmade(self, *_): raise TypeError(f'{self.__class__.__name__}: a value is made by a constructor, and a constructor is not a base class')
    def frozen(self, *_): raise AttributeError(f'a {type(self).__name__} does not change')


# %% [markdown]
# ## `@datatype`

# %%
#| export
_ALLOWED = {'__module__', '__qualname__', '__doc__', '__dict__', '__weakref__', '__parameters__', '__orig_bases__',
            '__repr__', '__str__', '__iter__', '__len__', '__int__'}


# %%
#| export
def datatype(cls: type) -> type:
    "Make a class of frozen values out of the classes inside it, its constructors; and a sort of the logic."
    where = f'{cls.__module__}.{cls.__qualname__}'
    makers = [m for m in vars(cls).values() if isinstance(m, type)]
    odd = [n for n in vars(cls) if n.startswith('__') and n not in _ALLOWED]
    if odd: raise LawError(where, 'not a datatype', 'constructors, and methods with names of their own', f'{odd[0]} in the class', 'a datatype brings its own equality and its own making')
    if type(cls) is not type or set(cls.__bases__) - {object, Generic}: raise LawError(where, 'not a datatype', 'a plain class', 'a class that inherits', 'a datatype stands alone')
    if not makers: raise LawError(where, 'not a datatype', 'a class for each constructor, inside the class', 'none', 'class Z: pass')
    cls.__parameters__ = getattr(cls, '__parameters__', ())
    cls.__constructors__ = ()
    own = Sort(cls, tuple(map(Sort, cls.__parameters__)))
    for m in makers: setattr(cls, m.__name__, _constructor(cls, m, own, where))
    cls.__constructors__ = tuple(getattr(cls, m.__name__) for m in makers)
    _check(cls, own, where)
    cls.__init__, cls.__init_subclass__ = _Value.unmade, classmethod(_Value.unmade)
    return cls


# %%
#| export
def _constructor(cls: type, body: type, own: Sort, where: str) -> type:
    "The class of the values that one constructor makes."
    more = [n for n in vars(body) if n not in ('__module__', '__dict__', '__weakref__', '__doc__', '__annotations__', '__qualname__')]
    if more or body.__bases__ != (object,): raise LawError(f'{where}.{body.__name__}', 'not a constructor', 'fields with annotations, and nothing else', (more or ['a class that inherits'])[0])
    fields = tuple((n, own if a is Self else sort_of(a, f'{where}.{body.__name__}.{n}')) for n, a in vars(body).get('__annotations__', {}).items())
    if loose := [s for _, s in fields if isinstance(s.head, TypeVar) and s.head not in cls.__parameters__]:
        raise LawError(f'{where}.{body.__name__}', 'an unknown type variable', f'Generic[{loose[0]}] in the head of the class', str(loose[0]))
    if clash := [n for n in (body.__name__, *dict(fields)) if not n.isidentifier()] + [n for n, _ in fields if n in vars(cls) or n.startswith('_')]:
        raise LawError(f'{where}.{body.__name__}', 'a field that is also something else', 'a name of its own', clash[0])
    made = dict(__module__=cls.__module__, __qualname__=f'{cls.__qualname__}.{body.__name__}', __doc__=body.__doc__, __fields__=fields, __kinds__=tuple(kind_of(s) for _, s in fields),
                __match_args__=tuple(n for n, _ in fields), __init__=_Value.init, __eq__=_Value.equal, __ne__=object.__ne__, __setattr__=_Value.frozen,
                __delattr__=_Value.frozen, __hash__=lambda self: self._hash)
    if '__repr__' not in vars(cls): made['__repr__'] = _Value.show
    return type(body.__name__, (cls,), made)


# %%
#| export
def _check(cls: type, own: Sort, where: str) -> None:
    "Some value can be made, and every value ends: a datatype occurs in its own fields only as itself."
    inside = lambda s: s != own and (s.head is cls or any(s2.head is cls or inside(s2) for s2 in s.args))
    nested = [n for c in cls.__constructors__ for n, s in c.__fields__ if inside(s)]
    if nested: raise LawError(where, 'a datatype inside its own field', 'Self as the whole field', nested[0], 'two constructors can say the same without nesting')
    if all(own in (s for _, s in c.__fields__) for c in cls.__constructors__):
        raise LawError(where, 'no value can ever be made', 'a constructor without Self', ', '.join(c.__name__ for c in cls.__constructors__))


# %%
@datatype
class Nat:
    class Z: pass
    class S: pred: Self

two = Nat.S(Nat.S(Nat.Z()))
two

# %%
assert two == Nat.S(Nat.S(Nat.Z())) and two != Nat.Z() and hash(two) == hash(Nat.S(Nat.S(Nat.Z())))
match two:
    case Nat.S(m): print('the successor of', m)

# %% [markdown]
# ## Parametric datatypes
#
# A list of what? `Generic[A]` leaves it open, and `List[Nat]`, `List[int]`, `List[List[Nat]]` are three sorts.

# %%
#| export
A = TypeVar('A')


# %%
#| export
@datatype
class List(Generic[A]):
    "A list: nothing, or a head before a list."
    class Nil: pass
    class Cons:
        head: A
        tail: Self
    def __iter__(self):
        while self.__match_args__: yield self.head; self = self.tail
    def __len__(self): return sum(1 for _ in self)
    def __repr__(self): return f"[{', '.join(map(repr, self))}]"


# %%
#| export
Nil, Cons = List.Nil, List.Cons

def to_list(items: typing.Iterable) -> List:
    "A `List` of the same things in the same order."
    made = Nil()
    for x in reversed(list(items)): made = Cons(x, made)
    return made


# %%
assert to_list(range(10_000)) == to_list(range(10_000)) and list(to_list('ab')) == ['a', 'b']
to_list([1, 2, 3])

# %%
print(sort_of(List[List[Nat]], 'here'), Cons.__fields__[1][1])


# %% [markdown]
# ## Abstract sorts
#
# Some laws hold whatever a thing is: a matrix product does not care what a number is, as long as it can be added and
# multiplied. `@abstract` above a class says "some set; we do not say which". The samples are what such a law is run on.

# %%
#| export
def abstract_sort(cls: type) -> type:
    "An unknown set. `samples` in the class are the values that laws about it are run on."
    samples = tuple(vars(cls).get('samples', (0, 1, 2)))
    if not samples: raise LawError(cls.__qualname__, 'no samples', 'at least one value', 'none', 'samples = (0, 1, 2)')
    cls.__samples__, cls.__parameters__ = samples, ()
    return cls


# %% [markdown]
# ## All values of a size
#
# The size of a value is the number of constructors with fields in it, plus the size of its numbers. `0` comes before `1`
# and `-1`, then `2` and `-2`; a list of one element before one of two.

# %%
#| export
_HALVES = [Fraction(0), Fraction(1), Fraction(-1), Fraction(2), Fraction(1, 2), Fraction(-2)]


# %%
#| export
def values(s: Sort, size: int) -> Iterator:
    "All values of a sort that have this size; of an unknown set, its samples."
    if s == BOOL: yield from (False, True) if size == 0 else ()
    elif s == INT: yield from (size, -size) if size else (0,)
    elif s == REAL: yield from _HALVES[size:size + 1]
    elif isinstance(s.head, TypeVar): yield from (size,) if size < 3 else ()
    elif s.head == 'Array':
        for first, *cells in tuples((s.args[1],)*4, size): yield Array(first, enumerate(cells))
    elif not constructors(s): yield from s.head.__samples__[size:size + 1]
    else:
        for c in constructors(s):
            inside = tuple(f for _, f in fields(c, s))
            if not inside and size == 0: yield c()
            elif inside and size > 0: yield from itertools.starmap(c, tuples(inside, size - 1))


# %%
#| export
def tuples(sorts: tuple[Sort, ...], size: int) -> Iterator[tuple]:
    "All tuples of values of these sorts whose sizes add up."
    if not sorts: yield from ((),) if size == 0 else ()
    elif len(sorts) == 1: yield from ((v,) for v in values(sorts[0], size))
    else:
        for first in range(size + 1):
            for v in values(sorts[0], first): yield from ((v, *rest) for rest in tuples(sorts[1:], size - first))


# %%
[list(values(Sort(List, (INT,)), n)) for n in range(3)]


# %% [markdown]
# Small values miss what happens only among larger ones: an offset that is wrong from 256 on. Random values of some size
# come after the small ones. The randomness is seeded, so a run can be repeated.

# %%
#| export
def random_value(s: Sort, rng: random.Random, size: int = 6):
    "A random value: numbers up to a few hundred, a few constructors."
    if s == BOOL: return rng.random() < 0.5
    if s == INT: return rng.choice((rng.randint(-3, 9), rng.randint(-300, 300)))
    if s == REAL: return Fraction(rng.randint(-9, 9), rng.randint(1, 4))
    if isinstance(s.head, TypeVar): return rng.randrange(5)
    if s.head == 'Array': return Array(random_value(s.args[1], rng, 1), {i: random_value(s.args[1], rng, 1) for i in range(-2, 8)})
    if not constructors(s): return rng.choice(s.head.__samples__)
    grows = lambda c: sum(f == s for _, f in fields(c, s))
    choice = rng.choice([c for c in constructors(s) if size > 0 or not grows(c)])
    if size > 0 and rng.random() < 0.6: choice = rng.choice([c for c in constructors(s) if grows(c)] or [choice])
    return choice(*(random_value(f, rng, (size - 1)//max(grows(choice), 1)) for _, f in fields(choice, s)))


# %% [markdown]
# ## What is refused
#
# A field that is a float, a type in quotes, a constructor that needs a value before there is one:

# %%
for body in ("class P:\n    class At: x: float", "class Q:\n    class Go: next: 'Q'", "class R:\n    class More: rest: Self"):
    try: exec(f'@datatype\n{body}')
    except LawError as e: print(e, '\n')


# %% [markdown]
# And a value that does not fit is refused when it is made. Python takes `True` for the number 1; we do not.

# %%
@datatype
class Token:
    class Byte: value: int

try: Token.Byte(True)
except TypeError as e: print(e)

# %% [markdown]
# ## What this does not show
#
# Two datatypes that refer to each other, or one that holds a list of itself, are not accepted: our induction would not
# be able to say what is smaller. A value's class could still be changed by code that is out to cheat; Python has no lock
# for that.
