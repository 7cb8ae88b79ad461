"""One configuration from its directives to an Outcome, split where processes meet.

    compiling worker    schedule, map, emit                       Illegal | the plans
    compiling worker    the plan timed, and the same at odd sizes NotBuilt | OverLimit | Built
    measuring worker    run at odd sizes, compare; run at the     WrongResult | Timed
                        user's sizes, compare; time

Everything is compared with the original loops: at odd sizes run by the interpreter, at the user's sizes by the same
loops compiled without reassociation. A ``Job`` is all a worker needs to know, and picklable.
"""

from __future__ import annotations

import hashlib
import importlib.util
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from looptune import interp
from looptune.backends.base import Backend, Binary, Program, Ran
from looptune.errors import DirectiveError, IllegalTransform, ParseError, ResourceError
from looptune.frontend.placed import parse_lines
from looptune.ir import Array, Codelet, Loop, Node, Scalar
from looptune.mapping import Plan, plan, repeats
from looptune.rewrite import rewrite, walk
from looptune.runtime import peak
from looptune.runtime.check import Doubt, Judge, Padded, nudged, padded, widened
from looptune.runtime.compare import Comparison
from looptune.runtime.machine import Cpu, Machine, Run
from looptune.runtime.outcome import CutOff, Illegal, Outcome, OverLimit, Timed, WrongResult
from looptune.runtime.roofline import Ceiling
from looptune.runtime.sizes import Problem
from looptune.runtime.timing import finals, screen, summary
from looptune.schedule import Analysis, Scheduled, bake, schedule
from looptune.simplify import is_integer
from looptune.tune.lab import Prepared
from looptune.tune.limits import exceeded
from looptune.tune.serving import Sealed, seal
from looptune.tune.space import Configuration
from looptune.tune.store import Context
from looptune.tune.workers import Setup

CUT = 3.0
"""A version that takes this many times the best is not run to its end, or not again where it has only one launch."""
WORTH_US = 10_000.0
"""Below this nothing is cut off: looking costs as much, and of a short run the first may be a hiccup."""
HOPELESS = 20.0
"""A version whose verifying run takes this many times the best, however short, is not run again either."""
LONG_US = 1e6
"""A run this long is not repeated while screening."""


@dataclass(frozen=True, slots=True)
class Target:
    """How to make the backend and the machine of a target, in whichever process needs them; ``others`` are further
    devices of the same model, which share the measuring."""

    name: str
    backend: Callable[[], Backend]
    reference: Callable[[], Backend]
    machine: Callable[[], Machine]
    bakes: bool
    others: tuple[Callable[[], Machine], ...] = ()


@dataclass(frozen=True, slots=True)
class Job:
    """One codelet at one size on one target. ``odd``: the sizes that no factor divides; None where it has none.

    A time that breaks the ``ceiling`` is refused; None where the device's peaks are not known.
    """

    codelet: Codelet
    problem: Problem
    odd: Problem | None
    target: Target
    cache: Path
    seed: int = 0
    reassociate: bool = True
    ceiling: Ceiling | None = None


@dataclass(frozen=True, slots=True)
class Plans:
    timed: Plan
    odd: Plan | None


@dataclass(frozen=True, slots=True)
class Built:
    timed: Binary
    odd: Binary | None


@dataclass(slots=True)
class KernelLab:
    """The sweep's view of a job; see ``sweep.Lab``."""

    job: Job
    context: Context
    analysis: Analysis = field(init=False)
    backend: Backend = field(init=False)

    def __post_init__(self) -> None:
        self.analysis = Analysis(self.job.codelet, self.job.reassociate)
        self.backend = self.job.target.backend()

    @property
    def compile_setup(self) -> Setup:
        return partial(compiler, self.job, self.context)

    @property
    def measure_setups(self) -> tuple[Setup, ...]:
        target = self.job.target
        each = (replace(target, machine=machine, others=()) for machine in (target.machine, *target.others))
        return tuple(partial(measurer, replace(self.job, target=one)) for one in each)

    def scheduled(self, configuration: Configuration) -> Scheduled:
        placed = parse_lines(configuration.lines, "configuration")
        return schedule(self.analysis, placed, self.job.problem.values)

    def prepare(self, configuration: Configuration) -> Prepared | Outcome:
        try:
            plans = plans_of(self.job, self.scheduled(configuration).codelet, configuration.text)
            emitted = self.backend.emit(replace(plans.timed, note=""))
        except (DirectiveError, IllegalTransform, ParseError) as error:
            return Illegal(error.message)
        return Prepared(hashlib.sha256(emitted.encode()).hexdigest(), seal(plans))

    def build(self, plans: Plans) -> Sealed | Outcome:
        """What the measuring worker loads, or what the device has too little of for it."""
        try:
            built = Built(self.backend.build(plans.timed), None if plans.odd is None else self.backend.build(plans.odd))
        except ResourceError as error:
            return OverLimit(error.message)
        over = exceeded(built.timed.resources + (() if built.odd is None else built.odd.resources))
        return seal(built) if over is None else OverLimit(over)


def plans_of(job: Job, codelet: Codelet, note: str) -> Plans:
    """What is compiled: with the sizes baked in, at the user's and at odd ones, or once for all sizes."""
    if not job.target.bakes:
        return Plans(plan(codelet, note), None)
    odd = None if job.odd is None else plan(bake(codelet, job.odd.values), note)
    return Plans(plan(bake(codelet, job.problem.values), note), odd)


def compiler(job: Job, context: Context) -> Callable[[str, Any], Prepared | Sealed | Outcome]:
    """The set-up of a compiling worker."""
    lab = KernelLab(job, context)

    def work(step: str, given: Any) -> Prepared | Sealed | Outcome:
        return lab.prepare(given) if step == "prepare" else lab.build(given)

    return work


def measurer(job: Job) -> Callable[[Built, float | None], Outcome]:
    """The set-up of the worker that measures on the job's first device."""
    return Bench(job).measure


@dataclass(frozen=True, slots=True)
class Finals:
    """``times_us`` of each round by name, paired by round; ``wrong``: why others have none."""

    times_us: Mapping[str, tuple[float, ...]]
    wrong: Mapping[str, str] = field(default_factory=dict)


def finalist(job: Job) -> Callable[..., Finals]:
    """The set-up of the worker that runs the finals."""
    return Bench(job).finals


@dataclass(slots=True)
class Bench:
    """The device, the inputs on it, and what the original loops make of them."""

    job: Job
    machine: Machine = field(init=False)
    backend: Backend = field(init=False)
    judge: Judge = field(init=False)
    arrays: dict[str, Any] = field(init=False, default_factory=dict)
    originals: dict[str, Any] = field(init=False, default_factory=dict)
    comparison: Comparison = field(init=False)
    odd_inputs: dict[str, np.ndarray] = field(init=False, default_factory=dict)
    odd_judge: Judge = field(init=False)
    guarded: dict[str, Padded] = field(init=False, default_factory=dict)
    odd_arrays: dict[str, Any] = field(init=False, default_factory=dict)
    odd_originals: dict[str, Any] = field(init=False, default_factory=dict)
    ceiling: Ceiling | None = field(init=False)
    measured_again: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        job = self.job
        self.ceiling = job.ceiling
        self.machine, self.backend = job.target.machine(), job.target.backend()
        host = job.problem.arrays(job.codelet, job.seed)
        expected = reference(job, job.codelet, host)
        self.judge = Judge(expected, reduction_terms(job.codelet, job.problem.values), self.doubt)
        self.comparison = Comparison(self.machine, self.backend, self.judge)
        self.arrays = {name: self.machine.place(a) for name, a in host.items()}
        self.originals = {name: self.machine.place(host[name]) for name in expected}
        if job.odd is not None:
            self.odd_inputs = job.odd.arrays(job.codelet, job.seed + 1)
            expected = self.interpreted(job.codelet, self.odd_inputs)
            self.odd_judge = Judge(expected, reduction_terms(job.codelet, job.odd.values), self.odd_doubt)
            self.guarded = {name: padded(a) for name, a in self.odd_inputs.items()}
            self.odd_arrays = {name: self.machine.place(p.whole) for name, p in self.guarded.items()}
            self.odd_originals = {name: self.machine.place(p.whole) for name, p in self.guarded.items()}

    def doubt(self) -> Doubt:
        job = self.job
        given = job.problem.arrays(job.codelet, job.seed)
        wide = widened(job.codelet)
        wider = {} if wide == job.codelet else reference(job, wide, cast(wide, given), "wider")
        return Doubt(reference(job, job.codelet, nudged(given, job.seed), "moved"), wider)

    def odd_doubt(self) -> Doubt:
        job = self.job
        wide = widened(job.codelet)
        wider = {} if wide == job.codelet else self.interpreted(wide, cast(wide, self.odd_inputs))
        return Doubt(self.interpreted(job.codelet, nudged(self.odd_inputs, job.seed)), wider)

    def measure(self, built: Built, best_us: float | None) -> Outcome:
        start = time.monotonic()
        wrong = self.wrong_at_odd_sizes(built)
        if wrong is not None:
            return WrongResult(wrong)
        odd_s = time.monotonic() - start
        program = self.backend.load(built.timed)
        start = time.monotonic()
        ran = None if best_us is None or not repeats(built.timed.plan) else self.ran_within(limit_us(best_us), program)
        if ran is not None and best_us is not None and ran.launched < ran.launches:
            took = (("verify_s", round(odd_s, 4)), ("measure_s", round(time.monotonic() - start, 4)))
            where = "not at the sizes timed" if self.job.odd is None else f"only at {_sizes(self.job.odd)}"
            return CutOff(ran.us, best_us, ran.launched, ran.launches, where, (*_facts(built.timed), *took))
        sample = self.machine.sampler(self.running(program), self.pairs())
        first_us = sample() if ran is None else ran.us
        wrong = self.wrong()
        if wrong is not None:
            return WrongResult(wrong)
        verified = time.monotonic()
        once = once_is_enough(first_us, best_us)
        times = screen(sample, best_us) if not once else (first_us,) if ran is None else (sample(),)
        s = summary(times)
        # Launches made one by one were verified, but what was timed is replayed from a graph.
        bad = self.impossible(s.median_us) if ran is None else self.wrong() or self.impossible(s.median_us)
        if bad is not None:
            return WrongResult(bad)
        where = "at the sizes timed" + ("" if self.job.odd is None else f" and at {_sizes(self.job.odd)}")
        took = (("verify_s", round(odd_s + verified - start, 4)), ("measure_s", round(time.monotonic() - verified, 4)))
        facts = (*_facts(built.timed), *took)
        return Timed(times, s.median_us, s.q1_us, s.q3_us, f"against the original loops {where}", facts)

    def ran_within(self, limit_us: float, program: Program) -> Ran:
        """Its launches one after the other, until the limit; tried once more where that may have been a hiccup."""
        for _ in range(2):
            self.restore()
            ran = program.run_within(limit_us, self.arrays, self.job.problem.values, self.machine.stream)
            if ran.launched == ran.launches or limit_us > LONG_US:
                break
        return ran

    def impossible(self, time_us: float) -> str | None:
        """Why this is no time of this device; where it breaks the peaks, these are measured again before it is said."""
        found = None if self.ceiling is None else self.ceiling.broken_by(time_us)
        if found is None or self.ceiling is None or self.measured_again:
            return found
        self.measured_again = True
        peaks = self.ceiling.peaks.best_of(peak.measure(self.machine, self.backend))
        peak.keep(self.machine.facts, self.job.cache, peaks)
        self.ceiling = replace(self.ceiling, peaks=peaks)
        return self.ceiling.broken_by(time_us)

    def finals(self, plans: Mapping[str, Plans], by_hand: Path | None, seed: int, default: str) -> Finals:
        """Paired rounds of every finalist by directive text, "hand-written" and, where the file has it, "library".

        All are compared with the fastest, and with the version ``default``.
        """
        samplers, wrong = {}, {}
        for text, planned in plans.items():
            binary = self.backend.build(planned.timed)
            samplers[text] = self.machine.sampler(self.run_of(binary), self.pairs())
        for name, run in self.handwritten(by_hand).items() if by_hand is not None else ():
            self.restore()
            self.machine.once(run)
            off = self.wrong()
            if off is None:
                samplers[name] = self.machine.sampler(run, self.pairs())
            else:
                wrong[name] = off
        times = finals(samplers, seed, default)
        fast = {name: self.impossible(summary(us).median_us) for name, us in times.items()}
        wrong |= {name: why for name, why in fast.items() if why is not None}
        return Finals({name: us for name, us in times.items() if name not in wrong}, wrong)

    def run_of(self, binary: Binary) -> Run:
        return self.running(self.backend.load(binary))

    def running(self, program: Program) -> Run:
        return lambda stream: program.run(self.arrays, self.job.problem.values, stream)

    def handwritten(self, path: Path) -> dict[str, Run]:
        """The hand-written kernels of a file, called with the C function's parameters."""
        spec = importlib.util.spec_from_file_location(f"handwritten_{path.stem}", path)
        assert spec is not None, f"{path} cannot be imported"
        assert spec.loader is not None, f"{path} has no loader"
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        codelet, values = self.job.codelet, self.job.problem.values
        dtype = next(p.dtype for p in codelet.params if isinstance(p, Array))
        args = [self.arrays[p.name] if isinstance(p, Array) else values[p.name] for p in codelet.params]
        own = "cuda" if self.job.target.name == "numba-cuda" else "cpu"
        makers = {"hand-written": getattr(module, own, None), "library": getattr(module, f"library_{own}", None)}
        calls = {name: make(dtype) for name, make in makers.items() if make is not None}
        return {name: self.machine.foreign(call, args) for name, call in calls.items() if call is not None}

    def wrong_at_odd_sizes(self, built: Built) -> str | None:
        """The first element that differs at sizes no factor divides, or a write outside an array."""
        if self.job.odd is None:
            return None
        inside = {}
        for name, p in self.guarded.items():
            self.machine.copy(self.odd_originals[name], self.odd_arrays[name])
            inside[name] = self.machine.inside(self.odd_arrays[name], p.pad, p.view.shape)
        program = self.backend.load(built.timed if built.odd is None else built.odd)
        values = self.job.odd.values
        self.machine.once(lambda stream: program.run(inside, values, stream))
        left: dict[str, np.ndarray] = {}
        for name, p in self.guarded.items():
            whole = self.machine.fetch(self.odd_arrays[name])
            outside = p.check(whole)
            if outside is not None:
                return f"{name}: {outside}"
            left[name] = whole[p.pad : p.pad + p.view.size].reshape(p.view.shape)
        off = self.odd_judge.wrong({name: left[name] for name in self.odd_judge.expected})
        return None if off is None else f"{off} at {_sizes(self.job.odd)}"

    def wrong(self) -> str | None:
        return self.comparison.wrong(self.arrays)

    def interpreted(self, codelet: Codelet, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """What the loops make of inputs at the odd sizes."""
        assert self.job.odd is not None, "there are odd sizes"
        whole = {name: a.copy() for name, a in inputs.items()}
        interp.run(codelet, whole, self.job.odd.values)
        return {name: whole[name] for name in outputs(codelet)}

    def restore(self) -> None:
        for name, source in self.originals.items():
            self.machine.copy(source, self.arrays[name])

    def pairs(self) -> dict[str, tuple[Any, Any]]:
        """The arrays to put back before a run, each with its original contents."""
        return {name: (self.arrays[name], source) for name, source in self.originals.items()}


def once_is_enough(first_us: float, best_us: float | None) -> bool:
    """The verifying run is the time of a version: a long one, or so slow that it does not matter how slow."""
    if first_us > LONG_US or best_us is None:
        return first_us > LONG_US
    return first_us > HOPELESS * best_us or first_us > limit_us(best_us)


def limit_us(best_us: float) -> float:
    return max(CUT * best_us, WORTH_US)


def outputs(codelet: Codelet) -> set[str]:
    return {p.name for p in codelet.params if isinstance(p, Array) and p.io != "in"}


def cast(codelet: Codelet, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays in the types that the codelet declares."""
    return {p.name: arrays[p.name].astype(p.dtype) for p in codelet.params if isinstance(p, Array)}


def reference(job: Job, codelet: Codelet, inputs: Mapping[str, np.ndarray], how: str = "") -> dict[str, np.ndarray]:
    """What the original loops, or ``codelet`` made of them, leave of ``inputs``, run on the CPU.

    Kept in a file: a restarted worker need not run them again. ``how`` tells inputs apart that are not the job's own.
    """
    backend = job.target.reference()
    plain = plan(schedule(Analysis(codelet, reassociate=False)).codelet)
    facts = (
        backend.emit(plain),
        sorted(job.problem.values.items()),
        sorted((n, a.shape) for n, a in inputs.items()),
        (job.seed if job.problem.data is None else job.problem.data.name, how),
    )
    path = job.cache / f"reference-{hashlib.sha256(repr(facts).encode()).hexdigest()[:20]}.npz"
    if path.exists():
        with np.load(path) as held:
            return {name: held[name] for name in held.files}
    arrays = {name: a.copy() for name, a in inputs.items()}
    backend.load(backend.build(plain)).run(arrays, job.problem.values)
    written = {name: arrays[name] for name in sorted(outputs(codelet))}
    job.cache.mkdir(parents=True, exist_ok=True)
    # The workers of several devices come here at once, perhaps from several machines.
    with tempfile.NamedTemporaryFile(dir=job.cache, prefix=path.stem, suffix=".part", delete=False) as part:
        np.savez(part, **written)  # type: ignore[arg-type]
    Path(part.name).replace(path)
    return written


def sequentialist(job: Job) -> Callable[[], tuple[float, ...]]:
    """The set-up of a worker that times the original loops."""
    return partial(sequential_us, job)


def sequential_us(job: Job) -> tuple[float, ...]:
    """The times of the original loops on one core: five runs after a first one, or that one where it takes long."""
    backend = job.target.reference()

    def rule(n: Node) -> Node | None:
        match n:
            case Loop():
                return replace(n, mode="sequential")
        return None

    program = backend.load(backend.build(plan(rewrite(rule, job.codelet), "one core, every loop sequential")))
    arrays = job.problem.arrays(job.codelet, job.seed)
    machine = Cpu()
    originals = {name: arrays[name].copy() for name in outputs(job.codelet)}
    pairs = {name: (arrays[name], original) for name, original in originals.items()}
    sample = machine.sampler(lambda stream: program.run(arrays, job.problem.values, stream), pairs)
    first = sample()
    return (first,) if first > LONG_US else tuple(sample() for _ in range(5))


def reduction_terms(codelet: Codelet, values: Mapping[str, int | float]) -> int:
    """The longest loop: a bound on the additions behind one element, per loop that reduces."""
    from_sizes = [
        int(v) for p in codelet.params if isinstance(p, Scalar) and is_integer(p.dtype) for v in [values[p.name]]
    ]
    constants = [int(n.hi.value) for n in walk(codelet.body) if isinstance(n, Loop) and hasattr(n.hi, "value")]
    return max([1, *from_sizes, *constants])


def _sizes(problem: Problem) -> str:
    return " ".join(f"{n}={v}" for n, v in problem.values.items() if isinstance(v, int))


def _facts(binary: Binary) -> tuple[tuple[str, int | float | str], ...]:
    most = max(binary.resources, key=lambda r: r.registers, default=None)
    took: tuple[tuple[str, int | float | str], ...] = (("compile_s", round(binary.compile_s, 3)),)
    if most is None:
        return took
    return (
        *took,
        ("registers", most.registers),
        ("local_bytes", most.local_bytes),
        ("shared_bytes", most.shared_bytes),
    )
