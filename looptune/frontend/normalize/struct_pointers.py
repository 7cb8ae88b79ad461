"""Structs to which a field of another struct points, as objects with names of their own.

    s->mem->x[i] = s->scale;        ==>        mem->x[i] = s->scale;        where mem is s->mem

A field that the statements do not change, and that they only use to get at the fields of the one struct that it points
to, is as good as a pointer from outside of the statements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from looptune.frontend import c_ast
from looptune.frontend.name_resolution import base
from looptune.frontend.normalize.struct_effects import is_somewhere
from looptune.frontend.normalize.struct_layout import lvalue_type

Items = tuple[c_ast.Item, ...]
Objects = Callable[[Items, Mapping[str, c_ast.Type]], frozenset[str]]
"""The variables that are one struct each, or lead to one."""


@dataclass(frozen=True, slots=True)
class FieldPath:
    """The field that a name stands for: ``path`` is the text after the name of the struct ``owner``."""

    owner: str
    path: str


@dataclass(frozen=True, slots=True)
class NamedPointers:
    """Statements in which names stand for fields that are pointers to structs; ``types`` has the types of these too."""

    items: Items
    types: Mapping[str, c_ast.Type]
    paths: Mapping[str, FieldPath]


def name_pointers(items: Items, types: Mapping[str, c_ast.Type], objects: Objects) -> NamedPointers:
    """Return the statements with a name for each field that points to a struct from outside, the outermost first."""
    inside = {n.name for top in items for n in c_ast.walk(top) if isinstance(n, c_ast.Declare)}
    known = objects(items, types) - inside
    found = NamedPointers(_with_arrows(items, known), types, {})
    while new := _pointers(found, known):
        found = _named(found, new)
        known = objects(found.items, found.types) - inside
        found = replace(found, items=_with_arrows(found.items, known))
    return found


def _with_arrows(items: Items, objects: frozenset[str]) -> Items:
    """Return the statements with one spelling for each field of an object: ``p->f`` for ``(*p).f`` and ``p[0].f``."""

    def rewrite(node: Any) -> Any:
        node = c_ast.map_children(rewrite, node)
        match node:
            case c_ast.Field(c_ast.Unary("*", c_ast.Name(name) as p), _, False) if name in objects:
                return replace(node, base=p, arrow=True)
            case c_ast.Field(c_ast.Index(c_ast.Name(name) as p, at), _, False) if name in objects and _is_first(at):
                return replace(node, base=p, arrow=True)
        return node

    return tuple(rewrite(item) for item in items)


def _is_first(at: c_ast.Expr) -> bool:
    return at == c_ast.Number("0") or is_somewhere(at)


def _pointers(found: NamedPointers, objects: frozenset[str]) -> tuple[c_ast.Field, ...]:
    """Return the fields of objects that only lead to fields of one struct each."""
    nodes = [n for top in found.items for n in c_ast.walk(top)]
    changed = set(_changed(nodes))
    other = {e for top in found.items for e in _used_otherwise(top)}
    return tuple(dict.fromkeys(
        e for e in map(_leads, nodes)
        if e is not None and e not in other and e.name not in changed and _root(e) in objects
        and _is_pointer_to_struct(lvalue_type(e, found.types))
    ))  # fmt: skip


def _is_pointer_to_struct(kind: c_ast.Type | None) -> bool:
    return isinstance(kind, c_ast.Pointer) and isinstance(kind.to, c_ast.Struct)


def _leads(node: Any) -> c_ast.Field | None:
    """Return the field ``e`` of ``e->f``, ``(*e).f`` or ``e[0].f``, or of the struct that a call was given."""
    match node:
        case c_ast.Field(c_ast.Field() as e, _, True) | c_ast.Field(c_ast.Unary("*", c_ast.Field() as e), _, False):
            return e
        case c_ast.Field(c_ast.Index(c_ast.Field() as e, at), _, False) if _is_first(at):
            return e
    return None


def _used_otherwise(node: Any) -> Iterator[c_ast.Field]:
    """Yield the fields that are used otherwise than to get at a field of the struct to which they point."""
    if isinstance(node, c_ast.Field):
        yield node
    yield from _below(node)


def _below(node: Any) -> Iterator[c_ast.Field]:
    led = _leads(node)
    if led is not None:
        yield from _below(led)
        return
    for child in c_ast.children(node):
        yield from _used_otherwise(child)


def _changed(nodes: Iterable[Any]) -> Iterator[str]:
    """Yield the names of fields that are assigned, or of which the address is taken."""
    for node in nodes:
        match node:
            case c_ast.Assignment(_, c_ast.Field(_, name)) | c_ast.Unary("++" | "--" | "&", c_ast.Field(_, name)):
                yield name


def _root(e: c_ast.Expr) -> str:
    """Return the variable of ``v->f``, ``v.f`` or ``v->f.g``, "" where it is none."""
    match e:
        case c_ast.Field(c_ast.Name(name)):
            return name
        case c_ast.Field(c_ast.Field() as inner, _, False):
            return _root(inner)
    return ""


def _path(e: c_ast.Field) -> str:
    own = f"{'->' if e.arrow else '.'}{e.name}"
    return _path(e.base) + own if isinstance(e.base, c_ast.Field) else own


def _named(found: NamedPointers, fields: tuple[c_ast.Field, ...]) -> NamedPointers:
    types, paths = dict(found.types), dict(found.paths)
    names: dict[c_ast.Field, str] = {}
    for e in fields:
        kind = lvalue_type(e, types)
        assert kind is not None, "it is a pointer"
        root, path = _root(e), _path(e)
        shown = base(root) + path.replace("->", "_").replace(".", "_")
        names[e] = f"{shown}#p{len(paths)}"
        types[names[e]] = kind
        around = paths.get(root, FieldPath(root, ""))
        paths[names[e]] = FieldPath(around.owner, around.path + path)

    def rewrite(node: Any) -> Any:
        if isinstance(node, c_ast.Field) and node in names:
            return c_ast.Name(names[node], span=node.span)
        return c_ast.map_children(rewrite, node)

    return NamedPointers(tuple(rewrite(item) for item in found.items), types, paths)
