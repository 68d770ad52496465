# %%
#| default_exp laws.kept

# %% [markdown]
# # What was found once
# > An answer is kept under the hash of its question, so that an import asks no solver.

# %% [markdown]
# Some questions come up whenever a module is imported: does this recursion end, is this loop safe? The answers do not change, so they
# are kept, each under the hash of everything that the question says. Change a letter, and it is another question, which nobody
# has answered yet.
#
# bendml's own answers come with it, in files beside the modules; those of other programs are kept in a folder of the user's,
# `$BENDML_CACHE` or `~/.cache/bendml`.

# %%
#| hide
#| export
import hashlib, json, os, tempfile, warnings
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path


# %%
#| export
def folder() -> Path:
    "The user's folder for what is kept."
    return Path(os.environ.get('BENDML_CACHE') or Path(os.environ.get('XDG_CACHE_HOME') or Path.home()/'.cache')/'bendml')

def name_of(*parts: str) -> str:
    "The hash of a question."
    return hashlib.sha256('\0'.join(parts).encode()).hexdigest()

_told = []

def tell_once(error: OSError) -> None:
    "Say that nothing can be kept here, but only once."
    if not _told: warnings.warn(f'proofs cannot be kept in {folder()}, and will be made again in each process ({error})', stacklevel=3)
    _told.append(error)


# %%
#| export
@dataclass(frozen=True)
class Kept:
    "Answers, each a dictionary under the name of its question."
    kind: str       # the folder's part for these answers
    shipped: Path   # the file of those that come with bendml

    @cached_property
    def own(self) -> dict:
        "Those that come with bendml."
        try: return json.loads(self.shipped.read_text())
        except (OSError, ValueError): return {}

    def get(self, name: str) -> dict | None:
        "What is kept under a name; nothing, if it cannot be read."
        try: found = self.own.get(name) or json.loads((folder()/self.kind/f'{name}.json').read_text())
        except (OSError, ValueError): return None
        return found if isinstance(found, dict) else None

    def put(self, name: str, answer: dict) -> None:
        "Keep an answer; where that is not possible, say so once and go on."
        place = folder()/self.kind
        try:
            place.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile('w', dir=place, delete=False) as f: json.dump(answer, f)
            os.replace(f.name, place/f'{name}.json')
        except OSError as e: tell_once(e)

    def ship(self, answers: dict[str, dict]) -> None:
        "Write the file of those that come with bendml."
        self.shipped.write_text(json.dumps(answers, indent=1) + '\n')


# %%
#| hide
os.environ['BENDML_CACHE'] = tempfile.mkdtemp()

# %%
kept = Kept('examples', Path('none.json'))
kept.put(name_of('is 7 prime?'), {'answer': 'yes'})
kept.get(name_of('is 7 prime?')), kept.get(name_of('is 8 prime?'))

# %% [markdown]
# In a folder that cannot be written, the question is answered again the next time, and that is all:

# %%
file = Path(tempfile.mkdtemp())/'file'
file.write_text('')
os.environ['BENDML_CACHE'] = str(file)
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter('always')
    for n in range(3): kept.put(name_of(str(n)), {'answer': n})
print(len(said), 'warning;', kept.get(name_of('0')))

# %% [markdown]
# ## What this does not show
#
# That a file was not tampered with. What is kept says what was found on the machine that wrote it. `bendml laws`, `bendml kernels`
# and the tests look at none of it, and ask the solvers again.
