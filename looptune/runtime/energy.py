"""The energy of one run: from a device's energy counter, over many runs one after the other.

    counter  ____|‾‾‾‾|____ … ____|‾‾‾‾|____      updated every 1 ms (RAPL) to 100 ms (NVML)
    runs       ........... … ...........
                 first ├──── n runs ────┤ last    joules of one run = (last - first) / n

A window of runs begins and ends where the counter was updated, so that the time between two updates, in which nothing
is known, does not count. The arrays that a run writes are restored before each; a second window of restoring alone is
subtracted. Runs follow each other, and the caches are as the run before left them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median, median_low
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from looptune.runtime.outcome import Fact

SECONDS = 1.0
"""A window is at least so long: ten updates of a GPU's counter."""
BATCH_S, READINGS = 0.01, 20.0
"""Between two readings are runs of so many seconds at least, of a shorter window the same part, and of so many times
what a reading takes: a device that waits meanwhile uses other power."""
OVERHEAD_S = 0.25
"""A window takes so much longer than it is: to find how many runs follow each other, and for two updates."""
OTHER_RUNS = 3
"""So many runs are made before a window at least."""
MOST_RUNS = 2**20
"""So many runs are made between two readings at most."""
UPDATE_S = 1.0
"""A counter that was not updated for so long is not waited for."""
LEAST_SHARE = 0.1
"""Where a run takes less than this part of the time, restoring taking the rest, the difference is not its energy."""
MOST_TIMES = 2.0
"""Where a run takes longer than so many times its median in the finals, something disturbed it, or launching it took
longer than running it: the mean over the window is then not its energy."""

POWERCAP = Path("/sys/class/powercap")


@dataclass(frozen=True, slots=True)
class Energy:
    """The energy of one run in joules, the mean power in watts, and the clock in MHz, None where it is not known.

    ``low`` and ``high``: the least and the most joules of several windows, None where there was one. ``window_s``: the
    seconds of a window where it was shorter than SECONDS, else None.
    """

    joules: float
    watts: float
    mhz: float | None = None
    low: float | None = None
    high: float | None = None
    window_s: float | None = None

    @property
    def range(self) -> tuple[float, float]:
        """Return the least and the most joules."""
        return (self.joules if self.low is None else self.low, self.joules if self.high is None else self.high)


@dataclass(frozen=True, slots=True)
class EnergyCounter:
    """The energy counters of a device.

    ``read`` returns the joules of each part of the device, or None where it cannot be read any more; a part begins
    again at zero after its number of joules in ``ranges``. ``mhz`` returns the clock.
    """

    read: Callable[[], tuple[float, ...] | None]
    ranges: tuple[float, ...] = (math.inf,)
    mhz: Callable[[], float | None] = lambda: None

    def between(self, first: tuple[float, ...], last: tuple[float, ...]) -> float:
        """Return the joules between two readings."""
        parts = zip(first, last, self.ranges, strict=True)
        return sum(after - before if after >= before else after - before + size for before, after, size in parts)


@dataclass(frozen=True, slots=True)
class Window:
    """The joules and the seconds of one of the runs in a window, and the clock meanwhile."""

    joules: float
    seconds: float
    mhz: float | None


def measure_window(
    counter: EnergyCounter,
    repeat: Callable[[int], None],
    *,
    seconds: float = SECONDS,
    clock: Callable[[], float] = time.perf_counter,
) -> Window | None:
    """Return the energy of one of many runs, or None where the counter cannot be read.

    ``repeat`` makes so many runs and waits for their end.
    """
    start = clock()
    counter.read(), counter.mhz()
    batch = _runs_of(repeat, max(BATCH_S * min(1.0, seconds / SECONDS), READINGS * (clock() - start)), clock)
    start, before = clock(), counter.read()
    while (first := counter.read()) == before and clock() - start < UPDATE_S:
        repeat(batch)
    runs, clocks, last, start = 0, [], first, clock()
    while True:
        before = last
        repeat(batch)
        runs, last, passed = runs + batch, counter.read(), clock() - start
        clocks.append(counter.mhz())
        if first is None or last is None:
            return None
        if passed >= seconds and (last != before or passed >= seconds + UPDATE_S):
            break
    known = [mhz for mhz in clocks if mhz is not None]
    return Window(counter.between(first, last) / runs, passed / runs, float(median(known)) if known else None)


def time_of_window(run_s: float, seconds: float) -> float:
    """Return how long it takes at most to measure a window of so many seconds, of runs that take ``run_s`` each.

    >>> time_of_window(1e-5, 1.0), time_of_window(2.0, 1.0)
    (1.25003, 8.25)
    """
    return OTHER_RUNS * run_s + max(seconds, run_s) + OVERHEAD_S


def _runs_of(repeat: Callable[[int], None], seconds: float, clock: Callable[[], float]) -> int:
    """Return the power of two of runs that takes at least so many seconds; the first run of all may take longer."""
    repeat(1)
    runs = 1
    while runs < MOST_RUNS:
        start = clock()
        repeat(runs)
        if clock() - start >= seconds:
            break
        runs *= 2
    return runs


def energy_of_run(whole: Window | None, restoring: Window | None, median_us: float) -> Energy | None:
    """Return the energy of a run: that with its restoring without that of restoring alone.

    ``restoring`` is None where nothing is restored; ``median_us`` is the time of a run in the finals. The result is
    None where nothing was counted, where nearly all of the time is that of restoring, or where the runs took much
    longer than in the finals.
    """
    if whole is None:
        return None
    joules = whole.joules - (0.0 if restoring is None else restoring.joules)
    seconds = whole.seconds - (0.0 if restoring is None else restoring.seconds)
    if joules <= 0 or seconds < LEAST_SHARE * whole.seconds or seconds > MOST_TIMES * median_us / 1e6:
        return None
    return Energy(float(f"{joules:.4g}"), float(f"{joules / seconds:.4g}"), whole.mhz)


def energy_of_windows(found: Sequence[Energy]) -> Energy:
    """Return the medians of the energies of several windows, with the least and the most joules.

    >>> energy_of_windows([Energy(2.0, 100.0), Energy(3.0, 110.0), Energy(2.5, 105.0)])
    Energy(joules=2.5, watts=105.0, mhz=None, low=2.0, high=3.0, window_s=None)
    """
    if len(found) == 1:
        return found[0]
    joules, clocks = [one.joules for one in found], [one.mhz for one in found if one.mhz is not None]
    watts, mhz = median_low(one.watts for one in found), median_low(clocks) if clocks else None
    return Energy(median_low(joules), watts, mhz, min(joules), max(joules), found[0].window_s)


def rapl(folder: Path = POWERCAP, cpus: Path = Path("/sys/devices/system/cpu")) -> EnergyCounter | None:
    """Return the counter of the processors of this machine (RAPL), or None where it cannot be read.

    Linux allows only root to read it, unless the machine's owner has allowed others.
    """
    zones = [zone for zone in sorted(folder.glob("intel-rapl:*")) if _text(zone / "name").startswith("package-")]
    ranges = [_microjoules(zone / "max_energy_range_uj") for zone in zones]
    known = tuple(size for size in ranges if size is not None)

    def read() -> tuple[float, ...] | None:
        found = tuple(j for zone in zones if (j := _microjoules(zone / "energy_uj")) is not None)
        return found if len(found) == len(zones) else None

    if not zones or len(known) < len(zones) or read() is None:
        return None
    return EnergyCounter(read, known, lambda: _mean_mhz(cpus.glob("cpu[0-9]*/cpufreq/scaling_cur_freq")))


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _microjoules(path: Path) -> float | None:
    """Return the joules that a file states as microjoules."""
    text = _text(path)
    return int(text) / 1e6 if text.isdecimal() else None


def _mean_mhz(paths: Iterable[Path]) -> float | None:
    texts = [text for path in paths if (text := _text(path)).isdecimal()]
    return round(sum(map(int, texts)) / len(texts) / 1e3) if texts else None


_FACTS = ("energy_j", "power_w", "clock_mhz", "energy_low_j", "energy_high_j", "energy_window_s")


def to_facts(energy: Energy | None) -> tuple[Fact, ...]:
    """Return what a database keeps beside the times.

    >>> to_facts(Energy(0.5, 250.0))
    (('energy_j', 0.5), ('power_w', 250.0))
    """
    if energy is None:
        return ()
    values = (energy.joules, energy.watts, energy.mhz, energy.low, energy.high, energy.window_s)
    return tuple((name, value) for name, value in zip(_FACTS, values, strict=True) if value is not None)


def from_facts(facts: Iterable[Fact]) -> Energy | None:
    """Return the energy among facts, or None where it was not measured."""
    found = dict(facts)
    joules, watts, *others = (_number(found.get(name)) for name in _FACTS)
    return None if joules is None or watts is None else Energy(joules, watts, *others)


def _number(value: float | str | None) -> float | None:
    match value:
        case int() | float():
            return float(value)
    return None
