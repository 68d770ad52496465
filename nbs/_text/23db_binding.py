# %%
#| default_exp shape.binding

# %% [markdown]
# # Numbers for names
# > At a call, each name gets a number, so that all axes are what the signature says.

# %%
#| hide
#| export
from dataclasses import dataclass
from typing import Callable, Iterator

from bendml.shape.sizes import Dim, evaluate, named, names_of, substitute
from bendml.shape.facts import Claim


# %% [markdown]
# The function has been shown to be right for every choice of numbers for its names. So a call is right if there is one choice
# that makes each declared size what it is, and each condition true. A name that stands alone on some axis has its number from
# there. For the others one is looked for: in `Vec["k*k"]` with 9 entries `k` is 3, and `Vec["n*m"]` with 6 fits as `n` = 1,
# `m` = 6, if nothing else is said of them.

# %%
#| export
@dataclass(eq=False)
class Wanted:
    "What must be so: a size that is some number, or a condition."
    dim: Dim
    error: Callable
    value: int = 0
    claim: Claim | None = None
    def __str__(self): return str(self.claim) if self.claim else f'{self.dim} is {self.value}'

    def holds(self, sizes: dict[str, int]) -> bool:
        try: value = evaluate(self.dim, sizes)
        except ZeroDivisionError: return False
        if not self.claim: return value == self.value
        return value == 0 if self.claim.kind == '==' else value != 0 if self.claim.kind == '!=' else value >= 0


# %% [markdown]
# ## Numbers for one name

# %%
#| export
TRIES = 3000   # numbers that are tried for names


# %%
#| export
def on_a_line(size: Dim, name: str) -> bool:
    "Is a size some number times a name, plus another?"
    return all(p == 1 if a == name else isinstance(a, str) or name not in names_of(a.num) | names_of(a.den) for m, _ in size.terms for a, p in m)

def grows(size: Dim) -> bool:
    "Does a size of one name surely never fall when the name grows?"
    return all(c >= 0 and all(isinstance(a, str) or grows(a.num) and (a.den.const or 0) > 0 for a, _ in m) for m, c in size.terms)


# %%
#| export
def roots(size: Dim, name: str, sizes: dict[str, int], value: int, at: Callable[[int], int]) -> Iterator[int]:
    "Numbers for the only open name that make a size `value`: on a line, by halving where it grows, else by trying."
    if on_a_line(size, name):
        slope, rest = at(1) - at(0), value - at(0)
        if slope and not rest % slope: yield rest//slope
        if not slope and not rest: yield from range(TRIES)
    elif grows(substitute(size, sizes)):
        high = next((2**i for i in range(64) if at(2**i) >= value), 0)
        low = high//2
        while low < high: low, high = (low, middle) if at(middle := (low + high)//2) >= value else (middle + 1, high)
        while at(low) == value: yield low; low += 1
    else: yield from (n for n in range(TRIES) if at(n) == value)


# %%
from itertools import islice
k = Dim('k')
for size, value in (3*k + 1, 7), (k*(k + 1)//2, 3), (k//2, 3), (k % 3, 2):
    print(size, list(islice(roots(size, 'k', {}, value, lambda v: evaluate(size, {'k': v})), 3)))


# %% [markdown]
# ## The sizes of a call

# %%
#| export
class Binding:
    "The sizes of one call: what each name is, and where it was seen."
    def __init__(self, lower: dict[str, int | None], may_be_0: Callable[[str], bool]):
        self.sizes, self.seen, self.later, self.lower, self.may_be_0 = {}, {}, [], lower, may_be_0

    def axis(self, size: Dim, value: int, where: str, error: Callable) -> None:
        unknown = names_of(size) - self.sizes.keys()
        if unknown and size == named(next(iter(unknown))): self._set(str(size), value, where, error)
        elif unknown: self.later.append((Wanted(size, error, value), where))
        elif not (wanted := Wanted(size, error, value)).holds(self.sizes): error(self.wrong(wanted))

    def _set(self, name: str, value: int, where: str, error: Callable) -> None:
        if (low := self.too_low(name, value)): error(*low)
        self.sizes[name], self.seen[name] = value, where

    def too_low(self, name: str, value: int) -> tuple[str, str] | None:
        least = self.lower.get(name, 1)
        if least is None or value >= least: return None
        return f'{name} is {value}, and sizes are at least {least}', f'@typed(where="{name} >= 0") would allow it' if value == 0 and self.may_be_0(name) else ''

    def forget(self, name: str) -> None:
        "`Any` in one of several values is another size in each."
        if name.startswith('?'): self.sizes.pop(name, None)

    def wrong(self, wanted: Wanted) -> str:
        names = sorted(names_of(wanted.dim))
        if wanted.claim: return f'{wanted} does not hold: ' + ', '.join(f'{n} = {self.sizes[n]}' for n in names)
        if not names: return f'a size is {wanted.value}, not {wanted.dim}'
        try: own = evaluate(wanted.dim, self.sizes)
        except ZeroDivisionError: own = 'divided by 0'
        return f'{wanted.dim} is {own} ({", ".join(f"{n} from {self.seen[n]}" for n in names)}), and here it is {wanted.value}'

    def finish(self, claims: list[Claim], error: Callable) -> None:
        "Find numbers for the names that stand alone nowhere."
        wanted = {(w.dim, w.value): w for w, _ in self.later}
        fault = _Search(self).numbers([*wanted.values(), *(Wanted(c.dim, error, claim=c) for c in claims)])
        if fault: fault[0](*fault[1:])


# %% [markdown]
# ## The search
#
# What has one open name is solved for it, and each number that fits is tried in the rest. Where several are open, the first is tried from
# its least number on. What is wrong comes back as the arguments of an error, of which the first is raised if no number will do.

# %%
#| export
class _Search:
    "Numbers for the open names of a call."
    def __init__(self, binding: Binding):
        self.of, self.tries, self.wheres = binding, TRIES, {w.dim: where for w, where in binding.later}

    def open(self, w: Wanted) -> set[str]: return names_of(w.dim) - self.of.sizes.keys()

    def numbers(self, wanted: list[Wanted]) -> tuple | None:
        "Give each open name a number; if there is none, what is wrong."
        left = [w for w in wanted if self.open(w)]
        for w in wanted:
            if w not in left and not w.holds(self.of.sizes): return w.error, self.of.wrong(w)
        if not left: return None
        first = min(left, key=lambda w: (len(self.open(w)), w.claim is not None))
        name, *others = sorted(self.open(first))
        return self._try(first, name, left) if others or first.claim else self._solve(first, name, left)

    def _solve(self, first: Wanted, name: str, left: list[Wanted]) -> tuple | None:
        "One name is open in a size."
        def at(n: int) -> int:
            self.tries -= 1
            try: return evaluate(first.dim, self.of.sizes | {name: n})
            except ZeroDivisionError: return -1
        fault, self.of.seen[name] = None, self.wheres[first.dim]
        for n in roots(first.dim, name, self.of.sizes, first.value, at):
            if n < 0: continue
            if self.tries < 0: break
            found = (first.error, *low) if (low := self.of.too_low(name, n)) else self._with(name, n, left)
            if found is None: return None
            fault = fault or found
        return fault or (first.error, f'no {name} makes {first.dim} equal to {first.value}')

    def _try(self, first: Wanted, name: str, left: list[Wanted]) -> tuple | None:
        "Several names are open, or one in a condition only: a size of their own is not known."
        self.of.seen[name] = 'trying'
        least = max(self.of.lower.get(name, 1) or 0, 0)
        for n in range(least, least + TRIES):
            self.tries -= 1
            if self.tries < 0: break
            if self._with(name, n, left) is None: return None
        names = sorted(set().union(*map(self.open, left)))
        return first.error, f'no {", ".join(names)} found with which {" and ".join(map(str, left))}', f'add a parameter {name}: int, so that the call says which it is'

    def _with(self, name: str, n: int, left: list[Wanted]) -> tuple | None:
        self.of.sizes[name] = n
        if (fault := self.numbers(left)): del self.of.sizes[name]
        return fault


# %%
def complain(reason: str, hint: str = ''): print(reason, hint, sep='; ')

n, m = Dim('n'), Dim('m')
for product, total in (6, 5), (6, 8):
    binding = Binding({}, lambda name: False)
    binding.axis(n*m, product, 'x', complain)
    binding.axis(n + m, total, 'y', complain)
    binding.finish([], complain)
    print(binding.sizes)

# %% [markdown]
# ## What this does not show
#
# A few thousand numbers are tried for names that stand alone nowhere. A call for which none of them fits is refused, though a
# larger one might: a parameter for the size itself settles it.
