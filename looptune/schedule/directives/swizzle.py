"""Swizzle: order the blocks of a grid strip by strip, so that concurrent blocks are neighbours in both dimensions.

    #pragma looptune swizzle 4     strips of four rows of blocks; for its loop and the loops nested in it

    blocks as launched   0 1 2 3 4 5 …      with swizzle 4   0 4  8 …
                         then the next row                  1 5  9
                                                            2 6 10      then the next four rows
                                                            3 7 11

The blocks that run at the same time are consecutive in this order. Along one row they share the data of the outer
dimension, and each reads other data of the inner one; in a strip they share data of both, so that more of it is found
in the L2.

Legal when: always, since blocks are unordered. Gain: less is read from memory if the blocks of a row together read more
than the L2 holds. Cost: two divisions per block.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from looptune.core.errors import DirectiveError
from looptune.ir.nodes import Annotation, Arg, Directive
from looptune.schedule.directives.base import (
    DirectiveSite,
    Example,
    Rewrite,
    Transform,
    annotate_nest,
    positive,
    unknown_argument,
)

MOST_ROWS = 1024


@dataclass(frozen=True, slots=True)
class BlockSwizzle(Annotation):
    """The annotation that orders the kernel's blocks in strips of rows of the grid."""

    word: ClassVar = "swizzle"
    inherited: ClassVar = True
    compared: ClassVar = False

    swizzle_rows: int

    def pragma(self) -> str:
        return f"#pragma looptune swizzle {self.swizzle_rows}"


@dataclass(frozen=True)
class Swizzle(Transform):
    name: ClassVar = "swizzle"
    syntax: ClassVar = "swizzle ROWS"
    stage: ClassVar = "mode"
    applies_to_nested: ClassVar = True
    former: ClassVar = {"raster": "swizzle"}

    rows: int

    @classmethod
    def parse(cls, directive: Directive) -> Self:
        match directive.args:
            case (Arg("") as arg,):
                rows = positive(arg, "the number of rows of a strip")
                if rows > MOST_ROWS:
                    raise DirectiveError(f"a strip has {MOST_ROWS} rows at most, not {rows}", arg.span)
                return cls(rows, span=directive.span)
            case ():
                raise DirectiveError(f"swizzle needs the rows of a strip (syntax: {cls.syntax})", directive.span)
        raise unknown_argument(cls, next((a for a in directive.args if a.key), directive.args[-1]), ())

    def apply(self, site: DirectiveSite) -> Rewrite:
        return annotate_nest(site, BlockSwizzle(self.rows))


_COPY = """\
for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++)
      D[i][j] = i;"""
_AS_IT_WAS = """\
#pragma hmppcg parallel
#pragma looptune swizzle 4
for (int i = 0; i < n; i++) {
  #pragma hmppcg parallel
  for (int j = 0; j < m; j++) {
    D[i][j] = i;
  }
}"""

Swizzle.examples = {
    "swizzle 4": Example(_COPY, _AS_IT_WAS),
    "swizzle": Example(_COPY, refused="swizzle needs the rows of a strip"),
    "swizzle 0": Example(_COPY, refused="must be at least 1, got 0"),
    "swizzle 2000": Example(_COPY, refused="a strip has 1024 rows at most, not 2000"),
    "swizzle rows 2": Example(_COPY, refused="swizzle has no argument"),
}  # fmt: skip
