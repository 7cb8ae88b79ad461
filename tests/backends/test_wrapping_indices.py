"""Places and conditions of unsigned and narrow arithmetic are those of C, where it wraps by definition."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from looptune.frontend import load
from looptune.lower.pipeline import lower
from looptune.runtime import targets
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from tests.helpers import cross_check, cuda_c_on_cpu
from tests.helpers.cross_check import Arguments

TEXT = """\
void f(int n, unsigned k, unsigned long w, unsigned char c, short h, unsigned u[n], unsigned char b[n],
       int x[300], int y[300], int z[300], int q[300], int m[300], int g[300])
{
  for (unsigned i = 1; i < n; i++) {
    x[i + k] = i + 1;
    x[(i - 5u) + 5u + n] = 3;
  }
  for (int i = 1; i < n; i++) {
    y[i + k] += 2;
    y[i + (u[i] - 1u)] += 5;
    y[n + (i - 1u)] += 7;
  }
  for (unsigned long i = 2; i < n; i++) {
    z[i + w] += 2;
    z[n - i] += 4;
    z[(i - 3ul) + 1ul] += 9;
  }
  for (int i = 0; i < n; i++) {
    q[(unsigned char)(i * 3 + 254)] += 1;
    q[(unsigned char)(c + i)] += 2;
    q[(b[i] + 255) % 256 % n] += 4;
    q[-h + i] += 11;
  }
  for (int i = 0; i < n; i++) {
    m[(i + 2147483647u + 2147483649u) % 7u] += 1;
    m[(u[i] * 4294967295u + 20u) % 11u] += 2;
    m[(i - 7u) / 858993459u] += 4;
    m[(i - 7u) >> 29] += 8;
  }
  for (int i = 0; i < n; i++) {
    if (i - 3u < 4u)
      g[i] += 1;
    if ((unsigned char)(i - 1) > 100)
      g[i] += 2;
    if (-k == 1u)
      g[i] += 4;
    if (i < k)
      g[i] += 8;
    if (-1 < (long)k)
      g[i] += 16;
    g[i + n] = -k + (i > -1u) + (c - 1 < 0) + ((i < 8) && u[i]);
  }
}
"""


def arguments() -> Arguments:
    n = 12
    sizes = {"n": n, "k": 2**32 - 1, "w": 2**64 - 2, "c": 255, "h": -3}
    given = {"u": np.arange(1, n + 1, dtype=np.uint32), "b": (np.arange(n) % 3).astype(np.uint8)}
    return {**sizes, **given, **{name: np.zeros(300, np.int32) for name in "xyzqmg"}}


@pytest.mark.wide
@pytest.mark.skipif(cuda_c_on_cpu.GXX is None, reason="needs g++")
def test_places_wrap_as_in_c(tmp_path: Path) -> None:
    """The interpreter, CUDA C, the simulator and machine code store where gcc stores."""
    codelet = load(TEXT).codelet
    want = cross_check.by_gcc(TEXT, codelet, arguments(), tmp_path)
    made = lower(schedule(Analysis(codelet)).codelet)
    found = {
        "interpreter": cross_check.interpreted(codelet, arguments()),
        "cuda-c": cuda_c_on_cpu.run([cuda_c_on_cpu.Case("f", made, codelet, arguments())], tmp_path)["f"],
    }
    backend = targets.backend("numba-cuda", tmp_path)
    simulated = cross_check.simulated([cross_check.Emitted("f", backend.emit(made), "f", arguments())], tmp_path)["f"]
    assert not isinstance(simulated, str), simulated
    backend, given = targets.backend("numba-cpu", tmp_path), arguments()
    backend.load(backend.build(made)).run(cross_check.arrays(given), cross_check.scalars(given))
    for where, got in {**found, "simulator": simulated, "numba-cpu": cross_check.arrays(given)}.items():
        assert cross_check.off(want, got) is None, where
