# %%
#| default_exp laws.guards

# %% [markdown]
# # Guards
# > How we would notice that our proofs are worth nothing.

# %% [markdown]
# A proof can be correct and useless. The equations might not be what the function does. The law might hold for any
# function at all, or for none. This page has four ways to notice. All of them run the code, and none of them is part of
# what a proof rests on.
#
# 1. **Equations against code.** Evaluate the equations of each function on random values, and run the function. They must agree.
# 2. **Consistency.** From the definitions and the cited laws alone, no solver may be able to derive a contradiction.
# 3. **Mutants.** Break a function in a small way. At least one law about it should become false, with a counterexample.
# 4. **Witness.** What a law assumes must hold for something; that one is already part of [prove](16_prove.ipynb).

# %%
#| hide
#| export
import ast, copy, random, types
from fractions import Fraction
from typing import Iterator, NamedTuple

from bendml.laws.datatypes import LawError, random_value, select, store
from bendml.laws.induct import Cited, Law, cited, functions
from bendml.laws.prove import Found, search
from bendml.laws.read import Function, read_source
from bendml.laws.reflect import definitions, read_function, symbols
from bendml.laws.solvers import Answer, discharge
from bendml.laws.terms import FALSE, INT, App, Symbol, Term, Var, constructors, fields, script

# %% [markdown]
# ## Equations against code
#
# A second reading of the equations, by a few lines that know nothing of solvers: find the case whose left side
# fits the arguments and whose conditions hold, and work out its right side.

# %%
#| export
_OPS = {'+': lambda a, b: a + b, '-': lambda a, b=None: -a if b is None else a - b, '*': lambda a, b: a*b, '/': lambda a, b: a/b,
        '<': lambda a, b: a < b, '<=': lambda a, b: a <= b, '>': lambda a, b: a > b, '>=': lambda a, b: a >= b, '=': lambda a, b: a == b,
        'not': lambda a: not a, 'select': select, 'store': store, 'to_real': lambda a: Fraction(a),
        'div': lambda a, b: a//b if b > 0 else -(a//-b), 'mod': lambda a, b: a % abs(b)}   # as SMT-LIB defines them


# %%
#| export
def value(t: Term, at: dict):
    "What a term is, for values of its variables, by the equations."
    if isinstance(t, Var): return at[t]
    if isinstance(t.op, Symbol): return _apply(t.op, [value(a, at) for a in t.args])
    if not isinstance(t.op, str): return t.op
    if t.op == 'ite': return value(t.args[1 if value(t.args[0], at) else 2], at)
    if t.op == 'and': return all(value(a, at) for a in t.args)
    if t.op == 'or': return any(value(a, at) for a in t.args)
    return _OPS[t.op](*(value(a, at) for a in t.args))


# %%
#| export
def _apply(s: Symbol, args: list):
    "A function, a constructor, a test or a field, applied to values."
    if s.part == 'is': return type(args[0]) is s.owner
    if s.part: return getattr(args[0], s.part)
    if isinstance(s.owner, type): return s.owner(*args)
    if not s.owner.cases: return s.owner.fn(*args)
    for case in s.owner.cases:
        at = {}
        if all(_fits(p, a, at) for p, a in zip(case.args, args)) and all(value(c, at) for c in case.conds): return value(case.value, at)
    raise LookupError(f'no equation of {s.owner.__name__} for {args}')


# %%
#| export
def _fits(pattern: Term, v: object, at: dict) -> bool:
    "Whether a value has the form of a left side; its variables' values go into `at`."
    if isinstance(pattern, Var): at[pattern] = v; return True
    return type(v) is pattern.op.owner and all(_fits(p, getattr(v, n), at) for p, n in zip(pattern.args, v.__match_args__))


# %%
#| export
def disagreement(f: Function, tries: int = 60) -> tuple | None:
    "Random values for which the equations of a function and its code differ; None if there are none."
    rng = random.Random(0)
    for _ in range(tries if f.cases else 0):
        args = tuple(random_value(p.sort, rng, 4) for p in f.params)
        if all(not isinstance(a, int) or abs(a) < 40 for a in args) and f.fn(*args) != _apply(Symbol(f), list(args)): return args
    return None


# %%
from bendml import lists, nat
[(f.__name__, disagreement(f)) for f in functions(lists.product_append)]


# %% [markdown]
# ## Consistency
#
# A solver that can derive `false` from the definitions and the cited laws could prove anything. It is not expected to
# find out that it cannot; `unknown` is the usual answer, and the good one.

# %%
#| export
def contradiction(law: Law, limit: int = 30_000) -> Answer | None:
    "z3's answer, if it derives a contradiction from the definitions and the laws that a law cites; else None."
    base = [law.claim, *law.hyps]
    known = [(c.law.__name__, t) for c in (c if isinstance(c, Cited) else Cited(c) for c in law.cite) if not c.terms
             for t in cited(law, c, {p.name: p for p in law.params}, base + [t for _, t in definitions(base)])]
    known += definitions(base + [t for _, t in known])
    answer, = discharge(script(known, FALSE), ('z3',), limit={'z3': limit})
    return answer if answer.result == 'unsat' else None


# %%
contradiction(nat.add_comm)

# %% [markdown]
# ## Mutants
#
# A mutant is a function with one small change: `<` for `<=`, the other branch of an `if`, one constructor less, two
# arguments swapped. Each is read by the same reader as any pure function, so one that does not end or does not fit
# is refused and does not count.

# %%
#| export
_SWAPS = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
          ast.And: ast.Or, ast.Or: ast.And, ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add}


# %%
#| export
def _changes(node: ast.AST, names: list[str]) -> Iterator[ast.AST]:
    "What could stand in the place of one node of a function's body."
    new = lambda **parts: ast.copy_location(type(node)(**{f: parts.get(f, getattr(node, f)) for f in node._fields}), node)
    match node:
        case ast.Compare(_, [op]) if type(op) in _SWAPS: yield new(ops=[_SWAPS[type(op)]()])
        case ast.BoolOp(op) | ast.BinOp(op=op) if type(op) in _SWAPS: yield new(op=_SWAPS[type(op)]())
        case ast.UnaryOp(ast.Not(), inner): yield inner
        case ast.IfExp(test, a, b): yield new(body=b, orelse=a)
        case ast.If(test, a, b) if b: yield new(body=b, orelse=a)
        case ast.Constant(bool(v)): yield new(value=not v)
        case ast.Constant(int(v)): yield from (new(value=v + 1), new(value=v - 1))
        case ast.Call(f, args):
            yield from args
            yield from (new(args=[*args[:i], args[i + 1], args[i], *args[i + 2:]]) for i in range(len(args) - 1))
        case ast.Return(ast.Call() as call): yield new(value=ast.copy_location(ast.UnaryOp(ast.Not(), call), call))
        case ast.Return(ast.Name(n)): yield from (new(value=ast.copy_location(ast.Name(m, ast.Load()), node)) for m in names if m != n)


# %%
#| export
def _bodies(node: ast.FunctionDef) -> Iterator[tuple[str, ast.FunctionDef]]:
    "A function with one node changed, for each change; and what was changed."
    names = [a.arg for a in node.args.args]
    inside = [n for s in node.body for n in ast.walk(s)]
    for i, old in enumerate(inside):
        if isinstance(old, ast.pattern): continue
        for new in _changes(old, names):
            whole = copy.deepcopy(node, {id(old): new})
            shown = lambda n: ' '.join(ast.unparse(n).split())
            yield f'line {old.lineno}: {shown(old):.50} → {shown(new):.50}', ast.fix_missing_locations(whole)


# %% [markdown]
# The law is then run in a copy of its world, where every function calls the broken one.

# %%
#| export
def _compiled(f: Function, node: ast.FunctionDef, file: str) -> types.CodeType:
    "A changed function's code."
    node = copy.copy(node)
    node.decorator_list = []
    free = f.code.co_freevars
    outer = ast.parse(f"def _({', '.join(free)}):\n pass") if free else ast.Module([], [])
    (outer.body[0].body if free else outer.body).append(node)
    code = compile(ast.fix_missing_locations(outer), file, 'exec', flags=f.code.co_flags & 0x1ff0000, dont_inherit=True)
    inner = lambda c: next(k for k in c.co_consts if isinstance(k, types.CodeType))
    return inner(inner(code)) if free else inner(code)


# %%
#| export
def _shell(fn: types.FunctionType, code: types.CodeType) -> types.FunctionType:
    "A function with its own globals and cells, for other code."
    old = dict(zip(fn.__code__.co_freevars, fn.__closure__ or ()))
    made = types.FunctionType(code, dict(fn.__globals__), fn.__name__, None, tuple(types.CellType(old[n].cell_contents) for n in code.co_freevars))
    made.__annotations__ = dict(fn.__annotations__)
    return made


# %%
#| export
def broken(law: Law, target: Function, code: types.CodeType) -> types.FunctionType:
    "The law's function in a world where `target` has other code."
    copies = {f: _shell(f.fn, code if f is target else f.code) for f in functions(law)} | {law: _shell(law.fn, law.code)}
    for f, made in copies.items():
        for name, (_, used) in f.uses.items():
            if used not in copies: continue
            names = made.__code__.co_freevars
            if name in names: made.__closure__[names.index(name)].cell_contents = copies[used]
            else: made.__globals__[name] = copies[used]
    return copies[law]


# %%
#| export
class Mutant(NamedTuple):
    "A function with one small change, and what became of a law about it."
    function: str
    change: str
    found: Found        # a counterexample, if the law noticed


# %%
#| export
def mutants(law: Law, most: int = 40) -> Iterator[Mutant]:
    "Break each function that a law speaks of, and run the law."
    own = [s.owner for s in symbols(law.claim, *law.hyps)]
    count = 0
    for f in sorted(functions(law), key=lambda f: f not in own):
        if not f.cases: continue
        node, file = read_source(f.fn)
        for change, changed in _bodies(node):
            if count == most: return
            try:
                code = _compiled(f, changed, file)
                read_function(_shell(f.fn, code), changed, file, f.measured)
            except (LawError, SyntaxError, ValueError, TypeError): continue
            count += 1
            yield Mutant(f.__name__, change, search(broken(law, f, code), tuple(p.sort for p in law.params), 200, 40))


# %%
#| export
def sample(law: Law, enough: int = 10) -> list[Mutant]:
    "Mutants until there are `enough` and one of them was noticed, or all that there are."
    tried = []
    for m in mutants(law):
        tried.append(m)
        if len(tried) >= enough and any(t.found.counterexample is not None for t in tried): break
    return tried


# %% [markdown]
# What happens to `add_comm` when `add` is broken?

# %%
for m in mutants(nat.add_comm):
    at = ', '.join(map(repr, m.found.counterexample or ()))
    print(f'{m.change:45}', f'false for {at}' if at else 'still true')

# %% [markdown]
# The one that is still true is no failure: adding one more, on either side, is as commutative as adding. A law says
# *something* about a function, seldom everything, and this table shows how much.
#
# ## What this does not show
#
# A mutant that no law notices may be equal to the original, or the values that we tried may be too small. And a function
# with a thousand good laws can still be the wrong function.
