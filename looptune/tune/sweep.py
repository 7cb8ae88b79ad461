"""A search from its start to its result, resumed from the store where an earlier one stopped.

    strategy ──▶ compiling pool: prepare ──▶ compiling pool: build ──▶ measuring worker ──▶ store ──▶ strategy
                 Illegal, or the             (jobs processes)          (one)
                 same source again

A sweep never dies of one configuration: every one ends as an Outcome, and Ctrl-C keeps all that was measured. Two
sweeps at once on one store share the work: neither runs what the other has run or is running.
StoreError where the store cannot be written, TargetError where a worker process cannot even start.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from looptune.tune.budget import Budget, parse_budget
from looptune.tune.coordinator import Coordinator
from looptune.tune.interrupt import deferred
from looptune.tune.lab import Lab, Prepared, Progress, Spent, SweepResult
from looptune.tune.space import DEFAULT, Configuration
from looptune.tune.store import Store
from looptune.tune.strategies.base import Strategy
from looptune.tune.workers import Pool, Worker

__all__ = ["Budget", "Lab", "Prepared", "Progress", "Spent", "SweepResult", "parse_budget", "sweep"]


def sweep(
    lab: Lab,
    strategy: Strategy,
    store: Store,
    *,
    budget: Budget,
    jobs: int,
    timeout_s: float,
    progress: Callable[[Progress], None],
    first: Sequence[Configuration] = (DEFAULT,),
    overlap: bool = True,
    fresh: bool = False,
    command: str = "",
) -> SweepResult:
    """Evaluate ``first``, then what the strategy asks for, until the budget or the space is used up, or Ctrl-C.

    ``jobs`` processes compile; ``timeout_s`` limits each compilation and each measurement. Without ``overlap`` nothing
    compiles while something is measured: for targets that run on the cores that compile. ``fresh`` runs again
    what the store already has. ``command`` is kept with the rows: with directives added, it measures one of them again.
    """
    name = f"{time.strftime('%Y%m%dT%H%M%S')}-{time.monotonic_ns():x}"
    store.enlist(name, command)
    interrupted = False
    with (
        deferred() as gate,
        Pool(lab.compile_setup, jobs, timeout_s) as pool,
        Worker(lab.measure_setup, timeout_s) as measurer,
    ):
        coordinator = Coordinator(
            lab, strategy, store, budget, pool, measurer, progress, name, gate,
            overlap=overlap, fresh=fresh, first=first,
        )  # fmt: skip
        try:
            coordinator.run()
        except KeyboardInterrupt:
            interrupted = True
            coordinator.drain()
        finally:
            coordinator.abandon()
    return coordinator.result(interrupted)
