# %%
#| default_exp shape.definitions

# %% [markdown]
# # What defines, and what runs
# > To check a file its functions and the values that they use must exist, but its program must not run.

# %% [markdown]
# `bendml check` executes a file's imports, functions, classes, and those assignments that only compute: literals, arithmetic,
# comprehensions, and calls of what is known to do nothing else (`np.hanning(16)`, `logging.getLogger("x")`,
# `np.random.default_rng(0)`, `"a b".split()`). Everything else, loading data, training, printing, is left out; and what it
# would have assigned has no value here, not the old one.

# %%
#| hide
#| export
import __future__, ast, builtins, collections, contextlib, copy, datetime, decimal, enum, fractions, functools, itertools, logging, math
import operator, os.path, pathlib, random, re, string, sys, types, typing, warnings
from dataclasses import is_dataclass
from typing import Any, Iterator

import numpy as np

from bendml.shape.sizes import DimError
from bendml.shape.messages import Place, ShapeError
from bendml.shape.symbols import op_of
from bendml.shape import calls  # the rules of NumPy's functions

# %% [markdown]
# ## Calls that only compute

# %%
#| export
_CALLS = [*(getattr(builtins, n) for n in '''abs all any bool bytearray bytes chr complex dict divmod enumerate filter float format
            frozenset hex int isinstance issubclass iter len list map max min next object oct ord pow range repr reversed round set slice sorted
            str sum super tuple type zip'''.split()),
          *(v for v in vars(math).values() if callable(v)), *(v for v in vars(operator).values() if callable(v)), *(v for v in vars(itertools).values() if isinstance(v, type)),
          collections.Counter, collections.OrderedDict, collections.defaultdict, collections.deque, collections.namedtuple, copy.copy, copy.deepcopy,
          datetime.date, datetime.datetime, datetime.timedelta, decimal.Decimal, enum.Enum, enum.IntEnum, fractions.Fraction, functools.partial,
          logging.getLogger, logging.NullHandler, pathlib.Path, pathlib.PurePath, random.Random, re.compile, string.Template, types.SimpleNamespace,
          types.MappingProxyType, os.path.join, os.path.dirname, os.path.basename, os.path.abspath, os.path.splitext,
          typing.NamedTuple, typing.NewType, typing.TypeVar, typing.cast, np.dtype, np.finfo, np.iinfo, np.vectorize, np.errstate, np.random.default_rng, np.random.RandomState,
          np.random.SeedSequence, np.random.PCG64, np.hanning, np.hamming, np.blackman, np.bartlett, np.kaiser, np.poly1d, np.float32, np.float64, np.int64, np.int32, np.bool_]
CALLS = {c for c in _CALLS}
METHODS = set('''astype capitalize clip copy count cumsum difference dot endswith fill_value flatten format get index intersection items join joinpath keys
                 lower lstrip max mean min most_common normal outer permutation prod random randint randn rand ravel replace repeat reshape rstrip split squeeze
                 standard_normal startswith std strip sum swapaxes title tolist transpose uniform integers choice union upper values var
                 with_name with_suffix zfill bit_length resolve absolute'''.split())
KEEPS = {functools.partial, np.vectorize}  # they keep a function, and call it later
OUTSIDE = {'argv', 'environ', 'stdin', 'stdout', 'stderr'}  # what a program is told when it starts


# %%
#| export
def _meant(f: ast.expr, space: dict[str, Any]) -> Any:
    "The object that a dotted name stands for, looked up in modules and classes only; None if it is something else."
    match f:
        case ast.Name(id): return space.get(id, getattr(builtins, id, None))
        case ast.Attribute(value, attr):
            owner = _meant(value, space)
            return getattr(owner, attr, None) if isinstance(owner, types.ModuleType | type) else None


# %%
#| export
def _known_call(call: ast.Call, space: dict[str, Any]) -> bool:
    "Does this call do nothing but compute?"
    f = _meant(call.func, space)
    if f is None: return isinstance(call.func, ast.Attribute) and call.func.attr in METHODS and _computes(call.func.value, space)
    if isinstance(f, type) and (is_dataclass(f) and not hasattr(f, '__post_init__') or hasattr(f, '_fields') or issubclass(f, np.generic | enum.Enum)): return True
    if isinstance(getattr(f, '__self__', None), np.random.RandomState): return f.__name__ in METHODS
    if (getattr(f, '__module__', None) or '').startswith(('bendml.shape', 'jaxtyping')): return True
    return _listed(f) or op_of(f) is not None

def _listed(f: Any) -> bool:
    try: return f in CALLS
    except TypeError: return False


# %%
#| export
def _computes(value: ast.expr, space: dict[str, Any]) -> bool:
    "Does this expression only compute? What stands in a function that it makes is not called here."
    if isinstance(value, ast.Lambda): return all(_computes(d, space) for d in [*value.args.defaults, *filter(None, value.args.kw_defaults)])
    if isinstance(value, ast.Await | ast.Yield | ast.YieldFrom) or isinstance(value, ast.Attribute) and value.attr in OUTSIDE: return False
    if isinstance(value, ast.Call):
        if not _known_call(value, space): return False
        if _listed(f := _meant(value.func, space)) and f in KEEPS or getattr(f, '__module__', '') == 'bendml.shape.typing': return True  # it calls nothing now
        given = [*value.args, *(k.value for k in value.keywords)]
        if any(isinstance(_meant(a, space), types.FunctionType) for a in given): return False
        return all(_computes(a.body if isinstance(a, ast.Lambda) else a, space) for a in given)
    return all(_computes(v, space) for v in ast.iter_child_nodes(value))


# %% [markdown]
# ## Statements

# %%
#| export
def defines(statement: ast.stmt, space: dict[str, Any]) -> bool:
    "Is this a definition, rather than a step of the program?"
    inner = lambda body: all(defines(s, space) for s in body)
    match statement:
        case ast.Import() | ast.ImportFrom() | ast.FunctionDef() | ast.ClassDef() | ast.AsyncFunctionDef() | ast.Pass(): return True
        case ast.Assign(value=value) | ast.AnnAssign(value=value) | ast.AugAssign(value=value): return value is None or _computes(value, space)
        case ast.Expr(ast.Call(f)): return getattr(_meant(f, space), '__module__', None) == 'bendml.shape.typing'
        case ast.Expr(ast.Constant()): return True
        case ast.If(test, body, other):
            if isinstance(test, ast.Name) and test.id == 'TYPE_CHECKING': return True
            return not any(getattr(n, 'id', '') == '__name__' for n in ast.walk(test)) and _computes(test, space) and inner(body) and inner(other)
        case ast.Try(body, handlers, other, final): return inner([*body, *other, *final, *(s for h in handlers for s in h.body)])
        case ast.With(items, body): return all(_enters(i.context_expr, space) for i in items) and inner(body)
    return type(statement).__name__ == 'TypeAlias'


# %%
#| export
ENTERED = {np.errstate, contextlib.nullcontext, warnings.catch_warnings}  # what `with` may enter

def _enters(manager: ast.expr, space: dict[str, Any]) -> bool:
    if not isinstance(manager, ast.Call) or not isinstance(f := _meant(manager.func, space), type) or f not in ENTERED: return False
    return all(_computes(a, space) for a in [*manager.args, *(k.value for k in manager.keywords)])


# %%
space = {'np': np, 'logging': logging, 'sys': sys}
[defines(s, space) for s in ast.parse('''
K = np.ones(3)/3
log = logging.getLogger("training")
NAMES = {c: i for i, c in enumerate("a b".split())}
data = np.load("train.npy")
rows = [f(d) for d in data]
steps = int(sys.argv[1])
print(K)
if __name__ == "__main__": steps = 3
''').body]


# %% [markdown]
# A typed function in a statement that is left out is not checked. It is named, so that this does not look like success.

# %%
#| export
def typed_inside(node: ast.AST, space: dict[str, Any]) -> Iterator[tuple[ast.AST, str]]:
    "What a statement would give to `@typed`, and its name; what stands inside of functions left out."
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        if any(_is_typed(d, space) for d in getattr(node, 'decorator_list', ())): yield node, node.name
        return
    if isinstance(node, ast.Call) and node.args and _is_typed(node.func, space):
        plain = not node.keywords and not isinstance(node.func, ast.Call) and isinstance(_meant(node.args[0], space), types.FunctionType)
        if not plain: yield node, ast.unparse(node.args[0])  # a function that is there is checked without `@typed` too
    for n in ast.iter_child_nodes(node): yield from typed_inside(n, space)

def _is_typed(f: ast.expr, space: dict[str, Any]) -> bool:
    while isinstance(f, ast.Call): f = f.func
    return getattr(f, 'attr', getattr(f, 'id', '')) == 'typed' or getattr(_meant(f, space), '__module__', None) == 'bendml.shape.typing'


# %%
#| export
def _not_checked(statement: ast.stmt, space: dict[str, Any], file: str) -> list[str]:
    "A line for each function of a statement that is left out, and that `@typed` would have checked."
    word = type(statement).__name__.removeprefix('Async').removesuffix('Star').lower()
    inside = f'inside {"an" if word[0] in "aei" else "a"} `{word}`' if hasattr(statement, 'body') or word == 'match' else 'in a step of the program'
    return [f'{Place(file, n.lineno, n.col_offset)}: {name} is not checked: it is defined {inside}, which the check does not run; define it outside of that'
            for n, name in typed_inside(statement, space)]


# %% [markdown]
# ## Running them

# %%
#| export
def assigned(statement: ast.stmt) -> Iterator[str]:
    "The names that a statement gives a value, changes or deletes, what stands inside of functions left out."
    match statement:
        case ast.FunctionDef(name) | ast.ClassDef(name) | ast.AsyncFunctionDef(name): yield name; return
        case ast.Import(names) | ast.ImportFrom(names=names): yield from ((a.asname or a.name).partition('.')[0] for a in names); return
        case ast.Assign(targets=[ast.Subscript() | ast.Attribute() as t]) | ast.AugAssign(target=ast.Subscript() | ast.Attribute() as t):
            while isinstance(t, ast.Subscript | ast.Attribute): t = t.value
            if isinstance(t, ast.Name): yield t.id
        case ast.Expr(ast.Call(ast.Attribute(ast.Name(id), method))) if method in CHANGES: yield id
    for n in ast.iter_child_nodes(statement):
        yield from assigned(n) if isinstance(n, ast.stmt | ast.ExceptHandler | ast.match_case) else _bound(n)


# %%
#| export
def _bound(node: ast.AST) -> Iterator[str]:
    "The names that an expression or a target binds outside of itself."
    if isinstance(node, ast.Lambda): return
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del): yield node.id
    for n in [node.iter, *node.ifs] if isinstance(node, ast.comprehension) else ast.iter_child_nodes(node): yield from _bound(n)

CHANGES = set('''append extend insert remove pop clear sort reverse update setdefault popitem add discard resize fill put itemset
                 appendleft popleft rotate'''.split())


# %%
#| export
class Definitions:
    "What a file defines, executed; what is left out, and why; what fails."
    def __init__(self, space: dict[str, Any]): 
        self.space, self.absent, self.refusals, self.unchecked, self.flags = space, {}, [], [], 0

    def run(self, statements: list[ast.stmt], file: str) -> None:
        "Execute the definitions one by one; one that fails is a refusal, and the others go on."
        for s in statements:
            names = set(assigned(s))
            if not defines(s, self.space):
                self.unchecked += _not_checked(s, self.space, file)
                self._without(names, f'is assigned on line {s.lineno}, which `bendml check` does not run')
                continue
            if isinstance(s, ast.ImportFrom) and s.module == '__future__': self.flags |= sum(getattr(__future__, a.name).compiler_flag for a in s.names)
            try: exec(compile(ast.Module([s], []), file, 'exec', self.flags, dont_inherit=True), self.space)
            except NameError as e:
                if e.name not in self.absent: self._failed(s, file, e, names)
                else: self._without(names - {e.name}, f'needs {e.name}, which {self.absent[e.name]}')  # X -= 1 says nothing new of X
            except (Exception, SystemExit) as e: self._failed(s, file, e, names)
            else: self.absent = {n: why for n, why in self.absent.items() if n not in names}

    def _without(self, names: set[str], why: str) -> None:
        for n in names: self.space.pop(n, None)
        self.absent |= dict.fromkeys(names, why)

    def _failed(self, s: ast.stmt, file: str, e: Exception, names: set[str]) -> None:
        self._without(names, f'failed on line {s.lineno}')
        hint = f'is it installed for {sys.executable}?' if isinstance(e, ModuleNotFoundError) else ''
        if not isinstance(e, ShapeError): e = ShapeError(str(e) if isinstance(e, DimError) else f'{type(e).__name__}: {e.msg if isinstance(e, SyntaxError) else e}', hint=hint)
        e.place = e.place or Place(file, s.lineno, s.col_offset, function=getattr(s, 'name', ''))
        self.refusals.append(e)

    def explain(self, e: ShapeError) -> ShapeError:
        "Say of a name that is not there why it is not."
        if e.missing in self.absent and e.reason.startswith('NameError'):
            e.hint = f'{e.missing} {self.absent[e.missing]}'
            if 'does not run' in e.hint: e.hint += ': pass it to the function as a parameter; running the file itself checks it as it is'
        return e


# %%
definitions = Definitions({'np': np})
definitions.run(ast.parse('''
N = 4
W = np.hanning(N)
N = int(input())
V = np.ones(N)
''').body, 'train.py')
definitions.space['W'], definitions.absent

# %% [markdown]
# ## What this does not show
#
# A value that a left-out step changes by passing it to a function that writes into it is not known to have changed. What a
# decorator, the body of a class or an imported module does is done.
