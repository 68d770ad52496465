"Real mistakes from public reports, and the negative tests of the systems that bendml follows: each refused, each with its accepted twin."
import numpy as np, pytest
import bendml.shape
from bendml.shape import *
from tests.shape.text import run_text

B, T, C, D, H, n, m, d, P = dims('B T C D H n m d P')


def define(text: str):
    "Define a function from text, with its source where Python finds it."
    return run_text(text, dict(globals()))['f']


def refused(text: str, *contains: str) -> ShapeError:
    with pytest.raises(ShapeError) as e: define(text)
    for c in contains: assert c in str(e.value), str(e.value)
    return e.value


# 1. A column minus a row, in a loss.

def test_column_minus_row():
    e = refused('''
        @typed
        def f(pred: Mat[3, 1], target: Vec[3]) -> float: return ((pred - target)**2).mean()''', '- expected : Mat<3, 1>\n- observed : Vec<3>\n')
    e = refused('''
        @typed
        def f(pred: Mat[B, 1], target: Vec[B]) -> float: return ((pred - target)**2).mean()''', '- expected : Mat<B, 1>\n- observed : Vec<B>\n')
    assert e.fails_at == (('B', 2),)

def test_row_minus_row():
    f = define('''
        @typed
        def f(pred: Vec[B], target: Vec[B]) -> float: return ((pred - target)**2).mean()''')
    assert f(np.array([1., 2, 3]), np.array([1., 2, 3])) == 0.0


# 2. Weights stored the other way round.

@pytest.mark.parametrize('name, rows, columns', [('c_attn.weight', 768, 2304), ('mlp.c_fc.weight', 768, 3072)])
def test_transposed_weights(name, rows, columns):
    f = define(f'''
        @typed
        def f(tensors: {{{name!r}: InOut[Mat[{rows}, {columns}]]}}, x: Mat[B, {rows}]) -> Mat[B, {columns}]: return x @ tensors[{name!r}]''')
    x = np.zeros((2, rows), np.float32)
    with pytest.raises(ShapeError) as e: f({name: np.zeros((columns, rows), np.float32)}, x)
    for text in (name, f'Mat<{rows}, {columns}>', f'Mat<{columns}, {rows}>', 'transpose'): assert text in str(e.value)
    assert f({name: np.zeros((rows, columns), np.float32)}, x).shape == (2, columns)

def test_transposed_square_weight():
    f = define('''
        @typed
        def f(x: Mat[B, D], w: InOut[Mat[D, D]]) -> Mat[B, D]: return x @ w''')
    w = stored(np.eye(3), 'out×in')
    with pytest.raises(ShapeError, match='stored out×in'): f(np.ones((2, 3)), w)
    assert f(np.ones((2, 3)), w.T).shape == f(np.ones((2, 3)), np.eye(3)).shape == (2, 3)


# 4. A flatten that forgot the spatial size.

def test_flatten():
    program = '''
        @typed
        def f(images: Arr[10, 10, 7, 7], w: Mat[{0}, 10]) -> Mat[10, 10]: return images.reshape(10, {1}) @ w'''
    e = refused(program.format(10, -1), '490', '10')
    assert (e.expected, e.observed) == ('Mat<490, 10>', 'Mat<10, 10>')
    define(program.format(490, -1))
    refused('''
        @typed
        def f(images: Arr[10, 10, 7, 7], w: Mat[490, 10]) -> Mat[100, 10]: return images.reshape(100, 49) @ w''', '49', '490')

def test_flatten_that_is_missing():
    refused('''
        @typed
        def f(images: Arr[B, 10, 7, 7], w: Mat[490, 10]) -> Mat[B, 10]: return images @ w''', 'flatten the left side first: .reshape(B, 490)')


# 6. A batch of one, squeezed away.

def test_squeeze():
    e = refused('''
        @typed
        def f(x: Mat[B, 1], y: Vec[B]) -> float: return np.abs(x.squeeze() - y).sum()''', 'depends on B', 'squeeze(axis=...)')
    assert e.fails_at == (('B', 1),)
    f = define('''
        @typed
        def f(x: Mat[B, 1], y: Vec[B]) -> float: return np.abs(x.squeeze(axis=1) - y).sum()''')
    assert f(np.ones((1, 1)), np.ones(1)) == 0


# 9. matmul with vectors: NumPy's ranks where vectors are declared, refused where a matrix is.

@pytest.mark.parametrize('a, b, result', [('Vec[3]', 'Mat[3, 2]', 'Vec[2]'), ('Mat[2, 3]', 'Vec[3]', 'Vec[2]'), ('Vec[3]', 'Vec[3]', 'Arr[()]')])
def test_matmul_with_vectors(a, b, result):
    define(f'''
        @typed
        def f(a: {a}, b: {b}) -> {result}: return a @ b''')
    refused(f'''
        @typed
        def f(a: {a}, b: {b}) -> Mat[2, 1]: return a @ b''', ', not 2')

def test_a_vector_where_a_matrix_is_needed():
    refused('''
        @typed
        def g(x: Mat[B, D]) -> Mat[B, D]: return x
        @typed
        def f(x: Vec[D]) -> Mat[1, D]: return g(x)''', 'axis, not 2')
    define('''
        @typed
        def g(x: Mat[B, D]) -> Mat[B, D]: return x
        @typed
        def f(x: Vec[D]) -> Mat[1, D]: return g(x[None, :])''')


# 15. The declared result contradicts the split.

def test_split():
    program = '''
        @typed{}
        def f(x: Mat[B, d]) -> Mat[B, {}]:
            a, b = np.split(x, 2, axis=-1)
            return a*b'''
    e = refused(program.format('(where="d % 2 == 0")', 'd'), "- expected : Mat<B, d>")
    assert dict(e.fails_at)['d'] == 2
    refused(program.format('', '"d//2"'), 'd is split into 2 equal pieces', 'd = 1')
    f = define(program.format('(where="d % 2 == 0")', '"d//2"'))
    assert f(np.ones((3, 8))).shape == (3, 4)
    with pytest.raises(ShapeError, match='d % 2 == 0'): f(np.ones((3, 7)))


# 18. A gradient returned transposed; a channel count that depends on the data.

def test_gradient():
    program = '''
        @typed
        def f(x: Mat[100, 784], dy: Mat[100, 128]) -> Mat[784, 128]: return {}'''
    refused(program.format('dy.T @ x'), '- expected : Mat<784, 128>\n- observed : Mat<128, 784>', '.T')
    define(program.format('x.T @ dy'))

def test_gradient_of_a_square_weight():
    program = '''
        @typed
        def f(x: Mat[B, D], dy: Grad[Mat[B, D]]) -> InOut[Mat[D, D]]: return {}'''
    refused(program.format('dy.T @ x'), '- expected : in×out\n- observed : out×in')
    define(program.format('x.T @ dy'))

def test_channels():
    program = '''
        @typed
        def layer(x: Arr[H, D, 3]) -> Mat[H, D]: return x.mean(-1)
        @typed{}
        def f(image: Arr[H, D, C]) -> Mat[H, D]:
            {}
            return layer(image)'''
    refused(program.format('', 'pass'), 'size C on axis 2, not 3')
    define(program.format('', 'if image.shape[2] == 1: image = np.repeat(image, 3, axis=2)\n            if image.shape[2] != 3: raise ValueError("channels")'))

def test_the_headline():
    e = refused('''
        @typed
        def f(a: Mat[2, 3], b: Mat[4, 5]) -> Mat[2, 5]: return a @ b''')
    assert str(e).startswith('- expected : Mat<3, 5>\n- observed : Mat<4, 5>\n') and e.everywhere
    e = refused('''
        @typed
        def f(a: Mat[n, 3], b: Mat[m, 5]) -> Mat[n, 5]: return a @ b''')
    assert e.fails_at == (('m', 1),)


# The negative tests of the source system that are not above, and their accepted twins.

def test_bad_reshape():
    e = refused('''
        @typed
        def f(x: Mat[2, 6]) -> Mat[5, 3]: return x.reshape(5, 3)''')
    assert (e.expected, e.observed) == ('12', '15')
    define('''
        @typed
        def f(x: Mat[2, 6]) -> Mat[4, 3]: return x.reshape(4, 3)''')

def test_bad_bands():
    refused('''
        @typed
        def f(x: Mat[1, 2304], w: Mat[768, 768]) -> Mat[1, 768]: return x @ w''', '2304', '768')
    define('''
        @typed
        def f(x: Mat[1, 2304], w: Mat[768, 768]) -> Mat[1, 768]: return x[:, :768] @ w''')

def test_square_transpose_bad():
    program = '''
        @typed
        def f(x: Mat[B, D], w: OutIn[Mat[D, D]]) -> Mat[B, D]: return x @ {}'''
    refused(program.format('w'), 'out axis')
    define(program.format('w.T'))

def test_symbolic_reshape_bad():
    e = refused('''
        @typed
        def f(x: Mat[n, 6]) -> Mat[n, 5]: return x.reshape(n_rows := len(x), 5)''')
    assert (e.expected, e.observed) == ('6*n', '5*n')
    define('''
        @typed
        def f(x: Mat[n, 6]) -> Mat['2*n', 3]: return x.reshape(2*len(x), 3)''')

def test_runtime_batch():
    f = define('''
        @typed
        def f(x: Mat[B, 4], w: Mat[4, 3], b: Vec[3]) -> Mat[B, 3]: return np.maximum(x @ w + b, 0)''')
    w = np.array([[.5, -1, .25], [1, .5, -.5], [-.25, .75, 1], [.1, .2, .3]], np.float32)
    x, b = np.array([[.5, 1, -.5, 2], [1.5, -2, .25, 0], [-1, .5, 3, 1]], np.float32), np.array([.1, -.2, .05], np.float32)
    assert np.array_equal(f(x, w, b), np.array([[1.6750001, 0, 0], [0, 0, 1.675], [0, 3.5, 2.85]], np.float32))
    for rows in (1, 2, 3, 7, 16, 33, 97, 200): assert f(np.ones((rows, 4)), w, b).shape == (rows, 3)
    refused('''
        @typed
        def f(x: Mat[B, 4], y: Mat[n, 3]) -> Mat[B, 3]: return x[:, :3] + y''', 'B = 2, n = 3')

def test_composition():
    refused('''
        @typed
        def first(x: Mat[B, 784]) -> Mat[B, 128]: return x[:, :128]
        @typed
        def second(h: Mat[B, 64]) -> Mat[B, 10]: return h[:, :10]
        @typed
        def f(x: Mat[B, 784]) -> Mat[B, 10]: return second(first(x))''', '- expected : Mat<B, 64>\n- observed : Mat<B, 128>')


# Other libraries' annotations.

def test_jaxtyping_annotations_as_they_stand():
    from jaxtyping import Bool, Float, Float32, Int
    A = np.ndarray
    def f(x, w): return x @ w
    def annotated(x, w, result): return typed(f, shapes={'x': x, 'w': w, 'return': result})
    annotated(Float[A, 'batch 784'], Float32[A, '784 h*d'], Float[A, 'batch h*d'])
    annotated(Float[A, 'batch rows=784'], Mat[784, 'out'], Float32[A, 'batch out'])
    for x, w, result in (('batch 784', Float[A, '785 out'], 'batch out'), ('batch 784', Mat[785, 'out'], 'batch out'), ('batch 784', Mat[784, 'out'], 'batch 784'), ('784', Mat[784, 'out'], 'batch out')):
        with pytest.raises(ShapeError): annotated(Float[A, x], w, Float[A, result])
    for rest in ('*batch 784', '... 784', '_ 784', '#batch 784'):
        with pytest.raises(ShapeError, match='each axis with a name'): annotated(Float[A, rest], Mat[784, n], None)
    g = typed(lambda x: x.sum(1), shapes={'x': Float[A, 'batch 2*h+1'], 'return': Float[A, 'batch']})
    assert g(np.ones((2, 5))).shape == (2,)
    with pytest.raises(ShapeError, match='no h makes'): g(np.ones((2, 4)))
    kinds = {'int': Int, 'bool': Bool, 'float': Float, 'float32': Float32}
    for name, kind in kinds.items():
        for given in (np.int64, np.bool_, np.float32, np.float64):
            take = typed(lambda x: x*1, shapes={'x': kind[A, 'n'], 'return': Vec['n']})
            if np.dtype(given).kind == np.dtype(name).kind and not (name == 'float32' and given is np.float64): take(np.ones(2, given))
            else:
                with pytest.raises(ShapeError, match='x holds'): take(np.ones(2, given))


def test_sizes_and_messages_of_hostile_text():
    for text in ('__import__("os").system("x")', '1e9', 'a if b else c', '"'*50, 'n**99', '('*500, 'x'*1000, 'n\0', '[1]'):
        with pytest.raises((ShapeError, ValueError)): define(f'''
            @typed
            def f(x: Vec[{text!r}]) -> Vec[n]: return x''')
        with pytest.raises((ShapeError, ValueError)): define(f'''
            @typed(where={text!r})
            def f(x: Vec[n]) -> Vec[n]: return x''')
