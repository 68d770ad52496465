"What is written into an array of known numbers, and a number from the data that bounds more than one slice."
import linecache, textwrap
from functools import lru_cache
import numpy as np, pytest
from bendml.shape import Arr, Int, Mat, ShapeError, Vec, dims, typed

n, m, d, k = dims('n m d k')
K, HELD, SETTINGS = np.eye(2), [np.eye(2)], {'kernel': np.eye(2)}
OBJECTS = np.empty(1, object); OBJECTS[0] = K
class Owner: kernel = K
def a_global(): return K
@lru_cache
def cached(): return np.eye(2)


def define(text: str, **more):
    "Define a function from text, with its source where Python finds it."
    define.count = getattr(define, 'count', 0) + 1
    file, text = f'<written {define.count}>', textwrap.dedent(text)
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    space = {**globals(), **more}
    exec(compile(text, file, 'exec'), space)
    return space['f']

def refused(text: str, **more) -> ShapeError:
    with pytest.raises(ShapeError) as e: define(text, **more)
    return e.value


@pytest.mark.parametrize('body', [
    'F = np.eye(2); F[0, 1] = x[0]; return F',
    'F = np.eye(2); F[:1, 1:] = x[0]*np.eye(1); return F',
    'F = np.array([[1., 0], [0, 1]]); F[0, 1] = x[0]; return F',
    'F = np.full((2, 2), 1.); F += x[0]; return F',
    'F = np.identity(2); F *= x[:, None][:1]; return F',
    'F = np.diag([1., 2.]); F[:, 0] *= x[0]; return F',
    'F = 2*np.eye(2); F[0] = x[:1]; return F',
    'F = -np.eye(2); F[0] = x[:1]; return F',
    'F = K.copy(); F[0, 1] = x[0]; return F',
    'F = K/K.sum(); F[0, 1] += x[0]; return F',
    'F = K[[0, 1]]; F[0, 1] = x[0]; return F',
    'F = np.arange(4.).reshape(2, 2); F.T[0] = x[0]; return F',
    'F = np.eye(2); V = F[:1]; V[0] = x[0]; return F',
    'F = np.eye(2); np.add(F, x[0], out=F); return F',
    'F = np.eye(2); np.fill_diagonal(F, x[0]); return F',
    'F = np.eye(2); np.copyto(F, x[0]); return F',
    'F = np.eye(2); np.add.at(F, ([0], [1]), x[0]); return F',
    'F = np.eye(2); np.putmask(F, K > 0, x); return F',
    'F = np.eye(2); F[1 if x[0] > 0 else 0] = 3; return F',
    'F = np.eye(2); F[x[0] > 0] = 3; return F',
    'F = np.eye(2); F = F if x[0] > 0 else F.T; F[0, 0] = x[0]; return F',
    'F = np.eye(2)\n    for r in x: F[0, 0] += r\n    return F',
    'F = np.eye(2)\n    for _ in x: F[0] += 1\n    return F',
    'F = np.eye(2)\n    for _ in x: F = F*2\n    return F',
    'for row in (F := np.eye(2)): row[0] = x[0]\n    return F',
])
def test_an_array_that_was_made_here_takes_any_number(body):
    f = define(f'@typed\ndef f(x: Vec[n]) -> Mat[2, 2]:\n    {body}')
    assert f(np.ones(1)).shape == f(np.ones(3)).shape == (2, 2)


@pytest.mark.parametrize('write', ['K[0, 0] = x[0]', 'K[0] += x[0]', 'k = K; k *= x[0]', 'k = K.T; k[0] = x[0]', 'k = K.reshape(4); k[0] = x[0]',
    'k = np.asarray(K); k[0] = x[0]', 'k = np.atleast_2d(K); k[0] = x[0]', 'k = a_global(); k[0] = x[0]', 'k = cached(); k[0] = x[0]',
    'HELD[0][0] = x[0]', 'k = HELD[0]; k[0] = x[0]', 'k = SETTINGS["kernel"]; k[0] = x[0]', 'k = SETTINGS.get("kernel"); k[0] = x[0]',
    'k = OBJECTS[0]; k[0] = x[0]', 'k = OBJECTS.item(0); k[0] = x[0]', 'k = Owner.kernel; k[0] = x[0]', 'k = getattr(Owner, "kernel"); k[0] = x[0]',
    'w[0] = x[0]', 'w += x[0]', 'np.add(w, x[0], out=w)', 'np.add(w, x[0], out=K)', 'np.fill_diagonal(K, x[0])', 'np.put(K, [0], x[0])',
    'np.putmask(K, K > 0, x)', 'k = np.fromfunction(lambda i, j: K, (2, 2)); k[0] = x[0]', 'k = np.broadcast_to(K[:1], (2, 2)); k[0] = x[0]',
    'k = np.lib.stride_tricks.as_strided(K, (2, 2)); k[0] = x[0]', 'k = next(iter(HELD)); k[0] = x[0]', 'np.random.shuffle(K)'])
def test_one_that_others_see_does_not(write):
    e = refused(f'@typed\ndef f(x: Vec[n], w=np.eye(2)) -> Vec[n]:\n    {write}\n    return x')
    assert 'is written into an array that is' in e.reason or 'as_strided' in write, e
    assert K.tolist() == HELD[0].tolist() == [[1, 0], [0, 1]]


def test_the_hint_for_it_works():
    assert 'k = K.copy()' in refused('@typed\ndef f(x: Vec[n]) -> Mat[2, 2]:\n    K[0, 0] = x[0]\n    return K').hint
    define('@typed\ndef f(x: Vec[n]) -> Mat[2, 2]:\n    k = K.copy()\n    k[0, 0] = x[0]\n    return k')


@pytest.mark.parametrize('body', [
    'b = a; a[0] = y[0]; return np.zeros(b[0])',
    'v = a[:1]; a[0] = y[0]; return np.zeros(v[0])',
    'v = a.reshape(1, 2).T; a += y[0]; return np.zeros(v[0, 0])',
    'a[0] = y[0]; return np.zeros(a)[:, 0]',
    'b = [a]; a[0] = y[0]; return np.zeros(b[0][0])',
    's = {"a": a}; s["a"][0] = y[0]; return np.zeros(a[0])',
    'g = lambda: a[0]; a[0] = y[0]; return np.zeros(g())',
    'a[0] = y[0]; return x[a]',
    'b = a; b[0] = y[0]; return x[a]',
    'b = a - 1; v = b[:]; b += y[0]; return x[v]',
    'np.random.shuffle(a); return np.zeros(a[0])',
    'for i in y: a[0] += 1\n    return np.zeros(a[0])',
    'c = np.array(2); v = c; c += y[0]; return np.zeros(v)',
    'c = np.array(2); v = c; c += y[0]; return x[:v]',
])
def test_what_was_known_of_it_is_not_known_any_more(body):
    refused(f'@typed\ndef f(x: Vec[3], y: Int[Vec[n]]) -> Vec[2]:\n    a = np.array([2, 3])\n    {body}')


def test_its_shape_stays():
    e = refused('@typed\ndef f(t: float) -> Mat[4, 4]:\n    F = np.eye(4)\n    F[:2, 2:] = t*np.eye(3)\n    return F')
    assert '(3' in str(e) or '3' in str(e.observed)
    assert '2' in refused('@typed\ndef f(t: float) -> Mat[4, 4]:\n    F = np.eye(2)\n    F[0, 0] = t\n    return F').reason
