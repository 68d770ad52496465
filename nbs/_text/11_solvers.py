# %%
#| default_exp laws.solvers

# %% [markdown]
# # Two solvers
# > The same text for z3 and for cvc5; an answer, or a reason why there is none.

# %% [markdown]
# z3 and cvc5 were written by different people on different plans. When both say `unsat` to the same text, a bug would
# have to sit in both. Each runs in a process of its own: one that crashes or hangs is ended and started anew, and
# the answer is `unknown` with the reason, never a proof.

# %%
#| hide
#| export
import atexit, json, os, select, subprocess, sys, threading, time
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import count


# %% [markdown]
# ## An answer
#
# Effort is bounded by each solver's own count of steps (`rlimit`), which is the same on every machine, so a proof that
# goes through today goes through tomorrow. A wall clock stands behind it, for what the count does not see; the reason
# tells the two apart.

# %%
#| export
@dataclass(frozen=True)
class Answer:
    "What a solver said to one text."
    solver: str                  # 'z3' or 'cvc5'
    result: str                  # 'unsat', 'sat' or 'unknown'
    seconds: float               # in the solver, from text to answer
    reason: str = ''             # why unknown: 'resource', 'wall', 'crash', 'incomplete', or the solver's words
    steps: int = 0               # the solver's own count of steps
    model: dict = field(default_factory=dict, hash=False)  # constant -> value, as texts; if asked for and `sat`
    core: tuple = ()             # assertions that are enough for `unsat`, by name; if the text names them (z3)


# %%
#| export
SOLVERS = ('z3', 'cvc5')
LIMIT = {'z3': 500_000, 'cvc5': 50_000_000}   # steps for one text
WALL = 10.0                                    # seconds for one text
GRACE = 10.0                                   # seconds more, before a solver that does not stop is ended


# %% [markdown]
# ## Asking z3
#
# Each text gets a fresh context, and the plain solver without tactics. Quantifiers are instantiated through triggers only
# (`mbqi` off): then a false goal ends as `unknown` in milliseconds instead of a search for a model.

# %%
#| export
def _z3(text: str, steps: int, wall: float, seed: int, model: bool) -> Answer:
    "One text for z3, in this process."
    import z3
    context = z3.Context()
    solver = z3.SimpleSolver(ctx=context)
    solver.set(auto_config=False, mbqi=False, random_seed=seed, rlimit=steps, timeout=int(wall*1000))
    start = time.perf_counter()
    solver.from_string(text)
    result = str(solver.check())
    seconds = time.perf_counter() - start
    used = next((v for k, v in solver.statistics() if k == 'rlimit count'), 0)
    why = solver.reason_unknown() if result == 'unknown' else ''
    if result == 'unknown' and ('resource' in why or used >= steps): why = 'resource'
    elif why in ('timeout', 'canceled'): why = 'wall' if seconds >= wall else 'resource'
    elif 'incomplete' in why: why = 'incomplete'
    found = solver.model() if model and result == 'sat' else ()
    core = tuple(map(str, solver.unsat_core())) if result == 'unsat' else ()
    return Answer('z3', result, seconds, why, used, {d.name(): found[d].sexpr() for d in found if d.arity() == 0}, core)


# %% [markdown]
# ## Asking cvc5
#
# One option: `var-elim-quant` off. With it on, cvc5 rewrites a variable of an induction hypothesis away, and the trigger
# that we gave no longer matches anything.

# %%
#| export
def _cvc5(text: str, steps: int, wall: float, seed: int, model: bool) -> Answer:
    "One text for cvc5, in this process."
    import cvc5
    terms = cvc5.TermManager()
    solver = cvc5.Solver(terms)
    for option, value in {'var-elim-quant': 'false', 'rlimit-per': steps, 'tlimit-per': int(wall*1000), 'seed': seed,
                          'produce-models': str(model).lower()}.items(): solver.setOption(option, str(value))
    start = time.perf_counter()
    parser = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, text, 'obligation')
    result, symbols = None, parser.getSymbolManager()
    while not (command := parser.nextCommand()).isNull():
        said = str(command.invoke(solver, symbols)).strip()
        if said in ('sat', 'unsat') or said.startswith('unknown'): result = said
        elif said and said != 'success': raise ValueError(said)
    seconds = time.perf_counter() - start
    why = {'RESOURCEOUT': 'resource', 'TIMEOUT': 'wall', 'INCOMPLETE': 'incomplete'}
    reason = ''
    if result not in ('sat', 'unsat'):
        said = str(solver.getInfo('reason-unknown')) if result else 'no answer'
        reason = next((v for k, v in why.items() if k in said.upper()), said)
    found = {str(t): str(solver.getValue(t)) for t in symbols.getDeclaredTerms()} if model and result == 'sat' else {}
    return Answer('cvc5', result if result in ('sat', 'unsat') else 'unknown', seconds, reason, 0, found)


# %% [markdown]
# ## Each in its own process
#
# The process reads one question a line and writes one answer a line. A question has a number, and its answer repeats it:
# had a question been interrupted, its late answer must not be taken for the answer to the next one.

# %%
#| export
def serve(solver: str) -> None:
    "Answer questions from standard input until it closes."
    ask = {'z3': _z3, 'cvc5': _cvc5}[solver]
    out = os.fdopen(os.dup(1), 'w')
    os.dup2(2, 1)                     # what a solver prints is no answer
    for line in sys.stdin:
        number, question = json.loads(line)
        try: answer = ask(**question)
        except Exception as e: answer = Answer(solver, 'unknown', 0.0, ' '.join(str(e).split())[:300] or type(e).__name__)
        print(json.dumps([number, vars(answer)]), file=out, flush=True)


# %%
#| export
_NUMBER, _LOCKS = count(), {s: threading.Lock() for s in SOLVERS}
_WORKERS: dict[tuple, '_Worker'] = {}   # (solver, the process that asks) -> its process


# %%
#| export
class _Worker:
    "A solver's process."
    def __init__(self, solver: str):
        self.solver = solver
        code = f'from bendml.laws.solvers import serve; serve({solver!r})'
        env = os.environ | {'PYTHONPATH': os.pathsep.join(p for p in sys.path if p)}
        self.process = subprocess.Popen([sys.executable, '-W', 'ignore', '-c', code], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True, env=env)

    def send(self, question: dict) -> None:
        self.number = next(_NUMBER)
        try: print(json.dumps([self.number, question]), file=self.process.stdin, flush=True)
        except BrokenPipeError: pass   # it died; `receive` will see it

    def receive(self, wall: float) -> Answer:
        "Its answer; `unknown` if it dies, stays silent past the wall clock, or answers something else."
        ready, _, _ = select.select([self.process.stdout], [], [], wall)
        line = self.process.stdout.readline() if ready else ''
        number, answer = json.loads(line) if line else (None, None)
        if number == self.number: return Answer(**answer)
        self.stop()
        return Answer(self.solver, 'unknown', 0.0 if ready else wall, 'crash' if ready else 'wall')

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        _WORKERS.pop((self.solver, os.getpid()), None)


# %%
#| export
@atexit.register
def _stop_all() -> None:
    for (_, pid), worker in list(_WORKERS.items()):
        if pid == os.getpid(): worker.stop()


# %% [markdown]
# Asking several solvers sends the text to all of them first, so they work at the same time. Two threads may ask two solvers.

# %%
#| export
def discharge(
    text: str,                              # SMT-LIB, ending in (check-sat)
    solvers: tuple[str, ...] = SOLVERS,     # who is asked
    limit: dict | None = None,              # steps for each solver; None: `LIMIT`
    wall: float = WALL,                     # seconds for each
    seed: int = 0,
    model: bool = False,                    # also the values of the constants, if `sat`
) -> tuple[Answer, ...]:                    # one for each solver
    "Ask solvers whether a text is satisfiable."
    with ExitStack() as locks:
        asked = []
        for solver in sorted(solvers): locks.enter_context(_LOCKS[solver])
        for solver in solvers:
            key = solver, os.getpid()
            if key not in _WORKERS: _WORKERS[key] = _Worker(solver)
            asked.append(_WORKERS[key])
            asked[-1].send(dict(text=text, steps=(limit or LIMIT)[solver], wall=wall, seed=seed, model=model))
        return tuple(worker.receive(wall + GRACE) for worker in asked)


# %% [markdown]
# Is there a number that is twice itself plus one, and positive?

# %%
text = '(set-logic ALL)\n(declare-const ?x Int)\n(assert (> ?x 0))\n(assert (= ?x (+ ?x ?x 1)))\n(check-sat)\n'
[(a.solver, a.result) for a in discharge(text)]

# %% [markdown]
# And one whose square is 49, and negative? A model tells which.

# %%
text = '(set-logic ALL)\n(declare-const ?x Int)\n(assert (< ?x 0))\n(assert (= (* ?x ?x) 49))\n(check-sat)\n'
[(a.solver, a.result, a.model) for a in discharge(text, model=True)]

# %% [markdown]
# What no solver can read is no proof either.

# %%
[(a.solver, a.result, a.reason) for a in discharge('(assert nonsense)\n(check-sat)\n')]

# %% [markdown]
# ## What this does not show
#
# That a solver is right when it says `unsat`. We ask two, and a person can ask a third: the texts can be written out with
# `bendml laws --smt DIR`.
