"""Compare results on the device: only a count for each lane comes back, not the arrays.

    bad[b] = how many x of lane b have not |got[x] - want[x]| <= allowed[x]          for integers: not equal

A NaN is within no tolerance, so that results with a value that is not finite are judged on the host. The kernel is an
ordinary codelet; a lane has strided elements on a GPU, and consecutive ones on a CPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from looptune.backends.base import Backend, Program
from looptune.core.short_floats import SHORT_EPS, is_float
from looptune.frontend import load
from looptune.ir.c_printer import C_TYPES
from looptune.lower.pipeline import lower
from looptune.runtime.device import Device
from looptune.runtime.tolerance import NOTHING
from looptune.runtime.verification import ReferenceComparison
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule

if TYPE_CHECKING:
    from looptune.lower.plan import Plan

LANES = 65536
"""Of a GPU: enough to fill one."""
MOST = 2**31 - LANES - 1
"""Elements that an int counts; larger arrays are compared in pieces."""
_TEXT = """
void off(int n, int lanes, int rows, TYPE got[n], TYPE want[n], TYPE allowed[n], int bad[lanes]) {
  #pragma looptune parallel
  for (int b = 0; b < lanes; b++) {
    int count = 0;
    #pragma looptune noParallel
    for (int j = 0; j < rows; j++)
      if (AT < n) if (BAD) count = count + 1;
    bad[b] = count;
  }
}
"""


def comparison_plan(dtype: str, gpu: bool) -> Plan:
    """Return the comparison kernel for arrays of one type and any length."""
    distances = dict.fromkeys((*SHORT_EPS, "float32"), "fabsf(got[AT] - want[AT])")
    distance = (distances | {"float64": "fabs(got[AT] - want[AT])"}).get(dtype)
    bad = "got[AT] != want[AT]" if distance is None else f"!({distance} <= allowed[AT])"
    text = _TEXT.replace("BAD", bad).replace("AT", "j * lanes + b" if gpu else "b * rows + j")
    codelet = load(text.replace("TYPE", C_TYPES[dtype])).codelet
    return lower(schedule(Analysis(codelet)).codelet, "", blocks=gpu)


@dataclass(slots=True)
class Comparison:
    """The comparison with ``judge``, whose expected values and tolerances are on the device.

    The judge on the host is asked only if a lane of an array is bad.
    """

    machine: Device
    backend: Backend
    judge: ReferenceComparison
    _programs: dict[str, Program] = field(init=False, default_factory=dict)
    _placed: dict[str, dict[str, Any]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Built, and tolerances worked out, before any version is waited for."""
        for dtype in sorted({want.dtype.name for want in self.judge.expected.values()} & C_TYPES.keys()):
            self._programs[dtype] = self.backend.load(self.backend.build(comparison_plan(dtype, self._gpu)))
        for name, want in self.judge.expected.items():
            if want.size and self._counts(want):
                self._held(name, want)

    def wrong(self, arrays: Mapping[str, Any], relative: Mapping[str, float] = NOTHING) -> str | None:
        """Return what is wrong with arrays on the device, or None; see ``ReferenceComparison.wrong``.

        The host compares versions that have errors which the user allows; few do.
        """
        if relative:
            return self.judge.wrong(self.fetched(arrays), relative)
        if all(self._passes(name, arrays[name]) for name in self.judge.expected):
            return None
        found = self.judge.wrong(self.fetched(arrays))
        if found is None:
            # The judge may allow more since it looked closer.
            self._placed.clear()
        return found

    def fetched(self, arrays: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Return on the host what is compared."""
        return {name: self.machine.fetch(arrays[name]) for name in self.judge.expected}

    def _passes(self, name: str, array: Any) -> bool:
        want = self.judge.expected[name]
        if not self._counts(want):
            return False
        if not want.size:
            return True
        held = {**self._held(name, want), "got": self.machine.flat(array)}
        lanes, bad = self._lanes(want), held.pop("bad")
        for start in range(0, want.size, MOST):
            count = min(MOST, want.size - start)
            piece = {key: self.machine.inside(a, start, (count,)) for key, a in held.items()}
            sizes = {"n": count, "lanes": lanes, "rows": -(-count // lanes)}
            self._programs[want.dtype.name].run({**piece, "bad": bad}, sizes, self.machine.stream)
            if self.machine.fetch(bad).any():
                return False
        return True

    def _counts(self, want: np.ndarray) -> bool:
        return want.dtype.name in self._programs

    def _held(self, name: str, want: np.ndarray) -> dict[str, Any]:
        """Return the arrays on the device that the comparison kernel takes besides the result."""
        if name not in self._placed:
            placed = {"want": self.machine.place(want.reshape(-1))}
            exact = not is_float(want.dtype)
            placed["allowed"] = placed["want"] if exact else self.machine.place(self.judge.allowed(name).reshape(-1))
            self._placed[name] = placed | {"bad": self.machine.place(np.zeros(self._lanes(want), np.int32))}
        return self._placed[name]

    def _lanes(self, want: np.ndarray) -> int:
        return min(want.size, LANES if self._gpu else 4 * self.machine.facts.cores)

    @property
    def _gpu(self) -> bool:
        return self.machine.facts.target == "numba-cuda"
