"The laws of byte-pair encoding: proved, confirmed, and noticed when they are broken. PYTEST_DONT_REWRITE"
import random

import pytest

from bendml import bpe
from bendml.bpe import B, Bytes, M, Merge, dictionary, merges, ranks, trained
from bendml.laws import Law, prove, to_list
from bendml.laws.guards import disagreement
from bendml.laws.read import function_of
from bendml.nat import nat
from test_widgets import in_node

LAWS = {name: law for module in (bpe, trained, ranks, dictionary, merges) for name, law in vars(module).items() if isinstance(law, Law) and law.__module__ == module.__name__}
ASKED = ('roundtrip roundtrip_trained train_wf vocab_bound dec_append decode_bytes loop_is_spec rank_first_is_in_order rank_all_is_in_order dictionary_is_in_order '
         'trained_dictionary rank_first_roundtrip token_number number_token gpt2_byte_id gpt2_id_byte read_show read_valid odd_refused even_accepted file_roundtrip').split()


@pytest.mark.parametrize('name', LAWS)
def test_law(name): assert prove(LAWS[name]).verdict == 'confirmed'


def test_what_was_asked_is_there(): assert set(ASKED) <= set(LAWS)


def tokens(s: str): return to_list([B(b) for b in s.encode()])
def number(x): return x.n if isinstance(x, B) else 256 + x.k
def items(s): return [] if not s.__match_args__ else [s.head, *items(s.tail)]


def test_the_textbook_example():
    table = bpe.train(nat(3), tokens('aaabdaaabac'))
    assert [number(x) for x in items(bpe.encode(table, tokens('aaabdaaabac')))] == [258, 100, 258, 97, 99]
    assert (table.older.older.a, table.older.a, table.a) == (B(97), M(0), M(1))


def test_overlaps():
    assert bpe.count(B(97), B(97), tokens('aaa')) == 2
    assert bpe.merge(0, B(97), B(97), tokens('aaa')) == to_list([M(0), B(97)])


def test_a_table_that_is_not_well_formed():
    "Without well-formedness, the two orders differ: the hypothesis is needed."
    table = Merge(1, B(97), B(98), Merge(0, M(1), B(99), Bytes()))
    assert not trained.wf(table) and bpe.encode(table, tokens('abc')) == to_list([M(1), B(99)]) and ranks.rank_first(nat(3), table, tokens('abc')) == to_list([M(0)])


@pytest.mark.parametrize('function', [bpe.merge, bpe.encode, bpe.decode, bpe.best, ranks.pick, dictionary.scan, merges.numbers, merges.pairs], ids=lambda f: f.__name__)
def test_reflected_functions_run_alike(function): assert disagreement(function_of(function)) is None


def test_a_files_refusals():
    read = lambda s: merges.read(to_list([ord(c) for c in s]))
    assert read('97 97\n256 98') == merges.Good(merges.Line(97, 97, merges.Line(256, 98, merges.End())))
    for bad in ('104 101 256', '104 101 300 108', '104 101 99999 108'): assert read(bad) == merges.Malformed()


def test_the_widget_is_the_specification():
    rng = random.Random(2)
    texts = ['aaabdaaabac', '', 'a', 'aaaa'] + [''.join(rng.choice('abc') for _ in range(rng.randint(2, 30))) for _ in range(20)]
    answers = in_node('bpe', f'{[list(t.encode()) for t in texts]}.map(b => w.train(b, 5))')
    for text, got in zip(texts, answers):
        table, pairs = bpe.train(nat(5), tokens(text)), []
        ids = [number(x) for x in items(bpe.encode(table, tokens(text)))]
        while table != Bytes(): pairs, table = [[number(table.a), number(table.b)], *pairs], table.older
        assert [m[:2] for m in got['merges']] == pairs and got['ids'] == ids
