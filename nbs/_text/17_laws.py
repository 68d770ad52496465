# %%
#| default_exp laws.__init__

# %% [markdown]
# # A law of your own
# > Prove a property of a function that you wrote, in ten minutes, including the moment when it fails.

# %% [markdown]
# Other pages are about how it works. This one is about using it. All that you need can be imported
# from `bendml.laws`.

# %%
#| hide
#| export
from bendml.laws.datatypes import A, Array, Cons, LawError, List, Nil, datatype, select, store, to_list
from bendml.laws.induct import Law
from bendml.laws.prove import Theorem, axiom, law, prove
from bendml.laws.reflect import abstract, pure
from bendml.laws.solvers import discharge
_all_ = ['A', 'Array', 'Cons', 'Law', 'LawError', 'List', 'Nil', 'Theorem', 'abstract', 'axiom', 'datatype', 'discharge', 'law', 'prove', 'pure', 'select', 'store', 'to_list']

# %% [markdown]
# ## Minute 1: the function
#
# Run-length encoding: instead of `7 7 7 5`, write "three times 7, once 5". We want to be sure that nothing is lost. A
# *run* is a value and how often it comes; `@datatype` makes a class of such values.

# %%
from bendml.laws import Cons, List, Nil, datatype, law, prove, pure, to_list
from bendml.lists import append
from bendml.nat import Nat, S, Z

@datatype
class Run:
    class Of:
        value: int
        times: Nat

Of = Run.Of


# %% [markdown]
# The functions are plain Python: `match`, `if`, and recursion in the place of loops. Each gets `@pure` and annotations.

# %%
@pure
def repeat(x: int, n: Nat) -> List[int]:
    match n:
        case Z(): return Nil()
        case S(m): return Cons(x, repeat(x, m))

@pure
def decode(runs: List[Run]) -> List[int]:
    match runs:
        case Nil(): return Nil()
        case Cons(Of(x, n), rest): return append(repeat(x, n), decode(rest))


# %% [markdown]
# Encoding goes from the back: encode the rest, then push one more value in front. And since this is a page about
# proofs, there is a mistake in it. Do you see it?

# %%
@pure
def push(x: int, runs: List[Run]) -> List[Run]:
    match runs:
        case Cons(Of(y, n), rest):
            if x == y: return Cons(Of(y, n), rest)
            return Cons(Of(x, S(Z())), runs)
        case Nil(): return Cons(Of(x, S(Z())), Nil())

@pure
def encode(xs: List[int]) -> List[Run]:
    match xs:
        case Nil(): return Nil()
        case Cons(x, rest): return push(x, encode(rest))

encode(to_list([5, 7, 8]))


# %% [markdown]
# ## Minute 3: the law
#
# What should hold, for every list? That decoding gives back what was encoded. `induct='xs'`: the proof goes along the list.

# %%
@law(induct='xs')
def decode_encode(xs: List[int]):
    "Nothing is lost."
    return decode(encode(xs)) == xs

prove(decode_encode)


# %% [markdown]
# ## Minute 4: it fails, because it is false
#
# `refuted`. The smallest list that shows it is `[0, 0]`, and it comes back as `[0]`: when a value repeats, the run does
# not get longer. In `push` it must say `S(n)`. We mend it, and define again what calls it.

# %%
@pure
def push(x: int, runs: List[Run]) -> List[Run]:
    match runs:
        case Cons(Of(y, n), rest):
            if x == y: return Cons(Of(y, S(n)), rest)
            return Cons(Of(x, S(Z())), runs)
        case Nil(): return Cons(Of(x, S(Z())), Nil())

@pure
def encode(xs: List[int]) -> List[Run]:
    match xs:
        case Nil(): return Nil()
        case Cons(x, rest): return push(x, encode(rest))


# %% [markdown]
# The old law now speaks of functions that are no longer there, and says so:

# %%
prove(decode_encode)


# %% [markdown]
# ## Minute 5: only one solver can prove it

# %%
@law(induct='xs')
def decode_encode(xs: List[int]):
    "Nothing is lost."
    return decode(encode(xs)) == xs

prove(decode_encode)


# %% [markdown]
# `proved`, but not `confirmed`: z3 found a proof, cvc5 did not. One solver would be enough for a proof; two are better.
# Where is cvc5 stuck? Do the case of `Cons` on paper. We have to show
#
# `decode(push(x, encode(rest))) == Cons(x, rest)`, and may assume `decode(encode(rest)) == rest`.
#
# `push` wants to look at a list of runs, and `encode(rest)` could be any. So let us say what `push` does to *any* list of
# runs. That is almost always the way: **state a law about the inner function, for any argument**, and cite it.

# %%
@law(induct='runs')
def decode_push(x: int, runs: List[Run]):
    "Pushing a value puts it in front."
    return decode(push(x, runs)) == Cons(x, decode(runs))

@law(induct='xs', cite=[decode_push])
def decode_encode(xs: List[int]):
    "Nothing is lost."
    return decode(encode(xs)) == xs

prove(decode_encode)


# %% [markdown]
# For every list of integers, of any length: two solvers agree.
#
# ## Minute 7: it fails, because the proof needs a law
#
# Can a long list of runs be decoded in pieces?

# %%
@law(induct='xs')
def decode_append(xs: List[Run], ys: List[Run]):
    "Runs can be decoded in pieces."
    return decode(append(xs, ys)) == append(decode(xs), decode(ys))

prove(decode_append)

# %% [markdown]
# `open`: no proof, and no counterexample among more than a thousand pairs of lists, so it may well be true. On paper again,
# for `Cons(Of(x, n), rest)`. Both sides begin with `repeat(x, n)`, and with the hypothesis we get
#
# `append(repeat(x, n), append(decode(rest), decode(ys)))` on the left,
#
# `append(append(repeat(x, n), decode(rest)), decode(ys))` on the right.
#
# The brackets stand differently! That brackets do not matter is a law of [lists](19_lists.ipynb), which only has to be cited.

# %%
from bendml.lists import append_assoc

@law(induct='xs', cite=[append_assoc])
def decode_append(xs: List[Run], ys: List[Run]):
    "Runs can be decoded in pieces."
    return decode(append(xs, ys)) == append(decode(xs), decode(ys))

prove(decode_append)

# %% [markdown]
# ## Minute 9: keep it
#
# Put it into a file, as in [examples/run_length.py](https://github.com/bendml/bendml/blob/main/examples/run_length.py),
# and let your tests run
#
# ```
# $ bendml laws examples/run_length.py
# confirmed  run_length.decode_push  11 ms
# confirmed  run_length.decode_encode  12 ms
# confirmed  run_length.decode_append  14 ms
# ALL PROOFS CHECK: 3 laws, 6 obligations
# ```
#
# ## When it does not go through
#
# | it says | what to do |
# |---|---|
# | `refuted` | Look at the two sides it prints. The function is wrong, or the law is. |
# | `open`, a case of a constructor | Do that case on paper. Where you are stuck, state a law about the function you are stuck at, and cite it. |
# | `open`, and the hypothesis is about the wrong value | If another argument changes in the recursive call too, name it in `gen`. |
# | `open`, and the function looks at two elements at once | `depth=2`. |
# | `open` with cited laws that should do | Give the instance: `cite=[that_law.at(x='S(m)')]`, or say where it is to be used: `that_law.seen('f(x, y)')`. |
# | `open`, resource limit | Too much is unfolded. Name what the proof need not look into: `opaque=[f]`. |
# | `proved`, but not `confirmed` | The same as for `open`; or remind the solvers how a term can be made: `split=['f(x)']`. |
# | `vacuous` | Nothing we tried meets the asserts. Do they contradict each other? |
# | `stale` | You defined something again. Define what depends on it again too. |
# | `LawError` | Something is not understood. It says what, where, and what to write instead. |
#
# Some more words that laws and functions know:
#
# | write | for |
# |---|---|
# | `assert le(x, y)` in a law | what it assumes |
# | `return a == b == c` | a calculation, each step proved by itself |
# | `@pure(measure='hi - lo')` | recursion on a number that shrinks, instead of on a structure |
# | `@law(induct='n')`, `n: int` | induction along the integers; with `strong=True` along any integer expression |
# | `Fraction`, `Array[int, int]`, `select`, `store` | exact fractions, and arrays that do not change |
# | `@abstract`, `@axiom` | functions of which only some laws are known |
#
# ## What this does not show
#
# Most functions in Python are not pure, and bendml does not read them: no loops, no floats, no lists of Python's own.
# Write the core of what you want to be sure of as a pure function, prove its laws, and compare the fast version with it in a test.
