"""Analyse every loop nest of a program, several files side by side, none of them for longer than a limit.

    sources of a program ─▶ survey of each ─▶ analysis of each nest ─▶ NestFinding

A file is one task. If a task exceeds the limit or its process ends, each nest of the file becomes a task of its own, so
that one nest that cannot be analysed in time does not hide the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import TimeoutError as OverTime
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pebble import ProcessExpired, ProcessPool

from looptune.core.errors import LooptuneError, UnsupportedError
from looptune.core.source import location
from looptune.frontend.survey import Survey, survey
from looptune.frontend.worksharing import worksharing_loops
from looptune.ir import operation_count
from looptune.ir.nodes import Array, Codelet, Scalar
from looptune.ir.simplify import is_integer
from looptune.poly.footprint import elements
from looptune.report.check.loop_facts import Kind, LoopFacts, facts_of_order
from looptune.report.check.nest_facts import MOST_PAIRS, compared_pairs, nest_facts
from looptune.report.check.nests import own_loops
from looptune.report.check.races import races
from looptune.report.check.text import because, dependence_ends
from looptune.report.check.text_names import in_text_names
from looptune.schedule.analysis import Analysis

if TYPE_CHECKING:
    from looptune.frontend.survey import SurveyedNest
    from looptune.report.scan.sources import Source

Verdict = Literal["parallel", "reduction", "sequential", "unknown", "not supported", "stopped"]

SIZE = 500
"""The value of a size that the text does not give, for the arithmetic intensity."""
LIMIT_S = 60.0
"""Seconds after which the analysis of a nest is stopped."""
FILE_LIMIT_S = 300.0
"""Seconds after which the nests of a file are analysed one by one."""


@dataclass(frozen=True, slots=True)
class LoopFinding:
    """A loop of a nest: its verdict, and for one that is not parallel the reason."""

    variable: str
    line: int
    depth: int
    verdict: Kind
    reason: str


@dataclass(frozen=True, slots=True)
class Profile:
    """How often a nest ran and its time, in seconds and as a share of the program's."""

    runs: int
    seconds: float
    share: float


@dataclass(frozen=True, slots=True)
class NestFinding:
    """A loop nest of a program.

    ``number`` is its place among the nests of ``source``, the file that was read; ``path`` is the file in which its
    text stands; ``kernel`` is its name for --kernel. ``reason`` says why it is not parallel, not supported, or was
    stopped. ``intensity``: floating-point operations for each byte that has to be moved, at sizes of ``SIZE``.
    ``inside``: it is a part of a nest that is not compiled. ``obstacle``: why it cannot be compiled, "" if it can; the
    nests inside that can be are nests of their own, whose loops it does not list. ``races`` are those of its OpenMP or
    OpenACC pragmas.
    """

    source: str
    number: int
    path: str
    line: int
    column: int
    function: str
    kernel: str
    depth: int
    verdict: Verdict
    loops: tuple[LoopFinding, ...]
    reason: str
    intensity: float | None
    inside: bool
    obstacle: str = ""
    races: tuple[str, ...] = ()
    profile: Profile | None = None


@dataclass(frozen=True, slots=True)
class FileFindings:
    """The nests of a file; ``problems`` are messages about what cannot be read, ``missing`` headers not found."""

    path: str
    nests: tuple[NestFinding, ...]
    problems: tuple[str, ...]
    missing: tuple[str, ...]


def scan(sources: Sequence[Source], workers: int, done: Callable[[int], None] = lambda _: None) -> list[FileFindings]:
    """Return the findings about each file, in the order of the files; ``done`` is told how many are ready.

    A nest of a header that several files include is listed once.
    """
    found: list[FileFindings] = []
    with ProcessPool(max_workers=max(1, workers)) as pool:
        tasks = [pool.schedule(_file, args=(source,), timeout=FILE_LIMIT_S) for source in sources]
        for k, (source, task) in enumerate(zip(sources, tasks, strict=True)):
            found.append(_result(task)[0] or _nest_by_nest(pool, source))
            done(k + 1)
    return _once(found)


def _result(task: Any) -> tuple[Any, str]:
    """Return what a task computed, or None and the reason why it computed nothing."""
    try:
        return task.result(), ""
    except OverTime:
        return None, f"the analysis took more than {LIMIT_S:g} s"
    except ProcessExpired:
        return None, "the process of the analysis ended"
    except Exception as error:
        # an error of ours in one nest must not hide the others
        return None, f"the analysis failed, which is an error in looptune: {type(error).__name__}: {error}"


def _nest_by_nest(pool: ProcessPool, source: Source) -> FileFindings:
    path = str(source.path)
    listed, why = _result(pool.schedule(_listed, args=(source,), timeout=FILE_LIMIT_S))
    if listed is None:
        return FileFindings(path, (), (f"{path}: {why}",), ())
    tasks = [pool.schedule(_one, args=(source, k), timeout=LIMIT_S) for k in range(len(listed.nests))]
    nests: list[NestFinding] = []
    for nest, task in zip(listed.nests, tasks, strict=True):
        found, why = _result(task)
        nests.append(found or replace(nest, reason=why))
    return FileFindings(path, tuple(nests), listed.problems, listed.missing)


def _once(found: Sequence[FileFindings]) -> list[FileFindings]:
    seen: set[tuple[str, int, int]] = set()
    kept = []
    for file in found:
        own = [n for n in file.nests if (n.path, n.line, n.column) not in seen]
        seen |= {(n.path, n.line, n.column) for n in own}
        kept.append(replace(file, nests=tuple(own)))
    return kept


# -- in a worker ----------------------------------------------------------------------------------


@lru_cache(maxsize=4)
def _survey(source: Source) -> Survey:
    return survey(source.path, defines=dict(source.defines), include_dirs=source.include_dirs, tolerant=True)


def _file(source: Source) -> FileFindings:
    return _findings(source, _finding)


def _listed(source: Source) -> FileFindings:
    """Return the nests as they are shown if their analysis is stopped."""
    return _findings(source, _stopped)


def _one(source: Source, number: int) -> NestFinding:
    return _finding(source, number, _survey(source).nests[number])


def _findings(source: Source, of: Callable[[Source, int, SurveyedNest], NestFinding]) -> FileFindings:
    path = str(source.path)
    try:
        read = _survey(source)
    except LooptuneError as error:
        return FileFindings(path, (), (str(error),), ())
    nests = tuple(of(source, k, nest) for k, nest in enumerate(read.nests))
    return FileFindings(path, nests, tuple(map(str, read.skipped)), tuple(name for name, _ in read.missing))


def _stopped(source: Source, number: int, nest: SurveyedNest) -> NestFinding:
    return _made(source, number, nest, "stopped", (), "", None)


def _finding(source: Source, number: int, nest: SurveyedNest) -> NestFinding:
    refusal = "" if nest.refusal is None else f"{nest.refusal.message}, {location(nest.refusal.span, nest.span)}"
    if nest.codelet is None and nest.order is not None:
        shown = (_loop(facts_of_order(nest.order, nest.span)),)
        return _made(source, number, nest, "sequential", shown, _reasons(shown), None, refusal)
    if nest.codelet is None:
        return _made(source, number, nest, "not supported", (), refusal, None)
    try:
        analysis = _analysis(nest.codelet)
        facts = tuple(nest_facts(nest.codelet, analysis, nest.flags))
        loops = tuple(map(_loop, in_text_names(own_loops(facts, nest), nest.names)))
        intensity = _intensity(analysis) if isinstance(analysis, Analysis) else None
        found = _made(source, number, nest, _verdict(loops), loops, _reasons(loops), intensity, refusal)
        wrong = races(worksharing_loops(nest.function.body), facts, nest.names)
        return replace(found, races=tuple(f"{r.title}, line {r.span.line}: {r.what}" for r in wrong))
    except LooptuneError as error:
        return _made(source, number, nest, "not supported", (), error.message, None)


def _analysis(codelet: Codelet) -> Analysis | LooptuneError:
    if compared_pairs(codelet) > MOST_PAIRS:
        return UnsupportedError("its statements are too many to compare all of them", codelet.span)
    try:
        return Analysis(codelet)
    except LooptuneError as error:
        return error


def _made(
    source: Source, number: int, nest: SurveyedNest, verdict: Verdict, loops: tuple[LoopFinding, ...], reason: str,
    intensity: float | None, obstacle: str = "",
) -> NestFinding:  # fmt: skip
    at = nest.span
    return NestFinding(str(source.path), number, at.file, at.line, at.col, nest.function.name, nest.kernel, nest.depth,
                       verdict, loops, reason, None if obstacle else intensity, nest.inside, obstacle)  # fmt: skip


def _loop(f: LoopFacts) -> LoopFinding:
    reason = because(f)
    if f.reason is not None and f.left_at is None and f.ordered_at is None and f.data is None:
        reason = "; ".join((reason, *(" ".join(end.split()) for end in dependence_ends(f.reason.dependence, f.span))))
    return LoopFinding(f.var, f.span.line, f.depth, f.kind, reason)


def _verdict(loops: Sequence[LoopFinding]) -> Verdict:
    """Return the best verdict on a loop; "unknown" if none is parallel and one cannot be analysed."""
    kinds = {f.verdict for f in loops}
    order: tuple[Kind, ...] = ("parallel", "reduction", "unknown", "sequential")
    return next(kind for kind in order if kind in kinds)


def _reasons(loops: Sequence[LoopFinding]) -> str:
    return "\n".join(f"{f.variable}: {f.reason}" for f in loops if f.reason and f.verdict != "parallel")


def _intensity(analysis: Analysis) -> float | None:
    """Return the floating-point operations for each byte of the elements that are accessed, or None if unknown."""
    codelet: Codelet = analysis.codelet
    sizes = {p.name: SIZE for p in codelet.params if isinstance(p, Scalar) and is_integer(p.dtype)}
    operations = operation_count.count(codelet.body, sizes)
    itemsize = {p.name: np.dtype(p.dtype).itemsize for p in codelet.params if isinstance(p, Array)}
    counts = elements(analysis.model, sizes, assume=True)
    if not operations or not counts or not all(counts.values()):
        return None
    return operations / sum(count * itemsize[name] for name, count in counts.items())


def hottest_first(files: Sequence[FileFindings]) -> list[NestFinding]:
    """Return all nests: the hottest first if the program was profiled, else in the order of the text."""
    nests = [n for file in files for n in file.nests]
    return sorted(nests, key=lambda n: -n.profile.seconds if n.profile is not None else 0.0)
