"""Rewrite the statements of a codelet into the C that ``lower_statements`` reads: one file for each pass.

Each pass takes and returns statements of ``c_ast`` in which one name is one variable (``name_resolution.resolve``), and
what they compute stays the same. A pass leaves alone what it cannot rewrite: ``lower_statements`` refuses it by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from looptune.frontend import c_ast
from looptune.frontend.normalize.counting_conditions import move_counting
from looptune.frontend.normalize.pointer_offsets import replace_pointers
from looptune.frontend.normalize.results import store_result
from looptune.frontend.normalize.structured_jumps import eliminate_jumps

Items = tuple[c_ast.Item, ...]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What stands around the statements: the file, the types of the variables, and whether they are a whole body.

    ``read_after``: the pointers from outside whose value may be read after the statements. ``result`` is the array in
    which a whole body stores what it returns, "" if it returns nothing.
    """

    file: c_ast.File
    types: Mapping[str, c_ast.Type]
    is_body: bool
    read_after: frozenset[str] = frozenset()
    result: str = ""


Pass = Callable[[Items, Surroundings], Items]


def _results(items: Items, around: Surroundings) -> Items:
    return store_result(items, around.result) if around.result else items


def _pointers(items: Items, around: Surroundings) -> Items:
    return replace_pointers(items, around.types, around.read_after)


def _jumps(items: Items, around: Surroundings) -> Items:
    return eliminate_jumps(items, around.is_body)


def _counting(items: Items, _: Surroundings) -> Items:
    return move_counting(items)


PASSES: tuple[Pass, ...] = (_results, _counting, _jumps, _pointers)


def normalize(items: Items, around: Surroundings) -> Items:
    """Return the statements after all passes. Raises UnsupportedError at what a pass has to refuse."""
    for apply in PASSES:
        items = apply(items, around)
    return items
