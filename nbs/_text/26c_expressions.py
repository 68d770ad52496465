# %%
#| default_exp kernel.expressions

# %% [markdown]
# # Expressions
# > Arithmetic and conditions of a kernel as terms.

# %% [markdown]
# A float's value does not matter to where memory is touched, and is not followed here: it is `ANY`, and a condition on it may go
# either way. Integers and conditions become terms. Each method below is named after the piece of Python's syntax that it reads.

# %%
#| hide
#| export
import ast
from typing import Callable

from bendml.kernel.contracts import FLOATS, dotted
from bendml.kernel.state import FLOAT, I64, VECTOR, Buffer, Spans, choose, integer, kind_of, less
from bendml.laws.terms import BOOL, INT, App, Term, conj, equal, implies, literal, negate

# %%
#| export
ANY = App('any', (), FLOAT)   # a float whose value does not matter here

class Names(Spans):
    "Numbers and names."
    def value(self, node: ast.expr) -> Term:
        method = getattr(self, type(node).__name__, None)
        if method is None: raise self.refuse(node, f'{type(node).__name__} is not understood', 'numbers, names, arithmetic, comparisons, x[i], and known functions')
        return method(node)

    def int(self, node: ast.expr) -> Term:
        t = self.value(node)
        if getattr(t, 'sort', None) != INT: raise self.refuse(node, 'not a whole number', 'int', f'{ast.unparse(node)} is {kind_of(t)}')
        return t

    def test(self, node: ast.expr) -> Term:
        t = self.value(node)
        if getattr(t, 'sort', None) != BOOL: raise self.refuse(node, 'not a condition', 'a comparison', f'{ast.unparse(node)} is {kind_of(t)}', 'write x != 0')
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


# %% [markdown]
# ## Arithmetic
#
# Integer division rounds down in Python, in numba and, for a divisor above zero, in the logic; so that is what a divisor must be.
# Masks and shifts by a number are remainders and quotients.

# %%
#| export
_ARITH = {ast.Add: '+', ast.Sub: '-', ast.Mult: '*'}

class Arithmetic(Names):
    "Operations on numbers."
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
        if isinstance(node.op, ast.Pow) and n is not None and n < 63 and isinstance(node.left, ast.Constant): return self.whole_number(node, a.op**n)
        if n is not None and isinstance(node.op, ast.BitAnd) and n & (n + 1) == 0: return App('mod', (a, literal(n + 1)), INT)
        if n is not None and n < 63 and isinstance(node.op, ast.RShift): return App('div', (a, literal(2**n)), INT)
        if n is not None and n < 63 and isinstance(node.op, ast.LShift): return self.fits(integer('*', a, literal(2**n)), node)
        raise self.refuse(node, 'not understood for whole numbers', '+ - * // %, shifts by a number, & with 1, 3, 7, 15, ...')

    def floating(self, node, a, b):
        "Arithmetic on floats and vectors."
        if type(node.op) in (*_ARITH, ast.Div, ast.Pow) and a.sort in (FLOAT, INT) and b.sort in (FLOAT, INT): return self.float_op(node, a, b)
        if type(node.op) in _ARITH and a.sort == b.sort == VECTOR: return App('any', (), VECTOR)
        raise self.refuse(node, 'not understood', '+ - * / on numbers, + - * on vectors', f'{kind_of(a)} and {kind_of(b)}')

    def float_op(self, node, a, b): return ANY


# %% [markdown]
# ## Conditions
#
# `and`, `or` and the two sides of an `if` look at what stands to the right only if they must, and so does the walk: an access
# there is made under that condition.

# %%
#| export
ORDER = {ast.Lt: '<', ast.LtE: '<=', ast.Gt: '>', ast.GtE: '>=', ast.Eq: '=', ast.NotEq: 'distinct'}

class Conditions(Arithmetic):
    "Comparisons, and what depends on them."
    def Compare(self, node):
        left, parts = self.value(node.left), []
        for op, right in zip(node.ops, node.comparators):
            right = self.value(right)
            if type(op) not in ORDER or BOOL in (left.sort, right.sort): raise self.refuse(node, 'not understood', '< <= > >= == != between numbers')
            if left.sort == right.sort == INT: parts.append(less(left, right, ORDER[type(op)]))
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
        if isinstance(a, Buffer) or isinstance(b, Buffer) or a.sort != b.sort: raise self.refuse(node, 'two kinds of value', 'the same kind on both sides', f'{kind_of(a)} or {kind_of(b)}')
        self.facts += found + other
        return choose(c, a, b)


# %%
from bendml.kernel.contracts import Source
walk = Conditions(Source('f', 'f.py', 'f.py', ast.parse('def f(): pass').body[0], (), {}))
i, n = walk.fresh('i', INT, (0, 100)), walk.fresh('n', INT, (0, 2**48))
walk.env |= {'i': i, 'n': n}
t = walk.value(ast.parse('(i + 1)*n', mode='eval').body)
walk.span(t)

# %% [markdown]
# A product that may not fit leaves something to prove:

# %%
walk.value(ast.parse('n*n', mode='eval').body)
[(c.kind, ast.unparse(c.node)) for c in walk.checks]

# %% [markdown]
# ## What this does not show
#
# What a float is. `x[i]` is some number here; the page on [what a kernel computes](28c_functional.ipynb) follows it.
