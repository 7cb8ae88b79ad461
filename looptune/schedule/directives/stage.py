"""Stage: copy the tile of an array that a block reads in a loop to shared memory first, by all its threads.

    for i: for j:  (grid, 8 x 32 threads)       for i: for j:
      for k in 16*o .. 16*o + 16:         ==>     A_tile[8][16], B_tile[16][32] = A[i's of the block][k's], B[k's][j's]
        C[i][j] += A[i][k] * B[k][j]              for k: C[i][j] += A_tile[i's place][k's place] * B_tile[...][...]

The tile is all that the threads of a block read of the array in the loop, but for elements that the kernel may write,
so the loop has to have a known trip count: tile it. On a loop of the grid, the tile is what they read in the whole
kernel, including the halo. On a CPU, whose caches do this, it has no effect.

``buffers 2`` fills the tile of the next iteration of the loop around while the threads compute with the current one. In
the tile of a ``transposed`` array the elements of a column are adjacent, so that a thread reads several rows at once.
``unroll 16`` writes 16 iterations of the loop as straight-line code, or the largest smaller number that divides the
trip count.

Legal when: the kernel does not write the elements of the tile, the subscripts are affine, and all threads of a block
reach the loop together. Gain: each element is read from memory once per block, 16 bytes at a time if sizes are known
and rows of the tile begin and end at multiples of 16 bytes. Cost: shared memory and two barriers for each tile; with N
buffers N times the memory, and one barrier; a transposed tile is copied 4 or 8 bytes at a time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from looptune.core.errors import DirectiveError
from looptune.ir.def_use import written_names
from looptune.ir.nodes import Annotation, Arg, Assign, Directive, Load, Loop
from looptune.ir.rewrite import walk, walk_stmts
from looptune.schedule.directives.base import DirectiveSite, Example, Rewrite, Transform, positive

MOST_BUFFERS = 4
MOST_COPIES = 64


@dataclass(frozen=True, slots=True)
class StagedTiles(Annotation):
    """The annotation that a block copies tiles of these arrays to shared memory before it runs the loop.

    Each array has ``buffers`` tiles: all but one are filled for later iterations of the loop around.
    ``transposed_tiles`` are stored column by column. ``tile_unroll`` iterations are written as straight-line code; 0:
    as many as one load covers.
    """

    word: ClassVar = "stage"

    arrays: tuple[str, ...]
    buffers: int = 1
    transposed_tiles: tuple[str, ...] = ()
    tile_unroll: int = 0

    def pragma(self) -> str:
        text = f"#pragma looptune stage {', '.join(self.arrays)}"
        text += f", buffers {self.buffers}" if self.buffers > 1 else ""
        text += f", transposed({', '.join(self.transposed_tiles)})" if self.transposed_tiles else ""
        return text + (f", unroll {self.tile_unroll}" if self.tile_unroll else "")

    def of_strips(self, parallel: bool) -> Self | None:
        """Return the annotation unchanged: a loop of the grid stages for the whole kernel."""
        return self if parallel else None

    def with_more(self, other: Self) -> Self:
        """Return the annotation of two directives on one loop."""
        arrays = dict.fromkeys((*self.arrays, *other.arrays))
        transposed = dict.fromkeys((*self.transposed_tiles, *other.transposed_tiles))
        buffers, unroll = max(self.buffers, other.buffers), max(self.tile_unroll, other.tile_unroll)
        return replace(self, arrays=(*arrays,), buffers=buffers, transposed_tiles=(*transposed,), tile_unroll=unroll)


@dataclass(frozen=True)
class Stage(Transform):
    name: ClassVar = "stage"
    syntax: ClassVar = "stage ARRAY [, ARRAY ...] [, buffers N] [, transposed(ARRAY, ...)] [, unroll N]"
    stage: ClassVar = "mode"
    former: ClassVar = {"turned": "transposed"}

    arrays: tuple[Arg, ...]
    buffers: int = 1
    transposed: tuple[Arg, ...] = ()
    copies: int = 0

    @classmethod
    def is_word(cls, arg: Arg, directive: Directive) -> bool:
        return bool(arg.values)

    @classmethod
    def parse(cls, directive: Directive) -> Self:
        buffers, copies = 1, 0
        arrays: list[Arg] = []
        transposed: list[Arg] = []
        for arg in directive.args:
            match arg:
                case Arg(key="buffers", values=(_, *_)):
                    buffers = positive(arg, "the number of buffers")
                    if buffers > MOST_BUFFERS:
                        raise DirectiveError(f"stage takes at most {MOST_BUFFERS} buffers, got {buffers}", arg.span)
                case Arg(key="unroll", values=(_, *_)):
                    copies = positive(arg, "the number of iterations")
                    if copies > MOST_COPIES:
                        raise DirectiveError(f"stage unrolls at most {MOST_COPIES} iterations, got {copies}", arg.span)
                case Arg(key="transposed", values=(_, *_) as names) if all(isinstance(n, str) for n in names):
                    transposed += [Arg(str(n), span=arg.span) for n in names]
                case Arg(key, ()) if key.isidentifier():
                    arrays.append(arg)
                case _:
                    raise DirectiveError(f"stage takes names of arrays (syntax: {cls.syntax})", arg.span)
        if not arrays:
            raise DirectiveError(f"stage needs an array (syntax: {cls.syntax})", directive.span)
        stray = next((a for a in transposed if all(a.key != b.key for b in arrays)), None)
        if stray is not None:
            raise DirectiveError(f"stage: {stray.key} is transposed, but not staged", stray.span)
        return cls(tuple(arrays), buffers, tuple(transposed), copies, span=directive.span)

    def apply(self, site: DirectiveSite) -> Rewrite:
        used = {n.array for n in walk(site.loop.body) if isinstance(n, Load)}
        for arg in self.arrays:
            if arg.key not in used:
                there = ", ".join(sorted(used)) if used else "none"
                raise DirectiveError(
                    f"stage: loop {site.loop.var} reads no array {arg.key}; it reads {there}", arg.span
                )
            if arg.key in written_names(site.loop.body) and not _read_elsewhere(site.loop, arg.key):
                raise DirectiveError(f"stage: loop {site.loop.var} writes {arg.key}", arg.span)
        flat = {n.array for n in walk(site.loop.body) if isinstance(n, Load) and len(n.index) == 1}
        line = next((a for a in self.transposed if a.key in flat), None)
        if line is not None:
            raise DirectiveError(f"stage: {line.key} has one dimension, no rows to be transposed", line.span)
        arrays, transposed = (tuple(dict.fromkeys(a.key for a in some)) for some in (self.arrays, self.transposed))
        made = StagedTiles(arrays, self.buffers, transposed, self.copies)
        before = site.loop.annotation(StagedTiles)
        return Rewrite((site.loop.annotated(made if before is None else before.with_more(made)),))


def _read_elsewhere(loop: Loop, array: str) -> bool:
    """Tell whether the loop reads the array with other subscripts than it writes it with, so maybe other elements."""
    assigns = [s for s in walk_stmts(loop.body) if isinstance(s, Assign)]
    reads = {n for s in assigns for n in walk(s.value) if isinstance(n, Load) and n.array == array}
    return bool(reads - {s.target for s in assigns})


_COPY = "for (int i = 1; i < n; i++)\n    B[i] = A[i - 1] + A[i];"
_COLUMN = "for (int i = 0; i < n; i++)\n    B[i] = D[i][0];"

Stage.examples = {
    "stage A": Example(_COPY, """\
#pragma hmppcg parallel
#pragma looptune stage A
for (int i = 1; i < n; i++) {
  B[i] = A[i - 1] + A[i];
}"""),
    "stage D, transposed(D), unroll 4": Example(_COLUMN, """\
#pragma hmppcg parallel
#pragma looptune stage D, transposed(D), unroll 4
for (int i = 0; i < n; i++) {
  B[i] = D[i][0];
}"""),
    "stage A, transposed(A)": Example(_COPY, refused="stage: A has one dimension, no rows to be transposed"),
    "stage A, transposed(B)": Example(_COPY, refused="stage: B is transposed, but not staged"),
    "stage A, unroll 65": Example(_COPY, refused="stage unrolls at most 64 iterations, got 65"),
    "stage A, buffers 5": Example(_COPY, refused="stage takes at most 4 buffers, got 5"),
    "stage B": Example(_COPY, refused="stage: loop i writes B"),
    "stage D": Example(_COPY, refused="loop i reads no array D; it reads A, B"),
    "stage 4": Example(_COPY, refused="stage takes names of arrays"),
}  # fmt: skip
