"""What reflection does not understand, it refuses: with the line, what was expected, what was observed.

Each snippet is a module; `# <-` marks the line that the message must name.
"""
import itertools, pytest
from bendml.laws import LawError, prove
from bendml.laws.claims import load

PRELUDE = '''import functools
from fractions import Fraction
from typing import Self
from bendml.laws import A, Array, Cons, Law, List, Nil, abstract, axiom, datatype, law, pure, select, store
from bendml.nat import Nat, S, Z, add, le
'''
NUMBER = itertools.count()


def module(tmp_path, code):
    "The snippet as a module of its own."
    path = tmp_path/f'snippet_{next(NUMBER)}.py'
    path.write_text(PRELUDE + code)
    return load(str(path)), path


def refused(tmp_path, code) -> str:
    with pytest.raises(LawError) as e: module(tmp_path, code)
    message = str(e.value)
    assert '- expected : ' in message and '- observed : ' in message
    lines = (PRELUDE + code).splitlines()
    for i, line in enumerate(lines, 1):
        if line.endswith('# <-'): assert f'.py:{i} in ' in message, message
    return message


SNIPPETS = {
    'missing case': ('a case is missing', '''
@pure
def f(x: Nat) -> Nat:
    match x:  # <-
        case S(S(m)): return m
        case Z(): return x
'''),
    'missing case of two': ('no case for S(_), Z()', '''
@pure
def f(x: Nat, y: Nat) -> Nat:
    match x, y:  # <-
        case Z(), _: return x
        case S(m), S(k): return m
'''),
    'missing case of a call': ('no case for S(_)', '''
@pure
def f(x: Nat) -> Nat:
    match add(x, x):  # <-
        case Z(): return x
'''),
    'a recursion that grows': ('may not end', '''
@pure
def f(x: Nat) -> Nat: return f(S(x))  # <-
'''),
    'a recursion that swaps': ('may not end', '''
@pure
def f(x: Nat, y: Nat) -> Nat:
    match x:
        case Z(): return y
        case S(m): return f(y, m)  # <-
'''),
    'a recursion whose value is thrown away': ('may not end', '''
@pure
def f(x: Nat) -> Nat:
    d = f(x)  # <-
    return x
'''),
    'a recursion inside its own argument': ('may not end', '''
@pure
def f(x: Nat) -> Nat:
    match x:
        case Z(): return x
        case S(m): return f(f(m))  # <-
'''),
    'a recursion in a condition': ('may not end', '''
@pure
def f(x: Nat) -> bool: return True if f(x) else False  # <-
'''),
    'a measure that goes below zero': ('n = -1', '''
@pure(measure='n')
def f(n: int) -> int:
    if n == 0: return 0
    return f(n - 1)  # <-
'''),
    'a measure that grows': ('may not end', '''
@pure(measure='n')
def f(n: int) -> int:
    if n <= 0: return 0
    return f(n + 1)  # <-
'''),
    'a measure that depends on the function itself': ('may not end', '''
@pure(measure='f(n)')
def f(n: int) -> int:
    return f(n - 1) + 1 if n > 0 else 0  # <-
'''),
    'a measure that is no expression': ('not an expression', '''
@pure(measure='n -')
def f(n: int) -> int: return 0 if n <= 0 else f(n - 1)  # <-
'''),
    'a measure that is no number': ('wrong sort', '''
@pure(measure='n < 0')
def f(n: int) -> int: return 0 if n <= 0 else f(n - 1)  # <-
'''),
    'recursion at another type': ('recursion at another type', '''
@pure
def f(xs: List[A]) -> Nat:
    match xs:
        case Nil(): return Z()
        case Cons(h, t): return f(Cons(t, Nil()))  # <-
'''),
    'a call of what is not pure': ('put @pure above it', '''
def g(x): return x
@pure
def f(x: Nat) -> Nat: return g(x)  # <-
'''),
    'a call of what comes later': ('nothing of that name', '''
@pure
def f(x: Nat) -> Nat: return later(x)  # <-
@pure
def later(x: Nat) -> Nat: return x
'''),
    'a call of a wrapped pure function': ('not pure', '''
@functools.wraps(add)
def g(x, y): return Z()
@pure
def f(x: Nat) -> Nat: return g(x, x)  # <-
'''),
    'a call of a law': ('not pure', '''
@law
def l(x: Nat): return x == x
@pure
def f(x: Nat) -> bool: return l(x)  # <-
'''),
    'a call of a datatype': ('not pure', '''
@pure
def f(x: Nat) -> Nat: return Nat()  # <-
'''),
    'wrong number of arguments': ('2 arguments', '''
@pure
def f(x: Nat) -> Nat: return add(x)  # <-
'''),
    'wrong sort in the else branch': ('wrong sort of 0', '''
@pure
def f(x: Nat, b: bool) -> Nat: return x if b else 0  # <-
'''),
    'wrong sort in the if branch': ('wrong sort of True', '''
@pure
def f(x: Nat, b: bool) -> Nat:
    if b: return True  # <-
    return x
'''),
    'wrong sort of an argument': ('wrong sort of 1', '''
@pure
def f(x: Nat) -> Nat: return add(x, 1)  # <-
'''),
    'wrong sort of an element': ('wrong sort', '''
@pure
def f(xs: List[Nat]) -> List[Nat]: return Cons(3, xs)  # <-
'''),
    'a truth value as a number': ('wrong sort of True', '''
@pure
def f(x: int) -> int: return x + True  # <-
'''),
    'a number as a truth value': ('wrong sort of x', '''
@pure
def f(x: int) -> int: return 1 if x else 0  # <-
'''),
    'comparing truth values': ('wrong sort', '''
@pure
def f(x: bool) -> bool: return x < True  # <-
'''),
    'a number equal to a truth value': ('wrong sort of True', '''
@pure
def f(x: int) -> bool: return x == True  # <-
'''),
    'whole numbers among fractions': ('two sorts of number', '''
@pure
def f(x: Fraction) -> Fraction: return x + 1  # <-
'''),
    'a sort that does not follow': ('not clear', '''
@pure
def f(x: Nat) -> bool: return Nil() == Nil()  # <-
'''),
    'a float': ('floats round', '''
@pure
def f(x: float) -> int: return 1
'''),
    'a float in the body': ('floats round', '''
@pure
def f(x: Fraction) -> Fraction: return x + 0.5  # <-
'''),
    'true division of whole numbers': ('not understood', '''
@pure
def f(x: int) -> int: return x / 2  # <-
'''),
    'a divisor that may be zero': ('not so for y = 0', '''
@pure
def f(x: int, y: int) -> int: return x // y  # <-
'''),
    'a remainder by what may be zero': ('may be zero', '''
@pure
def f(x: int, y: int) -> int: return 0 if y > 0 else x % y  # <-
'''),
    'a divisor tested too late': ('may be zero', '''
@pure
def f(x: int, y: int) -> bool: return x // y == 1 and y != 0  # <-
'''),
    'a fraction by what may be zero': ('may be zero', '''
@pure
def f(x: Fraction, y: Fraction) -> Fraction: return x / y  # <-
'''),
    'zero as a divisor': ('may be zero', '''
@pure
def f(x: int) -> int: return x // 0  # <-
'''),
    'a default': ('without defaults', '''
@pure
def f(x: int = 0) -> int: return x  # <-
'''),
    'a keyword': ('without defaults', '''
@pure
def f(x: int, *, y: int) -> int: return x  # <-
'''),
    'arguments by name': ('arguments in order', '''
@pure
def f(x: Nat) -> Nat: return add(y=x, x=x)  # <-
'''),
    'any number of arguments': ('without defaults', '''
@pure
def f(*x: int) -> int: return 0  # <-
'''),
    'an annotation in quotes': ('without quotes', '''
@pure
def f(x: 'int') -> int: return x
'''),
    'no annotation': ('no annotation', '''
@pure
def f(x) -> int: return 1  # <-
'''),
    'no annotation of the value': ('no annotation of the value', '''
@pure
def f(x: int): return 1  # <-
'''),
    'a list of anything': ('takes 1 types', '''
@pure
def f(x: List) -> int: return 1
'''),
    "Python's own list": ('not a type that the logic knows', '''
@pure
def f(x: list[int]) -> int: return 1
'''),
    'a path without a value': ('a path without a value', '''
@pure
def f(x: int) -> int:
    if x > 0: return x
'''),
    'a loop': ('written as recursion', '''
@pure
def f(x: int) -> int:
    for i in range(3): x = x + 1  # <-
    return x
'''),
    'augmented assignment': ('not understood', '''
@pure
def f(x: int) -> int:
    x += 1  # <-
    return x
'''),
    'two targets': ('not understood', '''
@pure
def f(x: int) -> int:
    a = b = x  # <-
    return a
'''),
    'try': ('not understood', '''
@pure
def f(x: int) -> int:
    try: return x  # <-
    except Exception: return 0
'''),
    'global': ('not understood', '''
@pure
def f(x: int) -> int:
    global NUMBER  # <-
    return x
'''),
    'assert': ('not understood', '''
@pure
def f(x: int) -> int:
    assert x > 0  # <-
    return x
'''),
    'a function inside': ('not understood', '''
@pure
def f(x: int) -> int:
    def g(y): return y  # <-
    return x
'''),
    'a formatted text': ('not understood', '''
@pure
def f(x: int) -> bool: return f"{x}" == f"{x}"  # <-
'''),
    'a comprehension': ('not understood', '''
@pure
def f(x: int) -> bool: return [y for y in (1, 2)] == [x]  # <-
'''),
    'an assignment in an expression': ('not understood', '''
@pure
def f(x: int) -> int: return (y := x) + y  # <-
'''),
    'identity': ('not understood', '''
@pure
def f(x: Nat) -> bool: return x is x  # <-
'''),
    'membership': ('not understood', '''
@pure
def f(x: int) -> bool: return x in (1, 2)  # <-
'''),
    'a power': ('not understood', '''
@pure
def f(x: int) -> int: return x**2  # <-
'''),
    'a generator': ('not understood', '''
@pure
def f(x: int) -> int:
    yield x  # <-
'''),
    'a local name before it has a value': ('z has no value here', '''
@pure
def f(x: int) -> int:
    y = z  # <-
    z = x
    return y
'''),
    'a name bound in another case': ('m has no value here', '''
@pure
def f(x: Nat) -> Nat:
    match x:
        case S(m): return m
        case _: return m  # <-
'''),
    'a parameter that hides a function': ('a value is called', '''
@pure
def f(add: Nat) -> Nat: return add(add, add)  # <-
'''),
    'a parameter that hides a constructor': ('S has no value here', '''
@pure
def f(S: Nat) -> Nat:
    match S:
        case S(m): return m  # <-
        case _: return S
'''),
    'a condition on a case': ('case without if', '''
@pure
def f(x: Nat) -> Nat:
    match x:
        case S(m) if m == Z(): return m  # <-
        case _: return x
'''),
    'a number as a pattern': ('compare numbers with if', '''
@pure
def f(x: int) -> int:
    match x:
        case 0: return 1  # <-
        case _: return 0
'''),
    'a field by name in a pattern': ('not understood', '''
@pure
def f(x: Nat) -> Nat:
    match x:
        case S(pred=m): return m  # <-
        case _: return x
'''),
    'a sequence as a pattern': ('not understood', '''
@pure
def f(x: List[Nat]) -> Nat:
    match x:
        case [a, b]: return a  # <-
        case _: return Z()
'''),
    "another datatype's constructor": ('not a constructor of what is matched', '''
@datatype
class Other:
    class Z: pass
    class S: pred: Self
@pure
def f(x: Nat) -> Nat:
    match x:
        case Other.Z(): return x  # <-
        case S(m): return m
'''),
    'too many patterns': ('too many patterns', '''
@pure
def f(x: Nat) -> Nat:
    match x:
        case S(m, k): return m  # <-
        case _: return x
'''),
    'a field that may not be there': ('a field that may not be there', '''
@pure
def f(x: Nat) -> Nat: return x.pred  # <-
'''),
    'a decorator above': ('more than one decorator', '''
def twist(f): return lambda x: 0
@twist
@pure
def f(x: int) -> int: return x
'''),
    'a decorator below': ('not the code that runs', '''
def twist(f):
    @functools.wraps(f)
    def g(x): return f(x) + 1
    return g
@twist
def f(x: int) -> int: return x
pure(f)
'''),
    'a cache below': ('not a function', '''
@pure
@functools.cache
def f(x: int) -> int: return x
'''),
    'a lambda': ('lambda', '''
f = pure(lambda x: x)
'''),
    'code without source': ('no source to read', '''
names = {}
exec('def f(x: int) -> int: return x', names)
pure(names['f'])
'''),
    'a law without a claim': ('a law without a claim', '''
@law
def l(x: int): assert x > 0  # <-
'''),
    'a law with a branch': ('not understood in a law', '''
@law
def l(x: int):
    if x > 0: return True  # <-
    return False
'''),
    'a law that claims a number': ('wrong sort', '''
@law
def l(x: int): return x + 1  # <-
'''),
    'induction on what is not there': ('one of x', '''
@law(induct='y')
def l(x: Nat): return x == x  # <-
'''),
    'induction on a truth value': ('a datatype or an int', '''
@law(induct='x')
def l(x: bool): return x == x  # <-
'''),
    'gen of what is not there': ('other parameters', '''
@law(induct='x', gen=['q'])
def l(x: Nat): return x == x  # <-
'''),
    'citing what is no law': ('laws', '''
@law(cite=[add])
def l(x: Nat): return x == x  # <-
'''),
    'inlining a recursion': ('without recursion', '''
@law(inline=[add])
def l(x: Nat): return add(x, x) == add(x, x)  # <-
'''),
    'an axiom about what is defined': ('make it a law', '''
@axiom
def l(x: Nat): return add(x, x) == x  # <-
'''),
    'a name for a pattern that has one': ('one name for a pattern', '''
@pure
def f(x: Nat) -> int:
    match x:
        case (S(_) as k) as j: return 1  # <-
        case _: return 0
'''),
    'a name for a name, further inside': ('one name for a pattern', '''
@pure
def f(x: Nat, y: Nat) -> Nat:
    match x, y:
        case S((m) as k), _: return x  # <-
        case _: return y
'''),
    'two names around alternatives': ('not understood', '''
@pure
def f(x: Nat) -> int:
    match x:
        case ((Z() | S(Z())) as k) as j: return 1  # <-
        case _: return 0
'''),
    'a generator that yields nothing': ('yield', '''
@pure
def f(x: int) -> int:
    return x
    yield  # <-
'''),
    'a generator in a row that is never reached': ('yield', '''
@pure
def f(x: Nat) -> Nat:
    match x:
        case Z(): return x
        case S(m): return m
        case S(Z()): yield  # <-
'''),
    'a global after the end': ('global NUMBER', '''
NUMBER = 1
@pure
def f(x: int) -> int:
    if x < 1000:
        return 0
        global NUMBER  # <-
    NUMBER = x
    return NUMBER
'''),
    'a law that yields': ('yield', '''
@law
def l(x: int):
    return x == x
    yield x  # <-
'''),
    'a model that remembers': ('nonlocal', '''
def make():
    n = 0
    @abstract
    def f(x: int) -> int:
        nonlocal n  # <-
        n += 1
        return n
make()
'''),
    'induction on what the hypothesis is about for all values': ('other parameters', '''
def l(x: Nat, n: int): return n < 1000  # <-
Law(l, induct='x', gen=('x',))
'''),
    'gen as a word': ('other parameters', '''
def l(x: Nat, n: int): return n < 1000  # <-
Law(l, induct='x', gen='xn')
'''),
    'induction without a case': ('a datatype or an int', '''
def l(b: bool, n: int): return n < 1000  # <-
Law(l, induct='b')
'''),
    'an axiom that only assumes something abstract': ('make it a law', '''
@abstract
def tick(x: int) -> int: return x
@pure
def f(x: int) -> int: return 0 if x < 1000 else 1
@axiom
def ax(x: int):  # <-
    assert tick(0) == tick(0)
    return f(x) == 0
'''),
    'a constructor whose name is no name': ('a name of its own', '''
@datatype
class P:
    class Z: pass
    locals()['S'] = type('S\\n(assert false)\\n;', (), {'__module__': __name__, '__annotations__': {'pred': Self}})
'''),
    'a field whose name is no name': ('a name of its own', '''
@datatype
class P:
    locals()['S'] = type('S', (), {'__module__': __name__, '__annotations__': {'x y': int}})
'''),
    'a datatype with its own equality': ('its own equality', '''
@datatype
class P:
    class C: x: int
    def __eq__(self, other): return True
'''),
    'a property in the place of a field': ('a name of its own', '''
@datatype
class P:
    class C: x: int
    @property
    def x(self): return 7
'''),
    'a datatype of which nothing can be made': ('no value can ever be made', '''
@datatype
class P:
    class C: rest: Self
'''),
    'a datatype inside a list in its own field': ('not a type that the logic knows', '''
@datatype
class P:
    class L: pass
    class C: rest: List[Self]
'''),
    'a datatype without constructors': ('a class for each constructor', '''
@datatype
class P: pass
'''),
    'a datatype with a float': ('floats round', '''
@datatype
class P:
    class C: x: float
'''),
    'a constructor that inherits': ('not a constructor', '''
class Base: pass
@datatype
class P:
    class C(Base): x: int
'''),
    'an array indexed by truth values': ('indexed by int', '''
@pure
def f(x: Array[bool, int]) -> int: return 1
'''),
    'an abstract class without samples': ('no samples', '''
@abstract
class R: samples = ()
'''),
}


@pytest.mark.parametrize('name', SNIPPETS)
def test_refused(name, tmp_path):
    words, code = SNIPPETS[name]
    message = refused(tmp_path, code)
    assert words in message
    if any(kind in message for kind in ('case is missing', 'may not end', 'not pure', 'nothing of that name', 'wrong sort', 'float', 'may be zero')): assert '\nhint: ' in message


def test_accepted(tmp_path):
    "The neighbours of what is refused go through."
    m, _ = module(tmp_path, '''
BASE = 256
@pure
def safe(x: int, y: int) -> int: return x // y if y > 0 and x % y == 1 else BASE
@pure
def always(x: int) -> int: return x // (x*x + 1)
@pure
def lexicographic(x: Nat, y: Nat) -> Nat:
    match x, y:
        case Z(), _: return y
        case S(m), Z(): return lexicographic(m, S(m))
        case S(m), S(k): return lexicographic(m, lexicographic(x, k))
@pure
def either(x: Nat) -> bool:
    match x:
        case Z() | S(Z()): return True
        case S(S(m)) as whole: return whole == x
@pure(measure='hi - lo')
def between(lo: int, hi: int) -> int: return 0 if lo >= hi else between(lo + 1, hi) + 1
@pure
def nothing() -> List[Nat]: return Nil()
''')
    assert m.safe(7, 3) == 2 and m.safe(7, 0) == 256 and m.always(-5) == -1 and m.between(3, 10) == 7 and m.nothing() == m.Nil()


def test_the_file_was_edited_after_it_was_imported(tmp_path):
    m, path = module(tmp_path, '\ndef f(x: int) -> int: return x + 1\n')
    path.write_text(path.read_text().replace('x + 1', 'x + 2'))
    import linecache
    linecache.checkcache()
    with pytest.raises(LawError, match='not the code that runs'): m.pure(m.f)
    path.write_text(PRELUDE + '\ndef f(x: int) -> int:\n    return x + 2\n    def f(x: int) -> int: return x + 1\n')   # the code is there, but not as this f
    linecache.checkcache()
    with pytest.raises(LawError, match='not the code that runs'): m.pure(m.f)


# --- what was proved of a function is not believed of what it has become

STALE = '''
K = 1
@pure
def f(x: int) -> int: return x + K
@law
def l(x: int): return f(x) == x + 1
@law(cite=[l])
def again(x: int): return f(f(x)) == x + 2
'''

def test_a_function_that_is_edited_in_place_makes_the_law_stale(tmp_path):
    "IPython's autoreload gives the old function the code and the attributes of the new one."
    m, _ = module(tmp_path, STALE)
    assert prove(m.again).verdict == 'confirmed'
    new, _ = module(tmp_path, STALE.replace('x + K', 'x + 222'))
    m.f.__code__ = new.f.__code__
    m.f.__dict__.clear(); m.f.__dict__.update(new.f.__dict__)
    assert m.l(0) is False
    assert prove(m.l).verdict == prove(m.again).verdict == 'stale'


def test_a_function_is_read_once(tmp_path):
    "Read again, its equations would be others than those that a law was proved from; or go round in a circle."
    m, _ = module(tmp_path, STALE)
    assert prove(m.l).verdict == 'confirmed'
    m.K = 2
    for again in (m.pure, m.abstract):
        with pytest.raises(LawError, match='read before'): again(m.f)
    assert prove(m.l).verdict == 'stale'
    with pytest.raises(LawError, match='read before'): module(tmp_path, '''
@abstract
def a(n: int) -> int: return 0 if n < 1000 else b(n)
@pure
def b(n: int) -> int: return a(n) + 1
pure(a)
''')


def test_other_equations_make_the_law_stale(tmp_path):
    "Even where they are put into the place of the old ones by hand."
    m, _ = module(tmp_path, STALE)
    assert prove(m.l).verdict == 'confirmed'
    m.K = 2
    del m.f.__reflected__
    m.pure(m.f)
    assert prove(m.l).verdict == 'stale'


def test_options_are_checked_however_a_law_is_made(tmp_path):
    m, _ = module(tmp_path, '''
def zero(xs: List[Nat], n: Nat): return add(n, Z()) == n
l = Law(zero, induct='n', gen='xs', cite=[])
''')
    assert m.l.gen == ('xs',) and m.l.cite == () and prove(m.l).verdict == 'confirmed'


def test_a_proof_without_a_case_is_none(tmp_path, monkeypatch):
    from bendml.laws import induct
    m, _ = module(tmp_path, '@law\ndef l(x: Nat): return add(Z(), x) == x\n')
    monkeypatch.setattr(induct, 'steps', lambda law: [])
    with pytest.raises(LawError, match='at least one case'): prove(m.l)


def test_a_hypothesis_is_not_about_all_values_of_what_it_is_for(tmp_path):
    from bendml.laws.induct import formula
    m, _ = module(tmp_path, '@law\ndef l(x: Nat): return add(Z(), x) == x\n')
    x, = m.l.params
    with pytest.raises(ValueError, match='for all values'): formula(m.l, (x,), {'x': x})


def test_unequal_is_not_equal_whatever_is_done_to_the_class(tmp_path):
    m, _ = module(tmp_path, '''
@datatype
class P:
    class L: pass
    class R: pass
''')
    m.P.__ne__ = lambda a, b: False
    assert m.P.L() != m.P.R() and not m.P.L() != m.P.L()


HINT = '''
@pure
def third(n: int, d: int) -> int: return n // d if d > 0 else 0
@law
def reflexive(n: int): return n == n
@law(cite=[reflexive.at(n='third(n, 3)')])
def in_a_citation(n: int): return n + 0 == n
@law(split=['Cons(third(n, 3), Nil())'])
def in_a_split(n: int): return n + 0 == n
@law(induct='third(n, 3)', strong=True)
def in_a_measure(n: int): return n + 0 == n
@law(trigger='third(n, 3)')
def triggered(n: int): return n + 0 == n
@law(cite=[triggered])
def cites_triggered(n: int): return n + 0 == n
'''

@pytest.mark.parametrize('name', ['in_a_citation', 'in_a_split', 'in_a_measure'])
def test_what_only_a_hint_names_is_checked_as_well(tmp_path, name):
    m, _ = module(tmp_path, HINT)
    t = prove(vars(m)[name])
    assert t.verdict == 'confirmed' and any('a divisor that is never zero' in o.label for o in t.obligations)
    m.third = m.Nil
    assert prove(vars(m)[name]).verdict == 'stale'


@pytest.mark.parametrize('name', ['in_a_citation', 'in_a_split', 'in_a_measure', 'cites_triggered'])
def test_a_hint_that_names_what_is_stale_proves_nothing(tmp_path, name):
    m, _ = module(tmp_path, HINT)
    m.third.__code__ = (lambda n, d: 7).__code__
    assert not prove(vars(m)[name]).holds


def test_a_comment_is_one_line():
    from bendml.laws.terms import FALSE, TRUE, script
    text = script([('why\n(assert false)\r(assert false)', TRUE)], FALSE, 'what\n(assert false)')
    assert [line for line in text.splitlines() if line.startswith('(assert')] == ['(assert true)', '(assert (not false))']
