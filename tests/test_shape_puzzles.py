"The puzzles page: every puzzle is refused as it stands, its solution is not, and what has the right shape only is found out by the numbers."
import ast, contextlib, io, re
import pytest
from tools.notebooks import ROOT
from tests.shape.text import run_text

CELLS = [c for c in re.split(r'^# %%.*\n', (ROOT/'nbs/_text/25_puzzles.py').read_text(), flags=re.M) if c.strip() and not all(line.startswith('#') for line in c.strip().split('\n'))]
PUZZLES = {f.name: c for c in CELLS if c.startswith('@puzzle((') for f in ast.parse(c).body if isinstance(f, ast.FunctionDef)}


def _space():
    "What the page defines before the first puzzle, and all tries."
    space = {}
    for c in CELLS:
        if '@puzzle' not in c and not c.startswith('#| hide'): _say(c, space)
    return space


def _say(text, space):
    "Execute a cell; what it prints."
    with contextlib.redirect_stdout(out := io.StringIO()): run_text(text, space)
    return out.getvalue()


def _with(cell, body, where=None):
    "The cell with another body, and another condition."
    head = cell[:re.search(r'\)( -> .*):\n', cell).end()]
    if where is not None: head = re.sub(r"(, where=.*)?\)\ndef", f", where={where!r})\ndef", head, count=1)
    return head + ''.join(f'    {line}\n' for line in body.split('\n'))


@pytest.mark.parametrize('name', PUZZLES)
def test_refused_as_it_stands(name):
    said = _say(PUZZLES[name], _space())
    assert ': in ' + name in said and 'solved' not in said and 'accepted' not in said


GOOD = [
    ('project', 'return (w @ x.T).T'), ('centre_rows', 'return x - x.mean(axis=1)[:, None]'), ('centre_rows', 'return (x.T - x.mean(axis=1)).T'),
    ('absolute_error', 'return np.abs(prediction.ravel() - target).mean()'), ('absolute_error', 'return np.abs(prediction - target[:, None]).mean()'),
    ('absolute_error', 'return np.abs(prediction[:, 0] - target).mean()'), ('slopes', 'return np.diff(y)/(t[1:] - t[:-1])'),
    ('distances', 'return np.sqrt(((a[:, None] - b[None])**2).sum(axis=-1))'), ('merge', 'b, h, t, d = o.shape\nreturn o.swapaxes(1, 2).reshape(b, t, -1)'),
    ('halves', 'a, b = np.split(x, 2, axis=1)\nreturn a*b', 'd % 2 == 0'), ('halves', 'k = x.shape[1]//2\nreturn x[:, :k]*x[:, k:2*k]'),
    ('flat', 'return x[:, 0]'), ('flat', 'return x.reshape(-1)'), ('gradient', 'return (dy.T @ x).T'), ('gradient', "return np.einsum('bi,bj->ij', x, dy)"),
    ('smooth', 'return (x[:-2] + x[1:-1] + x[2:])/3'), ('running', 'return np.cumsum(x, axis=0)'),
    ('embed', 'return words[ids] + places[:len(ids)]', ['T <= 1024', 'ids < K']),
]

@pytest.mark.parametrize('name, body, where', [(*g, None)[:3] for g in GOOD])
def test_solved(name, body, where): assert _say(_with(PUZZLES[name], body, where), _space()) == f'{name}: solved\n'


CHEATS = [
    ('project', 'return np.zeros((len(x), len(w)))'), ('project', 'return x.sum(1)[:, None] + w.sum(1)'), ('centre_rows', 'return x'),
    ('centre_rows', 'return x - x.mean(axis=0)'), ('centre_rows', 'return x - x.mean()'), ('absolute_error', 'return 0.0'),
    ('absolute_error', 'return np.abs(prediction - target[None]).mean()'), ('slopes', 'return np.diff(y)/t[1:]'), ('slopes', 'return np.diff(y)'),
    ('distances', 'return np.zeros((len(a), len(b)))'), ('distances', 'return ((a[:, None] - b)**2).sum(axis=-1)'),
    ('merge', 'b, h, t, d = o.shape\nreturn np.zeros((b, t, h*d))'), ('merge', 'b, h, t, d = o.shape\nreturn o.transpose(0, 2, 3, 1).reshape(b, t, -1)'),
    ('halves', 'return np.zeros((len(x), x.shape[1]//2))'), ('halves', 'k = x.shape[1]//2\nreturn x[:, :k]*x[:, :k]'),
    ('flat', 'return x.squeeze()', 'B >= 2'), ('flat', 'return np.zeros(len(x))'),
    ('gradient', 'return x.T @ x'), ('gradient', 'return dy.T @ dy'), ('gradient', "return np.einsum('bi,bj->ji', x, dy)"), ('gradient', 'return np.eye(x.shape[1])'),
    ('smooth', 'y = np.zeros(len(x) - 2)\nfor i in range(len(x) - 3): y[i] = (x[i] + x[i + 1] + x[i + 2])/3\nreturn y', 'n >= 3'), ('smooth', 'return x[1:-1]', 'n >= 3'),
    ('running', 'return x'), ('running', 'return np.zeros(x.shape)'),
    ('embed', 'return words[ids] + places[np.arange(len(ids))]', 'T <= 1024'), ('embed', 'return words[ids] + places[np.arange(len(ids))]', 'ids < K'),
    ('embed', 'return words[ids]', ['T <= 1024', 'ids < K']), ('embed', 'return words[ids] + places[np.arange(len(ids)) % 1024]'),
    ('embed', 'return words @ ids', '1 > 2'),
]

@pytest.mark.parametrize('name, body, where', [(*c, None)[:3] for c in CHEATS])
def test_cheats_are_found_out(name, body, where):
    said = _say(_with(PUZZLES[name], body, where), _space())
    assert said and 'solved' not in said
