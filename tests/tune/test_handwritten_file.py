"""A Python file of hand-written kernels beside a C file is named before it runs, and runs only where it is wanted."""

from __future__ import annotations

from pathlib import Path

import pytest

from looptune.deploy.autotune import autotune
from looptune.tune.session.prepare import TuningRequest, prepare

TEXT = "void f(int n, float x[n]) {\n  for (int i = 0; i < n; i++) x[i] += 1;\n}\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "f.c").write_text(TEXT)
    (tmp_path / "handwritten").mkdir()
    (tmp_path / "handwritten" / "f.py").write_text("raise AssertionError('it ran')\n")
    return tmp_path / "f.c"


def request_of(file: Path, **more: bool) -> TuningRequest:
    return TuningRequest(file, defines={"n": "8"}, target="numba-cpu", **more)


def test_a_file_that_will_run_is_named(file: Path) -> None:
    """The note has its path and says how to leave it out; preparing runs nothing of it."""
    prepared = prepare(request_of(file))
    assert prepared.by_hand == file.parent.resolve() / "handwritten" / "f.py"
    [note] = [n for n in prepared.notes if "handwritten" in n]
    assert str(file.parent / "handwritten" / "f.py") in note
    assert "--no-handwritten" in note


def test_a_file_that_is_not_wanted_is_no_part_of_the_finals(file: Path) -> None:
    """Nor is there a word of it."""
    prepared = prepare(request_of(file, handwritten=False))
    assert prepared.by_hand is None
    assert not [n for n in prepared.notes if "handwritten" in n]


def test_a_tuned_function_runs_no_file_beside_its_own(file: Path) -> None:
    """``@looptune.autotune`` searches without hand-written kernels."""

    def f(n: int, x: object) -> None: ...

    assert autotune(file)(f).request.handwritten is False
