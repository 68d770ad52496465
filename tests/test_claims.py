"What the pages say about a law, the table of claims says too. (That the table is what a run of all proofs gives: test_site.)"
import json, re, subprocess, sys
from pathlib import Path

import pytest
from tools.notebooks import ROOT

VERDICTS = 'confirmed|proved|refuted|open|vacuous|stale|assumed'


def rows(markdown: str, timed: bool = False) -> dict[tuple[str, str], list]:
    "(module, law) -> the cells of its row; if timed, at the end the milliseconds that its proof took."
    found, module = {}, ''
    for line in markdown.splitlines():
        cells = [c.strip() for c in re.split(r'(?<!\\)\|', line)[1:-1]]
        if len(cells) == 9 and cells[0].startswith('**'): module = cells[0].strip('*')
        elif len(cells) == 9 and re.fullmatch(VERDICTS, cells[3]): found[module, cells[0]] = cells[1:6] + cells[7:] + ([int(cells[6])] if timed else [])
    return found


def kernel_rows(markdown: str) -> dict[tuple[str, str], list[str]]:
    "(module, kernel) -> the cells of its row, without the time."
    found, module = {}, ''
    for line in markdown.splitlines():
        cells = [c.strip() for c in re.split(r'(?<!\\)\|', line)[1:-1]]
        if len(cells) == 7 and cells[0].startswith('**'): module = cells[0].strip('*')
        elif len(cells) == 7 and re.match('confirmed|proved|unchecked', cells[6]): found[module, cells[0]] = cells[1:5] + cells[6:]
    return found


def outputs(notebook: Path):
    for cell in json.loads(notebook.read_text())['cells']:
        for output in cell.get('outputs', []):
            data = output.get('data', {})
            yield from (''.join(data[kind]) for kind in ('text/plain', 'text/markdown') if kind in data)
            yield ''.join(output.get('text', ''))


@pytest.fixture(scope='module')
def table(): return rows((ROOT/'CLAIMS.md').read_text())


def test_the_table_is_not_empty(table):
    assert len(table) >= 35 and {m for m, _ in table} >= {'bendml.nat', 'bendml.lists'}


def test_the_tokenizers_laws_take_less_than_five_seconds():
    "When the table was made, by both solvers."
    laws = {law: row for (module, law), row in rows((ROOT/'CLAIMS.md').read_text(), timed=True).items() if module.startswith('bendml.bpe')}
    assert len(laws) >= 60 and {row[2] for row in laws.values()} == {'confirmed'} and sum(row[-1] for row in laws.values()) < 5000


def test_the_table_of_kernels():
    "With their proofs; one that was let through says why, in words that cannot leave the cell."
    from types import SimpleNamespace
    from bendml.kernel.sums import gemm, matvec
    from bendml.laws.claims import kernel_claims
    guess = SimpleNamespace(__name__='guess', __module__='bendml.old', __doc__=None, proof=None, unchecked='tested | by hand')
    text = kernel_claims([gemm, guess, matvec])
    assert text.startswith(f'2 kernels, {gemm.proof.conditions + matvec.proof.conditions} conditions proved') and '; 1 unchecked.' in text
    assert kernel_rows(text) == {
        ('bendml.kernel.sums', 'gemm'): [gemm.__doc__, str(gemm.proof.conditions), str(gemm.proof.values), str(gemm.proof.confirmed), 'confirmed'],
        ('bendml.kernel.sums', 'matvec'): ['y = W v.', str(matvec.proof.conditions), str(matvec.proof.values), str(matvec.proof.confirmed), 'confirmed'],
        ('bendml.old', 'guess'): ['', '-', '-', '-', 'unchecked: tested \\| by hand']}


def module_of(notebook: Path) -> str:
    found = re.search(r'#\|\s*default_exp ([\w.]+)', notebook.read_text())
    return f'bendml.{found[1]}' if found else ''


@pytest.mark.parametrize('notebook', sorted((ROOT/'nbs').glob('*.ipynb')), ids=lambda p: p.stem)
def test_a_page_agrees_with_the_table(notebook, table):
    "Both the theorem that a page shows, `name: verdict`, and a line `name  verdict ...` of a list."
    module = module_of(notebook)
    for text in outputs(notebook):
        for name, verdict in re.findall(rf'^(\w+)(?:: | +)({VERDICTS})\b', text, re.M):
            if (module, name) in table: assert table[module, name][2] == verdict, f'{notebook.name} says that {name} is {verdict}'


def test_a_page_that_disagrees_would_be_noticed(tmp_path, table):
    page = tmp_path/'18_nat.ipynb'
    page.write_text((ROOT/'nbs/18_nat.ipynb').read_text().replace('add_zero: confirmed', 'add_zero: refuted'))
    with pytest.raises(AssertionError, match='add_zero is refuted'): test_a_page_agrees_with_the_table(page, table)


@pytest.mark.parametrize('example', sorted((ROOT/'examples').glob('*.py')), ids=lambda p: p.stem)
def test_an_example_with_laws_is_proved(example):
    if not re.search(r'^@law\b', example.read_text(), re.M): return
    code = 'from bendml.cli import main; main(prog_name="bendml")'
    run = subprocess.run([sys.executable, '-W', 'ignore', '-c', code, 'laws', example], capture_output=True, text=True)
    assert run.returncode == 0 and run.stdout.splitlines()[-1].startswith('ALL PROOFS CHECK'), run.stdout


def test_the_trusted_part_is_small():
    "The count that the page about trust shows, and no function over 40 lines."
    text = next(t for t in outputs(ROOT/'nbs/94_trust.ipynb') if 'together' in t)
    assert int(re.search(r'together +(\d+)', text)[1]) <= 860
    assert all(int(n) <= 40 for n in re.findall(r'longest function has (\d+)', text))
    for module in ('terms', 'solvers', 'read', 'reflect', 'induct', 'datatypes', 'prove', 'guards', 'claims', 'verdict'):
        import ast
        tree = ast.parse((ROOT/'bendml/laws'/f'{module}.py').read_text())
        assert [n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.end_lineno - n.lineno >= 40] == []
