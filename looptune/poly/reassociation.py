"""The reductions that a new order of the statements reassociates, so that floats may round differently.

    s -> t   both accumulate into one element by one op, s ran before t, and now runs after it

"Sum" here includes products, and minima and maxima whose order matters; it excludes reductions for which every order
gives the same value (integers). For a local, only additions to one value count: a value before it is another sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from looptune.core.source import Span
from looptune.poly.dependence import shared_op

if TYPE_CHECKING:
    import islpy as isl

    from looptune.poly.isl_objects import Order
    from looptune.poly.legality import Verdict
    from looptune.poly.scop import Scop


@dataclass(frozen=True, slots=True)
class ReorderedReduction:
    """A reduction whose terms are reordered; ``variable`` is the target of the statement at ``span`` as written."""

    op: str
    variable: str
    span: Span

    @property
    def clause(self) -> str:
        """Return the reduction as in a ``reduce`` clause: ``+:y``."""
        return f"{self.op}:{self.variable.partition('[')[0].strip(' *()')}"

    def __str__(self) -> str:
        return f"{self.clause} ({self.span.line}:{self.span.col})" if self.span.line else self.clause


def reordered_reductions(model: Scop, new: Order, old: Order) -> tuple[ReorderedReduction, ...]:
    """Return the reductions of which ``new`` reorders two terms and ``old``, the order until now, does not.

    ``new`` lists the statements being reordered, and may stop where instances run as in ``old``.
    """
    turned: set[str] = set()
    for first, then, pairs in _links(model):
        if first in new and then in new:
            changed = pairs.intersect(model.space.later(first, then, new[first], new[then]))
            fresh = changed.subtract(model.space.later(first, then, old[first], old[then]))
            if not fresh.is_empty():
                turned |= {first, then}
    return reductions_of(model, turned)


def parallel_reductions(model: Scop, verdict: Verdict) -> tuple[ReorderedReduction, ...]:
    """Return the reductions whose terms the threads of the loop of ``verdict`` add up in separate partial sums."""
    sure = (r.statement for r in verdict.reductions if verdict.kind == "reduction" or not r.assumed)
    return reductions_of(model, frozenset(sure))


def reductions_of(model: Scop, statements: Iterable[str]) -> tuple[ReorderedReduction, ...]:
    """Return the reductions to which the ``statements`` add, in textual order, without those that are exact."""
    mine = set(statements)
    into = [a for name in model.statements if name in mine for a in model.space.accesses[name][:1]]
    return tuple(
        dict.fromkeys(
            ReorderedReduction(a.reduces, a.text, a.span) for a in into if a.reduces is not None and not a.exact
        )
    )


def _links(model: Scop) -> Iterator[tuple[str, str, isl.Map]]:
    """Return { s -> t : two terms of one sum, in this order }, for a local those that follow each other."""
    for d in model.dependences:
        if d.array not in model.internal_names and d.commutes(True) and not d.commutes(False):
            yield d.source, d.sink, d.map
    for array in sorted(model.internal_names):
        for flow in model.flows(array).flows:
            ends = [[a for a in model.space.accesses[n] if a.array == array] for n in (flow.write, flow.read)]
            if shared_op(*ends) and any(not a.exact for side in ends for a in side if a.reduces is not None):
                yield flow.write, flow.read, flow.map
