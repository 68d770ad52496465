"Layers and optimizers: against PyTorch in float64 and float32, the protocol, what is refused, and real faults from elsewhere."
import os, subprocess, sys
from copy import deepcopy
import numpy as np
import pytest

from bendml.nn import rows
from bendml.nn.attention import angles, rotate
from bendml.nn.elementary import erf, exp, tanh, worst_ulps
from bendml.nn.conv import Conv2d, MaxPool
from bendml.nn.layer import Add, Both, Fork, Grid, Id, LayerError, Mul, Residual, Seq, leaves
from bendml.nn.layers import (GELU, Attend, Dropout, Embedding, GELUErf, LayerNorm, Linear, LinearFirst, LogSoftmax, Positions, ReLU, RMSNorm, Sigmoid,
                              SiLU, Softmax, Tanh, Tied, cross_entropy, mean_squared_error, self_attention, swiglu)
from bendml.optim import SGD, Adam, AdamW, OptimError, clip, linear_decay, warmup_cosine
from tests.gpt import copy_into, ours, torch_gpt

f32 = np.float32
RNG = np.random.default_rng(0)


def draw(*shape): return RNG.normal(size=shape).astype(f32)


# Against PyTorch

def torch_functions():
    torch = pytest.importorskip('torch')
    F = torch.nn.functional
    def attention(heads, size, kv, rotary=None):
        def run(x):
            B, T, _ = x.shape
            q, k, v = x.view(B, T, heads + 2*kv, size).split([heads, kv, kv], 2)
            if rotary:
                cos, sin = (torch.from_numpy(a).to(x.dtype) for a in angles(T, size))
                q, k = (turn(a, cos[:, None], sin[:, None], rotary) for a in (q, k))
            q, k, v = (a.transpose(1, 2) for a in (q, k, v))
            k, v = (a.repeat_interleave(heads//kv, 1) for a in (k, v))
            s = (q @ k.transpose(-1, -2))*size**-.5
            s = s.masked_fill(torch.ones(T, T, dtype=torch.bool).triu(1), float('-inf'))
            return (s.softmax(-1) @ v).transpose(1, 2).reshape(B, T, heads*size)
        return run
    def turn(x, cos, sin, convention):
        a, b = (x[..., ::2], x[..., 1::2]) if convention == 'interleaved' else x.chunk(2, -1)
        u, v = cos*a - sin*b, sin*a + cos*b
        return torch.stack([u, v], -1).flatten(-2) if convention == 'interleaved' else torch.cat([u, v], -1)
    return {
        'Linear': (Linear(7, 5), lambda x, w, b: F.linear(x, w, b), (4, 3, 7)), 'in order': (Linear(7, 5, order='sequential'), lambda x, w, b: F.linear(x, w, b), (4, 3, 7)),
        'Conv2d': (Conv2d(Grid(6, 5, 2), 3, 3), lambda x, w, b: F.conv2d(x.view(-1, 6, 5, 2).permute(0, 3, 1, 2), w.view(3, 3, 3, 2).permute(0, 3, 1, 2), b).permute(0, 2, 3, 1).flatten(1), (4, 60)),
        'apart': (Conv2d(Grid(6, 5, 2), 3, 3, stride=2, pad=1), lambda x, w, b: F.conv2d(x.view(-1, 6, 5, 2).permute(0, 3, 1, 2), w.view(3, 3, 3, 2).permute(0, 3, 1, 2), b, stride=2, padding=1).permute(0, 2, 3, 1).flatten(1), (4, 60)),
        'far apart': (Conv2d(Grid(6, 5, 2), 3, 2, stride=3), lambda x, w, b: F.conv2d(x.view(-1, 6, 5, 2).permute(0, 3, 1, 2), w.view(3, 2, 2, 2).permute(0, 3, 1, 2), b, stride=3).permute(0, 2, 3, 1).flatten(1), (4, 60)),
        'MaxPool': (MaxPool(Grid(4, 6, 3)), lambda x: F.max_pool2d(x.view(-1, 4, 6, 3).permute(0, 3, 1, 2), 2).permute(0, 2, 3, 1).flatten(1), (5, 72)),
        'no bias': (Linear(7, 5, False), lambda x, w: F.linear(x, w), (4, 7)),
        'ReLU': (ReLU(), torch.relu, (6, 9)), 'Sigmoid': (Sigmoid(), torch.sigmoid, (6, 9)), 'Tanh': (Tanh(), torch.tanh, (6, 9)), 'SiLU': (SiLU(), F.silu, (6, 9)),
        'GELU': (GELU(), lambda x: F.gelu(x, approximate='tanh'), (6, 99)), 'GELUErf': (GELUErf(), F.gelu, (6, 99)),
        'Softmax': (Softmax(), lambda x: x.softmax(-1), (5, 77)), 'LogSoftmax': (LogSoftmax(), lambda x: x.log_softmax(-1), (5, 77)),
        'LayerNorm': (LayerNorm(33), lambda x, g, b: F.layer_norm(x, (33,), g, b), (40, 33)), 'RMSNorm': (RMSNorm(33), lambda x, g: F.rms_norm(x, (33,), g, 1e-5), (40, 33)),
        'Attend': (Attend(4, 8), attention(4, 8, 4), (2, 11, 96)), 'grouped': (Attend(4, 8, 2), attention(4, 8, 2), (2, 11, 64)),
        'RoPE half': (Attend(4, 8, 2, 'half'), attention(4, 8, 2, 'half'), (2, 11, 64)), 'RoPE interleaved': (Attend(2, 6, 1, 'interleaved'), attention(2, 6, 1, 'interleaved'), (2, 7, 24)),
        'Positions': (Positions(20, 6), lambda x, t: x + t[:11], (2, 11, 6)),
        'SwiGLU': (swiglu(6, 10), lambda x, a, b, c: F.linear(F.silu(F.linear(x, a))*F.linear(x, b), c), (3, 6)),
        'Residual': (Residual(Linear(6, 6), Tanh()), lambda x, w, b: x + torch.tanh(F.linear(x, w, b)), (3, 6)),
    }


NAMES = 'Linear,in order,Conv2d,apart,far apart,MaxPool,no bias,ReLU,Sigmoid,Tanh,SiLU,GELU,GELUErf,Softmax,LogSoftmax,LayerNorm,RMSNorm,Attend,grouped,RoPE half,RoPE interleaved,Positions,SwiGLU,Residual'.split(',')


def error(a, truth): return np.abs(np.asarray(a, float) - truth).max()/np.abs(truth).max()


@pytest.mark.parametrize('name', NAMES)
def test_layer_against_pytorch(name):
    "Output and every derivative within 1e-5 of float64 truth, relative to its largest entry, or as near as PyTorch's own float32."
    torch = pytest.importorskip('torch')
    layer, fn, shape = torch_functions()[name]
    p, x = layer.make(lambda n, s: draw(*s)), 2*draw(*shape)
    y, saved = layer.forward(p, x)
    dy, g = draw(*y.shape), layer.zeros()
    dx = layer.backward(p, saved, dy, g)
    def theirs(dtype):
        inputs = [torch.from_numpy(a).to(dtype).requires_grad_() for a in (x, *leaves(p))]
        out = fn(*inputs)
        out.backward(torch.from_numpy(dy).to(dtype))
        return [a.detach().numpy() for a in (out, *(i.grad for i in inputs))]
    for mine, truth, other in zip((y, dx, *leaves(g)), theirs(torch.float64), theirs(torch.float32), strict=True):
        assert mine.dtype == f32 and mine.shape == truth.shape
        assert error(mine, truth) <= max(1e-5, error(other, truth)), name


def test_embedding_against_pytorch():
    torch = pytest.importorskip('torch')
    layer, ids = Embedding(50, 37), RNG.integers(0, 50, (4, 30))
    p, g = layer.init(RNG), layer.zeros()
    y, saved = layer.forward(p, ids)
    dy = draw(*y.shape)
    layer.backward(p, saved, dy, g)
    w = torch.from_numpy(p[0]).double().requires_grad_()
    out = torch.nn.functional.embedding(torch.from_numpy(ids), w)
    out.backward(torch.from_numpy(dy).double())
    assert (y == out.detach().numpy()).all() and error(g[0], w.grad.numpy()) < 1e-6


@pytest.mark.parametrize('n, V', [(1, 1), (3, 5), (64, 1000), (7, 49152)])
def test_cross_entropy_against_pytorch(n, V):
    torch = pytest.importorskip('torch')
    z, labels = 5*draw(n, V), RNG.integers(0, V, n)
    t = torch.from_numpy(z).double().requires_grad_()
    truth = torch.nn.functional.cross_entropy(t, torch.from_numpy(labels))
    truth.backward()
    loss, dz = cross_entropy(z.copy(), labels)
    assert abs(loss - truth.item()) <= 1e-6*max(1, abs(truth.item())) and np.abs(dz - t.grad.numpy()).max() <= 1e-5/n
    kept, before = z.copy(), z.copy()
    again = cross_entropy(kept, labels, keep=True)
    assert (kept == before).all() and again[0] == loss and (again[1] == dz).all()


def test_gradients_accumulate():
    layer = Seq(Linear(3, 4), LayerNorm(4), Fork(Id(), Tanh()), Mul())
    p, x = layer.make(lambda n, s: draw(*s)), draw(5, 3)
    y, saved = layer.forward(p, x)
    once, twice = layer.zeros(), layer.zeros()
    layer.backward(p, saved, y, once)
    for _ in range(2): layer.backward(p, saved, y, twice)
    for a, b in zip(leaves(once), leaves(twice)): assert np.allclose(2*a, b, rtol=1e-6)


def test_pairs_against_autograd():
    "Fork, Both, Add and Mul against gradients of the same function in NumPy."
    from bendml.autograd.arrays import vjp
    layer = Seq(Fork(Linear(3, 4), Linear(3, 4)), Both(Tanh(), Id()), Fork(Add(), Mul()), Add())
    p, x, dy = layer.make(lambda n, s: draw(*s)), draw(5, 3), draw(5, 4)
    def f(x, a, c, b, d):
        u, v = np.tanh(x @ a.T + c), x @ b.T + d
        return u + v + u*v
    y, saved = layer.forward(p, x)
    g = layer.zeros()
    mine = [layer.backward(p, saved, dy, g), *leaves(g)]
    value, back = vjp(f, *(a.astype(float) for a in (x, *leaves(p))))
    assert np.allclose(y, value, atol=1e-5)
    for a, b in zip(mine, back(dy.astype(float)), strict=True): assert np.allclose(a, b, atol=1e-4)


# Numerics: real faults from elsewhere

def test_softmax_overflow():
    y, _ = Softmax().forward((), np.array([1e4, 9999, 0], f32))
    assert np.allclose(y, [.7310586, .2689414, 0], atol=1e-7) and y[2] == 0
    loss, _ = cross_entropy(np.array([[1e4, 9999, 0]], f32), np.array([2]))
    assert np.isfinite(loss) and abs(loss - 10000.3133) < 1e-2


@pytest.mark.parametrize('start', [40000, 80000])
def test_layer_norm_cancellation(start):
    layer = LayerNorm(4)
    y, _ = layer.forward(layer.init(RNG), np.arange(start, start + 4, dtype=f32)[None])
    assert np.abs(y - [[-1.3416355, -.4472118, .4472118, 1.3416355]]).max() < 2e-6


@pytest.mark.parametrize('row', [[2.]*4, [1234.]*256])
def test_layer_norm_constant_row(row):
    layer, bias = LayerNorm(len(row)), draw(len(row))
    y, _ = layer.forward((np.ones(len(row), f32), bias), np.array([row], f32))
    assert (y[0] == bias).all()


def test_rope_values():
    x, a = np.array([1, 2, 3, 4], f32).reshape(1, 1, 1, 4), np.array([[1., .01]])
    cos, sin = np.cos(a).astype(f32), np.sin(a).astype(f32)
    inter, half = (rotate(x, cos, sin, c).ravel() for c in ('interleaved', 'half'))
    assert np.allclose(inter, [-1.1426397, 1.9220756, 2.9598507, 4.0297995], atol=1e-6)
    assert np.allclose(half, [-1.9841106, 1.9599007, 2.4623779, 4.0197997], atol=1e-6)


@pytest.mark.parametrize('D', [2, 4, 6, 64])
def test_rope_conventions_differ_by_a_permutation(D):
    x, (cos, sin) = draw(2, 5, 3, D), angles(5, D)
    p = np.concatenate([np.arange(0, D, 2), np.arange(1, D, 2)])
    assert (rotate(np.ascontiguousarray(x[..., p]), cos, sin, 'half')[..., np.argsort(p)] == rotate(x, cos, sin, 'interleaved')).all()
    for c in ('interleaved', 'half'):
        assert (rotate(x, cos, sin, c)[:, 0] == x[:, 0]).all()
        assert np.allclose(rotate(rotate(x, cos, sin, c), cos, sin, c, back=True), x, atol=1e-6)


def test_rope_refusals():
    with pytest.raises(ValueError, match='even head size\n- observed : 5'): angles(3, 5)
    with pytest.raises(LayerError, match="interleaved or half"): Attend(2, 4, rotary='other')
    with pytest.raises(ValueError, match='interleaved or half'): rotate(draw(1, 1, 1, 4), *angles(1, 4), 'neox')
    with pytest.raises(ValueError, match=r'\(3, 2\)'): rotate(draw(1, 3, 1, 4), *angles(2, 4), 'half')


def test_gelu_flavours():
    x = np.array([1, -2], f32)
    assert np.allclose(GELU().forward((), x)[0], [.8411920, -.0454023], atol=5e-8) and np.allclose(GELUErf().forward((), x)[0], [.8413447, -.0455003], atol=5e-8)


def test_relu_nan_and_zero():
    x = np.array([np.nan, -0., 0., -1., 2.], f32)
    y, saved = ReLU().forward((), x)
    assert np.isnan(y[0]) and np.signbit(y[1]) and (y[2:] == [0, 0, 2]).all()
    dx = ReLU().backward((), saved, np.array([1, -1, -1, -1, 3], f32), ())
    assert dx.tolist() == [1, 0, 0, 0, 3] and not np.signbit(dx[1:4]).any()


def test_erf_within_one_ulp():
    for low, high in ((0., .5), (.5, 1.), (1., 4.5), (-0., -4.5)): assert worst_ulps(erf, low, high, 61) < 1
    assert worst_ulps(exp, 0., 88., 61) < 1 and worst_ulps(exp, -0., -87.3, 61) < 1 and worst_ulps(tanh, 0., 10., 61) < 1.5


def test_erf_is_odd():
    "tests/every_float.py measures all 2^32 numbers; here every 41st, where erf is neither x times a constant nor 1."
    assert worst_ulps(erf, 1e-4, 4.2, 41) < 1
    x = np.abs(draw(10000)*3)
    assert all(erf(-v) == -erf(v) for v in x) and np.isnan(erf(f32(np.nan))) and [erf(f32(v)) for v in (-np.inf, 0, np.inf)] == [-1, 0, 1]


def test_causal():
    "Answers at t do not depend on what comes after t: not by a bit."
    layer = Attend(2, 4, rotary='half')
    x = draw(1, 9, 24)
    y, _ = layer.forward((), x)
    for t in range(8):
        other = x.copy()
        other[:, t + 1:] = draw(1, 8 - t, 24)
        assert (layer.forward((), other)[0][:, :t + 1] == y[:, :t + 1]).all()
    p = draw(6, 6)
    assert [rows_read(p, t) for t in range(6)] == [1, 2, 3, 4, 5, 6]


def rows_read(p, t):
    from bendml.nn.attention import causal_row
    return causal_row(p[t].copy(), t, f32(1))


def test_dropout():
    layer = Dropout(.3, seed=5)
    p, x = layer.zeros(), np.ones(100_000, f32)
    y, saved = layer.forward(p, x)
    assert abs((y == 0).mean() - .3) < .01 and np.allclose(y[y != 0], 1/.7) and (layer.backward(p, saved, x, layer.zeros()) == y).all()
    layer.step(None, p, layer.zeros())
    assert p[0].view(np.uint32)[0] == 1
    z, _ = layer.forward(p, x)
    assert (z != y).any() and abs(((z == 0) & (y == 0)).mean() - .09) < .01
    assert (layer.evaluating().forward(p, x)[0] == 1).all() and layer.count == 1
    assert layer.load(layer.dump(p))[0].view(np.uint32)[0] == 1
    with pytest.raises(LayerError): Dropout(1.)


def test_dropout_is_the_hash_that_it_says():
    "Which numbers stay, from the published constants and in whole numbers of any size; the step's number is in the key."
    def mix(x):
        for shift, factor in ((16, 2146121005), (15, 2221713035)): x = (x ^ x >> shift)*factor % 2**32
        return x ^ x >> 16
    for seed, step, p in ((0, 0, .5), (7, 3, .25), (2**32 - 1, 10**6, .9)):
        key = mix(seed ^ mix(step))
        kept = [mix((key + i) % 2**32) >> 8 >= float(f32(p))*2**24 for i in range(300)]
        y, _ = Dropout(p, seed).forward((np.array([step], np.uint32).view(f32),), np.ones(300, f32))
        assert ((y != 0) == kept).all() and set(y.tolist()) == {0., float(f32(1/(1 - p)))}


# The protocol

def small_net(): return Seq(Embedding(11, 8), Positions(6, 8), Residual(LayerNorm(8), self_attention(8, 2)), Residual(RMSNorm(8), swiglu(8, 12)), Dropout(.1), Linear(8, 11))


def test_dump_load_store():
    net = small_net()
    p = net.init(RNG)
    a = net.dump(p)
    assert a.size == net.count == sum(q.count for q in net.parts()) == sum(w.size for w in leaves(p)) and len(net.names()) == len(set(net.names())) == len(list(leaves(p)))
    big = draw(net.count + 20)
    frame = big.copy()
    net.store(p, big, 7)
    assert (big[:7] == frame[:7]).all() and (big[7 + net.count:] == frame[7 + net.count:]).all() and (big[7:7 + net.count] == a).all()
    for v, w in zip(leaves(net.load(big, 7)), leaves(p), strict=True): assert v.shape == w.shape and v.tobytes() == w.tobytes()
    for bad in (lambda: net.load(a[:-1]), lambda: net.load(a, 1), lambda: net.load(a, -1), lambda: net.store(p, a, 1)):
        with pytest.raises(LayerError, match='numbers'): bad()


def test_seq_count():
    a, b = Linear(3, 4), Seq(Tanh(), Linear(4, 5, False))
    assert Seq(a, b).count == a.count + b.count == 16 + 20 and Seq().count == 0


@pytest.mark.parametrize('build, message', [
    (lambda: Seq(Linear(784, 128), ReLU(), Linear(64, 10)), r'Mat<B, 64>\n- observed : Mat<B, 128>'),
    (lambda: Seq(Linear(10, 490), Linear(10, 10)), r'Mat<B, 10>\n- observed : Mat<B, 490>'),
    (lambda: Seq(Linear(490, 49), Linear(490, 10)), r'Mat<B, 490>\n- observed : Mat<B, 49>'),
    (lambda: Residual(Linear(3, 4)), r'Mat<B, 3>\n- observed : Mat<B, 4>'),
    (lambda: Seq(Fork(Linear(3, 4), Linear(3, 5)), Add()), r'Mat<B, 4>\n- observed : Mat<B, 5>'),
    (lambda: Fork(Linear(3, 4), Linear(5, 4)), r'Mat<B, 3>\n- observed : Mat<B, 5>'),
    (lambda: Seq(Linear(3, 4), Embedding(4, 4)), r'whole numbers\n- observed : Mat<B, 4>'),
    (lambda: Seq(Linear(3, 4), Add()), r'observed : Mat<B, 4>'),
    (lambda: Seq(Conv2d(Grid(28, 28, 1), 8, 5), MaxPool(Grid(12, 48, 8))), 'Mat<B, 12×48×8>\\n- observed : Mat<B, 24×24×8>'), (lambda: MaxPool(Grid(5, 4, 1)), 'divide 5×4×1'),
    (lambda: Conv2d(Grid(3, 3, 1), 2, 4), 'fits into 3×3×1'), (lambda: Conv2d(Grid(3, 3, 1), 2, 2, pad=2), 'pad from 0 to k - 1'), (lambda: Conv2d(Grid(3, 3, 1), 2, 6, pad=1), 'with 1 around it'), (lambda: Seq(Conv2d(Grid(3, 3, 1), 2, 2), Linear(9, 1)), 'Mat<B, 9>\\n- observed : Mat<B, 2×2×2>'), (lambda: Linear(3, 4, order='any'), 'fast or sequential'),
    (lambda: Seq(Id(), 3), 'layers'), (lambda: self_attention(10, 3), '10 numbers, 3 heads'), (lambda: Attend(4, 8, 3), '4 heads, 3 groups')])
def test_misfits_are_refused_when_built(build, message):
    with pytest.raises(LayerError, match=message): build()


@pytest.mark.parametrize('run, message', [
    (lambda: Linear(3, 4).forward(Linear(3, 4).zeros(), draw(2, 5)), r'Mat<B, 3>\n- observed : Mat<B, 5>'),
    (lambda: Linear(3, 4).forward(Linear(3, 4).zeros(), np.zeros((2, 3))), 'float32\n- observed : float64'),
    (lambda: Embedding(5, 4).forward(Embedding(5, 4).zeros(), np.array([0, 5])), 'from 0 to 4\n- observed : 5'),
    (lambda: Embedding(5, 4).forward(Embedding(5, 4).zeros(), np.array([-1])), 'observed : -1'),
    (lambda: Positions(3, 4).forward(Positions(3, 4).zeros(), draw(1, 4, 4)), r'T up to 3\n- observed : \(1, 4, 4\)'),
    (lambda: Attend(1, 4).forward((), draw(2, 12)), 'B, T, 12'),
    (lambda: cross_entropy(draw(3, 4), np.array([0, 4, 1])), 'from 0 to 3\n- observed : 4'),
    (lambda: cross_entropy(draw(3, 4), np.array([0, 1])), r'\(3,\), a label for each row'),
    (lambda: cross_entropy(draw(0, 4), np.zeros(0, int)), 'at least one row'),
    (lambda: cross_entropy(draw(2, 4), np.array([0., 1.])), 'float64'),
    (lambda: mean_squared_error(draw(3, 1), draw(3)), r'\(3, 1\)\n- observed : \(3,\)'),
    (lambda: Seq(Fork(Id(), Id()), Add()).forward(((), ()), 3), 'an array\n- observed : int')])
def test_misfits_are_refused_when_run(run, message):
    with pytest.raises(LayerError, match=message): run()


def test_transposed_gradients_are_refused():
    class Turned(Linear):
        def _parameters_back(self, saved, dy, g):
            from bendml.nn.layer import accumulate
            accumulate(g[0], saved[1].T @ dy, 'W')
    layer = Turned(784, 128, False)
    y, saved = layer.forward(layer.zeros(), draw(100, 784))
    with pytest.raises(LayerError, match=r'Mat<128, 784>\n- observed : Mat<784, 128>\nhint: transposed'): layer.backward(layer.zeros(), saved, draw(100, 128), layer.zeros())
    with pytest.raises(LayerError, match=r'\(100, 128\)\n- observed : \(128, 100\)'): layer.backward(layer.zeros(), saved, draw(128, 100), layer.zeros())


def test_mean_squared_error():
    assert mean_squared_error(np.array([1, 2, 3], f32), np.array([1, 2, 3], f32))[0] == 0
    loss, d = mean_squared_error(np.array([1, 3], f32), np.array([0, 0], f32))
    assert loss == 5 and d.tolist() == [1, 3] and d.dtype == f32


@pytest.mark.parametrize('layer', [ReLU(), Softmax(), LogSoftmax(), GELU(), LayerNorm(3), RMSNorm(3), Linear(3, 2)], ids=lambda q: type(q).__name__)
def test_empty_batches_and_strides(layer):
    p = layer.init(RNG)
    y, saved = layer.forward(p, draw(0, 3))
    assert layer.backward(p, saved, y, layer.zeros()).shape == (0, 3)
    x, dy = draw(3, 5).T, draw(4, 2*y.shape[1])[:, ::2]
    x = draw(3, 4).T
    a, s = layer.forward(p, x)
    b, t = layer.forward(p, np.ascontiguousarray(x))
    assert np.array_equal(a, b) and np.array_equal(layer.backward(p, s, dy, layer.zeros()), layer.backward(p, t, np.ascontiguousarray(dy), layer.zeros()))


def test_linear_first():
    a, b = LinearFirst(3, 4), Linear(3, 4)
    p, x, dy, ga, gb = b.init(RNG), draw(5, 3), draw(5, 4), a.zeros(), b.zeros()
    dx = a.backward(p, a.forward(p, x)[1], dy, ga)
    b.backward(p, b.forward(p, x)[1], dy, gb)
    assert (dx == 0).all() and dx.shape == x.shape and all((u == v).all() for u, v in zip(ga, gb))


def test_same_bits_for_any_number_of_threads(tmp_path):
    "One training step of a transformer's own loops, at one thread and at two."
    code = '''
import sys, numpy as np
from bendml.threads import set_threads
set_threads(int(sys.argv[1]))
from bendml.nn.layers import *
rng = np.random.default_rng(0)
for layer, n in ((LayerNorm(64), 64), (RMSNorm(64), 64), (Softmax(), 64), (GELU(), 64), (Attend(2, 8), 48)):
    p, x = layer.init(rng), rng.normal(size=(3, 33, n)).astype('f4')
    y, s = layer.forward(p, x)
    g = layer.zeros()
    dx = layer.backward(p, s, y, g)
    print(hash(y.tobytes() + dx.tobytes() + layer.dump(g).tobytes()))
'''
    outs = [subprocess.run([sys.executable, '-W', 'ignore', '-c', code, n], capture_output=True, text=True, check=True, env=os.environ | {'PYTHONHASHSEED': '0', 'OPENBLAS_NUM_THREADS': '1'}).stdout for n in '12']
    assert outs[0] == outs[1] != ''


# Optimizers

def one(rule, w=1., g=.5):
    net = Linear(1, 1, bias=False)
    p, d = (np.full((1, 1), w, f32),), (np.full((1, 1), g, f32),)
    rule.step(net, p, d, rule.start(net))
    assert d[0].item() == 0
    return p[0].item()


def test_eps_place():
    assert abs(one(AdamW(lr=.1, decay=0.), 0., 1e-6) + .0990099) < 1e-7


def test_decay():
    assert abs(one(AdamW(lr=.1, decay=.1)) - .89) < 1e-6 and abs(one(Adam(lr=.1, decay=.1)) - .9) < 1e-6


def test_biases_and_gains_do_not_decay():
    net = Seq(Linear(2, 3), LayerNorm(3), Linear(3, 2))
    p = net.make(lambda n, s: np.ones(s, f32))
    rule = AdamW(lr=.1, decay=.5)
    rule.step(net, p, net.zeros(), rule.start(net))
    assert {n: set(w.ravel().round(4)) for n, w in zip(net.names(), leaves(p))} == {n: {f32(.95)} if n.endswith('.w') else {f32(1)} for n in net.names()}


@pytest.mark.parametrize('mine, theirs', [
    (SGD(lr=.05), lambda o, p: o.SGD(p, lr=.05)), (SGD(lr=.05, momentum=.9, decay=.01), lambda o, p: o.SGD(p, lr=.05, momentum=.9, weight_decay=.01)),
    (Adam(lr=.01), lambda o, p: o.Adam(p, lr=.01)), (Adam(lr=.01, decay=.1), lambda o, p: o.Adam(p, lr=.01, weight_decay=.1)),
    (AdamW(lr=.01, decay=.1), lambda o, p: o.AdamW(p, lr=.01, weight_decay=.1)), (AdamW(lr=.01, betas=(.8, .95), eps=1e-5), lambda o, p: o.AdamW(p, lr=.01, betas=(.8, .95), eps=1e-5))])
def test_optimizer_against_pytorch(mine, theirs):
    "After 100 steps it is no further from float64 than PyTorch is, over five draws: in one of them either may be a rounding ahead."
    torch = pytest.importorskip('torch')
    net, rng, errors = Linear(20, 30, bias=False), np.random.default_rng(0), []
    for _ in range(5):
        w, *grads = rng.normal(size=(101, 30, 20)).astype(f32)
        p, state = (w.copy(),), mine.start(net)
        for d in grads: state = mine.step(net, p, (d.copy(),), state)
        def run(dtype):
            t = torch.from_numpy(w.copy()).to(dtype).requires_grad_()
            rule = theirs(torch.optim, [t])
            for d in grads:
                t.grad = torch.from_numpy(d).to(dtype)
                rule.step()
            return t.detach().numpy()
        truth, other = run(torch.float64), run(torch.float32)
        errors.append((error(p[0], truth), error(other, truth)))
        assert state.steps == 100
    own, other = np.mean(errors, axis=0)
    assert own <= max(1e-6, 1.05*other), errors


@pytest.mark.parametrize('name, more, options', [('SGD', {}, {}), ('SGD', dict(momentum=.9), dict(momentum=.9)), ('Adam', {}, {}), ('AdamW', dict(betas=(.8, .95)), dict(betas=(.8, .95)))])
def test_two_groups_against_pytorch(name, more, options):
    "The first layer with another rate and another decay than the second, a schedule of the rate, a hundred steps; and to the bit what two optimizers do."
    torch, mine = pytest.importorskip('torch'), {'SGD': SGD, 'Adam': Adam, 'AdamW': AdamW}[name]
    net, rng = Seq(Linear(20, 30), Linear(30, 10)), np.random.default_rng(5)
    rate = linear_decay(.02, 200)
    rule = mine(lr=rate, decay=.2, factors=lambda n, s: (.25, .5) if n.startswith('0.') else (1, 1), **more)
    start, grads = net.init(3), [net.make(lambda n, s: rng.standard_normal(s, f32)) for _ in range(100)]
    def run(rule, net, start, grads):
        p, state = deepcopy(start), rule.start(net)
        for g in grads: state = rule.step(net, p, deepcopy(g), state)
        return p
    p = run(rule, net, start, grads)
    for i, by in enumerate(((.25, .5), (1, 1))):
        alone = mine(lr=lambda step: rate(step)*by[0], decay=.2*by[1], factors=lambda n, s: (1, 1), **more)
        assert all(a.tobytes() == b.tobytes() for a, b in zip(p[i], run(alone, net.parts()[i], start[i], [g[i] for g in grads]), strict=True))
    def theirs(dtype):
        ts = [torch.from_numpy(w.copy()).to(dtype).requires_grad_() for w in leaves(start)]
        other = getattr(torch.optim, name)([dict(params=ts[:2], lr=.02*.25, weight_decay=.1), dict(params=ts[2:])], lr=.02, weight_decay=.2, **options)
        slower = torch.optim.lr_scheduler.LambdaLR(other, lambda step: 1 - step/200)
        for g in grads:
            for t, d in zip(ts, leaves(g)): t.grad = torch.from_numpy(d).to(dtype)
            other.step(); slower.step()
        return [t.detach().numpy() for t in ts]
    for w, truth, other in zip(leaves(p), theirs(torch.float64), theirs(torch.float32), strict=True): assert error(w, truth) <= max(1e-6, error(other, truth))


@pytest.mark.parametrize('wrong', [(1, -1), (float('nan'), 1), (1, float('inf')), (1,), .1, None])
def test_factors_that_are_none_are_refused_before_anything_moves(wrong):
    net, rule = Seq(Linear(3, 3), Linear(3, 2)), SGD(lr=.1, factors=lambda name, shape: wrong if name == '1.b' else (1, 1))
    p = net.init(0)
    before = net.dump(p)
    with pytest.raises(OptimError, match='SGD: the factors of 1.b\n- expected : two numbers'): rule.step(net, p, net.make(lambda n, s: np.ones(s, f32)), rule.start(net))
    assert np.array_equal(net.dump(p), before)


def test_a_rate_of_zero_leaves_a_layer_as_it_is():
    net = Seq(Linear(3, 3), Dropout(.1), Linear(3, 2))
    for rule in (SGD, Adam, AdamW):
        rule, p = rule(lr=.1, decay=.1, factors=lambda name, shape: (not name.startswith('0.'), 1)), net.init(0)
        before = deepcopy(p)
        rule.step(net, p, net.make(lambda n, s: np.ones(s, f32)), rule.start(net))
        assert all(np.array_equal(a, b) for a, b in zip(p[0], before[0])) and not any(np.array_equal(a, b) for a, b in zip(p[2], before[2]))


def test_bf16_moments():
    net, w, grads = Linear(20, 30, bias=False), draw(30, 20), [draw(30, 20) for _ in range(50)]
    out = []
    for rule in (AdamW(lr=.01), AdamW(lr=.01, bf16=True)):
        p, state = (w.copy(),), rule.start(net)
        for d in grads: state = rule.step(net, p, (d.copy(),), state)
        out.append(p[0])
    assert state.kept[0][0].dtype == np.uint16 and error(out[1], out[0]) < 5e-3 and (out[0] != out[1]).any()
    from bendml.optim import from_bf16, to_bf16
    torch = pytest.importorskip('torch')
    x = np.random.default_rng(0).integers(0, 2**32, 20000, np.uint32).view(f32)
    x = x[~np.isnan(x)]
    assert all(to_bf16(v) == w for v, w in zip(x, torch.from_numpy(x).bfloat16().view(torch.int16).numpy().view(np.uint16))) and from_bf16(np.uint16(0xc000)) == -2


@pytest.mark.parametrize('build', [lambda: AdamW(c=(.1, 1 - np.float32(.999))), lambda: AdamW(betas=(1., .9)), lambda: AdamW(lr=-1.), lambda: AdamW(eps=float('nan')), lambda: SGD(momentum=1.), lambda: SGD(decay=-1.),
                                   lambda: warmup_cosine(1., 10, 10), lambda: warmup_cosine(1., 1, 10, 2.), lambda: linear_decay(1., 0)])
def test_contradictions_are_refused(build):
    with pytest.raises(OptimError, match='- expected : .*\n- observed : '): build()


def test_clipping_against_pytorch():
    torch = pytest.importorskip('torch')
    g = (draw(300, 200), (draw(7), draw(70_001)))
    norm, scale = clip(g, 1.)
    ts = [torch.nn.Parameter(torch.zeros(d.shape)) for d in leaves(g)]
    for t, d in zip(ts, leaves(g)): t.grad = torch.from_numpy(d.copy())
    assert abs(float(torch.nn.utils.clip_grad_norm_(ts, 1.)) - norm) < 1e-4*norm
    assert all(np.allclose(d*f32(scale), t.grad.numpy(), rtol=1e-5) for d, t in zip(leaves(g), ts)) and clip((draw(3)*0,), 1.)[1] == 1


def test_schedules():
    rate = warmup_cosine(1., 10, 110, .1)
    assert rate(0) == .1 and rate(9) == 1 and abs(rate(60) - .55) < 1e-12 and rate(110) == rate(500) == .1
    assert linear_decay(1., 10)(5) == .5 and linear_decay(1., 10, .2)(99) == .2
    assert abs(one(SGD(lr=lambda step: .1 if step == 0 else 0.)) - .95) < 1e-7


# A small transformer, a hundred steps

def test_100_steps_of_a_transformer_against_pytorch():
    torch = pytest.importorskip('torch')
    sizes = dict(vocab=17, width=32, heads=4, depth=2, longest=16)
    net, model = ours(**sizes), torch_gpt(**sizes)
    rng = np.random.default_rng(1)
    p = net.init(rng)
    copy_into(model, p)
    rule, g = AdamW(lr=1e-3, decay=.1), net.zeros()
    state = rule.start(net)
    groups = [{'params': [w for w in model.parameters() if w.ndim > 1], 'weight_decay': .1}, {'params': [w for w in model.parameters() if w.ndim == 1], 'weight_decay': 0.}]
    torch_rule = torch.optim.AdamW(groups, lr=1e-3)
    mine, theirs = [], []
    for _ in range(100):
        ids = rng.integers(0, 17, (4, 17))
        z, saved = net.forward(p, ids[:, :-1])
        loss, dz = cross_entropy(z, ids[:, 1:])
        net.backward(p, saved, dz, g)
        state = rule.step(net, p, g, state)
        mine.append(loss)
        torch_rule.zero_grad()
        out = torch.nn.functional.cross_entropy(model(torch.from_numpy(ids[:, :-1])).flatten(0, 1), torch.from_numpy(ids[:, 1:]).flatten())
        out.backward()
        torch_rule.step()
        theirs.append(out.item())
    assert max(abs(a - b)/b for a, b in zip(mine, theirs)) < 1e-5
    assert mine[-1] < mine[0]


def test_tied_embedding():
    "One table at both ends: one parameter, whose gradient is the sum of both uses, with one state and one decay; thirty AdamW steps are PyTorch's."
    torch = pytest.importorskip('torch')
    net = Tied(Embedding(23, 12), Seq(LayerNorm(12), Linear(12, 12), Tanh()))
    p, rule = net.init(np.random.default_rng(3)), AdamW(lr=1e-2, decay=.3)
    assert net.count == 23*12 + 24 + 156 and net.names()[0] == '0.table' and len(net.names()) == 5
    w, gain, bias, a, b = t = [torch.nn.Parameter(torch.from_numpy(v.copy()).double()) for v in leaves(p)]
    theirs = torch.optim.AdamW([{'params': [v for v in t if v.ndim > 1], 'weight_decay': .3}, {'params': [v for v in t if v.ndim == 1], 'weight_decay': 0.}], lr=1e-2)
    state, g, F, rng = rule.start(net), net.zeros(), torch.nn.functional, np.random.default_rng(0)
    assert [sum(1 for _ in leaves(kept)) for kept in state.kept] == [5, 5]
    for _ in range(30):
        ids = rng.integers(0, 23, (3, 8))
        z, saved = net.forward(p, ids[:, :-1])
        loss, dz = cross_entropy(z, ids[:, 1:])
        net.backward(p, saved, dz, g)
        h = torch.tanh(F.linear(F.layer_norm(w[torch.from_numpy(ids[:, :-1])], (12,), gain, bias), a, b))
        out = F.cross_entropy((h @ w.T).flatten(0, 1), torch.from_numpy(ids[:, 1:]).flatten())
        theirs.zero_grad()
        out.backward()
        for mine, other in zip(leaves(g), t): assert error(mine, other.grad.numpy()) < 1e-4
        assert abs(loss - out.item()) < 1e-5*out.item()
        state = rule.step(net, p, g, state)
        theirs.step()
    for mine, other in zip(leaves(p), t): assert error(mine, other.detach().numpy()) < 1e-4
    with pytest.raises(LayerError, match='Mat<B, 4>\n- observed : Mat<B, 3>'): Tied(Embedding(5, 4), Linear(4, 3))


def test_one_array_in_two_places_is_refused():
    "Sharing an array behind the optimizer's back would move it twice, and decay it twice."
    net, w = Seq(Linear(3, 3, False), Linear(3, 3, False)), draw(3, 3)
    with pytest.raises(OptimError, match='each array once'): SGD().step(net, ((w,), (w,)), net.zeros(), SGD().start(net))


# The models that the laws are about, against the code that runs

def test_laws_are_confirmed():
    from bendml.laws import prove
    from bendml.nn import layer_laws as laws, rope_laws, row_laws, shard_laws, stored_laws
    for module, names in ((laws, 'forward_compose backward_compose gradient_compose slope_compose stack_adjoint saved_is_enough count_pair dump_length load_dump'),
                          (stored_laws, 'store_frame load_store join_split split_join_w split_join_m split_join_v'), (row_laws, 'adjoint softmax_adjoint causal total_first shares_first'),
                          (rope_laws, 'halves_are_equal conventions'), (shard_laws, 'two_shards shards_add_up mean_gradient mean_of_shards sum_in_parts')):
        for name in names.split():
            t = prove(getattr(module, name))
            assert t.verdict == 'confirmed', t
            assert {a.__name__ for a in t.axioms} <= {'layer_adjoint', 'exp_positive', 'gplus_assoc', 'gzero_plus', 'part_plus', 'part_zero', 'part_part', 'plus_comm', 'plus_assoc', 'plus_zero',
                                                      'times_comm', 'times_assoc', 'times_zero', 'times_one', 'distribute'}


def test_parameters_follow_their_model():
    "count, dump, load and store of layers and of the law's model, on the same nested parameters."
    from bendml.laws import to_list
    from bendml.nn import layer_laws as laws, stored_laws
    def model(p):
        if not isinstance(p, tuple): return laws.Leaf(to_list([float(v) for v in p.ravel()]))
        out = laws.Unit()
        for q in reversed(p): out = laws.Pair(model(q), out)
        return out
    net = Seq(Linear(2, 3), Tanh(), Seq(Linear(3, 2, False), Seq()), LayerNorm(2))
    p = net.make(lambda n, s: draw(*s))
    m, other = model(p), model(net.zeros())
    assert int(laws.count(m)) == stored_laws.room(m) == net.count
    assert list(laws.dump(m)) == net.dump(p).tolist()
    assert laws.load(other, laws.dump(m)) == m == model(net.load(net.dump(p)))
    from bendml.laws import Array
    a = stored_laws.store_at(m, 5, Array(0.))
    b = np.zeros(net.count + 9, f32)
    net.store(p, b, 5)
    assert [a.cells.get(i, 0.) for i in range(len(b))] == b.tolist() and stored_laws.load_at(other, 5, a) == m


def test_stacks_follow_their_model():
    "Backward of a Seq, against the law's backward_all, with real layers in the place of the toy ones."
    layers = [Linear(3, 3), Tanh(), LayerNorm(3)]
    net = Seq(*layers)
    p, x, dy = net.make(lambda n, s: draw(*s)), draw(4, 3), draw(4, 3)
    def backward_all(at, x, dy):
        if at == len(layers): return dy
        y, saved = layers[at].forward(p[at], x)
        return layers[at].backward(p[at], saved, backward_all(at + 1, y, dy), layers[at].zeros())
    assert (net.backward(p, net.forward(p, x)[1], dy, net.zeros()) == backward_all(0, x, dy)).all()


def test_rows_follow_their_model():
    from bendml.laws import to_list
    from bendml.nn import rope_laws, row_laws
    from bendml.nn.attention import causal_row
    from bendml.nat import nat
    w, v, g = draw(4, 3).astype(int), draw(3).astype(int), draw(4).astype(int)
    lists = lambda a: to_list([lists(r) for r in a]) if a.ndim > 1 else to_list(a.tolist())
    assert list(row_laws.linear(lists(w), lists(v))) == (w @ v).tolist() and list(row_laws.linear_back(lists(w), lists(g))) == (w.T @ g).tolist()
    for t in range(5):
        row = draw(5)
        read = causal_row(row.copy(), t, f32(1))
        from fractions import Fraction
        assert int(row_laws.read(nat(t + 1), to_list([Fraction(float(v)) for v in row]))) == read == t + 1
    x, (cos, sin) = draw(1, 2, 1, 6), angles(2, 6)
    c = rope_laws.Done()
    for i in reversed(range(3)): c = rope_laws.Turn(cos[1, i], sin[1, i], c)
    inter = list(rope_laws.interleaved(c, to_list(list(x[0, 1, 0]))))
    assert np.allclose(rotate(x, cos, sin, 'interleaved')[0, 1, 0], inter, atol=1e-6)


@pytest.mark.slow
def test_gradient_rules_and_their_mutants():
    "Every rule is confirmed by both solvers; every mutant, one exchanged operator in a backward code, is refuted."
    from bendml.autograd.symbols import RULES
    from bendml.nn.rules import table
    rows = list(table())
    assert [r.check.name for r in rows] == list(RULES) and len(rows) >= 17
    assert all(r.check.verdict == 'confirmed' and not r.survived for r in rows), rows
    assert sum(r.refuted for r in rows) >= 80


def test_slips_in_rules_are_refuted():
    "What exchanging one operator does not reach: the slips of linear, embedding and RoPE."
    from bendml.autograd.symbols import check
    from bendml.nn.layers import Embedding, Linear
    def no_bias(layer, p, saved, dy, g):
        g[0][:] = dy.T @ saved[1]
        return dy @ saved[0]
    def once(layer, p, ids, dy, g): g[0][ids] = dy
    assert check('linear', no_bias).verdict == check('embedding', once).verdict == 'refuted'
    assert check('RoPE, half', lambda x, cos, sin, convention, back: rotate_symbols(x, cos, sin, convention)).verdict == 'refuted'
    assert check('RoPE, half', lambda x, cos, sin, convention, back: rotate_symbols(x, cos, sin, 'interleaved', True)).verdict == 'refuted'


def rotate_symbols(*args):
    from bendml.autograd.symbols import on_symbols
    return on_symbols(rotate)(*args)


def test_facts_are_consistent():
    "The facts behind the obligations do not contradict each other: neither solver derives false from them alone."
    from bendml.autograd.symbols import RULES, formulas
    from bendml.laws import discharge
    for name in ('softmax', 'layer norm', 'attention', 'GELU, erf', 'log-softmax'):
        r = RULES[name]
        sheet, _ = formulas(*r.passes(r.forward, r.backward), r.sizes)
        assert all(a.result != 'unsat' for a in discharge(sheet.text(), wall=2.)), name
