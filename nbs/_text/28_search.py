# %%
#| default_exp kernel.search

# %% [markdown]
# # The smallest sizes that fail
# > A kernel that is not proved is shown failing: on which sizes, where, and what happens there.

# %% [markdown]
# "Not proved" helps nobody. When a solver finds a case in which a condition fails, we ask again for smaller cases, with every
# number at most 1, then 2, then 3, until it finds one. Then the kernel is run on it, in plain Python, with buffers that watch
# what is done to them. If a buffer sees an index outside itself, or two iterations of one parallel loop in one cell, then there
# is no doubt left.

# %%
#| hide
#| export
import ast, copy, re, sys, time
from typing import Callable

import numpy as np

from bendml.kernel.conditions import text
from bendml.kernel.contracts import CONTRACTS, FLOATS, INTS, Buf, KernelError, Size, Source, Touches, dotted, f32, int_range, is_prange, one_of
from bendml.kernel.state import Check
from bendml.laws.solvers import discharge
from bendml.laws.terms import INT, App, Term, Var, free


# %% [markdown]
# ## A function from a tree
#
# The function that runs, in Python or compiled, is made from the tree that was proved: without its contracts, and with each
# global name bound to what it meant when the kernel was read.

# %%
#| export
class _Bare(ast.NodeTransformer):
    "Without contracts and annotations; `np.zeros` becomes one name."
    def __init__(self, source: Source, keep: bool = False):
        self.source, self.names, self.keep = source, {}, keep
        self.taken = {n.id for n in ast.walk(source.node) if isinstance(n, ast.Name)} | {p.name for p in source.params}
    def meaning(self, node): return self.source.meanings.get(dotted(node))

    def rename(self, node):
        name = dotted(node)
        if name not in self.source.meanings or not isinstance(node.ctx, ast.Load): return self.generic_visit(node)
        flat, meaning = name.replace('.', '_'), self.source.meanings[name]
        while '.' in name and (flat in self.taken or self.names.get(flat, meaning) is not meaning): flat += '_'
        self.names[flat] = meaning
        return ast.copy_location(ast.Name(flat, ast.Load()), node)
    visit_Attribute = visit_Name = rename

    def visit_Expr(self, node):
        gone = not self.keep and isinstance(node.value, ast.Call) and one_of(self.meaning(node.value.func), *CONTRACTS)
        return ast.copy_location(ast.Pass(), node) if gone else self.generic_visit(node)
    def visit_Assert(self, node): return self.generic_visit(node) if self.keep else ast.copy_location(ast.Pass(), node)
    def visit_arg(self, node): return ast.copy_location(ast.arg(node.arg), node)

_BUILTINS = {'ValueError': ValueError, 'IndexError': IndexError, 'range': range, 'AssertionError': AssertionError}

def bare(source: Source, swap: Callable = lambda meaning: meaning, first: str = '', keep: bool = False) -> Callable:
    """The kernel as a plain Python function; `swap` may put other things in the place of what global names mean, `first` is done
    first, and with `keep` contracts are checked as it runs."""
    node = copy.deepcopy(source.node)
    node.decorator_list, node.returns = [], None
    node.body = ast.parse(first).body + node.body
    strip = _Bare(source, keep)
    module = ast.fix_missing_locations(ast.Module([strip.visit(node)], []))
    names = {n: swap(m) for n, m in strip.names.items()} | {'__name__': 'bendml.kernel', '__builtins__': _BUILTINS}
    if first: names['int64_'] = np.int64
    exec(compile(module, source.path, 'exec', dont_inherit=True), names)
    return names[source.name]


# %% [markdown]
# A loop that is not proved to end may not end. So what is run here is counted, line by line, and stopped.

# %%
#| export
def within(lines: int, fn: Callable, *args) -> None:
    "Run a function for at most so many lines; `TimeoutError` if it is not done then."
    left = [lines]
    def count(frame, event, arg):
        left[0] -= event == 'line'
        if left[0] < 0: raise TimeoutError
        return count
    before = sys.gettrace()
    sys.settrace(count)
    try: fn(*args)
    finally: sys.settrace(before)


# %% [markdown]
# ## Watching

# %%
#| export
class Seen(Exception):
    "Something that no run of a proved kernel does."

class Watch:
    "Who touched which cell, in which iteration of the parallel loop that is running."
    def __init__(self): self.iteration, self.cells = None, {}

    def prange(self, *bounds: int):
        outer = self.iteration is None
        if outer: self.cells = {}
        for i in range(*bounds):
            if outer: self.iteration = i
            yield i
        if outer: self.iteration = None

    def touch(self, buffer: 'Watched', index: int, write: bool) -> None:
        if not 0 <= index < len(buffer): raise Seen(f'{buffer.name}[{index}], and {buffer.name} has {len(buffer)} cell{"s"*(len(buffer) != 1)}')
        if self.iteration is None or buffer.born is not None: return
        others = self.cells.setdefault((id(buffer), index), {})
        for i, wrote in others.items():
            if i != self.iteration and (write or wrote): raise Seen(f'iterations {i} and {self.iteration} meet in {buffer.name}[{index}]')
        others[self.iteration] = write or others.get(self.iteration, False)

class Watched:
    "A buffer that tells a watch what is done to it."
    def __init__(self, watch: Watch, name: str, values: list): self.watch, self.name, self.values, self.born = watch, name, values, watch.iteration
    def __len__(self): return len(self.values)
    def __getitem__(self, i): self.watch.touch(self, i, False); return self.values[i]
    def __setitem__(self, i, v): self.watch.touch(self, i, True); self.values[i] = v


# %%
#| export
def _watching(watch: Watch) -> Callable:
    "What a watched run has in the place of global names."
    def make(n, dtype): return Watched(watch, 'a buffer', [dtype(0)]*n)
    def word(gives, touches):
        def run(*args):
            for t in (Touches(*t) for t in touches):
                for r in range(t.rows):
                    for c in range(t.cells): watch.touch(args[t.array], args[t.index] + c + (r*args[t.stride] if t.stride else 0), t.write)
            return None if gives is None else f32(0) if gives in ('f32', 'f64') else np.zeros(8, f32)
        return run
    def swap(meaning):
        if is_prange(meaning): return watch.prange
        if one_of(meaning, np.zeros, np.empty): return make
        if hasattr(meaning, '__word__'): return word(*meaning.__word__)
        return bare(meaning.source, swap) if hasattr(meaning, '__kernel__') else meaning
    return swap

LARGEST = 10_000   # cells in all; more are not tried

def fillings(source: Source, sizes: dict, first: dict[str, int] = {}) -> list[dict]:
    "A few ways to fill the buffers of integers, as their contracts allow; `first` says by name which number is tried first."
    def cells(p, how):
        n = eval(compile(ast.Expression(p.length), '', 'eval'), {'min': min, 'max': max, '__builtins__': {}}, dict(sizes)) if p.length is not None else sizes.get(f'len_{p.name}', 0)
        if n > LARGEST: raise Seen('')
        if p.type.dtype in FLOATS: return [p.type.dtype(1)]*n
        lo, hi = int_range(p.type.dtype)
        holds = lambda v: p.element is None or eval(compile(ast.Expression(p.element), '', 'eval'), {'min': min, 'max': max, '__builtins__': {}}, dict(sizes) | {p.name: v})
        good = sorted((v for v in range(max(lo, -5), min(hi, 12)) if holds(v)), key=lambda v: v != first.get(p.name))
        if not good and n: raise Seen('')
        return [good[how(i, len(good))] for i in range(n)]
    ways = (lambda i, n: 0, lambda i, n: n - 1, lambda i, n: i % n, lambda i, n: -1 - i % n)
    buffers = [p for p in source.params if isinstance(p.type, Buf)]
    return [{p.name: cells(p, how) for p in buffers} for how in ways]

def run_watched(source: Source, sizes: dict, first: dict[str, int] = {}) -> str:
    "Run a kernel on these sizes; what a buffer saw that must not happen, or nothing."
    try: ways = fillings(source, sizes, first)
    except Exception: return ''
    for filling in ways:
        watch = Watch()
        args = [Watched(watch, p.name, list(filling[p.name])) if p.name in filling else sizes.get(p.name, 0) if p.type in (int, Size) else p.type(1) for p in source.params]
        if sum(len(a) for a in args if isinstance(a, Watched)) > LARGEST or any(abs(a) > 1000 for a in args if type(a) is int): return ''
        try: within(100_000, bare(source, _watching(watch)), *args)
        except Seen as e: return str(e)
        except TimeoutError: return ''
        except Exception as e: return f'{type(e).__name__}: {e}'
    return ''


# %% [markdown]
# ## Searching

# %%
#| export
BOUNDS = (0, 1, 2, 3, 4, 6, 8, 16, 32, 64, 256, 2**12, 2**20, 2**24, 2**32, 2**48, 2**63)

def _number(value: str) -> int | bool | None:
    value = value.replace('(', '').replace(')', '').replace(' ', '')
    return {'true': True, 'false': False}.get(value, int(value) if re.fullmatch(r'-?\d+', value) else None)

def smallest(check: Check, most: int = 2**63, seconds: float = 6.0) -> dict | None:
    "The smallest values of all symbols for which a condition fails; None if none was found."
    question, end = text(check), time.monotonic() + seconds
    ints = re.findall(r'\(declare-const (\S+) Int\)', question)
    for bound in BOUNDS:
        if bound > most or time.monotonic() > end: return None
        small = ''.join(f'(assert (<= (- {bound}) {v} {bound}))\n' for v in ints)
        for solver in ('z3', 'cvc5'):
            answer, = discharge(question.replace('(check-sat)', small + '(check-sat)'), (solver,), model=True, wall=0.5, limit={'z3': 300_000, 'cvc5': 3_000_000})
            if answer.result != 'unknown': break
        if answer.result == 'sat': return {n.strip('|')[1:]: _number(v) for n, v in answer.model.items() if _number(v) is not None}
    return None

def evaluate(t: Term, at: dict) -> int | None:
    "The value of a term of whole numbers."
    if isinstance(t, Var): return at.get(t.name)
    if not isinstance(t, App): return None
    if not t.args: return t.op if isinstance(t.op, int) else None
    args = [evaluate(a, at) for a in t.args]
    if None in args and t.op != 'ite': return None
    ops = {'+': lambda a, b: a + b, '-': lambda a, b: a - b, '*': lambda a, b: a*b, 'div': lambda a, b: a//b if b > 0 else None, 'mod': lambda a, b: a % b if b > 0 else None,
           '<': lambda a, b: a < b, '<=': lambda a, b: a <= b, '>': lambda a, b: a > b, '>=': lambda a, b: a >= b, '=': lambda a, b: a == b, 'distinct': lambda a, b: a != b,
           'and': lambda *a: all(a), 'or': lambda *a: any(a), 'not': lambda a: not a, 'ite': lambda c, a, b: None if c is None else a if c else b, '=>': lambda *a: not all(a[:-1]) or a[-1]}
    return ops[t.op](*args) if t.op in ops else None


# %% [markdown]
# ## Saying it

# %%
#| export
_PROBLEM = {'bounds': 'an index may be out of bounds', 'length': 'a buffer that cannot be made', 'race': 'a race', 'overflow': 'a number that may not fit', 'once': 'a cell that may be written twice', 'ends': 'a loop that may not end',
            'filled': 'a cell that may not be written', 'divisor': 'a divisor that may be zero or less', 'invariant': 'an invariant that does not hold', 'requires': 'a call that may break a contract',
            'contract': 'a cell that may break its contract', 'assert': 'an assertion that may fail', 'ensures': 'a promise that may be broken', 'possible': 'a contract that nothing can keep'}

def _observed(check: Check, at: dict | None) -> tuple[str, str]:
    "What was expected, and what happens in a case."
    shown = None if check.shown is None or at is None else evaluate(check.shown, at)
    where = ast.unparse(check.node).splitlines()[0]
    if check.kind == 'bounds' and check.accesses and shown is not None:
        a = check.accesses[0]
        return f'0 <= index < {evaluate(a.buffer.length, at)}, the length of {a.buffer.name}', f'index {shown}' + f' to {shown + a.cells - 1}'*(a.cells > 1)
    if check.kind in ('race', 'once') and shown is not None:
        a, b = check.accesses
        loop = next((l for l in a.loops if evaluate(l.var, at) is not None and isinstance(l.var, Var) and f'{l.var.name}~' in at), None)
        rounds = f'{loop.name} = {at[loop.var.name]} and {loop.name} = {at[loop.var.name + "~"]} both touch' if loop else 'one round touches twice'
        return check.expected, f'{rounds} {a.buffer.name}[{shown}]' + (f' (lines {a.node.lineno} and {b.node.lineno})' if a.node.lineno != b.node.lineno else '')
    if shown is not None: return check.expected, f'{ast.unparse(check.node).splitlines()[0]} is {shown}' if check.kind != 'filled' else f'cell {shown} is not'
    return check.expected, f'no proof for {where}' if at is None else f'not so: {where}'

_HINT = {'race': 'share out the loop over something that names different cells, or give each iteration cells of its own', 'overflow': 'state in requires how large the sizes may be, and in a Buf how large its integers are',
         'invariant': 'does it hold before the first round, and does each round keep it?'}

def refusal(source: Source, check: Check, shown: bool = True) -> KernelError:
    "The error for a condition that is not proved."
    at = smallest(check) if shown else None
    expected, observed = _observed(check, at)
    lines = [f'- line     : {ast.unparse(check.node).splitlines()[0]}']
    if at is not None:
        sizes = {p.name: at.get(p.name, 0) for p in source.params if p.type in (int, Size)} | {n: v for n, v in at.items() if n.startswith('len_')}
        rounds = {l.name: at[l.var.name] for a in check.accesses[:1] for l in a.loops if isinstance(l.var, Var) and l.var.name in at}
        tell = lambda values: ', '.join(f'{n}={v}' for n, v in values.items())
        lines.append(f'- smallest : {tell(sizes)}' + (f', at {tell(rounds)}' if rounds and check.kind == 'bounds' else ''))
        cells = {v.name.rpartition('_cell')[0]: at.get(v.name) for v in free(check.shown)} if check.shown is not None else {}
        seen = run_watched(source, sizes, cells)
        if seen: lines.append(f'- run      : {seen}')
    else: lines.append('- smallest : none found; the solvers gave up')
    return KernelError(check.where, _PROBLEM.get(check.kind, check.kind), expected, observed, '\n'.join(lines), _HINT.get(check.kind, '' if at else 'an invariant, an assert or a simpler index may help'))


# %%
from bendml.kernel.conditions import conditions
from bendml.kernel.contracts import read_kernel

def shift(n: Size, x: Buf["n", f32]):
    for i in range(n): x[i] = x[i + 1]

check = next(c for c in conditions(read_kernel(shift)) if ast.unparse(c.node) == 'x[i + 1]')
smallest(check)

# %%
run_watched(read_kernel(shift), {'n': 1})

# %%
print(refusal(read_kernel(shift), check))

# %% [markdown]
# ## What this does not show
#
# That there is no failing case where none was found. The solvers may give up, and then the kernel is refused without one.
