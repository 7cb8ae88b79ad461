"""A tuned function in Numba's CUDA simulator (NUMBA_ENABLE_CUDASIM=1): NumPy arrays, Numba's launches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import cuda

from looptune.core.short_floats import BFLOAT
from looptune.deploy.runtime.arguments import Parameter, Shape, number, on_host
from looptune.deploy.runtime.function import Function, in_order
from looptune.deploy.runtime.lookup import Device


class Simulated(Function):
    """A tuned function in Numba's CUDA simulator."""

    def __call__(
        self, ints: tuple[Any, ...], floats: tuple[Any, ...], arrays: tuple[Any, ...], stream: Any = None
    ) -> None:
        values = self.values(ints)
        hosts = [on_host(p, a, s) for p, a, s in zip(self.arrays, arrays, self.shapes(values), strict=True)]
        self.check_memory(self.reach(values), [(host.ctypes.data, host.size) for host in hosts])
        placed = [cuda.to_device(_as_compiled(np.array(host, order="C")).reshape(-1)) for host in hosts]
        real = [number(p, value) for p, value in zip(self.floats, floats, strict=True)]
        params = in_order(self.tuned.params, values, real, placed)
        match = self.match(ints)
        self.warn(match, self.device(), values, 3)
        self.tuned.plans[match.plan].launches(self._launch, self._new, *params)
        for p, host, array in zip(self.arrays, hosts, placed, strict=True):
            if p.written:
                host[...] = array.copy_to_host().view(host.dtype).reshape(host.shape)

    def _new(self, count: int, dtype: str, zeros: bool = False, flag: bool = False) -> Any:
        made = cuda.to_device(np.zeros(count, dtype)) if zeros else cuda.device_array(count, dtype)
        return (made, lambda: bool(made.copy_to_host()[0])) if flag else made

    def _launch(
        self, kernel: Any, grid: Sequence[int] | int, block: Sequence[int], *args: Any, beside: bool = False
    ) -> None:
        """Run a kernel; one runs at a time, also ``beside`` another one."""
        named = zip(self.tuned.signatures[kernel], args, strict=True)
        blocks = 1 if isinstance(grid, int) else grid  # one runs at a time
        kernel[blocks, tuple(block[:3]), 0, (*block[3:], 0)[0]](
            *(a if "[" in t else np.dtype(t).type(a) for t, a in named)
        )

    def device(self) -> Device:
        return Device("simulator", 0, "")

    def copied(self, p: Parameter, array: Any, shape: Shape, stream: Any) -> np.ndarray:
        return np.array(on_host(p, array, shape), order="C")


def _as_compiled(array: np.ndarray) -> np.ndarray:
    """Return the array as kernels take it: Numba has no bfloat16, which is its 16 bits."""
    return array.view(np.uint16) if array.dtype.name == BFLOAT else array
