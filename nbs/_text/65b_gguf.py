# %%
#| default_exp checkpoint.gguf

# %% [markdown]
# # GGUF
# > A model, its tokenizer and its settings in one file; read without believing a word of it.

# %% [markdown]
# A [GGUF](https://github.com/ggml-org/ggml/blob/master/docs/gguf.md) file is what programs of the llama.cpp family load:
# settings and the tokenizer's tokens as named values, then a list of tensors, then their bytes. Everything has its length
# in front of it. That is easy to read, and easy to be fooled by: a count of $2^{60}$ asks a careless reader for more
# memory than there is. So here no count and no length is used before it was held against what is left of the file.

# %%
#| hide
#| export
import math, os, struct
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from bendml.checkpoint.blocks import NUMBERS, TYPES
from bendml.checkpoint.layout import check_layout
from bendml.checkpoint.weights import CheckpointError, Missing, Stored, Weights, map_file, possible, short, view


# %% [markdown]
# ## A place in the file
#
# All reading goes through `take`: it moves on by so many bytes, or says that the file ends before.

# %%
#| export
class Cursor:
    "A place in a file's bytes, moving forward."
    def __init__(self, path, data, at: int = 0): self.path, self.data, self.at = path, data, at

    def take(self, n: int, what: str) -> int:
        "Move on by `n` bytes; where they began. `CheckpointError` if there are not so many."
        left = len(self.data) - self.at
        if n > left:
            raise CheckpointError(self.path, f'truncated in {what}', f'{n} bytes at byte {self.at}',
                                  f'{left} bytes')
        self.at += n
        return self.at - n

    def number(self, code: str, what: str) -> int | float:
        "A number, in `struct`'s code for its type."
        return struct.unpack_from(code, self.data, self.take(struct.calcsize(code), what))[0]

    def string(self, what: str) -> tuple[int, int]:
        "Where a string begins and ends; its length stands before it."
        begin = self.take(self.number('<Q', what), what)
        return begin, self.at

    def name(self, what: str) -> str:
        "A string as text."
        return as_text(self.path, self.data, *self.string(what), what)


# %%
#| export
MAX_NAME = 65_535   # bytes, says the format

def as_text(path, data, begin: int, end: int, what: str, most: int | None = MAX_NAME) -> str:
    "Bytes as text; `CheckpointError` if they are not UTF-8, or too many."
    if most is not None and end - begin > most:
        raise CheckpointError(path, f'{what} is too long', f'at most {most} bytes', f'{end - begin}')
    try: return data[begin:end].decode()
    except UnicodeDecodeError:
        raise CheckpointError(path, what, 'valid UTF-8', short(data[begin:min(end, begin + 40)])) from None


# %% [markdown]
# ## Values
#
# A value is a number, a truth value, a string, or an array of these. When the file is opened we only find out where each
# value lies; it is made when it is asked for. A tokenizer's 49,152 tokens cost nothing to those who do not want them.

# %%
#| export
KINDS = {0: 'B', 1: 'b', 2: '<H', 3: '<h', 4: '<I', 5: '<i', 6: '<f', 7: '?', 8: 'string', 9: 'array',
         10: '<Q', 11: '<q', 12: '<d'}

class Value(NamedTuple):
    "Where a value of a file lies."
    kind: str           # a code of `struct`, or string
    begin: int          # byte offset
    count: int | None   # of an array


# %%
#| export
def _pass_over(c: Cursor, what: str) -> Value:
    "Find out where a value lies, and go on behind it."
    kind = _kind(c, what)
    if kind != 'array': return Value(kind, _pass(c, kind, 1, what), None)
    kind, count = _kind(c, what), c.number('<Q', what)
    if kind == 'array':
        raise CheckpointError(c.path, what, 'an array of numbers or strings', 'an array of arrays')
    return Value(kind, _pass(c, kind, count, what), count)


# %%
#| export
def _kind(c: Cursor, what: str) -> str:
    number = c.number('<I', what)
    if number not in KINDS:
        raise CheckpointError(c.path, f'unknown type of {what}', 'a number from 0 to 12', f'{number}')
    return KINDS[number]


# %%
#| export
def _pass(c: Cursor, kind: str, count: int, what: str) -> int:
    "Go on behind `count` values; where they began."
    if kind != 'string': return c.take(count*struct.calcsize(kind), what)
    begin = at = c.take(8*count, what)   # each has its length in front of it; so there are not more than that
    c.at, length = begin, struct.Struct('<Q').unpack_from
    try:
        for _ in range(count): at += 8 + length(c.data, at)[0]
        c.take(at - begin, what)
    except (struct.error, OverflowError):   # the file ends before: where?
        for _ in range(count): c.string(what)
    return begin


# %%
#| export
class Settings(Mapping):
    "A file's values by name; numbers, text, lists of text, and arrays that are views."
    def __init__(self, path, data, found: dict[str, Value]):
        self.path, self.data, self.found = path, data, found

    def __iter__(self): return iter(self.found)
    def __len__(self): return len(self.found)
    def __contains__(self, key): return key in self.found

    def __getitem__(self, key: str):
        if key not in self.found:
            raise Missing(self.path, 'no such value', short(key), f'{len(self)} other values')
        kind, begin, count = self.found[key]
        if kind == 'string':
            found = list(self._strings(key, begin, 1 if count is None else count))
            return found[0] if count is None else found
        if count is None: return struct.unpack_from(kind, self.data, begin)[0]
        a = view(self.data, 'u1' if kind == '?' else kind, (count,), begin)
        return a != 0 if kind == '?' else a

    def _strings(self, key: str, begin: int, count: int) -> Iterator[str]:
        c = Cursor(self.path, self.data, begin)
        for _ in range(count): yield as_text(self.path, self.data, *c.string(key), short(key), most=None)


# %% [markdown]
# ## Tensors
#
# A tensor has a name, up to four lengths, the number of its type, and an offset. The lengths stand the other way round
# than in NumPy, the one whose neighbours lie side by side first.

# %%
#| export
def _tensor(c: Cursor, align: int) -> tuple[str, Stored]:
    "What a file says about one tensor; its bytes begin where the data begin."
    name = c.name("a tensor's name")
    what = f'tensor {short(name)}'
    if (rank := c.number('<I', what)) > 4:
        raise CheckpointError(c.path, what, 'at most 4 axes', f'{rank}')
    shape = tuple(c.number('<Q', what) for _ in range(rank))[::-1]
    number, begin = c.number('<I', what), c.number('<Q', what)
    if number not in NUMBERS:
        raise CheckpointError(c.path, f'{what}: unknown type',
                              f'one of {", ".join(NUMBERS.values())}', f'number {number}')
    t = TYPES[NUMBERS[number]]
    if begin % align:
        raise CheckpointError(c.path, f'{what}: misaligned', f'begin at a multiple of {align}',
                              f'begin at {begin}')
    if not possible(shape):
        raise CheckpointError(c.path, what, 'a shape that an array can have', short(shape))
    if (shape or (1,))[-1] % t.block:
        raise CheckpointError(c.path, what, f'rows of whole blocks of {t.block}', f'the shape {shape}')
    return name, Stored(NUMBERS[number], shape, begin, begin + math.prod(shape)//t.block*t.size)


# %% [markdown]
# ## Reading
#
# The bytes of each tensor begin at a multiple of the file's alignment. Whether they may lie there is decided by the
# function that the [page on layout](64b_layout.ipynb) is about.

# %%
#| export
def read_gguf(path: str | os.PathLike) -> Weights:
    "The tensors and settings of a GGUF file; `CheckpointError` for any bytes that are not one."
    c = Cursor(path, map_file(path, 24))
    magic, version = c.data[:4], int.from_bytes(c.data[4:8], 'little')
    if magic != b'GGUF': raise CheckpointError(path, 'not a GGUF file', "b'GGUF'", short(magic))
    if version not in (2, 3):
        hint = 'a file for machines of the other byte order' if version and version % 65536 == 0 else ''
        raise CheckpointError(path, 'unknown version of GGUF', '2 or 3', f'{version}', hint)
    c.at = 8
    tensor_count, value_count = c.number('<Q', 'the counts'), c.number('<Q', 'the counts')
    values = _named(c, value_count, 'key', lambda: (name := c.name('a key'), _pass_over(c, short(name))))
    settings = Settings(path, c.data, values)
    align = _alignment(path, settings)
    tensors = _named(c, tensor_count, 'tensor', lambda: _tensor(c, align))
    start = c.at + -c.at % align
    check_layout(path, tensors, TYPES, max(len(c.data) - start, 0), align)
    moved = {name: t._replace(begin=t.begin + start, end=t.end + start) for name, t in tensors.items()}
    return Weights(path, c.data, TYPES, moved, settings)


# %%
#| export
def _named(c: Cursor, count: int, what: str, read) -> dict:
    "Read `count` things that have names, each name once. The file ends before a count that is too large does."
    found = {}
    for _ in range(count):
        name, thing = read()
        if name in found:
            raise CheckpointError(c.path, f'duplicate {what} {short(name)}', 'each name once',
                                  'the name again')
        found[name] = thing
    return found


# %%
#| export
def _alignment(path, settings: Settings) -> int:
    "To what the tensors are aligned."
    key = 'general.alignment'
    if key not in settings: return 32
    kind, _, count = settings.found[key]
    if kind != '<I' or count is not None:
        raise CheckpointError(path, key, 'one number of type uint32', 'something else')
    if (align := settings[key]).bit_count() != 1:
        raise CheckpointError(path, key, 'a power of 2', f'{align}')
    return align


# %% [markdown]
# SmolLM2, a small model that the [data page](00_data.ipynb) fetches:

# %%
from bendml.data import fetch
w = read_gguf(fetch('smollm2')/'SmolLM2-135M-Instruct.Q4_1.gguf')
print(w)
{key: w.metadata[key] for key in w.metadata if key.startswith('llama.')}

# %%
for name in list(w)[:4]: print(name, w.stored[name].dtype, w.stored[name].shape)
w['blk.0.attn_q.weight'].shape, w.float32('blk.0.attn_q.weight')[0, :4]

# %%
tokens = w.metadata['tokenizer.ggml.tokens']
len(tokens), tokens[1000:1005]

# %% [markdown]
# ## What is refused
#
# The first bytes of that file, with one count changed, and cut off:

# %%
#| hide
import os, tempfile
folder = tempfile.TemporaryDirectory()
os.chdir(folder.name)


# %%
def refused(content):
    with open('a.gguf', 'wb') as f: f.write(content)
    try: read_gguf('a.gguf')
    except CheckpointError as e: print(e)

begin = bytes(w.data[:4_000_000])
refused(begin)
refused(begin[:16] + b'\xff'*8 + begin[24:])
refused(begin[:1000])

# %%
refused(begin[:4] + b'\0\0\0\3' + begin[8:])

# %%
#| hide
os.chdir('/')
folder.cleanup()

# %% [markdown]
# ## What this does not show
#
# - That the file's bytes mean what llama.cpp's own library says they mean is tested, on files that this library writes
#   and on the real one; it is not proved.
# - Arrays of arrays, which the format knows and no file has, are refused, and so are files of the other byte order.
# - Names and records are Python objects, some 400 bytes each. A file of nothing but millions of names takes a multiple
#   of its size in memory.
