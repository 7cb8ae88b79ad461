"""The executor of this machine: a pool of processes that compile, and processes that measure, each on a device.

Processes go from the workers of one sweep to those of the next by way of the executor's cache.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from looptune.core.errors import TargetError, UsageError
from looptune.runtime import targets
from looptune.runtime.device import cores, on_gpu
from looptune.tune.execution.executor import NICE, Executor, TaskReply, compile_setup, invalidates_device
from looptune.tune.execution.lab import FIRST, Order
from looptune.tune.execution.pool import URGENT, USUAL, Pool
from looptune.tune.execution.process import COMPILING, ProcessCache
from looptune.tune.execution.worker import START_LIMIT_S, Reply, Worker, sleep, wait

if TYPE_CHECKING:
    from pathlib import Path

    from looptune.core.floating_point import Floats
    from looptune.runtime.targets import Model
    from looptune.tune.execution.lab import Lab

ABREAST = 2
"""Kernels for each core that are swept at once on a GPU: one whose versions compile leaves the device to the others,
and a search that goes step by step leaves its core to them while a version is measured."""


@dataclass(frozen=True, slots=True)
class LocalExecutor:
    """The executor on this machine; ``selected`` are the GPUs in the syntax of --devices.

    None selects the first one, or the CPU if there is none. ``spares`` are the processes that are reused from kernel to
    kernel; without them new ones are started for each.
    """

    selected: str | None = None
    spares: ProcessCache | None = None

    def models(self, target: str, cache: Path, *, floats: Floats, warm: bool) -> tuple[Model, ...]:
        return targets.models(target, cache, self.selected, floats=floats, warm=warm)

    def open(
        self,
        labs: Sequence[Lab],
        models: Sequence[Model],
        jobs: int,
        timeout_s: float,
        *,
        exclusive: bool = False,
        baselines: int = 0,
    ) -> LocalWorkers:
        on_devices = len(labs) - baselines
        devices = [m.devices if n < on_devices else (COMPILING,) for n, m in enumerate(models)]
        return LocalWorkers(labs, jobs, timeout_s, self.spares, devices, exclusive=exclusive)

    def start_processes(self, models: Sequence[Model], jobs: int, setup: Callable[..., Any]) -> None:
        if self.spares is not None:
            self.spares.start(COMPILING, jobs, partial(setup, models[0].target), START_LIMIT_S)
            for model in models:
                for name in model.devices:
                    self.spares.start(name, 1, partial(setup, model.target), START_LIMIT_S)

    def overlaps_compilation(self, target: str) -> bool:
        return on_gpu(target)

    def concurrency(self, models: Sequence[Model]) -> int:
        if not self.overlaps_compilation(models[0].target.name):
            return 1
        return max(ABREAST * cores(), *(len(model.devices) for model in models))

    def machine(self, model: Model) -> Any:
        return model.target.machine()

    def require(self, paths: Sequence[Path], target: str) -> None:
        """Do nothing: the files were read here before."""


HERE = LocalExecutor()


class LocalWorkers:
    """The processes of this machine that run tasks.

    ``jobs`` processes compile for all labs; ``timeout_s`` limits each task. ``devices`` names the devices of each lab,
    by default all different. Labs may have devices in common: each has a process of its own there, and one of them
    measures at a time. Such a process is set up before it gets the device, and leaves it to others while its task does
    work of its own; if ``exclusive``, it is set up afterwards and leaves the device with its reply.
    """

    def __init__(
        self,
        labs: Sequence[Lab],
        jobs: int,
        timeout_s: float,
        spares: ProcessCache | None = None,
        devices: Sequence[Sequence[str]] = (),
        *,
        exclusive: bool = False,
    ) -> None:
        self._exclusive = exclusive
        self._pool = Pool(compile_setup(labs, 0 if exclusive else NICE), jobs, timeout_s, spares)
        own = [tuple(f"{n}.{k}" for k in range(len(lab.measure_setups))) for n, lab in enumerate(labs)]
        self._devices = tuple(map(tuple, devices)) if devices else tuple(own)
        self._measurers = tuple(
            tuple(
                Worker(s, timeout_s, spares=spares, kind=d, shares_device=not exclusive)
                for s, d in zip(lab.measure_setups, named, strict=True)
            )
            for lab, named in zip(labs, self._devices, strict=True)
        )
        self._all_measurers = tuple(measurer for measurers in self._measurers for measurer in measurers)
        self._loads: Counter[int] = Counter()
        self._busy: dict[str, Worker] = {}
        self._broken: TargetError | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._pool.close()
        for measurer in self._all_measurers:
            measurer.close()

    @property
    def compilers(self) -> int:
        return len(self._pool.workers)

    @property
    def compiling(self) -> int:
        return self._pool.load

    @property
    def measuring(self) -> int:
        return len(self._busy)

    def load(self, lab: int) -> int:
        return self._loads[lab]

    def devices(self, lab: int) -> int:
        return len(self._measurers[lab])

    def free(self, lab: int) -> bool:
        return self._free(lab) is not None

    def compile(self, lab: int, key: Any, step: str, given: Any, urgent: bool = False, order: Order = FIRST) -> None:
        self._loads[lab] += 1
        self._leave_cores()
        group = lab if step == "prepare" else None
        self._pool.submit((lab, key), lab, step, given, rank=URGENT if urgent else USUAL, group=group, order=order)

    def withdraw(self, lab: int, key: Any) -> bool:
        withdrawn = self._pool.withdraw((lab, key))
        self._loads[lab] -= withdrawn
        return withdrawn > 0

    def warm(self, lab: int, count: int) -> None:
        for measurer in self._measurers[lab][:count]:
            measurer.start()

    def get_ready(self, labs: Sequence[int]) -> Sequence[int]:
        those = [self._measurers[lab][0] for lab in labs]
        for measurer in those:
            measurer.start()
        while any(measurer.setting_up for measurer in those):
            wait(those)
        return labs

    def measure(self, lab: int, key: Any, *task: Any) -> None:
        found = self._free(lab)
        assert found is not None, "a version is measured on a free device"
        device, measurer = found
        self._busy[device] = measurer
        measurer.submit((lab, key, device), *task)

    def _free(self, lab: int) -> tuple[str, Worker] | None:
        """Return the lab's first free device, so that a short sweep starts few processes, and its process there.

        A process that sets up leaves its device to others.
        """
        for device, measurer in zip(self._devices[lab], self._measurers[lab], strict=True):
            if device not in self._busy:
                if self._exclusive:
                    return device, measurer
                measurer.start()
                if measurer.ready:
                    return device, measurer
        return None

    def sleep(self, timeout_s: float | None) -> None:
        sleep((*self._pool.workers, *self._all_measurers), timeout_s)

    def replies(self) -> list[TaskReply]:
        if self._broken is not None:
            raise self._broken
        # Measurements first: they are what must not be lost where another worker cannot start.
        found = [answer for w in sleep(self._all_measurers, 0.0) if (answer := self._measured(w)) is not None]
        found += [answer for w in sleep(self._pool.workers, 0.0) if (answer := self._compiled(w)) is not None]
        self._leave_cores()
        self._pool.dispatch()
        if self._exclusive and not self.compiling:
            # The original loops may be set up in the processes that have compiled.
            self._pool.close()
        if self._broken is not None and not found:
            raise self._broken
        return found

    def _measured(self, worker: Worker) -> TaskReply | None:
        said = self._collected(worker.collect)
        if said is None:
            self._lend_devices()
            return None
        (lab, key, device), reply = said
        if self._busy.get(device) is worker:
            del self._busy[device]
        self._lend_devices()
        if invalidates_device(reply):
            worker.end()
        if self._exclusive:
            worker.close()
        else:
            worker.start()
        return TaskReply(lab, key, reply, True)

    def _lend_devices(self) -> None:
        """Free the devices of tasks that do work of their own, and give them back to those that have done it."""
        for device, worker in tuple(self._busy.items()):
            if worker.off_device and not self._exclusive:
                del self._busy[device]
        for measurers, devices in zip(self._measurers, self._devices, strict=True):
            for worker, device in zip(measurers, devices, strict=True):
                if worker.waits_for_device and device not in self._busy:
                    self._busy[device] = worker
                    worker.go_on()

    def _compiled(self, worker: Worker) -> TaskReply | None:
        said = self._collected(partial(self._pool.collect, worker))
        if said is None:
            return None
        (lab, key), reply = said
        self._loads[lab] -= 1
        return TaskReply(lab, key, reply, False)

    def _collected(self, collect: Callable[[], tuple[Any, Reply] | None]) -> tuple[Any, Reply] | None:
        try:
            return collect()
        except TargetError as error:
            self._broken = error
            return None

    def _leave_cores(self) -> None:
        """Reduce what compiles by the number of kernels that set up, each of which needs a core, less one.

        One core is left anyway, and of several devices of a kernel all but one wait for the original loops. Nothing is
        reduced if workers are exclusive.
        """
        setting_up = sum(any(measurer.setting_up for measurer in own) for own in self._measurers)
        size = len(self._pool.workers)
        self._pool.limit = size if self._exclusive else max(1, size - max(0, setting_up - 1))


@contextmanager
def open_executor(
    cluster: str | None, devices: str | None, warn: Callable[[str], None], *, copied: bool = False
) -> Iterator[Executor]:
    """Yield the executor for --cluster and --devices; ``warn`` is called for workers that a cluster leaves out.

    ``copied``: processes of this machine are copies of the one that ``process.preload`` has started.
    """
    if cluster is None:
        with ProcessCache(copied=copied) as spares:
            yield LocalExecutor(devices, spares)
        return
    if devices is not None:
        raise UsageError("--devices selects GPUs of this machine: the workers of a cluster declare theirs")
    if importlib.util.find_spec("distributed") is None:
        raise TargetError(
            "--cluster needs the package distributed; install it with: pip install 'looptune[distributed]'"
        )
    dask_cluster, dask_executor = (
        importlib.import_module(f"looptune.tune.execution.{name}") for name in ("dask_cluster", "dask_executor")
    )
    with dask_cluster.connect(cluster, warn) as connected:
        yield dask_executor.DaskExecutor(connected)
