"What an editor's type checker says of annotated code, with no plugin: pyright and mypy, on one file of right and wrong lines."
import json, os, re, subprocess, sys
from pathlib import Path
import pytest
from tools.notebooks import ROOT

BIN = Path(sys.executable).parent
FILE = ROOT/'tests/shape/editor.py'
LINES = FILE.read_text().splitlines()
WRONG = {i for i, line in enumerate(LINES, 1) if line.endswith('# error')}
PYRIGHT = WRONG | {i for i, line in enumerate(LINES, 1) if '# error to pyright alone' in line}


def _run(*command, cwd=ROOT):
    env = os.environ | {'PYTHONPATH': str(ROOT), 'MYPYPATH': str(ROOT), 'PATH': f'{BIN}{os.pathsep}{os.environ["PATH"]}'}
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, cwd=cwd, env=env)


@pytest.mark.slow
def test_pyright():
    run = _run(BIN/'pyright', '--outputjson', '--pythonpath', sys.executable, FILE)
    found = json.loads(run.stdout)['generalDiagnostics']
    assert {d['range']['start']['line'] + 1 for d in found if d['severity'] == 'error'} == PYRIGHT, run.stdout[-3000:]


@pytest.mark.slow
def test_mypy(tmp_path):
    run = _run(BIN/'mypy', '--no-incremental', '--cache-dir', tmp_path, '--follow-imports=silent', '--no-error-summary', FILE)
    assert {int(n) for n in re.findall(r'editor\.py:(\d+): error', run.stdout)} == WRONG, run.stdout[-3000:] + run.stderr


def test_the_same_file_for_the_full_check():
    "`bendml check` refuses every line that a type checker flags, and nothing else there."
    run = _run(BIN/'bendml', 'check', '--json', FILE)
    refused = {r['function'] for r in json.loads(run.stdout)['refused']}

    around = lambda i: next(re.match(r'def (\w+)', line)[1] for line in LINES[i::-1] if line.startswith('def '))
    assert refused == {around(i - 1) for i in WRONG}


def test_the_stub_has_what_the_package_has():
    import ast
    import bendml.shape
    stub = ast.parse((ROOT/'bendml/shape/__init__.pyi').read_text())
    names = next(ast.literal_eval(s.value) for s in stub.body if isinstance(s, ast.Assign) and s.targets[0].id == '__all__')
    assert sorted(names) == sorted(bendml.shape.__all__)
