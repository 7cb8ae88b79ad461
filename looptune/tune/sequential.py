"""The original loops on one core, one iteration after the other: what a report calls sequential."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from looptune.ir import Loop, Node
from looptune.mapping import plan
from looptune.rewrite import rewrite
from looptune.runtime.machine import Cpu
from looptune.tune.cut import LONG_US
from looptune.tune.job import Job
from looptune.tune.original import outputs


def sequentialist(job: Job) -> Callable[[], tuple[float, ...]]:
    """The set-up of a worker that times the original loops on one core: up to five runs after a first one, fewer where
    they take long."""
    backend = job.target.reference()

    def rule(n: Node) -> Node | None:
        match n:
            case Loop():
                return replace(n, mode="sequential")
        return None

    program = backend.load(backend.build(plan(rewrite(rule, job.codelet), "one core, every loop sequential")))
    arrays = job.problem.arrays(job.codelet, job.seed)
    originals = {name: arrays[name].copy() for name in outputs(job.codelet)}
    pairs = {name: (arrays[name], original) for name, original in originals.items()}
    sample = Cpu().sampler(lambda stream: program.run(arrays, job.problem.values, stream), pairs)

    def times_us() -> tuple[float, ...]:
        times = [sample()]
        while len(times) <= 5 and sum(times) <= LONG_US:
            times.append(sample())
        return tuple(times[1:] if len(times) > 1 else times)

    return times_us
