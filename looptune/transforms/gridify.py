"""Gridify: exactly these loops form the grid of a kernel.

    #pragma hmppcg gridify(i, j)       i ─▶ blockIdx.y   j ─▶ blockIdx.x, every loop inside stays in the thread
    for i: for j: for k: S(i, j, k)

Legal when: no dependence is carried by the loops named. Gain: control over the grid. Cost: none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from looptune.errors import DirectiveError
from looptune.ir import Arg, Directive, Loop, Mode, Node
from looptune.rewrite import rewrite, walk
from looptune.transforms.base import Change, Example, Site, Transform, wrong
from looptune.transforms.grid import block_of


@dataclass(frozen=True)
class Gridify(Transform):
    name: ClassVar = "gridify"
    syntax: ClassVar = "gridify [(LOOP [, LOOP])] [, blocksize XxY] [, private(VARIABLE, ...)] [, reduce(OP:VARIABLE)]"
    stage: ClassVar = "mode"

    loops: tuple[str, ...]
    """Outermost first; none: the loop the directive stands before."""
    block: tuple[int, ...] = ()

    @classmethod
    def parse(cls, directive: Directive) -> Self:
        loops: list[str] = []
        block: tuple[int, ...] = ()
        for arg in directive.args:
            match arg:
                case Arg(key) if key.lower() == "blocksize":
                    block = block_of(arg)
                case Arg(key) if key.lower() in ("private", "reduce", "global"):
                    continue
                case Arg(key, ()) if key:
                    loops.append(key)
                case _:
                    raise wrong(cls, arg, ("blocksize", "private", "reduce", "global"))
        if len(loops) > 2:
            raise DirectiveError(f"gridify takes one or two loops, got {len(loops)}", directive.span)
        return cls(tuple(loops), block, span=directive.span)

    def parallel(self, loop: Loop) -> tuple[Loop, ...]:
        names = self.loops or (loop.var,)
        inside = {f.var: f for f in walk(loop) if isinstance(f, Loop)}
        missing = next((n for n in names if n not in inside), None)
        if missing is not None:
            raise DirectiveError(f"gridify: no loop {missing} in the nest of loop {loop.var}", self.span)
        return tuple(inside[n] for n in names)

    def apply(self, site: Site) -> Change:
        chosen = {f.var for f in self.parallel(site.loop)}

        def rule(n: Node) -> Node | None:
            match n:
                case Loop(var):
                    mode: Mode = "parallel" if var in chosen else "sequential" if n.mode == "sequential" else "thread"
                    return replace(n, mode=mode, block=self.block if self.block else n.block)
            return None

        return Change((rewrite(rule, site.loop),))


_NEST = "for (int i = 0; i < n; i++)\n    for (int j = 0; j < m; j++)\n      D[i][j] = F[j][i];"

Gridify.examples = {
    "gridify(j), blocksize 256x1": Example(_NEST, """\
#pragma hmppcg noParallel
#pragma hmppcg grid blocksize 256x1
for (int i = 0; i < n; i++) {
  #pragma hmppcg parallel
  for (int j = 0; j < m; j++) {
    D[i][j] = F[j][i];
  }
}"""),
    "gridify(i, k)": Example(_NEST, refused="no loop k"),
}  # fmt: skip
