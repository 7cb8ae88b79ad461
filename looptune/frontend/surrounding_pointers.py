"""Pointers around a part of a function: those that lead into its arrays, and those that are read after it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from looptune.frontend import c_ast
from looptune.frontend.liveness import (
    address_taken,
    counted_around,
    live_after,
    live_before,
    may_repeat,
    preceding_items,
)
from looptune.frontend.name_resolution import used_names
from looptune.frontend.normalize.pointer_offsets import moving_pointers, points_into
from looptune.frontend.statement_facts import set_names, variable_assignment

if TYPE_CHECKING:
    from looptune.frontend.codelet_selection import Region


def pointers_before(region: Region, body: c_ast.Block, types: Mapping[str, c_ast.Type]) -> Iterator[c_ast.Declare]:
    """Yield the declarations around a region of a function that make a pointer a part of an array visible in it.

    The codelet then has that array and an offset, and not two arrays that overlap.
    """
    if not any(isinstance(d.type, c_ast.Pointer) for d in region.declared):
        return
    once = _set_once_before(region, body)
    set_outside = Counter(set_names(region.outside)) - Counter(once.keys())
    counted = counted_around(body, region.items)
    taken = address_taken(region.outside)
    wanted = used_names(region.items)
    moved = moving_pointers(region.items, types)
    kept: list[c_ast.Declare] = []
    for d in (once.get(d.name, d) for d in reversed(region.declared)):
        changed = frozenset(set_outside - counted.get(d.name, Counter())) | taken
        if d.name not in wanted or d.name in changed or d.static or not isinstance(d.init, c_ast.Expr):
            continue
        if d.name in moved and may_repeat(body, region.items, d.name):
            continue
        if not used_names((d.init,)) & changed and points_into(d.type, d.init, types):
            kept.append(d)
            wanted |= used_names((d.init,))
    yield from reversed(kept)


def _set_once_before(region: Region, body: c_ast.Block) -> dict[str, c_ast.Declare]:
    """Return the pointers that are declared without a value and set once, before the region, with this value."""
    open_ones = [d for d in region.declared if isinstance(d.type, c_ast.Pointer) and d.init is None and not d.static]
    if not open_ones:
        return {}
    preceding = preceding_items(body, region.items)
    times = Counter(set_names(body))
    found: dict[str, c_ast.Declare] = {}
    for d in open_ones:
        if times[d.name] == 1:
            values = [v.value for v in map(variable_assignment, preceding)
                      if v is not None and v.target.name == d.name]  # fmt: skip
            if values:
                found[d.name] = replace(d, init=values[0])
    return found


def pointers_read_after(
    region: Region | None, body: c_ast.Block, file: c_ast.File, written: Collection[str]
) -> frozenset[str]:
    """Return the pointers from outside of a codelet that may be read after it.

    The codelet is a region of the ``body`` of a function, or all of it; it and what it calls write what is ``written``.
    """
    at_file = frozenset(d.name for d in file.globals if isinstance(d.type, c_ast.Pointer) and d.name in written)
    found = frozenset(n for n in at_file if any(n in live_before(f) for f in file.functions))
    if region is None:
        return found
    statics = frozenset(d.name for d in region.declared if d.static) | at_file
    return found | live_after(body, region.items, statics) | address_taken(region.outside)
