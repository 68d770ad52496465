# %%
#| default_exp kernel.values

# %% [markdown]
# # Following values
# > A float is a term, a buffer an array; a write makes a new array.

# %% [markdown]
# To say what a kernel computes, a second walk follows its values. A float is a term made of `fadd`, `fmul` and other functions of which
# nothing is known, a buffer is an array, and a write makes a new array. Bounds and races are not this walk's business: they are
# proved, which is why a buffer may be taken for an array here, and `prange` for a loop that goes one by one.

# %%
#| hide
#| export
import ast
from fractions import Fraction

import numpy as np

from bendml.kernel.calls import KernelWalk
from bendml.kernel.contracts import FLOATS, Source, f64
from bendml.kernel.expressions import ORDER
from bendml.kernel.numbers import FUNCTIONS, OPERATIONS, fmax, fmin, fneg, fnum, freal
from bendml.kernel.state import FLOAT, VECTOR, Buffer, between
from bendml.laws.read import function_of
from bendml.laws.terms import (BOOL, INT, App, Sort, Symbol, Term, Var, equal, forall, free, implies,
                               literal, negate)


# %% [markdown]
# ## Floats
#
# All floats in such a kernel have one type. Where two types meet, numba and Python do not agree on the result's.

# %%
#| export
def apply(f, *args: Term) -> App: return function_of(f)(*args)

class Floats(KernelWalk):
    "Floats as terms."
    def __init__(self, source: Source):
        super().__init__(source)
        self.content: dict[Buffer, Term] = {}
        self.before: dict[Buffer, Term] = {}
        self.outer: list = []
        self.types: set = set()
        self.contexts: dict = {}

    def one_type(self, dtype: type, node: ast.AST) -> None:
        "All floats have one type: numba and Python do not agree on mixed ones."
        self.types.add(dtype)
        if len(self.types) > 1: raise self.refuse(node, 'two types of float', 'one type of float in a kernel that says what it computes', ast.unparse(node).splitlines()[0], 'write f32(0.5) for 0.5')

    def float_parameter(self, name): return self.fresh(name, FLOAT)

    def number(self, value):
        self.one_type(type(value) if type(value) in FLOATS else f64, self.source.node)
        return self.constant(value)

    def constant(self, value):
        if not np.isfinite(value) or (value == 0 and np.signbit(value)): raise self.refuse(self.source.node, 'not understood', 'a finite number', repr(value))
        return apply(fnum, literal(int(value))) if value == int(value) else App(Symbol(function_of(freal)), (literal(Fraction(float(value))),), FLOAT)

    def negated(self, t): return apply(fneg, t)

    def float_op(self, node, a, b):
        op = {ast.Add: '+', ast.Sub: '-', ast.Mult: '*', ast.Div: '/'}.get(type(node.op))
        if op is None or a.sort != FLOAT or b.sort != FLOAT: raise self.refuse(node, 'not understood where values matter', '+ - * / on floats', hint='f32(n) makes a float of an int')
        return apply(OPERATIONS[op], a, b)

    def floating(self, node, a, b):
        if VECTOR in (a.sort, b.sort): raise self.refuse(node, 'a vector where values matter', 'numbers one by one')
        return super().floating(node, a, b)


# %%
#| export
class Compared(Floats):
    "Comparisons and functions of floats."
    def float_compare(self, op, a, b):
        if a.sort != FLOAT or b.sort != FLOAT: raise self.refuse(self.source.node, 'an int compared with a float', 'two floats', hint='f32(n) makes a float of an int')
        name = ORDER[op]
        if name in ('>', '>='): a, b, name = b, a, {'>': '<', '>=': '<='}[name]
        found = apply(OPERATIONS[{'=': '==', 'distinct': '=='}.get(name, name)], a, b)
        return negate(found) if name == 'distinct' else found

    def float_extreme(self, least, values):
        if any(v.sort != FLOAT for v in values): raise self.refuse(self.source.node, 'an int compared with a float', 'floats')
        out = values[0]
        for v in values[1:]: out = apply(fmin if least else fmax, out, v)
        return out

    def to_float(self, node):
        meaning, inner = self.meaning(node.func), node.args[0] if len(node.args) == 1 else None
        self.one_type(f64 if meaning is float else meaning, node)
        if isinstance(inner, ast.Constant) and type(inner.value) is float: return self.constant(meaning(inner.value))
        return super().to_float(node)

    def as_float(self, t): return t if t.sort == FLOAT else apply(fnum, t)

    def float_call(self, meaning, values):
        if meaning not in FUNCTIONS or len(values) != 1: raise self.refuse(self.source.node, 'not understood where values matter', ', '.join(f.__name__ for f in FUNCTIONS), meaning.__name__)
        return apply(FUNCTIONS[meaning], *values)

    def word(self, node, gives, touches): raise self.refuse(node, 'a word where values matter', 'numbers one by one')


# %% [markdown]
# ## Buffers

# %%
#| export
class Arrays(Compared):
    "Buffers as arrays."
    def given(self, p, scalars):
        buffer = super().given(p, scalars)
        if buffer.dtype in FLOATS: self.one_type(buffer.dtype, p.length or self.source.node)
        self.content[buffer] = self.before[buffer] = self.array(buffer)
        return buffer

    def array(self, buffer: Buffer) -> Var: return self.fresh(buffer.name, Sort('Array', (INT, FLOAT if buffer.dtype in FLOATS else INT)))

    def made(self, s):
        buffer = super().made(s)
        if buffer is not None:
            if buffer.dtype in FLOATS: self.one_type(buffer.dtype, s)
            self.content[buffer] = self.array(buffer)
            if self.meaning(s.value.func) is np.zeros:
                i, zero = Var('i!', INT), apply(fnum, literal(0)) if buffer.dtype in FLOATS else literal(0)
                cell = App('select', (self.content[buffer], i), zero.sort)
                self.facts.append(forall((i,), equal(cell, zero), ((cell,),)))
        return buffer

    def access(self, node, buffer, index, write, cells=1): pass

    def load(self, buffer, index):
        value = App('select', (self.content[buffer], index), FLOAT if buffer.dtype in FLOATS else INT)
        if value.sort == INT and not any(v.name.endswith('!') for v in free(value)):
            inside = between(literal(0), index, buffer.length)   # a contract may name a cell that is not there
            self.facts += [implies((inside,), f) for f in self.cell_facts(buffer, value)]
        return value

    def store(self, buffer, index, value):
        if buffer.dtype in FLOATS: value = self.as_float(value)
        self.content[buffer] = App('store', (self.content[buffer], index, value), self.content[buffer].sort)


# %% [markdown]
# At the top of a loop, what a buffer holds that the body writes into is unknown, but for what the invariants say. A claim whose
# range ends at the loop's number, `all(... for x in range(i))`, is about the rounds that are done; the loops inside carry it by
# themselves.

# %%
#| export
class Forgetting(Arrays):
    "What a loop does to buffers."
    def written(self, body: list) -> set[str]:
        "The buffers that some statements write into, by name."
        out = set()
        for n in (n for s in body for n in ast.walk(s)):
            if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store) and isinstance(n.value, ast.Name): out.add(n.value.id)
            if isinstance(n, ast.Call) and hasattr(k := self.meaning(n.func), '__kernel__'):
                out |= {a.id for p, a in zip(k.source.params, n.args) if p.name in k.written and isinstance(a, ast.Name)}
        return out

    def memory(self): return dict(self.content)

    def forget(self, body):
        for name in sorted(self.written(body)):
            if isinstance(b := self.env.get(name), Buffer) and b in self.content: self.content[b] = self.array(b)

    def same(self, was): return [equal(self.content[b], a) for b, a in was.items() if self.content[b] != a]
    def anything(self, name, was): return self.fresh(name, was.sort) if was.sort in (INT, BOOL, FLOAT) else was

    def around(self, body):
        return [c for c in self.outer if self.written(body)]

    def inside(self, says):
        number = self.loops[-1].name
        self.outer = self.outer + [a for a in says if a not in self.outer and isinstance(a, ast.Call) and a.args and isinstance(a.args[0], ast.GeneratorExp)
                                   and any(isinstance(n, ast.Name) and n.id == number for g in a.args[0].generators for n in ast.walk(g.iter))]

    def go(self, *args):
        before = self.outer
        super().go(*args)
        self.outer = before


# %% [markdown]
# In a kernel that is called, the claims of the loops around the call are still about the caller's names.

# %%
#| export
class Values(Forgetting):
    "A walk that follows what floats and buffers hold."
    def saved(self): return dict(self.env), dict(self.content)
    def restore(self, saved): self.env, self.content = map(dict, saved)

    def kernel(self, node, kernel):
        "A call of another kernel: the claims of the loops around are still about the caller's names."
        before, known = self.before, {a: (self.source, self.env, self.before) for a in self.outer if a not in self.contexts}
        self.contexts |= known
        self.before = dict(self.content)
        result = super().kernel(node, kernel)
        self.before = before
        for a in known: del self.contexts[a]
        return result

    def claim(self, a):
        here = self.source, self.env, self.before
        self.source, self.env, self.before = self.contexts.get(a, here)
        found = super().claim(a)
        self.source, self.env, self.before = here
        return found

# %% [markdown]
# ## What this does not show
#
# How far a result is from the exact one. Rounding is part of `fadd`; the proof is about which numbers are added, and when.
