# %%
#| default_exp autograd.symbols

# %% [markdown]
# # Gradient rules
# > Run the code of a backward pass on symbols, and prove that it is the derivative of the forward pass.

# %% [markdown]
# A layer's backward pass is written by hand, because that is fast; and by hand it is easy to get wrong in a way that no
# shape shows. To be sure, one would differentiate the forward pass on paper and compare.
#
# This page does that with the code itself. The same lines that run on numbers are run once on *symbols*: objects that can be
# added, multiplied and compared, and write down what is done to them. The forward pass leaves behind a formula for each
# output, and its derivative; the backward pass leaves a formula for each gradient. That the two are equal, for all real
# numbers, is then a question for z3 and cvc5.

# %%
#| hide
#| export
import ast, inspect, math, random, textwrap, types
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Callable, Iterator, NamedTuple

import numpy as np


# %% [markdown]
# ## A sheet of paper
#
# Each intermediate result gets a name and a line. An exponential or a square root has no line of arithmetic: it is an
# unknown number of which a few facts are known. Equal arguments get the same unknown.

# %%
#| export
@dataclass
class Sheet:
    "What was written down: definitions, and facts about the unknowns, as SMT-LIB."
    lines: list = field(default_factory=list)
    facts: list = field(default_factory=list)
    names: dict = field(default_factory=dict)   # what it is -> its name

    def unknown(self, key: Any, name: str, *facts: str) -> str:
        "A new unknown, or the one that stands for the same thing; `{}` in a fact is its name."
        if key not in self.names:
            self.names[key] = name
            self.lines.append(f'(declare-const {name} Real)')
            self.facts += [f.replace('{}', name) for f in facts]
        return self.names[key]

    def define(self, text: str) -> str:
        if text not in self.names:
            self.names[text] = name = f't{len(self.names)}'
            self.lines.append(f'(define-fun {name} () Real {text})')
        return self.names[text]

    def text(self, *goal: str) -> str:
        "Satisfiable exactly if the facts allow the goal to be false."
        denied = [f'(assert (not {g}))' for g in goal]
        return '\n'.join(['(set-logic ALL)', *self.lines, *(f'(assert {f})' for f in dict.fromkeys(self.facts)), *denied, '(check-sat)', ''])

def _literal(x: float) -> str:
    f = Fraction(x)   # exactly the number that the program holds
    text = f'{abs(f.numerator)}.0' if f.denominator == 1 else f'(/ {abs(f.numerator)}.0 {f.denominator}.0)'
    return text if f >= 0 else f'(- {text})'


# %% [markdown]
# ## A number that writes itself down
#
# A `Sym` has a name on the sheet, a sample value, and its derivative by each input: it is a *dual number*, and the five
# rules of calculus are the methods below. They, and the derivatives of the unknown functions, are what has to be trusted
# here.
#
# Where the code compares two numbers, the sample decides, and the outcome becomes a fact on the sheet: what is proved is
# then proved for all numbers that compare in the same way. A ReLU is looked at once on each side of its kink.

# %%
#| export
class Sums:
    "The arithmetic of a symbol: sums, products, powers, and their derivatives."
    __slots__ = ('sheet', 'name', 'sample', 'rates')
    def __init__(self, sheet: Sheet, name: str, sample: float, rates: dict = {}):
        self.sheet, self.name, self.sample, self.rates = sheet, name, sample, rates

    def lift(self, x) -> 'Sym': return x if isinstance(x, Sums) else type(self)(self.sheet, _literal(float(x)), float(x))
    def plain(self) -> 'Sym': return type(self)(self.sheet, self.name, self.sample)
    def __repr__(self): return f'{self.name} ≈ {self.sample:.3g}'

    def _both(self, op, a, b, sample, da, db):
        "a op b, whose derivatives are da(a') + db(b')."
        rates = {k: da(r) for k, r in a.rates.items()}
        for k, r in b.rates.items(): rates[k] = rates[k] + db(r) if k in rates else db(r)
        return type(self)(self.sheet, self.sheet.define(f'({op} {a.name} {b.name})'), sample, rates)

    def __add__(a, b):
        if isinstance(b, np.ndarray): return NotImplemented
        b = a.lift(b)
        if '0.0' in (a.name, b.name): return a if b.name == '0.0' else b
        return a._both('+', a, b, a.sample + b.sample, lambda r: r, lambda r: r)
    def __sub__(a, b):
        if isinstance(b, np.ndarray): return NotImplemented
        b = a.lift(b)
        if a.name == b.name: return a.lift(0)
        return a._both('-', a, b, a.sample - b.sample, lambda r: r, lambda r: -r) if b.name != '0.0' else a
    def __mul__(a, b):
        if isinstance(b, np.ndarray): return NotImplemented
        b = a.lift(b)
        if '1.0' in (a.name, b.name): return a if b.name == '1.0' else b
        if '0.0' in (a.name, b.name): return a.lift(0)
        return a._both('*', a, b, a.sample*b.sample, lambda r: r*b.plain(), lambda r: a.plain()*r)
    def __truediv__(a, b):
        if isinstance(b, np.ndarray): return NotImplemented
        return a*b.reciprocal() if isinstance(b, Sums) else a*type(a)(a.sheet, _literal(1/Fraction(float(b))), 1/float(b))
    def __neg__(a): return a.lift(0) - a
    def __radd__(a, b): return a.lift(b) + a
    def __rsub__(a, b): return a.lift(b) - a
    def __rmul__(a, b): return a.lift(b)*a
    def __rtruediv__(a, b): return a.lift(b)/a
    def __pow__(a, n): return math.prod([a]*n) if isinstance(n, int) and n > 0 else NotImplemented


# %% [markdown]
# An exponential or a root is an unknown, with its facts and its derivative; and here are the comparisons.

# %%
#| export
class Sym(Sums):
    "A real number as a symbol, with a sample value and its derivatives: input -> Sym."
    __slots__ = ()
    def _function(a, name: str, sample: float, rate: Callable, *facts: str):
        "An unknown function of `a`, with facts about its value `{}`, and its derivative."
        known = a.sheet.unknown((name, a.name), f'{name}_{a.name}' if a.name.isalnum() else f'{name}_{len(a.sheet.names)}', *facts)
        y = Sym(a.sheet, known, sample)
        return Sym(a.sheet, known, sample, {k: rate(y)*r for k, r in a.rates.items()}) if a.rates else y
    def reciprocal(a): return a._function('inv', 1/a.sample, lambda y: -(y*y), f'(= (* {{}} {a.name}) 1.0)')
    def exp(a): return a._function('exp', math.exp(a.sample), lambda y: y, '(> {} 0.0)') if a.name != '0.0' else a.lift(1)
    def log(a): return a._function('log', math.log(a.sample), lambda y: a.plain().reciprocal())
    def tanh(a): return a._function('tanh', math.tanh(a.sample), lambda y: 1 - y*y)
    def sigmoid(a): return a._function('sigmoid', 1/(1 + math.exp(-a.sample)), lambda y: y*(1 - y))
    def sqrt(a): return a._function('sqrt', math.sqrt(a.sample), lambda y: 0.5/y, f'(= (* {{}} {{}}) {a.name})', '(> {} 0.0)')
    def erf(a): return a._function('erf', math.erf(a.sample), lambda y: TWO_BY_ROOT_PI*(-(a.plain()*a.plain())).exp())

    def _compare(a, b, op, holds):
        b = a.lift(b)
        a.sheet.facts.append(f'({op} {a.name} {b.name})' if holds else f'(not ({op} {a.name} {b.name}))')
        return holds
    def __gt__(a, b): return a._compare(b, '>', a.sample > a.lift(b).sample)
    def __lt__(a, b): return a._compare(b, '<', a.sample < a.lift(b).sample)
    def __ge__(a, b): return a._compare(b, '>=', a.sample >= a.lift(b).sample)
    def __le__(a, b): return a._compare(b, '<=', a.sample <= a.lift(b).sample)

TWO_BY_ROOT_PI = float(np.float32(1.1283791670955126))   # erf'(x) = 2/√π · exp(-x²); as float32 code knows it

# %% [markdown]
# $f(x) = x\,e^x$ at a symbol: its derivative is $e^x + x e^x$.

# %%
sheet = Sheet()
x = Sym(sheet, sheet.unknown('x', 'x'), 0.5, {'x': Sym(sheet, '1.0', 1.)})
y = x*np.exp(x)
print(y, y.rates)
print(sheet.text())

# %% [markdown]
# ## The very code
#
# The loops that numba compiles are Python functions. `on_symbols` takes such a function as it is, its bytecode, and looks up
# its names elsewhere in two cases only: a *primitive*, such as our fast exponential, becomes the exponential (or, where it
# works on bits, the plain function that it stands for); and another compiled function is treated in the same way.

# %%
#| export
PRIMITIVES: dict[Any, str | Callable] = {f: f.__name__ for f in (math.exp, math.log, math.sqrt, math.tanh, math.erf)}

def primitive(fn: Callable) -> Callable:
    "Declare that a compiled function computes, to rounding, the function of its name: exp, log, tanh, erf, sigmoid."
    PRIMITIVES[fn] = fn.__name__
    return fn

def stands_for(plain: Callable) -> Callable:
    "Declare that a compiled function computes, exactly, what a plain one does; symbols take the plain one."
    def declare(fn): PRIMITIVES[fn] = plain; return fn
    return declare

def _as_method(name: str) -> Callable:
    return lambda x: getattr(x, name)() if isinstance(x, Sym) else getattr(math, name)(x)

def on_symbols(fn: Callable) -> Callable:
    "The same function, able to run on symbols."
    if fn in PRIMITIVES: return _as_method(PRIMITIVES[fn]) if isinstance(PRIMITIVES[fn], str) else PRIMITIVES[fn]
    plain = getattr(fn, 'py_func', fn)
    if not isinstance(plain, types.FunctionType): raise TypeError(f'{fn!r} is not a Python function')
    here = dict(plain.__globals__)
    for name in plain.__code__.co_names:
        used = here.get(name)
        if used is math: here[name] = types.SimpleNamespace(**{f.__name__: _as_method(n) for f, n in PRIMITIVES.items() if getattr(f, '__module__', '') == 'math'})
        elif used is not fn and (hasattr(used, 'py_func') or callable(used) and _hashable(used) and used in PRIMITIVES): here[name] = on_symbols(used)
    return types.FunctionType(plain.__code__, here, plain.__name__, plain.__defaults__, plain.__closure__)

def _hashable(x) -> bool: return getattr(type(x), '__hash__', None) is not None


# %% [markdown]
# ## The obligation
#
# For every input $x_i$, with $g_j$ the derivative of the loss by output $y_j$, all of them unknown:
#
# $$\sum_j g_j \frac{\partial y_j}{\partial x_i} \;=\; \mathrm{backward}(g)_i$$
#
# The left side comes from the forward code, the right side from the backward code. The sizes are small and fixed; every
# number in them stands for all real numbers.

# %%
#| export
class Check(NamedTuple):
    "What was found about one gradient rule."
    name: str
    sizes: str
    verdict: str                # 'confirmed', 'proved', 'refuted' or 'open'
    answers: tuple = ()         # for each gradient: its text, and what z3 and cvc5 said
    reason: str = ''
    given: tuple = ()           # what was assumed: how the code's comparisons came out
    def __repr__(self):
        time = lambda who: 1000*sum(a.seconds for _, said in self.answers for a in said if a.solver == who)
        how = f'{len(self.answers)} gradients, z3 {time("z3"):.0f} ms, cvc5 {time("cvc5"):.0f} ms' if self.answers else self.reason
        return f'{self.name:28} {self.sizes:30} {self.verdict:10} {how}'

def symbols(sheet: Sheet, name: str, shape: tuple, rng: random.Random, moving: bool) -> np.ndarray:
    "An array of unknowns; if moving, with derivatives."
    out = np.empty(shape, object)
    for i in np.ndindex(*shape):
        label = name + ''.join(f'_{k}' for k in i)
        out[i] = Sym(sheet, sheet.unknown(label, label), round(rng.uniform(-2, 2), 3), {label: Sym(sheet, '1.0', 1.)} if moving else {})
    return out

def still(tree: Any) -> Any:
    "The same values, without their derivatives: what a backward pass is given."
    if isinstance(tree, tuple): return tuple(map(still, tree))
    if isinstance(tree, np.ndarray) and tree.dtype == object:
        out = np.empty(tree.shape, object)
        for i in np.ndindex(*tree.shape): out[i] = still(tree[i])
        return out
    return tree.plain() if isinstance(tree, Sym) else tree


# %%
#| export
def formulas(forward: Callable, backward: Callable, sizes: dict[str, tuple], seed: int = 0) -> tuple[Sheet, list]:
    "Run both passes on symbols: the sheet, and for each input its name, the derivative and the gradient."
    sheet, rng = Sheet(), random.Random(seed)
    x = {n: symbols(sheet, n, shape, rng, True) for n, shape in sizes.items()}
    y, saved = forward(**x)
    dy = symbols(sheet, 'g', y.shape, rng, False)
    grads = backward(still(saved), dy)
    out, zero = [], Sym(sheet, '0.0', 0.)
    for (name, xs), dx in zip(x.items(), grads, strict=True):
        if np.shape(dx) != xs.shape: raise ValueError(f'the gradient of {name}\n- expected : {xs.shape}\n- observed : {np.shape(dx)}')
        for i in np.ndindex(*xs.shape):
            key = xs[i].name
            parts = [dy[j]*y[j].rates[key] for j in np.ndindex(*y.shape) if isinstance(y[j], Sym) and key in y[j].rates]
            out.append((key, sum(parts, zero), zero.lift(dx[i])))
    return sheet, out

def check_rule(
    name: str,
    forward: Callable,         # (**arrays) -> an output array, and what it saves for the backward pass
    backward: Callable,        # (saved, dy) -> a gradient for each input, in order
    sizes: dict[str, tuple],   # the inputs and their shapes
    seeds: tuple = (0,),       # of the sample points: each may take another way through the code's comparisons
    solvers: tuple = ('z3', 'cvc5'),
) -> Check:
    "Prove that a backward pass is the derivative of its forward pass, at these sizes."
    from bendml.laws import discharge
    shown, answers, given = ', '.join(f'{n}{list(s)}'.replace(' ', '') for n, s in sizes.items()), [], []
    for seed in seeds:
        sheet, pairs = formulas(forward, backward, sizes, seed)
        given += [f for f in sheet.facts if not f.startswith('(= ')]
        for key, want, got in pairs:
            if not math.isclose(want.sample, got.sample, rel_tol=1e-9, abs_tol=1e-9):
                return Check(name, shown, 'refuted', reason=f'at a sample point, the derivative by {key} is {want.sample:.6g} and the gradient {got.sample:.6g}')
            text = sheet.text(f'(= {want.name} {got.name})')
            answers.append((text, discharge(text, solvers)))
    proofs = [[a.solver for a in said if a.result == 'unsat'] for _, said in answers]
    verdict = 'confirmed' if all(len(p) > 1 for p in proofs) else 'proved' if all(proofs) else 'open'
    return Check(name, shown, verdict, tuple(answers), '' if verdict != 'open' else 'no proof', tuple(dict.fromkeys(given)))


# %% [markdown]
# ## An example
#
# The hyperbolic tangent of a product, $y = \tanh(ab)$, with its backward pass: right, and with one factor wrong.

# %%
def forward(a, b):
    y = np.tanh(a*b)
    return y, (a, b, y)

def backward(saved, dy):
    a, b, y = saved
    d = dy*(1 - y*y)
    return d*b, d*a

right = check_rule('tanh of a product', forward, backward, {'a': (2,), 'b': (2,)})
assert right.verdict == 'confirmed'
print(right)


# %%
def slipped(saved, dy):
    a, b, y = saved
    d = dy*(1 - y)
    return d*b, d*a

wrong = check_rule('tanh, with a slip', forward, slipped, {'a': (2,), 'b': (2,)})
assert wrong.verdict == 'refuted'
print(wrong)


# %% [markdown]
# ## A table of rules, and one slip at a time
#
# The pages that follow register each pair of passes under a name. The rules can then be checked again, by the tests and on
# [All gradient rules](63c_rules.ipynb), also with a *mutant* in the place of the backward code: the same code with one
# operator exchanged. A checker that is worth anything refuses them.

# %%
#| export
class Rule(NamedTuple):
    "A forward and a backward code, and how to run them on symbols."
    forward: Callable
    backward: Callable
    passes: Callable    # (forward, backward) -> the two functions that `check_rule` wants
    sizes: dict[str, tuple]
    seeds: tuple = (0,)

RULES: dict[str, Rule] = {}

def check(name: str, backward: Callable | None = None) -> Check:
    "Check a registered rule, or another backward code in its place."
    r = RULES[name]
    return check_rule(name, *r.passes(r.forward, backward or r.backward), r.sizes, r.seeds)

def confirm(*names: str) -> None:
    "Check registered rules and print what was found; `AssertionError` unless both solvers agree."
    for name in names:
        c = check(name)
        assert c.verdict == 'confirmed', c
        print(c)

_SWAP = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.USub: ast.UAdd, ast.LtE: ast.Gt, ast.Lt: ast.GtE, ast.Gt: ast.LtE}

class _Uncontracted(ast.NodeTransformer):
    "A kernel without what is said about it: a mutant of a proof's step computes the same."
    def visit_Assert(self, node): return None
    def visit_Expr(self, node): return None if ast.unparse(node).startswith('requires(') else node

def mutants(fn: Callable) -> Iterator[tuple[str, Callable]]:
    "The same code with one operator exchanged: + and -, * and /, <= and >; what was done, and the function."
    plain = getattr(fn, 'py_func', getattr(fn, 'checked', fn))
    source = ast.unparse(_Uncontracted().visit(ast.parse(textwrap.dedent(inspect.getsource(plain)))))
    places = [i for i, n in enumerate(ast.walk(ast.parse(source))) if type(getattr(n, 'op', getattr(n, 'ops', [None])[0])) in _SWAP
              and not isinstance(getattr(n, 'operand', None), ast.Constant)]   # -1 is a number
    for place in places:
        tree = ast.parse(source)
        tree.body[0].decorator_list = []
        node = list(ast.walk(ast.parse(source)))[place]
        found = next(n for n in ast.walk(tree) if type(n) is type(node) and ast.dump(n, include_attributes=True) == ast.dump(node, include_attributes=True))
        old = found.ops[0] if isinstance(found, ast.Compare) else found.op
        new = _SWAP[type(old)]()
        if isinstance(found, ast.Compare): found.ops = [new]
        else: found.op = new
        here = dict(plain.__globals__)
        exec(compile(ast.fix_missing_locations(tree), f'mutant of {plain.__name__}', 'exec'), here)
        yield f'{type(old).__name__} -> {type(new).__name__} in {ast.unparse(node)[:50]}', here[plain.__name__]


# %% [markdown]
# A proof from contradictory facts would prove anything. So the facts alone must be satisfiable, and the solvers find no
# contradiction in them:

# %%
from bendml.laws import discharge
sheet, _ = formulas(forward, backward, {'a': (2,), 'b': (2,)})
assert all(a.result != 'unsat' for a in discharge(sheet.text()))

# %% [markdown]
# ## What this does not show
#
# - Fixed sizes: three inputs of a softmax are not all numbers of inputs. For the softmax there is a proof for all sizes, on
#   [Laws of rows](67b_row_laws.ipynb).
# - Real numbers, not floats. That the fast exponential is the exponential, to a rounding, is measured on
#   [Elementary functions](60_elementary.ipynb).
# - A point where the code changes its way, such as the kink of the ReLU, has no derivative; nothing is claimed there.
