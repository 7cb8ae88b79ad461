"""Rewrite the statements of a codelet into the C that ``lower_statements`` reads: one file for each pass.

Each pass takes and returns statements of ``c_ast`` in which one name is one variable (``name_resolution.resolve``), and
what they compute stays the same. A pass leaves alone what it cannot rewrite: ``lower_statements`` refuses it by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from looptune.frontend import c_ast
from looptune.frontend.normalize.pointer_offsets import replace_pointers
from looptune.frontend.normalize.structured_jumps import eliminate_return

Items = tuple[c_ast.Item, ...]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What stands around the statements: the file, the types of the variables, and whether they are a whole body.

    ``read_after``: the pointers from outside whose value may be read after the statements.
    """

    file: c_ast.File
    types: Mapping[str, c_ast.Type]
    is_body: bool
    read_after: frozenset[str] = frozenset()


Pass = Callable[[Items, Surroundings], Items]


def _early_returns(items: Items, around: Surroundings) -> Items:
    return eliminate_return(items) if around.is_body else items


def _pointers(items: Items, around: Surroundings) -> Items:
    return replace_pointers(items, around.types, around.read_after)


PASSES: tuple[Pass, ...] = (_early_returns, _pointers)


def normalize(items: Items, around: Surroundings) -> Items:
    """Return the statements after all passes. Raises UnsupportedError at what a pass has to refuse."""
    for apply in PASSES:
        items = apply(items, around)
    return items
