"""The energies of the finals fit into a budget of time: on a GPU that is made up, by a clock that is made up."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from looptune.report import result_table
from looptune.runtime import nvml
from looptune.runtime.energy import SECONDS, Energy
from looptune.tune.measure.finals_energy import LEAST_S, WINDOWS, EnergyMeter
from looptune.tune.measure.finals_rounds import Finals, FinalsRequest
from looptune.tune.session.budget import energy_seconds, search_budget
from tests.helpers import report_database
from tests.helpers.fake_nvml import Nvml

if TYPE_CHECKING:
    from collections.abc import Callable

    from looptune.runtime.energy import EnergyCounter

READING_S, RESTORE_S, UPDATE_S = 2e-4, 1e-5, 0.1
"""Seconds of one question to NVML, of restoring the arrays once, and between two updates of the counter."""


@dataclass
class Board(Nvml):
    """A GPU of 100 W at rest, on which a run is its seconds and its watts; ``now`` is the time."""

    now: float = 0.03
    used_mj: float = 0.0
    windows: int = 0
    pairs: dict[str, Any] = field(default_factory=lambda: {"x": (0, 0)})

    def __post_init__(self) -> None:
        super().__init__()

    def spend(self, seconds: float, watts: float) -> None:
        self.used_mj += 1e3 * seconds * watts
        if int((self.now + seconds) / UPDATE_S) > int(self.now / UPDATE_S):
            self.millijoules = round(self.used_mj)
        self.now += seconds

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: str) -> int:
        self.spend(READING_S, 100.0)
        return super().nvmlDeviceGetTotalEnergyConsumption(handle)

    def repeater(self, run: Any, pairs: Any) -> Callable[[int], None]:
        self.windows += 1
        seconds, watts = (0.0, 0.0) if run is None else run

        def repeat(times: int) -> None:
            self.spend(times * seconds, watts)
            self.spend(times * RESTORE_S, 200.0)

        return repeat

    def counter(self) -> EnergyCounter:
        found = nvml.gpu("GPU-1")
        assert found is not None
        return found.energy_counter()


@pytest.fixture
def board(monkeypatch: pytest.MonkeyPatch) -> Board:
    made = Board()
    monkeypatch.setattr(nvml, "pynvml", made)
    return made


def versions(board: Board, count: int, run_s: float) -> tuple[dict[str, Any], dict[str, float]]:
    """So many versions, the first the fastest, and the times that the finals gave them."""
    runs = {f"version {k}": (run_s * (1 + k / 40), 700.0 - 8 * k) for k in range(count)}
    return runs, {name: 1e6 * seconds for name, (seconds, _) in runs.items()}


@pytest.mark.parametrize("deciding", [False, True])
@pytest.mark.parametrize("run_s", [2e-5, 3e-3, 0.2])
@pytest.mark.parametrize(("limit_s", "count"), [(1.7, 3), (5.0, 7), (7.5, 12), (15.0, 22)])
def test_all_energies_fit_into_the_time_for_them(
    limit_s: float, count: int, run_s: float, deciding: bool, board: Board
) -> None:
    """The last window has ended by then, what is told is right within a tenth, and says that its window was short."""
    runs, medians = versions(board, count, run_s)
    start = board.now
    meter = EnergyMeter(board, board.counter(), board.pairs, limit_s, lambda: board.now)  # type: ignore[arg-type]
    found = meter.of_all(runs, medians, [], 0) if deciding else meter.of_each(runs, medians)
    assert board.now - start <= 1.02 * limit_s
    assert len(found) >= (count if run_s < 0.1 else 1)
    for name, energy in found.items():
        seconds, watts = runs[name]
        assert energy.joules == pytest.approx(seconds * watts, rel=0.1)
        assert LEAST_S <= (energy.window_s or SECONDS) <= SECONDS
    assert all(energy.window_s is not None for energy in found.values())


def test_without_a_budget_windows_are_whole(board: Board) -> None:
    """One of a second for each version, and one of restoring; where energy decides, three of the best."""
    runs, medians = versions(board, 4, 1e-3)
    meter = EnergyMeter(board, board.counter(), board.pairs, clock=lambda: board.now)  # type: ignore[arg-type]
    found = meter.of_each(runs, medians)
    assert [energy.window_s for energy in found.values()] == [None] * 4
    assert board.windows == 5
    meter.of_all(runs, medians, [*runs], 0)
    assert board.windows == 5 + WINDOWS * 5


def test_nothing_is_told_without_the_time_of_a_window(board: Board) -> None:
    """A version that is too slow is left out, the others are not; what restoring uses has to be known."""
    runs, medians = versions(board, 3, 1e-3)
    runs["version 0"], medians["version 0"] = (2.0, 700.0), 2e6
    meter = EnergyMeter(board, board.counter(), board.pairs, 3.0, lambda: board.now)  # type: ignore[arg-type]
    assert meter.of_each(runs, medians).keys() == {"version 1", "version 2"}
    meter = EnergyMeter(board, board.counter(), board.pairs, 0.3, lambda: board.now)  # type: ignore[arg-type]
    assert meter.of_each(runs, medians) == {}


@pytest.mark.parametrize("deciding", [False, True])
@pytest.mark.parametrize("rounds_s", [0.5, 5.0, 9.0])
def test_the_finals_give_energies_what_the_budget_set_apart(rounds_s: float, deciding: bool, board: Board) -> None:
    """With what the rounds have left of their time, or without what they took too long, but never less than half."""
    energy_s = energy_seconds(30.0, "energy" if deciding else "time")
    job = SimpleNamespace(energy_s=energy_s, finals_s=5.0)
    device: Any = SimpleNamespace(job=job, counter=board.counter(), machine=board, pairs=lambda: board.pairs)
    runs, medians = versions(board, 7, 1e-3)
    lineup = FinalsRequest({}, None, 0, "version 6", energy=True, energy_decides=deciding)
    start = board.now
    found = Finals(device, lambda: board.now).energy(lineup, runs, medians, {*runs}, rounds_s)
    assert found.keys() == runs.keys() or rounds_s > 5.0
    assert "version 6" in found
    assert board.now - start <= max(energy_s / 2, energy_s + 5.0 - rounds_s)


def test_a_budget_is_for_the_energies_too() -> None:
    """The search ends so much sooner, and with few seconds few slower versions take part."""
    usual = search_budget(30.0, 5.0, 5.0)
    for objective in ("time", "energy"):
        energy_s = energy_seconds(30.0, objective)  # type: ignore[arg-type]
        made = search_budget(30.0, 5.0, 5.0, energy_s)
        assert usual.seconds is not None
        assert made.seconds == usual.seconds - energy_s


def test_tables_say_that_windows_were_short() -> None:
    """In the table and on the page of the run; without a budget nothing is said."""
    bare = report_database.result(seconds={})
    entries = [replace(e, energy=Energy(0.5, 250.0, window_s=0.32)) for e in bare.entries]
    said = "energy: measured in windows of 0.32 s instead of 1 s, for the budget of time"
    short = replace(bare, entries=tuple(entries))
    assert said in result_table.plain(short).splitlines()
    assert said.replace("e", "E", 1) in result_table.markdown(short)
    whole = replace(bare, entries=tuple(replace(e, energy=Energy(0.5, 250.0)) for e in entries))
    assert "windows" not in result_table.plain(whole)
