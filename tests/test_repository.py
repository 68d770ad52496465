"Text, notebook and package agree; every notebook runs; modules import downwards only; the package is light to import."
import ast, configparser, hashlib, os, re, subprocess, sys, tomllib
from pathlib import Path
import pytest
from refusals import strict
from tools.notebooks import ROOT, as_text, pairs

PAIRS = pairs()
BIN = Path(sys.executable).parent


@pytest.mark.parametrize('nb, text', PAIRS, ids=[nb.stem for nb, _ in PAIRS])
def test_text_and_notebook_agree(nb, text):
    assert as_text(nb.read_text()) == text.read_text(), 'run `make test`, and commit notebook and text together'


def test_package_is_what_the_notebooks_export(tmp_path):
    "Export from a copy: the package there equals the package here, file by file."
    copy = tmp_path/'copy'
    copy.mkdir()
    for name in ('nbs', 'settings.ini', 'pyproject.toml', 'bendml', 'tools'):
        subprocess.run(['cp', '-r', ROOT/name, copy], check=True)
    for module in (copy/'bendml').rglob('*.py'): module.unlink()
    subprocess.run([BIN/'nbdev_export'], cwd=copy, check=True)
    files = lambda root: {p.relative_to(root): p.read_text() for p in (root/'bendml').rglob('*.py')}
    here, there = files(ROOT), files(copy)
    assert sorted(here) == sorted(there)
    assert [p for p in here if here[p] != there[p]] == []


def test_a_page_on_which_nothing_is_refused_would_be_noticed():
    page = 'for n in (1, 0):\n    try: 1/n\n    except ZeroDivisionError as e: print(e)\nprint(1)'
    with pytest.raises(AssertionError, match='no longer refused'): exec(strict(page))
    for other in (page.replace('(1, 0)', '(0,)'), 'try: print(1)\nexcept KeyError as e: print(e)', '#| export\n' + page): exec(strict(other))


@pytest.mark.slow
@pytest.mark.parametrize('nb', [nb for nb, _ in PAIRS], ids=[nb.stem for nb, _ in PAIRS])
def test_notebook_runs(nb):
    "And what it shows as refused is refused."
    run = subprocess.run([sys.executable, 'tests/refusals.py', nb], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-5000:]


def test_dependencies_are_listed_alike():
    "settings.ini, pyproject.toml and tools/requirements.in name the same run-time packages."
    ini = configparser.ConfigParser()
    ini.read(ROOT/'settings.ini')
    settings = set(ini['DEFAULT']['requirements'].split())
    project = tomllib.loads((ROOT/'pyproject.toml').read_text())['project']
    extras = sum(project['optional-dependencies'].values(), [])
    run_time, rest = (ROOT/'tools/requirements.in').read_text().split('# Run time')[1].split('# Optional extras')
    assert settings == _names(project['dependencies']) == _names(run_time.splitlines()[1:])
    assert _names(extras) == _names(rest.split('# Notebooks')[0].splitlines()[1:])


def _names(requirements: list[str]) -> set[str]:
    return {re.match(r'[\w-]+', line)[0] for line in requirements if line and line[0] != '#'}


def _module(nb: Path) -> str | None:
    found = re.search(r'#\|\s*default_exp ([\w.]+)', nb.read_text())
    return found[1] if found else None


def _imports(source: str, module: str):
    "The bendml modules, or names in them, that a module's source imports, at any depth."
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            package = ['bendml', *module.split('.')][:-node.level] if node.level else []
            yield from ('.'.join([*package, *[node.module]*bool(node.module), a.name]) for a in node.names)
        elif isinstance(node, ast.Import): yield from (a.name for a in node.names)


def test_modules_import_only_what_stands_below():
    "A notebook's number is its place: it imports modules of smaller numbers only."
    order = {m.removesuffix('.__init__'): (m, nb.stem) for nb, _ in PAIRS if (m := _module(nb)) and m != '__init__'}
    for module, place in order.values():
        for used in _imports((ROOT/'bendml'/(module.replace('.', '/') + '.py')).read_text(), module):
            used = used.removeprefix('bendml.')
            if used not in order: used = used.rpartition('.')[0]  # a name in a module
            assert used not in order or order[used][1] < place, f'{module} ({place}) imports {used} ({order[used][1]})'


HEAVY = ('z3', 'cvc5', 'numba', 'matplotlib', 'torch', 'nbdev', 'fastcore', 'pooch', 'click')


def test_import_is_light():
    code = f"import sys, bendml; print([m for m in {HEAVY} if m in sys.modules])"
    assert subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True).stdout.strip() == '[]'


def test_import_is_quick():
    "At most 0.1 s more than importing numpy; the best of several, since machines are shared."
    def best(code):
        run = lambda: float(subprocess.run([sys.executable, '-c', f'import time; t = time.perf_counter(); {code}; print(time.perf_counter() - t)'],
                                           capture_output=True, text=True, check=True).stdout)
        return min(run() for _ in range(5))
    assert best('import bendml') - best('import numpy') < 0.1


def test_every_promised_name_is_documented():
    import bendml
    for name in bendml.__all__:
        value = getattr(bendml, name)
        assert value.__doc__, f'bendml.{name} has no docstring'


@pytest.mark.parametrize('nb', [nb for nb, _ in PAIRS], ids=[nb.stem for nb, _ in PAIRS])
def test_a_page_begins_with_title_and_subtitle(nb):
    "And nothing else in that cell: nbdev makes a header of it and drops the rest."
    import json
    cells = json.loads(nb.read_text())['cells']
    title = next(''.join(c['source']) for c in cells if c['cell_type'] == 'markdown')
    assert re.fullmatch(r'# [^\n]+\n+> [^\n]+\n*', title), f'the first markdown cell of {nb.name} must be "# Title" and "> subtitle" alone'


def test_nothing_tells_of_the_machine_it_was_made_on():
    files = subprocess.run(['git', 'ls-files', '-z'], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split('\0')
    texts = {f: (ROOT/f).read_bytes() for f in files if f and (ROOT/f).exists() and f != 'tests/test_repository.py'}
    assert [f for f, t in texts.items() if re.search(rb'/root/|/home/\w|/work/|/Users/\w', t)] == []
