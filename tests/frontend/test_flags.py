"""Flags that iterations only raise are reductions, and every target gives them the value that gcc does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from looptune.frontend import load
from tests.helpers import all_targets, cross_check
from tests.helpers.against_gcc import verdicts
from tests.helpers.all_targets import Case

HEAD = "void f(int n, int m, int z, const double a[n], const int b[n], int out[8])"
RAISED = {
    "stored": "int found = 0; for (int i = 0; i < n; i++) if (a[i] > 3.9) found = 1; out[0] = found;",
    "cleared": "int ok = 1; for (int i = 0; i < n; i++) if (a[i] > 3.9) ok = 0; out[0] = ok;",
    "and": "int ok = 1; for (int i = 0; i < n; i++) ok = ok && a[i] > -3.9; out[0] = ok;",
    "and of an int": "char ok = 1; for (int i = 0; i < n; i++) ok = ok && b[i]; out[0] = ok;",
    "or": "_Bool any = 0; for (int i = 0; i < n; i++) any = any || b[i] == 9 || a[i] < -3.9; out[0] = any;",
    "or after": "short any = 0; for (int i = 0; i < n; i++) any = a[i] > 3.9 || any; out[0] = any;",
    "tested": "int any = 0; for (int i = 0; i < n; i++) if (!any && b[i] == 8) any = 1; out[0] = any;",
    "tested outside": "int ok = 1; for (int i = 0; i < n; i++) if (ok) ok = b[i] > -9; out[0] = ok;",
    "several": "unsigned char any = 0; for (int i = 0; i < n; i++)"
    " { any |= b[i] == 9; if (a[i] > 3.9) any = 1; if (any == 0) { if (b[i] < -8) any = 1; } } out[0] = any;",
    "set twice": "int ok = 1; for (int i = 0; i < n; i++) { ok = ok && a[i] > -3.9; ok = b[i] < 9 && ok; }"
    " out[0] = ok;",
    "chosen": "int x = 0; for (int i = 0; i < n; i++) x = a[i] > 3.9 ? 1 : x; out[0] = x;",
    "chosen otherwise": "int x = 1; for (int i = 0; i < n; i++) x = a[i] < 3.9 ? x : 0; out[0] = x;",
    "a bound of data": "int x = z; for (int i = 0; i < n; i++) for (int j = 0; j < b[i]; j++) if (j == 7) x = 9;"
    " out[0] = x;",
    "two elements": "for (int i = 0; i < n; i++) { if (a[i] > 3.9) out[2] = 1; if (a[i] < -3.9) out[3] = 1; }",
    "a value of its own": "int e = z; for (int i = 0; i < n; i++) if (a[i] > 3.9) e = -5; out[0] = e;",
    "a float": "double e = z; for (int i = 0; i < n; i++) if (b[i] == 9) e = 2.5; out[0] = e * 2;",
    "an element": "for (int i = 0; i < n; i++) if (a[i] > 3.9) out[2] = z + 1;",
    "a flag of unknown value": "out[0] = z; for (int i = 0; i < n; i++) if (b[i] > 8) out[0] = 1;",
}  # fmt: skip
KEPT = {
    "read in the loop": "int s = 0; for (int i = 0; i < n; i++) { if (a[i] > 3) s = 1; out[1] += s; } out[0] = s;",
    "two values": "int e = 0; for (int i = 0; i < n; i++) { if (a[i] > 3) e = 1; if (a[i] < -3) e = 2; } out[0] = e;",
    "set and cleared": "int e = 0; for (int i = 0; i < n; i++) { if (a[i] > 3) e = 1; if (b[i] < 0) e = 0; }"
    " out[0] = e;",
    "a value that changes": "int e = 0; for (int i = 0; i < n; i++) if (a[i] > 3) e = b[i]; out[0] = e;",
    "another truth": "int ok = z; for (int i = 0; i < n; i++) ok = ok && a[i] > -3.9; out[0] = ok;",
    "a guarded place": "int ok = 1; for (int i = 0; i < n; i++) ok = ok && b[i] >= 0 && a[i] < 9 && a[b[i]] < 9;"
    " out[0] = ok;",
    "a guarded division": "int ok = 1; for (int i = 0; i < n; i++) ok = ok && b[i] && 7 / b[i] < 9; out[0] = ok;",
    "a bound": "int ok = 2; for (int i = 0; i < n; i++) { for (int j = 0; j < ok; j++) out[j] += j;"
    " if (a[i] > 3) ok = 1; } out[7] = ok;",
    "an element read": "for (int i = 0; i < n; i++) { if (a[i] > 3) out[z & 1] = 1; out[2] += out[1]; }",
    "a place that changes": "for (int i = 0; i < n; i++) if (a[i] > 3) out[b[i] & 7] = 1;",
}  # fmt: skip
NESTED = """void f(int n, int m, const int a[n][m], int out[n], int all[1]) {
  int total = 1;
  for (int i = 0; i < n; i++) {
    int any = 0, ok = 1;
    for (int j = 0; j < m; j++) { if (a[i][j] > 7) any = 1; ok = ok && a[i][j] > -9; }
    out[i] = any + 2 * ok;
    if (any) total = 0;
  }
  all[0] = total;
}
"""


def given(text: str) -> list[cross_check.Arguments]:
    """Return arguments with and without what raises a flag, NaNs among them, and loops that do not run."""
    codelet = load(text).codelet
    made = []
    for k, n in enumerate((40, 40, 9, 0)):
        at = cross_check.arguments(codelet, {"n": n, "m": 6, "z": k}, k + 1)
        if k == 1 and isinstance(at["a"], np.ndarray) and at["a"].dtype.kind == "f":
            at["a"] = np.where(np.arange(n) % 3 == 0, np.nan, 0.5)
        made.append(at)
    return made


def of_body(body: str) -> str:
    return f"{HEAD} {{ {body} }}\n"


@pytest.mark.parametrize("body", RAISED.values(), ids=RAISED)
def test_a_flag_is_a_reduction(body: str) -> None:
    assert verdicts(load(of_body(body)).codelet)[1] == "reduction"


@pytest.mark.parametrize("body", KEPT.values(), ids=KEPT)
def test_what_is_no_flag_keeps_its_order(body: str) -> None:
    assert "reduction" not in verdicts(load(of_body(body)).codelet).values()


def test_flags_of_nested_loops() -> None:
    assert list(verdicts(load(NESTED).codelet).values()) == ["reduction", "reduction"]


def cases(step: int) -> list[Case]:
    texts = {name: of_body(body) for name, body in (RAISED | KEPT).items()} | {"nested": NESTED}
    parallel = {name: ["loop 1: parallel"] for name in (*RAISED, "nested")}
    return [Case(n, texts[n], given(texts[n]), parallel.get(n, ()), all_targets.QUICK) for n in list(texts)[::step]]


def test_flags_in_parallel_are_those_of_gcc(tmp_path: Path) -> None:
    """The C that is printed, CUDA C on a processor and the interpreter."""
    assert all_targets.wrong(cases(5), tmp_path) == []


@pytest.mark.wide
def test_all_flags_in_parallel_are_those_of_gcc(tmp_path: Path) -> None:
    assert all_targets.wrong(cases(1), tmp_path) == []
