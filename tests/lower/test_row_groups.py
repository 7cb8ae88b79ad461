"""Rows that one thread would add up, told apart: what may go to threads of its own, and what may not."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from looptune.frontend import load
from looptune.ir import c_printer
from looptune.ir.nodes import If, Loop, Stmt
from looptune.ir.specialize import specialize
from looptune.lower.passes.row_groups import split_by_row
from looptune.lower.pipeline import lower
from looptune.lower.plan import Plan, evaluate_size
from looptune.lower.plan_check import prove_plan
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from tests.helpers import cross_check, cuda_c_on_cpu
from tests.helpers.split_reduction_cases import PRODUCTS, SCALED

HALVES = """
void f(int n, int m, double a, double C[n][n], double A[n][m]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      for (int k = 0; k < m; k++) C[i][j] += a * A[i][k] * A[j][k];
}
"""
PARAMS = "int n, int m, double C[n][n], double D[n], double P[8][m][n][n], double x"
NEST = "for (int i = 0; i < n / 2; i++) for (int j = 0; j < n / 2; j++)"
FIRST = "{ double s = C[2*i][j]; for (int p = 0; p < m; p++) s += P[0][p][i][j]; C[2*i][j] = s; }"
SECOND = "{ double t = C[2*i+1][j]; for (int p = 0; p < m; p++) t += P[1][p][i][j]; C[2*i+1][j] = t; }"


def rows(inside: str, nest: str = NEST) -> list[str]:
    """Each in C; the loop p is over the parts."""
    codelet = load(f"void f({PARAMS}) {{ {nest} {{ {inside} }} }}\n").codelet
    chain, given, body = list[Loop](), None, codelet.body
    while len(body) == 1 and isinstance(body[0], (Loop, If)) and len(chain) < 3:
        stmt = body[0]
        if isinstance(stmt, If):
            given, body = stmt.cond, stmt.then
        elif stmt.var == "p":
            break
        else:
            chain.append(stmt)
            body = stmt.body

    def text(row: tuple[Stmt, ...]) -> str:
        return " ".join(c_printer.body(replace(codelet, body=row)).split())

    return [text(row) for row in split_by_row(body, chain, given, "p")]


def assigned(row: str) -> list[str]:
    """The elements of arrays that it changes, in its order."""
    return re.findall(r"([A-Z](?:\[[^]]*\])+) [-+*]?= ", row)


def test_two_rows() -> None:
    one, two = rows(FIRST + SECOND)
    assert assigned(one) == ["C[2 * i][j]"]
    assert assigned(two) == ["C[2 * i + 1][j]"]


def test_one_loop_over_the_parts_of_both() -> None:
    """It is one again for each of them, of what it has there."""
    four = ("C[2*i][2*j]", "C[2*i+1][2*j]", "C[2*i][2*j+1]", "C[2*i+1][2*j+1]")
    begin = " ".join(f"double s{k} = {c};" for k, c in enumerate(four))
    parts = " ".join(f"s{k} += P[{k}][p][i][j];" for k in range(4))
    end = " ".join(f"{c} = s{k};" for k, c in enumerate(four))
    one, two = rows(f"{begin} for (int p = 0; p < m; p++) {{ {parts} }} {end}")
    assert assigned(one) == ["C[2 * i][2 * j]", "C[2 * i][2 * j + 1]"]
    assert one.count("for (") == two.count("for (") == 1
    assert "s0 += P[0][p][i][j]; s2 += P[2][p][i][j];" in one


def test_what_stands_before_and_behind_goes_with_its_row() -> None:
    one, two = rows(f"C[2*i][j] *= 3; C[2*i+1][j] *= 3; {FIRST} {SECOND} C[2*i][j] -= D[i]; C[2*i+1][j] -= D[i];")
    assert assigned(one) == 3 * ["C[2 * i][j]"]
    assert assigned(two) == 3 * ["C[2 * i + 1][j]"]


def test_what_adds_nothing_goes_with_the_first() -> None:
    one, two = rows(f"{FIRST} {SECOND} D[i] = x;", NEST.replace("n / 2; j", "1; j"))
    assert assigned(one) == ["C[2 * i][j]", "D[i]"]
    assert assigned(two) == ["C[2 * i + 1][j]"]


def test_a_condition_is_asked_again_where_it_may_have_changed() -> None:
    one, two = rows(f"{FIRST} {SECOND} if (D[i] > 0) {{ D[i] = 0; D[i + 1] += x; }} if (D[i] > 0) D[i + 2] += x;")
    assert one.count("if (D[i] > 0)") == 2
    assert two.count("if (D[i] > 0)") == 0


def test_conditions_go_with_their_rows() -> None:
    one, two = rows(f"if (j < i) {{ {FIRST} {SECOND} }}")
    assert one.count("if (j < i)") == two.count("if (j < i)") == 0
    one, two = rows(f"D[j] = x; if (j < i) {{ {FIRST} {SECOND} }}")
    assert assigned(one) == ["D[j]", "C[2 * i][j]"]
    assert one.count("if (j < i)") == two.count("if (j < i)") == 1


@pytest.mark.parametrize("around", ["", "if (j <= i)", "if (j < i)"])
@pytest.mark.parametrize("below", ["{q} <= {p}", "1"])
def test_elements_beyond_the_diagonal(around: str, below: str) -> None:
    """C[2*i][2*j+1] of one row is C[2*j][2*i+1] of the other where i is j, but for conditions."""
    sums = ""
    for k, (b, a) in enumerate((b, a) for a in (0, 1) for b in (0, 1)):
        p, q = f"2*i+{b}", f"2*j+{a}"
        sums += (
            f"if ({below.format(p=p, q=q)}) {{ double s{k} = 0; for (int p = 0; p < m; p++) s{k} += P[{k}][p][i][j];"
            f" C[{p}][{q}] += s{k}; if ({q} < {p}) C[{q}][{p}] += s{k}; }}"
        )
    meets = below == "1" and around != "if (j < i)"
    assert len(rows(f"{around} {{ {sums} }}")) == (1 if meets else 2)


@pytest.mark.parametrize(
    "inside",
    [
        FIRST,
        FIRST + SECOND.replace("2*i+1", "2*i"),
        FIRST + SECOND.replace("2*i+1", "i"),
        FIRST + SECOND.replace("C[2*i+1][j]", "C[2*i][j+1]"),
        FIRST + SECOND.replace("C[2*i+1][j]", "C[i*i][j]"),
        FIRST.replace("double s =", "x =").replace("s += ", "x += ").replace("= s", "= x")
        + SECOND.replace("= t", "= x + t"),
        FIRST + SECOND + "C[2*i][j] -= C[2*i+1][j];",
        FIRST + SECOND + "for (int k = 0; k < m; k++) C[k][j] = 0;",
        FIRST + SECOND + "D[(int)C[2*i][j]] = C[2*i+1][j];",
        f"D[i] = x; if (D[i] > 0) {{ {FIRST} }} if (D[i] > 1) {{ {SECOND} }}",
    ],
)
def test_what_is_not_apart_stays_together(inside: str) -> None:
    assert len(rows(inside)) == 1


def test_names_that_isl_knows_and_that_are_alike() -> None:
    """Variables that are called like words of isl, or as its unknown places are here."""
    nest = "for (int mod = 0; mod < n / 2; mod++) for (int e0 = 0; e0 < n / 2; e0++)"
    inside = (FIRST + SECOND).replace("[i]", "[mod]").replace("2*i", "2*mod").replace("[j]", "[e0]")
    assert len(rows(inside, nest)) == 2


# -- in the kernels that add parts up -------------------------------------------------------------------------------

UNROLLED = ("loop i: unroll 2, jam", "loop j: unroll 3, jam", "loop k: rfactor 3", "codelet: grid blocksize 4x2")
ROWS = {
    "between statements": (SCALED, UNROLLED, ({"n": 5, "m": 7, "l": 6}, {"n": 4, "m": 6, "l": 0}), 2),
    "factors": (HALVES, ("loop k: factor", *UNROLLED), ({"n": 5, "m": 4},), 2),
    "columns alone": (SCALED, UNROLLED[1:], ({"n": 5, "m": 7, "l": 6},), 0),
    "a triangle": (
        PRODUCTS,
        ("loop p: unroll 2, jam", "loop q: box 2", "loop q: unroll 2, jam", "loop i: rfactor 2"),
        ({"n": 7, "m": 5},),
        2,
    ),
    "both halves of a square": (
        HALVES,
        ("loop i: fold", "loop i: box 4", "loop j: box 4", "loop i: unroll 4, jam", "loop j: unroll 2, jam",
         "loop k: rfactor 2"),
        ({"n": 9, "m": 5}, {"n": 4, "m": 2}),
        4,
    ),
}  # fmt: skip


def planned(text: str, lines: Sequence[str], sizes: Mapping[str, int] | None) -> Plan:
    done = schedule(Analysis(load(text).codelet), parse_lines(lines), sums=True).codelet
    return lower(done if sizes is None else specialize(done, sizes), blocks=True)


@pytest.mark.sampled(9, "wide")
@pytest.mark.parametrize("case", ROWS.values(), ids=ROWS.keys())
def test_blocks_for_each_row(case: tuple[str, tuple[str, ...], tuple[dict[str, int], ...], int]) -> None:
    """So many; what is launched is proved."""
    text, lines, every, count = case
    made = planned(text, lines, every[0])
    adding = next(k for k in made.kernels if made.partial_sums[0][0] in k.arrays and not k.makes_parts)
    assert (0 if adding.z_axis is None else evaluate_size(adding.z_axis.hi, {})) == count
    for sizes in every:
        assert prove_plan(load(text).codelet, planned(text, lines, sizes), sizes).verdict == "proved"


def test_a_cpu_adds_them_up_in_one_pass() -> None:
    text, lines, _, _ = ROWS["between statements"]
    done = schedule(Analysis(load(text).codelet), parse_lines(lines)).codelet
    assert all(k.z_axis is None or k.makes_parts for k in lower(done).kernels)


@pytest.mark.wide
@pytest.mark.skipif(cuda_c_on_cpu.GXX is None, reason="needs g++")
def test_what_the_loops_give(tmp_path: Path) -> None:
    """In CUDA C with every thread of every block, for sizes that are constants or arguments."""
    cases, wants = [], {}
    for name, (text, lines, every, _) in ROWS.items():
        codelet = load(text).codelet
        for sizes, known in ((some, known) for some in every for known in (some, None)):
            given = cross_check.arguments(codelet, {**sizes, "a": 1.5}, 1)
            key = f"{name} at {sizes}{' as arguments' if known is None else ''}"
            wants[key] = cross_check.interpreted(codelet, given)
            cases.append(cuda_c_on_cpu.Case(key, planned(text, lines, known), codelet, given))
    found = cuda_c_on_cpu.run(cases, tmp_path)
    wrong = {key: off for key, want in wants.items() if (off := cross_check.off(want, found[key], 1e-12)) is not None}
    assert not wrong, wrong


@pytest.mark.wide
@pytest.mark.skipif(not cross_check.CUDA, reason="needs the package numba-cuda")
def test_what_the_loops_give_in_numba(tmp_path: Path) -> None:
    from looptune.backends.numba_cuda.backend import NumbaCuda

    programs, wants = [], {}
    for name in ("between statements", "both halves of a square"):
        text, lines, (sizes, *_), _ = ROWS[name]
        codelet = load(text).codelet
        given = cross_check.arguments(codelet, {**sizes, "a": 0.5})
        wants[name] = cross_check.interpreted(codelet, given)
        programs.append(cross_check.Emitted(name, NumbaCuda().emit(planned(text, lines, None)), "f", given))
    assert cross_check.misses(programs, wants, tmp_path, 1e-12) == {}
