"Widgets: what their scripts compute (in node), and what they show when they are moved (in Chromium: test_site)."
import json, shutil, subprocess
import numpy as np, pytest
from tools.notebooks import ROOT


def in_node(name, expression):
    if shutil.which('node') is None: pytest.skip('no node on this machine')
    code = f'const w = require("{ROOT}/media/widgets/{name}.js"); console.log(JSON.stringify({expression}))'
    return json.loads(subprocess.run(['node', '-e', code], capture_output=True, text=True, check=True).stdout)


def test_matmul_is_numpys():
    cases = [(r, k, k2, c) for r in (1, 3) for k in (1, 2, 5) for k2 in (1, 2, 5) for c in (1, 4)]
    answers = in_node('matmul', f'{json.dumps(cases)}.map(([r, k, k2, c]) => w.product([r, k], [k2, c]))')
    for (r, k, k2, c), got in zip(cases, answers):
        try: expected = {'shape': list((np.zeros((r, k)) @ np.zeros((k2, c))).shape)}
        except ValueError: expected = {'expected': f'Mat<{k}, {c}>', 'observed': f'Mat<{k2}, {c}>'}
        assert got == expected
