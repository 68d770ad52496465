"""Files with damage: made from good ones at random, some by someone who knows the format.

    python tests/hostile.py read FOLDER     # for a test: open every file there, and say by how much memory grew
"""
import json, random, re, struct, sys, tracemalloc
from pathlib import Path

ODD = (0, 1, 7, 8, 31, 32, 255, 1 << 16, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**60, 2**63 - 1, 2**63, 2**64 - 8, 2**64 - 1)


def damaged(rng: random.Random, good: bytes) -> bytes:
    "A file with one to four faults in it, most of them near the beginning, where the header is."
    b = bytearray(good)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        at = rng.randrange(len(b)) if b and rng.random() < 0.2 else rng.randrange(max(1, min(len(b), 900)))
        match rng.randrange(8):
            case 0: b[at:at + 1] = bytes([rng.randrange(256)])
            case 1: b[at:at + 1] = bytes([(b[at] if at < len(b) else 0) ^ 1 << rng.randrange(8)])
            case 2: b[at:at + 8] = rng.choice(ODD).to_bytes(8, 'little')
            case 3: b[at:at + 4] = (rng.choice(ODD) % 2**32).to_bytes(4, 'little')
            case 4: del b[at:at + rng.choice((1, 4, 8, 40))]
            case 5: b[at:at] = b[at:at + rng.choice((1, 4, 8, 40, 120))]
            case 6: del b[rng.randrange(len(b) + 1):]
            case 7: b += bytes(rng.choice((1, 31, 4096)))
    return bytes(b)


def damaged_json(rng: random.Random, good: bytes) -> bytes:
    "A safetensors file whose header was edited: still words, with the length put right most of the time."
    n = int.from_bytes(good[:8], 'little')
    text, data = good[8:8 + n].decode(), good[8 + n:]
    for _ in range(rng.choice((1, 1, 2))):
        words = re.findall(r'"[^"]*"|\d+|[\[\]{}:,]', text)
        i, j = rng.randrange(len(words)), rng.randrange(len(words))
        match rng.randrange(6):
            case 0: words[i] = rng.choice((*map(str, ODD), '-1', '1.5', '1e3', '"F4"', '"BF16"', '"F6_E2M3"', '"C64"', '"BOOL"', '00', 'null', '[]', '{}', '"\\ud800"', '"t"'))
            case 1: words[i], words[j] = words[j], words[i]
            case 2: del words[i]
            case 3: words[i:i] = words[i:j] if i < j < i + 40 else [words[i]]
            case 4: words = [str(int(w) + rng.choice((-1, 1, 4))) if w.isdigit() and rng.random() < 0.2 else w for w in words]
            case 5: words = [rng.choice(words) if w.startswith('"') and rng.random() < 0.1 else w for w in words]
        text = ''.join(words)
    header = text.encode() + b' '*rng.choice((0, 0, 3))
    length = len(header) if rng.random() < 0.9 else rng.choice(ODD)
    return (length % 2**64).to_bytes(8, 'little') + header + data


def string(text: bytes) -> bytes: return struct.pack('<Q', len(text)) + text

def small_gguf(tensors=None, values=b'', count=0, align=32, version=3) -> bytes:
    "A GGUF file: tensors as {name: (lengths, type number, bytes)}, values as they stand in the file."
    tensors = tensors if tensors is not None else {'a': ((4, 2), 0, bytes(32)), 'q': ((32, 3), 3, bytes(60)), 'h': ((5,), 1, bytes(10))}
    info, data = b'', b''
    for name, (shape, number, content) in tensors.items():
        data += bytes(-len(data) % align)
        info += string(name.encode()) + struct.pack('<I', len(shape)) + struct.pack(f'<{len(shape)}Q', *shape) + struct.pack('<IQ', number, len(data))
        data += content
    head = b'GGUF' + struct.pack('<IQQ', version, len(tensors), count) + values + info
    return head + bytes(-len(head) % align) + data

VALUES = (string(b'general.name') + struct.pack('<I', 8) + string('a “name”'.encode())
          + string(b'x.numbers') + struct.pack('<IIQ', 9, 5, 3) + struct.pack('<3i', -1, 0, 7)
          + string(b'x.words') + struct.pack('<IIQ', 9, 8, 3) + string(b'one') + string(b'') + string(b'three')
          + string(b'x.flag') + struct.pack('<I?', 7, True) + string(b'x.ratio') + struct.pack('<Id', 12, 0.5)
          + string(b'general.alignment') + struct.pack('<II', 4, 32), 6)


def bounded(read, path):
    "Open a file, and check that this takes no more memory than the file's size and 1 MB, accepted or not."
    tracemalloc.start()
    try: return read(path)
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        if peak > path.stat().st_size + (1 << 20): raise MemoryError(f'{path}: {peak} bytes for a file of {path.stat().st_size}')

def look_at(path, read, refused) -> str:
    "Open a file and look at all that is in it; what came of it."
    try:
        w = read(path)
        for name in w: w[name].shape
        for key in w.metadata: w.metadata[key]
        return 'accepted'
    except refused as e:
        assert '- expected : ' in str(e) and '- observed : ' in str(e) and len(str(e)) < 2000 and all(line.isprintable() for line in str(e).splitlines()), str(e)
        return 'refused'


if __name__ == '__main__' and sys.argv[1] == 'read':
    import resource
    from bendml.checkpoint import CheckpointError, read_gguf, read_safetensors
    files = sorted(Path(sys.argv[2]).iterdir())
    read = read_gguf if files[0].suffix == '.gguf' else read_safetensors
    def opened(f):
        try: return len(read(f)) >= 0
        except CheckpointError: return False
    for f in files[:20]: opened(f)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    said = [opened(f) for f in files]
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({'grew': 1024*(after - before), 'largest': max(f.stat().st_size for f in files), 'accepted': sum(said), 'files': len(files)}))
