"Methods, recursion and what is defined further down: what is accepted, its wrong twins, and that what is accepted runs."
import numpy as np, pytest
from bendml.shape import Dim, Int, Mat, ShapeError, Vec, dims, typed
from tests.test_shape_trace import define, refused

n, m, d, k = dims('n m d k')

CLASS = '''
class A:
    w: Vec[d]
    b: Vec[d]
    lr: float
    def __init__(self, lr=0.1): self.lr = lr
    def helper(self, X): return X @ self.w
    @typed
    def fit(self, X: Mat[n, d]) -> "A":
        self.w = X.mean(0)
        self.b = self.lr*X.sum(0)
        return self
    @typed
    def lin(self, X: Mat[n, d]) -> Vec[n]: return X @ self.w
    @typed
    def fit_w(self, X: Mat[n, d]) -> None: self.w = X.mean(0)
'''


def method(text: str, after: str = '', call: bool = True):
    "A class with one more method, and its instance made and asked for the report of that method."
    body = '\n'.join('    ' + line for line in text.strip().split('\n'))
    A = define(f'{CLASS}\n{body}\n{after}\nf = A', **globals())
    if call: A.__dict__['it'].__shapes__.report()
    return A


ACCEPTED = {  # a method, and what its result's shape is for X of 4×3 after fit
    'calls a typed method': '@typed\ndef it(self, X: Mat[n, d]) -> Vec[n]: return 1/(1 + np.exp(-self.lin(X)))',
    'by keyword': '@typed\ndef it(self, X: Mat[n, d]) -> Vec[n]: return self.lin(X=X)',
    'calls a plain method': '@typed\ndef it(self, X: Mat[n, d]) -> Vec[n]: return self.helper(X)',
    'by the name of the class': '@typed\ndef it(self, X: Mat[n, d]) -> Vec[n]: return A.lin(self, X)',
    'what is defined below': '@typed\ndef it(self, X: Mat[n, d]) -> Vec[n]: return self.below(X)\ndef below(self, X): return X @ self.w',
    'fits, then uses': '@typed\ndef it(self, X: Mat[n, d]) -> Vec[n]:\n    self.fit_w(X)\n    return X @ self.w',
    'a chain': '@typed\ndef it(self, X: Mat[n, d]) -> Vec[n]: return self.fit(X).lin(X)',
    'calls itself': '@typed\ndef it(self, X: Mat[n, d]) -> Vec[d]:\n    if len(X) == 1: return X[0]\n    return X[0] + self.it(X[1:])',
    'set on one way': '@typed\ndef it(self, X: Mat[n, d]) -> Vec[n]:\n    if X.sum() > 0: self.w = X.mean(0)\n    return X @ self.w',
    'a property': '@property\ndef unit(self): return self.w/self.w.sum()\n@typed\ndef it(self, X: Mat[n, d]) -> Vec[n]: return X @ self.unit',
    'a typed property': '@property\n@typed\ndef unit(self) -> Vec[d]: return self.w/self.w.sum()\n@typed\ndef it(self, X: Mat[n, d]) -> Vec[n]: return X @ self.unit',
    'in place': '@typed\ndef it(self, X: Mat[n, d]) -> Vec[d]:\n    self.w -= self.lr*X.mean(0)\n    return self.w',
    'in a loop': '@typed\ndef it(self, X: Mat[n, d]) -> Vec[d]:\n    for x in X: self.w = self.w + x\n    return self.w',
    'asks whether it is fitted': '@typed\ndef it(self, X: Mat[n, d]) -> Vec[n]:\n    if not hasattr(self, "w"): raise ValueError("fit first")\n    return X @ self.w',
    'a static method': '@staticmethod\n@typed\ndef s(X: Mat[n, d]) -> Vec[n]: return X.sum(1)\n@typed\ndef it(self, X: Mat[n, d]) -> Vec[n]: return self.s(X)',
    'typed above static': '@typed\n@staticmethod\ndef s(X: Mat[n, d]) -> Vec[n]: return X.sum(1)\n@typed\ndef it(self, X: Mat[n, d]) -> Vec[n]: return self.s(X)',
    'a class method': '@classmethod\n@typed\ndef made(cls, X: Mat[n, d]) -> "A": return cls().fit(X)\n@typed\ndef it(self, X: Mat[n, d]) -> Vec[d]: return A.made(X).w',
}

@pytest.mark.parametrize('what', ACCEPTED)
def test_accepted_methods_run(what):
    X = np.arange(12.0).reshape(4, 3)
    if what == 'another of its class': pytest.skip('its default is None')
    for rows in (X, X[:1], X[:, :1]):
        A = method(ACCEPTED[what])
        a = A().fit(rows)
        assert a.it(rows).shape in {rows.shape[:1], rows.shape[1:]}
        with pytest.raises(ShapeError): a.it(np.ones((2, 2, 2)))
        if 'w' in A.it.__shapes__.report().own.needs:
            with pytest.raises(ShapeError): a.it(np.ones((2, rows.shape[1] + 1)))


REFUSED = {  # a method, and what the refusal says
    'the attribute gets another shape': ('@typed\ndef it(self, X: Mat[n, d]) -> None: self.w = X.mean(1)', 'self.w has size n'),
    'on one way': ('@typed\ndef it(self, X: Mat[n, d]) -> None:\n    if X.sum() > 0: self.w = X.mean(1)', 'self.w has size n'),
    'by a helper': ('def h(self, X): self.w = X.sum(1)\n@typed\ndef it(self, X: Mat[n, d]) -> None: self.h(X)', 'self.w has size n'),
    'by setattr': ('@typed\ndef it(self, X: Mat[n, d]) -> None: setattr(self, "w", X.mean(1))', 'self.w has size n'),
    'behind its back': ('@typed\ndef it(self, X: Mat[n, d]) -> None: object.__setattr__(self, "w", X.mean(1))', 'self.w has size n'),
    'of another object': ('@typed\ndef it(self, other: "A", y: Vec[m]) -> None: other.w = y', 'other.w has size m'),
    'read after it was set to another size': ('@typed\ndef it(self, X: Mat[n, m]) -> Vec[n]:\n    old = self.w\n    self.w = X.mean(0)\n    return X @ old', 'm columns'),
    'the old one, after a typed method has set it': ('@typed\ndef it(self, X: Mat[n, m]) -> Vec[m]:\n    b = self.b\n    self.fit_w(X)\n    return self.w + b', 'm on the left and d on the right'),
    'one of two is set': ('@typed\ndef it(self, X: Mat[n, m]) -> Vec[m]:\n    self.fit_w(X)\n    return self.w + self.b', 'm on the left and d on the right'),
    'a typed method with the wrong argument': ('@typed\ndef it(self, X: Mat[n, d]) -> Vec[d]: return self.lin(X.T)', 'argument'),
    'what is not annotated': ('@typed\ndef it(self, X: Mat[n, d]) -> Mat[n, d]: return X*self.scale', 'self.scale: the class A does not say'),
    'whether it is there': ('@typed\ndef it(self, X: Mat[n, d]) -> Vec[n]: return X.sum(1) if hasattr(self, "scale") else X[0]', 'self.scale'),
    'what another method has left there': ('@typed\ndef leave(self, X: Mat[n, d]) -> None: self.t = X\n@typed\ndef it(self, X: Mat[n, d]) -> Vec[d]:\n    self.t = X[0]\n    self.leave(X)\n    return self.t', 'self.t'),
    'deleted': ('@typed\ndef it(self) -> None: del self.w', 'deleted'),
    'the class has another value': ('k = 3\ndef set(self, k): self.k = k\n@typed\ndef it(self, X: Mat[n, 3]) -> Mat[n, 3]: return np.zeros((len(X), self.k)) + X.sum()', 'self.k'),
    'self or something else': ('@typed\ndef it(self, X: Mat[n, d]):\n    if X.sum() > 0: return self\n    return X', 'returns self on one way'),
    'self where an array is declared': ('@typed\ndef it(self, X: Mat[n, d]) -> Vec[n]:\n    self.fit_w(X)\n    return self', 'the result'),
    'recursion with the wrong shape': ('@typed\ndef it(self, X: Mat[n, d]) -> Vec[n]:\n    if len(X) == 1: return X[:, 0]\n    return self.it(X[1:])', 'the result has size n - 1'),
    'grows in a loop': ('@typed\ndef it(self, X: Mat[n, d]) -> Vec[d]:\n    for x in X: self.w = np.concatenate([self.w, x])\n    return self.w', 'changes'),
    'not fitted': ('@typed\ndef it(self, X: Mat[n, d]) -> Vec[n]: return A().lin(X)', 'needs self.w, which is not set'),
}

@pytest.mark.parametrize('what', REFUSED)
def test_refused_methods(what):
    text, says = REFUSED[what]
    with pytest.raises(ShapeError) as e: method(text)
    assert says in e.value.reason, e.value
    assert e.value.place and e.value.place.line > 1, e.value


def test_what_a_method_sets_need_not_be_there():
    A = method('@typed\ndef it(self, X: Mat[n, d]) -> Vec[n]: return X @ self.w')
    a, X = A(), np.ones((4, 3))
    with pytest.raises(ShapeError, match='self.w is not set'): a.it(X)
    assert a.fit(X) is a and a.it(X).shape == (4,)
    assert a.fit(np.ones((5, 2))).it(np.ones((1, 2))).shape == (1,)  # another width: what was there does not matter
    a.w = np.ones((2, 2))
    with pytest.raises(ShapeError, match='axes'): a.it(np.ones((1, 2)))
    a.w = None
    with pytest.raises(ShapeError, match='self.w is not set'): a.it(np.ones((1, 2)))


@pytest.mark.parametrize('returns', ['A', '"A"', 'Self', '"Self"', ''])
def test_return_self_under_postponed_annotations(returns):
    text = 'from __future__ import annotations\nfrom typing import Self\n' if returns == 'A' else 'from typing import Self\n'
    A = define(f'''{text}class A:
    w: Vec[d]
    @typed
    def fit(self, X: Mat[n, d]){returns and f' -> {returns}'}:
        self.w = X.mean(0)
        return self
    @typed
    def use(self, X: Mat[n, d]) -> Vec[n]: return X @ self.fit(X).w
f = A''', **globals())
    assert A().use(np.ones((3, 2))).shape == (3,)


def test_a_subclass_has_the_attributes_of_its_bases():
    B = define('''
class A:
    w: Vec[d]
    @typed
    def fit(self, X: Mat[n, d]) -> None: self.w = X.mean(0)
class B(A):
    @typed
    def fit(self, X: Mat[n, d]) -> None: super().fit(2*X)
    @typed
    def use(self, X: Mat[n, d]) -> Vec[n]: return X @ self.w
    @typed
    def bad(self, X: Mat[n, d]) -> Vec[n]: return X.T @ self.w
f = B''', **globals())
    b = B()
    b.fit(np.ones((3, 2)))
    assert b.w.shape == (2,) and b.use(np.ones((3, 2))).shape == (3,)
    with pytest.raises(ShapeError, match='n columns'): b.bad(np.ones((2, 2)))


@pytest.mark.parametrize('text', [
    '@typed\ndef f(x: Vec[n]) -> float:\n    if len(x) == 1: return x[0]\n    return x[0] + f(x[1:])',
    '@typed\ndef f(x: Vec[n]) -> float: return g(x)\ndef g(x): return x.sum()',
    '@typed\ndef f(x: Vec[n]) -> float: return g(x)\n@typed\ndef g(x: Vec[m]) -> float: return x.sum()',
    '@typed\ndef f(x: Vec[n]) -> float: return g(x)\n@typed\ndef g(x: Vec[n]) -> float: return x[0] if len(x) == 1 else f(x[1:])',
    '@typed\ndef f(x: Vec[n]) -> float: return h(x)\ndef h(x): return g(x)\ndef g(x): return x.sum()',
    'def outer():\n    @typed\n    def f(x: Vec[n]) -> float: return x[0] if len(x) == 1 else x[0] + f(x[1:])\n    return f\nf = outer()',
    'def f(x): return x[0] if len(x) == 1 else x[0] + f(x[1:])\nf = typed(f, shapes={"x": Vec[n], "return": float})',
])
def test_what_is_defined_below_and_recursion(text):
    for _ in range(2):  # also where an older one of that name is there
        f = define(text, **globals())
        assert 'accepted' in repr(f.__shapes__.report())
        assert np.ndim(f(np.ones(4))) == 0
        with pytest.raises(ShapeError): f(np.ones((2, 2)))


@pytest.mark.parametrize('text, says', [
    ('@typed\ndef f(x: Vec[n]) -> Vec[n]: return x if len(x) == 1 else f(x[1:])', 'the result has size n - 1'),
    ('@typed\ndef f(x: Vec[n]) -> float: return g(x)\ndef g(x): return x @ np.ones(3)', 'inner sizes|entries|matmul'),
    ('@typed\ndef f(x: Vec[n]) -> float: return g(x)\n@typed\ndef g(x: Vec[m]) -> Vec[m]: return x', 'the result has 1 axis'),
    ('@typed\ndef f(x: Vec[n]) -> Vec[n]: return g(x)\n@typed\ndef g(x: Vec[n]) -> Vec[n]: return x if len(x) == 1 else f(x[1:])', 'the result has size n - 1'),
    ('@typed(where="n >= 4")\ndef f(x: Vec[n]) -> float: return x[3] if len(x) == 4 else f(x[2:])', 'needs n >= 4'),
])
def test_wrong_twins_are_refused_at_the_first_call(text, says):
    with pytest.raises(ShapeError, match=says):
        f = define(text, **globals())
        f(np.ones(4))
    with pytest.raises(ShapeError, match=says): define(text, **globals()).__shapes__.report()


def test_another_decorator_may_change_what_a_name_means():
    "Recursion leans on the signature only where the name is that of the typed function."
    with pytest.raises(ShapeError, match='axes'):
        define('def turned(f): return lambda x: f(x)[None]\n@turned\n@typed\ndef g(x: Vec[n]) -> Vec[n]: return x if len(x) == 1 else g(x)\nf = g', **globals())(np.ones(3))


def test_a_guard_of_a_function_that_calls_itself():
    "What it refuses itself is a condition on its own calls, too."
    with pytest.raises(ShapeError, match='needs n - 2'):
        define('''@typed
def f(x: Vec[n]) -> float:
    if len(x) % 2: raise ValueError('odd')
    return x.sum() if len(x) == 2 else f(x[1:])''', **globals())


def test_records_and_dictionaries_are_what_their_annotations_say_when_a_function_ends():
    from dataclasses import dataclass
    text = '@dataclass\nclass P:\n    w: Mat[n, d]\n@typed\ndef f(p: P, q: {"w": Mat[n, d]}) -> None:\n    '
    for step, good in [('p.w = p.w*2', True), ('p.w = p.w.T', False), ('q["w"] = q["w"] + 1', True), ('q["w"] = q["w"].T', False), ('del q["w"]', False), ('q["more"] = p.w.T', False)]:
        if good: define(text + step, dataclass=dataclass, **globals())
        else: refused(text + step, dataclass=dataclass, **globals())


def test_threads_do_not_lean_on_each_other():
    "While one thread checks a function, another one that calls it waits for no promise."
    import threading
    f = define('@typed\ndef f(x: Vec[n]) -> Vec[n]: return g(x)\ndef g(x): return np.stack([x, x])', **globals())
    said = []
    def run():
        try: said.append(f(np.ones(3)))
        except ShapeError as e: said.append(e)
    threads = [threading.Thread(target=run) for _ in range(8)]
    [t.start() for t in threads]; [t.join() for t in threads]
    assert len(said) == 8 and all(isinstance(e, ShapeError) for e in said)


@pytest.mark.slow
def test_random_classes():
    "What is accepted, and fits at its call, runs to its end."
    from tests.shape.objects import trial
    wrong, (tried, kept, called) = trial(seed=3, classes=8)
    assert wrong == []
    assert kept > tried/5 and called > 200


KINDS = '''
class P(NamedTuple):
    w: Vec[d]
    name: str
    METHODS
f = P(np.ones(2), 'a')
---
class Base(ABC):
    w: Vec[d]
    @abstractmethod
    def need(self): ...
    METHODS
class Real(Base):
    def __init__(self): self.w = np.ones(2)
    def need(self): return 1
f = Real()
---
class Meta(type):
    def __new__(c, name, bases, ns):
        made.append(name)
        return super().__new__(c, name, bases, ns)
class WithMeta(metaclass=Meta):
    w: Vec[d]
    METHODS
f = WithMeta()
f.w = np.ones(2)
assert made == ['WithMeta']
---
class Sub:
    w: Vec[d]
    def __init_subclass__(cls): made.append(cls)
    METHODS
f = Sub()
f.w = np.ones(2)
f.use(np.ones((1, 2)))
assert not made
---
@dataclass(slots=True)
class Slots:
    w: Vec[d]
    METHODS
f = Slots(np.ones(2))
---
@dataclass(frozen=True)
class Frozen:
    w: Vec[d]
    METHODS
    @typed
    def more(self, X: Mat[n, d]) -> 'Frozen': return Frozen(self.w + X.mean(0))
    @typed
    def most(self, X: Mat[n, d]) -> Vec[d]: return self.more(X).w
f = Frozen(np.ones(2))
assert f.most(np.ones((3, 2))).shape == (2,)
---
def local():
    class Local:
        w: Vec[d]
        METHODS
    return Local()
f = local()
f.w = np.ones(2)
'''.split('---\n')

@pytest.mark.parametrize('kind', KINDS)
def test_kinds_of_classes(kind):
    from abc import ABC, abstractmethod
    from dataclasses import dataclass
    from typing import NamedTuple
    indent = ' '*(kind.index('METHODS') - kind.rindex('\n', 0, kind.index('METHODS')) - 1)
    methods = '@typed\ndef use(self, X: Mat[n, d]) -> Vec[n]: return self.below(X)\n@typed\ndef bad(self, X: Mat[n, d]) -> Vec[d]: return self.below(X)\ndef below(self, X): return X @ self.w'
    made = []
    f = define(kind.replace('METHODS', methods.replace('\n', '\n' + indent)), **locals() | globals())
    assert f.use(np.ones((3, 2))).shape == (3,)
    with pytest.raises(ShapeError, match='size n'): f.bad(np.ones((2, 2)))
    with pytest.raises(ShapeError): f.use(np.ones((3, 4)))


def test_names_that_a_comprehension_binds_are_its_own(tmp_path):
    from bendml.shape.check import check_file
    (tmp_path/'a.py').write_text('from bendml.shape import Vec, dims, typed\nn, d = dims("n d")\nprint([n for n in open("no")], lambda d: d)\n'
                                 '@typed\ndef f(x: Vec[n]) -> Vec[n]: return x\n')
    assert len(check_file(tmp_path/'a.py').reports) == 1


def test_a_misspelt_name_is_refused_at_once():
    assert "name 'nowhere' is not defined" in refused('@typed\ndef f(x: Vec[n]) -> float: return nowhere(x)').reason
    assert "name 'i' is not defined" in refused('@typed\ndef f(x: Vec[n]) -> Vec[n]: return x*i\ndef g(): return [i for i in range(3)]').reason
    assert 'free variable' in refused('@typed\ndef f(x: Vec[n]) -> Vec[n]:\n    z = [y*v for v in x]\n    g = lambda: y\n    z = g()\n    y = x\n    return z').reason
    assert 'self.nowhere' in refused('class A:\n    w: Vec[d]\n    @typed\n    def f(self, x: Vec[d]) -> Vec[d]: return x + self.nowhere\n    def g(self): self.nowhere = 3\nf = A').reason
