"""The order of iterations where some loops run in parallel: when one iteration surely runs before another.

for i: parallel                    S0[i] before S1[i'] only where i = i'
  S0; S1
for j: S2                          both before every S2[j]: a parallel loop ends before what follows it
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import islpy as isl

from looptune.ir.nodes import Loop, Reduction, Var

if TYPE_CHECKING:
    from looptune.poly.scop import Scop


def happens_before(model: Scop, first: str, then: str, array: str, op: str | None) -> isl.Map:
    """Return { s[iteration] -> t[iteration] : s surely runs before t }.

    Two iterations are ordered if they differ first in text or in a sequential loop. Accumulations by ``op`` into
    ``array`` have some order in the iterations of a loop that reduces them.
    """
    s, t = model.statements[first], model.statements[then]
    later = [f"{e}'" if e in t.dims else e for e in t.time]
    threads = {2 * d + 1 for d, f in enumerate(s.loops) if is_parallel(f) and not combines(f, array, op)}
    primed = tuple(f"{d}'" for d in t.dims)
    met = _map(model.space.prefix, s.dims, primed, _earlier(s.time, later, threads))
    return met.set_tuple_name(isl.dim_type.in_, s.name).set_tuple_name(isl.dim_type.out, t.name)


def _earlier(time: Sequence[str], later: Sequence[str], threads: Container[int]) -> str:
    """Return that one is before the other, as words are in a dictionary, but for the places in ``threads``."""
    cases, same = list[str](), list[str]()
    for k, (a, b) in enumerate(zip(time, later, strict=True)):
        known = int(b) - int(a) if a.isdecimal() and b.isdecimal() else None
        if k not in threads and (known is None or known > 0):
            cases.append(" and ".join([*same, f"{a} < {b}"] if known is None else same) or "true")
        if known:
            break
        if known is None:
            same.append(f"{a} = {b}")
    return " or ".join(f"({c})" for c in cases) or "false"


@lru_cache(maxsize=1024)
def _map(prefix: str, here: tuple[str, ...], there: tuple[str, ...], condition: str) -> isl.Map:
    """Return the isl map from one instance to the other under a condition."""
    return isl.Map(f"{prefix}{{ [{', '.join(here)}] -> [{', '.join(there)}] : {condition} }}")


def is_parallel(loop: object) -> bool:
    """Tell whether threads run the loop."""
    return isinstance(loop, Loop) and loop.mode in ("parallel", "thread")


def combines(loop: object, array: str, op: str | None) -> bool:
    """Tell whether the threads that run the loop combine what they have accumulated by ``op`` into ``array``."""
    return isinstance(loop, Loop) and any(reduction_key(r) == (array, op) for r in loop.reductions)


def reduction_key(r: Reduction) -> tuple[str, str]:
    """Return the name of the reduction's target and its operator."""
    return r.target.name if isinstance(r.target, Var) else r.target.array, r.op
