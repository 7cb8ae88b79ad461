"""``tensor``: what the blocks compute is what the loops do, at any size; lanes hold every element once."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from looptune.backends.codegen.kernel import check_limits, dynamic_shared_bytes
from looptune.backends.codegen.warp_tiles import loads_ahead
from looptune.core.errors import DirectiveError, IllegalTransform, LooptuneError, ResourceError
from looptune.frontend import load
from looptune.ir.specialize import specialize
from looptune.lower.fragments import BlockShape, Fragment, checked
from looptune.lower.machine import Machine
from looptune.lower.pipeline import finish, lower
from looptune.lower.plan_check import prove_plan
from looptune.runtime import targets
from looptune.runtime.verification import in_double
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from looptune.schedule.directives.tensor import SHAPES
from tests.helpers import cross_check, cuda_c_on_cpu, kernel_cases
from tests.helpers.tensor_cases import CASES, CORR, GEMM, HEAD, LOCAL, SMALL, UPDATE

simulator = pytest.mark.skipif(not cross_check.CUDA, reason="needs the package numba-cuda")
compiler = pytest.mark.skipif(cuda_c_on_cpu.GXX is None, reason="needs g++")
TOLERANCE = 1e-12
ROUNDED = 1e-6
FLOATS_OF_PARTS = 2.0**-22
"""Of the sum of all absolute values: two parts of 11 bits hold a float but for its last bits."""
FLOATS = {name: case for name, case in CASES.items() if name.startswith("floats")}
ROUNDED_FACTORS = {name: case for name, case in CASES.items() if name.startswith("rounded")}
DOUBLES = {name: case for name, case in CASES.items() if name not in {*FLOATS, *ROUNDED_FACTORS}}
SOME = {name: replace(CASES[name], sizes=CASES[name].sizes[:1])
        for name in ("a product", "two products of a triangle", "a grid of three dimensions")}  # fmt: skip


@compiler
def test_what_the_loops_give(tmp_path: Path) -> None:
    """In CUDA C, the lanes of a warp as threads that lend each other what they hold."""
    assert not kernel_cases.wrong_in_c(SOME, tmp_path, (True,), TOLERANCE)


@pytest.mark.long
@pytest.mark.wide
@compiler
def test_what_the_loops_give_at_other_sizes(tmp_path: Path) -> None:
    assert not kernel_cases.wrong_in_c(DOUBLES, tmp_path, (True, False), TOLERANCE)


@pytest.mark.wide
@compiler
def test_the_parts_of_floats_hold_their_bits(tmp_path: Path) -> None:
    """Each sum is that of the loops in double, but for what two parts of a factor and a float have no bits for."""
    made, wants = [], {}
    for name, case in FLOATS.items():
        codelet = load(case.text).codelet
        for seed, sizes in enumerate(case.sizes):
            given = cross_check.arguments(codelet, sizes, seed)
            floats = {n: a for n, a in given.items() if isinstance(a, np.ndarray)}
            sums = [cross_check.interpreted(in_double(codelet), {**given, **values})["C"]
                    for values in ({n: a.astype(np.float64) for n, a in floats.items()},
                                   {n: np.abs(a.astype(np.float64)) for n, a in floats.items()})]  # fmt: skip
            for known in (sizes, None):
                key = f"{name} {sizes} {known is None}"
                wants[key] = sums
                made.append(cuda_c_on_cpu.Case(key, kernel_cases.planned(case.text, case.lines, known), codelet, given))
    found = cuda_c_on_cpu.run(made, tmp_path)
    for key, (want, absolute) in wants.items():
        assert (np.abs(found[key]["C"] - want) <= FLOATS_OF_PARTS * absolute).all(), key


@pytest.mark.wide
@compiler
def test_factors_are_rounded(tmp_path: Path) -> None:
    """To the nearest of 11 or 8 bits, in whichever registers: where they have no more, sums are those of floats."""
    made, wants = [], {}
    for name, case in ROUNDED_FACTORS.items():
        codelet = load(case.text).codelet
        bits = 8 if "in pairs" in name else 11
        for seed, sizes in enumerate(case.sizes):
            for short in (True, False):
                plain = cross_check.arguments(codelet, sizes, seed)
                made_of = (lambda a: np.round(a * 16) / np.float32(16)) if short else (lambda a: a * np.float32(1.1))
                given = {n: made_of(a) if isinstance(a, np.ndarray) else a for n, a in plain.items()}
                absolute = {n: np.abs(a) if isinstance(a, np.ndarray) else a for n, a in given.items()}
                sums = [cross_check.interpreted(in_double(codelet), {
                    n: a.astype(np.float64) if isinstance(a, np.ndarray) else a for n, a in some.items()
                })["C"] for some in (given, absolute)]  # fmt: skip
                key = f"{name} {sizes} {short}"
                wants[key] = *sums, ROUNDED if short else 2.0 ** (1 - bits) + ROUNDED, short
                made.append(cuda_c_on_cpu.Case(key, kernel_cases.planned(case.text, case.lines, sizes), codelet, given))
    found = cuda_c_on_cpu.run(made, tmp_path)
    for key, (want, whole, allowed, short) in wants.items():
        error = np.abs(found[key]["C"] - want)
        assert (error <= allowed * whole).all(), key
        assert short or (error > 2.0**-20 * whole).any(), f"{key}: nothing was rounded"


@pytest.mark.sampled(9)
@pytest.mark.wide
@simulator
@pytest.mark.parametrize("constant", [True, False])
def test_what_the_loops_give_in_numba(tmp_path: Path, constant: bool) -> None:
    assert not kernel_cases.wrong_in_numba(DOUBLES, tmp_path, constant, TOLERANCE)
    assert not kernel_cases.wrong_in_numba(FLOATS, tmp_path, constant, ROUNDED)
    assert not kernel_cases.wrong_in_numba(ROUNDED_FACTORS, tmp_path, constant, 2e-2)


@pytest.mark.wide
@compiler
def test_floats_that_are_not_finite(tmp_path: Path) -> None:
    """The parts of an infinity are none: such sums are those of the loop, as are sums of what is near the greatest."""
    case = FLOATS["floats"]
    codelet, sizes = load(case.text).codelet, {"n": 5, "m": 6, "l": 20}
    given = cross_check.arguments(codelet, sizes)
    a, b = given["A"], given["B"]
    a[0, 3], a[1, 2], a[2, 5], b[7, 1], b[8, 2] = np.inf, np.nan, 3.4028e38, -np.inf, 1e-45
    a.view(np.uint32)[3, 1], a.view(np.uint32)[4, 1] = 0xFFFFFFFF, 0x7F800001  # other numbers that are none
    want = cross_check.interpreted(codelet, given)
    made = cuda_c_on_cpu.Case("f", kernel_cases.planned(case.text, case.lines, sizes), codelet, given)
    found = cuda_c_on_cpu.run([made], tmp_path)["f"]["C"]
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(want["C"]))
    np.testing.assert_allclose(found, want["C"], rtol=1e-6, atol=1e-6)


@simulator
def test_it_compiles() -> None:
    """Both backends make instructions of the shape, spill nothing, and need as many registers within a tenth."""
    from looptune.backends.cuda.cuda_c import CudaC
    from looptune.backends.numba_cuda.backend import NumbaCuda

    case = CASES["a factor apart"]
    plan = kernel_cases.planned(case.text, case.lines, case.sizes[1])
    for backend in (CudaC("sm_90"), NumbaCuda("sm_90")):
        assert "mma.sync.aligned.m16n8k8" in backend.ptx(plan)
        assert backend.build(plan).resources[0].local_bytes == 0
        with pytest.raises(ResourceError, match="16x8x8 elements at once, which needs sm_90, this is sm_80"):
            type(backend)("sm_80").build(plan)


@simulator
def test_rounded_factors_compile() -> None:
    """Both backends round with the instruction for it, also for devices that have no tensor cores for doubles."""
    from looptune.backends.cuda.cuda_c import CudaC
    from looptune.backends.numba_cuda.backend import NumbaCuda

    case = CASES["rounded floats in pairs"]
    plan = kernel_cases.planned(case.text, case.lines, case.sizes[1])
    for backend in (CudaC("sm_80"), NumbaCuda("sm_80")):
        ptx = backend.ptx(plan)
        assert "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32" in ptx
        assert "cvt.rn.bf16x2.f32" in ptx
        assert backend.build(plan).resources[0].local_bytes == 0


@pytest.mark.parametrize("shape", SHAPES)
def test_lanes_hold_every_element_once(shape: tuple[int, int, int]) -> None:
    """For the shapes of the instruction, and for blocks of several warps; a strip has to be whole instructions."""
    block = BlockShape(Fragment(*shape), 64, 48, 32, 16, 32)
    assert checked(block)
    assert not checked(replace(block, strip=30))
    assert not checked(replace(block, warp_columns=20))


def test_the_blocks_are_proved() -> None:
    """What threads do with the elements of a block covers the loops, idle blocks included."""
    for name in ("a product", "columns, idle blocks"):
        case = CASES[name]
        codelet = load(case.text).codelet
        done = schedule(Analysis(codelet), parse_lines(case.lines)).codelet
        known = {**case.sizes[0], "n": 200}
        assert prove_plan(codelet, lower(specialize(done, known), blocks=True), known).verdict == "proved"


@pytest.mark.wide
@compiler
def test_what_a_row_does_not_read_does_not_matter(tmp_path: Path) -> None:
    """An infinity times a zero beyond the diagonal is no number: such sums are those of the loop."""
    case = CASES["up to the diagonal"]
    codelet, sizes = load(case.text).codelet, {"n": 37, "m": 18}
    given = cross_check.arguments(codelet, sizes)
    given["B"][20, 3], given["B"][30, 5] = np.inf, np.nan
    given["A"][np.triu_indices(37)] = np.nan
    want = cross_check.interpreted(codelet, given)
    made = cuda_c_on_cpu.Case("f", kernel_cases.planned(case.text, case.lines, sizes), codelet, given)
    assert cross_check.off(want, cuda_c_on_cpu.run([made], tmp_path)["f"], TOLERANCE) is None
    assert np.isfinite(want["C"]).sum() > 600


REFUSED = {
    "float": (GEMM.replace("double", "float"), "it adds products of doubles, and here is a float32"),
    "bounds": (GEMM.replace("k < l", "k <= j / 2"), "its bounds depend on j, a loop of the grid"),
    "no product": (GEMM.replace("* B[k][j]", ""), "a term is no product of a factor with i and one with j"),
    "a factor of both": (GEMM.replace("B[k][j]", "B[k][j] * (i + j)"), "a factor depends on both i and j"),
    "a local": (HEAD + " double t = 1; if (i > 3) t = C[i][j]; "
                "for (int k = 0; k < l; k++) C[i][j] += t * A[i][k] * B[k][j]; } }\n",
                "it uses t, which its thread computes"),
    "one loop": (GEMM.replace("for (int j = 0; j < m; j++)", "").replace("[j]", "[0]"),
                 "it needs two parallel loops around it, and its grid has 1"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_product_is_refused(name: str) -> None:
    text, why = REFUSED[name]
    with pytest.raises(LooptuneError, match=why):
        kernel_cases.planned(text, (SMALL,))


def test_other_directives_and_targets_are_refused(tmp_path: Path) -> None:
    """Each with what to leave out."""
    for line, why in (("loop k: stage A", "leave out stage"), ("loop k: tile 8", "leave out what unrolls or tiles it")):
        with pytest.raises(DirectiveError, match=why):
            kernel_cases.planned(GEMM, (SMALL, line))
    with pytest.raises(IllegalTransform, match="--no-reassociate"):
        schedule(Analysis(load(GEMM).codelet, reassociate=False), parse_lines((SMALL,)))
    done = schedule(Analysis(load(GEMM).codelet), parse_lines((SMALL,))).codelet
    for target, blocks, why in (("numba-cpu", False, "leave it out for this target"),
                                ("opencl", True, "which opencl cannot use")):  # fmt: skip
        with pytest.raises(LooptuneError, match=why):
            targets.emit(target, lower(done, blocks=blocks), tmp_path)
    off = finish(lower(done, blocks=True), Machine(blocks=True, contract="off"))
    with pytest.raises(ResourceError, match="products are not contracted"):
        check_limits(off)


def test_more_shared_memory_than_a_kernel_declares() -> None:
    """Is asked for by the launch, up to what the device has."""
    large = "loop k: tensor, block 128x128, warp 64x32, stages {}"
    plans = [kernel_cases.planned(GEMM, (large.format(stages),)) for stages in (2, 4, 7)]
    asked = [dynamic_shared_bytes(plan.kernels[0]) for plan in plans]
    assert asked == [128 * 130 * 8, 4 * (128 * 20 + 16 * 132) * 8, 7 * (128 * 20 + 16 * 132) * 8]
    with pytest.raises(ResourceError, match=f"needs {asked[2]} bytes of shared memory per block, the limit is 232448"):
        check_limits(finish(plans[2], Machine(blocks=True)))
    assert [dynamic_shared_bytes(kernel_cases.planned(text, (SMALL, *more)).kernels[0]) for text, more in
            ((UPDATE, ()), (CORR, ("loop i: gridify(i, j)",)))] == [0, 0]  # fmt: skip


def test_a_step_is_loaded_ahead_where_registers_suffice() -> None:
    """Two steps of a strip take turns; one alone does not, nor what the compiler has no registers for."""

    def ahead(line: str, *more: str) -> bool:
        kernel = kernel_cases.planned(GEMM, (f"loop k: tensor, {line}", *more)).kernels[0]
        assert kernel.warp_tiles is not None
        return loads_ahead(kernel, kernel.warp_tiles)

    assert ahead("block 64x64, warp 32x32")
    assert not ahead("block 64x64, warp 32x32, shape 16x8x16")
    assert ahead("block 128x128, warp 64x32, shape 16x8x4")
    assert not ahead("block 128x128, warp 64x32")
    assert not ahead("block 64x64, warp 32x32", "codelet: launchbounds 4")
    assert not ahead("block 64x64, warp 32x32", "codelet: maxregs 128")


def test_what_an_element_changes_is_read_ahead() -> None:
    """If its other iterations do not access it, and they change it in any case."""

    def kept(text: str, *more: str) -> tuple[str, ...]:
        tiles = kernel_cases.planned(text, (SMALL, *more)).kernels[0].warp_tiles
        assert tiles is not None
        return tuple(load.array for load in tiles.updated)

    assert kept(GEMM) == ("C",)
    assert kept(LOCAL) == ("C",)
    assert kept(LOCAL.replace("s + C[i][j] * alpha", "s")) == ()
    assert kept(GEMM.replace("C[i][j] *= 3;", "C[i][j] *= 3; if (A[i][0] > 0)").replace("*= 3; if", "= 3; if")) == ()


def test_half_a_warp_reads_from_different_banks() -> None:
    """Four rows at four places each, 8 bytes apart or a pitch: 16 banks of 8 bytes; of floats a warp, from 32 of 4."""
    for case in CASES.values():
        tiles = kernel_cases.planned(case.text, case.lines).kernels[0].warp_tiles
        assert tiles is not None
        for o in tiles.operands:
            groups, count = (8, 32) if tiles.dtype == "float32" else (4, 16)
            banks = {(g * o.side_stride + q * o.step_stride) % count for g, q in product(range(groups), range(4))}
            assert len(banks) == count
