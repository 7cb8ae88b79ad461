"""``looptune.compile``: what C means, on every target, and what is said of arguments that do not fit."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import looptune
from looptune.backends.codegen.python import ident
from looptune.core.errors import LooptuneError, TargetError, UsageError
from looptune.ir.nodes import Expr, Load
from looptune.ir.rewrite import walk
from looptune.lower.pipeline import lower
from looptune.runtime import targets
from looptune.runtime.targets import CACHE
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from tests import programs
from tests.helpers import cross_check
from tests.programs.program import Program

pytestmark = pytest.mark.sampled(4)

ids = pytest.mark.parametrize("program", programs.ALL, ids=lambda p: p.name.replace(" ", "-"))
cuda = pytest.mark.skipif(not cross_check.CUDA, reason="needs the package numba-cuda")


@pytest.mark.sampled(3, "wide")
@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
@ids
def test_the_interpreter_means_what_gcc_means(program: Program, tmp_path: Path) -> None:
    """The reference agrees with the C compiler: to the bit, math functions to the last few."""
    codelet = cross_check.codelet_of(program.text)
    given = cross_check.arguments(codelet, program.sizes)
    compiled = cross_check.by_gcc(program.text, codelet, given, tmp_path)
    inexact = 1e-14 if "math.h" in program.text and program.tolerance else 0.0
    assert cross_check.off(compiled, cross_check.interpreted(codelet, given), inexact) is None


@pytest.mark.sampled(28, "wide")
@ids
def test_a_kernel_computes_what_c_means(program: Program) -> None:
    """The compiled CPU kernel, called with C's parameters in C's order, leaves the interpreter's results."""
    kernel = looptune.compile(program.text, target="numba-cpu")
    given = cross_check.arguments(kernel.codelet, program.sizes)
    got = cross_check.copied(given)
    kernel(*got.values())
    off = cross_check.off(cross_check.interpreted(kernel.codelet, given), cross_check.arrays(got), program.tolerance)
    assert off is None, f"{off}\n{kernel.source}"


@pytest.mark.sampled(7, "wide")
@cuda
@ids
def test_every_kernel_compiles_for_a_gpu(program: Program) -> None:
    """PTX and cubin without a GPU; registers spill only where a math function needs a table, or data are subscripts of
    a thread's own array."""
    planned = lower(schedule(Analysis(cross_check.codelet_of(program.text))).codelet)
    binary = targets.backend("numba-cuda", CACHE).build(planned)
    assert set(binary.objects) == {k.name for k in planned.kernels}
    loads = [n for k in planned.kernels for n in walk(k.body) if isinstance(n, Load)]
    local = {v.name for k in planned.kernels for v in k.locals}
    if "math.h" not in program.text and not any(n.array in local and has_load(n.index) for n in loads):
        assert [r for r in binary.resources if r.local_bytes] == []


def has_load(index: tuple[Expr, ...]) -> bool:
    return any(isinstance(n, Load) for n in walk(index))


@pytest.mark.wide
@cuda
@pytest.mark.simulator
def test_emitted_kernels_compute_what_c_means(tmp_path: Path) -> None:
    """Every program's CUDA module, run by the simulator, leaves the interpreter's results."""
    batch, want = [], {}
    for program in programs.ALL:
        codelet = cross_check.codelet_of(program.text)
        given = cross_check.arguments(codelet, program.sizes)
        source = targets.backend("numba-cuda", CACHE).emit(lower(schedule(Analysis(codelet)).codelet))
        batch.append(cross_check.Emitted(program.name, source, ident(codelet.name), given))
        want[program.name] = cross_check.interpreted(codelet, given)
    results = cross_check.simulated(batch, tmp_path)
    wrong = {}
    for program in programs.ALL:
        result = results[program.name]
        off = result if isinstance(result, str) else cross_check.off(want[program.name], result, program.tolerance)
        if off is not None:
            wrong[program.name] = off
    assert not wrong


# -- arguments ------------------------------------------------------------------------------------

AXPY = "void axpy(int n, float a, float x[n], float y[n])\n{ for (int i = 0; i < n; i++) y[i] += a * x[i]; }\n"
MATRIX = """
void scale(int n, int m, double s, double A[n][m], double *out)
{ for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) A[i][j] *= s; out[0] = A[n - 1][m - 1]; }
"""


@pytest.fixture(scope="module")
def axpy() -> looptune.Kernel:
    return looptune.compile(AXPY, target="numba-cpu")


@pytest.fixture(scope="module")
def scale() -> looptune.Kernel:
    return looptune.compile(MATRIX, target="numba-cpu")


def test_arrays_are_updated_in_place(axpy: looptune.Kernel) -> None:
    """The caller's own array holds the result, and an input is left alone."""
    x, y = np.arange(5, dtype=np.float32), np.ones(5, np.float32)
    same = y
    assert axpy(5, 2, x, y) is None
    assert same.tolist() == [1, 3, 5, 7, 9]
    assert x.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("view", ["transposed", "strided", "reversed", "fortran"])
def test_arrays_with_gaps_are_updated_too(scale: looptune.Kernel, view: str) -> None:
    """A view of any layout gets the result in its own elements, and nothing around it is touched."""
    whole = np.arange(60, dtype=np.float64).reshape(6, 10)
    before = whole.copy()
    a = {"transposed": whole.T, "strided": whole[::2, 1:8:3], "reversed": whole[::-1, ::-1], "fortran": whole}[view]
    if view == "fortran":
        a = np.asfortranarray(whole)
    mask = np.zeros_like(whole, bool)
    {"transposed": mask.T, "strided": mask[::2, 1:8:3], "reversed": mask, "fortran": mask}[view][...] = True
    out = np.zeros(1)
    expected = a * 3
    scale(*a.shape, 3.0, a, out)
    assert (a == expected).all()
    assert out[0] == expected[-1, -1]
    assert (whole[~mask] == before[~mask]).all()


def test_a_one_dimensional_parameter_takes_any_array_of_its_size(axpy: looptune.Kernel) -> None:
    """C sees memory, not a shape: a 2 x 3 array is six floats, in row-major order whatever its layout."""
    x, y = np.arange(6, dtype=np.float32).reshape(2, 3), np.zeros((3, 2), np.float32).T
    axpy(6, 1, x, y)
    assert (x == y).all()


def test_a_written_array_overlaps_no_other(axpy: looptune.Kernel) -> None:
    """A mistake; arrays that lie between each other's elements, or next to each other, are apart."""
    whole = np.arange(12, dtype=np.float32)
    with pytest.raises(UsageError, match="y, which is written, overlaps x: pass a copy of one of them"):
        axpy(6, 1, whole[:6], whole[5:11])
    axpy(6, 1, whole[:6], whole[6:])
    assert whole.tolist() == [0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16]
    axpy(6, 1, whole[::2], whole[1::2])
    assert whole.tolist() == [0, 1, 2, 5, 4, 9, 6, 14, 10, 22, 14, 30]
    axpy(0, 1, whole[:0], whole[:0])


def test_an_input_may_be_read_only(axpy: looptune.Kernel) -> None:
    """An array that is only read needs no right to write."""
    x, y = np.ones(3, np.float32), np.zeros(3, np.float32)
    x.setflags(write=False)
    axpy(3, 2.0, x, y)
    assert y.tolist() == [2, 2, 2]


def test_empty_arrays(axpy: looptune.Kernel) -> None:
    """No iterations, no work, no error."""
    y = np.zeros(0, np.float32)
    axpy(0, 1.0, np.zeros(0, np.float32), y)
    assert y.size == 0


def test_numpy_scalars_and_zero_dimensional_arrays_are_numbers(axpy: looptune.Kernel) -> None:
    """A scalar may be a Python number, a NumPy scalar or an array without dimensions."""
    y = np.zeros(3, np.float32)
    for n, a in ((np.int64(3), np.float64(1)), (np.array(3), np.array(1.0)), (True + 2, True), (3.0, 1)):
        axpy(n, a, np.ones(3, np.float32), y)
    assert y.tolist() == [4, 4, 4]


GOOD = {"n": 3, "a": 1.0, "x": np.ones(3, np.float32), "y": np.ones(3, np.float32)}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"x": np.ones(3)}, "x must be an array of float32, got float64"),
        ({"y": np.ones(3, np.int32)}, "y must be an array of float32, got int32"),
        ({"y": np.ones(4, np.float32)}, "y must have the shape [3], got [4]"),
        ({"y": np.ones((2, 2), np.float32)}, "y must have the shape [3], got [2, 2]"),
        ({"x": [1.0, 2.0, 3.0]}, "x must be an array, got list"),
        ({"x": 1.0}, "x must be an array, got float"),
        ({"n": 2.5}, "n is an integer, got 2.5"),
        ({"n": float("nan")}, "n is an integer, got nan"),
        ({"n": float("inf")}, "n is an integer, got inf"),
        ({"n": "three"}, "n is a number, got str"),
        ({"a": None}, "a is a number, got NoneType"),
        ({"a": 1j}, "a is a number, got complex"),
        ({"a": np.ones(3, np.float32)}, "a is a scalar, got an array"),
        ({"n": 2**40}, "n has the type int32, which 1099511627776 does not fit"),
        ({"n": -1}, "x must have the shape [-1], got [3]"),
    ],
    ids=lambda v: next(iter(v)) if isinstance(v, dict) else v,
)
def test_arguments_that_do_not_fit(axpy: looptune.Kernel, wrong: dict[str, object], message: str) -> None:
    """One line that names the parameter, what it wants and what it got."""
    with pytest.raises(UsageError) as refused:
        axpy(*({**GOOD, **wrong}).values())
    assert str(refused.value) == message


def test_a_read_only_output_is_refused(axpy: looptune.Kernel) -> None:
    """An array that is written must be writable."""
    y = np.ones(3, np.float32)
    y.setflags(write=False)
    with pytest.raises(UsageError, match=r"^y is written, but the array given is read-only$"):
        axpy(3, 1.0, np.ones(3, np.float32), y)


@pytest.mark.parametrize("count", [0, 3, 5])
def test_the_number_of_arguments(axpy: looptune.Kernel, count: int) -> None:
    """Too few or too many: the message lists the parameters."""
    missing = ", ".join(("n", "a", "x", "y")[count:])
    said = rf"^axpy takes 4 arguments \(n, a, x, y\), got {count}{f': {missing} missing' if missing else ''}$"
    with pytest.raises(UsageError, match=said):
        axpy(*([1] * count))


def test_the_rank_of_an_array(scale: looptune.Kernel) -> None:
    """A matrix parameter takes a matrix."""
    with pytest.raises(UsageError, match=r"^A must have the shape \[2\]\[3\], got \[6\]$"):
        scale(2, 3, 1.0, np.ones(6), np.ones(1))


# -- options --------------------------------------------------------------------------------------


def test_a_path_and_a_text_are_the_same(tmp_path: Path) -> None:
    """A file, its path as a string, and its text give one kernel."""
    path = tmp_path / "axpy.c"
    path.write_text(AXPY)
    sources = {looptune.compile(given, target="numba-cpu").source for given in (path, str(path), AXPY)}
    assert len(sources) == 1


def test_dtype_replaces_the_floating_point_type() -> None:
    """dtype="float64" makes the parameters double."""
    kernel = looptune.compile(AXPY, target="numba-cpu", dtype="float64")
    y = np.zeros(2)
    kernel(2, 0.1, np.ones(2), y)
    assert y.tolist() == [0.1, 0.1]


@pytest.mark.wide
def test_defines_and_kernel_choose(tmp_path: Path) -> None:
    """Macros are given as values of any type; ``kernel`` names one of several functions."""
    text = """
#ifdef TWICE
#define K 2
#endif
void one(int n, double x[n]) { for (int i = 0; i < n; i++) x[i] = 1; }
void two(int n, double x[n]) { for (int i = 0; i < n; i++) x[i] = K * S; }
"""
    kernel = looptune.compile(text, kernel="two", target="numba-cpu", defines={"TWICE": None, "S": 1.5})
    x = np.zeros(2)
    kernel(2, x)
    assert x.tolist() == [3, 3]
    with pytest.raises(LooptuneError, match=r"one.*two"):
        looptune.compile(text, target="numba-cpu", defines={"K": 1, "S": 1})


@pytest.mark.parametrize("directives", ["loop i: unroll 4\n# said\n", ["loop i: unroll 4"], ("loop 1: tile i:3",)])
def test_directives_are_applied(directives: str | list[str]) -> None:
    """Text or lines, by name or by number; the kernel says what was applied and computes the same."""
    kernel = looptune.compile(AXPY, target="numba-cpu", directives=directives)
    y = np.zeros(11, np.float32)
    kernel(11, 2.0, np.arange(11, dtype=np.float32), y)
    assert (y == 2 * np.arange(11)).all()
    assert kernel.source != looptune.compile(AXPY, target="numba-cpu").source
    assert "unroll 4" in kernel.directives or "tile" in kernel.directives


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "gpu"}, "unknown target 'gpu': choose one of auto, numba-cuda, cuda-c, numba-cpu, opencl"),
        ({"dtype": "half"}, "invalid dtype half"),
        ({"kernel": "saxpy"}, "saxpy"),
        ({"directives": "loop q: unroll 2"}, "no loop q in axpy; its loops are i (1)"),
        ({"directives": "loop i: unrol 2"}, "unknown directive 'unrol'; did you mean 'unroll'?"),
        ({"directives": "unroll 2"}, "expected `loop NAME"),
        ({"include_dirs": ["/nowhere"]}, "no such folder: /nowhere"),
    ],
    ids=lambda v: next(iter(v.items()))[0] if isinstance(v, dict) else "",
)
def test_options_that_do_not_fit(options: dict[str, object], message: str) -> None:
    """A LooptuneError on one line, for every option."""
    with pytest.raises(LooptuneError) as refused:
        looptune.compile(AXPY, **{"target": "numba-cpu", **options})
    assert message in refused.value.message
    assert "\n" not in refused.value.message


def test_a_gpu_that_is_not_there() -> None:
    """Asking for the GPU says what is missing, and "auto" falls back to the CPU."""
    if not targets.gpu_missing():
        pytest.skip("there is a GPU")
    with pytest.raises(TargetError, match=r"^the target numba-cuda needs an NVIDIA GPU: "):
        looptune.compile(AXPY, target="numba-cuda")
    assert looptune.compile(AXPY).target == "numba-cpu"
