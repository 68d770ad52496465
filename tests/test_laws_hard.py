"""Laws that need more of the kernel: measures, arrays, exact fractions, axioms, inlining, hints. PYTEST_DONT_REWRITE."""
from fractions import Fraction as Q

import pytest
from bendml.laws import A, Array, Cons, Law, List, Nil, abstract, axiom, datatype, law, prove, pure, select, store
from bendml.lists import append, append_assoc, length
from bendml.nat import Nat, S, Z

pytestmark = pytest.mark.slow


# --- an array is filled, cell by cell

@pure(measure='hi - lo')
def fill(a: Array[int, int], lo: int, hi: int, v: int) -> Array[int, int]:
    return a if lo >= hi else fill(store(a, lo, v), lo + 1, hi, v)

@law(induct='d', gen=['a', 'lo'], unfold=1, ih='fill(a, lo, hi, v)')
def fill_cell(a: Array[int, int], lo: int, hi: int, v: int, d: int, i: int):
    "Inside it is the value, outside what it was."
    assert d == hi - lo
    return select(fill(a, lo, hi, v), i) == (v if lo <= i and i < hi else select(a, i))

@law(cite=[fill_cell.here(d='hi - lo')], unfold=0)
def fill_outside(a: Array[int, int], lo: int, hi: int, v: int, i: int):
    assert i < lo or hi <= i
    return select(fill(a, lo, hi, v), i) == select(a, i)

# --- rows of a matrix, in a flat array

@pure(measure='n - i')
def rows(a: Array[int, int], m: int, i: int, n: int) -> Array[int, int]:
    return a if i >= n else rows(fill(a, i*m, i*m + m, i), m, i + 1, n)

@law(trigger='i*m; x*m')
def rows_apart(i: int, x: int, m: int):
    assert m >= 0
    assert i < x
    return i*m + m <= x*m

@law(induct='d', gen=['a', 'i'], unfold=1, opaque=[fill], ih='rows(a, m, i, n)',
     cite=[fill_cell.here(lo='i*m', hi='i*m + m', v='i', d='m', i='x*m + y'), rows_apart.here(), rows_apart.here(i='x', x='i')])
def rows_cell(a: Array[int, int], m: int, i: int, n: int, d: int, x: int, y: int):
    "Cell (x, y) holds x, for all sizes."
    assert d == n - i
    assert 0 <= y and y < m
    return select(rows(a, m, i, n), x*m + y) == (x if i <= x and x < n else select(a, x*m + y))

# --- numbers are written and read again

@pure(measure='n')
def digits(n: int) -> List[int]:
    return Cons(n, Nil()) if n < 10 else append(digits(n // 10), Cons(n % 10, Nil()))

@pure
def read(ds: List[int], acc: int) -> int:
    match ds:
        case Nil(): return acc
        case Cons(d, rest): return read(rest, 10*acc + d)

@law
def ten(n: int):
    assert n >= 0
    return n == 10*(n // 10) + n % 10 and n // 10 >= 0

@law(induct='xs', gen=['acc'])
def read_append(xs: List[int], ys: List[int], acc: int): return read(append(xs, ys), acc) == read(ys, read(xs, acc))

@law(induct='n', strong=True, unfold=1, cite=[read_append, ten.here()], ih='digits(n)')
def read_digits(n: int):
    assert n >= 0
    return read(digits(n), 0) == n

# --- exact fractions

@pure
def total(v: List[Q]) -> Q:
    match v:
        case Nil(): return Q(0)
        case Cons(a, rest): return a + total(rest)

@pure
def shares(v: List[Q], t: Q) -> List[Q]:
    match v:
        case Nil(): return Nil()
        case Cons(a, rest): return Cons(a/t if t != Q(0) else a, shares(rest, t))

@law
def share_sum(a: Q, b: Q, t: Q):
    assert t > Q(0)
    return (a + b)/t == a/t + b/t

@law(induct='v', cite=[share_sum.here(a='v.head', b='total(v.tail)')])
def shares_total(v: List[Q], t: Q):
    assert t > Q(0)
    return total(shares(v, t)) == total(v)/t

@law(cite=[shares_total.at(t='total(v)')])
def shares_sum_to_one(v: List[Q]):
    assert total(v) > Q(0)
    return total(shares(v, total(v))) == Q(1)

# --- rotations: polynomials by inlining, angles by axioms

@abstract
class Angle: samples = (0, 1, 2, 3)   # quarter turns

@abstract
def turn(m: int, a: Angle) -> Angle: return m*a % 4
@abstract
def co(a: Angle) -> Q: return Q((1, 0, -1, 0)[a])
@abstract
def si(a: Angle) -> Q: return Q((0, 1, 0, -1)[a])
@axiom
def co_difference(m: int, n: int, a: Angle): return co(turn(n - m, a)) == co(turn(m, a))*co(turn(n, a)) + si(turn(m, a))*si(turn(n, a))
@axiom
def si_difference(m: int, n: int, a: Angle): return si(turn(n - m, a)) == si(turn(n, a))*co(turn(m, a)) - co(turn(n, a))*si(turn(m, a))

@pure
def first(c: Q, s: Q, a: Q, b: Q) -> Q: return c*a - s*b
@pure
def second(c: Q, s: Q, a: Q, b: Q) -> Q: return s*a + c*b
@pure
def dot(a: Q, b: Q, x: Q, y: Q) -> Q: return a*x + b*y

@law(inline=[first, second, dot])
def pair(c: Q, s: Q, d: Q, t: Q, a: Q, b: Q, x: Q, y: Q):
    return dot(first(c, s, a, b), second(c, s, a, b), first(d, t, x, y), second(d, t, x, y)) == dot(a, b, first(c*d + s*t, t*c - d*s, x, y), second(c*d + s*t, t*c - d*s, x, y))

@law(opaque=[first, second, dot], cite=[co_difference.here(a='h'), si_difference.here(a='h'), pair.here(c='co(turn(m, h))', s='si(turn(m, h))', d='co(turn(n, h))', t='si(turn(n, h))')])
def relative_position(m: int, n: int, h: Angle, a: Q, b: Q, x: Q, y: Q):
    "Two pairs, turned m and n times: their product depends on n - m alone."
    c = co(turn(m, h))
    s = si(turn(m, h))
    d = co(turn(n, h))
    t = si(turn(n, h))
    e = co(turn(n - m, h))
    u = si(turn(n - m, h))
    return dot(first(c, s, a, b), second(c, s, a, b), first(d, t, x, y), second(d, t, x, y)) == dot(a, b, first(e, u, x, y), second(e, u, x, y))

# --- a table of rules, newest first; lists taken two at a time

@datatype
class Token:
    class Byte: value: int
    class Made: rule: int

Byte, Made = Token.Byte, Token.Made

@pure
def merge(k: int, a: Token, b: Token, s: List[Token]) -> List[Token]:
    match s:
        case Cons(x, Cons(y, rest)):
            if x == a and y == b: return Cons(Made(k), merge(k, a, b, rest))
            return Cons(x, merge(k, a, b, Cons(y, rest)))
        case _: return s

@pure
def occurs(a: Token, b: Token, s: List[Token]) -> bool:
    match s:
        case Cons(x, Cons(y, rest)): return (x == a and y == b) or occurs(a, b, Cons(y, rest))
        case _: return False

@pure
def without(k: int, s: List[Token]) -> bool:
    match s:
        case Nil(): return True
        case Cons(x, rest): return x != Made(k) and without(k, rest)

@pure
def undo(k: int, a: Token, b: Token, s: List[Token]) -> List[Token]:
    match s:
        case Nil(): return Nil()
        case Cons(x, rest): return Cons(a, Cons(b, undo(k, a, b, rest))) if x == Made(k) else Cons(x, undo(k, a, b, rest))

@law(induct='s', depth=2)
def undo_merge(k: int, a: Token, b: Token, s: List[Token]):
    "What was merged can be taken apart again, if the new token was not there before."
    assert without(k, s)
    return undo(k, a, b, merge(k, a, b, s)) == s

@law(induct='s', depth=2, split=['s.tail.tail', 'merge(k, a, b, s.tail)', 'merge(k, a, b, s.tail.tail)'])
def merge_leaves_none(k: int, a: Token, b: Token, s: List[Token]):
    "After merging a pair it is nowhere to be found."
    assert a != Made(k)
    assert b != Made(k)
    return not occurs(a, b, merge(k, a, b, s))


LAWS = [l for l in list(globals().values()) if isinstance(l, Law) and l.__module__ == __name__]


@pytest.mark.parametrize('l', LAWS, ids=lambda l: l.__name__)
def test_it_is_confirmed(l):
    t = prove(l)
    assert t.verdict == ('assumed' if l.assumed else 'confirmed'), repr(t)
    assert t.found.passed > 0


def test_what_rests_on_axioms_says_so():
    assert [a.__name__ for a in prove(relative_position).axioms] == ['co_difference', 'si_difference']
    assert prove(rows_cell).axioms == ()


def test_neighbours_that_are_false():
    @law(induct='d', gen=['a', 'lo'], unfold=1)
    def one_too_many(a: Array[int, int], lo: int, hi: int, v: int, d: int, i: int):
        assert d == hi - lo
        return select(fill(a, lo, hi, v), i) == (v if lo <= i and i <= hi else select(a, i))
    @law(induct='s', depth=2)
    def undo_any(k: int, a: Token, b: Token, s: List[Token]): return undo(k, a, b, merge(k, a, b, s)) == s
    @law(induct='s', depth=2)
    def merge_always(k: int, a: Token, b: Token, s: List[Token]): return not occurs(a, b, merge(k, a, b, s))
    for l in (one_too_many, undo_any, merge_always): assert prove(l).verdict == 'refuted', repr(prove(l))
