"Several processes: the bits of one, and no failure leaves another one waiting."
import subprocess, sys
from pathlib import Path
import numpy as np, pytest
from click.testing import CliRunner
from bendml import mnist
from bendml.checkpoint import read_safetensors
from bendml.processes import Alone, ProcessError, in_order, together, try_all
from bendml.train import TrainError, part, read_log, train
from tests.parallel import MODEL, RULE, batch, digest

ROOT = Path(__file__).resolve().parent.parent


def mpi(accident, folder, steps=8, n=2):
    return subprocess.run([Path(sys.executable).with_name('mpiexec'), '-n', str(n), sys.executable, '-W', 'ignore', ROOT/'tests/parallel.py', accident, folder, str(steps)],
                          capture_output=True, text=True, timeout=120, cwd=ROOT)


def alone(parts): return digest(train(MODEL, batch, RULE, 8, micro=parts, progress=False))


@pytest.mark.slow
@pytest.mark.parametrize('n', [2, 3])
def test_the_bits_of_one_process(tmp_path, n):
    "As many processes as parts, the two of them with a stop in between: the bits of one process that computes the parts one after the other."
    if n == 2: assert mpi('none', tmp_path, 5, n).returncode == 0
    out = mpi('none', tmp_path, 8, n)
    assert out.stdout == f'8 {alone(n)}\n', out.stdout + out.stderr
    assert [line['step'] for line in read_log(tmp_path/'log')] == list(range(1, 9))
    assert alone(n) != alone(1)


@pytest.mark.slow
@pytest.mark.parametrize('accident, words', [
    ('error', ["KeyError: 'a file is missing'", 'ProcessError: process 1 has failed, so process 0 stops']),
    ('odd', ['ValueError: a batch in 2 parts\n- expected : a multiple of 2 examples\n- observed : 5']),
    ('disk', ['SaveError', 'File too large', 'ProcessError: process 0 has failed, so process 1 stops']),
    ('after', ['process 1 of 2: RuntimeError: only here', 'MPI_Abort']), ('kill', ['Killed (signal 9)']), ('interrupt', ['KeyboardInterrupt']),
    ('seeds', ['ProcessError: processes begin differently'])])
def test_no_process_waits_for_one_that_failed(tmp_path, accident, words):
    "All end, with the name of what happened; the last checkpoint is whole, and going on from it gives the bits of a run without accident."
    out = mpi(accident, tmp_path)
    assert out.returncode != 0
    for word in words: assert word in out.stdout + out.stderr, out.stdout + out.stderr
    if accident in ('error', 'kill', 'interrupt', 'after'):
        assert read_safetensors(tmp_path/'run')
        assert digest(train(MODEL, batch, RULE, 8, micro=2, checkpoint=tmp_path/'run', progress=False)) == alone(2)


@pytest.mark.slow
def test_mnist(mnist_dir, tmp_path):
    "`bendml mnist --mpi`: rank 0 alone speaks; the digits of one process with two parts; stopped and continued."
    bin = Path(sys.executable).parent
    def run(*words): return subprocess.run([bin/'mpiexec', '-n', '2', bin/'bendml', 'mnist', '--mpi', '--steps', '10', *words], capture_output=True, text=True, timeout=240, cwd=tmp_path)
    def told(out): return [line.rsplit('  ', 1)[0] for line in out.splitlines() if line.startswith('epoch')]
    first, second = run('--checkpoint', 'c'), run('--checkpoint', 'c', '--epochs', '2')
    assert first.returncode == second.returncode == 0, first.stderr + second.stderr
    alone = CliRunner().invoke(mnist.command, ['--steps', '10', '--epochs', '2', '--micro', '2', '--out', str(tmp_path)]).output
    assert told(first.stdout) + told(second.stdout)[-1:] == told(alone) and len(told(alone)) == 2
    odd = run('--batch', '25')
    assert odd.returncode == 1 and odd.stderr.count('a multiple of 2 examples') == 1 and 'Traceback' not in odd.stderr


def test_without_mpi4py(monkeypatch):
    monkeypatch.setitem(sys.modules, 'mpi4py', None)
    with pytest.raises(ProcessError, match=r"mpi4py and mpich\n(.|\n)*pip install 'bendml\[mpi\]'"): together()


def test_alone():
    world = Alone()
    world.add_up(row := np.ones(3, 'f4'))
    assert world.share('x') == ['x'] and try_all(world, lambda: 3) == [3] and row.tolist() == [1, 1, 1]
    with pytest.raises(ZeroDivisionError): try_all(world, lambda: 1/0)


def test_sum_in_order():
    rows = np.array([[1e8, 1], [1, 2], [-1e8, 3]], 'f4')
    assert in_order(rows).tolist() == [0, 6] and in_order(rows[[0, 2, 1]]).tolist() == [1, 6]


def test_parts():
    x = np.arange(12).reshape(6, 2)
    assert np.array_equal(np.concatenate([part(x, i, 3) for i in range(3)]), x) and part(x, 0, 1) is x
    a, b = part((x, x[:, 0]), 1, 2)
    assert len(a) == len(b) == 3
    for bad in (x[:5], x[:0]):
        with pytest.raises(ValueError, match='a multiple of 2 examples'): part(bad, 0, 2)


def test_the_model_of_a_sum():
    "The law `sum_in_parts` is about lists; the same numbers, in the arrays that processes exchange."
    from bendml.laws import to_list
    from bendml.nat import nat
    from bendml.nn import shard_laws as laws
    rows = np.arange(12).reshape(3, 4)
    lists = to_list([to_list(r.tolist()) for r in rows[1:]])
    total = np.array(list(laws.sum_in_order(to_list(rows[0].tolist()), lists)))
    model = rows[0]
    for r in rows[1:]: model = 2*model + r     # the law's addition is any function; in its model, this one
    assert total.tolist() == model.tolist()
    cut = list(laws.sum_in_order(laws.first(nat(3), to_list(rows[0].tolist())), laws.firsts(nat(3), lists)))
    assert cut == model[:3].tolist()


def test_gradients_of_shards_on_integers():
    "The law `shards_add_up`, on random expressions and any split, and with arrays of the autograd."
    import random
    from bendml.autograd import scalar
    from bendml.laws import to_list
    from bendml.nn import shard_laws as laws
    from tests.test_autograd import random_expr
    rng = random.Random(1)
    for _ in range(20):
        losses, p = [random_expr(rng, rng.randint(0, 3), 3) for _ in range(rng.randint(0, 6))], to_list([rng.randint(-3, 3) for _ in range(3)])
        cuts = sorted(rng.randint(0, len(losses)) for _ in range(2))
        shards = [losses[:cuts[0]], losses[cuts[0]:cuts[1]], losses[cuts[1]:]]
        assert laws.shard_gradients(3, to_list(list(map(to_list, shards))), p) == laws.batch_gradient(3, to_list(losses), p)
