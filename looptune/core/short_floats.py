"""bfloat16 in NumPy, whose own types do not have it: ml_dtypes registers it under its name.

Its values have the range of float32 and 8 bits. NumPy counts it among the types of unknown kind, and ml_dtypes rounds
a double to float32 first. Modules that looptune builds contain a copy of this file, which imports only NumPy.
"""

from __future__ import annotations

import numpy as np

BFLOAT = "bfloat16"
SHORT_EPS = {"float16": 2.0**-10, BFLOAT: 2.0**-7}
"""The distance from 1 to the next number, of the floats of 16 bits."""


def is_float(dtype: np.dtype) -> bool:
    """Tell whether elements of the type are floats, bfloat16 included."""
    return dtype.kind == "f" or dtype.name == BFLOAT


def type_of(typestr: str) -> np.dtype:
    """Return the type that an array interface names; that of bfloat16 is two bytes, as ml_dtypes has it.

    >>> type_of("<f4"), type_of("<V4")
    (dtype('float32'), dtype('V4'))
    """
    return np.dtype(BFLOAT if typestr == "<V2" else typestr)


def rounded(value: float, dtype: str) -> float:
    """Return the number that a variable of a float type has after ``value`` was assigned to it, rounded once.

    >>> rounded(1 + 2**-8 + 2**-40, "bfloat16"), rounded(1 + 2**-8, "bfloat16"), rounded(0.1, "float16")
    (1.0078125, 1.0, 0.0999755859375)
    """
    with np.errstate(over="ignore"):
        if dtype != BFLOAT:
            return float(np.dtype(dtype).type(value))
        near = np.float32(value)
    bits = int(near.view(np.uint32))
    if np.isnan(near):
        return value
    if float(near) != value and (np.isfinite(near) or np.isfinite(value)):
        # Toward zero, and the last bit says that something was cut off: it rounds to the same 8 bits.
        bits = (bits - (abs(float(near)) > abs(value))) | 1
    bits += 0x7FFF + (bits >> 16 & 1)
    return float(np.uint32(bits & 0xFFFF0000).view(np.float32))
