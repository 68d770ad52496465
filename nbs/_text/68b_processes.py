# %%
#| default_exp processes

# %% [markdown]
# # Several processes
# > A batch is shared out to processes; their gradients are added up in one fixed order, so the bits do not depend on chance.

# %% [markdown]
# Two processes can learn from one batch: each takes half of the examples, computes the gradient of its half, and then both
# need the sum. They talk through [MPI](https://www.mpi-forum.org/), which starts the processes, numbers them (a process's
# number is its *rank*), and moves arrays between them, on one machine or on many:
#
#     pip install 'bendml[mpi]'
#     mpiexec -n 2 bendml mnist --mpi
#
# Why this is right is a law, [shards add up](67d_shard_laws.ipynb). This page is about the two things that go wrong in
# practice: floats whose sum depends on the order, and processes that wait for ever for one that has failed.

# %%
#| hide
#| export
import json, sys
from typing import Any, Callable

import numpy as np
from numpy import float32


# %%
#| export
class ProcessError(RuntimeError):
    "Processes that cannot work together: where, expected, observed, and a hint."
    told = everywhere = True   # the others know, and stop too
    def __init__(self, where: str, expected: object, observed: object, hint: str = ''):
        super().__init__(f'{where}\n- expected : {expected}\n- observed : {observed}' + (f'\nhint: {hint}' if hint else ''))


# %% [markdown]
# ## One process
#
# What the training loop needs of the others is little: who am I, what does each of you say, and the sum of your gradients.
# Where there is nobody else, all three are easy.

# %%
#| export
class Alone:
    "The only process."
    rank, size, here = 0, 1, 1   # its number; how many there are, and how many on this machine
    def share(self, x: Any) -> list[Any]:
        "What each process says, by rank."
        return [x]
    def add_up(self, row: np.ndarray) -> None:
        "The row becomes the sum of all processes' rows, rank 0's first; the same bits in each."
    def __enter__(self): return self
    def __exit__(self, *_): pass


# %% [markdown]
# ## The order of a sum
#
# MPI has a function that adds up arrays over all processes, and it may choose the order; with three processes, two machines
# can give two results. So we say it ourselves. The row of numbers is cut into as many parts as there are processes. Each
# process collects one part from all, adds it up in the order of the ranks, and hands the sum to all. Every number crosses
# the wire as often as in the fastest of MPI's own ways. That cutting changes nothing, not a bit, is the law `sum_in_parts` on
# [Laws of shards](67d_shard_laws.ipynb).

# %%
#| export
def in_order(rows: np.ndarray) -> np.ndarray:
    "The sum of rows (n, k), from the first to the last."
    total = rows[0].copy()
    for r in rows[1:]: total += r
    return total

class Together(Alone):
    "The processes that `mpiexec` has started, over a communicator of mpi4py."
    def __init__(self, comm):
        self.comm, self.rank, self.size = comm, comm.Get_rank(), comm.Get_size()
        self.here = comm.Split_type(_mpi().COMM_TYPE_SHARED).Get_size()

    def add_up(self, row):
        k = -(-row.size//self.size)
        mine, parts = np.zeros((self.size, k), row.dtype), np.empty((self.size, k), row.dtype)
        mine.reshape(-1)[:row.size] = row
        self.comm.Alltoall(mine, parts)
        self.comm.Allgather(in_order(parts), mine)
        row[:] = mine.reshape(-1)[:row.size]

    def __exit__(self, kind, error, trace):
        "An error that only this process knows of ends all of them."
        if error is None or getattr(error, 'told', False): return
        print(f'process {self.rank} of {self.size}: {kind.__name__}: {error}', file=sys.stderr, flush=True)
        self.comm.Abort(1)

    def share(self, x):
        text = np.frombuffer(json.dumps(x).encode(), np.uint8)
        sizes = np.empty(self.size, np.int64)
        self.comm.Allgather(np.array([len(text)]), sizes)
        said = np.empty(sizes.sum(), np.uint8)
        self.comm.Allgatherv(text, (said, sizes))
        return [json.loads(bytes(s)) for s in np.split(said, np.cumsum(sizes)[:-1])]


# %%
rows = np.array([[1e8], [1.], [-1e8]], float32)
in_order(rows), in_order(rows[[0, 2, 1]])


# %% [markdown]
# ## When one of them fails
#
# A process that raises an error stops sending, and the others would wait for its numbers until somebody looks. Two things
# prevent that. Work is done through `try_all`: each process tells the others how it went, and if it went wrong anywhere, all
# of them raise an error: its own where it has one, else a `ProcessError` with the rank and the words of the first that
# failed. And whatever else leaves a `with` block over the processes as an error ends all of them, through `MPI_Abort`.

# %%
#| export
def agreed(error: BaseException) -> BaseException:
    "The error, marked: all processes know of it, so none waits for another."
    error.told = True
    return error

def try_all(world: Alone, work: Callable[[], Any]) -> list[Any]:
    "What `work()` made in each process, by rank; `ProcessError` if it failed in another one."
    if world.size == 1: return [work()]
    made = error = None
    try: made = work()
    except Exception as e: error = e
    said = world.share([made, error and f'{type(error).__name__}: {error}'])
    if error:
        error.everywhere = all(text == said[0][1] for _, text in said)
        raise agreed(error)
    for rank, (_, text) in enumerate(said):
        if text: raise ProcessError(f'process {rank} has failed, so process {world.rank} stops', 'no error', text)
    return [made for made, _ in said]


# %% [markdown]
# ## Starting
#
# MPI is started when it is first asked for, and not by importing bendml.

# %%
#| export
def _mpi():
    try: from mpi4py import MPI
    except (ImportError, RuntimeError) as e: raise ProcessError('several processes', 'the packages mpi4py and mpich', str(e).splitlines()[0], "pip install 'bendml[mpi]'") from None
    return MPI

def together() -> Alone:
    "The processes that `mpiexec` has started; `ProcessError` without mpi4py."
    comm = _mpi().COMM_WORLD
    return Together(comm) if comm.Get_size() > 1 else Alone()


# %% [markdown]
# A file that several processes run, here two of them, on one machine. Process 1 fails; both say so, and end.

# %%
#| hide
import subprocess, tempfile
from pathlib import Path
def mpiexec(code: str, n: int = 2) -> str:
    "The sorted lines that n processes print."
    with tempfile.TemporaryDirectory() as folder:
        (file := Path(folder)/'program.py').write_text(code)
        run = subprocess.run([Path(sys.executable).parent/'mpiexec', '-n', str(n), sys.executable, '-W', 'ignore', file], capture_output=True, text=True, timeout=100)
    return '\n'.join(sorted(run.stdout.splitlines()))


# %%
print(mpiexec('''
import numpy as np
from bendml.processes import ProcessError, together, try_all

with together() as world:
    row = np.full(3, world.rank + 1, np.float32)
    world.add_up(row)
    print(f'process {world.rank} of {world.size}: the sum is {row}')
    def work(): return 1/(1 - world.rank)
    try: try_all(world, work)
    except (ZeroDivisionError, ProcessError) as e: print(f'process {world.rank}:', str(e).replace(chr(10), ' '))
'''))

# %% [markdown]
# ## What this does not show
#
# - Speed on a network. On one machine, threads do the same with less memory; several processes are for several machines.
# - That every process has the same data, files and versions of libraries. Training compares what it begins with, and no more.
