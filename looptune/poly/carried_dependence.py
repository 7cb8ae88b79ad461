"""Why a loop is sequential: the most informative of the dependences that it carries.

1. flow: a value written in one iteration is read in a later one; only another algorithm removes this 2. anti or output:
an element is reused for another value; a copy of the array for each iteration removes this 3. what cannot be analysed,
where the dependence is only assumed

Among dependences of one kind, the one with the smallest example is taken.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import islpy as isl

from looptune.poly.access import Access
from looptune.poly.dependence import Dependence, conflict
from looptune.poly.isl_objects import Order, union
from looptune.poly.legality import LoopDependences
from looptune.poly.witness import Kind, Point, Violation, iteration_text, kind_of

if TYPE_CHECKING:
    from looptune.poly.scop import Scop

_EXAMPLES = 12
"""So many pairs of accesses are asked for their smallest example: each takes about a millisecond."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a loop is sequential; ``value``: a value flows from one iteration to another.

    ``arrays`` are all arrays on which the loop carries a dependence.
    """

    dependence: Violation
    value: bool
    arrays: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Pair:
    """Two accesses that carry a dependence.

    ``map``: { first[iteration] -> then[iteration] : both access one element, in this order }.
    """

    first: Access
    then: Access
    kind: Kind
    value: bool
    map: isl.Map

    @property
    def rank(self) -> tuple[bool, bool]:
        return self.first.unknown is not None or self.then.unknown is not None, not self.value


def explain_sequential(
    model: Scop, statements: Collection[str], depth: int, *, order: Order | None = None, reassociate: bool = True
) -> Reason | None:
    """Return why the loop around ``statements`` is sequential, None if the model has no dependence that it carries.

    Its dimension is entry ``depth`` of the times in ``order``, by default the order of the codelet.
    """
    loop = LoopDependences(model, frozenset(statements), depth, order if order is not None else model.order())
    left = [(d, bad) for d, bad in loop.carried_dependences()[0] if not d.commutes(reassociate)]
    pairs = [p for d, bad in left for p in _pairs(model, d, bad, reassociate)]
    if not pairs:
        return None
    best = min(p.rank for p in pairs)
    found = [
        (Point.of(model.space, p.first.statement, p.then.statement, p.map), k)
        for k, p in enumerate([p for p in pairs if p.rank == best][:_EXAMPLES])
    ]
    point, k = min(found, key=lambda f: (f[0].rank, f[1]))
    chosen = [p for p in pairs if p.rank == best][k]
    example = iteration_text(model.space, model.sizes, point, (chosen.first, chosen.then, chosen.kind))
    return Reason(example, chosen.value, tuple(dict.fromkeys(d.array for d, _ in left)))


def _pairs(model: Scop, d: Dependence, carried: isl.Map, reassociate: bool) -> Iterator[_Pair]:
    flows = [f.map for f in model.flows(d.array, reassociate=reassociate).flows
             if (f.write, f.read) == (d.source, d.sink)]  # fmt: skip
    seen: set[object] = set()
    for a in (a for a in model.space.accesses[d.source] if a.array == d.array):
        for c in (c for c in model.space.accesses[d.sink] if c.array == d.array):
            kind, once = kind_of(a, c), (a.write, a.index, c.write, c.index)
            sums = a.commutes(reassociate) and c.commutes(reassociate) and a.reduces == c.reduces
            if kind is None or once in seen or (sums and d.op is None):
                continue
            seen.add(once)
            same = carried.intersect(conflict(model.space, a, c))
            flowing = same.intersect(union(flows)) if kind == "flow" and flows else None
            if flowing is not None and not flowing.is_empty():
                yield _Pair(a, c, kind, True, flowing)
            elif not same.is_empty():
                yield _Pair(a, c, kind, False, same)
