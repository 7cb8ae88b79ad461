"""Tile: a loop becomes a loop over strips around a loop within the strip; several loops become blocks.

    for i in 0..N: S(i)    ==>   for outer_i in 0..ceil(N/T):
                                   for i in outer_i*T .. min((outer_i + 1)*T, N): S(i)

A list (``tile i:4, j:8``) on a perfect nest moves the strips' loops inward: the nest runs block by block.

Legal when: one loop always; blocks when no dependence is reversed.
Gain: reuse in cache, and in the thread where the strip is a thread's work. Cost: bounds with ``min``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from looptune.errors import DirectiveError
from looptune.ir import Const, Directive, Expr, Loop, Mode, Stmt, Var
from looptune.poly.model import Piece
from looptune.scope import names_in
from looptune.simplify import add, div, mul, smallest, sub
from looptune.transforms.base import Change, Example, Reorder, Site, Transform, fresh, only, positive, statements


@dataclass(frozen=True)
class Tile(Transform):
    name: ClassVar = "tile"
    syntax: ClassVar = "tile LOOP:SIZE [, LOOP:SIZE ...]"
    stage: ClassVar = "loop"

    sizes: tuple[tuple[str, int], ...]
    """(loop, size) pairs, outermost first; the name "" is the loop the directive stands before."""

    @classmethod
    def parse(cls, directive: Directive) -> Self:
        if not directive.args:
            raise DirectiveError(f"tile needs a size (syntax: {cls.syntax})", directive.span)
        for arg in directive.args:
            if not arg.values:
                raise DirectiveError(f"tile needs a size for '{arg.key}' (syntax: {cls.syntax})", arg.span)
        sizes = tuple((a.key, positive(a, f"tile size of {a.key}" if a.key else "tile size")) for a in directive.args)
        if len({v for v, _ in sizes}) != len(sizes):
            raise DirectiveError("tile names a loop twice", directive.span)
        return cls(sizes, span=directive.span)

    def schedule(self, site: Site) -> Reorder | None:
        band = self._band(site)
        if len(band) == 1:
            return None
        order = only(site.order, statements(site.loop.body))
        return Reorder(
            {n: tuple(self._blocked(p, site, band) for p in ps) for n, ps in order.items()}, site.depth + len(band)
        )

    def _blocked(self, piece: Piece, site: Site, band: tuple[Loop, ...]) -> Piece:
        """Time with the block of every loop of the band in front of the band's own dimensions."""
        p = site.depth
        blocks = (
            f"floor(({piece.time[p + 2 * d]} - ({site.bound(loop.lo, piece)}))/{loop.step * size})"
            for d, (loop, (_, size)) in enumerate(zip(band, self.sizes, strict=True))
        )
        return replace(piece, time=(*piece.time[:p], *blocks, *piece.time[p:]))

    def _band(self, site: Site) -> tuple[Loop, ...]:
        """The loops named, each the whole body of the one before, with bounds that do not depend on each other."""
        loop, found = site.loop, [site.loop]
        for (name, _), place in zip(self.sizes, range(len(self.sizes)), strict=True):
            if place:
                match loop.body:
                    case (Loop() as inner,):
                        loop = inner
                        found.append(loop)
                    case _:
                        raise site.refuse(
                            f"tile: loop {loop.var} holds more than loop {name}; blocking needs a perfect nest"
                        )
            if name not in ("", loop.var):
                raise site.refuse(f"tile names loop {name}, but stands before loop {loop.var}" if not place else
                                  f"tile names loop {name} where the nest has loop {loop.var}")  # fmt: skip
        inside = {f.var for f in found}
        bound = next((f for f in found if names_in((f.lo, f.hi)) & inside), None)
        if bound is not None and len(found) > 1:
            raise site.refuse(f"tile: the bounds of loop {bound.var} depend on another loop of the block")
        return tuple(found)

    def apply(self, site: Site) -> Change:
        band = self._band(site)
        unordered = all(f.mode == "parallel" for f in band)
        taken, strips, points = set(site.taken), [], []
        for d, (loop, (_, size)) in enumerate(zip(band, self.sizes, strict=True)):
            outer = fresh(f"outer_{loop.var}", taken)
            taken.add(outer)
            free = unordered or (d == 0 and loop.mode == "parallel")
            strips.append(_strips(loop, outer, size, loop.mode if free or loop.mode == "auto" else "sequential"))
            points.append(_points(loop, outer, size))
        body: tuple[Stmt, ...] = band[-1].body
        for loop in reversed((*strips, *points)):
            body = (replace(loop, body=body),)
        return Change(body)


def _strips(loop: Loop, outer: str, size: int, mode: Mode) -> Loop:
    width = Const(loop.step * size, loop.dtype)
    count = div(add(sub(loop.hi, loop.lo), Const(loop.step * size - 1, loop.dtype)), width)
    return replace(loop, var=outer, lo=Const(0, loop.dtype), hi=count, step=1, mode=mode, number=0)


def _points(loop: Loop, outer: str, size: int) -> Loop:
    width = Const(loop.step * size, loop.dtype)
    start: Expr = add(loop.lo, mul(width, Var(outer, loop.dtype)))
    mode: Mode = "thread" if loop.mode == "parallel" else loop.mode
    return replace(loop, lo=start, hi=smallest(add(start, width), loop.hi), mode=mode)


_COPY = "for (int i = 0; i < n; i++)\n    B[i] = A[i];"
_TRANSPOSE = "for (int i = 0; i < n; i++)\n    for (int j = 0; j < m; j++)\n      D[i][j] = F[j][i];"
_WAVE = "for (int i = 1; i < n; i++)\n    for (int j = 0; j < m - 1; j++)\n      D[i][j] = D[i - 1][j + 1];"

Tile.examples = {
    "tile i:2": Example(_COPY, """\
for (int outer_i = 0; outer_i < (n + 1) / 2; outer_i++) {
  for (int i = 2 * outer_i; i < (2 * outer_i + 2 < n ? 2 * outer_i + 2 : n); i++) {
    B[i] = A[i];
  }
}"""),
    "tile i:4, j:8": Example(_TRANSPOSE, """\
for (int outer_i = 0; outer_i < (n + 3) / 4; outer_i++) {
  for (int outer_j = 0; outer_j < (m + 7) / 8; outer_j++) {
    for (int i = 4 * outer_i; i < (4 * outer_i + 4 < n ? 4 * outer_i + 4 : n); i++) {
      for (int j = 8 * outer_j; j < (8 * outer_j + 8 < m ? 8 * outer_j + 8 : m); j++) {
        D[i][j] = F[j][i];
      }
    }
  }
}"""),
    "tile i:2, j:2": Example(_WAVE, refused="must run before"),
}  # fmt: skip
