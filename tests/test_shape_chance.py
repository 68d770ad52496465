"Python's own random numbers: nothing is drawn in a check, and what may be drawn goes every way."
import random, textwrap
import numpy as np, pytest
import bendml.shape
from bendml.shape import *
from tests.shape.text import run_text

n, m, d = dims('n m d')
R = random.Random(1)
G = np.random.default_rng(0)

def define(text: str):
    return run_text(f'@typed\ndef {textwrap.dedent(text).strip()}\n', dict(globals()))['f']

RIGHT = ['''f(x: Vec[n], y: Vec[n]) -> Vec[n]:
    q = [x, y]
    random.shuffle(q)
    return q[0] + q[1]''', '''f(x: Vec[n], y: Vec[n]) -> Vec[n]: return R.choice([x, y])''', '''f(x: Mat[n, d]) -> Vec[d]: return random.choice(x)''',
'''f(x: Mat[n, d]) -> Mat[n, d]:
    order = list(range(len(x)))
    random.shuffle(order)
    return x[order]''', '''f(x: Mat[n, d]) -> Vec[d]: return x[random.randrange(len(x))]''', '''f(x: Mat[n, d]) -> Vec[d]: return x[random.randint(0, len(x) - 1)]''',
'''f(x: Vec[n]) -> Vec[n]: return x*random.random() + R.random() + random.gauss(0, 1) + R.uniform(1, 2)''',
'''f(x: Mat[n, d]) -> Mat[1, d]: return x[random.sample(range(len(x)), 1)]''', '''f(x: Mat[n, d]) -> Mat[n, d]: return x[random.choices(range(len(x)), k=len(x))]''',
'''f(x: Mat[n, d]) -> Mat[n, d]: return x[random.sample(range(len(x)), len(x))]''', '''f(x: Mat[n, d]) -> Vec[n]:
    return np.array([random.choice(row) for row in x])''', '''f(x: Vec[n]) -> Vec[n]:
    random.seed(3)
    state = R.getstate()
    R.setstate(state)
    return x*random.choice([1, 2, 3])''', '''f(x: Vec[n]) -> Vec[n]:
    p = [1, 2, 3, 4, 5, 6]
    R.shuffle(p)
    return x*p[0]''', '''f(x: Vec[n], seed: int) -> Vec[n]: return x*random.Random(seed).random()''', '''f(x: Vec[n]) -> Vec[n]:
    for _ in range(len(x)):
        if random.random() > 0.5: x = x*random.choice([0.5, 2.0])
    return x''', '''f(x: Vec[n]) -> Vec[n]:
    y = x.copy()
    random.shuffle(y)
    return y''', '''f(x: Vec[n]) -> Any: return np.zeros(R.randint(1, 2)) + 0*x[0]'''.replace('-> Any', '-> Vec[m]')]

@pytest.mark.parametrize('text', RIGHT)
def test_accepted_whatever_is_drawn(text):
    before = random.getstate(), R.getstate()
    f = define(text)
    assert (random.getstate(), R.getstate()) == before
    wanted = f.__shapes__.signature.result.sizes
    for _ in range(4):
        shape = f(*[np.ones((3, 3)[:len(s.sizes)]) if getattr(s, 'sizes', None) else 3 for _, s in f.__shapes__.signature.params]).shape
        assert len(shape) == len(wanted) and all(str(s) == 'm' or k == (s.const or 3) for k, s in zip(shape, wanted))

@pytest.mark.parametrize('text, says', [
    ('f(x: Vec[n]) -> Vec[n]:\n    q = [x, x[1:]]\n    random.shuffle(q)\n    return q[0]', 'n - 1'),
    ('f(x: Vec[n]) -> Vec[n]:\n    q = [x, x[1:]]\n    G.shuffle(q)\n    return q[0]', 'n - 1'),
    ('f(x: Vec[n]) -> Vec[n]:\n    q = [x, x[1:]]\n    np.random.shuffle(q)\n    return q[0]', 'n - 1'),
    ('f(x: Vec[n]) -> Vec[n]: return random.choice([x, x[1:]])', 'n - 1'),
    ('f(x: Vec[n]) -> Vec[n]: return random.choice((x[1:], x))', 'n - 1'),
    ('f(x: Vec[n]) -> Vec[1]: return np.zeros(R.randint(1, 2)) + 0*x[0]', 'size'),
    ('f(x: Vec[n]) -> Vec[2]: return np.zeros(random.choice([1, 2])) + 0*x[0]', 'size'),
    ('f(x: Vec[n]) -> Vec[3]:\n    p = [3, 4]\n    random.shuffle(p)\n    return np.zeros(p[0]) + x[0]', 'size'),
    ('f(x: Vec[n]) -> float: return x[random.randint(0, len(x))]', 'index'),
    ('f(x: Vec[n]) -> float: return x[random.randint(1, len(x) - 1)]', 'no number from 1'),
    ('f(x: Vec[n]) -> float: return x[random.randrange(1, len(x))]', 'may be empty'),
    ('f(x: Mat[n, d]) -> Vec[d]: return random.choice(x[1:])', 'may be empty'),
    ('f(x: Mat[n, d]) -> Mat[2, d]: return x[random.sample(range(len(x)), 2)]', '2 of n without replacement'),
    ('f(x: Mat[n, d]) -> Mat[2, d]: return np.stack(random.sample(x, 2))', 'takes a list'),
    ('f(x: Vec[n], y: Vec[m]) -> Vec[n]: return random.choices([x, y], k=1)[0]', 'size m'),
    ('f(x: Vec[n], y: Vec[n]) -> float: return random.choices([1.0, 2.0], weights=x, k=1)[0]*y.sum()', 'a weight for each'),
    ('f(x: Mat[n, d]) -> Mat[n, d]:\n    random.shuffle(x)\n    return x', 'views'),
    ('f(x: Vec[n]) -> Vec[n]: return random.uniform(x, 1)[1:]', 'of an array'),
    ('f(x: Vec[n]) -> Vec[n]:\n    for i in range(len(x)): y = random.choice([x, x[1:]])\n    return y', 'n - 1'),
    ('f(x: Vec[n]) -> Vec[n]: return x*len(R.randbytes(3))', 'has no rule')])
def test_refused_whatever_is_drawn(text, says):
    before = random.getstate(), R.getstate()
    for _ in range(3):
        with pytest.raises(ShapeError) as e: define(text)
        assert says in str(e.value), str(e.value)
    assert (random.getstate(), R.getstate()) == before

def test_two_elements_are_not_one():
    "Two numbers that were drawn in the same place need not be equal."
    with pytest.raises(ShapeError): define('f(x: Vec[n]) -> Vec[1]:\n    a = random.choices(range(len(x)), k=len(x))\n    return np.zeros(a[0] - a[-1] + 1) + x[0]')
    with pytest.raises(ShapeError): define('f(x: Vec[n]) -> Vec[1]:\n    a = [random.randint(1, 5) for _ in x]\n    return np.zeros(abs(a[0] - a[-1]) + 1) + x[0]')
