"Training: the same bits after any stop, what is written down, what is refused."
import os, random, signal, subprocess, sys, time
from dataclasses import replace
from pathlib import Path
import numpy as np
import pytest

from bendml.checkpoint import CheckpointError, SaveError, load, read_safetensors
from bendml.nn.layer import Residual, Seq, leaves
from bendml.nn.layers import Dropout, Embedding, LayerNorm, Linear, ReLU, mean_squared_error, self_attention
from bendml.optim import SGD, Adam, AdamW, warmup_cosine
from bendml.train import TrainError, about, plot_log, read_log, start, step, train

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
def slowly(rng, step): time.sleep(.01); print(step, flush=True); return batch(rng, step)
train(MODEL, slowly, RULE, 40, checkpoint=sys.argv[1] + '/run', every=1, log=sys.argv[1] + '/log', progress=False)
'''


@pytest.mark.slow
def test_killed_and_continued(whole, tmp_path):
    "At ten random moments, by SIGKILL and SIGINT in turn; most of them while a checkpoint is written. Then the same bits, and every step once in the log."
    root, rng = os.path.dirname(os.path.dirname(os.path.abspath(__file__))), random.Random(3)
    command = [sys.executable, '-W', 'ignore', '-c', CODE, str(tmp_path), root]
    for n, at in enumerate(sorted(rng.sample(range(1, 39), 10))):
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for line in child.stdout:
            if int(line) >= at: break
        time.sleep(rng.random()*.02)
        child.send_signal((signal.SIGKILL, signal.SIGINT)[n % 2])
        child.communicate()
        assert child.returncode != 0
        if (tmp_path/'run').exists(): read_safetensors(tmp_path/'run')   # whole, whatever the moment
    run = train(MODEL, batch, RULE, 40, checkpoint=tmp_path/'run', log=tmp_path/'log', progress=False)
    assert bits(run) == bits(whole) and [line['step'] for line in read_log(tmp_path/'log')] == list(range(1, 41))


def test_interrupted(whole, tmp_path):
    "Ctrl-C in the middle of a step: the step is finished and saved, then it is raised, and nothing is lost."
    def pressed(rng, step):
        if step == 9: os.kill(os.getpid(), signal.SIGINT)
        return batch(rng, step)
    with pytest.raises(KeyboardInterrupt): train(MODEL, pressed, RULE, 40, checkpoint=tmp_path/'run', every=100, log=tmp_path/'log', progress=False)
    assert len(read_log(tmp_path/'log')) == 10 and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert bits(train(MODEL, batch, RULE, 40, checkpoint=tmp_path/'run', progress=False)) == bits(whole)


@pytest.mark.parametrize('broken', ['write', 'fsync', 'replace'])
def test_full_disk(whole, tmp_path, monkeypatch, broken):
    "The disk is full at the third checkpoint: a named refusal, the second one stands, and going on from it gives the same bits."
    real, calls = getattr(os, broken), []
    def full(*args):
        if broken == 'fsync' and os.path.isdir(f'/proc/self/fd/{args[0]}'): return real(*args)
        calls.append(1)
        if len(calls) > 2: raise OSError(28, 'No space left on device')
        return real(*args)
    if broken == 'write':
        import bendml.checkpoint.safetensors as files
        real_open = open
        class Full:
            def __init__(self, f): self.f = f
            def write(self, data):
                if len(calls) > 2: raise OSError(28, 'No space left on device')
                return self.f.write(data)
            def __getattr__(self, name): return getattr(self.f, name)
            def __enter__(self): return self
            def __exit__(self, *e): self.f.close()
        def opened(path, mode='r', *more, **options):
            f = real_open(path, mode, *more, **options)
            if 'w' not in mode: return f
            calls.append(1)
            return Full(f)
        monkeypatch.setattr(files, 'open', opened, raising=False)
    else: monkeypatch.setattr(os, broken, full)
    with pytest.raises(SaveError, match='No space left on device'): train(MODEL, batch, RULE, 40, checkpoint=tmp_path/'run', every=4, progress=False)
    monkeypatch.undo()
    assert len(calls) == 3 and [f.name for f in tmp_path.iterdir()] == ['run']
    assert load(tmp_path/'run', {'about': about(MODEL, RULE, ''), 'run': start(MODEL, RULE)})['run'].steps == 8
    assert bits(train(MODEL, batch, RULE, 40, checkpoint=tmp_path/'run', progress=False)) == bits(whole)


@pytest.mark.parametrize('other, words', [
    (dict(model=Seq(*MODEL.parts()[:2], Dropout(.3), MODEL.parts()[3])), 'a run with another model(.|\n)*Dropout\\(p=0.3(.|\n)*Dropout\\(p=0.2'),
    (dict(model=Seq(Embedding(20, 9), Linear(9, 20))), 'another state'),
    (dict(rule=AdamW(lr=1e-2, betas=(.9, .95))), 'a run with another optimizer(.|\n)*0.95'), (dict(rule=SGD(lr=1e-2)), 'another state'), (dict(rule=Adam(lr=1e-2)), 'optimizer(.|\n)*Adam'),
    (dict(data='letters'), 'a run with another data\n- expected : letters\n- observed : words')])
def test_another_run_is_refused_by_name(tmp_path, other, words):
    mine = dict(model=MODEL, batch=batch, rule=RULE, data='words')
    train(**mine, steps=2, checkpoint=tmp_path/'run', progress=False)
    before = (tmp_path/'run').read_bytes()
    with pytest.raises(CheckpointError, match=words): train(**mine | other, steps=4, checkpoint=tmp_path/'run', progress=False)
    assert (tmp_path/'run').read_bytes() == before
    faster = train(**mine | dict(rule=AdamW(lr=1.)), steps=4, checkpoint=tmp_path/'run', progress=False)   # a learning rate may be changed
    assert faster.steps == 4


def slowly(name, shape): return .25 if name.startswith('0.') else 1, len(shape) > 1
def quickly(name, shape): return 1, 1

def test_groups_are_continued(tmp_path):
    "With factors of the rate and of the decay: stopped at any step and continued, the same bits; with others, refused."
    rule = replace(RULE, decay=.1, factors=slowly)
    whole = bits(train(MODEL, batch, rule, 10, progress=False))
    assert whole != bits(train(MODEL, batch, replace(RULE, decay=.1), 10, progress=False))
    for steps in (1, 4, 10): run = train(MODEL, batch, rule, steps, checkpoint=tmp_path/'run', progress=False)
    assert bits(run) == whole
    with pytest.raises(CheckpointError, match='another optimizer(.|\n)*factors=quickly(.|\n)*factors=slowly'): train(MODEL, batch, replace(rule, factors=quickly), 12, checkpoint=tmp_path/'run', progress=False)


def test_truncated_checkpoint_is_refused(tmp_path):
    train(MODEL, batch, RULE, 2, checkpoint=tmp_path/'run', progress=False)
    data = (tmp_path/'run').read_bytes()
    for cut in (5, 300, len(data) - 3, len(data)):
        (tmp_path/'run').write_bytes(data[:-cut])
        with pytest.raises(CheckpointError): train(MODEL, batch, RULE, 4, checkpoint=tmp_path/'run', progress=False)
        assert (tmp_path/'run').read_bytes() == data[:-cut]   # and nothing is written over it


def test_micro_batches():
    "A batch in two parts, in order, is the batch as a whole, to rounding; the bits are the same every time."
    net, rule = Seq(Linear(3, 4), ReLU(), Linear(4, 2)), SGD(lr=.1)
    x, t = np.random.default_rng(0).normal(size=(8, 3)).astype('f4'), np.random.default_rng(1).normal(size=(8, 2)).astype('f4')
    one, two, again = (train(net, lambda rng, step: (x, t), rule, 5, mean_squared_error, micro=micro, progress=False) for micro in (1, 2, 2))
    assert bits(two) == bits(again)
    for a, b in zip(leaves(one.parameters), leaves(two.parameters)): assert np.allclose(a, b, atol=1e-6)
    with pytest.raises(ValueError, match='a multiple of 3 examples'): train(net, lambda rng, step: (x, t), rule, 5, mean_squared_error, micro=3, progress=False)


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


def test_the_bar(monkeypatch):
    "On a terminal: steps, the time that is left, the speed and the loss; elsewhere nothing."
    import io
    class Terminal(io.StringIO):
        def isatty(self): return True
    for stream, words in ((Terminal(), ('/3 ', 'steps/s', '<', 'loss=')), (io.StringIO(), ())):
        monkeypatch.setattr(sys, 'stderr', stream)
        train(MODEL, lambda rng, step: (time.sleep(.11*bool(words)), batch(rng, step))[1], RULE, 3)   # a bar moves ten times a second
        assert all(word in stream.getvalue() for word in words) and bool(stream.getvalue()) == bool(words), repr(stream.getvalue())


def test_refusals():
    with pytest.raises(TrainError, match='smaller learning rate'), np.errstate(all='ignore'):
        train(Seq(Linear(3, 4), Linear(4, 2)), lambda rng, step: (np.ones((2, 3), 'f4'), np.ones((2, 2), 'f4')), SGD(lr=1e30), 50, mean_squared_error, progress=False)
    for bad in (dict(steps=-1), dict(steps=1, every=0), dict(steps=1, micro=0)):
        with pytest.raises(ValueError, match='expected'): train(MODEL, batch, RULE, progress=False, **bad)


@pytest.mark.slow
def test_the_example_learns_and_goes_on(tmp_path):
    example = Path(__file__).resolve().parent.parent/'examples/quarters.py'
    for _ in range(2):
        said = subprocess.run([sys.executable, '-W', 'ignore', example], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
        assert said.startswith('500 steps, 9'), said
