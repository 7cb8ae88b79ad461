"""Deployed modules on a real GPU: arrays of every library, streams, graphs, what a call costs the host.

python -m pytest tests/deploy/test_build_on_gpu.py -s
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from looptune.deploy import build
from looptune.frontend import Unit, load
from looptune.runtime import targets
from tests.helpers import synthetic_database
from tests.helpers.built_modules import GEMM, imported
from tests.helpers.codelets import STEPS

MISSING = targets.gpu_missing()
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(bool(MISSING), reason=f"no GPU: {MISSING}")]
N = 192
STAGED = (
    "loop i: unroll 4, jam\nloop j: unroll 4, jam\nloop k: tile k:16\nloop k: stage A, B\ncodelet: grid blocksize 16x8"
)


def here(unit: Unit, sizes: dict[str, int | float]) -> Any:
    facts = targets.devices()[0]
    return synthetic_database.context(unit, sizes, (facts.name, facts.cores, facts.arch))


@pytest.fixture(scope="module")
def gemm(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Tuned for N on this GPU, as the store says."""
    folder = tmp_path_factory.mktemp("gemm")
    unit = load(GEMM)
    db = synthetic_database.keep(
        folder / "db", here(unit, {**unit.values, "ni": N, "nj": N, "nk": N}), {"": 9.0, STAGED: 5.0}
    )
    path = folder / "gemm_tuned.py"
    path.write_text(build.as_python(unit, db, "numba-cuda", "looptune build"))
    return imported(path)


def matrices(n: int = N) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)
    a, b, c = (rng.random((n, n), dtype=np.float32) for _ in range(3))
    return a, b, c, 1.5 * a @ b + 0.5 * c


@pytest.mark.parametrize("n", [N, 100, 1])
def test_numpy_arrays(gemm: Any, n: int) -> None:
    """With sizes as constants and without; checked against the original loops as well."""
    a, b, c, want = matrices(n)
    with warnings.catch_warnings():
        warnings.simplefilter("error" if n == N else "ignore")
        gemm.gemm(n, n, n, 1.5, 0.5, c, a, b, check=True)
    np.testing.assert_allclose(c, want, rtol=1e-4)
    assert gemm.match(n, n, n).level == ("exact" if n == N else "same device")


def test_cupy_arrays_and_streams(gemm: Any) -> None:
    """Used where they are, on a stream of CuPy's that does not wait for the default one."""
    cupy = pytest.importorskip("cupy")
    a, b, c, want = matrices()
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        held = [cupy.asarray(x) for x in (c, a, b)]
        pointer = held[0].data.ptr
        gemm.gemm(N, N, N, 1.5, 0.5, *held, stream=stream)
        got = cupy.asnumpy(held[0])
    np.testing.assert_allclose(got, want, rtol=1e-4)
    assert held[0].data.ptr == pointer
    with stream:
        held = [cupy.asarray(x) for x in (c, a, b)]
    gemm.gemm(N, N, N, 1.5, 0.5, *held)
    with stream:
        np.testing.assert_allclose(cupy.asnumpy(held[0]), want, rtol=1e-4)


def test_torch_tensors_and_streams(gemm: Any) -> None:
    """Used where they are, on torch's stream, captured in a graph of torch's too; others are refused."""
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch has no CUDA here")
    a, b, c, want = matrices()
    held = [torch.from_numpy(x).cuda() for x in (c, a, b)]
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    gemm.gemm(N, N, N, 1.5, 0.5, *held, stream=stream)
    stream.synchronize()
    np.testing.assert_allclose(held[0].cpu().numpy(), want, rtol=1e-4)
    with pytest.raises(ValueError, match="A must be contiguous"):
        gemm.gemm(N, N, N, 1.5, 0.5, held[0], held[1].T, held[2])
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        gemm.gemm(N, N, N, 1.5, 0.5, *held, stream=stream)
    held[0].copy_(torch.from_numpy(c))
    graph.replay()
    torch.cuda.synchronize()
    np.testing.assert_allclose(held[0].cpu().numpy(), want, rtol=1e-4)


def test_many_launches(tmp_path: Path) -> None:
    """One by one, captured, replayed: each time what the loops do to the same device arrays."""
    unit = load(STEPS)
    path = tmp_path / "steps_tuned.py"
    path.write_text(build.as_python(unit, tmp_path / "none", "numba-cuda", "", default=True))
    made = imported(path)
    machine = targets.resolve("numba-cuda", tmp_path).machine()
    host = {name: np.ones(50, np.float32) for name in "xy"}
    held = {name: machine.place(a) for name, a in host.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(4):
            made.steps(20, 50, *held.values(), stream=int(machine.stream))
            made.original(20, 50, *host.values())
    for name, a in host.items():
        np.testing.assert_allclose(machine.fetch(held[name]), a, rtol=1e-4)


def test_what_a_call_costs_the_host(gemm: Any, tmp_path: Path) -> None:
    """Printed: microseconds of a call with device arrays, waiting for nothing; the result is right all the same."""
    machine = targets.resolve("numba-cuda", tmp_path).machine()
    a, b, c, want = matrices()
    held = [machine.place(x) for x in (c, a, b)]
    stream = int(machine.stream)
    gemm.gemm(N, N, N, 1.5, 0.5, *held, stream=stream)
    np.testing.assert_allclose(machine.fetch(held[0]), want, rtol=1e-4)
    start = time.perf_counter()
    for _ in range(100):
        gemm.gemm(N, N, N, 1.5, 0.5, *held, stream=stream)
    print(f"\nhost time of a call: {(time.perf_counter() - start) * 1e4:.2f} us")
    assert np.isfinite(machine.fetch(held[0])).all()
