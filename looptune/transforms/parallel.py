"""Parallel and noParallel: who runs the iterations of a loop.

    parallel     threads do, in any order            noParallel   one thread does, one after the other

Without either, the dependence analysis decides: a loop that carries no dependence is parallel.

Legal when: no dependence is carried by the loop. ``parallel, trust`` asserts it where the code cannot be analysed.
Gain: noParallel on an inner loop leaves more work in each thread. Cost: parallelism.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from looptune.ir import Directive, Loop
from looptune.transforms.base import Change, Example, Site, Transform, no_arguments, wrong


@dataclass(frozen=True)
class Parallel(Transform):
    name: ClassVar = "parallel"
    syntax: ClassVar = "parallel [, reduce(OP:VARIABLE, ...)] [, private(VARIABLE, ...)] [, trust]"
    stage: ClassVar = "mode"

    trust: bool = False

    @classmethod
    def parse(cls, directive: Directive) -> Self:
        """``private`` and ``reduce`` are checked by the analysis, which finds them by itself."""
        trust = False
        for arg in directive.args:
            match arg.key.lower():
                case "trust":
                    trust = True
                case "reduce" | "private":
                    continue
                case _:
                    raise wrong(cls, arg, ("reduce", "private", "trust"))
        return cls(trust, span=directive.span)

    def parallel(self, loop: Loop) -> tuple[Loop, ...]:
        return (loop,)

    def apply(self, site: Site) -> Change:
        return Change((replace(site.loop, mode="parallel"),))


@dataclass(frozen=True)
class NoParallel(Transform):
    name: ClassVar = "noparallel"
    syntax: ClassVar = "noParallel"
    stage: ClassVar = "mode"

    @classmethod
    def parse(cls, directive: Directive) -> Self:
        no_arguments(directive)
        return cls(span=directive.span)

    def apply(self, site: Site) -> Change:
        return Change((replace(site.loop, mode="sequential"),))


_COPY = "for (int i = 0; i < n; i++)\n    B[i] = A[i];"
_CHAIN = "for (int i = 1; i < n; i++)\n    A[i] = A[i - 1];"
_SUM = "float s = 0;\n  for (int i = 0; i < n; i++)\n    s += A[i];\n  B[0] = s;"

Parallel.examples = {
    "parallel": Example(_COPY, """\
#pragma hmppcg parallel
for (int i = 0; i < n; i++) {
  B[i] = A[i];
}"""),
    "parallel, private(t)": Example(_CHAIN, refused="iteration (i=1) must run before (i=2)"),
    "parallel, reduce(+:s)": Example(_SUM, refused="carries the reduction"),
}  # fmt: skip
NoParallel.examples = {
    "noParallel": Example(_COPY, """\
#pragma hmppcg noParallel
for (int i = 0; i < n; i++) {
  B[i] = A[i];
}"""),
}  # fmt: skip
