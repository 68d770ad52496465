"""Notebooks and their text: `sync` carries an edit from one to the other, `outputs` runs them and stores what they print.

    python tools/notebooks.py sync
    python tools/notebooks.py outputs [NAME...]
"""
import json, os, shutil, subprocess, sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
SYNCED = ROOT/'nbs/_text/.synced'
TEXT = {'extension': '.py', 'format_name': 'percent', 'notebook_metadata_filter': '-all', 'cell_metadata_filter': '-all'}


def pairs():
    "Every notebook with its text, `(nbs/NAME.ipynb, nbs/_text/NAME.py)`; either may not exist yet."
    names = {p.stem for p in (ROOT/'nbs').glob('*.ipynb')} | {p.stem for p in (ROOT/'nbs/_text').glob('*.py')}
    return [(ROOT/'nbs'/f'{n}.ipynb', ROOT/'nbs/_text'/f'{n}.py') for n in sorted(names)]


def as_text(notebook: str) -> str:
    "The text form of a notebook's JSON."
    import jupytext
    return jupytext.writes(jupytext.reads(notebook, fmt='ipynb'), TEXT)


def agree(nb: Path, text: Path) -> bool:
    return nb.exists() and text.exists() and as_text(nb.read_text()) == text.read_text()


def last_agreed(name: str) -> str | None:
    "The text on which both sides last agreed: at the last sync, else at the last commit."
    if (kept := SYNCED/f'{name}.py').exists(): return kept.read_text()
    run = subprocess.run(['git', 'show', f'HEAD:nbs/_text/{name}.py'], cwd=ROOT, capture_output=True, text=True)
    return run.stdout if run.returncode == 0 else None


def sync() -> None:
    "Carry edits across each pair; where both sides were edited since they last agreed, stop."
    SYNCED.mkdir(parents=True, exist_ok=True)
    for nb, text in pairs():
        if not agree(nb, text):
            agreed = last_agreed(nb.stem)
            nb_edited = nb.exists() and as_text(nb.read_text()) != agreed
            text_edited = text.exists() and text.read_text() != agreed
            if nb_edited and text_edited and agreed is not None:
                sys.exit(f'{nb.name}: both the notebook and nbs/_text/{text.name} were edited since they last agreed. '
                         'Merge them by hand: put into one what you want to keep of the other, and `git checkout` the other.')
            if text_edited or not nb_edited: to_notebook(nb, text)
            text.write_text(as_text(nb.read_text()))
            print('synced', nb.stem)
        shutil.copy(text, SYNCED/text.name)


def to_notebook(nb: Path, text: Path) -> None:
    "Write the notebook from its text; cells that did not change keep their id and output."
    import jupytext
    from jupytext.combine import combine_inputs_with_outputs
    new = jupytext.reads(text.read_text(), fmt=TEXT)
    if nb.exists(): new = combine_inputs_with_outputs(new, jupytext.read(nb), fmt=TEXT)
    new.metadata['kernelspec'] = {'display_name': 'python3', 'language': 'python', 'name': 'python3'}
    jupytext.write(new, nb)
    clean(nb)


def clean(nb: Path) -> None:
    "Leave only what nbdev keeps: no execution counts, no machine's metadata; the same bytes each time."
    from execnb.nbio import read_nb
    from nbdev.clean import clean_nb
    content = read_nb(nb)
    clean_nb(content)
    write(content, nb)


def write(content, nb: Path) -> None:
    "Store a notebook in the form that jupytext gives it, without the place where it was read."
    import nbformat
    plain = json.loads(json.dumps(content))
    plain.pop('path_', None)
    nbformat.write(nbformat.from_dict(plain), nb)


def run(nb: Path) -> None:
    "Run a notebook's cells in order, as nbdev_test would, and store their outputs."
    from execnb.nbio import read_nb
    from execnb.shell import CaptureShell
    from fastcore.all import working_directory
    from nbdev.config import get_config
    from nbdev.process import NBProcessor
    flags = set(get_config().tst_flags.split())
    parsed = NBProcessor(nb, process=True).nb

    def skipped(cell):
        directives = getattr(cell, 'directives_', None) or {}
        off = directives.get('eval:', [''])[0].lower() == 'false'
        return cell.cell_type != 'code' or off or bool(flags & directives.keys())
    with working_directory(nb.parent): CaptureShell(nb).run_all(parsed, exc_stop=True, preproc=skipped)
    stored = read_nb(nb)
    for cell, ran in zip(stored.cells, parsed.cells):
        if cell.cell_type == 'code' and not skipped(ran): cell['outputs'] = ran.get('outputs', [])
    write(stored, nb)
    clean(nb)


def outputs(names: list[str]) -> None:
    for nb, _ in pairs():
        if names and nb.stem not in names: continue
        env = os.environ | {'PYTHONHASHSEED': '0', 'SOURCE_DATE_EPOCH': '0', 'TQDM_DISABLE': '1',
                            'MPLBACKEND': 'module://matplotlib_inline.backend_inline'}
        subprocess.run([sys.executable, '-W', 'ignore', __file__, '_run', nb], env=env, cwd=ROOT, check=True)
        print('ran', nb.stem)


if __name__ == '__main__':
    match sys.argv[1:]:
        case ['sync']:
            sync()
            subprocess.run([Path(sys.executable).parent/'nbdev_export'], cwd=ROOT, check=True)
        case ['outputs', *names]: outputs(names)
        case ['_run', nb]: run(Path(nb))
        case _: sys.exit(__doc__)
