"""Safetensors: the laws, the cases, the format's own library as the oracle, and ten thousand files with damage."""
import gc, importlib.util, itertools, json, random, re, subprocess, sys, tracemalloc
from pathlib import Path
import numpy as np, pytest, safetensors, safetensors.numpy
from hypothesis import given, settings, strategies as st
from bendml.checkpoint import (CheckpointError, Missing, SaveError, find_tensors, narrow, open_weights, read_safetensors,
                               widen, write_safetensors)
from bendml.checkpoint import roundtrip
from bendml.checkpoint.layout import Bytes, Overlap, Place, Upto, accepted, complete, disjoint, in_bounds, layout, one_more, owners, place, sound
from bendml.laws import prove, to_list
from hostile import bounded, damaged, damaged_json, look_at, small_gguf

ENTRY = '{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}'
F = (57).to_bytes(8, 'little') + b'{"t":' + ENTRY.encode() + b'}' + bytes(16)


def packed(header, data=b''):
    header = header if isinstance(header, bytes) else header.encode()
    return len(header).to_bytes(8, 'little') + header + data

def write(folder, content, name='t.safetensors'):
    (folder/name).write_bytes(content)
    return folder/name

def refused(folder, content, *words):
    with pytest.raises(CheckpointError) as e: read_safetensors(write(folder, content))
    missing = [w for w in words if w not in str(e.value)]
    if missing: raise AssertionError(f'{missing} not in {e.value}')


# ---- laws

@pytest.mark.parametrize('l', [in_bounds, disjoint, complete, accepted, one_more, roundtrip.load_dump, roundtrip.load_store],
                         ids=lambda l: l.__name__)
def test_the_laws_are_confirmed(l):
    t = prove(l)
    assert t.verdict == 'confirmed' and not t.axioms, str(t)


DROPPED = [   # a line of `place`, the law that needs it, and tensors of which a check without it would say yes: (block, size, shape, begin, end)
    ('Overlap', 'disjoint', [(1, 1, [2], 0, 2), (1, 1, [1], 1, 2)], 2), ('Hole', 'complete', [(1, 1, [1], 1, 2)], 2),
    ('Backwards', 'in_bounds', [(1, 1, [2], 0, 2), (1, -1, [1], 2, 1)], 2), ('Outside', 'in_bounds', [(1, 1, [3], 0, 3)], 2), ('WrongSize', 'in_bounds', [(1, 4, [2], 0, 4)], 4)]

@pytest.mark.parametrize('line, law, tensors, n', DROPPED, ids=[d[0] for d in DROPPED])
def test_every_line_of_place_is_needed_by_a_law(tmp_path, line, law, tensors, n):
    "Without it, that law is not proved any more; and it is false, for tensors that the real `place` refuses."
    text, dropped = re.subn(rf'            if .*: return {line}\(\)\n', '', Path(layout.__code__.co_filename).read_text())
    assert dropped == 1
    (tmp_path/'lax.py').write_text(text)
    spec = importlib.util.spec_from_file_location('bendml.checkpoint.lax', tmp_path/'lax.py')
    lax = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = lax
    spec.loader.exec_module(lax)
    assert not prove(getattr(lax, law)).holds
    ts = lambda m: to_list(m.Bytes(b, s, to_list(shape), begin, end) for b, s, shape, begin, end in tensors)
    reached = lax.layout(ts(lax), 0, n, 1)
    assert isinstance(reached, lax.Upto)
    bad = {'disjoint': any(lax.owners(ts(lax), x) > 1 for x in range(n)), 'complete': any(lax.owners(ts(lax), x) < 1 for x in range(reached.at)),
           'in_bounds': not lax.sound(ts(lax), n)}
    assert bad[law] and type(layout(ts(sys.modules[Place.__module__]), 0, n, 1)).__name__ == line


def spans():
    entry = st.builds(lambda b, s, shape, begin, n: Bytes(b, s, to_list(shape), begin, begin + n), st.sampled_from([1, 2, 32]),
                      st.sampled_from([1, 2, 4, 20]), st.lists(st.integers(0, 4), max_size=3), st.integers(0, 40), st.integers(-2, 40))
    return st.lists(entry, max_size=5)

@given(spans(), st.integers(0, 80), st.sampled_from([1, 4, 32]))
@settings(max_examples=300, deadline=None)
def test_a_loop_over_place_is_layout(ts, n, gap):
    at, said = 0, None
    for t in ts:
        match place(t, at, n, gap):
            case Upto(end): at = end
            case said: break
    assert (said or Upto(at)) == layout(to_list(ts), 0, n, gap)


@given(st.lists(st.lists(st.integers(0, 3), max_size=3), max_size=4), st.integers(0, 9))
@settings(max_examples=100, deadline=None)
def test_every_byte_of_tiled_tensors_has_one_owner(shapes, x):
    sizes = [4*int(np.prod(s, dtype=int)) for s in shapes]
    begins = [0, *itertools.accumulate(sizes)]
    ts = to_list([Bytes(1, 4, to_list(s), b, b + n) for s, b, n in zip(shapes, begins, sizes)])
    assert layout(ts, 0, begins[-1], 1) == Upto(begins[-1]) and sound(ts, begins[-1])
    assert owners(ts, x) == (1 if x < begins[-1] else 0)


def test_the_readers_ask_place(tmp_path, monkeypatch):
    "What is proved about `place` is about the function that runs: with another one, both readers refuse."
    import bendml.checkpoint.layout as module
    write(tmp_path, F)
    write(tmp_path, small_gguf(), 't.gguf')
    open_weights(tmp_path/'t.safetensors'), open_weights(tmp_path/'t.gguf')
    monkeypatch.setattr(module, 'place', lambda t, at, n, gap: Overlap())
    for name in ('t.safetensors', 't.gguf'):
        with pytest.raises(CheckpointError, match='overlaps'): open_weights(tmp_path/name)


# ---- the cases

def test_the_base_file(tmp_path):
    assert len(F) == 81
    w = read_safetensors(write(tmp_path, F))
    assert w['t'].tolist() == [[0, 0], [0, 0]] and w['t'].dtype == np.float32 and dict(w.metadata) == {}


def test_length_bombs_cost_nothing(tmp_path):
    for bomb in (b'\xff'*8, bytes.fromhex('3c000000 00ffffff')):
        path = write(tmp_path, bomb + F[8:])
        tracemalloc.start()
        with pytest.raises(CheckpointError, match='header too large'): read_safetensors(path)
        assert tracemalloc.get_traced_memory()[1] < 100_000
        tracemalloc.stop()


@pytest.mark.parametrize('content, words', [
    ((1000).to_bytes(8, 'little') + F[8:], ['header 1000 > file 81']),
    (b'', ['truncated', 'file of 8 bytes or more', 'observed : 0 bytes']),
    (bytes(8), ['begins with {']),
    (F[:7], ['observed : 7 bytes']),
    (F.replace(b'[0,16]', b'[0,4] '), ['tensor \'t\'', 'expected : 16 bytes', 'observed : 4 bytes']),
    (F.replace(b'"F32"', b'"F16"'), ['expected : 8 bytes', 'observed : 16 bytes']),
    (F.replace(b'[0,16]', b'[4,16]'), ['a hole before it', 'begin at 0', 'begin at 4']),
    (F.replace(b'[0,16]', b'[9,4] '), ['hole']),
    (F.replace(b'[0,16]', b'[0,17]'), ['outside the file', '17 bytes of data', '16 bytes of data']),
    (F[:-1], ['outside the file', '16 bytes of data', '15 bytes of data']),
    (F + b'!', ['bytes that belong to no tensor', 'expected : 16 bytes', 'observed : 17 bytes']),
    (F.replace(b'"F32"', b'"F31"'), ['unknown dtype', 'BF16', "'F31'"]),
    (F.replace(b'"F32"', b'"F4" '), ['expected : 2 bytes', 'observed : 16 bytes']),
    (packed('{"t":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}}', bytes(2)), ['expected : 1 1/2 bytes', 'observed : 2 bytes']),
    (packed(f'{{"t":{ENTRY},"t":{ENTRY.replace("[0,16]", "[16,32]")}}}', bytes(32)), ["duplicate key 't'", 'each name once']),
    (packed(f'{{"t":{ENTRY},"\\u0074":{ENTRY}}}', bytes(16)), ["duplicate key 't'"]),
    (packed(f'{{"t":{ENTRY},"u":{ENTRY}}}', bytes(16)), ["tensor 'u'", 'overlaps', 'begin at 16']),
    (packed(f'{{"t":{ENTRY},"u":{ENTRY.replace("[0,16]", "[8,24]")}}}', bytes(24)), ["tensor 'u'", 'overlaps']),
    (packed('{"t":{"dtype":"F32","dtype":"F32","shape":[],"data_offsets":[0,4]}}', bytes(4)), ["duplicate key 'dtype'"]),
    (packed('{"t":{"dtype":"F32","shape":[]}}'), ['only dtype, shape']),
    (packed('{"t":{"dtype":"F32","shape":[],"data_offsets":[0,4],"more":1}}', bytes(4)), ["observed : 'more'"]),
    (packed('{"t":{"dtype":"F32","shape":[],"data_offsets":[0,4,4]}}', bytes(4)), ['two numbers', 'observed : 3']),
    (packed('{"t":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}', bytes(4)), ['whole numbers']),
    (packed('{"t":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}}', bytes(4)), ['whole numbers']),
    (packed('{"t":{"dtype":"F32","shape":[01],"data_offsets":[0,4]}}', bytes(4)), ['whole numbers']),
    (packed('{"t":{"dtype":"F32","shape":[%s],"data_offsets":[0,4]}}' % ','.join('1'*65), bytes(4)), ['at most 64']),
    (packed('{"t":{"dtype":"F32","shape":[0,%d,%d],"data_offsets":[0,0]}}' % (2**63, 2**63)), ['a shape that an array can have']),
    (packed('{"t":{"dtype":"U8","shape":[%d,%d],"data_offsets":[0,0]}}' % (2**32, 2**32)), ['a shape that an array can have']),
    (packed(b'{"\xff":' + ENTRY.encode() + b'}', bytes(16)), ['valid UTF-8']),
    (packed('{"\\ud800":' + ENTRY + '}', bytes(16)), ['valid UTF-8']),
    (packed('{"\\x":' + ENTRY + '}', bytes(16)), ['valid UTF-8']),
    (packed('{"__metadata__":{"a":1}}'), ['a string']),
    (packed('{"__metadata__":null}'), ['{']),
    (packed('{"t":[]}'), ['{']),
    (packed('{} x'), ['the end', "b' x'"]),
    (packed('{"t":' + ENTRY), ['the end']),
    (packed(' {}'), ['begins with {']),
    (packed('{"\x1b[31m":1}'), ['header']),
])
def test_a_bad_file_is_refused_by_name(tmp_path, content, words): refused(tmp_path, content, 't.safetensors', *words)


def test_what_is_no_file(tmp_path):
    import os
    with pytest.raises(FileNotFoundError): read_safetensors(tmp_path/'none')
    with pytest.raises(CheckpointError, match='not a file'): read_safetensors(tmp_path)
    os.mkfifo(tmp_path/'pipe')
    with pytest.raises(CheckpointError, match='not a file'): read_safetensors(tmp_path/'pipe')   # opening it would wait for ever


@pytest.mark.parametrize('header', ['[' * 2_000_000, '[[],' * 500_000, '{"a":' * 400_000, '{"t":{"shape":[' + '1,' * 1_000_000, '{"' + 'a' * 2_000_000,
                                    '{"' + '\\n' * 1_000_000 + '"', '{"t":{"shape":[' + '1' * 2_000_000, '{' + ' ' * 2_000_000 + 'x', '{"t":{"shape":[1' + ' ' * 2_000_000],
                         ids=lambda h: h[:12])
def test_a_hostile_header_takes_no_memory_and_no_time(tmp_path, header):
    import time
    path = write(tmp_path, packed('{' + header[1:] if header[0] != '{' else header))
    began = time.perf_counter()
    with pytest.raises(CheckpointError): bounded(read_safetensors, path)
    assert time.perf_counter() - began < 2


def test_bfloat16(tmp_path):
    import torch
    bits = np.array([0x3f80, 0xc000, 0x7f80, 0x7fc0], np.uint16)
    write_safetensors(tmp_path/'b', {'x': bits}, dtypes={'x': 'BF16'})
    got = read_safetensors(tmp_path/'b').float32('x')
    assert got[:3].tolist() == [1, -2, np.inf] and np.isnan(got[3])
    every = np.arange(65536, dtype=np.uint16)
    assert widen(every).tobytes() == torch.from_numpy(every.view(np.int16)).view(torch.bfloat16).float().numpy().tobytes()
    keeps = ~np.isnan(widen(every))
    assert (narrow(widen(every))[keeps] == every[keeps]).all() and np.isnan(widen(narrow(widen(every[~keeps])))).all()
    assert np.isnan(widen(narrow(np.array([0x7f800001, 0xff800001, 0xffffffff], np.uint32).view('f4')))).all()   # not infinite, nor 0
    x = np.random.default_rng(0).integers(0, 2**32, 200_000, np.uint32).view(np.float32)
    x = np.concatenate([x[~np.isnan(x)], np.float32([0, -0.0, 3.4e38, np.inf, -np.inf, 1e-45]), (1 + np.arange(1, 65, 2)*2.0**-8).astype('f4')])
    assert (narrow(x) == torch.from_numpy(x).bfloat16().view(torch.int16).numpy().view(np.uint16)).all()


def test_views_are_the_files_own_bytes(tmp_path):
    import mmap
    x = np.random.default_rng(0).random((50, 7)).astype('f4')
    write_safetensors(tmp_path/'x', {'x': x, 'y': np.arange(3)})
    w = read_safetensors(tmp_path/'x')
    a, b = w['x'], w.float32('x')
    assert np.shares_memory(a, b) and not a.flags.writeable and a.flags.aligned
    assert isinstance(a.base, mmap.mmap) or isinstance(a.base.obj, mmap.mmap)
    with pytest.raises(ValueError): a[0] = 1
    del w, b
    gc.collect()
    (tmp_path/'x').unlink()
    assert (a == x).all()


def test_an_unaligned_tensor_is_copied(tmp_path):
    w = read_safetensors(write(tmp_path, F))   # its data begin at byte 65
    assert w['t'].flags.aligned and not w['t'].flags.writeable


def test_no_such_tensor(tmp_path):
    w = read_safetensors(write(tmp_path, F))
    with pytest.raises(Missing, match="'u'\n- observed : 1 other") as e: w['u']
    assert isinstance(e.value, KeyError) and isinstance(e.value, CheckpointError) and w.get('u') is None and 'u' not in w and list(w) == ['t']


def test_types_that_numpy_does_not_know(tmp_path):
    header = '{"a":{"dtype":"F8_E4M3","shape":[2,3],"data_offsets":[0,6]},"b":{"dtype":"F4","shape":[2,4],"data_offsets":[6,10]},"c":{"dtype":"F4","shape":[2,1],"data_offsets":[10,11]}}'
    w = read_safetensors(write(tmp_path, packed(header, bytes(range(11)))))
    assert w['a'].tolist() == [[0, 1, 2], [3, 4, 5]] and w['b'].tolist() == [[6, 7], [8, 9]] and w['c'].tolist() == [10]
    with pytest.raises(CheckpointError, match="tensor 'a'(.|\n)*F8_E4M3"): w.float32('a')
    w = read_safetensors(write(tmp_path, packed('{"m":{"dtype":"BOOL","shape":[3],"data_offsets":[0,3]}}', b'\0\1\2')))
    with pytest.raises(CheckpointError, match='0 or 1'): w['m']


# ---- writing, with the library as the oracle

NUMPY = ['bool', 'u1', 'i1', 'i2', 'u2', 'f2', 'i4', 'u4', 'f4', 'c8', 'f8', 'i8', 'u8']
names = st.text(st.characters(exclude_categories=['Cs']), max_size=8).filter(lambda n: n != '__metadata__')
arrays = st.builds(lambda shape, dtype, seed: np.random.default_rng(seed).integers(0, 2 if dtype == 'bool' else 100, shape).astype(dtype),
                   st.lists(st.integers(0, 4), max_size=4), st.sampled_from(NUMPY), st.integers(0, 99))

@given(st.dictionaries(names, arrays, max_size=8), st.none() | st.dictionaries(names, names, max_size=1))
@settings(max_examples=150, deadline=None)
def test_the_same_bytes_as_the_library(tmp_path_factory, tensors, metadata):
    path = tmp_path_factory.getbasetemp()/'same.safetensors'
    write_safetensors(path, tensors, metadata)
    if not tensors and metadata == {}: assert path.read_bytes()[8:] == b'{"__metadata__":{}}     '   # 0.8.0 writes {},"__metadata__":{}
    else: assert path.read_bytes() == safetensors.numpy.save(tensors, metadata)
    theirs, ours = safetensors.numpy.load_file(path), read_safetensors(path)
    assert ours.keys() == theirs.keys() == tensors.keys() and ours.metadata == (metadata or {})
    for n, a in tensors.items():
        assert ours[n].dtype == a.dtype and ours[n].shape == a.shape and ours[n].tobytes() == a.tobytes() == theirs[n].tobytes()


def test_any_layout_in_memory_is_written_in_order(tmp_path):
    x = np.arange(24.).reshape(2, 3, 4)
    write_safetensors(tmp_path/'x', {'t': x.T, 's': x[:, ::2], 'big': x.astype('>f8'), 'scalar': np.array(3.)})
    w = safetensors.numpy.load_file(tmp_path/'x')
    assert (w['t'] == x.T).all() and (w['s'] == x[:, ::2]).all() and (w['big'] == x).all() and w['scalar'] == 3


@pytest.mark.parametrize('tensors, metadata, dtypes, word', [
    ({'x': np.zeros(1, 'c16')}, None, {}, 'complex128'), ({'x': np.array([None])}, None, {}, 'object'), ({'x': [1]}, None, {}, 'list'),
    ({1: np.zeros(1)}, None, {}, 'not a tensor'), ({'__metadata__': np.zeros(1)}, None, {}, 'not a tensor'), ({'\ud800': np.zeros(1)}, None, {}, 'surrogate'),
    ({'x': np.zeros(1)}, {'a': 1}, {}, 'metadata'), ({'x': np.zeros(1)}, None, {'x': 'BF16'}, 'float64 as BF16'), ({'x': np.zeros(1)}, None, {'x': 'F9'}, 'F9'),
])
def test_what_cannot_be_written(tmp_path, tensors, metadata, dtypes, word):
    with pytest.raises(CheckpointError, match=word): write_safetensors(tmp_path/'x', tensors, metadata, dtypes)
    assert list(tmp_path.iterdir()) == []


def reason_to_be_stricter(content):
    "Why we refuse what the library accepts."
    n = int.from_bytes(content[:8], 'little')
    seen = []
    def pairs(items):
        seen.extend(k for k, c in __import__('collections').Counter(k for k, _ in items).items() if c > 1)
        return dict(items)
    header = json.loads(content[8:8 + n], object_pairs_hook=pairs)
    entries = [v for k, v in header.items() if k != '__metadata__']
    if seen: return 'a name twice'
    if header.get('__metadata__', {}) is None: return 'metadata that is null'
    if any(isinstance(v, list) for v in header.values()): return 'an entry that is a list'
    if any(set(v) - {'dtype', 'shape', 'data_offsets'} for v in entries): return 'another field'
    if any(len(v['shape']) > 64 or np.prod([d for d in v['shape'] if d], dtype=object) >= 2**59 for v in entries): return 'a shape beyond NumPy'

def compare(path, content):
    "Ours and the library's answer to the same bytes."
    try: theirs = safetensors.safe_open(path, 'np')
    except safetensors.SafetensorError: theirs = None
    try:
        ours = read_safetensors(path)
        dict(ours.metadata)
    except CheckpointError: ours = None
    if ours is None: return theirs is None or reason_to_be_stricter(content)
    assert theirs is not None and sorted(theirs.keys()) == sorted(ours), content
    for n in ours:
        s = theirs.get_slice(n)
        assert tuple(s.get_shape()) == ours.stored[n].shape and s.get_dtype() == ours.stored[n].dtype
    return True

def good_files():
    rng = np.random.default_rng(0)
    one = {'t': np.zeros((2, 2), 'f4')}
    some = {f'layers.{i}.weight': rng.random((3, 2)).astype(d) for i, d in enumerate(NUMPY)} | {'empty': np.zeros((0, 5), 'f4'), 'é"\\': np.ones(3)}
    half = packed('{"h":{"dtype":"BF16","shape":[2,2],"data_offsets":[0,8]},"n":{"dtype":"F4","shape":[8],"data_offsets":[8,12]}}', bytes(12))
    return [F, half, safetensors.numpy.save(one, {'format': 'pt'}), safetensors.numpy.save(some, {'a': 'b'}), packed('{}')]

def fuzz(folder, count, seed):
    rng, files, tally = random.Random(seed), good_files(), {}
    path = folder/'f.safetensors'
    for i in range(count):
        content = (damaged_json if rng.random() < 0.6 else damaged)(rng, rng.choice(files))
        path.write_bytes(content)
        said = look_at(path, lambda path: bounded(read_safetensors, path), CheckpointError)
        assert compare(path, content), content
        tally[said] = tally.get(said, 0) + 1
    return tally

def test_files_with_damage(tmp_path):
    tally = fuzz(tmp_path, 1000, seed=1)
    assert tally['accepted'] > 30 and tally['refused'] > 500, tally

@pytest.mark.slow
def test_ten_thousand_files_with_damage(tmp_path): assert sum(fuzz(tmp_path, 10_000, seed=2).values()) == 10_000

def rss(folder, files, suffix):
    for i, content in enumerate(files): (folder/f'{i:05}{suffix}').write_bytes(content)
    run = subprocess.run([sys.executable, '-W', 'ignore', str(Path(__file__).parent/'hostile.py'), 'read', str(folder)], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-2000:]
    return json.loads(run.stdout)

def test_the_process_does_not_grow(tmp_path):
    rng, files = random.Random(3), good_files()
    said = rss(tmp_path, [(damaged_json if i % 2 else damaged)(rng, rng.choice(files)) for i in range(1500)], '.safetensors')
    assert said['files'] == 1500 and said['accepted'] > 30 and said['grew'] <= said['largest'] + (1 << 20), said


# ---- pieces, and names

@pytest.fixture
def pieces(tmp_path):
    x = np.arange(6, dtype='f4').reshape(2, 3)
    write_safetensors(tmp_path/'a.safetensors', {'wte': x, 'h.0': x + 1})
    write_safetensors(tmp_path/'b.safetensors', {'h.1': x + 2})
    def index(**change):
        content = {'metadata': {'total_size': 72, 'note': 'x'}, 'weight_map': {'wte': 'a.safetensors', 'h.0': 'a.safetensors', 'h.1': 'b.safetensors'}} | change
        (tmp_path/'model.safetensors.index.json').write_text(json.dumps(content))
        return tmp_path
    return index

def test_a_model_in_pieces(pieces):
    w = open_weights(pieces())
    assert len(w) == 3 and w['h.1'][0, 0] == 2 and w.float32('h.0')[0, 0] == 1 and w.stored['h.1'].shape == (2, 3) and '2 files' in repr(w)
    with pytest.raises(Missing): w['h.2']

def test_a_piece_that_is_not_there_or_cut_off(pieces):
    folder = pieces()
    (folder/'b.safetensors').rename(folder/'elsewhere')
    with pytest.raises(CheckpointError, match='a piece is missing(.|\n)*not there: b.safetensors'): open_weights(folder)
    (folder/'b.safetensors').write_bytes((folder/'elsewhere').read_bytes()[:-5])
    with pytest.raises(CheckpointError, match=r"b\.safetensors: tensor 'h\.1': lies outside the file \(truncated"): open_weights(folder)

@pytest.mark.parametrize('change, word', [
    ({'weight_map': {'wte': 'a.safetensors', 'h.0': 'b.safetensors', 'h.1': 'b.safetensors'}}, 'not where the index says'),
    ({'weight_map': {'wte': 'a.safetensors'}}, 'does not name'),
    ({'weight_map': {'wte': '../a.safetensors'}}, 'same folder'), ({'weight_map': {'wte': '/etc/passwd'}}, 'same folder'), ({'weight_map': {'wte': '..'}}, 'same folder'), ({'weight_map': {'wte': 'x'*300}}, 'same folder'),
    ({'weight_map': {}}, 'at least one'), ({'weight_map': []}, '{'), ({'more': 1}, 'weight_map'), ({'weight_map': {'wte': 1}}, 'a string'), ({'metadata': {'a': []}}, 'a string'),
])
def test_an_index_that_lies(pieces, change, word):
    with pytest.raises(CheckpointError, match=word): open_weights(pieces(**change))

def test_folders(tmp_path):
    with pytest.raises(CheckpointError, match='an empty folder'): open_weights(tmp_path)
    write(tmp_path, F, 'one.safetensors')
    assert 't' in open_weights(tmp_path)
    write(tmp_path, F, 'two.safetensors')
    with pytest.raises(CheckpointError, match='one.safetensors, two.safetensors'): open_weights(tmp_path)
    write(tmp_path, F, 'model.safetensors')
    assert open_weights(tmp_path).path.name == 'model.safetensors'


@pytest.fixture
def weights(tmp_path):
    def make(**tensors):
        write_safetensors(tmp_path/'m', tensors)
        return read_safetensors(tmp_path/'m')
    return make

def test_names_that_do_not_fit_are_told_together(weights):
    w = weights(wte=np.zeros((5, 2)), old=np.zeros(1), older=np.zeros(1), mask=np.zeros(1), w=np.zeros((3, 4)))
    with pytest.raises(CheckpointError) as e: find_tensors(w, {'wte': (5, 2), 'ln.g': (2,), 'ln.b': (2,), 'w': (3, 5)}, ignore='mask')
    for words in ('expected : missing: ln.b, ln.g; w of shape (3, 5)', 'observed : unexpected: old, older; w of shape (3, 4)'): assert words in str(e.value)
    assert 'transpose' not in str(e.value) and 'mask' not in str(e.value)

def test_a_matrix_the_other_way_round(weights):
    w = weights(**{'c_attn.weight': np.zeros((2304, 768), 'f2')})
    with pytest.raises(CheckpointError) as e: find_tensors(w, {'c_attn.weight': (768, 2304)})
    for words in ('c_attn.weight of shape (768, 2304)', 'c_attn.weight of shape (2304, 768)', 'hint: transpose: stored as in×out (c_attn.weight)'): assert words in str(e.value)

def test_a_tied_head(weights):
    e, shapes, tied = np.arange(6.).reshape(3, 2), {'wte': (3, 2), 'lm_head.weight': (3, 2)}, {'lm_head.weight': 'wte'}
    assert find_tensors(weights(wte=e), shapes, tied) == {'wte': 'wte', 'lm_head.weight': 'wte'}
    with pytest.raises(CheckpointError, match='missing: lm_head.weight'): find_tensors(weights(wte=e), shapes)
    assert find_tensors(weights(wte=e, **{'lm_head.weight': e}), shapes, tied)['lm_head.weight'] == 'lm_head.weight'
    for other in (e + 1, e.astype('f4')):
        with pytest.raises(CheckpointError, match='lm_head.weight.*conflict'): find_tensors(weights(wte=e, **{'lm_head.weight': other}), shapes, tied)
    with pytest.raises(CheckpointError, match='missing: lm_head.weight, wte'): find_tensors(weights(), shapes, tied)
