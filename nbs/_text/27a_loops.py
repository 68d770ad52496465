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

from bendml.kernel.contracts import decreases, invariant, is_prange, one_of
from bendml.kernel.state import FLOAT, I64, Buffer, Loop, between, choose, integer, less
from bendml.kernel.statements import Statements, assigned
from bendml.laws.terms import BOOL, INT, TRUE, Term, Var, conj, equal, implies, literal, negate


# %%
#| export
class Claiming(Statements):
    "Invariants, and what is forgotten at the top of a loop."
    def contracts(self, body: list, kinds: tuple) -> tuple[list, list]:
        "A loop's invariants, as expressions, and the rest of its body."
        n = 0
        found = []
        while n < len(body) and isinstance(body[n], ast.Expr) and isinstance(body[n].value, ast.Call) and one_of(self.meaning(body[n].value.func), *kinds):
            found += [(self.meaning(body[n].value.func), a) for a in body[n].value.args]
            n += 1
        return found, body[n:]

    def follows(self, a: ast.expr) -> bool:
        "Is this only about integers? What is about the values of cells and floats is for another walk."
        def other(n):
            if isinstance(n, ast.Call): return not one_of(self.meaning(n.func), min, max, len)
            return isinstance(n, (ast.Subscript, ast.GeneratorExp)) or isinstance(n, ast.Name) and getattr(self.env.get(n.id), 'sort', None) == FLOAT
        self.functional |= (values := any(map(other, ast.walk(a))))
        return not values

    def claim(self, a: ast.expr) -> Term: return self.exactly(lambda: self.test(a))
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


# %% [markdown]
# What was read from memory before a loop, or in one of its rounds, is not what a read in another round gives, or one after it. And another
# walk, the one that follows values, remembers more. These are the places where it does.

# %%
#| export
class Remembering(Claiming):
    "What is done about memory; most of it only by a walk that follows values."
    def around(self, body: list) -> list: return []
    def inside(self, says: list) -> None: pass
    def memory(self) -> object: return None
    def forget(self, body: list) -> None: self.cells = {}
    def same(self, was: object) -> list[Term]: return []


# %% [markdown]
# ## Rounds
#
# In steps of $s$ from $a$, round $k$ has the number $a + sk$. How many rounds there are is the number $t$ for which the last one is
# before the stop and the next one is not.

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

class Ranges(Remembering):
    "Ranges."
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


# %% [markdown]
# ## For

# %%
#| export
class ForLoops(Ranges):
    "`for` loops."
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


# %%
#| export
class Going(ForLoops):
    "The way through a loop."
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


# %% [markdown]
# ## While
#
# A `while` loop needs a number that gets smaller with every round and is never negative: `decreases`. So it ends.

# %%
#| export
class Walk(Going):
    "A walk through statements."
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
# ## What this does not show
#
# That a loop is fast, or ends soon. It ends.
