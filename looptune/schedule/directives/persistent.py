"""Persistent: merge all launches of a sequential loop into one, whose blocks wait for each other between its nests.

    for t: launch: for i: A[i] = …      ==>      launch: for t: a block's share of the i: A[i] = …
           launch: for i: B[i] = …                              all blocks of the grid wait for each other
                                                                a block's share of the i: B[i] = …
                                                                all blocks of the grid wait for each other

The nests keep the shape of their blocks, but a block of the launch executes its share of them, one after the other; the
shapes of two nests may differ. All blocks have to run at the same time, so their number is what fits: the number per
multiprocessor that the directive names, by default one. On a CPU and with OpenCL, launches are not merged.

Legal when: always, since everything waits between two nests, as it does between two launches. Gain: no launches, if
these cannot be replayed from a graph. Cost: all nests have the registers and the shared memory of the largest, and data
that one nest only reads and another one changes cannot be read through the read-only cache.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from looptune.core.errors import DirectiveError
from looptune.ir.nodes import Annotation, Directive
from looptune.schedule.directives.base import DirectiveSite, Example, Rewrite, Transform, positive, unknown_argument

MOST_BLOCKS = 32
"""That a multiprocessor runs at one time, on any GPU."""


@dataclass(frozen=True, slots=True)
class PersistentBlocks(Annotation):
    """The annotation that merges all launches of a loop into one on a GPU.

    It has ``blocks_per_sm`` blocks per multiprocessor, which wait for each other.
    """

    word: ClassVar = "persistent"

    blocks_per_sm: int

    def pragma(self) -> str:
        return f"#pragma looptune persistent {self.blocks_per_sm}"


@dataclass(frozen=True)
class Persistent(Transform):
    name: ClassVar = "persistent"
    syntax: ClassVar = "persistent [BLOCKS]"
    stage: ClassVar = "mode"

    blocks: int = 1

    @classmethod
    def parse(cls, directive: Directive) -> Self:
        match directive.args:
            case ():
                return cls(span=directive.span)
            case (arg,) if not arg.key:
                blocks = positive(arg, "the number of blocks a multiprocessor runs")
                if blocks > MOST_BLOCKS:
                    raise DirectiveError(f"a multiprocessor holds at most {MOST_BLOCKS} blocks, got {blocks}", arg.span)
                return cls(blocks, span=directive.span)
        raise unknown_argument(cls, next((a for a in directive.args if a.key), directive.args[-1]), ())

    def apply(self, site: DirectiveSite) -> Rewrite:
        return Rewrite((replace(site.loop.annotated(PersistentBlocks(self.blocks)), span=self.span),))


_STEPS = """\
for (int t = 0; t < 100; t++) {
    for (int i = 1; i < n - 1; i++)
      B[i] = A[i - 1] + A[i + 1];
    for (int i = 1; i < n - 1; i++)
      A[i] = B[i];
  }"""
_COPY = "for (int i = 0; i < n; i++)\n    B[i] = A[i];"
_SUM = "for (int i = 1; i < n; i++)\n    A[i] = A[i] + A[i - 1];"

Persistent.examples = {
    "persistent 2": Example(_STEPS, """\
#pragma hmppcg noParallel
#pragma looptune persistent 2
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
    "persistent": Example(_COPY, refused="its iterations are independent, and it needs a sequential loop"),
    "persistent 1": Example(_SUM, refused="it contains no parallel loop"),
    "persistent 33": Example(_STEPS, refused="a multiprocessor holds at most 32 blocks, got 33"),
    "persistent 0": Example(_STEPS, refused="must be at least 1"),
    "persistent blocks 2": Example(_STEPS, refused="persistent has no argument"),
}  # fmt: skip
