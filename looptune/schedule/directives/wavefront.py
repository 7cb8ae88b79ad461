"""Wavefront: a nest runs wave by wave; the iterations of a wave do not depend on each other.

    for i in 1..n:                             for j in 2 .. n + m - 1:                     the wave, i + j
      for j in 1..m:                     ==>     for i in max(1, j - m + 1) .. min(n, j):   parallel
        D[i][j] = D[i-1][j] + D[i][j-1]            D[i][j - i] = ...

The wave is the sum of the loops, each times the factor after its name, 1 by default: ``wavefront t:2, i`` runs the
iterations with equal 2*t + i together. The wave's loop takes the name of the innermost loop named, the others stand
inside it in the order of the list. Statements beside the inner loops are sunk into them first, as for ``permute``.

Legal when: no dependence is reversed. Gain: parallel loops where each loop of the text carries a dependence.
Cost: waves of different lengths, accesses along diagonals, one launch for each wave on a GPU.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Self

from looptune.core.errors import DirectiveError
from looptune.schedule.directives.band import Band, loops_in
from looptune.schedule.directives.base import DirectiveSite, Example, positive
from looptune.schedule.directives.generation import GeneratedNest, GeneratedTransform, generate_in_order, read_nest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from looptune.ir.nodes import Directive
    from looptune.poly.scop import SchedulePiece


@dataclass(frozen=True)
class Wavefront(GeneratedTransform):
    name: ClassVar = "wavefront"
    syntax: ClassVar = "wavefront LOOP[:FACTOR], LOOP[:FACTOR] [, ...]"
    stage: ClassVar = "nest"

    factors: tuple[tuple[str, int], ...]
    """(loop, factor) pairs, outermost first."""

    @classmethod
    def parse(cls, directive: Directive) -> Self:
        factors: dict[str, int] = {}
        for arg in directive.args:
            if not arg.key:
                raise DirectiveError(f"wavefront takes loop names (syntax: {cls.syntax})", arg.span)
            if arg.key in factors:
                raise DirectiveError(f"wavefront names loop {arg.key} twice", arg.span)
            factors[arg.key] = positive(arg, f"factor of {arg.key}") if arg.values else 1
        if len(factors) < 2:
            raise DirectiveError(f"wavefront takes at least two loops (syntax: {cls.syntax})", directive.span)
        return cls(tuple(factors.items()), span=directive.span)

    def generated(self, site: DirectiveSite) -> GeneratedNest:
        nest, band, before = read_nest(site, self.name), self._band(site), site.depth

        def timed(piece: SchedulePiece, values: Mapping[str, str], place: int) -> SchedulePiece:
            wave = " + ".join(f"{factor}*({values[v]})" for v, factor in self.factors)
            inside = [x for v, _ in self.factors[:-1] for x in ("0", values[v])]
            return replace(piece, time=(*piece.time[:before], f"({wave})", *inside, *band.inner_times(piece, place)))

        order = {n: tuple(timed(*p) for p in pieces) for n, pieces in band.order().items()}
        return generate_in_order(site, nest, order, self.name)

    def _band(self, site: DirectiveSite) -> Band:
        band = Band.of(site, [v for v, _ in self.factors])
        if {f.var for f in band.loops} != {v for v, _ in self.factors}:
            named = f"wavefront {', '.join(v for v, _ in self.factors)}"
            raise site.refuse(f"{named}: the loops of the nest are {', '.join(loops_in(site.loop))}")
        return band


_SUMS = "for (int i = 1; i < n; i++)\n    for (int j = 1; j < m; j++)\n      D[i][j] = D[i - 1][j] + D[i][j - 1];"
_AHEAD = """for (int i = 1; i < n; i++)
    for (int j = 1; j < n - 1; j++)
      G[i][j] = G[i - 1][j + 1] + G[i][j - 1];"""
_FAR = """for (int i = 1; i < n; i++)
    for (int j = 1; j < m - 2; j++)
      D[i][j] = D[i - 1][j + 2] + D[i][j - 1];"""

Wavefront.examples = {
    "wavefront i, j": Example(_SUMS, """\
for (int j = 2; j < n + m - 1; j++) {
  for (int i = (1 > j - m + 1 ? 1 : j - m + 1); i < (n < j ? n : j); i++) {
    D[i][j - i] = D[i - 1][j - i] + D[i][j - i - 1];
  }
}"""),
    "wavefront i:2, j": Example(_AHEAD, """\
for (int j = 3; j < 3 * n - 3; j++) {
  for (int i = (1 > (n + j + 1) / 2 - n + 1 ? 1 : (n + j + 1) / 2 - n + 1); i < (n < (j + 1) / 2 ? n : (j + 1) / 2); i++) {
    G[i][j - 2 * i] = G[i - 1][j - 2 * i + 1] + G[i][j - 2 * i - 1];
  }
}"""),  # noqa: E501
    "Wavefront i, j": Example(_FAR, refused="must run before"),
    "wavefront i": Example(_SUMS, refused="at least two loops"),
    "wavefront i, k": Example(_SUMS, refused="the loops of the nest are i, j"),
}  # fmt: skip
