# %%
#| default_exp tokenizer.vocab

# %% [markdown]
# # Vocabularies
# > What a tokenizer is, as data: tokens, merges, special tokens, a pattern. Checked once, then trusted.

# %% [markdown]
# A vocabulary comes from a file, and a file may say anything. It may name a token that does not exist, or build one
# from a token that comes later; then encoding would quietly give wrong ids, or decoding give another text. This page
# says what a vocabulary must fulfil, and refuses the others by name. After that, no other page has to ask.

# %%
#| hide
#| export
from collections import Counter
from dataclasses import dataclass, field
from functools import cache

import numpy as np


# %%
#| export
class VocabError(ValueError):
    "A vocabulary, or the file that it comes from, is not well-formed."
    def __init__(self, where, problem: str, expected: str, observed: str, hint: str = ''):
        message = f'{where}: {problem}\n- expected : {expected}\n- observed : {observed}'
        super().__init__(f'{message}\n{hint}' if hint else message)


# %%
#| export
@dataclass(frozen=True)
class Vocab:
    "The tokens of a byte-pair tokenizer and how they are made. `checked` makes sure that it is one."
    tokens: tuple[bytes, ...]                 # by id; b'' where an id is not in use, or is a special token's
    merges: tuple[tuple[int, int, int], ...]  # left, right, new: ids, by rank
    special: dict[str, int] = field(default_factory=dict)  # text: id
    pattern: str | None = 'gpt2'              # one of `split.PATTERNS`; None: words are not cut
    whole: tuple[int, ...] = ()               # tokens for words equal to them, though no merges lead there

    @property
    def size(self) -> int: return max(len(self.tokens), 1 + max(self.special.values(), default=-1))
    def __len__(self) -> int: return self.size


# %% [markdown]
# ## What must hold
#
# Every byte has at most one token, every other token is made by exactly one merge, and both parts of a merge are
# bytes or made by earlier merges. That is the specification's `wf`, with ids in any order; with it come the round
# trip, and the right to merge rank by rank.
#
# A byte may be without a token: 21 are in SmolLM2's vocabulary, most of them bytes that UTF-8 never uses. Text with
# such a byte cannot be encoded.

# %%
#| export
def _check_types(vocab, where) -> None:
    "Refuse what is no vocabulary at all."
    def refuse(expected, observed): raise VocabError(where, 'not a vocabulary', expected, repr(observed)[:80])
    if not isinstance(vocab, Vocab): refuse('a Vocab', vocab)
    for t in vocab.tokens:
        if not isinstance(t, bytes): refuse('tokens that are bytes', t)
    for merge in vocab.merges:
        if not isinstance(merge, tuple) or [*map(type, merge)] != [int]*3: refuse('merges of three ids', merge)
    for text, i in vocab.special.items():
        if not isinstance(text, str) or type(i) is not int: refuse('an id for each special text', {text: i})
        try: text.encode()
        except UnicodeEncodeError: refuse('special texts that are Unicode', text)
    for i in vocab.whole:
        if type(i) is not int or not 0 <= i < len(vocab.tokens) or not vocab.tokens[i]: refuse('ids of tokens in whole', i)

def _check_merges(tokens, merges, where) -> set[int]:
    "Refuse a merge whose parts are not there yet, or whose result is wrong; the ids that can be made."
    made = {i for i, t in enumerate(tokens) if len(t) == 1}
    pairs, later = {}, {m[2] for m in merges}
    for rank, (a, b, new) in enumerate(merges):
        for part in (a, b):
            if part in made: continue
            if part in later:
                raise VocabError(where, f'forward reference in merge {rank}',
                                 'two bytes or tokens of earlier merges', f'token {part}, which a later merge makes')
            raise VocabError(where, f'unknown id in merge {rank}',
                             'two bytes or tokens of earlier merges', f'token {part}')
        if (a, b) in pairs:
            raise VocabError(where, 'duplicate pair', 'every pair of tokens once',
                             f'({a}, {b}) in merges {pairs[a, b]} and {rank}')
        if new in made:
            raise VocabError(where, 'duplicate id', 'a new token for every merge',
                             f'token {new} again in merge {rank}')
        if not 0 <= new < len(tokens) or tokens[new] != tokens[a] + tokens[b]:
            raise VocabError(where, f'wrong token for merge {rank}', repr(tokens[a] + tokens[b]),
                             repr(tokens[new]) if 0 <= new < len(tokens) else f'id {new}')
        pairs[a, b] = rank
        made.add(new)
    return made


# %%
#| export
MOST = (1 << 21) - 1  # ids: ten times as many as the largest vocabularies in use; an id has 21 bits in the compiled loops

def checked(vocab: Vocab, where: str = 'vocabulary') -> Vocab:
    "The same vocabulary, if it is well-formed; `VocabError` says what is wrong."
    _check_types(vocab, where)
    tokens, special = vocab.tokens, vocab.special
    if vocab.size > MOST:
        raise VocabError(where, 'too large', f'at most {MOST} ids', f'{vocab.size} ids')
    twice = [t for t, n in Counter(tokens).items() if t and n > 1]
    if twice: raise VocabError(where, 'duplicate token', 'every token once', f'{twice[0]!r} twice')
    made = _check_merges(tokens, vocab.merges, where) | set(vocab.whole)
    for i, t in enumerate(tokens):
        if t and i not in made:
            raise VocabError(where, 'a token that nothing makes', 'a byte, or the result of a merge',
                             f'token {i}, {t!r}')
    for text, i in special.items():
        if not text: raise VocabError(where, 'empty special token', 'a text', f"'' with id {i}")
        if i < 0 or i < len(tokens) and tokens[i]:
            raise VocabError(where, 'duplicate id', 'an id of its own for every special token',
                             f'{text!r} with id {i}')
    if len(set(special.values())) < len(special):
        raise VocabError(where, 'duplicate id', 'an id of its own for every special token', f'{special}')
    return vocab


# %%
#| export
BYTES = tuple(bytes([b]) for b in range(256))

# %%
checked(Vocab(BYTES + (b'aa', b'aaa', b'aaab'), ((97, 97, 256), (256, 97, 257), (257, 98, 258)),
              {'<|end|>': 259})).tokens[256:]

# %% [markdown]
# Refused: a token made of one that comes later, the same pair twice, an id for two things.

# %%
later, twice, both = ((257, 97, 256), (97, 97, 257)), ((97, 97, 256), (97, 97, 257)), ((97, 97, 256),)
for merges, special in (later, {}), (twice, {}), (both, {'<|end|>': 256}):
    try: checked(Vocab(BYTES + (b'aa', b'aa'[:len(merges) - 1]*2), merges, special))
    except VocabError as e: print(e)


# %% [markdown]
# ## Bytes as characters
#
# Published vocabularies are text files, and a byte such as 0x0A or 0xC3 is no text. So each byte is written as a
# character: the printable ones of Latin-1 as themselves, the 68 others as the characters from U+0100 on. A space
# becomes `Ġ`.

# %%
#| export
@cache
def byte_characters() -> tuple[str, ...]:
    "The character that stands for each byte."
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return tuple(chr(b if b in printable else next(others)) for b in range(256))

@cache
def _bytes_of_characters() -> dict[str, int]: return {c: b for b, c in enumerate(byte_characters())}

def to_bytes(word: str) -> bytes | None:
    "The bytes that a word of such characters stands for; None if it has others."
    try: return bytes(map(_bytes_of_characters().__getitem__, word))
    except KeyError: return None

def to_characters(token: bytes) -> str:
    "A token in characters."
    return ''.join(map(byte_characters().__getitem__, token))


# %%
to_characters(' café\n'.encode()), to_bytes('ĠcafÃ©Ċ')


# %% [markdown]
# ## Making one from tokens in order
#
# Some files list only tokens, in the order in which they were made. The two parts of a token can be found again: they
# are what the earlier merges make of its bytes. A token of which they leave more than two parts can never arise by
# merging; it can stand only for a word equal to it, and goes to `whole`.

# %%
#| export
def from_tokens(tokens: list[bytes], special: dict[str, int], pattern: str | None, where: str) -> Vocab:
    "A vocabulary of tokens in the order of their ranks, which are their ids."
    from bendml.tokenizer.merge import pairs_of_tokens
    ids = {t: i for i, t in enumerate(tokens) if len(t) == 1}
    byte_ids = np.array([ids.get(bytes([b]), len(tokens)) for b in range(256)], np.int32)
    ends = np.cumsum([len(t) for t in tokens], dtype=np.int64)
    merges = pairs_of_tokens(np.frombuffer(b''.join(tokens), np.uint8), ends, byte_ids).tolist()
    makes = {new for _, _, new in merges}
    whole = tuple(i for i, t in enumerate(tokens) if len(t) > 1 and i not in makes)
    return checked(Vocab(tuple(tokens), tuple(map(tuple, merges)), special, pattern, whole), where)


# %%
odd = from_tokens([*BYTES, b'ab', b'abc', b'xyz'], {}, None, 'example')
odd.merges, odd.whole

# %% [markdown]
# ## What this does not show
#
# That a well-formed vocabulary is a good one, or the one that a model was trained with.
