"""What a C function, or a scop in it, is lowered to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from looptune.frontend.codelet_selection import Region
from looptune.frontend.field_texts import FieldText
from looptune.frontend.normalize.field_variable import FieldVariable
from looptune.ir.nodes import Codelet


@dataclass(frozen=True, slots=True)
class LoweredCodelet:
    """A codelet, and the scop it is where the function has one.

    ``variables`` are the text's names of the locals that stand in it, ``element_names`` those of the variables that the
    codelet has as arrays of one element. ``shadowed`` are the names of the file that it uses and that mean something
    else somewhere in the function. ``pointers`` are the arrays, by their names in the text, that may be another array's
    memory: parameters of the function, and pointers that are set to anything but memory allocated for them. ``moved``
    are the pointers of the text for which it has arrays and offsets. ``result`` is the array that holds what the
    function returns, "" if it returns nothing. ``flags`` are the locals that say whether a jump was taken.
    ``fields`` are the fields of structs that are parameters of the codelet; ``has_structs``: its text names fields.
    ``rows`` are the arrays that consist of pointers, with the dimensions to which these lead; ``row_lengths`` are the
    parameters that say how long rows are, where this does not follow from others. ``has_swaps``: its text swaps
    pointers in a loop; ``has_choices``: a condition of it chooses among arrays. ``texts`` say how the text writes
    variables that are fields of structs. ``nonnull`` are the pointers of the text that are assumed not to be null.
    """

    codelet: Codelet
    region: Region | None
    variables: Mapping[str, str]
    element_names: Mapping[str, str]
    shadowed: frozenset[str]
    pointers: frozenset[str]
    moved: frozenset[str]
    result: str = ""
    flags: frozenset[str] = frozenset()
    fields: tuple[FieldVariable, ...] = ()
    has_structs: bool = False
    rows: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    row_lengths: frozenset[str] = frozenset()
    has_swaps: bool = False
    has_choices: bool = False
    texts: Mapping[str, FieldText] = field(default_factory=dict)
    nonnull: frozenset[str] = frozenset()
