"""Verdicts, and attempts to have something false proved. PYTEST_DONT_REWRITE: laws are read from their code."""
import io, os, signal, subprocess, sys, time
from fractions import Fraction
from typing import Self, TypeVar

import pytest
from hypothesis import given, settings, strategies as st

from bendml import lists, nat
from bendml.laws import A, Array, Cons, Law, LawError, List, Nil, Theorem, abstract, axiom, datatype, discharge, law, prove, pure, select, solvers, store, to_list
from bendml.laws.claims import find
from bendml.laws.guards import contradiction, disagreement, mutants
from bendml.laws.induct import functions, obligations
from bendml.laws.prove import QUICK, ask, search
from bendml.laws.read import function_of
from bendml.laws.terms import BOOL, INT, REAL, Sort, constructors, fields
from bendml.nat import Nat, S, Z, add, half, le, mul, pow2, sub
from bendml.lists import append, length, product, reverse


def proved_by_solvers(l: Law) -> bool:
    "Whether any solver proves all obligations of a law, which is what must never happen to a false one."
    done = [ask(o) for o in obligations(l)]
    return any(all(o.said(s) == 'unsat' for o in done) for s in solvers.SOLVERS)


# --- eight plausible laws that are false: (law, the smallest counterexample)

@law(induct='x', gen=['y'])
def sub_comm(x: Nat, y: Nat): return sub(x, y) == sub(y, x)

@law(induct='xs', cite=[lists.append_nil, lists.append_assoc])
def reverse_keeps_order(xs: List[A], ys: List[A]): return reverse(append(xs, ys)) == append(reverse(xs), reverse(ys))

@law(induct='n')
def cap_off_by_one(n: Nat): return le(S(n), pow2(nat.cap_depth(n)))

@law(induct='n', depth=2)
def half_twice(n: Nat): return add(half(n), half(n)) == n

@law(induct='x')
def sub_then_add(x: Nat, y: Nat): return add(sub(x, y), y) == x

@law(induct='x')
def mul_is_add(x: Nat): return mul(x, x) == add(x, x)

@law(induct='xs')
def append_comm(xs: List[A], ys: List[A]): return append(xs, ys) == append(ys, xs)

@law(induct='x', gen=['y'])
def le_strict(x: Nat, y: Nat):
    assert le(x, y)
    return le(S(x), y)

FALSE = {sub_comm: 'x = 0n, y = 1n', reverse_keeps_order: 'xs = [0], ys = [1]', cap_off_by_one: 'n = 1n', half_twice: 'n = 1n',
         sub_then_add: 'x = 0n, y = 1n', mul_is_add: 'x = 1n', append_comm: 'xs = [0], ys = [1]', le_strict: 'x = 0n, y = 0n'}


@pytest.mark.parametrize('l', FALSE, ids=lambda l: l.__name__)
def test_a_false_law_is_refuted(l):
    start = time.process_time()
    t = prove(l)
    assert t.verdict == 'refuted' and not t.holds
    assert ', '.join(f'{p.name} = {v!r}' for p, v in zip(l.params, t.found.counterexample)) == FALSE[l]
    assert time.process_time() - start < 1
    text = repr(t)
    assert 'it is false for' in text and 'because then' in text
    assert not proved_by_solvers(l)


def test_the_message_shows_both_sides():
    assert repr(prove(sub_comm)).endswith('it is false for\n  x = 0n\n  y = 1n\nbecause then\n  sub(x, y) = 0n\n  sub(y, x) = 1n')


# --- the laws of nat and lists

def test_all_laws_are_confirmed():
    start = time.perf_counter()
    laws = [l for l in find() if l.__module__ in ('bendml.nat', 'bendml.lists')]
    assert len(laws) == 35
    assert {l.__name__: prove(l).verdict for l in laws} == {l.__name__: 'confirmed' for l in laws}
    assert time.perf_counter() - start < 60    # 2 s on two idle cores; the machine may be busy


def strategy(s: Sort):
    "Values of a sort, for hypothesis."
    if s == BOOL: return st.booleans()
    if s == INT: return st.integers(-1000, 1000)
    if s == REAL: return st.fractions(max_denominator=50)
    if isinstance(s.head, TypeVar): return st.integers(0, 9)
    if s.head is Nat: return st.integers(0, 9).map(nat.nat)
    if s.head is List: return st.lists(strategy(s.args[0]) if s.args[0].head is not Nat else st.integers(0, 3).map(nat.nat), max_size=5).map(to_list)
    raise NotImplementedError(s)


@pytest.mark.parametrize('l', [l for l in find() if l.__module__ in ('bendml.nat', 'bendml.lists')], ids=lambda l: l.__name__)
def test_a_proved_law_runs(l):
    @settings(max_examples=30, deadline=None, database=None)
    @given(st.tuples(*(strategy(p.sort) for p in l.params)))
    def holds(args):
        try: assert l(*args) is True
        except AssertionError as e:
            if e.__traceback__.tb_next is None: raise   # ours; one from inside means that its assumptions are not met
    holds()


def test_every_law_has_a_witness_and_rests_on_nothing_contradictory():
    for l in find():
        if l.__module__ not in ('bendml.nat', 'bendml.lists'): continue
        assert prove(l).found.passed > 0
        assert contradiction(l) is None


def test_equations_agree_with_code():
    fs = dict.fromkeys(f for l in find() for f in functions(l))
    assert [f.__name__ for f in fs if disagreement(f) is not None] == []


@pytest.mark.slow
def test_most_laws_notice_a_mutant():
    laws = [l for l in find() if l.__module__ in ('bendml.nat', 'bendml.lists')]
    blind = [l.__name__ for l in laws if all(m.found.counterexample is None for m in mutants(l))]
    assert len(blind) <= len(laws)/10 and blind == ['le_trans']


# --- Python's arithmetic and the solvers'

@pure
def quotient(x: int, y: int) -> int: return x // y if y != 0 else 0
@pure
def remainder(x: int, y: int) -> int: return x % y if y != 0 else 0
@pure
def chained(x: int, y: int, z: int) -> bool: return x < y <= z != x
@pure
def ratio(x: Fraction, y: Fraction) -> Fraction: return -x / y if y > Fraction(0) else Fraction(1, 3) * x

@pytest.mark.parametrize('f', [quotient, remainder, chained, ratio], ids=lambda f: f.__name__)
def test_solvers_calculate_as_python_does(f):
    "Each value that Python computes is proved to be the value, by both solvers."
    from itertools import product
    from bendml.laws.reflect import definitions
    from bendml.laws.terms import conj, equal, literal, script
    r = function_of(f)
    small = [Fraction(-3, 2), Fraction(0), Fraction(2, 5)] if r.params[0].sort == REAL else [-7, -2, -1, 0, 1, 2, 7]
    facts = []
    for args in product(small, repeat=len(r.params)): facts.append(equal(r(*map(literal, args)), literal(f(*args))))
    text = script(definitions(facts), conj(*facts))
    assert [a.result for a in discharge(text, limit={'z3': 50_000_000, 'cvc5': 500_000_000}, wall=60)] == ['unsat', 'unsat']
    wrong = script(definitions(facts), negate_one(facts))
    assert 'unsat' not in [a.result for a in discharge(wrong, wall=2)]


def negate_one(facts):
    from bendml.laws.terms import conj, negate
    return conj(*facts[:-1], negate(facts[-1]))


def test_floor_division_rounds_down():
    @law
    def rounds_down(x: int):
        return x == 3*(x // 3) + x % 3 and 0 <= x % 3 < 3 and x == -3*(x // -3) + x % -3 and -3 < x % -3 <= 0
    assert prove(rounds_down).verdict == 'confirmed'

    @law
    def rounds_to_zero(x: int, y: int):
        assert y != 0
        return x // y == -(-x // y)
    assert prove(rounds_to_zero).verdict == 'refuted'


# --- names that change their meaning

def test_a_changed_function_makes_the_law_stale():
    @pure
    def f(x: Nat) -> Nat: return x
    @law
    def same(x: Nat): return f(x) == x
    @law(cite=[same])
    def again(x: Nat): return f(f(x)) == x
    assert prove(again).verdict == 'confirmed'
    old = f
    @pure
    def f(x: Nat) -> Nat: return S(x)
    assert prove(same).verdict == 'stale' and 'f in same' in repr(prove(same))
    assert prove(again).verdict == 'stale'
    f = old
    assert prove(again).verdict == 'confirmed'


def test_a_theorem_about_a_redefined_function_cannot_be_used():
    @pure
    def f(x: Nat) -> Nat: return x
    @law
    def same(x: Nat): return f(x) == x
    assert prove(same).holds
    @pure
    def f(x: Nat) -> Nat: return S(x)
    @law(cite=[same])
    def stolen(x: Nat): return f(x) == x
    t = prove(stolen)
    assert not t.holds and t.verdict == 'refuted'


def test_mutual_recursion_through_a_name_that_was_reused():
    @pure
    def f(x: Nat) -> bool:
        match x:
            case Z(): return True
            case S(m): return f(m)
    g = f
    @pure
    def f(x: Nat) -> bool:
        match x:
            case Z(): return True
            case S(m): return not g(m)
    @law(induct='x')
    def alternates(x: Nat): return g(x) == True
    assert prove(alternates).verdict == 'stale'


def test_a_changed_number_makes_the_law_stale():
    base = 256
    @pure
    def shifted(x: int) -> int: return x + base
    @law
    def larger(x: int): return x < shifted(x)
    assert prove(larger).verdict == 'confirmed'
    base = -256
    assert prove(larger).verdict == 'stale'
    base = 256
    assert prove(larger).verdict == 'confirmed'


def test_changed_code_makes_the_law_stale():
    @pure
    def f(x: Nat) -> Nat: return x
    @law
    def same(x: Nat): return f(x) == x
    assert prove(same).holds
    f.__code__ = (lambda x: S(x)).__code__
    assert prove(same).verdict == 'stale'


def test_a_changed_default_makes_the_law_stale():
    @pure
    def f(x: Nat, y: Nat) -> Nat: return y
    @law
    def second(x: Nat): return f(x, x) == x
    assert prove(second).holds
    f.__defaults__ = (Z(),)
    assert prove(second).verdict == 'stale'


# --- two things of one name

def test_two_datatypes_of_one_name_are_two():
    mine = Nat
    def other():
        @datatype
        class Nat:
            class Z: pass
            class S: pred: Self
            class Infinity: pass
        return Nat
    Other = other()
    Z2, S2, Infinity = Other.Z, Other.S, Other.Infinity
    @pure
    def finite(x: Other) -> bool:
        match x:
            case Z2(): return True
            case S2(m): return finite(m)
            case Infinity(): return False
    @law(induct='x')
    def all_finite(x: Other): return finite(x)
    @law
    def both(x: mine, y: Other):
        assert finite(y)
        return add(x, Z()) == x and finite(y)
    assert prove(all_finite).verdict == 'refuted'
    assert not proved_by_solvers(all_finite)
    text = obligations(both)[0].text
    assert 'test_laws/Nat ' in text and 'nat/Nat ' in text
    assert S(Z()) != S2(Z2()) and not isinstance(S2(Z2()), mine)


def test_two_functions_of_one_name_are_two():
    def make(up):
        if up:
            @pure
            def f(x: int) -> int: return x + 1
        else:
            @pure
            def f(x: int) -> int: return x - 1
        return f
    up, down = make(True), make(False)
    @law
    def inverse(x: int): return down(up(x)) == x
    @law
    def equal(x: int): return down(x) == up(x)
    assert prove(inverse).verdict == 'confirmed' and 'test_laws/f!2' in obligations(inverse)[0].text
    assert prove(equal).verdict == 'refuted' and not proved_by_solvers(equal)


# --- hypotheses, types, triggers

def test_contradictory_hypotheses_are_flagged():
    @law(induct='x')
    def nothing(x: Nat, y: Nat):
        assert le(S(x), x)
        return add(x, x) == Z()
    t = prove(nothing)
    assert t.verdict == 'vacuous' and not t.holds and proved_by_solvers(nothing)
    @law(cite=[nothing])
    def built_on_it(x: Nat):
        assert le(x, Z())
        return add(x, x) == Z()
    assert not prove(built_on_it).holds


def test_a_law_for_all_types_holds_at_small_ones():
    "A law about List[A] must not be provable because A might be large."
    @datatype
    class One:
        class Only: pass
    @law
    def two_values(x: A, y: A): return x != y
    @law
    def one_value(x: One, y: One): return x == y
    @law
    def all_equal(x: A, y: A): return x == y
    assert prove(one_value).verdict == 'confirmed'
    assert prove(two_values).verdict == prove(all_equal).verdict == 'refuted'
    assert not proved_by_solvers(two_values) and not proved_by_solvers(all_equal)


def test_a_trigger_helps_but_proves_nothing():
    @law(trigger='add(x, y); add(y, x)')
    def comm(x: Nat, y: Nat): return add(x, y) == add(y, x)
    @law(cite=[comm])
    def from_open(x: Nat, y: Nat): return add(x, y) == add(y, x)
    assert prove(comm).verdict == 'open' and prove(from_open).verdict == 'open'
    assert 'cites comm, which is open' in repr(prove(from_open))


def test_an_instance_is_capture_free():
    "A term that mentions the citing law's `y` must not be caught by the cited law's own `y`."
    @law(induct='x', cite=[nat.add_zero, nat.add_succ])
    def comm(x: Nat, y: Nat): return add(x, y) == add(y, x)
    @law(cite=[comm.at(x='S(y)')])
    def capture(x: Nat, y: Nat): return add(S(y), x) == add(x, S(y))
    @law(cite=[comm.at(x='S(y)')])
    def wrong(x: Nat, y: Nat): return add(S(y), x) == add(y, S(y))
    assert prove(capture).verdict == 'confirmed'
    assert prove(wrong).verdict == 'refuted' and not proved_by_solvers(wrong)


def test_induction_needs_every_case():
    "Claims that hold for 0, or from 1 on, or for even numbers only."
    @law(induct='x')
    def from_zero(x: Nat): return x == Z()
    @law(induct='x', depth=2)
    def first_two(x: Nat): return le(x, S(Z()))
    @law(induct='n')
    def not_negative(n: int): return n >= 0
    @law(induct='n', strong=True)
    def small(n: int): return n <= 0
    @law(induct='n')
    def never_five(n: int): return n != 5
    for l in (from_zero, first_two, not_negative, small, never_five):
        assert prove(l).verdict == 'refuted', l
        assert not proved_by_solvers(l), l


def test_strong_induction_and_measures():
    @pure(measure='n')
    def total(n: int) -> int: return 0 if n <= 0 else n + total(n - 1)
    @law(induct='n')
    def gauss(n: int):
        assert n >= 0
        return 2*total(n) == n*(n + 1)
    @law(induct='n', strong=True)
    def gauss_strong(n: int):
        assert n >= 0
        return 2*total(n) == n*(n + 1)
    @law(induct='n')
    def gauss_wrong(n: int): return 2*total(n) == n*(n + 1)
    assert prove(gauss).verdict == 'confirmed'
    assert prove(gauss_strong).verdict in ('confirmed', 'open')
    assert prove(gauss_wrong).verdict == 'refuted' and prove(gauss_wrong).found.counterexample == (-2,)
    assert any('measure shrinks' in o.label for o in prove(gauss).obligations)


def test_arrays():
    @law
    def other_cells(a: Array[int, int], i: int, j: int, v: int):
        assert i != j
        return select(store(a, i, v), j) == select(a, j)
    @law
    def swap(a: Array[int, int], i: int, j: int, v: int, w: int): return store(store(a, i, v), j, w) == store(store(a, j, w), i, v)
    assert prove(other_cells).verdict == 'confirmed'
    assert prove(swap).verdict == 'refuted' and not proved_by_solvers(swap)


@abstract
class R: samples = (0, 1, 2)
@abstract
def plus(x: R, y: R) -> R: return x + y
@axiom
def plus_comm(x: R, y: R): return plus(x, y) == plus(y, x)
@axiom
def plus_idle(x: R): return plus(x, x) == x

def test_abstract_functions():
    @law
    def unknown(x: R, y: R): return plus(x, y) == plus(y, x)
    @law(cite=[plus_comm])
    def known(x: R, y: R): return plus(x, y) == plus(y, x)
    @law(cite=[plus_idle])
    def nonsense(x: R): return plus(x, x) == x
    assert prove(unknown).verdict == 'open'        # true of the model, but not of every function
    assert prove(known).verdict == 'confirmed' and prove(known).axioms == (plus_comm,)
    assert prove(plus_comm).verdict == 'assumed' and prove(plus_idle).verdict == 'refuted'
    assert not prove(nonsense).holds


def test_a_calculation_is_proved_step_by_step():
    @law
    def steps(x: Nat, y: Nat): return add(S(x), y) == S(add(x, y)) == S(add(x, y))
    t = prove(steps)
    assert t.verdict == 'confirmed' and [o.label for o in t.obligations] == ['step 1', 'step 2']
    @law
    def wrong_step(x: Nat, y: Nat): return add(S(x), y) == S(y) == S(add(x, y))
    assert prove(wrong_step).verdict == 'refuted'


def test_division_in_a_law_is_checked():
    @law
    def unguarded(x: int, y: int): return x // y == x // y
    t = prove(unguarded)
    assert not t.holds
    @law
    def guarded(x: int, y: int):
        assert y > 0
        return x // y == x // y
    assert prove(guarded).verdict == 'confirmed' and any('divisor' in o.label for o in prove(guarded).obligations)


@pytest.mark.parametrize('options, words', [
    (dict(cite=[nat.add_comm.at(q='x')]), 'parameters of add_comm'), (dict(cite=[nat.add_comm.at(x='1')]), 'wrong sort'), (dict(cite=[nat.add_comm.at(x='x +')]), 'not an expression'),
    (dict(split=['nobody(x)']), 'nothing of that name'), (dict(induct='x', ih='add(x'), 'not an expression'), (dict(induct='x', strong=True), 'wrong sort')], ids=str)
def test_hints_that_make_no_sense(options, words):
    @law(**options)
    def l(x: Nat, y: Nat): return add(x, y) == add(y, x)
    with pytest.raises(LawError, match='(?s)test_laws.py:.* in l.*'): prove(l)
    with pytest.raises(LawError) as e: obligations(l)
    assert words in str(e.value)


# --- theorems are made by the kernel alone

def test_a_theorem_cannot_be_made():
    with pytest.raises(TypeError, match='in no other way'): Theorem(object(), law=sub_comm, verdict='confirmed')
    t = prove(sub_comm)
    with pytest.raises(AttributeError): t.verdict = 'confirmed'
    with pytest.raises(AttributeError): sub_comm.claim = nat.add_zero.claim
    with pytest.raises(AttributeError): function_of(add).cases = ()
    with pytest.raises(LawError): prove(lambda x: True)


def test_there_is_no_way_around_axioms():
    def untrue(x: Nat): return le(x, S(S(Z())))
    with pytest.raises(LawError, match='make it a law, and prove it'): Law(untrue, assumed=True)


# --- solvers that fail

@law(induct='x')
def fresh_law(x: Nat): return add(x, S(S(S(Z())))) == S(S(S(x)))

@pytest.mark.parametrize('solver', ['z3', 'cvc5'])
def test_a_solver_that_crashes_is_no_proof(solver, monkeypatch):
    from bendml.laws import prove as _
    real = solvers._Worker.send
    def send(self, question):
        if self.solver == solver: os.kill(self.process.pid, signal.SIGSTOP)   # or it might answer first
        real(self, question)
        if self.solver == solver: self.process.kill(); self.process.wait()
    monkeypatch.setattr(solvers._Worker, 'send', send)
    monkeypatch.setattr(sys.modules['bendml.laws.prove'], '_ANSWERS', {})
    sys.modules['bendml.laws.prove']._THEOREMS.pop(fresh_law, None)
    t = prove(fresh_law)
    assert t.verdict == ('open' if solver == 'z3' else 'proved')
    assert {a.reason for o in t.obligations for a in o.answers if a.solver == solver} == {'crash'}
    monkeypatch.undo()
    sys.modules['bendml.laws.prove']._THEOREMS.pop(fresh_law, None)
    assert prove(fresh_law).verdict == 'confirmed'


def test_a_solver_that_hangs_is_no_proof(monkeypatch):
    monkeypatch.setattr(solvers, 'GRACE', 0.2)
    real = solvers._Worker.send
    monkeypatch.setattr(solvers._Worker, 'send', lambda self, q: (os.kill(self.process.pid, signal.SIGSTOP), real(self, q)))
    a, = discharge('(assert false)(check-sat)', ('z3',), wall=0.2)
    assert (a.result, a.reason) == ('unknown', 'wall')
    monkeypatch.undo()
    assert discharge('(assert false)(check-sat)', ('z3',))[0].result == 'unsat'


def test_a_late_answer_is_not_taken_for_the_next():
    discharge('(assert false)(check-sat)', ('z3',))
    worker = solvers._WORKERS['z3', os.getpid()]
    worker.send(dict(text='(assert false)(check-sat)', steps=10**6, wall=5, seed=0, model=False))   # asked, and never heard
    a, = discharge('(assert true)(check-sat)', ('z3',))
    assert a.result != 'unsat'


HARD = '''(set-logic ALL)
(declare-const a Int) (declare-const b Int) (declare-const c Int) (declare-const d Int)
(assert (and (> a 1) (> b 1) (> c 1) (> d 3) (= (+ (* a a a a a) (* b b b b b)) (* c c c c c)) (> a d) (< d b)))
(check-sat)'''

def test_limits_are_told_apart():
    by = {a.solver: a for a in discharge(HARD, limit={'z3': 20_000, 'cvc5': 20_000}, wall=30)}
    assert {a.result for a in by.values()} == {'unknown'} and by['z3'].reason == 'resource'
    z3, = discharge(HARD, ('z3',), limit={'z3': 4_000_000_000}, wall=0.3)
    assert (z3.result, z3.reason) == ('unknown', 'wall')
    steps = {discharge(HARD, ('z3',), limit={'z3': 20_000})[0].steps for _ in range(3)}
    assert len(steps) == 1   # the count of steps is the same each time


def test_nonsense_is_no_proof():
    for text in ('', '(check-sat', '(assert nonsense)\n(check-sat)', '(exit)', '(echo "unsat")', '(check-sat)(check-sat)\n(assert false'):
        assert all(a.result != 'unsat' for a in discharge(text)), text


# --- depth, and values

def test_deep_values():
    n = 20_000
    long = to_list([Z()]*n)
    assert len(append(long, long)) == 2*n and long == to_list([Z()]*n) and hash(long) == hash(to_list([Z()]*n))
    assert int(add(nat.nat(n), nat.nat(n))) == 2*n and nat.nat(n) != nat.nat(n + 1)
    assert len(repr(length(long))) < 10


def test_values_do_not_change():
    two = S(S(Z()))
    with pytest.raises(AttributeError): two.pred = Z()
    with pytest.raises(AttributeError): del two.pred
    with pytest.raises(TypeError): S()
    with pytest.raises(TypeError): S(1)
    with pytest.raises(TypeError): Nat()
    with pytest.raises(TypeError):
        class T(S): pass
    with pytest.raises(AttributeError): store(Array(0), 1, 2).default = 3


@pytest.mark.parametrize('s', [Sort(Nat), INT, BOOL, Sort(List, (INT,)), Sort('Array', (INT, INT))], ids=str)
def test_enumeration_has_no_repetition(s):
    from bendml.laws.datatypes import values
    seen = [v for n in range(4) for v in values(s, n)]
    assert len(set(seen)) == len(seen)


# --- the command line


def bendml(*args, cwd=None):
    code = 'from bendml.cli import main; main(prog_name="bendml")'
    return subprocess.run([sys.executable, '-W', 'ignore', '-c', code, *args], capture_output=True, text=True, cwd=cwd)


def test_the_command_laws(tmp_path):
    r = bendml('laws', 'lists.*reverse', '--smt', str(tmp_path/'smt'))
    assert r.returncode == 0 and r.stdout.splitlines()[-1] == 'ALL PROOFS CHECK: 3 laws, 6 obligations'
    files = sorted((tmp_path/'smt').iterdir())
    assert len(files) == 6 and all('(set-info :status unsat)' in f.read_text() for f in files)
    assert all(discharge(f.read_text(), (s,))[0].result == 'unsat' for f in files for s in solvers.SOLVERS)
    r = bendml('laws', 'no_such_law')
    assert r.returncode == 1 and r.stdout.splitlines()[-1] == 'SOME PROOFS FAIL: no laws found'


@pytest.mark.slow
def test_the_command_laws_on_a_file(tmp_path):
    import json
    file = tmp_path/'mine.py'
    file.write_text('''from bendml.laws import law, pure
from bendml.nat import Nat, S, Z, add, add_comm
@pure
def double(x: Nat) -> Nat: return add(x, x)
@law(cite=[add_comm])
def double_add(x: Nat, y: Nat):
    "Doubling the order changes nothing."
    return double(add(x, y)) == double(add(y, x))
''')
    r = bendml('laws', str(file))
    assert r.returncode == 0 and r.stdout.splitlines()[-1] == 'ALL PROOFS CHECK: 1 law, 1 obligation', r.stdout + r.stderr
    file.write_text(file.read_text() + '@law(induct="x")\ndef double_same(x: Nat): return double(x) == x\n')
    r = bendml('laws', str(file))
    assert r.returncode == 1 and r.stdout.splitlines()[-1] == 'SOME PROOFS FAIL: 1 of 2 laws, 1 obligation' and 'x = 1n' in r.stdout
    r = bendml('laws', str(file), '--json')
    assert r.returncode == 1 and [json.loads(l)['verdict'] for l in r.stdout.splitlines()] == ['confirmed', 'refuted']
    r = bendml('laws', str(file), '--statements')
    assert r.returncode == 0 and 'double(x) == x' in r.stdout and 'confirmed' not in r.stdout
    r = bendml('verdict', str(file))
    assert r.returncode == 1 and r.stdout.splitlines()[-1].startswith('SOME PROOFS FAIL')
    for broken, words in (('def f(:', 'SyntaxError'), ('1/0', 'ZeroDivisionError'), ('import no_such_module', 'ModuleNotFoundError')):
        file.write_text(broken + '\n')
        r = bendml('laws', str(file))
        assert r.returncode == 1 and words in r.stdout and r.stdout.splitlines()[-1].startswith('SOME PROOFS FAIL') and not r.stderr
    file.write_text('from bendml.laws import law\nfrom bendml.nat import Nat\n@law(split=["nobody(x)"])\ndef l(x: Nat): return x == x\n')
    for command in ('laws', 'verdict'):
        r = bendml(command, str(file))
        assert r.returncode == 1 and 'nobody' in r.stdout and r.stdout.splitlines()[-1].startswith('SOME PROOFS FAIL') and not r.stderr
    assert 'no such file' in bendml('laws', str(tmp_path/'not_there.py')).stdout
    file.write_text('from bendml.laws import pure\n@pure\ndef f(x: float) -> int: return 1\n')
    r = bendml('laws', str(file))
    assert r.returncode == 1 and 'floats round' in r.stdout and r.stdout.splitlines()[-1].startswith('SOME PROOFS FAIL')


@pytest.mark.slow
def test_the_command_verdict():
    r = bendml('verdict', 'bendml.nat.*', 'bendml.lists.*')
    assert r.returncode == 0 and r.stdout.splitlines()[-1].startswith('ALL PROOFS CHECK: 35 laws'), r.stdout


def test_importing_laws_loads_no_solver():
    code = "import sys, bendml.lists; print([m for m in ('z3', 'cvc5', 'numpy', 'numba', 'click') if m in sys.modules])"
    assert subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True).stdout.strip() == '[]'


def test_python_that_leaves_out_asserts_proves_nothing():
    run = lambda name: subprocess.run([sys.executable, '-O', '-c', f'from bendml import nat; from bendml.laws import prove; print(prove(nat.{name}).verdict)'], capture_output=True, text=True)
    assert run('add_zero').stdout == 'confirmed\n'
    assert 'python -O leaves out what a law assumes' in run('le_trans').stderr
