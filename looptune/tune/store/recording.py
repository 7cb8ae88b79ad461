"""A finished search as it is replayed and exported: what each configuration cost, and how long finding out took."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from looptune.tune.space.table_view import Table


@dataclass(frozen=True, slots=True)
class Measurement:
    """``cost_us`` None: refused or failed; of a version that was cut off, what a search is told.

    ``seconds``: compiling and measuring, None where the file does not say.

    ``source``: equal ones are one version, measured once. Not ``is_complete``: it was cut off, and cannot be the best.
    """

    cost_us: float | None
    runs_us: tuple[float, ...] = ()
    seconds: float | None = None
    source: str = ""
    is_complete: bool = True


@dataclass(frozen=True, slots=True)
class Recording:
    """``measured[k]`` is of ``table[k]``; ``seconds[k]`` is known or, where ``estimated``, supposed."""

    name: str
    kernel: str
    device: str
    table: Table
    measured: tuple[Measurement, ...]

    @property
    def best_us(self) -> float:
        return min(m.cost_us for m in self.measured if m.cost_us is not None and m.is_complete)

    @property
    def versions(self) -> int:
        """Return the number of different sources, which is what an exhaustive search has to measure."""
        return len({m.source for m in self.measured})

    @property
    def estimated(self) -> int:
        """Return how many configurations have no duration in the file."""
        return sum(m.seconds is None for m in self.measured)

    def seconds(self) -> list[float]:
        """How long each took; where it is not known, the median of those known, or its runs alone."""
        known = [m.seconds for m in self.measured if m.seconds is not None]
        usual = median(known) if known else None
        return [
            m.seconds if m.seconds is not None else usual if usual is not None else sum(m.runs_us) / 1e6
            for m in self.measured
        ]
