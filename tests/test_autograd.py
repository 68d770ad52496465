"""Derivatives: the laws' witnesses, every rule of the table against PyTorch and difference quotients, real faults from elsewhere.

PYTEST_DONT_REWRITE
"""
import json, random, shutil, subprocess, time
from pathlib import Path

import numpy as np
import pytest

from bendml.autograd.arrays import GradError, check_grad, grad, differentiable, jvp, value_and_grad, vjp, with_gradient
from bendml.autograd import scalar
from bendml.laws import prove, to_list

ROOT = Path(__file__).resolve().parent.parent


# Scalar expressions

def test_scalar_laws_are_confirmed():
    for law in (scalar.reverse_is_forward, scalar.reverse_eq_forward, scalar.gradient_is_forward):
        t = prove(law)
        assert t.verdict == 'confirmed', t
        assert {a.__name__ for a in t.axioms} <= {'plus_comm', 'plus_assoc', 'plus_zero', 'times_comm', 'times_assoc', 'times_one', 'times_zero', 'distribute'}


def random_expr(rng, depth, n):
    here = scalar.Here()
    for _ in range(rng.randrange(n)): here = scalar.Next(here)
    if depth == 0: return rng.choice([scalar.Input(here), scalar.Const(rng.randint(-3, 3))])
    return rng.choice([scalar.Add, scalar.Mul])(random_expr(rng, depth - 1, n), random_expr(rng, rng.randrange(depth), n))


def test_scalar_gradient_on_integers():
    "On integers, where arithmetic is exact: backward == forward == the array version's."
    rng = random.Random(0)
    run = lambda e, xs: {scalar.Const: lambda: e.value + 0*xs[0], scalar.Input: lambda: xs[place(e.place)],
                         scalar.Add: lambda: run(e.left, xs) + run(e.right, xs), scalar.Mul: lambda: run(e.left, xs)*run(e.right, xs)}[type(e)]()
    place = lambda p: 0 if isinstance(p, scalar.Here) else 1 + place(p.place)
    for _ in range(100):
        e, xs = random_expr(rng, rng.randint(1, 5), 3), [rng.randint(-3, 3) for _ in range(3)]
        forward = [scalar.forward(e, to_list(xs), to_list([int(i == j) for j in range(3)])) for i in range(3)]
        assert list(scalar.gradient(e, to_list(xs))) == forward
        assert [float(d) for d in grad(lambda *x: run(e, x), (0, 1, 2))(*map(float, xs))] == forward


def test_reused_nodes():
    def y(a, b):
        c, d = a + b, a*b
        return c + d + c*d
    assert grad(y, (0, 1))(2., 3.) == (25., 19.)
    def twice(a):
        b = a + a
        return b + b
    assert grad(twice)(1.) == 4.
    assert grad(lambda a: a*a*a + a)(2.) == 13.


def test_graph_widget_computes_the_same():
    node = shutil.which('node')
    if node is None: pytest.skip('node is not installed')
    nodes = [['in', 0], ['in', 1], ['+', 0, 1], ['*', 0, 1], ['+', 2, 3], ['*', 2, 3], ['+', 4, 5]]
    code = f'const {{flow}} = require({json.dumps(str(ROOT/"media/widgets/graph.js"))}); console.log(JSON.stringify(flow({json.dumps(nodes)}, [2, 3])))'
    out = json.loads(subprocess.run([node, '-e', code], capture_output=True, text=True, check=True).stdout)
    assert out['value'][-1] == 41 and out['grad'][:2] == [25, 19]


# Arrays

RNG = np.random.default_rng(5)
A, B, P = RNG.normal(size=(3, 4)), RNG.normal(size=(3, 4)), RNG.uniform(.5, 2, (3, 4))
CASES = {
    np.add: (lambda a, b: a + b, A, B[:1]), np.subtract: (lambda a, b: a - b, A[:, :1], B), np.multiply: (lambda a, b: a*b, A, B[0]),
    np.divide: (lambda a, b: a/b, A, P), np.power: (lambda a, b: a**b, P, B), np.negative: (lambda a: -a, A), np.positive: (lambda a: +a, A),
    np.exp: (np.exp, A), np.expm1: (np.expm1, A), np.log: (np.log, P), np.log1p: (np.log1p, P), np.sqrt: (np.sqrt, P), np.square: (np.square, A),
    np.reciprocal: (np.reciprocal, P), np.tanh: (np.tanh, A), np.sin: (np.sin, A), np.cos: (np.cos, A), np.arctan: (np.arctan, A),
    np.absolute: (np.abs, A), np.maximum: (np.maximum, A, B), np.minimum: (np.minimum, A, B), np.logaddexp: (np.logaddexp, A, B),
    np.where: (lambda a, b: np.where(a > b, a*2, b*3), A, B), np.clip: (lambda a: np.clip(a, -.5, .5), A),
    np.sum: (lambda a: np.sum(a, 1) + a.sum()*np.sum(a, (0, 1), keepdims=True)[0, 0], A), np.mean: (lambda a: a.mean(0)*np.mean(a)*np.mean(a, (0, 1)), A),
    np.reshape: (lambda a: a.reshape(2, 6)*a.reshape((2, -1)), A), np.ravel: (lambda a: a.ravel()**2, A), np.transpose: (lambda a: np.transpose(a.T @ a, (1, 0)), A),
    np.swapaxes: (lambda a: np.swapaxes(a, 0, 1)**2, A), np.moveaxis: (lambda a: np.moveaxis(a.reshape(3, 2, 2), 0, 2)**2, A),
    np.expand_dims: (lambda a: np.expand_dims(a, 1)**2, A), np.squeeze: (lambda a: np.squeeze(np.expand_dims(a, 1), 1)**2, A),
    np.broadcast_to: (lambda a: np.broadcast_to(a[:1], (5, 4))*RNG_C, A), np.cumsum: (lambda a: np.cumsum(a, 1)**2, A), np.flip: (lambda a: np.flip(a, 0)*RNG_D, A),
    np.tril: (lambda a: np.tril(a)*a, A), np.triu: (lambda a: np.triu(a, 1)*a, A), np.matmul: (lambda a, b: a @ b.T, A, B), np.outer: (lambda a, b: np.outer(a[0], b[1]), A, B),
    np.max: (lambda a: a.max(1) + np.max(a), A), np.min: (lambda a: a.min(0) + np.min(a, (0, 1)), A),
    np.concatenate: (lambda a, b: np.concatenate([a, b, a], 1)**2, A, B), np.stack: (lambda a, b: np.stack([a, b], 1)**2, A, B),
    'pick': (lambda a: a[[0, 0, 2]]**2 + a[1] + a[:, 1:3].sum(), A),
}
RNG_C, RNG_D = RNG.normal(size=(5, 4)), RNG.normal(size=(3, 4))


def test_every_operation_has_a_case():
    assert differentiable() == sorted(f.__name__ for f in CASES if f != 'pick')


@pytest.mark.parametrize('fn', CASES, ids=lambda f: getattr(f, '__name__', f))
def test_operation(fn):
    f, *args = CASES[fn]
    assert check_grad(f, *args) < 1e-6


def test_check_grad_finds_a_wrong_rule():
    wrong = with_gradient(lambda x: x*x, lambda g, y, x: g*x)
    with pytest.raises(GradError, match='backward derivative'): check_grad(lambda x: np.sum(wrong(x)), A)


@pytest.mark.parametrize('left, right', [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)), ((5, 2, 3), (5, 3, 4)), ((5, 2, 3), (3,)), ((4, 5, 2, 3), (5, 3, 2)), ((3,), (5, 3, 2))])
def test_matmul(left, right):
    rng = np.random.default_rng(0)
    assert check_grad(lambda a, b: a @ b, rng.normal(size=left), rng.normal(size=right)) < 1e-7


@pytest.mark.parametrize('left, right', [((3, 4), (1, 4)), ((1,), (5, 4)), ((4, 1), (1, 4)), ((4,), (3, 4)), ((), (2, 3))])
def test_broadcast_is_reduced(left, right):
    rng = np.random.default_rng(0)
    a, b, w = rng.normal(size=left), rng.normal(size=right), rng.normal(size=np.broadcast_shapes(left, right))
    da, db = grad(lambda a, b: np.sum((a*b + a)*w), (0, 1))(a, b)
    assert da.shape == left and db.shape == right
    check_grad(lambda a, b: np.sum((a*b + a)*w), a, b)


def test_column_sums():
    g = np.arange(12.).reshape(3, 4)
    assert grad(lambda b: np.sum((np.ones((3, 4)) + b)*g))(np.zeros((1, 4))).tolist() == [[12, 15, 18, 21]]


def test_wrong_shape_is_refused():
    rule = with_gradient(lambda x: x*1., lambda g, y, x: np.ones((4, 3)))
    with pytest.raises(GradError, match=r'expected : \(3,\)\n- observed : \(4, 3\)'): grad(lambda x: np.sum(rule(x)))(np.ones(3))
    with pytest.raises(GradError, match=r'expected : \(3, 4\)\n- observed : \(4, 3\)'): vjp(lambda a: a*2, A)[1](A.T)
    with pytest.raises(GradError, match=r'expected : \(3, 4\)\n- observed : \(4, 3\)'): jvp(lambda a: a*2, (A,), (A.T,))


def test_deep_chain():
    def chain(x):
        for _ in range(5000): x = x + 1
        return x
    begin = time.perf_counter()
    assert grad(chain)(0.) == 1 and jvp(chain, (np.array(0.),), (np.array(1.),))[1] == 1
    assert time.perf_counter() - begin < 2
    def doubling(x):
        for _ in range(60): x = x + x
        return x
    assert grad(doubling)(1.) == 2.**60


def test_types_and_forms():
    x = np.ones((2, 3), np.float32)
    d = grad(lambda x: np.sum(np.tanh(x)*np.arange(3.)))(x)
    assert d.dtype == np.float32 and d.shape == x.shape
    assert type(grad(lambda x: x*x)(2.)) is float
    from collections import namedtuple
    Pair = namedtuple('Pair', 'a b')
    out = grad(lambda p: p[0].a*p[1]['w'])((Pair(2., 3.), {'w': 5.}))
    assert out == (Pair(5., 0.), {'w': 2.})
    with pytest.raises(GradError, match='int64'): grad(lambda x: np.sum(x))(np.arange(3))
    value, d = value_and_grad(lambda a, b: np.sum(a*b), 1)(np.arange(3), np.ones(3))
    assert value == 3 and d.tolist() == [0, 1, 2]


@pytest.mark.parametrize('f, match', [
    (lambda x: float(np.sum(x)), 'float|Traced'), (lambda x: x if x else x, 'truth value'), (lambda x: np.linalg.det(x), 'function with a gradient'),
    (lambda x: np.asarray(x).sum(), 'plain'), (lambda x: np.add.reduce(x), 'reduce'), (lambda x: x.__setitem__(0, 1), 'assignment'),
    (lambda x: np.sum(x, dtype=np.float64), 'dtype'), (lambda x: 'text', 'one array')])
def test_refusals(f, match):
    with pytest.raises((GradError, TypeError), match=match): grad(f)(np.ones((2, 2)))


def test_second_derivatives():
    assert grad(grad(lambda x: x**4))(3.) == 108
    hessian_row = grad(lambda x: np.sum(grad(lambda x: np.sum(np.exp(x)*x[::-1] if False else np.exp(x)*x))(x)*np.array([1., 0, 0])))(np.array([.5, 1, 2]))
    assert np.allclose(hessian_row, [np.exp(.5)*(2 + .5), 0, 0])
    check_grad(lambda a: grad(lambda a: np.sum(np.tanh(a @ a.T)))(a), A)


# Against PyTorch

FACTS = [(lambda m, x: x[0]*x[1] + x[0]), (lambda m, x: m.relu(x[0]*x[1] - x[2])), (lambda m, x: m.tanh(x[0]*x[1] + x[2])),
         (lambda m, x: m.exp(x[0])*m.tanh(x[1]) + x[2]*x[2]), (lambda m, x: m.tanh(m.relu(x[0]*x[1]) + m.exp(x[2]*x[0])))]
POINTS = [(.7, -1.3, .4), (-.5, .9, 1.1), (1.2, .8, -.6)]


class Np:
    relu, tanh, exp = staticmethod(lambda x: np.maximum(x, 0)), np.tanh, np.exp


def compare(f, point, torch, dtype, tol):
    xs = [torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in point]
    y = f(torch, xs)
    y.backward()
    mine, grads = value_and_grad(lambda *x: f(Np, x), tuple(range(len(point))))(*(dtype(v) for v in point))
    for a, b in zip((mine, *grads), (y.detach(), *(x.grad if x.grad is not None else torch.tensor(0.) for x in xs))):
        assert abs(float(a) - float(b)) <= tol*max(1, abs(float(b)))


def test_expressions_against_pytorch():
    torch = pytest.importorskip('torch')
    for f in FACTS:
        for p in POINTS:
            compare(f, p, torch, np.float32, 1e-5)
            compare(f, p, torch, np.float64, 1e-12)


def tree(rng, depth):
    if depth == 0: return rng.choice([('x', rng.randrange(3))]*3 + [('c', round(rng.uniform(-1.5, 1.5), 3))])
    op = rng.choice(['+', '*', 'relu', 'tanh', 'exp'])
    return (op, tree(rng, depth - 1), tree(rng, rng.randrange(depth))) if op in '+*' else (op, tree(rng, depth - 1))


def run(t, m, x):
    op, *a = t
    if op == 'x': return x[a[0]]
    if op == 'c': return a[0]
    values = [run(b, m, x) for b in a]
    if op == '+': return values[0] + values[1]
    if op == '*': return values[0]*values[1]
    return getattr(m, op)(values[0] + 0*x[0])


def test_120_random_trees_against_pytorch():
    "Float32 within 1e-5 of float64 truth, or as close to it as PyTorch's own float32."
    torch = pytest.importorskip('torch')
    rng, done = random.Random(20261004), 0
    while done < 120:
        t, point = tree(rng, rng.randint(1, 4)), [rng.uniform(-1.5, 1.5) for _ in range(3)]
        if "'x'" not in str(t): continue
        def by_torch(dtype):
            xs = [torch.tensor(v, dtype=dtype, requires_grad=True) for v in point]
            y = run(t, torch, xs)
            y.backward()
            return [float(v) for v in (y.detach(), *(x.grad if x.grad is not None else 0. for x in xs))]
        truth, theirs = by_torch(torch.float64), by_torch(torch.float32)
        if not all(np.isfinite(truth)) or abs(truth[0]) >= 1e3: continue
        y, ds = value_and_grad(lambda *x: run(t, Np, x), (0, 1, 2))(*map(np.float32, point))
        for a, b, c in zip(truth, theirs, (y, *ds)): assert abs(c - a) <= max(1e-5*max(1, abs(a)), 2*abs(b - a)), (t, point)
        done += 1
