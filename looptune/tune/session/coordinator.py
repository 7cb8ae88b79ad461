"""The part of a sweep for one model of device: it asks, compiles ahead, measures one version per device, and tells.

    asked ─▶ waiting ──▶ admitted, in the order asked
               │           ├─ in the store ───────────────────────▶ settled
               │           ├─ refused, or an earlier one's source ▶ settled
               ▼           └─ compiling ▶ built ▶ measuring ──────▶ settled      a row is in the store before it runs
      judged, mapped and       ▲                     │
      emitted by the pool      └──── more to build ──┘

The pool answers in any order, but versions are admitted in the order asked: which of two versions with the same source
counts as the original does not depend on time, and the strategy's questions depend on how many devices measure only if
it asks for a batch, one version for each device.
A few compiled versions are held, whatever the size of the space; only 100 bytes for each configuration asked for grow
with it.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from looptune.runtime.outcome import Crashed, NotBuilt, Outcome, Timed, TimedOut
from looptune.tune.execution.lab import FIRST, NextStep, Order, PreparedVersion, Progress, SweepResult, VersionBuilder
from looptune.tune.execution.worker_loop import TaskError, TaskResult
from looptune.tune.incumbent import Incumbent
from looptune.tune.measure.pruning import CUT, WAITED_US, predicted_outcome
from looptune.tune.session.budget import FINISHING
from looptune.tune.session.requested_version import RequestedVersion, mark
from looptune.tune.session.statistics import SweepStatistics
from looptune.tune.store.store import Row, Store

if TYPE_CHECKING:
    from looptune.tune.execution.executor import TaskReply, Workers
    from looptune.tune.execution.worker import Reply
    from looptune.tune.session.budget import Budget
    from looptune.tune.space.space import Configuration
    from looptune.tune.strategies.base import Strategy

ASKED_AT_ONCE = 64
"""So many are asked for before the loop looks after its workers again."""
AHEAD = 4
"""Configurations for each compiling process that may be prepared and built before there is a device for them: while a
kernel's original loops still run, its versions compile."""
APART_AHEAD = 16
"""The same where nothing is measured while versions compile and no budget of time ends: the fewer rounds of compiling
and measuring there are, the less often all wait for the last version of a round."""
AHEAD_OF_BUILD = "ahead"
"""The key of tasks that only fill the cache of compiled kernels."""
FIRST_SHARE = 0.3
"""Of a budget of time: after it, a first version is measured even if others compile on the same cores."""
LONG_COMPILE_S = 6.0
"""A version that takes longer to compile may be the only thing that a short search has to show."""
PARKED_S = 0.25
"""How often a version that another sweep is running is looked up."""


class Coordinator:
    """The search of one kernel on one model of device.

    ``number`` is the number of its lab among those of the workers. Without ``cuts`` every version is measured whole;
    with them those are that the strategy does not propose, unless there are ``guesses``, which are measured before
    them.
    """

    def __init__(
        self,
        lab: VersionBuilder,
        number: int,
        strategy: Strategy,
        store: Store,
        budget: Budget,
        workers: Workers,
        progress: Callable[[Progress], None],
        name: str,
        *,
        overlap: bool,
        fresh: bool,
        cuts: bool,
        first: Sequence[Configuration],
        guesses: Sequence[Configuration] = (),
    ) -> None:
        self._lab, self._number, self._strategy, self._store, self._budget = lab, number, strategy, store, budget
        self._workers, self._progress, self._name = workers, progress, name
        strategy.batch = max(1, workers.devices(number))
        self._overlap, self._fresh, self._cuts = overlap, fresh, cuts
        self._first = deque((*guesses, *first))
        self._guesses = frozenset(c.text for c in guesses)
        self._later = {c.text for c in first} if guesses and cuts else frozenset()
        self._tally = SweepStatistics(strategy.space.versions, tuple(c.text for c in first), budget)
        self._exhausted = False
        self._opened: deque[RequestedVersion] = deque()
        self._waiting: deque[RequestedVersion] = deque()
        self._in_flight: dict[str, RequestedVersion] = {}
        self._built: deque[RequestedVersion] = deque()
        self._parked: list[RequestedVersion] = []
        self._look_at = 0.0
        self._measuring: dict[str, float] = {}
        self._best_predicted_us: float | None = None
        self._result: SweepResult | None = None
        # 60 bits of each key asked for: a tenth of what the texts would take.
        self._seen: set[int] = set()

    @property
    def left(self) -> int:
        """Return the number of configurations that are not done, at most."""
        return self._tally.total - self._tally.done

    def advance(self) -> bool:
        """Ask the strategy, and give compiled versions to free devices; return whether anything was asked."""
        asked = self._ask_some()
        self._measure_next()
        return asked

    def ended(self) -> bool:
        """Return whether nothing is left to do; then nothing more is received."""
        if self._result is None and self._finished():
            self._settle_unfinished()
            self._tell()
            self._result = self._tally.result(self._name, interrupted=False)
        return self._result is not None

    def receive(self, answer: TaskReply) -> None:
        if self._result is not None:
            return
        if answer.key is AHEAD_OF_BUILD:
            self._tally.compile_s += answer.reply.seconds if isinstance(answer.reply, TaskResult) else 0.0
        elif answer.measured:
            self._receive_measured(answer.key, answer.reply)
        elif answer.key.answer is None:
            self._receive_prepared(answer.key, answer.reply)
        else:
            self._receive_built(answer.key, answer.reply)

    def abandon(self) -> None:
        """Forget what is being measured: it is stopped on purpose and will be run again."""
        for key in self._measuring:
            self._store.abandon(key)

    def result(self, interrupted: bool) -> SweepResult:
        if self._result is not None and not interrupted:
            return self._result
        self._settle_unfinished()
        return self._tally.result(self._name, interrupted)

    def _ask_some(self) -> bool:
        asked = 0
        self._tell()
        while asked < ASKED_AT_ONCE and self._may_ask() and self._ask():
            asked += 1
            self.admit()
            self._tell()
        return asked > 0

    def _may_ask(self) -> bool:
        if self._exhausted or len(self._opened) >= self._strategy.window:
            return False
        held = sum(isinstance(o.answer, PreparedVersion) for o in self._waiting) + len(self._built) + len(self._parked)
        workers = self._workers
        # Where nothing is measured while kernels compile, a few are compiled at first: a short budget has results too.
        first = math.inf if self._overlap else 1 + self._tally.done // max(1, workers.compilers)
        ahead_each = min(first, AHEAD if self._overlap or self._budget.seconds is not None else APART_AHEAD)
        ahead = workers.load(self._number) + held < ahead_each * workers.compilers + workers.devices(self._number)
        apart = self._overlap or (workers.measuring == 0 and not (self._built and workers.compiling == 0))
        return ahead and apart and not self._done_asking()

    def _done_asking(self) -> bool:
        # What is in flight will count and what waits may, so a sweep ends with exactly the number asked for.
        committed = self._tally.done + len(self._in_flight) + sum(not o.repeated for o in self._waiting)
        spent = self._budget.count is not None and committed >= self._budget.count
        return self._exhausted or spent or self._tally.out_of_time

    def _finished(self) -> bool:
        if self._out_of_time:
            return not self._measuring or self._stops_in_s <= 0
        return not self._in_flight and not self._waiting and self._done_asking()

    @property
    def _out_of_time(self) -> bool:
        """Tell whether the budget is used up; a sweep without a time goes on with what it has, for a while."""
        if not self._tally.out_of_time:
            return False
        assert self._budget.seconds is not None, "a budget without seconds does not end so"
        first = not self._tally.counts["timed"] and bool(self._in_flight or self._waiting)
        more_s = self._budget.seconds if self._budget.overrun_s is None else self._budget.overrun_s
        return not (first and self._tally.left_s() > -more_s)

    @property
    def _stops_in_s(self) -> float:
        """Return in how many seconds whatever runs is stopped: it is to be run again by whoever asks for it."""
        if self._budget.overrun_s is None:
            return math.inf
        share = FINISHING if self._tally.counts["timed"] else 1.0
        return self._tally.left_s() + share * self._budget.overrun_s

    def nap_s(self) -> float | None:
        """Return how many seconds to sleep if nothing happens, or None for no limit.

        This is the time to the end of the budget, or until what still runs is stopped, and at most PARKED_S while
        another sweep runs a version that this one waits for.
        """
        nap = None if self._budget.seconds is None else self._tally.left_s()
        if nap is not None and self._tally.out_of_time:
            nap = None if self._budget.overrun_s is None else max(0.0, self._stops_in_s)
        if not self._parked:
            return nap
        return PARKED_S if nap is None else min(nap, PARKED_S)

    def _tell(self) -> None:
        """In the order asked, and number n only when the strategy's window is full: see strategies/base.py.

        In a budget of time a strategy of any order is told what is done: no version keeps it waiting for another.
        """
        if self._strategy.any_order and self._budget.seconds is not None:
            for opened in [o for o in self._opened if o.is_done and (o.same_as is None or o.same_as.is_done)]:
                self._opened.remove(opened)
                self._tell_of(opened)
            return
        while self._opened and self._opened[0].is_done:
            # What waits may turn out a duplicate, and then one more is asked for.
            if len(self._opened) < self._strategy.window and (self._waiting or not self._done_asking()):
                return
            self._tell_of(self._opened.popleft())

    def _tell_of(self, opened: RequestedVersion) -> None:
        if opened.same_as is not None:
            opened.cost_us = opened.same_as.cost_us
        if opened.proposed:
            self._strategy.tell(opened.configuration, opened.cost_us)

    def _ask(self) -> bool:
        proposed = not self._first
        configuration = self._strategy.ask() if proposed else self._first.popleft()
        if configuration is None:
            self._exhausted = True
            return False
        row = Row(self._lab.context, configuration.text, "version" if configuration.lines else "default", self._name)
        key = row.key
        opened = RequestedVersion(configuration, row, proposed, mark(key) in self._seen)
        self._seen.add(mark(key))
        self._opened.append(opened)
        self._waiting.append(opened)
        if opened.repeated:
            return True
        stored = None if self._fresh else self._found(key)
        if stored is not None and stored.outcome is not None and self._stands(opened, stored):
            opened.answer = stored
        else:
            self._workers.compile(self._number, opened, "prepare", configuration)
            if self._overlap:
                # A device takes seconds to be set up, and the reference may run then.
                self._workers.warm(self._number, 1)
        return True

    def admit(self) -> None:
        """Admit the versions that have been prepared, in the order in which the strategy asked for them."""
        while self._waiting and (self._waiting[0].repeated or self._waiting[0].answer is not None):
            opened = self._waiting.popleft()
            match opened.answer:
                case None:
                    stored = self._lookup(opened.key)
                    opened.same_as = next((o for o in self._opened if o.key == opened.key and o is not opened), None)
                    self._settle_duplicate(opened, None if stored is None else stored.cost_us)
                case Row() as stored if stored.key != opened.key and self._admitted(stored.key):
                    self._settle_duplicate(opened, stored.cost_us)
                case Row() as stored:
                    opened.row = replace(opened.row, emitted=stored.emitted)
                    self._take(opened, stored)
                case PreparedVersion(source_key, predicted_us=predicted_us) as prepared:
                    opened.row, opened.predicted_us = replace(opened.row, emitted=source_key), predicted_us
                    self._launch(opened, prepared)
                case outcome:
                    self._record(opened, outcome)

    def _launch(self, opened: RequestedVersion, prepared: PreparedVersion) -> None:
        """Compile, unless the same source is in flight, was seen in this sweep, or was measured in another."""
        row = opened.row
        twin = self._in_flight.get(row.emitted)
        if twin is not None:
            self._store.record_duplicate(row, twin.key)
            opened.same_as = twin
            self._settle_duplicate(opened, None)
            return
        known = self._store.versions(row.context, row.emitted)
        earlier = next((other for other in known if other.key != opened.key and self._admitted(other.key)), None)
        if earlier is not None:
            self._store.record_duplicate(row, earlier.key)
            self._settle_duplicate(opened, earlier.cost_us)
            return
        finished = next((other for other in known if self._stands(opened, other)), None)
        if finished is not None and not self._fresh:
            self._take(opened, finished)
            return
        hopeless = self._hopeless(opened)
        if hopeless is not None:
            self._record(opened, hopeless)
            return
        self._in_flight[row.emitted] = opened
        self._workers.warm(self._number, len(self._in_flight))
        order = self._build_order(opened.predicted_us, prepared.compile_s)
        self._workers.compile(self._number, opened, "build", prepared.task, order=order)
        idle = max(0, self._workers.compilers - self._workers.compiling)
        for part in prepared.ahead if self._is_shared(opened, prepared.compile_s) else prepared.ahead[:idle]:
            self._workers.compile(self._number, AHEAD_OF_BUILD, "ahead", part, order=order)

    def _is_shared(self, opened: RequestedVersion, compile_s: float) -> bool:
        """Tell whether several processes compile the kernels of a version, though each could have a version.

        That is a long one that is predicted to be faster than the best so far and all in flight, in a budget of time.
        """
        least_us = min(self._best_predicted_us or math.inf, *(o.expected_us for o in self._in_flight.values()))
        return self._budget.seconds is not None and compile_s > LONG_COMPILE_S and opened.expected_us <= least_us

    def _build_order(self, predicted_us: float | None, compile_s: float) -> Order:
        """Return the place of a build among those that wait: that of its predicted time.

        As long as nothing has a time, those that take long come after all others: all processes could be compiling one
        when a short budget ends.
        """
        if predicted_us is None:
            return FIRST
        return compile_s > LONG_COMPILE_S or self._best() is not None, predicted_us

    def _measure_next(self) -> None:
        if self._parked and time.monotonic() >= self._look_at:
            self._built.extend(self._parked)
            self._parked.clear()
        while self._built and self._workers.free(self._number) and not self._out_of_time:
            if not self._overlap and self._workers.compiling > 0 and not self._is_late():
                return
            opened = self._next_built()
            if opened is None:
                return
            hopeless = self._hopeless(opened)
            if hopeless is not None:
                self._record(opened, hopeless)
                continue
            other = self._claim(opened)
            if other is None:
                built = opened.built
                if opened.proposed:
                    opened.built = None
                self._workers.measure(self._number, opened, built, self._best() if self._compared(opened) else None)
                self._tally.devices = max(self._tally.devices, self._workers.devices(self._number))
                self._measuring[opened.key] = time.monotonic()
            elif other.outcome is None:
                self._parked.append(opened)
                self._look_at = time.monotonic() + PARKED_S
            else:
                self._take(opened, other)

    def _is_late(self, shares: int = 1) -> bool:
        """Tell whether ``shares`` times FIRST_SHARE of a budget of time have passed, and nothing has a time.

        A version that is disturbed by compilers is better than none; the finals time it again.
        """
        seconds = self._budget.seconds
        if seconds is None or self._best() is not None:
            return False
        return self._tally.left_s() < (1 - shares * FIRST_SHARE) * seconds

    def _next_built(self) -> RequestedVersion | None:
        """Return the version that is measured next, None to wait for one that the others are compared with.

        As long as nothing has a time, that is a guess that has not failed: without a time to compare with, a slow
        version is not stopped. Where all guesses have failed, or two shares of a budget have passed without one,
        whatever is built is measured, the default last. Where times are predicted, these decide.
        """
        alone = self._best() is None and len(self._in_flight) + len(self._waiting) > 1
        if any(o.predicted_us is not None for o in self._built):
            return self._next_predicted(alone)
        guess = self._next_guess() if alone else None
        if guess is not None and guess in self._built:
            self._built.remove(guess)
            return guess
        if guess is not None and not self._is_late(2):
            return None
        later = self._later if alone else ()
        opened = min(self._built, key=lambda o: o.configuration.text in later, default=None)
        if opened is None or (guess is None and opened.configuration.text in later):
            return None
        self._built.remove(opened)
        return opened

    def _next_predicted(self, alone: bool) -> RequestedVersion | None:
        """Return the built version with the least predicted time; those that are measured whole precede all but one.

        None if it is ``alone`` and takes far longer than one that is still being built, for which there is time.
        """
        whole = [o for o in self._built if not alone and not self._compared(o)]
        opened = min(whole or self._built, key=lambda o: o.expected_us)
        least_us = min(o.expected_us for o in self._in_flight.values())
        if alone and opened.expected_us > max(CUT * least_us, WAITED_US) and not self._is_late():
            return None
        self._built.remove(opened)
        return opened

    def _hopeless(self, opened: RequestedVersion) -> Outcome | None:
        """Return the outcome of a version that is not run because of its predicted time, or None."""
        if opened.predicted_us is None or opened.previous is not None or not (self._cuts and self._compared(opened)):
            return None
        best, predicted_us = self._fastest()
        if best is None or predicted_us is None:
            return None
        return predicted_outcome(opened.predicted_us, Incumbent.of(best), predicted_us)

    def _withdraw_hopeless(self) -> None:
        """Settle the versions that wait to be built and are hopeless now that there is a better one."""
        for opened in tuple(self._in_flight.values()):
            outcome = None if opened.built is not None else self._hopeless(opened)
            if outcome is not None and self._workers.withdraw(self._number, opened):
                self._record(opened, outcome)

    def _next_guess(self) -> RequestedVersion | None:
        """Return the guess that is measured first, None without any.

        Each runs at reduced sizes as soon as it is built. Then that is the fastest there, once all have run there or
        nothing has a time late in a budget: a version may take minutes at the user's sizes, of which nothing else has
        a part in the meantime.
        """
        guesses = [o for o in self._opened if o.configuration.text in self._guesses and not o.is_done]
        unknown = [o for o in guesses if o.reduced_us is None]
        built = next((o for o in unknown if o in self._built), None)
        known = min((o for o in guesses if o not in unknown), key=lambda o: o.reduced_us or math.inf, default=None)
        if built is not None or (unknown and not (known is not None and self._is_late())):
            return built or unknown[0]
        return known

    def _claim(self, opened: RequestedVersion) -> Row | None:
        """Return the row that is in the way, None for none; a version of which there is more to measure has its own."""
        if opened.previous is not None:
            return None
        return self._store.claim(opened.row, fresh=self._fresh, whole=self._whole(opened))

    def _whole(self, opened: RequestedVersion) -> bool:
        """Tell whether the version with which all others are compared is measured completely.

        This holds also if a better one happens to be ready first.
        """
        return not self._cuts or not self._compared(opened)

    def _compared(self, opened: RequestedVersion) -> bool:
        """Tell whether the version is compared with the best so far."""
        return opened.proposed or opened.configuration.text in self._later | self._guesses

    def _stands(self, opened: RequestedVersion, row: Row) -> bool:
        """Whether a finished row says of this one what is to be known."""
        return row.status != "cut_off" or not self._whole(opened)

    def _best(self) -> Incumbent | None:
        """Return the best time so far, also if the version is still to be verified at other sizes."""
        best, _ = self._fastest()
        return None if best is None else Incumbent.of(best)

    def _fastest(self) -> tuple[Timed | None, float | None]:
        """Return the best outcome so far, with the time that was predicted for it."""
        settled = None if self._tally.best is None else self._tally.best.outcome
        running = ((opened.previous, opened.predicted_us) for opened in self._in_flight.values())
        known = ((settled, self._best_predicted_us), *running)
        timed = ((outcome, us) for outcome, us in known if isinstance(outcome, Timed))
        return min(timed, key=lambda found: found[0].median_us, default=(None, None))

    def _take(self, opened: RequestedVersion, other: Row) -> None:
        """Record the outcome of a row that another sweep has finished, of this configuration or of its source."""
        assert other.outcome is not None, "a finished row has an outcome"
        self._tally.resumed += 1
        if other.key == opened.key:
            self._settle(opened, other)
        else:
            self._record(opened, other.outcome)

    def _receive_prepared(self, opened: RequestedVersion, reply: Reply) -> None:
        match reply:
            case TaskResult(value, seconds):
                self._tally.judge_s += seconds
                opened.answer = value
            case TaskError(message):
                opened.answer = NotBuilt(f"before it was compiled: {message}")
            case Crashed(message):
                opened.answer = Crashed(f"before it was compiled: {message}")
            case timed_out:
                opened.answer = timed_out

    def _receive_built(self, opened: RequestedVersion, reply: Reply) -> None:
        match reply:
            case TaskResult(value, seconds):
                self._tally.compile_s += seconds
                if isinstance(value, Outcome):
                    self._record(opened, value)
                else:
                    opened.built = value
                    (self._built.appendleft if opened.took_s else self._built.append)(opened)
            case TaskError(message):
                self._record(opened, NotBuilt(message))
            case Crashed(message):
                self._record(opened, Crashed(f"while it compiled: {message}"))
            case timed_out:
                self._record(opened, timed_out)

    def _receive_measured(self, opened: RequestedVersion, reply: Reply) -> None:
        opened.took_s += time.monotonic() - self._measuring.pop(opened.key)
        match reply:
            case TaskResult(NextStep(task, so_far, reduced_us)):
                opened.reduced_us = reduced_us
                # Kept, or given up until it is built: in between it must not look like a crash.
                if so_far is None:
                    self._store.abandon(opened.key)
                else:
                    self._store.finish(opened.key, so_far)
                opened.previous = so_far
                # It may be the best, which others are compared with.
                self._workers.compile(self._number, opened, "build", task, urgent=True)
                return
            case TaskResult(value):
                outcome: Outcome = value
            case TaskError(message):
                outcome = Crashed(message)
            case TimedOut() if not (opened.proposed or opened.is_repeat or self._later):
                # Everything is compared with it, and the machine may have been disturbed.
                opened.is_repeat = True
                self._store.abandon(opened.key)
                self._built.appendleft(opened)
                return
            case other:
                outcome = other
        self._store.finish(opened.key, outcome)
        self._settle_measured(opened, outcome)

    def _record(self, opened: RequestedVersion, outcome: Outcome) -> None:
        """Record the outcome of a version that is not built, never ran, or has run as far as it can."""
        if opened.previous is not None:
            self._settle_measured(opened, opened.previous)
            return
        self._store.record(opened.row, outcome)
        self._settle(opened, replace(opened.row, status=outcome.status, outcome=outcome))

    def _settle_measured(self, opened: RequestedVersion, outcome: Outcome) -> None:
        self._tally.measured(outcome, opened.took_s)
        self._settle(opened, replace(opened.row, status=outcome.status, outcome=outcome))

    def _settle_unfinished(self) -> None:
        """Where the sweep ends before what was still to be built."""
        for opened in tuple(self._in_flight.values()):
            if opened.previous is not None:
                self._settle_measured(opened, opened.previous)

    def _settle(self, opened: RequestedVersion, row: Row) -> None:
        self._in_flight.pop(opened.row.emitted, None)
        opened.is_done, opened.cost_us = True, row.cost_us
        self._tally.add(row)
        if self._tally.best is row:
            self._best_predicted_us = opened.predicted_us
            self._withdraw_hopeless()
        self._progress(self._tally.progress(row))

    def _settle_duplicate(self, opened: RequestedVersion, cost_us: float | None) -> None:
        self._tally.counts["duplicate"] += 1
        opened.is_done, opened.cost_us = True, cost_us

    def _lookup(self, key: str) -> Row | None:
        return self._store.lookup((key,)).get(key)

    def _found(self, key: str) -> Row | None:
        """Return the row of the key; for a duplicate, the row that it duplicates."""
        row = self._lookup(key)
        return row if row is None or row.same_as is None else self._lookup(row.same_as)

    def _admitted(self, key: str) -> bool:
        """Asked for in this sweep, and before the one that is being admitted."""
        return mark(key) in self._seen and all(o.key != key for o in self._waiting)
