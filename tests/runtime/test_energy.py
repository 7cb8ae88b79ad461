"""The energy of one run is told from counters that are updated seldom, wrap around, or cannot be read."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from looptune.runtime import nvml, targets
from looptune.runtime.device import Cpu
from looptune.runtime.energy import (
    Energy,
    EnergyCounter,
    Window,
    energy_of_run,
    from_facts,
    measure_window,
    rapl,
    to_facts,
)
from tests.helpers.fake_nvml import Nvml


@dataclass
class Machine:
    """A device of 200 W at rest and 700 W while it runs; its counter is updated every ``update_s`` seconds."""

    run_s: float
    update_s: float = 0.1
    now: float = 0.03
    joules: float = 0.0
    seen: float = 0.0

    def spend(self, seconds: float, watts: float) -> None:
        self.joules += seconds * watts
        if int((self.now + seconds) / self.update_s) > int(self.now / self.update_s):
            self.seen = self.joules
        self.now += seconds

    def repeat(self, times: int) -> None:
        self.spend(times * self.run_s, 700.0)

    def window(self) -> Window | None:
        counter = EnergyCounter(lambda: (self.seen,), mhz=lambda: 1980)
        return measure_window(counter, self.repeat, clock=lambda: self.now)


@pytest.mark.parametrize("run_s", [2e-6, 3e-3, 0.04, 7.0])
def test_a_counter_that_is_updated_seldom_tells_the_energy_of_a_run(run_s: float) -> None:
    """Windows begin and end with an update, so that the rest of an interval is not missing: 2 %, 10 % of long runs."""
    found = Machine(run_s).window()
    assert found is not None
    assert found.joules == pytest.approx(700.0 * run_s, rel=0.02 if run_s < 0.01 else 0.1)
    assert found.seconds == pytest.approx(run_s)
    assert found.mhz == 1980


@pytest.mark.parametrize("reading_s", [0.0, 0.004])
def test_a_device_seldom_waits_for_a_reading(reading_s: float) -> None:
    """A counter that is slow to read is read seldom, and a first run that took long decides nothing."""
    machine, batches = Machine(5e-6), list[int]()

    def repeat(times: int) -> None:
        batches.append(times)
        machine.spend(0.05 if len(batches) == 1 else 0.0, 200.0)
        machine.repeat(times)

    def read() -> tuple[float, ...]:
        machine.spend(reading_s, 200.0)
        return (machine.seen,)

    found = measure_window(EnergyCounter(read), repeat, clock=lambda: machine.now)
    assert found is not None
    assert batches[-1] * 5e-6 >= max(0.01, 20 * reading_s)
    assert found.joules == pytest.approx(700.0 * 5e-6, rel=0.1)


def test_a_counter_that_stands_still_tells_nothing() -> None:
    """Neither does one that can suddenly not be read; both end."""
    found = Machine(1e-3, update_s=1e9).window()
    assert found is not None
    assert energy_of_run(found, None, 1e9) is None
    machine = Machine(1e-3)
    assert measure_window(EnergyCounter(lambda: None), machine.repeat, clock=lambda: machine.now) is None
    assert energy_of_run(None, None, 1e9) is None


def test_restoring_the_arrays_is_no_part_of_a_run() -> None:
    """What restoring alone uses is subtracted; where restoring is nearly all, the difference says nothing."""
    whole, restoring = Window(0.5, 1e-3, 1755.0), Window(0.1, 5e-4, 1980.0)
    assert energy_of_run(whole, restoring, 450.0) == Energy(0.4, 800.0, 1755.0)
    assert energy_of_run(whole, None, 900.0) == Energy(0.5, 500.0, 1755.0)
    assert energy_of_run(whole, Window(0.45, 9.5e-4, None), 50.0) is None
    assert energy_of_run(whole, Window(0.6, 5e-4, None), 450.0) is None


def test_runs_that_were_disturbed_have_no_energy() -> None:
    """Their mean is over runs that took much longer than those whose median is shown beside it."""
    assert energy_of_run(Window(0.5, 15e-3, None), None, 251.0) is None


def zone(folder: Path, number: int, name: str, microjoules: int) -> Path:
    made = folder / f"intel-rapl:{number}"
    made.mkdir(parents=True)
    (made / "name").write_text(f"{name}\n")
    (made / "energy_uj").write_text(f"{microjoules}\n")
    (made / "max_energy_range_uj").write_text("262143328850\n")
    return made


def test_processors_count_their_energy(tmp_path: Path) -> None:
    """The packages of RAPL are added, each of which begins again at zero; "psys" contains them, and counts not."""
    assert rapl(tmp_path) is None
    first = zone(tmp_path, 0, "package-0", 262_143_000_000)
    zone(tmp_path, 1, "package-1", 5_000_000)
    zone(tmp_path, 2, "psys", 7)
    speed = tmp_path / "cpu" / "cpu0" / "cpufreq" / "scaling_cur_freq"
    speed.parent.mkdir(parents=True)
    speed.write_text("2900000\n")
    counter = rapl(tmp_path, tmp_path / "cpu")
    assert counter is not None
    assert counter.mhz() == 2900
    before = counter.read()
    assert before == (262_143.0, 5.0)
    (first / "energy_uj").write_text("1671150\n")
    after = counter.read()
    assert after is not None
    assert counter.between(before, after) == pytest.approx(2.0)
    (first / "energy_uj").write_text("")
    assert counter.read() is None
    assert rapl(tmp_path) is None


def test_a_gpu_counts_its_energy(monkeypatch: pytest.MonkeyPatch) -> None:
    """NVML's counter with the clock; a GPU that counts none has no counter."""
    fake = Nvml()
    monkeypatch.setattr(nvml, "pynvml", fake)
    own = nvml.gpu("GPU-1")
    assert own is not None
    counter = own.energy_counter()
    assert counter is not None
    assert (counter.read(), counter.mhz()) == ((7.0,), 1980)
    fake.counts_energy = False
    assert counter.read() is None
    assert own.energy_counter() is None


def test_a_repeater_restores_before_each_run() -> None:
    """Without a run it restores alone."""
    done: list[str] = []
    machine = Cpu()
    machine.copy = lambda source, target: done.append(f"{source} to {target}")  # type: ignore[method-assign, assignment]
    machine.repeater(lambda stream: done.append("run"), {"x": ("there", "here")})(2)
    assert done == ["here to there", "run"] * 2
    done.clear()
    machine.repeater(None, {"x": ("there", "here")})(1)
    assert done == ["here to there"]


@pytest.mark.parametrize("energy", [Energy(0.5, 250.0), Energy(0.5, 250.0, 1980.0), None])
def test_a_database_keeps_the_energy(energy: Energy | None) -> None:
    """As facts of a row, of which others and unreadable ones are none."""
    assert from_facts((("registers", 40), *to_facts(energy))) == energy
    assert from_facts((("energy_j", "much"), ("power_w", 3.0))) is None


@pytest.mark.skipif(not targets.cuda_installed(), reason="needs the package numba-cuda")
def test_a_gpu_repeats_a_graph_of_restoring_and_running(monkeypatch: pytest.MonkeyPatch) -> None:
    """The graph is made once and launched without waiting for the run before; the end is waited for."""
    cuda_device = importlib.import_module("looptune.runtime.cuda_device")
    done: list[str] = []

    class Graph:
        def __init__(self, stream: str, action: Callable[[str], None], owner: object) -> None:
            action(stream)
            done.append("made")

        def launch(self, stream: str) -> None:
            done.append(f"launch on {stream}")

    monkeypatch.setattr(cuda_device, "Graph", Graph)
    monkeypatch.setattr(cuda_device, "check", lambda status: None)
    monkeypatch.setattr(cuda_device.driver, "cuStreamSynchronize", lambda stream: done.append(f"wait for {stream}"))
    machine = object.__new__(cuda_device.Gpu)
    machine.stream = "s"
    machine.copy = lambda source, target: done.append(f"{source} to {target}")
    repeat = machine.repeater(lambda stream: done.append(f"run on {stream}"), {"x": ("there", "here")})
    assert done == ["here to there", "run on s", "made"]
    done.clear()
    repeat(2)
    assert done == ["launch on s", "launch on s", "wait for s"]
