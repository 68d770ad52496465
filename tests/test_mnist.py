"MNIST: the published digits, the same bits in every order and on every number of threads, PyTorch as the judge."
import os, signal
import numpy as np, pytest
from click.testing import CliRunner
from bendml import mnist
from bendml.checkpoint import CheckpointError
from bendml.data import Mnist, load_mnist
from bendml.nn.layer import leaves
from bendml.threads import get_threads, set_threads
from bendml.optim import SGD
from bendml import train as training
from bendml.tensor import cross_entropy
from bendml.train import TrainError


@pytest.fixture(scope='module')
def digits(mnist_dir): return load_mnist(mnist_dir)


def trained(data, **options):
    "The parameters, and the loss and hits of each epoch."
    p = mnist.init()
    return p, [(str(e.loss), e.hits) for e in mnist.train(p, data, progress=False, **options)]

def equal(p, q): return np.array_equal(mnist.MLP.dump(p), mnist.MLP.dump(q))


def run(*options):
    out = CliRunner().invoke(mnist.command, options)
    assert out.exit_code == 0, out.output
    return out.output


def test_fifty_sequential_steps(tmp_path):
    assert run('--order', 'sequential', '--steps', '50', '--out', str(tmp_path)).splitlines()[-1].startswith('epoch 1  loss 1.6616004  hits 7829/10000  ')


@pytest.mark.slow
@pytest.mark.parametrize('order', ['sequential', 'fast'])
def test_three_epochs_give_the_published_digits(digits, order):
    "Published: 0.5204771 / 9129, 0.27043572 / 9298, 0.2156194 / 9418. Roundings differ, and grow from epoch to epoch."
    (first, h1), (second, h2), (third, h3) = trained(digits, epochs=3, order=order)[1]
    assert (first, h1) == ('0.5204771', 9129)
    assert abs(float(second)/0.27043572 - 1) < 1e-5 and abs(h2 - 9298) <= 1
    assert abs(float(third)/0.2156194 - 1) < 1.1e-4 and abs(h3 - 9418) <= 3


@pytest.mark.parametrize('batch', [1, 7, 100])
def test_orders_and_threads_give_the_same_bits(digits, batch):
    few = Mnist(*(a[:250] for a in digits))
    reference, line = trained(few, order='sequential', batch=batch, epochs=2)
    for threads in range(1, get_threads() + 1):
        set_threads(threads)
        fast, fast_line = trained(few, batch=batch, epochs=2)
        assert equal(reference, fast) and line == fast_line


@pytest.mark.parametrize('batch', [1, 7, 100])
@pytest.mark.parametrize('seed', [0, 1])
def test_a_step_in_one_piece_is_the_layers(digits, batch, seed, monkeypatch):
    "Bit for bit, in all parameters and losses after each of forty steps; and it is the one piece that was compared."
    count, calls = [], mnist.descend
    monkeypatch.setattr(mnist, 'descend', lambda *a: count.append(1) or calls(*a))
    def run(one):
        p, rule, losses, bits = mnist.init(seed), SGD(lr=lambda step: .2/(1 + step)), [], []
        def after(run, loss): losses.append(loss); bits.append(mnist.MLP.dump(run.parameters).tobytes())
        training.train(mnist.MLP, mnist.batches(digits, batch, mnist.Pictures, 40), rule, 40, cross_entropy, training.Run(p, rule.start(mnist.MLP), None), progress=False, after=after, one=one)
        return losses, bits
    assert run(mnist.step) == run(training.step) and len(count) == 40


@pytest.mark.parametrize('options', [dict(micro=2), dict(longest=1.), dict(rule=SGD(lr=.1, momentum=.9)), dict(rule=SGD(lr=.1, decay=.1)), dict(rule=SGD(lr=.1, factors=lambda name, shape: (.5, 1))), dict(order='sequential')])
def test_other_steps_go_through_the_layers(digits, options, monkeypatch):
    few = Mnist(*(a[:200] for a in digits))
    def never(*_): raise AssertionError('in one piece')
    monkeypatch.setattr(mnist, 'step', training.step)
    expected = trained(few, **options)
    monkeypatch.undo()
    if not {'micro', 'longest'} & set(options): monkeypatch.setattr(mnist, 'descend', never)
    got = trained(few, **options)
    assert equal(expected[0], got[0]) and expected[1] == got[1]


def test_nothing_moves_when_the_loss_is_no_number(digits):
    p = mnist.init()
    p[2][1][0] = np.nan
    before, rule = mnist.MLP.dump(p).tobytes(), SGD(lr=.1)
    with pytest.raises(TrainError, match='the loss is nan at step 1'): mnist.step(mnist.MLP, cross_entropy, rule, training.Run(p, rule.start(mnist.MLP), None), (), mnist.batches(digits, 100, mnist.Pictures, 1))
    assert mnist.MLP.dump(p).tobytes() == before


def test_fast_is_close_for_pictures_without_a_blank_pixel(digits):
    "Nothing to leave out: still the same bits."
    noise = np.random.default_rng(1).integers(1, 256, (100, 28, 28), np.uint8)
    full = Mnist(noise, digits.train_labels[:100], noise, digits.test_labels[:100])
    assert equal(trained(full, order='sequential', batch=50)[0], trained(full, batch=50)[0])


def test_a_step_is_pytorchs(digits):
    "Twenty steps against PyTorch's autograd and SGD, in float64, so that only a wrong formula could differ."
    torch = pytest.importorskip('torch')
    p = [torch.tensor(a, dtype=torch.float64, requires_grad=True) for a in leaves(mnist.init())]
    sgd = torch.optim.SGD(p, lr=0.1)
    for i in range(0, 2000, 100):
        x, y = torch.tensor(mnist.pixels(digits.train_images[i:i + 100])), torch.tensor(digits.train_labels[i:i + 100].astype(np.int64))
        loss = torch.nn.functional.cross_entropy(torch.relu(x.double() @ p[0] + p[1]) @ p[2].T + p[3], y)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
    ours, _ = trained(digits, steps=20)
    for a, b in zip(leaves(ours), p, strict=True): assert np.abs(a - b.detach().numpy()).max() < 2e-6


def test_convolutions_are_pytorchs(digits):
    "The convolution network's loss and gradients in float32, against float64 truth."
    torch = pytest.importorskip('torch')
    x, y = mnist.pixels(digits.train_images[:20]), digits.train_labels[:20].astype(np.int64)
    p, g = mnist.fresh(mnist.CONV), mnist.CONV.zeros()
    from bendml.nn.layers import cross_entropy
    z, saved = mnist.CONV.forward(p, x)
    loss, dz = cross_entropy(z, y)
    mnist.CONV.backward(p, saved, dz, g)
    def turned(w, c): return w.reshape(len(w), 5, 5, c).permute(0, 3, 1, 2)
    a, b, c, d, e, f = t = [torch.tensor(w, dtype=torch.float64, requires_grad=True) for w in leaves(p)]
    F = torch.nn.functional
    h = F.max_pool2d(torch.relu(F.conv2d(torch.tensor(x).double().view(-1, 1, 28, 28), turned(a, 1), b)), 2)
    h = F.max_pool2d(torch.relu(F.conv2d(h, turned(c, 8), d)), 2).permute(0, 2, 3, 1).flatten(1)
    truth = F.cross_entropy(h @ e.T + f, torch.tensor(y))
    truth.backward()
    assert abs(loss - truth.item()) < 1e-6
    for mine, theirs in zip(leaves(g), t, strict=True): assert np.abs(mine - theirs.grad.numpy()).max() < 1e-5*np.abs(theirs.grad.numpy()).max()


def test_stopped_and_continued(digits, tmp_path):
    "In the middle of an epoch and at its end; losses and digits as without a stop. Other data and another network are refused by name."
    few = Mnist(*(a[:700] for a in digits))
    whole, lines = trained(few, batch=50, epochs=2)
    assert trained(few, batch=50, epochs=1, checkpoint=tmp_path/'c')[1] == lines[:1]
    options = dict(batch=50, epochs=2, checkpoint=tmp_path/'c', progress=False)
    def stop(model, p): os.kill(os.getpid(), signal.SIGINT); return {}
    with pytest.raises(KeyboardInterrupt): list(mnist.train(mnist.init(), few, evaluate=stop, evaluate_every=17, **options))
    p = mnist.init()
    got = list(mnist.train(p, few, **options))
    assert [(str(e.loss), e.hits) for e in got] == lines[1:] and got[0].number == 2 and equal(whole, p)
    with pytest.raises(CheckpointError, match='a run with another data(.|\n)*batches of 25'): trained(few, batch=25, epochs=2, checkpoint=tmp_path/'c')
    with pytest.raises(CheckpointError, match='another state'): list(mnist.train(mnist.fresh(mnist.CONV), few, network=mnist.CONV, **options))


def test_the_other_seeds_differ_and_repeat():
    assert not equal(mnist.init(0), mnist.init(1)) and equal(mnist.init(1), mnist.init(1))


def test_a_diverging_loss_is_told(digits):
    with pytest.raises(TrainError, match='the loss is .* at step(.|\n)*a smaller learning rate'): list(mnist.train(mnist.init(), digits, rule=SGD(lr=1e20), steps=20, progress=False))
    out = CliRunner().invoke(mnist.command, ['--lr', '1e20', '--steps', '20'])
    assert out.exit_code == 1 and 'a smaller learning rate' in out.output and 'Traceback' not in out.output


@pytest.mark.parametrize('options, words', [
    (['--steps', '0'], 'not in the range'), (['--batch', '60001'], 'not in the range'), (['--lr', '0'], 'not in the range'),
    (['--order', 'any'], "'fast', 'sequential'"), (['--threads', '999'], 'the number of cores'), (['--seed', '-1'], 'not in the range'),
])
def test_bad_options(options, words):
    out = CliRunner().invoke(mnist.command, options)
    assert out.exit_code in (1, 2) and words in out.output


def test_the_picture(tmp_path):
    run('--steps', '3', '--out', str(tmp_path/'new'/'folder'))
    assert (tmp_path/'new/folder/mnist.png').read_bytes()[:8] == b'\x89PNG\r\n\x1a\n'
