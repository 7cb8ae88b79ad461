"""One file at one size on one target: sequential, default, hand-written and tuned, measured and put side by side.

file ─▶ unit ─▶ problem ─▶ sweep over the space ─▶ finals: the best, the default, hand-written ─▶ Result
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from looptune import flops, pretty, targets
from looptune.api import CACHE
from looptune.errors import UsageError
from looptune.frontend import Unit, load
from looptune.ir import Array, Directive, Loop, Scalar
from looptune.poly.proof import prove
from looptune.report.result import Entry, Result
from looptune.rewrite import walk
from looptune.runtime.machine import Facts
from looptune.runtime.outcome import Timed
from looptune.runtime.sizes import odd, problem
from looptune.runtime.timing import Speedup, Summary, speedup, summary
from looptune.simplify import is_integer
from looptune.tune import strategies
from looptune.tune.budget import Budget, parse_budget
from looptune.tune.derive import derive
from looptune.tune.evaluate import Job, KernelLab, Plans, finalist, plans_of, sequential_us
from looptune.tune.space import Configuration, Space, parse
from looptune.tune.store import Context, Row, Store, packed
from looptune.tune.sweep import Progress, SweepResult, sweep
from looptune.tune.workers import Raised, Returned, Worker, default_jobs, wait
from looptune.version import LOWERING

CPU_BUDGET = Budget(count=150)
"""Versions tried on a CPU unless the user says otherwise: what two cores do in about two minutes."""
SLOWEST_FLOPS = 40e9
"""Beyond this the sequential loops take a minute or more on one core and are left out."""
FINALISTS, NEAR, MOST = 5, 1.10, 12
"""Finals: at least this many, all within this ratio of the best, at most so many."""


@dataclass(frozen=True, slots=True)
class Request:
    """What the user asked for; see ``looptune run --help`` for each."""

    file: Path
    kernel: str | None = None
    defines: Mapping[str, str | None] = field(default_factory=dict)
    include_dirs: tuple[Path, ...] = ()
    dtype: str | None = None
    target: str = "auto"
    sweep: bool = False
    space: Path | None = None
    strategy: str | None = None
    budget: str | None = None
    jobs: int | None = None
    timeout_s: float = 60.0
    seed: int = 0
    fresh: bool = False
    strict_float: bool = False
    warm_l2: bool = False
    db: Path = Path(".looptune/results.sqlite")
    directives: tuple[str, ...] = ()
    command: str = ""


@dataclass(frozen=True, slots=True)
class Prepared:
    """Everything known before the first run. ``annotated`` is the configuration of the file as the user gave it."""

    request: Request
    unit: Unit
    job: Job
    facts: Facts
    context: Context
    space: Space
    budget: Budget
    annotated: Configuration


def prepare(request: Request) -> Prepared:
    """Read, analyse and choose the target; every user error shows here, before anything is measured."""
    unit = load(
        request.file,
        kernel=request.kernel,
        defines=request.defines,
        include_dirs=request.include_dirs,
        dtype=request.dtype,
    )
    target = targets.resolve(request.target, CACHE, fastmath=not request.strict_float, warm=request.warm_l2)
    size = problem(unit.codelet, unit.values)
    facts = target.machine().facts
    job = Job(unit.codelet, size, odd(unit.codelet, size), target, CACHE, request.seed, not request.strict_float)
    given = parse_budget(request.budget) if request.budget is not None else None
    budget = given if given is not None else Budget() if target.bakes else CPU_BUDGET
    space = _space(request, KernelLab(job, _context(unit, job, facts)))
    annotated = Configuration(tuple(line for text in request.directives for line in text.splitlines() if line.strip()))
    return Prepared(request, unit, job, facts, _context(unit, job, facts), space, budget, annotated)


def run(prepared: Prepared, store: Store, progress: Callable[[Progress], None]) -> Result:
    """Sweep (or measure the file as annotated), then run the finals."""
    request, job = prepared.request, prepared.job
    lab = KernelLab(job, prepared.context)
    wanted = prepared.space if request.sweep else Space(())
    budget = prepared.budget if request.sweep else Budget(count=1)
    name = request.strategy if request.strategy is not None else _strategy(budget, wanted)
    searched = sweep(
        lab, strategies.ALL[name](wanted, request.seed), store, budget=budget,
        jobs=_jobs(request, job), timeout_s=request.timeout_s,
        progress=progress, first=(prepared.annotated,), overlap=job.target.bakes, fresh=request.fresh,
    )  # fmt: skip
    return finish(prepared, lab, searched)


def _jobs(request: Request, job: Job) -> int:
    """Compiling processes: one core is kept for measuring on a GPU; on a CPU nothing is measured meanwhile."""
    if request.jobs is not None:
        return request.jobs
    return default_jobs() if job.target.bakes else len(os.sched_getaffinity(0))


def _strategy(budget: Budget, space: Space) -> str:
    """The whole space in order where the budget allows it, else a sample of it."""
    return "random" if budget.count is not None and budget.count < space.size else "exhaustive"


def finish(prepared: Prepared, lab: KernelLab, searched: SweepResult) -> Result:
    """The finals, and the result with its tables' entries."""
    rows = finalists(searched.timed)
    default = prepared.annotated.text
    chosen = {row.directives for row in rows} | (
        {default} if any(r.directives == default for r in searched.timed) else set()
    )
    times: dict[str, tuple[float, ...]] = {}
    if not searched.interrupted and chosen:
        times = _finals(prepared, lab, sorted(chosen))
    best, ties = winner(times, rows, searched)
    verified = {row.directives: _verified(row) for row in searched.timed}
    entries = _entries(prepared, times, default, best, verified)
    won = best if best is not None and prepared.request.sweep else ""
    sizes = {n: int(v) for n, v in prepared.job.problem.values.items() if _is_size(prepared.unit, n)}
    return Result(
        kernel=prepared.unit.codelet.name, facts=prepared.facts, target=prepared.job.target.name,
        dtype=prepared.context.dtype, sizes=sizes, entries=entries, directives=won, ties=ties,
        proof=_proof(prepared, lab, won), versions=searched.counts, command=prepared.request.command,
        flops=flops.count(prepared.unit.codelet.body, sizes), interrupted=searched.interrupted,
    )  # fmt: skip


def finalists(timed: tuple[Row, ...]) -> tuple[Row, ...]:
    """The fastest few, and every one that is as fast within the noise of screening."""
    medians = [row.median_us for row in timed]
    near = sum(m is not None and m <= NEAR * (medians[0] or 0.0) for m in medians) if medians else 0
    return timed[: min(MOST, max(FINALISTS, near))]


def _finals(prepared: Prepared, lab: KernelLab, texts: list[str]) -> dict[str, tuple[float, ...]]:
    """Paired times by directive text; "hand-written" is the hand-written kernel, where the folder beside has one."""
    plans: dict[str, Plans] = {}
    for text in texts:
        codelet = lab.scheduled(Configuration(tuple(text.splitlines()))).codelet
        plans[text] = plans_of(prepared.job, codelet, text)
    by_hand = handwritten(prepared.request.file)
    with Worker(partial(finalist, prepared.job), limit_s=600.0) as worker:
        worker.submit("finals", plans, by_hand, prepared.request.seed)
        while True:
            for _, _, reply in wait([worker]):
                match reply:
                    case Returned(times):
                        return dict(times)
                    case Raised(message, trace):
                        raise AssertionError(f"the finals failed: {message}\n{trace}")
                    case other:
                        raise UsageError(f"the finals did not end: {other.message}")


def handwritten(file: Path) -> Path | None:
    """``handwritten/<name>.py`` beside the C file."""
    path = file.parent / "handwritten" / f"{file.stem.replace('-', '_')}.py"
    return path if path.exists() else None


def winner(
    times: Mapping[str, tuple[float, ...]], rows: tuple[Row, ...], searched: SweepResult
) -> tuple[str | None, tuple[str, ...]]:
    """The best configuration, the plainest of those that the measurement cannot tell apart; and the others of these."""
    if not times:
        return (searched.best.directives if searched.best is not None else None), ()
    candidates = [row.directives for row in rows if row.directives in times]
    fastest = min(candidates, key=lambda text: summary(times[text]).median_us)
    same = [t for t in candidates if t == fastest or speedup(times[t], times[fastest], 0).verdict == "SAME"]
    best = min(same, key=lambda text: (len(text.splitlines()), len(text), text))
    return best, tuple(t for t in same if t != best)


def _entries(
    prepared: Prepared,
    times: Mapping[str, tuple[float, ...]],
    default: str,
    best: str | None,
    verified: Mapping[str, str],
) -> tuple[Entry, ...]:
    base = times.get(default)

    def entry(name: str, key: str, how: str) -> Entry:
        if key not in times:
            return Entry(name, None, None, "not measured")
        over: Speedup | None = speedup(base, times[key], 0) if base is not None and key != default else None
        return Entry(name, summary(times[key]), over, how)

    alone = _sequential(prepared) if times else None
    over = None
    if alone is not None and base is not None:
        ratio = summary(base).median_us / alone.median_us
        over = Speedup(ratio, ratio, ratio, "FAST" if ratio > 1 else "SLOW")
    entries = [Entry("sequential", alone, over, "is the reference")]
    entries.append(entry("default", default, verified.get(default, "")))
    if handwritten(prepared.request.file) is not None:
        entries.append(entry("hand-written", "hand-written", "against the original loops"))
    if "library" in times:
        entries.append(entry("library", "library", "against the original loops"))
    if prepared.request.sweep and best is not None:
        entries.append(entry("tuned", best, verified.get(best, "")))
    return tuple(entries)


def _sequential(prepared: Prepared) -> Summary | None:
    """The original loops on one core; None where they would take longer than anyone waits."""
    work = flops.count(
        prepared.unit.codelet.body, {n: int(v) for n, v in prepared.job.problem.values.items() if float(v).is_integer()}
    )
    if work is not None and work > SLOWEST_FLOPS:
        return None
    return summary(sequential_us(prepared.job))


def _verified(row: Row) -> str:
    match row.outcome:
        case Timed(verified=how):
            return how
    return ""


def _proof(prepared: Prepared, lab: KernelLab, directives: str) -> str:
    """What the winner's legality rests on: the judgement of each directive, and the proof of the finished loops."""
    done = lab.scheduled(Configuration(tuple(directives.splitlines())))
    sizes = {n: int(v) for n, v in prepared.job.problem.values.items() if _is_size(prepared.unit, n)}
    found = prove(prepared.unit.codelet, done.codelet, sizes, reassociate=lab.job.reassociate)
    judged = "asserted by the user (trust)" if done.asserted else "every directive proved"
    finished = {
        "proved": "the finished loops proved equivalent at these sizes",
        "failed": f"THE FINISHED LOOPS ARE WRONG: {found.reason}",
        "unknown": f"the finished loops could not be compared ({found.reason})",
    }
    order = "sums may be reassociated" if lab.job.reassociate else "sums in their order"
    return f"{judged}; {finished[found.verdict]}; {order}"


def _is_size(unit: Unit, name: str) -> bool:
    return any(isinstance(p, Scalar) and p.name == name and is_integer(p.dtype) for p in unit.codelet.params)


def _space(request: Request, lab: KernelLab) -> Space:
    if not request.sweep:
        return Space(())
    path = request.space if request.space is not None else _space_file(request.file)
    if path is None:
        return parse(derive(lab.analysis), "<derived>")
    try:
        return parse(path.read_text(), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the space file {path}: {getattr(error, 'strerror', 'it is no text')}") from error


def _space_file(file: Path) -> Path | None:
    """``pragmas/<name>.pragmas`` beside the C file's folder, or ``<name>.pragmas`` beside the file."""
    places = (file.parent.parent / "pragmas" / f"{file.stem}.pragmas", file.with_suffix(".pragmas"))
    return next((p for p in places if p.exists()), None)


def _context(unit: Unit, job: Job, facts: Facts) -> Context:
    """All that a time depends on besides the directives."""
    text = pretty.function(unit.codelet) + repr([p.io for p in unit.codelet.params if isinstance(p, Array)])
    arrays = [p.dtype for p in unit.codelet.params if isinstance(p, Array)]
    own = [repr(n) for n in _directives(unit)]
    return Context(
        kernel=unit.codelet.name, source_hash=hashlib.sha256("\n".join([text, *own]).encode()).hexdigest(),
        lowering=LOWERING, toolchain=_versions(), capability=facts.arch, device=facts.name, target=job.target.name,
        sizes=packed(job.problem.values), dtype=arrays[0] if arrays else "",
        options=packed({"seed": job.seed, "reassociate": job.reassociate, "cores": facts.cores}),
    )  # fmt: skip


def _directives(unit: Unit) -> list[tuple[int, tuple[Directive, ...]]]:
    return [(n.number, n.directives) for n in walk(unit.codelet.body) if isinstance(n, Loop)]


def _versions() -> str:
    installed = {d.metadata["Name"]: d.version for d in importlib.metadata.distributions()}
    return packed(
        {n: installed[n] for n in ("numba", "llvmlite", "numpy", "numba-cuda", "nvidia-nvvm") if n in installed}
    )
