# %%
#| default_exp bpe.trained

# %% [markdown]
# # Trained tables
# > Whatever a tokenizer was trained on: its table is well-formed, and every text comes back.

# %% [markdown]
# The page on byte-pair encoding proves the round trip for tables in which no number is used twice. Does training make
# such tables? This page proves that it does, and more: that tokens are made only of older ones, that encoding gives no
# token that the table does not know, and that what is decoded is bytes.

# %%
#| hide
#| export
from bendml.bpe import (
    B, Bytes, Choice, M, Merge, Neither, Pair, Table, Tok, best, better, decode, distinct, encode, expand, grow, has,
    is_bytes, merge, roundtrip, size, train)
from bendml.laws import Cons, List, Nil, law, prove, pure
from bendml.lists import append
from bendml.nat import Nat, S, Z


# %% [markdown]
# ## Well-formed tables
#
# A table is well-formed, `wf`, if numbers are distinct and each merge is made of bytes and *older* merges. Trained
# tables are: the numbers are 0, 1, 2, ..., and the pair was found in a text encoded with the older merges.

# %%
#| export
@pure
def known(t: Table, x: Tok) -> bool:
    "A byte, or a token that the table makes."
    match x:
        case B(n): return 0 <= n and n < 256
        case M(k): return has(k, t)

@pure
def all_known(t: Table, s: List[Tok]) -> bool:
    "Every token is a byte or one that the table makes."
    match s:
        case Nil(): return True
        case Cons(x, r): return known(t, x) and all_known(t, r)

@pure
def wf(t: Table) -> bool:
    "Numbers are distinct, and merges are made of bytes and older merges."
    match t:
        case Bytes(): return True
        case Merge(k, a, b, older):
            return not has(k, older) and known(older, a) and known(older, b) and wf(older)


# %%
#| export
@law(induct='t')
def wf_distinct(t: Table):
    "A well-formed table has distinct numbers."
    assert wf(t)
    return distinct(t)

@law()
def known_grow(t: Table, k: int, a: Tok, b: Tok, x: Tok):
    "What is known stays known when a merge is added."
    assert known(t, x)
    return known(Merge(k, a, b, t), x)

@law(induct='s', cite=[known_grow])
def all_known_grow(t: Table, k: int, a: Tok, b: Tok, s: List[Tok]):
    "The same for lists."
    assert all_known(t, s)
    return all_known(Merge(k, a, b, t), s)

@law(induct='s', depth=2)
def merge_known(t: Table, k: int, a: Tok, b: Tok, s: List[Tok]):
    "Merging into a known token keeps all tokens known."
    assert all_known(t, s)
    assert has(k, t)
    return all_known(t, merge(k, a, b, s))

@law(induct='s')
def bytes_known(t: Table, s: List[Tok]):
    "Bytes are known to every table."
    assert is_bytes(s)
    return all_known(t, s)

@law(induct='t', cite=[bytes_known, all_known_grow, merge_known])
def vocab_bound(t: Table, s: List[Tok]):
    "Encoding gives only bytes and tokens of the table. For every table, well-formed or not."
    assert is_bytes(s)
    return all_known(t, encode(t, s))


# %%
prove(vocab_bound)


# %% [markdown]
# Which pair is chosen does not matter for what follows, only that it comes from the text. So the lemmas speak of any
# choice.

# %%
#| export
@pure
def choice_known(t: Table, choice: Choice) -> bool:
    "Both tokens of the pair, if there is one, are known."
    match choice:
        case Neither(): return True
        case Pair(a, b): return known(t, a) and known(t, b)

@law(trigger='choice_known(t, better(full, x, y, other))')
def better_known(t: Table, full: List[Tok], x: Tok, y: Tok, other: Choice):
    "Of two known pairs, the better one is known."
    assert known(t, x)
    assert known(t, y)
    assert choice_known(t, other)
    return choice_known(t, better(full, x, y, other))

@law(induct='s', depth=2, cite=[better_known])
def best_known(t: Table, full: List[Tok], s: List[Tok]):
    "The best pair of a text of known tokens is known."
    assert all_known(t, s)
    return choice_known(t, best(full, s))


# %%
#| export
@pure
def below(n: int, t: Table) -> bool:
    "All numbers of the table are below n."
    match t:
        case Bytes(): return True
        case Merge(k, a, b, older): return k < n and below(n, older)

@pure
def numbered(t: Table) -> bool:
    "The numbers are 0, 1, 2, ... from the oldest merge on."
    match t:
        case Bytes(): return True
        case Merge(k, a, b, older): return k == size(older) and numbered(older)

@law(induct='t', trigger='below(n, t); below(m, t)')
def below_more(n: int, m: int, t: Table):
    "What is below n is below every larger number."
    assert below(n, t)
    assert n <= m
    return below(m, t)

@law(induct='t', cite=[below_more])
def numbered_below(t: Table):
    "In a numbered table, all numbers are below its size."
    assert numbered(t)
    return below(size(t), t)

@law(induct='t', trigger='has(n, t)')
def below_new(n: int, t: Table):
    "A number above all numbers of a table is new to it."
    assert below(n, t)
    return not has(n, t)


# %%
#| export
@law(trigger='numbered(grow(t, choice))')
def grow_numbered(t: Table, choice: Choice):
    "One more merge gets the next number."
    assert numbered(t)
    return numbered(grow(t, choice))

@law(trigger='wf(grow(t, choice))', cite=[numbered_below, below_new])
def grow_wf(t: Table, choice: Choice):
    "A well-formed table stays so when a known pair is added."
    assert wf(t)
    assert numbered(t)
    assert choice_known(t, choice)
    return wf(grow(t, choice))

@law(induct='n', opaque=[best, encode], cite=[grow_numbered])
def train_numbered(n: Nat, s: List[Tok]):
    "The merges of a trained table are numbered 0, 1, 2, ..."
    return numbered(train(n, s))

@law(induct='n', opaque=[best, encode], cite=[vocab_bound, train_numbered, best_known, grow_wf])
def train_wf(n: Nat, s: List[Tok]):
    "Trained tables are well-formed."
    assert is_bytes(s)
    return wf(train(n, s))


# %%
prove(train_wf)


# %% [markdown]
# With that, no hypothesis about the table is left: train on any bytes, encode any other bytes, and they come back.

# %%
#| export
@law(opaque=[train, decode, encode, wf, best, distinct, is_bytes],
     cite=[roundtrip, train_wf, wf_distinct])
def roundtrip_trained(n: Nat, corpus: List[Tok], s: List[Tok]):
    "Whatever a tokenizer was trained on, it gives every text back."
    assert is_bytes(corpus)
    assert is_bytes(s)
    return decode(train(n, corpus), encode(train(n, corpus), s)) == s


# %%
prove(roundtrip_trained)


# %% [markdown]
# And what comes out is bytes, from 0 to 255, for any known tokens, not only for those that encoding gave; and a table
# of at most `n` merges has at most `n`.

# %%
#| export
@law(induct='s', trigger='is_bytes(append(s, u))')
def bytes_append(s: List[Tok], u: List[Tok]):
    "Bytes behind bytes are bytes."
    assert is_bytes(s)
    assert is_bytes(u)
    return is_bytes(append(s, u))

@law(induct='t', gen=['x'], cite=[bytes_append])
def expand_bytes(t: Table, x: Tok):
    "A known token stands for bytes."
    assert wf(t)
    assert known(t, x)
    return is_bytes(expand(t, x))

@law(induct='s', cite=[bytes_append, expand_bytes])
def decode_bytes(t: Table, s: List[Tok]):
    "Decoding known tokens gives bytes, each from 0 to 255."
    assert wf(t)
    assert all_known(t, s)
    return is_bytes(decode(t, s))


# %%
#| export
@pure
def to_int(n: Nat) -> int:
    "A natural number as an integer."
    match n:
        case Z(): return 0
        case S(m): return to_int(m) + 1

@law(trigger='size(grow(t, choice))')
def grow_size(t: Table, choice: Choice):
    "Growing adds at most one merge."
    return size(grow(t, choice)) <= size(t) + 1

@law(induct='n', opaque=[best, encode], cite=[grow_size])
def train_size(n: Nat, s: List[Tok]):
    "Training for n merges makes at most n."
    return size(train(n, s)) <= to_int(n)


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
# Which pair is chosen plays no part in these laws: they would hold for any choice from the text. That the choice is the
# most frequent pair is the definition of `best`, not a law about it.
