# %%
#| default_exp kernel.statements

# %% [markdown]
# # Statements
# > Names get values, and lose them where two ways meet.

# %% [markdown]
# A name has one kind of value throughout, and has it on every way to a line, or may not be used there. In Python a loop may leave a
# name behind that it never gave a value; compiled, that is whatever was in the register.

# %%
#| hide
#| export
import ast

import numpy as np

from bendml.kernel.contracts import CONTRACTS, FLOATS, INTS, one_of
from bendml.kernel.memory import Words
from bendml.kernel.state import PARAM, Buffer, choose, less
from bendml.laws.terms import Term, conj, literal, negate


# %%
#| export
def assigned(stmts: list) -> set[str]:
    "The names that some statements give a value."
    nodes = [n for s in stmts for n in ast.walk(s)]
    bound = {t for n in nodes if isinstance(n, ast.comprehension) for t in ast.walk(n.target)}   # these live inside a contract
    return {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and n not in bound}

class Assignments(Words):
    "Assignments."
    def block(self, stmts: list) -> None:
        for s in stmts:
            method = getattr(self, type(s).__name__, None)
            if method is None or not isinstance(s, ast.stmt):
                raise self.refuse(s, f'{type(s).__name__.lower()} is not understood', 'for, while, if, assignments, assert, and one return at the end')
            method(s)

    def Pass(self, s): pass

    def bind(self, name: str, value: object, node: ast.AST) -> None:
        "Give a name a value, of the same kind each time."
        kind = 'buffer' if isinstance(value, Buffer) else getattr(value, 'sort', None)
        if kind is None: raise self.refuse(node, 'no value', 'a number')
        if self.kinds.setdefault(name, kind) != kind or (kind == 'buffer' and name in self.env):
            raise self.refuse(node, f'{name} changes its kind' if kind != 'buffer' else f'{name} is a buffer already', 'one kind of value for a name', hint='write 0.0 for a float, 0 for an int')
        self.env[name] = value

    def Assign(self, s):
        if len(s.targets) != 1: raise self.refuse(s, 'not understood', 'one target')
        target, made = s.targets[0], self.made(s)
        if made: return self.bind(target.id, made, s)
        pairs = [(target, s.value)]
        if isinstance(target, ast.Tuple) and isinstance(s.value, ast.Tuple) and len(target.elts) == len(s.value.elts): pairs = list(zip(target.elts, s.value.elts))
        values = [self.value(v) for _, v in pairs]
        for (t, v), value in zip(pairs, values):
            if isinstance(value, Buffer): raise self.refuse(s, 'another name for a buffer', 'a number', hint='use the buffer by its own name')
            if isinstance(t, ast.Subscript): self.assign(t, value, s)
            elif isinstance(t, ast.Name): self.bind(t.id, value, s)
            else: raise self.refuse(s, 'not understood', 'a name or x[i] to the left')

    def AugAssign(self, s):
        if isinstance(s.target, ast.Name):
            read = ast.copy_location(ast.Name(s.target.id, ast.Load()), s)
            return self.bind(s.target.id, self.value(ast.copy_location(ast.BinOp(read, s.op, s.value), s)), s)
        if not isinstance(s.target, ast.Subscript): raise self.refuse(s, 'not understood', 'a name or x[i] to the left')
        read = ast.copy_location(ast.Subscript(s.target.value, s.target.slice, ast.Load()), s)
        self.assign(s.target, self.value(ast.copy_location(ast.BinOp(read, s.op, s.value), s)), s)


# %% [markdown]
# `np.zeros(n, f32)` and `np.empty(n, f32)` make a buffer. It belongs to the iteration that made it.

# %%
#| export
class Making(Assignments):
    "Buffers that are made inside."
    def made(self, s: ast.Assign) -> Buffer | None:
        "A buffer made inside the kernel: `x = np.zeros(n, f32)`."
        call = s.value
        if not isinstance(call, ast.Call) or not one_of(self.meaning(call.func), np.zeros, np.empty): return None
        if len(call.args) != 2 or call.keywords or not isinstance(s.targets[0], ast.Name): raise self.refuse(s, 'not understood', 'x = np.zeros(n, f32)')
        n, dtype = self.int(call.args[0]), self.meaning(call.args[1])
        if not one_of(dtype, *FLOATS, *INTS): raise self.refuse(s, 'not a type for cells', 'f32, f64, i64, ...')
        self.check('length', call.args[0], conj(less(literal(0), n, '<='), less(n, literal(PARAM), '<=')), 'a length from 0 to 2**48', n)
        return Buffer(s.targets[0].id, dtype, n, len(self.born), given=False)


# %% [markdown]
# ## If
#
# Both ways are walked, each knowing the condition. Afterwards a name is the one value or the other, and so is a cell that was read.

# %%
#| export
def _merged(c: Term, then: dict, other: dict) -> dict:
    "What names, or cells, hold after an if: what both ways gave a value."
    both = [n for n in then if n in other and (then[n] is other[n] or not isinstance(then[n], Buffer))]
    return {n: then[n] if then[n] is other[n] else choose(c, then[n], other[n]) for n in both}

class Statements(Making):
    "Statements that choose or claim."
    def If(self, s):
        c, before = self.test(s.test), self.saved()
        def arm(stmts):
            self.restore(before)
            self.block(stmts)
            return self.saved()
        then, found = self.under(c, lambda: arm(s.body))
        other, more = self.under(negate(c), lambda: arm(s.orelse))
        self.restore(tuple(_merged(c, a, b) for a, b in zip(then, other)))
        self.facts += found + more

    def saved(self) -> tuple[dict, ...]: return dict(self.env), dict(self.cells)
    def restore(self, saved: tuple[dict, ...]) -> None: self.env, self.cells = map(dict, saved)

    def Assert(self, s):
        if not self.follows(s.test): return
        claim = self.claim(s.test)
        self.check('assert', s.test, claim, ast.unparse(s.test))
        self.facts.append(claim)

    def Expr(self, s):
        if isinstance(s.value, ast.Constant): return
        meaning = self.meaning(s.value.func) if isinstance(s.value, ast.Call) else None
        if one_of(meaning, *CONTRACTS): raise self.refuse(s, f'{meaning.__name__} in this place', 'requires at the top of a kernel, ensures at its end, invariant and decreases at the top of a loop')
        if not isinstance(s.value, ast.Call): raise self.refuse(s, 'not understood', 'a call, or an assignment')
        self.value(s.value)

# %% [markdown]
# ## What this does not show
#
# `assert` is a step of the proof here: it is proved, and then known. It is not compiled, so it cannot be used to stop a program.
