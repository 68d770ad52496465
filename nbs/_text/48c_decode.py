# %%
#| default_exp tokenizer.decode

# %% [markdown]
# # Decoding
# > Ids to text, at once or as they come.

# %% [markdown]
# A token may be a part of a character: 👍 is two tokens of GPT-2's, neither of which is UTF-8. `decode_bytes` gives
# the bytes as they are; `decode` says what to do with what is no text; a stream holds incomplete characters back
# until the rest has come.

# %%
#| hide
#| export
import codecs
from collections.abc import Iterable
from functools import cached_property

import numpy as np

from bendml.tokenizer.encode import TokenError
from bendml.tokenizer.vocab import BYTES, Vocab


# %%
#| export
class _Decoder:
    "The half of a tokenizer that makes text."
    vocab: Vocab

    @cached_property
    def _table(self) -> list[bytes | None]:
        table = [t or None for t in self.vocab.tokens]
        table += [None]*(len(self.vocab) - len(table))
        for text, i in self.vocab.special.items(): table[i] = text.encode()
        return table

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        "The bytes that the ids stand for."
        table, ids = self._table, _numbers(ids)
        if ids.size == 0: return b''
        low, high = int(ids.min()), int(ids.max())
        if low < 0 or high >= len(table):
            raise TokenError('no such id', f'0 to {len(table) - 1}', str(low if low < 0 else high))
        try: return b''.join([table[i] for i in ids.tolist()])
        except TypeError:
            raise TokenError('id not in use', 'the id of a token',
                             str(next(i for i in ids.tolist() if table[i] is None))) from None

    def decode(self, ids: Iterable[int], errors: str = 'replace') -> str:
        "The text that the ids stand for; `errors` as in `bytes.decode`, for what is not UTF-8."
        return self.decode_bytes(ids).decode('utf-8', errors)

    def stream_decoder(self, errors: str = 'replace') -> 'StreamDecoder':
        "A decoder for ids that come one by one."
        return StreamDecoder(self, errors)


# %%
#| export
def _numbers(ids: Iterable[int]) -> np.ndarray:
    "Ids as an array of whole numbers with one axis."
    given = ids if isinstance(ids, np.ndarray) else list(ids) if isinstance(ids, Iterable) else [None]
    try: found = np.asarray(given)
    except ValueError: found = np.zeros((), object)
    if found.ndim == 1 and found.dtype.kind in 'iu': return found
    if found.ndim == 1 and all(type(i) is int for i in given): return np.asarray(given, object)  # none, or past 64 bits
    raise TypeError(f'not a list of ids\n- expected : whole numbers\n- observed : {repr(ids)[:80]}')


# %%
#| export
class StreamDecoder:
    "Gives text as soon as it is complete."
    def __init__(self, tokenizer: _Decoder, errors: str = 'replace'):
        self._tokenizer, self._decoder = tokenizer, codecs.getincrementaldecoder('utf-8')(errors)
    def feed(self, *ids: int) -> str:
        "The text that these ids complete."
        return self._decoder.decode(self._tokenizer.decode_bytes(ids))
    def finish(self) -> str:
        "What is left, complete or not."
        return self._decoder.decode(b'', final=True)


# %%
tiny = _Decoder()
tiny.vocab = Vocab(BYTES + ('é!'.encode()[1:],), ((0xA9, 33, 256),))
stream = tiny.stream_decoder()
[stream.feed(i) for i in (97, 0xC3, 256)], tiny.decode([0xC3])

# %%
try: tiny.decode([97, 300])
except TokenError as e: print(e)

# %% [markdown]
# ## What this does not show
#
# A model may give ids whose bytes are no text at all. What to show then is a choice, `errors`, not a fact.
