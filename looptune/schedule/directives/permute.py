"""Permute: give the loops of a nest a new order, outermost first.

    for i in A:                     for j in B:
      for j in B:    ==> j, i         for i in A:
        S(i, j)                         S(i, j)

A statement between two of the loops is first sunk into the inner ones, under ``if (k == first)`` if it stood before
them and ``if (k == last)`` if it stood after them. Bounds that depend on each other are generated again:

    for i in 0..n:                  for j in 0..n:
      for j in i..n: S(i, j)  ==>     for i in 0..j + 1: S(i, j)

A directive stays with its loop.

Legal when: no dependence is reversed. Gain: accesses become coalesced or contiguous, a parallel loop moves outward.
Cost: the conditions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import permutations
from typing import TYPE_CHECKING, ClassVar, Self

from looptune.core.errors import DirectiveError
from looptune.ir.nodes import Arg, Directive, Loop, While
from looptune.ir.rewrite import walk_stmts
from looptune.schedule.directives.band import Band, depending, loops_in
from looptune.schedule.directives.base import Alternative, DirectiveSite, Example, NewSchedule, Rewrite, Transform

if TYPE_CHECKING:
    from looptune.poly.scop import SchedulePiece

_ORDERS = 24
"""How many other orders are offered at the most."""


@dataclass(frozen=True)
class Permute(Transform):
    name: ClassVar = "permute"
    syntax: ClassVar = "permute LOOP, LOOP [, LOOP ...]"
    stage: ClassVar = "nest"

    loops: tuple[str, ...]

    @classmethod
    def parse(cls, directive: Directive) -> Self:
        for arg in directive.args:
            if arg.values or not arg.key:
                raise DirectiveError(f"permute takes loop names (syntax: {cls.syntax})", arg.span)
        names = tuple(a.key for a in directive.args)
        twice = next((a for k, a in enumerate(directive.args) if a.key in names[:k]), None)
        if twice is not None:
            raise DirectiveError(f"permute names loop {twice.key} twice", twice.span)
        if len(names) < 2:
            raise DirectiveError(f"permute takes at least two loops (syntax: {cls.syntax})", directive.span)
        return cls(names, span=directive.span)

    @classmethod
    def alternatives(cls, directive: Directive, loop: Loop | While) -> Iterator[Alternative]:
        """Yield other orders, those most similar to the requested one first and the present one last."""
        asked = tuple(a.key for a in directive.args)
        own = tuple(f.var for f in walk_stmts(loop) if isinstance(f, Loop) and f.var in asked)
        orders = [o for o in permutations(asked) if o not in (asked, own)][:_ORDERS]
        orders.sort(key=lambda o: -sum(a == b for a, b in zip(o, asked, strict=True)))
        for order in (*orders, own):
            now = ", which is the current order" if order == own else ""
            made = replace(directive, name=cls.name, args=tuple(map(Arg, order)))
            yield Alternative(made, text=f"`{', '.join(order)}` is legal{now}")

    def schedule(self, site: DirectiveSite) -> NewSchedule | None:
        band = self._band(site)
        if self._stays(band):
            return None
        before = site.depth

        def timed(piece: SchedulePiece, values: Mapping[str, str], place: int) -> SchedulePiece:
            middle = [x for v in self.loops for x in (values[v], "0")]
            return replace(piece, time=(*piece.time[:before], *middle[:-1], *band.inner_times(piece, place)))

        return NewSchedule({n: tuple(timed(*p) for p in pieces) for n, pieces in band.order().items()})

    def _stays(self, band: Band) -> bool:
        return self.loops == tuple(f.var for f in band.loops)

    def _band(self, site: DirectiveSite) -> Band:
        band = Band.of(site, self.loops)
        if {f.var for f in band.loops} != set(self.loops):
            named = f"permute {', '.join(self.loops)}"
            raise site.refuse(f"{named}: the loops of the nest are {', '.join(loops_in(site.loop))}")
        assigned = band.assigned()
        if assigned is not None and not self._stays(band):
            raise site.refuse(f"permute: a statement before loop {assigned[1].var} "
                              f"assigns {assigned[0]}, which bounds it")  # fmt: skip
        if not band.rectangular and not band.analysable and not self._stays(band):
            raise site.refuse(f"permute: {depending(band.loops)} in a way that cannot be analysed")
        return band

    def apply(self, site: DirectiveSite) -> Rewrite:
        band = self._band(site)
        if self._stays(band):
            return Rewrite((site.loop,))
        return Rewrite((band.reorder(self.loops),))


_COPY = "for (int i = 0; i < n; i++)\n    for (int j = 0; j < m; j++)\n      D[i][j] = F[j][i];"
_SUM = "for (int i = 0; i < n; i++) {\n    B[i] = 0;\n    for (int j = 0; j < m; j++)\n      B[i] += D[i][j];\n  }"
_UPPER = "for (int i = 0; i < n; i++)\n    for (int j = i; j < n; j++)\n      B[j] += A[i];"
_WAVE = "for (int i = 1; i < n; i++)\n    for (int j = 0; j < m - 1; j++)\n      D[i][j] = D[i - 1][j + 1];"

Permute.examples = {
    "permute j, i": Example(_COPY, """\
for (int j = 0; j < m; j++) {
  for (int i = 0; i < n; i++) {
    D[i][j] = F[j][i];
  }
}"""),
    "permute (j, i)": Example(_SUM, """\
for (int j = 0; j < (m > 1 ? m : 1); j++) {
  for (int i = 0; i < n; i++) {
    if (j == 0) {
      B[i] = 0;
    }
    if (j < m) {
      B[i] += D[i][j];
    }
  }
}"""),
    "Permute j, i": Example(_UPPER, """\
for (int j = 0; j < n; j++) {
  for (int i = 0; i < j + 1; i++) {
    B[j] += A[i];
  }
}"""),
    "permute j,i": Example(_WAVE, refused="must run before"),
}  # fmt: skip
