"""Names in the plan of a CPU that its backend knows: the number of cores, and operations in any order."""

from __future__ import annotations

from types import MappingProxyType

from looptune.ir.nodes import Var

CORES = Var("cores__all", "int64")
"""The number of cores, which the driver is told."""
IN_ANY_ORDER = MappingProxyType({"+": "plus_in_any_order", "-": "minus_in_any_order", "*": "times_in_any_order"})
"""By C's operator, the functions of ``backends.numba_cpu.reassociated_operations``."""
