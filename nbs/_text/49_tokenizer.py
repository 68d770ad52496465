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
import os, re
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from bendml.data import fetch
from bendml.tokenizer.decode import StreamDecoder, _Decoder
from bendml.tokenizer.encode import TokenError, _bar, _Bulk, at_least_one, cuts, names_of, to_utf8
from bendml.tokenizer.formats import read_gpt2, read_hf, read_tiktoken, write
from bendml.tokenizer.gguf import read_gguf
from bendml.tokenizer.vocab import BYTES, MOST, Vocab, VocabError, checked
_all_ = ['StreamDecoder', 'TokenError', 'Vocab', 'VocabError']


# %% [markdown]
# ## Training
#
# Texts are strings, bytes, or `Path`s of files. Each is a text of its own: no word reaches from one into the next. A
# special token in a text is not learned from; it separates.

# %%
#| export
class _Words(_Bulk):
    "What a tokenizer is trained on."
    def _count(self, texts, progress):
        "The distinct words of texts."
        from bendml.tokenizer.counting import WordCounter
        from bendml.tokenizer.train import as_text
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
        return as_text(*counter.result())


# %%
#| export
class _Trainer(_Words):
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
        special_tokens = names_of(special_tokens)
        least = 256 + len(special_tokens)
        if at_least_one('vocab_size', vocab_size) < least: raise TokenError('vocabulary too small', f'at least {least} ids', str(vocab_size))
        if vocab_size > MOST: raise TokenError('vocabulary too large', f'at most {MOST} ids', str(vocab_size))
        merges = vocab_size - least
        if pattern is not None and pattern not in PATTERNS:
            raise TokenError('unknown pattern', f'None or one of {[*PATTERNS]}', repr(pattern))
        start = cls(Vocab(BYTES, (), {t: 256 + k for k, t in enumerate(special_tokens)}, pattern))
        found, tokens = _merge(start._count(texts, progress), merges, progress), list(BYTES)
        for a, b in found: tokens.append(tokens[a] + tokens[b])
        made = tuple((a, b, 256 + k) for k, (a, b) in enumerate(found))
        return cls(Vocab(tuple(tokens), made, {t: len(tokens) + k for k, t in enumerate(special_tokens)},
                         pattern))


# %%
#| export
def _merge(text, merges: int, progress: bool | None) -> list[list[int]]:
    "Find the merges in another thread, so that the bar moves and the keyboard can interrupt."
    from bendml.tokenizer.train import train_words
    state = np.zeros(2, np.int64)
    with ThreadPoolExecutor(1) as pool, _bar(merges, ' merges', progress) as bar:
        job = pool.submit(train_words, text, merges, state)
        try:
            while not job.done():
                try: job.exception(timeout=0.1)
                except TimeoutError: pass
                bar.update(int(state[0]) - bar.n)
        finally: state[1] = 1
        return job.result().tolist()


# %% [markdown]
# ## Which characters
#
# An id may stand for a part of a character, so two ids may stand for the same one.

# %%
#| export
class _Offsets(_Trainer, _Decoder):
    "What each id stands for."
    def offsets(self, text: str | bytes, **special) -> tuple[list[int], list[tuple[int, int]]]:
        "The ids of a text, and the characters (of bytes: the bytes) that each stands for, `text[i:j]`; they may overlap."
        ids, data = self.encode(text, **special), np.frombuffer(to_utf8(text), np.uint8)
        ends = np.cumsum([len(self._table[i]) for i in ids], dtype=np.int64)
        starts = np.concatenate([[0], ends[:-1]])[:len(ends)].astype(np.int64)
        if not isinstance(text, str): return ids, list(zip(starts.tolist(), ends.tolist()))
        number, edge = np.cumsum(data & 0xC0 != 0x80), _edges(text)
        return ids, list(zip(edge[number[starts] - 1].tolist(), edge[number[ends - 1]].tolist()))

def _edges(text: str) -> np.ndarray:  # int64 (characters + 1,)
    "Where each character begins, and where the last ends. Two surrogates that make a pair are one character, as `encode` has it."
    return np.cumsum([0, *map(len, re.findall('[\ud800-\udbff][\udc00-\udfff]|.', text, re.DOTALL))])


# %% [markdown]
# ## Files
#
# A `.tiktoken` file has tokens alone, so how words are cut and which tokens are special must be said. All others state both. There it
# need not be said again, and what is said otherwise is refused: ids by another pattern than the model was trained on are no ids of this model.

# %%
#| export
def _read(path: Path, pattern: str | None, special_tokens: dict[str, int] | None) -> Vocab:
    "The vocabulary in a file or folder; `pattern` '' and `special_tokens` None are not said."
    if path.suffix == '.tiktoken' and not path.is_dir():
        if pattern == '':
            raise VocabError(path, 'this format does not say how words are cut', "pattern='cl100k' or another", 'no pattern')
        return read_tiktoken(path, pattern, special_tokens)
    if path.is_dir(): vocab = read_hf(path/'tokenizer.json') if (path/'tokenizer.json').exists() else read_gpt2(path)
    else:
        with open(path, 'rb') as f: vocab = read_gguf(path) if f.read(4) == b'GGUF' else read_hf(path)
    if pattern not in ('', vocab.pattern):
        raise VocabError(path, 'this file says itself how words are cut', f'pattern={vocab.pattern!r}, or none given', f'pattern={pattern!r}')
    if special_tokens not in (None, vocab.special):
        raise VocabError(path, 'this file says itself which tokens are special', f'{repr(vocab.special)[:80]}, or none given', repr(special_tokens)[:80])
    return vocab


# %% [markdown]
# ## All of it

# %%
#| export
class Tokenizer(_Offsets):
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
        "A tokenizer from a file; `VocabError` if it is malformed, of an unknown kind, or says something else than you."
        new = cls.__new__(cls)
        new.vocab = _read(Path(path), pattern, special_tokens)
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


# %%
gpt2 = Tokenizer.gpt2()
ids = gpt2.encode('Wait — the café costs €5 😀')
print(ids, gpt2.decode(ids), gpt2.offsets('café 👍'), sep='\n')

# %%
try: gpt2.encode('hello <|endoftext|>')
except TokenError as e: print(e)

# %%
text = 'hello <|endoftext|>'
gpt2.encode(text, allowed_special='all'), gpt2.encode(text, disallowed_special=())

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
# ## What this does not show
#
# tiktoken's other entry points (`encode_with_unstable`, and patterns of your own) have no counterpart here. How fast it is,
# `tests/bench_tokenizer.py` tells.
