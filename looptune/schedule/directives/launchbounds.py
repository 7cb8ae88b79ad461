"""LaunchBounds: what the compiler of the kernels is told of their blocks, by which it shares out the registers.

    #pragma looptune launchbounds 2      two blocks are to fit a multiprocessor at a time
    #pragma looptune launchbounds off    it is not told how many threads a block has; covers its loop and those in it

Without the directive it knows the threads of a block, and no more. It spends registers on loads that are begun early as
long as one block fits; not told, it expects blocks of any size, and is thrifty.

Legal when: always; `maxregs` takes its place. Gain: loads that wait for each other no more, or more threads at a time:
which of them is worth more the tuner finds out. Cost: the other one. On a CPU it changes nothing, nor with OpenCL.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from looptune.core.errors import DirectiveError
from looptune.ir.nodes import Annotation, Directive
from looptune.schedule.directives.base import DirectiveSite, Example, Rewrite, Transform, annotate_nest, positive

MOST = 32
"""A multiprocessor has no more blocks at a time."""
OFF = -1


@dataclass(frozen=True, slots=True)
class MinBlocks(Annotation):
    """The compiler is told that so many blocks are to fit a multiprocessor, or with OFF not even how large they are."""

    word: ClassVar = "launchbounds"
    inherited: ClassVar = True
    compared: ClassVar = False

    min_blocks_per_sm: int

    def pragma(self) -> str:
        return f"#pragma looptune launchbounds {'off' if self.min_blocks_per_sm == OFF else self.min_blocks_per_sm}"


@dataclass(frozen=True)
class LaunchBounds(Transform):
    name: ClassVar = "launchbounds"
    syntax: ClassVar = "launchbounds BLOCKS | off"
    stage: ClassVar = "mode"
    applies_to_nested: ClassVar = True

    blocks: int

    @classmethod
    def parse(cls, directive: Directive) -> Self:
        if len(directive.args) != 1:
            raise DirectiveError(
                f"launchbounds needs a number of blocks, or off (syntax: {cls.syntax})", directive.span
            )
        (arg,) = directive.args
        if arg.key == "off" and not arg.values:
            return cls(OFF, span=directive.span)
        blocks = positive(arg, "the number of blocks")
        if blocks > MOST:
            raise DirectiveError(f"a multiprocessor holds at most {MOST} blocks, got {blocks}", arg.span)
        return cls(blocks, span=directive.span)

    def apply(self, site: DirectiveSite) -> Rewrite:
        return annotate_nest(site, MinBlocks(self.blocks))


_COPY = "for (int i = 0; i < n; i++)\n    B[i] = A[i];"
_AS_IT_WAS = """\
for (int i = 0; i < n; i++) {
  B[i] = A[i];
}"""

LaunchBounds.examples = {
    "launchbounds 2": Example(_COPY, _AS_IT_WAS),
    "launchbounds off": Example(_COPY, _AS_IT_WAS),
    "launchbounds 64": Example(_COPY, refused="a multiprocessor holds at most 32 blocks, got 64"),
    "launchbounds": Example(_COPY, refused="needs a number of blocks, or off"),
}  # fmt: skip
