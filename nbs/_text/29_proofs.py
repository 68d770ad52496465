# %%
#| default_exp kernel.proofs

# %% [markdown]
# # Proofs
# > Each condition put to two solvers; what was proved is remembered by what it was proved of.

# %% [markdown]
# A kernel is proved when each of its conditions is. z3 is asked first, and tells which of the facts it used: many are known, and few
# are needed. cvc5 confirms the condition from these few, together with what is known about products, and so it seldom has to search.
# For what z3 cannot prove, small sizes are tried: a condition that fails for them need not be proved.

# %%
#| hide
#| export
import ast, hashlib, importlib.metadata, importlib.util
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Callable, Iterator, NamedTuple

from bendml.kernel.conditions import alike, grounded, hinted, noted, text, told
from bendml.kernel.contracts import KernelError, Source
from bendml.kernel.functional import broken_promise, functional
from bendml.kernel.calls import KernelWalk
from bendml.kernel.search import refusal, smallest
from bendml.kernel.state import Check
from bendml.laws.kept import Kept, name_of
from bendml.laws.read import Function, function_of, read_source
from bendml.laws.reflect import symbols
from bendml.laws.solvers import SOLVERS, Answer, discharge
from bendml.laws.terms import FALSE, App, Forall, Term, Var, substitute, subterms


# %%
#| export
def needed(check: Check, core: tuple[str, ...]) -> Check:
    "A condition with no more facts than z3 used; all of them if it did not say."
    facts = told(check)
    return check._replace(facts=tuple(facts[n] for n in sorted(int(c.removeprefix('known')) for c in core if c != 'goal'))) if core else check

def _ask(said: dict[str, Answer], solver: str, check: Check, wall: float, named: bool = False, weaker: bool = False) -> bool:
    "One more try, unless there is an answer; is there none yet? From a weaker condition only a proof counts."
    if solver not in said or said[solver].result == 'unknown':
        spent = said[solver].seconds if solver in said else 0.0
        a, = discharge(text(check, named), (solver,), wall=wall)
        said[solver] = replace(a, seconds=a.seconds + spent, result='unknown' if weaker and a.result == 'sat' else a.result,
                               core=a.core or ('goal',)*named)   # it used no fact: the goal holds by itself
    return said[solver].result == 'unknown'

def _prove(check: Check) -> tuple[dict[str, Answer], Check | None]:
    "What z3 says, and of which condition; of none if there are small sizes for which it fails."
    ask = partial(_ask, said := {})
    if ask('z3', check, 0.7, named=True):
        if ask('z3', check, 0.7) and ask('cvc5', check, 0.7) and smallest(check, most=3, seconds=1.5): return said, None
        if 'sat' not in (a.result for a in said.values()): ask('z3', check := hinted(check), 5.0, named=True)
    return said, check

def _confirm(said: dict[str, Answer], check: Check | None) -> tuple[dict[str, Answer], bool]:
    "And what cvc5 says, to the facts that z3 used before it is asked about all of them; and were those few enough?"
    if check is None or any(a.result == 'sat' for a in said.values()): return said, False
    ask, few = partial(_ask, said), needed(check, said['z3'].core)
    wide = 'cvc5' in said and said['cvc5'].result == 'unsat'   # it knew all of them
    ask('cvc5', hinted(few), 0.3)
    if said['cvc5'].reason == 'wall': wide = not ask('cvc5', hinted(check), 0.5)   # more facts, and perhaps less to search
    if (ask('cvc5', few, 0.7) and ask('cvc5', grounded(few), 0.7, weaker=True) and ask('cvc5', alike(grounded(few)), 2.0, weaker=True)
            and ask('cvc5', hinted(few), 5.0)): wide = not ask('cvc5', check, 2.0)
    return said, not wide

def proved(said: dict[str, Answer], by: Callable) -> bool:
    "Is something proved by `any` solver, or by `all` of them?"
    return by(s in said and said[s].result == 'unsat' for s in SOLVERS)


# %% [markdown]
# ## Instances of what was proved
#
# From $i < n$ and $0 \le m$ follows $i m + m \le n m$: what was proved of these symbols holds of any others, since nothing else was known
# of them. Half of all conditions are such an instance of one that was proved before. A lemma is what was proved and the facts that it took.
# Whether it says something about another condition is a matter of putting in the other symbols and looking.

# %%
#| export
class Lemma(NamedTuple):
    "That the goal follows from the facts, for all values of their symbols."
    facts: tuple[Term, ...]
    goal: Term
    said: Future     # what both solvers said to it, and whether these facts were enough for both

def gives(lemma: Lemma, check: Check, at: dict[Var, Var]) -> bool:
    "Is a condition what a lemma says, with these symbols in the place of its own?"
    return substitute(lemma.goal, at) == check.goal and set(check.facts).issuperset(substitute(f, at) for f in lemma.facts)


# %% [markdown]
# Which symbols? Those that stand in the same places. A goal must have the form of the lemma's, and for each of its facts there must be one of
# the same form, so that all agree on the symbols.

# %%
#| export
@lru_cache(None)
def form(t: Term) -> tuple[tuple, tuple[Var, ...]]:
    "How a term looks when its symbols have no names, and the symbols in order. A `for all` is only like itself."
    if any(isinstance(s, Forall) for s in subterms(t)): return (t,), t.free
    parts = list(subterms(t))
    return tuple((s.op, len(s.args)) if isinstance(s, App) else s.sort for s in parts), tuple(s for s in parts if isinstance(s, Var))

def together(at: dict, here: tuple[Var, ...], there: tuple[Var, ...]) -> dict | None:
    "Symbols in the place of others, and these ones too; None if they do not agree."
    at = dict(at)
    return at if all(at.setdefault(v, w) == w for v, w in zip(here, there)) else None

def places(lemma: Lemma, known: dict[tuple, list], at: dict | None) -> dict | None:
    "The symbols that make each fact of a lemma one of those that are known, by their forms: the first that agree with those before."
    for f in lemma.facts if at is not None else ():
        look, symbols = form(f)
        at = next((more for other in known.get(look, ()) if (more := together(at, symbols, other)) is not None), None)
        if at is None: return None
    return at


# %%
#| export
_LEMMAS: dict[tuple, list[Lemma]] = {}   # the goal's form -> what was proved

def learn(check: Check, said: Future) -> None:
    "Keep what was proved, the facts with the fewest other symbols than the goal's first: those leave the least choice."
    goal = {*check.goal.free}
    near = sorted(told(check), key=lambda f: (len({*f.free} - goal), -len({*f.free} & goal)))
    _LEMMAS.setdefault(form(check.goal)[0], []).append(Lemma(tuple(near), check.goal, said))

def instance(check: Check) -> Lemma | None:
    "A lemma that gives a condition; None if there is none."
    look, symbols = form(check.goal)
    known: dict[tuple, list] = {}
    for f in told(check)*(look in _LEMMAS): known.setdefault(form(f)[0], []).append(form(f)[1])
    for lemma in _LEMMAS.get(look, ()):
        at = places(lemma, known, together({}, form(lemma.goal)[1], symbols))
        if at is not None and gives(lemma, check, {v: w for v, w in at.items() if v != w}): return lemma
    return None


# %% [markdown]
# A specification that never ends would say anything. That its measure shrinks was proved when it was read, and belongs to the kernel's
# proof too.

# %%
#| export
def specifications(claims: list[Check]) -> list[Function]:
    "The functions that claims speak of, and those that these call."
    found, todo = {}, [s.owner for s in symbols(*(t for c in claims for t in (*c.facts, c.goal)))]
    while todo:
        if (f := todo.pop()) not in found:
            found[f] = None
            todo += [g for _, g in f.uses.values() if g]
    return list(found)

def _specification(source: Source, check) -> dict[str, Answer]:
    "What the solvers say to what a specification needs; `KernelError` if z3 does not prove it."
    said = {a.solver: a for a in discharge(check.text)}
    if said['z3'].result != 'unsat' or said['cvc5'].result == 'sat': raise KernelError(source.where(), 'a specification that may have no value', 'a proof that it ends', check.why)
    return said


# %% [markdown]
# While cvc5 confirms one condition, z3 is at the next. What is asked does not depend on who is faster: z3 is asked in order, and what it has
# proved is a lemma for the next condition at once. Should cvc5 not confirm it, or need more facts, that condition is put to both after all.

# %%
#| export
def _asked(checks: list[Check], pool: ThreadPoolExecutor) -> Iterator[tuple[Future, bool]]:
    "What the solvers will have said to each condition, and whether they were asked about another one, of which it is an instance."
    for check in checks:
        if lemma := instance(check): yield lemma.said, True; continue
        said, asked = _prove(check)
        future = pool.submit(_confirm, said, asked)
        if said['z3'].result == 'unsat': learn(needed(asked, said['z3'].core), future)
        yield future, False
        if said['z3'].result != 'unsat' and not proved(future.result()[0], any): return   # one that fails is enough

def _all_answers(checks: list[Check]) -> Iterator[dict[str, Answer]]:
    "What the solvers say to each condition, in order; nothing more after one that neither proves."
    with ThreadPoolExecutor(1) as pool:
        for check, (future, other) in zip(checks, list(_asked(checks, pool))):
            said, few = future.result()
            if not other: yield said
            elif few and proved(said, all): yield {s: Answer(s, 'unsat', 0.0) for s in SOLVERS}
            else: yield _confirm(*_prove(check))[0]


# %%
#| export
@dataclass(frozen=True)
class Proof:
    "That a kernel was proved: of what, how, and in what time."
    name: str
    conditions: int          # how many
    confirmed: int           # how many of them both solvers proved
    values: int              # how many of them are about what is computed
    z3: float                # seconds
    cvc5: float
    solvers: str             # their versions

def prove_source(source: Source) -> Proof:
    "Prove a kernel; `KernelError` with the smallest failing sizes if a condition is not proved."
    walk = KernelWalk(source).run()
    checks, claims = noted(walk), functional(source) if walk.functional else []
    _possible(source)
    found = [_specification(source, c) for c in dict.fromkeys(c for f in specifications(claims) for c in f.checks)]
    for n, (check, said) in enumerate(zip(checks + claims, _all_answers(checks + claims), strict=True)):
        if not proved(said, any) or any(a.result == 'sat' for a in said.values()): raise refusal(source, check) if n < len(checks) else broken_promise(source, check)
        found.append(said)
    seconds = lambda solver: round(sum(said[solver].seconds for said in found if solver in said), 3)
    confirmed = sum(proved(said, all) for said in found)
    versions = ', '.join(f'{n} {importlib.metadata.version(p)}' for n, p in (('z3', 'z3-solver'), ('cvc5', 'cvc5')))
    return Proof(source.name, len(found), confirmed, len(found) - len(checks), seconds('z3'), seconds('cvc5'), versions)

def _possible(source: Source) -> None:
    "A contract that nothing can keep would prove everything."
    walk = KernelWalk(source)
    walk.block = lambda stmts: None
    walk.promise = lambda a: None
    try: walk.run()
    except KernelError: return   # what is returned may depend on the body; the full walk has seen it
    check = Check('possible', source.where(), source.node, tuple(walk.facts), FALSE, 'arguments that keep the contract')
    if smallest(check) is None: raise KernelError(source.where(), 'a contract that nothing can keep', 'arguments for which everything in requires holds', 'none were found')


# %% [markdown]
# ## Remembering
#
# Solvers take a quarter of a second for a kernel, and an import should take none. So what was proved is kept, under the hash of
# [all that it was proved of](11b_kept.ipynb): the function's tree, what its names mean, the kernels it calls, and the modules that make the
# conditions. Change a letter of any of them, and the kernel is proved anew before it can be compiled. bendml's own kernels come
# with their proofs, in a file that `bendml kernels --record` writes and the tests prove again; those of other programs are kept
# in the user's cache (`$BENDML_CACHE`, or `~/.cache/bendml`).

# %%
#| export
VERIFIER = ['laws.terms', 'laws.read', 'laws.reflect', *(f'kernel.{m}' for m in (
    'contracts numbers state expressions memory statements loops calls conditions values functional proofs').split())]

@lru_cache
def _verifier() -> str:
    "The modules that make the conditions and judge the answers, as a hash."
    texts = [Path(importlib.util.find_spec(f'bendml.{m}').origin).read_bytes() for m in VERIFIER]
    return hashlib.sha256(b'\0'.join(texts)).hexdigest()

def _meaning(thing: object, inside: tuple = ()) -> str:
    "What a global name means, as a text that changes with it."
    if hasattr(thing, '__kernel__'): return thing.digest
    if hasattr(thing, '__word__'): return f'{thing.__module__}.{thing.__qualname__} {tuple(map(tuple, thing.__word__[1]))} {thing.__word__[0]}'
    if f := function_of(thing) if callable(thing) else None:
        uses = [] if f in inside else [f'{n} = {_meaning(m, (*inside, f))}' for n, (m, _) in sorted(f.uses.items())]
        return ' '.join([thing.__module__, ast.unparse(read_source(thing)[0]), str(f.measured), *uses])
    if isinstance(thing, (int, float, bool)) or type(thing).__module__ == 'numpy': return f'{type(thing).__name__} {thing!r}'
    return f"{getattr(thing, '__module__', '')}.{getattr(thing, '__qualname__', getattr(thing, '__name__', type(thing).__name__))}"

def digest(source: Source, options: str = '') -> str:
    "The hash of all that a proof of a kernel is about."
    parts = [_verifier(), options, ast.unparse(source.node.args), *map(ast.unparse, source.node.body)]
    parts += [f'{p.name}: {p.type!r}' for p in source.params]
    parts += [f'{n} = {_meaning(m)}' for n, m in sorted(source.meanings.items())]
    return name_of(*parts)


# %%
#| export
PROOFS = Kept('proofs', Path(__file__).with_name('proved.json') if '__file__' in globals() else Path('proved.json'))

def remembered(key: str) -> Proof | None:
    "The proof that was made of this, if one was."
    try: return Proof(**found) if (found := PROOFS.get(key)) else None
    except TypeError: return None

def remember(key: str, proof: Proof) -> None:
    "Keep a proof; where that is not possible, it is made again next time."
    PROOFS.put(key, asdict(proof))


# %%
from bendml.kernel.contracts import Buf, Size, f32, prange, read_kernel

def scale(n: Size, a: f32, x: Buf["n", f32]):
    for i in prange(n): x[i] = a*x[i]

p = prove_source(read_kernel(scale))
p.conditions, p.confirmed

# %% [markdown]
# ## What this does not show
#
# - That a file of proofs was not tampered with. It says what was proved on the machine that wrote it; the tests, and
#   `bendml kernels`, prove everything again.
# - That a proof by one version of a solver would be found by another. The versions are written down with it.
