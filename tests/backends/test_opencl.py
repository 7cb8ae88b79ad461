"""OpenCL: what is emitted, and on whatever device there is that it computes what the loops do, timed and in a sweep."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import looptune
from looptune.backends.base import TimeLimit
from looptune.backends.opencl.writer import device_text, file_text
from looptune.backends.opencl.writer import machine as capabilities
from looptune.cli.main import cli
from looptune.core.errors import ResourceError, TargetError
from looptune.frontend import load
from looptune.lower.pipeline import finish, lower
from looptune.lower.plan import FinishedPlan, Plan
from looptune.runtime import targets
from looptune.runtime.device import Device
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from tests import programs
from tests.helpers import cross_check, cuda_c_cases
from tests.helpers.codelets import STEPS
from tests.helpers.paths import POLYBENCH

GEMM = POLYBENCH / "gemm.c"
EVERY = 15
"""Of the cases that g++ runs, one in so many is run here: each is compiled at its first launch."""


@pytest.fixture(scope="module")
def machine() -> Device:
    try:
        return targets.resolve("opencl", Path("unused")).machine()
    except TargetError as error:
        pytest.skip(str(error))


def planned(text: str | Path, *lines: str) -> Plan:
    return lower(schedule(Analysis(load(text).codelet), parse_lines(lines)).codelet, "\n".join(lines))


def finished(text: str | Path, *lines: str) -> FinishedPlan:
    return finish(planned(text, *lines), capabilities("fast"))


def test_a_file_of_kernels_and_how_to_launch_them() -> None:
    """A comment has the directives and the host's side, in C; then come the kernels, each with its block."""
    text = file_text(finished(GEMM, "loop k: unroll 4"))
    said, _, rest = text.partition("*/")
    assert said.startswith("/* gemm for opencl")
    assert "loop k: unroll 4" in said
    assert "const long x__blocks = ((long)nj + 31) / 32, y__blocks = ((long)ni + 7) / 8;" in said
    assert "enqueue(gemm_0, (x__blocks * 32, y__blocks * 8, 1), (32, 8, 1), C, A, B, ni, nj, nk, alpha, beta);" in said
    assert "__kernel __attribute__((reqd_work_group_size(32, 8, 1)))\nvoid gemm_0(__global float *restrict C" in rest


@pytest.mark.sampled(2)
@pytest.mark.sampled(6, "wide")
@pytest.mark.parametrize("program", programs.ALL, ids=lambda p: p.name.replace(" ", "-"))
def test_every_construct_has_a_spelling(program: programs.program.Program) -> None:
    """No word of CUDA's is left, blocks are closed, and doubles are asked for where there are any."""
    text = device_text(finished(program.text))
    assert text.count("{") == text.count("}")
    assert not any(word in text for word in ("threadIdx", "blockIdx", "__global__", "long long", "__restrict__"))
    assert ("cl_khr_fp64" in text) >= ("double" in text)


def test_names_that_opencl_has_are_left_to_it() -> None:
    """Types and functions of the language get an underscore."""
    text = "void f(int n, float half[n], float local[n]) { for (int k = 0; k < n; k++) half[k] = local[k]; }\n"
    assert "half_[k] = local_[k];" in device_text(finished(text))


@pytest.mark.long
def test_kernels_mean_what_the_loops_do(machine: Device) -> None:
    """Kernels of the suite by default and tuned; tiles, teams, parts, conditions, all of C."""
    backend = targets.backend("opencl", Path("unused"))
    tolerances = {p.name: max(p.tolerance, cuda_c_cases.TOLERANCE) for p in programs.ALL}
    wrong, refused = {}, {}
    for case in cuda_c_cases.cases()[::EVERY]:
        try:
            built = backend.build(case.plan)
        except ResourceError as error:
            refused[case.name] = error.message
            continue
        program = backend.load(built)
        held = {name: machine.place(a) for name, a in cross_check.arrays(case.arguments).items()}
        program.run(held, cross_check.scalars(case.arguments), machine.stream)
        got = {name: machine.fetch(a) for name, a in held.items()}
        want = cross_check.interpreted(case.codelet, case.arguments)
        off = cross_check.off(want, got, tolerances.get(case.name, cuda_c_cases.TOLERANCE))
        if off is not None:
            wrong[case.name] = off
    assert not wrong, "\n".join(f"{name}: {off}" for name, off in wrong.items())
    assert all("stages tiles, which PoCL" in message for message in refused.values()), refused


@pytest.mark.wide
def test_a_compiled_kernel_takes_numpy_arrays(machine: Device) -> None:
    """looptune.compile(target="opencl"): arrays in, results in the same arrays."""
    kernel = looptune.compile(GEMM, target="opencl", dtype="float64", directives=["loop i: unroll 4, jam"])
    given = cross_check.arguments(kernel.codelet, {"ni": 13, "nj": 9, "nk": 7, "alpha": 1.5, "beta": 0.5})
    got = cross_check.copied(given)
    kernel(*got.values())
    assert cross_check.off(cross_check.interpreted(kernel.codelet, given), cross_check.arrays(got), 1e-12) is None
    assert "__kernel" in kernel.source


@pytest.mark.long
def test_a_sweep_verifies_and_says_its_target(machine: Device, tmp_path: Path) -> None:
    """Some versions of GEMM at sizes no factor divides: all verified, and the record says where."""
    sizes = ["-D", "NI=29", "-D", "NJ=23", "-D", "NK=17"]
    where = ["--db", str(tmp_path / "db"), "--reports", str(tmp_path / "reports")]
    (tmp_path / "s.space").write_text("loop k: unroll {2, 4}\n")
    space = ["--space", str(tmp_path / "s.space")]
    call = ["run", str(GEMM), "--sweep", "--finals-timeout", "0.3", *space, "--target", "opencl", "--json"]
    outcome = CliRunner().invoke(cli, [*call, *sizes, *where], catch_exceptions=False, standalone_mode=False)
    record = json.loads(outcome.stdout)
    assert record["target"] == "opencl"
    assert record["versions"]["timed"] == 3


@pytest.mark.wide
def test_a_plan_stops_between_two_launches(machine: Device) -> None:
    """With a limit of nothing a launch or two are made, without one all are."""
    backend = targets.backend("opencl", Path("unused"))
    program = backend.load(backend.build(planned(STEPS)))
    held = {name: machine.place(np.ones(100_000, np.float32)) for name in "xy"}
    sizes = {"t": 40, "n": 100_000}
    assert program.run_within(TimeLimit(1e9), held, sizes, machine.stream).launched == 80
    ran = program.run_within(TimeLimit(1.0), held, sizes, machine.stream)
    assert 0 < ran.launched < ran.launches == 80


def test_a_part_of_an_array_is_an_array(machine: Device) -> None:
    """What lies inside another array is copied, read and written there alone."""
    whole: Any = machine.place(np.arange(256, dtype=np.float32))
    part = machine.inside(whole, 64, (4, 16))
    machine.copy(machine.place(np.zeros((4, 16), np.float32)), part)
    kept = machine.fetch(whole)
    assert not kept[64:128].any()
    np.testing.assert_array_equal(kept[128:], np.arange(128, 256))
    np.testing.assert_array_equal(machine.fetch(machine.flat(part)), np.zeros(64))


def test_a_block_s_limits_are_the_device_s(machine: Device) -> None:
    """More threads than the device has in a block are an error with both numbers."""
    backend = targets.backend("opencl", Path("unused"))
    with pytest.raises(ResourceError, match=r"gemm_0 needs 65536 threads per block, the limit is \d+"):
        backend.build(planned(GEMM, "codelet: grid blocksize 512x128"))


def test_without_the_library_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """The target is refused with the command that brings it, and devices are listed without it."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(TargetError, match=r"needs pyopencl; install it with: pip install 'looptune\[opencl\]'"):
        targets.resolve("opencl", Path("unused"))
    assert targets.opencl_facts() == ()
