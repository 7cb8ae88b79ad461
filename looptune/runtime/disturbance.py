"""Whether something disturbed a measurement: other programs on the cores, a GPU that was slowed down, or the times.

    cores    other programs used them while this process waited for one; the host of a virtual machine took their time
    GPU      its driver lowered the clocks because of heat or power (``runtime/nvml``)
    times    the finals are slower than the screening was, or the runs of one version fall into two groups

Linux counts the first two since it started; where a system does not count them, nothing is reported of them.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import numpy as np

from looptune.runtime.timing import times_text

WAITING = 0.1
"""Tasks waited for a core in more than this part of the time: the cores were shared."""
DELAYED = 0.05
"""The threads of this process waited for a core in more than this part of the time."""
OTHERS = 0.2
"""Other programs used more than so many cores."""
STOLEN = 0.02
"""More than this part of the cores' time was stolen."""
SLOWER = 1.5
"""So many times as slow as in the screening, the versions do not run on the same machine any more."""
APART = 2.0
"""A fifth of the runs of a version took more than so many times as long as another fifth."""

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Counters:
    """What the system counted until now; None where it does not count it.

    ``waited_s``: seconds in which any task of the machine was ready to run and had no core; ``stolen_s``: seconds of
    all cores that the host of a virtual machine gave to others; ``busy_s``: seconds in which the cores that this
    process may use ran anything, ``own_s``: what of it was this process, or children of it that have ended;
    ``delayed_s``: seconds in which its threads were ready to run and had no core, the sum over the threads;
    ``switches``: how often a thread of it was made to leave a core (involuntary context switches).
    """

    waited_s: float | None = None
    stolen_s: float | None = None
    busy_s: float | None = None
    own_s: float = 0.0
    delayed_s: float | None = None
    switches: int = 0

    @classmethod
    def read(cls) -> Counters:
        """Return the counters of this moment."""
        own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        used_s = own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime
        return cls(waited_for_cores_s(), stolen_s(), busy_s(), used_s, delayed_s(), own.ru_nivcsw)


def waited_for_cores_s() -> float | None:
    """Return the seconds since the system started in which a task was ready to run and had no core.

    Linux's pressure stall information. None where there is none.
    """
    try:
        first = Path("/proc/pressure/cpu").read_text().splitlines()[0]
        return int(first.rpartition("total=")[2]) / 1e6
    except (OSError, ValueError, IndexError):
        return None


def stolen_s() -> float | None:
    """Return the seconds of all cores since the system started that the host of a virtual machine gave to others."""
    try:
        fields = Path("/proc/stat").read_text().splitlines()[0].split()
        return int(fields[8]) / _TICKS
    except (OSError, ValueError, IndexError):
        return None


def busy_s() -> float | None:
    """Return the seconds since the system started in which the cores of this process ran a task or the kernel."""
    own = {f"cpu{core}" for core in os.sched_getaffinity(0)}
    try:
        lines = (line.split() for line in Path("/proc/stat").read_text().splitlines())
        # user, nice, system, idle, waiting for a disk, interrupts, soft interrupts: see proc(5)
        return sum(sum(int(line[k]) for k in (1, 2, 3, 6, 7)) for line in lines if line[0] in own) / _TICKS
    except (OSError, ValueError, IndexError):
        return None


def delayed_s() -> float | None:
    """Return the seconds in which threads of this process were ready to run and had no core."""
    found = []
    for thread in Path("/proc/self/task").glob("*/schedstat"):
        try:
            found.append(int(thread.read_text().split()[1]) / 1e9)
        except (OSError, ValueError, IndexError):  # a thread that has ended
            continue
    return sum(found) if found else None


@dataclass(frozen=True, slots=True)
class Watch:
    """The counters when a measurement on the cores of this machine began.

    ``in_child``: what is measured runs in a child process, whose own waits are not known.
    """

    start: float = field(default_factory=time.monotonic)
    before: Counters = field(default_factory=Counters.read)
    in_child: bool = False

    def disturbance(self) -> str:
        """Return what disturbed the measurement, for a person; "" where nothing did.

        That tasks waited for a core alone says nothing, for they may be this process's own threads: other programs
        must have used the cores too.
        """
        passed = max(time.monotonic() - self.start, 1e-9)
        now, before, cores = Counters.read(), self.before, os.cpu_count() or 1
        waiting = _since(now.waited_s, before.waited_s) / passed
        delayed = _since(now.delayed_s, before.delayed_s) / passed
        others = (_since(now.busy_s, before.busy_s) - (now.own_s - before.own_s)) / passed
        stolen = _since(now.stolen_s, before.stolen_s) / passed / cores
        waited = waiting > WAITING if self.in_child or now.delayed_s is None else delayed > DELAYED
        said = []
        if waited and (others > OTHERS or now.busy_s is None):
            said.append(f"other programs used {max(others, 0.0):.1f} cores")
            said.append(f"tasks waited for a core in {min(waiting, 1.0):.0%} of the time")
            said.append(f"{(now.switches - before.switches) / passed:.0f} involuntary context switches a second")
        said += [f"{min(stolen, 1.0):.0%} of the cores' time was stolen"] if stolen > STOLEN else []
        return f"{', '.join(said)}, load {os.getloadavg()[0]:.1f} on {cores} cores" if said else ""


def _since(now: float | None, before: float | None) -> float:
    return 0.0 if now is None or before is None else now - before


def times_disturbed(
    times_us: Mapping[str, Sequence[float]], screened_us: Mapping[str, float], compared: Sequence[str] = ()
) -> str:
    """Return what of the times of finals says that the machine was disturbed, for a person; "" where nothing does.

    ``times_us``: microseconds of each round by version; ``screened_us``: the median of each in the screening;
    ``compared``: the versions on which verdicts rest besides the fastest one. A machine that was slow in the screening
    and is fast now disturbs nothing.
    """
    medians = {name: median(us) for name, us in times_us.items() if us}
    slower = {name: us / screened_us[name] for name, us in medians.items() if screened_us.get(name)}
    said = []
    if slower:
        first = slower[min(slower, key=lambda name: screened_us[name])]
        usual = median(slower.values())
        if usual > SLOWER or first > APART:
            said.append(f"the versions took {times_text(max(usual, first))} times as long as in the screening")
    fastest = min(medians, key=lambda name: medians[name], default=None)
    # Of fewer runs a fifth is one run, which may be a hiccup.
    apart = [_spread(times_us[n]) for n in {fastest, *compared} if n in medians and len(times_us[n]) >= 10]
    if max(apart, default=0.0) > APART:
        said.append(
            f"the runs of one version are of two kinds, one {times_text(max(apart))} times as long as the other"
        )
    return ", ".join(said)


def _spread(times_us: Sequence[float]) -> float:
    """Return the time that a fifth of the runs exceed, over the time that a fifth do not reach."""
    low, high = np.percentile(np.asarray(times_us), (20, 80))
    return float(high / low) if low > 0 else 1.0
