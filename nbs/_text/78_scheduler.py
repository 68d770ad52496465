# %%
#| default_exp serve.scheduler

# %% [markdown]
# # Many at once
# > One model, many who ask: texts wait in a row, a few are written side by side, and whoever leaves frees the place.

# %% [markdown]
# One thread does all the writing. It takes a few texts and gives each of them a token, [all at once](75g_batch.ipynb); everyone sees
# progress, and a long text holds nobody up. The others wait in a row, and when the row is full, the next one is refused at once. That
# is kinder than a promise that cannot be kept.

# %%
#| hide
#| export
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from bendml.generate import Room, Text, scores_of
from bendml.threads import set_threads


# %%
#| export
@dataclass(eq=False)
class Job:
    "A text to write, and whom to tell."
    text: Text
    tell: Callable[[str | None], None]   # called with each piece, and with None at the end, by the writing thread
    error: Exception | None = None       # why it ended, if not by itself
    cancelled: bool = False

class Busy(RuntimeError):
    "There is no place left to wait."


# %% [markdown]
# ## The row
#
# Who waits, and whose text is being written. The lock is held only to look at the row, never while something is written; so asking for a
# place, and leaving, are quick.

# %%
#| export
class Row:
    "Texts that wait, and those that are written side by side."
    def __init__(
        self,
        parallel: int = 4,    # texts that are written at the same time; each needs a cache of its own
        waiting: int = 256,   # texts that may wait
    ):
        if parallel < 1 or waiting < 0: raise ValueError(f'scheduler\n- expected : at least 1 in parallel, 0 waiting\n- observed : {parallel}, {waiting}')
        self.parallel, self.limit = parallel, parallel + waiting
        self.row: deque[Job] = deque()
        self.active: list[Job] = []
        self.room = Room(parallel)
        self.closed, self.changed = False, threading.Condition()

    def __repr__(self): return f'{type(self).__name__}({len(self.active)} being written, {len(self.row)} waiting, at most {self.limit})'

    def add(self, jobs: list[Job]) -> None:
        "Put texts into the row, all or none; `Busy` if there is no room for them."
        with self.changed:
            if self.closed: raise Busy('the scheduler is closed')
            if (there := len(self.row) + len(self.active)) + len(jobs) > self.limit:
                raise Busy(f'too many texts\n- expected : at most {self.limit} at a time\n- observed : {there}, and {len(jobs)} more')
            self.row.extend(jobs)
            self.changed.notify()

    def cancel(self, jobs: list[Job]) -> None:
        "Nobody wants these any more. They end before their next token."
        with self.changed:
            for job in jobs: job.cancelled = True
            self.row = deque(job for job in self.row if not job.cancelled)

    def next(self) -> list[Job]:
        "The texts whose turn it is, as soon as there are any; none when all is over."
        with self.changed:
            while True:
                for job in [job for job in self.active if job.cancelled]: self.leave(job)
                if self.closed: return []
                while self.row and len(self.active) < self.parallel:
                    self.active.append(self.row.popleft())
                    self.room.enter(self.active[-1].text)
                if self.active: return list(self.active)
                self.changed.wait()

    def leave(self, job: Job) -> None:
        "Its place is free, if it still has one."
        with self.changed:
            if job not in self.active: return
            self.active.remove(job)
            self.room.leave(job.text)


# %% [markdown]
# ## The thread that writes

# %%
#| export
class Scheduler(Row):
    "Texts that are written side by side by one thread."
    def __init__(
        self,
        parallel: int = 4,            # texts that are written at the same time
        waiting: int = 256,           # texts that may wait
        threads: int | None = None,   # of the loops; None: one a core
    ):
        super().__init__(parallel, waiting)
        self.threads = threads
        self.thread = threading.Thread(target=self._run, name='bendml-scheduler', daemon=True)
        self.thread.start()

    def close(self) -> None:
        "Write no further, and tell everyone."
        with self.changed:
            self.closed = True
            self.changed.notify()
        self.thread.join()

    def _run(self) -> None:
        if self.threads: set_threads(self.threads)
        while jobs := self.next():
            of = {job.text: job for job in jobs}
            try:
                for text, scores in scores_of(list(of)): self._turn(of[text], scores)
            except Exception as e:   # nothing that one text did
                for job in list(self.active): self._end(job, e)
        for job in [*self.active, *self.row]: self._end(job, RuntimeError('the server is being closed'))

    def _turn(self, job: Job, scores) -> None:
        "One token of a text."
        if job.cancelled: return
        try:
            if piece := job.text.take(scores): job.tell(piece)
            if job.text.reason: self._end(job)
        except Exception as e: self._end(job, e)   # one text's trouble is not the others'

    def _end(self, job: Job, error: Exception | None = None) -> None:
        job.error = error
        self.leave(job)
        job.tell(None)


# %% [markdown]
# Three texts, of which two are written at a time. The pieces alternate, and the third text begins when one has ended:

# %%
from bendml.generate import generate, load_model
smol, log, ended = load_model('smollm2', context=512), [], threading.Semaphore(0)
def job(name, prompt, new):
    def tell(piece):
        log.append((name, piece))
        if piece is None: ended.release()
    return Job(generate(smol, prompt, new), tell)

scheduler = Scheduler(parallel=2, waiting=1)
jobs = [job('A', 'One, two,', 4), job('B', 'Monday, Tuesday,', 8), job('C', 'The end', 2)]
scheduler.add(jobs)
for _ in jobs: ended.acquire()
print(*(f'{name}:{piece}' for name, piece in log), sep=' | ')
order = ''.join(name for name, _ in log)
assert order.index('C') > order.index('A') and 'BAB' in order

# %% [markdown]
# Each is what it would be alone, although they were written side by side:

# %%
from bendml.generate import complete
assert [j.text.text for j in jobs] == [complete(smol, p, n).text for p, n in (('One, two,', 4), ('Monday, Tuesday,', 8), ('The end', 2))]

# %% [markdown]
# There is room for three, so a fourth is refused. And who leaves, frees a place:

# %%
more = [job(name, 'On and on', 200) for name in 'ABC']
scheduler.add(more)
try: scheduler.add([job('D', 'Hello', 1)])
except Busy as e: print(e)
scheduler.cancel(more)
ended = threading.Semaphore(0)
scheduler.add([job('D', 'Hello', 1)])
assert ended.acquire(timeout=60)
scheduler.close()
scheduler

# %% [markdown]
# ## What this does not show
#
# Prompts are read one after the other, and while one is read, all wait.
