"""The times of whole programs as a table: transfers counted, and not counted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from looptune.core.si_units import time_text
from looptune.report.table import Column, Table
from looptune.runtime.timing import ratio_text

_COLUMNS = (
    Column("version", "program"), Column("whole", "whole program", "number"), Column("spread", "spread"),
    Column("kernels", "kernels", "number"), Column("to", "to the device", "number"),
    Column("from", "from it", "number"), Column("over", "over gcc", "number"),
    Column("without", "without transfers", "number"),
)  # fmt: skip


class ProgramTimes(Protocol):
    """The times of one version of a program; see ``looptune.deploy.program.whole``."""

    @property
    def label(self) -> str: ...
    @property
    def runs(self) -> tuple[float, ...]: ...
    @property
    def whole_s(self) -> float: ...
    @property
    def kernel_s(self) -> float | None: ...
    @property
    def to_device_s(self) -> float | None: ...
    @property
    def from_device_s(self) -> float | None: ...
    @property
    def without_transfers_s(self) -> float: ...
    @property
    def on_device(self) -> bool: ...
    @property
    def prints_the_same(self) -> bool: ...


def whole_table(times: Sequence[ProgramTimes]) -> Table:
    """Return the table; the first of ``times`` is the program as it is."""
    rows = tuple(_row(one, times[0]) for one in times)
    return Table("whole", "The whole program", _COLUMNS, rows)


def notes(times: Sequence[ProgramTimes]) -> tuple[str, ...]:
    """Return what has to be said of the times, as sentences."""
    found = [f"{t.label} prints other text than {times[0].label}: sums are added up in another order, or something is "
             "wrong; LOOPTUNE_CHECK=1 compares the calls" for t in times if not t.prints_the_same]  # fmt: skip
    if not any(t.on_device for t in times):
        found.append("no codelet ran on a GPU: the programs run on the cores of this machine")
    found += [f"{t.label} is computed: its kernels were timed alone" for t in times if not t.runs]
    return tuple(found)


def _row(one: ProgramTimes, plain: ProgramTimes) -> tuple[str, ...]:
    def shown(seconds: float | None) -> str:
        return "-" if seconds is None or not one.on_device else time_text(1e6 * seconds)

    runs = one.runs
    spread = f"{time_text(1e6 * min(runs))} .. {time_text(1e6 * max(runs))}, n={len(runs)}" if runs else "computed"
    if one is plain:
        return (one.label, time_text(1e6 * one.whole_s), spread, "-", "-", "-", "-", "-")
    over = ratio_text(plain.whole_s / one.whole_s)
    without = ratio_text(plain.whole_s / one.without_transfers_s) if one.on_device else "-"
    times = (shown(one.kernel_s), shown(one.to_device_s), shown(one.from_device_s))
    return (one.label, time_text(1e6 * one.whole_s), spread, *times, over, without)
