# %%
#| default_exp autograd.__init__

# %% [markdown]
# # Autograd
# > What you import to differentiate.

# %%
#| hide
#| export
from bendml.autograd.arrays import GradError, check_grad, grad, jvp, value_and_grad, vjp, with_gradient
_all_ = ['GradError', 'check_grad', 'grad', 'jvp', 'value_and_grad', 'vjp', 'with_gradient']

# %%
from bendml.autograd import grad
grad(lambda x: x**3)(2.)

# %% [markdown]
# - [Derivatives, forwards and backwards](50_derivatives.ipynb): the theorem that both ways agree.
# - [Operations and their gradients](50b_operations.ipynb): the rule of each function of NumPy.
# - [Gradients of array functions](51_gradients.ipynb): `grad` and its relatives, for functions in NumPy.
# - [Gradient rules](52_symbols.ipynb): hand-written backward passes, proved against their forward passes.
