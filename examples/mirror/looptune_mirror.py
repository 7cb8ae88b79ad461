"""Mirror: a loop runs from its last iteration to its first.

    for i in 0..n: S(i)    ==>    for i in 0..n: S(n - 1 - i)

Legal when: the loop carries no dependence. Gain: after a loop over the same array, it begins with data that are still
in the cache. Cost: none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from looptune.ir.nodes import Const, Directive, Var
from looptune.ir.simplify import sub
from looptune.poly.scop import SchedulePiece
from looptune.schedule.directives.base import (
    DirectiveSite,
    Example,
    NewSchedule,
    Rewrite,
    Transform,
    iteration_body,
    reject_arguments,
    restrict_schedule,
    statement_names,
    trip_count,
)


@dataclass(frozen=True)
class Mirror(Transform):
    name: ClassVar = "mirror"
    syntax: ClassVar = "mirror"
    stage: ClassVar = "loop"

    @classmethod
    def parse(cls, directive: Directive) -> Self:
        reject_arguments(directive)
        return cls(span=directive.span)

    def schedule(self, site: DirectiveSite) -> NewSchedule:
        """Return the order in which the time of each statement counts down where it counted up."""
        p = site.depth

        def reversed_(piece: SchedulePiece) -> SchedulePiece:
            return replace(piece, time=(*piece.time[:p], f"-({piece.time[p]})", *piece.time[p + 1 :]))

        inside = restrict_schedule(site.order, statement_names(site.loop.body))
        return NewSchedule({name: tuple(map(reversed_, pieces)) for name, pieces in inside.items()}, p + 1)

    def apply(self, site: DirectiveSite) -> Rewrite:
        loop = site.loop
        last = sub(trip_count(loop), Const(1, loop.dtype))
        body = iteration_body(loop, sub(last, Var(loop.var, loop.dtype)))
        return Rewrite((replace(loop, lo=Const(0, loop.dtype), hi=trip_count(loop), step=1, body=body),))


Mirror.examples = {
    "mirror": Example("for (int i = 0; i < n; i++)\n    B[i] = A[i];", """\
for (int i = 0; i < n; i++) {
  B[n - 1 - i] = A[n - 1 - i];
}"""),
    "Mirror": Example("for (int i = 1; i < n; i++)\n    A[i] = A[i - 1];", refused="must run before"),
}  # fmt: skip
