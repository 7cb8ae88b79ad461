"""Verify a version at prime sizes, where every remainder loop and guard executes, and time it there.

    canary | array | canary      restore ─▶ run ─▶ canaries fetched, arrays compared on the device ─▶ run once more

If these sizes are large enough, the time also decides whether a run at the user's sizes is worth it.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from looptune.backends.base import Backend, Program
from looptune.runtime.device import Device
from looptune.runtime.device_compare import Comparison
from looptune.runtime.problem_sizes import Problem, sizes_text
from looptune.runtime.verification import CanaryArray, ReferenceComparison, with_canaries
from looptune.tune.job import Job
from looptune.tune.measure.float_accuracy import float_accuracy
from looptune.tune.measure.pruning import LONG_US
from looptune.tune.measure.reference import ReferenceResult

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from looptune.lower.plan import Plan

PAD = 128
"""Elements of a canary are a multiple of this, which keeps the alignment that vector loads need, and that a part of an
OpenCL buffer has to have: 128 bytes."""


@dataclass(frozen=True, slots=True)
class PrimeSizeRun:
    """The result of a run at prime sizes; ``sizes`` is a text such as ``ni=257 nj=263``, "" without sizes.

    ``wrong``: the first element that differs, or a write outside an array; ``us``: the time, if all is correct and
    versions are screened at these sizes; ``took_s``: seconds of the whole run; ``floats``: what is said of a version
    that does not compute with floats as the loops do, see ``float_accuracy``.
    """

    sizes: str = ""
    wrong: str | None = None
    us: float | None = None
    took_s: float = 0.0
    floats: str = ""


@dataclass(slots=True)
class PrimeSizeCheck:
    """The arrays on the device, each between canaries, with copies of what they hold before a run.

    ``at_problem``: arrays of a few elements, which the host compares.
    """

    job: Job
    machine: Device
    backend: Backend
    at: Problem
    at_problem: bool = False
    judge: ReferenceComparison = field(init=False)
    comparison: Comparison | None = field(init=False, default=None)
    guarded: dict[str, CanaryArray] = field(init=False, default_factory=dict)
    wholes: dict[str, Any] = field(init=False, default_factory=dict)
    insides: dict[str, Any] = field(init=False, default_factory=dict)
    originals: dict[str, Any] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        original = ReferenceResult(self.job, self.at, self.job.seed + 1)
        host = original.inputs()
        self.judge = original.judge(host)
        if not self.at_problem:
            self.comparison = Comparison(self.machine, self.backend, self.judge)
        for name, array in host.items():
            # A row at least: the usual mistake is one iteration too many.
            row = array.shape[-1] if array.ndim else 1
            self.guarded[name] = with_canaries(array, PAD * max(1, -(-row // PAD)))
            whole = self.guarded[name].buffer
            self.wholes[name], self.originals[name] = self.machine.place(whole), self.machine.place(whole)
            self.insides[name] = self.machine.inside(self.wholes[name], self.guarded[name].pad, array.shape)

    @property
    def sizes(self) -> str:
        return sizes_text(self.at)

    def run(self, program: Program, plan: Plan) -> PrimeSizeRun:
        """Return the verdict and the time of a ``plan``, which is loaded as ``program``.

        The faster of two runs counts, since a first run may include loading by the driver or a delay of the host.
        """
        start = time.monotonic()
        restore = {name: (self.wholes[name], original) for name, original in self.originals.items()}
        for target, source in restore.values():
            self.machine.copy(source, target)

        def run(stream: Any) -> None:
            program.run(self.insides, self.at.values, stream)

        first_us = self.machine.time_once(run)
        wrong = self._wrong(plan.inexact)
        floats = "" if wrong is not None or self.at_problem else float_accuracy(plan, self.judge, self._fetched)[0]
        floats += f" at {self.sizes}" if floats else ""
        if wrong is not None or self.at_problem or not self.job.screens:
            return PrimeSizeRun(self.sizes, wrong, None, time.monotonic() - start, floats)
        again_us = math.inf if first_us > LONG_US else self.machine.sampler(run, restore)()
        return PrimeSizeRun(self.sizes, None, min(first_us, again_us), time.monotonic() - start, floats)

    def _fetched(self) -> dict[str, np.ndarray]:
        return {name: self.machine.fetch(self.insides[name]) for name in self.judge.expected}

    def _wrong(self, relative: Mapping[str, float]) -> str | None:
        for name, p in self.guarded.items():
            whole, after = self.wholes[name], p.pad + p.view.size
            ends = (self.machine.fetch(self.machine.inside(whole, start, (p.pad,))) for start in (0, after))
            outside = p.check_ends(*ends)
            if outside is not None:
                return f"{name}: {outside}"
        if self.comparison is None:
            off = self.judge.wrong(self._fetched(), relative)
        else:
            off = self.comparison.wrong(self.insides, relative)
        return None if off is None else f"{off} at {self.sizes}"
