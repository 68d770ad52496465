# %%
#| default_exp laws.induct

# %% [markdown]
# # Induction
# > A law is a function that returns `True`, whatever it is given; here are the dominoes of its proof.

# %% [markdown]
# ```python
# @law(induct='x')
# def add_zero(x: Nat):
#     "Adding nothing changes nothing."
#     return add(x, Z()) == x
# ```
#
# A law is an ordinary function. Its asserts say what it assumes, and what it returns is the claim. It can be called, and
# then it is a test of one case. And it can be proved, and then it is known for all cases.
#
# How can that be, when there are infinitely many? Think of dominoes. If the first one falls, and if each one that falls
# brings down the next, then all of them fall, and we did not have to look at each. For a claim about natural numbers
# the first domino is the claim for `Z()`; that each brings down the next is the claim for `S(m)`, when it may be assumed
# for `m`. What may be assumed is called the *induction hypothesis*. Lists fall the same way, from the tail to the whole;
# trees from both branches to the tree.
#
# This page makes those dominoes, each a text for the solvers. A solver does no induction. It only has to see that one
# case follows from the definitions, the hypothesis, and the laws that are cited.

# %%
#| hide
#| export
import ast, itertools, types
from dataclasses import dataclass
from typing import NamedTuple

from bendml.laws.datatypes import LawError
from bendml.laws.read import Fixed, Function, State, function_of, matches, read_source, type_vars
from bendml.laws.reflect import Reader, called, definitions, signature, symbols, unfolds
from bendml.laws.solvers import Answer
from bendml.laws.terms import (BOOL, INT, App, Forall, Sort, Symbol, Term, Var, at_sort, at_types, build, constructors, equal, exhausted,
                               fields, forall, free, implies, literal, script, substitute, subterms)


# %% [markdown]
# ## What a law says

# %%
#| export
@dataclass(eq=False)
class Law(Fixed):
    "A claim about pure functions, and how to prove it. Call it to test one case; `prove` it for all."
    fn: types.FunctionType
    induct: str | None = None            # the parameter, or with `strong` an integer expression, that the proof goes along
    gen: tuple[str, ...] = ()            # parameters that the induction hypothesis is about for all values
    depth: int = 1                       # how many constructors an induction case looks into
    strong: bool = False                 # the hypothesis holds for everything smaller, not only the next smaller
    cite: tuple = ()                     # laws that may be used, or instances of them
    opaque: tuple = ()                   # functions whose definitions are not used
    inline: tuple = ()                   # functions that are replaced by what they say
    split: tuple[str, ...] = ()          # terms for which the solvers are reminded how they can be made
    trigger: object = None               # where other proofs may use this law: terms, as text; `;` between terms of one group
    ih: object = None                    # where this proof may use its induction hypothesis, likewise
    unfold: int = 2                      # how often functions with a measure are unfolded
    assumed: bool = False                # an axiom

    def __post_init__(self):
        self.__name__, self.__module__, self.__doc__ = self.fn.__name__, self.fn.__module__, self.fn.__doc__
        for name in ('gen', 'cite', 'opaque', 'inline', 'split'):
            setattr(self, name, (value,) if isinstance(value := getattr(self, name), str) else tuple(value))
        node, self.file = read_source(self.fn)
        self.node, self.where = node, f'{self.file}:{node.lineno}'
        self.params = signature(self.fn, node, self.file)
        _check_induction(self)
        _check_hints(self)
        self.reader = Reader(self.fn, node, self.file)
        self.hyps, self.claim, self.links = _read_law(self)
        self.types = tuple(dict.fromkeys(t for p in self.params for t in type_vars(p.sort)))
        self.code, self.uses = self.fn.__code__, self.reader.uses
        if self.assumed and all(s.owner.cases for s in symbols(self.claim)):
            raise self.reader.refuse(node, 'an axiom about functions that are defined', 'a claim about an abstract function', ast.unparse(node.body[-1]), 'make it a law, and prove it')
        self.fixed = True

    def __call__(self, *args): return self.fn(*args)
    def at(self, **terms: str) -> 'Cited':
        "The law with terms, given as text, for some of its parameters; for all values of the others."
        return Cited(self, terms)
    def here(self, **terms: str) -> 'Cited':
        "The law with terms for some of its parameters; the others are the citing law's of the same name."
        return Cited(self, {p.name: p.name for p in self.params} | terms)
    def seen(self, *trigger: str) -> 'Cited':
        "The law, to be used where these terms are seen."
        return Cited(self, {}, trigger)
    def __repr__(self): return f'law {self.__name__}'


# %%
#| export
class Cited(NamedTuple):
    "A law as another one uses it."
    law: Law
    terms: dict = {}
    trigger: object = None


# %% [markdown]
# The options must name what there is. An induction goes along a parameter that its hypothesis is not also about for all values:
# that would be the claim itself.

# %%
#| export
def _check_induction(law: Law) -> None:
    "The dominoes stand in a row."
    names = {p.name: p.sort for p in law.params}
    wrong = lambda *what: LawError(f'{law.where} in {law.__name__}', *what)
    if law.induct and not law.strong:
        if law.induct not in names: raise wrong('induct', f'one of {", ".join(names)}', law.induct)
        if not constructors(names[law.induct]) and names[law.induct] != INT: raise wrong('induct', 'a parameter that is a datatype or an int', str(names[law.induct]))
    if bad := [g for g in law.gen if g not in names or g == law.induct]: raise wrong('gen', 'other parameters', str(bad[0]))


# %%
#| export
def _check_hints(law: Law) -> None:
    "What only says where to look names what there is."
    wrong = lambda *what: LawError(f'{law.where} in {law.__name__}', *what)
    if bad := [c for c in law.cite if not isinstance(c, (Law, Cited))]: raise wrong('cite', 'laws', repr(bad[0]))
    if bad := [f for f in law.opaque + law.inline if function_of(f) is None]: raise wrong('opaque or inline', 'pure functions', repr(bad[0]))
    if bad := [f for f in law.inline if function_of(f).recursive() or len(function_of(f).cases) != 1 or function_of(f).cases[0].args != function_of(f).params]:
        raise wrong('inline', 'functions of one equation, without recursion', bad[0].__name__)
    if law.depth not in (1, 2, 3) or law.unfold not in range(9): raise wrong('depth or unfold', 'depth 1 to 3, unfold 0 to 8', f'{law.depth}, {law.unfold}')


# %% [markdown]
# A law's body is assignments, asserts and one `return`. A chain `a == b == c` is a calculation: each step is proved by
# itself, with the steps before it known, and what the law says in the end is that the first equals the last.

# %%
#| export
def _read_law(law: Law) -> tuple[tuple[Term, ...], Term, tuple[Term, ...]]:
    "What a law assumes, what it claims, and the steps that lead to the claim."
    r, hyps = law.reader, []
    at = State({p.name: p for p in law.params})
    for s in law.node.body:
        match s:
            case ast.Expr(ast.Constant(str())): pass
            case ast.Assert(test, None):
                hyps.append(r.expr(test, at, BOOL))
                at = at.given(hyps[-1])
            case ast.Assign([ast.Name(name)], value): at = State(at.names | {name: r.expr(value, at)}, (), at.conds)
            case ast.Return(value) if value is not None and s is law.node.body[-1]:
                claim = r.expr(value, at, BOOL)
                chain = isinstance(value, ast.Compare) and len(value.ops) > 1 and all(isinstance(o, ast.Eq) for o in value.ops)
                links = claim.args if chain and claim.op == 'and' else (claim,)
                return tuple(hyps), equal(links[0].args[0], links[-1].args[1]) if len(links) > 1 else claim, links
            case _: raise r.refuse(s, 'not understood in a law', 'assert, name = value, and one return at the end', ast.unparse(s).splitlines()[0][:60])
    raise r.refuse(law.node, 'a law without a claim', 'return', 'the end of the function')


# %% [markdown]
# ## Formulas for the solvers
#
# A law becomes a formula with all its parameters bound. Its trigger says where a solver may use it; we pick the left side
# of the equation, or the fewest function calls that mention every variable. A trigger can make a proof fail, never
# make one succeed that should not: it only says where to look.

# %%
#| export
_IN_TRIGGER = {'select', 'store', '+', '-', '*'}

def _can_trigger(t: Term) -> bool:
    ok = lambda s: isinstance(s, Var) or isinstance(s, App) and (isinstance(s.op, Symbol) and s.op.part != 'is' or not isinstance(s.op, str) or s.op in _IN_TRIGGER)
    return isinstance(t, App) and bool(t.args) and bool(symbols(t)) and all(map(ok, subterms(t)))


# %%
#| export
def pick_trigger(vars: tuple[Var, ...], parts: tuple[Term, ...]) -> tuple[tuple[Term, ...], ...]:
    "Terms that mention all variables: the left side of the claim, or few large calls; none if that cannot be."
    claim = parts[-1]
    if isinstance(claim, App) and claim.op == '=' and _can_trigger(claim.args[0]) and set(vars) <= set(free(claim.args[0])): return ((claim.args[0],),)
    found, missing = [], set(vars)
    for part in reversed(parts):
        for t in subterms(part):
            if missing & set(free(t)) and _can_trigger(t) and isinstance(t.op, Symbol):
                found.append(t)
                missing -= set(free(t))
    return (tuple(found),) if not missing and found else ()


# %%
#| export
def read_terms(reader: Reader, text: object, names: dict) -> tuple[tuple[Term, ...], ...]:
    "Triggers as text: alternatives in a tuple, `;` between terms of one group."
    texts = (text,) if isinstance(text, str) else tuple(text)
    return tuple(tuple(read_term(reader, t, names) for t in group.split(';')) for group in texts)

def read_term(reader: Reader, text: str, names: dict, want: Sort | None = None) -> Term:
    "A term as text, in the names of a law; any field of any value may be asked for."
    uses, reader = reader.uses, Reader(reader.fn, reader.node, reader.file)
    reader.uses, reader.any_field = uses, True
    return reader.expr(reader.parse(text), State(names), want)


# %%
#| export
def formula(law: Law, over: tuple[Var, ...], names: dict, trigger: object = None, given: tuple[Term, ...] = (), types: dict = {}) -> Term:
    "The law at some types, for all values of some of its parameters, with given terms for the others."
    if any(p.name in names for p in over): raise ValueError('a parameter for which a term is given, and for all values')
    there = {p: at_types(p, types) for p in law.params}
    bound = {there[p]: Var(p.name + '!', there[p].sort) for p in over}
    by = {v: names.get(v.name, v) for v in there.values()} | bound
    hyps, claim = given + tuple(substitute(at_types(h, types), by) for h in law.hyps), substitute(at_types(law.claim, types), by)
    vars = tuple(bound.values())
    groups = read_terms(law.reader, trigger, {v.name: t for v, t in by.items()}) if trigger else pick_trigger(vars, (*hyps, claim))
    groups = (g for g in groups if set(vars) <= set(free(*g)) and all(set(vars) & set(free(t)) for t in g))
    return forall(vars, implies(hyps, claim), groups)


# %% [markdown]
# ## Induction
#
# The cases of a proof. Each has terms in the place of the induction variable, hypotheses, and perhaps a condition. For a
# datatype: a case for each constructor, with the hypothesis for each part of it that is of the same sort. With `depth=2`
# the parts are opened too (a list is empty, or has one element, or begins with two), and the hypothesis holds for all
# parts of parts. That is right because a value's parts are fewer than its own, and it has to end.

# %%
#| export
class Step(NamedTuple):
    "A case of a proof."
    label: str
    names: dict                            # parameter -> what it is in this case
    known: tuple[tuple[str, Term], ...] = ()


# %%
#| export
def _shapes(t: Var, depth: int) -> list[Term]:
    "The ways in which a value can be made, looking `depth` constructors deep; variables for what is not looked into."
    out = []
    for c in constructors(t.sort):
        parts = [Var(f'{t.name}.{n}', s) for n, s in fields(c, t.sort)]
        open_ = [_shapes(p, depth - 1) if p.sort == t.sort and depth > 1 else [p] for p in parts]
        out += [build(c, args, t.sort) for args in itertools.product(*open_)]
    return out


# %%
#| export
def _by_structure(law: Law, x: Var, gen: tuple[Var, ...]) -> list[Step]:
    steps = []
    for shape in _shapes(x, law.depth):
        parts = [s for s in subterms(shape) if s.sort == x.sort and s != shape]
        known = tuple((f'induction hypothesis for {_text(p)}', formula(law, gen, {x.name: p}, law.ih)) for p in parts)
        steps.append(Step(_text(shape), {x.name: shape}, known))
    return steps


# %%
#| export
def _text(t: Term) -> str:
    "A term in Python's words."
    if isinstance(t, Var): return t.name
    name = t.op.owner.__name__ if isinstance(t.op, Symbol) else str(t.op)
    return f"{name}({', '.join(map(_text, t.args))})" if t.args or isinstance(t.op, Symbol) else name


# %% [markdown]
# Along an integer `n` there are two cases, `n <= 0` without a hypothesis, and `n > 0` with the hypothesis for `n - 1`. In
# strong induction, along an integer expression, the hypothesis holds for all values that make the expression smaller, but
# not negative.

# %%
#| export
def _by_number(law: Law, n: Var, gen: tuple[Var, ...]) -> list[Step]:
    before = App('-', (n, literal(1)), INT)
    small, large = App('<=', (n, literal(0)), BOOL), App('<', (literal(0), n), BOOL)
    return [Step(f'{n.name} <= 0', {}, (('the case', small),)),
            Step(f'{n.name} > 0', {}, (('the case', large), (f'induction hypothesis for {n.name} - 1', formula(law, gen, {n.name: before}, law.ih))))]


# %%
#| export
def _by_measure(law: Law, gen: tuple[Var, ...]) -> list[Step]:
    m = read_term(law.reader, law.induct, {p.name: p for p in law.params}, INT)
    over = tuple(p for p in law.params if p in gen or p in free(m))
    then = substitute(m, {v: Var(v.name + '!', v.sort) for v in over})
    smaller = (App('<=', (literal(0), then), BOOL), App('<', (then, m), BOOL))
    return [Step(f'everything with smaller {law.induct} done', {}, (('induction hypothesis', formula(law, over, {}, law.ih, smaller)),))]


# %%
#| export
def steps(law: Law) -> list[Step]:
    "The cases of a law's proof."
    if not law.induct: return [Step('', {})]
    gen = tuple(p for p in law.params if p.name in law.gen)
    if law.strong: return _by_measure(law, gen)
    x = next(p for p in law.params if p.name == law.induct)
    return _by_number(law, x, gen) if x.sort == INT else _by_structure(law, x, gen)


# %% [markdown]
# ## Obligations
#
# A case together with all that may be used makes an obligation. What may be used: what the law assumes, the
# hypotheses, cited laws, the definitions of the functions that occur, and for every datatype's constant that it is made by
# one of the constructors. There is no way to add anything else.

# %%
#| export
@dataclass(frozen=True)
class Obligation:
    "One text that has to be unsatisfiable."
    label: str
    text: str
    answers: tuple[Answer, ...] = ()

    def said(self, solver: str) -> str: return next((a.result for a in self.answers if a.solver == solver), '')


# %%
#| export
def _types_at(law: Law, terms: list[Term]) -> list[dict]:
    "At which types a law that holds for all types is of use: those at which its functions occur."
    if not law.types: return [{}]
    found = {t: {} for t in law.types}
    for s in symbols(law.claim, *law.hyps):
        for there in symbols(*terms):
            types = {}
            if there.owner is s.owner and all(matches(p, q, types) for p, q in zip(s.types, there.types)):
                for t, sort in types.items(): found.get(t, {})[sort] = None
    return [dict(zip(found, choice)) for choice in itertools.islice(itertools.product(*found.values()), 16)]


# %%
#| export
def cited(law: Law, c: Law | Cited, names: dict, terms: list[Term]) -> list[Term]:
    "The formulas of a cited law, in one case of a proof."
    used, given, trigger = (c.law, c.terms, c.trigger) if isinstance(c, Cited) else (c, {}, None)
    if bad := set(given) - {p.name for p in used.params}: raise LawError(f'{law.where} in {law.__name__}', f'{used.__name__}.at', f'parameters of {used.__name__}', min(bad))
    types, put = {}, {}
    for p in used.params:
        if p.name not in given: continue
        known = all(t in types for t in type_vars(p.sort))
        put[p.name] = read_term(law.reader, given[p.name], names, at_sort(p.sort, types) if known else None)
        if not matches(p.sort, put[p.name].sort, types): raise LawError(f'{law.where} in {law.__name__}', f'{used.__name__}.at({p.name}=...)', str(p.sort), str(put[p.name].sort))
    over = tuple(p for p in used.params if p.name not in given)
    choices = _types_at(used, terms) if len(types) < len(used.types) else [{}]
    return [formula(used, over, put, trigger or used.trigger, types=more | types) for more in choices]


# %%
#| export
def _inlined(t: Term, by: dict) -> Term:
    "The term with some functions replaced by what they say."
    if isinstance(t, Var) or not by: return t
    if isinstance(t, Forall): return Forall(t.vars, _inlined(t.body, by), ())
    t = App(t.op, tuple(_inlined(a, by) for a in t.args), t.sort)
    return _inlined(called(t), by) if isinstance(t.op, Symbol) and t.op.owner in by else t


# %%
#| export
def _unfolded(terms: list[Term], rounds: int, opaque: set) -> list[tuple[str, Term]]:
    "Functions with a measure, unfolded where they stand on terms without bound variables."
    out, new = {}, list(terms)
    for _ in range(rounds):
        calls = [s for t in new for s in subterms(t) if isinstance(s, App) and isinstance(s.op, Symbol) and s.op.owner not in opaque
                 and unfolds(s.op.owner) and s not in out and not any(v.name.endswith('!') for v in free(s))]
        new = [out.setdefault(s, equal(s, called(s))) for s in dict.fromkeys(calls)]
    return [('unfolded', e) for e in out.values()]


# %%
#| export
def _obligation(law: Law, step: Step, number: int) -> Obligation:
    "The text of one link of one case."
    names = {p.name: p for p in law.params} | step.names
    by = {p: names[p.name] for p in law.params}
    links = [substitute(l, by) for l in law.links]
    known = [('given', substitute(h, by)) for h in law.hyps] + [('a step before', l) for l in links[:number]] + list(step.known)
    goal = links[number]
    opaque = {function_of(f) for f in law.opaque}
    for c in law.cite:
        base = [goal, *(t for _, t in known)]
        base += [t for _, t in definitions(base, opaque)]
        known += [(f'law {(c.law if isinstance(c, Cited) else c).__name__}', t) for t in cited(law, c, names, base)]
    inline = {function_of(f): 1 for f in law.inline}
    known, goal = [(why, _inlined(t, inline)) for why, t in known], _inlined(goal, inline)
    known += _unfolded([goal, *(t for _, t in known)], law.unfold, opaque)
    ask = [read_term(law.reader, t, names) for t in law.split]
    known += definitions([goal, *(t for _, t in known), *ask], opaque)
    values = [*ask, *(v for v in free(goal, *(t for _, t in known)) if constructors(v.sort))]
    known += [('how it is made', exhausted(v)) for v in values if constructors(v.sort)]
    label = ', '.join(filter(None, (step.label, f'step {number + 1}' if len(links) > 1 else '')))
    return Obligation(label, script(known, goal, f'{law.__module__}.{law.__name__}' + (f', case {label}' if label else '')))


# %%
#| export
def obligations(law: Law) -> tuple[Obligation, ...]:
    "All that has to be shown for a law: its cases, divisors in it that must not be zero, and what its functions need."
    if law.assumed: return ()
    own = [_obligation(law, step, n) for step in steps(law) for n in range(len(law.links))]
    if not own: raise LawError(f'{law.where} in {law.__name__}', 'no proof', 'at least one case', 'none')
    for node, conds, claim in law.reader.nonzero:
        facts = definitions([*conds, claim]) + [('given', c) for c in conds]
        own.append(Obligation(f'line {node.lineno}: a divisor that is not zero', script(facts, claim, f'{law.__module__}.{law.__name__}, a divisor')))
    checks = [c for s in functions(law) for c in s.checks]
    return tuple(own) + tuple(Obligation(c.why, c.text) for c in dict.fromkeys(checks))


# %%
#| export
def functions(law: Law) -> list[Function]:
    "The functions that a law and its hints speak of, as far as they were read, and those that they call."
    todo, seen = [s.owner for s in symbols(law.claim, *law.hyps, *law.links)] + [f for _, f in law.uses.values() if f], {}
    while todo:
        f = todo.pop(0)
        if f not in seen:
            seen[f] = None
            todo += [g for _, g in f.uses.values() if g]
    return list(seen)


# %% [markdown]
# This is an obligation as the solvers see it: the second domino of `add_zero`.

# %%
from bendml.laws.datatypes import datatype
from bendml.laws.reflect import pure
from typing import Self

@datatype
class Nat:
    class Z: pass
    class S: pred: Self
Z, S = Nat.Z, Nat.S

@pure
def add(x: Nat, y: Nat) -> Nat:
    match x:
        case Z(): return y
        case S(m): return S(add(m, y))

def add_zero(x: Nat): return add(x, Z()) == x

first, second = obligations(Law(add_zero, induct='x'))
print(second.text)

# %% [markdown]
# Read it from below. The goal is denied for a number `S(?x.pred)`. Above it are the two equations of `add`, and above them
# the hypothesis, for `?x.pred`. By the second equation and the hypothesis the two sides are the same, so the denial is
# impossible, and a solver says `unsat`.
#
# ## What this does not show
#
# Whether a proof exists that these steps do not find: then a law stays `open`, and needs a lemma. There is no induction
# over two things at once, and none over a structure that is spread over several datatypes.
