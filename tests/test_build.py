"""``looptune build``: modules that need looptune no more, on the CPU, in the simulator and on a made-up GPU."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import oracle
import programs
import pytest
import stores
from click.testing import CliRunner
from programs import Program
from test_cut import STEPS

from looptune import targets
from looptune.analysis import Analysis
from looptune.bake import bake
from looptune.cli import cli
from looptune.deploy import build, included, module
from looptune.errors import UsageError
from looptune.frontend import load
from looptune.frontend.placed import parse_lines
from looptune.mapping import plan
from looptune.schedule import schedule

cuda = pytest.mark.skipif(not oracle.CUDA, reason="needs the package numba-cuda")
ROOT = Path(__file__).parent.parent
GEMM = ROOT / "polybench" / "gemm.c"
AXPY = """
void axpy(int n, float a, float x[n], float y[n])
{ for (int i = 0; i < n; i++) y[i] += a * x[i]; }
"""
ROWS = """
void rows(int n, int m, float A[n][m], float y[n], float x[m])
{ for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) y[i] += A[i][j] * x[j]; }
"""
TUNED = "loop j: parallel\ncodelet: grid blocksize 32x4"


def written(folder: Path, text: str, db: Path | None, target: str = "auto", **more: Any) -> Path:
    path = folder / f"{re.search('void (.*?)[(]', text)[1]}_tuned.py"  # type: ignore[index]
    (folder / "source.c").write_text(text)
    unit = load(folder / "source.c")
    path.write_text(build.as_python(unit, db if db is not None else folder / "none", target, "looptune build", **more))
    return path


def imported(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def run_alone(folder: Path, code: str, **environment: str) -> str:
    """What the code prints in a process that cannot import looptune."""
    env = {**os.environ, "PYTHONPATH": str(folder), **environment}
    barred = "import sys\nsys.modules['looptune'] = None\nimport numpy as np\n"
    done = subprocess.run(
        [sys.executable, "-c", barred + code], cwd=folder, env=env, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# -- on the CPU -----------------------------------------------------------------------------------


def test_a_module_needs_numba_and_numpy_only(tmp_path: Path) -> None:
    """Without looptune it computes what NumPy does, checks itself, and says exactly what it runs."""
    unit = load(ROWS)
    sizes = {"n": 30, "m": 40}
    db = stores.keep(tmp_path / "db", stores.this_cpu(unit, sizes), {"": 9.0, "loop j: unroll 4, guarded": 5.0})
    text = written(tmp_path, ROWS, db).read_text()
    tops = {name.partition(".")[0] for name, _ in included.included(included.CPU).imports if name}
    assert "cuda" not in tops
    assert "looptune" not in {n.module.partition(".")[0] for n in ast.walk(ast.parse(text))
                              if isinstance(n, ast.ImportFrom) and n.module}  # fmt: skip
    assert "5.01 us [5.005, 5.015] n=5 in the finals" in text
    assert "1.8 times as fast as the default (9.018 us)" in text
    said = run_alone(
        tmp_path,
        """
import rows_tuned as t, warnings
warnings.simplefilter("error")
rng = np.random.default_rng(0)
A, x, y = (rng.random(s, dtype=np.float32) for s in ((30, 40), 40, 30))
before = y.copy()
t.rows(30, 40, A, y, x, check=True)
assert np.allclose(y, before + A @ x, rtol=1e-5)
print(t.match(30, 40).level, t.match(30, 40).configuration["directives"])
warnings.simplefilter("always")
with warnings.catch_warnings(record=True) as seen:
    for n in (7, 8, 9):
        t.rows(n, 40, np.ones((n, 40), np.float32), np.ones(n, np.float32), x)
print(len(seen), seen[0].message, seen[0].filename)
""",
    )
    assert said.splitlines()[0] == "exact loop j: unroll 4, guarded"
    assert said.splitlines()[1].startswith("1 rows: nothing was tuned for")
    assert "(same device) <string>" in said.splitlines()[1]


@pytest.mark.parametrize("program", programs.ALL[::4], ids=lambda p: p.name.replace(" ", "-"))
def test_a_default_module_computes_what_c_means(program: Program, tmp_path: Path) -> None:
    """Any program of the tests, with the check against its own original loops."""
    codelet = oracle.codelet_of(program.text)
    path = tmp_path / "made.py"
    unit = load(program.text)
    path.write_text(module.text(module.Request(unit, "numba-cpu", (), "looptune build")))
    made = imported(path)
    given = oracle.arguments(codelet, program.sizes)
    got = oracle.copied(given)
    with pytest.warns(UserWarning, match="the default is used"):
        getattr(made, made.__all__[1])(*got.values(), check=program.tolerance == 0)
    assert oracle.off(oracle.interpreted(codelet, given), oracle.arrays(got), program.tolerance) is None


@pytest.mark.filterwarnings("ignore:axpy")
def test_a_wrong_result_is_found(tmp_path: Path) -> None:
    """check=True names the element, both values and the tolerance; the function itself leaves what it computed."""
    path = written(tmp_path, AXPY, None, "numba-cpu", default=True)
    path.write_text(path.read_text().replace("y[i] = y[i] + a * x[i]", "y[i] = y[i] + a * x[0]", 1))
    made = imported(path)
    x, y = np.arange(4, dtype=np.float32), np.ones(4, np.float32)
    with pytest.raises(ArithmeticError, match=r"axpy is not what .* y\[3\]: got 1, expected 7, error 6, tolerance"):
        made.axpy(4, 2.0, x, y, check=True)


@pytest.mark.filterwarnings("ignore:axpy")
def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    """TypeError or ValueError with the parameter, what was given and what is right; views are updated in place."""
    made = imported(written(tmp_path, AXPY, None, "numba-cpu", default=True))
    x, y = np.ones(3, np.float32), np.ones(3, np.float32)
    for args, kind, message in (
        ((3, 1, np.ones(3), y), TypeError, "x must be an array of float32, got float64"),
        ((3, 1, x, [1, 2, 3]), TypeError, "y must be an array of float32, got list"),
        ((4, 1, x, y), ValueError, "x must have the shape [4], got [3]"),
        ((2.5, 1, x, y), TypeError, "n is an integer (int32), got 2.5"),
        ((2**40, 1, x, y), ValueError, "n is an int32, which 1099511627776 does not fit"),
        ((-1, 1, x, y), ValueError, "x cannot have the shape [-1]: no extent is negative"),
        ((3, "a", x, y), TypeError, "a is a number (float32), got str"),
    ):
        with pytest.raises(kind) as refused:
            made.axpy(*args)
        assert str(refused.value) == message
    frozen = np.ones(3, np.float32)
    frozen.setflags(write=False)
    with pytest.raises(ValueError, match=READ_ONLY):
        made.axpy(3, 1, frozen, frozen)
    wide = np.zeros((3, 4), np.float32)
    made.axpy(3, np.float64(2), frozen, wide[:, 1])
    assert wide[:, 1].tolist() == [2, 2, 2]
    assert wide.sum() == 6


def test_nothing_measured_is_an_error_that_says_what_measures(tmp_path: Path) -> None:
    """No database, or none of this text; --default does without."""
    (tmp_path / "f.c").write_text(AXPY)
    unit = load(tmp_path / "f.c")
    with pytest.raises(UsageError, match=r"no database .*: `looptune run .*f\.c --sweep` measures it, --default"):
        build.as_python(unit, tmp_path / "none", "auto", "")
    db = stores.keep(tmp_path / "db", stores.context(unit, {"n": 4}), {"": 1.0})
    double = load(tmp_path / "f.c", dtype="float64")
    with pytest.raises(UsageError, match=r"no times of axpy in float64 .*\(.*float32 for numba-cuda\): `looptune run"):
        build.as_python(double, db, "auto", "")
    with pytest.raises(UsageError, match="--sweep --target numba-cpu` measures it"):
        build.as_python(unit, db, "numba-cpu", "")
    assert "Nothing: this is the default." in build.as_python(double, db, "numba-cpu", "", default=True)


def test_the_command(tmp_path: Path) -> None:
    """``looptune build`` writes a module, or prints it; a file that cannot be written is a user's mistake."""
    (tmp_path / "f.c").write_text(AXPY)
    call = ["build", str(tmp_path / "f.c"), "--default", "--target", "numba-cpu"]
    out = tmp_path / "axpy.py"
    runner = CliRunner()
    runner.invoke(cli, [*call, "-o", str(out)], catch_exceptions=False, standalone_mode=False)
    printed = runner.invoke(cli, call, catch_exceptions=False, standalone_mode=False).stdout
    assert out.read_text() == printed
    with pytest.raises(UsageError, match="cannot write"):
        runner.invoke(cli, [*call, "-o", str(tmp_path / "no" / "x.py")], catch_exceptions=False, standalone_mode=False)


# -- what is chosen -------------------------------------------------------------------------------


READ_ONLY = "y is written, but the array given is read-only: pass a copy"


@cuda
def test_every_level_of_the_look_up(tmp_path: Path) -> None:
    """Exact, then the nearest sizes on this device, its capability, its family, and at last the default."""
    unit = load(ROWS)
    for device, n, text in (
        (stores.H200, 64, "loop j: unroll 2"), (stores.H200, 1024, "loop j: unroll 3"),
        (stores.H100, 64, "loop j: unroll 4"), (stores.A100, 64, "loop j: unroll 5"),
    ):  # fmt: skip
        stores.keep(tmp_path / "db", stores.context(unit, {"n": n, "m": n}, device), {"": 9.0, text: 5.0})
    made = imported(written(tmp_path, ROWS, tmp_path / "db"))
    at = made.Device
    for device, n, level, factor in (
        (at(*stores.H200), 64, "exact", 2), (at(*stores.H200), 1024, "exact", 3),
        (at(*stores.H200), 100, "same device", 2), (at(*stores.H200), 600, "same device", 3),
        (at("NVIDIA GH200", 132, "sm_90"), 900, "same capability", 3), (at(*stores.H100), 64, "exact", 4),
        (at("NVIDIA A40", 84, "sm_86"), 60, "same family", 5), (at("NVIDIA B200", 148, "sm_100"), 64, "default", 0),
    ):  # fmt: skip
        match = made.look_up(made.CONFIGURATIONS, "plan_0", device, {"n": n, "m": n})
        assert match.level == level, (device, n)
        assert factor == (0 if match.configuration is None else int(match.configuration["directives"][-1]))
        assert (match.plan == "plan_0") == (level == "default")
    same = made.look_up(made.CONFIGURATIONS, "plan_0", at("NVIDIA GH200", 132, "sm_90"), {"n": 64, "m": 64})
    assert same.plan == same.configuration["plan"]


@cuda
def test_sizes_that_a_version_is_not_for(tmp_path: Path) -> None:
    """noremainder is a remainder elsewhere; fullunroll of a loop as long as a size is used at that size alone; what is
    slower than the default is not used at all; without finals the screening decides."""
    unit = load(ROWS)
    at = [stores.context(unit, {"n": n, "m": 8}) for n in (16, 32, 64, 128)]
    stores.keep(tmp_path / "db", at[0], {"": 9.0, "loop j: unroll 4, noremainder": 5.0})
    stores.keep(tmp_path / "db", at[1], {"": 9.0, "loop j: fullunroll": 5.0})
    stores.keep(tmp_path / "db", at[2], {"": 4.0, "loop j: unroll 2": 5.0}, role="version")
    stores.keep(tmp_path / "db", at[3], {"": 9.0, "loop j: unroll 3": 5.0}, role="version")
    made = imported(written(tmp_path, ROWS, tmp_path / "db"))
    rows = {row["sizes"]["n"]: row for row in made.CONFIGURATIONS}
    assert [rows[n]["directives"] for n in rows] == [
        "loop j: unroll 4, noremainder", "loop j: fullunroll", "", "loop j: unroll 3"
    ]  # fmt: skip
    assert rows[32]["elsewhere"] is None
    assert rows[64]["elsewhere"] == "plan_0"
    device = made.Device(*stores.H200)
    assert made.look_up(made.CONFIGURATIONS, "plan_0", device, {"n": 33, "m": 7}).configuration is not rows[32]
    kernels = dict(re.findall(r"^# (.*)\n@cuda.jit\ndef (\w+)", Path(made.__file__).read_text(), re.MULTILINE))
    elsewhere = next(k for users, k in kernels.items() if rows[16]["elsewhere"] in users.split(", "))
    given = {"A": np.ones((3, 7), np.float32), "y": np.zeros(3, np.float32), "x": np.ones(7, np.float32)}
    emitted = oracle.Emitted("left", Path(made.__file__).read_text(), "called", {**given})
    call = f"\n\ndef called(A, y, x):\n    {elsewhere}[1, 256](A.reshape(21), y, x, 3, 7)\n"
    found = oracle.simulated([oracle.Emitted("left", emitted.source + call, "called", given)], tmp_path)["left"]
    assert not isinstance(found, str), found
    assert found["y"].tolist() == [7, 7, 7]


# -- for a GPU, without one -----------------------------------------------------------------------


@cuda
def test_a_module_in_the_simulator(tmp_path: Path) -> None:
    """Kernels with sizes as constants, for other sizes, and the default leave what NumPy computes, checked too."""
    unit = load(ROWS)
    db = stores.keep(tmp_path / "db", stores.context(unit, {"n": 12, "m": 20}), {"": 9.0, TUNED: 5.0})
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


@cuda
@pytest.mark.parametrize("kernel", ["gemm", "gramschm", "3mm"])
def test_every_kernel_becomes_the_sweeps_machine_code(kernel: str, tmp_path: Path) -> None:
    """For sm_90, without a GPU: as many kernels as differ, each the PTX that the sweep's own backend makes of it."""
    unit = load(ROOT / "polybench" / f"{kernel}.c", defines=dict.fromkeys(("ni", "nj", "nk", "nl", "nm", "m", "n"), 64))
    sizes = {n: 64 for n in unit.values if isinstance(unit.values[n], int)}
    lines = {"gramschm": "loop 4: distribute", "gemm": "loop i: unroll 2, jam\nloop k: split 2"}.get(kernel, "")
    db = stores.keep(tmp_path / "db", stores.context(unit, unit.values), {lines: 5.0})
    path = tmp_path / "made.py"
    path.write_text(build.as_python(unit, db, "auto", ""))
    made = imported(path)
    done = schedule(Analysis(unit.codelet), parse_lines(lines.splitlines()), unit.values)
    planned = plan(bake(done.codelet, sizes))
    theirs = [_code(text) for text in targets.ptx(planned, "sm_90").split(".version")[1:]]
    assert len(set(theirs)) == (1 if kernel == "3mm" else len(planned.kernels))
    row = made.CONFIGURATIONS[0]
    users = {k: u.split(", ") for u, k in re.findall(r"# (.*)\n@cuda.jit\ndef (\w+)", path.read_text())}
    for k in (k for k in made.SIGNATURES if row["plan"] in users[k.__name__]):
        text, _ = made.cuda.compile_ptx(k.py_func, tuple(map(made.numba_type, made.SIGNATURES[k])), cc=(9, 0))
        assert _code(text.partition(".version")[2]) in theirs, k.__name__
    for k, signature in made.SIGNATURES.items():
        code = made.cubin(k, signature, "sm_90")
        assert made.entry_of(code, k.__name__).encode() in code


def _code(ptx: str) -> str:
    """Without comments, and with names by their place."""
    names: dict[str, str] = {}
    plain = re.sub(r"//[^\n]*", "", ptx)
    return re.sub(r"_?_ZN\w+", lambda found: names.setdefault(found[0], f"name{len(names)}"), plain).strip()


@pytest.fixture
def gpu(tmp_path: Path) -> SimpleNamespace:
    """AXPY and STEPS as modules on a GPU that is not there."""
    if not oracle.CUDA:
        pytest.skip("needs the package numba-cuda")
    stand_in = importlib.import_module("stand_in_driver")
    unit = load(AXPY)
    stores.keep(tmp_path / "db", stores.context(unit, {"n": 100}), {"": 9.0, "codelet: grid blocksize 64": 5.0})
    axpy = imported(written(tmp_path, AXPY, tmp_path / "db"))
    steps = imported(written(tmp_path, STEPS, None, "numba-cuda", default=True))
    drivers = [stand_in.stand_in(m) for m in (axpy, steps)]
    return SimpleNamespace(axpy=axpy, steps=steps, driver=drivers[0], other=drivers[1], tools=stand_in)


def test_a_call_launches_with_the_callers_arrays(gpu: SimpleNamespace) -> None:
    """Grid, block, stream and every word of the parameters; a second call with other arrays and floats has those."""
    array, driver = gpu.tools.DeviceArray, gpu.driver
    gpu.axpy.axpy(100, 2.0, array((100,), pointer=4096), array((100,), pointer=8192), stream=5)
    (first,) = driver.launched
    assert (first.grid, first.block, first.stream) == ((2, 1, 1), (64, 1, 1), 5)
    assert gpu.tools.words(first, 14) == [0, 0, 100, 4, 4096, 100, 4, 0, 0, 100, 4, 8192, 100, 4]
    low = np.array(gpu.tools.words(first, 15)[14:], np.int64).view(np.float32)
    assert low[0] == 2.0
    gpu.axpy.axpy(100, -0.0, array((10, 10), pointer=16), array((100,), pointer=32), stream=5)
    assert gpu.tools.words(driver.launched[1], 12)[4:12:7] == [16, 32]
    assert np.signbit(np.array(gpu.tools.words(first, 15)[14:], np.int64).view(np.float32)[0])
    with pytest.warns(UserWarning, match="same device"):
        gpu.axpy.axpy(300, 2.0, *(array((300,)) for _ in "xy"))
    assert driver.launched[2].grid == (5, 1, 1)


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
    assert len(driver.calls("cuMemFree")) == 2


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
            gpu.axpy.axpy(100, 2.0, array((100,), pointer=16 * k), array((100,), pointer=16 * k + 8))

    interval = sys.getswitchinterval()
    try:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, range(1, 5)))
    finally:
        sys.setswitchinterval(interval)
    assert len(seen) == 800
    assert all(a == b and a[1] == a[0] + 8 for a, b in seen)
    assert len(compiled) == 1


def test_the_benchmark_measures_a_module_beside_the_sweeps_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On the CPU, for it needs a GPU else: a line a size, with both times, and one for what the database lacks."""
    spec = importlib.util.spec_from_file_location("deployed", ROOT / "benchmarks" / "deployed.py")
    assert spec is not None
    assert spec.loader is not None
    benchmark = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(benchmark)
    monkeypatch.setattr(
        benchmark, "finals", lambda samplers, seed: {n: [s() for _ in "abc"] for n, s in samplers.items()}
    )
    (tmp_path / "rows.c").write_text(ROWS)
    (tmp_path / "axpy.c").write_text(AXPY)
    at = stores.this_cpu(load(ROWS), {"n": 30, "m": 40})
    db = stores.keep(tmp_path / "db", at, {"": 9.0, "loop j: unroll 4": 5.0})
    files = [str(tmp_path / "rows.c"), str(tmp_path / "axpy.c")]
    assert benchmark.main([*files, "--db", str(db), "--target", "numba-cpu"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"\| rows \| n=30 m=40 \| .* us .*n=3 \| .* us .*n=3 \| .* \| 5.01 us \| .* us \| exact \|", said)
    assert "| axpy | nothing in" in said
