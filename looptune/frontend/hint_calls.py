"""Calls that compute nothing: assertions, and hints for the cache.

    assert(i < n);  __builtin_prefetch(&a[i + 8]);      ==>     nothing

An assertion is left out as under ``NDEBUG``, unless what it asserts has an effect.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from looptune.frontend import c_ast

_HINTS = frozenset(("assert", "__builtin_prefetch", "_mm_prefetch", "__builtin_unreachable"))


def without_hints(body: c_ast.Block, own: Collection[str]) -> c_ast.Block:
    """Return the body of a function without such calls; ``own`` are the functions that the file defines itself."""
    hints = _HINTS - {*own}

    def rule(node: Any) -> Any:
        node = c_ast.map_children(rule, node)
        if not isinstance(node, c_ast.Block):
            return node
        kept = tuple(item for item in node.items if not _is_hint(item, hints))
        return node if len(kept) == len(node.items) else c_ast.Block(kept, span=node.span)

    made: c_ast.Block = rule(body)
    return made


def _is_hint(item: Any, hints: Collection[str]) -> bool:
    match item:
        case c_ast.Evaluate(c_ast.Call(name, args)) if name in hints:
            return not any(_has_effect(n) for arg in args for n in c_ast.walk(arg))
    return False


def _has_effect(node: Any) -> bool:
    return isinstance(node, c_ast.Assignment | c_ast.Call | c_ast.Unsupported) or (
        isinstance(node, c_ast.Unary) and node.op in ("++", "--")
    )
