# %%
#| default_exp checkpoint.safetensors

# %% [markdown]
# # Safetensors
# > Weights in a file that nobody has to trust: every size is checked first, and nothing is copied.

# %% [markdown]
# Weights travel as files, and files come from strangers. The oldest way to store them in Python, `pickle`, runs code
# that the file brings along. [Safetensors](https://github.com/huggingface/safetensors) cannot do that: a file is eight
# bytes that tell the length of a header, the header, which is JSON, and then plain numbers.
#
# ```
# 57                                                              8 bytes
# {"t":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}}      57 bytes
# 0.0 0.0 0.0 0.0                                                16 bytes
# ```
#
# What can still go wrong is that the header lies: about its length, about a shape, about where a tensor begins. So
# this reader does not believe it. Any bytes at all give either the tensors or a refusal that says what is wrong; and
# that an accepted file gives each byte of its data to exactly one tensor is proved, for all files, about the function
# that checks them.

# %%
#| hide
#| export
import json, os, re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np

from bendml.checkpoint.layout import check_layout
from bendml.checkpoint.weights import (CheckpointError, Missing, Stored, Type, Weights, as_float32, map_file,
                                       possible, short, widen)


# %% [markdown]
# ## The header
#
# A JSON library would turn the header into lists and dictionaries first, and let us look afterwards: 100 MB of `[[],[],`
# become two gigabytes, and a million `[` can end the program. So we read the words one after the other, and expect at
# each place what may stand there.

# %%
#| export
def _word(pattern: bytes) -> re.Pattern: return re.compile(rb'[ \t\n\r]*+(' + pattern + b')', re.S)

_NUMBER = rb'[ \t\n\r]*+(?:0|[1-9]\d{0,19}+)[ \t\n\r]*+'
_STRING = _word(rb'"(?:[^"\\\x00-\x1f]++|\\.)*+"')
_NUMBERS = _word(rb'\[(?:[ \t\n\r]*+|' + _NUMBER + rb'(?:,' + _NUMBER + rb'){0,63}+)\]')
_PLAIN = _word(_STRING.pattern + rb'|-?(?:\d[-+.eE\d]{0,4000}+|Infinity)|NaN|true|false|null')
_OPEN, _CLOSE, _COLON, _NEXT, _END = map(_word, (rb'\{', rb'\}', rb':', rb'[,}]', rb'\Z'))


# %%
#| export
class Words:
    "The words of a JSON text, one after the other; `CheckpointError` tells where something else stands."
    def __init__(self, path, text, begin: int, end: int):
        self.path, self.text, self.at, self.end = path, text, begin, end

    def refuse(self, problem: str, expected: str, observed: str | None = None) -> CheckpointError:
        "What is wrong here."
        seen = short(bytes(self.text[self.at:min(self.at + 20, self.end)])) if self.at < self.end else 'the end'
        return CheckpointError(self.path, f'{problem}, at byte {self.at}', expected, observed or seen)

    def take(self, word: re.Pattern, expected: str) -> bytes:
        "The next word, and go on behind it."
        found = word.match(self.text, self.at, self.end)
        if not found: raise self.refuse('header', expected)
        self.at = found.end()
        return found[1]

    def end_of_text(self) -> None: self.take(_END, 'the end')


# %%
#| export
MAX_NAME = 65_535   # bytes

def as_text(raw: bytes) -> str | None:
    "A JSON string's text; None if it is not valid."
    try: (text := json.loads(raw.decode())).encode()   # a lone surrogate is no text
    except ValueError: return None
    return text


# %%
#| export
def read_string(words: Words) -> str:
    "A short string: a name."
    raw = words.take(_STRING, 'a string')
    text = as_text(raw) if len(raw) <= MAX_NAME else None
    if text is None:
        raise words.refuse('header', f'a string of valid UTF-8, {MAX_NAME} bytes at most', short(raw))
    return text


# %%
#| export
def read_span(words: Words) -> tuple[int, int]:
    "Where a string of any length begins and ends."
    raw = words.take(_STRING, 'a string')
    return words.at - len(raw), words.at


# %%
#| export
def read_numbers(words: Words) -> tuple[int, ...]:
    "A list of whole numbers, none negative."
    raw = words.take(_NUMBERS, 'at most 64 whole numbers in brackets')[1:-1]
    return tuple(map(int, raw.split(b','))) if raw.strip() else ()


# %%
#| export
def read_plain(words: Words) -> str | int | float | bool | None:
    "A string, a number, true, false or null."
    raw = words.take(_PLAIN, 'a string, a number, true, false or null')
    try: return json.loads(raw.decode())
    except ValueError:
        raise words.refuse('not JSON', 'a string, a number, true, false or null', short(raw)) from None


# %%
#| export
def read_names(words: Words) -> Iterator[str]:
    "The names of an object's members; the caller reads each value before asking for the next name."
    words.take(_OPEN, '{')
    seen, more = set(), not _CLOSE.match(words.text, words.at, words.end)
    if not more: words.take(_CLOSE, '}')
    while more:
        name = read_string(words)
        if name in seen:
            raise words.refuse(f'duplicate key {short(name)}', 'each name once', 'the name again')
        seen.add(name)
        words.take(_COLON, ':')
        yield name
        more = words.take(_NEXT, ', or }') == b','


# %% [markdown]
# The metadata are texts of any length. They are decoded when they are asked for.

# %%
#| export
class Texts(Mapping[str, str]):
    "A file's texts by name."
    def __init__(self, path, data, spans: dict[str, tuple[int, int]]):
        self.path, self.data, self.spans = path, data, spans
    def __iter__(self): return iter(self.spans)
    def __len__(self): return len(self.spans)
    def __contains__(self, name): return name in self.spans
    def __getitem__(self, name: str) -> str:
        if name not in self.spans:
            raise Missing(self.path, 'no such metadata', short(name), f'{len(self)} other names')
        raw = self.data[slice(*self.spans[name])]
        if (text := as_text(raw)) is None:
            raise CheckpointError(self.path, f'metadata {short(name)}', 'valid UTF-8', short(raw))
        return text


# %% [markdown]
# The element types, in the format's own order. Floating point of 8, 6 and 4 bits comes as the bytes it is.

# %%
#| export
_8BITS = 'F8_E5M2 F8_E4M3 F8_E8M0 F8_E4M3FNUZ F8_E5M2FNUZ'.split()
TYPES = {'BOOL': Type(1, 1, '?'), 'F4': Type(2, 1, 'u1'),
         'F6_E2M3': Type(4, 3, 'u1'), 'F6_E3M2': Type(4, 3, 'u1'),
         'U8': Type(1, 1, 'u1'), 'I8': Type(1, 1, 'i1'), **{name: Type(1, 1, 'u1') for name in _8BITS},
         'I16': Type(1, 2, '<i2'), 'U16': Type(1, 2, '<u2'), 'F16': Type(1, 2, '<f2', as_float32),
         'BF16': Type(1, 2, '<u2', widen), 'I32': Type(1, 4, '<i4'), 'U32': Type(1, 4, '<u4'),
         'F32': Type(1, 4, '<f4', as_float32), 'C64': Type(1, 8, '<c8'), 'F64': Type(1, 8, '<f8', as_float32),
         'I64': Type(1, 8, '<i8'), 'U64': Type(1, 8, '<u8')}


# %%
#| export
def _read_entry(words: Words, name: str) -> Stored:
    "What a header says about one tensor."
    said = {}
    for key in read_names(words):
        if key == 'dtype': said[key] = read_string(words)
        elif key in ('shape', 'data_offsets'): said[key] = read_numbers(words)
        else: raise words.refuse(f'tensor {short(name)}', 'dtype, shape and data_offsets', short(key))
    if len(said) < 3:
        raise words.refuse(f'tensor {short(name)}', 'dtype, shape and data_offsets',
                           f'only {", ".join(said) or "nothing"}')
    if said['dtype'] not in TYPES:
        raise words.refuse(f'tensor {short(name)}: unknown dtype', ', '.join(TYPES), short(said['dtype']))
    if len(said['data_offsets']) != 2:
        raise words.refuse(f'tensor {short(name)}: data_offsets', 'two numbers',
                           f'{len(said["data_offsets"])}')
    if not possible(said['shape']):
        raise words.refuse(f'tensor {short(name)}', 'a shape that an array can have', short(said['shape']))
    return Stored(said['dtype'], said['shape'], *said['data_offsets'])


# %%
#| export
def _read_header(words: Words) -> tuple[dict[str, Stored], Texts]:
    "The tensors and the metadata of a header."
    tensors, metadata = {}, {}
    for name in read_names(words):
        if name == '__metadata__': metadata = {key: read_span(words) for key in read_names(words)}
        else: tensors[name] = _read_entry(words, name)
    words.end_of_text()
    return tensors, Texts(words.path, words.text, metadata)


# %% [markdown]
# ## Reading
#
# First the length of the header against the length of the file, then the header, then the places.

# %%
#| export
MAX_HEADER = 100_000_000

def read_safetensors(path: str | os.PathLike) -> Weights:
    "The tensors of a safetensors file; `CheckpointError` for any bytes that are not one."
    data = map_file(path, 8)
    length = int.from_bytes(data[:8], 'little')
    start, n = 8 + length, len(data) - 8 - length
    if length > MAX_HEADER:
        raise CheckpointError(path, 'header too large', f'at most {MAX_HEADER} bytes', f'{length} bytes')
    if n < 0:
        raise CheckpointError(path, 'truncated', f'a header of {length} bytes',
                              f'header {length} > file {len(data)}')
    if data[8:9] != b'{':
        raise CheckpointError(path, 'not a safetensors file', 'a header that begins with {',
                              short(data[8:9]))
    tensors, metadata = _read_header(Words(path, data, 8, start))
    reached = check_layout(path, tensors, TYPES, n)
    if reached < n:
        raise CheckpointError(path, 'bytes that belong to no tensor', f'{reached} bytes of data',
                              f'{n} bytes')
    moved = {name: t._replace(begin=t.begin + start, end=t.end + start) for name, t in tensors.items()}
    return Weights(path, data, TYPES, moved, metadata)


# %% [markdown]
# ## Writing
#
# A file is written under another name in the same folder, forced to the disk, and only then renamed, which the file system
# does entirely or not at all. Whatever happens in between, a full disk or a pulled plug, the file that was there before
# is there still.

# %%
#| export
class SaveError(CheckpointError, OSError):
    "A file could not be written; what was there before is untouched."

def write_atomically(path: str | os.PathLike, blocks: Iterable) -> None:
    "Write a file entirely or not at all; `SaveError` if the disk is full or fails."
    path = Path(path)
    part = path.with_name(f'.{path.name}.saving')
    try:
        with open(part, 'wb') as f:
            for block in blocks: f.write(block)
            f.flush()
            os.fsync(f.fileno())
        os.replace(part, path)
    except BaseException as e:
        part.unlink(missing_ok=True)
        if not isinstance(e, OSError): raise
        raise SaveError(path, 'not saved', 'room on a disk that can be written to',
                        e.strerror or str(e), 'what was there before is untouched') from e
    _fsync_folder(path.parent)


# %%
#| export
def _fsync_folder(folder: Path) -> None:
    "Force a folder's names to the disk, where folders can be opened."
    if not hasattr(os, 'O_DIRECTORY'): return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try: os.fsync(handle)
    finally: os.close(handle)


# %% [markdown]
# The order of tensors is that of the format's own library: larger elements first, so that every tensor is aligned, then
# by name. The same tensors give the same bytes, here and there.

# %%
#| export
_OF_NUMPY = {np.dtype(t.numpy): name for name, t in reversed(TYPES.items()) if t.block == 1}

def _stored_as(path, name: str, a: np.ndarray, dtypes: Mapping[str, str]) -> str:
    "The type under which an array is stored."
    if not isinstance(name, str) or name == '__metadata__' or not isinstance(a, np.ndarray):
        raise CheckpointError(path, 'not a tensor', 'a name and an array',
                              f'{short(name)}: {type(a).__name__}')
    own = _OF_NUMPY.get(a.dtype.newbyteorder('<'))
    dtype = dtypes.get(name, own)
    if dtype not in TYPES or TYPES[dtype].block != 1 or np.dtype(TYPES[dtype].numpy) != a.dtype.newbyteorder('<'):
        raise CheckpointError(path, f'tensor {short(name)}', 'a type of safetensors', f'{a.dtype} as {dtype}')
    return dtype


# %%
#| export
def _header(path, tensors: Mapping, dtypes: Mapping, metadata: Mapping | None) -> tuple[bytes, list[str]]:
    "The header, padded to 8 bytes, and the names in the order of their bytes."
    stored = {name: _stored_as(path, name, a, dtypes) for name, a in tensors.items()}
    order = sorted(stored, key=lambda name: (-list(TYPES).index(stored[name]), name))
    header, at = {}, 0
    if metadata is not None: header['__metadata__'] = dict(sorted(metadata.items()))
    for name in order:
        begin, at = at, at + tensors[name].nbytes
        header[name] = {'dtype': stored[name], 'shape': tensors[name].shape, 'data_offsets': (begin, at)}
    try: text = json.dumps(header, separators=(',', ':'), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise CheckpointError(path, 'a name', 'text that UTF-8 can hold', 'a lone surrogate') from None
    if len(text) > MAX_HEADER:
        raise CheckpointError(path, 'header too large', f'at most {MAX_HEADER} bytes',
                              f'{len(text)} bytes')
    return text + b' '*(-len(text) % 8), order


# %%
#| export
def write_safetensors(
    path: str | os.PathLike,
    tensors: Mapping[str, np.ndarray],         # arrays of any layout in memory
    metadata: Mapping[str, str] | None = None,
    dtypes: Mapping[str, str] = {},            # names whose bits mean another type: {'w': 'BF16'}
) -> None:
    "Write tensors to a safetensors file, entirely or not at all; the same tensors give the same bytes."
    if any(not isinstance(text, str) for pair in (metadata or {}).items() for text in pair):
        raise CheckpointError(path, 'metadata', 'text for each name', 'something else',
                              'json.dumps makes text of it')
    text, order = _header(path, tensors, dtypes, metadata)
    def blocks():
        yield len(text).to_bytes(8, 'little') + text
        for name in order:
            a = tensors[name]
            yield np.ascontiguousarray(a, a.dtype.newbyteorder('<')).reshape(-1).view(np.uint8)
    write_atomically(path, blocks())


# %%
#| hide
import os, tempfile
folder = tempfile.TemporaryDirectory()
os.chdir(folder.name)

# %%
from bendml.checkpoint.weights import narrow
x = np.arange(6, dtype=np.float32).reshape(2, 3)
tensors = {'x': x.T, 'half': narrow(x)}
write_safetensors('small.safetensors', tensors, {'made by': 'this page'}, dtypes={'half': 'BF16'})
w = read_safetensors('small.safetensors')
assert (w['x'] == x.T).all() and (w.float32('half') == x).all() and not w['x'].flags.writeable
w, w.stored, dict(w.metadata)

# %% [markdown]
# ## What is refused
#
# The file from the top of this page, and what happens when its header lies. A length of $2^{64}-1$ costs nothing: it is
# compared with the length of the file before a byte is set aside.

# %%
F = (57).to_bytes(8, 'little') + b'{"t":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}}' + bytes(16)

def reading(content):
    with open('t.safetensors', 'wb') as f: f.write(content)
    return read_safetensors('t.safetensors')['t'].tolist()

def refused(content):
    try: reading(content)
    except CheckpointError as e: print(e)

print(reading(F))
refused(b'\xff'*8 + F[8:])

# %%
refused(F.replace(b'[0,16]', b'[0,4] '))

# %%
refused(F[:-3])

# %%
entry = '"t":{"dtype":"F32","shape":[2],"data_offsets":[%d,%d]}'
twice = ('{' + entry % (0, 8) + ',' + entry % (8, 16) + '}').encode()
refused(len(twice).to_bytes(8, 'little') + twice + bytes(16))

# %%
#| hide
os.chdir('/')
folder.cleanup()

# %% [markdown]
# ## What this does not show
#
# - That the words of the header are read as JSON means them is tested, against the format's own library, on thousands
#   of files with random damage. It is not proved.
# - The names and records of a header are Python objects, about 500 bytes a tensor. A file of nothing but millions of
#   empty tensors takes ten times its size in memory.
# - Nothing is known about the numbers. A file that lost a bit on its way is a valid file; compare a hash if it matters.
# - This reader is stricter than the library: a name may occur only once and has at most 65,535 bytes, an entry has
#   its three fields and no other, and an array has at most 64 axes.
