"Single-point changes to six programs, against real NumPy at two settings of sizes: `python -m tests.shape.mutants` prints the table."
import pytest
from tests.shape.mutants import trial


@pytest.mark.slow
def test_every_change_that_numpy_notices_is_refused():
    table, missed, invisible, strict, means = trial(2)  # every second one; `python -m tests.shape.mutants` tries all
    count = lambda does, verdict: table[does, verdict]
    assert sum(table.values()) >= 1000
    assert missed == [] and count('fails or changes shape', 'refused') >= 800
    silent = count('silently wrong', 'refused'), count('silently wrong', 'accepted')
    assert silent[0]/sum(silent) > 1/3, silent
    assert len(strict) <= 2, strict
    least = {'no name unused': 30, 'weight layout': 4, 'keep': 3, 'axis identity through reshape': 5, 'order of merged axes': 2}
    assert all(means[name] >= n for name, n in least.items()), means  # each notices some that nothing else does
