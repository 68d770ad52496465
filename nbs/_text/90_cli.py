# %%
#| default_exp cli

# %% [markdown]
# # Command line
# > `bendml COMMAND`: each command belongs to the module whose work it does.

# %% [markdown]
# The command `bendml mnist` is defined on the page about MNIST, `bendml data` on the page about data, and so on. This
# page only collects them, and imports a module when its command is called, so that `bendml --help` answers at once.

# %%
#| hide
#| export
from importlib import import_module

import click

# %%
#| export
COMMANDS = {  # name: (module, or module:function, what it does)
    'check': ('bendml.shape.check', 'Check the shapes of a file, for all sizes.'),
    'laws': ('bendml.laws.claims', 'Prove laws: those in files, or those of bendml.'),
    'verdict': ('bendml.laws.verdict', 'Check all proofs again, in a fresh process.'),
    'data': ('bendml.data', 'Fetch data sets, and check them.'),
    'kernels': ('bendml.kernel.command', 'Prove kernels safe for every size: a file of yours, or our own.'),
    'mnist': ('bendml.mnist', 'Train a network to read handwritten digits.'),
    'generate': ('bendml.generate', 'Write on from a text.'),
    'chat': ('bendml.talk', 'Talk with a model.'),
    'serve': ('bendml.serve', 'Offer a model to other programs, as the OpenAI interface does.'),
    'tokenize': ('bendml.tokenizer.commands:tokenize', 'Turn text into ids.'),
    'detokenize': ('bendml.tokenizer.commands:detokenize', 'Turn ids back into text.'),
    'train-tokenizer': ('bendml.tokenizer.commands:train_tokenizer', 'Learn a tokenizer from text.'),
}


# %%
#| export
def _find(where: str) -> click.Command:
    "The command of a module, or the one named behind the colon."
    module, _, name = where.partition(':')
    return getattr(import_module(module), name or 'command')

class _Lazy(click.Group):
    "A group of commands, each imported when it is called."
    def list_commands(self, ctx): return list(COMMANDS)
    def get_command(self, ctx, name): return _find(COMMANDS[name][0]) if name in COMMANDS else None
    def format_commands(self, ctx, formatter):
        with formatter.section('Commands'): formatter.write_dl([(name, about) for name, (_, about) in COMMANDS.items()])


# %%
#| export
@click.command(cls=_Lazy)
@click.version_option(package_name='bendml')
def main():
    "bendml: machine learning that is fast, readable and proved."


# %%
from click.testing import CliRunner
print(CliRunner().invoke(main, ['--help'], prog_name='bendml').output)
