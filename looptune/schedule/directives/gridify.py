"""Gridify: make exactly the named loops the grid of a kernel.

    #pragma hmppcg gridify(i, j)       i ─▶ y of the grid   j ─▶ x; every other loop stays in the thread
    for i: for j: for k: S(i, j, k)    gridify(i, j, k): i on z, where each block has one of its iterations

The order of the names counts, not that of the nest: ``gridify(j, i)`` puts i on x. Three loops have to be named in the
order of the nest, each directly in the one before. The iterations of a loop that carries reductions are shared by the
threads of one block. If several loops of the nest have the same name, all of them are meant. If the bounds of the inner
loop depend on the outer one, the grid covers all values, and threads outside the bounds do nothing.

Legal when: the named loops carry no dependence except reductions. Gain: control over the grid. Cost: none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

from looptune.core.errors import DirectiveError
from looptune.ir.def_use import names_in
from looptune.ir.nodes import Arg, Directive, Loop, Mode, Node, While
from looptune.ir.rewrite import rewrite, walk
from looptune.schedule.directives.base import (
    Alternative,
    DirectiveSite,
    Example,
    Rewrite,
    Transform,
    for_one_loop,
    unknown_argument,
)
from looptune.schedule.directives.grid import BlockSize, block_of

_WORDS = ("blocksize", "private", "reduce", "global")


@dataclass(frozen=True)
class Gridify(Transform):
    name: ClassVar = "gridify"
    syntax: ClassVar = (
        "gridify [(LOOP [, LOOP [, LOOP]])] [, blocksize XxY] [, private(VARIABLE, ...)] [, reduce(OP:VARIABLE)]"
    )
    stage: ClassVar = "mode"

    loops: tuple[str, ...]
    """Outermost first; none: the loop the directive stands before."""
    block: tuple[int, ...] = ()
    reduce: Arg | None = None

    @classmethod
    def alternatives(cls, directive: Directive, loop: Loop | While) -> Iterator[Alternative]:
        """Yield one loop of the list in place of all of them."""
        loops = [a for a in directive.args if a.key and not a.values and a.key.lower() not in _WORDS]
        return map(Alternative, for_one_loop(directive, loops))

    @classmethod
    def parse(cls, directive: Directive) -> Self:
        loops: list[str] = []
        reduce: Arg | None = None
        block: tuple[int, ...] = ()
        for arg in directive.args:
            match arg:
                case Arg(key) if key.lower() == "blocksize":
                    block = block_of(arg)
                case Arg(key) if key.lower() == "reduce":
                    reduce = arg
                case Arg(key) if key.lower() in ("private", "global"):
                    continue
                case Arg(key, ()) if key:
                    loops.append(key)
                case _:
                    raise unknown_argument(cls, arg, _WORDS)
        if len(loops) > 3:
            raise DirectiveError(f"gridify takes one to three loops, got {len(loops)}", directive.span)
        return cls(tuple(loops), block, reduce, span=directive.span)

    def parallel(self, loop: Loop) -> tuple[Loop, ...]:
        names = self.loops or (loop.var,)
        inside = [f for f in walk(loop) if isinstance(f, Loop)]
        missing = next((n for n in names if all(f.var != n for f in inside)), None)
        if missing is not None:
            raise DirectiveError(f"gridify: no loop {missing} in the nest of loop {loop.var}", self.span)
        return tuple(f for f in inside if f.var in names)

    def reductions(self) -> Arg | None:
        return self.reduce

    def apply(self, site: DirectiveSite) -> Rewrite:
        chosen = list(dict.fromkeys(f.var for f in self.parallel(site.loop)))
        turned = self.loops == (*reversed(chosen),) and len(chosen) == 2
        inner = [f for f in walk(site.loop) if isinstance(f, Loop) and f.var == chosen[-1]]
        slanted = len(chosen) == 2 and any(chosen[0] in names_in((f.lo, f.hi)) for f in inner)
        axes: Mapping[str, Literal["x", "y", "z"]] = {}
        if turned or slanted:
            axes = dict(zip(self.loops, ("y", "x"), strict=True))
        elif len(chosen) == 3:
            self._check_nest(site, chosen)
            axes = {chosen[0]: "z"}

        size = (BlockSize(self.block),) if self.block else ()

        def rule(n: Node) -> Node | None:
            match n:
                case Loop(var) if var in chosen:
                    return replace(n, mode="parallel", thread_axis=axes.get(var, "")).annotated(*size)
                case Loop():
                    mode: Mode = "sequential" if n.mode == "sequential" or n.reductions else "thread"
                    reduces = n.reductions if n.in_parts else ()
                    return replace(n, mode=mode, reductions=reduces).annotated(*size)
            return None

        return Rewrite((rewrite(rule, site.loop),))

    def _check_nest(self, site: DirectiveSite, chosen: Sequence[str]) -> None:
        """Raise DirectiveError unless each of three loops directly contains the next."""
        outer = next(f for f in walk(site.loop) if isinstance(f, Loop) and f.var == chosen[0])
        chain, body = [outer.var], outer.body
        while len(body) == 1 and isinstance(body[0], Loop):
            chain.append(body[0].var)
            body = body[0].body
        if self.loops != tuple(chosen) or not set(chosen) <= set(chain):
            first, then, last = self.loops
            raise site.refuse(f"gridify of three loops: loop {first} must contain only loop {then}, and that loop only "
                              f"{last}: use permute or distribute first")  # fmt: skip


_NEST = "for (int i = 0; i < n; i++)\n    for (int j = 0; j < m; j++)\n      D[i][j] = F[j][i];"
_DEEP = """for (int i = 0; i < n; i++)
    for (int j = 0; j < m / 2; j++)
      for (int k = 0; k < 2; k++)
        D[i][2 * j + k] = E[k];"""
_SUMS = "for (int i = 0; i < n; i++)\n    for (int j = 0; j < m; j++)\n      B[i] += D[i][j];"

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
    "gridify(j, i), reduce(+:B)": Example(_SUMS, """\
#pragma hmppcg gridify(j, i)
for (int i = 0; i < n; i++) {
  #pragma hmppcg parallel, reduce(+:B)
  for (int j = 0; j < m; j++) {
    B[i] += D[i][j];
  }
}"""),
    "gridify(i, k)": Example(_NEST, refused="no loop k"),
    "gridify(i, j, k)": Example(_DEEP, """\
#pragma hmppcg gridify(i, j, k)
for (int i = 0; i < n; i++) {
  #pragma hmppcg parallel
  for (int j = 0; j < m / 2; j++) {
    #pragma hmppcg parallel
    for (int k = 0; k < 2; k++) {
      D[i][2 * j + k] = E[k];
    }
  }
}"""),
}  # fmt: skip
