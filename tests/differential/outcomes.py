"""What comes of a case, as values that processes hand over."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Failure:
    """``kind``: "traceback", "crash", "hang", "differs", "canary" or "text" (does not compile)."""

    index: int
    target: str
    kind: str
    said: str
    lines: tuple[str, ...] = ()
    number: int = 0

    @property
    def signature(self) -> tuple[str, str, str]:
        """What failures of one cause are likely to share."""
        words = self.said.strip().splitlines()[-1] if self.kind == "traceback" and self.said.strip() else ""
        return self.target, self.kind, "".join(c for c in words if not c.isdigit())[:60]


@dataclass(slots=True)
class Report:
    """Of many cases."""

    counts: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)

    def add(self, other: Report) -> None:
        self.counts += other.counts
        self.failures += other.failures
