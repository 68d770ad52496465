# %%
#| default_exp shape.chance

# %% [markdown]
# # Python's own random numbers
# > `random.choice`, `shuffle`, `sample`: nothing is drawn in a check; what may be drawn goes every way.

# %% [markdown]
# If a check drew a number, its answer would be luck, and the program's generator would have moved on. So the functions of the module
# `random`, and the methods of a `random.Random`, have stand-ins. A number that is drawn is not known, except for its bounds.
# One of a few things that are no numbers is each of them, on a [path](23d_paths.ipynb) of its own.

# %%
#| hide
#| export
import random
from functools import reduce
from typing import Any

import numpy as np

from bendml.shape.sizes import Dim
from bendml.shape.facts import assume, claim
from bendml.shape.trace import branch, choose, current, holds, refuse
from bendml.shape.opaque import Opaque
from bendml.shape.symbols import Array, as_dim, number, size_value
from bendml.shape.ranges import Range, range_of, ranged, union, unknown
from bendml.shape.elementwise import lift, same
from bendml.shape.states import FEWER, Growing, Turns, as_turns, fingerprint, int_of, symbolic_range
from bendml.shape.drawing import OTHERS, draw
from bendml.shape import indexing  # x[k]

# %% [markdown]
# ## One of several things

# %%
#| export
NUMPY = 'draw with a generator of NumPy, rng = np.random.default_rng(): '

def _number(values: list) -> Array | None:
    "Some number, if all of these are numbers: it is among them."
    if not values or any(isinstance(v, bool | np.bool_) or type(v) is Array and (v.axes or v.dtype == bool) for v in values): return None
    if all(as_dim(v) is not None or type(v) is Array and v.dtype == np.int64 for v in values): return ranged(number(int), reduce(union, map(range_of, values)))
    return number(float) if all(isinstance(v, float) or type(v) is Array and v.dtype == float for v in values) else None


# %%
#| export
def _each_way(values: list, what: str) -> Any:
    "One of a few things: each on a path of its own."
    if not values: refuse(f'{what} of nothing', hint=FEWER)
    if len(values) > 8: refuse(f'{what} of {len(values)} things that are no numbers', hint=f'{NUMPY}i = rng.integers(len(x)) for an array x')
    return next((v for v in values[:-1] if choose()), values[-1])


# %%
#| export
def choice(seq: Any, what: str = 'random.choice') -> Any:
    "One element of a sequence."
    turns = Turns(seq.axes[0].size, lambda k: seq[size_value(k)]) if type(seq) is Array and seq.axes else as_turns(seq)
    if turns is None:
        if not isinstance(seq, list | tuple | range | str): refuse(f'{what} of what is no sequence', 'a list', type(seq).__name__)
        values = list(seq)
        return values[0] if len(values) == 1 else _each_way(values, what) if (found := _number(values)) is None else found
    if not (verdict := holds(claim(turns.count, '>=', 1))).holds: refuse(f'{what} of what may be empty', hint=FEWER, verdict=verdict)
    if hasattr(turns, 'numbers'): return _number([turns.item(Dim(0)), turns.item(turns.count - 1)])
    if not isinstance(seq, Array | Growing) and not turns.listed: refuse(f'{what} of an unknown number of things', hint=f'{NUMPY}rng.choice(x) for an array x')
    k = unknown('i', 0, 'the number of the element that {it} picks ({at}), from 0').size
    current().facts = assume(current().facts, claim(k, '<=', turns.count - 1))
    return turns.item(k)


# %% [markdown]
# ## Several

# %%
#| export
def _several(population: Any, k: Any, what: str) -> Growing:
    "So many elements; each may be any."
    if (k := as_dim(int_of(k))) is None or not (verdict := holds(claim(k, '>=', 0))).holds:
        refuse(f'{what}: {k} elements', 'k >= 0', k, verdict=None if k is None else verdict)
    if k.const is not None and k.const <= 8: return Growing([choice(population, what) for _ in range(k.const)])
    if not branch(claim(k, '>=', 1)): return Growing()
    alike = as_turns(population) is not None or type(population) is Array or _number(list(population)) is not None
    return Growing([choice(population if alike else refuse(f'{what}: {k} things that are no numbers', hint=f'{NUMPY}rng.choice(x, {k}) for an array x'), what)], [k])

def _count(values: Any) -> Dim: return Dim(len(values)) if (turns := as_turns(values)) is None else turns.count


# %%
#| export
def sample(population: Any, k: Any, *, counts: Any = None) -> Growing:
    if type(population) is Array or counts is not None or isinstance(population, set | dict):
        refuse('random.sample takes a list', 'a list, without counts=', population, f'{NUMPY}rng.choice(x, k, replace=False) for an array x')
    size, n = as_dim(int_of(k)), _count(population)
    if size is not None and not (verdict := holds(claim(size, '<=', n))).holds:
        refuse(f'{size} of {n} without replacement', f'{size} <= {n}', size, f'add where=["{size} <= {n}"], or test it first' if verdict.fails_at else '', verdict)
    return _several(population, k, 'random.sample')

def choices(population: Any, weights: Any = None, *, cum_weights: Any = None, k: Any = 1) -> Growing:
    for w in (weights, cum_weights):
        if w is not None and not (verdict := same(_count(w), _count(population))).holds: refuse('a weight for each', _count(population), _count(w), verdict=verdict)
    return _several(population, k, 'random.choices')


# %%
#| export
def shuffle(x: Any) -> None:
    "Bring a list into any order."
    if type(x) is Array: return refuse('random.shuffle of rows, which are views: some would be lost', hint=f'{NUMPY}rng.shuffle(x)') if x.ndim != 1 else None
    if not isinstance(x, list): refuse('what is shuffled is no list', 'a list', type(x).__name__, 'make one first: list(x)')
    if isinstance(x, Growing) and not x.plain():
        if len(x.counted()) > 1: refuse('a list of different things, of which it is not known how many there are, is shuffled', hint=f'{NUMPY}rng.permutation(np.stack(x))')
        return
    values = list(x)
    if len(values) < 2: return
    if (some := _number(values)) is not None:
        if any(type(v) is not Array for v in values) or len({fingerprint(v) for v in values}) > 1: x[:] = [ranged(number(some.dtype), range_of(some)) for _ in values]
        return
    if len(values) > 4: refuse(f'{len(values)} things that are no numbers are shuffled', hint=f'{NUMPY}rng.permutation(np.stack(x)), if all have one shape')
    x[:] = [values.pop(next((i for i in range(len(values) - 1) if choose()), len(values) - 1)) for _ in list(values)]


# %% [markdown]
# NumPy's generator shuffles lists too.

# %%
#| export
_of_array = OTHERS['shuffle']
OTHERS['shuffle'] = lambda x, axis=0: shuffle(x) if isinstance(x, list) else _of_array(x, axis)

# %% [markdown]
# ## All of them

# %%
#| export
FLOATS = frozenset('''random uniform triangular gauss normalvariate lognormvariate expovariate vonmisesvariate gammavariate betavariate paretovariate
                      weibullvariate'''.split())
CHOICES = {'choice': choice, 'sample': sample, 'choices': choices, 'shuffle': shuffle, 'seed': lambda *_, **__: None, 'setstate': lambda _: None,
           'getstate': lambda: Opaque('the state of a random generator', object)}
WHOLE = {'randint': lambda a, b: draw('integers', (a, b), {'endpoint': True}), 'getrandbits': lambda k: ranged(number(int), Range(Dim(0))),
         'randrange': lambda *ends: choice(symbolic_range(*ends), 'random.randrange')}


# %%
#| export
def drawn(f: Any) -> str:
    "The name of a method of a `random.Random` that draws; '' for anything else."
    owner, name = getattr(f, '__self__', None), getattr(f, '__name__', '')
    if not isinstance(owner, random.Random) or getattr(type(owner), name, None) is not getattr(random.Random, name, 0): return ''
    return name


# %%
#| export
def chance(name: str, args: tuple, kwargs: dict) -> Any:
    "What a method of a `random.Random` gives."
    if name in CHOICES: return CHOICES[name](*args, **kwargs)
    for v in (*args, *kwargs.values()):
        if v is not None and lift(v).ndim: refuse(f'random.{name} of an array', 'a number', v, f'{NUMPY}it takes arrays, and a size')
    if name in FLOATS: return number(float)
    if name in WHOLE: return WHOLE[name](*args, **kwargs)
    refuse(f'random.{name} has no rule', hint=f'{NUMPY}rng.integers, rng.normal')


# %%
from bendml.shape.trace import Trace, tracing
from bendml.shape.messages import ShapeError
from bendml.shape.symbols import axis
n = Dim('n')
with tracing(Trace()):
    print(range_of(chance('randint', (1, size_value(n)), {})), range_of(choice([3, 9, 4])), sep='; ')
    x, places = Array([axis(n)]), symbolic_range(size_value(n))
    print(choice(x), sample(places, 1), sep='; ')
    try: sample(places, 2)
    except ShapeError as e: print(e)

# %% [markdown]
# ## What this does not show
#
# That weights are in their domain depends on numbers. Two elements of a sample may be the same here; in the program they are different ones.
