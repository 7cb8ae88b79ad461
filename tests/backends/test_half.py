"""float16 arrays on every target: conversions round once, and kernels under directives leave what gcc leaves."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import looptune
from looptune.backends.codegen import half
from looptune.core.errors import UsageError
from looptune.frontend import load
from looptune.lower.plan import Plan
from looptune.runtime import targets
from tests.helpers import cross_check, cuda_c_on_cpu, short_float_conversions
from tests.helpers.half_programs import CASES, DOT, GEMM, SPECIALIZED, STENCIL, STEPS, equal, given_for, planned


def plan_of(name: str) -> Plan:
    text, sizes, lines = CASES[name]
    return planned(text, lines, sizes if name in SPECIALIZED else None)


@pytest.fixture(scope="module")
def wanted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, np.ndarray]]:
    """What gcc's code of each text leaves."""
    found = {}
    for text in (GEMM, STENCIL, STEPS, DOT):
        for name, (of, sizes, _) in CASES.items():
            if of == text:
                folder = tmp_path_factory.mktemp("gcc")
                found[name] = cross_check.by_gcc(text, load(text).codelet, given_for(text, sizes), folder)
    return found


def test_cuda_c_leaves_what_gcc_leaves(wanted: dict[str, dict[str, np.ndarray]], tmp_path: Path) -> None:
    """As C++, with the integer arithmetic that the host has."""
    cases = [
        cuda_c_on_cpu.Case(name, plan_of(name), load(text).codelet, given_for(text, sizes))
        for name, (text, sizes, _) in CASES.items()
    ]
    for name, got in cuda_c_on_cpu.run(cases, tmp_path).items():
        equal(wanted[name], got, name)


@pytest.mark.wide
@pytest.mark.skipif(not cross_check.CUDA, reason="needs numba-cuda")
def test_the_simulator_leaves_what_gcc_leaves(wanted: dict[str, dict[str, np.ndarray]], tmp_path: Path) -> None:
    """Numba's text, on arrays of float16, with a half parameter that is given as a double."""
    backend = targets.backend("numba-cuda", tmp_path)
    programs = [
        cross_check.Emitted(name, backend.emit(plan_of(name)), text.split("(")[0].split()[-1],
                            given_for(text, sizes))
        for name, (text, sizes, _) in CASES.items()
    ]  # fmt: skip
    for name, got in cross_check.simulated(programs, tmp_path).items():
        equal(wanted[name], got, name)


@pytest.mark.wide
def test_a_processor_leaves_what_gcc_leaves(wanted: dict[str, dict[str, np.ndarray]]) -> None:
    """``looptune.compile`` takes NumPy's float16, and refuses other types by name."""
    for name in ("gemm", "stencil", "dot"):
        text, sizes, _ = CASES[name]
        given = given_for(text, sizes)
        tuned = looptune.compile(text, target="numba-cpu")
        tuned(*given.values())
        equal(wanted[name], cross_check.arrays(given), name)
        arrays = [
            v.view(np.uint16) if isinstance(v, np.ndarray) and v.dtype == np.float16 else v for v in given.values()
        ]
        with pytest.raises(UsageError, match="must be an array of float16, got uint16"):
            tuned(*arrays)


@pytest.mark.skipif(not cross_check.CUDA, reason="needs numba-cuda")
@pytest.mark.parametrize("target", ["numba-cuda", "cuda-c"])
@pytest.mark.parametrize("arch", ["sm_80", pytest.param("sm_90", marks=pytest.mark.wide)])
def test_a_gpu_converts_by_single_instructions(target: str, arch: str) -> None:
    """A double is rounded to half in one step; nothing is called and no bits are shifted."""
    text = targets.ptx(target, planned(STENCIL, ()), arch)
    assert "cvt.f32.f16" in text
    assert "cvt.rn.f16.f32" not in text.partition("stencil_1")[2]
    assert "cvt.rn.f16.f64" in text
    assert "call" not in text
    text = targets.ptx(target, plan_of("gemm, 8 elements at a time"), arch)
    assert "cp.async.cg.shared.global" in text
    assert text.count("cvt.f32.f16") > 1


def doubles() -> np.ndarray:
    """Every half, what lies half-way between two, and the doubles and floats around both."""
    every = np.arange(65536, dtype=np.uint16).view(np.float16)
    finite = np.sort(every[np.isfinite(every)].astype(np.float64))
    middle = (finite[:-1] + finite[1:]) / 2
    around = [f(middle.astype(np.float32), np.float32(x)).astype(np.float64)
              for f in (np.nextafter,) for x in (np.inf, -np.inf)]  # fmt: skip
    more = [1e300, -1e300, 65519.999999, 65520, -65520, 5e-324, 1e-40, 2.0**-25 * (1 + 2.0**-50), np.inf, -np.inf]
    return np.concatenate([finite, middle, middle * (1 + 2.0**-40), middle * (1 - 2.0**-40), *around, more])


def check_conversions(to_float: np.ndarray, of_floats: np.ndarray, of_doubles: np.ndarray) -> None:
    """Compare with NumPy's; a NaN may be any."""
    bits, wide = np.arange(65536, dtype=np.uint16), doubles()
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(to_float, bits.view(np.float16).astype(np.float32))
        np.testing.assert_array_equal(of_floats.view(np.float16), wide.astype(np.float32).astype(np.float16))
        np.testing.assert_array_equal(of_doubles.view(np.float16), wide.astype(np.float16))


def test_the_integer_arithmetic_in_c_rounds_as_ieee_754_says(tmp_path: Path) -> None:
    """All halves, and all neighbours of their midpoints, from float and from double."""
    check_conversions(*short_float_conversions.by_gcc(tmp_path, "half", half.CONVERSIONS["float16"], doubles()))


def test_the_integer_arithmetic_in_numba_rounds_as_ieee_754_says() -> None:
    """The helpers of the CPU's modules."""
    check_conversions(*short_float_conversions.by_numba("half", half.CONVERSIONS["float16"], doubles()))


@pytest.mark.wide
@pytest.mark.skipif(shutil.which("hipcc") is None, reason="needs hipcc")
def test_hip_has_a_type_of_16_bits(tmp_path: Path) -> None:
    """Of each function hipcc compiles the device's text and the host's."""
    (tmp_path / "made.hip").write_text(targets.emit("hip", planned(STENCIL, ()), tmp_path))
    command = ["hipcc", "--offload-arch=gfx90a", "-O1", "-c", "made.hip", "-o", "made.o"]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=120)


def test_opencl_reads_halves_from_memory_without_an_extension(tmp_path: Path) -> None:
    """``vload_half`` is of every device; the type itself is of cl_khr_fp16, which the text does not need."""
    text = targets.emit("opencl", planned(STENCIL, ()), tmp_path)
    assert "vload_half(0, (const half *)&bits)" in text
    assert "__global const ushort *restrict B" in text
    assert "fp16" not in text
    clang = shutil.which("clang") or shutil.which("clang-15")
    if clang is not None:
        (tmp_path / "made.cl").write_text(text)
        command = [
            clang,
            "-x",
            "cl",
            "-cl-std=CL1.2",
            "-fsyntax-only",
            "-Xclang",
            "-finclude-default-header",
            "made.cl",
        ]
        subprocess.run(command, cwd=tmp_path, check=True, timeout=60)
