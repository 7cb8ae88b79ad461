"""Reverse: the iterations of a loop run in the opposite order.

    for i in 0..n: S(i)     ==>     for i in 0..n: S(n - 1 - i)

Legal when: the loop carries no dependence. Gain: fusion or a wave with a loop that counts the other way.
Cost: accesses in descending order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Self

from looptune.ir.nodes import Const, Directive
from looptune.ir.simplify import add, div, mul, sub
from looptune.schedule.directives.base import (
    DirectiveSite,
    Example,
    reject_arguments,
    restrict_schedule,
    statement_names,
)
from looptune.schedule.directives.generation import GeneratedNest, GeneratedTransform, generate_in_order, read_nest

if TYPE_CHECKING:
    from looptune.poly.scop import SchedulePiece


@dataclass(frozen=True)
class Reverse(GeneratedTransform):
    name: ClassVar = "reverse"
    syntax: ClassVar = "reverse"
    stage: ClassVar = "nest"

    @classmethod
    def parse(cls, directive: Directive) -> Self:
        reject_arguments(directive)
        return cls(span=directive.span)

    def generated(self, site: DirectiveSite) -> GeneratedNest:
        loop, p = site.loop, site.depth
        step = Const(loop.step, loop.dtype)
        last = add(loop.lo, mul(step, div(sub(sub(loop.hi, Const(1, loop.dtype)), loop.lo), step)))
        ends = add(loop.lo, last)

        def turned(piece: SchedulePiece) -> SchedulePiece:
            return replace(
                piece, time=(*piece.time[:p], f"({site.bound(ends, piece)} - {piece.time[p]})", *piece.time[p + 1 :])
            )

        order = restrict_schedule(site.order, statement_names(loop))
        return generate_in_order(
            site, read_nest(site, self.name), {n: tuple(map(turned, ps)) for n, ps in order.items()}, self.name
        )


_COPY = "for (int i = 0; i < n; i++)\n    B[i] = A[i];"
_SCAN = "for (int i = 1; i < n; i++)\n    A[i] += A[i - 1];"

Reverse.examples = {
    "reverse": Example(_COPY, """\
for (int i = 0; i < n; i++) {
  B[n - i - 1] = A[n - i - 1];
}"""),
    "Reverse": Example(_SCAN, refused="must run before"),
    "reverse i": Example(_COPY, refused="reverse takes no argument"),
}  # fmt: skip
