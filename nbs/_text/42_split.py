# %%
#| default_exp tokenizer.split

# %% [markdown]
# # Splitting
# > Where a text is cut into words before any pair is merged: four regular expressions, written as loops over bytes.

# %% [markdown]
# A byte-pair tokenizer does not merge across words. What counts as a word is a regular expression, one for each
# family of models, and it is a part of the model: cut elsewhere, and the model reads other tokens than those it was
# trained on.
#
# A general matcher of regular expressions spends more time here than all the merging takes. Each of the four is
# simple enough to be written as a loop that reads the bytes of the text once. This page writes them, and holds each
# to the very expression that it replaces.

# %%
#| hide
#| export
import numpy as np
from numba import njit

from bendml.tokenizer.chars import (
    LETTER, LOWER, MARK, NUMBER, OTHER, PAD, SPACE, UPPER, char, class_table, padded, run)

# %%
#| export
PATTERNS = {  # name: the regular expression that defines it (syntax of the `regex` module)
    'gpt2': r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    'smollm2': r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s+(?=\p{N})|\s+(?!\S)|\s+",
    'cl100k': r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
    'o200k': r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
             r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
             r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
}
GPT2, SMOLLM2, CL100K, O200K, WHOLE = range(5)  # what the loops below call them; WHOLE: no cuts at all
APOSTROPHE = ord("'")
BLOCK = 4096  # bytes that are split at a time


# %% [markdown]
# `smollm2` cuts every digit off before the expression of GPT-2 sees the text. As one expression: a number is one
# digit, and the spaces before it stay together.
#
# ## GPT-2's pattern
#
# A contraction; or a run of letters, of numbers or of other characters, with one space before it if there is one; or
# white space. The last space before a word belongs to the word (that is what `\s+(?!\S)` says), except at the end of
# the text.

# %%
#| export
@njit
def contraction(text, i, n):
    "The end of `'s 't 'm 'd 're 've 'll` at `i`, or `i`."
    if n - i < 2: return i
    a, b = text[i + 1], text[i + 2]
    if a == ord('s') or a == ord('t') or a == ord('m') or a == ord('d'): return i + 2
    if n - i < 3: return i
    if (a == ord('r') or a == ord('v')) and b == ord('e') or a == ord('l') and b == ord('l'):
        return i + 3
    return i


# %%
#| export
@njit
def spaces(text, i, n, classes):
    "White space from `i`, less its last character if a word follows: `\\s+(?!\\S)|\\s+`."
    end = last = i
    while end < n:
        kind, size = char(text, end, classes)
        if kind != SPACE: break
        last, end = end, end + size
    return end if end == n or last == i else last


# %%
#| export
@njit
def next_gpt2(text, i, n, classes):
    "Where the word that starts at `i` ends, by GPT-2's pattern."
    if text[i] == APOSTROPHE:
        end = contraction(text, i, n)
        if end > i: return end
    kind, size = char(text, i, classes)
    if text[i] == ord(' ') and i + 1 < n:
        after, more = char(text, i + 1, classes)
        if after != SPACE: kind, size = after, more + 1
    return spaces(text, i, n, classes) if kind == SPACE else run(text, i + size, n, kind, classes)


# %% [markdown]
# In SmolLM2's, digits stand alone.

# %%
#| export
@njit
def next_smollm2(text, i, n, classes):
    "Where the word that starts at `i` ends, by SmolLM2's pattern."
    kind, size = char(text, i, classes)
    if kind == NUMBER: return i + size
    if kind == SPACE:
        end = run(text, i, n, SPACE, classes)
        if end < n and char(text, end, classes)[0] == NUMBER: return end
    return next_gpt2(text, i, n, classes)


# %% [markdown]
# ## GPT-2's words all at once
#
# A branch that the processor cannot foresee costs as much as reading ten bytes, and where a word ends cannot be
# foreseen. But GPT-2's pattern, contractions apart, can be said without branches: whether a word begins between two
# bytes depends only on the classes of the two, $a$ and $b$, and of the byte behind them, $c$.
#
# - A word begins where the class changes, $a \ne b$, unless the byte before is a plain space.
# - A word begins at a space that something else follows, $b = \text{space} \land c \ne \text{space}$.
#
# First, the classes. Those of ASCII are a matter of a few comparisons, and a processor makes these for 32 bytes at a time. Only
# where a byte is not ASCII is its character looked up.

# %%
#| export
@njit
def ascii_kinds(here, kinds):
    "The class of each byte of `here`, as if it were ASCII; whether all are."
    every = np.uint8(0)
    for k in range(len(here)):
        byte = here[k]
        every |= byte
        letter, number = np.uint8((byte | 32) - ord('a')) < 26, np.uint8(byte - ord('0')) < 10
        space = (byte == 32) | (np.uint8(byte - 9) < 5)
        kinds[k] = LETTER if letter else NUMBER if number else SPACE if space else OTHER
    return every < 128

@njit
def kinds_of(text, i, m, classes, kinds):
    "The class of each byte of the characters from `i` up to `m` or a space of several bytes; where that is."
    start = i
    if ascii_kinds(text[i:m], kinds): return m
    while i < m:
        if text[i] < 128: i += 1
        else:
            kind, size = char(text, i, classes)
            if kind == SPACE: break
            for k in range(size): kinds[i - start + k] = kind
            i += size
    return i


# %%
kinds = np.empty(128, np.uint8)
assert ascii_kinds(np.arange(128, dtype=np.uint8), kinds) and np.array_equal(kinds, class_table(False)[:128])


# %% [markdown]
# One loop computes a bit for every byte, and a second writes each place down and moves on by the bit. For SmolLM2
# (`digits`), a number always begins a word, and leaves the spaces before it together.

# %%
#| export
@njit
def boundaries(text, i, m, kinds, digits, ends):
    "Every place between `i` and `m` where a word begins, contractions apart; how many there are."
    n = m - i - 1
    before, here, behind = kinds[:n], kinds[1:n + 1], kinds[2:n + 2]
    byte, follows = text[i:i + n], text[i + 1:i + 1 + n]
    begins = kinds[len(kinds)//2:]
    for k in range(n):  # no branches and no dependences: 32 bytes at a time
        a, b, c = before[k], here[k], behind[k]
        start = (a != b) & ((a != SPACE) | (byte[k] != 32)) | (b == SPACE) & (c != SPACE)
        if digits:
            number = (b == NUMBER) & (follows[k] & 0xC0 != 0x80)
            start = start & ((a != SPACE) | (b != SPACE) | (c != NUMBER)) | number
        begins[k] = start
    count = 0
    for k in range(n):
        ends[count] = i + 1 + k
        count += begins[k]
    return count


# %%
#| export
@njit
def mark_contractions(text, i, n, ends, count):
    "Correct the ends of words that begin with an apostrophe; how many ends are left."
    kept = k = 0
    while k < count:
        end = ends[k]
        if text[i] == APOSTROPHE: end = max(end, contraction(text, i, n))
        while k < count and ends[k] <= end: k += 1
        ends[kept] = i = end
        kept += 1
    return kept


# %% [markdown]
# A block at a time. What the formula does not cover, a word longer than the block or a space of several bytes, goes
# the slow way, one word.

# %%
#| export
@njit(cache=True)
def split_block(text, i, n, classes, digits, kinds, ends):
    "The ends of the next words of GPT-2's or SmolLM2's pattern, at least one; how many there are."
    m = kinds_of(text, i, min(n, i + BLOCK), classes, kinds)
    kinds[m - i] = SPACE if m == n else char(text, m, classes)[0]
    count = 0
    if m > i:
        if digits: count = boundaries(text, i, m, kinds, True, ends)  # the same call twice: each is compiled for its constant
        else: count = boundaries(text, i, m, kinds, False, ends)
        count = mark_contractions(text, i, n, ends, count)
    if m == n and (count == 0 or ends[count - 1] < n):
        ends[count] = n
        count += 1
    elif count == 0:
        ends[0] = next_smollm2(text, i, n, classes) if digits else next_gpt2(text, i, n, classes)
        count = 1
    return count


# %% [markdown]
# ## The pattern of cl100k
#
# Contractions in either case (and `ſ` is a lower-case `s`), any one character before letters, at most three digits,
# line ends that close a run of punctuation, and white space up to its last line end.

# %%
#| export
@njit
def contraction_any_case(text, i, n):
    "As `contraction`, in either case; `ſ`, two bytes, counts as an s."
    if n - i < 2 or text[i] != APOSTROPHE: return i
    a, b = text[i + 1] | 32, text[i + 2] | 32
    if a == ord('s') or a == ord('t') or a == ord('m') or a == ord('d'): return i + 2
    if n - i < 3: return i
    if text[i + 1] == 0xC5 and text[i + 2] == 0xBF: return i + 3
    if (a == ord('r') or a == ord('v')) and b == ord('e') or a == ord('l') and b == ord('l'):
        return i + 3
    return i


# %%
#| export
@njit
def line_end(byte): return byte == 13 or byte == 10

@njit
def digits(text, i, n, classes):
    "Up to three numbers from `i`."
    for _ in range(3):
        if i == n: break
        kind, size = char(text, i, classes)
        if kind != NUMBER: break
        i += size
    return i

@njit
def lines(text, i, n, classes):
    "White space from `i` up to its last line end, or `i` if it has none."
    last = i
    for j in range(i, run(text, i, n, SPACE, classes)):
        if line_end(text[j]): last = j + 1
    return last


# %%
#| export
@njit(cache=True)
def next_cl100k(text, i, n, classes):
    "Where the word that starts at `i` ends, by the pattern of cl100k."
    end = contraction_any_case(text, i, n)
    if end > i: return end
    kind, size = char(text, i, classes)
    if kind == NUMBER: return digits(text, i, n, classes)
    if kind == LETTER: return run(text, i, n, LETTER, classes)
    after, more = (char(text, i + size, classes) if i + size < n else (np.uint8(SPACE), 0))
    if after == LETTER and not line_end(text[i]): return run(text, i + size, n, LETTER, classes)
    if kind == OTHER or text[i] == ord(' ') and after == OTHER:
        end = run(text, i + 1 if kind == SPACE else i, n, OTHER, classes)
        while end < n and line_end(text[end]): end += 1
        return end
    if run(text, i, n, SPACE, classes) == n: return n
    end = lines(text, i, n, classes)
    return end if end > i else spaces(text, i, n, classes)


# %% [markdown]
# ## The pattern of o200k
#
# Words are cut where lower case turns into upper case. The expression says `upper*lower+` with two sets that overlap
# (letters without case and marks are in both), so that a matcher has to go back when no lower-case letter follows: to
# the last character that can count as one.

# %%
#| export
@njit
def mixed(text, i, n, classes):
    "Where `upper*lower+` from `i` ends, or `i` if it does not match."
    last = i
    while i < n:
        kind, size = char(text, i, classes)
        if kind == LOWER or kind < MARK: break
        i += size
        if kind != UPPER: last = i
    if i == n or kind != LOWER: return last
    while i < n:
        kind, size = char(text, i, classes)
        if kind == UPPER or kind < MARK: break
        i += size
    return i


# %%
#| export
@njit
def cased(text, i, n, classes):
    "Where a word of letters from `i` ends, contraction included, or `i`: the first two alternatives."
    kind, size = char(text, i, classes)
    after = i + size if kind != NUMBER and kind < UPPER and not line_end(text[i]) else i
    end = mixed(text, after, n, classes)
    if end == after: end = mixed(text, i, n, classes) if after > i else i
    if end == i: end = run(text, after, n, UPPER, classes)
    return contraction_any_case(text, end, n) if end > after or kind == MARK and end > i else i


# %%
#| export
@njit(cache=True)
def next_o200k(text, i, n, classes):
    "Where the word that starts at `i` ends, by the pattern of o200k."
    end = cased(text, i, n, classes)
    if end > i: return end
    kind, size = char(text, i, classes)
    if kind == NUMBER: return digits(text, i, n, classes)
    j = i + 1 if text[i] == ord(' ') and i + 1 < n else i
    end = j
    while end < n:
        kind, size = char(text, end, classes)
        if kind != OTHER and kind != MARK: break
        end += size
    if end > j:
        while end < n and (line_end(text[end]) or text[end] == ord('/')): end += 1
        return end
    end = lines(text, i, n, classes)
    return end if end > i else spaces(text, i, n, classes)


# %% [markdown]
# ## All words
#
# Words are found a block at a time, so that what the loop works on stays in the fastest memory. `bound` is where to
# stop when the text goes on elsewhere: a word that ends behind it is left for later.

# %%
#| export
@njit
def next_word(text, i, n, pattern, classes):
    "Where the word that starts at `i` ends."
    if pattern == CL100K: return next_cl100k(text, i, n, classes)
    if pattern == O200K: return next_o200k(text, i, n, classes)
    return n


# %%
#| export
@njit(nogil=True, cache=True)
def split_words(text, i, n, bound, pattern, classes, kinds, ends):
    "Fill `ends` with ends of words from `i` on, none behind `bound`; how many. `kinds`: scratch space."
    if i >= n: return 0
    if pattern <= SMOLLM2:
        count = split_block(text, i, n, classes, pattern == SMOLLM2, kinds, ends)
        while count and ends[count - 1] > bound: count -= 1
        return count
    for k in range(len(ends)):
        if i >= n: return k
        i = next_word(text, i, n, pattern, classes)
        if i > bound: return k
        ends[k] = i
    return len(ends)


# %%
#| export
@njit(nogil=True, cache=True)
def split_all(text, n, pattern, classes):
    "The ends of all words of `text[:n]`."
    kinds, ends, all_ends = np.empty(2*(BLOCK + PAD), np.uint8), np.empty(BLOCK + PAD, np.int64), np.empty(n, np.int64)
    i = count = 0
    while i < n:
        found = split_words(text, i, n, n, pattern, classes, kinds, ends)
        all_ends[count:count + found] = ends[:found]
        count, i = count + found, ends[found - 1]
    return all_ends[:count]


# %%
#| export
def split(text: str | bytes, pattern: str = 'gpt2') -> list[bytes]:
    "The words of a text, by one of `PATTERNS`."
    number, data = list(PATTERNS).index(pattern), text.encode() if isinstance(text, str) else text
    ends = split_all(padded(data), len(data), number, class_table(number == O200K)).tolist()
    return [data[i:j] for i, j in zip([0, *ends], ends)]


# %%
line = "  I'LL say we'll visit 1234 cafés\n  in HTTPServer's Überlingen!"
for name in PATTERNS:
    words = '|'.join(w.decode() for w in split(line, name))
    print(f'{name:8}', words.replace('\n', '⏎').replace(' ', '␣'))

# %% [markdown]
# Equal to the expressions themselves, on all texts of three characters out of fifteen:

# %%
import itertools, regex
letters = ["'", 's', 'L', 'é', 'ʰ', '漢', '\u0301', '7', '٣', ' ', '\u3000', '\n', '!', '/', '😀']
for name, expression in PATTERNS.items():
    find = regex.compile(expression).findall
    for text in map(''.join, itertools.product(letters, repeat=3)):
        if [w.decode() for w in split(text, name)] != find(text): raise AssertionError((name, text))

# %% [markdown]
# ## What this does not show
#
# The loops are not proved equal to the expressions; they are compared with them, here on all texts of three
# characters out of fifteen, in the tests on random text from all of Unicode. Characters that Unicode added after
# version 16.0 are `OTHER`.
