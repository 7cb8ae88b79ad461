"""The best of one device on another: what it costs to take a configuration from elsewhere.

    cost(A on B) = time on B of A's best directives / time on B of B's own best          1 where they do as well

Only what was measured counts: both in B's finals, else both in its screening. A's best is of B's target and sizes where
A has such a sweep, else of whatever A has that was tried on B: a GPU's on a CPU. Figure 10 of Grauer-Gray et al., 2012.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from looptune.runtime.outcome import Timed, WrongResult
from looptune.runtime.timing import Speedup, paired, summary
from looptune.tune.results.study import Study
from looptune.tune.store.store import Row

UNKNOWN = "not measured"


@dataclass(frozen=True, slots=True)
class Transfer:
    """The best ``directives`` of ``own`` in the place of ``there``. ``times_us``: theirs, and those of the best of
    ``there``; None where they have none, and ``why``. ``speedup``: theirs over that best, in finals; None: both times
    are of the screening, a few runs each."""

    own: Study
    there: Study
    directives: str
    times_us: tuple[float, float] | None
    speedup: Speedup | None = None
    why: str = ""

    @property
    def cost(self) -> float | None:
        return None if self.times_us is None else self.times_us[0] / self.times_us[1]

    @property
    def interval(self) -> tuple[float, float] | None:
        """Of the cost, with 95 %."""
        return None if self.speedup is None else (1 / self.speedup.high, 1 / self.speedup.low)

    @property
    def known(self) -> bool:
        """Whether it was tried there."""
        return self.why != UNKNOWN


def transfers(studies: Sequence[Study]) -> list[Transfer]:
    """Of every ordered pair of devices each kernel that both have; of other targets or sizes what was tried."""
    found = []
    for there in studies:
        others = [s for s in studies if s.device != there.device and _loops(s) == _loops(there)]
        for device in dict.fromkeys(s.device for s in others):
            found += _from([s for s in others if s.device == device], there)
    return sorted(found, key=lambda t: (t.there.device, t.there.context.target, t.own.device))


def _from(others: Sequence[Study], there: Study) -> list[Transfer]:
    """Of one device; those that were measured like ``there`` count before others."""
    same = [s for s in others if _kind(s) == _kind(there)]
    if same:
        return [_taken(s, there) for s in same]
    usual = [s for s in others if s.kind == there.kind]
    return [made for s in (usual if usual else others) if (made := _taken(s, there)).known]


def mean(found: Iterable[Transfer]) -> float | None:
    """The geometric mean of the costs that are known."""
    costs = [t.cost for t in found if t.cost is not None]
    return math.exp(math.fsum(map(math.log, costs)) / len(costs)) if costs else None


def _loops(study: Study) -> tuple[str, ...]:
    context = study.context
    return context.kernel, context.source_hash, context.dtype


def _kind(study: Study) -> tuple[str, ...]:
    """Equal ones are the same loops at the same sizes; seeds are not told apart."""
    return study.context.target, study.context.sizes, study.kind


def _taken(own: Study, there: Study) -> Transfer:
    """Of the best and of those that are as fast: the best itself where it failed there, else the first that was in the
    finals there, else the first that was tried."""
    tried = [_tried(own, there, text) for text in (own.result.directives, *own.result.ties)]
    first = tried[0]
    if first.known and first.times_us is None:
        return first
    return min(tried, key=lambda t: (t.speedup is None, t.times_us is None, not t.known))


def _tried(own: Study, there: Study, text: str) -> Transfer:
    """The directives ``text`` there."""
    rows = {row.directives: row for row in there.rows}
    best = _final(there.result.directives, there, rows)
    taken = _final(text, there, rows)
    match taken, best:
        case WrongResult(message), _:
            return Transfer(own, there, text, None, why=f"wrong: {message}")
        case Timed(), Timed():
            # What left the finals early has the first rounds: they are compared, and no others.
            rounds = min(len(taken.times_us), len(best.times_us))
            both = summary(taken.times_us[:rounds]).median_us, summary(best.times_us[:rounds]).median_us
            return Transfer(own, there, text, both, paired(best.times_us, taken.times_us, 0))
    screened = there.screened()
    us, best_us = screened.get(text), screened.get(there.result.directives)
    if us is not None and best_us:
        return Transfer(own, there, text, (us, best_us))
    return Transfer(own, there, text, None, why=_why(rows.get(text)))


def _final(text: str, study: Study, rows: dict[str, Row]) -> Timed | WrongResult | None:
    """What became of these directives in the finals, or of others that make the same kernels."""
    if text in study.raced:
        return study.raced[text]
    source = rows[text].emitted if text in rows else ""
    same = (t for t in study.raced if source and t in rows and rows[t].emitted == source)
    return next((study.raced[t] for t in same), None)


def _why(row: Row | None) -> str:
    if row is None or row.outcome is None or isinstance(row.outcome, Timed):
        return UNKNOWN
    return f"{row.status.replace('_', ' ')}: {row.outcome.message}"
