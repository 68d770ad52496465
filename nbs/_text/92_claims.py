# %%
#| default_exp laws.claims

# %% [markdown]
# # Claims
# > Every law that bendml states and every kernel that it runs, with what was found out about them.

# %% [markdown]
# Each row is a law: what it says, in words and in symbols; for how many of its obligations each solver found a proof; how
# many of the small changes that we made to its functions it noticed; and what it says nothing about. The table was made by
# running what stands below it.

# %%
#| echo: false
#| output: asis
from bendml.laws.claims import claims, find, row, summary

rows = [row(l) for l in find()]
print(summary(rows), claims(rows), sep='\n\n')

# %% [markdown]
# And the kernels: how many conditions each has to fulfil for every size (indices, races, overflow, ends), how many of these are about
# the values that it computes, and how many both solvers proved. A kernel without a proof says why it is let through.

# %%
#| echo: false
#| output: asis
from bendml.kernel.command import own_kernels
from bendml.laws.claims import kernel_claims
print(kernel_claims(own_kernels()))

# %% [markdown]
# A law that notices no mutant is not a bad law. `le_trans` holds for many relations besides "at most", so a broken `le` may
# well obey it; it takes `le_refl`, `le_antisym` and `le_total` beside it to say what `le` is.

# %% [markdown]
# ## How it is made

# %%
#| hide
#| export
import fnmatch, importlib, importlib.util, json, pkgutil, re, sys, time
from pathlib import Path
from typing import Iterable, NamedTuple

import click

import bendml
from bendml.laws.datatypes import LawError
from bendml.laws.guards import Mutant, sample
from bendml.laws.induct import Law, functions
from bendml.laws.prove import Theorem, prove, report, statement
from bendml.laws.solvers import SOLVERS
from bendml.laws.terms import REAL, subterms


# %% [markdown]
# ## Finding laws
#
# A module has laws if it says `@law` or `@axiom` at the beginning of a line. A file is imported under its own name, so that
# what Python reports about it is where it is.

# %%
#| export
def law_modules() -> list[str]:
    "The names of bendml's modules that state laws."
    modules = {m.name: Path(bendml.__path__[0], *m.name.split('.')[1:], *['__init__'][:m.ispkg]).with_suffix('.py')
               for m in pkgutil.walk_packages(bendml.__path__, 'bendml.')}
    return [name for name, file in modules.items() if re.search(r'^@(law|axiom)\b', file.read_text(), re.M)]


# %%
#| export
def load(path: str) -> object:
    "Import a file with laws."
    file = Path(path).resolve()
    if not file.is_file(): raise LawError(path, 'no such file', 'a Python file with laws', 'nothing')
    name = file.stem
    while name in sys.modules: name += '_'
    spec = importlib.util.spec_from_file_location(name, file)
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(file.parent))
    try: spec.loader.exec_module(module)
    except LawError: raise
    except Exception as e: raise LawError(path, 'the file cannot be imported', 'Python that runs', f'{type(e).__name__}: {e}') from e
    finally: sys.path.remove(str(file.parent))
    return module


# %%
#| export
def laws_of(module: object) -> list[Law]:
    "The laws that a module states, in order."
    return [v for v in vars(module).values() if isinstance(v, Law) and v.__module__ == module.__name__]


# %%
#| export
def find(patterns: Iterable[str] = ()) -> list[Law]:
    "The laws in files (`*.py`), and those of bendml whose name, or module and name, matches a pattern; without any, all of bendml's."
    files, words = [p for p in patterns if p.endswith('.py')], [p for p in patterns if not p.endswith('.py')]
    found = [l for f in files for l in laws_of(load(f))]
    if files and not words: return found
    fits = lambda l: not words or any(fnmatch.fnmatch(n, f'*{w}*') for w in words for n in [f'{l.__module__}.{l.__name__}'])
    return found + [l for m in law_modules() for l in laws_of(importlib.import_module(m)) if fits(l)]


# %%
law_modules(), [l.__name__ for l in find(['reverse'])]


# %% [markdown]
# ## What a row says
#
# What a law does not cover follows from what it speaks of: exact fractions are not floats, and a law about abstract functions
# says nothing about functions that do not obey its axioms.

# %%
#| export
class Row(NamedTuple):
    "A law in the table."
    name: str
    module: str
    words: str
    symbols: str
    verdict: str
    solvers: dict     # solver -> how many obligations it proved
    obligations: int
    ms: int
    passed: int       # values for which it was run
    killed: int       # mutants that it noticed
    mutants: int
    covers_not: str


# %%
#| export
def covers_not(t: Theorem) -> str:
    "What a law says nothing about."
    law, out = t.law, []
    terms = [s for part in (law.claim, *law.hyps, *(c.value for f in functions(law) for c in f.cases)) for s in subterms(part)]
    if any(s.sort == REAL for s in terms if hasattr(s, 'sort')): out.append('floats, which round')
    if any(getattr(s, 'op', None) in ('+', '-', '*') and s.sort != REAL for s in terms): out.append('integers that overflow')
    if law.hyps: out.append('values that do not meet what it assumes')
    if named := [f.__name__ for f in functions(law) if not f.cases]: out.append(f"what {', '.join(named)} are" + (f" beyond {', '.join(a.__name__ for a in t.axioms)}" if t.axioms else ''))
    return '; '.join(out)


# %%
#| export
def row(law: Law, kill: bool = True) -> Row:
    "Prove a law, break what it speaks of, and say what came out."
    t = prove(law)
    tried: list[Mutant] = sample(law) if kill and t.holds and not law.assumed else []
    by = {s: sum(o.said(s) == 'unsat' for o in t.obligations) for s in SOLVERS}
    return Row(law.__name__, law.__module__, (law.__doc__ or '').strip(), statement(law).strip(), t.verdict, by, len(t.obligations), round(1000*t.seconds),
               t.found.passed, sum(m.found.counterexample is not None for m in tried), len(tried), covers_not(t))


# %% [markdown]
# ## In Markdown

# %%
#| export
def _cell(text: str) -> str: return ' '.join(text.split()).replace('|', '\\|')


# %%
#| export
def claims(rows: list[Row]) -> str:
    "The table of claims, in Markdown."
    out = ['| law | it says | in symbols | verdict | z3 | cvc5 | ms | mutants noticed | it does not cover |', '|---|---|---|---|---|---|---|---|---|']
    for module in dict.fromkeys(r.module for r in rows):
        out.append(f'| **{module}** | | | | | | | | |')
        for r in (r for r in rows if r.module == module):
            by = ' | '.join(f'{r.solvers[s]} of {r.obligations}' for s in SOLVERS)
            out.append(f"| {r.name} | {_cell(r.words)} | `{_cell(r.symbols)}` | {r.verdict} | {by} | {r.ms} | {r.killed} of {r.mutants} | {_cell(r.covers_not)} |")
    return '\n'.join(out)


# %%
#| export
def _kernel_row(k: 'bendml.kernel.Kernel') -> str:
    p, words = k.proof, _cell((k.__doc__ or '').strip())
    if p is None: return f'| {k.__name__} | {words} | - | - | - | - | unchecked: {_cell(k.unchecked)} |'
    verdict = 'confirmed' if p.confirmed == p.conditions else 'proved'
    return f'| {k.__name__} | {words} | {p.conditions} | {p.values} | {p.confirmed} | {p.z3 + p.cvc5:.2f} | {verdict} |'

def kernel_claims(kernels: list['bendml.kernel.Kernel']) -> str:
    "The table of kernels, in Markdown: what was proved of each, or why nothing was."
    proofs = [k.proof for k in kernels if k.proof]
    out = [f'{len(proofs)} kernels, {sum(p.conditions for p in proofs)} conditions proved in {sum(p.z3 + p.cvc5 for p in proofs):.0f} s, '
           f'{sum(p.confirmed for p in proofs)} confirmed by both solvers; {len(kernels) - len(proofs)} unchecked.', '',
           '| kernel | it does | conditions | about values | confirmed | seconds | verdict |', '|---|---|---|---|---|---|---|']
    for module in sorted({k.__module__ for k in kernels}):
        out += [f'| **{module}** | | | | | | |', *(_kernel_row(k) for k in kernels if k.__module__ == module)]
    return '\n'.join(out)


# %%
#| export
def summary(rows: list[Row]) -> str:
    "One line about all of them."
    count = lambda *v: sum(r.verdict in v for r in rows)
    survived = [r.name for r in rows if r.mutants and not r.killed]
    return (f'{len(rows)} laws, {sum(r.obligations for r in rows)} obligations: {count("confirmed")} confirmed by both solvers, {count("proved")} proved by one, '
            f'{count("assumed")} axioms, {count("refuted", "open", "vacuous", "stale")} not proved. '
            + (f'No mutant that we tried is noticed by {", ".join(survived)}.' if survived else 'Each law notices a mutant.'))


# %% [markdown]
# ## On the command line
#
# `bendml laws` proves all of bendml's laws, `bendml laws reverse` those with that word in their names, and
# `bendml laws my_file.py` those in a file of yours. The last line says `ALL PROOFS CHECK`, or `SOME PROOFS FAIL`.

# %%
#| export
def write_smt(laws: list[Law], folder: Path) -> int:
    "Write every obligation as an SMT-LIB file, to be checked with any solver; how many there are."
    folder.mkdir(parents=True, exist_ok=True)
    texts = {f'{l.__module__}.{l.__name__}.{i}.smt2': o.text for l in laws for i, o in enumerate(prove(l).obligations)}
    for name, text in texts.items(): (folder/name).write_text(text.replace('(set-logic ALL)', '(set-info :status unsat)\n(set-logic ALL)'))
    return len(texts)


# %%
#| export
def many(n: int, thing: str) -> str: return f"{n} {thing}{'s'*(n != 1)}"

def finish(rows: list[Row]) -> None:
    "The last line, and the exit code."
    bad = [r for r in rows if r.verdict not in ('proved', 'confirmed', 'assumed')]
    count = f"{many(len(rows), 'law')}, {many(sum(r.obligations for r in rows), 'obligation')}"
    click.echo(f'ALL PROOFS CHECK: {count}' if rows and not bad else f'SOME PROOFS FAIL: {len(bad)} of {count}' if rows else 'SOME PROOFS FAIL: no laws found')
    if bad or not rows: sys.exit(1)


# %%
#| export
@click.command()
@click.argument('patterns', nargs=-1)
@click.option('--statements', is_flag=True, help='Only what the laws say, without proving them.')
@click.option('--json', 'as_json', is_flag=True, help='One JSON object a law.')
@click.option('--mutants', 'kill', is_flag=True, help='Also break the functions, and count which changes each law notices.')
@click.option('--smt', type=click.Path(file_okay=False, path_type=Path), help='Write every obligation into this folder, as SMT-LIB.')
@click.option('--table', is_flag=True, help="The table of claims, in Markdown; of all laws, with bendml's kernels.")
def command(patterns: tuple[str, ...], statements: bool, as_json: bool, kill: bool, smt: Path | None, table: bool):
    "Prove laws: those in files, or those of bendml with a word in their names."
    try: _laws(patterns, statements, as_json, kill, smt, table)
    except LawError as e:
        click.echo(f'{e}\nSOME PROOFS FAIL: something was refused')
        sys.exit(1)


# %%
#| export
def _kernels() -> str:
    from bendml.kernel.command import own_kernels
    return f'\n\n## Kernels\n\n{kernel_claims(own_kernels())}'

def _laws(patterns, statements, as_json, kill, smt, table) -> None:
    laws = find(patterns)
    if statements:
        for l in laws: click.echo(f'{l.__module__}.{l.__name__}\n{statement(l)}\n' + f'  # {l.__doc__}\n'*bool(l.__doc__))
        click.echo(many(len(laws), 'law'))
        return
    rows = []
    for l in laws:
        rows.append(r := row(l, kill or table))
        if as_json: click.echo(json.dumps(r._asdict()))
        elif not table: click.echo(f'{r.verdict:9}  {r.module}.{r.name}  {r.ms} ms' + f'  {r.killed} of {r.mutants} mutants'*kill if prove(l).holds else report(prove(l)))
    if smt: click.echo(f'{write_smt(laws, smt)} files in {smt}', err=as_json)
    if table: click.echo(f'{summary(rows)}\n\n{claims(rows)}' + ('' if patterns else _kernels()))
    if as_json: sys.exit(any(r.verdict not in ('proved', 'confirmed', 'assumed') for r in rows) or not rows)
    if not table: finish(rows)


# %%
from click.testing import CliRunner
print(CliRunner().invoke(command, ['lists.*append']).output)

# %% [markdown]
# ## What this does not show
#
# A table shows that laws hold, not that they are the laws that matter. `bendml laws --statements` prints nothing but
# what they say, for a person to judge.
