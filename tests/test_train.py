"Training: the same bits after any stop, what is written down, what is refused."
import os, random, signal, subprocess, sys, time
import numpy as np
import pytest

from bendml.checkpoint import CheckpointError
from bendml.nn.layer import Residual, Seq, leaves
from bendml.nn.layers import Dropout, Embedding, LayerNorm, Linear, ReLU, mean_squared_error, self_attention
from bendml.optim import SGD, AdamW, warmup_cosine
from bendml.train import TrainError, plot_log, read_log, start, step, train

MODEL = Seq(Embedding(20, 8), Residual(LayerNorm(8), self_attention(8, 2)), Dropout(.2), Linear(8, 20))
RULE = AdamW(lr=warmup_cosine(1e-2, 5, 40))


def batch(rng, step):
    ids = rng.integers(0, 20, (2, 7))
    return ids[:, :-1], ids[:, 1:]


def bits(run): return b''.join(a.tobytes() for t in (run.parameters, run.optimizer.kept) for a in leaves(t)) + str(run.rng.bit_generator.state).encode()


@pytest.fixture(scope='module')
def whole(): return train(MODEL, batch, RULE, 40, progress=False)


def test_stopped_and_continued(whole, tmp_path):
    "Ten random moments, one file."
    for steps in [*sorted(random.Random(0).sample(range(1, 40), 10)), 40]: run = train(MODEL, batch, RULE, steps, checkpoint=tmp_path/'run', every=7, log=tmp_path/'log', progress=False)
    assert bits(run) == bits(whole)
    assert [line['step'] for line in read_log(tmp_path/'log')] == list(range(1, 41))


CODE = '''
import sys, time
sys.path.insert(0, sys.argv[2])
from tests.test_train import MODEL, RULE, batch
from bendml.train import train
def slowly(rng, step): time.sleep(.02); print(step, flush=True); return batch(rng, step)
train(MODEL, slowly, RULE, 40, checkpoint=sys.argv[1] + '/run', every=1, log=sys.argv[1] + '/log', progress=False)
'''


@pytest.mark.slow
@pytest.mark.parametrize('sig', [signal.SIGKILL, signal.SIGINT])
def test_killed_and_continued(whole, tmp_path, sig):
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    command = [sys.executable, '-W', 'ignore', '-c', CODE, str(tmp_path), root]
    for at in (3, 17, 30):
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for line in child.stdout:
            if int(line) >= at: break
        time.sleep(random.random()*.03)
        child.send_signal(sig)
        child.stdout.close()
        assert child.wait() != 0
    run = train(MODEL, batch, RULE, 40, checkpoint=tmp_path/'run', log=tmp_path/'log', progress=False)
    assert bits(run) == bits(whole) and [line['step'] for line in read_log(tmp_path/'log')] == list(range(1, 41))


def test_truncated_checkpoint_is_refused(tmp_path):
    train(MODEL, batch, RULE, 2, checkpoint=tmp_path/'run', progress=False)
    data = (tmp_path/'run').read_bytes()
    (tmp_path/'run').write_bytes(data[:-5])
    with pytest.raises(CheckpointError): train(MODEL, batch, RULE, 4, checkpoint=tmp_path/'run', progress=False)
    with pytest.raises(CheckpointError): train(Seq(Embedding(20, 9), Linear(9, 20)), batch, RULE, 4, checkpoint=tmp_path/'run', progress=False)


def test_micro_batches():
    "Two micro-batches in order are one batch of both, to rounding; and the bits are the same every time."
    net, rule = Seq(Linear(3, 4), ReLU(), Linear(4, 2)), SGD(lr=.1)
    x, t = np.random.default_rng(0).normal(size=(8, 3)).astype('f4'), np.random.default_rng(1).normal(size=(8, 2)).astype('f4')
    def half(rng, step):
        half.turn = (half.turn + 1) % 2
        return x[4*half.turn:4*half.turn + 4], t[4*half.turn:4*half.turn + 4]
    runs = []
    for _ in range(2):
        half.turn = 1
        runs.append(train(net, half, rule, 5, mean_squared_error, micro=2, progress=False))
    one = train(net, lambda rng, step: (x, t), rule, 5, mean_squared_error, progress=False)
    assert bits(runs[0]) == bits(runs[1])
    for a, b in zip(leaves(one.parameters), leaves(runs[0].parameters)): assert np.allclose(a, b, atol=1e-6)


def test_clipping_bounds_a_step():
    net, rule = Linear(3, 2, bias=False), SGD(lr=1.)
    x, t = np.full((4, 3), 100, 'f4'), np.zeros((4, 2), 'f4')
    run = start(net, rule)
    before = run.parameters[0].copy()
    run, _ = step(net, mean_squared_error, rule, run, net.zeros(), lambda rng, step: (x, t), longest=.5)
    assert abs(np.linalg.norm(run.parameters[0] - before) - .5) < 1e-4


def test_log_and_evaluation(tmp_path):
    seen = lambda model, p: {'dropped': sum(getattr(q, 'p', 0) for q in model.parts())}
    train(MODEL, batch, RULE, 5, log=tmp_path/'log', evaluate=seen, evaluate_every=2, progress=False)
    lines = read_log(tmp_path/'log')
    assert [('dropped' in line) for line in lines] == [False, True, False, True, True] and lines[1]['dropped'] == 0
    with open(tmp_path/'log', 'a') as f: f.write('{"step": 6, "lo')
    assert len(read_log(tmp_path/'log')) == 5
    plot_log(tmp_path/'log', tmp_path/'loss.png')
    assert (tmp_path/'loss.png').stat().st_size > 1000


def test_refusals():
    with pytest.raises(TrainError, match='smaller learning rate'), np.errstate(all='ignore'):
        train(Seq(Linear(3, 4), Linear(4, 2)), lambda rng, step: (np.ones((2, 3), 'f4'), np.ones((2, 2), 'f4')), SGD(lr=1e30), 50, mean_squared_error, progress=False)
    for bad in (dict(steps=-1), dict(steps=1, every=0), dict(steps=1, micro=0)):
        with pytest.raises(ValueError, match='expected'): train(MODEL, batch, RULE, progress=False, **bad)
