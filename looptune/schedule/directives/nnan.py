"""Nnan: assert that no comparison in the loop has a NaN as operand, so that a selection is a minimum or maximum.

    least = h[d] < least ? h[d] : least        ==>        least = min(h[d], least)        one instruction for two

If one operand is a NaN, ``a < b ? a : b`` is b, and a GPU's minimum is the other operand. The assertion is used for a
``?:`` that selects between two numbers, float or double, that it compares, in the loop and the loops inside it; code
that uses ``if`` does not change.

Legal when: always, also under ``--no-reassociate``, since nothing is rounded differently. The user asserts that there
is no NaN, and the report lists this assertion beside the proof. Gain: chains of minima on a GPU are half as long. Cost:
none. It has no effect on a CPU, whose minimum is that of C.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from looptune.ir.nodes import Directive, Node, Select
from looptune.ir.rewrite import rewrite
from looptune.ir.simplify import as_min_max
from looptune.schedule.directives.base import DirectiveSite, Example, Rewrite, Transform, reject_arguments


@dataclass(frozen=True)
class Nnan(Transform):
    name: ClassVar = "nnan"
    syntax: ClassVar = "nnan"
    stage: ClassVar = "mode"
    former: ClassVar = {"nonan": "nnan"}
    assumes: ClassVar = "no NaN is compared"

    @classmethod
    def parse(cls, directive: Directive) -> Self:
        reject_arguments(directive)
        return cls(span=directive.span)

    def apply(self, site: DirectiveSite) -> Rewrite:
        def rule(n: Node) -> Node | None:
            match n:
                case Select() if as_min_max(n) is not None:
                    return replace(n, no_nans=True)
            return None

        chosen = rewrite(rule, site.loop)
        if chosen is site.loop:
            raise site.refuse(f"nnan: loop {site.loop.var} has no minimum or maximum, such as `a < b ? a : b`")
        return Rewrite((chosen,))


_LEAST = "for (int i = 1; i < n; i++)\n    A[i] = A[i] < B[i] ? A[i] : B[i];"
_OTHER = "for (int i = 1; i < n; i++)\n    A[i] = A[i] < 0 ? B[i] : A[i];"

Nnan.examples = {
    "nnan": Example(_LEAST, """\
for (int i = 1; i < n; i++) {
  A[i] = (A[i] < B[i] ? A[i] : B[i]);
}"""),
    "NNAN": Example(_OTHER, refused="has no minimum or maximum"),
    "nnan 3": Example(_LEAST, refused="takes no argument"),
}  # fmt: skip
