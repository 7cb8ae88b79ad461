"""Grids of more blocks of rows than a GPU takes along y are launched along x, and compute the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from looptune.backends.base import Backend, Binary, Program
from looptune.deploy import any_size_program
from looptune.lower.machine import Machine
from looptune.lower.passes import tall_grids
from looptune.lower.pipeline import finish
from looptune.lower.plan import Plan, launched_blocks
from tests.helpers import cross_check, cuda_c_on_cpu, kernel_cases
from tests.helpers.kernel_cases import Case
from tests.helpers.tensor_cases import CASES as PRODUCTS

ROWS = """
void f(int n, int m, float A[n][m], float x[n])
{
    for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) A[i][j] = A[i][j] * 2 + x[i];
    for (int i = 0; i < n; i++) { float s = 0; for (int j = 0; j < m; j++) s += A[i][j]; x[i] = s; }
}
"""
SIZES = ({"n": 61, "m": 40},)
CASES = {
    "rows": Case(ROWS, (), SIZES),
    "teams": Case(ROWS, ("loop 4: parallel", "codelet: grid blocksize 8x4"), SIZES),
    "strips of blocks": Case(ROWS, ("codelet: swizzle 2",), SIZES),
    "tensor cores": replace(PRODUCTS["a product"], sizes=({"n": 150, "m": 41, "l": 19},)),
}
compiler = pytest.mark.skipif(cuda_c_on_cpu.GXX is None, reason="needs g++")
simulator = pytest.mark.skipif(not cross_check.CUDA, reason="needs the package numba-cuda")


@pytest.fixture
def low(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU that takes three blocks along y."""
    monkeypatch.setattr(tall_grids, "MOST_BLOCKS_Y", 3)


def exchanged(plan: Plan) -> list[bool]:
    return [k.exchanged for k in finish(plan, Machine(blocks=True)).kernels]


def test_only_too_many_rows_are_exchanged() -> None:
    """Known before the launch, and with columns that fit along y."""
    for sizes, want in (((600_000, 8), True), ((520_000, 8), False), ((600_000, 4_000_000), False)):
        plan = kernel_cases.planned(ROWS, (), {"n": sizes[0], "m": sizes[1]})
        assert exchanged(plan)[0] is want
    plan = kernel_cases.planned(ROWS, (), {"n": 600_000, "m": 8})
    kernel = finish(plan, Machine(blocks=True)).kernels[0]
    assert launched_blocks(kernel, {}) == (600_000 // kernel.threads("y"), 1, 1)
    assert not any(exchanged(kernel_cases.planned(ROWS, ())))


@compiler
def test_what_the_loops_give(tmp_path: Path, low: None) -> None:
    """In CUDA C; only blocks that compute sums of one row each have no other dimension."""
    for name, case in CASES.items():
        assert any(exchanged(kernel_cases.planned(case.text, case.lines, case.sizes[0]))), name
    assert not kernel_cases.wrong_in_c(CASES, tmp_path, (True,), 1e-5)


@simulator
def test_what_the_loops_give_in_numba(tmp_path: Path, low: None) -> None:
    some = {name: CASES[name] for name in ("rows", "teams")}
    assert not kernel_cases.wrong_in_numba(some, tmp_path, True, 1e-5)


class Recording(Backend):
    """A backend that builds nothing, and keeps the plans."""

    def __init__(self) -> None:
        self.plans: list[Plan] = []

    def emit(self, plan: Plan) -> str:
        return ""

    def build(self, plan: Plan) -> Binary:
        self.plans.append(plan)
        return built(plan)

    def load(self, binary: Binary) -> Program:
        return Called()


def built(plan: Plan) -> Binary:
    return Binary("none", finish(plan, Machine(blocks=True)), "", {}, (), 0.0)


class Called(Program):
    def run(self, arrays: object, scalars: object, stream: object = None) -> None:
        """Run nothing."""

    run_within = run  # type: ignore[assignment]


def test_a_program_without_known_sizes_exchanges_for_its_call() -> None:
    """It is built at the first such call, and used again at others."""
    backend, plan = Recording(), kernel_cases.planned(ROWS, ())
    program = any_size_program.load(backend, plan, built(plan), blocks=True)
    for n in (10, 700_000, 600_000, 10):
        arrays = {"A": np.broadcast_to(np.float32(0), (n, 8)), "x": np.broadcast_to(np.float32(0), (n,))}
        program.run(arrays, {"n": n, "m": 8})
    assert [exchanged(p) for p in backend.plans] == [[True, False]]
