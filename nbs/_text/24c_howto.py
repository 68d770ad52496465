# %% [markdown]
# # Check your own script
# > Take a NumPy script, say what one function takes and gives, get an answer. Ten minutes.

# %% [markdown]
# ## 1. A script
#
# Here is one that runs. It fits a line to data by gradient descent, prints a loss, and stops. You would write your own file;
# this page writes it for you.

# %%
#| hide
from pathlib import Path
import os, tempfile
os.chdir(tempfile.mkdtemp())
def check(*options):
    "What `bendml check` prints, without the times, which differ from run to run."
    import re
    from click.testing import CliRunner
    from bendml.shape.check import command
    text = CliRunner().invoke(command, ['script.py', *options]).output
    print(re.sub(r', [\d.]+ (ms|s)\b', '', text).rstrip())


# %%
Path('script.py').write_text('''\
import numpy as np

def loss_and_gradient(x, y, w):
    error = x @ w - y
    return (error**2).mean(), 2*x.T @ error/len(x)

def train(x, y, steps=100):
    w = np.zeros((x.shape[1], 1))
    for _ in range(steps):
        loss, gradient = loss_and_gradient(x, y, w)
        w = w - 0.1*gradient.mean(axis=1, keepdims=True)
    return w, loss

if __name__ == "__main__":
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 3))
    y = x @ np.array([1.0, -2.0, 0.5])
    w, loss = train(x, y)
    print("loss", round(float(loss), 3), "w", w.ravel().round(2))
''');

# %%
import subprocess, sys
print(subprocess.run([sys.executable, 'script.py'], capture_output=True, text=True).stdout)

# %% [markdown]
# No error. But the data was made with weights 1, -2 and 0.5, without noise, so the loss should be close to 0.
#
# ## 2. Annotations
#
# Say what goes into the function that you suspect, and check the file. Names stand for sizes that you do not know, or do not
# want to fix: `n` rows, `d` columns. A line for each name, and `L[1]` for the number 1, is what editors read; without an editor
# `n, d = dims("n d")` and `Mat[d, 1]` do as well. Nothing is run except definitions.

# %%
text = Path('script.py').read_text()
text = text.replace('import numpy as np\n', '''import numpy as np
from bendml.shape import Dim, L, Mat, Vec, typed

n = Dim("n")
d = Dim("d")
''', 1)
text = text.replace('def loss_and_gradient(x, y, w):', '''@typed
def loss_and_gradient(x: Mat[n, d], y: Vec[n], w: Mat[d, L[1]]) -> tuple[float, Mat[d, L[1]]]:''')
Path('script.py').write_text(text)
check()

# %% [markdown]
# `x @ w` is a column, `(n, 1)`, and `y` is a row of `n` numbers. NumPy subtracts every number of the one from every number
# of the other, which gives an `n`×`n` matrix. It says so on the line where it happens.
#
# ## 3. Mend it
#
# The hint has two ways. We make `y` a column.

# %%
text = text.replace('x @ w - y\n', 'x @ w - y[:, None]\n').replace('gradient.mean(axis=1, keepdims=True)', 'gradient')
Path('script.py').write_text(text)
check()
print(subprocess.run([sys.executable, 'script.py'], capture_output=True, text=True).stdout)

# %% [markdown]
# ## What you can write
#
# | you mean | you write |
# |---|---|
# | a number of rows that you do not know | `n = Dim("n")`, then `Mat[n, 3]`; the same name is the same size everywhere in the function |
# | arithmetic | `Mat[n, "4*d"]`, `Vec["n + 1"]`; for an editor a line of its own, `n1 = Annotated[Any, "n + 1"]`, then `Vec[n1]` |
# | more axes | `Arr[B, T, C]` |
# | whole numbers, used as an index | `Int[Vec[n]]`; truth values: `Bool[Vec[n]]` |
# | a size as a parameter | `heads: int` |
# | some number | `lr: float` |
# | a condition | `@typed(where="C % H == 0")`, `where=["T <= 1024", "ids < V"]` |
# | a size that may be 0 | `where="P >= 0"`; without it a size is at least 1 |
# | a size with a default | `k: int = 3`, where an annotation names it: `-> Vec["n + k"]` |
# | a size that the data decide | a name that only the result has: `-> Mat[k, d]` |
# | an array that may be left out | `w: Vec[d] = None`, or `w: Vec[d] | None` |
# | arrays in a list | `xs: list[Vec[d]]` |
# | a random generator, a text, an object | `rng: np.random.Generator`, `name: str`, `settings: Settings` |
# | one of a few texts | `mode: Literal["same", "valid"]`, or an Enum |
# | a function, or whatever else is the same at each call | `@typed(known={"f": np.tanh})` |
# | float32, and nothing else | `F32[Mat[n, d]]` |
# | several results | `-> tuple[float, Mat[n, d]]` |
# | parameters in a record or dictionary | a NamedTuple or dataclass with annotated fields; `{"w": Mat[d, m], "b": Vec[m]}`: these keys, in this order |
# | what an object holds | in its class, above the methods: `w: Vec[d]`, `k: int` for a size, `lr: float` |
# | a function that NumPy does not have | it is traced; if that is in vain, a rule does it, as shown below |
# | a weight's layout | `InOut[Mat[d, d]]` or `OutIn[...]` |
# | nothing may be averaged over the batch | `@typed(keep="B")` |
#
# The fields of a record are annotated once, and a function may return one whose arrays have grown. Derive a class that says
# so: a `Grown` is a `Cache`, for which the next call has another `P`.

# %%
from dataclasses import dataclass
from bendml.shape import Int, Mat, ShapeError, Vec, dims, rule, typed
import numpy as np
n, d, k, P, T = dims('n d k P T')

@dataclass
class Cache:
    keys: Mat[P, d]
@dataclass
class Grown(Cache):
    keys: Mat['P + T', d]

@typed
def step(caches: list[Cache], x: Mat[T, d]) -> list[Grown]:
    return [Grown(np.concatenate([c.keys, x])) for c in caches]
@typed
def two_steps(caches: list[Cache], x: Mat[T, d]) -> list[Mat['P + 2*T', d]]:
    return [c.keys for c in step(step(caches, x), x)]

two_steps([Cache(np.zeros((1, 3)))], np.ones((2, 3)))[0].shape


# %% [markdown]
# A function that you do not want to touch can be annotated from outside:

# %%
def standardise(x): return (x - x.mean(axis=0))/x.std(axis=0)
typed(standardise, shapes={'x': Mat[n, d], 'return': Mat[n, d]}).__shapes__.report()

# %% [markdown]
# ## When it says no and you think it is right
#
# Where the message ends in a *hint*, that is what to try first. Some that come up:
#
# - *has no shape rule*, or *the numbers of an array are needed here*: a function that is compiled, or makes lists of an array,
#   has to be taken at its word. Say what it returns, in a function with the same parameters; `@rule` takes any function,
#   another package's or your own.

# %%
from scipy.spatial.distance import cdist

def nearest(x: Mat[n, d], centres: Mat[k, d]) -> Int[Vec[n]]: return cdist(x, centres).argmin(axis=1)

try: typed(nearest)
except ShapeError as e: print(e)


# %%
@rule(cdist)
def _(XA, XB, metric='euclidean'): return np.zeros((len(XA), len(XB)))

typed(nearest).__shapes__.report()

# %% [markdown]
# - *fails at d = 1*: it is right for the sizes that you use, not for all. Say which ones: `where="d % 2 == 0"`, or test it in
#   the function and raise an exception. *This is the way where d < 7* says which condition would do.
# - *nothing bounds the numbers of this index*: what `i` holds is computed, and may lead outside of `x`. Write
#   `np.clip(i, 0, len(x) - 1)` or `i % len(x)`; or let it come in as a parameter, `i: Int[Vec[m]]`, with `where="i < n"`.
# - *a counter or flag has no known value*: the loop runs an unknown number of times. Use `enumerate`, or the length.
# - *more than 400 paths*: every condition on numbers doubles the ways through a function. Write the body of the loop as a function
#   of its own, with `@typed`: in the other one its call is one step.
# - *every combination*: the message has what to write, the last of it if you do mean the table of all pairs.
#
# ## Every day
#
# In an editor, the annotations are checked by pyright and mypy as far as these can ([what they see](24d_editor.ipynb)), and
# [`bendml lsp`](24d_editor.ipynb) underlines a refusal when the file is saved. Before each commit, and in CI,
# `bendml check --quiet src/*.py` prints one line for each refusal and fails. In a notebook, the cell with the definition
# shows the message.
#
# ## What this does not show
#
# The check says nothing about functions that you did not annotate, and it does not see the lines outside of functions.
