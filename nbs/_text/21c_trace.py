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
import ast, itertools, re, sys, threading, time
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Callable, Iterator

from bendml.shape.sizes import Dim, Floor, _wrapped, named, names_of
from bendml.shape.facts import Claim, Facts, Verdict, assume, claim, decide
from bendml.shape.messages import Place, ShapeError, place_at, place_of, source_of


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
    ways: list[tuple] = field(default_factory=list)  # what each choice was about: (claim or text, where it was asked, the way, by a rule)
    keep: frozenset[str] = frozenset()        # sizes that nothing may reduce over
    refused: ShapeError | None = None         # the first refusal: a handler cannot swallow it
    some: set = field(default_factory=set)    # lists that only some turns of a loop append to, and where arrays are made that are written to; all paths share it
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
MAX_SECONDS = 20.0

def tick() -> None:
    "Refuse a check that takes too long."
    state = current().state
    if time.thread_time() > state.get('until', float('inf')):
        state['op'] = '', False  # it is no fault of the operation
        refuse(f'the check takes longer than {MAX_SECONDS:.0f} s',
               hint='the function runs its loops while it is checked: split it, or declare smaller ones with @typed')


# %%
#| export
def holds(goal: Claim) -> Verdict:
    "Decide a claim under what this path knows."
    tick()
    trace = current()
    verdict = decide(trace.facts, goal)
    trace.by[verdict.by] = trace.by.get(verdict.by, 0) + 1
    return verdict


# %%
#| export
def choose(about: Claim | str | None = None) -> bool:
    "A choice that nothing decides: both ways are traced, one after the other."
    trace = current()
    if len(trace.made) >= MAX_CHOICES: refuse(f'more than {MAX_CHOICES} conditions on one path', hint='write some of them as a function of its own with @typed')
    trace.made.append(trace.plan[len(trace.made)] if len(trace.made) < len(trace.plan) else True)
    frame = user_frame()
    trace.ways.append((about, frame and (frame.f_code, frame.f_lasti), trace.made[-1], bool(trace.state.get('op', ('',))[0])))
    return trace.made[-1]


# %%
#| export
def branch(goal: Claim, asked: bool = True, turns: bool = False) -> bool:
    "Is it so? Where it depends on the sizes, one path for each answer; `asked`: by the program, and not by the check; `turns`: how often a loop runs."
    if holds(goal).holds: return True
    if holds(~goal).holds: return False
    way = choose(goal if asked else '')
    so = goal if way else ~goal
    if asked and not turns: current().state['way'] = so
    current().facts = assume(current().facts, so)
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
           operand: int | None = None, given: str = '') -> None:
    "Refuse the program: raise a `ShapeError` with place, sizes and what is known; `given`: what else must be so for it to fail."
    trace = current()
    verdict, op = verdict or Verdict(None), trace.state.get('op', ('', False))
    frame = user_frame()
    own, has_text = at() if (at := trace.state.get('at')) else (None, True)
    place = own or (place_of(frame, operand, op[1]) if frame else None)
    hint, other = trace.state.get('empty') or _with_names(hint, frame, operand, op, own, has_text), ''
    if not hint: hint, other = _other_way(trace.state.get('way'))
    error = ShapeError((f'{op[0]}: ' if op[0] else '') + reason, expected, observed, hint, verdict.fails_at,
                       verdict.holds is False and not verdict.fails_at, known(trace), place, operand, assumed(trace) + ((given,) if given else ()))
    error.proposed = other
    trace.refused = trace.refused or named_for_people(error, trace, frame)
    raise error


# %%
#| export
def known(trace: Trace) -> tuple[str, ...]:
    "What a path knows about the sizes of the program."
    return tuple(dict.fromkeys(str(c) for c in trace.facts.claims if c.text and "'" not in c.text and '(' not in c.text))


# %%
#| export
def _other_way(c: Claim | None) -> tuple[str, str]:
    "A hint for a program that fails where a condition goes one way, as for a slice of too short an array; and the condition, still to be tried."
    if c is None or not c.text or "'" in c.text or degenerate(~c): return '', ''
    return f'this is the way where {said(c)}; if it cannot be so, say where=["{said(~c)}"]', said(~c)


# %% [markdown]
# A condition that leaves a size nothing but 1 and 2 makes a wrong program right only where it does nothing. It is not proposed.

# %%
#| export
def degenerate(c: Claim) -> bool:
    "Does it hold at no sizes from 3 on?"
    return decide(reduce(assume, (claim(named(n), '>=', 3) for n in sorted(names_of(c.dim))), Facts()), ~c).holds is True

def add_where(c: Claim, more: str = ', or test it first') -> str:
    "A hint: the condition that is missed; nothing if it would only hide the fault."
    if "'" in str(c.dim): return more.removeprefix(', or ')
    return '' if degenerate(c) else f'add where=["{said(c)}"]{more}'


# %%
#| export
def said(c: Claim) -> str:
    "A condition as one would write it: `T >= 2` for `T - 1 >= 1`."
    for atom in (a for m, _ in c.dim.terms for a, _ in m if isinstance(a, Floor)):
        rest = atom.num - atom.den*named(atom)
        if c.kind != '>=' and c.dim in (rest, -rest): return f'{_wrapped(atom.num)} % {_wrapped(atom.den)} {c.kind} 0'
    left, right = (Dim({m: sign*v for m, v in c.dim.terms if m and sign*v > 0}) for sign in (1, -1))
    number, op = dict(c.dim.terms).get((), 0), '<=' if c.kind == '>=' else c.kind
    if right == 0: return f'{left} {c.kind} {-number}'
    if number == -1 and op == '<=' and left != 0: return f'{right} < {left}'
    return f'{right} {op} {left + number}' if number >= 0 or left == 0 else f'{right - number} {op} {left}'


# %% [markdown]
# A hint may speak of operands: `{0}` stands for the source of the first, `{it}` for that of the one that is underlined, `{it.T}`
# for it transposed, which may mean dropping a `.T` that is there. Where an annotation is compared with a value, an argument or a
# result, that one is underlined, and is `{it}`.

# %%
#| export
@contextmanager
def at_place(where: Callable[[], tuple[Place | None, bool]]):
    "Compare a value with an annotation; `where` says at which place it stands, and if that is the value's and not that of more."
    state = current().state
    before, state['at'] = state.get('at'), where
    try: yield
    finally: state['at'] = before


# %%
#| export
def _with_names(hint: str, frame: Any, operand: int | None, op: tuple[str, bool], own: Place | None = None, has_text: bool = True) -> str:
    def shown(found: re.Match) -> str:
        which, turned, index = found.groups()
        number = operand if which == 'it' else int(which)
        text = '' if not has_text else source_of(own) if own else source_of(place_of(frame, number, op[1])) if frame and (op[0] != 'setitem' or which == 'it') else ''
        if not text or len(text) > 30:
            text = 'it' if which == 'it' else '(the right side)' if number else '(the left side)'
            if turned: return 'its transpose' if which == 'it' else f'the transpose of {text}'
        return (_transposed(text) if turned else _as_one(text) if index else text) + (index or '')
    return re.sub(r'\{(it|\d)(\.T)?\}(\[|\.(?=\w))?', shown, hint)


# %%
#| export
def _as_one(text: str) -> str:
    "An expression that something may follow, in brackets where it needs them."
    try: node = ast.parse(text, mode='eval').body
    except SyntaxError: return text
    return text if isinstance(node, ast.Name | ast.Attribute | ast.Subscript | ast.Call) else f'({text})'

def _transposed(text: str) -> str:
    "An expression with its two axes exchanged, as one would write it."
    if _as_one(text) != text: return f'({text}).T'
    for column, row in (('.T', ''), ('[:, None]', '[None, :]'), ('[None, :]', '[:, None]'), ('[None]', '[:, None]')):
        if text.endswith(column): return text.removesuffix(column) + row
    return f'{text}.T'


# %% [markdown]
# Sizes that fail are stated without reserve only if the path hangs on nothing but sizes. Where it took a condition on data, or
# on the variable of a loop, to go one way, the message says which.

# %%
#| export
def assumed(trace: Trace) -> tuple[str, ...]:
    "The conditions on this path that sizes alone do not decide."
    return tuple(dict.fromkeys(_asked(*w) for w in trace.ways if w[0] != '' and (not isinstance(w[0], Claim) or "'" in str(w[0]))))


# %%
#| export
def _asked(about: Claim | str | None, at: tuple | None, way: bool, by_rule: bool) -> str:
    "A condition as it was written."
    if isinstance(about, str) or not at: return ('' if way else 'not ') + str(about or 'a condition')
    place = place_at(*at)
    text = source_of(place)
    if by_rule and isinstance(about, Claim): text = str(about if way else ~about)  # a slice asks if it is cut off
    elif not 0 < len(text) <= 60: text = 'the condition' if way else 'not the condition'
    elif not way: text = f'not {text}'
    return f'{text} (line {place.line})'


# %% [markdown]
# A size that nobody named is called `k'7` inside. In a message it gets a name that the program has not, and a line that says
# what it is.

# %%
#| export
_INNER = re.compile(r"(\w+)'\d+")

def named_for_people(e: ShapeError, trace: Trace, frame: Any) -> ShapeError:
    "The error, with every inner name replaced and explained."
    fields = 'reason', 'hint', 'expected', 'observed'
    texts = [str(getattr(e, f) or '') for f in fields] + [n for n, _ in e.fails_at] + list(e.assumed)
    inner = list(dict.fromkeys(m.group() for t in texts for m in _INNER.finditer(t)))
    if not inner: return e
    words = lambda texts: {n for t in texts for n in re.findall(r"\b[^\W\d]\w*\b(?!')", t)}
    taken = words([*texts[:len(texts) - len(e.assumed)], *(str(c) for c in trace.facts.claims)]) | trace.state.get('sizes', frozenset())
    code = words(e.assumed) | {*frame.f_code.co_varnames, *frame.f_code.co_names, *frame.f_code.co_cellvars} if frame else set()
    shown = {}
    for name in inner:
        base, told = _INNER.match(name).group(1), trace.state.get('told', {}).get(name)
        used = taken | set(shown.values()) | (set() if told and told[0] else code)
        shown[name] = next(n for n in itertools.chain([base], (f'{base}{i}' for i in itertools.count(1))) if n not in used)
    put = lambda text: _INNER.sub(lambda m: shown[m.group()], text) if isinstance(text, str) else text
    for f in fields: setattr(e, f, put(getattr(e, f)))
    e.args = e.reason,
    e.fails_at, e.assumed = tuple((put(n), v) for n, v in e.fails_at), tuple(map(put, e.assumed))
    e.where = tuple(f'{shown[n]} is {_told(trace, n)}' for n in inner)
    e.surely = e.surely and all(trace.state.get('told', {}).get(n, ('',))[0] == 'index' for n in inner)
    return e


# %%
#| export
def _told(trace: Trace, name: str) -> str:
    "What an inner name stands for."
    _, text, at = trace.state.get('told', {}).get(name, ('', '', None))
    place = at and place_at(*at)
    source = source_of(place) if place else ''
    at = f'line {place.line}' if place else 'this function'
    if text: return text.replace('{it}', source if 0 < len(source) <= 60 else 'this').replace('{at}', at)
    return f'a number{at and f" in {at}"} that only the data know' + (f': {source}' if 0 < len(source) <= 60 else '')


# %%
n = Dim('n')
print(said(claim(n - 1, '>=', 1)), said(claim(n % 2, '==', 0)), sep='; ')
with tracing(Trace(plan=(False,))) as trace:
    print(branch(claim(n, '>=', 1)), branch(claim(n % 2, '==', 0)), trace.facts.claims)
    try: refuse('an odd batch', 'an even size', n, verdict=holds(claim(n, '==', 1)))
    except ShapeError as e: print(e)

# %% [markdown]
# ## What this does not show
#
# A choice on numbers is taken both ways, also where the program could only ever go one.
