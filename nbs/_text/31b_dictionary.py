# %%
#| default_exp bpe.dictionary

# %% [markdown]
# # Merging by dictionary
# > What engines do, and why it gives the same tokens; for trained tables, always.

# %% [markdown]
# An engine does not go through the table to see which pairs occur. It goes through the text, looks every pair up in a
# dictionary, and takes the lowest rank. This page proves that it finds the same merge, and so gives the same tokens as the
# merges in order; and that for a trained table this needs no hypothesis at all.

# %%
#| hide
#| export
from bendml.bpe import (
    B, Bytes, Choice, Merge, Neither, Pair, Table, Tok, best, better, encode, grow, is_bytes, merge, train)
from bendml.laws import Cons, List, law, prove, pure
from bendml.nat import Nat, S, Z
from bendml.bpe.ranks import (
    Found, Nothing, Rule, apply_one, found_nothing, known_is_old, merge_leaves_none, occurs, older_or, pick,
    rank_first, rank_first_is_in_order, still_nothing, tokens)
from bendml.bpe.trained import below, numbered, numbered_below, to_int, train_numbered, train_wf, wf


# %% [markdown]
# ## Looking pairs up
#
# If a table has the same pair twice, a dictionary keeps one of the two, so the table must not. `ordered`: every pair once,
# and numbers grow with age.

# %%
#| export
@pure
def has_pair(a: Tok, b: Tok, t: Table) -> bool:
    "Some merge of the table is of this pair."
    match t:
        case Bytes(): return False
        case Merge(j, c, d, older): return (a == c and b == d) or has_pair(a, b, older)

@pure
def ordered(t: Table) -> bool:
    "Every pair once, and every number above all older ones."
    match t:
        case Bytes(): return True
        case Merge(k, a, b, older):
            return not has_pair(a, b, older) and below(k, older) and ordered(older)

@pure
def find(t: Table, x: Tok, y: Tok) -> Found:
    "The merge of a pair, as a dictionary finds it."
    match t:
        case Bytes(): return Nothing()
        case Merge(k, a, b, older): return Rule(k, a, b) if x == a and y == b else find(older, x, y)

@pure
def lower(p: Found, q: Found) -> Found:
    "The one of lower rank."
    match p, q:
        case Nothing(), _: return q
        case Rule(i, a, b), Nothing(): return p
        case Rule(i, a, b), Rule(j, c, d): return p if i <= j else q

@pure
def scan(t: Table, s: List[Tok]) -> Found:
    "The lowest rank among all pairs of neighbours, each looked up."
    match s:
        case Cons(x, Cons(y, r)): return lower(find(t, x, y), scan(t, Cons(y, r)))
        case _: return Nothing()

@pure
def by_dictionary(fuel: Nat, t: Table, s: List[Tok]) -> List[Tok]:
    "Again and again: look all pairs up, merge the leftmost of the lowest rank."
    match fuel:
        case Z(): return s
        case S(less):
            return s if scan(t, s) == Nothing() else by_dictionary(less, t, apply_one(scan(t, s), s))


# %% [markdown]
# Going through the text and going through the table find the same merge. The proof adds merges to the table one by
# one, and follows what that changes in a scan.

# %%
#| export
@pure
def rank_below(k: int, p: Found) -> bool:
    "The rank of what was found, if anything, is below k."
    match p:
        case Nothing(): return True
        case Rule(j, a, b): return j < k

@law(induct='t', trigger='find(t, x, y); below(k, t)')
def find_below(k: int, t: Table, x: Tok, y: Tok):
    "What is found in a table has a rank that is in it."
    assert below(k, t)
    return rank_below(k, find(t, x, y))

@law(trigger='rank_below(k, lower(p, q))')
def lower_below(k: int, p: Found, q: Found):
    "The lower of two ranks below k is below k."
    assert rank_below(k, p)
    assert rank_below(k, q)
    return rank_below(k, lower(p, q))

@law(induct='s', depth=2, cite=[find_below, lower_below], opaque=[lower, find],
     trigger='scan(t, s); below(k, t)')
def scan_below(k: int, t: Table, s: List[Tok]):
    "A scan gives a rank that is in the table."
    assert below(k, t)
    return rank_below(k, scan(t, s))

@law(induct='t')
def find_none(t: Table, a: Tok, b: Tok):
    "A pair that the table does not have is not found."
    assert not has_pair(a, b, t)
    return find(t, a, b) == Nothing()


# %%
#| export
@law(trigger='older_or(q, k, a, b, s); older_or(q, k, a, b, u)')
def lower_hit(k: int, a: Tok, b: Tok, q: Found, s: List[Tok], u: List[Tok]):
    "The newest rank wins only if nothing older was found."
    assert rank_below(k, q)
    assert occurs(a, b, u)
    return lower(Rule(k, a, b), older_or(q, k, a, b, s)) == older_or(q, k, a, b, u)

@law(trigger='lower(p, older_or(q, k, a, b, s)); older_or(lower(p, q), k, a, b, u)')
def lower_miss(k: int, a: Tok, b: Tok, p: Found, q: Found, s: List[Tok], u: List[Tok]):
    "An older rank found in front does not change whether the newest is needed."
    assert rank_below(k, p)
    assert rank_below(k, q)
    assert occurs(a, b, u) == occurs(a, b, s)
    return lower(p, older_or(q, k, a, b, s)) == older_or(lower(p, q), k, a, b, u)

@law(induct='s', depth=2, cite=[find_below, scan_below, find_none, lower_hit, lower_miss])
def scan_grow(k: int, a: Tok, b: Tok, t: Table, s: List[Tok]):
    "With one more merge, a scan finds what it found before, else the new one, if its pair occurs."
    assert below(k, t)
    assert not has_pair(a, b, t)
    return scan(Merge(k, a, b, t), s) == older_or(scan(t, s), k, a, b, s)

@law(induct='s', depth=2)
def scan_nothing(s: List[Tok]):
    "With no merges, a scan finds nothing."
    return scan(Bytes(), s) == Nothing()

@law(induct='t', cite=[scan_grow, scan_nothing], opaque=[scan])
def scan_is_pick(t: Table, s: List[Tok]):
    "Looking every pair up finds the oldest merge that applies."
    assert ordered(t)
    return scan(t, s) == pick(t, s)


# %%
#| export
@law(induct='fuel', gen=['s'], cite=[scan_is_pick], opaque=[scan, pick, apply_one, ordered])
def dictionary_is_rank_first(fuel: Nat, t: Table, s: List[Tok]):
    "By dictionary or by table: the same tokens."
    assert ordered(t)
    return by_dictionary(fuel, t, s) == rank_first(fuel, t, s)

@law(cite=[dictionary_is_rank_first, rank_first_is_in_order],
     opaque=[by_dictionary, rank_first, encode, wf, ordered, tokens, to_int])
def dictionary_is_in_order(fuel: Nat, t: Table, s: List[Tok]):
    "The engine's way gives the tokens of the merges in order."
    assert ordered(t)
    assert wf(t)
    assert tokens(s) <= to_int(fuel)
    return by_dictionary(fuel, t, s) == encode(t, s)


# %%
prove(dictionary_is_in_order)


# %% [markdown]
# ## Trained tables
#
# A trained table is always ordered: its best pair occurs in a text in which, the older merges being done, no older
# pair occurs any more. So for trained tables the theorem has no hypothesis about the table.

# %%
#| export
@law(induct='t', cite=[still_nothing, merge_leaves_none, known_is_old])
def encode_finishes(t: Table, s: List[Tok]):
    "After encoding, no merge applies any more."
    assert wf(t)
    return pick(t, encode(t, s)) == Nothing()

@law(induct='t', cite=[found_nothing])
def nothing_no_pair(t: Table, a: Tok, b: Tok, s: List[Tok]):
    "A pair that occurs although no merge applies is not in the table."
    assert pick(t, s) == Nothing()
    assert occurs(a, b, s)
    return not has_pair(a, b, t)

@pure
def choice_occurs(choice: Choice, s: List[Tok]) -> bool:
    "The pair, if there is one, occurs."
    match choice:
        case Neither(): return True
        case Pair(a, b): return occurs(a, b, s)

@law(trigger='choice_occurs(better(full, x, y, other), s)')
def better_occurs(full: List[Tok], x: Tok, y: Tok, other: Choice, s: List[Tok]):
    "Of two pairs that occur, the better one occurs."
    assert occurs(x, y, s)
    assert choice_occurs(other, s)
    return choice_occurs(better(full, x, y, other), s)

@law()
def choice_occurs_cons(choice: Choice, x: Tok, s: List[Tok]):
    "What occurs in a text occurs in it with one more token in front."
    assert choice_occurs(choice, s)
    return choice_occurs(choice, Cons(x, s))

@law(induct='s', depth=2, cite=[better_occurs, choice_occurs_cons])
def best_occurs(full: List[Tok], s: List[Tok]):
    "The best pair of a text occurs in it."
    return choice_occurs(best(full, s), s)


# %%
#| export
@law(cite=[numbered_below, nothing_no_pair])
def grow_ordered(t: Table, choice: Choice, s: List[Tok]):
    "A table stays ordered when a pair is added that occurs in a finished text."
    assert ordered(t)
    assert numbered(t)
    assert pick(t, s) == Nothing()
    assert choice_occurs(choice, s)
    return ordered(grow(t, choice))

@law(induct='n', opaque=[best, encode, pick, grow, wf, numbered], cite=[
    grow_ordered.at(t='train(n.pred, s)', s='encode(train(n.pred, s), s)',
                    choice='best(encode(train(n.pred, s), s), encode(train(n.pred, s), s))'),
    best_occurs, encode_finishes.at(t='train(n.pred, s)', s='s'), train_numbered, train_wf])
def train_ordered(n: Nat, s: List[Tok]):
    "Trained tables are ordered."
    assert is_bytes(s)
    return ordered(train(n, s))

@law(cite=[train_ordered, train_wf, dictionary_is_in_order],
     opaque=[train, by_dictionary, encode, wf, ordered, tokens, to_int, is_bytes])
def trained_dictionary(n: Nat, corpus: List[Tok], fuel: Nat, s: List[Tok]):
    "For every trained table, the engine's way gives the tokens of the merges in order."
    assert is_bytes(corpus)
    assert tokens(s) <= to_int(fuel)
    return by_dictionary(fuel, train(n, corpus), s) == encode(train(n, corpus), s)


# %%
prove(trained_dictionary)

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
# The laws are about lists. A heap, a linked list, buckets by rank, a memory of words: none of that is in them. They say
# which results a faster algorithm must have.
