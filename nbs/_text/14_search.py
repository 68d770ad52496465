# %%
#| default_exp laws.search

# %% [markdown]
# # Search
# > The smallest values for which a claim is false, found by running the functions.
#
# When a solver does not prove a claim, there are two reasons: the claim is false, or the proof needs help. Which one it is
# matters more than anything else that we could say. So we run the claim, which is a Python function, on all small values,
# smallest first. A false claim about lists and numbers is almost always false for a very small list and a very small
# number, and the first one found is the one to look at.

# %%
#| hide
#| export
import itertools, random
from fractions import Fraction
from typing import Callable, Iterator, NamedTuple, TypeVar

from bendml.laws.datatypes import Array
from bendml.laws.terms import BOOL, INT, REAL, Sort, constructors, fields

# %% [markdown]
# ## All values of a size
#
# The size of a value is the number of constructors with fields in it, plus the size of its numbers. `0` comes before `1`
# and `-1`, then `2` and `-2`; a list of one element before one of two.

# %%
#| export
_HALVES = [Fraction(0), Fraction(1), Fraction(-1), Fraction(2), Fraction(1, 2), Fraction(-2)]

def values(s: Sort, size: int) -> Iterator:
    "All values of a sort that have this size; of an unknown set, its samples."
    if s == BOOL: yield from (False, True) if size == 0 else ()
    elif s == INT: yield from (size, -size) if size else (0,)
    elif s == REAL: yield from _HALVES[size:size + 1]
    elif isinstance(s.head, TypeVar): yield from (size,) if size < 3 else ()
    elif s.head == 'Array':
        for first, *cells in tuples((s.args[1],)*4, size): yield Array(first, enumerate(cells))
    elif not constructors(s): yield from s.head.__samples__[size:size + 1]
    else:
        for c in constructors(s):
            inside = tuple(f for _, f in fields(c, s))
            if not inside and size == 0: yield c()
            elif inside and size > 0: yield from itertools.starmap(c, tuples(inside, size - 1))

def tuples(sorts: tuple[Sort, ...], size: int) -> Iterator[tuple]:
    "All tuples of values of these sorts whose sizes add up."
    if not sorts: yield from ((),) if size == 0 else ()
    elif len(sorts) == 1: yield from ((v,) for v in values(sorts[0], size))
    else:
        for first in range(size + 1):
            for v in values(sorts[0], first): yield from ((v, *rest) for rest in tuples(sorts[1:], size - first))


# %%
from bendml.laws.datatypes import List
[list(values(Sort(List, (INT,)), n)) for n in range(3)]


# %% [markdown]
# Small values miss what happens only among larger ones: an offset that is wrong from 256 on. Random values of some size
# come after the small ones. The randomness is seeded, so a run can be repeated.

# %%
#| export
def random_value(s: Sort, rng: random.Random, size: int = 6):
    "A random value: numbers up to a few hundred, a few constructors."
    if s == BOOL: return rng.random() < 0.5
    if s == INT: return rng.choice((rng.randint(-3, 9), rng.randint(-300, 300)))
    if s == REAL: return Fraction(rng.randint(-9, 9), rng.randint(1, 4))
    if isinstance(s.head, TypeVar): return rng.randrange(5)
    if s.head == 'Array': return Array(random_value(s.args[1], rng, 1), {i: random_value(s.args[1], rng, 1) for i in range(-2, 8)})
    if not constructors(s): return rng.choice(s.head.__samples__)
    grows = lambda c: sum(f == s for _, f in fields(c, s))
    choice = rng.choice([c for c in constructors(s) if size > 0 or not grows(c)])
    if size > 0 and rng.random() < 0.6: choice = rng.choice([c for c in constructors(s) if grows(c)] or [choice])
    return choice(*(random_value(f, rng, (size - 1)//max(grows(choice), 1)) for _, f in fields(choice, s)))


# %% [markdown]
# ## Running a claim
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
# ## What this does not show
#
# That a claim which passed is true. That is what the proofs are for.
