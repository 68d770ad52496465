"Rotary positions: the laws, both conventions in numbers, and the rearrangement between them. PYTEST_DONT_REWRITE"
import numpy as np, pytest
from bendml import rope
from bendml.laws import Law, prove
from bendml.rope import angles, rotate_halves, rotate_pairs, to_pairs

LAWS = [value for value in vars(rope).values() if isinstance(value, Law) and value.__module__ == 'bendml.rope']


@pytest.mark.parametrize('each', LAWS, ids=lambda l: l.__name__)
def test_law_is_confirmed(each):
    assert prove(each).verdict == ('assumed' if each.assumed else 'confirmed')


def test_axioms():
    assert {a.__name__ for a in prove(rope.rope_shift).axioms} == {'cosine_difference', 'sine_difference'}
    assert not prove(rope.halves_are_pairs).axioms


def test_both_conventions_at_position_one():
    x = np.array([[1, 2, 3, 4]]*2, np.float32)
    cos, sin = angles(2, 4, base=1e4)
    np.testing.assert_allclose(rotate_pairs(x, cos, sin), [[1, 2, 3, 4], [-1.1426397, 1.9220756, 2.9598507, 4.0297995]], rtol=1e-6)
    np.testing.assert_allclose(rotate_halves(x, cos, sin), [[1, 2, 3, 4], [-1.9841106, 1.9599007, 2.4623779, 4.0197997]], rtol=1e-6)


@pytest.mark.parametrize('size', [2, 4, 6, 64, 128])
def test_rearranged_halves_are_pairs(size):
    rng = np.random.default_rng(size)
    x, (cos, sin) = rng.standard_normal((3, 7, size), np.float32), angles(7, size)
    turn = lambda a: np.stack([to_pairs(head.T, 1).T for head in a])
    assert np.array_equal(turn(rotate_halves(x, cos, sin)), rotate_pairs(turn(x), cos, sin))


def test_only_the_distance_counts():
    rng = np.random.default_rng(0)
    q, k = rng.standard_normal((2, 1, 64))
    cos, sin = angles(1000, 64)
    at = lambda x, n: rotate_pairs(x.astype(np.float64), cos[n:n + 1].astype(np.float64), sin[n:n + 1].astype(np.float64))
    assert abs((at(q, 17)*at(k, 5)).sum() - (at(q, 917)*at(k, 905)).sum()) < 1e-4


def test_odd_size_is_refused():
    with pytest.raises(ValueError, match='even number'): angles(4, 7)
