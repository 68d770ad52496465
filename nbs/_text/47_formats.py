# %%
#| default_exp tokenizer.formats

# %% [markdown]
# # Files of vocabularies
# > GPT-2's pair of files, Hugging Face's tokenizer.json, and .tiktoken.

# %% [markdown]
# The same facts are written in several ways. Each reader below turns its file into a `Vocab`, and each refuses by
# name what it does not understand: a tokenizer that normalises its text or that is no byte-level BPE would otherwise
# load, and give other ids than its model expects.

# %%
#| hide
#| export
import base64, binascii, json, os, re
from itertools import accumulate
from pathlib import Path

from bendml.data import fetch
from bendml.tokenizer.vocab import (
    BYTES, Vocab, VocabError, byte_characters, checked, from_tokens, to_bytes, to_characters)

# %%
#| export
LARGEST = 1 << 27  # bytes: the largest text file that is read at all

def _read_text(path: Path) -> str:
    "A text file, UTF-8, of bounded size."
    with open(path, 'rb') as f: data = f.read(LARGEST + 1)
    if len(data) > LARGEST: raise VocabError(path, 'too large', f'at most {LARGEST} bytes', 'more')
    try: return data.decode()
    except UnicodeDecodeError as e:
        raise VocabError(path, 'not UTF-8', 'UTF-8',
                         f'byte {e.object[e.start]:#04x} at {e.start}') from None


# %% [markdown]
# JSON allows a key twice, and most readers keep the last without a word. For a vocabulary, that is two ids for one
# token. It also allows any depth of nesting, which Python's reader follows until its stack ends.

# %%
#| export
def _read_json(path: Path) -> dict:
    "A JSON object in which no key occurs twice."
    def once(pairs):
        found = dict(pairs)
        if len(found) == len(pairs): return found
        keys = [k for k, _ in pairs]
        raise VocabError(path, 'duplicate key', 'every key once',
                         next(k for k in keys if keys.count(k) > 1))
    text = _read_text(path)
    brackets = re.sub(r'"[^"\\]*(?:\\.[^"\\]*)*"|[^]["{}]', '', text)
    if (depth := max(accumulate({'[': 1, '{': 1}.get(c, -1) for c in brackets), default=0)) > 64:
        raise VocabError(path, 'nested too deeply', 'at most 64 levels', f'{depth} levels')
    try: value = json.loads(text, object_pairs_hook=once)
    except json.JSONDecodeError as e:
        raise VocabError(path, 'not JSON, or truncated', 'a JSON object',
                         f'{e.msg} at character {e.pos}') from None
    except VocabError: raise
    except ValueError as e:  # a number of more digits than Python reads
        raise VocabError(path, 'not JSON that can be read', 'a JSON object', str(e)) from None
    if not isinstance(value, dict):
        raise VocabError(path, 'not an object', 'a JSON object', type(value).__name__)
    return value


# %%
#| export
def _ids(path, table) -> dict[str, int]:
    "A table of ids: every id a number from 0 on, every id once."
    if not isinstance(table, dict):
        raise VocabError(path, 'no table of ids', '{token: id}', type(table).__name__)
    seen = {}
    for token, i in table.items():
        if type(i) is not int or not 0 <= i < 1 << 31:
            raise VocabError(path, 'bad id', 'a number from 0 on', f'{token!r}: {i!r}')
        if i in seen:
            raise VocabError(path, 'duplicate id', 'every id once', f'{i} for {seen[i]!r} and {token!r}')
        seen[i] = token
    return table


# %% [markdown]
# Given the ids of the tokens in characters, and the merges as pairs of them, the rest is the same for three formats.
# Several pairs for one token, as some converters write, are reduced to the one that merging can reach.

# %%
#| export
def from_characters(path, ids: dict[str, int], pairs: list[tuple[str, str]], special: dict[str, int],
                    pattern, whole=False) -> Vocab:
    "A vocabulary from ids and pairs in characters."
    size = 1 + max((i for token, i in ids.items() if token not in special), default=-1)
    if size > 4*len(ids) + 1024:
        raise VocabError(path, 'bad id', f'ids near the number of tokens, {len(ids)}', f'id {size - 1}')
    tokens = [b'']*size
    for token, i in ids.items():
        if token in special: continue
        found = to_bytes(token)
        if not found:
            raise VocabError(path, 'not a byte-level token', 'characters that stand for bytes',
                             f'{token!r}, id {i}')
        tokens[i] = found
    merges = []
    for rank, (a, b) in enumerate(pairs):
        for part in (a, b, a + b):
            if part not in ids:
                raise VocabError(path, f'unknown token in merge {rank}', 'a token of the vocabulary',
                                 repr(part))
        merges.append((ids[a], ids[b], ids[a + b]))
    if len({new for _, _, new in merges}) < len(merges):
        return _one_pair_each(path, tokens, merges, special, pattern)
    made = {new for _, _, new in merges}
    unmade = [i for i, t in enumerate(tokens) if len(t) > 1 and i not in made] if whole else []
    return checked(Vocab(tuple(tokens), tuple(merges), special, pattern, tuple(unmade)),
                   str(path))


# %%
#| export
def _one_pair_each(path, tokens, merges, special, pattern) -> Vocab:
    "Of several pairs for one token, the one that merging can reach."
    order = list(dict.fromkeys(new for _, _, new in merges))
    base = [i for i, t in enumerate(tokens) if len(t) == 1]
    found = from_tokens([tokens[i] for i in base + order], {}, None, str(path))
    back = base + order
    kept = tuple((back[a], back[b], back[new]) for a, b, new in found.merges)
    listed = set(merges)
    for merge in kept:
        if merge not in listed:
            raise VocabError(path, 'no pair that can be reached', f'{merge} among the merges',
                             'other pairs for the same token')
    return checked(Vocab(tuple(tokens), kept, special, pattern, tuple(back[i] for i in found.whole)),
                   str(path))


# %% [markdown]
# ## GPT-2's two files
#
# `vocab.bpe` has a merge a line; `encoder.json` has the ids. A token that is no byte and that no merge makes is a
# special one.

# %%
#| export
def as_pairs(path, lines) -> list[tuple[str, str]]:
    "Merges, two tokens a line."
    parts = lambda line: line.split(' ') if isinstance(line, str) else line if isinstance(line, list) else ()
    pairs = [tuple(parts(line)) for line in lines]
    for k, pair in enumerate(pairs):
        if len(pair) != 2 or not all(isinstance(p, str) and p for p in pair):
            raise VocabError(path, f'malformed merge {k}', 'two tokens', repr(lines[k])[:80])
    return pairs

def read_gpt2(folder: str | os.PathLike) -> Vocab:
    "The vocabulary in a folder with `vocab.bpe` and `encoder.json`."
    merges, table = Path(folder)/'vocab.bpe', Path(folder)/'encoder.json'
    lines = [line for line in _read_text(merges).split('\n') if line and not line.startswith('#version')]
    pairs, ids = as_pairs(merges, lines), _ids(table, _read_json(table))
    made = {a + b for a, b in pairs} | set(byte_characters())
    return from_characters(merges, ids, pairs, {t: i for t, i in ids.items() if t not in made}, 'gpt2')


# %%
gpt2 = read_gpt2(fetch('gpt2-bpe'))
len(gpt2), gpt2.tokens[:3], gpt2.tokens[262], gpt2.special


# %%
#| export
def write_gpt2(vocab: Vocab, folder: str | os.PathLike) -> None:
    "Write `vocab.bpe` and `encoder.json`, for vocabularies with GPT-2's pattern."
    if vocab.pattern != 'gpt2':
        raise VocabError(folder, 'this format has no place for a pattern', 'gpt2', str(vocab.pattern),
                         'Save it as tokenizer.json.')
    words = list(map(to_characters, vocab.tokens))
    ids = {w: i for i, w in enumerate(words) if w} | vocab.special
    Path(folder).mkdir(parents=True, exist_ok=True)
    _write(Path(folder)/'encoder.json', json.dumps(dict(sorted(ids.items(), key=lambda item: item[1]))))
    lines = ''.join(f'{words[a]} {words[b]}\n' for a, b, _ in vocab.merges)
    _write(Path(folder)/'vocab.bpe', '#version: 0.2\n' + lines)

def _write(path: Path, text: str) -> None:
    "Write a file whole or not at all."
    new = path.with_name(path.name + '.new')
    new.write_text(text, encoding='utf-8', newline='')
    os.replace(new, path)


# %% [markdown]
# ## tokenizer.json
#
# Hugging Face's file describes a pipeline. We accept the byte-level pipelines whose meaning we know, and name what
# stands in the way of any other.

# %%
#| export
_LEVEL = {'type': 'ByteLevel', 'add_prefix_space': False, 'trim_offsets': True}
_HF = {  # the expressions as Hugging Face's matcher spells them
    'cl100k': r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s+\z|\s*[\r\n]|\s+(?!\S)|\s",
    'o200k': r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
             r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
             r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"}

def _pipeline(pattern: str | None) -> dict:
    "The pre-tokenizer that cuts by a pattern."
    if pattern == 'gpt2': return _LEVEL | {'use_regex': True}
    if pattern is None: return _LEVEL | {'use_regex': False}
    first = ({'type': 'Digits', 'individual_digits': True} if pattern == 'smollm2' else
             {'type': 'Split', 'pattern': {'Regex': _HF[pattern]}, 'behavior': 'Isolated',
              'invert': False})
    return {'type': 'Sequence', 'pretokenizers': [first, _LEVEL | {'use_regex': pattern == 'smollm2'}]}


# %%
#| export
def _pattern(path, given) -> str | None:
    "The pattern whose pipeline this is."
    for pattern in ('gpt2', 'smollm2', 'cl100k', 'o200k', None):
        if _same_pipeline(given, _pipeline(pattern)): return pattern
    raise VocabError(path, 'unknown pre-tokenizer', 'the pipeline of gpt2, smollm2, cl100k or o200k',
                     json.dumps(given)[:300])

def _same_pipeline(given, wanted) -> bool:
    "Do two pipelines cut alike? What is left out has its default; `trim_offsets` does not matter here."
    if not isinstance(given, dict): return False
    if given.get('type') in ('ByteLevel', 'Split'): given = {'use_regex': True, 'invert': False} | given
    steps, expected = given.get('pretokenizers'), wanted.get('pretokenizers')
    if isinstance(steps, list) and expected:
        return len(steps) == len(expected) and all(map(_same_pipeline, steps, expected))
    return all(given.get(k) == v for k, v in wanted.items() if k != 'trim_offsets')


# %%
#| export
def read_hf(path: str | os.PathLike) -> Vocab:
    "The vocabulary in a `tokenizer.json` of a byte-level BPE."
    data = _read_json(Path(path))
    model = data.get('model')
    if not isinstance(model, dict) or model.get('type', 'BPE') != 'BPE':
        raise VocabError(path, 'not a BPE', 'model.type BPE',
                         repr(model.get('type') if isinstance(model, dict) else model))
    for where, name in ((data, 'normalizer'), (model, 'dropout'), (model, 'byte_fallback'),
                        (model, 'continuing_subword_prefix'), (model, 'end_of_word_suffix')):
        if where.get(name):
            raise VocabError(path, f'{name} is not supported', f'no {name}',
                             json.dumps(where[name])[:200])
    if not isinstance(model.get('merges'), list):
        raise VocabError(path, 'no merges', 'a list', type(model.get('merges')).__name__)
    added = data.get('added_tokens') or []
    if not isinstance(added, list) or not all(isinstance(t, dict) and isinstance(t.get('content'), str)
                                              for t in added):
        raise VocabError(path, 'malformed added_tokens', 'a list of {"id", "content"}',
                         json.dumps(added)[:200])
    for token in added:
        if odd := [f for f in ('single_word', 'lstrip', 'rstrip') if token.get(f)]:
            raise VocabError(path, f'{odd[0]} is not supported', f"{token['content']!r} as it stands", json.dumps(token)[:200])
    special = _ids(path, {t['content']: t.get('id') for t in added})
    return from_characters(path, _ids(path, model.get('vocab')), as_pairs(path, model['merges']), special,
                           _pattern(path, data.get('pre_tokenizer')), bool(model.get('ignore_merges')))


# %%
#| export
def write_hf(vocab: Vocab, path: str | os.PathLike) -> None:
    "Write a `tokenizer.json` that Hugging Face's tokenizers reads."
    words = list(map(to_characters, vocab.tokens))
    flags = {'single_word': False, 'lstrip': False, 'rstrip': False, 'normalized': False,
             'special': True}
    _write(Path(path), json.dumps({
        'version': '1.0', 'truncation': None, 'padding': None,
        'added_tokens': [{'id': i, 'content': t} | flags for t,
                         i in sorted(vocab.special.items(), key=lambda item: item[1])],
        'normalizer': None, 'pre_tokenizer': _pipeline(vocab.pattern), 'post_processor': None, 'decoder': _LEVEL | {'use_regex': True},
        'model': {'type': 'BPE', 'dropout': None, 'unk_token': None, 'continuing_subword_prefix': None,
                  'end_of_word_suffix': None,
                  'fuse_unk': False, 'byte_fallback': False, 'ignore_merges': bool(vocab.whole),
                  'vocab': {w: i for i, w in enumerate(words) if w} | vocab.special,
                  'merges': [[words[a], words[b]] for a, b, _ in vocab.merges]}}, ensure_ascii=False))


# %% [markdown]
# ## .tiktoken
#
# A token in base64 and its rank, a line each. The rank is the id; pattern and special tokens are written elsewhere,
# so the caller gives them.

# %%
#| export
def read_tiktoken(path: str | os.PathLike, pattern: str | None = 'gpt2',
                  special: dict[str, int] | None = None) -> Vocab:
    "The vocabulary in a `.tiktoken` file."
    from bendml.tokenizer.split import PATTERNS
    if pattern is not None and pattern not in PATTERNS:
        raise VocabError(path, 'unknown pattern', f'None or one of {[*PATTERNS]}', repr(pattern))
    tokens = []
    for number, line in enumerate(_read_text(Path(path)).splitlines(), 1):
        try:
            token, rank = line.split()
            token, rank = base64.b64decode(token, validate=True), int(rank)
        except (ValueError, binascii.Error):
            raise VocabError(path, f'malformed line {number}', 'a token in base64 and its rank',
                             repr(line)[:80]) from None
        if not token:
            raise VocabError(path, f'empty token in line {number}', 'at least one byte', repr(line))
        if rank != len(tokens):
            problem = 'duplicate id' if rank < len(tokens) else 'missing id'
            raise VocabError(path, f'{problem} in line {number}', f'rank {len(tokens)}', f'rank {rank}')
        tokens.append(token)
    return from_tokens(tokens, special or {}, pattern, str(path))

def write_tiktoken(vocab: Vocab, path: str | os.PathLike) -> None:
    "Write a `.tiktoken` file: tokens alone, for vocabularies whose ids are in the order of their merges."
    tokens = vocab.tokens[:max((i for i, t in enumerate(vocab.tokens) if t), default=-1) + 1]
    made = [new for _, _, new in vocab.merges]
    if b'' in tokens or made != sorted(made):
        raise VocabError(path, 'this format ranks tokens by their ids',
                         'ids without gaps, in the order of the merges', 'other ids', 'Save it as tokenizer.json.')
    _write(Path(path), ''.join(f'{base64.b64encode(t).decode()} {i}\n' for i, t in enumerate(tokens)))


# %% [markdown]
# ## There and back

# %%
#| export
def write(vocab: Vocab, path: str | os.PathLike) -> None:
    "Write a vocabulary: `.json`, `.tiktoken`, or a folder for GPT-2's two files."
    path = Path(path)
    {'.json': write_hf, '.tiktoken': write_tiktoken}.get(path.suffix, write_gpt2)(vocab, path)


# %% [markdown]
# In all three formats:

# %%
import tempfile
with tempfile.TemporaryDirectory() as folder:
    for name, read in (('two files', read_gpt2), ('tokenizer.json', read_hf),
                       ('gpt2.tiktoken', read_tiktoken)):
        write(gpt2, Path(folder)/name)
        again = read(Path(folder)/name)
        assert again.tokens[:50256] == gpt2.tokens[:50256] and again.merges == gpt2.merges

# %% [markdown]
# Refused: a merge cut off, and a tokenizer that changes its text before it reads it.

# %%
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder)/'tokenizer.json'
    write(Vocab(BYTES, ()), path)
    good = json.loads(path.read_text())
    for change in ({'model': good['model'] | {'merges': [['a']]}}, {'normalizer': {'type': 'NFC'}}):
        path.write_text(json.dumps(good | change))
        try: read_hf(path)
        except VocabError as e: print(str(e).replace(str(path), 'tokenizer.json'))

# %% [markdown]
# ## What this does not show
#
# Post-processors, which put tokens before and behind a text, are the model's business and are not read.
