"""Add to the nests of a scan how long they take in a run of their program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from looptune.frontend.survey import survey
from looptune.report.scan.findings import FileFindings, Profile
from looptune.runtime.nest_profile import NestTimes, ProgramFile, measure

if TYPE_CHECKING:
    from looptune.report.scan.sources import Source


def profiled(
    sources: Sequence[Source], files: Sequence[FileFindings], arguments: Sequence[str], link: Sequence[str]
) -> tuple[list[FileFindings], NestTimes]:
    """Return the findings with the times of their nests, and the times.

    The sources together are the program. Nests of headers, and nests that a macro makes, have no time. Raises
    UsageError if the program cannot be built or run.
    """
    numbers: dict[tuple[str, int], int] = {}
    program: list[ProgramFile] = []
    for source, file in zip(sources, files, strict=True):
        nests = {}
        if file.nests:
            read = survey(source.path, defines=dict(source.defines), include_dirs=source.include_dirs, tolerant=True)
            for n in file.nests:
                extent = read.extent(read.nests[n.number]) if n.path == str(source.path) else None
                if extent is not None:
                    numbers[n.source, n.number] = len(numbers)
                    nests[numbers[n.source, n.number]] = extent
        program.append(ProgramFile(source.path, _text(source.path), source.flags, nests))
    times = measure(program, arguments, link)
    return [_with_times(file, numbers, times) for file in files], times


def _text(path: Path) -> str:
    return path.read_text(errors="surrogateescape")


def _with_times(file: FileFindings, numbers: dict[tuple[str, int], int], times: NestTimes) -> FileFindings:
    found = []
    for n in file.nests:
        number = numbers.get((n.source, n.number))
        runs, seconds = times.nests[number] if number is not None else (0, 0.0)
        profile = Profile(runs, seconds, seconds / times.program_s) if number is not None else None
        found.append(replace(n, profile=profile))
    return replace(file, nests=tuple(found))
