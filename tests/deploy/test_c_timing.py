"""``looptune build --c`` writes no text that is slower than the function of the file, and says what it timed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from looptune.core.floating_point import DEFAULT
from looptune.deploy import build
from looptune.deploy.c_timing import CTimer
from looptune.frontend import load
from tests.helpers.command_line import looptune

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")

SCALE = """
typedef float real;
#define TWO 2
void scale(int n, const real *restrict x, real *restrict y)
{
    for (int i = 0; i < n; i++)
        y[i] = TWO * x[i];
}
"""
LONG = """
void f(int n, double *y, const double *x)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            for (int k = 0; k < n; k++)
                y[i] += x[j] * x[k];
}
"""
SCOP = """
void f(int n, double A[n], double B[n]) {
#pragma scop
  for (int i = 0; i < n; i++) A[i] = 2 * B[i];
#pragma endscop
}
"""


def made(folder: Path, text: str, said: list[str], sizes: dict[str, str] | None = None) -> str:
    (folder / "f.c").write_text(text)
    unit = load(folder / "f.c", defines={"n": "64"} if sizes is None else sizes)
    return build.as_c(
        unit, folder / "none", "auto", "looptune build", default=True, warn=said.append, cache=folder / "cache"
    )


@pytest.mark.parametrize("text", [SCALE, SCOP], ids=["a function", "a scop"])
def test_both_texts_are_timed_on_the_same_arrays(text: str, tmp_path: Path) -> None:
    """Of a drop-in the body runs in the file, of a function of its own the text alone."""
    (tmp_path / "f.c").write_text(text)
    unit = load(tmp_path / "f.c", defines={"n": "64"})
    timer = CTimer.of(unit, {}, DEFAULT, tmp_path / "cache")
    assert isinstance(timer, CTimer), timer
    us = timer.time_us(build.as_c(unit, tmp_path / "none", "auto", "", default=True))
    assert isinstance(us, float), us
    assert timer.file_us >= 0
    assert us > 0


@pytest.mark.parametrize(
    ("times", "threads", "said", "warned"),
    [
        ([50.0], True, ["50 us, and 100 us for f.c"], []),
        ([200.0, 80.0], False, ["80 us, and 100 us", "The default takes 200 us, and is not used."], []),
        (
            [200.0, 300.0, 100.0],
            False,
            ["100 us, and 100 us", "on one core take 300 us, and are not used."],
            ["as it is"],
        ),
    ],
    ids=["tuned", "one core", "as it is"],
)
def test_the_first_text_that_is_not_slower_is_written(
    times: list[float], threads: bool, said: list[str], warned: list[str], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """What was tuned, its loops on one core, or the function of the file; the comment has the times."""
    left, warnings = list(times), []
    monkeypatch.setattr(CTimer, "time_us", lambda self, text: left.pop(0))
    monkeypatch.setattr(CTimer, "_least_us", lambda self, program: 100.0)
    text = made(tmp_path, SCALE.replace("TWO *", "2 /* mine */ *"), warnings)
    assert left == []
    assert all(words in text for words in said)
    assert ("#pragma omp parallel" in text) == threads
    assert ("/* mine */" in text) == bool(warned)
    assert len(warnings) == len(warned)
    assert all(words in message for words, message in zip(warned, warnings, strict=True))
    (tmp_path / "made.c").write_text(text)
    subprocess.run(["gcc", "-Wall", "-Werror", "-fopenmp", "-c", "made.c"], cwd=tmp_path, check=True, timeout=60)


NEEDS = """#include <math.h>
#include <stdlib.h>
#define SQUARE(x) ((x) * (x))
#define SMALLER(a, b) ({ __typeof__(a) a_ = (a); __typeof__(b) b_ = (b); a_ < b_ ? a_ : b_; })
#define ALIGNED __attribute__((aligned(64)))
typedef double real;
typedef real row[3];
enum { TAPS = 3, UNUSED };
struct grid { real origin; int n, count; };
static double twice(double x);
real half(real x);
static const real weight[TAPS] ALIGNED = {1, 2, 1};
const real scale[] = {0.25, 0.5};
static int start = 1, n, count;
real total;
static real unused(real x) { return x; }
/* the sum of the squares */
static inline real norm(const row r) { return twice(SQUARE(r[0]) + SQUARE(r[1]) + r[2]); }
#pragma hmpp f codelet, target=CUDA
void f(int n, const struct grid *g, const row *restrict r, real *restrict y)
{
#pragma hmppcg unroll 2
    for (int i = start; i < n; i++) { /* own */
        real sum = 0, count = SMALLER(n, 2);
        for (int k = 0; k < TAPS; k++)
            sum += weight[k] * r[i][k];
        y[i] = half(sum + count) * scale[1] + norm(r[i]) + fabs(g->origin) + abs(g->n);
        total += y[i];
    }
}
static double twice(double x) { return x + x; }
real half(real x) { return x / 2; }
real other(void) { n++; return unused(scale[0]) + n + count; }
"""
CALLS = """#include <stdio.h>
typedef double row[3];
struct grid { double origin; int n, count; };
extern double total, half(double), other(void);
void f(int n, const struct grid *g, const row *restrict r, double *restrict y);
int main(void) {
  struct grid g = {-1, -2, 3}; row r[3] = {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}}; double y[3] = {0};
  f(3, &g, r, y);
  printf("%g %g %g %g\\n", y[1], y[2], total, half(3) + other());
  return 0;
}
"""


def test_a_function_is_written_with_what_it_needs_of_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Types, tables, functions and static variables, no more: it is linked beside the file's other functions."""
    warnings: list[str] = []
    monkeypatch.setattr(CTimer, "time_us", lambda self, text: 300.0)
    monkeypatch.setattr(CTimer, "_least_us", lambda self, program: 100.0)
    sizes = {"n": "3", "g_n": "3", "g_origin": "1", "start": "1"}
    text = made(tmp_path, NEEDS, warnings, sizes)
    assert [message.partition(": ")[2][:21] for message in warnings] == ["what was made is slow"]
    assert "/* the sum" not in text  # a comment between declarations
    needless = ("unused", "other", "start = 1, n", "hmpp")
    assert [word in text for word in (*needless, "UNUSED", "static int start = 1;")] == [False] * 4 + [True] * 2
    (tmp_path / "out.c").write_text(text)
    (tmp_path / "main.c").write_text(CALLS)
    (tmp_path / "rest.c").write_text(NEEDS.replace("void f(", "void replaced("))
    printed = []
    for files in ("f.c", "rest.c out.c"):
        warned = [] if files == "f.c" else ["-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas"]
        gcc = ["gcc", *warned, "-O1", "-fopenmp", "main.c", *files.split(), "-o", "p", "-lm"]
        subprocess.run(gcc, cwd=tmp_path, check=True, timeout=60)
        printed.append(subprocess.run(["./p"], cwd=tmp_path, capture_output=True, check=True, timeout=60).stdout)
    assert printed[0] == printed[1]
    subprocess.run(["gcc", *warned, "-fopenmp", "-c", "out.c"], cwd=tmp_path, check=True, timeout=60)


def test_a_static_variable_of_other_functions_keeps_the_text_in_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The function is written alone: its comment says that it is for the function's place, where it compiles."""
    warnings: list[str] = []
    monkeypatch.setattr(CTimer, "time_us", lambda self, text: 300.0)
    monkeypatch.setattr(CTimer, "_least_us", lambda self, program: 100.0)
    before = "#define N 8\nstatic double last[N]; static long runs;\nstatic void keep(int i, double x) { last[i] = x; }"
    own = "{ for (int i = 0; i < N; i++) keep(i, 2 * x[i]); runs++; }"
    after = "double get(int i) { return last[i] + runs; }"
    text = made(tmp_path, f"{before}\nvoid f(const double *x)\n{own}\n{after}\n", warnings, {})
    assert [f"{v} is static in f.c: include this file there" in text for v in ("last", "runs", "keep")] == [
        True, True, False,
    ]  # fmt: skip
    assert [message.partition(": ")[2][:16] for message in warnings] == ["other functions ", "what was made is"]
    (tmp_path / "out.c").write_text(text)
    (tmp_path / "in.c").write_text(f'{before}\n#include "out.c"\n{after}\n')
    subprocess.run(["gcc", "-Wall", "-Wextra", "-Werror", "-c", "in.c"], cwd=tmp_path, check=True, timeout=60)


def test_a_function_written_alone_has_no_macros_of_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are expanded; it is written, not a text that is slower."""
    warnings: list[str] = []
    monkeypatch.setattr(CTimer, "time_us", lambda self, text: 300.0)
    monkeypatch.setattr(CTimer, "_least_us", lambda self, program: 100.0)
    source = """#define N 24
#define AT(i, j) A[(i) * N + (j)]
#define EACH(i) for (int i = 0; i < N; i++)
void f(float A[N * N], const float x[N], float y[N])
{
    EACH(i) {
        float sum = 0; /* of a row */
        EACH(j)
            sum += AT(i, j) * x[j];
        y[i] = sum;
    }
}
"""
    text = made(tmp_path, source, warnings)
    assert [words in text for words in ("EACH", "AT(", "A[(i) * 24 + (j)] * x[j];")] == [False, False, True]
    assert "    for (int i = 0; i < 24; i++) {\n        float sum = 0;" in text
    assert len(warnings) == 1
    assert "is written as it is" in warnings[0]
    (tmp_path / "out.c").write_text(text)
    subprocess.run(["gcc", "-Wall", "-Werror", "-fopenmp", "-c", "out.c"], cwd=tmp_path, check=True, timeout=60)


@pytest.mark.parametrize(
    ("call", "written"), [("sqrt(x[i])", True), ("fabs(abs(n) + x[i])", True), ("__builtin_parity(n)", True)]
)
def test_a_function_written_alone_calls_what_is_declared(
    call: str, written: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the headers of what it calls; a function of the file alone would be one that returns an int."""
    monkeypatch.setattr(CTimer, "time_us", lambda self, text: 300.0)
    monkeypatch.setattr(CTimer, "_least_us", lambda self, program: 100.0)
    head = "#include <math.h>\n#include <stdlib.h>\nstatic double half(double x) { return x / 2; }\n"
    loop = f"for (int i = 0; i < n; i++) y[i] = {call};  /* own */"
    text = made(tmp_path, f"{head}void f(int n, double *x, double *y) {{ {loop} }}", [])
    assert ("/* own */" in text) == written
    (tmp_path / "out.c").write_text(text)
    gcc = ["gcc", "-Wall", "-Werror", "-fopenmp", "-c", "out.c"]
    subprocess.run(gcc, cwd=tmp_path, check=True, timeout=60)


def test_the_comment_of_a_function_without_sizes(tmp_path: Path) -> None:
    """It names none."""
    text = "double a[8];\nvoid f(void) { for (int i = 0; i < 8; i++) a[i] = 2 * a[i]; }"
    assert "Timed with -O3 -march=native: " in made(tmp_path, text, [], {})


def test_what_cannot_be_timed_is_said(tmp_path: Path) -> None:
    """Without sizes, and where one run takes long."""
    warnings: list[str] = []
    assert "#pragma omp parallel for" in made(tmp_path, SCALE, warnings, {})
    assert made(tmp_path, LONG, warnings, {"n": "4000"})
    assert [w.partition(": ")[0] for w in warnings] == ["the C that is written was not timed"] * 2
    assert "give it with -D n=VALUE" in warnings[0]


def test_a_header_declares_the_function(tmp_path: Path) -> None:
    """With the types that the declaration needs; a caller compiles with it, and a module has none."""
    (tmp_path / "f.c").write_text(SCALE)
    call = ("build", "f.c", "-D", "n=64", "--untuned", "--c", "--header", "out.h")
    for _ in range(2):  # again in their place
        ran = looptune(*call, "-o", "out.c", cwd=tmp_path)
        assert ran.code == 0, ran.err
    ran = looptune(*call, "-o", "out.h", cwd=tmp_path)
    assert (ran.code, "--header out.h and -o name one file" in ran.err) == (2, True)
    ran = looptune(*call[:-1], "f.c", "-o", "out.c", cwd=tmp_path)
    assert (ran.code, "--header f.c is a file that this command reads" in ran.err) == (2, True)
    assert "Timed with -O3 -march=native at n=64: " in (tmp_path / "out.c").read_text()
    caller = (
        '#include "out.h"\n#include "out.h"\nint main(void) { real x[2] = {1, 2}, y[2]; scale(2, x, y); return y[1]; }'
    )
    (tmp_path / "main.c").write_text(caller)
    gcc = ["gcc", "-Wall", "-Werror", "-fopenmp", "main.c", "out.c", "-o", "program", "-lm"]
    subprocess.run(gcc, cwd=tmp_path, check=True, timeout=60)
    assert subprocess.run([tmp_path / "program"], timeout=60, check=False).returncode == 4
    ran = looptune("build", "f.c", "--untuned", "--header", "out.h", "-o", "out.py", cwd=tmp_path)
    assert ran.code == 2
    assert "--header needs --c" in ran.err
