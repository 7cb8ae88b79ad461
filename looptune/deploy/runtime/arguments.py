"""The arguments of a call: the type that each parameter requires, and how an array is passed.

NumPy                        copied to the device and back
CUDA Array Interface v3      CuPy, Numba and others: used without a copy, on its ``stream``
torch                        a CUDA tensor, used without a copy
DLPack                       for arrays that have none of these interfaces
"""

from __future__ import annotations

import ctypes
import math
import operator
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from looptune.core.short_floats import BFLOAT, SHORT_EPS, rounded


class Parameter(NamedTuple):
    """A parameter of the codelet; ``array`` is False for a scalar, ``written``: the kernels change the array.

    ``rows``: in C it is an array of pointers to rows; ``size``: as an integer, it is one that kernels are compiled for.
    """

    name: str
    dtype: str
    array: bool = False
    written: bool = False
    rows: bool = False
    size: bool = True


class DeviceBuffer(NamedTuple):
    """Device memory: address, number of items, and the stream that its last writer used.

    The stream is None if there is nothing to wait for; ``owner`` keeps the memory from being freed.
    """

    pointer: int
    items: int
    stream: int | None = None
    owner: Any = None


TYPES = (
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64", "bool",
    "bfloat16",
)  # fmt: skip
# Looked up at every call: what an array says of its type, without making anything.
TYPESTR = {name: "<V2" if name == BFLOAT else np.dtype(name).str for name in TYPES}
TORCH = {name: f"torch.{name}" for name in TYPES}

Shape = tuple["int | None", ...]
"""Declared extents; None where the C text leaves the first one open."""


class ExpectedArray(NamedTuple):
    """The type, shape and number of elements (``items``) of an array argument; an extent of None is open."""

    name: str
    dtype: np.dtype
    shape: Shape
    items: int
    written: bool


class Reader(NamedTuple):
    """How arrays of one type are read.

    ``pointers`` returns the addresses of the arrays if each is exactly as expected, else None: ``on_device`` then
    examines them. ``stream`` returns the stream that their library uses in this thread; None if the library has none to
    offer.
    """

    pointers: Callable[[Sequence[ExpectedArray], Sequence[Any]], tuple[int, ...] | None]
    stream: Callable[[], int] | None = None


def expected_array(p: Parameter, shape: Shape) -> ExpectedArray:
    """Return what the parameter requires of its argument at this shape."""
    items = math.prod(n for n in shape if n is not None)
    return ExpectedArray(p.dtype, np.dtype(p.dtype), shape, items, p.written)


def reader(kind: type) -> Reader:
    """Choose how arrays of type ``kind`` are read, and store the choice in ``READERS``.

    A failed attribute look-up and the export of CuPy and torch take microseconds, so this is done once for a type.
    """
    library = kind.__module__.partition(".")[0]
    cupys = library == "cupy" and hasattr(kind, "_c_contiguous")
    known = Reader(_tensors) if hasattr(kind, "data_ptr") else Reader(_cupys, cupys_stream) if cupys else None
    found = READERS[kind] = known or Reader(lambda wanted, arrays: None)
    return found


def cupys_stream() -> int:
    """Return the current stream of CuPy."""
    return int(sys.modules["cupy"].cuda.get_current_stream().ptr)


def _tensors(wanted: Sequence[ExpectedArray], tensors: Sequence[Any]) -> tuple[int, ...] | None:
    kind, found = type(tensors[0]), []
    for (name, _, shape, _, written), tensor in zip(wanted, tensors):  # noqa: B905 (as many of each)
        if type(tensor) is not kind or not tensor.is_cuda or tensor.shape != shape or not tensor.is_contiguous():
            return None
        if _names.get(tensor.dtype) != name and _named(tensor.dtype) != name:
            return None
        if written and tensor.requires_grad:
            return None
        found.append(tensor.data_ptr())
    return tuple(found)


def _named(dtype: Any) -> str:
    _names[dtype] = str(dtype).removeprefix("torch.")
    return _names[dtype]


def _cupys(wanted: Sequence[ExpectedArray], arrays: Sequence[Any]) -> tuple[int, ...] | None:
    """Return the addresses of CuPy arrays that are as expected, or None.

    ``flags`` is not used, since it would make an object for each array.
    """
    kind, found = type(arrays[0]), []
    for (_, dtype, shape, _, _), array in zip(wanted, arrays):  # noqa: B905 (as many of each)
        if type(array) is not kind or array.dtype != dtype or array.shape != shape or not array._c_contiguous:
            return None
        found.append(array.data.ptr)
    return tuple(found)


READERS: dict[type, Reader] = {}
_names: dict[Any, str] = {}
"""Of torch's types."""


def integer(p: Parameter, given: Any) -> int:
    """Return the integer. Raises TypeError if it is not an integer, ValueError if it does not fit."""
    try:
        number = int(given) if isinstance(given, float) and given.is_integer() else operator.index(given)
    except TypeError:
        raise TypeError(f"{p.name} is an integer ({p.dtype}), got {_shown(given)}") from None
    limits = np.iinfo(p.dtype) if p.dtype != "bool" else None
    if number not in (0, 1) if limits is None else not limits.min <= number <= limits.max:
        raise ValueError(f"{p.name} has the type {p.dtype}, which {number} does not fit")
    return number


def number(p: Parameter, given: Any) -> float:
    """Return the number, rounded if it is a float of 16 bits in C. Raises TypeError if it is not a real number."""
    if type(given) is float and p.dtype not in SHORT_EPS:
        return given
    try:
        return rounded(float(given), p.dtype) if p.dtype in SHORT_EPS else float(given)
    except (TypeError, ValueError):
        raise TypeError(f"{p.name} is a number ({p.dtype}), got {_shown(given)}") from None


def on_device(p: Parameter, array: Any, shape: Shape, stream: int) -> DeviceBuffer | None:
    """Return where a device array is, or None if it is on the host; ``stream`` is the stream that will use it."""
    if hasattr(array, "data_ptr"):
        return _torch(p, array, shape)
    facts = getattr(array, "__cuda_array_interface__", None)
    if facts is not None:
        return _interface(p, facts, shape)
    if isinstance(array, np.ndarray) or not hasattr(array, "__dlpack__"):
        return None
    return _dlpack(p, array, shape, stream)


def on_host(p: Parameter, array: Any, shape: Shape) -> np.ndarray:
    """Return the array as a NumPy array that shares its memory."""
    if hasattr(array, "data_ptr") and not array.is_cuda:
        _check_grad(p, array)
        array = tensor_memory(array)
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{p.name} must be an array of {p.dtype}, got {type(array).__name__}")
    check_array(p, str(array.dtype), array.shape, shape)
    if p.written and not array.flags.writeable:
        raise ValueError(f"{p.name} is written, but the array given is read-only: pass a copy")
    if p.written and elements_overlap(array):
        raise ValueError(f"{p.name} is written, but elements of the array given share memory: pass a copy")
    return array if type(array) is np.ndarray else array.view(np.ndarray)


def tensor_memory(tensor: Any) -> np.ndarray:
    """Return a tensor of torch in the host's memory as a NumPy array of the same memory."""
    tensor = tensor.detach()
    if str(tensor.dtype) != TORCH[BFLOAT]:
        memory: np.ndarray = tensor.numpy()
        return memory
    # NumPy's array of this type is that of ml_dtypes, which torch does not know.
    bits: np.ndarray = tensor.view(sys.modules["torch"].int16).numpy()
    return bits.view(BFLOAT)


def _torch(p: Parameter, tensor: Any, shape: Shape) -> DeviceBuffer | None:
    """Read off the tensor itself: its CUDA Array Interface takes microseconds."""
    if not tensor.is_cuda:
        return None
    if str(tensor.dtype) != TORCH[p.dtype] or tensor.shape != shape:
        check_array(p, str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape), shape)
    if not tensor.is_contiguous():
        raise ValueError(f"{p.name} must be contiguous, in C's order: pass {p.name}.contiguous()")
    _check_grad(p, tensor)
    return DeviceBuffer(tensor.data_ptr(), tensor.numel())


def _check_grad(p: Parameter, tensor: Any) -> None:
    """Raise ValueError for a tensor that is written though torch would differentiate what is made of it."""
    if p.written and tensor.requires_grad:
        raise ValueError(f"{p.name} requires grad and is written in place: pass {p.name}.detach()")


def _interface(p: Parameter, facts: dict[str, Any], shape: Shape) -> DeviceBuffer:
    given, typestr = facts["shape"], facts["typestr"]
    if typestr != TYPESTR[p.dtype] or given != shape:
        check_array(p, str(np.dtype(typestr)), given, shape)
    strides = facts.get("strides")
    if strides is not None and not is_contiguous(given, strides, np.dtype(typestr).itemsize):
        raise ValueError(f"{p.name} must be contiguous, in C's order: pass a contiguous copy")
    pointer, read_only = facts["data"]
    if read_only and p.written:
        raise ValueError(f"{p.name} is written, but the array given is read-only: pass a copy")
    return DeviceBuffer(pointer, math.prod(given), facts.get("stream"))


class _Tensor(ctypes.Structure):
    """DLTensor of dlpack.h."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


_DEVICES = (2, 13)
"""kDLCUDA and kDLCUDAManaged."""


def _dlpack(p: Parameter, array: Any, shape: Shape, stream: int) -> DeviceBuffer | None:
    """Return the memory of an object that has only DLPack, or None if it is not on a GPU.

    Its library makes ``stream`` wait for the work that it has queued; 1 is DLPack's number of the default stream.
    """
    if array.__dlpack_device__()[0] not in _DEVICES:
        return None
    capsule = array.__dlpack__(stream=stream if stream else 1)
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    tensor = _Tensor.from_address(get(capsule, b"dltensor"))
    given = tuple(tensor.shape[: tensor.ndim])
    kind = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 6: "bool"}.get(tensor.code, f"type code {tensor.code} of ")
    check_array(p, f"{kind}{tensor.bits}" + (f"x{tensor.lanes}" if tensor.lanes != 1 else ""), given, shape)
    if tensor.strides and not is_contiguous(given, tuple(tensor.strides[: tensor.ndim]), 1):
        raise ValueError(f"{p.name} must be contiguous, in C's order: pass a contiguous copy")
    return DeviceBuffer((tensor.data or 0) + tensor.byte_offset, math.prod(given), None, capsule)


def check_array(p: Parameter, dtype: str, given: tuple[int, ...], shape: Shape) -> None:
    """Check the type and the shape of an array. TypeError and ValueError say what is needed."""
    if dtype != p.dtype:
        raise TypeError(f"{p.name} must be an array of {p.dtype}, got {dtype}")
    flat = len(shape) == 1 and (shape[0] is None or math.prod(given) == shape[0])
    fits = len(shape) == len(given) and all(want in (None, got) for want, got in zip(shape, given, strict=True))
    if not (flat or fits):
        declared = "".join(f"[{'' if n is None else n}]" for n in shape)
        raise ValueError(f"{p.name} must have the shape {declared}, got {list(given)}")


def elements_overlap(array: np.ndarray) -> bool:
    """Return whether elements of an array may share memory, as those of a broadcast array do.

    They do not where each stride spans all that the smaller strides reach, as in every array without elements, and in
    every slice and transpose of a contiguous array.
    """
    if not array.size:
        return False  # NumPy makes such arrays with strides of 0
    spanned = array.itemsize
    for step, n in sorted((abs(step), n) for n, step in zip(array.shape, array.strides, strict=True) if n > 1):
        if step < spanned:
            return True
        spanned += (n - 1) * step
    return False


def is_contiguous(shape: tuple[int, ...], strides: tuple[int, ...], item: int) -> bool:
    """Return whether rows follow each other without gaps; the stride of a dimension of one element does not matter."""
    if 0 in shape:
        return True
    for n, stride in zip(reversed(shape), reversed(strides), strict=True):
        if n > 1 and stride != item:
            return False
        item *= n
    return True


def _shown(given: Any) -> str:
    return f"{given!r}" if isinstance(given, int | float | np.number) else type(given).__name__
