"""Overlap: run several steps of a time loop in one launch; each block computes a tile of the arrays through them.

    for t: launch: for i: for j: A[i][j] = f(A around)     ==>     for t in steps of 4: launch
                                                                     load a tile of A, 4 elements wider at each edge
                                                                     4 times: A = f(A around); all threads wait
                                                                     store the tile without its edges to another A

Tiles overlap: in each step the outermost elements of a tile lack their neighbours, so that they are also computed by
the neighbouring block. A thread holds its elements in registers; those that other threads read are in shared memory,
too. The tile is as wide as the block; along the outermost dimension each thread has ``rows`` elements. Launches come in
pairs, from the arrays to spare ones and back. On a CPU there are no tiles: each core computes a band of rows through
the steps, in place, row after row, each step a few rows behind the previous one.

Legal when: the loop contains nests of parallel loops, each iteration writes at one position, and what it reads of the
arrays that are written is at a constant distance, which determines the overlap. Gain: the arrays are read and written
once for several steps, with fewer launches. Cost: elements in the overlap are computed several times, and the spare
arrays need memory.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from looptune.core.errors import DirectiveError
from looptune.ir.nodes import Annotation, Arg, Directive
from looptune.schedule.directives.base import DirectiveSite, Example, Rewrite, Transform, positive, unknown_argument

MOST_STEPS = 64
MOST_ROWS = 32


@dataclass(frozen=True, slots=True)
class TimeTile(Annotation):
    """Annotation of a time loop of which several iterations run in one launch.

    Each block of a GPU computes a tile of the arrays through them, and each thread several rows of it.
    """

    word: ClassVar = "overlap"

    steps: int
    rows: int

    def pragma(self) -> str:
        return f"#pragma looptune overlap {self.steps}{f', rows {self.rows}' if self.rows > 1 else ''}"


@dataclass(frozen=True)
class Overlap(Transform):
    name: ClassVar = "overlap"
    syntax: ClassVar = "overlap STEPS [, rows N]"
    stage: ClassVar = "mode"

    steps: int
    rows: int = 1

    @classmethod
    def parse(cls, directive: Directive) -> Self:
        steps, *others = directive.args or (Arg(""),)
        if steps.key or not steps.values:
            at = steps.span if directive.args else directive.span
            raise DirectiveError(f"overlap needs the number of steps per launch first (syntax: {cls.syntax})", at)
        rows = next((a for a in others if a.key == "rows"), None)
        unknown = next((a for a in others if a is not rows), None)
        if unknown is not None:
            raise unknown_argument(cls, unknown, ("rows",))
        number = _at_most(steps, "the number of steps", MOST_STEPS)
        return cls(number, 1 if rows is None else _at_most(rows, "the number of rows", MOST_ROWS), span=directive.span)

    def apply(self, site: DirectiveSite) -> Rewrite:
        return Rewrite((replace(site.loop.annotated(TimeTile(self.steps, self.rows)), span=self.span),))


def _at_most(arg: Arg, what: str, most: int) -> int:
    number = positive(arg, what)
    if number > most:
        raise DirectiveError(f"overlap: {what} must be at most {most}, got {number}", arg.span)
    return number


_WAVE = """\
for (int t = 0; t < 100; t++) {
    for (int i = 1; i < n - 1; i++)
      B[i] = A[i - 1] + A[i + 1];
    for (int i = 1; i < n - 1; i++)
      A[i] = B[i];
  }"""
_SUM = """\
for (int t = 0; t < 100; t++) {
    for (int i = 0; i < n; i++)
      B[i] = A[n - 1 - i];
    for (int i = 0; i < n; i++)
      A[i] = B[i];
  }"""
_COPY = "for (int i = 0; i < n; i++)\n    B[i] = A[i];"

Overlap.examples = {
    "overlap 4": Example(_WAVE, """\
#pragma hmppcg noParallel
#pragma looptune overlap 4
for (int t = 0; t < 100; t++) {
  #pragma hmppcg parallel
  for (int i = 1; i < n - 1; i++) {
    B[i] = A[i - 1] + A[i + 1];
  }
  #pragma hmppcg parallel
  for (int i = 1; i < n - 1; i++) {
    A[i] = B[i];
  }
}"""),
    "overlap 4, rows 2": Example(_WAVE, refused="arrays of one dimension have no rows"),
    "overlap 16": Example(_SUM, refused="its reads of A are not at a constant distance from its writes"),
    "overlap 2": Example(_COPY, refused="its iterations are independent, and it needs a sequential loop"),
    "overlap rows 2": Example(_COPY, refused="overlap needs the number of steps per launch first"),
    "overlap 2, columns 2": Example(_COPY, refused="overlap has no argument 'columns'"),
    "overlap": Example(_COPY, refused="overlap needs the number of steps per launch first"),
    "overlap 65": Example(_COPY, refused="the number of steps must be at most 64, got 65"),
}  # fmt: skip
