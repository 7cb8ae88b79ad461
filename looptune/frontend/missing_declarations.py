"""Declare what headers that are not there would declare, as far as the text shows what it is: for analysis only.

    for (i = 0; i < NITER; i++) u[i] *= DT;      int NITER, DT;
    MPI_Request r[2]; MPI_Wait(&r[0]);           long r[2];
    pb_data *d; d->x[i] = d->n;                  struct { double *x; double n; } *d;

A name that nothing declares is an integer, and an array where it has an index: what is said of a loop holds for all of
its values. A variable of a type that nothing declares is a struct where the text names its fields, and a number of
floating point where it is computed with, but not as a subscript; else an integer (a handle). A ``long double`` is a
double. A function is a number
where it is a value. A pointer to void is one to the only type to which it is converted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from looptune.frontend import c_ast
from looptune.frontend.lower_expressions import HEADER_CONSTANTS
from looptune.frontend.normalize.struct_layout import leaf_type, lvalue_type

_KNOWN = frozenset({"FILE", "va_list", "__bf16", "__real__", "__imag__", "__func__", "__FUNCTION__", "stdin", "stdout",
                    "stderr", *HEADER_CONSTANTS})  # fmt: skip
_WHOLE = c_ast.Basic("int64")
_REAL = c_ast.Basic("float64")
_VOID = c_ast.Pointer(c_ast.Basic("void"))
_FUNCTION = "a function pointer"
_WIDE = "long double"
_INTEGER_OPERATORS = ("%", "&", "|", "^", "<<", ">>")
_ARITHMETIC = ("+", "-", "*", "/")


def with_missing_declarations(file: c_ast.File) -> c_ast.File:
    """Return the file with declarations of the names and types that it uses and nothing declares."""
    file = _with_types(file)
    file = replace(file, functions=tuple(map(_with_pointers_to_void, file.functions)))
    return replace(file, globals=(*file.globals, *_names(file)))


# -- names ------------------------------------------------------------------------------------------


def _names(file: c_ast.File) -> Iterator[c_ast.Declare]:
    known = {d.name for d in file.globals} | _KNOWN
    found: dict[str, tuple[c_ast.Type, c_ast.Name]] = {}
    for d in file.globals:
        _used(d, known, found, _Use())
    for function in file.functions:
        own = {n.name for n in c_ast.walk(function.body) if isinstance(n, c_ast.Declare)}
        own |= {p.name for p in function.params}
        for node in (*function.params, function.body):
            _used(node, known | own, found, _Use())
    yield from (c_ast.Declare(name, kind, span=at.span) for name, (kind, at) in found.items())


@dataclass(frozen=True, slots=True)
class _Use:
    """How an expression is used: ``rank`` indices follow it; ``is_whole``: only an integer can stand there.

    ``is_term``: it is computed with; ``is_other``: it is a struct, or the address of it is taken.
    """

    rank: int = 0
    is_whole: bool = False
    is_term: bool = False
    is_other: bool = False

    def type(self, number: c_ast.Type) -> c_ast.Type:
        """Return the type of what is used so, where it is or leads to a number."""
        kind = _WHOLE if self.is_whole and self.rank else number
        for _ in range(self.rank):
            kind = c_ast.Pointer(kind)
        return kind


def _parts(node: Any, use: _Use) -> Iterator[tuple[Any, _Use]]:
    """Yield the parts of a node, and how each is used where the node is used so."""
    match node:
        case c_ast.Index(base, index):
            yield base, replace(use, rank=use.rank + 1)
            yield index, _Use(is_whole=True)
        case c_ast.Unary("*", arg):
            yield arg, replace(use, rank=use.rank + 1)
        case c_ast.Unary("&", arg) | c_ast.Field(arg, _, False):
            yield arg, _Use(is_other=True)
        case c_ast.Field(arg):
            yield arg, _Use(rank=1, is_other=True)
        case c_ast.Binary("+" | "-", lhs, rhs) if use.rank:
            yield lhs, use
            yield rhs, _Use(is_whole=True)
        case c_ast.Binary(op):
            inner = _Use(is_whole=use.is_whole or op in _INTEGER_OPERATORS, is_term=op in _ARITHMETIC)
            yield from ((part, inner) for part in c_ast.children(node))
        case c_ast.Assignment(op) if op:
            inner = _Use(is_whole=op in _INTEGER_OPERATORS, is_term=op in _ARITHMETIC)
            yield from ((part, inner) for part in c_ast.children(node))
        case c_ast.Unary(op):
            yield node.arg, _Use(is_whole=use.is_whole or op == "~")
        case c_ast.For(cond=cond) | c_ast.Switch(cond):
            yield from ((part, _Use(is_whole=part is cond)) for part in c_ast.children(node))
        case _:
            yield from ((part, _Use()) for part in c_ast.children(node))


def _used(node: Any, known: Iterable[str], found: dict[str, tuple[c_ast.Type, c_ast.Name]], use: _Use) -> None:
    """Add the names that nothing declares, with their types."""
    if isinstance(node, c_ast.Name) and node.name not in known and "#" not in node.name:
        kind = use.type(_REAL if use.rank else c_ast.Basic("int32"))
        before = found.get(node.name)
        if not use.is_other and (before is None or isinstance(kind, c_ast.Pointer)):
            found[node.name] = (kind, node)
    for part, how in _parts(node, use):
        _used(part, known, found, how)


def _with_pointers_to_void(function: c_ast.Function) -> c_ast.Function:
    """Return the function with the types of pointers to void that are converted to one type alone."""
    declared = (*function.params, *(n for n in c_ast.walk(function.body) if isinstance(n, c_ast.Declare)))
    types = {d.name: d.type for d in declared}
    void = {d.name for d in declared if d.type == _VOID}
    found: dict[str, set[c_ast.Type]] = {}
    for node in c_ast.walk(function.body) if void else ():
        kind: c_ast.Type | None
        match node:
            case c_ast.Cast(kind, value) | c_ast.Declare(_, kind, value):
                pass
            case c_ast.Assignment("", target, value):
                kind = lvalue_type(target, types)
            case _:
                continue
        if isinstance(value, c_ast.Name) and value.name in void and isinstance(kind, c_ast.Pointer):
            found.setdefault(value.name, set()).add(kind)
    one = {name: next(iter(kinds)) for name, kinds in found.items() if len(kinds) == 1 and _VOID not in kinds}

    def rule(node: Any) -> Any:
        if isinstance(node, c_ast.Declare) and node.name in one and node.type == _VOID:
            node = replace(node, type=one[node.name])
        return c_ast.map_children(rule, node)

    return replace(function, params=tuple(map(rule, function.params)), body=rule(function.body)) if one else function


# -- types ------------------------------------------------------------------------------------------


def _opaque(kinds: Iterable[c_ast.Type], seen: set[int]) -> Iterator[str]:
    """Yield the names of the types that nothing declares, those of fields included."""
    for kind in map(leaf_type, kinds):
        match kind:
            case c_ast.UnsupportedType(what) if (what.isidentifier() and what not in _KNOWN) or what in (
                _FUNCTION,
                _WIDE,
            ):
                yield what
            case c_ast.Struct(fields=fields) | c_ast.Overlapping(fields=fields) if id(kind) not in seen:
                seen.add(id(kind))
                yield from _opaque((of for _, of in fields), seen)


def _with_types(file: c_ast.File) -> c_ast.File:
    opaque = set(_opaque((d.type for d in _declared(file)), set()))
    if not opaque:
        return file
    fields = _Fields(opaque)
    at_file = {d.name: d.type for d in file.globals}
    for function in file.functions:
        declared = (*function.params, *(n for n in c_ast.walk(function.body) if isinstance(n, c_ast.Declare)))
        fields.types = at_file | {d.name: d.type for d in declared}
        fields.read(function.body, _Use())
    return fields.put(file)


def _declared(file: c_ast.File) -> Iterator[c_ast.Declare]:
    yield from file.globals
    for function in file.functions:
        yield from function.params
        yield from (n for n in c_ast.walk(function.body) if isinstance(n, c_ast.Declare))


@dataclass(slots=True)
class _Fields:
    """The fields that the text names of each type that nothing declares, with their types."""

    opaque: set[str]
    types: Mapping[str, c_ast.Type] = field(default_factory=dict)
    found: dict[str, dict[str, c_ast.Type]] = field(default_factory=dict)
    whole: set[str] = field(default_factory=set)
    terms: set[str] = field(default_factory=set)
    pointers: set[str] = field(default_factory=set)
    """The types of integers, of numbers that are computed with, and of pointers to structs."""

    def read(self, node: Any, use: _Use) -> None:
        match node:
            case c_ast.Field(base, name, arrow):
                self.note(base, name, arrow, use)
            case c_ast.Declare(_, kind, init) if isinstance(kind, c_ast.Pointer):
                self.note_pointer(init, kind)
            case c_ast.Assignment("", target, value):
                self.note_pointer(value, lvalue_type(target, self.types))
        match lvalue_type(node, self.types):
            case c_ast.UnsupportedType(what) if what in self.opaque and not use.is_other:
                (self.whole if use.is_whole else self.terms if use.is_term else set()).add(what)
        for part, how in _parts(node, use):
            self.read(part, how)

    def owner(self, base: c_ast.Expr, arrow: bool) -> str:
        kind = lvalue_type(base, self.types)
        if arrow and isinstance(kind, c_ast.UnsupportedType) and kind.what in self.opaque:
            self.pointers.add(kind.what)
            return kind.what
        if arrow:
            kind = kind.to if isinstance(kind, c_ast.Pointer) else kind.of if isinstance(kind, c_ast.ArrayOf) else None
        return kind.what if isinstance(kind, c_ast.UnsupportedType) and kind.what in self.opaque else ""

    def note(self, base: c_ast.Expr, name: str, arrow: bool, use: _Use) -> None:
        owner = self.owner(base, arrow)
        known = self.found.setdefault(owner, {})
        kind = use.type(_WHOLE if use.is_whole else _REAL)
        before = known.get(name)
        if use.is_other:
            # a struct in a struct of which no field is declared: it stays unknown
            kind = c_ast.UnsupportedType("a field of an unknown type")
        if before is None or isinstance(kind, c_ast.Pointer | c_ast.UnsupportedType) or use.is_whole:
            known[name] = before if isinstance(before, c_ast.Pointer) and not isinstance(kind, c_ast.Pointer) else kind

    def note_pointer(self, value: Any, kind: c_ast.Type | None) -> None:
        while isinstance(value, c_ast.Cast):
            value = value.arg
        if isinstance(kind, c_ast.Pointer) and isinstance(value, c_ast.Field):
            owner = self.owner(value.base, value.arrow)
            self.found.setdefault(owner, {})[value.name] = kind

    def type(self, name: str) -> c_ast.Type:
        """Return the type that a name is taken for."""
        if name == _WIDE:
            return _REAL
        if not self.found.get(name):
            return _REAL if name in self.terms - self.whole else _WHOLE
        struct = c_ast.Struct(f"struct {name}", tuple(self.found[name].items()))
        return c_ast.Pointer(struct) if name in self.pointers else struct

    def put(self, file: c_ast.File) -> c_ast.File:
        """Return the file with these structs, and numbers for the other types."""
        put = _Replaced({name: self.type(name) for name in self.opaque})

        def rule(node: Any) -> Any:
            match node:
                case c_ast.Declare(_, kind):
                    node = replace(node, type=put.of(kind))
                case c_ast.Cast(kind):
                    node = replace(node, type=put.of(kind))
            return c_ast.map_children(rule, node)

        functions = tuple(
            replace(f, params=tuple(map(rule, f.params)), body=rule(f.body), result=put.of(f.result))
            for f in file.functions
        )
        results = {name: put.of(kind) for name, kind in file.results.items()}
        return replace(file, functions=functions, globals=tuple(map(rule, file.globals)), results=results)


@dataclass(slots=True)
class _Replaced:
    """Types with others in place of those that nothing declares; ``structs`` are those of each struct so far."""

    made: Mapping[str, c_ast.Type]
    structs: dict[int, tuple[c_ast.Type, c_ast.Type]] = field(default_factory=dict)

    def of(self, kind: c_ast.Type) -> c_ast.Type:
        match kind:
            case c_ast.Pointer(c_ast.UnsupportedType(what)) if what == _FUNCTION:
                return _WHOLE
            case c_ast.Pointer(to):
                return c_ast.Pointer(self.of(to))
            case c_ast.ArrayOf(of, extent):
                return c_ast.ArrayOf(self.of(of), extent)
            case c_ast.Overlapping(fields=fields):
                return replace(kind, fields=tuple((name, self.of(inner)) for name, inner in fields))
            case c_ast.UnsupportedType(what):
                return self.made.get(what, kind)
            case c_ast.Struct(tag, fields):
                if id(kind) not in self.structs:
                    new = c_ast.Struct(tag, tuple((name, self.of(inner)) for name, inner in fields))
                    self.structs[id(kind)] = (kind, new)
                return self.structs[id(kind)][1]
        return kind
