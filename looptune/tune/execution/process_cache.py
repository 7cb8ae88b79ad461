"""Processes that wait for their next set-up, so that a kernel need not start its own.

    a worker is closed ── keep(kind) ──▶ idle ── take(kind) ──▶ a worker of the next kernel, or of the finals

A process costs seconds before its first task: libraries to import, a context on its device. Of one ``kind`` are those
that may stand in for each other: the ones that compile, or the ones that measure on one device. A process keeps its
set-up until another one is asked of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from looptune.tune.execution.process import WorkerProcess

COMPILING = "compiling"
"""The kind of processes that use no device."""


class ProcessCache:
    """Idle processes by kind, which the next set-up of that kind reuses."""

    def __init__(self) -> None:
        self._idle: dict[str, list[WorkerProcess]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def take(self, kind: str, setup: bytes = b"") -> WorkerProcess | None:
        """One that is alive, if possible with this set-up, where there is one; it belongs to the caller."""
        idle = self._idle.get(kind, [])
        idle.sort(key=lambda life: life.setup == setup)
        while idle:
            life = idle.pop()
            if life.process.is_alive():
                return life
            life.end()
        return None

    def keep(self, kind: str, life: WorkerProcess) -> None:
        """Keep a sound and idle process, which belongs to this cache from now on."""
        self._idle.setdefault(kind, []).append(life)

    def close(self) -> None:
        """End them all. More may be kept afterwards."""
        kept, self._idle = self._idle, {}
        for life in (life for idle in kept.values() for life in idle):
            life.end()
