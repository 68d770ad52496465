# %% [markdown]
# # What you have to trust
# > What is proved, what is tested, what is taken on trust, and how to check each of them.

# %% [markdown]
# "Proved" is a large word. This page says what it means here, what it rests on, and what we did to notice if one of
# the supports were rotten.
#
# ## Proved, tested, trusted
#
# | | what | how it is known |
# |---|---|---|
# | **proved** | a law, for all values of its sorts | two solvers, each with every case of the proof |
# | **proved** | every match covers all cases, every recursion ends, no divisor is zero | checked when a function is read; numbers that shrink and divisors by the solvers |
# | **tested** | the equations of a function are what it does | [guards](91_guards.ipynb): both are run on random values |
# | **tested** | a law is not true of just anything | [guards](91_guards.ipynb): functions are broken, and the law has to notice |
# | **tested** | a law's assumptions can be met | every proof looks for values that meet them |
# | **trusted** | the reader: an expression of Python means this term | [reading](13_read.ipynb), [reflection](14_reflect.ipynb) |
# | **trusted** | the cases of an induction are all there is to show | [induction](15_induct.ipynb) |
# | **trusted** | the printer, and the processes that ask the solvers | [terms](10_terms.ipynb), [solvers](11_solvers.ipynb) |
# | **trusted** | z3 *or* cvc5: both would have to be wrong about the same text | their authors, and everyone who uses them |
# | **trusted** | Python, and that nobody tampers with it from inside | |
# | **assumed** | axioms about abstract functions, each by name | written beside every law that rests on them |
#
# ## How much that is
#
# The lines of code in which a mistake could make a false law look true, counted when this page is built. Comments, blank
# lines and docstrings are not counted. Nor is what only chooses *where* a solver looks, or finds out which sort an
# expression has: a mistake in the first can lose a proof and never make one, and a wrong sort is refused by both solvers.

# %%
#| echo: false
import ast, inspect, io, tokenize
from bendml.laws import datatypes, induct, read, reflect, solvers, terms

HINTS = {'_can_trigger', 'pick_trigger', '_check_hints', 'read_terms', '_types_at', '_text', 'Cited', 'at_', 'here', 'seen',   # where to look
         'matches', 'args', 'pair', 'Unclear', '_sketch',
         'values', 'tuples', 'random_value', 'to_list', 'List', 'abstract_sort'}                                                  # which sort an expression has

def code_lines(module):
    "The lines of a module with code in them, and its longest function."
    source = inspect.getsource(module)
    tree = ast.parse(source)
    lines = {n for t in tokenize.generate_tokens(io.StringIO(source).readline) if t.type not in (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
             for n in range(t.start[0], t.end[0] + 1)}
    for n in ast.walk(tree):
        doc = isinstance(n, (ast.FunctionDef, ast.ClassDef, ast.Module)) and n.body and isinstance(n.body[0], ast.Expr) and isinstance(n.body[0].value, ast.Constant)
        if doc: lines -= set(range(n.body[0].lineno, n.body[0].end_lineno + 1))
        if isinstance(n, (ast.FunctionDef, ast.ClassDef)) and n.name in HINTS: lines -= set(range(n.lineno, n.end_lineno + 1))
    lines -= {n for s in tree.body if isinstance(s, (ast.Import, ast.ImportFrom)) or getattr(getattr(s, 'targets', [None])[0], 'id', '') == '__all__' for n in range(s.lineno, s.end_lineno + 1)}
    return len(lines), max(n.end_lineno - n.lineno + 1 for n in ast.walk(tree) if isinstance(n, ast.FunctionDef))

counted = {m.__name__: code_lines(m) for m in (terms, solvers, read, reflect, induct)}
for name, (n, longest) in counted.items(): print(f'{name:20} {n:4} lines, the longest function has {longest}')
print(f'{"together":20} {sum(n for n, _ in counted.values()):4} lines; and the values that functions work on: {code_lines(datatypes)[0]}')

# %% [markdown]
# ## What kinds of mistake there could be, and what would notice
#
# - **The reader misunderstands Python.** Suppose it took `//` for a division that rounds towards zero. Then
#   `disagreement` finds values where function and equation differ; and a law that follows from the wrong equation is
#   refuted when it is run, which happens before any solver is asked.
# - **A function does not end, or misses a case.** Its equations could then contradict each other, and anything would follow.
#   Both are refused when the function is read, and `contradiction` asks a solver whether it can derive `false`.
# - **The name means something else by now.** A function was defined again, a global number changed. The law becomes
#   `stale`; and so does every law that cites it.
# - **An assumption that cannot be met.** The law is `vacuous`, and cannot be cited.
# - **A solver dies, hangs, or answers an earlier question.** Each question carries a number, and what is not its answer is none.
# - **Somebody makes a `Theorem` by hand.** Python cannot prevent it altogether. `bendml verdict` does not look at theorems:
#   it starts a new process and does everything again from the source.
#
# ## A checklist for an audit
#
# 1. `bendml laws --statements` prints what is claimed and nothing else. Are these the claims you want?
# 2. Read the functions that they speak of. Are these the functions that run? (They are the very objects; `changed` checks it.)
# 3. Read [reading](13_read.ipynb) and [reflection](14_reflect.ipynb) with one question: is there a Python function that is
#    accepted, and whose equations say something else than it does?
# 4. Read [induction](15_induct.ipynb): is every case there, and is the hypothesis only ever about something smaller?
# 5. `bendml laws --smt out` writes every obligation as a file. Run a solver of your own over them; each should say `unsat`.
# 6. `bendml verdict`, on a machine of your own.
# 7. Break something. Change a function, a law, or a line of the kernel, and see whether anybody notices.
#
# ## What this does not show
#
# Proofs about pure functions say nothing about the fast code beside them, until a page ties the two together. Each page
# ends with what it does not show; [claims](92_claims.ipynb) lists, for each law, what it does not cover.
