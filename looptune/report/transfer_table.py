"""The best of one device on another: what it costs to take a configuration from elsewhere, kernel by kernel.

    cost(A on B) = time on B of A's best directives / time on B of B's own best          1 where they do as well

    from  to  kernels  geometric mean  as good            kernel  from  to  cost, interval, verdict  directives

Only what was measured counts: both in B's finals, else both in its screening. A's best is of B's target and sizes where
A has such a sweep, else of whatever A has that was tried on B: a GPU's on a CPU. ``transfer.md`` has both tables,
``transfer.csv`` every number of the second. Figure 10 of Grauer-Gray et al., InPar 2012.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from looptune.core.cache_file import replace_text
from looptune.core.si_units import time_text
from looptune.report.best_table import condense
from looptune.report.suite_table import mean_ratio
from looptune.report.table import Column, Table, csv_text
from looptune.runtime.outcome import Timed, WrongResult
from looptune.runtime.timing import Speedup, paired_speedup, ratio_text, summary
from looptune.tune.results.studies import KernelStudy

if TYPE_CHECKING:
    from looptune.tune.store.store import Row

UNKNOWN = "not measured"
NOTE = """\
The cost is the time of the best directives of *from*, run in the place *to*, over that of the best of *to* itself; the
verdict is about the former. Both ran in turn in the finals of *to*, and the interval is that of 95 %; without one both
times are of the screening, a few runs each. Sizes are those that each was tuned and timed at. What is not measured is
by `looptune run FILE --sweep --transfer-from DATABASE` in the place *to*, DATABASE being that of *from*.
"""
COLUMNS = (
    "kernel", "dtype", "from_device", "from_target", "from_sizes", "to_device", "to_target", "to_sizes", "cost", "low",
    "high", "verdict", "measured", "time_us", "best_us", "directives", "best_directives", "why",
)  # fmt: skip
_EACH = (
    Column("kernel", "kernel"), Column("dtype", "type"), Column("from", "from", "prose"), Column("to", "to", "prose"),
    Column("cost", "cost", "number"), Column("interval", "95 %"), Column("verdict", "verdict"),
    Column("time", "time", "number"), Column("best", "best there", "number"),
    Column("directives", "directives", "code"), Column("why", "why there is none", "prose"),
)  # fmt: skip
_MEANS = (
    Column("from", "from", "prose"), Column("to", "to", "prose"), Column("dtype", "type"),
    Column("kernels", "kernels", "number"), Column("mean", "geometric mean of the cost", "number"),
    Column("most", "most", "number"), Column("good", "as good", "number"), Column("failed", "failed", "number"),
    Column("unknown", "not measured", "number"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Transfer:
    """The best ``directives`` of ``own`` in the place of ``there``.

    ``times_us``: theirs, and those of the best of ``there``; None where they have none, and ``why``. ``speedup``:
    theirs over that best, in finals; None: both times are of the screening, a few runs each.
    """

    own: KernelStudy
    there: KernelStudy
    directives: str
    times_us: tuple[float, float] | None
    speedup: Speedup | None = None
    why: str = ""

    @property
    def cost(self) -> float | None:
        return None if self.times_us is None else self.times_us[0] / self.times_us[1]

    @property
    def interval(self) -> tuple[float, float] | None:
        """Return the 95 % interval of the cost."""
        return None if self.speedup is None else (1 / self.speedup.high, 1 / self.speedup.low)

    @property
    def is_measured(self) -> bool:
        """Return whether the configuration was tried there."""
        return self.why != UNKNOWN


def transfers(studies: Sequence[KernelStudy]) -> list[Transfer]:
    """Return each kernel that both of a pair of devices have, for all ordered pairs.

    Results at other targets and sizes are included where they were tried.
    """
    found = []
    for there in studies:
        others = [s for s in studies if s.device != there.device and _loops(s) == _loops(there)]
        for device in dict.fromkeys(s.device for s in others):
            found += _from([s for s in others if s.device == device], there)
    return sorted(found, key=lambda t: (t.there.device, t.there.context.target, t.own.device))


def _from(others: Sequence[KernelStudy], there: KernelStudy) -> list[Transfer]:
    """Return the results of one device; those measured like ``there`` come first."""
    same = [s for s in others if _kind(s) == _kind(there)]
    if same:
        return [_taken(s, there) for s in same]
    usual = [s for s in others if s.kind == there.kind]
    return [made for s in (usual if usual else others) if (made := _taken(s, there)).is_measured]


def _loops(study: KernelStudy) -> tuple[str, ...]:
    context = study.context
    return context.kernel, context.source_hash, context.dtype


def _kind(study: KernelStudy) -> tuple[str, ...]:
    """Return a key that is equal for the same loops at the same sizes, whatever the seeds."""
    return study.context.target, study.context.sizes, study.kind


def _taken(own: KernelStudy, there: KernelStudy) -> Transfer:
    """Return the time of the best configuration, and of those that are as fast as it.

    The best itself where it failed there, else the first that was in the finals there, else the first that was tried.
    """
    tried = [_tried(own, there, text) for text in (own.result.directives, *own.result.ties)]
    first = tried[0]
    if first.is_measured and first.times_us is None:
        return first
    return min(tried, key=lambda t: (t.speedup is None, t.times_us is None, not t.is_measured))


def _tried(own: KernelStudy, there: KernelStudy, text: str) -> Transfer:
    """Return the directives ``text`` there."""
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
            return Transfer(own, there, text, both, paired_speedup(best.times_us, taken.times_us, 0))
    screened = there.screened()
    us, best_us = screened.get(text), screened.get(there.result.directives)
    if us is not None and best_us:
        return Transfer(own, there, text, (us, best_us))
    return Transfer(own, there, text, None, why=_why(rows.get(text)))


def _final(text: str, study: KernelStudy, rows: dict[str, Row]) -> Timed | WrongResult | None:
    """Return what became of these directives in the finals, or of others that make the same kernels."""
    if text in study.finals_outcomes:
        return study.finals_outcomes[text]
    source = rows[text].emitted if text in rows else ""
    same = (t for t in study.finals_outcomes if source and t in rows and rows[t].emitted == source)
    return next((study.finals_outcomes[t] for t in same), None)


def _why(row: Row | None) -> str:
    if row is None or row.outcome is None or isinstance(row.outcome, Timed):
        return UNKNOWN
    return f"{row.status.replace('_', ' ')}: {row.outcome.message}"


def mean(found: Iterable[Transfer]) -> float | None:
    """Return the geometric mean of the costs that are known."""
    return mean_ratio(t.cost for t in found)


def pairs(found: Sequence[Transfer]) -> dict[tuple[str, str, str], list[Transfer]]:
    """Group by device and target of either side, and by type: each group has one geometric mean."""
    groups: dict[tuple[str, str, str], list[Transfer]] = {}
    for t in found:
        groups.setdefault((_where(t.own), _where(t.there), t.there.result.dtype), []).append(t)
    return groups


def means(found: Sequence[Transfer]) -> Table:
    """Return a row for each ordered pair."""
    rows = []
    for (own, there, dtype), same in pairs(found).items():
        costs = [t.cost for t in same if t.cost is not None]
        average = mean(same)
        good = sum(t.speedup is not None and t.speedup.verdict in ("SAME", "FAST") for t in same)
        failed = sum(t.is_measured and t.cost is None for t in same)
        most = "-" if not costs else ratio_text(max(costs))
        rows.append((own, there, dtype, str(len(costs)), "-" if average is None else ratio_text(average), most,
                     str(good), str(failed), str(sum(not t.is_measured for t in same))))  # fmt: skip
    return Table("transfers", "What the best of one device costs on another, in the mean", _MEANS, tuple(rows))


def grid(found: Sequence[Transfer]) -> Table:
    """Return a row for each kernel of each pair."""
    caption = "What the best of one device costs on another: its time over that of the best there"
    return Table("transfer", caption, _EACH, tuple(map(_row, found)))


def _row(t: Transfer) -> tuple[str, ...]:
    cost, interval = t.cost, t.interval
    times = ("-", "-") if t.times_us is None else tuple(map(time_text, t.times_us))
    return (
        t.there.kernel, t.there.kind, t.own.place, t.there.place, "-" if cost is None else ratio_text(cost),
        "-" if interval is None else f"{interval[0]:.3g} .. {interval[1]:.3g}",
        "-" if t.speedup is None else t.speedup.verdict, *times,
        condense(t.directives) if t.directives else "(none)", t.why,
    )  # fmt: skip


def _where(study: KernelStudy) -> str:
    return f"{study.device} ({study.context.target})"


def markdown(found: Sequence[Transfer]) -> str:
    """Return the page of transferred configurations."""
    return "\n".join(["# The best of one device on another", "", NOTE, means(found).markdown(), grid(found).markdown()])


def write(found: Sequence[Transfer], folder: Path) -> Path:
    """Write ``transfer.md`` and ``transfer.csv``; return the path of the page."""
    replace_text(folder / "transfer.csv", csv_text(COLUMNS, map(_record, found)))
    page = folder / "transfer.md"
    replace_text(page, markdown(found))
    return page


def _record(t: Transfer) -> tuple[object, ...]:
    low, high = ("", "") if t.interval is None else (round(edge, 4) for edge in t.interval)
    us, best_us = ("", "") if t.times_us is None else t.times_us
    measured = "" if t.times_us is None else "screening" if t.speedup is None else "finals"
    return (
        t.there.kernel, t.there.result.dtype, t.own.device, t.own.context.target, t.own.sizes, t.there.device,
        t.there.context.target, t.there.sizes, "" if t.cost is None else round(t.cost, 4), low, high,
        "" if t.speedup is None else t.speedup.verdict, measured, us, best_us,
        "; ".join(t.directives.splitlines()), "; ".join(t.there.result.directives.splitlines()), t.why,
    )  # fmt: skip
