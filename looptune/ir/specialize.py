"""Write known sizes into a codelet as constants, and remove what can then no longer run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from looptune.ir.conditions import simplify_conditions
from looptune.ir.def_use import restrict_reductions, written_names
from looptune.ir.intervals import simplify_with_ranges
from looptune.ir.nodes import Codelet, Const, If, Loop, Scalar, Stmt
from looptune.ir.rewrite import rewrite_stmts, substitute
from looptune.ir.simplify import is_integer


def specialize(codelet: Codelet, values: Mapping[str, int | float]) -> Codelet:
    """Return the codelet with the integer parameters in ``values`` replaced by constants.

    Code that can no longer run is removed.

    The parameters stay in the signature, so that a caller need not know.
    """
    known = {p.name for p in codelet.params if isinstance(p, Scalar) and is_integer(p.dtype) and p.name in values}
    known -= written_names(codelet.body)
    env = {p.name: Const(int(values[p.name]), p.dtype) for p in codelet.params if p.name in known}
    baked = substitute(codelet, env)
    return remove_dead_code(replace(baked, body=simplify_conditions(simplify_with_ranges(baked.body))))


def remove_dead_code(codelet: Codelet) -> Codelet:
    """Remove the loops that never run and the branches that are never taken."""

    def rule(n: Stmt) -> tuple[Stmt, ...] | None:
        match n:
            case Loop(_, Const(lo), Const(hi)) if lo >= hi:
                return ()
            case Loop(_, _, _, ()):
                return ()
            case Loop(reductions=(_, *_)):
                return (restrict_reductions(n, n.body),)
            case If(Const(value), then, other):
                return then if value else other
        return None

    return replace(codelet, body=rewrite_stmts(rule, codelet.body))
