# %%
#| default_exp laws.read

# %% [markdown]
# # Reading Python
# > An expression of Python as a term of the logic; what is not understood is refused.

# %%
#| hide
#| export
import ast, inspect, types
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple, TypeVar

from bendml.laws.datatypes import LawError, select, store
from bendml.laws.terms import BOOL, INT, REAL, App, Sort, Symbol, Term, Var, at_sort, build, conj, constructors, equal, fields, get, literal, negate


# %% [markdown]
# ## The source is the code that runs
#
# A file may have been edited since it was imported, and a decorator may have put another function in the place of the one
# we see. So the source is compiled again, and must give the same instructions as the function that was handed to us.

# %%
#| export
def _same_code(a: types.CodeType, b: types.CodeType) -> bool:
    "Whether two code objects do the same."
    parts = 'co_code co_names co_varnames co_freevars co_cellvars co_argcount co_posonlyargcount co_kwonlyargcount co_flags co_exceptiontable'
    same = lambda k, l: _same_code(k, l) if isinstance(k, types.CodeType) and isinstance(l, types.CodeType) else (type(k), repr(k)) == (type(l), repr(l))
    return (all(getattr(a, p) == getattr(b, p) for p in parts.split()) and len(a.co_consts) == len(b.co_consts)
            and all(map(same, a.co_consts, b.co_consts)))


# %%
#| export
def _gives(source: str, fn: types.FunctionType, wrapped: bool) -> bool:
    "Whether compiling a source, perhaps wrapped in a function, gives the function's code. (Python compiles `m.f()` differently where it sees `import m`.)"
    code = compile(source, '?', 'exec', flags=fn.__code__.co_flags & 0x1ff0000, dont_inherit=True)
    inside = lambda c, name: next((k for k in c.co_consts if isinstance(k, types.CodeType) and k.co_name == name), None)
    if wrapped: code = inside(code, '_')
    return (found := inside(code, fn.__name__)) is not None and _same_code(found, fn.__code__)


# %%
#| export
def read_source(fn: types.FunctionType) -> tuple[ast.FunctionDef, str]:
    "The function's syntax tree with the lines of its file, and the file's name; `LawError` if it is not what runs."
    where = f'{fn.__module__}.{fn.__qualname__}'
    try: lines, start = inspect.getsourcelines(fn)
    except (OSError, TypeError): raise LawError(where, 'no source to read', 'a function in a file or a notebook', 'a function typed at a prompt or made by exec', 'put it into a file') from None
    file = fn.__code__.co_filename
    file = 'cell' if file.startswith('<') or 'ipykernel' in file else Path(file).name
    indented = lines[0][:1].isspace()
    outer = f"def _({', '.join(fn.__code__.co_freevars)}):\n" if indented else ''
    modules = [n for n in fn.__code__.co_names if isinstance(fn.__globals__.get(n), types.ModuleType)]
    try: tree, same = ast.parse(outer + ''.join(lines)), any(_gives(imports + outer + ''.join(lines), fn, indented) for imports in ('', ''.join(f'import {n}\n' for n in modules)))
    except SyntaxError: raise LawError(where, 'no function of its own', 'def ... on lines of its own', lines[0].strip()) from None
    nodes = [n for n in (tree.body[0] if indented else tree).body if isinstance(n, ast.FunctionDef) and n.name == fn.__name__]
    if not same or not nodes:
        raise LawError(f'{file}:{start} in {fn.__name__}', 'the source is not the code that runs', 'the function as it stands in its file', 'other instructions',
                       'was the file edited after it was imported, or a decorator put below? In a pytest file, write PYTEST_DONT_REWRITE into its docstring')
    ast.increment_lineno(nodes[0], start - 1 - len(outer.splitlines()))
    return nodes[0], file


# %%
def twice(f): return lambda x: f(x) + f(x)

@twice
def plus_one(x: int) -> int: return x + 1

try: read_source(plus_one)
except LawError as e: print(e)

# %% [markdown]
# A name means what Python would find under it: in the enclosing functions, then among the globals, then the builtins.
# Everything a function refers to is kept, to see later whether the name still means the same.

# %%
#| export
_NOTHING = object()


# %%
#| export
def look_up(fn: types.FunctionType, dotted: str) -> object:
    "What a name, perhaps with dots, means inside a function now."
    first, *more = dotted.split('.')
    code = fn.__code__
    try:
        if first in code.co_freevars: found = fn.__closure__[code.co_freevars.index(first)].cell_contents
        else: found = fn.__globals__.get(first, fn.__builtins__.get(first, _NOTHING))
        for name in more: found = getattr(found, name) if isinstance(found, (types.ModuleType, type)) else _NOTHING
    except (ValueError, AttributeError): return _NOTHING
    return found


# %% [markdown]
# ## What a pure function is, to the logic

# %%
#| export
class Case(NamedTuple):
    "One equation: the function at these arguments, under these conditions, is this value."
    args: tuple[Term, ...]
    conds: tuple[Term, ...]
    value: Term


# %%
#| export
class Fixed:
    "Something that does not change once it is `fixed`."
    fixed = False
    def __setattr__(self, name, value):
        if self.fixed: raise AttributeError(f'a {type(self).__name__} does not change')
        super().__setattr__(name, value)


# %%
#| export
@dataclass(eq=False)
class Function(Fixed):
    "The logical side of a Python function."
    fn: types.FunctionType
    params: tuple[Var, ...]
    sort: Sort
    where: str                               # file:line
    cases: tuple[Case, ...] = ()             # none: the function is abstract
    uses: dict = field(default_factory=dict) # dotted name -> (what it meant when it was read, the logical side of that then)
    checks: tuple['Check', ...] = ()         # what had to be proved about it
    measure: Term | None = None              # what shrinks, if it is not an argument's structure
    measured: str | None = None              # the same, as text
    code: types.CodeType = None              # as it was when read

    def __post_init__(self):
        self.__name__, self.__module__, self.code = self.fn.__name__, self.fn.__module__, self.fn.__code__
        self.types = tuple(dict.fromkeys(t for s in (*(p.sort for p in self.params), self.sort) for t in type_vars(s)))
        if old := function_of(self.fn): raise LawError(f'{self.where} in {self.__name__}', 'read before', 'a function that is not yet pure or abstract', old.where, 'laws may speak of it as it was read then; define it again')

    def __call__(self, *args: Term, types: tuple[Sort, ...] | None = None) -> App:
        types = tuple(map(Sort, self.types)) if types is None else types
        return App(Symbol(self, types), args, at_sort(self.sort, dict(zip(self.types, types))))

    def recursive(self) -> bool: return any(f is self for _, f in self.uses.values())


# %%
#| export
class Check(NamedTuple):
    "Something that a function needs to be accepted: a divisor that is not zero, a measure that shrinks."
    why: str
    text: str

def type_vars(s: Sort) -> list[TypeVar]:
    "The type variables in a sort."
    return [s.head] if isinstance(s.head, TypeVar) else [t for a in s.args for t in type_vars(a)]


# %%
#| export
def function_of(thing: object) -> Function | None:
    "The logical side of a function that is pure or abstract; None for anything else, a wrapper around one included."
    found = getattr(thing, '__reflected__', None) if isinstance(thing, types.FunctionType) else None
    return found if found is not None and found.fn is thing else None


# %% [markdown]
# A name can be given to something else after the function was read. Python would then run the new thing, while the
# equations speak of the old. Or the thing is still the same, and was given other code, as a notebook's autoreload does, or other
# equations. `changed` finds out: it follows the equations that were read, not those that a function has by now. What has changed
# is not proved about, and not cited.

# %%
#| export
def changed(f: Function, seen: set | None = None) -> str:
    "Which name no longer means what it meant when `f` was read, here or in what `f` calls; '' if none."
    seen = set() if seen is None else seen
    if f in seen: return ''
    seen.add(f)
    if f.fn.__code__ is not f.code or f.fn.__defaults__ or f.fn.__kwdefaults__: return f'the code of {f.__name__}'
    for name, (meant, read) in f.uses.items():
        now = look_up(f.fn, name)
        if function_of(now) is not read or now is not meant and not (type(now) is type(meant) is int and now == meant): return f'{name} in {f.__name__}'
        if read and (deeper := changed(read, seen)): return deeper
    return ''


# %% [markdown]
# ## Reading expressions
#
# The reader walks over the syntax tree with a *state*: what the local names are, what the parameters have become in the
# present case, and which conditions hold here. An expression becomes a term. Where an expression alone does not tell its
# sort, as `Nil()`, the sort wanted by its surroundings does.

# %%
#| export
@dataclass(frozen=True)
class State:
    "Where the reader stands."
    names: dict                     # local name -> term
    args: tuple[Term, ...] = ()     # what the parameters are, in this case
    conds: tuple[Term, ...] = ()    # what holds here

    def given(self, *conds: Term) -> 'State': return replace(self, conds=self.conds + conds)

class Unclear(LawError):
    "The sort of an expression does not follow from the expression alone."


# %%
#| export
def matches(pattern: Sort, s: Sort, types: dict) -> bool:
    "Whether a sort is an instance of a pattern; the type variables found are added to `types`."
    if isinstance(pattern.head, TypeVar): return types.setdefault(pattern.head, s) == s
    return pattern.head == s.head and len(pattern.args) == len(s.args) and all(matches(p, a, types) for p, a in zip(pattern.args, s.args))


# %%
#| export
class Expressions:
    "Reads the expressions of one function."
    def __init__(self, fn: types.FunctionType, node: ast.FunctionDef, file: str, own: Function | None = None):
        self.fn, self.node, self.file, self.own = fn, node, file, own
        self.uses, self.calls, self.nonzero, self.any_field = {}, [], [], False
        self.local = set(fn.__code__.co_varnames + fn.__code__.co_cellvars)

    def refuse(self, node: ast.AST, problem: str, expected: str, observed: str, hint: str = '', kind: type = LawError) -> LawError:
        line = getattr(node, 'lineno', self.node.lineno)
        return kind(f'{self.file}:{line} in {self.fn.__name__}', problem, expected, observed, hint)

    def parse(self, text: str) -> ast.expr:
        "An expression that was given as text."
        try: return ast.increment_lineno(ast.parse(text.strip(), mode='eval').body, self.node.lineno - 1)
        except SyntaxError: raise self.refuse(self.node, 'not an expression', 'Python', text) from None

    def expr(self, node: ast.expr, at: State, want: Sort | None = None) -> Term:
        "An expression as a term, of the sort that is wanted."
        read = getattr(self, type(node).__name__, None)
        if read is None: raise self.refuse(node, 'not understood', 'numbers, names, calls, arithmetic, comparisons, and / or / not, if-else', f'{type(node).__name__}: {ast.unparse(node):.60}')
        t = read(node, at, want)
        if want is not None and t.sort != want: raise self.refuse(node, f'wrong sort of {ast.unparse(node):.60}', str(want), str(t.sort), f'this place asks for {want}: change the expression, or the annotation that asks for it')
        return t

    def Constant(self, node, at, want):
        if type(node.value) in (bool, int): return literal(node.value)
        hint = 'write Fraction(1, 2): floats round' if isinstance(node.value, float) else ''
        raise self.refuse(node, 'not understood', 'True, False or a whole number', f'{type(node.value).__name__} {node.value!r:.40}', hint)


# %% [markdown]
# A name is a local value, or a number, a function or a constructor that Python finds under it.

# %%
#| export
class Naming(Expressions):
    "Reads names and fields."
    def Name(self, node, at, want):
        return at.names[node.id] if node.id in at.names else self.constant(node)

    def constant(self, node: ast.expr) -> Term:
        "A number that a global name stands for."
        found = self.meaning(node)
        if type(found) in (bool, int): return literal(found)
        raise self.refuse(node, f'{ast.unparse(node)} is no value', 'a parameter, a local name, a field, or a global whole number', 'nothing' if found is _NOTHING else type(found).__name__)

    def meaning(self, node: ast.expr) -> object:
        "What a name that is not a local value refers to."
        dotted = self.dotted(node)
        first = dotted.split('.')[0]
        if first in self.local: raise self.refuse(node, f'{first} has no value here', 'a local name that was given a value on this path', first)
        found = self.fn if dotted == self.fn.__name__ and self.own else look_up(self.fn, dotted)
        self.uses.setdefault(dotted, (found, self.own if self.own and found is self.fn else function_of(found)))
        return found

    def dotted(self, node: ast.expr) -> str:
        if isinstance(node, ast.Name): return node.id
        if isinstance(node, ast.Attribute): return f'{self.dotted(node.value)}.{node.attr}'
        raise self.refuse(node, 'not understood', 'a name', ast.unparse(node)[:60])

    def Attribute(self, node, at, want):
        root = node
        while isinstance(root, ast.Attribute): root = root.value
        if isinstance(root, ast.Name) and root.id not in at.names: return self.constant(node)
        t = self.expr(node.value, at)   # a field of a value whose datatype has only one constructor; in a hint, of any value
        owners = [c for c in constructors(t.sort) if node.attr in dict(fields(c, t.sort))]
        if not owners: raise self.refuse(node, 'no such field', f'a field of {t.sort}', node.attr)
        if len(constructors(t.sort)) > 1 and not self.any_field: raise self.refuse(node, 'a field that may not be there', 'match, which says what happens in the other cases', ast.unparse(node))
        return get(owners[0], node.attr, t)


# %% [markdown]
# Arithmetic is the integers' and the fractions'. Python rounds `//` down and SMT-LIB's `div` does not, for a negative
# divisor; so the sign is spelled out. A divisor must be known not to be zero, from what holds on the way to it.

# %%
#| export
def _arith(op: str, *args: Term) -> App: return App(op, args, args[0].sort)

def less(a: Term, b: Term, op: str = '<') -> App: return App(op, (a, b), BOOL)

def ite(c: Term, a: Term, b: Term) -> Term: return a if a == b else App('ite', (c, a, b), a.sort)

def _floor(op: str, a: Term, b: Term) -> Term:
    "Python's // or % on integers."
    up, down = _arith(op, a, b), _arith(op, _arith('-', a), _arith('-', b))
    if op == 'mod': down = _arith('-', down)
    return up if isinstance(b.op if isinstance(b, App) else None, int) and b.op > 0 else ite(less(literal(0), b), up, down)


# %%
#| export
class Arithmetic(Naming):
    "Reads operators."
    def pair(self, a, at_a, b, at_b, want=None) -> tuple[Term, Term]:
        "Two expressions of one sort, which either of them may tell."
        try: return (first := self.expr(a, at_a, want)), self.expr(b, at_b, first.sort)
        except Unclear: second = self.expr(b, at_b, want)
        return self.expr(a, at_a, second.sort), second

    def number(self, node, at) -> Term:
        t = self.expr(node, at)
        if t.sort not in (INT, REAL): raise self.refuse(node, f'wrong sort of {ast.unparse(node):.60}', 'int or Fraction', str(t.sort), 'only numbers are calculated with and compared by size')
        return t

    def UnaryOp(self, node, at, want):
        if isinstance(node.op, ast.Not): return negate(self.expr(node.operand, at, BOOL))
        if not isinstance(node.op, ast.USub): raise self.refuse(node, 'not understood', '- or not', ast.unparse(node)[:60])
        t = self.number(node.operand, at)
        return literal(-t.op) if isinstance(t, App) and type(t.op) is int else _arith('-', t)

    def BinOp(self, node, at, want):
        a, b = self.number(node.left, at), self.number(node.right, at)
        if a.sort != b.sort: raise self.refuse(node, 'two sorts of number', str(a.sort), str(b.sort), 'write Fraction(n) to make a fraction of a whole number')
        if op := {ast.Add: '+', ast.Sub: '-', ast.Mult: '*'}.get(type(node.op)): return _arith(op, a, b)
        op = {(ast.FloorDiv, INT): 'div', (ast.Mod, INT): 'mod', (ast.Div, REAL): '/'}.get((type(node.op), a.sort))
        if op is None: raise self.refuse(node, 'not understood', '+ - *, // and % of whole numbers, / of fractions', ast.unparse(node)[:60])
        if not (isinstance(b, App) and type(b.op) in (int, Fraction) and b.op != 0): self.nonzero.append((node, at.conds, negate(equal(b, literal(0 if b.sort == INT else Fraction(0))))))
        return _arith('/', a, b) if op == '/' else _floor(op, a, b)


# %% [markdown]
# What stands to the right of an `and` is only reached if the left holds; so it may be relied on there.

# %%
#| export
class Logic(Arithmetic):
    "Reads and, or, comparisons, and if-else."
    def BoolOp(self, node, at, want):
        parts, both = [], isinstance(node.op, ast.And)
        for v in node.values:
            parts.append(self.expr(v, at, BOOL))
            at = at.given(parts[-1] if both else negate(parts[-1]))
        return conj(*parts) if both else App('or', tuple(parts), BOOL)

    def Compare(self, node, at, want):
        parts, left = [], node.left
        for op, right in zip(node.ops, node.comparators):
            parts.append(self.compare(node, op, left, right, at))
            left, at = right, at.given(parts[-1])
        return conj(*parts)

    def compare(self, node, op, left, right, at):
        if isinstance(op, (ast.Eq, ast.NotEq)):
            same = equal(*self.pair(left, at, right, at))
            return same if isinstance(op, ast.Eq) else negate(same)
        word = {ast.Lt: '<', ast.LtE: '<=', ast.Gt: '>', ast.GtE: '>='}.get(type(op))
        if word is None: raise self.refuse(node, 'not understood', '== != < <= > >=', ast.unparse(node)[:60])
        a = self.number(left, at)
        return less(a, self.expr(right, at, a.sort), word)

    def IfExp(self, node, at, want):
        c = self.expr(node.test, at, BOOL)
        return ite(c, *self.pair(node.body, at.given(c), node.orelse, at.given(negate(c)), want))


# %% [markdown]
# This is how `x // y` is read. The solvers' `div` is used with a positive divisor only; and the reader notes down that
# somebody has to prove that `y` is not zero, given what holds on the way there.

# %%
from bendml.laws.terms import Script

def quotient(x: int, y: int): return x // y if x > y else x

node, file = read_source(quotient)
reader = Logic(quotient, node, file)
t = reader.expr(node.body[0].value, State({'x': Var('x', INT), 'y': Var('y', INT)}))
print(Script().term(t), *(f'given {Script().term(conds[0])}: {Script().term(claim)}' for _, conds, claim in reader.nonzero), sep='\n')


# %% [markdown]
# A call is of a constructor, of a function that is pure or abstract, or of `Fraction`, `select` or `store`. The types of a function that works for all types follow from its arguments, or from what is wanted.

# %%
#| export
class Operations(Logic):
    "Reads calls that mean an operation of the logic."
    def known(self, node, found, at):
        count = {Fraction: (1, 2), select: (2,), store: (3,)}[found]
        if len(node.args) not in count: raise self.refuse(node, f'call of {found.__name__}', f'{count[-1]} arguments', str(len(node.args)))
        if found is Fraction: return self.fraction(node, at)
        a = self.expr(node.args[0], at)
        if a.sort.head != 'Array': raise self.refuse(node, f'call of {found.__name__}', 'an array', str(a.sort))
        i = self.expr(node.args[1], at, INT)
        if found is select: return App('select', (a, i), a.sort.args[1])
        return App('store', (a, i, self.expr(node.args[2], at, a.sort.args[1])), a.sort)

    def fraction(self, node, at):
        a, *b = (self.expr(n, at, INT) for n in node.args)
        if b:
            if not all(isinstance(t, App) and type(t.op) is int for t in (a, *b)) or b[0].op == 0: raise self.refuse(node, 'not understood', 'Fraction of two written numbers, the second not 0', ast.unparse(node))
            return literal(Fraction(a.op, b[0].op))
        return literal(Fraction(a.op)) if isinstance(a, App) and type(a.op) is int else App('to_real', (a,), REAL)


# %%
#| export
class Calls(Operations):
    "Reads calls."
    def Call(self, node, at, want):
        if node.keywords or any(isinstance(a, ast.Starred) for a in node.args): raise self.refuse(node, 'not understood', 'arguments in order, no names, no stars', ast.unparse(node)[:60])
        if isinstance(node.func, ast.Name) and node.func.id in at.names: raise self.refuse(node, 'a value is called', 'a function', node.func.id)
        found = self.meaning(node.func)
        if any(found is known for known in (Fraction, select, store)): return self.known(node, found, at)
        data = found.__mro__[1] if isinstance(found, type) else None
        if data is not None and found in vars(data).get('__constructors__', ()):
            own = Sort(data, tuple(map(Sort, data.__parameters__)))
            args, types = self.args(node, at, tuple(s for _, s in found.__fields__), data.__parameters__, own, want)
            return build(found, args, at_sort(own, types))
        _, f = self.uses[self.dotted(node.func)]
        if f is None:
            what = 'nothing of that name' if found is _NOTHING else f'a {type(found).__name__} that is not pure'
            raise self.refuse(node, f'call of {ast.unparse(node.func)}', 'a constructor, or a function with @pure or @abstract', what, 'put @pure above it, and define it first')
        args, types = self.args(node, at, tuple(p.sort for p in f.params), f.types, f.sort, want)
        if f is self.own:
            if tuple(types.values()) != tuple(map(Sort, f.types)): raise self.refuse(node, 'recursion at another type', f'{", ".join(t.__name__ for t in f.types)}', ', '.join(map(str, types.values())))
            self.calls.append((node, at, args))
        return f(*args, types=tuple(types[t] for t in f.types))

    def args(self, node, at, sorts, variables, result, want) -> tuple[tuple[Term, ...], dict]:
        "The arguments of a call, and the types that its type variables stand for."
        if len(node.args) != len(sorts): raise self.refuse(node, f'call of {ast.unparse(node.func)}', f'{len(sorts)} arguments', str(len(node.args)))
        types, done, waiting = {}, {}, list(range(len(sorts)))
        if want is not None and not matches(result, want, types): types = {}
        while waiting:
            for i in waiting:
                known = all(t in types for t in type_vars(sorts[i]))
                try: done[i] = self.expr(node.args[i], at, at_sort(sorts[i], types) if known else None)
                except Unclear:
                    if i == waiting[-1]: raise
                    continue
                if not matches(sorts[i], done[i].sort, types): raise self.refuse(node.args[i], f'wrong sort of {ast.unparse(node.args[i]):.60}', str(at_sort(sorts[i], types)), str(done[i].sort), 'look at the annotations of what is called')
                waiting.remove(i)
                break
        if missing := [t.__name__ for t in variables if t not in types]:
            raise self.refuse(node, f'the sort of {ast.unparse(node):.60} is not clear', 'a place that tells it', f'any {", ".join(missing)}', 'compare it with, or put it into, something whose sort is known', Unclear)
        return tuple(done[i] for i in range(len(sorts))), {t: types[t] for t in variables}

# %% [markdown]
# ## What this does not show
#
# Expressions are half of a function; the other half, paths and cases, is on the [next page](14_reflect.ipynb). That Python's
# integers are those of the solvers, and `Fraction` their real numbers, is taken for granted; a test compares them on values.
