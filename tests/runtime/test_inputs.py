"""Where inputs come from: the program's own run and a .npz file; what they leave, and what is said of every mistake."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from looptune.core.errors import UsageError
from looptune.frontend import load
from looptune.runtime.host_program import record
from looptune.runtime.inputs import from_files, from_program
from looptune.runtime.problem_sizes import Problem, is_interpretable, problem
from looptune.tune.measure.evaluate import KernelBuilder
from looptune.tune.measure.measuring_device import MeasuringDevice
from looptune.tune.session import dump, prepare
from looptune.tune.session.dump import DumpRequest

gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")

PROGRAM = """#include <stdio.h>
#include <stdlib.h>
#include "shared/sizes.h"
#define ALPHA 3
typedef double real;
long calls = 0;
float shift[3] = {1, 2, 4};
static void kernel(int n, int m, real alpha, float *x, const real A[n][m], real *sum, unsigned char *flags)
{
  int i, j;
  for (i = 0; i < n; i++) {
    flags[i] = flags[i] + 1;
    for (j = 0; j < m; j++)
      x[i] += alpha * A[i][j] + shift[j % 3] + calls;
  }
  for (i = 0; i < n; i++) *sum += x[i];
}
int main(int argc, char **argv) {
  real alpha = ALPHA, total = 0.5;
  int n = N, m = argc + 4;
  float *x = malloc(n * sizeof *x);
  real (*A)[m] = malloc(n * sizeof *A);
  unsigned char flags[N];
  for (int i = 0; i < n; i++) {
    x[i] = i;
    flags[i] = 3 * i;
    for (int j = 0; j < m; j++) A[i][j] = i - j / 4.0;
  }
  for (calls = 7; calls < 9; calls++) kernel(n, m, alpha, x, A, &total, flags);
  printf("%g\\n", total);
  return 0;
}
"""

ADD = """void add(int n, float a, float x[n], float y[n], float z[n]) {
  for (int i = 0; i < n; i++) z[i] = a * x[i] + y[i];
  for (int i = 0; i < n; i++) y[i] -= x[i];
}
"""


def written(folder: Path, text: str) -> Path:
    file = folder / "program.c"
    file.write_text(text)
    (folder / "shared").mkdir(exist_ok=True)
    (folder / "shared" / "sizes.h").write_text("#define N 6\n")
    return file


def ran(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "looptune", "run", *map(str, arguments), "--target", "numba-cpu"]
    options = ["--db", "db.sqlite", "--reports", "reports"]
    return subprocess.run([*command, *options], cwd=cwd, capture_output=True, text=True, timeout=120)


# The program's own run.


@gcc
def test_the_first_call_is_recorded(tmp_path: Path) -> None:
    """Scalars, arrays of every kind and file-scope variables are what the first of two calls finds."""
    found = record(load(written(tmp_path, PROGRAM)), ())
    assert found.scalars == {"n": 6, "m": 5, "alpha": 3.0, "calls": 7}
    i, j = np.indices((6, 5))
    np.testing.assert_array_equal(found.arrays["A"], i - j / 4.0)
    np.testing.assert_array_equal(found.arrays["x"], np.arange(6, dtype=np.float32))
    np.testing.assert_array_equal(found.arrays["flags"], np.arange(0, 18, 3, dtype=np.uint8))
    np.testing.assert_array_equal(found.arrays["shift"], np.array([1, 2, 4], np.float32))
    np.testing.assert_array_equal(found.arrays["sum"], [0.5])
    assert {a.dtype.name for a in found.arrays.values()} == {"float64", "float32", "uint8"}


@gcc
def test_fields_of_structs_and_complex_numbers_are_recorded(tmp_path: Path) -> None:
    text = """#include <complex.h>
    struct grid { int n; double *data; double sum; double complex z; };
    void f(struct grid *g, double complex a, float complex *x) {
      for (int i = 0; i < g->n; i++) { x[i] = a * x[i] + g->z; g->sum += g->data[i]; }
    }
    int main(void) {
      double d[3] = {1, 2, 3}; float complex x[3] = {1, 2 + I, 3 * I};
      struct grid g = {3, d, 0.5, 2 - I};
      f(&g, 1 + 2 * I, x);
    }
    """
    found = record(load(written(tmp_path, text), kernel="f"), ())
    assert found.scalars == {"a_re": 1, "a_im": 2, "g_n": 3, "g_z_re": 2, "g_z_im": -1}
    assert {name: a.tolist() for name, a in found.arrays.items()} == {
        "x": [[1, 0], [2, 1], [0, 3]], "g_data": [1, 2, 3], "g_sum": [0.5],
    }  # fmt: skip


@gcc
def test_a_given_macro_keeps_its_value(tmp_path: Path) -> None:
    """-D wins over a #define of the text or of a header beside it, as it does everywhere else."""
    found = record(load(written(tmp_path, PROGRAM), defines={"N": 4, "ALPHA": "2"}), ())
    assert (found.scalars["n"], found.scalars["alpha"], found.arrays["A"].shape) == (4, 2.0, (4, 5))


@gcc
def test_another_type_takes_the_same_values(tmp_path: Path) -> None:
    """With a dtype the program runs in its own types, and the data are converted."""
    file = written(tmp_path, PROGRAM)
    made = from_program(record(load(file), ()), load(file, dtype="float32"), tmp_path / "cache")
    arrays = made.arrays(load(file, dtype="float32").codelet, 0)
    assert arrays["A"].dtype == np.float32
    assert arrays["A"][3, 2] == 2.5
    assert (arrays["flags"].dtype, made.values["alpha"]) == (np.uint8, 3.0)


@gcc
def test_what_stands_before_a_scop_has_happened(tmp_path: Path) -> None:
    """In a function with a scop the hook stands at the scop: scalars and arrays are as they enter it."""
    text = """void f(int n, double *x) {
  double first = x[0] + 1, table[4];
  for (int i = 0; i < 4; i++) table[i] = i * first;
  x[1] = 50;
#pragma scop
  for (int i = 0; i < n; i++) x[i] += first * table[i % 4];
#pragma endscop
}
int main(void) { double x[5] = {9, 8, 7, 6, 5}; f(5, x); return 0; }
"""
    found = record(load(written(tmp_path, text)), ())
    assert found.scalars == {"n": 5, "first": 10.0}
    assert found.arrays["x"].tolist() == [9, 50, 7, 6, 5]
    assert found.arrays["table"].tolist() == [0, 10, 20, 30]


@gcc
def test_every_codelet_of_a_group_is_recorded(tmp_path: Path) -> None:
    """A parameter of a group is what the first codelet that has it is called with, under the function's own name."""
    text = """#pragma hmpp <g> group, target=CUDA
#pragma hmpp <g> first codelet, args[x].io=in, args[y].io=out
static void first(int n, float a, float *x, float y[8]) { for (int i = 0; i < n; i++) y[i] = a * x[i]; }
#pragma hmpp <g> second codelet, args[q].io=in, args[z].io=inout
static void second(int m, float *q, float *z, float b) { for (int i = 0; i < m; i++) z[i] += b * q[i]; }
int main(void) {
  float x[8], y[8], z[8], b;
  for (int i = 0; i < 8; i++) { x[i] = i; y[i] = 100; z[i] = 2 * i; }
  first(8, 3.0f, x, y);
  b = y[2] / 3;
  second(8, y, z, b);
  return 0;
}
"""
    found = record(load(written(tmp_path, text)), ())
    assert found.scalars == {"n": 8, "a": 3.0, "b": 2.0}
    assert {name: a[1] for name, a in found.arrays.items()} == {"x": 1, "y": 100, "z": 2}


@gcc
def test_what_guarded_accesses_reach_may_not_be_there(tmp_path: Path) -> None:
    """Where bounds are wider than what is accessed, and memory ends, the rest reads as zeros."""
    text = """#include <sys/mman.h>
void f(int n, double *x) { for (int i = 0; i < n; i++) if (i + 1 < n) x[i] += x[i + 1]; }
int main(void) {
  int n = 4096 / sizeof(double);
  char *two = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(two + 4096, 4096);
  double *x = (double *) two;
  for (int i = 0; i < n; i++) x[i] = 1;
  f(n, x);
}
"""
    found = record(load(written(tmp_path, text)), ()).arrays["x"]
    assert found[:512].tolist() == [1.0] * 512
    assert not found[512:].any()


WRONG_PROGRAMS = {
    "a syntax error outside of the codelet": (
        "int main(void) { return undeclared; }\n",
        r"gcc refuses the program: .*program.c:7:25: error: .*undeclared",
    ),
    "no main": ("", r"program.c has no main function"),
    "a function that is nowhere": (
        "void helper(void), other(void);\nint main(void) { helper(); other(); f(0, 0); }\n",
        r"does not define helper, other: neither program.c nor a .c file beside a header it includes has it",
    ),
    "a codelet that is not called": ("int main(void) { return 0; }\n", r"the program ended before it called f"),
    "an early exit": (
        "#include <stdlib.h>\nint main(void) { exit(3); }\n",
        r"ended with exit status 3 before it called f",
    ),
    "a crash": ("int main(void) { *(volatile int *) 0 = 1; }\n", r"crashed \(SIG(SEGV|ILL|TRAP)\) before it called f"),
    "no end": ("int main(void) { for (;;) ; }\n", r"ran for 0.3 s before it called f"),
}


@pytest.mark.sampled(4, "wide")
@gcc
@pytest.mark.parametrize("case", WRONG_PROGRAMS)
def test_a_program_that_cannot_tell_is_one_message(case: str, tmp_path: Path) -> None:
    """Whatever keeps the program from its codelet is said in one line."""
    text, message = WRONG_PROGRAMS[case]
    file = written(
        tmp_path, "void f(int n, double *x)\n{\n  int i;\n  for (i = 0; i < n; i++)\n    x[i] = 0;\n}\n" + text
    )
    with pytest.raises(UsageError, match=message) as raised:
        record(load(file), (), limit_s=0.3)
    assert "\n" not in raised.value.message


def test_without_gcc_the_program_cannot_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """--inputs-from-main says that it needs gcc."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="compiles the program with gcc, which is not installed"):
        record(load(written(tmp_path, ADD)), ())


# A file.


def problem_of(folder: Path, text: str = ADD, defines: dict[str, Any] | None = None, **held: Any) -> Problem:
    np.savez(folder / "data.npz", **held)
    return from_files([str(folder / "data.npz")], load(written(folder, text), defines=defines), folder / "cache")


def floats(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def test_a_file_gives_arrays_scalars_and_sizes(tmp_path: Path) -> None:
    """A size may be that of an array; an array only written need not be there."""
    made = problem_of(tmp_path, a=2.5, x=floats(1, 2, 3), y=floats(4, 5, 6))
    assert made.values == {"n": 3, "a": 2.5}
    arrays = made.arrays(load(ADD).codelet, 0)
    assert {name: a.tolist() for name, a in arrays.items()} == {"x": [1, 2, 3], "y": [4, 5, 6], "z": [0, 0, 0]}


def test_contents_name_the_data(tmp_path: Path) -> None:
    """Equal inputs are kept once, others apart, so that results of one are never taken for the other's."""
    first, again, other = (problem_of(tmp_path, a=1.0, x=floats(1, v), y=floats(0, 0)) for v in (2, 2, 3))
    assert first.data == again.data
    assert first.data != other.data


def test_an_open_extent_is_as_large_as_the_file_says(tmp_path: Path) -> None:
    """``double *x`` takes any array that is large enough."""
    text = "void f(int n, double *x, double (*B)[2]) { for (int i = 0; i < n; i++) x[i] += B[i + 1][1]; }\n"
    made = problem_of(tmp_path, text, n=3, x=np.arange(5.0), B=np.ones((9, 2)))
    assert {n: a.shape for n, a in made.arrays(load(text).codelet, 0).items()} == {"x": (5,), "B": (9, 2)}
    with pytest.raises(UsageError, match=r"B must have the shape at least \[4, 2\], but has \[3, 2\] in"):
        problem_of(tmp_path, text, n=3, x=np.arange(5.0), B=np.ones((3, 2)))


GOOD: dict[str, Any] = {"n": 2, "a": 1.5, "x": floats(1, 2), "y": floats(3, 4)}
WRONG_FILES: dict[str, tuple[dict[str, Any], str]] = {
    "unknown names": ({"w": 1, "v": 2}, r"data.npz holds v, w: the parameters of add are n, a, x, y, z"),
    "missing names": ({"a": None, "y": None}, r"data.npz does not contain a, y, which add reads"),
    "another type": ({"x": np.ones(2)}, r"x is float32, but float64 in .*data.npz"),
    "another shape": (
        {"x": floats(1, 2, 3)},
        r"n is 2 in .*data.npz, but the shape of x, \[3\], in .*data.npz makes it 3",
    ),
    "an array for a number": ({"a": floats(1, 2)}, r"a is a number, but .*data.npz contains an array of \[2\]"),
    "a text for a number": ({"a": "two"}, r"a is a number, but .*data.npz contains <U3"),
    "half a size": ({"n": 2.5}, r"n has the type int32, but .*data.npz contains 2.5"),
    "a size that does not fit": ({"n": 2**40}, r"n has the type int32, but .*data.npz contains 1099511627776"),
    "objects": ({"x": np.array([{}], object)}, r"data.npz is not a .npz file of numbers"),
}


@pytest.mark.parametrize("case", WRONG_FILES)
def test_a_file_that_does_not_fit_is_one_message(case: str, tmp_path: Path) -> None:
    """Names, types, shapes and sizes are checked, and the message has the numbers."""
    changed, message = WRONG_FILES[case]
    held = {name: value for name, value in {**GOOD, **changed}.items() if value is not None}
    with pytest.raises(UsageError, match=message):
        problem_of(tmp_path, **held)


def test_sizes_must_agree(tmp_path: Path) -> None:
    """A size that -D or the program gives must be the file's; another scalar of the program's gives way to the file."""
    with pytest.raises(UsageError, match=r"n is 2 in .*data.npz, but -D n=3"):
        problem_of(tmp_path, defines={"n": 3}, **GOOD)
    with pytest.raises(UsageError, match=r"a is 1.5 in .*data.npz, but -D a=2.0"):
        problem_of(tmp_path, defines={"a": 2}, **GOOD)
    called = "#ifndef N\n#define N 4\n#endif\n" + ADD + "int main(void) { float v[N]; add(N, 7, v, v, v); }\n"
    with pytest.raises(UsageError, match=r"n is 2 in .*data.npz, but -D N=3"):
        problem_of(tmp_path, called, {"N": 3}, **GOOD)
    assert problem_of(tmp_path, called, **GOOD).values == {"n": 2, "a": 1.5}
    with pytest.raises(UsageError, match=r"n is 3 in .*data.npz, but the shape of y, \[2\], in .*data.npz makes it 2"):
        problem_of(tmp_path, called, **{**GOOD, "n": 3, "x": floats(1, 2, 3)})


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "no such file"), (b"text", "not a .npz file of numbers"), (b"", "not a .npz file of numbers")],
)
def test_no_npz_file_is_one_message(content: bytes | None, message: str, tmp_path: Path) -> None:
    """An absent file and one of another kind are user mistakes."""
    path = tmp_path / "data.npz"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError, match=message):
        from_files([str(path)], load(ADD), tmp_path)


def test_one_array_is_not_a_file_of_arrays(tmp_path: Path) -> None:
    """What numpy.save writes has no names."""
    np.save(tmp_path / "x.npy", floats(1))
    with pytest.raises(UsageError, match="holds one array without a name: name its parameter, --data NAME="):
        from_files([str(tmp_path / "x.npy")], load(ADD), tmp_path)


# The command.


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"data": ("data.npz",), "inputs_from_main": True},
            "--data and --inputs-from-main both give the inputs: choose one",
        ),
        ({"dump": ("no/out.npz",)}, "--dump no/out.npz: no such folder: no"),
        ({"dump": ("shared",)}, "--dump shared is a folder: give the name of a file"),
        ({"dump": ("y=no/y.npy",)}, "--dump y=no/y.npy: no such folder: no"),
        ({"dump": ("out.png",)}, "--dump out.png: name the array, --dump NAME=out.png"),
        ({"dump": ("out.npz", "a=a.npy")}, "--dump a=a.npy: add gives back y, z"),
        ({"dump": ("y=y.npz",)}, "--dump y=y.npz: one array goes to a file in .png, .pgm or .npy"),
        ({"dump": ("y=y.png",)}, "--dump y=y.png: a picture has two dimensions, y has 1"),
    ],
)
def test_options_are_checked_before_anything_runs(
    options: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One source of inputs, and a place to write to."""
    monkeypatch.chdir(tmp_path)
    request = prepare.TuningRequest(written(tmp_path, ADD), defines={"n": "4"}, target="numba-cpu", **options)
    with pytest.raises(UsageError) as raised:
        prepare.prepare(request)
    assert raised.value.message == message


@pytest.mark.wide
def test_data_and_dump_are_for_one_file(tmp_path: Path) -> None:
    """Several files cannot share inputs or results."""
    written(tmp_path, ADD)
    done = ran("program.c", "program.c", "--dump", "out.npz", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, "error: --data and --dump take only one FILE, at one size\n")


@pytest.mark.wide
def test_every_run_has_the_data_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check, the timing and --dump use --data; the database keeps its results apart from those of random data."""
    monkeypatch.setattr(prepare, "CACHE", tmp_path / "cache")
    file = written(tmp_path, ADD.replace("[n]", "[2000]"))
    x, y = np.arange(2000, dtype=np.float32), np.ones(2000, np.float32)
    np.savez(tmp_path / "data.npz", n=2000, a=0.5, x=x, y=y)
    request = prepare.TuningRequest(file, target="numba-cpu", directives=("loop 1: unroll 3",))
    prepared = prepare.prepare(replace(request, data=(str(tmp_path / "data.npz"),)))
    bench = MeasuringDevice(prepared.job)
    np.testing.assert_array_equal(bench.arrays["x"], x)
    np.testing.assert_array_equal(bench.comparison.judge.expected["z"], x / 2 + 1)
    np.testing.assert_array_equal(bench.pairs()["y"][1], y)
    dump.write(
        KernelBuilder(prepared.job, prepared.context),
        prepared.annotated.text,
        [DumpRequest(tmp_path / "out.npz", None)],
    )
    with np.load(tmp_path / "out.npz") as held:
        assert sorted(held.files) == ["y", "z"]
        np.testing.assert_array_equal(held["z"], x / 2 + 1)
        np.testing.assert_array_equal(held["y"], 1 - x)
    random = prepare.prepare(replace(request, defines={"n": "2000", "a": "0.5"}))
    assert random.context != prepared.context


@pytest.mark.long
@gcc
def test_the_program_goes_in_and_a_file_comes_out(tmp_path: Path) -> None:
    """--inputs-from-main: the dumped arrays are those of one call on the program's own data."""
    written(tmp_path, PROGRAM)
    done = ran("program.c", "--inputs-from-main", "--dump", "out.npz", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    i, j = np.indices((6, 5))
    terms = 3 * (i - j / 4.0) + np.array([1, 2, 4])[j % 3] + 7
    x = np.arange(6) + terms.sum(axis=1)
    with np.load(tmp_path / "out.npz") as held:
        np.testing.assert_allclose(held["x"], x, rtol=1e-5)
        np.testing.assert_allclose(held["sum"], [0.5 + x.sum()], rtol=1e-5)
        np.testing.assert_array_equal(held["flags"], np.arange(1, 19, 3))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("struct g { int n; double v; }; void f(int n, struct g *a) { for (int i = 0; i < n; i++) a[i].v = a[i].n; }",
         "f takes fields of structs that --inputs-from-main does not record"),
        ("void f(int n, double **a, int *x) { for (int i = 0; i < n; i++) a[i][x[i]] = 1; }",
         "a_row is no variable of the program"),
    ],
)  # fmt: skip
def test_what_a_program_does_not_pass_is_not_recorded(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        record(load(written(tmp_path, f"{text}\nint main(void) {{ return 0; }}\n"), kernel="f"), ())


def test_loops_that_are_surely_long_are_not_interpreted() -> None:
    """Also where data decide on some of their statements."""
    text = """void f(int n, int m, const int k[m], const float x[n], float y[n]) {
      for (int i = 0; i < n; i++) {
        float s = 0;
        for (int j = 0; j < m; j++) if (x[k[j]] > 0) s += x[k[j]];
        y[i] = s;
      }
    }"""
    codelet = load(text).codelet
    assert is_interpretable(codelet, problem(codelet, {"n": 100, "m": 100}))
    assert not is_interpretable(codelet, problem(codelet, {"n": 10_000, "m": 1_000}))
