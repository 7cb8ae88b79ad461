"""Threads of a CPU wait for each other actively for a while that they lose if others use the cores, and not longer."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from looptune.backends.numba_cpu.openmp_layer import SPINS

LOADED = """
import os
from pathlib import Path
from looptune.backends.numba_cpu.backend import NumbaCpu
NumbaCpu(Path("."))
import numba
numba.get_num_threads()
assert os.environ.get("GOMP_SPINCOUNT") == {!r}, "the environment is as it was"
"""


@pytest.mark.skipif(sys.platform != "linux", reason="Numba's layer is GNU's on Linux")
@pytest.mark.parametrize(("given", "spins"), [(None, SPINS), ("77", "77")])
def test_threads_wait_actively_for_a_while(given: str | None, spins: str) -> None:
    """Libgomp says what it was told when it was loaded; the user's own choice stands."""
    pytest.importorskip("numba.np.ufunc.omppool")
    env = {k: v for k, v in os.environ.items() if k not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
    env |= {"OMP_DISPLAY_ENV": "verbose"} | ({} if given is None else {"GOMP_SPINCOUNT": given})
    done = subprocess.run([sys.executable, "-c", LOADED.format(given)], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    said = [line.split("=")[1].strip(" '") for line in done.stderr.splitlines() if "GOMP_SPINCOUNT" in line]
    assert said == [spins] or "OPENMP DISPLAY ENVIRONMENT BEGIN" not in done.stderr
