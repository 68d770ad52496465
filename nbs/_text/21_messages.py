# %%
#| default_exp shape.messages

# %% [markdown]
# # What a refusal says
# > Expected, observed, where, the smallest sizes that fail, and one hint.

# %% [markdown]
# A message should end the search. It starts with what was expected and what was observed; then it shows the line with the
# faulty argument underlined, what was known, the smallest sizes at which the program fails, and one thing to try.

# %%
#| hide
#| export
import ast, html, linecache, os, re, symtable, sys
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any


# %% [markdown]
# ## Where
#
# Since Python 3.11 each instruction knows the piece of source it came from. That piece, parsed, is a node of the syntax
# tree, and its operands are nodes too, so the right one can be underlined.

# %%
#| export
@dataclass(frozen=True)
class Place:
    "A piece of source: lines from 1, columns from 0, as Python counts them."
    file: str
    line: int
    column: int = 0
    end_line: int = 0
    end_column: int = 0
    function: str = ''
    def __str__(self):
        name = os.path.relpath(self.file) if os.path.isabs(self.file) and self.file.startswith(os.getcwd() + os.sep) else self.file
        if 'ipykernel' in name or name.startswith('<ipython'): name = 'this notebook'
        return f'{name}:{self.line}:{self.column + 1}'


# %%
#| export
@lru_cache(256)
def _parsed(file: str, lines: tuple[str, ...]) -> ast.Module | None:
    try: return ast.parse(''.join(lines))
    except (SyntaxError, ValueError, RecursionError): return None


# %%
#| export
def source_tree(file: str) -> ast.Module | None:
    "The syntax tree of a source file (or notebook cell); None where there is no source."
    linecache.checkcache(file)
    lines = tuple(linecache.getlines(file))
    return _parsed(file, lines) if lines else None


# %%
#| export
def defines_somewhere(file: str, name: str) -> bool:
    "Does a file, or a later cell of a notebook, give this name a value outside of functions?"
    text = ''.join(linecache.getlines(file))
    if 'ipykernel' in file or file.startswith('<ipython') or re.search(r'^from \S+ import \*', text, re.M): return True
    try: known = symtable.symtable(text, file, 'exec').lookup(name)
    except (SyntaxError, ValueError, RecursionError, KeyError): return False
    return known.is_assigned() or known.is_imported() or known.is_namespace()


# %%
#| export
def _span(node: ast.AST) -> tuple[int, int, int, int]: return node.lineno, node.end_lineno, node.col_offset, node.end_col_offset


# %%
#| export
@lru_cache(64)
def _by_span(tree: ast.Module) -> dict[tuple[int, int, int, int], ast.AST]:
    "The outermost node of each piece of source."
    found = {}
    for n in ast.walk(tree):
        if hasattr(n, 'lineno') and not isinstance(n, ast.Expr): found.setdefault(_span(n), n)
        if isinstance(n, ast.Assign): found |= {_span(t): n for t in n.targets if isinstance(t, ast.Tuple | ast.List)}  # `a, b = x`
    return found


# %%
#| export
def _operand(node: ast.AST, index: int, method: bool) -> ast.AST:
    "The operand number `index` of an expression; the expression itself if it has none."
    match node:
        case ast.BinOp(left, _, right): parts = [left, right]
        case ast.AugAssign(target, _, value): parts = [target, value]
        case ast.Assign(_, value): parts = [value]
        case ast.Compare(left, _, more): parts = [left, *more]
        case ast.Call(ast.Attribute(value), args) if method: parts = [value, *args, *(k.value for k in node.keywords)]
        case ast.Call(called, args) if method: parts = [called, *args, *(k.value for k in node.keywords)]
        case ast.Call(_, args, keywords): parts = [*args, *(k.value for k in keywords)]
        case ast.Subscript(value, index_): parts = [value, index_]
        case ast.Return(value): parts = [value]
        case ast.For(_, it): return it
        case ast.While(test) | ast.If(test) | ast.IfExp(test): return test
        case _: parts = []
    return parts[index] if 0 <= index < len(parts) else node


# %%
#| export
def place_at(
    code: CodeType, at: int,    # an instruction of a function
    index: int | None = None,   # the operand to underline; None: the whole expression
    method: bool = False,       # operand 0 is what is called, or stands before the dot
) -> Place:
    "The piece of source that an instruction comes from."
    line, end_line, column, end_column = list(code.co_positions())[at//2]
    if line is None: return Place(code.co_filename, code.co_firstlineno, function=code.co_name)
    tree = source_tree(code.co_filename)
    node = _by_span(tree).get((line, end_line, column, end_column)) if tree else None
    if node is not None and (index is not None or isinstance(node, ast.For | ast.While | ast.If | ast.IfExp)):
        line, end_line, column, end_column = _span(_operand(node, -1 if index is None else index, method))
    return Place(code.co_filename, line, column or 0, end_line, end_column or 0, code.co_name)


# %%
#| export
def place_of(frame: FrameType, index: int | None = None, method: bool = False) -> Place:
    "The piece of source that a frame is executing."
    return place_at(frame.f_code, frame.f_lasti, index, method)


# %%
#| export
def place_of_code(code: CodeType) -> Place:
    "Where a function is defined."
    return Place(code.co_filename, code.co_firstlineno, function=code.co_name)


# %% [markdown]
# ## The error

# %%
#| export
class ShapeError(TypeError):
    "A program whose shapes do not fit, at some size or at every size."
    missing = ''  # the name that is not defined, where that is all that is wrong
    proposed = ''  # a condition that the hint proposes, still to be tried
    later = False  # it may be defined further down
    callers: tuple[str, ...] = ()  # the functions whose check has led to this place, which is in none of them
    def __init__(self,
        reason: str,                                     # one line: the operation, and what is wrong
        expected: object = None,                         # what would have been right
        observed: object = None,                         # what is there
        hint: str = '',                                  # one thing to try
        fails_at: tuple[tuple[str, int], ...] = (),      # the smallest sizes that fail
        everywhere: bool = False,                        # it fails at every size
        known: tuple[str, ...] = (),                     # what was assumed of the sizes
        place: Place | None = None,
        operand: int | None = None,                      # which operand is to blame
        assumed: tuple[str, ...] = (),                   # what else must be so for it to fail, besides the sizes
    ):
        self.reason, self.hint = reason, hint
        self.expected, self.observed = None if expected is None else str(expected), None if expected is None else str(observed)
        self.fails_at, self.everywhere, self.known, self.place, self.operand = fails_at, everywhere, known, place, operand
        self.assumed, self.surely, self.where = assumed, not assumed, ()  # `where` says what the names in it stand for
        super().__init__(reason)

    def __str__(self): return '\n'.join(_lines(self))
    def _render_traceback_(self) -> list[str]:
        "In IPython, the message stands for the traceback, which would show bendml's inside; a notebook shows it as HTML, and one line."
        if not hasattr(_shell(), 'kernel'): return [f'{type(self).__name__}:', *_lines(self)]
        from IPython.display import HTML, display
        if not vars(self).get('displayed'): display(HTML(self._repr_html_()))   # a kernel asks twice
        self.displayed = True
        return [one_line(self)]
    def _repr_html_(self) -> str: return _page(self)


# %%
#| export
def _shell() -> Any:
    "IPython's shell, if there is one; that of a notebook has a kernel."
    return getattr(sys.modules.get('IPython'), 'get_ipython', lambda: None)()


# %%
#| export
def _lines(e: ShapeError) -> list[str]:
    "The message, line by line; sizes that nobody named (`i'2`) lose their number where no two are alike."
    lines = _numbered(e)
    fresh = set(re.findall(r"(\w+)'\d+", ' '.join(lines)))
    sizes = ' '.join(line for line in lines if line.startswith(('- ', 'fails', 'known')))
    alike = len(fresh) < len(set(re.findall(r"\w+'\d+", ' '.join(lines)))) or fresh & set(re.findall(r"\b\w+\b(?!')", sizes))
    return lines if alike else [re.sub(r"(\w+)'\d+", r'\1', line) for line in lines]


# %%
#| export
def _numbered(e: ShapeError) -> list[str]:
    lines = [] if e.expected is None else [f'- expected : {e.expected}', f'- observed : {e.observed}']
    lines.append(f'{_at(e)}{e.reason}')
    lines += _source(e.place)
    if e.known: lines.append('known    : ' + ', '.join(e.known))
    if e.fails_at or e.everywhere: lines.append(f'{_fails(e):9}: ' + (', '.join(f'{n} = {v}' for n, v in e.fails_at) or 'every size'))
    if e.assumed and (e.fails_at or e.everywhere): lines.append('if       : ' + ', '.join(e.assumed))
    lines += [f'where    : {w}' for w in e.where]
    if e.hint: lines.append(f'hint     : {e.hint}')
    return lines


# %%
#| export
def _fails(e: ShapeError) -> str:
    "Sizes fail for certain only if nothing else had to be so."
    return 'fails at' if e.surely else 'may fail'


# %%
#| export
def _at(e: ShapeError) -> str:
    if e.place is None: return ''
    return f'{e.place}: ' + (f'in {e.place.function}: ' if e.place.function not in ('', '<module>') else '')


# %%
#| export
def _source(place: Place | None) -> list[str]:
    "The line, and carets under the piece that is to blame."
    if place is None: return []
    line = linecache.getline(place.file, place.line).rstrip('\n')
    if not line.strip(): return []
    column = len(line.encode()[:place.column].decode(errors='ignore'))  # Python counts columns in bytes
    end = len(line.encode()[:place.end_column].decode(errors='ignore')) if place.end_line == place.line else len(line)
    indent = len(line) - len(line.lstrip())
    carets = [] if end <= column else ['    | ' + ' '*(column - indent) + '^'*(end - column)]
    return [f'{place.line:3} | {line.strip()}', *carets]


# %%
#| export
def source_of(place: Place) -> str:
    "The text that a place covers, if it is on one line."
    line = linecache.getline(place.file, place.line).encode()
    return line[place.column:place.end_column].decode(errors='ignore') if place.end_line == place.line else ''


# %%
#| export
def one_line(e: ShapeError) -> str:
    "`file:line:col: message`, the form that editors and CI read."
    facts = [] if e.expected is None else [f'expected {e.expected}, observed {e.observed}']
    if e.fails_at: facts.append(f'{_fails(e)} '.replace('fail ', 'fail at ') + ', '.join(f'{n} = {v}' for n, v in e.fails_at))
    if e.fails_at and e.assumed: facts.append('if ' + ', '.join(e.assumed))
    facts += e.where
    if e.hint: facts.append(f'hint: {e.hint}')
    at = f'{e.place}: ' if e.place else ''
    return at + 'error: ' + '; '.join([e.reason, *facts])


# %%
#| export
def as_record(e: ShapeError) -> dict:
    "The same as plain values, for JSON."
    p = e.place or Place('', 0)
    return {'file': p.file, 'line': p.line, 'column': p.column + 1, 'end_line': p.end_line or p.line, 'end_column': p.end_column + 1,
            'function': p.function, 'reason': e.reason, 'expected': e.expected, 'observed': e.observed,
            'known': list(e.known), 'fails_at': dict(e.fails_at), 'surely': e.surely, 'assumed': list(e.assumed), 'where': list(e.where), 'hint': e.hint,
            'called_from': list(e.callers)}


# %%
#| export
def _page(e: ShapeError) -> str:
    "HTML: the faulty piece in red, expected and observed side by side."
    text = [html.escape(line) for line in _lines(e)]
    style = {'- expected': 'color:#2a7', '- observed': 'color:#c33', 'hint': 'font-style:italic'}
    shown = [next((f'<span style="{s}">{t}</span>' for k, s in style.items() if t.startswith(k)), t) for t in text]
    return '<pre class="shape-error">' + '\n'.join(f'<b style="color:#c33">{t}</b>' if set(t) <= set(' |^') else t
                                                   for t in shown) + '</pre>'


# %%
e = ShapeError('matmul: the left side has 3 columns, the right side has 4 rows', 'Mat<3, 5>', 'Mat<4, 5>', everywhere=True)
print(e)
assert isinstance(e, TypeError) and str(e).startswith('- expected : Mat<3, 5>\n- observed : Mat<4, 5>\n')
e

# %% [markdown]
# ## What this does not show
#
# Where Python has no source for a function (one made by `exec`), the message has no line to show. A piece that spans
# several lines is underlined on its first.
