"The tokenizer against tiktoken, regular expressions, plain loops and its own specification."
import base64, itertools, json, os, random, re, struct, subprocess, sys, threading, time
from functools import cache
from pathlib import Path

import numpy as np, pytest
from click.testing import CliRunner
from hypothesis import given, settings, strategies as st

from bendml import bpe
from bendml.bpe import dictionary
from bendml.data import fetch
from bendml.laws import to_list
from bendml.nat import nat
from bendml.cli import main
from bendml.tokenizer import TokenError, Tokenizer, Vocab, VocabError
from bendml.tokenizer.commands import detokenize, tokenize, train_tokenizer
from bendml.tokenizer.encode import to_utf8
from bendml.tokenizer.chars import class_table, padded, settled
from bendml.tokenizer.formats import read_tiktoken
from bendml.tokenizer.split import O200K, PATTERNS, split, split_all
from bendml.tokenizer.vocab import BYTES, checked, to_bytes

# --- oracles and texts

POOLS = [range(32, 127), range(0xA0, 0x250), range(0x300, 0x370), range(0x370, 0x600), range(0x2000, 0x2C00),
         range(0x3000, 0x3100), range(0xFF00, 0xFFF0), range(0x1F300, 0x1FB00), range(0x4E00, 0x4F00)]
PROSE = [  # the beginning of the Universal Declaration of Human Rights, in ten scripts
    'All human beings are born free and equal in dignity and rights.', 'Все люди рождаются свободными и равными в своем достоинстве и правах.',
    'Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα.', '人人生而自由，在尊严和权利上一律平等。',
    'すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。', '모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다.',
    'يولد جميع الناس أحراراً متساوين في الكرامة والحقوق.', 'כל בני אדם נולדו בני חורין ושווים בערכם ובזכויותיהם.',
    'सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है।', 'มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ']


def oracle(name: str = 'gpt2'):
    "tiktoken's GPT-2, its ranks from the same files as ours."
    import tiktoken, tiktoken_ext.openai_public as public
    vocab = Tokenizer.gpt2().vocab
    special = {'<|endoftext|>': 50256} if name == 'gpt2' else {}
    return tiktoken.Encoding(name, pat_str=public.r50k_pat_str, mergeable_ranks={t: i for i, t in enumerate(vocab.tokens) if t}, special_tokens=special)


@cache
def code(size: int) -> str:
    "The first `size` characters of Python's own library."
    text, folder = [], Path(os.__file__).parent
    for path in sorted(folder.rglob('*.py')):
        if 'site-packages' in path.parts: continue
        try: text.append(path.read_text(encoding='utf-8'))
        except UnicodeDecodeError: continue
        size -= len(text[-1])
        if size <= 0: break
    joined = ''.join(text)
    return joined[:len(joined) + min(size, 0)]


@cache
def mixed(size: int) -> str:
    "Code, prose in ten scripts and emoji, about `size` bytes, the same each time."
    rng, parts, left, lines = random.Random(7), [], size, code(size//2).splitlines(keepends=True)
    words = [w for line in PROSE for w in line.split()]
    letters = [c for line in PROSE for c in line if not c.isspace()]
    while left > 0:
        kind = rng.random()
        if kind < 0.5 and lines: part = ''.join(lines[k:k + 40]) if (k := rng.randrange(len(lines))) >= 0 else ''
        elif kind < 0.8: part = ' '.join(rng.choice(words) for _ in range(60)) + rng.choice(['.\n', '! ', '?\n\n', '\r\n', ' '])
        elif kind < 0.95: part = ''.join(rng.choice(letters) for _ in range(rng.randint(1, 30))) + ' '
        else: part = ''.join(chr(rng.choice(POOLS[7])) for _ in range(rng.randint(1, 8))) + rng.choice(['', ' ', '\u200d', '\ufe0f'])
        parts.append(part)
        left -= len(part.encode())
    return ''.join(parts)


def unicode_texts(seed: int, count: int, longest: int):
    "Random texts from all planes of Unicode, without surrogates."
    rng = random.Random(seed)
    planes = [range(p << 16, (p + 1) << 16) for p in range(17)]
    for _ in range(count):
        pools = rng.sample(POOLS, 3) + [rng.choice(planes), [32, 10, 39, 9, 0x3000, 0xA0]]
        points = (rng.choice(rng.choice(pools)) for _ in range(rng.randint(1, longest)))
        yield ''.join(chr(p) for p in points if not 0xD800 <= p < 0xE000)


FIXED = ['Hello, world!', 'The quick brown fox jumps over the lazy dog.', "I'm you're he'll we've they'd it's can't", "I'M YOU'RE IT'S", "'sup 'tis 'll",
         'a b', 'a  b', 'a   b', 'Hello  World', 'a \n b', ' leading', 'trailing ', '  both  ', '\t\ttabs\t', '\n\n\n', '\r\n\r\n', 'x = 1\n\n    y = 2\n',
         '2024', '1234567', '3.14', '1,000,000', '0'*16, '0'*17, '0'*20, 'def f(x):\n    return x**2  # square\n', '{"a": [1, 2, null]}', '<p class="x">&amp;</p>',
         'naïve café Ångström', 'Привет, мир', 'Ελληνικά', '你好，世界', 'こんにちは', '안녕하세요', 'مرحبا ١٢٣', 'नमस्ते १२३', '—–… ‘quoted’ “double”', '€£¥ ₿', '→ ∑ ∀x∈ℝ',
         '┌──┐ │ └──┘', '😀👍🏽🇫🇷👩‍👩‍👧', 'a\u00a0b\u3000c\u2003d', 'ｆｕｌｌ', 'e\u0301 a\u0300', 'x² ½ ① Ⅳ', '«guillemets» • bullets', 'zero\u200bwidth', 'x'*300, 'ab'*150, 'word '*120]
ODD = ['', ' ', 'a', '\n']


@pytest.fixture(scope='module')
def gpt2(): return Tokenizer.gpt2()


@pytest.fixture(scope='module')
def smollm2(): return Tokenizer.load(fetch('smollm2')/'SmolLM2-135M-Instruct.Q4_1.gguf')


# --- splitting

def known_alike() -> np.ndarray:
    "The code points of the same class here and in the `regex` module, which may know a later Unicode."
    import regex
    here, every = class_table(True)[256:], [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    there = np.zeros(0x110000, np.uint8)
    for kind, expression in enumerate((r'\p{N}', r'\s', r'\p{M}', r'[\p{Lu}\p{Lt}]', r'\p{Ll}', r'[\p{Lm}\p{Lo}]'), 1):
        there[[ord(c) for c in regex.findall(expression, ''.join(every))]] = kind
    differ = here != there
    assert (here[differ] == 0).sum() >= differ.sum() - 5 and differ.sum() < 40_000  # younger characters, of no class here
    return ~differ


def test_classes_are_tiktokens():
    "Every code point has the class that tiktoken's matcher gives it."
    import tiktoken
    every = ''.join(chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000)
    for kind, expression in enumerate((r'\p{N}', r'\s', r'\p{M}', r'[\p{Lu}\p{Lt}]', r'\p{Ll}', r'[\p{Lm}\p{Lo}]'), 1):
        matcher = tiktoken.Encoding('classes', pat_str=expression, mergeable_ranks={b: i for i, b in enumerate(BYTES)}, special_tokens={})
        found = bytes(matcher.encode_ordinary(every)).decode()
        assert [ord(c) for c in found] == np.flatnonzero(class_table(True)[256:] == kind).tolist()


def test_expressions_are_the_published_ones(monkeypatch):
    import tiktoken_ext.openai_public as public
    monkeypatch.setattr(public, 'load_tiktoken_bpe', lambda *_, **__: {})
    assert PATTERNS['cl100k'] == public.cl100k_base()['pat_str'] and PATTERNS['o200k'] == public.o200k_base()['pat_str']
    assert PATTERNS['gpt2'] == r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


@pytest.mark.slow
def test_split_is_the_regular_expression():
    import regex
    alike = known_alike()
    finds = {name: regex.compile(p).findall for name, p in PATTERNS.items()}
    letters = ["'", 's', 'L', 'l', 'é', 'ʰ', 'ǅ', '漢', '\u0301', '7', ' ', '\u3000', '\n', '!', '/', 'ſ']
    texts = itertools.chain(map(''.join, itertools.product(letters, repeat=4)), unicode_texts(1, 5000, 60), FIXED, ODD, [mixed(200_000)])
    for text in texts:
        text = ''.join(c for c in text if alike[ord(c)])
        for number, (name, find) in enumerate(finds.items()):
            data = text.encode()
            ends = split_all(padded(data), len(data), number, class_table(number == O200K)).tolist()
            assert [data[i:j].decode() for i, j in zip([0, *ends], ends)] == find(text), (name, text)


def test_smollm2_is_digits_and_then_gpt2():
    import regex
    for text in [*unicode_texts(2, 300, 40), 'a  12 b 3', "it's 1'2"]:
        text = ''.join(c for c in text if class_table(True)[256 + ord(c)])
        parts = regex.findall(r'\p{N}|[^\p{N}]+', text)
        assert [w.decode() for w in split(text, 'smollm2')] == [w for p in parts for w in regex.findall(PATTERNS['gpt2'], p)]


@settings(deadline=None)
@given(st.binary(max_size=60), st.sampled_from([*PATTERNS]))
def test_split_loses_no_byte(data, name):
    words = split(data, name)
    assert b''.join(words) == data and all(words)


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="aB1'sſ \n\u3000!é漢\u0301/", max_size=40), st.text(alphabet="aB1'sl \n\u3000!é漢\u0301/", max_size=12), st.sampled_from([*PATTERNS]))
def test_what_is_settled_stays(text, more, name):
    data = text.encode()
    bound = settled(padded(data), len(data), class_table(name == 'o200k'))
    ends = lambda words: set(np.cumsum([0, *map(len, words)]).tolist())
    assert {e for e in ends(split(data, name)) if e <= bound} == {e for e in ends(split(data + more.encode(), name)) if e <= bound}


# --- encoding

@pytest.mark.parametrize('text', FIXED + ODD, ids=ascii)
def test_fixed_texts(gpt2, text):
    assert gpt2.encode(text) == oracle().encode_ordinary(text)
    assert gpt2.decode(gpt2.encode(text)) == text


def test_thirty_random_texts(gpt2):
    rng, theirs = random.Random(7), oracle()
    for _ in range(30):
        text = ''.join(chr(rng.choice(rng.choice(POOLS))) for _ in range(rng.randint(1, 40)))
        assert gpt2.encode(text) == theirs.encode_ordinary(text)


@pytest.mark.slow
def test_twenty_megabytes(gpt2):
    text, theirs = mixed(20_000_000), oracle()
    assert len(text.encode()) >= 20_000_000
    ids = gpt2.encode(text, as_array=True)
    assert np.array_equal(ids, theirs.encode_to_numpy(text))
    assert gpt2.decode(ids) == text


@pytest.mark.slow
def test_a_hundred_thousand_random_strings(gpt2):
    theirs = oracle()
    for text in unicode_texts(3, 100_000, 24): assert gpt2.encode(text) == theirs.encode_ordinary(text), ascii(text)


def test_lone_surrogates(gpt2):
    for text in ('a\ud83d', '\ude00b', 'x\ud83d\ude00y', '\udfff\ud800'): assert gpt2.encode(text) == oracle().encode_ordinary(text)
    assert gpt2.decode(gpt2.encode('a\ud83d')) == 'a\ufffd'


@settings(deadline=None)
@given(data=st.binary(max_size=200))
def test_any_bytes_come_back(data):
    gpt2 = Tokenizer.gpt2() if not hasattr(test_any_bytes_come_back, 'it') else test_any_bytes_come_back.it
    test_any_bytes_come_back.it = gpt2
    assert gpt2.decode_bytes(gpt2.encode(data)) == data


CASES = {'👍': [41840, 235], '歪': [29826, 103], '한': [47991, 250], 'a b': [64, 275], 'a  b': [64, 220, 275], 'a   b': [64, 220, 220, 275], 'Hello  World': [15496, 220, 2159],
         'a \n b': [64, 220, 198, 275], "don't": [9099, 470], "DON'T": [41173, 6, 51], "I'LL": [40, 6, 3069], "we'd we'D WE'd": [732, 1549, 356, 6, 35, 12887, 1549],
         '’s': [447, 247, 82], "'sup": [338, 929], "x='s'": [87, 11639, 82, 6], "he'll said": [258, 1183, 531], '2024': [1238, 1731], '1234567': [10163, 2231, 3134],
         '0'*16: [25645], '0'*17: [8269, 10535, 830], '0'*20: [25645, 2388], '3.14': [18, 13, 1415], 'a'*1000: [24794]*250}

@pytest.mark.parametrize('text', CASES, ids=lambda t: ascii(t[:12]))
def test_cases(gpt2, text): assert gpt2.encode(text) == CASES[text]


def test_cases_of_splitting():
    for text, words in {'a  b': 'a| | b', 'a \n b': 'a| \n| b', '1234567': '1234567', "he'll said": "he|'ll| said", "DON'T": "DON|'|T"}.items(): assert split(text) == words.encode().split(b'|')
    assert split('1234567', 'cl100k') == [b'123', b'456', b'7'] and split('12', 'smollm2') == [b'1', b'2']


def test_long_runs(gpt2):
    assert gpt2.encode('a'*999)[-2:] == [24794, 46071] and len(gpt2.encode('_'*1000)) == 17


def test_special_tokens(gpt2):
    text = 'hello <|endoftext|>'
    with pytest.raises(TokenError, match=r"<\|endoftext\|>"): gpt2.encode(text)
    with pytest.raises(TokenError, match=r"<\|endoftext\|>"): gpt2.encode(text, disallowed_special={'<|endoftext|>'})
    assert gpt2.encode('<|endoftext|>', disallowed_special=()) == [27, 91, 437, 1659, 5239, 91, 29]
    assert gpt2.encode(text, disallowed_special=()) == [31373, 1279, 91, 437, 1659, 5239, 91, 29]
    assert gpt2.encode(text, allowed_special='all') == gpt2.encode(text, allowed_special={'<|endoftext|>'}) == [31373, 220, 50256]
    with pytest.raises(TokenError, match='not a special token'): gpt2.encode('x', allowed_special={'<|nothing|>'})


def test_parts_of_characters(gpt2):
    assert gpt2.decode_bytes([41840]) == b'\xf0\x9f\x91' and gpt2.decode_bytes([29826]) == '歪'.encode()[:2]
    assert gpt2.decode([41840]) == '\ufffd'
    with pytest.raises(UnicodeDecodeError): gpt2.decode([41840], errors='strict')
    stream = gpt2.stream_decoder()
    assert [stream.feed(i) for i in gpt2.encode('a👍 한!')] == ['a', '', '👍', ' ', '', '한', '!'] and stream.finish() == ''
    assert stream.feed(41840) == '' and stream.finish() == '\ufffd'


def test_offsets(gpt2):
    for text in ('héllo wörld', 'a👍b', '', 'x\ud800y'):
        ids, parts = gpt2.offsets(text)
        assert ids == gpt2.encode(text) and len(parts) == len(ids)
        assert all(0 <= i < j <= len(text) for i, j in parts) and {k for i, j in parts for k in range(i, j)} == set(range(len(text)))
        assert parts == sorted(parts)
    rng = random.Random(9)
    for _ in range(100):
        text = ''.join(rng.choice(['a', 'é', '漢', '😀', '\ud83d', '\ude00', ' ', '\n']) for _ in range(rng.randint(0, 12)))
        ids, parts = gpt2.offsets(text)
        assert {k for i, j in parts for k in range(i, j)} == set(range(len(text))) and parts == sorted(parts)
        assert all(gpt2.decode_bytes([token]) in to_utf8(text[i:j]) for token, (i, j) in zip(ids, parts))
    assert gpt2.offsets('x\ud83d\ude00y')[1] == [(0, 1), (1, 3), (1, 3), (3, 4)]  # a pair, though in two halves, is one character
    assert gpt2.offsets('a👍')[1] == [(0, 1), (1, 2), (1, 2)] and gpt2.offsets('é'.encode())[1] == [(0, 2)]
    assert gpt2.count('Hello  World') == 3


def test_refusals(gpt2, smollm2):
    for bad in (-1, 50257, 10**12):
        with pytest.raises(TokenError, match='no such id'): gpt2.decode([bad])
    for bad in ([1.5], ['a'], [[1, 2]], [None], ['1']):
        with pytest.raises(TypeError, match='not a list of ids'): gpt2.decode(bad)
    for bad in (5, None, ['a'], object()):
        with pytest.raises(TypeError, match='not a text'): gpt2.encode(bad)
    with pytest.raises(TokenError, match='a byte without a token\n- expected : .*\n- observed : 0xff'): smollm2.encode(b'abc\xff')
    hole = Tokenizer(Vocab(BYTES, (), {'<end>': 300}))
    with pytest.raises(TokenError, match='id not in use'): hole.decode([280])
    assert hole.decode([97, 300]) == 'a<end>' and gpt2.decode([]) == '' and gpt2.decode(np.array([], np.int64)) == ''


@pytest.mark.parametrize('unit', ['a', ' ', 'ab', '😀', '\u0301'], ids=ascii)
@pytest.mark.parametrize('name', ['gpt2', 'smollm2'])
def test_long_words_take_time_in_proportion(request, name, unit):
    tokenizer = request.getfixturevalue(name)
    texts = [unit*(size//len(unit.encode())) for size in (1_000_000, 2_000_000)]
    def seconds(text):
        start = time.process_time()  # not what neighbours take
        tokenizer.encode(text, as_array=True)
        return time.process_time() - start
    seconds(texts[0])
    one, two = map(min, zip(*[[seconds(t) for t in texts] for _ in range(5)]))
    assert one < 1 and two <= 2.3*one + 0.02


def test_long_words_are_merged_like_short_ones(gpt2):
    theirs = oracle()
    rng = random.Random(5)
    for size in (100, 127, 128, 129, 130, 256, 257, 300, 1000):
        for letters in ('ab', 'etaoinshrdlu', 'xX', 'a'):
            text = ''.join(rng.choice(letters) for _ in range(size))
            assert gpt2.encode(text) == theirs.encode_ordinary(text)


def test_memory_full(gpt2):
    "Forgetting words changes nothing."
    rng = random.Random(1)
    text = ' '.join(''.join(rng.choice('abcdefghij') for _ in range(rng.randint(5, 9))) for _ in range(150_000))
    assert np.array_equal(gpt2.encode(text, as_array=True), oracle().encode_to_numpy(text))


def test_batch_and_threads(gpt2):
    text = mixed(3000)
    texts = [text[k:k + 200] for k in range(0, 2000, 20)]
    expected = [gpt2.encode(t) for t in texts]
    assert gpt2.encode_batch(texts, threads=4) == expected and gpt2.encode_batch([]) == []
    assert [a.tolist() for a in gpt2.encode_batch(iter(texts), as_array=True)] == expected
    again = ['', *texts, *texts]
    for allowed in ((), 'all'):
        arrays = gpt2.encode_batch(again, as_array=True, threads=2, allowed_special=allowed)
        for k, a in enumerate(arrays): a[:] = k   # each is its own
        assert all((a == k).all() for k, a in enumerate(arrays)) and gpt2.encode_batch(texts) == expected
    with pytest.raises(TokenError): gpt2.encode_batch(['a', '<|endoftext|>'])
    results = []
    threads = [threading.Thread(target=lambda: results.append([gpt2.encode(t) for t in texts])) for _ in range(6)]
    for t in threads: t.start()
    for t in threads: t.join()
    assert results == [expected]*6


@pytest.mark.parametrize('block', [1, 7, 1000, 1 << 20])
@pytest.mark.parametrize('name', ['gpt2', 'smollm2'])
def test_files(request, tmp_path, name, block):
    tokenizer = request.getfixturevalue(name)
    special = next(iter(tokenizer.vocab.special))
    text = (mixed(3000) + '   \n\n  ' + special + "a'll" + special + special + 'é'*50) * (1 if block == 1 else 3)
    (tmp_path/'text').write_text(text, encoding='utf-8', newline='')
    for allowed in ((), {special}):
        ids = tokenizer.encode_file(tmp_path/'text', tmp_path/'ids', block=block, allowed_special=allowed)
        assert ids.tolist() == tokenizer.encode(text, allowed_special=allowed, disallowed_special=()) and isinstance(ids, np.memmap) and ids.dtype == np.uint16


def test_a_large_vocabulary_takes_four_bytes_an_id(tmp_path):
    (tmp_path/'text').write_text('ab<end>c')
    for last, dtype in ((65_534, np.uint16), (65_535, np.uint32), (65_536, np.uint32)):
        ids = Tokenizer(Vocab(BYTES, (), {'<end>': last})).encode_file(tmp_path/'text', tmp_path/'ids', allowed_special='all', progress=False)
        assert ids.dtype == dtype and ids.tolist() == [97, 98, last, 99]


def test_an_empty_file(gpt2, tmp_path):
    (tmp_path/'text').touch()
    assert gpt2.encode_file(tmp_path/'text', tmp_path/'ids').tolist() == []


@pytest.mark.slow
def test_a_file_takes_constant_memory(tmp_path):
    (tmp_path/'text').write_bytes(b'the quick brown fox jumps over the lazy dog. '*2_000_000)
    program = ("import sys, resource; from bendml.tokenizer import Tokenizer; g = Tokenizer.gpt2(); g.encode('warm up');"
               "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss; g.encode_file(*sys.argv[1:], progress=False);"
               "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)")
    run = subprocess.run([sys.executable, '-c', program, tmp_path/'text', tmp_path/'ids'], capture_output=True, text=True, check=True)
    assert int(run.stdout) < 60_000  # KiB, for 90 MB of text


# --- training

def plain(words, merges):
    "Count, take the most frequent pair, of equals the first, merge; nothing else."
    words, found = [list(w) for w in words], []
    for new in range(256, 256 + merges):
        counts = {}
        for w in words:
            for pair in zip(w, w[1:]): counts[pair] = counts.get(pair, 0) + 1
        if not counts: break
        a, b = max(counts, key=counts.get)
        found.append((a, b, new))
        for w in words:
            if a not in w: continue
            out, i = [], 0
            while i < len(w):
                hit = i + 1 < len(w) and w[i] == a and w[i + 1] == b
                out.append(new if hit else w[i])
                i += 2 if hit else 1
            w[:] = out
    return tuple(found)


def tokens_of(data: bytes): return to_list([bpe.B(b) for b in data])
def number(x) -> int: return x.n if isinstance(x, bpe.B) else 256 + x.k
def items(s): return [] if not s.__match_args__ else [s.head, *items(s.tail)]
def merges_of(t) -> tuple: return () if t == bpe.Bytes() else merges_of(t.older) + ((number(t.a), number(t.b), 256 + t.k),)


def corpora():
    "80 random corpora of four kinds, and how many merges to learn from each."
    rng = random.Random(20261004)
    words = 'the and café naïve Übung мир привет 世界 こんにちは 안녕 déjà vu été ñandú 😀 👍🏽 a aa aaa to be or not is — € ½'.split(' ')[:25]
    for k in range(80):
        kind = k % 4
        if kind == 0: data = ''.join(rng.choice('abcde'[:rng.randint(1, 3)]) for _ in range(rng.randint(0, 60))).encode()
        elif kind == 1: data = ' '.join(rng.choice(words) for _ in range(rng.randint(1, 30))).encode()
        elif kind == 2: data = bytes(rng.randrange(256) for _ in range(rng.randint(0, 60)))
        else: data = (rng.choice(words) + ' ').encode()*rng.randint(1, 12)
        yield data, rng.randint(0, 60)


@pytest.mark.slow
def test_training_is_the_specification():
    sys.setrecursionlimit(10_000)
    for data, n in corpora():
        ours = Tokenizer.train(data, 256 + n, pattern=None, progress=False)
        assert ours.vocab.merges == merges_of(bpe.train(nat(n), tokens_of(data))) == plain([data], n)
        assert ours.decode_bytes(ours.encode(data)) == data


@pytest.mark.slow
@pytest.mark.parametrize('pattern', ['gpt2', None])
def test_training_is_a_plain_loop(pattern):
    text = code(1_000_000 if pattern else 100_000)
    data = text.encode()
    if pattern:
        words = {}
        for w in split(data): words[w] = words.get(w, 0) + 1
        expected = weighted(words, 200)
    else: expected = plain([data], 60)
    assert Tokenizer.train(text, 256 + len(expected), pattern=pattern, progress=False).vocab.merges == expected


def weighted(words: dict, merges: int):
    "`plain`, with each word once and its number of occurrences: the same counts, and the same order of first appearance."
    words, counted, found = [list(w) for w in words], list(words.values()), []
    for new in range(256, 256 + merges):
        counts = {}
        for w, n in zip(words, counted):
            for pair in zip(w, w[1:]): counts[pair] = counts.get(pair, 0) + n
        if not counts: break
        a, b = max(counts, key=counts.get)
        found.append((a, b, new))
        for w in words:
            i = 0
            while i < len(w) - 1:
                if w[i] == a and w[i + 1] == b: w[i:i + 2] = [new]
                i += 1
    return tuple(found)


def test_weighted_is_plain():
    for data, n in corpora():
        words = {}
        for w in split(data): words[w] = words.get(w, 0) + 1
        assert weighted(words, n) == plain(split(data), n)


@settings(max_examples=200, deadline=None)
@given(st.one_of(st.binary(max_size=80), st.text(alphabet='ab c', max_size=80).map(str.encode), st.text(max_size=30).map(str.encode)),
       st.integers(0, 40), st.sampled_from(['gpt2', 'o200k', None]))
def test_training_on_anything(data, n, pattern):
    assert Tokenizer.train(data, 256 + n, pattern=pattern, progress=False).vocab.merges == plain(split(data, pattern) if pattern else [data], n)


def test_training_is_hugging_faces_until_a_tie():
    "The same merges as `tokenizers` learns, up to the first place where two pairs are equally frequent; there, its rule is another.\n\n    Without doubled characters, since it counts overlaps in a way of its own."
    from tokenizers import Tokenizer as Other, models, pre_tokenizers, trainers
    lines = re.sub(r'(.)\1+', r'\1', code(400_000), flags=re.S).splitlines(keepends=True)
    other = Other(models.BPE())
    other.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    other.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=556, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    theirs = [tuple(map(to_bytes, pair)) for pair in json.loads(other.to_str())['model']['merges']]
    vocab = Tokenizer.train(lines, 556, progress=False).vocab
    ours = [(vocab.tokens[a], vocab.tokens[b]) for a, b, _ in vocab.merges]
    alike = next((k for k in range(300) if ours[k] != theirs[k]), 300)
    assert len(ours) == len(theirs) == 300 and alike >= 20
    if alike < 300:
        so_far, counts = Tokenizer(Vocab(vocab.tokens[:256 + alike], vocab.merges[:alike])), {}
        for ids in so_far.encode_batch([w for line in lines for w in split(line)]):
            for a, b in zip(ids, ids[1:]): counts[a, b] = counts.get((a, b), 0) + 1
        counts = {tuple(vocab.tokens[i] for i in pair): n for pair, n in counts.items()}
        assert counts[ours[alike]] == counts[theirs[alike]] == max(counts.values())


def test_training_from_files_and_iterators(tmp_path):
    text = mixed(100_000)
    (tmp_path/'one').write_text(text, encoding='utf-8', newline='')
    whole = Tokenizer.train(text, 500, progress=False)
    assert Tokenizer.train(tmp_path/'one', 500, progress=False).vocab == whole.vocab == Tokenizer.train(text.encode(), 500, progress=False).vocab
    half = text.splitlines(keepends=True)
    assert Tokenizer.train(iter(half), 500, progress=False).vocab == Tokenizer.train(half, 500, progress=False).vocab
    assert Tokenizer.train([tmp_path/'one', 'more'], 500, progress=False).vocab == Tokenizer.train([text, 'more'], 500, progress=False).vocab


def test_special_tokens_are_not_learned():
    ours = Tokenizer.train('abab<|x|>abab<|x|>'*10, 400, special_tokens=['<|x|>'], progress=False)
    assert not any(b'<' in t and len(t) > 1 for t in ours.vocab.tokens) and ours.vocab.special == {'<|x|>': len(ours.vocab.tokens)}
    assert ours.decode(ours.encode('ab<|x|>', allowed_special='all')) == 'ab<|x|>'


def test_training_refuses():
    with pytest.raises(TokenError, match='vocabulary too small'): Tokenizer.train('a', 200)
    with pytest.raises(TokenError, match='vocabulary too small'): Tokenizer.train('a', 256, special_tokens=['x'])
    with pytest.raises(TokenError, match='unknown pattern'): Tokenizer.train('a', 300, pattern='gpt5')
    with pytest.raises(TypeError, match='not a text'): Tokenizer.train([5], 300)
    with pytest.raises(FileNotFoundError): Tokenizer.train(Path('/nowhere'), 300)


def test_the_textbook_example():
    for n, ids in ((3, [258, 100, 258, 97, 99]), (1, [256, 97, 98, 100, 256, 97, 98, 97, 99])):
        assert Tokenizer.train('aaabdaaabac', 256 + n, progress=False).encode('aaabdaaabac') == ids
    assert Tokenizer.train('aaabdaaabac', 259, progress=False).vocab.tokens[256:] == (b'aa', b'aaa', b'aaab')
    assert Tokenizer.train('aaaa', 258, progress=False).encode('aaaa') == [257]
    assert Tokenizer(Vocab(BYTES + (b'aa',), ((97, 97, 256),))).encode('aaa') == [256, 97]


# --- the engine and the specification

@st.composite
def tables(draw):
    "A random well-formed table over few letters, with the parts in any order of age, as merges and as a `Vocab`."
    tokens, merges, pairs = list(BYTES), [], set()
    pool = draw(st.lists(st.sampled_from(b'abc'), min_size=1, max_size=3, unique=True))
    for _ in range(draw(st.integers(0, 12))):
        a, b = draw(st.sampled_from(pool)), draw(st.sampled_from(pool))
        if (a, b) in pairs or tokens[a] + tokens[b] in tokens: continue
        pairs.add((a, b))
        merges.append((a, b, len(tokens)))
        pool.append(len(tokens))
        tokens.append(tokens[a] + tokens[b])
    return Vocab(tuple(tokens), tuple(merges), {}, None)


def specified(vocab: Vocab):
    "The table of the specification."
    part, table = (lambda i: bpe.B(i) if i < 256 else bpe.M(i - 256)), bpe.Bytes()
    for a, b, new in vocab.merges: table = bpe.Merge(new - 256, part(a), part(b), table)
    return table


def agree(vocab: Vocab, data: bytes) -> list[int]:
    "What the specification's encoder gives, and both ways of the engine; the specification's decoder gives the text back."
    from bendml.tokenizer.merge import buckets, look, merge_long, merge_rare, merge_short, pair_table
    table, (pairs, made), queue, n = specified(vocab), pair_table(np.array(vocab.merges, np.int32)), buckets(len(vocab.merges)), len(data)
    encoded = bpe.encode(table, tokens_of(data))
    expected, short = [number(x) for x in items(encoded)], np.array(list(data), np.int64)
    ranks = np.array([look(pairs, a, b) for a, b in zip(data, data[1:])], np.int64)
    assert short[:merge_short(short, ranks, np.empty(1, np.int64), n, pairs, made)].tolist() == expected
    for way in (merge_long, merge_rare):
        tokens = np.array(list(data), np.int32)
        assert tokens[:way(tokens, n, *queue, pairs, made)].tolist() == expected
    assert (queue.heads == -1).all() and not queue.flags.any()
    assert [b.n for b in items(bpe.decode(table, encoded))] == list(data)
    return expected


@settings(max_examples=500, deadline=None)
@given(tables(), st.lists(st.sampled_from(b'abcd'), max_size=20).map(bytes))
def test_the_engine_is_the_specification(vocab, data):
    by_dictionary = dictionary.by_dictionary(nat(len(data)), specified(vocab), tokens_of(data))
    assert [number(x) for x in items(by_dictionary)] == agree(vocab, data)


@pytest.mark.slow
def test_the_engine_is_the_specification_ten_thousand_times():
    "Random tables in which parts may be of any age, and random texts."
    rng = random.Random(6)
    for _ in range(10_000):
        tokens, merges, pool = list(BYTES), [], list(b'abc'[:rng.randint(1, 3)])
        for _ in range(rng.randint(0, 12)):
            a, b = rng.choice(pool), rng.choice(pool)
            if tokens[a] + tokens[b] in tokens[256:]: continue
            merges.append((a, b, len(tokens)))
            pool.append(len(tokens))
            tokens.append(tokens[a] + tokens[b])
        agree(Vocab(tuple(tokens), tuple(merges), {}, None), bytes(rng.choice(b'abcd'[:rng.randint(1, 4)]) for _ in range(rng.randint(0, 16))))


@settings(max_examples=100, deadline=None)
@given(tables(), st.binary(max_size=300))
def test_a_tokenizer_of_any_table(vocab, data):
    ours = Tokenizer(vocab)
    assert ours.decode_bytes(ours.encode(data)) == data


# --- vocabularies and files

def test_gpt2_is_what_tiktoken_reads_from_the_files(gpt2, monkeypatch):
    "Its own reader, on the published vocab.bpe and encoder.json; the other tests give it our tokens."
    from tiktoken.load import data_gym_to_mergeable_bpe_ranks
    monkeypatch.setenv('TIKTOKEN_CACHE_DIR', '')   # read the files themselves
    folder = fetch('gpt2-bpe')
    theirs = data_gym_to_mergeable_bpe_ranks(str(folder/'vocab.bpe'), str(folder/'encoder.json'))
    assert len(theirs) == 50_256 and theirs == {t: i for i, t in enumerate(gpt2.vocab.tokens) if t}


def test_gpt2_ids_are_the_permutation(gpt2):
    from bendml.bpe.merges import gpt2_byte, gpt2_id
    assert [gpt2.vocab.tokens[gpt2_id(b)] for b in range(256)] == [*BYTES]
    assert all(gpt2.vocab.tokens[i] == bytes([gpt2_byte(i)]) for i in range(256))
    assert all(new == 256 + k for k, (_, _, new) in enumerate(gpt2.vocab.merges))


A, AA = (97, 97, 256), BYTES + (b'aa',)
MALFORMED = {
    'forward reference': Vocab(AA + (b'aaa',), ((256, 97, 257), A)), 'unknown id': Vocab(AA, ((97, 300, 256),)), 'duplicate pair': Vocab(AA + (b'ab',), (A, (97, 97, 257))),
    'duplicate id': Vocab(AA, (A, (97, 98, 256))), 'duplicate token': Vocab(AA + (b'aa',), (A, (97, 98, 257))), 'wrong token': Vocab(AA, ((97, 98, 256),)),
    'a token that nothing makes': Vocab(AA, ()), 'too large': Vocab(BYTES, (), {'x': 1 << 30}), 'empty special token': Vocab(BYTES, (), {'': 300})}

@pytest.mark.parametrize('problem', MALFORMED)
def test_malformed_tables(problem):
    with pytest.raises(VocabError, match=f'{problem}(.|\n)*- expected : (.|\n)*- observed : '): Tokenizer(MALFORMED[problem])


def test_special_ids_are_their_own():
    with pytest.raises(VocabError, match='duplicate id'): checked(Vocab(BYTES, (), {'x': 97}))
    with pytest.raises(VocabError, match='duplicate id'): checked(Vocab(BYTES, (), {'x': 300, 'y': 300}))


def small() -> Tokenizer: return Tokenizer.train('the cat and the dog and the cow', 270, special_tokens=['<|end|>'], progress=False)


@pytest.mark.parametrize('name', ['folder', 'tokenizer.json', 'it.tiktoken'])
def test_there_and_back(tmp_path, name):
    ours = small()
    ours.save(tmp_path/name)
    again = Tokenizer.load(tmp_path/name, pattern='gpt2', special_tokens=ours.vocab.special)
    assert again.vocab == ours.vocab and again.encode('the cat<|end|>', allowed_special='all') == ours.encode('the cat<|end|>', allowed_special='all')
    assert sorted(p.name for p in tmp_path.iterdir()) == [name]


@pytest.mark.parametrize('pattern', [*PATTERNS, None])
def test_json_keeps_the_pattern(tmp_path, pattern):
    ours = Tokenizer.train('the cat and the dog', 260, pattern=pattern, progress=False)
    ours.save(tmp_path/'t.json')
    assert Tokenizer.load(tmp_path/'t.json').vocab == ours.vocab


def test_gpt2_saved_is_gpt2(gpt2, tmp_path):
    for name in ('both', 't.json'):
        gpt2.save(tmp_path/name)
        assert Tokenizer.load(tmp_path/name).vocab.merges == gpt2.vocab.merges
    gpt2.save(tmp_path/'g.tiktoken')
    again = Tokenizer.load(tmp_path/'g.tiktoken', pattern='gpt2', special_tokens=gpt2.vocab.special)
    assert again.vocab.merges == gpt2.vocab.merges and again.vocab.whole == () and again.vocab.special == gpt2.vocab.special


def test_a_gguf(smollm2):
    assert len(smollm2) == 49152 and smollm2.vocab.pattern == 'smollm2' and smollm2.vocab.special['<|im_start|>'] == 1
    text = '<|im_start|>user\nWhat is 12+34?<|im_end|>\n'
    ids = smollm2.encode(text, allowed_special='all')
    assert ids[0] == 1 and 2 in ids and smollm2.decode(ids) == text
    assert smollm2.decode(smollm2.encode('Hello, world! 1234')) == 'Hello, world! 1234'


def test_tokenizers_reads_what_we_write(smollm2, tmp_path):
    "SmolLM2 from its GGUF, written as tokenizer.json: Hugging Face's own library gives the same ids."
    from tokenizers import Tokenizer as Other
    smollm2.save(tmp_path/'t.json')
    theirs = Other.from_file(str(tmp_path/'t.json'))
    for text in [*FIXED, *ODD, *PROSE, mixed(30_000)]:
        assert smollm2.encode(text) == theirs.encode(text).ids, ascii(text[:80])


def test_whole_words():
    "tiktoken takes a word that is a token as that token, even if no merges lead to it; so do we, for its files."
    import tiktoken
    tokens = [*BYTES, b'ab', b'bc', b'abcd', b' x']
    vocab = tiktoken.Encoding('odd', pat_str=PATTERNS['gpt2'], mergeable_ranks={t: i for i, t in enumerate(tokens)}, special_tokens={})
    ours = Tokenizer(Vocab(*vars(read_from(tokens)).values()))
    for text in ('abcd', ' abcd', 'abcde', 'ab bcd abcd', ' x', 'abcd abcd'): assert ours.encode(text) == vocab.encode_ordinary(text)


def read_from(tokens):
    from bendml.tokenizer.vocab import from_tokens
    return from_tokens(tokens, {}, 'gpt2', 'here')


def test_several_pairs_for_one_token(tmp_path):
    "Some converters list every pair whose parts make a token; only one can be reached."
    ours = small()
    ours.save(tmp_path/'t.json')
    data = json.loads((tmp_path/'t.json').read_text())
    vocab = data['model']['vocab']
    data['model']['merges'] = [[w[:k], w[k:]] for w, i in sorted(vocab.items(), key=lambda x: x[1]) if i >= 256 for k in range(1, len(w)) if w[:k] in vocab and w[k:] in vocab]
    (tmp_path/'t.json').write_text(json.dumps(data))
    assert Tokenizer.load(tmp_path/'t.json').vocab.merges == ours.vocab.merges


def test_malformed_files(tmp_path, gpt2):
    good, path = small(), tmp_path/'t.json'
    good.save(path)
    text, data = path.read_text(), json.loads(path.read_text())
    model = data['model']
    bad = {'not JSON, or truncated': text[:-20], 'not UTF-8': text.encode()[:-2] + b'\xff}', 'not an object': '[]', 'nested too deeply': '['*100_000, 'not a BPE': json.dumps(data | {'model': {'type': 'Unigram'}}),
           'duplicate key': '{"model": {}, "model": {}}', 'normalizer is not supported': json.dumps(data | {'normalizer': {'type': 'NFC'}}), 'unknown pre-tokenizer': json.dumps(data | {'pre_tokenizer': None}),
           'malformed merge 0': json.dumps(data | {'model': model | {'merges': ['a']}}), 'unknown token in merge 0': json.dumps(data | {'model': model | {'merges': [['t', 'zzz']]}}),
           'duplicate id': json.dumps(data | {'model': model | {'vocab': model['vocab'] | {'Ġx': 97}}}), 'bad id': json.dumps(data | {'model': model | {'vocab': model['vocab'] | {'Ġx': -1}}}),
           'no merges': json.dumps(data | {'model': {k: v for k, v in model.items() if k != 'merges'}}), 'not a byte-level token': json.dumps(data | {'model': model | {'vocab': model['vocab'] | {'日本': 999}}}),
           'forward reference': json.dumps(data | {'model': model | {'merges': model['merges'][::-1]}}), 'malformed added_tokens': json.dumps(data | {'added_tokens': [5]})}
    for problem, content in bad.items():
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        with pytest.raises(VocabError, match=f'{problem}(.|\n)*- expected : (.|\n)*- observed : '): Tokenizer.load(path)


def test_malformed_tiktoken_files(tmp_path):
    path, line = tmp_path/'t.tiktoken', lambda t, i: base64.b64encode(t).decode() + f' {i}\n'
    for problem, content in {'malformed line 1': 'abc\n', 'duplicate id in line 2': line(b'a', 0) + line(b'b', 0), 'missing id': line(b'a', 1), 'duplicate token': line(b'a', 0) + line(b'a', 1),
                             'empty token': ' 0\n= 0\n'}.items():
        path.write_text(content)
        with pytest.raises(VocabError, match=problem if problem != 'empty token' else 'malformed line 1'): read_tiktoken(path)
    with pytest.raises(VocabError, match='does not say how words are cut'): Tokenizer.load(path)


def test_malformed_merges_files(tmp_path):
    small().save(tmp_path/'both')
    merges = tmp_path/'both/vocab.bpe'
    text = merges.read_text()
    for problem, content in {'malformed merge': text + 'odd\n', 'unknown token': text + 'the zebra\n', 'not UTF-8': b'\xff\xfe', 'forward reference': '\n'.join(text.split('\n')[::-1])}.items():
        merges.write_bytes(content if isinstance(content, bytes) else content.encode())
        with pytest.raises(VocabError, match=problem): Tokenizer.load(tmp_path/'both')


def test_malformed_ggufs(tmp_path):
    with open(fetch('smollm2')/'SmolLM2-135M-Instruct.Q4_1.gguf', 'rb') as f: head = f.read(3_000_000)
    path, rng = tmp_path/'m.gguf', random.Random(4)
    for size in (0, 3, 4, 23, 24, 100, 5000, 1_000_000):
        path.write_bytes(head[:size])
        with pytest.raises((VocabError, OSError)): Tokenizer.load(path)
    for _ in range(60):  # any byte of the beginning may be anything: a refusal by name, or a tokenizer
        damaged = bytearray(head)
        for _ in range(3): damaged[rng.randrange(4, 3000)] = rng.randrange(256)
        path.write_bytes(damaged)
        try: Tokenizer.load(path)
        except VocabError: pass
    path.write_bytes(head[:24] + struct.pack('<Q', 2**63) + head[32:])
    with pytest.raises(VocabError, match='truncated'): Tokenizer.load(path)


# --- hostile use

@pytest.mark.parametrize('call', [
    lambda g: g.encode('x', allowed_special='<|endoftext|>'), lambda g: g.encode('x', allowed_special=5), lambda g: g.encode('x', allowed_special=[5]),
    lambda g: g.encode('x', disallowed_special=['']), lambda g: g.encode('x', disallowed_special=b'all'), lambda g: g.encode_batch(['x', 5]), lambda g: g.encode_batch([['x']]),
    lambda g: g.decode(None), lambda g: g.decode('12'), lambda g: g.decode([[1], [2, 3]]), lambda g: g.decode([1.0]), lambda g: g.decode([True]), lambda g: g.decode(5),
    lambda g: g.decode(np.zeros((2, 2), int)), lambda g: g.decode(np.array(5)), lambda g: g.decode([2**70, 1.5]), lambda g: g.offsets(5), lambda g: g.count(None),
    lambda g: Tokenizer.train('x', 300, special_tokens='<|end|>'), lambda g: Tokenizer.train('x', 300, special_tokens=['']), lambda g: Tokenizer.train('x', 300, special_tokens=[5]),
    lambda g: Tokenizer.train('x', 300, special_tokens=None), lambda g: Tokenizer.train([['x']], 300)])
def test_wrong_types(gpt2, call):
    with pytest.raises(TypeError, match='- expected : (.|\n)*- observed : '): call(gpt2)


@pytest.mark.parametrize('call', [
    lambda g: g.decode([2**31]), lambda g: g.decode([2**63]), lambda g: g.decode([2**64, 1]), lambda g: g.decode([-2**70, 2**70]), lambda g: g.decode(np.array([2**64 - 1], np.uint64)),
    lambda g: g.encode_batch(['x'], threads=0), lambda g: g.encode_batch(['x'], threads=-1), lambda g: g.encode_batch(['x'], threads=1.5), lambda g: g.encode_file('/dev/null', '/dev/shm/no', block=0),
    lambda g: g.encode_file('/dev/null', '/dev/shm/no', block=-1), lambda g: Tokenizer.train('x', 10**12), lambda g: Tokenizer.train('x', 2**31), lambda g: Tokenizer.train('x', -1),
    lambda g: Tokenizer.train('x', 300.0), lambda g: Tokenizer.train('x', True), lambda g: Tokenizer.train('x', 257, special_tokens=['a', 'b'])])
def test_wrong_values(gpt2, call):
    with pytest.raises(TokenError, match='- expected : (.|\n)*- observed : '): call(gpt2)


@pytest.mark.parametrize('vocab', [
    5, None, Vocab(('a',), ()), Vocab(BYTES, ((97, 97),)), Vocab(BYTES, ([97, 97, 256],)), Vocab(BYTES, ((97, 97.0, 256),)), Vocab(BYTES, (), {5: 300}), Vocab(BYTES, (), {'x': 300.0}),
    Vocab(BYTES, (), {'x': True}), Vocab(BYTES, (), {'\ud800': 300}), Vocab(BYTES, (), {'x': -1}), Vocab(BYTES, (), {}, 'gpt2', (300,)), Vocab(BYTES, (), {}, 'gpt2', (-1,)),
    Vocab(BYTES + (b'aa',), ((-159, 97, 256),)), Vocab(BYTES, ((97, 97, 2**70),)), Vocab(BYTES, (), {'x': 2**70})], ids=lambda v: repr(v)[-60:])
def test_what_is_no_vocabulary(vocab):
    with pytest.raises(VocabError, match='- expected : (.|\n)*- observed : '): Tokenizer(vocab)


def test_an_unknown_pattern(tmp_path):
    with pytest.raises(VocabError, match='unknown pattern'): Tokenizer(Vocab(BYTES, (), {}, 'gpt5')).encode('x')
    small().save(tmp_path/'t.tiktoken')
    with pytest.raises(VocabError, match='unknown pattern'): Tokenizer.load(tmp_path/'t.tiktoken', pattern='gpt5')


@pytest.mark.parametrize('name', ['folder', 'tokenizer.json'])
def test_what_a_file_states_is_not_said_otherwise(tmp_path, name):
    small().save(tmp_path/name)
    for pattern in ('cl100k', 'gpt5', None):
        with pytest.raises(VocabError, match=f"how words are cut\n- expected : pattern='gpt2', or none given\n- observed : pattern={pattern!r}"):
            Tokenizer.load(tmp_path/name, pattern=pattern)
    for special in ({}, {'<|end|>': 5}, {'<|other|>': 269}):
        with pytest.raises(VocabError, match='which tokens are special\n- expected : (.|\n)*- observed : '): Tokenizer.load(tmp_path/name, special_tokens=special)
    assert Tokenizer.load(tmp_path/name, pattern='gpt2').vocab == small().vocab


def test_an_empty_table():
    nothing = Tokenizer(Vocab((), ()))
    assert nothing.encode('') == [] and nothing.decode([]) == '' and len(nothing) == 0 and nothing.encode_batch(['', '']) == [[], []]
    with pytest.raises(TokenError, match='a byte without a token'): nothing.encode('a')
    with pytest.raises(TokenError, match='no such id'): nothing.decode([0])


def test_special_tokens_that_overlap():
    "Of several that begin at one place, the longest; then on from its end. Zeros and characters of several bytes as well."
    names = ['<a>', '<a><b>', 'b><', '>', 'é', 'éa', '\0', '\0\0', ' ']
    ours = Tokenizer(Vocab(BYTES, (), {t: 300 + k for k, t in enumerate(names)}))
    longest_first = re.compile('|'.join(map(re.escape, sorted(names, key=len, reverse=True))) + '|.', re.S)
    parts = lambda text: [[300 + names.index(m)] if m in names else list(m.encode()) for m in longest_first.findall(text)]
    rng = random.Random(8)
    for _ in range(300):
        text = ''.join(rng.choice(['<a>', '<b>', '<', 'a', 'b', '>', 'é', '\0', ' ', '\n', '漢']) for _ in range(rng.randint(0, 12)))
        ids = ours.encode(text, allowed_special='all')
        assert ids == sum(parts(text), []) and ours.decode(ids) == text
    with pytest.raises(TokenError, match="in the text"): ours.encode('x<a><b>', allowed_special=['é'])


def test_zeros(gpt2):
    for data in (b'\0', b'a\0b', b'\0'*1000, bytes(range(256))*3, b'\xff'*500, b'\xf0\x9f', 'é'.encode()[:1]):
        assert gpt2.decode_bytes(gpt2.encode(data)) == data and gpt2.encode_batch([data, b'', data], threads=2)[2] == gpt2.encode(data)
    assert gpt2.encode('\0 \0') == oracle().encode_ordinary('\0 \0')


def test_what_comes_from_outside_may_fail(gpt2):
    "An iterator that raises: its own error, and everything can be used again."
    def failing(first):
        yield first
        raise RuntimeError('gone')
    for use in (lambda: gpt2.encode_batch(failing('abc '*1000), threads=2), lambda: Tokenizer.train(failing('abc '*1000), 300, progress=False), lambda: gpt2.decode(failing(5))):
        with pytest.raises(RuntimeError, match='gone'): use()
    assert gpt2.encode('abc') == oracle().encode_ordinary('abc')


def test_a_file_of_ids_is_whole_or_not_there(smollm2, tmp_path):
    (tmp_path/'text').write_bytes(b'good '*1000 + b'\xff')
    (tmp_path/'ids').write_bytes(b'before')
    with pytest.raises(TokenError, match='a byte without a token'): smollm2.encode_file(tmp_path/'text', tmp_path/'ids', block=100, progress=False)
    assert (tmp_path/'ids').read_bytes() == b'before' and sorted(p.name for p in tmp_path.iterdir()) == ['ids', 'text']
    (tmp_path/'text').write_bytes(b'good '*1000)
    expected = smollm2.encode(b'good '*1000)
    assert smollm2.encode_file(tmp_path/'text', tmp_path/'text', block=100, progress=False).tolist() == expected  # onto itself


def test_many_special_tokens_in_a_file(gpt2, tmp_path):
    text = '<|endoftext|>a'*50_000
    (tmp_path/'text').write_text(text)
    start = time.process_time()
    ids = gpt2.encode_file(tmp_path/'text', tmp_path/'ids', allowed_special='all', progress=False)
    assert ids.tolist() == [50256, 64]*50_000 and time.process_time() - start < 20


def test_training_is_interrupted():
    "Ctrl-C ends it, and leaves no thread behind."
    program = ("import threading, _thread, sys; from bendml.tokenizer import Tokenizer; Tokenizer.train('warm up'*50_000, 258, pattern=None, progress=False);"
               "import random; text = bytes(random.Random(1).choices(range(256), k=1_000_000));"
               "timer = threading.Timer(1, _thread.interrupt_main); timer.start()\n"
               "try: Tokenizer.train(text, 200_000, pattern=None, progress=False)\n"
               "except KeyboardInterrupt: timer.join(); print('stopped', *(t.name for t in threading.enumerate() if t.name != 'tqdm_monitor'))")
    run = subprocess.run([sys.executable, '-c', program], capture_output=True, text=True, timeout=120)
    assert run.stdout.strip() == 'stopped MainThread', run


def test_a_child_process_goes_on(gpt2):
    "After a fork, parent and child both encode."
    expected, (read, write) = gpt2.encode(mixed(3000)), os.pipe()
    child = os.fork()
    if child == 0:
        try: os.write(write, b'same' if gpt2.encode(mixed(3000)) == expected and gpt2.encode_batch([mixed(3000)]*4, threads=2) == [expected]*4 else b'other')
        finally: os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 10) == b'same' and gpt2.encode(mixed(3000)) == expected


def test_two_threads_with_one_tokenizer(gpt2):
    "Texts of many new words, lists and arrays, batches and single texts, all at once."
    rng = random.Random(11)
    texts = [' '.join(''.join(rng.choices('abcdefghijk', k=rng.randint(3, 9))) for _ in range(2000)) for _ in range(12)]
    expected, results = oracle().encode_ordinary_batch(texts), []
    def work(k):
        for n in range(k, 12): results.append((n, gpt2.encode(texts[n])))
        results.extend(enumerate(map(np.ndarray.tolist, gpt2.encode_batch(texts, threads=2, as_array=True))))
    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads: t.start()
    for t in threads: t.join()
    assert len(results) == 12 + 11 + 10 + 9 + 48 and all(ids == expected[n] for n, ids in results)


def test_memory_grows_and_forgets(gpt2):
    "A memory of few slots, so that it grows, fills and forgets many times."
    from bendml.tokenizer.memory import memory
    rng, e = random.Random(12), gpt2._engine
    text = ' '.join(''.join(rng.choices('abcdefg', k=rng.randint(1, 30))) for _ in range(20_000))
    out, data = np.empty(len(text), np.int32), text.encode()
    for slots in (64, 256, 4096):
        _, n = e.memory.encode_words(padded(data), 0, len(data), len(data), e.pattern, e.tables, tuple(memory(len(gpt2.vocab.merges), slots, slots//4)), out)
        assert np.array_equal(out[:n], oracle().encode_to_numpy(text))


def test_flags_of_special_tokens(tmp_path):
    "A special token that swallows the spaces beside it would give other ids."
    small().save(tmp_path/'t.json')
    data = json.loads((tmp_path/'t.json').read_text())
    for flag in ('lstrip', 'rstrip', 'single_word'):
        (tmp_path/'t.json').write_text(json.dumps(data | {'added_tokens': [data['added_tokens'][0] | {flag: True}]}))
        with pytest.raises(VocabError, match=f'{flag} is not supported'): Tokenizer.load(tmp_path/'t.json')
    (tmp_path/'t.json').write_text('{"model": ' + '9'*5000 + '}')
    with pytest.raises(VocabError, match='not JSON that can be read'): Tokenizer.load(tmp_path/'t.json')


def test_a_pipe_that_is_closed(tmp_path):
    (tmp_path/'text').write_text('word '*200_000)
    run = subprocess.run(f'{sys.executable} -c "from bendml.cli import main; main()" tokenize --show {tmp_path}/text | head -c 10', shell=True, capture_output=True, text=True)
    assert 'Traceback' not in run.stderr and run.stdout


# --- the command line

def run(command, *args, **options): return CliRunner().invoke(command, args, **options)


def test_commands(tmp_path):
    text = "don't panic — 😀\n\n<|endoftext|> x"
    ids = run(tokenize, input=text).output
    assert ids.split() == list(map(str, Tokenizer.gpt2().encode(text, disallowed_special=())))
    assert run(detokenize, input=ids).stdout_bytes == text.encode()
    assert '50256' in run(tokenize, '--special', input=text).output.split() and run(tokenize, '--count', input='a b').output == '2\n'
    shown = run(tokenize, '--show', input='hello 👍', color=True).output
    assert '\x1b[' in shown and 'hello' in shown and '<20 f0 9f 91>' in shown
    (tmp_path/'text').write_text(mixed(20_000), encoding='utf-8')
    made = run(train_tokenizer, str(tmp_path/'text'), '--vocab-size', '300', '--out', str(tmp_path/'t.json'), '--special', '<|end|>')
    assert made.exit_code == 0, made.output
    again = run(tokenize, str(tmp_path/'text'), '--tokenizer', str(tmp_path/'t.json')).output
    assert run(detokenize, '--tokenizer', str(tmp_path/'t.json'), input=again).stdout_bytes == (tmp_path/'text').read_bytes()


@pytest.mark.parametrize('command, args, text, says', [
    (detokenize, (), '12 x', "not an id\n- expected : a whole number\n- observed : 'x'"), (detokenize, (), '9'*30, 'no such id'), (detokenize, (), '9'*5000, 'not an id'), (detokenize, (), '1_0', 'not an id'), (detokenize, (), '-1', 'no such id'),
    (train_tokenizer, ('--vocab-size', '99999999999', '--out', 'x'), 'a', 'vocabulary too large'), (detokenize, (), '99999', 'no such id'), (tokenize, ('--tokenizer', '/nowhere'), 'a', 'no such tokenizer'),
    (train_tokenizer, ('--vocab-size', '10', '--out', 'x'), 'a', 'vocabulary too small'),
    (tokenize, ('--pattern', 'cl100k'), 'a', "how words are cut\n- expected : pattern='gpt2', or none given\n- observed : pattern='cl100k'"),
    (detokenize, ('--pattern', 'none'), '1', 'observed : pattern=None'), (tokenize, ('--pattern', 'gpt5'), 'a', "observed : pattern='gpt5'")])
def test_commands_refuse(command, args, text, says):
    result = run(command, *args, input=text)
    assert result.exit_code == 1 and says in result.output and 'Traceback' not in result.output


@pytest.mark.parametrize('pattern', [*PATTERNS, 'none'])
def test_a_pattern_on_the_command_line_is_the_one_that_cuts(tmp_path, pattern):
    text, file = mixed(3000), str(tmp_path/'t.tiktoken')
    made = run(train_tokenizer, '--vocab-size', '300', '--out', file, '--pattern', pattern, input=text)
    assert made.exit_code == 0, made.output
    ids = run(tokenize, '--tokenizer', file, '--pattern', pattern, input=text).output
    assert list(map(int, ids.split())) == Tokenizer.load(file, pattern=None if pattern == 'none' else pattern).encode(text)
    assert run(detokenize, '--tokenizer', file, '--pattern', pattern, input=ids).output == text


def test_the_program_has_the_commands():
    assert run(main, 'tokenize', '--count', input='a b').output == '2\n' and run(main, 'detokenize', input='64 275').output == 'a b'
    assert 'vocab-size' in run(main, 'train-tokenizer', '--help').output


def test_numba_waits():
    "Neither `bendml`, nor the specification, nor the tokenizer's import compiles anything."
    program = "import sys, bendml, bendml.bpe, bendml.bpe.dictionary, bendml.tokenizer; print('numba' in sys.modules)"
    assert subprocess.run([sys.executable, '-c', program], capture_output=True, text=True, check=True).stdout.strip() == 'False'
