# %%
#| default_exp tensor.__init__

# %% [markdown]
# # Tensors
# > What you import from `bendml.tensor`.

# %%
#| hide
#| export
from bendml.tensor.arrays import TensorError, fill, mat, of_list, vec, zeros
from bendml.tensor.gemm import matmul, matmul_nt, matmul_tn
from bendml.tensor.weights import matvec, to_bf16, to_i8
from bendml.tensor.four_bits import from_i4, matvec_i4, to_i4
from bendml.tensor.nonzeros import Sparse, sparse, sparse_matmul
from bendml.tensor.ops import OPS, Op
from bendml.tensor.rows import add_row, col_sums, cross_entropy, descend, hits, map_cells, relu, relu_back, zip_cells
_all_ = ['OPS', 'Op', 'Sparse', 'TensorError', 'add_row', 'col_sums', 'cross_entropy', 'descend', 'fill', 'from_i4', 'hits', 'map_cells', 'mat', 'matmul', 'matmul_nt',
         'matmul_tn', 'matvec', 'matvec_i4', 'of_list', 'relu', 'relu_back', 'sparse', 'sparse_matmul', 'to_bf16', 'to_i4', 'to_i8', 'vec', 'zeros', 'zip_cells']

# %% [markdown]
# Arrays: `mat`, `vec`, `of_list`, `zeros`, `fill` ([arrays](41_arrays.ipynb)). Products: `matmul`, `matmul_nt`, `matmul_tn`
# ([gemm](42_gemm.ipynb)), `matvec` with `to_bf16` and `to_i8` ([matvec](43_matvec.ipynb)), `matvec_i4` with `to_i4` and `from_i4`
# ([four bits](43c_four_bits.ipynb)), `sparse_matmul` with `sparse` ([zeros](44b_sparse.ipynb)). Row by row: `add_row`, `col_sums`, `relu`,
# `relu_back`, `map_cells`, `zip_cells`, `cross_entropy`, `hits`, `descend` ([rows](44_rows.ipynb)). What is wrong with an array
# is said by a `TensorError`. And the [table of operations](45_ops.ipynb), `OPS`.

# %%
x = mat([[1, 2], [3, 4]])
matmul(x, x), matvec(x, vec([1, -1]))
