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
import ctypes, functools, importlib.metadata, os, sys


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


# %% [markdown]
# ## How many
#
# NumPy's matrix products run in a library, BLAS, which has threads of its own. If it used two while a loop of ours used two,
# there would be four on two cores, and each would wait for the others. So one number governs both, and our loops never call
# BLAS from inside.

# %%
#| export
def get_threads() -> int:
    "How many threads parallel loops use."
    import numba
    return numba.get_num_threads()

def set_threads(
    n: int,  # from 1 to the number of cores
) -> None:
    "How many threads parallel loops and BLAS shall use; `ValueError` for more than there are cores."
    import numba, threadpoolctl
    most = numba.config.NUMBA_NUM_THREADS
    if isinstance(n, bool) or not isinstance(n, int) or not 1 <= n <= most:
        raise ValueError(f'set_threads({n!r}): expected 1 to {most}, the number of cores')
    numba.set_num_threads(n)
    threadpoolctl.threadpool_limits(n, user_api='blas')

def blas_threads() -> int:
    "How many threads BLAS uses; 1 if none was found."
    import threadpoolctl
    return max([lib['num_threads'] for lib in threadpoolctl.threadpool_info() if lib['user_api'] == 'blas'], default=1)


# %%
before = get_threads()
set_threads(1)
assert get_threads() == blas_threads() == 1
set_threads(before)
assert blas_threads() == before

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
# ## Compiled once
#
# numba compiles a function when it is first called, which takes a second or so, and keeps the result for the next time:
# beside the source, or else in the user's cache. Where it may write to neither, it raises an error as soon as a function asks to be
# kept. A library that somebody else installed must still run. So our functions ask only if it is possible, and if not, that is
# said once: `@njit(cache=caching())`.

# %%
#| export
@functools.cache
def caching() -> bool:
    "Can compiled loops be kept on disk? If not, says so, once."
    import numba
    def probe(): pass
    try: numba.njit(cache=True)(probe)
    except RuntimeError:
        print('bendml: no folder to keep compiled loops in, so they are compiled each time; NUMBA_CACHE_DIR names one', file=sys.stderr)
        return False
    return True


# %%
caching()

# %% [markdown]
# ## What this does not show
#
# The figures above are from one machine with two cores. A BLAS thread that has nothing to do looks for work for a few
# milliseconds before it sleeps, and may keep a core from our loops meanwhile.
