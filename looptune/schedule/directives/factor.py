"""Factor: multiply a sum by a common factor of its terms once, instead of each term.

    for k in 0..m:                                      s = 0
      C[i][j] += alpha * A[i][k] * B[k][j]       ==>    for k in 0..m: s += A[i][k] * B[k][j]
                                                        C[i][j] += alpha * s

The C that is printed keeps the loop as it is; in kernels the sum has a register of its own.

Legal when: a sum in the loop has a factor that no iteration changes; not under --no-reassociate, since it rounds
differently. Gain: a multiplication less for each term, and the element is not loaded before the loop. Cost: none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

from looptune.schedule.directives.base import (
    DirectiveSite,
    Example,
    Rewrite,
    Transform,
    reject_arguments,
    statement_names,
)
from looptune.schedule.directives.reduction_simplification import RegroupedSums, simplify_reductions

if TYPE_CHECKING:
    from looptune.ir.nodes import Directive, Loop


@dataclass(frozen=True)
class Factor(Transform):
    name: ClassVar = "factor"
    syntax: ClassVar = "factor"
    stage: ClassVar = "mode"

    @classmethod
    def parse(cls, directive: Directive) -> Self:
        reject_arguments(directive)
        return cls(span=directive.span)

    def regrouped_statements(self, loop: Loop) -> frozenset[str]:
        return statement_names(loop.body)

    def apply(self, site: DirectiveSite) -> Rewrite:
        loop = site.loop
        if not simplify_reductions((loop,), statement_names(loop.body), site.used_names)[2]:
            raise site.refuse(f"factor: no sum in loop {loop.var} has a loop-invariant factor")
        return Rewrite((loop.annotated(RegroupedSums()),))


_SUM = """for (int i = 0; i < n; i++)
    #pragma hmppcg factor
    for (int j = 0; j < m; j++)
      B[i] += E[j] * A[i];"""
_ROWS = """for (int j = 0; j < m; j++)
    for (int i = 0; i < n; i++)
      B[i] += D[i][j] * E[j];"""

Factor.examples = {
    "factor": Example(_SUM, """\
for (int i = 0; i < n; i++) {
  for (int j = 0; j < m; j++) {
    B[i] += E[j] * A[i];
  }
}"""),
    "Factor": Example(_ROWS, refused="no sum in loop j has a loop-invariant factor"),
}  # fmt: skip
