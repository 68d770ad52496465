# %%
#| default_exp kernel.state

# %% [markdown]
# # What is known at a line
# > A walk through a kernel with letters in the place of sizes, and what it notes on its way.

# %% [markdown]
# To run a loop for all sizes at once, run it with letters. `i` is not 0, then 1, then 2; it is some number with
# $0 \le i < n$. The index `i*k + p` is a term, and the question whether it lies inside the buffer is a question about terms,
# which a solver can answer.
#
# The next pages are that walk: through expressions, memory, statements, loops, calls. At each access it notes the index and
# everything known at that point: the contract, the ranges of the loops around it, the conditions that led there. What the
# walk does not understand is refused; there is no "probably fine". This page is what it carries along.

# %%
#| hide
#| export
import ast, operator
from dataclasses import dataclass
from typing import Callable, NamedTuple

from bendml.kernel.contracts import KernelError, Source, i64, int_range
from bendml.kernel.numbers import Number
from bendml.laws.terms import BOOL, INT, TRUE, App, Sort, Term, Var, conj, literal

# %% [markdown]
# ## Numbers of a machine
#
# An `int` in a kernel has 64 bits. An integer parameter is at most $2^{48}$ in size (checked at every call), and no buffer
# has more than $2^{56}$ bytes, since no processor can address more. From these and the contract it must follow that no sum and
# no product ever leaves 64 bits.

# %%
#| export
PARAM, MEMORY = 2**48, 2**56

I64 = int_range(i64)
FLOAT, VECTOR, TILE = Sort(Number), Sort('vector'), Sort('tile')

def integer(op: str, a: Term, b: Term) -> Term:
    "An operation on integers, done at once if both are numbers."
    if isinstance(a, App) and isinstance(b, App) and type(a.op) is type(b.op) is int:
        return literal({'+': operator.add, '-': operator.sub, '*': operator.mul}[op](a.op, b.op))
    if b in (literal(0),) and op in '+-': return a
    if a == literal(0) and op == '+': return b
    if b == literal(1) and op == '*': return a
    if a == literal(1) and op == '*': return b
    return App(op, (a, b), INT)

def less(a: Term, b: Term, op: str = '<') -> Term: return App(op, (a, b), BOOL)
def between(lo: Term, x: Term, hi: Term) -> Term: return conj(less(lo, x, '<='), less(x, hi))
def choose(c: Term, a: Term, b: Term) -> Term: return a if a == b else App('ite', (c, a, b), a.sort)


# %% [markdown]
# ## What is noted

# %%
#| export
@dataclass(eq=False)
class Buffer:
    "A buffer: a parameter, or made inside a kernel."
    name: str
    dtype: type
    length: Term
    born: int = 0                 # how many symbols there were before it
    element: object = None        # Term -> what holds of a cell, for integers
    given: bool = True            # a parameter

@dataclass(eq=False)
class Loop:
    "A loop that the walk is inside of."
    var: Term
    name: str
    born: int                     # how many symbols there were before it
    parallel: bool
    node: ast.AST
    start: Term = literal(0)
    step: Term = literal(1)
    round: Term | None = None     # the symbol for the number of the round, if the step is not 1


# %%
#| export
class Access(NamedTuple):
    "Cells that are read or written: `cells` of them, from `index` on."
    buffer: Buffer
    index: Term
    cells: int
    write: bool
    facts: tuple[Term, ...]       # what is known there
    loops: tuple[Loop, ...]       # around it, from the outside in
    node: ast.AST
    where: str
    source: Source

class Check(NamedTuple):
    "Something that has to be proved."
    kind: str                     # bounds, race, overflow, ...
    where: str
    node: ast.AST
    facts: tuple[Term, ...]
    goal: Term
    expected: str
    shown: Term | None = None     # the value that a failing case is shown with
    accesses: tuple[Access, ...] = ()

def kind_of(t: object) -> str:
    if isinstance(t, Buffer): return 'a buffer'
    return {INT: 'an int', BOOL: 'a condition', FLOAT: 'a float', VECTOR: 'a vector', TILE: 'a tile'}.get(getattr(t, 'sort', None), 'nothing')


# %% [markdown]
# ## What is carried along

# %%
#| export
SETTLED = ('bounds', 'overflow', 'divisor', 'length', 'requires', 'assert')  # what a called kernel has proved of itself

class State:
    "What a walk knows: symbols, facts, the values of names, and what it has noted."
    def __init__(self, source: Source):
        self.source, self.main = source, source
        self.born: dict[Var, int] = {}
        self.spans: dict[Var, tuple[int, int]] = {}
        self.fitted: dict[Term, tuple] = {}  # terms that fit 64 bits, under these facts
        self.facts: list[Term] = []
        self.always: set[Term] = set()      # facts that hold wherever they can be said
        self.limits: list[Term] = []        # facts of the machine: used only for overflow, and for lengths of new buffers
        self.env: dict[str, object] = {}
        self.kinds: dict[str, object] = {}
        self.cells: dict[tuple[Buffer, Term], Term] = {}   # whole numbers in cells, as they were read since the last write
        self.loops: tuple[Loop, ...] = ()
        self.accesses: list[Access] = []
        self.checks: list[Check] = []
        self.promises: list[tuple[str, Buffer, ast.AST]] = []
        self.calls: tuple[str, ...] = ()
        self.settled = False          # inside a called kernel whose own proof covers what happens there
        self.result: object = None
        self.ghost = self.functional = False
        self.last = None

    def refuse(self, node: ast.AST, problem: str, expected: str, observed: str | None = None, hint: str = '') -> KernelError:
        return KernelError(self.where(node), problem, expected, ast.unparse(node).splitlines()[0] if observed is None else observed, hint=hint)

    def where(self, node: ast.AST) -> str: return self.source.where(node) + ''.join(f', called in {c}' for c in self.calls)

    def fresh(self, name: str, sort: Sort = INT, span: tuple[int, int] | None = None) -> Var:
        "A symbol that nothing is known of."
        taken = {v.name for v in self.born}
        made = next(n for k in range(len(taken) + 1) if (n := name + f'.{k}'*(k > 0)) not in taken)
        var = Var(made, sort)
        self.born[var] = len(self.born)
        if sort == INT: self.spans[var] = span or I64
        return var

    def check(self, kind: str, node: ast.AST, goal: Term, expected: str, shown: Term | None = None, accesses: tuple = (), given: tuple = ()) -> None:
        "Note that something has to be proved here."
        limits = tuple(self.limits) if kind in ('overflow', 'length') else ()
        if goal != TRUE and not (self.settled and kind in SETTLED): self.checks.append(Check(kind, self.where(node), node, (*self.facts, *limits, *given), goal, expected, shown, accesses))


# %% [markdown]
# Most sums obviously fit 64 bits. For a sum or a product that might not, that it does is noted as something to prove. In contracts
# integers have any size: they are not computed by the machine.

# %%
#| export
class Spans(State):
    "Between which numbers a term lies, and whether it fits the machine."
    def span(self, t: Term) -> tuple[int, int]:
        "Between which numbers a term lies, at a glance."
        if isinstance(t, Var): return self.spans.get(t, I64)
        lo, hi = self.guess(t)
        known = t in self.fitted and tuple(self.facts[:len(self.fitted[t])]) == self.fitted[t]
        return (max(lo, I64[0]), min(hi, I64[1])) if known else (lo, hi)

    def guess(self, t: App) -> tuple[int, int]:
        "The same for an operation, from its parts."
        if type(t.op) is int: return t.op, t.op
        parts = [self.span(a) for a in t.args if a.sort == INT]
        match t.op:
            case '+': return sum(p[0] for p in parts), sum(p[1] for p in parts)
            case '-': return parts[0][0] - parts[1][1], parts[0][1] - parts[1][0]
            case '*': return (lambda all: (min(all), max(all)))([a*b for a in parts[0] for b in parts[1]])
            case 'ite': return min(p[0] for p in parts[-2:]), max(p[1] for p in parts[-2:])
            case 'div' | 'mod' if parts[1][0] > 0:   # a divisor of at least 1 brings a number no further from zero
                return (min(parts[0][0], 0), max(parts[0][1], 0)) if t.op == 'div' else (0, parts[1][1] - 1)
        return -2**200, 2**200

    def exactly(self, do: Callable) -> object:
        "Do something with whole numbers of any size: contracts are not computed by the machine."
        before, self.ghost = self.ghost, True
        try: return do()
        finally: self.ghost = before

    def fits(self, t: Term, node: ast.AST) -> Term:
        "The term, once it is noted that its value must have 64 bits."
        lo, hi = self.span(t)
        if self.ghost: return t
        if lo < I64[0] or hi > I64[1]:
            self.check('overflow', node, conj(less(literal(I64[0]), t, '<='), less(t, literal(I64[1]), '<=')), 'a number of 64 bits', t)
            self.fitted[t] = tuple(self.facts)
        return t

# %% [markdown]
# ## What this does not show
#
# That a float fits its purpose. Floats may overflow to infinity, or be no number; their values do not matter to where memory is
# touched.
