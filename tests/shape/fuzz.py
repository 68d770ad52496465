"""Random programs: what the check accepts must run, at every size, and give the shape that it said.

    python -m tests.shape.fuzz [SEED] [PROGRAMS]

A program grows line by line; a line that the check refuses is thrown away again. So nearly all that remains is accepted, and
anything that then fails in NumPy is a mistake of the check.
"""
import collections, itertools, linecache, random, sys, warnings
import numpy as np
from bendml.shape import Arr, Dim, Int, Mat, ShapeError, Vec, dims, typed
from bendml.shape.annotations import read_signature
from bendml.shape.copies import copy_of
from bendml.shape.paths import arguments, explore, start_facts
from bendml.shape.trace import tracing
from tests.shape.text import run_text
from tests.test_shape_rules import _agrees, _on_path

n, m, d = dims('n m d')
HEAD = 'def f(x: Mat[n, d], y: Vec[n], w: Mat[d, m], t: Arr[n, m, d], k: int):\n    x, y, w, t\n'
EXPRESSIONS = '''
{a} + {b} | {a} - {b} | {a}*{b} | {a}/({b}*{b} + 1) | {a} @ {b} | {a}.T | {a} @ {b}.T | {a}.T @ {b} | np.exp({a}) | -{a} | {a} > {b} | np.maximum({a}, {b}) | {a} if len({a}) > {i} else {b}
{a}.sum() | {a}.sum(axis={i}) | {a}.sum(axis={j}, keepdims=True) | {a}.mean({i}) | {a}.max(axis={i}) | {a}.argmax(axis={i}) | np.sort({a}, axis={i}) | {a}.cumsum({i}) | np.diff({a}, axis={i}) | {a}.std(axis={i}, keepdims=True)
{a}[{i}] | {a}[{i}:] | {a}[:{j}] | {a}[{i}:{j}] | {a}[::{p}] | {a}[::-{p}] | {a}[:, {i}] | {a}[None] | {a}[..., None] | {a}[:, None] | {a}[-{p}:] | {a}[:k] | {a}[k:] | {a}[:len({b})] | {a}[len({b}):] | {a}[:, :k] | {a}[{i}, ...] | {a}[..., {i}:]
{a}[{a} > 0] | {a}[{b} > 0] | {a}[np.arange(len({b}))] | {a}[np.argsort({b})] | {a}[[0, {i}]] | {a}[np.arange(len({b})) + {p}] | {a}[np.arange(1, len({b}))] | {a}[np.arange(k) % len({a})] | {a}[2*np.arange(len({a})//2)] | {a}[np.nonzero({a})] | np.take({a}, np.arange(len({b})), axis={i}) | {a}[{b}.argsort()[:k]] | {a}[np.arange(len({a}))[::-1]] | np.where({a} > 0, {a}, {b}) | np.nonzero({a})[0] | {a}[np.nonzero({b})[0]] | np.unique({a}) | {a}[{b}.argmax(0)]
{a}[np.clip({b}.ravel().astype(int), 0, len({a}) - 1)] | {a}[{b}.ravel().astype(int) % len({a})] | {a}[np.cumsum({b}.ravel() > 0) - 1] | np.zeros(({a} > 0).sum()) | {a}[np.searchsorted(np.sort({b}.ravel()), 0.0) - 1] | {a}[({b} > 0).astype(int)] | {a}[np.unique({b}, return_inverse=True)[1]] | {a}[np.cumsum(np.unique({b}, return_counts=True)[1]) - 1] | {a}[-np.arange(len({b})) - 1] | {a}[np.minimum(np.arange(len({b})), {p})] | {a}[np.where({b} > 0, 0, {i})] | np.bincount(np.arange(k) % {p}, minlength={p}) | {a}[int({b}.argmax())] | {a}[:({b} > 0).sum()] | np.diff({a}, prepend={a}, axis={i}) | np.meshgrid({a}, {b}, sparse=True)[{i}] | np.c_[{a}, {b}] | np.r_[{a}, {b}] | {a}[np.diff(np.arange(len({b})))] | {a}[np.abs(np.arange(len({b})) - {p})] | {a}[np.arange(len({b}), 0, -1) - {p}]
{a}.reshape(-1) | {a}.reshape(len({a}), -1) | {a}.reshape(-1, {p}) | {a}.reshape({b}.shape) | {a}.ravel() | {a}.reshape({a}.shape[::-1]) | {a}.reshape(-1, len({b})) | {a}.transpose() | np.swapaxes({a}, {i}, {j}) | np.moveaxis({a}, {i}, {j}) | np.expand_dims({a}, {i}) | {a}.squeeze() | np.squeeze({a}, axis={i})
np.concatenate([{a}, {b}]) | np.concatenate([{a}, {b}], axis={i}) | np.stack([{a}, {b}]) | np.stack([{a}, {b}], axis={i}) | np.vstack([{a}, {b}]) | np.hstack([{a}, {b}]) | np.split({a}, {p})[0] | np.split({a}, {p}, axis=-1)[-1] | np.array_split({a}, {p})[-1] | np.tile({a}, {p}) | np.repeat({a}, {p}, axis={i}) | np.pad({a}, {p})
np.zeros(len({a})) | np.zeros({a}.shape) | np.ones(({a}.shape[0], {b}.shape[-1])) | np.arange(len({a})) | np.eye(len({a})) | np.zeros(len({a}) - {i}) | np.zeros(max(len({a}), len({b}))) | np.zeros(min(len({a}), {p})) | np.zeros(k) | np.zeros(len({a})//{p}) | np.zeros(abs(len({a}) - len({b}))) | np.full({b}.shape, 2.0) | np.linspace(0, 1, len({a}))
np.outer({a}, {b}) | np.dot({a}, {b}) | np.einsum('ij,jk->ik', {a}, {b}) | np.einsum('ij,ij->i', {a}, {b}) | np.tensordot({a}, {b}, 1) | np.diag({a}) | np.trace({a}) | np.linalg.norm({a}, axis={i}) | np.broadcast_to({a}, {b}.shape) | np.take({a}, [0], axis={i}) | np.roll({a}, {i}, axis={i}) | np.tri(len({a})) | np.meshgrid({a}, {b})[0] | np.linalg.svd({a}, full_matrices=False)[0] | np.linalg.qr({a})[1] | np.average({a}, axis={i}, weights={b}) | np.histogram({a})[0] | np.searchsorted(np.sort({a}), {b}) | np.bincount({a}.astype(int)*0, minlength=len({b})) | np.convolve({a}, {b}, 'valid') | np.median({a}, axis={i}) | np.cov({a}) | np.interp({a}, {b}, {b}) | np.gradient({a}) | np.ptp({a}, axis={i}) | np.delete({a}, {i}) | np.delete({a}, {i}, axis={j}) | np.append({a}, {b})
np.array([r*2 for r in {a}]) | np.stack([r for r in {a}]) | np.array([len(r) for r in {a}]) | np.array([r.sum() for r, s in zip({a}, {b})]) | np.zeros(int({a}.sum()*0) + {p}) | np.array([{a}[i] for i in range(len({b}))]) | np.array([i for i in range(len({a}))]) | sum({a}) | np.array([[q + 1 for q in r] for r in {a}]) | max({a}) | np.array([{a}[i] for i in range({p})])
np.zeros(sum(1 for r in {a})) | {b}[np.clip(np.argsort({a}, axis=0), None, {p}) - {p}] | np.delete({a}, [{i}, {j}]) | np.diff({a}, prepend={b}, axis={i}) | np.linalg.norm({a}, {p}) | np.linalg.norm({a}, axis=({i}, {j})) | np.full((len({a}), len({b})), {b}) | np.roll({a}, ({p}, 1), axis=({i}, {j})) | np.einsum('...i->i', {a}) | np.einsum('ii', {a}[:, :1]) | np.corrcoef({a}, {b}) | np.insert({a}, {i}, {b}, axis={j}) | np.fft.rfft({a}) | np.fft.ifft({a}, k) | np.correlate({a}, {b}) | np.vander({a}, {p}) | np.compress({a} > 0, {b}) | np.sum({a}, axis={i}, out=np.zeros(len({b}))) | np.pad({a}[:, {i}:], 1, 'wrap') | max({a}, {b}) | {b}[max(int({a}.argmax()), 0, {p})] | {a}[[i for i in range(len({b}))]] | {a}[list(range(len({b})))[{i}]] | np.zeros(sum(len(r) for r in {a})) | np.zeros(len({a}) & 3) | np.zeros(len({a}) >> {p}) | np.fromiter((r.sum() for r in {a}), float, count={p}) | np.random.default_rng(0).choice({a}, {p}, replace=False) | np.random.default_rng(0).choice({a}, k) | np.random.default_rng(0).normal({a}, 1)
{a} if {a}.dtype == np.float32 else {b} | {a} if np.issubdtype({a}.dtype, np.integer) else {b} | {a} if isinstance({a}, np.memmap) else {b} | {a} if hasattr({a}, "mask") else {b} | np.zeros({a}.shape, {b}.dtype) | {a}.astype({b}.dtype) | {a} if "%d" % len({a}) == "2" else {b} | {a} if f"{{len({a})}}" == "2" else {b} | {a} if {a}.itemsize > 4 else {b} | {a}.dtype.type(2)*{b} | {a} if type({a}) is np.ndarray else {b} | np.random.default_rng(k).normal(size={a}.shape) | {a} if isinstance({a}, float) else {b} | np.stack([r[r > 0] for r in {a}])
np.fft.fft({a}) | np.fft.rfft({a}, axis={i}) | np.fft.irfft({a}, n=len({b}), axis={i}).real | np.fft.irfft({a}) | np.abs(np.fft.rfftn({a})) | np.fft.fft2({a}, s=(k, {p})).real | np.fft.rfftfreq(len({a})) | np.fft.fftshift({a}, axes={i}) | np.insert({a}, {i}, {b}, axis={j}) | np.insert({a}, {i}, 0.0, axis={j}) | np.insert({a}, np.arange(len({b})), 1.0, axis={i}) | np.polyfit({a}, {b}, {p}) | np.polyval({a}, {b}) | np.polymul({a}, {b}) | np.polyadd({a}, {b}) | np.polyder({a}) | np.poly({a}) | np.block([[{a}, {b}], [{a}, {b}]]) | np.rot90({a}, {p}) | np.dstack([{a}, {b}]) | np.ediff1d({a}) | np.trim_zeros({a}) | np.resize({a}, ({p}, k)) | np.cumulative_sum({a}, axis={i}, include_initial=True) | np.unwrap({a}, axis={i})
np.apply_along_axis(np.diff, {i}, {a}) | np.apply_along_axis(lambda z: z[:{p}], {i}, {a}) | np.vectorize(lambda z: z + 1)({a}) | np.fromfunction(lambda q, r: q*r, ({p}, k)) | np.piecewise({a}, [{a} > 0], [lambda z: -z, 0.0]) | np.choose(({a} > 0).astype(int), [{b}, 0.0]) | np.mgrid[:len({a}), :k][0] | np.vecdot({a}, {b}) | np.matvec({a}, {b}) | np.linalg.vector_norm({a}, axis={i}) | np.linalg.eigvals({a}).real | np.linalg.cond({a}) | np.histogram2d({a}, {b}, bins={p})[0] | np.unique_counts({a}).counts | {a}[np.ravel_multi_index((np.arange({p}),), (len({b}),))] | np.einsum('ij,kj->ki', {a}, {b}) | np.einsum('i,j->ij', {a}, {b}) | np.random.default_rng(0).normal({a}, size={b}.shape) | np.random.default_rng(0).choice({a}, {p}, replace=False, axis={i}) | {a}[np.random.default_rng(0).integers({i}, len({b}), k)] | np.random.default_rng(0).permuted({a}, axis={i}) | {a} + {b}.sum().item() | {b} + {a}.item({i})
'''
EXPRESSIONS = [e.strip() for line in EXPRESSIONS.strip().split('\n') for e in line.split(' | ')]
BLOCKS = [  # whole statements; {v} is the new variable
    'def g():\n    for r in {a}: yield r\n{v} = np.stack(list(g()))',
    'c = collections.deque()\nfor r in {a}: c.append(r)\n{v} = np.stack(c)',
    'c = iter([{a}, {b}, {a}[0]])\nfor r in {a}: {v} = next(c)',
    'c = []\nfor i in range(len({a}) - {i}): c.append(i)\n{v} = {b}[c]',
    '{v} = {a}\nwhile True:\n    {v} = {v}/2\n    if not 1 < {v}.max() < 1e9: break',
    '{v}, c = {a}, True\nwhile c:\n    {v} = {v}/2\n    c = 1 < {v}.max() < 1e9',
    '{v} = {a}\nc = True\nwhile c:\n    if {v}.sum() > 0: {v} = 0*{b}\n    else: c = False',
    '{v} = {a}\nfor i in range(12):\n    if {v}.sum() > i: {v} = {v}/2\n    else: {v} = {v} - 1',
    'q = r = {b}\ng, h = lambda: q, lambda: r\nfor i in range(len({a})):\n    {v} = g()\n    q = h()\n    r = {a}[i]',
    '{v} = {a}.copy()\nfor i in range(len({a})):\n    {v}[i] = {a}[i]*2',
    '{v} = {a}.copy()\nfor i in range(len({b})):\n    {v}[i] = {b}[i]',
    '{v} = 0.0\nfor r in {a}:\n    {v} = {v} + r',
    '{v} = []\nfor r in {a}:\n    {v}.append(r*{p})\n{v} = np.stack({v})',
    '{v} = []\nfor i, r in enumerate({a}):\n    {v}.append(r + {b}[i])\n{v} = np.array({v})',
    '{v} = []\nfor i in range(len({a}) - {i}):\n    {v}.append({a}[i])\n{v} = np.array({v})',
    'for i in range(len({a})):\n    {v} = {a}[i]',
    'for i in range(len({a}) - {p}):\n    {v} = {a}[i:i + {p}]',
    'if {a}.sum() > 0:\n    {v} = {a}\nelse:\n    {v} = {b}',
    'if len({a}) > len({b}):\n    {v} = {a}[:len({b})]\nelse:\n    {v} = {b}[:len({a})]',
    'if len({a}) % 2 == 0:\n    {v} = {a}[:len({a})//2]\nelse:\n    {v} = {a}[len({a})//2:]',
    '{v} = {a}\nwhile {v}.max() > 1:\n    {v} = {v}/2 - 1',
    '{v} = {a}\nfor i in range({p}):\n    {v} = np.concatenate([{v}, {b}])',
    '{v} = {a}.copy()\n{v}[{i}:] = {b}[{i}:]',
    '{v} = {a}.copy()\n{v}[{a} > 0] = 0',
    '{v} = {a}.copy()\n{v} += {b}',
    '{v} = {a}.copy()\n{v}[:, {i}] = {b}',
    '{v} = []\nfor r in {a}:\n    for s in {b}:\n        {v}.append(r + s)\n{v} = np.stack({v})',
    'prev = {a}[0]\n{v} = []\nfor i in range(len({a})):\n    {v}.append({a}[i] - prev)\n    prev = {a}[i]\n{v} = np.stack({v})',
    '{v} = np.zeros(0)\nfor r in {a}:\n    if r.sum() > 0:\n        {v} = r\n        break',
    '{v} = {a}\nfor i in range(len({a})):\n    if i > {i}:\n        {v} = {b}\n        break',
    'j = 0\n{v} = {a}.copy()\nfor i in range(len({a})):\n    {v}[j] = {a}[i]\n    j = i',
    'j = 0\nfor i in range(len({a})):\n    j = i + 1\n{v} = {b}[:j]',
    'q, r = divmod(len({a}), {p})\n{v} = {a}[:q*{p}].reshape(q, {p}, *{a}.shape[1:])',
    's = {a}.shape\nif s == {b}.shape:\n    {v} = {a} + {b}\nelse:\n    {v} = {a}',
    'h = (len({a}) + 1)//2\n{v} = np.concatenate([{a}[:h], {a}[h:]])',
    '{v} = [{a}, {b}]\n{v}.append({a})\n{v} = {v}[{i}]',
    'g = lambda z, s={p}: z[:s]\n{v} = g({a})',
    'def g(z): return z.sum(-1)\n{v} = g({a}) + g({b})',
    'j = np.argsort({a}, axis=0)\nj += {p}\n{v} = {b}[j - {p}]',
    'j = np.arange(len({a}))\nj[::2] += {i}\n{v} = {b}[j]',
    'j = np.zeros(len({a}), int)\nfor _r in {a}: j = (j + {i}) % len({b})\n{v} = {b}[j]',
    'j = np.zeros(len({a}), int)\nfor _r in {a}: j = j + {i}\n{v} = {b}[j]',
    'j = np.arange(len({a}))\nq = j[:k]\nq -= 1\n{v} = {b}[j]',
    'm = {a} > 0\nif m.any(): {v} = {a}[m].max()\nelse: {v} = {b}.sum()',
    'm = {a} > 0\n{v} = {a}[m].max() if m.sum() > 0 else {b}.sum()',
    'try: {v} = {a} @ {b}\nexcept FloatingPointError: {v} = {a}',
    '{v} = np.array([_r.sum() + {i} for _r in {a}])',
    '{v} = max(_r.sum() for _r in {a}) + {b}',
    'j = np.array([int(_r.argmax()) for _r in {a}])\n{v} = {b}[j]',
    '{v} = {b}\nfor i in range(len({a})):\n    if i == 0: {v} = {a}\n    if i == {p}: {v} = {v} + {b}',
    'q = {v} = {b}\nfor i in range(len({a})):\n    if i < {p}: q = {a}\n    if i > 3: {v} = q + {b}',
    'q = {v} = {b}\nfor i in range(100):\n    if i == 50: q = {a}\n    if i == 70: {v} = q + {b}',
    'q = {v} = {b}\nfor i in range(len({a})):\n    for j in range(len({b})):\n        if i == j == 0: q = {a}\n        if i == j == {p}: {v} = q + {b}',
    'for i in range(len({a})):\n    if i == 0: {v} = {a}[i]\n    else: {v} = {v} + {a}[i]',
    '{v} = {b}\nfor i in range(len({a})):\n    if i % 2: {v} = {b}[:i]',
    '{v} = {b}\nfor i, r in enumerate({a}):\n    if r.sum() > 0: break\n    {v} = {b}[:i]',
    'q = 0\nfor i, r in enumerate({a}):\n    if r.sum() > 0: q = i\n{v} = {b}[q]',
    '{v} = np.stack([{a} if i == 0 else {b} for i in range(k)])',
    '{v} = np.stack([{a} if r.sum() > 0 else {b} for r in {a}])',
    'c = []\nfor i in range(len({a})): c.append(i/{p})\n{v} = np.array(c)*{a}',
    'c = {a} > 0\n{v} = {a}[c]\nc = {a} < 0\n{v} = np.concatenate([{v}, {a}[c]])',
    'j = 0\nfor _r in {a}:\n    if _r.sum() > 0:\n        j += {p}\n{v} = {b}[:j]',
    'j = len({a})\nfor _r in {b}:\n    j -= 1\n{v} = {a}[:j]',
    'j = 0\n{v} = {a}\nwhile {v}.max() > 1:\n    {v} = {v}/2 - 1\n    j = j + 1\n{v} = {b}[j:]',
    'j, {v} = 0, {a}\nfor _r in {a}:\n    j += 1\n    if j == {p}: {v} = {b}',
    'j, {v} = 0, {a}\nwhile True:\n    j += 1\n    if {v}.sum() < 3 or j > {p}: break\n    {v} = {v}/2 - 1',
    'j, {v} = 0, {a}.copy()\nfor _r in {a}:\n    {v}[j] = 0\n    j = (j + {p}) % len({a})',
    '{v} = []\nfor _r in {a}:\n    if _r.sum() > 0:\n        {v}.append(_r)\n{v} = np.stack({v}) if {v} else {b}',
    '{v} = []\nfor _r in {a}:\n    if _r.sum() > 0:\n        {v}.append(_r)\n    else:\n        {v}.append({b})\n{v} = np.array({v})',
    '{v} = np.array([_r for _r in {a} if _r.sum() > 0])',
    '{v} = [_r for _r in {a} if _r.sum() > {i}]\n{v} = np.stack({v}) if len({v}) > 1 else {b}',
    '{v} = [{b}[0]]\nfor i in range(len({a})):\n    if i % {p} == 0: {v}.append({b}[0])\n{v} = np.stack({v})',
    '{v} = {a}\nfor i in range(len({a})):\n    if {a}[i].sum() > 0:\n        {v} = {b}[:i + 1]',
    '{v} = {b}\nfor i in range(len({a})):\n    if i == {p}: {v} = {a}\n    if i > {p}: break',
    's, {v} = 0, {b}\nfor i in range(len({a})):\n    if i == {p} and s == {i}: {v} = {a}\n    if i == 0: s = {i}',
    's, {v} = 0, {b}\nfor _r in {a}:\n    if s: break\n    if _r.sum() > 0: s, {v} = 1, {a}',
    'def g(z):\n    for _r in z: yield _r*2\n{v} = 0.0\nfor _s in g({a}):\n    {v} = {v} + _s',
    'def g(z):\n    for i in range(0, len(z), {p}): yield z[i:i + {p}]\n{v} = []\nfor _s in g({a}):\n    {v}.append(_s.sum(0))\n{v} = np.array({v})',
    'def g(z):\n    j = 0\n    for _r in z:\n        if _r.sum() > 0:\n            j += 1\n            yield z[:j]\n{v} = {b}\nfor i, _s in enumerate(g({a})):\n    {v} = _s if i > {p} else {b}',
]


def line(rng, names, v):
    put = dict(a=rng.choice(names), b=rng.choice(names), i=rng.choice([0, 1, -1, 2]), j=rng.choice([0, 1, -1, 2, -2]), p=rng.choice([1, 2, 3]), v=v)
    if rng.random() < 0.3: return rng.choice(BLOCKS).format(**put).split('\n')
    return [f'{v} = ' + rng.choice(EXPRESSIONS).format(**put)]


def define(lines, name, number=itertools.count()):
    text = HEAD + ''.join(f'    {s}\n' for s in lines) + f'    return {name}\n'
    file = f'<fuzz {next(number)}>'
    return run_text(text, dict(globals()), file)['f'], text, file



def trial(seed, programs, length=8):
    "Mistakes: (program, sizes, error)."
    rng, wrong, tried, kept = random.Random(seed), [], 0, 0
    for _ in range(programs):
        lines, names = [], ['x', 'y', 'w', 't']
        for step in range(40):
            v = f'_v{len(names)}'
            new = line(rng, names, v)
            f, text, file = define(lines + new, v)
            tried += 1
            try: said = paths_of(f)
            except ShapeError:
                linecache.cache.pop(file, None)
                continue
            kept += 1
            lines, names = lines + new, [*names, v]
            bad = run(f, text, said)
            linecache.cache.pop(file, None)
            if bad: wrong.append(bad); break
            if len(lines) >= length: break
    return wrong, tried, kept


def paths_of(f):
    "What the check says: for each path, what it knows, and the result."
    copy, signature, found = copy_of(f), read_signature(f), []
    def one(trace): found.append((trace, copy(*arguments(signature, {}, f)[0])))
    kept = [p.trace for p in explore(one, start_facts(()), seconds=2)]  # it may have begun anew
    return [(trace, result) for trace, result in found if any(trace is k for k in kept)]


def run(f, text, said):
    "Run at several sizes; the first failure, or the first result of another shape than was said."
    for sizes in ((1, 1, 1, 1), (2, 3, 4, 2), (3, 2, 1, 5), (4, 1, 3, 1), (5, 5, 5, 3), (1, 4, 2, 2), (6, 2, 2, 4)):
        a, b, c, k = sizes
        for seed in (0, 1):
            rng = np.random.default_rng(seed)
            args = [rng.normal(size=s) for s in ((a, c), a, (c, b), (a, b, c))]
            try:
                with warnings.catch_warnings(), np.errstate(all='ignore'):
                    warnings.simplefilter('ignore')
                    real = f(*args, k)
            except np.linalg.LinAlgError: pass
            except ZeroDivisionError: pass
            except Exception as e: return text, dict(n=a, m=b, d=c, k=k), f'{type(e).__name__}: {e}'
            else:
                put = dict(n=a, m=b, d=c, k=k)
                if not any(agrees(result, real, put, trace) for trace, result in said if _on_path(trace, put)): return text, put, f'{np.shape(real)} instead of {[str(r) for _, r in said]}'


def agrees(result, real, put, trace):
    with tracing(trace): return _agrees(result, real, put)


if __name__ == '__main__':
    seed, programs = (list(map(int, sys.argv[1:])) + [0, 200][len(sys.argv) - 1:])[:2]
    wrong, tried, kept = trial(seed, programs)
    print(f'{tried} lines tried, {kept} accepted, {len(wrong)} wrong')
    for text, sizes, error in wrong[:20]: print(text, sizes, '\n   ', error, '\n')
