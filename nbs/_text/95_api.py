# %%
#| default_exp __init__

# %% [markdown]
# # Everything bendml promises
# > The names that you can import from `bendml`; all else may change.

# %% [markdown]
# `import bendml` is as light as importing NumPy: a name's module is imported when the name is first used.
#
# Networks are built from `bendml.nn` and trained with `bendml.optim` and `bendml.train`, loops are proved with `bendml.kernel`;
# `from bendml.kernel import kernel` is the decorator, `bendml.kernel` the module.

# %%
#| export
_HOME = {  # name: the module that it lives in
    'datatype': 'laws', 'law': 'laws', 'prove': 'laws', 'pure': 'laws',
    'Arr': 'shape', 'Dim': 'shape', 'Mat': 'shape', 'ShapeError': 'shape', 'Vec': 'shape', 'typed': 'shape',
    'Tokenizer': 'tokenizer',
    'check_grad': 'autograd', 'grad': 'autograd', 'value_and_grad': 'autograd',
    'open_weights': 'checkpoint', 'read_gguf': 'checkpoint', 'read_safetensors': 'checkpoint', 'write_safetensors': 'checkpoint',
    'Sampling': 'generate', 'complete': 'generate', 'load_model': 'generate',
    'fetch': 'data', 'read_idx': 'data',
    'get_threads': 'threads', 'set_threads': 'threads',
}
__all__ = list(_HOME)


# %%
#| export
def __getattr__(name: str):
    if name not in _HOME: raise AttributeError(f'module bendml has no attribute {name!r}; it has {", ".join(__all__)}')
    from importlib import import_module
    return getattr(import_module(f'bendml.{_HOME[name]}'), name)

def __dir__() -> list[str]: return sorted(__all__) + ['__version__']


# %%
#| echo: false
#| output: asis
import bendml
for name in bendml.__all__:
    print(f'- `bendml.{name}`: {getattr(bendml, name).__doc__.splitlines()[0]}')
