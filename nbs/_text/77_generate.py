# %%
#| default_exp generate

# %% [markdown]
# # Writing
# > From scores to text: choosing a token, streaming whole characters, stopping for a reason.

# %% [markdown]
# A model gives a score for each token that could come next, and that is all it does. Everything else about writing is on
# this page: which token to take, when to stop, and how to show the text while it grows.

# %%
#| hide
#| export
import re, sys, time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import click
import numpy as np

from bendml import gpt2, llama
from bendml.checkpoint.files import open_weights, read_settings
from bendml.checkpoint.gguf import read_gguf
from bendml.checkpoint.weights import Weights
from bendml.checks import ContextError
from bendml.data import bundled, fetch
from bendml.decode import Decoder, of_gpt2, of_llama, open_gguf, read
from bendml.decode.matvec import read_speed
from bendml.decode.stored import FORMATS as IN_PLACE
from bendml.threads import set_threads
from bendml.tokenizer import Tokenizer
from bendml.turned import load_gpt2


# %% [markdown]
# ## Choosing
#
# **Greedy**: the token with the highest score, and of equals the first. Always the same text.
#
# Or draw one at random, each as likely as the softmax of its score says. A **temperature** divides the scores first: below one
# the likely become likelier, above one the unlikely do. **Top-k** leaves the k best, **top-p** the fewest that together
# have probability p; the others are never drawn. A **repetition penalty** above one makes tokens that are already there less
# likely: a positive score is divided by it, a negative one multiplied
# ([Keskar and others 2019](https://arxiv.org/abs/1909.05858)).

# %%
#| export
@dataclass(frozen=True)
class Sampling:
    "How to choose a token. As it is: greedy."
    temperature: float = 0.   # 0: greedy
    top_k: int = 0            # 0: all
    top_p: float = 1.         # 1: all
    repetition: float = 1.    # 1: no penalty
    seed: int = 0             # of the randomness

    def __post_init__(self):
        for name, low, high in (('temperature', 0, 100), ('top_k', 0, 1 << 31), ('top_p', 0, 1), ('repetition', 0, 100), ('seed', 0, 1 << 63)):
            if not low <= getattr(self, name) <= high or name in ('top_p', 'repetition') and not getattr(self, name):
                raise ValueError(f'sampling, {name}\n- expected : {"more than " if name in ("top_p", "repetition") else ""}{low} to {high}\n- observed : {getattr(self, name)}')

def probabilities(
    scores: np.ndarray,    # (V,) finite
    how: Sampling,
    seen=(),               # tokens that are already there
) -> np.ndarray:           # (V,) float64, adds up to 1
    "How likely each token is to be chosen."
    scores = scores.astype(np.float64)
    if not np.isfinite(scores).all(): raise FloatingPointError(f'scores\n- expected : numbers\n- observed : {scores[~np.isfinite(scores)][0]} for token {int(np.argmin(np.isfinite(scores)))}')
    if how.repetition != 1 and len(seen):
        again = np.unique(seen)
        scores[again] = np.where(scores[again] > 0, scores[again]/how.repetition, scores[again]*how.repetition)
    if how.temperature == 0: return (np.arange(len(scores)) == scores.argmax()).astype(np.float64)
    below = np.maximum(scores - scores.max(), -750*how.temperature)   # exp(-750) is 0 already, and a quotient may be too large
    p = np.exp(below/how.temperature)
    order = np.argsort(-p, kind='stable')
    if 0 < how.top_k < len(p): p[order[how.top_k:]] = 0
    before = np.cumsum(p[order]) - p[order]
    p[order[before >= how.top_p*p.sum()]] = 0
    return p/p.sum()

def choose(scores: np.ndarray, how: Sampling, rng: np.random.Generator, seen=()) -> int:
    "One token, greedily or at random."
    if how.temperature == 0 and how.repetition == 1 and np.isfinite(scores.max()) and np.isfinite(scores.min()): return int(scores.argmax())
    return int(np.searchsorted(np.cumsum(probabilities(scores, how, seen)), rng.random(), side='right').clip(0, len(scores) - 1))


# %%
scores = np.array([2., 1., 0., 2.])
for how in (Sampling(), Sampling(1), Sampling(0.5), Sampling(1, top_k=2), Sampling(1, top_p=0.8), Sampling(1, repetition=2)):
    print(f'{str(how).replace("Sampling", ""):82}', probabilities(scores, how, seen=[0]).round(3))

# %%
try: Sampling(top_p=1.5)
except ValueError as e: print(e)


# %% [markdown]
# ## A model and its tokenizer

# %%
#| export
@dataclass(frozen=True)
class Model:
    "A decoder, the tokenizer that it was trained with, the tokens that end a text, and what a chat begins with."
    name: str
    decoder: Decoder
    tokenizer: Tokenizer
    ends: frozenset[int] = frozenset()
    system: str = ''
    def __repr__(self): return f'Model({self.name}: {self.decoder})'

FORMATS = {'f32': 'F32', 'bf16': 'BF16', 'int8': 'Q8_0', 'q4': 'Q4_1'}

def load_model(
    name: str,                   # mini, smollm2, gpt2, or a path: a .gguf, a .safetensors of GPT-2, a folder with config.json
    dtype: str | None = None,    # f32, bf16, int8 or q4; None: as stored
    context: int | None = None,  # a shorter longest text
) -> Model:
    "A model to write with. The published ones are fetched if they are not there yet."
    if dtype is not None and dtype not in FORMATS: raise ValueError(f'dtype\n- expected : {", ".join(FORMATS)}\n- observed : {dtype}')
    known = {'mini': lambda: bundled('mini'), 'smollm2': lambda: fetch('smollm2')/'SmolLM2-135M-Instruct.Q4_1.gguf', 'gpt2': lambda: fetch('gpt2')/'model.safetensors'}
    path = known[name]() if name in known else Path(name)
    if not path.exists(): raise FileNotFoundError(f'no model\n- expected : {", ".join(known)} or a file\n- observed : {name}')
    if path.is_dir(): return _load_folder(path, dtype, context)
    if path.suffix == '.safetensors':
        tokenizer = Tokenizer.gpt2()
        return Model(name, of_gpt2(load_gpt2(path), FORMATS[dtype or 'f32'], context), tokenizer, frozenset(tokenizer.vocab.special.values()))
    weights = read_gguf(path)
    decoder, tokenizer, settings = gguf_decoder(weights, dtype, context), Tokenizer.load(path), weights.metadata
    ends = {int(settings[key]) for key in ('tokenizer.ggml.eos_token_id', 'tokenizer.ggml.eot_token_id') if key in settings}
    ends |= {i for t, i in tokenizer.vocab.special.items() if t in ('<|im_end|>', '<|endoftext|>')}
    system = re.search(r'<\|im_start\|>system\n([^<{]+)<\|im_end\|>', str(settings.get('tokenizer.chat_template', '')))
    return Model(name, decoder, tokenizer, frozenset(ends), system[1] if system else '')

def gguf_decoder(weights: Weights, dtype: str | None = None, context: int | None = None) -> Decoder:
    "A decoder for a GGUF file: on its own bytes where they can be multiplied in place, else (F16, Q4_K, Q6_K and others) unpacked."
    in_place = {t.dtype for t in weights.stored.values() if len(t.shape) == 2} <= set(IN_PLACE)
    return open_gguf(weights, context) if dtype is None and in_place else of_llama(llama.load_gguf(weights), FORMATS[dtype or 'f32'], context)

def _load_folder(path: Path, dtype: str | None, context: int | None) -> Model:
    "A folder as Hugging Face's: config.json, tensors in one file or several, tokenizer.json."
    settings, tokenizer, format = read_settings(path/'config.json'), Tokenizer.load(path), FORMATS[dtype or 'f32']
    if settings.get('model_type') == 'gpt2': decoder = of_gpt2(load_gpt2(path, gpt2.hf_config(settings)), format, context)
    else:
        weights, config = open_weights(path), llama.hf_config(settings)
        decoder = of_llama(llama.from_tensors({name: weights.float32(name) for name in weights}, config), format, context)
    return Model(path.name, decoder, tokenizer, frozenset(tokenizer.vocab.special.values()))


# %%
smol = load_model('smollm2')
smol


# %% [markdown]
# ## Whole characters, and nothing of a stop string
#
# A token may be half a character, and a stop string may arrive in pieces. So text is shown as soon as it is certain: when
# its characters are complete, and when its end cannot be the beginning of a stop string.

# %%
#| export
class Stream:
    "Text from tokens, as soon as it is certain."
    def __init__(self, tokenizer: Tokenizer, stops: tuple[str, ...] = ()):
        self.decoder, self.stops, self.held, self.stopped = tokenizer.stream_decoder(), stops, '', False

    def feed(self, id: int) -> str:
        "What is certain now. After a stop string, `stopped` is true."
        return self._certain(self.decoder.feed(id))

    def finish(self) -> str:
        "All that was held back."
        if self.stopped: return ''
        out, self.held = self._certain(self.decoder.finish()) + self.held, ''
        return out

    def _certain(self, new: str) -> str:
        text = self.held + new
        found = [at for stop in self.stops if (at := text.find(stop)) >= 0]
        if found and not self.stopped:
            self.stopped, self.held = True, ''
            return text[:min(found)]
        keep = max((n for stop in self.stops for n in range(1, len(stop)) if text.endswith(stop[:n])), default=0)
        self.held = text[len(text) - keep:]
        return text[:len(text) - keep]


# %%
stream = Stream(smol.tokenizer, stops=('\n\nEnd',))
print([stream.feed(i) for i in smol.tokenizer.encode('Go 👍\n\nand on\n\nEnd of it')], stream.stopped)


# %% [markdown]
# ## Writing
#
# A text ends for one of four reasons, and says which: the model wrote a token that means *end*, a *stop* string came, the
# *length* that was asked for is reached, or the *context* is full. The last is no error; the text is as long as the model can
# read. A prompt that is longer than that is refused.

# %%
#| export
@dataclass(frozen=True)
class Stats:
    "How long it took."
    prompt: int       # tokens read
    read: float       # seconds
    new: int          # tokens written
    wrote: float      # seconds, from the second one on
    bytes: int        # of weights, read for each token

    @property
    def speed(self) -> float:
        "Tokens a second."
        return (self.new - 1)/self.wrote if self.new > 1 and self.wrote else 0.
    def __str__(self):
        return f'{self.prompt} tokens read in {self.read:.2f} s, {self.new} written, {self.speed:.1f} a second, {self.speed*self.bytes/1e9:.1f} GB/s of weights'

class Text:
    "A text that is being written: iterate over it for the pieces."
    def __init__(self, model: Model, ids, new: int, how: Sampling, stops: tuple[str, ...]):
        self.model, self.prompt, self.new, self.how = model, model.decoder.check(ids).tolist(), new, how
        if new < 1: raise ValueError(f'how many tokens to write\n- expected : at least 1\n- observed : {new}')
        self.ids, self.text, self.reason, self.stats, self.cache = [], '', None, None, None
        self.stream, self.rng = Stream(model.tokenizer, stops), np.random.default_rng(how.seed)

    def __iter__(self) -> Iterator[str]:
        while not self.reason:
            if piece := self.take(self.scores()): yield piece

    def scores(self) -> np.ndarray:
        "Scores for the next token; the array is used again."
        d, self.cache = self.model.decoder, self.cache or self.model.decoder.cache()
        if self.cache.length: return d.step(self.cache, self.ids[-1])
        self.begin = time.perf_counter()
        return read(d, self.cache, self.prompt + self.ids)

    def take(self, scores: np.ndarray) -> str:
        "Choose the next token by its scores: the text that is certain now. `reason` says whether that was the end."
        if not self.ids: self.first = time.perf_counter()
        id = choose(scores, self.how, self.rng, self.prompt + self.ids)
        if id in self.model.ends: piece, self.reason = '', 'end'
        else:
            self.ids.append(id)
            piece, full = self.stream.feed(id), len(self.prompt) + len(self.ids) >= self.model.decoder.sizes.context
            self.reason = 'stop' if self.stream.stopped else 'length' if len(self.ids) == self.new else 'context' if full else None
        if self.reason:
            piece += self.stream.finish()
            self.stats = Stats(len(self.prompt), self.first - self.begin, len(self.ids), time.perf_counter() - self.first, self.model.decoder.bytes)
        self.text += piece
        return piece


# %%
#| export
def generate(
    model: Model,
    prompt: str | list[int],        # text or tokens
    new: int = 32,                  # how many tokens to write, at most
    sampling: Sampling = Sampling(),
    stop: str | Iterable[str] = (), # where to stop; the stop string itself is not part of the text
    special: bool = False,          # are special tokens in the prompt read as such?
) -> Text:
    "Write on from a prompt. Nothing happens until you iterate over it; `ContextError` if the prompt is too long."
    stops = (stop,) if isinstance(stop, str) else tuple(stop)
    if '' in stops: raise ValueError('a stop string\n- expected : at least one character\n- observed : none')
    ids = model.tokenizer.encode(prompt, allowed_special='all' if special else (), disallowed_special=()) if isinstance(prompt, str) else prompt
    return Text(model, ids, new, sampling, stops)

def complete(model: Model, prompt: str | list[int], new: int = 32, sampling: Sampling = Sampling(), stop: str | Iterable[str] = (), special: bool = False) -> Text:
    "Write on from a prompt, to the end."
    text = generate(model, prompt, new, sampling, stop, special)
    for _ in text: pass
    return text


# %%
text = complete(smol, 'The capital of France is', new=24)
print(text.text, text.reason, text.ids[:5], sep=' | ')

# %% [markdown]
# The same seed gives the same text, another seed another one:

# %%
for seed in (1, 1, 2):
    print(complete(smol, 'Once upon a time', 16, Sampling(temperature=0.8, top_p=0.95, seed=seed)).text)

# %%
text = complete(smol, 'One, two, three,', 40, stop='seven')
print(text.text, text.reason, sep=' | ')

# %% [markdown]
# When the context is full, it says so:

# %%
short = replace(smol, decoder=open_gguf(fetch('smollm2')/'SmolLM2-135M-Instruct.Q4_1.gguf', context=12))
text = complete(short, 'The capital of France is', 100)
print(len(text.prompt), len(text.ids), text.reason)
try: generate(short, 'word '*20)
except ContextError as e: print(e)


# %% [markdown]
# ## Several texts
#
# A batch of prompts: the texts have their caches [side by side](75g_batch.ipynb), and the weights are read once for a token of each. None
# knows of the others, so each is, token for token, what it would be alone.

# %%
#| export
class Room:
    "Caches for as many texts as are written side by side."
    def __init__(self, most: int): self.most, self.free = most, {}

    def enter(self, text: Text) -> None:
        "Give a text a cache, empty."
        d = text.model.decoder
        if d not in self.free: self.free[d] = d.caches(self.most)
        text.cache = self.free[d].pop()

    def leave(self, text: Text) -> None:
        "Take it back."
        text.cache.cut(0)
        self.free[text.model.decoder].append(text.cache)
        text.cache = None

def scores_of(texts: list[Text]) -> Iterator[tuple[Text, np.ndarray]]:
    "Scores for the next token of each text in a room: new ones read their prompts, the others take the step together. To be used one by one."
    begun = {}
    for text in texts:
        if text.cache.length: begun.setdefault(text.model.decoder, []).append(text)
        else: yield text, text.scores()
    for d, side in begun.items():
        if len(side) == 1: yield side[0], side[0].scores()
        else: yield from zip(side, d.step_all([t.cache for t in side], [t.ids[-1] for t in side]))


# %%
#| export
def together(
    texts: Iterable[Text],
    most: int = 8,           # at a time; the others wait
) -> Iterator[tuple[int, str]]:
    "Let texts grow side by side: the pieces as they come, each with the number of its text."
    room, waiting, growing = Room(most), [(text, n) for n, text in enumerate(texts) if not text.reason][::-1], {}
    while waiting or growing:
        while waiting and len(growing) < most:
            text, n = waiting.pop()
            room.enter(text)
            growing[text] = n
        for text, scores in scores_of(list(growing)):
            if piece := text.take(scores): yield growing[text], piece
        for text in [t for t in growing if t.reason]:
            room.leave(text)
            del growing[text]

def complete_all(model: Model, prompts: Iterable, new: int = 32, sampling: Sampling = Sampling(), stop: str | Iterable[str] = (), special: bool = False) -> list[Text]:
    "Write on from several prompts, to the end; each text is what `complete` gives for it alone."
    texts = [generate(model, prompt, new, sampling, stop, special) for prompt in prompts]
    for _ in together(texts): pass
    return texts


# %%
texts = [generate(smol, prompt, 5) for prompt in ('One, two,', 'The largest planet is')]
for n, piece in together(texts): print(n, repr(piece), end='  ')
assert [t.ids for t in texts] == [complete(smol, p, 5).ids for p in ('One, two,', 'The largest planet is')]


# %% [markdown]
# ## On the command line
#
#     bendml generate "The capital of France is" -n 32
#     bendml generate "Once upon a time" --temperature 0.8 --seed 3
#     bendml generate "def " --model mini

# %%
#| export
def options(command):
    "The options of a command that writes."
    for option in (
            click.option('--model', 'name', default='smollm2', show_default=True, help='mini (a toy that comes along), smollm2, gpt2, or a file: .gguf, .safetensors of GPT-2, a folder.'),
            click.option('--dtype', type=click.Choice(list(FORMATS)), help='Default: as stored.'),
            click.option('--threads', type=click.IntRange(1), help='Default: one a core.'),
            click.option('--temperature', type=float, default=0., show_default=True, help='0: always the most likely token.'),
            click.option('--top-k', type=int, default=0, help='Draw from the k most likely.'),
            click.option('--top-p', type=float, default=1., help='Draw from the fewest that have this probability.'),
            click.option('--repetition', type=float, default=1., help='Above 1: less of what is already there.'),
            click.option('--seed', type=int, default=0, show_default=True, help='Of the randomness.'),
            click.option('--stats', is_flag=True, help='How fast it was.')):
        command = option(command)
    return command

def open_model(name, dtype, threads, temperature, top_k, top_p, repetition, seed) -> tuple[Model, Sampling]:
    "The model and the sampling that a command was asked for."
    if threads: set_threads(threads)
    sampling = Sampling(temperature, top_k, top_p, repetition, seed)
    return load_model(name, dtype), sampling

def show(text: Text, stats: bool) -> None:
    "Print a text while it is written."
    for piece in text:
        sys.stdout.write(piece)
        sys.stdout.flush()
    click.echo()
    if text.reason == 'context': click.echo(f'(the context is full: {len(text.prompt)} tokens read, {len(text.ids)} written)', err=True)
    if stats: click.echo(f'{text.stats}, {text.stats.speed*text.stats.bytes/read_speed():.0%} of what memory gives', err=True)


# %%
#| export
@click.command()
@click.argument('text')
@click.option('-n', 'new', type=click.IntRange(1), default=32, show_default=True, help='How many tokens.')
@click.option('--stop', multiple=True, help='Stop before this text; may be given again.')
@options
def command(text, new, stop, stats, **given):
    "Write on from TEXT."
    if not text: raise click.ClickException('TEXT is empty; a model needs something to go on from')
    try:
        model, sampling = open_model(**given)
        click.echo(text, nl=False)
        show(generate(model, text, new, sampling, stop), stats)
    except (ValueError, OSError, FloatingPointError) as e: raise click.ClickException(str(e)) from None


# %%
from click.testing import CliRunner
print(CliRunner().invoke(command, ['The capital of France is', '-n', '12']).output)
print(CliRunner().invoke(command, ['Hello', '--model', 'no-such-file.gguf']).output)

# %% [markdown]
# ## What this does not show
#
# - Prompts of several texts are read one after the other.
# - That what is written is true.
