"""Versions chosen by energy or EDP: more finalists, ties decided by time, and never in place of those by time."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click
import pytest

from looptune.cli.main import cli
from looptune.core.errors import UsageError
from looptune.deploy import autotune, build, compile
from looptune.deploy.best_versions import best_versions
from looptune.frontend import load
from looptune.report import best_table, result_table, suite_table
from looptune.report.site import folder
from looptune.runtime.energy import Energy, EnergyCounter, Window
from looptune.runtime.objective import Cost, saving
from looptune.runtime.outcome import Timed
from looptune.tune.execution.lab import SweepResult, TimeBreakdown
from looptune.tune.execution.worker_loop import TaskResult
from looptune.tune.measure import finals_energy
from looptune.tune.measure.finals_energy import EnergyMeter
from looptune.tune.measure.finals_rounds import FinalsRequest, Times
from looptune.tune.results import studies
from looptune.tune.session import conclude, finals
from looptune.tune.session.finals import select_finalists
from looptune.tune.session.prepare import PreparedRun
from looptune.tune.store.maintenance import PruneFilter, prune
from looptune.tune.store.searches import Search, by_context
from looptune.tune.store.store import Row, Store
from looptune.tune.store.winners import winner_by
from tests.helpers.fake_finals import Asked, at, match

if TYPE_CHECKING:
    from collections.abc import Mapping

    from looptune.core.settings import Objective
    from looptune.tune.results.result import Result

FAST, FRUGAL, BALANCED = "loop k: unroll 2", "loop k: unroll 4", "loop k: unroll 8"
US = {"": 40.0, FAST: 10.0, FRUGAL: 20.0, BALANCED: 12.0}
USED = {
    "": Energy(2.0, 100.0, 1000.0, 1.98, 2.02), FAST: Energy(1.0, 100.0, 1000.0, 0.99, 1.01),
    FRUGAL: Energy(0.5, 25.0, 1000.0, 0.495, 0.505), BALANCED: Energy(0.7, 60.0, 1000.0, 0.69, 0.71),
}  # fmt: skip
"""FAST takes least time, FRUGAL least energy, BALANCED has the least EDP."""
WON: Mapping[Objective, str] = {"time": FAST, "energy": FRUGAL, "edp": BALANCED}


def rounds(us: float) -> tuple[float, ...]:
    return tuple(us * (1 + 0.0001 * k) for k in range(30))


@dataclass(frozen=True)
class Counted(Asked):
    """Finals with times and energies that are made up."""

    us: Mapping[str, float] = field(default_factory=lambda: US)
    used: Mapping[str, Energy] = field(default_factory=lambda: USED)
    disturbed: str = ""

    def measured(self, lab: int, lineup: FinalsRequest) -> Any:
        self.lineups.append(lineup)
        self.proved.append([])
        energy = {t: e for t, e in self.used.items() if t in lineup.finalists} if lineup.energy else {}
        return TaskResult(Times({t: rounds(self.us[t]) for t in lineup.finalists}, {}, self.disturbed, energy))


@pytest.fixture
def prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PreparedRun:
    monkeypatch.setattr(conclude, "_affordable", lambda prepared: False)
    found = at(tmp_path, 40)
    request = replace(found.request, sweep=True, handwritten=False, command="looptune run f.c --sweep")
    return replace(found, request=request, job=replace(found.job, text=None))


def asking(prepared: PreparedRun, objective: Objective) -> PreparedRun:
    job = replace(prepared.job, energy=objective != "time")
    return replace(prepared, request=replace(prepared.request, objective=objective), job=job)


def screened(prepared: PreparedRun, us: Mapping[str, float] = US) -> tuple[Row, ...]:
    """Rows of a screening, the fastest first."""
    made = [
        Row(prepared.context, text, "version" if text else "default", "s", status="timed", outcome=timed(t))
        for text, t in us.items()
    ]
    return tuple(sorted(made, key=lambda row: row.median_us or 0.0))


def timed(us: float) -> Timed:
    return Timed((us,) * 5, us, us, us, "verified")


def sweep(prepared: PreparedRun, objective: Objective, store: Store, executor: Asked) -> Result:
    """What a sweep by this objective comes to."""
    rows = screened(prepared)
    for row in rows:
        if row.outcome is not None:
            store.record(row, row.outcome)
    found = SweepResult(
        f"s {objective} {len(executor.lineups)}", {"timed": 4, "wrong": 0}, rows, (), 0, False, 0.0,
        TimeBreakdown(0, 0, 0, 0, 0, 0, 0),
    )  # fmt: skip
    one = asking(prepared, objective)
    (made,) = conclude.finish([one], [match(one, store).lab], store, [found], executor)
    return made


def test_the_objective_chooses_and_never_in_place_of_another(prepared: PreparedRun, tmp_path: Path) -> None:
    """Whatever was swept first, the best by time, by energy and by EDP are each found, deployed and reported."""
    executor = Counted()
    db = tmp_path / "db"
    unit = load(prepared.request.file, defines={"n": "30", "m": "40"})
    with Store.open(db) as store:
        for objective in ("energy", "time", "edp", "time"):
            assert sweep(prepared, objective, store, executor).directives == WON[objective]
        # Those by EDP are those by energy, and the second by time are the first.
        assert [lineup.energy_decides for lineup in executor.lineups] == [True, False]
        for objective, text in WON.items():
            (row,) = best_versions(store, unit, "numba-cpu", objective=objective)
            assert (row.directives, row.final) == (text, True)
    texts = {o: build.as_python(unit, db, "numba-cpu", "c", objective=o) for o in WON}
    assert "500 mJ a run, the default 2 J, chosen for the least energy\n        loop k: unroll 4" in texts["energy"]
    assert "again: " not in texts["time"]
    assert "chosen" not in texts["time"]
    assert f"'directives': '{BALANCED}'" in texts["edp"].replace('"', "'")
    kernel = compile.compile(
        prepared.request.file, defines={"n": 30, "m": 40}, target="numba-cpu", config="best", db=db, objective="energy"
    )
    assert kernel.directives == FRUGAL
    for objective, text in WON.items():
        (study,) = studies.read([db], objective=objective)
        assert (study.result.directives, study.result.objective) == (text, objective)
        (page,) = folder.write([study], tmp_path / "reports", objective)
        assert page.page.parent.name.endswith("-" + objective) == (objective != "time")
        record = json.loads((page.page.parent / "table-best.json").read_text())[0]
        assert (record["objective"], record["directives"]) == (objective, text)


def test_without_such_finals_nothing_is_deployed(prepared: PreparedRun, tmp_path: Path) -> None:
    """A sweep by time, even with --energy, has no winner by energy, and every command says what makes one."""
    db = tmp_path / "db"
    unit = load(prepared.request.file, defines={"n": "30", "m": "40"})
    with Store.open(db) as store:
        sweep(replace(prepared, job=replace(prepared.job, energy=True)), "time", store, Counted())
    with pytest.raises(UsageError, match=r"no finals by energy .*--sweep --target numba-cpu --objective energy"):
        build.as_python(unit, db, "numba-cpu", "c", objective="energy")
    with pytest.raises(UsageError, match=r"no finals of f by edp: .*--objective edp"):
        compile.compile(prepared.request.file, target="numba-cpu", config="best", db=db, objective="edp")
    with pytest.raises(UsageError, match=r"no finals by energy in .*--objective energy"):
        studies.read([db], objective="energy")
    with pytest.raises(UsageError, match=r'needs config="best"'):
        compile.compile(prepared.request.file, objective="energy")
    with pytest.raises(UsageError, match="objective is 'power': choose time, energy, edp"):
        compile.compile(prepared.request.file, config="best", objective="power")


def test_where_no_energy_is_known_the_time_decides_and_says_so(prepared: PreparedRun, tmp_path: Path) -> None:
    """The result is one by time, which is measured again by the next command."""
    executor = Counted(used={})
    with Store.open(tmp_path / "db") as store:
        result = sweep(prepared, "energy", store, executor)
        assert (result.directives, result.objective) == (FAST, "time")
        assert "this is the fastest" in result_table.time_decided(result, "energy")
        sweep(prepared, "energy", store, executor)
        assert len(executor.lineups) == 2
        assert store.conclusions("energy") == {}
        assert len(store.conclusions()) == 1


def test_a_function_that_tunes_itself_has_an_objective(
    prepared: PreparedRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the sweep chose by it runs; where that is nothing, the fastest does, with a warning."""

    def swept(executor: Asked) -> Any:
        def run(request: PreparedRun, store: Store, *_: Any) -> Result:
            assert request.job.energy
            return sweep(replace(prepared, context=request.context), "energy", store, executor)

        monkeypatch.setattr(autotune, "run", run)
        db = tmp_path / f"db{executor.disturbed}"
        call = autotune.autotune(prepared.request.file, db=db, target="numba-cpu", objective="energy")(plain)
        return call._tuned({"n": 30, "m": 40})

    def plain(n: int, m: int, A: Any, x: Any, y: Any) -> None:
        """The body is not run."""

    assert swept(Counted()).directives == FRUGAL
    with pytest.warns(UserWarning, match="chose nothing by energy"):
        assert swept(Counted(disturbed="load 9")).directives == FAST


def test_disturbed_finals_choose_nobody(prepared: PreparedRun, tmp_path: Path) -> None:
    """By energy nothing is deployed from them, and what was chosen by time stays."""
    with Store.open(tmp_path / "db") as store:
        sweep(prepared, "time", store, Counted())
        result = sweep(prepared, "energy", store, Counted(disturbed="load 9"))
        (search,) = by_context(store.rows())
        assert (result.directives, result.objective, result.disturbed) == (FAST, "energy", "load 9")
        assert search.best_by("energy") is None
        best = search.best
        assert best is not None
        assert (best.directives, best.is_final, best.disturbed) == (FAST, True, "")
        assert "disturbed" in result_table.plain(result)
        assert not any(word in result_table.plain(result) for word in ("LESS", "chosen"))


def test_a_version_that_is_proved_wrong_does_not_win(prepared: PreparedRun, tmp_path: Path) -> None:
    """The next by energy wins."""
    with Store.open(tmp_path / "db") as store:
        result = sweep(prepared, "energy", store, Counted(wrong=(FRUGAL,)))
        (search,) = by_context(store.rows())
    assert result.directives == BALANCED
    best = search.best_by("energy")
    assert best is not None
    assert best.directives == BALANCED


def test_tables_show_what_chose_the_version(prepared: PreparedRun, tmp_path: Path) -> None:
    """Its energy or EDP beside that of the default, on the page, in the CSV, the JSON and the suite."""
    reports = tmp_path / "reports"
    with Store.open(tmp_path / "db") as store:
        found = {objective: sweep(prepared, objective, store, Counted()) for objective in WON}
    text = result_table.plain(found["energy"])
    assert "less energy" in text
    assert "4x LESS" in next(line for line in text.splitlines() if line.startswith("tuned "))
    assert "tuned: chosen for the least energy, not for the least time" in text
    text = result_table.plain(found["edp"])
    assert "8.41 uJ s  9.52x LESS" in next(line for line in text.splitlines() if line.startswith("tuned "))
    assert "80.1 uJ s  -" in next(line for line in text.splitlines() if line.startswith("default "))
    assert found["energy"].record()["saving"]["tuned"] == {"ratio": 4.0, "low": 3.9208, "high": 4.0808}
    assert "saving" in found["time"].record()
    for result in found.values():
        page = result_table.write(result, reports)
    lines = page.with_suffix(".csv").read_text().splitlines()
    assert [line.split(",")[-4:] for line in lines[1:]] == [
        ["time", "", "", ""], ["energy", "2.0", "0.5", "4.0"], ["edp", "2.0", "0.7", "9.5237"],
    ]  # fmt: skip
    result_table.write(found["energy"], reports)
    assert len(json.loads(page.with_suffix(".json").read_text())) == 3
    both = suite_table.plain([found["energy"], replace(found["energy"], kernel="g")])
    assert "least energy" in both
    assert both.count("4x") == 3
    assert suite_table.write([found["energy"]], reports, "c").name == "summary-float32-energy.md"
    study = studies.read([tmp_path / "db"], objective="edp")[0]
    assert best_table.best([study]).rows[0][-3:-1] == ("8.41 uJ s", "9.52x LESS")
    assert study.kind == "float32, least EDP"


@pytest.mark.parametrize(
    ("energy", "best", "ties"),
    [
        pytest.param({"a": 1.0, "b": 0.5, "c": 0.9}, "b", (), id="least"),
        pytest.param({"a": 0.504, "b": 0.5, "c": 0.9}, "a", (), id="alike-within-a-percent"),
        pytest.param({"b": 0.5, "c": 0.9}, "b", (), id="unknown"),
        pytest.param({"a": 0.5, "b": 0.9, "x": 0.5}, "a", ("x",), id="alike-in-both"),
    ],
)
def test_ties_in_energy_are_decided_by_time(energy: dict[str, float], best: str, ties: tuple[str, ...]) -> None:
    """A version of unknown energy cannot win; of those alike in energy and time the plainest does."""
    times = {"a": rounds(10.0), "x": rounds(10.0), "b": rounds(20.0), "c": rounds(15.0)}
    used = {text: Energy(joules, 100.0) for text, joules in energy.items()}
    assert winner_by("energy", times, used, [*times]) == (best, ties)
    assert winner_by("energy", times, {}, [*times]) is None
    assert winner_by("time", times, {}, []) is None


def test_a_spread_that_overlaps_is_a_tie() -> None:
    """What was measured several times is like all that lies within its range."""
    times = {"a": rounds(10.0), "b": rounds(20.0)}
    wide = {"a": Energy(0.6, 60.0, None, 0.54, 0.62), "b": Energy(0.5, 25.0, None, 0.48, 0.55)}
    assert winner_by("energy", times, wide, ["a", "b"]) == ("a", ())
    assert winner_by("energy", times, {**wide, "b": Energy(0.5, 25.0, None, 0.48, 0.52)}, ["a", "b"]) == ("b", ())
    assert str(saving(Cost(2.0, 1.9, 2.1), Cost(1.0, 0.95, 1.05))) == "2x FAST"


def test_slower_versions_take_part_where_energy_decides(prepared: PreparedRun) -> None:
    """From all over those within half as long again; fewer where each takes long, so that finals end."""
    us = {f"loop k: unroll {k}": 101.0 + k for k in range(400)}
    rows = screened(prepared, us)
    plain, more = select_finalists(rows), select_finalists(rows, "energy")
    assert (len(plain), len(more)) == (11, 11 + finals.ALSO)
    assert more[: len(plain)] == plain
    assert len({*more}) == len(more)
    assert max(us[text] for text in more) > 140
    assert max(us[text] for text in more) <= finals.WIDER * 101
    assert len(plain) < len(select_finalists(rows, "energy", 7.5)) < len(plain) + finals.ALSO / 2
    slow = screened(prepared, {text: 1e5 * t for text, t in us.items()})
    assert len(select_finalists(slow, "edp")) < len(plain) + 3
    few = screened(prepared, {"loop k: unroll 2": 10.0})
    assert select_finalists(few, "edp") == ("loop k: unroll 2",)
    assert select_finalists((), "energy") == ()


def test_all_energies_are_measured_and_those_near_the_best_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of versions that left the rounds early as well; the least and the most of the windows are the spread."""
    asked: list[str] = []
    joules = {"slow": 0.5, "fast": 0.52, "far": 5.0, "default": 9.0}

    def window(counter: object, repeat: Any, **_: Any) -> Window:
        name = repeat
        asked.append(name)
        return Window(joules.get(name, 0.0) * (1 + 0.01 * asked.count(name)), 1e-5, None)

    monkeypatch.setattr(finals_energy, "measure_window", window)
    monkeypatch.setattr(
        finals_energy, "energy_of_run", lambda whole, restoring, us: Energy(round(whole.joules, 4), 100.0)
    )
    machine: Any = SimpleNamespace(repeater=lambda run, pairs: run or "restoring")
    runs: Any = {name: name for name in joules}
    medians = dict.fromkeys(joules, 10.0) | {"slow": 30.0}
    found = EnergyMeter(machine, EnergyCounter(lambda: (0.0,)), {"x": (0, 0)}).of_all(
        runs, medians, ["fast", "default"], 0
    )
    counts = {name: asked.count(name) for name in joules}
    assert counts == {"slow": 3, "fast": 3, "far": 1, "default": 3}
    assert asked.count("restoring") == 3
    assert found["slow"] == Energy(0.51, 100.0, None, 0.505, 0.515)
    assert found["far"] == Energy(5.05, 100.0)


def test_the_newest_sound_finals_decide_by_time(prepared: PreparedRun, tmp_path: Path) -> None:
    """Finals by energy have times like any: they say which is the fastest where they are newer, or the only ones."""
    with Store.open(tmp_path / "db") as store:
        sweep(prepared, "energy", store, Counted())
        best = Search(prepared.context, tuple(store.rows())).best
    assert best is not None
    assert (best.directives, best.is_final) == (FAST, True)


def test_pruning_knows_both_results(prepared: PreparedRun, tmp_path: Path) -> None:
    """Finalists by energy stay where versions of the screening go, and no result stays without its rows."""
    with Store.open(tmp_path / "db") as store:
        sweep(prepared, "energy", store, Counted())
        assert prune(store, PruneFilter(screened=True)) == {}
        sweep(prepared, "time", store, Counted())
        assert (len(store.conclusions()), len(store.conclusions("energy"))) == (1, 1)
        prune(store, PruneFilter(kernel="f"))
        assert (store.conclusions(), store.conclusions("energy")) == ({}, {})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--objective", "energy"], "--objective needs --sweep"),
        (["--objective", "edp", "--sweep", "--ablation"], "leave out --objective"),
        (["--objective", "edp", "--sweep", "--whole"], "the fastest versions: leave out --objective"),
        (["--objective", "power"], "'power' is not one of 'time', 'energy', 'edp'"),
    ],
)
def test_what_the_objective_does_not_go_with(
    options: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is refused with what would be right."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f.c").write_text("void f(int n, float *x) { for (int i = 0; i < n; i++) x[i] = 0; }\n")
    with pytest.raises((UsageError, click.UsageError), match=said):
        cli.main(["run", "f.c", *options], standalone_mode=False)
