"Training state: nothing is lost by stopping, killing, or a full disk; another state is refused by name."
import json, os, random, signal, subprocess, sys, time
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
import numpy as np, pytest
from hypothesis import given, settings, strategies as st
from bendml.checkpoint import CheckpointError, SaveError, flatten, load, read_safetensors, save, write_atomically, write_safetensors

TRAINER = Path(__file__).with_name('trainer.py')


class Momentum(NamedTuple):
    beta: float
    buf: dict

@dataclass(frozen=True)
class Layer:
    w: np.ndarray
    b: np.ndarray
    name: str = 'linear'

def state(seed=0, step=0):
    rng = np.random.default_rng(seed)
    layers = [Layer(rng.random((2, 3)).astype('f4'), rng.random(3)) for _ in range(2)]
    return {'step': step, 'layers': layers, 'opt': Momentum(0.9, {'m': rng.integers(0, 99, 4).astype('u2'), 'q': np.float32(rng.random())}),
            'rng': rng, 'best': None, 'done': (True, 'running'), 'lr': 1e-3*seed, 'empty': [], 'odd': np.float64(-0.0)}

def bits(s): return {n: (v.dtype.str, v.shape, v.tobytes()) if isinstance(v, np.ndarray) else (type(v), repr(v)) for n, v in flatten(s).items()}


def test_what_was_saved_is_loaded(tmp_path):
    saved = state(5, step=7)
    save(tmp_path/'s', saved)
    got = load(tmp_path/'s', like=state(1))
    assert bits(got) == bits(saved) and got['rng'].random() == saved['rng'].random()
    assert isinstance(got['layers'][0], Layer) and isinstance(got['opt'], Momentum) and got['done'] == (True, 'running') and got['empty'] == []
    assert got['layers'][0].w.flags.writeable


ends = st.one_of(st.none(), st.booleans(), st.integers(-2**70, 2**70), st.floats(), st.text(st.characters(exclude_categories=['Cs']), max_size=5),
                 st.builds(lambda n, t: np.arange(n).astype(t), st.integers(0, 3), st.sampled_from(['f4', 'f8', 'i8', 'u2', 'bool'])))
keys = st.text('abcde', min_size=1, max_size=3)
trees = st.recursive(ends, lambda t: st.lists(t, max_size=3) | st.tuples(t, t) | st.dictionaries(keys, t, max_size=3), max_leaves=8)

@given(trees)
@settings(max_examples=150, deadline=None)
def test_any_tree_comes_back(tmp_path_factory, tree):
    path = tmp_path_factory.getbasetemp()/'tree'
    save(path, tree)
    got = load(path, like=tree)
    assert bits(got) == bits(tree)
    def alike(a, b): return type(a) is type(b) and (len(a) == len(b) and all(alike(x, y) for x, y in zip(a, b)) if isinstance(a, (list, tuple))
                                                    else a.keys() == b.keys() and all(alike(a[k], b[k]) for k in a) if isinstance(a, dict) else True)
    assert alike(got, tree)


@pytest.mark.parametrize('kind', ['PCG64', 'PCG64DXSM', 'SFC64'])
def test_generators_go_on_where_they_were(tmp_path, kind):
    make = lambda seed: np.random.Generator(getattr(np.random, kind)(seed))
    g = make(3)
    g.random(5), g.integers(0, 9, 3, dtype=np.uint32)   # half of a word is kept for the next call
    save(tmp_path/'g', {'g': g})
    h = load(tmp_path/'g', like={'g': make(0)})['g']
    assert (g.integers(0, 99, 9, dtype=np.uint32) == h.integers(0, 99, 9, dtype=np.uint32)).all() and (g.normal(size=9) == h.normal(size=9)).all()


def test_another_state_is_refused_with_all_that_differs(tmp_path):
    save(tmp_path/'s', {'a': np.zeros(2), 'b': 1, 'c': np.zeros((2, 3), 'f4'), 'd': 'x', 'e': None})
    with pytest.raises(CheckpointError) as e: load(tmp_path/'s', like={'a': np.zeros(2, 'f4'), 'b': 1, 'c': np.zeros((3, 2), 'f4'), 'new': 1, 'new2': 2, 'e': 1.0})
    for words in ('another state', "missing: new, new2", 'unexpected: d', 'a float32[2]', 'a float64[2]', 'c float32[3, 2]', 'c float32[2, 3]'): assert words in str(e.value), e.value
    with pytest.raises(CheckpointError, match='b str; .*|- observed : b int'): load(tmp_path/'s', like={'a': np.zeros(2), 'b': '1', 'c': np.zeros((2, 3), 'f4'), 'd': 'x', 'e': None})
    assert load(tmp_path/'s', like={'a': np.zeros(2), 'b': 5, 'c': np.zeros((2, 3), 'f4'), 'd': 'y', 'e': 1.5})['e'] is None


def test_what_cannot_be_saved(tmp_path):
    loop = {}
    loop['loop'] = loop
    for bad, word in [({'f': print}, 'builtin_function'), ({'c': 1j}, 'complex'), ({1: 2}, 'a name'), ({'a.b': 1, 'a': {'b': 2}}, 'two parts of one name'),
                      (loop, 'inside itself'), ({'g': np.random.Generator(np.random.MT19937(0))}, 'MT19937'), ({'x': np.array(['a'])}, 'str|<U1')]:
        with pytest.raises(CheckpointError, match=word): save(tmp_path/'s', bad)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize('metadata', [None, {'bendml.state': '['*100_000}, {'bendml.state': '[]'}, {'bendml.state': '{"a": []}'}, {'bendml.state': '{'}, {'bendml.state': '1'}, {'bendml.state': ''}])
def test_metadata_that_are_no_state(tmp_path, metadata):
    write_safetensors(tmp_path/'s', {}, metadata)
    with pytest.raises(CheckpointError, match='not a checkpoint|bendml.state'): load(tmp_path/'s', like={'a': 1})


@pytest.mark.parametrize('change', [{'rng.state.state': -1}, {'rng.state.state': 2**200}, {'rng.state.state': 'x'}, {'rng.bit_generator': 'MT19937'}, {'rng.has_uint32': 2**99}, {'rng.state.inc': None}])
def test_a_hostile_generator(tmp_path, change):
    save(tmp_path/'s', {'rng': np.random.default_rng(0)})
    w = read_safetensors(tmp_path/'s')
    plain = json.loads(w.metadata['bendml.state']) | change
    write_safetensors(tmp_path/'s', {}, {'bendml.state': json.dumps(plain)})
    with pytest.raises(CheckpointError): load(tmp_path/'s', like={'rng': np.random.default_rng(1)})


# ---- stop and resume

def run(*args, **more): return subprocess.Popen([sys.executable, '-W', 'ignore', TRAINER, *map(str, args)], stdout=subprocess.PIPE, text=True, **more)

def finish(process):
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 0, out
    return out.splitlines()[-1]

STEPS = 400

@pytest.fixture(scope='module')
def straight(tmp_path_factory): return finish(run(tmp_path_factory.mktemp('straight')/'c', STEPS))

@pytest.mark.parametrize('seed', [0, 1, *(pytest.param(s, marks=pytest.mark.slow) for s in range(2, 4))])
def test_killed_and_resumed_gives_the_same_bits(tmp_path, straight, seed):
    "Killed at a random moment, again and again; a checkpoint is written at every third step, so most kills hit the writing."
    rng = random.Random(seed)
    for part in range(3):
        p, until = run(tmp_path/'c', STEPS), (part + rng.random())*STEPS/4
        for line in p.stdout:
            if int(line) >= until: break         # counted in steps: a fast machine must not be done before it is killed
        time.sleep(rng.random()*0.002)
        p.send_signal(signal.SIGKILL if rng.random() < 0.8 else signal.SIGINT)
        p.communicate()
        assert p.returncode != 0                 # it was stopped, not done
        if (tmp_path/'c').exists(): read_safetensors(tmp_path/'c')    # whatever the moment, it is whole
    assert finish(run(tmp_path/'c', STEPS)) == straight


def test_killed_while_writing_the_last_good_one_stands(tmp_path):
    "Every array of a checkpoint holds its number. Whenever the writer is killed, all of them hold the same one."
    like = {'step': 0, **{f'a{i}': np.zeros(50_000) for i in range(8)}}
    code = ('import sys, itertools, numpy as np\nfrom bendml.checkpoint import save\n'
            'for n in itertools.count(1):\n save(sys.argv[1], {"step": n, **{f"a{i}": np.full(50_000, n, float) for i in range(8)}})\n print(n, flush=True)')
    rng, steps = random.Random(0), []
    for _ in range(6):
        p = subprocess.Popen([sys.executable, '-c', code, tmp_path/'c'], stdout=subprocess.PIPE, text=True)
        p.stdout.readline()
        time.sleep(rng.random()*0.1)
        p.kill()
        last = p.communicate()[0].split()
        got = load(tmp_path/'c', like)
        assert all((got[f'a{i}'] == got['step']).all() for i in range(8))
        assert got['step'] >= int(last[-1] if last else 1)          # what was reported as saved is there
        steps.append(got['step'])
    assert {p.name for p in tmp_path.iterdir()} <= {'c', '.c.saving'}   # at most one file is left over, and the next save takes it


def test_a_disk_that_is_full(tmp_path):
    "A limit on the size of files stands in for a full disk: the same call fails in the same way."
    code = ('import resource, signal, sys, numpy as np\nfrom bendml.checkpoint import SaveError, load, save\n'
            'signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\nsave(sys.argv[1], {"a": np.ones(10)})\nresource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n'
            'try: save(sys.argv[1], {"a": np.zeros(100_000)})\nexcept SaveError as e: print(e)\n'
            'print(load(sys.argv[1], {"a": np.zeros(10)})["a"].sum())')
    p = subprocess.run([sys.executable, '-c', code, tmp_path/'c'], capture_output=True, text=True)
    assert 'not saved' in p.stdout and 'File too large' in p.stdout and 'untouched' in p.stdout and p.stdout.splitlines()[-1] == '10.0', p.stdout + p.stderr
    assert [f.name for f in tmp_path.iterdir()] == ['c']


@pytest.mark.parametrize('broken', ['write', 'fsync', 'replace'])
def test_a_disk_that_fails(tmp_path, monkeypatch, broken):
    save(tmp_path/'c', {'a': np.ones(3)})
    def fail(*_): raise OSError(28, 'No space left on device')
    if broken != 'write': monkeypatch.setattr(os, broken, fail)
    def blocks():
        yield b'half'
        if broken == 'write': fail()
    with pytest.raises(SaveError, match='not saved(.|\n)*No space left') as e: write_atomically(tmp_path/'c', blocks())
    assert isinstance(e.value, OSError) and isinstance(e.value, CheckpointError)
    monkeypatch.undo()
    assert load(tmp_path/'c', {'a': np.zeros(3)})['a'].sum() == 3 and [f.name for f in tmp_path.iterdir()] == ['c']


def test_no_folder(tmp_path):
    with pytest.raises(SaveError, match='No such file'): save(tmp_path/'none'/'c', {'a': 1})


def test_interrupted_in_the_middle(tmp_path):
    save(tmp_path/'c', {'a': 1})
    def blocks():
        yield b'half'
        raise KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt): write_atomically(tmp_path/'c', blocks())
    assert load(tmp_path/'c', {'a': 0}) == {'a': 1} and [f.name for f in tmp_path.iterdir()] == ['c']


def test_written_to_the_disk_before_it_gets_its_name(tmp_path, monkeypatch):
    said, fsync, replace = [], os.fsync, os.replace
    monkeypatch.setattr(os, 'fsync', lambda f: (said.append('folder' if os.path.isdir(f'/proc/self/fd/{f}') else 'file'), fsync(f)))
    monkeypatch.setattr(os, 'replace', lambda a, b: (said.append('rename'), replace(a, b)))
    save(tmp_path/'c', {'a': np.ones(3)})
    assert said == ['file', 'rename', 'folder']


@pytest.mark.parametrize('cut', [1, 8, 200, 1000])
def test_a_file_that_was_cut_off(tmp_path, cut):
    save(tmp_path/'c', state())
    content = (tmp_path/'c').read_bytes()
    (tmp_path/'c').write_bytes(content[:-cut])
    with pytest.raises(CheckpointError, match='truncated'): load(tmp_path/'c', like=state())
