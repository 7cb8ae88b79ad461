"""``nnan``: a choice between two numbers that are compared becomes a minimum, where the user says that no NaN is."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from looptune.cli.main import cli
from looptune.core.errors import DirectiveError
from looptune.frontend import load
from looptune.ir.nodes import Binary, Const, Select
from looptune.ir.simplify import as_min_max
from looptune.ir.specialize import specialize
from looptune.lower.pipeline import lower
from looptune.lower.plan import Plan
from looptune.runtime.targets import ptx
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import ScheduleResult, schedule
from looptune.schedule.directive_lines import parse_lines
from tests.helpers import cross_check

TWO = """void f(int n, float a[n], float b[n], double c[n], float d[n])
{
    for (int i = 0; i < n; i++) {
        a[i] = a[i] < b[i] ? a[i] : b[i];
        b[i] = b[i] > 1.5f ? 1.5f : b[i];
        c[i] = c[i] >= 2 ? c[i] : 2;
        d[i] = d[i] < 0 ? a[i] : d[i];
    }
    for (int i = 0; i < n; i++)
        d[i] = d[i] * 2;
}
"""
A, B = Const(1.0, "float32"), Const(2.0, "float32")


def scheduled(tmp_path: Path, *lines: str, code: str = TWO) -> ScheduleResult:
    path = tmp_path / "f.c"
    path.write_text(code)
    return schedule(Analysis(load(path).codelet), parse_lines(lines), {"n": 64})


def planned(tmp_path: Path, *lines: str, code: str = TWO) -> Plan:
    return lower(specialize(scheduled(tmp_path, *lines, code=code).codelet, {"n": 64}), blocks=True)


@pytest.mark.parametrize(
    ("chosen", "found"),
    [
        (Select(Binary("<", A, B), A, B), "min"),
        (Select(Binary("<=", A, B), B, A), "max"),
        (Select(Binary(">", A, B), A, B), "max"),
        (Select(Binary(">=", A, B), B, A), "min"),
        (Select(Binary("<", A, B), A, A), None),
        (Select(Binary("==", A, B), A, B), None),
        (Select(Binary("<", Const(1), Const(2)), Const(1), Const(2)), None),
    ],
)
def test_what_is_an_extreme(chosen: Select, found: str | None) -> None:
    """Of floats, of the two that are compared: what C's choice is for all numbers."""
    assert (as_min_max(chosen) or (None,))[0] == found


@pytest.mark.skipif(not cross_check.CUDA, reason="needs the package numba-cuda")
def test_one_instruction_of_a_gpu(tmp_path: Path) -> None:
    """Three of the four choices, each in its own type; none without the directive but where one is no NaN for sure."""
    code = ptx("numba-cuda", planned(tmp_path, "codelet: nnan"), "sm_90")
    plain = ptx("numba-cuda", planned(tmp_path), "sm_90")
    assert [code.count(op) for op in ("min.f32", "max.f64")] == [2, 1]
    assert plain.count("min.f32") + plain.count("max.f64") < 3
    assert "selp.f64" not in code
    assert "min.f64" not in code, "a constant has the other's type"


@pytest.mark.parametrize("target", ["numba-cuda", "cuda-c", "opencl", "numba-cpu"])
def test_what_is_emitted(target: str, tmp_path: Path) -> None:
    """A minimum on a device, C's choice on a CPU."""
    path = tmp_path / "f.c"
    path.write_text(TWO)
    said = CliRunner().invoke(
        cli, ["emit", str(path), "--target", target, "--directive", "codelet: nnan", "-D", "n=64"]
    )
    assert said.exit_code == 0, said.output
    word = {"numba-cuda": "min(", "cuda-c": "fminf(", "opencl": "fmin(", "numba-cpu": "min("}[target]
    assert (word in said.output) == (target != "numba-cpu")


def test_copies_are_minima_too(tmp_path: Path) -> None:
    """Whatever else is done to the loop: the directive comes first."""
    text = "\n".join(k.name + repr(k.body) for k in planned(tmp_path, "loop 1: unroll 4", "codelet: nnan").kernels)
    assert text.count("no_nans=True") >= 12


def test_it_is_part_of_what_is_said(tmp_path: Path) -> None:
    """What the kernels rest on; and the nest that has no choice is left out."""
    done = scheduled(tmp_path, "codelet: nnan")
    assert done.assumed == ("no NaN is compared",)
    assert done.asserted == ()
    assert [(s.number, s.text) for s in done.steps] == [(1, "nnan")]
    assert scheduled(tmp_path).assumed == ()


def test_where_there_is_nothing_to_choose_it_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DirectiveError, match="nnan: loop i has no minimum or maximum"):
        scheduled(tmp_path, "loop 2: nnan")


@pytest.mark.long
def test_the_report_says_where_it_holds(tmp_path: Path) -> None:
    """Beside the proof, which compares what C says."""
    path = tmp_path / "f.c"
    path.write_text(TWO)
    line = f"run {path} --target numba-cpu -D n=64 --reports {tmp_path / 'r'} --db {tmp_path / 'db'}"
    said = CliRunner().invoke(cli, [*line.split(), "--directive", "codelet: nnan"])
    assert said.exit_code == 0, said.output
    assert "proved equivalent" in said.output
    assert "where no NaN is compared" in said.output
