"Right programs that a check has to follow, each with its wrong twins."
import math
import numpy as np, pytest
import bendml.shape
from bendml.shape import *
from tests.shape.text import run_text

n, m, d, k = dims('n m d k')

class Rows:
    def __init__(self, x, less=0): self.x, self.less = x, less
    def __len__(self): return len(self.x) - self.less
    def __getitem__(self, i): return self.x[i]

def ceil(v): return np.zeros(3)

def define(text: str):
    return run_text(f'@typed\n{text}\n', dict(globals()))['f']

ADD = '''def f(x: Mat[n, d]) -> Vec[d]:
    rows, s = Rows(x{}), np.zeros(x.shape[1])
    for i in range(len(rows){}): s += rows[i]
    return s'''
TWO = 'def f(x: Mat[n, d]) -> Vec[d]:\n    it = iter(x)\n    return next(it) + next(it)'
SIZES = 'def f(x: Mat[n, d]) -> float:\n    s = [int(r.argmax()) for r in x]\n    return {}'

@pytest.mark.parametrize('text, args', [
    (ADD.format('', ''), [(3, 2)]), ('def f(x: Vec[n], k: int) -> Vec["(n + k - 1)//k"]: return np.zeros(math.ceil(len(x)/k))', [(7,), 3]),
    ('def f(x: Vec[n]) -> Vec["n//2"]: return np.zeros(math.floor(len(x)/2))', [(7,)]), ('def f(x: Vec[n]) -> Vec["n//2"]: return np.zeros(int(len(x)/2))', [(7,)]),
    ('def f(x: Vec[n]) -> Vec["(n + 3)//4"]: return np.array([1.0 for _ in range(math.ceil(len(x)/4))])', [(7,)]), ('def f(x: Vec[n]) -> Vec[3]: return ceil(x/2)', [(7,)]),
    ('def f(x: Vec[n]) -> Vec[n]: return x[np.array(range(len(x)))]', [(3,)]), ('def f(x: Vec[n]) -> Vec[n]: return x[np.asarray(range(len(x) - 1, -1, -1))]', [(3,)]),
    ('def f(x: Vec[n]) -> Vec[n]: return x + np.array(range(len(x)), float)', [(3,)]), ('def f(x: Mat[n, d]) -> Vec[d]: return list(x)[0] + list(x)[-1]', [(3, 2)]),
    ('def f(x: Mat[n, d]) -> Vec[d]: return next(iter(x))', [(3, 2)]), ('def f(x: Mat[n, d]) -> Vec[d]: return next(iter(x[1:]), x[0])', [(1, 2)]),
    ('def f(x: Mat[3, n], y: Mat[3, n]) -> Mat[3, n]: return np.cross(x, y, axis=0)', [(3, 2), (3, 2)]),
    ('def f(x: Arr[3, n, m], y: Arr[n, m, 3]) -> Arr[n, 3, m]: return np.cross(x, y, axisa=0, axisc=1)', [(3, 2, 4), (2, 4, 3)]),
    ('def f(v: Mat[k, n]) -> Mat[n, k]: return np.column_stack([r for r in v])', [(3, 2)]), (SIZES.format('float(s[0] + max(s))'), [(3, 2)])])
def test_right(text, args):
    f = define(text)
    given = [np.ones(a) if isinstance(a, tuple) else a for a in args]
    sizes = {str(s): v for (_, spec), a in zip(f.__shapes__.signature.params, given) for s, v in (zip(spec.sizes, a.shape) if isinstance(a, np.ndarray) else [(spec.size, a)])}
    from bendml.shape.sizes import evaluate
    assert np.shape(f(*given)) == tuple(evaluate(s, sizes) for s in f.__shapes__.signature.result.sizes)

@pytest.mark.parametrize('text, says', [
    (ADD.format('', ' + 1'), 'index'), (ADD.format(', 3', ''), '__len__ need not give a length'),
    ('def f(x: Vec[n]) -> Vec["n//2"]: return np.zeros(math.ceil(len(x)/2))', 'n = 1'), ('def f(x: Vec[n]) -> Vec["(n + 1)//2"]: return np.zeros(int(len(x)/2))', 'n = 1'),
    ('def f(x: Vec[n]) -> Vec["(n - 3)//2"]: return np.zeros(int((len(x) - 3)/2))', 'negative'), ('def f(x: Vec[n]) -> Vec["n//2"]: return ceil(x/2)', 'size 3'),
    ('def f(x: Vec[n]) -> float: return x[np.array(range(len(x) + 1))].sum()', 'index'), ('def f(x: Mat[n, d]) -> Vec[d]: return list(x)[1]', 'element 1 of several values'),
    ('def f(x: Mat[n, d]) -> Vec[d]: return list(x[1:])[0]', 'list index out of range'), ('def f(x: Mat[n, d]) -> Vec[n]: return list(x)[0]', 'size d'),
    ('def f(x: Vec[d], m: Bool[Mat[n, d]]) -> float: return (x[list(m)[0]] - x[list(m)[-1]]).sum()', 'k1'), (TWO, '1 < n'), ('def f(x: Mat[n, d]) -> Vec[d]: return next(iter(x[1:]))', 'n = 1'),
    ('def f(x: Mat[3, n], y: Mat[3, n]) -> Mat[3, n]: return np.cross(x, y, axis=1)', 'vectors of 3 entries'), ('def f(x: Mat[n, 3], y: Mat[3, n]) -> Mat[n, 3]: return np.cross(x, y, axis=0)', 'vectors of 3 entries'),
    ('def f(x: Mat[3, n], y: Mat[3, n]) -> Mat[n, 3]: return np.cross(x, y, axis=0)', 'size'),
    (SIZES.format('np.stack([np.zeros(k) for k in s]).sum()'), 'size'), (SIZES.replace('int(r.argmax())', '(int(r.argmax()), 1)').format('np.stack([np.zeros(k) for k, _ in s]).sum()'), 'size')])
def test_wrong(text, says):
    with pytest.raises(ShapeError) as e: define(text)
    assert says in str(e.value), str(e.value)
