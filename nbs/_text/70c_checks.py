# %%
#| default_exp checks

# %% [markdown]
# # Before a model runs
# > A text that is too long, a token that does not exist, a tensor that is missing: refused by name.

# %% [markdown]
# A model is some hundred arrays, each with a name, and all must be there, in the right shape, and no others. A missing
# one would be noticed. One too many may be a sign that the file is another model, and one that is transposed, if it is
# square, would be noticed by nobody: the model would talk nonsense. The checks on this page are those that all models of
# text share.

# %%
#| hide
#| export
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np


# %% [markdown]
# ## Text
#
# Every model has a longest text that it can read, its *context*, and a number of tokens that it knows.

# %%
#| export
class ContextError(ValueError):
    "A text is longer than the model can read."

def check_ids(
    ids,           # whole numbers
    vocab: int,    # tokens that there are
    context: int,  # the longest text
) -> np.ndarray:   # (T,) int64
    "Token numbers as an array; an error if there are none, unknown ones, or (`ContextError`) too many."
    ids = np.asarray(ids)
    if ids.ndim != 1 or not np.issubdtype(ids.dtype, np.integer) or not len(ids):
        raise ValueError(f'tokens\n- expected : whole numbers in one row, at least one\n- observed : shape {ids.shape}, {ids.dtype}')
    if len(ids) > context: raise ContextError(f'the text is too long\n- expected : at most {context} tokens\n- observed : {len(ids)} tokens')
    if bad := ids[(ids < 0) | (ids >= vocab)].tolist():
        raise ValueError(f'unknown token\n- expected : 0 to {vocab - 1}\n- observed : {bad[0]}')
    return ids.astype(np.int64)


# %%
for wrong in ([1, 2, 3, 4, 5], [7, 100]):
    try: check_ids(wrong, vocab=50, context=4)
    except ValueError as e: print(type(e).__name__, e, sep=': ')


# %% [markdown]
# ## Tensors
#
# What a model expects under a name: a shape, and whether it lies transposed in the file. For a square matrix no shape can
# tell, so it is written down and not guessed.

# %%
#| export
class WeightsError(ValueError):
    "A file does not hold this model's tensors."
    def __init__(self, problem: str, expected: str, observed: str, hint: str = ''):
        super().__init__(f'{problem}\n- expected : {expected}\n- observed : {observed}' + f'\n- hint     : {hint}'*bool(hint))

class Wanted(NamedTuple):
    "A tensor that a model needs."
    shape: tuple[int, ...]
    transposed: bool = False  # stored as (in, out)

def some(names: list[str]) -> str:
    "The first few names, and how many more there are."
    return ', '.join(names[:4]) + (f' and {len(names) - 4} more' if len(names) > 4 else '')

def check_shapes(
    wanted: Mapping[str, Wanted],
    shapes: Mapping[str, tuple[int, ...]],  # of the tensors that there are
    allowed: Iterable[str] = (),            # names that may be there as well
) -> None:
    "Are the tensors those that are wanted? `WeightsError` names what is missing, unexpected, or of another shape."
    if missing := [n for n in wanted if n not in shapes]:
        raise WeightsError('tensors are missing', f'{len(wanted)} tensors', f'without {some(missing)}')
    if extra := sorted(set(shapes) - set(wanted) - set(allowed)):
        raise WeightsError('unexpected tensors', f'{len(wanted)} tensors', f'also {some(extra)}')
    for name, (shape, transposed) in wanted.items():
        if shapes[name] != shape:
            turned = len(shape) == 2 and shapes[name] == shape[::-1]
            hint = f'transpose it: this file stores {"in×out" if transposed else "out×in"}'
            raise WeightsError(f'{name} has another shape', f'{shape}', f'{shapes[name]}', hint*turned)


# %%
wanted = {'up.weight': Wanted((8, 2)), 'up.bias': Wanted((8,))}
for shapes in ({'up.weight': (8, 2)}, {'up.weight': (8, 2), 'up.bias': (8,), 'down': (3,)}, {'up.weight': (2, 8), 'up.bias': (8,)}):
    try: check_shapes(wanted, shapes)
    except WeightsError as e: print(e)


# %% [markdown]
# ## Settings
#
# The sizes of a model stand beside its tensors, in JSON or in the file itself, under names and of types that somebody else chose.

# %%
#| export
def setting(settings: Mapping, name: str, kinds: tuple[type, ...] = (int,), default=None):
    "A setting of the right type, or its default; `WeightsError` if it is neither."
    value = settings[name] if name in settings else default
    if value is None and default is None: raise WeightsError(f'setting {name}', kinds[0].__name__, 'nothing')
    if not isinstance(value, kinds) or isinstance(value, bool) and bool not in kinds: raise WeightsError(f'setting {name}', kinds[0].__name__, repr(value)[:60])
    if isinstance(value, int) and abs(value) >= 1 << 53: raise WeightsError(f'setting {name}', 'a number of reasonable size', str(value)[:60])
    return value

MOST_LAYERS, MOST_TOKENS = 1000, 1 << 20   # a file that claims more is refused before anything is made for it

def check_claims(layers: int, context: int) -> None:
    "`WeightsError` if a file claims more layers than any model has, or a text longer than any can be."
    if layers > MOST_LAYERS: raise WeightsError('the number of layers', f'at most {MOST_LAYERS}', f'{layers}')
    if context > MOST_TOKENS: raise WeightsError('the longest text', f'at most {MOST_TOKENS} tokens', f'{context}')


# %%
for settings in ({}, {'n_head': '12'}, {'n_head': True}, {'n_head': 10**30}):
    try: setting(settings, 'n_head')
    except WeightsError as e: print(e)


# %% [markdown]
# ## A tied head
#
# At the end a model compares what it has computed with the meaning of each token. Many use the same table for this as at
# the beginning: the head is *tied*. A file may still bring the head along, and then it must be the same, byte for byte.

# %%
#| export
def check_tied(
    tied: bool,
    name: str,                # what the head is called
    head: np.ndarray | None,  # None: the file has none
    tokens: np.ndarray,       # the table of tokens
) -> None:
    "A tied head may be left out, or be equal to the table; one that is not tied must be there."
    if not tied and head is None: raise WeightsError('the head is missing', f'{name}, since the head is not tied', f'without {name}')
    if tied and head is not None and not (head.shape == tokens.shape and head.tobytes() == tokens.tobytes()):
        raise WeightsError('two heads', f'no {name}, or one equal to the table of tokens, since the head is tied', 'they differ')


# %%
tokens = np.eye(3)
check_tied(True, 'lm_head.weight', None, tokens)
check_tied(True, 'lm_head.weight', tokens.copy(), tokens)
for tied, head in ((True, 2*tokens), (False, None)):
    try: check_tied(tied, 'lm_head.weight', head, tokens)
    except WeightsError as e: print(e)

# %% [markdown]
# ## What this does not show
#
# A file whose names and shapes are right may still hold the numbers of another model, or of a transposed square matrix. Then
# only a comparison of what the model says can tell.
