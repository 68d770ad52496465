"""A program that NumPy would run until the last line, and that bendml refuses before the first.

    bendml check examples/refused.py
"""
import numpy as np
from bendml.shape import Dim, L, Mat, Vec, typed

B = Dim('B')


@typed
def hidden(x: Mat[B, L[784]], w: Mat[L[784], L[128]], b: Vec[L[128]]) -> Mat[B, L[128]]:
    return np.maximum(x @ w + b, 0)


@typed
def scores(h: Mat[B, L[128]], w: Mat[L[10], L[128]]) -> Mat[B, L[10]]:
    return h @ w
