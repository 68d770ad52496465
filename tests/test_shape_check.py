"The command: what it runs, what it says, how it ends; and how a refusal looks in a notebook."
import json, subprocess, sys
from pathlib import Path
import pytest
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
