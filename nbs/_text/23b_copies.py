# %%
#| default_exp shape.copies

# %% [markdown]
# # A copy to trace
# > The function's own source, compiled again with every call, loop and list passing through our hands.

# %% [markdown]
# What is traced is a copy: the same source, with the same globals, in which `f(x)` is written `call(f, x)` and
# `for x in xs` is `for x in loop(xs)`. So `from numpy import zeros` works as well as `np.zeros`, helpers that are called are
# copied in turn, nothing global is patched, and two threads can trace at once. The function that runs afterwards is the
# original.

# %%
#| hide
#| export
import ast, builtins, math, operator, os, random, sys, sysconfig, time, types, warnings
from functools import lru_cache
from typing import Any, Callable

import numpy as np

from bendml.shape.sizes import Dim
from bendml.shape.facts import claim
from bendml.shape.messages import ShapeError, source_tree
from bendml.shape.symbols import (OPS, Array, Op, Size, _Method, branch, choose, current, is_symbolic, number, one_entry, op_of,
                                  perform, refuse, size_value)
from bendml.shape.elementwise import lift
from bendml.shape.products import unknown
from bendml.shape.moves import shape_of
from bendml.shape.loops import (Growing, Turns, as_turns, backwards, comprehension, each, enumerated, int_of, loop, symbolic_range,
                                tick, while_loop, zipped)
from bendml.shape import indexing, making, reductions


# %% [markdown]
# ## Which variables a loop carries
#
# A variable that each turn sets before it reads it need not be the same after every turn.

# %%
#| export
def _loads(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}

def _stores(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store | ast.Del)}


# %%
#| export
def _read_first(body: list[ast.stmt], known: set[str]) -> set[str]:
    "The variables that a block may read before it has set them."
    read, known = set(), set(known)
    for s in body:
        match s:
            case ast.Assign(targets, value):
                read |= _loads(value) - known
                read |= set().union(*(_loads(t) for t in targets)) - known
                for t in targets: known |= {n.id for n in ast.walk(t) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
            case ast.AugAssign(target, _, value):
                read |= ({target.id} if isinstance(target, ast.Name) else _loads(target)) - known | _loads(value) - known
            case ast.For(target, it, inner, other):
                read |= _loads(it) - known | _read_first(inner, known | _stores(target)) | _read_first(other, known)
            case ast.If(test, inner, other):
                read |= _loads(test) - known | _read_first(inner, known) | _read_first(other, known)
            case _: read |= (_loads(s) | (_stores(s) if isinstance(s, ast.Delete) else set())) - known
    return read


# %%
#| export
def dead_names(target: ast.AST | None, body: list[ast.stmt]) -> tuple[str, ...]:
    "Variables set in a loop that no turn inherits from the one before."
    own = _stores(target) if target else set()
    return tuple(sorted((own | set().union(*map(_stores, body))) - _read_first(body, own)))


# %% [markdown]
# ## Rewriting

# %%
#| export
def _hook(name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(f'__bendml_{name}__', ast.Load()), list(args), [])

DIRECT = {'super', 'locals', 'globals', 'vars', 'dir', 'eval', 'exec'}  # these look at the frame that calls them


# %%
#| export
class _Rewrite(ast.NodeTransformer):
    "Pass calls, loops, lists and raised exceptions through our hands; every new node keeps the place of the old one."
    def visit_Call(self, node):
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and (node.func.id in DIRECT or node.func.id.startswith('__bendml_')): return node
        return self._at(node, ast.Call(ast.Name('__bendml_call__', ast.Load()), [node.func, *node.args], node.keywords))

    def visit_For(self, node):
        dead = dead_names(node.target, node.body)
        self.generic_visit(node)
        name = next((n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)), 'turn')
        node.iter = self._at(node.iter, _hook('loop', node.iter, ast.Constant(dead), ast.Constant(name)))
        return node

    def visit_While(self, node):
        dead = tuple(set(dead_names(None, node.body)) - _loads(node.test))
        self.generic_visit(node)
        condition = ast.Lambda(ast.arguments([], [], None, [], [], None, []), node.test)
        target = ast.Name('__bendml_turn__', ast.Store())
        return self._at(node, ast.For(target, _hook('while', condition, ast.Constant(dead)), node.body, node.orelse, None))

    def visit_List(self, node):
        self.generic_visit(node)
        return self._at(node, _hook('list', node)) if isinstance(node.ctx, ast.Load) else node

    def visit_Assert(self, node):
        self.generic_visit(node)
        error = ast.Call(ast.Name('AssertionError', ast.Load()), [node.msg] if node.msg else [], [])
        return self._at(node, ast.If(ast.UnaryOp(ast.Not(), node.test), [ast.Raise(_hook('raised', error), None)], []))

    def visit_Raise(self, node):
        self.generic_visit(node)
        if node.exc: node.exc = self._at(node.exc, _hook('raised', node.exc))
        return node

    def visit_Return(self, node):
        self.generic_visit(node)
        node.value = self._at(node.value or node, _hook('return', node.value or ast.Constant(None)))
        return node

    def visit_Try(self, node):
        self.generic_visit(node)
        if node.handlers:
            hint = 'an exception that depends on numbers is not traced: test before instead'
            refusal = _hook('refuse', ast.Constant('try/except'), ast.Constant(hint))
            node.body.insert(0, self._at(node.body[0], ast.Expr(refusal)))
        return node

    def visit_Global(self, node):
        text = f'{", ".join(node.names)}: a variable outside of the function is assigned'
        return [node, self._at(node, ast.Expr(_hook('refuse', ast.Constant(text), ast.Constant('return it instead'))))]
    visit_Nonlocal = visit_Global

    @staticmethod
    def _at(old, new): return ast.fix_missing_locations(ast.copy_location(new, old))


# %%
#| export
def _comprehension(kind: str):
    "Comprehensions: what they iterate over passes through `each`, a list through `comprehension`."
    def visit(self, node):
        self.generic_visit(node)
        parts = ast.Constant(len(node.generators) + sum(len(g.ifs) for g in node.generators))
        for g in node.generators: g.iter = self._at(g.iter, _hook('each', g.iter, ast.Constant(kind), parts))
        if kind != 'list': return node
        return self._at(node, _hook('comprehension', ast.Lambda(ast.arguments([], [], None, [], [], None, []), node)))
    return visit


# %%
#| export
for _node, _kind in dict(ListComp='list', SetComp='set', DictComp='dict', GeneratorExp='generator').items():
    setattr(_Rewrite, f'visit_{_node}', _comprehension(_kind))


# %% [markdown]
# ## Compiling
#
# The function is found in its file by the line where it begins. It is compiled inside an outer function whose parameters are
# the variables that it takes from around it, so that they stay what they are.

# %%
#| export
@lru_cache(512)
def _index(tree: ast.Module) -> dict[tuple[int, str], list[ast.AST]]:
    found: dict = {}
    for n in ast.walk(tree):
        if isinstance(n, ast.FunctionDef | ast.Lambda):
            first = min([n.lineno, *(d.lineno for d in getattr(n, 'decorator_list', ()))])
            found.setdefault((first, getattr(n, 'name', '<lambda>')), []).append(n)
    return found


# %%
#| export
def function_node(code: types.CodeType) -> ast.FunctionDef | ast.Lambda | None:
    "The syntax tree of a function; None where there is no source, or more than one candidate."
    tree = source_tree(code.co_filename)
    nodes = _index(tree).get((code.co_firstlineno, code.co_name), []) if tree else []
    return nodes[0] if len(nodes) == 1 else None


# %%
#| export
@lru_cache(2048)
def _compiled(code: types.CodeType, owner: str) -> types.CodeType | None:
    "The code of the copy."
    if (node := function_node(code)) is None or code.co_flags & 0x2a0: return None  # generators and coroutines
    node = _clone(node)
    if isinstance(node, ast.Lambda):
        node = ast.copy_location(ast.FunctionDef('__lambda__', node.args, [ast.copy_location(ast.Return(node.body), node.body)],
                                                 [], None), node)
    node.decorator_list, node.returns = [], None
    for a in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]:
        if a: a.annotation = None
    node = _Rewrite().visit(node)
    inner = [ast.copy_location(ast.ClassDef(owner, [], [], [node], []), node)] if owner else [node]
    free = [ast.arg(n) for n in code.co_freevars if not (owner and n == '__class__')]
    outer = ast.FunctionDef('__bendml_outer__', ast.arguments([], free, None, [], [], None, []), inner, [], None)
    module = ast.fix_missing_locations(ast.Module([ast.copy_location(outer, node)], []))
    return _find(compile(module, code.co_filename, 'exec', dont_inherit=True), node.name)


# %%
#| export
def _clone(node: ast.AST) -> ast.AST:
    "A copy of a syntax tree with all its places."
    if isinstance(node, list): return [_clone(n) for n in node]
    if not isinstance(node, ast.AST): return node
    return type(node)(**{f: _clone(getattr(node, f, None)) for f in node._fields},
                      **{a: getattr(node, a) for a in node._attributes if hasattr(node, a)})


# %%
#| export
def _find(code: types.CodeType, name: str) -> types.CodeType | None:
    for c in code.co_consts:
        if isinstance(c, types.CodeType):
            if c.co_name == name: return c
            if (found := _find(c, name)): return found


# %%
#| export
def copy_of(f: types.FunctionType) -> types.FunctionType | None:
    "The copy of a function that is traced; None if its source is not there."
    if '__bendml__' in f.__globals__: return f
    parts = f.__qualname__.split('.')
    owner = parts[-2] if len(parts) > 1 and parts[-2] != '<locals>' else ''
    try: code = _compiled(f.__code__, owner)
    except (SyntaxError, RecursionError): return None
    if code is None: return None
    cells = dict(zip(f.__code__.co_freevars, f.__closure__ or ()))
    if not set(code.co_freevars) <= set(cells): return None
    copy = types.FunctionType(code, {**f.__globals__, **HOOKS}, f.__name__, f.__defaults__,
                              tuple(cells[n] for n in code.co_freevars))
    copy.__kwdefaults__, copy.__qualname__ = f.__kwdefaults__, f.__qualname__
    return copy


# %% [markdown]
# ## Calls
#
# Every call of the copy comes here. NumPy functions go to the table when a symbolic value is among their arguments; Python
# functions are copied and so traced too, except those of the standard library; typed functions are checked by their
# signature.

# %%
#| export
STDLIB = (sysconfig.get_path('stdlib'), '<frozen', os.path.dirname(np.__file__))
ALWAYS = {np.zeros, np.ones, np.empty, np.full, np.zeros_like, np.ones_like, np.empty_like, np.full_like}


# %%
#| export
def call(f: Any, /, *args: Any, **kwargs: Any) -> Any:
    "What `f(*args, **kwargs)` does in a trace."
    tick()
    if (special := _special(f)) is not None: return special(*args, **kwargs)
    if hasattr(f, '__shapes__'): return f.__shapes__.by_signature(args, kwargs)
    if op_of(f) is not None and (_known(f) or is_symbolic(args) or is_symbolic(kwargs)): return perform(f, args, kwargs)
    owner = getattr(f, '__self__', None)
    if isinstance(owner, np.random.Generator | np.random.RandomState): return _random(f.__name__, args, kwargs)
    if isinstance(f, types.MethodType):
        return call(f.__func__, f.__self__, *args, **kwargs) if isinstance(f.__func__, types.FunctionType) else f(*args, **kwargs)
    if isinstance(f, types.FunctionType): return (_traced(f) or f)(*args, **kwargs)
    if isinstance(f, type): return _instance(f, args, kwargs)
    if isinstance(f, np.vectorize):
        refuse('np.vectorize hides a loop', hint='declare its shapes: a function that calls it, with @typed')
    method = getattr(type(f), '__call__', None)
    if isinstance(method, types.FunctionType) and type(f) is not _Method and not isinstance(f, np.ufunc):
        return call(method, f, *args, **kwargs)
    return f(*args, **kwargs)


# %%
#| export
def _known(f: Any) -> bool:
    try: return f in ALWAYS
    except TypeError: return False


# %%
#| export
def _traced(f: types.FunctionType) -> types.FunctionType | None:
    if f.__code__.co_filename.startswith(STDLIB) and 'site-packages' not in f.__code__.co_filename: return None
    if f.__code__.co_filename.startswith(STDLIB[2]) or (f.__module__ or '').startswith('bendml.shape.'): return None
    return copy_of(f)


# %%
#| export
def _instance(cls: type, args: tuple, kwargs: dict) -> Any:
    "Make an object, tracing its `__init__`."
    init, new = cls.__init__, cls.__new__
    if not isinstance(init,
                      types.FunctionType) or new is not object.__new__ or type(cls).__call__ is not type.__call__ or issubclass(cls, BaseException):
        return cls(*args, **kwargs)
    made = new(cls)
    call(init, made, *args, **kwargs)
    return made


# %%
#| export
def _raised(error: Any) -> BaseException:
    "Mark an exception that the function raises itself: it is a condition on the caller, not a failure of the trace."
    error = error() if isinstance(error, type) else error
    if isinstance(error, BaseException): current().state['raised'] = error
    return error


# %%
#| export
def _returned(value: Any) -> Any:
    "Remember where the result came from, and what was computed for nothing."
    state, frame = current().state, sys._getframe(1)
    state['returned'] = frame.f_code, frame.f_lasti
    if frame.f_code is state.get('root'): _nothing_in_vain(frame)
    return value


# %% [markdown]
# An array that is computed and never used is a mistake more often than not: `att @ k` where `att @ v` was meant leaves `v`
# without a use. A name that begins with `_` says that it is meant.

# %%
#| export
@lru_cache(512)
def unused_names(code: types.CodeType) -> frozenset[str]:
    "The names that a function sets or takes, and never reads."
    if (node := function_node(code)) is None: return frozenset()
    read = _loads(node) | {n.target.id for n in ast.walk(node) if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name)}
    several = {t for s in ast.walk(node) if isinstance(s, ast.Assign) and _results(s.value) for t in _stores(s) if len(_stores(s)) > 1}
    own = _stores(node) - several | {a.arg for a in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]}
    return frozenset(n for n in own - read if not n.startswith('_'))


# %%
#| export
def _results(value: ast.expr) -> bool:
    "A call that returns several things, of which one may not be needed: `u, s, vt = svd(x)`; not pieces of one: `np.split`."
    return isinstance(value, ast.Call) and getattr(value.func, 'attr', getattr(value.func, 'id', '')) not in ('split', 'array_split', 'map')

def _nothing_in_vain(frame: types.FrameType) -> None:
    for name in sorted(current().state.get('unused', ())):
        if type(frame.f_locals.get(name)) is Array:
            refuse(f'{name} is never used', f'a use of {name}', 'none',
                   f'was another name written in its place? If it is meant, call it _{name}')


# %% [markdown]
# ## Python's own functions

# %%
#| export
def _special(f: Any) -> Callable | None:
    try: return SPECIAL.get(f)
    except TypeError: return None


# %%
#| export
def _length(values: Any) -> Any:
    if isinstance(values, Growing): return size_value(values.total())
    if type(values) is Array: return Array.__len__(values)
    return size_value(values.count) if isinstance(values, Turns) else len(values)


# %%
#| export
def _float(value: Any = 0.0) -> Any:
    if type(value) is Array: one_entry(value, 'float()')
    return number(float) if type(value) in (Array, Size) else float(value)


# %%
#| export
def _int(value: Any = 0, *base: Any) -> Any: return int_of(value) if type(value) in (Array, Size) else int(value, *base)


# %%
#| export
def _listed(values: Any = ()) -> Any:
    if isinstance(values, Growing): return Growing(list.__iter__(values._readable()), list(values.counts))
    turns = as_turns(values)
    return Growing(values) if turns is None else comprehension(lambda: [v for v in each(turns, 'list', 1)])


# %%
#| export
def _tupled(values: Any = ()) -> Any:
    return tuple(values) if as_turns(values) is None else refuse('a tuple of an unknown number of values')


# %%
#| export
def _total(values: Any, start: Any = 0) -> Any:
    if type(values) is Array and values.ndim:
        return perform(np.sum, (values,),
                       {'axis': 0}) + start if branch(claim(values.axes[0].size, '>=', 1)) else start  # nothing: the int 0
    if isinstance(values, Growing) and not values.plain():
        return values.any_element() + (values.any_element() if start == 0 else start)
    if as_turns(values) is not None: refuse('sum() of an unknown number of values', hint='np.sum, or a loop')
    return sum(values, start)


# %%
#| export
def _extreme(f: Callable) -> Callable:
    def extreme(*args, **kwargs):
        if len(args) == 1 and type(args[0]) is Array and args[0].ndim == 1: return perform(np.max if f is max else np.min, args, {})
        if len(args) == 1 and type(args[0]) is Array:
            refuse(f'{f.__name__}() of rows, which have no order', 'Vec<n>', args[0], 'write .max() or .min()')
        if len(args) == 1 and as_turns(args[0]) is not None:
            return args[0].any_element() if isinstance(args[0], Growing) else unknown('i', None).size
        if any(type(a) is Array for a in args): return perform(np.maximum if f is max else np.minimum, args[:2], {})
        return f(*args, **kwargs)
    return extreme


# %%
#| export
def _quantified(f: Callable) -> Callable:
    def quantified(values):
        if type(values) is Array:
            return perform(np.any if f is any else np.all, (values,), {'axis': None}) if values.ndim == 1 else f(values)
        return choose() if as_turns(values) is not None else f(values)
    return quantified


# %%
#| export
def _quiet(*_, **__): return None

def _opened(*_, **__): refuse('a file is opened', hint='a typed function is run once to check it, so it should only compute')


# %%
#| export
SPECIAL: dict[Any, Callable] = {
    len: _length, range: symbolic_range, zip: zipped, enumerate: enumerated, reversed: backwards,
    float: _float, int: _int, list: _listed, tuple: _tupled, sum: _total, max: _extreme(max), min: _extreme(min),
    any: _quantified(any), all: _quantified(all), print: _quiet, warnings.warn: _quiet, open: _opened, input: _opened,
    type: lambda v, *rest: np.ndarray if type(v) is Array else int if type(v) is Size else type(v, *rest),
    round: lambda v, n=None: perform(np.round, (v,), {}) if type(v) is Array else round(v, n) if n is not None else round(v),
    bool: lambda v=False: bool(v), slice: slice, isinstance: isinstance, getattr: getattr, hasattr: hasattr,
    math.prod: lambda values, start=1: _multiplied(values, start),
    random.random: lambda: number(float), time.time: lambda: number(float), time.perf_counter: lambda: number(float),
    operator.index: lambda v: v if type(v) is Size else operator.index(v),
}


# %%
#| export
def _multiplied(values: Any, start: Any) -> Any:
    for v in values: start = start*v
    return start


# %% [markdown]
# `math` on numbers that are not known gives numbers that are not known.

# %%
#| export
def _unknown_number(dtype: type):
    def result(*args, **_):
        for a in args:
            if type(a) is Array: one_entry(a, 'math')
        return number(dtype) if dtype is not int else Size(unknown('i', None).size)
    return result


# %%
#| export
_TO_INT = 'floor ceil isqrt trunc gcd comb factorial'.split()
_TO_BOOL = 'isnan isinf isfinite isclose'.split()
_TO_FLOAT = '''sqrt exp log log2 log10 log1p expm1 sin cos tan tanh sinh cosh asin acos atan atan2 pow fabs erf erfc gamma lgamma hypot
               copysign fmod'''.split()

for _names, _kind in ((_TO_INT, int), (_TO_BOOL, bool), (_TO_FLOAT, float)):
    for _f in _names: OPS[getattr(math, _f)] = Op(f'math.{_f}', _unknown_number(_kind))

# %% [markdown]
# Random numbers have the shape that is asked for, and no value here.

# %%
#| export
_SIZE_AT = {'random': 0, 'random_sample': 0, 'standard_normal': 0, 'bytes': 0, 'normal': 2, 'uniform': 2, 'integers': 2,
            'randint': 2, 'choice': 1, 'exponential': 1, 'poisson': 1, 'binomial': 2, 'beta': 2, 'gamma': 2}


# %%
#| export
def _random(name: str, args: tuple, kwargs: dict) -> Any:
    "What a random generator returns."
    if name in ('seed', 'shuffle'): return None
    if name == 'permutation':
        if type(args[0]) is Array: return Array(args[0].axes, args[0].dtype)
        return perform(np.arange, args, {})
    if name in ('rand', 'randn'): shape = args
    elif name not in _SIZE_AT: refuse(f'the random function {name} has no shape rule', hint='draw outside, and pass the array')
    else: shape = kwargs.get('size', args[_SIZE_AT[name]] if len(args) > _SIZE_AT[name] else None)
    kind = np.int64 if name in ('integers', 'randint', 'poisson', 'binomial') else float
    if name == 'choice' and type(args[0]) in (Array, np.ndarray): kind = lift(args[0]).dtype
    if shape is None or shape == (): return number(kind)
    from bendml.shape.symbols import axis
    return Array(map(axis, shape_of(shape)), kind)


# %%
#| export
def _refused(what: str, hint: str) -> None: refuse(what, hint=hint)

HOOKS = {'__bendml__': True, '__bendml_call__': call, '__bendml_loop__': loop, '__bendml_while__': while_loop, '__bendml_list__': Growing,
         '__bendml_each__': each, '__bendml_comprehension__': comprehension, '__bendml_raised__': _raised,
         '__bendml_return__': _returned, '__bendml_refuse__': _refused}

# %%
from bendml.shape.symbols import Trace, axis, tracing

def softmax(x): return np.exp(x - x.max(-1, keepdims=True))
def rows(x):
    out = []
    for row in x: out.append(softmax(row))
    return np.stack(out)

n, m = Dim('n'), Dim('m')
with tracing(Trace()): print(copy_of(rows)(Array([axis(n), axis(m)])))

# %% [markdown]
# ## What this does not show
#
# The body of a function is run when it is checked, with what it does besides: it should only compute. Printing and warnings
# are silent, opening a file is refused; a call that sends or deletes something would be made. Globals are read as they are
# when the function is checked.
