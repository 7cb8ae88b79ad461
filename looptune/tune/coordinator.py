"""The loop of a sweep, in one thread: it asks, compiles ahead, measures one version at a time, and tells.

    asked ─┬─ in the store ────────────────────────────────────────▶ settled
           ├─ refused, or the source of an earlier one ────────────▶ settled
           └─ in flight: compiling ──▶ built ──▶ measuring ────────▶ settled       a row is in the store before it runs

A few compiled versions are held at a time whatever the size of the space; what grows is 100 bytes for each
configuration seen and the row of each one timed.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from looptune.runtime.outcome import CLASSES, Crashed, NotBuilt, Outcome
from looptune.tune.budget import Budget
from looptune.tune.lab import Lab, Prepared, Progress, SweepResult
from looptune.tune.space import Configuration
from looptune.tune.store import Row, Store
from looptune.tune.strategies.base import Strategy
from looptune.tune.workers import Pool, Raised, Reply, Returned, Worker, wait


@dataclass(slots=True, eq=False)
class _Open:
    """A configuration asked for and not yet told. ``proposed``: by the strategy, which wants to be told."""

    configuration: Configuration
    row: Row
    proposed: bool
    settled: bool = False
    cost_us: float | None = None
    same_as: _Open | None = None
    built: Any = None


class Coordinator:
    def __init__(
        self,
        lab: Lab,
        strategy: Strategy,
        store: Store,
        budget: Budget,
        pool: Pool,
        measurer: Worker,
        progress: Callable[[Progress], None],
        name: str,
        *,
        overlap: bool,
        fresh: bool,
        first: Sequence[Configuration],
    ) -> None:
        self._lab, self._strategy, self._store, self._budget = lab, strategy, store, budget
        self._pool, self._measurer, self._progress, self._name = pool, measurer, progress, name
        self._overlap, self._fresh = overlap, fresh
        self._first = deque(first)
        self._versions = strategy.space.versions
        self._most = self._versions + len(first)
        self._start = time.monotonic()
        self._exhausted = False
        self._opened: deque[_Open] = deque()
        self._in_flight: dict[str, _Open] = {}
        self._built: deque[_Open] = deque()
        self._measuring: _Open | None = None
        # 60 bits of each key: a tenth of what the texts would take.
        self._seen: set[int] = set()
        self._counts: Counter[str] = Counter()
        self._resumed = 0
        self._timed: list[Row] = []
        self._best: Row | None = None

    def run(self) -> None:
        while True:
            self._tell()
            asked = self._may_ask() and self._ask()
            self._measure_next()
            if self._finished(asked):
                self._tell()
                return
            for worker, opened, reply in wait((*self._pool.workers, self._measurer), 0.0 if asked else self._nap_s()):
                self._receive(worker, opened, reply)
            self._pool.dispatch()

    def abandon(self) -> None:
        """Forget what is being measured: it is stopped on purpose and will be run again."""
        if self._measuring is not None:
            self._store.abandon(self._measuring.row.key)

    def result(self, interrupted: bool) -> SweepResult:
        counts = {status: self._counts[status] for status in (*CLASSES, "duplicate")}
        counts["space"] = self._versions
        timed = sorted(self._timed, key=lambda row: (row.median_us, row.directives))
        elapsed_s = time.monotonic() - self._start
        return SweepResult(self._name, counts, tuple(timed), self._resumed, interrupted, elapsed_s)

    def _may_ask(self) -> bool:
        ahead = self._pool.load + len(self._built) <= 2 * len(self._pool.workers)
        apart = self._overlap or (self._measuring is None and not (self._built and self._pool.load == 0))
        return ahead and apart and not self._done_asking() and len(self._opened) < self._strategy.window

    def _done_asking(self) -> bool:
        # All that is in flight will count, so a sweep ends with exactly the number asked for.
        committed = self._done() + len(self._in_flight)
        spent = self._budget.count is not None and committed >= self._budget.count
        return self._exhausted or spent or self._out_of_time()

    def _finished(self, asked: bool) -> bool:
        if self._out_of_time():
            return self._measuring is None
        return not asked and not self._in_flight and self._done_asking()

    def _done(self) -> int:
        return sum(self._counts[status] for status in CLASSES)

    def _out_of_time(self) -> bool:
        return self._budget.seconds is not None and self._left_s() <= 0

    def _left_s(self) -> float:
        assert self._budget.seconds is not None, "asked only of a budget in seconds"
        return self._start + self._budget.seconds - time.monotonic()

    def _nap_s(self) -> float | None:
        """How long to sleep if nothing happens: to the end of the budget; after it, until the last measurement ends."""
        return None if self._budget.seconds is None or self._out_of_time() else self._left_s()

    def _tell(self) -> None:
        """In the order asked, and number n only when the strategy's window is full: see strategies/base.py."""
        while self._opened and self._opened[0].settled:
            if len(self._opened) < self._strategy.window and not self._done_asking():
                return
            opened = self._opened.popleft()
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
        opened = _Open(configuration, row, proposed)
        self._opened.append(opened)
        self._answer(opened)
        return True

    def _answer(self, opened: _Open) -> None:
        """From this sweep, from the store, or else by running it."""
        key = opened.row.key
        if self._has_seen(key):
            stored = self._lookup(key)
            self._settle_duplicate(opened, None if stored is None else stored.median_us)
            opened.same_as = next((o for o in self._opened if o.row.key == key and o is not opened), None)
            return
        self._seen.add(_mark(key))
        stored = None if self._fresh else self._lookup(key)
        if stored is not None and stored.outcome is not None:
            self._resumed += 1
            self._settle(opened, stored)
            return
        match self._lab.prepare(opened.configuration):
            case Prepared(source_key, task):
                opened.row = replace(opened.row, emitted=source_key)
                self._launch(opened, task)
            case outcome:
                self._record(opened, outcome)

    def _launch(self, opened: _Open, task: Any) -> None:
        """Compile, unless the same source is in flight, was seen in this sweep, or was measured in another."""
        row = opened.row
        twin = self._in_flight.get(row.emitted)
        if twin is not None:
            self._store.record_duplicate(row, twin.row.key)
            opened.same_as = twin
            self._settle_duplicate(opened, None)
            return
        known = self._store.versions(row.context, row.emitted)
        earlier = next((other for other in known if other.key != row.key and self._has_seen(other.key)), None)
        if earlier is not None:
            self._store.record_duplicate(row, earlier.key)
            self._settle_duplicate(opened, earlier.median_us)
            return
        if known and not self._fresh:
            assert known[0].outcome is not None, "a finished row has an outcome"
            self._resumed += 1
            self._record(opened, known[0].outcome)
            return
        self._in_flight[row.emitted] = opened
        self._measurer.start()
        self._pool.submit(opened, task)

    def _measure_next(self) -> None:
        busy = self._measuring is not None or not (self._overlap or self._pool.load == 0)
        if busy or not self._built or self._out_of_time():
            return
        opened = self._built.popleft()
        self._store.begin(opened.row)
        self._measuring = opened
        built, opened.built = opened.built, None
        self._measurer.submit(opened, built, None if self._best is None else self._best.median_us)

    def _receive(self, worker: Worker, opened: _Open, reply: Reply) -> None:
        if worker is self._measurer:
            self._receive_measured(opened, reply)
            return
        match reply:
            case Returned(value) if not isinstance(value, Outcome):
                opened.built = value
                self._built.append(opened)
            case Returned(outcome):
                self._record(opened, outcome)
            case Raised(message):
                self._record(opened, NotBuilt(message))
            case Crashed(message):
                self._record(opened, Crashed(f"while it compiled: {message}"))
            case timed_out:
                self._record(opened, timed_out)

    def _receive_measured(self, opened: _Open, reply: Reply) -> None:
        match reply:
            case Returned(value):
                outcome: Outcome = value
            case Raised(message):
                outcome = Crashed(message)
            case other:
                outcome = other
        self._store.finish(opened.row.key, outcome)
        self._measuring = None
        if isinstance(outcome, Crashed):
            # After a device error every later call in the same process fails.
            self._measurer.close()
            self._measurer.start()
        self._settle(opened, replace(opened.row, status=outcome.status, outcome=outcome))

    def _record(self, opened: _Open, outcome: Outcome) -> None:
        """The end of what never ran on the device."""
        self._store.record(opened.row, outcome)
        self._settle(opened, replace(opened.row, status=outcome.status, outcome=outcome))

    def _settle(self, opened: _Open, row: Row) -> None:
        self._in_flight.pop(opened.row.emitted, None)
        self._counts[row.status] += 1
        opened.settled, opened.cost_us = True, row.median_us
        if row.median_us is not None:
            self._timed.append(row)
            if self._best is None or self._best.median_us is None or row.median_us < self._best.median_us:
                self._best = row
        self._progress(self._report(row))

    def _settle_duplicate(self, opened: _Open, cost_us: float | None) -> None:
        self._counts["duplicate"] += 1
        opened.settled, opened.cost_us = True, cost_us

    def _report(self, last: Row) -> Progress:
        done = self._done()
        total = self._most - self._counts["duplicate"]
        total = total if self._budget.count is None else min(total, self._budget.count)
        elapsed_s = time.monotonic() - self._start
        ran = done - self._resumed
        eta_s = elapsed_s / ran * (total - done) if ran > 0 else None
        if self._budget.seconds is not None:
            left_s = max(0.0, self._left_s())
            eta_s = left_s if eta_s is None else min(eta_s, left_s)
        return Progress(done, total, self._resumed, dict(self._counts), last, self._best, elapsed_s, eta_s)

    def _lookup(self, key: str) -> Row | None:
        return self._store.lookup((key,)).get(key)

    def _has_seen(self, key: str) -> bool:
        return _mark(key) in self._seen


def _mark(key: str) -> int:
    return int(key[:15], 16)
