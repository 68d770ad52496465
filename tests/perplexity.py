"""The perplexity of a fixed text, for tests/test_llama.py; and the figures of llama.cpp that are stored there.

    python tests/perplexity.py llama.cpp   # needs `pip install llama-cpp-python` (CMAKE_ARGS=-DGGML_NATIVE=ON), here or in the folder that LLAMA_CPP names
    python tests/perplexity.py rounded     # what rounding the inputs of products to 8 bits does, as llama.cpp does it
"""
import codecs, contextlib, io, os, sys, tempfile
from pathlib import Path
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))


def ids() -> list[int]:
    "The Zen of Python and this repository's licence, as SmolLM2's tokens."
    from bendml.data import fetch
    from bendml.tokenizer import Tokenizer
    with contextlib.redirect_stdout(io.StringIO()): import this
    text = codecs.decode(this.s, 'rot13') + '\n\n' + (Path(__file__).resolve().parent.parent/'LICENSE').read_text()
    return Tokenizer.load(fetch('smollm2')/FILE).encode(text, disallowed_special=())

FILE = 'SmolLM2-135M-Instruct.Q4_1.gguf'


def perplexity(scores: np.ndarray, ids) -> float:
    "The exponential of the mean surprise at each token, from the scores before it."
    s = scores[:-1].astype(np.float64)
    s -= s.max(1, keepdims=True)
    return float(np.exp(np.mean(np.log(np.exp(s).sum(1)) - s[np.arange(len(s)), ids[1:]])))


def unpacked(path: Path, out: Path) -> None:
    "The same model, its blocks unpacked to float32."
    import gguf
    old, new = gguf.GGUFReader(path), gguf.GGUFWriter(out, 'llama')
    for name, field in old.fields.items():
        if not name.startswith('GGUF.') and name != 'general.architecture':
            new.add_key_value(name, field.contents(), field.types[0], field.types[-1] if len(field.types) > 1 else None)
    for t in old.tensors: new.add_tensor(t.name, gguf.dequantize(t.data, t.tensor_type).astype(np.float32))
    new.write_header_to_file()
    new.write_kv_data_to_file()
    new.write_tensors_to_file()
    new.close()


def llama_cpp() -> None:
    sys.path.append(os.environ.get('LLAMA_CPP', '.'))
    import llama_cpp
    from bendml.data import fetch
    text, blocks = ids(), fetch('smollm2')/FILE
    print('llama-cpp-python', llama_cpp.__version__)
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder)/'unpacked.gguf'
        unpacked(blocks, plain)
        for name, path, kind, whole in (('float16 cache, at once', blocks, 1, True), ('float32 cache, at once', blocks, 0, True),
                                        ('float32 cache, token by token', blocks, 0, False), ('weights unpacked to float32', plain, 0, True)):
            peer = llama_cpp.Llama(str(path), n_ctx=512, n_threads=2, n_threads_batch=2, verbose=False, logits_all=True, type_k=kind, type_v=kind)
            for part in [text] if whole else [[i] for i in text]: peer.eval(part)
            print(f'{name}: {perplexity(np.array(peer.scores[:len(text)]), text):.5f}')


def eight_bits(x: np.ndarray) -> np.ndarray:
    "Each 32 numbers rounded to 127 steps of their largest, the step kept as a float16."
    blocks = x.reshape(-1, 32)
    step = np.abs(blocks).max(1, keepdims=True)/127
    whole = np.rint(blocks*np.where(step > 0, 1/np.where(step > 0, step, 1), 0).astype(np.float32))
    return (whole*step.astype(np.float16).astype(np.float32)).reshape(x.shape).astype(np.float32)


def rounded_scores(model, ids, rounded=eight_bits, kept=lambda a: a) -> np.ndarray:
    "The forward pass with the input of every product rounded, and with keys and values `kept`."
    from bendml.attention import attend, join_heads, split_heads
    from bendml.llama import rms_norm, silu
    from bendml.rope import angles, rotate_pairs
    c, x, r = model.config, model.tokens[ids], rounded
    turn = angles(len(ids), c.size, c.base)
    for b in model.blocks:
        h = r(rms_norm(x, b.norm1, c.eps))
        q, k, v = split_heads(h @ b.q.T, c.heads), split_heads(h @ b.k.T, c.shared), split_heads(h @ b.v.T, c.shared)
        x = x + r(join_heads(attend(rotate_pairs(q, *turn), kept(rotate_pairs(k, *turn)), kept(v)))) @ b.o.T
        h = r(rms_norm(x, b.norm2, c.eps))
        x = x + r(silu(h @ b.gate.T)*(h @ b.up.T)) @ b.down.T
    return r(rms_norm(x, model.norm, c.eps)) @ model.head.T


def rounded() -> None:
    from bendml.data import fetch
    from bendml.llama import forward, load_gguf
    model, text = load_gguf(fetch('smollm2')/FILE), ids()
    print(f'float32: {perplexity(forward(model, text), text):.5f}')
    for name, kept in (('float32', lambda a: a), ('float16', lambda a: a.astype(np.float16).astype(np.float32))):
        print(f'inputs of 8 bits, {name} cache: {perplexity(rounded_scores(model, text, kept=kept), text):.5f}')


if __name__ == '__main__': {'llama.cpp': llama_cpp, 'rounded': rounded}[sys.argv[1]]()
