"""What the memory of each type is called in ``addresses``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from looptune.frontend import c_ast
from looptune.frontend.symbol_table import refuse

if TYPE_CHECKING:
    from looptune.core.source import Span


@dataclass(slots=True)
class MemoryNames:
    """The names; ``types`` has the structs of the file under ``struct TAG``."""

    types: Mapping[str, c_ast.Type]
    structs: dict[str, str] = field(default_factory=dict)

    def struct_name(self, tag: str) -> str:
        """Return the name of a struct in those of its memory."""
        if tag not in self.structs:
            word = re.search(r"(?:struct )?([A-Za-z_]\w*)", tag)
            name = "struct" if word is None or word[1] == "None" else word[1]
            self.structs[tag] = name if name not in self.structs.values() else f"{name}_{len(self.structs)}"
        return self.structs[tag]

    def memory_name(self, kind: c_ast.Type, span: Span) -> str:
        """Return the name of the memory of a type that is no struct."""
        match kind:
            case c_ast.Basic(dtype) if dtype != "void":
                return f"memory_of_{dtype}"
            case c_ast.Pointer(to):
                return f"memory_of_{self.word(to)}_pointers"
        raise refuse("memory of this type", "numbers", span)

    def word(self, kind: c_ast.Type) -> str:
        """Return what a type is called in the names of memory."""
        match kind:
            case c_ast.Basic(dtype):
                return dtype
            case c_ast.Struct(tag) | c_ast.Overlapping(tag=tag):
                return self.struct_name(tag)
            case c_ast.Pointer(to):
                return f"{self.word(to)}_pointers"
            case c_ast.ArrayOf(of):
                return self.word(of)
            case c_ast.UnsupportedType(what) if what in self.types:
                return self.word(self.types[what])
        return "unknown"

    def memory_kind(self, kind: c_ast.Type) -> str:
        """Return which memory a pointer to the type leads to."""
        while isinstance(kind, c_ast.ArrayOf):
            kind = kind.of
        match kind:
            case c_ast.Basic() | c_ast.Pointer():
                return f"memory_of_{self.word(kind)}"
        return self.word(kind)

    def kinds(self, kind: c_ast.Type) -> Iterator[str]:
        """Yield the names of the memory of a type, and of the structs that are its fields."""
        kind = self.known(kind)
        yield self.memory_kind(kind)
        match kind:
            case c_ast.ArrayOf(of):
                yield from self.kinds(of)
            case c_ast.Struct(fields=fields) | c_ast.Overlapping(fields=fields):
                for _, inner in fields:
                    if isinstance(_leaf(inner), c_ast.Struct | c_ast.Overlapping):
                        yield from self.kinds(_leaf(inner))

    def parts(self, tag: str, path: tuple[str, ...]) -> list[str]:
        """Return the names of the memory of a field, of the structs around it, and of the whole struct."""
        words = (self.struct_name(tag), *path)
        return ["_".join(words[:k]) for k in range(1, len(words) + 1)]

    def known(self, kind: c_ast.Type) -> c_ast.Type:
        """Return a type with the fields of a struct that are listed elsewhere."""
        return self.types.get(kind.what, kind) if isinstance(kind, c_ast.UnsupportedType) else kind


def _leaf(kind: c_ast.Type) -> c_ast.Type:
    while isinstance(kind, c_ast.ArrayOf):
        kind = kind.of
    return kind
