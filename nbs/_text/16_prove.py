# %%
#| default_exp laws.prove

# %% [markdown]
# # Proof
# > Ask both solvers, run the law as well, and say which of the two happened.
#
# When a solver does not prove a claim, there are two reasons: the claim is false, or the proof needs help. Which one it is
# matters more than anything else that we could say. So a law is also run, as the Python function that it is, on all small
# values, smallest first. A false claim about lists and numbers is almost always false for a very small list and a very
# small number, and the first one found is the one to look at.

# %%
#| hide
#| export
import html, itertools, random
from dataclasses import replace
from typing import Callable, Iterator, NamedTuple
from weakref import WeakKeyDictionary

from bendml.laws.datatypes import LawError, random_value, tuples
from bendml.laws.induct import Cited, Law, Obligation, functions, obligations, statement
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

SMALL, RANDOM = 2_000, 300   # how many small and how many random values are tried

def candidates(sorts: tuple[Sort, ...], small: int = SMALL, rand: int = RANDOM, biggest: int = 12) -> Iterator[tuple]:
    "Tuples of values: all small ones in order of size, then random ones."
    ordered = itertools.chain.from_iterable(tuples(sorts, n) for n in range(biggest + 1))
    yield from itertools.islice(ordered, small)
    rng = random.Random(0)
    for _ in range(rand if sorts else 0): yield tuple(random_value(s, rng) for s in sorts)

def search(claim: Callable, sorts: tuple[Sort, ...], small: int = SMALL, rand: int = RANDOM, enough: int | None = None) -> Found:
    "Run a claim on many values until it is false for some, or has held for `enough`."
    passed = skipped = 0
    for args in candidates(sorts, small, rand):
        try: held = claim(*args)
        except AssertionError: skipped += 1; continue
        except Exception as e: return Found(args, passed, skipped, f'{type(e).__name__}: {e}')
        if held is not True: return Found(args, passed, skipped)
        passed += 1
        if passed == enough: break
    return Found(None, passed, skipped)


# %%
search(lambda n, m: n*n + m*m != 25 or n == 0 or m == 0, (INT, INT))

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

class Theorem:
    "What `prove` found out about a law. It cannot be made in any other way, nor changed."
    def __init__(self, seal: object, **parts):
        if seal is not _SEAL: raise TypeError('a Theorem is made by prove(law), and in no other way')
        self.__dict__.update(parts)
    def __setattr__(self, *_): raise AttributeError('a Theorem does not change')
    law: Law
    verdict: str
    obligations: tuple[Obligation, ...]
    cites: tuple['Theorem', ...]
    found: Found | None
    reason: str
    solvers: tuple[str, ...]

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
    def _repr_html_(self): return f'<pre>{html.escape(report(self))}</pre>'

def report(t: Theorem) -> str:
    "A theorem as text: verdict, statement, and the proof."
    out = [f'{t.law.__name__}: {t.verdict}{f" ({t.reason})" if t.reason else ""}', *f'for all{statement(t.law)}'.splitlines()]
    return '\n'.join(out + tree(t, '  '))

def tree(t: Theorem, indent: str = '') -> list[str]:
    "The proof: its cases with both solvers' times, and what it cites."
    how = f'by induction on {t.law.induct}' if t.law.induct else 'directly'
    out = [f'{indent}proof {how}' + (f", citing {', '.join(c.law.__name__ for c in t.cites)}" if t.cites else '')] if t.obligations else []
    for o in t.obligations:
        said = ', '.join(f'{a.solver} {a.result}{f" ({a.reason})" if a.reason else ""} {1000*a.seconds:.0f} ms' for a in o.answers)
        out.append(f'{indent}  {o.label or "the claim"}: {said}')
    return out


# %%
#| export
_THEOREMS: WeakKeyDictionary = WeakKeyDictionary()   # law -> what was last found out about it
_ANSWERS: dict[tuple, Answer] = {}   # (text, solver, seed) -> its answer, in this process

def ask(o: Obligation, solvers: tuple[str, ...], seed: int = 0) -> Obligation:
    "The obligation with the solvers' answers."
    new = tuple(s for s in solvers if (o.text, s, seed) not in _ANSWERS)
    if new:
        for a in discharge(o.text, new, seed=seed): _ANSWERS[o.text, a.solver, seed] = a
    return replace(o, answers=tuple(_ANSWERS[o.text, s, seed] for s in solvers))

def prove(law: Law, solvers: tuple[str, ...] = SOLVERS) -> Theorem:
    "Prove a law, and the laws it cites before it."
    if not isinstance(law, Law): raise LawError(repr(law)[:60], 'not a law', 'a function with @law above it', type(law).__name__)
    stale = changed(law)
    cites = tuple(dict.fromkeys(prove(c.law if isinstance(c, Cited) else c, solvers) for c in law.cite))
    kept = _THEOREMS.get(law)
    if kept and kept.cites == cites and kept.solvers == solvers and not stale: return kept
    done = tuple(ask(o, solvers) for o in obligations(law)) if not stale else ()
    verdict, reason, found = _judge(law, done, cites, stale)
    _THEOREMS[law] = Theorem(_SEAL, law=law, verdict=verdict, obligations=done, cites=cites, found=found, reason=reason, solvers=solvers)
    return _THEOREMS[law]

def _judge(law: Law, done: tuple[Obligation, ...], cites: tuple[Theorem, ...], stale: str) -> tuple[str, str, Found | None]:
    "The verdict, its reason, and what running the law showed."
    if stale: return 'stale', f'{stale} was changed since the law was read', None
    sorts = tuple(p.sort for p in law.params)
    if law.assumed:
        found = search(law.fn, sorts)
        return ('refuted', counterexample(law, found), found) if found.counterexample else ('assumed', 'an axiom', found)
    by = lambda solver: all(o.said(solver) == 'unsat' for o in done)
    sat = [o for o in done if any(a.result == 'sat' for a in o.answers)]
    bad = next((t for t in cites if not t.holds), None)
    if by('z3') and not bad and not sat:
        found = search(law.fn, sorts, enough=1) if law.hyps else None
        if found and found.counterexample: raise AssertionError(f'{law.__name__} is proved, and false for {found.counterexample}: a bug in bendml.laws')
        if found and not found.passed: return 'vacuous', f'none of {found.skipped} values meets what it assumes', found
        if by('cvc5') and all(t.verdict != 'proved' for t in cites): return 'confirmed', '', found
        return 'proved', '', found
    found = search(law.fn, sorts)
    if found.counterexample is not None: return 'refuted', counterexample(law, found), found
    reason = f'{found.passed} values pass'
    if bad: reason += f'; it cites {bad.law.__name__}, which is {bad.verdict}'
    else: reason += f"; no proof of {', '.join(o.label or 'the claim' for o in done if o.said('z3') != 'unsat')}"
    return 'open', reason, found

def counterexample(law: Law, found: Found) -> str:
    "The values for which a law is false, and what the two sides are there."
    at = ', '.join(f'{p.name} = {v!r}' for p, v in zip(law.params, found.counterexample))
    return f'false for {at}' + (f': {found.problem}' if found.problem else '')


# %% [markdown]
# ## `@law`

# %%
#| export
def law(fn: Callable | None = None, **options) -> Law:
    "A claim: asserts are what it assumes, the value it returns is what it claims. Options are the fields of `Law`."
    if fn is None: return lambda f: law(f, **options)
    for name in ('gen', 'cite', 'opaque', 'inline', 'split'):
        value = options.get(name, ())
        options[name] = (value,) if isinstance(value, str) else tuple(value)
    return Law(fn, **options)

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

@law(induct='x')
def add_zero(x: Nat): return add(x, Z()) == x

prove(add_zero)
