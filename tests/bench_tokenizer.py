"""Speeds of the tokenizer as ratios, alternating in one run.

    python tests/bench_tokenizer.py [MB] [start|encode|batch|long|short|train|memory]...
"""
import os, subprocess, sys, time
from pathlib import Path

import numpy as np

from bench import alternate
from bendml.tokenizer import Tokenizer
from test_tokenizer import code, mixed, oracle


def best(rounds: int, **jobs) -> dict[str, float]:
    "The best time of each job, all of them run in turn."
    return {name: min(seconds) for name, seconds in alternate(jobs, rounds).items()}


def cold(tokenizer: Tokenizer) -> None:
    "Take a tokenizer's memories away: it has met no word, and its next memory is fresh from the system."
    tokenizer._engine.idle.clear()


def encoding(name: str, text: str, rounds: int) -> None:
    ours, theirs = Tokenizer.gpt2(), oracle()
    assert np.array_equal(ours.encode(text, as_array=True), theirs.encode_ordinary(text))
    def afresh():
        cold(ours)
        ours.encode(text, as_array=True)
    times = best(rounds, cold=afresh, warm=lambda: ours.encode(text, as_array=True), tiktoken=lambda: theirs.encode_to_numpy(text),
                     list=lambda: ours.encode(text), tiktoken_list=lambda: theirs.encode_ordinary(text))
    megabytes = len(text.encode())/1e6
    rate = lambda job: f'{megabytes/times[job]:6.1f} MB/s'
    print(f'encode {name}, {megabytes:.1f} MB, one thread; tiktoken {rate("tiktoken")} (arrays), {rate("tiktoken_list")} (lists)')
    for job, base in (('cold', 'tiktoken'), ('warm', 'tiktoken'), ('list', 'tiktoken_list')):
        print(f'  {job:5} {rate(job)}  {times[base]/times[job]:5.1f}x tiktoken')


def batch(text: str, rounds: int) -> None:
    ours, theirs = Tokenizer.gpt2(), oracle()
    lines = text.splitlines(keepends=True)
    texts = [''.join(lines[i:i + 200]) for i in range(0, len(lines), 200)]
    times = best(rounds, one=lambda: ours.encode_batch(texts, threads=1, as_array=True), two=lambda: ours.encode_batch(texts, threads=2, as_array=True),
                     tiktoken=lambda: theirs.encode_ordinary_batch(texts, num_threads=2), lists=lambda: ours.encode_batch(texts, threads=2))
    print(f'batch of {len(texts)} texts: two threads {times["one"]/times["two"]:.2f}x one; {times["tiktoken"]/times["two"]:.1f}x tiktoken on two threads (both lists: {times["tiktoken"]/times["lists"]:.1f}x)')


def long_words() -> None:
    ours = Tokenizer.gpt2()
    for name, unit in {'a': 'a', 'space': ' ', 'ab': 'ab', 'emoji': '😀', 'U+0301': '\u0301'}.items():
        texts = [unit*(size//len(unit.encode())) for size in (1_000_000, 2_000_000)]
        times = best(12, one=lambda: ours.encode(texts[0], as_array=True), two=lambda: ours.encode(texts[1], as_array=True))
        print(f'1 MB of {name:6} {times["one"]:.3f} s, twice as long {times["two"]/times["one"]:.2f}x')


def short_texts() -> None:
    ours, theirs = Tokenizer.gpt2(), oracle()
    for text in ('Hello', 'The quick brown fox jumps over the lazy dog. '*3):
        many = lambda encode: lambda: [encode(text) for _ in range(1000)]
        times = best(5, ours=many(ours.encode), tiktoken=many(theirs.encode))
        print(f'one text of {len(text):3} bytes, a list: {1000*times["ours"]:.1f} us, tiktoken {1000*times["tiktoken"]:.1f} us')


def start_up() -> None:
    code = "import time; t = time.perf_counter(); from bendml.tokenizer import Tokenizer; Tokenizer.gpt2().encode('Hello'); print(time.perf_counter() - t)"
    print('import, load and first encode:', min(float(subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True).stdout) for _ in range(3)), 's')


TRAINING = '''
import sys, time
path, size = sys.argv[1], int(sys.argv[2])
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
tokenizer = Tokenizer(models.BPE())
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
start = time.perf_counter()
tokenizer.train([path], trainer)
print(time.perf_counter() - start)
'''


def training(path: Path, size: int, rounds: int) -> None:
    "Against Hugging Face's tokenizers, in a process of its own, its own threads on; both read the file."
    ours, theirs = [], []
    Tokenizer.train('warm up', 258)
    for _ in range(rounds):
        start = time.perf_counter()
        Tokenizer.train(path, size, progress=False)
        ours.append(time.perf_counter() - start)
        run = subprocess.run([sys.executable, '-c', TRAINING, str(path), str(size)], capture_output=True, text=True, check=True)
        theirs.append(float(run.stdout))
    print(f'train {path.stat().st_size/1e6:.1f} MB to {size}: {min(ours):.3f} s, {min(theirs)/min(ours):.1f}x tokenizers ({min(theirs):.2f} s)')


PEAK = """
import re, sys
from pathlib import Path
from bendml.tokenizer import Tokenizer
status = lambda name: 1024*int(re.search(name + r':\\s+(\\d+)', Path('/proc/self/status').read_text())[1])
Tokenizer.train('warm up', 258)
Path('/proc/self/clear_refs').write_text('5')  # the peak counts from here
before = status('VmRSS')
Tokenizer.train(Path(sys.argv[1]), int(sys.argv[2]), pattern=sys.argv[3] or None, progress=False)
print(status('VmHWM') - before)
"""

def peak(path: Path, size: int) -> None:
    "How much memory a process takes while it trains."
    for pattern in ('gpt2', ''):
        run = subprocess.run([sys.executable, '-c', PEAK, str(path), str(size), pattern], capture_output=True, text=True, check=True)
        print(f'  peak memory with pattern {pattern or None}: {int(run.stdout)/path.stat().st_size:.1f} bytes per byte of text')


if __name__ == '__main__':
    numbers = [float(a) for a in sys.argv[1:] if a[0].isdigit()]
    size, wanted = int(1e6*(numbers or [3])[0]), set(sys.argv[1:]) - {a for a in sys.argv if a[0].isdigit()}
    path = Path(os.environ.get('TMPDIR', '/tmp'))/'bench_tokenizer.txt'
    path.write_text(code(10_000_000), encoding='utf-8')
    for name, job in {'start': start_up, 'encode': lambda: [encoding(f.__name__, f(size), 7) for f in (code, mixed)], 'batch': lambda: batch(code(size), 7),
                      'long': long_words, 'short': short_texts, 'train': lambda: training(path, 5000, 3), 'memory': lambda: peak(path, 5000)}.items():
        if not wanted or name in wanted: job()
