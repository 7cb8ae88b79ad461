"""MaxRegs: the most registers that a thread of the kernels may take; what does not fit is in local memory meanwhile.

    #pragma looptune maxregs 64      covers its loop and the loops nested in it; default: as many as the compiler likes

A multiprocessor has 65536, so that 64 for each thread let it hold 1024 of them, and 128 half as many.

Legal when: always. Gain: more threads at a time, which hide each other's waiting. Cost: values that are spilled to
memory and read again. On a CPU it changes nothing, nor with OpenCL, whose compilers decide for themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from looptune.core.errors import DirectiveError
from looptune.ir.nodes import Annotation, Directive
from looptune.schedule.directives.base import DirectiveSite, Example, Rewrite, Transform, annotate_nest, positive

LEAST, MOST = 16, 255
"""The compiler refuses fewer, and a thread has no more."""


@dataclass(frozen=True, slots=True)
class MaxRegisters(Annotation):
    """A thread of the kernel takes at most so many registers."""

    word: ClassVar = "maxregs"
    inherited: ClassVar = True
    compared: ClassVar = False

    max_registers: int

    def pragma(self) -> str:
        return f"#pragma looptune maxregs {self.max_registers}"

    def merge(self, other: Self) -> Self:
        return max(self, other, key=lambda a: a.max_registers)


@dataclass(frozen=True)
class MaxRegs(Transform):
    name: ClassVar = "maxregs"
    syntax: ClassVar = "maxregs NUMBER"
    stage: ClassVar = "mode"
    applies_to_nested: ClassVar = True

    registers: int

    @classmethod
    def parse(cls, directive: Directive) -> Self:
        if len(directive.args) != 1:
            raise DirectiveError(f"maxregs needs one number of registers (syntax: {cls.syntax})", directive.span)
        (arg,) = directive.args
        registers = positive(arg, "the number of registers")
        if not LEAST <= registers <= MOST:
            raise DirectiveError(f"a thread has {LEAST} to {MOST} registers, got {registers}", arg.span)
        return cls(registers, span=directive.span)

    def apply(self, site: DirectiveSite) -> Rewrite:
        return annotate_nest(site, MaxRegisters(self.registers))


_COPY = "for (int i = 0; i < n; i++)\n    B[i] = A[i];"

MaxRegs.examples = {
    "maxregs 64": Example(_COPY, """\
for (int i = 0; i < n; i++) {
  B[i] = A[i];
}"""),
    "maxregs 8": Example(_COPY, refused="a thread has 16 to 255 registers, got 8"),
    "maxregs": Example(_COPY, refused="needs one number of registers"),
}  # fmt: skip
