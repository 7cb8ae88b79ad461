"""Wavefront: a nest runs wave by wave; the iterations of a wave do not depend on each other.

    for i in 1..n:                             for j in 2 .. n + m - 1:                     the wave, i + j
      for j in 1..m:                     ==>     for i in max(1, j - m + 1) .. min(n, j):   parallel
        D[i][j] = D[i-1][j] + D[i][j-1]            D[i][j - i] = ...

The wave is the sum of the loops, each times the factor after its name, 1 by default: ``wavefront t:2, i`` runs the
iterations with equal 2*t + i together. The wave's loop takes the name of the innermost loop named, the others stand
inside it in the order of the list. Statements beside the inner loops are sunk into them first, as for ``permute``.
``tile 4, 8`` after the loops makes waves of tiles of so many iterations: the wave is then the sum of the tiles'
numbers, and a tile runs in the order of the text. With ``team`` a tile runs wave by wave too: the threads of a block
share its iterations with an equal sum of the loop variables; with ``team:j``, those with an equal value of the last
loop ``j``, which have to be independent of each other.

Legal when: no dependence is reversed. Gain: parallel loops where each loop of the text carries a dependence.
Cost: waves of different lengths, accesses along diagonals, one launch for each wave on a GPU.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, ClassVar, Self

from looptune.core.errors import DirectiveError
from looptune.ir.intervals import affine_terms
from looptune.ir.nodes import Binary, Cast, Const, If, Loop, Var
from looptune.ir.rewrite import conjunction, substitute
from looptune.ir.simplify import add, div, fold, max_of, min_of, mul, sub
from looptune.schedule.directives.band import Band, loops_in
from looptune.schedule.directives.base import DirectiveSite, Example, NewSchedule, Rewrite, fresh_name, positive
from looptune.schedule.directives.generation import (
    GeneratedNest,
    GeneratedTransform,
    generate_in_order,
    numbered,
    read_nest,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from looptune.ir.nodes import Directive, Expr, Stmt
    from looptune.poly.scop import SchedulePiece


@dataclass(frozen=True)
class Wavefront(GeneratedTransform):
    name: ClassVar = "wavefront"
    syntax: ClassVar = "wavefront LOOP[:FACTOR], LOOP[:FACTOR] [, ...] [, tile SIZE, SIZE [, ...] [, team[:LAST]]]"
    stage: ClassVar = "nest"

    factors: tuple[tuple[str, int], ...]
    """(loop, factor) pairs, outermost first."""
    sizes: tuple[int, ...] = ()
    """Iterations of each loop in a tile; () for waves of iterations."""
    team: bool = False
    """Whether the threads of a block share each tile, wave by wave."""
    along: str = ""
    """The last loop, if the waves of a tile are its iterations; "" where they are sums of all loops."""

    @classmethod
    def parse(cls, directive: Directive) -> Self:
        factors: dict[str, int] = {}
        args = directive.args
        first = next((k for k, arg in enumerate(args) if arg.key == "tile"), len(args))
        team = first < len(args) - 1 and args[-1].key.lower() == "team"
        sizes = tuple(positive(arg, "a size of a tile") for arg in args[first : len(args) - team])
        for arg in args[:first]:
            if not arg.key:
                raise DirectiveError(f"wavefront takes loop names (syntax: {cls.syntax})", arg.span)
            if arg.key in factors:
                raise DirectiveError(f"wavefront names loop {arg.key} twice", arg.span)
            factors[arg.key] = positive(arg, f"factor of {arg.key}") if arg.values else 1
        if len(factors) < 2:
            raise DirectiveError(f"wavefront takes at least two loops (syntax: {cls.syntax})", directive.span)
        if sizes and len(sizes) != len(factors):
            said = f"wavefront names {len(factors)} loops and {len(sizes)} sizes of a tile"
            raise DirectiveError(f"{said} (syntax: {cls.syntax})", directive.span)
        along = args[-1].values[:1] if team else ()
        if along and along != (list(factors)[-1],):
            raise DirectiveError(f"wavefront: the waves of a tile are sums, or iterations of the last loop "
                                 f"(syntax: {cls.syntax})", args[-1].span)  # fmt: skip
        return cls(tuple(factors.items()), sizes, team, list(factors)[-1] if along else "", span=directive.span)

    def schedule(self, site: DirectiveSite) -> NewSchedule:
        if not self.sizes:
            return super().schedule(site)
        band, before = self._tiled_band(site), site.depth

        def timed(piece: SchedulePiece, values: Mapping[str, str], place: int) -> SchedulePiece:
            tiles = [f"floor(({values[v]})/{size})" for (v, _), size in self._tiles]
            wave = " + ".join(f"{factor}*{t}" for t, ((_, factor), _) in zip(tiles, self._tiles, strict=True))
            points = [values[v] for v, _ in self.factors]
            wave_in = points[-1] if self.along else " + ".join(f"({p})" for p in points)
            within = [wave_in, *points[:-1]] if self.team else points
            inside = [x for v in (*tiles[:-1], *within) for x in ("0", v)]
            return replace(piece, time=(*piece.time[:before], f"({wave})", *inside, *band.inner_times(piece, place)))

        return NewSchedule({n: tuple(timed(*p) for p in pieces) for n, pieces in band.order().items()})

    def apply(self, site: DirectiveSite) -> Rewrite:
        if not self.sizes:
            return super().apply(site)
        loop = TiledWaves(self._tiled_band(site), tuple(self._tiles), self.team, bool(self.along)).loop()
        return Rewrite(numbered(site.loop_context.codelet, (loop,)))

    @property
    def _tiles(self) -> tuple[tuple[tuple[str, int], int], ...]:
        """Return (loop, factor) and the size of a tile for each loop."""
        return tuple(zip(self.factors, self.sizes, strict=True))

    def _tiled_band(self, site: DirectiveSite) -> Band:
        """Return the nest. DirectiveError where it is not perfect, or its bounds have no constant beginning."""
        band = self._band(site)
        named = f"wavefront {', '.join(v for v, _ in self.factors)}"
        if [f.var for f in band.loops] != [v for v, _ in self.factors] or not band.perfect:
            raise site.refuse(f"{named}: tiles are of a perfect nest, in the order of its loops")
        if self.factors[-1][1] != 1 or any(f.step != 1 for f in band.loops):
            raise site.refuse(f"{named}: in tiles, the last factor and the steps of the loops must be 1")
        types = {f.dtype for f in band.loops}
        if len(types) > 1 or not types <= {"int32", "int64"}:
            raise site.refuse(f"{named}: tiles need loops whose variables are all int, or all long")
        if bounding_box(band.loops) is None:
            raise site.refuse(f"{named}: tiles need loops from 0 or more whose bounds are sums")
        return band

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


def bounding_box(loops: Sequence[Loop]) -> tuple[Expr, ...] | None:
    """Return the ends of a box that begins at 0 and holds all iterations, or None if a bound is no sum."""
    least: dict[str, Expr] = {}
    most: dict[str, Expr] = {}
    for loop in loops:
        low, high = _extreme(loop.lo, least, most), _extreme(loop.hi, most, least)
        match low, high:
            case Const(int(value)), Binary() | Cast() | Const() | Var() if value >= 0:
                least[loop.var], most[loop.var] = low, sub(high, Const(1, loop.dtype))
            case _:
                return None
    return tuple(add(most[f.var], Const(1, f.dtype)) for f in loops)


def _extreme(bound: Expr, along: Mapping[str, Expr], against: Mapping[str, Expr]) -> Expr | None:
    """Return the bound with variables of factors above 0 replaced by those ``along`` it, and the others ``against``."""
    terms, constant = affine_terms(bound)
    total: Expr = Const(constant, bound.dtype)
    for atom, factor in terms.items():
        if not isinstance(atom, Var):
            return None
        value = (along if factor > 0 else against).get(atom.name, atom)
        total = add(total, mul(Const(factor, bound.dtype), fold(Cast(bound.dtype, value))))
    terms, constant = affine_terms(total)
    simple: Expr = Const(constant, bound.dtype)
    for atom, factor in terms.items():
        simple = add(simple, mul(Const(factor, bound.dtype), fold(Cast(bound.dtype, atom))))
    return simple


@dataclass(frozen=True, slots=True)
class TiledWaves:
    """The loops of waves of tiles: the wave, all tiles of the outer loops, and the iterations of one tile.

    The tiles are those of a box around the iterations, so that all waves have as many; in those outside the nest no
    loop runs. The number of the last loop's tile is what the others leave of the wave.
    """

    band: Band
    tiles: tuple[tuple[tuple[str, int], int], ...]
    team: bool = False
    by_last: bool = False

    def loop(self) -> Loop:
        """Return the loop over the waves."""
        loops, taken = self.band.loops, set(self.band.site.used_names)
        names: list[str] = []
        for var in ("wave", *(f"outer_{f.var}" for f in loops[:-1]), "step"):
            names.append(fresh_name(var, taken))
            taken.add(names[-1])
        wave, *outer, step = names
        box = bounding_box(loops)
        assert box is not None, "the site was looked at"
        counts = [self._count(f, end, size) for f, end, (_, size) in zip(loops, box, self.tiles, strict=True)]
        last: Expr = Var(wave, loops[-1].dtype)
        end: Expr = Const(1, loops[0].dtype)
        for k, ((_, factor), _) in enumerate(self.tiles):
            scale = Const(factor, loops[k].dtype)
            end = add(end, mul(scale, sub(counts[k], Const(1, loops[k].dtype))))
            last = sub(last, mul(scale, Var(outer[k], loops[k].dtype))) if k < len(outer) else last
        numbers = [*(Var(name, f.dtype) for name, f in zip(outer, loops[:-1], strict=True)), last]
        starts = [
            mul(Const(size, f.dtype), number) for f, number, (_, size) in zip(loops, numbers, self.tiles, strict=True)
        ]
        body = self._in_waves(starts, step) if self.team else self._in_order(starts)
        for name, loop, count in reversed(list(zip(outer, loops[:-1], counts[:-1], strict=True))):
            body = (self._new(name, loop, count, body),)
        return replace(self._new(wave, loops[0], end, body), mode="sequential")

    def _in_order(self, starts: Sequence[Expr]) -> tuple[Stmt, ...]:
        """Return the loops of a tile from ``starts`` in the order of the text."""
        body = self.band.guarded_body()
        for loop, start, (_, size) in reversed(list(zip(self.band.loops, starts, self.tiles, strict=True))):
            body = (self._clipped(loop, start, size, body),)
        return body

    def _in_waves(self, starts: Sequence[Expr], step: str) -> tuple[Stmt, ...]:
        """Return the loops of a tile from ``starts`` over its waves, whose iterations a team shares.

        They stand under the condition that the tile may have iterations, which keeps the others from any work.
        """
        sizes = [size for _, size in self.tiles]
        *shared, last = self.band.loops
        start, size = starts[-1], Const(sizes[-1], last.dtype)
        place: Expr = Var(last.var, last.dtype) if self.by_last else Var(step, last.dtype)
        inside = [Binary(">=", place, last.lo), Binary("<", place, last.hi)]
        body = self.band.guarded_body()
        if not self.by_last:
            for f in shared:
                place = sub(place, Var(f.var, f.dtype))
            inside = [Binary(">=", place, start), Binary("<", place, add(start, size)),
                      Binary(">=", place, last.lo), Binary("<", place, last.hi)]  # fmt: skip
            body = substitute(body, {last.var: place})
        body = (If(conjunction(inside), body),)
        for loop, own, count in reversed(list(zip(shared, starts, sizes, strict=False))):
            body = (replace(self._clipped(loop, own, count, body), thread_axis="team"),)
        first, length = start, size
        if not self.by_last:
            first, length = reduce(add, starts), Const(sum(sizes) - len(shared), last.dtype)
        waves = last if self.by_last else self._new(step, last, first, body)
        waves = replace(waves, lo=first, hi=add(first, length), body=body, mode="sequential", thread_axis="team")
        return (If(conjunction(self._may_have_iterations(starts)), (waves,)),)

    def _may_have_iterations(self, starts: Sequence[Expr]) -> Iterator[Expr]:
        """Yield what holds for every tile that has iterations: each loop's range in the tile meets its own."""
        least: dict[str, Expr] = {}
        most: dict[str, Expr] = {}
        for loop, start, (_, size) in zip(self.band.loops, starts, self.tiles, strict=True):
            end = add(start, Const(size, loop.dtype))
            low, high = _extreme(loop.lo, least, most), _extreme(loop.hi, most, least)
            assert low is not None, "the bounds are sums"
            assert high is not None, "the bounds are sums"
            yield from (Binary("<", low, end), Binary("<", start, high))
            least[loop.var], most[loop.var] = start, sub(end, Const(1, loop.dtype))

    @staticmethod
    def _clipped(loop: Loop, start: Expr, size: int, body: tuple[Stmt, ...]) -> Loop:
        """Return the loop over its iterations from ``start`` on, ``size`` at most."""
        high = min_of(add(start, Const(size, loop.dtype)), loop.hi)
        return replace(loop, lo=max_of(start, loop.lo), hi=high, body=body, mode="auto")

    def _count(self, loop: Loop, end: Expr, size: int) -> Expr:
        return div(add(end, Const(size - 1, loop.dtype)), Const(size, loop.dtype))

    def _new(self, name: str, like: Loop, end: Expr, body: tuple[Stmt, ...]) -> Loop:
        return Loop(name, Const(0, like.dtype), end, body, dtype=like.dtype, span=like.span)


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
    "wavefront i, j, tile 4, 8": Example(_SUMS, """\
for (int wave = 0; wave < 1 + ((n + 3) / 4 - 1) + ((m + 7) / 8 - 1); wave++) {
  for (int outer_i = 0; outer_i < (n + 3) / 4; outer_i++) {
    for (int i = (4 * outer_i > 1 ? 4 * outer_i : 1); i < (4 * outer_i + 4 < n ? 4 * outer_i + 4 : n); i++) {
      for (int j = (8 * (wave - outer_i) > 1 ? 8 * (wave - outer_i) : 1); j < (8 * (wave - outer_i) + 8 < m ? 8 * (wave - outer_i) + 8 : m); j++) {
        D[i][j] = D[i - 1][j] + D[i][j - 1];
      }
    }
  }
}"""),  # noqa: E501
    "wavefront i, j, tile 4, 8, team": Example(_SUMS, """\
for (int wave = 0; wave < 1 + ((n + 3) / 4 - 1) + ((m + 7) / 8 - 1); wave++) {
  for (int outer_i = 0; outer_i < (n + 3) / 4; outer_i++) {
    if (1 < 4 * outer_i + 4 && 4 * outer_i < n && 1 < 8 * (wave - outer_i) + 8 && 8 * (wave - outer_i) < m) {
      for (int step = 4 * outer_i + 8 * (wave - outer_i); step < 4 * outer_i + 8 * (wave - outer_i) + 11; step++) {
        for (int i = (4 * outer_i > 1 ? 4 * outer_i : 1); i < (4 * outer_i + 4 < n ? 4 * outer_i + 4 : n); i++) {
          if (step - i >= 8 * (wave - outer_i) && step - i < 8 * (wave - outer_i) + 8 && step - i >= 1 && step - i < m) {
            D[i][step - i] = D[i - 1][step - i] + D[i][step - i - 1];
          }
        }
      }
    }
  }
}"""),  # noqa: E501
    "wavefront i, j, tile 8, 8": Example(_AHEAD, refused="must run before"),
    "wavefront i, j, tile 8, 8, team": Example(_AHEAD, refused="must run before"),
    "wavefront i, j, tile 4, 8, team:j": Example(_SUMS, """\
for (int wave = 0; wave < 1 + ((n + 3) / 4 - 1) + ((m + 7) / 8 - 1); wave++) {
  for (int outer_i = 0; outer_i < (n + 3) / 4; outer_i++) {
    if (1 < 4 * outer_i + 4 && 4 * outer_i < n && 1 < 8 * (wave - outer_i) + 8 && 8 * (wave - outer_i) < m) {
      for (int j = 8 * (wave - outer_i); j < 8 * (wave - outer_i) + 8; j++) {
        for (int i = (4 * outer_i > 1 ? 4 * outer_i : 1); i < (4 * outer_i + 4 < n ? 4 * outer_i + 4 : n); i++) {
          if (j >= 1 && j < m) {
            D[i][j] = D[i - 1][j] + D[i][j - 1];
          }
        }
      }
    }
  }
}"""),
    "wavefront i, j, tile 4, 8, team:i": Example(_SUMS, refused="are sums, or iterations of the last loop"),
    "wavefront i, j, tile 8, team": Example(_SUMS, refused="names 2 loops and 1 sizes of a tile"),
    "wavefront i, j, team": Example(_SUMS, refused="the loops of the nest are i, j"),
    "wavefront i, j, tile 4": Example(_SUMS, refused="names 2 loops and 1 sizes of a tile"),
    "wavefront j, i, tile 4, 4": Example(_SUMS, refused="in the order of its loops"),
    "wavefront i, j, tile 5, 4": Example(_SUMS.replace("int j", "unsigned j"),
                                         refused="tiles need loops whose variables are all int, or all long"),
    "wavefront i, j:2, tile 4, 4": Example(_SUMS, refused="the last factor and the steps of the loops must be 1"),
    "Wavefront i, j": Example(_FAR, refused="must run before"),
    "wavefront i": Example(_SUMS, refused="at least two loops"),
    "wavefront i, k": Example(_SUMS, refused="the loops of the nest are i, j"),
}  # fmt: skip
