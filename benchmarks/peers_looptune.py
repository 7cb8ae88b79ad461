"""Looptune's version for benchmarks/peers.py: what ``looptune.compile(config="best")`` would run."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

from peers_task import AHEAD_US, Task, Version, host_sampler, runs

from looptune.core.version import __version__
from looptune.deploy.best_kernel import BestKernel
from looptune.deploy.best_versions import BestVersion, best_versions
from looptune.deploy.runtime.lookup import Device, Match
from looptune.frontend import Unit
from looptune.runtime import targets
from looptune.runtime.problem_sizes import integers
from looptune.runtime.targets import CACHE
from looptune.schedule.analysis import Analysis
from looptune.tune.store.store import Store


def measured(unit: Unit, target: str, db: str) -> tuple[BestVersion, ...]:
    """The best versions in a database; none without a database."""
    if not db:
        return ()
    with Store.read(Path(db)) as store:
        return best_versions(store, unit, target)


def prepare(task: Task, _peer: str) -> Version:
    warnings.simplefilter("ignore", UserWarning)  # the table says what was not tuned
    codelet = task.unit.codelet
    target = targets.resolve(task.target, CACHE, warm=not task.flush)
    found = measured(task.unit, target.name, task.db)
    machine = target.machine()
    here = Device(machine.facts.name, machine.facts.cores, machine.facts.arch)
    chosen = BestKernel(Analysis(codelet), target.backend(), here, found).at(integers(codelet, task.values))
    arrays = {name: machine.place(a) for name, a in task.arrays().items()}

    def run(stream: Any) -> None:
        chosen.program.run(arrays, task.values, stream)

    run(machine.stream)
    results = {name: machine.fetch(arrays[name]) for name in task.written}
    package = f"looptune {__version__}"
    if not task.gpu:
        return Version(results, host_sampler(lambda: run(None)), origin(chosen.match), package)
    sample = machine.sampler(run, {}) if task.flush else queued(machine, run)
    batch = runs(sample())
    timed = (lambda: median(sample() for _ in range(batch))) if task.flush else sample
    return Version(results, timed, origin(chosen.match), package)


def origin(match: Match) -> str:
    """What the version was tuned for, where that is not this size on this device."""
    if match.level == "exact":
        return ""
    if match.configuration is None:
        return "untuned"
    sizes = " ".join(f"{n}={v}" for n, v in match.configuration["sizes"].items())
    return f"tuned for {sizes}{'' if match.level == 'same device' else ', ' + match.level}"


def queued(machine: Any, run: Callable[[Any], None]) -> Callable[[], float]:
    """A sampler of runs that are replayed from a CUDA graph, one after the other, behind other work on the device."""
    cuda = import_module("looptune.backends.cuda.driver")
    driver, check, stream = cuda.driver, cuda.check, machine.stream
    few = cuda.Memory(4096)

    def idle(on: Any) -> None:
        for _ in range(int(AHEAD_US)):
            check(driver.cuMemsetD8Async(few.pointer, 0, 4096, on))

    graph, ahead = cuda.Graph(stream, run, run), cuda.Graph(stream, idle, few)
    first, last = (check(driver.cuEventCreate(0)) for _ in range(2))

    def timed(count: int) -> float:
        ahead.launch(stream)
        check(driver.cuEventRecord(first, stream))
        for _ in range(count):
            graph.launch(stream)
        check(driver.cuEventRecord(last, stream))
        check(driver.cuEventSynchronize(last))
        return float(check(driver.cuEventElapsedTime(first, last))) * 1e3 / count

    timed(1)
    count = runs(timed(1))
    return lambda: timed(count)
