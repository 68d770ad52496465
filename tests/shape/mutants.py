"""Single-point changes to the six programs: what NumPy does with each, and what the check says.

    python -m tests.shape.mutants    prints the table
"""
import ast, inspect, itertools, linecache, textwrap, types, warnings
from collections import Counter
from dataclasses import dataclass
import numpy as np
from bendml.shape import ShapeError, typed
from tests.shape import programs
from tests.shape.text import run_text


@dataclass(frozen=True)
class Mutant:
    program: str
    kind: str      # which change
    what: str      # the changed expression
    source: str


# One function a kind of change: it takes a node and gives the nodes that may stand in its place.

def _swapped(n, names):
    if isinstance(n, ast.BinOp) and isinstance(n.op, ast.MatMult | ast.Sub | ast.Div): yield ast.BinOp(n.right, n.op, n.left)

def _operator(n, names):
    if isinstance(n, ast.BinOp) and isinstance(n.op, ast.MatMult): yield ast.BinOp(n.left, ast.Mult(), n.right)
    if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mult): yield ast.BinOp(n.left, ast.MatMult(), n.right)

def _one_side(n, names):
    if isinstance(n, ast.BinOp): yield n.left; yield n.right

def _transposed(n, names):
    if isinstance(n, ast.Attribute) and n.attr == 'T': yield n.value
    elif isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.id in names: yield ast.Attribute(n, 'T', ast.Load())

def _number(n, names):
    if isinstance(n, ast.Constant) and type(n.value) is int:
        for v in (n.value + 1, n.value - 1): yield ast.Constant(v)

def _axis(n, names):
    if isinstance(n, ast.Call):
        for i, k in enumerate(n.keywords):
            if k.arg == 'axis':
                for v in (None, 0, 1, -2): yield ast.Call(n.func, n.args, [*n.keywords[:i], ast.keyword('axis', ast.Constant(v)), *n.keywords[i + 1:]])
            if k.arg == 'keepdims': yield ast.Call(n.func, n.args, [*n.keywords[:i], *n.keywords[i + 1:]])

def _order(n, names):
    if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr in ('transpose', 'reshape', 'swapaxes'):
        for i in range(len(n.args) - 1):
            args = [*n.args]
            args[i], args[i + 1] = args[i + 1], args[i]
            yield ast.Call(n.func, args, n.keywords)

def _dropped(n, names):
    if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and not (isinstance(n.func.value, ast.Name) and n.func.value.id == 'np'): yield n.func.value
    if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Load): yield n.value

def _argument(n, names):
    if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.id in names:
        others = [m for m in names if m != n.id]
        for m in others[::2]: yield ast.Name(m, ast.Load())  # every second one

KINDS = {'operands swapped': _swapped, 'another operator': _operator, 'one side only': _one_side, '.T added or dropped': _transposed, 'a number off by one': _number,
         'another axis, no keepdims': _axis, 'axes in another order': _order, 'a step dropped': _dropped, 'another argument': _argument}


def _places(statement):
    "Where each node below a statement stands: (the node that holds it, the field, its number in a list or None, the node)."
    for parent in ast.walk(statement):
        for field, value in ast.iter_fields(parent):
            for i, node in enumerate(value) if isinstance(value, list) else [(None, value)]:
                if isinstance(node, ast.AST): yield parent, field, i, node


def _put(parent, field, i, node):
    if i is None: setattr(parent, field, node)
    else: getattr(parent, field)[i] = node


def mutants():
    "Every change to every program."
    for name in programs.ARGUMENTS:
        source = inspect.getsource(getattr(programs, name).__wrapped__)
        f = ast.parse(source).body[0]
        stored = {n.id for s in f.body for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        names = [a.arg for a in f.args.args if a.arg != 'lr'] + sorted(stored - {'_'})
        head, texts = '\n'.join(source.split('\n')[:f.body[0].lineno - 1]), [ast.unparse(s) for s in f.body]
        for at, statement in enumerate(f.body):
            for parent, field, i, node in _places(statement):
                for kind, change in KINDS.items():
                    for new in change(node, names):
                        what = f'{ast.unparse(node)} -> {ast.unparse(new)}'
                        _put(parent, field, i, new)
                        body = '\n'.join([*texts[:at], ast.unparse(statement), *texts[at + 1:]])
                        _put(parent, field, i, node)
                        yield Mutant(name, kind, what, head + '\n' + textwrap.indent(body, '    ') + '\n')


def _defined(m, number, decorate):
    "The mutant's function; with `decorate`, checked."
    file = f'<mutant {number}>'
    source = m.source if decorate else m.source[m.source.index('\ndef ') + 1:]
    return run_text(source, dict(vars(programs)), file)[m.program]


def _run(f, name, setting):
    "The result as a list of arrays, or None: it fails."
    args = programs.ARGUMENTS[name](np.random.default_rng(1), types.SimpleNamespace(**setting))
    try:
        with warnings.catch_warnings(), np.errstate(all='ignore'):
            warnings.simplefilter('ignore')
            result = f(*args)
    except Exception: return None
    return [np.asarray(r) for r in (result if isinstance(result, tuple) else (result,))]


MEANS = {  # what notices a change that NumPy does not notice, and what it then says
    'no name unused': 'is never used', 'weight layout': ' axis of a weight', 'keep': 'says that nothing may',
    'axis identity through reshape': 'would change places', 'order of merged axes': 'in another order', 'range of indices': 'indices '}


def trial(count=None):
    "Verdicts: a Counter of (what NumPy does, what the check says), the missed ones and the accepted ones, those too strict, and what noticed the silent ones."
    table, missed, invisible, strict, means = Counter(), [], Counter(), [], Counter()
    right = {name: [_run(getattr(programs, name).__wrapped__, name, s) for s in programs.SETTINGS] for name in programs.ARGUMENTS}
    for number, m in enumerate(mutants() if count is None else itertools.islice(mutants(), 0, None, count)):
        try:
            _defined(m, number, True)
            verdict = 'accepted'
        except ShapeError as e: verdict, reason = 'refused', e.reason
        f = _defined(m, number, False)
        runs = [_run(f, m.program, s) for s in programs.SETTINGS]
        shapes = [[r.shape for r in run] if run else None for run in runs]
        if shapes != [[r.shape for r in run] for run in right[m.program]]: does = 'fails or changes shape'
        else: does = 'equal' if all(np.allclose(a, b, equal_nan=True) for run, ok in zip(runs, right[m.program]) for a, b in zip(run, ok)) else 'silently wrong'
        table[does, verdict] += 1
        if does.startswith('fails') and verdict == 'accepted': missed.append(m)
        if does == 'equal' and verdict == 'refused': strict.append(m)
        if does == 'silently wrong' and verdict == 'refused': means[next((name for name, text in MEANS.items() if text in reason), reason)] += 1
        if does == 'silently wrong' and verdict == 'accepted': invisible[m.kind, m.program, m.what] += 1
        linecache.cache.pop(f'<mutant {number}>', None)
    return table, missed, invisible, strict, means


if __name__ == '__main__':
    table, missed, invisible, strict, means = trial()
    for (does, verdict), n in sorted(table.items()): print(f'{n:5}  {does:24}{verdict}')
    print('noticed, of those silently wrong:', ', '.join(f'{n} by {name}' for name, n in means.most_common()))
    print(len(missed), 'missed:', *(f'\n  {m.program}: {m.what}' for m in missed))
    print(len(strict), 'refused though equal:', *(f'\n  {m.program}: {m.what}' for m in strict))
    for (kind, program, what), n in sorted(invisible.items()): print(f'  {kind:28}{program:10}{what}')
