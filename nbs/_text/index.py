# %% [markdown]
# # bendml
# > Machine learning in Python that is fast, readable and proved at once.

# %% [markdown]
# bendml is a library written as notebooks. Each page of this site is a component: its code, its tests, its proofs and its
# explanation are the same file, and what you read here is what runs.
#
# Three promises set it apart:
#
# - **[A shape error is refused](24_shape.ipynb) before anything runs**, for all sizes, in ordinary NumPy code.
# - **[The laws are proved.](17_laws.ipynb)** That [decoding gives back what was encoded](30_bpe.ipynb), that the
#   [reverse pass computes the derivative](50_derivatives.ipynb), that [writing with a cache](71_kvcache.ipynb) is the full
#   forward pass: each is a theorem about the function that is written there, found by z3 and confirmed by a second solver.
# - **[The kernels are proved](29b_kernel.ipynb)** to stay within their arrays and free of races, for every size.
#
# And it is fast: the aim is to be ahead of PyTorch, llama.cpp and tiktoken on the same processor, and to print the rows
# where it is not. Every claim stands in [one table](92_claims.ipynb), and [what is trusted](94_trust.ipynb) is said.

# %% [markdown]
# ## The first minutes
#
# You need Python 3.11 or later, and nothing else.
#
# ```sh
# git clone https://github.com/bendml/bendml
# cd bendml
# make demo
# ```
#
# That makes an environment, 1.7 GB on disk, which takes some minutes, and takes a short tour of two or three more: a program that is refused before it runs, some laws proved by two
# solvers, a sentence that a language model goes on with, and at the end a network that learns to read MNIST's
# handwritten digits. Its last line is like this one, which this page has just computed:

# %%
#| echo: false
from bendml.data import load_mnist
from bendml.mnist import init, train
digits = load_mnist()
for epoch, e in enumerate(train(init(seed=0), digits), 1): print(f'epoch {epoch}  loss {e.loss!s}  hits {e.hits}/10000')

# %% [markdown]
# After one look at 60,000 pictures the network reads that many of 10,000 that it has never seen. [MNIST](70_mnist.ipynb)
# tells how, from the first formula to the last bit.
#
# Then, in the same folder:
#
# | command | what it does |
# |---|---|
# | `make check` | every test, every proof, every page |
# | `make lab` | this site as notebooks in JupyterLab: change a number, run, see |
# | `make serve` | this site, on your machine |
# | `make bench` | the speeds, against PyTorch, llama.cpp and tiktoken |
#
# Or without the repository, `pip install .` and `bendml --help`.

# %% [markdown]
# ## Something of your own
#
# [Check the shapes of a script](24c_howto.ipynb), [prove a law about a function](17_laws.ipynb), [prove a
# kernel](29d_command.ipynb), [train a tokenizer](49_tokenizer.ipynb), [differentiate a function](51_gradients.ipynb),
# [build](63d_nn.ipynb) and [train](69_train.ipynb) a network, [let a model write](77_generate.ipynb), or
# [offer it to other programs](78c_serve.ipynb). Three short programs to begin with are in
# [examples](https://github.com/bendml/bendml/tree/main/examples).
#
# ## How to read it
#
# The pages are in the order in which they build on each other; each imports only from those before it. A page says why,
# then shows a definition of a few lines, then what holds of it, then runs it, and ends with what it does not show.
