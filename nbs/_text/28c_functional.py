# %%
#| default_exp kernel.functional

# %% [markdown]
# # What a kernel computes
# > From `invariant` and `ensures`: the same additions in the same order as a specification, for every size.

# %% [markdown]
# A kernel that stays inside its buffers can still compute nonsense. To say what it should compute, write the sum as a recursive
# function, and say in `ensures` that each cell holds it. A loop needs one sentence more, its `invariant`: what holds after some
# rounds. From the kernel's own statements it must follow that the sentence holds at first, that each round keeps it, and that at
# the end it gives what `ensures` says.
#
# ```python
# acc = f32(0)
# for p in range(k):
#     invariant(acc == dot(A, B, k, m, i, j, p))   # the sum of the first p products
#     acc += A[i*k + p]*B[p*m + j]
# ```

# %%
#| hide
#| export
import ast, itertools, time, traceback
from typing import Iterator

from bendml.kernel.calls import KernelWalk
from bendml.kernel.contracts import FLOATS, Buf, KernelError, Size, Source, is_prange
from bendml.kernel.search import bare, fillings, within
from bendml.kernel.state import FLOAT, Buffer, Check, between
from bendml.kernel.values import Values
from bendml.laws.reflect import called, definitions, unfolds
from bendml.laws.terms import (INT, REAL, App, Forall, Sort, Symbol, Term, Var, equal, forall, free,
                               implies, literal, substitute, subterms)


# %% [markdown]
# ## Buffers as they were
#
# `old(x)` is a buffer as it was when the kernel began. In the plain function, run with its contracts, it is a copy.

# %%
#| export
def old(buffer: 'Cells') -> 'Cells':
    "In a contract: a buffer as it was when the kernel began."
    return buffer.before

class Cells:
    "A buffer for a run with contracts: a list that a specification can read, and that remembers how it was."
    default = 0
    def __init__(self, values: list, before: 'Cells | None' = None):
        self.values = list(values)
        self.before = Cells(values, self) if before is None else before
    def again(self) -> 'Cells':
        "The same cells, remembered as they are now."
        other = Cells(self.values)
        other.values = self.values
        return other
    def __len__(self): return len(self.values)
    def __getitem__(self, i): return self.values[i]
    def __setitem__(self, i, v): self.values[i] = v
    @property
    def cells(self): return self
    def get(self, i, default): return self.values[i] if 0 <= i < len(self.values) else default


# %% [markdown]
# ## Claims
#
# `all(C[x] == old(C)[x] for x in range(i, n))` is a claim about all $x$ with $i \le x < n$. As a fact it has a trigger, a term
# whose sight tells a solver to use it: a call of a specification, or a cell, with $x$ in it. As a goal it is proved for one $x$ of
# which nothing else is known.

# %%
#| export
class Reading(Values):
    "Contracts about values, as terms."
    def follows(self, a): return True

    def Subscript(self, node, raw=False):
        if not (isinstance(node.value, ast.Call) and self.ghost): return super().Subscript(node, raw or self.ghost)
        buffer = self.past(node.value)
        return App('select', (self.before[buffer], self.int(node.slice)), self.before[buffer].sort.args[1])

    def past(self, call: ast.Call) -> Buffer:
        if self.meaning(call.func) is not old or len(call.args) != 1: raise self.refuse(call, 'not understood', 'old(x)')
        buffer = self.buffer(call.args[0])
        if buffer not in self.before: raise self.refuse(call, 'a buffer that was not there before', 'a parameter')
        return buffer

    def test(self, node):
        "A condition; `all(...)` is one too."
        t = self.value(node)
        return t if isinstance(t, Forall) else super().test(node)

    def every(self, node):
        if len(node.args) != 1 or not isinstance(node.args[0], ast.GeneratorExp): raise self.refuse(node, 'not understood', 'all(... for x in range(n))')
        before, n, vars, conds = self.env, len(self.facts), [], []
        self.env = dict(before)
        for g in node.args[0].generators:
            if not isinstance(g.target, ast.Name): raise self.refuse(node, 'not understood', 'one name for each range')
            parallel, start, stop, step = self.range(g.iter)
            if parallel or step != literal(1): raise self.refuse(node, 'not understood', 'range(n) or range(a, b)')
            vars.append(Var(f'{g.target.id}{len(vars)}!', INT))
            self.env[g.target.id] = vars[-1]
            conds += [between(start, vars[-1], stop), *map(self.test, g.ifs)]
        body = self.test(node.args[0].elt)
        if any(isinstance(t, Forall) for c in (*conds, body) for t in subterms(c)): raise self.refuse(node, 'all inside all', 'one all(...), with two ranges')
        self.env = before
        del self.facts[n:]
        return forall(tuple(vars), implies(tuple(conds), body), _triggers(body, vars))


# %%
#| export
class Claims(Reading):
    "Calls of specifications, promises, and what has to be proved."
    def spec(self, node, function):
        args = []
        for a, p in zip(node.args, function.params):
            if isinstance(a, ast.Call) and self.meaning(a.func) is old: args.append(self.before[self.past(a)])
            elif isinstance(v := self.value(a), Buffer): args.append(self.content[v])
            else: args.append(v)
        if len(args) != len(function.params) or len(args) != len(node.args): raise self.refuse(node, f'call of {function.__name__}', f'{len(function.params)} arguments', str(len(node.args)))
        for a, p, t in zip(node.args, function.params, args):
            if _plain(p.sort) != t.sort: raise self.refuse(a, f'{p.name} of {function.__name__}', str(p.sort), str(t.sort))
        return App(Symbol(function), tuple(args), _plain(function.sort))

    def promise(self, a):
        meaning = self.meaning(a.func) if isinstance(a, ast.Call) else None
        if getattr(meaning, '__name__', '') not in ('filled', 'once'): self.check('ensures', a, self.claim(a), ast.unparse(a))

    def check(self, kind, node, goal, expected, shown=None, accesses=(), given=()):
        divides = kind == 'divisor' and self.ghost   # in a claim; for the rest, the other walk has seen to it
        if not divides and (kind not in ('invariant', 'assert', 'ensures') or KernelWalk.follows(self, node)): return
        for premises, part in _parts(goal, self): super().check(kind, node, part, expected, shown, accesses, (*given, *premises))


# %%
#| export
def _plain(s: Sort) -> Sort:
    "The sort of a specification about exact numbers, as it is for floats."
    return FLOAT if s == REAL else Sort('Array', (INT, _plain(s.args[1]))) if s.head == 'Array' else s

def _parts(goal: Term, walk: Claims) -> list[tuple[tuple, Term]]:
    "A goal as goals without `and`, `for all` and `if`: (what is given, goal)."
    if isinstance(goal, Forall): return _parts(substitute(goal.body, {v: walk.fresh(v.name.rstrip('!'), v.sort) for v in goal.vars}), walk)
    if isinstance(goal, App) and goal.op == '=>': return [((*goal.args[:-1], *g), part) for g, part in _parts(goal.args[-1], walk)]
    if isinstance(goal, App) and goal.op == 'and': return [found for a in goal.args for found in _parts(a, walk)]
    return [((), goal)]

def _triggers(body: Term, vars: list[Var]) -> tuple:
    "Terms that have all of the variables, as they are, among their arguments."
    found = [t for t in subterms(body) if isinstance(t, App) and (isinstance(t.op, Symbol) or t.op == 'select') and set(vars) <= set(t.args)]
    best = [t for t in found if isinstance(t.op, Symbol)] or found
    return ((best[0],),) if best else ()


# %% [markdown]
# ## Texts
#
# A specification that recurses on a number is unfolded where it stands, twice.

# %%
#| export
def _unfolded(terms: list[Term], rounds: int = 2) -> list[Term]:
    out, new = {}, list(terms)
    for _ in range(rounds):
        calls = [s for t in new for s in subterms(t) if isinstance(s, App) and isinstance(s.op, Symbol) and unfolds(s.op.owner) and s not in out
                 and not any(v.name.endswith('!') for v in free(s))]
        new = [out.setdefault(s, equal(s, called(s))) for s in dict.fromkeys(calls)]
    return list(out.values())

def known(check: Check) -> Check:
    "A condition, and with it what the specifications in it say."
    facts = [*check.facts, *_unfolded([*check.facts, check.goal])]
    facts += [t for _, t in definitions([*facts, check.goal])]
    return check._replace(facts=tuple(facts))

def functional(source: Source) -> list[Check]:
    "What has to be proved for a kernel to compute what it says; nothing if it says nothing of values."
    return [known(c) for c in Claims(source).run().checks]


# %% [markdown]
# ## Values that refute
#
# A solver cannot show numbers for functions of which nothing is known. But the kernel can be run, with its contracts, on small
# sizes and small numbers. If one does not hold there, that is the refutation.

# %%
#| export
def _sizes(source: Source, most: int) -> Iterator[dict]:
    "Sizes from 0 on, the smallest first."
    names = [p.name for p in source.params if p.type in (int, Size)] + [f'len_{p.name}' for p in source.params if isinstance(p.type, Buf) and p.length is None]
    choices = sorted(itertools.product(range(most + 1), repeat=len(names)), key=lambda c: (sum(c), c)) if names else [()]
    return (dict(zip(names, c)) for c in choices)

def _run(source: Source, args: list) -> str:
    "Run a kernel with its contracts; the one that does not hold, or nothing."
    def called(k):
        inner = bare(k.source, swap, keep=True)
        return lambda *args: inner(*(a.again() if isinstance(a, Cells) else a for a in args))
    swap = lambda m: range if is_prange(m) else called(m) if hasattr(m, '__kernel__') else m
    run = bare(source, swap, keep=True)
    try: within(100_000, run, *args)
    except AssertionError as e:
        lines = [f.lineno for f in traceback.extract_tb(e.__traceback__) if f.filename == source.path]
        return f'{e or "assert: the condition does not hold"} (line {lines[-1]})' if lines else str(e)
    return ''


# %%
#| export
def refute(source: Source, seconds: float = 3.0) -> tuple[str, dict] | None:
    "A run on small sizes in which a contract does not hold: (which, the arguments)."
    buffers, end = [p for p in source.params if isinstance(p.type, Buf)], time.monotonic() + seconds
    for sizes in _sizes(source, 3):
        if time.monotonic() > end: return None
        try: cells = fillings(source, sizes)[2]
        except Exception: continue
        given = {p.name: cells[p.name] if p.name in cells else sizes.get(p.name, p.type(1) if p.type not in (int, Size) else 0) for p in source.params}
        for n, p in enumerate(buffers):
            if p.type.dtype in FLOATS: given[p.name] = [p.type.dtype((5*i + 3*n) % 7 - 2) for i in range(len(given[p.name]))]
        try: broken = _run(source, [Cells(v) if isinstance(v, list) else v for v in given.values()])
        except Exception: continue
        if broken and not broken.startswith('requires'): return broken, given
    return None

def broken_promise(source: Source, check: Check) -> KernelError:
    "The error for a claim about values that is not proved."
    found = refute(source)
    more = f'- line     : {ast.unparse(check.node)}'
    if found is None: return KernelError(check.where, 'a claim about values that is not proved', check.expected, 'no proof; and no run on small sizes in which it fails', more, 'is the invariant strong enough, and does it speak of all that the body changes?')
    values = ', '.join(f'{n}={[float(x) for x in v] if isinstance(v, list) else v}' for n, v in found[1].items())
    return KernelError(check.where, 'a claim about values that does not hold', check.expected, found[0], f'{more}\n- values   : {values}')


# %%
from bendml.kernel.contracts import Buf, Size, ensures, f32, invariant, read_kernel
from bendml.kernel.numbers import Number, fadd, fnum
from bendml.laws.datatypes import Array, select
from bendml.laws.reflect import pure

@pure(measure='p')
def total(x: Array[int, Number], p: int) -> Number:
    if p <= 0: return fnum(0)
    return fadd(total(x, p - 1), select(x, p - 1))

def add_up(n: Size, x: Buf["n", f32], out: Buf["1", f32]):
    acc = f32(0)
    for i in range(n):
        invariant(acc == total(x, i))
        acc += x[i]
    out[0] = acc
    ensures(out[0] == total(x, n))

[c.expected for c in functional(read_kernel(add_up))]


# %% [markdown]
# Added from the other end, it is another sum:

# %%
def add_down(n: Size, x: Buf["n", f32], out: Buf["1", f32]):
    acc = f32(0)
    for i in range(n):
        invariant(acc == total(x, i))
        acc = x[i] + acc
    out[0] = acc
    ensures(out[0] == total(x, n))

from bendml.kernel.conditions import text
from bendml.laws.solvers import discharge
[(c.expected, [a.result for a in discharge(text(c))]) for c in functional(read_kernel(add_down))]

# %% [markdown]
# ## What this does not show
#
# - That the specification is what you want. It is short, and can be read.
# - Vectors. A kernel that uses words is proved safe, and its values are tested.
