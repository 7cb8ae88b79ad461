"""Arrays with more elements than 32 bits count: subscripts in 64 bits, in every kind of kernel and at every target."""

from __future__ import annotations

import ctypes
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from looptune.backends.cuda.cuda_c_writer import file_text
from looptune.backends.numba_cuda.writer import CudaWriter
from looptune.frontend import load
from looptune.ir.nodes import Binary, Const, Expr, Var
from looptune.lower import pipeline
from looptune.lower.addresses import make_address
from looptune.lower.known_values import KnownValues
from looptune.lower.machine import Machine
from looptune.lower.passes.address_split import split_address
from looptune.lower.pipeline import finish, lower
from looptune.runtime import targets
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from tests.helpers import cross_check, cuda_c_on_cpu, kernel_cases, overlap_cases, stage_cases, tensor_cases
from tests.helpers.kernel_cases import Case, planned, sized

needs_gxx = pytest.mark.skipif(cuda_c_on_cpu.GXX is None, reason="needs g++")
ROWS = """void f(signed char a[5][1500000000], int b[5][4])
{ for (int i = 0; i < 5; i++) for (int j = 0; j < 4; j++) b[i][j] = a[i][j * 499999999] * 2; }
"""
STORED = """void f(signed char a[5][1500000000], int b[5][4])
{ for (int i = 0; i < 5; i++) for (int j = 0; j < 4; j++) a[i][j * 499999999] = b[i][j]; }
"""
NEIGHBOURS = """void f(signed char a[3][1500000000], int b[3][4])
{ for (int i = 1; i < 3; i++) for (int j = 1; j < 4; j++)
    b[i][j] = a[i - 1][j * 400000000 - 1] + a[i][j * 400000000] + 3 * a[i][j * 400000000 + 1]; }
"""
LINE = """void f(signed char a[4500000000], int b[6])
{ for (int j = 0; j < 6; j++) b[j] = a[(long)j * 899999999]; }
"""
FAR = """void f(signed char a[4500000000], int b[6])
{ for (long j = 4499999990; j < 4499999996; j++) b[j - 4499999990] = a[j]; }
"""
SUMS = """void f(signed char a[4][1500000000], int b[4])
{ for (int i = 0; i < 4; i++) { int s = 0; for (int j = 0; j < 3; j++) s += a[i][j * 700000000]; b[i] = s; } }
"""
SPARSE = {
    "rows": (ROWS, ()),
    "rows side by side": (ROWS, ("loop i: unroll 2, jam",)),
    "stored": (STORED, ()),
    "stored in tiles": (STORED, ("loop j: tile j:2",)),
    "neighbours": (NEIGHBOURS, ()),
    "a line": (LINE, ()),
    "the end of a line": (FAR, ()),
    "sums": (SUMS, ()),
    "sums of lanes": (SUMS, ("loop j: parallel, team, reduce(+:s)",)),
    "sums, unrolled": (SUMS, ("loop j: unroll 3", "codelet: grid blocksize 2x1")),
}
PRODUCT = """void f(int n, int m, int l, float A[n][m], float B[m][l], float C[n][l]) {
  for (int i = 0; i < n; i++) for (int j = 0; j < l; j++) { C[i][j] = 0;
    for (int k = 0; k < m; k++) C[i][j] += A[i][k] * B[k][j]; } }
"""
KINDS = {
    "tiles": Case(PRODUCT, ("loop i: unroll 2, jam", "loop k: tile k:8", "loop k: stage A, B"), sized((0, 9, 17, 5))),
    "vectors": Case(PRODUCT, ("loop j: vectorize 4",), sized((0, 5, 7, 8))),
    "team": Case(PRODUCT, ("loop k: parallel, team, reduce(+:C)",), sized((0, 5, 37, 3))),
    "split sums": Case(PRODUCT, ("loop k: rfactor k:3",), sized((0, 5, 37, 3))),
}


def wide(text: str, lines: tuple[str, ...]) -> pipeline.Plan:
    return replace(planned(text, lines), wide_indices=True)


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The functions ``run_0`` and so on for the programs of SPARSE, then one for PRODUCT, on the processor."""
    if cuda_c_on_cpu.GXX is None:
        pytest.skip("needs g++")
    folder, parts = tmp_path_factory.mktemp("kernels"), ['#include "cuda_c_on_cpu.h"']
    for number, (text, lines) in enumerate([*SPARSE.values(), (PRODUCT, ())]):
        emitted = file_text(finish(planned(text, lines), Machine(blocks=True)))
        parts.append(f"namespace n{number} {{\n{cuda_c_on_cpu.portable(emitted, number)}\n}}")
    (folder / "k.cpp").write_text("\n".join(parts))
    helpers = str(Path(cuda_c_on_cpu.__file__).parent)
    command = ["g++", "-O0", "-w", "-shared", "-fPIC", "-I", helpers, "k.cpp", "-o", "k.so"]
    subprocess.run(command, cwd=folder, check=True, timeout=100)
    return ctypes.CDLL(str(folder / "k.so"))


@pytest.mark.parametrize("name", SPARSE)
def test_elements_far_away_are_found(name: str, kernels: ctypes.CDLL, tmp_path: Path) -> None:
    """Kernels for arrays of gigabytes, nearly all of whose pages are never touched, against gcc."""
    text, _ = SPARSE[name]
    a, b = (np.zeros([int(n.value) for n in p.shape], p.dtype) for p in load(text).codelet.params)
    touched, results = _touched(text), []
    for function in (cross_check.compiled(text, tmp_path).f, getattr(kernels, f"run_{[*SPARSE].index(name)}")):
        a.reshape(-1)[touched] = np.arange(len(touched)) % 100 + 1
        b[...] = np.arange(b.size).reshape(b.shape) + 20
        function(*(ctypes.c_void_p(array.ctypes.data) for array in (a, b)), None)
        results.append((a.reshape(-1)[touched].copy(), b.copy()))
    for want, got in zip(*results, strict=True):
        np.testing.assert_array_equal(got, want)


def test_a_function_for_any_sizes_refuses_what_it_does_not_count(kernels: ctypes.CDLL, tmp_path: Path) -> None:
    """Emitted CUDA C returns an error before it launches anything, and Numba's module has a ValueError."""
    run = getattr(kernels, f"run_{len(SPARSE)}")
    assert run(50000, 3, 50000, None, None, None, None) == 1, "C has more than 2^31 elements"
    assert run(0, 3, 50000, None, None, None, None) == 0
    if cross_check.CUDA:
        text = targets.emit("numba-cuda", planned(PRODUCT, ()), tmp_path)
        assert text.count(".size > 2147483648:") == 3


def _touched(text: str) -> np.ndarray:
    """The elements of ``a`` that the loops of a text access."""
    step = 1500000000
    if text in (ROWS, STORED):
        return np.array([i * step + j * 499999999 for i in range(5) for j in range(4)])
    if text == NEIGHBOURS:
        return np.array([i * step + j * 400000000 + k for i in range(3) for j in range(1, 4) for k in (-1, 0, 1)])
    if text == SUMS:
        return np.array([i * step + j * 700000000 for i in range(4) for j in range(3)])
    assert text in (LINE, FAR)
    return np.array([j * 899999999 for j in range(5)] + list(range(4499999985, 4500000000)))


@needs_gxx
@pytest.mark.wide
def test_every_kind_of_kernel_has_them(tmp_path: Path) -> None:
    """Staged tiles, vectors, teams, partial sums, tiles of several steps, products of warps."""
    cases = {**KINDS, **_some(overlap_cases.CASES, 3), **_some(stage_cases.CASES, 4), **_some(tensor_cases.CASES, 2)}
    made, wants = [], {}
    for name, case in cases.items():
        codelet = load(case.text).codelet
        arguments = cross_check.arguments(codelet, case.sizes[0])
        wants[name] = cross_check.interpreted(codelet, arguments)
        made.append(cuda_c_on_cpu.Case(name, wide(case.text, case.lines), codelet, arguments))
    found = cuda_c_on_cpu.run(made, tmp_path)
    assert not [name for name in cases if cross_check.off(wants[name], found[name], 1e-5) is not None]


def _some(cases: dict[str, Case], count: int) -> dict[str, Case]:
    return dict(list(cases.items())[:: max(1, len(cases) // count)])


@pytest.mark.wide
@pytest.mark.skipif(not cross_check.CUDA, reason="needs the package numba-cuda")
def test_numba_has_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the simulator, what the loops leave."""
    monkeypatch.setattr(pipeline, "needs_wide_indices", lambda _: True)
    assert not kernel_cases.wrong_in_numba(KINDS, tmp_path, constant=False, tolerance=1e-5)


@pytest.mark.parametrize("target", ["cuda-c", "numba-cuda", "opencl", "hip"])
def test_only_arrays_that_need_them_have_them(target: str, tmp_path: Path) -> None:
    """2^31 elements are counted in 32 bits, one more in 64; an array that 32 bits can count changes nothing."""
    if target == "numba-cuda" and not cross_check.CUDA:
        pytest.skip("needs the package numba-cuda")
    text = """void f(signed char a[65536][COUNT])
    { for (int i = 0; i < 9; i++) for (int j = 0; j < 9; j++) a[i][j] = 1; }
    """
    in_64_bits = {"numba-cuda": "int64(i)", "opencl": "(long)i"}.get(target, "(long long)i")
    for columns, expected in (("32768", False), ("32769", True)):
        made = lower(schedule(Analysis(load(text.replace("COUNT", columns)).codelet)).codelet, blocks=True)
        assert (in_64_bits in targets.emit(target, made, tmp_path)) == expected


NAMES = ("i", "j", "k", "l")
PLAN = replace(planned("void f(int n, float A[n]) { for (int i = 0; i < n; i++) A[i] = 1; }\n", ()), wide_indices=True)


@st.composite
def places(draw: st.DrawFn) -> Expr:
    """Sums of multiples of variables and of remainders, and a constant."""
    e: Expr = Const(draw(st.integers(-(2**40), 2**40)), "int64")
    for _ in range(draw(st.integers(1, 4))):
        term: Expr = Var(draw(st.sampled_from(NAMES)))
        if draw(st.booleans()):
            term = Binary("%", Binary("+", term, Var(draw(st.sampled_from(NAMES)))), Const(draw(st.integers(1, 9))))
        factor = Const(draw(st.integers(1, 2**33)), "int64")
        e = Binary(draw(st.sampled_from(("+", "+", "-"))), e, Binary("*", factor, term))
    return e


@settings(max_examples=100, deadline=None)
@given(places(), st.sets(st.sampled_from(NAMES)), st.tuples(*[st.integers(0, 2**31)] * 4))
def test_what_is_written_is_the_place(e: Expr, counted: set[str], values: tuple[int, ...]) -> None:
    """In the integers that Numba's kernel has, whatever is counted."""
    at = dict(zip(NAMES, values, strict=True))
    operations = {"+": int.__add__, "-": int.__sub__, "*": int.__mul__, "%": int.__mod__}

    def exact(e: Expr) -> int:
        match e:
            case Const(n):
                return int(n)
            case Var(name):
                return at[name]
            case Binary(op, lhs, rhs):
                return operations[op](exact(lhs), exact(rhs))
        raise AssertionError(e)

    want = exact(e)
    if not 0 <= want < 2**63:
        return
    split = split_address(e, counted, set(NAMES), {})
    index = e if split is None or split.is_single else make_address(split.base, split.counted, split.constant)
    text = CudaWriter(finish(PLAN, Machine(blocks=True)), set(NAMES)).global_index(index)
    here = {**at, "uint32": lambda n: n % 2**32, "uint64": lambda n: n % 2**64, "int64": int}
    assert eval(text, here) % 2**64 == want, text


def test_what_the_split_knows_of_variables() -> None:
    """Counters of a thread stay apart from the base, which is computed in 64 bits."""
    e = Binary("+", Binary("*", Const(3000000000, "int64"), Var("i")), Var("k"))
    known = KnownValues({"i", "k"}, {"k"})
    split = split_address(e, known.counted, known.nonnegative, known.most)
    assert split is not None
    text = CudaWriter(finish(PLAN, Machine(blocks=True)), {"i", "k"}).global_index(
        make_address(split.base, split.counted, split.constant)
    )
    assert "uint32" not in text
