"""Splitat: a loop becomes several, one after the other, at values of its variable (index-set splitting).

    for i in 0..n: S(i)     ==>     for i in 0..k: S(i)                    splitat k, k + 1
                                    for i in k..k+1: S(i)
                                    for i in k+1..n: S(i)

A value is a sum of multiples of the loops around, sizes and numbers. ``splitat 1`` peels off what runs before i = 1.
The pieces are loops 2.1, 2.2, ... of loop 2; a piece that is empty at some size runs nothing there.

Legal when: always. Gain: pieces without the dependence or the condition of one iteration. Cost: code size, launches.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

from looptune.core.errors import DirectiveError
from looptune.ir.nodes import Arg, Directive
from looptune.poly.isl_objects import SchedulePiece
from looptune.schedule.directives.base import (
    DirectiveSite,
    Example,
    isl_conjunction,
    restrict_schedule,
    statement_names,
)
from looptune.schedule.directives.generation import (
    GeneratedNest,
    GeneratedTransform,
    generate_in_order,
    loop_values,
    read_nest,
    sum_text,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True)
class SplitAt(GeneratedTransform):
    name: ClassVar = "splitat"
    syntax: ClassVar = "splitat SUM [, SUM ...]"
    stage: ClassVar = "split"

    values: tuple[str, ...]
    """Where pieces begin, ascending: sums of multiples of the loops around, sizes and numbers."""

    @classmethod
    def parse(cls, directive: Directive) -> Self:
        values = []
        for arg in directive.args:
            match arg:
                case Arg("", (int() | str() as value,)) if not re.match(r"\d+[.eE]", str(value)):
                    values.append(str(value))
                case Arg(str(word), ()):
                    values.append(word)
                case _:
                    raise DirectiveError(f"splitat takes values such as k + 1 (syntax: {cls.syntax})", arg.span)
        if not values:
            raise DirectiveError(f"splitat needs a value (syntax: {cls.syntax})", directive.span)
        return cls(tuple(values), span=directive.span)

    def generated(self, site: DirectiveSite) -> GeneratedNest:
        nest = read_nest(site, self.name)
        order = {
            n: tuple(q for p in pieces for q in self._parts(site, p))
            for n, pieces in restrict_schedule(site.order, statement_names(site.loop)).items()
        }
        return generate_in_order(site, nest, order, self.name)

    def _parts(self, site: DirectiveSite, piece: SchedulePiece) -> Iterator[SchedulePiece]:
        p, known = site.depth, loop_values(site, (), piece)
        what = f"neither a loop around loop {site.loop.var} nor a size"
        points = [sum_text(site, self.name, v, known, what) for v in self.values]
        place, value = int(piece.time[p - 1]), piece.time[p]
        for k in range(len(points) + 1):
            within = [f"{value} >= {at}" for at in points[:k]] + [f"{value} < {at}" for at in points[k : k + 1]]
            when = " and ".join(within)
            yield SchedulePiece(
                (*piece.time[: p - 1], str(place + k), *piece.time[p:]), isl_conjunction(piece.when, when)
            )


_COPY = "for (int i = 0; i < n; i++)\n    B[i] = A[i];"
_ALL = """for (int k = 0; k < n; k++)
    #pragma hmppcg splitat k, k + 1
    for (int i = 0; i < n; i++)
      B[i] += A[k];"""

SplitAt.examples = {
    "splitat 1": Example(_COPY, """\
if (n >= 1) {
  B[0] = A[0];
}
for (int i = 1; i < n; i++) {
  B[i] = A[i];
}"""),
    "splitat k, k + 1": Example(_ALL, """\
for (int k = 0; k < n; k++) {
  for (int i = 0; i < k; i++) {
    B[i] += A[k];
  }
  B[k] += A[k];
  for (int i = k + 1; i < n; i++) {
    B[i] += A[k];
  }
}"""),
    "splitat j": Example(_COPY, refused="j is neither a loop around loop i nor a size"),
    "splitat": Example(_COPY, refused="splitat needs a value"),
}  # fmt: skip
