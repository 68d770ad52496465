# %%
#| default_exp shape.objects

# %% [markdown]
# # Objects in a trace
# > What a method needs of `self`, what it changes, and what `self` is while its class is still being written.

# %% [markdown]
# A method is checked with a `self` that has the attributes that its class has annotated. Not all of them must be there when
# it is called: what `fit` sets, it does not need. So the stand-in for `self` takes notes: an attribute is needed if some path
# reads it before setting it, and what is set must be what the class says when the method ends.

# %%
#| hide
#| export
import ast, sys, types
from abc import ABCMeta
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from bendml.shape.messages import Place, ShapeError, place_of, source_tree
from bendml.shape.trace import _running, current, refuse, user_frame
from bendml.shape.calls import call
from bendml.shape.questions import attribute, has_attribute


# %%
#| export
@dataclass
class Notes:
    "What a trace has seen of `self`."
    me: Any
    at_first: dict[str, Any]                                  # its attributes when the method began
    read: set[str] = field(default_factory=set)               # those that were read before they were set
    places: dict[str, Place] = field(default_factory=dict)    # where an attribute was set

    def held(self) -> dict[str, Any]: return object.__getattribute__(self.me, '__dict__')

    def saw(self, name: str) -> None:
        if name in self.at_first and name not in self.places and self.held().get(name) is self.at_first[name]: self.read.add(name)
        if name == '__dict__' and not sys._getframe(2).f_globals.get('__name__', '').startswith('bendml.shape.'): self.read |= self.at_first.keys()

    def changed(self) -> dict[str, Any]:
        "The attributes that were set, with their values now."
        held = self.held()
        if gone := self.at_first.keys() - held.keys(): refuse(f'self.{min(gone)} is deleted', hint='set it to None, and annotate it with "| None"')
        return {n: v for n, v in held.items() if n in self.places or n not in self.at_first or v is not self.at_first[n]}


# %%
#| export
def take_notes(me: Any) -> Notes | None:
    "Begin to take notes of an object, if it is a stand-in."
    if not isinstance(me, Watched): return None
    current().state['notes'] = Notes(me, dict(object.__getattribute__(me, '__dict__')))
    return current().state['notes']

def _notes(me: Any) -> Notes | None:
    trace = getattr(_running, 'trace', None)
    notes = trace and trace.state.get('notes')
    return notes if notes and notes.me is me else None


# %%
#| export
class Watched:
    "The class of a stand-in for `self`: it tells the notes what is read and set."
    __to_come__ = frozenset()         # what the class will have when it is written; None: anything, it has bases
    __hidden__ = frozenset()          # attributes of the class that its methods set: an instance may have others
    def __init_subclass__(cls): pass  # the user's own is for the user's classes

    def __getattribute__(self, name):
        if (notes := _notes(self)) is not None: notes.saw(name)
        if getattr(_running, 'trace', None) is not None and not name.startswith('__'):
            own = next((vars(c)[name] for c in type(self).__mro__ if name in vars(c)), None)
            if isinstance(own, property) and own.fget: return call(own.fget, self)
            if name in type(self).__hidden__ and name not in object.__getattribute__(self, '__dict__'): return Watched.__getattr__(self, name)
        return super().__getattribute__(name)

    def __setattr__(self, name, value):
        if (notes := _notes(self)) is not None and (frame := user_frame()): notes.places[name] = place_of(frame)
        super().__setattr__(name, value)

    def __delattr__(self, name): refuse(f'self.{name} is deleted', hint='set it to None, and annotate it with "| None"')

    def __getattr__(self, name):
        if (other := getattr(super(), '__getattr__', None)): return other(name)
        asked = sys._getframe(1)
        inside = asked.f_globals.get('__name__', '').startswith('bendml.shape.') and asked.f_code not in (call.__code__, attribute.__code__, has_attribute.__code__)
        if name.startswith('__') or inside or getattr(_running, 'trace', None) is None: raise AttributeError(name)
        try: refuse(f'{"self." if _notes(self) else ""}{name}: the class {type(self).__name__} does not say what it is',
                    hint=f'write {name}: Vec[...], {name}: int for a size or {name}: float for a number in the class, above its methods')
        except ShapeError as e:
            e.later = (to_come := type(self).__to_come__) is None or name in to_come
            raise


# %% [markdown]
# While a class is written, what stands above the method is all there is; a method that uses more is checked when the class
# exists.

# %%
#| export
def _source_of_class(f: Any, owner: str) -> ast.ClassDef | None:
    "The syntax tree of the class that a method is defined in."
    tree, line = source_tree(f.__code__.co_filename), f.__code__.co_firstlineno
    found = [c for c in ast.walk(tree) if isinstance(c, ast.ClassDef) and c.name == owner and c.lineno <= line <= c.end_lineno] if tree else []
    return found[-1] if found else None

def set_by_methods(f: Any, owner: str) -> frozenset[str]:
    "The attributes that the methods of a class set; `f` is one of them."
    cls = _source_of_class(f, owner) if isinstance(f, types.FunctionType) else None
    return frozenset(n.attr for n in ast.walk(cls) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)) if cls else frozenset()

def to_come(f: Any, owner: str) -> frozenset[str] | None:
    "What the body of a class defines; None if it may have anything, from its bases."
    cls = _source_of_class(f, owner)
    if cls is None or cls.bases: return None
    targets = [t for s in cls.body for t in getattr(s, 'targets', [getattr(s, 'target', None)])]
    return frozenset(getattr(s, 'name', '') for s in cls.body) | frozenset(t.id for t in targets if isinstance(t, ast.Name))


# %%
#| export
def stand_in(name: str, body: dict[str, Any], fields: tuple[str, ...], hidden: frozenset[str], to_come: frozenset[str] | None = frozenset()) -> type:
    "The class of a stand-in for an instance of a class of which this much is written."
    left_out = {'__dict__', '__weakref__', '__slots__', '__classcell__', *fields, *(h for h in hidden if not isinstance(body.get(h), property))}
    return type(name, (Watched,), {k: v for k, v in body.items() if k not in left_out} | {'__to_come__': to_come})


# %%
#| export
@lru_cache(256)
def stand_in_for(cls: type, fields: tuple[str, ...]) -> type:
    "The class of a stand-in for an instance of a class that exists: one derived from it, or one that has its methods."
    hidden = frozenset().union(*(set_by_methods(_inner(m), c.__name__) for c in cls.__mro__ for m in vars(c).values()))
    more = {'__module__': cls.__module__, '__hidden__': hidden}
    if type(cls) in (type, ABCMeta) and not issubclass(cls, tuple | BaseException):
        like = type(cls)(cls.__name__, (Watched, cls), more | dict.fromkeys(fields))
        like.__abstractmethods__ = frozenset()
        return like
    body = {k: v for c in reversed(cls.__mro__) if c.__module__ != 'builtins' for k, v in vars(c).items() if k not in ('__new__', '_fields')}
    return stand_in(cls.__name__, body | more, fields, hidden)


# %%
#| export
def class_of(f: Any) -> type | None:
    "The class that a method is defined in, if it exists and can be reached from its module."
    first, *parts = f.__qualname__.split('.')[:-1] or ['']
    found = f.__globals__.get(first)
    for p in parts: found = getattr(found, p, None)
    return found if isinstance(found, type) and _inner(vars(found).get(f.__name__)) is f else None  # not an older one of this name

def _inner(f: Any) -> Any:
    "The function that decorators stand around."
    while (inner := next((v for a in ('__wrapped__', '__func__', 'fget') if (v := getattr(f, a, None)) is not None), None)) is not None: f = inner
    return f


# %% [markdown]
# ## All paths together

# %%
#| export
@dataclass(frozen=True)
class Own:
    "What a method does with `self`."
    needs: frozenset[str] = frozenset()   # attributes that must be there, and fit, when it is called
    sets: frozenset[str] = frozenset()    # attributes that are set, and fit, when it has ended
    gives: bool = False                   # it returns `self`


# %%
#| export
def own_of(paths: list[tuple[Notes, bool, dict[str, Any], bool]]) -> Own | None:
    "Put together what was noted on each path: (notes, did it raise, what it changed, was `self` returned)."
    if not paths: return None
    read, ended = frozenset().union(*(n.read for n, *_ in paths)), [(set(c), gave) for _, raised, c, gave in paths if not raised]
    somewhere = set().union(*(c for c, _ in ended))
    everywhere = somewhere.intersection(*(c for c, _ in ended))
    known = set().union(*(n.at_first for n, *_ in paths))
    return Own(frozenset(read | (somewhere - everywhere) & known), frozenset(somewhere), bool(ended) and all(g for _, g in ended))


# %%
from bendml.shape.trace import Trace, tracing
from bendml.shape.copies import copy_of

class Mean:
    def fit(self, x): self.w = x; self.b = self.b + 1; return self

with tracing(Trace()):
    like = stand_in_for(Mean, ('w', 'b'))
    me = like()
    me.__dict__.update(w=None, b=2)
    notes = take_notes(me)
    copy_of(Mean.fit)(me, 3)
    print(own_of([(notes, False, notes.changed(), True)]))

# %% [markdown]
# ## What this does not show
#
# A method is checked with the other methods of its own class: a subclass that overrides one is trusted to keep its promise.
# An attribute of the class itself has the class's value, unless a method sets it; what other code sets from outside is not
# known.
