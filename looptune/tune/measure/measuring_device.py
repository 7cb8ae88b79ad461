"""The device on which the versions of a job are run, compared with the reference and timed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from looptune.backends.base import Backend, Binary, PartialRun, Program, TimeLimit
from looptune.core.errors import ResourceError, TargetError
from looptune.ir import operation_count
from looptune.ir.nodes import Assign
from looptune.ir.rewrite import walk_stmts
from looptune.lower.plan import Plan, count, has_host_loop, in_one_thread
from looptune.runtime import peak_rates
from looptune.runtime.device import Device, Run
from looptune.runtime.device_compare import Comparison
from looptune.runtime.energy import EnergyCounter
from looptune.runtime.outcome import COMPILER, CutOff, Fact, Outcome, OverLimit, Timed, WrongResult
from looptune.runtime.roofline import Roofline
from looptune.runtime.timing import screen, summary
from looptune.runtime.tolerance import NOTHING
from looptune.runtime.verification import OUTSIDE, ReferenceComparison
from looptune.tune.execution.lab import NextStep
from looptune.tune.execution.worker_loop import pickle_value
from looptune.tune.incumbent import Incumbent
from looptune.tune.job import Job
from looptune.tune.measure.float_accuracy import EMULATED, END, ROUNDED, float_accuracy
from looptune.tune.measure.prime_sizes import PrimeSizeCheck, PrimeSizeRun
from looptune.tune.measure.pruning import (
    LONG_US,
    early_stop_outcome,
    endless_outcome,
    is_endless,
    is_hopeless,
    is_promising,
    limit,
    one_run_suffices,
    screened_out,
    with_pace,
)
from looptune.tune.measure.reference import NOT_COMPARED, NOT_INDEPENDENTLY, ReferenceResult, outputs

if TYPE_CHECKING:
    import numpy as np

    from looptune.tune.measure.build_steps import BuildStep, Built, Finalist


def verification_text(judge: ReferenceComparison, odd: ReferenceComparison | None = None, sizes: str = "") -> str:
    """Return a description of the verification: ``judge`` compared the results at the sizes timed.

    ``odd`` compared those at the prime sizes ``sizes``, or is None if that did not take place.
    """
    widened = f" (4 times the rounding errors measured there: {judge.widened})" if judge.widened else ""
    here = f"at the sizes timed{widened}"
    elsewhere = odd is not None and odd.against and sizes
    if judge.against:
        if odd is None or not elsewhere:
            return f"against {judge.against} {here}"
        if odd.against == judge.against:
            return f"against {judge.against} {here} and at {sizes}"
        return f"against {judge.against} {here}, and {odd.against} at {sizes}"
    if odd is not None and elsewhere:
        why = NOT_INDEPENDENTLY if judge.expected else NOT_COMPARED
        return f"against {odd.against} at {sizes}; at the sizes timed {why}"
    return NOT_INDEPENDENTLY if judge.expected else f"at the sizes timed {NOT_COMPARED}"


@dataclass(slots=True)
class MeasuringDevice:
    """A device with the inputs on it, and the results of the reference."""

    job: Job
    machine: Device = field(init=False)
    backend: Backend = field(init=False)
    searching: Backend = field(init=False)
    arrays: dict[str, Any] = field(init=False, default_factory=dict)
    originals: dict[str, Any] = field(init=False, default_factory=dict)
    comparison: Comparison = field(init=False)
    prime_check: PrimeSizeCheck | None = field(init=False, default=None)
    edge_checks: list[PrimeSizeCheck] = field(init=False, default_factory=list)
    ceiling: Roofline | None = field(init=False)
    peaks_remeasured: bool = field(init=False, default=False)
    counter: EnergyCounter | None = field(init=False)

    def __post_init__(self) -> None:
        job = self.job
        self.ceiling = job.ceiling
        self.machine, self.backend = job.target.machine(), job.target.backend()
        search = job.target.search_backend
        self.searching = self.backend if search is None else search()
        self.counter = self.machine.energy_counter() if job.energy else None
        if job.energy and self.counter is None:
            raise TargetError(
                f"--energy and --objective: {self.machine.facts.name} has no energy counter that can be read: it needs "
                "an NVIDIA GPU and nvidia-ml-py, or a CPU with a readable /sys/class/powercap/intel-rapl:*/energy_uj"
            )
        if job.prime_problem is not None:
            self.prime_check = PrimeSizeCheck(job, self.machine, self.backend, job.prime_problem)
        self.edge_checks = [
            PrimeSizeCheck(job, self.machine, self.backend, at, at_problem=True) for at in job.edge_problems
        ]
        original = ReferenceResult(job, job.problem, job.seed)
        host = original.inputs()
        judge = original.judge(host)
        self.comparison = Comparison(self.machine, self.backend, judge)
        self.arrays = {name: self.machine.place(a) for name, a in host.items()}
        changed = judge.expected.keys() | outputs(job.codelet)
        self.originals = {name: self.machine.place(host[name]) for name in host if name in changed}

    def load(self, binary: Binary) -> Program:
        """Load a binary of the target's own compiler, or of the search's."""
        own = self.is_own(binary)
        return (self.backend if own else self.searching).load(binary)

    def is_own(self, binary: Binary) -> bool:
        """Tell whether the target's own compiler made a binary, and not another one that compiles for searches."""
        return self.searching is self.backend or binary.target != self.searching.name

    def verify(self, finalist: Finalist) -> str | None:
        """Return what is wrong with a finalist, at the user's sizes or at others; None if nothing.

        A finalist that was not built anew, and was verified at all sizes in the search, is not run again.
        """
        anew = self.searching is not self.backend and self.is_own(finalist.timed)
        if not anew and finalist.at_prime_sizes is None:
            return None
        # Where one plan serves all sizes, one binary does.
        other = None if self.job.target.specializes_sizes else finalist.timed
        checks = [(check, finalist.at_edge_sizes or other) for check in self.edge_checks]
        if self.prime_check is not None:
            checks.insert(0, (self.prime_check, finalist.at_prime_sizes or other))
        for check, binary in checks:
            ran = None if binary is None else check.run(self.load(binary), binary.plan)
            if ran is not None and ran.wrong is not None:
                return ran.wrong
        self.restore()
        self.machine.time_once(self.run_of(finalist.timed))
        wrong = self.wrong(finalist.timed.plan)
        if wrong is not None or not self.comparison.judge.expected:
            return wrong
        floats, usable = float_accuracy(finalist.timed.plan, self.comparison.judge, self._fetched)
        return None if usable else floats

    def measure(self, built: Built, best: Incumbent | None) -> Outcome | NextStep:
        """Run a built step, and return its outcome or the next step.

        A version that is far slower than ``best`` is cut off; if ``best`` is None, it is measured whole.
        """
        try:
            return self._measured(built, best)
        except ResourceError as error:  # what only the device knows
            return OverLimit(error.message)

    def _measured(self, built: Built, best: Incumbent | None) -> Outcome | NextStep:
        step, against = built.step, best if self.job.cuts else None
        checked = step.checked
        endless = self.endless(step, against) if checked is None and step.timed is None else None
        if endless is not None:
            return endless
        program, plan = self.load(built.binary), built.binary.plan
        if step.at_edge_sizes or (step.plans.codelet is None and checked is None):
            wrong = next((w for edge in self.edge_checks if (w := edge.run(program, plan).wrong)), None)
            if wrong is not None:
                return self.wrong_result(wrong)
        if step.at_edge_sizes and step.timed is not None:
            return step.timed
        one_plan = step.plans.codelet is None
        if self.prime_check is not None and (step.at_prime_sizes or (one_plan and checked is None)):
            checked = self.prime_check.run(program, plan)
            if checked.wrong is not None:
                return self.wrong_result(checked.wrong)
            if step.at_prime_sizes or self.job.screens:
                return self.next_step(built, checked, against)
        if checked is None and self.job.screens and self.prime_check is not None and not self.comparison.judge.expected:
            # Without results of the original loops here, a version is verified before it is timed.
            return NextStep(pickle_value(replace(step, at_prime_sizes=True)))
        before = PrimeSizeRun() if checked is None else checked
        outcome = self.at_the_users_sizes(built.binary, program, before, best, against)
        unchecked = checked is None and self.prime_check is not None
        if unchecked and isinstance(outcome, Timed) and self._is_promising(outcome, against):
            return NextStep(pickle_value(replace(step, at_prime_sizes=True, timed=outcome)), outcome)
        return self.check_edge_sizes(step, outcome, against)

    def check_edge_sizes(self, step: BuildStep, outcome: Outcome, against: Incumbent | None) -> Outcome | NextStep:
        """Run a promising version also at sizes 0 and 1, at which loops do not run.

        The sizes are not constants of that kernel, since it would otherwise need one kernel for each of them.
        """
        if not self.edge_checks or step.plans.codelet is None or not isinstance(outcome, Timed):
            return outcome
        if not self._is_promising(outcome, against):
            return outcome
        return NextStep(pickle_value(replace(step, at_prime_sizes=False, at_edge_sizes=True, timed=outcome)), outcome)

    def _is_promising(self, timed: Timed, against: Incumbent | None) -> bool:
        # In a budget of time, the finals may take what the search has compiled.
        again = self.searching is not self.backend and not self.job.finals_end
        return is_promising(timed.median_us, against, again=again)

    def next_step(self, built: Built, checked: PrimeSizeRun, against: Incumbent | None) -> Outcome | NextStep:
        """Return what follows a run at prime sizes with correct results.

        A version that was timed before is checked at sizes 0 and 1 or done; a hopeless one is cut off; any other is run
        at the user's sizes next.
        """
        step = built.step
        if step.timed is not None:
            timed = replace(step.timed, facts=(*step.timed.facts, *Incumbent(0.0, checked.us, checked.sizes).facts))
            return self.check_edge_sizes(step, self._verified(timed, checked), against)
        if against is not None and checked.us is not None and self._hopeless(step.plans.timed, checked, against):
            launches = count(step.plans.timed.steps, self.integers)
            facts = (*_facts(built.binary), *_took(checked.took_s, 0.0))
            return screened_out(checked.us, checked.sizes, against, launches, facts)
        return NextStep(pickle_value(replace(step, at_prime_sizes=False, checked=checked)), reduced_us=checked.us)

    def _hopeless(self, plan: Plan, checked: PrimeSizeRun, against: Incumbent) -> bool:
        assert checked.us is not None, "a version without a time is not compared"
        if is_hopeless(checked.us, checked.sizes, against):
            return True
        if self.job.prime_problem is None or not all(map(in_one_thread, plan.compiled_kernels)):
            return False
        reduced = {n: int(v) for n, v in self.job.prime_problem.values.items() if float(v).is_integer()}
        few, many = (operation_count.count(self.job.codelet.body, sizes) for sizes in (reduced, self.integers))
        return is_endless(checked.us, many / few, against) if few and many else False

    def endless(self, step: BuildStep, against: Incumbent | None) -> CutOff | None:
        """Return the outcome of a version whose kernels of one thread are not worth a run at any size, or None."""
        plan = step.plans.timed
        if against is None or not self.machine.asynchronous or not any(map(in_one_thread, plan.compiled_kernels)):
            return None
        # A statement with copies in other kernels makes an unknown part of its assignments here.
        alone, others = (
            {n.name for kernel in plan.compiled_kernels if in_one_thread(kernel) is one
             for n in walk_stmts(kernel.body) if isinstance(n, Assign)}
            for one in (True, False)
        )  # fmt: skip
        names = alone - others - {""}
        made = operation_count.least_statements(self.job.codelet.body, self.integers, names)
        return endless_outcome(made, against, count(plan.steps, self.integers))

    def at_the_users_sizes(
        self,
        binary: Binary,
        program: Program,
        checked: PrimeSizeRun,
        best: Incumbent | None,
        against: Incumbent | None,
    ) -> Outcome:
        start = time.monotonic()
        ran = self.run_within_limit(limit(against), program) if has_host_loop(binary.plan) else None
        if against is not None and ran is not None and ran.launched < ran.launches:
            facts = (*_facts(binary), *_took(checked.took_s, time.monotonic() - start))
            return early_stop_outcome(ran, against, checked.sizes, facts)
        sample = self.machine.sampler(self.running(program), self.pairs())
        first_us = sample() if ran is None else ran.us
        wrong = self.wrong(binary.plan)
        if wrong is not None:
            return self.wrong_result(wrong)
        floats, usable = "", True
        if self.comparison.judge.expected:
            floats, usable = float_accuracy(binary.plan, self.comparison.judge, self._fetched)
        if not usable:
            return WrongResult(floats)
        verified = time.monotonic()
        times = self.timed(sample, first_us, ran is not None, None if best is None else best.us)
        s = summary(times)
        bad = None if ran is None else self.wrong(binary.plan)
        bad = bad or self.impossible(s.median_us, binary.plan.matrix_rate)
        if bad is not None:
            return WrongResult(bad)
        own = Incumbent(s.median_us, checked.us, checked.sizes, with_pace(ran, s.median_us))
        facts = (*_facts(binary), *_took(verified - start, time.monotonic() - verified), *own.facts)
        facts += () if self.is_own(binary) else ((COMPILER, binary.target),)
        return self._verified(Timed(times, s.median_us, s.q1_us, s.q3_us, floats, facts), checked)

    def _fetched(self) -> dict[str, np.ndarray]:
        return self.comparison.fetched(self.arrays)

    def _verified(self, outcome: Timed, checked: PrimeSizeRun) -> Timed:
        """Return the outcome with a description of its verification and with the seconds at prime sizes.

        What is said of a version that does not compute with floats as the loops do is what was measured at the sizes
        timed, or else at prime sizes.
        """
        judge = self.comparison.judge
        before = outcome.verified if outcome.verified.startswith((EMULATED, ROUNDED)) else ""
        floats = before.partition(END)[0] or checked.floats
        floats += END if floats else ""
        if not checked.sizes or self.prime_check is None:
            return replace(outcome, verified=floats + verification_text(judge))
        took = {"verify_s": checked.took_s}
        facts = tuple((name, round(float(v) + took[name], 4) if name in took else v) for name, v in outcome.facts)
        said = verification_text(judge, self.prime_check.judge, checked.sizes)
        return replace(outcome, verified=floats + said, facts=facts)

    def timed(
        self, sample: Callable[[], float], first_us: float, apart: bool, best_us: float | None
    ) -> tuple[float, ...]:
        """Return the times of a version in microseconds: those of a screening, or a single one if that suffices.

        ``first_us``: time of the verifying run; ``apart``: its launches were made one by one.
        """
        if not one_run_suffices(first_us, best_us):
            return screen(sample, best_us)
        # Such a run may have waited for its host: on a device that can, what counts is replayed as a whole.
        return (sample(),) if apart and self.machine.asynchronous else (first_us,)

    def wrong_result(self, wrong: str) -> WrongResult:
        """Return the difference, and below it what to try where rounding may be why: not where an array was left."""
        stricter = "" if OUTSIDE in wrong else self.job.stricter
        return WrongResult("\n".join(line for line in (wrong, stricter) if line))

    def run_within_limit(self, allowed: TimeLimit, program: Program) -> PartialRun:
        """Run the launches one after the other until the time limit.

        On a device that is not asynchronous, a run that is cut off is repeated once, since it may have been disturbed.
        An asynchronous device has a clock of its own, which does not count delays of the host.
        """
        for _ in range(1 if self.machine.asynchronous else 2):
            self.restore()
            ran = program.run_within(allowed, self.arrays, self.job.problem.values, self.machine.stream)
            if ran.launched == ran.launches or ran.us > LONG_US:
                break
        return ran

    @property
    def integers(self) -> dict[str, int]:
        return {n: int(v) for n, v in self.job.problem.values.items() if float(v).is_integer()}

    def impossible(self, time_us: float, matrix_rate: int = 1) -> str | None:
        """Return why the device cannot be as fast as this time, or None if it can; see ``Roofline.violated_by``.

        If a time exceeds the measured peaks, these are measured again, once, before it is called impossible.
        """
        found = None if self.ceiling is None else self.ceiling.violated_by(time_us, matrix_rate=matrix_rate)
        if found is None or self.ceiling is None or self.peaks_remeasured:
            return found
        self.peaks_remeasured = True
        peaks = self.ceiling.peaks.best_of(peak_rates.measure(self.machine, self.backend))
        peak_rates.cache_rates(self.machine.facts, self.job.cache, peaks)
        self.ceiling = replace(self.ceiling, peaks=peaks)
        return self.ceiling.violated_by(time_us, matrix_rate=matrix_rate)

    def run_of(self, binary: Binary) -> Run:
        return self.running(self.load(binary))

    def running(self, program: Program) -> Run:
        return lambda stream: program.run(self.arrays, self.job.problem.values, stream)

    def wrong(self, plan: Plan | None = None) -> str | None:
        """Return what is wrong with the results of a plan, or of a kernel that is none of looptune's."""
        return self.comparison.wrong(self.arrays, NOTHING if plan is None else plan.inexact)

    def restore(self) -> None:
        for name, source in self.originals.items():
            self.machine.copy(source, self.arrays[name])

    def pairs(self) -> dict[str, tuple[Any, Any]]:
        """Return the arrays to restore before a run, each with its original contents."""
        return {name: (self.arrays[name], source) for name, source in self.originals.items()}


def _took(verify_s: float, measure_s: float) -> tuple[Fact, ...]:
    return ("verify_s", round(verify_s, 4)), ("measure_s", round(measure_s, 4))


def _facts(binary: Binary) -> tuple[Fact, ...]:
    most = max(binary.resources, key=lambda r: r.registers, default=None)
    took: tuple[Fact, ...] = (("compile_s", round(binary.compile_s, 3)),)
    if most is None:
        return took
    return (
        *took,
        ("registers", most.registers),
        ("local_bytes", most.local_bytes),
        ("shared_bytes", most.shared_bytes),
    )
