# %% [markdown]
# # What of NumPy has a rule
# > Nearly all that computes; here is the list of what does not, and why.

# %% [markdown]
# Each public function of `numpy`, `numpy.linalg` and `numpy.fft` is looked up in [the table](22_symbols.ipynb), and so is each class
# whose objects a loop can go through, and each method of a random generator.

# %%
import types, warnings
import numpy as np
from bendml.shape import calls  # all rules
from bendml.shape.builtins import SPECIAL
from bendml.shape.drawing import COUNTS, DISTRIBUTIONS, OTHERS
from bendml.shape.symbols import METHODS, Array, op_of

def public(place): return {n: getattr(place, n) for n in dir(place) if not n.startswith('_')}

def goes_through(c): return isinstance(c, type) and hasattr(c, '__iter__') and not issubclass(c, np.generic)

def missing(place):
    "The functions and such classes of a module: how many there are, and the names of those that have no rule."
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')  # deprecated names
        found = {n: f for n, f in public(place).items() if callable(f) and (goes_through(f) or not isinstance(f, type | types.ModuleType))}
    return len(found), {n for n, f in found.items() if op_of(f) is None and f not in SPECIAL}


# %%
left = set()
for place in (np, np.linalg, np.fft):
    count, names = missing(place)
    left |= names
    print(f'{place.__name__}: {count - len(names)} have a rule, {len(names)} have none')

# %% [markdown]
# What has none:

# %%
WHY = {
    'it reads or writes files and text': '''array2string array_repr array_str base_repr binary_repr datetime_as_string format_float_positional
        format_float_scientific fromfile fromregex fromstring genfromtxt load loadtxt save savetxt savez savez_compressed''',
    'it takes what is no array: memory, or an object': 'from_dlpack frombuffer frompyfunc nested_iters',
    'it asks for a dtype, not an array, and so needs no rule': 'datetime_data isdtype issubdtype min_scalar_type mintypecode typename',
    'it is about NumPy itself': '''get_include get_printoptions getbufsize geterr geterrcall info printoptions set_printoptions setbufsize seterr seterrcall
        show_config show_runtime test''',
    'it counts days': 'busday_count busday_offset is_busday',
    'it makes a numpy.matrix, or another array of its own': 'asmatrix bmat matrix memmap ndarray recarray',
    'it goes through entries: write a loop over each axis, for i in range(len(x))': 'broadcast nditer',
    'nobody makes one by this name: x.flat is known': 'flatiter',
    'it keeps coefficients as an object: write np.polyval': 'poly1d',
    'it is about memory or the order of a computation': 'einsum_path isfortran require',
    'write np.triu_indices, np.nonzero': 'mask_indices'}
reasons = {n: why for why, names in WHY.items() for n in names.split()}
assert left == reasons.keys(), left ^ reasons.keys()
for why, names in WHY.items(): print(f'{why}:\n    {" ".join(sorted(left & set(names.split())))}')

# %% [markdown]
# Of the methods of arrays and generators:

# %%
print(*sorted(n for n, f in public(np.ndarray).items() if callable(f) and n not in METHODS and not hasattr(Array, n)))
print(*sorted(n for n in public(np.random.Generator) if n not in DISTRIBUTIONS | COUNTS | OTHERS))

# %% [markdown]
# Those of arrays ask for memory, or change a shape or dtype in place. For anything else, [a rule](24c_howto.ipynb) is a few lines.
#
# ## What this does not show
#
# That a rule is right: each is [compared with NumPy](https://github.com/bendml/bendml/blob/main/tests/test_shape_rules.py) for random
# sizes, 0 and 1 included.
