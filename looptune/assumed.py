"""What a codelet takes for granted, said to whoever calls it.

no overlap     C lets two pointers be of one memory, and then another order may leave other values
extents        subscripts that are inside their arrays only at some sizes
overflow       subscripts and bounds are taken for numbers that fit their types
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import combinations

from looptune.frontend import Unit
from looptune.ir import Array
from looptune.poly.leaving import Leaves


def overlapping(unit: Unit) -> tuple[tuple[str, str], ...]:
    """The pairs of array parameters, one of them written, that C does not say are apart."""
    arrays = [p for p in unit.codelet.params if isinstance(p, Array)]
    passed = _passed(unit)
    return tuple(
        (p.name, q.name)
        for p, q in combinations(arrays, 2)
        if p.io != "in" or q.io != "in"
        if {p.name, q.name} & passed and not any(_restrict(unit.text, x.name) for x in (p, q))
    )


def said(unit: Unit, leaves: Sequence[Leaves]) -> tuple[str, ...]:
    """Each assumption as a line."""
    pairs = ", ".join(f"{p} and {q}" for p, q in overlapping(unit))
    found = [f"these do not overlap: {pairs}"] if pairs else []
    found += [f"{x.access} is inside {x.declared}{f': {x.unless}' if x.unless else ''}"
              for x in leaves if not x.always]  # fmt: skip
    return (*found, "no signed integer overflows in a subscript or a bound")


def _passed(unit: Unit) -> set[str]:
    """The array parameters that stand in the list of parameters of a function; others are at file scope."""
    arrays = {p.name for p in unit.codelet.params if isinstance(p, Array)}
    heads = [m[1] for part in unit.parts
             for m in re.finditer(rf"\b{re.escape(part.function)}\s*\(([^{{;]*?)\)\s*\{{", unit.text)]  # fmt: skip
    if not heads:
        return arrays
    return {a for a in arrays if any(re.search(rf"\b{re.escape(a)}\b", head) for head in heads)}


def _restrict(text: str, name: str) -> bool:
    return re.search(rf"\b_*restrict_*\s+{re.escape(name)}\b|\b{re.escape(name)}\s*\[\s*_*restrict", text) is not None
