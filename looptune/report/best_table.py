"""The tables of a report: the best configuration of each kernel, and the times beside what they are compared with.

    best     kernel, size, type, directives, time with spread, over default, over hand-written, proof
    times    kernel, size, type, sequential, default, best, number of versions

These are Table 3 and Table 2 of Grauer-Gray et al., InPar 2012.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from looptune.core.cache_file import replace_text
from looptune.core.si_units import time_text
from looptune.report import suite_table
from looptune.report.result_table import ENERGY_HEADINGS, energy_cells, objective_cells, objective_headings
from looptune.report.table import Column, Table
from looptune.runtime.timing import ratio_text

if TYPE_CHECKING:
    from looptune.runtime.timing import Speedup, Summary
    from looptune.tune.results.result import Entry, Result
    from looptune.tune.results.studies import KernelStudy

_WHAT = (Column("kernel", "kernel"), Column("size", "size", "prose"), Column("dtype", "type"))
_DEVICE = Column("device", "device", "prose")
_BEST = (
    Column("directives", "directives", "code"), Column("time", "time", "number"), Column("spread", "quartiles"),
    Column("over_default", "over default", "number"), Column("over_handwritten", "over hand-written", "number"),
    Column("proof", "proof", "prose"),
)  # fmt: skip
_ENERGY = tuple(Column(name, name, "number") for name in ENERGY_HEADINGS)
_TIMES = tuple(
    Column(key, heading, "number")
    for key, heading in (("sequential", "sequential"), ("default", "default"), ("handwritten", "hand-written"),
                         ("best", "best"), ("versions", "versions"), ("timed", "timed"), ("space", "in the space"))
)  # fmt: skip


def best(studies: Sequence[KernelStudy]) -> Table:
    """Return the best configuration of each kernel, with a column for the device if there are several.

    Energy, power and clock have columns if the energy of a best version was measured.
    """
    energy = [None if (tuned := tuned_entry(s.result)) is None else tuned.energy for s in studies]
    measured, by = any(one is not None for one in energy), studies[0].result.objective if studies else "time"
    rows = [(*_what(s, studies), *_best_row(s)) for s in studies]
    caption = f"The best configuration of each kernel on {devices(studies)}"
    columns = (*_what_columns(studies), *_BEST)
    if measured:
        cells = [(*energy_cells(one), *_chosen_cells(s)) for s, one in zip(studies, energy, strict=True)]
        rows = [(*row[:-1], *own, row[-1]) for row, own in zip(rows, cells, strict=True)]
        chosen = (Column(name.replace(" ", "_"), name, "number") for name in objective_headings(by))
        columns = (*columns[:-1], *_ENERGY, *chosen, columns[-1])
    return Table("best", caption, columns, tuple(rows))


def times(studies: Sequence[KernelStudy]) -> Table:
    """Return the times with which the best is compared, and the number of versions tried."""
    rows = [(*_what(s, studies), *_times_row(s.result)) for s in studies]
    caption = f"Times of one run, and the versions tried, on {devices(studies)}"
    return Table("times", caption, (*_what_columns(studies), *_TIMES), tuple(rows))


def devices(studies: Sequence[KernelStudy]) -> str:
    """Return the names of the devices of the studies."""
    return ", ".join(dict.fromkeys(s.device for s in studies))


def _chosen_cells(study: KernelStudy) -> tuple[str, ...]:
    return objective_cells(study.result, tuned_entry(study.result))


def _what_columns(studies: Sequence[KernelStudy]) -> tuple[Column, ...]:
    return (*_WHAT, _DEVICE) if _several(studies) else _WHAT


def _what(study: KernelStudy, studies: Sequence[KernelStudy]) -> tuple[str, ...]:
    named = (study.kernel, study.sizes, study.kind)
    return (*named, study.device) if _several(studies) else named


def _several(studies: Sequence[KernelStudy]) -> bool:
    return len({s.device for s in studies}) > 1


def _best_row(study: KernelStudy) -> tuple[str, ...]:
    result = study.result
    tuned = tuned_entry(result)
    if tuned is None or tuned.times is None:
        return (condense(result.directives), "-", "-", "-", "-", proof(result))
    over = result.entry("default") if tuned.name == "default" else tuned
    quartiles = f"{time_text(tuned.times.q1_us)} .. {time_text(tuned.times.q3_us)}"
    return (
        condense(result.directives) if result.directives else "(none)", time_text(tuned.times.median_us), quartiles,
        _over(None if over is None else over.speedup, suite_table.ratio(result, "default", "tuned")),
        _over(result.over_hand, suite_table.ratio(result, "hand-written", "tuned")), proof(result),
    )  # fmt: skip


def condense(directives: str) -> str:
    """Join lines that give the same directive to several loops into one line, as space files do.

    >>> print(condense("loop 1: unroll 8, jam\\nloop 4: unroll 8, jam\\nloop 2: unroll 4"))
    loop 1, 4: unroll 8, jam
    loop 2: unroll 4
    """
    lines: list[tuple[str, str]] = []
    for line in directives.splitlines():
        place, _, what = line.partition(":")
        kind, _, loop = place.partition(" ")
        if lines and loop and lines[-1][1] == what and lines[-1][0].startswith(f"{kind} "):
            lines[-1] = f"{lines[-1][0]}, {loop.strip()}", what
        else:
            lines.append((place, what))
    return "\n".join(f"{place}:{what}" if what else place for place, what in lines)


def tuned_entry(result: Result) -> Entry | None:
    """Return the best entry: the tuned version, or the default if nothing else was timed."""
    tuned = result.entry("tuned")
    return tuned if tuned is not None else result.entry("default")


def _over(speedup: Speedup | None, ratio: float | None) -> str:
    """Return the speed-up with its verdict if runs were paired, else the ratio of the medians alone."""
    if speedup is not None:
        return str(speedup)
    return "-" if ratio is None else ratio_text(ratio)


def proof(result: Result) -> str:
    """Return how far the proof of the winner reached; databases of earlier versions do not record it."""
    said = result.status if result.status else "not recorded"
    return f"{said}, reordering {', '.join(result.sums)}" if result.sums else said


def _times_row(result: Result) -> tuple[str, ...]:
    medians = (result.median_us(name) for name in ("sequential", "default", "hand-written"))
    tuned = tuned_entry(result)
    shown = ["-" if us is None else time_text(us) for us in medians]
    own = "-" if tuned is None or tuned.times is None else time_text(tuned.times.median_us)
    own += " (disturbed)" if result.disturbed else ""
    return (*shown, own, str(result.tried), str(result.versions.get("timed", 0)), str(result.versions.get("space", 0)))


def record(study: KernelStudy) -> dict[str, Any]:
    """Return the numbers of both tables: microseconds, and ratios with their 95 % intervals."""
    r, tuned = study.result, tuned_entry(study.result)
    return {
        "kernel": r.kernel, "device": study.device, "target": r.target, "dtype": r.dtype, "kind": study.kind,
        "sizes": dict(r.sizes), "directives": r.directives, "ties": list(r.ties), "status": r.status,
        "proof": r.proof, "sums": list(r.sums), "command": r.command, "versions": dict(r.versions),
        **{f"{e.name.replace('-', '')}_us": _times(e.times) for e in r.entries},
        "over_default": _interval(_tuned_speedup(r)), "over_handwritten": _interval(r.over_hand),
        "energy": None if tuned is None or tuned.energy is None else asdict(tuned.energy),
        "objective": r.objective, "saving": None if tuned is None else _interval(r.saving(tuned)),
    }  # fmt: skip


def _tuned_speedup(result: Result) -> Speedup | None:
    tuned = result.entry("tuned")
    return None if tuned is None else tuned.speedup


def _times(times: Summary | None) -> dict[str, float] | None:
    return None if times is None else {"median": times.median_us, "q1": times.q1_us, "q3": times.q3_us, "n": times.n}


def _interval(speedup: Speedup | None) -> dict[str, float | str | None] | None:
    """``high`` is None where the ratio is only known to be at least that."""
    if speedup is None:
        return None
    high = None if speedup.is_least else speedup.high
    return {"ratio": speedup.ratio, "low": speedup.low, "high": high, "verdict": speedup.verdict}


def write(studies: Sequence[KernelStudy], folder: Path) -> list[Path]:
    """Write the files of both tables.

    These are ``table-best`` and ``table-times`` as .md, .csv and .tex, and ``table-best.json`` with the numbers of
    both.
    """
    written = []
    for grid in (best(studies), times(studies)):
        for suffix, text in (("md", grid.markdown()), ("csv", grid.csv()), ("tex", grid.latex())):
            written.append(folder / f"table-{grid.label}.{suffix}")
            replace_text(written[-1], text)
    written.append(folder / "table-best.json")
    replace_text(written[-1], (json.dumps([record(s) for s in studies], indent=1) + "\n"))
    return written
