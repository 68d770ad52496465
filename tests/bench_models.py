"""Models: decoding and reading, alternating with PyTorch (and llama.cpp, where it is installed) in one run; loading.

    python tests/bench_models.py [gpt2|smollm2|prefill|side|load] [THREADS]

llama.cpp is compared with where its Python library is found, here or in the folder that LLAMA_CPP names:

    CMAKE_ARGS=-DGGML_NATIVE=ON pip install --no-deps --target DIR llama-cpp-python diskcache jinja2 markupsafe
    LLAMA_CPP=DIR python tests/bench_models.py smollm2
"""
import os, subprocess, sys, time
import numpy as np
from bench import alternate, report
TOKENS = 8   # a measurement


def shares(decoders: dict, seconds: dict, memory: float) -> None:
    "The weights that were read in a second, at best, and what share of the possible that is."
    for name, d in decoders.items():
        speed = TOKENS*d.bytes/min(seconds[name])
        print(f'  {name}: {d.bytes/1e6:.0f} MB a token, {speed/1e9:.1f} GB/s, {speed/memory:.0%} of what memory gives')


def gpt2(threads: int) -> None:
    "GPT-2 small with random weights: milliseconds a token at position 64 on, for each format."
    import torch
    import torch.nn.functional as F
    from bendml.decode import of_gpt2, read
    from bendml.gpt2 import SIZES, init
    from bendml.decode.matvec import read_speed
    model = init(SIZES['small'])
    ids = np.random.default_rng(0).integers(0, 50_257, 64 + TOKENS)
    def ours(format):
        d = of_gpt2(model, format)
        cache = d.cache()
        read(d, cache, ids[:64])
        def run():
            cache.cut(64)
            for i in ids[64:]: d.step(cache, i)
        return d, run
    decoders = {f: ours(f) for f in ('F32', 'BF16', 'Q8_0', 'Q4_1')}
    tensor = torch.from_numpy
    blocks = [[[tensor(np.ascontiguousarray(a)) for a in pair] for pair in b] for b in model.blocks]
    tokens, positions, last = tensor(model.tokens), tensor(model.positions), [tensor(a) for a in model.norm]
    keys, values = torch.zeros(12, 12, 128, 64), torch.zeros(12, 12, 128, 64)

    @torch.inference_mode()
    def step(i, pos):
        n = len(i)
        x = tokens[i] + positions[pos:pos + n]
        for l, (norm1, qkv, proj, norm2, up, down) in enumerate(blocks):
            q, keys[l, :, pos:pos + n], values[l, :, pos:pos + n] = F.linear(F.layer_norm(x, (768,), *norm1), *qkv).view(n, 3, 12, 64).permute(1, 2, 0, 3)
            a = F.scaled_dot_product_attention(q[None], keys[None, l, :, :pos + n], values[None, l, :, :pos + n], is_causal=n > 1)[0]
            x = x + F.linear(a.transpose(0, 1).reshape(n, 768), *proj)
            x = x + F.linear(F.gelu(F.linear(F.layer_norm(x, (768,), *norm2), *up), approximate='tanh'), *down)
        return F.linear(F.layer_norm(x[-1:], (768,), *last), tokens)[0]
    ids = torch.as_tensor(ids)
    theirs = step(ids[:64], 0)
    rows = {'PyTorch, float32, hand-written cache': lambda: [step(ids[64 + n:65 + n], 64 + n) for n in range(TOKENS)]}
    rows |= {f'bendml, {f}': run for f, (_, run) in decoders.items()}
    seconds, memory = alternate(rows), read_speed()
    report(f'GPT-2 small, {TOKENS} tokens, {threads} thread(s); memory gives {memory/1e9:.1f} GB/s', seconds, next(iter(rows)))
    shares({f'bendml, {f}': d for f, (d, _) in decoders.items()}, seconds, memory)
    own = {f: min(seconds[f'bendml, {f}']) for f in decoders}
    print('  against our own float32:', ', '.join(f'{f} {own["F32"]/own[f]:.2f}x' for f in decoders))


def smollm2(threads: int) -> None:
    "SmolLM2 on its 4-bit blocks, against llama.cpp where that is found."
    from bendml.data import fetch
    from bendml.decode import open_gguf, read
    from bendml.decode.matvec import read_speed
    path = fetch('smollm2')/'SmolLM2-135M-Instruct.Q4_1.gguf'
    d = open_gguf(path, context=512)
    cache, ids = d.cache(), list(range(100, 164 + TOKENS))
    read(d, cache, ids[:64])
    def ours():
        cache.cut(64)
        for i in ids[64:]: d.step(cache, i)
    rows = {'bendml, Q4_1': ours}
    if folder := os.environ.get('LLAMA_CPP'): sys.path.append(folder)
    try:
        import llama_cpp
        peer = llama_cpp.Llama(str(path), n_ctx=512, n_threads=threads, n_threads_batch=threads, verbose=False)
        peer.eval(ids[:64])
        def theirs():
            peer._ctx.kv_cache_seq_rm(0, 64, -1)
            for n, i in enumerate(ids[64:]):
                peer._batch.set_batch(batch=[i], n_past=64 + n, logits_all=False)
                peer._ctx.decode(peer._batch)
                llama_cpp.llama_get_logits(peer._ctx.ctx)
        rows['llama.cpp, llama_decode alone'] = theirs
    except ImportError: print('llama-cpp-python is not installed; without it')
    seconds, memory = alternate(rows, 15), read_speed()
    report(f'SmolLM2-135M, {TOKENS} tokens, {threads} thread(s); memory gives {memory/1e9:.1f} GB/s', seconds, list(rows)[-1])
    shares({'bendml, Q4_1': d}, seconds, memory)


def prefill(threads: int) -> None:
    "512 tokens at once."
    import torch
    import torch.nn.functional as F
    from bendml.data import fetch
    from bendml.decode import of_llama, open_gguf, read
    from bendml.llama import load_gguf
    path = fetch('smollm2')/'SmolLM2-135M-Instruct.Q4_1.gguf'
    d, model, ids = open_gguf(path, context=1024), load_gguf(path), np.random.default_rng(0).integers(0, 49_152, 512)
    c, tensor = model.config, torch.from_numpy
    blocks = [[tensor(a) for a in b] for b in model.blocks]
    tokens, last = tensor(model.tokens), tensor(model.norm)
    turn = torch.outer(torch.arange(512.), c.base**(-torch.arange(0, 64, 2)/64))
    cos, sin = torch.cos(turn), torch.sin(turn)
    rms = lambda x, gain: x*torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + c.eps)*gain
    def rope(x):
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.stack((a*cos - b*sin, a*sin + b*cos), -1).flatten(-2)

    @torch.inference_mode()
    def theirs():
        x = tokens[torch.as_tensor(ids)]
        for norm1, q, k, v, o, norm2, gate, up, down in blocks:
            h = rms(x, norm1)
            a, k, v = (F.linear(h, w).view(512, -1, 64).transpose(0, 1) for w in (q, k, v))
            a = F.scaled_dot_product_attention(rope(a)[None], rope(k)[None], v[None], is_causal=True, enable_gqa=True)[0]
            x = x + F.linear(a.transpose(0, 1).reshape(512, -1), o)
            h = rms(x, norm2)
            x = x + F.linear(F.silu(F.linear(h, gate))*F.linear(h, up), down)
        return F.linear(rms(x[-1:], last), tokens)[0].numpy()
    def ours(d):
        cache = d.cache()
        def run():
            cache.cut(0)
            return read(d, cache, ids)
        assert np.abs(run() - theirs()).max() < 1e-3*np.abs(theirs()).max()
        return run
    rows = {'PyTorch, float32': theirs, 'bendml, from 4-bit blocks': ours(d), 'bendml, float32': ours(of_llama(model, 'F32', 1024))}
    report(f'SmolLM2-135M, reading 512 tokens, {threads} thread(s)', alternate(rows, 5), 'PyTorch, float32')


LOAD = """
import time
begin = time.perf_counter()
from bendml.decode import open_gguf, read
from bendml.data import fetch
imported = time.perf_counter()
def memory(name): return next(int(line.split()[1]) for line in open('/proc/self/status') if line.startswith(name))/1024
def first_token():
    d = open_gguf(fetch('smollm2')/'SmolLM2-135M-Instruct.Q4_1.gguf', context=512)
    opened, grown, cache = time.perf_counter(), memory('VmRSS'), d.cache()
    read(d, cache, [504, 3575, 282, 4649, 314])
    return d, cache, opened, time.perf_counter(), grown
one, _, opened, done, _ = first_token()
before = memory('VmRSS')
_, cache, _, _, grown = two = first_token()
weights, takes, most, kept = one.net.w.nbytes/2**20, grown - before, memory('VmHWM') - before, 2*cache.keys.nbytes/2**20
print(f'  {done - begin:.2f} s to the first token: {imported - begin:.2f} imports, {opened - imported:.2f} weights, {done - opened:.2f} a prompt of 5;',
      f'{weights:.0f} MB of weights take {takes:.0f} MB of memory ({takes/weights:.0%}); with a cache of {kept:.0f} MB {most:.0f} at most')
"""


def load(threads: int) -> None:
    """In processes of their own: seconds to the first token, and what memory the model takes, which a second one of it shows; and the command,
    from its start to its end, with the tokenizer and the room for 8192 tokens. The first run may have to compile. Python keeps its modules compiled, as it
    does by itself."""
    print(f'SmolLM2-135M, loading, {threads} thread(s)')
    env = {k: v for k, v in os.environ.items() if k != 'PYTHONDONTWRITEBYTECODE'}
    for _ in range(4): subprocess.run([sys.executable, '-W', 'ignore', '-c', LOAD], check=True, env=env)
    command = [sys.executable, '-W', 'ignore', '-c', 'from bendml.cli import main; main()', 'generate', 'The capital of France is', '-n', '1', '--threads', str(threads)]
    for _ in range(3):
        begin = time.perf_counter()
        subprocess.run(command, check=True, env=env, capture_output=True)
        print(f'  {time.perf_counter() - begin:.2f} s for `bendml generate` with one token')


def side(threads: int) -> None:
    "Texts side by side: tokens a second of all of them, for 1, 2, 4 and 8 texts at position 32 on."
    from bendml.data import fetch
    from bendml.decode import of_gpt2, open_gguf, read
    from bendml.gpt2 import SIZES, init
    model, rows = init(SIZES['small']), {}
    decoders = {'SmolLM2, Q4_1': open_gguf(fetch('smollm2')/'SmolLM2-135M-Instruct.Q4_1.gguf', context=256)}
    decoders |= {f'GPT-2, {f}': of_gpt2(model, f) for f in ('F32', 'Q8_0')}
    def run(d, caches):
        for cache in caches: cache.cut(32)
        for _ in range(TOKENS):
            if len(caches) == 1: d.step(caches[0], 5)
            else: d.step_all(caches, [5]*len(caches))
    for name, d in decoders.items():
        for n in (1, 2, 4, 8):
            caches = d.caches(n)
            for cache in caches: read(d, cache, range(100, 132))
            rows[name, n] = lambda d=d, caches=caches: run(d, caches)
    seconds = alternate(rows, 5)
    print(f'texts side by side, {threads} thread(s): tokens a second')
    for name in decoders: print(f'  {name:14}', ', '.join(f'{n}: {n*TOKENS/min(seconds[name, n]):.0f}' for n in (1, 2, 4, 8)))


BENCHES = {'gpt2': gpt2, 'smollm2': smollm2, 'prefill': prefill, 'side': side, 'load': load}

if __name__ == '__main__':
    names, threads = [a for a in sys.argv[1:] if a in BENCHES] or list(BENCHES), [a for a in sys.argv[1:] if a.isdigit()]
    if 'BENCH_CHILD' in os.environ:
        from bendml.threads import set_threads
        set_threads(int(threads[0]))
        try:
            import torch
            torch.set_num_threads(int(threads[0]))
        except ImportError: pass
        BENCHES[names[0]](int(threads[0]))
    else:
        for name in names:
            for t in threads or ('1', '2'):
                env = {k: v for k, v in os.environ.items() if k not in ('OPENBLAS_CORETYPE', 'OPENBLAS_L2_SIZE')}
                env |= {'OPENBLAS_NUM_THREADS': t, 'OMP_NUM_THREADS': t, 'BENCH_CHILD': '1'}
                subprocess.run([sys.executable, '-W', 'ignore', __file__, name, t], env=env, check=True)
