# %%
#| default_exp kernel.loops

# %% [markdown]
# # Loops
# > Through a loop once, for all its rounds.

# %% [markdown]
# A loop's body is walked once, with a letter for the round. What other names hold in that round is another matter: a name
# that the body changes could hold anything the rounds before left in it. So it gets a new letter, of which is known
#
# - what an `invariant` says: it is proved to hold on entry, and to hold after a round if it held before, and so it holds in
#   every round and at the end;
# - by itself, if the body only does `p += c` to it: it is what it was at first, plus `c` times the number of rounds.

# %%
#| hide
#| export
import ast
from typing import NamedTuple

import numpy as np

from bendml.kernel.contracts import CONTRACTS, FLOATS, INTS, Buf, Size, decreases, ensures, f32, f64, filled, int_range, invariant, is_prange, once, one_of, requires
from bendml.kernel.walk import ANY, FLOAT, I64, MEMORY, PARAM, Buffer, Loop, Memory, _kind, between, choose, integer, less
from bendml.laws.terms import BOOL, FALSE, INT, TRUE, Term, Var, conj, equal, free, implies, literal, negate, substitute


# %% [markdown]
# ## Statements

# %%
#| export
def assigned(stmts: list) -> set[str]:
    "The names that some statements give a value."
    nodes = [n for s in stmts for n in ast.walk(s)]
    bound = {t for n in nodes if isinstance(n, ast.comprehension) for t in ast.walk(n.target)}   # these live inside a contract
    return {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and n not in bound}

def _merged(c: Term, then: dict, other: dict) -> dict:
    "What names hold after an if: what both ways gave a value."
    both = [n for n in then if n in other and (then[n] is other[n] or not isinstance(then[n], Buffer))]
    return {n: then[n] if then[n] is other[n] else choose(c, then[n], other[n]) for n in both}

class Statements(Memory):
    "Assignments, conditions, contracts."
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

    def made(self, s: ast.Assign) -> Buffer | None:
        "A buffer made inside the kernel: `x = np.zeros(n, f32)`."
        call = s.value
        if not isinstance(call, ast.Call) or not one_of(self.meaning(call.func), np.zeros, np.empty): return None
        if len(call.args) != 2 or call.keywords or not isinstance(s.targets[0], ast.Name): raise self.refuse(s, 'not understood', 'x = np.zeros(n, f32)')
        n, dtype = self.int(call.args[0]), self.meaning(call.args[1])
        if not one_of(dtype, *FLOATS, *INTS): raise self.refuse(s, 'not a type for cells', 'f32, f64, i64, ...')
        self.check('length', call.args[0], conj(less(literal(0), n, '<='), less(n, literal(PARAM), '<=')), 'a length from 0 to 2**48', n)
        return Buffer(s.targets[0].id, dtype, n, len(self.born), given=False)

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
    def saved(self) -> tuple[dict, ...]: return (dict(self.env),)
    def restore(self, saved: tuple[dict, ...]) -> None: self.env = dict(saved[0])

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
# ## Loops

# %%
#| export
class Rounds(NamedTuple):
    "The rounds of a loop: the k-th has the value `value`, and `count` are made in all."
    start: Term
    stop: Term
    step: Term
    k: Term          # which round, from 0
    value: Term
    facts: tuple     # what holds in a round
    count: Term      # how many are made
    last: Term       # where it stops: the first value that is not reached
    after: tuple     # what is known of `last`

class Walk(Statements):
    "A walk through a whole kernel."
    def For(self, s):
        if s.orelse or not isinstance(s.target, ast.Name): raise self.refuse(s, 'not understood', 'for i in range(...):')
        parallel, start, stop, step = self.range(s.iter)
        if s.target.id in self.env: raise self.refuse(s, f'{s.target.id} is in use', 'a new name for the loop')
        given, body = self.contracts(s.body, (invariant,))
        changed = sorted(assigned(body) & {n for n, v in self.env.items() if not isinstance(v, Buffer)})
        if s.target.id in assigned(body): raise self.refuse(s, f'the loop changes {s.target.id}', 'a loop whose number is its own')
        if parallel and changed: raise self.refuse(s, f'{changed[0]} is shared by iterations that run at the same time', 'names that each iteration gives a value itself',
                                                   f'{changed[0]} from before the loop is changed', 'collect in a buffer, one cell for each iteration, and add up afterwards')
        loop = Loop(None, s.target.id, len(self.born), parallel, s)
        rounds = self.rounds(s, start, stop, step)
        loop.var, loop.start, loop.step = rounds.value, start, step
        loop.round = rounds.k if isinstance(rounds.k, Var) else None
        self.go(s, body, given, changed, loop, rounds)

    def range(self, call: ast.expr) -> tuple[bool, Term, Term, Term]:
        meaning = self.meaning(call.func) if isinstance(call, ast.Call) else None
        parallel = is_prange(meaning)
        if not (parallel or meaning is range) or call.keywords or not 1 <= len(call.args) <= 3 - parallel:
            raise self.refuse(call, 'not understood', 'range(n), range(a, b), range(a, b, step), prange(n) or prange(a, b)')
        args = [self.int(a) for a in call.args]
        start, stop, step = [literal(0), *args, literal(1)] if len(args) == 1 else [*args, literal(1)][:3]
        if step == literal(0): raise self.refuse(call, 'a step of 0', 'a step')
        return parallel, start, stop, step

    def rounds(self, s, start, stop, step) -> Rounds:
        "What is known in a round of `for i in range(start, stop, step)`."
        (lo, _), (_, hi) = self.span(start), self.span(stop)
        one = step == literal(1)
        down = self.span(step)[1] < 0
        if not down and self.span(step)[0] < 1: self.check('divisor', s.iter.args[2], less(literal(0), step), 'a step above zero', step)
        self.fits(integer('+', stop, step), s)
        self.fits(integer('-', stop, start), s)
        if one:
            i = self.fresh(s.target.id, INT, (lo, hi - 1))
            count = choose(less(start, stop, '<='), integer('-', stop, start), literal(0))
            return Rounds(start, stop, step, integer('-', i, start), i, (between(start, i, stop),), count, stop, (less(start, stop, '<='),))
        k = self.fresh(f'{s.target.id}_round', INT, (0, I64[1]))
        i = self.fresh(s.target.id, INT, (lo, hi - 1) if not down else (self.span(stop)[0] + 1, self.span(start)[1]))
        ahead = (lambda a, b: less(b, a)) if down else less
        at = lambda n: integer('+', start, integer('*', step, n))
        total = self.fresh(f'{s.target.id}_rounds', INT, (0, I64[1]))   # how many rounds
        made = conj(less(literal(0), total, '<='), implies((negate(ahead(start, stop)),), equal(total, literal(0))),
                    implies((ahead(start, stop),), conj(negate(ahead(at(total), stop)), ahead(at(integer('-', total, literal(1))), stop))))
        self.facts.append(made)
        self.always.add(made)
        return Rounds(start, stop, step, k, i, (less(literal(0), k, '<='), equal(i, at(k)), ahead(i, stop)), total, at(total), ())

    def contracts(self, body: list, kinds: tuple) -> tuple[list, list]:
        "A loop's invariants, as expressions, and the rest of its body."
        n = 0
        found = []
        while n < len(body) and isinstance(body[n], ast.Expr) and isinstance(body[n].value, ast.Call) and one_of(self.meaning(body[n].value.func), *kinds):
            found += [(self.meaning(body[n].value.func), a) for a in body[n].value.args]
            n += 1
        return found, body[n:]

    def go(self, s, body, given, changed, loop, r: Rounds):
        "Through a round."
        entry, outside, was = dict(self.env), len(self.facts), self.memory()
        says = [a for kind, a in given if kind is invariant and self.follows(a)]
        def state(names: dict, at: Term) -> list[Term]:
            "The invariants, where names have these values and the loop's number is `at`."
            before, self.env = self.env, entry | names | {s.target.id: at}
            claims = [self.claim(a) for a in says]
            self.env = before
            return claims
        says += self.around(body)
        for a, c in zip(says, state({}, r.start)): self.check('invariant', a, c, f'{ast.unparse(a)}, when the loop begins', given=r.after)
        adds = {n: self.added(n, body, changed) for n in changed}
        heads = {n: integer('+', entry[n], integer('*', adds[n], r.k)) if adds[n] is not None else self.anything(n, entry[n]) for n in changed}
        self.loops += (loop,)
        self.inside(says)
        if self.kinds.setdefault(s.target.id, INT) != INT: raise self.refuse(s, f'{s.target.id} changes its kind', 'one kind of value for a name')
        self.facts += r.facts
        self.forget(body)
        self.facts += state(heads, r.value)
        self.env = entry | heads | {s.target.id: r.value}
        self.block(body)
        after = {n: self.env[n] for n in changed if n in self.env}
        if len(after) == len(changed):
            for a, c in zip(says, state(after, integer('+', r.value, r.step))): self.check('invariant', a, c, f'{ast.unparse(a)}, after a round if before it')
        elif says: raise self.refuse(s, 'a name may have lost its value', 'names that keep a value through the loop')
        self.loops = self.loops[:-1]
        del self.facts[outside:]
        final = {n: integer('+', entry[n], integer('*', adds[n], r.count)) if adds[n] is not None else self.anything(n, entry[n]) for n in changed}
        self.env = {n: v for n, v in (entry | final).items()}
        self.forget(body)
        skipped = conj(*(equal(final[n], entry[n]) for n in changed if final[n] != entry[n] and adds[n] is None), *self.same(was))
        for c in state(final, r.last): self.facts.append(implies(r.after, c))
        if r.after and skipped != TRUE: self.facts.append(implies((negate(conj(*r.after)),), skipped))

    def follows(self, a: ast.expr) -> bool:
        "Is this only about integers? What is about the values of cells and floats is for another walk."
        def other(n):
            if isinstance(n, ast.Call): return not one_of(self.meaning(n.func), min, max, len)
            return isinstance(n, (ast.Subscript, ast.GeneratorExp)) or isinstance(n, ast.Name) and getattr(self.env.get(n.id), 'sort', None) == FLOAT
        self.functional |= (values := any(map(other, ast.walk(a))))
        return not values
    def claim(self, a: ast.expr) -> Term: return self.exactly(lambda: self.test(a))
    def around(self, body: list) -> list: return []
    def inside(self, says: list) -> None: pass
    def memory(self) -> object: return None
    def forget(self, body: list) -> None: pass
    def same(self, was: object) -> list[Term]: return []
    def anything(self, name: str, was: Term) -> Term: return was if was.sort not in (INT, BOOL) else self.fresh(name, was.sort)

    def added(self, name: str, body: list, changed: list) -> Term | None:
        "What each round adds to a name, if that is all that it does to it."
        inside = [n for s in body for n in ast.walk(s) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)]
        match [s for s in body if isinstance(s, ast.AugAssign) and isinstance(s.target, ast.Name) and s.target.id == name]:
            case [ast.AugAssign(op=ast.Add(), value=value)] if len(inside) == 1 and self.env[name].sort == INT:
                if {n.id for n in ast.walk(value) if isinstance(n, ast.Name)} & (assigned(body) | {name}): return None
                if any(isinstance(n, (ast.Call, ast.Subscript, ast.IfExp)) for n in ast.walk(value)): return None
                return self.exactly(lambda: self.int(value))
        return None

    def While(self, s):
        if s.orelse: raise self.refuse(s, 'not understood', 'while without else')
        given, body = self.contracts(s.body, (invariant, decreases))
        measures, says = [a for k, a in given if k is decreases], [a for k, a in given if k is invariant and self.follows(a)]
        if len(measures) != 1: raise self.refuse(s, 'a loop that may not end', 'decreases(...) at the top of its body', hint='a number that gets smaller with every round, and is never negative')
        changed = sorted(assigned(body) & {n for n, v in self.env.items() if not isinstance(v, Buffer)})
        entry, outside = dict(self.env), len(self.facts)
        for a in says: self.check('invariant', a, self.claim(a), f'{ast.unparse(a)}, when the loop begins')
        self.loops += (Loop(literal(0), 'while', len(self.born), False, s),)
        heads = {n: self.anything(n, entry[n]) for n in changed}
        self.env = entry | heads
        self.forget(body)
        self.facts += [self.claim(a) for a in says]
        self.facts.append(self.test(s.test))
        size = self.exactly(lambda: self.int(measures[0]))
        self.block(body)
        if any(n not in self.env for n in changed): raise self.refuse(s, 'a name may have lost its value', 'names that keep a value through the loop')
        self.check('ends', measures[0], conj(less(literal(0), size, '<='), less(self.exactly(lambda: self.int(measures[0])), size)), f'{ast.unparse(measures[0])} gets smaller, and is not negative before', size)
        for a in says: self.check('invariant', a, self.claim(a), f'{ast.unparse(a)}, after a round if before it')
        self.loops = self.loops[:-1]
        del self.facts[outside:]
        self.env = entry | {n: self.anything(n, entry[n]) for n in changed}
        self.forget(body)
        self.facts += [self.claim(a) for a in says]
        self.facts.append(negate(self.test(s.test)))


# %% [markdown]
# ## From the top to the end
#
# A call of another kernel is walked through as if its body stood there, so its accesses are checked against the caller's
# buffers, and what it `requires` has to be proved at the call. If the kernel has a proof of its own, that is enough for all that
# happens inside, and only races and double writes are still asked about. (Cells of integer buffers are looked at again: the
# caller's may be other than promised.)

# %%
#| export
_SORTS = {int: INT, Size: INT, bool: BOOL, f32: FLOAT, f64: FLOAT}

class KernelWalk(Walk):
    "A walk from a kernel's parameters to its end."
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

    def cell_check(self, p, scalars: dict) -> None:
        before, n = self.env, len(self.facts)
        self.env = scalars | {p.name: self.fresh(p.name, INT, int_range(p.type.dtype))}
        self.test(p.element)
        self.env = before
        del self.facts[n:]

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

    def kernel(self, node, kernel):
        "A call of another kernel."
        source, caller = kernel.source, (self.source, self.env, self.kinds, self.calls, self.last)
        values = [self.env[a.id] if isinstance(a, ast.Name) and isinstance(self.env.get(a.id), Buffer) else self.value(a) for a in node.args]
        if len(values) != len(source.params): raise self.refuse(node, f'{source.name} takes {len(source.params)} arguments', str(len(source.params)), str(len(values)))
        for p, v in zip(source.params, values):
            fits = isinstance(v, Buffer) and v.dtype is p.type.dtype if isinstance(p.type, Buf) else getattr(v, 'sort', None) == _SORTS[p.type]
            if not fits: raise self.refuse(node, f'{p.name} of {source.name}', str(getattr(p.type, '__name__', p.type)), f'a buffer of {v.dtype.__name__}' if isinstance(v, Buffer) else _kind(v))
        needs = [(f'0 <= {p.name}', less(literal(0), v, '<=')) for p, v in zip(source.params, values) if p.type is Size]
        covered = kernel.proof is not None and all(v.dtype in FLOATS for v in values if isinstance(v, Buffer))
        if covered and not self.settled: needs += [(f'-2**48 <= {p.name} <= 2**48', self.small(v)) for p, v in zip(source.params, values) if p.type in (int, Size)]
        inside = self.where(node)
        self.source, self.env, self.kinds, self.calls = source, {p.name: v for p, v in zip(source.params, values)}, {}, (inside,)
        needs += [(f'len({p.name}) == {ast.unparse(p.length)}', equal(v.length, self.exactly(lambda: self.int(p.length))))
                  for p, v in zip(source.params, values) if isinstance(p.type, Buf) and p.length is not None]
        body, _ = self.body(lambda a, c: needs.append((ast.unparse(a), c)))
        inner, settled = (self.source, self.calls), self.settled
        self.source, self.calls = caller[0], caller[3]
        for text, c in needs: self.check('requires', node, c, f'what {source.name} requires: {text}', given=tuple(self.limits)*('2**48' in text))
        self.facts += [c for _, c in needs]
        self.source, self.calls = inner
        self.settled = settled or covered
        result = self.finish(body)
        self.settled = settled
        self.source, self.env, self.kinds, self.calls, self.last = caller
        return result

    def small(self, t: Term) -> Term:
        "That an argument is in the range that a parameter's proof counts on."
        lo, hi = self.span(t)
        return TRUE if -PARAM <= lo and hi <= PARAM else conj(less(literal(-PARAM), t, '<='), less(t, literal(PARAM), '<='))

    def promise(self, a: ast.expr) -> None:
        "What `ensures` says has to hold at the end."
        meaning = self.meaning(a.func) if isinstance(a, ast.Call) else None
        if one_of(meaning, filled, once) and len(a.args) == 1: self.promises.append((meaning.__name__, self.buffer(a.args[0]), a))
        elif self.follows(a): self.check('ensures', a, self.claim(a), ast.unparse(a))
