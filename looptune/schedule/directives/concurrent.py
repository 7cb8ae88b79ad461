"""Concurrent: the kernel of a loop runs at the same time as that of the loop before it.

    for i: A[i][k] /= A[k][k]                    a kernel, and then another one
    for j: A[k][j] -= ...               ==>      both at once, each on the multiprocessors that the other leaves free

Launches of a GPU follow each other: a kernel of few blocks leaves most multiprocessors idle until its last thread is
done. What follows the loop waits for both.

Legal when: neither loop writes an element that the other one accesses in the same iteration of the loops around. Gain:
the shorter one of two kernels costs nothing if there is room for both. Cost: about a microsecond for each pair.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from looptune.ir.nodes import Annotation, Directive, Loop
from looptune.poly.neighbouring_loops import meeting
from looptune.schedule.directives.base import DirectiveSite, Example, Rewrite, Transform, reject_arguments
from looptune.schedule.directives.distribute import fission_part

Id = tuple[int, int]


@dataclass(frozen=True, slots=True)
class ConcurrentLaunch(Annotation):
    """Annotation of a loop: its kernel may run at the same time as that of the loop ``before`` it.

    A loop is its number and its part; ``own`` is the loop itself.
    """

    word: ClassVar = "concurrent"
    inherited: ClassVar = True
    compared: ClassVar = False

    own: Id
    before: Id

    def pragma(self) -> str:
        return "#pragma looptune concurrent"


def loop_id(loop: Loop) -> Id:
    """Return the number of a loop and of its part."""
    return loop.number, fission_part(loop)


@dataclass(frozen=True)
class Concurrent(Transform):
    name: ClassVar = "concurrent"
    syntax: ClassVar = "concurrent"
    stage: ClassVar = "mode"

    @classmethod
    def parse(cls, directive: Directive) -> Self:
        reject_arguments(directive)
        return cls(span=directive.span)

    def schedule(self, site: DirectiveSite) -> None:
        """Judge the directive: raises DirectiveError if one of the loops may need the other."""
        loop, before = site.loop, _before(site)
        around = tuple(f for f in site.enclosing_loops if isinstance(f, Loop))
        if len(around) < len(site.enclosing_loops):
            raise site.refuse(f"concurrent: loop {loop.var} is in a while loop")
        met = meeting(site.loop_context.codelet, around, before, loop)
        if met is None:
            return
        if met.first is None or met.then is None:
            raise site.refuse(f"concurrent: it is not known what loops {before.var} and {loop.var} access")
        a, b = met.first, met.then
        first, then = (("writes" if x.write else "reads") for x in (a, b))
        raise site.refuse(
            f"concurrent: loop {before.var} before it {first} {a.text} (line {a.span.line}), and loop {loop.var} "
            f"{then} {b.text} (line {b.span.line}), which may be the same element"
        )

    def apply(self, site: DirectiveSite) -> Rewrite:
        loop = site.loop
        return Rewrite((loop.annotated(ConcurrentLaunch(loop_id(loop), loop_id(_before(site)))),))


def _before(site: DirectiveSite) -> Loop:
    """Return the loop that stands directly before the directive's."""
    place = next((k for k, s in enumerate(site.block) if s is site.loop), 0)
    found = site.block[place - 1] if place else None
    if not isinstance(found, Loop) or not found.number:
        raise site.refuse(f"concurrent: no loop of the text stands directly before loop {site.loop.var}")
    return found


_TWO = """for (int i = 0; i < n; i++)
    A[i] = 1;
  #pragma hmppcg {}
  for (int j = 0; j < m; j++)
    E[j] = 2;"""
_SAME = """for (int i = 0; i < n; i++)
    A[i] = 1;
  #pragma hmppcg {}
  for (int j = 1; j < n; j++)
    B[j] = A[j - 1];"""

Concurrent.examples = {
    "concurrent": Example(_TWO.format("concurrent"), """\
#pragma hmppcg parallel
for (int i = 0; i < n; i++) {
  A[i] = 1;
}
#pragma hmppcg parallel
#pragma looptune concurrent
for (int j = 0; j < m; j++) {
  E[j] = 2;
}"""),
    "Concurrent": Example(_SAME.format("Concurrent"), refused="loop i before it writes A[i]"),
    "concurrent 2": Example(_TWO.format("concurrent 2"), refused="concurrent takes no argument"),
    "CONCURRENT": Example("for (int i = 0; i < n; i++)\n    A[i] = 1;", refused="no loop of the text stands directly"),
}  # fmt: skip
