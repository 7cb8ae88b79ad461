"""``looptune build --c``: C with OpenMP that gcc takes without a warning and that computes what the original does."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from looptune.backends import openmp
from looptune.cli.main import cli
from looptune.deploy import build
from looptune.deploy.c_timing import CTimer
from looptune.frontend import load
from looptune.ir import interpreter
from looptune.ir.nodes import Codelet
from looptune.lower.passes.openmp_scalars import accumulate_in_scalars
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from looptune.schedule.directives.base import Example
from tests import programs
from tests.helpers import cross_check, synthetic_database
from tests.helpers.directive_examples import EXAMPLES
from tests.helpers.paths import POLYBENCH
from tests.helpers.reduction_cases import CASES
from tests.programs.program import Program

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
GCC = ("gcc", "-std=gnu11", "-O2", "-fopenmp", "-Wall", "-Werror", "-ffp-contract=off", "-fwrapv", "-shared", "-fPIC")
ACCEPTED = [p for p in EXAMPLES if not p.values[1].refused]


def compiled(text: str, folder: Path, *more: str) -> ctypes.CDLL:
    (folder / "p.c").write_text(text)
    library = folder / "p.so"
    done = subprocess.run([*GCC, *more, "p.c", "-o", "p.so", "-lm"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr + text
    return ctypes.CDLL(str(library))


def c_of(text: str, *lines: str) -> tuple[Codelet, str]:
    codelet = load(text).codelet
    return codelet, openmp.text(accumulate_in_scalars(schedule(Analysis(codelet), parse_lines(lines)).codelet))


@pytest.mark.sampled(2)
@pytest.mark.sampled(6, "wide")
@pytest.mark.parametrize(("directive", "example"), ACCEPTED)
def test_an_example_is_what_it_was(directive: str, example: Example, tmp_path: Path) -> None:
    """Every example of every directive, at sizes that its factors divide and at sizes that they do not."""
    codelet, text = c_of(example.program(directive))
    library = compiled(text, tmp_path)
    for n, m in ((8, 4), (16, 17), (6, 1)):
        given = cross_check.arguments(codelet, {"n": n, "m": m})
        off = cross_check.off(
            cross_check.interpreted(codelet, given), cross_check.called(library, codelet, given), 1e-6
        )
        assert off is None, f"n={n} m={m} {off}\n{text}"


@pytest.mark.parametrize("body", [
    "for (int i = 0; i < n; i++) if (j < m && a[i] > 0) y[j] += a[i];",
    "for (int i = 0; i < n; i++) for (int k = j; k < m; k++) y[j] += a[i];",
    "for (int i = 0; i < n; i++) if (j < m && a[i] > y[j]) y[j] = a[i];",
])  # fmt: skip
def test_an_element_that_gets_nothing_is_not_touched(body: str) -> None:
    """Data, sizes and inner loops may decide that a shared loop adds to none: there may be none such."""
    text = f"void f(int n, int m, long a[n], long y[m]) {{ for (int j = 0; j < 2 * m; j++) {body} }}\n"
    codelet = load(text).codelet
    lines = ("loop 1: noParallel", "loop 2: parallel")
    made = accumulate_in_scalars(schedule(Analysis(codelet), parse_lines(lines)).codelet)
    for n, m in ((6, 3), (0, 2)):
        given: cross_check.Arguments = {"n": n, "m": m, "a": np.arange(n) - 2, "y": np.arange(m)}
        want, got = cross_check.interpreted(codelet, given), cross_check.copied(given)
        interpreter.run(made, cross_check.arrays(got), cross_check.scalars(got))
        assert cross_check.off(want, cross_check.arrays(got)) is None, (n, m)


@pytest.mark.sampled(2)
@pytest.mark.sampled(6, "wide")
@pytest.mark.parametrize("program", programs.ALL, ids=lambda p: p.name.replace(" ", "-"))
def test_a_program_is_what_it_was(program: Program, tmp_path: Path) -> None:
    """Every construct of the language."""
    codelet, text = c_of(program.text)
    # A temporary that is read after a loop is set where the loop has an iteration, as in the program itself.
    library = compiled(text, tmp_path, "-Wno-maybe-uninitialized")
    given = cross_check.arguments(codelet, program.sizes)
    got = cross_check.called(library, codelet, given)
    assert cross_check.off(cross_check.interpreted(codelet, given), got, max(program.tolerance, 1e-6)) is None, text


@pytest.mark.sampled(5, "wide")
@pytest.mark.parametrize("name", CASES)
def test_reductions(name: str, tmp_path: Path) -> None:
    """Sums, products, minima and maxima into scalars, elements and rows."""
    case = CASES[name]
    codelet, text = c_of(case.text, *case.lines)
    library = compiled(text, tmp_path)
    for sizes in case.sizes:
        given = cross_check.arguments(codelet, sizes)
        off = cross_check.off(
            cross_check.interpreted(codelet, given), cross_check.called(library, codelet, given), 1e-4
        )
        assert off is None, f"{sizes}: {off}\n{text}"


def test_what_stands_before_the_loops() -> None:
    """The outermost parallel loop alone; collapsed where a loop is left inside; reductions in scalars; private ones."""
    gemm = (POLYBENCH / "gemm.c").read_text()
    assert re.findall("#pragma.*", c_of(gemm)[1]) == ["#pragma omp parallel for collapse(2)"]
    one = "void f(int n, float A[n][n]) {\n for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) A[i][j] = 1; }\n"
    assert re.findall("#pragma.*", c_of(one)[1]) == ["#pragma omp parallel for"]
    total = "void f(int n, float x[n], float s[1]) {\n for (int i = 0; i < n; i++) s[0] += x[i]; }\n"
    text = c_of(total, "loop i: parallel")[1]
    assert "if (0 < n) {\n    float s_r;\n    s_r = s[0];\n    #pragma omp parallel for reduction(+:s_r)\n" in text
    assert "s[0] = s_r;" in text
    once = "for (int i = 0; i < n; i++) {{ t = {0}[i]; {0}[i] = t * t; }}\n"
    twice = "void f(int n, float x[n], float y[n]) {\n float t;\n" + once.format("x") + once.format("y") + "}\n"
    assert re.findall("#pragma.*", c_of(twice)[1]) == ["#pragma omp parallel for private(t)"] * 2


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The best on this CPU at the sizes of the file; what was measured stands on top; noremainder is a remainder."""
    monkeypatch.setattr(CTimer, "is_slower", lambda self, us: False)
    (tmp_path / "f.c").write_text("#define N 64\nvoid f(int n, float x[n], float y[n])\n"
                                  "{ for (int i = 0; i < n; i++) y[i] += 2 * x[i]; }\n")  # fmt: skip
    unit = load(tmp_path / "f.c", defines={"n": "64"})
    for n, factor in ((64, 4), (4096, 8)):
        at = synthetic_database.this_cpu(unit, {"n": n})
        synthetic_database.keep(tmp_path / "db", at, {"": 9.0, f"loop i: unroll {factor}, noremainder": 5.0})
    call = ["build", str(tmp_path / "f.c"), "--c", "--db", str(tmp_path / "db"), "-o", str(tmp_path / "out.c")]
    for n, factor, level in ((64, 4, "exact"), (5000, 8, "same device")):
        CliRunner().invoke(cli, [*call, "-D", f"n={n}"], catch_exceptions=False, standalone_mode=False)
        text = (tmp_path / "out.c").read_text()
        assert f"match: {level}" in text
        assert f"loop i: unroll {factor}, noremainder" in text
        assert "1.8 times as fast as the default" in text
        library = compiled(text, tmp_path)
        given = cross_check.arguments(unit.codelet, {"n": 7})
        assert (
            cross_check.off(
                cross_check.interpreted(unit.codelet, given), cross_check.called(library, unit.codelet, given)
            )
            is None
        )
    assert "Nothing was measured" in build.as_c(unit, tmp_path / "none", "auto", "", default=True)
