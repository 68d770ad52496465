# %%
#| default_exp shape.sizes

# %% [markdown]
# # Sizes
# > Arithmetic on sizes that are not known yet, in one normal form: two equal expressions are the same object.

# %% [markdown]
# A program for a batch of `B` rows must be right for every `B`. So its sizes are not numbers but expressions such as
# `B*T`, `4*D` or `T + 1`, and the question "do these two fit?" becomes "are these two expressions equal?". Most of these
# questions are answered by writing both sides in the same way: multiplied out, like terms collected, in a fixed order.
# What that cannot answer (order, divisibility) is the subject of the [next page](20b_facts.ipynb).

# %%
#| hide
#| export
import ast, operator, re
from dataclasses import dataclass
from functools import reduce
from typing import Mapping


# %% [markdown]
# ## Terms
#
# A size is a sum of terms, each a whole number times a product of atoms. An atom is a name, or a quotient rounded down,
# which cannot be taken apart: `(T+1)//2`.

# %%
#| export
@dataclass(frozen=True)
class Floor:
    "An atom: `num // den`, rounded down, where the division does not come out."
    num: 'Dim'
    den: 'Dim'
    def __str__(self): return f'{_wrapped(self.num)}//{_wrapped(self.den)}'
    __repr__ = __str__
    @property
    def weight(self) -> int: return self.num.weight + self.den.weight


# %%
#| export
Atom = str | Floor
Monomial = tuple[tuple[Atom, int], ...]  # atoms with their powers, sorted: (('B', 1), ('T', 2)) is B*T**2


# %%
#| export
class DimError(ValueError):
    "An expression of sizes that cannot be read, or is too large to work with."

MAX_TERMS, MAX_POWER, MAX_TEXT, MAX_WEIGHT = 400, 12, 400, 1000


# %%
#| export
def _product(a: Monomial, b: Monomial) -> Monomial:
    powers = dict(a)
    for atom, power in b: powers[atom] = powers.get(atom, 0) + power
    if sum(powers.values()) > MAX_POWER: raise DimError(f'a product of more than {MAX_POWER} sizes')
    return tuple(sorted(powers.items(), key=str))


# %%
#| export
def _quotient(a: Monomial, b: Monomial) -> Monomial | None:
    "`a / b` if every atom of `b` is in `a`."
    powers = dict(a)
    for atom, power in b:
        if powers.get(atom, 0) < power: return None
        powers[atom] -= power
    return tuple((atom, power) for atom, power in powers.items() if power)


# %% [markdown]
# ## The normal form
#
# Terms are kept sorted, none with the factor 0. So equal sums are equal tuples.

# %%
#| export
class _Normal:
    "A sum of terms in normal form: equal sums compare and hash equal."
    __slots__ = 'terms', 'weight', '_hash'

    def __init__(self, value: 'str | int | Dim | Mapping[Monomial, int] | None' = None, *more: str):
        if more or value is None: raise DimError(f'a size has one name: n = Dim("n"); for several, {_several(value, *more)}')
        if isinstance(value, Dim): terms = value.terms
        elif isinstance(value, int): terms = (((), int(value)),) if value else ()
        elif isinstance(value, str): terms = ((((_checked(value), 1),), 1),)
        elif isinstance(value, float): raise DimError(f'{value} is not a whole number, so it is no size')
        else: terms = tuple(sorted(((m, c) for m, c in value.items() if c), key=_order))
        if len(terms) > MAX_TERMS: raise DimError(f'an expression of more than {MAX_TERMS} terms')
        self.weight = sum(1 + sum(1 if isinstance(a, str) else a.weight for a, _ in m) for m, _ in terms)  # quotients of quotients may double it
        if self.weight > MAX_WEIGHT: raise DimError(f'an expression of more than {MAX_WEIGHT} parts')
        self.terms, self._hash = terms, hash(terms)

    def __hash__(self): return self._hash if self.const is None else hash(self.const)
    def __eq__(self, other):
        if isinstance(other, Dim): return self.terms == other.terms
        return self.const == other if isinstance(other, int) else NotImplemented

    @property
    def const(self) -> int | None:
        "The number, if it is one."
        if not self.terms: return 0
        return self.terms[0][1] if self.terms[0][0] == () else None


# %%
#| export
def _checked(name: str) -> str:
    if re.fullmatch(r'[^\W\d]\w*', name): return name
    several = [n for n in re.split(r'[\s,]+', name) if n]
    raise DimError(f'{name!r} is not a name; ' + (f'for several sizes, {_several(*several)}' if len(several) > 1 and all(map(str.isidentifier, several)) else
                                                  'a size is a name, Dim("n"), or arithmetic on sizes, 4*Dim("n")'))

def _several(*names: str) -> str:
    names = [str(n) for n in names if str(n).isidentifier()] if len(names) > 1 else ['n', 'd']
    return f'{", ".join(names)} = dims("{" ".join(names)}")'


# %%
#| export
def _order(term: tuple[Monomial, int]):
    "Higher powers first, then by name; the number last."
    return -sum(power for _, power in term[0]), str(term[0])


# %%
#| export
def _operand(method):
    "Let a binary method accept whole numbers, and decline everything else."
    def checked(self, other):
        if isinstance(other, Dim): return method(self, other)
        return method(self, Dim(other)) if isinstance(other, int) else NotImplemented
    return checked


# %% [markdown]
# Addition collects like terms; multiplication multiplies each term by each.

# %%
#| export
class _Ring(_Normal):
    "Sums and products."
    __slots__ = ()

    @_operand
    def __add__(self, other: 'Dim') -> 'Dim':
        total = dict(self.terms)
        for m, c in other.terms: total[m] = total.get(m, 0) + c
        return Dim(total)

    @_operand
    def __mul__(self, other: 'Dim') -> 'Dim':
        total = {}
        for a, x in self.terms:
            for b, y in other.terms:
                m = _product(a, b)
                total[m] = total.get(m, 0) + x*y
        return Dim(total)

    def __neg__(self) -> 'Dim': return Dim({m: -c for m, c in self.terms})
    @_operand
    def __sub__(self, other: 'Dim') -> 'Dim': return self + -other
    @_operand
    def __rsub__(self, other: 'Dim') -> 'Dim': return other + -self
    def __pow__(self, n: int) -> 'Dim':
        if not isinstance(n, int) or not 0 <= n <= MAX_POWER: raise DimError(f'a size to the power {n}')
        return reduce(operator.mul, [self]*n, Dim(1))
    __radd__, __rmul__ = __add__, __mul__


# %% [markdown]
# Division rounds down, as in Python. Whatever divides is divided; the rest stays as an atom:
# $\lfloor (dq + r)/d \rfloor = q + \lfloor r/d \rfloor$ for every whole number $q$.

# %%
#| export
def _split(num: 'Dim', den: 'Dim') -> tuple['Dim', 'Dim']:
    "`num = den*whole + rest`, with as much as possible in `whole`."
    (lead, coefficient), *more = den.terms
    whole, rest = Dim(0), num
    for m, c in num.terms:
        fits = _quotient(m, lead)
        if fits is None: continue
        step = Dim({fits: c//coefficient})
        if more and num != den*step: continue  # a sum divides only what it divides entirely
        whole, rest = whole + step, rest - den*step
        if more: break
    return whole, rest


# %% [markdown]
# `Dim("B")` is a size with a name, `Dim(3)` a number; arithmetic on them gives `Dim`s again.

# %%
#| export
class Dim(_Ring):
    "A size: a whole number, a name, or arithmetic on them (`+ - * // % **`), in normal form."
    __slots__ = ()

    @_operand
    def __floordiv__(self, other: 'Dim') -> 'Dim':
        if other == 0: raise ZeroDivisionError('a size divided by 0')
        whole, rest = _split(self, other)
        if rest == 0: return whole
        if other.const is not None and rest.const is not None: return whole + rest.const//other.const
        return whole + named(Floor(rest, other))

    @_operand
    def __mod__(self, other: 'Dim') -> 'Dim': return self - other*(self//other)
    @_operand
    def __rfloordiv__(self, other: 'Dim') -> 'Dim': return other//self
    @_operand
    def __rmod__(self, other: 'Dim') -> 'Dim': return other % self

    def __str__(self): return _shown(self)
    __repr__ = __str__
    def __mro_entries__(self, bases): raise TypeError(f'{self} is a size, not a class')


# %%
#| export
def dims(names: str) -> tuple[Dim, ...]:
    "Several sizes at once: `B, T, C = dims('B T C')`."
    return tuple(map(Dim, names.replace(',', ' ').split()))


# %%
#| export
def fresh(name: str, number: int) -> Dim:
    "A size that nobody has named: `k'3`, which is not an identifier and so cannot be anybody's name."
    return named(f"{name}'{number}")


# %%
#| export
def named(atom: Atom) -> Dim:
    "The size that is a single atom."
    return Dim({((atom, 1),): 1})


# %% [markdown]
# A size prints as it would be written in Python.

# %%
#| export
def _shown(dim: Dim) -> str:
    text = ''
    for monomial, c in sorted(dim.terms, key=lambda t: t[1] < 0 and len(dim.terms) > 1):  # h - a, rather than -a + h
        factors = [_factor(atom, power) for atom, power in monomial]
        if abs(c) != 1 or not factors: factors.insert(0, str(abs(c)))
        text += (' - ' if c < 0 else ' + ') + '*'.join(factors)
    if not text: return '0'
    return text[3:] if text.startswith(' + ') else '-' + text[3:]


# %%
#| export
def _factor(atom: Atom, power: int) -> str:
    name = f'({atom})' if isinstance(atom, Floor) else atom
    return name if power == 1 else f'{name}**{power}'


# %%
#| export
def _wrapped(dim: Dim) -> str:
    text = str(dim)
    return text if re.fullmatch(r'\w+', text) else f'({text})'


# %%
B, T, C, H = dims('B T C H')
assert (B + 1)*(T + 2) == B*T + 2*B + T + 2
assert (4*C)//4 == C and (2*C + 1)//2 == C and (B*T)//T == B and ((B + 1)*T)//(B + 1) == T
assert (7*C) % 7 == 0 and C % H == C - H*(C//H)
(B + 1)**2 - 1, (T + 1)//2, C % H


# %% [markdown]
# ## Names, values, substitution

# %%
#| export
def names_of(dim: Dim) -> frozenset[str]:
    "The names that occur in a size."
    found = set()
    for monomial, _ in dim.terms:
        for atom, _ in monomial: found |= {atom} if isinstance(atom, str) else names_of(atom.num) | names_of(atom.den)
    return frozenset(found)


# %%
#| export
def substitute(dim: Dim, values: Mapping[str, 'Dim | int']) -> Dim:
    "The size with names replaced by other sizes, in normal form again."
    if not names_of(dim) & values.keys(): return dim
    total = Dim(0)
    for monomial, c in dim.terms:
        term = Dim(c)
        for atom, power in monomial: term *= _replaced(atom, values)**power
        total += term
    return total


# %%
#| export
def _replaced(atom: Atom, values: Mapping[str, 'Dim | int']) -> Dim:
    if isinstance(atom, Floor): return substitute(atom.num, values)//substitute(atom.den, values)
    return Dim(values[atom]) if atom in values else named(atom)


# %%
#| export
def evaluate(dim: Dim, sizes: Mapping[str, int]) -> int:
    "The number that a size is, given every name; `ZeroDivisionError` where it has none."
    return sum(c*_power_product(monomial, sizes) for monomial, c in dim.terms)


# %%
#| export
def _power_product(monomial: Monomial, sizes: Mapping[str, int]) -> int:
    product = 1
    for atom, power in monomial:
        value = sizes[atom] if isinstance(atom, str) else evaluate(atom.num, sizes)//evaluate(atom.den, sizes)
        product *= value**power
    return product


# %%
assert names_of(C % H) == {'C', 'H'}
assert substitute(C//H, {'C': 4*H}) == 4
assert evaluate(C//H + B, {'B': 1, 'C': 7, 'H': 2}) == 4

# %% [markdown]
# ## Reading a size
#
# In an annotation a size may be written as text, `"4*D"`. It is read as Python's own parser reads it, but only names, whole
# numbers and five operators are accepted: a text is never run.

# %%
#| export
_OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
              ast.Mod: operator.mod, ast.Pow: lambda a, b: a**b.const}


# %%
#| export
def parse_dim(text: str) -> Dim:
    "Read a size such as `4*D` or `(T+1)//2`; `DimError` for anything else."
    if len(text) > MAX_TEXT: raise DimError(f'a size of {len(text)} characters; at most {MAX_TEXT} are read')
    try: return read_tree(ast.parse(text.strip(), mode='eval').body)
    except SyntaxError as e:
        names = text.replace(',', ' ').split()
        several = 'write each size by itself: ' + ', '.join(f'"{n}"' for n in names)
        raise DimError(f'{text!r} is not a size; {several}' if len(names) > 1 and all(map(str.isidentifier, names)) else f'{text!r} is not a size: {e.msg}') from None
    except (ZeroDivisionError, TypeError, RecursionError) as e:
        raise DimError(f'{text!r} is not a size: {e}') from None


# %%
#| export
def read_tree(tree: ast.expr) -> Dim:
    "The size that a parsed expression stands for."
    match tree:
        case ast.Constant(int(value)) if not isinstance(value, bool): return Dim(value)
        case ast.Name(name): return Dim(name)
        case ast.UnaryOp(ast.USub(), operand): return -read_tree(operand)
        case ast.BinOp(left, op, right) if type(op) in _OPERATORS: return _OPERATORS[type(op)](read_tree(left), read_tree(right))
    raise DimError(f'{ast.unparse(tree)!r} is not a size; write names, whole numbers and + - * // % **')


# %%
assert parse_dim('(T+1)//2 + 4*C') == (T + 1)//2 + 4*C

# %%
for text in ('__import__("os")', 'T/2', '3 D', 'x'*500):
    try: parse_dim(text)
    except DimError as e: print(e)

# %% [markdown]
# ## What this does not show
#
# Two expressions in different normal forms may still be equal wherever the program can be called: `C//H*H` and `C`, if `H`
# divides `C`. The normal form knows no such facts. Quotients are taken apart only as far as whole terms divide, so
# `(B*B - 1)//(B - 1)` stays as it is.
