"""Workers without processes: every task is answered at once by a function of the test."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from looptune.tune.execution.executor import TaskReply
from looptune.tune.execution.lab import FIRST, Order
from looptune.tune.execution.worker import Reply


@dataclass
class FakeWorkers:
    """``compiled(lab, step, given)`` and ``measured(lab, *task)`` give the replies."""

    compiled: Callable[..., Reply]
    measured: Callable[..., Reply]
    compilers: int = 1
    compiling: int = 0
    measuring: int = 0
    said: list[TaskReply] = field(default_factory=list)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        assert not self.said, "every reply is taken"

    def load(self, lab: int) -> int:
        return 0

    def devices(self, lab: int) -> int:
        return 1

    def free(self, lab: int) -> bool:
        return True

    def compile(self, lab: int, key: Any, step: str, given: Any, urgent: bool = False, order: Order = FIRST) -> None:
        self.said.append(TaskReply(lab, key, self.compiled(lab, step, given), False))

    def withdraw(self, lab: int, key: Any) -> bool:
        return False

    def warm(self, lab: int, count: int) -> None:
        pass

    def get_ready(self, labs: Sequence[int]) -> Sequence[int]:
        return labs

    def measure(self, lab: int, key: Any, *task: Any) -> None:
        self.measuring += 1
        self.said.append(TaskReply(lab, key, self.measured(lab, *task), True))

    def sleep(self, timeout_s: float | None) -> None:
        pass

    def replies(self) -> list[TaskReply]:
        said, self.said = self.said, []
        self.measuring -= sum(answer.measured for answer in said)
        return said
