"""Transfer: evaluate the best configurations of other databases beside a sweep's own versions.

    a sweep's versions ─▶ transferred ones that it has not measured ─▶ the finals: best, default, transferred

The sweep is the same as without them: they do not use its budget, and their times stop no other version early. A
transferred configuration ends like any other version: refused, too large for the device, too slow, or timed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING

from looptune.runtime.outcome import CLASSES, CutOff, Timed
from looptune.runtime.timing import paired_speedup, without_verdict
from looptune.tune import strategies
from looptune.tune.execution.lab import Progress, SweepResult, TimeBreakdown
from looptune.tune.results.result import TransferResult
from looptune.tune.session.budget import Budget
from looptune.tune.session.prepare import PreparedRun, single_version_command
from looptune.tune.session.sweep import Part, sweeps
from looptune.tune.space.space import Configuration, Space
from looptune.tune.store.store import Row, Store, key

if TYPE_CHECKING:
    from looptune.tune.execution.executor import Executor
    from looptune.tune.measure.evaluate import KernelBuilder
    from looptune.tune.session.finals import Finals

SLOWEST_US = 5e6
"""A transferred configuration that takes longer keeps its screening time; five rounds would use most of the finals'."""


def measure(
    prepared: Sequence[PreparedRun],
    labs: Sequence[KernelBuilder],
    searched: Sequence[SweepResult],
    store: Store,
    progress: Callable[[Progress], None],
    executor: Executor,
) -> tuple[SweepResult, ...]:
    """Return the sweeps with the transferred configurations among the timed versions.

    Configurations with an outcome in the store are not measured again.
    """
    if any(s.interrupted for s in searched):
        return tuple(searched)
    wanted = {
        n: texts for n, (p, s) in enumerate(zip(prepared, searched, strict=True)) if (texts := unmeasured(p, s, store))
    }
    extra: dict[int, SweepResult] = {}
    if wanted:
        request = prepared[0].request
        parts = [
            Part(
                labs[n],
                strategies.ALL["exhaustive"](Space(()), 0),
                prepared[n].model,
                single_version_command(prepared[n]),
                first=tuple(Configuration(tuple(text.splitlines())) for text in texts),
            )
            for n, texts in wanted.items()
        ]
        made = sweeps(
            parts, store, executor, jobs=prepared[0].jobs, timeout_s=request.timeout_s, budget=Budget(),
            progress=progress, first=(), fresh=request.fresh,
        )  # fmt: skip
        extra = dict(zip(wanted, made, strict=True))
    return tuple(
        _joined(s, _rows(p, store).values(), extra.get(n))
        for n, (p, s) in enumerate(zip(prepared, searched, strict=True))
    )


def unmeasured(prepared: PreparedRun, searched: SweepResult, store: Store) -> list[str]:
    """Return the transferred configurations that are not measured, or less thoroughly than required."""
    known = _rows(prepared, store)
    return [text for text in _texts(prepared) if not _stands(known.get(text), prepared, searched)]


def _stands(row: Row | None, prepared: PreparedRun, searched: SweepResult) -> bool:
    if row is None or isinstance(row.outcome, CutOff):
        return False
    return not prepared.request.fresh or row.sweep == searched.sweep


def _texts(prepared: PreparedRun) -> list[str]:
    return list(dict.fromkeys(s.result.directives for s in prepared.transfer_sources))


def _rows(prepared: PreparedRun, store: Store) -> dict[str, Row]:
    """Return the rows of the transferred configurations that the store has, by directives."""
    return _known(prepared, _texts(prepared), store)


def _known(prepared: PreparedRun, texts: Collection[str], store: Store) -> dict[str, Row]:
    keys = {text: key(prepared.context, text) for text in texts}
    found = store.lookup(keys.values())
    return {text: found[k] for text, k in keys.items() if k in found}


def _joined(searched: SweepResult, rows: Collection[Row], extra: SweepResult | None) -> SweepResult:
    """Return the sweep with the transferred ``rows``, and with the counts and the time of those that were new."""
    met = {row.directives for row in searched.timed}
    transferred = [row for row in rows if row.median_us is not None and row.directives not in met]
    timed = sorted((*searched.timed, *transferred), key=lambda row: (row.median_us, row.directives))
    joined = replace(searched, timed=tuple(timed))
    if extra is None:
        return joined
    counts = dict(searched.counts) | {c: searched.counts[c] + extra.counts[c] for c in (*CLASSES, "duplicate")}
    return replace(
        joined, counts=counts, times_us=tuple(sorted((*searched.times_us, *extra.times_us))),
        resumed=searched.resumed + extra.resumed, interrupted=extra.interrupted,
        elapsed_s=searched.elapsed_s + extra.elapsed_s, spent=_together(searched.spent, extra.spent),
    )  # fmt: skip


def _together(some: TimeBreakdown, more: TimeBreakdown) -> TimeBreakdown:
    sums = {f.name: getattr(some, f.name) + getattr(more, f.name) for f in fields(TimeBreakdown) if f.name != "devices"}
    return TimeBreakdown(**sums, devices=max(some.devices, more.devices))


def finalists(prepared: PreparedRun, searched: SweepResult, texts: Sequence[str]) -> tuple[str, ...]:
    """Return the transferred configurations that run beside ``texts``.

    These have a time, and none of ``texts`` has the same kernels.
    """
    rows = {row.directives: row for row in searched.timed}
    sources = {rows[text].emitted for text in texts if text in rows} - {""}
    found: list[str] = []
    for text in (t for t in _texts(prepared) if t in rows and t not in texts):
        row = rows[text]
        if row.emitted not in sources and row.median_us is not None and row.median_us <= SLOWEST_US:
            found.append(text)
            sources |= {row.emitted} - {""}
    return tuple(found)


def compare_transfers(prepared: PreparedRun, found: Finals, best: str, store: Store) -> tuple[TransferResult, ...]:
    """Return the result of each transferred configuration relative to the winner ``best``.

    If there is none, the reason is returned.
    """
    rows = _known(prepared, {*_texts(prepared), *found.us, *found.wrong}, store)
    made = []
    for study in prepared.transfer_sources:
        text = study.result.directives
        ran = _alike(text, found.us, rows)
        over = None if ran is None else paired_speedup(found.us.get(best, ()), found.us[ran], 0)
        over = without_verdict(over) if found.disturbed else over
        made.append(TransferResult(study.place, text, over, "" if over is not None else _why(text, found, rows)))
    return tuple(made)


def _alike(text: str, among: Collection[str], rows: Mapping[str, Row]) -> str | None:
    """Return the one of ``among`` that has these directives or else makes the same kernels."""
    if text in among:
        return text
    source = rows[text].emitted if text in rows else ""
    return next((t for t in among if source and t in rows and rows[t].emitted == source), None)


def _why(text: str, found: Finals, rows: Mapping[str, Row]) -> str:
    wrong = _alike(text, found.wrong, rows)
    if wrong is not None:
        return f"wrong: {found.wrong[wrong]}"
    row = rows.get(text)
    if row is None or row.outcome is None:
        return "not measured"
    match row.outcome:
        case Timed(median_us=us):
            return f"not in the finals: {us / 1e6:.3g} s a run"
        case other:
            return f"{other.status.replace('_', ' ')}: {other.message}"
