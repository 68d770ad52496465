# %%
#| default_exp shape.check

# %% [markdown]
# # On the command line
# > `bendml check train.py`: every typed function of a file, in the form that editors and CI read.

# %% [markdown]
# Definitions are executed, the program is not ([what that means](24a_definitions.ipynb)); then every typed function is
# checked, so that it does not matter in which order they are written.

# %%
#| hide
#| export
import ast, importlib.util, inspect, json, linecache, os, re, sys, time, types
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterator

import click

from bendml.shape.annotations import read_signature
from bendml.shape.sizes import DimError
from bendml.shape.messages import ShapeError, as_record, one_line, place_of_code
from bendml.shape.copies import function_node
from bendml.shape.values import arrays_of
from bendml.shape.paths import Report
from bendml.shape.boundary import Shapes
from bendml.shape.signatures import collecting, outcome
from bendml.shape.typing import _typed
from bendml.shape.definitions import Definitions

# %% [markdown]
# ## One source

# %%
#| export
MAX_BYTES = 4_000_000

class SourceError(ValueError):
    "A file cannot be read, parsed or imported."


# %%
#| export
def _sources(path: Path) -> list[tuple[str, str]]:
    "The pieces of Python in a file, each with its name; a notebook has one a cell."
    if not path.is_file(): raise SourceError(f'{path}: no such file')
    if path.stat().st_size > MAX_BYTES: raise SourceError(f'{path}: {path.stat().st_size} bytes; at most {MAX_BYTES} are read')
    try: text = path.read_text()
    except UnicodeDecodeError as e: raise SourceError(f'{path}: not text: {e}') from None
    if path.suffix != '.ipynb': return [(str(path), text)]
    try: cells = [''.join(c['source']) for c in json.loads(text)['cells'] if c['cell_type'] == 'code']
    except (ValueError, KeyError, TypeError, RecursionError): raise SourceError(f'{path}: not a notebook') from None
    return [(f'{path}#cell{i}', c) for i, c in enumerate(cells, 1)]


# %%
#| export
def _parsed(file: str, text: str) -> ast.Module:
    "A piece of Python, parsed; `SourceError` where it is none."
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    try: return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError) as e:
        raise SourceError(f'{file}:{getattr(e, "lineno", 0)}:{getattr(e, "offset", 0)}: error: {type(e).__name__}: {getattr(e, "msg", e)}') from None


# %% [markdown]
# ## A notebook's cell
#
# Not all of a notebook is Python: `%matplotlib inline`, `files = !ls`, `np.sum?`. IPython rewrites these as calls of its own,
# which are not executed here. A cell is Python, or a magic and then Python, as with `%%time`, or in another language.

# %%
#| export
_ABOVE_PYTHON, MAX_CELL = {'capture', 'prun', 'time', 'timeit'}, 20_000  # characters that IPython is asked to rewrite

def _cell(text: str) -> tuple[str, str]:
    "A cell as Python, line for line; and the magic above it, if what stands under that need not be Python."
    begin, first = 0, re.compile(r'\s*%%(\w+).*')
    while magic := first.match(text, begin):
        if magic[1] not in _ABOVE_PYTHON: return '', f'%%{magic[1]}'
        begin = magic.end()
    return _plain('\n'*text.count('\n', 0, begin) + text[begin:]), ''


# %%
#| export
def _plain(text: str) -> str:
    "Python alone, with IPython's help where it is there; a text that IPython does not understand stays as it is."
    try: ast.parse(text); return text
    except (SyntaxError, ValueError, RecursionError): pass
    try: from IPython.core.inputtransformer2 import TransformerManager
    except ImportError: TransformerManager = None
    if TransformerManager is None or len(text) > MAX_CELL: return re.sub(r'(?m)^([ \t]*)[%!?].*', r'\1pass', text)
    class InPlace(TransformerManager):
        def do_one_token_transform(self, lines: list[str]) -> tuple[bool, list[str]]:
            "One step of IPython's, with empty lines for those that it has joined: line numbers stay."
            changed, new = super().do_one_token_transform(lines)
            same = next((i for i, (a, b) in enumerate(zip(lines, new)) if a != b), 0)
            return changed, [*new[:same + 1], *['\n']*(len(lines) - len(new)), *new[same + 1:]]
    above = re.match(r'(?:[^\S\n]*\n)*', text)[0]  # IPython leaves out empty lines at the top
    try: return '\n'*above.count('\n') + InPlace().transform_cell(text[len(above):])
    except (SyntaxError, RuntimeError): return text


# %%
#| export
class _NoMagic(ast.NodeTransformer):
    "A statement that calls IPython does nothing here."
    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        match node.value:
            case ast.Call(ast.Attribute(ast.Call(ast.Name('get_ipython')))): return ast.copy_location(ast.Pass(), node)
        return node


# %%
_cell('%%time\nhere = !ls\nnp.sum?\nx = (7\n  % 2)'), _cell('%%bash\nls')


# %%
#| export
def _module(path: Path, name: str) -> types.ModuleType:
    "An empty module in the place of the file's own; a file without an `__init__.py` beside it belongs to the package that its name says."
    module = types.ModuleType(name or f'_checked_{path.stem}')
    module.__file__, module.__package__ = str(path), _package(path)[0] or name.rpartition('.')[0]
    sys.modules[module.__name__] = module
    return module

def _package(path: Path) -> tuple[str, Path]:
    "The package that a file belongs to, by the `__init__.py` beside it and above, and the folder that it is in."
    folder, names = path.resolve().parent, []
    while (folder/'__init__.py').is_file() and folder.name: folder, names = folder.parent, [folder.name, *names]
    return '.'.join(names), folder


# %% [markdown]
# Functions that carry shape annotations without the decorator, jaxtyping's for instance, are checked as well.

# %%
#| export
def _undecorated(space: dict[str, Any], files: set[str], seen: set, left_out: list[str]) -> Iterator[types.FunctionType]:
    "The functions of a module that have shapes in their annotations, and no `@typed`; those that cannot be read are `left_out`."
    for f in list(space.values()):
        f = inspect.unwrap(f) if callable(f) else f
        if not isinstance(f, types.FunctionType) or f.__code__.co_filename not in files or f.__code__ in seen: continue
        try: signature = read_signature(f)
        except (ShapeError, DimError) as e:  # nobody asked for these to be checked
            if any(hasattr(a, 'dim_str') for a in inspect.get_annotations(f).values()): left_out.append(f'{place_of_code(f.__code__)}: {f.__name__} is not checked: {e.args[0]}')
            continue
        given = [s or signature.python.parameters[n].default is not inspect.Parameter.empty for n, s in signature.params]
        if all(given) and any(_says(s) for _, s in [*signature.params, ('return', signature.result)]): yield f


def _says(spec: Any) -> bool:
    "Does an annotation itself speak of axes? A record that holds arrays was annotated for somebody else."
    return not getattr(spec, 'make', None) and any(a.sizes for _, a in arrays_of(spec, ''))


# %%
#| export
@dataclass(frozen=True)
class Checked:
    "What the check of a file found."
    file: str
    reports: tuple[tuple[str, Report], ...]   # (place, report)
    refusals: tuple[ShapeError, ...]          # one a fault
    refused: int                              # how many functions are refused: several may call one that is wrong
    seconds: float
    left_out: tuple[str, ...] = ()            # annotated for somebody else, or in another language, and not read
    unchecked: tuple[str, ...] = ()           # with `@typed`, in a statement that is not run
    broken: tuple[str, ...] = ()              # cells of a notebook that are no Python


# %%
#| export
def check_file(path: Path, name: str = '') -> Checked:
    "Check every typed function of a file."
    began, sources = time.perf_counter(), _sources(path)
    trees, left_out, broken = [], [], []
    for file, text in sources:
        if path.suffix == '.ipynb': text, other = _cell(text); left_out += [f'{file}: {other} is not checked']*bool(other)
        try: trees.append((file, _parsed(file, text)))
        except SourceError as e:
            if path.suffix != '.ipynb': raise
            broken.append(str(e))
    module = _module(path, name)
    paths, definitions = [str(_package(path)[1]), str(path.parent.resolve())], Definitions(vars(module))
    sys.path[:0] = paths
    try:
        with collecting() as found:
            for file, tree in trees:
                definitions.run((_NoMagic().visit(tree) if path.suffix == '.ipynb' else tree).body, file)
                _check_all(found, last=False)
            for f in _undecorated(vars(module), {file for file, _ in sources}, {f.__code__ for f, _ in found}, left_out): _typed(f, (), '')
            _check_all(found, last=True)
    finally:
        for p in paths: sys.path.remove(p)
        sys.modules.pop(module.__name__, None)
    if not name and (package := _package(path)[0]) and any('partially initialized' in e.reason for e in definitions.refusals):
        return check_file(path, f'{package}.{path.stem}')  # modules that import each other: by its own name they find it
    reports = [(str(place_of_code(f.__code__)), r) for f, r in found if isinstance(r, Report)]
    refused = [(f, definitions.explain(r)) for f, r in found if isinstance(r, ShapeError)]
    whole = [e for e in definitions.refusals if e.place.function]
    return Checked(str(path), tuple(reports), (*definitions.refusals, *_faults(refused)), len(refused) + len(whole),
                   time.perf_counter() - began, tuple(left_out), tuple(definitions.unchecked), tuple(broken))


# %%
#| export
def _check_all(found: list, last: bool) -> None:
    "Check what is not checked yet; what uses a name that is not there waits for the rest of a notebook."
    for _, made in found:
        if isinstance(made, Shapes) and made.refusal and made.refusal.missing: made.refusal = None
    for i, (f, made) in enumerate(found):
        if isinstance(made, Shapes) and (last or not getattr(outcome(made), 'missing', '')): found[i] = f, outcome(made)


# %% [markdown]
# A function that calls a wrong one is not wrong for that: a typed function is taken at its word. One without annotations is
# traced for each of its callers, and its fault is one fault.

# %%
#| export
def _faults(refused: list[tuple[types.FunctionType, ShapeError]]) -> list[ShapeError]:
    "One refusal for each faulty place, with the functions that have led there."
    faults: dict[Any, ShapeError] = {}
    for f, e in refused:
        own = function_node(f.__code__)
        inside = e.place is None or own is None or e.place.file == f.__code__.co_filename and f.__code__.co_firstlineno <= e.place.line <= own.end_lineno
        e = faults.setdefault((e.place, e.reason.partition(':')[0]) if e.place and not inside else id(e), e)
        if not inside: e.callers = (*e.callers, f'{f.__name__}, {place_of_code(f.__code__)}')
    return list(faults.values())


# %% [markdown]
# ## The command

# %%
#| export
def _find(what: str) -> tuple[Path, str]:
    "A file, or a module by its name."
    if what.endswith(('.py', '.ipynb')) or os.sep in what: return Path(what), ''
    try: spec = importlib.util.find_spec(what)
    except (ImportError, ValueError) as e: raise SourceError(f'{what}: {e}') from None
    if spec is None or not spec.origin or not spec.origin.endswith('.py'):
        raise SourceError(f'{what}: neither a file nor a module written in Python')
    return Path(spec.origin), what


# %%
#| export
@click.command()
@click.argument('what', nargs=-1, required=True, metavar='FILE_OR_MODULE...')
@click.option('--json', 'as_json', is_flag=True, help='Print one JSON object.')
@click.option('--quiet', is_flag=True, help='Print refusals only, one line each.')
def command(what: tuple[str, ...], as_json: bool, quiet: bool):
    "Check the shapes of every typed function, for all sizes; exit 1 if one is refused, or could not be checked."
    done, broken = [], []
    for w in what:
        try: done.append(c := check_file(*_find(w))); broken += c.broken
        except SourceError as e: broken.append(str(e))
    if as_json: click.echo(json.dumps(_as_json(done, broken), indent=1, ensure_ascii=False))
    else: _as_text(done, broken, quiet)
    sys.exit(2 if broken else 1 if any(c.refusals or c.unchecked for c in done) else 0)


# %%
#| export
def _as_text(done: list[Checked], broken: list[str], quiet: bool) -> None:
    for c in done:
        for e in c.refusals:
            click.echo(one_line(e))
            if not quiet: click.echo('  ' + str(e).replace('\n', '\n  '))
            if not quiet: [click.echo(f'  called from {c}') for c in e.callers]
        for text in c.unchecked: click.echo(text)
        if quiet: continue
        for where, r in c.reports: click.echo(f'{where}: ok: {r}')
        for text in c.left_out: click.echo(text)
        places = f', {len(c.refusals)} fault{"s"*(len(c.refusals) > 1)}'*(len(c.refusals) != c.refused)
        rest = f', {len(c.unchecked)} not checked'*bool(c.unchecked)
        click.echo(f'{c.file}: {c.refused} of {len(c.reports) + c.refused} functions refused{places}{rest}, {c.seconds:.2f} s')
    for text in broken: click.echo(text, err=True)


# %%
#| export
def _as_json(done: list[Checked], broken: list[str]) -> dict:
    accepted = [{'place': where, 'function': r.name, 'result': r.result, 'paths': r.paths, 'seconds': round(r.seconds, 4)}
                for c in done for where, r in c.reports]
    return {'refused': [as_record(e) for c in done for e in c.refusals], 'accepted': accepted, 'broken': broken, 'left_out': [t for c in done for t in (*c.unchecked, *c.left_out)],
            'seconds': {c.file: round(c.seconds, 3) for c in done}}


# %%
from click.testing import CliRunner
program = '''import numpy as np
from bendml.shape import Dim, Mat, typed
B = Dim("B")

@typed
def good(x: Mat[B, 3], w: Mat[3, 5]) -> Mat[B, 5]:
    return x @ w

@typed
def bad(x: Mat[2, 3], y: Mat[4, 5]) -> Mat[2, 5]:
    return x @ y

data = np.load("train.npy")
good(data, data)
'''
runner = CliRunner()
with runner.isolated_filesystem():
    Path('train.py').write_text(program)
    result = runner.invoke(command, ['train.py'])
assert result.exit_code == 1
print('\n'.join(line for line in result.output.splitlines() if ' ms' not in line and ' s' != line[-2:]))

# %% [markdown]
# ## Before each commit
#
# For [pre-commit](https://pre-commit.com), in `.pre-commit-config.yaml`:
#
#     repos:
#     - repo: https://github.com/bendml/bendml
#       rev: v0.1.0
#       hooks: [{id: bendml-check}]
#
# It runs in an environment of its own. What your files import, besides NumPy, is named there too:
# `{id: bendml-check, additional_dependencies: [scipy]}`.
#
# ## What this does not show
#
# A typed function inside another function is checked when that one runs, so not here, and is not named. (One in a statement that is
# not run, a `for` loop or `if __name__ == "__main__":`, is named as not checked, and the exit code is 1.) One that is refused is taken at its word
# by those that call it: they may turn out to be wrong when it is mended. Importing what a file imports runs
# those modules' own code. A function that is annotated for jaxtyping with an axis that has no name (`*batch`) is named as not checked,
# and so is a notebook's cell under a magic that is not known to stand above Python. What a `%%timeit` cell assigns counts as assigned.
