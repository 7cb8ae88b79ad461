"""Compile measured versions in parallel, without a device: as they were measured, or for any sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

from looptune.core.errors import ResourceError
from looptune.deploy import plans
from looptune.schedule.analysis import Analysis
from looptune.tune.execution.worker_loop import PickledValue, pickle_value
from looptune.tune.measure.device_limits import exceeded

if TYPE_CHECKING:
    from looptune.deploy.best_versions import BestVersion
    from looptune.ir.nodes import Codelet
    from looptune.runtime.targets import Target

Sizes = Literal["exact", "elsewhere"]


def builder(of: Sequence[tuple[Codelet, BestVersion]], target: Target) -> Callable[[Sizes, int], PickledValue | None]:
    """Return the set-up of a process that builds versions.

    It returns a version, by its number, as a sealed Binary, or None if there is none for other sizes, or if it needs
    more than the device has.
    """
    backend = target.backend()

    def build(sizes: Sizes, number: int) -> PickledValue | None:
        codelet, best = of[number]
        analysis = Analysis(codelet)
        made = plans.exact(analysis, best) if sizes == "exact" else plans.for_other_sizes(analysis, best)
        if made is None:
            return None
        try:
            binary = backend.build(made)
        except ResourceError:
            return None
        return None if exceeded(binary.resources) is not None else pickle_value(binary)

    return build
