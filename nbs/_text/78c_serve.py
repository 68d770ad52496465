# %%
#| default_exp serve.__init__

# %% [markdown]
# # A server
# > `bendml serve`: any program that speaks the OpenAI interface can use a model on this machine.

# %% [markdown]
# The [requests](78b_protocol.ipynb) are checked, the [texts](78_scheduler.ipynb) take turns; what is left is HTTP, and
# [Starlette](https://www.starlette.io) and [uvicorn](https://www.uvicorn.org) do that well. They come with
# `pip install 'bendml[serve]'`.
#
#     bendml serve --model smollm2 --port 8000
#
# A server is reached by strangers, even one on `127.0.0.1`: by any program on the machine, and by any page open in a
# browser. So there is a limit to everything: how large a request may be and how long it may take to arrive, how many texts wait,
# how long a reader may stand still. It answers to its own name only, and to `application/json` only, which no page
# of another site may send without asking first.

# %%
#| hide
#| export
import asyncio, contextlib, functools, json, logging, socket
from collections.abc import AsyncIterator

import click

from bendml.generate import FORMATS, Model, Text, load_model


# %% [markdown]
# ## From the thread that writes to the one that sends
#
# The thread that writes may not wait for a reader. It hands each piece over to the event loop of the server, and a text is
# never longer than the model's context, so what a slow reader leaves lying is bounded.

# %%
#| export
class Ticket:
    "The texts of one request, while they are written."
    def __init__(self, scheduler, texts: list[Text]):
        from bendml.serve.scheduler import Job
        self.scheduler, self.texts, self.events = scheduler, texts, asyncio.Queue()
        hand = functools.partial(asyncio.get_running_loop().call_soon_threadsafe, self.events.put_nowait)
        self.jobs = [Job(text, lambda piece, i=i: hand((i, piece))) for i, text in enumerate(texts)]
        scheduler.add(self.jobs)

    async def pieces(self) -> AsyncIterator[tuple[int, str | None]]:
        "(number of the text, piece), and (number, None) where one ends. The error of a text that failed is raised."
        for _ in self.jobs:
            while (event := await self.events.get())[1] is not None: yield event
            if error := self.jobs[event[0]].error: raise error
            yield event

    def cancel(self) -> None: self.scheduler.cancel(self.jobs)


# %% [markdown]
# ## Limits

# %%
#| export
BODY = 1 << 20    # bytes of a request
ARRIVE = 30       # seconds in which a request has to arrive
STALL = 60        # seconds that a reader may stand still
GONE = 499        # the status of an answer that nobody reads any more

async def read_body(request) -> bytes:
    "All of a request; a `Refusal` if it is no JSON, too long or too slow."
    from bendml.serve.protocol import Refusal
    kind = request.headers.get('content-type', '').partition(';')[0].strip().lower()
    if kind != 'application/json': raise Refusal(415, f'content type\n- expected : application/json\n- observed : {kind[:80] or "none"}')
    body = bytearray()
    try:
        async with asyncio.timeout(ARRIVE):
            async for part in request.stream():
                body += part
                if len(body) > BODY: raise Refusal(413, f'the request is too long\n- expected : at most {BODY} bytes\n- observed : more')
    except TimeoutError: raise Refusal(408, f'the request does not arrive\n- expected : all of it within {ARRIVE} s\n- observed : {len(body)} bytes') from None
    return bytes(body)

def patient(send):
    "Send, but give up on a reader that stands still."
    async def within(message):
        async with asyncio.timeout(STALL): await send(message)
    return within

async def gone(request) -> None:
    "Returns when the client has left."
    while (await request.receive())['type'] != 'http.disconnect': pass


# %% [markdown]
# ## The two addresses

# %%
#| export
def _line(data: dict | str) -> str: return f'data: {data if isinstance(data, str) else json.dumps(data)}\n\n'

async def _events(ticket: Ticket, answer, with_usage: bool) -> AsyncIterator[str]:
    "A reply, line by line, as server-sent events."
    from bendml.serve.protocol import Refusal
    begun = set()
    try:
        async for i, piece in ticket.pieces():
            if piece is None: yield _line(answer.end(i, ticket.texts[i]))
            else: yield _line(answer.piece(i, piece, first=i not in begun))
            begun.add(i)
        if with_usage: yield _line(answer.usage(ticket.texts))
    except Exception as e: yield _line(Refusal(500, f'{type(e).__name__}: {e}').body())
    yield _line('[DONE]')

async def _all(ticket: Ticket, request) -> bool:
    "Wait until all is written; false if the client has left before."
    async def written():
        async for _ in ticket.pieces(): pass
    tasks = [asyncio.create_task(written()), asyncio.create_task(gone(request))]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if tasks[0].done(): tasks[0].result()   # raises what went wrong
        return tasks[0].done()
    finally:
        for task in tasks: task.cancel()

async def reply(model: Model, scheduler, chat: bool, request):
    "Answer one request."
    from starlette.responses import JSONResponse, Response
    from bendml.serve.protocol import Answer, ChatRequest, CompletionRequest, Refusal, parse
    from bendml.serve.scheduler import Busy
    asked = parse(ChatRequest if chat else CompletionRequest, await read_body(request))
    if asked.model != model.name: raise Refusal(404, f'model\n- expected : {model.name}\n- observed : {asked.model[:80]}', 'model', 'model_not_found')
    try: ticket = Ticket(scheduler, asked.texts(model))
    except Busy as e: raise Refusal(429, f'{e}\n- hint     : try again in a moment') from None
    except ValueError as e: raise Refusal(400, str(e), 'messages' if chat else 'prompt', 'context_length_exceeded'*(type(e).__name__ == 'ContextError') or None) from None
    answer = Answer(model.name, chat)
    if asked.stream: return _stream_response(ticket, _events(ticket, answer, bool((asked.stream_options or {}).get('include_usage'))))
    try: return JSONResponse(answer.whole(ticket.texts)) if await _all(ticket, request) else Response(status_code=GONE)
    finally: ticket.cancel()

def _stream_response(ticket: Ticket, events):
    "A reply in pieces. However it ends, the ticket is given back."
    from starlette.responses import StreamingResponse
    class Stream(StreamingResponse):
        async def __call__(self, scope, receive, send):
            try: await super().__call__(scope, receive, patient(send))
            except TimeoutError: pass   # the reader stood still; the connection is closed
            finally: ticket.cancel()
    return Stream(events, media_type='text/event-stream', headers={'cache-control': 'no-cache'})


# %% [markdown]
# ## The application

# %%
#| export
def app(
    model: Model,
    parallel: int = 4,            # texts that are written at the same time
    waiting: int = 256,           # texts that may wait
    threads: int | None = None,   # of the loops
    names: tuple[str, ...] = (),  # further host names that it answers to
):                                # an ASGI application (Starlette)
    "The OpenAI interface to one model: `/v1/models`, `/v1/completions`, `/v1/chat/completions`; and `/health`."
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.middleware import Middleware
    from starlette.middleware.trustedhost import TrustedHostMiddleware
    from starlette.requests import ClientDisconnect
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route
    from bendml.serve.protocol import Refusal
    from bendml.serve.scheduler import Scheduler
    scheduler = Scheduler(parallel, waiting, threads)
    card = {'id': model.name, 'object': 'model', 'created': 0, 'owned_by': 'bendml'}

    @contextlib.asynccontextmanager
    async def life(app):
        yield
        await asyncio.to_thread(scheduler.close)

    def refuse(request, e: Refusal): return JSONResponse(e.body(), e.status, headers={'retry-after': '1'} if e.status == 429 else None)
    def http(request, e: HTTPException): return refuse(request, Refusal(e.status_code, f'{request.method} {request.url.path}: {e.detail}'))
    def left(request, e: ClientDisconnect): return Response(status_code=GONE)
    def broken(request, e: Exception): return refuse(request, Refusal(500, 'something is wrong on our side'))
    async def models(request): return JSONResponse({'object': 'list', 'data': [card]})
    async def health(request): return JSONResponse({'status': 'ok', 'writing': len(scheduler.active), 'waiting': len(scheduler.row)})
    async def one(request):
        if request.path_params['name'] != model.name: raise Refusal(404, f'model\n- expected : {model.name}\n- observed : {request.path_params["name"][:80]}', 'model', 'model_not_found')
        return JSONResponse(card)
    async def completions(request): return await reply(model, scheduler, False, request)
    async def chat(request): return await reply(model, scheduler, True, request)
    return Starlette(
        routes=[Route('/v1/models', models), Route('/v1/models/{name:path}', one), Route('/health', health),
                Route('/v1/completions', completions, methods=['POST']), Route('/v1/chat/completions', chat, methods=['POST'])],
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=['localhost', '127.0.0.1', '[::1]', *names])],
        exception_handlers={Refusal: refuse, HTTPException: http, ClientDisconnect: left, Exception: broken}, lifespan=life)


# %%
from starlette.testclient import TestClient
client = TestClient(app(load_model('smollm2', context=512)), base_url='http://localhost').__enter__()
asked = {'model': 'smollm2', 'messages': [{'role': 'user', 'content': 'Say hello.'}], 'max_tokens': 12, 'temperature': 0}
answer = client.post('/v1/chat/completions', json=asked).json()
answer['choices'], answer['usage']

# %% [markdown]
# The same in pieces, as they are written:

# %%
with client.stream('POST', '/v1/chat/completions', json=asked | {'stream': True}) as lines:
    for line in lines.iter_lines():
        if line: print(line[:20], '…', line[-80:])


# %% [markdown]
# What it refuses:

# %%
def said(response): print(response.status_code, response.json()['error']['message'], '\n')
said(client.post('/v1/completions', json={'model': 'gpt-4', 'prompt': 'Hello'}))
said(client.post('/v1/completions', json={'model': 'smollm2', 'prompt': 'word '*600}))
said(client.post('/v1/completions', content='{"model": "smollm2", "prompt": "Hello"}', headers={'content-type': 'text/plain'}))
said(client.post('/v1/completions', content=b' '*(BODY + 1), headers={'content-type': 'application/json'}))
said(client.get('/v1/secrets'))
print(client.get('/health', headers={'host': 'evil.example'}).text)
client.__exit__(None, None, None)


# %% [markdown]
# ## With a client
#
# The official client needs nothing but the address:
#
# ```python
# from openai import OpenAI
# client = OpenAI(base_url='http://127.0.0.1:8000/v1', api_key='none')
# for chunk in client.chat.completions.create(model='smollm2', stream=True, messages=[{'role': 'user', 'content': 'Hello!'}]):
#     print(chunk.choices[0].delta.content or '', end='')
# ```
#
# And so does `curl`:
#
#     curl http://127.0.0.1:8000/v1/completions -H 'Content-Type: application/json' \
#          -d '{"model": "smollm2", "prompt": "The capital of France is", "max_tokens": 12}'

# %% [markdown]
# ## On the command line

# %%
#| export
@click.command()
@click.option('--model', 'name', default='smollm2', show_default=True, help='As for `bendml generate`.')
@click.option('--dtype', type=click.Choice(list(FORMATS)), help='Default: as stored.')
@click.option('--threads', type=click.IntRange(1), help='Default: one a core.')
@click.option('--context', type=click.IntRange(1), default=2048, show_default=True, help='The longest text, if the model does not set a lower limit.')
@click.option('--parallel', type=click.IntRange(1), default=4, show_default=True, help='Texts that are written at the same time.')
@click.option('--waiting', type=click.IntRange(0), default=256, show_default=True, help='Texts that may wait for their turn.')
@click.option('--host', default='127.0.0.1', show_default=True, help='Where to listen. Another one than this opens the model to the network.')
@click.option('--port', type=click.IntRange(0, 65535), default=8000, show_default=True, help='0: any that is free.')
def command(name, dtype, threads, context, parallel, waiting, host, port):
    "Offer a model to other programs, as the OpenAI interface does."
    try:
        import uvicorn
        from bendml.serve import protocol  # noqa: F401 (pydantic)
        listener = socket.create_server((host, port))
        model = load_model(name, dtype, context)
        application = app(model, parallel, waiting, threads, (host,))
    except ImportError as e: raise click.ClickException(f"a package is missing: {e.name}\n- hint     : pip install 'bendml[serve]'") from None
    except OSError as e: raise click.ClickException(f'{host}:{port} or {name}: {e}') from None
    except ValueError as e: raise click.ClickException(str(e)) from None
    click.echo(f'{model.name} at http://{host}:{listener.getsockname()[1]}/v1 (Ctrl-C ends it)')
    logging.getLogger('asyncio').setLevel(logging.ERROR)   # that a client has left is no news
    config = uvicorn.Config(application, log_level='warning', limit_concurrency=2*(parallel + waiting) + 64, timeout_graceful_shutdown=5)
    with contextlib.suppress(KeyboardInterrupt): uvicorn.Server(config).run(sockets=[listener])

# %% [markdown]
# ## What this does not show
#
# - There is no key and no encryption. Whoever can reach the address can use the model; to offer it to a network, put a
#   server that does both in front of it.
# - A connection that sends its first line very slowly is kept until it is done; uvicorn bounds how many there are, not how long.
