"""When one iteration surely runs before another, where loops are run by threads, which are in no order.

for i: parallel                    S0[i] before S1[i'] only where i = i'
  S0; S1
for j: S2                          both before every S2[j]: a parallel loop ends before what follows it
"""

from __future__ import annotations

import islpy as isl

from looptune.ir import Loop, Reduced, Var
from looptune.poly.model import Model


def in_order(model: Model, first: str, then: str, array: str, op: str | None) -> isl.Map:
    """{ s[iteration] -> t[iteration] : s surely runs before t }: they differ first in text or in a sequential loop.

    Accumulations by ``op`` into ``array`` have an order, some order, in the iterations of a loop that reduces them.
    """
    s, t = model.statements[first], model.statements[then]
    later = [f"{e}'" if e in t.dims else e for e in t.time]
    threads = {2 * d + 1 for d, f in enumerate(s.loops) if unordered(f) and not reduces(f, array, op)}
    cases = (
        " and ".join([*(f"{a} = {b}" for a, b in zip(s.time[:k], later[:k], strict=True)), f"{s.time[k]} < {later[k]}"])
        for k in range(len(later)) if k not in threads
    )  # fmt: skip
    condition = " or ".join(f"({c})" for c in cases)
    primed = ", ".join(f"{d}'" for d in t.dims)
    return isl.Map(f"{model.space.prefix}{{ {model.space.instance(s)} -> {t.name}[{primed}] : {condition} }}")


def unordered(loop: object) -> bool:
    return isinstance(loop, Loop) and loop.mode in ("parallel", "thread")


def reduces(loop: object, array: str, op: str | None) -> bool:
    """The threads that run the loop join what they have accumulated by ``op`` into ``array``."""
    return isinstance(loop, Loop) and any(into(r) == (array, op) for r in loop.reduces)


def into(r: Reduced) -> tuple[str, str]:
    return r.target.name if isinstance(r.target, Var) else r.target.array, r.op
