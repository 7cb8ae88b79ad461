"""Structs that the text names before it lists their fields.

typedef struct grid grid_t;        grid_t is the struct with n and p, in the whole file
struct grid { int n; plan *p; };
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from looptune.frontend import c_ast

LEVELS = 3
"""How many pointers in a row that lead back to their own struct have a known type."""


def completed(types: Mapping[str, c_ast.Type]) -> Mapping[str, c_ast.Type]:
    """Return the structs of a file by their unique tags, and those with a tag of the text under ``struct TAG`` too.

    ``types`` are the types as they are read in the order of the text, where a struct that is named before its fields
    are listed is the unsupported type ``struct TAG``. A struct that leads back to itself, as in a list, is followed
    ``LEVELS`` times, since such a type has no end.
    """
    tagged = {name: kind for name, kind in types.items() if name.startswith("struct ") and _is_struct(kind)}
    structs = {s.tag: s for kind in types.values() for s in _structs(kind)}
    leads = {tag: set(_led_to(s, tagged)) for tag, s in structs.items()}
    reached = {tag: _reached(tag, leads) for tag in structs}
    made: dict[str, c_ast.Type] = {}
    for _ in range(LEVELS):
        back, made = made, {}
        for struct in structs.values():
            _complete(struct, tagged, reached, back, made)
    return made | {name: made[kind.tag] for name, kind in tagged.items() if isinstance(kind, c_ast.Struct)}


def _is_struct(kind: c_ast.Type) -> bool:
    return isinstance(kind, c_ast.Struct)


def _parts(kind: c_ast.Type) -> tuple[c_ast.Type, ...]:
    match kind:
        case c_ast.Pointer(inner) | c_ast.ArrayOf(inner):
            return (inner,)
        case c_ast.Struct(fields=fields) | c_ast.Overlapping(fields=fields):
            return tuple(of for _, of in fields)
    return ()


def _structs(kind: c_ast.Type) -> Iterator[c_ast.Struct]:
    """Yield the structs in a type, each once."""
    seen: set[str] = set()
    waiting = [kind]
    while waiting:
        found = waiting.pop()
        if isinstance(found, c_ast.Struct):
            if found.tag in seen:
                continue
            seen.add(found.tag)
            yield found
        waiting += _parts(found)


def _led_to(struct: c_ast.Struct, tagged: Mapping[str, c_ast.Type]) -> Iterator[str]:
    """Yield the unique tags of the structs that the fields of a struct name."""
    waiting = list(_parts(struct))
    while waiting:
        found = waiting.pop()
        match tagged.get(found.what, found) if isinstance(found, c_ast.UnsupportedType) else found:
            case c_ast.Struct(tag):
                yield tag
            case kind:
                waiting += _parts(kind)


def _reached(tag: str, leads: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = [tag]
    while waiting:
        new = leads[waiting.pop()] - found
        found |= new
        waiting += new
    return found


def _complete(
    struct: c_ast.Struct, tagged: Mapping[str, c_ast.Type], reached: Mapping[str, set[str]],
    back: Mapping[str, c_ast.Type], made: dict[str, c_ast.Type],
) -> c_ast.Type:  # fmt: skip
    """Return a struct with the fields of all structs that it leads to; those that lead back are those of ``back``."""

    def of(kind: c_ast.Type) -> c_ast.Type:
        match kind:
            case c_ast.Pointer(to):
                return c_ast.Pointer(of(to))
            case c_ast.ArrayOf(inner, extent):
                return c_ast.ArrayOf(of(inner), extent)
            case c_ast.Struct():
                return _complete(kind, tagged, reached, back, made)
            case c_ast.Overlapping(fields=fields):
                return replace(kind, fields=tuple((name, of(inner)) for name, inner in fields))
            case c_ast.UnsupportedType(what) if isinstance(known := tagged.get(what), c_ast.Struct):
                cycle = struct.tag == known.tag or struct.tag in reached[known.tag]
                return back.get(known.tag, kind) if cycle else _complete(known, tagged, reached, back, made)
        return kind

    if struct.tag not in made:
        made[struct.tag] = c_ast.Struct(struct.tag, tuple((name, of(kind)) for name, kind in struct.fields))
    return made[struct.tag]


def named_fields(fields: Iterable[tuple[str | None, c_ast.Type]]) -> Iterator[tuple[str, c_ast.Type]]:
    """Yield the fields of a struct or union, for one without a name those that it has."""
    for name, kind in fields:
        match kind:
            case _ if name is not None:
                yield name, kind
            case c_ast.Struct(fields=inner) | c_ast.Overlapping(fields=inner):
                yield from inner
