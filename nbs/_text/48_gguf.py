# %%
#| default_exp tokenizer.gguf

# %% [markdown]
# # The tokenizer in a GGUF
# > Weights and vocabulary in one file, of which the head is read.

# %% [markdown]
# llama.cpp keeps everything that a model needs in one file, its tokenizer included. The head of the file is a list of
# keys with typed values; the weights, which follow, are not looked at here. A file of lengths and counts is where
# malformed files do their harm, so every length is compared with what is left of the file before anything is made of
# it.

# %%
#| hide
#| export
import os, struct

from bendml.data import fetch
from bendml.tokenizer.formats import as_pairs, from_characters
from bendml.tokenizer.vocab import Vocab, VocabError

# %% [markdown]
# ## The head

# %%
#| export
_SCALARS = {0: 'B', 1: 'b', 2: 'H', 3: 'h', 4: 'I', 5: 'i', 6: 'f', 7: '?', 10: 'Q', 11: 'q', 12: 'd'}

MOST_VALUES = 1 << 22  # in a list: twice the largest vocabulary

class _Head:
    "The head of a GGUF file, read from front to back, and not mapped: another program may cut the file meanwhile."
    def __init__(self, path, file):
        self.path, self.file, self.size, self.at = path, file, os.fstat(file.fileno()).st_size, 0

    def read(self, size: int) -> bytes:
        data = self.file.read(size) if size <= self.size - self.at else b''
        if len(data) < size:
            raise VocabError(self.path, 'truncated', f'{size} bytes at {self.at}', f'a file of {self.size} bytes')
        self.at += size
        return data

    def number(self, code: str): return struct.unpack('<' + code, self.read(struct.calcsize(code)))[0]
    def text(self) -> bytes: return self.read(self.number('Q'))

    def value(self, kind: int):
        if kind == 8: return self.text()
        if kind in _SCALARS: return self.number(_SCALARS[kind])
        if kind != 9:
            raise VocabError(self.path, 'unknown type of value', f'one of {[*_SCALARS, 8, 9]}',
                             f'{kind} at {self.at - 4}')
        inner, count = self.number('I'), self.number('Q')
        if inner == 9 or count > MOST_VALUES:
            raise VocabError(self.path, 'malformed list', f'a flat list of at most {MOST_VALUES} values',
                             f'{count} values of type {inner}')
        return [self.value(inner) for _ in range(count)]


# %%
#| export
def gguf_metadata(path: str | os.PathLike) -> dict:
    "The keys and values at the head of a GGUF file; texts as bytes."
    with open(path, 'rb') as f:
        head, found = _Head(path, f), {}
        magic, version, _, count = struct.unpack('<4sIQQ', head.read(24))
        if magic != b'GGUF' or version not in (2, 3):
            raise VocabError(path, 'not a GGUF file', 'GGUF, version 2 or 3',
                             f'{magic!r}, version {version}')
        for _ in range(count):
            key = head.text()
            if key in found: raise VocabError(path, 'duplicate key', 'every key once', repr(key))
            found[key] = head.value(head.number('I'))
    return {key.decode('utf-8', 'replace'): value for key, value in found.items()}


# %%
#| export
_GGUF_PATTERNS = {b'gpt-2': 'gpt2', b'smollm': 'smollm2', b'gpt-4o': 'o200k'}

def read_gguf(path: str | os.PathLike) -> Vocab:
    "The vocabulary inside a GGUF file, of a byte-level BPE."
    found = gguf_metadata(path)
    get = lambda name, default=None: found.get('tokenizer.ggml.' + name, default)
    if get('model') != b'gpt2':
        raise VocabError(path, 'not a byte-level BPE', "tokenizer.ggml.model b'gpt2'",
                         repr(get('model')))
    if get('pre') not in _GGUF_PATTERNS:
        raise VocabError(path, 'unknown pattern', f'tokenizer.ggml.pre, one of {[*_GGUF_PATTERNS]}',
                         repr(get('pre')))
    lists = [get(name) for name in ('tokens', 'merges', 'token_type')]
    expected = 'tokens and merges as texts, a type for every token'
    if not all(isinstance(x, list) for x in lists):
        raise VocabError(path, 'malformed vocabulary', expected, ', '.join(type(x).__name__ for x in lists))
    if len(lists[0]) != len(lists[2]) or not all(isinstance(t, bytes) for t in lists[0] + lists[1]):
        raise VocabError(path, 'malformed vocabulary', expected, f'{len(lists[0])} tokens, {len(lists[2])} types')
    try: words, lines = ([t.decode() for t in x] for x in lists[:2])
    except UnicodeDecodeError as e:
        raise VocabError(path, 'not UTF-8', 'UTF-8', repr(e.object[:40])) from None
    twice = len(words) - len(set(words))
    if twice: raise VocabError(path, 'duplicate token', 'every token once', f'{twice} repeated')
    ids = {w: i for i, w in enumerate(words)}
    special = {w: i for w, i, kind in zip(words, ids.values(), lists[2])
               if kind in (3, 4)}  # control, user-defined
    return from_characters(path, ids, as_pairs(path, lines), special, _GGUF_PATTERNS[get('pre')])


# %%
smollm2 = read_gguf(fetch('smollm2')/'SmolLM2-135M-Instruct.Q4_1.gguf')
len(smollm2), smollm2.pattern, list(smollm2.special)[:3]

# %% [markdown]
# Refused: a file that is cut off, and a length that would fill all memory.

# %%
import tempfile
from pathlib import Path
head = (fetch('smollm2')/'SmolLM2-135M-Instruct.Q4_1.gguf').open('rb').read(5000)
for damage in (lambda head: head[:1000], lambda head: head[:24] + b'\xff'*8 + head[32:]):
    with tempfile.NamedTemporaryFile() as f:
        Path(f.name).write_bytes(damage(head))
        try: read_gguf(f.name)
        except VocabError as e: print(str(e).replace(f.name, 'model.gguf'))

# %% [markdown]
# ## What this does not show
#
# `tokenizer.ggml.pre` names patterns by the model they were first seen in; only three of those names are known here.
