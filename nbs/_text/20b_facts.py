# %%
#| default_exp shape.facts

# %% [markdown]
# # Deciding for all sizes
# > Is it so for every size? Yes, no with the smallest sizes that fail, or not known.

# %% [markdown]
# Every requirement on a program's shapes comes down to one of three questions about an expression `p` of sizes: is it 0, is
# it never 0, is it at least 0? This page answers them for all sizes at once, under what is known: sizes are at least 1,
# and whatever the program itself has checked.
#
# Three means, cheapest first. The normal form decides most questions at once. Small sizes are tried in order, which finds
# the smallest counterexample. What is left (order and divisibility) goes to z3, which is imported only then.

# %%
#| hide
#| export
import itertools
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Iterable, Iterator

from bendml.shape.sizes import Dim, DimError, Floor, MAX_TEXT, evaluate, named, names_of, read_tree, substitute
import ast


# %% [markdown]
# ## Claims

# %%
#| export
@dataclass(frozen=True)
class Claim:
    "`dim == 0`, `dim != 0` or `dim >= 0`, as it was written."
    dim: Dim
    kind: str       # '==', '!=' or '>='
    text: str = ''  # what to show for it
    def __str__(self): return self.text or f'{self.dim} {self.kind} 0'
    def __invert__(self) -> 'Claim':
        if self.kind == '>=': return Claim(-self.dim - 1, '>=', _negated(self.text))
        return Claim(self.dim, '!=' if self.kind == '==' else '==', _negated(self.text))


# %%
#| export
_OPPOSITE = {'==': '!=', '!=': '==', '<=': '>', '>': '<=', '>=': '<', '<': '>='}
def _negated(text: str) -> str:
    parts = ((text.partition(f' {op} '), op) for op in ('==', '!=', '<=', '>=', '<', '>'))
    left, op, right = next(((a, op, b) for (a, found, b), op in parts if found), ('', '', ''))
    return f'{left} {_OPPOSITE[op]} {right}' if op else ''


# %%
#| export
def claim(
    left: Dim | int,
    op: str,          # == != < <= > >=
    right: Dim | int,
) -> Claim:
    "The claim `left op right`."
    a, b = Dim(left), Dim(right)
    text = f'{a} {op} {b}'
    match op:
        case '==' | '!=': return Claim(a - b, op, text)
        case '>=': return Claim(a - b, '>=', text)
        case '>': return Claim(a - b - 1, '>=', text)
        case '<=': return Claim(b - a, '>=', text)
        case '<': return Claim(b - a - 1, '>=', text)
    raise DimError(f'{op!r} is not a comparison')


# %%
#| export
_COMPARISONS = {ast.Eq: '==', ast.NotEq: '!=', ast.Lt: '<', ast.LtE: '<=', ast.Gt: '>', ast.GtE: '>='}


# %%
#| export
def parse_claim(text: str) -> list[Claim]:
    "Read `C % H == 0`, `0 <= p < N` or `n >= 3 and d >= 2`: one claim for each comparison; nothing is run."
    if len(text) > MAX_TEXT: raise DimError(f'a condition of {len(text)} characters; at most {MAX_TEXT} are read')
    try: tree = ast.parse(text.strip(), mode='eval').body
    except (SyntaxError, RecursionError) as e: raise DimError(f'{text!r} is not a condition on sizes: {getattr(e, "msg", e)}') from None
    if isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And) or isinstance(tree, ast.Tuple):
        return [c for part in (tree.values if isinstance(tree, ast.BoolOp) else tree.elts) for c in parse_claim(ast.unparse(part))]
    if not isinstance(tree, ast.Compare) or any(type(op) not in _COMPARISONS for op in tree.ops):
        raise DimError(f'{text!r} is not a condition on sizes; write for example "C % H == 0" or "T <= 1024"')
    sides = [read_tree(t) for t in (tree.left, *tree.comparators)]
    texts = [ast.unparse(t) for t in (tree.left, *tree.comparators)]
    return [replace(claim(a, s := _COMPARISONS[type(op)], b), text=f'{x} {s} {y}')
            for a, op, b, x, y in zip(sides, tree.ops, sides[1:], texts, texts[1:])]


# %%
B, C, H, T = map(Dim, 'BCHT')
parse_claim('0 <= T < C'), ~claim(C % H, '==', 0)


# %% [markdown]
# ## What is known
#
# An equation is used up at once where it can be: `n == 2*m` replaces `n` everywhere. That `H` divides `C` becomes
# `C = H*q` with a new name for the quotient. Equations that cannot be solved for a name, such as `r1*c1 == r2*c2`, rewrite
# one of their terms.

# %%
#| export
@dataclass(frozen=True)
class Facts:
    "What is known about sizes: lower bounds, solved equations, and the claims that hold."
    lower: tuple[tuple[str, int | None], ...] = ()  # a name's smallest value; 1 where none is given, None: no bound
    solved: tuple[tuple[str, Dim], ...] = ()        # name -> what it equals
    rules: tuple[tuple[tuple, int, Dim], ...] = ()  # (monomial, factor, rest): factor*monomial equals rest
    claims: tuple[Claim, ...] = ()                  # everything that was assumed, in order

    def least(self, name: str) -> int | None: return dict(self.lower).get(name, 1)

    def normal(self, dim: Dim) -> Dim:
        "The size with everything known put in."
        for _ in range(20):
            before, dim = dim, _rewritten(substitute(dim, dict(self.solved)), self.rules)
            if dim == before: return dim
        return dim

    def put_in(self, dim: Dim) -> Dim:
        "The size with the solved names put in, and no more: a rule would rewrite the claim that it comes from to 0 == 0."
        for _ in range(20):
            before, dim = dim, substitute(dim, dict(self.solved))
            if dim == before: break
        return dim

    def shown(self, dim: Dim) -> Dim:
        "The size in the names that were written: only those that nobody named are put in."
        fresh = {n: d for n, d in self.solved if "'" in n}
        return substitute(dim, fresh) if fresh else dim


# %%
#| export
def _rewritten(dim: Dim, rules: Iterable[tuple[tuple, int, Dim]]) -> Dim:
    "Apply each rule to each term that it divides, once."
    from bendml.shape.sizes import _quotient
    for monomial, factor, rest in rules:
        for m, c in dim.terms:
            left = _quotient(m, monomial)
            if left is not None and c % factor == 0:
                dim = dim + (rest - Dim({monomial: factor}))*Dim({left: c//factor})
    return dim


# %% [markdown]
# To assume a claim is to add it and, if it is an equation, to solve it.

# %%
#| export
def bound(facts: Facts, name: str, least: int | None) -> Facts:
    "A name's smallest value, in place of 1; None: it may be anything."
    return replace(facts, lower=(*((n, b) for n, b in facts.lower if n != name), (name, least)))


# %%
#| export
def assume(facts: Facts, new: Claim) -> Facts:
    "The facts with one more claim."
    facts = replace(facts, claims=(*facts.claims, new))
    dim = facts.normal(new.dim)
    if new.kind == '>=' and (lowered := _lower_bound(dim)):
        name, least = lowered
        old = facts.least(name)
        return facts if old is not None and old >= least else bound(facts, name, least)
    if new.kind == '>=' and _range(facts, dim)[1] == 0: new = replace(new, kind='==')  # at least 0, and at most
    if new.kind != '==' or dim.const is not None: return facts
    return _divides(facts, dim) or _solve(facts, dim) or _as_rule(facts, dim)


# %%
#| export
def _lower_bound(dim: Dim) -> tuple[str, int] | None:
    "`name - c >= 0` is a lower bound."
    match dim.terms:
        case ((((str(name), 1),), 1),): return name, 0
        case ((((str(name), 1),), 1), ((), c)): return name, -c


# %%
#| export
def _solve(facts: Facts, dim: Dim) -> Facts | None:
    "Solve `dim == 0` for a name that stands alone with the factor 1 or -1."
    for m, c in sorted(dim.terms, key=lambda t: (any("'" in str(a) for a, _ in t[0]), str(t[0])),
                       reverse=True):  # a name that nobody wrote goes first
        if len(m) != 1 or m[0][1] != 1 or not isinstance(m[0][0], str) or abs(c) != 1: continue
        name, rest = m[0][0], Dim({k: -c*v for k, v in dim.terms if k != m})
        if name in names_of(rest): continue
        return _replace(facts, name, rest)


# %%
#| export
def _replace(facts: Facts, name: str, value: Dim) -> Facts:
    "Put a value for a name; that the value keeps the name's lower bound is a claim of its own."
    least = facts.least(name)
    keeps = () if least is None or value.const is not None else (Claim(value - least, '>=', f'{value} >= {least}'),)
    solved = tuple((n, substitute(d, {name: value})) for n, d in facts.solved)
    return replace(facts, solved=(*solved, (name, value)), claims=(*facts.claims, *keeps))


# %%
#| export
def _divides(facts: Facts, dim: Dim) -> Facts | None:
    "`C - H*(C//H) == 0`, H divides C, becomes `C = H*q`."
    for m, _ in dim.terms:
        for atom, _ in m:
            if isinstance(atom, Floor) and dim in ((r := atom.num - atom.den*named(atom)), -r):
                match atom.num.terms:
                    case ((((str(name), 1),), 1),) if name not in names_of(atom.den):
                        q = f'({atom})'  # not an identifier, so it cannot be anybody's name
                        least = facts.least(name)
                        facts = bound(facts, q, None if least is None else min(least, 1))
                        return _replace(facts, name, atom.den*named(q))


# %%
#| export
def _as_rule(facts: Facts, dim: Dim) -> Facts:
    "Keep an equation as a rule that rewrites its weightiest term."
    weight = lambda t: (any(isinstance(a, Floor) for a, _ in t[0]), sum(p for _, p in t[0]), str(t[0]))
    m, c = max(dim.terms, key=weight)
    rest = Dim({k: -v for k, v in dim.terms if k != m})
    return replace(facts, rules=(*facts.rules, (m, c, rest) if c > 0 else (m, -c, -rest)))


# %%
facts = assume(Facts(), claim(C % H, '==', 0))
assert facts.normal((C//H)*H - C) == 0
facts = assume(Facts(), parse_claim('r1*c1 == r2*c2')[0])
assert facts.normal(Dim('c1')*Dim('r1')*B - B*Dim('c2')*Dim('r2')) == 0


# %% [markdown]
# ## By the normal form alone
#
# With every name written as its lower bound plus something that is at least 0, a sum whose terms are all at least 0 is
# at least its number.

# %%
#| export
def _shifted(facts: Facts, dim: Dim) -> Dim | None:
    "`dim` over variables that start at 0; None if a name in it has no lower bound."
    least = {n: facts.least(n) for n in names_of(dim)}
    if None in least.values(): return None
    return substitute(dim, {n: named(n) + b for n, b in least.items() if b})


# %%
#| export
def _range(facts: Facts, dim: Dim) -> tuple[int | None, int | None]:
    "Bounds that can be read off the signs: (lower, upper)."
    shifted = _shifted(facts, dim)
    if shifted is None: return None, None
    number = dict(shifted.terms).get((), 0)
    signs = {c > 0 for m, c in shifted.terms if m}
    if any(isinstance(a, Floor) and not _at_least_0(a) for m, _ in shifted.terms for a, _ in m): return None, None
    return number if signs <= {True} else None, number if signs <= {False} else None


# %%
#| export
def _at_least_0(atom: Floor) -> bool:
    return all(c > 0 for d in (atom.num, atom.den) for _, c in d.terms)


# %%
#| export
def _follows(facts: Facts, dim: Dim) -> bool:
    "Is `dim` at least one of the sizes that are assumed to be at least 0?"
    names = names_of(dim)
    return any(c.kind == '>=' and names & names_of(c.dim) and (low := _range(facts, dim - facts.normal(c.dim))[0]) is not None and low >= 0
               for c in facts.claims)


# %%
#| export
def _at_once(facts: Facts, c: Claim) -> bool | None:
    "Decide by the normal form and the signs, or not at all."
    dim = facts.normal(c.dim)
    low, high = _range(facts, dim)
    if c.kind == '>=':
        if low is not None and low >= 0 or _follows(facts, dim): return True
        return False if high is not None and high < 0 or _follows(facts, -dim - 1) else None
    zero = True if dim == 0 else False if dim.const is not None or (low or 0) > 0 or (high or 0) < 0 else None
    return zero if zero is None or c.kind == '==' else not zero


# %%
assert _at_once(Facts(), claim(B*T + B, '>=', 2)) is True
assert _at_once(Facts(), claim(B, '==', 0)) is False
assert _at_once(Facts(), claim(C % H, '==', 0)) is None

# %% [markdown]
# ## By trying small sizes
#
# Sizes are tried in the order of their sum, so the first that fails is the smallest. Besides small numbers, each name
# takes the numbers that occur in the question, and their neighbours: for `T <= 1024` the answer is `T = 1025`.

# %%
#| export
TRIES = 3000  # assignments of sizes tried before z3 is asked


# %%
#| export
@lru_cache(20_000)
def _open_claims(facts: Facts) -> tuple[Claim, ...]:
    "What the solved names do not decide by themselves."
    return tuple(c for c in (replace(c, dim=facts.put_in(c.dim)) for c in facts.claims) if c.dim.const is None)


# %%
#| export
def _involved(facts: Facts, dims: list[Dim]) -> tuple[list[str], list[Claim]]:
    "The names that the question depends on, and the claims about them."
    names = frozenset().union(*map(names_of, dims))
    claims = _open_claims(facts)
    while more := [c for c in claims if names_of(c.dim) & names and not names_of(c.dim) <= names]:
        names = names.union(*(names_of(c.dim) for c in more))
    return sorted(names), [c for c in claims if names_of(c.dim) & names]


# %%
#| export
def _numbers(dim: Dim) -> set[int]:
    found = {abs(c) for m, c in dim.terms if not m}
    for m, _ in dim.terms:
        for atom, _ in m:
            if isinstance(atom, Floor): found |= _numbers(atom.num) | _numbers(atom.den)
    return found


# %%
#| export
def _candidates(facts: Facts, names: list[str], dims: list[Dim]) -> Iterator[tuple[int, ...]]:
    "Assignments of sizes, smallest sum first."
    special = sorted({n + d for dim in dims for n in _numbers(dim) if n > 3 for d in (-1, 0, 1)})[-6:]
    each = max(2, int(TRIES**(1/max(len(names), 1))))
    least = [facts.least(n) for n in names]
    values = []
    for low in least:
        small = range(low, low + min(each, 8)) if low is not None else sorted(range(-2, 4), key=abs)
        values.append([*small, *(s for s in special if s not in small and (low is None or s >= low))][:each])
    return sorted(itertools.islice(itertools.product(*values), 20*TRIES), key=lambda v: (sum(map(abs, v)), v))


# %%
#| export
def _holds(c: Claim, sizes: dict[str, int]) -> bool | None:
    "Is it so for these sizes? None where a size has no value, in a division by 0."
    try: value = evaluate(c.dim, sizes)
    except ZeroDivisionError: return None
    return value == 0 if c.kind == '==' else value != 0 if c.kind == '!=' else value >= 0


# %%
#| export
def _tried(facts: Facts, goal: Claim, names: list[str], known: list[Claim]) -> dict[str, int] | None:
    "The smallest sizes at which the goal fails though everything known holds."
    for values in _candidates(facts, names, [goal.dim, *(c.dim for c in known)]):
        sizes = dict(zip(names, values))
        if _holds(goal, sizes) is False and all(_holds(c, sizes) for c in known): return sizes


# %% [markdown]
# ## By z3
#
# Products of names make the question undecidable in general, so z3 gets a limit of work, and "unknown" is an answer. It is
# never taken for a yes.

# %%
#| export
def _by_z3(facts: Facts, goal: Claim, names: list[str], known: list[Claim]) -> bool | dict[str, int] | None:
    "True, or sizes at which the goal fails, or None: not known."
    import z3
    solver = z3.Solver()
    solver.set('rlimit', 3_000_000)
    solver.set('timeout', 4000)
    var = {n: z3.Int(n) for n in names}
    def term(dim: Dim):
        return z3.Sum([z3.IntVal(c)*z3.Product([z3.IntVal(1), *(atom(a) for a, p in m for _ in range(p))]) for m,
                       c in dim.terms] or [z3.IntVal(0)])
    def atom(a):
        if isinstance(a, str): return var[a]
        solver.add(term(a.den) > 0)
        return term(a.num)/term(a.den)  # z3's division rounds down where the divisor is positive
    def formula(c: Claim): return {'==': lambda t: t == 0, '!=': lambda t: t != 0, '>=': lambda t: t >= 0}[c.kind](term(c.dim))
    for n in names:
        if facts.least(n) is not None: solver.add(var[n] >= facts.least(n))
    for c in known: solver.add(formula(c))
    solver.add(z3.Not(formula(goal)))
    answer = solver.check()
    if answer == z3.unsat: return True
    if answer == z3.unknown: return None
    model = solver.model()
    return {n: model.eval(v, model_completion=True).as_long() for n, v in var.items()}


# %% [markdown]
# ## Together

# %%
#| export
@dataclass(frozen=True)
class Verdict:
    "`holds`: True, False with the smallest sizes that fail, or None: not known."
    holds: bool | None
    fails_at: tuple[tuple[str, int], ...] = ()  # empty where it fails at every size
    by: str = 'normal form'


# %%
#| export
@lru_cache(20_000)
def _contradictory(facts: Facts) -> bool:
    "Has a claim that was assumed turned out to be false by itself? Then the path has no sizes."
    return any(_holds(replace(c, dim=dim), {}) is False for c in facts.claims if (dim := facts.normal(c.dim)).const is not None)


# %%
#| export
@lru_cache(20_000)
def _decided(facts: Facts, goal: Claim) -> Verdict:
    answer = _at_once(facts, goal)
    if answer is False and _contradictory(facts): return Verdict(True)  # no size comes this way
    if answer or answer is False and facts.normal(goal.dim).const is not None: return Verdict(answer)
    written = names_of(goal.dim) - (_factors(goal.dim) if goal.kind != '>=' else frozenset())
    goal = replace(goal, dim=facts.normal(goal.dim))
    names, known = _involved(facts, [goal.dim])
    if (sizes := _tried(facts, goal, names, known)) is not None: return Verdict(False, _original(facts, sizes, written), 'trying')
    if answer is False: return Verdict(False)
    answer = _by_z3(facts, goal, names, known)
    if isinstance(answer, dict): return Verdict(False, _original(facts, answer, written), 'z3')
    return Verdict(answer, by='z3')


# %%
#| export
def _original(facts: Facts, sizes: dict[str, int], written: frozenset[str]) -> tuple[tuple[str, int], ...]:
    "The sizes of the names that were written, those that a fact has replaced included."
    for name, value in facts.solved:
        if names_of(value) <= sizes.keys(): sizes = sizes | {name: evaluate(value, sizes)}
        if quotients := {n for n in names_of(value) if n[0] == '('}:  # `C = H*(C//H)`: the quotient is no size of the program
            if name in written or written & quotients: written = (written | {name} | names_of(value)) - quotients
    return tuple(sorted((n, v) for n, v in sizes.items() if n in written))


# %%
#| export
def _factors(dim: Dim) -> frozenset[str]:
    "The names that are a factor of every term: where they are 1 they do not matter."
    each = [frozenset((a, p) for a, p in m if isinstance(a, str)) for m, _ in dim.terms]
    inside = frozenset().union(*(names_of(a.num) | names_of(a.den) for m, _ in dim.terms for a, _ in m if isinstance(a, Floor)))
    return frozenset(a for a, _ in frozenset.intersection(*each)) - inside if len(each) > 1 else frozenset()


# %%
#| export
def decide(
    facts: Facts,
    goal: Claim,
) -> Verdict:
    "Does the claim hold at every size that the facts allow?"
    return _decided(facts, goal)


# %%
#| export
def impossible(facts: Facts) -> bool | None:
    "Do no sizes satisfy all of it? None: no small ones do, and z3 does not know of others."
    if _contradictory(facts): return True
    known = _open_claims(facts)
    names, never = sorted(frozenset().union(*(names_of(c.dim) for c in known))), claim(1, '==', 0)
    if _tried(facts, never, names, known) is not None: return False
    answer = _by_z3(facts, never, names, known)
    return False if isinstance(answer, dict) else answer


# %%
#| export
def possible(facts: Facts, goal: Claim) -> bool:
    "Is there a size, under the facts, at which it holds? (Yes where it is not known.)"
    return decide(facts, ~goal).holds is not True


# %%
assert decide(Facts(), claim(C % H, '==', 0)) == Verdict(False, (('C', 1), ('H', 2)), 'trying')
under = assume(Facts(), claim(T, '<=', 1024))
assert decide(under, claim(T, '<', 1024)).fails_at == (('T', 1024),)
assert decide(assume(under, claim(T % 2, '==', 0)), claim(2*(T//2), '==', T)).holds
assert decide(assume(Facts(), claim(T, '>=', C)), claim((T - C)//2, '<=', T)).holds
assert impossible(assume(Facts(), claim(T % 2, '==', 3))) and impossible(assume(under, claim(T, '==', 2*C + 1))) is False
decide(Facts(), claim((T - 3)//2 + 1, '<=', T))

# %% [markdown]
# ## What this does not show
#
# "Not known" is possible: whole numbers with products are undecidable, and z3's work is bounded. What asks here treats it
# as a no. Names are read as sizes of any length; that an array of such a size fits into memory is not considered.
