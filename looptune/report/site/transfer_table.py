"""The table of Figure 10: what the best of each device costs on the others, kernel by kernel, and in the mean.

    from  to  kernels  geometric mean  as good            kernel  from  to  cost, interval, verdict  directives

``transfer.md`` has both, ``transfer.csv`` every number of the second.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from looptune.core.cache_file import replace_text
from looptune.report.best_table import condense
from looptune.report.figures.transfer import Transfer, mean
from looptune.report.result_table import ratio_text, time_text
from looptune.report.table import Column, Table, csv_text

if TYPE_CHECKING:
    from looptune.tune.results.studies import KernelStudy

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
