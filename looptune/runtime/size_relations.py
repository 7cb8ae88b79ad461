"""The relations of sizes that the analysis of a codelet assumes, such as ``m <= lda``, for the sizes of a call."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from looptune.core.errors import UsageError
from looptune.poly.scop import build

if TYPE_CHECKING:
    from looptune.ir.nodes import Codelet
    from looptune.poly.delinearization import SizeRelation


@lru_cache(maxsize=64)
def size_relations(codelet: Codelet) -> tuple[SizeRelation, ...]:
    """Return the relations that the analysis assumes."""
    return build(codelet).assumed


def broken_relation(codelet: Codelet, values: Mapping[str, int | float]) -> SizeRelation | None:
    """Return a relation that does not hold for these values of the parameters, or None."""
    sizes = {name: int(value) for name, value in values.items() if float(value).is_integer()}
    return next((r for r in size_relations(codelet) if r.names <= sizes.keys() and not r.holds(sizes)), None)


def check_relations(codelet: Codelet, values: Mapping[str, int | float]) -> None:
    """Raise UsageError if a relation does not hold for these values of the parameters."""
    broken = broken_relation(codelet, values)
    if broken is not None:
        given = ", ".join(f"{name} is {int(values[name])}" for name in sorted(broken.names))
        raise UsageError(f"{codelet.name} assumes {broken}, which does not hold: {given}", codelet.span)
