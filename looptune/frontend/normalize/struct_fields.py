"""Fields of structs as arrays and scalars.

    struct px { float r, g, b; } *in;     in[i].g                   in[i][1], of an array float in[n][3]
    struct grid { int n; double *data; } *g;   g->data[g->n - 1]    g_data[g_n - 1]
    struct { double re, im; } t;          t = a[i];          ==>    t_re = a[i][0]; t_im = a[i][1];

An array of structs is read as one array with a dimension more, if the fields that are used have one type: its memory is
the same. A struct that is one object becomes a variable for each field; one from outside of the codelet, a parameter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from looptune.core.errors import UnsupportedError
from looptune.frontend import c_ast
from looptune.frontend.name_resolution import base
from looptune.frontend.symbol_table import refuse
from looptune.ir.simplify import evaluate

if TYPE_CHECKING:
    from looptune.core.source import Span

Items = tuple[c_ast.Item, ...]
_BYTES = {"bool": 1, "int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "float32": 4,
          "int64": 8, "uint64": 8, "float64": 8}  # fmt: skip
_POINTER_BYTES = 8
_VOID = c_ast.Basic("void")


@dataclass(frozen=True, slots=True)
class FieldVariable:
    """A field of a struct that is one object, as a variable of its own; ``path`` is the text after the struct's name.

    ``owner`` is the struct's name; ``is_written``: a scalar that the codelet writes, which is an array of one element.
    """

    declared: c_ast.Declare
    owner: str
    path: str
    is_written: bool = False


@dataclass(frozen=True, slots=True)
class SeparatedFields:
    """The statements without structs, the types of all variables, and the fields of structs from outside."""

    items: Items
    types: Mapping[str, c_ast.Type]
    outside: tuple[FieldVariable, ...] = ()


def separate_fields(items: Items, types: Mapping[str, c_ast.Type]) -> SeparatedFields:
    """Return the statements without structs, as far as their fields can be told apart.

    Raises UnsupportedError where the fields of an array's structs that are used have several types.
    """
    names = {name for name, kind in types.items() if isinstance(_leaf(kind), c_ast.Struct)}
    used = {n.name for top in items for n in c_ast.walk(top) if isinstance(n, c_ast.Name | c_ast.Declare)}
    if not names & used:
        return SeparatedFields(items, types)
    separator = _Separator(dict(types), _objects(items, types))
    separator.choose_types(items)
    made = separator.block(items)
    for node in (n for top in made for n in c_ast.walk(top)):
        if isinstance(node, c_ast.Name) and isinstance(_leaf(separator.types.get(node.name, _VOID)), c_ast.Struct):
            raise refuse(f"this use of the struct {base(node.name)}", "its fields", node.span)
    return SeparatedFields(made, separator.types, tuple(separator.outside.values()))


def _leaf(kind: c_ast.Type) -> c_ast.Type:
    while isinstance(kind, c_ast.Pointer | c_ast.ArrayOf):
        kind = kind.to if isinstance(kind, c_ast.Pointer) else kind.of
    return kind


def _objects(items: Items, types: Mapping[str, c_ast.Type]) -> frozenset[str]:
    """Return the variables that are one struct, or a pointer from outside that is used as that of one struct."""
    inside = {n.name for top in items for n in c_ast.walk(top) if isinstance(n, c_ast.Declare)}
    found = {name for name, kind in types.items() if isinstance(kind, c_ast.Struct)}
    pointers = {
        name for name, kind in types.items()
        if isinstance(kind, c_ast.Pointer) and isinstance(kind.to, c_ast.Struct) and name not in inside
    }  # fmt: skip
    return frozenset(found | (pointers - _other_uses(items)))


def _other_uses(node: Any) -> set[str]:
    """Return the names that occur otherwise than as ``p->f``, ``(*p).f`` or ``p[0].f``."""
    match node:
        case tuple():
            return set().union(*map(_other_uses, node))
        case c_ast.Field(c_ast.Name(), _, True):
            return set()
        case c_ast.Field(c_ast.Unary("*", c_ast.Name()) | c_ast.Index(c_ast.Name(), c_ast.Number("0")), _, False):
            return set()
        case c_ast.Name(name):
            return {name}
    return set().union(*map(_other_uses, c_ast.children(node)))


class _NoField(Exception):
    """An expression is no field that can be read as an array's element or a variable."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a field is: ``offset`` elements after the first one of ``row``, or in a variable of its own.

    ``path`` are the names of the fields in the struct ``owner``, with ``index`` for each dimension of an array.
    """

    kind: c_ast.Type
    row: c_ast.Expr | None = None
    tag: c_ast.Struct | None = None
    offset: c_ast.Expr = field(default_factory=lambda: c_ast.Number("0"))
    owner: str = ""
    path: tuple[str, ...] = ()
    index: tuple[c_ast.Expr, ...] = ()


@dataclass(slots=True)
class _Separator:
    types: dict[str, c_ast.Type]
    objects: frozenset[str]
    elements: dict[str, str] = field(default_factory=dict)
    """The type in which the elements of the structs of an array are read, by the struct's tag."""
    variables: dict[tuple[str, tuple[str, ...]], FieldVariable] = field(default_factory=dict)
    outside: dict[str, FieldVariable] = field(default_factory=dict)
    written: frozenset[str] = frozenset()
    local_objects: set[str] = field(default_factory=set)
    originals: dict[str, c_ast.Type] = field(init=False)

    def __post_init__(self) -> None:
        self.originals = dict(self.types)

    # -- types --------------------------------------------------------------------------------------

    def choose_types(self, items: Items) -> None:
        """Choose the element type of each struct that is in an array: that of the fields that are used."""
        self.written = frozenset(_written_objects(items))
        for top in items:
            for node in c_ast.walk(top):
                if isinstance(node, c_ast.Field) or (isinstance(node, c_ast.Assignment) and not node.op):
                    self.note(node if isinstance(node, c_ast.Field) else node.value)
                if isinstance(node, c_ast.Assignment):
                    self.note(node.target)
                if isinstance(node, c_ast.Declare) and isinstance(node.init, c_ast.Expr):
                    self.note(node.init)
        for name, kind in list(self.types.items()):
            if name not in self.objects:
                self.types[name] = self.retyped(kind)

    def retyped(self, kind: c_ast.Type) -> c_ast.Type:
        """Return the type of an array of structs as that of an array with a dimension more."""
        leaf = _leaf(kind)
        if not isinstance(leaf, c_ast.Struct) or leaf.tag not in self.elements:
            return kind
        dtype = self.elements[leaf.tag]
        size = _size(leaf)
        if size is None or size % _BYTES[dtype]:
            return kind
        return _with_leaf(kind, c_ast.ArrayOf(c_ast.Basic(dtype), c_ast.Number(str(size // _BYTES[dtype]))))

    def note(self, e: c_ast.Expr) -> None:
        try:
            at = self.place(e)
        except _NoField:
            return
        if at.tag is None:
            return
        kinds = [leaf for _, leaf in _leaves(at.kind)] if isinstance(at.kind, c_ast.Struct) else [_leaf(at.kind)]
        for leaf in kinds:
            if not isinstance(leaf, c_ast.Basic) or leaf.dtype not in _BYTES:
                continue
            have = self.elements.setdefault(at.tag.tag, leaf.dtype)
            if have != leaf.dtype:
                raise UnsupportedError(
                    f"fields of types {have} and {leaf.dtype} of an array of structs: write one array for each field",
                    e.span,
                )

    # -- places -------------------------------------------------------------------------------------

    def kind(self, e: Any) -> c_ast.Type:
        """Return the type of an lvalue or a pointer. Raises _NoField for other expressions."""
        match e:
            case c_ast.Name(name) if name in self.originals:
                return self.originals[name]
            case c_ast.Index(inner, _) | c_ast.Unary("*", inner):
                return _element(self.kind(inner))
            case c_ast.Unary("&", inner):
                return c_ast.Pointer(self.kind(inner))
            case c_ast.Binary("+" | "-", lhs, rhs):
                try:
                    return self.kind(lhs)
                except _NoField:
                    return self.kind(rhs)
            case c_ast.Cast(c_ast.Pointer() as to, _):
                return to
            case c_ast.Field():
                return self.place(e).kind
        raise _NoField

    def place(self, e: Any) -> _Place:
        """Return where a struct, a field of one, or an element of a field that is an array is."""
        match e:
            case c_ast.Field(inner, name, arrow):
                at = self.struct(c_ast.Unary("*", inner, span=inner.span) if arrow else inner)
                return self.member(at, name)
            case c_ast.Index(inner, index):
                try:
                    at = self.place(inner)
                except _NoField:
                    return self.struct(e)
                return self.element(at, index) if isinstance(at.kind, c_ast.ArrayOf) else self.struct(e)
        return self.struct(e)

    def struct(self, e: Any) -> _Place:
        """Return where the struct is that an lvalue denotes."""
        match e:
            case c_ast.Field():
                at = self.place(e)
                if isinstance(at.kind, c_ast.Struct):
                    return at
                raise _NoField
            case c_ast.Unary("*", c_ast.Unary("&", inner)):
                return self.struct(inner)
            case c_ast.Name(name) if name in self.objects and isinstance(self.originals[name], c_ast.Struct):
                return _Place(self.originals[name], owner=name)
            case c_ast.Unary("*", c_ast.Name(name)) | c_ast.Index(c_ast.Name(name), c_ast.Number("0")) if (
                name in self.objects
            ):
                return _Place(_element(self.originals[name]), owner=name)
            case c_ast.Index(inner, index):
                try:
                    at = self.place(inner)
                except _NoField:
                    pass
                else:
                    if isinstance(at.kind, c_ast.ArrayOf) and isinstance(at.kind.of, c_ast.Struct):
                        return self.element(at, index)
        kind = self.kind(e)
        if isinstance(kind, c_ast.Struct):
            return _Place(kind, row=e, tag=kind)
        raise _NoField

    def member(self, at: _Place, name: str) -> _Place:
        assert isinstance(at.kind, c_ast.Struct), "it has fields"
        found = _field(at.kind, name)
        if found is None:
            raise _NoField
        kind, start = found
        if at.tag is None:
            return replace(at, kind=kind, path=(*at.path, name))
        return replace(at, kind=kind, offset=_plus(at.offset, start, self.unit(at.tag)))

    def element(self, at: _Place, index: c_ast.Expr) -> _Place:
        assert isinstance(at.kind, c_ast.ArrayOf), "it has elements"
        if at.tag is None:
            if isinstance(_leaf(at.kind), c_ast.Struct):
                raise _NoField
            return replace(at, kind=at.kind.of, index=(*at.index, index))
        size = _size(at.kind.of)
        if size is None:
            raise _NoField
        return replace(at, kind=at.kind.of, offset=_scaled(at.offset, index, size, self.unit(at.tag)))

    def unit(self, tag: c_ast.Struct) -> int:
        """Return the bytes of an element; 1 before it is chosen."""
        return _BYTES[self.elements[tag.tag]] if tag.tag in self.elements else 1

    # -- statements and expressions -----------------------------------------------------------------

    def block(self, items: Items) -> Items:
        return tuple(made for item in items for made in self.item(item))

    def item(self, item: Any) -> Iterator[Any]:
        match item:
            case c_ast.Declare(name, c_ast.Struct() as kind, init) if name in self.objects:
                yield from self.declared(item, kind, init)
            case c_ast.Declare(name) if self.types.get(name) not in (None, item.type):
                yield c_ast.map_children(self.node, replace(item, type=self.types[name]))
            case c_ast.Evaluate(c_ast.Assignment("", target, value)) if self.is_struct(target):
                yield from self.copied(target, value, item.span)
            case c_ast.Block():
                yield replace(item, items=self.block(item.items))
            case _:
                yield c_ast.map_children(self.node, item)

    def node(self, node: Any) -> Any:
        match node:
            case c_ast.Block():
                return replace(node, items=self.block(node.items))
            case c_ast.Declare() | c_ast.Evaluate():
                made = tuple(self.item(node))
                return made[0] if len(made) == 1 else node
            case c_ast.Unary("&", c_ast.Index() | c_ast.Field() | c_ast.Unary("*") as inner) if self.is_struct(inner):
                return replace(node, arg=c_ast.map_children(self.node, inner))
            case c_ast.Field() | c_ast.Index():
                return self.read(node)
            case _:
                return c_ast.map_children(self.node, node)

    def read(self, e: Any) -> Any:
        """Return a field, or an element of one, without the struct."""
        try:
            at = self.place(e)
        except _NoField:
            return c_ast.map_children(self.node, e)
        if isinstance(at.kind, c_ast.Struct):
            raise refuse("a struct as a value", "its fields", e.span)
        return self.at(at, e.span, e)

    def at(self, at: _Place, span: Span, e: Any) -> Any:
        if at.tag is None:
            return self.variable(at, span)
        if at.row is None or at.tag.tag not in self.elements or not _is_whole(at.offset):
            return c_ast.map_children(self.node, e)
        row = c_ast.map_children(self.node, at.row)
        match at.kind:
            case c_ast.Basic():
                return c_ast.Index(row, self.node(at.offset), span=span)
            case c_ast.ArrayOf(c_ast.Basic()):
                return c_ast.Unary("&", c_ast.Index(row, self.node(at.offset), span=span), span=span)
        return c_ast.map_children(self.node, e)

    def variable(self, at: _Place, span: Span) -> Any:
        made = self.field_variable(at, span)
        found: c_ast.Expr = c_ast.Name(made.declared.name, span=span)
        if made.is_written:
            return c_ast.Index(found, c_ast.Number("0", span=span), span=span)
        for index in at.index:
            found = c_ast.Index(found, self.node(index), span=span)
        return found

    def field_variable(self, at: _Place, span: Span) -> FieldVariable:
        """Return the variable for a field of an object."""
        key = (at.owner, at.path)
        if key in self.variables:
            return self.variables[key]
        kind = self.originals[at.owner]
        first = "->" if isinstance(kind, c_ast.Pointer) else "."
        whole: c_ast.Type = _element(kind) if isinstance(kind, c_ast.Pointer) else kind
        for name in at.path:
            found = _field(whole, name) if isinstance(whole, c_ast.Struct) else None
            assert found is not None, "the path is one of fields"
            whole, _ = found
        whole = self.retyped(whole)
        inside = at.owner in self.local_objects
        is_written = not inside and isinstance(whole, c_ast.Basic) and self.is_written(at.owner, at.path)
        taken = {base(n) for n in self.types}
        shown = "_".join((base(at.owner), *at.path))
        while shown in taken:
            shown += "_"
        declared = c_ast.Declare(
            f"{shown}#f{len(self.variables)}",
            c_ast.ArrayOf(whole, c_ast.Number("1")) if is_written else whole,
            span=span,
        )
        made = FieldVariable(declared, at.owner, first + ".".join(at.path), is_written)
        self.variables[key] = made
        self.types[declared.name] = declared.type
        if not inside:
            self.outside[declared.name] = made
        return made

    def is_written(self, owner: str, path: tuple[str, ...]) -> bool:
        """Tell whether a field is assigned, of this struct or of one that may be the same."""
        kind = self.originals[owner]
        same = {n for n in self.objects if self.originals[n] == kind} if isinstance(kind, c_ast.Pointer) else {owner}
        return any(".".join((name, *path)) in self.written for name in same)

    def declared(self, item: c_ast.Declare, kind: c_ast.Struct, init: Any) -> Iterator[Any]:
        """Yield the variables for the fields of a struct that is declared here."""
        self.local_objects.add(item.name)
        paths = [path for path, leaf in _members(kind, ())]
        for path in paths:
            made = self.field_variable(_Place(kind, owner=item.name, path=path), item.span)
            yield made.declared
        if init is None:
            return
        target = c_ast.Name(item.name, span=item.span)
        if isinstance(init, c_ast.InitializerList):
            values = init.parts
            if len(values) != len(paths) or any(isinstance(v, c_ast.InitializerList) for v in values):
                raise refuse(f"this initialiser of {base(item.name)}", "one value for each field", item.span)
            for path, value in zip(paths, values, strict=True):
                name = c_ast.Name(
                    self.field_variable(_Place(kind, owner=item.name, path=path), item.span).declared.name
                )
                yield c_ast.Evaluate(c_ast.Assignment("", name, self.node(value), span=item.span), span=item.span)
            return
        yield from self.copied(target, init, item.span)

    def is_struct(self, e: Any) -> bool:
        try:
            return isinstance(self.place(e).kind, c_ast.Struct)
        except _NoField:
            return False

    def copied(self, target: Any, value: Any, span: Span) -> Iterator[Any]:
        """Yield a copy of a struct as copies of its fields."""
        try:
            to, of = self.place(target), self.place(value)
        except _NoField:
            raise refuse("this value of a struct", "its fields one by one", span) from None
        assert isinstance(to.kind, c_ast.Struct), "it has fields"
        for path, leaf in _members(to.kind, ()):
            if not isinstance(leaf, c_ast.Basic):
                what = f"a copy of a struct with the field {'.'.join(path)}, which is no number,"
                raise refuse(what, "its fields one by one", span)
            new, old = to, of
            for name in path:
                new, old = self.member(new, name), self.member(old, name)
            new_expr, old_expr = self.at(new, span, target), self.at(old, span, value)
            yield c_ast.Evaluate(c_ast.Assignment("", new_expr, old_expr, span=span), span=span)


def _written_objects(items: Items) -> Iterator[str]:
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


def _element(kind: c_ast.Type) -> c_ast.Type:
    match kind:
        case c_ast.Pointer(to) | c_ast.ArrayOf(to):
            return to
    raise _NoField


def _with_leaf(kind: c_ast.Type, leaf: c_ast.Type) -> c_ast.Type:
    match kind:
        case c_ast.Pointer(to):
            return c_ast.Pointer(_with_leaf(to, leaf))
        case c_ast.ArrayOf(of, extent):
            return c_ast.ArrayOf(_with_leaf(of, leaf), extent)
    return leaf


def _members(kind: c_ast.Type, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], c_ast.Type]]:
    """Yield the fields that are no structs, each with its path."""
    if not isinstance(kind, c_ast.Struct):
        yield path, kind
        return
    for name, inner in kind.fields:
        yield from _members(inner, (*path, name))


def _leaves(kind: c_ast.Type) -> Iterator[tuple[tuple[str, ...], c_ast.Type]]:
    return ((path, _leaf(inner)) for path, inner in _members(kind, ()))


def _size(kind: c_ast.Type) -> int | None:
    """Return the bytes of a type, None where they are not known."""
    match kind:
        case c_ast.Basic(dtype):
            return _BYTES.get(dtype)
        case c_ast.Pointer():
            return _POINTER_BYTES
        case c_ast.ArrayOf(of, extent):
            size, count = _size(of), None if extent is None else _constant(extent)
            return None if size is None or count is None else count * size
        case c_ast.Struct(_, fields):
            end = 0
            for _, inner in fields:
                size, align = _size(inner), _alignment(inner)
                if size is None or align is None:
                    return None
                end = -(-end // align) * align + size
            align = _alignment(kind)
            return None if align is None else -(-end // align) * align
    return None


def _constant(e: c_ast.Expr) -> int | None:
    """Return the value of a constant expression, None where it is anything but numbers and operators."""
    match e:
        case c_ast.Number(text):
            digits = text.rstrip("uUlL")
            return int(digits) if digits.isdecimal() and (digits == "0" or digits[0] != "0") else None
        case c_ast.Binary("+" | "-" | "*" | "/" as op, lhs, rhs):
            a, b = _constant(lhs), _constant(rhs)
            return None if a is None or b is None else evaluate(op, a, b)
    return None


def _alignment(kind: c_ast.Type) -> int | None:
    match kind:
        case c_ast.ArrayOf(of, _):
            return _alignment(of)
        case c_ast.Struct(_, fields):
            found = [_alignment(inner) for _, inner in fields]
            return None if None in found or not found else max(a for a in found if a is not None)
    return _size(kind)


def _field(kind: c_ast.Struct, name: str) -> tuple[c_ast.Type, int] | None:
    """Return the type of a field and the bytes before it, None where there is none of this name."""
    at = 0
    known = True
    for own, inner in kind.fields:
        size, align = _size(inner), _alignment(inner)
        if known and align is not None:
            at = -(-at // align) * align
        if own == name:
            return inner, at if known and align is not None else -1
        known = known and size is not None
        at += size if size is not None else 0
    return None


def _plus(offset: c_ast.Expr, start: int, unit: int) -> c_ast.Expr:
    if start < 0 or start % unit:
        return c_ast.Name("?")
    return _sum(offset, c_ast.Number(str(start // unit)))


def _scaled(offset: c_ast.Expr, index: c_ast.Expr, size: int, unit: int) -> c_ast.Expr:
    if size % unit:
        return c_ast.Name("?")
    count = size // unit
    return _sum(offset, index if count == 1 else c_ast.Binary("*", index, c_ast.Number(str(count)), span=index.span))


def _sum(a: c_ast.Expr, b: c_ast.Expr) -> c_ast.Expr:
    match a, b:
        case c_ast.Number("0"), _:
            return b
        case _, c_ast.Number("0"):
            return a
        case c_ast.Number(x), c_ast.Number(y):
            return c_ast.Number(str(int(x) + int(y)))
    return c_ast.Binary("+", a, b, span=b.span)


def _is_whole(offset: c_ast.Expr) -> bool:
    """Tell whether a field begins at an element."""
    return not any(n == c_ast.Name("?") for n in c_ast.walk(offset))
