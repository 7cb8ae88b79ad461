"""The finals: the best versions and the hand-written kernels in paired rounds on one device, and their energy."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from looptune.core.errors import ResourceError
from looptune.runtime.disturbance import times_disturbed
from looptune.runtime.energy import Energy
from looptune.runtime.roofline import MATRIX_RATE
from looptune.runtime.timing import FEWEST, finals, summary
from looptune.tune.execution.worker_loop import PickledValue
from looptune.tune.measure import handwritten
from looptune.tune.measure.finals_energy import ENERGY_S, EnergyMeter

if TYPE_CHECKING:
    from looptune.runtime.device import Run
    from looptune.tune.measure.build_steps import Finalist
    from looptune.tune.measure.measuring_device import MeasuringDevice

PAUSES_S = (0.0, 1.0, 4.0)
"""The finals wait so long before each attempt: what disturbs a machine often takes some seconds."""


@dataclass(frozen=True, slots=True)
class FinalsRequest:
    """The participants of the finals: versions by directive text, as pickled finalists, and the hand-written kernels.

    All are compared with the fastest and with the version ``default``; versions that are surely slower leave early.
    ``energy``: the energy of the others is measured after the rounds. ``energy_decides``: that of all is measured,
    and of those near the least energy, or the least EDP, in several windows. ``trial``: each is only run.
    """

    finalists: Mapping[str, PickledValue]
    by_hand: Path | None
    seed: int
    default: str
    screened_us: Mapping[str, float] = field(default_factory=dict)
    energy: bool = False
    energy_decides: bool = False
    trial: bool = False


@dataclass(frozen=True, slots=True)
class Times:
    """The microseconds of each round by name, paired by round.

    A version that left early has the first rounds only. ``wrong``: why others have no times; ``disturbed``: what
    disturbed the machine during the rounds, "" for nothing; ``energy``: that of one run, where it was measured;
    ``compilers``: the targets that other compilers than the target's own are of, by the versions that they made;
    ``over_limit``: what only the device knew of versions that were built anew, and cannot run there.
    """

    us: Mapping[str, tuple[float, ...]]
    wrong: Mapping[str, str] = field(default_factory=dict)
    disturbed: str = ""
    energy: Mapping[str, Energy] = field(default_factory=dict)
    compilers: Mapping[str, str] = field(default_factory=dict)
    over_limit: Mapping[str, str] = field(default_factory=dict)


class Finals:
    """The finals of a job on the device where its versions were measured; ``clock`` returns seconds."""

    def __init__(self, device: MeasuringDevice, clock: Callable[[], float] = time.monotonic) -> None:
        self.device, self.clock = device, clock

    def run(self, lineup: FinalsRequest) -> Times:
        """Time all versions, "hand-written" and, if the file has it, "library" in paired rounds."""
        samplers: dict[str, Callable[[], float]] = {}
        runs: dict[str, Run] = {}
        wrong: dict[str, str] = {}
        rates: dict[str, int] = {}
        compilers: dict[str, str] = {}
        over_limit: dict[str, str] = {}
        for text, sealed in lineup.finalists.items():
            finalist: Finalist = sealed.load()
            try:
                off = self.device.verify(finalist)
            except ResourceError as error:
                over_limit[text] = error.message
                continue
            if off is not None:
                wrong[text] = off
                continue
            binary = finalist.timed
            rates[text] = binary.plan.matrix_rate
            if not self.device.is_own(binary):
                compilers[text] = binary.target
            runs[text] = self.device.run_of(binary)
            samplers[text] = self.device.machine.sampler(runs[text], self.device.pairs())
        if lineup.by_hand is not None:
            by_hand, wrong_by_hand = self.by_hand(lineup.by_hand)
            wrong |= wrong_by_hand
            samplers |= {name: sample for name, (_, sample) in by_hand.items()}
            runs |= {name: run for name, (run, _) in by_hand.items()}
            # looptune does not know what such a kernel, or a library, computes with
            rates |= dict.fromkeys(by_hand, MATRIX_RATE)
        if lineup.trial:
            for sample in samplers.values():
                sample()
            return Times({}, wrong, over_limit=over_limit)
        leaving, limit_s = lineup.finalists.keys() - {lineup.default}, self.device.job.finals_s
        patience_s, fewest = (limit_s, 1) if self.device.job.finals_end else (2 * limit_s, FEWEST)

        def rounds() -> dict[str, tuple[float, ...]]:
            return finals(
                samplers, lineup.seed, lineup.default, leaving, limit_s=limit_s, patience_s=patience_s, fewest=fewest
            )

        begun = self.clock()
        times, disturbed = self.undisturbed(rounds, lineup)
        rounds_s = self.clock() - begun
        fast = {name: self.device.impossible(summary(us).median_us, rates[name]) for name, us in times.items()}
        wrong |= {name: why for name, why in fast.items() if why is not None}
        times = {name: us for name, us in times.items() if name not in wrong}
        most = max(map(len, times.values()), default=0)
        shown = {name for name, us in times.items() if name not in leaving or len(us) == most}
        medians = {name: summary(us).median_us for name, us in times.items()}
        return Times(
            times, wrong, disturbed, self.energy(lineup, runs, medians, shown, rounds_s), compilers, over_limit
        )

    def energy(
        self,
        lineup: FinalsRequest,
        runs: Mapping[str, Run],
        medians_us: Mapping[str, float],
        shown: Collection[str],
        rounds_s: float,
    ) -> dict[str, Energy]:
        """Return the energy of the versions ``shown``, of all if energy decides, or of none if no energy is wanted.

        The default, with which all are compared, is measured first, then the fastest. A budget of time reserves
        ``energy_s`` seconds; the seconds that the rounds, which took ``rounds_s``, have left are added.
        """
        counter, job = self.device.counter, self.device.job
        if counter is None or not (lineup.energy or lineup.energy_decides):
            return {}
        limit_s = job.energy_s + max(job.finals_s - rounds_s, -job.energy_s / 2)
        limit_s = min(ENERGY_S, limit_s) if lineup.energy_decides else limit_s
        meter = EnergyMeter(self.device.machine, counter, self.device.pairs(), limit_s, self.clock)
        ordered = sorted(medians_us, key=lambda name: (name != lineup.default, medians_us[name]))
        if lineup.energy_decides:
            return meter.of_all(runs, {name: medians_us[name] for name in ordered}, shown, lineup.seed)
        return meter.of_each(runs, {name: medians_us[name] for name in ordered if name in shown})

    def undisturbed(
        self, rounds: Callable[[], dict[str, tuple[float, ...]]], lineup: FinalsRequest
    ) -> tuple[dict[str, tuple[float, ...]], str]:
        """Return the times of the finals, and what disturbed them although they were repeated, "" for nothing.

        Of several that were disturbed the fastest are returned. A budget of seconds has no time for another attempt.
        """
        made: list[tuple[dict[str, tuple[float, ...]], str]] = []
        for pause_s in (0.0,) if self.device.job.finals_end or self.device.job.accept_disturbed else PAUSES_S:
            time.sleep(pause_s)
            ended = self.device.machine.watch()
            times = rounds()
            said = (ended(), times_disturbed(times, lineup.screened_us, (lineup.default,)))
            disturbed = "" if self.device.job.accept_disturbed else ", ".join(one for one in said if one)
            made.append((times, disturbed))
            if not disturbed:
                return made[-1]
        return min(made, key=lambda one: sum(summary(us).median_us for us in one[0].values()))

    def by_hand(self, path: Path) -> tuple[dict[str, tuple[Run, Callable[[], float]]], dict[str, str]]:
        """Return the correct kernels of a hand-written file with samplers, and what is wrong with the others, by name.

        An exception that a user's file raises affects only the times of its kernels.
        """
        right, wrong = {}, {}
        try:
            runs = handwritten.load_kernels(path, self.device.job, self.device.machine, self.device.arrays)
        except Exception as error:
            return {}, {"hand-written": handwritten.kernel_error(path, error)}
        for name, run in runs.items():
            try:
                self.device.restore()
                self.device.machine.time_once(run)
                off = self.device.wrong()
                if off is None:
                    right[name] = run, self.device.machine.sampler(run, self.device.pairs())
                else:
                    wrong[name] = off
            except Exception as error:
                wrong[name] = handwritten.kernel_error(path, error)
        return right, wrong
