"""bfloat16 arrays on every target: conversions round once, and kernels under directives leave what the loops leave."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

import looptune
from looptune.backends.codegen import half
from looptune.core.errors import UsageError
from looptune.core.short_floats import rounded
from looptune.frontend import load
from looptune.ir import interpreter
from looptune.lower.plan import Plan
from looptune.runtime import targets
from tests.helpers import cross_check, cuda_c_on_cpu, half_programs, short_float_conversions
from tests.helpers.half_programs import equal

BF = np.dtype("bfloat16")
CASES = {
    name: (text.replace("_Float16", "__bf16"), sizes, lines)
    for name, (text, sizes, lines) in half_programs.CASES.items()
}  # fmt: skip


def plan_of(name: str) -> Plan:
    text, sizes, lines = CASES[name]
    return half_programs.planned(text, lines, sizes if name in half_programs.SPECIALIZED else None)


def given_for(name: str) -> cross_check.Arguments:
    text, sizes, _ = CASES[name]
    return half_programs.given_for(text, sizes)


@pytest.fixture(scope="module")
def wanted() -> Mapping[str, dict[str, np.ndarray]]:
    """What the interpreter leaves, in the order of the text: sums of floats are exact in any order here."""
    found = {}
    for name, (text, _, _) in CASES.items():
        given = given_for(name)
        arrays = cross_check.arrays(given)
        interpreter.run(load(text).codelet, arrays, {n: v for n, v in given.items() if n not in arrays})
        found[name] = arrays
    return found


def test_cuda_c_leaves_what_the_loops_leave(wanted: Mapping[str, dict[str, np.ndarray]], tmp_path: Path) -> None:
    """As C++, with the integer arithmetic that the host has."""
    cases = [
        cuda_c_on_cpu.Case(name, plan_of(name), load(text).codelet, given_for(name))
        for name, (text, _, _) in CASES.items()
    ]
    for name, got in cuda_c_on_cpu.run(cases, tmp_path).items():
        equal(wanted[name], got, name)


@pytest.mark.wide
@pytest.mark.skipif(not cross_check.CUDA, reason="needs numba-cuda")
def test_the_simulator_leaves_what_the_loops_leave(wanted: Mapping[str, dict[str, np.ndarray]], tmp_path: Path) -> None:
    """Numba's text takes the bits of the arrays."""
    backend = targets.backend("numba-cuda", tmp_path)
    programs = [
        cross_check.Emitted(
            name,
            backend.emit(plan_of(name)),
            text.split("(")[0].split()[-1],
            {n: v.view(np.uint16) if getattr(v, "dtype", None) == BF else v for n, v in given_for(name).items()},
        )
        for name, (text, _, _) in CASES.items()
    ]
    for name, got in cross_check.simulated(programs, tmp_path).items():
        assert isinstance(got, dict), got
        typed = {n: a.view(BF) if wanted[name][n].dtype == BF else a for n, a in got.items()}
        equal(wanted[name], typed, name)


def test_a_processor_leaves_what_the_loops_leave(wanted: Mapping[str, dict[str, np.ndarray]]) -> None:
    """``looptune.compile`` takes bfloat16 of ml_dtypes, and refuses other types by name."""
    for name in ("gemm", "dot"):
        given = given_for(name)
        tuned = looptune.compile(CASES[name][0], target="numba-cpu")
        tuned(*given.values())
        equal(wanted[name], cross_check.arrays(given), name)
        other = [v.view(np.float16) if getattr(v, "dtype", None) == BF else v for v in given.values()]
        with pytest.raises(UsageError, match="must be an array of bfloat16, got float16"):
            tuned(*other)


@pytest.mark.skipif(not cross_check.CUDA, reason="needs numba-cuda")
def test_a_gpu_reads_by_a_shift_and_rounds_by_an_instruction() -> None:
    """Of CUDA C from compute capability 8.0 on; before, and with Numba, it is integer arithmetic."""
    for target in ("numba-cuda", "cuda-c"):
        for arch in ("sm_75", "sm_90"):
            text = targets.ptx(target, plan_of("stencil"), arch)
            assert "call" not in text
            assert "shl.b32" in text
            assert ("cvt.rn.bf16.f32" in text) == (target == "cuda-c" and arch == "sm_90")
    assert "cp.async.cg.shared.global" in targets.ptx("numba-cuda", plan_of("gemm, 8 elements at a time"), "sm_80")


def doubles() -> np.ndarray:
    """Every bfloat16, what lies half-way between two, and the doubles around both."""
    every = (np.arange(65536, dtype=np.uint32) << 16).view(np.float32)
    finite = np.sort(every[np.isfinite(every)].astype(np.float64))
    middle = (finite[:-1] + finite[1:]) / 2
    more = [1e300, -1e300, 3.3961775e38, 5e-324, 1e-40, 2.0**-133, 2.0**-134, 2.0**-134 * (1 + 2.0**-50), np.inf]
    return np.concatenate([finite, middle, middle * (1 + 2.0**-40), middle * (1 - 2.0**-40), more])


def nearest(wide: np.ndarray) -> np.ndarray:
    """The bits of the nearest bfloat16, of two as near the even one; found among all of them."""
    every = (np.arange(0x7F80, dtype=np.uint32) << 16).view(np.float32).astype(np.float64)
    ends = np.append(every, 2.0**128)
    size = np.abs(wide)
    above = np.minimum(np.searchsorted(ends, size), 0x7F80)
    below = np.maximum(above - 1, 0)
    with np.errstate(invalid="ignore", over="ignore"):
        left, right = size - ends[below], ends[above] - size
    take_above = (right < left) | ((right == left) & (above % 2 == 0))
    found = np.where(np.isinf(size) | (size >= 2.0**128), 0x7F80, np.where(take_above, above, below))
    return (found | np.where(np.signbit(wide), 0x8000, 0)).astype(np.uint16)


def check_conversions(to_float: np.ndarray, of_floats: np.ndarray, of_doubles: np.ndarray) -> None:
    wide = doubles()
    np.testing.assert_array_equal(to_float.view(np.uint32), np.arange(65536, dtype=np.uint32) << 16)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(of_floats, nearest(wide.astype(np.float32).astype(np.float64)))
    np.testing.assert_array_equal(of_doubles, nearest(wide))


def test_the_conversions_in_c_round_as_ieee_754_says(tmp_path: Path) -> None:
    """All values, and all neighbours of their midpoints, from float and from double."""
    check_conversions(*short_float_conversions.by_gcc(tmp_path, "bfloat", half.CONVERSIONS["bfloat16"][:3], doubles()))


def test_the_conversions_in_numba_round_as_ieee_754_says() -> None:
    """The helpers of the CPU's modules; and what rounds the numbers that a call is given."""
    names = (half.BITS_OF, half.FLOAT_OF, *half.CONVERSIONS["bfloat16"])
    check_conversions(*short_float_conversions.by_numba("bfloat", names, doubles()))
    some = doubles()[::97]
    np.testing.assert_array_equal([rounded(float(x), "bfloat16") for x in some], a_float(nearest(some)))


def a_float(bits: np.ndarray) -> np.ndarray:
    return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def test_integers_round_once(wanted: object) -> None:
    """16842753 is nearest to 16908288; by way of a float it would be half-way between two."""
    loop = "for (int i = 0; i < n; i++) { a[i] = k[i]; b[i] = l[i]; }"
    text = f"void f(int n, int k[n], long l[n], __bf16 a[n], __bf16 b[n]) {{ {loop} }}"
    numbers = [16842753, -16842753, 33685506 + 1, 2**31 - 1, 7]
    k, a, b = np.array(numbers, np.int32), np.zeros(5, BF), np.zeros(5, BF)
    looptune.compile(f"\n{text}", target="numba-cpu")(5, k, k.astype(np.int64), a, b)
    expected = a_float(nearest(np.array(numbers, np.float64)))
    np.testing.assert_array_equal(a.astype(np.float64), expected)
    np.testing.assert_array_equal(b.astype(np.float64), expected)
    again = np.zeros(5, BF)
    interpreter.run(load(f"\n{text}").codelet, {"k": k, "l": k.astype(np.int64), "a": again, "b": b}, {"n": 5})
    np.testing.assert_array_equal(again.astype(np.float64), expected)


def test_opencl_and_hip_need_no_type_of_16_bits(tmp_path: Path) -> None:
    """The text for both compiles where a device knows no such type."""
    opencl = targets.emit("opencl", plan_of("stencil"), tmp_path)
    assert "__global const ushort *restrict B" in opencl
    assert "__bf16" not in opencl.partition("__kernel")[2]
    if shutil.which("clang") is not None:
        (tmp_path / "made.cl").write_text(opencl)
        flags = ["-x", "cl", "-cl-std=CL1.2", "-fsyntax-only", "-Xclang", "-finclude-default-header"]
        subprocess.run(["clang", *flags, "made.cl"], cwd=tmp_path, check=True, timeout=60)
    hip = targets.emit("hip", plan_of("stencil"), tmp_path)
    assert "const unsigned short *__restrict__ B" in hip


@pytest.mark.wide
@pytest.mark.skipif(shutil.which("hipcc") is None, reason="needs hipcc")
def test_hipcc_compiles_it(tmp_path: Path) -> None:
    (tmp_path / "made.hip").write_text(targets.emit("hip", plan_of("stencil"), tmp_path))
    command = ["hipcc", "--offload-arch=gfx90a", "-O1", "-c", "made.hip", "-o", "made.o"]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=120)
