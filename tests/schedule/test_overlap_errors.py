"""Time loops that cannot run in overlapping tiles: every refusal says why, at the directive."""

from __future__ import annotations

import pytest

from looptune.core.errors import DirectiveError
from looptune.frontend import load
from looptune.lower.pipeline import lower
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from tests.helpers.overlap_cases import FIELDS


def body(inside: str, params: str = "float A[n], float B[n]") -> str:
    return f"void f(int steps, int n, {params}) {{\n  for (int t = 0; t < steps; t++) {{\n{inside}\n  }}\n}}\n"


LEFT = "for (int i = 1; i < n; i++) B[i] = A[i - 1];\n"
BACK = "for (int i = 0; i < n; i++) A[i] = B[i];"
AGAIN = "for (int t = 0; t < steps; t++) {\n" + LEFT + BACK + "\n}"
REFUSED = {
    "while": (f"void f(int steps, int n, float A[n], float B[n]) {{\n while (A[0] > 0) {{ {AGAIN} }} }}\n",
              "its bounds or a condition around it depend on array elements"),
    "if data say": (f"void f(int steps, int n, float A[n], float B[n]) {{\n if (A[0] > 0) {{ {AGAIN} }} }}\n",
                    "its bounds or a condition around it depend on array elements"),
    "as often as data say": (body(LEFT + BACK, "int p[n], float A[n], float B[n]").replace("t < steps", "t < p[0]"),
                             "its bounds or a condition around it depend on array elements"),
    "far": (body("for (int i = 0; i < n; i++) B[i] = A[n - 1 - i];\n" + BACK), "of A are not at a constant distance"),
    "data": (body("for (int i = 0; i < n; i++) B[i] = A[p[i]];\n" + BACK, "int p[n], float A[n], float B[n]"),
             "of A are not at a constant distance"),
    "read where it says": (
        body("for (int i = 1; i < n; i++) { int q = A[i - 1]; if (q > 0) B[i] = p[q]; else B[i] = p[A[i]]; }\n" + BACK,
             "int p[n], int A[n], int B[n]"), "the index of a read of p depends on values it computes"),
    "as often as it says": (
        body("for (int i = 1; i < n; i++) { B[i] = 0; for (int k = 0; k < A[i - 1]; k++) B[i] += p[k]; }\n" + BACK,
             "int p[n], int A[n], int B[n]"), "the trip count of loop k inside it depends on values it computes"),
    "one after the other": (body("for (int i = 1; i < n; i++) A[i] = A[i - 1];"), "nests of parallel loops"),
    "a statement": (body(LEFT + BACK + "A[0] = t;"), "nests of parallel loops"),
    "ranks": (body("for (int i = 1; i < n; i++) B[i][0] = A[i - 1];\nfor (int i = 0; i < n; i++) A[i] = B[i][0];",
                   "float A[n], float B[n][2]"), "different numbers of dimensions"),
    "several places": (body("for (int i = 1; i < n; i++) { B[i] = A[i]; C[i - 1] = A[i]; }\n"
                            "for (int i = 0; i < n; i++) A[i] = B[i] + C[i];", "float A[n], float B[n], float C[n]"),
                       "writes C at several offsets"),
    "not its own": (body("for (int i = 0; i < n; i++) B[2 * i] = A[i];\n" + BACK, "float A[n], float B[2 * n]"),
                    "it writes B at an index that is not that of the iteration"),
    "how long": (body(LEFT + BACK, "float *A, float B[n]"), "the extent of A must be declared"),
    "four": (body("for (int i = 1; i < n; i++) B[i][0][0][0] = A[i - 1][0][0][0];\n"
                  "for (int i = 0; i < n; i++) A[i][0][0][0] = B[i][0][0][0];",
                  "float A[n][2][2][2], float B[n][2][2][2]"), "more than 3 dimensions"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_tiled_is_refused(text: str, message: str) -> None:
    """At the directive."""
    with pytest.raises(DirectiveError, match=message) as refusal:
        schedule(Analysis(load(text).codelet), parse_lines(["loop t: overlap 2"]))
    assert refusal.value.span.line > 0


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (("loop 1: overlap 4",), "4 steps invalidate 8 elements at the edges of a tile, which has only 8 along y"),
        (("loop 1: overlap 2, rows 8", "codelet: grid blocksize 4x8"), "of a tile, which has only 4 along x"),
        (("loop 1: overlap 2, rows 8", "loop 4: unroll 2"), "is not that of the iteration"),
        (("loop 1: overlap 2, rows 8", "loop 7: stage x"), "loop i inside it has tiles of its own"),
        (("loop 1: overlap 2, rows 8", "loop 4: noParallel"), "is not that of the iteration"),
        (("loop 3: overlap 2",), "its iterations are independent"),
        (("loop 1: overlap 2, rows 8", "loop 1: tile 4"), "nests of parallel loops"),
    ],
)
def test_what_other_directives_leave_is_refused(lines: tuple[str, ...], message: str) -> None:
    with pytest.raises(DirectiveError, match=message):
        lower(schedule(Analysis(load(FIELDS).codelet), parse_lines(lines)).codelet, blocks=True)


def test_with_keep_going_the_loop_is_launched_step_by_step() -> None:
    """As ``explain`` has it: the refusal is in the step."""
    done = schedule(Analysis(load(FIELDS).codelet), parse_lines(["loop 1: overlap 4"]), keep_going=True)
    assert [s.proof for s in done.steps] == ["refused"]
    assert all(k.time_tile is None for k in lower(done.codelet, blocks=True).kernels)
