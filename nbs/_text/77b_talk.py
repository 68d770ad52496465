# %%
#| default_exp talk

# %% [markdown]
# # Talking
# > `bendml chat`: a model in a terminal, and what a chat is.

# %% [markdown]
# A chat is a text like any other, with marks for who speaks. The model was trained on texts with such marks and goes on
# after the last one. There is no more to it: each turn, the text grows, and the model writes its part.

# %%
#| hide
#| export
from typing import NamedTuple

import click

from bendml.checks import ContextError
from bendml.generate import Model, Sampling, Text, generate, load_model, open_model, options, show

# %% [markdown]
# ## Marks
#
# SmolLM2 and many others use *ChatML*: a special token, the speaker's name, a line break, what was said, a special token.
# Files bring a template along, a program in a language of its own, written by whoever made the file. We do not run it; we
# look whether the file has the marks of ChatML, and take from the template what a chat begins with if nobody says otherwise.

# %%
#| export
BEGIN, END = '<|im_start|>', '<|im_end|>'

class Turn(NamedTuple):
    "Something that was said."
    role: str   # system, user or assistant
    text: str

class ChatError(ValueError):
    "This model is not made for chats, or a chat is malformed."

def prompt(model: Model, turns: list[Turn]) -> list[int]:
    """The tokens of a chat, up to where the assistant speaks. Without a system's turn it begins with the model's own.
    Marks inside of what was said are ordinary text."""
    special = model.tokenizer.vocab.special
    if not {BEGIN, END} <= set(special): raise ChatError(f'{model.name} is not made for chats\n- expected : the tokens {BEGIN} and {END}\n- observed : {", ".join(special) or "none"}')
    plain = lambda text: model.tokenizer.encode(text, disallowed_special=())
    if model.system and not (turns and turns[0].role == 'system'): turns = [Turn('system', model.system), *turns]
    ids = []
    for role, text in turns:
        if role not in ('system', 'user', 'assistant'): raise ChatError(f'who speaks\n- expected : system, user or assistant\n- observed : {role!r}')
        ids += [special[BEGIN], *plain(f'{role}\n{text}'), special[END], *plain('\n')]
    return ids + [special[BEGIN], *plain('assistant\n')]


# %%
smol = load_model('smollm2')
smol.tokenizer.decode(prompt(smol, [Turn('user', 'What is gravity? <|im_end|>')]))


# %% [markdown]
# The mark inside of what the user said is ordinary text: it has become seven tokens, not the one that ends a turn.

# %%
#| export
def reply(model: Model, turns: list[Turn], new: int = 256, sampling: Sampling = Sampling()) -> Text:
    "What the assistant says next."
    return generate(model, prompt(model, turns), new, sampling)


# %%
answer = reply(smol, [Turn('user', 'What is gravity?')], new=40)
for piece in answer: print(piece, end='')
print('\n---', answer.reason)


# %% [markdown]
# Fluent, and with 135 million parameters not always true.

# %% [markdown]
# ## On the command line
#
#     bendml chat
#     bendml chat --temperature 0.7 --system "You answer in rhymes."

# %%
#| export
def heard() -> str:
    "What is typed; nothing at the end of the input."
    try: return click.prompt('you', default='', show_default=False)
    except click.Abort:
        click.echo()
        return ''

@click.command()
@click.option('--system', help="What the model is told first.  [default: what its file says]")
@click.option('-n', 'new', type=click.IntRange(1), default=512, show_default=True, help='How many tokens an answer may have.')
@options
def command(system, new, stats, **given):
    "Talk with a model; an empty line ends it."
    try:
        model, sampling = open_model(**given)
        turns = [Turn('system', system)] if system else []
        while said := heard():
            turns.append(Turn('user', said))
            text = reply(model, turns, new, sampling)
            show(text, stats)
            turns.append(Turn('assistant', text.text))
    except ContextError as e: raise click.ClickException(f'this chat is as long as {model.name} can read; begin a new one\n{e}') from None
    except (ValueError, OSError, FloatingPointError) as e: raise click.ClickException(str(e)) from None


# %%
from click.testing import CliRunner
print(CliRunner().invoke(command, ['-n', '40'], input='Say hello.\n\n').output)

# %% [markdown]
# ## What this does not show
#
# A chat is read again from its beginning at each turn; keeping the cache between turns would save that.
