"""Local arrays that a function allocates and frees."""

from __future__ import annotations

from pathlib import Path

import pytest

from looptune.core.errors import LooptuneError
from looptune.frontend import load
from looptune.ir.c_printer import declaration
from looptune.ir.nodes import Assign, If, Loop
from tests.helpers.against_gcc import difference

BODY = "for (int i = 0; i < n; i++) t[i] = A[i]; for (int i = 0; i < n; i++) A[i] = t[n - 1 - i];"


def codelet(before: str, after: str = "", body: str = BODY) -> str:
    return f"void k(int n, int m, float A[n])\n{{ {before} {body} {after} }}"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("float *t = malloc(n * sizeof(float));", "free(t);"),
        ("float *t = (float *)malloc(sizeof(float) * n);", "free(t);"),
        ("float *t = malloc(sizeof *t * n); if (t == NULL) abort();", "free(t);"),
        ("float *t = malloc(n * sizeof(t[0])); if (!t) { exit(1); }", "free((t));"),
        ("float *t = malloc(n * sizeof(float)); if (NULL == t) exit(1);", "free(t);"),
        ("float *t = malloc(n * sizeof(float)); if (!t) return;", "free(t); t = NULL;"),
        ('float *t = malloc(n * sizeof(float)); if (!t) { perror("t"); exit(1); }', "free(t);"),
        ("float *t = __builtin_malloc(sizeof(float[n])); if (0 == t) __builtin_abort();", "__builtin_free(t);"),
    ],
)
def test_what_a_function_allocates_is_an_array_of_its_own(before: str, after: str) -> None:
    (local,) = (v for v in load(codelet(before, after)).codelet.locals if v.shape)
    assert declaration(local) == "float t[n]"
    assert local.on_heap


ZEROED = {
    "in the declaration": "float *t = calloc(n, sizeof(float)); for (int i = 0; i < n; i++) if (A[i] > 0) t[i] += A[i];"
    " for (int i = 0; i < n; i++) A[i] = t[n - 1 - i]; free(t);",
    "later": "float *t; short *h; t = (float *)calloc(n, sizeof *t); h = calloc(16, sizeof(short));"
    " if (!t || h == NULL) exit(1); for (int i = 0; i < n; i++) h[i % 5 & 15]++;"
    " for (int i = 0; i < n; i++) { t[i] += A[i]; A[i] = t[i] + h[i & 15]; } free(h); free(t);",
    "rows": "double (*t)[m] = calloc(n, sizeof(*t)); for (int i = 0; i < n; i++) for (int j = 0; j < m; j += 2)"
    " t[i][j] = A[i]; for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) A[i] += t[i][j] * (j + 1); free(t);",
    "in a loop": "for (int i = 0; i < n; i++) { int *h = calloc(m, sizeof(int)); for (int j = 0; j < n; j++)"
    " h[j * i % m] += 1; for (int j = 0; j < m; j++) A[i] += h[j] * j; free(h); }",
    "structs": "struct { double a; int b; } *t = calloc(n, sizeof *t); for (int i = 0; i < n; i++) if (A[i] > 1)"
    " t[i].a = A[i]; for (int i = 0; i < n; i++) A[i] = t[i].a + t[i].b; free(t);",
    "bytes": "char *t = calloc(n, 1); unsigned char *u = malloc(n + 3); if (!t || !u) goto out;"
    " for (int i = 0; i < n; i++) { u[n - 1 - i] = i; if (A[i] > 0) t[i] = 1; }"
    " for (int i = 0; i < n; i++) A[i] += t[i] * u[i]; out: free(u); free(t);",
    "aligned": "float *t = aligned_alloc(64, n * sizeof(float)); for (int i = 0; i < n; i++) t[i] = A[i];"
    " for (int i = 0; i < n; i++) A[i] = t[n - 1 - i]; free(t);",
}


@pytest.mark.parametrize("body", ZEROED.values(), ids=ZEROED)
def test_memory_that_is_zero_is_that_of_gcc(body: str, tmp_path: Path) -> None:
    text = f"#include <stdlib.h>\n{codelet('', body=body)}\n"
    for n in (9, 0):
        assert difference(text, {"n": n, "m": 4}, tmp_path, {"A": (n,)}) is None


def test_a_function_that_is_called_calloc_may_be_anything() -> None:
    own = "void *calloc(long n, long size) { return 0; }\n"
    with pytest.raises(LooptuneError, match="calloc"):
        load(own + codelet("float *t = calloc(n, sizeof(float));"), kernel="k")


def test_rows_and_products_of_sizes_are_extents() -> None:
    text = codelet(
        "double (*a)[m] = malloc(sizeof(double[n][m])), (*b)[m] = malloc(n * sizeof(*b));"
        "double (*d)[m] = malloc(n * m * sizeof(double));"
        "int *c = malloc(n * m * sizeof *c);",
        body="for (int i = 0; i < n; i++) { A[i] = 1; for (int j = 0; j < m; j++) {"
        " d[i][j] = a[i][j] = j; b[i][j] = a[i][j]; c[i * m + j] = b[i][j]; A[i] += c[i * m + j]; } }",
    )
    assert [declaration(v) for v in load(text).codelet.locals if v.shape] == [
        "double a[n][m]", "double b[n][m]", "double d[n][m]", "int c[n * m]",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "before",
    [
        "float *t = calloc(n, 4);",
        "float *t = malloc(n * 4);",
        "float *t = malloc(n * sizeof(double));",
        "static float *t = malloc(n * sizeof(float));",
    ],
)
def test_other_pointers_are_refused(before: str) -> None:
    with pytest.raises(LooptuneError, match=r"pointer|static|call"):
        load(codelet(before))


def test_a_pointer_that_is_set_again_is_refused() -> None:
    with pytest.raises(LooptuneError, match="setting t, which is a pointer or an array"):
        load(codelet("float *t = malloc(n * sizeof(float));", "t = A;"))


def test_other_calls_and_conditions_are_not_left_out() -> None:
    allocated = "float *t = malloc(n * sizeof(float));"
    for text, call in (
        (codelet(allocated, "if (n == 0) abort();"), "abort"),
        (codelet("float t[n];", "free(t);"), "free"),
    ):
        with pytest.raises(LooptuneError, match=f"{call}, which is not defined in this program,"):
            load(text)


def test_assertions_and_hints_are_left_out() -> None:
    """What an assertion changes, it still changes: it is refused as a call."""
    hints = "assert(A[i] > 0); __builtin_prefetch(&A[i + 8]); if (i > 4) assert(n);"
    hints = f"for (int i = 0; i < n; i++) {{ {hints} A[i] = 1; }}"
    (loop,) = load(codelet("", body=hints)).codelet.body
    assert isinstance(loop, Loop)
    assert [type(s) for s in loop.body if not isinstance(s, If)] == [Assign]
    with pytest.raises(LooptuneError, match="assert, which is not defined in this program"):
        load(codelet("assert(n++ > 0);"))


def test_a_function_of_the_file_with_such_a_name_may_do_anything() -> None:
    own = "float pool[9]; static void free(float *x) { pool[0] = x[0]; }\n"
    with pytest.raises(LooptuneError, match="the pointer t"):
        load(own + codelet("float *t = malloc(n * sizeof(float));", "free(t);"), kernel="k")
