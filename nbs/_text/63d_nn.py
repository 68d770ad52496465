# %%
#| default_exp nn.__init__

# %% [markdown]
# # Networks
# > What you import to build one.

# %%
#| hide
#| export
from bendml.nn.layer import Add, Both, Fork, Id, Layer, LayerError, Mul, Residual, Seq, accumulate, leaves
from bendml.nn.layers import (GELU, Attend, Dropout, Embedding, GELUErf, LayerNorm, Linear, LinearFirst, LogSoftmax, Positions, ReLU, RMSNorm,
                              Sigmoid, SiLU, Softmax, Tanh, cross_entropy, mean_squared_error, self_attention, swiglu)
_all_ = ['Add', 'Attend', 'Both', 'Dropout', 'Embedding', 'Fork', 'GELU', 'GELUErf', 'Id', 'Layer', 'LayerError', 'LayerNorm', 'Linear', 'LinearFirst',
         'LogSoftmax', 'Mul', 'Positions', 'RMSNorm', 'ReLU', 'Residual', 'Seq', 'SiLU', 'Sigmoid', 'Softmax', 'Tanh', 'accumulate', 'cross_entropy', 'leaves',
         'mean_squared_error', 'self_attention', 'swiglu']

# %%
from bendml import nn
net = nn.Seq(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
net, net.count

# %% [markdown]
# - [Elementary functions](60_elementary.ipynb), [rows](61_rows.ipynb) and [attention](62_attention.ipynb): the loops, forwards and backwards.
# - What makes a step fast: [room for results](60a_room.ipynb), [products](60c_products.ipynb), [attention in blocks](62b_blocks.ipynb).
# - [What a layer is](63_layer.ipynb), and [the layers](63b_layers.ipynb).
# - [All gradient rules](63c_rules.ipynb), [laws of layers](67_layer_laws.ipynb) and [of rows](67b_row_laws.ipynb).
# - [Optimizers](68_optim.ipynb), and [training](73_train.ipynb).
