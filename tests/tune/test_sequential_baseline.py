"""One core is always in the comparison: what is slower than the sequential loops says so, and need not be shipped."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from looptune.deploy import build
from looptune.frontend import load
from looptune.ir.nodes import Loop
from looptune.ir.rewrite import walk
from looptune.report import result_table
from looptune.runtime.outcome import Timed
from looptune.runtime.timing import Summary
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from looptune.tune.measure.sequential import version
from looptune.tune.results.result import Entry
from looptune.tune.store.store import Row, Store
from tests.helpers import report_database, synthetic_database
from tests.helpers.built_modules import imported

STEP = """void step(int n, double a[n][n], double s) {
  for (int k = 0; k < n; k++)
    for (int i = k + 1; i < n; i++)
      for (int j = k + 1; j < n; j++) a[i][j] -= a[i][k] * a[k][j] * s;
}
"""


def modes(text: str, lines: tuple[str, ...]) -> set[str]:
    codelet = schedule(Analysis(load(text).codelet), parse_lines(lines, "configuration")).codelet
    return {loop.mode for loop in walk(codelet.body) if isinstance(loop, Loop)}


def test_a_version_has_no_threads(tmp_path: Path) -> None:
    """The sequential version is a configuration like any other, which can be built and shipped."""
    analysis = Analysis(load(STEP).codelet)
    assert "parallel" in modes(STEP, ())
    (alone,) = version(analysis, (), {"n": 8, "s": 1.0})
    assert modes(STEP, alone.lines) == {"sequential"}
    unit = load(STEP)
    context = synthetic_database.context(unit, {"n": 8, "s": 1.0}, target="numba-cpu")
    database = synthetic_database.keep(tmp_path / "db", context, {"": 90.0, alone.text: 5.0})
    made = build.as_python(unit, database, "numba-cpu", "")
    assert "loop 1: noParallel" in made


def test_what_is_sequential_already_is_no_version_of_its_own() -> None:
    """Nor is there one where the directives of the file leave no room for it."""
    carried = "void f(int n, float x[n]) {\n  for (int i = 1; i < n; i++) x[i] += x[i - 1];\n}\n"
    assert version(Analysis(load(carried).codelet), (), {"n": 8}) == ()
    (alone,) = version(Analysis(load(STEP).codelet), ("loop 3: unroll 2",), {"n": 8, "s": 1.0})
    assert alone.lines[0] == "loop 3: unroll 2"


@pytest.mark.parametrize(("alone_us", "said"), [(10.0, "2.5 times"), (24.5, ""), (100.0, "")])
def test_a_winner_slower_than_one_core_says_so_first(alone_us: float, said: str) -> None:
    """In the table on the terminal and on the page; nothing is said within five percent, where both are timed apart."""
    entries = (
        Entry("sequential", Summary(alone_us, alone_us, alone_us, 5), None, ""),
        *report_database.result().entries,
    )
    result = report_database.result(entries=entries, seconds={})
    first = f"slower than the sequential loops on one core: {said}"
    assert (result_table.plain(result).splitlines()[0] == first) is bool(said)
    assert ("**Slower than the sequential loops on one core: 2.5 times.**" in result_table.markdown(result)) is bool(
        said
    )


@pytest.mark.parametrize(("alone_us", "warned"), [(2.0, 1), (90.0, 0)])
def test_what_is_built_warns(alone_us: float, warned: int, tmp_path: Path) -> None:
    """The best that was measured is shipped, with a warning where one core was faster."""
    unit = load(STEP)
    context = synthetic_database.context(unit, {"n": 8, "s": 1.0})
    database = synthetic_database.keep(tmp_path / "db", context, {"": 9.0, "loop 3: unroll 2": 5.0})
    with Store.open(database) as store:
        store.record(Row(context, "", "sequential", "s"), Timed((alone_us,), alone_us, alone_us, alone_us, "text"))
    said: list[str] = []
    build.as_python(unit, database, "numba-cuda", "", warn=said.append)
    assert len(said) == warned
    assert all("is slower than the sequential loops on one core: 2.5 times" in message for message in said)


def beaten(tmp_path: Path) -> Path:
    """A database in which one core is faster than what won on this CPU."""
    context = synthetic_database.this_cpu(load(STEP), {"n": 8, "s": 1.0})
    database = synthetic_database.keep(tmp_path / "db", context, {"": 9.0, "loop 3: unroll 2": 5.0})
    with Store.open(database) as store:
        store.record(Row(context, "", "sequential", "s"), Timed((2.0,), 2.0, 2.0, 2.0, "text"))
    return database


@pytest.mark.wide
@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
@pytest.mark.filterwarnings("ignore:step is not verified")
def test_a_module_runs_the_c_text_where_that_is_faster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the sizes at which it is; where there is no compiler, what was tuned."""
    said: list[str] = []
    text = build.as_python(load(STEP), beaten(tmp_path), "numba-cpu", "", warn=said.append)
    assert "the loops of the file are shipped as they are" in said[0]
    (tmp_path / "m.py").write_text(text)
    rng = np.random.default_rng(0)
    given = rng.random((8, 8))
    want = given.copy()
    for k in range(8):
        want[k + 1 :, k + 1 :] -= np.outer(want[k + 1 :, k], want[k, k + 1 :]) * 0.5
    for path in (os.environ["PATH"], "/nowhere"):
        monkeypatch.setenv("PATH", path)
        made = imported(tmp_path / "m.py")
        function = made.PLANS[made.match(8).plan].launches()
        assert (function.__qualname__ == "in_c.<locals>.call") == (path != "/nowhere")
        a = given.copy()
        made.step(8, a, 0.5)
        np.testing.assert_allclose(a, want)


def test_c_that_is_built_has_no_threads_where_one_core_is_faster(tmp_path: Path) -> None:
    """The loops as they are, and the comment says what was faster."""
    text = build.as_c(load(STEP), beaten(tmp_path), "numba-cpu", "")
    assert "slower than the sequential loops on one core, 2 us: 2.5 times" in text
    assert "#pragma omp" not in text
    assert "j += 2" not in text
