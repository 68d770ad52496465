# %%
#| default_exp tokenizer.counting

# %% [markdown]
# # Counting words
# > What training learns from: every distinct word of a text once, and how often it occurs.

# %% [markdown]
# Words repeat: of two hundred thousand in a megabyte of code, ten thousand are different. Training looks at each of those once, and
# multiplies. So they are counted first, and kept in the order in which they appear, since that order decides ties.

# %%
#| hide
#| export
import numpy as np
from numba import njit

from bendml.tokenizer.chars import PAD, class_table, padded
from bendml.tokenizer.split import BLOCK, GPT2, split_words
from bendml.tokenizer.words import SIZE, VALUE, add, find, grow, has_room, words


# %% [markdown]
# The compiled loop goes through a text until the table of words is full, and says what it lacks. Then the table is moved to a
# larger one, and the loop goes on.

# %%
#| export
@njit(nogil=True, cache=True)
def count_words(text, i, n, bound, pattern, classes, table, counts, kinds, ends):
    "Count the words of `text[i:n]` that end by `bound`: where it stopped, and the room that it lacked."
    slots, pool, word_ends, fill = table
    while True:
        batch = split_words(text, i, n, bound, pattern, classes, kinds, ends)
        if batch == 0: return i, 0
        for k in range(batch):
            size = ends[k] - i
            slot = find(slots, pool, text, i, size)
            if slots[slot, SIZE] == 0:
                if not has_room(pool, word_ends, fill, size): return i, size
                add(slots, pool, word_ends, fill, slot, text, i, size, np.uint64(fill[0]))
            counts[np.int64(slots[slot, VALUE])] += 1
            i = ends[k]


# %%
#| export
class WordCounter:
    "The distinct words of many texts, in the order in which they first appear, and how often each occurs."
    def __init__(self, pattern: int = GPT2, classes: np.ndarray | None = None):
        self.pattern, self.classes = pattern, class_table(False) if classes is None else classes
        self.table, self.counts = words(1 << 14, 1 << 17), np.zeros(1 << 14, np.int64)
        self._scratch = np.empty(2*(BLOCK + PAD), np.uint8), np.empty(BLOCK + PAD, np.int64)

    def add(self, text: bytes, bound: int | None = None) -> int:
        "Count the words of a text that end at `bound` or before; where the last of them ends."
        n, data, i, missing = len(text), padded(text), 0, 1
        while missing:
            i, missing = count_words(data, i, n, n if bound is None else bound, self.pattern,
                                     self.classes, self.table, self.counts, *self._scratch)
            if missing:
                self.table = grow(self.table, missing)
                more = len(self.table.slots) - len(self.counts)
                self.counts = np.concatenate([self.counts, np.zeros(more, np.int64)])
        return i

    def result(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        "The words' bytes one behind another, where each ends, and how often each occurs."
        count, size = self.table.fill
        return self.table.pool[:size], self.table.ends[:count], self.counts[:count]


# %%
counter = WordCounter()
counter.add(b'the cat and the dog and the cow')
text, ends, counts = counter.result()
[bytes(w) for w in np.split(text, ends[:-1])], counts.tolist()

# %% [markdown]
# A word that the table has no room for is not lost: here with a thousand words that grow longer and longer.

# %%
counter = WordCounter()
counter.add(b' '.join(b'a'*k for k in range(1, 1001)))
text, ends, counts = counter.result()
len(ends), len(text), set(counts.tolist())

# %% [markdown]
# ## What this does not show
#
# Memory for words alone is not bounded: a text of which no word occurs twice is kept whole.
