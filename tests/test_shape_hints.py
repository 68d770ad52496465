"Each hint, carried out as it stands, is accepted; and where nothing true can be proposed, nothing is."
import textwrap
import pytest
from hypothesis import given, settings, strategies as st
from bendml.shape.check import check_file
from bendml.shape.facts import Claim, parse_claim
from bendml.shape.sizes import Dim
from bendml.shape.trace import said

HEAD = '''\
import numpy as np
from bendml.shape import Arr, Bool, Float, Int, Mat, Vec, dims, typed
n, d, k, m, B, D, T, K, H, W = dims('n d k m B D T K H W')
'''


@pytest.fixture
def refusals(tmp_path):
    "What is refused in a file."
    def run(text):
        (tmp_path/'f.py').write_text(HEAD + textwrap.dedent(text))
        return check_file(tmp_path/'f.py').refusals
    return run


def typed(text, where=()):
    return f'@typed(where={list(where)})\n' + textwrap.dedent(text)


# A condition that would do

TURNS = {
    'a table that is filled row by row': '''
        def f(pi: Vec[K], A: Mat[K, K], obs: Mat[T, K]) -> Mat[T, K]:
            alpha = np.zeros((len(obs), len(pi)))
            alpha[0] = pi
            for t in range(1, len(obs)): alpha[t] = alpha[t - 1][:, None, None] + A
            return alpha''',
    'a list with the columns': '''
        def f(x: Mat[n, d]) -> Vec[n]:
            out = []
            for j in range(x.shape[1]): out.append(x[:, j].mean())
            return np.array(out)''',
    'a comprehension': '''
        def f(x: Mat[n, d]) -> Vec[n]: return np.stack([x[:, j].mean() for j in range(x.shape[1])])''',
    'as far as two sizes differ': '''
        def f(x: Mat[n, d], w: Vec[d]) -> Vec[d]:
            s = np.zeros(x.shape[1])
            for i in range(len(x) - len(w)): s = s + x[i, :, None]
            return s''',
}

@pytest.mark.parametrize('text', TURNS.values(), ids=TURNS)
def test_how_often_a_loop_runs_is_no_way_out(refusals, text):
    e, = refusals('@typed' + text.replace('\n        ', '\n'))
    assert 'where=' not in e.hint, e


FALLS = {  # the way, and a function that fails there and elsewhere, or would only be right for the smallest sizes
    'it fails without it too': '''
        def f(x: Mat[n, d], y: Vec[n]) -> Mat[n, d]:
            if len(x) > d_: x = x*2
            return x + y'''.replace('d_', 'x.shape[1]'),
    'only 1 is left': '''
        def f(x: Mat[n, d]) -> Mat[n, d]:
            if len(x) >= 2: x = x.T
            return x''',
    'only 1 and 2 are left': '''
        def f(x: Mat[n, d]) -> Mat[n, d]:
            if len(x)*2 > 5: x = x.T
            return x''',
    'the square of a size as an index': '''
        def f(trial: Mat[k, k], path: Mat[n, k]) -> float: return path[0, trial.argmax()]''',
    'a product of sizes as an index': '''
        def f(trial: Mat[n, k], path: Vec[k]) -> float: return path[trial.argmax()]''',
    'an index that is one only for one entry': '''
        def f(x: Vec[n], y: Vec[d], z: Mat[d, n]) -> float: return x[len(x)*len(y) - 1]''',
}

@pytest.mark.parametrize('text', FALLS.values(), ids=FALLS)
def test_a_condition_that_would_only_hide_the_fault_is_not_proposed(refusals, text):
    e, = refusals('@typed' + textwrap.dedent(text))
    assert 'where=' not in e.hint, e


WAYS = [
    ('def f(x: Mat[n, d], q: int) -> Mat[n, "q"]: return x[:, :q]', 'd < q', 'q <= d'),
    ('def f(x: Mat[H, W], y: Mat[H, W]) -> Mat[H, W]:\n    x = x.copy()\n    x[:, :len(x)] += y\n    return x', 'H <= W', 'W < H'),
    ('def f(x: Mat[n, d]) -> Mat[n, d]:\n    if len(x) > 4 and x.shape[1] % 2: x = x[4:]\n    return x', 'd % 2 != 0', 'd % 2 == 0'),
    ('def f(x: Vec[n]) -> Vec["n - 3"]:\n    if len(x) - 1 < 4: return x\n    return x[3:]', 'n <= 4', 'n >= 5'),
]

@pytest.mark.parametrize('text, way, other', WAYS)
def test_a_condition_that_would_do_is_said_shortly_and_does(refusals, text, way, other):
    e, = refusals('@typed\n' + text)
    assert e.hint == f'this is the way where {way}; if it cannot be so, say where=["{other}"]'
    assert refusals(typed(text, [other])) == ()


ADDED = [
    ('def f(x: Vec[n], i: int) -> float: return x[i - 1]', 'i <= n'),
    ('def f(x: Vec[n], a: int) -> Mat["a - 4", n]: return np.zeros((a - 4, len(x)))', 'a >= 4'),
    ('def f(x: Vec[n], a: int, rng: np.random.Generator) -> Vec["a"]: return rng.choice(x, a, replace=False)', 'a <= n'),
    ('def f(x: Vec[n], y: Vec[m]) -> float: return y[np.argmax(x)]', 'n <= m'),
]

@pytest.mark.parametrize('text, condition', ADDED)
def test_a_condition_that_is_to_be_added_is_said_shortly_and_does(refusals, text, condition):
    e, = refusals('@typed\n' + text)
    assert f'add where=["{condition}"]' in e.hint, e
    more = ['a >= 5'] if 'a - 4' in text else []   # a size is at least 1
    assert refusals(typed(text, [condition, *more])) == ()


def test_which_entry_of_a_table_is_the_largest(refusals):
    text = '@typed\ndef f(trial: Mat[k, m], path: Mat[n, m]) -> float: return path[0, {}]'
    e, = refusals(text.format('trial.argmax()'))
    assert 'np.unravel_index' in e.hint, e
    assert refusals(text.format('np.unravel_index(trial.argmax(), trial.shape)[1]')) == ()


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.sampled_from(['1', 'a', 'b', 'a*b', 'a//2', 'a//b', 'a % b']), st.integers(-3, 3)), min_size=1, max_size=4), st.sampled_from(['==', '!=', '>=']))
def test_a_claim_is_said_so_that_it_reads_back_the_same(parts, kind):
    from bendml.shape.sizes import parse_dim
    dim = sum((c*parse_dim(t) for t, c in parts), Dim(0))
    if dim.const is not None: return
    back, = parse_claim(said(Claim(dim, kind)))
    assert back.kind == kind and back.dim in ((dim, -dim) if kind != '>=' else (dim,))


# As many names as rows

UNPACKED = [  # what is written, how many names and rows, the hint, what it says to write
    ('x: Mat[n, 2]', '_a, _b = x', '2', 'n', 'write x.T', '_a, _b = x.T'),
    ('x: Mat[3, 2]', '_a, _b = x', '2', '3', 'write x.T', '_a, _b = x.T'),
    ('x: Mat[n, 3]', '_a, _b = x.T', '2', '3', 'write 3 names, or x.T[:2]', '_a, _b = x.T[:2]'),
    ('x: Mat[n, 3]', '_a, _b = x.T', '2', '3', 'write 3 names, or x.T[:2]', '_a, _b, _c = x.T'),
    ('x: Mat[n, 2]', '_a, _b, _c = x.T', '3', '2', 'write 2 names', '_a, _b = x.T'),
    ('x: Int[Mat[n, 2]]', '[_a, _b] = x % 7', '2', 'n', 'write (x % 7).T', '[_a, _b] = (x % 7).T'),
    ('x: Mat[n, 2]', '_a, _b = x.T.T', '2', 'n', 'write x.T', '_a, _b = x.T'),
    ('x: Arr[n, 2, d]', '_a, _b = x', '2', 'n', 'write x.swapaxes(0, 1)', '_a, _b = x.swapaxes(0, 1)'),
    ('x: Vec[3]', '_a, _b = x', '2', '3', 'write 3 names, or x[:2]', '_a, _b = x[:2]'),
    ('x: Arr[k, n, 2]', 'for _a, _b in x: pass', '2', 'n', 'turn each one', 'for _a, _b in x.swapaxes(1, 2): pass'),
    ('x: Vec[n]', '_a, _b = x', '2', 'n', '', ''),
]

@pytest.mark.parametrize('params, wrong, names, rows, hint, right', UNPACKED)
def test_names_for_rows(refusals, params, wrong, names, rows, hint, right):
    text = '@typed\ndef f({}) -> float:\n    {}\n    return 1.0'
    e, = refusals(text.format(params, wrong))
    assert e.expected.split()[0] == names and e.observed.split()[0] == rows and e.hint.startswith(hint) and bool(hint) == bool(e.hint), e
    assert e.everywhere or dict(e.fails_at) == {'n': 1}, e
    if right: assert refusals(text.format(params, right)) == ()


def test_what_is_known_of_a_size_is_enough_to_unpack(refusals):
    assert refusals('@typed(where="n == 2")\ndef f(x: Mat[n, d]) -> Vec[d]:\n    a, b = x\n    return a + b') == ()
    assert refusals('@typed\ndef f(x: Mat[n, d]) -> Vec[d]:\n    if len(x) != 2: raise ValueError("two")\n    a, b = x\n    return a + b') == ()
    e, = refusals('@typed(where="n <= 2")\ndef f(x: Mat[n, d]) -> Vec[d]:\n    a, b = x\n    return a + b')
    assert dict(e.fails_at) == {'n': 1}


@pytest.mark.parametrize('wrong, says, right', [
    ('_a, _b = x.shape', 'as many names as the array has axes', '_a, _b, _c = x.shape'),
    ('_a, _b = (1, 2, len(x))', 'as many names as there are values', '_a, _b, _c = (1, 2, len(x))')])
def test_names_for_values(refusals, wrong, says, right):
    text = '@typed\ndef f(x: Arr[n, d, 4]) -> float:\n    {}\n    return 1.0'
    e, = refusals(text.format(wrong))
    assert e.reason == 'ValueError: too many values to unpack, expected 2' and e.hint == says
    assert refusals(text.format(right)) == ()


# What to write for an operand, an argument, a result

RMS = '''
@typed
def rms(x: Mat[T, D], g: Vec[D]) -> Mat[T, D]: return g*x
@typed
def lone(x: Vec[D]) -> Vec[D]: return x*2
class Net:
    w: Mat[D, m]
    @typed
    def turned(self, x: Mat[D, 4]) -> Mat[4, m]: return x.T @ self.w
    @typed
    def __call__(self, x: Mat[T, D], y: Mat[D, T]) -> Mat[T, m]: return (x + y.T) @ self.w
'''
WRITTEN = [  # parameters and result, what is written, the hint, what it says to write
    ('x: Mat[B, D], g: Vec[D]) -> Vec[D]', 'rms(x[-1], g)[0]', 'write x[-1][None], if it is to be the only one', 'rms(x[-1][None], g)[0]'),
    ('x: Mat[B, D], g: Vec[D]) -> Vec[D]', 'rms(g=g, x=x[-1])[0]', 'write x[-1][None], if it is to be the only one', 'rms(g=g, x=x[-1][None])[0]'),
    ('x: Mat[D, B], g: Vec[D]) -> Mat[B, D]', 'rms(x, g)', '', ''),
    ('x: Vec[B], g: Vec[D]) -> Mat[B, D]', 'rms(x, g)', '', ''),
    ('a: Mat[T, D], net: Net) -> Mat[T, m]', 'net(a, y=a)', 'a is the other way round: write a.T', 'net(a, y=a.T)'),
    ('a: Mat[T, D], net: Net) -> Mat[T, m]', 'net(a, a)', 'a is the other way round: write a.T', 'net(a, a.T)'),
    ('a: Mat[T, D], net: Net) -> Mat[T, m]', 'Net.__call__(net, a, a)', 'a is the other way round: write a.T', 'Net.__call__(net, a, a.T)'),
    ('a: Mat[T, D], net: Net) -> Mat[T, m]', 'net(*(a, a))', 'it is the other way round: write its transpose', 'net(*(a, a.T))'),
    ('xs: list[Arr[k, D]], g: Vec[D]) -> list[Arr[k, D]]', 'list(map(lone, xs))', '', ''),
    ('a: Arr[k, 4, D], net: Net) -> list[Mat[4, m]]', 'list(map(net.turned, a))', 'it is the other way round: write its transpose', ''),
    ('a: Mat[T, D], b: Vec[D]) -> Mat[T, D]', 'rms(a[\n        :, :], b[\n:, None])', 'flatten it: .reshape(D)', 'rms(a[\n        :, :], b[\n:, None].reshape(len(b)))'),
    ('a: Mat[T, D], b: Vec[D]) -> Vec[D]', 'rms(a[\n        0], b)[0]', 'write it[None], if it is to be the only one', 'rms(a[\n        0][None], b)[0]'),
    ('x: Mat[n, d], y: Vec[n]) -> Mat[n, "d + 1"]', 'np.hstack([x, y[:, None]]).T', 'np.hstack([x, y[:, None]]).T is the other way round: write np.hstack([x, y[:, None]])', 'np.hstack([x, y[:, None]])'),
    ('x: Mat[n, d], y: Vec[n]) -> Mat[n, "d + 1"]', 'np.concatenate([x, y[:, None]], axis=1).T', 'it is the other way round: write its transpose', 'np.concatenate([x, y[:, None]], axis=1)'),
    ('x: Mat[n, d]) -> tuple[float, Mat[d, n]]', '0.5, x', 'it is the other way round: write its transpose', '0.5, x.T'),
    ('x: Mat[n, d]) -> Mat[d, n]', 'x*2', 'x*2 is the other way round: write (x*2).T', '(x*2).T'),
    ('x: Vec[n]) -> Mat[n, 1]', 'x', 'write x[:, None] to put its axis in that place', 'x[:, None]'),
    ('x: Vec[n]) -> Mat[n, d]', 'x*2', '', ''),
    ('x: Mat[n, d]) -> Mat[n, d]', 'x.mean(1)', '', ''),
    ('x: Mat[n, d]) -> Mat[n, 1]', 'x.mean(1)', 'a reduction lost axis -1: write keepdims=True in it, or [..., None] after it', 'x.mean(1, keepdims=True)'),
    ('x: Mat[n, 1], y: Mat[n, 1]) -> Mat[n, 1]', 'x[1:] - y[:-2]', 'the sizes differ by 1: is a slice one too long or too short?', ''),
    ('x: Mat[n, 1], y: Mat[2, 1]) -> Mat[n, 1]', 'x - y', 'to pair every row with every row, write x[:, None]', ''),
    ('q: Arr[n, T, d], r: Arr[n, T, d]) -> Arr[n, T, T]', 'q @ r.T', 'r.T has its axes in reverse order: write r.swapaxes(-1, -2)', 'q @ r.swapaxes(-1, -2)'),
    ('q: Arr[n, T, d], r: Arr[n, T, d]) -> Arr[n, T, T]', 'q @ (r*2).T', '(r*2).T has its axes in reverse order: write (r*2).swapaxes(-1, -2)', 'q @ (r*2).swapaxes(-1, -2)'),
    ('q: Arr[B, n, T, d], r: Arr[B, n, T, d]) -> Arr[B, n, T, T]', 'q @ r.T', 'r.T has its axes in reverse order: write r.swapaxes(-1, -2)', 'q @ r.swapaxes(-1, -2)'),
    ('x: Arr[n, T, d], y: Arr[d, n, T]) -> Arr[n, T, T]', 'x @ y', '', ''),
    ('x: Arr[B, n, d], y: Arr[B, m, d]) -> Arr[B, n, m]', 'x @ (y + 1)', 'y + 1 is the other way round: write (y + 1).swapaxes(-1, -2)', 'x @ (y + 1).swapaxes(-1, -2)'),
    ('x: Arr[B, d, n], y: Mat[d, m]) -> Arr[B, n, m]', '(x + 1) @ y', 'the left side is the other way round: write (x + 1).swapaxes(-1, -2)', '(x + 1).swapaxes(-1, -2) @ y'),
    ('x: Mat[n, d], a: Mat[m, d], b: Mat[d, m]) -> Mat[n, m]', 'x @ (a*b.T)', 'a*b.T is the other way round: write (a*b.T).T', 'x @ (a*b.T).T'),
    ('x: Mat[d, n], y: Mat[d, m]) -> Mat[n, m]', 'x @ y', 'the left side is the other way round: write x.T', 'x.T @ y'),
    ('x: Arr[B, d, n], y: Mat[d, m]) -> Arr[B, n, m]', 'x @ y', 'the left side is the other way round: write x.swapaxes(-1, -2)', 'x.swapaxes(-1, -2) @ y'),
    ('x: Mat[n, d], y: Mat[d, m]) -> Mat[n, m]', 'x.T @ y', 'the left side is the other way round: write x', 'x @ y'),
    ('x: Mat[n, d], w: Mat[m, d]) -> Mat[n, m]', 'x @ w', 'w is the other way round: write w.T', 'x @ w.T'),
]

@pytest.mark.parametrize('head, wrong, hint, right', WRITTEN)
def test_what_to_write(refusals, head, wrong, hint, right):
    text = RMS + '@typed\ndef f({}: return {}'
    e, = refusals(text.format(head, wrong))
    assert e.hint == hint, e
    if right: assert refusals(text.format(head, right)) == ()


def test_the_argument_that_does_not_fit_is_the_one_that_is_underlined(refusals):
    text = RMS + '@typed\ndef f(a: Mat[T, D], net: Net) -> Mat[T, m]: return {}'
    for call in 'net(a, y=a)', 'net(y=a, x=a)', 'Net.__call__(net, a, a)', 'net(a, a)':
        e, = refusals(text.format(call))
        line = text.format(call).splitlines()[-1]
        start = line.index(call) + (call.index('y=a') + 2 if 'y=a' in call else call.rindex('a'))
        assert (e.place.column, e.place.end_column) == (start, start + 1), e


def test_the_rows_of_an_argument_with_too_few_axes_are_not_guessed(refusals):
    e, = refusals(RMS + '@typed\ndef f(x: Mat[B, D], g: Vec[D]) -> Vec[D]: return rms(x[-1], g)[0]')
    assert e.expected == 'Mat<T, D>' and e.observed == 'Vec<D>'


# A size that may be 0

ZEROS = [  # the function, whether it would be right for 0
    ('def frames(x: Vec[n], hop: int) -> Vec["n//hop"]: return x[:len(x)//hop]', False),
    ('def frames(x: Vec[n], hop: int) -> Vec["hop"]: return np.full(hop, x[0])', True),
    ('def frames(x: Vec[n], hop: int) -> Vec["hop"]:\n    if hop < 1: raise ValueError("hop")\n    return np.full(hop, x[0])', False),
    ('def frames(x: Vec[n], hop: int) -> float: return np.full(hop, x[0]).max()', False),
]

@pytest.mark.parametrize('text, right', ZEROS)
def test_0_is_proposed_where_it_would_be_right(refusals, tmp_path, text, right):
    import re
    from bendml.shape import ShapeError
    caller = '\n@typed\ndef f(x: Vec[n], k: int) -> float:\n    frames(x, k - 1)\n    return 1.0'
    e, = refusals('@typed\n' + text + caller)
    assert ('where=["hop >= 0"]' in e.hint) == right and 'test it first' in e.hint
    assert refusals('@typed\n' + text + caller.replace('    frames', '    if k == 1: raise ValueError("k")\n    frames')) == ()
    if right: assert refusals('@typed(where=["hop >= 0"])\n' + text + caller) == ()
    space = {}
    (tmp_path/'g.py').write_text(HEAD + '@typed\n' + text)
    exec(compile((tmp_path/'g.py').read_text(), str(tmp_path/'g.py'), 'exec'), space)
    with pytest.raises(ShapeError, match='hop is 0') as stopped: space['frames'](space['np'].zeros(9), 0)
    assert ('would allow it' in stopped.value.hint) == right


def test_0_is_not_proposed_where_another_condition_forbids_it(refusals):
    e, = refusals('@typed(where="a >= 2")\ndef g(a: int) -> Vec["a"]: return np.zeros(a)\n@typed\ndef f(k: int) -> Vec["k"]: return g(k)')
    assert '>= 0' not in e.hint, e


# The names of what nobody has named

FRESH = {  # each has an inner size whose name would be that of one of the function's own
    'a mask, and k rows': ('x: Mat[n, d], c: Mat[k, d], label: Int[Vec[n]]) -> Mat[k, d]:\n    out = c.copy()\n    for j in range(len(c)): out[j] = x[label == j].mean(axis=1)\n    return out', 'k1 is how many entries are true'),
    'a mask, and k in the result alone': ('x: Vec[n], y: Vec[n]) -> Vec[k]: return x[x > 0] + y', 'k1 is how many entries are true'),
    'the turns of a loop over k, and k rows': ('x: Mat[n, d], c: Mat[k, d]) -> Vec[d]:\n    s = 0.0\n    for k in range(len(x)): s = s + c[k].sum()\n    return x[0]*s', 'k1 is the number of a later turn'),
}

@pytest.mark.parametrize('text, told', FRESH.values(), ids=FRESH)
def test_a_new_name_is_none_of_the_sizes_of_the_function(refusals, text, told):
    e, = refusals('@typed\ndef f(' + text)
    said_of = ' '.join(e.where)
    assert told in said_of and 'k is' not in said_of.replace('k1 is', ''), e


# A list that remains empty

GIVEN = 'if len({}) == 0: raise ValueError("nothing given")'
EMPTY = [  # the function, with a place for the test; why the list is empty; what is tested
    ('docs: list[Int[Vec[T]]], vocab: int) -> Mat[n, "vocab"]:\n    {}\n    c = np.array([np.bincount(doc % vocab, minlength=vocab)[:vocab] for doc in docs])\n    return c/c.sum(1, keepdims=True)', 'its loop makes no turn', 'docs'),
    ('xs: list[Vec[d]]) -> Mat[n, d]:\n    {}\n    return np.stack([x*2 for x in xs])', 'its loop makes no turn', 'xs'),
    ('xs: list[Vec[d]]) -> Vec[d]:\n    {}\n    return np.array([x*2 for x in xs]).mean(0)', 'its loop makes no turn', 'xs'),
    ('xs: list[Vec[d]], w: Vec[d]) -> Vec[n]:\n    {}\n    return np.array([x*2 for x in xs]) @ w', 'its loop makes no turn', 'xs'),
    ('xs: list[Vec[d]]) -> Mat[n, d]:\n    out = []\n    for x in xs: out.append(x*2)\n    {}\n    return np.array(out)', 'its loop makes no turn', 'out'),
    ('xs: list[Vec[d]]) -> Vec[d]:\n    out = []\n    for x in xs: out.append(x*2)\n    {}\n    return np.array(out)[0]', 'its loop makes no turn', 'out'),
    ('x: Mat[n, d]) -> Mat[k, d]:\n    out = []\n    for r in x:\n        if r.sum() > 0: out.append(r)\n    {}\n    return np.array(out)', 'no turn appends to it', 'out'),
    ('x: Mat[n, d]) -> Mat[k, d]:\n    values = [r for r in x if r.sum() > 0]\n    {}\n    return np.array(values)', 'nothing is chosen', 'values'),
]

@pytest.mark.parametrize('text, why, what', EMPTY)
def test_a_list_that_remains_empty(refusals, text, why, what):
    e, = refusals('@typed\ndef f(' + text.format('pass'))
    assert e.hint == f'the list is empty where {why}; test it first: {GIVEN.format(what)}' and not any('< 1' in c for c in e.known), e
    assert refusals('@typed\ndef f(' + text.format(GIVEN.format(what))) == ()


def test_an_empty_list_without_a_name(refusals):
    e, = refusals('@typed\ndef f(x: Mat[n, d]) -> Mat[k, d]: return np.array([r for r in x if r.sum() > 0])')
    assert e.hint == f'the list is empty where nothing is chosen; give it a name and test it: values = [...], and {GIVEN.format("values")}'


def test_only_a_list_has_a_length_to_test(refusals):
    e, = refusals('@typed\ndef f(xs: list[Vec[d]]) -> Mat[n, d]:\n    pairs = enumerate(xs)\n    return np.array([x*i for i, x in pairs])')
    assert 'values = [...]' in e.hint, e
    e, = refusals('@typed\ndef f(xs: list[Vec[d]], x: Mat[n, d]) -> Mat[k, d]: return np.array([r for r in x if r.sum() in xs])')
    assert 'xs)' not in e.hint, e


def test_a_list_that_is_empty_on_purpose_is_no_excuse(refusals):
    e, = refusals('@typed\ndef f(xs: list[Vec[d]]) -> Vec[d]:\n    s = 1.0\n    for x in xs: s = s + x.sum()\n    return np.array([])*s')
    assert 'empty' not in e.hint, e


# The place of an entry

PLACES = [
    ('x: Mat[n, d], kk: int) -> Mat[n, d]', 'np.partition(x, kk - 1, axis=1)', 'kk <= d'),
    ('x: Mat[n, d], y: Vec[d], kk: int) -> Mat[n, "kk"]', 'y[x.argpartition(kk - 1, axis=1)[:, :kk]]', 'kk <= d'),
    ('x: Vec[n], kk: int) -> float', 'np.partition(x, -kk)[-kk:].mean()', 'kk <= n'),
    ('x: Vec[n], kk: int) -> Vec[n]', 'np.partition(x, (0, kk))', 'kk < n'),
]

@pytest.mark.parametrize('head, text, condition', PLACES)
def test_the_place_of_an_entry(refusals, head, text, condition):
    e, = refusals(f'@typed\ndef f({head}: return {text}')
    assert e.hint == f'add where=["{condition}"], or test it first' and e.fails_at and 'kk' in dict(e.fails_at), e
    assert refusals(f'@typed(where="{condition}")\ndef f({head}: return {text}') == ()


# What does not run

@pytest.mark.parametrize('text, says', [
    ('X = np.load("x.npy")\nX -= X.mean(0)\nC = X.mean(0)', 'C needs X, which is assigned on line 5, which `bendml check` does not run'),
    ('X = np.load("x.npy")\nX = X - X.mean(0)\nX[0] = X[1]\nC = X*2', 'C needs X, which is assigned on line 5, which'),
    ('X = np.load("x.npy")\nC = X*2\nX -= C\nC += X', 'C needs X, which is assigned on line 5, which'),
    ('C = np.load("x.npy")\nC -= C.mean(0)', 'C is assigned on line 5, which `bendml check` does not run'),
])
def test_what_is_changed_by_itself_needs_no_other(refusals, text, says):
    (HEAD.count('\n') == 3) or pytest.fail('the lines above have changed')
    e, = refusals('\n' + text + '\n@typed\ndef f(x: Mat[n, d]) -> Mat[n, d]: return x - C')
    assert e.hint.startswith(says), e


def test_what_is_said_of_a_called_function_stays_as_it_is(refusals):
    inner = '@typed\ndef inner(x: Mat[n, d], q: int) -> Mat[n, "q"]: return x[:, :q]\n'
    e, = refusals(inner + '@typed\ndef f(x: Mat[n, m]) -> Mat[n, 2]: return inner(x, 2)')
    assert e.hint.endswith('say where=["q <= d"]'), e


def test_how_many_values_a_parameter_has_is_said(refusals):
    e, = refusals('@typed\ndef f(xs: list[Vec[d]]) -> Vec[d]:\n    out = [0.0]\n    for x in xs: out.append(x.sum())\n    return np.array(out)')
    assert 'n is the length of a list of Vec<d>' in e.where, (e, e.where)
