"""Memory that is used in several ways: as two types, or as a field and by a pointer to the field.

    double *d = &p->x;  *d = 0;  p->x = 1;       memory_of_float64 and the fields x are one element of several_types

Where ``addresses`` finds that two kinds of memory may overlap, all that is stored in either is one element, of which
nothing is known (B. Steensgaard, Points-to analysis in almost linear time, 1996): two iterations that use it depend on
each other unless both only read it. What is stored there is no sum of what was there before, so that no loop with such
a store is a reduction.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from looptune.frontend import c_ast

if TYPE_CHECKING:
    from looptune.core.source import Span

CELLS = "memory_of_several_types"
"""The array of the elements, one for each group of kinds that may overlap."""


@dataclass(slots=True)
class SharedMemory:
    """Which kinds of memory may overlap; ``escaped`` are the structs of the statements to which a pointer may lead."""

    parents: dict[str, str] = field(default_factory=dict)
    escaped: set[str] = field(default_factory=set)
    changes: int = 0

    def unite(self, kinds: Iterable[str]) -> None:
        """Note that memory of these kinds, of which there is at least one, may overlap."""
        roots = list(dict.fromkeys(map(self._root, kinds)))
        for kind in roots[1:]:
            self.parents[kind] = roots[0]
            self.changes += 1

    def escape(self, local: str) -> None:
        """Note that a pointer may lead to a struct of the statements."""
        if local not in self.escaped:
            self.escaped.add(local)
            self.changes += 1

    def _root(self, kind: str) -> str:
        if kind not in self.parents:
            self.parents[kind] = kind
            self.changes += 1
        while self.parents[kind] != kind:
            kind = self.parents[kind]
        return kind

    def number(self, kinds: Iterable[str]) -> int | None:
        """Return the number of the element for memory that is of all these kinds, None if it is only of its own."""
        known = [k for k in kinds if k in self.parents]
        if not known:
            return None
        self.unite(known)
        return sorted(k for k, parent in self.parents.items() if k == parent).index(self._root(known[0]))


def stored(element: c_ast.Expr, value: c_ast.Expr, span: Span) -> c_ast.Assignment:
    """Return the assignment of something to an element of several types, which no reduction has the form of."""
    some = c_ast.Binary("*", value, c_ast.Number("3", span=span), span=span)
    return c_ast.Assignment("", element, c_ast.Binary("+", some, c_ast.Number("1", span=span), span=span), span=span)
