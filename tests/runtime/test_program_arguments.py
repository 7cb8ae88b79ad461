"""What main passes is looked at: arrays that are too short for the loops, or that overlap, are refused."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from looptune.core.errors import UsageError
from looptune.frontend import load
from looptune.runtime.host_program import record
from looptune.tune.session.prepare import TuningRequest, prepare_all

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")

SCALE = "void f(int n, double *x) { for (int i = 0; i < n; i++) x[i] = 2 * x[i]; }"
COPY = "void f(int n, double *x, const double *y) { for (int i = 0; i < n; i++) x[i] = 2 * y[i]; }"
SOME = "void f(int n, double *x, const int *y) { for (int i = 0; i < n; i++) if (y[i] > 0) x[i] = 1; }"


def written(folder: Path, text: str, main: str) -> Path:
    path = folder / "f.c"
    path.write_text(f"#include <stdlib.h>\n{text}\nint main(void) {{ {main} return 0; }}\n")
    return path


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("text", "main", "message"),
    [
        (SCALE, "double *x = malloc(10 * sizeof *x); f(100, x);", "x is too short: it has 10 elements, .* element 99"),
        (SCALE, "double *x = malloc(99 * sizeof *x); f(100, x);", "x is too short: it has 99 elements"),
        (SCALE, "double x[10], y[1000]; x[0] = y[3] = 1; f(100, x);", "x is too short: it has 10 elements"),
        (SCALE, "static double x[10], y[1000]; x[0] = y[3] = 1; f(100, x);", "x is too short: it has 10 elements"),
        (SCALE, "double *x = malloc(100 * sizeof *x); f(100, x + 1);", "x is too short: it has 99 elements"),
        (SCALE, "double *x = malloc(10 * sizeof *x); for (int i = 0; i < 100; i++) x[i] = i; f(100, x);",
         r"f.c:3: the program accesses memory outside of its arrays before .* \(heap-buffer-overflow\)"),
        (COPY, "static double A[201]; f(100, A, A + 1);", "x, which is written, overlaps y"),
        (COPY, "static double A[201]; f(100, A + 50, A);", "x, which is written, overlaps y"),
        (COPY, "static double A[201]; f(100, A, A);", "x, which is written, overlaps y"),
        (SOME, "static double A[201]; f(100, A, (int *)A + 1);", "x, which is written, overlaps y"),
    ],
)  # fmt: skip
def test_a_call_that_is_refused(tmp_path: Path, text: str, main: str, message: str) -> None:
    """Blocks on the heap, on the stack and at file scope; with the parameter, the numbers and what to do."""
    with pytest.raises(UsageError, match=message):
        prepare_all(TuningRequest(written(tmp_path, text, main), target="numba-cpu", inputs_from_main=True))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("text", "main"),
    [
        (COPY, "static double A[200]; f(100, A, A + 100);"),
        (COPY.replace("x[i] = 2 * y[i]", "if (i + 1 < n) x[i + 1] = 2 * y[i]"),
         "double *A = calloc(200, sizeof *A); f(100, A, A + 100);"),
        (SCALE.replace("x[i] = 2", "if (i > 3) x[i] = x[i + 1] + 2"), "double x[101]; x[5] = 1; f(100, x);"),
    ],
)  # fmt: skip
def test_a_call_that_is_taken(tmp_path: Path, text: str, main: str) -> None:
    """Halves of one block, and accesses that a condition keeps inside."""
    prepare_all(TuningRequest(written(tmp_path, text, main), target="numba-cpu", inputs_from_main=True))


def test_what_a_function_returns_is_no_argument(tmp_path: Path) -> None:
    """Its caller passes nothing for it: the arguments are those of the text, and the result begins as zero."""
    dot = "double f(int n, const double *x) { double s = 0; for (int i = 0; i < n; i++) s += x[i]; return s; }"
    call = record(load(written(tmp_path, dot, "double x[3] = {1, 2, 3}; return f(3, x) != 6;")), ())
    assert call.scalars == {"n": 3}
    assert {name: a.tolist() for name, a in call.arrays.items()} == {"x": [1.0, 2.0, 3.0], "result": [0.0]}


@pytest.mark.sampled(1)
def test_without_the_sanitizer_the_program_runs_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where gcc has none; arrays that overlap are still told."""
    real = shutil.which("gcc")
    fake = tmp_path / "bin" / "gcc"
    fake.parent.mkdir()
    fake.write_text(f'#!/bin/sh\ncase "$*" in *-fsanitize*) exit 1;; esac\nexec {real} "$@"\n')
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(fake.parent), prepend=":")
    found = record(load(written(tmp_path, SCALE, "static double x[9]; x[2] = 7; f(9, x);")), ())
    np.testing.assert_array_equal(found.arrays["x"], [0, 0, 7, 0, 0, 0, 0, 0, 0])
    with pytest.raises(UsageError, match="overlaps"):
        prepare_all(
            TuningRequest(written(tmp_path, COPY, "static double A[9]; f(8, A, A + 1);"), inputs_from_main=True)
        )
