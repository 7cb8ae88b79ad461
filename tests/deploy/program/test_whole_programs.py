"""``looptune cc``: programs print what the C compiler's own print, without a device and on one."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from looptune.frontend import Unit, load_each
from tests.helpers.command_line import looptune
from tests.helpers.paths import POLYBENCH, ROOT
from tests.helpers.synthetic_database import context, keep, this_cpu
from tests.helpers.whole_programs import WholeProgram, agrees, build

HERE = Path(__file__).parent / "programs"
FUNCTIONS = ("dot", "find", "tables", "pairs", "aliased")
SUITE = sorted([*POLYBENCH.glob("*.c"), *(POLYBENCH / "c").glob("*.c")])


@pytest.fixture(scope="module")
def refusing(tmp_path_factory: pytest.TempPathFactory, driver: Path) -> WholeProgram:
    return build([HERE / "faults.c"], tmp_path_factory.mktemp("refusing"), driver)


def named(names: tuple[str, ...]) -> list[str]:
    return [word for name in names for word in ("--kernel", name)]


@pytest.mark.sampled(4)
@pytest.mark.sampled(1000, "wide")
@pytest.mark.parametrize("path", SUITE, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_a_suite_program_prints_the_same(path: Path, tmp_path: Path, driver: Path) -> None:
    """The kernels of the suite that are used where nothing was tuned compute what the loops compute.

    The columns of gramschmidt depend on each other at its own sizes, and what rounding leaves of them is another number
    in another order; of multiples modulo a prime, the first half of the columns do not depend on each other.
    """
    agrees(build([path], tmp_path, driver, ["-DM=53", "-DN=20"] if path.stem == "gramschmidt" else ["-DMINI_DATASET"]))


def test_functions_scops_and_their_results(tmp_path: Path, driver: Path) -> None:
    """Values returned, counters read after a scop, structs of two numbers, complex numbers, arrays that overlap."""
    program = build([HERE / "functions.c"], tmp_path, driver, [], named(FUNCTIONS))
    agrees(program)
    said = program.on_device(LOOPTUNE_VERBOSE=1).said
    assert "a and b overlap" in said
    assert "n is negative" in said


@pytest.mark.wide
def test_structs_and_variables_at_file_scope(tmp_path: Path, driver: Path) -> None:
    """Fields are read where the text reads them; accesses before an array's beginning stay on the host."""
    program = build([HERE / "structs.c"], tmp_path, driver)
    agrees(program, "37")
    assert "elements before the first one of p are accessed" in program.on_device(LOOPTUNE_VERBOSE=1).said


@pytest.mark.wide
def test_null_pointers_run_the_loops_of_the_text(tmp_path: Path, driver: Path) -> None:
    """A codelet assumes that pointers which the text tests are not null; where one is, it is not called."""
    program = build([HERE / "null_pointers.c"], tmp_path, driver, [], named(("layer", "above", "main:36")))
    agrees(program)
    assert (program.on_device().count("launch"), program.said.count("warning")) == (10, 0)


@pytest.mark.wide
def test_single_nests(tmp_path: Path, driver: Path) -> None:
    """A nest is replaced in place; one whose accesses follow from data is not, and a warning says what to write."""
    program = build([HERE / "nests.c"], tmp_path, driver, [], named(("work:10", "work:16", "work:18")))
    agrees(program, "100")
    assert "args[a].size={n}" in program.said
    assert program.plain("2").out.split()[:4] == program.on_device("2").out.split()[:4]


@pytest.mark.sampled(3)
@pytest.mark.wide
@pytest.mark.parametrize(
    "name",
    ["held_anyhow", "control_flow", "overlapping", "sizes", "conditionals", "more_structs", "threads"],
)
def test_programs_under_sanitizers(name: str, tmp_path: Path, driver: Path) -> None:
    """Jumps and loops around calls, arguments that overlap, sizes of all types, threads: nothing else is accessed."""
    program = build([HERE / f"{name}.c"], tmp_path, driver, ["-fsanitize=address,undefined", "-fopenmp"])
    plain = program.plain(ASAN_OPTIONS="detect_leaks=0")
    for run, check in ((program.on_host, 0), (program.on_device, 0), (program.on_device, 1)):
        ran = run(LOOPTUNE_CHECK=check, ASAN_OPTIONS="detect_leaks=0")
        assert (ran.code, ran.out) == (plain.code, plain.out), ran
        assert "runtime error" not in ran.said, ran
        assert "differ" not in ran.said, ran


@pytest.mark.wide
def test_scops_after_labels_and_without_braces(tmp_path: Path, driver: Path) -> None:
    """The call and the loops are what the label, the condition or the loop is for."""
    agrees(build([HERE / "scop_places.c"], tmp_path, driver, ["-O1"]))


@pytest.mark.wide
def test_a_child_does_not_wait_for_its_parents_threads(tmp_path: Path, driver: Path) -> None:
    """OpenMP's threads of a process are not in what it forks, which runs its loops alone."""
    program = build([HERE / "forks.c"], tmp_path, driver, ["-O2"])
    plain = program.plain()
    assert plain.out.count("\n") == 6
    for ran in (program.on_host(OMP_NUM_THREADS=3), program.on_device()):
        assert (ran.code, ran.out) == (plain.code, plain.out), ran


@pytest.mark.parametrize(
    "step", ["cuEventRecord", "cuStreamWaitEvent", "cuMemcpyHtoDAsync_v2", "cuCtxPushCurrent_v2", "cuMemAlloc_v2"]
)
def test_a_step_that_the_driver_refuses(step: str, refusing: WholeProgram) -> None:
    """The program prints what it would, or ends and names the array that was only on the device."""
    wanted = refusing.plain().out
    for k in range(1, 19):
        ran = refusing.on_device(FAKE_CUDA_FAIL=f"{step}:{k}=2")
        lost = ran.code == 70 and "on the device only, and are lost" in ran.said
        assert lost or (ran.code, ran.out) == (0, wanted), (k, ran)


@pytest.mark.wide
def test_loops_that_a_return_leaves(tmp_path: Path, driver: Path) -> None:
    """They are not compared, and what was kept for that is freed."""
    program = build([HERE / "early_return.c"], tmp_path, driver)
    agrees(program)
    assert "original loops: 4;" in program.on_device(LOOPTUNE_CHECK=1).said


def test_data_directives_decide_what_is_copied(tmp_path: Path, driver: Path) -> None:
    """Loads and stores happen where the lines stand, once; the calls copy nothing."""
    program = build([HERE / "data_directives.c"], tmp_path, driver)
    agrees(program)
    ran = program.on_device()
    assert (ran.count("to"), ran.count("from"), ran.count("launch")) == (2, 2, 20)


def test_nothing_is_copied_between_calls_that_follow_each_other(tmp_path: Path, driver: Path) -> None:
    """In a loop of codelets, in which pointers are swapped, arrays stay on the device, and a note says so."""
    program = build([HERE / "held.c"], tmp_path, driver)
    agrees(program, "500")
    ran = program.on_device("500")
    assert ran.count("launch") == 29
    assert ran.count("to") < 8
    assert "between these calls" in program.said
    assert program.said.count("between these calls") == 1


def test_arrays_are_copied_while_kernels_run(tmp_path: Path, driver: Path) -> None:
    """Those that the kernels do not use, whether the copies are done before or after what runs, and large ones."""
    program = build([HERE / "overlap.c"], tmp_path, driver)
    agrees(program)
    for settings in ({}, {"FAKE_CUDA_EAGER": 1}, {"LOOPTUNE_VERBOSE": 1}):
        ran = program.on_device("1200000", **settings)
        assert (ran.code, ran.out) == (0, program.plain("1200000").out)
    beside = [line for line in program.on_device().log if line.startswith("to ") and line.endswith("beside")]
    assert len(beside) == 7


def test_functions_with_several_scops(tmp_path: Path, driver: Path) -> None:
    """Each scop is a codelet of its own."""
    program = build([HERE / "two_scops.c"], tmp_path, driver)
    agrees(program)
    said = program.on_device(LOOPTUNE_VERBOSE=1).said
    assert [said.count(f"{name} (two_scops.c") > 0 for name in ("steps_24", "steps_28", "normalise_7")] == [True] * 3
    assert said.count("calls on NVIDIA H200: 5;") == 2


def test_scops_whose_lines_hold_more_than_a_pragma(tmp_path: Path) -> None:
    """A loop is replaced where the text has it, and nothing where it stands in another file."""
    (tmp_path / "part.h").write_text(
        "\n" * 5 + "#pragma scop\nfor (int i = 0; i < n; i++) x[i] *= 3;\n#pragma endscop\n"
    )
    (tmp_path / "b.c").write_text("""#include <stdio.h>
#define BEGIN _Pragma("scop")
void f(int n, float *x) {
#include "part.h"
}
void g(int n, float *x, float c) {
  int i; _Pragma("scop") c += 1;
  for (i = 0; i < n; i++) x[i] += c;
  _Pragma("endscop") x[1] += c;
}
void h(int n, float *x, float c) {
  int i; BEGIN // a macro
  for (i = 0; i < n; i++) x[i] += c;
# pragma \\
 endscop
  x[1] += c;
}
int main(void) { float x[2] = {1, 2}; f(2, x); g(2, x, 5); h(2, x, 7); printf("%g", x[1]); }
""")
    done = looptune("cc", "b.c", "-o", "b", "--arch", "none", cwd=tmp_path)
    assert done.code == 0, done.err
    assert (
        "part.h:7:1: warning: a part of f in a file that it includes cannot be a codelet: write it in b.c" in done.err
    )
    assert "b.c:7:17: warning: the codelet is the loop nest g:8 only: statements stand after this scop" in done.err
    assert subprocess.run([tmp_path / "b"], capture_output=True, text=True).stdout == "32"


@pytest.mark.long
def test_arrays_of_more_elements_than_32_bits_count(tmp_path: Path, driver: Path) -> None:
    """Declared extents give kernels with subscripts of 64 bits; of others the host runs the loops, and it is said."""
    program = build([HERE / "large.c"], tmp_path, driver)
    plain, ran = program.plain(), program.on_device(LOOPTUNE_VERBOSE=1, FAKE_CUDA_MEMORY=1 << 33)
    assert (ran.code, ran.out) == (plain.code, plain.out), ran
    assert "columns (large.c:7) runs on the host" in ran.said
    assert "a has 7500000000 elements, the limit of kernels for any sizes is 2147483648" in ran.said
    checks = {path.stem: path.read_text().count("looptune_countable") for path in program.generated("*.c")}
    assert [count for name, count in checks.items() if "columns" in name] == [1]
    assert [count for name, count in checks.items() if "two_rows" in name] == [0]
    (kernel,) = (path.read_text() for path in program.generated("*two_rows*.cu"))
    assert "(long long)i * 1100000000" in kernel


@pytest.mark.wide
def test_objects_of_several_files(tmp_path: Path, driver: Path) -> None:
    """Objects that were compiled one by one, each with the runtime, link into one program and into a shared library."""
    (tmp_path / "a.c").write_text("void f(int n, float *x) {\n#pragma scop\n  for (int i = 0; i < n; i++) x[i] += 1;\n"
                                  "#pragma endscop\n}\n")  # fmt: skip
    (tmp_path / "b.c").write_text("#include <stdio.h>\nvoid f(int n, float *x);\nstatic void g(int n, float *x) {\n"
                                  "#pragma scop\n  for (int i = 0; i < n; i++) x[i] *= 2;\n#pragma endscop\n}\n"
                                  "int main(void) { float x[9] = {1}; f(9, x); g(9, x); "
                                  'printf("%g %g\\n", x[0], x[8]); }\n')  # fmt: skip
    for name in "ab":
        made = looptune("cc", "-c", "-fPIC", f"{name}.c", "--arch", "none", cwd=tmp_path)
        assert (made.code, made.err) == (0, "")
    made = looptune("cc", "a.o", "b.o", "-o", "program", cwd=tmp_path)
    assert (made.code, made.err) == (0, "")
    shared = looptune("cc", "-shared", "-fPIC", "a.c", "-o", "liba.so", "--arch", "none", cwd=tmp_path)
    assert (shared.code, shared.err) == (0, "")
    assert subprocess.run([tmp_path / "program"], capture_output=True, text=True, check=True).stdout == "4 2\n"


def test_generated_files_compile_without_a_warning(tmp_path: Path) -> None:
    """As C of several standards and as C++."""
    options = ("--arch", "sm_90", "--keep", "generated", "-lm", "-o", "program")
    made = looptune("cc", HERE / "functions.c", "-w", *named(FUNCTIONS), *options, cwd=tmp_path)
    assert made.code == 0, made.err
    texts = sorted((tmp_path / "generated").glob("looptune_*.c"))
    assert len(texts) > len(FUNCTIONS)
    for compiler in ("gcc -std=c99 -fopenmp", "clang -std=c11 -fopenmp-simd", "g++ -x c++"):
        command = [*compiler.split(), "-Wall", "-Wextra", "-pedantic", "-Wno-unknown-pragmas", "-fsyntax-only"]
        if shutil.which(command[0]) is not None:
            done = subprocess.run([*command, *texts], capture_output=True, text=True)
            assert (done.returncode, done.stderr) == (0, ""), done.stderr


@pytest.mark.wide
def test_what_depends_on_rounded_factors_is_compared_by_their_tolerance(tmp_path: Path) -> None:
    """The table of a codelet has an error for each of its arrays, and 0 for those of another nest."""
    (tmp_path / "a.c").write_text("""
#pragma hmpp f codelet, args[C;d;e].io=inout
void f(int n, float A[n][n], float B[n][n], float C[n][n], float d[n], float e[n])
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
#pragma looptune tensor tf32, tolerance 1e-3, block 64x64, warp 32x32
            for (int k = 0; k < n; k++)
                C[i][j] += A[i][k] * B[k][j];
    for (int i = 0; i < n; i++) {
        d[i] = 2 * B[i][i];
        e[i] = 2 * C[i][i];
    }
}
""")
    made = looptune("cc", "-c", "a.c", "-w", "--kernel", "f", "--arch", "sm_90", "--keep", "kept", cwd=tmp_path)
    assert made.code == 0, made.err
    (text,) = (tmp_path / "kept").glob("looptune_f_*.c")
    assert "relative[] = {0.0, 0.0, 0.001, 0.0, 0.001};" in text.read_text()


@pytest.mark.wide
def test_messages_of_the_compiler_name_the_lines_of_the_file(tmp_path: Path) -> None:
    """What is wrong with the user's own text is reported where it stands there."""
    text = (
        "#pragma hmpp f codelet\nvoid f(int n, float *x)\n{\n#pragma hmppcg parallel\n  for (int i = 0; i < n; i++)\n"
    )
    text += "    x[i] = 1;\n}\nint main(void)\n{\n  return wrong;\n}\n"
    (tmp_path / "a.c").write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "looptune", "cc", "a.c", "--arch", "none"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "a.c:10:10" in done.stderr


TUNED = """#include <stdio.h>
static void f(int n, double x[n][n], double y[n][n]) {
#pragma scop
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) x[i][j] = 3 * y[j][i];
#pragma endscop
}
int main(void) {
  enum { N = 9 };
  static double x[N][N], y[N][N];
  for (int i = 0; i < N; i++) for (int j = 0; j < N; j++) y[i][j] = i - 2 * j;
  f(N, x, y);
  printf("%g %g\\n", x[1][2], x[8][0]);
}
"""


def test_what_was_tuned_runs(tmp_path: Path, driver: Path) -> None:
    """On the GPU for which it was tuned, with the sizes as constants, and on the cores of the host."""
    path = tmp_path / "a.c"
    path.write_text(TUNED)
    ((_, unit),) = load_each(path).codelets
    assert isinstance(unit, Unit)
    db = tmp_path / "db"
    keep(db, context(unit, {"n": 9}), {"": 9.0, "nest i: permute j, i": 5.0})
    keep(db, this_cpu(unit, {"n": 9}), {"": 9.0, "loop i: unroll 2, jam": 5.0})
    program = build([path], tmp_path, driver, [], ["--db", str(db)])
    agrees(program)
    said = program.on_device(LOOPTUNE_VERBOSE=1).said
    assert "exact match, calls: 1; directives: nest i: permute j, i" in said
    (text,) = (p.read_text() for p in program.generated("looptune_f_*.c"))
    assert "i + 1][j] =" in text
    assert "The loops for the host have the directives of" in text


def test_a_makefile_whose_compiler_is_looptune(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiler below is another one then."""
    (tmp_path / "a.c").write_text("int main(void) { return 4; }\n")
    monkeypatch.setenv("CC", "python3 -m looptune cc")
    assert looptune("cc", "a.c", "-o", "a", cwd=tmp_path).code == 0
    assert subprocess.run([tmp_path / "a"]).returncode == 4


@pytest.mark.wide
def test_a_compiler_that_runs_this_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A script that runs it may be CC, as for CMake: gcc is the compiler then. A gcc that runs it is refused."""
    (tmp_path / "a.c").write_text("int main(void) { return 4; }\n")
    script = tmp_path / "bin" / "gcc"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -m looptune cc "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("CC", str(script))
    done = subprocess.run([script, "a.c", "-o", "a"], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert subprocess.run([tmp_path / "a"]).returncode == 4
    monkeypatch.delenv("CC")
    monkeypatch.setenv("PATH", f"{script.parent}:{os.environ['PATH']}")
    done = subprocess.run([script, "--version"], capture_output=True, text=True, timeout=100)
    assert done.returncode == 2
    assert "the C compiler that looptune cc runs is looptune cc: set CC to another one" in done.stderr


def test_a_database_that_is_not_there(tmp_path: Path) -> None:
    """One that --db names has to be; without the option, a program may be built before anything was tuned."""
    (tmp_path / "a.c").write_text("int main(void) { return 4; }\n")
    done = looptune("cc", "a.c", "--db", "none.sqlite", cwd=tmp_path)
    assert (done.code, done.err.startswith("error: no database none.sqlite: ")) == (2, True)


def test_a_file_without_codelets_is_compiled_as_it_is(tmp_path: Path) -> None:
    """Nothing is added to it."""
    (tmp_path / "a.c").write_text("int main(void) { return 3; }\n")
    assert looptune("cc", "a.c", "-O1", "-o", "a", cwd=tmp_path).code == 0
    assert subprocess.run([tmp_path / "a"]).returncode == 3
    assert b"looptune" not in (tmp_path / "a").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "no input file: give the C files of a program, as for gcc"),
        (("none.c",), "no such file: none.c"),
        (("a.c", "--kernel", "g"), "no codelet g in a.c: it has f"),
        (("a.c", "--kernel"), "--kernel needs a value"),
        (("a.c", "--arch", "sm_1"), "unknown architecture 'sm_1' in --arch"),
        (("a.c", "-o"), "-o needs a value"),
        (("a.c", "-c", "--shared"), "-c and --shared exclude each other"),
        (("a.c", "--static", "-o", "x.a"), "--static writes libNAME.a, and -o is x.a"),
        (("b.c", "--shared"), "there is no codelet for a library"),
    ],
)
def test_wrong_command_lines(arguments: tuple[str, ...], said: str, tmp_path: Path) -> None:
    """Each is refused with what is wrong, and the exit code is 2."""
    (tmp_path / "a.c").write_text("void f(int n, float *x) {\n#pragma scop\n  for (int i = 0; i < n; i++) x[i] = 1;\n"
                                  "#pragma endscop\n}\n")  # fmt: skip
    (tmp_path / "b.c").write_text("int main(void) { return 0; }\n")
    ran = looptune("cc", *arguments, cwd=tmp_path)
    assert ran.code == 2
    assert said in ran.err


@pytest.mark.wide
def test_a_report_for_programs(tmp_path: Path, driver: Path) -> None:
    """One object for each codelet, with its calls, times and bytes; loops that run in place have a time as well."""
    program = build([HERE / "nests.c"], tmp_path, driver, [], named(("work:10", "work:16")))
    for name, ran in (("device", program.on_device), ("host", program.on_host)):
        ran("50", LOOPTUNE_REPORT=tmp_path / name)
    device, host = ([json.loads(line) for line in (tmp_path / n).read_text().splitlines()] for n in ("device", "host"))
    assert [(o["place"], o["device"], o["device_calls"], o["host_calls"]) for o in device] == [
        ("nests.c:10", "NVIDIA H200", 1, 0), ("nests.c:16", "NVIDIA H200", 1, 0)
    ]  # fmt: skip
    assert device[0]["kernel_s"] > 0
    assert device[0]["to_device_bytes"] == 400
    assert [(o["device_calls"], o["host_calls"]) for o in host] == [(0, 1), (0, 1)]
    assert all(o["host_s"] > 0 for o in host)


@pytest.mark.wide
def test_resident_variables_are_copied_by_lines_alone(tmp_path: Path, driver: Path) -> None:
    """The variable after the line stays on the device; the other one is copied at each call."""
    program = build([HERE / "resident.c"], tmp_path, driver)
    agrees(program)
    ran = program.on_device()
    assert (ran.count("launch"), ran.count("from")) == (10, 6)


def test_arrays_in_pieces(tmp_path: Path, driver: Path) -> None:
    """Rows and fields are gathered and put back, unless a piece that is written is a part of another one."""
    program = build([HERE / "pieces.c"], tmp_path, driver, [], named(("shift", "move")))
    agrees(program)
    ran = program.on_device(LOOPTUNE_VERBOSE=1)
    assert ran.said.count("pieces of arrays overlap") == 2
    assert "shift (pieces.c:5):   arrays overlap, one of which is written, calls: 2" in ran.said
    assert ran.count("launch") == 2


@pytest.mark.wide
def test_functions_of_one_name_in_two_files(tmp_path: Path, driver: Path) -> None:
    """Each has kernels of its own, and the runtime is one."""
    for name, op, main in (("a", "+= 1", "two(N, x); "), ("b", "*= 2", "")):
        body = f'int main(void) {{ static double x[N]; f(N, x); {main}printf("%g\\n", x[3]); }}\n'
        own = body if main else "void two(int n, double *x) { f(n, x); }\n"
        (tmp_path / f"{name}.c").write_text(
            "#include <stdio.h>\nenum { N = 40 };\nvoid two(int n, double *x);\n#pragma hmpp f codelet\n"
            f"static void f(int n, double *x) {{ for (int i = 0; i < n; i++) x[i] {op}; }}\n{own}"
        )
    program = build([tmp_path / "a.c", tmp_path / "b.c"], tmp_path, driver)
    agrees(program)
    assert program.on_device().out == "2\n"


@pytest.fixture(scope="session")
def h200(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database of what was tuned on an H200."""
    path = tmp_path_factory.mktemp("h200") / "results.sqlite"
    path.write_bytes(gzip.decompress((ROOT / "reports" / "nvidia-h200" / "results.sqlite.gz").read_bytes()))
    return path


@pytest.mark.sampled(4)
@pytest.mark.wide
@pytest.mark.parametrize("kernel", sorted(path.stem for path in POLYBENCH.glob("*.c")))
def test_winners_at_other_sizes(kernel: str, tmp_path: Path, driver: Path, h200: Path) -> None:
    """What has won on an H200 computes the same at sizes for which it was not tuned; sums may round differently."""
    program = build([POLYBENCH / f"{kernel}.c"], tmp_path, driver, ["-DMINI_DATASET"], ["--db", str(h200)])
    checked = program.on_device(LOOPTUNE_CHECK=1, LOOPTUNE_VERBOSE=1)
    assert (checked.code, checked.out) == (0, program.plain().out)
    assert "using what is best on NVIDIA H200" in checked.said
    assert "all calls agree" in checked.said
    assert "differ" not in checked.said
