"""Fullunroll: write all iterations of a loop as straight-line code.

    for k in 0..3: S(k)    ==>    S(0); S(1); S(2)

The trip count has to be known, from constants in the text or from the given sizes. In the second case the code is also
correct at other sizes: the loop remains beside it, under ``if (trips == 3) ... else ...``.

Legal when: always. Gain: no counter and no branch, elements in registers, folded constants. Cost: the size of the code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from looptune.ir.c_printer import expression_text
from looptune.ir.def_use import names_in
from looptune.ir.nodes import Assign, Binary, Const, Directive, Expr, If, Loop, Var
from looptune.ir.rewrite import substitute, walk
from looptune.schedule.directives.base import (
    MOST_STATEMENTS,
    DirectiveSite,
    Example,
    Rewrite,
    Transform,
    iteration_body,
    reject_arguments,
    trip_count,
)

MOST_TRIPS = 256


@dataclass(frozen=True)
class FullUnroll(Transform):
    name: ClassVar = "fullunroll"
    syntax: ClassVar = "fullunroll"
    stage: ClassVar = "loop"
    exclusive_group: ClassVar = "copies of the body"

    @classmethod
    def parse(cls, directive: Directive) -> Self:
        reject_arguments(directive)
        return cls(span=directive.span)

    def apply(self, site: DirectiveSite) -> Rewrite:
        loop = site.loop
        n = trip_count(loop)
        count = max(0, self._count(site, n))
        copies = tuple(s for c in range(count) for s in iteration_body(loop, Const(c, loop.dtype)))
        if isinstance(n, Const):
            return Rewrite(copies)
        return Rewrite((If(Binary("==", n, Const(count, n.dtype)), copies, (loop,)) if copies else loop,))

    def _count(self, site: DirectiveSite, n: Expr) -> int:
        loop = site.loop
        known = {v.name: v.dtype for v in walk(n) if isinstance(v, Var) and v.name in site.sizes & site.values.keys()}
        match substitute(n, {name: Const(int(site.values[name]), dtype) for name, dtype in known.items()}):
            case Const(int(count)):
                pass
            case _:
                raise site.refuse(_unknown(site, n))
        if count > MOST_TRIPS:
            raise site.refuse(f"fullunroll: loop {loop.var} runs {count:,} times, the limit is {MOST_TRIPS}; "
                              f"`unroll U` makes only U copies")  # fmt: skip
        inside = sum(isinstance(s, Assign) for s in walk(loop.body))
        if count * inside > MOST_STATEMENTS:
            raise site.refuse(f"fullunroll: {count} copies of the {inside} assignments in loop {loop.var} are "
                              f"{count * inside:,}, the limit is {MOST_STATEMENTS:,}; "
                              "`unroll U` makes only U copies")  # fmt: skip
        return count


def _unknown(site: DirectiveSite, n: Expr) -> str:
    outer = [f.var for f in site.enclosing_loops if isinstance(f, Loop) and f.var in names_in(n)]
    what = f"fullunroll: the trip count of loop {site.loop.var}"
    if outer:
        return f"{what} depends on loop {outer[-1]}; `unroll U` makes only U copies"
    given = " ".join(f"-D {name}=..." for name in sorted((names_in(n) & site.sizes) - site.values.keys()))
    return f"{what}, {expression_text(n)}, is not known; " + (
        f"give it with {given}" if given else "`unroll U` makes only U copies"
    )


_WINDOW = "for (int i = 0; i < 3; i++)\n    B[0] += i * A[0];"
_STEP = "for (int i = 1; i < 7; i += 3)\n    for (int j = i; j < m; j++)\n      E[j] = i;"
_LONG = "for (int i = 0; i < 1000; i++)\n    B[0] += A[0];"
_SIZE = "for (int i = 0; i < n; i++)\n    B[i] = A[i];"

FullUnroll.examples = {
    "fullunroll": Example(_WINDOW, """\
B[0] += 0 * A[0];
B[0] += 1 * A[0];
B[0] += 2 * A[0];"""),
    "fullUnroll": Example(_STEP, """\
for (int j = 1; j < m; j++) {
  E[j] = 1;
}
for (int j = 4; j < m; j++) {
  E[j] = 4;
}"""),
    "Fullunroll": Example(_LONG, refused="runs 1,000 times, the limit is 256"),
    "FULLUNROLL": Example(_SIZE, refused="the trip count of loop i, n, is not known; give it with -D n=..."),
}  # fmt: skip
