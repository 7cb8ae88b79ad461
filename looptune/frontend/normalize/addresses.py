"""Pointers as numbers and memory as arrays, one for each field of a struct and each type of numbers: for analysis only.

    while (p) { p->x = 0; p = p->next; }     ==>     while (p) { node_x[p] = 0; p = node_next[p]; }
    *d++ = q[j];                             ==>     memory_of_float64[d] = memory_of_float64[q + j]; d = d + 1;

A pointer is the number of its element in the memory of its type (R. Burstall, Some techniques for proving correctness
of programs which alter data structures, 1972). Two pointers to one type may be equal, whatever they are called, so that
less is found to be parallel than where arrays can be told apart: this is for statements that ``struct_fields`` and
``pointer_offsets`` refuse. Memory that is used as several types, by casts, the addresses of fields, or pointers in a
union, is one element (``shared_memory``). A union is one element, whichever of its fields is used, and so are the bit-
fields of a struct and all its other fields. It is assumed that no pointer to a number leads to a field of a struct.
Arrays of numbers that are only indexed stay as they are, and so do structs that the statements declare and whose
address is not taken. The rows to which a field points that is not set are disjoint.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from looptune.frontend import c_ast
from looptune.frontend.name_resolution import base, root_variable
from looptune.frontend.normalize.field_variable import FieldVariable
from looptune.frontend.normalize.library_effects import HEAP, POINTERS
from looptune.frontend.normalize.memory_names import MemoryNames
from looptune.frontend.normalize.pointer_uses import (
    elements,
    is_array_of_numbers,
    is_returned,
    otherwise,
    root,
    targets,
)
from looptune.frontend.normalize.shared_memory import CELLS, SharedMemory, stored
from looptune.frontend.normalize.struct_fields import SeparatedFields
from looptune.frontend.normalize.struct_layout import field_of, members, type_by_parts
from looptune.frontend.normalize.struct_values import copied_elements
from looptune.frontend.symbol_table import refuse

if TYPE_CHECKING:
    from looptune.core.source import Span

Items = tuple[c_ast.Item, ...]
Path = tuple[str, ...]
_ADDRESS = c_ast.Basic("int64")
_VOID = c_ast.Basic("void")
_ZERO = c_ast.Number("0")
_CELL = c_ast.ArrayOf(_ADDRESS, c_ast.Number("1"))
"""The type of the array that holds a union: nothing is known of its value."""
_Compound = c_ast.Struct | c_ast.Overlapping


def replace_memory(
    items: Items, types: Mapping[str, c_ast.Type], read_after: frozenset[str], several_names: frozenset[str]
) -> SeparatedFields:
    """Return the statements without pointers and structs; ``read_after`` are the pointers that are read after them.

    ``several_names`` are variables that are in memory, or lead to it, which has another name as well. Raises
    UnsupportedError for values that are neither numbers nor pointers.
    """
    shared = SharedMemory()
    before = -1
    while before != shared.changes:
        before = shared.changes
        memory = _Memory(dict(types), items, shared, several_names)
        made = memory.block(items)
        for tag in memory.whole & memory.embedded.keys():
            shared.unite((memory.names.struct_name(tag), *sorted(memory.embedded[tag])))
    start = tuple(c_ast.Declare(new, _ADDRESS, c_ast.Name(old)) for new, old in memory.copies.values())
    end = tuple(_read(memory.copies[name][0]) for name in sorted(memory.copies) if name in read_after)
    return SeparatedFields((*start, *made, *end), memory.types, tuple(memory.outside.values()))


def _read(name: str) -> c_ast.Evaluate:
    state = c_ast.Index(c_ast.Name(POINTERS), _ZERO)
    return c_ast.Evaluate(c_ast.Assignment("", state, c_ast.Name(name)))


@dataclass(frozen=True, slots=True)
class _Place:
    """A struct or a part of it: ``path`` in the struct ``tag`` at ``address``, or in the variable ``local``.

    ``overlapping``: it is a part of the union that the path leads to.
    """

    kind: c_ast.Type
    tag: str
    address: c_ast.Expr | None
    local: str = ""
    path: Path = ()
    index: tuple[c_ast.Expr, ...] = ()
    extents: tuple[c_ast.Expr | None, ...] = ()
    overlapping: bool = False


@dataclass(slots=True)
class _Memory:
    types: dict[str, c_ast.Type]
    items: Items
    shared: SharedMemory
    several_names: frozenset[str]
    names: MemoryNames = field(init=False)
    inside: dict[str, c_ast.Declare] = field(init=False)
    indexed: frozenset[str] = field(init=False)
    locals: frozenset[str] = field(init=False)
    assigned: frozenset[str] = field(init=False)
    valued: frozenset[tuple[str, str]] = field(init=False)
    whole_set: frozenset[str] = field(init=False)
    stored_names: frozenset[str] = field(init=False)
    """The numbers and pointers whose address is taken: they are in the memory of their type."""
    outside: dict[str, FieldVariable] = field(default_factory=dict)
    copies: dict[str, tuple[str, str]] = field(default_factory=dict)
    """The copies of pointers from outside that the statements set, and the parameters that are copied."""
    parts: dict[tuple[str, Path], str] = field(default_factory=dict)
    untyped: list[tuple[str, c_ast.Type]] = field(default_factory=list)
    """The pointers to void, and the types to which they are converted; ``passed`` are those converted to void."""
    passed: list[c_ast.Type] = field(default_factory=list)
    heap: dict[str, str] = field(default_factory=dict)
    """The addresses of the arrays that the statements allocate."""
    embedded: dict[str, set[str]] = field(default_factory=dict)
    """The structs that are fields of others, of which parts are used, with these; ``whole`` stand alone."""
    whole: set[str] = field(default_factory=set)
    kinds: dict[int, tuple[Any, c_ast.Type | None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.names = MemoryNames(self.types)
        nodes = [n for item in self.items for n in c_ast.walk(item)]
        self.inside = {n.name: n for n in nodes if isinstance(n, c_ast.Declare)}
        self.types |= {name: d.type for name, d in self.inside.items()}
        copies = {n.name: n.name.removesuffix("#0") for n in nodes if isinstance(n, c_ast.Name)}
        self.types |= {n: self.types[of] for n, of in copies.items() if n not in self.types and of in self.types}
        self.assigned = frozenset(target.name for n in nodes for target in targets(n) if isinstance(target, c_ast.Name))
        pointers = {n for n, d in self.inside.items() if isinstance(d.type, c_ast.Pointer)} | self.assigned
        others = set(self.several_names).union(*(otherwise(item, self.types) for item in self.items))
        if any(self.is_set_by_call(n) for n in nodes):
            # what a call returns may lead into the arrays that it was given
            others |= {root(n) for n in nodes if isinstance(n, c_ast.Index) and is_returned(n.index)}
        self.indexed = frozenset(
            n for n, kind in self.types.items() if n not in others | pointers and is_array_of_numbers(kind)
        )
        taken = {
            n.arg.name for n in nodes if isinstance(n, c_ast.Unary) and n.op == "&" and isinstance(n.arg, c_ast.Name)
        }
        taken |= self.shared.escaped
        numbers = {n for n in self.several_names if isinstance(self.types.get(n), c_ast.Basic)}
        numbers |= {n for n in taken if isinstance(self.types.get(n), c_ast.Basic | c_ast.Pointer)}
        self.stored_names = frozenset(numbers)
        self.locals = frozenset(n for n, d in self.inside.items() if isinstance(d.type, _Compound) and n not in taken)
        self.whole_set = frozenset(tag for n in nodes for tag in self.tags_set(n))
        self.valued = frozenset(found for item in self.items for found in self.fields_as_values(item))

    def tags_set(self, node: Any) -> Iterator[str]:
        """Yield the structs that are set as a whole."""
        match node:
            case c_ast.Assignment("", target):
                kind = self.kind(target)
                if isinstance(kind, c_ast.Struct):
                    yield kind.tag

    def is_set_by_call(self, node: Any) -> bool:
        """Tell whether a pointer or a struct is set to what a call returns."""
        match node:
            case c_ast.Assignment("", target, value):
                kind = self.kind(target)
            case c_ast.Declare(_, kind, value) if value is not None:
                pass
            case _:
                return False
        return isinstance(kind, c_ast.Pointer | c_ast.Struct) and is_returned(value)

    def fields_as_values(self, node: Any) -> Iterator[tuple[str, str]]:
        """Yield the fields that are pointers and used otherwise than to get at the numbers they point to."""
        match node:
            case c_ast.Index(c_ast.Field(inner), index):
                yield from self.fields_as_values(inner)
                yield from self.fields_as_values(index)
                return
            case c_ast.Unary("*", c_ast.Field(inner)):
                yield from self.fields_as_values(inner)
                return
            case c_ast.Field(inner, name, arrow):
                yield self.tag_of(inner, arrow), name
        for child in c_ast.children(node):
            yield from self.fields_as_values(child)

    def tag_of(self, e: c_ast.Expr, arrow: bool) -> str:
        kind = self.kind(e)
        kind = kind.to if arrow and isinstance(kind, c_ast.Pointer) else kind
        return kind.tag if isinstance(kind, c_ast.Struct) else ""

    # -- variables ----------------------------------------------------------------------------------

    def variable(self, name: str, kind: c_ast.Type, owner: str, span: Span) -> str:
        """Return the variable from outside of this name, which is made where there is none."""
        key = f"{name}#m"
        if key not in self.outside:
            taken = {base(n) for n in self.types}
            shown = name
            while shown in taken and f"{shown}#m" not in self.outside:
                shown += "_"
            declared = c_ast.Declare(f"{shown}#m", kind, span=span)
            self.outside[key] = FieldVariable(declared, owner, "", of=kind)
            self.types[declared.name] = kind
        return self.outside[key].declared.name

    def pointer(self, e: c_ast.Name) -> c_ast.Expr:
        """Return the number that a pointer or the address of an array or struct is."""
        name, kind = e.name, self.types.get(e.name)
        if name in self.heap:
            return replace(e, name=self.heap[name])
        if name in self.inside and isinstance(kind, c_ast.Pointer) and name not in self.stored_names:
            return e
        shown = f"{base(name)}_address"
        own = self.variable(shown, _ADDRESS, name, e.span)
        if name in self.assigned and name not in self.stored_names:
            if name not in self.copies:
                self.copies[name] = (f"{base(name)}#a{len(self.copies)}", own)
                self.types[self.copies[name][0]] = _ADDRESS
            own = self.copies[name][0]
        return replace(e, name=own)

    def cell(self, kinds: Iterable[str], span: Span) -> c_ast.Expr | None:
        """Return the element for memory of several types, None if the memory is of one type."""
        number = self.shared.number(kinds)
        if number is None:
            return None
        name = CELLS if number == 0 else f"{CELLS}_{number}"
        array = self.variable(name, _CELL, "memory", span)
        return c_ast.Index(c_ast.Name(array, span=span), _ZERO, span=span)

    def is_shared(self, e: c_ast.Expr) -> bool:
        """Tell whether it is memory of several types."""
        return isinstance(e, c_ast.Index) and isinstance(e.base, c_ast.Name) and e.base.name.startswith(CELLS)

    def part(self, local: str, path: Path, kind: c_ast.Type) -> str:
        """Return the variable that a field of a struct of the statements is."""
        if (local, path) not in self.parts:
            made = f"{'_'.join((base(local), *path))}#v{len(self.parts)}"
            self.parts[local, path] = made
            self.types[made] = _stored(kind)
        return self.parts[local, path]

    # -- types --------------------------------------------------------------------------------------

    def kind(self, e: Any) -> c_ast.Type | None:
        """Return the type of an lvalue or a pointer; it does not change, as names keep their types."""
        known = self.kinds.get(id(e))
        if known is None:
            known = self.kinds[id(e)] = (e, type_by_parts(e, self.types, self.kind))
        return known[1]

    def is_pointer(self, e: Any) -> bool:
        return isinstance(self.kind(e), c_ast.Pointer | c_ast.ArrayOf)

    # -- statements ---------------------------------------------------------------------------------

    def block(self, items: Items) -> Items:
        return tuple(made for item in items for made in self.item(item))

    def item(self, item: Any) -> Iterator[Any]:
        match item:
            case c_ast.Declare(name, kind, init) if name in self.stored_names:
                if isinstance(init, c_ast.InitializerList):
                    raise refuse(f"this initialiser of {base(name)}", "one value", item.span)
                if init is not None:
                    made = c_ast.Assignment("", c_ast.Name(name, span=item.span), init, span=item.span)
                    yield c_ast.Evaluate(self.node(made), span=item.span)
            case c_ast.Declare(name, c_ast.Struct() | c_ast.Overlapping() as kind, init):
                yield from self.declared(item, name, kind, init)
            case c_ast.Declare(name, c_ast.Pointer(), init) if name not in self.indexed:
                self.types[name] = item.type
                self.agree(item.type, init, item.span)
                value = init if init is None or isinstance(init, c_ast.InitializerList) else self.node(init)
                yield replace(item, type=_ADDRESS, init=value)
            case c_ast.Declare(name, c_ast.ArrayOf(), on_heap=True) if name not in self.indexed:
                yield from self.allocated(name, item.span)
            case c_ast.Declare(name, c_ast.ArrayOf()) if name not in self.indexed:
                if item.init is not None:
                    raise refuse(f"the address of {base(name)}", "an array from outside of the loops", item.span)
                self.types[name] = item.type
            case c_ast.Declare(init=c_ast.InitializerList()):
                yield item
            case c_ast.Declare():
                yield c_ast.map_children(self.node, item)
            case c_ast.Evaluate(c_ast.Assignment("", target, value)) if isinstance(self.kind(target), c_ast.Struct):
                yield from self.copied(target, value, item.span)
            case c_ast.For(init):
                first = self.block(init)
                yield replace(c_ast.map_children(self.node, replace(item, init=())), init=first)
            case _:
                yield self.node(item)

    def allocated(self, name: str, span: Span) -> Iterator[Any]:
        """Yield the statements that allocate an array, whose address is any number."""
        state = c_ast.Index(c_ast.Name(HEAP, span=span), _ZERO, span=span)
        changed = c_ast.Binary("+", c_ast.Binary("*", state, c_ast.Number("3")), c_ast.Number("1"), span=span)
        yield c_ast.Evaluate(c_ast.Assignment("", state, changed, span=span), span=span)
        made = f"{base(name)}#h{len(self.heap)}"
        self.heap[name] = made
        self.types[made] = _ADDRESS
        yield c_ast.Declare(made, _ADDRESS, state, span=span)

    def declared(self, item: c_ast.Declare, name: str, kind: c_ast.Type, init: Any) -> Iterator[Any]:
        if name in self.locals:
            for path, of in members(kind, ()):
                made = self.part(name, path, _CELL if isinstance(of, c_ast.Overlapping) else of)
                yield c_ast.Declare(made, self.types[made], span=item.span)
        if isinstance(init, c_ast.InitializerList):
            raise refuse(f"this initialiser of {base(name)}", "one assignment for each field", item.span)
        if init is not None:
            yield from self.copied(c_ast.Name(name, span=item.span), init, item.span)

    def copied(self, target: c_ast.Expr, value: Any, span: Span) -> Iterator[Any]:
        """Yield a copy of each number and pointer of a struct, or their settings to what a call returns."""
        kind = self.kind(target)
        assert isinstance(kind, c_ast.Struct), "structs are copied"
        returned = not isinstance(self.kind(value), c_ast.Struct)
        if (returned and not is_returned(value)) or copied_elements(kind) is None:
            raise refuse("this value of a struct", "its fields one by one", span)
        for path, of_field in members(kind, ()):
            for index in elements(of_field):
                to = self.element(target, path, index, span)
                of_value = self.node(value) if returned else self.element(value, path, index, span)
                made = (
                    stored(to, of_value, span) if self.is_shared(to) else c_ast.Assignment("", to, of_value, span=span)
                )
                yield c_ast.Evaluate(made, span=span)

    def element(self, e: Any, path: Path, index: tuple[int, ...], span: Span) -> c_ast.Expr:
        for name in path:
            e = c_ast.Field(e, name, False, span=span)
        for k in index:
            e = c_ast.Index(e, c_ast.Number(str(k)), span=span)
        found: c_ast.Expr = self.node(e)
        return found

    # -- expressions --------------------------------------------------------------------------------

    def node(self, node: Any) -> Any:
        """Return a statement or an expression with numbers for pointers."""
        match node:
            case c_ast.Block(items):
                return replace(node, items=self.block(items))
            case c_ast.Region(_, items):
                return replace(node, items=self.block(items))
            case c_ast.Declare() | c_ast.For():
                made = tuple(self.item(node))
                if len(made) != 1:
                    raise refuse("this declaration", "a statement of its own", node.span)
                return made[0]
            case c_ast.Name(name):
                return self.name(node, name)
            case c_ast.SizeOf(of=of) if of is not None and not isinstance(of, c_ast.Syntax):
                size = self.variable(f"size_of_{self.names.word(of)}", _ADDRESS, "memory", node.span)
                return c_ast.Name(size, span=node.span)
            case c_ast.Index() | c_ast.Field() | c_ast.Unary("*"):
                return self.lvalue(node)
            case c_ast.Unary("&", arg):
                return self.address(arg, node.span)
            case c_ast.Cast(c_ast.Pointer(to), arg):
                return self.cast(to, arg, node.span)
            case c_ast.Call(args=args) if any(map(self.is_pointer, args)):
                raise refuse(f"a call of {node.name} with a pointer", "its statements", node.span)
            case c_ast.Assignment() | c_ast.Unary("++" | "--"):
                return self.assignment(node)
            case c_ast.Binary("+" | "-" | "<" | "<=" | ">" | ">=" | "==" | "!=", lhs, rhs):
                self.agree(self.kind(lhs) if self.is_pointer(rhs) else None, rhs, node.span)
                if any(isinstance(_led_to(self.kind(e)), c_ast.ArrayOf) for e in (lhs, rhs)):
                    return self.rows(node)
        return c_ast.map_children(self.node, node)

    def rows(self, e: c_ast.Binary) -> c_ast.Expr:
        """Return a sum or a comparison of pointers to rows, which count the elements of the rows."""
        lhs, rhs = (self.kind(e.lhs), self.kind(e.rhs))
        if e.op == "-" and _led_to(lhs) is not None and _led_to(rhs) is not None:
            raise refuse("a difference of pointers to rows", "one of indices", e.span)
        if e.op not in ("+", "-"):
            return replace(e, lhs=self.node(e.lhs), rhs=self.node(e.rhs))
        if _led_to(lhs) is None:
            return replace(e, lhs=self.scaled(e.lhs, rhs, e.span), rhs=self.node(e.rhs))
        return replace(e, lhs=self.node(e.lhs), rhs=self.scaled(e.rhs, lhs, e.span))

    def scaled(self, index: Any, pointer: c_ast.Type | None, span: Span) -> c_ast.Expr:
        """Return an index of what a pointer leads to as a number of elements, of which a row has several."""
        found: c_ast.Expr = self.node(index)
        row = _led_to(pointer)
        while isinstance(row, c_ast.ArrayOf):
            extent = row.extent
            if extent is None or any(isinstance(n, c_ast.Name) and n.name in self.assigned for n in c_ast.walk(extent)):
                raise refuse("a pointer to rows", "the array and its indices", span)
            found = _ZERO if found == _ZERO else c_ast.Binary("*", found, self.node(extent), span=span)
            row = row.of
        return found

    def assignment(self, node: Any) -> Any:
        if isinstance(node, c_ast.Assignment) and not node.op and self.is_pointer(node.target):
            self.agree(self.kind(node.target), node.value, node.span)
        made = c_ast.map_children(self.node, self.row_step(node))
        target = made.target if isinstance(node, c_ast.Assignment) else made.arg
        if not self.is_shared(target):
            return made
        value = made.value if isinstance(node, c_ast.Assignment) else target
        op = node.op if isinstance(node, c_ast.Assignment) else ""
        return stored(target, c_ast.Binary(op, target, value, span=node.span) if op else value, node.span)

    def row_step(self, node: Any) -> Any:
        """Return a step of a pointer to rows as one of as many elements as a row has."""
        by: c_ast.Expr
        match node:
            case c_ast.Assignment(op, target, by) if op in ("+", "-"):
                pass
            case c_ast.Unary(sign, target):
                op, by = sign[0], c_ast.Number("1", span=node.span)
            case _:
                return node
        row = _led_to(self.kind(target))
        while isinstance(row, c_ast.ArrayOf):
            if row.extent is None:
                raise refuse("a pointer to rows", "the array and its indices", node.span)
            by = c_ast.Binary("*", by, row.extent, span=node.span)
            node = c_ast.Assignment(op, target, by, span=node.span)
            row = row.of
        return node

    def name(self, e: c_ast.Name, name: str) -> Any:
        kind = self.types.get(name)
        if name in self.stored_names and kind is not None:
            return self.in_memory(kind, self.pointer(e), e.span)
        if name in self.indexed or name == "NULL" or not isinstance(kind, c_ast.Pointer | c_ast.ArrayOf | c_ast.Struct):
            return c_ast.Number("0", span=e.span) if name == "NULL" else e
        if isinstance(kind, c_ast.Struct):
            raise refuse("a struct as a value", "its fields", e.span)
        return self.pointer(e)

    def cast(self, to: c_ast.Type, arg: Any, span: Span) -> Any:
        self.agree(c_ast.Pointer(to), arg, span)
        return self.node(arg)

    def agree(self, kind: c_ast.Type | None, value: Any, span: Span) -> None:
        """Note where a pointer is set to, or compared with, one to another type than void."""
        mine, own = (None if k is None else self.names.known(k) for k in map(_led_to, (kind, self.kind(value))))
        if isinstance(value, c_ast.Ternary):
            self.agree(kind, value.then, span)
            self.agree(kind, value.other, span)
        elif own is not None and mine is not None and own != mine and not self.fits(own, mine, value):
            self.shared.unite((*self.names.kinds(own), *self.names.kinds(mine)))

    def fits(self, own: c_ast.Type, to: c_ast.Type, value: Any) -> bool:
        """Tell whether a conversion is from or to void, and each pointer to void is one to only one type."""
        if own == _VOID:
            self.untyped.append((value.name if isinstance(value, c_ast.Name) else "", to))
        elif to == _VOID:
            self.passed.append(own)
        else:
            return False
        types = [t for _, t in self.untyped]
        if types and self.passed:
            together = [(*types, *self.passed)]
        else:
            names = dict.fromkeys(name for name, _ in self.untyped)
            together = [tuple(t for again, t in self.untyped if again == name) for name in names]
        for several in together:
            if any(t != several[0] for t in several):
                self.shared.unite(k for kind in several for k in self.names.kinds(kind))
        return True

    def address(self, e: Any, span: Span) -> Any:
        """Return the number that the address of an element or struct is."""
        match e:
            case c_ast.Unary("*", inner) if self.is_address(inner):
                return self.node(inner)
            case c_ast.Index(inner, index) if self.is_address(inner):
                return c_ast.Binary("+", self.node(inner), self.scaled(index, self.kind(inner), span), span=span)
            case c_ast.Name(name) if name in self.stored_names or isinstance(self.types.get(name), _Compound):
                return self.pointer(e)
        place = self.place(e)
        if place is None or not (place.path or place.overlapping):
            raise refuse("this address", "an array and an index", span)
        return self.inner_address(place, span)

    def inner_address(self, place: _Place, span: Span) -> c_ast.Expr:
        """Return the address of a part of a struct: a number of which nothing is known but the struct that it is in."""
        if place.address is None:
            self.shared.escape(place.local)
            return _ZERO
        self.shared.unite((*self.names.kinds(place.kind), "_".join((self.names.struct_name(place.tag), *place.path))))
        kind: c_ast.Type = _ADDRESS
        for extent in reversed(place.extents[:-1] if place.index else ()):
            kind = c_ast.ArrayOf(kind, extent)
        name = "_".join(("address_of", self.names.struct_name(place.tag), *place.path))
        array = self.variable(name, c_ast.Pointer(kind), "memory", span)
        found: c_ast.Expr = c_ast.Index(c_ast.Name(array, span=span), place.address, span=span)
        for index in place.index[:-1]:
            found = c_ast.Index(found, index, span=span)
        return c_ast.Binary("+", found, place.index[-1], span=span) if place.index else found

    def is_address(self, e: Any) -> bool:
        """Tell whether an expression is a pointer to elements of memory, and no array in a struct."""
        if isinstance(e, c_ast.Name) and e.name in self.indexed:
            return False
        match self.kind(e), e:
            case c_ast.Pointer(), _:
                return True
            case c_ast.ArrayOf(), c_ast.Name():
                return True
            case c_ast.ArrayOf(), c_ast.Index(inner) | c_ast.Unary("*", inner):
                return self.is_address(inner)
        return False

    def lvalue(self, e: Any) -> Any:
        place = self.place(e)
        if place is not None:
            return self.stored(place, e)
        of = self.kind(e)
        match e:
            case c_ast.Index(inner, index):
                if root(e) in self.indexed:
                    return c_ast.map_children(self.node, e)
            case c_ast.Unary("*", inner):
                index = _ZERO
                if isinstance(inner, c_ast.Name) and inner.name in self.indexed:
                    return e
        row = self.row(inner)
        if row is not None and isinstance(of, c_ast.Basic):
            return c_ast.Index(row, self.node(index), span=e.span)
        if not self.is_address(inner) or of is None:
            raise refuse("this element", "an array and an index", e.span)
        at = self.node(inner)
        if isinstance(of, c_ast.ArrayOf):
            found = self.scaled(index, self.kind(inner), e.span)
            return at if found == _ZERO else c_ast.Binary("+", at, found, span=e.span)
        at = at if index == _ZERO else c_ast.Binary("+", at, self.node(index), span=e.span)
        return self.in_memory(of, at, e.span)

    def in_memory(self, kind: c_ast.Type, at: c_ast.Expr, span: Span) -> c_ast.Expr:
        """Return the number or pointer at an address."""
        if (cell := self.cell((self.names.memory_kind(kind),), span)) is not None:
            return cell
        array = self.variable(self.names.memory_name(kind, span), c_ast.Pointer(_stored(kind)), "memory", span)
        return c_ast.Index(c_ast.Name(array, span=span), at, span=span)

    def row(self, e: Any) -> c_ast.Expr | None:
        """Return the row of numbers to which a field points that is never set, None for other expressions."""
        if not isinstance(e, c_ast.Field) or not isinstance(_led_to(self.kind(e)), c_ast.Basic):
            return None
        place = self.place(e)
        kind = self.kind(e)
        if place is None or not isinstance(kind, c_ast.Pointer) or place.local or place.index or place.overlapping:
            return None
        if (self.tag_of(e.base, e.arrow), e.name) in self.valued or place.tag in self.whole_set or kind.to == _VOID:
            return None
        assert place.address is not None, "it is in memory"
        if self.cell(self.names.parts(place.tag, place.path), e.span) is not None:
            return None
        if root_variable(e) in self.several_names:
            return None
        name = f"{'_'.join((self.names.struct_name(place.tag), *place.path))}_rows"
        array = self.variable(name, c_ast.Pointer(c_ast.Pointer(kind.to)), "memory", e.span)
        return c_ast.Index(c_ast.Name(array, span=e.span), place.address, span=e.span)

    def place(self, e: Any) -> _Place | None:
        """Return where a struct or a part of one is, None for what is no part of a struct."""
        match e:
            case c_ast.Name(name) if isinstance(self.types.get(name), _Compound):
                kind = self.types[name]
                assert isinstance(kind, _Compound), "it is one"
                if name in self.locals:
                    return _Place(kind, kind.tag, None, name)
                self.whole.add(kind.tag)
                return _Place(kind, kind.tag, self.pointer(e))
            case c_ast.Field(inner, name, arrow):
                at = self.place(c_ast.Unary("*", inner, span=inner.span) if arrow else inner)
                if at is not None and (at.overlapping or isinstance(at.kind, c_ast.Overlapping)):
                    return self.overlapping(at, self.kind(e), e.span)
                found = field_of(at.kind, name) if at is not None and isinstance(at.kind, c_ast.Struct) else None
                if at is None or found is None:
                    raise refuse("this field", "a variable", e.span)
                if at.path and isinstance(at.kind, c_ast.Struct) and not at.local:
                    self.embedded.setdefault(at.kind.tag, set()).add(
                        "_".join((self.names.struct_name(at.tag), *at.path))
                    )
                return replace(at, kind=self.names.known(found[0]), path=(*at.path, name))
            case c_ast.Unary("*", c_ast.Unary("&", inner)):
                return self.place(inner)
            case c_ast.Index(inner, index) if self.is_address(inner):
                return self.struct_at(e, inner, index)
            case c_ast.Unary("*", inner) if self.is_address(inner):
                return self.struct_at(e, inner, _ZERO)
            case c_ast.Index(c_ast.Field() | c_ast.Index() as inner, index):
                at = self.place(inner)
                if at is not None and at.overlapping and isinstance(at.kind, c_ast.ArrayOf):
                    if any(isinstance(n, c_ast.Index | c_ast.Field | c_ast.Unary) for n in c_ast.walk(index)):
                        raise refuse("this subscript of a union", "a variable", e.span)
                    return replace(at, kind=self.names.known(at.kind.of))
                if at is not None and isinstance(at.kind, c_ast.ArrayOf):
                    return replace(at, kind=self.names.known(at.kind.of), index=(*at.index, self.node(index)),
                                   extents=(*at.extents, at.kind.extent))  # fmt: skip
        return None

    def overlapping(self, at: _Place, kind: c_ast.Type | None, span: Span) -> _Place:
        """Return the union as the place of each of its fields, of which ``kind`` is the type of one."""
        if kind is None:
            raise refuse("this field", "a variable", span)
        if isinstance(at.kind, c_ast.Overlapping) and at.kind.what == "a union":
            led_to = [self.names.known(of.to) for _, of in at.kind.fields if isinstance(of, c_ast.Pointer)]
            led_to = [of for of in led_to if of != _VOID]
            if any(of != led_to[0] for of in led_to):
                self.shared.unite(k for of in led_to for k in self.names.kinds(of))
        return replace(at, kind=kind, overlapping=True)

    def struct_at(self, e: Any, pointer: Any, index: c_ast.Expr) -> _Place | None:
        kind = self.kind(e)
        if not isinstance(kind, _Compound):
            return None
        self.whole.add(kind.tag)
        first = self.node(pointer)
        at = first if index == _ZERO else c_ast.Binary("+", first, self.node(index), span=e.span)
        return _Place(kind, kind.tag, at)

    def stored(self, at: _Place, e: Any) -> Any:
        """Return the number or pointer at a place, for an array the address of its first element."""
        if isinstance(at.kind, c_ast.ArrayOf) and at.path:
            while isinstance(at.kind, c_ast.ArrayOf):
                at = replace(at, kind=self.names.known(at.kind.of), index=(*at.index, _ZERO),
                             extents=(*at.extents, at.kind.extent))  # fmt: skip
            return self.inner_address(at, e.span)
        if not isinstance(at.kind, c_ast.Basic | c_ast.Pointer) or at.kind == c_ast.Basic("void"):
            raise refuse("an array or a struct as a value", "its elements", e.span)
        kind: c_ast.Type = _CELL if at.overlapping else _stored(at.kind)
        for extent in reversed(at.extents):
            kind = c_ast.ArrayOf(kind, extent)
        if at.address is None:
            found: Any = c_ast.Name(self.part(at.local, at.path, kind), span=e.span)
        elif (cell := self.cell(self.names.parts(at.tag, at.path), e.span)) is not None:
            return cell
        else:
            name = "_".join((self.names.struct_name(at.tag), *at.path, *(["any"] if at.overlapping else [])))
            array = self.variable(name, c_ast.Pointer(kind), "memory", e.span)
            found = c_ast.Index(c_ast.Name(array, span=e.span), at.address, span=e.span)
        for index in (*at.index, *([_ZERO] if at.overlapping else [])):
            found = c_ast.Index(found, index, span=e.span)
        return found


def _stored(kind: c_ast.Type) -> c_ast.Type:
    """Return the type of what holds a value of this type."""
    match kind:
        case c_ast.Pointer():
            return _ADDRESS
        case c_ast.ArrayOf(of, extent):
            return c_ast.ArrayOf(_stored(of), extent)
    return kind


def _led_to(kind: c_ast.Type | None) -> c_ast.Type | None:
    match kind:
        case c_ast.Pointer(to) | c_ast.ArrayOf(to):
            return to
    return None
