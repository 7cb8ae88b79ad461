"""The values of structs: how the text names their parts, what initialises them, and which fields are copied."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from looptune.frontend import c_ast
from looptune.frontend.c_types import is_complex_type
from looptune.frontend.name_resolution import base
from looptune.frontend.normalize.struct_layout import constant_value, field_type
from looptune.frontend.symbol_table import refuse

if TYPE_CHECKING:
    from looptune.core.errors import UnsupportedError

_MOST_COPIED = 64
"""Numbers in a struct that are copied one by one."""
_PARTS = {"re": "__real__ ", "im": "__imag__ "}


def in_text(kind: c_ast.Type, path: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Return how the text names a field of a struct: the operator before it, and the names after the struct's."""
    is_part = path and "[]" not in path and is_complex_type(field_type(kind, path[:-1]))
    return (_PARTS[path[-1]], path[:-1]) if is_part else ("", path)


def initial_values(
    kind: c_ast.Struct, init: c_ast.InitializerList, item: c_ast.Declare
) -> Iterator[tuple[tuple[str, ...], int | None, c_ast.Expr]]:
    """Yield each field with its value, an element of a field that is an array with its index; what is left out is 0."""
    zero = c_ast.Number("0", span=init.span)
    if len(init.parts) > len(kind.fields):
        raise _no_initialiser(item)
    for k, (name, of) in enumerate(kind.fields):
        value = init.parts[k] if k < len(init.parts) else None
        listed = c_ast.InitializerList(()) if value is None else value
        match of:
            case c_ast.Struct() if isinstance(listed, c_ast.InitializerList):
                yield from (((name, *path), at, e) for path, at, e in initial_values(of, listed, item))
            case c_ast.ArrayOf() if isinstance(listed, c_ast.InitializerList):
                count = copied_elements(of)
                if count is None or len(listed.parts) > count:
                    raise _no_initialiser(item)
                for at in range(count):
                    part = listed.parts[at] if at < len(listed.parts) else zero
                    if isinstance(part, c_ast.InitializerList):
                        raise _no_initialiser(item)
                    yield (name,), at, part
            case c_ast.Basic() if not isinstance(value, c_ast.InitializerList):
                yield (name,), None, zero if value is None else value
            case _:
                raise _no_initialiser(item)


def _no_initialiser(item: c_ast.Declare) -> UnsupportedError:
    return refuse(f"this initialiser of {base(item.name)}", "one value for each field", item.span)


def copied_elements(kind: c_ast.Type) -> int | None:
    """Return how many elements a field has that is copied element by element, None where it is not."""
    match kind:
        case c_ast.Basic() | c_ast.Pointer():
            return 1
        case c_ast.ArrayOf(of, extent) if extent is not None:
            each, times = copied_elements(of), constant_value(extent)
            count = None if each is None or times is None else each * times
        case c_ast.Struct(_, fields):
            several = [copied_elements(of) for _, of in fields]
            count = None if None in several else sum(n for n in several if n is not None)
        case _:
            return None
    return count if count is not None and count <= _MOST_COPIED else None


def extent_of(kind: c_ast.ArrayOf) -> int:
    """Return how many elements an array has that ``copied_elements`` has counted."""
    count = None if kind.extent is None else constant_value(kind.extent)
    assert count is not None, "its elements were counted"
    return count


def written_objects(items: tuple[c_ast.Item, ...]) -> Iterator[str]:
    """Yield ``owner.path`` of the fields that are assigned by name."""
    for top in items:
        for node in c_ast.walk(top):
            match node:
                case c_ast.Assignment(_, target) | c_ast.Unary("++" | "--" | "&", target):
                    path: list[str] = []
                    while isinstance(target, c_ast.Field):
                        path.insert(0, target.name)
                        target = target.base
                    match target:
                        case c_ast.Name(name) | c_ast.Unary("*", c_ast.Name(name)) | c_ast.Index(c_ast.Name(name), _):
                            yield ".".join((name, *path))


def moved_offset(offset: c_ast.Expr, start: int, unit: int) -> c_ast.Expr:
    """Return an offset in elements of ``unit`` bytes that is ``start`` bytes further on; "?" if that is not whole."""
    if start < 0 or start % unit:
        return c_ast.Name("?")
    return sum_of(offset, c_ast.Number(str(start // unit)))


def scaled_offset(offset: c_ast.Expr, index: c_ast.Expr, size: int, unit: int) -> c_ast.Expr:
    """Return an offset that is ``index`` times ``size`` bytes further on."""
    if size % unit:
        return c_ast.Name("?")
    count = size // unit
    return sum_of(offset, index if count == 1 else c_ast.Binary("*", index, c_ast.Number(str(count)), span=index.span))


def sum_of(a: c_ast.Expr, b: c_ast.Expr) -> c_ast.Expr:
    """Return the sum of two offsets."""
    match a, b:
        case c_ast.Number("0"), _:
            return b
        case _, c_ast.Number("0"):
            return a
        case c_ast.Number(x), c_ast.Number(y):
            return c_ast.Number(str(int(x) + int(y)))
    return c_ast.Binary("+", a, b, span=b.span)


def is_whole(offset: c_ast.Expr) -> bool:
    """Tell whether a field begins at an element."""
    return not any(n == c_ast.Name("?") for n in c_ast.walk(offset))
