"""The arrays that one version leaves after a run on the whole input: what ``--dump`` writes.

It runs in a process of its own, as every measurement does.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from looptune.errors import TargetError, UsageError
from looptune.runtime.inputs import save
from looptune.tune.evaluate import Bench, Job, KernelLab, Plans, plans_of
from looptune.tune.space import Configuration
from looptune.tune.workers import Raised, Returned, Worker, wait

LIMIT_S = 600.0


def check_writable(path: Path) -> None:
    """UsageError, before anything is measured, where the file could not be written in the end."""
    if path.is_dir():
        raise UsageError(f"--dump {path} is a folder: give the name of a .npz file")
    if not path.parent.is_dir():
        raise UsageError(f"--dump {path}: no such folder: {path.parent}")


def write(lab: KernelLab, directives: str, path: Path) -> None:
    """Run the version once and write every array that the codelet gives back, by name."""
    plans = plans_of(lab.job, lab.scheduled(Configuration(tuple(directives.splitlines()))).codelet, directives)
    with Worker(partial(_runner, lab.job), limit_s=LIMIT_S) as worker:
        worker.submit("dump", plans)
        replies = wait([worker])
        while not replies:
            replies = wait([worker])
        match replies[0][2]:
            case Returned(arrays):
                save(arrays, path)
            case Raised(message, trace):
                raise AssertionError(f"the run for --dump failed: {message}\n{trace}")
            case other:
                raise TargetError(f"the run for --dump did not end: {other.message}")


def _runner(job: Job) -> Callable[[Plans], dict[str, np.ndarray]]:
    """The set-up of the worker."""
    bench = Bench(job)

    def run(plans: Plans) -> dict[str, np.ndarray]:
        version = bench.run_of(bench.backend.build(plans.timed))
        bench.restore()
        bench.machine.once(version)
        return {name: bench.machine.fetch(bench.arrays[name]) for name in bench.comparison.judge.expected}

    return run
