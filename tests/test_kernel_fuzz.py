"""Random kernels: what is accepted must never be seen to touch a cell outside, or to race. PYTEST_DONT_REWRITE"""
import importlib.util, random
import pytest
from bendml.kernel import *
from bendml.kernel.search import run_watched

def term(r, names, depth=2):
    "A random expression of whole numbers."
    if depth == 0 or r.random() < .35: return r.choice(names + ['0', '1', '2'])
    a, b = term(r, names, depth - 1), term(r, names, depth - 1)
    return r.choice([f'({a} + {b})', f'({a} - {b})', f'{a}*{b}', f'min({a}, {b})', f'max({a}, {b})', f'({a})//2', f'({a}) % 3', f'({a} if {a} < {b} else {b})'])

def body(r, names, depth, pad):
    "Random loops, ifs, names and accesses."
    lines = []
    for _ in range(r.randint(1, 2)):
        kind = r.random()
        if depth and kind < .5:
            i = 'ijkl'[len([n for n in names if n in 'ijkl'])]
            ends = r.choice([f'{r.choice(names)}', f'0, {term(r, names, 1)}, {r.randint(1, 3)}', f'{term(r, names, 1)}, {term(r, names, 1)}'])
            loop = 'prange' if r.random() < .4 and ends.count(',') < 2 else 'range'
            lines += [f'{pad}for {i} in {loop}({ends}):', *body(r, names + [i], depth - 1, pad + '    ')]
            if r.random() < .3: lines.append(f'{pad}    c += {r.randint(1, 2)}')
        elif depth and kind < .65: lines += [f'{pad}if {term(r, names, 1)} < {term(r, names, 1)}:', *body(r, names, depth - 1, pad + '    ')]
        else:
            index = term(r, names + ['c'], 2) if r.random() < .5 else r.choice([f'{a}*m + {b}' for a in names for b in names] + names)
            guard = f'if 0 <= {index} and {index} < n*m: ' if r.random() < .5 else ''
            lines.append(f'{pad}{guard}x[{index}] {r.choice(["=", "+="])} {r.choice(["f32(1)", f"y[{r.choice(names)}]"])}')
    return lines

def program(seed):
    r = random.Random(seed)
    return '\n'.join(['def f(n: Size, m: Size, x: Buf["n*m", f32], y: Buf["n + m", f32]):', '    requires(n < 100, m < 100)', '    c = 0', *body(r, ['n', 'm'], 3, '    '), ''])

def accepted(seed, folder):
    "The kernel, if it is accepted."
    path = folder/f'fuzz_{seed}.py'
    path.write_text('from bendml.kernel import *\n' + program(seed))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    try: return kernel(module.f)
    except KernelError: return None

@pytest.mark.slow
@pytest.mark.parametrize('start', range(0, 160, 40))
def test_what_is_accepted_runs_clean(start, tmp_path, monkeypatch):
    monkeypatch.setenv('BENDML_CACHE', str(tmp_path))
    found = 0
    for seed in range(start, start + 40):
        if k := accepted(seed, tmp_path):
            found += 1
            seen = {(n, m): s for n in range(6) for m in range(6) if (s := run_watched(k.source, {'n': n, 'm': m}))}
            assert not seen, f'{program(seed)}\n{seen}'
    assert found > 1, 'the fuzzer makes nothing that is accepted'
