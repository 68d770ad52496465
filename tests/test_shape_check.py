"The command: what it runs, what it says, how it ends; and how a refusal looks in a notebook."
import json, subprocess, sys, textwrap
from pathlib import Path
import numpy as np, pytest
from bendml.shape import ShapeError
from bendml.shape.check import check_file

GOOD = 'import numpy as np\nfrom bendml.shape import Dim, Mat, Vec, typed\nB = Dim("B")\n\n@typed\ndef good(x: Mat[B, 3], w: Mat[3, 5]) -> Mat[B, 5]:\n    return x @ w\n'
BAD = '\n@typed\ndef bad(x: Mat[2, 3], y: Mat[4, 5]) -> Mat[2, 5]:\n    return x @ y\n'


def run(cwd, *args):
    return subprocess.run([sys.executable, '-W', 'ignore', '-c', 'from bendml.cli import main; main()', 'check', *args],
                          cwd=cwd, capture_output=True, text=True)


def test_exit_codes_and_lines(tmp_path):
    (tmp_path/'good.py').write_text(GOOD)
    (tmp_path/'bad.py').write_text(GOOD + BAD)
    good, bad = run(tmp_path, 'good.py'), run(tmp_path, '--quiet', 'good.py', 'bad.py')
    assert good.returncode == 0 and 'good -> Mat<B, 5>' in good.stdout and '0 of 1 functions refused' in good.stdout and ' s\n' in good.stdout
    assert bad.returncode == 1
    assert bad.stdout == 'bad.py:11:16: error: matmul: the left side has 3 columns, the right side 4 rows; expected Mat<3, 5>, observed Mat<4, 5>\n'


def test_json(tmp_path):
    (tmp_path/'bad.py').write_text(GOOD + BAD)
    found = json.loads(run(tmp_path, '--json', 'bad.py').stdout)
    assert [(r['function'], r['line'], r['column'], r['expected'], r['observed']) for r in found['refused']] == [('bad', 11, 16, 'Mat<3, 5>', 'Mat<4, 5>')]
    assert [a['function'] for a in found['accepted']] == ['good'] and 'bad.py' in found['seconds']


def test_the_program_is_not_run(tmp_path):
    (tmp_path/'script.py').write_text(GOOD + '''
import pathlib, sys
pathlib.Path("touched").write_text("no")
data = np.load("missing.npy")
for i in range(3): sys.exit(7)
with open("touched", "w") as f: f.write("no")
if __name__ == "__main__": sys.exit(7)
@typed
def uses(x: Mat[B, 3]) -> Mat[B, 3]: return x + data
''')
    result = run(tmp_path, 'script.py')
    assert result.returncode == 1 and not (tmp_path/'touched').exists()
    assert 'only definitions' in result.stdout or "name 'data' is not defined" in result.stdout, result.stdout


@pytest.mark.parametrize('step', [
    '{}', 'x = {}', 'x: int = {}', 'x = np.zeros({})', 'GOOD = [{}]', 'x = 1\nx += {}', 'for i in range(3): {}', 'while {}: break', 'if True: {}', 'if __name__ != "": {}', 'with open(__file__) as f: {}',
    'try: {}\nfinally: pass', 'assert {}', 'del np.a[{}]', 'raise {}', 'match {}:\n    case _: pass', '(lambda: {})()', 'x = y = {}', 'B = Dim("B"); {}', 'print({})'])
def test_a_step_of_the_program_is_not_run(tmp_path, step):
    "One step alone, and what it needs is there: it would leave a file."
    write = f'pathlib.Path({str(tmp_path/"touched")!r}).write_text("no")'
    (tmp_path/'script.py').write_text('import pathlib\n' + GOOD + '\n' + step.format(write))
    found = check_file(tmp_path/'script.py')
    assert [r.name for _, r in found.reports] == ['good'] and not found.refusals and not (tmp_path/'touched').exists()


def test_modules_notebooks_and_undecorated_functions(tmp_path):
    (tmp_path/'pack').mkdir()
    (tmp_path/'pack/__init__.py').write_text('')
    (tmp_path/'pack/inner.py').write_text(GOOD)
    cells = [{'cell_type': 'code', 'source': GOOD.splitlines(True)}, {'cell_type': 'markdown', 'source': 'text'}, {'cell_type': 'code', 'source': '%matplotlib inline\n' + BAD}]
    (tmp_path/'page.ipynb').write_text(json.dumps({'cells': cells}))
    (tmp_path/'plain.py').write_text(GOOD + '\ndef plain(x: Mat[B, 3], w: Mat[4, 5]) -> Mat[B, 5]:\n    return x @ w\n\ndef other(x, y: int): return x\n')
    assert 'good' in run(tmp_path, 'pack.inner').stdout
    page = run(tmp_path, '--quiet', 'page.ipynb')
    assert page.returncode == 1 and page.stdout.startswith('page.ipynb#cell2:5:16: error: matmul')
    plain = run(tmp_path, 'plain.py')
    assert plain.returncode == 1 and 'in plain' in plain.stdout and '1 of 2 functions' in plain.stdout


@pytest.mark.parametrize('name, content', [('none.py', None), ('syntax.py', 'def f(:'), ('bytes.py', b'\xff\xfe\0\1'), ('nul.py', 'x = 1\0'), ('page.ipynb', '[1, 2'), ('page.ipynb', '{"cells": 3}'),
                                           ('deep.py', '('*5000), ('no.such.module', None), ('big.py', 'x = 1\n'*1_000_000)])
def test_broken_files(tmp_path, name, content):
    if content is not None: (tmp_path/name).write_bytes(content if isinstance(content, bytes) else content.encode())
    result = run(tmp_path, name)
    assert result.returncode == 2 and 'Traceback' not in result.stderr and name.split('.')[0] in result.stderr


def test_many_layers_in_a_second(tmp_path):
    "128 different layers, and a GPT-2 block within 0.3 s: the best of a few, since machines are shared."
    layers = ''.join(f'\n@typed\ndef layer{i}(x: Mat[B, {100 + i}], w: Mat[{100 + i}, {300 + 2*i}], b: Vec[{300 + 2*i}]) -> Mat[B, {300 + 2*i}]:\n'
                     f'    return np.maximum(x @ w + b, 0)\n' for i in range(128))
    (tmp_path/'layers.py').write_text(GOOD + layers)
    found = [check_file(tmp_path/'layers.py') for _ in range(3)]
    assert all(len(c.reports) == 129 and not c.refusals for c in found)
    assert min(c.seconds for c in found) < 1.0
    from bendml.shape.paths import check
    from tests.shape import programs
    block = programs.block.__shapes__
    assert min(check(block.f, block.signature, block.where, block.keep).seconds for _ in range(5)) < 0.3


def test_a_notebook_shows_the_message_alone():
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output
    shell = InteractiveShell.instance()
    with capture_output() as out: shell.run_cell(GOOD + BAD)
    InteractiveShell.clear_instance()
    assert '- expected : Mat<3, 5>' in out.stdout and 'return x @ y' in out.stdout and 'Traceback' not in out.stdout and 'symbols.py' not in out.stdout


def test_html():
    e = ShapeError('matmul: <b>', 'Mat<3, 5>', 'Mat<4, 5>')
    page = e._repr_html_()
    assert '&lt;3, 5&gt;' in page and '<b>' not in page and '- expected' in page


@pytest.mark.slow
def test_a_notebook_shows_a_refusal_as_html():
    import nbformat
    from nbclient import NotebookClient
    cell = nbformat.v4.new_code_cell('import numpy as np\nfrom bendml.shape import Mat, typed\n@typed\ndef f(x: Mat[2, 3], y: Mat[4, 5]) -> Mat[2, 5]: return x @ y')
    book = nbformat.v4.new_notebook(cells=[cell])
    NotebookClient(book, kernel_name='python3', allow_errors=True, timeout=120).execute()
    shown, error = book.cells[0].outputs
    assert '- expected : Mat&lt;3, 5&gt;' in shown['data']['text/html'] and '<b style=' in shown['data']['text/html']
    assert error['ename'] == 'ShapeError' and len(error['traceback']) == 1 and 'this notebook:4:60: error: matmul' in error['traceback'][0], error


HEAD = 'import logging, sys\nimport numpy as np\nfrom bendml.shape import Dim, Mat, Vec, dims, typed\nn, d, k = dims("n d k")\n'
USES = '\n@typed\ndef f(x: Vec[n]) -> Vec[n]: return x + len(str(K))\n'

DEFINE = '''K = np.ones(3)/3
K = np.hanning(16)
K = logging.getLogger(__name__)
K = np.random.default_rng(0)
K = np.random.default_rng(0).normal(size=(3, 4)).T
K = {c: i for i, c in enumerate("a b c".split())}
K = np.pi/180*np.arange(4)
K = dict(lr=0.1)
K = lambda x: open(x)
K = sorted([3, 1], key=lambda v: -v)
K = __import__
K, L = np.meshgrid(np.arange(3), np.arange(4))
K = [1]; K += [2]
K = "a"; K = K*3
if True: K = 3
try: import nosuchmodule as K
except ImportError: K = None
K = np.vectorize(lambda x: print(x))
from dataclasses import dataclass
@dataclass
class C: x: float = 1.0
K = C(2.0)
from pathlib import Path; K = Path(__file__).parent/"data"'''.split('\nK')

@pytest.mark.parametrize('text', ['K' + t if i else t for i, t in enumerate(DEFINE)])
def test_what_defines(tmp_path, text):
    (tmp_path/'a.py').write_text(HEAD + text + USES)
    found = check_file(tmp_path/'a.py')
    assert [str(e) for e in found.refusals] == [] and len(found.reports) == 1


@pytest.mark.parametrize('text', '''K = open("touched", "w")
K = input()
K = np.load("missing.npy")
K = np.loadtxt("missing.txt")
K = int(sys.argv[1])
K = print("touched")
K = [open("touched", "w") for _ in range(2)]
K = {**vars(open("touched", "w"))}
K = np.ones(3).tofile("touched")
K = (lambda: open("touched", "w"))()
K = list(map(lambda _: open("touched", "w"), [1]))
K = sorted([1, 2], key=lambda v: open("touched", "w"))
K = __import__("os").system("touch touched")
K = np.memmap("touched", mode="w+", shape=3)
K = work()
K = list(map(work, [1]))
K = Work()
K = 3; K = work()
K = 3; K += work()
for K in range(3): work()
K = []; [K.append(work()) for _ in range(3)]; K = K + work()
if __name__ == "__main__": K = 3
K = 1\\nif __name__ == "__main__": K = 3
K = 1\\nwith open("touched", "w") as K: pass
K = [1]\\nfor i in range(3): K.append(work())
K = {}\\nK["a"] = work()
K = 1\\ndel K
M = work(); K = 2*M'''.split('\n'))
def test_what_runs_is_left_out_and_the_old_value_too(tmp_path, text, monkeypatch):
    monkeypatch.chdir(tmp_path)
    worker = 'def work(*_): open("touched", "w")\nclass Work:\n    def __init__(self): work()\n'
    (tmp_path/'a.py').write_text(HEAD + worker + text.replace('\\n', '\n') + USES)
    found = check_file(tmp_path/'a.py')
    assert not (tmp_path/'touched').exists() and found.reports == ()
    e, = found.refusals
    assert "name 'K' is not defined" in e.reason and 'K is assigned on line' in e.hint or 'K needs M, which is assigned on line' in e.hint, e
    assert 'parameter' in e.hint and e.place.line == 6 + (HEAD + worker + text.replace('\\n', '\n')).count('\n') - 3


def test_the_order_of_definitions_does_not_matter(tmp_path):
    (tmp_path/'a.py').write_text(HEAD + '''
@typed
def score(x: Mat[n, d], w: Vec[d]) -> Vec[n]: return sigmoid(x @ w)
@typed
def wrong(x: Mat[n, d], w: Vec[d]) -> Vec[d]: return sigmoid(x @ w)
def sigmoid(z): return SCALE/(1 + np.exp(-z))
SCALE = 2.0
''')
    found = check_file(tmp_path/'a.py')
    assert [r.name for _, r in found.reports] == ['score'] and ['the result has size n' in e.reason for e in found.refusals] == [True]


def test_one_bad_annotation_does_not_hide_the_rest(tmp_path):
    (tmp_path/'a.py').write_text(HEAD + '''
@typed(where="n >= 3 or d >= 2")
def first(x: Mat[n, d]) -> Vec[d]: return x[2]
@typed
def second(x: Vec[n, d]) -> Vec[d]: return x[2]
@typed
def bug(x: Mat[n, d]) -> Vec[d]: return x.mean(1)
import nosuch
@typed("n >= 2")
def third(x: Mat[n, d]) -> Vec[d]: return x[0]
@typed
def uses(x: Mat[n, d]) -> Vec[d]: return nosuch.f(x)
''')
    found = check_file(tmp_path/'a.py')
    said = [(e.place.line, e.reason) for e in sorted(found.refusals, key=lambda e: e.place.line)]
    assert [line for line, _ in said] == [6, 9, 11, 12, 14, 16], said
    assert 'n >= 3 or d >= 2' in said[0][1] and 'Vec has 1 size' in said[1][1] and found.refused == 5
    assert 'failed on line 12' in found.refusals[-1].hint


def test_a_file_of_a_package_imports_its_siblings(tmp_path):
    (tmp_path/'outer/pack').mkdir(parents=True)
    for name, text in {'outer/__init__.py': 'SCALE = 2\n', 'outer/pack/__init__.py': '', 'outer/pack/other.py': 'def mean(x): return x.mean(1)\n',
                       'outer/pack/inner.py': 'from .. import SCALE\nfrom .other import mean\n' + HEAD + '@typed\ndef good(x: Mat[n, d]) -> Vec[n]: return SCALE*mean(x)\n@typed\ndef bad(x: Mat[n, d]) -> Vec[d]: return mean(x)\n'}.items():
        (tmp_path/name).write_text(text)
    found = run(tmp_path, 'outer/pack/inner.py')
    assert '1 of 2 functions refused' in found.stdout and 'good -> Vec<n>' in found.stdout and 'ImportError' not in found.stdout, found.stdout


def test_what_is_left_out_is_named(tmp_path):
    (tmp_path/'a.py').write_text('import numpy as np\nfrom jaxtyping import Float\nA = np.ndarray\ndef f(x: Float[A, "*b c"]) -> Float[A, "c"]: return x.mean(0)\n'
                                 'def g(x: Float[A, "b c"]) -> Float[A, "b"]: return x.mean(1)\ndef h(x: 5) -> "nonsense(": return x\n')
    text = run(tmp_path, 'a.py').stdout
    assert 'a.py:4:1: f is not checked' in text and 'each axis with a name' in text and 'g -> Vec<b>' in text and ' h ' not in text
    assert len(json.loads(run(tmp_path, '--json', 'a.py').stdout)['left_out']) == 1


SKIPPED = '@typed\ndef q(x: Vec[n]) -> Vec[n]: return x[1:]\n'

@pytest.mark.parametrize('head, where', [
    ('for _ in range(1):', 'inside a `for`'), ('while True:', 'inside a `while`'), ('match 3:\n  case _:', 'inside a `match`'), ('with open("touched"):', 'inside a `with`'), ('from dataclasses import dataclass\n@dataclass\nclass E:\n    def __enter__(self): 1/0\nwith E():', 'inside a `with`'),
    ('if __name__ == "__main__":', 'inside an `if`'), ('try: print()\nfinally:', 'inside a `try`'), ('for _ in range(1):\n  class A:', 'inside a `for`')])
def test_a_typed_function_that_is_not_run_is_no_success(tmp_path, head, where):
    (tmp_path/'a.py').write_text(HEAD + f'{head}\n' + textwrap.indent(SKIPPED, '    '))
    found = check_file(tmp_path/'a.py')
    line, column, says = found.unchecked[0].removeprefix(str(tmp_path/'a.py') + ':').split(':', 2)
    assert len(found.unchecked) == 1 and f'q is not checked: it is defined {where}, which the check does not run' in says
    assert (int(line), int(column)) == (HEAD.count('\n') + head.count('\n') + 3, 5) and not found.reports and not found.refusals

def test_what_is_not_run_is_counted(tmp_path):
    (tmp_path/'a.py').write_text(HEAD + 'def f(x: Vec[n]) -> Vec[n]: return x\nprint(typed(f), typed(where="n > 1")(f), typed(f, keep="n"))\nfor _ in ():\n    def g():\n        @typed\n        def h(x: 3): pass\n')
    whole, quiet, found = run(tmp_path, 'a.py'), run(tmp_path, '--quiet', 'a.py'), json.loads(run(tmp_path, '--json', 'a.py').stdout)
    assert whole.returncode == quiet.returncode == 1 and whole.stdout.count('f is not checked: it is defined in a step') == 2 and '0 of 1 functions refused, 2 not checked' in whole.stdout
    assert len(found['left_out']) == 2 and quiet.stdout.count('\n') == 2

@pytest.mark.parametrize('head', ['with np.errstate(all="ignore"):', 'with np.errstate(all="ignore"), np.errstate(divide="warn"):', 'import warnings\nwith warnings.catch_warnings():', 'if n:', 'try:\n    pass\nfinally:'])
def test_a_statement_that_only_defines_is_run(tmp_path, head):
    (tmp_path/'a.py').write_text(HEAD + f'{head}\n' + textwrap.indent(SKIPPED, '    '))
    found = check_file(tmp_path/'a.py')
    assert len(found.refusals) == 1 and 'n - 1' in found.refusals[0].reason and not found.unchecked


def test_a_definition_that_exits_hides_nothing(tmp_path):
    (tmp_path/'a.py').write_text(HEAD + 'class X: sys.exit(0)\n@typed\ndef bug(x: Mat[n, d]) -> Vec[d]: return x.mean(1)\n')
    found = run(tmp_path, 'a.py')
    assert found.returncode == 1 and 'the result has size n' in found.stdout and 'SystemExit' in found.stdout, found.stdout


def test_one_fault_is_one_refusal(tmp_path):
    (tmp_path/'a.py').write_text(HEAD + '''
def softmax(z): return z/z.sum(axis=1)
@typed
def typed_softmax(z: Mat[n, d]) -> Mat[n, d]: return z/z.sum(axis=1)
@typed
def one(x: Mat[n, d]) -> Mat[n, d]: return softmax(x)
@typed
def two(x: Mat[n, d], w: Mat[d, k]) -> Mat[n, k]: return softmax(x @ w)
@typed
def three(x: Mat[n, d]) -> Mat[n, d]: return typed_softmax(x)
@typed
def four(x: Mat[n, d]) -> Mat[d, n]: return typed_softmax(x)
''')
    text = run(tmp_path, 'a.py').stdout
    assert text.count('divide: axis -1') == 4 and 'called from one, a.py:9:1' in text and 'called from two, a.py:11:1' in text
    assert '4 of 5 functions refused, 3 faults' in text and 'three -> Mat<n, d>' in text and 'the result has size n on axis 0, not d' in text
    found = json.loads(run(tmp_path, '--json', 'a.py').stdout)['refused']
    assert [r['called_from'] for r in found] == [[], ['one, a.py:9:1', 'two, a.py:11:1'], []]


def test_a_class_in_a_file(tmp_path):
    (tmp_path/'a.py').write_text('from __future__ import annotations\n' + HEAD + '''
class KMeans:
    k: int
    centers: Mat["k", d]
    def __init__(self, k): self.k = k
    @typed(where="n >= k")
    def fit(self, X: Mat[n, d]) -> KMeans:
        self.centers = X[:self.k]
        return self
    @typed
    def distances(self, X: Mat[n, d]) -> Mat[n, "k"]: return self.squares(X)
    def squares(self, X): return ((X[:, None] - self.centers)**2).sum(-1)
    @typed
    def bad(self, X: Mat[n, d]) -> Mat[n, "k"]: return self.squares(X).T
@typed
def use(model: KMeans, X: Mat[n, d]) -> Mat[n, "k"]: return model.distances(X)
if __name__ == "__main__":
    n = 3
    KMeans(n).fit(np.ones((n, 2)))
''')
    found = check_file(tmp_path/'a.py')
    assert [(e.place.function, e.place.line) for e in found.refusals] == [('bad', 19)]
    assert sorted(r.name for _, r in found.reports) == ['distances', 'fit', 'use']


def test_a_refused_method_is_taken_at_its_word(tmp_path):
    "It gives what it says, in the sizes of `self`, and sets what it sets; a caller that is wrong itself is still refused."
    (tmp_path/'a.py').write_text(HEAD + '''class K:
    F: Mat[n, n]
    R: Mat[d, d]
    x: Vec[n]
    w: Vec[d]
    @typed
    def predict(self) -> Vec[n]: return self.F @ self.x + self.R[0]
    @typed
    def fit(self, y: Mat[k, d]) -> None: self.w = y.mean(1)
    @typed
    def run(self, y: Mat[k, d]) -> Mat[k, n]:
        xs = np.empty((len(y), len(self.x)))
        for t in range(len(y)): xs[t] = self.predict()
        return xs
    @typed
    def wrong(self) -> Vec[d]: return self.predict()
    @typed
    def weights(self) -> Vec[d]: return self.w
@typed
def trained(y: Mat[k, d]) -> Vec[d]:
    m = K()
    m.fit(y)
    return m.weights()
''')
    found = check_file(tmp_path/'a.py')
    assert [e.place.function for e in found.refusals] == ['predict', 'fit', 'wrong'] and sorted(r.name for _, r in found.reports) == ['run', 'trained', 'weights']


def test_a_syntax_error_is_named_without_its_place_twice(tmp_path):
    for name, text in {'a.py': 'def f(:', 'b.py': 'def g():\n    nonlocal y'}.items(): (tmp_path/name).write_text(text)
    assert run(tmp_path, 'a.py').stderr == 'a.py:1:7: error: SyntaxError: invalid syntax\n'
    assert [e.reason for e in check_file(tmp_path/'b.py').refusals] == ["SyntaxError: no binding for nonlocal 'y' found"]


def test_a_notebook_waits_for_later_cells(tmp_path):
    cells = [HEAD + 'N = 3', '@typed\ndef f(x: Vec[n]) -> Vec[3]: return g(x)', 'def g(x): return x.sum() + np.zeros(N)', '@typed\ndef h(x: Vec[n]) -> Vec[3]: return np.zeros(N) + x.sum()', 'N = 4', '@typed\ndef late(x: Vec[n]) -> Vec[3]: return np.zeros(N) + nowhere(x)']
    (tmp_path/'a.ipynb').write_text(json.dumps({'cells': [{'cell_type': 'code', 'source': c} for c in cells]}))
    found = check_file(tmp_path/'a.ipynb')
    assert [r.name for _, r in found.reports] == ['f', 'h'] and [e.missing for e in found.refusals] == ['nowhere']


def book(tmp_path, *cells):
    (tmp_path/'a.ipynb').write_text(json.dumps({'cells': [{'cell_type': 'code', 'source': c} for c in (HEAD, *cells)]}))
    return tmp_path/'a.ipynb'


WRONG = '@typed\ndef wrong(x: Vec[n]) -> Vec[n]: return x[1:]'

@pytest.mark.parametrize('before', [
    '?np', 'np??', 'np.sum?', 'files = !ls', '!ls', '!ls \\\n  -l', 'took = %time \\\n 3', '\n\n  \n%matplotlib inline', '%%time', '%%timeit -n 3', '%%capture out\n%%time', '\n%%capture',
    'if True:\n    %matplotlib inline', 'for _ in range(3):\n    !ls', 'try: import no_such\nexcept ImportError:\n    !pip install no_such \\\n      other\n    import math',
    "x = (7\n  % 2)", "x = (7\n  % 2)\n%matplotlib inline", "s = \'\'\'\n%d items\n!x\n\'\'\'\n!ls"])
def test_what_only_a_notebook_understands(tmp_path, before):
    "It is not run, it hides nothing, and every line keeps its number."
    found = check_file(book(tmp_path, before + '\n' + WRONG))
    assert [(e.place.file[-5:], e.place.line) for e in found.refusals] == [('cell2', before.count('\n') + 3)] and not found.broken and not found.left_out


def test_what_a_magic_stands_beside_is_defined(tmp_path):
    cells = 'try: import no_such\nexcept ImportError:\n    !pip install no_such\n    N = 3', '@typed\ndef f(x: Vec[n]) -> Vec[3]: return np.zeros(N) + x.sum()', 'N = !ls', '@typed\ndef g(x: Vec[n]) -> Vec[3]: return np.zeros(N) + x.sum()'
    found = check_file(book(tmp_path, *cells))
    assert [r.name for _, r in found.reports] == ['f'] and [e.missing for e in found.refusals] == ['N'] and 'does not run' in found.refusals[0].hint
    found = check_file(book(tmp_path, '@typed\ndef h(x: Vec[n]) -> Vec[n]:\n    %run other.py\n    return x'))
    assert [e.missing for e in found.refusals] == ['get_ipython']


def test_a_cell_of_another_language_is_named(tmp_path):
    found = check_file(book(tmp_path, "%%bash\nls | grep 'x", '%%html\n<p>', WRONG))
    assert len(found.refusals) == 1 and not found.broken
    assert [t.partition('#')[2] for t in found.left_out] == ['cell2: %%bash is not checked', 'cell3: %%html is not checked']


@pytest.mark.parametrize('ipython', [True, False])
def test_a_broken_cell_does_not_hide_the_others(tmp_path, ipython, monkeypatch):
    if not ipython: monkeypatch.setitem(sys.modules, 'IPython.core.inputtransformer2', None)
    found = check_file(book(tmp_path, 'x = = 3', '%matplotlib inline\nif True:\n    !ls\n' + WRONG, 'def f(:'))
    assert [e.place.line for e in found.refusals] == [5]
    assert [b.partition('#')[2] for b in found.broken] == ['cell2:1:5: error: SyntaxError: invalid syntax', 'cell4:1:7: error: SyntaxError: invalid syntax']
    result = run(tmp_path, '--quiet', 'a.ipynb')
    assert result.returncode == 2 and 'cell3:5:40: error: the result' in result.stdout and result.stderr.count('SyntaxError') == 2
    assert len(json.loads(run(tmp_path, '--json', 'a.ipynb').stdout)['broken']) == 2


@pytest.mark.parametrize('text', [
    '@typed\ndef f(x: Mat[n, d]) -> Vec[d]: return x.mean(1)',
    '@typed(keep="n")\ndef f(x: Mat[n, d]) -> Vec[d]: return x.mean(1)',
    'typed("n >= 2")', 'typed(where=lambda n: n > 2)', 'typed(int)', 'typed(np.sum)',
    '@typed\ndef f(x: Mat[n, d]) -> Vec[n]: return x.mean(1)\nf(np.ones(3))',
    '@typed\ndef f(x: Mat[n, d]) -> Vec[n]: return g(x)\ndef g(x): return x.mean(1)\nf(np.ones(3))',
    '@typed\ndef f(x: Mat[n, d]) -> Vec[n]: return g(x)\ndef g(x): return x.mean(0)\nf(np.ones((2, 3)))'])
def test_the_traceback_shows_the_user_alone(tmp_path, text):
    (tmp_path/'a.py').write_text(HEAD + text)
    said = subprocess.run([sys.executable, '-W', 'ignore', 'a.py'], cwd=tmp_path, capture_output=True, text=True).stderr
    assert said.count('File "') == 1 and 'a.py", line' in said and 'ShapeError' in said and 'During handling' not in said and 'direct cause' not in said, said


@pytest.mark.parametrize('text, says', [
    ('def f(x: Vec[n]) -> Vec[n]: yield x', 'a generator is not traced'), ('async def f(x: Vec[n]) -> Vec[n]: return x', 'an async function is not traced'),
    ('a, b = typed(lambda x: x, shapes={"x": Vec[n]}), lambda x: 2*x', '2 functions begin on line 6'),
    ('exec("@typed\\\\ndef f(x: Vec[n]) -> Vec[n]: return x")', 'given to python -c, or to exec')])
def test_why_a_function_cannot_be_checked(tmp_path, text, says):
    (tmp_path/'a.py').write_text(HEAD + '@typed\n'*('def f' in text and 'exec' not in text) + '\n'*('lambda' in text) + text.replace('\\\\', '\\'))
    said = subprocess.run([sys.executable, '-W', 'ignore', 'a.py'], cwd=tmp_path, capture_output=True, text=True).stderr
    assert says in said and 'hint     : ' in said, said


def test_at_the_prompt():
    for args, source, says in [(['-c', HEAD + GOOD], '', 'python -c'), (['-i'], GOOD + '\n\n', "typed at Python's prompt")]:
        said = subprocess.run([sys.executable, '-W', 'ignore', *args], input=source, capture_output=True, text=True).stderr
        assert says in said and 'put it into a file, or use IPython' in said, said


def test_the_hook_refuses_a_file(tmp_path):
    "As pre-commit runs it: the entry, and the files that were changed."
    import shlex, yaml
    hook, = yaml.safe_load((Path(__file__).parent.parent/'.pre-commit-hooks.yaml').read_text())
    assert hook.keys() >= {'id', 'name', 'entry', 'language'} and hook['language'] == 'python' and hook['types_or'] == ['python', 'jupyter']
    (tmp_path/'good.py').write_text(GOOD)
    (tmp_path/'bad.py').write_text(GOOD + BAD)
    program, command, *options = shlex.split(hook['entry'])
    assert (program, command) == ('bendml', 'check')
    good, bad = run(tmp_path, *options, 'good.py'), run(tmp_path, *options, 'good.py', 'bad.py')
    assert (good.returncode, good.stdout) == (0, '') and bad.returncode == 1 and bad.stdout.count('\n') == 1 and bad.stdout.startswith('bad.py:11:16: error: matmul'), bad


def _cycle(tmp_path, monkeypatch, name, k='a.f(x)'):
    "Two modules that import each other; k, in the second, uses what the first has later."
    (tmp_path/name).mkdir()
    (tmp_path/name/'__init__.py').write_text('')
    (tmp_path/name/'a.py').write_text('from . import b\nfrom .b import g\n' + HEAD + '@typed\ndef f(x: Vec[n]) -> Vec[n]: return g(x)\n@typed\ndef f2(x: Vec[n]) -> Vec[n]: return b.g(x)\n')
    (tmp_path/name/'b.py').write_text('from . import a\n' + HEAD + f'@typed\ndef g(x: Vec[n]) -> Vec[n]: return x\n@typed\ndef k(x: Vec[n]) -> Vec[n]: return {k}\n')
    monkeypatch.syspath_prepend(tmp_path)

def test_modules_that_import_each_other(tmp_path, monkeypatch):
    _cycle(tmp_path, monkeypatch, 'cycle1')
    for file in ('a.py', 'b.py'):
        found = check_file(tmp_path/'cycle1'/file)
        assert not found.refusals and {'f', 'f2', 'g', 'k'} == {r.name for _, r in found.reports}, found.refusals

@pytest.mark.parametrize('k, says', [('a.f(x)', ''), ('a.f(x)[1:]', 'n - 1'), ('a.nothing(x)', 'nothing')])
def test_what_a_module_will_have_is_waited_for(tmp_path, monkeypatch, k, says):
    import importlib
    name = 'cycle' + k.translate(str.maketrans('', '', '.()[]:'))
    _cycle(tmp_path, monkeypatch, name, k)
    importlib.import_module(f'{name}.a')
    b = sys.modules[f'{name}.b']
    if not says: assert b.k(np.ones(3)).shape == (3,)
    else:
        with pytest.raises(ShapeError, match=says): b.k(np.ones(3))
