"""What versions are compared with is the program's own text, compiled by the C compiler, and nothing of looptune's."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from looptune.backends.numba_cpu.backend import NumbaCpu
from looptune.core.floating_point import STRICT
from looptune.frontend import Unit, load, lower_expressions
from looptune.frontend.reference_text import directives
from looptune.ir import interpreter
from looptune.ir.nodes import Array, Const
from looptune.runtime import c_compiler, c_program
from looptune.runtime.c_reference import CReference, NoReference
from looptune.runtime.device import Cpu
from looptune.runtime.outcome import Timed, WrongResult
from looptune.runtime.problem_sizes import Problem, problem
from looptune.runtime.targets import Target
from looptune.runtime.tolerance import compare
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.tune.job import Job
from looptune.tune.measure.build_steps import Built, first_step, plans_of
from looptune.tune.measure.measuring_device import MeasuringDevice, verification_text
from looptune.tune.measure.reference import (
    INTERPRETER,
    NOT_COMPARED,
    ReferenceResult,
    describe_reference,
    outputs,
    text_of,
)

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")


@dataclass(frozen=True)
class Program:
    """``files`` beside the text; ``options`` of load."""

    text: str
    sizes: Mapping[str, float] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)


PROGRAMS = {
    "static-with-vla": Program("""
        #include <math.h>
        #define SQUARE(x) ((x) * (x))
        static void f(int n, int m, double A[n][m], double (*B)[m], float *x) {
          for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) A[i][j] += SQUARE(B[i][j]) * sqrtf(x[i]);
        }""", {"n": 5, "m": 7}),
    "globals": Program("""
        #define N 6
        static double A[N][N], *p; int n = 5; extern void elsewhere(void);
        void unused(void) { elsewhere(); }
        void f(double b) { for (int i = 0; i < n; i++) for (int j = 0; j < N; j++) A[i][j] = b * A[i][j] + j; }
        """, {"b": 0.5}),
    "scop-in-main": Program("""
        #include <stdio.h>
        #include <stdlib.h>
        int main(void) {
          typedef short number; enum { STEPS = 3 };
          int i, j, n = 8; number s = 2; double x = atof("3.5");
          double A[8][8];
          double (*B)[n] = malloc(n * n * sizeof(double));
          for (i = 0; i < n; i++) for (j = 0; j < n; j++) A[i][j] = B[i][j] = i;
        #define SCALE x /* of
          two lines */
        #pragma scop
          for (i = 1; i < n; i++) for (j = 0; j < n; j++) A[i][j] = A[i - 1][j] * SCALE + B[i][j] * s + STEPS;
        #pragma endscop
          #undef SCALE
          printf("%g", A[3][4]);
        }"""),
    "scop-among-conditions": Program("""
        void use(double *);
        void f(int n, double *out) {
          unsigned lo = 2; double t[16];
        #ifdef NEVER
          for (int i = 0; i < 3; i++) { {
        #else
          for (int step = 0; step < 3; step++) {
        #endif
        #pragma scop
            for (unsigned i = lo; i < n; i++) { t[i % 16] = out[i]; out[i] = t[i % 16] * 2; }
        #pragma endscop
          }
          use(out);
        }""", {"n": 9}),
    "group": Program("""
        #pragma hmpp one codelet
        void first(int n, float A[n], float t[n]) { for (int i = 0; i < n; i++) t[i] = A[i] * 2; }
        #pragma hmpp two codelet
        void second(int m, float t[m], float B[m]) { for (int i = 0; i < m; i++) B[i] += t[i]; }
        int main() { float A[9], B[9], t[9];
        #pragma hmpp one callsite
          first(9, A, t);
        #pragma hmpp two callsite
          second(9, t, B); }""", {"n": 9}),
    "other-type": Program("""
        #include <math.h>
        void f(int n, double A[n], double s) { for (int i = 0; i < n; i++) A[i] = (double)A[i] * s + sqrt(A[i]); }
        """, {"n": 6, "s": 1.25}, {"dtype": "float32"}),
    "wider-type": Program(
        "void f(int n, float A[n]) {\n for (int i = 0; i < n; i++) { float t = A[i] / 3; A[i] = t * t; } }",
        {"n": 6}, {"dtype": "float64"}),
    "float-literals": Program(
        "void f(int n, float A[n]) {\n for (int i = 0; i < n; i++) A[i] = A[i] * 0.1 + 1e8; }",
        {"n": 6}, {"float_literals": True}),
    "macros-by-option": Program("""
        #define STEP 1
        #define SIZE 4
        void f(double A[SIZE]) { for (int i = 0; i < SIZE; i += STEP) A[i] = SIZE; }
        """, {}, {"defines": {"SIZE": 7, "STEP": "2"}}),
    "headers": Program(
        '#include "sizes.h"\nvoid f(int n, real A[n]) { for (int i = 0; i < n; i++) A[i] = HALF(A[i]); }',
        {"n": 5}, {}, {"sizes.h": '#include "deep.h"\n#define HALF(x) ((x) / 2)\n', "deep.h": "typedef float real;\n"}),
    "without-headers": Program(
        "void f(int n, double A[n], size_t k) {\n for (int i = 0; i < n; i++) A[i] = fabs(A[i]) * M_PI + k; }",
        {"n": 5, "k": 2}),
}  # fmt: skip


def unit_of(program: Program, folder: Path) -> Unit:
    for name, text in {**program.files, "f.c": program.text}.items():
        (folder / name).write_text(text)
    return load(folder / "f.c", **program.options)


@pytest.mark.sampled(4, "wide")
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_text_leaves_what_the_interpreter_does(name: str, tmp_path: Path) -> None:
    """Whatever form a codelet has, its text is called with the parameters that the loops have."""
    unit = unit_of(PROGRAMS[name], tmp_path)
    assert unit.excerpt is not None
    at = problem(unit.codelet, {**unit.values, **PROGRAMS[name].sizes})
    given = at.arrays(unit.codelet, 0)
    ran = CReference(unit.excerpt).run(tmp_path, given, at.values, sorted(given))
    interpreter.run(unit.codelet, given, at.values)
    assert any(a.size for a in given.values())
    for array, want in given.items():
        np.testing.assert_array_equal(ran.arrays[array], want, err_msg=array)
        assert ran.arrays[array].dtype == want.dtype


# -- faults of looptune's own ---------------------------------------------------------------------------

PASS = "void f(int n, float x[n], float y[n]) {\n  for (int i = 0; i < n; i++) y[i] = x[i] * 3 - y[i];\n}\n"
LARGE = {"n": 200_000}


def job_of(unit: Unit, at: Problem, cache: Path) -> Job:
    target = Target(
        "numba-cpu", partial(NumbaCpu, cache), partial(NumbaCpu, cache, STRICT), Cpu, specializes_sizes=False
    )
    return Job(unit.codelet, at, None, target, cache, text=text_of(unit, cache)[0])


def outcome(unit: Unit, cache: Path) -> Any:
    """Of the default version, at a size that no interpreter runs."""
    job = job_of(unit, problem(unit.codelet, LARGE), cache)
    plans = plans_of(job, schedule(Analysis(job.codelet)).codelet, "")
    bench = MeasuringDevice(job)
    return bench.measure(Built(first_step(job, plans), bench.backend.build(plans.timed)), None)


@pytest.mark.wide
def test_a_fault_of_the_front_end_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops that are not the text's give a wrong default, at sizes that only compiled code runs."""
    right = outcome(load(PASS), tmp_path)
    assert isinstance(right, Timed)
    assert right.verified == f"against <source> compiled by {c_compiler.version()} at the sizes timed"
    number = lower_expressions.number

    def misread(*given: Any) -> Const:
        found = number(*given)
        return replace(found, value=4) if found.value == 3 else found

    monkeypatch.setattr(lower_expressions, "number", misread)
    assert isinstance(outcome(load(PASS), tmp_path), WrongResult)


def test_a_fault_of_the_generator_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The code that compiles versions for the CPU takes no part in what they are compared with."""
    module = NumbaCpu._module

    def planted(self: NumbaCpu, *given: Any) -> str:
        return module(self, *given).replace(") - y[", ") + y[")

    monkeypatch.setattr(NumbaCpu, "_module", planted)
    assert isinstance(outcome(load(PASS), tmp_path), WrongResult)


@pytest.mark.wide
def test_arrays_that_only_the_text_writes_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A statement that the loops have lost shows, though they write nothing to its array."""
    unit = load("void f(int n, int x[n], int y[n]) {\n for (int i = 0; i < n; i++) { x[i] = y[i]; y[i] = 7; } }")
    lost = replace(
        unit, codelet=load("void f(int n, int x[n], int y[n]) {\n for (int i = 0; i < n; i++) x[i] = y[i]; }").codelet
    )
    assert outputs(lost.codelet) == {"x"}
    assert isinstance(outcome(lost, tmp_path), WrongResult)


# -- where there is no text -----------------------------------------------------------------------------


def test_what_is_not_verified_independently_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a C compiler the interpreter is the reference at sizes that it can do, and nothing is at others."""
    unit, large = load(PASS), Path(tmp_path)
    monkeypatch.setattr(c_compiler, "compiler_command", tuple)
    text, why = text_of(unit, large)
    assert (text, why) == (None, "there is no C compiler here")
    small, wide = problem(unit.codelet, {"n": 5}), problem(unit.codelet, LARGE)
    job = job_of(unit, wide, large)
    assert describe_reference(job, why) == f"none, not verified independently: {why}"
    assert describe_reference(replace(job, problem=small), why) == f"the interpreter, for {why}"
    assert describe_reference(replace(job, prime_problem=small), why) == (
        f"the interpreter at n=5; at the sizes timed not verified independently, for {why}"
    )
    for at, against in ((small, INTERPRETER), (wide, "")):
        original = ReferenceResult(replace(job, problem=at), at, 0)
        assert original.judge(original.inputs()).against == against
    found = outcome(unit, large)
    assert isinstance(found, Timed)
    assert found.verified == "not verified independently"


def test_a_text_that_does_not_compile_says_why(tmp_path: Path) -> None:
    """The compiler's own complaint is the reason."""
    program = Program("#include <no_such_header.h>\nvoid f(int n, int x[n]) { for (int i = 0; i < n; i++) x[i] = 1; }")
    text, why = text_of(unit_of(program, tmp_path), tmp_path)
    assert text is None
    assert "does not compile the text" in why
    assert "no_such_header.h" in why


@pytest.mark.parametrize(
    ("statement", "why"),
    [("x[i + 8] = 1", "write outside x"), ("x[i * 100000000] = 1", "crashes at these sizes (SIGSEGV)")],
)
def test_a_text_that_leaves_its_arrays_is_no_reference(statement: str, why: str, tmp_path: Path) -> None:
    """It costs its own process, and nothing that it has left is used."""
    unit = load(f"void f(int n, long x[n]) {{\n  for (long i = 0; i < n; i++) {statement};\n}}")
    assert unit.excerpt is not None
    with pytest.raises(NoReference) as refused:
        CReference(unit.excerpt).run(tmp_path, {"x": np.zeros(16, np.int64)}, {"n": 16}, ["x"])
    assert why in str(refused.value)


def test_a_damaged_program_is_compiled_again(tmp_path: Path) -> None:
    """What is in the cache is used where it is what was put there; results that were cut short are made again."""
    unit = load(PASS)
    assert unit.excerpt is not None
    text = CReference(unit.excerpt)
    made = text.program(tmp_path)
    whole = made.read_bytes()
    assert text.program(tmp_path) == made
    made.write_bytes(whole[: len(whole) // 2])
    assert text.program(tmp_path).read_bytes()[:4] == whole[:4]
    original = ReferenceResult(
        job_of(unit, problem(unit.codelet, {"n": 9}), tmp_path), problem(unit.codelet, {"n": 9}), 0
    )
    first = original.judge(original.inputs()).expected
    for kept in tmp_path.glob("reference-*.npz"):
        kept.write_bytes(kept.read_bytes()[:100])
    again = original.judge(original.inputs()).expected
    np.testing.assert_array_equal(first["y"], again["y"])


def test_tolerances_come_from_the_text_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault of the generator cannot widen what is allowed: both further runs are the text's, one with double."""
    unit = load("void f(int n, float x[n], float y[n]) {\n  for (int i = 0; i < n; i++) y[0] += x[i] * x[i];\n}\n")
    at = problem(unit.codelet, {"n": 20_000})
    monkeypatch.setattr(NumbaCpu, "build", lambda self, plan: pytest.fail("the generator has no part in it"))
    original = ReferenceResult(job_of(unit, at, tmp_path), at, 0)
    given = original.inputs()
    doubt = original.judge(given).doubt()
    assert doubt.wider["y"].dtype == np.float64
    exact = float(given["y"][0]) + float(np.sum(given["x"].astype(np.float64) ** 2))
    assert doubt.wider["y"][0] == pytest.approx(exact, rel=1e-12)
    assert doubt.moved["y"][0] == pytest.approx(exact, rel=1e-3)
    assert {p.name for p in unit.codelet.params if isinstance(p, Array)} <= doubt.moved.keys()


def test_what_contraction_changes_is_allowed_and_reported(tmp_path: Path) -> None:
    """A recurrence gathers rounding errors of which its data tell nothing; a wrong element is still found."""
    unit = load("void f(int n, double y[n]) {\n double x = 0.3;\n for (int i = 0; i < n; i++) {"
                "\n  x = 1 - 1.9 * x * x;\n  y[i] += x;\n }\n}")  # fmt: skip
    at = problem(unit.codelet, {"n": 40})
    original = ReferenceResult(job_of(unit, at, tmp_path), at, 0)
    assert original.job.text is not None
    other = original.job.text.otherwise_contracted().run(tmp_path, original.inputs(), at.values, ["y"]).arrays["y"]
    judge = original.judge(original.inputs())
    assert judge.expected["y"].tolist() != other.tolist()
    assert compare(judge.expected, {"y": other}, terms=40) is not None
    assert judge.wrong({"y": other}) is None
    assert re.fullmatch(r"y \d\.?\d?e-0\d", judge.widened)
    assert f"(4 times the rounding errors measured there: {judge.widened})" in verification_text(judge)
    planted = other.copy()
    planted[3] += 1e-3
    assert judge.wrong({"y": planted}) is not None


def test_only_lines_that_are_preprocessor_directives_are_taken() -> None:
    """Comments and strings hold none; a directive goes on where its line ends in a backslash."""
    text = (
        'int i; /*\n#define NO 1\n*/ char *s = "#define NO";\n  # define YES 1 \\\n  + 2 // #if\n#pragma omp\n#endif\n'
    )
    assert directives(text) == "  # define YES 1 \\\n  + 2  \n#endif\n"


def test_a_text_that_takes_too_long_is_stopped(tmp_path: Path) -> None:
    """It ends by the signal for the CPU time, which is not taken for a crash."""
    unit = load("void f(int n, float A[n]) {\n for (int k = 0; k < 2000000000; k++) A[k % n] = A[(k + 1) % n] + 1;\n}")
    text = CReference(unit.excerpt) if unit.excerpt is not None else None
    assert text is not None
    with pytest.raises(c_program.TooLong, match="more than 1 s of CPU time"):
        text.run(tmp_path, {"A": np.ones(3, np.float32)}, {"n": 3}, ["A"], 1.0)


def test_where_the_text_takes_too_long_nothing_is_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the user's sizes, but at the others; it is stopped once, and the file that says so is for no longer limit."""
    asked: list[float] = []

    def stopped(program: Path, memory: c_program.MappedArrays, cpu_s: float = c_program.CPU_S) -> None:
        asked.append(cpu_s)
        if cpu_s < c_program.CPU_S:
            raise c_program.TooLong("stopped")
        call(program, memory, cpu_s)

    call = c_program.call
    monkeypatch.setattr(c_program, "call", stopped)
    unit = load("void f(int n, float A[n]) {\n for (int i = 0; i < n; i++) A[i] += i;\n}")
    at, odd = (problem(unit.codelet, {"n": n}) for n in (50, 7))
    job = replace(job_of(unit, at, tmp_path), prime_problem=odd, reference_s=2.0)
    assert job.text is not None
    for again in range(2):
        here = ReferenceResult(job, at, 0)
        judge = here.judge(here.inputs())
        assert (judge.expected, judge.against, here.is_too_long) == ({}, "", True)
        elsewhere = ReferenceResult(job, odd, 0).judge(ReferenceResult(job, odd, 0).inputs())
        assert elsewhere.against == job.text.description
        assert not ReferenceResult(job, odd, 0).is_too_long
        assert asked == [2.0, c_program.CPU_S], again
        assert verification_text(judge, elsewhere, "n=7").endswith(f"at n=7; at the sizes timed {NOT_COMPARED}")
    longer = ReferenceResult(replace(job, reference_s=3.0), at, 0)
    assert not longer.is_too_long
    alone = ReferenceResult(replace(job, prime_problem=None), at, 0)
    assert alone.judge(alone.inputs()).expected.keys() == {"A"}


HALVES = """
void f(int n, _Float16 a[n], _Float16 b[n], float c[n]) {
  for (int i = 0; i < n; i++) c[i] = a[i] * b[i] + 1;
}
"""


@pytest.mark.skipif(not c_compiler.compiler_command(), reason="needs a C compiler")
@pytest.mark.parametrize(
    ("command", "refused"),
    [
        ("gcc", ""),
        ("gcc -fexcess-precision=16", "rounds every operation on _Float16"),
        # as where the processor has such arithmetic, until the flag against it is given
        ("./rounding", ""),
    ],
)
def test_a_compiler_that_rounds_halves_is_told_not_to_or_is_no_reference(
    command: str, refused: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Products of halves are those of floats; a compiler that cuts them off would disagree with every version."""
    wrapper = tmp_path / "rounding"
    wrapper.write_text(
        '#!/bin/sh\ncase "$*" in *-mno-avx512fp16*) exec gcc "$@";; esac\nexec gcc -fexcess-precision=16 "$@"\n'
    )
    wrapper.chmod(0o700)
    monkeypatch.setenv("CC", command.replace("./", f"{tmp_path}/"))
    for cached in (c_compiler.compiler_command, c_compiler.version, c_compiler._rounds_halves):
        monkeypatch.setattr(c_compiler, cached.__name__, cache(cached.__wrapped__))
    (tmp_path / "f.c").write_text(HALVES)
    unit = load(tmp_path / "f.c")
    assert unit.excerpt is not None
    one = np.full(3, 1 + 2**-10, np.float16)
    given = {"a": one, "b": one, "c": np.zeros(3, np.float32)}
    text = CReference(unit.excerpt)
    if refused:
        with pytest.raises(NoReference, match=refused):
            text.run(tmp_path / "cache", given, {"n": 3}, ["c"])
    else:
        got = text.run(tmp_path / "cache", given, {"n": 3}, ["c"]).arrays["c"]
        assert (got == np.float32(2 + 2**-9 + 2**-20)).all()


def test_a_compiler_without_bfloat16_is_no_reference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says which version has it."""
    wrapper = tmp_path / "gcc12"
    wrapper.write_text("#!/bin/sh\necho \"f.c:1:15: error: unknown type name '__bf16'\" >&2\nexit 1\n")
    wrapper.chmod(0o700)
    monkeypatch.setenv("CC", str(wrapper))
    for cached in (c_compiler.compiler_command, c_compiler.version, c_compiler._rounds_halves):
        monkeypatch.setattr(c_compiler, cached.__name__, cache(cached.__wrapped__))
    assert c_compiler.half_flags("__bf16 x;") == ()
    assert "from version 13 on" in str(c_compiler.compile_error(["-c", "f.c"]))


def test_sums_in_another_order_show_what_their_order_changes(tmp_path: Path) -> None:
    """Of doubles, whose rounding errors no wider type shows; what differs is allowed, four times."""
    sums = "  double s = 0;\n  for (int i = 0; i < n; i++) s += x[i];\n  y[0] = s;"
    unit = load(f"void f(int n, double x[n], double y[1]) {{\n{sums}\n}}\n")
    at = problem(unit.codelet, {"n": 100_003})
    original = ReferenceResult(job_of(unit, at, tmp_path), at, 0)
    given = original.inputs()
    judge = original.judge(given)
    runs = original.estimate_runs(judge.against, given)
    assert set(runs) == {"moved", "contracted", "reordered"}
    other = runs["reordered"]()["y"]
    assert 0 < abs(other - judge.expected["y"])[0] < 1e-6
    strict = ReferenceResult(replace(original.job, reassociate=False), at, 0)
    assert "reordered" not in strict.estimate_runs(judge.against, given)
