"""Pointers that are set or moved become the array into which they point and an integer that counts its elements.

    for (i = 0; i < n; i++) {                      for (i = 0; i < n; i++) {
      const float *r = &a[i * m];                    long r_at = i * m;
      for (j = 0; j < m; j++)               ==>      for (j = 0; j < m; j++)
        *out++ = r[j];                                 out[out_at] = a[r_at + j], out_at = out_at + 1;
    }                                              }

A pointer into an array of several dimensions also has one integer for each dimension before the last one that it
counts. All that a variable points to between two settings must be in one array; a variable that is set to another
array is one variable for each setting, where no path leads from one of them into the uses of another.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from looptune.core.errors import UnsupportedError
from looptune.core.source import NOWHERE, Span
from looptune.frontend import c_ast
from looptune.frontend.name_resolution import OFFSET, base, used_names
from looptune.frontend.normalize.pointer_ranges import split_ranges
from looptune.frontend.normalize.pointer_steps import separate_steps
from looptune.frontend.symbol_table import refuse

Items = tuple[c_ast.Item, ...]
LAST_OFFSET = "#last_offset"
"""A function, which no text can name, of the integer that stands for a pointer."""
_OFFSET = c_ast.Basic("int64")
_ZERO = c_ast.Number("0")


def replace_pointers(items: Items, types: Mapping[str, c_ast.Type], read_after: frozenset[str]) -> Items:
    """Return the statements without pointer variables that are set or moved.

    ``types`` has the types of all variables; ``read_after`` are the pointers whose last value is read elsewhere. A
    pointer that is set to something that is no part of an array is left as it is. Raises UnsupportedError for a pointer
    into several arrays, or one that is used as anything else than an array.
    """
    moving = moving_pointers(items, types)
    if not moving:
        return items
    for name in sorted(moving & read_after):
        at = _first_set(items, name)
        if at is not None:
            raise UnsupportedError(
                f"the pointer {base(name)} is set here and read afterwards: write the array and an index instead", at
            )
    items = separate_steps(items, moving)
    items, copies = split_ranges(items, moving)
    rewriter = _Rewriter({**types, **{copy: types[name] for copy, name in copies.items()}}, types)
    rewriter.find_arrays(items, moving | copies.keys())
    return rewriter.entered(rewriter.block(items))


def moving_pointers(items: Items, types: Mapping[str, c_ast.Type]) -> set[str]:
    """Return the pointers that the statements declare, set or move."""
    found: set[str] = set()
    static: set[str] = set()
    for top in items:
        for node in c_ast.walk(top):
            match node:
                case c_ast.Declare(name, c_ast.Pointer()):
                    (static if node.static else found).add(name)
                case c_ast.Assignment(_, c_ast.Name(name)) | c_ast.Unary("++" | "--", c_ast.Name(name)):
                    if isinstance(types.get(name), c_ast.Pointer):
                        found.add(name)
    return found - static


def points_into(kind: c_ast.Type, value: c_ast.Expr, types: Mapping[str, c_ast.Type]) -> bool:
    """Tell whether a pointer of this type is set to a place in an array of numbers: ``a``, ``a + e`` or ``&a[e]``."""
    match value:
        case c_ast.Unary("&", c_ast.Index(c_ast.Name(array), index)) | c_ast.Binary("+", c_ast.Name(array), index):
            if any(
                isinstance(n, c_ast.Index | c_ast.Call | c_ast.Unary | c_ast.Unsupported) for n in c_ast.walk(index)
            ):
                return False
        case c_ast.Name(array):
            pass
        case c_ast.Index(c_ast.Name(array), c_ast.Name() | c_ast.Number()):
            return kind == _row(types.get(array))
        case _:
            return False
    match kind, types.get(array):
        case c_ast.Pointer(c_ast.Basic(to)), c_ast.Pointer(c_ast.Basic(of)) | c_ast.ArrayOf(c_ast.Basic(of)):
            return to == of
    return False


def _row(kind: c_ast.Type | None) -> c_ast.Type | None:
    """Return the type of a pointer to the elements of a row, None where an array has no rows of numbers."""
    match kind:
        case c_ast.Pointer(row) | c_ast.ArrayOf(row):
            match row:
                case c_ast.Pointer(c_ast.Basic() as of) | c_ast.ArrayOf(c_ast.Basic() as of):
                    return c_ast.Pointer(of)
    return None


def _first_set(items: Items, name: str) -> Span | None:
    """Return the place where a pointer is first set or moved, its declaration apart."""
    for top in items:
        for node in c_ast.walk(top):
            match node:
                case c_ast.Assignment(_, c_ast.Name(own)) | c_ast.Unary("++" | "--", c_ast.Name(own)) if own == name:
                    return node.span
    return None


@dataclass(frozen=True, slots=True)
class _Value:
    """The address of an element: ``array[prefix]...[offset]``, which has the type ``to``.

    Where ``rows`` is not empty, the array is flat and the pointer counts rows: ``offset`` is in elements, and an index
    counts as many of them as the product of ``rows``. Where ``extents`` is not empty, they are those of the array's
    rows, and ``offset`` counts the elements from the first one of the array.
    """

    array: str
    prefix: tuple[c_ast.Expr, ...]
    offset: c_ast.Expr
    to: c_ast.Type
    rows: tuple[c_ast.Expr, ...] = ()
    extents: tuple[c_ast.Expr, ...] = ()

    @property
    def counted(self) -> tuple[object, ...]:
        """Return what tells in which elements two addresses count."""
        return len(self.prefix), self.rows, self.extents, self.to


@dataclass(frozen=True, slots=True)
class _Place:
    """The array of a pointer variable, the integers for its prefix and its offset, and what it counts."""

    array: str
    prefix: tuple[str, ...]
    offset: str
    to: c_ast.Type
    rows: tuple[c_ast.Expr, ...]
    extents: tuple[c_ast.Expr, ...]

    def value(self, span: Span) -> _Value:
        names = tuple(c_ast.Name(n, span=span) for n in self.prefix)
        return _Value(self.array, names, c_ast.Name(self.offset, span=span), self.to, self.rows, self.extents)


class _NoPart(Exception):
    """An expression is no address of an element of an array."""


@dataclass(slots=True)
class _Rewriter:
    types: Mapping[str, c_ast.Type]
    originals: Collection[str]
    places: dict[str, _Place] = field(default_factory=dict)
    open: set[str] = field(default_factory=set)
    serial: int = 0

    # -- which array --------------------------------------------------------------------------------

    def find_arrays(self, items: Items, moving: set[str]) -> None:
        """Give each pointer its place."""
        sources: dict[str, list[tuple[c_ast.Expr, Span]]] = {name: [] for name in moving}
        declared = {n.name for top in items for n in c_ast.walk(top) if isinstance(n, c_ast.Declare)}
        for name, value, span in _settings(items, moving):
            sources[name].append((value, span))
        for name in sorted(moving):
            if name not in declared and name in self.originals:
                # what the caller passes, or what the statements before have set
                sources[name].insert(0, (c_ast.Name(name), NOWHERE))
        self.open = {name for name in moving if sources[name]}
        while self.open:
            done = [name for name in sorted(self.open) if self.place(name, sources[name])]
            if not done:
                break
        for name in sorted(self.open):
            if name not in self.originals:
                raise refuse(f"the pointer {base(name)}", "the array it points to and an index", sources[name][0][1])
        self.open = set()

    def place(self, name: str, sources: Sequence[tuple[c_ast.Expr, Span]]) -> bool:
        """Find the place of one pointer; False where it depends on pointers without one."""
        values: list[tuple[_Value, Span]] = []
        for value, span in sources:
            try:
                values.append((self.own(name) if value == c_ast.Name(name) else self.value(value), span))
            except _NoPart:
                return False
        self.open.discard(name)
        if all(v.prefix and all(isinstance(e, c_ast.Number) for e in v.prefix) for v, _ in values):
            try:
                values = [(self.flat(v), span) for v, span in values]
            except _NoPart:
                return False
        first, _ = values[0]
        kind = self.types[name]
        assert isinstance(kind, c_ast.Pointer), "a pointer moves"
        for other, span in values:
            if other.array != first.array:
                raise UnsupportedError(
                    f"the pointer {base(name)} points into {base(first.array)} and into {base(other.array)}: "
                    "write one pointer for each array", span,
                )  # fmt: skip
            if other.counted != first.counted or other.to != kind.to:
                raise UnsupportedError(
                    f"the pointer {base(name)} counts other elements than {base(other.array)} has here: "
                    "write the array and its indices instead", span,
                )  # fmt: skip
        self.serial += 1
        shown = f"{base(name)}_at{OFFSET}{self.serial}"
        prefix = tuple(f"{base(name)}_row{OFFSET}{self.serial}.{k}" for k in range(len(first.prefix)))
        self.places[name] = _Place(first.array, prefix, shown, kind.to, first.rows, first.extents)
        return True

    def own(self, name: str) -> _Value:
        """Return the value of a pointer that is itself the array into which it points."""
        kind = self.types[name]
        assert isinstance(kind, c_ast.Pointer), "a pointer moves"
        return _Value(name, (), _ZERO, kind.to)

    # -- addresses ----------------------------------------------------------------------------------

    def value(self, e: Any) -> _Value:
        """Return the address that a pointer expression is. Raises _NoPart if it is none, or none that is followed."""
        match e:
            case c_ast.Name(name) if name in self.places:
                return self.places[name].value(e.span)
            case c_ast.Name(name) if name not in self.open:
                return self.array(name)
            case c_ast.Unary("&", c_ast.Index(inner, index)):
                return self.moved(self.value(inner), "+", index, e.span)
            case c_ast.Unary("&", c_ast.Unary("*", inner)):
                return self.value(inner)
            case c_ast.Index(inner, index):
                return self.row(self.moved(self.value(inner), "+", index, e.span))
            case c_ast.Unary("*", inner):
                return self.row(self.value(inner))
            case c_ast.Binary("+" | "-" as op, lhs, rhs):
                return self.sum(op, lhs, rhs, e.span)
            case c_ast.Cast(c_ast.Pointer(to), inner):
                return self.viewed(self.value(inner), to)
            case c_ast.Ternary(cond, then, other):
                return self.either(cond, self.value(then), self.value(other), e.span)
            case _:
                raise _NoPart

    def array(self, name: str) -> _Value:
        match self.types.get(name):
            case c_ast.Pointer(to) | c_ast.ArrayOf(to):
                return _Value(name, (), _ZERO, to)
            case _:
                raise _NoPart

    def sum(self, op: str, lhs: c_ast.Expr, rhs: c_ast.Expr, span: Span) -> _Value:
        if op == "+" and not self.is_pointer(lhs):
            lhs, rhs = rhs, lhs
        if self.is_pointer(rhs):
            raise _NoPart
        return self.moved(self.value(lhs), op, rhs, span)

    def moved(self, at: _Value, op: str, by: c_ast.Expr, span: Span) -> _Value:
        by = self.expr(by)
        for extent in at.rows:
            by = c_ast.Binary("*", by, extent, span=span)
        return replace(at, offset=_added(at.offset, op, by, span))

    def row(self, at: _Value) -> _Value:
        """Return the address of the first element of the row that an address denotes."""
        match at.to, at.rows:
            case c_ast.ArrayOf(of) | c_ast.Pointer(of), ():
                return _Value(at.array, (*at.prefix, at.offset), _ZERO, of)
            case c_ast.ArrayOf(of), (_, *rest):
                return _Value(at.array, at.prefix, at.offset, of, tuple(rest))
        raise _NoPart

    def flat(self, at: _Value) -> _Value:
        """Return the address of an element of a row as the number of elements before it in the array."""
        if at.extents or not at.prefix:
            return at
        kind = self.types[at.array]
        assert isinstance(kind, c_ast.Pointer | c_ast.ArrayOf), "it has elements"
        inner, _ = _extents(kind.to if isinstance(kind, c_ast.Pointer) else kind.of)
        if len(inner) != len(at.prefix) or None in inner:
            raise _NoPart
        extents = tuple(self.expr(e) for e in inner)
        total: c_ast.Expr = at.prefix[0]
        for extent, index in zip(extents, (*at.prefix[1:], at.offset), strict=True):
            total = c_ast.Number("0") if total == _ZERO else c_ast.Binary("*", total, extent, span=index.span)
            total = _added(total, "+", index, index.span)
        return replace(at, prefix=(), offset=total, extents=extents)

    def viewed(self, at: _Value, to: c_ast.Type) -> _Value:
        """Return an address as a cast converts it: elements counted in rows, or rows in elements."""
        if to == at.to:
            return at
        extents, leaf = _extents(to)
        own, of = _extents(at.to)
        if own and leaf == of and not extents and not at.rows:
            while isinstance(at.to, c_ast.ArrayOf):
                at = self.row(at)
            return self.flat(at)
        if leaf != of or isinstance(leaf, c_ast.Pointer) or None in extents:
            raise _NoPart
        if at.rows == own or not own:
            return replace(at, to=to, rows=tuple(self.expr(e) for e in extents))
        raise _NoPart

    def either(self, cond: c_ast.Expr, a: _Value, b: _Value, span: Span) -> _Value:
        if replace(a, offset=_ZERO) != replace(b, offset=_ZERO):
            raise _NoPart
        return replace(a, offset=c_ast.Ternary(self.expr(cond), a.offset, b.offset, span=span))

    def is_pointer(self, e: Any) -> bool:
        match e:
            case c_ast.Name(name):
                return name in self.places or isinstance(self.types.get(name), c_ast.Pointer | c_ast.ArrayOf)
            case c_ast.Unary("&") | c_ast.Cast(c_ast.Pointer()):
                return True
            case c_ast.Index(inner, _) | c_ast.Unary("*", inner):
                return self.is_pointer(inner) and self.is_row(e)
            case c_ast.Binary("+", lhs, rhs):
                return self.is_pointer(lhs) or self.is_pointer(rhs)
            case c_ast.Binary("-", lhs, rhs):
                return self.is_pointer(lhs) and not self.is_pointer(rhs)
            case c_ast.Ternary(_, then, other):
                return self.is_pointer(then) and self.is_pointer(other)
            case _:
                return False

    def is_row(self, e: c_ast.Expr) -> bool:
        """Tell whether an element is itself an array."""
        try:
            self.value(e)
        except _NoPart:
            return False
        return True

    # -- statements ---------------------------------------------------------------------------------

    def entered(self, items: Items) -> Items:
        """Return the statements after declarations of the offsets, with which the pointers from outside begin."""
        inside = {n.name for top in items for n in c_ast.walk(top) if isinstance(n, c_ast.Declare)}
        made: list[c_ast.Item] = []
        for name, place in self.places.items():
            if place.offset in inside:
                continue
            init = _ZERO if place.array == name else None
            made.append(c_ast.Declare(place.offset, _OFFSET, init))
            made += [c_ast.Declare(row, _OFFSET) for row in place.prefix]
        return (*made, *items)

    def block(self, items: Items) -> Items:
        return tuple(made for item in items for made in self.item(item))

    def item(self, item: Any) -> Iterator[Any]:
        match item:
            case c_ast.Declare(name, _, init) if name in self.places:
                place = self.places[name]
                values: dict[str, c_ast.Expr] = {}
                if isinstance(init, c_ast.Expr) and not _is_null(init):
                    values = dict(self.set(name, init, item.span))
                for own in (*place.prefix, place.offset):
                    yield c_ast.Declare(own, _OFFSET, values.get(own), span=item.span)
            case c_ast.Evaluate(e):
                for made in self.effects(e):
                    yield c_ast.Evaluate(made, span=made.span)
            case c_ast.For(init, cond, step, body):
                begins = tuple(made for i in init for made in self.item(i))
                new_cond = None if cond is None else self.expr(cond)
                yield replace(item, init=begins, cond=new_cond, next=self.step(step), body=self.inner(body))
            case c_ast.Block():
                yield self.inner(item)
            case c_ast.While(cond, body):
                yield replace(item, cond=self.expr(cond), body=self.inner(body))
            case c_ast.If(cond, then, other):
                yield replace(item, cond=self.expr(cond), then=self.inner(then), other=self.inner(other))
            case _:
                yield c_ast.map_children(self.expr, item)

    def inner(self, block: c_ast.Block) -> c_ast.Block:
        return replace(block, items=self.block(block.items))

    def step(self, e: c_ast.Expr | None) -> c_ast.Expr | None:
        if e is None:
            return None
        made = tuple(self.effects(e))
        return made[0] if len(made) == 1 else c_ast.Comma(made, span=e.span) if made else None

    def effects(self, e: c_ast.Expr) -> Iterator[c_ast.Expr]:
        """Return an expression that is a statement, as expressions."""
        match e:
            case c_ast.Comma(parts):
                for part in parts:
                    yield from self.effects(part)
            case c_ast.Assignment("", c_ast.Name(name), value) if name in self.places:
                for own, index in self.set(name, value, e.span):
                    yield c_ast.Assignment("", c_ast.Name(own, span=e.span), index, span=e.span)
            case c_ast.Assignment("+" | "-" as op, c_ast.Name(name), value) if name in self.places:
                yield self.stepped(name, op, value, e.span)
            case c_ast.Unary("++" | "--" as op, c_ast.Name(name)) if name in self.places:
                yield self.stepped(name, op[0], c_ast.Number("1", span=e.span), e.span)
            case _:
                yield self.expr(e)

    def set(self, name: str, value: c_ast.Expr, span: Span) -> Iterator[tuple[str, c_ast.Expr]]:
        """Yield the variables that stand for a pointer, each with its new value."""
        if _is_null(value):
            return
        place = self.places[name]
        try:
            found = self.flat(self.value(value)) if place.extents else self.value(value)
        except _NoPart:
            raise refuse(f"this value of the pointer {base(name)}", "an array and an index", span) from None
        for own, index in zip((*place.prefix, place.offset), (*found.prefix, found.offset), strict=True):
            if index != c_ast.Name(own):
                yield own, index

    def stepped(self, name: str, op: str, by: c_ast.Expr, span: Span) -> c_ast.Expr:
        at = self.places[name].value(span)
        return c_ast.Assignment("", at.offset, self.moved(at, op, by, span).offset, span=span)

    # -- expressions --------------------------------------------------------------------------------

    def expr(self, e: Any) -> Any:
        """Return an expression, or a type, without the pointers."""
        match e:
            case c_ast.Index() | c_ast.Unary("*") if self.reaches(e):
                return self.element(e)
            case c_ast.Binary("<" | "<=" | ">" | ">=" | "==" | "!=" | "-" as op, lhs, rhs) if self.mentions(e) and (
                self.is_pointer(lhs) or self.is_pointer(rhs)
            ):
                return self.compared(op, lhs, rhs, e)
            case c_ast.Call(name, (c_ast.Name(pointer),)) if name == LAST_OFFSET and pointer in self.places:
                return c_ast.Name(self.places[pointer].offset, span=e.span)
            case c_ast.Name(name) if name in self.places:
                raise refuse(f"the pointer {base(name)} as a value", "the array and an index", e.span)
            case c_ast.Assignment(_, c_ast.Name(name)) | c_ast.Unary("++" | "--", c_ast.Name(name)) if (
                name in self.places
            ):
                raise refuse(f"moving {base(name)} inside an expression", "it as a statement of its own", e.span)
            case c_ast.Unary("&", c_ast.Name(name)) if name in self.places:
                raise refuse(f"the address of the pointer {base(name)}", "the array and an index", e.span)
            case _:
                return c_ast.map_children(self.expr, e)

    def mentions(self, e: Any) -> bool:
        return not self.places.keys().isdisjoint(used_names((e,)))

    def reaches(self, e: Any) -> bool:
        """Tell whether an element is reached through a pointer that is replaced."""
        match e:
            case c_ast.Name(name):
                return name in self.places
            case c_ast.Index(inner, _) | c_ast.Unary("*" | "&", inner) | c_ast.Cast(_, inner):
                return self.reaches(inner)
            case c_ast.Binary("+" | "-", lhs, rhs):
                return (self.is_pointer(lhs) and self.reaches(lhs)) or (self.is_pointer(rhs) and self.reaches(rhs))
            case c_ast.Ternary(_, then, other):
                return self.reaches(then) or self.reaches(other)
            case _:
                return False

    def element(self, e: Any) -> c_ast.Expr:
        inner, index = (e.base, e.index) if isinstance(e, c_ast.Index) else (e.arg, None)
        try:
            at = self.value(inner)
            at = at if index is None else self.moved(at, "+", index, e.span)
        except _NoPart:
            raise refuse("this pointer expression", "an array and its indices", e.span) from None
        if isinstance(at.to, c_ast.ArrayOf):
            raise refuse("a row as a value", "its elements", e.span)
        found: c_ast.Expr = c_ast.Name(at.array, span=e.span)
        for k in _divided(at.offset, at.extents) if at.extents else (*at.prefix, at.offset):
            found = c_ast.Index(found, k, span=e.span)
        return found

    def compared(self, op: str, lhs: c_ast.Expr, rhs: c_ast.Expr, e: c_ast.Binary) -> c_ast.Expr:
        """Return a comparison or a difference of two pointers as one of their offsets."""
        if op == "-" and not self.is_pointer(rhs):
            raise refuse("a pointer as a value", "the array and an index", e.span)
        try:
            a, b = self.value(lhs), self.value(rhs)
            a, b = (self.flat(a), self.flat(b)) if a.extents or b.extents else (a, b)
        except _NoPart:
            raise refuse("this comparison of a pointer", "one of indices", e.span) from None
        if a.array != b.array or a.prefix != b.prefix:
            what = f"a comparison of pointers into {base(a.array)} and into {base(b.array)}"
            raise refuse(what if a.array != b.array else "a comparison of pointers into two rows", "indices", e.span)
        if op == "-" and a.rows:
            raise refuse("a difference of pointers to rows", "one of indices", e.span)
        return c_ast.Binary(op, a.offset, b.offset, span=e.span)


def _settings(items: Items, moving: set[str]) -> Iterator[tuple[str, c_ast.Expr, Span]]:
    """Yield what each pointer is set to, with the place."""
    for top in items:
        for node in c_ast.walk(top):
            match node:
                case c_ast.Declare(name, _, init) if name in moving and isinstance(init, c_ast.Expr):
                    if not _is_null(init):
                        yield name, init, node.span
                case c_ast.Assignment("", c_ast.Name(name), value) if name in moving:
                    if not _moves_itself(name, value) and not _is_null(value):
                        yield name, value, node.span


def _moves_itself(name: str, value: c_ast.Expr) -> bool:
    match value:
        case c_ast.Name(other):
            return other == name
        case c_ast.Binary("+" | "-", lhs, rhs):
            return _moves_itself(name, lhs) or _moves_itself(name, rhs)
        case c_ast.Unary("&", c_ast.Index(inner, _)):
            return _moves_itself(name, inner)
    return False


def _is_null(e: c_ast.Expr) -> bool:
    while isinstance(e, c_ast.Cast):
        e = e.arg
    return e in (c_ast.Number("0"), c_ast.Name("NULL"))


def _added(offset: c_ast.Expr, op: str, by: c_ast.Expr, span: Span) -> c_ast.Expr:
    """Return ``offset + by`` as pointer arithmetic computes it: in 64 bits."""
    wide = by if isinstance(by, c_ast.Number) else c_ast.Cast(_OFFSET, by, span=by.span)
    if offset == _ZERO:
        return wide if op == "+" else c_ast.Unary("-", wide, span=span)
    return offset if by == _ZERO else c_ast.Binary(op, offset, wide, span=span)


def _divided(offset: c_ast.Expr, extents: Sequence[c_ast.Expr]) -> list[c_ast.Expr]:
    """Return the indices of the element that ``offset`` elements precede."""
    found: list[c_ast.Expr] = []
    for extent in reversed(extents):
        found.insert(0, c_ast.Binary("%", offset, extent, span=offset.span))
        offset = c_ast.Binary("/", offset, extent, span=offset.span)
    return [offset, *found]


def _extents(kind: c_ast.Type) -> tuple[tuple[Any, ...], c_ast.Type]:
    match kind:
        case c_ast.ArrayOf(of, extent):
            inner, leaf = _extents(of)
            return (extent, *inner), leaf
    return (), kind
