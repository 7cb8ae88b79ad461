"""The meaning of each name of a codelet while it is lowered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from looptune.core.errors import ParseError, UnsupportedError
from looptune.frontend import c_ast
from looptune.frontend.gnu_syntax import REFUSED
from looptune.frontend.name_resolution import base
from looptune.ir.nodes import Array, Expr, Local, Scalar

if TYPE_CHECKING:
    from looptune.core.source import Span


def refuse(what: str, instead: str, span: Span) -> UnsupportedError:
    """Return the error for a construct that is not accepted, with the alternative."""
    message = f"{what} is not accepted in a codelet"
    return UnsupportedError(f"{message}: write {instead} instead" if instead else message, span)


def check_gnu(node: Any) -> None:
    """Raise UnsupportedError at assembly or a computed ``goto``."""
    for n in c_ast.walk(node):
        if isinstance(n, c_ast.Call) and n.name in REFUSED:
            raise UnsupportedError(REFUSED[n.name], n.span)


def refuse_field(span: Span) -> UnsupportedError:
    """Return the error for a field of a struct for which no pass has found an array or a scalar."""
    return refuse("a struct", "one array or scalar parameter per field", span)


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the front end: whether float constants are float, and the macros that are defined."""

    float_literals: bool = False
    macros: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Storage:
    """An array with ``rank`` indices.

    A ``starred`` one is a pointer that the text uses only as ``*x``; one with ``rows`` consists of pointers to rows.
    """

    name: str
    dtype: str
    rank: int
    starred: bool = False
    rows: bool = False


@dataclass(slots=True)
class Scope:
    """The names of a codelet, filled while it is lowered.

    ``bound`` has names that stand for an expression: loop variables, variables assigned once, parameters of a function
    that is inlined; ``fixed``: scalars that never change; ``counters``: the values of unsigned loop variables in terms
    of their counters; ``sizes``: the number of operations of an expression, by its id.
    """

    file: c_ast.File
    options: Options
    scalars: dict[str, str] = field(default_factory=dict)
    arrays: dict[str, Storage] = field(default_factory=dict)
    bound: dict[str, Expr] = field(default_factory=dict)
    fixed: set[str] = field(default_factory=set)
    locals: dict[str, Local] = field(default_factory=dict)
    globals_used: dict[str, Array | Scalar] = field(default_factory=dict)
    tables: dict[str, c_ast.Declare] = field(default_factory=dict)
    inlining: tuple[str, ...] = ()
    counters: set[Expr] = field(default_factory=set)
    sizes: dict[int, tuple[Expr, int]] = field(default_factory=dict)

    def inner(self, function: str) -> Scope:
        """Return the scope of an inlined function, in which nothing of the caller is visible."""
        return Scope(
            self.file, self.options, globals_used=self.globals_used, tables=self.tables, fixed=self.fixed,
            locals=self.locals, inlining=(*self.inlining, function), counters=self.counters, sizes=self.sizes,
        )  # fmt: skip

    def variable(self, name: str) -> c_ast.Declare | None:
        """Return the declaration of ``name`` at file scope, preferably one with an initialiser."""
        found = [d for d in self.file.globals if d.name == name]
        return next((d for d in found if d.init is not None), found[0] if found else None)

    def function(self, name: str) -> c_ast.Function | None:
        return next((f for f in self.file.functions if f.name == name), None)

    def undeclared(self, name: c_ast.Name) -> ParseError:
        text = "" if name.macro is None else self.options.macros.get(name.macro, "")
        if name.macro is not None and text.strip() == name.name:
            return ParseError(f"{name.macro} is defined as {text}, which is neither a number nor a variable", name.span)
        hint = f": give its value with -D {name.name}=…" if name.name.isupper() else ""
        return ParseError(f"{base(name.name)} is not declared{hint}", name.span)


def layout(kind: c_ast.Type, name: str, span: Span, *, rows: bool = False) -> tuple[str, tuple[c_ast.Expr | None, ...]]:
    """Return the element type and the extents of a variable, outermost first.

    The extent of a pointer is None; scalars have no extents. ``rows``: an array may consist of pointers to its rows.
    Raises UnsupportedError for types without a layout.
    """
    match kind:
        case c_ast.Basic("void"):
            raise refuse(f"void {name}", "a number type", span)
        case c_ast.Basic(dtype):
            return dtype, ()
        case c_ast.Pointer(to):
            dtype, rest = layout(to, name, span, rows=rows)
            extent: c_ast.Expr | None = None
        case c_ast.ArrayOf(of, extent):
            dtype, rest = layout(of, name, span, rows=rows)
        case c_ast.Struct() | c_ast.UnsupportedType("a struct"):
            raise refuse(f"a struct ({name})", "one parameter per field", span)
        case c_ast.TypeOf():
            raise refuse(f"{name}, whose type is that of an expression,", "the name of the type", span)
        case c_ast.UnsupportedType(what) if what.startswith("struct "):
            raise refuse(f"{name}, of {what}, of which no fields are declared,", "the fields of the struct", span)
        case c_ast.UnsupportedType(what):
            shown = f"{name}, of type {what}," if what.isidentifier() else f"{what} ({name})"
            raise refuse(shown, "float, double or an integer type", span)
    if rest and rest[0] is None and not rows:
        raise refuse(f"{name}, an array of pointers,", f"an array with all its extents, such as {name}[n][m],", span)
    return dtype, (extent, *rest)
