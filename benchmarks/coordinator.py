"""What a sweep costs besides compiling and measuring: the coordinator's own time for each configuration, its memory.

    python benchmarks/coordinator.py [KERNEL ...] [--points N]      writes two Markdown tables to standard output

The first table is of whole sweeps over the spaces in pragmas/, with the real laboratory up to the emitted source;
building and measuring are stand-ins that answer at once. Columns up to `own` are the coordinator's, CPU time of its
one thread in microseconds a configuration, by what it did: asking the strategy, looking up and storing rows, telling,
handing tasks to the pool and taking replies, admitting. Then what the pool does for each configuration, in
milliseconds of one of its processes: judging, mapping (with the sizes baked in), emitting and hashing the source.

The second is of a space of N points (default a million), with a laboratory that answers at once: CPU time of the
coordinator, and its largest memory.
"""

from __future__ import annotations

import argparse
import hashlib
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

from looptune.core.errors import DirectiveError, IllegalTransform, ParseError
from looptune.frontend import load
from looptune.runtime import targets
from looptune.runtime.device import Cpu
from looptune.runtime.outcome import Illegal, Outcome, Timed
from looptune.runtime.problem_sizes import prime_sizes, problem
from looptune.runtime.targets import CACHE, Model, Target
from looptune.tune.execution.lab import PreparedVersion, SweepResult
from looptune.tune.execution.local_executor import LocalExecutor
from looptune.tune.execution.pool import Pool
from looptune.tune.execution.process import Setup
from looptune.tune.execution.worker import Worker
from looptune.tune.execution.worker_loop import pickle_value
from looptune.tune.incumbent import Incumbent
from looptune.tune.job import Job
from looptune.tune.measure.build_steps import plans_of
from looptune.tune.measure.evaluate import KernelBuilder, compiler
from looptune.tune.session.budget import Budget
from looptune.tune.session.coordinator import Coordinator
from looptune.tune.session.sweep import Part, sweeps
from looptune.tune.space.space import Configuration, Space, parse
from looptune.tune.store.store import Context, Store
from looptune.tune.strategies.base import Strategy
from looptune.tune.strategies.exhaustive import Exhaustive
from looptune.tune.strategies.random import Random

ROOT = Path(__file__).parent.parent
OWN = ("ask", "look up", "store", "tell", "hand over", "admit", "rest")
POOL = ("judge", "map", "emit", "hash")


@dataclass(frozen=True)
class EmittingLab:
    """The real laboratory up to the emitted source; what is emitted is not built, and every time is one microsecond."""

    job: Job
    context: Context

    @property
    def compile_setup(self) -> Setup:
        return partial(emitter, self.job, self.context)

    @property
    def measure_setups(self) -> tuple[Setup, ...]:
        return (answerer,)


def emitter(job: Job, context: Context) -> Callable[[str, Any], Any]:
    work = compiler(job, context)
    return lambda step, given: work(step, given) if step == "prepare" else pickle_value(None)


def answerer() -> Callable[[Any, Incumbent | None], Outcome]:
    return lambda built, best: Timed((1.0,), 1.0, 1.0, 1.0, "not at all")


SYNTHETIC = Context("synthetic", "", "", "", "", "", "", "{}", "float32")


@dataclass(frozen=True)
class InstantLab:
    """Every fourth configuration is refused, every other one has the source of the one before, the others are timed."""

    context: Context = SYNTHETIC

    @property
    def compile_setup(self) -> Setup:
        return instant

    @property
    def measure_setups(self) -> tuple[Setup, ...]:
        return (answerer,)


def instant() -> Callable[[str, Any], Any]:
    def work(step: str, given: Any) -> Any:
        if step == "build":
            return pickle_value(None)
        number = int(given.lines[0].rpartition(" ")[2]) * 1000 + int(given.lines[1].rpartition(" ")[2])
        if number % 4 == 0:
            return Illegal("iteration (i=0, j=1) must run before (i=1, j=0) when n=2")
        return PreparedVersion(hashlib.sha256(str(number // 2).encode()).hexdigest(), pickle_value(None))

    return work


@contextmanager
def profiled() -> Iterator[Counter[str]]:
    """Seconds of CPU time of the coordinator by what it does: the innermost of these calls has the time."""
    spent: Counter[str] = Counter()
    around: list[float] = []

    def timed(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            start = time.thread_time()
            around.append(0.0)
            try:
                return method(*args, **options)
            finally:
                took = time.thread_time() - start
                spent[name] += took - around.pop()
                if around:
                    around[-1] += took

        return call

    watched: tuple[tuple[str, type, tuple[str, ...]], ...] = (
        ("ask", Exhaustive, ("ask",)), ("ask", Random, ("ask",)), ("tell", Coordinator, ("_tell",)),
        ("look up", Store, ("lookup", "versions")),
        ("store", Store, ("claim", "finish", "record", "record_duplicate")),
        ("hand over", Pool, ("submit", "dispatch")), ("hand over", Worker, ("collect", "submit", "start")),
        ("admit", Coordinator, ("admit",)),
    )  # fmt: skip
    patches = [mock.patch.object(c, m, timed(name, getattr(c, m))) for name, c, methods in watched for m in methods]
    for patch in patches:
        patch.start()
    try:
        yield spent
    finally:
        for patch in patches:
            patch.stop()


class Overlapping(LocalExecutor):
    """As on a GPU, versions compile while others are measured."""

    def overlaps_compilation(self, target: str) -> bool:
        return True


def swept(lab: Any, strategy: Strategy, jobs: int) -> SweepResult:
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder) / "store") as store:
        model = Model(targets.resolve("numba-cpu", CACHE), Cpu().facts)
        (result,) = sweeps(
            (Part(lab, strategy, model),), store, Overlapping(), jobs=jobs, timeout_s=60.0, budget=Budget(),
            progress=lambda progress: None, first=(),
        )  # fmt: skip
        return result


def job_of(kernel: str, cache: Path) -> Job:
    unit = load(ROOT / "polybench" / f"{kernel}.c")
    name = "numba-cuda" if targets.cuda_installed() else "numba-cpu"
    backend = partial(targets.backend, name, cache)
    target = Target(name, backend, backend, Cpu, specializes_sizes=name == "numba-cuda")
    size = problem(unit.codelet, unit.values)
    return Job(unit.codelet, size, prime_sizes(unit.codelet, size), target, cache)


def in_the_pool(lab: KernelBuilder, space: Space) -> dict[str, float]:
    """CPU milliseconds a configuration of each step of preparing it."""
    spent = dict.fromkeys(POOL, 0.0)
    count = 0
    for count, configuration in enumerate(space, start=1):  # noqa: B007
        marks = [time.thread_time()]
        try:
            _prepared(lab, configuration, marks)
        except (DirectiveError, IllegalTransform, ParseError):
            marks.append(time.thread_time())
        for step, start, end in zip(POOL, marks, marks[1:], strict=False):
            spent[step] += end - start
    return {step: s / count * 1e3 for step, s in spent.items()}


def _prepared(lab: KernelBuilder, configuration: Configuration, marks: list[float]) -> None:
    done = lab.scheduled(configuration)
    marks.append(time.thread_time())
    plans = plans_of(lab.job, done.codelet, "")
    marks.append(time.thread_time())
    emitted = lab.backend.emit(plans.timed)
    marks.append(time.thread_time())
    hashlib.sha256(emitted.encode()).hexdigest()
    marks.append(time.thread_time())


def of_kernel(kernel: str, jobs: int) -> str:
    path = ROOT / "pragmas" / f"{kernel}.pragmas"
    space = parse(path.read_text(), path.name)
    with tempfile.TemporaryDirectory() as cache:
        job = job_of(kernel, Path(cache))
        context = Context(kernel, "", "", "", "", "", job.target.name, "{}", "float32")
        with profiled() as spent:
            result = swept(EmittingLab(job, context), Exhaustive(space), jobs)
        pool = in_the_pool(KernelBuilder(job, context), space)
    count = sum(n for name, n in result.counts.items() if name != "space")
    spent["rest"] = result.spent.own - sum(spent.values())
    cells = [kernel, str(count), *(f"{spent[name] / count * 1e6:.0f}" for name in OWN)]
    cells += [f"**{result.spent.own / count * 1e6:.0f}**", *(f"{pool[step]:.2f}" for step in POOL)]
    return f"| {' | '.join(cells)} |"


def of_many(points: int, name: str, strategy: type[Strategy], jobs: int) -> str:
    side = max(1, points // 1000)
    space = parse(f"loop i: unroll {{1..{side}}}\nloop j: unroll {{1..1000}}", "synthetic")
    result = swept(InstantLab(), strategy(space, 1), jobs)
    count = sum(n for status, n in result.counts.items() if status != "space")
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    each_us = [f"{seconds / count * 1e6:.0f}" for seconds in (result.elapsed_s, result.spent.own)]
    cells = [name, *(f"{n:,}" for n in (count, *(result.counts[s] for s in ("timed", "illegal", "duplicate"))))]
    cells += [f"{result.elapsed_s:.0f}", *each_us, f"{peak_mb:.0f}"]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    names = sorted(path.stem for path in (ROOT / "polybench").glob("*.c"))
    options = argparse.ArgumentParser(description="the coordinator's own cost")
    options.add_argument("kernels", nargs="*", metavar="KERNEL", choices=[[], *names])
    options.add_argument("--points", type=int, default=1_000_000, metavar="N", help="0: without the second table")
    options.add_argument("--jobs", type=int, default=2, metavar="N")
    given = options.parse_args()
    print(f"| kernel | versions | {' | '.join(f'{name}, us' for name in OWN)} | own, us "
          f"| {' | '.join(f'{step}, ms' for step in POOL)} |\n|---|{'---|' * (len(OWN) + len(POOL) + 2)}")  # fmt: skip
    for kernel in given.kernels if given.kernels else names:
        print(of_kernel(kernel, given.jobs), flush=True)
    if given.points:
        print("\n| strategy | points | timed | illegal | duplicate | whole, s | whole, us each | own, us each "
              "| memory, MB |\n|---|---|---|---|---|---|---|---|---|")  # fmt: skip
        print(of_many(given.points, "random", Random, given.jobs), flush=True)
    print(f"\nCommand: `python benchmarks/coordinator.py{''.join(' ' + a for a in sys.argv[1:])}`")


if __name__ == "__main__":
    main()
