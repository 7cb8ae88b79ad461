"""Nests on which isl fails or has no end: every question about them is answered soon, and never wrongly."""

from __future__ import annotations

import pytest

from looptune.core.errors import DirectiveError, UnsupportedError
from looptune.frontend import Unit, load
from looptune.poly import isl_limits
from looptune.poly.scop import build
from looptune.report.check.explanation import explain
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines


def unit(text: str) -> Unit:
    return load(text + "\n", kernel=None, defines={}, include_dirs=(), dtype=None)


def mixed(limit: str, parameters: str = "int n, int q") -> Unit:
    return unit(f"""
void f({parameters}, int Y[64][64]) {{
  for (int i = 0; i < n; i++)
    for (int j = i; j < ({limit} > i - q ? {limit} : i - q); j++)
      Y[(j % 2) + i][j] += 1;
}}""")


@pytest.mark.parametrize("limit", ["4", "m"])
def test_pieces_that_isl_cannot_merge_do_no_harm(limit: str) -> None:
    """A maximum as a bound and a remainder in a subscript: isl's coalesce ends the process on some of them."""
    found = explain(mixed(limit, "int n, int q, int m"), everything=True)
    assert [f.kind for f in found.loops] == ["parallel", "parallel"]


TILED = """
void f(int n, int m, int p, int A[64][64]) {
  for (int i = n % 5; i < p; i++)
    for (int j = (n - p) + (n / -2); j < ((n > i ? n : i) > (i + m) ? (n > i ? n : i) : (i + m)); j++)
      A[i & 31][j & 31] += 1;
}"""


def test_bounds_that_isl_does_not_find_refuse_the_directive() -> None:
    """Strips of 3 and 2 under maxima and quotients: refused with the number of operations, or found."""
    with pytest.raises(
        DirectiveError, match=r"the bounds of its loops are too complex to analyse: isl gave up after 1 million"
    ):
        schedule(Analysis(unit(TILED).codelet), parse_lines(["loop i: tile i:3, j:2"]))


RECURRENCE = "void f(int n, int a[n]) {\n  for (int i = 1; i < n; i++)\n    a[i] = a[i - 1] + 1;\n}"
INDEPENDENT = "void f(int n, int a[n]) {\n  for (int i = 1; i < n; i++)\n    a[i] = a[i] + i;\n}"


@pytest.mark.parametrize("text", [RECURRENCE, INDEPENDENT])
def test_what_isl_gives_up_is_not_analysed(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the limit is reached no loop is called parallel, and the reason names the number of operations."""
    monkeypatch.setattr(isl_limits, "CODELET", 0)
    (loop,) = explain(unit(text)).loops
    assert loop.kind in ("unknown", "reduction")
    assert loop.kind == "reduction" or "isl gave up" in str(loop.unknown)


def test_one_involved_nest_leaves_the_other_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the statements between which isl gave up are unknown."""
    two = unit("void f(int n, int a[n], int b[n]) {\n  for (int i = 0; i < n; i++)\n    a[i] = i;\n"
               "  for (int j = 1; j < n; j++)\n    b[j] = b[j - 1];\n}")  # fmt: skip
    found = Analysis(two.codelet)
    first, then = found.model.statements
    reason = isl_limits.IslLimitExceeded(isl_limits.QUESTION)
    coarser = found.model.over_approximate(reason, {then})
    assert coarser.statements[first] == found.model.statements[first]
    assert not coarser.statements[then].exact


def test_within_a_limit_only_the_outermost_counts() -> None:
    """A question asked in the middle of a proof may not take more than the proof has left."""
    model = build(unit(RECURRENCE).codelet)
    with (
        pytest.raises(isl_limits.IslLimitExceeded),
        isl_limits.isl_operation_limit(1),
        isl_limits.isl_operation_limit(10**9),
    ):
        model.flows("a")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("loop k: unroll 100000", "unroll 100000 of loop k makes 100,000 copies, the limit is 1,024"),
        ("loop k: vectorize 99999999", "makes 99,999,999 copies, the limit is 1,024"),
        ("loop k: unroll 99999999, split", "makes 99,999,999 copies, the limit is 1,024"),
        ("codelet: grid blocksize 4096x4096", "a block of 16,777,216 threads: no device allows more than 65,536"),
    ],
)
def test_what_cannot_be_written_out_is_refused_at_once(line: str, message: str) -> None:
    """Numbers of copies and threads that no device takes: with the number asked for and the most there may be."""
    gemm = unit("void f(int n, float a[n][n]) {\n  for (int i = 0; i < n; i++)\n    for (int k = 0; k < n; k++)\n"
                "      a[i][k] = a[i][k] + 1;\n}")  # fmt: skip
    with pytest.raises(DirectiveError) as refused:
        schedule(Analysis(gemm.codelet), parse_lines([line]))
    assert message in refused.value.message


@pytest.mark.wide
def test_statements_and_loops_have_a_most() -> None:
    """A thousand statements on one element, and a nest of forty loops: a message with the numbers."""
    many = "\n".join(f"    a[0] = a[0] * 2 + {k};" for k in range(1000))
    with pytest.raises(UnsupportedError, match=r"1,000 statements access a, .* the limit is 400"):
        Analysis(unit(f"void f(int n, int a[n]) {{\n  for (int i = 0; i < n; i++) {{\n{many}\n  }}\n}}").codelet)
    deep = "\n".join(f"for (int i{k} = 0; i{k} < n; i{k}++)" for k in range(40))
    with pytest.raises(UnsupportedError, match="40 nested loops: the limit is 16"):
        Analysis(unit(f"void f(int n, int a[n]) {{\n{deep}\na[i0] = 1;\n}}").codelet)


@pytest.mark.wide
@pytest.mark.sampled(9, "wide")
@pytest.mark.parametrize("called", ["g{0}(x) + g{0}(x + 1)", "g{0}(g{0}(x))", "(g{0}(x) - 1) * 3 + g{0}(x)"])
def test_functions_that_call_functions_do_not_grow_for_ever(called: str) -> None:
    """Each calls the one before twice: the expression would have 2^30 operations."""
    chain = "\n".join(f"static int g{k + 1}(int x) {{ return {called.format(k)}; }}" for k in range(29))
    with pytest.raises(UnsupportedError, match="operations when the functions it calls are inlined: the limit is"):
        unit(f"static int g0(int x) {{ return x * x; }}\n{chain}\n"
             "void f(int n, int a[n]) { for (int i = 0; i < n; i++) a[i] = g29(i); }")  # fmt: skip
