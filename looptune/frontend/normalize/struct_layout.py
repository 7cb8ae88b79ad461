"""The layout of structs: where the fields are, how large they are, and which types arrays of structs lead to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from looptune.frontend import c_ast
from looptune.ir.simplify import evaluate

BYTES = {"bool": 1, "int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "float16": 2, "bfloat16": 2,
         "int32": 4, "uint32": 4, "float32": 4,
         "int64": 8, "uint64": 8, "float64": 8}  # fmt: skip
POINTER_BYTES = 8


@dataclass(frozen=True, slots=True, eq=False)
class StructById:
    """A struct as the key of a cache: equal to itself only, since structs of different files may have one tag."""

    kind: c_ast.Struct

    def __hash__(self) -> int:
        return id(self.kind)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StructById) and self.kind is other.kind


class NoField(Exception):
    """An expression is no field that can be read as an array's element or a variable."""


def leaf_type(kind: c_ast.Type) -> c_ast.Type:
    """Return the type of the elements of an array of any rank, or that to which pointers lead."""
    while isinstance(kind, c_ast.Pointer | c_ast.ArrayOf):
        kind = kind.to if isinstance(kind, c_ast.Pointer) else kind.of
    return kind


def element_type(kind: c_ast.Type) -> c_ast.Type:
    """Return the type of an element. Raises NoField for a type that has none."""
    match kind:
        case c_ast.Pointer(to) | c_ast.ArrayOf(to):
            return to
    raise NoField


def with_leaf(kind: c_ast.Type, leaf: c_ast.Type) -> c_ast.Type:
    """Return an array type with another type of its elements."""
    match kind:
        case c_ast.Pointer(to):
            return c_ast.Pointer(with_leaf(to, leaf))
        case c_ast.ArrayOf(of, extent):
            return c_ast.ArrayOf(with_leaf(of, leaf), extent)
    return leaf


def members(kind: c_ast.Type, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], c_ast.Type]]:
    """Yield the fields that are no structs, each with its path."""
    if not isinstance(kind, c_ast.Struct):
        yield path, kind
        return
    for name, inner in kind.fields:
        yield from members(inner, (*path, name))


def numbers(kind: c_ast.Type, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], c_ast.Type]]:
    """Yield the fields that are no structs, also those of structs in arrays, after "[]" in their paths."""
    for inner, of in members(kind, path):
        leaf = leaf_type(of)
        if isinstance(of, c_ast.ArrayOf) and isinstance(leaf, c_ast.Struct):
            yield from numbers(leaf, (*inner, "[]"))
        else:
            yield inner, of


def in_arrays(kind: c_ast.Type, path: Iterable[str]) -> c_ast.Type:
    """Return the type of a field with the dimensions of the arrays of structs around it, which are "[]" in its path."""
    extents: list[c_ast.Expr | None] = []
    for name in path:
        if name == "[]":
            while isinstance(kind, c_ast.ArrayOf):
                extents.append(kind.extent)
                kind = kind.of
        else:
            kind = field_type(kind, (name,))
    for extent in reversed(extents):
        kind = c_ast.ArrayOf(kind, extent)
    return kind


def size_of(kind: c_ast.Type) -> int | None:
    """Return the bytes of a type, None where they are not known."""
    match kind:
        case c_ast.Basic(dtype):
            return BYTES.get(dtype)
        case c_ast.Pointer():
            return POINTER_BYTES
        case c_ast.ArrayOf(of, extent):
            size, count = size_of(of), None if extent is None else constant_value(extent)
            return None if size is None or count is None else count * size
        case c_ast.Struct():
            return _layout(StructById(kind)).size
    return None


def constant_value(e: c_ast.Expr) -> int | None:
    """Return the value of a constant expression, None where it is anything but numbers and operators."""
    match e:
        case c_ast.Number(text):
            digits = text.rstrip("uUlL")
            return int(digits) if digits.isdecimal() and (digits == "0" or digits[0] != "0") else None
        case c_ast.Binary("+" | "-" | "*" | "/" as op, lhs, rhs):
            a, b = constant_value(lhs), constant_value(rhs)
            return None if a is None or b is None else evaluate(op, a, b)
    return None


def alignment(kind: c_ast.Type) -> int | None:
    """Return the bytes at a multiple of which a type begins, None where they are not known."""
    match kind:
        case c_ast.ArrayOf(of, _):
            return alignment(of)
        case c_ast.Struct():
            return _layout(StructById(kind)).alignment
    return size_of(kind)


def field_of(kind: c_ast.Struct, name: str) -> tuple[c_ast.Type, int] | None:
    """Return the type of a field and the bytes before it, None where there is none of this name."""
    return _layout(StructById(kind)).fields.get(name)


class _Layout(NamedTuple):
    """The size and alignment of a struct, and of each field the type and the bytes before it, -1 if not known."""

    size: int | None
    alignment: int | None
    fields: Mapping[str, tuple[c_ast.Type, int]]


@lru_cache(maxsize=4096)
def _layout(struct: StructById) -> _Layout:
    fields: dict[str, tuple[c_ast.Type, int]] = {}
    aligned: list[int | None] = []
    end: int | None = 0
    for name, kind in struct.kind.fields:
        size, align = size_of(kind), alignment(kind)
        aligned.append(align)
        begin = None if end is None or align is None else -(-end // align) * align
        fields.setdefault(name, (kind, -1 if begin is None else begin))
        end = None if begin is None or size is None else begin + size
    known = [a for a in aligned if a is not None]
    whole = max(known) if known and len(known) == len(aligned) else None
    return _Layout(None if end is None or whole is None else -(-end // whole) * whole, whole, fields)


def lvalue_type(e: c_ast.Expr, types: Mapping[str, c_ast.Type]) -> c_ast.Type | None:
    """Return the type of an lvalue or a pointer, None for other expressions.

    ``types`` may have structs under ``struct TAG``, for pointers to structs whose fields are listed elsewhere.
    """
    return type_by_parts(e, types, lambda part: lvalue_type(part, types))


def type_by_parts(
    e: c_ast.Expr, types: Mapping[str, c_ast.Type], of_part: Callable[[c_ast.Expr], c_ast.Type | None]
) -> c_ast.Type | None:
    """Return what ``lvalue_type`` does, given the types of the parts of the expression."""
    match e:
        case c_ast.Number() | c_ast.Call() | c_ast.Assignment():
            return None
        case c_ast.Name(name):
            return types.get(name)
        case c_ast.Field(inner, name, arrow):
            of = of_part(inner)
            of = _led_to(of) if arrow else of
            of = types.get(of.what, of) if isinstance(of, c_ast.UnsupportedType) else of
            if isinstance(of, c_ast.Overlapping):
                return dict(of.fields).get(name)
            member = field_of(of, name) if isinstance(of, c_ast.Struct) else None
            return None if member is None else member[0]
        case c_ast.Index(inner, _) | c_ast.Unary("*", inner):
            found = _led_to(of_part(inner))
            return types.get(found.what, found) if isinstance(found, c_ast.UnsupportedType) else found
        case c_ast.Unary("&", inner):
            found = of_part(inner)
            return None if found is None else c_ast.Pointer(found)
        case c_ast.Binary("+" | "-", lhs, rhs):
            found = of_part(lhs)
            found = found if _led_to(found) is not None else of_part(rhs)
            return found if _led_to(found) is not None else None
        case c_ast.Cast(to, _):
            return to
        case c_ast.Ternary(_, then, other):
            found = of_part(then)
            return of_part(other) if found is None else found
    return None


def _led_to(kind: c_ast.Type | None) -> c_ast.Type | None:
    match kind:
        case c_ast.Pointer(to) | c_ast.ArrayOf(to):
            return to
    return None


def field_type(kind: c_ast.Type, path: Iterable[str]) -> c_ast.Type:
    """Return the type of a field of a struct, which a path of names leads to.

    Raises NoField where a struct on the way has not all its fields, as one that leads back to itself.
    """
    for name in path:
        found = field_of(kind, name) if isinstance(kind, c_ast.Struct) else None
        if found is None:
            raise NoField
        kind, _ = found
    return kind
