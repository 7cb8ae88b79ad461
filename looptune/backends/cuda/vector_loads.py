"""Loads of CUDA C from arrays that begin at multiples of 16 bytes: of elements of vectors, whose alignment is known.

    A[4 * j - 4095]        ==>    ((const float_x4 *)A)[j - 1024].e[1]

A compiler of CUDA C makes one load of 16 bytes of loads of neighbours if it knows that they are aligned. It learns that
from ``__builtin_assume`` on the array's address too, but then no longer takes the array for one that only this kernel
reads: its loads go through another cache, and stay behind earlier stores (2DCONV on an H200: 58 us, and 41 us without).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from looptune.ir.nodes import Assign, Binary, Const, Expr, Load, Var
from looptune.ir.rewrite import walk
from looptune.lower.addresses import address_parts

if TYPE_CHECKING:
    from looptune.lower.plan import Kernel

LANES: Mapping[str, int] = MappingProxyType({
    "float32": 4, "int32": 4, "uint32": 4, "float64": 2, "int64": 2, "uint64": 2
})  # fmt: skip
"""The elements of a vector of 16 bytes."""
_ANY = 1 << 31
"""Divides zero, as every number does."""


@dataclass(frozen=True, slots=True)
class VectorPlace:
    """Element number ``element`` of a vector, and the number of the vector, as in ``addresses.address_parts``."""

    base: Expr
    counted: tuple[tuple[Expr, int], ...]
    constant: int
    element: int


@dataclass(frozen=True, slots=True)
class VectorLoads:
    """The arrays of a kernel whose loads are of elements of vectors; ``divisors`` divide the kernel's positions."""

    arrays: frozenset[str] = frozenset()
    divisors: Mapping[str, int] = field(default_factory=dict)

    def place(self, load: Load) -> VectorPlace | None:
        """Return where a load is in an array of vectors, None for one that is no element of these."""
        return _place(load, self.divisors) if load.array in self.arrays else None


def vector_loads(kernel: Kernel) -> VectorLoads:
    """Return the arrays of a kernel with aligned arrays that it only reads, in places that are known to be aligned.

    None of their other loads may be of a neighbour of these.
    """
    divisors: dict[str, int] = {}
    for n in walk(kernel.body):
        match n:
            case Assign(Var(name), place) if name in kernel.positions:
                divisors[name] = math.gcd(_divisor(place, divisors), divisors.get(name, 0))
    loads: dict[str, list[Load]] = {}
    for n in walk(kernel.body):
        # Annotations keep loops as they were before arrays became flat.
        if isinstance(n, Load) and len(n.index) == 1 and n.array in kernel.arrays and n.array not in kernel.writes:
            loads.setdefault(n.array, []).append(n)
    known = {
        name: [_place(n, divisors) is not None for n in those]
        for name, those in loads.items()
        if all(_place(n, divisors) is not None or not _may_be_neighbour(n, divisors) for n in those)
    }
    return VectorLoads(frozenset(name for name, those in known.items() if any(those)), divisors)


def _place(load: Load, divisors: Mapping[str, int]) -> VectorPlace | None:
    (place,) = load.index
    base, counted, constant = address_parts(place) or (place, (), 0)
    lanes = LANES.get(load.dtype)
    if lanes is None or _divisor(base, divisors) % lanes or any(k % lanes for _, k in counted):
        return None
    return VectorPlace(base, tuple((v, k // lanes) for v, k in counted), constant // lanes, constant % lanes)


def _may_be_neighbour(load: Load, divisors: Mapping[str, int]) -> bool:
    """Tell whether a load may be of an element of a vector: it is, but for constants that are added."""
    (place,) = load.index
    match place:
        case Binary("+" | "-", rest, Const()) | Binary("+", Const(), rest):
            return _divisor(rest, divisors) % LANES.get(load.dtype, 1) == 0
    return False


def _divisor(e: Expr, divisors: Mapping[str, int]) -> int:
    """Return a number that divides the expression, also modulo 2**32 if it is a power of two."""
    match e:
        case Const(value):
            return abs(int(value)) or _ANY
        case Var(name):
            return divisors.get(name, 1)
        case Binary("+" | "-", lhs, rhs):
            return math.gcd(_divisor(lhs, divisors), _divisor(rhs, divisors))
        case Binary("*", lhs, rhs):
            return _divisor(lhs, divisors) * _divisor(rhs, divisors)
    return 1
