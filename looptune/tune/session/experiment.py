"""Measure one file at one size on one target: sequential, default, hand-written and tuned, in one table.

file ─▶ unit ─▶ problem ─▶ sweep over the space ─▶ finals: the best, the default, hand-written ─▶ Result
        preparation                tune                                conclusion

If there are several models of device, each is prepared, swept and reported separately; their sweeps run at the same
time. So do those of several files on a GPU: while the versions of one compile, those of others are measured.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import islice
from threading import Thread
from typing import TYPE_CHECKING

import numpy as np

from looptune.core.errors import DirectiveError, IllegalTransform
from looptune.ir import operation_count
from looptune.ir.nodes import Array
from looptune.lower.plan import in_one_thread
from looptune.runtime import peak_rates, work_bounds
from looptune.runtime.device import cores
from looptune.runtime.problem_sizes import shapes
from looptune.runtime.roofline import Roofline
from looptune.tune import strategies
from looptune.tune.execution.local_executor import HERE
from looptune.tune.measure import sequential
from looptune.tune.measure.build_steps import plans_of
from looptune.tune.measure.evaluate import KernelBuilder
from looptune.tune.measure.reference import ReferenceResult
from looptune.tune.session import dump, transfer
from looptune.tune.session.budget import Budget, search_budget
from looptune.tune.session.conclude import finals_ahead, finish
from looptune.tune.session.predicted_time import predict_spaces, screening_model, time_model
from looptune.tune.session.prepare import PreparedRun, single_version_command
from looptune.tune.session.search_lab import SearchLab
from looptune.tune.session.sweep import Part, sweeps
from looptune.tune.session.transfer_prior import transfer_prior
from looptune.tune.space.space import Configuration, Space

if TYPE_CHECKING:
    from looptune.tune.execution.executor import Executor
    from looptune.tune.execution.lab import Progress
    from looptune.tune.job import Job
    from looptune.tune.results.result import Result
    from looptune.tune.store.store import Store
    from looptune.tune.strategies import Strategy

FEW = 4
"""Versions, the default among them: a smaller budget is for what the user asks for."""
GUESSES = 4
"""The first of them may be illegal, or take long to compile."""
PEAKS_S = 20.0
"""A budget of fewer seconds is not spent on measuring the peaks of the device."""
COPIES = 6
"""Bytes on a device for each of a kernel's: what is measured, as it was and as it should be; as much is left free."""
CONTEXT_BYTES = 2**30
"""A process of its own on a device: the driver's context, what is written to flush the cache, and compiled kernels."""


def run(prepared: PreparedRun, store: Store, progress: Callable[[Progress], None], executor: Executor = HERE) -> Result:
    """Run the experiment on one model of device; see ``run_all``."""
    (result,) = run_all((prepared,), store, progress, executor)
    return result


def run_all(
    prepared: Sequence[PreparedRun], store: Store, progress: Callable[[Progress], None], executor: Executor = HERE
) -> tuple[Result, ...]:
    """Run the experiment on every file and every model of device, and return the results in that order.

    All sweeps (or, without a sweep, the measurements of the annotated versions) run at the same time; transferred
    configurations and the finals of each follow. The requests must be equal except for the file and its definitions.
    """
    begun = time.monotonic()
    _start_references(prepared)
    shares = threads([_work(p) if len(prepared) > 1 else None for p in prepared])
    prepared = tuple(_with_ceiling(_with_share(p, n), executor) for p, n in zip(prepared, shares, strict=True))
    one = prepared[0]
    request = one.request
    labs = [KernelBuilder(p.job, p.context) for p in prepared]
    budget = one.budget if request.sweep else Budget(count=1)
    searches = predict_spaces(prepared, [_strategy(p, budget, store) for p in prepared], executor)
    parts = [
        Part(
            SearchLab(KernelBuilder(p.job, p.context, time_model(p), screening_model(p))),
            strategy,
            p.model,
            single_version_command(p),
            _on_one_core(p, lab, budget),
            guesses(p, lab, budget),
            partial(finals_ahead, p, lab, store),
        )
        for lab, p, strategy in zip(labs, prepared, searches, strict=True)
    ]
    if request.sweep and budget.seconds is not None:
        before_s = request.started_s + one.prepared_s + time.monotonic() - begun
        budget = search_budget(budget.seconds, before_s, one.job.finals_s, one.job.energy_s if one.job.energy else 0.0)
    searched = sweeps(
        parts, store, executor, jobs=one.jobs, timeout_s=request.timeout_s, budget=budget, progress=progress,
        first=(one.annotated,), fresh=request.fresh, cuts=request.early_stop,
    )  # fmt: skip
    return finish(
        prepared, labs, store, transfer.measure(prepared, labs, searched, store, progress, executor), executor
    )


def _start_references(prepared: Sequence[PreparedRun]) -> None:
    """Run the original loops of sweeps for GPUs or in a budget of time, on cores that wait for a device's set-up.

    Those for a GPU in a budget of time run already, since before the derivation.
    """
    for p in prepared:
        apart = p.job.reference_s is not None or p.job.target.specializes_sizes
        running = p.job.target.specializes_sizes and p.job.finals_end
        if p.request.sweep and p.request.cluster is None and apart and not running:
            Thread(target=ReferenceResult(p.job, p.job.problem, p.job.seed).run_text, daemon=True).start()
            if p.job.screens and p.job.reference_s is None:
                Thread(target=start_estimates, args=(p.job,), daemon=True).start()


def start_estimates(job: Job) -> list[Thread]:
    """Begin with the estimates of rounding errors beside the reference of long loops, and return what makes them.

    Versions ask for them when they differ, which here would be after the reference: the device waits twice as long.
    Those are made that versions would need at reduced sizes, which takes no time to find out.
    """
    assert job.prime_problem is not None, "there are sizes at which versions are screened"
    assert job.text is not None, "versions are screened by the text"
    here = ReferenceResult(job, job.problem, job.seed)
    started: list[Thread] = []
    with suppress(OSError):  # no room for what is kept
        needed = ReferenceResult(job, job.prime_problem, job.seed + 1).needed_estimates()
        runs = here.estimate_runs(job.text.description, here.inputs()) if needed else {}
        for run in islice(runs.values(), needed):
            started.append(Thread(target=_kept, args=(run,), daemon=True))
            started[-1].start()
    return started


def _kept(run: Callable[[], object]) -> None:
    with suppress(OSError):
        run()


def concurrent_groups(
    prepared: Sequence[Sequence[PreparedRun]], executor: Executor
) -> Iterator[tuple[Sequence[PreparedRun], ...]]:
    """Yield the files, each with all its models, in the groups that ``run_all`` runs at the same time.

    A kernel with a budget of time is a group of its own, since it has all devices for that time. The arrays of a group
    fit into the memory of each device.
    """
    group: list[Sequence[PreparedRun]] = []
    for file in prepared:
        one = file[0]
        wide = one.request.sweep and one.budget.seconds is None
        count = executor.concurrency([p.model for p in file]) if wide else 1
        needed = sum(COPIES * _bytes(first) + CONTEXT_BYTES for first in (*(first for first, *_ in group), one))
        if group and (len(group) >= count or needed > min(p.facts.memory_bytes for p in file)):
            yield tuple(group)
            group = []
        group.append(file)
    if group:
        yield tuple(group)


def _bytes(prepared: PreparedRun) -> int:
    """Return the bytes of the arrays, counted once."""
    codelet, shaped = prepared.job.codelet, shapes(prepared.job.codelet, prepared.job.problem)
    return sum(math.prod(shaped[p.name]) * np.dtype(p.dtype).itemsize for p in codelet.params if isinstance(p, Array))


def threads(work: Sequence[int | None]) -> tuple[int | None, ...]:
    """Return how many cores the original loops of each kernel may use, so that all end at about the same time.

    Cores are shared in proportion to ``work``, the operations of each kernel, or equally if one of these is unknown
    (None). Each kernel has at least one; a single kernel has all, which is None.

    >>> threads([5])
    (None,)
    """
    if len(work) == 1:
        return (None,)
    known = [w for w in work if w is not None]
    known = known if len(known) == len(work) else [1] * len(work)
    total = max(1, sum(known))
    return tuple(max(1, cores() * w // total) for w in known)


def _work(prepared: PreparedRun) -> int | None:
    return operation_count.count(prepared.job.codelet.body, prepared.sizes)


def _with_share(prepared: PreparedRun, share: int | None) -> PreparedRun:
    return prepared if share is None else replace(prepared, job=replace(prepared.job, threads=share))


def _with_ceiling(prepared: PreparedRun, executor: Executor) -> PreparedRun:
    """Return the job with the roofline of its device, unless the device is on another machine.

    The peaks of a device are measured before the first sweep on it, and then cached. That takes seconds, which a short
    budget of time is not for: it uses peaks that are cached, and is without a roofline where there are none.
    """
    job, machine = prepared.job, executor.machine(prepared.model)
    if machine is None or machine.facts.target not in peak_rates.KNOWN:
        return prepared
    budget_s = math.inf if prepared.budget.seconds is None else prepared.budget.seconds
    if budget_s < PEAKS_S and prepared.request.sweep:
        peaks = peak_rates.cached_rates(machine.facts, job.cache)
    else:
        peaks = peak_rates.peak_rates(machine, job.target.backend(), job.cache)
    if peaks is None:
        return prepared
    least = work_bounds.minimum_work(KernelBuilder(job, prepared.context).analysis.model, prepared.sizes)
    ceiling = Roofline(least, peaks, machine.facts.cache_bytes, machine.cold)
    return replace(prepared, job=replace(job, ceiling=ceiling))


def _on_one_core(prepared: PreparedRun, lab: KernelBuilder, budget: Budget) -> tuple[Configuration, ...]:
    """Return the version without threads that a sweep for a CPU also evaluates, since it may be the fastest."""
    if (
        not prepared.request.sweep
        or prepared.job.target.specializes_sizes
        or (budget.count is not None and budget.count < FEW)
    ):
        return ()
    return sequential.version(lab.analysis, prepared.annotated.lines, prepared.job.problem.values)


def guesses(prepared: PreparedRun, lab: KernelBuilder, budget: Budget) -> tuple[Configuration, ...]:
    """Return the versions that are measured before a default that may take long.

    They are the first of the first sections: a derived space begins with parallel orders, and for a CPU with loops
    along rows. The default may take minutes if one thread executes a nest, and it is cut off once it is far slower than
    the first of these that has a time. On a CPU, that matters only if the time is limited, and then also for a kernel
    of which one run takes seconds on all cores.
    """
    few = budget.count is not None and budget.count < FEW
    gpu = prepared.job.target.specializes_sizes
    if not prepared.request.sweep or few or not (gpu or budget.seconds is not None):
        return ()
    try:
        default = plans_of(prepared.job, lab.scheduled(prepared.annotated).codelet, "").timed
    except (DirectiveError, IllegalTransform):
        return ()
    heavy = not gpu and prepared.job.screens
    if not heavy and not any(map(in_one_thread, default.compiled_kernels)):
        return ()
    firsts = (next(iter(Space((section,))), None) for section in prepared.space.sections)
    return tuple(islice((c for c in firsts if c is not None and c.text != prepared.annotated.text), GUESSES))


def _strategy(prepared: PreparedRun, budget: Budget, store: Store) -> Strategy:
    """Return the one asked for, else the whole space in order where the budget allows it, or a sample of it.

    In a budget of seconds, the sections of the space have their turn by how fast their versions are. A search that does
    not cover the space begins with what won at other sizes or on other devices.
    """
    request = prepared.request
    space = prepared.space if request.sweep else Space(())
    usual = "random" if budget.count is not None and budget.count < space.size else "exhaustive"
    usual = usual if budget.seconds is None else "sections"
    name = usual if request.strategy is None else request.strategy
    strategy = strategies.named(name)(space, request.seed)
    few = budget.count is not None and budget.count < FEW
    if not request.sweep or few or name == "exhaustive":
        return strategy
    known = transfer_prior(store, prepared.context, space, prepared.annotated.text)
    return strategy.begin_with(known) if known else strategy


def dump_outputs(prepared: PreparedRun, result: Result) -> list[str]:
    """Write what ``--dump`` asks for: the arrays that the best version leaves, or the file as annotated.

    Returns what there is to say of them.
    """
    files = dump.parse_dump_options(prepared.request.dump, prepared.job.codelet)
    if not files or not result.versions.get("timed") or result.interrupted:
        return []
    best = result.directives if prepared.request.sweep else prepared.annotated.text
    return dump.write(KernelBuilder(prepared.job, prepared.context), best, files)
