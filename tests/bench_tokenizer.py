"""Speeds of the tokenizer as ratios, alternating in one run: `python tests/bench_tokenizer.py [MB]`."""
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
    "Let a tokenizer forget all words."
    for memory in tokenizer._engine.idle: tokenizer._engine.merge.forget(memory)


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
        times = best(3, one=lambda: ours.encode(texts[0], as_array=True), two=lambda: ours.encode(texts[1], as_array=True))
        print(f'1 MB of {name:6} {times["one"]:.3f} s, twice as long {times["two"]/times["one"]:.2f}x')


def start_up() -> None:
    code = "import time; t = time.perf_counter(); from bendml.tokenizer import Tokenizer; Tokenizer.gpt2().encode('Hello'); print(time.perf_counter() - t)"
    print('import, load and first encode:', min(float(subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True).stdout) for _ in range(3)), 's')


TRAINING = '''
import sys, time
path, size = sys.argv[1], int(sys.argv[2])
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
text = open(path, encoding='utf-8').read()
tokenizer = Tokenizer(models.BPE())
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
start = time.perf_counter()
tokenizer.train_from_iterator(text.splitlines(keepends=True), trainer)
print(time.perf_counter() - start)
'''


def training(text: str, size: int, rounds: int, other: str) -> None:
    "Against Hugging Face's tokenizers, run by the Python `other`, which has it."
    path = Path(os.environ.get('TMPDIR', '/tmp'))/'bench_tokenizer.txt'
    path.write_text(text, encoding='utf-8')
    ours, theirs = [], []
    Tokenizer.train('warm up', 258)
    for _ in range(rounds):
        start = time.perf_counter()
        Tokenizer.train(path, size, progress=False)
        ours.append(time.perf_counter() - start)
        run = subprocess.run([other, '-c', TRAINING, str(path), str(size)], capture_output=True, text=True)
        if run.returncode == 0: theirs.append(float(run.stdout))
    line = f'train {path.stat().st_size/1e6:.1f} MB to {size}: {min(ours):.3f} s'
    print(f'{line}, {min(theirs)/min(ours):.1f}x tokenizers ({min(theirs):.2f} s, its own threads on)' if theirs else f'{line}; tokenizers not installed')
    peak = """
import re, sys
from pathlib import Path
from bendml.tokenizer import Tokenizer
status = lambda name: 1024*int(re.search(name + r':\\s+(\\d+)', Path('/proc/self/status').read_text())[1])
Tokenizer.train('warm up', 258)
Path('/proc/self/clear_refs').write_text('5')  # the peak counts from here
before = status('VmRSS')
Tokenizer.train(Path(sys.argv[1]), int(sys.argv[2]), progress=False)
print(status('VmHWM') - before)
"""
    grown = int(subprocess.run([sys.executable, '-c', peak, str(path), str(size)], capture_output=True, text=True, check=True).stdout)
    print(f'  peak memory {grown/path.stat().st_size:.1f} bytes per byte of text')


if __name__ == '__main__':
    size = int(1e6*float(sys.argv[1])) if len(sys.argv) > 1 else 3_000_000
    start_up()
    encoding('code', code(size), 7)
    encoding('mixed', mixed(size), 7)
    batch(code(size), 7)
    long_words()
    training(code(10_000_000), 5000, 3, os.environ.get('BENCH_PYTHON', sys.executable))
