"""A sweep of one laboratory in processes of this machine."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from looptune.tune.execution.local_executor import LocalWorkers
from looptune.tune.session.sweep import Part, sweeps

if TYPE_CHECKING:
    from looptune.tune.execution.lab import SweepResult, VersionBuilder
    from looptune.tune.store.store import Store
    from looptune.tune.strategies.base import Strategy


def sweep(
    lab: VersionBuilder,
    strategy: Strategy,
    store: Store,
    *,
    jobs: int,
    timeout_s: float,
    command: str = "",
    **options: Any,
) -> SweepResult:
    """The result of ``sweeps`` with these options; ``jobs`` processes compile."""
    open_workers = partial(LocalWorkers, jobs=jobs, timeout_s=timeout_s)
    (result,) = sweeps((Part(lab, strategy, command),), store, open_workers=open_workers, **options)
    return result
