"""A suite on one page: every kernel's default, hand-written and tuned time, and the geometric means of the ratios.

speed-up over default = default time / time        the mean of ratios is geometric, as in the InPar 2012 paper

Several models of device are another page, with a row for each kernel on each and the directives that won there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import geometric_mean
from typing import TYPE_CHECKING

from looptune.core.cache_file import replace_text
from looptune.core.si_units import time_text
from looptune.report.result_table import TIMELINE, counts, timeline
from looptune.report.table import Column, Table, csv_text, plain_columns
from looptune.runtime.objective import QUANTITIES
from looptune.runtime.timing import ratio_text
from looptune.tune.results.studies import USUAL, sizes

if TYPE_CHECKING:
    from looptune.core.settings import Objective
    from looptune.tune.results.result import Result

HEADINGS = (
    "kernel", "sizes", "default", "hand-written", "tuned", "speed-up by hand", "speed-up tuned", "tuned over hand",
    "versions",
)  # fmt: skip
RATIOS = (("default", "hand-written"), ("default", "tuned"), ("hand-written", "tuned"))
"""The columns of ratios: the time of the first over the time of the second."""
COLUMNS = (
    "kernel", "device", "target", "dtype", "sizes", "default_us", "handwritten_us", "tuned_us",
    "handwritten_over_default", "tuned_over_default", "tuned_over_handwritten", "directives", "asserted", "objective",
)  # fmt: skip

MODELS_HEADINGS = (
    "kernel", "sizes", "device", "default", "hand-written", "tuned", "speed-up tuned", "versions", "directives",
)  # fmt: skip

NOTE = """\
Times are medians of paired rounds, transfers not included; every version was compared with the original loops. A
speed-up is the default's time over the version's. The geometric means are over the kernels that have both times.
"""
MODELS_NOTE = """\
Every version was compared with the original loops and measured on each model; times are medians of paired rounds on one
device of the model. A speed-up is the default's time over the tuned version's, both on that model.
"""


def ratio(result: Result, base: str, other: str) -> float | None:
    """Return by which factor ``other`` is faster than ``base``, or None if one was not measured or both disturbed."""
    if result.disturbed:
        return None
    over, under = result.median_us(base), result.median_us(other)
    return None if over is None or not under else over / under


def mean(results: Sequence[Result], base: str, other: str) -> float | None:
    """Return the geometric mean over the kernels where both were measured."""
    return mean_ratio(ratio(result, base, other) for result in results)


def mean_ratio(ratios: Iterable[float | None]) -> float | None:
    """Return the geometric mean of the ratios that are known, or None if none is."""
    known = [ratio for ratio in ratios if ratio is not None]
    return geometric_mean(known) if known else None


def rows(results: Sequence[Result]) -> list[tuple[str, ...]]:
    """Return a text for each of HEADINGS: one line a kernel, then the means."""
    made = [_row(result) for result in results]
    means = (mean(results, base, other) for base, other in RATIOS)
    return [*made, ("geometric mean", "", "", "", "", *(_shown(m) for m in means), "")]


def _objective(results: Sequence[Result]) -> Objective:
    """Return what chose the tuned versions, but those of which no energy is known."""
    return next((r.objective for r in results if r.objective != "time"), "time")


def _savings(results: Sequence[Result]) -> list[str]:
    """Return how many times less energy, or EDP, than the default each tuned version has, then the mean."""
    known = [None if (e := r.entry("tuned")) is None or r.disturbed else r.saving(e) for r in results]
    ratios = [None if one is None else one.ratio for one in known]
    return [*(_shown(ratio) for ratio in ratios), _shown(mean_ratio(ratios))]


def _row(result: Result) -> tuple[str, ...]:
    times = (_time(result, name) for name in ("default", "hand-written", "tuned"))
    ratios = (_ratio_text(result, base, other) for base, other in RATIOS)
    return (result.kernel, sizes(result), *times, *ratios, _tried(result))


def _tried(result: Result) -> str:
    return f"{result.versions.get('timed', 0)} of {result.versions.get('space', 0)}"


def _time(result: Result, name: str) -> str:
    time = result.median_us(name)
    return "-" if time is None else f"{time_text(time)}{_word(result, name)}"


def _word(result: Result, name: str) -> str:
    """Return the mark of a version that rests on the user's word."""
    entry = result.entry(name)
    return " (asserted)" if entry is not None and entry.asserted else ""


def _ratio_text(result: Result, base: str, other: str) -> str:
    return "disturbed" if result.disturbed else _shown(ratio(result, base, other))


def _shown(value: float | None) -> str:
    return "-" if value is None else ratio_text(value)


def _table(results: Sequence[Result]) -> Table:
    """Return a line for each kernel, then the means; each kernel's name leads to its page."""
    headings: tuple[str, ...] = HEADINGS
    lines, objective = rows(results), _objective(results)
    if objective != "time":
        headings = (*HEADINGS[:-1], f"less {QUANTITIES[objective]}", HEADINGS[-1])
        lines = [(*line[:-1], less, line[-1]) for line, less in zip(lines, _savings(results), strict=True)]
    kernel, *others = plain_columns(headings, headings[2:])
    links = tuple(f"{result.kernel}.md" for result in results)
    return Table("summary", "", (replace(kernel, links=links), *others), tuple(lines), total=True)


def plain(results: Sequence[Result]) -> str:
    """Return the summary as lines of text."""
    return "\n".join([title(results), "", _table(results).text()])


def time_spent(results: Sequence[Result], elapsed_s: float) -> str:
    """Return how the time was spent, in one line for all kernels.

    Device seconds add up, though their sweeps ran at once; nothing was measured in the rest of the time. "" if it is
    unknown.
    """
    if not all(r.seconds for r in results):
        return ""
    spent = {name: math.fsum(r.seconds.get(name, 0.0) for r in results) for r in results for name in r.seconds}
    busy = math.fsum(spent.get(name, 0.0) for name in TIMELINE if name != "waiting")
    return timeline("time of all", spent | {"waiting": max(0.0, elapsed_s - busy)}, max(r.devices for r in results))


def title(results: Sequence[Result]) -> str:
    """Return the title of a summary: number of kernels, type and device."""
    first = results[0]
    kernels = len({result.kernel for result in results})
    what = f"{kernels} kernel{'s' if kernels > 1 else ''}"
    what += f", {len(results)} sizes" if len(results) > kernels else ""
    objective = _objective(results)
    by = "" if objective == "time" else f", least {QUANTITIES[objective]}"
    return f"{what}, {first.dtype}, {first.facts.name} ({first.target}){by}"


def markdown(results: Sequence[Result], command: str, spent: str = "") -> str:
    """Return the summary as a page, with the command that made it and on what its time was ``spent``."""
    won = tuple((f"{r.kernel}{_word(r, 'tuned')}", r.directives) for r in results)
    columns = (Column("kernel", "kernel"), Column("directives", "winning directives", "code"))
    best = [Table("winners", "", columns, won).markdown()] if any(r.directives for r in results) else []
    device = results[0].facts
    facts = f"Device: {device.name}, {device.arch}, {device.cores} cores, driver {device.driver_name}.  "
    how = [f"{spent.capitalize()}.  "] if spent else []
    table = _table(results).markdown()
    return "\n".join([f"# {title(results)}", "", table, *best, facts, *how, f"Command: `{command}`", "", NOTE])


def write(results: Sequence[Result], reports: Path, command: str, spent: str = "") -> Path:
    """Write ``summary-<dtype>.md`` and ``.csv`` to the device's folder.

    The name of an unusual target is appended, and of an objective that is not time.

    The path of the page.
    """
    folder = reports / results[0].facts.slug
    folder.mkdir(parents=True, exist_ok=True)
    own = [results[0].dtype, *(t for t in (results[0].target,) if t not in USUAL)]
    own += [] if _objective(results) == "time" else [_objective(results)]
    page = folder / f"summary-{'-'.join(own)}.md"
    replace_text(page, markdown(results, command, spent))
    records = []
    for result in results:
        ratios = {
            f"{other}_over_{base}".replace("-", ""): round(r, 4)
            for base, other in RATIOS
            if (r := ratio(result, base, other)) is not None
        }
        record = result.record()
        named = " ".join(f"{n}={v}" for n, v in result.sizes.items())
        given = {"sizes": named, "asserted": " ".join(record["asserted"])}
        records.append(record | ratios | given)
    replace_text(page.with_suffix(".csv"), csv_text(COLUMNS, records))
    return page


def failures(results: Sequence[Result]) -> list[str]:
    """Return the failures of all sweeps by kernel: wrong results, crashes, time-outs, versions that were not built."""
    bad = ("wrong", "crashed", "timed_out", "not_built", "over_limit")
    return [f"{r.kernel}: {counts(r)}" for r in results if any(r.versions.get(b) for b in bad)]


def group_by_model(results: Sequence[Result]) -> Mapping[tuple[str, str, int], list[Result]]:
    """Return the results by model of device, in the order of measurement."""
    found: dict[tuple[str, str, int], list[Result]] = {}
    for result in results:
        found.setdefault(result.facts.model, []).append(result)
    return found


def models_table(results: Sequence[Result]) -> Table:
    """Return a line for each kernel on each device, whose name leads to the page, with those of a kernel together."""
    kernels = list(dict.fromkeys((r.kernel, sizes(r)) for r in results))
    ordered = sorted(results, key=lambda r: kernels.index((r.kernel, sizes(r))))
    columns = list(plain_columns(MODELS_HEADINGS, MODELS_HEADINGS[3:8]))
    columns[2] = replace(columns[2], links=tuple(f"{r.facts.slug}/{r.kernel}.md" for r in ordered))
    columns[-1] = replace(columns[-1], kind="code")
    return Table("models", "", tuple(columns), tuple(map(_models_row, ordered)))


def _models_row(result: Result) -> tuple[str, ...]:
    times = (result.median_us(name) for name in ("default", "hand-written", "tuned"))
    shown = ("-" if us is None else time_text(us) for us in times)
    over = _ratio_text(result, "default", "tuned")
    return result.kernel, sizes(result), result.facts.name, *shown, over, _tried(result), result.directives


def write_models(results: Sequence[Result], reports: Path, command: str) -> Path:
    """Write ``models-<dtype>.md`` beside the folders of the devices; return its path."""
    reports.mkdir(parents=True, exist_ok=True)
    page = reports / f"models-{results[0].dtype}.md"
    head = f"# {len(group_by_model(results))} models of device, {results[0].dtype}"
    table = models_table(results).markdown()
    replace_text(page, "\n".join([head, "", table, f"Command: `{command}`", "", MODELS_NOTE]))
    return page
