# %%
#| default_exp laws.prove

# %% [markdown]
# # Proof
# > Ask both solvers, run the law as well, and say which of the two happened.

# %% [markdown]
# When a solver does not prove a claim, there are two reasons: the claim is false, or the proof needs help. Which one it is
# matters more than anything else that we could say. So a law is also run, as the Python function that it is, on all small
# values, smallest first. A false claim about lists and numbers is almost always false for a very small list and a very
# small number, and the first one found is the one to look at.

# %%
#| hide
#| export
import ast, html, inspect, itertools, random
from dataclasses import replace
from functools import lru_cache
from typing import Callable, NamedTuple
from weakref import WeakKeyDictionary

from bendml.laws.datatypes import LawError, random_value, tuples
from bendml.laws.induct import Cited, Law, Obligation, obligations
from bendml.laws.read import changed
from bendml.laws.solvers import SOLVERS, Answer, discharge
from bendml.laws.terms import INT, Sort


# %% [markdown]
# ## Running a law
#
# A claim is a function whose asserts are what it assumes. An `AssertionError` says that these values do not count;
# `False` says that the claim is false for them.

# %%
#| export
class Found(NamedTuple):
    "What running a claim showed."
    counterexample: tuple | None   # the first values for which it is false
    passed: int                    # how many values it held for
    skipped: int                   # how many did not meet its assumptions
    problem: str = ''              # how the function failed on the counterexample, if it raised

QUICK, FULL = (400, 60), (3_000, 500)   # how many small and how many random values are tried


# %%
#| export
@lru_cache(64)   # a law and each of its mutants are run on the same ones
def candidates(sorts: tuple[Sort, ...], small: int, rand: int, biggest: int = 12) -> tuple[tuple, ...]:
    "Tuples of values: all small ones in order of size, then random ones."
    ordered = itertools.chain.from_iterable(tuples(sorts, n) for n in range(biggest + 1))
    rng = random.Random(0)
    return (*itertools.islice(ordered, small), *(tuple(random_value(s, rng) for s in sorts) for _ in range(rand if sorts else 0)))


# %%
#| export
def _run(claim: Callable, args: tuple) -> bool | str | None:
    "Whether a claim holds for values; None if they do not meet its assumptions; what it raised, if it raised."
    try: return claim(*args) is True
    except AssertionError: return None
    except Exception as e: return f'{type(e).__name__}: {e}'


# %%
#| export
def search(claim: Callable, sorts: tuple[Sort, ...], small: int, rand: int) -> Found:
    "Run a claim on many values, until it is false for some."
    passed = skipped = 0
    for args in candidates(sorts, small, rand):
        held = _run(claim, args)
        if held is None: skipped += 1
        elif held is True: passed += 1
        else:
            args = _smaller(claim, sorts, args)
            return Found(args, passed, skipped, held if isinstance(held := _run(claim, args), str) else '')
    return Found(None, passed, skipped)


# %%
#| export
def _smaller(claim: Callable, sorts: tuple[Sort, ...], args: tuple) -> tuple:
    "A counterexample with smaller values, if replacing one at a time finds any."
    for i, s in enumerate(sorts):
        for value, in candidates((s,), 200, 0):
            if value == args[i]: break
            trial = (*args[:i], value, *args[i + 1:])
            if _run(claim, trial) not in (True, None): args = trial; break
    return args


# %%
search(lambda n, m: n*n + m*m != 25 or n == 0 or m == 0, (INT, INT), *QUICK)


# %% [markdown]
# A counterexample alone can be hard to read. What the two sides are, for these values, is easier.

# %%
#| export
def sides(law: Law, args: tuple) -> list[str]:
    "For these values, what the parts of a law's claim are."
    names = {**law.fn.__globals__, **inspect.getclosurevars(law.fn).nonlocals, **{p.name: v for p, v in zip(law.params, args)}}
    out = []
    for s in law.node.body:
        if isinstance(s, ast.Assign): names[s.targets[0].id] = eval(compile(ast.Expression(s.value), law.file, 'eval'), names)
        if not isinstance(s, ast.Return): continue
        parts = [s.value.left, *s.value.comparators] if isinstance(s.value, ast.Compare) else s.value.args if isinstance(s.value, ast.Call) else [s.value]
        for e in parts:
            if not isinstance(e, (ast.Constant, ast.Name)): out.append(f'{ast.unparse(e)} = {eval(compile(ast.Expression(e), law.file, "eval"), names)!r}')
    return out


# %% [markdown]
# ## Theorems
#
# Only `prove` makes a `Theorem`. Its verdict is one of these.
#
# | verdict | meaning |
# |---|---|
# | `confirmed` | z3 and cvc5 both proved every obligation, and every cited law is confirmed or an axiom |
# | `proved` | z3 did; cvc5 did not answer |
# | `refuted` | false, with the smallest values found for which it is |
# | `open` | neither; so many values passed |
# | `vacuous` | proved, but nothing found meets what it assumes: it may say nothing at all |
# | `stale` | something it speaks of was changed since it was read |
# | `assumed` | an axiom about an abstract function |

# %%
#| export
_SEAL = object()


# %%
#| export
class Theorem:
    "What `prove` found out about a law. It cannot be made in any other way, nor changed."
    law: Law
    verdict: str
    obligations: tuple[Obligation, ...]
    cites: tuple['Theorem', ...]
    found: Found                    # what running it showed
    reason: str                     # why it is not proved

    def __init__(self, seal: object, **parts):
        if seal is not _SEAL: raise TypeError('a Theorem is made by prove(law), and in no other way')
        self.__dict__.update(parts)
    def __setattr__(self, *_): raise AttributeError('a Theorem does not change')

    @property
    def holds(self) -> bool: return self.verdict in ('proved', 'confirmed', 'assumed')
    @property
    def seconds(self) -> float: return sum(a.seconds for o in self.obligations for a in o.answers)
    @property
    def axioms(self) -> tuple[Law, ...]:
        "The axioms that it rests on, however deep."
        own = (self.law,) if self.law.assumed else ()
        return tuple(dict.fromkeys(own + tuple(a for t in self.cites for a in t.axioms)))
    def __repr__(self): return report(self)
    def _repr_html_(self):
        first, *rest = report(self).splitlines()
        colour = '#1a7f37' if self.holds else '#b35900' if self.verdict == 'open' else '#cf222e'
        return f'<pre><b style="color: {colour}">{html.escape(first)}</b>\n{html.escape(chr(10).join(rest))}</pre>'


# %%
#| export
def statement(law: Law) -> str:
    "What a law says, in symbols."
    groups = itertools.groupby(law.params, lambda p: p.sort)
    given = '; '.join(f"{', '.join(p.name for p in ps)}: {sort}" for sort, ps in groups)
    lines = [f'  where {ast.unparse(s)}' for s in law.node.body if isinstance(s, ast.Assign)]
    lines += [f'  given {ast.unparse(s.test)}' for s in law.node.body if isinstance(s, ast.Assert)]
    return '\n'.join([f'for all {given}'*bool(given), *lines, '  ' + ast.unparse(law.node.body[-1].value)]).lstrip('\n')

def _how(law: Law) -> str: return f'by induction on {law.induct}' if law.induct else 'from what it cites' if law.cite else 'from the definitions'


# %%
#| export
def report(t: Theorem) -> str:
    "A theorem as text: verdict, statement, and the proof, or what stands against it."
    out = [f'{t.law.__name__}: {t.verdict}', *statement(t.law).splitlines()]
    if t.verdict == 'assumed': return '\n'.join([*out, f'an axiom; its model passes for {t.found.passed} values'])
    if t.verdict == 'refuted':
        out += ['it is false for', *(f'  {p.name} = {v!r}' for p, v in zip(t.law.params, t.found.counterexample)), 'because then']
        return '\n'.join(out + [f'  {line}' for line in [t.found.problem] if line] + [f'  {line}' for line in sides(t.law, t.found.counterexample) if not t.found.problem])
    if t.reason: out.append(t.reason)
    return '\n'.join(out + tree(t))


# %%
#| export
def tree(t: Theorem, indent: str = '', seen: set | None = None) -> list[str]:
    "The proof: its cases with what both solvers said, and the proofs of the laws that it cites."
    seen = set() if seen is None else seen
    out = [f'{indent}proof {_how(t.law)}, {1000*t.seconds:.0f} ms'] if t.obligations and not indent else []
    for o in t.obligations if not indent else ():
        said = ', '.join(f'{a.solver} {a.result}{f" ({a.reason})" if a.reason else ""}' for a in o.answers)
        out.append(f'  {o.label or "the claim"}: {said}')
    for c in t.cites:
        known = c in seen
        seen.add(c)
        out.append(f'{indent}  cites {c.law.__name__}: {c.verdict}' + f', {_how(c.law)}'*bool(c.obligations))
        if not known: out += tree(c, indent + '  ', seen)
    return out


# %% [markdown]
# ## `prove`
#
# First the law is run on some values, since a counterexample ends the matter. Then come the solvers. If they do not prove
# it, it is run on many more values. The hypotheses of a law that is proved must hold for at least one of them: a law about
# nothing is easily proved.

# %%
#| export
_THEOREMS: WeakKeyDictionary = WeakKeyDictionary()   # law -> what was last found out about it
_ANSWERS: dict[tuple, Answer] = {}                   # (text, solver, seed) -> its answer, in this process

def ask(o: Obligation, solvers: tuple[str, ...] = SOLVERS, seed: int = 0) -> Obligation:
    "The obligation with the solvers' answers."
    new = tuple(s for s in solvers if (o.text, s, seed) not in _ANSWERS)
    answers = {s: _ANSWERS.get((o.text, s, seed)) for s in solvers} | {a.solver: a for a in (discharge(o.text, new, seed=seed) if new else ())}
    _ANSWERS.update({(o.text, s, seed): a for s, a in answers.items() if a.reason not in ('wall', 'crash')})
    return replace(o, answers=tuple(answers.values()))


# %%
#| export
def prove(law: Law) -> Theorem:
    "Find out about a law, and about the laws it cites: run it, and ask both solvers."
    if not isinstance(law, Law): raise LawError(repr(law)[:60], 'not a law', 'a function with @law above it', type(law).__name__)
    if law.hyps and not __debug__: raise LawError(f'{law.where} in {law.__name__}', 'asserts do not run', 'Python', 'Python with -O', 'python -O leaves out what a law assumes')
    stale, kept = changed(law), _THEOREMS.get(law)
    cites = tuple(dict.fromkeys(prove(c.law if isinstance(c, Cited) else c) for c in law.cite))
    if kept and kept.cites == cites and not stale and kept.verdict != 'stale': return kept
    done, sorts = (), tuple(p.sort for p in law.params)
    found = search(law.fn, sorts, *QUICK) if not stale else Found(None, 0, 0)
    if stale: verdict, reason = 'stale', f'{stale} was changed since the law was read'
    elif found.counterexample is not None: verdict, reason = 'refuted', 'false for some values'
    elif law.assumed: verdict, reason = ('assumed', '') if found.passed else ('vacuous', 'none of its samples meets what it assumes')
    else:
        done = tuple(map(ask, obligations(law)))
        verdict, reason = _judge(done, cites)
        named = [c for t in (law, *(t.law for t in cites if t.holds)) if (c := changed(t))]   # a hint names more than the law did
        if named: verdict, reason = 'open', f'{named[0]} was changed before a hint named it.'
        if verdict == 'open' or not found.passed: found = search(law.fn, sorts, *FULL)
        if found.counterexample is not None: verdict, reason = 'refuted', 'false for some values'
        elif verdict == 'open': reason = f'{found.passed} values pass. {reason}'
        elif not found.passed: verdict, reason = 'vacuous', f'none of {found.skipped} values meets what it assumes'
    _THEOREMS[law] = Theorem(_SEAL, law=law, verdict=verdict, obligations=done, cites=cites, found=found, reason=reason)
    return _THEOREMS[law]


# %%
#| export
def _judge(done: tuple[Obligation, ...], cites: tuple[Theorem, ...]) -> tuple[str, str]:
    "The verdict on a law that was not refuted, and the reason if it is open."
    if bad := [t for t in cites if not t.holds]: return 'open', f'It cites {bad[0].law.__name__}, which is {bad[0].verdict}.'
    said = {solver: [o.said(solver) for o in done] for solver in SOLVERS}
    if 'sat' in said['z3'] + said['cvc5'] or not done or set(said['z3']) != {'unsat'}:
        cases = ', '.join(o.label or 'the claim' for o in done if o.said('z3') != 'unsat' or o.said('cvc5') == 'sat')
        return 'open', f'No proof yet of: {cases}. It may need a lemma (cite), a more general hypothesis (gen), or a look at two constructors (depth=2).'
    return ('confirmed' if set(said['cvc5']) == {'unsat'} and all(t.verdict != 'proved' for t in cites) else 'proved'), ''


# %% [markdown]
# ## `@law`

# %%
#| export
def law(fn: Callable | None = None, **options) -> Law:
    "A claim: asserts are what it assumes, the value it returns is what it claims. Options are the fields of `Law`."
    if fn is None: return lambda f: law(f, **options)
    return Law(fn, **options)


# %%
#| export
def axiom(fn: Callable | None = None, **options) -> Law:
    "A claim about abstract functions that is taken for granted. It is run on their models, and named by everything that rests on it."
    return law(fn, assumed=True, **options) if fn else lambda f: law(f, assumed=True, **options)


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


# %%
@law(induct='x')
def add_zero(x: Nat): return add(x, Z()) == x

prove(add_zero)


# %%
@law(induct='x')
def add_idempotent(x: Nat): return add(x, x) == x

prove(add_idempotent)


# %% [markdown]
# A law about nothing:

# %%
@law
def nothing(x: Nat, y: Nat):
    assert add(x, y) == S(x)
    assert y == Z()
    return x == y

prove(nothing)

# %% [markdown]
# A name that was given to something else after the law was read:

# %%
old, add = add, lambda x, y: x
prove(add_idempotent)

# %%
add = old

# %% [markdown]
# ## What this does not show
#
# `confirmed` is as good as what it rests on: that the equations say what Python does, that the cases of an induction are
# the right ones, that the printer writes what the term says, and that z3 or cvc5 is right. The page about
# [trust](94_trust.ipynb) says how each of these can be checked.
