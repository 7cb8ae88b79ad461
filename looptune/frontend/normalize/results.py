"""``return e;`` of the function that is the codelet: its value becomes the only element of an array.

double dot(…) { …; return s; }      void dot(…, double result[1]) { …; result[0] = s; return; }
"""

from __future__ import annotations

from typing import Any

from looptune.core.errors import UnsupportedError
from looptune.frontend import c_ast
from looptune.frontend.name_resolution import base
from looptune.frontend.normalize.struct_layout import members

RESULT = "result"


def result_name(function: c_ast.Function, taken: frozenset[str]) -> str:
    """Return the name of the array that holds what the function returns, or "" if it returns nothing or one constant.

    ``taken`` are the names of the program. Raises UnsupportedError for a result that is no number.
    """
    returns = [n for n in c_ast.walk(function.body) if isinstance(n, c_ast.Return) and n.value is not None]
    constants = {n.value.text for n in returns if isinstance(n.value, c_ast.Number)}
    if not returns or (len(constants) == 1 and all(isinstance(n.value, c_ast.Number) for n in returns)):
        return ""
    match function.result:
        case c_ast.Basic() | c_ast.Struct() as kind if returned_dtype(kind):
            own = frozenset(
                base(n.name) for n in c_ast.walk(function.body) if isinstance(n, c_ast.Name | c_ast.Declare)
            )
            params = frozenset(p.name for p in function.params)
            return RESULT if RESULT not in taken | own | params else f"{function.name}_{RESULT}"
        case _:
            message = f"{function.name} returns a value that is not a number: make the function void"
            raise UnsupportedError(message, returns[0].span)


def returned_dtype(kind: c_ast.Type) -> str:
    """Return the type of a number, or the common type of all numbers in a struct, that is returned; else ""."""
    found = {of.dtype if isinstance(of, c_ast.Basic) else "" for of in (leaf for _, leaf in members(kind, ()))}
    dtype = next(iter(found)) if len(found) == 1 else ""
    return "" if dtype == "void" else dtype


def store_result(items: tuple[c_ast.Item, ...], result: str) -> tuple[c_ast.Item, ...]:
    """Return the statements with each value that is returned stored in the array."""

    def block(items: tuple[c_ast.Item, ...]) -> tuple[c_ast.Item, ...]:
        return tuple(new for item in items for new in rule(item))

    def rule(item: Any) -> tuple[Any, ...]:
        match item:
            case c_ast.Return(value) if value is not None:
                element = c_ast.Index(c_ast.Name(result, span=item.span), c_ast.Number("0"), span=item.span)
                stored = c_ast.Evaluate(c_ast.Assignment("", element, value, span=item.span), span=item.span)
                return (stored, c_ast.Return(None, span=item.span))
            case c_ast.Block(inner):
                return (c_ast.Block(block(inner), span=item.span),)
            case c_ast.If() | c_ast.For() | c_ast.While() | c_ast.Switch():
                return (
                    c_ast.map_children(lambda part: rule(part)[0] if isinstance(part, c_ast.Block) else part, item),
                )
            case _:
                return (item,)

    return block(items)
