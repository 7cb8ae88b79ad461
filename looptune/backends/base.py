"""The interface of a backend: it emits source text, builds it without a device, and loads the result on the device.

    Plan ── emit ──▶ source text ── build ──▶ Binary ── load ──▶ Program ── call ──▶ arrays updated in place

``emit`` is pure. ``build`` needs the toolchain only and runs in compiling processes, so ``Binary`` is picklable.
``load`` runs in the one process that owns the device.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from looptune.core.escape import docstring
from looptune.core.version import __version__
from looptune.lower.plan import FinishedPlan, Plan


@dataclass(frozen=True, slots=True)
class Resources:
    """The resources of one kernel: registers and spill bytes per thread, shared bytes and threads per block."""

    kernel: str
    registers: int
    local_bytes: int
    shared_bytes: int
    threads: int


@dataclass(frozen=True, slots=True)
class Binary:
    """A built plan. ``objects`` maps a kernel's name to its machine code; the CPU target keeps its in a file cache."""

    target: str
    plan: FinishedPlan
    source: str
    objects: Mapping[str, bytes]
    resources: tuple[Resources, ...]
    compile_s: float


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of the host loop ``loop``: ``us[k]`` is the device's busy time up to checkpoint k."""

    loop: str
    us: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class TimeLimit:
    """Limit of a plan: it is stopped after ``us`` microseconds.

    If it has the host loop of ``pace``, it is also stopped after ``pace.us[k]`` at checkpoint k.
    """

    us: float
    pace: Progress | None = None

    def by(self, loop: str, mark: int) -> float:
        """Return the time limit of a plan with this host loop for reaching this checkpoint."""
        if self.pace is None or self.pace.loop != loop or mark >= len(self.pace.us):
            return self.us
        return min(self.us, self.pace.us[mark])


@dataclass(frozen=True, slots=True)
class PartialRun:
    """A run that may have been stopped: ``us`` on the device, at least, for ``launched`` of the plan's ``launches``.

    ``pace``: the progress up to the checkpoints passed; None if the plan has no host loop.
    """

    us: float
    launched: int
    launches: int
    pace: Progress | None = None


class Program(ABC):
    """A loaded plan: ``run`` updates the arrays in place, asynchronously where the device is."""

    @abstractmethod
    def run(self, arrays: Mapping[str, Any], scalars: Mapping[str, int | float], stream: Any = None) -> None:
        """Run the plan once, asynchronously if the device is.

        ``arrays`` by parameter name: contiguous, of the declared type and rank, on the target's device. ``scalars`` by
        name: every integer parameter and host-side value that the plan needs.
        """

    @abstractmethod
    def run_within(
        self, limit: TimeLimit, arrays: Mapping[str, Any], scalars: Mapping[str, int | float], stream: Any = None
    ) -> PartialRun:
        """Run the plan and wait; stop between two launches once the device has been busy for longer than ``limit``."""


class Backend(ABC):
    """A code generator: it emits source text, builds it without a device, and loads the binary where the device is."""

    name: ClassVar[str]
    lines_a_second: ClassVar[float] = 100.0
    """So many lines of source the compiler takes in a second, while others compile on the same cores."""

    @abstractmethod
    def emit(self, plan: Plan) -> str: ...

    def finish(self, plan: Plan) -> Plan:
        """Return a plan that ``emit`` and ``build`` take in place of this one, and for which they have less to do."""
        return plan

    @abstractmethod
    def build(self, plan: Plan) -> Binary: ...

    def build_ahead(self, plan: Plan, first: int) -> None:
        """Put the code of kernels that ``build`` will need into the cache, those from number ``first`` on at first.

        Several processes then share the building of one plan. Does nothing where kernels have no cache.
        """
        del plan, first

    @abstractmethod
    def load(self, binary: Binary) -> Program: ...

    def measuring(self) -> Backend:
        """Return the backend for measuring a device's peaks, which may contract and reorder sums."""
        return self


def header(plan: Plan, target: str) -> str:
    """Return the docstring of an emitted module: its content and its schedule."""
    return f'"""{docstring(description(plan, target))}"""\n'


def description(plan: Plan, target: str) -> str:
    """Return the description of an emitted file: the codelet, its directives, and what the user asserted."""
    note = _lines(plan.schedule_text.splitlines())
    directives = f"Directives:\n{note}" if note else "No directives: the default configuration."
    said = f"\n\nAsserted by the user, not proved:\n{_lines(plan.asserted)}" if plan.asserted else ""
    return f"{plan.codelet.name} for {target}, generated by looptune {__version__}.\n\n{directives}{said}\n"


def _lines(lines: Sequence[str]) -> str:
    return "".join(f"\n    {line}" for line in lines)
