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
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import BinaryIO

import numpy as np

from bendml.tokenizer.vocab import BYTES, Vocab, VocabError


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
    def _engine(self) -> SimpleNamespace:
        "Tables for the compiled loops, and memories that no thread uses."
        from bendml.tokenizer import chars, memory, split
        vocab, missing = self.vocab, len(self.vocab)
        byte_ids = np.full(256, missing, np.int32)
        for i, t in enumerate(vocab.tokens):
            if len(t) == 1: byte_ids[t[0]] = i
        if vocab.pattern not in {None, *split.PATTERNS}:
            raise VocabError('vocabulary', 'unknown pattern', f'None or one of {[*split.PATTERNS]}', repr(vocab.pattern))
        number = split.WHOLE if vocab.pattern is None else list(split.PATTERNS).index(vocab.pattern)
        classes = chars.class_table(number == split.O200K)
        tables = memory.tables(classes, byte_ids, np.array(vocab.merges, np.int32), vocab.tokens, vocab.whole)
        return SimpleNamespace(memory=memory, pad=bytes(chars.PAD), settled=chars.settled, pattern=number, classes=classes,
                               tables=tuple(tables), missing=missing, idle=[], lacking=bytes(np.flatnonzero(byte_ids == missing).tolist()))

    def _padded(self, text: bytes) -> np.ndarray:
        "The bytes of a text, as the compiled loops want them."
        return np.frombuffer(text + self._engine.pad, np.uint8)


# %% [markdown]
# Each thread takes a memory, with space for ids, and puts it back when it is done; what goes wrong in between takes it along.
# A short text costs little more than the call of a compiled function, and there every step counts: numba takes a plain tuple of
# arrays apart faster than a named one, so it gets those.

# %%
#| export
class _Ids(_Engine):
    "From bytes to ids."
    def _take(self) -> tuple[tuple, np.ndarray]:
        "A memory of words, and space for ids, that no other thread uses until they are put back into `idle`."
        try: return self._engine.idle.pop()
        except IndexError: return tuple(self._engine.memory.memory(len(self.vocab.merges))), np.empty(SPACE, np.int32)

    def _complete(self, ids: np.ndarray, text: bytes) -> np.ndarray:
        "The ids of a text, if each of its bytes has a token."
        e = self._engine
        if e.lacking and e.missing in ids:
            raise TokenError('a byte without a token', 'bytes of this vocabulary',
                             ', '.join(f'{b:#04x}' for b in sorted(set(e.lacking) & set(text))))
        return ids

    def _one(self, text: bytes, as_array: bool) -> list[int] | np.ndarray:
        "The ids of a text."
        e, n, mine = self._engine, len(text), self._take()
        memory, space = mine
        if n > SPACE: space = np.empty(n, np.int32)
        _, count = e.memory.encode_words(self._padded(text), 0, n, n, e.pattern, e.tables, memory, space)
        ids = self._complete(space[:count], text)
        ids = ids.copy() if as_array else ids.tolist()
        e.idle.append(mine)
        return ids


# %%
#| export
class _ManyIds(_Ids):
    "From many texts to ids, in several threads."
    def _each(self, texts: list[bytes], threads: int, meanwhile: Callable) -> list[np.ndarray]:
        "The ids of each text; this thread first does something else, while the others begin."
        e, sizes = self._engine, np.fromiter(map(len, texts), np.int64, len(texts))
        text, ends = np.frombuffer(GAP.join([*texts, e.pad]), np.uint8), np.cumsum(sizes + len(GAP)) - len(GAP)
        counter, step = np.zeros(1, np.int64), max(1, len(texts)//(16*threads))
        outs, places = [np.empty(len(text), np.int32) for _ in range(threads)], np.empty((len(texts), 3), np.int64)
        def work(me):
            mine = self._take()
            e.memory.encode_texts(text, ends - sizes, ends, counter, step, me, places, e.pattern, e.tables, mine[0], outs[me])
            e.idle.append(mine)
        with ThreadPoolExecutor(threads) as pool:
            others = [pool.submit(work, k) for k in range(1, threads)]
            meanwhile()
            work(0)
            for job in others: job.result()
        return [self._complete(outs[who][i:j], t) for (who, i, j), t in zip(places.tolist(), texts)]


# %% [markdown]
# ## Encoding
#
# A special token such as `<|endoftext|>` is an order to the model. Text from outside must not give orders by
# accident, so which special tokens are read as such is an explicit choice: those in `allowed_special` are; text that
# has one in `disallowed_special` (all others, unless you say otherwise) is refused; any other is ordinary text.

# %%
#| export
class _Encoder(_ManyIds):
    "The half of a tokenizer that makes ids."
    @cached_property
    def _all_refused(self) -> tuple[dict[bytes, int], list[bytes]]:
        "What `_special` says unless the caller chooses."
        return {}, [t.encode() for t in self.vocab.special]

    def _special(self, allowed, disallowed) -> tuple[dict[bytes, int], list[bytes]]:
        "The special tokens to be read as such, and those to be refused."
        if isinstance(allowed, tuple) and isinstance(disallowed, str) and (allowed, disallowed) == ((), 'all'): return self._all_refused
        special = self.vocab.special
        chosen = _choice(allowed, special)
        if unknown := chosen - set(special):
            raise TokenError('not a special token', ', '.join(map(repr, special)) or 'none: there are no special tokens',
                             ', '.join(map(repr, sorted(unknown))))
        return {t.encode(): special[t] for t in chosen}, [to_utf8(t) for t in _choice(disallowed, special) - chosen]

    def _texts(self, texts: list[bytes], special: dict, refused: list, as_array: bool, threads: int = 1) -> list:
        "The ids of each text."
        def check():
            for text in texts: ordinary(text, refused)
        found = [list(cuts(text, special)) for text in texts] if special else None
        pieces = [p for text, places in zip(texts, found) for p in between(text, places)] if special else texts
        parts = self._each(pieces, min(threads, len(pieces) or 1), check)
        if not as_array: parts = [ids.tolist() for ids in parts]
        if not special: return parts
        left = iter(parts)
        return [with_special(left, places, as_array) for places in found]

    def encode(
        self,
        text: str | bytes,                                # any text; bytes need not be UTF-8
        *,
        allowed_special: Iterable[str] | str = (),        # special tokens to read as such
        disallowed_special: Iterable[str] | str = 'all',  # what to refuse; 'all': all not allowed
        as_array: bool = False,                           # int32 (ids,) instead of a list
    ) -> list[int] | np.ndarray:
        "The ids of a text."
        special, refused = self._special(allowed_special, disallowed_special)
        data = to_utf8(text)
        if special: return self._texts([data], special, refused, as_array)[0]
        return self._one(ordinary(data, refused), as_array)


# %%
#| export
GAP = bytes(4)  # between texts that are encoded together: no character of one reaches into the next

def names_of(special: Iterable[str]) -> list[str]:
    "Special tokens as a list, each once."
    found = list(special) if isinstance(special, Iterable) and not isinstance(special, (str, bytes)) else [None]
    if not all(isinstance(t, str) and t for t in found):
        raise TypeError(f"not special tokens\n- expected : a list of texts, such as ['<|endoftext|>']\n- observed : {repr(special)[:80]}")
    return list(dict.fromkeys(found))

def _choice(chosen: Iterable[str] | str, special: Iterable[str]) -> set[str]:
    "Which special tokens are meant; 'all' are all."
    return set(special if isinstance(chosen, str) and chosen == 'all' else names_of(chosen))

def ordinary(text: bytes, refused: list[bytes]) -> bytes:
    "The text, if none of these special tokens is in it."
    for token in refused:
        if (at := text.find(token)) >= 0:
            name = token.decode()
            raise TokenError(f'special token {name!r} in the text', 'ordinary text, or a choice',
                             f'{name!r} at byte {at}',
                             f'As the token: allowed_special={{{name!r}}}. As ordinary text: disallowed_special=().')
    return text


# %%
#| export
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
# The compiled loop does not hold Python's lock, so plain threads are enough, each with a memory of its own. While they work,
# the text is searched for special tokens that are to be refused; what was encoded of a refused text is thrown away.
#
# Arrays (`as_array`) are cut out of large blocks, one or a few for each thread, without copying. No two have a cell in common, so each may be
# written to. But a block stays in memory as long as one of its arrays does: who keeps a few of a large batch keeps a `copy()` of those.
#
# A file is read block by block, and what the next block could still change is kept back.

# %%
#| export
class _Batches(_Encoder):
    "Encoding many texts."
    def encode_batch(
        self,
        texts: Iterable[str | bytes],
        *,
        threads: int | None = None,   # None: one for each core
        allowed_special: Iterable[str] | str = (),        # as in `encode`
        disallowed_special: Iterable[str] | str = 'all',
        as_array: bool = False,       # a list of arrays, made several times faster than lists
    ) -> list:
        "The ids of each text, several texts at a time. Arrays share large blocks of memory: to keep only a few, copy those."
        threads = at_least_one('threads', os.cpu_count() or 1 if threads is None else threads)
        choice, found, group, size = self._special(allowed_special, disallowed_special), [], [], 0
        def use(group): found.extend(self._texts(group, *choice, as_array, threads))
        for text in texts:
            group.append(to_utf8(text))
            size += len(group[-1])
            if size >= GROUP and len(group) >= 16*threads:
                use(group)
                group, size = [], 0
        use(group)
        return found


# %%
#| export
class _Bulk(_Batches):
    "Encoding what is larger than memory."
    def encode_file(
        self,
        path: str | os.PathLike,     # a text file of any size
        out: str | os.PathLike,      # where the ids go, as plain numbers one after another; whole or not at all
        *,
        allowed_special: Iterable[str] | str = (),
        block: int = 1 << 22,        # bytes that are read at a time
        progress: bool | None = None,  # None: on a terminal
    ) -> np.ndarray:                 # a memmap of `out`; uint16, or uint32 from 65536 ids on
        "Encode a file in constant memory, or whole if words are not cut; other special tokens than the allowed are ordinary text."
        special, e, mine = self._special(allowed_special, ())[0], self._engine, self._take()
        dtype = np.uint16 if len(self.vocab) < 1 << 16 else np.uint32
        with open(path, 'rb') as source, replacing(out) as sink, _bar(os.path.getsize(path), 'B', progress) as bar:
            def write_ids(data, bound):
                text, ids, i = self._padded(data), np.empty(len(data), np.int32), 0
                for start, end, token in cuts(data, special):
                    i, count = e.memory.encode_words(text, i, start, min(bound, start), e.pattern, e.tables, mine[0], ids)
                    self._complete(ids[:count], data).astype(dtype).tofile(sink)
                    if i < start: break
                    if token >= 0: np.array([token], dtype).tofile(sink)
                    i = end
                bar.update(i)
                return i
            self._in_blocks(source, at_least_one('block', block), special, write_ids)
        e.idle.append(mine)
        return np.memmap(out, dtype, 'r') if os.path.getsize(out) else np.empty(0, dtype)

    def _in_blocks(self, source: BinaryIO, block: int, special: dict[bytes, int], use) -> None:
        "Call `use(data, bound)` on block after block; it returns how far it came."
        if self.vocab.pattern is None:  # one word, which nobody knows before its end
            data = source.read()
            use(data, len(data))
            return
        rest, longest, e = b'', max(map(len, special), default=0), self._engine
        while True:
            new = source.read(max(block, len(rest)))
            data = rest + new
            bound = max(0, min(e.settled(self._padded(data), len(data), e.classes), len(data) - longest)) if new else len(data)
            rest = data[use(data, bound):]
            if not new: return


# %%
#| export
GROUP = 1 << 24  # bytes that are encoded together: how much scratch space a large batch takes
SPACE = 1 << 21  # ids for which a thread keeps space from one text to the next

def at_least_one(name: str, value: int) -> int:
    "The value, if it is a number from 1 on."
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise TokenError(f'{name} is no number of {name}', 'a whole number from 1 on', repr(value))
    return value

@contextmanager
def replacing(path: str | os.PathLike) -> Iterator[BinaryIO]:
    "A new file that takes the place of `path` when all has gone well, and is removed when not."
    new = Path(path).with_name(Path(path).name + '.new')
    try:
        with open(new, 'wb') as f: yield f
        os.replace(new, path)
    finally: new.unlink(missing_ok=True)

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
# Four of the loops are kernels with a proved contract, on the page about the inner step, which also lists those that have none.
# That all of them together do what the specification says is tested, on ten thousand random tables and texts, and not proved.
