"""When the versions of a kernel have times in a short search on a GPU: in virtual time, without a GPU.

    python benchmarks/virtual_search.py polybench/c/lu.c --dataset LARGE --jobs 13 --budget 30

Space, order, predictions and builds are those of `looptune run FILE --sweep --budget 30s` on the device named. Each
task of a compiling process is run here, in this process, and takes the processor time that it took; so many processes
as `--jobs` says are pretended. Of a build whose kernels others compile as well, each has an equal share. A version
takes the time that is predicted for it, and always has right results: the table is about what is built when.
"""

from __future__ import annotations

import argparse
import heapq
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from looptune.runtime.device import DeviceInfo
from looptune.runtime.outcome import Timed
from looptune.runtime.targets import Model, target
from looptune.tune.cost_model.devices import named
from looptune.tune.execution.executor import TaskReply
from looptune.tune.execution.lab import FIRST, NextStep, Order
from looptune.tune.execution.pool import FOUNDING, URGENT, USUAL, Backlog
from looptune.tune.execution.worker_loop import TaskResult, pickle_value
from looptune.tune.measure.evaluate import PARTS, KernelBuilder
from looptune.tune.measure.prime_sizes import PrimeSizeRun
from looptune.tune.session import coordinator, statistics
from looptune.tune.session.budget import search_budget
from looptune.tune.session.experiment import guesses
from looptune.tune.session.predicted_time import time_model
from looptune.tune.session.prepare import PreparedRun, TuningRequest, prepare_all
from looptune.tune.store.store import Store
from looptune.tune.strategies.sections import Sections

SET_UP_S = 3.0
"""Until a process that measures is ready on a device."""
LAUNCHED_S, RUNS = 0.25, 12
"""Loading, verifying and comparing a version, and its runs."""


def processor_s() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


@dataclass
class Pretended:
    """An executor with one GPU that is not there; it only prepares."""

    model: Model

    def models(self, *_: Any, **__: Any) -> tuple[Model, ...]:
        return (self.model,)

    def start_processes(self, *_: Any) -> None:
        pass

    def require(self, *_: Any) -> None:
        pass


@dataclass
class VirtualWorkers:
    """``jobs`` compiling processes and a device in virtual time, see ``execution.executor.Workers``."""

    lab: KernelBuilder
    compilers: int
    began: float = field(default_factory=time.monotonic)
    loaded: int = 0
    measuring: int = 0
    ready_at: float | None = None
    busy: set[int] = field(default_factory=set)
    events: list[tuple[float, int, TaskReply | None, int | None]] = field(default_factory=list)
    groups: dict[int, float] = field(default_factory=dict)
    shares: Counter[int] = field(default_factory=Counter)
    part_s: float = 1.0
    spent: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.backlog, self.now, self.count = Backlog(max(1, self.compilers // FOUNDING)), self.began, 0

    @property
    def compiling(self) -> int:
        return len(self.backlog) + len(self.busy)

    def load(self, lab: int) -> int:
        return self.loaded

    def devices(self, lab: int) -> int:
        return 1

    def free(self, lab: int) -> bool:
        self.warm(lab, 1)
        return not self.measuring and self.ready_at is not None and self.now >= self.ready_at

    def warm(self, lab: int, count: int) -> None:
        if self.ready_at is None:
            self.ready_at = self.now + SET_UP_S
            self._at(self.ready_at, None, None)

    def compile(self, lab: int, key: Any, step: str, given: Any, urgent: bool = False, order: Order = FIRST) -> None:
        self.loaded += 1
        if step == "ahead":
            self.shares[id(given.task)] += 1
        rank, group = URGENT if urgent else USUAL, lab if step == "prepare" else None
        self.backlog.add((key, (step, given)), rank, group, order)

    def withdraw(self, lab: int, key: Any) -> bool:
        withdrawn = self.backlog.withdraw(key)
        self.loaded -= withdrawn
        return withdrawn > 0

    def measure(self, lab: int, key: Any, *task: Any) -> None:
        built, best = task
        step, us = built.load().step, float(key.predicted_us)
        self.measuring, took = 1, LAUNCHED_S
        value: Timed | NextStep
        if step.at_edge_sizes:
            value = step.timed
        elif step.at_prime_sizes:
            later = replace(step, at_prime_sizes=False)
            later = (
                replace(later, at_edge_sizes=True) if step.timed else replace(later, checked=PrimeSizeRun("reduced"))
            )
            value = NextStep(pickle_value(later), step.timed)
        else:
            took += RUNS * us / 1e6
            timed = Timed((us,), us, us, us, "predicted")
            print(
                f"| {self.now + took - self.began:.1f} | {us:,.0f} | {' · '.join(key.configuration.lines)} |",
                flush=True,
            )
            more = step.checked is None and (best is None or us < best.us)
            value = NextStep(pickle_value(replace(step, at_prime_sizes=True, timed=timed)), timed) if more else timed
        self._at(self.now + took, TaskReply(lab, key, TaskResult(value, took), True), None)

    def sleep(self, timeout_s: float | None) -> None:
        self._dispatch()
        at = self.events[0][0] if self.events else self.now + 1.0
        self.now = max(self.now, at if timeout_s is None else min(at, self.now + timeout_s))

    def replies(self) -> Sequence[TaskReply]:
        found: list[TaskReply] = []
        while self.events and self.events[0][0] <= self.now:
            _, _, reply, worker = heapq.heappop(self.events)
            if worker is not None:
                self.busy.remove(worker)
                self.loaded -= 1
            elif reply is not None:
                self.measuring = 0
            found += [] if reply is None else [reply]
        self._dispatch()
        return found

    def _at(self, when: float, reply: TaskReply | None, worker: int | None) -> None:
        self.count += 1
        heapq.heappush(self.events, (when, self.count, reply, worker))

    def _dispatch(self) -> None:
        for worker in (w for w in range(self.compilers) if w not in self.busy):
            taken = self.backlog.take(worker) if self.backlog else None
            if taken is not None:
                (key, (step, given)), group = taken
                value, took = self._run(step, given, worker)
                if group is not None:
                    self.backlog.record_time(worker, group, took)
                self.busy.add(worker)
                self._at(self.now + took, TaskReply(0, key, TaskResult(value, took), False), worker)

    def _run(self, step: str, given: Any, worker: int) -> tuple[Any, float]:
        """Run a task here; return its value and the seconds that it takes a process of the pretended host."""
        if step == "ahead":
            return None, self.part_s
        before = processor_s()
        value = self.lab.prepare(given) if step == "prepare" else self.lab.build(given.load())
        took = processor_s() - before
        self.spent[step] += took
        if step == "prepare":
            # Each process analyses the codelet at its first version.
            took += 0.0 if worker in self.groups or not self.groups else max(self.groups.values())
            self.groups.setdefault(worker, took)
        elif shares := self.shares[id(given)]:
            took = self.part_s = took / (1 + min(PARTS - 1, shares))
        return value, took


def search(prepared: PreparedRun, jobs: int, budget_s: float, before_s: float, folder: Path) -> str:
    """Search, print a row for each version that has a time, and return the last line."""
    workers = VirtualWorkers(KernelBuilder(prepared.job, prepared.context, time_model(prepared)), jobs)
    clock = SimpleNamespace(monotonic=lambda: workers.now)
    tried = guesses(prepared, KernelBuilder(prepared.job, prepared.context), prepared.budget)
    with (
        patch.object(coordinator, "time", clock),
        patch.object(statistics, "time", clock),
        Store.open(folder / "store.sqlite") as store,
    ):
        budget = search_budget(budget_s, before_s, prepared.job.finals_s)
        one = coordinator.Coordinator(
            workers.lab, 0, Sections(prepared.space, 0), store, budget, workers, lambda _: None, "virtual",
            overlap=True, fresh=True, cuts=True, first=(prepared.annotated,), guesses=tried,
        )  # fmt: skip
        while True:
            asked = one.advance()
            if one.ended():
                break
            workers.sleep(0.0 if asked else one.nap_s())
            for reply in workers.replies():
                one.receive(reply)
            one.admit()
        timed = one.result(False).counts["timed"]
    spent = ", ".join(f"{step} {seconds:.0f} s" for step, seconds in workers.spent.items())
    took_s = workers.now - workers.began
    return f"{timed} of {prepared.space.versions} versions timed in {took_s:.1f} s; processor time: {spent}"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("file", type=Path, metavar="FILE")
    options.add_argument("--dataset", default="LARGE", metavar="NAME")
    options.add_argument("--dtype", choices=("float32", "float64"))
    options.add_argument("--target", choices=("numba-cuda", "cuda-c"), default="numba-cuda")
    options.add_argument("--device", default="NVIDIA H200", metavar="NAME")
    options.add_argument("--jobs", type=int, default=13, metavar="N")
    options.add_argument("--budget", type=float, default=30.0, metavar="SECONDS")
    given = options.parse_args()
    chip = named(given.device)
    facts = DeviceInfo(chip.name, given.target, chip.arch, chip.multiprocessors, 2**36, chip.l2_bytes, "13010")
    with tempfile.TemporaryDirectory() as name:
        folder, before = Path(name), processor_s()
        model = Model(target(given.target, facts, (0,), folder), facts, (0,))
        request = TuningRequest(
            given.file, defines={f"{given.dataset}_DATASET": None}, dtype=given.dtype, target=given.target, sweep=True,
            budget=f"{given.budget:g}s", jobs=given.jobs,
        )  # fmt: skip
        (prepared,) = prepare_all(request, Pretended(model))
        before_s = processor_s() - before
        print(f"| s after {before_s:.1f} s of preparation | predicted us | directives |\n|---:|---:|---|", flush=True)
        print(f"\n{search(prepared, given.jobs, given.budget, before_s, folder)}")


if __name__ == "__main__":
    main()
