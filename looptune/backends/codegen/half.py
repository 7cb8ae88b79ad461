"""The floats of 16 bits in C: elements of arrays are 16 bits in memory, and floats wherever they are computed with.

    half_to_float(A[i]) * 2.0f          B[i] = half_from_float(x)          half_to_float(half_from_float(x))
    an element as a value               a value stored                     a value rounded as a variable is

Storing rounds to the nearest, ties to even, once: from a double too. On NVIDIA GPUs each function is one instruction of
PTX; for the host, which may decide by a parameter, it is integer arithmetic, as it is where there is no such
instruction. Source of the integer arithmetic: F. Giesen, "Half to float done quick", fgiesen.wordpress.com. A bfloat16
is the first 16 bits of a float: ``bfloat_to_float`` and so on.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from looptune.core.short_floats import BFLOAT
from looptune.ir.nodes import HALF

TO_FLOAT = "half_to_float"
FROM_FLOAT = "half_from_float"
FROM_DOUBLE = "half_from_wide"
BF_TO_FLOAT, BF_FROM_FLOAT, BF_FROM_DOUBLE = "bfloat_to_float", "bfloat_from_float", "bfloat_from_wide"
NAMES = (TO_FLOAT, FROM_FLOAT, FROM_DOUBLE, BF_TO_FLOAT, BF_FROM_FLOAT, BF_FROM_DOUBLE)
BITS_OF, FLOAT_OF = "bits_of_float", "float_of_bits"
"""What the functions for bfloat16 in Python call: a GPU needs its own."""


class Conversions(NamedTuple):
    """The names of the functions that convert one type: to float, from float, and from double."""

    to_float: str
    from_float: str
    from_double: str


CONVERSIONS: Mapping[str, Conversions] = MappingProxyType({
    HALF: Conversions(TO_FLOAT, FROM_FLOAT, FROM_DOUBLE),
    BFLOAT: Conversions(BF_TO_FLOAT, BF_FROM_FLOAT, BF_FROM_DOUBLE),
})  # fmt: skip

_TO_FLOAT = """\
    const unsigned int rest = (bits & 0x7fffu) << 13, sign = (bits & 0x8000u) << 16;
    const unsigned int scale = 0x77800000u;
    unsigned int found = rest | 0x7f800000u | sign;
    float value, power;
    if (rest < 0x0f800000u) {
        __builtin_memcpy(&value, &rest, 4);
        __builtin_memcpy(&power, &scale, 4);
        value *= power;
        __builtin_memcpy(&found, &value, 4);
        found |= sign;
    }
    __builtin_memcpy(&value, &found, 4);
    return value;
"""
_FROM_FLOAT = """\
    unsigned int bits;
    __builtin_memcpy(&bits, &value, 4);
    const unsigned int sign = bits >> 16 & 0x8000u;
    bits &= 0x7fffffffu;
    if (bits >= 0x47800000u) {
        return (unsigned short)(sign | (bits > 0x7f800000u ? 0x7e00u : 0x7c00u));
    }
    if (bits < 0x38800000u) {
        float sum;
        __builtin_memcpy(&sum, &bits, 4);
        sum += 0.5f;
        __builtin_memcpy(&bits, &sum, 4);
        return (unsigned short)(sign | (bits - 0x3f000000u));
    }
    bits += 0xc8000fffu + (bits >> 13 & 1u);
    return (unsigned short)(sign | bits >> 13);
"""
_FROM_DOUBLE = """\
    float near = (float)value;
    if (value == value && (double)near != value) {
        unsigned int bits;
        __builtin_memcpy(&bits, &near, 4);
        bits -= value > 0.0 ? (double)near > value : (double)near < value;
        bits |= 1u;
        __builtin_memcpy(&near, &bits, 4);
    }
    return half_from_float(near);
"""
"""A double becomes a float whose last bit says that something was cut off, which rounds to the same 11 bits."""
_BF_TO_FLOAT = """\
    union { unsigned int bits; float value; } wide;
    wide.bits = (unsigned int)bits << 16;
    return wide.value;
"""
_BF_FROM_FLOAT = """\
    union { float value; unsigned int bits; } wide;
    wide.value = value;
    if ((wide.bits & 0x7fffffffu) > 0x7f800000u) {
        return (unsigned short)(wide.bits >> 16 | 0x40u);
    }
    return (unsigned short)((wide.bits + 0x7fffu + (wide.bits >> 16 & 1u)) >> 16);
"""
_BF_FROM_DOUBLE = """\
    union { float value; unsigned int bits; } near;
    near.value = (float)value;
    if (value == value && (double)near.value != value) {
        near.bits -= value > 0.0 ? (double)near.value > value : (double)near.value < value;
        near.bits |= 1u;
    }
    return bfloat_from_float(near.value);
"""

_ASM = """\
    {kind} {name};
    asm("cvt.{types} %0, %1;" : "={result}"({name}) : "{given}"({parameter}));
    return {name};
"""
_PTX: Mapping[str, str] = MappingProxyType({
    TO_FLOAT: _ASM.format(
        kind="float", name="value", types="f32.f16", result="f", given="h", parameter="bits"),
    FROM_FLOAT: _ASM.format(
        kind="unsigned short", name="bits", types="rn.f16.f32", result="h", given="f", parameter="value"),
    FROM_DOUBLE: _ASM.format(
        kind="unsigned short", name="bits", types="rn.f16.f64", result="h", given="d", parameter="value"),
    BF_FROM_FLOAT: _ASM.format(
        kind="unsigned short", name="bits", types="rn.bf16.f32", result="h", given="f", parameter="value"),
})  # fmt: skip
_FROM_NUMBER = """\
    const _Float16 half = (_Float16)value;
    unsigned short bits;
    __builtin_memcpy(&bits, &half, 2);
    return bits;
"""
_AMD: Mapping[str, str] = MappingProxyType({
    TO_FLOAT: "    _Float16 half;\n    __builtin_memcpy(&half, &bits, 2);\n    return (float)half;\n",
    FROM_FLOAT: _FROM_NUMBER, FROM_DOUBLE: _FROM_NUMBER,
})  # fmt: skip
_HEADS: Mapping[str, tuple[str, str]] = MappingProxyType({
    TO_FLOAT: ("float", "unsigned short bits"), FROM_FLOAT: ("unsigned short", "float value"),
    FROM_DOUBLE: ("unsigned short", "double value"), BF_TO_FLOAT: ("float", "unsigned short bits"),
    BF_FROM_FLOAT: ("unsigned short", "float value"), BF_FROM_DOUBLE: ("unsigned short", "double value"),
})  # fmt: skip
_BODIES: Mapping[str, str] = MappingProxyType({
    TO_FLOAT: _TO_FLOAT, FROM_FLOAT: _FROM_FLOAT, FROM_DOUBLE: _FROM_DOUBLE,
    BF_TO_FLOAT: _BF_TO_FLOAT, BF_FROM_FLOAT: _BF_FROM_FLOAT, BF_FROM_DOUBLE: _BF_FROM_DOUBLE,
})  # fmt: skip
_OPENCL: Mapping[str, str] = MappingProxyType({
    TO_FLOAT: "inline float half_to_float(ushort bits)\n{\n    return vload_half(0, (const half *)&bits);\n}\n",
    **{
        name: f"inline ushort {name}({kind} value)\n{{\n    ushort bits;\n"
        "    vstore_half_rte(value, 0, (half *)&bits);\n    return bits;\n}\n"
        for name, kind in ((FROM_FLOAT, "float"), (FROM_DOUBLE, "double"))
    },
    **{
        name: f"inline {_HEADS[name][0]} {name}({_HEADS[name][1]})\n{{\n{_BODIES[name]}}}\n".replace(
            "unsigned short", "ushort"
        )
        for name in (BF_TO_FLOAT, BF_FROM_FLOAT, BF_FROM_DOUBLE)
    },
})  # fmt: skip


PYTHON: Mapping[str, str] = MappingProxyType({
    TO_FLOAT: """\
def half_to_float(bits):
    rest = uint32(uint32(uint32(bits) & uint32(0x7FFF)) << uint32(13))
    found = uint32(rest | uint32(0x7F800000))
    if rest < uint32(0x0F800000):
        found = np.float32(np.uint32(rest).view(np.float32) * np.uint32(0x77800000).view(np.float32)).view(np.uint32)
    return np.uint32(found | uint32(uint32(uint32(bits) & uint32(0x8000)) << uint32(16))).view(np.float32)
""",
    FROM_FLOAT: """\
def half_from_float(value):
    bits = np.float32(value).view(np.uint32)
    sign = uint32(uint32(bits >> uint32(16)) & uint32(0x8000))
    bits = uint32(bits & uint32(0x7FFFFFFF))
    if bits >= uint32(0x47800000):
        return uint16(sign | (uint32(0x7E00) if bits > uint32(0x7F800000) else uint32(0x7C00)))
    if bits < uint32(0x38800000):
        total = np.float32(np.uint32(bits).view(np.float32) + float32(0.5)).view(np.uint32)
        return uint16(sign | uint32(total - uint32(0x3F000000)))
    bits = uint32(bits + uint32(0xC8000FFF) + uint32(uint32(bits >> uint32(13)) & uint32(1)))
    return uint16(sign | uint32(bits >> uint32(13)))
""",
    FROM_DOUBLE: """\
def half_from_wide(value):
    near = float32(value)
    if value == value and float64(near) != value:
        bits = np.float32(near).view(np.uint32)
        if (float64(near) > value) == (value > 0.0):
            bits = uint32(bits - uint32(1))
        near = np.uint32(bits | uint32(1)).view(np.float32)
    return half_from_float(near)
""",
    BITS_OF: """\
def bits_of_float(value):
    return np.float32(value).view(np.uint32)
""",
    FLOAT_OF: """\
def float_of_bits(bits):
    return np.uint32(bits).view(np.float32)
""",
    BF_TO_FLOAT: """\
def bfloat_to_float(bits):
    return float_of_bits(uint32(uint32(bits) << uint32(16)))
""",
    BF_FROM_FLOAT: """\
def bfloat_from_float(value):
    bits = bits_of_float(float32(value))
    if uint32(bits & uint32(0x7FFFFFFF)) > uint32(0x7F800000):
        return uint16(uint32(bits >> uint32(16)) | uint32(0x40))
    last = uint32(uint32(bits >> uint32(16)) & uint32(1))
    return uint16(uint32(uint32(bits + uint32(0x7FFF)) + last) >> uint32(16))
""",
    BF_FROM_DOUBLE: """\
def bfloat_from_wide(value):
    near = float32(value)
    if value == value and float64(near) != value:
        bits = bits_of_float(near)
        if (float64(near) > value) == (value > 0.0):
            bits = uint32(bits - uint32(1))
        near = float_of_bits(uint32(bits | uint32(1)))
    return bfloat_from_float(near)
""",
})  # fmt: skip
"""The functions for Numba, where these floats are uint16: on a CPU all, on a GPU those for bfloat16."""


def needed(name: str) -> tuple[str, ...]:
    """Return the functions in C that one of NAMES consists of, in the order of their definitions."""
    return {FROM_DOUBLE: (FROM_FLOAT, name), BF_FROM_DOUBLE: (BF_FROM_FLOAT, name)}.get(name, (name,))


def needed_in_python(name: str) -> tuple[str, ...]:
    """Return the functions in Python that one of NAMES consists of."""
    casts = {BF_TO_FLOAT: (FLOAT_OF,), BF_FROM_FLOAT: (BITS_OF,), BF_FROM_DOUBLE: (BITS_OF, FLOAT_OF)}
    return (*casts.get(name, ()), *needed(name))


def for_cuda(name: str) -> str:
    """Return the definition of one of NAMES in CUDA C."""
    if name == BF_FROM_FLOAT:
        return _on_both(name, "defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800", _PTX[name])
    return _on_both(name, "defined(__CUDA_ARCH__)", _PTX[name]) if name in _PTX else _of_both(name)


def for_hip(name: str) -> str:
    """Return the definition of one of NAMES in HIP C++, in which a GPU has ``_Float16``."""
    return _on_both(name, "defined(__HIP_DEVICE_COMPILE__)", _AMD[name]) if name in _AMD else _of_both(name)


def for_host(name: str) -> str:
    """Return the definition of one of NAMES in C for a processor."""
    result, parameter = _HEADS[name]
    return f"static inline {result} {name}({parameter})\n{{\n{_BODIES[name]}}}\n"


def _on_both(name: str, device: str, body: str) -> str:
    """Return a function for the host and for a device, on which the preprocessor's condition ``device`` holds."""
    return _of_both(name, f"#if {device}\n{body}#else\n{_BODIES[name]}#endif\n")


def _of_both(name: str, body: str = "") -> str:
    """Return a function for the host and for a device, with the same arithmetic unless ``body`` is given."""
    result, parameter = _HEADS[name]
    head = f"__host__ __device__ __forceinline__ {result} {name}({parameter})"
    return f"{head}\n{{\n{body if body else _BODIES[name]}}}\n"


def for_opencl(name: str) -> str:
    """Return the definition of one of NAMES in OpenCL C, which converts halves in memory without an extension."""
    return _OPENCL[name]
