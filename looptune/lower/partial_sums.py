"""The statements of a plan around its partial sums, for its validation: the sums stand for them, and nothing adds them.

for p: for k of p: part[p][i][j] += e    ==>    for p: for k of p: C[i][j] += e
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from looptune.ir.def_use import referenced_names, target_name
from looptune.ir.nodes import Assign, Const, Load, Loop, Node, Reduction, Stmt, Var
from looptune.ir.rewrite import map_blocks, rewrite, rewrite_stmts, walk_stmts


@dataclass(frozen=True, slots=True)
class InterleavedCopies(Reduction):
    """The reduction of an array of which each part has a copy, whose elements lie beside those of the other parts.

    The part is the last subscript of the array of copies; in all other arrays of partial sums it is the first.
    """


def inline_partial_sums(body: tuple[Stmt, ...], parts: Mapping[str, Reduction], part: str) -> tuple[Stmt, ...]:
    """Return the statements that compute partial sums, each accumulating into the target of its sum.

    A partial sum that is not that of ``part``, the variable of the loop over them, stays as it is.
    """

    def begins(n: Stmt) -> tuple[Stmt, ...] | None:
        match n:
            case Assign(Load(array), Const()) if array in parts and not n.name:
                return ()
        return None

    def rule(n: Node) -> Node | None:
        match n:
            case Load(array, (*index, Var(name))) if name == part and isinstance(
                copied := parts.get(array), InterleavedCopies
            ):
                return Load(target_name(copied.target), tuple(index), n.dtype)
            case Load(array, (Var(name), *index)) if name == part and array in parts:
                target = parts[array].target
                return replace(target, index=tuple(index)) if isinstance(target, Load) and not target.index else target
        return None

    def empty(n: Stmt) -> tuple[Stmt, ...] | None:
        return () if isinstance(n, Loop) and not n.body else begins(n)

    return rewrite(rule, rewrite_stmts(empty, body))


def before_combine(body: tuple[Stmt, ...], parts: Mapping[str, Reduction]) -> tuple[Stmt, ...]:
    """Return the statements that run before the partial sums are combined."""
    return _half(body, parts, later=False)


def after_combine(body: tuple[Stmt, ...], parts: Mapping[str, Reduction]) -> tuple[Stmt, ...]:
    """Return the statements that run after the partial sums are combined."""
    return _half(body, parts, later=True)


def _half(body: tuple[Stmt, ...], parts: Mapping[str, Reduction], *, later: bool) -> tuple[Stmt, ...]:
    at = [k for k, s in enumerate(body) if referenced_names((s,)) & parts.keys()]
    if not at:
        return body
    around = [map_blocks(lambda b: _half(b, parts, later=later), body[at[0]])] if len(at) == 1 else []
    kept = tuple(s for s in around if any(isinstance(n, Assign) for n in walk_stmts(s)))
    return (*kept, *body[at[-1] + 1 :]) if later else (*body[: at[0]], *kept)
