"""The parameters of a kernel, whichever backend writes and launches it: flat arrays, then scalars of these types."""

from __future__ import annotations

from collections.abc import Collection

from looptune.ir.intervals import never_negative
from looptune.ir.nodes import SHORT_FLOATS, Array, Scalar, Var, promoted_type
from looptune.lower.plan import Plan, host_loops


def extent_names(plan: Plan) -> set[str]:
    """Return the int parameters that are an array's extent, and therefore not negative: they are passed as uint32."""
    return extents(plan, ("int32",))


def extents(plan: Plan, dtypes: Collection[str] = ("int32", "uint32", "uint64")) -> set[str]:
    """Return the parameters of these types that are extents of arrays."""
    shapes = [e for p in plan.codelet.params if isinstance(p, Array) for e in p.shape]
    return {e.name for e in shapes if isinstance(e, Var) and e.dtype in dtypes}


def counters(plan: Plan) -> set[str]:
    """Return the variables of host loops that start at 0 or more; they are passed as uint32."""
    found: dict[str, bool] = {}
    for loop in host_loops(plan.steps):  # outer ones first: an inner one may start from their variables
        known = extent_names(plan) | {v for v, fine in found.items() if fine}
        counts = loop.lo.dtype == "int32" and never_negative(loop.lo, known)
        found[loop.var] = counts and found.get(loop.var, True)
    return {var for var, fine in found.items() if fine} - {p.name for p in plan.codelet.params}


def scalar_type(plan: Plan, name: str) -> str:
    """Return the type in which a scalar parameter, or a host loop's variable, is passed to a kernel."""
    known = {p.name for p in plan.codelet.params if isinstance(p, Scalar)}
    if name in extent_names(plan) or (name not in known and name in counters(plan)):
        return "uint32"
    return promoted_type(plan.dtype(name)) if name in known else "int64"


def half_scalars(plan: Plan) -> dict[str, str]:
    """Return the parameters that are floats of 16 bits, with their types.

    They are passed as floats, and rounded where a kernel uses them.
    """
    scalars = (p for p in plan.codelet.params if isinstance(p, Scalar))
    return {p.name: p.dtype for p in scalars if p.dtype in SHORT_FLOATS}
