"""Sweeps of laboratories that need no model of device, in workers that the test chooses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from looptune.tune.execution.local_executor import LocalWorkers
from looptune.tune.session.sweep import Part, sweeps

if TYPE_CHECKING:
    from looptune.tune.execution.lab import SweepResult, VersionBuilder
    from looptune.tune.space.space import Configuration
    from looptune.tune.store.store import Store
    from looptune.tune.strategies.base import Strategy

MODEL: Any = SimpleNamespace(target=SimpleNamespace(name="none"))


@dataclass(frozen=True)
class Opening:
    """An executor whose workers are what a function makes of the laboratories."""

    open_workers: Callable[..., Any]
    overlap: bool

    def open(self, labs: Any, models: Any, jobs: int, timeout_s: float) -> Any:
        return self.open_workers(labs)

    def overlaps_compilation(self, target: str) -> bool:
        return self.overlap


def swept(
    parts: Iterable[tuple[VersionBuilder, Strategy]],
    store: Store,
    open_workers: Callable[..., Any],
    *,
    overlap: bool = True,
    command: str = "",
    guesses: Sequence[Configuration] = (),
    **options: Any,
) -> tuple[SweepResult, ...]:
    """The results of the laboratories, each with its strategy."""
    given = [Part(lab, strategy, MODEL, command, guesses=guesses) for lab, strategy in parts]
    executor: Any = Opening(open_workers, overlap)
    return sweeps(given, store, executor, jobs=1, timeout_s=1.0, **options)


def sweep(
    lab: VersionBuilder, strategy: Strategy, store: Store, *, jobs: int, timeout_s: float, **options: Any
) -> SweepResult:
    """The result of one laboratory; ``jobs`` processes compile."""
    (result,) = swept([(lab, strategy)], store, partial(LocalWorkers, jobs=jobs, timeout_s=timeout_s), **options)
    return result
