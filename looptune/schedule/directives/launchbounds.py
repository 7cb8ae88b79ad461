"""LaunchBounds: set what the compiler is told about the blocks of a kernel, by which it allocates registers.

    #pragma looptune launchbounds 2      two blocks have to fit on a multiprocessor at the same time
    #pragma looptune launchbounds off    the number of threads of a block is unknown; for its loop and those in it

Without the directive, the compiler knows the number of threads of a block and nothing else. It then uses registers for
loads that are issued early, as long as one block fits. If it knows nothing, it allows blocks of any size, and uses few
registers.

Legal when: always; ``maxregs`` replaces it. Gain: loads that overlap, or more threads at a time; the tuner finds which
of them is better. Cost: the other one. It has no effect on a CPU and with OpenCL.
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
    """The annotation that tells the compiler how many blocks have to fit on a multiprocessor, or with OFF nothing."""

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
