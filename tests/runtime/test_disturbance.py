"""What disturbs a measurement is seen: other programs, a slow GPU, and times that cannot be of a quiet machine."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import time
from dataclasses import replace
from typing import Any

import pytest

from looptune.runtime import nvml
from looptune.runtime.device import BATCH, Cpu
from looptune.runtime.disturbance import Counters, Watch, times_disturbed
from looptune.runtime.timing import Speedup, paired_speedup, without_verdict
from tests.helpers.fake_nvml import Nvml

QUIET = Counters(waited_s=7.0, stolen_s=9.0, busy_s=50.0, own_s=20.0, delayed_s=1.0, switches=100)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, ""),
        ({"own_s": 20.0, "busy_s": 20.0}, ""),
        ({"waited_s": 9.0, "delayed_s": 9.0, "own_s": 20.0, "busy_s": 20.0}, ""),
        ({"busy_s": 9.0}, ""),
        ({"busy_s": 9.0, "waited_s": 5.0, "delayed_s": 8.0, "switches": 2700}, "other programs used 0.9 cores"),
        ({"busy_s": 9.0, "waited_s": 5.0, "delayed_s": 8.0}, "tasks waited for a core in 50% of the time"),
        ({"busy_s": 9.0, "waited_s": 5.0, "delayed_s": 8.0, "switches": 2700}, "270 involuntary context switches"),
        ({"stolen_s": 80.0}, "of the cores' time was stolen"),
    ],
    ids=["nothing", "its own threads", "its own threads wait", "free cores", "others", "waits", "switches", "stolen"],
)
def test_a_disturbance_is_said(monkeypatch: pytest.MonkeyPatch, more: dict[str, Any], said: str) -> None:
    """Only others that take cores disturb: threads of this process that wait for each other are its own."""
    now = replace(QUIET, **{name: getattr(QUIET, name) + value for name, value in more.items()})
    monkeypatch.setattr(time, "monotonic", lambda: 110.0)
    monkeypatch.setattr(Counters, "read", lambda: now)
    found = Watch(100.0, QUIET).disturbance()
    assert said in found
    assert ("load" in found) == bool(said)


def test_of_a_child_the_waits_of_the_machine_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """What runs in a child process is disturbed although this process waits for no core."""
    now = replace(QUIET, busy_s=59.0, waited_s=12.0)
    monkeypatch.setattr(time, "monotonic", lambda: 110.0)
    monkeypatch.setattr(Counters, "read", lambda: now)
    assert Watch(100.0, QUIET).disturbance() == ""
    assert "other programs" in Watch(100.0, QUIET, in_child=True).disturbance()


def test_counters_that_are_missing_say_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system without them is not called disturbed."""
    monkeypatch.setattr(Counters, "read", Counters)
    assert Watch(before=Counters()).disturbance() == ""


@pytest.mark.wide
def test_two_programs_on_each_core_are_seen() -> None:
    """Programs that compute on every core disturb one that computes."""
    busy = "import os, time\nend = time.monotonic() + 5\nwhile time.monotonic() < end: pass"
    cores = len(os.sched_getaffinity(0))
    others = [subprocess.Popen([sys.executable, "-c", busy]) for _ in range(2 * cores)]
    try:
        time.sleep(0.2)
        watch, end = Watch(), time.monotonic() + 1.0
        while time.monotonic() < end:
            sum(range(10_000))
        assert "other programs used" in watch.disturbance()
    finally:
        for other in others:
            other.kill()
            other.wait()


STEADY = tuple(100.0 + k % 3 for k in range(30))
QUANTUM = tuple(16_000.0 + k % 3 for k in range(30))


@pytest.mark.parametrize(
    ("times", "screened", "said"),
    [
        ({"": STEADY, "b": STEADY}, {"": 100.0, "b": 90.0}, ""),
        ({"": STEADY, "b": STEADY}, {"": 300.0, "b": 290.0}, ""),
        ({"": STEADY, "b": STEADY}, {}, ""),
        ({"": QUANTUM, "b": QUANTUM}, {"": 6.59, "b": 2.86}, "5,595 times as long as in the screening"),
        ({"": QUANTUM, "b": STEADY}, {"": 200.0, "b": 95.0}, "times as long as in the screening"),
        ({"": STEADY, "b": QUANTUM}, {"": 100.0, "b": 90.0}, "178 times as long as in the screening"),
        ({"": (*STEADY, *QUANTUM), "b": STEADY}, {}, "of two kinds"),
        ({"": STEADY, "b": STEADY, "slow": (*STEADY, *QUANTUM)}, {}, ""),
        ({"": (100.0, 900.0), "b": STEADY}, {}, ""),
    ],
)
def test_times_say_that_a_machine_was_disturbed(
    times: dict[str, tuple[float, ...]], screened: dict[str, float], said: str
) -> None:
    """Finals that are slower than the screening, and runs of two kinds of a version that matters."""
    found = times_disturbed(times, screened, ("",))
    assert said in found
    assert bool(found) == bool(said)


def test_a_disturbed_speedup_has_no_verdict() -> None:
    """Its text is "disturbed", with no number that could be quoted."""
    found = without_verdict(paired_speedup(QUANTUM, STEADY, 0))
    assert found is not None
    assert str(found) == "disturbed"
    assert str(Speedup(1834.2, 1800.0, 1900.0, "FAST")) == "1,834x FAST"
    assert without_verdict(None) is None


def test_a_short_kernel_is_timed_in_batches() -> None:
    """One sample of a run of a microsecond is a median: a run that lost its core does not decide; a long run is one."""
    machine = Cpu()
    runs: list[int] = []

    def sampled(us: float, hiccup: float) -> float:
        taken = itertools.count()
        machine.time_once = lambda run: hiccup if next(taken) % 4 == 2 else us  # type: ignore[method-assign]
        runs.clear()
        return machine.sampler(lambda stream: runs.append(1), {})()

    assert sampled(3.0, 16_000.0) == 3.0
    machine.needs_warm_up = lambda run: False  # type: ignore[method-assign]
    assert sampled(3.0, 16_000.0) == 3.0
    assert sampled(30_000.0, 30_000.0) == 30_000.0
    calls = itertools.count()
    machine.time_once = lambda run: float(next(calls) >= 0)  # type: ignore[method-assign]
    machine.sampler(lambda stream: None, {})()
    assert next(calls) == 1 + BATCH


def test_a_gpu_that_heat_slows_down_is_disturbed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lowered clocks are said with the clock; that a kernel draws all the power that is allowed disturbs nothing."""
    fake = Nvml()
    monkeypatch.setattr(nvml, "pynvml", fake)
    own = nvml.gpu("GPU-1")
    assert own is not None
    assert nvml.gpu("GPU-2") is None
    assert own.energy_j() == 7.0
    watch = nvml.GpuWatch.begin(own)
    assert watch.disturbance() == ""
    fake.reasons = 0x44
    assert watch.disturbance() == "the clocks are lowered because of heat, now 1980 MHz"
    fake.lowered_ns, fake.mhz = 15_000_000_000, 1200
    assert "heat lowered the clocks in 100% of the time, now 1200 MHz" in watch.disturbance()
    monkeypatch.setattr(nvml, "pynvml", None)
    assert nvml.gpu("GPU-1") is None
