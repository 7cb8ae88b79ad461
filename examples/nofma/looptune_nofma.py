"""NoFma: the kernels of a loop round each product of floats before it is added, as C does on most CPUs.

    a * b + c    one operation that rounds once    ==>    nofma    a product that is rounded, then a sum

Legal when: always. Gain: results that do not differ from those of C by the rounding of a product. Cost: an instruction
more for each sum of products. It changes nothing on a CPU, where nothing is contracted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from looptune.ir.nodes import Annotation, Directive
from looptune.lower.plan import Kernel
from looptune.schedule.directives.base import (
    DirectiveSite,
    Example,
    Rewrite,
    Transform,
    annotate_nest,
    reject_arguments,
)


@dataclass(frozen=True, slots=True)
class RoundedProducts(Annotation):
    """The mark of a loop whose kernels must not contract products with sums."""

    word: ClassVar = "nofma"
    inherited: ClassVar = True
    compared: ClassVar = False

    def pragma(self) -> str:
        return "#pragma looptune nofma"

    def on_kernel(self, kernel: Kernel) -> Kernel:
        return replace(kernel, no_contraction=True)


@dataclass(frozen=True)
class NoFma(Transform):
    name: ClassVar = "nofma"
    syntax: ClassVar = "nofma"
    stage: ClassVar = "mode"
    applies_to_nested: ClassVar = True

    @classmethod
    def parse(cls, directive: Directive) -> Self:
        reject_arguments(directive)
        return cls(span=directive.span)

    def apply(self, site: DirectiveSite) -> Rewrite:
        return annotate_nest(site, RoundedProducts())


_SUM = "for (int i = 0; i < n; i++)\n    B[i] = A[i] * A[i] + B[i];"

NoFma.examples = {
    "nofma": Example(_SUM, """\
#pragma hmppcg parallel
#pragma looptune nofma
for (int i = 0; i < n; i++) {
  B[i] = A[i] * A[i] + B[i];
}"""),
    "nofma 2": Example(_SUM, refused="nofma takes no argument, got '2'"),
}  # fmt: skip
