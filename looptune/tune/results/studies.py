"""Databases read as studies: one for each kernel, size, type and device, of the newest that was measured there.

    rows, commands, conclusions of several files ──▶ contexts ──▶ the newest of each kind ──▶ Study

Where a database has no conclusion (an earlier looptune's, or a sweep that was stopped) the result is put together from
the rows: the finals decide as they would have, and what only the sweep knew is left out.
"""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

from looptune.core.errors import UsageError
from looptune.core.escape import printable
from looptune.runtime.device import DeviceInfo
from looptune.runtime.outcome import Timed, WrongResult
from looptune.runtime.timing import Speedup, Summary, paired_speedup, unpaired_speedup
from looptune.schedule.directive_lines import canonical_text
from looptune.tune.results import record
from looptune.tune.results.result import Entry, Result
from looptune.tune.results.study import KernelStudy
from looptune.tune.results.winner import winner
from looptune.tune.store.conclusions import Conclusion, conclusions
from looptune.tune.store.searches import VERSIONS
from looptune.tune.store.store import Context, Row, Store


@dataclass(slots=True)
class _Held:
    """What several databases hold together."""

    rows: dict[str, Row] = field(default_factory=dict)
    commands: dict[str, str] = field(default_factory=dict)
    concluded: dict[str, Conclusion] = field(default_factory=dict)

    def add(self, store: Store) -> None:
        for row in store.rows():
            other = self.rows.get(row.key)
            if other is None or _ended(row) > _ended(other):
                self.rows[row.key] = row
        self.commands |= store.commands()
        for context, one in conclusions(store).items():
            known = self.concluded.get(context)
            if known is None or one.finished > known.finished:
                self.concluded[context] = one


def read(paths: Sequence[Path], kernels: Sequence[str] = ()) -> list[KernelStudy]:
    """Return the studies of these databases by kernel, size and type.

    Only of ``kernels``, if given, as reports or the C call them.

    Raises StoreError if a file cannot be read, and UsageError if nothing was measured.
    """
    held = _Held()
    for path in paths:
        with closing(Store.read(path)) as store:
            held.add(store)
    contexts: dict[Context, list[Row]] = {}
    for row in held.rows.values():
        contexts.setdefault(row.context, []).append(row)
    studies = [_study(context, rows, held) for context, rows in _newest(contexts).items() if _measured(rows)]
    files = ", ".join(map(str, paths))
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


def _newest(contexts: Mapping[Context, list[Row]]) -> dict[Context, list[Row]]:
    """Without the contexts that differ from a newer one only in the source or the versions of the tools."""
    found: dict[tuple[str, ...], Context] = {}
    for context, rows in sorted(contexts.items(), key=lambda item: max(row.started for row in item[1])):
        if _measured(rows):
            kind = (context.kernel, context.device, context.target, context.sizes, context.dtype, context.options)
            found[kind] = context
    return {context: contexts[context] for context in found.values()}


def _measured(rows: Iterable[Row]) -> bool:
    return any(row.role in VERSIONS and row.status != "running" for row in rows)


def _ended(row: Row) -> float:
    return -1.0 if row.finished is None else row.finished


def _study(context: Context, rows: Sequence[Row], held: _Held) -> KernelStudy:
    versions = tuple(row for row in rows if row.role in VERSIONS and row.status != "running")
    last = _last_finals(rows)
    times = {name: outcome for name, outcome in last.items() if isinstance(outcome, Timed)}
    concluded = held.concluded.get(context.hash)
    if concluded is not None:
        try:
            result, sources = record.from_record(concluded.record)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise UsageError(
                f"the result of {context.kernel} cannot be read ({printable(str(error))}): sweep it again"
            ) from error
        return KernelStudy(context, _with_counts(result, versions), versions, sources, last)
    return KernelStudy(context, _recovered(context, versions, times, rows, held.commands), versions, None, last)


def _with_counts(result: Result, versions: Sequence[Row]) -> Result:
    """Count every version that the database has, of earlier sweeps as well.

    Where it has fewer timed ones than the sweep, having been pruned, the sweep's counts stay.
    """
    counts = Counter(row.status for row in versions)
    if counts["timed"] < result.versions.get("timed", 0):
        return result
    space = max(result.versions.get("space", 0), len(versions))
    return replace(result, versions={**counts, "space": space})


def _last_finals(rows: Iterable[Row]) -> dict[str, Timed | WrongResult]:
    """Return what became of each in the newest finals, by directives; kernels of a file by their role."""
    done = [row for row in rows if row.role == "final"]
    if not done:
        return {}
    last = max(done, key=lambda row: row.started).sweep
    return {
        _named(row.directives): row.outcome
        for row in done
        if row.sweep == last and isinstance(row.outcome, Timed | WrongResult)
    }


def _named(directives: str) -> str:
    """Return a final of a kernel that is no version is called by its role and the hash of its file."""
    role = directives.partition(" ")[0]
    return role if role in ("hand-written", "library") else directives


def _recovered(
    context: Context,
    versions: Sequence[Row],
    last: Mapping[str, Timed],
    rows: Sequence[Row],
    commands: Mapping[str, str],
) -> Result:
    """Return what the sweep would have reported, as far as rows tell."""
    command = next((commands[row.sweep] for row in reversed(versions) if row.sweep in commands), "")
    options, counts = json.loads(context.options), Counter(row.status for row in versions)
    facts = DeviceInfo(context.device, context.target, context.capability, options.get("cores", 0), 0, 0, "")
    best, ties, entries, over_hand = _entries(versions, last, rows)
    sizes = {n: v for n, v in json.loads(context.sizes).items() if isinstance(v, int)}
    return Result(
        kernel=_file_name(command, context.kernel), facts=facts, target=context.target, dtype=context.dtype,
        sizes=sizes, entries=entries, directives=best, ties=ties, proof="",
        versions={**counts, "space": len(versions)}, flops=None, command=command, over_hand=over_hand,
    )  # fmt: skip


def _entries(
    versions: Sequence[Row], last: Mapping[str, Timed], rows: Sequence[Row]
) -> tuple[str, tuple[str, ...], tuple[Entry, ...], Speedup | None]:
    """Return the winner, what is as fast, the lines of the table, and the winner over the hand-written kernel.

    Of the screening where there were no finals.
    """
    screened = {row.directives: row.outcome for row in versions if isinstance(row.outcome, Timed)}
    texts = [text for text in last if text in screened]
    times = last if texts else screened
    default = next((r.directives for r in reversed(versions) if r.role == "default" and r.directives in times), None)
    best, ties = winner({t: times[t].times_us for t in texts}, texts) if texts else (_fastest(screened), ())
    base = None if default is None else times[default]
    alone = [row.outcome for row in rows if row.role == "sequential" and isinstance(row.outcome, Timed)]
    named = {"default": base, "hand-written": times.get("hand-written"), "library": times.get("library"),
             "tuned": None if best is None else times[best]}  # fmt: skip
    made = [_entry("sequential", one, base, unpaired_speedup) for one in alone[-1:]]
    judge = paired_speedup if texts else _unpaired
    made += [_entry(n, one, None if n == "default" else base, judge) for n, one in named.items() if one is not None]
    hand, tuned = named["hand-written"], named["tuned"]
    over = None if hand is None or tuned is None else paired_speedup(hand.times_us, tuned.times_us, 0)
    return "" if best is None else best, ties, tuple(made), over


def _fastest(screened: Mapping[str, Timed]) -> str | None:
    return min(screened, key=lambda text: (screened[text].median_us, text), default=None)


_Judge = Callable[[Sequence[float], Sequence[float], int], Speedup | None]


def _entry(name: str, one: Timed, base: Timed | None, judge: _Judge) -> Entry:
    times = Summary(one.median_us, one.q1_us, one.q3_us, len(one.times_us))
    return Entry(name, times, None if base is None else judge(base.times_us, one.times_us, 0), one.verified)


def _unpaired(base: Sequence[float], other: Sequence[float], seed: int) -> Speedup | None:
    """Return no speed-up: the few runs of the screening do not alternate, so they give no verdict."""
    return None


def _file_name(command: str, kernel: str) -> str:
    """Return what reports call it: the file's name, or the kernel's where the user chose one of several.

    >>> _file_name("looptune run polybench/2dconv.c --target numba-cuda", "conv2d"), _file_name("", "f")
    ('2dconv', 'f')
    """
    words = shlex.split(command)
    if "--kernel" in words:
        return kernel
    return next((Path(word).stem for word in words[2:3]), kernel)
