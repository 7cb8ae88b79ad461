"""From the end of a search to its Result: the finals, the original loops, and the entries of the tables."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from looptune.ir import operation_count
from looptune.runtime.outcome import (
    Crashed,
    CutOff,
    Illegal,
    NotBuilt,
    Outcome,
    OverLimit,
    Timed,
    TimedOut,
    WrongResult,
    least_us,
)
from looptune.runtime.problem_sizes import sizes_text
from looptune.runtime.timing import at_least, paired_speedup, summary, unpaired_speedup, without_verdict
from looptune.tune.cost_model import devices
from looptune.tune.cost_model.occupancy import Occupancy, occupancy
from looptune.tune.measure import sequential
from looptune.tune.measure.reference import NOT_COMPARED, NOT_INDEPENDENTLY, ReferenceResult
from looptune.tune.measure.sequential import SequentialTimes
from looptune.tune.results.result import Entry, KernelOccupancy, Result, Sources, to_record
from looptune.tune.session import ablation, finals, transfer
from looptune.tune.session.finals import Finals, KernelFinals, schedule_finalist
from looptune.tune.session.prepare import PreparedRun, single_version_command
from looptune.tune.session.proof import prove_version
from looptune.tune.store.store import Row, Store

if TYPE_CHECKING:
    from looptune.backends.base import Resources
    from looptune.frontend import Unit
    from looptune.tune.execution.executor import Executor
    from looptune.tune.execution.lab import SweepResult, TimeBreakdown
    from looptune.tune.measure.evaluate import KernelBuilder

SLOWEST_FLOPS = 5e9
"""Beyond this the sequential loops can take a minute on one core and are left out."""
FLOPS_A_SECOND = 2e8
"""So many operations a second one core does at least; two runs or three then take no longer than the finals."""


def finish(
    prepared: Sequence[PreparedRun],
    labs: Sequence[KernelBuilder],
    store: Store,
    searched: Sequence[SweepResult],
    executor: Executor,
) -> tuple[Result, ...]:
    """Return the finals of each kernel on each model, and the results with their table entries.

    A sweep that was stopped has no finals; the seconds of shared work are divided among the kernels.
    """
    matches = [_match(p, lab, store, s) for p, lab, s in zip(prepared, labs, searched, strict=True)]
    due = [n for n, (match, s) in enumerate(zip(matches, searched, strict=True)) if match.texts and not s.interrupted]
    short = [n for n in due if _affordable(prepared[n])]
    timed = [k for k, n in enumerate(due) if n in short]
    made = finals.run([matches[n] for n in due], executor, prepared[0].jobs, timed)
    found = dict(zip(due, made.finals, strict=True))
    alone = {due[k]: times for k, times in made.sequential.items()}
    results = []
    for n, (p, match, s) in enumerate(zip(prepared, matches, searched, strict=True)):
        shared = made.sequential_s / len(short) if n in alone else 0.0
        took = {"finals": made.finals_s / len(due), "sequential": shared} if n in found else {}
        results.append(_result(p, match, s, found.get(n, Finals()), alone.get(n), took))
    sources: dict[int, Sources] = {}
    for n, won in found.items():
        best = results[n].directives
        if prepared[n].request.sweep and best not in won.refused:
            written = won.sources.get(best) or finals.write_winner(matches[n].lab, best)
            sources[n] = Sources(source_functions(prepared[n].unit), written.transformed, written.emitted)
            results[n] = replace(results[n], occupancy=occupancy_of(written.resources, prepared[n].facts.arch))

    def keep() -> None:
        for n, source in sources.items():
            result = results[n]
            record = to_record(result, source)
            store.save_conclusion(prepared[n].context, searched[n].sweep, record, result.objective)

    keep()
    if prepared[0].request.ablation:
        results = _with_ablation(prepared, matches, results, store, executor)
        keep()
    return tuple(results)


def finals_ahead(
    prepared: PreparedRun, lab: KernelBuilder, store: Store, searched: SweepResult
) -> list[tuple[finals.Step, str]]:
    """Return what the finals of a search will build and prove, each a step and a version.

    None where the search has compiled the finalists, in a budget of time, or if the database has the finals.
    """
    if prepared.job.target.search_backend is None or prepared.job.finals_end:
        return []
    match = _match(prepared, lab, store, searched)
    return [] if match.earlier() is not None else match.first_tasks


def _with_ablation(
    prepared: Sequence[PreparedRun],
    matches: Sequence[KernelFinals],
    results: Sequence[Result],
    store: Store,
    executor: Executor,
) -> list[Result]:
    """With what each directive earns; its seconds are shared out."""
    winners = [
        ablation.Winner(p, match, r.directives, single_version_command(p))
        for p, match, r in zip(prepared, matches, results, strict=True)
    ]
    earned, seconds = ablation.run(winners, store, executor)
    each = {"ablation": seconds / len(results)}
    return [replace(r, directive_gains=e, seconds=dict(r.seconds) | each) for r, e in zip(results, earned, strict=True)]


def occupancy_of(resources: Sequence[Resources], arch: str) -> tuple[KernelOccupancy, ...]:
    """Return the resources and the occupancy of kernels on a GPU of this architecture.

    The occupancy is the number of their warps that a multiprocessor holds.
    """
    chip = next((c for c in devices.CHIPS if c.arch == arch), None)
    return tuple(_held(r, None if chip is None else occupancy(chip, r.threads, r.shared_bytes, r.registers))
                 for r in resources)  # fmt: skip


def _held(r: Resources, of: Occupancy | None) -> KernelOccupancy:
    known = (r.kernel, r.threads, r.registers, r.shared_bytes, r.local_bytes)
    return KernelOccupancy(*known) if of is None else KernelOccupancy(*known, of.warps, of.most, of.by)


def source_functions(unit: Unit) -> str:
    """Return the functions of the codelet as in the file, each from the blank line before it."""
    parts = []
    for part in unit.parts:
        start, end = part.body
        # What the head of a function or of a scop belongs to stands above it without a gap.
        parts.append(unit.text[unit.text.rfind("\n\n", 0, start) + 1 : end].strip("\n") + "\n")
    return "\n".join(parts)


def _match(prepared: PreparedRun, lab: KernelBuilder, store: Store, searched: SweepResult) -> KernelFinals:
    """Return the finals of the best versions, the default if it was timed, and the transferred configurations."""
    request, default, texts = prepared.request, prepared.annotated.text, _finalists(prepared, searched)
    known = any(row.directives == default for row in searched.timed)
    among = (*texts[:1], default, *texts[1:]) if known and default not in texts else texts
    among = (*among, *transfer.finalists(prepared, searched, among))
    screened_us = {row.directives: row.median_us for row in searched.timed if row.median_us}
    is_final = False
    if prepared.job.finals_end:
        among = finals.in_one_round(among, screened_us, prepared.job.finals_s)
        is_final = any(screened_us.get(text, 0.0) > prepared.job.finals_s * 1e6 for text in among[:1])
    return KernelFinals(
        lab, store, searched.sweep, prepared.model, among, default, prepared.by_hand, request.seed,
        request.fresh, "final" if request.objective == "time" else "energy", screened_us, is_final, request.objective,
        searched.finals, _unverified(prepared, searched, among),
    )  # fmt: skip


def _unverified(prepared: PreparedRun, searched: SweepResult, among: Sequence[str]) -> frozenset[str]:
    """Return those of the versions that were slower than what the search verifies at prime sizes."""
    odd = prepared.job.prime_problem
    if odd is None or not prepared.job.target.specializes_sizes:
        return frozenset()
    return frozenset(
        row.directives for row in searched.timed if row.directives in among and sizes_text(odd) not in _verified(row)
    )


def _finalists(prepared: PreparedRun, searched: SweepResult) -> tuple[str, ...]:
    job = prepared.job
    most = finals.MOST
    if job.target.search_backend is not None:
        # Each is to be compiled once more, three times over, for which a budget of time has little.
        most = finals.FINALISTS if job.finals_end else finals.MOST // 2
    return finals.select_finalists(searched.timed, prepared.request.objective, job.energy_s, most)


def _result(
    prepared: PreparedRun,
    match: KernelFinals,
    searched: SweepResult,
    found: Finals,
    alone: SequentialTimes | None,
    took: Mapping[str, float],
) -> Result:
    request, default = prepared.request, prepared.annotated.text
    screened = match.texts[0] if match.texts and not found.wrong else default
    best, ties = match.best(found) or (screened, ())
    verified = {row.directives: _verified(row) for row in searched.timed}
    asserted = {text: _asserted(match, found, text) for text in (default, best)}
    proof = found.proofs.get(best) or prove_version(prepared.job, schedule_finalist(match.lab, best))
    hand, won = found.us.get("hand-written"), found.us.get(best)
    over_hand = None if hand is None or won is None else paired_speedup(hand, won, 0)
    again = {text: us for text, us in match.screened_us.items() if text in found.us}
    return Result(
        kernel=prepared.name,
        facts=prepared.facts,
        target=prepared.job.target.name,
        dtype=prepared.context.dtype,
        sizes=named_sizes(prepared.unit, prepared.sizes),
        entries=_entries(prepared, found, alone, default, best, verified, asserted, _default(match, default)),
        directives=best if request.sweep else "",
        ties=ties,
        proof=proof.text,
        versions=_counts(searched.counts, found, _finalists(prepared, searched)),
        command=request.command,
        flops=operation_count.count(prepared.unit.codelet.body, prepared.sizes),
        interrupted=searched.interrupted,
        times_us=_not_again(searched.times_us, again),
        finals_us=tuple(sorted(summary(found.us[text]).median_us for text in again)),
        seconds=_seconds(searched.spent) | {"proofs": found.proofs_s} | dict(took),
        devices=searched.spent.devices,
        ceiling=match.lab.job.ceiling,
        over_hand=without_verdict(over_hand) if found.disturbed else over_hand,
        status=proof.status,
        sums=proof.sums,
        transfers=transfer.compare_transfers(prepared, found, best, match.store) if found.us else (),
        disturbed=found.disturbed,
        objective=match.decided_by(found),
    )


def _not_again(times_us: Sequence[float], again: Mapping[str, float]) -> tuple[float, ...]:
    """Return the times of the screening without those of the versions that were timed again.

    >>> _not_again((1.0, 2.0, 2.0, 3.0), {"loop i: box 8": 2.0})
    (1.0, 2.0, 3.0)
    """
    return tuple((Counter(times_us) - Counter(again.values())).elements())


def _asserted(match: KernelFinals, found: Finals, text: str) -> bool:
    proof = found.proofs.get(text)
    return bool(schedule_finalist(match.lab, text).asserted) if proof is None else proof.status == "asserted"


def _counts(counts: Mapping[str, int], found: Finals, texts: Sequence[str]) -> Mapping[str, int]:
    """With the versions that were timed while screening, and that the finals found to be wrong, among the wrong."""
    wrong = sum(text in found.wrong for text in texts)
    return dict(counts) | {"timed": counts["timed"] - wrong, "wrong": counts["wrong"] + wrong}


def _seconds(spent: TimeBreakdown) -> dict[str, float]:
    return {name: seconds for name, seconds in asdict(spent).items() if name != "devices"}


def _entries(
    prepared: PreparedRun,
    found: Finals,
    alone: SequentialTimes | None,
    default: str,
    best: str,
    verified: Mapping[str, str],
    asserted: Mapping[str, bool],
    tried: Outcome | None,
) -> tuple[Entry, ...]:
    """Return the lines of the table; ``tried`` is the outcome of the default, which may have no time in the finals."""
    times, stopped_us = found.us, least_us(tried)
    match tried:
        case Timed(times_us=screened) if default not in (*found.us, *found.wrong, *found.refused):
            # It was too slow for the finals of a short budget.
            times, stopped_us = {**times, default: screened}, None
    base = times.get(default)
    against_base = paired_speedup if default in found.us else unpaired_speedup

    def entry(name: str, key: str, how: str) -> Entry:
        if key not in times:
            missing = _failed(found.refused.get(key, tried)) if key == default else "not measured"
            why = f"WRONG: {found.wrong[key]}" if key in found.wrong else missing
            return Entry(name, None, None, why, asserted.get(key, False))
        over = against_base(base, times[key], 0) if base is not None and key != default else None
        if base is None and stopped_us is not None:
            over = at_least(stopped_us, summary(times[key]).median_us)
        over = without_verdict(over) if found.disturbed else over
        if key in found.compilers:
            how = f"{how}; timed as {found.compilers[key]}"
        return Entry(name, summary(times[key]), over, how, asserted.get(key, False), found.energy.get(key))

    entries = [Entry("sequential", None, None, "not measured")]
    own = sequential.description(prepared.job)
    if alone is None and times and prepared.job.text is not None:
        us = _original(prepared).text_us()
        alone, own = None if us is None else SequentialTimes((us,)), f"{own}, one run beside others"
        if us is None and _original(prepared).is_too_long:
            entries = [Entry("sequential", None, None, f"more than {prepared.job.reference_s:g} s: {own}")]
    if alone is not None:
        over = None if base is None else unpaired_speedup(base, alone.us, 0)
        over = without_verdict(over) if found.disturbed or alone.disturbed else over
        entries = [Entry("sequential", summary(alone.us), over, own)]
    entries.append(entry("default", default, verified.get(default, "")))
    others = [n for n in ("hand-written", "library") if n in times or n in found.wrong]
    text = prepared.job.text
    against = NOT_INDEPENDENTLY if text is None else f"against {text.description}"
    if _original(prepared).is_too_long:
        against = f"at the sizes timed {NOT_COMPARED}"
    entries += [entry(n, n, against) for n in others]
    if prepared.request.sweep and best in times:
        entries.append(entry("tuned", best, verified.get(best, "")))
    return tuple(entries)


def _default(match: KernelFinals, default: str) -> Outcome | None:
    key = Row(match.lab.context, default, "default", match.sweep).key
    row = match.store.lookup((key,)).get(key)
    return None if row is None else row.outcome


def _failed(tried: Outcome | None) -> str:
    """Return why the default was not timed: the first line of its outcome."""
    match tried:
        case TimedOut() as outcome:
            return f"more than {outcome.limit_s:g} s: {outcome.message}"
        case CutOff() as outcome:
            return outcome.message
        case Crashed() | NotBuilt() | OverLimit() | WrongResult() | Illegal() as outcome:
            return f"{outcome.status.replace('_', ' ')}: {outcome.message.splitlines()[0]}"
    return "not measured"


def _affordable(prepared: PreparedRun) -> bool:
    """Tell whether the original loops on one core take no longer than anyone waits, or than the finals may take."""
    if _original(prepared).is_too_long:
        return False
    work = operation_count.count(prepared.unit.codelet.body, prepared.sizes)
    most = min(SLOWEST_FLOPS, prepared.job.finals_s * FLOPS_A_SECOND) if prepared.job.finals_end else SLOWEST_FLOPS
    return work is None or work <= most


def _original(prepared: PreparedRun) -> ReferenceResult:
    return ReferenceResult(prepared.job, prepared.job.problem, prepared.job.seed)


def named_sizes(unit: Unit, sizes: Mapping[str, int]) -> dict[str, int]:
    """Return the sizes as a user gives them with -D: by the macro NI where the text has one for the parameter ni."""
    words = set(re.findall(r"[A-Za-z_]\w*", unit.text))
    named = {n.upper() if n.upper() in words else n: v for n, v in sizes.items()}
    given = {n: int(v) for n, v in unit.defines.items() if n in words and "DATASET" not in n and str(v).isdecimal()}
    return given | named


def _verified(row: Row) -> str:
    match row.outcome:
        case Timed(verified=how):
            return how
    return ""
