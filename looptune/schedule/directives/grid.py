"""Grid blocksize: set the number of threads of a block along x (the inner grid loop) and y.

    #pragma hmppcg grid blocksize 32x8      for its loop and the loops nested in it; the default is 32x8

Legal when: always. ``check`` and ``run`` on an NVIDIA GPU refuse blocks of more than 1,024 threads; a version of a
space that has more exceeds a limit; the limit of another device is checked when the kernel is built. Gain: coalescing
(x a multiple of 32), occupancy, reuse in L1. Cost: idle threads at the edges.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar, Self

from looptune.core.errors import DirectiveError
from looptune.ir.nodes import Annotation, Arg, Directive
from looptune.schedule.directives.base import (
    GPU_THREADS,
    DirectiveSite,
    Example,
    Rewrite,
    Transform,
    annotate_nest,
    unknown_argument,
)

MOST_THREADS = 65_536
"""More than any device takes; what each takes it says when the kernel is made."""


def block_of(arg: Arg) -> tuple[int, ...]:
    """Return the sizes of ``blocksize 32x8``, one to three positive integers."""
    sizes = [v for v in arg.values if isinstance(v, int)]
    if not 1 <= len(sizes) <= 2 or len(sizes) != len(arg.values) or min(sizes) < 1:
        raise DirectiveError("a block size is one or two positive numbers, such as 32x8", arg.span)
    if prod(sizes) > MOST_THREADS:
        raise DirectiveError(
            f"a block of {prod(sizes):,} threads: no device allows more than {MOST_THREADS:,}, "
            f"most allow {GPU_THREADS:,}",
            arg.span,
        )
    return tuple(sizes)


@dataclass(frozen=True, slots=True)
class BlockSize(Annotation):
    """The threads of a block of the kernel, along x and, where there are two numbers, y."""

    word: ClassVar = "grid"
    inherited: ClassVar = True
    compared: ClassVar = False
    of_join: ClassVar = True

    block: tuple[int, ...]

    def pragma(self) -> str:
        return f"#pragma hmppcg grid blocksize {'x'.join(map(str, self.block))}"


@dataclass(frozen=True)
class Grid(Transform):
    name: ClassVar = "grid"
    syntax: ClassVar = "grid blocksize XxY"
    stage: ClassVar = "mode"
    applies_to_nested: ClassVar = True

    block: tuple[int, ...]

    @classmethod
    def parse(cls, directive: Directive) -> Self:
        match directive.args:
            case (Arg(key) as arg,) if key.lower() == "blocksize":
                return cls(block_of(arg), span=directive.span)
            case (arg, *_):
                raise unknown_argument(cls, arg, ("blocksize",))
        raise DirectiveError(f"grid needs a block size (syntax: {cls.syntax})", directive.span)

    @property
    def threads(self) -> int:
        return prod(self.block)

    def apply(self, site: DirectiveSite) -> Rewrite:
        return annotate_nest(site, BlockSize(self.block))


_COPY = "for (int i = 0; i < n; i++)\n    B[i] = A[i];"

Grid.examples = {
    "grid blocksize 64x4": Example(_COPY, """\
for (int i = 0; i < n; i++) {
  B[i] = A[i];
}"""),
    "grid blocksize 0x4": Example(_COPY, refused="one or two positive numbers"),
}  # fmt: skip
