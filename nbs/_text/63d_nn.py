# %%
#| default_exp nn.__init__

# %% [markdown]
# # Networks
# > What you import to build one.

# %%
#| hide
#| export
from bendml.nn.conv import Conv2d, Conv2dFirst, MaxPool
from bendml.nn.layer import Add, Both, Fork, Grid, Id, Layer, LayerError, Mul, Residual, Seq, accumulate, leaves
from bendml.nn.layers import (GELU, Attend, Dropout, Embedding, GELUErf, LayerNorm, Linear, LinearFirst, LogSoftmax, Positions, ReLU, RMSNorm,
                              Sigmoid, SiLU, Softmax, Tanh, Tied, cross_entropy, mean_squared_error, self_attention, swiglu)
_all_ = ['Add', 'Attend', 'Both', 'Conv2d', 'Conv2dFirst', 'Dropout', 'Embedding', 'Fork', 'GELU', 'GELUErf', 'Grid', 'Id', 'Layer', 'LayerError', 'LayerNorm',
         'Linear', 'LinearFirst', 'LogSoftmax', 'MaxPool', 'Mul', 'Positions', 'RMSNorm', 'ReLU', 'Residual', 'Seq', 'SiLU', 'Sigmoid', 'Softmax', 'Tanh', 'Tied', 'accumulate', 'cross_entropy', 'leaves',
         'mean_squared_error', 'self_attention', 'swiglu']

# %%
from bendml import nn
net = nn.Seq(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
net, net.count

# %% [markdown]
# - [Elementary functions](60_elementary.ipynb), [rows](61_rows.ipynb) and [attention](62_attention.ipynb): the loops, forwards and backwards.
# - What makes a step fast: [room for results](60a_room.ipynb), [products](60c_products.ipynb), [sums of rows](60d_sums.ipynb), [attention in blocks](62b_blocks.ipynb).
# - [What a layer is](63_layer.ipynb); [linear maps and tables](63a_linear.ipynb), [the other layers](63b_layers.ipynb), [convolution](63bc_conv.ipynb).
# - [All gradient rules](63c_rules.ipynb), laws [of layers](67_layer_laws.ipynb), [of storing them](67a_stored_laws.ipynb),
#   [of rows](67b_row_laws.ipynb), [of rotary positions](67c_rope_laws.ipynb) and [of shards](67d_shard_laws.ipynb).
# - [Optimizers](68_optim.ipynb), [several processes](68b_processes.ipynb), and [training](69_train.ipynb).
