"""Blocked elimination: the pieces of a nest, which of them are parallel, directives for single pieces, and kernels."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from looptune.frontend import load
from looptune.ir.nodes import Codelet, Loop
from looptune.ir.rewrite import walk
from looptune.poly.disjoint import Surroundings, never_written, subscripts_differ
from looptune.poly.translation_validation import prove
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from looptune.tune.space import blocked
from looptune.tune.space.patterns import Patterns
from looptune.tune.space.space import parse
from tests.helpers import all_targets, cross_check
from tests.helpers.paths import ROOT

POLYBENCH = ROOT / "polybench" / "c"
RIGHT = """
void f(int n, int m, double A[n][m], double s[n]) {
  for (int k = 0; k < n; k++) {
    s[k] = A[k][k];
    for (int i = k + 1; i < n; i++) A[i][k] /= s[k];
    for (int i = k + 1; i < n; i++)
      for (int j = k + 1; j < m; j++) A[i][j] -= A[i][k] * A[k][j];
  }
}
"""
UPPER = """
void f(int n, double A[n][n]) {
  for (int k = 0; k < n; k++)
    for (int j = k + 1; j < n; j++)
      for (int i = k + 1; i <= j; i++) A[i][j] -= A[k][i] * A[k][j];
}
"""
SOLVE = """
void f(int n, int m, double L[n][n], double X[n][m]) {
  for (int k = 0; k < n; k++)
    for (int i = k + 1; i < n; i++)
      for (int j = 0; j < m; j++) X[i][j] -= L[i][k] * X[k][j];
}
"""
SHORTEST = """
void f(int n, double P[n][n]) {
  for (int k = 0; k < n; k++)
    for (int i = 0; i < n; i++)
      for (int j = 0; j < n; j++) P[i][j] = P[i][j] < P[i][k] + P[k][j] ? P[i][j] : P[i][k] + P[k][j];
}
"""


def function(name: str) -> str:
    """The function of a file of PolyBench/C, in double."""
    text = (POLYBENCH / f"{name}.c").read_text()
    text = text[text.index("static void") : text.index("int main")].replace("DATA_TYPE", "double")
    return f"#include <math.h>\n{text.removeprefix('static ').partition('static void init')[0]}"


LU, CHOLESKY, LUDCMP, TRISOLV = map(function, ("lu", "cholesky", "ludcmp", "trisolv"))
ORDERED = ("loop 1: schedule fuse:min", "loop 3: block 4")
NESTS = {
    "lu": (LU, ORDERED, 4),
    "cholesky": (CHOLESKY, ORDERED, 3),
    "right-looking": (RIGHT, ("loop k: block 3",), 3),
    "upper": (UPPER, ("loop k: block 2",), 2),
    "right-hand sides": (SOLVE, ("loop k: block 4",), 2),
}
"""A text, its directives, and the pieces whose outermost loop is parallel."""


def read(text: str) -> Codelet:
    return load(text).codelet


def outer(codelet: Codelet) -> Loop:
    return next(f for f in walk(codelet.body) if isinstance(f, Loop))


@pytest.mark.wide
@pytest.mark.parametrize("name", NESTS)
def test_pieces_beyond_the_block_are_parallel(name: str) -> None:
    """The order is proved at sizes that blocks do not divide, and each panel and update has a parallel loop outside."""
    text, lines, parallel = NESTS[name]
    original = read(text)
    done = schedule(Analysis(original), parse_lines(lines)).codelet
    for size in (1, 2, 4, 9):
        proof = prove(original, done, {"n": size, "m": size + 3})
        assert proof.verdict == "proved", proof.reason
    pieces = [f for f in outer(done).body if isinstance(f, Loop)]
    assert (outer(done).var, outer(done).mode) == ("outer_k", "sequential")
    assert sum(f.mode == "parallel" for f in pieces) == parallel


PIECES = {
    "permute": ("loop 1.6: permute j, i",),
    "reverse": ("loop 1.4: reverse",),
    "jam": ("loop 1.6: box 2", "loop 1.6: unroll 2, jam"),
    "tile": ("loop 3.3: tile 2", "loop 4.2: tile 2"),
    "diagonal": ("loop 2.1: unroll 2", "loop 1.3: unroll 2, split, guarded"),
    "several": ("loop 1: unroll 2", "loop 3.4: unroll 3"),
}


@pytest.mark.wide
@pytest.mark.parametrize("name", PIECES)
def test_a_directive_reorders_one_piece_alone(name: str) -> None:
    """It is judged by the instances of its piece, and what results is proved."""
    original = read(LU)
    done = schedule(Analysis(original), parse_lines((*ORDERED, *PIECES[name]))).codelet
    proof = prove(original, done, {"n": 11})
    assert proof.verdict == "proved", proof.reason


def test_a_piece_keeps_the_dependences_of_its_own_instances() -> None:
    """The steps of the diagonal depend on each other, though those of the updates may run in any order."""
    original = read(LU)
    with pytest.raises(Exception, match="must run before"):
        schedule(Analysis(original), parse_lines((*ORDERED, "loop 3.1: reverse")))
    schedule(Analysis(original), parse_lines((*ORDERED, "loop 3.4: reverse")))


def test_a_nest_without_pieces_in_order_is_refused() -> None:
    """In Floyd-Warshall, what stands beyond the block is used in the block."""
    with pytest.raises(Exception, match="depend on each other in a circle"):
        schedule(Analysis(read(SHORTEST)), parse_lines(("loop k: block 4",)))


IDLE = """
void f(int n, double A[n][n], double x[n]) {
  for (int k = 0; k < n; k++) {
    for (int p = n; p < k; p++) x[p] += A[p][k];
    for (int i = k + 1; i < n; i++) {
      A[i][k] /= A[k][k];
      for (int j = k + 1; j < n; j++) A[i][j] -= A[i][k] * A[k][j];
    }
  }
}
"""


def test_a_statement_that_never_runs_is_left_out() -> None:
    """It is in no piece, and the others are as they would be without it."""
    done = schedule(Analysis(read(IDLE)), parse_lines(("loop 1: block 3",))).codelet
    assert prove(read(IDLE), done, {"n": 11}).verdict == "proved"
    assert not any(getattr(n, "array", "") == "x" for n in walk(done.body))


def positive_definite(text: str, n: int) -> cross_check.Arguments:
    """Return arguments of which A is a positive definite matrix of n rows."""
    rng = np.random.default_rng(n)
    arrays = [p.name for p in read(text).params if p.name != "n"]
    given = {name: rng.random((n, n) if name == "A" else n) for name in arrays}
    return {"n": n, **given, "A": given["A"] @ given["A"].T + n * np.eye(n)}


def derived(text: str) -> Iterator[list[str]]:
    """The first version of each derived section, with small blocks."""
    for section in blocked.sections(Patterns(Analysis(read(text)))):
        small = section.removeprefix("for gpu\n").removeprefix("for cpu\n").replace("unroll 16", "unroll 4")
        for old, new in (("block {16, 32, 8, 64}", "block 4"), ("block {64, 32, 128}", "block 4"),
                         ("{16x16, 16x8}", "4x2"), ("{32x1, 64x1}", "4x1"),
                         ("{64x1, 128x1, 32x4}", "4x2")):  # fmt: skip
            small = small.replace(old, new)
        yield next(iter(parse(small, "derived"))).text.splitlines()


@pytest.mark.parametrize(
    ("text", "ways"),
    [pytest.param(LU, ("cuda-c",), id="lu", marks=pytest.mark.wide),
     pytest.param(CHOLESKY, ("cuda-c",), id="cholesky", marks=pytest.mark.long),
     pytest.param(LUDCMP, ("cuda-c",), id="ludcmp", marks=pytest.mark.long),
     pytest.param(LU, ("simulator", "transform", "cpu"), id="lu, simulated", marks=pytest.mark.long)],
)  # fmt: skip
def test_kernels_of_the_derived_form(text: str, ways: tuple[str, ...]) -> None:
    """Staged register tiles of an array that the kernel writes, and a block that runs all steps of the diagonal."""
    lines = next(derived(text))
    assert {line.partition(": ")[2] for line in lines} >= {"noParallel, team", "stage A, unroll 4"}
    given = [positive_definite(text, n) for n in (1, 2, 5, 13)]
    with tempfile.TemporaryDirectory() as folder:
        found = all_targets.wrong(
            [all_targets.Case("blocked", text, given, lines, ways=ways, tolerance=1e-10)], Path(folder)
        )
    assert not found, "\n".join(found)


def test_a_triangular_system_is_solved_in_blocks() -> None:
    """One block runs the steps of a diagonal, and rows below it have a thread or a team each, with a copy of x[i]."""
    rows, teams = derived(TRISOLV)
    assert {line.partition(": ")[2] for line in rows} >= {"block 4", "noParallel, team", "stage x"}
    assert "loop 1.3: parallel" in teams
    given = []
    for n in (1, 2, 5, 13):
        rng = np.random.default_rng(n)
        given.append({"n": n, "L": rng.random((n, n)) + n * np.eye(n), "x": rng.random(n), "b": rng.random(n)})
    cases = [
        all_targets.Case(f"rows {k}", TRISOLV, given, lines, ways=("cuda-c",), tolerance=1e-10)
        for k, lines in enumerate((rows, teams))
    ]
    with tempfile.TemporaryDirectory() as folder:
        found = all_targets.wrong(cases, Path(folder))
    assert not found, "\n".join(found)


@pytest.mark.wide
def test_all_loops_that_eliminate_are_in_blocks_at_once() -> None:
    """The factorisation of ludcmp and its forward substitution, whose steps are launches otherwise."""
    assert "loop 5, 6: block {16, 32, 8, 64}" in next(blocked.sections(Patterns(Analysis(read(LUDCMP)))))


@pytest.mark.wide
@pytest.mark.parametrize("name", ["trmm", "jacobi-2d", "floyd-warshall", "durbin"])
def test_no_blocks_are_derived_where_nothing_is_eliminated(name: str) -> None:
    """A section is derived only where a step changes what later steps read."""
    assert list(blocked.sections(Patterns(Analysis(load(POLYBENCH / f"{name}.c").codelet)))) == []


def test_subscripts_are_apart_by_the_bounds_of_their_loops() -> None:
    """No iteration of the update writes what another one reads in the panels."""
    update = """
    void f(int n, int t, double A[n][n]) {
      for (int i = 8 * t + 8; i < n; i++)
        for (int j = 8 * t + 8; j < n; j++)
          for (int k = 8 * t; k < 8 * t + 8; k++) A[i][j] -= A[i][k] * A[k][j];
    }
    """
    codelet = read(update)
    loops = [f for f in walk(codelet.body) if isinstance(f, Loop)]
    i, j, k = (f.var for f in loops)
    apart = never_written(codelet.body, Surroundings(), codelet.body, Surroundings(), "A")
    names = [[n.name for n in index if hasattr(n, "name")] for index in apart]
    assert sorted(names) == [[i, k], [k, j]]
    (assign,) = loops[-1].body
    row, column = assign.target.index
    assert not subscripts_differ(row, column, loops)
