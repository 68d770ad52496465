"functools.singledispatch: the function is known where the class is."
import functools
import numpy as np, pytest
import bendml.shape
from bendml.shape import *
from tests.shape.text import run_text

n, d = dims('n d')

@functools.singledispatch
def g(v): return np.zeros(1)
@g.register
def _(v: float): return np.zeros(2)
@g.register
def _(v: np.ndarray):
    out = []
    for row in v: out.append(row)
    return np.stack(out)
@g.register
def _(v: list): return v[0]
@g.register
def _(v: tuple): return v[-1]
@g.register
def _(v: int): return np.zeros(5)
@g.register
def _(v: str): return np.zeros(3)

@functools.singledispatch
def same(v): return v*1.0

@functools.singledispatch
def memory(v): return np.zeros(1)
@memory.register
def _(v: np.memmap): return np.zeros(2)

class A:
    @functools.singledispatchmethod
    def take(self, v): return np.zeros(1)
    @take.register
    def _(self, v: np.ndarray):
        for row in v: last = row
        return last*1.0

def define(body: str):
    return run_text(f'@typed\ndef f(x: Mat[n, d], k: int, s: str) -> {body}\n', dict(globals()))['f']

@pytest.mark.parametrize('body', ['Mat[n, d]: return g(x)', 'Vec[d]: return g([x[0], x])', 'Vec[d]: return g((x, x[0]))', 'float: return same(x.sum())', 'float: return same(k) + x[0, 0]',
                                  'Vec[d]: return A().take(x)', 'Vec[1]: return g({}) + 0*x[0, 0]', 'Vec[1]: return A().take([x])', 'Vec[2]: return g(1.5) + 0*x[0, 0]', 'Vec[3]: return g(s) + 0*x[0, 0]'])
def test_known(body):
    f = define(body)
    spec = f.__shapes__.signature.result
    assert np.shape(f(np.ones((2, 3)), 4, 'a')) == tuple({'n': 2, 'd': 3}.get(str(s)) or int(str(s)) for s in spec.sizes)

@pytest.mark.parametrize('body', ['Vec[1]: return g(x.sum())', 'Vec[2]: return g(x.sum())', 'Vec[2]: return g(x[0, 0])', 'Vec[1]: return memory(x)', 'Vec[1]: return g(len(x)) + 0*x[0]'])
def test_not_known(body):
    with pytest.raises(ShapeError, match='depends on the class of'): define(body)
