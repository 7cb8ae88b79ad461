"""``compile(config="best")`` and ``@looptune.autotune``: what was measured decides what runs in this process."""

from __future__ import annotations

import multiprocessing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import looptune
from looptune.core.errors import UsageError
from looptune.deploy import autotune
from looptune.frontend import load
from looptune.tune.results.result import Result
from looptune.tune.session.prepare import PreparedRun
from looptune.tune.store.store import Store
from tests.helpers import report_database, synthetic_database

ROWS = """
void rows(int n, int m, float A[n][m], float y[n], float x[m])
{ for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) y[i] += A[i][j] * x[j]; }
"""


def test_the_best_is_what_the_database_says(tmp_path: Path) -> None:
    """At each call's sizes, ``match`` saying how well it fits; a warning, once, where nothing was measured there."""
    unit = load(ROWS)
    db = synthetic_database.keep(
        tmp_path / "db", synthetic_database.this_cpu(unit, {"n": 30, "m": 40}), {"": 9.0, "loop j: unroll 4": 5.0}
    )
    kernel = looptune.compile(ROWS, target="numba-cpu", config="best", db=db, defines={"n": 30, "m": 40})
    assert kernel.match is not None
    assert (kernel.match.level, kernel.directives) == ("exact", "loop j: unroll 4")
    assert "j__end" not in kernel.source
    a, x, y = np.ones((5, 7), np.float32), np.ones(7, np.float32), np.zeros(5, np.float32)
    with pytest.warns(UserWarning, match="nothing was tuned for .* n=5 m=7: using what is best on .* at n=30 m=40"):
        kernel(5, 7, a, y, x)
    assert y.tolist() == [7] * 5
    assert kernel.match.level == "same device"
    with pytest.raises(UsageError, match='config is "best" or None'):
        looptune.compile(ROWS, target="numba-cpu", config="fast", db=db)
    with pytest.raises(UsageError, match="leave out directives"):
        looptune.compile(ROWS, target="numba-cpu", config="best", db=db, directives=["loop i: unroll 2"])


def test_a_script_that_a_worker_imports_is_told_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not by an error of multiprocessing: the script calls the function where a worker process calls it too."""
    (tmp_path / "rows.c").write_text(ROWS)

    @looptune.autotune(tmp_path / "rows.c", budget="2", db=tmp_path / "db", target="numba-cpu")
    def rows(n, m, A, y, x):  # type: ignore[no-untyped-def]
        raise AssertionError("the body is not run")

    monkeypatch.setattr(multiprocessing.current_process(), "_inheriting", True, raising=False)
    with pytest.raises(UsageError, match=r'rows is called while .*: call it under if __name__ == "__main__":'):
        rows(2, 3, np.ones((2, 3), np.float32), np.ones(2, np.float32), np.ones(3, np.float32))


@pytest.mark.long
def test_a_function_is_tuned_at_its_first_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search at new sizes, none at known ones, here or in another process; the arrays hold what one call leaves."""
    (tmp_path / "rows.c").write_text(ROWS)
    searches = []
    run = autotune.run

    def counted(prepared: PreparedRun, *rest: Any) -> Result:
        searches.append(prepared.sizes)
        return run(prepared, *rest)

    monkeypatch.setattr(autotune, "run", counted)
    (tmp_path / "rows.pragmas").write_text("loop j: unroll {1, 2}\n")

    def made() -> object:
        @looptune.autotune(
            tmp_path / "rows.c", budget="2", db=tmp_path / "db", target="numba-cpu", accept_disturbed=True
        )
        def rows(n, m, A, y, x):  # type: ignore[no-untyped-def]
            """The rows' sums."""
            raise AssertionError("the body is not run")

        return rows

    rows = made()
    assert rows.__doc__ == "The rows' sums."
    for n in (24, 24, 32):
        a, x, y = np.ones((n, 7), np.float32), np.ones(7, np.float32), np.ones(n, np.float32)
        rows(n, 7, A=a, y=y, x=x)  # type: ignore[operator]
        assert y.tolist() == [8] * n
    made()(24, 7, np.ones((24, 7), np.float32), np.ones(24, np.float32), np.ones(7, np.float32))  # type: ignore[operator]
    assert searches == [{"n": 24, "m": 7}, {"n": 32, "m": 7}]
    with Store.read(tmp_path / "db") as store:
        assert {row.role for row in store.rows()} >= {"default", "final"}


def test_the_parameters_have_to_be_those_of_the_c_function(tmp_path: Path) -> None:
    """Seen when the function is decorated, with both lists."""
    (tmp_path / "rows.c").write_text(ROWS)
    with pytest.raises(UsageError, match=r"^rows\(n, A\) is to have the parameters of the C function: rows\(n, m, A, "):

        @looptune.autotune(tmp_path / "rows.c")
        def rows(n, A):  # type: ignore[no-untyped-def]
            """Too few."""

    with pytest.raises(UsageError, match="invalid budget `soon`"):
        looptune.autotune(tmp_path / "rows.c", budget="soon")


@pytest.mark.filterwarnings("ignore:rows. nothing was tuned")
def test_a_search_without_a_time_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine that is too busy for the budget; the default runs."""
    (tmp_path / "rows.c").write_text(ROWS)
    monkeypatch.setattr(autotune, "run", lambda *_: report_database.result(versions={"timed": 0}))

    @looptune.autotune(tmp_path / "rows.c", budget="2s", db=tmp_path / "db", target="numba-cpu")
    def rows(n, m, A, y, x):  # type: ignore[no-untyped-def]
        """The body is not run."""

    y = np.zeros(2, np.float32)
    with pytest.warns(UserWarning, match="rows: no version was measured in a budget of 2s: the next process searches"):
        rows(2, 3, np.ones((2, 3), np.float32), y, np.ones(3, np.float32))
    assert y.tolist() == [3.0, 3.0]


def test_the_former_name_warns(tmp_path: Path) -> None:
    """``@looptune.tune`` works for one more release."""
    (tmp_path / "rows.c").write_text(ROWS)
    with pytest.warns(DeprecationWarning, match="looptune.tune is now looptune.autotune"):
        decorate = looptune.tune(tmp_path / "rows.c")
    assert callable(decorate)
