"""Several models of device on one page: a row for each kernel on each, and the directives that won there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from looptune.core.cache_file import replace_text
from looptune.report.result_table import ratio_text, time_text
from looptune.report.suite_table import ratio
from looptune.report.table import Table, plain_columns
from looptune.tune.results.studies import sizes

if TYPE_CHECKING:
    from looptune.tune.results.result import Result

HEADINGS = ("kernel", "sizes", "device", "default", "hand-written", "tuned", "speed-up tuned", "versions", "directives")

NOTE = """\
Every version was compared with the original loops and measured on each model; times are medians of paired rounds on one
device of the model. A speed-up is the default's time over the tuned version's, both on that model.
"""


def group_by_model(results: Sequence[Result]) -> Mapping[tuple[str, str, int], list[Result]]:
    """Return the results by model, in the order of measurement."""
    found: dict[tuple[str, str, int], list[Result]] = {}
    for result in results:
        found.setdefault(result.facts.model, []).append(result)
    return found


def row(result: Result) -> tuple[str, ...]:
    """Return a text for each of HEADINGS."""
    times = (result.median_us(name) for name in ("default", "hand-written", "tuned"))
    over = ratio(result, "default", "tuned")
    tried = f"{result.versions.get('timed', 0)} of {result.versions.get('space', 0)}"
    shown = ("-" if t is None else time_text(t) for t in times)
    return (
        result.kernel, sizes(result), result.facts.name, *shown, "-" if over is None else ratio_text(over), tried,
        result.directives,
    )  # fmt: skip


def _ordered(results: Sequence[Result]) -> list[Result]:
    """Return a kernel's rows together, for they are compared."""
    kernels = list(dict.fromkeys((r.kernel, sizes(r)) for r in results))
    return sorted(results, key=lambda r: kernels.index((r.kernel, sizes(r))))


def _table(results: Sequence[Result]) -> Table:
    """Return a line for each kernel on each device, whose name leads to the page."""
    ordered = _ordered(results)
    columns = list(plain_columns(HEADINGS, HEADINGS[3:8]))
    columns[2] = replace(columns[2], links=tuple(f"{r.facts.slug}/{r.kernel}.md" for r in ordered))
    columns[-1] = replace(columns[-1], kind="code")
    return Table("models", "", tuple(columns), tuple(map(row, ordered)))


def plain(results: Sequence[Result]) -> str:
    """Return the results as text."""
    return _table(results).text()


def markdown(results: Sequence[Result], command: str) -> str:
    """Return the rows as a page."""
    head = f"# {len(group_by_model(results))} models of device, {results[0].dtype}"
    return "\n".join([head, "", _table(results).markdown(), f"Command: `{command}`", "", NOTE])


def write(results: Sequence[Result], reports: Path, command: str) -> Path:
    """Write ``models-<dtype>.md`` beside the folders of the devices; return its path."""
    reports.mkdir(parents=True, exist_ok=True)
    page = reports / f"models-{results[0].dtype}.md"
    replace_text(page, markdown(results, command))
    return page
