"""What a kernel is called with, whatever writes and launches it: flat arrays, then scalars of these types."""

from __future__ import annotations

from looptune.ir import Array, Scalar, Var
from looptune.plans import Plan


def extent_names(plan: Plan) -> set[str]:
    """int parameters that are an array's extent, and therefore positive: they are passed as uint32."""
    shapes = [e for p in plan.codelet.params if isinstance(p, Array) for e in p.shape]
    return {e.name for e in shapes if isinstance(e, Var) and e.dtype == "int32"}


def scalar_type(plan: Plan, name: str) -> str:
    """The type in which a scalar parameter, or a host loop's variable, is passed to a kernel."""
    if name in extent_names(plan):
        return "uint32"
    known = {p.name for p in plan.codelet.params if isinstance(p, Scalar)}
    return plan.dtype(name) if name in known else "int64"
