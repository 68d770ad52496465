"The server as other programs see it: a process of its own, the official client, a crowd of clients, and broken requests."
import asyncio, json, re, socket, subprocess, sys, threading, time
from pathlib import Path
import numpy as np, openai, pytest
from hypothesis import given, settings, strategies as st
from starlette.testclient import TestClient
from bendml import gpt2
from bendml.checkpoint.safetensors import write_safetensors
from bendml.decode import of_gpt2
from bendml.generate import Model, complete, generate, load_model
from bendml.serve import BODY, app
from bendml.serve.protocol import MOST, ChatRequest, CompletionRequest, Refusal, parse
from bendml.serve.scheduler import Busy, Job, Scheduler
from bendml.talk import Turn, reply
from bendml.tokenizer import Tokenizer


def tiny(context=64):
    "A random GPT-2 whose 256 tokens are the bytes, and a 257th that ends a text."
    model = gpt2.init(gpt2.Config(1, 1, 64, vocab=257, context=context), seed=3)
    return Model('tiny', of_gpt2(model), Tokenizer.train(b'', 257, pattern=None, special_tokens=['<|end|>']), frozenset([256]))


class Served:
    "A server in a process of its own."
    def __init__(self, *options):
        self.process = subprocess.Popen([sys.executable, '-W', 'ignore', '-c', 'from bendml.serve import command; command()', '--port', '0', *options],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.url = re.search(r'http://\S+/v1', self.process.stdout.readline())[0]
        self.port = int(re.search(r':(\d+)/', self.url)[1])
    def memory(self) -> int: return int(re.search(r'VmRSS:\s+(\d+)', Path(f'/proc/{self.process.pid}/status').read_text())[1])*1024
    def end(self) -> tuple[int, str]:
        self.process.send_signal(2)
        return self.process.wait(30), self.process.stderr.read()


# --- the official client

@pytest.fixture(scope='module')
def smol():
    served = Served('--context', '256')
    yield served
    code, said = served.end()
    assert (code, said) == (0, '')


@pytest.mark.slow
def test_the_official_client(smol):
    client = openai.OpenAI(base_url=smol.url, api_key='none', max_retries=0)
    model = load_model('smollm2', context=256)
    assert [m.id for m in client.models.list()] == [client.models.retrieve('smollm2').id] == ['smollm2']

    asked = dict(model='smollm2', prompt='The capital of France is', max_tokens=8, temperature=0)
    whole, wanted = client.completions.create(**asked), complete(model, asked['prompt'], 8)
    assert whole.choices[0].text == wanted.text and whole.choices[0].finish_reason == 'length'
    assert whole.usage.prompt_tokens == len(wanted.prompt) and whole.usage.completion_tokens == 8
    pieces = list(client.completions.create(**asked, stream=True, stream_options={'include_usage': True}))
    assert ''.join(p.choices[0].text for p in pieces if p.choices) == wanted.text and pieces[-1].usage == whole.usage

    said = [{'role': 'user', 'content': [{'type': 'text', 'text': 'What is '}, {'type': 'text', 'text': 'gravity?'}]}]
    wanted = reply(model, [Turn('user', 'What is gravity?')], 12)
    for _ in wanted: pass
    chat = dict(model='smollm2', messages=said, max_completion_tokens=12, temperature=0)
    assert client.chat.completions.create(**chat).choices[0].message.content == wanted.text
    chunks = list(client.chat.completions.create(**chat, stream=True))
    assert chunks[0].choices[0].delta.role == 'assistant' and chunks[-1].choices[0].finish_reason == 'length'
    assert ''.join(c.choices[0].delta.content or '' for c in chunks) == wanted.text

    several = client.completions.create(model='smollm2', prompt=['One, two,', 'Monday,'], n=2, max_tokens=3, temperature=1, seed=5)
    assert [c.index for c in several.choices] == [0, 1, 2, 3]
    again = client.completions.create(model='smollm2', prompt=['One, two,', 'Monday,'], n=2, max_tokens=3, temperature=1, seed=5)
    assert [c.text for c in several.choices] == [c.text for c in again.choices]
    assert client.completions.create(**asked | {'stop': [' Paris']}).choices[0].finish_reason == 'stop'

    with pytest.raises(openai.NotFoundError, match='gpt-4'): client.completions.create(**asked | {'model': 'gpt-4'})
    with pytest.raises(openai.BadRequestError, match='temperature'): client.completions.create(**asked | {'temperature': 3})
    with pytest.raises(openai.BadRequestError, match='logprobs'): client.completions.create(**asked, logprobs=3)
    with pytest.raises(openai.BadRequestError, match='at most 256 tokens') as e: client.completions.create(**asked | {'prompt': 'word '*300})
    assert e.value.code == 'context_length_exceeded' and e.value.param == 'prompt'


@pytest.mark.slow
def test_a_port_in_use_and_a_missing_model_are_named(smol):
    for options, named in ((('--port', str(smol.port)), str(smol.port)), (('--port', '0', '--model', 'nothing.gguf'), 'nothing.gguf')):
        run = subprocess.run([sys.executable, '-W', 'ignore', '-c', 'from bendml.serve import command; command()', *options], capture_output=True, text=True, timeout=60)
        assert run.returncode == 1 and named in run.stderr and 'Traceback' not in run.stderr


# --- a crowd

@pytest.fixture(scope='module')
def small(tmp_path_factory):
    "A small random GPT-2 with the real vocabulary, served."
    path = tmp_path_factory.mktemp('served')/'model.safetensors'
    model = gpt2.init(gpt2.Config(1, 2, 64, context=128), seed=1)
    write_safetensors(path, {n: np.ascontiguousarray(a) for n, a in gpt2.to_tensors(model).items()})
    served = Served('--model', str(path), '--parallel', '4', '--waiting', '256')
    served.name = str(path)
    yield served
    code, said = served.end()
    assert (code, said) == (0, '')


async def crowd(served, n=200):
    "Clients at the same time: most read to the end, some leave after a few pieces, some read slowly. What each has seen."
    async def one(client, i):
        stream = await client.completions.create(model=served.name, prompt=f'Number {i}', max_tokens=12, temperature=0, stream=True)
        seen = []
        async for chunk in stream:
            seen.append(chunk.choices[0].finish_reason or chunk.choices[0].text)
            if i % 5 == 1 and len(seen) == 3: break               # leaves
            if i % 5 == 2: await asyncio.sleep(0.05)              # reads slowly
        await stream.close()
        return seen
    async with openai.AsyncOpenAI(base_url=served.url, api_key='none', max_retries=0, timeout=120) as client:
        return await asyncio.gather(*(one(client, i) for i in range(n)))


def health(served) -> dict:
    with socket.create_connection(('127.0.0.1', served.port)) as s:
        s.sendall(b'GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
        return json.loads(b''.join(iter(lambda: s.recv(4096), b'')).split(b'\r\n\r\n')[1])


@pytest.mark.slow
def test_two_hundred_at_the_same_time(small):
    rounds = []
    for _ in range(3):
        seen = asyncio.run(crowd(small))
        for i, pieces in enumerate(seen):
            assert len(pieces) == 3 if i % 5 == 1 else pieces[-1] in ('length', 'stop'), (i, pieces)
        deadline = time.time() + 20
        while (state := health(small)) != {'status': 'ok', 'writing': 0, 'waiting': 0}: assert time.time() < deadline, state
        rounds.append(small.memory())
    assert rounds[2] - rounds[1] < 8e6, [f'{m/1e6:.1f} MB' for m in rounds]   # the first round loads what is needed later


@pytest.mark.slow
def test_clients_that_vanish_or_never_finish_leave_no_trace(small):
    body = json.dumps({'model': small.name, 'prompt': 'Hello', 'max_tokens': 100, 'stream': True}).encode()
    head = b'POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n' % len(body)
    left = []
    for cut in (0, 10, len(head), len(head) + 5, len(head) + len(body)):
        for _ in range(8):
            s = socket.create_connection(('127.0.0.1', small.port))
            s.sendall((head + body)[:cut])
            left.append(s)
    time.sleep(0.3)
    for s in left:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b'\1\0\0\0\0\0\0\0')   # an abrupt end
        s.close()
    deadline = time.time() + 20
    while (state := health(small))['writing'] + state['waiting']: assert time.time() < deadline, state


# --- in this process

@pytest.fixture(scope='module')
def client():
    with TestClient(app(tiny(), parallel=2, waiting=2), base_url='http://localhost') as c: yield c


def test_broken_requests(client):
    post = lambda content, kind='application/json', path='/v1/completions': client.post(path, content=content, headers={'content-type': kind})
    for response, status, named in (
            (post(b''), 400, 'JSON'), (post(b'{'), 400, 'JSON'), (post(b'\xff'), 400, 'JSON'), (post(b'['*200_000), 400, 'recursion'), (post(b'null'), 400, 'object'),
            (post(b'{}'), 400, 'expected : a model'), (post(b'{}', 'text/plain'), 415, 'text/plain'), (post(b'{}', ''), 415, 'none'), (post(b' '*(BODY + 1)), 413, 'too long'),
            (post(b'{"model": "tiny", "prompt": "\\ud800"}'), 400, 'hex escape'), (post(b'{"model": "tiny", "prompt": ""}'), 400, 'at least one'),
            (post(b'{"model": "tiny", "prompt": [999]}'), 400, '999'), (post(b'{"model": "tiny", "prompt": [-1]}'), 400, '-1'),
            (post(b'{"model": "tiny", "prompt": "a", "max_tokens": 1e999}'), 400, 'max_tokens'), (post(b'{"model": "tiny", "prompt": "a", "temperature": NaN}'), 400, 'temperature'),
            (post(b'{"model": "tiny", "prompt": "a", "n": 33}'), 400, 'n'), (post(b'{"model": "tiny", "prompt": ["a", "b"], "n": 20}'), 400, str(MOST)),
            (post(b'{"model": "tiny", "messages": [{"role": "user", "content": "a"}]}', path='/v1/chat/completions'), 400, 'not made for chats'),
            (client.get('/v1/completions'), 405, 'GET'), (client.get('/nothing'), 404, '/nothing'), (client.get('/v1/models/../../etc'), 404, '')):
        error = response.json()['error']
        assert response.status_code == status and named.lower() in error['message'].lower() and error['type'] == 'invalid_request_error', (named, response.text)
    assert client.get('/health', headers={'host': 'evil.example'}).status_code == 400
    assert client.get('/health').json() == {'status': 'ok', 'writing': 0, 'waiting': 0}


def spoken(application, arriving: list[dict], send) -> None:
    "One request, spoken to the application without a network; after `arriving`, nothing more arrives."
    arriving = iter(arriving)
    async def receive(): return next(arriving, None) or await asyncio.Event().wait()
    scope = {'type': 'http', 'asgi': {'version': '3.0', 'spec_version': '2.3'}, 'http_version': '1.1', 'method': 'POST', 'scheme': 'http', 'path': '/v1/completions',
             'raw_path': b'/v1/completions', 'query_string': b'', 'headers': [(b'host', b'localhost'), (b'content-type', b'application/json')], 'client': ('127.0.0.1', 1), 'server': ('127.0.0.1', 1)}
    asyncio.run(asyncio.wait_for(application(scope, receive, send), 30))


def test_who_stands_still_is_dropped(monkeypatch):
    monkeypatch.setattr('bendml.serve.STALL', 0.2)
    monkeypatch.setattr('bendml.serve.ARRIVE', 0.2)
    application, sent = app(tiny(), parallel=1, waiting=0), []
    body = json.dumps({'model': 'tiny', 'prompt': 'a', 'max_tokens': 50, 'stream': True}).encode()
    async def stuck(message):
        sent.append(message)
        if message['type'] == 'http.response.body': await asyncio.Event().wait()
    spoken(application, [{'type': 'http.request', 'body': body, 'more_body': False}], stuck)
    assert [m['type'] for m in sent] == ['http.response.start', 'http.response.body']
    async def heard(message): sent.append(message)
    spoken(application, [{'type': 'http.request', 'body': body[:9], 'more_body': True}], heard)
    assert sent[2]['status'] == 408 and b'9 bytes' in sent[3]['body']
    spoken(application, [{'type': 'http.request', 'body': body, 'more_body': False}], heard)   # its place is free again
    assert sent[4]['status'] == 200 and sent[-2]['body'].endswith(b'[DONE]\n\n')


def test_a_full_row_is_refused(client):
    response = client.post('/v1/completions', json={'model': 'tiny', 'prompt': 'a', 'n': 5})
    assert response.status_code == 429 and response.headers['retry-after'] == '1' and response.json()['error']['type'] == 'rate_limit_error'


def test_a_failure_is_told_and_the_others_go_on():
    "One model's scores are no numbers from the third token on; a stream ends with the error, a whole reply is one, and the server lives."
    model, broken = tiny(), tiny()
    step, calls = broken.decoder.step, []
    def bad(cache, id):
        calls.append(1)
        return step(cache, id)*(np.nan if len(calls) > 2 else 1)
    broken.decoder.step = bad
    with TestClient(app(broken), base_url='http://localhost', raise_server_exceptions=False) as c:
        lines = c.post('/v1/completions', json={'model': 'tiny', 'prompt': 'Hello!', 'stream': True}).text
        assert 'FloatingPointError' in lines and lines.endswith('data: [DONE]\n\n')
        assert c.post('/v1/completions', json={'model': 'tiny', 'prompt': 'Hello!'}).status_code == 500
        assert c.get('/health').json()['writing'] == 0


@settings(max_examples=150, deadline=None)
@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5), lambda x: st.lists(x, max_size=3) | st.dictionaries(
    st.sampled_from(['model', 'prompt', 'messages', 'n', 'stop', 'stream', 'role', 'content', 'logprobs', 'type', 'text']), x, max_size=4), max_leaves=12))
def test_any_json_is_a_request_or_a_refusal(data):
    body = json.dumps(data).encode()
    for kind in (CompletionRequest, ChatRequest):
        try: assert isinstance(parse(kind, body), kind)
        except Refusal as e: assert e.status == 400 and len(str(e)) < 1000


def test_turns_give_what_each_text_is_alone():
    model, ended = tiny(), threading.Semaphore(0)
    wanted = [complete(model, f'text {i}', 10).text for i in range(7)]
    jobs = [Job(generate(model, f'text {i}', 10), lambda piece: piece is None and ended.release()) for i in range(7)]
    scheduler = Scheduler(3, 4)
    scheduler.add(jobs)
    for _ in jobs: assert ended.acquire(timeout=30)
    assert [j.text.text for j in jobs] == wanted
    scheduler.close()
    with pytest.raises(Busy, match='closed'): scheduler.add(jobs)


def test_closing_tells_those_who_wait():
    model, told = tiny(), []
    scheduler = Scheduler(1, 3)
    jobs = [Job(generate(model, 'a', 60), lambda piece, i=i: piece is None and told.append(i)) for i in range(4)]
    scheduler.add(jobs)
    scheduler.close()
    assert sorted(told) == [0, 1, 2, 3] and all(isinstance(j.error, RuntimeError) for j in jobs if j.text.reason is None)
