"""One core is always in the comparison: what is slower than the sequential loops says so, and need not be shipped."""

from __future__ import annotations

from pathlib import Path

import pytest
import stored
import stores

from looptune.analysis import Analysis
from looptune.deploy import build
from looptune.frontend import load
from looptune.frontend.placed import parse_lines
from looptune.ir import Loop
from looptune.report import tables
from looptune.report.result import Entry
from looptune.rewrite import walk
from looptune.runtime.outcome import Timed
from looptune.runtime.timing import Summary
from looptune.schedule import schedule
from looptune.tune.sequential import version
from looptune.tune.store import Row, Store

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
    context = stores.context(unit, {"n": 8, "s": 1.0}, target="numba-cpu")
    database = stores.keep(tmp_path / "db", context, {"": 90.0, alone.text: 5.0})
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
    entries = (Entry("sequential", Summary(alone_us, alone_us, alone_us, 5), None, ""), *stored.result().entries)
    result = stored.result(entries=entries, seconds={})
    first = f"slower than the sequential loops on one core: {said}"
    assert (tables.plain(result).splitlines()[0] == first) is bool(said)
    assert ("**Slower than the sequential loops on one core: 2.5 times.**" in tables.markdown(result)) is bool(said)


@pytest.mark.parametrize(("alone_us", "warned"), [(2.0, 1), (90.0, 0)])
def test_what_is_built_warns(alone_us: float, warned: int, tmp_path: Path) -> None:
    """The best that was measured is shipped, with a warning where one core was faster."""
    unit = load(STEP)
    context = stores.context(unit, {"n": 8, "s": 1.0})
    database = stores.keep(tmp_path / "db", context, {"": 9.0, "loop 3: unroll 2": 5.0})
    with Store.open(database) as store:
        store.record(Row(context, "", "sequential", "s"), Timed((alone_us,), alone_us, alone_us, alone_us, "text"))
    said: list[str] = []
    build.as_python(unit, database, "numba-cuda", "", warn=said.append)
    assert len(said) == warned
    assert all("is slower than the sequential loops on one core: 2.5 times" in message for message in said)
