"""How the paper's kernels run by default: the loops on the host, in the grid and in the thread, as HMPP mapped them.

The numbers are those of the generated code behind Grauer-Gray et al. (InPar 2012), at the paper's sizes: blocks of
32 x 8 threads, one parallel loop linearised over the block, a triangular inner loop kept in the thread, a sequential
outer loop on the host.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from looptune.frontend import load
from looptune.lower.pipeline import lower
from looptune.lower.plan import Plan
from looptune.lower.plan_outline import summarize_plan
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from tests.helpers.paths import POLYBENCH

DEFAULT = {
    "2dconv": """
        grid i, j: 128 x 512 blocks of 32 x 8 threads
        1 kernel, 1 launch""",
    "2mm": """
        grid i, j: 64 x 256 blocks of 32 x 8 threads, in the thread k
        grid i, j: 64 x 256 blocks of 32 x 8 threads, in the thread k
        2 kernels, 2 launches""",
    "3dconv": """
        grid i, j: 8 x 32 blocks of 32 x 8 threads, in the thread k
        1 kernel, 1 launch""",
    "3mm": """
        grid i, j: 16 x 64 blocks of 32 x 8 threads, in the thread k
        grid i, j: 16 x 64 blocks of 32 x 8 threads, in the thread k
        grid i, j: 16 x 64 blocks of 32 x 8 threads, in the thread k
        3 kernels, 3 launches""",
    "atax": """
        grid i: 16 blocks of 256 threads
        grid i: 16 blocks of 256 threads, in the thread j
        host i: 4,096 times
          grid j: 16 blocks of 256 threads
        3 kernels, 4,098 launches""",
    "bicg": """
        grid i: 16 blocks of 256 threads
        grid i: 16 blocks of 256 threads
        host i: 4,096 times
          grid j: 16 blocks of 256 threads
        grid i: 16 blocks of 256 threads, in the thread j
        4 kernels, 4,099 launches""",
    "corr": """
        grid j: 8 blocks of 256 threads, in the thread i
        grid j: 8 blocks of 256 threads, in the thread i
        grid i, j: 64 x 256 blocks of 32 x 8 threads
        grid j1: 8 blocks of 256 threads, in the thread j2, i
        one thread
        5 kernels, 5 launches""",
    "covar": """
        grid j: 8 blocks of 256 threads, in the thread i
        grid i, j: 64 x 256 blocks of 32 x 8 threads
        grid j1: 8 blocks of 256 threads, in the thread j2, i
        3 kernels, 3 launches""",
    "fdtd-2d": """
        host t: 500 times
          grid j: 8 blocks of 256 threads
          grid i, j: 64 x 256 blocks of 32 x 8 threads
          grid i, j: 64 x 256 blocks of 32 x 8 threads
          grid i, j: 64 x 256 blocks of 32 x 8 threads
        4 kernels, 2,000 launches""",
    "gemm": """
        grid i, j: 16 x 64 blocks of 32 x 8 threads, in the thread k
        1 kernel, 1 launch""",
    "gesummv": """
        grid i: 16 blocks of 256 threads, in the thread j
        1 kernel, 1 launch""",
    "gramschm": """
        host k: 2,048 times
          one thread, in the thread i
          grid i: 8 blocks of 256 threads
          grid j: 8 blocks of 256 threads, in the thread i, i
        3 kernels, 6,144 launches""",
    "mvt": """
        grid i: 16 blocks of 256 threads, in the thread j
        grid i: 16 blocks of 256 threads, in the thread j
        2 kernels, 2 launches""",
    "syr2k": """
        grid i, j: 64 x 256 blocks of 32 x 8 threads
        grid i, j: 64 x 256 blocks of 32 x 8 threads, in the thread k
        2 kernels, 2 launches""",
    "syrk": """
        grid i, j: 32 x 128 blocks of 32 x 8 threads
        grid i, j: 32 x 128 blocks of 32 x 8 threads, in the thread k
        2 kernels, 2 launches""",
}


def planned(source: str | Path, *lines: str) -> tuple[Plan, dict[str, int]]:
    unit = load(source)
    made = lower(schedule(Analysis(unit.codelet), parse_lines(lines), unit.values).codelet)
    return made, {n: int(v) for n, v in unit.values.items() if isinstance(v, int)}


def dedented(text: str) -> list[str]:
    return [line.removeprefix(" " * 8) for line in text.splitlines() if line]


@pytest.mark.wide
@pytest.mark.parametrize("kernel", sorted(DEFAULT))
def test_the_default_runs_as_hmpp_ran_it(kernel: str) -> None:
    """Host, grid and thread loops, block shapes and the number of launches at the paper's sizes."""
    assert list(summarize_plan(*planned(POLYBENCH / f"{kernel}.c"))) == dedented(DEFAULT[kernel])


def test_every_kernel_of_the_paper_is_there() -> None:
    """One program for each of Table 2."""
    assert {path.stem for path in POLYBENCH.glob("*.c")} >= set(DEFAULT)
    assert len(DEFAULT) == 15


TRIANGLE = """
void f(int n, float x[n][n]) {
  for (int i = 0; i < n; i++)
    for (int j = i; j < n; j++)
      for (int k = 0; k < n; k++) x[i][j] += k;
}
"""


def test_directives_move_loops_between_host_grid_and_thread() -> None:
    """noParallel takes the outer loop to the host, and the triangular inner one becomes the grid."""
    made, _ = planned(TRIANGLE)
    assert list(summarize_plan(made)) == ["grid i: blocks of 256 threads, in the thread j, k", "1 kernel"]
    made, _ = planned(TRIANGLE, "loop i: noParallel", "loop j: grid blocksize 64x2")
    assert list(summarize_plan(made, {"n": 300})) == [
        "host i: 300 times",
        "  grid j: 3 blocks of 128 threads, in the thread k",
        "1 kernel, 300 launches",
    ]


RECTANGLE = """
void f(int n, int m, float x[n][m], float y[n][m]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++) x[i][j] += y[i][j];
}
"""


@pytest.mark.parametrize(
    ("lines", "kernels"),
    [
        (["loop j: unroll 4"], 2),
        (["loop i: unroll 2"], 3),
        (["loop i: unroll 2", "loop j: unroll 4"], 6),
        (["loop i: unroll 2, jam", "loop j: unroll 4"], 4),
    ],
)
def test_copies_leave_the_grid_its_two_dimensions(lines: list[str], kernels: int) -> None:
    """Unrolling one loop of a parallel pair, with a remainder, gives two-dimensional kernels only."""
    made, _ = planned(RECTANGLE, *lines)
    shown = summarize_plan(made, {"n": 103, "m": 101})
    assert [line.partition(":")[0] for line in shown[:-1]] == ["grid i, j"] * kernels


def test_copies_in_a_sequential_loop_stay_in_their_order() -> None:
    """Under a loop on the host, the main loop and the remainder are launched in each of its iterations."""
    made, _ = planned(RECTANGLE, "loop j: unroll 4", "loop i: noParallel")
    assert list(summarize_plan(made, {"n": 103, "m": 101})) == [
        "host i: 103 times",
        "  grid j: 1 block of 256 threads",
        "  grid j: 1 block of 256 threads",
        "2 kernels, 206 launches",
    ]
