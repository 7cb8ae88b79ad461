"""Parts of sums as they were before ``lower/passes/split_reduction``: each accumulates where its sum is, and nothing adds them up.

for p: for k of p: part[p][i][j] += e    ==>    for p: for k of p: C[i][j] += e
s = C[i][j]; for p: s += part[p][i][j]; C[i][j] = s    ==>    what stands before it, and what stands after it
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from looptune.ir.def_use import names
from looptune.ir.nodes import Assign, Const, Load, Loop, Node, Reduced, Stmt
from looptune.ir.rewrite import map_blocks, rewrite, rewrite_stmts, walk_stmts


def whole(body: tuple[Stmt, ...], parts: Mapping[str, Reduced]) -> tuple[Stmt, ...]:
    """The statements that make the parts, each accumulating into its sum's own place."""

    def begins(n: Stmt) -> tuple[Stmt, ...] | None:
        match n:
            case Assign(Load(array), Const()) if array in parts and not n.name:
                return ()
        return None

    def rule(n: Node) -> Node | None:
        match n:
            case Load(array, (_, *index)) if array in parts:
                target = parts[array].target
                return replace(target, index=tuple(index)) if isinstance(target, Load) and not target.index else target
        return None

    def empty(n: Stmt) -> tuple[Stmt, ...] | None:
        return () if isinstance(n, Loop) and not n.body else begins(n)

    placed: tuple[Stmt, ...] = rewrite(rule, rewrite_stmts(empty, body))
    return placed


def before(body: tuple[Stmt, ...], parts: Mapping[str, Reduced]) -> tuple[Stmt, ...]:
    """What runs before the parts are added up."""
    return _half(body, parts, later=False)


def after(body: tuple[Stmt, ...], parts: Mapping[str, Reduced]) -> tuple[Stmt, ...]:
    return _half(body, parts, later=True)


def _half(body: tuple[Stmt, ...], parts: Mapping[str, Reduced], *, later: bool) -> tuple[Stmt, ...]:
    at = [k for k, s in enumerate(body) if names((s,)) & parts.keys()]
    if not at:
        return body
    around = [map_blocks(lambda b: _half(b, parts, later=later), body[at[0]])] if len(at) == 1 else []
    kept = tuple(s for s in around if any(isinstance(n, Assign) for n in walk_stmts(s)))
    return (*kept, *body[at[-1] + 1 :]) if later else (*body[: at[0]], *kept)
