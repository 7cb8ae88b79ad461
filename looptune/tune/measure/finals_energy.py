"""The energy of the versions of the finals, within the time that a budget leaves for it.

no budget of time    a window of a second for each version, three for those that may win by energy
a budget of time     shorter windows, so that all fit, or a window for as many versions as have one
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from looptune.runtime.device import Device, Restore
from looptune.runtime.energy import (
    OVERHEAD_S,
    SECONDS,
    Energy,
    EnergyCounter,
    Window,
    energy_of_run,
    energy_of_windows,
    measure_window,
    time_of_window,
)
from looptune.runtime.objective import cost

if TYPE_CHECKING:
    from looptune.core.settings import Objective
    from looptune.runtime.device import Run

WINDOWS = 3
"""Windows in which the energy of a version is measured that may win by it."""
LIKELY = 4
"""So many versions have more than one of them, as far as anyone knows before."""
ENERGY_S = 240.0
"""So long energies are measured where they decide: those of the default and of the fastest versions first."""
NEAR = 1.1
"""A version that needs more than so many times the least energy in one window is not measured again."""
LEAST_S = 0.25
"""A window is never shorter: the counter of a GPU is updated about every 100 ms."""
BY_ENERGY: tuple[Objective, ...] = ("energy", "edp")


@dataclass(slots=True)
class EnergyMeter:
    """Measures the energy of runs on a device for ``limit_s`` seconds from now on.

    ``pairs``: the arrays that a run writes; ``clock`` returns seconds.
    """

    machine: Device
    counter: EnergyCounter
    pairs: Restore
    limit_s: float = math.inf
    clock: Callable[[], float] = time.monotonic
    seconds: float = field(init=False, default=SECONDS)
    _until: float = field(init=False)
    _restoring: Window | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self._until = self.clock() + self.limit_s

    def of_each(self, runs: Mapping[str, Run], medians_us: Mapping[str, float]) -> dict[str, Energy]:
        """Return the energy of one run of each version that has a median in the finals, where it can be told."""
        self._divide(len(medians_us))
        return self._measured(runs, medians_us)

    def of_all(
        self, runs: Mapping[str, Run], medians_us: Mapping[str, float], shown: Collection[str], seed: int
    ) -> dict[str, Energy]:
        """Return the energy of every version, that of ``shown`` and of those near the best in several windows.

        The windows of a version do not follow each other, and their order is shuffled: a board becomes warmer, and
        then needs more. Versions are near that need up to NEAR times the least energy, or have up to NEAR times the
        least EDP, in their first windows. What is left of the time decides how many versions have several windows, and
        whether the last ones have any.
        """
        self._divide(len(medians_us) + (WINDOWS - 1) * min(LIKELY, len(medians_us)))
        first = self._measured(runs, medians_us)
        near = {name for objective in BY_ENERGY for name in _near(objective, first, medians_us)}
        found = {name: [energy] for name, energy in first.items()}
        order, shuffler = sorted(found.keys() & (near | set(shown))), random.Random(seed)
        for _ in range(WINDOWS - 1):
            shuffler.shuffle(order)
            for name, energy in self._measured(runs, {name: medians_us[name] for name in order}).items():
                found[name].append(energy)
        return {name: energy_of_windows(windows) for name, windows in found.items()}

    def _divide(self, windows: int) -> None:
        """Choose the length of the windows so that so many, and one of restoring, fit into what is left of the time."""
        each_s = self._left_s / (windows + bool(self.pairs)) - OVERHEAD_S
        self.seconds = min(SECONDS, max(LEAST_S, each_s))

    @property
    def _left_s(self) -> float:
        return self._until - self.clock()

    def _measured(self, runs: Mapping[str, Run], medians_us: Mapping[str, float]) -> dict[str, Energy]:
        """Return the energy of the versions for whose windows there is time, in this order."""
        if not medians_us or not self._restored():
            return {}
        found: dict[str, Energy] = {}
        restore_s = 0.0 if self._restoring is None else self._restoring.seconds
        for name, median_us in medians_us.items():
            if time_of_window(median_us / 1e6 + restore_s, self.seconds) > self._left_s:
                continue
            energy = energy_of_run(self._window(runs[name]), self._restoring, median_us)
            if energy is not None:
                found[name] = replace(energy, window_s=self.seconds) if self.seconds < SECONDS else energy
        return found

    def _restored(self) -> bool:
        """Measure what restoring the arrays uses, and tell whether that is known; short windows share one."""
        if self._restoring is not None and self.seconds < SECONDS:
            return True
        if self.pairs and time_of_window(0.0, self.seconds) <= self._left_s:
            self._restoring = self._window(None)
        return not self.pairs or self._restoring is not None

    def _window(self, run: Run | None) -> Window | None:
        repeat = self.machine.repeater(run, self.pairs)
        return measure_window(self.counter, repeat, seconds=self.seconds, clock=self.clock)


def _near(objective: Objective, found: Mapping[str, Energy], medians_us: Mapping[str, float]) -> set[str]:
    """Return the versions whose cost is at most NEAR times the least."""
    costs = {name: cost(objective, medians_us[name], energy) for name, energy in found.items()}
    known = {name: one.value for name, one in costs.items() if one is not None}
    return {name for name, value in known.items() if value <= NEAR * min(known.values())}
