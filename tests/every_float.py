"""The error of exp, tanh and erf over every float32 there is, 2^32 of them; takes some minutes.

    python tests/every_float.py [erf exp tanh]
"""
import sys, time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import numpy as np
from numba import njit, prange
from bendml.nn import elementary

RANGES = {'erf': ((0., 1e-3), (1e-3, 4.2), (4.2, float(np.finfo('f4').max))), 'exp': ((0., 1.), (1., 88.)), 'tanh': ((0., 1e-3), (1e-3, 10.), (10., float(np.finfo('f4').max)))}


@njit(parallel=True)
def odd(fn):
    "How many of the 2^31 numbers x, infinity and what is no number among them, have fn(-x) other than -fn(x)."
    wrong = np.zeros(64, np.int64)
    for b in prange(64):
        for i in range(b << 25, (b + 1) << 25):
            x = np.uint32(i).view(np.float32)
            y, z = fn(x), fn(-x)
            if not (y == -z or (x != x and y != y and z != z)): wrong[b] += 1
    return wrong.sum()


if __name__ == '__main__':
    for name in sys.argv[1:] or RANGES:
        fn, begin = getattr(elementary, name), time.perf_counter()
        for low, high in RANGES[name]:
            print(f'{name} from {low:g} to {high:g}: {elementary.worst_ulps(fn, low, high):.3f} ulp', flush=True)
            if name == 'exp': print(f'{name} from {-low:g} to {-min(high, 87.3):g}: {elementary.worst_ulps(fn, -low, -min(high, 87.3)):.3f} ulp', flush=True)
        if name != 'exp': print(f'{name}: of 2^31 numbers, {odd(fn)} are not the mirror of their negative; {time.perf_counter() - begin:.0f} s', flush=True)
