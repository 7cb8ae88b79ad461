"""Pack: do not launch the blocks of a triangle that have no work.

    #pragma looptune pack      for its loop and the loops nested in it

    for i: for j >= i          x x x x      launched:      x x x x x
                                 x x x                     x x x x x
                                   x x
                                     x

Two rows of the grid are adjacent in the launch: the first and the last, the second and the last but one, and so on.
Idle blocks end at once but cost time; the likely reason is that the multiprocessors get unequal numbers of the blocks
with work.

Legal when: always; it has an effect if the grid has two dimensions, its extents are constants (as in a sweep and in a
module built from one), and at least a tenth of its blocks are idle. Gain: all multiprocessors get the same share. Cost:
some tens of instructions per block, which compute its position.
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
    """The annotation that blocks of the kernel's grid without work are not launched."""

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
