"What a call checks is what the check at definition has counted on."
import functools, types
from typing import Any, NamedTuple
import numpy as np, pytest
from bendml.shape import Int, Mat, ShapeError, Vec, dims, typed
from tests.test_shape_parameters import define, refused, stopped

n, d, k, m = dims('n d k m')


# Numbers.

@pytest.mark.parametrize('parameter', ['a=0.5', 'a: float = 0.5', 'a: int | float = 0.5', 'a: object = 0.5', '*, a=0.5'])
def test_a_default_that_is_a_float_says_that_it_is_a_number(parameter):
    f = define(f'def f(x: Vec[n], {parameter}) -> Vec[n]: return x*a')
    for wrong in np.ones((2, 3)), np.ones(3), [1, 2, 3], 'a', None: stopped(f, np.ones(3), a=wrong, says='argument a')
    for right in 2, 0.25, np.float32(3), np.uint8(2): assert f(np.ones(3), a=right).shape == f(np.ones(3)).shape == (3,)


def test_a_caller_passes_a_number_too():
    define.__globals__['scaled'] = define('def f(x: Vec[n], a=0.5) -> Vec[n]: return x*a')
    assert define('def f(x: Vec[n]) -> Vec[n]: return scaled(x, x.sum())')
    refused('def f(x: Vec[n], y: Mat[d, n]) -> Vec[n]: return scaled(x, y)', 'argument a has 2 axes')


@pytest.mark.parametrize('parameter', ['a=True', 'a="b"', 'a=None', 'a=3'])
def test_another_default_is_a_setting_that_each_value_is_checked_for(parameter):
    f = define(f'def f(x: Vec[n], {parameter}) -> Vec[n]: return x*a if isinstance(a, np.ndarray) else x')
    stopped(f, np.ones(3), np.ones((2, 3)), says='axis')


def test_a_size_arrives_as_an_int():
    f = define('def f(x: Vec[n], k: int) -> Vec["n+k"]: return np.zeros(len(x) + k)')
    assert f(np.ones(100), np.uint8(200)).shape == f(np.ones(100), k=np.int64(200)).shape == (300,)
    f = define('def f(x: Vec[n], k: int = 2) -> Vec["n+k"]: return np.zeros(len(x) + k)')
    assert f(np.ones(100), np.uint8(200)).shape == (300,) and f(np.ones(100)).shape == (102,)
    f = define('def f(x: Vec[n], k: int) -> Vec[k]: return x[-k:]', '@typed(where="k <= n")')
    assert f(np.ones(100), np.uint64(3)).shape == (3,)
    f = define('def f(x: Vec[n], k: int | None) -> Vec[n]: return x if k is None else np.zeros(len(x) + k)[k:]')
    assert f(np.ones(100), np.uint8(200)).shape == f(np.ones(100), None).shape == (100,)
    f = define('def f(x: Vec[n], k=3) -> Vec[n]: return np.zeros(len(x) + k)[k:]')
    assert f(np.ones(100), np.uint8(200)).shape == (100,)
    f = define('def f(x: Vec[n], k=np.uint8(200)) -> Vec[n]: return np.zeros(len(x) + k)[k:]')
    assert f(np.ones(100)).shape == (100,)
    f = define('def f(x: Vec[n], shape=(2, 3)) -> Vec[n]: return np.zeros(len(x) + shape[0])[shape[0]:]')
    assert f(np.ones(100), (np.uint8(200), 2)).shape == (100,)
    f = define('def f(x: Vec[n], ks: tuple[k, m]) -> Vec["n+k"]: return np.zeros(len(x) + ks[0])')
    assert f(np.ones(100), (200, 3)).shape == (300,)
    stopped(f, np.ones(100), (np.uint8(200), 3), says='int(ks[0])')


@pytest.mark.parametrize('body', ['y[i % len(y)]', 'y[np.mod(i, len(y))]', 'y[(i*len(y)) % len(y)]', 'y[np.maximum(np.minimum(i, len(y) - 1), 0)]', 'y[i % (len(y) + 300)%len(y)]'])
def test_narrow_whole_numbers_that_meet_sizes(body):
    f = define(f'def f(i: Int[Vec[n]], y: Vec[m]) -> Vec[n]: return {body}')
    for dtype in (np.int64, np.intp): assert f(np.array([1, 2], dtype), np.ones(300)).shape == (2,)
    for dtype in (np.uint8, np.int8, np.int16): stopped(f, np.array([1, 2], dtype), np.ones(300), says='i.astype(int)')


def test_narrow_whole_numbers_that_meet_none():
    for body in ('y[i]*len(y) + np.arange(len(i))*len(y)', 'np.zeros(len(i)*len(y))[np.arange(len(i))*len(y) + i]', 'y[i//2]', 'np.clip(i, 0, 255) + y[i]'):
        f = define(f'def f(i: Int[Vec[n]], y: Vec[m]) -> Vec[n]: return {body}', '@typed(where="i < m")')
        for dtype in (np.uint8, np.int8, np.int32, np.int64): assert f(np.array([1, 2], dtype), np.ones(300)).shape == (2,)


def test_a_caller_passes_numbers_that_are_wide_enough():
    define.__globals__['turned'] = define('def f(i: Int[Vec[n]], y: Vec[m]) -> Vec[n]: return y[i % len(y)]')
    f = define('def f(i: Int[Vec[n]], y: Vec[m]) -> Vec[n]: return turned(i, y)')
    assert f(np.array([1, 2]), np.ones(300)).shape == (2,)
    stopped(f, np.array([1, 2], np.uint8), np.ones(300), says='too narrow')
    refused('def f(i: Int[Vec[n]], y: Vec[m]) -> Vec[n]: return turned(i.astype(np.uint8), y)', 'too narrow')
    f = define('def f(i: Int[Vec[n]], j: Int[Vec[n]], y: Vec[m]) -> Vec[n]: return y[np.maximum(i, j)]', '@typed(where=["i < m", "j < m"])')
    assert f(np.array([1, 2], np.uint8), np.array([1, 2]), np.ones(3)).shape == (2,)
    stopped(f, np.array([1, 2], np.uint64), np.array([1, 2]), np.ones(3), says='uint64')


# Tuples, lists, records, dictionaries.

class Layer(NamedTuple):
    w: Mat[n, d]
    b: Vec[d]
class Two(NamedTuple): a: Any; b: Any

def test_as_many_values_as_the_tuple_says():
    f = define('def f(xs: tuple[Vec[n], Vec[n]]) -> Mat[2, n]: return np.stack(xs)')
    x = np.ones(2)
    assert f((x, x)).shape == f(Two(x, x)).shape == (2, 2)
    stopped(f, (x, x, x), says='3 values')
    stopped(f, (x,), says='1 value')
    stopped(f, [x, x], says='tuple(xs)')
    stopped(f, np.ones((2, 3)), says='tuple(xs)')
    stopped(f, {0: x, 1: x})
    f = define('def f(xs: [Vec[n], Vec[n]]) -> Mat[2, n]: return np.stack(xs)')
    assert f([x, x]).shape == (2, 2)
    stopped(f, (x, x), says='list(xs)')
    f = define('def f(xs: tuple[tuple[Vec[n], Vec[n]], Vec[n]]) -> Mat[2, n]: return np.stack(xs[0])')
    assert f(((x, x), x)).shape == (2, 2)
    stopped(f, ((x, x, x), x), says='3 values')
    stopped(f, ([x, x], x), says='tuple(xs[0])')


def test_a_caller_passes_as_many():
    define.__globals__['stacked'] = define('def f(xs: tuple[Vec[n], Vec[n]]) -> Mat[2, n]: return np.stack(xs)')
    assert define('def f(x: Vec[n]) -> Mat[2, n]: return stacked((x, x))')
    refused('def f(x: Vec[n]) -> Mat[2, n]: return stacked((x, x, x))', '3 values')
    refused('def f(x: Vec[n]) -> Mat[2, n]: return stacked([x, x])', 'tuple')
    refused('def f(x: Mat[2, n]) -> Mat[2, n]: return stacked(x)', 'another number of values')
    refused('def f(x: Vec[n]) -> tuple[Vec[n]]: return x', 'tuple')


def test_a_record_is_of_its_class():
    define.__globals__['Layer'] = Layer
    f = define('''
        def f(p: Layer) -> Vec[d]:
            _w, b = p
            return b''')
    assert f(Layer(np.ones((2, 3)), np.ones(3))).shape == (3,)
    stopped(f, types.SimpleNamespace(w=np.ones((2, 3)), b=np.ones(3)), says='SimpleNamespace')


def test_a_dictionary_has_the_keys_that_were_said_in_their_order():
    f = define('''
        def f(p: {'w': Mat[n, d], 'b': Vec[d]}, x: Vec[n]) -> Vec[d]:
            w, b = p.values()
            return x @ w + b''')
    w, b, x = np.ones((2, 3)), np.ones(3), np.ones(2)
    assert f({'w': w, 'b': b}, x).shape == (3,)
    stopped(f, {'b': b, 'w': w}, x, says="{k: p[k] for k in ('w', 'b')}")
    stopped(f, {'w': w, 'b': b, 'c': b}, x, says="'c'")
    stopped(f, {'w': w}, x, says="no key 'b'")
    define.__globals__['g'] = f
    refused("def f(p: {'b': Vec[d], 'w': Mat[n, d]}, x: Vec[n]) -> Vec[d]: return g(p, x)", 'order')
    refused("def f(w: Mat[n, d], b: Vec[d], x: Vec[n]) -> Vec[d]: return g({'w': w, 'b': b, 'c': b}, x)", "'c'")
    assert define("def f(w: Mat[n, d], b: Vec[d], x: Vec[n]) -> Vec[d]: return g({'w': w, 'b': b}, x)")


# Sizes that must be solved for.

@pytest.mark.parametrize('size, right, wrong', [
    ('k*k', (1, 9, 16, 25, 10**6), (2, 15, 24)), ('k*(k+1)//2', (1, 3, 10, 55), (2, 9)), ('k//2', (1, 3, 100), ()), ('k**3 + 1', (2, 28), (1, 27)),
    ('2*k + 1', (3, 5), (1, 4)), ('k % 3 + 1', (1, 2, 3), (4, 10)), ('100 - k', (1, 99), (100, 130)), ('7', (7,), (8,)), ('2**5*k', (32,), (31,)),
])
def test_one_unknown_size(size, right, wrong):
    f = define(f'def f(x: Vec["{size}"]) -> Vec["{size}"]: return x*2')
    for v in right: assert f(np.ones(v)).shape == (v,)
    for v in wrong: stopped(f, np.ones(v))


@pytest.mark.parametrize('sizes, right, wrong', [
    ('n*m 2*n*m', [(6, 12), (1, 2)], [(6, 3), (6, 6)]),
    ('n*m n+m', [(6, 5), (6, 7), (1, 2)], [(3, 30), (6, 6)]),
    ('n*m n*m+1', [(7, 8)], [(7, 7)]),
    ('n*m m*k n*k', [(6, 15, 10)], [(6, 15, 11)]),
    ('n+m n-m', [(5, 3)], [(5, 2), (5, 5)]),
    ('k//2 k//3', [(4, 3), (3, 2)], [(4, 1)]),
    ('k*k k+1', [(9, 4)], [(9, 5)]),
    ('n*n n', [(9, 3)], [(9, 2)]),
])
def test_sizes_that_no_name_binds_agree(sizes, right, wrong):
    names = 'abc'[:len(sizes.split())]
    f = define(f'def f({", ".join(f"""{a}: Vec["{s}"]""" for a, s in zip(names, sizes.split()))}) -> float: return {"+".join(f"{a}.sum()" for a in names)}')
    for v in right: f(*map(np.ones, v))
    for v in wrong: stopped(f, *map(np.ones, v))


def test_what_nobody_can_tell_says_what_to_add():
    f = define('def f(x: Vec["n*m"], y: Vec["n*n+m"]) -> float: return x.sum() + y.sum()')
    assert 'add a parameter m: int' in stopped(f, np.ones(6), np.ones(1000), says='no m, n found with which')


def test_a_condition_on_what_no_array_gave():
    f = define('def f(x: Vec["n*m"]) -> Vec["n*m"]: return x', '@typed(where="n >= 2*m")')
    f(np.ones(8))
    f = define('def f(x: Vec["n*m"]) -> float: return x[5]', '@typed(where=["n >= 2", "m >= 3"])')
    f(np.ones(6))
    for wrong in (5, 7, 4): stopped(f, np.ones(wrong))
    f = define('def f(x: Vec[n], _y: Vec[k] = None) -> float: return x[2]', '@typed(where="n > 2*k")')
    assert f(np.ones(3)) == 1
    stopped(f, np.ones(2), says='n')


# Arrays that share memory.

def test_what_is_written_is_no_other_argument():
    f = define('''
        def f(i: Int[Vec[n]], j: Int[Vec[n]], z: Vec[n]) -> Vec[n]:
            i %= len(z)
            j += 100
            return z[i] + j''')
    a, z = np.arange(6), np.ones(3)
    stopped(f, a[:3], a[:3], z, says='share memory')
    stopped(f, a[:3], a[2:5], z, says='share memory')
    assert f(a[:3], a[3:], z).shape == f(a[::2], a[1::2], z).shape == (3,)
    define.__globals__['g'] = f
    refused('def f(i: Int[Vec[n]], z: Vec[n]) -> Vec[n]: return g(i, i, z)', 'share memory')
    assert define('def f(i: Int[Vec[n]], z: Vec[n]) -> Vec[n]: return g(i, i.copy(), z)')
    f = define('''
        def f(xs: tuple[Int[Vec[n]], Int[Vec[n]]], z: Vec[n]) -> Vec[n]:
            i, j = xs
            i %= len(z)
            j += 100
            return z[i] + j''')
    stopped(f, (a[:3], a[:3]), z, says='share memory')
    assert f((a[:3], a[3:]), z).shape == (3,)
    floats = define('def f(x: Vec[n], y: Vec[n]) -> Vec[n]:\n    x += y\n    return x')
    assert floats(z, z).shape == (3,)
    reads = define('def f(x: Int[Vec[n]], y: Int[Vec[n]]) -> Vec[n]: return x + y')
    assert reads(a, a).shape == (6,)


# Decorators, settings.

def dropped(fn):
    @functools.wraps(fn)
    def w(*a): return fn(*a)[1:]
    return w

def test_a_decorator_that_copies_the_signature_is_not_the_function():
    define.__globals__.update(dropped=dropped, g=dropped(define('def f(x: Vec[n]) -> Vec[n]: return x*2')))
    refused('def f(x: Vec[n]) -> Vec[n]: return g(x)', 'n - 1')
    assert define('def f(x: Vec[n]) -> Vec["n-1"]: return g(x)', '@typed(where="n >= 2")')(np.ones(4)).shape == (3,)
    class Other:
        def __call__(self, x): return x[1:]
    define.__globals__['g'] = functools.update_wrapper(Other(), define('def f(x: Vec[n]) -> Vec[n]: return x*2'))
    refused('def f(x: Vec[n]) -> Vec[n]: return g(x)', 'n - 1')


class Options: k = 0
def test_a_setting_that_changes_is_checked_anew():
    f, o = define('def f(x: Vec[n], opt=None) -> Vec[n]: return x if opt is None else x[opt.k:]'), Options()
    assert f(np.ones(3), o).shape == f(np.ones(3), o).shape == (3,)
    assert len(f.__shapes__.reports) == 2
    o.k = 1
    stopped(f, np.ones(3), o, says='n - 1')
    o.k = 0
    assert f(np.ones(3), o).shape == (3,)
    settings = {'k': 0}
    define.__globals__['settings'] = settings
    f = define('def f(x: Vec[n], opt=settings) -> Vec[n]: return x[opt["k"]:]')
    assert f(np.ones(3)).shape == (3,)
    settings['k'] = 1
    stopped(f, np.ones(3), says='n - 1')
    f = define('def f(x: Vec[n], opt) -> Vec[n]: return x[opt["k"]:]', '@typed(known={"opt": {"k": 0}})')
    stopped(f, np.ones(3), {'k': 2}, says='n - 2')


def test_settings_that_are_equal_but_of_other_types():
    f = define('def f(x: Vec[n], shape=(1, 2)) -> Mat[1, 2]: return np.zeros(shape) + 0*x[0]')
    assert f(np.ones(3)).shape == f(np.ones(3), (1, 2)).shape == (1, 2)
    stopped(f, np.ones(3), (1.0, 2))
    f = define('def f(x: Vec[n], opt={"a": [1]}) -> Vec[n]: return x[:0] if opt["a"][0] is True else x')
    stopped(f, np.ones(3), {'a': [True]})


# A size that cannot be read.

@pytest.mark.parametrize('size, says', [('k/1', '//'), ('k /', 'not a size'), ('k.a', 'not a size')])
def test_a_size_that_cannot_be_read(size, says):
    with pytest.raises(ShapeError) as e: Vec[size]
    assert says in str(e.value), str(e.value)
    refused(f'def f(x: Vec["{size}"]) -> Vec[n]: return x', says)
