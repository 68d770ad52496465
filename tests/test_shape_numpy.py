"What NumPy and Python stop at though every shape fits is refused too; beside each such program, one that is right."
import math, re, textwrap
import numpy as np, pytest
from bendml.shape import *
from tests.shape.text import run_text

n, d, k = dims('n d k')
GIVEN = {  # a name: its annotation, and what it is when the program runs
    'x': ('Vec[n]', lambda: np.array([3.0, 1.0, 2.0])), 'y': ('Vec[n]', lambda: np.ones(3)),
    'A': ('Mat[n, d]', lambda: np.ones((3, 2))), 'sq': ('Mat[n, n]', lambda: np.eye(3)), 'w': ('Vec[d]', lambda: np.ones(2)),
    'ids': ('Int[Vec[n]]', lambda: np.arange(3)), 'one': ('Int[Vec[1]]', lambda: np.array([1])), 'mask': ('Bool[Vec[n]]', lambda: np.array([True, False, True])),
    'lr': ('float', lambda: 0.5), 'name': ('str', lambda: 'a')}


class Doubled:
    def __init__(self, x): self.x = x
    def __radd__(self, other): return np.concatenate([other, self.x])

class Deferred(Doubled):
    __array_ufunc__ = None

@typed
def itself(i: Int[Vec[n]]) -> Int[Vec[n]]: return i

@typed
def another(i: Int[Vec[n]]) -> Int[Vec[n]]: return i + 0

class Held:
    i: Int[Vec[n]]
    @typed
    def __init__(self, i: Int[Vec[n]]): self.i = i
    @typed
    def get(self) -> Int[Vec[n]]: return self.i


def function(body: str, typed_too: bool = True):
    "The program, checked and as it is, and its arguments."
    used = [v for v in GIVEN if re.search(rf'\b{v}\b', body)]
    text = f'{"@typed" if typed_too else "#"}\ndef f({", ".join(f"{v}: {GIVEN[v][0]}" for v in used)}):\n' + textwrap.indent(body, '    ')
    return run_text(text, dict(globals()))['f'], [GIVEN[v][1]() for v in used]


WRONG = [  # what, a program that NumPy stops at, part of the refusal, programs that are right
    ('a row into an entry', 'z = np.zeros(len(A))\nfor r in range(len(A)): z[r] = A[r:r+1] @ w\nreturn z', 'an entry is assigned an array', 'z = np.zeros(len(A))\nfor r in range(len(A)): z[r] = A[r] @ w\nreturn z',
     'z = np.zeros(len(A))\nfor r in range(len(A)): z[r:r+1] = A[r:r+1] @ w\nreturn z'),
    ('one entry into an entry', 'z = np.zeros(3)\nz[0] = x[:1]\nreturn z', 'an entry is assigned an array', 'z = np.zeros(3)\nz[0] = x[0]\nz[1:] = x[:1]\nz[0, ...] = x[:1]\nreturn z'),
    ('a list into an entry', 'z = A*1\nz[0, 0] = [3.0]\nreturn z', 'an entry is assigned an array', 'z = A*1\nz[0, 0] = 3.0\nz[0] = [3.0]\nz[0, None, 0] = [3.0]\nreturn z'),
    ('into an entry of flat', 'z = A*1\nz.flat[0] = x[:1]\nreturn z', 'an entry is assigned an array', 'z = A*1\nz.flat[0] = x[0]\nz.flat[:2] = x[:1]\nreturn z'),
    ('a maximum with an axis', 'z = np.zeros(3)\nz[0] = x.max(keepdims=True)\nreturn z', 'an entry is assigned an array', 'z = np.zeros(3)\nz[0] = x.max()\nreturn z'),
    ('added to an entry', 'z = x*1\nz[0] += y[:1]\nreturn z', 'an entry is assigned an array', 'z = x*1\nz[0] += y[0]\nz[:1] += y[:1]\nreturn z'),
    ('by a number that was found', 'z = x*1\nz[x.argmax()] = y[:1]\nreturn z', 'an entry is assigned an array', 'z = x*1\nz[x.argmax()] = y[0]\nz[[x.argmax()]] = y[:1]\nreturn z'),
    ('through a mask', 'z = x*1\nz[z > 1] = y[:1, None]\nreturn z', 'at most one axis', 'z = x*1\nz[z > 1] = y[:1]\nreturn z'),
    ('filled with an array', 'z = np.zeros(3)\nz.fill(x[:1])\nreturn z', 'filled with an array', 'z = np.zeros(3)\nz.fill(x[0])\nz[:] = x[:1]\nreturn z'),
    ('out of a number', 'z = np.zeros(3)\nnp.add(1, 2, out=z[0])\nreturn z', 'a number is written into', 'z = np.zeros(3)\nnp.add(1, 2, out=z[:1])\nx.sum(keepdims=True, out=z[1:2])\nreturn z'),
    ('float', 'return float(A[:1].sum(axis=1))', 'float() of an array', 'return float(A[0].sum()) + A[:1].sum(axis=1).item()'),
    ('int', 'return int(one)', 'int() of an array', 'return int(one[0])'),
    ('math', 'return math.sqrt(x[:1])', 'math.sqrt', 'return math.sqrt(x[0])'),
    ('math of whole numbers', 'return math.comb(ids[0], lr)', 'whole numbers', 'return math.comb(ids[0], ids[-1])'),
    ('max of a number and an array', 'return np.concatenate([min(x[:1], 0), y])', 'min() of', 'return min(x[0], 0)*y'),
    ('percent', "return '%f' % x[:1]", '%f of an array', "return '%f %s %.2f%%' % (x[0], x, x.sum())"),
    ('percent of several', "return '%s %.2f' % (x, x)", '%f of an array', "return '%(of)s %(in)d' % {'of': x, 'in': 3}"),
    ('arange of an array', 'return np.arange(one)', 'np.arange of an array', 'return np.arange(one[0])'),
    ('range of an array', 'z = 0.0\nfor _ in range(one): z = z + lr\nreturn z', 'range() of an array', 'z = 0.0\nfor _ in range(one[0]): z = z + lr\nreturn z'),
    ('linspace of an array', 'return np.linspace(0, lr, one)', '', 'return np.linspace(0, lr, 3)'),
    ('half a range', 'for _ in range(len(x)/2): x = x*2\nreturn x', 'write // instead of /', 'for _ in range(len(x)//2): x = x*2\nreturn x', 'for _ in range(int(len(x)/2)): x = x*2\nreturn x', 'for _ in range(round(len(x)/2)): x = x*2\nreturn x', 'for _ in range(math.ceil(len(x)/2)): x = x*2\nreturn x'),
    ('a range of floats', 'for _ in range(x.max()): y = y*2\nreturn y', 'range() of a number of float64', 'for _ in range(int(x.max())): y = y*2\nreturn y', 'for _ in range(ids.max()): y = y*2\nreturn y'),
    ('a range of ceil', 'for _ in range(np.ceil(len(x)/2)): x = x*2\nreturn x', 'range() of a number of float64', 'for _ in range(int(np.ceil(len(x)/2))): x = x*2\nreturn x'),
    ('a range of a setting', 'for _ in range(lr): x = x*2\nreturn x', 'range() of a number of float64', 'for _ in range(int(lr)): x = x*2\nreturn x'),
    ('a range of a float', 'for _ in range(2.0): x = x*2\nreturn x', 'range() of 2.0', 'for _ in range(2): x = x*2\nreturn x'),
    ('compared with text', "return x if x == 'a' else x*2", '.any() or .all()', "return x if name == 'a' else x*2", "return x*(x == 'a')", "return x if lr == 'auto' else x*lr", "return x if x.size == 'a' else x*2"),
    ('compared with some text', 'return x if x == name else x*2', '.any() or .all()'),
    ('some text compared', 'return x if name != x else x*2', '.any() or .all()'),
    ('in a list of texts', "return x if x in ['b_'] else x*2", '.any() or .all()', "return x if name in ['b_'] else x*2"),
    ('format', "return f'{x:.2f}'", 'has no format', "return f'{x} {x[0]:.2f} {x.sum():>10} {x!s:>20} {len(x):3d}'"),
    ('str.format', "return '{:.2f}'.format(x[:1])", 'has no format', "return '{} {:.2f}'.format(x, x[0])"),
    ('format()', "return format(x, '.2f')", 'has no format', "return format(x[0], '.2f') + format(x)"),
    ('round', 'return round(x, 2)', 'round() of an array', 'return x.round(2)', 'return np.round(x, 2)*round(x[0], 2)'),
    ('round of one', 'return round(x[:1])', 'round() of an array', 'return np.zeros(max(round(y.sum()), 0))'),
    ('values of a dictionary', 'return np.concatenate(dict(p=x, q=y).values())', 'write list(...)', 'return np.concatenate([*dict(p=x, q=y).values()])'),
    ('a stack of values', 'return np.stack(dict(p=x, q=y).values())', 'sequence', 'return np.stack(list(dict(p=x, q=y).values()))'),
    ('a stack of a map', 'return np.stack(map(np.sin, [x, y]))', 'sequence', 'return np.stack(list(map(np.sin, [x, y])))'),
    ('a stack of a map of rows', 'return np.stack(map(np.sin, A))', 'write list(...)', 'return np.stack(list(map(np.sin, A)))', 'return np.stack([*map(np.sin, [A[0], A[1]])]) if len(A) > 1 else A'),
    ('the sum of a generator', 'return np.sum(q for q in x)', '', 'return np.sum([q for q in x])', 'return sum(q for q in x)', 'return np.fromiter((q for q in x), float)', 'return np.fromiter(map(np.sum, A), float)'),
    ('a dtype with an axis', "return np.zeros(len(x), '2f8') @ x", 'an axis of its own', "return np.zeros(len(x), 'f8') @ x"),
    ('astype with an axis', "return x.astype('2f8') @ y", 'an axis of its own', "return x.astype('f8') @ y"),
    ('a sum with an axis', 'return x.sum(dtype=(float, 3)) @ y[:2]', 'an axis of its own', 'return x.sum(dtype=float)*y'),
    ('nan_to_num in place', 'o = np.argsort(x)\nnp.nan_to_num(o, copy=False)[...] = 500\nreturn x[o]', 'ind', 'o = np.argsort(x)\nnp.nan_to_num(o)[...] = 500\nreturn x[o]'),
    ('real', 'o = np.argsort(x)\nnp.real(o)[...] = 500\nreturn x[o]', 'ind', 'o = np.argsort(x)\nnp.abs(o)[...] = 500\nreturn x[o]'),
    ('real_if_close', 'o = np.argsort(x)\nz = np.real_if_close(o)\nz += 500\nreturn x[o]', 'ind'),
    ('einsum of one', "o = np.argsort(x)\nz = np.einsum('i->i', o)\nz += 500\nreturn x[o]", 'ind', "o = np.argsort(x)\nz = np.einsum('i,i->i', o, o)\nz += 500\nreturn x[o]"),
    ('ix_', 'o = np.argsort(x)\nz, = np.ix_(o)\nz += 500\nreturn x[o]', 'ind'),
    ('meshgrid', 'o = np.argsort(x)\nz, _w = np.meshgrid(o, o, copy=False)\nz[0, 0] = 500\nreturn x[o]', 'ind', 'o = np.argsort(x)\nz, _w = np.meshgrid(o, o)\nz[0, 0] = 500\nreturn x[o]'),
    ('trim_zeros', 'o = np.argsort(x)\nz = np.trim_zeros(o)\nz += 500\nreturn x[o]', 'ind'),
    ('windows', 'o = np.argsort(x)\nz = np.lib.stride_tricks.sliding_window_view(o, 1, writeable=True)\nz[...] = 500\nreturn x[o]', 'ind'),
    ('conj', 'o = np.argsort(x)\no.conj()[...] = 500\nreturn x[o]', 'ind', 'o = np.argsort(x)\nnp.conj(o)[...] = 500\nreturn x[o]'),
    ('conjugate', 'o = np.argsort(x)\nz = o.conjugate()\nz += 500\nreturn x[o]', 'ind'),
    ('conj of a mask', 'z = x[mask]\nmask.conj()[...] = True\nreturn z*x[mask]', 'axis -1 has size', 'z = x[mask]\nreturn z*x[mask]'),
    ('a call that returns what it took', 'o = np.clip(ids, 0, len(x) - 1)\nz = itself(o)\nz += 500\nreturn x[o]', 'ind', 'o = np.clip(ids, 0, len(x) - 1)\nz = another(o)\nz += 500\nreturn x[o]',
     'o = np.clip(ids, 0, len(x) - 1)\nz = itself(o) + 500\nreturn x[o]*z'),
    ('an object that keeps what it took', 'o = np.clip(ids, 0, len(x) - 1)\nz = Held(o)\nz.i += 500\nreturn x[o]', 'ind', 'o = np.clip(ids, 0, len(x) - 1)\nz = Held(o)\nreturn x[o]*z.i'),
    ('a method that returns what it holds', 'z = Held(np.clip(ids, 0, len(x) - 1))\no = np.clip(z.get(), 0, len(x) - 1)\np = itself(o)\np += 500\nreturn x[o]', 'ind'),
    ('an unsigned count', 'c = (x > 9).astype(np.uint8).sum()\nreturn np.zeros(max(c - 5, 0))', 'unsigned', 'c = int((x > 9).astype(np.uint8).sum())\nreturn np.zeros(max(c - 5, 0))', 'return x.astype(np.uint8) - 5', 'z = x.astype(np.uint8)\nreturn (z.max() - z.min())*y'),
    ('an object on the right', 'return x + Doubled(x)', '__array_ufunc__ = None', 'return x + Deferred(x)'),
    ('diag', 'z = np.diag(sq)\nz += 1\nreturn z', 'only be read', 'z = np.diag(sq) + 1\nz += 1\nreturn z', 'z = np.diag(sq).copy()\nz += 1\nreturn z', 'z = np.diag(x)\nz += 1\nreturn z', 'z = np.diag(sq).flatten()\nz += 1\nreturn z'),
    ('diagonal', 'sq.diagonal()[0] = 1\nreturn sq', 'only be read', 'np.fill_diagonal(sq, 1)\nreturn sq'),
    ('broadcast_to', 'z = np.broadcast_to(x, (2, len(x)))\nz[0] = 1\nreturn z', 'only be read', 'z = np.broadcast_to(x, (2, len(x))).copy()\nz[0] = 1\nreturn z'),
    ('windows that are only read', 'z = np.lib.stride_tricks.sliding_window_view(x, 1)\nz[0] = 1\nreturn z', 'only be read', 'z = np.lib.stride_tricks.sliding_window_view(x, 1, writeable=True)\nz[0] = 1\nreturn z'),
    ('sorting a diagonal', 'np.diag(sq).sort()\nreturn sq', 'only be read', 'return np.sort(np.diag(sq))'),
    ('filling a diagonal', 'np.diag(sq).fill(1)\nreturn sq', 'only be read'),
    ('a column of a diagonal', 'z = np.diag(sq).reshape(-1, 1)\nz[...] = 1\nreturn z', 'only be read'),
    ('a negative power', 'return np.arange(1, len(x) + 1)**-1', 'negative powers', 'return np.arange(1, len(x) + 1)**-1.0', 'return x**-1', 'return 2.0**-ids', 'return len(x)**-1*x'),
    ('an empty array of indices', 'return A[np.array([])]', 'dtype float64', 'found = []\nfor r in range(len(A)):\n    if A[r, 0] > 9: found.append(r)\nreturn A[found].sum(0)',
     'return A[[]].sum(0) + A[[], 0].sum() + np.take(A, [], axis=0).sum(0)', 'return np.delete(x, [])'),
    ('a list of other lists', 'return np.array(sum([list(r) for r in A], [])) + x', 'size d*n', 'return np.array(sum([list(r) for r in A], [])).reshape(A.shape)', 'return np.array(sum([[r.sum(), 1.0] for r in A], [2.0]))[1:].reshape(len(A), 2)',
     'return np.array(sum([[1.0, 2.0], [3.0]], [4.0])).reshape(2, 2)*x[0]'),
    ('a list and rows', 'return sum([r for r in A], [])', 'axis -1 has size 0', 'return sum([r for r in A], 0)'),
    ('more conditions than entries', 'return np.compress([False]*3 + [True], x)', 'longer than the axis', 'return np.compress([True, False], x)', 'return np.compress(mask, x)'),
    ('a negative power of given', 'return (ids + 1)**-2', 'negative powers', 'return 1/(ids + 1)**2'),
]

@pytest.mark.parametrize('body, contains', [w[1:3] for w in WRONG], ids=[w[0] for w in WRONG])
def test_numpy_stops(body, contains):
    f, args = function(body, typed_too=False)
    with pytest.raises((TypeError, ValueError, IndexError)), np.errstate(all='ignore'): f(*args)
    with pytest.raises(ShapeError) as e: function(body)
    assert contains in str(e.value), str(e.value)

RIGHT = [(w[0], body) for w in WRONG for body in w[3:]]

@pytest.mark.parametrize('body', [r[1] for r in RIGHT], ids=[r[0] for r in RIGHT])
def test_its_twin_is_right(body):
    f, args = function(body)
    with np.errstate(all='ignore'): f(*args)


def test_the_last_piece_may_be_shorter():
    "A list of pieces is not followed, and the refusal says how it goes."
    with pytest.raises(ShapeError) as e: typed(pieces)
    assert 'out[i:i + k] = ... in the loop' in e.value.hint
    assert typed(filled)(np.ones((5, 2)), 2).shape == (5, 2)

def pieces(A: Mat[n, d], k: int) -> Mat[n, d]:
    out = []
    for i in range(0, len(A), k): out.append(A[i:i + k])
    return np.concatenate(out)

def filled(A: Mat[n, d], k: int) -> Mat[n, d]:
    out = np.zeros(A.shape)
    for i in range(0, len(A), k): out[i:i + k] = A[i:i + k]
    return out


@pytest.mark.parametrize('body, whole, truth', [
    ('x += 0.5\nreturn x', False, False), ('x += 1\nreturn x', True, False), ('x /= 2\nreturn x', False, False), ('return x - x', True, False), ('return -x', True, False),
    ('return x**-1', False, False), ('return x/2 + x**2', True, True), ('z = x*1.0\nz += 0.5\nreturn z', True, True), ('return x.mean() + np.maximum(x, 0)', True, True)])
def test_what_an_array_holds(body, whole, truth):
    "Where only sizes are declared, a call is refused for whole numbers or truth values that NumPy would stop at, and for no others."
    f, _ = function(body)
    raw, _ = function(body, typed_too=False)
    assert f(np.ones(3)).shape == (3,)
    for values, runs in (np.arange(3), whole), (np.arange(3, dtype=np.uint8), whole), (np.array([True, False, True]), truth):
        for _ in range(2):
            if runs: assert np.array_equal(f(values.copy()), raw(values.copy()))
            else:
                with pytest.raises((TypeError, ValueError, OverflowError)): raw(values.copy())
                with pytest.raises(ShapeError, match=f'argument x: x holds {values.dtype}') as e: f(values)
                assert e.value.hint == 'convert it: x.astype(float)'

def test_what_an_array_holds_that_another_function_takes():
    @typed
    def raised(x: Vec[n]) -> Vec[n]:
        x += 0.5
        return x
    def calls(ids: Int[Vec[n]]) -> Vec[n]: return raised(ids)
    def converts(ids: Int[Vec[n]]) -> Vec[n]: return raised(ids.astype(float))
    with pytest.raises(ShapeError, match='x holds int'): typed(calls)
    assert typed(converts)(np.arange(3))[2] == 2.5
    pair = typed(lambda p: p[0] - p[1], shapes={'p': (Vec[n], Vec[n]), 'return': Vec[n]})
    assert pair((np.ones(2), np.arange(2))).shape == (2,)
    with pytest.raises(ShapeError, match=r'p\[0\] holds bool'): pair((np.ones(2, bool), np.ones(2, bool)))
