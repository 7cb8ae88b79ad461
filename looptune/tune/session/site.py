"""Where a sweep runs: on the devices of this machine, or in a Dask cluster.

Here          one process a GPU, all fed by one pool of compiling processes; kept from kernel to kernel
Elsewhere     the workers of a cluster, see tune/distributed.py
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

from looptune.core.errors import TargetError, UsageError
from looptune.runtime import targets
from looptune.runtime.device import on_gpu
from looptune.runtime.targets import Model
from looptune.tune.execution.executor import Opening, invalidates_device
from looptune.tune.execution.local_executor import LocalExecutor
from looptune.tune.execution.process import Setup
from looptune.tune.execution.process_cache import ProcessCache
from looptune.tune.execution.worker_loop import TaskError, TaskResult
from looptune.tune.execution.workers import Pool, Reply, Worker, cores, get_ready, run_all, wait
from looptune.tune.job import Job
from looptune.tune.measure.sequential import sequential_timer

if TYPE_CHECKING:
    from looptune.core.floating_point import Floats

SEQUENTIAL_S = 600.0
ABREAST = 2
"""Kernels for each core that are swept at once on a GPU: one whose versions compile leaves the device to the others,
and a search that goes step by step leaves its core to them while a version is measured."""
INSTALL = "install it with: pip install 'looptune[distributed]'"


@dataclass(frozen=True, slots=True)
class DeviceTask:
    """A task for one of the model's devices; ``setups`` has the set-up for each of them."""

    model: Model
    setups: Sequence[Setup]
    task: Any


class SequentialBaselines(Protocol):
    """Context in which the original loops are timed on one core.

    They are set up from its beginning, while other work is done, and timed one after the other when nothing else runs.
    """

    def __enter__(self) -> Self: ...

    def __exit__(self, *exception: object) -> None: ...

    def get_ready(self) -> None:
        """Wait until they are set up."""

    def next(self) -> Sequence[Worker]:
        """Return the worker that times one baseline, which starts now at the latest.

        None if there is nothing to time beside races.
        """

    def record_reply(self, number: Any, reply: Reply) -> None:
        """Record the reply of a worker that timed a baseline."""

    def times_us(self) -> list[tuple[float, ...]]:
        """Return the times of each run, in their order, when all have ended."""


class ExecutionSite(Protocol):
    """Where a sweep runs: the devices of this machine, or a Dask cluster."""

    def models(self, target: str, cache: Path, *, floats: Floats, warm: bool) -> tuple[Model, ...]:
        """Return the models of device that ``target`` denotes here; every version is measured on each."""

    def executor_factory(self, models: Sequence[Model], jobs: int, timeout_s: float) -> Opening:
        """Return a factory of the executor for a sweep on these models.

        ``jobs`` applies to a site with its own processes.
        """

    def overlaps_compilation(self, target: str) -> bool:
        """Whether versions may compile while others are measured."""

    def concurrency(self, models: Sequence[Model]) -> int:
        """How many kernels are swept at once, so that a device always has something to measure."""

    def run_exclusively(
        self, races: Sequence[DeviceTask], limit_s: float, beside: SequentialBaselines | None = None
    ) -> Iterator[tuple[int, Reply]]:
        """Yield the replies to tasks that need a device each, exclusively, as they arrive, with the number of the race.

        As many at once as there are devices.

        ``beside`` them, original loops are timed on one more core.
        """

    def run_anywhere(
        self, setup: Setup, limit_s: float, tasks: Sequence[tuple[Any, ...]], jobs: int
    ) -> Sequence[Reply]:
        """Return the replies to tasks that need no device, run in parallel; ``jobs`` as for ``executor_factory``."""

    def sequential_baselines(self, of: Sequence[tuple[Model, Job]]) -> SequentialBaselines:
        """Return the original loops of each kernel, for one core of the machine that has the model."""

    def machine(self, model: Model) -> Any:
        """Return the first device of the model, or None if this process may not measure on it."""

    def require(self, paths: Sequence[Path], target: str) -> None:
        """TargetError where one of these files cannot be read where it is needed."""


@dataclass(frozen=True, slots=True)
class LocalSite:
    """``devices``: as --devices has them; None is the first GPU, or the CPU where there is none.

    ``spares``: the processes that go from kernel to kernel; None starts new ones for each.
    """

    devices: str | None = None
    spares: ProcessCache | None = None

    def models(self, target: str, cache: Path, *, floats: Floats, warm: bool) -> tuple[Model, ...]:
        return targets.models(target, cache, self.devices, floats=floats, warm=warm)

    def executor_factory(self, models: Sequence[Model], jobs: int, timeout_s: float) -> Opening:
        named = tuple(model.devices for model in models)
        return partial(LocalExecutor, jobs=jobs, timeout_s=timeout_s, spares=self.spares, devices=named)

    def overlaps_compilation(self, target: str) -> bool:
        return on_gpu(target)

    def concurrency(self, models: Sequence[Model]) -> int:
        if not self.overlaps_compilation(models[0].target.name):
            return 1
        return max(ABREAST * cores(), *(len(model.devices) for model in models))

    def run_exclusively(
        self, races: Sequence[DeviceTask], limit_s: float, beside: SequentialBaselines | None = None
    ) -> Iterator[tuple[int, Reply]]:
        waiting = dict(enumerate(races))
        running: dict[str, Worker] = {}
        try:
            while waiting or running:
                for number, race in tuple(waiting.items()):
                    devices = zip(race.model.devices, race.setups, strict=True)
                    device, setup = next((pair for pair in devices if pair[0] not in running), ("", None))
                    if setup is not None:
                        running[device] = Worker(setup, limit_s, spares=self.spares, kind=device)
                        running[device].submit(number, waiting.pop(number).task)
                others = () if beside is None else beside.next()
                for worker, number, reply in wait((*running.values(), *others)):
                    if beside is not None and worker in others:
                        beside.record_reply(number, reply)
                        continue
                    if invalidates_device(reply):
                        worker.end()
                    worker.close()
                    running = {device: other for device, other in running.items() if other is not worker}
                    yield number, reply
        finally:
            for worker in running.values():
                worker.close()

    def run_anywhere(
        self, setup: Setup, limit_s: float, tasks: Sequence[tuple[Any, ...]], jobs: int
    ) -> Sequence[Reply]:
        with Pool(setup, min(jobs, len(tasks)), limit_s, self.spares) as pool:
            return run_all(pool, tasks)

    def sequential_baselines(self, of: Sequence[tuple[Model, Job]]) -> SequentialBaselines:
        ahead = bool(of) and self.overlaps_compilation(of[0][0].target.name)
        return LocalBaselines([job for _, job in of], self.spares, ahead=ahead)

    def machine(self, model: Model) -> Any:
        return model.target.machine()

    def require(self, paths: Sequence[Path], target: str) -> None:
        """They were read here before."""


@dataclass(frozen=True, slots=True)
class ClusterSite:
    """``cluster``: a tune.cluster.Cluster."""

    cluster: Any = field(repr=False)

    def models(self, target: str, cache: Path, *, floats: Floats, warm: bool) -> tuple[Model, ...]:
        targets.check_own(target, "a cluster measures on")
        if target == "opencl":
            raise UsageError("the target opencl is measured on this machine: leave out --cluster")
        chosen = self.cluster.wait_for(target)
        return tuple(
            Model(targets.target(chosen, facts, range(count), cache, floats=floats, warm=warm), facts)
            for facts, count in self.cluster.models(chosen)
        )

    def executor_factory(self, models: Sequence[Model], jobs: int, timeout_s: float) -> Opening:
        dask_executor = importlib.import_module("looptune.tune.execution.dask_executor").DaskExecutor
        name, facts = models[0].target.name, tuple(model.facts for model in models)
        apart = name == "numba-cpu" and self.cluster.has_spare_hosts(name)
        return partial(
            dask_executor, cluster=self.cluster, target=name, models=facts, timeout_s=timeout_s, apart=apart
        )  # fmt: skip

    def overlaps_compilation(self, target: str) -> bool:
        return bool(on_gpu(target) or self.cluster.has_spare_hosts(target))

    def alone(self, model: Model, setup: Setup, limit_s: float, *task: Any) -> Reply:
        reply: Reply = self.cluster.run_exclusively(model.target.name, model.facts, setup, limit_s, *task)
        return reply

    def concurrency(self, models: Sequence[Model]) -> int:
        return 1

    def run_exclusively(
        self, races: Sequence[DeviceTask], limit_s: float, beside: SequentialBaselines | None = None
    ) -> Iterator[tuple[int, Reply]]:
        for number, race in enumerate(races):
            yield number, self.alone(race.model, race.setups[0], limit_s, race.task)

    def run_anywhere(
        self, setup: Setup, limit_s: float, tasks: Sequence[tuple[Any, ...]], jobs: int
    ) -> Sequence[Reply]:
        replies: Sequence[Reply] = self.cluster.run_anywhere(setup, limit_s, tasks)
        return replies

    def sequential_baselines(self, of: Sequence[tuple[Model, Job]]) -> SequentialBaselines:
        return ClusterBaselines(self, of)

    def machine(self, model: Model) -> Any:
        return None

    def require(self, paths: Sequence[Path], target: str) -> None:
        self.cluster.require(paths, target)


class LocalBaselines:
    """Each in a process of its own, as many at once as there are cores.

    Without ``ahead`` they are set up when they are timed: for targets that need the cores until then.
    """

    def __init__(self, jobs: Sequence[Job], spares: ProcessCache | None, *, ahead: bool) -> None:
        self._workers = [Worker(partial(sequential_timer, job), SEQUENTIAL_S, spares=spares) for job in jobs]
        self._ahead = self._workers[: cores()] if ahead else []
        self._times: list[tuple[float, ...]] = []

    def __enter__(self) -> Self:
        for worker in self._ahead:
            worker.start()
        return self

    def __exit__(self, *exception: object) -> None:
        for worker in self._workers:
            worker.close()

    def get_ready(self) -> None:
        get_ready(self._ahead)

    def next(self) -> Sequence[Worker]:
        return () if len(self._times) >= len(self._ahead) else (self._begun(),)

    def record_reply(self, number: Any, reply: Reply) -> None:
        self._times.append(_sequential(reply))
        self._workers[number].close()

    def times_us(self) -> list[tuple[float, ...]]:
        while (done := len(self._times)) < len(self._workers):
            if done % cores() == 0:
                get_ready(self._workers[done : done + cores()])
            for _, number, reply in wait((self._begun(),)):
                self.record_reply(number, reply)
        return self._times

    def _begun(self) -> Worker:
        """Return the worker of the first that has no times, at work."""
        number = len(self._times)
        worker = self._workers[number]
        if worker.idle:
            worker.submit(number)
        return worker


@dataclass(frozen=True, slots=True)
class ClusterBaselines:
    """The baselines of a cluster: a worker sets up and times the original loops when they are requested."""

    model: ClusterSite
    of: Sequence[tuple[Model, Job]]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        """Nothing is set up here."""

    def get_ready(self) -> None:
        """Do nothing: a worker of the cluster sets up when it is asked."""

    def next(self) -> Sequence[Worker]:
        return ()

    def record_reply(self, number: Any, reply: Reply) -> None:
        raise AssertionError("nothing is timed beside races")

    def times_us(self) -> list[tuple[float, ...]]:
        setups = [(model, partial(sequential_timer, job)) for model, job in self.of]
        return [_sequential(self.model.alone(model, setup, SEQUENTIAL_S)) for model, setup in setups]


def _sequential(reply: Reply) -> tuple[float, ...]:
    match reply:
        case TaskResult(times):
            return tuple(times)
        case TaskError(message, trace):
            raise AssertionError(f"the sequential loops failed: {message}\n{trace}")
        case other:
            raise TargetError(f"the sequential loops did not end: {other.message}")


HERE = LocalSite()


@contextmanager
def open_site(cluster: str | None, devices: str | None, warn: Callable[[str], None]) -> Iterator[ExecutionSite]:
    """Yield the site that --cluster and --devices denote; ``warn`` is called for workers that a cluster leaves out."""
    if cluster is None:
        with ProcessCache() as spares:
            yield LocalSite(devices, spares)
        return
    if devices is not None:
        raise UsageError("--devices selects GPUs of this machine: the workers of a cluster declare theirs")
    if importlib.util.find_spec("distributed") is None:
        raise TargetError(
            "--cluster needs the package distributed; install it with: pip install 'looptune[distributed]'"
        )
    with importlib.import_module("looptune.tune.execution.dask_cluster").connect(cluster, warn) as connected:
        yield ClusterSite(connected)
