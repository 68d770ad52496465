# %%
#| default_exp kernel.conditions

# %% [markdown]
# # Conditions
# > What must hold for a kernel to be safe, as texts for two solvers.

# %% [markdown]
# The walk has noted accesses and things to prove. This page adds what is about two accesses at a time, races and cells that
# are written twice, and makes a text of each for the solvers.
#
# **A race.** Iterations of `prange` run at the same time. If two of them touch one cell, and at least one writes, the result
# depends on who comes first. So for each two accesses in a parallel loop, take two copies of everything that belongs to an
# iteration, $i$ and $i'$ with $i \ne i'$, and prove that the cells differ.

# %%
#| hide
#| export
import ast, re
from collections import Counter
from functools import reduce
from itertools import combinations, product
from typing import Iterator

from bendml.kernel.calls import KernelWalk
from bendml.kernel.contracts import KernelError, Source
from bendml.kernel.state import Access, Buffer, Check, Loop, integer, less
from bendml.laws.terms import (BOOL, FALSE, INT, TRUE, App, Forall, Term, Var, conj, equal, free, implies,
                               literal, negate, script, substitute, subterms)


# %% [markdown]
# Accesses at `x`, `x + 8` and `x + 16`, of eight cells each, are one access of 24 cells.

# %%
#| export
def _base(t: Term) -> tuple[Term, int]:
    "A term as another one and a number to add."
    match t:
        case App('+', (a, App(int() as n, ()))): return a, n
        case App('-', (a, App(int() as n, ()))): return a, -n
        case App(int() as n, ()): return literal(0), n
    return t, 0

def joined(accesses: list[Access]) -> list[Access]:
    "Accesses to one neighbourhood, under the same facts, as one; and each once."
    groups: dict = {}
    for a in accesses:
        base, n = _base(a.index)
        groups.setdefault((a.buffer, base, a.facts, a.loops), []).append((n, a))
    out = []
    for found in groups.values():
        writes = _runs([f for f in found if f[1].write])
        reads = [r for r in _runs([f for f in found if not f[1].write]) if not any(w[0] <= r[0] and r[0] + r[1].cells <= w[0] + w[1].cells for w in writes)]
        out += [a for _, a in writes + reads]
    return out

def _runs(found: list) -> list:
    "Neighbouring accesses, (number, access), put together."
    runs = []
    for n, a in sorted(found, key=lambda f: f[0]):
        if runs and n <= runs[-1][0] + runs[-1][1].cells:
            first, run = runs[-1]
            runs[-1] = first, run._replace(cells=max(run.cells, n - first + a.cells))
        else: runs.append((n, a))
    return runs


# %%
#| export
def _copy(walk: KernelWalk, loop: Loop, t: Term) -> Term:
    "A term in another iteration of a loop: every symbol that was made inside it is another one."
    return substitute(t, {v: Var(v.name + '~', v.sort) for v in free(t) if walk.born.get(v, -1) >= loop.born})

def _apart(a: Access, b: Access, other: Term) -> Term:
    "That two accesses, the second one at `other`, have no cell in common."
    if a.cells == b.cells == 1: return negate(equal(a.index, other))
    end = lambda at, n: integer('+', at, literal(n))
    return App('or', (less(end(a.index, a.cells), other, '<='), less(end(other, b.cells), a.index, '<=')), BOOL)

def _clash(walk: KernelWalk, loop: Loop, a: Access, b: Access, kind: str, expected: str) -> Check:
    "That two iterations of a loop do not meet in a cell."
    primed = lambda t: _copy(walk, loop, t)
    here, there = loop.var, primed(loop.var)
    facts = dict.fromkeys((*a.facts, *map(primed, b.facts), less(here, there) if a is b else negate(equal(here, there))))
    return Check(kind, a.where, a.node, tuple(facts), _apart(a, b, primed(b.index)), expected, a.index, (a, b))


# %% [markdown]
# A buffer that was made inside the loop belongs to one iteration, and cannot be raced for.

# %%
#| export
def _pairs(found: list[Access]) -> Iterator[tuple[Access, Access]]:
    for n, a in enumerate(found):
        for b in found[n:]:
            if a.buffer is b.buffer and (a.write or b.write): yield a, b

def races(walk: KernelWalk) -> Iterator[Check]:
    "For each parallel loop: that no two iterations meet in a cell that one of them writes."
    loops = dict.fromkeys(l for a in walk.accesses for l in a.loops if l.parallel)
    for loop in loops:
        inside = joined([a for a in walk.accesses if loop in a.loops and a.buffer.born <= loop.born])
        for a, b in _pairs(inside):
            yield _clash(walk, loop, a, b, 'race', f'iterations of {loop.name} that keep to their own cells of {a.buffer.name}')


# %% [markdown]
# ## Written once, and all of it
#
# No cell is written twice if no two rounds of any loop, parallel or not, write one cell, and no two statements of one round
# do. That every cell is written needs, for a cell $c$, a round that writes it. If the index is $i m + j$ with $0 \le j < m$, it
# is the round $i = \lfloor c/m \rfloor$, $j = c \bmod m$: we guess that from the form of the index, and have it proved.

# %%
#| export
def _once(walk: KernelWalk, buffer: Buffer, node: ast.AST) -> Iterator[Check]:
    "That no cell of a buffer is written twice."
    writes = [a for a in walk.accesses if a.buffer is buffer and a.write]
    said = f'no cell of {buffer.name} written twice'
    for n, a in enumerate(writes):
        for b in writes[n:]:
            common = [l for l, m in zip(a.loops, b.loops) if l is m]
            for loop in common:
                if isinstance(loop.node, ast.While): raise KernelError(a.where, 'a while loop around a write', said, 'rounds that cannot be told apart')
                yield _clash(walk, loop, a, b, 'once', said)
            if a is not b: yield Check('once', a.where, a.node, tuple(dict.fromkeys(a.facts + b.facts)), _apart(a, b, b.index), said, a.index, (a, b))

def _rounds(index: Term, cell: Term, vars: set) -> dict:
    "The round in which an index is the cell, guessed from the form of the index."
    if isinstance(index, Var) and index in vars: return {index: cell}
    match index:
        case App('+', (App('*', (a, m)), b)) if isinstance(b, Var) and b in vars:
            return {b: App('mod', (cell, m), INT)} | _rounds(a, App('div', (cell, m), INT), vars)
        case App('+', (App('*', (m, a)), b)) if isinstance(b, Var) and b in vars and isinstance(a, Var):
            return {b: App('mod', (cell, m), INT)} | _rounds(a, App('div', (cell, m), INT), vars)
        case App('*', (m, a)) if vars & set(free(a)): return _rounds(a, App('div', (cell, m), INT), vars)
        case App('*', (a, m)): return _rounds(a, App('div', (cell, m), INT), vars)
        case App('ite', (_, a, b)): return _rounds(a, cell, vars) or _rounds(b, cell, vars)
        case App('+' | '-' as op, (a, b)) if not vars & set(free(b)): return _rounds(a, integer('-' if op == '+' else '+', cell, b), vars)
        case App('+', (a, b)) if not vars & set(free(a)): return _rounds(b, integer('-', cell, a), vars)
    return {}

def _down(loop: Loop, t: Term) -> Term:
    "The last number of a loop that is not above a term."
    if loop.step == literal(1): return t
    return integer('+', loop.start, integer('*', App('div', (integer('-', t, loop.start), loop.step), INT), loop.step))

def _round(a: Access, cell: Term) -> dict:
    "A round that makes an access touch a cell, as far as it can be guessed: the loops' symbols, and their values there."
    vars = {l.var: l for l in a.loops if isinstance(l.var, Var)}
    at = _down(vars[a.index], cell) if a.index in vars else cell   # x[i:i + 8] for i in steps of 8
    found = _rounds(a.index, at, set(vars))
    for loop in reversed(a.loops):        # an outer loop's number, from where an inner one starts
        if loop.var in found: found = {v: _down(vars[v], t) for v, t in _rounds(loop.start, found[loop.var], set(vars) - set(found)).items()} | found
    for loop in a.loops:
        if loop.round is not None and loop.var in found: found[loop.round] = App('div', (integer('-', found[loop.var], loop.start), loop.step), INT)
    return found

def _filled(walk: KernelWalk, buffer: Buffer, node: ast.AST) -> Iterator[Check]:
    "That every cell of a buffer is written."
    writes = [a for a in walk.accesses if a.buffer is buffer and a.write]
    cell, ways, facts = Var(f'{buffer.name}_at', INT), [], dict.fromkeys(walk.facts)
    for n, a in enumerate(writes):
        by = _round(a, cell)
        inner = [v for f in (*a.facts, a.index) for v in free(f) if a.loops and walk.born.get(v, -1) >= a.loops[0].born and v not in by]
        by |= {v: Var(f'{v.name}~{n}', v.sort) for v in inner}   # what else belongs to this round is not that of another one
        shown = [f for f in a.facts if f not in walk.always and f not in walk.facts]
        facts |= dict.fromkeys(substitute(f, by) for f in a.facts if f in walk.always)
        index = substitute(a.index, by)
        ways.append(conj(*(substitute(f, by) for f in shown), less(index, cell, '<='), less(cell, integer('+', index, literal(a.cells)))))
    inside = conj(less(literal(0), cell, '<='), less(cell, buffer.length))
    goal = FALSE if not ways else ways[0] if len(ways) == 1 else App('or', tuple(ways), BOOL)
    yield Check('filled', walk.where(node), node, (*facts, inside), goal, f'every cell of {buffer.name} written', cell)


# %%
#| export
def noted(walk: KernelWalk) -> list[Check]:
    "Everything that has to be proved for a kernel to be safe, from a walk through it."
    checks = walk.checks + list(races(walk))
    for kind, buffer, node in walk.promises: checks += (_filled if kind == 'filled' else _once)(walk, buffer, node)
    return checks

def conditions(source: Source) -> list[Check]:
    "The same for a kernel that was not walked through yet; `KernelError` for what is not understood."
    return noted(KernelWalk(source).run())


# %% [markdown]
# ## Texts
#
# Products of letters are hard for solvers. Two facts help, wherever two products differ in one factor: $x < y$ gives
# $x c + c \le y c$, and $x c \ge 0$ for numbers that are not negative. Both are proved below, once, for all numbers; a text may
# then contain any instance of them.

# %%
#| export
def _products(*terms: Term) -> list[tuple[Term, Term]]:
    found, todo = {}, list(terms)
    while todo:
        t = todo.pop()
        if isinstance(t, App):
            if t.op == '*' and not any(isinstance(a, App) and type(a.op) is int for a in t.args): found[t] = t.args
            todo += t.args
    return list(found.values())

def step_up(x: Term, y: Term, *by: Term) -> Term:
    "If x < y and no factor is negative, x*c + c <= y*c, where c is the product of the factors."
    times = lambda a, b: App('*', (a, b), INT)
    c = reduce(times, by)
    return implies((*(less(literal(0), b, '<=') for b in by), less(x, y)), less(App('+', (times(x, c), c), INT), times(y, c), '<='))

def stays_up(x: Term, c: Term) -> Term:
    "A product of two numbers that are not negative is not negative."
    return implies((less(literal(0), c, '<='), less(literal(0), x, '<=')), less(literal(0), App('*', (x, c), INT), '<='))


# %% [markdown]
# Where do they apply? To each two products that have a factor in common.

# %%
#| export
def _factors(t: Term) -> list[Term]:
    return [f for a in t.args for f in _factors(a)] if isinstance(t, App) and t.op == '*' else [t]

def _inside(p: tuple[Term, Term], q: tuple[Term, Term]) -> list[Term]:
    "The first fact for products that differ in one of several factors, where that stands inside: (x*a)*b and (y*a)*b."
    here, there = (Counter(f for a in t for f in _factors(a)) for t in (p, q))
    x, y, by = ([*c.elements()] for c in (here - there, there - here, here & there))
    if len(x) != 1 or len(y) != 1 or x[0] in p and y[0] in q: return []
    return [step_up(*x, *y, *by), step_up(*y, *x, *by)]

def hints(facts: tuple[Term, ...], goal: Term) -> list[Term]:
    "Instances of the two facts, for the products in some terms."
    products = _products(*facts, goal)
    out = [stays_up(*p) for p in products]
    for n, p in enumerate(products):
        for q in products[n + 1:]:
            for x, c in (p, p[::-1]):
                for y, d in (q, q[::-1]):
                    if c == d and x != y: out += [step_up(x, y, c), step_up(y, x, c)]
            out += _inside(p, q)
    return list(dict.fromkeys(out))[:200]

def hinted(check: Check) -> Check:
    "A condition, with facts about its products."
    return check._replace(facts=(*check.facts, *hints(check.facts, check.goal)))


# %% [markdown]
# Two more forms of a condition are easier for cvc5. In one, every "for all" is replaced by what it says of a few numbers: it then says less,
# so only a proof of it counts. In the other, products and quotients of equal numbers are told to be equal.

# %%
#| export
def grounded(check: Check) -> Check:
    "A condition in which each `for all` is what it says of some numbers in the goal: of the cells' indices, and of names, those first of which least is known."
    cells = [t.args[1] for t in subterms(check.goal) if isinstance(t, App) and t.op == 'select']
    names = sorted((v for v in free(check.goal) if v.sort == INT), key=lambda v: sum(v in free(f) for f in check.facts))
    out = []
    for f in check.facts:
        *given, rule = f.args if isinstance(f, App) and f.op == '=>' else (f,)
        if not isinstance(rule, Forall): out.append(f)
        elif all(v.sort == INT for v in rule.vars):
            numbers = dict.fromkeys([*names, *cells] if len(rule.vars) == 1 else names[:4])
            out += [implies(tuple(given), substitute(rule.body, dict(zip(rule.vars, at)))) for at in product(numbers, repeat=len(rule.vars))]
    return check._replace(facts=tuple(out[:300]))

def alike(check: Check) -> Check:
    "A condition, and with it that products and quotients of equal numbers are equal."
    found, out = dict.fromkeys(t for f in (*check.facts, check.goal) for t in subterms(f) if isinstance(t, App) and t.op in ('*', 'div')), []
    for t, u in combinations(found, 2):
        same = [a == b for a, b in zip(t.args, u.args)]
        if t.op == u.op and sum(same) == 1: out.append(implies((equal(t.args[same.index(False)], u.args[same.index(False)]),), equal(t, u)))
    return check._replace(facts=(*check.facts, *out[:200]))


# %% [markdown]
# A text says of each fact `known 0`, `known 1`, ... With `named` these are names for the solver, which then tells which of them it used.

# %%
#| export
def told(check: Check) -> list[Term]: return [f for f in dict.fromkeys(check.facts) if f != TRUE]

def text(check: Check, named: bool = False) -> str:
    "The condition as a text that a solver answers with `unsat` if it always holds."
    plain = script([(f'known {n}', f) for n, f in enumerate(told(check))], check.goal, f'{check.kind}: {check.where}: {ast.unparse(check.node).splitlines()[0]}')
    if not named: return plain
    return '(set-option :produce-unsat-cores true)\n' + re.sub(r'^; known (\d+)\n\(assert (.*)\)$', r'(assert (! \2 :named known\1))', plain, flags=re.M)


# %% [markdown]
# The two facts, for all numbers:

# %%
from bendml.laws.solvers import discharge
x, y, c = (Var(n, INT) for n in 'xyc')
for fact in (step_up(x, y, c), stays_up(x, c)):
    assert all(a.result == 'unsat' for a in discharge(script([], fact)))

# %% [markdown]
# Of several factors, the first fact speaks as it does of their product, which is not negative, by the second:

# %%
d, e = Var('d', INT), Var('e', INT)
cd, cde = (reduce(lambda a, b: App('*', (a, b), INT), by) for by in ((c, d), (c, d, e)))
known = [('product', stays_up(c, d)), ('product', stays_up(cd, e)), ('step', step_up(x, y, cde))]
assert all(a.result == 'unsat' for a in discharge(script(known, step_up(x, y, c, d, e))))

# %% [markdown]
# What the solvers are asked about one access of a matrix product:

# %%
from bendml.kernel.contracts import Buf, Size, f32, read_kernel

def clear(n: Size, m: Size, x: Buf["n*m", f32]):
    for i in range(n):
        for j in range(m): x[i*m + j] = 0

checks = conditions(read_kernel(clear))
print(text(next(c for c in checks if c.kind == 'bounds')))

# %% [markdown]
# ## What this does not show
#
# That all cells of a buffer are written, where the form of an index does not tell the round. It is refused then, and an index
# written as $im + j$ helps.
