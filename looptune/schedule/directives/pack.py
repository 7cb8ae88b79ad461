"""Pack: blocks of a triangle that have nothing to do are not launched.

    #pragma looptune pack      covers its loop and the loops nested in it

    for i: for j >= i          x x x x      launched:      x x x x x
                                 x x x                     x x x x x
                                   x x
                                     x

Two rows of the grid lie side by side, the first and the last, the second and the last but one. Blocks that leave at
once are not free: it seems that multiprocessors get unequal numbers of those that work.

Legal when: always; it does something where the grid has two dimensions, its extents are constants (as they are in a
sweep and in what is built of one), and at least a tenth of its blocks are idle. Gain: all multiprocessors get the same
share. Cost: some tens of instructions a block, which find out which it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from looptune.ir.nodes import Annotation, Directive
from looptune.schedule.directives.base import (
    DirectiveSite,
    Example,
    Rewrite,
    Transform,
    annotate_nest,
    reject_arguments,
)


@dataclass(frozen=True, slots=True)
class SkipIdleBlocks(Annotation):
    """Blocks of the kernel's grid that have nothing to do are not launched."""

    word: ClassVar = "pack"
    inherited: ClassVar = True
    compared: ClassVar = False

    def pragma(self) -> str:
        return "#pragma looptune pack"


@dataclass(frozen=True)
class Pack(Transform):
    name: ClassVar = "pack"
    syntax: ClassVar = "pack"
    stage: ClassVar = "mode"
    applies_to_nested: ClassVar = True

    @classmethod
    def parse(cls, directive: Directive) -> Self:
        reject_arguments(directive)
        return cls(span=directive.span)

    def apply(self, site: DirectiveSite) -> Rewrite:
        return annotate_nest(site, SkipIdleBlocks())


_TRIANGLE = """\
for (int i = 0; i < n; i++)
    for (int j = i; j < m; j++)
      D[i][j] = i;"""

Pack.examples = {
    "pack": Example(_TRIANGLE, """\
#pragma hmppcg parallel
#pragma looptune pack
for (int i = 0; i < n; i++) {
  #pragma hmppcg parallel
  for (int j = i; j < m; j++) {
    D[i][j] = i;
  }
}"""),
    "pack 2": Example(_TRIANGLE, refused="pack takes no argument, got '2'"),
}  # fmt: skip
