# %%
#| default_exp shape.carried

# %% [markdown]
# # What a loop carries
# > Which variables a turn inherits from the one before, and which it only counts: read off the source.

# %%
#| hide
#| export
import ast


# %% [markdown]
# ## Inherited
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


# %%
#| export
def _always_set(body: list[ast.stmt]) -> set[str]:
    "Variables that every turn sets, whichever way it goes."
    found = set()
    for s in body:
        match s:
            case ast.Assign(targets, _): found |= {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
            case ast.If(_, inner, other): found |= _always_set(inner) & _always_set(other)
        if any(isinstance(n, ast.Break | ast.Continue) for n in ast.walk(s)): break  # what follows may be left out
    return found


# %% [markdown]
# ## Counted
#
# A variable that a turn computes from itself by arithmetic [counts](22k_counters.ipynb).

# %%
#| export
def counted_names(body: list[ast.stmt]) -> set[str]:
    "Variables that a loop counts up or down: `n += 1`, `n = n + 1`."
    found = set()
    for n in (n for s in body for n in ast.walk(s)):
        match n:
            case ast.AugAssign(ast.Name(name)): found.add(name)
            case ast.Assign([ast.Name(name)], ast.BinOp() as value) if name in _loads(value): found.add(name)
    return found


# %%
loop, = ast.parse("""
for row in x:
    square = row*row
    total = total + square
    if row > 0: last = row
""").body
print('dead   :', dead_names(loop.target, loop.body))
print('counted:', counted_names(loop.body))

# %% [markdown]
# ## What this does not show
#
# A variable that is read in a function inside of the loop counts as read where that function stands.
