"""A training run shared out to processes, with accidents: `mpiexec -n 2 python tests/parallel.py ACCIDENT FOLDER STEPS`; rank 0 prints a hash of the state at the end."""
import hashlib, os, signal, sys
from pathlib import Path
import numpy as np
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from bendml.nn.layer import Residual, Seq, leaves
from bendml.nn.layers import Dropout, Embedding, LayerNorm, Linear, self_attention
from bendml.optim import AdamW
from bendml.processes import together
from bendml.train import train

MODEL = Seq(Embedding(20, 8), Residual(LayerNorm(8), self_attention(8, 2)), Dropout(.2), Linear(8, 20))
RULE = AdamW(lr=1e-2)


def batch(rng, step):
    ids = rng.integers(0, 20, (6, 7))
    return ids[:, :-1], ids[:, 1:]


def digest(run): return hashlib.sha256(b''.join(a.tobytes() for t in (run.parameters, run.optimizer.kept) for a in leaves(t)) + str(run.rng.bit_generator.state).encode()).hexdigest()


def main(accident: str, folder: str, steps: str) -> None:
    world = together()
    def accidents(rng, step):
        if accident == 'error' and step == 5 and world.rank == 1: raise KeyError('a file is missing')
        if accident == 'kill' and step == 5 and world.rank == 1: os.kill(os.getpid(), signal.SIGKILL)
        if accident == 'interrupt' and step == 5 and world.rank == 1: os.kill(os.getpid(), signal.SIGINT)
        if accident == 'odd': return tuple(x[:5] for x in batch(rng, step))
        return batch(rng, step)
    if accident == 'disk' and world.rank == 0:
        import resource
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
    seed = world.rank if accident == 'seeds' else 0
    def broken(run, loss):
        if accident == 'after' and run.steps == 5 and world.rank == 1: raise RuntimeError('only here')
    run = train(MODEL, accidents, RULE, int(steps), checkpoint=f'{folder}/run', every=2, log=f'{folder}/log', progress=False, world=world, seed=seed, after=broken)
    if world.rank == 0: print(run.steps, digest(run), flush=True)


if __name__ == '__main__': main(*sys.argv[1:])
