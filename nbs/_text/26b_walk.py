# %%
#| default_exp kernel.walk

# %% [markdown]
# # Walking through a kernel
# > One walk through a function, with letters in the place of sizes, that notes every access to memory.

# %% [markdown]
# To run a loop for all sizes at once, run it with letters. `i` is not 0, then 1, then 2; it is some number with
# $0 \le i < n$. The index `i*k + p` is a term, and the question whether it lies inside the buffer is a question about terms,
# which a solver can answer.
#
# This page is that walk. At each access it notes the index and everything known at that point: the contract, the ranges of
# the loops around it, the conditions that led there. The pages after it ask the questions. What the walk does not understand
# is refused; there is no "probably fine".

# %%
#| hide
#| export
import ast, math, operator
from dataclasses import dataclass, field
from typing import Callable, NamedTuple

import numpy as np

from bendml.kernel.contracts import (CONTRACTS, FLOATS, INTS, Buf, KernelError, Param, Size, Source, Touches, decreases, dotted, ensures, f32, f64, filled, i64,
                                     int_range, invariant, once, one_of, requires)
from bendml.kernel.numbers import Number
from bendml.laws.read import function_of
from bendml.laws.terms import BOOL, FALSE, INT, TRUE, App, Sort, Term, Var, conj, equal, implies, literal, negate

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
_GIVES = {'f32': FLOAT, 'f64': FLOAT, 'vector': VECTOR, 'tile': TILE, 'int': INT}

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
        self.limits: list[Term] = []        # facts of the machine: used only for overflow
        self.env: dict[str, object] = {}
        self.kinds: dict[str, object] = {}
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
        limits = tuple(self.limits) if kind == 'overflow' else ()
        if goal != TRUE and not (self.settled and kind in SETTLED): self.checks.append(Check(kind, self.where(node), node, (*self.facts, *limits, *given), goal, expected, shown, accesses))

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
# ## Expressions

# %%
#| export
_ARITH = {ast.Add: '+', ast.Sub: '-', ast.Mult: '*'}
_ORDER = {ast.Lt: '<', ast.LtE: '<=', ast.Gt: '>', ast.GtE: '>=', ast.Eq: '=', ast.NotEq: 'distinct'}
_MATH = tuple(getattr(math, n) for n in 'exp log sqrt tanh sin cos erf fabs log1p expm1 pow'.split())
ANY = App('any', (), FLOAT)   # a float whose value does not matter here

class Expressions(State):
    "Expressions as terms. A float's value does not matter to where memory is touched, and is not followed."
    def value(self, node: ast.expr) -> Term:
        method = getattr(self, type(node).__name__, None)
        if method is None: raise self.refuse(node, f'{type(node).__name__} is not understood', 'numbers, names, arithmetic, comparisons, x[i], and known functions')
        return method(node)

    def int(self, node: ast.expr) -> Term:
        t = self.value(node)
        if getattr(t, 'sort', None) != INT: raise self.refuse(node, 'not a whole number', 'int', f'{ast.unparse(node)} is {_kind(t)}')
        return t

    def test(self, node: ast.expr) -> Term:
        t = self.value(node)
        if getattr(t, 'sort', None) != BOOL: raise self.refuse(node, 'not a condition', 'a comparison', f'{ast.unparse(node)} is {_kind(t)}', 'write x != 0')
        return t

    def Constant(self, node):
        if type(node.value) in (int, bool): return self.whole_number(node, node.value)
        if type(node.value) is float: return self.number(node.value)
        raise self.refuse(node, 'not understood', 'a number')
    def whole_number(self, node: ast.AST, value: int) -> Term:
        if not (self.ghost or I64[0] <= value <= I64[1]): raise self.refuse(node, 'a number of more than 64 bits', f'from {I64[0]} to {I64[1]}', str(value))
        return literal(value)
    def number(self, value: float) -> Term: return ANY

    def Name(self, node):
        if node.id in self.env: return self.env[node.id]
        return self.known(node)
    def Attribute(self, node): return self.known(node)
    def known(self, node):
        "A global name."
        meaning = self.meaning(node)
        if type(meaning) in (int, bool): return self.whole_number(node, meaning)
        if isinstance(meaning, (float, *FLOATS)): return self.number(meaning)
        if isinstance(node, ast.Name) and node.id in self.kinds:
            raise self.refuse(node, f'{node.id} may have no value here', 'a name that every way to this line has given a value', hint='give it a value before the loop or the if; a loop may run zero times')
        raise self.refuse(node, f'{dotted(node) or ast.unparse(node)} is no value', 'a parameter, a local name or a global number', 'nothing' if meaning is None else type(meaning).__name__)
    def meaning(self, node: ast.expr) -> object:
        name = dotted(node)
        return None if name.split('.')[0] in self.env else self.source.meanings.get(name)

    def UnaryOp(self, node):
        if isinstance(node.op, ast.Not): return negate(self.test(node.operand))
        t = self.value(node.operand)
        if isinstance(node.op, ast.USub) and t.sort == INT: return self.fits(integer('-', literal(0), t), node)
        if isinstance(node.op, ast.USub) and t.sort == FLOAT: return self.negated(t)
        raise self.refuse(node, 'not understood', '-x or not x')
    def negated(self, t: Term) -> Term: return ANY

    def BinOp(self, node):
        a, b = self.value(node.left), self.value(node.right)
        if isinstance(a, Buffer) or isinstance(b, Buffer): raise self.refuse(node, 'arithmetic on a whole buffer', 'a loop over its cells')
        if a.sort == b.sort == INT: return self.whole(node, a, b)
        if BOOL in (a.sort, b.sort): raise self.refuse(node, 'a condition in arithmetic', 'numbers', hint='1 if x > 0 else 0')
        return self.floating(node, a, b)

    def whole(self, node, a, b):
        "Arithmetic on integers."
        if type(node.op) in _ARITH: return self.fits(integer(_ARITH[type(node.op)], a, b), node)
        if isinstance(node.op, (ast.FloorDiv, ast.Mod)):
            if self.span(b)[0] < 1: self.check('divisor', node, less(literal(0), b), 'a divisor above zero', b)
            return App('div' if isinstance(node.op, ast.FloorDiv) else 'mod', (a, b), INT)
        if isinstance(node.op, ast.Div): return self.float_op(node, a, b)
        n = b.op if isinstance(b, App) and type(b.op) is int and 0 <= b.op < 2**32 else None
        if n is not None and n < 63 and isinstance(node.op, ast.Pow) and isinstance(a, App) and type(a.op) is int: return self.whole_number(node, a.op**n)
        if n is not None and isinstance(node.op, ast.BitAnd) and n & (n + 1) == 0: return App('mod', (a, literal(n + 1)), INT)
        if n is not None and n < 63 and isinstance(node.op, ast.RShift): return App('div', (a, literal(2**n)), INT)
        if n is not None and n < 63 and isinstance(node.op, ast.LShift): return self.fits(integer('*', a, literal(2**n)), node)
        raise self.refuse(node, 'not understood for whole numbers', '+ - * // %, shifts by a number, & with 1, 3, 7, 15, ...')

    def floating(self, node, a, b):
        "Arithmetic on floats and vectors."
        if type(node.op) in (*_ARITH, ast.Div, ast.Pow) and a.sort in (FLOAT, INT) and b.sort in (FLOAT, INT): return self.float_op(node, a, b)
        if type(node.op) in _ARITH and a.sort == b.sort == VECTOR: return App('any', (), VECTOR)
        raise self.refuse(node, 'not understood', '+ - * / on numbers, + - * on vectors', f'{_kind(a)} and {_kind(b)}')
    def float_op(self, node, a, b): return ANY

    def Compare(self, node):
        left, parts = self.value(node.left), []
        for op, right in zip(node.ops, node.comparators):
            right = self.value(right)
            if type(op) not in _ORDER or BOOL in (left.sort, right.sort): raise self.refuse(node, 'not understood', '< <= > >= == != between numbers')
            if left.sort == right.sort == INT: parts.append(less(left, right, _ORDER[type(op)]))
            elif {left.sort, right.sort} <= {INT, FLOAT} and not self.ghost: parts.append(self.float_compare(type(op), left, right))
            elif self.ghost and left.sort == right.sort == FLOAT and isinstance(op, ast.Eq): parts.append(equal(left, right))
            else: raise self.refuse(node, 'not understood', 'numbers')
            left = right
        return conj(*parts)
    def float_compare(self, op: type, a: Term, b: Term) -> Term: return self.fresh('chance', BOOL)

    def BoolOp(self, node):
        "`and` and `or` look at what stands to the right only if they must, and so do we."
        first, *rest = node.values
        a = self.test(first)
        for r in rest: a = self.either(a, r, isinstance(node.op, ast.And))
        return a
    def either(self, a, node, both):
        b, facts = self.under(a if both else negate(a), lambda: self.test(node))
        self.facts += facts
        return conj(a, b) if both else App('or', (a, b), BOOL)

    def under(self, c: Term, do: Callable) -> tuple[object, list[Term]]:
        "Do something while a condition is known; what was found out there, as facts that hold outside too."
        n = len(self.facts)
        self.facts.append(c)
        result = do()
        found = [implies((c,), f) for f in self.facts[n + 1:]]
        del self.facts[n:]
        return result, found

    def IfExp(self, node):
        c = self.test(node.test)
        a, found = self.under(c, lambda: self.value(node.body))
        b, other = self.under(negate(c), lambda: self.value(node.orelse))
        if isinstance(a, Buffer) or isinstance(b, Buffer) or a.sort != b.sort: raise self.refuse(node, 'two kinds of value', 'the same kind on both sides', f'{_kind(a)} or {_kind(b)}')
        self.facts += found + other
        return choose(c, a, b)

def _kind(t: object) -> str:
    if isinstance(t, Buffer): return 'a buffer'
    return {INT: 'an int', BOOL: 'a condition', FLOAT: 'a float', VECTOR: 'a vector', TILE: 'a tile'}.get(getattr(t, 'sort', None), 'nothing')


# %% [markdown]
# ## Memory
#
# Cells of small or unsigned integers have to be widened by hand, `i64(ids[b])`: in numba `-x` of an `int8` that is -128 is
# -128 again, and the difference of two `uint8` can be $2^{64} - 2$.

# %%
#| export
class Memory(Expressions):
    "Reads, writes, and calls of functions."
    def buffer(self, node: ast.expr) -> Buffer:
        found = self.env.get(node.id) if isinstance(node, ast.Name) else None
        if not isinstance(found, Buffer): raise self.refuse(node, 'not a buffer', 'the name of a buffer')
        return found

    def access(self, node: ast.AST, buffer: Buffer, index: Term, write: bool, cells: int = 1) -> None:
        "Note an access, and that it must be in bounds."
        a = Access(buffer, index, cells, write, tuple(self.facts), self.loops, node, self.where(node), self.source)
        self.accesses.append(a)
        last = integer('+', index, literal(cells - 1))
        self.check('bounds', node, conj(less(literal(0), index, '<='), less(last, buffer.length)), f'an index of {buffer.name}', index, (a,))

    def Subscript(self, node, raw: bool = False):
        buffer, index = self.buffer(node.value), self.index(node)
        if buffer.dtype in INTS and buffer.dtype is not i64 and not raw:
            raise self.refuse(node, f'{buffer.dtype.__name__} in arithmetic', f'i64({ast.unparse(node)}), or f32(...)', hint='small and unsigned integers wrap around; widen them first')
        self.access(node, buffer, index, False)
        return self.load(buffer, index)

    def index(self, node: ast.Subscript) -> Term:
        if isinstance(node.slice, (ast.Slice, ast.Tuple)): raise self.refuse(node, 'not one cell', 'a buffer and one index, x[i*k + j]')
        return self.int(node.slice)

    def load(self, buffer: Buffer, index: Term) -> Term:
        "The value of a cell. Of an integer it is known what its type and its contract say."
        if buffer.dtype in FLOATS: return ANY
        value = self.fresh(f'{buffer.name}_cell', INT, int_range(buffer.dtype))
        self.facts += (known := self.cell_facts(buffer, value))
        self.always |= set(known)
        return value

    def cell_facts(self, buffer: Buffer, value: Term) -> list[Term]:
        "What is known of any cell of a buffer of integers."
        lo, hi = int_range(buffer.dtype)
        return [conj(less(literal(lo), value, '<='), less(value, literal(hi), '<='))]*(buffer.dtype is not i64) + ([buffer.element(value)] if buffer.element else [])

    def assign(self, target: ast.Subscript, value: Term, node: ast.AST) -> None:
        "Write a cell; into a buffer of integers only what its type and its contract allow."
        buffer, index = self.buffer(target.value), self.index(target)
        if getattr(value, 'sort', None) not in ((INT, FLOAT) if buffer.dtype in FLOATS else (INT,)):
            raise self.refuse(node, f'{_kind(value)} into a buffer of {buffer.dtype.__name__}', 'a number' if buffer.dtype in FLOATS else 'a whole number')
        if buffer.dtype in INTS:
            (lo, hi), span = int_range(buffer.dtype), self.span(value)
            if span[0] < lo or span[1] > hi: self.check('overflow', node, conj(less(literal(lo), value, '<='), less(value, literal(hi), '<=')), f'a number that fits {buffer.dtype.__name__}', value)
            if buffer.element: self.check('contract', node, buffer.element(value), f'what {buffer.name} promises of each cell', value)
        self.access(node, buffer, index, True)
        self.store(buffer, index, value)
    def store(self, buffer: Buffer, index: Term, value: Term) -> None: pass

    def Call(self, node):
        if node.keywords: raise self.refuse(node, 'not understood', 'arguments without names')
        meaning = self.meaning(node.func)
        if meaning is len and len(node.args) == 1: return self.buffer(node.args[0]).length
        if meaning is all and self.ghost: return self.every(node)
        if self.ghost and callable(meaning) and (f := function_of(meaning)): return self.spec(node, f)
        if one_of(meaning, min, max) and len(node.args) > 1: return self.extreme(node, meaning is min)
        if one_of(meaning, i64, int): return self.widened(node)
        if one_of(meaning, *FLOATS, float): return self.to_float(node)
        if one_of(meaning, abs, *_MATH): return self.math(node, meaning)
        if hasattr(meaning, '__word__'): return self.word(node, *meaning.__word__)
        if hasattr(meaning, '__kernel__'): return self.kernel(node, meaning)
        what = 'nothing of that name' if meaning is None else f'{dotted(node.func)}, which is {"a function" if callable(meaning) else "a value"} that is no kernel'
        raise self.refuse(node, 'a call that is not understood', 'min, max, len, abs, i64, f32, f64, a function of math, a word, or another kernel', what)

    def extreme(self, node, least):
        values = [self.value(a) for a in node.args]
        if any(isinstance(v, Buffer) or v.sort not in (INT, FLOAT) for v in values): raise self.refuse(node, 'not understood', 'numbers')
        if any(v.sort == FLOAT for v in values): return self.float_extreme(least, values)
        out = values[0]
        for v in values[1:]: out = choose(less(out, v, '<='), *((out, v) if least else (v, out)))
        return out
    def float_extreme(self, least, values): return ANY

    def one(self, node, raw=False):
        if len(node.args) != 1: raise self.refuse(node, 'not understood', 'one argument')
        arg = node.args[0]
        return self.Subscript(arg, raw=True) if isinstance(arg, ast.Subscript) else self.value(arg)
    def widened(self, node):
        t = self.one(node)
        if self.meaning(node.func) is int and isinstance(node.args[0], ast.Subscript): raise self.refuse(node, 'int of a cell', 'i64(...)', hint="numba's int() keeps an unsigned number unsigned")
        if t.sort != INT: raise self.refuse(node, 'a float made an integer', 'an int', f'{ast.unparse(node.args[0])} is {_kind(t)}', 'out of range, or not a number, it could be any integer')
        return t
    def to_float(self, node):
        t = self.one(node)
        if isinstance(t, Buffer) or t.sort not in (INT, FLOAT): raise self.refuse(node, 'not understood', 'a number', _kind(t))
        return self.as_float(t)
    def as_float(self, t): return ANY
    def math(self, node, meaning):
        values = [self.value(a) for a in node.args]
        if any(isinstance(v, Buffer) or v.sort != FLOAT for v in values): raise self.refuse(node, 'not understood', 'floats', hint='f32(n) makes a float')
        return self.float_call(meaning, values)
    def float_call(self, meaning, values): return ANY

    def word(self, node, gives, touches):
        "A word: each row that it touches is an access of several cells."
        values = [self.value(a) for a in node.args]
        for array, index, cells, write, rows, stride in (Touches(*t) for t in touches):
            if max(array, index, stride or 0) >= len(values) or not isinstance(values[array], Buffer): raise self.refuse(node, 'not understood', 'a buffer and an index')
            for r in range(rows):
                at = self.int(node.args[index])
                if r: at = self.fits(integer('+', at, self.fits(integer('*', literal(r), self.int(node.args[stride])), node)), node)
                self.access(node, values[array], at, write, cells)
                if write and values[array].dtype in INTS: raise self.refuse(node, 'a word that writes integers', 'a word that writes floats')
        return None if gives is None else App('any', (), _GIVES[gives])

    def kernel(self, node, kernel): raise NotImplementedError
    def every(self, node): raise NotImplementedError
    def spec(self, node, function): raise NotImplementedError

# %% [markdown]
# ## What this does not show
#
# - What a float is. `x[i]` is some number, and a condition on it may go either way.
# - That numba means by these words what we mean. Where it does not (small integers, negative indices, integer division by
#   zero), the walk refuses, or asks for a proof that it does not happen.
