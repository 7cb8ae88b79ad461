"""Parallel and noParallel: run the iterations of a loop by threads, or by one thread.

    parallel     threads run them, in any order      noParallel   one thread runs them, one after the other

Without either, the dependence analysis decides: a loop that carries no dependence is parallel.

    for (j ...)                                 each thread sums some of the iterations, a tree adds their sums,
        s += A[j];                              one of them updates s

    s = 0;                                      one block of threads runs all four, with barriers between them:
    for (i ...)       parallel                  it computes the sum,
        s += A[i] * A[i];
    s = sqrt(s);                                one thread computes the root,
    for (j ...)       parallel, team            and the threads share this loop, which is no launch of its own
        A[j] /= s;

With ``team``, the threads of one block share the iterations, as they do in a loop that reduces; in a loop of the grid,
the team of each iteration shares them. Neighbouring statements that all need one block are one kernel. Of two loops
with ``team``, one directly in the other, a block of two dimensions shares the outer one along y and the inner along x.
In two or three nested parallel loops, each of which is all of the one around it, each iteration of the innermost has a
block as its team, for its loops that reduce and those with ``team``.
``noParallel, team`` has the threads of one block run a sequential loop together, and share the loops in it that have
``team``. ``team`` has no effect on a CPU.

Legal when: the loop carries no dependence except reductions (``+ * & | ^ min max``). The terms of these get another
order, so they are refused under --no-reassociate if that rounds differently. ``reduce(+:s)`` is compared with the
result of the analysis. ``parallel, assume`` asserts that the loop carries no dependence where the code cannot be
analysed. Gain: more threads; noParallel on an inner loop gives each thread more work; team saves launches. Cost:
noParallel reduces the parallelism.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from looptune.ir.nodes import Arg, Directive, Loop
from looptune.schedule.directives.base import (
    DirectiveSite,
    Example,
    Rewrite,
    Transform,
    unknown_argument,
)


@dataclass(frozen=True)
class Parallel(Transform):
    """Threads run the iterations of a loop, in any order."""

    name: ClassVar = "parallel"
    syntax: ClassVar = "parallel [, team] [, reduce(OP:VARIABLE, ...)] [, private(VARIABLE, ...)] [, assume]"
    stage: ClassVar = "mode"
    exclusive_group: ClassVar = "mode"
    former: ClassVar = {"trust": "assume"}

    assume: bool = False
    reduce: Arg | None = None
    team: bool = False

    @classmethod
    def parse(cls, directive: Directive) -> Self:
        """Parse the directive; ``private`` is ignored, since the analysis finds the private variables itself."""
        assume, reduce, team = False, None, False
        for arg in directive.args:
            match arg.key.lower():
                case "assume":
                    assume = True
                case "reduce":
                    reduce = arg
                case "team":
                    team = True
                case "private":
                    continue
                case _:
                    raise unknown_argument(cls, arg, ("team", "reduce", "private", "assume"))
        return cls(assume, reduce, team, span=directive.span)

    def parallel(self, loop: Loop) -> tuple[Loop, ...]:
        return (loop,)

    def reductions(self) -> Arg | None:
        return self.reduce

    def apply(self, site: DirectiveSite) -> Rewrite:
        return Rewrite(
            (replace(site.loop, mode="parallel", thread_axis="team" if self.team else site.loop.thread_axis),)
        )


@dataclass(frozen=True)
class NoParallel(Transform):
    """One thread, or one block, runs the iterations of a loop, one after the other."""

    name: ClassVar = "noparallel"
    syntax: ClassVar = "noParallel [, team]"
    stage: ClassVar = "mode"
    exclusive_group: ClassVar = "mode"
    fits_while: ClassVar = True

    team: bool = False

    @classmethod
    def parse(cls, directive: Directive) -> Self:
        wrong = next((a for a in directive.args if a.key.lower() != "team" or a.values), None)
        if wrong is not None:
            raise unknown_argument(cls, wrong, ("team",))
        return cls(bool(directive.args), span=directive.span)

    def apply(self, site: DirectiveSite) -> Rewrite:
        return Rewrite((replace(site.loop, mode="sequential", thread_axis="team" if self.team else ""),))


_COPY = "for (int i = 0; i < n; i++)\n    B[i] = A[i];"
_CHAIN = "for (int i = 1; i < n; i++)\n    A[i] = A[i - 1];"
_SUM = "float s = 0;\n  for (int i = 0; i < n; i++)\n    s += A[i];\n  B[0] = s;"

Parallel.examples = {
    "parallel": Example(_COPY, """\
#pragma hmppcg parallel
for (int i = 0; i < n; i++) {
  B[i] = A[i];
}"""),
    "parallel, team": Example(_COPY, """\
#pragma hmppcg parallel, team
for (int i = 0; i < n; i++) {
  B[i] = A[i];
}"""),
    "parallel, private(t)": Example(_CHAIN, refused="iteration (i=1) must run before (i=2)"),
    "parallel, reduce(+:s)": Example(_SUM, """\
float s;
s = 0;
#pragma hmppcg parallel, reduce(+:s)
for (int i = 0; i < n; i++) {
  s += A[i];
}
B[0] = s;"""),
    "parallel, reduce(*:s)": Example(_SUM, refused="reduce names *:s, but loop i reduces +:s"),
}  # fmt: skip
NoParallel.examples = {
    "noParallel": Example(_COPY, """\
#pragma hmppcg noParallel
for (int i = 0; i < n; i++) {
  B[i] = A[i];
}"""),
    "noParallel, team": Example(_CHAIN, """\
#pragma hmppcg noParallel, team
for (int i = 1; i < n; i++) {
  A[i] = A[i - 1];
}"""),
    "noParallel, teams": Example(_CHAIN, refused="noparallel has no argument 'teams'; did you mean 'team'?"),
}  # fmt: skip
