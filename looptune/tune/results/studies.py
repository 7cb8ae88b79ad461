"""Studies read from databases: one for each kernel, size, type and device, with the newest measurements.

    rows, commands, conclusions of several files ──▶ searches ──▶ the newest of each kind ──▶ KernelStudy ──▶ report

If a database has no conclusion (because an earlier looptune made it, or a sweep was stopped), the result is derived
from the rows: the finals decide as they would have, and what only the sweep knew is missing.
"""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from looptune.core.errors import UsageError
from looptune.core.escape import printable
from looptune.runtime.device import DeviceInfo, slug
from looptune.runtime.energy import from_facts
from looptune.runtime.objective import QUANTITIES
from looptune.runtime.outcome import Timed, WrongResult, least_us
from looptune.runtime.timing import Speedup, Summary, at_least, paired_speedup, unpaired_speedup
from looptune.schedule.directive_lines import canonical_text
from looptune.tune.results.result import Entry, Result, Sources, from_record
from looptune.tune.store.searches import Search, by_context, disturbance, entries, newest
from looptune.tune.store.store import Conclusion, Context, Row, Store

if TYPE_CHECKING:
    from looptune.core.settings import Objective

USUAL = ("numba-cuda", "numba-cpu")
"""The targets that "auto" may mean: reports name others."""


@dataclass(frozen=True, slots=True)
class KernelStudy:
    """The measurements of one kernel at one size on one device; ``rows`` are the default and the versions as tried.

    ``sources`` is None if the database is of an earlier looptune; ``result`` was then derived from rows.
    """

    context: Context
    result: Result
    rows: tuple[Row, ...]
    sources: Sources | None = None
    finals_outcomes: Mapping[str, Timed | WrongResult] = field(default_factory=dict)
    """What became of each version in the newest finals, by directives."""

    @property
    def finals(self) -> dict[str, float]:
        """Return the medians of the finals by directives, in microseconds."""
        return {text: outcome.median_us for text, outcome in self.finals_outcomes.items() if isinstance(outcome, Timed)}

    @property
    def kernel(self) -> str:
        return self.result.kernel

    @property
    def device(self) -> str:
        return self.context.device

    @property
    def sizes(self) -> str:
        return sizes(self.result)

    @property
    def kind(self) -> str:
        """Return the type, and how it was measured if not in the usual way."""
        by = [] if self.result.objective == "time" else [f"least {QUANTITIES[self.result.objective]}"]
        return ", ".join([self.result.dtype, *unusual_options(self.context), *by])

    @property
    def place(self) -> str:
        """Return where it was measured: the device, the target, the sizes."""
        return f"{self.device} ({self.context.target}), {self.sizes}"

    @property
    def title(self) -> str:
        return f"{self.kernel} {self.kind} {self.sizes}"

    def timed(self) -> dict[str, Timed]:
        """Return the screening by directives; a duplicate has the times of the version that it repeats."""
        found = {entry.own.directives: entry.row.outcome for entry in entries(self.rows)}
        return {text: outcome for text, outcome in found.items() if isinstance(outcome, Timed)}

    def screened(self) -> dict[str, float]:
        """Return the medians of the screening by directives."""
        return {text: outcome.median_us for text, outcome in self.timed().items()}

    @property
    def default_us(self) -> float | None:
        """Return the time of the default in the screening, measured as the versions were."""
        rows = [row for row in self.rows if row.role == "default" and row.median_us is not None]
        plain = self.screened().get("") if not rows else None
        return rows[-1].median_us if rows else plain


def unusual_options(context: Context) -> list[str]:
    """Return the options that are not looptune's defaults, and a target that is not a usual one.

    >>> unusual_options(Context("f", "", "", "", "", "", "", "", "", '{"seed": 3, "reassociate": false, "warm": true}'))
    ['strict float', 'warm L2', 'seed 3']
    """
    options = json.loads(context.options)
    said = {
        "strict float": not options.get("reassociate", True),
        f"fp contract {options.get('contract')}": "contract" in options, "warm L2": options.get("warm", False),
        f"seed {options.get('seed', 0)}": options.get("seed", 0) != 0, "own data": "data" in options,
        context.target: bool(context.target) and context.target not in USUAL,
    }  # fmt: skip
    return [words for words, holds in said.items() if holds]


def read(paths: Sequence[Path], kernels: Sequence[str] = (), objective: Objective = "time") -> list[KernelStudy]:
    """Return the studies of these databases by kernel, size and type.

    ``kernels``, if given, are names by which reports or the C call the kernels to select. ``objective``: what the
    results were chosen by; those of others are left out. Raises StoreError if a file cannot be read, and UsageError if
    nothing was measured.
    """
    rows: list[Row] = []
    commands: dict[str, str] = {}
    concluded: dict[str, Conclusion] = {}
    for path in paths:
        with closing(Store.read(path)) as store:
            rows += store.rows()
            commands |= store.commands()
            found = store.conclusions(objective)
        later = {c: one for c, one in found.items() if c not in concluded or one.finished > concluded[c].finished}
        concluded |= later
    held = by_context(rows)
    if objective != "time":
        held = [s for s in held if s.context.hash in concluded or s.best_by(objective) is not None]
    studies = [_study(search, concluded.get(search.context.hash), commands, objective) for search in newest(held)]
    files = ", ".join(map(str, paths))
    if not studies and objective != "time":
        raise UsageError(
            f"no finals by {objective} in {files}: make them with `looptune run FILE --sweep --objective {objective}`"
        )
    if not studies:
        raise UsageError(f"nothing was measured in {files}: measure with `looptune run FILE --sweep`")
    having = {name for s in studies for name in (s.kernel, s.context.kernel)}
    unknown = [k for k in kernels if k not in having]
    if unknown:
        raise UsageError(
            f"no kernel {unknown[0]} in {files}: there are {', '.join(sorted({s.kernel for s in studies}))}"
        )
    chosen = [s for s in studies if not kernels or {s.kernel, s.context.kernel} & set(kernels)]
    return sorted(chosen, key=lambda s: (s.device, s.kernel, s.result.dtype, s.context.sizes, s.context.options))


def best_of_databases(paths: Sequence[Path]) -> tuple[KernelStudy, ...]:
    """Return the results of the sweeps of these databases, without the rows. Raises what ``read`` raises."""
    swept = [s for s in read(paths) if any(row.role == "version" for row in s.rows)] if paths else []
    return tuple(replace(s, rows=(), result=replace(s.result, directives=_directives(s))) for s in swept)


def _directives(study: KernelStudy) -> str:
    """Return what a sweep can take part with: directives that parse, and nothing else that the record may hold."""
    return canonical_text(study.result.directives, f"the best of {study.context.kernel}")


def _study(
    search: Search, concluded: Conclusion | None, commands: Mapping[str, str], objective: Objective
) -> KernelStudy:
    context, versions, rows = search.context, search.versions, search.finals_by(objective)
    finals = {text: row.outcome for text, row in rows.items() if isinstance(row.outcome, Timed | WrongResult)}
    if disturbance(rows.values()):
        finals = {text: outcome for text, outcome in finals.items() if isinstance(outcome, WrongResult)}
    if concluded is None:
        return KernelStudy(context, _recovered(search, commands, objective), versions, None, finals)
    try:
        result, sources = from_record(concluded.record)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise UsageError(
            f"the result of {context.kernel} cannot be read ({printable(str(error))}): sweep it again"
        ) from error
    return KernelStudy(context, _with_counts(result, versions), versions, sources, finals)


def _with_counts(result: Result, versions: Sequence[Row]) -> Result:
    """Count every version that the database has, of earlier sweeps as well.

    Where it has fewer timed ones than the sweep, having been pruned, the sweep's counts stay.
    """
    counts = Counter(row.status for row in versions)
    if counts["timed"] < result.versions.get("timed", 0):
        return result
    space = max(result.versions.get("space", 0), len(versions))
    return replace(result, versions={**counts, "space": space})


def _recovered(search: Search, commands: Mapping[str, str], objective: Objective) -> Result:
    """Return what the sweep would have reported, as far as rows tell."""
    context, versions = search.context, search.versions
    command = next((commands[row.sweep] for row in reversed(versions) if row.sweep in commands), "")
    options, counts = json.loads(context.options), Counter(row.status for row in versions)
    facts = DeviceInfo(context.device, context.target, context.capability, options.get("cores", 0), 0, 0, "")
    best, ties, lines, over_hand = _entries(search, objective)
    won = search.best_by(objective)
    sizes = {n: v for n, v in json.loads(context.sizes).items() if isinstance(v, int)}
    return Result(
        kernel=_file_name(command, context.kernel), facts=facts, target=context.target, dtype=context.dtype,
        sizes=sizes, entries=lines, directives=best, ties=ties, proof="",
        versions={**counts, "space": len(versions)}, flops=None, command=command, over_hand=over_hand,
        disturbed="" if won is None else won.disturbed, objective=objective,
    )  # fmt: skip


def _entries(
    search: Search, objective: Objective = "time"
) -> tuple[str, tuple[str, ...], tuple[Entry, ...], Speedup | None]:
    """Return the winner, what is as fast, the lines of the table, and the winner over the hand-written kernel."""
    best, alone = search.best_by(objective), search.sequential
    times = {} if best is None else best.times
    default = (times[r.directives] for r in reversed(search.versions) if r.role == "default" and r.directives in times)
    base = next(default, None)
    tuned, hand = None if best is None else times[best.directives], times.get("hand-written")
    named = {"default": base, "hand-written": hand, "library": times.get("library"), "tuned": tuned}
    # The few runs of the screening do not alternate, so they give no verdict.
    paired = base if best is not None and best.is_final else None
    tried = next((r.outcome for r in reversed(search.versions) if r.role == "default"), None)
    stopped_us = least_us(tried) if base is None else None
    made = [] if alone is None else [_entry("sequential", alone, base, unpaired_speedup)]
    made += [
        _entry(name, one, None if name == "default" else paired, paired_speedup, stopped_us)
        for name, one in named.items()
        if one is not None
    ]
    if best is None:
        return "", (), tuple(made), None
    over = None if hand is None or tuned is None else paired_speedup(hand.times_us, tuned.times_us, 0)
    return best.directives, best.ties, tuple(made), over


_Judge = Callable[[Sequence[float], Sequence[float], int], Speedup | None]


def _entry(name: str, one: Timed, base: Timed | None, judge: _Judge, stopped_us: float | None = None) -> Entry:
    """``stopped_us``: what a base without a time takes at least."""
    times = Summary(one.median_us, one.q1_us, one.q3_us, len(one.times_us))
    over = None if base is None else judge(base.times_us, one.times_us, 0)
    if stopped_us is not None:
        over = at_least(stopped_us, one.median_us)
    return Entry(name, times, over, one.verified, energy=from_facts(one.facts))


def _file_name(command: str, kernel: str) -> str:
    """Return what reports call it: the file's name, or the kernel's where the user chose one of several.

    >>> _file_name("looptune run polybench/2dconv.c --target numba-cuda", "conv2d"), _file_name("", "f")
    ('2dconv', 'f')
    """
    words = shlex.split(command)
    if "--kernel" in words:
        return kernel
    return next((Path(word).stem for word in words[2:3]), kernel)


def by_device(studies: Iterable[KernelStudy]) -> dict[str, list[KernelStudy]]:
    """Return the studies of each device, by the name of its folder."""
    found: dict[str, list[KernelStudy]] = {}
    for study in studies:
        found.setdefault(slug(study.device), []).append(study)
    return found


def comparable_groups(studies: Sequence[KernelStudy]) -> dict[str, list[KernelStudy]]:
    """Return the studies that can be averaged, those of one type on one device.

    By the type, and by the device if there are several.
    """
    several = len({s.device for s in studies}) > 1
    found: dict[str, list[KernelStudy]] = {}
    for s in sorted(studies, key=lambda s: (s.device, s.result.dtype)):
        found.setdefault(f"{s.result.dtype}, {s.device}" if several else s.result.dtype, []).append(s)
    return found


def names_of(studies: Sequence[KernelStudy]) -> list[str]:
    """Return the names of the kernels, with sizes, types and devices as far as these are needed to distinguish them."""
    names = [s.kernel for s in studies]
    for more in ("sizes", "kind", "device"):
        twice = {name for name in names if names.count(name) > 1}
        told = {name: {getattr(s, more) for n, s in zip(names, studies, strict=True) if n == name} for name in twice}
        names = [
            f"{n} {getattr(s, more)}" if len(told.get(n, ())) > 1 else n for n, s in zip(names, studies, strict=True)
        ]
    return names


def sizes(result: Result) -> str:
    """Return one number if all sizes are the same, ``2048``, else ``NI=512 NJ=256``."""
    different = set(result.sizes.values())
    return str(different.pop()) if len(different) == 1 else " ".join(f"{n}={v}" for n, v in result.sizes.items())
