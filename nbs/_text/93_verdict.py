# %%
#| default_exp laws.verdict

# %% [markdown]
# # Verdict
# > Everything again, from the source, in a fresh process, with other seeds.

# %% [markdown]
# A theorem in a running Python session is an object in memory, and anything in memory could have been tampered with.
# `bendml verdict` trusts none of it. It starts a new process, reads every law again from its source, writes every
# obligation anew, and has each checked by cvc5 and by z3 under several seeds. It also looks for a contradiction in what
# the laws rest on, and compares the equations of every function with the function.

# %%
#| hide
#| export
import subprocess, sys

import click

from bendml.laws.claims import find
from bendml.laws.datatypes import LawError
from bendml.laws.guards import contradiction, disagreement
from bendml.laws.induct import Law, functions, obligations
from bendml.laws.prove import ask, prove

# %% [markdown]
# ## Checking again
#
# A solver makes arbitrary choices, and a seed decides them. A proof that only goes through with one seed would be a matter
# of luck.

# %%
#| export
SEEDS = {'z3': (1, 2, 3), 'cvc5': (0, 1)}


# %%
#| export
def recheck(law: Law) -> list[str]:
    "What is wrong with a law; nothing, if every solver proves every obligation under every seed."
    try: t = prove(law)
    except LawError as e: return str(e).splitlines()
    if not t.holds: return [f'it is {t.verdict}']
    wrong = [f'{solver} with seed {seed}: {o.label or "the claim"}: {a.result} {a.reason}' for o in obligations(law) for solver, seeds in SEEDS.items()
             for seed in seeds for a in ask(o, (solver,), seed).answers if a.result != 'unsat']
    if found := contradiction(law): wrong.append(f'what it rests on is contradictory ({found.solver})')
    return wrong


# %%
#| export
def verdict(patterns: tuple[str, ...]) -> int:
    "Check laws again and print what came out; 0 if all is well."
    try: laws = find(patterns)
    except LawError as e: laws = print(e) or []
    bad = 0
    for l in laws:
        wrong = recheck(l)
        bad += bool(wrong)
        print(f"{'FAIL' if wrong else 'ok':4}  {l.__module__}.{l.__name__}", *wrong, sep='\n      ' if wrong else '', flush=True)
    fs = dict.fromkeys(f for l in laws for f in functions(l))
    for f in fs:
        if (args := disagreement(f)) is not None: bad += 1; print(f'FAIL  {f.__name__}: its equations and its code differ for {args}')
    count = sum(len(prove(l).obligations) for l in laws if not bad)
    print(f'ALL PROOFS CHECK: {len(laws)} laws, {count} obligations, z3 with {len(SEEDS["z3"])} seeds, cvc5 with {len(SEEDS["cvc5"])}, {len(fs)} functions agree with their equations'
          if laws and not bad else f'SOME PROOFS FAIL: {bad} of {len(laws)} laws' if laws else 'SOME PROOFS FAIL: no laws found')
    return int(bool(bad) or not laws)


# %% [markdown]
# ## On the command line

# %%
#| export
@click.command()
@click.argument('patterns', nargs=-1)
def command(patterns: tuple[str, ...]):
    "Check all proofs again, in a fresh process, with both solvers and other seeds."
    code = 'import sys; from bendml.laws.verdict import verdict; sys.exit(verdict(tuple(sys.argv[1:])))'
    sys.exit(subprocess.run([sys.executable, '-W', 'ignore', '-c', code, *patterns]).returncode)


# %%
verdict(('nat.add',))

# %% [markdown]
# ## What this does not show
#
# The same z3 and the same cvc5, on the same machine. For a third opinion, `bendml laws --smt DIR` writes the texts for a
# solver of your own.
