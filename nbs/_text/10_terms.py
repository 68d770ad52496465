# %%
#| default_exp laws.terms

# %% [markdown]
# # Terms
# > The language in which laws are stated, and how it is written down for a solver.

# %% [markdown]
# A proof in bendml ends as a text that two independent programs, [z3](https://github.com/Z3Prover/z3) and
# [cvc5](https://cvc5.github.io), both read. The text is in [SMT-LIB 2.6](https://smt-lib.org), a standard, so that
# anyone can check it with a solver of their own. This page is the small language that we keep in Python before it
# becomes such a text: sorts, terms, formulas, and the printer.
#
# This page is part of what you have to trust: if the printer wrote something else than the term says, a proof would be
# about something else. So it is short, and it does nothing clever.

# %%
#| hide
#| export
import re
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Iterator, Mapping, TypeVar, Union


# %% [markdown]
# ## Sorts
#
# A sort is what a type is to a program: `Int`, `Bool`, `Real`, an array, or a Python class that stands for a datatype or
# for an unknown set. The class itself is kept, not its name, so two classes that are both called `Nat` stay two.

# %%
#| export
@dataclass(frozen=True)
class Sort:
    "The sort of a term."
    head: object                   # 'Int', 'Bool', 'Real', 'Array', a class, or a type variable
    args: tuple['Sort', ...] = ()  # of an array, or of a parametric datatype

    def __str__(self):
        name = {'Int': 'int', 'Bool': 'bool', 'Real': 'Fraction'}.get(self.head) or getattr(self.head, '__name__', self.head)
        return name + (f"[{', '.join(map(str, self.args))}]" if self.args else '')

INT, BOOL, REAL = Sort('Int'), Sort('Bool'), Sort('Real')

# %%
str(Sort('Array', (INT, REAL)))


# %% [markdown]
# ## Terms
#
# A term is a variable, or something applied to terms. What is applied is a word of SMT-LIB such as `+` or `ite`, a number,
# or a `Symbol`: a function or a constructor of ours, together with the types at which it is used (`append` on lists of
# numbers and `append` on lists of lists are two functions in the logic).

# %%
#| export
@dataclass(frozen=True)
class Symbol:
    "A function or constructor at given types; or a part of a constructor: its test `is`, or a field."
    owner: object                   # a `Function`, or a constructor's class
    types: tuple[Sort, ...] = ()
    part: str = ''                  # '' the thing itself; 'is' its test; or the name of a field


# %%
#| export
@dataclass(frozen=True)
class Var:
    "A variable: bound by a `Forall`, or free, and then a constant of the obligation."
    name: str
    sort: Sort

    @property
    def free(self) -> tuple['Var', ...]: return (self,)


# %%
#| export
@dataclass(frozen=True)
class App:
    "An operation applied to terms. No arguments: a constant or a number."
    op: Union[str, int, bool, Fraction, Symbol]
    args: tuple['Term', ...]
    sort: Sort

    def __hash__(self): return vars(self).get('hash') or vars(self).setdefault('hash', hash((self.op, self.args, self.sort)))
    @cached_property
    def free(self) -> tuple[Var, ...]: return free(*self.args)


# %%
#| export
@dataclass(frozen=True)
class Forall:
    "A formula about all values. Each trigger is a group of terms: seeing them, a solver may take an instance."
    vars: tuple[Var, ...]
    body: 'Term'
    triggers: tuple[tuple['Term', ...], ...] = ()

    @cached_property
    def free(self) -> tuple[Var, ...]: return tuple(v for v in self.body.free if v not in self.vars)

Term = Union[Var, App, Forall]


# %% [markdown]
# The connectives simplify what is trivially so, which keeps the texts short enough to be read.

# %%
#| export
def literal(value: int | bool | Fraction) -> App:
    "A number or a truth value as a term."
    return App(value, (), BOOL if isinstance(value, bool) else INT if isinstance(value, int) else REAL)

TRUE, FALSE = literal(True), literal(False)

def conj(*parts: Term) -> Term:
    "All of them."
    parts = tuple(p for p in parts if p != TRUE)
    return TRUE if not parts else parts[0] if len(parts) == 1 else App('and', parts, BOOL)


# %%
#| export
def negate(a: Term) -> Term:
    "Not so."
    if isinstance(a, App) and a.op == 'not': return a.args[0]
    return App('not', (a,), BOOL)

def implies(premises: tuple[Term, ...], claim: Term) -> Term:
    "The claim, where all premises hold."
    return App('=>', (conj(*premises), claim), BOOL) if conj(*premises) != TRUE else claim

def equal(a: Term, b: Term) -> App: return App('=', (a, b), BOOL)


# %%
#| export
def forall(vars: tuple[Var, ...], body: Term, triggers: tuple = ()) -> Term:
    "The body for all values of the variables."
    return Forall(tuple(vars), body, tuple(triggers)) if vars else body


# %% [markdown]
# Walking over a term, and putting terms in the place of variables. A `Forall` is only ever put around a finished formula, and
# nothing is substituted under one; so no bound variable can catch a free one of the same name.

# %%
#| export
def subterms(t: Term) -> Iterator[Term]:
    "The term and everything inside it."
    stack = [t]
    while stack:
        t = stack.pop()
        yield t
        if isinstance(t, App): stack += reversed(t.args)
        elif isinstance(t, Forall): stack.append(t.body); stack += [p for group in t.triggers for p in group]


# %%
#| export
def free(*terms: Term) -> tuple[Var, ...]:
    "The free variables, each once, in order of appearance."
    return tuple(dict.fromkeys(v for t in terms for v in t.free))


# %%
#| export
def substitute(t: Term, by: Mapping[Var, Term]) -> Term:
    "The term, which has no quantifier, with other terms in the place of its variables."
    if isinstance(t, Var): return by.get(t, t)
    return App(t.op, tuple(substitute(a, by) for a in t.args), t.sort) if any(v in by for v in t.free) else t


# %% [markdown]
# The same for types: a law about lists of any `A` becomes one about lists of numbers.

# %%
#| export
def at_sort(s: Sort, types: Mapping[object, Sort]) -> Sort:
    "The sort with sorts in the place of type variables."
    if isinstance(s.head, TypeVar): return types.get(s.head, s)
    return Sort(s.head, tuple(at_sort(a, types) for a in s.args)) if s.args else s


# %%
#| export
def at_types(t: Term, types: Mapping[object, Sort]) -> Term:
    "The term with sorts in the place of type variables, everywhere."
    if not types: return t
    if isinstance(t, Var): return Var(t.name, at_sort(t.sort, types))
    op = Symbol(t.op.owner, tuple(at_sort(s, types) for s in t.op.types), t.op.part) if isinstance(t.op, Symbol) else t.op
    return App(op, tuple(at_types(a, types) for a in t.args), at_sort(t.sort, types))


# %%
x, y = Var('x', INT), Var('y', INT)
t = App('+', (x, App('*', (y, literal(2)), INT)), INT)
assert substitute(t, {x: y}).args[0] == y and free(t) == (x, y)
[s.name for s in free(t)]


# %% [markdown]
# ## Datatypes, as the logic sees them
#
# A datatype's class lists its constructors, and each constructor its fields with their sorts. The page
# [Datatypes](12_datatypes.ipynb) makes these classes; here we only read them.

# %%
#| export
def constructors(s: Sort) -> tuple[type, ...]:
    "The constructors of a datatype; nothing for any other sort."
    return getattr(s.head, '__constructors__', ()) if isinstance(s.head, type) else ()

def fields(c: type, s: Sort) -> tuple[tuple[str, Sort], ...]:
    "The fields of a constructor of the datatype `s`, with their sorts."
    types = dict(zip(s.head.__parameters__, s.args))
    return tuple((name, at_sort(f, types)) for name, f in c.__fields__)


# %%
#| export
def build(c: type, args: tuple[Term, ...], s: Sort) -> App:
    "A constructor applied."
    return App(Symbol(c, s.args), tuple(args), s)

def is_built(c: type, t: Term) -> App:
    "Whether a term is made by this constructor."
    return App(Symbol(c, t.sort.args, 'is'), (t,), BOOL)


# %%
#| export
def get(c: type, name: str, t: Term) -> Term:
    "A field of a term; if the term is built by `c`, what stands there."
    names = [n for n, _ in fields(c, t.sort)]
    if isinstance(t, App) and t.op == Symbol(c, t.sort.args): return t.args[names.index(name)]
    return App(Symbol(c, t.sort.args, name), (t,), dict(fields(c, t.sort))[name])

def exhausted(t: Term) -> Term:
    "That a term is made by one of its datatype's constructors: always so, and solvers want to be told."
    made = tuple(equal(t, build(c, tuple(get(c, n, t) for n, _ in fields(c, t.sort)), t.sort)) for c in constructors(t.sort))
    return made[0] if len(made) == 1 else App('or', made, BOOL)


# %% [markdown]
# ## The text
#
# Names must not meet the solver's own words (`select`, `Table`, `abs` ...) or each other. A function `add` of a module
# `nat` is written `nat/add`, a variable `x` is written `?x`; no word of either solver looks like that. Should two
# different things get one name, the second is numbered, `nat/add!2`: names are given to objects, never looked up by name.

# %%
#| export
@dataclass
class Names:
    "Which name each thing has in a text."
    names: dict = field(default_factory=dict)   # class, function or type variable -> its name

    def name(self, thing: object) -> str:
        "The name of a class, function or type variable: the same each time, and no other's."
        if thing not in self.names:
            base = '/'.join(re.sub(r'\W', '_', part, flags=re.A) or '_' for part in (thing.__module__.rpartition('.')[2], thing.__name__))
            base = name = '_' + base if base[0].isdigit() else base
            n, taken = 1, set(self.names.values())
            while name in taken: n += 1; name = f'{base}!{n}'
            self.names[thing] = name
        return self.names[thing]

    def label(self, s: Sort) -> str:
        "A sort as a part of a name."
        return self.at(s.head if isinstance(s.head, str) else self.name(s.head), s.args)

    def at(self, name: str, types: tuple[Sort, ...]) -> str:
        "A name, with the types at which it is used."
        return name + (f"<{'&'.join(map(self.label, types))}>" if types else '')


# %% [markdown]
# What a text uses must be declared before: sorts and functions, at each of the types at which they occur.

# %%
#| export
@dataclass
class Declarations(Names):
    "What is declared in a text."
    declared: set = field(default_factory=set)  # sorts and functions
    lines: list = field(default_factory=list)   # declarations so far

    def sort(self, s: Sort) -> str:
        "The text of a sort, declared before its first use."
        if s.head == 'Array': return f'(Array {self.sort(s.args[0])} {self.sort(s.args[1])})'
        name = self.label(s)
        if not isinstance(s.head, str) and s not in self.declared:
            self.declared.add(s)
            self.lines.append(self.datatype(name, s) if constructors(s) else f'(declare-sort {name} 0)')
        return name

    def datatype(self, name: str, s: Sort) -> str:
        made = []
        for c in constructors(s):
            fs = ''.join(f' ({self.symbol(Symbol(c, s.args, n))} {name if f == s else self.sort(f)})' for n, f in fields(c, s))
            made.append(f'({self.symbol(Symbol(c, s.args))}{fs})')
        return f"(declare-datatypes (({name} 0)) (({' '.join(made)})))"

    def symbol(self, s: Symbol) -> str:
        "A function's name, declared before its first use; a constructor's, declared with its datatype."
        name = self.at(self.name(s.owner), s.types)
        if s.part: return f'(_ is {name})' if s.part == 'is' else f'{name}.{s.part}'
        if not isinstance(s.owner, type) and s not in self.declared:
            self.declared.add(s)
            types = dict(zip(s.owner.types, s.types))
            params = ' '.join(self.sort(at_sort(p.sort, types)) for p in s.owner.params)
            self.lines.append(f'(declare-fun {name} ({params}) {self.sort(at_sort(s.owner.sort, types))})')
        return name


# %%
#| export
class Script(Declarations):
    "An SMT-LIB text in the making."
    def term(self, t: Term) -> str:
        "A term as text."
        if isinstance(t, Var): self.sort(t.sort); return f'?{t.name}'
        if isinstance(t, Forall): return self.quantified(t)
        self.sort(t.sort)
        op = t.op
        if isinstance(op, bool): return str(op).lower()
        if isinstance(op, int): return str(op) if op >= 0 else f'(- {-op})'
        if isinstance(op, Fraction):
            whole = f'(/ {abs(op.numerator)}.0 {op.denominator}.0)' if op.denominator != 1 else f'{abs(op.numerator)}.0'
            return whole if op >= 0 else f'(- {whole})'
        head = self.symbol(op) if isinstance(op, Symbol) else op
        return f"({head} {' '.join(map(self.term, t.args))})" if t.args else head

    def quantified(self, t: Forall) -> str:
        vars = ' '.join(f'(?{v.name} {self.sort(v.sort)})' for v in t.vars)
        groups = ''.join(f" :pattern ({' '.join(map(self.term, g))})" for g in t.triggers)
        return f'(forall ({vars}) ' + (f'(! {self.term(t.body)}{groups})' if groups else self.term(t.body)) + ')'


# %% [markdown]
# An obligation is a list of facts and a goal. Its text asserts the facts and that the goal is false; `unsat`, from a
# solver, means that this cannot be, and the goal follows. The text is all that a solver sees, and its SHA-256 names it.

# %%
#| export
def script(facts: list[tuple[str, Term]], goal: Term, comment: str = '') -> str:
    "The SMT-LIB text that is unsatisfiable exactly if the goal follows from the facts."
    s = Script()
    asserts = [f'; {" ".join(why.split())}\n(assert {s.term(f)})' for why, f in facts] + [f'; the goal, denied\n(assert (not {s.term(goal)}))']
    consts = {v.name: v for v in free(*(f for _, f in facts), goal)}
    if len(consts) < len(free(*(f for _, f in facts), goal)): raise ValueError('two constants of one name')
    declared = [f'(declare-const ?{v.name} {s.sort(v.sort)})' for v in consts.values()]
    head = [f'; {line}' for line in comment.splitlines()] + ['(set-info :smt-lib-version 2.6)', '(set-logic ALL)']
    return '\n'.join([*head, *s.lines, *declared, *asserts, '(check-sat)', ''])


# %%
print(script([('given', App('<', (x, y), BOOL))], App('<', (App('+', (x, literal(1)), INT), App('+', (y, literal(1)), INT)), BOOL)))

# %% [markdown]
# ## What this does not show
#
# That the text is true of the Python function it came from; that is the next page but one's business, and the business of
# the tests that run both. And nothing here checks that a term is well sorted: the reader of Python code does, and each
# solver does it again.
