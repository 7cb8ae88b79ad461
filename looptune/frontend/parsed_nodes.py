"""What is asked of the nodes that pycparser makes, and of the functions that are read from them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pycparser import c_ast
from pycparser.c_generator import CGenerator

from looptune.core.errors import ParseError
from looptune.frontend import c_ast as s
from looptune.frontend.gnu_syntax import LABEL
from looptune.frontend.math_functions import is_pure

if TYPE_CHECKING:
    from looptune.core.source import Span
    from looptune.frontend.pragma import Pragma


def is_braceless(node: Any) -> bool:
    """Return whether a compound statement is the one that pycparser makes of a statement and the pragmas before it."""
    items = node.block_items or []
    return bool(items) and isinstance(items[0], c_ast.Pragma) and items[0].coord == node.coord


def labelled(node: Any) -> list[Any]:
    """Return the statement after a label, and the pragmas before it, as those of the block around the label."""
    return list(node.block_items) if isinstance(node, c_ast.Compound) and is_braceless(node) else [node]


def goto_targets(node: Any) -> Iterator[str]:
    """Yield the labels that a ``goto`` names, and those whose address is taken."""
    match node:
        case c_ast.Goto():
            yield node.name
        case c_ast.FuncCall(name=c_ast.ID(name=name)) if name == LABEL:
            yield node.args.exprs[0].name
    for _, child in node.children():
        yield from goto_targets(child)


def variables_within(node: Any) -> Iterator[Any]:
    """Yield the expressions that name variables in something that is not read further."""
    for _, child in node.children():
        match child:
            case (
                c_ast.ID()
                | c_ast.Assignment()
                | c_ast.UnaryOp()
                | c_ast.FuncCall()
                | c_ast.ArrayRef()
                | c_ast.StructRef()
            ):
                yield child
            case _:
                yield from variables_within(child)


def as_written(node: Any) -> tuple[str, str]:
    """Return a declaration as C has it.

    As that of a parameter, an array being a pointer, and with its initial value.
    """
    if not isinstance(node, c_ast.Decl):
        return "", ""
    whole, param = copy(node), copy(node)
    whole.storage, param.storage, param.init = [], [], None
    if isinstance(node.type, c_ast.ArrayDecl):
        param.type = c_ast.PtrDecl([q for q in node.type.dim_quals or () if q != "static"], node.type.type)
    return CGenerator().visit(param), CGenerator().visit(whole)


def is_repeatable(e: s.Expr | s.InitializerList) -> bool:
    """Tell whether an expression has the same value when it is computed twice, and no effects."""
    return not any(
        isinstance(n, s.Assignment | s.Unsupported)
        or (isinstance(n, s.Unary) and n.op in ("++", "--"))
        or (isinstance(n, s.Call) and not is_pure(n.name))
        for n in s.walk(e)
    )


def operator_span(span: Span, op: str) -> Span:
    """Return the span with the operator in front of it, where that is the text that stands there."""
    before = span.text[: span.col - 1].rstrip(" (")
    if not before.endswith(op):
        return span
    col = len(before) - len(op) + 1
    return replace(span, col=col, width=span.width + span.col - col)


def overload_errors(functions: Sequence[s.Function]) -> dict[str, ParseError]:
    """Return why no definition of a name is read that has several, which C++ tells apart by more than the name."""
    names = {f.name for f in functions}
    return {
        name: ParseError(f"{name} is defined {len(mine)} times, which C++ tells apart and C does not: give each a name",
                         mine[1].span)
        for name in sorted(names) if len(mine := [f for f in functions if f.name == name]) > 1
    }  # fmt: skip


def merged_functions(functions: list[s.Function]) -> tuple[s.Function, ...]:
    """Return the definitions alone, each with the pragmas of its prototypes too."""
    marks: dict[str, tuple[Pragma, ...]] = {}
    for f in functions:
        marks[f.name] = marks.get(f.name, ()) + f.pragmas
    return tuple(replace(f, pragmas=marks[f.name]) for f in functions if f.close.line)
