"""Rfactor: distribute the iterations of a loop that reduces to P blocks, and combine their partial sums afterwards.

    for i: for j:                                 for p in 0..P, each a block; for i: for j:
      for k in 0..K: C[i][j] += e        ==>        part[p][i][j] = the sum over its K/P iterations of k
                                                  for i: for j: for p in 0..P: C[i][j] += part[p][i][j]

    for i in 0..N:                                for p in 0..P, each a thread:
      h[x[i]] += w[i]                               for b: part[b][p] = 0
                                           ==>      for i in p, p + P, ...: part[x[i]][p] += w[i]
                                                  for b: for p in 0..P: h[b] += part[b][p]

If the iterations accumulate into different elements, each part has a copy of the array and is one thread.

The order of the sums depends only on P and the sizes. With ``parallel`` on the same loop, the threads of each block
share its iterations; without it, one thread runs them.

Legal when: the loop carries only reductions (``+ * & | ^ min max``), and not under --no-reassociate if another order
rounds differently; it stands in parallel loops, with or without conditions on their variables, and nothing else there
changes what is summed. Where parts have copies, no parallel loop is around, and the copies take at most 1 GiB. Gain:
more threads, if a grid is small and its sums are long. Cost: memory for P partial sums of every sum, and a kernel.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from looptune.core.errors import DirectiveError
from looptune.ir.nodes import Annotation, Directive, Loop
from looptune.schedule.directives.base import DirectiveSite, Example, Rewrite, Transform, positive

MOST_PARTS = 65535
"""Blocks along z of a grid, on every GPU."""


@dataclass(frozen=True, slots=True)
class ReductionParts(Annotation):
    """The annotation that distributes the iterations of a reduction loop to ``split_factor`` blocks."""

    word: ClassVar = "rfactor"
    in_parts: ClassVar = True

    split_factor: int

    def pragma(self) -> str:
        return f"#pragma looptune rfactor {self.split_factor}"

    def of_points(self) -> None:
        """Return None: the strips are distributed to blocks."""


@dataclass(frozen=True)
class RFactor(Transform):
    name: ClassVar = "rfactor"
    syntax: ClassVar = "rfactor [LOOP:]PARTS"
    stage: ClassVar = "mode"
    requires_reduction: ClassVar = True
    copies_arrays: ClassVar = True
    former: ClassVar = {"split": "rfactor"}

    parts: int

    @classmethod
    def parse(cls, directive: Directive) -> Self:
        if len(directive.args) != 1:
            raise DirectiveError(f"rfactor needs one number of parts (syntax: {cls.syntax})", directive.span)
        (arg,) = directive.args
        parts = positive(arg, "the number of parts")
        if parts > MOST_PARTS:
            raise DirectiveError(f"rfactor makes {MOST_PARTS} parts at most, not {parts}", arg.span)
        return cls(parts, span=directive.span)

    @classmethod
    def per_loop(cls, directive: Directive) -> tuple[tuple[str, Directive], ...]:
        """Return the directive for each loop that it names, by loop name; "" is the loop it precedes.

        ``rfactor k:8`` belongs to loop k of the nest and becomes ``rfactor 8`` there.
        """
        named = [a for a in directive.args if a.key and a.values]
        return tuple((a.key, replace(directive, args=(replace(a, key=""),))) for a in named) or (("", directive),)

    def parallel(self, loop: Loop) -> tuple[Loop, ...]:
        return (loop,)

    def apply(self, site: DirectiveSite) -> Rewrite:
        loop = site.loop.without(ReductionParts)
        return Rewrite((loop.annotated(ReductionParts(self.parts)) if self.parts > 1 else loop,))


_SUMS = "for (int i = 0; i < n; i++)\n    for (int j = 0; j < m; j++)\n      B[i] += D[i][j];"
_DIGITS = "for (int i = 0; i < n; i++)\n    B[i / 10] += A[i];"
_COPY = "for (int i = 0; i < n; i++)\n    B[i] = A[i];"
_PREFIX = "for (int i = 1; i < n; i++)\n    A[i] += A[i - 1];"

RFactor.examples = {
    "rfactor j:4": Example(_SUMS, """\
#pragma hmppcg parallel
for (int i = 0; i < n; i++) {
  #pragma hmppcg noParallel
  #pragma looptune rfactor 4
  for (int j = 0; j < m; j++) {
    B[i] += D[i][j];
  }
}"""),
    "rfactor 3": Example(_DIGITS, """\
#pragma hmppcg noParallel
#pragma looptune rfactor 3
for (int i = 0; i < n; i++) {
  B[i / 10] += A[i];
}"""),
    "rfactor 4": Example(_COPY, refused="loop i reduces nothing"),
    "rfactor 2": Example(_PREFIX, refused="iteration (i=1) must run before (i=2)"),
}  # fmt: skip
