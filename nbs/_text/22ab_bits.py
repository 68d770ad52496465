# %%
#| default_exp shape.bits

# %% [markdown]
# # The next power of two
# > `1 << (n - 1).bit_length()` is not known, but it is at least n.

# %% [markdown]
# A Fourier transform is quick for a power of two, so arrays are padded to the next one. It is a fresh size $p$. For a
# whole number $v \ge 0$ of $b$ bits
#
# $$v + 1 \;\le\; 2^b \;\le\; 2v + 1$$
#
# where both are equal at $v = 0$; the first holds for negative ones too, of which Python counts the bits without the sign.

# %%
#| hide
#| export
from bendml.shape.sizes import Dim
from bendml.shape.facts import assume, claim
from bendml.shape.trace import current, holds
from bendml.shape.symbols import OPS, Op, Size, size_value
from bendml.shape.ranges import unknown


# %% [markdown]
# What is asked twice is answered alike.

# %%
#| export
def bit_length(v: Dim) -> Size:
    "How many bits a size has: a fresh number."
    seen = current().state.setdefault('bits', {})
    if v not in seen: seen[v] = unknown('b', 0, 'a number of bits, {it} ({at})').size
    return size_value(seen[v])

def power_of_two(b: Dim) -> Size:
    "2 to the power `b`, as a fresh size that is at least 1; for a number of bits, between those bounds."
    trace = current()
    seen = trace.state.setdefault('powers', {})
    if b not in seen:
        p = seen[b] = unknown('p', 1, 'a power of two, {it} ({at})').size
        for v in (v for v, bits in trace.state.get('bits', {}).items() if bits == b):
            trace.facts = assume(trace.facts, claim(p, '>=', v + 1))
            if holds(claim(v, '>=', 0)).holds: trace.facts = assume(trace.facts, claim(p, '<=', 2*v + 1))
    return size_value(seen[b])


# %%
#| export
OPS |= {'bit_length': Op('bit_length', bit_length), 'power of two': Op('power of two', power_of_two)}  # for a size's operators

# %%
from bendml.shape.trace import Trace, tracing
with tracing(Trace()):
    n = Size(Dim('n'))
    p = 1 << (n - 1).bit_length()
    print(p >= n, p < 2*n, 2**(n - 1).bit_length() == p)

# %% [markdown]
# The bounds, for the first numbers:

# %%
assert all(v + 1 <= 1 << abs(v).bit_length() for v in range(-300, 300))
assert all(1 << v.bit_length() <= 2*v + 1 for v in range(300))

# %% [markdown]
# ## What this does not show
#
# That `p` is a power of two is not known: `p//2` times 2 is not `p` to the check. Python stops at a shift by a negative number.
