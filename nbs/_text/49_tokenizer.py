# %%
#| default_exp tokenizer.__init__

# %% [markdown]
# # Tokenizer
# > Text to ids and back: train, load, encode, decode, stream.

# %% [markdown]
# A language model reads numbers. A tokenizer turns text into them, and the model's numbers back into text. Three
# things must never go wrong: the text comes back whole, whatever was in it; the ids are those that the model was
# trained on; and it does not take longer than the model.
#
# The first is proved, for the specification, on the page about BPE. The second is tested against tiktoken. The third
# is measured.

# %%
#| hide
#| export
import codecs, os, re, sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import BinaryIO

import click
import numpy as np

from bendml.data import fetch
from bendml.tokenizer.formats import read_gpt2, read_hf, read_tiktoken, write
from bendml.tokenizer.gguf import read_gguf
from bendml.tokenizer.vocab import BYTES, Vocab, VocabError, checked


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
# ## Encoding
#
# A special token such as `<|endoftext|>` is an order to the model. Text from outside must not give orders by
# accident, so which special tokens are read as such is an explicit choice: those in `allowed_special` are; text that
# has one in `disallowed_special` (all others, unless you say otherwise) is refused; any other is ordinary text.

# %%
#| export
class _Encoder:
    "The half of a tokenizer that makes ids; it compiles when first used."
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
        parts = iter([ids[i:j] for i, j in zip([0, *ends], ends)])
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


# %% [markdown]
# ## Decoding
#
# A token may be a part of a character: 👍 is two tokens of GPT-2's, neither of which is UTF-8. `decode_bytes` gives
# the bytes as they are; `decode` says what to do with what is no text; a stream holds incomplete characters back
# until the rest has come.

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
        ids = np.asarray(ids if isinstance(ids, (np.ndarray, list, tuple)) else list(ids))
        if ids.size == 0: return b''
        if ids.ndim != 1 or ids.dtype.kind not in 'iu':
            raise TypeError(f'not a list of ids\n- expected : integers, one axis\n- observed : {ids.dtype}, {ids.ndim} axes')
        low, high, table = int(ids.min()), int(ids.max()), self._table
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


# %% [markdown]
# ## Training
#
# Texts are strings, bytes, or `Path`s of files. Each is a text of its own: no word reaches from one into the next. A
# special token in a text is not learned from; it separates.

# %%
#| export
class _Trainer(_Bulk):
    "How a tokenizer comes to be."
    @classmethod
    def train(
        cls,
        texts: str | bytes | Path | Iterable[str | bytes | Path],  # a Path is a file
        vocab_size: int,                     # 256 bytes, the merges, and the special tokens
        *,
        pattern: str | None = 'gpt2',        # how words are cut; None: not at all
        special_tokens: Iterable[str] = (),  # they get the last ids
        progress: bool | None = None,        # a bar; None: on a terminal
    ) -> 'Tokenizer':
        "Learn the merges of texts: the most frequent pair again and again, of equals the one that appears first."
        from bendml.tokenizer.split import PATTERNS
        special_tokens = list(dict.fromkeys(special_tokens))
        merges = vocab_size - 256 - len(special_tokens)
        if merges < 0:
            raise TokenError('vocabulary too small', f'at least {256 + len(special_tokens)} ids',
                             str(vocab_size))
        if pattern is not None and pattern not in PATTERNS:
            raise TokenError('unknown pattern', f'None or one of {[*PATTERNS]}', repr(pattern))
        start = cls(Vocab(BYTES, (), {t: 256 + k for k, t in enumerate(special_tokens)}, pattern))
        counter = start._count(texts, progress)
        found, tokens = _merge(counter.result(), merges, progress), list(BYTES)
        for a, b in found: tokens.append(tokens[a] + tokens[b])
        made = tuple((a, b, 256 + k) for k, (a, b) in enumerate(found))
        return cls(Vocab(tuple(tokens), made, {t: len(tokens) + k for k, t in enumerate(special_tokens)},
                         pattern))

    def _count(self, texts, progress):
        "Count the words of texts."
        from bendml.tokenizer.train import WordCounter
        counter = WordCounter(self._engine.pattern, self._engine.classes)
        special, _ = self._special('all', ())
        with _bar(None, 'B', progress) as bar:
            def count(data, bound):
                i = 0
                for start, end, _ in cuts(data, special):
                    i += counter.add(data[i:start], max(min(bound, start) - i, 0))
                    if i < start: break
                    i = end
                bar.update(i)
                return i
            for text in [texts] if isinstance(texts, (str, bytes, Path)) else texts:
                if isinstance(text, Path):
                    with open(text, 'rb') as source: self._in_blocks(source, 1 << 22, special, count)
                else:
                    data = to_utf8(text)
                    count(data, len(data))
        return counter


# %%
#| export
def _merge(counted, merges: int, progress: bool | None) -> list[list[int]]:
    "Find the merges in another thread, so that the bar moves and the keyboard can interrupt."
    from bendml.tokenizer.train import train_words
    state = np.zeros(2, np.int64)
    with ThreadPoolExecutor(1) as pool, _bar(merges, ' merges', progress) as bar:
        job = pool.submit(train_words, *counted, merges, state)
        try:
            while not job.done():
                try: job.exception(timeout=0.1)
                except TimeoutError: pass
                bar.update(int(state[0]) - bar.n)
        finally: state[1] = 1
        return job.result().tolist()


# %% [markdown]
# ## All of it

# %%
#| export
class Tokenizer(_Trainer, _Decoder):
    "A byte-pair tokenizer: text to ids and back."
    def __init__(self, vocab: Vocab): self.vocab = checked(vocab)

    @classmethod
    def gpt2(cls) -> 'Tokenizer':
        "GPT-2's tokenizer, fetched if it is not there yet."
        return cls.load(fetch('gpt2-bpe'))

    @classmethod
    def load(
        cls,
        path: str | os.PathLike,                       # tokenizer.json, .tiktoken, .gguf, or a folder
        *,
        pattern: str | None = '',                      # for .tiktoken files, which do not say it
        special_tokens: dict[str, int] | None = None,  # likewise
    ) -> 'Tokenizer':
        "A tokenizer from a file; `VocabError` if it is malformed or of an unknown kind."
        path, new = Path(path), cls.__new__(cls)
        if path.is_dir():
            new.vocab = read_hf(path/'tokenizer.json') if (path/'tokenizer.json').exists() else read_gpt2(path)
        elif path.suffix == '.tiktoken':
            if pattern == '':
                raise VocabError(path, 'this format does not say how words are cut',
                                 "pattern='cl100k' or another", 'no pattern')
            new.vocab = read_tiktoken(path, pattern, special_tokens)
        else:
            with open(path, 'rb') as f:
                new.vocab = read_gguf(path) if f.read(4) == b'GGUF' else read_hf(path)
        return new

    def save(self, path: str | os.PathLike) -> None:
        "Write it: `.json` (Hugging Face's), `.tiktoken`, or a folder for GPT-2's two files."
        write(self.vocab, path)

    def __len__(self) -> int: return len(self.vocab)
    def __repr__(self) -> str:
        merges, special = len(self.vocab.merges), len(self.vocab.special)
        return f'Tokenizer({len(self)} ids, {merges} merges, {special} special, pattern {self.vocab.pattern})'

    def count(self, text: str | bytes, **special) -> int:
        "How many ids a text has."
        return len(self.encode(text, as_array=True, **special))

    def offsets(self, text: str | bytes, **special) -> tuple[list[int], list[tuple[int, int]]]:
        "The ids of a text, and the characters (of bytes: the bytes) that each stands for; they may overlap."
        ids, data = self.encode(text, **special), np.frombuffer(to_utf8(text), np.uint8)
        ends = np.cumsum([len(self._table[i]) for i in ids], dtype=np.int64)
        place = np.cumsum(data & 0xC0 != 0x80) if isinstance(text, str) else np.arange(1, len(data) + 1)
        starts = np.concatenate([[0], ends[:-1]])[:len(ends)].astype(np.int64)
        return ids, list(zip((place[starts] - 1).tolist(), place[ends - 1].tolist()))


# %%
gpt2 = Tokenizer.gpt2()
ids = gpt2.encode('Wait — the café costs €5 😀')
print(ids, gpt2.decode(ids), gpt2.offsets('café 👍'), sep='\n')

# %%
try: gpt2.encode('hello <|endoftext|>')
except TokenError as e: print(e)

# %%
gpt2.encode('hello <|endoftext|>', allowed_special='all'), gpt2.encode('hello <|endoftext|>',
                                                                       disallowed_special=())

# %%
stream = gpt2.stream_decoder()
[stream.feed(i) for i in gpt2.encode('a👍!')]

# %% [markdown]
# Trained on a few words. The merges are those of the page about BPE.

# %%
tiny = Tokenizer.train('aaabdaaabac', 260, special_tokens=['<|end|>'])
tiny, tiny.encode('aaabdaaabac'), tiny.encode('aab<|end|>', allowed_special='all')

# %%
try: tiny.decode([97, 300])
except TokenError as e: print(e)


# %% [markdown]
# ## On the command line
#
#     echo "Hello world" | bendml tokenize --show
#     bendml tokenize book.txt | bendml detokenize
#     bendml train-tokenizer *.txt --vocab-size 5000 --out tokenizer.json

# %%
#| export
def _load(name: str, pattern: str) -> Tokenizer:
    "The tokenizer that a command names."
    try: return Tokenizer.gpt2() if name == 'gpt2' else Tokenizer.load(name, pattern=pattern)
    except (OSError, ValueError) as e: raise click.ClickException(str(e)) from None

def _inputs(files: tuple[str, ...]) -> Iterator[bytes]:
    "What the files hold, or what comes on standard input."
    if not files: yield sys.stdin.buffer.read()
    for name in files: yield Path(name).read_bytes()

_files = click.argument('files', nargs=-1, type=click.Path(exists=True, dir_okay=False))
_which = click.option('--tokenizer', 'name', default='gpt2', show_default=True,
                      help='gpt2, or a file: tokenizer.json, .tiktoken, .gguf')
_cut = click.option('--pattern', default='', help='How words are cut; .tiktoken files do not say it.')


# %%
#| export
@click.command()
@_files
@_which
@_cut
@click.option('--special', is_flag=True,
              help='Read special tokens in the text as such; otherwise they are ordinary text.')
@click.option('--show', is_flag=True, help='The text itself, a colour a token.')
@click.option('--count', is_flag=True, help='Only how many.')
def tokenize(files, name, pattern, special, show, count):
    "Turn text, FILES or standard input, into ids."
    tokenizer = _load(name, pattern)
    for data in _inputs(files):
        try:
            ids = tokenizer.encode(data, allowed_special='all' if special else (), disallowed_special=())
        except TokenError as e: raise click.ClickException(str(e)) from None
        click.echo(len(ids) if count else coloured(tokenizer, ids) if show else ' '.join(map(str, ids)))

COLOURS = 'bright_cyan', 'bright_yellow', 'bright_magenta', 'bright_green'

def coloured(tokenizer: Tokenizer, ids: list[int]) -> str:
    "The text of the ids, each in a colour of its own; a part of a character as its bytes."
    def text(i):
        data = tokenizer.decode_bytes([i])
        try:
            return ''.join(c if c.isprintable() or c in '\n\t' else repr(c)[1:-1] for c in data.decode())
        except UnicodeDecodeError: return data.hex(' ').join('<>')
    return ''.join(click.style(text(i), fg='black', bg=COLOURS[k % 4]) for k, i in enumerate(ids))


# %%
#| export
@click.command()
@_files
@_which
@_cut
def detokenize(files, name, pattern):
    "Turn ids, numbers in FILES or on standard input, back into text."
    tokenizer = _load(name, pattern)
    for data in _inputs(files):
        try: sys.stdout.buffer.write(tokenizer.decode_bytes([int(word) for word in data.split()]))
        except ValueError as e: raise click.ClickException(str(e)) from None


# %%
#| export
@click.command()
@_files
@click.option('--vocab-size', required=True, type=int,
              help='256 bytes, the merges, and the special tokens.')
@click.option('--out', required=True, type=click.Path(),
              help='tokenizer.json, a .tiktoken file, or a folder for vocab.bpe and encoder.json.')
@click.option('--pattern', default='gpt2', show_default=True,
              help='gpt2, smollm2, cl100k, o200k, or none.')
@click.option('--special', 'special', multiple=True, help='A special token; may be given several times.')
def train_tokenizer(files, vocab_size, out, pattern, special):
    "Learn a tokenizer from FILES or standard input."
    texts = map(Path, files) if files else _inputs(())
    try:
        tokenizer = Tokenizer.train(texts, vocab_size, pattern=None if pattern == 'none' else pattern,
                                    special_tokens=special)
        tokenizer.save(out)
    except (OSError, ValueError) as e: raise click.ClickException(str(e)) from None
    click.echo(f'{out}: {tokenizer}', err=True)


# %%
from click.testing import CliRunner
out = CliRunner().invoke(tokenize, input=' How do you do?\n')
print(out.output, CliRunner().invoke(detokenize, input=out.output).output)

# %% [markdown]
# ## What this does not show
#
# That the compiled loops do what the specification says is tested on thousands of random tables and texts, not
# proved. tiktoken's other entry points (`encode_with_unstable`, and patterns of your own) have no counterpart here.
