"What a refusal states: sizes that fail do fail in NumPy, and the names in a message are the program's or explained."
import re, textwrap
import pytest
from tests.shape.stated import changed, functions, statements
from tests.test_shape_trace import Arr, Bool, Int, Mat, Vec, define, refused, typed, n, m, d


def test_stated_sizes_fail():
    tried, wrong = statements(functions())
    assert wrong == [] and tried >= 10

def test_stated_sizes_of_changed_programs_fail():
    tried, wrong = statements(changed(15))
    assert wrong == [] and tried >= 45

@pytest.mark.slow
def test_stated_sizes_of_more_changed_programs_fail():
    tried, wrong = statements(changed(2))
    assert wrong == [] and tried >= 350


def test_no_inner_names():
    "Whatever is refused in the list of refused functions, no name of ours is in its message."
    for f, _, e in functions():
        assert not re.search(r"\w'\d", str(e)) and e.reason == e.args[0], e


def test_a_condition_on_data_is_a_reserve():
    e = refused('''
        @typed
        def f(x: Vec[n], y: Vec[m]) -> Vec[n]:
            if x.sum() > 0: return y
            return x''')
    assert not e.surely and e.assumed == ('x.sum() > 0 (line 4)',)
    assert 'may fail : m = 1, n = 2\nif       : x.sum() > 0 (line 4)' in str(e)

def test_a_condition_on_sizes_is_none():
    e = refused('''
        @typed
        def f(x: Vec[n], y: Vec[m]) -> Vec[n]:
            if len(x) > 2: return y
            return x''')
    assert e.surely and 'fails at : m = 1, n = 3' in str(e)

def test_a_condition_on_the_turn_of_a_loop():
    e = refused('''
        @typed
        def f(x: Mat[n, m]) -> Mat[n, m]:
            y = x
            for i in range(len(x)):
                if i == 9: y = np.zeros((3, 3))
            return y''')
    assert not e.surely and e.assumed == ('i == 9 (line 6)',) and dict(e.fails_at)['n'] == 10

def test_a_name_of_the_program_is_not_taken():
    e = refused('''
        @typed
        def f(x: Mat[n, d], labels: Int[Vec[n]], c: Mat[m, d]) -> Mat[m, d]:
            k = len(c)
            new = c.copy()
            for j in range(k):
                mask = labels == j
                if mask.any(): new[j] = x[mask].mean(axis=1)
            return new''')
    assert 'observed : Vec<k1>' in str(e) and 'where    : k1 is how many entries are true in the mask of mask.any() (line 8)' in str(e)

def test_a_generator_that_grows_is_refused():
    e = refused('''
        def rows(x):
            for r in x: yield r
        @typed
        def f(x: Mat[n, d]) -> Vec[d]:
            y = np.zeros(x.shape[1])
            for b in rows(x): y = np.concatenate([y, b])
            return y''')
    assert 'y of f changes its shape' in e.reason

def test_a_generator_is_not_typed():
    e = refused('''
        @typed
        def f(x: Mat[n, d]) -> Vec[d]:
            for r in x: yield r''')
    assert 'a generator is not traced' in e.reason and 'annotate the function' in e.hint
