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
#
# A second walk does this. It follows the values, too: a float is a term made of `fadd`, `fmul` and other functions of which
# nothing is known, a buffer is an array, and a write makes a new array. Bounds and races are not its business: they are proved,
# which is why a buffer may be taken for an array here, and `prange` for a loop that goes one by one.

# %%
#| hide
#| export
import ast, itertools, time, traceback
from fractions import Fraction
from typing import Iterator

import numpy as np

from bendml.kernel.contracts import FLOATS, Buf, KernelError, Size, Source, f64, is_prange
from bendml.kernel.loops import KernelWalk
from bendml.kernel.search import bare, fillings
from bendml.kernel.numbers import FUNCTIONS, OPERATIONS, Number, fmax, fmin, fneg, fnum, freal
from bendml.kernel.walk import _ORDER, FLOAT, VECTOR, Buffer, Check, between, choose, less
from bendml.laws.read import function_of
from bendml.laws.reflect import called, definitions, unfolds
from bendml.laws.terms import BOOL, INT, REAL, TRUE, App, Forall, Sort, Symbol, Term, Var, conj, equal, forall, free, implies, literal, negate, script, substitute, subterms


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
    def __len__(self): return len(self.values)
    def __getitem__(self, i): return self.values[i]
    def __setitem__(self, i, v): self.values[i] = v
    @property
    def cells(self): return self
    def get(self, i, default): return self.values[i] if 0 <= i < len(self.values) else default


# %% [markdown]
# ## The walk

# %%
#| export
def _apply(f, *args: Term) -> App: return function_of(f)(*args)

class Floats(KernelWalk):
    "A walk that follows what floats and buffers hold."
    def __init__(self, source: Source):
        super().__init__(source)
        self.content: dict[Buffer, Term] = {}
        self.before: dict[Buffer, Term] = {}
        self.outer: list = []
        self.types: set = set()
        self.contexts: dict = {}

    def one_type(self, dtype: type, node: ast.AST) -> None:
        "All floats have one type: numba and Python do not agree on mixed ones."
        self.types.add(dtype)
        if len(self.types) > 1: raise self.refuse(node, 'two types of float', 'one type of float in a kernel that says what it computes', ast.unparse(node).splitlines()[0], 'write f32(0.5) for 0.5')

    # floats
    def float_parameter(self, name): return self.fresh(name, FLOAT)
    def number(self, value):
        self.one_type(type(value) if type(value) in FLOATS else f64, self.source.node)
        return self.constant(value)
    def constant(self, value):
        if not np.isfinite(value) or (value == 0 and np.signbit(value)): raise self.refuse(self.source.node, 'not understood', 'a finite number', repr(value))
        return _apply(fnum, literal(int(value))) if value == int(value) else App(Symbol(function_of(freal)), (literal(Fraction(float(value))),), FLOAT)
    def negated(self, t): return _apply(fneg, t)
    def float_op(self, node, a, b):
        op = {ast.Add: '+', ast.Sub: '-', ast.Mult: '*', ast.Div: '/'}.get(type(node.op))
        if op is None or a.sort != FLOAT or b.sort != FLOAT: raise self.refuse(node, 'not understood where values matter', '+ - * / on floats', hint='f32(n) makes a float of an int')
        return _apply(OPERATIONS[op], a, b)
    def floating(self, node, a, b):
        if VECTOR in (a.sort, b.sort): raise self.refuse(node, 'a vector where values matter', 'numbers one by one')
        return super().floating(node, a, b)
    def float_compare(self, op, a, b):
        if a.sort != FLOAT or b.sort != FLOAT: raise self.refuse(self.source.node, 'an int compared with a float', 'two floats', hint='f32(n) makes a float of an int')
        name = _ORDER[op]
        if name in ('>', '>='): a, b, name = b, a, {'>': '<', '>=': '<='}[name]
        found = _apply(OPERATIONS[{'=': '==', 'distinct': '=='}.get(name, name)], a, b)
        return negate(found) if name == 'distinct' else found
    def float_extreme(self, least, values):
        if any(v.sort != FLOAT for v in values): raise self.refuse(self.source.node, 'an int compared with a float', 'floats')
        out = values[0]
        for v in values[1:]: out = _apply(fmin if least else fmax, out, v)
        return out
    def to_float(self, node):
        meaning, inner = self.meaning(node.func), node.args[0] if len(node.args) == 1 else None
        self.one_type(f64 if meaning is float else meaning, node)
        if isinstance(inner, ast.Constant) and type(inner.value) is float: return self.constant(meaning(inner.value))
        return super().to_float(node)
    def as_float(self, t): return t if t.sort == FLOAT else _apply(fnum, t)
    def float_call(self, meaning, values):
        if meaning not in FUNCTIONS or len(values) != 1: raise self.refuse(self.source.node, 'not understood where values matter', ', '.join(f.__name__ for f in FUNCTIONS), meaning.__name__)
        return _apply(FUNCTIONS[meaning], *values)
    def word(self, node, gives, touches): raise self.refuse(node, 'a word where values matter', 'numbers one by one')

    # memory
    def given(self, p, scalars):
        buffer = super().given(p, scalars)
        if buffer.dtype in FLOATS: self.one_type(buffer.dtype, p.length or self.source.node)
        self.content[buffer] = self.before[buffer] = self.array(buffer)
        return buffer
    def array(self, buffer: Buffer) -> Var: return self.fresh(buffer.name, Sort('Array', (INT, FLOAT if buffer.dtype in FLOATS else INT)))
    def made(self, s):
        buffer = super().made(s)
        if buffer is not None:
            if buffer.dtype in FLOATS: self.one_type(buffer.dtype, s)
            self.content[buffer] = self.array(buffer)
            if self.meaning(s.value.func) is np.zeros:
                i, zero = Var('i!', INT), _apply(fnum, literal(0)) if buffer.dtype in FLOATS else literal(0)
                cell = App('select', (self.content[buffer], i), zero.sort)
                self.facts.append(forall((i,), equal(cell, zero), ((cell,),)))
        return buffer
    def access(self, node, buffer, index, write, cells=1): pass
    def load(self, buffer, index):
        value = App('select', (self.content[buffer], index), FLOAT if buffer.dtype in FLOATS else INT)
        if value.sort == INT and not any(v.name.endswith('!') for v in free(value)): self.facts += self.cell_facts(buffer, value)
        return value
    def store(self, buffer, index, value):
        if buffer.dtype in FLOATS: value = self.as_float(value)
        self.content[buffer] = App('store', (self.content[buffer], index, value), self.content[buffer].sort)


# %% [markdown]
# At the top of a loop, what a buffer holds that the body writes into is unknown, but for what the invariants say. A claim whose
# range ends at the loop's number, `all(... for x in range(i))`, is about the rounds that are done; the loops inside carry it by
# themselves.

# %%
#| export
class Values(Floats):
    def written(self, body: list) -> set[str]:
        "The buffers that some statements write into, by name."
        out = set()
        for n in (n for s in body for n in ast.walk(s)):
            if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store) and isinstance(n.value, ast.Name): out.add(n.value.id)
            if isinstance(n, ast.Call) and hasattr(k := self.meaning(n.func), '__kernel__'):
                out |= {a.id for p, a in zip(k.source.params, n.args) if p.name in k.written and isinstance(a, ast.Name)}
        return out
    def memory(self): return dict(self.content)
    def forget(self, body):
        for name in sorted(self.written(body)):
            if isinstance(b := self.env.get(name), Buffer) and b in self.content: self.content[b] = self.array(b)
    def same(self, was): return [equal(self.content[b], a) for b, a in was.items() if self.content[b] != a]
    def anything(self, name, was): return self.fresh(name, was.sort) if was.sort in (INT, BOOL, FLOAT) else was

    def around(self, body):
        return [c for c in self.outer if self.written(body)]
    def inside(self, says):
        number = self.loops[-1].name
        self.outer = self.outer + [a for a in says if a not in self.outer and isinstance(a, ast.Call) and a.args and isinstance(a.args[0], ast.GeneratorExp)
                                   and any(isinstance(n, ast.Name) and n.id == number for g in a.args[0].generators for n in ast.walk(g.iter))]
    def go(self, *args):
        before = self.outer
        super().go(*args)
        self.outer = before

    def saved(self): return dict(self.env), dict(self.content)
    def restore(self, saved): self.env, self.content = map(dict, saved)

    def kernel(self, node, kernel):
        "A call of another kernel: the claims of the loops around are still about the caller's names."
        known = {a: (self.source, self.env) for a in self.outer if a not in self.contexts}
        self.contexts |= known
        result = super().kernel(node, kernel)
        for a in known: del self.contexts[a]
        return result
    def claim(self, a):
        here = self.source, self.env
        self.source, self.env = self.contexts.get(a, here)
        found = super().claim(a)
        self.source, self.env = here
        return found


# %% [markdown]
# ## Claims
#
# `all(C[x] == old(C)[x] for x in range(i, n))` is a claim about all $x$ with $i \le x < n$. As a fact it has a trigger, a term
# whose sight tells a solver to use it: a call of a specification, or a cell, with $x$ in it. As a goal it is proved for one $x$ of
# which nothing else is known.

# %%
#| export
class Claims(Values):
    "Contracts about values."
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
        self.env = before
        del self.facts[n:]
        return forall(tuple(vars), implies(tuple(conds), body), _triggers(body, vars))

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
        if kind not in ('invariant', 'assert', 'ensures') or KernelWalk.follows(self, node): return   # the other walk has seen to it
        for premises, part in _parts(goal, self): super().check(kind, node, part, expected, shown, accesses, (*given, *premises))

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
    "What has to be proved for a kernel to compute what it says; nothing if it says nothing."
    return [known(c) for c in Claims(source).run().checks] if KernelWalk(source).run().functional else []


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
    swap = lambda m: range if is_prange(m) else bare(m.source, swap, keep=True) if hasattr(m, '__kernel__') else m
    try: bare(source, swap, keep=True)(*args)
    except AssertionError as e:
        lines = [f.lineno for f in traceback.extract_tb(e.__traceback__) if f.filename == source.path]
        return f'{e or "assert: the condition does not hold"} (line {lines[-1]})' if lines else str(e)
    return ''

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
