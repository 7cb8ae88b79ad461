"""CUDA C: what is emitted is what nvcc and NVRTC compile, for every kernel's space, for tiles, teams and parts.

What it computes is shown by the same text in the other dialect, on PoCL, and on a GPU in ``test_gpu``.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from looptune.backends.codegen.c import CWriter, close_braces
from looptune.backends.cuda.cuda_c_writer import CudaCWriter, file_text, kernel_text
from looptune.core.errors import LooptuneError
from looptune.frontend import load
from looptune.ir.nodes import Binary, Cast, Const, Expr, Load, Scalar, Select, Unary, Var
from looptune.ir.specialize import specialize
from looptune.lower.addresses import make_address
from looptune.lower.machine import Machine
from looptune.lower.pipeline import finish, lower
from looptune.lower.plan import Plan
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from looptune.tune.space.space import parse
from tests import programs
from tests.helpers import cross_check, expand_cases, reduction_cases, stage_cases
from tests.helpers.paths import POLYBENCH, ROOT
from tests.helpers.python_nests import nest

GPU = Machine(blocks=True)
KERNELS = sorted(path.stem for path in POLYBENCH.glob("*.c"))
cuda = pytest.mark.skipif(not cross_check.CUDA, reason="needs the package numba-cuda")
SPREAD = 1
"""Of each kernel's space."""


def spread(kernel: str) -> Iterator[Plan]:
    """The default and versions from all over the space, for any sizes and for given ones in turn."""
    codelet = load(POLYBENCH / f"{kernel}.c").codelet
    analysis = Analysis(codelet)
    space = list(parse((ROOT / "pragmas" / f"{kernel}.pragmas").read_text(), f"{kernel}.pragmas").on("gpu"))
    sizes = {p.name: 64 for p in codelet.params if isinstance(p, Scalar) and "int" in p.dtype}
    yield lower(schedule(analysis).codelet, blocks=True)
    for number, configuration in enumerate(space[:: -(-len(space) // SPREAD)]):
        try:
            done = schedule(analysis, parse_lines(configuration.lines)).codelet
        except LooptuneError:
            continue
        yield lower(specialize(done, sizes) if number % 2 == 0 else done, configuration.text, blocks=True)


@pytest.mark.wide
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
def test_nvcc_compiles_what_is_emitted(tmp_path: Path) -> None:
    """Kernels' defaults, teams, parts, tiles filled ahead and copies of variables: one file each, without a warning."""
    plans = [next(spread(kernel)) for kernel in KERNELS[::2]]
    plans += [stage_cases.planned(stage_cases.CASES[name]) for name in ("the next one ahead", "parts")]
    plans += [reduction_cases.planned(case.text, *case.lines) for case in list(reduction_cases.CASES.values())[::8]]
    plans += [expand_cases.planned(name) for name in ("doitgen r q", "adi t", "data")]
    names = [f"p{number}" for number in range(len(plans))]
    for name, made in zip(names, plans, strict=True):
        text = file_text(finish(made, GPU)).replace('extern "C" ', "").replace("#include <cuda_runtime.h>\n", "")
        (tmp_path / f"{name}.cu").write_text(text)
    # Together, for it takes nvcc a second to begin; in namespaces, for helpers are in several.
    whole = "".join(f'namespace {name} {{\n#include "{name}.cu"\n}}\n' for name in names)
    (tmp_path / "whole.cu").write_text(f"#include <cuda_runtime.h>\n{whole}")
    command = ["nvcc", "-c", "-arch=sm_90", "-Werror", "all-warnings", "-O0", "-Xptxas", "-O0", "whole.cu"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.sampled(9, "wide")
@pytest.mark.sampled(2)
@cuda
@pytest.mark.parametrize("kernel", KERNELS)
def test_every_space_becomes_machine_code(kernel: str) -> None:
    """Versions from all over a kernel's space, with registers counted and at most what a block may have."""
    from looptune.backends.cuda.cuda_c import CudaC as Backend

    for made in spread(kernel):
        built = Backend("sm_90").build(made)
        assert built.objects.keys() == {k.name for k in made.kernels}
        for used in built.resources:
            assert 0 < used.registers <= 255
            assert used.registers * used.threads <= 65536, "a block's registers are what an SM has at most"


@cuda
def test_a_kernel_is_compiled_once(tmp_path: Path) -> None:
    """Unrolling one of two loops compiles one kernel more; the same again compiles nothing."""
    from looptune.backends.cuda.cuda_c import CudaC as Backend

    text = """
void two(int n, float x[n], float y[n]) {
  for (int i = 0; i < n; i++) x[i] = 2 * y[i];
  for (int j = 0; j < n; j++) y[j] = x[n - 1 - j];
}
"""
    for lines, count in (((), 2), (("loop j: unroll 2, guarded",), 3), ((), 3)):
        made = lower(schedule(Analysis(load(text).codelet), parse_lines(lines)).codelet)
        Backend(cache=tmp_path).build(made)
        assert len(list(tmp_path.glob("*.cubin"))) == count


@cuda
def test_parameters_are_pointers_and_scalars() -> None:
    """In memory as a launch takes them: the address of each array, then each scalar in its own type."""
    from looptune.backends.cuda.launch import ArgumentSlot, LoadedKernel, ParameterBlock
    from looptune.backends.cuda.program import parameter_types

    made = lower(schedule(Analysis(load(POLYBENCH / "gemm.c").codelet)).codelet)
    (kernel,) = made.kernels
    loaded = LoadedKernel(kernel.name, None, parameter_types(made, kernel))
    order = {"alpha": ArgumentSlot(0), "beta": ArgumentSlot(1)}
    arrays = [ArgumentSlot(k) for k in range(len(kernel.arrays))]
    block = ParameterBlock(loaded, kernel.block, [*arrays, *(order.get(n, n) for n in kernel.scalars)], True)
    addresses = [4096 + 512 * k for k in range(len(kernel.arrays))]
    block.place(addresses, [64] * len(addresses))
    block.set_floats([1.5, -2.0])
    sizes = {"ni": 8, "nj": 9, "nk": 2**32 - 1}
    block.fill([sizes[name] for name in kernel.scalars if name in sizes])
    words = np.array(block.memory[:], np.int64)
    assert words[: len(kernel.arrays)].tolist() == addresses
    own = dict(zip(kernel.scalars, words[len(kernel.arrays) :], strict=True))
    assert {name: int(own[name]) for name in ("ni", "nj", "nk")} == sizes
    floats = [np.frombuffer(own[name].tobytes(), np.float32)[0] for name in ("alpha", "beta")]
    assert floats == [1.5, -2.0]


@cuda
def test_what_the_compiler_says_is_in_the_error() -> None:
    """Text that is no CUDA C is refused with the compiler's line."""
    from looptune.backends.cuda.cuda_c import CudaC as Backend

    with pytest.raises(RuntimeError, match=r'bad\.cu\(1\): error: identifier "y" is undefined'):
        Backend()._ptx("__global__ void f() { y = 1; }", "bad")


@pytest.mark.sampled(2)
@pytest.mark.sampled(6, "wide")
@pytest.mark.parametrize("program", programs.ALL, ids=lambda p: p.name.replace(" ", "-"))
def test_every_construct_has_a_spelling(program: programs.program.Program) -> None:
    """Control flow, all types, all functions: text with as many blocks opened as closed."""
    text = file_text(finish(lower(schedule(Analysis(load(program.text).codelet)).codelet), GPU))
    assert text.count("{") == text.count("}")
    assert "while" not in text or "while (" in text


def test_names_that_c_has_are_left_to_it() -> None:
    """Parameters called as CUDA's variables, types or functions get an underscore, and no two names become one."""
    text = """
void dim3(int n, float float4[n], float lane[n], float lane_[n], float threadIdx[n]) {
  for (int k = 0; k < n; k++) float4[k] = lane[k] + lane_[k] * sqrtf(threadIdx[k]);
}
"""
    found = file_text(finish(lower(schedule(Analysis(load(text).codelet)).codelet), GPU))
    assert "float4_[k] = lane_[k] + lane__[k] * sqrtf(threadIdx_[k]);" in found
    assert "cudaError_t dim3_(int n, float *float4_," in found


COUNT, N, X = Var("i"), Var("n"), Var("x", "float32")
SPELLED: dict[str, tuple[Expr, str]] = {
    "a counter as a float": (Cast("float32", Binary("+", COUNT, Const(1))), "(float)((int)i + 1)"),
    "a sum that may wrap": (Binary("+", Var("d"), Var("e")), "(int)((unsigned int)d + (unsigned int)e)"),
    "a product of 64 bits": (
        Binary("*", Var("d", "int64"), Const(3, "int64")),
        "(long long)((unsigned long long)d * (unsigned long long)3LL)",
    ),
    "a narrow sum": (Binary("+", Var("s", "uint8"), Var("t", "uint8")), "(unsigned char)(s + t)"),
    "the least int": (Const(-(2**31)), "(-2147483647 - 1)"),
    "a constant": (Const(0.1, "float32"), "0.1f"),
    "a double": (Const(0.1, "float64"), "0.1"),
    "signs in a row": (Unary("-", Unary("-", X)), "-(-x)"),
    "the less of two": (Binary("min", X, Const(0.5, "float32")), "min_float32(x, 0.5f)"),
    "a choice": (Select(Binary("<", X, Const(0.0, "float32")), Unary("-", X), X), "(x < 0.0f ? -x : x)"),
    "levels": (
        Binary("*", Binary("-", X, Binary("-", X, X)), Binary("/", X, Binary("*", X, X))),
        "(x - (x - x)) * (x / (x * x))",
    ),
}


@pytest.mark.parametrize(("e", "want"), SPELLED.values(), ids=SPELLED.keys())
def test_expressions(e: Expr, want: str) -> None:
    """Conversions are written out, and integers that C leaves undefined wrap."""
    assert writer().value(e) == want


def test_places_and_bounds() -> None:
    """Places are unsigned and 32 bits wide, but for the constant that is added; what may be negative has 64."""
    at = Binary("-", Binary("*", COUNT, N), Const(1))
    split = make_address(Binary("*", COUNT, N), (), -1)
    assert writer().element(Load("A", (split,), "float64")) == "A[(unsigned long long)(i * n) - 1u]"
    assert writer().bound(at) == "(long long)i * (long long)n - 1"
    assert writer().condition(Binary("<", COUNT, N)) == "i < n"
    assert writer().condition(Binary("<", at, N)) == "(long long)i * (long long)n - 1 < (long long)n"
    assert writer().unsigned_index(Binary("min", Binary("+", COUNT, Const(4)), N)) == "min_uint32(i + 4, n)"
    assert (
        writer().unsigned_index(Binary("min", at, N))
        == "(unsigned int)min_int64((long long)i * (long long)n - 1, (long long)n)"
    )


def test_blocks_end_where_their_indentation_does() -> None:
    """Empty blocks, blocks one after the other, and several that end at once."""
    lines = ["if (a) {", "if (b) {", "    {", "        x;", "    {", "else {", "y;"]
    assert list(close_braces(lines)) == ["if (a) {", "}", "if (b) {", "    {", "        x;", "    }", "    {", "    }",
                                   "} else {", "}", "y;"]  # fmt: skip


def test_tiles_are_filled_ahead_by_ptx() -> None:
    """Copies that bypass registers, a group an iteration, one barrier."""
    case = next(c for c in stage_cases.CASES.values() if any("buffers" in line for line in c.lines))
    made = finish(stage_cases.planned(case), Machine(blocks=True))
    text = kernel_text(made, made.kernels[0])
    assert "cp.async.commit_group" in text
    assert "cp.async.wait_group" in text


def writer() -> CWriter:
    """With a counter i and an extent n."""
    made = CudaCWriter(finish(lower(nest("for i in range(n): A[i] = 0", {"A": ("n",)})), GPU), {"n"})
    made.bind("i", True)
    return made


@cuda
def test_a_tile_of_time_steps_that_is_stored_where_it_was_loaded_compiles() -> None:
    """The last tile of an odd number of steps needs no second array, and its rows have one place in each array."""
    from looptune.backends.cuda.cuda_c import CudaC

    codelet = load(POLYBENCH / "c" / "jacobi-2d.c").codelet
    lines = parse_lines(["loop 1: overlap 2, rows 8", "codelet: grid blocksize 64x4"])
    made = lower(schedule(Analysis(codelet), lines).codelet, blocks=True)
    assert CudaC("sm_90").ptx(made).count(".entry") > 1
