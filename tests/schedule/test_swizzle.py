"""``swizzle``: blocks take other places of the grid, each of them one, and every target says the same of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from looptune.backends.codegen.block_swizzle import is_swizzled
from looptune.lower.plan import Plan
from looptune.runtime import targets
from looptune.schedule.directives.swizzle import BlockSwizzle
from tests.helpers import block_positions, cross_check, cuda_c_on_cpu, kernel_cases
from tests.helpers.swizzle_cases import CASES, LINES, SIZES

simulator = pytest.mark.skipif(not cross_check.CUDA, reason="needs the package numba-cuda")
compiler = pytest.mark.skipif(cuda_c_on_cpu.GXX is None, reason="needs g++")


def planned(name: str, sizes: Mapping[str, int] | None = None) -> Plan:
    return kernel_cases.planned(*LINES[name], sizes)


@pytest.mark.wide
@compiler
def test_what_the_loops_give(tmp_path: Path) -> None:
    """In CUDA C: every place is taken once, for sizes that are constants and arguments."""
    assert not kernel_cases.wrong_in_c(CASES, tmp_path, (False, True), 1e-5)


@pytest.mark.wide
@simulator
def test_what_the_loops_give_in_numba(tmp_path: Path) -> None:
    assert not kernel_cases.wrong_in_numba(CASES, tmp_path, False, 1e-5)


@pytest.mark.sampled(9, "wide")
@simulator
@pytest.mark.parametrize("name", CASES)
def test_it_compiles(name: str) -> None:
    from looptune.backends.numba_cuda.backend import NumbaCuda

    assert all(r.local_bytes == 0 for r in NumbaCuda().build(planned(name, SIZES[0])).resources)


@pytest.mark.parametrize(("rows", "firsts"), [(1, [(0, 0), (0, 1), (0, 2)]), (2, [(0, 0), (1, 0), (0, 1)]),
                                              (3, [(0, 0), (1, 0), (2, 0), (0, 1)])])  # fmt: skip
def test_neighbours_run_at_a_time(rows: int, firsts: list[tuple[int, int]]) -> None:
    """By hand: of a grid of 3 rows of 4 blocks those launched first, as the docstring of the directive shows them."""
    kernel = planned("strips of 4", {"n": 6, "m": 16}).kernels[0]
    places = block_positions.taken(replace(kernel, annotations=(BlockSwizzle(rows),)), (4, 3))
    assert [(y, x) for x, y in places[: len(firsts)]] == firsts
    assert sorted(places) == [(x, y) for x in range(4) for y in range(3)]


def test_a_grid_of_one_dimension_has_no_rows() -> None:
    both, one = planned("strips of 4").kernels
    assert (is_swizzled(both), is_swizzled(one)) == (True, False)
    assert "swizzle" not in targets.emit("numba-cpu", planned("strips of 4"), None)


def test_opencl_says_the_same() -> None:
    text = targets.emit("opencl", planned("strips of 4"), None)
    assert "number__swizzle / (4 * columns__swizzle) * 4" in text
    assert all(f"{v}__swizzle" in text for v in "xy")
