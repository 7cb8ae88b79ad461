"""C's arithmetic types on this kind of machine (LP64, char signed), and what they can hold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Type:
    """``spelling`` in C and ``dtype`` in NumPy; ``rank`` orders the types for the usual arithmetic conversions."""

    spelling: str
    dtype: str
    rank: int

    @property
    def is_float(self) -> bool:
        return self.dtype.startswith("f")

    @property
    def signed(self) -> bool:
        return not self.dtype.startswith(("u", "b"))

    @property
    def bits(self) -> int:
        return 8 * np.dtype(self.dtype).itemsize

    @property
    def lo(self) -> int:
        return -(2 ** (self.bits - 1)) if self.signed else 0

    @property
    def hi(self) -> int:
        if self.dtype == "bool":
            return 1
        return 2 ** (self.bits - self.signed) - 1


BOOL = Type("_Bool", "bool", 0)
CHAR, SCHAR, UCHAR = Type("char", "int8", 1), Type("signed char", "int8", 1), Type("unsigned char", "uint8", 1)
SHORT, USHORT = Type("short", "int16", 2), Type("unsigned short", "uint16", 2)
INT, UINT = Type("int", "int32", 3), Type("unsigned", "uint32", 3)
LONG, ULONG = Type("long", "int64", 4), Type("unsigned long", "uint64", 4)
LLONG, ULLONG = Type("long long", "int64", 5), Type("unsigned long long", "uint64", 5)
HALF, FLOAT, DOUBLE = Type("_Float16", "float16", 6), Type("float", "float32", 7), Type("double", "float64", 8)

INTEGERS = (BOOL, CHAR, SCHAR, UCHAR, SHORT, USHORT, INT, UINT, LONG, ULONG, LLONG, ULLONG)
ALL = (*INTEGERS, HALF, FLOAT, DOUBLE)


def promoted(t: Type) -> Type:
    """Integer promotion: what is narrower than int is an int."""
    return INT if t.rank < INT.rank else t


def common(a: Type, b: Type) -> Type:
    """The type that two operands are converted to."""
    a, b = promoted(a), promoted(b)
    if a.rank < b.rank:
        a, b = b, a
    if a.is_float or a.signed == b.signed or not a.signed or a.rank == b.rank:
        return a if a.is_float or a.rank > b.rank or not a.signed else b
    # The wider one is signed: it holds all of the other one's values only if it has more bits.
    return a if a.bits > b.bits else {LLONG: ULLONG, LONG: ULONG}[a]
