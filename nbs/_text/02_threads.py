# %%
#| default_exp threads

# %% [markdown]
# # Threads
# > Sharing out work to the cores, at a few millionths of a second a time.

# %% [markdown]
# A training step of MNIST takes a third of a millisecond and has two loops to share out. If handing out a loop costs a
# tenth of a millisecond, a second core is worth little; if the runtime lets its threads spin while a neighbour wants the
# core, it can cost several milliseconds. Of the three runtimes that numba knows, Intel's TBB did best on both counts: 3 to
# 5 µs a loop on a quiet machine, and never more than 0.1 ms on a busy one, where OpenMP stalled for 4 to 8 ms.
#
# `pip` installs TBB into a folder where numba does not look for it, so we load it ourselves, before numba's first parallel
# loop. Any module with such a loop imports this one.

# %%
#| hide
#| export
import ctypes, importlib.metadata, os


# %%
#| export
def load_tbb() -> bool:
    "Load the TBB that pip installed, so that numba finds it. False where there is none; numba then takes another runtime."
    try: files = importlib.metadata.files('tbb') or []
    except importlib.metadata.PackageNotFoundError: return False
    for file in files:
        if file.name.startswith(('libtbb.so.12', 'libtbb.12.dylib', 'tbb12.dll')):
            try: ctypes.CDLL(str(file.locate()), mode=ctypes.RTLD_GLOBAL)
            except OSError: continue
            return True
    return False


# %%
#| export
if load_tbb(): os.environ.setdefault('NUMBA_THREADING_LAYER_PRIORITY', 'tbb workqueue omp')


# %%
#| export
def get_threads() -> int:
    "How many threads parallel loops use."
    import numba
    return numba.get_num_threads()

def set_threads(
    n: int,  # from 1 to the number of cores
) -> None:
    "How many threads parallel loops shall use; `ValueError` for more than there are cores."
    import numba
    if not 1 <= n <= numba.config.NUMBA_NUM_THREADS:
        raise ValueError(f'set_threads({n}): expected 1 to {numba.config.NUMBA_NUM_THREADS}, the number of cores')
    numba.set_num_threads(n)


# %%
before = get_threads()
set_threads(1)
assert get_threads() == 1
set_threads(before)

# %%
try: set_threads(0)
except ValueError as e: print(str(e).split(',')[0].rsplit(' to ', 1)[0])

# %% [markdown]
# numba uses it:

# %%
import numba, numpy as np

@numba.njit(parallel=True)
def double(x):
    for i in numba.prange(len(x)): x[i] *= 2

double(np.ones(1000))
numba.threading_layer()

# %% [markdown]
# ## What this does not show
#
# BLAS has threads of its own, which these functions leave alone. The figures above are from one machine with two cores.
