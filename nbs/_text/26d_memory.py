# %%
#| default_exp kernel.memory

# %% [markdown]
# # Memory and calls
# > Reads, writes, and the few functions that a kernel may call.

# %% [markdown]
# Each access has to be in bounds, and is noted for the questions about two accesses at a time. An integer that is read from
# memory is what its type and its contract say. Cells of small or unsigned integers have to be widened by hand, `i64(ids[b])`: in
# numba `-x` of an `int8` that is -128 is -128 again, and the difference of two `uint8` can be $2^{64} - 2$.
#
# A cell that is read twice has one value, so that `if ids[b] < n: x[ids[b]] = 0` can be proved; but only until something is written,
# whatever and wherever it is, and not into a loop or out of it. That the first read may have been made under a condition, `k < n and
# ids[k] < m`, does no harm: without the condition nothing is known of the symbol, so it may stand for what the cell holds then.

# %%
#| hide
#| export
import ast, math

from bendml.kernel.contracts import FLOATS, INTS, Touches, dotted, i64, int_range, one_of
from bendml.kernel.expressions import ANY, Conditions
from bendml.kernel.state import FLOAT, TILE, VECTOR, Access, Buffer, choose, integer, kind_of, less
from bendml.laws.read import function_of
from bendml.laws.terms import INT, App, Term, conj, literal


# %%
#| export
class Memory(Conditions):
    "Reads and writes."
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
        if write: self.cells = {}

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
        if (buffer, index) not in self.cells: self.cells[buffer, index] = self.fresh(f'{buffer.name}_cell', INT, int_range(buffer.dtype))
        known = self.cell_facts(buffer, value := self.cells[buffer, index])
        self.facts += [f for f in known if f not in self.facts]
        self.always |= set(known)
        return value

    def cell_facts(self, buffer: Buffer, value: Term) -> list[Term]:
        "What is known of any cell of a buffer of integers."
        lo, hi = int_range(buffer.dtype)
        return [conj(less(literal(lo), value, '<='), less(value, literal(hi), '<='))]*(buffer.dtype is not i64) + ([buffer.element(value)] if buffer.element else [])


# %%
#| export
class Writing(Memory):
    "Writes; into a buffer of integers only what its type and its contract allow."
    def assign(self, target: ast.Subscript, value: Term, node: ast.AST) -> None:
        "Write a cell."
        buffer, index = self.buffer(target.value), self.index(target)
        if getattr(value, 'sort', None) not in ((INT, FLOAT) if buffer.dtype in FLOATS else (INT,)):
            raise self.refuse(node, f'{kind_of(value)} into a buffer of {buffer.dtype.__name__}', 'a number' if buffer.dtype in FLOATS else 'a whole number')
        if buffer.dtype in INTS:
            (lo, hi), span = int_range(buffer.dtype), self.span(value)
            if span[0] < lo or span[1] > hi: self.check('overflow', node, conj(less(literal(lo), value, '<='), less(value, literal(hi), '<=')), f'a number that fits {buffer.dtype.__name__}', value)
            if buffer.element: self.check('contract', node, buffer.element(value), f'what {buffer.name} promises of each cell', value)
        self.access(node, buffer, index, True)
        self.store(buffer, index, value)

    def store(self, buffer: Buffer, index: Term, value: Term) -> None: pass


# %% [markdown]
# ## Calls
#
# Functions are known by what they are, not by their name: a `min` of somebody else's is not taken for Python's.

# %%
#| export
_MATH = tuple(getattr(math, n) for n in 'exp log sqrt tanh sin cos erf fabs log1p expm1 pow'.split())

class Calls(Writing):
    "Calls of functions."
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


# %%
#| export
class Numbers(Calls):
    "Functions that make and take floats."
    def widened(self, node):
        t = self.one(node)
        if self.meaning(node.func) is int and isinstance(node.args[0], ast.Subscript): raise self.refuse(node, 'int of a cell', 'i64(...)', hint="numba's int() keeps an unsigned number unsigned")
        if t.sort != INT: raise self.refuse(node, 'a float made an integer', 'an int', f'{ast.unparse(node.args[0])} is {kind_of(t)}', 'out of range, or not a number, it could be any integer')
        return t

    def to_float(self, node):
        t = self.one(node)
        if isinstance(t, Buffer) or t.sort not in (INT, FLOAT): raise self.refuse(node, 'not understood', 'a number', kind_of(t))
        return self.as_float(t)

    def as_float(self, t): return ANY

    def math(self, node, meaning):
        values = [self.value(a) for a in node.args]
        if any(isinstance(v, Buffer) or v.sort != FLOAT for v in values): raise self.refuse(node, 'not understood', 'floats', hint='f32(n) makes a float')
        return self.float_call(meaning, values)

    def float_call(self, meaning, values): return ANY


# %% [markdown]
# ## Words
#
# Each row that a word touches is an access of several cells. What other kernels do, and what specifications say, comes later.

# %%
#| export
_GIVES = {'f32': FLOAT, 'f64': FLOAT, 'vector': VECTOR, 'tile': TILE}

class Words(Numbers):
    "Calls of words."
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
# That numba means by these functions what Python means. Where it does not, the walk refuses, or asks for a proof that the case
# does not happen.
