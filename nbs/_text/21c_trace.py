# %%
#| default_exp shape.trace

# %% [markdown]
# # One run on symbols
# > What is known on one path, which way its conditions go, and how it ends in a refusal.

# %% [markdown]
# To check a function we run it on arrays that have a shape and no numbers. This page is about one such run: what it knows
# about the sizes, what happens at a condition that depends on them, and how it ends in a refusal.

# %%
#| hide
#| export
import ast, itertools, re, sys, threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Iterator

from bendml.shape.facts import Claim, Facts, Verdict, assume, decide
from bendml.shape.messages import Place, ShapeError, place_of, source_of


# %% [markdown]
# ## One run
#
# While a function is traced there is one `Trace`: what is known about the sizes on this path, and which way each condition
# went. A condition that the facts decide does not split the path; any other is a choice, and the function will be run again
# for the other way.

# %%
#| export
@dataclass
class Trace:
    "One path through a function."
    facts: Facts = Facts()
    plan: tuple[bool, ...] = ()               # the choices to make, in order; beyond them: True
    made: list[bool] = field(default_factory=list)
    keep: frozenset[str] = frozenset()        # sizes that nothing may reduce over
    refused: ShapeError | None = None         # the first refusal: a handler cannot swallow it
    count: Iterator[int] = field(default_factory=itertools.count)
    by: dict[str, int] = field(default_factory=dict)  # how many questions each means has decided
    state: dict[Any, Any] = field(default_factory=dict)


# %%
#| export
_running = threading.local()
MAX_CHOICES = 60


# %%
#| export
def current() -> Trace:
    "The trace that runs in this thread."
    if not (trace := getattr(_running, 'trace', None)):
        raise ShapeError('a symbolic array was used outside of the function that it was made for')
    return trace


# %%
#| export
@contextmanager
def tracing(trace: Trace):
    "Make a trace the current one."
    before, _running.trace = getattr(_running, 'trace', None), trace
    try: yield trace
    finally: _running.trace = before


# %%
#| export
def holds(goal: Claim) -> Verdict:
    "Decide a claim under what this path knows."
    trace = current()
    verdict = decide(trace.facts, goal)
    trace.by[verdict.by] = trace.by.get(verdict.by, 0) + 1
    return verdict


# %%
#| export
def choose() -> bool:
    "A choice that nothing decides: both ways are traced, one after the other."
    trace = current()
    if len(trace.made) >= MAX_CHOICES: refuse(f'more than {MAX_CHOICES} conditions on one path', hint='split the function')
    trace.made.append(trace.plan[len(trace.made)] if len(trace.made) < len(trace.plan) else True)
    return trace.made[-1]


# %%
#| export
def branch(goal: Claim) -> bool:
    "Is it so? Where it depends on the sizes, one path for each answer."
    if holds(goal).holds: return True
    if holds(~goal).holds: return False
    way = choose()
    current().state['way'] = goal if way else ~goal
    current().facts = assume(current().facts, current().state['way'])
    return way


# %% [markdown]
# ## Refusing

# %%
#| export
def user_frame():
    "The innermost frame of a traced function."
    frame = sys._getframe(1)
    while frame is not None and '__bendml__' not in frame.f_globals: frame = frame.f_back
    return frame


# %%
#| export
def refuse(reason: str, expected: object = None, observed: object = None, hint: str = '', verdict: Verdict | None = None,
           operand: int | None = None) -> None:
    "Refuse the program: raise a `ShapeError` with place, sizes and what is known."
    trace = current()
    verdict, op = verdict or Verdict(None), trace.state.get('op', ('', False))
    frame = user_frame()
    place = place_of(frame, operand, op[1]) if frame else None
    known = tuple(dict.fromkeys(str(c) for c in trace.facts.claims if c.text and "'" not in c.text and '(' not in c.text))
    hint = _with_names(hint, frame, operand, op) or _other_way(trace.state.get('way'))
    error = ShapeError((f'{op[0]}: ' if op[0] else '') + reason, expected, observed, hint, verdict.fails_at,
                       verdict.holds is False and not verdict.fails_at, known, place, operand)
    trace.refused = trace.refused or error
    raise error


# %%
#| export
def _other_way(c: Claim | None) -> str:
    "A hint for a program that fails only where a condition goes one way, as for a slice of too short an array."
    return '' if c is None or not c.text or "'" in c.text else f'this is the way where {c}; if it cannot be so, say where=["{~c}"]'


# %% [markdown]
# A hint may speak of operands: `{0}` stands for the source of the first, `{it}` for that of the one that is underlined, `{it.T}`
# for it transposed, which may mean dropping a `.T` that is there.

# %%
#| export
def _with_names(hint: str, frame: Any, operand: int | None, op: tuple[str, bool]) -> str:
    def shown(found: re.Match) -> str:
        which, turned, index = found.groups()
        number = operand if which == 'it' else int(which)
        text = source_of(place_of(frame, number, op[1])) if frame and (op[0] != 'setitem' or which == 'it') else ''
        if not text or len(text) > 30: text = 'it' if which == 'it' else '(the right side)' if number else '(the left side)'
        return (_transposed(text) if turned else _as_one(text) if index else text) + (index or '')
    return re.sub(r'\{(it|\d)(\.T)?\}(\[)?', shown, hint)


# %%
#| export
def _as_one(text: str) -> str:
    "An expression that something may follow, in brackets where it needs them."
    try: node = ast.parse(text, mode='eval').body
    except SyntaxError: return text
    return text if isinstance(node, ast.Name | ast.Attribute | ast.Subscript | ast.Call) else f'({text})'

def _transposed(text: str) -> str:
    "An expression with its two axes exchanged, as one would write it."
    for column, row in (('.T', ''), ('[:, None]', '[None, :]'), ('[None, :]', '[:, None]'), ('[None]', '[:, None]')):
        if text.endswith(column): return text.removesuffix(column) + row
    return f'{_as_one(text)}.T'


# %%
from bendml.shape.sizes import Dim
from bendml.shape.facts import claim
n = Dim('n')
with tracing(Trace(plan=(False,))) as trace:
    print(branch(claim(n, '>=', 1)), branch(claim(n % 2, '==', 0)), trace.facts.claims)
    try: refuse('an odd batch', 'an even size', n, verdict=holds(claim(n, '==', 1)))
    except ShapeError as e: print(e)

# %% [markdown]
# ## What this does not show
#
# A choice on numbers is taken both ways, also where the program could only ever go one.
