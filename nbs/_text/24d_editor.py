# %%
#| default_exp shape.editor

# %% [markdown]
# # In the editor
# > `bendml lsp` shows a refusal under the line that it is about, whenever a file is saved; pyright and mypy see some of it before.

# %% [markdown]
# An editor and a checker speak the [language server protocol](https://microsoft.github.io/language-server-protocol/): the
# editor starts the server and tells it, in JSON, which files are opened and saved; the server answers with diagnostics. What
# a checker needs of it is small, so it is written here, with the standard library alone.

# %%
#| hide
#| export
import json, re, subprocess, sys
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import unquote, urlparse

import click

# %% [markdown]
# ## Messages
#
# A message is a header with its length, an empty line, and JSON.

# %%
#| export
MAX_HEADER, MAX_MESSAGE, MAX_DEPTH = 1024, 16_000_000, 60

class ProtocolError(ValueError):
    "What comes in is not a message of the protocol."


# %%
#| export
def read_message(stream: BinaryIO) -> dict | None:
    "The next message; None at the end of the stream, `ProtocolError` where it is none."
    length = ''
    while (line := stream.readline(MAX_HEADER)).strip():
        name, _, value = line.decode('ascii', 'replace').partition(':')
        if name.lower() == 'content-length': length = value.strip()
    if not line and not length: return None
    if not length.isdecimal() or int(length) > MAX_MESSAGE: raise ProtocolError(f'a message of {length or "no"} bytes; at most {MAX_MESSAGE} are read')
    body = stream.read(int(length))
    if (deep := _depth(body)) > MAX_DEPTH: raise ProtocolError(f'{deep} brackets inside each other; at most {MAX_DEPTH} are read')
    try: message = json.loads(body)
    except ValueError as e: raise ProtocolError(f'not JSON: {e}') from None
    if not isinstance(message, dict): raise ProtocolError(f'a message is an object, not {type(message).__name__}')
    return message


# %%
#| export
def _depth(body: bytes) -> int:
    "How deep the brackets go, those in strings left out: a deep message would exhaust Python's JSON reader."
    depth = most = 0
    for bracket in re.sub(rb'"(?:[^"\\]|\\.)*"|[^][{}]', b'', body):
        depth += 1 if bracket in b'[{' else -1
        most = max(most, depth)
    return most


# %%
#| export
def write_message(stream: BinaryIO, message: dict) -> None:
    "Send a message."
    body = json.dumps({'jsonrpc': '2.0', **message}).encode()
    stream.write(b'Content-Length: %d\r\n\r\n%s' % (len(body), body))
    stream.flush()


# %% [markdown]
# ## Diagnostics
#
# Each check runs in a process of its own, so that nothing of the user's program stays behind, and an import that has changed
# is read anew. The protocol counts columns in units of UTF-16, Python counts bytes.

# %%
#| export
CHECK = 'from bendml.shape.check import command; command()'
MAX_SECONDS = 120

def diagnostics(path: Path) -> list[dict]:
    "What `bendml check` refuses in a file, as the protocol wants it."
    try: run = subprocess.run([sys.executable, '-W', 'ignore', '-c', CHECK, '--json', str(path)], capture_output=True, text=True, timeout=MAX_SECONDS)
    except subprocess.TimeoutExpired: return []
    try: refused, lines = json.loads(run.stdout)['refused'], path.read_text(errors='replace').split('\n')
    except (ValueError, KeyError, OSError): return []  # it is gone, or is no Python
    return [_diagnostic(r, lines) for r in refused if r['file'] == str(path)]


# %%
#| export
def _diagnostic(r: dict, lines: list[str]) -> dict:
    def position(line: int, column: int) -> dict:
        text = lines[line - 1] if 0 < line <= len(lines) else ''
        return {'line': max(line - 1, 0), 'character': len(text.encode()[:column - 1].decode(errors='ignore').encode('utf-16-le'))//2}
    said = [r['reason'], *(f'{k}: {r[k]}' for k in ('expected', 'observed') if r[k])]
    if r['fails_at']: said.append(('fails at ' if r['surely'] else 'may fail at ') + ', '.join(f'{n} = {v}' for n, v in r['fails_at'].items()))
    if r['hint']: said.append(f'hint: {r["hint"]}')
    return {'range': {'start': position(r['line'], r['column']), 'end': position(r['end_line'], r['end_column'])},
            'severity': 1, 'source': 'bendml', 'message': '\n'.join(said)}


# %% [markdown]
# ## The server

# %%
#| export
def serve(incoming: BinaryIO, outgoing: BinaryIO) -> None:
    "Answer an editor until it says `exit` or goes away."
    while (message := read_message(incoming)) is not None and message.get('method') != 'exit':
        number, uri = message.get('id'), str(_at(message, 'params', 'textDocument', 'uri') or '')
        match message.get('method'):
            case 'initialize': result = {'capabilities': {'textDocumentSync': {'openClose': True, 'change': 0, 'save': True}}, 'serverInfo': {'name': 'bendml'}}
            case 'textDocument/didOpen' | 'textDocument/didSave' | 'textDocument/didClose' as what if uri.startswith('file:'):
                found = diagnostics(Path(unquote(urlparse(uri).path))) if not what.endswith('Close') else []
                write_message(outgoing, {'method': 'textDocument/publishDiagnostics', 'params': {'uri': uri, 'diagnostics': found}})
                continue
            case 'shutdown': result = None
            case _ if number is None: continue  # a notification that is of no use here
            case other: write_message(outgoing, {'id': number, 'error': {'code': -32601, 'message': f'no method {other}'}}); continue
        write_message(outgoing, {'id': number, 'result': result})


# %%
#| export
def _at(value: Any, *keys: str) -> Any:
    for k in keys: value = value.get(k) if isinstance(value, dict) else None
    return value


# %%
#| export
@click.command()
def command():
    "A language server on standard input and output: an editor starts it."
    try: serve(sys.stdin.buffer, sys.stdout.buffer)
    except ProtocolError as e: raise click.ClickException(str(e))


# %% [markdown]
# An editor opens a file that is refused:

# %%
import io, tempfile

path = Path(tempfile.mkdtemp())/'step.py'
path.write_text('''from bendml.shape import Dim, Mat, typed
B = Dim("B")

@typed
def step(x: Mat[B, 3], w: Mat[4, 3]) -> Mat[B, 4]: return x @ w
''')
editor, answers = io.BytesIO(), io.BytesIO()
write_message(editor, {'id': 1, 'method': 'initialize', 'params': {}})
write_message(editor, {'method': 'textDocument/didOpen', 'params': {'textDocument': {'uri': path.as_uri()}}})
write_message(editor, {'method': 'exit'})
editor.seek(0)
serve(editor, answers)
answers.seek(0)
read_message(answers)
shown, = read_message(answers)['params']['diagnostics']
print(shown['range'], shown['message'], sep='\n')

# %% [markdown]
# ## Which editor
#
# **Neovim**: `vim.lsp.start{name = "bendml", cmd = {"bendml", "lsp"}}` in an autocommand for Python files. **Helix**, in
# `languages.toml`: `language-server.bendml = {command = "bendml", args = ["lsp"]}`, and `"bendml"` in the list of servers for
# Python. **Emacs**: `(add-to-list 'eglot-server-programs '(python-mode "bendml" "lsp"))`. **VS Code** wants an extension
# for a server; without one, a task in `.vscode/tasks.json` lists the refusals under *Problems*:
#
#     {"version": "2.0.0", "tasks": [{"label": "shapes", "type": "shell", "command": "bendml check --quiet ${file}",
#       "problemMatcher": {"owner": "bendml", "fileLocation": ["autoDetect", "${workspaceFolder}"],
#         "pattern": {"regexp": "^(.+?):(\\d+):(\\d+): error: (.*)$", "file": 1, "line": 2, "column": 3, "message": 4}}}]}
#
# ## Type checkers
#
# pyright and mypy read the annotations too, while you type and with no plugin: a stub tells them that `Dim` is a type variable,
# `L[784]` a literal type, and `Mat[n, d]` a matrix of these sizes, or an array of NumPy's own, whose sizes they do not know. So
# they flag `Mat[L[2], L[3]] @ Mat[L[4], L[5]]`, a layer that does not fit, and a gradient that is returned transposed; what
# NumPy's functions return, reductions and slices fit everywhere. For that the code must be written in a form that they know:
#
# | write | not |
# |---|---|
# | `n = Dim("n")`, one name in a line | `n, d = Dim("n"), Dim("d")`, `dims("n d")`: a type variable is made by an assignment of its own |
# | `Mat[n, L[1]]` | `Mat[n, 1]` |
# | `n1 = Annotated[Any, "n + 1"]` in a line of its own, then `Vec[n1]` | `Vec["n + 1"]`, `Vec[n + 1]` |
# | `size = Annotated[Any, "k"]`, then `Vec[size]` | `Vec["k"]` for a parameter `k: int`, where no Dim has that name |
# | `wide = Annotated[Any, "d"]`, then `w: Vec[wide]` in a class | `w: Vec[d]` there: a type variable belongs to a function |
#
# ## What this does not show
#
# The file is checked when it is opened or saved, not while it is typed: its definitions are executed, and half of a line
# is none. The settings above are those that the editors document; what is tested here is the protocol.
#
# Six [scripts](https://github.com/bendml/bendml/blob/main/tests/shape/scripts.py) in that form have no error in pyright or mypy. Two
# complaints about right code remain. A function whose parameter is annotated `np.ndarray` does not take a `Mat`, to both of
# them: annotate it with sizes too, or `ArrayLike`. And mypy, in functions that have annotations, wants one for a variable that holds what
# a typed function made of NumPy's own arrays, `y: Any = f(np.zeros(3))`, or `disable_error_code = var-annotated` in its settings.
