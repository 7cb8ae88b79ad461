"""Finals that were disturbed: measured again, no verdict, never deployed from, measured again by the next command."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from looptune.report import best_table, result_table, suite_table
from looptune.runtime.device import Cpu
from looptune.runtime.outcome import WrongResult
from looptune.runtime.timing import without_verdict
from looptune.tune.execution.worker_loop import TaskResult
from looptune.tune.measure.finals_rounds import PAUSES_S, Finals, FinalsRequest, Times
from looptune.tune.measure.measuring_device import MeasuringDevice
from looptune.tune.measure.sequential import SequentialTimes
from looptune.tune.results.result import Sources, from_record, to_record
from looptune.tune.session import conclude, finals
from looptune.tune.session.finals import outcome_of_rounds
from looptune.tune.session.prepare import PreparedRun
from looptune.tune.store.searches import Search
from looptune.tune.store.store import Store
from tests.helpers import report_database
from tests.helpers.fake_finals import Asked, at, match

SAID = "other programs used 1.0 cores, load 9.0 on 2 cores"
UNROLL = "loop k: unroll 2"


@pytest.fixture
def prepared(tmp_path: Path) -> PreparedRun:
    return at(tmp_path, 40)


class Disturbed(Asked):
    """Finals in which every version takes a scheduler's quantum, and the default seems to win."""

    def measured(self, lab: int, lineup: FinalsRequest) -> Any:
        self.lineups.append(lineup)
        self.proved.append([])
        us = {t: tuple(16_000.0 + len(t) + k % 7 / 3 for k in range(30)) for t in lineup.finalists}
        return TaskResult(Times(us, {}, SAID))


def test_disturbed_finals_choose_nobody_and_are_made_again(prepared: PreparedRun, tmp_path: Path) -> None:
    """The best stays that of the screening and is proved; the same command measures again, and then it is kept."""
    place, quiet = Disturbed(), Asked()
    screened = {"": 6.59, UNROLL: 2.86}
    with Store.open(tmp_path / "db") as store:
        given = match(prepared, store, "", UNROLL, screened_us=screened)
        (found,) = finals.run([given], place, 1).finals
        assert found.disturbed == SAID
        assert given.best(found) == (UNROLL, ())
        assert [*found.sources] == [UNROLL]
        assert dict(place.lineups[0].screened_us) == screened
        finals.run([given], place, 1)
        assert len(place.lineups) == 2
        (found,) = finals.run([given], quiet, 1).finals
        assert found.disturbed == ""
        finals.run([given], quiet, 1)
        assert len(quiet.lineups) == 1


def test_nothing_is_deployed_from_disturbed_finals(prepared: PreparedRun, tmp_path: Path) -> None:
    """The fastest of the screening is the best, except what the finals found to be wrong."""
    with Store.open(tmp_path / "db") as store:
        report_database.fill(store)
        search = Search(report_database.GPU, tuple(store.rows()))
        assert search.best is not None
        assert search.best.is_final
        rows = [
            replace(row, outcome=replace(row.outcome, facts=(("disturbed", SAID),))) if row.role == "final" else row  # type: ignore[type-var]
            for row in search.rows
        ]
        best = replace(search, rows=tuple(rows)).best
        assert best is not None
        assert (best.directives, best.is_final, best.disturbed) == (report_database.BEST, False, SAID)
        won = [row for row in rows if (row.role, row.directives) == ("final", best.directives)]
        rows = [replace(row, outcome=WrongResult("no")) if row in won else row for row in rows]
        other = replace(search, rows=tuple(rows)).best
        assert other is not None
        assert other.directives == "loop k: unroll 4, split, guarded"


def test_original_loops_that_were_disturbed_are_timed_again(prepared: PreparedRun, tmp_path: Path) -> None:
    """Their times are shown, and neither looked up nor compared with when something is deployed."""
    with Store.open(tmp_path / "db") as store:
        given = match(prepared, store, "")
        given.keep_sequential(SequentialTimes((3.0, 3.0), SAID))
        assert given.sequential() is None
        assert Search(prepared.context, tuple(store.rows())).sequential is None
        given.keep_sequential(SequentialTimes((3.0, 3.0)))
        assert given.sequential() == SequentialTimes((3.0, 3.0))


def test_finals_are_repeated_until_the_machine_is_quiet(prepared: PreparedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three times at most, and once under a budget of seconds; times beside the screening count as much as load."""
    monkeypatch.setattr("looptune.tune.measure.finals_rounds.time.sleep", lambda seconds: None)
    said = [SAID, "", SAID, SAID, SAID]
    monkeypatch.setattr(Cpu, "watch", lambda self: said.pop)
    slow = {"": tuple([100.0] * 30)}

    def bench(**more: Any) -> MeasuringDevice:
        return MeasuringDevice(replace(prepared.job, accept_disturbed=False, **more))

    given = FinalsRequest({}, None, 0, "")
    assert Finals(bench()).undisturbed(lambda: slow, given) == (slow, SAID)
    assert len(said) == 5 - len(PAUSES_S)
    assert Finals(bench()).undisturbed(lambda: slow, given) == (slow, "")
    assert len(said) == 1
    assert Finals(bench(finals_end=True)).undisturbed(lambda: slow, given) == (slow, SAID)
    monkeypatch.setattr(Cpu, "watch", lambda self: lambda: "")
    _, found = Finals(bench()).undisturbed(lambda: slow, replace(given, screened_us={"": 10.0}))
    assert found == "the versions took 10 times as long as in the screening"
    accepted = replace(prepared.job, accept_disturbed=True)
    assert Finals(MeasuringDevice(accepted)).undisturbed(lambda: slow, replace(given, screened_us={"": 1.0})) == (
        slow,
        "",
    )


def test_every_table_says_disturbed_and_gives_no_verdict(prepared: PreparedRun, tmp_path: Path) -> None:
    """The table of the run, its record, the best, the times, and the suite."""
    with Store.open(tmp_path / "db") as store:
        given = match(prepared, store, "", UNROLL, screened_us={"": 6.59, UNROLL: 2.86})
        (found,) = finals.run([given], Disturbed(), 1).finals
    entries = conclude._entries(
        replace(prepared, request=replace(prepared.request, sweep=True)),
        found, SequentialTimes((1.0, 1.0)), "", UNROLL, {}, {}, None,
    )  # fmt: skip
    assert [str(e.speedup) for e in entries] == ["disturbed", "None", "disturbed"]
    result = report_database.result(seconds={}, disturbed=SAID)
    over_hand = without_verdict(result.over_hand)
    result = replace(result, entries=entries, directives=UNROLL, over_hand=over_hand, directive_gains=(), transfers=())
    study = replace(report_database.one(report_database.database(tmp_path / "db2")), result=result)
    texts = (
        result_table.plain(result), result_table.markdown(result), suite_table.plain([result]),
        suite_table.models_table([result]).text(), best_table.best([study]).text(), best_table.times([study]).text(),
    )  # fmt: skip
    for text in texts:
        assert "disturbed" in text.lower()
        assert not any(word in text for word in ("FAST", "SLOW", "SAME", "slower than the sequential"))
    assert suite_table.mean([result], "default", "tuned") is None
    back, _ = from_record(json.loads(json.dumps(to_record(result, Sources("", "", "")))))
    assert back == replace(result, times_us=back.times_us, interrupted=back.interrupted, transfers=back.transfers)


def test_finals_of_the_database_keep_their_disturbance() -> None:
    """A row of the finals has it as a fact, which is not there where nothing disturbed."""
    assert outcome_of_rounds((1.0, 2.0), 2, "load 9").facts == (("disturbed", "load 9"),)
    assert outcome_of_rounds((1.0, 2.0), 2).facts == ()
