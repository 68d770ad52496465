"What outlives a call: a function that changes it, itself or by a helper, is refused, and all is as it was before."
import collections, functools, itertools, types
import numpy as np, pytest
import bendml.shape
from bendml.shape import *
from tests.shape.text import run_text

n, = dims('n')
store = types.ModuleType('store')

def define(text: str, file: str, space: dict) -> dict:
    "Run a text, with its source where Python finds it."
    space |= globals()
    return run_text(text, space, file)

USE = '''
@typed
def f(x: Vec[n]) -> Vec[n]: return x + t(len(x))
'''
CHANGES = {  # what holds it, how it is written now, and a helper that changes it
    'module_dict': ('C', '''
C = {}
def t(k):
    if 'a' not in C: C['a'] = np.arange(k)
    return C['a']'''),
    'default': ('t.__defaults__', '''
def t(k, c={}):
    if 'a' not in c: c['a'] = np.arange(k)
    return c['a']'''),
    'kwdefault': ('t.__kwdefaults__', '''
def t(k, *, c=[]):
    if not c: c.append(np.arange(k))
    return c[0]'''),
    'closure': ('t.__closure__[0].cell_contents', '''
def memo(g):
    c = {}
    def w(k):
        if 'a' not in c: c['a'] = g(k)
        return c['a']
    return w
@memo
def t(k): return np.arange(k)'''),
    'obj': ('vars(T0)', '''
class T:
    def __init__(self): self.c = None
    def get(self, k):
        if self.c is None: self.c = np.arange(k)
        return self.c
T0 = T()
def t(k): return T0.get(k)'''),
    'obj_call': ('vars(t)', '''
class T:
    c = None
    def __call__(self, k):
        if self.c is None: self.c = np.arange(k)
        return self.c
t = T()'''),
    'fattr': ('vars(t)', '''
def t(k):
    if not hasattr(t, 'c'): t.c = np.arange(k)
    return t.c'''),
    'fattr2': ('t.c', '''
def t(k):
    if 'a' not in t.c: t.c['a'] = np.arange(k)
    return t.c['a']
t.c = {}'''),
    'clsattr': ('A.items', '''
class A: items = []
def t(k):
    A.items.append(1)
    return np.arange(k)'''),
    'clsattr2': ('A.n', '''
class A: n = 0
def t(k):
    A.n += 1
    return np.zeros(k + A.n - 1)'''),
    'clsinst': ('A.items', '''
class A:
    items = []
    def add(self): self.items.append(1); return len(self.items)
def t(k): return np.zeros(k + A().add() - 1)'''),
    'clsm': ('A.c', '''
class A:
    c = {}
    @classmethod
    def get(cls, k):
        if 'a' not in cls.c: cls.c['a'] = np.arange(k)
        return cls.c['a']
def t(k): return A.get(k)'''),
    'module': ('store.K', '''
def t(k):
    if store.K is None: store.K = np.arange(k)
    return store.K'''),
    'module2': ('store.C', '''
def t(k):
    if 'a' not in store.C: store.C['a'] = np.arange(k)
    return store.C['a']'''),
    'module3': ('vars(store)', '''
def t(k):
    if not hasattr(store, 'NEW'): store.NEW = np.arange(k)
    return store.NEW'''),
    'module4': ('vars(store.o)', '''
def t(k):
    store.o.x = np.arange(k)
    return store.o.x'''),
    'counter': ('', '''
I = itertools.count()
def t(k): return np.zeros(k + next(I))'''),
    'iterl': ('', '''
I = iter([0, 1, 2])
def t(k): return np.zeros(k + next(I))'''),
    'gen': ('', '''
def g():
    yield 0
    yield 1
I = g()
def t(k): return np.zeros(k + next(I))'''),
    'deq': ('I', '''
I = collections.deque([0, 1, 2])
def t(k): return np.zeros(k + I.popleft())'''),
    'st': ('I', '''
I = {0, 1, 2}
def t(k): return np.zeros(k + I.pop())'''),
    'od': ('list(I)', '''
I = collections.OrderedDict(a=0, b=1)
def t(k):
    I.move_to_end('a')
    return np.zeros(k)'''),
    'dd': ('I', '''
I = collections.defaultdict(list)
def t(k):
    I['a'].append(1)
    return np.zeros(k)'''),
    'arr': ('I', '''
I = np.zeros(3, int)
def t(k):
    I[0] += 1
    return np.zeros(k + int(I[0]) - 1)'''),
    'nested': ('C', '''
C = {}
def t(k):
    def u(): C['a'] = np.arange(k)
    u()
    return np.arange(k)'''),
    'raised': ('C', '''
C = []
def t(k):
    C.append(1)
    if k > 2: raise ValueError
    return np.arange(k)'''),
    'slots': ('hasattr(T0, "c")', '''
class T:
    __slots__ = 'c',
T0 = T()
def t(k):
    T0.c = np.arange(k)
    return T0.c'''),
    'ns': ('N', '''
N = types.SimpleNamespace(c=0)
def t(k):
    N.c += 1
    return np.zeros(k + N.c - 1)'''),
    'rule': ('C', '''
C = []
def t(k): return np.arange(k)
@rule(t)
def _(k):
    C.append(1)
    return np.zeros(k)'''),
    'key': ('C', '''
C = []
def by(v):
    C.append(1)
    return -v
def t(k): return np.zeros(k + sorted([0, len(C)], key=by)[0])'''),
}

@pytest.mark.parametrize('name', CHANGES)
def test_a_change_is_refused_and_undone(name):
    shown, text = CHANGES[name]
    vars(store).pop('NEW', None)
    vars(store).update(K=None, C={}, o=types.SimpleNamespace())
    before = repr(eval(shown, define(text, f'<change {name}>', {}))) if shown else ''
    with pytest.raises(ShapeError, match='is changed, which outlives the call'): define(text + USE, f'<use {name}>', space := {})
    assert not shown or repr(eval(shown, space)) == before

def test_what_is_given_as_known_is_undone_too():
    kept = []
    with pytest.raises(ShapeError, match='g is changed'):
        define('@typed(known={"g": kept})\ndef f(x: Vec[n], g) -> Vec[n]:\n    g.append(x)\n    return x\n', '<known>', dict(kept=kept))
    assert kept == []

@pytest.mark.parametrize('text', [
    'C = {"a": np.arange(3)}\ndef t(k): return np.zeros(k) + C["a"][0]',
    'C = {}\ndef t(k):\n    C = {}\n    C["a"] = np.arange(k)\n    return C["a"]',
    '@functools.lru_cache\ndef t(k): return np.arange(k)',
    'class A:\n    kind = 3\n    def __init__(self): self.c = {}\n    def get(self, k):\n        self.c["a"] = np.arange(k)\n        return self.c["a"]\ndef t(k): return A().get(k)',
    'class A: pass\nO = A()\nO.scale, O.me = 2.0, O\ndef t(k): return np.arange(k)*O.scale',
    'C = dict(size=3)\ndef t(k):\n    C["size"] = 3\n    return np.arange(k)',
    'def t(k):\n    c = {}\n    def put(v): c["a"] = v\n    put(np.arange(k))\n    return c["a"]'])
def test_what_does_not_outlive_it_may_change(text):
    f = define(text + USE, '<kept>', {})['f']
    assert [f(np.ones(k)).shape for k in (3, 4)] == [(3,), (4,)]
