"What an editor's type checker says of annotated code, with no plugin: pyright and mypy, on one file of right and wrong lines."
import json, os, re, subprocess, sys
from pathlib import Path
import pytest
from tools.notebooks import ROOT

BIN = Path(sys.executable).parent
FILE = ROOT/'tests/shape/editor.py'
LINES = FILE.read_text().splitlines()
WRONG = {i for i, line in enumerate(LINES, 1) if line.endswith('# error')}


def _run(*command, cwd=ROOT):
    env = os.environ | {'PYTHONPATH': str(ROOT), 'MYPYPATH': str(ROOT), 'PATH': f'{BIN}{os.pathsep}{os.environ["PATH"]}'}
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, cwd=cwd, env=env)


@pytest.mark.slow
def test_pyright():
    run = _run(BIN/'pyright', '--outputjson', '--pythonpath', sys.executable, FILE)
    found = json.loads(run.stdout)['generalDiagnostics']
    assert {d['range']['start']['line'] + 1 for d in found if d['severity'] == 'error'} == WRONG, run.stdout[-3000:]


@pytest.mark.slow
def test_mypy(tmp_path):
    run = _run(BIN/'mypy', '--no-incremental', '--cache-dir', tmp_path, '--follow-imports=silent', '--no-error-summary', FILE)
    assert {int(n) for n in re.findall(r'editor\.py:(\d+): error', run.stdout)} == WRONG, run.stdout[-3000:] + run.stderr


SCRIPTS = ROOT/'tests/shape/scripts.py'

@pytest.mark.slow
def test_right_scripts(tmp_path):
    "Six scripts of scientists, annotated: no type checker complains, the full check accepts them, and they run."
    run = _run(BIN/'pyright', '--outputjson', '--pythonpath', sys.executable, SCRIPTS)
    assert not [d for d in json.loads(run.stdout)['generalDiagnostics'] if d['severity'] == 'error'], run.stdout[-3000:]
    run = _run(BIN/'mypy', '--no-incremental', '--cache-dir', tmp_path, '--follow-imports=silent', '--no-error-summary', SCRIPTS)
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr
    run = _run(BIN/'bendml', 'check', SCRIPTS)
    assert run.returncode == 0, run.stdout[-3000:]
    run = _run(sys.executable, SCRIPTS)
    assert run.returncode == 0, run.stderr


def test_the_same_file_for_the_full_check():
    "`bendml check` refuses every line that a type checker flags, and nothing else there."
    run = _run(BIN/'bendml', 'check', '--json', FILE)
    refused = {r['function'] for r in json.loads(run.stdout)['refused']}

    around = lambda i: next(re.match(r'def (\w+)', line)[1] for line in LINES[i::-1] if line.startswith('def '))
    assert refused == {around(i - 1) for i in WRONG}


def test_the_language_server(tmp_path):
    "An editor opens a right file and a wrong one, mends it, and saves."
    import io
    from bendml.shape.editor import read_message, write_message
    good = 'from bendml.shape import Dim, Mat, typed\nB = Dim("B")\n@typed\ndef f(x: Mat[B, 3], w: Mat[3, 4]) -> Mat[B, 4]: return x @ w\n'
    wrong = good.replace('x @ w', '"é𝛼"; return x + 1; x @ w').replace('return "é𝛼"', 'z = "é𝛼"')
    (tmp_path/'good file.py').write_text(good)
    (tmp_path/'wrong.py').write_text(wrong)
    opened = lambda name, how='didOpen': {'method': f'textDocument/{how}', 'params': {'textDocument': {'uri': (tmp_path/name).as_uri()}}}
    editor = io.BytesIO()
    for m in ({'id': 1, 'method': 'initialize', 'params': {}}, {'method': 'initialized', 'params': {}}, opened('good file.py'), opened('wrong.py'), opened('gone.py'),
              opened('wrong.py', 'didClose'), {'id': 2, 'method': 'textDocument/hover'}, {'id': 3, 'method': 'shutdown'}, {'method': 'exit'}): write_message(editor, m)
    run = subprocess.run([sys.executable, '-W', 'ignore', '-c', 'from bendml.cli import main; main()', 'lsp'], input=editor.getvalue(), capture_output=True, cwd=ROOT)
    assert run.returncode == 0, run.stderr
    answers = io.BytesIO(run.stdout)
    said = list(iter(lambda: read_message(answers), None))
    assert said[0]['result']['capabilities']['textDocumentSync']['save'] and [m.get('id') for m in said] == [1, None, None, None, None, 2, 3]
    shown = [m['params']['diagnostics'] for m in said[1:5]]
    assert [len(d) for d in shown] == [0, 1, 0, 0] and said[5]['error'] and said[6]['result'] is None
    found, line = shown[1][0], wrong.split('\n')[3]
    start, end = found['range']['start'], found['range']['end']
    piece = line.encode('utf-16-le')[2*start['character']:2*end['character']].decode('utf-16-le')
    assert start['line'] == 3 and piece == 'x + 1' and 'the result has size 3' in found['message'], (found, piece)


@pytest.mark.parametrize('sent', [b'', b'\n', b'Content-Length: 5\r\n\r\n[1,2]', b'Content-Length: 99999999999\r\n\r\n', b'Content-Length: -1\r\n\r\n', b'Content-Length: 3\r\n\r\n{{{', b'x'*5000,
                                  b'Content-Length: 100002\r\n\r\n' + b'['*100_002, b'Content-Length: 20\r\n\r\n{"id": 1}'])
def test_what_is_no_message(sent):
    import io
    from bendml.shape.editor import ProtocolError, serve
    try: serve(io.BytesIO(sent), io.BytesIO())
    except ProtocolError: pass


def test_the_stub_has_what_the_package_has():
    import ast
    import bendml.shape
    stub = ast.parse((ROOT/'bendml/shape/__init__.pyi').read_text())
    names = next(ast.literal_eval(s.value) for s in stub.body if isinstance(s, ast.Assign) and s.targets[0].id == '__all__')
    assert sorted(names) == sorted(bendml.shape.__all__)
