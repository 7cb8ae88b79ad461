"""What a codelet takes for granted is derived and said: arrays apart, subscripts inside, no overflow."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from looptune.core.errors import UsageError
from looptune.deploy.source_to_source import transform
from looptune.frontend import load
from looptune.report.check.explanation import explain
from looptune.tune.session.prepare import TuningRequest, prepare_all


def leaves(text: str) -> list[str]:
    return [str(x) for x in explain(load(text + "\n")).out_of_bounds]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "void f(int n, float a[n]) { for (int i = 0; i <= n; i++) a[i] = 1; }",
            ["a[i] is outside a[n]: i = 1 when n = 1"],
        ),
        (
            "void f(int n, float a[n]) { for (int i = 0; i < n; i++) a[i + 1] = 1; }",
            ["a[i + 1] is outside a[n]: i = 0 when n = 1"],
        ),
        (
            "void f(int n, float a[n]) { for (int i = n - 1; i >= 0; i--) a[i] = a[i - 1]; }",
            ["a[i - 1] is outside a[n]: i = 0 when n = 1"],
        ),
        (
            "void f(int n, int m, float a[n][m]) "
            "{ for (int i = 0; i < n; i++) for (int j = 0; j <= m; j++) a[i][j] = 1; }",
            ["a[i][j] is outside a[n][m]: i = 0, j = 1 when n = 1, m = 1"],
        ),
        ("void f(float a[8]) { for (int i = 0; i < 9; i++) a[i] = 1; }", ["a[i] is outside a[8]: i = 8"]),
        ("void f(int n, float a[n]) { for (int i = 0; i < n; i++) a[i] = 1; }", []),
        ("void f(int n, int m, float a[n]) { for (int i = 0; i < m; i++) a[i] = 1; }", []),
        ("void f(int n, float a[n]) { for (int i = 0; i <= n; i++) if (i < n) a[i] = 1; }", []),
        ("void f(int n, float a[n]) { for (int i = 0; i <= n; i++) if (a[0] > 0) a[i] = 1; }", []),
        ("void f(int n, float a[n]) { for (int i = 0; i < n; i++) a[0] = i > 0 ? a[i - 1] : 0; }", []),
        ("void f(int n, float *a) { for (int i = 0; i <= n; i++) a[i] = 1; }", []),
    ],
)
def test_a_subscript_that_leaves_its_array_whatever_the_sizes(text: str, expected: list[str]) -> None:
    """A warning with the smallest example; none where some sizes fit, or where data decide."""
    assert leaves(text) == expected


def assumed(text: str) -> tuple[str, ...]:
    return explain(load(text + "\n")).assumes


COPY = "{ for (int i = 0; i < n; i++) a[i] = b[i]; }"


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        (f"void f(int n, float *a, float *b) {COPY}", "a and b"),
        (f"void f(int n, float a[n], const float b[n]) {COPY}", "a and b"),
        (f"void f(int n, float *restrict a, float *b) {COPY}", ""),
        (f"void f(int n, float *a, const float *__restrict b) {COPY}", ""),
        (f"float a[100], b[100]; void f(int n) {COPY}", ""),
        (f"float a[100]; void f(int n, float *b) {COPY}", "b and a"),
        ("void f(int n, float *a, float *b, float *c) { for (int i = 0; i < n; i++) a[i] = b[i] + c[i]; }",
         "a and b, a and c"),
    ],
)  # fmt: skip
def test_which_arrays_must_not_overlap(text: str, pairs: str) -> None:
    """Those that C allows to, where one is written."""
    said = [line for line in assumed(text) if "overlap" in line]
    found = said[0].removeprefix("these do not overlap: ") if said else ""
    assert {frozenset(p.split(" and ")) for p in found.split(", ")} == {
        frozenset(p.split(" and ")) for p in pairs.split(", ")
    }


def test_sizes_that_keep_a_subscript_inside() -> None:
    """What has to hold of the sizes, in isl's words."""
    text = "void f(int n, int m, float a[n]) { for (int i = 0; i < m; i++) a[i] = 1; }"
    assert "a[i] is inside a[n]: m <= n" in assumed(text)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) a[i * m + j] = 1;",
         ["of i * m + j", "a[m * n]"]),
        ("for (int i = 1; i < n - 1; i++) a[i] = a[i - 1] + a[i + 1];", ["a[n]"]),
        ("for (int i = 0; i < n; i++) for (int j = 0; j <= i; j++) a[i + j] = 1;", ["of i + j", "a[2 * n - 1]"]),
        ("for (int i = 0; i < n; i++) a[2 * i + m] = 1;", ["of 2 * i + m", "a[m + 2 * n - 1]"]),
        ("for (int i = 0; i < n; i++) a[n - 1 - i] = 1;", ["a[n]"]),
        ("for (int i = 0; i < n; i++) a[i % 4] = 1;",
         ["a[?]", "the accessed extent of a does not follow from the sizes"]),
        ("for (int i = 0; i < 8; i++) a[i] = 1;", ["a[8]"]),
    ],
)  # fmt: skip
def test_the_summary_says_how_far_and_what_may_overflow(body: str, expected: list[str]) -> None:
    """Of an open array how far it is reached as a formula of the sizes; no expression that fits whatever the sizes."""
    brief = explain(load(f"void f(int n, int m, float *a) {{ {body} }}\n")).assumption_summary
    assert sorted(dict(brief).values()) == sorted(expected)


def test_the_summary_says_which_arrays_are_apart_and_what_data_decide() -> None:
    """Written arrays once each, not pair by pair; accesses of which data decide, with what decides."""
    text = (
        "void f(int n, float *restrict z, float h[256], const int x[n], float *b) {\n"
        "  for (int i = 0; i < n; i++) { if (x[i] > 0) h[i] = 1; h[x[i]] += b[i]; z[i] = 1; } }\n"
    )
    brief = dict(explain(load(text)).assumption_summary)
    assert brief["no overlap"] == "of x and b with h"
    assert (
        brief["inside"]
        == "h[i] is inside h[256]: it executes only if x[i] > 0; h[x[i]] is inside h[256]: this depends on x[i]"
    )


def test_scalar_fields_are_in_no_array_that_is_written() -> None:
    text = """struct g { int n, k; double *v; };
void f(const struct g *a, double *x) { for (int i = 0; i < a->n; i++) x[i] = a->v[i] + a->k; }
"""
    assert "of a->n and a->k with an array that is written" in [
        said for _, said in explain(load(text)).assumption_summary
    ]
    assert "a->n" not in str(explain(load(text.replace("a->", "a.").replace("*a", "a"))).assumption_summary)


def test_what_a_formula_shows_to_be_inside_is_not_assumed() -> None:
    """A flat subscript that is not affine, whose greatest value is the last element."""
    body = "for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) a[i * m + j] = 1;"
    text = f"void f(int n, int m, float a[n * m]) {{ {body} }}"
    assert "inside" not in dict(explain(load(text + "\n")).assumption_summary)


def test_transform_says_what_a_new_order_rests_on(tmp_path: Path) -> None:
    """A note and a line of the header, where C does not say that two arrays are apart; nothing where it does."""
    path, said = tmp_path / "f.c", list[str]()
    path.write_text(f"void f(int n, float *a, float *b) {COPY}\n")
    made = transform(path, ["loop i: unroll 4, split"], note=said.append)
    assert "assumed: these do not overlap: a and b" in made
    assert len(said) == 1
    path.write_text(f"void f(int n, float *restrict a, float *b) {COPY}\n")
    assert "overlap" not in transform(path, ["loop i: unroll 4, split"], note=said.append)
    assert len(said) == 1


def test_run_says_at_once_that_the_loops_leave_an_array(tmp_path: Path) -> None:
    """Before anything is compiled, with the number of elements and the one that is reached."""
    path = tmp_path / "f.c"
    path.write_text("void f(int n, float a[n]) { for (int i = 0; i <= n; i++) a[i] = 2 * a[i]; }\n")
    with pytest.raises(UsageError, match=r"a is too short: it has 100 elements, and .* access element 100"):
        prepare_all(TuningRequest(path, target="numba-cpu", defines={"n": "100"}))


HIST = "void f(int n, const int x[n], float h[16]) { for (int i = 0; i < n; i++) h[x[i]] += 1; }\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (HIST, ["1:74: h[x[i]] may be outside h[16]: this depends on x[i], and no kernel checks it"]),
        (HIST.replace("h[x[i]] += 1", "if (x[i] > 0) h[i] = 1"),
         ["1:88: h[i] may be outside h[16]: it executes only if x[i] > 0, and no kernel checks it"]),
        (HIST.replace("h[x[i]] += 1", "if (x[i] > 0) h[i % 16] = h[x[i]]"),
         ["1:100: h[x[i]] may be outside h[16]: this depends on x[i], and no kernel checks it"]),
        (HIST.replace("h[x[i]] += 1", "if (x[i] > 0) h[i / 7] = h[x[i]] + h[x[n - 1]]"),
         ["1:99: h[x[i]] may be outside h[16]: this depends on x[i], and no kernel checks it "
          "(and 1 more: `looptune check --legal-space`)"]),
        (HIST.replace("h[x[i]] += 1", "if (x[i] > 0) h[i / 7] = x[i]"), []),
    ],
)  # fmt: skip
def test_run_warns_once_of_an_access_that_may_leave_its_array(tmp_path: Path, text: str, expected: list[str]) -> None:
    """Only where the analysis cannot tell at the sizes that are run; with the place and what decides."""
    path = tmp_path / "f.c"
    path.write_text(text)
    (found,) = prepare_all(TuningRequest(path, target="numba-cpu", defines={"n": "100"}))
    assert [w.removeprefix(f"{path}:") for w in found.warnings] == expected


def test_data_that_leave_an_array_are_refused(tmp_path: Path) -> None:
    """The interpreter is asked what the user's own data do."""
    path, data = tmp_path / "f.c", tmp_path / "d.npz"
    path.write_text(HIST)
    np.savez(data, n=20, x=np.arange(20, dtype=np.int32), h=np.zeros(16, np.float32))
    with pytest.raises(
        UsageError, match=r"with these data the loops access memory outside an array: h\[16\] is outside"
    ):
        prepare_all(TuningRequest(path, target="numba-cpu", data=(str(data),)))
