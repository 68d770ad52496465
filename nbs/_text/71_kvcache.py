# %%
#| default_exp kvcache

# %% [markdown]
# # The cache of a language model
# > Why a model that writes word after word may remember what it computed for the words before: proved.

# %% [markdown]
# A language model reads a text and guesses how it goes on. It reads words as rows of numbers, one row a word. A *layer*
# turns each row into a new row, and looks at the rows before it while doing so; that looking back is *attention*. A model
# is a stack of such layers.
#
# To write, it guesses one word, puts it behind the text, and reads the longer text to guess the next one. Reading
# everything again for every word is a waste: a text of 1,000 words would be read a thousand times. So every program that
# runs such models keeps what it can use again, in a *cache*, and computes only the new row. All of them rely on this
# giving the same answer. They test it. This page proves it, for every layer of this kind, every stack of layers, every
# text, and every place at which the text is cut in two.

# %%
#| hide
#| export
from bendml.laws import A, Cons, List, Nil, abstract, law, prove, pure, to_list
from bendml.lists import append, append_assoc, append_nil, length
from bendml.nat import Nat, S, Z, add


# %% [markdown]
# ## What a layer does with one row
#
# At position $n$ the layer is given a row $x$. From it, it makes two things that later rows will look at: a *key*, to be
# found by, and a *value*, to be read. The two together are an **entry**. Then it compares its own question, the *query*,
# with the keys of all entries so far, its own included, mixes their values accordingly, and makes its output row from
# that.
#
# For the proof it does not matter how. We leave both steps open: `entry` may be any function of the layer, the position
# and the row, and `attend` any function of those and of the entries so far. What is said about them holds for learned
# positions (GPT-2) and rotated keys (Llama), for many heads, for keys that several heads share, and for whatever
# normalisation and feed-forward network stand around the attention, since all of that looks at one row at a time.

# %%
#| export
@abstract
class Layer:
    "A layer's parameters."

@abstract
class Row:
    "What a layer is given for one position of the text, and what it answers."

@abstract
class Entry:
    "A key and a value, as one layer has made them for one position."

@abstract
def entry(l: Layer, n: Nat, x: Row) -> Entry:
    "What layer l keeps of row x at position n."
    return 'entry', l, n, x

@abstract
def attend(l: Layer, n: Nat, x: Row, seen: List[Entry]) -> Row:
    "What layer l answers to row x at position n, when it can look at these entries."
    return 'attend', l, n, x, seen


# %% [markdown]
# ## The whole text at once
#
# First all the entries. Then, for each position $n$, the answer from the first $n + 1$ entries: a row sees itself and what
# is before it, never what comes later. That is the forward pass as the papers describe it.

# %%
#| export
@pure
def take(n: Nat, xs: List[A]) -> List[A]:
    "The first n elements, or all there are."
    match n, xs:
        case Z(), _: return Nil()
        case S(_), Nil(): return Nil()
        case S(m), Cons(x, rest): return Cons(x, take(m, rest))

@pure
def entries(l: Layer, n: Nat, xs: List[Row]) -> List[Entry]:
    "The entries of all rows, the first of which is at position n."
    match xs:
        case Nil(): return Nil()
        case Cons(x, rest): return Cons(entry(l, n, x), entries(l, S(n), rest))

@pure
def answers(l: Layer, n: Nat, xs: List[Row], all: List[Entry]) -> List[Row]:
    "The answers to all rows, the first of which is at position n, from the entries of the whole text."
    match xs:
        case Nil(): return Nil()
        case Cons(x, rest): return Cons(attend(l, n, x, take(S(n), all)), answers(l, S(n), rest, all))

@pure
def full(l: Layer, xs: List[Row]) -> List[Row]:
    "A layer's forward pass over a whole text."
    return answers(l, Z(), xs, entries(l, Z(), xs))


# %% [markdown]
# ## Row by row, with a cache
#
# Now the way a program does it when it writes. It holds the entries so far. A new row adds its own entry behind them and
# looks at what is there. Its position is nowhere written down: it is the number of entries in the cache.

# %%
#| export
@pure
def grow(l: Layer, cache: List[Entry], x: Row) -> List[Entry]:
    "The cache after one more row."
    return append(cache, Cons(entry(l, length(cache), x), Nil()))

@pure
def cached(l: Layer, cache: List[Entry], xs: List[Row]) -> List[Row]:
    "The answers to new rows, one after the other, from a cache that grows."
    match xs:
        case Nil(): return Nil()
        case Cons(x, rest): return Cons(attend(l, length(cache), x, grow(l, cache, x)), cached(l, grow(l, cache, x), rest))

@pure
def filled(l: Layer, cache: List[Entry], xs: List[Row]) -> List[Entry]:
    "The cache after all the new rows."
    match xs:
        case Nil(): return cache
        case Cons(x, rest): return filled(l, grow(l, cache, x), rest)


# %%
#| echo: false
import matplotlib.pyplot as plt
fig, axes = plt.subplots(1, 2, figsize=(8, 3))
for ax, title, new in zip(axes, ('the whole text at once', 'one new row, with a cache'), (range(6), [5])):
    for n in range(6):
        for k in range(6):
            if k <= n: ax.add_patch(plt.Rectangle((k, 5 - n), 0.9, 0.9, color='#6d4aff' if n in new else '#e8e4f5'))
        ax.text(-0.4, 5.45 - n, f'row {n}', ha='right', va='center', fontsize=8, color='black' if n in new else '#bbb')
    for k in range(6):
        ax.add_patch(plt.Rectangle((k, 6.4), 0.9, 0.6, color='#6d4aff' if k in new else '#f2b84b'))
    ax.text(-0.4, 6.7, 'entries', ha='right', va='center', fontsize=8)
    ax.set(xlim=(-1.8, 6), ylim=(-0.2, 7.2), title=title)
    ax.axis('off')


# %% [markdown]
# Purple is what is computed, yellow what is kept. Each square is one row looking at one entry. On the left there are
# $T^2/2$ of them; on the right $T$, and the rest of the layer runs for one row instead of $T$.

# %% [markdown]
# ## They are the same
#
# The heart of it is one lemma. Take any cache, any new rows, and any entries that come after them. Answering the new rows
# from *all* the entries is the same as answering them from the cache as it grows. The entries that come after are what
# makes the lemma strong: it says at once that the cache is enough and that the future does not matter. In the induction
# the cache gets longer while the rows get fewer, so the lemma is about every cache (`gen`).

# %%
#| export
@law(induct='c')
def length_snoc(c: List[Entry], e: Entry):
    "An entry more makes a cache longer by one."
    return length(append(c, Cons(e, Nil()))) == S(length(c))

@law(induct='c')
def take_snoc(c: List[Entry], e: Entry, later: List[Entry]):
    "The first |c| + 1 entries of c, e and later ones are c and e."
    return take(S(length(c)), append(c, Cons(e, later))) == append(c, Cons(e, Nil()))

@law(induct='xs', gen=['c'], cite=[append_assoc, length_snoc, take_snoc], ih='cached(l, c, xs)')
def answers_cached(l: Layer, c: List[Entry], xs: List[Row], later: List[Entry]):
    "From all entries, or from a cache that grows: the answers are the same, whatever comes later."
    return answers(l, length(c), xs, append(c, append(entries(l, length(c), xs), later))) == cached(l, c, xs)


# %%
prove(answers_cached)


# %% [markdown]
# With no cache and nothing later, that is the claim for a whole text. For the text in two parts, the cache of the first
# part is what its entries were:

# %%
#| export
@law(cite=[answers_cached.here(c='Nil()', later='Nil()'), append_nil])
def full_cached(l: Layer, xs: List[Row]):
    "The forward pass is the answers row by row, from an empty cache."
    return full(l, xs) == cached(l, Nil(), xs)

@law(induct='xs', gen=['c'])
def cached_append(l: Layer, c: List[Entry], xs: List[Row], ys: List[Row]):
    "Rows can be given to a cache in two goes."
    return cached(l, c, append(xs, ys)) == append(cached(l, c, xs), cached(l, filled(l, c, xs), ys))

@law(induct='xs', gen=['c'], cite=[append_assoc, length_snoc, append_nil])
def filled_entries(l: Layer, c: List[Entry], xs: List[Row]):
    "A filled cache holds what it held, and the entries of the rows."
    return filled(l, c, xs) == append(c, entries(l, length(c), xs))

@law(cite=[full_cached, cached_append, filled_entries.here(c='Nil()')], opaque=[full, cached, filled, entries])
def cached_is_full(l: Layer, xs: List[Row], ys: List[Row]):
    "Decoding with a cache is the full forward pass, wherever the text is cut in two."
    return full(l, append(xs, ys)) == append(full(l, xs), cached(l, entries(l, Z(), xs), ys))


# %%
prove(cached_is_full)


# %% [markdown]
# Cut before the last row, it says what one step of writing does:

# %%
#| export
@law(cite=[cached_is_full], opaque=[full, entries, append])
def cached_step(l: Layer, xs: List[Row], x: Row):
    "One more row costs one entry and one answer."
    cache = grow(l, entries(l, Z(), xs), x)
    return full(l, append(xs, Cons(x, Nil()))) == append(full(l, xs), Cons(attend(l, length(entries(l, Z(), xs)), x, cache), Nil()))


# %%
prove(cached_step)


# %% [markdown]
# ## What goes wrong, and is refused
#
# Three mistakes that real programs have made. First, a row that looks at the cache before its own entry is in it:

# %%
@pure
def looks_too_early(l: Layer, cache: List[Entry], xs: List[Row]) -> List[Row]:
    match xs:
        case Nil(): return Nil()
        case Cons(x, rest): return Cons(attend(l, length(cache), x, cache), looks_too_early(l, grow(l, cache, x), rest))

@law
def too_early(l: Layer, xs: List[Row]): return full(l, xs) == looks_too_early(l, Nil(), xs)

prove(too_early)


# %% [markdown]
# Second, positions that start again at zero after the first part, which a test with one part cannot see:

# %%
@law
def position_from_zero(l: Layer, xs: List[Row], ys: List[Row]):
    return full(l, append(xs, ys)) == append(full(l, xs), answers(l, Z(), ys, append(entries(l, Z(), xs), entries(l, Z(), ys))))

prove(position_from_zero)


# %% [markdown]
# Third, a row that sees the one after it:

# %%
@pure
def peeking(l: Layer, n: Nat, xs: List[Row], all: List[Entry]) -> List[Row]:
    match xs:
        case Nil(): return Nil()
        case Cons(x, rest): return Cons(attend(l, n, x, take(S(S(n)), all)), peeking(l, S(n), rest, all))

@law
def peeks(l: Layer, xs: List[Row]): return peeking(l, Z(), xs, entries(l, Z(), xs)) == cached(l, Nil(), xs)

prove(peeks)


# %% [markdown]
# ## The future does not matter
#
# A model that has looked ahead would be useless for writing, where there is nothing ahead. That the answers to the first
# rows depend on the first rows alone is called *causality*.

# %%
#| export
@law(induct='n', gen=['c', 'xs'], split=['xs'])
def take_cached(l: Layer, c: List[Entry], xs: List[Row], n: Nat):
    "The first answers are the answers to the first rows."
    return take(n, cached(l, c, xs)) == cached(l, c, take(n, xs))

@law(cite=[full_cached, take_cached], opaque=[full, cached, take])
def causal(l: Layer, xs: List[Row], n: Nat):
    "A shorter text has the same answers, as far as it goes."
    return take(n, full(l, xs)) == full(l, take(n, xs))

@law(induct='xs')
def take_append(xs: List[Row], ys: List[Row]):
    "The first |xs| of xs ++ ys are xs."
    return take(length(xs), append(xs, ys)) == xs

@law(cite=[causal, take_append], opaque=[full, take, append])
def later_rows_do_not_matter(l: Layer, xs: List[Row], ys: List[Row], zs: List[Row]):
    "Whatever follows, the answers to a text are the same."
    return take(length(xs), full(l, append(xs, ys))) == take(length(xs), full(l, append(xs, zs)))


# %%
prove(later_rows_do_not_matter)


# %% [markdown]
# ## A stack of layers
#
# In a model the answers of one layer are the rows of the next, and each layer has a cache of its own.

# %%
#| export
@pure
def full_stack(ls: List[Layer], xs: List[Row]) -> List[Row]:
    "The forward pass through all layers."
    match ls:
        case Nil(): return xs
        case Cons(l, rest): return full_stack(rest, full(l, xs))

@pure
def caches(ls: List[Layer], xs: List[Row]) -> List[List[Entry]]:
    "The entries that each layer makes of a text."
    match ls:
        case Nil(): return Nil()
        case Cons(l, rest): return Cons(entries(l, Z(), xs), caches(rest, full(l, xs)))

@pure
def cached_stack(ls: List[Layer], cs: List[List[Entry]], ys: List[Row]) -> List[Row]:
    "The answers to new rows, each layer with its cache."
    match ls, cs:
        case Cons(l, rest), Cons(c, others): return cached_stack(rest, others, cached(l, c, ys))
        case _, _: return ys

@pure
def filled_stack(ls: List[Layer], cs: List[List[Entry]], ys: List[Row]) -> List[List[Entry]]:
    "The caches after new rows."
    match ls, cs:
        case Cons(l, rest), Cons(c, others): return Cons(filled(l, c, ys), filled_stack(rest, others, cached(l, c, ys)))
        case _, _: return Nil()


# %%
#| export
@law(induct='ls', gen=['xs', 'ys'], cite=[cached_is_full], opaque=[full, cached, entries, append])
def cached_is_full_stack(ls: List[Layer], xs: List[Row], ys: List[Row]):
    "With a cache a layer, a stack decodes as it would read the whole text, wherever that is cut in two."
    return full_stack(ls, append(xs, ys)) == append(full_stack(ls, xs), cached_stack(ls, caches(ls, xs), ys))

@law(induct='xs', gen=['c'])
def filled_append(l: Layer, c: List[Entry], xs: List[Row], ys: List[Row]):
    "A cache can be filled in two goes."
    return filled(l, c, append(xs, ys)) == filled(l, filled(l, c, xs), ys)

@law(cite=[filled_entries.here(c='Nil()'), filled_entries.here(c='Nil()', xs='append(xs, ys)'), filled_append.here(c='Nil()')])
def entries_filled(l: Layer, xs: List[Row], ys: List[Row]):
    "The entries of a longer text are the cache of the shorter one, filled up."
    return entries(l, Z(), append(xs, ys)) == filled(l, entries(l, Z(), xs), ys)

@law(induct='ls', gen=['xs', 'ys'], cite=[cached_is_full, entries_filled], opaque=[full, cached, entries, append, filled])
def caches_filled(ls: List[Layer], xs: List[Row], ys: List[Row]):
    "After the new rows, the caches are those of the longer text: so it can go on."
    return filled_stack(ls, caches(ls, xs), ys) == caches(ls, append(xs, ys))

@law(induct='ls', gen=['xs'], cite=[causal], opaque=[full, take])
def causal_stack(ls: List[Layer], xs: List[Row], n: Nat):
    "A shorter text has the same answers, through all layers."
    return take(n, full_stack(ls, xs)) == full_stack(ls, take(n, xs))


# %%
prove(cached_is_full_stack), prove(caches_filled)


# %% [markdown]
# ## Word by word
#
# Writing pushes one row at a time through all the layers. The row may be anything; in particular it may be the word that
# was chosen from the answer before. So this covers writing greedily, at random, or by dictation.

# %%
#| export
@pure
def stream(ls: List[Layer], cs: List[List[Entry]], ys: List[Row]) -> List[Row]:
    "Rows one at a time, each through the whole stack before the next."
    match ys:
        case Nil(): return Nil()
        case Cons(y, rest):
            one = Cons(y, Nil())
            return append(cached_stack(ls, cs, one), stream(ls, filled_stack(ls, cs, one), rest))

@law(induct='xs')
def append_one(xs: List[Row], y: Row, rest: List[Row]):
    "An element can go with the list before it or with the one after it."
    return append(append(xs, Cons(y, Nil())), rest) == append(xs, Cons(y, rest))

@law(induct='ls')
def full_empty(ls: List[Layer]):
    "No rows, no answers."
    return full_stack(ls, Nil()) == Nil()


# %%
#| export
_one = dict(ls='ls', xs='xs', ys='Cons(ys.head, Nil())')

@law(induct='ys', gen=['xs'], opaque=[full_stack, caches, cached_stack, filled_stack, append], ih='caches(ls, xs)',
     cite=[cached_is_full_stack.at(**_one), caches_filled.at(**_one), append_one, append_nil,
           append_assoc.at(xs='full_stack(ls, xs)', ys='cached_stack(ls, caches(ls, xs), Cons(ys.head, Nil()))')])
def stream_is_full(ls: List[Layer], xs: List[Row], ys: List[Row]):
    "After a text was read, going on word by word gives what reading all of it would."
    return append(full_stack(ls, xs), stream(ls, caches(ls, xs), ys)) == full_stack(ls, append(xs, ys))

@law(cite=[stream_is_full.here(xs='Nil()'), full_empty], opaque=[full_stack, caches, stream])
def generation_is_full(ls: List[Layer], ys: List[Row]):
    "Word by word from the first, with empty caches: the same as one pass over everything."
    return stream(ls, caches(ls, Nil()), ys) == full_stack(ls, ys)


# %%
prove(generation_is_full)

# %% [markdown]
# ## All of them

# %%
#| echo: false
from bendml.laws import Law
for name, each in list(globals().items()):
    if isinstance(each, Law) and each.__doc__ and each.__module__ == __name__: print(f'{name:26} {prove(each).verdict:10} {each.__doc__}')

# %% [markdown]
# ## What this does not show
#
# - The laws are about real functions of rows. A computer rounds, and a matrix product over many rows may add in another
#   order than a product with one row. Then the two ways differ in the last digits, and the tests of the models say by how
#   much.
# - Nothing is said about a cache that forgets: a sliding window, or throwing out entries when memory is full.
# - A cache here is a list that grows. A program has an array and an offset: [the next page](71b_kvarray.ipynb) ties the
#   two together.
