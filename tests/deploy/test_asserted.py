"""What ``looptune build --c`` makes says what it assumes, and with -DLOOPTUNE_CHECK aborts where that is not so."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from looptune.deploy import build
from looptune.frontend import load

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")

COPY = "void f(int n, double *x, const double *y) { for (int i = 0; i < n; i++) x[i] = 2 * y[i]; }"
RESTRICT = COPY.replace("*x", "*restrict x").replace("*y", "*restrict y")
FLAT = (
    "void f(int n, int m, const float *x, float *y)"
    " { for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) if (x[i * m + j] < 0) y[0] = 1; }"
)
DECLARED = "void f(int n, float A[n][n + 1], float x[n]) { for (int i = 0; i < n; i++) x[i] += A[i][i + 1]; }"
GUARDED = (
    "void f(int n, int *x, const int *y) { for (int i = 0; i < n; i++) { x[i] = 1; if (i + 1 < n) x[i + 1] = y[i]; } }"
)
ROWS = (
    "void f(int n, int m, float **a, float *b)"
    " { for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) a[i][j] = b[j]; }"
)


def made(folder: Path, text: str) -> str:
    file = folder / "f.c"
    file.write_text(f"{text}\n")
    return build.as_c(load(file), folder / "none", "auto", "looptune build", default=True)


def compiled(folder: Path, text: str, main: str, *flags: str) -> Path:
    """With every warning of gcc's an error."""
    (folder / "made.c").write_text(f"{made(folder, text)}\nint main(void) {{ {main} return 0; }}\n")
    strict = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fopenmp"]
    subprocess.run(["gcc", *strict, *flags, "made.c", "-o", "made"], cwd=folder, check=True, timeout=60)
    return folder / "made"


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("text", "main", "said"),
    [
        (COPY, "static double A[20]; f(10, A, A + 10);", ""),
        (COPY, "static double A[20]; f(10, A + 10, A);", ""),
        (COPY, "static double A[20]; f(10, A, A + 9);", "f: x and y overlap"),
        (COPY, "static double A[20]; f(10, A + 9, A);", "f: x and y overlap"),
        (COPY, "static double A[20]; f(10, A, A);", "f: x and y overlap"),
        (COPY, "static double A[20]; f(0, A, A);", ""),
        (RESTRICT, "static double A[20]; f(10, A, A + 10);", ""),
        (RESTRICT, "static double A[20]; f(10, A, A + 9);", "f: x and y overlap"),
        (COPY, "static double A[20]; f(-1, A, A + 10);", "f: n is negative"),
        (FLAT, "static float A[20]; f(3, 4, A, A + 12);", ""),
        (FLAT, "static float A[20], y[1]; f(0, 65536, A, y);", ""),
        (FLAT, "static float A[20]; f(65536, 65536, A + 1, A);", "f: i * m + j overflows"),
        (DECLARED, "static float A[40]; f(4, (float (*)[5])A, A + 20);", ""),
        (DECLARED, "static float A[40]; f(4, (float (*)[5])A, A + 19);", "f: A and x overlap"),
        (GUARDED, "static int A[20]; f(10, A, A + 10);", ""),
        (ROWS, "static float A[9], *a[] = {A, A + 3}; f(2, 3, a, A + 6);", ""),
        (ROWS, "static float A[9], *a[] = {A, A + 2}; f(2, 3, a, A + 6);", "f: rows of a overlap"),
        (ROWS, "static float A[9], *a[] = {A + 3, A}; f(2, 3, a, A + 5);", "f: a and b overlap"),
    ],
)  # fmt: skip
def test_a_call_is_looked_at(tmp_path: Path, text: str, main: str, said: str) -> None:
    """It aborts and says what does not hold; where all holds, nothing is said."""
    program = compiled(tmp_path, text, main, "-DLOOPTUNE_CHECK")
    done = subprocess.run([program], capture_output=True, text=True, timeout=60)
    assert (done.returncode != 0, done.stderr.strip()) == (bool(said), said)


@pytest.mark.parametrize("text", [COPY, FLAT, DECLARED], ids=["copy", "flat", "declared"])
def test_without_the_macro_nothing_is_looked_at(tmp_path: Path, text: str) -> None:
    """The text compiles without a warning, and has no word of the checks."""
    compiled(tmp_path, text, "")
    read = subprocess.run(["gcc", "-E", "-P", "made.c"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "looptune" not in read.stdout


def test_parameters_that_no_loop_uses_are_no_warning(tmp_path: Path) -> None:
    """As those of the file's function that the codelet has nothing to do with."""
    text = "void f(char *name, int n, double unused, double x[n]) { for (int i = 0; i < n; i++) x[i] = 1; }"
    compiled(tmp_path, text, 'double x[3]; f("x", 3, 1.5, x);', "-DLOOPTUNE_CHECK")


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_what_is_c_and_cpp_remains_so(tmp_path: Path) -> None:
    """A function of pointers, in both modes."""
    (tmp_path / "made.cpp").write_text(made(tmp_path, COPY))
    for flags in ((), ("-DLOOPTUNE_CHECK",)):
        command = ["g++", "-Wall", "-Wextra", "-Werror", "-fopenmp", *flags, "-c", "made.cpp"]
        subprocess.run(command, cwd=tmp_path, check=True, timeout=60)


def test_arrays_at_file_scope_are_parameters_of_a_scop(tmp_path: Path) -> None:
    """So that they may overlap, which they could not before."""
    loop = "for (int i = 0; i < n; i++) x[i] = w[i];"
    text = made(tmp_path, f"double w[40], x[40];\nvoid f(int n) {{\n#pragma scop\n{loop}\n#pragma endscop\n}}")
    assert '"x and w overlap"' in text or '"w and x overlap"' in text


def test_the_comment_lists_what_is_assumed(tmp_path: Path) -> None:
    """Arrays, how far they are reached, and what must not overflow."""
    text = made(tmp_path, FLAT)
    assert "these do not overlap: x and y" in text
    assert "the arrays are at least as large as x[m * n], y[1]" in text
    assert "no signed integer overflows in a subscript or a bound: i * m + j" in text
