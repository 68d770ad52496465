"GGUF: the gguf library as the oracle, every lie refused by name, and ten thousand files with damage."
import random, struct, tracemalloc
import numpy as np, pytest
from bendml.checkpoint import CheckpointError, Missing, open_weights, read_gguf
from bendml.checkpoint.blocks import NUMBERS, TYPES
from bendml.data import fetch
from hostile import VALUES, bounded, damaged, look_at, small_gguf, string
from test_safetensors import rss

@pytest.fixture(scope='session')
def gguf(): return pytest.importorskip('gguf')   # in tools/requirements.in

@pytest.fixture(scope='session')
def smollm2(): return fetch('smollm2')/'SmolLM2-135M-Instruct.Q4_1.gguf'

def write(folder, content, name='t.gguf'):
    (folder/name).write_bytes(content)
    return folder/name


# ---- blocks

DECODED = [name for name, t in TYPES.items() if t.float32]

@pytest.mark.parametrize('name', DECODED)
def test_float32_has_the_librarys_bits(gguf, name):
    "Random bytes are valid blocks of every type; their scales are NaN, infinite, and denormal too."
    t, number = TYPES[name], next(n for n, s in NUMBERS.items() if s == name)
    rows = np.random.default_rng(number).integers(0, 256, (1500, 3*t.size), np.uint8)
    ours = t.float32(rows if t.block > 1 else rows.view(t.numpy))
    with np.errstate(all='ignore'): theirs = rows.view('<f8').astype('f4') if name == 'F64' else gguf.quants.dequantize(rows if t.block > 1 or name == 'BF16' else rows.view(t.numpy), gguf.GGMLQuantizationType(number))
    assert ours.dtype == np.float32 and ours.shape == (1500, 3*t.block)
    nan = np.isnan(ours)
    assert (nan == np.isnan(theirs)).all() and ours[~nan].tobytes() == np.asarray(theirs, np.float32)[~nan].tobytes()


def test_every_block_and_its_size_is_the_librarys(gguf):
    for number, name in NUMBERS.items():
        assert gguf.GGMLQuantizationType(number).name == name
        assert gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType(number)] == (TYPES[name].block, TYPES[name].size)


@pytest.mark.parametrize('name', ['Q8_0', 'Q4_0', 'Q4_1', 'Q5_0', 'Q5_1', 'BF16', 'F16'])
def test_what_the_library_squeezed_comes_back_close(gguf, tmp_path, name):
    x = np.random.default_rng(0).normal(size=(6, 64)).astype('f4')
    q = gguf.quants.quantize(x, gguf.GGMLQuantizationType[name])
    w = gguf.GGUFWriter(tmp_path/'x', 'llama')
    w.add_tensor('x', q, raw_dtype=gguf.GGMLQuantizationType[name])
    finish(w)
    got = read_gguf(tmp_path/'x')
    assert got.stored['x'].dtype == name and got.stored['x'].shape == (6, 64)
    assert np.abs(got.float32('x') - x).max() < {'Q8_0': 0.02, 'BF16': 0.02, 'F16': 0.002}.get(name, 0.4)


# ---- whole files

def finish(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def test_values_and_tensors_that_the_library_writes(gguf, tmp_path):
    w = gguf.GGUFWriter(tmp_path/'x', 'llama')
    w.add_custom_alignment(64)
    for name, value in dict(uint8=200, int8=-3, uint16=60000, int16=-30000, uint32=4_000_000_000, int32=-2, uint64=2**63, int64=-2**60, float32=0.5, float64=1e300, bool=True, string='ä\n€').items():
        getattr(w, f'add_{name}')(f'x.{name}', value)
    w.add_array('x.tokens', ['a', '', '😀', 'x'*300])
    w.add_array('x.numbers', [3, -1, 2])
    w.add_array('x.floats', [0.5, -2.0])
    w.add_array('x.flags', [True, False, True])
    x = {'a': np.arange(6, dtype='f4').reshape(2, 3), 'h': np.ones(5, 'f2'), 'i': np.arange(3, dtype='i4'), 'd': np.array([[1.5]])}
    for name, a in x.items(): w.add_tensor(name, a)
    finish(w)
    got = read_gguf(tmp_path/'x')
    for name, value in dict(uint8=200, int8=-3, uint16=60000, int16=-30000, uint32=4_000_000_000, int32=-2, uint64=2**63, int64=-2**60, float32=0.5, float64=1e300, bool=True, string='ä\n€').items():
        assert got.metadata[f'x.{name}'] == value and type(got.metadata[f'x.{name}']) is type(value)
    assert got.metadata['x.tokens'] == ['a', '', '😀', 'x'*300] and got.metadata['x.numbers'].tolist() == [3, -1, 2]
    assert got.metadata['x.floats'].tolist() == [0.5, -2] and got.metadata['x.flags'].tolist() == [True, False, True]
    assert got.metadata['general.alignment'] == 64
    for name, a in x.items():
        assert got[name].dtype == a.dtype and (got[name] == a).all() and not got[name].flags.writeable and got.stored[name].begin % 64 == 0
    with pytest.raises(Missing, match='no such value'): got.metadata['y']
    assert got.metadata.get('y') is None and 'x.bool' in got.metadata


@pytest.mark.slow
def test_the_real_file_has_the_librarys_bits(gguf, smollm2):
    ours, theirs = read_gguf(smollm2), gguf.GGUFReader(smollm2)
    assert [t.name for t in theirs.tensors] == list(ours) and len(ours) == 272
    for t in theirs.tensors:
        assert ours[t.name].tobytes() == t.data.tobytes() and ours.stored[t.name].shape == tuple(reversed(t.shape.tolist()))
        assert ours.float32(t.name).tobytes() == gguf.quants.dequantize(t.data, t.tensor_type).tobytes()
    for key, field in theirs.fields.items():
        if key.startswith('GGUF.'): continue
        value, wanted = ours.metadata[key], field.contents()
        assert (value.tolist() if isinstance(value, np.ndarray) else value) == wanted, key


def test_the_real_file_opens_at_once(smollm2):
    import time
    read_gguf(smollm2)
    tracemalloc.start()
    began = time.process_time()   # a neighbour on the same core does not count
    w = read_gguf(smollm2)
    seconds, peak = time.process_time() - began, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(w.metadata['tokenizer.ggml.tokens']) == 49152 and peak < 1 << 20 and seconds < 2, (seconds, peak)
    assert open_weights(smollm2.parent).keys() == w.keys()


# ---- lies

GOOD = small_gguf(values=VALUES[0], count=VALUES[1])
def value(name, kind, content): return small_gguf(values=string(name) + struct.pack('<I', kind) + content, count=1)
def one(shape=(4, 2), number=0, content=bytes(32)): return small_gguf({'a': (shape, number, content)})
def at_offset(*offsets):
    "Tensors of 32 bytes with these offsets written over the right ones."
    b = bytearray(small_gguf({f't{i}': ((8,), 0, bytes(32)) for i in range(len(offsets))}))
    for i, offset in enumerate(offsets):
        place = b.index(f't{i}'.encode()) + 2 + 4 + 8 + 4
        b[place:place + 8] = struct.pack('<Q', offset)
    return bytes(b)

@pytest.mark.parametrize('content, words', [
    (b'', ['truncated', '24 bytes or more', 'observed : 0 bytes']),
    (b'GGML' + GOOD[4:], ['not a GGUF file', "b'GGML'"]),
    (GOOD[:4] + struct.pack('<I', 1) + GOOD[8:], ['unknown version', '2 or 3', 'observed : 1']),
    (GOOD[:4] + struct.pack('>I', 3) + GOOD[8:], ['unknown version', 'the other byte order']),
    (small_gguf({})[:8] + b'\xff'*8 + bytes(8), ["truncated in a tensor's name", 'observed : 0 bytes']),
    (small_gguf({})[:16] + b'\xff'*8, ['truncated in a key', 'observed : 0 bytes']),
    (GOOD[:24] + b'\xff'*8 + GOOD[32:], ['truncated in a key', '18446744073709551615 bytes at byte 32']),
    (value(b'x', 13, b''), ['unknown type of', '0 to 12', '13']),
    (value(b'x', 8, struct.pack('<Q', 2**63)), ["truncated in 'x'"]),
    (value(b'x', 9, struct.pack('<IQ', 10, 2**61)), ["truncated in 'x'", str(2**64)]),
    (value(b'x', 9, struct.pack('<IQ', 8, 2**61)), ["truncated in 'x'", str(2**64)]),
    (value(b'x', 9, struct.pack('<IQ', 9, 1)), ['an array of arrays']),
    (value(b'\xff', 0, b'1'), ['valid UTF-8']),
    (value(b'k'*70_000, 0, b'1'), ['a key is too long', '65535']),
    (small_gguf(values=(string(b'x') + struct.pack('<IB', 0, 1))*2, count=2), ["duplicate key 'x'"]),
    (value(b'general.alignment', 4, struct.pack('<I', 0)), ['general.alignment', 'a power of 2', 'observed : 0']),
    (value(b'general.alignment', 4, struct.pack('<I', 24)), ['general.alignment', 'observed : 24']),
    (value(b'general.alignment', 8, string(b'32')), ['general.alignment', 'one number of type uint32']),
    (value(b'general.alignment', 4, struct.pack('<I', 2**31)), ['misaligned', str(2**31)]),
    (one((1,)*5), ['at most 4 axes', 'observed : 5']),
    (one(number=99), ["tensor 'a': unknown type", 'Q4_K', 'number 99']),
    (one((2**40, 2**40)), ['a shape that an array can have']),
    (one((0, 2**60, 2**60)), ['a shape that an array can have']),
    (one((33,), 3, bytes(40)), ['rows of whole blocks of 32', '(33,)']),
    (one((32, 3), 3, bytes(59)), ["tensor 'a': lies outside the file", '60 bytes of data', '59 bytes']),
    (GOOD[:-1], ["tensor 'h': lies outside the file"]),
    (at_offset(0, 0), ["tensor 't1': overlaps", 'begin at 32', 'begin at 0']),
    (at_offset(0, 64), ["tensor 't1': a hole", 'begin at 32 to 63', 'begin at 64']),
    (at_offset(0, 33), ["tensor 't1': misaligned", 'multiple of 32', '33']),
    (at_offset(0, 2**64 - 32), ["tensor 't1': a hole"]),
    (GOOD.replace(string(b'q'), string(b'a')), ["duplicate tensor 'a'"]),
])
def test_a_bad_file_is_refused_by_name(tmp_path, content, words):
    with pytest.raises(CheckpointError) as e: read_gguf(write(tmp_path, content))
    assert all(w in str(e.value) for w in ['t.gguf', *words]), str(e.value)


def test_a_bad_text_is_refused_when_it_is_asked_for(tmp_path):
    w = read_gguf(write(tmp_path, value(b'x', 9, struct.pack('<IQ', 8, 2) + string(b'fine') + string(b'\xff'))))
    with pytest.raises(CheckpointError, match="'x'(.|\n)*valid UTF-8"): w.metadata['x']


def test_tensors_in_any_order_and_without_content(tmp_path):
    w = read_gguf(write(tmp_path, at_offset(32, 0)))
    assert w.stored['t0'].begin - w.stored['t1'].begin == 32
    w = read_gguf(write(tmp_path, one((0, 7), 0, b'')))
    assert w['a'].shape == (7, 0) and w.float32('a').shape == (7, 0)
    assert len(read_gguf(write(tmp_path, small_gguf({})))) == 0
    w = read_gguf(write(tmp_path, one((0, 7), 3, b'')))
    assert w['a'].shape == (7, 0) and w.float32('a').shape == (7, 0)


@pytest.mark.parametrize('name', ['Q2_K', 'IQ4_XS', 'I8'])
def test_a_type_without_conversion_can_be_opened(tmp_path, name):
    number = next(n for n, s in NUMBERS.items() if s == name)
    w = read_gguf(write(tmp_path, one((256, 2), number, bytes(2*256//TYPES[name].block*TYPES[name].size))))
    assert w['a'].shape == (2, 256//TYPES[name].block*TYPES[name].size)
    with pytest.raises(CheckpointError, match=f"tensor 'a'(.|\n)*{name}"): w.float32('a')


# ---- damage

def good_files(smollm2):
    k = {f'k{n}': ((256, 2), n, bytes(2*TYPES[NUMBERS[n]].size)) for n in (12, 13, 14)}
    return [small_gguf(), GOOD, small_gguf(k), small_gguf({f'n{i}': ((8,), 0, bytes(32)) for i in range(20)}), small_gguf({}),
            small_gguf({'b': ((3, 1, 2), 30, bytes(12)), 's': ((), 24, b'x')}, align=8, values=string(b'general.alignment') + struct.pack('<II', 4, 8), count=1)]

def fuzz(folder, count, seed, smollm2, real):
    rng, files, tally = random.Random(seed), good_files(smollm2), {}
    head = smollm2.read_bytes()[:1_785_664]   # all but the tensors' bytes
    path = folder/'f.gguf'
    for i in range(count):
        good = head if i % real == 0 else rng.choice(files)
        content = damaged(rng, good)
        path.write_bytes(content)
        said = look_at(path, lambda path: bounded(read_gguf, path), CheckpointError)
        tally[said] = tally.get(said, 0) + 1
    return tally

def test_files_with_damage(tmp_path, smollm2):
    tally = fuzz(tmp_path, 1000, 1, smollm2, real=100)
    assert tally['accepted'] > 100 and tally['refused'] > 300, tally

@pytest.mark.slow
def test_ten_thousand_files_with_damage(tmp_path, smollm2): assert sum(fuzz(tmp_path, 10_000, 2, smollm2, real=250).values()) == 10_000

def test_the_process_does_not_grow(tmp_path, smollm2):
    rng, files = random.Random(3), good_files(smollm2)
    real = [damaged(rng, smollm2.read_bytes()[:1_785_664]) for _ in range(20)]
    said = rss(tmp_path, [damaged(rng, rng.choice(files)) for _ in range(1500)] + real, '.gguf')
    assert said['files'] == 1520 and said['accepted'] > 200 and said['grew'] <= said['largest'] + (1 << 20), said

@pytest.mark.slow
def test_what_we_accept_the_library_reads_alike(gguf, tmp_path, smollm2):
    rng, files, seen = random.Random(4), good_files(smollm2), 0
    for _ in range(1500):
        path = write(tmp_path, damaged(rng, rng.choice(files)))
        try: ours = read_gguf(path)
        except CheckpointError: continue
        try: theirs = gguf.GGUFReader(path)
        except (ValueError, IndexError): continue   # it knows fewer shapes of nothing, and no file of one byte
        seen += 1
        for t in theirs.tensors: assert ours[t.name].tobytes() == t.data.tobytes()
    assert seen > 200
