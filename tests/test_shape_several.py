"Lists that a loop fills, read one by one and backwards; other ways to go through several things: what is accepted runs, its wrong twins are refused."
import functools, itertools
import numpy as np, pytest
from bendml.shape import Int, Mat, ShapeError, Vec, dims, typed
from tests.test_shape_trace import define, refused

n, m, d, k = dims('n m d k')
FORWARD = '''
    ins = []
    for w in ws:
        ins.append(x); x = np.tanh(x @ w)
    grads, delta = [], x'''
BACKWARD = {
    'both reversed': 'for w, a in zip(reversed(ws), reversed(ins)):\n        grads.append(a.T @ delta); delta = delta @ w.T\n    return grads[::-1]',
    'slices': 'for w, a in zip(ws[::-1], ins[::-1]):\n        grads.append(a.T @ delta); delta = delta @ w.T\n    grads.reverse()\n    return grads',
    'an index': 'for i in reversed(range(len(ws))):\n        grads.append(ins[i].T @ delta); delta = delta @ ws[i].T\n    return list(reversed(grads))',
    'counted down': 'for i in range(len(ws) - 1, -1, -1):\n        grads.append(ins[i].T @ delta); delta = delta @ ws[i].T\n    return grads[::-1]',
    'counted from the end': 'for i in range(len(ws)):\n        grads.append(ins[~i].T @ delta); delta = delta @ ws[-1 - i].T\n    return grads[::-1]',
    'a range turned': 'for i in range(len(ws))[::-1]:\n        grads.append(ins[i].T @ delta); delta = delta @ ws[i].T\n    return grads[::-1]',
    'put in front': 'for w, a in zip(reversed(ws), reversed(ins)):\n        grads.insert(0, a.T @ delta); delta = delta @ w.T\n    return grads',
    'numbered': 'for i, (w, a) in enumerate(zip(reversed(ws), reversed(ins))):\n        grads.append(a.T @ delta/(i + 1)); delta = delta @ w.T\n    return grads[::-1]',
}
ALL = {name: f'{FORWARD}\n    {b}' for name, b in BACKWARD.items()} | {
    'all that came out': '''
    acts = [x]
    for w in ws: acts.append(np.tanh(acts[-1] @ w))
    grads, delta = [], acts[-1]
    for w, a in zip(reversed(ws), reversed(acts[:-1])):
        grads.append(a.T @ delta); delta = delta @ w.T
    return grads[::-1]''',
    'by number': '''
    acts = [x]
    for w in ws: acts.append(np.tanh(acts[-1] @ w))
    grads, delta = [], acts[len(ws)]
    for i in reversed(range(len(ws))):
        delta = delta*(1 - acts[i + 1]**2)
        grads.append(acts[i].T @ delta); delta = delta @ ws[i].T
    return grads[::-1]'''}
HEAD = '@typed\ndef f(x: Mat[n, d], ws: list[Mat[d, d]]) -> '


@pytest.mark.parametrize('name', ALL)
def test_the_backward_pass_over_a_list_of_layers(name):
    f = define(f'{HEAD}list[Mat[d, d]]:{ALL[name]}')
    ws = [np.full((3, 3), .1*i) for i in range(1, 4)]
    for some in ([], ws[:1], ws): assert [g.shape for g in f(np.ones((2, 3)), some)] == [(3, 3)]*len(some)


WRONG = {  # what is changed in one of these, and what is said of it
    'not transposed': ('both reversed', 'a.T @ delta', 'a @ delta.T', 'has size n on axis 0, not d'),
    'the product the other way round': ('an index', 'ins[i].T @ delta', 'delta @ ins[i].T', 'has size n on axis 0, not d'),
    'one too many': ('all that came out', 'reversed(acts[:-1])', 'reversed(acts)', 'zip() of different lengths'),
    'one too few': ('both reversed', 'reversed(ins)', 'reversed(ins[1:])', 'zip() of different lengths'),
    'beyond the end': ('an index', 'ins[i]', 'ins[i + 1]', 'element n'),
    'from the end, one too far': ('counted from the end', 'ins[~i]', 'ins[~i - 1]', 'may be fewer'),
    'before the beginning': ('an index', 'ins[i]', 'ins[i - 1]', 'element'),
    'one after the last': ('by number', 'acts[len(ws)]', 'acts[len(ws) + 1]', 'element'),
    'empty without a layer': ('both reversed', 'return grads[::-1]', 'return [grads[0]]', 'element 0|index out of range'),
    'grows in width': ('all that came out', 'acts.append(np.tanh(acts[-1] @ w))', 'acts.append(np.hstack([acts[-1], acts[-1]]))', 'differ'),
    'the last of none': ('all that came out', 'acts = [x]\n', 'acts = []\n', 'index out of range|may be empty'),
    'a number of an unknown place': ('put in front', 'return grads', 'return [grads.pop()]', 'one by one|pop from empty'),
}

@pytest.mark.parametrize('what', WRONG)
def test_wrong_backward_passes(what):
    name, right, wrong, says = WRONG[what]
    assert right in ALL[name]
    e = refused(f'{HEAD}list[Mat[d, d]]:{ALL[name].replace(right, wrong)}')
    assert any(s in str(e) for s in says.split('|')), e


@pytest.mark.parametrize('body, says', [
    ('masks = [x[:, j] > 0 for j in range(x.shape[1])]\n    for a, b in zip(masks, reversed(masks)): x[a] + x[b]', 'has size k on the left'),
    ('masks = [x[:, j] > 0 for j in range(x.shape[1])]\n    last = None\n    for a in masks:\n        if last is not None: x[a] + x[last]\n        last = a', 'has size k on the left'),
    ('masks = [x[:, j] > 0 for j in range(x.shape[1])]\n    x[masks[0]] + x[masks[-1]]', 'has size k on the left'),
    ('ks = [int(r.argmax()) for r in x]\n    for a in ks:\n        for b in reversed(ks): np.zeros(a) + np.zeros(b)', 'add'),
    ('ks = [(int(r.argmax()), 1) for r in x]\n    np.zeros(ks[0][0]) + np.zeros(ks[-1][0])', 'add'),
    ('gs = [[] for _ in range(len(x))]\n    for g in gs: g.append(x[0])\n    x = np.stack(gs[0])', 'stands for several'),
    ('gs = [[] for _ in range(len(x))]\n    for i in range(len(x)): gs[i].append(x[0])', 'several lists'),
])
def test_what_stands_for_several_is_not_one(body, says):
    assert says in str(refused(f'@typed\ndef f(x: Mat[n, d]) -> Mat[n, d]:\n    {body}\n    return x'))


@pytest.mark.parametrize('loop', [
    'for r in x:\n        last[0] = 99\n        last = np.zeros(3, int) + 0*int(r[0] > 0)\n        out.append(last)\n    return y[np.stack(out)]',
    'out.append(last)\n    for i in range(len(x)):\n        y[out[-1]]\n        out.append(np.full(3, i))\n    return x[:, :1]*y[:3]',
    'out.append(last)\n    for r in x:\n        if r[0] > 0:\n            y = y[out[-1]]\n            break\n        out.append(np.full(3, 9))\n    return x[:, :1]*y[:3]',
])
def test_numbers_in_a_list_that_a_loop_fills(loop):
    assert 'nothing bounds' in str(refused(f'@typed\ndef f(x: Mat[n, d], y: Vec[4]) -> Mat[n, 3]:\n    out, last = [], np.zeros(3, int)\n    {loop}'))


def test_a_list_after_a_break_is_not_read():
    assert 'may end early' in str(refused('''
        @typed
        def f(x: Mat[n, d]) -> Vec[d]:
            seen = [x[0]]
            for r in x:
                for s in x:
                    if s[0] > 0: break
                    seen.append(s)
                seen.append(seen[-1] + r)
            return x[0]'''))


def test_zip_says_what_is_lost():
    e = refused('@typed\ndef f(x: Vec[d], a: list[Vec[d]], b: list[Vec[d]]) -> Vec[d]:\n    for v, w in zip(a, b): x = x + v*w\n    return x')
    assert 'the rest is lost' in e.hint and 'assert len(a) == len(b)' in e.hint and 'length of a list of Vec<d>' in str(e) and '  ' not in str(e.where)
    e = refused('@typed\ndef f(x: Vec[d], a: list[Vec[d]], b: list[Vec[d]]) -> Vec[d]:\n    for v, w in zip(a, b, strict=True): x = x + v*w\n    return x')
    assert 'ValueError' in e.hint and 'lost' not in str(e) and 'rest' not in str(e) and 'assert len(a) == len(b)' in e.hint
    for zipped in ('zip(a, b)', 'zip(a, b, strict=True)', 'zip(a, (b[i] for i in range(0)))'):
        text = f'@typed\ndef f(x: Vec[d], a: list[Vec[d]], b: list[Vec[d]]) -> Vec[d]:\n    assert len(a) == len(b)\n    for v, w in {zipped}: x = x + v*w\n    return x'
        if 'range' not in zipped: assert define(text)(np.ones(2), [np.ones(2)], [np.ones(2)]).shape == (2,)
        else: assert 'generator' in str(refused(text))
    e = refused('@typed\ndef f(x: Vec[d], a: list[Vec[d]]) -> Vec[d]:\n    for i, v in zip(itertools.count(), a): x = x + i*v\n    return x', itertools=itertools)
    assert 'enumerate' in e.hint
    assert '[:-1] or [1:]' in refused('@typed\ndef f(x: Vec[n]) -> float:\n    s = 0.0\n    for a, b in zip(x, x[1:]): s += a*b\n    return s').hint


KEYED = '@typed\ndef f(x: Mat[n, d], y: Int[Vec[n]]) -> Mat[k, d]:\n    '

@pytest.mark.parametrize('body, says', [
    ('means = {}\n    for c in np.unique(y): means[c] = x[y == c].mean(0)\n    return np.stack(list(means.values()))', 'used as a key'),
    ('means = {}\n    for c in np.unique(y): means[int(c)] = x[y == c].mean(0)\n    return np.stack(list(means.values()))', 'used as a key'),
    ('means = {c: x[y == c].mean(0) for c in np.unique(y)}\n    return np.stack(list(means.values()))', 'a dict comprehension'),
    ('for c in set(y): x = x + c\n    return x', 'a set of an unknown number'),
    ('seen = {}\n    for c in y: seen[c] = seen.get(c, 0) + 1\n    return x', 'used as a key'),
])
def test_labels_as_keys(body, says):
    e = refused(KEYED + body, k=k)
    assert says in str(e) and 'np.unique' in e.hint and "'" not in ''.join(e.known) and 'TypeError' not in str(e), e


@pytest.mark.parametrize('body', [  # what the hints say
    'means = []\n    for c in np.unique(y): means.append(x[y == c].mean(0))\n    return np.stack(means)',
    'return np.stack([x[y == c].mean(0) for c in np.unique(y)])',
    'labels = np.unique(y)\n    means = np.zeros((len(labels), x.shape[1]))\n    for i, c in enumerate(labels): means[i] = x[y == c].mean(0)\n    return means',
])
def test_a_row_for_each_label(body):
    assert define(KEYED + body, k=k)(np.ones((4, 2)), np.array([3, 5, 3, 9])).shape == (3, 2)


ROUND = '@typed\ndef f(g: Mat[n, d], ws: list[Mat[d, d]]) -> '
SPACE = dict(itertools=itertools, functools=functools)
AS_LOOPS = {  # a result's annotation and the body
    'ndindex': ('Mat[n, d]', 'out = np.zeros_like(g)\n    for i, j in np.ndindex(g.shape):\n        if i > 0 and j + 1 < g.shape[1]: out[i, j] = g[i - 1, j + 1]\n    return out'),
    'ndindex of numbers': ('Mat[n, d]', 'out = np.zeros_like(g)\n    for i, j in np.ndindex(len(g), g.shape[1]): out[i, j] = g[i, j]\n    return out'),
    'ndenumerate': ('Mat[d, n]', 'out = np.zeros(g.shape[::-1])\n    for (i, j), v in np.ndenumerate(g): out[j, i] = v\n    return out'),
    'product': ('Mat[n, d]', 'for i, j in itertools.product(range(len(g)), range(g.shape[1])): g[i, j] += 1\n    return g'),
    'product of rows': ('Vec["n*n"]', 'return np.array([a @ b for a, b in itertools.product(g, repeat=2)])'),
    'product that is listed': ('Mat[n, d]', 'ij = list(itertools.product(range(len(g)), range(g.shape[1])))\n    for i, j in ij: g[i, j] += 1\n    return g'),
    'pairs': ('Vec["n*(n - 1)//2"]', 'return np.array([np.linalg.norm(a - b) for a, b in itertools.combinations(g, 2)])'),
    'pairwise': ('Mat["n - 1", d]', 'return np.array([b - a for a, b in itertools.pairwise(g)]) if len(g) > 1 else np.zeros((0, g.shape[1]))'),
    'reduce': ('Mat[n, d]', 'return functools.reduce(lambda h, w: np.tanh(h @ w), ws, g)'),
    'reduce of rows': ('Vec[d]', 'return functools.reduce(np.maximum, g)'),
    'sorted': ('Mat[n, d]', 'return np.array(sorted(g, key=lambda r: r[0]))'),
}

@pytest.mark.parametrize('name', AS_LOOPS)
def test_loops_by_another_name(name):
    result, body = AS_LOOPS[name]
    f = define(f'{ROUND}{result}:\n    {body}', **SPACE)
    for rows, cols in ((1, 1), (1, 3), (3, 1), (4, 3)): f(np.arange(12.0)[:rows*cols].reshape(rows, cols), [np.eye(cols)]*2)  # the result is checked


NOT_LOOPS = {  # what is changed in one of these, and what is said of it
    'the other way round': ('ndindex of numbers', 'g[i, j]', 'g[j, i]', 'of an axis of size'),
    'the indices exchanged': ('ndenumerate', 'out[j, i]', 'out[i, j]', 'of an axis of size'),
    'beyond the end': ('ndindex', 'j + 1 < g', 'j < g', 'of an axis of size d'),
    'beyond the other axis': ('product', 'range(g.shape[1])', 'range(len(g))', 'of an axis of size d'),
    'every pair of one': ('product of rows', 'repeat=2', 'repeat=1', ''),
    'negative lengths': ('product of rows', 'a @ b for a, b in itertools.product(g, repeat=2)', 'g[0, 0] for i, j in itertools.product(range(1, len(g)), range(2, len(g)))', 'size'),
    'pairs of equals': ('pairs', 'combinations(g, 2)', 'product(g, g)', 'not'),
    'a row too many': ('pairwise', 'itertools.pairwise(g)', 'zip(g, g)', 'not n - 1'),
    'grows': ('reduce', 'np.tanh(h @ w)', 'np.hstack([h, h])', 'changes its shape|not d'),
    'reduce of nothing': ('reduce', 'np.tanh(h @ w), ws, g', 'h @ w, ws', 'there may be none'),
    'rows have no order': ('sorted', ', key=lambda r: r[0]', '', 'have no order'),
}

@pytest.mark.parametrize('what', NOT_LOOPS)
def test_wrong_loops_by_another_name(what):
    name, right, wrong, says = NOT_LOOPS[what]
    result, body = AS_LOOPS[name]
    assert right in body
    e = refused(f'{ROUND}{result}:\n    {body.replace(right, wrong)}', **SPACE)
    assert any(s in str(e) for s in says.split('|')), e


def test_what_is_no_loop_says_what_to_write():
    for body, hint in (('list(itertools.accumulate(g))', 'np.cumsum'), ('list(itertools.combinations(g, 3))', 'a loop in a loop'), ('set(g[0])', 'np.unique'),
                       ('[a @ b for a in g for b in g]', 'a for loop that appends'), ('{len(a) for a in g}', 'np.unique'), ('list(itertools.chain(g, g))', 'a for loop of your own')):
        assert hint in refused(f'{ROUND}Mat[n, d]:\n    {body}\n    return g', **SPACE).hint


BEST = '@typed\ndef f(x: Mat[n, d], y: Vec[n]) -> tuple[int, float]:\n    best = (0, np.inf)\n    for j in range(x.shape[1]):\n        {}\n    return best'

def test_the_parts_of_a_tuple_are_counted():
    f = define(BEST.format('err = np.abs(x[:, j] - y).sum()\n        if err < best[1]: best = (j, err)'))
    assert f(np.eye(3), np.eye(3)[1]) == (1, 0.0) and f(np.ones((2, 1)), np.ones(2)) == (0, 0.0)
    for body, says in (
            ('best = (best[0] + 1, np.append(best[1], y[0]))', 'best[1] changes its shape'),
            ('best = (best[0] + 1, str(best[1]) + "a")', 'best'),
            ('best = (best[0] + 1, x[:, best[0]].sum() + y[0])', 'keep what it picks'),
            ('best = (*best, y[0])', 'best changes')):
        e = refused(BEST.format(body))
        assert says in str(e) and 'observed : tuple' not in str(e), e


def test_a_list_that_is_a_parameter_is_the_callers():
    text = '@typed\ndef f(x: Mat[n, d], ws: list[Mat[d, d]]) -> list[Mat[d, d]]:\n    ws.append(x.T @ x)\n    return ws'
    assert 'list(...)' in refused(text).hint
    assert len(define(text.replace('ws.append', 'ws = list(ws)\n    ws.append'))(np.ones((2, 3)), [np.eye(3)])) == 2
