"""Fuse: alignment, shifts, guards, statements between the loops, what becomes of directives; and fullunroll's sizes."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from looptune.core.errors import DirectiveError, IllegalTransform, LooptuneError
from looptune.frontend import load
from looptune.ir import c_printer
from looptune.ir.nodes import Loop
from looptune.ir.rewrite import walk
from looptune.poly.translation_validation import prove
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from tests.helpers import cross_check

HEAD = "void f(int n, int m, double A[n][n], double x[n], double y[n], double z[n])\n{\n"


def made(body: str, *lines: str, values: Mapping[str, int] | None = None) -> str:
    """The body transformed, proved and run at some sizes, on one line."""
    original = load(f"{HEAD}{body}\n}}\n").codelet
    done = schedule(Analysis(original), parse_lines(lines), values).codelet
    assert prove(original, done).verdict == "proved"
    for n, m in ((6, 5), (3, 7), (1, 1)):
        given = cross_check.arguments(original, {"n": n, "m": m})
        assert cross_check.off(cross_check.interpreted(original, given), cross_check.interpreted(done, given)) is None
    return " ".join(c_printer.body(done).split())


def refusal(body: str, *lines: str, values: Mapping[str, int] | None = None) -> LooptuneError:
    with pytest.raises(LooptuneError) as refused:
        schedule(Analysis(load(f"{HEAD}{body}\n}}\n").codelet), parse_lines(lines), values)
    return refused.value


def two(first: str, then: str, lo: str = "0", hi: str = "n") -> str:
    return f"for (int i = 1; i < n - 1; i++) {{ {first} }}\nfor (int k = {lo}; k < {hi}; k++) {{ {then} }}"


@pytest.mark.parametrize(
    ("body", "after"),
    [
        (two("x[i] = 1;", "y[k] = x[k];", "1", "n - 1"),
         "for (int i = 1; i < n - 1; i++) { x[i] = 1; y[i] = x[i]; }"),
        (two("x[i] = 1;", "y[k] = x[k + 1];", "0", "n - 2"),
         "for (int i = 1; i < n - 1; i++) { x[i] = 1; y[i - 1] = x[i]; }"),
        (two("x[i] = 1;", "y[k] = 2;"),
         "for (int i = 0; i < n; i++) { if (i >= 1 && i < n - 1) { x[i] = 1; } y[i] = 2; }"),
        (two("x[i] = 1;", "y[k] = 2;", "2", "n - 2"),
         "for (int i = 1; i < n - 1; i++) { x[i] = 1; if (i >= 2 && i < n - 2) { y[i] = 2; } }"),
        ("for (int i = 0; i < n; i += 2) x[i] = 1; for (int k = 1; k < n; k += 2) x[k] = 2;",
         "for (int i = 0; i < n; i += 2) { x[i] = 1; if (i < n - 1) { x[i + 1] = 2; } }"),
        ("for (int i = 0; i < n; i++) for (int j = 0; j < i; j++) A[i][j] = 1; "
         "for (int k = 0; k < n; k++) for (int l = 0; l < k; l++) A[k][l] += 2;",
         "for (int i = 0; i < n; i++) { for (int j = 0; j < i; j++) { A[i][j] = 1; } "
         "for (int l = 0; l < i; l++) { A[i][l] += 2; } }"),
    ],
)  # fmt: skip
def test_loops_are_aligned(body: str, after: str) -> None:
    """By trip where there are equally many; else by value, over the union of both ranges under conditions."""
    assert made(body, "loop 1: fuse") == after


STAGGERED = (
    "for (int i = 1; i < n; i++) for (int j = 0; j < n; j++) A[i][j] = A[i][j] - x[j];\n"
    "for (int i = 0; i < n; i++) for (int j = 1; j < n; j++) y[i] += z[j] * x[i];"
)


def test_loops_under_a_condition_stay_siblings() -> None:
    """Where the outer ranges differ the condition is asked in the inner loops, so that these can be fused as well."""
    assert made(STAGGERED, "loop 1: fuse", "loop 2: fuse") == (
        "for (int i = 0; i < n; i++) { for (int j = 0; j < n; j++) { "
        "if (i >= 1) { A[i][j] -= x[j]; } if (j >= 1) { y[i] += z[j] * x[i]; } } }"
    )


@pytest.mark.parametrize(
    ("first", "kept"),
    [
        ("for (int j = 0; j < (int)x[i]; j++) A[i][0] = j;", "if (i >= 1) { for (int j = 0; j < (int)x[i]; j++)"),
        ("for (int j = 0; j < m / i; j++) A[i][0] = j;", "if (i >= 1) { for (int j = 0; j < m / i; j++)"),
        ("y[i] = 1; for (int j = 0; j < n; j++) A[i][j] = j;", "if (i >= 1) { y[i] = 1; for (int j = 0;"),
        ("for (int j = 0; j < n; j++) A[i][j] = j;", "for (int j = 0; j < n; j++) { if (i >= 1) {"),
    ],
)
def test_a_condition_stays_outside_of_what_may_not_be_asked_for(first: str, kept: str) -> None:
    """Bounds that are read, or divided by what may be zero, and statements beside the loop."""
    body = f"for (int i = 1; i < n; i++) {{ {first} }} for (int i = 0; i < n; i++) z[i] = 2;"
    done = schedule(Analysis(load(f"{HEAD}{body}\n}}\n").codelet), parse_lines(["loop 1: fuse"])).codelet
    assert kept in " ".join(c_printer.body(done).split())


@pytest.mark.parametrize(
    ("then", "shift"),
    [("y[k] = x[k];", 0), ("y[k] = x[k - 1];", 0), ("y[k] = x[k + 1];", 1), ("y[k] = x[k - 1] + x[k + 1];", 1),
     ("y[k] = x[k] + A[k + 1][k];", 1), ("z[k] = y[k + 1] + x[k - 1];", 0), ("y[k - 1] = 2 * x[k];", 0),
     ("y[k + 1] = x[k];", 1)],
)  # fmt: skip
def test_the_shift_is_the_smallest_legal(then: str, shift: int) -> None:
    """As many iterations as the farthest dependence reaches forward, none where it reaches backward."""
    body = two("x[i] = y[i]; A[i][i - 1] = y[i];", then, "1", "n - 1")
    text = made(body, "loop 1: fuse")
    assert ("for (int i = 1; i < n; i++)" in text, f"if (i >= {1 + shift})" in text) == (shift == 1, shift == 1)


def test_a_shift_counts_whole_steps() -> None:
    """A loop by threes that reads three ahead is shifted by one trip."""
    text = made("for (int i = 0; i < n - 4; i += 3) x[i + 1] = 1; for (int k = 0; k < n - 4; k += 3) y[k] = x[k + 4];",
                "loop 1: fuse")  # fmt: skip
    assert "if (i >= 3) { y[i - 3] = x[i + 1]; }" in text


def test_a_chain_of_loops_is_shifted_one_after_the_other() -> None:
    """Each stencil runs one iteration behind the one that it reads."""
    text = made("for (int i = 0; i < n - 2; i++) x[i] = A[0][i]; for (int i = 0; i < n - 3; i++) y[i] = x[i + 1]; "
                "for (int i = 0; i < n - 4; i++) z[i] = y[i + 1];", "loop 1: fuse 3")  # fmt: skip
    assert "if (i >= 1) { y[i - 1] = x[i]; } if (i >= 2) { z[i - 2] = y[i - 1]; }" in text


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (two("x[0] += y[i];", "z[k] = x[0];"),
         "fuse is illegal: iteration (i=1) of line 3 must run before (k=0) of line 4"),
        (two("x[i] = 1;", "y[k] = x[n - 1 - k];"), "must run before"),
        ("double t = 0; for (int i = 0; i < n; i++) t += x[i];\n for (int k = 0; k < n; k++) y[k] = t;",
         "fuse is illegal: iteration (i=1) of line 3 must run before (k=0) of line 4"),
    ],
)  # fmt: skip
def test_what_no_shift_makes_legal_is_refused_with_the_witness(body: str, message: str) -> None:
    """All of one loop before some of the other."""
    refused = refusal(body, "loop 1: fuse")
    assert isinstance(refused, IllegalTransform)
    assert message in refused.message.replace("(i=0)", "(i=1)")


def test_statements_between_go_before_or_after() -> None:
    """What the first loop needs not goes before, what depends on it after; one that both need is refused."""
    loops = "for (int i = 0; i < n; i++) x[i] = 1; {} for (int k = 0; k < n; k++) y[k] = 2;"
    assert made(loops.replace("{}", "z[0] = 3; if (m > 2) z[0] = x[0];"), "loop 1: fuse") == (
        "z[0] = 3; for (int i = 0; i < n; i++) { x[i] = 1; y[i] = 2; } if (m > 2) { z[0] = x[0]; }"
    )
    refused = refusal(loops.replace("{}", "\nz[0] = x[n - 1];").replace("= 2", "= z[0]"), "loop 1: fuse")
    assert "line 4 depends on a loop before it, and a loop after it depends on the statement" in refused.message
    assert refused.span.line == 4


@pytest.mark.parametrize(
    ("body", "line", "message"),
    [
        ("for (int i = 0; i < n; i++) x[i] = 1;", "fuse", "fuse 2: no loop after loop i in its block"),
        (two("x[i] = 1;", "y[k] = 2;"), "fuse 3", "fuse 3: only 1 loop after loop i in its block"),
        (two("x[i] = 1;", "y[k] = 2;"), "fuse 1", "fuse takes at least two loops"),
        (two("x[i] = 1;", "y[k] = 2;"), "fuse k", "number of loops is missing"),
        (two("x[i] = 1;", "y[k] = 2;").replace("k++", "k += 2"), "fuse", "fuse: loop k steps by 2, loop i by 1"),
        (two("x[i] = 1;", "y[k] = 2;").replace("int k", "long k"), "fuse",
         "fuse: loop k counts in int64, loop i in int32"),
        ("int c[4]; c[0] = 1; for (int i = 0; i < 4; i++) c[i] = n; for (int k = 0; k < c[0]; k++) y[k] = 2;", "fuse",
         "fuse: a loop before loop k assigns c, which bounds it"),
    ],
)  # fmt: skip
def test_loops_that_do_not_fit_are_refused(body: str, line: str, message: str) -> None:
    """No sibling, too few, other steps or types, a bound that the first loop computes, a wrong argument."""
    refused = refusal(body, f"loop 1: {line}")
    assert (type(refused), refused.message) == (DirectiveError, message)


NESTS = "for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) A[0][i] += j;\n" \
        "for (int k = 0; k < n; k++) for (int i = 0; i < m; i++) y[k] += i;"  # fmt: skip


def test_fused_outer_loops_make_inner_ones_siblings() -> None:
    """Outermost first; an inner loop that has the fused one's name gets another."""
    text = made(NESTS, "loop 1: fuse", "loop 2: fuse")
    assert text == "for (int i = 0; i < n; i++) { for (int j = 0; j < m; j++) { A[0][i] += j; y[i] += j; } }"
    assert "for (int k = 0; k < m; k++) { y[i] += k; }" in made(NESTS, "loop 1: fuse")


def test_directives_of_a_fused_loop_go_to_the_whole() -> None:
    """Under its own number or that of the loop it became part of; equal ones count once."""
    apart = "for (int i = 0; i < n; i++) x[i] = 1; for (int k = 0; k < n; k++) y[k] = 2;"
    whole = made(apart, "loop 1: fuse", "loop 1: unroll 2")
    assert made(apart, "loop 1: fuse", "loop k: unroll 2") == whole
    assert made(apart, "loop 1: fuse", "loop 1: unroll 2", "loop 2: unroll 2") == whole
    pragma = "\n#pragma hmppcg unroll 4\nfor (int k"
    assert made(apart.replace("for (int k", pragma), "loop 1: fuse", "loop 1: unroll 2") == whole
    refused = refusal(apart, "loop 1: fuse", "loop 1: unroll 2", "loop 2: unroll 4")
    assert refused.message == "unroll differs from the unroll of the loop this one is fused with"


def test_pieces_can_be_fused_again() -> None:
    """Distribute, then fuse what belongs together."""
    body = "for (int i = 0; i < n; i++) { x[i] = 1; y[0] += z[i]; A[i][i] = x[i]; }"
    assert made(body, "loop 1: distribute", "loop 1.1: fuse 2").count("for") == 2
    assert made(body, "loop 1: distribute", "loop 1: fuse").count("for") == 1


def test_later_directives_see_the_shifted_order() -> None:
    """A split unrolling of the fused loop is judged by when its iterations run, and refused with a true witness."""
    body = "for (int i = 0; i < n - 1; i++) x[i] = 1; for (int k = 0; k < n - 2; k++) y[k] = x[k] + x[k + 1];"
    assert made(body, "loop 1: fuse", "loop 1: unroll 2").count("y[") == 3
    assert "must run before" in refusal(body, "loop 1: fuse", "loop 1: unroll 2, split").message


SUM = "for (int i = 0; i < n; i++) for (int k = 0; k < m; k++) x[i] += k;"


def test_fullunroll_needs_to_know_the_trips() -> None:
    """From the sizes given, and then it is right for other sizes too; from no loop around."""
    assert refusal(SUM, "loop k: fullunroll").message == (
        "fullunroll: the trip count of loop k, m, is not known; give it with -D m=..."
    )
    text = made(SUM, "loop k: fullunroll", values={"m": 3})
    assert "if (m == 3) { x[i] += 0; x[i] += 1; x[i] += 2; } else { for (int k = 0; k < m; k++)" in text
    triangle = "for (int i = 0; i < n; i++) for (int k = 0; k < i; k++) A[i][k] = 1;"
    assert refusal(triangle, "loop k: fullunroll").message == (
        "fullunroll: the trip count of loop k depends on loop i; `unroll U` makes only U copies"
    )
    assert made(triangle, "loop i: fullunroll", values={"n": 3}).count("A[") == 3


def test_fullunroll_has_limits() -> None:
    """The numbers are in the message; unrolling inside an unrolled loop multiplies."""
    assert refusal(SUM, "loop k: fullunroll", values={"m": 257}).message == (
        "fullunroll: loop k runs 257 times, the limit is 256; `unroll U` makes only U copies"
    )
    refused = refusal(SUM, "loop k: fullunroll", "loop i: fullunroll", values={"m": 100, "n": 100})
    assert refused.message == (
        "fullunroll: 100 copies of the 101 assignments in loop i are 10,100, the limit is 8,192; "
        "`unroll U` makes only U copies"
    )
    assert "unroll, once" in refusal(SUM, "loop k: fullunroll", "loop k: unroll 2", values={"m": 3}).message


def test_numbers_of_fused_loops() -> None:
    """The fused loop is the first one, with its variable and number."""
    original = load(f"{HEAD}{NESTS}\n}}\n").codelet
    done = schedule(Analysis(original), parse_lines(["loop 1: fuse"])).codelet
    assert [(f.var, f.number) for f in walk(done.body) if isinstance(f, Loop)] == [("i", 1), ("j", 2), ("k", 4)]
