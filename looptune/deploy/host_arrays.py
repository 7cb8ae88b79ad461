"""Arrays of other libraries as NumPy arrays of the same memory.

    memoryview, bytearray, array.array, ctypes      the buffer protocol
    torch, JAX and others, in the host's memory     DLPack, or the NumPy array interface

No element is copied: what a kernel writes is in the caller's array.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from looptune.core.errors import UsageError
from looptune.core.short_floats import BFLOAT
from looptune.deploy.runtime.arguments import TORCH, tensor_memory

HOST = (1, 3, 11)
"""DLPack's numbers of the host's memory: kDLCPU, and what CUDA and ROCm pinned (kDLCUDAHost, kDLROCMHost)."""


def as_numpy(name: str, given: Any) -> Any:
    """Return ``given`` as a NumPy array of the same memory; what is no array, or on a device, stays as it is.

    UsageError, with the ``name`` of the parameter, where its library does not give the memory away.
    """
    if isinstance(given, np.ndarray):
        return given.view(np.ndarray)  # a matrix has two dimensions whatever it is reshaped to
    if isinstance(given, np.generic | int | float | list | tuple | str):
        return given
    if hasattr(given, "__cuda_array_interface__"):
        return given
    try:
        return np.asarray(memoryview(given))
    except (TypeError, ValueError, BufferError):  # it has no buffer, or one without a format that NumPy knows
        pass
    if not hasattr(given, "__dlpack_device__"):
        return given
    try:
        if int(given.__dlpack_device__()[0]) not in HOST:
            return given
        kind = str(getattr(given, "dtype", ""))
        if kind == TORCH[BFLOAT]:
            if given.requires_grad:
                raise ValueError("it requires grad: pass its .detach()")
            return tensor_memory(given)
        # NumPy does not know this type of DLPack's; what JAX gives is read-only.
        found = np.asarray(given) if kind == BFLOAT else np.from_dlpack(given)
        # Before version 2.1 NumPy made all of these read-only; the interface of NumPy says what is so.
        return found if found.flags.writeable or not hasattr(given, "__array__") else _by_interface(given, found)
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        of = f"{type(given).__module__}.{type(given).__qualname__}"
        why = "".join(str(error).splitlines()[:1])
        raise UsageError(f"{name}: {of} does not share its memory: {why}") from None


def _by_interface(given: Any, read_only: np.ndarray) -> np.ndarray:
    """Return the array through ``__array__`` if that is the same memory, else the one that can only be read."""
    found = np.asarray(given)
    same = found.ctypes.data == read_only.ctypes.data and found.shape == read_only.shape
    return found if same else read_only


def is_on_device(given: Any) -> bool:
    """Return whether this is an array that no NumPy array can share."""
    return hasattr(given, "__cuda_array_interface__") or hasattr(given, "__dlpack_device__")


def as_scalar(given: Any) -> Any:
    """Return a tensor without dimensions as the number that it holds."""
    if getattr(given, "shape", None) == () and hasattr(given, "item") and not isinstance(given, np.ndarray):
        return given.item()
    return given
