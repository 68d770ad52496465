# %%
#| default_exp kernel.calls

# %% [markdown]
# # From the top to the end
# > What parameters are, and what a call of another kernel is.

# %% [markdown]
# A walk begins with the parameters: integers of which nothing is known but their contract, and buffers whose length is an expression
# in them.

# %%
#| hide
#| export
import ast

import numpy as np

from bendml.kernel.contracts import (FLOATS, Buf, Size, ensures, f32, f64, filled, int_range, once,
                                     one_of, requires)
from bendml.kernel.expressions import ANY
from bendml.kernel.loops import Walk
from bendml.kernel.state import FLOAT, MEMORY, PARAM, Buffer, kind_of, less
from bendml.laws.terms import BOOL, INT, TRUE, Term, conj, equal, literal

# %%
#| export
_SORTS = {int: INT, Size: INT, bool: BOOL, f32: FLOAT, f64: FLOAT}

class Parameters(Walk):
    "What is known of parameters."
    def parameter(self, name: str, type: object) -> Term:
        if type is bool: return self.fresh(name, BOOL)
        if type in FLOATS: return self.float_parameter(name)
        var = self.fresh(name, INT, (0 if type is Size else -PARAM, PARAM))
        if type is Size: self.facts.append(less(literal(0), var, '<='))
        self.limits += [less(literal(-PARAM), var, '<='), less(var, literal(PARAM), '<=')]
        return var

    def float_parameter(self, name): return ANY

    def given(self, p, scalars: dict) -> Buffer:
        "A buffer that is a parameter. Its length is an expression in the other parameters."
        def inside(node, extra={}):
            before, self.env = self.env, scalars | extra
            found = self.exactly(lambda: self.value(node))
            self.env = before
            return found
        length = inside(p.length) if p.length is not None else self.fresh(f'len_{p.name}', INT, (0, MEMORY))
        if getattr(length, 'sort', None) != INT: raise self.refuse(p.length, f'the length of {p.name} is no whole number', 'an expression in the other parameters')
        self.facts.append(less(literal(0), length, '<='))
        self.limits.append(less(length, literal(MEMORY//np.dtype(p.type.dtype).itemsize), '<='))
        element = None if p.element is None else lambda t: inside(p.element, {p.name: t})
        if element is not None and getattr(element(self.fresh(p.name)), 'sort', None) != BOOL: raise self.refuse(p.element, f'the contract of {p.name} is no condition', 'a comparison')
        return Buffer(p.name, p.type.dtype, length, len(self.born), element)

    def cell_check(self, p, scalars: dict) -> None:
        before, n = self.env, len(self.facts)
        self.env = scalars | {p.name: self.fresh(p.name, INT, int_range(p.type.dtype))}
        self.test(p.element)
        self.env = before
        del self.facts[n:]


# %% [markdown]
# ## The body

# %%
#| export
class Bodies(Parameters):
    "A kernel from its contract to its end."
    def run(self) -> 'KernelWalk':
        for p in self.source.params:
            if not isinstance(p.type, Buf): self.env[p.name] = self.parameter(p.name, p.type)
        scalars = dict(self.env)
        for p in self.source.params:
            if isinstance(p.type, Buf): self.env[p.name] = self.given(p, scalars)
        body, ends = self.body(lambda node, c: self.facts.append(c))
        for p in self.source.params:   # a call checks each cell's contract with the machine's integers
            if p.element is not None: self.cell_check(p, scalars)
        self.result = self.finish(body)
        for a in ends: self.promise(a)
        return self

    def body(self, required) -> tuple[list, list]:
        "The statements that compute, and what `ensures` says; each of `requires` is handed over."
        body = [s for s in self.source.node.body]
        if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant): del body[0]
        given, body = self.contracts(body, (requires,))
        for _, a in given:
            if not KernelWalk.follows(self, a): raise self.refuse(a, 'requires speaks of cells or floats', 'integers and lengths, which a call can check at once', hint='an integer buffer may have a contract for its cells')
            required(a, self.claim(a))
        self.last = body.pop() if body and isinstance(body[-1], ast.Return) else None
        ends = []
        while body and isinstance(e := body[-1], ast.Expr) and isinstance(e.value, ast.Call) and self.meaning(e.value.func) is ensures: ends = body.pop().value.args + ends
        return body, ends

    def finish(self, body: list) -> object:
        "Through the statements, and to the value that is returned."
        last = self.last
        self.block(body)
        if last is None or last.value is None: return None
        if isinstance(value := self.value(last.value), Buffer) or value.sort not in (INT, FLOAT, BOOL): raise self.refuse(last, 'not a number', 'a number to return')
        return value

    def small(self, t: Term) -> Term:
        "That an argument is in the range that a parameter's proof counts on."
        lo, hi = self.span(t)
        return TRUE if -PARAM <= lo and hi <= PARAM else conj(less(literal(-PARAM), t, '<='), less(t, literal(PARAM), '<='))

    def promise(self, a: ast.expr) -> None:
        "What `ensures` says has to hold at the end."
        meaning = self.meaning(a.func) if isinstance(a, ast.Call) else None
        if one_of(meaning, filled, once) and len(a.args) == 1: self.promises.append((meaning.__name__, self.buffer(a.args[0]), a))
        elif self.follows(a): self.check('ensures', a, self.claim(a), ast.unparse(a))


# %% [markdown]
# ## Other kernels
#
# A call of another kernel is walked through as if its body stood there, so its accesses are checked against the caller's
# buffers, and what it `requires` has to be proved at the call. If the kernel has a proof of its own and all its buffers hold
# floats, that proof is enough for all that happens inside, and only races and double writes are still asked about.
#
# Why is it enough? The kernel's own proof holds for all arguments that keep its contract, and that these do is proved at the call:
# what it requires, the lengths, and that no integer is out of the range that every call checks. Two of its buffers may be one
# here. That makes no difference to bounds, since nothing that is read from floats decides where memory is touched: a
# condition on a float may go either way in every proof. But it does decide who meets whom, so races are asked about again, with the
# caller's buffers. Integers that are read do decide, and the caller's may be other than promised: a kernel with
# buffers of integers is looked at in full.

# %%
#| export
class KernelWalk(Bodies):
    "A walk through a whole kernel."
    shallow = False         # not into the kernels that it calls; of them, what they write and what they give
    passed_on = frozenset() # then: the buffers that these write

    def kernel(self, node, kernel):
        "A call of another kernel."
        if self.ghost: raise self.refuse(node, f'{kernel.__name__} in a contract', 'what changes nothing: numbers, cells, specifications', hint='contracts are not compiled, so what a kernel writes there would not be written')
        if kernel.error is not None: raise self.refuse(node, f'{kernel.__name__} is refused', 'a kernel that is proved')
        source, caller, functional = kernel.source, (self.source, self.env, self.kinds, self.calls, self.last), self.functional
        values = [self.env[a.id] if isinstance(a, ast.Name) and isinstance(self.env.get(a.id), Buffer) else self.value(a) for a in node.args]
        if len(values) != len(source.params): raise self.refuse(node, f'{source.name} takes {len(source.params)} arguments', str(len(source.params)), str(len(values)))
        for p, v in zip(source.params, values):
            fits = isinstance(v, Buffer) and v.dtype is p.type.dtype if isinstance(p.type, Buf) else getattr(v, 'sort', None) == _SORTS[p.type]
            if not fits: raise self.refuse(node, f'{p.name} of {source.name}', str(getattr(p.type, '__name__', p.type)), f'a buffer of {v.dtype.__name__}' if isinstance(v, Buffer) else kind_of(v))
        needs = [(f'0 <= {p.name}', less(literal(0), v, '<=')) for p, v in zip(source.params, values) if p.type is Size]
        covered = kernel.proof is not None and all(v.dtype in FLOATS for v in values if isinstance(v, Buffer))
        if self.shallow and covered: return self.by_name(kernel, values)
        inside = self.where(node)
        self.source, self.env, self.kinds, self.calls = source, {p.name: v for p, v in zip(source.params, values)}, {}, (inside,)
        needs += [(f'len({p.name}) == {ast.unparse(p.length)}', equal(v.length, self.exactly(lambda: self.int(p.length))))
                  for p, v in zip(source.params, values) if isinstance(p.type, Buf) and p.length is not None]
        body, _ = self.body(lambda a, c: needs.append((ast.unparse(a), c)))
        inner, settled = (self.source, self.calls), self.settled
        self.source, self.calls = caller[0], caller[3]
        for text, c in needs: self.check('requires', node, c, f'what {source.name} requires: {text}')
        if covered and not self.settled:
            for p, v in zip(source.params, values):
                if p.type in (int, Size): self.check('requires', node, self.small(v), f'what every kernel requires: -2**48 <= {p.name} <= 2**48', given=tuple(self.limits))
        self.facts += [c for _, c in needs]
        self.source, self.calls = inner
        self.settled = settled or covered
        result = self.finish(body)
        self.settled = settled
        self.source, self.env, self.kinds, self.calls, self.last = caller
        if covered: self.functional = functional   # what it says of values is its own affair, unless the caller says something too
        return result

    def by_name(self, kernel, values) -> Term | None:
        "What is known of a call without a look inside."
        self.passed_on |= {v.name for p, v in zip(kernel.source.params, values) if p.name in kernel.written and v.given}
        given = kernel.known.result
        return None if given is None else ANY if given.sort == FLOAT else self.fresh(kernel.__name__, given.sort)


# %%
from bendml.kernel.contracts import f32, prange, read_kernel

def transpose(n: Size, m: Size, x: Buf["n*m", f32], y: Buf["m*n", f32]):
    for i in prange(n):
        for j in range(m): y[j*n + i] = x[i*m + j]

walk = KernelWalk(read_kernel(transpose)).run()
for a in walk.accesses: print('write' if a.write else 'read ', a.buffer.name, ast.unparse(a.node), '  inside', [l.name for l in a.loops])

# %%
[c.kind for c in walk.checks]

# %% [markdown]
# ## What this does not show
#
# A kernel cannot call itself: its name means nothing yet when it is read.
