"""``looptune build`` for a GPU, without one: in the simulator, as machine code, and on a driver that is made up."""

from __future__ import annotations

import ctypes
import importlib.util
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from looptune.deploy import build
from looptune.frontend import load
from looptune.ir.specialize import specialize
from looptune.lower.pipeline import lower
from looptune.runtime import targets
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from tests.helpers import cross_check, synthetic_database
from tests.helpers.built_modules import AXPY, ROWS, TUNED, cuda, imported, plain_ptx, run_alone, written
from tests.helpers.codelets import STEPS
from tests.helpers.paths import POLYBENCH


@pytest.mark.wide
@cuda
def test_a_module_in_the_simulator(tmp_path: Path) -> None:
    """Kernels with sizes as constants, for other sizes, and the default leave what NumPy computes, checked too."""
    unit = load(ROWS)
    db = synthetic_database.keep(
        tmp_path / "db", synthetic_database.context(unit, {"n": 12, "m": 20}), {"": 9.0, TUNED: 5.0}
    )
    written(tmp_path, ROWS, db)
    code = """
import rows_tuned as t, warnings
warnings.simplefilter("ignore")
for device in (t.Device("NVIDIA H200", 132, "sm_90"), t.Device("none", 1, "")):
    t.CALL.device = lambda: device
    for n, m in ((12, 20), (5, 7)):
        rng = np.random.default_rng(0)
        A, x, y = (rng.random(s, dtype=np.float32) for s in ((n, m), m, n))
        want = y + A @ x
        t.rows(n, m, A, y, x, check=True)
        assert np.allclose(y, want, rtol=1e-5)
        print(t.match(n, m).level, t.match(n, m).plan)
"""
    said = run_alone(tmp_path, code, NUMBA_ENABLE_CUDASIM="1")
    assert said.splitlines() == ["exact plan_1", "same device plan_2", "default plan_0", "default plan_0"]


JACOBI = """void f(int steps, int n, double A[n][n], double B[n][n]) {
  for (int t = 0; t < steps; t++) {
    for (int i = 1; i < n - 1; i++) for (int j = 1; j < n - 1; j++) B[i][j] = A[i - 1][j] + A[i][j + 1];
    for (int i = 1; i < n - 1; i++) for (int j = 1; j < n - 1; j++) A[i][j] = 0.5 * (B[i + 1][j] + B[i][j - 1]);
  }
}
"""


@pytest.mark.wide
@cuda
def test_tiles_of_several_steps_at_other_sizes(tmp_path: Path) -> None:
    """Blocks store into another array than they load from, at the sizes of the sweep and at others."""
    (tmp_path / "f.c").write_text(JACOBI)
    unit = load(tmp_path / "f.c")
    lines = "loop t: overlap 2, rows 4\ncodelet: grid blocksize 16x2"
    db = synthetic_database.keep(tmp_path / "db", synthetic_database.context(unit, {"steps": 3, "n": 20}), {lines: 5.0})
    (tmp_path / "m.py").write_text(build.as_python(unit, db, "numba-cuda", ""))
    code = """
import m as t, warnings, numpy as np
warnings.filterwarnings("ignore", "f: nothing was tuned")
t.CALL.device = lambda: t.Device("NVIDIA H200", 132, "sm_90")
for steps, n in ((3, 20), (3, 23), (4, 17)):
    rng = np.random.default_rng(0)
    t.f(steps, n, rng.random((n, n)), rng.random((n, n)), check=True)
    print(t.match(steps, n).plan)
"""
    assert run_alone(tmp_path, code, NUMBA_ENABLE_CUDASIM="1").split() == ["plan_1", "plan_2", "plan_2"]


@pytest.mark.wide
@cuda
@pytest.mark.parametrize("kernel", ["gemm", "gramschm", "3mm"])
def test_every_kernel_becomes_the_sweeps_machine_code(kernel: str, tmp_path: Path) -> None:
    """For sm_90, without a GPU: as many kernels as differ, each the PTX that the sweep's own backend makes of it."""
    unit = load(POLYBENCH / f"{kernel}.c", defines=dict.fromkeys(("ni", "nj", "nk", "nl", "nm", "m", "n"), 64))
    sizes = {n: 64 for n in unit.values if isinstance(unit.values[n], int)}
    lines = {"gramschm": "loop 4: distribute", "gemm": "loop i: unroll 2, jam\nloop k: rfactor 2"}.get(kernel, "")
    db = synthetic_database.keep(tmp_path / "db", synthetic_database.context(unit, unit.values), {lines: 5.0})
    path = tmp_path / "made.py"
    path.write_text(build.as_python(unit, db, "auto", ""))
    made = imported(path)
    done = schedule(Analysis(unit.codelet), parse_lines(lines.splitlines()), unit.values)
    planned = lower(specialize(done.codelet, sizes), blocks=True)
    theirs = [plain_ptx(text) for text in targets.ptx("numba-cuda", planned, "sm_90").split(".version")[1:]]
    assert len(set(theirs)) == (1 if kernel == "3mm" else len(planned.kernels))
    row = made.CONFIGURATIONS[0]
    users = {k: u.split(", ") for u, k in re.findall(r"# (.*)\n@.*\ndef (\w+)", path.read_text())}
    for k in (k for k in made.SIGNATURES if row["plan"] in users[k.__name__]):
        text = made.ptx(k, made.SIGNATURES[k], "sm_90")
        assert plain_ptx(text.partition(".version")[2]) in theirs, k.__name__
    for k, signature in made.SIGNATURES.items():
        code = made.cubin(k, signature, "sm_90")
        assert made.entry_of(code, k.__name__).encode() in code


RELAX = """void relax(int n, double a[n], double b[n], double tol, int passes[1]) {
  double err = 1; int k = 0;
  while (err > tol) {
    err = 0;
    for (int i = 1; i < n - 1; i++) b[i] = 0.5 * (a[i - 1] + a[i + 1]);
    for (int i = 1; i < n - 1; i++) { double d = b[i] > a[i] ? b[i] - a[i] : a[i] - b[i]; if (d > err) err = d; }
    for (int i = 1; i < n - 1; i++) a[i] = b[i];
    k++;
  }
  passes[0] = k;
}
"""


@pytest.mark.wide
@cuda
def test_data_decide_how_often_a_loop_runs_in_the_simulator(tmp_path: Path) -> None:
    written(tmp_path, RELAX, None, "numba-cuda", default=True)
    code = """
import relax_tuned as t
a, b, passes, k, err = np.arange(12.0) ** 2, np.zeros(12), np.zeros(1, np.int32), 0, 1.0
want = a.copy()
while err > 0.3:
    new = want.copy()
    new[1:-1] = 0.5 * (want[:-2] + want[2:])
    want, err, k = new, abs(new - want).max(), k + 1
t.relax(12, a, b, 0.3, passes)
assert (a == want).all() and passes[0] == k > 1, (a, want, passes, k)
"""
    run_alone(tmp_path, code, NUMBA_ENABLE_CUDASIM="1")


@cuda
@pytest.mark.filterwarnings("ignore:relax. nothing was tuned")
def test_data_decide_how_often_a_loop_runs_on_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A flag is read when the launches before it have been made; no graph takes them up."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    tools = importlib.import_module("tests.helpers.fake_cuda_driver")
    made = imported(written(tmp_path, RELAX, None, "numba-cuda", default=True))
    driver = tools.install(made)
    flags = iter([1, 1, 0, 0])
    read_after = []

    def read(target: int, source: int, nbytes: int, stream: int) -> tuple[object]:
        read_after.append(len(driver.launched))
        ctypes.c_int32.from_address(target).value = next(flags)
        return (tools.OK,)

    driver.cuMemcpyDtoHAsync = read
    given = [tools.DeviceArray((9,), dtype="float64", pointer=p) for p in (4096, 8192)]
    passes = tools.DeviceArray((1,), dtype="int32", pointer=16384)
    for _ in range(2):
        made.relax(9, *given, 0.3, passes)
    each = (read_after[2] - read_after[0]) // 2
    assert read_after == [1, 1 + each, 1 + 2 * each, 1 + 2 * each + 1 + 1]
    driver.streams_capture = 1
    with pytest.raises(ValueError, match="data decide how many launches it makes"):
        made.relax(9, *given, 0.3, passes)


@pytest.fixture
def gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """AXPY and STEPS as modules on a GPU that is not there."""
    if not cross_check.CUDA:
        pytest.skip("needs the package numba-cuda")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))  # what other tests compiled is not there
    tools = importlib.import_module("tests.helpers.fake_cuda_driver")
    unit = load(AXPY)
    synthetic_database.keep(
        tmp_path / "db", synthetic_database.context(unit, {"n": 100}), {"": 9.0, "codelet: grid blocksize 64": 5.0}
    )
    axpy = imported(written(tmp_path, AXPY, tmp_path / "db"))
    steps = imported(written(tmp_path, STEPS, None, "numba-cuda", default=True))
    drivers = [tools.install(m) for m in (axpy, steps)]
    return SimpleNamespace(axpy=axpy, steps=steps, driver=drivers[0], other=drivers[1], tools=tools)


def test_a_call_launches_with_the_callers_arrays(gpu: SimpleNamespace) -> None:
    """Grid, block, stream and every word of the parameters; a second call with other arrays and floats has those."""
    array, driver = gpu.tools.DeviceArray, gpu.driver
    gpu.axpy.axpy(100, 2.0, array((100,), pointer=4096), array((100,), pointer=8192), stream=5)
    (first,) = driver.launched
    assert (first.grid, first.block, first.stream) == ((2, 1, 1), (64, 1, 1), 5)
    assert gpu.tools.words(first, 14) == [0, 0, 100, 4, 4096, 100, 4, 0, 0, 100, 4, 8192, 100, 4]
    low = np.array(gpu.tools.words(first, 15)[14:], np.int64).view(np.float32)
    assert low[0] == 2.0
    gpu.axpy.axpy(100, -0.0, array((10, 10), pointer=16), array((100,), pointer=1040), stream=5)
    assert gpu.tools.words(driver.launched[1], 12)[4:12:7] == [16, 1040]
    assert np.signbit(np.array(gpu.tools.words(first, 15)[14:], np.int64).view(np.float32)[0])
    with pytest.warns(UserWarning, match="same device"):
        gpu.axpy.axpy(300, 2.0, *(array((300,)) for _ in "xy"))
    assert driver.launched[2].grid == (5, 1, 1)


EMPTY = {
    "sums": """void f(int n, int m, double *A, double *s) {
  for (int i = 0; i < n; i++) { s[i] = 0; for (int j = 0; j < m; j++) s[i] += A[i * m + j]; } }
""",
    "steps": """void f(int n, int m, double *A, double *s) {
  for (int t = 0; t < m; t++) {
    for (int i = 1; i < n - 1; i++) A[i] = s[i - 1] + s[i + 1];
    for (int i = 1; i < n - 1; i++) s[i] = A[i]; } }
""",
}


@pytest.mark.sampled(9, "wide")
@cuda
@pytest.mark.parametrize(
    ("text", "line"),
    [("sums", ""), ("sums", "loop j: rfactor 2"), ("sums", "loop i: unroll 2, jam"),
     ("sums", "loop j: unroll 4, split"), ("steps", ""), ("steps", "loop t: persistent")],
)  # fmt: skip
def test_loops_that_do_not_run_in_the_simulator(text: str, line: str, tmp_path: Path) -> None:
    """Arrays without elements are taken, no grid without blocks is launched, and what remains is what C leaves."""
    (tmp_path / "f.c").write_text(EMPTY[text])
    unit = load(tmp_path / "f.c")
    db = synthetic_database.keep(tmp_path / "db", synthetic_database.context(unit, {"n": 12, "m": 20}), {line: 5.0})
    (tmp_path / "m.py").write_text(build.as_python(unit, db, "numba-cuda", ""))
    code = """
import m as t, warnings, numpy as np
warnings.filterwarnings("error", "f is not verified")
warnings.filterwarnings("ignore", "f: nothing was tuned")
for n, m in ((0, 0), (0, 3), (3, 0), (1, 1), (1, 0), (0, 1), (4, 2), (-1, 2)):
    rng = np.random.default_rng(0)
    A, s = rng.random(max(n, 0) * max(m, 1)), rng.random(max(n, 0))
    t.f(n, m, A, s, check=True)
    print(n, m)
"""
    said = run_alone(tmp_path, code, NUMBA_ENABLE_CUDASIM="1")
    assert len(said.splitlines()) == 8


@pytest.mark.filterwarnings("ignore:axpy", "ignore:f:")
def test_without_iterations_nothing_is_launched(gpu: SimpleNamespace) -> None:
    """Device arrays at no address and NumPy arrays without elements; the driver refuses empty memory and grids."""
    none = gpu.tools.DeviceArray((0,), pointer=0)
    gpu.axpy.axpy(0, 2.0, none, none)
    gpu.axpy.axpy(0, 2.0, np.zeros(0, np.float32), np.zeros(0, np.float32))
    assert gpu.driver.launched == []
    gpu.axpy.axpy(1, 2.0, np.zeros(1, np.float32), np.zeros(1, np.float32))
    assert len(gpu.driver.launched) == 1


@pytest.mark.filterwarnings("ignore:axpy")
def test_numpy_arrays_go_there_and_back(gpu: SimpleNamespace) -> None:
    """Both are copied there, on the stream of the call; what is written comes back, into a view as well."""
    x, wide = np.arange(100, dtype=np.float32), np.zeros((100, 2), np.float32)
    driver = gpu.driver

    def launch(kernel: Any, *rest: Any) -> tuple[Any]:
        driver.log.append("launched")
        pointers = gpu.tools.words(gpu.tools.Launched(kernel, (), (), 0, rest[8]), 14)
        np.frombuffer((gpu.tools.ctypes.c_char * 400).from_address(pointers[11]), np.float32)[:] = 7
        return (gpu.tools.OK,)

    driver.cuLaunchKernel = launch
    gpu.axpy.axpy(100, 2.0, x, wide[:, 0])
    assert wide[:, 0].tolist() == [7] * 100
    assert not wide[:, 1].any()
    assert len(driver.calls("cuMemFree")) == len(driver.held)


@pytest.mark.filterwarnings("ignore:axpy")
def test_what_does_not_fit_on_a_gpu_is_refused(gpu: SimpleNamespace) -> None:
    """The parameter is named, with what is right; an array of another GPU is found, and what is no stream."""
    array, driver = gpu.tools.DeviceArray, gpu.driver
    good = array((100,))
    for x, y, kind, message in (
        (array((100,), "float64"), good, TypeError, "x must be an array of float32, got float64"),
        (good, array((99,)), ValueError, "y must have the shape [100], got [99]"),
        (array((100,), strides=(8,)), good, ValueError, "x must be contiguous, in C's order: pass a contiguous copy"),
        (
            good,
            array((100,), read_only=True),
            ValueError,
            "y is written, but the array given is read-only: pass a copy",
        ),
        (object(), good, TypeError, "x must be an array of float32, got object"),
    ):
        with pytest.raises(kind) as refused:
            gpu.axpy.axpy(100, 2.0, x, y)
        assert str(refused.value) == message
    with pytest.raises(TypeError, match="stream must be a CUDA stream or its handle, got str"):
        gpu.axpy.axpy(100, 2.0, good, good, stream="5")
    driver.cuPointerGetAttribute = lambda what, pointer: (gpu.tools.OK, 1)
    with pytest.raises(ValueError, match="x is on GPU 1, and the current context is GPU 0's"):
        gpu.axpy.axpy(100, 2.0, array((100,), pointer=1 << 20), good)
    assert not driver.launched


@pytest.mark.filterwarnings("ignore:rows. nothing was tuned")
def test_arrays_of_more_elements_than_32_bits_count(gpu: SimpleNamespace, tmp_path: Path) -> None:
    """A plan whose subscripts have 64 bits runs; at other sizes the usual one does."""
    rows = imported(written(tmp_path, ROWS, None, "numba-cuda", default=True))
    driver = gpu.tools.install(rows)
    array = gpu.tools.DeviceArray
    large = rows.TUNED.large
    assert rows.PLANS[large].wide_indices
    for n, m, plan in ((1 << 16, (1 << 15) + 8, large), (1 << 16, 1 << 15, rows.TUNED.default)):
        before = len(driver.launched)
        far = [array(shape, pointer=(1 << 50) + (k << 40)) for k, shape in enumerate(((n, m), (n,), (m,)))]
        rows.rows(n, m, *far)
        assert len(driver.launched) > before
        assert rows.match(n, m).plan == plan


@pytest.mark.filterwarnings("ignore:pick. nothing was tuned")
def test_an_array_without_an_extent_has_no_more(gpu: SimpleNamespace, tmp_path: Path) -> None:
    """Where nothing says which of its elements are accessed."""
    text = "void pick(int n, long k[n], float *x, float y[n]) { for (int i = 0; i < n; i++) y[i] = x[k[i]]; }\n"
    (tmp_path / "pick.py").write_text(build.as_python(load(text), tmp_path, "numba-cuda", "", default=True))
    pick = imported(tmp_path / "pick.py")
    driver, array = gpu.tools.install(pick), gpu.tools.DeviceArray
    k, y = array((9,), "int64", pointer=1 << 30), array((9,), pointer=1 << 31)
    pick.pick(9, k, array((1 << 31,), pointer=1 << 40), y)
    with pytest.raises(ValueError, match="x has 2147483649 elements, the limit is 2147483648 where the C does not"):
        pick.pick(9, k, array(((1 << 31) + 1,), pointer=1 << 41), y)
    assert len(driver.launched) == 1


def test_elements_beyond_any_array_are_refused(gpu: SimpleNamespace, tmp_path: Path) -> None:
    """No array of the declared extent has so many elements as the loops access."""
    text = "void far(int n, char x[n]) { for (long i = 0; i < n; i++) x[2 * i] = 1; }\n"
    far = imported(written(tmp_path, text, None, "numba-cuda", default=True))
    driver = gpu.tools.install(far)
    with pytest.raises(ValueError, match="the loops access element 4294967292 of an array, which is beyond"):
        far.far(2**31 - 1, gpu.tools.DeviceArray((2**31 - 1,)))
    assert not driver.launched


def test_streams(gpu: SimpleNamespace) -> None:
    """Streams of every library; what wrote an array on another stream is waited for, and that waits for the call."""
    handle = gpu.axpy.handle
    named = (SimpleNamespace(cuda_stream=7), SimpleNamespace(ptr=7), SimpleNamespace(handle=SimpleNamespace(value=7)))
    assert [handle(s) for s in (7, *named, SimpleNamespace(__cuda_stream__=lambda: (0, 7)))] == [7] * 5
    array, driver = gpu.tools.DeviceArray, gpu.driver
    gpu.axpy.axpy(100, 2.0, array((100,), stream=1), array((100,), stream=None))
    assert driver.calls("cuEventRecord") == []
    gpu.axpy.axpy(100, 2.0, array((100,), stream=9), array((100,), stream=5), stream=5)
    order = [entry[0] if isinstance(entry, tuple) else "launch" for entry in driver.log if "Event" in str(entry)
             or not isinstance(entry, tuple)]  # fmt: skip
    assert order[1:] == [
        "cuEventCreate", "cuEventRecord", "cuStreamWaitEvent", "cuEventDestroy", "launch",
        "cuEventCreate", "cuEventRecord", "cuStreamWaitEvent", "cuEventDestroy",
    ]  # fmt: skip
    assert [where for _, where in driver.calls("cuEventRecord")] == [9, 5]
    assert [where for where, _, _ in driver.calls("cuStreamWaitEvent")] == [5, 9]


@pytest.mark.parametrize(("captured", "waits"), [({5}, []), ({5, 9}, [5, 9]), ({9}, [5, 9])])
def test_a_graph_waits_for_no_stream_outside_of_it(gpu: SimpleNamespace, captured: set[int], waits: list[int]) -> None:
    """The driver would refuse the graph; asked of the default stream meanwhile it gives an error."""
    array, driver = gpu.tools.DeviceArray, gpu.driver
    driver.cuStreamIsCapturing = lambda stream: (gpu.tools.OK, 1) if stream in captured else (906, 0)
    gpu.axpy.axpy(100, 2.0, array((100,), stream=9), array((100,), stream=5), stream=5)
    assert [where for where, _, _ in driver.calls("cuStreamWaitEvent")] == waits
    assert len(driver.launched) == 1


@pytest.mark.filterwarnings("ignore:axpy")
def test_cupys_arrays(gpu: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read off themselves; CuPy's stream in this thread is waited for. What does not fit is refused as ever."""

    class Array(gpu.tools.DeviceArray):  # type: ignore[misc]
        _c_contiguous = True

        def __init__(self, pointer: int, dtype: str = "float32", shape: tuple[int, ...] = (100,), **more: Any) -> None:
            super().__init__(shape, dtype, pointer, **more)
            self.dtype, self.shape, self.data = np.dtype(dtype), shape, SimpleNamespace(ptr=pointer)
            self._c_contiguous = "strides" not in more

    Array.__module__ = "cupy"
    stream = SimpleNamespace(ptr=5)
    current = SimpleNamespace(cuda=SimpleNamespace(get_current_stream=lambda: stream))
    monkeypatch.setitem(sys.modules, "cupy", current)
    gpu.axpy.axpy(100, 2.0, Array(64), Array(1088), stream=5)
    assert gpu.tools.words(gpu.driver.launched[-1], 12)[4:12:7] == [64, 1088]
    assert gpu.driver.calls("cuStreamWaitEvent") == []
    stream.ptr = 9
    gpu.axpy.axpy(100, 2.0, Array(64), Array(1088), stream=5)
    assert [where for where, _, _ in gpu.driver.calls("cuStreamWaitEvent")] == [5, 9], "one stream, asked for once"
    gpu.axpy.axpy(100, 2.0, Array(192), gpu.tools.DeviceArray((100,), pointer=1280), stream=5)
    assert gpu.tools.words(gpu.driver.launched[-1], 12)[4:12:7] == [192, 1280], "beside an array of another library"
    assert [where for where, _, _ in gpu.driver.calls("cuStreamWaitEvent")][2:] == [5, 9]
    launched = len(gpu.driver.launched)
    for bad, what in (
        (Array(64, "float64"), "must be an array of float32"),
        (Array(64, strides=(8,)), "contiguous"),
        (Array(64, shape=(99,)), r"the shape \[100\], got \[99\]"),
    ):
        with pytest.raises((TypeError, ValueError), match=what):
            gpu.axpy.axpy(100, 2.0, bad, Array(128))
    assert len(gpu.driver.launched) == launched


@pytest.mark.filterwarnings("ignore:axpy")
def test_torch_tensors_and_dlpack(gpu: SimpleNamespace) -> None:
    """A tensor is read off itself; where there is DLPack alone its capsule is, the stream of the call being named."""
    array, driver = gpu.tools.DeviceArray, gpu.driver

    class Tensor:
        is_cuda, requires_grad, dtype, shape = True, False, "torch.float32", (100,)

        def data_ptr(self) -> int:
            return 64

        def numel(self) -> int:
            return 100

        def is_contiguous(self) -> bool:
            return self.dtype == "torch.float32"

    gpu.axpy.axpy(100, 2.0, Tensor(), array((100,)))
    assert gpu.tools.words(driver.launched[-1], 5)[4] == 64
    wrong = Tensor()
    wrong.dtype = "torch.float16"
    with pytest.raises(TypeError, match="x must be an array of float32, got float16"):
        gpu.axpy.axpy(100, 2.0, wrong, array((100,)))

    class Packed:
        """NumPy's memory, said to be a GPU's."""

        held = np.ones(100, np.float32)
        streams: list[int]

        def __init__(self) -> None:
            self.streams = []

        def __dlpack_device__(self) -> tuple[int, int]:
            return 2, 0

        def __dlpack__(self, stream: int) -> Any:
            self.streams.append(stream)
            return self.held.__dlpack__()

    packed = Packed()
    gpu.axpy.axpy(100, 2.0, packed, array((100,)))
    gpu.axpy.axpy(100, 2.0, packed, array((100,)), stream=5)
    assert packed.streams == [1, 5]
    assert gpu.tools.words(driver.launched[-1], 5)[2:5] == [100, 4, packed.held.ctypes.data]


@pytest.mark.filterwarnings("ignore:steps")
def test_many_launches_become_one_graph(gpu: SimpleNamespace) -> None:
    """One by one at first, captured when called again with the same arrays, then replayed; for other arrays one by one
    again, and so is everything while the caller captures."""
    array, driver = gpu.tools.DeviceArray, gpu.other
    arrays = [array((50,), pointer=4096 * k) for k in (1, 2)]
    for launched, replayed in ((40, 0), (80, 1), (80, 2)):
        gpu.steps.steps(20, 50, *arrays)
        assert (len(driver.launched), len(driver.calls("cuGraphLaunch"))) == (launched, replayed)
    assert {entry.stream for entry in driver.launched[:40]} == {0}
    assert 0 not in {entry.stream for entry in driver.launched[40:]}
    gpu.steps.steps(20, 50, *arrays[::-1])
    assert len(driver.launched) == 120
    driver.cuStreamIsCapturing = lambda stream: (gpu.tools.OK, 1)
    gpu.steps.steps(20, 50, *arrays)
    assert (len(driver.launched), len(driver.calls("cuGraphLaunch"))) == (160, 2)


@cuda
@pytest.mark.wide
@pytest.mark.filterwarnings("ignore:rows")
def test_the_first_call_may_be_captured(tmp_path: Path) -> None:
    """Of a plan with arrays of its own, which a capture otherwise does not let it allocate; they stay as long as it."""
    tools = importlib.import_module("tests.helpers.fake_cuda_driver")
    unit = load(ROWS)
    lines = "loop j: parallel\nloop j: rfactor 4"
    db = synthetic_database.keep(
        tmp_path / "db", synthetic_database.context(unit, {"n": 12, "m": 20}), {"": 9.0, lines: 5.0}
    )
    made = imported(written(tmp_path, ROWS, db))
    driver = tools.install(made)
    driver.streams_capture = 1
    for n in range(12, 12 + 70):
        made.rows(n, 20, tools.DeviceArray((n, 20)), *(tools.DeviceArray((k,)) for k in (n, 20)), stream=7)
    assert driver.mode == driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL
    assert len(made.CALL.own.ready) == 64
    assert len(made.CALL.captured) == 70


@pytest.mark.filterwarnings("ignore:axpy")
def test_threads_do_not_mix_their_arrays(gpu: SimpleNamespace) -> None:
    """Every launch has the arrays of the thread that made it; a kernel is compiled once for all."""
    array, driver, seen = gpu.tools.DeviceArray, gpu.driver, []
    compiled = []
    cubin = gpu.axpy.cubin
    gpu.axpy.cubin = lambda *given: (compiled.append(given), cubin(*given))[1]

    def launch(kernel: Any, *rest: Any) -> tuple[Any]:
        at = gpu.tools.Launched(kernel, (), (), 0, rest[8])
        before = gpu.tools.words(at, 14)[4:12:7]
        sys.setswitchinterval(1e-6)
        seen.append((before, gpu.tools.words(at, 14)[4:12:7]))
        return (gpu.tools.OK,)

    driver.cuLaunchKernel = launch

    def work(k: int) -> None:
        for _ in range(200):
            gpu.axpy.axpy(100, 2.0, array((100,), pointer=4096 * k), array((100,), pointer=4096 * k + 2048))

    interval = sys.getswitchinterval()
    try:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, range(1, 5)))
    finally:
        sys.setswitchinterval(interval)
    assert len(seen) == 800
    assert all(a == b and a[1] == a[0] + 2048 for a, b in seen)
    assert len(compiled) == 1


HALVES = """
void halves(int n, _Float16 alpha, _Float16 x[n], _Float16 y[n], float s[1]) {
  for (int i = 0; i < n; i++) s[0] += x[i] * y[i];
  for (int i = 0; i < n; i++) y[i] = alpha * x[i] + y[i];
}
"""


@pytest.mark.sampled(3)
@pytest.mark.wide
@cuda
@pytest.mark.parametrize("target", ["numba-cuda", "numba-cpu"])
@pytest.mark.parametrize(("kind", "dtype", "digits"), [("_Float16", "float16", 10), ("__bf16", "bfloat16", 7)])
def test_a_module_takes_floats_of_16_bits(target: str, kind: str, dtype: str, digits: int, tmp_path: Path) -> None:
    """Arrays, and a parameter that is rounded once, checked by the text and by the loops made of it."""
    written(tmp_path, HALVES.replace("_Float16", kind), None, target, default=True)
    code = f"""
import ml_dtypes
import halves_tuned as t, warnings
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
x, y = (rng.random(37).astype("{dtype}") for _ in range(2))
alpha, s = 1 + 2**-{digits + 1} + 2**-40, np.zeros(1, np.float32)
want = (np.float32(1 + 2**-{digits}) * x.astype(np.float32) + y.astype(np.float32)).astype("{dtype}")
sum = (x.astype(np.float32) * y.astype(np.float32)).sum()
t.halves(37, alpha, x, y, s, check=True)
assert (y == want).all() and abs(s[0] - sum) < 1e-5, (y, want)
t.TUNED = t.TUNED._replace(text=None)
t.CALL.tuned = t.TUNED
t.halves(37, alpha, x, y, s, check=True)
try:
    t.halves(37, alpha, x.astype(np.float32), y, s)
except TypeError as error:
    print(error)
"""
    said = run_alone(tmp_path, code, NUMBA_ENABLE_CUDASIM="1" if target == "numba-cuda" else "0")
    assert said == f"x must be an array of {dtype}, got float32\n"
