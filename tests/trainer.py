"""A small training run that can be killed: `python tests/trainer.py CHECKPOINT STEPS`; prints its step as it goes, and a hash of its state at the end."""
import hashlib, sys
from pathlib import Path
from typing import NamedTuple
import numpy as np
from bendml.checkpoint import flatten, load, save


class State(NamedTuple):
    step: int
    w: np.ndarray
    m: np.ndarray
    v: np.ndarray
    order: np.ndarray
    position: int
    loss: float | None
    rng: np.random.Generator

DATA = np.random.default_rng(1).normal(size=(64, 20)).astype('f4')
TARGET = DATA@np.random.default_rng(2).normal(size=(20, 300)).astype('f4')

def start(): return State(0, np.zeros((20, 300), 'f4'), np.zeros((20, 300), 'f4'), np.zeros((20, 300), 'f4'), np.arange(64), 0, None, np.random.default_rng(3))

def step(s: State) -> State:
    order = s.rng.permutation(64) if s.position == 0 else s.order
    rows = order[s.position:s.position + 8]
    keep = s.rng.random((8, 20)) > 0.1
    x = DATA[rows]*keep
    error = x@s.w - TARGET[rows]
    g = x.T@error/8
    m, v = 0.9*s.m + np.float32(0.1)*g, 0.99*s.v + np.float32(0.01)*g*g
    w = s.w - np.float32(0.01)*m/(np.sqrt(v) + np.float32(1e-8))
    return State(s.step + 1, w, m, v, order, (s.position + 8) % 64, float((error**2).mean()), s.rng)

path, steps = Path(sys.argv[1]), int(sys.argv[2])
s = load(path, like=start()) if path.exists() else start()
while s.step < steps:
    s = step(s)
    print(s.step, flush=True)
    if s.step % 3 == 0: save(path, s)
ends = {n: v.tobytes() if isinstance(v, np.ndarray) else repr(v).encode() for n, v in flatten(s).items()}
print(s.step, hashlib.sha256(b'|'.join(n.encode() + v for n, v in ends.items())).hexdigest())
