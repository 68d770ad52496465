# %%
#| default_exp laws.reflect

# %% [markdown]
# # Reflection
# > A Python function, read as equations about the very code that runs.

# %% [markdown]
# `@pure` above a function does two things. It leaves the function as it is, to be called as before. And it reads the
# function's source and writes down what it says: one equation for each case.
#
# ```python
# @pure
# def add(x: Nat, y: Nat) -> Nat:
#     match x:
#         case Z(): return y                 #  add(Z(), y)    = y
#         case S(m): return S(add(m, y))     #  add(S(m), y)   = S(add(m, y))
# ```
#
# Whatever is then proved from the equations is true of the function, provided that the equations say what Python does.
# That is the delicate point, and the rule on this page is: **what is not understood is refused**, with the line and a
# hint. There are no loops, no floats, no exceptions, no default arguments, no calls of what is not itself pure; every match
# covers all cases; every recursion ends.

# %%
#| hide
#| export
import ast, inspect, sys, types
from dataclasses import replace
from pathlib import Path
from typing import Callable, NamedTuple

from bendml.laws.datatypes import LawError, abstract_sort, sort_of
from bendml.laws.kept import Kept, name_of
from bendml.laws.read import Calls, Case, Check, Function, State, function_of, ite, less, read_source
from bendml.laws.solvers import discharge
from bendml.laws.terms import (BOOL, INT, App, Sort, Symbol, Term, Var, at_types, build, conj, constructors, equal, fields, forall, free,
                               get, implies, is_built, literal, negate, script, substitute, subterms)

# %% [markdown]
# Recursion over a long list is deep, and Python's limit of 1,000 calls would end it. Python functions that call each other
# use no stack of the machine, so the limit can be raised; this is the one place where that is done.

# %%
#| export
sys.setrecursionlimit(max(sys.getrecursionlimit(), 100_000))


# %% [markdown]
# ## Reading statements
#
# The body is followed along every path. At a `match` on a parameter the parameter becomes the constructor, and each
# constructor gives a path, and in the end an equation, of its own. On anything else, `match` becomes a condition. The
# rows of a match are tried in order, as Python tries them; a constructor that no row takes is a case that was forgotten.

# %%
#| export
class Row(NamedTuple):
    "One case of a match: what is left of its patterns, the names found so far, and its body."
    patterns: tuple[ast.pattern, ...]
    found: dict
    body: list

_ANY = ast.MatchAs()


# %%
#| export
def _sketch(t: Term) -> str:
    "A term as a pattern: what is not known is `_`."
    if not (isinstance(t, App) and isinstance(t.op, Symbol) and isinstance(t.op.owner, type)) or t.op.part: return '_'
    return f"{t.op.owner.__name__}({', '.join(map(_sketch, t.args))})"


# %%
#| export
class Patterns(Calls):
    "Reads patterns."
    def plain(self, p: ast.pattern) -> ast.pattern:
        "The pattern without a name given to the whole: a `MatchAs` only where anything fits."
        if isinstance(p, ast.MatchAs) and isinstance(p.pattern, ast.MatchAs): raise self.refuse(p, 'not understood', 'one name for a pattern', ast.unparse(p))
        return p.pattern if isinstance(p, ast.MatchAs) and p.pattern is not None else p

    def belongs(self, p: ast.pattern, s: Sort) -> None:
        "A pattern is `_`, a name, or a constructor of the datatype."
        p = self.plain(p)
        if isinstance(p, ast.MatchAs): return
        if not isinstance(p, ast.MatchClass) or p.kwd_patterns: raise self.refuse(p, 'not understood', '_, a name, or a constructor with patterns inside', ast.unparse(p), 'compare numbers with if')
        c = self.meaning(p.cls)
        if c not in constructors(s): raise self.refuse(p, 'not a constructor of what is matched', f'a constructor of {s}', ast.unparse(p.cls))
        if len(p.patterns) > len(c.__fields__): raise self.refuse(p, 'too many patterns', f'{len(c.__fields__)} fields', str(len(p.patterns)))

    def open(self, row: Row, i: int, c: type, made: Term, count: int) -> Row | None:
        "What a row asks of the fields, once its pattern at `i` met the constructor `c`; None if it does not take it."
        p, inner = row.patterns[i], self.plain(row.patterns[i])
        found = row.found | ({p.name: made} if isinstance(p, ast.MatchAs) and p.name else {})
        if isinstance(inner, ast.MatchAs): below = (_ANY,)*count
        elif self.meaning(inner.cls) is c: below = tuple(inner.patterns) + (_ANY,)*(count - len(inner.patterns))
        else: return None
        return Row(row.patterns[:i] + below + row.patterns[i + 1:], found, row.body)

    def fresh(self, c: type, t: Var, p: ast.MatchClass, at: State) -> tuple[Var, ...]:
        "Variables for the fields, named as the pattern names them where it does."
        used, out = {v.name for v in free(*at.args)}, []
        asked = list(p.patterns) if self.meaning(p.cls) is c else []
        for i, (n, s) in enumerate(fields(c, t.sort)):
            name = base = (asked[i].name if i < len(asked) and isinstance(asked[i], ast.MatchAs) and asked[i].name else n)
            k = 1
            while name in used: k += 1; name = f'{base}_{k}'
            used.add(name); out.append(Var(name, s))
        return tuple(out)


# %% [markdown]
# Statements are read one after the other; what follows an `if` or a `match` follows on each of its paths.

# %%
#| export
class Statements(Patterns):
    "Reads return, assignments and if."

    def body(self, stmts: list, at: State) -> list[Case]:
        "Every way through these statements."
        if not stmts: raise self.refuse(self.node, 'a path without a value', 'return on every path', 'the end of the function')
        s, rest = stmts[0], stmts[1:]
        match s:
            case ast.Return(value) if value is not None: return [Case(at.args, at.conds, self.expr(value, at, self.own.sort))]
            case ast.Assign([ast.Name(name)], value): return self.body(rest, replace(at, names=at.names | {name: self.expr(value, at)}))
            case ast.If(test, then, other): return self.branch(self.expr(test, at, BOOL), then + rest, other + rest, at)
            case ast.Match(): return self.match(s, rest, at)
            case ast.Pass() | ast.Expr(ast.Constant(str())): return self.body(rest, at)
        raise self.refuse(s, 'not understood', 'return, name = value, if, match', ast.unparse(s).splitlines()[0][:60],
                          'a loop is written as recursion' if isinstance(s, (ast.For, ast.While)) else '')

    def branch(self, c: Term, then: list, other: list, at: State) -> list[Case]:
        "Both ways of an if; one equation where neither goes on to split."
        a, b = self.body(then, at.given(c)), self.body(other, at.given(negate(c)))
        if len(a) == len(b) == 1 and a[0].args == b[0].args == at.args and len(a[0].conds) == len(b[0].conds) == len(at.conds) + 1:
            return [Case(at.args, at.conds, ite(c, a[0].value, b[0].value))]
        return a + b


# %%
#| export
class Matches(Statements):
    "Reads match: its rows, each with a pattern for each subject."
    def match(self, node: ast.Match, rest: list, at: State) -> list[Case]:
        many = isinstance(node.subject, ast.Tuple)
        subjects = tuple(self.expr(e, at) for e in (node.subject.elts if many else [node.subject]))
        rows = []
        for case in node.cases:
            if case.guard: raise self.refuse(case.pattern, 'not understood', 'case without if', f'if {ast.unparse(case.guard)}', 'put the if inside the case')
            for p in case.pattern.patterns if isinstance(case.pattern, ast.MatchOr) else [case.pattern]:
                if many and isinstance(p, ast.MatchSequence) and len(p.patterns) == len(subjects): ps = tuple(p.patterns)
                elif many and isinstance(p, ast.MatchAs) and p.pattern is None and p.name is None: ps = (_ANY,)*len(subjects)
                elif many: raise self.refuse(p, 'not understood', f'{len(subjects)} patterns, one for each', ast.unparse(p))
                else: ps = (p,)
                rows.append(Row(ps, {}, case.body + rest))
        return self.rows(node, subjects, rows, at, subjects)


# %%
#| export
class Reader(Matches):
    "Reads the body of a pure function."
    split = True   # whether a match on a parameter gives equations of their own

    def rows(self, node: ast.Match, subjects: tuple[Term, ...], rows: list[Row], at: State, whole: tuple[Term, ...]) -> list[Case]:
        "The cases of a match from here on: split on the first constructor that the first row asks for."
        if not rows:
            missing = ', '.join(map(_sketch, whole))
            raise self.refuse(node, 'a case is missing', 'a case for every constructor', f'no case for {missing}', f'add: case {missing}: ...')
        first = rows[0]
        ask = next((i for i, p in enumerate(first.patterns) if not isinstance(self.plain(p), ast.MatchAs)), None)
        if ask is None:
            names = first.found | {p.name: t for p, t in zip(first.patterns, subjects) if p.name}
            return self.body(first.body, replace(at, names=at.names | names))
        t, out = subjects[ask], []
        for row in rows: self.belongs(row.patterns[ask], t.sort)
        built = t.op.owner if isinstance(t, App) and isinstance(t.op, Symbol) and isinstance(t.op.owner, type) and not t.op.part else None
        for c in constructors(t.sort):
            if built not in (None, c): continue
            parts = t.args if built else self.fresh(c, t, self.plain(first.patterns[ask]), at)
            shape = build(c, parts, t.sort)
            if isinstance(t, Var) and self.split: s, here = (lambda e, by={t: shape}: substitute(e, by)), at
            else: s, here = (lambda e: e), at if built else at.given(is_built(c, t))
            here = State({n: s(e) for n, e in here.names.items()}, tuple(map(s, here.args)), tuple(map(s, here.conds)))
            made = shape if isinstance(t, Var) and self.split else t
            inner = tuple(get(c, n, made) for n, _ in fields(c, t.sort))
            told = (r._replace(found={n: s(e) for n, e in r.found.items()}) for r in rows)
            kept = [k for r in told if (k := self.open(r, ask, c, made, len(inner))) is not None]
            seen = tuple(map(s, subjects))
            out += self.rows(node, seen[:ask] + inner + seen[ask + 1:], kept, here, tuple(shape if w == t else s(w) for w in whole))
        return out


# %% [markdown]
# ## Every recursion ends
#
# Look at the arguments of each recursive call. If some argument is always a part of what it was, the recursion ends,
# since values are finite. If one sometimes stays the same and otherwise shrinks, it is set aside, and the calls where it
# stayed must shrink in another (the order of a dictionary: first letter first).

# %%
#| export
def _part(a: Term, b: Term) -> str:
    "How an argument of a recursive call relates to what it was: '<' a part of it, '=' the same, '?' unknown."
    if a == b: return '='
    made = lambda t: isinstance(t, App) and isinstance(t.op, Symbol) and isinstance(t.op.owner, type) and not t.op.part
    stack = list(b.args) if made(b) else []
    while stack:
        t = stack.pop()
        if t == a: return '<'
        if made(t): stack += t.args
    return '?'


# %%
#| export
def shrinks(calls: list[tuple[tuple[Term, ...], tuple[Term, ...]]]) -> bool:
    "Whether calls, each with its own arguments and those of its caller, cannot go on for ever."
    left = [[_part(a, b) for a, b in zip(*call)] for call in calls]
    while left:
        good = [i for i in range(len(left[0])) if all(c[i] in '<=' for c in left) and any(c[i] == '<' for c in left)]
        if not good: return False
        left = [c for c in left if c[good[0]] == '=']
    return True


# %% [markdown]
# ## The equations
#
# `definitions` lists the equations of every function that occurs in some terms, and of every function that occurs in those.
# Each has a trigger: it is used where its left side is seen. Functions that shrink in a number instead of a structure
# would unfold for ever; they have no such equation, and are unfolded a fixed number of times where they stand.

# %%
#| export
def called(call: App) -> Term:
    "A call replaced by what its function says, if that is one term in its parameters."
    f, types = call.op.owner, dict(zip(call.op.owner.types, call.op.types))
    if any(case.args != f.params for case in f.cases): raise ValueError(f'{f.__name__} has an equation for each constructor')
    value = f.cases[-1].value
    for case in reversed(f.cases[:-1]): value = ite(conj(*case.conds), case.value, value)
    return substitute(at_types(value, types), {at_types(p, types): a for p, a in zip(f.params, call.args)})


# %%
#| export
def unfolds(f: object) -> bool:
    "Whether a function has no equations of its own, and is unfolded instead."
    return isinstance(f, Function) and f.measure is not None and f.recursive()


# %%
#| export
def equations(f: Function, types: tuple[Sort, ...]) -> list[Term]:
    "The equations of a function at given types."
    out, there = [], lambda t: at_types(t, dict(zip(f.types, types)))
    for args, conds, value in f.cases:
        call = f(*map(there, args), types=types)
        out.append(forall(free(call), implies(tuple(map(there, conds)), equal(call, there(value))), ((call,),)))
    return out


# %%
#| export
def symbols(*terms: Term) -> dict[Symbol, None]:
    "The functions that occur in terms, with their types."
    return {s.op: None for t in terms for s in subterms(t) if isinstance(s, App) and isinstance(s.op, Symbol) and isinstance(s.op.owner, Function)}


# %%
#| export
def definitions(terms: list[Term], opaque: set = frozenset()) -> list[tuple[str, Term]]:
    "What is known of the functions in some terms, and of the functions in that; nothing of opaque ones."
    out, todo, seen = [], list(symbols(*terms)), set()
    while todo:
        s = todo.pop(0)
        if s in seen or s.owner in opaque or unfolds(s.owner): continue
        seen.add(s)
        found = equations(s.owner, s.types)
        out += [(f'definition of {s.owner.__name__}', e) for e in found]
        todo += symbols(*found)
    return out


# %% [markdown]
# ## `@pure`

# %% [markdown]
# A statement that no path reaches is not read; but a `yield` or a `global` there would still change what the whole function does.

# %%
#| export
_STRANGE = (ast.Yield, ast.YieldFrom, ast.Await, ast.Global, ast.Nonlocal)
_WAITS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR | inspect.CO_ITERABLE_COROUTINE


# %%
#| export
def signature(fn: types.FunctionType, node: ast.FunctionDef, file: str) -> tuple[Var, ...]:
    "The parameters as variables; `LawError` for anything but plain positional parameters with annotations."
    where, a = f'{file}:{node.lineno} in {fn.__name__}', node.args
    if len(node.decorator_list) > 1: raise LawError(where, 'more than one decorator', 'one', ', '.join(map(ast.unparse, node.decorator_list)), 'another decorator could change what runs')
    if a.defaults or a.kw_defaults or a.vararg or a.kwarg or a.kwonlyargs or a.posonlyargs: raise LawError(where, 'not understood', 'parameters without defaults and stars', ast.unparse(a))
    strange = [n for n in ast.walk(node) if isinstance(n, _STRANGE)] or [node]*bool(fn.__code__.co_flags & _WAITS)
    if strange: raise LawError(f'{file}:{strange[0].lineno} in {fn.__name__}', 'not understood', 'no yield, await, global or nonlocal, reached or not', ast.unparse(strange[0]).splitlines()[0])
    if not all(n.isascii() for n in (fn.__name__, *fn.__code__.co_varnames)): raise LawError(where, 'not understood', 'names in ASCII', fn.__name__)
    for p in a.args:
        if p.arg not in fn.__annotations__: raise LawError(where, f'{p.arg} has no annotation', 'a sort for every parameter', p.arg)
    return tuple(Var(p.arg, sort_of(fn.__annotations__[p.arg], f'{where}, {p.arg}')) for p in a.args)


# %% [markdown]
# What such a function needs is proved when it is read, or was proved before and is [kept](11b_kept.ipynb), so that an import asks no solver. A
# law does not rely on that: [`prove`](16_prove.ipynb) puts these questions again, to both solvers, for every function that the law speaks of.

# %%
#| export
CHECKED = Kept('checks', Path(__file__).with_name('checked.json') if '__file__' in globals() else Path('checked.json'))

def check_name(text: str) -> str:
    "The name under which the answer to a check is kept: the hash of all but its title."
    return name_of(text.split('\n', 1)[1])

def _prove_checks(reader: Reader, shrink: list, where: str) -> tuple[Check, ...]:
    "Prove, with z3, what the function needs: divisors that are not zero, measures that shrink."
    out = []
    for node, conds, claim in reader.nonzero: out.append((node, 'a divisor that may be zero', 'a divisor that is never zero', conds, claim, 'an if in front of it, that leads elsewhere when it is'))
    for node, conds, claim in shrink: out.append((node, 'a recursion that may not end', 'the measure shrinks, and is not negative before', conds, claim, 'another measure, or a condition before the call'))
    checks = {}
    for node, problem, expected, conds, claim, hint in out:
        terms = [*conds, claim]
        facts = [f for f in definitions(terms, {reader.own})] + [('what holds there', c) for c in conds]
        text = script(facts, claim, f'{where}: {expected}')
        if text in checks: continue
        checks[text] = Check(f'{where}: {expected}', text)
        if CHECKED.get(name := check_name(text)): continue
        answer, = discharge(text, ('z3',), model=True)
        if answer.result != 'unsat':
            at = ', '.join(f'{n[1:]} = {v}'.replace('(- ', '-').replace(')', '') for n, v in sorted(answer.model.items()) if v.strip('(- )').isdigit())
            raise reader.refuse(node, problem, expected, f'not so for {at}' if at else f'no proof of it ({answer.result})', hint)
        CHECKED.put(name, {'proved by': 'z3'})
    return tuple(checks.values())


# %%
#| export
def read_function(fn: types.FunctionType, node: ast.FunctionDef, file: str, measure: str | None = None) -> Function:
    "A function's equations from its syntax tree; `LawError` for what is not understood."
    params = signature(fn, node, file)
    where = f'{file}:{node.lineno}'
    if 'return' not in fn.__annotations__: raise LawError(f'{where} in {fn.__name__}', 'no annotation of the value', '-> and a sort', 'nothing')
    own = Function(fn, params, sort_of(fn.__annotations__['return'], f'{where} in {fn.__name__}'), where)
    reader = Reader(fn, node, file, own)
    reader.split = measure is None
    start = State({p.name: p for p in params}, params)
    own.cases = tuple(reader.body(node.body, start))
    shrink = []
    if measure is not None:
        own.measured, own.measure = measure, (m := reader.expr(reader.parse(measure), start, INT))
        for call, at, args in reader.calls:
            shrink.append((call, at.conds, conj(less(literal(0), m, '<='), less(substitute(m, dict(zip(params, args))), m))))
    elif not shrinks([(args, at.args) for _, at, args in reader.calls]):
        raise reader.refuse(reader.calls[0][0], 'a recursion that may not end', 'an argument that is a part of what it was, in every call', ast.unparse(reader.calls[0][0]),
                            "recurse on a field found by match, or name a number that shrinks: @pure(measure='n')")
    own.checks = _prove_checks(reader, shrink, f'{where} in {fn.__name__}')
    own.uses = reader.uses
    own.fixed = True
    return own


# %%
#| export
def pure(
    fn: Callable | None = None,      # a function with annotations
    *, measure: str | None = None,   # an integer expression in the parameters that shrinks with every call; None: an argument's structure
) -> Callable:                       # the same function
    "Read a function as equations, and leave it as it is; `LawError` for what is not understood."
    if fn is None: return lambda f: pure(f, measure=measure)
    if not isinstance(fn, types.FunctionType): raise LawError(getattr(fn, '__qualname__', repr(fn)), 'not a function', 'def', type(fn).__name__)
    fn.__reflected__ = read_function(fn, *read_source(fn), measure)
    return fn


# %%
#| export
def abstract(thing: Callable | type) -> Callable | type:
    "A class that is some set, or a function that is some function: nothing is known of it but what axioms say. Its body is a model to run."
    if isinstance(thing, type): return abstract_sort(thing)
    node, file = read_source(thing)
    if 'return' not in thing.__annotations__: raise LawError(f'{file}:{node.lineno} in {thing.__name__}', 'no annotation of the value', '-> and a sort', 'nothing')
    thing.__reflected__ = f = Function(thing, signature(thing, node, file), sort_of(thing.__annotations__['return'], file), f'{file}:{node.lineno}')
    f.fixed = True
    return thing


# %% [markdown]
# ## What comes out

# %%
from bendml.laws.datatypes import datatype
from typing import Self

@datatype
class Nat:
    class Z: pass
    class S: pred: Self
Z, S = Nat.Z, Nat.S

@pure
def sub(x: Nat, y: Nat) -> Nat:
    match x, y:
        case Z(), _: return Z()
        case S(_), Z(): return x
        case S(m), S(k): return sub(m, k)


# %%
from bendml.laws.terms import Script
for e in equations(function_of(sub), ()): print(Script().term(e))

# %% [markdown]
# Three cases, three equations. The function itself is as it was:

# %%
sub(S(S(Z())), S(Z()))


# %% [markdown]
# ## What is refused
#
# A case that was forgotten:

# %%
def refused(make):
    try: make()
    except LawError as e: print(e)

@refused
def missing():
    @pure
    def f(x: Nat, y: Nat) -> Nat:
        match x, y:
            case Z(), _: return y
            case S(m), S(k): return m


# %% [markdown]
# A recursion that may go on for ever:

# %%
@refused
def endless():
    @pure
    def f(x: Nat) -> Nat: return f(S(x))


# %% [markdown]
# With a measure, the question is whether a number shrinks and stays above zero. A solver answers it, and tells where not:

# %%
@refused
def below_zero():
    @pure(measure='n')
    def f(n: int) -> int: return 0 if n == 0 else f(n - 1)


# %% [markdown]
# A divisor:

# %%
@refused
def divided():
    @pure
    def f(x: int, y: int) -> int: return x // y if x > y else 0


# %% [markdown]
# And everything that is no equation:

# %%
@refused
def loop():
    @pure
    def f(n: int) -> int:
        for i in range(n): n = n + i
        return n

# %% [markdown]
# ## What this does not show
#
# That the equations are right; the [guards](91_guards.ipynb) compare them with the code. And nothing is said about how
# long a function takes, or how much memory it needs.
