"""A network that learns in which quarters of the plane two numbers have the same sign; stop it with Ctrl-C, start it again, and it goes on.

    python examples/quarters.py
"""
import numpy as np
from bendml import nn
from bendml.optim import AdamW
from bendml.train import train

draw = np.random.default_rng(0)
x = draw.normal(size=(2000, 2)).astype(np.float32)   # what goes in is float32
y = (x[:, 0]*x[:, 1] > 0).astype(int)                # a class for each row

net = nn.Seq(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 2))


def batch(rng, step):
    "64 rows and their classes: what one step learns from."
    i = rng.integers(0, len(x), 64)
    return x[i], y[i]


if __name__ == '__main__':
    run = train(net, batch, AdamW(lr=1e-2), steps=500, checkpoint='quarters.safetensors')
    scores, _ = net.forward(run.parameters, x)
    print(f'{run.steps} steps, {(scores.argmax(axis=1) == y).mean():.0%} of the classes are right')
