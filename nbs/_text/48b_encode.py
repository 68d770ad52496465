# %%
#| default_exp tokenizer.encode

# %% [markdown]
# # Encoding
# > Text to ids: one text, many, or a file larger than memory.

# %% [markdown]
# This page puts the parts together: the vocabulary becomes tables, the tables go to the compiled loops, and around them
# stands what a user needs to choose and what must be refused.

# %%
#| hide
#| export
import os, re
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from types import SimpleNamespace
from typing import BinaryIO

import numpy as np

from bendml.tokenizer.vocab import BYTES, Vocab


# %%
#| export
class TokenError(ValueError):
    "A text or an id that this tokenizer cannot take."
    def __init__(self, problem: str, expected: str, observed: str, hint: str = ''):
        message = f'{problem}\n- expected : {expected}\n- observed : {observed}'
        super().__init__(f'{message}\n{hint}' if hint else message)


# %%
#| export
def to_utf8(text: str | bytes) -> bytes:
    "The bytes of a text. Half of a surrogate pair alone, which is no character, becomes U+FFFD, as in tiktoken."
    if isinstance(text, str):
        try: return text.encode()
        except UnicodeEncodeError:
            return text.encode('utf-16', 'surrogatepass').decode('utf-16', 'replace').encode()
    if isinstance(text, (bytes, bytearray, memoryview)): return bytes(text)
    raise TypeError(f'not a text\n- expected : str or bytes\n- observed : {type(text).__name__}')


# %% [markdown]
# ## The compiled loops
#
# Importing this page compiles nothing. The tables that the loops need are made when a text is first encoded.

# %%
#| export
class _Engine:
    "The compiled loops of a vocabulary; they compile when first used."
    vocab: Vocab

    @cached_property
    def _engine(self):
        "Tables for the compiled loops."
        from bendml.tokenizer import chars, merge, split
        vocab, missing = self.vocab, len(self.vocab)
        byte_ids = np.full(256, missing, np.int32)
        for i, t in enumerate(vocab.tokens):
            if len(t) == 1: byte_ids[t[0]] = i
        number = split.WHOLE if vocab.pattern is None else list(split.PATTERNS).index(vocab.pattern)
        return SimpleNamespace(
            merge=merge, padded=chars.padded, settled=chars.settled, pattern=number,
            classes=chars.class_table(number == split.O200K), byte_ids=byte_ids, missing=missing,
            lacking=missing in byte_ids, pairs=merge.pair_table(np.array(vocab.merges, np.int32)), idle=[])

    @contextmanager
    def _memory(self):
        "A memory of words that no other thread uses meanwhile."
        engine = self._engine
        try: memory = engine.idle.pop()
        except IndexError:
            memory = engine.merge.memory(len(self.vocab.merges),
                                         whole={self.vocab.tokens[i]: i for i in self.vocab.whole})
        yield memory
        engine.idle.append(memory)

    def _encode(self, kernel, data: bytes, *places):
        "Run a compiled loop over a text: what it returns, and the ids. Refuses a byte that has no token."
        e, out = self._engine, np.empty(len(data), np.int32)
        with self._memory() as memory:
            result = kernel(e.padded(data), *places, e.pattern, e.classes, e.byte_ids, e.pairs, memory,
                            out)
        if e.lacking and e.missing in out[:result if isinstance(result, int) else result[1]]:
            lacking = set(np.flatnonzero(e.byte_ids == e.missing).tolist()) & set(data)
            raise TokenError('a byte without a token', 'bytes of this vocabulary',
                             ', '.join(f'{b:#04x}' for b in sorted(lacking)))
        return result, out


# %% [markdown]
# ## Encoding
#
# A special token such as `<|endoftext|>` is an order to the model. Text from outside must not give orders by
# accident, so which special tokens are read as such is an explicit choice: those in `allowed_special` are; text that
# has one in `disallowed_special` (all others, unless you say otherwise) is refused; any other is ordinary text.

# %%
#| export
class _Encoder(_Engine):
    "The half of a tokenizer that makes ids."
    def _special(self, allowed, disallowed) -> tuple[dict[bytes, int], list[bytes]]:
        "The special tokens to be read as such, and those to be refused."
        special = self.vocab.special
        chosen = set(special) if allowed == 'all' else set(allowed)
        refused = set(special) - chosen if disallowed == 'all' else set(disallowed) - chosen
        if unknown := chosen - set(special):
            raise TokenError('not a special token', ', '.join(map(repr, special)) or 'none: there are no special tokens',
                             ', '.join(map(repr, sorted(unknown))))
        return {t.encode(): special[t] for t in chosen}, [t.encode() for t in refused]

    def _texts(self, texts: list[str | bytes], allowed, disallowed, as_array: bool) -> list:
        "The ids of each text."
        special, refused = self._special(allowed, disallowed)
        texts = [ordinary(to_utf8(text), refused) for text in texts]
        found = [list(cuts(text, special)) for text in texts] if special else None
        pieces = texts if found is None else [p for text, places in zip(texts, found) for p in between(text, places)]
        sizes, counts = np.fromiter(map(len, pieces), np.int64, len(pieces)), np.empty(len(pieces), np.int64)
        starts = np.cumsum(sizes + len(GAP)) - sizes - len(GAP)
        total, out = self._encode(self._engine.merge.encode_texts, GAP.join(pieces), starts,
                                  starts + sizes, counts)
        ids = out[:total].copy() if as_array else out[:total].tolist()
        ends = np.cumsum(counts).tolist()
        parts = iter([ids] if len(pieces) == 1 else [ids[i:j] for i, j in zip([0, *ends], ends)])
        if found is None: return list(parts)
        return [with_special(parts, places, as_array) for places in found]

    def encode(
        self,
        text: str | bytes,                                # any text; bytes need not be UTF-8
        *,
        allowed_special: Iterable[str] | str = (),        # special tokens to read as such
        disallowed_special: Iterable[str] | str = 'all',  # what to refuse; 'all': all not allowed
        as_array: bool = False,                           # int32 (ids,) instead of a list
    ) -> list[int] | np.ndarray:
        "The ids of a text."
        return self._texts([text], allowed_special, disallowed_special, as_array)[0]


# %%
#| export
GAP = bytes(4)  # between texts that are encoded together: no character of one reaches into the next

def ordinary(text: bytes, refused: list[bytes]) -> bytes:
    "The text, if none of the refused special tokens is in it."
    for token in refused:
        if (at := text.find(token)) >= 0:
            name = token.decode()
            raise TokenError(f'special token {name!r} in the text', 'ordinary text, or a choice',
                             f'{name!r} at byte {at}',
                             f'As the token: allowed_special={{{name!r}}}. As ordinary text: disallowed_special=().')
    return text

def cuts(data: bytes, special: dict[bytes, int]) -> Iterator[tuple[int, int, int]]:
    "Where special tokens stand, `(start, end, id)`, the longest first; then `(n, n, -1)`."
    if special:
        for m in re.finditer(b'|'.join(map(re.escape, sorted(special, key=len, reverse=True))), data):
            yield *m.span(), special[m[0]]
    yield len(data), len(data), -1

def between(text: bytes, places: list[tuple[int, int, int]]) -> list[bytes]:
    "The parts of a text between its special tokens."
    starts = [0, *[end for _, end, _ in places]]
    return [text[i:j] for i, (j, _, _) in zip(starts, places)]

def with_special(parts: Iterator, places: list[tuple[int, int, int]], as_array: bool):
    "The ids of the parts of a text, with the special tokens between them."
    ids = []
    for _, _, token in places: ids += [next(parts), [token] if token >= 0 else []]
    return np.concatenate(ids).astype(np.int32) if as_array else [i for part in ids for i in part]


# %% [markdown]
# ## Many texts, and texts larger than memory
#
# The compiled loop does not hold Python's lock, so plain threads are enough, each with a memory of its own. A file is
# read block by block, and what the next block could still change is kept back.

# %%
#| export
class _Bulk(_Encoder):
    "Encoding in bulk."
    def encode_batch(
        self,
        texts: Iterable[str | bytes],
        *,
        threads: int | None = None,   # None: one for each core
        allowed_special: Iterable[str] | str = (),        # as in `encode`
        disallowed_special: Iterable[str] | str = 'all',
        as_array: bool = False,       # a list of arrays, made several times faster than lists
    ) -> list:
        "The ids of each text, several texts at a time."
        texts, threads = list(texts), threads or os.cpu_count() or 1
        step = max(1, len(texts)//(8*threads))
        parts = [texts[i:i + step] for i in range(0, len(texts), step)]
        encode = lambda part: self._texts(part, allowed_special, disallowed_special, as_array)
        self._engine
        with ThreadPoolExecutor(threads) as pool:
            return [ids for part in pool.map(encode, parts) for ids in part]

    def encode_file(
        self,
        path: str | os.PathLike,     # a text file of any size
        out: str | os.PathLike,      # where the ids go, as plain numbers one after another
        *,
        allowed_special: Iterable[str] | str = (),
        block: int = 1 << 22,        # bytes that are read at a time
        progress: bool | None = None,  # None: on a terminal
    ) -> np.ndarray:                 # a memmap of `out`; uint16, or uint32 from 65536 ids on
        "Encode a file in constant memory; other special tokens than the allowed are ordinary text."
        special, dtype = self._special(allowed_special,
                                       ())[0], np.uint16 if len(self.vocab) < 1 << 16 else np.uint32
        with open(path, 'rb') as source, open(out, 'wb') as sink, _bar(os.path.getsize(path), 'B',
                                                                       progress) as bar:
            def write_ids(data, bound):
                i = 0
                for start, end, token in cuts(data, special):
                    (i, count), ids = self._encode(self._engine.merge.encode_words, data, i, start,
                                                   min(bound, start))
                    ids[:count].astype(dtype).tofile(sink)
                    if i < start: break
                    if token >= 0: np.array([token], dtype).tofile(sink)
                    i = end
                bar.update(i)
                return i
            self._in_blocks(source, block, special, write_ids)
        return np.memmap(out, dtype, 'r') if os.path.getsize(out) else np.empty(0, dtype)

    def _in_blocks(self, source: BinaryIO, block: int, special: dict[bytes, int], use) -> None:
        "Call `use(data, bound)` on block after block; it returns how far it came."
        rest, longest, e = b'', max(map(len, special), default=0), self._engine
        while True:
            new = source.read(max(block, len(rest)))
            data = rest + new
            bound = e.settled(e.padded(data), len(data),
                              e.classes) if new and self.vocab.pattern else 0 if new else len(data)
            rest = data[use(data, max(0, min(bound, len(data) - longest)) if new else len(data)):]
            if not new: return


# %%
#| export
def _bar(total: int, unit: str, progress: bool | None):
    "A progress bar on standard error."
    from tqdm import tqdm
    return tqdm(total=total, unit=unit, unit_scale=True,
                disable=None if progress is None else not progress)


# %%
tiny = _Bulk()
tiny.vocab = Vocab(BYTES + (b'aa',), ((97, 97, 256),), {'<|end|>': 257})
tiny.encode('aaab'), tiny.encode('aa<|end|>', allowed_special='all'), tiny.encode_batch(['a', 'aa', ''])

# %%
try: tiny.encode('aa<|end|>')
except TokenError as e: print(e)

# %% [markdown]
# ## What this does not show
#
# The three loops of the inner step are proved kernels. That all the compiled loops together do what the specification
# says is tested, on ten thousand random tables and texts, and not proved.
