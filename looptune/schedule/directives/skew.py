"""Skew: a loop counts from a start that moves with the loops around it.

    for t in 0..T:                          for t in 0..T:
      for i in 1..n: S(t, i)       ==>        for i in 2*t + 1 .. 2*t + n: S(t, i - 2*t)         skew i by 2*t

The order is as before. What changes is the order that ``permute``, ``wavefront`` and ``tile`` make of the loops
afterwards: dependences from (t, i) to (t + 1, i - 1) and (t + 1, i + 1) then point forward in both loops.

Legal when: always; the bounds must be analysable. Gain: loops that can be tiled, waves that run in parallel.
Cost: longer bounds and subscripts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Self

from looptune.core.errors import DirectiveError
from looptune.ir.nodes import Arg, Directive, Loop
from looptune.schedule.directives.base import (
    DirectiveSite,
    Example,
    restrict_schedule,
    statement_names,
)
from looptune.schedule.directives.generation import (
    GeneratedNest,
    GeneratedTransform,
    generate_in_order,
    loop_paths,
    loop_values,
    read_nest,
    sum_text,
)

if TYPE_CHECKING:
    from looptune.poly.scop import SchedulePiece


@dataclass(frozen=True)
class Skew(GeneratedTransform):
    name: ClassVar[str] = "skew"
    syntax: ClassVar[str] = "skew LOOP by SUM [, LOOP by SUM ...]"
    stage: ClassVar = "nest"

    amounts: tuple[tuple[str, str], ...]
    """(loop, sum of multiples of loops around it, sizes and numbers) pairs."""

    @classmethod
    def parse(cls, directive: Directive) -> Self:
        amounts: list[tuple[str, str]] = []
        for arg in directive.args:
            match arg:
                case Arg(loop, (Arg("by", (str(amount),)),)) if loop not in dict(amounts):
                    amounts.append((loop, amount))
                case Arg(loop, (Arg("by"),)):
                    raise DirectiveError(f"{cls.name} names loop {loop} twice", arg.span)
                case _:
                    raise DirectiveError(f"{cls.name} takes LOOP by SUM (syntax: {cls.syntax})", arg.span)
        if not amounts:
            raise DirectiveError(f"{cls.name} needs a loop (syntax: {cls.syntax})", directive.span)
        return cls(tuple(amounts), span=directive.span)

    def generated(self, site: DirectiveSite) -> GeneratedNest:
        nest, paths = read_nest(site, self.name), loop_paths(site.loop)
        lacking = {v for v, _ in self.amounts} - {f.var for path in paths.values() for f in path}
        if lacking:
            raise site.refuse(f"{self.name}: no loop {min(lacking)} in its nest")
        order = {
            n: tuple(self._moved(site, paths[n], p) for p in pieces)
            for n, pieces in restrict_schedule(site.order, statement_names(site.loop)).items()
        }
        return generate_in_order(site, nest, order, self.name)

    def _moved(self, site: DirectiveSite, path: tuple[Loop, ...], piece: SchedulePiece) -> SchedulePiece:
        time = list(piece.time)
        for var, amount in self.amounts:
            for k, loop in enumerate(path):
                if loop.var == var:
                    known, entry = loop_values(site, path[:k], piece), site.depth + 2 * k
                    said = f"{self.name} {var} by {amount}"
                    by = sum_text(site, said, amount, known, f"neither a loop around loop {var} nor a size")
                    time[entry] = f"({piece.time[entry]} + {by})"
        return replace(piece, time=tuple(time))


_STENCIL = """for (int i = 0; i < n; i++)
    for (int j = 1; j < m; j++)
      E[j] = E[j - 1] + E[j];"""

Skew.examples = {
    "skew j by i": Example(_STENCIL, """\
for (int i = 0; i < n; i++) {
  for (int j = i + 1; j < m + i; j++) {
    E[j - i] = E[j - i - 1] + E[j - i];
  }
}"""),
    "skew j by 2*i + 1": Example(_STENCIL, """\
for (int i = 0; i < n; i++) {
  for (int j = 2 * i + 2; j < m + 2 * i + 1; j++) {
    E[j - 2 * i - 1] = E[j - 2 * i - 2] + E[j - 2 * i - 1];
  }
}"""),
    "skew j": Example(_STENCIL, refused="skew takes LOOP by SUM"),
    "skew i by j": Example(_STENCIL, refused="j is neither a loop around loop i nor a size"),
    "skew k by i": Example(_STENCIL, refused="no loop k in its nest"),
}  # fmt: skip
