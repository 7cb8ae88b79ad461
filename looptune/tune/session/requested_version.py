"""A configuration on its way through a search, from the strategy's question to the answer."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from looptune.runtime.outcome import Outcome
from looptune.tune.execution.lab import PreparedVersion
from looptune.tune.space.space import Configuration
from looptune.tune.store.store import Row


@dataclass(slots=True, eq=False)
class RequestedVersion:
    """A configuration asked for and not yet told. ``proposed``: by the strategy, which wants to be told.

    ``answer``: what the store or the pool has said of it, None before. ``same_as``: the open one with its key or
    source, whose cost will be its own. ``previous``: its outcome where what is still to be built fails; ``took_s`` in
    measuring processes until then; ``reduced_us``: its time at reduced sizes; ``predicted_us``: its predicted time.
    ``is_repeat``: its measurement is repeated, after it timed out.
    """

    configuration: Configuration
    row: Row
    proposed: bool
    repeated: bool
    key: str = field(init=False)
    answer: Row | PreparedVersion | Outcome | None = None
    is_done: bool = False
    cost_us: float | None = None
    same_as: RequestedVersion | None = None
    built: Any = None
    previous: Outcome | None = None
    took_s: float = 0.0
    reduced_us: float | None = None
    predicted_us: float | None = None
    is_repeat: bool = False

    def __post_init__(self) -> None:
        self.key = self.row.key

    @property
    def expected_us(self) -> float:
        """Return its predicted time, infinite without one."""
        return math.inf if self.predicted_us is None else self.predicted_us


def mark(key: str) -> int:
    """Return 60 bits of a key, by which those that were asked for are remembered."""
    return int(key[:15], 16)
