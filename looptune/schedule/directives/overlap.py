"""Overlap: run several steps of a time loop in one launch; each block computes a tile of the arrays through them.

    for t: launch: for i: for j: A[i][j] = f(A around)     ==>     for t in steps of 4: launch
                                                                     load a tile of A, 4 elements wider at each edge
                                                                     4 times: A = f(A around); all threads wait
                                                                     store the tile without its edges to another A

Tiles overlap: in each step the outermost elements of a tile lack their neighbours, so that they are also computed by
the neighbouring block. A thread holds its elements in registers; those that other threads read are in shared memory,
too. Each thread has ``rows`` elements along the outermost dimension and ``columns`` along the innermost one. Launches
come in pairs, from the arrays to spare ones and back. With ``persistent``, a block keeps its tile from one launch to
the next if there are as many blocks as tiles, and only elements in the overlap are stored and loaded again. On a CPU
there are no tiles: each core computes a band of rows through the steps, in place, row after row, each step a few rows
behind the previous one.

Legal when: the loop contains nests of parallel loops, each iteration writes at one position, and what it reads of the
arrays that are written is at a constant distance, which determines the overlap. Gain: the arrays are read and written
once for several steps, with fewer launches. Cost: elements in the overlap are computed several times, and the spare
arrays need memory.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import ClassVar, Self

from looptune.core.errors import DirectiveError
from looptune.ir.nodes import Annotation, Arg, Directive
from looptune.schedule.directives.base import DirectiveSite, Example, Rewrite, Transform, positive, unknown_argument

MOST_STEPS = 64
MOST = MappingProxyType({"rows": 32, "columns": 8})
"""Of a thread's elements along the outermost and the innermost dimension."""


@dataclass(frozen=True, slots=True)
class TimeTile(Annotation):
    """Annotation of a time loop of which several iterations run in one launch.

    Each block of a GPU computes a tile of the arrays through them, and each thread several rows of it.
    """

    word: ClassVar = "overlap"

    steps: int
    rows: int
    columns: int = 1

    def pragma(self) -> str:
        several = (f", {word} {n}" for word, n in (("rows", self.rows), ("columns", self.columns)) if n > 1)
        return f"#pragma looptune overlap {self.steps}{''.join(several)}"


@dataclass(frozen=True)
class Overlap(Transform):
    name: ClassVar = "overlap"
    syntax: ClassVar = "overlap STEPS [, rows N] [, columns N]"
    stage: ClassVar = "mode"

    steps: int
    rows: int = 1
    columns: int = 1

    @classmethod
    def parse(cls, directive: Directive) -> Self:
        steps, *others = directive.args or (Arg(""),)
        if steps.key or not steps.values:
            at = steps.span if directive.args else directive.span
            raise DirectiveError(f"overlap needs the number of steps per launch first (syntax: {cls.syntax})", at)
        given = {a.key: a for a in reversed(others)}
        unknown = next((a for a in others if a.key not in MOST or a is not given[a.key]), None)
        if unknown is not None:
            raise unknown_argument(cls, unknown, tuple(MOST))
        number = _at_most(steps, "the number of steps", MOST_STEPS)
        several = {key: _at_most(a, f"the number of {key}", MOST[key]) for key, a in given.items()}
        return cls(number, **several, span=directive.span)

    def apply(self, site: DirectiveSite) -> Rewrite:
        tile = TimeTile(self.steps, self.rows, self.columns)
        return Rewrite((replace(site.loop.annotated(tile), span=self.span),))


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
    "overlap 2, columns 9": Example(_COPY, refused="the number of columns must be at most 8, got 9"),
    "overlap 2, lines 2": Example(_COPY, refused="overlap has no argument 'lines'"),
    "overlap": Example(_COPY, refused="overlap needs the number of steps per launch first"),
    "overlap 65": Example(_COPY, refused="the number of steps must be at most 64, got 65"),
}  # fmt: skip
