"""The lines that say how far a sweep is."""

from __future__ import annotations

import io
from dataclasses import replace
from itertools import product

import pytest

from looptune.cli.progress import ProgressLine
from looptune.tune.execution.lab import Progress
from looptune.tune.store.store import Context, Row
from tests.helpers.fake_lab import CONTEXT
from tests.helpers.fake_tasks import timed


def of(kernel: str = "gemm", device: str = "H100", sizes: str = "{}") -> Context:
    return replace(CONTEXT, kernel=kernel, device=device, sizes=sizes)


def at(done: int, kernel: str = "gemm", device: str = "H100", best: float = 100.0, sizes: str = "{}") -> Progress:
    row = Row(of(kernel, device, sizes), "loop k: unroll 4", outcome=timed(best))
    return Progress(done, 30, 0, {"timed": done}, row, row, 1.0, 70.0)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("every", "named"),
    [
        ([of()], ""),
        ([of(), of("mvt")], "gemm: "),
        ([of(), of("mvt", sizes='{"n": 8}')], "gemm: "),
        ([of(), of(device="H200")], "H100: "),
        ([of(*names) for names in product(("gemm", "mvt"), ("H100", "H200"))], "gemm, H100: "),
    ],
)
def test_a_line_says_whose_it_is_from_the_first(every: list[Context], named: str) -> None:
    """Also before the others have a line of their own; nothing is named where there is one."""
    stream = io.StringIO()
    ProgressLine(stream, every)(at(1))
    assert stream.getvalue() == f"{named}[ 1/30] | best 100 us (loop k: unroll 4) | 1:10 left\n"


def test_a_plain_line_comes_with_a_new_best_and_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """And every ten seconds."""
    clock = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    stream = io.StringIO()
    live = ProgressLine(stream, [of()])
    for done, best, clock[0] in [(1, 9.0, 1.0), (2, 9.0, 2.0), (3, 8.0, 3.0), (4, 8.0, 12.9), (5, 8.0, 13.1)]:
        live(at(done, best=best))
    live(at(30, best=8.0))
    assert [text[1:3] for text in stream.getvalue().splitlines()] == [" 1", " 3", " 5", "30"]


def test_a_terminal_has_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two kernels share it; of three it says how far all are. It ends when all have."""
    monkeypatch.setenv("COLUMNS", "200")
    stream = Terminal()
    live = ProgressLine(stream, [of(kernel) for kernel in ("gemm", "mvt", "atax")])
    live(at(3))
    live(at(30, "mvt"))
    assert stream.getvalue().split("\x1b[2K")[-1].startswith("gemm: [ 3/30] | best 100 us (loop k: unroll 4)")
    assert "  mvt: [30/30]" in stream.getvalue()
    live(at(30, "atax"))
    assert stream.getvalue().split("\x1b[2K")[-1].startswith("63/90 versions  atax: [30/30]")
    assert "\n" not in stream.getvalue()
    live(at(30))
    assert stream.getvalue().endswith("\n")


def test_sizes_of_one_kernel_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has a line of its own, and counts for itself."""
    monkeypatch.setenv("COLUMNS", "200")
    sizes = [f'{{"alpha": 1.5, "ni": {n}, "nj": 4}}' for n in (8, 16, 32)]
    plain, terminal = io.StringIO(), Terminal()
    for live in (
        ProgressLine(plain, [of(sizes=s) for s in sizes]),
        ProgressLine(terminal, [of(sizes=s) for s in sizes]),
    ):
        for s in sizes:
            live(at(3, sizes=s))
    assert [text.partition(": ")[0] for text in plain.getvalue().splitlines()] == [
        "ni=8 nj=4", "ni=16 nj=4", "ni=32 nj=4"]  # fmt: skip
    assert terminal.getvalue().split("\x1b[2K")[-1].startswith("9/90 versions  ni=32 nj=4: [ 3/30]")
