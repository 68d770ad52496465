# %%
#| default_exp serve.protocol

# %% [markdown]
# # What a request may say
# > The requests of the OpenAI interface, checked field by field, and the answers that clients expect.

# %% [markdown]
# Many programs speak with language models through the interface that OpenAI made
# ([reference](https://platform.openai.com/docs/api-reference)): two addresses, `/v1/completions` and `/v1/chat/completions`, and
# JSON both ways. A server that speaks it can be used by all of them. What a request says comes from outside, so every field has
# a type and a range, and a field that we do not know, or that asks for something that we cannot do, is refused
# by its name. [pydantic](https://docs.pydantic.dev) does the checking.

# %%
#| hide
#| export
import secrets, time
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from bendml.generate import Model, Sampling, Text, generate
from bendml.talk import Turn, prompt as chat_prompt

# %% [markdown]
# ## Requests

# %%
#| export
NEUTRAL = {  # what we cannot do, and the values that do not ask for it
    'logprobs': (None, False), 'top_logprobs': (None, 0), 'echo': (None, False), 'best_of': (None, 1), 'suffix': (None, ''),
    'presence_penalty': (None, 0), 'frequency_penalty': (None, 0), 'logit_bias': (None, {}), 'tools': (None, []), 'tool_choice': (None, 'none', 'auto'),
    'response_format': (None, {'type': 'text'}), 'modalities': (None, ['text']), 'store': (None, False),
}
MOST = 32   # texts that one request may ask for

Stop = Annotated[str, Field(min_length=1, max_length=1000)]

class Options(BaseModel):
    "What both kinds of request may say."
    model_config = ConfigDict(extra='forbid', strict=True, allow_inf_nan=False)
    model: str
    n: Annotated[int, Field(ge=1, le=MOST)] | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None        # None: 1, as in the interface
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    top_k: Annotated[int, Field(ge=0, le=1 << 31)] | None = None          # an addition, as in llama.cpp and vLLM
    repetition_penalty: Annotated[float, Field(gt=0, le=100)] | None = None  # likewise
    seed: Annotated[int, Field(ge=-(1 << 63), lt=1 << 63)] | None = None  # None: another one each time
    stop: Stop | Annotated[list[Stop], Field(max_length=4)] | None = None
    stream: bool | None = None
    stream_options: dict[Literal['include_usage', 'include_obfuscation'], bool] | None = None
    user: str | None = None                                               # not used
    metadata: dict[str, str] | None = None                                # not used

    @model_validator(mode='before')
    @classmethod
    def _only_what_we_can(cls, asked):
        if not isinstance(asked, dict): return asked
        for name in NEUTRAL.keys() & asked.keys():
            if asked[name] not in NEUTRAL[name]: raise ValueError(f'{name} is not supported here; leave it out')
        return {name: value for name, value in asked.items() if name not in NEUTRAL}

    def sampling(self, index: int) -> Sampling:
        "How the choice of this number is drawn; the same seed gives the same choices."
        seed = secrets.randbits(62) if self.seed is None else self.seed
        given = dict(temperature=1. if self.temperature is None else self.temperature, top_p=self.top_p, top_k=self.top_k, repetition=self.repetition_penalty)
        return Sampling(**{k: v for k, v in given.items() if v is not None}, seed=(seed + index) % (1 << 63))


# %%
#| export
Tokens = Annotated[list[int], Field(min_length=1, max_length=1 << 20)]

class CompletionRequest(Options):
    "Write on from a text, or from several."
    prompt: str | Tokens | Annotated[list[str] | list[Tokens], Field(min_length=1, max_length=MOST)]

    def texts(self, model: Model) -> list[Text]:
        "The texts to write: `n` for each prompt."
        several = isinstance(self.prompt, list) and not isinstance(self.prompt[0], int)
        return _texts(model, self, list(self.prompt) if several else [self.prompt], 16)

class Part(BaseModel):
    "A part of what was said; only text is understood."
    model_config = ConfigDict(extra='forbid', strict=True)
    type: Literal['text']
    text: str

class Message(BaseModel):
    "Something that was said."
    model_config = ConfigDict(extra='forbid', strict=True)
    role: Literal['system', 'developer', 'user', 'assistant']
    content: str | list[Part]
    name: str | None = None   # not used
    refusal: None = None

    def turn(self) -> Turn:
        return Turn('system' if self.role == 'developer' else self.role, self.content if isinstance(self.content, str) else ''.join(p.text for p in self.content))

class ChatRequest(Options):
    "Say what comes next in a chat."
    messages: Annotated[list[Message], Field(min_length=1, max_length=10_000)]
    max_completion_tokens: Annotated[int, Field(ge=1)] | None = None   # the newer name

    def texts(self, model: Model) -> list[Text]:
        "The answers to write."
        return _texts(model, self, [chat_prompt(model, [m.turn() for m in self.messages])], self.max_completion_tokens)

def _texts(model: Model, asked: Options, prompts: list, usual: int | None) -> list[Text]:
    n = asked.n or 1
    if len(prompts)*n > MOST: raise ValueError(f'n\n- expected : at most {MOST} texts in one request\n- observed : {len(prompts)} prompts, {n} each')
    new = asked.max_tokens or usual or model.decoder.sizes.context
    return [generate(model, p, new, asked.sampling(i), asked.stop or ()) for p in prompts for i in range(n)]


# %%
CompletionRequest.model_validate_json('{"model": "smollm2", "prompt": "Hello", "max_tokens": 4, "logprobs": null}')


# %% [markdown]
# ## Refusals
#
# An error says which field, what was expected and what was seen, in the form that clients of this interface turn into an
# exception.

# %%
#| export
class Refusal(Exception):
    "An answer that says no."
    def __init__(self, status: int, message: str, param: str | None = None, code: str | None = None):
        super().__init__(message)
        self.status, self.param, self.code = status, param, code

    def body(self) -> dict:
        "As the interface has it."
        kind = 'invalid_request_error' if self.status < 500 and self.status != 429 else 'server_error' if self.status >= 500 else 'rate_limit_error'
        return {'error': {'message': str(self), 'type': kind, 'param': self.param, 'code': self.code}}

def parse(kind: type[Options], body: bytes) -> Options:
    "A request, or the `Refusal` that names its first fault."
    try: return kind.model_validate_json(body)
    except ValidationError as e: fault = e.errors(include_url=False)[0]
    param = '.'.join(str(at) for at in fault['loc']) or None
    seen = repr(fault['input'])
    expected = f'a {param}' if fault['type'] == 'missing' else fault['msg'].removeprefix('Value error, ')
    raise Refusal(400, f'{param or "the request"}\n- expected : {expected}\n- observed : {seen[:80]}{"…"*(len(seen) > 80)}', param)


# %%
for wrong in (b'{"model": "smollm2"}', b'{"model": "smollm2", "prompt": "Hi", "temperature": 9}', b'{"model": "smollm2", "prompt": "Hi", "colour": "red"}',
              b'{"model": "smollm2", "prompt": "Hi", "echo": true}', b'[1, 2', b'['*100_000):
    try: parse(CompletionRequest, wrong)
    except Refusal as e: print(e, '\n')

# %% [markdown]
# ## Answers

# %%
#| export
FINISH = {'end': 'stop', 'stop': 'stop', 'length': 'length', 'context': 'length'}   # why a text ended, in the interface's words

class Answer:
    "What is said in reply to one request, whole or in pieces."
    def __init__(self, model: str, chat: bool):
        self.chat, self.head = chat, {'id': ('chatcmpl-' if chat else 'cmpl-') + secrets.token_hex(12), 'created': int(time.time()), 'model': model}

    def _wrap(self, object: str, choices: list[dict], **more) -> dict:
        return {**self.head, 'object': object, 'choices': [{**c, 'logprobs': None} for c in choices], **more}

    def whole(self, texts: list[Text]) -> dict:
        "All texts, complete."
        content = lambda t: {'message': {'role': 'assistant', 'content': t.text, 'refusal': None}} if self.chat else {'text': t.text}
        choices = [{'index': i, **content(t), 'finish_reason': FINISH[t.reason]} for i, t in enumerate(texts)]
        return self._wrap('chat.completion' if self.chat else 'text_completion', choices, usage=usage(texts))

    def piece(self, index: int, text: str, first: bool = False) -> dict:
        "What one text grows by."
        content = {'delta': ({'role': 'assistant'} if first else {}) | {'content': text}} if self.chat else {'text': text}
        return self._chunk([{'index': index, **content, 'finish_reason': None}])

    def end(self, index: int, text: Text) -> dict:
        "Why one text ends."
        return self._chunk([{'index': index, **({'delta': {}} if self.chat else {'text': ''}), 'finish_reason': FINISH[text.reason]}])

    def usage(self, texts: list[Text]) -> dict:
        "The last piece, for those who ask for it."
        return self._chunk([], usage=usage(texts))

    def _chunk(self, choices: list[dict], **more) -> dict:
        return self._wrap('chat.completion.chunk' if self.chat else 'text_completion', choices, **more)

def usage(texts: list[Text]) -> dict:
    "Tokens read and written. Equal prompts count once."
    read = sum(len(prompt) for prompt in {tuple(t.prompt) for t in texts})
    wrote = sum(len(t.ids) for t in texts)
    return {'prompt_tokens': read, 'completion_tokens': wrote, 'total_tokens': read + wrote}


# %%
from bendml.generate import complete, load_model
smol = load_model('smollm2', context=512)
asked = parse(CompletionRequest, b'{"model": "smollm2", "prompt": "The capital of France is", "max_tokens": 3, "temperature": 0}')
texts = asked.texts(smol)
for text in texts: pieces = list(text)
answer = Answer('smollm2', chat=False).whole(texts)
answer['choices'], answer['usage']

# %% [markdown]
# ## What this does not show
#
# Scores of tokens (`logprobs`), tools and answers in a given format are not offered, and refused.
