"""Elements that a team's lanes keep in registers: which they are, and that results are those of the loops in order."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from looptune.backends.cuda.cuda_c_writer import file_text
from looptune.frontend import load
from looptune.ir.nodes import Const
from looptune.ir.specialize import specialize
from looptune.lower.machine import Machine
from looptune.lower.passes.lane_registers import keep_lane_elements
from looptune.lower.pipeline import finish, lower
from looptune.lower.plan import Plan
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from tests.helpers import cross_check, cuda_c_on_cpu, reduction_cases
from tests.helpers.paths import POLYBENCH
from tests.helpers.split_reduction_cases import BOTH, TOGETHER, TWICE
from tests.helpers.team_reduction_cases import ROWS

HEAD = "void f(int l, int n, int m, double A[l][n][m], double t[l][n], double y[l][m], double z[m])\n"
TEAMS = "{ for (int k = 0; k < l; k++) { %s for (int i = 0; i < n; i++) { %s %s } %s } }"
BEGIN = "for (int j = 0; j < m; j++) y[k][j] = k;"
SUM = "for (int j = 0; j < m; j++) t[k][i] += A[k][i][j];"
ADD = "for (int j = 0; j < m; j++) y[k][j] -= A[k][i][j] * t[k][i];"
BY_TEAMS = HEAD + TEAMS % (BEGIN, SUM, ADD, "")
NUMBERS = HEAD + TEAMS % (BEGIN, SUM, ADD.replace("t[k][i]", "(t[k][i] + (j - 5) / 2)"), "")
BELOW = BY_TEAMS.replace("int j = 0; j < m;", "int j = -2; j < m - 2;").replace("[j]", "[j + 2]")
LEFT = {
    "not begun": TEAMS % ("", SUM, ADD, ""),
    "begun with itself": TEAMS % ("for (int j = 0; j < m; j++) y[k][j] = 2 * y[k][j];", SUM, ADD, ""),
    "begun in part": TEAMS % ("for (int j = 1; j < m; j++) y[k][j] = k;", SUM, ADD, ""),
    "another lane's": TEAMS % (BEGIN, SUM, ADD.replace("y[k][j] -=", "y[k][m - 1 - j] -="), ""),
    "one element of all": TEAMS % (BEGIN, SUM, "t[k][i] += y[k][0];" + ADD, ""),
    "read by one lane": TEAMS % (BEGIN, SUM, ADD, "t[k][0] += y[k][m - 1];"),
    "not in a loop": TEAMS % (BEGIN, SUM, "", ""),
}


def planned(text: str, lines: tuple[str, ...], sizes: dict[str, int]) -> Plan:
    return lower(specialize(reduction_cases.scheduled(text, *lines).codelet, sizes), blocks=True)


def found(made: Plan) -> list[tuple[str, int]]:
    """The arrays in registers, and how many of them a lane has."""
    before = {v.name for k in made.kernels for v in k.locals}
    after = [v for k in made.kernels for v in keep_lane_elements(k, made).locals]
    return [(v.name, int(v.shape[0].value)) for v in after if v.name not in before]


def test_what_is_kept() -> None:
    """Parts of sums that a loop tells apart; what a team begins, changes again and again, and nobody else asks for."""
    lines = ("loop 2: parallel", "loop 1: rfactor 3", "codelet: grid blocksize 4x2")
    assert found(planned(TOGETHER, lines, {"n": 9, "m": 24})) == [("s_parts_kept", 3)]
    assert found(planned(TWICE, lines, {"n": 9, "m": 25})) == [("y_parts_kept", 4), ("z_parts_kept", 4)]
    assert found(planned(TOGETHER, lines, {})) == [], "of any size"
    assert found(planned(TOGETHER, lines, {"n": 9, "m": 129})) == [], "136 bytes"
    teams = ("loop 4: parallel", "codelet: grid blocksize 4x2")
    assert found(planned(BY_TEAMS, teams, {"l": 3, "n": 4, "m": 9})) == [("y_kept", 3)]
    assert found(planned(BELOW, teams, {"l": 3, "n": 4, "m": 9})) == [], "from -2"


@pytest.mark.parametrize(("width", "counted"), [(8, 1), (16, 2), (12, 0), (7, 0)])
def test_turns_are_counted(width: int, counted: int) -> None:
    """Where every lane has as many."""
    made = planned(ROWS, ("loop 2: parallel", "codelet: grid blocksize 8x2"), {"n": 5, "m": width})
    (kernel,) = made.kernels
    team = keep_lane_elements(kernel, made).team
    assert team is not None
    (tree,) = team.trees
    assert (tree.loop.hi == Const(counted)) == (counted > 0)
    assert (tree.loop.mode == "sequential") == (counted > 0)


@pytest.mark.parametrize("name", LEFT)
def test_what_is_left(name: str) -> None:
    """An element whose value before counts, that another lane asks for, or that is used once."""
    loop = 3 if name == "not begun" else 4
    lines = (f"loop {loop}: parallel", "codelet: grid blocksize 4x2")
    assert found(planned(HEAD + LEFT[name], lines, {"l": 3, "n": 4, "m": 9})) == []


BOTH_PRODUCTS = {
    "atax": (("loop 2.1: fuse", "loop 3: parallel", "loop 2.1: unroll 4, jam", "loop 2.1: rfactor 256"), 5),
    "bicg": (("loop 2.1: fuse 3", "loop 3.1: fuse", "loop 3.1: parallel", "loop 2.1: unroll 4, jam",
              "loop 2.1: rfactor 256"), 4),
    "mvt": (("nest 3: permute j, i", "loop 1: fuse", "loop 2: fuse", "loop 2: parallel", "loop 1: unroll 4, jam",
             "loop 1: rfactor 256"), 4),
}  # fmt: skip
"""In one read of a matrix; and how often a block waits for its threads in an iteration over four of its rows."""


@pytest.mark.parametrize("name", BOTH_PRODUCTS)
def test_two_launches(name: str) -> None:
    """One for the rows and the parts of columns, which are stored once, and one that adds up the parts."""
    lines, barriers = BOTH_PRODUCTS[name]
    codelet = load(POLYBENCH / f"{name}.c").codelet
    done = schedule(Analysis(codelet), parse_lines((*lines, "codelet: grid blocksize 32x16")))
    made = lower(specialize(done.codelet, {"n": 4096, "nx": 4096, "ny": 4096}), blocks=True)
    ((array, count),) = found(made)
    assert (array.endswith("_parts_kept"), count, len(made.kernels)) == (True, 8, 2)
    first, _ = device_text(made)
    assert first.count("__syncthreads()") == barriers
    assert len(re.findall(rf"\b{array.removesuffix('_kept')}\[", first)) == 1, "stored"


def device_text(made: Plan) -> list[str]:
    """Of each kernel."""
    return re.split(r"(?=__launch_bounds__)", file_text(finish(made, Machine(blocks=True))))[1:]


def cases() -> Iterator[cuda_c_on_cpu.Case]:
    """Random sizes, blocks and parts."""
    rng = random.Random(5)
    for number in range(30):
        text = (TOGETHER, BOTH, TWICE, BY_TEAMS, NUMBERS, BELOW)[number % 6]
        sizes = {"n": rng.randint(1, 30), "m": rng.randint(2, 60), "l": rng.randint(1, 5)}
        block = f"codelet: grid blocksize {rng.choice((4, 8, 32))}x{rng.choice((1, 2, 3, 8))}"
        lines: tuple[str, ...] = ("loop 4: parallel", block)
        if text in (TOGETHER, BOTH, TWICE):
            jam = (f"loop 1: unroll {rng.choice((2, 3))}, jam",) * rng.randint(0, 1)
            lines = ("loop 2: parallel", *jam, f"loop 1: rfactor {rng.randint(2, 9)}", block)
        codelet = reduction_cases.analysis(text).codelet
        start = reduction_cases.given(codelet, sizes, number)
        yield cuda_c_on_cpu.Case(f"{number}: {lines} {sizes}", planned(text, lines, sizes), codelet, start)


@pytest.mark.wide
@pytest.mark.skipif(cuda_c_on_cpu.GXX is None, reason="needs g++")
def test_results_are_the_loops(tmp_path: Path) -> None:
    """Whatever order the threads of a block take turns in, from barrier to barrier; most of them keep something."""
    every = list(cases())
    assert sum(bool(found(c.plan)) for c in every) > len(every) // 2
    results = cuda_c_on_cpu.run(every, tmp_path)
    wrong = {
        c.name: cross_check.off(cross_check.interpreted(c.codelet, c.arguments), results[c.name], 1e-12) for c in every
    }
    assert not any(wrong.values()), wrong


@pytest.mark.wide
@pytest.mark.skipif(not cross_check.CUDA, reason="needs the package numba-cuda")
def test_numba_s_results_are_too(tmp_path: Path) -> None:
    """In its simulator; and a compiler makes registers of the arrays."""
    from looptune.backends.numba_cuda.backend import NumbaCuda

    every = [c for k, c in enumerate(cases()) if k % 6 < 5][::5]  # NumPy adds -2 to no unsigned number
    emitted = [cross_check.Emitted(c.name, NumbaCuda().emit(c.plan), "f", c.arguments) for c in every]
    results = cross_check.simulated(emitted, tmp_path)
    wrong = {
        c.name: cross_check.off(cross_check.interpreted(c.codelet, c.arguments), results[c.name], 1e-12) for c in every
    }
    assert not any(wrong.values()), wrong
    lines = ("loop 2: parallel", "loop 1: unroll 4, jam", "loop 1: rfactor 256", "codelet: grid blocksize 32x16")
    large = planned(TOGETHER, lines, {"n": 4096, "m": 4096})
    assert found(large) == [("s_parts_kept", 8)]
    assert all(used.local_bytes == 0 for used in NumbaCuda().build(large).resources)
