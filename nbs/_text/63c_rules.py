# %%
#| default_exp nn.rules

# %% [markdown]
# # All gradient rules
# > One table: each backward pass proved to be the derivative of its forward pass, and each slip in it found.

# %% [markdown]
# The pages before this one registered a rule for every backward pass that is written by hand. Here they are all checked
# again, and then attacked: in each backward code, one operator at a time is exchanged, plus for minus, times for divided
# by, `<=` for `>`. Every such mutant is a program with the right shapes; every one must be refuted.

# %%
#| hide
#| export
from typing import Iterator, NamedTuple

from bendml.autograd.symbols import RULES, Check, check, mutants
from bendml.nn import attention, conv, layers, rows


# %%
#| export
class Row(NamedTuple):
    "A rule, what was found about it, and about its mutants."
    check: Check
    refuted: int              # mutants that were refuted, by a value or because they do not run
    survived: tuple[str, ...]  # those that were not
    def __repr__(self): return f'{self.check!r}   mutants refuted {self.refuted}/{self.refuted + len(self.survived)}'

def attack(name: str) -> tuple[int, tuple[str, ...]]:
    "How many one-operator mutants of a backward code are refuted, and which are not."
    refuted, survived = 0, []
    for what, fn in mutants(RULES[name].backward):
        try: bad = check(name, fn).verdict == 'refuted'
        except (TypeError, ValueError, ZeroDivisionError, IndexError, AttributeError): bad = True
        if bad: refuted += 1
        else: survived.append(what)
    return refuted, tuple(survived)

def table(names: list[str] | None = None) -> Iterator[Row]:
    "Check every rule, and attack it."
    for name in names or RULES: yield Row(check(name), *attack(name))


# %%
for row in table():
    print(row)
    assert row.check.verdict == 'confirmed' and not row.survived, row.survived

# %% [markdown]
# ## What this does not show
#
# - Mutants with one exchanged operator are the simplest slips, not all of them. For the calls inside of `linear`,
#   `embedding` and RoPE the tests have slips written by hand.
# - What is assumed: the derivatives of exp, log, tanh, erf and the square root, the five rules of calculus in
#   [Gradient rules](52_symbols.ipynb), and the outcome of the code's own comparisons.
