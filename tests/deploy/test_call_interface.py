"""How kernels are called and shown in Python: arrays of other libraries, keywords, a signature, notebooks."""

from __future__ import annotations

import array
import ctypes
import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import looptune
from looptune.core.errors import UsageError
from looptune.deploy import autotune, host_arrays
from looptune.deploy.compile import CompiledKernel
from looptune.deploy.runtime.arguments import Parameter, elements_overlap, on_host
from looptune.frontend import load
from looptune.tune.execution.lab import Progress
from tests.helpers import built_modules, report_database, synthetic_database

TEXT = """
void scale(int n, double a, const float *x, float *y)
{
    for (int i = 0; i < n; i++)
        y[i] = a * x[2 * i + 1];
}
"""


@pytest.fixture(scope="module")
def kernel() -> CompiledKernel:
    return looptune.compile(TEXT, target="numba-cpu", directives=["loop i: unroll 2"])


class Tensor:
    """An array of another library in the host's memory, or on a device, with DLPack."""

    def __init__(self, data: np.ndarray, device: int = 1, error: str = "") -> None:
        self.data, self.device, self.error, self.shape = data, device, error, data.shape

    def __dlpack_device__(self) -> tuple[int, int]:
        if self.device == 0:
            raise ValueError("unknown device")
        return self.device, 0

    def __dlpack__(self, **options: Any) -> Any:
        if self.error:
            raise BufferError(self.error)
        return self.data.__dlpack__(**options)

    def item(self) -> Any:
        return self.data.item()


class Device:
    """An array in the memory of a GPU."""

    def __init__(self) -> None:
        self.__cuda_array_interface__ = {"shape": (20,), "typestr": "<f4", "data": (0, False), "version": 3}


X = np.arange(20, dtype=np.float32)


@pytest.mark.parametrize(
    "make",
    [
        lambda: (array.array("f", X), np.zeros(10, np.float32)),
        lambda: (memoryview(X), memoryview(bytearray(40)).cast("f")),
        lambda: (X, (ctypes.c_float * 10)()),
        lambda: (Tensor(X), Tensor(np.zeros(10, np.float32))),
        lambda: (Tensor(X), np.zeros(10, np.float32)),
        lambda: (Tensor(X, device=3), np.zeros((1, 10), np.float32).view(np.matrix)),
    ],
    ids=["array", "memoryview", "ctypes", "DLPack", "mixed", "pinned"],
)
def test_arrays_of_other_libraries_are_updated_in_place(kernel: CompiledKernel, make: Any) -> None:
    """Without a copy: what the kernel writes is in the caller's memory."""
    x, y = make()
    kernel(10, 2.0, x, y)
    held = y.data if isinstance(y, Tensor) else np.asarray(y).reshape(-1)
    assert held.tolist() == (2 * X[1::2]).tolist()


def test_other_libraries_get_the_same_checks(kernel: CompiledKernel) -> None:
    """Type, extent, overlap and what cannot be written, with the parameter's name, given and needed."""
    y = np.zeros(10, np.float32)
    cases: tuple[tuple[Any, Any, str], ...] = (
        (memoryview(X), X[:10], "y, which is written, overlaps x"),
        (Tensor(X), X[10:], "y, which is written, overlaps x"),
        (memoryview(X[:19]), y, "x is too short: it has 19 elements, and at these sizes the loops access element 19"),
        (array.array("d", X), y, "x must be an array of float32, got float64"),
        (X, bytes(40), "y must be an array of float32, got uint8"),
        (X, memoryview(bytes(40)).cast("f"), "y is written, but the array given is read-only"),
        (Tensor(X, device=2), y, "x must be an array, got Tensor: it is not in the host's memory, copy it there"),
        (Device(), y, "x must be an array, got Device: it is not in the host's memory"),
        (Tensor(X, device=0), y, "x: .*Tensor does not share its memory: unknown device"),
        (X, np.broadcast_to(y[:1], 10), "y is written, but the array given is read-only"),
        (X, overlapping((10,), (0,)), "y is written, but elements of the array given share memory: pass a copy"),
        (Tensor(X, error="it requires a gradient"), y, "x: .*Tensor does not share its memory: it requires a gradient"),
        (object(), y, "x must be an array, got object"),
    )
    for x, written, message in cases:
        with pytest.raises(UsageError, match=message):
            kernel(10, 2.0, x, written)
    assert y.tolist() == [0.0] * 10


def test_built_modules_check_the_same() -> None:
    """A matrix is an array with the rank that is declared, and elements that are one are not written."""
    p, y = Parameter("y", "float32", array=True, written=True), np.zeros(10, np.float32)
    taken = on_host(p, y.reshape(1, 10).view(np.matrix), (10,))
    assert type(taken) is np.ndarray
    assert np.shares_memory(taken, y)
    one = np.lib.stride_tricks.as_strided(y, (10,), (0,))
    with pytest.raises(ValueError, match="y is written, but elements of the array given share memory: pass a copy"):
        on_host(p, one, (10,))
    assert on_host(p._replace(written=False), one, (10,)) is one


def overlapping(shape: tuple[int, ...], strides: tuple[int, ...]) -> np.ndarray:
    """Return a view of nine floats whose elements may share memory."""
    return np.lib.stride_tricks.as_strided(np.zeros(9, np.float32), shape, strides)


def test_elements_share_memory_only_where_there_are_some() -> None:
    """Arrays without elements have strides of 0; slices and transposes have none in common, windows have."""
    a = np.zeros((4, 5, 6), np.float32)
    apart = (a, a.T, a[::2, 1:, ::-3], np.zeros((0, 3)).copy(), np.zeros((3, 0)), a[2:2], a[:1, :, :1], np.zeros(()))
    assert not any(map(elements_overlap, apart))
    shared = (overlapping((9,), (0,)), overlapping((3, 3), (4, 4)), overlapping((3, 9), (0, 4)))
    assert all(map(elements_overlap, shared))
    assert not elements_overlap(overlapping((0, 3), (0, 0)))


EMPTY = """
void add(int n, int m, float y[n][3], const float x[n][3], float *z, const float *w, float **a, float **b)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < 3; j++)
            y[i][j] += x[i][j];
    for (int i = 0; i < n; i++)
        z[i] += w[i];
    for (int i = 0; i < n; i++)
        for (int j = 0; j < m; j++)
            a[i][j] += b[i][j];
}
"""


@pytest.mark.filterwarnings("ignore:add. nothing was tuned")
def test_arrays_without_elements_are_arguments(tmp_path: Path) -> None:
    """Copies, slices inside another array, transposes, views that cannot be written and lists of rows, however made."""
    built = built_modules.imported(built_modules.written(tmp_path, EMPTY, None, "numba-cpu", default=True))
    for function in (looptune.compile(EMPTY, target="numba-cpu"), built.add):
        whole = np.ones((4, 3), np.float32)
        for y, x in (
            (whole[2:2], whole[:0]),
            (whole[:0].copy(), whole[:0].copy()),
            (np.zeros((3, 0), np.float32).T, np.broadcast_to(whole[:1][:0], (0, 3))),
        ):
            for a, b in (([], []), (np.zeros((0, 5), np.float32), [])):
                function(0, 5, y, x, whole[3, 1:1], whole[3], a, b)
        none = np.zeros(0, np.float32)
        function(1, 0, whole[:1], whole[1:2], whole[2], whole[3], [none], [none])
        assert whole.tolist() == [[2.0] * 3, [1.0] * 3, [2.0, 1.0, 1.0], [1.0] * 3]
        with pytest.raises((UsageError, ValueError), match="a is written, but elements of a row share memory"):
            function(1, 3, whole[:1], whole[1:2], whole[2], whole[3], [overlapping((3,), (0,))], [whole[1]])


def test_torch_tensors_are_updated_in_place(kernel: CompiledKernel) -> None:
    """A tensor of the host, and a size that is a tensor; one that needs a gradient is refused."""
    torch = pytest.importorskip("torch")
    x, y = torch.arange(20, dtype=torch.float32), torch.zeros(10)
    kernel(torch.tensor(10), 2.0, x, y)
    assert y.tolist() == (2 * X[1::2]).tolist()
    with pytest.raises(UsageError, match="does not share its memory"):
        kernel(10, 2.0, x.requires_grad_(), y)


def test_a_read_only_view_of_an_old_numpy_is_not_taken_for_the_array() -> None:
    """NumPy before 2.1 made all arrays of DLPack read-only: the same memory is taken through NumPy's own interface."""
    data = np.zeros(3)
    fixed = data.view()
    fixed.flags.writeable = False
    assert host_arrays._by_interface(data, fixed) is data
    assert host_arrays._by_interface(data.copy(), fixed) is fixed


def test_parameters_have_names(kernel: CompiledKernel) -> None:
    """By name, by position, or both; a mistake names the parameters. Tools see the signature."""
    y = np.zeros(10, np.float32)
    kernel(10, y=y, x=X, a=Tensor(np.array(2.0)))
    assert y[1] == 6.0
    assert str(inspect.signature(kernel)) == "(n: int, a: float, x: 'float32 array', y: 'float32 array') -> None"
    for args, named, message in (
        ((10,), {}, r"takes 4 arguments \(n, a, x, y\), got 1: a, x, y missing"),
        ((10, 2.0, X, y), {"y": y}, "y was given twice"),
        ((10, 2.0, X), {"z": y}, "z is none of them"),
        ((10, 2.0, X, y, y), {}, "got 5"),
    ):
        with pytest.raises(UsageError, match=message):
            kernel(*args, **named)  # type: ignore[arg-type]


def test_a_kernel_shows_itself_in_one_line_and_in_a_notebook(kernel: CompiledKernel, tmp_path: Path) -> None:
    """Directives, the C that it computes, and the speed-up where finals were measured."""
    assert repr(kernel) == "<kernel scale(n, a, x, y) for numba-cpu, 1 directive>"
    shown = kernel._repr_html_()
    assert "loop i: unroll 2" in shown
    assert "i &lt; n / 2" in shown
    unit = load(TEXT)
    db = synthetic_database.keep(
        tmp_path / "db", synthetic_database.this_cpu(unit, {"n": 30}), {"": 9.0, "loop i: unroll 4": 5.0}
    )
    best = looptune.compile(TEXT, target="numba-cpu", config="best", db=db, defines={"n": 30})
    assert repr(best) == "<kernel scale(n, a, x, y) for numba-cpu, 1 directive>"
    shown = best._repr_html_()
    assert "1.8x over the default" in shown
    assert "loop i: unroll 4" in shown
    assert "4 * i + 3" in shown


def test_a_tuned_function_shows_progress_and_what_it_ran(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its name, text and signature are the function's; ``match`` is that of the last call."""
    (tmp_path / "scale.c").write_text(TEXT)
    synthetic_database.keep(
        tmp_path / "db", synthetic_database.this_cpu(load(tmp_path / "scale.c"), {"n": 10}),
        {"": 9.0, "loop i: unroll 2": 5.0},
    )  # fmt: skip

    @looptune.autotune(tmp_path / "scale.c", db=tmp_path / "db", target="numba-cpu", progress=True)
    def scale(n, a, x, y):  # type: ignore[no-untyped-def]
        """Every other element."""

    assert (scale.__name__, scale.__doc__, scale.match) == ("scale", "Every other element.", None)
    assert repr(scale) == "<tuned function scale, not called yet>"
    assert str(inspect.signature(scale)) == "(n, a, x, y)"
    y = np.zeros(10, np.float32)
    scale(10, 2.0, x=X, y=y)
    assert y[1] == 6.0
    assert scale.match is not None
    assert scale.match.level == "exact"
    assert "kernel scale(n, a, x, y) for numba-cpu, 1 directive" in repr(scale)
    assert "loop i: unroll 2" in scale._repr_html_()
    row = report_database.one(report_database.database(tmp_path / "other")).rows[0]
    lines = autotune._ProgressLines("scale")
    for done in (1, 2, 3):
        lines(Progress(done, 3, 0, {}, row, row, 1.0, 4.0))
    assert capsys.readouterr().err.splitlines() == [
        "looptune tunes scale: 1/3 versions, best 100 us, 4 s left", "looptune tunes scale: 3/3 versions, best 100 us",
    ]  # fmt: skip
