"""Box: extend a loop to its range over all iterations of the loops around it; a condition excludes the rest.

    for i in 0..n:                      for i in 0..n:
      for j in i..n: S(i, j)     ==>      for j in 0..n:
                                            if (j >= i) S(i, j)

A triangle becomes a square, so that unrolling and jamming both loops makes tiles that begin at multiples of their size,
and all blocks of a kernel have the same form. With ``box 4`` the loop also ends at a multiple of 4, and begins at one
if its start is a constant, or that and multiples of it. Blocks without work end at once.

Legal when: always; the bounds have to be monotonic in the loops around. Gain: register tiles and shared memory for
triangles. Cost: iterations without work, and tiles across the border that are computed only in part.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from looptune.core.errors import DirectiveError
from looptune.ir.bounding_box import bounds, guarded_between
from looptune.ir.intervals import affine_terms
from looptune.ir.nodes import Const, Directive, Loop
from looptune.ir.simplify import add, div, mul, sub
from looptune.schedule.directives.base import DirectiveSite, Example, Rewrite, Transform, positive, unknown_argument


@dataclass(frozen=True)
class Box(Transform):
    name: ClassVar = "box"
    syntax: ClassVar = "box [MULTIPLE]"
    stage: ClassVar = "loop"
    first_of_loop: ClassVar = True

    multiple: int = 1

    @classmethod
    def parse(cls, directive: Directive) -> Self:
        match directive.args:
            case ():
                return cls(span=directive.span)
            case (arg,) if arg.values and not arg.key:
                return cls(positive(arg, "what box makes bounds multiples of"), span=directive.span)
            case (*_, arg) if len(directive.args) == 1:
                raise unknown_argument(cls, arg, ())
        raise DirectiveError(f"box takes one number at most (syntax: {cls.syntax})", directive.span)

    def apply(self, site: DirectiveSite) -> Rewrite:
        loop = site.loop
        found = bounds(loop, _beside(site))
        if found is None:
            raise site.refuse(f"box: how far loop {loop.var} goes in all iterations of the loops around is not known")
        lo, hi = found
        if self.multiple > 1 and loop.step > 1:
            raise site.refuse(f"box {self.multiple}: loop {loop.var} has the step {loop.step}; `box` alone is for any")
        multiple = Const(self.multiple, loop.dtype)
        terms, start = affine_terms(lo)
        if self.multiple > 1 and all(factor % self.multiple == 0 for factor in terms.values()):
            lo = add(sub(lo, Const(start, loop.dtype)), Const(start // self.multiple * self.multiple, loop.dtype))
        if self.multiple > 1:
            hi = mul(div(add(hi, Const(self.multiple - 1, loop.dtype)), multiple), multiple)
        if self.multiple == 1 and (lo, hi) == (loop.lo, loop.hi):
            raise site.refuse(f"box: loop {loop.var} has the same bounds in every iteration of the loops around it")
        return Rewrite((guarded_between(loop, lo, hi),))


def _beside(site: DirectiveSite) -> list[Loop]:
    """Return the loops around whose iterations run beside each other: all from the first one that is parallel on.

    A sequential loop around these is the host's, and each of its iterations has launches of its own.
    """
    around = [f for f in site.enclosing_loops if isinstance(f, Loop)]
    first = next((k for k, f in enumerate((*around, site.loop)) if f.mode == "parallel"), 0)
    return around[first:]


_TRIANGLE = """for (int i = 0; i < n; i++)
    #pragma hmppcg box
    for (int j = i; j < m; j++)
      D[i][j] = E[j];"""

Box.examples = {
    "box": Example(_TRIANGLE, """\
for (int i = 0; i < n; i++) {
  for (int j = 0; j < m; j++) {
    if (j >= i) {
      D[i][j] = E[j];
    }
  }
}"""),
    "box 4": Example("for (int i = 1; i < n; i++)\n    B[i] = A[i];", """\
for (int i = 0; i < (n + 3) / 4 * 4; i++) {
  if (i >= 1 && i < n) {
    B[i] = A[i];
  }
}"""),
    "box 0": Example("for (int i = 0; i < n; i++)\n    B[i] = A[i];", refused="must be at least 1"),
}  # fmt: skip
