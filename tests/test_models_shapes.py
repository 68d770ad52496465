"The models' functions are checked for all sizes: as they are they pass, and changed at one point they are refused where they are defined."
import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
import numpy as np, pytest
from bendml import attention, gpt2, llama
from bendml.shape import Arr, Mat, ShapeError, Vec, dims, typed
from bendml.shape.check import check_file

MUTANTS = {
    attention: [('q @ k.swapaxes(1, 2)', 'q @ k'), ('np.repeat(k, share, axis=0)', 'np.repeat(k, share, axis=1)'), ('len(q)//len(k)', 'len(k)'),
                ('x.reshape(len(x), heads, -1).swapaxes(0, 1)', 'x.reshape(len(x), heads, -1)'), ('x.swapaxes(0, 1).reshape(x.shape[1], -1)', 'x.reshape(x.shape[1], -1)'),
                ('np.concatenate((values, v), axis=1)', 'np.concatenate((values, v), axis=0)'), ('attend(q, keys, values)', 'attend(q, keys, v)'),
                ("where=['H % G == 0', 'N <= T']", "where='N <= T'")],
    gpt2: [('x @ layer.w.T', 'x @ layer.w'), ('3, axis=1))', '3, axis=0))'), ('@ model.tokens.T', '@ model.tokens'), ('model.positions[:len(ids)]', 'model.positions'),
           ('x.mean(axis=1', 'x.mean(axis=0'), ('block.up)), block.down)', 'block.down)), block.up)'), ('join_heads(attend(q, k, v)), block.proj', 'join_heads(attend(q, k, v)), block.qkv'),
           ('model.tokens[ids] +', 'model.positions[ids] +'), ("'T <= P', ", '')],
    llama: [('split_heads(x @ block.k.T, shared)', 'split_heads(x @ block.k.T, heads)'), ('@ block.o.T', '@ block.o'), ('@ down.T', '@ down'), ('silu(x @ gate.T)', 'silu(x @ up.T)'),
            ('@ model.head.T', '@ model.head'), ('rotate_pairs(split_heads(x @ block.q.T, heads), cos, sin)', 'rotate_pairs(x @ block.q.T, cos, sin)'),
            ('block.gate, block.up, block.down)', 'block.up, block.down, block.gate)'), ("'H % G == 0', 'D == 2*R', 'ids < V'", "'H % G == 0', 'ids < V'")],
}
CASES = [(module, old, new) for module, changes in MUTANTS.items() for old, new in changes]


def checked(module, tmp_path, old='', new=''):
    text = Path(inspect.getsourcefile(module)).read_text()
    assert not old or old in text, old
    (tmp_path/'changed.py').write_text(text.replace(old, new, 1) if old else text)
    return check_file(tmp_path/'changed.py', 'bendml.changed')


@pytest.mark.parametrize('module', MUTANTS, ids=lambda m: m.__name__)
def test_as_they_are_they_pass(module, tmp_path):
    found = checked(module, tmp_path)
    assert not found.refusals and len(found.reports) >= 4
    print(f'{module.__name__}: {len(found.reports)} functions, {sum(r.seconds for _, r in found.reports):.3f} s')


@pytest.mark.parametrize('module, old, new', CASES, ids=[f'{m.__name__.split(".")[-1]}: {new or "no " + old}' for m, old, new in CASES])
def test_a_change_is_refused(module, old, new, tmp_path):
    refusals = checked(module, tmp_path, old, new).refusals
    assert refusals
    print(str(refusals[0]).split('\n')[0])


def test_a_call_with_a_model_that_does_not_fit():
    "Also what a file's settings say is held against its arrays."
    c = gpt2.Config(2, 2, 64, vocab=50, context=16)
    model = gpt2.init(c)
    assert gpt2.forward(model, [1, 2, 3]).shape == (3, 50)
    for wrong in (model._replace(tokens=model.tokens[:, :32]), model._replace(blocks=(model.blocks[0], model.blocks[1]._replace(up=model.blocks[1].down))),
                  model._replace(config=gpt2.Config(2, 2, 64, vocab=50, context=20)), model._replace(blocks=[3])):
        with pytest.raises(ShapeError): gpt2.forward(wrong, [1, 2, 3])


# ---- what this needs of `@typed`: records with sizes, and any number of them

B, D, H = dims('B D H')

@dataclass(frozen=True)
class Sizes:
    heads: H
    width: D

class Layer(NamedTuple):
    w: Mat[D, D]
    b: Vec[D]

@typed
def run(x: Mat[B, D], layers: tuple[Layer, ...]) -> Mat[B, D]:
    for layer in layers: x = x @ layer.w + layer.b
    return x


def test_any_number_of_records():
    one = Layer(np.eye(3), np.ones(3))
    assert run.__shapes__.report().paths == 3   # none, one, and more
    for n in range(4): assert np.array_equal(run(np.zeros((2, 3)), (one,)*n), np.full((2, 3), n))
    for wrong in ((one, Layer(np.eye(3), np.ones(4))), (Layer(np.eye(4), np.ones(4)),), one.w, (one.w,), 3):
        with pytest.raises(ShapeError): run(np.zeros((2, 3)), wrong)

    @typed
    def twice(x: Mat[B, D], layers: tuple[Layer, ...]) -> Mat[B, D]: return run(run(x, layers), layers)
    with pytest.raises(ShapeError, match='layer'):
        @typed
        def bad(x: Mat[B, D], layers: tuple[Layer, ...]) -> Mat[B, D]:
            for layer in layers: x = np.concatenate((x, layer.w))
            return x
    with pytest.raises(ShapeError):
        @typed
        def other(x: Mat[B, H], layers: tuple[Layer, ...]) -> Mat[B, H]: return run(x, layers)


def test_sizes_inside_of_a_record():
    @typed(where='D % H == 0')
    def split(x: Mat[B, D], c: Sizes) -> Arr[B, H, 'D//H']: return x.reshape(len(x), c.heads, -1)
    assert split(np.zeros((5, 6)), Sizes(2, 6)).shape == (5, 2, 3)
    for wrong in (Sizes(4, 6), Sizes(2, 8), Sizes('2', 6)):
        with pytest.raises(ShapeError): split(np.zeros((5, 6)), wrong)
    with pytest.raises(ShapeError):
        @typed(where='D % H == 0')
        def bad(x: Mat[B, D], c: Sizes) -> Arr[B, H, 'D//H']: return x.reshape(len(x), c.width, -1)


def test_a_factor_is_learnt_wherever_its_name_stands():
    "`H` comes after the product that it is a factor of."
    @typed
    def split(x: Mat[B, 'H*D'], heads: H) -> Arr[B, H, D]: return x.reshape(len(x), heads, -1)
    @typed
    def caller(x: Mat[B, 'K*L'], k: dims('K')[0]) -> Arr[B, 'K', 'L']: return split(x, k)
    assert caller(np.zeros((5, 6)), 3).shape == (5, 3, 2)
