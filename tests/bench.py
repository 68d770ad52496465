"""Speeds as ratios against PyTorch, alternating in one run, at the same threads and precision.

    make bench
"""
import os, statistics, subprocess, sys, time


def alternate(rows: dict, rounds: int = 9, warm: int = 0) -> dict:
    """Run each row's function in turn, `rounds` times after one that does not count; the seconds of each. Before each a pause: the threads of
    PyTorch and of BLAS look for work for milliseconds after a call, and would keep a core from the row that follows. `warm` more calls
    before each wake its own threads, where a call is short."""
    seconds = {name: [] for name in rows}
    for turn in range(rounds + 1):
        for name, run in rows.items():
            time.sleep(.2)
            for _ in range(warm): run()
            begin = time.perf_counter()
            run()
            if turn: seconds[name].append(time.perf_counter() - begin)
    return seconds


def report(title: str, seconds: dict, peer: str) -> None:
    "A line a row: median and best, and how many times faster than the peer, median against median and best against best."
    median, best = ({n: f(s) for n, s in seconds.items()} for f in (statistics.median, min))
    print(title)
    for n in seconds:
        print(f'  {n:44} {median[n]:.3f} s (best {best[n]:.3f})   {median[peer]/median[n]:.2f}x (best {best[peer]/best[n]:.2f}x)')


def mnist(threads: int) -> None:
    import numpy as np, torch
    from torch.nn.functional import cross_entropy
    from bendml import train
    from bendml.data import load_mnist
    from bendml.mnist import MLP, ORDERS, batches, init, list_pixels, pixels, step
    from bendml.optim import SGD
    from bendml.processes import Alone
    from bendml.tensor import cross_entropy as loss
    from bendml.threads import set_threads
    set_threads(threads)
    torch.set_num_threads(threads)
    data = load_mnist()
    x, y = pixels(data.train_images), data.train_labels
    tx, ty = torch.from_numpy(x), torch.from_numpy(y.astype(np.int64))

    def ours(order):
        "An epoch in the training loop, as `bendml mnist` runs it."
        source, rule = batches(data, 100, ORDERS[order], 600), SGD(lr=0.1)
        list_pixels(batches(data, 1, ORDERS[order], 1), 1, Alone())   # loads what is compiled
        begin = time.perf_counter()
        list_pixels(source, 600, Alone())
        if order == 'fast': ours.listed = time.perf_counter() - begin
        run = train.Run(init(), rule.start(MLP), np.random.default_rng(0))
        def epoch():
            nonlocal run
            run = train.train(MLP, source, rule, run.steps + 600, loss, run, progress=False, one=step)
        return epoch

    def dense():
        "The same step with NumPy's products (BLAS), nothing left out."
        (w1, b1), _, (w2, b2) = init()
        def step(x, y):
            n = len(x)
            h = np.maximum(x @ w1 + b1, 0)
            z = h @ w2.T + b2
            z = np.exp(z - z.max(axis=1, keepdims=True))
            z /= z.sum(axis=1, keepdims=True)
            loss = -np.log(z[np.arange(n), y]).mean()
            z[np.arange(n), y] -= 1
            z /= n
            dh = (z @ w2)*(h > 0)
            for w, dw in ((w1, x.T @ dh), (b1, dh.sum(0)), (w2, z.T @ h), (b2, z.sum(0))): w -= np.float32(0.1)*dw
            return loss
        return lambda: [step(x[i:i + 100], y[i:i + 100]) for i in range(0, 60_000, 100)]

    def pytorch(fused):
        (w1, b1), _, (w2, b2) = init()
        p = [torch.nn.Parameter(torch.from_numpy(a)) for a in (w1, b1, w2.T.copy(), b2)]
        sgd = torch.optim.SGD(p, lr=0.1, fused=fused or None)
        def epoch():
            total = 0.
            for i in range(0, 60_000, 100):
                loss = cross_entropy(torch.relu(tx[i:i + 100] @ p[0] + p[1]) @ p[2] + p[3], ty[i:i + 100])
                sgd.zero_grad()
                loss.backward()
                sgd.step()
                total += float(loss.detach())
        return epoch
    seconds = alternate({
        'PyTorch, eager': pytorch(False),
        'PyTorch, eager, fused SGD': pytorch(True),
        'bendml, fast (blank pixels left out)': ours('fast'),
        'bendml, sequential': ours('sequential'),
        'NumPy, dense': dense(),
    })
    report(f'MNIST, one epoch, {threads} thread{"s"*(threads > 1)}; listing the non-blank pixels, once: {ours.listed:.2f} s', seconds, 'PyTorch, eager')


if __name__ == '__main__':
    if sys.argv[1:]: mnist(int(sys.argv[1]))
    else:
        for threads in ('1', '2'):
            env = {k: v for k, v in os.environ.items() if k not in ('OPENBLAS_CORETYPE', 'OPENBLAS_L2_SIZE')}
            env |= {'OPENBLAS_NUM_THREADS': threads, 'OMP_NUM_THREADS': threads}
            subprocess.run([sys.executable, '-W', 'ignore', __file__, threads], env=env, check=True)
