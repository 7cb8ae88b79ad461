"""Tile: turn a loop into a loop over strips around a loop within the strip; several loops become blocks.

    for i in 0..N: S(i)    ==>   for outer_i in 0..ceil(N/T):
                                   for i in outer_i*T .. min((outer_i + 1)*T, N): S(i)

A list (``tile i:4, j:8``) moves the loops over the strips outside the loops within them: the nest runs block by block.
Statements beside the inner loops are sunk into them first, as for ``permute``. If the bounds of a loop depend on
another one of the list, only blocks that contain an iteration are run:

    for i in 0..n:                 for outer_i in 0..ceil(n/4):
      for j in 0..i+1: S   ==>       for outer_j in 0..outer_i+1:
                                       for i in 4*outer_i .. min(4*outer_i + 4, n):
                                         for j in 4*outer_j .. min(4*outer_j + 4, i + 1): S

Legal when: always for one loop; for a list, if no dependence is reversed. Gain: reuse in a cache, and in registers if a
thread runs the strip. Cost: bounds with ``min``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Self

from looptune.core.errors import DirectiveError
from looptune.ir.def_use import names_in
from looptune.ir.nodes import Annotations, Binary, Const, Directive, Expr, Loop, Mode, Var, While
from looptune.ir.rewrite import walk
from looptune.ir.simplify import BIG_STEP, add, ceil_div, max_of, min_of, mul, sub
from looptune.poly.loop_bounds import bounded_nest
from looptune.schedule.directives.band import Band, depending
from looptune.schedule.directives.base import (
    Alternative,
    DirectiveSite,
    Example,
    NewSchedule,
    Rewrite,
    Transform,
    for_one_loop,
    fresh_name,
    positive,
    restrict_schedule,
    round_up_to_step,
    statement_names,
)

if TYPE_CHECKING:
    from looptune.poly.scop import SchedulePiece


@dataclass(frozen=True)
class Tile(Transform):
    name: ClassVar = "tile"
    syntax: ClassVar = "tile LOOP:SIZE [, LOOP:SIZE ...]"
    stage: ClassVar = "loop"
    exclusive_group: ClassVar = "copies of the body"

    sizes: tuple[tuple[str, int], ...]
    """(loop, size) pairs, outermost first; the name "" is the loop the directive stands before."""

    @property
    def grouped_iterations(self) -> tuple[tuple[str, int], ...]:
        return self.sizes

    @classmethod
    def alternatives(cls, directive: Directive, loop: Loop | While) -> Iterator[Alternative]:
        """Yield one loop of the list in place of all of them."""
        loops = [a for a in directive.args if a.key and a.values]
        return (Alternative(d, a.key) for a, d in zip(loops, for_one_loop(directive, loops), strict=False))

    @classmethod
    def parse(cls, directive: Directive) -> Self:
        if not directive.args:
            raise DirectiveError(f"tile needs a size (syntax: {cls.syntax})", directive.span)
        for arg in directive.args:
            if not arg.values:
                raise DirectiveError(f"tile needs a size for '{arg.key}' (syntax: {cls.syntax})", arg.span)
        sizes = tuple((a.key, positive(a, f"tile size of {a.key}" if a.key else "tile size")) for a in directive.args)
        twice = next((a for k, a in enumerate(directive.args) if a.key in {v for v, _ in sizes[:k]}), None)
        if twice is not None:
            if not twice.key:
                raise DirectiveError(f"tile takes several sizes with their loops (syntax: {cls.syntax})", twice.span)
            raise DirectiveError(f"tile names loop {twice.key} twice", twice.span)
        return cls(sizes, span=directive.span)

    def schedule(self, site: DirectiveSite) -> NewSchedule | None:
        if len(self.sizes) == 1:
            self._named(site, (site.loop,))
            return self._strips(site) if site.relative else None
        band, before = self._band(site), site.depth

        def blocked(piece: SchedulePiece, values: Mapping[str, str], place: int) -> SchedulePiece:
            """Time with the block of every loop of the band in front of the loops."""
            places = [self._block(f, size, band, piece, values[f.var]) for f, (_, size) in self._sized(band)]
            points = [x for v in values.values() for x in (v, "0")][:-1]
            return replace(piece, time=(*piece.time[:before], *places, *points, *band.inner_times(piece, place)))

        order = {n: tuple(blocked(*p) for p in pieces) for n, pieces in band.order().items()}
        return NewSchedule(order, before + len(band.loops) if band.perfect else None)

    def _strips(self, site: DirectiveSite) -> NewSchedule:
        """Return the order of before, the strips counted from where a loop around says.

        Copies of that one may be jammed.
        """
        p, width = site.depth, site.loop.step * self.sizes[0][1]

        def stripped(piece: SchedulePiece) -> SchedulePiece:
            strip = f"floor(({piece.time[p]} - ({site.bound(site.loop.lo, piece)}))/{width})"
            return replace(piece, time=(*piece.time[:p], strip, *piece.time[p:]))

        order = restrict_schedule(site.order, statement_names(site.loop.body))
        return NewSchedule({n: tuple(map(stripped, pieces)) for n, pieces in order.items()}, p + 2)

    def _block(self, loop: Loop, size: int, band: Band, piece: SchedulePiece, value: str) -> str:
        origin = band.site.bound(_origin(loop, band), piece)
        return f"floor(({value} - ({origin}))/{loop.step * size})"

    def _sized(self, band: Band) -> Iterator[tuple[Loop, tuple[str, int]]]:
        return zip(band.loops, self.sizes, strict=True)

    def _named(self, site: DirectiveSite, loops: Sequence[Loop]) -> None:
        for k, (loop, (name, _)) in enumerate(zip(loops, self.sizes, strict=False)):
            if name not in ("", loop.var):
                raise site.refuse(f"tile names loop {name} where the nest has loop {loop.var}" if k else
                                  f"tile names loop {name}, but stands before loop {loop.var}")  # fmt: skip
        if len(loops) < len(self.sizes):
            missing = self.sizes[len(loops)][0]
            raise site.refuse(f"tile: no loop {missing} stands directly in loop {loops[-1].var}")

    def _band(self, site: DirectiveSite) -> Band:
        band = Band.of(site, (site.loop.var, *(name for name, _ in self.sizes[1:])))
        self._named(site, band.loops)
        assigned = band.assigned()
        if assigned is not None:
            raise site.refuse(f"tile: a statement before loop {assigned[1].var} assigns {assigned[0]}, which bounds it")
        parted = next((f for f in band.sink_targets if f.in_parts), None)
        if parted is not None:
            raise site.refuse(
                f"tile: loop {parted.var} is split into parts, and a statement beside it would run in one"
            )
        if not band.rectangular and not band.analysable:
            raise site.refuse(f"tile: {depending(band.loops)} in a way that cannot be analysed")
        return band

    def claimed_loops(self, loop: Loop) -> tuple[Loop, ...]:
        named = {name for name, _ in self.sizes[1:]}
        return tuple(f for f in walk(loop.body) if isinstance(f, Loop) and f.var in named)

    def apply(self, site: DirectiveSite) -> Rewrite:
        if len(self.sizes) == 1:
            return Rewrite((_one(site, site.loop, self.sizes[0][1]),))
        band = self._band(site)
        taken = set(site.used_names)
        outer: list[str] = []
        for loop in band.loops:
            outer.append(fresh_name(f"outer_{loop.var}", taken))
            taken.add(outer[-1])
        blocks = [_Block(f, var, size, band) for (f, (_, size)), var in zip(self._sized(band), outer, strict=True)]
        return Rewrite((band.around([*_strips(blocks, band), *(b.points() for b in blocks)], band.guarded_body()),))


def _origin(loop: Loop, band: Band) -> Expr:
    """Return where the first block begins: at the loop's lower bound, or at 0 if that depends on loops of the band."""
    apart = not names_in(loop.lo) & {f.var for f in band.loops}
    return loop.lo if apart else Const(0, loop.dtype)


@dataclass(frozen=True, slots=True)
class _Block:
    """Block ``outer`` of ``loop``: its values from ``start`` on, as many as ``width``."""

    loop: Loop
    outer: str
    size: int
    band: Band

    @property
    def width(self) -> Const:
        return Const(self.loop.step * self.size, self.loop.dtype)

    @property
    def start(self) -> Expr:
        return add(_origin(self.loop, self.band), mul(self.width, Var(self.outer, self.loop.dtype)))

    def strip(self, mode: Mode) -> Loop:
        """Over the blocks, where the loop's bounds do not depend on the band."""
        loop = self.band.at_least_one_iteration(self.loop)
        count = ceil_div(sub(loop.hi, loop.lo), loop.step * self.size)
        reduces = loop.reductions if mode == "parallel" or loop.in_parts else ()
        kept = (a.of_strips(mode == "parallel") for a in loop.annotations)
        return replace(loop, var=self.outer, lo=Const(0, loop.dtype), hi=count, step=1, mode=mode, number=0,
                       reductions=reduces, annotations=Annotations(a for a in kept if a is not None))  # fmt: skip

    def points(self) -> Loop:
        """Return the part of the loop that is in the block."""
        loop, start = self.band.at_least_one_iteration(self.loop), self.start
        own = self.band.own(self.loop)
        apart = self._free and set(loop.private_arrays) <= set(
            own
        )  # else iterations share an array, one after the other
        mode: Mode = "thread" if apart else "sequential" if loop.mode == "parallel" else loop.mode
        lo = start
        if not self.from_the_first:
            lo = round_up_to_step(loop, max_of(start, loop.lo))
        if self.width.value <= BIG_STEP:
            hi = min_of(add(start, self.width), loop.hi)
        else:
            hi = add(start, min_of(self.width, sub(loop.hi, start)))
        kept = Annotations(a for a in (a.of_points() for a in loop.annotations) if a is not None)
        return replace(loop, lo=lo, hi=hi, mode=mode, reductions=(), private_arrays=own, annotations=kept)

    @property
    def from_the_first(self) -> bool:
        """Return the condition that block 0 is the first one, since isl may compute wider bounds."""
        return _origin(self.loop, self.band) == self.loop.lo

    @property
    def _free(self) -> bool:
        return self.loop.mode == "parallel" and not self.loop.reductions and self.loop not in self.band.sink_targets

    def mode(self) -> Mode:
        """Return the mode of the loop over the blocks.

        It may be parallel if all loops of the band are, or if it is the outermost one and parallel.
        """
        everywhere = (
            all(f.mode == "parallel" and not f.reductions for f in self.band.loops) and not self.band.sink_targets
        )
        free = everywhere or (self.loop is self.band.loops[0] and self.loop.mode == "parallel")
        return self.loop.mode if free or self.loop.mode == "auto" else "sequential"

    def inside(self) -> tuple[Expr, ...]:
        var = Var(self.loop.var, self.loop.dtype)
        return Binary(">=", var, self.start), Binary("<", var, add(self.start, self.width))


def _strips(blocks: Sequence[_Block], band: Band) -> list[Loop]:
    strips = [b.strip(b.mode()) for b in blocks]
    if band.rectangular:
        return strips
    within = tuple(c for b in blocks for c in b.inside())
    asked = [(*conditions, *within) for conditions in band.groups()]
    found = bounded_nest(band.site.loop_context, (*strips, *band.loops), asked, len(strips)).loops
    return [replace(f, lo=_no_less(f.lo)) if b.from_the_first else f for f, b in zip(found, blocks, strict=True)]


def _no_less(lo: Expr) -> Expr:
    """Return the bound, and 0 where it may be less."""
    zero = Const(0, lo.dtype)
    match lo:
        case Binary("min", a, b) if zero in (a, b):
            return zero
    return max_of(lo, zero)


def _one(site: DirectiveSite, loop: Loop, size: int) -> Loop:
    """Return the loop in strips."""
    outer = fresh_name(f"outer_{loop.var}", site.used_names)
    block = _Block(loop, outer, size, Band(site, (loop,), (), frozenset({loop.var})))
    points = block.points()
    return replace(block.strip(block.mode()), body=(replace(points, body=loop.body),))


_COPY = "for (int i = 0; i < n; i++)\n    B[i] = A[i];"
_TRANSPOSE = "for (int i = 0; i < n; i++)\n    for (int j = 0; j < m; j++)\n      D[i][j] = F[j][i];"
_LOWER = "for (int i = 0; i < n; i++)\n    for (int j = 0; j <= i; j++)\n      B[i] += A[j];"
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
    "tile i:4, j:4": Example(_LOWER, """\
for (int outer_i = 0; outer_i < (n + 3) / 4; outer_i++) {
  for (int outer_j = 0; outer_j < outer_i + 1; outer_j++) {
    for (int i = 4 * outer_i; i < (4 * outer_i + 4 < n ? 4 * outer_i + 4 : n); i++) {
      for (int j = 4 * outer_j; j < (4 * outer_j + 4 < i + 1 ? 4 * outer_j + 4 : i + 1); j++) {
        B[i] += A[j];
      }
    }
  }
}"""),
    "tile i:2, j:2": Example(_WAVE, refused="must run before"),
}  # fmt: skip
