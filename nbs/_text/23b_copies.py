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
import ast, sys, types
from functools import lru_cache
from typing import Any

from bendml.shape.messages import source_tree
from bendml.shape.carried import _always_set, _loads, _stores, counted_names, dead_names
from bendml.shape.trace import choose, current, refuse
from bendml.shape.symbols import Array


# %% [markdown]
# ## Rewriting

# %%
#| export
def _hook(name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(f'__bendml_{name}__', ast.Load()), list(args), [])

EAGER = {'sum', 'max', 'min', 'any', 'all', 'list', 'tuple', 'sorted', 'fromiter'}  # these use up a generator at once
ROUNDED = {'ceil', 'floor', 'trunc', 'int'}
DIRECT = {'super', 'locals', 'globals', 'vars', 'dir', 'eval', 'exec'}  # these look at the frame that calls them


# %%
#| export
def _is_text(node: ast.expr) -> bool:
    "May this be a text? Then `%` fills it in."
    return isinstance(node, ast.JoinedStr | ast.Name | ast.Attribute) or isinstance(node, ast.Constant) and isinstance(node.value, str)


# %%
#| export
class _Calls(ast.NodeTransformer):
    "Pass calls, and what asks about a value, through our hands; every new node keeps the place of the old one."
    @staticmethod
    def _at(old, new): return ast.fix_missing_locations(ast.copy_location(new, old))

    def visit_Call(self, node):
        if getattr(node.func, 'id', '') in EAGER or getattr(node.func, 'attr', '') == 'fromiter':
            node.args = [ast.copy_location(ast.ListComp(a.elt, a.generators), a) if isinstance(a, ast.GeneratorExp) else a for a in node.args]
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and (node.func.id in DIRECT or node.func.id.startswith('__bendml_')): return node
        match node:
            case ast.Call(ast.Name(f) | ast.Attribute(ast.Name('math'), f), [ast.Call(ast.Name('__bendml_made__'), [ast.BinOp(left, ast.Div(), right)])], []) if f in ROUNDED:
                return self._at(node, _hook('ratio', node.func, left, right))  # math.ceil(n/k)
        return self._at(node, ast.Call(ast.Name('__bendml_call__', ast.Load()), [node.func, *node.args], node.keywords))

    def visit_Attribute(self, node):
        self.generic_visit(node)
        return self._at(node, _hook('dtype', node.value)) if node.attr == 'dtype' and isinstance(node.ctx, ast.Load) else node

    def visit_Compare(self, node):
        plain = len(node.ops) > 1 or not isinstance(node.ops[0], ast.Is | ast.IsNot) or any(isinstance(side, ast.Constant) and side.value is None
                                                                                             for side in (node.left, *node.comparators))
        self.generic_visit(node)
        if plain: return node
        same = self._at(node, _hook('is', node.left, *node.comparators))
        return same if isinstance(node.ops[0], ast.Is) else self._at(node, ast.UnaryOp(ast.Not(), same))

    def visit_Match(self, node):
        self.generic_visit(node)
        patterns = [p for case in node.cases for p in ast.walk(case.pattern)]
        asks = any(isinstance(p, ast.MatchClass) or isinstance(p, ast.MatchSingleton) and p.value is not None for p in patterns)
        if asks: node.subject = self._at(node.subject, _hook('subject', node.subject))
        return node

    def visit_BinOp(self, node):
        self.generic_visit(node)
        text = isinstance(node.op, ast.Mod) and _is_text(node.left)
        return self._at(node, _hook('made', self._at(node, _hook('percent', node.left, node.right)) if text else node))

    def visit_UnaryOp(self, node):
        self.generic_visit(node)
        return node if isinstance(node.op, ast.Not) else self._at(node, _hook('made', node))

    def visit_JoinedStr(self, node):
        self.generic_visit(node)
        return self._at(node, _hook('text', self._at(node, _hook('listening')), node))

    def visit_FormattedValue(self, node):
        self.generic_visit(node)
        if isinstance(node.format_spec, ast.Call): node.format_spec = node.format_spec.args[1]  # a JoinedStr again
        return node

    def visit_Subscript(self, node):
        self.generic_visit(node)
        node.value = self._at(node.value, _hook('table', node.value))
        return node


# %% [markdown]
# A loop is told [which variables no turn inherits](23a_carried.ipynb), which it counts, and which a turn may leave unset.

# %%
#| export
class _Loops(_Calls):
    "Loops and lists too."
    def visit_For(self, node):
        dead, counted = dead_names(node.target, node.body), counted_names(node.body)
        self.generic_visit(node)
        name = next((n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)), 'turn')
        loose = tuple(n for n in dead if n not in _always_set(node.body) | _stores(node.target))
        told = dead, name, tuple(sorted(counted - {*dead})), loose
        node.iter = self._at(node.iter, _hook('loop', node.iter, *map(ast.Constant, told)))
        return node

    def visit_While(self, node):
        dead, counted = set(dead_names(None, node.body)) - _loads(node.test), counted_names(node.body)
        forever = isinstance(node.test, ast.Constant) and bool(node.test.value)
        self.generic_visit(node)
        condition = ast.Lambda(ast.arguments([], [], None, [], [], None, []), node.test)
        target = ast.Name('__bendml_turn__', ast.Store())
        told = map(ast.Constant, (tuple(sorted(dead)), tuple(sorted(counted - dead)), forever))
        return self._at(node, ast.For(target, _hook('while', condition, *told), node.body, node.orelse, None))

    def visit_List(self, node):
        self.generic_visit(node)
        return self._at(node, _hook('list', node)) if isinstance(node.ctx, ast.Load) else node


# %% [markdown]
# Exceptions and results too: what the function raises itself is a condition on its caller, and an `assert` is one. What NumPy
# would raise for shapes that do not fit is refused, and no handler can swallow that; but a step may fail for its numbers
# too. So after `try:` with one step there are two ways, the step and the handler.

# %%
#| export
class _Rewrite(_Loops):
    "The whole rewriting."
    def visit_Assert(self, node):
        self.generic_visit(node)
        error = ast.Call(ast.Name('AssertionError', ast.Load()), [node.msg] if node.msg else [], [])
        return self._at(node, ast.If(ast.UnaryOp(ast.Not(), node.test), [ast.Raise(_hook('raised', error), None)], []))

    def visit_Raise(self, node):
        self.generic_visit(node)
        node.exc = self._at(node, _hook('raised', node.exc or ast.Name('Exception', ast.Load())))  # `raise` alone: what is handled
        return node

    def visit_Return(self, node):
        self.generic_visit(node)
        node.value = self._at(node.value or node, _hook('return', node.value or ast.Constant(None)))
        return node

    def visit_Try(self, node):
        handlers = [h for h in node.handlers if not _raises(h)]  # one that raises too is a condition on the caller
        one_step = len(node.body) == 1 and isinstance(node.body[0], ast.Return | ast.Assign | ast.Expr)
        self.generic_visit(node)
        way = node.body + node.orelse
        if handlers and not one_step: way.insert(0, self._at(node.body[0], ast.Expr(_hook('refuse', ast.Constant('try/except'), ast.Constant(TRY)))))
        for h in reversed(handlers if one_step else []):
            caught = [ast.Assign([ast.Name(h.name, ast.Store())], ast.Call(ast.Name('Exception', ast.Load()), [], []))] if h.name else []
            way = [self._at(h, ast.If(_hook('choose'), way, caught + h.body))]
        node.body, node.handlers, node.orelse = way, [], []
        return node if node.finalbody else way
    visit_TryStar = visit_Try

    def visit_With(self, node):
        self.generic_visit(node)
        for item in node.items: item.context_expr = self._at(item.context_expr, _hook('with', item.context_expr))
        return node

    def visit_Global(self, node):
        text = f'{", ".join(node.names)}: a variable outside of the function is assigned'
        return [node, self._at(node, ast.Expr(_hook('refuse', ast.Constant(text), ast.Constant('return it instead'))))]
    visit_Nonlocal = visit_Global


# %%
#| export
TRY = 'an exception may come from any step of it: write one step after try:, or test before'

def _raises(handler: ast.ExceptHandler) -> bool:
    "Does a handler always end in an exception?"
    leaves = any(isinstance(n, ast.Return | ast.Break | ast.Continue) for s in handler.body for n in ast.walk(s))
    return isinstance(handler.body[-1], ast.Raise) and not leaves


# %%
#| export
def _comprehension(kind: str):
    "Comprehensions: what they iterate over passes through `each`, a list through `comprehension`."
    def visit(self, node):
        self.generic_visit(node)
        parts = len(node.generators), sum(len(g.ifs) for g in node.generators)
        for g in node.generators: g.iter = self._at(g.iter, _hook('each', g.iter, *map(ast.Constant, (kind, *parts))))
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
COPY = '__bendml_copy__'
GENERATOR, COROUTINE = 0x20, 0x280  # flags of a code object

@lru_cache(2048)
def _compiled(code: types.CodeType, owner: str, file: str, places: bytes) -> types.CodeType | None:
    "The code of the copy. Two codes that are equal may stand in two places."
    if (node := function_node(code)) is None or code.co_flags & COROUTINE: return None
    node = _clone(node)
    if isinstance(node, ast.Lambda):
        node = ast.copy_location(ast.FunctionDef('__lambda__', node.args, [ast.copy_location(ast.Return(node.body), node.body)],
                                                 [], None), node)
    node.decorator_list, node.returns, name, node.name = [], None, node.name, COPY  # its own name stays a variable
    for a in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]:
        if a: a.annotation = None
    node = _Rewrite().visit(node)
    inner = [ast.copy_location(ast.ClassDef(owner, [], [], [node], []), node)] if owner else [node]
    free = [ast.arg(n) for n in code.co_freevars if not (owner and n == '__class__')]
    if owner and owner not in code.co_freevars: inner.insert(0, ast.Global([owner]))  # to its methods the class is a global name
    outer = ast.FunctionDef('__bendml_outer__', ast.arguments([], free, None, [], [], None, []), inner, [], None)
    module = ast.fix_missing_locations(ast.Module([ast.copy_location(outer, node)], []))
    return _find(compile(module, code.co_filename, 'exec', dont_inherit=True), COPY).replace(co_name=name)


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
HOOKS: dict[str, Any] = {'__bendml__': True}  # what the copy's globals have besides the function's own


# %%
#| export
def copy_of(f: types.FunctionType, own: dict[str, Any] = {}) -> types.FunctionType | None:
    "The copy of a function that is traced, with some names of its `own`; None if there is none, for one of the reasons below."
    if '__bendml__' in f.__globals__: return f
    parts = f.__qualname__.split('.')
    owner = parts[-2] if len(parts) > 1 and parts[-2] != '<locals>' else ''
    try: code = _compiled(f.__code__, owner, f.__code__.co_filename, f.__code__.co_linetable)
    except (SyntaxError, RecursionError): return None
    if code is None: return None
    cells = dict(zip(f.__code__.co_freevars, f.__closure__ or ()))
    cells |= {n: types.CellType(v) for n, v in own.items() if n in cells}
    if not set(code.co_freevars) <= set(cells): return None
    copy = types.FunctionType(code, {**f.__globals__, **own, **HOOKS}, f.__name__, f.__defaults__,
                              tuple(cells[n] for n in code.co_freevars))
    copy.__kwdefaults__, copy.__qualname__ = f.__kwdefaults__, f.__qualname__
    return copy


# %%
#| export
def why_no_copy(f: types.FunctionType) -> tuple[str, str]:
    "Why a function cannot be traced, and what to do."
    code = f.__code__
    if code.co_flags & GENERATOR: return 'a generator is not traced by itself', 'annotate the function whose for loop takes what it yields; or return a list or an array'
    if code.co_flags & COROUTINE: return 'an async function is not traced', 'put what it computes into a function without async'
    if (tree := source_tree(code.co_filename)) is None:
        made = {'<stdin>': "typed at Python's prompt", '<string>': 'given to python -c, or to exec'}.get(code.co_filename, f'made from {code.co_filename}')
        return f'its source is not there: it was {made}', 'put it into a file, or use IPython or a notebook'
    if not (found := _index(tree).get((code.co_firstlineno, code.co_name), [])): return 'its source has changed since it was loaded', 'load it again'
    if len(found) > 1: return f'{len(found)} functions begin on line {code.co_firstlineno}', 'write each on a line of its own'
    return 'it cannot be compiled again', 'define it at the top level of a file'


# %% [markdown]
# ## Returning, raising, refusing

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
def reads(code: types.CodeType, name: str) -> bool:
    "Does a function read a variable?"
    return (node := function_node(code)) is not None and name in _loads(node)


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


# %%
#| export
def _entered(manager: Any) -> Any:
    "Refuse a context manager of one's own that may suppress an exception."
    leave = getattr(type(manager), '__exit__', None)
    own = isinstance(leave, types.FunctionType) and leave.__module__.partition('.')[0] not in {*sys.stdlib_module_names, 'numpy'}
    body = ast.walk(function_node(leave.__code__) or ast.Return(ast.Name('unknown'))) if own else ()
    if any(isinstance(n, ast.Return) and not (n.value is None or getattr(n.value, 'value', 0) in (None, False)) for n in body):
        refuse('exceptions may be suppressed', hint='let __exit__ return nothing')
    return manager


# %%
#| export
def _refused(what: str, hint: str) -> None: refuse(what, hint=hint)

HOOKS |= {'__bendml_choose__': choose, '__bendml_raised__': _raised, '__bendml_return__': _returned, '__bendml_refuse__': _refused,
          '__bendml_with__': _entered}


# %%
def halves(x): return [v/2 for v in x if v > 0]

print(ast.unparse(_Rewrite().visit(_clone(function_node(halves.__code__)))))


# %%
def batches(x): yield from x

why_no_copy(batches)

# %% [markdown]
# ## What this does not show
#
# A function that has no copy cannot be checked, and is refused; where another one calls it, it runs as it is.
