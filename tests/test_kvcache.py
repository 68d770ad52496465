"The laws of the cache are confirmed, rest on the axioms they name, and false variants of them are refuted. PYTEST_DONT_REWRITE"
import pytest
from bendml import kvarray, kvcache
from bendml.kvcache import Layer, Row, append, caches, cached_stack, entries, filled_stack, full, full_stack, stream
from bendml.laws import Cons, Law, List, Nil, law, prove, to_list

LAWS = [value for module in (kvcache, kvarray) for value in vars(module).values() if isinstance(value, Law) and value.__module__ == module.__name__]


@pytest.mark.parametrize('each', LAWS, ids=lambda l: l.__name__)
def test_law_is_confirmed(each):
    assert prove(each).verdict == ('assumed' if each.assumed else 'confirmed')


def test_laws_of_the_cache_rest_on_no_axiom():
    assert all(not prove(l).axioms for l in LAWS if l.__module__ == 'bendml.kvcache')
    assert {a.__name__ for a in prove(kvarray.masked_is_prefix).axioms} == {'zero_times', 'one_times', 'zero_plus', 'zero_vtimes', 'vzero_plus'}
    assert not prove(kvarray.write_is_snoc).axioms


@pytest.mark.parametrize('cut', range(5))
def test_every_split_of_a_text_runs_alike(cut):
    "The functions are ordinary Python: run them on a stack of three layers."
    ls, xs = to_list([0, 1, 2]), [3, 1, 4, 1, 5]
    before, after = to_list(xs[:cut]), to_list(xs[cut:])
    whole = full_stack(ls, to_list(xs))
    assert append(full_stack(ls, before), cached_stack(ls, caches(ls, before), after)) == whole
    assert append(full_stack(ls, before), stream(ls, caches(ls, before), after)) == whole
    assert filled_stack(ls, caches(ls, before), after) == caches(ls, to_list(xs))


def test_false_variants_are_refuted():
    @law
    def caches_swapped(ls: List[Layer], xs: List[Row], ys: List[Row]):
        return full_stack(ls, append(xs, ys)) == append(full_stack(ls, xs), cached_stack(ls, caches(ls, ys), ys))
    @law
    def layer_twice(l: Layer, xs: List[Row]):
        return full_stack(Cons(l, Cons(l, Nil())), xs) == full(l, xs)
    for each in (caches_swapped, layer_twice): assert prove(each).verdict == 'refuted'
