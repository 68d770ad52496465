# %%
#| default_exp kernel.command

# %% [markdown]
# # Check your own kernels
# > `bendml kernels FILE`: every kernel of a file, what was proved of it, and what was refused.

# %% [markdown]
# You have a numba function, and would like to know whether it is safe. Three steps.
#
# **1. Make it flat, and say how long its arrays are.** This one takes moving averages of rows:
#
# ```python
# @njit(parallel=True)
# def smooth(x, w, y):                          # x (rows, n), y (rows, n - w + 1)
#     for r in prange(x.shape[0]):
#         for i in range(x.shape[1] - w + 1):
#             total = 0.0
#             for j in range(w): total += x[r, i + j]
#             y[r, i] = total/w
# ```
#
# Sizes become parameters, arrays become buffers (`x.reshape(-1)` costs nothing), and `x[r, i]` becomes `x[r*n + i]`.
# What has to hold of the sizes goes into `requires`.
#
# **2. Put `@kernel` above it.**

# %%
#| hide
import os, tempfile
from pathlib import Path
os.environ['BENDML_CACHE'] = tempfile.mkdtemp()

# %%
from bendml.kernel import Buf, KernelError, Size, f32, kernel, prange, requires

@kernel
def smooth(rows: Size, n: Size, w: Size, x: Buf["rows*n", f32], y: Buf["rows*(n - w + 1)", f32]):
    "Moving averages of w numbers, row by row."
    requires(1 <= w, w <= n)
    for r in prange(rows):
        for i in range(n - w + 1):
            total = f32(0)
            for j in range(w): total += x[r*n + i + j]
            y[r*(n - w + 1) + i] = total/f32(w)

smooth

# %% [markdown]
# **3. Call it.** The arguments are checked in half a microsecond, and then numba's machine code runs.

# %%
import numpy as np
y = np.empty(6, f32)
smooth(2, 5, 3, np.arange(10, dtype=f32), y)
y

# %%
try: smooth(2, 5, 3, np.arange(10, dtype=f32), np.empty(10, f32))
except KernelError as e: print(e)


# %% [markdown]
# Had the rows of `y` been taken to be `n` long, as those of `x` are, the last row would have been written past the end:

# %%
def smooth_wrongly(rows: Size, n: Size, w: Size, x: Buf["rows*n", f32], y: Buf["rows*(n - w + 1)", f32]):
    requires(1 <= w, w <= n)
    for r in prange(rows):
        for i in range(n - w + 1): y[r*n + i] = x[r*n + i]

try: kernel(smooth_wrongly)
except KernelError as e: print(e)

# %% [markdown]
# ## If it is refused and you think it is right
#
# - Say what you know of the sizes in `requires`. It is checked at every call.
# - Say what you know of a counter in `invariant`, at the top of the loop's body: `invariant(p == i*k)`.
# - Say a step on the way with `assert`. It has to be proved too, and is then known: `assert r*n + n <= rows*n`.
# - Say what integers in a buffer may be: `Buf["n", i64, "0 <= ids < V"]`.
# - If nothing helps, `@kernel(unchecked="the reason")` compiles it without a proof. The table below shows the reason.
#
# ## The command
#
# `bendml kernels FILE` imports a file and proves each kernel in it anew, whatever was proved before. Without a file it does so
# with bendml's own. It ends with 0 if all are proved, and with 1 if not.

# %%
#| hide
#| export
import runpy, sys, time
from dataclasses import asdict
from importlib import import_module
from pathlib import Path

import click

from bendml.kernel import KERNELS, Kernel, KernelError, Proved
from bendml.kernel.proofs import PROOFS
from bendml.laws.read import function_of
from bendml.laws.reflect import CHECKED, check_name
from bendml.laws.solvers import discharge


# %%
#| export
def own_kernels() -> list[Kernel]:
    "All kernels of the package, by importing the modules that have some."
    _import('@kernel\n', '@kernel(')
    return [k for k in KERNELS if k.__module__.startswith('bendml.')]

def _import(*words: str) -> None:
    "Import the modules of the package in which one of these words stands."
    root = PROOFS.shipped.parent.parent
    for path in sorted(root.rglob('*.py')):
        text = path.read_text()
        if any(w in text for w in words): import_module('.'.join(path.relative_to(root.parent).with_suffix('').parts).removesuffix('.__init__'))

def prove_checks() -> dict[str, dict]:
    "What the package's own pure functions need to be accepted, proved anew: the answers that come with it."
    _import('@pure')
    functions = {f for name, m in list(sys.modules.items()) if name.startswith('bendml.') for thing in vars(m).values() if (f := function_of(thing))}
    out = {}
    for check in sorted({c for f in functions for c in f.checks}):
        said = {a.solver: a.result for a in discharge(check.text)}
        if set(said.values()) != {'unsat'}: raise click.ClickException(f'{check.why}: {said}')
        out[check_name(check.text)] = {'proved by': ' and '.join(said)}
    return out

def _collect(file: str | None) -> list[Kernel]:
    "The kernels of a file, or of the package; refused ones among them."
    Proved.collecting = True
    try:
        if file is None: return own_kernels()
        before = len(KERNELS)
        try: runpy.run_path(file, run_name='kernels')
        except KernelError:   # a refused kernel was called further down in the file; the table says why it was refused
            if not any(k.error for k in KERNELS[before:]): raise
        return KERNELS[before:]
    finally: Proved.collecting = False


# %%
#| export
def table(kernels: list[Kernel]) -> str:
    "What is known of each kernel: one line each, and the refusals below."
    width = max((len(k.__name__) for k in kernels), default=6)
    head = f"{'kernel':{width}}  {'conditions':>10}  {'confirmed':>9}  {'values':>6}  {'z3':>7}  {'cvc5':>7}  verdict"
    lines, errors = [head], []
    for k in kernels:
        p = k.proof
        if p is not None: lines.append(f"{k.__name__:{width}}  {p.conditions:10}  {p.confirmed:9}  {p.values or '-':>6}  {p.z3:6.2f}s  {p.cvc5:6.2f}s  " + ('confirmed' if p.confirmed == p.conditions else 'proved'))
        else: lines.append(f"{k.__name__:{width}}  {'-':>10}  {'-':>9}  {'-':>6}  {'-':>7}  {'-':>7}  " + (f'unchecked: {k.unchecked}' if k.error is None else f'refused: {k.error.problem}'))
        if k.error is not None: errors.append(str(k.error))
    return '\n'.join(lines) + ''.join(f'\n\n{e}' for e in errors)

def verdict(kernels: list[Kernel], seconds: float) -> str:
    "The last line."
    refused, unchecked = sum(k.error is not None for k in kernels), sum(k.error is None and k.proof is None for k in kernels)
    proofs = [k.proof for k in kernels if k.proof is not None]
    if refused: return f'SOME KERNELS FAIL: {refused} of {len(kernels)} refused'
    return (f'ALL KERNELS PROVED: {len(proofs)} kernel{"s"*(len(proofs) != 1)}, {sum(p.conditions for p in proofs)} conditions, {sum(p.confirmed for p in proofs)} confirmed, {seconds:.1f} s'
            + f'; {unchecked} unchecked'*(unchecked > 0))


# %%
#| export
@click.command()
@click.argument('file', required=False, type=click.Path(exists=True, dir_okay=False))
@click.option('--record', is_flag=True, help="Write bendml's own proofs into the files that come with it.")
def command(file: str | None, record: bool):
    "Prove the kernels of FILE, or bendml's own, and show the table."
    start = time.perf_counter()
    try: kernels = _collect(file)
    except Exception as e:
        hint = '\nhint: from bendml.kernel import kernel' if "'module' object is not callable" in str(e) else ''   # from bendml import kernel is the module
        raise click.ClickException(f'{file}: it could not be imported\n- expected : Python that runs\n- observed : {type(e).__name__}: {e}{hint}')
    seconds = time.perf_counter() - start
    if not kernels: raise click.ClickException(f'{file}: no kernels\n- expected : a function with @kernel above it\n- observed : none')
    click.echo(table(kernels))
    if record and not any(k.error for k in kernels):
        if file: raise click.ClickException("--record is for bendml's own kernels")
        PROOFS.ship({k.digest: asdict(k.proof) for k in sorted(kernels, key=lambda k: (k.__module__, k.__name__)) if k.proof})
        CHECKED.ship(prove_checks())
    click.echo(verdict(kernels, seconds))
    if any(k.error for k in kernels): raise SystemExit(1)


# %% [markdown]
# A file with three kernels, one of which is wrong and one of which nobody looked at:

# %%
text = '''
from bendml.kernel import *

@kernel
def add(n: Size, x: Buf["n", f32], y: Buf["n", f32]):
    for i in prange(n): y[i] += x[i]

@kernel
def shift(n: Size, x: Buf["n", f32]):
    for i in range(n): x[i] = x[i + 1]

@kernel(unchecked="tested by hand in 1987")
def guess(n: Size, x: Buf["n", f32]):
    x[n//2] = 0
'''

# %%
from click.testing import CliRunner
path = Path(tempfile.mkdtemp())/'mine.py'
path.write_text(text)
print(CliRunner().invoke(command, [str(path)]).output)

# %% [markdown]
# ## What this does not show
#
# - Kernels that a file makes only when some function is called. Those are proved when they are made.
# - The file is imported, so it runs. Check only files that you would run.
