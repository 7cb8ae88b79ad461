"""Whether statements access memory under two names, by the objects into which pointers lead (``points_to``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from looptune.frontend import c_ast
from looptune.frontend.name_resolution import base, root_variable
from looptune.frontend.normalize.struct_layout import leaf_type, lvalue_type
from looptune.frontend.pointer_settings import ALLOCATE, aimed, settings, swaps
from looptune.frontend.points_to import NO_OBJECTS, Objects, PointsTo
from looptune.frontend.symbol_table import refuse

if TYPE_CHECKING:
    from looptune.core.errors import UnsupportedError


def overlaps(a: Objects, b: Objects) -> bool:
    """Tell whether two sets have an object in common, or one has a part of an object of the other.

    >>> overlaps(frozenset({"s.x"}), frozenset({"s"})), overlaps(frozenset({"s.x"}), frozenset({"s.y", "*p"}))
    (True, False)
    """
    return any(x == y or x.startswith(f"{y}.") or y.startswith(f"{x}.") for x in a for y in b)


@dataclass(frozen=True, slots=True)
class _Access:
    """An access to memory: of what ``name`` is or leads to, by the fields and indices ``path``.

    ``passed``: a call may access all of it.
    """

    name: str
    path: str
    dtype: str
    objects: Objects
    is_write: bool
    node: Any = field(compare=False)
    passed: bool = False


@dataclass(frozen=True, slots=True)
class Overlap:
    """An access to memory that is also accessed under another name; ``names`` are equal where two rows are the same."""

    node: Any
    names: tuple[str, str]

    def refusal(self) -> UnsupportedError:
        """Return the error for a codelet, in which arrays are different memory."""
        a, b = map(base, self.names)
        if a == b:
            return refuse(f"{a}, whose rows this function sets to memory that other names may lead to,", "one array",
                          self.node.span)  # fmt: skip
        what = f"{a}, which may lead to the same memory as {b}, as this function sets them,"
        return refuse(what, "one of them and an index", self.node.span)


def overlapping(items: Iterable[Any], before: Iterable[Any], found: PointsTo) -> Iterator[Overlap]:
    """Yield what shows that statements access memory under two names, and write it.

    Pointers that the statements, or the declarations ``before`` them, set to a place in an array are places in it.
    """
    items = tuple(items)
    body = c_ast.Block((*before, *items))
    without = {id(item) for _, exchanged in swaps(body) for item in exchanged}
    numbers = {name for name, kind in found.types.items() if isinstance(kind, c_ast.Basic)}
    into = {
        t.name: root_variable(aimed(v))
        for t, v in settings(body, without)
        if isinstance(t, c_ast.Name) and t.name not in numbers
    }
    accesses = list(dict.fromkeys(a for item in items for a in _accesses(item, found, False)))
    for k, a in enumerate(accesses):
        if a.is_write and _set_rows(a.node, found):
            yield Overlap(a.node, (a.name, a.name))
        for b in accesses[k + 1 :]:
            if _are_compared(a, b, into) and overlaps(_objects(a, b, into, found), _objects(b, a, into, found)):
                yield Overlap(a.node, (a.name, b.name))


def _are_compared(a: _Access, b: _Access, into: Mapping[str, str | None]) -> bool:
    """Tell whether one of two accesses writes, and a codelet has different names for what they access."""
    named = (a.name, a.path) != (b.name, b.path) and not _is_one(a, b, into)
    return named and (a.is_write or b.is_write) and _may_alias(a.dtype, b.dtype)


def _is_one(a: _Access, b: _Access, into: Mapping[str, str | None]) -> bool:
    """Tell whether two accesses are to one array, so that their indices are compared."""
    set_here = a.name in into or b.name in into
    return (a.name == b.name and (a.passed or b.passed)) or (set_here and _array(a.name, into) == _array(b.name, into))


def _objects(a: _Access, other: _Access, into: Mapping[str, str | None], found: PointsTo) -> Objects:
    """Return the objects of an access, by the array into which its pointer is set and those it is exchanged with."""
    swapped = found.others(a.name)
    more = () if other.name in swapped else tuple(found.value(c_ast.Name(name)) for name in swapped)
    array = _array(a.name, into)
    kind = found.types.get(array)
    own = found.value(c_ast.Name(array)) if isinstance(kind, c_ast.Pointer) else frozenset({array})
    return a.objects.union(*more, own if array != a.name else NO_OBJECTS)


def _array(name: str, into: Mapping[str, str | None]) -> str:
    """Return the array into which a pointer leads that the statements set."""
    for _ in into:
        name = into.get(name) or name
    return name


def _may_alias(a: str, b: str) -> bool:
    return a == b or bool({a, b} & {"", "int8", "uint8"})


def _accesses(node: Any, found: PointsTo, is_write: bool) -> Iterator[_Access]:
    match node:
        case c_ast.Assignment(_, target, value):
            yield from _accesses(target, found, True)
            yield from _accesses(value, found, False)
            return
        case c_ast.Unary("++" | "--", target):
            yield from _accesses(target, found, True)
            return
        case c_ast.Unary("&", inner):
            yield from _parts(inner, found)
            return
        case c_ast.Call(_, args):
            for arg in args:
                kind = lvalue_type(arg, found.types)
                name = root_variable(aimed(arg))
                if isinstance(kind, c_ast.Pointer | c_ast.ArrayOf) and name is not None:
                    leaf = leaf_type(kind)
                    dtype = leaf.dtype if isinstance(leaf, c_ast.Basic) and leaf.dtype != "void" else ""
                    yield _Access(name, _path(arg), dtype, found.value(arg), True, arg, True)
        case c_ast.Name() | c_ast.Index() | c_ast.Field() | c_ast.Unary("*"):
            kind, name = lvalue_type(node, found.types), root_variable(node)
            if name is not None and isinstance(kind, c_ast.Basic | c_ast.Pointer):
                dtype = kind.dtype if isinstance(kind, c_ast.Basic) else "pointer"
                yield _Access(name, _path(node), dtype, found.places(node), is_write, node)
            yield from _parts(node, found)
            return
    for child in c_ast.children(node):
        yield from _accesses(child, found, False)


def _parts(e: Any, found: PointsTo) -> Iterator[_Access]:
    """Yield the accesses that compute which memory an lvalue is."""
    for child in c_ast.children(e):
        yield from _accesses(child, found, False)


def _path(e: Any) -> str:
    """Return the fields and the number of indices that lead to an lvalue."""
    match e:
        case c_ast.Index(inner) | c_ast.Unary("*", inner):
            return f"{_path(inner)}[]"
        case c_ast.Field(inner, name, arrow):
            return f"{_path(inner)}{'[]' if arrow else ''}.{name}"
        case c_ast.Cast(_, inner) | c_ast.Unary("&", inner) | c_ast.Binary("+" | "-", inner):
            return _path(inner)
    return ""


def _set_rows(e: Any, found: PointsTo) -> bool:
    """Tell whether an element is in a row that the function sets to memory that was not just allocated."""
    match e:
        case c_ast.Index(inner) | c_ast.Unary("*", inner):
            if isinstance(inner, c_ast.Index) and isinstance(lvalue_type(inner, found.types), c_ast.Pointer):
                led = {o for place in found.places(inner) for o in found.led.get(place, ())}
                return any(o.partition("@")[0] not in ALLOCATE for o in led)
    return False
