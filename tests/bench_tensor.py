"""Speeds of the tensor kernels, as ratios, alternating in one run; each number of threads in a process of its own.

    python tests/bench_tensor.py
"""
import os, statistics, subprocess, sys, time

sys.path.insert(0, os.path.dirname(__file__))
from bench import alternate

SHAPES = {'100x784x128': (100, 784, 128, ''), '784x100x128, A transposed': (784, 100, 128, 'a'), '256x768x3072': (256, 768, 3072, ''),
          '1024x1024x1024': (1024, 1024, 1024, ''), '2048x384x1536, B transposed': (2048, 384, 1536, 'b'), '384x2048x1536, A transposed': (384, 2048, 1536, 'a')}


def in_turn(rows: dict, rounds: int, calls: int) -> dict:
    """The seconds of each row's calls, the rows in turn. Before each, a pause in which the threads of the row before fall asleep, since those
    of BLAS and PyTorch look for work for a while and keep the cores; then two calls that do not count, for its own to wake."""
    seconds = {name: [] for name in rows}
    for _ in range(rounds):
        for name, run in rows.items():
            time.sleep(.2)
            run()
            run()
            for _ in range(calls):
                begin = time.perf_counter()
                run()
                seconds[name].append(time.perf_counter() - begin)
    return seconds


def line(name: str, seconds: list, unit: str, work: float, peers: dict) -> None:
    "A row: what was reached, and how it compares with each peer, best against best and median against median."
    best, median = min(seconds), statistics.median(seconds)
    ratios = ', '.join(f'{min(s)/best:.2f} of {peer} (median {statistics.median(s)/median:.2f})' for peer, s in peers.items())
    print(f'  {name:28} {work/best/1e9:6.1f} {unit} (median {work/median/1e9:.1f})   {ratios}')


def products(threads: int) -> None:
    import numpy as np, torch
    from bendml import tensor
    from bendml.tensor.gemm import _panels
    rng = np.random.default_rng(0)
    for name, (n, k, m, turn) in SHAPES.items():
        a, b = rng.standard_normal((k, n) if turn == 'a' else (n, k), np.float32), rng.standard_normal((m, k) if turn == 'b' else (k, m), np.float32)
        x, y, c = a.T if turn == 'a' else a, b.T if turn == 'b' else b, np.empty((n, m), np.float32)
        tx, ty, tc = torch.from_numpy(a), torch.from_numpy(b), torch.empty(n, m)
        tx, ty = tx.T if turn == 'a' else tx, ty.T if turn == 'b' else ty
        multiply = {'': tensor.matmul, 'a': tensor.matmul_tn, 'b': tensor.matmul_nt}[turn]
        rows = {'matmul': lambda: multiply(a, b, out=c), 'PyTorch': lambda: torch.mm(tx, ty, out=tc), 'OpenBLAS (np.dot)': lambda: np.dot(x, y, out=c),
                'own panels, fused': lambda: _panels(x, y, c, False, True), 'own panels, sequential': lambda: _panels(x, y, c, False, False)}
        seconds = in_turn(rows, 10, max(1, min(20, int(1e8/(n*k*m)))))
        print(f'{name}, {threads} thread{"s"*(threads > 1)}')
        for row in rows: line(row, seconds[row], 'GF/s', 2.*n*k*m, {p: seconds[p] for p in ('PyTorch', 'OpenBLAS (np.dot)') if p != row})


def tile() -> None:
    "The inner loop alone, all in the nearest cache, against multiply-adds without any memory."
    import numpy as np
    from numba import njit
    from bendml.simd import fma, hsum, splat
    from bendml.tensor.gemm import product_tile
    inner = product_tile.inner
    @njit
    def peak(n, x, y):
        a, b = splat(x), splat(y)
        t0, t1, t2, t3, t4, t5 = a, b, a + a, b + b, a + b, a*b  # all different, or the compiler computes one of them
        t6, t7, t8, t9, ta, tb = t2 + a, t2 + b, t3 + a, t3 + b, t4 + a, t4 + b
        for _ in range(n):
            t0, t1, t2, t3, t4, t5 = fma(t0, a, b), fma(t1, a, b), fma(t2, a, b), fma(t3, a, b), fma(t4, a, b), fma(t5, a, b)
            t6, t7, t8, t9, ta, tb = fma(t6, a, b), fma(t7, a, b), fma(t8, a, b), fma(t9, a, b), fma(ta, a, b), fma(tb, a, b)
        return hsum(t0 + t1 + t2 + t3 + t4 + t5 + t6 + t7 + t8 + t9 + ta + tb)
    @njit
    def tiles(n, k, a, b, c, fused):
        for _ in range(n): inner(k, a, 0, 6, 1, b, 0, 16, c, 0, 16, True, fused)
    k, n, steps = 256, 2000, 4_000_000
    a, b, c = (np.random.default_rng(0).random(s, np.float32) for s in (6*k, 16*k, 96))
    rows = {'tile, fused': lambda: tiles(n, k, a, b, c, True), 'tile, sequential': lambda: tiles(n, k, a, b, c, False), 'peak': lambda: peak(steps, np.float32(.999), np.float32(.001))}
    seconds = alternate(rows, 15)
    scale = lambda s, work: [t/work for t in s]
    print('the 6x16 tile, all in the nearest cache')
    rate = scale(seconds['peak'], steps*12*16)
    for row in ('tile, fused', 'tile, sequential'): line(row, scale(seconds[row], n*2*96*k), 'GF/s', 1, {'peak': rate})


def calls() -> None:
    "What the check of a proved kernel's arguments adds to numba's own call."
    import numpy as np
    from bendml.kernel import sums
    x = lambda: np.ones(1, np.float32)
    print('a call of a proved kernel, against its compiled function without any check')
    for kernel, args in ((sums.softmax, (1, x(), x())), (sums.matvec, (1, 1, x(), x(), x())), (sums.gemm, (1, 1, 1, 1, 1, 1, 1, x(), x(), x()))):
        many = lambda f: lambda: [f(*args) for _ in range(10_000)]
        seconds = alternate({'checked': many(kernel), 'inner': many(kernel.inner)}, 15)
        best = {row: min(s)/1e4*1e6 for row, s in seconds.items()}
        print(f"  {kernel.__name__}, {len(args)} arguments".ljust(30) + f"{best['checked']:6.2f} µs, {best['checked'] - best['inner']:.2f} µs more")


def memory(threads: int) -> None:
    "Matrix times vector, 512 MB of weights, against reading as many bytes."
    import numpy as np, torch
    from bendml import tensor
    from bendml.simd import hsum, load, splat
    from numba import njit, prange
    @njit(parallel=threads > 1)
    def read(w, y):
        part = len(w)//threads
        for t in prange(threads):
            z = splat(np.float32(0))
            s0, s1, s2, s3, s4, s5, s6, s7 = z, z, z, z, z, z, z, z
            for p in range(t*part, (t + 1)*part - 63, 64):
                s0, s1, s2, s3 = s0 + load(w, p), s1 + load(w, p + 8), s2 + load(w, p + 16), s3 + load(w, p + 24)
                s4, s5, s6, s7 = s4 + load(w, p + 32), s5 + load(w, p + 40), s6 + load(w, p + 48), s7 + load(w, p + 56)
            y[t] = hsum(((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7)))
    c, total, rng = 2048, 2**29, np.random.default_rng(0)
    x, y = rng.standard_normal(c, np.float32), np.empty(threads, np.float32)
    matrix = lambda few, width: np.resize(few, total//few.itemsize).reshape(-1, width)   # 512 MB, whatever the type
    w = matrix(rng.standard_normal(2**20, np.float32), c)
    half, whole = matrix(tensor.to_bf16(w[:512]), c), matrix(rng.integers(-127, 128, 2**20, np.int8), c)
    four, ones = whole.view(np.uint8).reshape(-1, c//2), np.ones(total//c, np.float32)
    steps = np.ones((len(four), c//32), np.float32)
    tw, tx, flat = torch.from_numpy(w), torch.from_numpy(x), w.reshape(-1)
    seconds = alternate({'reading': lambda: read(flat, y), 'matvec, float32': lambda: tensor.matvec(w, x), 'matvec, bfloat16': lambda: tensor.matvec(half, x),
                         'matvec, int8': lambda: tensor.matvec(whole, x, scale=ones), 'matvec, 4 bits': lambda: tensor.matvec_i4(four, steps, x),
                         'PyTorch, float32': lambda: torch.mv(tw, tx)}, 12)
    print(f'matrix times vector, 512 MB of each kind, {threads} thread{"s"*(threads > 1)}')
    sizes = {'matvec, 4 bits': four.nbytes + steps.nbytes}
    per_byte = {r: [t/sizes.get(r, total) for t in s] for r, s in seconds.items()}
    for row in per_byte: line(row, per_byte[row], 'GB/s', 1, {} if row == 'reading' else {'reading': per_byte['reading']})


if __name__ == '__main__':
    if sys.argv[1:]:
        import torch
        from bendml.threads import set_threads
        threads = int(sys.argv[1])
        set_threads(threads)
        torch.set_num_threads(threads)
        if threads == 1: tile(), calls()
        products(threads)
        memory(threads)
    else:
        for threads in ('1', '2'):
            env = {k: v for k, v in os.environ.items() if k not in ('OPENBLAS_CORETYPE', 'OPENBLAS_L2_SIZE')}
            env |= {'OPENBLAS_NUM_THREADS': threads, 'OMP_NUM_THREADS': threads}
            subprocess.run([sys.executable, '-W', 'ignore', __file__, threads], env=env, check=True)
