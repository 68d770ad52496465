# %%
#| default_exp laws.__init__

# %% [markdown]
# # Laws
# > What you import, and how to prove a property of a function of your own.

# %%
#| hide
#| export
from bendml.laws.datatypes import A, Array, Cons, LawError, List, Nil, datatype, select, store, to_list
from bendml.laws.induct import Law
from bendml.laws.prove import Theorem, axiom, law, prove
from bendml.laws.reflect import abstract, pure
from bendml.laws.solvers import discharge
_all_ = ['A', 'Array', 'Cons', 'Law', 'LawError', 'List', 'Nil', 'Theorem', 'abstract', 'axiom', 'datatype', 'discharge', 'law', 'prove', 'pure', 'select', 'store', 'to_list']
