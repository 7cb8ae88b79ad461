"""Tiles of a derived space that fit the sizes of a product, and products in a band of three loops."""

from __future__ import annotations

import re

import pytest

from looptune.frontend import load
from looptune.schedule.analysis import Analysis
from looptune.tune.space import fitted_tiles
from looptune.tune.space.derive import derive
from looptune.tune.space.patterns import Patterns
from looptune.tune.space.space import parse
from tests.helpers.paths import POLYBENCH_C

BATCHED = """
void f(int b, int n, int m, double A[b][n][m], double B[m][m], double C[b][n][m], double D[b][n][m]) {
  for (int r = 0; r < b; r++)
    for (int q = 0; q < n; q++) {
      for (int p = 0; p < m; p++) {
        C[r][q][p] = 0;
        for (int s = 0; s < m; s++) C[r][q][p] += A[r][q][s] * B[s][p];
      }
      for (int p = 0; p < m; p++) D[r][q][p] = C[r][q][p];
    }
}
"""
SIZES = {"b": 150, "n": 140, "m": 160}


def patterns(sizes: dict[str, int]) -> Patterns:
    return Patterns(Analysis(load(BATCHED).codelet), sizes=sizes).perfect_products


def test_products_of_doubles_in_a_third_loop_are_for_tensor_cores() -> None:
    """The elements begin with 0 in the launch that adds up; what follows is cut off from it."""
    sections = derive(Analysis(load(BATCHED).codelet)).split("\nor\n")
    cores = [s for s in sections if "tensor" in s]
    lines = {"loop 1: distribute", "loop 5: cut", "loop 1: gridify(r, q, p)"}
    assert cores
    assert all(lines <= {*s.splitlines()} for s in cores)


def test_all_fitted_versions_are_legal() -> None:
    found = Patterns(Analysis(load(BATCHED).codelet), sizes=SIZES)
    text = derive(found.analysis, sizes=SIZES)
    fitted = [s for s in text.split("\nor\n") if "stages 3" in s or "unroll 7" in s]
    assert len(fitted) == 2
    for version in parse("\nor\n".join(fitted), "<derived>"):
        assert found.legal([line for line in version.text.splitlines() if line])


@pytest.mark.parametrize("columns", [160, 150, 70, 8])
@pytest.mark.parametrize("rows", [140, 100, 45, 12])
def test_threads_divide_the_product(rows: int, columns: int) -> None:
    found = patterns({"b": 9, "n": rows, "m": columns})
    for outer, inner, blocks in fitted_tiles.of_threads(found, found.sums):
        assert not rows % int(outer.split()[1].rstrip(","))
        assert not columns % int(inner.split()[1].rstrip(","))
        for across, down in re.findall(r"(\d+)x(\d+)", blocks):
            assert int(across) * int(down) % 32 == 0


@pytest.mark.parametrize("columns", [160, 40, 9])
@pytest.mark.parametrize("rows", [140, 21, 3])
def test_blocks_of_tensor_cores_are_whole_warps(rows: int, columns: int) -> None:
    found = patterns({"b": 9, "n": rows, "m": columns})
    (text,) = fitted_tiles.of_warps(found, found.sums)
    for sides in re.findall(r"block (\d+)x(\d+), warp (\d+)x(\d+)", text):
        high, wide, warp_high, warp_wide = map(int, sides)
        assert (high % warp_high, wide % warp_wide, warp_high % 16, warp_wide % 8) == (0, 0, 0, 0)


def test_the_best_blocks_waste_little() -> None:
    """Blocks of 64 x 64 would compute 1.65 times as many elements as there are."""
    found = patterns(SIZES)
    (text,) = fitted_tiles.of_warps(found, found.sums)
    high, wide = map(int, re.findall(r"block (\d+)x(\d+)", text)[0])
    assert -(-140 // high) * high * -(-160 // wide) * wide <= 1.05 * 140 * 160
    outer, inner, _ = next(fitted_tiles.of_threads(found, found.sums))
    assert (140 % int(outer.split()[1].rstrip(",")), 160 % int(inner.split()[1].rstrip(","))) == (0, 0)


@pytest.mark.parametrize("sizes", [{}, {"b": 5, "n": 1024, "m": 1024}, {"b": 5, "n": 1000, "m": 1100}, {"n": 140}])
def test_nothing_is_offered_where_sizes_are_unknown_or_the_usual_tiles_fit(sizes: dict[str, int]) -> None:
    found = patterns(sizes)
    assert not [*fitted_tiles.of_threads(found, found.sums), *fitted_tiles.of_warps(found, found.sums)]


@pytest.mark.wide
def test_doitgen_has_both() -> None:
    unit = load(POLYBENCH_C / "doitgen.c", defines={"LARGE_DATASET": None}, dtype="float64")
    text = derive(Analysis(unit.codelet), sizes={"nr": 150, "nq": 140, "np": 160})
    assert text.index("tensor, {block") < text.index("unroll 7, jam") < text.index("unroll 4, jam")
