"""Fields of structs as arrays and scalars.

    struct px { float r, g, b; } *in;     in[i].g                   in[i][1], of an array float in[n][3]
    struct grid { int n; double *data; } *g;   g->data[g->n - 1]    g_data[g_n - 1]
    struct { double re, im; } t;          t = a[i];          ==>    t_re = a[i][0]; t_im = a[i][1];

An array of structs is read as one array with a dimension more, if the fields that are used have one type: its memory is
the same. If they have several types, it becomes an array for each field (``struct_arrays``). A struct that is one
object becomes a variable for each field; one from outside of the codelet, a parameter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from looptune.core.errors import UnsupportedError
from looptune.frontend import c_ast
from looptune.frontend.c_types import is_complex_type, pointer_dimensions
from looptune.frontend.name_resolution import base
from looptune.frontend.normalize.field_variable import FieldVariable
from looptune.frontend.normalize.struct_arrays import FieldArrays
from looptune.frontend.normalize.struct_effects import is_somewhere, without_unused_fields
from looptune.frontend.normalize.struct_layout import (
    BYTES,
    NoField,
    element_type,
    field_of,
    field_type,
    in_arrays,
    leaf_type,
    members,
    numbers,
    size_of,
    with_leaf,
)
from looptune.frontend.normalize.struct_pointers import FieldPath, name_pointers
from looptune.frontend.normalize.struct_values import (
    copied_elements,
    extent_of,
    in_text,
    initial_values,
    is_whole,
    moved_offset,
    scaled_offset,
    sum_of,
    written_objects,
)
from looptune.frontend.symbol_table import layout, refuse

if TYPE_CHECKING:
    from looptune.core.source import Span

Items = tuple[c_ast.Item, ...]
_VOID = c_ast.Basic("void")


@dataclass(frozen=True, slots=True)
class SeparatedFields:
    """The statements without structs, the types of all variables, and the fields of structs from outside.

    ``inside`` are the fields of structs that the statements declare.
    """

    items: Items
    types: Mapping[str, c_ast.Type]
    outside: tuple[FieldVariable, ...] = ()
    inside: tuple[FieldVariable, ...] = ()


def separate_fields(items: Items, types: Mapping[str, c_ast.Type], analysed_only: bool = False) -> SeparatedFields:
    """Return the statements without structs, as far as their fields can be told apart.

    ``analysed_only``: nothing is compiled, so that arrays of pointers to structs, and structs with pointers or with
    arrays of structs, may become an array for each field too.

    Raises UnsupportedError where the fields of an array's structs that are used have several types.
    """
    names = {name for name, kind in types.items() if isinstance(leaf_type(kind), c_ast.Struct)}
    used = {n.name for top in items for n in c_ast.walk(top) if isinstance(n, c_ast.Name | c_ast.Declare)}
    if not names & used:
        return SeparatedFields(items, types)
    named = name_pointers(without_unused_fields(items, types), types, _objects)
    items, types = named.items, named.types
    separator = _Separator(dict(types), _objects(items, types), analysed_only)
    separator.choose_types(items)
    made = separator.block(items)
    for node in (n for top in made for n in c_ast.walk(top)):
        if isinstance(node, c_ast.Name) and isinstance(leaf_type(separator.types.get(node.name, _VOID)), c_ast.Struct):
            raise refuse(f"this use of the struct {base(node.name)}", "its fields", node.span)
    inside = tuple(f for f in separator.variables.values() if f.declared.name not in separator.outside)
    outside = tuple(_of_text(f, named.paths) for f in separator.fields_outside(items))
    return SeparatedFields(made, separator.types, outside, inside)


def _of_text(f: FieldVariable, paths: Mapping[str, FieldPath]) -> FieldVariable:
    """Return a field of a struct to which a field of another struct points, as one of that other struct."""
    around = paths.get(f.owner)
    return f if around is None else replace(f, owner=around.owner, path=around.path + f.path)


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
    """Return the names that occur otherwise than as ``p->f``, ``(*p).f``, ``p[0].f``, or as what a call was given."""
    match node:
        case tuple():
            return set().union(*map(_other_uses, node))
        case c_ast.Field(c_ast.Name(), _, True):
            return set()
        case c_ast.Field(c_ast.Unary("*", c_ast.Name()) | c_ast.Index(c_ast.Name(), c_ast.Number("0")), _, False):
            return set()
        case c_ast.Field(c_ast.Index(c_ast.Name(), index), _, False) if is_somewhere(index):
            return _other_uses(index)
        case c_ast.Name(name):
            return {name}
    return set().union(*map(_other_uses, c_ast.children(node)))


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
    analysed_only: bool = False
    elements: dict[str, str] = field(default_factory=dict)
    """The type in which the elements of the structs of an array are read, by the struct's tag."""
    variables: dict[tuple[str, tuple[str, ...]], FieldVariable] = field(default_factory=dict)
    outside: dict[str, FieldVariable] = field(default_factory=dict)
    written: frozenset[str] = frozenset()
    local_objects: set[str] = field(default_factory=set)
    originals: dict[str, c_ast.Type] = field(init=False)
    arrays: FieldArrays = field(init=False)

    def __post_init__(self) -> None:
        self.originals = dict(self.types)
        self.arrays = FieldArrays(self.types, self.node, self.array_of_object)

    def array_of_object(self, e: c_ast.Field) -> str:
        at = self.place(e)
        if at.tag is not None:
            raise NoField
        return self.field_variable(at, e.span).declared.name

    def fields_outside(self, items: Items) -> tuple[FieldVariable, ...]:
        """Return the fields of structs from outside of the statements."""
        inside = {n.name for top in items for n in c_ast.walk(top) if isinstance(n, c_ast.Declare)}
        found = {name: f for name, f in self.outside.items() if not self.arrays.of(name)}
        for (name, path), new in self.arrays.made.items():
            if name in inside:
                continue
            kind = self.types[name]
            of = self.outside.get(name, FieldVariable(c_ast.Declare(name, kind), name, ""))
            declared = c_ast.Declare(new, self.types[new], span=of.declared.span)
            _, extents = layout(with_leaf(kind, c_ast.Basic("int8")), "", of.declared.span, rows=True)
            part, element = in_text(leaf_type(kind), path)
            found[new] = replace(
                of, declared=declared, element="".join(name if name == "[]" else f".{name}" for name in element),
                rank=len(extents), is_pointer=isinstance(kind, c_ast.Pointer), part=part,
            )  # fmt: skip
        return tuple(found.values())

    # -- types --------------------------------------------------------------------------------------

    def choose_types(self, items: Items) -> None:
        """Choose the element type of each struct that is in an array: that of the fields that are used."""
        self.written = frozenset(written_objects(items))
        used: dict[str, dict[tuple[str, ...], tuple[c_ast.Type, c_ast.Expr]]] = {}
        for at, e in self.places(items):
            assert at.tag is not None, "only those in arrays are yielded"
            nested = "[]" in at.path
            for path, kind in numbers(at.kind if nested else field_type(at.tag, at.path), at.path):
                if "[]" in path and self.analysed_only:
                    try:
                        kind = in_arrays(at.tag, path)
                    except NoField:
                        continue
                dtype = leaf_type(kind)
                if isinstance(dtype, c_ast.Basic) and dtype.dtype in BYTES:
                    used.setdefault(at.tag.tag, {}).setdefault(path, (kind, e))
        for tag, fields in used.items():
            dtypes = dict.fromkeys(_dtype(kind) for kind, _ in fields.values())
            if len(dtypes) == 1:
                self.elements[tag] = next(iter(dtypes))
                continue
            tables = any(pointer_dimensions(k) and _is_of(k, tag) for k in self.types.values())
            if not self.analysed_only and (
                tables or any("[]" in path or _has_pointer(kind) for path, (kind, _) in fields.items())
            ):
                first, second, *_ = dtypes
                where = next(e for kind, e in fields.values() if _dtype(kind) == second)
                raise UnsupportedError(
                    f"fields of types {first} and {second} of an array of structs: write one array for each field",
                    where.span,
                )
            self.arrays.paths[tag] = {path: kind for path, (kind, _) in fields.items()}
        for name, kind in list(self.types.items()):
            if name not in self.objects:
                self.types[name] = self.retyped(kind)

    def places(self, items: Items) -> Iterator[tuple[_Place, c_ast.Expr]]:
        """Yield the fields of structs in arrays that are used, and these structs where they are copied."""
        nodes = [n for top in items for n in c_ast.walk(top)]
        inner = {id(n.base) for n in nodes if isinstance(n, c_ast.Field)}
        for node in nodes:
            match node:
                case c_ast.Field() if id(node) not in inner:
                    found: tuple[Any, ...] = (node,)
                case c_ast.Index(c_ast.Cast(_, c_ast.Unary("&", one)), _):
                    found = (one,)
                case c_ast.Assignment(op, target, value):
                    found = (target,) if op else (value, target)
                case c_ast.Declare(_, _, init) if isinstance(init, c_ast.Expr):
                    found = (init,)
                case _:
                    continue
            for e in found:
                try:
                    at = self.place(e)
                except NoField:
                    continue
                if at.tag is not None:
                    yield at, e

    def retyped(self, kind: c_ast.Type) -> c_ast.Type:
        """Return the type of an array of structs as that of an array with a dimension more."""
        leaf = leaf_type(kind)
        if not isinstance(leaf, c_ast.Struct) or leaf.tag not in self.elements:
            return kind
        dtype = self.elements[leaf.tag]
        size = size_of(leaf)
        if size is None or size % BYTES[dtype]:
            return kind
        return with_leaf(kind, c_ast.ArrayOf(c_ast.Basic(dtype), c_ast.Number(str(size // BYTES[dtype]))))

    # -- places -------------------------------------------------------------------------------------

    def kind(self, e: Any) -> c_ast.Type:
        """Return the type of an lvalue or a pointer. Raises NoField for other expressions."""
        match e:
            case c_ast.Name(name) if name in self.originals:
                return self.originals[name]
            case c_ast.Index(inner, _) | c_ast.Unary("*", inner):
                return element_type(self.kind(inner))
            case c_ast.Unary("&", inner):
                return c_ast.Pointer(self.kind(inner))
            case c_ast.Binary("+" | "-", lhs, rhs):
                try:
                    return self.kind(lhs)
                except NoField:
                    return self.kind(rhs)
            case c_ast.Cast(c_ast.Pointer() as to, _):
                return to
            case c_ast.Field():
                return self.place(e).kind
        raise NoField

    def place(self, e: Any) -> _Place:
        """Return where a struct, a field of one, or an element of a field that is an array is."""
        match e:
            case c_ast.Field(inner, name, arrow):
                at = self.struct(c_ast.Unary("*", inner, span=inner.span) if arrow else inner)
                return self.member(at, name)
            case c_ast.Index(inner, index):
                try:
                    at = self.place(inner)
                except NoField:
                    return self.struct(e)
                return self.element(at, index) if self.has_elements(at) else self.struct(e)
        return self.struct(e)

    def struct(self, e: Any) -> _Place:
        """Return where the struct is that an lvalue denotes."""
        match e:
            case c_ast.Field():
                at = self.place(e)
                if isinstance(at.kind, c_ast.Struct):
                    return at
                raise NoField
            case c_ast.Unary("*", c_ast.Unary("&", inner)):
                return self.struct(inner)
            case c_ast.Name(name) if name in self.objects and isinstance(self.originals[name], c_ast.Struct):
                return _Place(self.originals[name], owner=name)
            case c_ast.Unary("*", c_ast.Name(name)) | c_ast.Index(c_ast.Name(name), c_ast.Number("0")) if (
                name in self.objects
            ):
                return _Place(element_type(self.originals[name]), owner=name)
            case c_ast.Index(c_ast.Name(name), index) if name in self.objects and is_somewhere(index):
                return _Place(element_type(self.originals[name]), owner=name)
            case c_ast.Index(inner, index):
                try:
                    at = self.place(inner)
                except NoField:
                    pass
                else:
                    if self.has_elements(at) and isinstance(element_type(at.kind), c_ast.Struct):
                        return self.element(at, index)
        kind = self.kind(e)
        if isinstance(kind, c_ast.Struct):
            return _Place(kind, row=e, tag=kind)
        raise NoField

    def member(self, at: _Place, name: str) -> _Place:
        assert isinstance(at.kind, c_ast.Struct), "it has fields"
        found = field_of(at.kind, name)
        if found is None:
            raise NoField
        kind, start = found
        if at.tag is None:
            return replace(at, kind=kind, path=(*at.path, name))
        offset = moved_offset(at.offset, start, self.unit(at.tag))
        return replace(at, kind=kind, path=(*at.path, name), offset=offset)

    def has_elements(self, at: _Place) -> bool:
        """Tell whether a place is an array with places for its elements; structs in an array of an object are rows."""
        return isinstance(at.kind, c_ast.ArrayOf) and (at.tag is not None or not isinstance(at.kind.of, c_ast.Struct))

    def element(self, at: _Place, index: c_ast.Expr) -> _Place:
        assert isinstance(at.kind, c_ast.ArrayOf), "it has elements"
        if at.tag is None:
            return replace(at, kind=at.kind.of, index=(*at.index, index))
        size = size_of(at.kind.of)
        if size is None:
            raise NoField
        path = (*at.path, "[]") if isinstance(leaf_type(at.kind), c_ast.Struct) else at.path
        offset = scaled_offset(at.offset, index, size, self.unit(at.tag))
        return replace(at, kind=at.kind.of, path=path, index=(*at.index, index), offset=offset)

    def unit(self, tag: c_ast.Struct) -> int:
        """Return the bytes of an element; 1 before it is chosen."""
        return BYTES[self.elements[tag.tag]] if tag.tag in self.elements else 1

    # -- statements and expressions -----------------------------------------------------------------

    def block(self, items: Items) -> Items:
        return tuple(made for item in items for made in self.item(item))

    def item(self, item: Any) -> Iterator[Any]:
        try:
            several = self.arrays.statement(item)
        except NoField:
            raise refuse("this pointer to structs", "an array and an index", item.span) from None
        match item:
            case _ if several is not None:
                yield from several
            case c_ast.For(init, _, step) if self.arrays.paths:
                begins = tuple(made for part in init for made in self.item(part))
                rest = c_ast.map_children(self.node, replace(item, init=(), next=None))
                yield replace(rest, init=begins, next=None if step is None else self.step(step))
            case c_ast.Declare(name, c_ast.Struct() as kind, init) if name in self.objects:
                yield from self.declared(item, kind, init)
            case c_ast.Declare(name) if self.types.get(name) not in (None, item.type):
                yield c_ast.map_children(self.node, replace(item, type=self.types[name]))
            case c_ast.Evaluate(c_ast.Assignment("", target, value)) if self.is_struct(target):
                yield from self.copied(target, value, item.span)
            case c_ast.Block() | c_ast.Region():
                yield replace(item, items=self.block(item.items))
            case _:
                yield c_ast.map_children(self.node, item)

    def step(self, e: c_ast.Expr) -> c_ast.Expr:
        parts = tuple(made.expr for made in self.item(c_ast.Evaluate(e, span=e.span)))
        return parts[0] if len(parts) == 1 else c_ast.Comma(parts, span=e.span)

    def node(self, node: Any) -> Any:
        match node:
            case c_ast.Block():
                return replace(node, items=self.block(node.items))
            case c_ast.Declare() | c_ast.Evaluate():
                made = tuple(self.item(node))
                return made[0] if len(made) == 1 else node
            case c_ast.Unary("&", c_ast.Index() | c_ast.Field() | c_ast.Unary("*") as inner) if self.is_struct(inner):
                return replace(node, arg=c_ast.map_children(self.node, inner))
            case c_ast.Unary("&", c_ast.Field() as inner) if self.is_column(inner):
                what = f"the address of {inner.name}, a field of an array of structs with fields of several types,"
                raise refuse(what, "the array and an index", node.span)
            case c_ast.Index(c_ast.Cast(c_ast.Pointer(c_ast.Basic(dtype)), c_ast.Unary("&", inner)), index):
                return self.number_at(node, inner, dtype, index)
            case c_ast.Field() | c_ast.Index():
                return self.read(node)
            case c_ast.For() if self.arrays.paths:
                return next(self.item(node))
            case c_ast.Binary() if (compared := self.arrays.compared(node)) is not None:
                return compared
            case _:
                return c_ast.map_children(self.node, node)

    def number_at(self, e: c_ast.Index, inner: c_ast.Expr, dtype: str, index: c_ast.Expr) -> Any:
        """Return ``((double *)&s)[k]``, a number of a struct, without the struct."""
        if not self.is_struct(inner):
            return self.read(e)
        at = self.place(inner)
        if at.tag is not None and at.row is not None and self.elements.get(at.tag.tag) == dtype and is_whole(at.offset):
            row = c_ast.map_children(self.node, at.row)
            return c_ast.Index(row, sum_of(at.offset, self.node(index)), span=e.span)
        if at.tag is None and is_complex_type(at.kind) and index in (c_ast.Number("0"), c_ast.Number("1")):
            return self.read(c_ast.Field(inner, "re" if index == c_ast.Number("0") else "im", False, span=e.span))
        return c_ast.map_children(self.node, e)

    def read(self, e: Any) -> Any:
        """Return a field, or an element of one, without the struct."""
        try:
            at = self.place(e)
        except NoField:
            return c_ast.map_children(self.node, e)
        if isinstance(at.kind, c_ast.Struct):
            raise refuse("a struct as a value", "its fields", e.span)
        return self.at(at, e.span, e)

    def at(self, at: _Place, span: Span, e: Any) -> Any:
        if at.tag is None:
            return self.variable(at, span)
        if at.tag.tag in self.arrays.paths and at.row is not None:
            try:
                found = self.arrays.column(at.row, at.path)
            except NoField:
                return c_ast.map_children(self.node, e)
            for index in at.index:
                found = c_ast.Index(found, self.node(index), span=span)
            return found
        if at.row is None or at.tag.tag not in self.elements or not is_whole(at.offset):
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
        pointed = isinstance(kind, c_ast.Pointer)
        whole: c_ast.Type = element_type(kind) if pointed else kind
        part, path = in_text(whole, at.path)
        shown_path = "".join(f".{name}" for name in path)
        if pointed:
            part, shown_path = (part, f"->{shown_path[1:]}") if path else (f"{part}*", "")
        of = field_type(whole, at.path)
        whole = self.retyped(of)
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
        made = FieldVariable(declared, at.owner, shown_path, is_written, part=part, of=of)
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
        if isinstance(init, c_ast.Name) and init.name in self.objects and init.name not in self.local_objects:
            for path, _ in members(kind, ()):
                self.field_variable(_Place(kind, owner=init.name, path=path), item.span)
        for path, _ in members(kind, ()):
            made = self.field_variable(_Place(kind, owner=item.name, path=path), item.span)
            yield made.declared
        if init is None:
            return
        target = c_ast.Name(item.name, span=item.span)
        if isinstance(init, c_ast.InitializerList):
            for path, index, value in initial_values(kind, init, item):
                name: c_ast.Expr = c_ast.Name(
                    self.field_variable(_Place(kind, owner=item.name, path=path), item.span).declared.name
                )
                name = name if index is None else c_ast.Index(name, c_ast.Number(str(index)), span=item.span)
                yield c_ast.Evaluate(c_ast.Assignment("", name, self.node(value), span=item.span), span=item.span)
            return
        yield from self.copied(target, init, item.span)

    def is_column(self, e: c_ast.Field) -> bool:
        """Tell whether a field is an element of an array that has no other fields."""
        try:
            at = self.place(e)
        except NoField:
            return False
        return at.tag is not None and at.tag.tag in self.arrays.paths

    def is_struct(self, e: Any) -> bool:
        try:
            return isinstance(self.place(e).kind, c_ast.Struct)
        except NoField:
            return False

    def copied(self, target: Any, value: Any, span: Span) -> Iterator[Any]:
        """Yield a copy of a struct as copies of its fields."""
        if isinstance(value, c_ast.Ternary):
            then, other = (c_ast.Block(tuple(self.copied(target, v, span))) for v in (value.then, value.other))
            yield c_ast.If(self.node(value.cond), then, other, span=span)
            return
        try:
            to, _ = self.place(target), self.place(value)
        except NoField:
            raise refuse("this value of a struct", "its fields one by one", span) from None
        assert isinstance(to.kind, c_ast.Struct), "it has fields"
        count = copied_elements(to.kind)
        if count is None:
            raise refuse("a copy of a struct of this size", "its fields one by one", span)
        yield from self.copies(target, value, to.kind, span)

    def copies(self, target: c_ast.Expr, value: c_ast.Expr, kind: c_ast.Type, span: Span) -> Iterator[Any]:
        """Yield a copy of each number and pointer in a struct or array."""
        match kind:
            case c_ast.Struct(_, fields):
                for name, inner in fields:
                    a, b = (c_ast.Field(e, name, False, span=e.span) for e in (target, value))
                    yield from self.copies(a, b, inner, span)
            case c_ast.ArrayOf(inner):
                for k in range(extent_of(kind)):
                    at = c_ast.Number(str(k), span=span)
                    old, new = c_ast.Index(target, at, span=target.span), c_ast.Index(value, at, span=value.span)
                    yield from self.copies(old, new, inner, span)
            case _:
                copy = c_ast.Assignment("", self.read(target), self.read(value), span=span)
                yield c_ast.Evaluate(copy, span=span)


def _dtype(kind: c_ast.Type) -> str:
    leaf = leaf_type(kind)
    assert isinstance(leaf, c_ast.Basic), "only numbers are used"
    return leaf.dtype


def _is_of(kind: c_ast.Type, tag: str) -> bool:
    leaf = leaf_type(kind)
    return isinstance(leaf, c_ast.Struct) and leaf.tag == tag


def _has_pointer(kind: c_ast.Type) -> bool:
    while isinstance(kind, c_ast.ArrayOf):
        kind = kind.of
    return isinstance(kind, c_ast.Pointer)
