"""Fields of structs that are variables of their own, from outside of a codelet or declared in it."""

from __future__ import annotations

from dataclasses import dataclass

from looptune.frontend import c_ast
from looptune.frontend.name_resolution import base


@dataclass(frozen=True, slots=True)
class FieldVariable:
    """A field of a struct that is one object, as a variable of its own; ``path`` is the text after the struct's name.

    ``part`` is the operator of GNU C before it that names a part of a complex number, "" for other fields. ``of`` is
    its type in the text.

    ``owner`` is the struct's name; ``is_written``: a scalar that the codelet writes, which is an array of one element.
    Where ``element`` is not empty, the variable is an array of the field of that name of each struct of an array, which
    ``path`` names, with ``rank`` dimensions; ``is_pointer``: the text has a pointer to them.
    """

    declared: c_ast.Declare
    owner: str
    path: str
    is_written: bool = False
    element: str = ""
    rank: int = 0
    is_pointer: bool = False
    part: str = ""
    of: c_ast.Type | None = None

    @property
    def text(self) -> str:
        """Return the field as the text names it."""
        return f"{self.part}{base(self.owner)}{self.path}"

    @property
    def is_read_through_pointer(self) -> bool:
        """Tell whether it is a scalar that the codelet does not write, of a struct that a pointer leads to."""
        return isinstance(self.declared.type, c_ast.Basic) and ("->" in self.path or self.part.endswith("*"))
