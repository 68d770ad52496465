"What is written into an array of known numbers, and a number from the data that bounds more than one slice."
import re
from functools import lru_cache
import numpy as np, pytest
from bendml.shape import Arr, Int, Mat, ShapeError, Vec, dims, typed
from tests.shape.text import run_text

n, m, d, k = dims('n m d k')
K, HELD, SETTINGS = np.eye(2), [np.eye(2)], {'kernel': np.eye(2)}
OBJECTS = np.empty(1, object); OBJECTS[0] = K
class Owner: kernel = K
@typed
def into(a: Mat[2, 2], v: Vec[n]) -> Mat[2, 2]:
    a[0, 0] = v[0]
    return a
def a_global(): return K
@lru_cache
def cached(): return np.eye(2)


def define(text: str, **more):
    "Define a function from text, with its source where Python finds it."
    return run_text(text, {**globals(), **more})['f']

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
    'F = np.eye(2); F.fill(x[0]); return F',
    'F = np.eye(2); F.put([0], x[0]); return F',
    'F = np.eye(2); np.put(F, [0], x[0]); return F',
    'F = np.eye(2); F[0, 0] += 1; return F.dot(np.diag(x[[0, 0]]))',
    'F = np.eye(2); into(F, x); return F',
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
    'k = np.lib.stride_tricks.as_strided(K, (2, 2)); k[0] = x[0]', 'K.fill(x[0])', 'K.put([0], x[0])', 'into(K, x)', 'k = next(iter(HELD)); k[0] = x[0]', 'np.random.shuffle(K)'])
def test_one_that_others_see_does_not(write):
    e = refused(f'@typed\ndef f(x: Vec[n], w=np.eye(2)) -> Vec[n]:\n    {write}\n    return x')
    assert 'is written into an array that is' in e.reason or 'as_strided' in write, e
    assert K.tolist() == HELD[0].tolist() == [[1, 0], [0, 1]]


def test_one_that_a_typed_function_only_reads():
    first = define('@typed\ndef f(v: Vec[n]) -> float: return v[..., 0]*2')
    define('@typed\ndef f(x: Vec[m]) -> Vec[m]: return x*first(ROW)', first=first, ROW=np.ones(3))


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
    'np.random.shuffle(a); return np.zeros(a[0])[:len(y)]',
    'for i in y: a[0] += 1\n    return np.zeros(a[0])',
    'c = np.array(2); v = c; c += y[0]; return np.zeros(v)',
    'c = a[0, ...]; c += y[0]; return np.zeros(a[0])',
    'b = np.full(1, 2); c = b[0, ...]; c += y[0]; return np.zeros(b[0])',
    'c = np.full((), 2); v = c; c += y[0]; return np.zeros(v)',
    'c = np.array(2); v = c; c += y[0]; return x[:v]',
])
def test_what_was_known_of_it_is_not_known_any_more(body):
    take = 'x: Vec[3], ' if 'x[' in body else ''
    e = refused(f'@typed\ndef f({take}y: Int[Vec[n]]) -> Vec[2]:\n    a = np.array([2, 3])\n    {body}')
    assert 'never used' not in e.reason, e


def test_its_shape_stays():
    e = refused('@typed\ndef f(t: float) -> Mat[4, 4]:\n    F = np.eye(4)\n    F[:2, 2:] = t*np.eye(3)\n    return F')
    assert '(3' in str(e) or '3' in str(e.observed)
    assert '2' in refused('@typed\ndef f(t: float) -> Mat[4, 4]:\n    F = np.eye(2)\n    F[0, 0] = t\n    return F').reason


def _taking(body: str) -> str:
    "The parameters that a body reads."
    return ', '.join(f'{p}: {kind}' for p, kind in dict(a='Vec[k]', b='Vec[k]', c='Vec[m]', y='Int[Vec[n]]').items() if re.search(rf'\b{p}\b', body))

@pytest.mark.parametrize('body', [
    'i = np.argmax(a); return a[:i] @ b[:i]',
    'i = np.argmax(a); return a[i:] @ b[i:]',
    'i = np.searchsorted(a, 0.5); return np.trapezoid(b[:i], a[:i])',
    'i = y[0]; return a[:i] @ b[:i]',
    'i = y[0]; return a[i:] @ b[i:]',
    'i = y[0]; c[0] = 3; return a[:i] @ b[:i]',
    'i = np.random.default_rng(0).integers(1, len(a) + 1); return a[:i] @ b[:i]',
    's = slice(y[0], y[-1]); return a[s] @ b[s]',
    'lo, hi = y[0], y[-1]; return a[lo:hi] @ b[lo:hi]',
    'i = np.argmax(a); j = i; i += 1; return a[:i] @ b[:i] + a[:j] @ b[:j]',
    'total = 0.0\n    for j in y:\n        total += a[:j] @ b[:j]\n    return total',
    pytest.param('total = 0.0\n    for t in range(len(y) - 1):\n        s = slice(y[t], y[t + 1])\n        total += a[s] @ b[s]\n    return total', marks=pytest.mark.slow),  # too many paths at first
    'p = a > 0\n    s = a[p]\n    for t in y: b[0] = s @ b[p] + t\n    return b[0]',
    'i = y[0]\n    while a[0] > 0:\n        a = a + a[:i] @ b[:i]\n    return a[0]',
])
def test_one_number_cuts_alike(body):
    define(f'@typed\ndef f({_taking(body)}) -> float:\n    {body}')


@pytest.mark.parametrize('body', [
    'i, j = y[0], y[-1]; return a[:i] @ b[:j]',
    'i = np.argmax(a); return a[:i] @ b[i:]',
    'i = np.argmax(a); return a[:i] @ b[:np.argmax(b)]',
    'i = y[0]; return a[:i] @ c[:i]',
    'i = y[0]; return a[i:] @ c[i:]',
    'i = np.argmax(a); return a[:i] @ b[:-i]',
    'i = np.argmax(a); s = a[:i]; i = i + 1; return s @ b[:i]',
    'i = np.argmax(a); s = a[:i]; i += 1; return s @ b[:i]',
    'i = y[0, ...]; s = a[:i]; y[0] = 7; return s @ b[:i]',
    'i = y[0, ...]; s = a[:i]; y.sort(); return s @ b[:i]',
    'i = y[0, ...]; s = a[:i]; y.partition(0); return s @ b[:i]',
    'i = y[0, ...]; s = a[:i]; np.random.shuffle(y); return s @ b[:i]',
    'i = y[0, ...]; j = i[...]; s = a[:j]; i += 1; return s @ b[:j]',
    'i = np.array(y[0]); j = i; s = a[:j]; i += 1; return s @ b[:j]',
    'i = np.zeros((), int); j = i; i += y[0]; return a[:j] @ np.zeros(0)',
    'i = y[0]\n    s = a[:i]\n    for t in y:\n        if a[0] > t: i = t\n    return s @ b[:i]',
    'i = y[0]\n    s = a[:i]\n    for t in y: i = t\n    return s @ b[:i]',
    'p = q = r = y[0]\n    s = a[:p]\n    for t in range(len(y)):\n        a[0] = s @ b[:p]\n        p, q, r = q, r, y[t]\n    return s[0]',
    's = a[:y[0]]\n    for t in y: a[0], s = s @ b[:t], a[:t]\n    return a[0]',
    'cuts = [y[0] + t for t in y]\n    for u in cuts:\n        s = a[:u]\n        for v in cuts: a[0] = s @ b[:v]\n    return a[0]',
    'cuts = [y[0] + t for t in y]\n    return a[:max(cuts)] @ b[:min(cuts)]',
    'p = q = r = a > 0\n    s = a[p]\n    for t in y:\n        b[0] = s @ b[p]\n        p, q, r = q, r, a > t\n    return b[0]',
    'i = y[0]\n    s = a[:i]\n    while a[0] > 0:\n        a[0] = s @ b[:i]\n        i = y[-1]\n    return a[0]',
])
def test_two_numbers_need_not(body):
    e = refused(f'@typed\ndef f({_taking(body)}) -> float:\n    {body}')
    assert ' rows' in e.reason and 'columns' in e.reason, e


@pytest.mark.parametrize('body, right', [
    ('parent, word = np.divmod(best, t.shape[1]); return t[parent, word]', True),
    ('parent, word = divmod(best, t.shape[1]); return t[parent, word]', True),
    ('i, j = divmod(t.argmax(), t.shape[1]); return t[i, j]*best', True),
    ('parent, word = np.divmod(best, t.shape[1]); return t[word, parent]', False),
    ('parent, word = np.divmod(best, t.shape[0]); return t[parent, word]', False),
    ('parent, word = np.divmod(best - 1, t.shape[1]); return t[parent + 1, word]', False),
])
def test_divmod_keeps_bounds(body, right):
    text = f'@typed\ndef f(t: Mat[n, m]) -> Vec["n*m"]:\n    best = np.argsort(t.ravel())\n    {body}'
    define(text) if right else refused(text)


@pytest.mark.parametrize('body, right', [
    ('return np.stack([np.eye(x.shape[1])]*len(x))', True),
    ('return np.array(len(x)*[np.eye(x.shape[1])])', True),
    ('parts = [np.eye(x.shape[1])]*len(x); return np.stack([p*2 for p in parts])', True),
    ('parts = [np.eye(x.shape[1]), 2*np.eye(x.shape[1])]*len(x); return np.stack(parts)[::2]', True),
    ('return np.array([0.0]*len(x))[:, None, None]*np.ones((len(x), x.shape[1], x.shape[1]))', True),
    ('return np.stack([np.eye(x.shape[1])]*(len(x) + 1))', False),
    ('return np.stack([np.eye(x.shape[1])]*(len(x) - 1))', False),
    ('return np.stack([np.eye(x.shape[1])]*2*len(x))', False),
    ('return np.stack([np.eye(x.shape[1]), np.eye(2)]*len(x))', False),
    ('parts = [0.0]*len(x); parts[0] = 1.0; return np.array(parts)*np.ones((len(x), x.shape[1], x.shape[1]))', False),
])
def test_a_list_times_a_size(body, right):
    text = f'@typed\ndef f(x: Mat[n, d]) -> Arr[n, d, d]:\n    {body}'
    if right: assert define(text)(np.ones((3, 2))).shape == (3, 2, 2)
    else: refused(text)


@pytest.mark.parametrize('body, right', [
    ('p = 1 << (s - 1).bit_length(); return np.fft.irfft(np.fft.rfft(a, p)*np.fft.rfft(b, p), p)[:s]', True),
    ('p = 2**(s - 1).bit_length(); return np.fft.irfft(np.fft.rfft(a, p)*np.fft.rfft(b, p), p)[:s]', True),
    ('p = 1 << s.bit_length(); return np.zeros(p)[:len(a)]', False),
    ('return np.pad(a, (0, (1 << (s - 1).bit_length()) - len(a)))[:s]*b[0]', True),
    ('return np.zeros(1 << (s - 1).bit_length())[:s]*a[0]*b[0]', True),
    ('return np.zeros(1 << (s - 1).bit_length())[:2*s - 1]*a[0]*b[0]', False),
    ('return np.zeros(1 << (s - 2).bit_length())[:s]*a[0]*b[0]', False),
    ('return np.zeros(2 << (s - 2).bit_length())[:s]*a[0]*b[0]', True),
    ('return np.zeros(1 << (s - 1).bit_length())*a[0]*b[0]', False),
    ('return np.zeros(1 << s)[:s]*a[0]*b[0]', False),
    ('return (np.zeros(1 << s) + np.zeros(1 << s))[:0].sum() + np.convolve(a, b)', True),
    ('return (np.zeros(1 << s) + np.zeros(1 << s - 1))[:0].sum() + np.convolve(a, b)', False),
])
def test_the_next_power_of_two(body, right):
    text = f'@typed\ndef f(a: Vec[n], b: Vec[m]) -> Vec["n + m - 1"]:\n    s = len(a) + len(b) - 1\n    {body}'
    if right: assert [define(text)(np.ones(p), np.ones(q)).shape for p, q in ((1, 1), (1, 4), (2, 3))] == [(1,), (4,), (4,)]
    else: refused(text)


def test_bounds_from_the_data_where_there_are_too_many_paths():
    from bendml.shape.facts import claim
    from bendml.shape.ranges import GIVEN, ranged
    from bendml.shape.symbols import Array, axis
    from bendml.shape.trace import Trace, holds, tracing
    with tracing(Trace(state=dict(rolled=True))) as trace:
        a, b, c, y = Array([axis(k)]), Array([axis(k)]), Array([axis(m)]), ranged(Array([axis(n)], int), GIVEN)
        n1, i, j = len(trace.made), y[0], y[0]
        assert a[:i].sizes == b[:i].sizes and a[i:].sizes == b[i:].sizes and a[:i].axes[0].size + a[i:].axes[0].size == k
        assert len(trace.made) == n1  # no question is asked
        assert a[i:j].sizes == b[i:j].sizes and a[i + 1:].sizes == b[i + 1:].sizes or len(trace.made) == n1 + 1
        assert holds(claim(a[:i].axes[0].size, '<=', k)).holds and holds(claim(a[:i].axes[0].size, '>=', 0)).holds
        assert not any(holds(claim(a[:i].axes[0].size, '==', other.axes[0].size)).holds for other in (a[:j], a[i:], c[:i], a[:-i], a[:i + 1], a[::-1][:j], y[:i]))
