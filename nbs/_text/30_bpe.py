# %%
#| default_exp bpe.__init__

# %% [markdown]
# # Byte-pair encoding
# > How text becomes tokens, and why it always comes back.

# %% [markdown]
# A language model reads a list of numbers from a fixed set. Letters would do: few numbers, but long lists. Words
# would make short lists, but there is no end of words. Byte-pair encoding (Gage 1994; Sennrich, Haddow and Birch
# 2016) is in between. Start from bytes. Find the pair of neighbours that occurs most often, make it a token of its
# own, and repeat. Frequent words end up as one token, rare ones as a few pieces, and anything at all can still be
# written, in bytes if need be.
#
# What must never happen is that decoding gives another text than was encoded. On this page that is proved, for all
# texts and all tables, about the functions that you see.

# %%
#| hide
#| export
from typing import Self

from bendml.laws import Cons, List, Nil, datatype, law, prove, pure, to_list
from bendml.lists import append, append_assoc
from bendml.nat import Nat, S, Z, nat


# %% [markdown]
# ## Tokens and tables
#
# A token is a byte or what some merge made. A table lists the merges, the newest first: `Merge(k, a, b, older)` says
# that tokens `a` and `b` side by side become `M(k)`.

# %%
#| export
@datatype
class Tok:
    "A token: a byte, or what merge k makes."
    class B: n: int
    class M: k: int

B, M = Tok.B, Tok.M


# %%
#| export
@datatype
class Table:
    "The merges of a tokenizer, the newest first."
    class Bytes: pass
    class Merge:
        k: int
        a: Tok
        b: Tok
        older: Self

Bytes, Merge = Table.Bytes, Table.Merge


# %% [markdown]
# ## Merging
#
# From left to right, wherever `a` is followed by `b`, both become `M(k)`. In `aaa`, the pair `aa` is merged once, the
# left one.

# %%
#| export
@pure
def merge(k: int, a: Tok, b: Tok, s: List[Tok]) -> List[Tok]:
    "Every a followed by b becomes M(k), from left to right."
    match s:
        case Cons(x, Cons(y, r)):
            if x == a and y == b: return Cons(M(k), merge(k, a, b, r))
            return Cons(x, merge(k, a, b, Cons(y, r)))
        case _: return s


# %%
text = lambda s: to_list([B(b) for b in s.encode()])
merge(0, B(97), B(97), text('aaab'))


# %% [markdown]
# ## Encoding and decoding
#
# Encoding applies the merges, the oldest first. Decoding replaces a token by what its two parts stand for, and these
# are found among the older merges only: that is why decoding ends.

# %%
#| export
@pure
def encode(t: Table, s: List[Tok]) -> List[Tok]:
    "All merges of a table in their order, the oldest first."
    match t:
        case Bytes(): return s
        case Merge(k, a, b, older): return merge(k, a, b, encode(older, s))

@pure
def expand(t: Table, x: Tok) -> List[Tok]:
    "The bytes that one token stands for."
    match t:
        case Bytes(): return Cons(x, Nil())
        case Merge(k, a, b, older):
            if x == M(k): return append(expand(older, a), expand(older, b))
            return expand(older, x)

@pure
def decode(t: Table, s: List[Tok]) -> List[Tok]:
    "The bytes that tokens stand for, one behind the other."
    match s:
        case Nil(): return Nil()
        case Cons(x, r): return append(expand(t, x), decode(t, r))


# %% [markdown]
# ## Training
#
# The most frequent pair of neighbours is merged next; of several that are equally frequent, the one that appears
# first. Occurrences may overlap: in `aaa`, the pair `aa` is counted twice. These three sentences are the whole of
# training, and all tokenizers that "learn the same" but differ in one of them learn other merges.

# %%
#| export
@pure
def count(a: Tok, b: Tok, s: List[Tok]) -> int:
    "How often a is followed by b; occurrences may overlap."
    match s:
        case Cons(x, Cons(y, r)):
            if x == a and y == b: return count(a, b, Cons(y, r)) + 1
            return count(a, b, Cons(y, r))
        case _: return 0


# %%
#| export
@datatype
class Choice:
    "A pair of tokens, if there is one."
    class Neither: pass
    class Pair:
        a: Tok
        b: Tok

Neither, Pair = Choice.Neither, Choice.Pair

@pure
def better(full: List[Tok], x: Tok, y: Tok, other: Choice) -> Choice:
    "The more frequent of (x, y) and another pair, which appears later; of equals, (x, y)."
    match other:
        case Neither(): return Pair(x, y)
        case Pair(a, b): return Pair(x, y) if count(x, y, full) >= count(a, b, full) else Pair(a, b)

@pure
def best(full: List[Tok], s: List[Tok]) -> Choice:
    "Of the pairs in s, the one most frequent in the full text; of equals, the first."
    match s:
        case Cons(x, Cons(y, r)): return better(full, x, y, best(full, Cons(y, r)))
        case _: return Neither()


# %%
#| export
@pure
def size(t: Table) -> int:
    "How many merges a table has."
    match t:
        case Bytes(): return 0
        case Merge(k, a, b, older): return size(older) + 1

@pure
def grow(t: Table, choice: Choice) -> Table:
    "One more merge, with the next number, if there is a pair."
    match choice:
        case Neither(): return t
        case Pair(a, b): return Merge(size(t), a, b, t)

@pure
def train(n: Nat, s: List[Tok]) -> Table:
    "A table of at most n merges, learned from a text."
    match n:
        case Z(): return Bytes()
        case S(m):
            older = train(m, s)
            now = encode(older, s)
            return grow(older, best(now, now))


# %% [markdown]
# The textbook example. Look at the second merge: after the first, the text is `[aa] a b d [aa] a b a c`, and `[aa] a`
# and `a b` both occur twice. The first of them wins.

# %%
#| echo: false
def shown(t, x):
    return ''.join(chr(b.n) if isinstance(b, B) else '?' for b in expand(t, x))

def listed(t):
    return [] if t == Bytes() else listed(t.older) + [(shown(t.older, t.a), shown(t.older, t.b))]


# %%
example = text('aaabdaaabac')
for n in range(5):
    table = train(nat(n), example)
    print(n, ' '.join(shown(table, x) for x in encode(table, example)), '   ',
          listed(table)[-1] if n else '')
    assert decode(table, encode(table, example)) == example

# %% [markdown]
# Type another text, and move the slider:

# %%
#| echo: false
from bendml.widgets import widget
widget('bpe', text='aaabdaaabac', merges=3)


# %% [markdown]
# ## Why the text comes back
#
# Take away the newest merge. The others give some list of tokens, and in it the new token `M(k)` does not occur,
# since its number is new. Then merge: every `M(k)` now stands where `a b` stood, and `expand` puts just that back;
# and all other tokens mean what they meant. So decoding with one more merge gives what decoding without it gave. That
# is the whole proof: **every number that is used is new when it comes**.
#
# `clear(k, s)` says that `M(k)` does not occur in `s`.

# %%
#| export
@pure
def clear(k: int, s: List[Tok]) -> bool:
    "Token M(k) does not occur."
    match s:
        case Nil(): return True
        case Cons(x, r): return x != M(k) and clear(k, r)

@law(induct='s', depth=2, cite=[append_assoc])
def merge_decodes(k: int, a: Tok, b: Tok, t: Table, s: List[Tok]):
    "Merging a pair into a new token, and knowing the merge, changes nothing in what is decoded."
    assert clear(k, s)
    return decode(Merge(k, a, b, t), merge(k, a, b, s)) == decode(t, s)


# %%
prove(merge_decodes)


# %% [markdown]
# That the number is new is a matter of the table: `distinct` says that no number is used twice. That is all the round
# trip needs.

# %%
#| export
@pure
def has(k: int, t: Table) -> bool:
    "Some merge of the table makes M(k)."
    match t:
        case Bytes(): return False
        case Merge(j, a, b, older): return j == k or has(k, older)

@pure
def distinct(t: Table) -> bool:
    "No two merges of the table make the same token."
    match t:
        case Bytes(): return True
        case Merge(k, a, b, older): return not has(k, older) and distinct(older)

@pure
def is_bytes(s: List[Tok]) -> bool:
    "Bytes only, each from 0 to 255."
    match s:
        case Cons(B(n), r): return 0 <= n and n < 256 and is_bytes(r)
        case Cons(M(k), r): return False
        case Nil(): return True


# %%
#| export
@law(induct='s')
def bytes_clear(k: int, s: List[Tok]):
    "No merged token occurs in bytes."
    assert is_bytes(s)
    return clear(k, s)

@law(induct='s', depth=2)
def merge_clear(k: int, j: int, a: Tok, b: Tok, s: List[Tok]):
    "Merging into M(j) brings forth no other token M(k)."
    assert clear(k, s)
    assert k != j
    return clear(k, merge(j, a, b, s))

@law(induct='t', cite=[bytes_clear, merge_clear])
def encode_clear(k: int, t: Table, s: List[Tok]):
    "Encoding brings forth only tokens of the table."
    assert is_bytes(s)
    assert not has(k, t)
    return clear(k, encode(t, s))

@law(induct='s')
def decode_nothing(s: List[Tok]):
    "Without merges, decoding changes nothing."
    return decode(Bytes(), s) == s


# %% [markdown]
# And so, for **all** tables without repeated numbers and **all** lists of bytes:

# %%
#| export
@law(induct='t', cite=[decode_nothing, merge_decodes, encode_clear])
def roundtrip(t: Table, s: List[Tok]):
    "Decoding what was encoded gives the text back."
    assert distinct(t)
    assert is_bytes(s)
    return decode(t, encode(t, s)) == s


# %%
prove(roundtrip)


# %% [markdown]
# Without the hypothesis it is false, and the search finds the smallest table that shows it: one number for two pairs.

# %%
@law(induct='t', cite=[decode_nothing, merge_decodes, encode_clear])
def roundtrip_without(t: Table, s: List[Tok]):
    assert is_bytes(s)
    return decode(t, encode(t, s)) == s

prove(roundtrip_without)


# %% [markdown]
# Decoding goes piece by piece, which is what a chat window needs that shows tokens as they come:

# %%
#| export
@law(induct='s', cite=[append_assoc])
def dec_append(s: List[Tok], u: List[Tok], t: Table):
    "Decoding two lists of tokens one behind the other is decoding each."
    return decode(t, append(s, u)) == append(decode(t, s), decode(t, u))


# %% [markdown]
# Encoding does not: `encode(s + u)` is not `encode(s) + encode(u)`, since a pair may stand across the seam.

# %%
@law(induct='s')
def enc_append(t: Table, s: List[Tok], u: List[Tok]):
    return encode(t, append(s, u)) == append(encode(t, s), encode(t, u))

prove(enc_append)


# %% [markdown]
# ## As a loop
#
# A loop does not build its result from behind; it takes tokens off the front and lays results down on a pile.
# `merge_loop` is what such a loop computes, and it is the same.

# %%
#| export
@pure
def turn(pile: List[Tok], s: List[Tok]) -> List[Tok]:
    "The pile turned over onto s."
    match pile:
        case Nil(): return s
        case Cons(x, r): return turn(r, Cons(x, s))

@pure
def merge_loop(k: int, a: Tok, b: Tok, s: List[Tok], pile: List[Tok]) -> List[Tok]:
    "`merge` as a loop, with what is done on a pile."
    match s:
        case Cons(x, Cons(y, r)):
            if x == a and y == b: return merge_loop(k, a, b, r, Cons(M(k), pile))
            return merge_loop(k, a, b, Cons(y, r), Cons(x, pile))
        case Cons(x, Nil()): return turn(Cons(x, pile), Nil())
        case Nil(): return turn(pile, Nil())

@law(induct='s', gen=['pile'], depth=2)
def loop_is_spec(k: int, a: Tok, b: Tok, s: List[Tok], pile: List[Tok]):
    "The loop computes what the recursion says."
    return merge_loop(k, a, b, s, pile) == turn(pile, merge(k, a, b, s))


# %%
prove(loop_is_spec)

# %% [markdown]
# ## All of them

# %%
from bendml.laws import Law
for name, each in list(globals().items()):
    if isinstance(each, Law) and each.__doc__ and each.__module__ == __name__:
        print(f'{name:18} {prove(each).verdict:10} {each.__doc__}')

# %% [markdown]
# ## What this does not show
#
# Text is bytes here: how characters become bytes, and how a text is first cut into words, is not in these laws. They
# are about lists of constructors, far too slow for a book. The engine that works on arrays is compared with these
# functions by running both, on the page about the tokenizer.
