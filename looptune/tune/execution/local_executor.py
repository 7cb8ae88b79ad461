"""The executor of one machine: a pool of processes that compile, and processes that measure, each on a device.

Laboratories may have devices in common, of which each has a process of its own there: one of them measures at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from looptune.core.errors import TargetError
from looptune.tune.execution.executor import TaskReply, compilers, invalidates_device
from looptune.tune.execution.task_queue import URGENT, USUAL
from looptune.tune.execution.workers import Pool, Reply, Worker, sleep

if TYPE_CHECKING:
    from looptune.tune.execution.lab import VersionBuilder
    from looptune.tune.execution.process_cache import ProcessCache
    from looptune.tune.incumbent import Incumbent


class LocalExecutor:
    """``jobs`` processes compile for all labs; ``timeout_s`` limits each task.

    Where processes are to outlive it, they come from ``spares`` and go back to them; ``devices`` names the devices of
    each lab, by default all different.
    """

    def __init__(
        self,
        labs: Sequence[VersionBuilder],
        jobs: int,
        timeout_s: float,
        spares: ProcessCache | None = None,
        devices: Sequence[Sequence[str]] = (),
    ) -> None:
        self._pool = Pool(partial(compilers, tuple(lab.compile_setup for lab in labs)), jobs, timeout_s, spares)
        own = [tuple(f"{n}.{k}" for k in range(len(lab.measure_setups))) for n, lab in enumerate(labs)]
        self._devices = tuple(map(tuple, devices)) if devices else tuple(own)
        self._measurers = tuple(
            tuple(Worker(s, timeout_s, spares=spares, kind=d) for s, d in zip(lab.measure_setups, named, strict=True))
            for lab, named in zip(labs, self._devices, strict=True)
        )
        self._all_measurers = tuple(measurer for measurers in self._measurers for measurer in measurers)
        self._loads: Counter[int] = Counter()
        self._busy: set[str] = set()
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
        return self._loads.total()

    @property
    def measuring(self) -> int:
        return len(self._busy)

    def load(self, lab: int) -> int:
        return self._loads[lab]

    def devices(self, lab: int) -> int:
        return len(self._measurers[lab])

    def free(self, lab: int) -> bool:
        return self._free(lab) is not None

    def compile(self, lab: int, key: Any, step: str, given: Any, urgent: bool = False) -> None:
        self._loads[lab] += 1
        self._leave_cores()
        group = lab if step == "prepare" else None
        self._pool.submit((lab, key), lab, step, given, rank=URGENT if urgent else USUAL, group=group)

    def warm(self, lab: int, count: int) -> None:
        for measurer in self._measurers[lab][:count]:
            measurer.start()

    def measure(self, lab: int, key: Any, built: Any, best: Incumbent | None) -> None:
        found = self._free(lab)
        assert found is not None, "a version is measured on a free device"
        device, measurer = found
        self._busy.add(device)
        measurer.submit((lab, key, device), built, best)

    def _free(self, lab: int) -> tuple[str, Worker] | None:
        """Taken in order, so that a short sweep starts few processes. One that sets up leaves its device to others."""
        for device, measurer in zip(self._devices[lab], self._measurers[lab], strict=True):
            if device not in self._busy:
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
        if self._broken is not None and not found:
            raise self._broken
        return found

    def _measured(self, worker: Worker) -> TaskReply | None:
        said = self._collected(worker.collect)
        if said is None:
            return None
        (lab, key, device), reply = said
        self._busy.remove(device)
        if invalidates_device(reply):
            worker.end()
            worker.start()
        return TaskReply(lab, key, reply, True)

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
        """To kernels that set up, each on a core of its own: what is compiled waits for them.

        One is left anyway, and of several devices of a kernel all but one wait for the original loops.
        """
        setting_up = sum(any(measurer.setting_up for measurer in own) for own in self._measurers)
        self._pool.limit = max(1, len(self._pool.workers) - max(0, setting_up - 1))
