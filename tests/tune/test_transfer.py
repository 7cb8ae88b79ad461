"""The best of another database in a sweep here: they are versions of it and in its finals, or it is said why not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from looptune.frontend import load
from looptune.report.transfer_table import Transfer, transfers
from looptune.runtime.outcome import CutOff, Illegal
from looptune.tune.execution.lab import SweepResult, TimeBreakdown
from looptune.tune.measure.evaluate import KernelBuilder
from looptune.tune.results import studies
from looptune.tune.session import transfer
from looptune.tune.session.finals import Finals
from looptune.tune.session.prepare import TuningRequest, prepare
from looptune.tune.store.store import Row, Store
from tests.helpers import synthetic_database
from tests.helpers.command_line import Ran, looptune

KERNEL = """
void {name}(int n, float A[n][n], float x[n], float y[n]) {{
  for (int i = 0; i < n; i++) {{
    y[i] = 0;
    for (int k = 0; k < n; k++)
      y[i] += A[i][k] * x[k];
  }}
}}
"""
SPACE = "loop k: unroll {2, 4}, jam"
LEGAL = "loop k: unroll 8\ncodelet: grid blocksize 32x4"
REFUSED = "loop 1.2: unroll 2"
"""There is no loop 1.2 unless loop 1 is distributed."""
BEST = {"f": LEGAL, "g": REFUSED}


def elsewhere(folder: Path, best: Mapping[str, str]) -> Path:
    """A GPU's sweep of each kernel, at another size."""
    for name, text in best.items():
        unit = load(folder / f"{name}.c")
        at = synthetic_database.context(unit, {"n": 4096})
        for role in ("version", "final"):
            synthetic_database.keep(folder / "gpu.sqlite", at, {"": 30.0, text: 20.0}, role, f"of {name}")
    return folder / "gpu.sqlite"


def rows(path: Path) -> dict[tuple[str, str, str], Row]:
    with Store.read(path) as store:
        return {(row.context.kernel, row.role, row.directives): row for row in store.rows()}


@dataclass(frozen=True)
class Swept:
    """Two kernels swept alone, then with a GPU's best; what there was in the database after each."""

    folder: Path
    alone: Ran
    also: Ran
    before: Mapping[tuple[str, str, str], Row]
    after: Mapping[tuple[str, str, str], Row]

    @property
    def transfers(self) -> dict[str, Transfer]:
        found = transfers(studies.read([self.folder / "gpu.sqlite", self.folder / "db.sqlite"]))
        return {t.there.context.kernel: t for t in found if t.there.context.target == "numba-cpu"}


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Swept:
    folder = tmp_path_factory.mktemp("guests")
    for name in BEST:
        (folder / f"{name}.c").write_text(KERNEL.format(name=name))
        (folder / f"{name}.pragmas").write_text(SPACE)
    elsewhere(folder, BEST)
    command = (
        "run", "f.c", "g.c", "-D", "n=24", "--target", "numba-cpu", "--sweep", "--finals-timeout", "0.1", "--db",
        "db.sqlite", "--reports", "r",
    )  # fmt: skip
    alone = looptune(*command, "--quiet", cwd=folder)
    before = rows(folder / "db.sqlite")
    also = looptune(*command, "--transfer-from", "gpu.sqlite", cwd=folder)
    return Swept(folder, alone, also, before, rows(folder / "db.sqlite"))


@pytest.mark.long
def test_a_guest_is_in_the_finals(swept: Swept) -> None:
    """In turn with the sweep's best and the default, all of one sweep; nothing that was known is measured again."""
    assert (swept.alone.code, swept.also.code) == (0, 0), swept.also.err
    assert ("f", "version", LEGAL) not in swept.before
    assert swept.after["f", "version", LEGAL].status == "timed"
    last = swept.after["f", "final", LEGAL].sweep
    finals = {
        text for (name, role, text), row in swept.after.items() if (name, role, row.sweep) == ("f", "final", last)
    }
    assert finals >= {"", LEGAL, "loop k: unroll 2, jam", "loop k: unroll 4, jam"}
    kept = {key: row for key, row in swept.before.items() if key[1] in ("version", "default")}
    assert {key: swept.after[key] for key in kept} == kept


@pytest.mark.long
def test_a_guest_can_be_measured_again(swept: Swept) -> None:
    """Its row has a command: with its directives added it measures it."""
    row = swept.after["f", "version", LEGAL]
    with Store.read(swept.folder / "db.sqlite") as store:
        assert store.commands()[row.sweep] == "looptune run f.c -D n=24 --target numba-cpu --finals-timeout 0.1"


@pytest.mark.long
def test_what_is_refused_is_said_with_its_reason(swept: Swept) -> None:
    """In the terminal, in the kernel's page and among the failures; the command succeeds."""
    row = swept.after["g", "version", REFUSED]
    assert isinstance(row.outcome, Illegal)
    reason = row.outcome.message.splitlines()[0]
    assert f"NVIDIA H200 (numba-cuda), 4096: illegal: {reason}" in swept.also.out
    assert (
        f"| NVIDIA H200 (numba-cuda), 4096 | `{REFUSED}` | illegal: {reason}"
        in (swept.folder / "r" / row.context.device.lower().replace(" ", "-") / "g.md").read_text()
    )
    assert ("g", "final", REFUSED) not in swept.after
    assert (
        reason.split("'")[0] in looptune("db", "failures", "--db", "db.sqlite", "--kernel", "g", cwd=swept.folder).out
    )


@pytest.mark.long
def test_the_report_has_what_it_costs_here(swept: Swept) -> None:
    """Of a GPU's best on a CPU, at the sizes used there; the refused one with its reason."""
    found = swept.transfers
    assert found["f"].own.place == "NVIDIA H200 (numba-cuda), 4096"
    assert (found["f"].there.context.target, found["f"].there.sizes) == ("numba-cpu", "24")
    assert found["f"].speedup is not None
    assert found["g"].cost is None
    assert found["g"].why.startswith("illegal: ")
    ran = looptune("report", "--db", "db.sqlite", "--db", "gpu.sqlite", "--reports", "r", cwd=swept.folder)
    assert ran.code == 0, ran.err
    assert "why there is none" in (swept.folder / "r" / "across" / "transfer.md").read_text()


@pytest.mark.long
def test_it_is_in_the_json(swept: Swept) -> None:
    """The command that is repeated answers from the database."""
    ran = looptune("run", "g.c", "-D", "n=24", "--target", "numba-cpu", "--sweep", "--finals-timeout", "0.1",
                   "--db", "db.sqlite", "--reports", "r", "--transfer-from", "gpu.sqlite", "--json",
                   cwd=swept.folder)  # fmt: skip
    (guest,) = json.loads(ran.out)["guests"]
    assert (guest["directives"], guest["over_tuned"]) == (REFUSED, None)
    assert guest["why"].startswith("illegal: ")
    assert rows(swept.folder / "db.sqlite").keys() == swept.after.keys()


@pytest.mark.long
def test_a_database_without_the_kernel_is_said_so(swept: Swept, tmp_path: Path) -> None:
    """Before anything is measured; and without --sweep there are no finals to take part in."""
    (tmp_path / "h.c").write_text(KERNEL.format(name="h"))
    where = swept.folder / "gpu.sqlite"
    request = TuningRequest(
        tmp_path / "h.c", defines={"n": "24"}, target="numba-cpu", transfer_from=studies.best_of_databases([where])
    )
    assert prepare(request).notes == ("--transfer-from: no h in float32: there are f float32",)
    ran = looptune("run", "h.c", "-D", "n=24", "--transfer-from", where, cwd=tmp_path)
    assert ran.code == 2
    assert "--transfer-from needs --sweep" in ran.err
    ran = looptune("run", "h.c", "-D", "n=24", "--sweep", "--transfer-from", "none.sqlite", cwd=tmp_path)
    assert ran.code == 2
    assert "no database none.sqlite" in ran.err


def test_guests_are_of_the_same_loops_and_type_from_somewhere_else(tmp_path: Path) -> None:
    """Of another device, target or sizes; not what was measured just so, nor of loops that were edited."""
    (tmp_path / "f.c").write_text(KERNEL.format(name="f"))
    unit = load(tmp_path / "f.c")
    here, gpu = synthetic_database.this_cpu(unit, {"n": 24}), synthetic_database.context(unit, {"n": 24})
    others = (here, gpu, replace(here, sizes='{"n": 32}'), replace(gpu, source_hash="edited", sizes='{"n": 5}'),
              replace(gpu, dtype="float64"), replace(gpu, kernel="g"))  # fmt: skip
    for k, at in enumerate(others):
        synthetic_database.keep(tmp_path / "db", at, {"": 30.0, LEGAL: 20.0}, "version", f"s{k}")
    request = TuningRequest(
        tmp_path / "f.c",
        defines={"n": "24"},
        target="numba-cpu",
        transfer_from=studies.best_of_databases([tmp_path / "db"]),
    )
    assert {(s.device, s.context.sizes) for s in prepare(request).transfer_sources} == {
        (here.device, '{"n": 32}'), (gpu.device, '{"n": 24}')
    }  # fmt: skip


SPENT = TimeBreakdown(0, 0, 0, 0, 0, 0, 0)


def test_what_makes_the_same_kernels_or_takes_seconds_is_no_finalist(tmp_path: Path) -> None:
    """The first has the times of its like; the second those of the screening, which is said."""
    (tmp_path / "f.c").write_text(KERNEL.format(name="f"))
    unit = load(tmp_path / "f.c")
    slow, same, new = "loop k: unroll 3", "codelet: grid blocksize 32x4", "loop k: unroll 5"
    for k, text in enumerate((slow, same, new)):
        device = (f"GPU {k}", 100, "sm_90")
        synthetic_database.keep(
            tmp_path / "db", synthetic_database.context(unit, {"n": 24}, device), {text: 20.0}, "version", f"s{k}"
        )
    request = TuningRequest(
        tmp_path / "f.c",
        defines={"n": "24"},
        target="numba-cpu",
        transfer_from=studies.best_of_databases([tmp_path / "db"]),
    )
    prepared = prepare(request)
    times = {"": 10.0, slow: 1.1 * transfer.SLOWEST_US, same: 10.0, new: 12.0}
    timed = tuple(
        Row(prepared.context, text, emitted="d" if text in ("", same) else text, status="timed",
            outcome=synthetic_database.outcome_of_rounds((us,) * 3, 3))
        for text, us in sorted(times.items(), key=lambda item: item[1])
    )  # fmt: skip
    searched = SweepResult("s", {}, timed, (), 0, False, 0.0, SPENT)
    assert transfer.finalists(prepared, searched, ("",)) == (new,)
    with Store.open(tmp_path / "own") as store:
        for row in timed:
            assert row.outcome is not None
            store.record(row, row.outcome)
        found = Finals({"": (10.0,) * 40, new: (12.0,) * 30})
        judged = {g.directives: g for g in transfer.compare_transfers(prepared, found, "", store)}
    assert judged[slow].why == "not in the finals: 5.5 s a run"
    for text, verdict in ((same, "SAME"), (new, "SLOW")):
        over = judged[text].speedup
        assert over is not None
        assert over.verdict == verdict


def test_what_was_cut_off_is_measured_whole(tmp_path: Path) -> None:
    """A sweep that has given it up does not know what it costs; nor is it known where all is to be measured again."""
    (tmp_path / "f.c").write_text(KERNEL.format(name="f"))
    unit = load(tmp_path / "f.c")
    text = "loop k: unroll 4"
    synthetic_database.keep(tmp_path / "db", synthetic_database.context(unit, {"n": 24}), {text: 20.0}, "version")
    request = TuningRequest(tmp_path / "f.c", defines={"n": "24"}, target="numba-cpu", sweep=True, finals_s=0.1,
                      transfer_from=studies.best_of_databases([tmp_path / "db"]))  # fmt: skip
    prepared = prepare(request)
    searched = SweepResult("now", dict.fromkeys(("timed",), 0), (), (), 0, False, 0.0, SPENT)
    for outcome, fresh, sweep, new in (
        (CutOff(90.0, 10.0, 1, 3, ""), False, "old", True),
        (synthetic_database.outcome_of_rounds((5.0,) * 3, 3), False, "old", False),
        (synthetic_database.outcome_of_rounds((5.0,) * 3, 3), True, "old", True),
        (synthetic_database.outcome_of_rounds((5.0,) * 3, 3), True, "now", False),
    ):
        asked = replace(prepared, request=replace(request, fresh=fresh))
        with Store.open(tmp_path / "own") as store:
            store.record(Row(prepared.context, text, sweep=sweep), outcome)
            assert transfer.unmeasured(asked, searched, store) == ([text] if new else [])


def test_a_stopped_sweep_has_no_guests(tmp_path: Path) -> None:
    """Ctrl-C is for the whole command."""
    (tmp_path / "f.c").write_text(KERNEL.format(name="f"))
    prepared = prepare(TuningRequest(tmp_path / "f.c", defines={"n": "24"}, target="numba-cpu"))
    stopped = SweepResult("s", {}, (), (), 0, True, 0.0, SPENT)
    lab = KernelBuilder(prepared.job, prepared.context)
    with Store.open(tmp_path / "own") as store:
        place: object = None
        assert transfer.measure([prepared], [lab], [stopped], store, print, place) == (stopped,)  # type: ignore[arg-type]
