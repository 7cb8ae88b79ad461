"""What the finals measure of energy is kept, shown in every table, and measured where it is missing."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from looptune.core.errors import TargetError
from looptune.report import best_table, result_table
from looptune.runtime.device import Cpu
from looptune.runtime.energy import Energy, EnergyCounter, measure_window
from looptune.tune.measure import finals_energy, finals_rounds
from looptune.tune.measure.finals_rounds import Finals, FinalsRequest, Times
from looptune.tune.measure.measuring_device import MeasuringDevice
from looptune.tune.measure.sequential import SequentialTimes
from looptune.tune.results import studies
from looptune.tune.results.result import Sources, from_record, to_record
from looptune.tune.session import conclude, finals
from looptune.tune.session.prepare import PreparedRun
from looptune.tune.store.searches import by_context
from looptune.tune.store.store import Store
from tests.helpers import report_database
from tests.helpers.fake_finals import Asked, at, match

UNROLL = "loop k: unroll 2"
USED = {"": Energy(0.5, 250.0, 1980.0), UNROLL: Energy(0.0123, 410.0)}


@pytest.fixture
def prepared(tmp_path: Path) -> PreparedRun:
    found = at(tmp_path, 40)
    return replace(found, job=replace(found.job, energy=True))


@dataclass(frozen=True)
class Counted(Asked):
    """Finals that measure the energy of their versions where they are asked to."""

    def measured(self, lab: int, lineup: FinalsRequest) -> Any:
        replied = super().measured(lab, lineup)
        times = {text: (10.0 + len(text),) * 5 for text in lineup.finalists}
        energy = {text: USED[text] for text in times} if lineup.energy else {}
        return replace(replied, value=Times(times, energy=energy))


def test_a_device_without_a_counter_is_refused(prepared: PreparedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is measured, with what is needed; where energy is not asked for, it is not looked for."""
    monkeypatch.setattr(Cpu, "energy_counter", lambda self: None)
    with pytest.raises(TargetError, match=r"--energy and --objective: .* no energy counter .*intel-rapl"):
        MeasuringDevice(prepared.job)
    MeasuringDevice(replace(prepared.job, energy=False))


def test_the_finals_measure_the_energy_of_what_is_shown(prepared: PreparedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of versions and hand-written kernels; not where nobody asks, nor of versions that left early."""
    joules = iter(range(10**9))
    monkeypatch.setattr(Cpu, "energy_counter", lambda self: EnergyCounter(lambda: (float(next(joules)),)))
    monkeypatch.setattr(
        finals_energy, "measure_window", lambda counter, repeat, **_: measure_window(counter, repeat, seconds=0.0)
    )
    monkeypatch.setattr(
        finals_energy, "energy_of_run", lambda whole, restoring, us: Energy(whole.joules, restoring.joules)
    )
    monkeypatch.setattr(
        finals_rounds, "finals", lambda samplers, *_, **__: {n: (3.0,) * (5 - (n == UNROLL)) for n in samplers}
    )
    build = finals.finals_worker(prepared.job, prepared.context)
    binaries: Any = {text: build("build", text) for text in ("", UNROLL)}
    path = prepared.request.file.with_name("by_hand.py")
    path.write_text("def library_cpu(dtype):\n    def f(n, m, A, x, y):\n        y += A @ x\n    return f\n")
    bench = MeasuringDevice(prepared.job)
    found = Finals(bench).run(FinalsRequest(binaries, path, 0, "", energy=True))
    assert found.us.keys() == {"", UNROLL, "library"}
    assert found.energy.keys() == {"", "library"}
    assert found.energy[""].joules > 0
    assert Finals(bench).run(FinalsRequest(binaries, path, 0, "")).energy == {}


def test_finals_without_the_energy_that_is_asked_for_are_made_again(prepared: PreparedRun, tmp_path: Path) -> None:
    """Those with it answer a command with or without; the finals of an ablation measure none."""
    plain, executor = replace(prepared, job=replace(prepared.job, energy=False)), Counted()
    with Store.open(tmp_path / "db") as store:
        (found,) = finals.run([match(plain, store, "", UNROLL)], executor, 1).finals
        assert (found.energy, len(executor.lineups)) == ({}, 1)
        (found,) = finals.run([match(prepared, store, "", UNROLL)], executor, 1).finals
        assert (found.energy, len(executor.lineups)) == (USED, 2)
        for one in (prepared, plain):
            (found,) = finals.run([match(one, store, "", UNROLL)], executor, 1).finals
            assert (found.energy, len(executor.lineups)) == (USED, 2)
        finals.run([match(prepared, store, "", UNROLL, role="ablation")], executor, 1)
        assert not executor.lineups[-1].energy


def test_tables_have_columns_of_energy_power_and_clock(prepared: PreparedRun, tmp_path: Path) -> None:
    """The table of a run, its page, its record, and the best of a report; without a measurement none has them."""
    with Store.open(tmp_path / "db") as store:
        (found,) = finals.run([match(prepared, store, "", UNROLL)], Counted(), 1).finals
        (search,) = by_context(store.rows())
    swept = replace(prepared, request=replace(prepared.request, sweep=True))
    entries = conclude._entries(swept, found, SequentialTimes((1.0,)), "", UNROLL, {}, {}, None)
    bare = report_database.result(seconds={})
    result = replace(bare, entries=entries, directives=UNROLL)
    kept, _ = from_record(to_record(result, Sources("", "", "")))
    assert kept.entries == entries
    assert result.record()["energy"] == {
        "default": {"joules": 0.5, "watts": 250.0, "mhz": 1980.0, "low": None, "high": None, "window_s": None},
        "tuned": {"joules": 0.0123, "watts": 410.0, "mhz": None, "low": None, "high": None, "window_s": None},
    }
    assert result_table.energy_missing(result) == ""
    assert result_table.energy_missing(bare).startswith("gemm: no energy of default, hand-written, tuned: ")
    lines = result_table.plain(result).splitlines()
    (heading,) = (line for line in lines if line.startswith("version"))
    assert heading.split()[-5:] == ["default", "energy", "power", "clock", "verified"]
    assert "500 mJ   250 W  1,980 MHz" in next(line for line in lines if line.startswith("default"))
    assert "12.3 mJ  410 W  -" in next(line for line in lines if line.startswith("tuned"))
    assert "| energy | power | clock |" in result_table.markdown(result)
    study = replace(report_database.one(report_database.database(tmp_path / "db2")), result=result)
    other = replace(study, result=bare)
    rows = best_table.best([study, other]).rows
    assert [row[-4:-1] for row in rows] == [("12.3 mJ", "410 W", "-"), ("-", "-", "-")]
    assert best_table.record(study)["energy"] == asdict(USED[UNROLL])
    for text in (result_table.plain(bare), result_table.markdown(bare), best_table.best([other]).text()):
        assert "power" not in text
    assert [e.energy for e in studies._entries(search)[2]] == [USED[""]]
