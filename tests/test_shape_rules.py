"Every shape rule against NumPy: the symbolic shape, with numbers put in, is the real one, sizes 0 and 1 included."
import itertools, re, warnings
import numpy as np, pytest, scipy.linalg, scipy.special
from hypothesis import given, settings, strategies as st
from bendml.shape.copies import copy_of
from bendml.shape.sizes import Dim, evaluate, names_of, parse_dim
from bendml.shape.elementwise import lift
from bendml.shape.facts import Facts, bound
from bendml.shape.messages import ShapeError
from bendml.shape.paths import explore
from bendml.shape.ranges import ARITHMETIC, GIVEN, computed, from_to, range_of, ranged
from bendml.shape.symbols import METHODS, OPS, Array, Size, axis

NAMES = 'abcd'
CASES = [  # (what, the program, its arguments' shapes: names are sizes, "i:" whole numbers, "b:" truth values)
    ('add', lambda x, y: x + y, 'a b', 'b'),
    ('subtract', lambda x, y: x - y[:, None], 'a b', 'a'),
    ('multiply', lambda x, y: np.multiply(x, y), 'a b', 'a b'),
    ('divide', lambda x: 1.0/x, 'a b'),
    ('power', lambda x: x**2, 'a'),
    ('maximum', lambda x: np.maximum(x, 0), 'a b'),
    ('exp', lambda x: np.exp(x), 'a b c'),
    ('sqrt', lambda x: np.sqrt(x), ''),
    ('comparison', lambda x, y: x > y, 'a b', 'a b'),
    ('logical', lambda x: np.logical_and(x > 0, ~(x < 1)), 'a'),
    ('bitwise', lambda x, y: x & y, 'b:a', 'b:a'),
    ('modf', lambda x: np.modf(x), 'a b'),
    ('out', lambda x, y: np.add(x, y, out=x), 'a b', 'a b'),
    ('in place', lambda x, y: x.__iadd__(y), 'a b', 'b'),
    ('where', lambda x, y: np.where(x > 0, x, y), 'a b', 'b'),
    ('where of one', lambda x: np.where(x), 'b:a b'),
    ('clip', lambda x: x.clip(0, 1), 'a b'),
    ('clip max', lambda x: np.clip(x, None, 1), 'a'),
    ('round', lambda x: np.round(x, 2), 'a b'),
    ('nan_to_num', lambda x: np.nan_to_num(x), 'a b'),
    ('isnan', lambda x: np.isnan(x), 'a'),
    ('isclose', lambda x, y: np.isclose(x, y), 'a', 'a'),
    ('allclose', lambda x, y: np.allclose(x, y), 'a b', 'a b'),
    ('astype', lambda x: x.astype(np.float32), 'a b'),
    ('copy', lambda x: x.copy(), 'a b'),
    ('sum', lambda x: x.sum(), 'a b'),
    ('sum axis', lambda x: x.sum(0), 'a b'),
    ('sum axes', lambda x: x.sum((0, 2)), 'a b c'),
    ('sum keepdims', lambda x: x.sum(-1, keepdims=True), 'a b'),
    ('prod', lambda x: np.prod(x, axis=1), 'a b'),
    ('mean', lambda x: np.mean(x, axis=-1), 'a b c'),
    ('std', lambda x: x.std(axis=0), 'a b'),
    ('var', lambda x: np.var(x, axis=0, ddof=1, keepdims=True), 'a b'),
    ('any', lambda x: np.any(x > 0, axis=1), 'a b'),
    ('all', lambda x: (x > 0).all(), 'a b'),
    ('max', lambda x: x.max(1), 'a b'),
    ('min', lambda x: np.min(x, axis=0, keepdims=True), 'a b'),
    ('max initial', lambda x: np.max(x, axis=0, initial=0.0), 'a b'),
    ('nanmax', lambda x: np.nanmax(x, axis=0), 'a b'),
    ('ptp', lambda x: np.ptp(x, axis=0), 'a b'),
    ('argmax', lambda x: x.argmax(-1), 'a b'),
    ('argmin', lambda x: np.argmin(x), 'a b'),
    ('median', lambda x: np.median(x, axis=0), 'a b'),
    ('average', lambda x, w: np.average(x, axis=0, weights=w + 1), 'a b', 'a'),
    ('quantile', lambda x: np.quantile(x, [0.1, 0.5, 0.9], axis=0), 'a b'),
    ('count_nonzero', lambda x: np.count_nonzero(x, axis=0), 'a b'),
    ('cumsum', lambda x: np.cumsum(x, axis=1), 'a b'),
    ('cumprod', lambda x: x.cumprod(), 'a b'),
    ('diff', lambda x: np.diff(x, axis=0), 'a b'),
    ('sort', lambda x: np.sort(x, axis=0), 'a b'),
    ('argsort', lambda x: np.argsort(x, axis=-1), 'a b'),
    ('flip', lambda x: np.flip(x, axis=0), 'a b'),
    ('roll', lambda x: np.roll(x, 1, axis=0), 'a b'),
    ('reduce', lambda x: np.add.reduce(x, axis=1), 'a b'),
    ('accumulate', lambda x: np.add.accumulate(x, axis=0), 'a b'),
    ('ufunc outer', lambda x, y: np.subtract.outer(x, y), 'a b', 'c'),
    ('ufunc at', lambda x, y: (np.add.at(x, np.arange(len(y)), y), x)[1], 'a b', 'a b'),
    ('matmul', lambda x, y: x @ y, 'a b', 'b c'),
    ('matmul vec', lambda x, y: x @ y, 'a b', 'b'),
    ('vec matmul', lambda x, y: x @ y, 'a', 'a b'),
    ('vec vec', lambda x, y: x @ y, 'a', 'a'),
    ('matmul batched', lambda x, y: x @ y, 'a b c', 'a c d'),
    ('matmul of ranks', lambda x, y: x @ y, 'd a b', 'b c'),
    ('dot', lambda x, y: np.dot(x, y), 'a b', 'b c'),
    ('dot of ranks', lambda x, y: np.dot(x, y), 'd a b', 'c b a'),
    ('inner', lambda x, y: np.inner(x, y), 'a b', 'c b'),
    ('outer', lambda x, y: np.outer(x, y), 'a', 'b'),
    ('vdot', lambda x, y: np.vdot(x, y), 'a b', 'a b'),
    ('tensordot', lambda x, y: np.tensordot(x, y, axes=([0, 2], [1, 0])), 'a b c', 'c a d'),
    ('einsum', lambda x, y: np.einsum('ij,jk->ki', x, y), 'a b', 'b c'),
    ('einsum implicit', lambda x, y: np.einsum('bij,bjk', x, y), 'd a b', 'd b c'),
    ('einsum dots', lambda x, y: np.einsum('...ij,...kj->...ik', x, y), 'd a b', 'd c b'),
    ('einsum trace', lambda x: np.einsum('ii->i', x), 'a a'),
    ('kron', lambda x, y: np.kron(x, y), 'a b', 'c d'),
    ('cross', lambda x, y: np.cross(x, y), 'a 3', 'a 3'),
    ('trace', lambda x: np.trace(x), 'a b'),
    ('norm', lambda x: np.linalg.norm(x, axis=-1, keepdims=True), 'a b'),
    ('inv', lambda x: np.linalg.inv(x @ x.T + np.eye(len(x))), 'a b'),
    ('det', lambda x: np.linalg.det(x), 'b a a'),
    ('slogdet', lambda x: np.linalg.slogdet(x @ x.T + np.eye(len(x)))[1], 'a b'),
    ('solve', lambda x, y: np.linalg.solve(x @ x.T + np.eye(len(x)), y), 'a b', 'a c'),
    ('cholesky', lambda x: np.linalg.cholesky(x @ x.T + np.eye(len(x))), 'a b'),
    ('eigh', lambda x: np.linalg.eigh(x + x.T), 'a a'),
    ('svd', lambda x: np.linalg.svd(x, full_matrices=False), 'a b'),
    ('svd full', lambda x: np.linalg.svd(x), 'a b'),
    ('qr', lambda x: np.linalg.qr(x), 'a b'),
    ('pinv', lambda x: np.linalg.pinv(x), 'a b'),
    ('cov', lambda x: np.cov(x, rowvar=False), 'a 3'),
    ('transpose', lambda x: x.transpose(2, 0, 1), 'a b c'),
    ('T', lambda x: x.T, 'a b c'),
    ('swapaxes', lambda x: x.swapaxes(0, -1), 'a b c'),
    ('moveaxis', lambda x: np.moveaxis(x, 0, 2), 'a b c'),
    ('moveaxis two', lambda x: np.moveaxis(x, [0, 1], [-1, 0]), 'a b c'),
    ('reshape merge', lambda x: x.reshape(x.shape[0]*x.shape[1], x.shape[2]), 'a b c'),
    ('reshape split', lambda x: x.reshape(len(x), 2, -1), 'a 6'),
    ('ravel', lambda x: x.ravel(), 'a b c'),
    ('flatten', lambda x: x.flatten(), 'a b'),
    ('expand_dims', lambda x: np.expand_dims(x, (0, -1)), 'a b'),
    ('squeeze', lambda x: x.squeeze(1), 'a 1 b'),
    ('atleast_2d', lambda x: np.atleast_2d(x), 'a'),
    ('broadcast_to', lambda x, y: np.broadcast_to(x, y.shape), 'b', 'a b'),
    ('broadcast_arrays', lambda x, y: np.broadcast_arrays(x, y), 'a b', 'b'),
    ('concatenate', lambda x, y: np.concatenate([x, y]), 'a b', 'c b'),
    ('concatenate 1', lambda x, y: np.concatenate((x, y, x), axis=-1), 'a b', 'a c'),
    ('stack', lambda x, y: np.stack([x, y], axis=1), 'a b', 'a b'),
    ('vstack', lambda x, y: np.vstack([x, y]), 'a b', 'b'),
    ('hstack', lambda x, y: np.hstack([x, y]), 'a b', 'a c'),
    ('column_stack', lambda x, y: np.column_stack([x, y]), 'a', 'a b'),
    ('append', lambda x, y: np.append(x, y, axis=0), 'a b', 'c b'),
    ('array', lambda x, y: np.array([x, y]), 'a', 'a'),
    ('asarray', lambda x: np.asarray(x, dtype=np.float32), 'a b'),
    ('split', lambda x: np.split(x, 3, axis=1), 'a 6'),
    ('split at', lambda x: np.split(x, [2, 4], axis=1), 'a 6'),
    ('array_split', lambda x: np.array_split(x, 3), 'a b'),
    ('repeat', lambda x: np.repeat(x, 3, axis=1), 'a b'),
    ('repeat flat', lambda x: np.repeat(x, 2), 'a b'),
    ('tile', lambda x: np.tile(x, (2, 3)), 'a b'),
    ('tile more', lambda x: np.tile(x, (2, 1, 1)), 'a b'),
    ('pad', lambda x: np.pad(x, ((0, 1), (2, 0))), 'a b'),
    ('pad one', lambda x: np.pad(x, 1), 'a b'),
    ('zeros', lambda x: np.zeros((len(x), x.shape[1] + 1)), 'a b'),
    ('ones', lambda x: np.ones(x.shape), 'a b'),
    ('full', lambda x: np.full(len(x), 2.0), 'a b'),
    ('zeros_like', lambda x: np.zeros_like(x), 'a b'),
    ('eye', lambda x: np.eye(len(x)), 'a b'),
    ('tri', lambda x: np.tri(len(x)), 'a b'),
    ('tril', lambda x: np.tril(x), 'a b'),
    ('arange', lambda x: np.arange(len(x)), 'a'),
    ('arange step', lambda x: np.arange(1, len(x), 2), 'a'),
    ('arange down', lambda x: np.arange(len(x), 0, -2), 'a'),
    ('linspace', lambda x: np.linspace(0, 1, len(x)), 'a'),
    ('meshgrid', lambda x, y: np.meshgrid(x, y), 'a', 'b'),
    ('meshgrid ij', lambda x, y: np.meshgrid(x, y, indexing='ij'), 'a', 'b'),
    ('diag', lambda x: np.diag(x), 'a'),
    ('diag of matrix', lambda x: np.diag(x), 'a b'),
    ('diagonal', lambda x: x.diagonal(1), 'a b'),
    ('indices', lambda x: np.indices(x.shape), 'a b'),
    ('index', lambda x: x[:, 0], 'a 3'),
    ('index last', lambda x: x[-1], 'a b'),
    ('slice', lambda x: x[1:], 'a b'),
    ('slice end', lambda x: x[:-1, ::2], 'a b'),
    ('slice step', lambda x: x[1:4:2], 'a b'),
    ('slice down', lambda x: x[::-2], 'a b'),
    ('slice from the back', lambda x: x[-2:], 'a b'),
    ('slice by a size', lambda x, y: x[:len(y)], 'a b', 'c'),
    ('slice between', lambda x, y: x[len(y):2*len(y)], 'a b', 'c'),
    ('newaxis', lambda x: x[None, ..., None], 'a b'),
    ('index array', lambda x, i: x[i], 'a b', 'i:c d'),
    ('index arrays', lambda x, i, j: x[i, :, j], 'a b c', 'i:d', 'i:d'),
    ('index adjacent', lambda x, i: x[:, i, i], 'a b b', 'i:d'),
    ('index and number', lambda x, i: x[0, :, i], '3 b c', 'i:d'),
    ('index by arange', lambda x: x[np.arange(len(x))], 'a b'),
    ('mask', lambda x, m: x[m], 'a b', 'b:a'),
    ('mask whole', lambda x: x[x > 0], 'a b'),
    ('mask column', lambda x, m: x[:, m], 'a b', 'b:b'),
    ('same mask', lambda x, y, m: x[m] + y[m], 'a b', 'a b', 'b:a'),
    ('take', lambda x, i: np.take(x, i, axis=1), 'a b', 'i:c d'),
    ('take_along_axis', lambda x, i: np.take_along_axis(x, i, axis=1), 'a b', 'i:a c'),
    ('nonzero', lambda x: np.nonzero(x), 'b:a b'),
    ('flatnonzero', lambda x: np.flatnonzero(x), 'b:a'),
    ('argwhere', lambda x: np.argwhere(x), 'b:a b'),
    ('unique', lambda x: np.unique(x, return_inverse=True), 'a'),
    ('isin', lambda x, y: np.isin(x, y), 'a b', 'c'),
    ('searchsorted', lambda x, y: np.searchsorted(x, y), 'a', 'b c'),
    ('bincount', lambda x: np.bincount(x, minlength=4), 'i:a'),
    ('histogram', lambda x: np.histogram(x, bins=5), 'a'),
    ('delete', lambda x: np.delete(x, 0, axis=1), 'a 3'),
    ('delete another', lambda x: np.delete(x, 2, axis=1), 'a 3'),
    ('compress', lambda x, c: np.compress(c, x, axis=0), 'a b', 'b:a'),
    ('repeat counts', lambda x, k: np.repeat(x, k, axis=0), 'a b', 'i:a'),
    ('bincount weights', lambda x, w: np.bincount(x, w)*1.0, 'i:a', 'a'),
    ('copyto', lambda x, y: (np.copyto(x, y), x)[1], 'a b', 'b'),
    ('inv alone', lambda x: np.linalg.inv(x + 3*np.eye(len(x))), 'a a'),
    ('ix_', lambda x, i, j: x[np.ix_(i, j)], 'a b', 'i:c', 'i:d'),
    ('interp', lambda x, y, z: np.interp(x, y, z), 'a', 'b', 'b'),
    ('convolve', lambda x, y: np.convolve(x, y), 'a', 'b'),
    ('convolve valid', lambda x, y: np.convolve(x, y, 'valid'), 'a', 'b'),
    ('windows', lambda x: np.lib.stride_tricks.sliding_window_view(x, (2, 2), axis=(0, 1)), '5 6'),
    ('vander', lambda x: np.vander(x, 3), 'a'),
    ('gradient', lambda x: np.gradient(x, axis=0), '4 b'),
    ('trapezoid', lambda x: np.trapezoid(x, axis=0), 'a b'),
    ('write', lambda x, y: (x.__setitem__((slice(None), 0), y), x)[1], 'a 3', 'a'),
    ('write mask', lambda x: (x.__setitem__(x < 0, 0), x)[1], 'a b'),
    ('len', lambda x: np.zeros(len(x)*2), 'a b'),
    ('size', lambda x: np.zeros(x.size), 'a b'),
    ('rows', lambda x: np.stack([row.sum() for row in x]), 'a b'),
    ('softmax', lambda x: np.exp(x - x.max(-1, keepdims=True))/np.exp(x).sum(-1, keepdims=True), 'a b c'),
    ('random', lambda x: np.random.default_rng(0).normal(size=x.shape), 'a b'),
    ('fill', lambda x: (x.fill(2), x)[1], 'a b'),
    ('sort in place', lambda x: (x.sort(axis=0), x)[1], 'a b'),
    ('partition', lambda x: np.partition(x, 2, axis=0), '3 b'),
    ('argpartition', lambda x: np.argpartition(x, 2), 'a 3'),
    ('lexsort', lambda x, y: np.lexsort((x, y)), 'a', 'a'),
    ('correlate', lambda x, y: np.correlate(x, y, 'same'), 'a', 'b'),
    ('corrcoef', lambda x: np.corrcoef(x), '3 a'),
    ('diag_indices', lambda x: np.diag_indices(len(x)), 'a'),
    ('diagflat', lambda x: np.diagflat(x, 1), 'a b'),
    ('digitize', lambda x, y: np.digitize(x, np.sort(y)), 'a b', 'c'),
    ('eigvalsh', lambda x: np.linalg.eigvalsh(x + x.T), 'a a'),
    ('full_like', lambda x: np.full_like(x, 2), 'a b'),
    ('logspace', lambda x: np.logspace(0, 1, len(x)), 'a'),
    ('hanning', lambda x: np.hanning(len(x)), 'a'),
    ('hsplit', lambda x: np.hsplit(x, 2), 'a 4'),
    ('vsplit', lambda x: np.vsplit(x, 2), '4 b'),
    ('intersect1d', lambda x, y: np.intersect1d(x, y), 'a', 'b'),
    ('setdiff1d', lambda x, y: np.setdiff1d(x, y), 'a', 'b'),
    ('union1d', lambda x, y: np.union1d(x, y), 'a', 'b'),
    ('extract', lambda x: np.extract(x > 0, x), 'a b'),
    ('fill_diagonal', lambda x: (np.fill_diagonal(x, 1), x)[1], 'a b'),
    ('lstsq', lambda x, y: np.linalg.lstsq(x, y)[0], 'a b', 'a c'),
    ('lstsq singular values', lambda x, y: np.linalg.lstsq(x, y)[3], 'a b', 'a'),
    ('matrix_power', lambda x: np.linalg.matrix_power(x, 2), 'a a'),
    ('matrix_rank', lambda x: np.linalg.matrix_rank(x), 'a b'),
    ('matrix_rank of many', lambda x: np.linalg.matrix_rank(x), 'c a b'),
    ('matrix_transpose', lambda x: np.matrix_transpose(x), 'a b c'),
    ('multi_dot', lambda x, y, z: np.linalg.multi_dot([x, y, z]), 'a b', 'b c', 'c d'),
    ('multi_dot vec', lambda x, y, z: np.linalg.multi_dot([x, y, z]), 'a', 'a b', 'b'),
    ('nanmean', lambda x: np.nanmean(x, axis=0), 'a b'),
    ('nanargmax', lambda x: np.nanargmax(x, axis=0), 'a b'),
    ('nancumsum', lambda x: np.nancumsum(x, axis=0), 'a b'),
    ('percentile', lambda x: np.percentile(x, 50), 'a b'),
    ('polyval', lambda x, y: np.polyval(x, y), 'a', 'b c'),
    ('put', lambda x, y: (np.put(x, np.arange(len(x)), y), x)[1], 'a b', 'c'),
    ('put_along_axis', lambda x, i: (np.put_along_axis(x, i, 0.0, 1), x)[1], 'a b', 'i:a c'),
    ('select', lambda x, y: np.select([x > 0, x < -1], [x, y], 0.0), 'a b', 'b'),
    ('shape and size', lambda x: np.zeros(np.shape(x) + (np.size(x), np.ndim(x), np.size(x, 0))), 'a b'),
    ('svdvals', lambda x: np.linalg.svdvals(x), 'a b'),
    ('triu', lambda x: np.triu(x, 1), 'a b'),
    ('triu_indices', lambda x: np.triu_indices(len(x), 1), 'a'),
    ('tril_indices', lambda x: np.tril_indices(len(x), m=x.shape[1]), 'a b'),
    ('unravel_index', lambda x: np.unravel_index(np.argmax(x), x.shape), 'a b'),
    ('angle', lambda x: np.angle(x), 'a b'),
    ('sinc', lambda x: np.sinc(x), 'a b'),
    ('real', lambda x: (np.real(x), x.imag), 'a b'),
    ('isreal', lambda x: (np.isreal(x), np.isneginf(x)), 'a b'),
    ('permutation', lambda x: np.random.default_rng(0).permutation(x), 'a b'),
    ('array_equal', lambda x, y: np.array_equal(x, y), 'a', 'b'),
    ('r_', lambda x, y: np.r_[x, 0, y], 'a', 'b'),
    ('c_', lambda x, y: np.c_[x, y], 'a', 'a b'),
    ('indices sparse', lambda x: np.indices(x.shape, sparse=True), 'a b'),
    ('scipy inv', lambda x: scipy.linalg.inv(x + 3*np.eye(len(x))), 'a a'),
    ('scipy expm', lambda x: scipy.linalg.expm(x), 'a a'),
    ('scipy solve', lambda x, y: scipy.linalg.solve(x + 9*np.eye(len(x)), y), 'a a', 'a b'),
    ('scipy solve_triangular', lambda x, y: scipy.linalg.solve_triangular(x + 9*np.eye(len(x)), y, lower=True), 'a a', 'a'),
    ('scipy eigh', lambda x: scipy.linalg.eigh(x + x.T), 'a a'),
    ('softmax of scipy', lambda x: scipy.special.softmax(x, axis=-1), 'a b'),
    ('logsumexp of scipy', lambda x: scipy.special.logsumexp(x, axis=0, keepdims=True), 'a b'),
    ('random integers', lambda x: np.random.default_rng(0).integers(0, 5, x.shape), 'a b'),
    ('random choice', lambda x: np.random.default_rng(0).choice(x, 3), 'a'),
    ('array of ndmin', lambda x: np.array(x, ndmin=3), 'a'),
    ('pad wrap', lambda x: np.pad(x, 1, mode='wrap'), 'a b'),
    ('reversed', lambda x: np.stack([r for r in reversed(x)]), 'a b'),
    ('diff twice', lambda x: np.diff(x, n=2), 'a b'),
    ('concatenate flat', lambda x, y: np.concatenate([x, y], axis=None), 'a b', 'c'),
    ('take flat', lambda x, i: np.take(x, i), 'a b', 'i:c'),
    ('unique counts', lambda x: np.unique(x, return_counts=True), 'a b'),
    ('unique rows', lambda x: np.unique(x, axis=0), 'a b'),
    ('repeat rows by list', lambda x: np.repeat(x, [1, 2, 3], axis=0), '3 b'),
    ('gradient of both', lambda x: np.gradient(x), '3 4'),
    ('trapezoid of x', lambda x, y: np.trapezoid(x, y, axis=-1), 'a b', 'b'),
    ('histogram edges', lambda x, y: np.histogram(x, bins=np.sort(np.append(y, 9.0))), 'a', 'c'),
    ('windows of one', lambda x: np.lib.stride_tricks.sliding_window_view(x, 3, axis=0), '5 b'),
    ('where of numbers', lambda x: np.where(x > 0, 1, 0), 'a b'),
    ('minimum.reduce', lambda x: np.minimum.reduce(x, axis=1), 'a b'),
    ('cross of ranks', lambda x, y: np.cross(x, y), 'a 3', '3'),
    ('norm whole', lambda x: np.linalg.norm(x), 'a b'),
    ('argsort flat', lambda x: np.argsort(x, axis=None), 'a b'),
    ('roll flat', lambda x: np.roll(x, 2), 'a b'),
]


def _spec(text: str):
    kind, _, sizes = text.rpartition(':')
    return {'i': np.int64, 'b': np.bool_, '': np.float64}[kind], [parse_dim(s) for s in sizes.split()]


def _symbolic(program, texts, least):
    "Every path of a program: (claims, result)."
    copy, found = copy_of(program), []
    def run(trace):
        args = [ranged(Array([axis(s, one='declared' if s == 1 else '') for s in sizes], kind), GIVEN) for kind, sizes in map(_spec, texts)]
        found.append((trace, copy(*args)))
    facts = Facts()
    for n in NAMES: facts = bound(facts, n, least)
    explore(run, facts)
    return found


def _real(program, texts, sizes):
    "The program on real arrays."
    rng, args = np.random.default_rng(0), []
    for kind, dims in map(_spec, texts):
        shape = tuple(evaluate(d, sizes) for d in dims)
        args.append(rng.integers(0, 1, shape) if kind is np.int64 else rng.random(shape) > 0.5 if kind is np.bool_ else rng.normal(size=shape))
    with warnings.catch_warnings(), np.errstate(all='ignore'):
        warnings.simplefilter('ignore')
        return program(*args)


def _flat(value):
    if isinstance(value, tuple | list) and not hasattr(value, 'counted'): return [f for v in value for f in _flat(v)]
    return [value]


def _agrees(symbolic, real, sizes) -> bool:
    "The symbolic result, with numbers put in, has the real shapes; a fresh size stands for one number throughout."
    fresh = {}
    symbolic, real = _flat(symbolic), _flat(real)
    if len(symbolic) != len(real): return False
    for s, r in zip(symbolic, real):
        if isinstance(r, bool | np.bool_) and not np.shape(r): continue
        x = lift(s)
        if not _in_range(range_of(s), np.asarray(r), sizes): return False
        if x.ndim != np.ndim(r) or x.dtype.kind != np.asarray(r).dtype.kind: return False
        for a, n in zip(x.sizes, np.shape(r)):
            unknown = names_of(a) - sizes.keys()
            if unknown:
                if fresh.setdefault(a, n) != n: return False
            elif evaluate(a, sizes) != n: return False
    return True


def _in_range(known, real, sizes) -> bool:
    "Are the real numbers between the bounds that are known of them?"
    if known.given or real.dtype.kind not in 'iu' or not real.size: return True
    value = lambda end: end is not None and names_of(end) <= sizes.keys() and evaluate(end, sizes)
    low, high = value(known.low), value(known.high)
    return (low is False or real.min() >= low) and (high is False or real.max() <= high)


def _on_path(trace, sizes) -> bool:
    from bendml.shape.facts import _holds
    return all(_holds(c, sizes) for c in trace.facts.claims if names_of(c.dim) <= sizes.keys())


def _matches(program, texts, paths, sizes) -> None:
    real = _real(program, texts, sizes)
    from bendml.shape.trace import tracing
    agree = []
    for trace, result in paths:
        if not _on_path(trace, sizes): continue
        with tracing(trace): agree.append(_agrees(result, real, sizes))
    assert agree, f'no path for {sizes}'
    assert any(agree), f'{sizes}: NumPy {[np.shape(r) for r in _flat(real)]}, ours {[str(r) for _, r in paths]}'


# What is accepted though NumPy fails, or gives another shape or dtype. A mend takes its line away.
WRONG_AT_0 = {'softmax of scipy': 'no largest of nothing', 'random choice': 'nothing to choose from', 'pad wrap': 'nothing to repeat'}
WRONG = {
    'allclose': 'compares nothing', 'clip max': 'np.clip(x, None, 1) is taken for np.maximum(x, 1)', 'einsum trace': "'ii' accepts (n, 1)", 'vander': 'accepts two axes, and bool',
    'compress': 'accepts a condition of two axes', 'repeat counts': 'accepts floats', 'bincount weights': 'accepts weights of two axes', 'round': 'accepts bool', 'quantile': 'accepts bool',
    'percentile': 'accepts bool', 'gradient': 'accepts bool', 'gradient of both': 'accepts bool', 'softmax of scipy': 'accepts bool', 'trace': 'of bool is an int', 'reduce': 'of bool is an int',
    'accumulate': 'of bool is an int', 'matrix_power': 'of int is an int', 'intersect1d': 'of int and float is a float', 'vsplit': 'accepts one axis', 'fill_diagonal': 'accepts one axis, and three that differ',
    'lstsq': 'accepts three axes', 'lstsq singular values': 'accepts three axes', 'multi_dot': 'accepts three axes', 'multi_dot vec': 'accepts three axes', 'polyval': 'accepts any coefficients',
    'scipy solve': 'accepts a right side of more axes', 'random choice': 'of rows gives numbers', 'trapezoid of x': 'stretches x'}

def _case(c, wrong, name='', texts=None): return pytest.param(c[0], c[1], texts or c[2:], id=name or c[0], marks=pytest.mark.xfail(reason=wrong[c[0]]) if c[0] in wrong else ())


@pytest.mark.parametrize('what, program, texts', [_case(c, WRONG_AT_0) for c in CASES])
def test_rule(what, program, texts):
    "The symbolic shape is the real one; a refusal of size 0 is one that NumPy shares."
    names = sorted({n for t in texts for d in _spec(t)[1] for n in names_of(d)})
    try: paths, least = _symbolic(program, texts, 0), 0
    except ShapeError:
        paths, least = _symbolic(program, texts, 1), 1
        fails = 0
        for values in itertools.product(range(3), repeat=len(names)):
            try: _real(program, texts, dict(zip(names, values)))
            except (ValueError, IndexError, TypeError, ZeroDivisionError, np.linalg.LinAlgError): fails += 1
        assert fails, f'{what} is refused for size 0, and NumPy accepts it'

    @settings(max_examples=25, deadline=None, derandomize=True)
    @given(st.fixed_dictionaries({n: st.integers(least, 5) for n in names}))
    def compare(sizes): _matches(program, texts, paths, sizes)
    compare()


def _other_sizes(texts):
    "The arguments' shapes with one size changed: a name that occurs twice into another name, a number into a name, 1, or one less."
    for i, text in enumerate(texts):
        for size in re.finditer(r'\b[a-d]\b(?!:)|\d', text):
            if size[0].isdigit(): others = {'z', '1', str(int(size[0]) - 1)} - {size[0]}
            else: others = {'z'} if sum(len(re.findall(rf'\b{size[0]}\b(?!:)', t)) for t in texts) > 1 else set()
            for other in sorted(others): yield (*texts[:i], text[:size.start()] + other + text[size.end():], *texts[i + 1:])


STRICT = {'cross', 'cross of ranks', 'cov', 'corrcoef', 'split at'}  # refused at sizes where NumPy runs: vectors of 2, a number instead of a matrix, empty pieces
CHANGED = [_case(c, {'allclose': WRONG['allclose']}, f'{c[0]}: {", ".join(texts)}', texts) for c in CASES for texts in _other_sizes(c[2:])]

@pytest.mark.parametrize('what, program, texts', CHANGED)
def test_rule_of_another_size(what, program, texts):
    "With one size changed, a rule still says what NumPy does, or refuses what fails in NumPy at some size."
    names = sorted({n for t in texts for d in _spec(t)[1] for n in names_of(d)})
    every = [dict(zip(names, values)) for values in itertools.product(range(1, 4), repeat=len(names))]
    try: paths = _symbolic(program, texts, 1)
    except ShapeError:
        def fails(sizes):
            try: _real(program, texts, sizes)
            except (ValueError, IndexError, TypeError): return True  # LinAlgError is a ValueError
        assert what in STRICT or any(map(fails, every))
    else:
        for sizes in every: _matches(program, texts, paths, sizes)


def _other_arguments(texts):
    "The arguments with one changed: an axis more, one less, one of size 1, two exchanged, or numbers of another kind."
    for i, text in enumerate(texts):
        kind, colon, sizes = text.rpartition(':')
        s = sizes.split()
        shapes = [[*s[:k], 'z', *s[k:]] for k in range(len(s) + 1)]
        shapes += [[*s[:k], *new, *s[k + 1:]] for k in range(len(s)) for new in ([], ['1'])] + [[*s[:k], s[k + 1], s[k], *s[k + 2:]] for k in range(len(s) - 1)]
        others = {kind + colon + ' '.join(t) for t in shapes} | {k + sizes for k in ('i:', 'b:', '')}
        for other in sorted(others - {text}): yield (*texts[:i], other, *texts[i + 1:])


@pytest.mark.parametrize('what, program, texts', [_case(c, WRONG) for c in CASES])
def test_rule_of_other_arguments(what, program, texts):
    "What a rule accepts of other axes and other kinds of numbers is what NumPy does."
    for new in _other_arguments(texts):
        names = sorted({n for t in new for d in _spec(t)[1] for n in names_of(d)})
        try: paths = _symbolic(program, new, 1)
        except ShapeError: continue
        for values in itertools.product(range(1, 4 if len(names) < 4 else 3), repeat=len(names)):
            try: _matches(program, new, paths, dict(zip(names, values)))
            except np.linalg.LinAlgError as e: assert 'ingular' in str(e) or 'positive definite' in str(e), (new, values, e)  # a matter of numbers
            except (ValueError, IndexError, TypeError) as e: raise AssertionError(f'{new} is accepted, and at {names} = {values} NumPy says: {e}') from None


def test_there_are_enough_rules():
    assert len(CHANGED) >= 250
    functions = {op.name for f, op in OPS.items() if not isinstance(f, str)}
    assert len(functions) >= 150 and len(METHODS) >= 30 and len(CASES) >= 250


# Random programs: shapes and arguments are drawn, NumPy is the oracle.

SIZES = st.sampled_from([1, 2, 3, 4])
quick = settings(max_examples=150, deadline=None, derandomize=True)


def _outcome(program, *shapes):
    "(the symbolic result's shape or None, the real result's shape or None) for concrete shapes."
    try: real = [np.shape(r) for r in _flat(program(*map(np.ones, shapes)))]
    except (ValueError, IndexError, TypeError): real = None
    ours = []
    def run(trace): ours.append([tuple(s.const for s in lift(r).sizes) for r in _flat(copy_of(program)(*(Array(map(axis, map(Dim, s))) for s in shapes)))])
    try: explore(run, Facts())
    except ShapeError: return None, real
    return ours[0], real


@quick
@given(st.lists(SIZES, min_size=1, max_size=4), st.data())
def test_reshape(shape, data):
    target = data.draw(st.lists(st.sampled_from([-1, 1, 2, 3, 4, 6, 12]), min_size=1, max_size=4))
    program = lambda x: x.reshape(target)
    ours, real = _outcome(program, shape)
    assert ours == real


@quick
@given(st.lists(SIZES, min_size=1, max_size=3), st.data())
def test_slices(shape, data):
    ends = st.none() | st.integers(-6, 6)
    index = tuple(data.draw(st.lists(st.builds(slice, ends, ends, st.sampled_from([None, 1, 2, -1, -2])) | st.integers(-5, 5) | st.none() | st.just(Ellipsis), min_size=1, max_size=4)))
    program = lambda x: x[index]
    ours, real = _outcome(program, shape)
    assert ours == real


@quick
@given(st.lists(SIZES, min_size=0, max_size=3), st.lists(SIZES, min_size=0, max_size=3))
def test_broadcasting_accepts_only_what_numpy_does(a, b):
    program = lambda x, y: x*y
    ours, real = _outcome(program, a, b)
    assert ours is None or ours == real
    if len(a) == len(b): assert ours == real  # no declared 1s here: the same number of axes is never an accident


@quick
@given(st.lists(SIZES, min_size=1, max_size=4), st.lists(SIZES, min_size=1, max_size=4))
def test_matmul(a, b):
    program = lambda x, y: x @ y
    ours, real = _outcome(program, a, b)
    assert ours is None or ours == real
    if len(a) <= 2 or len(b) <= 2: assert ours == real


@quick
@given(st.lists(SIZES, min_size=2, max_size=4), st.data())
def test_transpose_and_moveaxis(shape, data):
    n = len(shape)
    order = data.draw(st.permutations(range(n)))
    i, j = data.draw(st.integers(-n, n - 1)), data.draw(st.integers(-n, n - 1))
    program = lambda x: (x.transpose(order), np.moveaxis(x, i, j), x.swapaxes(i, j))
    ours, real = _outcome(program, shape)
    assert ours == real


@quick
@given(st.lists(SIZES, min_size=3, max_size=3), st.lists(st.sampled_from('ijk'), min_size=1, max_size=3), st.lists(st.sampled_from('ijk'), min_size=1, max_size=3), st.data())
def test_einsum(sizes, left, right, data):
    put = dict(zip('ijk', sizes))
    out = data.draw(st.lists(st.sampled_from(sorted({*left, *right})), unique=True))
    text = f'{"".join(left)},{"".join(right)}->{"".join(out)}'
    program = lambda x, y: np.einsum(text, x, y)
    ours, real = _outcome(program, [put[c] for c in left], [put[c] for c in right])
    assert ours == real


# What is known of whole numbers.

interval = st.tuples(st.integers(-6, 6), st.integers(0, 5)).map(lambda t: (t[0], t[0] + t[1]))

@settings(max_examples=400, deadline=None, derandomize=True)
@given(st.sampled_from(sorted(ARITHMETIC, key=str)), st.lists(interval, min_size=3, max_size=3))
def test_arithmetic_on_ranges(f, ends):
    "Whatever numbers two ranges hold, what a function makes of them lies in the range that is computed."
    from bendml.shape.trace import Trace, tracing
    count = 3 if f is np.clip else f.nin
    arrays = np.meshgrid(*(np.arange(low, high + 1) for low, high in ends[:count]), indexing='ij')
    with tracing(Trace()): known = computed(f, [ranged(Array([axis(1)], int), from_to(*e)) for e in ends[:count]])
    with np.errstate(all='ignore'): real = f(*arrays)
    if f in (np.floor_divide, np.remainder) and 0 in arrays[1]: return
    assert known.low is None or evaluate(known.low, {}) <= real.min(), (f, ends, known)
    assert known.high is None or real.max() <= evaluate(known.high, {}), (f, ends, known)
