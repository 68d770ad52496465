# %%
#| default_exp tokenizer.commands

# %% [markdown]
# # Tokenizing on the command line
# > `bendml tokenize`, `bendml detokenize`, `bendml train-tokenizer`: files and pipes.

# %% [markdown]
#     echo "Hello world" | bendml tokenize --show
#     bendml tokenize book.txt | bendml detokenize
#     bendml train-tokenizer *.txt --vocab-size 5000 --out tokenizer.json

# %%
#| hide
#| export
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from bendml.data import fetch
from bendml.tokenizer import TokenError, Tokenizer


# %%
#| export
def _load(name: str, pattern: str) -> Tokenizer:
    "The tokenizer that a command names."
    try: return Tokenizer.load(fetch('gpt2-bpe') if name == 'gpt2' else name, pattern=None if pattern == 'none' else pattern)
    except FileNotFoundError: raise click.ClickException(f'no such tokenizer\n- expected : gpt2, or a file\n- observed : {name}') from None
    except (OSError, ValueError) as e: raise click.ClickException(str(e)) from None

def _inputs(files: tuple[str, ...]) -> Iterator[bytes]:
    "What the files hold, or what comes on standard input."
    if not files: yield sys.stdin.buffer.read()
    for name in files: yield Path(name).read_bytes()

_files = click.argument('files', nargs=-1, type=click.Path(exists=True, dir_okay=False))
_which = click.option('--tokenizer', 'name', default='gpt2', show_default=True,
                      help='gpt2, or a file: tokenizer.json, .tiktoken, .gguf')
_cut = click.option('--pattern', default='', help='How words are cut: gpt2, smollm2, cl100k, o200k, or none. For .tiktoken files, which do not say it.')


# %%
#| export
@click.command()
@_files
@_which
@_cut
@click.option('--special', is_flag=True,
              help='Read special tokens in the text as such; otherwise they are ordinary text.')
@click.option('--show', is_flag=True, help='The text itself, a colour a token.')
@click.option('--count', is_flag=True, help='Only how many.')
def tokenize(files, name, pattern, special, show, count):
    "Turn text, FILES or standard input, into ids."
    tokenizer = _load(name, pattern)
    for data in _inputs(files):
        try:
            ids = tokenizer.encode(data, allowed_special='all' if special else (), disallowed_special=())
        except TokenError as e: raise click.ClickException(str(e)) from None
        click.echo(len(ids) if count else coloured(tokenizer, ids) if show else ' '.join(map(str, ids)))

COLOURS = 'bright_cyan', 'bright_yellow', 'bright_magenta', 'bright_green'

def coloured(tokenizer: Tokenizer, ids: list[int]) -> str:
    "The text of the ids, each in a colour of its own; a part of a character as its bytes."
    def text(i):
        data = tokenizer.decode_bytes([i])
        try:
            return ''.join(c if c.isprintable() or c in '\n\t' else repr(c)[1:-1] for c in data.decode())
        except UnicodeDecodeError: return data.hex(' ').join('<>')
    return ''.join(click.style(text(i), fg='black', bg=COLOURS[k % 4]) for k, i in enumerate(ids))


# %%
#| export
@click.command()
@_files
@_which
@_cut
def detokenize(files, name, pattern):
    "Turn ids, numbers in FILES or on standard input, back into text."
    tokenizer = _load(name, pattern)
    for data in _inputs(files):
        try: text = tokenizer.decode_bytes(map(_id, data.split()))
        except ValueError as e: raise click.ClickException(str(e)) from None
        sys.stdout.buffer.write(text)

def _id(word: bytes) -> int:
    if word.removeprefix(b'-').isdigit() and len(word) < 40: return int(word)
    raise TokenError('not an id', 'a whole number', repr(word.decode(errors='replace'))[:40])


# %%
#| export
@click.command()
@_files
@click.option('--vocab-size', required=True, type=int,
              help='256 bytes, the merges, and the special tokens.')
@click.option('--out', required=True, type=click.Path(),
              help='tokenizer.json, a .tiktoken file, or a folder for vocab.bpe and encoder.json.')
@click.option('--pattern', default='gpt2', show_default=True,
              help='gpt2, smollm2, cl100k, o200k, or none.')
@click.option('--special', 'special', multiple=True, help='A special token; may be given several times.')
def train_tokenizer(files, vocab_size, out, pattern, special):
    "Learn a tokenizer from FILES or standard input."
    texts = map(Path, files) if files else _inputs(())
    try:
        tokenizer = Tokenizer.train(texts, vocab_size, pattern=None if pattern == 'none' else pattern,
                                    special_tokens=special)
        tokenizer.save(out)
    except (OSError, ValueError) as e: raise click.ClickException(str(e)) from None
    click.echo(f'{out}: {tokenizer}', err=True)


# %%
from click.testing import CliRunner
out = CliRunner().invoke(tokenize, input=' How do you do?\n')
print(out.output, CliRunner().invoke(detokenize, input=out.output).output)

# %% [markdown]
# ## What this does not show
#
# `tokenize` reads a whole file before it writes. For files larger than memory there is `Tokenizer.encode_file`.
