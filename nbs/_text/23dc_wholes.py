# %%
#| default_exp shape.wholes

# %% [markdown]
# # Whole numbers at a call
# > An array that is used as an index must be wide enough for what it meets, and no other argument may change it.

# %%
#| hide
#| export
from typing import Any, Iterator

import numpy as np

from bendml.shape.annotations import ArraySpec, DictSpec, ManySpec, MaybeSpec, TupleSpec
from bendml.shape.ranges import NARROW, holds_all
from bendml.shape.values import parts_of
from bendml.shape.paths import Report


# %% [markdown]
# What a trace knows of numbers, that `i % len(y)` fits into `y`, rests on two things that a call can break: the numbers must
# not wrap around or stop at 255, and what is written into one array must not change another.

# %%
#| export
def counts(spec: ArraySpec) -> bool: return 'int' in spec.dtype

def wholes(spec: Any, value: Any, name: str) -> Iterator[tuple[str, np.ndarray]]:
    "The arrays of whole numbers in an argument, each with the expression that reaches it."
    if isinstance(spec, MaybeSpec): spec = spec.inner
    if value is None: return
    if isinstance(spec, ManySpec): spec = [spec.inner]*len(value)
    match spec:
        case ArraySpec() if counts(spec) and isinstance(value, np.ndarray | np.integer): yield name, value
        case TupleSpec(items, names, cls):
            for i, s in enumerate(items): yield from wholes(s, getattr(value, names[i], None) if cls else value[i], f'{name}.{names[i]}' if cls else f'{name}[{i}]')
        case DictSpec(items):
            for k, s in items: yield from wholes(s, value[k], f'{name}[{k!r}]')
        case list():
            for i, s in enumerate(spec): yield from wholes(s, value[i], f'{name}[{i}]')


# %%
#| export
def share(x: np.ndarray, y: np.ndarray) -> bool:
    "Have they an entry in common? Where that is hard to tell, yes."
    try: return np.shares_memory(x, y, max_work=10_000)
    except np.exceptions.TooHardError: return True


# %%
a = np.arange(6)
share(a[:3], a[2:]), share(a[::2], a[1::2])


# %%
#| export
def not_usable(params: tuple, report: Report, arguments: dict[str, Any], function: str) -> tuple[str, str, str] | None:
    "The parameter, what is wrong with an array of whole numbers in it, and a hint."
    if not report.writes and report.held == NARROW: return None
    found = [(p, n, x) for n, spec in params for p, x in wholes(spec, arguments[n], n)]
    for path, name, x in found:
        if not holds_all(x.dtype, report.held): return name, f'{path} holds {x.dtype}, too narrow for the sizes that it meets', f'pass {path}.astype(int)'
    for path, _, x in (f for f in found if f[1] in report.writes):
        for other, name, y in found:
            if other != path and share(x, y): return name, f'{path} and {other} share memory, and {function} writes into {path}', f'pass {path}.copy()'
    return None


# %% [markdown]
# The same as tests of the quick check, where the width does for all.

# %%
#| export
def widths(report: Report) -> str:
    "The kinds of whole numbers that are wide enough, as NumPy's letters."
    return ''.join(c for c in 'bhilqBHILQ' if holds_all(np.dtype(c), report.held))

def apart(params: tuple, report: Report) -> list[str]:
    found = [(n, p) for n, s in params for p, part in parts_of(s, n, ArraySpec) if counts(part)]
    return [f'not __share({p}, {q})' for i, (n, p) in enumerate(found) for m, q in found[i + 1:] if {n, m} & {*report.writes}]


# %%
from bendml.shape.annotations import Int, Vec, read_signature
from bendml.shape.paths import check
from bendml.shape.sizes import dims
n, m = dims('n m')
def turned(i: Int[Vec[n]], y: Vec[m]) -> Vec[n]:
    i %= len(y)
    return y[i]

report = check(turned, signature := read_signature(turned))
print(report.held, report.writes, widths(report))
not_usable(signature.params, report, {'i': np.arange(3, dtype=np.uint8), 'y': np.ones(300)}, 'turned')

# %% [markdown]
# ## What this does not show
#
# That a size is below 2³¹ is taken for granted. An array whose annotation does not say what its numbers are, `Vec[n]`, may come
# in a narrow kind; then arithmetic with a large number may stop with an `OverflowError`, which is no matter of shapes.
