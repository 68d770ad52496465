# %%
#| default_exp lists

# %% [markdown]
# # Lists
# > The same dominoes, from the end of a list to its front.

# %% [markdown]
# A list is empty, or a head before a list. So a claim about all lists is proved like one about all numbers: it holds for
# the empty list, and it passes from each list to the list with one more thing in front.
#
# What is in a list does not matter to any law on this page but one. `A` stands for whatever it is, and the laws are proved
# once for all of them.

# %%
#| hide
#| export
from bendml.laws import A, Cons, List, Nil, law, prove, pure, to_list
from bendml.nat import Nat, S, Z, add, add_succ, add_zero, mul, mul_assoc, mul_one_left

# %%
to_list([3, 1, 2]), Cons(3, Cons(1, Nil()))


# %% [markdown]
# ## Putting lists together

# %%
#| export
@pure
def append(xs: List[A], ys: List[A]) -> List[A]:
    "xs ++ ys: first all of xs, then all of ys"
    match xs:
        case Nil(): return ys
        case Cons(x, rest): return Cons(x, append(rest, ys))


# %%
append(to_list([1, 2]), to_list([3]))


# %% [markdown]
# `append` walks down its first list, as `add` walks down its first number, and the laws are the same: nothing on the right
# changes nothing, and brackets do not matter.

# %%
#| export
@law(induct='xs')
def append_nil(xs: List[A]):
    "Nothing put behind a list changes nothing."
    return append(xs, Nil()) == xs

@law(induct='xs')
def append_assoc(xs: List[A], ys: List[A], zs: List[A]):
    "Brackets do not matter when lists are put together."
    return append(append(xs, ys), zs) == append(xs, append(ys, zs))


# %%
prove(append_assoc)


# %% [markdown]
# The third law of `add` has no twin. The order matters, and the smallest lists that show it have one element each:

# %%
@law(induct='xs')
def append_comm(xs: List[A], ys: List[A]): return append(xs, ys) == append(ys, xs)

prove(append_comm)


# %% [markdown]
# ## Lengths

# %%
#| export
@pure
def length(xs: List[A]) -> Nat:
    "How many elements a list has."
    match xs:
        case Nil(): return Z()
        case Cons(_, rest): return S(length(rest))

@law(induct='xs')
def length_append(xs: List[A], ys: List[A]):
    "The length of two lists put together is the sum of their lengths."
    return length(append(xs, ys)) == add(length(xs), length(ys))


# %% [markdown]
# ## Turning a list round

# %%
#| export
@pure
def reverse(xs: List[A]) -> List[A]:
    "The list from its end to its front."
    match xs:
        case Nil(): return Nil()
        case Cons(x, rest): return append(reverse(rest), Cons(x, Nil()))


# %%
reverse(to_list([1, 2, 3]))


# %% [markdown]
# Turned round twice, a list is what it was. Try to prove that directly, and the case of `Cons` asks what happens when
# two lists that were put together are turned round. A first guess:

# %%
@law(induct='xs', cite=[append_nil, append_assoc])
def reverse_append_guess(xs: List[A], ys: List[A]): return reverse(append(xs, ys)) == append(reverse(xs), reverse(ys))

prove(reverse_append_guess)


# %% [markdown]
# The two swap places, of course. A refutation is often the fastest way to the right statement.

# %%
#| export
@law(induct='xs', cite=[append_nil, append_assoc])
def reverse_append(xs: List[A], ys: List[A]):
    "Turning two lists round swaps them."
    return reverse(append(xs, ys)) == append(reverse(ys), reverse(xs))

@law(induct='xs', cite=[reverse_append])
def reverse_reverse(xs: List[A]):
    "Turned round twice, a list is what it was."
    return reverse(reverse(xs)) == xs

@law(induct='xs', cite=[length_append, add_succ, add_zero])
def length_reverse(xs: List[A]):
    "Turning a list round keeps its length."
    return length(reverse(xs)) == length(xs)


# %%
prove(reverse_reverse)


# %% [markdown]
# ## The shape of an array
#
# The shape of an array is a list of numbers, and their product is how many numbers it holds. Shapes can be put together;
# the sizes are then multiplied. This law stands behind `reshape` for any number of axes.

# %%
#| export
@pure
def product(ns: List[Nat]) -> Nat:
    "All numbers of a list multiplied; 1 for the empty list."
    match ns:
        case Nil(): return S(Z())
        case Cons(n, rest): return mul(n, product(rest))

@law(induct='ms', cite=[mul_assoc, mul_one_left])
def product_append(ms: List[Nat], ns: List[Nat]):
    "The product of two lists put together is the product of their products."
    return product(append(ms, ns)) == mul(product(ms), product(ns))


# %%
prove(product_append)

# %% [markdown]
# ## All of them

# %%
from bendml.laws import Law

for name, each in list(globals().items()):
    if isinstance(each, Law) and each.__doc__ and each.__module__ == __name__: print(f'{name:20} {prove(each).verdict:10} {each.__doc__}')

# %% [markdown]
# ## What this does not show
#
# These are lists of constructors inside each other, not Python's lists and not arrays. Where a law about them is to say
# something about an array, the page that needs it ties the two together.
