"""Every loop nest of a program in one table."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from looptune.core.errors import UsageError
from looptune.ir.nodes import Codelet
from looptune.report.scan import findings, text
from looptune.report.scan.findings import FileFindings
from looptune.report.scan.profile import profiled
from looptune.report.scan.sources import Source, sources

PROGRAM = """\
#include <stdio.h>
#include "sizes.h"
static double A[N][N], x[N];
static int find(double v) { for (int i = 0; i < N; i++) if (x[i] > v) return i; return -1; }
int main(int argc, char **argv)
{
  for (int t = 0; t < argc; t++) {
    printf("step %d\\n", t);
#pragma looptune parallel
    for (int i = 0; i < N; i++)
      for (int j = 0; j < N; j++) A[i][j] = 2 * A[i][j] + 1;
    for (int i = 1; i < N; i++) x[i] = x[i - 1] + A[i][i];
  }
  return find(2) < 0;
}
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "include").mkdir()
    (tmp_path / "include/sizes.h").write_text("#define N 100\n")
    (tmp_path / "src").mkdir()
    path = tmp_path / "src/program.c"
    path.write_text(PROGRAM)
    return path


def found(*paths: Path) -> list[FileFindings]:
    return findings.scan(sources(paths, {}, ()), 1)


def test_each_nest_has_its_verdict_and_reason(program: Path) -> None:
    (file,) = found(program.parents[1])
    assert [(n.kernel, n.depth, n.verdict, n.inside) for n in file.nests] == [
        ("find", 1, "sequential", False),
        ("main:7", 3, "sequential", False),
        ("main:10", 2, "parallel", True),
        ("main:12", 1, "sequential", True),
    ]
    reason = (
        "printf, which is not defined in this program, cannot be called in a codelet: define it in this file or in a "
    )
    assert file.nests[1].obstacle == f"{reason}header of it, or leave the call out, 8:5"
    assert [(f.variable, f.reason) for f in file.nests[1].loops] == [("t", "it calls printf in this order, 8:5")]
    assert file.nests[0].reason == "i: a jump may end it early, 4:71"
    assert file.nests[3].reason.startswith("i: flow on x; (i=1) writes x[1] ")
    assert [(f.variable, f.verdict) for f in file.nests[2].loops] == [("i", "parallel"), ("j", "parallel")]
    # two operations, an element of eight bytes: A is read and written
    assert file.nests[2].intensity == pytest.approx(2 / 8)


LIBRARY = """\
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
double A[9][9], x[9];
static int next(void) { static int last = 1; return last = last * 5 % 7; }
static void fail(const char *why) { fprintf(stderr, "%s\\n", why); exit(1); }
int main(int argc, char **argv) {
  char line[80], word[9][80];
  FILE *in = fopen(argv[1], "r");
  for (int i = 0; i < 9; i++) for (int j = 0; j < 9; j++) A[i][j] = (double) rand() / RAND_MAX;
  for (int i = 0; i < 9; i++) { if (fgets(line, 80, in) == NULL) fail("no line"); sscanf(line, "%lf", &x[i]); }
  for (int i = 0; i < 9; i++) { double s = 0; for (int j = 0; j < 9; j++) s += A[i][j]; printf("%f", s); }
  for (int i = 0; i < 9; i++) if (x[i] < 0) return 1;
  for (int i = 0; i < 9; i++) if (x[i] < 1) goto out;
  for (int i = 0; i < 9; i++) x[i] = next();
  for (int i = 0; i < 9; i++) x[i] = atof(argv[2]) + strlen(line);
  for (int i = 0; i < 9; i++) { strcpy(word[i], line); strcat(line, word[i]); }
  for (int i = 0; i < 9; i++) sprintf(argv[i], "%d", i);
  while (x[0] > 1) { for (int i = 0; i < 9; i++) x[i] *= 0.5; }
out:
  return 0;
}
void g(double **rows) {
#pragma omp parallel for
  for (int i = 0; i < 9; i++) { if (x[i] < 0) puts(""); x[i] += 1; }
  for (int i = 0; i < 9; i++) free(rows[i]);
}
"""


def test_a_nest_that_cannot_be_compiled_is_analysed(tmp_path: Path) -> None:
    """Calls with effects have an order, jumps end a nest; the nests inside that can be compiled stand alone."""
    path = tmp_path / "library.c"
    path.write_text(LIBRARY)
    (file,) = found(path)
    said = [(n.line, n.verdict, n.reason.partition(";")[0].partition("\n")[0], bool(n.obstacle)) for n in file.nests]
    assert said == [
        (10, "sequential", "i: it calls rand in this order, 10:78", True),
        (11, "sequential", "i: it calls fgets in this order, 11:37", True),
        (12, "sequential", "i: it calls printf in this order, 12:89", True),
        (12, "reduction", "j: + of s", False),
        (13, "sequential", "i: a jump may end it early, 13:45", True),
        (14, "sequential", "i: a jump may end it early, 14:45", True),
        (15, "sequential", "i: flow on last_of_next", True),
        (16, "parallel", "", True),
        (17, "unknown", "i: the element of line that this call accesses cannot be analysed, 17:56", True),
        (18, "sequential", "i: it calls sprintf in this order, 18:31", True),
        (19, "sequential", "while: each iteration decides whether there is a next one", False),
        (19, "parallel", "", False),
        (25, "sequential", "i: it calls puts in this order, 25:47", True),
        (26, "sequential", "i: it calls free in this order, 26:31", True),
    ]  # fmt: skip
    assert not any(n.races for n in file.nests)


OTHERS = """\
#include <stdlib.h>
static const int wide = sizeof(double) / sizeof(short);
struct body { double mass, at[3]; };
int f(int), g(), fib(int), state;
void rotate(double *, int *, const char *);
void show(struct body *);
int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
int next(int n) { state = n; return n < 2 ? n : next(n - 1); }
void h(int n, int *a, double **rows, double m[n][n], struct body *bodies, int t, void *user) {
  for (int i = 0; i < n; i++) a[i] = f(g(a[i / 2]));
  for (int i = 0; i < n; i++) { rotate(&m[i][i], &t, "x"); for (int j = 0; j < n; j++) m[i][j] = t; }
  for (int i = 0; i < n; i++) { show(&bodies[i]); show(user); }
  for (int i = 0; i < n; i++) a[i] = fib(i);
  for (int i = 0; i < n; i++) { t = next(a[i]); if (t > state) break; }
  for (int i = 0; i < n; i++) { rows[i] = malloc(n * wide); for (int j = 0; j < n; j++) rows[i][j] = 0; }
  for (int i = 0;; ++i) for (int j = 0; j < n; j++) a[j] = 0;
  for (int i = 0; g(i); i++) a[i] = 0;
  for (int i = 0; i < n; i++) { t = user ? a[i] : 0; if (!a || (NULL != rows && t)) break; }
  for (int i = 1; i < n; i++) if (user == 0 && a) a[i] = a[i - 1]; else a[i] = 2;
  for (int i = 0; i < n; i++) if (rows[i]) rows[i][0] = user != NULL ? 1 : 2;
}
"""


def test_functions_of_other_files_and_recursive_ones_have_an_order(tmp_path: Path) -> None:
    """They may change all memory that they are given; a loop without them is analysed as if they were not there.

    The nests of the lines 18 and 19 test pointers that are assumed not to be null, and can be compiled.
    """
    path = tmp_path / "others.c"
    path.write_text(OTHERS)
    (file,) = found(path)
    said = [(n.line, n.verdict, n.reason.partition("\n")[0].partition(", 1")[0]) for n in file.nests if n.obstacle]
    assert said == [
        (10, "sequential", "i: it calls g in this order"),
        (11, "sequential", "i: it calls rotate in this order"),
        (12, "sequential", "i: it calls show in this order"),
        (13, "parallel", ""),
        (14, "sequential", "i: it calls next in this order"),
        (15, "sequential", "i: it calls malloc in this order"),
        (16, "sequential", "while: each iteration decides whether there is a next one"),
        (17, "sequential", "while: each iteration decides whether there is a next one"),
        (20, "parallel", ""),
    ]


MISSING = """
#include "params.h"
#include <mpi.h>
static double u[NX][NY / 2 * 2 + 1], table[2 * NX];
void f(grid_t *g, MPI_Comm c, int n) {
  MPI_Request r[2]; MPI_Status s; real_t t = 0;
  for (int i = 1; i < NX - 1; i++) for (int j = 0; j < NY; j++) u[i][j] = DT * u[i][j];
  for (int i = 0; i < g->n; i++) g->x[i] = g->y[i] * SCALE;
  for (int i = 0; i < n; i++) { MPI_Irecv(&r[0], c); if (s.MPI_SOURCE == MPI_ANY_SOURCE) MPI_Wait(&r[0], &s); }
  for (int i = 0; i < NX; i++) table[i] = table[i + NX];
  for (int i = 0; i < n; i++) weights[i] = weights[i + 1];
  for (int i = 0; i < n; i++) t += g->x[i];
  for (int i = 0; i < n; i++) g->solve(g->x, i);
  g->sum = t;
}
void h(handle_t p, const int *length, double *x) {
  int m = *length; double t;
  for (int i = 0; i < m; i++) p->x[i] = p->y[i] * p->scale;
  for (int i = 0; i < p->n; i++) { *&t = x[i]; x[i] = t * (&p->at)->first; }
}
"""


def test_what_missing_headers_declare_is_found_in_the_text(tmp_path: Path) -> None:
    """Names are integers or arrays, types are numbers, or structs with the fields that the text names."""
    (tmp_path / "program.c").write_text(MISSING)
    (file,) = found(tmp_path / "program.c")
    assert [n.verdict for n in file.nests] == [
        "parallel", "parallel", "sequential", "parallel", "sequential", "reduction", "sequential", "parallel",
        "not supported",
    ]  # fmt: skip
    assert "calls MPI_Irecv in this order" in file.nests[2].reason
    assert "anti on weights" in file.nests[4].reason
    assert "calls g->solve in this order" in file.nests[6].reason
    assert all(n.obstacle for n in file.nests[:-1])


POINTERS = """
double square(double x) { return x * x; }
typedef struct { double (*f)(double); double w[4]; } op;
void f(int n, double *x, double (*k)(double, int), op *ops) {
  double (*best)(double) = 0;
  for (int i = 0; i < n; i++) { if (i == 2) best = square; x[i] = k(x[i], i); }
  for (int i = 0; i < n; i++) ops[i].w[1] = ops[i].w[0];
  if (best) for (int i = 0; i < n; i++) x[i] += best(2) + (*ops[i].f)(3);
}
int compare(const void *a, const void *b) {
  const double *x = a, *y = (const double *) b; int r = 0;
  for (int i = 0; i < 3; i++) { r += x[i] < y[i]; if (r < 0) best(0); }
  return r;
}
void both(void *a, int n) {
  for (int i = 0; i < n; i++) { int *k = a; double *d = a; k[i] = 0; d[i] = 1; }
}
"""


def test_pointers_to_functions_and_to_void(tmp_path: Path) -> None:
    """A call through a pointer has an order; memory behind a pointer to void has one type, or is one element."""
    (tmp_path / "program.c").write_text(POINTERS)
    (file,) = found(tmp_path / "program.c")
    assert [n.verdict for n in file.nests] == ["sequential", "parallel", "sequential", "sequential", "sequential"]
    assert "calls k in this order" in file.nests[0].reason


def test_the_table_has_a_command_that_tunes(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(program.parents[1])
    shown = text.text(found(program.parents[1]))
    assert "4 loop nests in 1 file: 1 parallel, 3 sequential" in shown
    assert "looptune run src/program.c --kernel main:10 --sweep" in shown
    assert "<script>" in text.page(found(program), "<Loops>")
    assert "&lt;Loops&gt;" in text.page(found(program), "<Loops>")


def test_a_missing_header_is_named_and_hides_nothing_else(program: Path) -> None:
    (file,) = found(program)
    assert file.missing == ("sizes.h",)
    assert [n.verdict for n in file.nests] == ["sequential", "parallel"]
    assert all(n.obstacle for n in file.nests)


def test_a_compilation_database_has_the_folders_and_macros(program: Path) -> None:
    database = program.parents[1] / "compile_commands.json"
    command = "cc -DN=7 -Iinclude -O3 -c -o program.o src/program.c"
    database.write_text(json.dumps([
        {"directory": str(database.parent), "file": "src/program.c", "command": command},
        {"directory": str(database.parent), "file": "other.cpp", "command": "c++ -c other.cpp"},
        {"directory": str(database.parent), "file": "other.f90", "command": "gfortran -c other.f90"},
    ]))  # fmt: skip
    source, other = sources((database,), {}, ())
    assert other.path.name == "other.cpp"
    assert source.path == program
    assert source.defines == (("N", "7"),)
    assert program.parents[1] / "include" in source.include_dirs
    assert source.flags[0] == "-DN=7"
    assert source.flags[-1] == "-O3"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("absent.c", None, "no such file"),
        ("empty", "", "no .c or .cpp file in"),
        ("compile_commands.json", "{}", "is no compilation database"),
        ("compile_commands.json", "[", "cannot read"),
    ],
)
def test_what_is_no_program_is_refused(name: str, content: str | None, message: str, tmp_path: Path) -> None:
    path = tmp_path / name
    if content is not None and path.suffix:
        path.write_text(content)
    elif content is not None:
        path.mkdir()
    with pytest.raises(UsageError, match=message):
        sources((path,), {}, ())


@pytest.mark.wide
def test_a_nest_that_takes_too_long_hides_no_other(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = findings.nest_facts

    def loops(codelet: Codelet, analysis: object, flags: object) -> object:
        names = [n.name for n in codelet.params]
        if "A" in names and "x" not in names:
            time.sleep(60)
        return slow(codelet, analysis, flags)  # type: ignore[arg-type]

    monkeypatch.setattr(findings, "nest_facts", loops)
    monkeypatch.setattr(findings, "LIMIT_S", 2.0)
    monkeypatch.setattr(findings, "FILE_LIMIT_S", 3.0)
    (file,) = found(program.parents[1])
    assert [n.verdict for n in file.nests] == ["sequential", "sequential", "stopped", "sequential"]


def test_an_error_of_ours_in_one_nest_hides_no_other(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = findings._intensity

    def fails(analysis: object) -> float | None:
        if analysis.codelet.name == "main_12":  # type: ignore[attr-defined]
            raise KeyError("lost")
        return whole(analysis)  # type: ignore[arg-type]

    monkeypatch.setattr(findings, "_intensity", fails)
    (file,) = found(program.parents[1])
    assert [n.verdict for n in file.nests] == ["sequential", "sequential", "parallel", "stopped"]
    assert file.nests[3].reason == "the analysis failed, which is an error in looptune: KeyError: 'lost'"


def test_a_profile_counts_the_runs_of_each_nest(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(program.parent)
    given = sources((program.parents[1],), {}, ())
    files, times = profiled(given, findings.scan(given, 1), ["a", "b"], ())
    assert times.exit_code == 0
    runs = {n.kernel: n.profile.runs for n in files[0].nests if n.profile is not None}
    assert runs == {"find": 1, "main:7": 1, "main:10": 3, "main:12": 3}
    profiles = [n.profile for n in files[0].nests if n.profile is not None]
    assert all(0 <= p.share <= 1 and p.seconds >= 0 for p in profiles)
    assert profiles[1].seconds >= profiles[2].seconds


def test_a_program_that_does_not_build_is_refused(program: Path) -> None:
    given = [Source(program)]
    with pytest.raises(UsageError, match=r"program.c does not compile with timers: .*sizes.h"):
        profiled(given, findings.scan(given, 1), (), ())


@pytest.mark.sampled(4, "wide")
@pytest.mark.parametrize("options", [(), ("--json",), ("--html", "scan.html"), ("--profile",)])
def test_the_command(options: tuple[str, ...], program: Path) -> None:
    where = program.parents[1]
    words = ["looptune", "scan", ".", *options]
    done = subprocess.run([sys.executable, "-m", *words], cwd=where, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "main" in done.stdout
    if options == ("--json",):
        assert json.loads(done.stdout)["nests"][2]["command"] == "looptune run src/program.c --kernel main:10 --sweep"
    if options == ("--html", "scan.html"):
        assert "looptune run src/program.c" in (where / "scan.html").read_text()
