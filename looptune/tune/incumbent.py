"""The fastest version so far, with what is needed to compare others with it while they run.

It is stored in the facts of its outcome, so that a sweep that is resumed knows it too.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from looptune.backends.base import Progress
from looptune.lower.checkpoints import PARTS

if TYPE_CHECKING:
    from looptune.runtime.outcome import Fact, Timed


@dataclass(frozen=True, slots=True)
class Incumbent:
    """The times of the fastest version.

    ``us``: at the user's sizes; ``reduced_us``: at ``reduced_sizes``; ``pace``: at the checkpoints of its host loop, if
    it has one.
    """

    us: float
    reduced_us: float | None = None
    reduced_sizes: str = ""
    pace: Progress | None = None

    @classmethod
    def of(cls, outcome: Timed) -> Self:
        known = dict(outcome.facts)
        reduced_us = float(known["reduced_us"]) if "reduced_us" in known else None
        pace = _pace(str(known["pace"])) if "pace" in known else None
        pace = pace if pace is not None and len(pace.us) == len(PARTS) else None
        return cls(outcome.median_us, reduced_us, str(known.get("reduced_sizes", "")), pace)

    @property
    def facts(self) -> tuple[Fact, ...]:
        """Return the record that ``of`` reads."""
        found: list[Fact] = []
        if self.reduced_us is not None:
            found += [("reduced_us", round(self.reduced_us, 3)), ("reduced_sizes", self.reduced_sizes)]
        if self.pace is not None:
            found += [("pace", json.dumps([self.pace.loop, *(round(us, 1) for us in self.pace.us)]))]
        return tuple(found)


def _pace(text: str) -> Progress:
    loop, *us = json.loads(text)
    return Progress(str(loop), tuple(float(t) for t in us))
