"""Run-length encoding, and a proof that nothing is lost.

    bendml laws examples/run_length.py
"""
from bendml.laws import Cons, List, Nil, datatype, law, pure
from bendml.lists import append, append_assoc
from bendml.nat import Nat, S, Z


@datatype
class Run:
    "A value, and how often it comes."
    class Of:
        value: int
        times: Nat

Of = Run.Of


@pure
def repeat(x: int, n: Nat) -> List[int]:
    "x, n times."
    match n:
        case Z(): return Nil()
        case S(m): return Cons(x, repeat(x, m))


@pure
def decode(runs: List[Run]) -> List[int]:
    "The values that some runs stand for."
    match runs:
        case Nil(): return Nil()
        case Cons(Of(x, n), rest): return append(repeat(x, n), decode(rest))


@pure
def push(x: int, runs: List[Run]) -> List[Run]:
    "One more value in front."
    match runs:
        case Cons(Of(y, n), rest):
            if x == y: return Cons(Of(y, S(n)), rest)
            return Cons(Of(x, S(Z())), runs)
        case Nil(): return Cons(Of(x, S(Z())), Nil())


@pure
def encode(xs: List[int]) -> List[Run]:
    "The runs of a list."
    match xs:
        case Nil(): return Nil()
        case Cons(x, rest): return push(x, encode(rest))


@law(induct='runs')
def decode_push(x: int, runs: List[Run]):
    "Pushing a value puts it in front."
    return decode(push(x, runs)) == Cons(x, decode(runs))


@law(induct='xs', cite=[decode_push])
def decode_encode(xs: List[int]):
    "Nothing is lost."
    return decode(encode(xs)) == xs


@law(induct='xs', cite=[append_assoc])
def decode_append(xs: List[Run], ys: List[Run]):
    "Runs can be decoded in pieces."
    return decode(append(xs, ys)) == append(decode(xs), decode(ys))
