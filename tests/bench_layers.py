"""Layers, losses, optimizers and a training step against PyTorch, alternating in one run, at the same threads and precision.

    python tests/bench_layers.py [adamw loss rows products attention step]
"""
import os, subprocess, sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tests.bench import alternate, report


def start(threads: int):
    import numpy as np, torch
    from bendml.threads import set_threads
    set_threads(threads)
    torch.set_num_threads(threads)
    return np, torch, np.random.default_rng(0)


def adamw(threads: int, n: int = 100_000_000) -> None:
    "One step over n parameters; ours also sets the gradient to zero."
    np, torch, rng = start(threads)
    from bendml.nn.layer import Layer
    from bendml.optim import AdamW
    class Flat(Layer):
        def shapes(self): return {'w': (n,)}
    def full(): return rng.standard_normal(n, np.float32)
    net, rule = Flat(), AdamW(lr=1e-4, decay=.01, factors=lambda name, shape: (1, 1))
    p, g = (full(),), (full(),)
    state = rule.start(net)
    half = AdamW(lr=1e-4, decay=.01, factors=lambda name, shape: (1, 1), bf16=True)
    small = half.start(net)
    w = torch.nn.Parameter(torch.from_numpy(full()))
    w.grad = torch.from_numpy(full())
    fused, plain = torch.optim.AdamW([w], lr=1e-4, fused=True), torch.optim.AdamW([w], lr=1e-4)
    seconds = alternate({'PyTorch, fused=True (gradient not zeroed)': fused.step, 'PyTorch, default (gradient not zeroed)': plain.step,
                         'bendml AdamW, gradient zeroed': lambda: rule.step(net, p, g, state),
                         'bendml AdamW, bf16 means, gradient zeroed': lambda: half.step(net, p, g, small)}, 7)
    report(f'AdamW, {n//10**6} M parameters, {threads} threads', seconds, 'PyTorch, fused=True (gradient not zeroed)')
    report('  the same, against the default', seconds, 'PyTorch, default (gradient not zeroed)')


def loss(threads: int) -> None:
    np, torch, rng = start(threads)
    from bendml.nn.layers import cross_entropy
    z, y = rng.standard_normal((256, 49152), np.float32), rng.integers(0, 49152, 256)
    t, ty = torch.from_numpy(z.copy()).requires_grad_(), torch.from_numpy(y)
    def theirs():
        t.grad = None
        torch.nn.functional.cross_entropy(t, ty).backward()
    seconds = alternate({'PyTorch': theirs, 'bendml, over the scores': lambda: cross_entropy(z, y), 'bendml, scores kept': lambda: cross_entropy(z, y, keep=True)}, 15, 1)
    report(f'cross-entropy 256 x 49152, forward and backward, {threads} threads', seconds, 'PyTorch')


def rows(threads: int) -> None:
    np, torch, rng = start(threads)
    from bendml.nn.layers import GELU, GELUErf, LayerNorm, RMSNorm, SiLU, Softmax
    F = torch.nn.functional
    for layer, fn, shape in ((LayerNorm(768), lambda x, g, b: F.layer_norm(x, (768,), g, b), (2048, 768)), (RMSNorm(768), lambda x, g: F.rms_norm(x, (768,), g, 1e-5), (2048, 768)),
                             (Softmax(), lambda x: x.softmax(-1), (4096, 1024)), (GELU(), lambda x: F.gelu(x, approximate='tanh'), (2048, 3072)), (GELUErf(), F.gelu, (2048, 3072)), (SiLU(), F.silu, (2048, 3072))):
        x, p, g = rng.standard_normal(shape, np.float32), layer.init(rng), layer.zeros()
        dy = rng.standard_normal(shape, np.float32)
        inputs = [torch.from_numpy(a.copy()).requires_grad_() for a in (x, *p)]
        tdy = torch.from_numpy(dy)
        def theirs():
            for a in inputs: a.grad = None
            fn(*inputs).backward(tdy)
        def ours():
            _, saved = layer.forward(p, x)
            layer.backward(p, saved, dy, g)
        report(f'{type(layer).__name__} {shape}, forward and backward, {threads} threads', alternate({'PyTorch': theirs, 'bendml': ours}, 21, 1), 'PyTorch')


def products(threads: int) -> None:
    "The three products of each linear layer of the GPT below."
    np, torch, rng = start(threads)
    from bendml.nn.products import product
    for n, m in ((384, 1152), (384, 384), (384, 1536), (1536, 384)):
        x, w, dy = (rng.standard_normal(s, np.float32) for s in ((2048, n), (m, n), (2048, m)))
        outs = [np.zeros(s, np.float32) for s in ((2048, m), (2048, n), (m, n))]
        ts = [[torch.from_numpy(a) for a in (a, b, c.copy())] for a, b, c in zip((x, dy, dy.T), (w.T, w, x), outs)]
        def ours():
            for a, b, c, add in zip((x, dy, dy.T), (w.T, w, x), outs, (False, False, True)): product(a, b, c, add)
        def theirs():
            for a, b, c in ts: torch.mm(a, b, out=c)
        report(f'products of a linear layer {n} to {m}, {threads} threads', alternate({'PyTorch': theirs, 'bendml, the last one added': ours}, 9, 1), 'PyTorch')


def attention(threads: int) -> None:
    np, torch, rng = start(threads)
    from bendml.nn.layers import Attend
    layer = Attend(6, 64)
    x, dy = rng.standard_normal((8, 256, layer.takes), np.float32), rng.standard_normal((8, 256, 384), np.float32)
    tx, tdy = torch.from_numpy(x.copy()).requires_grad_(), torch.from_numpy(dy)
    def theirs():
        tx.grad = None
        q, k, v = (a.view(8, 256, 6, 64).transpose(1, 2) for a in tx.split(384, 2))
        torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(8, 256, 384).backward(tdy)
    def ours():
        _, saved = layer.forward((), x)
        layer.backward((), saved, dy, ())
    report(f'causal attention, 8 texts of 256, 6 heads of 64, forward and backward, {threads} threads', alternate({'PyTorch': theirs, 'bendml': ours}, 9, 1), 'PyTorch')


def step(threads: int) -> None:
    "A GPT of 6 layers, 384 wide, 6 heads, 65 characters: one training step on 8 texts of 256."
    np, torch, rng = start(threads)
    from tests.gpt import copy_into, ours, torch_gpt
    from bendml.nn.layers import cross_entropy
    from bendml.optim import AdamW
    sizes = dict(vocab=65, width=384, heads=6, depth=6, longest=256)
    net, model = ours(**sizes), torch_gpt(**sizes)
    p, g, rule = net.init(rng), net.zeros(), AdamW(lr=1e-4)
    copy_into(model, p)
    state = [rule.start(net)]
    ids = rng.integers(0, 65, (8, 257))
    x, y = ids[:, :-1], ids[:, 1:]
    tx, ty = (torch.from_numpy(np.ascontiguousarray(a)) for a in (x, y))
    def mine():
        z, saved = net.forward(p, x)
        value, dz = cross_entropy(z, y)
        net.backward(p, saved, dz, g)
        state[0] = rule.step(net, p, g, state[0])
    def eager(rule):
        def run():
            rule.zero_grad()
            torch.nn.functional.cross_entropy(model(tx).flatten(0, 1), ty.flatten()).backward()
            rule.step()
        return run
    seconds = alternate({'PyTorch, eager': eager(torch.optim.AdamW(model.parameters(), lr=1e-4)),
                         'PyTorch, eager, fused AdamW': eager(torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)), 'bendml': mine}, 5)
    report(f'training step of a GPT, {net.count/1e6:.1f} M parameters, {threads} threads', seconds, 'PyTorch, eager')


if __name__ == '__main__':
    wanted = [a for a in sys.argv[1:] if not a.isdigit()] or ['adamw', 'loss', 'rows', 'products', 'attention', 'step']
    if any(a.isdigit() for a in sys.argv[1:]):
        for name in wanted: globals()[name](int(next(a for a in sys.argv[1:] if a.isdigit())))
    else:
        for name in wanted:
            for threads in '12':
                env = {k: v for k, v in os.environ.items() if k not in ('OPENBLAS_CORETYPE', 'OPENBLAS_L2_SIZE')}
                env |= {'OPENBLAS_NUM_THREADS': threads, 'OMP_NUM_THREADS': threads}
                subprocess.run([sys.executable, '-W', 'ignore', __file__, name, threads], env=env, check=True)
