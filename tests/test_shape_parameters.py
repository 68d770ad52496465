"Parameters that are no arrays, dtypes, conditions, sizes that only the result has, and what is checked at a call."
import enum, os, subprocess, sys, tempfile, textwrap
from pathlib import Path
from typing import Any, Callable, Literal, Optional
import numpy as np, pytest
from bendml.shape import Arr, Bool, Dim, F32, F64, Float, Int, Mat, ShapeError, Vec, dims, stored, typed
from bendml.shape.facts import Facts, assume, claim, decide, impossible, parse_claim
from bendml.shape.sizes import DimError, evaluate
from tests.shape.text import run_text

n, d, k, m = dims('n d k m')
class Mode(enum.Enum): ROWS = 1; COLUMNS = 2
class Config:
    flip = False
MATRIX = np.matrix(np.eye(2))


def define(text: str, at: str = '@typed'):
    return run_text(at + '\n' + textwrap.dedent(text), dict(globals()))['f']


def refused(text: str, *says: str, at: str = '@typed') -> ShapeError:
    with pytest.raises(ShapeError) as e: define(text, at)
    for s in says: assert s in str(e.value), str(e.value)
    return e.value


def stopped(f, *args, says: str = '', **kwargs) -> str:
    with pytest.raises(ShapeError) as e: f(*args, **kwargs)
    assert says in str(e.value), str(e.value)
    return str(e.value)


# Generators, texts, flags, objects, functions.

RNG = 'def f(x: Vec[n], rng: {}) -> Vec[n]: return x + rng.normal(size={})'

@pytest.mark.parametrize('kind', ['np.random.Generator', '"np.random.Generator"', 'np.random.RandomState', 'np.random.Generator | None'])
def test_a_random_generator_is_a_parameter(kind):
    text = RNG.format(kind, 'x.shape')
    if 'None' in kind: text = text.replace(': return', ':\n    if rng is None: rng = np.random.default_rng()\n    return').replace(' return x', '\n    return x', 0)
    f = define(text)
    rng = np.random.RandomState(0) if 'State' in kind else np.random.default_rng(0)
    assert f(np.ones(3), rng).shape == (3,)
    if 'None' not in kind: stopped(f, np.ones(3), None, says='rng is None')
    refused(RNG.format(kind.replace(' | None', ''), '3'), 'axis -1 has size n on the left and 3')


def test_a_generator_that_may_be_none_is_walked_both_ways():
    f = define('''
        def f(x: Vec[n], rng: np.random.Generator = None) -> Vec[n]:
            rng = rng or np.random.default_rng()
            return x + rng.normal(size=x.shape)''')
    assert f(np.ones(2)).shape == f(np.ones(2), np.random.default_rng(1)).shape == (2,)
    assert len(f.__shapes__.reports) == 1  # not once for each generator
    refused('''
        def f(x: Vec[n], rng: np.random.Generator = None) -> Vec[n]: return x + rng.normal(size=x.shape)''', 'NoneType', 'it may be None: test that first')


def test_a_text_is_asked_both_ways():
    f = define('''
        def f(x: Mat[n, d], mode: str) -> Mat[n, d]:
            if mode == 'double': y = 2*x
            elif mode == 'half' or mode.lower().startswith('h'): y = x/2
            else: raise ValueError(f'unknown mode {mode}')
            if mode == 'double': y = y + 1
            print(mode, '%s' % mode, 'it is {}'.format(mode), len('a' + 'b'))
            return y''')
    assert f(np.ones((2, 3)), 'half').shape == (2, 3)
    stopped(f, np.ones((2, 3)), 3, says='mode is an int')
    for wrong in ('mode == "a"', 'mode != "a"', 'mode in ("a", "b")', '"a" in mode', 'mode.startswith("a")', 'mode', 'mode > "a"', 'mode[0] == "a"',
                  'mode.upper() == "A"', 'f"{mode}" == "a"', '"%s!" % mode == "a!"', '"{}".format(mode) == "a"', 'str(mode) == "a"', 'mode + "b" == "ab"',
                  'os.path.exists(mode)', 'isinstance(mode, np.str_) or mode == "b"', 'mode is "a"', '"-".join([mode, "b"]) == "a-b"'):
        refused(f'''
            def f(x: Mat[n, d], mode: str) -> Mat[n, d]:
                if {wrong}: return x.T
                return x''', 'the result has size d')
    refused('def f(x: Mat[n, d], mode: str) -> Mat[n, d]: return {"a": x, "b": 2*x}[mode]', 'Literal["a", "b"]')
    assert define('def f(x: Mat[n, d], mode: Literal["a", "b"]) -> Mat[n, d]: return {"a": x, "b": 2*x}[mode]')(np.ones((1, 2)), 'b').sum() == 4
    refused('def f(x: Mat[n, d], mode: Literal["a", "b"]) -> Mat[n, d]: return {"a": x, "b": x.T}[mode]', 'the result has size d')
    assert define('def f(x: Mat[n, d], mode: str) -> Mat[n, d]: return {"a": x, "b": x.T}[mode]', '@typed(known={"mode": "a"})')
    assert define('def f(x: Mat[n, d], name: str = "a") -> Mat[n, d]: return x if name == "a" else x.T')  # a setting, checked for its value
    refused('def f(x: Mat[n, d], name: str | None = None) -> Mat[n, d]: return x if name is None else x.T', 'the result has size d')


def test_a_member_of_an_enum_is_each_in_turn():
    assert define('def f(x: Mat[n, d], mode: Mode) -> Mat[n, d]: return x if mode is Mode.ROWS else x[::-1]')(np.ones((2, 3)), Mode.ROWS).shape == (2, 3)
    for test in ('mode is Mode.ROWS', 'mode == Mode.COLUMNS', 'mode.value == 1', 'mode.name == "ROWS"', 'mode in (Mode.ROWS,)', 'mode in {Mode.ROWS}'):
        refused(f'def f(x: Mat[n, d], mode: Mode) -> Mat[n, d]: return x if {test} else x.T', 'the result has size')
    stopped(define('def f(x: Vec[n], mode: Mode) -> Vec[n]: return x if mode is Mode.ROWS else -x'), np.ones(2), 1, says='mode is none of these')


def test_a_flag_is_the_same_flag_when_it_is_asked_again():
    assert define('''
        def f(x: Mat[n, d], flag: bool) -> Mat[n, d]:
            if flag: y = x.T
            if flag: return y.T
            return x''').__shapes__.report().paths == 2
    for way in ('if flag: x = x.T\n    if _other: x = x.T', 'if flag is True: x = x.T', 'if isinstance(flag, np.bool_): x = x.T', 'if flag == True: x = x.T'):
        refused(f'def f(x: Mat[n, d], flag: bool, _other: bool = False) -> Mat[n, d]:\n    {way}\n    return x', 'the result has size')


def test_an_object_says_nothing_of_itself():
    assert define('def f(x: Vec[n], c: Config) -> Vec[n]: return x')(np.ones(2), Config()).shape == (2,)
    stopped(define('def f(x: Vec[n], c: Config) -> Vec[n]: return x'), np.ones(2), 3, says='c is an int')
    for use in ('c.flip', 'c', 'hasattr(c, "size")', 'isinstance(c, dict)', 'c == 3', 'getattr(c, "flip", False)', 'type(c) is Config'):
        refused(f'def f(x: Mat[n, d], c: Config) -> Mat[n, d]: return x.T if {use} else x', 'the result has size')
    refused('def f(x: Mat[n, d], c: Config) -> Mat[n, d]: return x.T if c.missing else x', 'c.missing is not known', 'known={"c": ...}')
    refused('def f(x: Vec[n], c: Config) -> Vec[n]: return x*c.flip', 'is used as a number')
    refused('def f(_x: Vec[n], c: Config) -> Vec[n]: return c', 'c is not known to be an array', 'known={"c": ...}')
    refused('def f(x: Vec[n], c: Config) -> Vec[n]: return np.exp(c)', 'no')


def test_what_an_annotation_does_not_say():
    refused('def f(x: Vec[n], g: Callable) -> Vec[n]: return g(x)', 'known={"g": np.tanh}')
    refused('def f(x: Vec[n], g: "Callable[[float], float]") -> Vec[n]: return g(x)', 'known={"g": np.tanh}')
    assert define('def f(x: Vec[n], g: Callable) -> Vec[n]: return g(x)', '@typed(known={"g": np.tanh})')(np.ones(2), np.tanh).shape == (2,)
    refused('def f(x: Vec[n], g: Callable) -> Vec[n]: return g(x)', 'the result', at='@typed(known={"g": np.sum})')
    refused('def f(x: np.ndarray) -> float: return x.sum()', 'x: Vec[n], x: Mat[n, d]')
    refused('def f(x: "np.typing.NDArray[np.float64]") -> float: return x.sum()', 'x: Vec[n], x: Mat[n, d]')
    refused('def f(x: list) -> float: return 0.0', 'x: list[Vec[d]]')
    refused('def f(x: Vec[n], g) -> Vec[n]: return g(x)', 'the parameter g of f has no annotation', 'known={"g": ...}')
    refused('def f(x: Mat) -> Mat[n, d]: return x', 'write Mat[n, d]')
    refused('def f(x: Int) -> Mat[n, d]: return x', 'write Int[Mat[n, d]]')
    refused('def f(x: (n, d)) -> Mat[n, d]: return x', 'write Mat[n, d] for an array, tuple[n, d]')


def test_a_default_of_none_is_none_or_that():
    f = define('''
        def f(A: Mat[n, d], w: Vec[d] = None) -> Vec[n]:
            if w is None: w = np.ones(A.shape[1])
            return A @ w''')
    assert f(np.ones((2, 3))).shape == f(np.ones((2, 3)), np.ones(3)).shape == (2,)
    stopped(f, np.ones((2, 3)), np.ones(2), says='d is 3')
    assert 'test that first' in refused('def f(A: Mat[n, d], w: Vec[d] = None) -> Vec[n]: return A @ w').hint
    refused('def f(A: Mat[n, d], w: Vec[n] = None) -> Vec[n]: return A[:, 0] if w is None else A @ w', 'matmul')


def test_several_values_in_a_list():
    f = define('''
        def f(xs: list[Vec[d]]) -> Mat[k, d]:
            if len(xs) == 0: raise ValueError('nothing')
            assert xs[0].shape == np.mean(xs, axis=0).shape
            return np.stack(xs)''')
    assert f([np.ones(2)]*3).shape == (3, 2)
    stopped(f, [np.ones(2), np.ones(3)], says='d is 2')
    refused('def f(xs: list[Vec[d]]) -> Vec[d]: return xs[0]', 'there may be fewer')
    refused('def f(xs: list[Vec[d]]) -> Vec[d]: return np.mean(xs, axis=0)', 'there may be no array')
    refused('def f(xs: list[Vec[Any]]) -> Mat[k, m]:\n    if not xs: raise ValueError\n    return np.stack(xs)', 'their sizes may differ')
    refused('def f(xs: list[Vec[Any]]) -> Vec[k]:\n    if len(xs) < 2: raise ValueError\n    return xs[0] + xs[1]', 'add')
    assert define('def f(x: Mat[n, d]) -> list[Vec[d]]: return [r*2 for r in x]')(np.ones((2, 3)))[1].shape == (3,)
    refused('def f(x: Mat[n, d]) -> list[Vec[n]]: return [r*2 for r in x]', 'the result, one of its parts')
    refused('def f(x: Mat[n, d]) -> Mat[n, k]: return np.stack([r[r > 0] for r in x])', 'different sizes')


# An int with a default, seeds, texts with sizes in them.

def test_an_int_with_a_default_is_a_size_where_it_is_named():
    f = define('def f(x: Vec[n], k: int = 3) -> Vec["n + k"]: return np.concatenate([x, np.zeros(k)])')
    assert f(np.ones(2)).shape == (5,) and f(np.ones(2), 7).shape == (9,)
    refused('def f(x: Vec[n], k: int = 3) -> Vec["n + k"]: return np.concatenate([x, np.zeros(k + 1)])', 'k + n')
    refused('def f(x: Vec[n], k: int = 3) -> Vec["n + k"]: return np.concatenate([x, np.zeros(3)])', 'the result')
    refused('def f(x: Vec[n], k: int = 0) -> Vec["n + k"]: return np.concatenate([x, np.zeros(k)])', 'the default of k is 0', 'where="k >= 0"')
    g = define('def f(x: Vec[n], k: int = 0) -> Vec["n + k"]: return np.concatenate([x, np.zeros(k)])', '@typed(where="k >= 0")')
    assert g(np.ones(2)).shape == (2,)
    stopped(g, np.ones(2), -1, says='k is -1')
    refused('def f(x: Vec[n], k: int = -1) -> Vec["n + k + 1"]: return np.zeros(k + 1 + len(x))', 'where="k >= -1"')
    assert define('def f(x: Vec[n], k: int = 2) -> Vec[2]: return x[:2]*0 + np.zeros(k)', '@typed(where="n >= 2")')  # a setting
    refused('def f(x: Vec[n], k: int = 2) -> Vec[2]: return x[:2]*0 + np.zeros(k)', 'axis', at='@typed(where=["n >= 2", "k >= 1"])')


def test_a_message_does_not_depend_on_the_order_of_a_set():
    text = textwrap.dedent('''
        from bendml.shape import *
        n = Dim("n")
        try:
            @typed(where=["q >= r"])
            def f(x: Vec[n]) -> Vec["zz + yy"]: return x
        except ShapeError as e: print(e.reason)''')
    said = {subprocess.run([sys.executable, '-c', text], env=os.environ | {'PYTHONHASHSEED': str(seed)}, capture_output=True, text=True).stdout
            for seed in range(4)}
    assert said == {"where=['q >= r'] names q, which no parameter has\n"}


@pytest.mark.parametrize('seed', ['seed: int', 'seed: Optional[int] = 0', 'seed: int | None = None', 'seed=0', 'seed: "int | None" = 3'])
@pytest.mark.parametrize('make', ['np.random.default_rng(seed)', 'np.random.RandomState(seed)', 'np.random.Generator(np.random.PCG64(seed))'])
def test_seeds(seed, make):
    f = define(f'def f(x: Vec[n], {seed}) -> Vec[n]:\n    rng = {make}\n    return x + rng.normal(size=len(x))')
    assert f(np.ones(3), 5).shape == (3,)
    if '=' in seed: assert f(np.ones(3)).shape == (3,)
    refused(f'def f(x: Vec[n], {seed}) -> Vec[n]:\n    rng = {make}\n    return rng.normal(size=len(x) + 1)', 'the result')


def test_a_size_in_a_text():
    f = define('''
        def f(x: Mat[n, d]) -> Vec[d]:
            if len(x) < 2: raise ValueError("too short: %d (%5.2f)" % (len(x), x[0, 0]))
            print("%d rows" % len(x), f'{len(x):>{3 + 2}d} {x.mean():.3f} {x!r}', str(len(x)), format(x.sum(), '.3f'), repr(x), '{:d}'.format(len(x)))
            for i in range(len(x)):
                if i % 10 == 0: print('%d: %s' % (i, x[i]))
            return x[1]''')
    assert f(np.ones((2, 3))).shape == (3,)
    with pytest.raises(ValueError, match='too short: 1'): f(np.ones((1, 3)))
    for text in ('"%d" % len(x)', 'f"{len(x)}"', 'str(len(x))', '"{}".format(len(x))', '"".join(["", str(len(x))])', 'repr(len(x))', 'format(len(x), "d")'):
        refused(f'def f(x: Mat[n, d]) -> Mat[n, d]: return x.T if {text} == "3" else x', 'the result has size')
    assert define('def f(x: Mat[n, d], k: int) -> Mat[n, d]: return x if 7 % k == 0 and f"{3}" == "3" else x')  # numbers stay numbers


@pytest.mark.parametrize('case', ['True', 'float()', 'bool()', 'np.ndarray()', 'bool(), _'])
def test_a_match_that_python_answers_itself(case):
    subject = 'flag' if ',' not in case else 'flag, 3'
    refused(f'''
        def f(x: Mat[n, d], flag: bool) -> Mat[n, d]:
            match {subject}:
                case {case}: return x.T
            return x''', 'matched against a class')


def test_a_match_on_values():
    text = '''
        def f(x: Mat[n, d], mode: str, k: int) -> Mat[n, d]:
            match mode:
                case "a" | "b": x = x + 1
                case None: x = x.T
            match k:
                case 3: return x*2
                case _: return x{}'''
    assert define(text.format(''))(np.ones((2, 3)), 'a', 3).shape == (2, 3)
    refused(text.format('.T'), 'the result has size')


# Dtypes.

DTYPES = ['x.dtype == np.float32', 'x.dtype != float', 'np.issubdtype(x.dtype, np.integer)', 'np.iscomplexobj(x)', 'not np.isrealobj(x)', 'x.dtype.kind == "i"',
          'x.dtype.name == "int8"', 'x.dtype.itemsize == 4', 'x.itemsize < 8', 'x.nbytes == 3', 'x.dtype in (np.float32, int)', 'x.dtype is np.dtype("f4")', 'x.dtype.type is np.float32',
          'getattr(x, "dtype") == "f4"', 'np.dtype(x.dtype) == "f4"', 'np.result_type(x, np.float32) == "f4"', 'np.can_cast(x.dtype, np.float32)', '(2*x + 1).dtype == "f4"',
          'x[0].sum().dtype == "f4"', 'np.zeros(3, x.dtype).dtype == "f4"', 'x.astype(x.dtype).dtype == "f4"', 'str(x.dtype) == "float32"', 'f"{x.dtype}" == "float32"',
          'np.finfo(x.dtype).eps > 1e-9', 'np.zeros_like(x).dtype == "f4"', 'x.dtype > "f4"', 'x.dtype', 'type(x) is np.ndarray', 'isinstance(x, np.memmap)', 'hasattr(x, "filename")',
          'isinstance(x.sum(), float)', 'isinstance(x.sum(), np.floating)', 'hasattr(x.sum(), "mask")', 'np.promote_types(x.dtype, "f4") == "f4"', 'len(str(x.dtype)) > 3 if False else x.dtype.char == "d"']

@pytest.mark.parametrize('question', DTYPES)
def test_a_question_about_an_unknown_dtype_goes_both_ways(question):
    refused(f'def f(x: Mat[n, d]) -> Mat[n, d]:\n    if {question}: return x.T\n    return x', 'the result has size')
    refused(f'def f(x: Mat[n, d]) -> Mat[n, d]:\n    if {question}: return x\n    return x.T', 'the result has size')


@pytest.mark.parametrize('question', DTYPES)
def test_and_the_two_ways_may_agree(question):
    if question.startswith(('hasattr', 'isinstance(x,')): return
    assert define(f'def f(x: Mat[n, d]) -> Mat[n, d]:\n    if {question}: return x\n    return x*2')(np.ones((2, 3))).shape == (2, 3)


@pytest.mark.parametrize('question', ['hasattr(x, "mask")', 'isinstance(x, np.matrix)', 'isinstance(x, list)', 'x.dtype is None', 'x is None', 'isinstance(x, np.ma.MaskedArray)', 'getattr(x, "mask", None) is not None',
                                      'not hasattr(x, "tobytes")', 'not isinstance(x, np.ndarray)', '(x > 0).dtype != bool', 'np.zeros(3).dtype != float', 'np.zeros(3, int).dtype.kind != "i"',
                                      'x.astype(np.float32).dtype != "f4"', '(x.astype(np.float32)*2.0).dtype != "f4"'])
def test_what_is_certain_goes_one_way(question):
    assert define(f'def f(x: Mat[n, d]) -> Mat[n, d]:\n    if {question}: return x.T\n    return x')
    assert define(f'def f(x: F32[Mat[n, d]]) -> Mat[n, d]:\n    if x.dtype != np.float32 or x.dtype.kind != "f": return x.T\n    return x')


def test_a_dtype_is_an_argument():
    f = define('''
        def f(x: Mat[n, d]) -> Mat[n, d]:
            if not np.issubdtype(x.dtype, np.floating): x = x.astype(np.float64)
            y = np.zeros(x.shape, dtype=x.dtype) + np.zeros_like(x, dtype=x.dtype) + np.full(x.shape, 1, x.dtype)
            y += x.dtype.type(2)*np.array(1, dtype=x.dtype) + np.finfo(x.dtype).eps
            return y.astype(x.dtype) + np.asarray(x, dtype=x.dtype)''')
    for kind in 'f4', 'f8', 'i4': assert f(np.ones((2, 3), kind)).shape == (2, 3)
    refused('def f(x: Mat[n, d]) -> Mat[n, d]: return np.zeros(x.shape[::-1], dtype=x.dtype)', 'the result has size')


@pytest.mark.parametrize('body, right', [
    ('x*2', True), ('x*2.5 + 1', True), ('x/len(x)', True), ('np.exp(-x)', True), ('x.T.T[::-1]', True), ('x.astype(np.float32)', True), ('x*_s', True), ('x - x.mean(0)', True),
    ('np.zeros(x.shape, np.float32) + x', True), ('np.zeros(x.shape)', False), ('x + np.zeros(x.shape)', False), ('x*np.float64(2)', False), ('x.astype(float)', False), ('x + np.ones(x.shape[1])', False),
    ('np.exp(x).astype(np.float64).T.T', False), ('x + _y', False), ('_y', False), ('_y.astype(np.float32)', True), ('np.add(x, 1, dtype=np.float64)', False)])
def test_a_result_of_another_float(body, right):
    text = f'def f(x: F32[Mat[n, d]], _s: float, _y: F64[Mat[n, d]]) -> F32[Mat[n, d]]:\n    x + 0\n    return {body}'
    f = define(text) if right else refused(text, 'holds float64')
    if right: assert f(np.ones((2, 3), 'f4'), 2.0, np.ones((2, 3))).dtype == np.float32
    else: assert 'np.float32' in f.hint


def test_a_typed_call_is_no_proof_of_a_dtype():
    global g
    g = define('def f(x: Mat[n, d]) -> F32[Mat[n, d]]: return x')
    refused('def f(x: Mat[n, d]) -> Mat[n, d]:\n    y = g(x)\n    return x if y.dtype == np.float32 else x.T', 'the result has size')
    g = define('def f(x: F32[Mat[n, d]]) -> F32[Mat[n, d]]: return x')
    refused('def f(x: F64[Mat[n, d]]) -> F32[Mat[n, d]]: return g(x)', 'argument x holds float64')


# At the call.

@typed
def product(x: Mat[n, d], y: Vec[n]) -> Vec[d]: return y @ x
@typed
def single(x: F32[Vec[n]]) -> F32[Vec[n]]: return x*2
@typed
def floats(x: Float[Vec[n]]) -> Vec[n]: return x*2

class Other(np.ndarray): pass
class DataFrame(np.ndarray):
    __module__ = 'pandas.core.frame'


@pytest.mark.parametrize('wrap, hint', [
    (np.matrix, 'np.asarray(x)'), (np.ma.array, 'x.filled'), (lambda a: a.view(Other), 'np.asarray(x)'), (lambda a: a.view(DataFrame), 'x.to_numpy()'), (np.ndarray.tolist, 'np.asarray(x)'),
    (lambda a: None, 'None'), (lambda a: a.astype(object), 'astype(float)'), (lambda a: a.astype(str), 'astype(float)'), (lambda a: a.astype('S3'), 'astype(float)'), (lambda a: a.astype('M8[s]'), ''),
    (lambda a: np.ones((0, 3)), 'where="n >= 0"')])
def test_what_is_no_plain_array_of_numbers_is_stopped(wrap, hint):
    said = stopped(product, wrap(np.ones((2, 3))), np.ones(2), says=hint)
    assert '.T' not in said


def test_what_is_one_passes():
    a = np.ones((2, 3))
    with tempfile.TemporaryDirectory() as folder: same = [stored(a, 'in×out'), np.memmap(Path(folder)/'a', shape=(2, 3), mode='w+', dtype='f8'), a.astype('>f8'), a.astype(np.float16), a > 0, a.astype(complex)]
    for x in same: assert product(x, np.ones(2)).shape == (3,)


def test_the_width_of_a_float_at_the_call():
    assert single(np.ones(3, 'f4')).dtype == np.float32 and floats(np.ones(3, 'f2')).shape == floats(np.ones(3)).shape == (3,)
    stopped(single, np.ones(3), says='x.astype(np.float32)')
    stopped(single, np.ones(3, int), says='x holds int64')
    stopped(floats, np.ones(3, int), says='x holds int64')


def test_a_matrix_among_the_globals():
    refused('def f(x: Mat[n, 2]) -> Mat[n, 2]: return x @ MATRIX', 'np.asarray')
    assert 'another shape' not in refused('def f(x: Vec[2]) -> Vec[2]: return x @ MATRIX', 'matrix').reason


def test_one_axis_is_one():
    assert 'has 1 axis, not 2' in stopped(product, np.ones(2), np.ones(2), says='x[:, None]')
    stopped(product, np.ones((2, 3)), np.ones((2, 1)), says='y.ravel()')
    refused('def f(x: Mat[n, d]) -> Mat[n, d]: return x.sum(0)', 'the result has 1 axis')


# Sizes that only the result has.

@typed
def chosen(x: Mat[n, d], mask: Bool[Vec[n]]) -> Mat[k, d]: return x[mask]
@typed
def some(x: Mat[n, d], mask: Bool[Vec[n]]) -> Mat[Any, d]: return x[mask]


@pytest.mark.parametrize('body, right', [
    ('-> Mat[k, d]: return chosen(x, mask)*2', True), ('-> tuple[Mat[k, d], Vec[k]]:\n    y = chosen(x, mask)\n    return y, y[:, 0]', True), ('-> Vec[k]: return np.unique(x)', True),
    ('-> {"a": Mat[k, d], "b": Vec["2*k"]}:\n    y = chosen(x, mask)\n    return {"a": y, "b": np.concatenate([y[:, 0]]*2)}', True), ('-> Mat[k, k]:\n    y = chosen(x, mask)\n    return y @ y.T', True), ('-> Vec[k]: return x[:3, 0] if x[0, 0] > 0 else x[mask, 0]', True), ('-> Vec[k]:\n    if x[0, 0] > 0: return x[:, 0]\n    return x[mask][:, 0]', True),
    ('-> Mat[k, m]: return x', False), ('-> Vec[k]: return np.zeros(3)', False), ('-> Vec[k]: return x[:3, 0] if len(x) > 5 else x[:2, 0]', False), ('-> Vec[Any]: return x[:3, 0] if len(x) > 5 else x[:2, 0]', True), ('-> Vec[k]: return x[0]', False), ('-> Mat[k, m]: return x[mask]', False),
    ('-> tuple[Mat[k, d], Vec[k]]: return x[mask], x[~mask][:, 0]', False), ('-> Mat[k, k]: return x', False), ('-> Mat[k, d]: return chosen(x, mask) + chosen(x, mask)', False),
    ('-> Mat[k, d]: return some(x, mask) + some(x, mask)', False), ('-> Vec[d]: return chosen(x, mask)[0]', False), ('-> Vec[d]: return chosen(x, mask).max(0)', False), ('-> Mat[n, d]: return chosen(x, mask)', False),
    ('-> list[Vec[k]]: return [r[r > 0] for r in x]', False), ('-> tuple[Vec[k], ...]: return x[mask][:, 0], x[~mask][:, 0]', False), ('-> Vec["2*k"]: return x[:, 0]', False), ('-> Vec[k] | None: return None if len(x) > 3 else x', False)])
def test_a_size_that_is_found(body, right):
    text = f'def f(x: Mat[n, d], {"mask" if "mask" in body else "_mask"}: Bool[Vec[n]]) {body}'
    if not right: refused(text); return
    f = define(text)
    for a, b in ((1, 1), (4, 2), (3, 5)): f(np.ones((a, b)), np.arange(a) % 2 == 1)


def test_a_size_that_is_found_is_not_the_callers():
    refused('def f(x: Mat[n, d], mask: Bool[Vec[n]], y: Mat[k, d]) -> Mat[k, d]: return chosen(x, mask) + y', 'add')
    refused('def f(x: Mat[n, d], mask: Bool[Vec[n]], k: int) -> Mat[k, d]: return chosen(x, mask)', 'the result')


def test_a_slip_in_a_name():
    assert refused('def f(x: Mat[n, m]) -> Mat[k, m]: return x', 'it is n at every call').hint.startswith('write n for it')
    assert refused('def f(x: Mat[n, m]) -> Vec[k]: return x.T.sum(1)[:1] + np.zeros(1)').hint.startswith('write 1 for it')
    assert refused('def f(x: Mat[n, d]) -> Mat[n, "dd"]: return x', 'which no parameter has').hint.startswith('did you mean d?')
    assert refused('def f(x: Mat["rows", d]) -> Mat["row", d]: return x').hint.startswith('did you mean rows?')
    assert refused('def f(x: Mat["rows", d]) -> Mat["rows", d]: return x', at='@typed(where="row > 2")').hint.startswith('did you mean rows?')
    assert 'add a parameter q: int' in refused('def f(x: Mat["rows", d]) -> Mat["rows", d]: return x', at='@typed(where="q > 2")').hint


# Conditions.

@pytest.mark.parametrize('where', ['n > n', '1 > 2', 'n < 1', 'n % 2 == 3', 'n*n < n', ['n > d', 'd > n'], 'n % 4 == 1 and n % 2 == 0', '2*n == 2*d + 1', ['n*d == 7', 'n > 1', 'd > 1'], ['n == d', 'n != d'], 'n >= 3 > n'])
def test_a_condition_that_no_sizes_satisfy(where):
    refused('def f(x: Mat[n, d]) -> Vec[3]: return x @ x', 'no sizes satisfy it', at=f'@typed(where={where!r})')


@pytest.mark.parametrize('where', ['n > d', 'n % 2 == 1', 'n*d == 12', ['n >= 0', 'n < 1'], 'n >= 3 and d >= 2', 'n >= 3, d >= 2', 'n == 1024*d + 1', 'n*n == d*d', '5000 < n < 5002'])
def test_a_condition_that_some_satisfy(where):
    assert define('def f(x: Mat[n, d]) -> Mat[d, n]: return x.T', f'@typed(where={where!r})')


@pytest.mark.parametrize('text', ['n >= 3 or d >= 2', 'n', 'n >', 'not n > 2', 'f(n) > 2'])
def test_a_condition_that_is_none(text):
    refused('def f(x: Mat[n, d]) -> Mat[n, d]: return x', text.split()[0], at=f'@typed(where={text!r})')


@pytest.mark.parametrize('where', ['n % 2 == 1', 'n*d == 6', 'n*d == 2*n + 2*d', 'n % d == 1', ['n >= 4', 'n*n == d'], 'n//2 == d', 'n % 3 == d % 2'])
def test_the_sizes_that_fail_satisfy_the_conditions(where):
    e = refused('def f(x: Mat[n, d]) -> Mat[d, n]: return x[:5]', at=f'@typed(where={where!r})')
    sizes = dict(e.fails_at)
    for c in (c for text in ([where] if isinstance(where, str) else where) for c in parse_claim(text)):
        if {'n', 'd'} == sizes.keys(): assert eval(c.text, {}, sizes), (c.text, sizes)


def test_a_condition_of_a_function_that_is_called():
    global frames
    frames = define('def f(x: Vec[n], hop: int) -> Vec["hop"]: return x[:hop]', '@typed(where="n >= hop")')
    e = refused('def f(x: Vec[n], h: int) -> Vec["h"]: return frames(x, h)', 'needs n >= hop')
    assert 'where="n >= h"' in e.hint
    define('def f(x: Vec[n], h: int) -> Vec["h"]: return frames(x, h)', '@typed(where="n >= h")')


@pytest.mark.parametrize('text, says', [
    ('Dim()', 'dims("n d")'), ('Dim("B", "T")', 'B, T = dims("B T")'), ('Dim("n rows")', 'n, rows = dims("n rows")'), ('Dim("3x")', 'a size is a name'), ('Dim(2.5)', 'no size'),
    ('Mat[n]', 'write Vec[n]'), ('Mat["n d"]', 'Mat["n", "d"]'), ('Mat(n, d)', 'write brackets: Mat[n, d]'), ('Vec[n, d]', 'write Mat[n, d]'), ('Mat[n, d, k]', 'write Arr[n, d, k]'),
    ('Arr["n d"]', '"n", "d"'), ('Int[n]', 'Int[Vec[n]]')])
def test_slips_in_an_annotation(text, says):
    with pytest.raises(DimError) as e: eval(text)
    assert says in str(e.value) and 'parse_dim' not in str(e.value) and '_' not in str(e.value)


def test_a_text_that_is_passed_on():
    global way
    way = define('def f(x: Mat[n, d], mode: str = "a") -> Mat[n, d]: return x if mode == "a" else x.T')
    refused('def f(x: Mat[n, d], mode: str) -> Mat[n, d]: return way(x, mode)', 'the result has size')
    way = define('''
        def f(x: Mat[n, d], mode: str = "a") -> Mat[n, d]:
            if mode == "a": x = 2*x
            return x if mode == "a" else x + 1''')
    f = define('''
        def f(x: Mat[n, d], mode: str) -> Mat[n, d]:
            if mode == "b": return way(x, mode)
            return way(way(x, mode), mode)''')
    assert f(np.ones((2, 3)), 'b').shape == (2, 3)
    way = define('def f(x: Mat[n, d], mode: str) -> Mat[n, d]: return x if mode == "a" else 2*x')
    assert define('def f(x: Mat[n, d], mode: str) -> Mat[n, d]: return way(x, mode)')(np.ones((2, 3)), 'b').shape == (2, 3)
    refused('def f(x: Mat[n, d], mode: str) -> Mat[n, d]: return way(x, 3)', 'argument mode is not a str')
