# %%
#| default_exp checkpoint.__init__

# %% [markdown]
# # Checkpoints
# > Everything that training needs to go on, in one file that is whole or not there.
