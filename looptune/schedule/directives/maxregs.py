"""MaxRegs: limit the registers of a thread; values that do not fit are in local memory.

    #pragma looptune maxregs 64      for its loop and the loops nested in it; by default the compiler chooses

A multiprocessor has 65536 registers: with 64 per thread it holds 1024 threads at a time, with 128 half as many.

Legal when: always. Gain: more threads at a time, which hide latencies. Cost: values that are spilled to memory and read
again. It has no effect on a CPU and with OpenCL, whose compilers choose.
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
    """The annotation that limits the registers of a thread of the kernel."""

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
