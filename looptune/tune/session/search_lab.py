"""The laboratory of a kernel in a sweep: its processes search, and compile for its finals once its search has ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from looptune.tune.execution.lab import FINALS
from looptune.tune.measure.evaluate import KernelBuilder
from looptune.tune.session.finals import finals_worker

if TYPE_CHECKING:
    from looptune.tune.execution.process import Setup
    from looptune.tune.store.store import Context


@dataclass(frozen=True, slots=True)
class SearchLab:
    """``lab``: what is asked of the versions of the search."""

    lab: KernelBuilder

    @property
    def context(self) -> Context:
        return self.lab.context

    @property
    def compile_setup(self) -> Setup:
        return partial(_compiler, self.lab.compile_setup, partial(finals_worker, self.lab.job, self.lab.context))

    @property
    def measure_setups(self) -> tuple[Setup, ...]:
        return self.lab.measure_setups


def _compiler(search: Setup, finals: Setup) -> Callable[[str, Any], Any]:
    searching, concluding = search(), finals()

    def work(step: str, given: Any) -> Any:
        return concluding(*given) if step == FINALS else searching(step, given)

    return work
