"""``pack``: every block with something to do is launched, once, and few others; the loops give what they gave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from looptune.frontend import load
from looptune.ir.specialize import specialize
from looptune.lower.passes.grid_compaction import CompactGrid
from looptune.lower.pipeline import lower
from looptune.lower.plan import Plan, blocks, launched_blocks, with_kernels
from looptune.lower.plan_check import prove_plan
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from tests.helpers import block_positions, cross_check, cuda_c_on_cpu, kernel_cases
from tests.helpers.kernel_cases import Case

simulator = pytest.mark.skipif(not cross_check.CUDA, reason="needs the package numba-cuda")
compiler = pytest.mark.skipif(cuda_c_on_cpu.GXX is None, reason="needs g++")


def triangle(first: str, end: str, outer: str = "int i = 0; i < n; i++") -> str:
    return f"""void f(int n, int m, int A[n][m])
{{
    for ({outer})
        for (int j = {first}; j < {end}; j++)
            A[i][j] = A[i][j] + 1 + 3 * i + 7 * j;
}}
"""


SYRK = """void f(int n, int m, float A[n][m], float C[n][n])
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++)
            for (int k = 0; k < m; k++)
                C[i][j] += A[i][k] * A[j][k];
}
"""
STEPS = """void f(int n, int m, float A[n][m], float B[n][m])
{
    for (int t = 0; t < 3; t++) {
        for (int i = 0; i < n; i++) for (int j = i; j < m; j++) B[i][j] = A[i][j] / 2 + t;
        for (int i = 0; i < n; i++) for (int j = i; j < m; j++) A[i][j] = B[i][j] - 1;
    }
}
"""
GRID = ("loop 1: gridify(i, j)", "codelet: pack", "codelet: grid blocksize 4x2")
SIZES = ({"n": 41, "m": 41}, {"n": 24, "m": 40}, {"n": 37, "m": 19})
LINES = {
    "upper": (triangle("i", "m", "int i = 0; i < n && i < m; i++").replace("i < n && i < m", "i < n"), GRID),
    "lower": (triangle("0", "i + 1", "int i = 0; i < n; i++").replace("[n][m]", "[n][n + m]"), GRID),
    "strictly upper": (triangle("i + 1", "m"), GRID),
    "far from the diagonal": (triangle("i + 9", "m"), GRID),
    "steep": (triangle("3 * i", "m"), GRID),
    "the last rows alone": (triangle("0", "i - 20").replace("[n][m]", "[n][n + m]"), GRID),
    "unrolled": (triangle("i", "m"), (*GRID, "loop i: box 4", "loop i: unroll 2, jam", "loop j: box 4")),
    "by columns": (triangle("i", "m"), ("loop 1: gridify(j, i)", *GRID[1:])),
    "larger blocks": (triangle("i", "m"), (*GRID[:2], "codelet: grid blocksize 8x8")),
    "in strips": (triangle("i", "m"), (*GRID, "codelet: swizzle 3")),
    "tiles in shared memory": (
        SYRK, ("loop 1: gridify(i, j)", "loop k: tile k:8", "loop k: stage A", "codelet: pack",
               "codelet: grid blocksize 8x8")),
    "in parts": (SYRK, ("loop 1: gridify(i, j)", "loop k: rfactor 3", "codelet: pack", "codelet: grid blocksize 4x4")),
    "blocks that wait for each other": (
        STEPS, ("loop 2: gridify(i, j)", "loop 4: gridify(i, j)", "loop t: persistent", "codelet: pack", GRID[2])),
}  # fmt: skip


CASES = {name: Case(text, lines, SIZES) for name, (text, lines) in LINES.items()}


def planned(name: str, sizes: Mapping[str, int] | None) -> Plan:
    return kernel_cases.planned(*LINES[name], sizes)


KERNEL = planned("upper", SIZES[0]).kernels[0]


@given(
    st.integers(-5, 5).filter(bool), st.integers(-5, 5), st.integers(-40, 40), st.integers(1, 12), st.integers(1, 12)
)
def test_every_block_once(a: int, b: int, c: int, columns: int, rows: int) -> None:
    """What the lines of a kernel make of the launch, against the condition."""
    packing = CompactGrid(a, b, c, columns, rows)
    live = {(x, y) for x in range(columns) for y in range(rows) if a * x + b * y + c >= 0}
    width, height = packing.blocks
    found = block_positions.taken(replace(KERNEL, packing=packing), packing.blocks)
    assert len(found) == len(set(found))
    assert set(found) == live
    assert packing.exact == (len(found) == width * height)


@pytest.mark.wide
@compiler
def test_what_the_loops_give(tmp_path: Path) -> None:
    """In CUDA C, where sizes are constants."""
    assert not kernel_cases.wrong_in_c(CASES, tmp_path, (True,), 1e-5)


@pytest.mark.wide
@simulator
def test_what_the_loops_give_in_numba(tmp_path: Path) -> None:
    assert not kernel_cases.wrong_in_numba(CASES, tmp_path, True, 1e-5)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", CASES)
def test_it_is_proved_and_leaves_blocks_out(name: str) -> None:
    """Fewer blocks than the grid has; and with one row of them less the proof finds what is missing."""
    original, done = load(CASES[name].text).codelet, planned(name, SIZES[0])
    proof = prove_plan(original, done, SIZES[0])
    assert proof.verdict == "proved", proof.reason
    env = {**SIZES[0], "t": 0}
    packed = [k for k in done.kernels if k.packing is not None]
    assert packed
    for kernel in packed:
        assert prod(launched_blocks(kernel, env)) <= 0.9 * prod(blocks(kernel, env))

    def less(packing: CompactGrid | None) -> CompactGrid | None:
        return None if packing is None else replace(packing, c=packing.c - abs(packing.a))

    wrong = replace(done, steps=with_kernels(done.steps, lambda k: replace(k, packing=less(k.packing))))
    assert prove_plan(original, wrong, SIZES[0]).verdict != "proved"


def test_where_nothing_is_packed() -> None:
    """Sizes that are arguments, grids of which all blocks have something to do, and those of one dimension."""
    assert not any(k.packing for k in planned("upper", None).kernels)
    square = schedule(Analysis(load(triangle("0", "m")).codelet), parse_lines(["codelet: pack"])).codelet
    assert not any(k.packing for k in lower(specialize(square, SIZES[0]), blocks=True).kernels)
    alone = schedule(Analysis(load(triangle("i", "m")).codelet), parse_lines(["codelet: pack"])).codelet
    assert not any(k.packing for k in lower(specialize(alone, SIZES[0]), blocks=True).kernels)


def test_what_wraps_is_not_linear() -> None:
    """Unsigned numbers are never less than zero, so that no block is idle."""
    text = triangle("0", "m").replace("A[i][j] = A", "if ((unsigned)j - (unsigned)i >= 0u) A[i][j] = A")
    done = schedule(Analysis(load(text).codelet), parse_lines(GRID)).codelet
    assert not any(k.packing for k in lower(specialize(done, SIZES[0]), blocks=True).kernels)
