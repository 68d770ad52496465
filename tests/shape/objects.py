"""Random classes: a method that the check accepts, and whose arguments fit at its call, runs to its end, at every size.

    python -m tests.shape.objects [SEED] [CLASSES]

A class grows method by method; one that is refused is thrown away again. Then its methods are called in any order.
"""
import random, sys, textwrap, warnings
import numpy as np
from bendml.shape import Dim, Mat, ShapeError, Vec, dims, typed
from tests.test_shape_trace import define

n, m, d = dims('n m d')
HEAD = '''class A:
    w: Vec[d]
    b: Vec[n]
    M: Mat[n, d]
    s: float
    @typed
    def fit(self, X: Mat[n, d]) -> "A":
        self.w, self.b, self.M, self.s = X.mean(0), X.mean(1), X, X.sum()
        return self
    @typed
    def fit_w(self, X: Mat[n, d]) -> None: self.w = X.mean(0)
    @typed
    def keep(self, X: Mat[n, d]) -> None: self.t = X
'''
VECTORS = '_x.mean(0) | _x.mean(1) | _x[0] | _x[:, 0] | self.w | self.b | self.M[0] | self.M @ self.w | _x @ self.w | self.b @ self.M | _y | 2*_y | self.w + _x.mean(0) | np.ones(len(self.w)) | self.w[:len(_y)] | getattr(self, "w") | vars(self)["b"] | self.t[0]'.split(' | ')
MATRICES = '_x | _x.T | self.M | self.M.T | np.outer(self.b, self.w) | self.M + _x | _x*self.w | self.M - self.M.mean(0) | self.M[:len(_x)] | self.t | np.zeros((len(self.b), len(self.w)))'.split(' | ')
STEPS = '''self.w = {v} | self.b = {v} | self.M = {a} | self.t = {a} | self.t = {v} | self.s = _x.sum() | self.fit(_x) | self.fit({a}) | self.fit_w(_x) | self.fit_w({a}) | self.keep({a}) | self.w += {v} | self.M[:] = {a}
_v = {v} | _v = _v + {v} | _a = {a} | self.w = _v | self.b = _v | self.M = _a | self.w, self.b = self.b, self.w | other = A().fit({a}); _v = other.w | other = self.fit(_x); _v = other.b | _v = self.{f}(_x, _y) | _v = self.{f}({a}, {v}) | self.{f}({a}, {v})
_v = self.{f}(_x[1:], {v}) | self.{f}(_x[:-1], {v}) | _x = {a} | _y = {v}
setattr(self, "w", {v}) | object.__setattr__(self, "b", {v}) | _v = self.w; self.fit(_x); _v = _v + self.w | self.fit_w({a}); _v = self.w + {v} | self.{f}(_x, _y); _v = self.w + {v} | self.{f}({a}, {v}); _a = self.M*self.w | self.fit_w({a}); _v = self.M @ self.w | self.keep({a}); _a = self.t
self.w = {v}; _v = self.M @ self.w | self.b = {v}; _v = self.b @ self.M | if self.s > 0: self.w = {v} | self.{f}(_x, _y); _v = self.M[0] + self.w'''.replace('\n', ' | ').split(' | ')
RESULTS = ['Vec[n]', 'Vec[d]', 'Mat[n, d]', 'Mat[d, n]', 'Vec[m]']


def method(rng, names, name):
    "The lines of a method, and its parameters; its result is to be found."
    put = lambda text: text.format(v=rng.choice(VECTORS), a=rng.choice(MATRICES), f=rng.choice(names))
    lines = ['_v, _a = _y, _x']
    for _ in range(rng.randrange(1, 4)):
        step = put(rng.choice(STEPS))
        around = rng.choice(['', '', '', 'if _x.sum() > 0:', 'for _r in _x:', 'if len(_x) > 2:', 'if _x.sum() < 0:'])
        lines += [around, *('    ' + s for s in step.split('; ')), *['    raise ValueError']*('< 0' in around)] if around else step.split('; ')
    given = rng.choice(['Mat[n, d], _y: Vec[d]', 'Mat[n, d], _y: Vec[n]', 'Mat[n, m], _y: Vec[m]', 'Mat[m, d], _y: Vec[d]'])
    last = rng.choice([rng.choice(VECTORS), rng.choice(MATRICES), '_v', '_a', 'self.w', 'self.b', 'self.M'])
    return [textwrap.indent(f'@typed\ndef {name}(self, _x: {given}) -> {result}:\n' + textwrap.indent('\n'.join([*lines, f'return {last}']), '    '), '    ') + '\n'
            for result in rng.sample(RESULTS, 5)]


def made(text):
    return define(text + 'f = A', **{k: v for k, v in globals().items() if k in ('typed', 'Vec', 'Mat', 'n', 'm', 'd', 'np')})


def trial(seed, classes):
    "Mistakes: (class, calls, error); and how many methods were tried, kept and called."
    rng, wrong, count = random.Random(seed), [], [0, 0, 0]
    for _ in range(classes):
        text, names = HEAD, []
        for i in range(12):
            count[0] += 1
            for new in method(rng, [*names, f'm{len(names)}'], f'm{len(names)}'):
                try: vars(made(text + new))[f'm{len(names)}'].__shapes__.report()
                except ShapeError: continue
                text, names = text + new, [*names, f'm{len(names)}']
                break
        count[1] += len(names)
        for _ in range(12): count[2] += calls(rng, made(text), names, text, wrong)
    return wrong, count


def calls(rng, A, names, text, wrong) -> int:
    "Call methods of a new object, in any order."
    a, done, history = A(), 0, []
    for _ in range(8):
        rows, columns = rng.choice([1, 2, 3]), rng.choice([1, 2, 3])
        X = np.random.default_rng(rng.randrange(9)).normal(size=(rows, columns))
        name = rng.choice(['fit', 'fit_w', 'keep', *names, *names])
        args = (X,) if name in ('fit', 'fit_w', 'keep') else (X, X[0] if rng.random() < 0.5 else X[:, 0])
        f = vars(A)[name]
        try: f.__shapes__.at_call(dict(zip(f.__shapes__.signature.python.parameters, (a, *args))))
        except ShapeError: continue
        history.append((name, X.shape))
        try: result = f(a, *args)
        except RecursionError: break
        except ValueError as e:
            if not e.args: continue
            wrong.append((text, history, e)); break
        except Exception as e: wrong.append((text, history, e)); break
        done += 1
        sizes = dict(zip(map(str, f.__annotations__.get('_x', f.__annotations__.get('X')).sizes), X.shape))
        promised = [('its result', result, f.__shapes__.signature.result)]*(name in names)
        promised += [(f'self.{n}', getattr(a, n), s) for n, s in f.__shapes__.attributes().items() if n in f.__shapes__.report().own.sets and n != 's']
        if (bad := [p for p in promised if disagrees(p[1], p[2], sizes)]): wrong.append((text, history, f'{name}: {bad}')); break
    return done


def disagrees(value, spec, sizes) -> bool:
    "Is this not the shape that was promised, as far as its sizes are known from the arguments?"
    if getattr(spec, 'items', None) is not None: return False
    return value.ndim != len(spec.sizes) or any(sizes.get(str(size), real) != real for size, real in zip(spec.sizes, value.shape))


if __name__ == '__main__':
    seed, classes = (list(map(int, sys.argv[1:])) + [0, 100][len(sys.argv) - 1:])[:2]
    wrong, (tried, kept, called) = trial(seed, classes)
    print(f'{tried} methods tried, {kept} accepted, {called} calls, {len(wrong)} wrong')
    for text, history, error in wrong[:6]: print(text, history, '\n   ', type(error).__name__, error, '\n')
