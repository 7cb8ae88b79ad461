"""Sums in other groups: half of a square, factors apart. They give what the loops give, are proved, and are undone."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from looptune.core.errors import DirectiveError, IllegalTransform
from looptune.frontend import load
from looptune.ir import c_printer, interpreter
from looptune.ir.nodes import Assign, Binary, Loop, Stmt, Var
from looptune.ir.rewrite import walk, walk_stmts
from looptune.ir.specialize import specialize
from looptune.lower.pipeline import lower
from looptune.lower.plan import Kernel, Plan, with_kernels
from looptune.lower.plan_check import prove_plan
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import ScheduleResult, schedule
from looptune.schedule.directive_lines import parse_lines
from looptune.schedule.directives.base import statement_names
from looptune.schedule.directives.reduction_simplification import simplify_reductions, undo_regrouping
from tests.helpers import cross_check, cuda_c_on_cpu

simulator = pytest.mark.skipif(not cross_check.CUDA, reason="needs the package numba-cuda")
compiler = pytest.mark.skipif(cuda_c_on_cpu.GXX is None, reason="needs g++")
PARAMS = "int n, int m, double a, double A[n][m], double B[n][m], double C[n][n], double x[n], double y[m]"


@dataclass(frozen=True)
class Case:
    body: str
    lines: tuple[str, ...]
    sums: int

    @property
    def text(self) -> str:
        return f"void f({PARAMS}) {{ {self.body} }}\n"


SQUARE = "for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) for (int k = 0; k < m; k++)"
TILES = ("loop i: box 4", "loop j: box 4", "loop i: unroll 2, jam", "loop j: unroll 4, jam", "loop k: tile k:3")
CASES = {
    "fold": Case(f"{SQUARE} C[i][j] += A[i][k] * A[j][k];", ("loop i: fold",), 1),
    "both products": Case(
        f"{SQUARE} {{ C[i][j] += a * A[i][k] * B[j][k]; C[i][j] += B[i][k] * a * A[j][k]; }}", ("loop i: fold",), 1
    ),
    "a sum of products": Case(
        f"{SQUARE} C[i][j] += (A[i][k] * B[j][k] + A[j][k] * B[i][k]) * y[k];", ("loop i: fold",), 1
    ),
    "tiles": Case(
        f"{SQUARE} C[i][j] = a * A[i][k] * A[j][k] + C[i][j];",
        ("loop i: fold", *TILES, "loop k: stage A", "codelet: grid blocksize 4x2"), 8,
    ),
    "part of a square": Case(
        "for (int i = 1; i < n - 1; i++) for (int j = 1; j < n - 1; j++)"
        " for (int k = 0; k < m; k++) C[j + 1][i] += x[i] * A[i][k] * x[j] * A[j][k];",
        ("loop i: fold", "loop i: box 2", "loop j: box 2", "loop i: unroll 2, jam"), 2,
    ),
    "every second": Case(
        "for (int i = 0; i < n; i += 2) for (int j = 0; j < n; j += 2)"
        " for (int k = 0; k < m; k++) for (int l = 0; l <= k; l++) C[i][j] += A[i][k] * A[j][l] + A[j][k] * A[i][l];",
        ("loop i: fold",), 1,
    ),
    "factor": Case(f"{SQUARE} C[i][j] += a * A[i][k] * B[j][k];", ("loop k: factor",), 1),
    "factors": Case(
        f"{SQUARE} C[i][j] += x[i] * A[i][k] * a * x[j];",
        ("loop k: factor", "loop i: unroll 3, jam", "loop j: unroll 2, jam", "loop k: tile k:4"), 12,
    ),
    "factor of parts": Case(
        f"{SQUARE} C[i][j] += A[i][k] * (a * B[j][k]);",
        ("loop k: factor", "loop i: unroll 2, jam", "loop k: rfactor 3"), 3,
    ),
    "half in parts": Case(
        f"{SQUARE} C[i][j] += A[i][k] * a * A[j][k];", ("loop i: fold", "loop j: box", "loop k: rfactor 3"), 1
    ),
    "tiles in parts": Case(
        f"for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) C[i][j] *= a; {SQUARE} C[i][j] += A[i][k] * A[j][k];",
        ("loop 3: fold", *(line.replace("i:", "3:").replace("j:", "4:") for line in TILES),
         "loop k: rfactor 2", "loop k: stage A, buffers 2", "codelet: grid blocksize 4x2"), 8,
    ),
    "parts without a box": Case(
        f"{SQUARE} C[i][j] += A[i][k] * A[j][k];", ("loop i: fold", "loop k: rfactor 2"), 0,
    ),
    "parts of two sums": Case(
        f"{SQUARE} {{ C[i][j] += A[i][k] * A[j][k]; C[i][j] += B[i][k] * B[j][k] * y[k]; }}",
        ("loop i: fold", "loop j: box", "loop k: rfactor 2"), 1,
    ),
    "of two": Case(
        "for (int i = 0; i < n; i++) for (int k = 0; k < m; k++) { x[i] += A[i][k] * a; x[i] += a * y[k] * B[i][k]; }",
        ("loop k: factor",), 1,
    ),
}  # fmt: skip
SIZES = ({"n": 7, "m": 5}, {"n": 8, "m": 6}, {"n": 3, "m": 0}, {"n": 1, "m": 4})


def scheduled(text: str, lines: Sequence[str], *, reassociate: bool = True) -> ScheduleResult:
    return schedule(Analysis(load(text).codelet, reassociate), parse_lines(lines), sums=True)


def planned(text: str, lines: Sequence[str], sizes: Mapping[str, int], *, blocks: bool = True) -> Plan:
    return lower(specialize(scheduled(text, lines).codelet, sizes), blocks=blocks)


def test_a_sum_without_terms_leaves_its_element() -> None:
    """It may lie outside the array, and its factor may be infinite: nothing times that is no number."""
    nest = "for (int j = 0; j < 2 * n; j++) for (int k = j; k < n; k++) y[j] += a * x[k];"
    codelet = load(f"void f(int n, double a, double x[n], double y[n]) {{ {nest} }}\n").codelet
    body, made, found = simplify_reductions(codelet.body, statement_names(codelet.body), {"n", "a", "x", "y", "j", "k"})
    assert found
    given = {"x": np.ones(3), "y": np.ones(3)}
    interpreter.run(replace(codelet, body=body, locals=made), given, {"n": 3, "a": 2.0})
    assert given["y"].tolist() == [7.0, 5.0, 3.0]
    none = {"x": np.ones(0), "y": np.ones(3)}
    nest = "for (int j = 0; j < 3; j++) for (int k = 0; k < n; k++) y[j] += a * x[k];"
    codelet = load(f"void f(int n, double a, double x[n], double y[3]) {{ {nest} }}\n").codelet
    body, made, found = simplify_reductions(codelet.body, statement_names(codelet.body), {"n", "a", "x", "y", "j", "k"})
    interpreter.run(replace(codelet, body=body, locals=made), none, {"n": 0, "a": float("inf")})
    assert none["y"].tolist() == [1.0, 1.0, 1.0]


@pytest.mark.sampled(9, "wide")
@pytest.mark.sampled(2)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
@pytest.mark.parametrize("blocks", [True, False])
def test_it_is_proved_and_says_which_sums_it_reorders(case: Case, blocks: bool) -> None:
    """On a GPU as on a CPU; so many sums have a local of their own."""
    codelet = load(case.text).codelet
    for sizes in SIZES:
        made = planned(case.text, case.lines, sizes, blocks=blocks)
        assert prove_plan(codelet, made, sizes, blocks=blocks).verdict == "proved"
    made = lower(scheduled(case.text, case.lines).codelet, blocks=blocks)
    assert sum(len(k.sums) for k in made.kernels) == case.sums
    first = scheduled(case.text, case.lines).steps[0]
    assert {s.op for s in first.sums} == {"+"}


@pytest.mark.wide
@compiler
def test_what_the_loops_give(tmp_path: Path) -> None:
    """In CUDA C with every thread of every block, at sizes that tiles do not divide, and at none."""
    cases, wants = [], {}
    for name, case in CASES.items():
        codelet = load(case.text).codelet
        for number, sizes in enumerate(SIZES):
            given = cross_check.arguments(codelet, {**sizes, "a": 1.5}, number)
            key = f"{name} at {sizes}"
            wants[key] = cross_check.interpreted(codelet, given)
            cases.append(cuda_c_on_cpu.Case(key, planned(case.text, case.lines, sizes), codelet, given))
    found = cuda_c_on_cpu.run(cases, tmp_path)
    wrong = {key: off for key, want in wants.items() if (off := cross_check.off(want, found[key], 1e-12)) is not None}
    assert not wrong, wrong


@pytest.mark.wide
@simulator
def test_what_the_loops_give_in_numba(tmp_path: Path) -> None:
    from looptune.backends.numba_cuda.backend import NumbaCuda

    programs, wants = [], {}
    for name in ("tiles", "factor of parts", "part of a square"):
        case = CASES[name]
        codelet = load(case.text).codelet
        given = cross_check.arguments(codelet, {"n": 7, "m": 5, "a": 1.5})
        wants[name] = cross_check.interpreted(codelet, given)
        emitted = NumbaCuda().emit(lower(scheduled(case.text, case.lines).codelet, blocks=True))
        programs.append(cross_check.Emitted(name, emitted, "f", given))
    assert cross_check.misses(programs, wants, tmp_path, 1e-12) == {}


def product(seed: int) -> tuple[str, bool]:
    """A sum of random products, and whether it is the same for (i, j) and (j, i)."""
    rng = random.Random(seed)
    arrays = ("A[{}][k]", "B[{}][k]", "x[{}]")
    terms: list[list[str]] = []
    for _ in range(rng.randint(1, 3)):
        first, second = (rng.choice(arrays) for _ in range(2))
        fixed = rng.choice([["a"], ["y[k]"], []])
        ways = [("i", "j"), ("j", "i")] if first != second else [("i", "j")]
        terms += [
            rng.sample(whole, len(whole)) for u, v in ways for whole in [[first.format(u), second.format(v), *fixed]]
        ]
    same = seed % 3 > 0
    if not same:
        terms.append(["A[i][k]", "x[j]", "x[j]"])
    rng.shuffle(terms)
    lines = [f"C[i][j] += {' * '.join(factors)};" for factors in terms]
    return f"void f({PARAMS}) {{ {SQUARE} {{ {' '.join(lines)} }} }}\n", same


@pytest.mark.long
@compiler
def test_random_sums(tmp_path: Path) -> None:
    """Sums that are the same beyond the diagonal are folded, and others refused."""
    cases, wants = [], {}
    for seed in range(9):
        text, same = product(seed)
        lines = ("loop i: fold", *(TILES if seed % 2 else ()))
        if not same:
            with pytest.raises(DirectiveError, match=r"iteration \(i, j\) must add"):
                scheduled(text, lines)
            continue
        codelet, sizes = load(text).codelet, {"n": 5 + seed % 4, "m": 3}
        made = planned(text, lines, sizes)
        assert prove_plan(codelet, made, sizes).verdict == "proved"
        given = cross_check.arguments(codelet, {**sizes, "a": 0.5}, seed)
        wants[str(seed)] = cross_check.interpreted(codelet, given)
        cases.append(cuda_c_on_cpu.Case(str(seed), made, codelet, given))
    found = cuda_c_on_cpu.run(cases, tmp_path)
    assert {key: cross_check.off(want, found[key], 1e-12) for key, want in wants.items()} == dict.fromkeys(wants)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_undone(case: Case) -> None:
    """What the sums stand for is there again, in the loops where it was, in whatever order."""

    def leaves(body: tuple[Stmt, ...]) -> list[list[str]]:
        loops = [s for s in walk_stmts(body) if isinstance(s, Loop)]
        return [sorted(repr(s) for s in walk_stmts(loop.body) if isinstance(s, Assign)) for loop in loops]

    body = scheduled(case.text, case.lines).codelet.body
    made, held, found = simplify_reductions(body, statement_names(body), {"C_sum"})
    assert {v.name for v in held} == {s.own for s in found} != set()
    assert "C_sum" not in {s.own for s in found}
    assert made != body
    assert leaves(undo_regrouping(made, found)) == leaves(body)


def test_the_loop_has_no_factor_left() -> None:
    """Two factors are multiplied with the sum, in their order, and one sum is added to two elements."""
    case = CASES["factors"]
    (kernel,) = lower(scheduled(case.text, case.lines[:1]).codelet, blocks=True).kernels
    text = c_printer.body(replace(load(case.text).codelet, body=kernel.body))
    assert "C_sum = C_sum + A[i][k];" in text or "C_sum += A[i][k];" in text
    assert "C[i][j] += x[i] * (a * (x[j] * C_sum));" in text
    case = CASES["both products"]
    (kernel,) = lower(scheduled(case.text, case.lines).codelet, blocks=True).kernels
    values = [s.value for s in walk_stmts(kernel.body) if isinstance(s, Assign) and isinstance(s.target, Var)]
    assert sum(isinstance(v, Binary) for v in values) == 2
    assert not any(n == Var("a", "double") for v in values for n in walk(v))


@pytest.mark.parametrize(
    "inside",
    [
        "C[i][j] += a * A[i][k]; y[k] = C[i][j];",
        "C[i][j] += a * C[j][i];",
        "{ double t = A[i][k]; C[i][j] += a * t; }",
        "C[i][k] += a * A[i][j];",
        "C[i][j] -= a * A[i][k];",
        "if (A[i][k] > 0) C[i][j] += a * A[i][k];",
        "if (k > 1) C[i][j] += a * A[i][k];",
        "C[i][j] += a * A[i][k]; C[i][j] += B[i][k];",
        "C[i][j] += a;",
    ],
)
def test_what_has_no_factor_or_is_used_otherwise_is_refused(inside: str) -> None:
    text = f"void f({PARAMS}) {{ {SQUARE} {{ {inside} }} }}\n"
    with pytest.raises(DirectiveError, match="no sum in loop k has a loop-invariant factor"):
        scheduled(text, ("loop k: factor",))


@pytest.mark.wide
@compiler
def test_terms_that_change_between_two_sums_are_made_twice(tmp_path: Path) -> None:
    """Two elements get the same terms, but the loop sets what these read in between."""
    inside = "{ C[i][0] += a * y[k] * x[k]; y[k] += B[0][k]; C[i][1] += a * y[k] * x[k]; }"
    text = f"void f({PARAMS}) {{ for (int i = 0; i < 2; i++) for (int k = 0; k < m; k++) {inside} }}\n"
    codelet, sizes = load(text).codelet, {"n": 3, "m": 3}
    made = planned(text, ("loop k: factor",), sizes)
    assert len(made.kernels[0].sums) == 2
    assert prove_plan(codelet, made, sizes).verdict == "proved"
    given = cross_check.arguments(codelet, {**sizes, "a": 0.5})
    found = cuda_c_on_cpu.run([cuda_c_on_cpu.Case("one", made, codelet, given)], tmp_path)
    assert cross_check.off(cross_check.interpreted(codelet, given), found["one"], 1e-12) is None


def test_not_where_the_order_of_sums_counts() -> None:
    for name in ("fold", "factor"):
        case = CASES[name]
        with pytest.raises(IllegalTransform, match=r"reorders the reduction \+ of C\[i\]\[j\], whose order"):
            scheduled(case.text, case.lines, reassociate=False)


def test_a_sum_that_stands_for_something_else_is_not_proved() -> None:
    """The proof looks at what each term stands for."""
    case, sizes = CASES["both products"], {"n": 4, "m": 3}
    codelet = load(case.text).codelet
    right = planned(case.text, case.lines, sizes)

    def swapped(kernel: Kernel) -> Kernel:
        return replace(kernel, sums=tuple(replace(s, terms=(s.terms[0], s.terms[0])) for s in kernel.sums))

    wrong = replace(right, steps=with_kernels(right.steps, swapped))
    assert prove_plan(codelet, right, sizes).verdict == "proved"
    assert prove_plan(codelet, wrong, sizes).verdict != "proved"
