"""Sizes that a refusal states without reserve: NumPy must fail there too, or give another shape.

    python -m tests.shape.stated    prints the statements that are not so
"""
import ast, itertools, math, types, warnings
from pathlib import Path
import numpy as np
from bendml.shape import ShapeError, typed
from bendml.shape.annotations import ArraySpec, SizeSpec, TupleSpec, read_signature
from bendml.shape.facts import _holds, parse_claim
from bendml.shape.values import parts_of
from bendml.shape.sizes import evaluate, names_of
from tests.shape import mutants, programs
from tests.shape.text import run_text

REFUSED = Path(__file__).with_name('refused.py')


def functions():
    "(function, conditions on its sizes, its refusal) for each refused function of the file."
    found = []
    def noting(f=None, *, where=(), **options):
        if f is None: return lambda f: noting(f, where=where, **options)
        try: typed(f, where=where, **options)
        except ShapeError as e:
            if not f.__name__.startswith('finally_'): found.append((f, [where] if isinstance(where, str) else list(where), e))  # NumPy fails there too, and the program hides it
        return f
    text = REFUSED.read_text().replace(', typed\n', '\n')
    run_text(text, dict(typed=noting, __name__='refused'))
    return found


def changed(step):
    "The same for every so many of the mutants."
    for number, m in enumerate(itertools.islice(mutants.mutants(), 0, None, step)):
        try: mutants._defined(m, f's{number}', True)
        except ShapeError as e:
            where = {'mlp_step': ['y < C'], 'block': ['C % H == 0'], 'decode': ['n >= 0'], 'conv_net': ['T >= 3', 'N >= 2']}.get(m.program, [])
            yield mutants._defined(m, f's{number}', False), where, e


def settings(signature, where, fixed):
    "Sizes with those that are stated, and any others."
    specs = [s for n, p in signature.params for _, s in parts_of(p, n)]
    names = sorted({n for s in specs for d in (s.sizes if isinstance(s, ArraySpec) else (s.size,)) for n in names_of(d)} - set(fixed))
    claims = [c for w in where if w not in ('y < C', 'ids < V') for c in parse_claim(w)]
    for values in sorted(itertools.product((1, 2, 3, 5), repeat=len(names)), key=sum)[:200]:
        sizes = {**dict(zip(names, values)), **fixed}
        try:
            if all(_holds(c, sizes) for c in claims): yield sizes
        except KeyError: return


def value(spec, sizes, rng, high):
    if isinstance(spec, SizeSpec): return evaluate(spec.size, sizes)
    if isinstance(spec, TupleSpec): return tuple(value(s, sizes, rng, high) for s in spec.items)
    shape = [evaluate(d, sizes) for d in spec.sizes]
    return rng.integers(0, high, shape) if spec.dtype == 'int' else rng.normal(size=shape) > 0 if spec.dtype == 'bool' else rng.normal(size=shape)


def fits(spec, result, sizes):
    if isinstance(spec, ArraySpec): return np.shape(result) == tuple(evaluate(d, sizes) for d in spec.sizes)
    if isinstance(spec, SizeSpec): return result == evaluate(spec.size, sizes)
    return not isinstance(spec, TupleSpec) or len(spec.items) == len(result) and all(fits(s, r, sizes) for s, r in zip(spec.items, result))


def runs(f, signature, sizes, seed):
    "Does the function run at these sizes, and give what it declares?"
    rng, args = np.random.default_rng(seed), {}
    for name, spec in signature.params:
        p = signature.python.parameters[name]
        if spec is not None: args[name] = value(spec, sizes, rng, min(sizes.values(), default=1))
        elif p.default is p.empty: args[name] = 0.5
    try:
        with warnings.catch_warnings(), np.errstate(all='ignore'):
            warnings.simplefilter('ignore')
            return fits(signature.result, f(**args), sizes)
    except Exception: return False


def statements(refusals):
    "(statements tried, those that are not so)."
    tried, wrong = 0, []
    for f, where, e in refusals:
        if not e.surely or not (e.fails_at or e.everywhere): continue
        signature = read_signature(f)
        if any(not isinstance(s, ArraySpec | SizeSpec | TupleSpec | None) for _, s in signature.params): continue
        each = [(s, seed) for s in itertools.islice(settings(signature, [*where, *e.known], dict(e.fails_at)), 3) for seed in (0, 1)]
        tried += bool(each)
        fine = [s for s, seed in each if runs(f, signature, s, seed)]
        if fine: wrong.append((f.__name__, e, fine[0]))
    return tried, wrong


if __name__ == '__main__':
    for refusals in (functions(), changed(1)):
        tried, wrong = statements(refusals)
        print(tried, 'tried,', len(wrong), 'wrong')
        for name, e, sizes in wrong: print(name, sizes, e, '', sep='\n')
