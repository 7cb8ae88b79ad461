"""Persistent kernels and packed triangles in modules that ``looptune build`` makes: the same code, rightly launched."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

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
from tests.helpers.built_modules import cuda, imported, plain_ptx, run_alone, written
from tests.helpers.paths import POLYBENCH

STEPS = """
void waves(int t, int n, float x[n], float y[n])
{
    for (int k = 0; k < t; k++) {
        for (int i = 1; i < n; i++) y[i] = x[i - 1] + k;
        for (int i = 1; i < n; i++) x[i] = 0.5f * y[i];
    }
}
"""
LINES = "loop k: persistent 2\ncodelet: grid blocksize 8x4"


@pytest.mark.wide
@cuda
def test_a_module_in_the_simulator(tmp_path: Path) -> None:
    """Called twice: the counter of blocks is back at zero."""
    db = synthetic_database.keep(
        tmp_path / "db", synthetic_database.context(load(STEPS), {"t": 5, "n": 70}), {"": 9.0, LINES: 5.0}
    )
    written(tmp_path, STEPS, db)
    code = """
import waves_tuned as w, warnings
warnings.simplefilter("ignore")
w.CALL.device = lambda: w.Device("NVIDIA H200", 132, "sm_90")
for t, n in ((5, 70), (5, 70), (3, 9)):
    x, y = np.arange(n, dtype=np.float32), np.zeros(n, np.float32)
    a, b = x.copy(), y.copy()
    for k in range(t):
        b[1:] = a[:-1] + k
        a[1:] = np.float32(0.5) * b[1:]
    w.waves(t, n, x, y)
    assert np.array_equal(x, a) and np.array_equal(y, b)
print(w.match(5, 70).level)
"""
    assert run_alone(tmp_path, code, NUMBA_ENABLE_CUDASIM="1") == "exact\n"


@pytest.mark.wide
@cuda
@pytest.mark.parametrize(
    ("kernel", "lines"),
    [
        ("gramschm", "loop k: persistent\nloop 2: parallel\nloop 4: gridify(i, j)"),
        ("covar", "loop 1: gridify(i, j)\nloop 5: gridify(j1, j2)\ncodelet: pack\ncodelet: swizzle 2"),
    ],
)
def test_it_becomes_the_sweeps_machine_code(kernel: str, lines: str, tmp_path: Path) -> None:
    """For sm_90, without a GPU: every kernel the PTX that the sweep's own backend makes of it, and linked."""
    unit = load(POLYBENCH / f"{kernel}.c", defines={"M": "64", "N": "64"})
    db = synthetic_database.keep(tmp_path / "db", synthetic_database.context(unit, unit.values), {lines: 5.0})
    (tmp_path / "made.py").write_text(build.as_python(unit, db, "auto", ""))
    made = imported(tmp_path / "made.py")
    done = schedule(Analysis(unit.codelet), parse_lines(lines.splitlines()), unit.values)
    planned = lower(specialize(done.codelet, unit.values), blocks=True)
    assert any(k.steps or k.packing is not None for k in planned.compiled_kernels)
    theirs = {plain_ptx(text) for text in targets.ptx("numba-cuda", planned, "sm_90").split(".version")[1:]}
    own = {plain_ptx(made.ptx(k, s, "sm_90").partition(".version")[2]) for k, s in made.SIGNATURES.items()}
    assert theirs <= own
    for k, signature in made.SIGNATURES.items():
        assert made.entry_of(made.cubin(k, signature, "sm_90"), k.__name__)


@pytest.fixture
def gpu(tmp_path: Path) -> SimpleNamespace:
    """The module on a GPU of 132 multiprocessors that is not there; so many blocks fit one of them."""
    if not cross_check.CUDA:
        pytest.skip("needs the package numba-cuda")
    tools = importlib.import_module("tests.helpers.fake_cuda_driver")
    db = synthetic_database.keep(
        tmp_path / "db", synthetic_database.context(load(STEPS), {"t": 5, "n": 70}), {"": 9.0, LINES: 5.0}
    )
    made = imported(written(tmp_path, STEPS, db))
    driver = tools.install(made)
    found = SimpleNamespace(made=made, driver=driver, tools=tools, fit=2)

    def cooperative(kernel: Any, *rest: Any) -> tuple[Any]:
        driver.log.append(tools.Launched(kernel, rest[:3], rest[3:6], rest[7], rest[8]))
        return (tools.OK,)

    driver.cuLaunchCooperativeKernel = cooperative
    driver.cuOccupancyMaxActiveBlocksPerMultiprocessor = lambda kernel, threads, shared: (tools.OK, found.fit)
    return found


def test_all_blocks_are_launched_together(gpu: SimpleNamespace) -> None:
    """Two on each multiprocessor, on the caller's stream; the counter is zero before, and waited for."""
    array = gpu.tools.DeviceArray
    for pointer in (4096, 8192):
        gpu.made.waves(5, 70, array((70,), pointer=pointer), array((70,), pointer=pointer + 512), stream=7)
    first, second = gpu.driver.launched
    assert (first.grid, first.block, first.stream) == ((264, 1, 1), (32, 1, 1), 7)
    assert second.grid == first.grid
    (((zeroed, _, size, _),),) = [gpu.driver.calls("cuMemsetD8Async")]
    assert size == 8
    assert gpu.tools.words(second, 21)[4::7] == [8192, 8704, zeroed]
    assert gpu.driver.calls("cuStreamSynchronize")


def test_where_they_do_not_fit_the_default_is_launched(gpu: SimpleNamespace) -> None:
    """As where a grid has too many blocks: a call never waits for blocks that cannot begin."""
    gpu.fit = 1
    array = gpu.tools.DeviceArray
    with pytest.warns(UserWarning, match="waves"):
        gpu.made.waves(5, 70, array((70,)), array((70,)))
    assert len(gpu.driver.launched) == 10
    assert {launch.grid for launch in gpu.driver.launched} == {(1, 1, 1)}
