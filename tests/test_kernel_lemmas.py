"What was proved of some symbols is used for others only where it says the same of them."
import ast
from unittest.mock import ANY
from hypothesis import given, settings, strategies as st
from bendml.kernel import proofs
from bendml.kernel.contracts import Buf, Size, f32, read_kernel
from bendml.kernel.conditions import conditions
from bendml.kernel.proofs import Lemma, gives, instance, learn, needed
from bendml.laws.solvers import Answer, discharge
from bendml.laws.terms import INT, App, Var, script
from bendml.kernel.state import Check, integer, less

NAMES = [Var(n, INT) for n in 'abcd']
TERMS = st.sampled_from(NAMES) | st.builds(integer, st.just('+'), st.sampled_from(NAMES), st.sampled_from(NAMES))
FACTS = st.builds(less, TERMS, TERMS, st.sampled_from(['<', '<=']))


def check(facts, goal): return Check('bounds', '', ast.Pass(), tuple(facts), goal, '')
def follows(c): return discharge(script([('known', f) for f in c.facts], c.goal), ('z3',))[0].result == 'unsat'


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.lists(FACTS, max_size=3), FACTS), min_size=2, max_size=12))
def test_an_instance_of_what_was_proved_holds(cases):
    "Whatever is found to be an instance, z3 proves by itself."
    before, proofs._LEMMAS = proofs._LEMMAS, {}
    try:
        for c in (check(*case) for case in cases):
            if instance(c): assert follows(c)
            elif follows(c): learn(c, None)
    finally: proofs._LEMMAS = before


def test_other_symbols_a_missing_fact_and_two_that_are_one():
    a, b, c, d = NAMES
    lemma = Lemma((less(a, b), less(b, c)), less(a, c), None)
    assert gives(lemma, check([less(b, c), less(c, d)], less(b, d)), {a: b, b: c, c: d})
    assert gives(lemma, check([less(a, b), less(b, a)], less(a, a)), {c: a})      # from what cannot be, anything follows
    assert not gives(lemma, check([less(b, c)], less(b, d)), {a: b, b: c, c: d})
    assert not gives(lemma, check([less(b, c), less(c, d)], less(d, b)), {a: b, b: c, c: d})


def test_a_goal_that_holds_by_itself_needs_no_fact():
    a, b, *_ = NAMES
    assert needed(check([less(a, b)], less(a, a, '<=')), ('goal',)).facts == ()
    assert needed(check([less(a, b)], less(a, b)), ('known0',)).facts == (less(a, b),)


def test_a_lemma_has_no_fewer_facts_than_cvc5_needed(monkeypatch):
    a, b, c, _ = NAMES
    whole, z3 = check([less(a, b), less(b, c)], less(a, b)), Answer('z3', 'unsat', 0.0, core=('known0',))
    assert proofs._confirm({'z3': z3}, whole) == ({'z3': z3, 'cvc5': ANY}, True)
    assert proofs._confirm({'z3': z3, 'cvc5': Answer('cvc5', 'unsat', 0.0)}, whole)[1] is False
    both = lambda text, solvers, **_: [Answer(*solvers, 'unsat' if text.count('assert') > 2 else 'unknown', 0.0)]   # it needs the second fact as well
    monkeypatch.setattr(proofs, 'discharge', both)
    said, few = proofs._confirm({'z3': z3}, whole)
    assert proofs.proved(said, all) and not few


def test_a_condition_that_differs_in_a_number_is_asked_anew():
    def right(n: Size, x: Buf["n", f32]):
        for i in range(n): x[i] = 0
    def wrong(n: Size, x: Buf["n", f32]):
        for i in range(n): x[i + 1] = 0
    assert proofs.prove_source(read_kernel(right)).confirmed > 0
    bounds = lambda f: next(c for c in conditions(read_kernel(f)) if c.kind == 'bounds')
    assert instance(bounds(right)) and not instance(bounds(wrong))
