# %%
#| default_exp bpe.ranks

# %% [markdown]
# # Lowest rank first
# > Two ways to apply merges, and a proof that they give the same tokens.

# %% [markdown]
# The page on byte-pair encoding applies the merges in the order of the table: each in turn, over the whole text.
# Published tokenizers do something else. They look at all pairs of neighbours, merge the one whose merge is the
# oldest, look again, and so on; the age of a merge is called its *rank*. For short words and tables of fifty thousand
# merges this is far faster.
#
# Do the two agree? It is not obvious, since merging a pair brings forth new pairs, whose rank might be lower. It is
# false for some tables. This page proves it for all well-formed ones, in two forms; the next page
# adds a third, which is what engines do.

# %%
#| hide
#| export
from bendml.bpe import B, Bytes, M, Merge, Table, Tok, decode, distinct, encode, has, is_bytes, merge, roundtrip, train
from bendml.laws import Cons, List, Nil, datatype, law, prove, pure, to_list
from bendml.nat import Nat, S, Z, nat
from bendml.bpe.trained import known, to_int, wf, wf_distinct


# %% [markdown]
# ## Which merge comes first
#
# `pick` goes through the table and finds the oldest merge whose pair occurs.

# %%
#| export
@datatype
class Found:
    "A merge, if one was found."
    class Nothing: pass
    class Rule:
        k: int
        a: Tok
        b: Tok

Nothing, Rule = Found.Nothing, Found.Rule

@pure
def occurs(a: Tok, b: Tok, s: List[Tok]) -> bool:
    "Somewhere, a is followed by b."
    match s:
        case Cons(x, Cons(y, r)): return (x == a and y == b) or occurs(a, b, Cons(y, r))
        case _: return False

@pure
def older_or(found: Found, k: int, a: Tok, b: Tok, s: List[Tok]) -> Found:
    "What was found among older merges; else this one, if its pair occurs."
    match found:
        case Rule(j, c, d): return found
        case Nothing(): return Rule(k, a, b) if occurs(a, b, s) else Nothing()

@pure
def pick(t: Table, s: List[Tok]) -> Found:
    "The oldest merge whose pair occurs in s."
    match t:
        case Bytes(): return Nothing()
        case Merge(k, a, b, older): return older_or(pick(older, s), k, a, b, s)


# %% [markdown]
# ## One at a time, or all at once
#
# A step merges either the leftmost occurrence of the chosen pair, or all of them. `fuel` says how many steps there
# may be; as many as the text is long are always enough, since every step makes it shorter.

# %%
#| export
@pure
def merge_one(k: int, a: Tok, b: Tok, s: List[Tok]) -> List[Tok]:
    "The leftmost a followed by b becomes M(k)."
    match s:
        case Cons(x, Cons(y, r)):
            if x == a and y == b: return Cons(M(k), r)
            return Cons(x, merge_one(k, a, b, Cons(y, r)))
        case _: return s

@pure
def apply_one(found: Found, s: List[Tok]) -> List[Tok]:
    "One occurrence merged."
    match found:
        case Nothing(): return s
        case Rule(k, a, b): return merge_one(k, a, b, s)

@pure
def apply_all(found: Found, s: List[Tok]) -> List[Tok]:
    "All occurrences merged."
    match found:
        case Nothing(): return s
        case Rule(k, a, b): return merge(k, a, b, s)


# %%
#| export
@pure
def rank_first(fuel: Nat, t: Table, s: List[Tok]) -> List[Tok]:
    "Again and again, the leftmost pair of the lowest rank."
    match fuel:
        case Z(): return s
        case S(less):
            return s if pick(t, s) == Nothing() else rank_first(less, t, apply_one(pick(t, s), s))

@pure
def rank_all(fuel: Nat, t: Table, s: List[Tok]) -> List[Tok]:
    "Again and again, all pairs of the lowest rank."
    match fuel:
        case Z(): return s
        case S(less):
            return s if pick(t, s) == Nothing() else rank_all(less, t, apply_all(pick(t, s), s))


# %%
text = lambda s: to_list([B(b) for b in s.encode()])
table = train(nat(3), text('aaabdaaabac'))
encode(table, text('aaabac')), rank_first(nat(6), table, text('aaabac'))


# %% [markdown]
# ## The idea of the proof
#
# Do not compare the two loops step by step; they are never at the same place. Show instead that **one step of the
# second does not change what the first makes of the text**. When no step is left, the first has nothing to do either,
# and so the results are equal.
#
# First, what happens when nothing is found.

# %%
#| export
@law(induct='s', depth=2)
def merge_nothing(k: int, a: Tok, b: Tok, s: List[Tok]):
    "Merging a pair that does not occur changes nothing."
    assert not occurs(a, b, s)
    return merge(k, a, b, s) == s

@law(trigger='older_or(found, k, a, b, s)')
def found_nothing(found: Found, k: int, a: Tok, b: Tok, s: List[Tok]):
    "Nothing is found only if neither the older merges nor this one apply."
    assert older_or(found, k, a, b, s) == Nothing()
    return found == Nothing() and not occurs(a, b, s)

@law(induct='t', cite=[found_nothing, merge_nothing])
def nothing_to_do(t: Table, s: List[Tok]):
    "If no merge applies, encoding changes nothing."
    assert pick(t, s) == Nothing()
    return encode(t, s) == s


# %% [markdown]
# Then, that merging into a new token cannot bring forth a pair of older tokens. Its two neighbours now have the new
# token beside them, and that is in no older pair.

# %%
#| export
@law(induct='s', depth=2, split=['s.tail'], trigger='occurs(c, d, merge_one(k, a, b, s))')
def no_new_pair_one(k: int, a: Tok, b: Tok, c: Tok, d: Tok, s: List[Tok]):
    "Merging once brings forth no pair that does not contain the new token."
    assert c != M(k)
    assert d != M(k)
    assert not occurs(c, d, s)
    return not occurs(c, d, merge_one(k, a, b, s))

@law(induct='s', depth=2, split=['s.tail', 'merge(k, a, b, s.tail)', 'merge(k, a, b, s.tail.tail)'],
     trigger='occurs(c, d, merge(k, a, b, s))')
def no_new_pair(k: int, a: Tok, b: Tok, c: Tok, d: Tok, s: List[Tok]):
    "Merging all brings forth no pair that does not contain the new token."
    assert c != M(k)
    assert d != M(k)
    assert not occurs(c, d, s)
    return not occurs(c, d, merge(k, a, b, s))

@law(trigger='known(t, x); has(k, t)')
def known_is_old(t: Table, k: int, x: Tok):
    "A known token is not a new one."
    assert known(t, x)
    assert not has(k, t)
    return x != M(k)


# %%
#| export
@law(induct='t', cite=[found_nothing, no_new_pair_one, known_is_old])
def still_nothing_one(t: Table, k: int, a: Tok, b: Tok, s: List[Tok]):
    "If no older merge applies, none does after a newer one was applied once."
    assert wf(t)
    assert not has(k, t)
    assert pick(t, s) == Nothing()
    return pick(t, merge_one(k, a, b, s)) == Nothing()

@law(induct='t', cite=[found_nothing, no_new_pair, known_is_old])
def still_nothing(t: Table, k: int, a: Tok, b: Tok, s: List[Tok]):
    "If no older merge applies, none does after a newer one was applied everywhere."
    assert wf(t)
    assert not has(k, t)
    assert pick(t, s) == Nothing()
    return pick(t, merge(k, a, b, s)) == Nothing()


# %% [markdown]
# And merging everywhere after merging once, or after merging everywhere, is merging everywhere.

# %%
#| export
@law(induct='s', depth=2)
def merge_after_one(k: int, a: Tok, b: Tok, s: List[Tok]):
    "Merging all, after the leftmost was merged, is merging all."
    assert a != M(k)
    assert b != M(k)
    return merge(k, a, b, merge_one(k, a, b, s)) == merge(k, a, b, s)

@law(induct='s', depth=2, split=['s.tail', 'merge(k, a, b, s.tail)', 'merge(k, a, b, s.tail.tail)'],
     trigger='occurs(a, b, merge(k, a, b, s))')
def merge_leaves_none(k: int, a: Tok, b: Tok, s: List[Tok]):
    "Merging all leaves no occurrence."
    assert a != M(k)
    assert b != M(k)
    return not occurs(a, b, merge(k, a, b, s))

@law(cite=[merge_leaves_none, merge_nothing])
def merge_twice(k: int, a: Tok, b: Tok, s: List[Tok]):
    "Merging all twice is merging all once."
    assert a != M(k)
    assert b != M(k)
    return merge(k, a, b, merge(k, a, b, s)) == merge(k, a, b, s)


# %% [markdown]
# ## One step changes nothing

# %%
#| export
@law(induct='t', cite=[still_nothing_one, nothing_to_do, merge_after_one, known_is_old],
     split=['pick(t.older, s)'])
def step_one(t: Table, s: List[Tok]):
    "One step, lowest rank first, does not change what encoding in order gives."
    assert wf(t)
    return encode(t, apply_one(pick(t, s), s)) == encode(t, s)

@law(induct='t', cite=[still_nothing, nothing_to_do, merge_twice, known_is_old],
     split=['pick(t.older, s)'])
def step_all(t: Table, s: List[Tok]):
    "The same for merging all at once."
    assert wf(t)
    return encode(t, apply_all(pick(t, s), s)) == encode(t, s)


# %%
prove(step_one)


# %% [markdown]
# Every step makes the text shorter:

# %%
#| export
@pure
def tokens(s: List[Tok]) -> int:
    "How many tokens."
    match s:
        case Nil(): return 0
        case Cons(x, r): return tokens(r) + 1

@law(induct='s', trigger='tokens(s)')
def tokens_not_negative(s: List[Tok]):
    "A list has no fewer than 0 tokens."
    return tokens(s) >= 0

@law(induct='s', depth=2)
def merge_one_shorter(k: int, a: Tok, b: Tok, s: List[Tok]):
    "Merging one occurrence takes away one token."
    assert occurs(a, b, s)
    return tokens(merge_one(k, a, b, s)) == tokens(s) - 1

@law(induct='s', depth=2, trigger='tokens(merge(k, a, b, s))')
def merge_not_longer(k: int, a: Tok, b: Tok, s: List[Tok]):
    "Merging makes no text longer."
    return tokens(merge(k, a, b, s)) <= tokens(s)

@law(induct='s', depth=2, cite=[merge_not_longer], trigger='tokens(merge(k, a, b, s))')
def merge_shorter(k: int, a: Tok, b: Tok, s: List[Tok]):
    "Merging all of at least one occurrence makes a text shorter."
    assert occurs(a, b, s)
    return tokens(merge(k, a, b, s)) <= tokens(s) - 1

@law(induct='t', cite=[merge_one_shorter], split=['pick(t.older, s)'])
def step_one_shorter(t: Table, s: List[Tok]):
    "A step that finds a pair takes away one token."
    assert pick(t, s) != Nothing()
    return tokens(apply_one(pick(t, s), s)) == tokens(s) - 1

@law(induct='t', cite=[merge_shorter], split=['pick(t.older, s)'],
     trigger='tokens(apply_all(pick(t, s), s))')
def step_all_shorter(t: Table, s: List[Tok]):
    "The same for merging all at once: at least one token less."
    assert pick(t, s) != Nothing()
    return tokens(apply_all(pick(t, s), s)) <= tokens(s) - 1

@law(induct='t')
def encode_empty(t: Table):
    "Encoding an empty text gives an empty list."
    return encode(t, Nil()) == Nil()


# %% [markdown]
# ## The theorem

# %%
#| export
@law(induct='fuel', gen=['s'], cite=[nothing_to_do, step_one, step_one_shorter, tokens_not_negative,
                                     encode_empty],
     opaque=[pick, apply_one, encode, wf], split=['s'])
def rank_first_is_in_order(fuel: Nat, t: Table, s: List[Tok]):
    "Lowest rank first gives the same tokens as the merges in order."
    assert wf(t)
    assert tokens(s) <= to_int(fuel)
    return rank_first(fuel, t, s) == encode(t, s)

@law(induct='fuel', gen=['s'], cite=[nothing_to_do, step_all, step_all_shorter, tokens_not_negative,
                                     encode_empty],
     opaque=[pick, apply_all, encode, wf], split=['s'])
def rank_all_is_in_order(fuel: Nat, t: Table, s: List[Tok]):
    "So does merging all pairs of the lowest rank at once."
    assert wf(t)
    assert tokens(s) <= to_int(fuel)
    return rank_all(fuel, t, s) == encode(t, s)

@law(cite=[rank_first_is_in_order, roundtrip, wf_distinct],
     opaque=[rank_first, encode, decode, wf, distinct, is_bytes, tokens])
def rank_first_roundtrip(fuel: Nat, t: Table, s: List[Tok]):
    "What was encoded lowest rank first comes back."
    assert wf(t)
    assert is_bytes(s)
    assert tokens(s) <= to_int(fuel)
    return decode(t, rank_first(fuel, t, s)) == s


# %%
prove(rank_first_is_in_order)

# %% [markdown]
# For a table that is not well-formed it is false. Here the older merge needs a token that only the newer one makes:

# %%
table = Merge(1, B(97), B(98), Merge(0, M(1), B(99), Bytes()))
encode(table, text('abc')), rank_first(nat(3), table, text('abc'))

# %% [markdown]
# ## All of them

# %%
from bendml.laws import Law
for name, each in list(globals().items()):
    if isinstance(each, Law) and each.__doc__ and each.__module__ == __name__:
        print(f'{name:25} {prove(each).verdict:10} {each.__doc__}')

# %% [markdown]
# ## What this does not show
#
# The laws are about lists. A heap, a linked list, buckets by rank, a memory of words: none of that is in them. They
# say which results a faster algorithm must have, and that all pairs of one rank may be merged at once, which one of
# ours relies on.
