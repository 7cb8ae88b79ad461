"""Which sums another order of the statements adds up differently, so that floats may round otherwise.

    s -> t   both accumulate into one element by one op, s ran before t, and now runs after it

Products, and the maxima and minima whose order counts, are sums here too; what any order leaves the same (integers)
is none. Of a local only additions of one value's life count: what it held before is another sum.
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
    """``variable`` is what the statement at ``span`` accumulates into, as it is written there."""

    op: str
    variable: str
    span: Span

    @property
    def clause(self) -> str:
        """As in a ``reduce`` clause: ``+:y``."""
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
    """Those that the ``statements`` add to, in textual order."""
    mine = set(statements)
    into = [model.space.accesses[name][0] for name in model.statements if name in mine]
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
