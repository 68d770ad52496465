"Models from files: settings and pieces that lie, kept matrices that are not what they were, GGUF models in every format, and files with damage."
import json, os, random, struct, warnings
import numpy as np, pytest
from bendml import gpt2, llama
from bendml.checkpoint import CheckpointError, open_weights, read_gguf, read_safetensors, write_safetensors
from bendml.checkpoint.blocks import NUMBERS, TYPES
from bendml.checkpoint.files import read_settings
from bendml.checks import WeightsError
from bendml.decode import of_llama, open_gguf, read
from bendml.generate import gguf_decoder, load_model
from bendml.decode.stored import TensorError
from bendml.turned import kept_at, load_gpt2, turned
from hostile import bounded, damaged, small_gguf, string


# ---- settings

def settings(folder, text):
    (folder/'config.json').write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_settings(folder/'config.json')

@pytest.mark.parametrize('value', [{}, {'a': 1, 'b': -2.5e-3, 'c': 'ä"\\\n', 'd': None, 'e': [True, [], {}, [1, 'x']], 'f': {'g': {'h': [0]}}}])
def test_settings_are_what_json_says(tmp_path, value):
    for text in (json.dumps(value), json.dumps(value, indent=2), json.dumps(value, ensure_ascii=False)): assert settings(tmp_path, text) == value

@pytest.mark.parametrize('text', ['', '{', '[1]', '{"a": }', '{"a": 1,}', '{"a": [1,]}', '{"a": [1 2]}', '{"a": 1} x', '{"a": 1, "a": 2}', '{"a": {"b": 1, "b": 1}}', "{'a': 1}",
                                  '{"a": 01}', '{"a": ' + '9'*5000 + '}', '[' * 500_000, '{"a":' * 100_000, '{"a": ' + '['*9 + ']'*9 + '}', b'{"a": "\xff"}'])
def test_bad_settings_are_refused(tmp_path, text):
    with pytest.raises(CheckpointError): settings(tmp_path, text)

def test_settings_without_end_are_refused(tmp_path):
    with pytest.raises(CheckpointError, match='too large'): settings(tmp_path, '{"a": "' + 'x'*1_000_000 + '"}')


# ---- a folder

C = gpt2.Config(2, 2, 128, vocab=60, context=16)
HF = {'model_type': 'gpt2', 'n_layer': 2, 'n_head': 2, 'n_embd': 128, 'vocab_size': 60, 'n_positions': 16}

def published(): return {n: np.ascontiguousarray(a) for n, a in gpt2.to_tensors(gpt2.init(C, 1)).items()}

def folder_of(folder, tensors, split=40):
    "A GPT-2 in two pieces, with an index and settings."
    names = sorted(tensors)
    where = {n: f'model-{1 + (i >= split)}.safetensors' for i, n in enumerate(names)}
    for piece in set(where.values()): write_safetensors(folder/piece, {n: tensors[n] for n in names if where[n] == piece})
    (folder/'model.safetensors.index.json').write_text(json.dumps({'metadata': {}, 'weight_map': where}))
    (folder/'config.json').write_text(json.dumps(HF))
    return folder

def test_a_folder_in_pieces(tmp_path):
    tensors = published()
    model = load_gpt2(folder_of(tmp_path, tensors, split=10), gpt2.hf_config(read_settings(tmp_path/'config.json')))
    assert np.array_equal(gpt2.forward(model, [1, 2, 3]), gpt2.forward(gpt2.init(C, 1), [1, 2, 3]))

@pytest.mark.parametrize('cut', [0, 7, 100, 5_000, -1])
def test_a_truncated_piece(tmp_path, cut):
    folder_of(tmp_path, published(), split=10)
    piece = tmp_path/'model-2.safetensors'
    content = piece.read_bytes()
    piece.write_bytes(content[:cut if cut >= 0 else len(content) - 1])
    with pytest.raises(CheckpointError, match='model-2.safetensors'): load_gpt2(tmp_path, C)

def test_a_missing_tensor_a_tied_head_and_one_that_differs(tmp_path):
    tensors = published()
    lost = {n: a for n, a in tensors.items() if n != 'h.1.mlp.c_proj.weight'}
    write_safetensors(tmp_path/'model.safetensors', lost)
    with pytest.raises(WeightsError, match=r'missing(.|\n)*h\.1\.mlp\.c_proj\.weight'): load_gpt2(tmp_path/'model.safetensors', C)
    write_safetensors(tmp_path/'model.safetensors', tensors | {'lm_head.weight': tensors['wte.weight']})
    load_gpt2(tmp_path/'model.safetensors', C)
    write_safetensors(tmp_path/'model.safetensors', tensors | {'lm_head.weight': tensors['wte.weight'] + 1})
    with pytest.raises(WeightsError, match='two heads'): load_gpt2(tmp_path/'model.safetensors', C)
    with pytest.raises(WeightsError, match='unexpected(.|\n)*h.1'): load_gpt2(folder_of(tmp_path/'..', tensors), gpt2.Config(1, 2, 128, vocab=60, context=16))


# ---- turned once

@pytest.fixture
def source(tmp_path):
    write_safetensors(tmp_path/'model.safetensors', published())
    return tmp_path/'model.safetensors'

def same(a, b): return all(np.array_equal(x, y) for x, y in zip(gpt2.parameters(a), gpt2.parameters(b), strict=True))

def test_turned_once_and_found_again(source, tmp_path):
    folder = tmp_path/'kept'
    a = load_gpt2(source, folder=folder, least=0)
    file, = folder.iterdir()
    written = file.stat().st_mtime_ns, file.read_bytes()
    b = load_gpt2(source, folder=folder, least=0)
    assert same(a, b) and same(a, gpt2.init(C, 1)) and file.read_bytes() == written[1] and list(folder.iterdir()) == [file]
    assert read_safetensors(file).metadata['layout'] == 'out×in' and not b.blocks[1].down.w.flags.writeable
    assert load_gpt2(source, folder=tmp_path/'other').blocks[0].up.w.flags.owndata and not (tmp_path/'other').exists()   # too small to be kept

@pytest.mark.parametrize('damage', [lambda b: b'', lambda b: b[:-1], lambda b: b[:40], lambda b: b'\xff'*8 + b[8:], lambda b: b[:-300_000] + bytes(300_000)])
def test_a_kept_file_with_damage_is_made_anew(source, tmp_path, damage):
    folder = tmp_path/'kept'
    a = load_gpt2(source, folder=folder, least=0)
    file, = folder.iterdir()
    good = file.read_bytes()
    file.unlink()
    file.write_bytes(damage(good))
    assert same(load_gpt2(source, folder=folder, least=0), gpt2.init(C, 1)) and file.read_bytes() == good

def test_another_model_under_the_old_times(source, tmp_path):
    "Same place, size, time and number of the file, other weights."
    folder = tmp_path/'kept'
    load_gpt2(source, folder=folder, least=0)
    stat, other = source.stat(), {n: np.ascontiguousarray(a) for n, a in gpt2.to_tensors(gpt2.init(C, 2)).items()}
    write_safetensors(tmp_path/'other', other)
    with open(source, 'r+b') as f: f.write((tmp_path/'other').read_bytes())
    os.utime(source, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert kept_at(source, folder).exists()
    assert same(load_gpt2(source, folder=folder, least=0), gpt2.init(C, 2))

def test_a_folder_that_cannot_be_written(source, tmp_path):
    (tmp_path/'kept').write_text('a file stands in the way')
    with pytest.warns(UserWarning, match='not kept'): a = load_gpt2(source, folder=tmp_path/'kept', least=0)
    assert same(a, gpt2.init(C, 1))

def test_the_oldest_go_first(source, tmp_path):
    folder = tmp_path/'kept'
    folder.mkdir()
    for name, when in (('old', 1), ('new', 2)):
        (folder/f'{name}.safetensors').write_bytes(bytes(1000))
        os.utime(folder/f'{name}.safetensors', (when, when))
    from bendml.turned import keep
    keep({'x': np.zeros(100, np.float32)}, folder/'mine.safetensors', most=2000)
    assert sorted(f.name for f in folder.iterdir()) == ['mine.safetensors', 'new.safetensors']
    keep({'x': np.zeros(1000, np.float32)}, folder/'mine.safetensors', most=10)   # the one that is in use stays
    assert [f.name for f in folder.iterdir()] == ['mine.safetensors']


# ---- GGUF models

SMALL = llama.Config(1, 4, 2, 64, 256, 256, 96, 32)

def values_of(c):
    number = lambda name, n: string(b'llama.' + name) + struct.pack('<II', 4, n)
    text = string(b'general.architecture') + struct.pack('<I', 8) + string(b'llama')
    numbers = {b'block_count': c.layers, b'attention.head_count': c.heads, b'attention.head_count_kv': c.shared, b'embedding_length': c.channels,
               b'feed_forward_length': c.hidden, b'context_length': c.context}
    eps = string(b'llama.attention.layer_norm_rms_epsilon') + struct.pack('<If', 6, c.eps)
    return text + b''.join(number(*item) for item in numbers.items()) + eps, len(numbers) + 2

def model_file(c, format, seed=0):
    "A Llama of random blocks in a format, as a GGUF file."
    rng, number, t = np.random.default_rng(seed), next(n for n, s in NUMBERS.items() if s == format), TYPES[format]
    tensors = {}
    for name, wanted in llama.wanted(c, llama.GGUF_NAMES).items():
        if len(wanted.shape) == 1: tensors[name] = (wanted.shape, 0, rng.uniform(0.5, 1.5, wanted.shape).astype('<f4').tobytes())
        elif t.block == 1:
            x = rng.normal(0, 0.1, wanted.shape).astype('<f4')
            tensors[name] = (wanted.shape[::-1], number, (x.astype('<f2') if format == 'F16' else x.view('<u4') >> 16 if format == 'BF16' else x).astype(t.numpy).tobytes())
        else:
            blocks = rng.integers(0, 256, (wanted.shape[0]*wanted.shape[1]//t.block, t.size), np.uint8)
            for at in {'Q6_K': (208,), 'Q4_K': (0, 2), 'Q5_K': (0, 2), 'Q4_1': (0, 2), 'Q5_1': (0, 2)}.get(format, (0,)): blocks[:, at:at + 2] = np.full(len(blocks), 1e-3, '<f2').view(np.uint8).reshape(-1, 2)
            tensors[name] = (wanted.shape[::-1], number, blocks.tobytes())
    return small_gguf(tensors, *values_of(c))

@pytest.mark.parametrize('format', ['F32', 'F16', 'BF16', 'Q8_0', 'Q4_0', 'Q4_1', 'Q5_0', 'Q5_1', 'Q4_K', 'Q5_K', 'Q6_K'])
def test_a_model_in_every_format_says_what_the_librarys_numbers_say(tmp_path, format):
    gguf = pytest.importorskip('gguf')   # in tools/requirements.in
    path = tmp_path/'m.gguf'
    path.write_bytes(model_file(SMALL, format))
    numbers = {t.name: gguf.quants.dequantize(t.data, t.tensor_type).astype(np.float32).reshape(t.shape[::-1]) for t in gguf.GGUFReader(path).tensors}
    wanted = llama.forward(llama.from_tensors(numbers, SMALL, llama.GGUF_NAMES), range(12))
    assert np.array_equal(wanted, llama.forward(llama.load_gguf(path), range(12)))
    d = gguf_decoder(read_gguf(path))
    cache = d.cache()
    rows = np.array([d.step(cache, i).copy() for i in range(12)])
    assert np.abs(rows - wanted).max() < 1e-4*np.abs(wanted).max()
    assert np.abs(read(d, d.cache(), range(12)) - wanted[-1]).max() < 1e-4*np.abs(wanted).max()

@pytest.mark.parametrize('shape', [(), (96,), (96, 256, 1)])
def test_a_table_of_tokens_that_is_no_matrix(tmp_path, shape):
    (tmp_path/'m.gguf').write_bytes(small_gguf({'token_embd.weight': (shape, 0, bytes(4*int(np.prod(shape, dtype=int))))}, *values_of(SMALL)))
    with pytest.raises(WeightsError, match='a table of tokens'): open_gguf(tmp_path/'m.gguf')

@pytest.mark.parametrize('count', [200, pytest.param(2000, marks=pytest.mark.slow)])
def test_models_with_damage_are_refused_by_name_and_take_no_memory(tmp_path, count):
    "A model that opens in spite of the damage is one that can be run."
    c = llama.Config(1, 2, 1, 32, 64, 64, 40, 16)
    good, rng, path, opened = model_file(c, 'Q4_1'), random.Random(count), tmp_path/'m.gguf', 0
    for _ in range(count):
        path.write_bytes(damaged(rng, good))
        try: d = bounded(open_gguf, path)
        except (CheckpointError, WeightsError, TensorError) as e:
            assert '- expected : ' in str(e) and len(str(e)) < 2000
            continue
        opened += 1
        if d.sizes.context <= 64: d.step(d.cache(), 3)
    assert count/20 < opened < count
