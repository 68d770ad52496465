"Programs that are given as text, with their source where Python finds it."
import itertools, linecache, textwrap

NUMBERS = itertools.count(1)


def run_text(text: str, space: dict, file: str = '') -> dict:
    "Run a program in a namespace, and return that."
    text, file = textwrap.dedent(text), file or f'<text {next(NUMBERS)}>'
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    exec(compile(text, file, 'exec'), space)
    return space
