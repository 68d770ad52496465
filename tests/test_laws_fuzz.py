"""Random functions are read as they run, and random false laws are not proved."""
import itertools, random

import pytest
from bendml.laws import LawError, discharge, solvers
from bendml.laws.claims import load
from bendml.laws.guards import disagreement
from bendml.laws.induct import Law, obligations
from bendml.laws.prove import FULL, QUICK, ask, search
from bendml.laws.read import function_of
from bendml.laws.reflect import definitions
from bendml.laws.terms import App, Symbol, build, conj, constructors, equal, fields, literal, script

pytestmark = pytest.mark.slow

PRELUDE = '''from typing import Self
from bendml.laws import A, Cons, List, Nil, datatype, law, pure
from bendml.nat import *
from bendml.nat import S, Z, Nat
from bendml.lists import append, length, reverse
'''
NUMBER = itertools.count()


def loaded(tmp_path, code):
    path = tmp_path/f'fuzz_{next(NUMBER)}.py'
    path.write_text(PRELUDE + code)
    return load(str(path))


class Writer:
    "Writes random functions of a natural number, a list and an integer."
    def __init__(self, seed): self.rng, self.names = random.Random(seed), itertools.count()
    def pick(self, *options): return self.rng.choice(options)()
    def name(self): return f'v{next(self.names)}' if self.rng.random() < .7 else self.rng.choice(['x', 'y', 'h'])

    def nat(self, env, d):
        "An expression for a natural number; `env` tells the sort of each name."
        names = [n for n, s in env.items() if s == 'nat']
        leaf = [lambda: self.rng.choice(names), lambda: 'Z()'] if names else [lambda: 'Z()']
        if d <= 0: return self.pick(*leaf)
        n, again = (lambda: self.nat(env, d - 1)), [m for m in env.get('smaller', ())]
        return self.pick(*leaf, lambda: f'S({n()})', lambda: f'add({n()}, {n()})', lambda: f'sub({n()}, {n()})', lambda: f'half({n()})',
                         lambda: f'({n()} if {self.cond(env, d - 1)} else {n()})', lambda: f'length({self.list(env, d - 1)})',
                         lambda: f'f({self.rng.choice(again)}, {self.list(env, d - 1)}, {self.int(env, d - 1)})' if again else n())

    def list(self, env, d):
        names = [n for n, s in env.items() if s == 'list']
        leaf = [lambda: self.rng.choice(names)] if names else [lambda: 'Nil()']
        if d <= 0: return self.pick(*leaf)
        return self.pick(*leaf, lambda: f'Cons({self.nat(env, d - 1)}, {self.list(env, d - 1)})', lambda: f'reverse({self.list(env, d - 1)})',
                         lambda: f'append({self.list(env, d - 1)}, {self.list(env, d - 1)})')

    def int(self, env, d):
        leaf = [lambda: 'n', lambda: str(self.rng.randint(-3, 3))]
        if d <= 0: return self.pick(*leaf)
        i = lambda: self.int(env, d - 1)
        return self.pick(*leaf, lambda: f'({i()} + {i()})', lambda: f'({i()} - {i()})', lambda: f'(-{i()})', lambda: f'({i()}*{self.rng.randint(-2, 3)})',
                         lambda: f'({i()} // {self.rng.choice([-3, -2, 2, 5])})', lambda: f'({i()} % {self.rng.choice([-3, -2, 2, 5])})',
                         lambda: f'nat_to_int({self.nat(env, d - 1)})')

    def cond(self, env, d):
        c, n, i = (lambda: self.cond(env, d - 1)), (lambda: self.nat(env, d - 1)), (lambda: self.int(env, d - 1))
        op = lambda: self.rng.choice(['<', '<=', '>', '>=', '==', '!='])
        leaf = [lambda: f'{i()} {op()} {i()}', lambda: f'{i()} {op()} {i()} {op()} {i()}', lambda: f'{n()} == {n()}', lambda: f'{n()} != {n()}', lambda: f'le({n()}, {n()})']
        if d <= 0: return self.pick(*leaf)
        return self.pick(*leaf, lambda: f'({c()} and {c()})', lambda: f'({c()} or {c()})', lambda: f'(not {c()})', lambda: self.rng.choice(['True', 'False']))

    def pattern(self, sort, env, d, inside):
        "A pattern; the names it binds go into `env`, those inside a constructor into `inside`."
        kind = self.rng.random()
        if d <= 0 or kind < .35:
            if self.rng.random() < .4: return '_'
            name = self.name()
            if name in inside: return '_'
            env[name] = sort
            inside.append(name)
            return name
        if sort == 'nat': p = 'Z()' if kind < .55 else f"S({self.pattern('nat', env, d - 1, inside)})"
        else: p = 'Nil()' if kind < .55 else self.rng.choice(['Cons()', f"Cons({self.pattern('nat', env, d - 1, inside)})", f"Cons({self.pattern('nat', env, d - 1, inside)}, {self.pattern('list', env, d - 1, inside)})"])
        if self.rng.random() < .15 and (name := f'v{next(self.names)}'): env[name] = sort; p = f'({p} as {name})'
        return p

    def body(self, env, d, indent):
        pad, e = ' '*indent, dict(env)
        if d <= 0 or self.rng.random() < .15: return [f'{pad}return {self.nat(env, 2)}']
        kind = self.rng.random()
        if kind < .2:
            name, sort = self.name(), self.rng.choice(['nat', 'list'])
            if name == 'h': sort = 'nat'
            line = f'{pad}{name} = {getattr(self, sort)(env, 2)}'
            e['smaller'] = [m for m in env.get('smaller', ()) if m != name]
            return [line, *self.body(e | {name: sort}, d - 1, indent)]
        if kind < .4:
            head = [f'{pad}if {self.cond(env, 1)}:', *self.body(env, d - 1, indent + 4)]
            return head + ([f'{pad}else:', *self.body(env, d - 1, indent + 4)] if self.rng.random() < .5 else self.body(env, d - 1, indent))
        many = self.rng.random() < .5
        subjects = [self.rng.choice([(n, s) for n, s in env.items() if s in ('nat', 'list')] + [(self.nat(env, 1), 'nat')]) for _ in range(2 if many else 1)]
        out = [f"{pad}match {', '.join(t for t, _ in subjects)}:"]
        for _ in range(self.rng.randint(1, 4)):
            inner, found = dict(env), []
            ps = [self.pattern(s, inner, 2, found) for _, s in subjects]
            if all(not p.startswith(('Z', 'S', 'Nil', 'Cons', '(')) for p in ps): continue
            inner['smaller'] = [m for m in found if inner[m] == 'nat' and subjects[0][0] == 'x' and 'S' in ps[0] and m in ps[0]] + [m for m in env.get('smaller', ()) if m not in inner or m not in found]
            out += [f"{pad}    case {', '.join(ps)}:", *self.body(inner, d - 1, indent + 8)]
        return out + [f"{pad}    case {', '.join('_' for _ in subjects)}:", *self.body(env, d - 1, indent + 8)]

    def function(self):
        return '\n'.join(['@pure', 'def f(x: Nat, y: List[Nat], n: int) -> Nat:', *self.body({'x': 'nat', 'y': 'list', 'n': 'int'}, 3, 4)]) + '\n'


def as_term(v, s):
    "A value as a term."
    if not constructors(s): return literal(v)
    return build(type(v), tuple(as_term(getattr(v, n), f) for n, f in fields(type(v), s)), s)


@pytest.mark.parametrize('seed', range(8))
def test_random_functions_are_read_as_they_run(seed, tmp_path):
    "The code, our own evaluation of the equations, z3 and cvc5 agree on every value that we try."
    from bendml.laws.datatypes import random_value
    accepted = 0
    for k in range(40):
        code = Writer(1000*seed + k).function()
        try: m = loaded(tmp_path, code)
        except (LawError, SyntaxError): continue
        f, rng = function_of(m.f), random.Random(k)
        accepted += 1
        assert disagreement(f, 80) is None, code
        tries = [tuple(random_value(p.sort, rng, 3) for p in f.params) for _ in range(4)]
        facts = [equal(f(*(as_term(a, p.sort) for a, p in zip(args, f.params))), as_term(f.fn(*args), f.sort)) for args in tries if abs(args[2]) < 30]
        if len(facts) < 2: continue
        wrong = facts[:-1] + [equal(facts[-1].args[0], build(m.S, (facts[-1].args[1],), f.sort))]
        limit = {'z3': 3_000_000, 'cvc5': 50_000_000}
        said = [a.result for a in discharge(script(definitions(facts), conj(*facts)), limit=limit)]
        assert 'sat' not in said and 'unsat' in said, code
        assert 'unsat' not in [a.result for a in discharge(script(definitions(facts), conj(*wrong)), ('z3',), limit={'z3': 100_000})], code
    assert accepted >= 15


OPTIONS = ["induct='x'", "induct='x', gen=['y']", "induct='y', gen=['x']", "induct='x', depth=2", "induct='xs'", "induct='xs', depth=2, gen=['x', 'y']",
           "induct='nat_to_int(x)', strong=True, gen=['y']", "induct='nat_to_int(x) + nat_to_int(y)', strong=True", "cite=[add_comm, add_assoc, mul_comm, mul_dist, le_trans, le_add]",
           "induct='x', cite=[add_zero, add_succ, add_comm, le_refl, le_antisym], split=['y', 'x']", "induct='x', opaque=[mul, le]", "induct='y', cite=[add_comm.at(x='S(y)'), le_trans.at(y='add(x, y)')]"]

@pytest.mark.parametrize('seed', range(4))
def test_random_false_laws_are_not_proved(seed, tmp_path, monkeypatch):
    "Whatever induction, hypothesis and citation they are tried with."
    monkeypatch.setattr(solvers, 'LIMIT', {'z3': 40_000, 'cvc5': 5_000_000})
    w, code = Writer(seed), ''
    env = {'x': 'nat', 'y': 'nat', 'xs': 'list'}
    w.int = lambda env, d: w.rng.choice(['nat_to_int(x)', 'nat_to_int(y)', '1'])
    for k in range(25):
        claim = w.pick(lambda: f'{w.nat(env, 2)} == {w.nat(env, 2)}', lambda: w.cond(env, 1), lambda: f'{w.list(env, 2)} == {w.list(env, 2)}')
        code += f'@law({w.rng.choice(OPTIONS)})\ndef l{k}(x: Nat, y: Nat, xs: List[Nat]):\n' + f'    assert {w.cond(env, 0)}\n'*(w.rng.random() < .3) + f'    return {claim}\n'
    false = proved = 0
    for l in vars(loaded(tmp_path, code)).values():
        if not isinstance(l, Law) or not l.__module__.startswith('fuzz_'): continue
        sorts = tuple(p.sort for p in l.params)
        done = [ask(o) for o in obligations(l)]
        by = any(all(o.said(s) == 'unsat' for o in done) for s in solvers.SOLVERS)
        found = search(l.fn, sorts, *FULL)
        assert not (by and found.counterexample is not None), (l, found)
        false += found.counterexample is not None
        proved += by
    assert false >= 5 and proved >= 2   # both kinds occur
