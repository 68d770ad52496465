"What can be traced and what is refused: constructs, guards, loops, calls, threads, and how a typed function behaves when called."
import ast, itertools, subprocess, sys, threading, time
from pathlib import Path
import numpy as np, pytest
from hypothesis import given, settings, strategies as st
import bendml.shape as shape
from bendml.shape import Arr, Bool, Dim, Grad, InOut, Int, L, Mat, OutIn, ShapeError, Vec, dims, stored, typed
from bendml.shape.annotations import read_annotation
from bendml.shape.check import check_file
from bendml.shape.facts import Facts, _holds, assume, claim, decide
from bendml.shape.sizes import DimError, evaluate, names_of, parse_dim
from tests.shape.text import run_text

HERE = Path(__file__).parent/'shape'
B, T, C, D, H, N, V, n, m, d = dims('B T C D H N V n m d')


def define(text: str, **more):
    "Define a function from text, with its source where Python finds it."
    return run_text(text, {**globals(), **more})['f']


def refused(text: str, **more) -> ShapeError:
    with pytest.raises(ShapeError) as e: define(text, **more)
    return e.value


def test_accepted_constructs():
    found = check_file(HERE/'accepted.py')
    assert [str(e) for e in found.refusals] == []
    assert len(found.reports) >= 17


def test_refused_constructs():
    found = check_file(HERE/'refused.py')
    functions = {f.name: f for f in ast.parse((HERE/'refused.py').read_text()).body if isinstance(f, ast.FunctionDef) and any(ast.unparse(d).startswith('typed') for d in f.decorator_list)}
    wanted = {n: (ast.get_docstring(f), f.lineno, f.end_lineno) for n, f in functions.items() if ast.get_docstring(f)}
    assert {r.name for _, r in found.reports} == functions.keys() - wanted.keys()  # those that others call
    for name, (reason, first, last) in wanted.items():
        assert any(reason in e.reason and first - 1 <= e.place.line <= last for e in found.refusals), (name, [e.reason for e in found.refusals if first - 1 <= e.place.line <= last])


class Counter: n = 0
counter, numbers = Counter(), [0]

@pytest.mark.parametrize('body', [
    'a = Counter(); a.n = 0\n    for r in x: a.n += 1\n    return np.zeros(a.n)',
    'counter.n = 0\n    for r in x: counter.n += 1\n    return np.zeros(counter.n)',
    'numbers[0] = 0\n    for r in x: numbers[0] += 1\n    return np.zeros(numbers[0])',
    'seen.clear()\n    for r in x: add(r)\n    return np.zeros(len(seen))',
    'a = {}\n    for r in x: a[len(a)] = 1\n    return np.zeros(len(a))',
    'a = set()\n    for i in range(3): a.add(i)\n    for r in x: a.add(len(a))\n    return np.zeros(len(a))',
    'a = np.zeros(1, int)\n    b = [0]\n    for r in x: b[0] += 1\n    return np.zeros(b[0])',
    'z = [count(k) for k in x]\n    return np.zeros(counter.n)',
])
def test_state_that_a_loop_changes(body):
    seen = []
    def add(r): seen.append(r)
    def count(r): counter.n += 1
    e = refused(f'@typed\ndef f(x: Mat[n, d]) -> Vec[2]:\n    {body}', add=add, seen=seen, count=count)
    assert 'changes its value' in str(e) or 'is changed in a loop' in str(e) or 'key of a dictionary' in str(e), e


def test_a_global_is_not_written():
    assert 'assigned' in refused('''
        @typed
        def f(x: Vec[n]) -> Vec[n]:
            global counter
            counter = 1
            return x''').reason


def test_an_endless_loop_is_refused():
    assert 'turns' in refused('''
        @typed
        def f(x: Vec[n]) -> Vec[n]:
            while True: pass
            return x''').reason


def test_an_endless_recursion_is_refused():
    assert 'RecursionError' in refused('''
        def g(x): return g(x)
        @typed
        def f(x: Vec[n]) -> Vec[n]: return g(x)''').reason


def test_what_a_loop_goes_through_is_part_of_its_state():
    "After three turns t is what it was at first, and two of them do not see that."
    text = """@typed
def f(y: Vec[n], a: Mat[B, D], b: Mat[B, H]) -> Vec[D]:
    t, u, w = zip(FIRST, FIRST), zip(a, a), zip(a, a)
    s = 0.0
    for r in y:
        TURN
        s = s + r
    z = np.zeros(a.shape[1])
    for v, q in t: z = z + s*v*q
    return z + b.sum()"""
    e = refused(text.replace('FIRST', 'b').replace('TURN', 't, u, w = u, w, t'))
    assert 'changes its value' in e.reason and e.expected is None
    define(text.replace('FIRST', 'a').replace('TURN', 'u = w'))


def test_too_many_paths_are_refused():
    body = '\n'.join(f'            if x[{i}] > 0: y = y + 1' for i in range(12))
    assert 'paths' in refused(f'''
        @typed(where='n >= 20')
        def f(x: Vec[n]) -> Vec[n]:
            y = x
{body}
            return y''').reason


def test_a_loop_with_too_many_paths(monkeypatch):
    "It is refused before they are all traced; and what the hint says helps."
    from bendml.shape import paths
    traced = []
    monkeypatch.setattr(paths, 'SOON', 0.1)
    monkeypatch.setattr(paths, '_one_path', lambda *a, real=paths._one_path: traced.append(1) or real(*a))
    body = """if rng.random() < 0.1: v = 0*v
    if v.max() > 1: v = v/2
    if p.min() < 0: v = -v"""
    text = """@typed
def one(p: Vec[n], v: Vec[n], rng: np.random.Generator) -> Vec[n]:
    BODY
    return v
@typed
def f(pos: Mat[B, n], steps: int, rng: np.random.Generator) -> Mat[B, n]:
    vel = np.zeros_like(pos)
    for _ in range(steps):
        for i in range(len(pos)):
            STEP
        pos = pos + vel
    return pos
""".replace('BODY', body)
    e = refused(text.replace('STEP', body.replace('v', 'vel[i]').replace('p.', 'pos[i].').replace('\n    ', '\n            ')))
    assert 'more than 400 paths' in e.reason and '@typed' in e.hint and 'lines 12, 13, 14' in e.hint and len(traced) < 200, (e.hint, len(traced))
    assert define(text.replace('STEP', 'vel[i] = one(pos[i], vel[i], rng)')).__shapes__.report().paths < 10


def test_the_limit_on_time_is_kept(monkeypatch):
    from bendml.shape import paths
    monkeypatch.setattr(paths, 'MAX_SECONDS', 0.3)
    monkeypatch.setattr(paths, 'SOON', 0.05)
    began = time.thread_time()
    assert 'longer than' in refused('''
        def g(x, k): return x if k == 0 else g(x, k - 1) + g(x, k - 1)
        @typed
        def f(x: Vec[n]) -> Vec[n]: return g(x, 25)''').reason
    assert time.thread_time() - began < 0.6

def test_a_size_that_gets_too_long_is_refused():
    size, began = Dim('n'), time.thread_time()
    with pytest.raises(DimError, match='more than 1000 parts'):
        for _ in range(12): size = (size + 1)//2 + size//2
    assert time.thread_time() - began < 1
    e = refused('''
        @typed
        def f(x: Vec[n]) -> Vec[n]:
            k = len(x)
            for _ in range(12): k = (k + 1)//2 + k//2
            return x[:k]''')
    assert e.reason == 'an expression of more than 1000 parts' and 'split the function' in e.hint


def test_a_function_without_source_is_refused():
    space = {'typed': typed, 'Vec': Vec, 'n': n}
    with pytest.raises(ShapeError, match='source'): exec('@typed\ndef f(x: Vec[n]) -> Vec[n]: return x', space)


def test_nothing_global_is_patched():
    "While one function is traced, NumPy and len are what they were, in this thread and in others."
    import builtins, queue
    before = {k: id(v) for k, v in vars(np).items()} | {k: id(v) for k, v in vars(builtins).items()}
    seen = queue.SimpleQueue()  # a list would be seen to change
    def look(): seen.put(({k: id(v) for k, v in vars(np).items()} | {k: id(v) for k, v in vars(builtins).items()}) == before)
    define('''
        @typed
        def f(x: Mat[n, d]) -> Mat[n, d]:
            look()
            return x + np.zeros(x.shape)''', look=look)
    assert seen.get(False) is True and seen.empty()


def test_threads():
    "Many functions checked at once: no trace sees another's sizes."
    def one(i):
        try:
            for j in range(8):
                define(f'''
                    @typed
                    def f(x: Mat[n, {i + 2}], w: Mat[{i + 2}, {j + 2}]) -> Mat[n, {j + 2}]:
                        out = []
                        for r in x: out.append(r @ w)
                        return np.stack(out)''')
                refused(f'''
                    @typed
                    def f(x: Mat[n, {i + 2}], w: Mat[{i + 3}, {j + 2}]) -> Mat[n, {j + 2}]: return x @ w''')
        except BaseException as e: failed.append(e)
    failed = []
    threads = [threading.Thread(target=one, args=(i,)) for i in range(6)]
    for t in threads: t.start()
    for t in threads: t.join()
    assert failed == []


# What a message shows.

@pytest.mark.parametrize('line, piece', [
    ('return x + y', 'y'), ('é = x; return é + (x @ y)', 'y'), ('return np.concatenate([x, x]) @ w', 'w'), ('return x[len(x)]', 'len(x)'), ('return x.reshape(7, 7)', '7'),
    ('return (x + x).sum(axis=5)', '5'), ('return x.T', 'x.T'),
])
def test_the_message_points_at_a_piece(line, piece):
    lines = str(refused(f'''
        @typed(where='n >= 2')
        def f(x: Mat[n, 3], y: Mat[4, 5], w: Mat[4, 3]) -> Mat[n, 3]:
            x, y, w
            {line}''')).split('\n')
    at = lines.index(f'  5 | {line}')
    start, end = lines[at + 1].index('^'), lines[at + 1].rindex('^') + 1
    assert lines[at][start:end] == piece and set(lines[at + 1][6:]) <= set(' ^') and lines[at + 2] == 'known    : n >= 2', lines


# Calling a typed function.

@typed
def layer(x: Mat[B, D], w: Mat[D, '4*D'], b: Vec['4*D'], scale: float = 1.0, *, mode='relu') -> Mat[B, '4*D']:
    y = x @ w + b
    return (np.maximum(y, 0) if mode == 'relu' else np.tanh(y))*scale

def test_a_call_is_the_function():
    x, w, b = np.ones((2, 3)), np.ones((3, 12)), np.zeros(12)
    assert layer(x, w, b).shape == (2, 12)
    assert np.array_equal(layer(b=b, w=w, x=x, scale=2.0), layer(x, w, b)*2)
    assert np.array_equal(layer(x, w, b, mode='tanh'), np.tanh(x @ w + b))
    assert layer.__name__ == 'layer' and layer.__wrapped__(x, w, b).shape == (2, 12)

def test_two_batch_sizes_do_not_leak():
    w, b = np.ones((3, 12)), np.zeros(12)
    for rows in (1, 2, 3, 7, 16, 33): assert layer(np.ones((rows, 3)), w, b).shape == (rows, 12)
    assert layer(np.ones((2, 5)), np.ones((5, 20)), np.zeros(20)).shape == (2, 20)

@pytest.mark.parametrize('x, w, b, says', [
    ((2, 3), (4, 12), 12, 'D is 3'), ((2, 3), (3, 11), 12, '4*D is 12'), ((2, 3), (3, 12), 11, '4*D is 12'), ((2,), (3, 12), 12, 'x has 1 axis'),
    ((2, 3), (12, 3), 12, 'pass w.T'), ((0, 3), (3, 12), 12, 'B is 0'),
])
def test_a_call_that_does_not_fit(x, w, b, says):
    with pytest.raises(ShapeError) as e: layer(np.ones(x), np.ones(w), np.ones(b))
    assert says in str(e.value), e.value

def test_a_call_with_something_else():
    with pytest.raises(ShapeError, match='np.asarray'): layer([[1, 2, 3]], np.ones((3, 12)), np.zeros(12))
    with pytest.raises(ShapeError): layer(None, np.ones((3, 12)), np.zeros(12))
    with pytest.raises(TypeError): layer(np.ones((2, 3)))

def test_dtypes_at_a_call():
    @typed
    def pick(x: Mat[B, D], y: Int[Vec[B]]) -> Vec[B]: return x[np.arange(len(x)), y]
    x = np.arange(6.0).reshape(2, 3)
    assert pick(x, np.array([0, 2])).tolist() == [0, 5]
    assert pick(x, np.array([0, 2], np.uint8)).tolist() == [0, 5]
    with pytest.raises(ShapeError, match='astype'): pick(x, np.array([0., 2.]))

def test_a_product_with_an_unknown_factor():
    @typed
    def merge(x: Arr[B, T, 'H*D'], H: int) -> Arr[B, T, H, D]: return x.reshape(*x.shape[:2], H, x.shape[2]//H) if H else x
    assert merge(np.ones((2, 3, 8)), 4).shape == (2, 3, 4, 2)
    with pytest.raises(ShapeError, match='no D makes'): merge(np.ones((2, 3, 9)), 4)
    with pytest.raises(ShapeError, match='H is 0'): merge(np.ones((2, 3, 9)), 0)

def test_settings_are_checked_for_the_value_of_the_call():
    @typed
    def total(x: Mat[B, D], axis=0) -> Vec[D]: return x.sum(axis)
    assert total(np.ones((2, 3))).shape == (3,)
    with pytest.raises(ShapeError, match='result'): total(np.ones((2, 3)), axis=1)

def test_optional_arrays():
    @typed
    def affine(x: Mat[B, D], b: Vec[D] | None = None) -> Mat[B, D]: return x if b is None else x + b
    assert affine(np.ones((2, 3))).shape == affine(np.ones((2, 3)), np.ones(3)).shape == (2, 3)
    with pytest.raises(ShapeError): affine(np.ones((2, 3)), np.ones(2))
    assert 'result' in refused('''
        @typed
        def f(x: Mat[B, D], b: Vec[D] | None = None) -> Mat[B, D]: return x if b is None else b''').reason

def test_records_dictionaries_and_methods():
    from dataclasses import dataclass
    space = dict(globals(), dataclass=dataclass)
    f = define('''
        @dataclass(frozen=True)
        class Linear:
            w: Mat[D, H]
            b: Vec[H]
            @typed
            def __call__(self, x: Mat[B, D]) -> Mat[B, H]: return x @ self.w + self.b
        @typed
        def f(layers: {'first': Linear, 'second': Linear}, x: Mat[B, D]) -> Mat[B, H]:
            return layers['first'](x)''', dataclass=dataclass)
    Linear = f.__globals__['__raw'].__globals__['Linear'] if '__raw' in f.__globals__ else None
    one = Linear(np.ones((3, 4)), np.zeros(4))
    assert one(np.ones((2, 3))).shape == (2, 4)
    with pytest.raises(ShapeError): one(np.ones((2, 5)))
    assert f({'first': one, 'second': one}, np.ones((2, 3))).shape == (2, 4)
    with pytest.raises(ShapeError, match='second'): f({'first': one}, np.ones((2, 3)))
    assert 'rows' in refused('''
        @dataclass(frozen=True)
        class Linear:
            w: Mat[D, H]
            @typed
            def __call__(self, x: Mat[B, H]) -> Mat[B, H]: return x @ self.w
        f = None''', dataclass=dataclass).reason

def test_a_call_names_the_field():
    from dataclasses import dataclass
    text = """@dataclass
class P:
    a: Mat[D, H]
    c: Vec[D]
@typed
def f(x: Mat[B, D], p: P, q: list[P], r: {'w': Vec[D]}) -> Mat[B, D]:
    for z in q: x = x @ z.a @ z.a.T + z.c
    return x @ p.a @ p.a.T + p.c + r['w']
class M:
    w: Mat[D, H]
    v: Vec['H + 1']
    @typed
    def g(self, x: Mat[B, D]) -> Vec['H + 1']: return self.v + (x @ self.w).sum()
f.P, f.M = P, M
"""
    f, o = define(text, dataclass=dataclass), np.ones
    P, x, good = f.P, o((4, 2)), f.P(o((2, 3)), o(2))
    f(x, good, [good], {'w': o(2)})
    m = f.M()
    m.w, m.v = o((2, 3)), o(3)
    for call, said in [(lambda: f(x, P(o((2, 3)), o(5)), [good], {'w': o(2)}), 'f, argument p.c: D is 2 (D from x), and here it is 5'),
                       (lambda: f(x, good, [good, P(o((5, 3)), o(2))], {'w': o(2)}), 'f, argument q[1].a: D is 2 (D from x), and here it is 5'),
                       (lambda: f(x, good, [good], {'w': o((2, 2))}), "f, argument r['w']: r['w'] has 2 axes, not 1"),
                       (lambda: m.g(x), 'g, argument self.v: H + 1 is 4 (H from self.w), and here it is 3')]:
        with pytest.raises(ShapeError) as e: call()
        assert e.value.reason == said, e.value


def test_a_record_is_of_its_class():
    "As it must be when it runs: another record with the same fields is another record, one derived from it is not."
    text = """@dataclass
class Cache:
    k: Mat[B, D]
@dataclass
class Grown(Cache):
    k: Mat['B + H', D]
@dataclass
class Other:
    k: Mat[B, D]
@typed
def longer(caches: list[Cache], x: Mat[H, D]) -> list[Grown]: return [Grown(np.concatenate([c.k, x])) for c in caches]
@typed
def """
    from dataclasses import dataclass
    f = define(text + 'f(caches: list[Cache], x: Mat[H, D]) -> list[Mat["B + 2*H", D]]: return [c.k for c in longer(longer(caches, x), x)]', dataclass=dataclass)
    Cache = f.__globals__['__raw'].__globals__['Cache']
    assert [k.shape for k in f([Cache(np.ones((2, 3)))]*2, np.ones((4, 3)))] == [(10, 3)]*2
    other = f.__globals__['__raw'].__globals__['Other'](np.ones((2, 3)))
    with pytest.raises(ShapeError, match='not what is expected'): define(text + 'f(c: Cache) -> Mat[B, D]: return c.k', dataclass=dataclass)(other)
    for wrong in ('f(caches: list[Cache], x: Mat[H, D]) -> list[Cache]: return [Grown(np.concatenate([c.k, x])) for c in caches]',
                  'f(caches: list[Other], x: Mat[H, D]) -> list[Grown]: return longer(caches, x)', 'f(x: Mat[B, D]) -> Cache: return Other(x)'):
        assert 'Cache' in refused(text + wrong, dataclass=dataclass).expected or 'Mat' in wrong and 'Grown(' in wrong, wrong


def test_a_polynomial_of_known_numbers():
    f = define("@typed\ndef f(x: Mat[B, D]) -> Mat[B, D]: return np.poly1d([1, 2, 3])(x) + np.poly1d([1, 2])(3)")
    assert f(np.ones((2, 3))).shape == (2, 3)
    assert 'poly1d has no shape rule' in refused("@typed\ndef f(x: Vec[D], y: Mat[B, H]) -> Mat[B, H]: return np.poly1d(x)(y)").reason
    assert 'expected Vec<B>' in str(refused("@typed\ndef f(x: Mat[B, D]) -> Vec[B]: return np.poly1d([1, 2, 3])(x)")).replace('- expected : ', 'expected ')


def test_the_keys_of_a_dictionary():
    "A loop goes through them, in their order: another key, or another order, is another dictionary."
    f = define("""@typed
def f(x: Vec[D], p: {'a': Mat[D, H], 'b': Mat[H, D]}, q: [Vec[D], Vec[D]]) -> Vec[D]:
    for w in p.values(): x = x @ w
    return x + q[0]*len(q)
""")
    x, a, b = np.ones(2), np.ones((2, 3)), np.ones((3, 2))
    assert f(x, {'a': a, 'b': b}, [x, x]).shape == (2,)
    for p, q, said in [({'a': a}, [x, x], "p has no key 'b'"), ({'a': a, 'b': b, 'c': 1}, [x, x], "p has the key 'c', which the annotation has not"),
                       ({'b': b, 'a': a}, [x, x], "p has its keys in another order"), ({'a': a, 'b': b}, [x, x, x], 'q has 3 values, not 2')]:
        with pytest.raises(ShapeError) as e: f(x, p, q)
        assert said in str(e.value), e.value
        with pytest.raises(ShapeError) as e: define('@typed\ndef g(x: Vec[D], a: Mat[D, H], b: Mat[H, D]) -> Vec[D]: return f(x, {' + ', '.join(f'{k!r}: {k if k < "c" else 1}' for k in p) + '}, [' + 'x, '*len(q) + '])', f=f)
        assert said in str(e.value) or 'another number of values' in str(e.value), e.value
    with pytest.raises(ShapeError, match='in another order'): define("@typed\ndef g(a: Mat[D, H], b: Mat[H, D]) -> {'a': Mat[D, H], 'b': Mat[H, D]}: return {'b': b, 'a': a}")


def test_the_price_of_a_call():
    "Under half a microsecond for three arguments, in the best of many runs."
    import timeit
    def raw(x, w, b): return x
    f = define('''
        @typed
        def f(x: Mat[B, D], w: Mat[D, '4*D'], b: Vec[B]) -> Mat[B, D]: return x*w.sum()*b.sum()''')
    f.__globals__['__raw'] = raw
    args = np.zeros((8, 16)), np.zeros((16, 64)), np.zeros(8)
    best = lambda g: min(timeit.repeat(lambda: g(*args), number=1000, repeat=300))/1000
    assert best(f) - best(raw) < 0.5e-6


# Functions that call typed functions.

@typed(where='C % H == 0')
def heads(x: Arr[B, T, C], H: int) -> Arr[B, H, T, 'C//H']:
    return x.reshape(*x.shape[:2], H, x.shape[2]//H).transpose(0, 2, 1, 3)

@typed
def reshaped(x: Mat['r1', 'c1'], r2: int, c2: int) -> Mat['r2', 'c2']:
    assert x.shape[0]*x.shape[1] == r2*c2
    return x.reshape(r2, c2)

def test_conditions_of_a_called_function():
    define('''
        @typed
        def f(x: Arr[B, T, 8]) -> Arr[B, 4, T, 2]: return heads(x, 4)''')
    define('''
        @typed
        def f(x: Arr[B, T, 'N*D'], N: int) -> Arr[B, N, T, D]: return heads(x, N)''')
    e = refused('''
        @typed
        def f(x: Arr[B, T, 8]) -> Arr[B, 3, T, 2]: return heads(x, 3)''')
    assert 'C % H == 0' in e.reason
    define('''
        @typed
        def f(x: Mat[n, 6]) -> Mat['3*n', 2]: return reshaped(x, 3*len(x), 2)''')
    assert 'c1*r1 == c2*r2' in refused('''
        @typed
        def f(x: Mat[n, 6]) -> Mat[n, 5]: return reshaped(x, len(x), 5)''').reason

@typed(where='ids < V')
def rows_of(ids: Int[Vec[T]], table: Mat[V, D]) -> Mat[T, D]: return table[ids]

def test_numbers_at_a_call():
    assert rows_of(np.array([0, 2]), np.ones((3, 4))).shape == (2, 4)
    for wrong in (3, -1):
        with pytest.raises(ShapeError, match=f'ids holds {wrong}'): rows_of(np.array([0, wrong]), np.ones((3, 4)))

def test_numbers_of_a_called_function():
    program = '''
        @typed(where='ids < V')
        def f(ids: Int[Vec[T]], other: Int[Vec[T]], table: Mat[V, D]) -> Mat[T, D]: return table[ids] + rows_of({}, table) + other[:, None]'''
    for right in ('ids', 'other % len(table)'): define(program.format(right))
    for wrong in ('other', 'ids + 1', 'ids - 1', 'other % (len(table) + 1)'): assert 'needs ids < V' in refused(program.format(wrong)).reason

def test_a_size_that_may_be_0_does_not_fit_a_name():
    e = refused('''
        @typed
        def g(x: Vec[n]) -> float: return x.max()
        @typed
        def f(x: Vec[m]) -> float: return g(x[x > 0])''')
    assert 'n >= 1' in e.reason


# Sizes: the normal form and the decisions, against numbers.

texts = st.recursive(st.sampled_from(['a', 'b', 'c']) | st.integers(-4, 6).map(str),
                     lambda s: st.builds('({} {} {})'.format, s, st.sampled_from(['+', '-', '*', '//', '%']), s), max_leaves=6)

@settings(max_examples=300, deadline=None, derandomize=True)
@given(texts, st.fixed_dictionaries({k: st.integers(1, 9) for k in 'abc'}))
def test_normal_form_is_python_arithmetic(text, sizes):
    try: value = eval(text, {}, sizes)
    except ZeroDivisionError: return
    try: dim = parse_dim(text)
    except ShapeError: raise
    except ValueError as e: assert 'divided by 0' in str(e) or 'by zero' in str(e) or 'product' in str(e); return
    try: ours = evaluate(dim, sizes)
    except ZeroDivisionError: return  # the normal form may keep a quotient that Python does not reach
    assert ours == value, (dim, sizes)

def test_what_z3_does_not_know_is_not_known(monkeypatch):
    import z3
    monkeypatch.setattr(z3.Solver, 'check', lambda self: z3.unknown)
    asked = claim(parse_dim('p*p'), '!=', parse_dim('2*q*q'))  # it is so, and trying finds nothing against it
    assert decide(Facts(), asked).holds is None
    assert refused('''
        @typed
        def f(x: Mat[n, n], y: Mat[m, m]) -> Vec['n*n + 2*m*m']:
            a, b = x.ravel(), np.concatenate([y.ravel(), y.ravel()])
            return np.concatenate([a, b]) if len(a) != len(b) else x''').reason == 'the result has 2 axes, not 1'


@settings(max_examples=120, deadline=None, derandomize=True)
@given(texts.filter(lambda t: '//' not in t and '%' not in t), st.sampled_from(['==', '!=', '<', '>=']), texts.filter(lambda t: '//' not in t and '%' not in t),
       st.lists(st.sampled_from(['a % b == 0', 'a == 2*b', 'a <= 4', 'c >= 3', 'a*b == c', 'b != 2']), max_size=2, unique=True))
def test_decisions_agree_with_small_sizes(left, op, right, known):
    from bendml.shape.facts import parse_claim
    facts = Facts()
    for k in known:
        for c in parse_claim(k): facts = assume(facts, c)
    goal = claim(parse_dim(left), op, parse_dim(right))
    verdict = decide(facts, goal)
    allowed = [s for v in itertools.product(range(1, 8), repeat=3) for s in [dict(zip('abc', v))] if all(_holds(c, s) for k in known for c in parse_claim(k))]
    fails = [s for s in allowed if not _holds(goal, s)]
    if verdict.holds: assert not fails, (facts, goal, fails[:1])
    if verdict.holds is False and verdict.fails_at:
        at = dict(verdict.fails_at)
        assert any(all(s[k] == v for k, v in at.items() if k in s) for s in fails) or max(at.values()) > 7, (goal, at)


MATRIX, COLUMN, ROW = 'x: Mat[n, d]', 'c: Mat[n, 1]', 'v: Vec[n]'

@pytest.mark.parametrize('params, wrong, hint, right', [
    ((COLUMN, ROW), 'c - v', 'write v[:, None] or c[:, 0]; for every pair, v[None]', ('c - v[:, None]', 'c[:, 0] - v', 'c - v[None]')),
    ((COLUMN, ROW), 'v - c', 'write v[:, None] or c[:, 0]; for every pair, v[None]', ('v[:, None] - c', 'v - c[:, 0]', 'v[None] - c')),
    ((MATRIX, 'w: Mat[d, 1]', ROW), '(x @ w - v)**2', 'write v[:, None] or (x @ w)[:, 0]; for every pair, v[None]', ('(x @ w - v[:, None])**2', '((x @ w)[:, 0] - v)**2')),
    ((COLUMN,), 'c*c.T', 'both have 2 axes: write c so that the same ones meet; for every pair, c[:, 0][:, None] and c.T[0]', ('c*c', 'c[:, 0][:, None]*c.T[0]')),
    (('a: Arr[n, 1, d]', 'b: Mat[n, d]'), 'a + b', 'write b[:, None] or a[:, 0]; for every pair, b[None]', ('a + b[:, None]', 'a[:, 0] + b', 'a + b[None]')),
    (('a: Arr[n, d, 1]', 'b: Mat[n, d]'), 'a + b', 'write b[:, :, None] to put a 1 in that place', ('a + b[:, :, None]',)),
    ((MATRIX, ROW), 'x*v', 'write v[:, None] to put its axis in that place', ('x*v[:, None]',)),
    (('x: Mat[d, n]', ROW), 'x + v[:, None]', 'v[:, None] is the other way round: write v[None, :]', ('x + v[None, :]',)),
    ((MATRIX, 'y: Mat[d, n]'), 'x + y.T[:].T', 'y.T[:].T is the other way round: write y.T[:]', ('x + y.T[:]',)),
    ((MATRIX, 'y: Mat[d, n]'), 'x + (y - 1)', 'y - 1 is the other way round: write (y - 1).T', ('x + (y - 1).T',)),
    ((MATRIX, 'y: Mat[m, d]'), 'x - y', 'to pair every row with every row, write x[:, None]', ('x[:, None] - y',)),
])
def test_a_hint_names_what_to_write(params, wrong, hint, right, tmp_path):
    "The hint is code, with the names that are there; and what it says is accepted."
    def refusals(body):
        (tmp_path/'f.py').write_text(f'from bendml.shape import Arr, Mat, Vec, dims, typed\nn, d, m = dims("n d m")\n@typed\ndef f({", ".join(params)}): return {body}\n')
        return check_file(tmp_path/'f.py').refusals
    e, = refusals(wrong)
    assert e.hint == hint
    for body in right: assert refusals(body) == ()
