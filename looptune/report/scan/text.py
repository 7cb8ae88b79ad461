"""The findings of a scan as a table of text, as an HTML page and as JSON."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from looptune.core.si_units import time_text
from looptune.report.scan.findings import SIZE, Verdict, hottest_first
from looptune.report.site.document import document
from looptune.report.table import Column, Table

if TYPE_CHECKING:
    from looptune.report.scan.findings import FileFindings, NestFinding

_TUNABLE: tuple[Verdict, ...] = ("parallel", "reduction")
_INTENSITY = f"FLOP/byte: floating-point operations per byte accessed, where each size that is not a constant is {SIZE}"
_WIDTH = 90
"""Characters of a reason in the table of text."""


def text(files: Sequence[FileFindings], options: Sequence[str] = ()) -> str:
    """Return the table of all nests, how many there are of each kind, and the command that tunes the first.

    ``options`` are those of the command line that the printed command needs as well.
    """
    nests = hottest_first(files)
    if not nests:
        return "no loop\n"
    lines = [_table(nests, short=True).text(), "", f"{summary(files)}", f"{_INTENSITY}"]
    best = next((n for n in nests if _is_tunable(n)), None)
    lines += [f"to tune the first that is parallel: {command(best, options)}"] if best is not None else []
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _is_tunable(nest: NestFinding) -> bool:
    return nest.verdict in _TUNABLE and not nest.obstacle


def summary(files: Sequence[FileFindings]) -> str:
    """Return how many nests there are, by verdict; those inside of a nest that is not supported count as well."""
    counts = Counter(n.verdict for file in files for n in file.nests)
    order: tuple[Verdict, ...] = ("parallel", "reduction", "sequential", "unknown", "not supported", "stopped")
    kinds = ", ".join(f"{counts[v]} {v}" for v in order if counts[v])
    read = f"{len(files)} file{'s' * (len(files) != 1)}"
    return f"{sum(counts.values())} loop nests in {read}: {kinds}"


def not_read(files: Sequence[FileFindings]) -> str:
    """Return how many functions, declarations and directives were not read, or "" if all were."""
    count = sum(len(file.problems) for file in files)
    return (
        f"{count} function{'s' * (count > 1)}, declaration{'s' * (count > 1)} or directive{'s' * (count > 1)} not read"
        if count
        else ""
    )


def command(nest: NestFinding, options: Sequence[str] = ()) -> str:
    """Return the command that tunes a nest."""
    words = ["looptune", "run", relative_path(nest.source), "--kernel", nest.kernel, *options, "--sweep"]
    return " ".join(map(shlex.quote, words))


def relative_path(path: str) -> str:
    """Return a path relative to the working directory if it is inside."""
    absolute, here = Path(path).resolve(), Path.cwd()
    return str(absolute.relative_to(here)) if absolute.is_relative_to(here) else path


def page(files: Sequence[FileFindings], title: str, options: Sequence[str] = ()) -> str:
    """Return an HTML page with the table of all nests and the command that tunes each."""
    nests = hottest_first(files)
    problems = [message for file in files for message in file.problems]
    listed = "".join(f"<li><pre>{escape(message)}</pre></li>" for message in problems)
    unread = [f"<details><summary>{not_read(files)}</summary><ul>{listed}</ul></details>"] if problems else []
    body = [
        "<header>", f"<h1>{escape(title)}</h1>", f'<p class="faint">{escape(summary(files))}</p>', "</header>",
        "<main>", "<section>", f"<p>{escape(_INTENSITY)}.</p>", _table(nests, options=options).html(), *unread,
        "</section>", "</main>",
    ]  # fmt: skip
    return document(title, body, ("tables.js",))


def record(files: Sequence[FileFindings], options: Sequence[str] = ()) -> dict[str, Any]:
    """Return the findings as a JSON object; docs/scan.md lists the fields."""
    return {
        "nests": [
            {**asdict(n), "command": command(n, options) if _is_tunable(n) else None} for n in hottest_first(files)
        ],
        "files": [{"path": f.path, "problems": list(f.problems), "missing": list(f.missing)} for f in files],
    }


def _table(nests: Sequence[NestFinding], *, short: bool = False, options: Sequence[str] = ()) -> Table:
    profiled = any(n.profile is not None for n in nests)
    columns = [Column("share", "share", "number"), Column("seconds", "time", "number")] if profiled else []
    columns += [
        Column("place", "nest", "code"), Column("function", "function"), Column("loops", "loops"),
        Column("parallel", "parallel, + sums"), Column("verdict", "verdict"),
        Column("intensity", "FLOP/byte", "number"), Column("reason", "why not parallel"),
    ]  # fmt: skip
    columns += [] if short else [Column("command", "command", "code")]
    rows = (tuple(_cells(n, profiled, short, options)) for n in nests)
    return Table("nests", "Loop nests", tuple(columns), tuple(rows))


def _cells(n: NestFinding, profiled: bool, short: bool, options: Sequence[str]) -> Iterator[str]:
    if profiled:
        ran = n.profile is not None and n.profile.runs > 0
        yield f"{100 * n.profile.share:.1f}%" if n.profile is not None and ran else "-"
        yield time_text(n.profile.seconds * 1e6) if n.profile is not None and ran else "-"
    yield f"{'  ' * n.inside}{relative_path(n.path)}:{n.line}"
    yield n.function
    yield " ".join(f.variable for f in n.loops) if n.loops else f"{n.depth} deep"
    yield ", ".join(f.variable + "+" * (f.verdict == "reduction") for f in n.loops if f.verdict in _TUNABLE) or "-"
    yield n.verdict
    yield f"{n.intensity:.2f}" if n.intensity is not None else "-"
    races = (f"data race: {race}" for race in n.races)
    limits = (f"cannot be compiled: {n.obstacle}",) if n.obstacle else ()
    reason = "\n".join((*races, *((n.reason,) if n.reason else ()), *limits))
    yield _shortened(reason) if short else reason
    if not short:
        yield command(n, options) if _is_tunable(n) else ""


def _shortened(reason: str) -> str:
    first = reason.partition("\n")[0]
    return first if len(first) <= _WIDTH else f"{first[: _WIDTH - 3].rstrip()}..."
