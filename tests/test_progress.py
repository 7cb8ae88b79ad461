"""The lines that say how far a sweep is."""

from __future__ import annotations

import io
from dataclasses import replace
from itertools import product

import pytest
from fake_lab import CONTEXT, timed

from looptune.report.progress import Live
from looptune.tune.lab import Progress
from looptune.tune.store import Row


def at(done: int, kernel: str = "gemm", device: str = "H100", best: float = 100.0) -> Progress:
    row = Row(replace(CONTEXT, kernel=kernel, device=device), "loop k: unroll 4", outcome=timed(best))
    return Progress(done, 30, 0, {"timed": done}, row, row, 1.0, 70.0)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("of", "named"),
    [
        ([("gemm", "H100")], ""),
        ([("gemm", "H100"), ("mvt", "H100")], "gemm: "),
        ([("gemm", "H100"), ("gemm", "H200")], "H100: "),
        ([*product(("gemm", "mvt"), ("H100", "H200"))], "gemm, H100: "),
    ],
)
def test_a_line_says_whose_it_is_from_the_first(of: list[tuple[str, str]], named: str) -> None:
    """Also before the others have a line of their own; nothing is named where there is one."""
    stream = io.StringIO()
    Live(stream, of)(at(1))
    assert stream.getvalue() == f"{named}[ 1/30] | best 100 us (loop k: unroll 4) | 1:10 left\n"


def test_a_plain_line_comes_with_a_new_best_and_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """And every ten seconds."""
    clock = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    stream = io.StringIO()
    live = Live(stream, [("gemm", "H100")])
    for done, best, clock[0] in [(1, 9.0, 1.0), (2, 9.0, 2.0), (3, 8.0, 3.0), (4, 8.0, 12.9), (5, 8.0, 13.1)]:
        live(at(done, best=best))
    live(at(30, best=8.0))
    assert [text[1:3] for text in stream.getvalue().splitlines()] == [" 1", " 3", " 5", "30"]


def test_a_terminal_has_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two kernels share it; of three it says how far all are. It ends when all have."""
    monkeypatch.setenv("COLUMNS", "200")
    stream = Terminal()
    live = Live(stream, [(kernel, "H100") for kernel in ("gemm", "mvt", "atax")])
    live(at(3))
    live(at(30, "mvt"))
    assert stream.getvalue().split("\x1b[2K")[-1].startswith("gemm: [ 3/30] | best 100 us (loop k: unroll 4)")
    assert "  mvt: [30/30]" in stream.getvalue()
    live(at(30, "atax"))
    assert stream.getvalue().split("\x1b[2K")[-1].startswith("63/90 versions  atax: [30/30]")
    assert "\n" not in stream.getvalue()
    live(at(30))
    assert stream.getvalue().endswith("\n")
