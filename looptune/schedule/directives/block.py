"""Block: the steps of a sequential loop run in blocks, the rest of the nest piece by piece for each block.

    for k in 0..n:                              for outer_k in 0..ceil(n/T):                the block K of steps
      for i in k+1..n: A[i][k] /= A[k][k]         for k, i, j in K: ...                     the diagonal
      for i in k+1..n:                  ==>       for i beyond K: for k in K: for j in K    the column panel
        for j in k+1..n:                          for j beyond K: for k in K: for i in K    the row panel
          A[i][j] -= A[i][k] * A[k][j]            for i, j beyond K: for k in K:            the trailing update
                                                    A[i][j] -= A[i][k] * A[k][j]

Block K has the steps T*K .. T*K + T. The values of inner loops that count what the steps count elsewhere are divided
into those of the block and those beyond it. The pieces that result are put one after the other, in the order of their
dependences; pieces that depend on each other in a circle stay together. In a piece, the loops that are beyond the
block, or not divided, stand outside where that is legal, and all else runs in the order of the text, so that the steps
are the innermost loop of the trailing update, which is a product. A piece without such loops runs step by step.

Legal when: no dependence is reversed. Gain: one launch for T steps of each piece, whose elements are used T times.
Cost: more launches per block than per step.

Source: S. Carr and K. Kennedy, "Compiler blockability of numerical algorithms", Supercomputing 1992.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, ClassVar, Self

from looptune.core.errors import DirectiveError
from looptune.ir.def_use import names_in
from looptune.ir.nodes import If, Load, Loop
from looptune.ir.rewrite import renaming, rewrite, walk
from looptune.poly.isl_objects import SchedulePiece
from looptune.schedule.directives.base import (
    DirectiveSite,
    Example,
    NewSchedule,
    fresh_name,
    isl_conjunction,
    positive,
    restrict_schedule,
    statement_names,
)
from looptune.schedule.directives.distribute import strongly_connected_components
from looptune.schedule.directives.generation import (
    GeneratedNest,
    GeneratedTransform,
    generate_in_order,
    loop_paths,
    read_nest,
)

if TYPE_CHECKING:
    from looptune.ir.nodes import Directive, Stmt
    from looptune.poly.dependence_graph import Piece
    from looptune.poly.scop import Order

MOST_INNER = 3
"""Loops in the steps that are divided: eight pieces of a statement."""


@dataclass(frozen=True, slots=True)
class _Part:
    """Instances of a statement: those of ``piece`` whose values of some inner loops are ``beyond`` the block.

    ``beyond`` are entries of the time, and ``movable`` those of the loops that may stand outside of the steps.
    """

    piece: SchedulePiece
    when: str
    beyond: tuple[int, ...]
    movable: tuple[int, ...]


@dataclass(frozen=True)
class Block(GeneratedTransform):
    name: ClassVar = "block"
    syntax: ClassVar = "block STEPS"
    stage: ClassVar = "split"

    steps: int

    @classmethod
    def parse(cls, directive: Directive) -> Self:
        if len(directive.args) != 1:
            raise DirectiveError(f"block takes the number of steps of a block (syntax: {cls.syntax})", directive.span)
        (arg,) = directive.args
        if arg.key:
            raise DirectiveError(f"block takes the number of steps of a block, got '{arg.key}'", arg.span)
        steps = positive(arg, "the steps of a block")
        if steps < 2:
            raise DirectiveError("the steps of a block must be at least 2, got 1", arg.span)
        return cls(steps, span=directive.span)

    def generated(self, site: DirectiveSite) -> GeneratedNest:
        nest = read_nest(site, self.name)
        divided, paths = _divided_loops(site.loop), loop_paths(site.loop)
        targets = {n.name: names_in(n.target.index) for n in nest.copies.values() if isinstance(n.target, Load)}
        parts = {
            n: tuple(q for p in pieces for q in self._parts(site, p, paths[n][1:], divided, targets.get(n, set())))
            for n, pieces in restrict_schedule(site.order, statement_names(site.loop)).items()
        }
        groups = self._groups(site, parts)
        if len(groups) < 2:
            what = f"all pieces of loop {site.loop.var} depend on each other in a circle"
            raise site.refuse(f"block {self.steps}: {what}")
        order = self._order(site, parts, groups)
        refused = site.queries.judge(NewSchedule(order), site.order)
        made = generate_in_order(site, nest, order, self.name) if refused is None else None
        if made is None:
            return GeneratedNest(NewSchedule(order), (site.loop,))
        return replace(made, body=_named(site, made.body))

    def _parts(
        self, site: DirectiveSite, piece: SchedulePiece, path: Sequence[Loop], divided: set[str], target: set[str]
    ) -> Iterator[_Part]:
        """Yield the parts of a piece, those with few loops beyond the block first.

        ``path``: the loops around the statement inside the steps; ``target``: the variables in the subscripts of the
        element that it writes.
        """
        p = site.depth
        first = f"{self.steps}*{self._block(piece.time[p])}"
        inner = [p + 2 * d for d, f in enumerate(path, 1) if f.var in divided][:MOST_INNER]
        free = {p + 2 * d for d, f in enumerate(path, 1) if f.var in target and p + 2 * d not in inner}
        own = {p + 2 * d for d, f in enumerate(path, 1) if f.var in target}
        for beyond in sorted(product((False, True), repeat=len(inner)), key=sum):
            when = piece.when
            for k, out in zip(inner, beyond, strict=True):
                value = piece.time[k]
                within = f"{value} >= {first} and {value} < {first} + {self.steps}"
                outside = f"{value} < {first} or {value} >= {first} + {self.steps}"
                when = isl_conjunction(when, outside if out else within)
            out_of_it = {k for k, out in zip(inner, beyond, strict=True) if out}
            yield _Part(piece, when, tuple(sorted(out_of_it)), tuple(sorted(free | out_of_it & own)))

    def _block(self, step: str) -> str:
        return f"floor(({step})/{self.steps})"

    def _groups(self, site: DirectiveSite, parts: Mapping[str, Sequence[_Part]]) -> list[list[Piece]]:
        """Return the parts that have instances, in order; those that depend on each other in a circle are together."""
        p = site.depth
        asked: Order = {
            n: tuple(SchedulePiece((*q.piece.time[:p], self._block(q.piece.time[p])), q.when) for q in mine)
            for n, mine in parts.items()
        }
        nodes, before = site.queries.piece_graph(asked, p + 1)

        def place(node: Piece) -> tuple[int, tuple[str, ...]]:
            part = parts[node[0]][node[1]]
            return len(part.beyond), part.piece.time[p + 1 :: 2]

        called = {f"{n} {k}": (n, k) for n, k in sorted(nodes, key=place)}
        names = {node: name for name, node in called.items()}
        found = strongly_connected_components([*called], [(names[a], names[b]) for a, b in before], ())
        return [[called[name] for name in called if name in group] for group in found]

    def _order(
        self, site: DirectiveSite, parts: Mapping[str, Sequence[_Part]], groups: Sequence[Sequence[Piece]]
    ) -> dict[str, tuple[SchedulePiece, ...]]:
        """Return the order: in each group, the movable loops outside of the steps where that is legal.

        A statement that never runs is in no group, and keeps its time.
        """
        order: dict[str, list[SchedulePiece]] = {n: [] for n in parts}
        for place, group in enumerate(groups):
            most = min(len(parts[n][k].movable) for n, k in group)
            for outside, as_text in (*((m, text) for m in range(most, 0, -1) for text in (True, False)), (0, False)):
                made: dict[str, tuple[SchedulePiece, ...]] = {}
                for n, k in group:
                    timed = self._timed(site, n, parts[n][k], place, outside, as_text=as_text)
                    made[n] = (*made.get(n, ()), timed)
                if not outside or site.queries.judge(NewSchedule(made), site.order) is None:
                    break
            for n, pieces in made.items():
                order[n] += pieces
        return {n: tuple(pieces) if pieces else site.order[n] for n, pieces in order.items()}

    def _timed(
        self, site: DirectiveSite, statement: str, part: _Part, place: int, outside: int, *, as_text: bool
    ) -> SchedulePiece:
        """Return the time of a part with the first loops that are movable, ``outside`` of them, around the steps.

        ``as_text``: in their iterations, the statements run in the order of the text.
        """
        p, time = site.depth, part.piece.time
        moved = [time[k] for k in part.movable[:outside]]
        around = [x for value in moved for x in (value, "0")]
        late = site.queries.space.nest.statements[statement].time if as_text else time[p:]
        inside = ["0" if x in moved else x for x in late]
        inside = ["0", *inside] if as_text else inside
        return SchedulePiece((*time[:p], self._block(time[p]), str(place), *around, *inside), part.when)


def _divided_loops(loop: Loop) -> set[str]:
    """Return the inner loops that say which elements are those of a step: they count what the steps count elsewhere.

    In A[i][j] -= A[i][k] * A[k][j] these are i and j, in X[i][j] -= L[i][k] * X[k][j] i alone.
    """
    places: dict[tuple[str, int], set[str]] = {}
    for n in (n for n in walk(loop) if isinstance(n, Load)):
        for d, e in enumerate(n.index):
            places.setdefault((n.array, d), set()).update(names_in(e))
    return {name for names in places.values() if loop.var in names for name in names} - {loop.var}


def _named(site: DirectiveSite, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Return the nest with the loops over the blocks, outermost ones, named after that over the steps."""
    name = fresh_name(f"outer_{site.loop.var}", site.used_names)

    def named(stmt: Stmt) -> Stmt:
        match stmt:
            case Loop(var) if stmt.number != site.loop.number:
                return replace(rewrite(renaming({var: name}), stmt), var=name)
            case If(_, then, other):
                return replace(stmt, then=tuple(map(named, then)), other=tuple(map(named, other)))
        return stmt

    return tuple(map(named, body))


_ELIMINATION = """\
for (int k = 0; k < n; k++)
    for (int i = k + 1; i < n; i++)
      for (int j = k + 1; j < n; j++)
        G[i][j] -= G[i][k] * G[k][j];"""
_CHAIN = "for (int i = 1; i < n; i++)\n    A[i] = A[i - 1];"

Block.examples = {
    "block 4": Example(_ELIMINATION, """\
for (int outer_k = 0; outer_k < (n + 2) / 4; outer_k++) {
  for (int k = 4 * outer_k; k < (n - 2 < 4 * outer_k + 2 ? n - 2 : 4 * outer_k + 2) + 1; k++) {
    for (int i = k + 1; i < (n - 1 < 4 * outer_k + 3 ? n - 1 : 4 * outer_k + 3) + 1; i++) {
      for (int j = k + 1; j < (n - 1 < 4 * outer_k + 3 ? n - 1 : 4 * outer_k + 3) + 1; j++) {
        G[i][j] -= G[i][k] * G[k][j];
      }
    }
  }
  for (int j = 4 * outer_k + 4; j < n; j++) {
    for (int k = 4 * outer_k; k < 4 * outer_k + 3; k++) {
      for (int i = k + 1; i < 4 * outer_k + 4; i++) {
        G[i][j] -= G[i][k] * G[k][j];
      }
    }
  }
  for (int i = 4 * outer_k + 4; i < n; i++) {
    for (int k = 4 * outer_k; k < 4 * outer_k + 3; k++) {
      for (int j = k + 1; j < 4 * outer_k + 4; j++) {
        G[i][j] -= G[i][k] * G[k][j];
      }
    }
  }
  for (int i = 4 * outer_k + 4; i < n; i++) {
    for (int j = 4 * outer_k + 4; j < n; j++) {
      for (int k = 4 * outer_k; k < 4 * outer_k + 4; k++) {
        G[i][j] -= G[i][k] * G[k][j];
      }
    }
  }
}"""),
    "block 2": Example(_CHAIN, refused="block 2: all pieces of loop i depend on each other in a circle"),
    "block 1": Example(_CHAIN, refused="the steps of a block must be at least 2, got 1"),
    "block": Example(_CHAIN, refused="block takes the number of steps of a block"),
    "block k:4": Example(_CHAIN, refused="block takes the number of steps of a block, got 'k'"),
}  # fmt: skip
