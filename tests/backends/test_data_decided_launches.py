"""Launches of which data decide how many there are, on a made-up driver."""

from __future__ import annotations

import ctypes
from collections import OrderedDict
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("cuda.bindings")

from looptune.backends.cuda import driver, launch, program
from looptune.core.errors import UsageError
from looptune.frontend import load
from looptune.lower.machine import Machine
from looptune.lower.pipeline import finish, lower
from looptune.lower.plan import grid_function
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from tests.helpers import fake_cuda_driver

RELAX = """
void f(int n, double a[n], double b[n], double tol) {
  double err = 1;
  while (err > tol) {
    err = 0;
    for (int i = 1; i < n - 1; i++) { b[i] = 0.5 * (a[i - 1] + a[i + 1]); if (b[i] - a[i] > err) err = b[i] - a[i]; }
    for (int i = 1; i < n - 1; i++) a[i] = b[i];
  }
}
"""


class Flagged(fake_cuda_driver.Driver):
    """Each flag that is read is the next of ``flags``; the launches before it are noted with it."""

    flags: tuple[int, ...] = (1, 1, 0)

    def cuMemcpyDtoHAsync(self, target: int, source: int, nbytes: int, stream: int) -> tuple[Any]:
        asked = len(self.calls("read"))
        self.log.append(("read", source, len(self.launched)))
        ctypes.c_int32.from_address(target).value = self.flags[asked]
        return (fake_cuda_driver.OK,)


def test_a_gpus_host_reads_the_flag_between_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    """All launches before a flag is read have been made, and no graph replays them."""
    fake = Flagged()
    for module in (driver, launch, program):
        monkeypatch.setattr(module, "driver", fake)
    codelet = schedule(Analysis(load(RELAX).codelet), []).codelet
    plan = finish(lower(codelet, blocks=True), Machine(blocks=True, host_reads=True))
    entries = {k.name: k.name for k in plan.compiled_kernels}
    grids = {k.name: grid_function(k) for k in plan.compiled_kernels}
    made = SimpleNamespace(plan=plan, entries=entries, grids=grids, convention=program.CallingConvention(True, ""))
    launcher = program.PlanLauncher(made, {"n": 9}, ["a", "b"], ["tol"])
    launcher.place((64, 128), (9, 9))
    launcher.floats = (0.5,)
    launcher.step(7)
    before, relax, copy, after = entries
    passes = [relax, copy, after]
    assert [one.kernel for one in fake.launched] == [before, *passes, *passes]
    assert fake.calls("read") == [(launcher.scratch["while__holds0"].pointer, n) for n in (1, 4, 7)]
    fake.streams_capture = 1
    whole = program.CudaProgram.__new__(program.CudaProgram)
    whole.plan, whole.wide, whole.captured, whole.launchers = plan, (), set(), OrderedDict()
    monkeypatch.setattr(program.CudaProgram, "_placed", lambda *_: (launcher, (0.5,)))
    with pytest.raises(UsageError, match="cannot be captured in a CUDA graph: data decide how many launches"):
        whole.run({}, {})
