"""The outcome of one configuration: it was timed, cut off, or failed, with the evidence.

    Outcome = Timed | CutOff | Illegal | NotBuilt | OverLimit | WrongResult | Crashed | TimedOut

Every message is one or a few lines for a person. JSON is the stored form; ``from_json(to_json(o)) == o``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any, ClassVar

from looptune.core.escape import dump_json

Fact = tuple[str, int | float | str]


@dataclass(frozen=True, slots=True)
class Timed:
    """The version was timed: ``times_us`` are single runs, ``verified`` says against what.

    ``facts`` are other observations, such as registers per thread.
    """

    status: ClassVar[str] = "timed"
    times_us: tuple[float, ...]
    median_us: float
    q1_us: float
    q3_us: float
    verified: str
    facts: tuple[Fact, ...] = ()


NOT_RUN = "not run"
PREDICTED = "predicted"


@dataclass(frozen=True, slots=True)
class CutOff:
    """The version was stopped because it was already far slower than the best.

    It had run ``elapsed_us`` and ``launched`` of ``launches``; the best version so far takes ``best_us`` in all.
    ``verified`` and ``facts`` are as in Timed.

    If ``best_at_cutoff_us`` is None, the version takes longer than ``elapsed_us``, and nothing else is known. Else the
    best took ``best_at_cutoff_us`` for the same work: a part of the host loop, or a run at the reduced sizes, that
    ``where`` names. A version that is hopeless by the assignments of its kernels of one thread does not run at all
    (``NOT_RUN``), nor does one whose predicted time is hopeless (``PREDICTED``); ``elapsed_us`` is then an estimate.
    """

    status: ClassVar[str] = "cut_off"
    elapsed_us: float
    best_us: float
    launched: int
    launches: int
    verified: str
    facts: tuple[Fact, ...] = ()
    best_at_cutoff_us: float | None = None
    where: str = ""

    @property
    def cost_us(self) -> float:
        """Return the cost for a search: the best's time scaled by the measured ratio, or else the elapsed time."""
        if self.best_at_cutoff_us is None:
            return self.elapsed_us
        return self.best_us * self.elapsed_us / self.best_at_cutoff_us

    @property
    def message(self) -> str:
        if self.where == NOT_RUN:
            ratio = self.elapsed_us / self.best_us
            return (
                f"{NOT_RUN}: the assignments of its kernels of one thread, at 1 ns each, are {self.elapsed_us:.4g} us, "
                f"{ratio:.3g} times the best ({self.best_us:.4g} us)"
            )
        if self.where == PREDICTED:
            ratio = self.elapsed_us / self.best_us
            return (
                f"{NOT_RUN}: it is predicted to take {self.elapsed_us:.4g} us, {ratio:.3g} times the best "
                f"({self.best_us:.4g} us)"
            )
        made = f"{self.launched} of {self.launches} launches made"
        if self.best_at_cutoff_us is None:
            ratio = self.elapsed_us / self.best_us
            return f"cut off after {self.elapsed_us:.4g} us, {ratio:.3g} times the best ({self.best_us:.4g} us): {made}"
        ratio = self.elapsed_us / self.best_at_cutoff_us
        return (
            f"cut off {self.where}: {self.elapsed_us:.4g} us, {ratio:.3g} times what the best took there "
            f"({self.best_at_cutoff_us:.4g} us, {self.best_us:.4g} us in all): {made}"
        )


@dataclass(frozen=True, slots=True)
class Illegal:
    """Dependences forbid the version, or a directive does not fit its loop; ``message`` holds the witness."""

    status: ClassVar[str] = "illegal"
    message: str


@dataclass(frozen=True, slots=True)
class NotBuilt:
    """The toolchain refused the source."""

    status: ClassVar[str] = "not_built"
    message: str


@dataclass(frozen=True, slots=True)
class OverLimit:
    """The version needs more of a resource than the device has; ``message`` holds both numbers."""

    status: ClassVar[str] = "over_limit"
    message: str


@dataclass(frozen=True, slots=True)
class WrongResult:
    """The version ran and computed something else: array and index, both values, error and tolerance."""

    status: ClassVar[str] = "wrong"
    message: str


@dataclass(frozen=True, slots=True)
class Crashed:
    """The process or the device context died: the signal's name and the last lines it wrote."""

    status: ClassVar[str] = "crashed"
    message: str


@dataclass(frozen=True, slots=True)
class TimedOut:
    """The process was killed ``limit_s`` seconds after it began."""

    status: ClassVar[str] = "timed_out"
    limit_s: float

    @property
    def message(self) -> str:
        return f"killed after {self.limit_s:g} s"


def least_us(outcome: Outcome | None) -> float | None:
    """Return what a version without a time takes at least, in microseconds; None where that is not known.

    The limit of one that timed out is for all that its process did, and of no single run; what did not run was not
    measured.
    """
    match outcome:
        case CutOff(elapsed_us, best_at_cutoff_us=None, where=where) if where not in (NOT_RUN, PREDICTED):
            return elapsed_us
    return None


COMPILER = "compiler"
"""The fact that another compiler than the target's own made the kernels that were timed: the target that it is of."""
Outcome = Timed | CutOff | Illegal | NotBuilt | OverLimit | WrongResult | Crashed | TimedOut

CLASSES: Mapping[str, type[Outcome]] = MappingProxyType(
    {c.status: c for c in (Timed, CutOff, Illegal, NotBuilt, OverLimit, WrongResult, Crashed, TimedOut)}
)


_EARLIER: Mapping[str, str] = MappingProxyType({"ran_us": "elapsed_us", "there_us": "best_at_cutoff_us"})
"""Fields by the names that they have in databases of an earlier looptune."""


def to_json(outcome: Outcome) -> str:
    """Return the outcome as JSON.

    >>> to_json(TimedOut(2.5))
    '{"status": "timed_out", "limit_s": 2.5}'
    """
    return dump_json({"status": outcome.status, **asdict(outcome)})


def from_json(text: str) -> Outcome:
    """Return the outcome that ``text`` holds; raises ValueError if it holds none."""
    match json.loads(text):
        case {"status": str(status), **fields} if status in CLASSES:
            named = {str(name): _tuples(value) for name, value in fields.items()}
            try:
                return CLASSES[status](**{_EARLIER.get(name, name): value for name, value in named.items()})
            except TypeError as error:
                raise ValueError(f"no fields of the outcome {status}: {text[:80]}") from error
    raise ValueError(f"no outcome: {text[:80]}")


def _tuples(value: Any) -> Any:
    return tuple(_tuples(x) for x in value) if isinstance(value, list) else value
