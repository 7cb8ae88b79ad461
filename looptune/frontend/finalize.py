"""Finish the tree of a codelet: remove dead final values, choose names, number loops and statements."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from looptune.frontend.name_resolution import base
from looptune.ir.nodes import Assign, Expr, If, Load, Local, Loop, Node, Stmt, Var, While
from looptune.ir.rewrite import rewrite, walk

FINAL = "final"
"""The ``name`` of an assignment that gives a loop's variable its value after the loop."""


def scalars_in(*nodes: object) -> frozenset[str]:
    """Return the names of the scalars in the nodes."""
    return frozenset(n.name for n in walk(tuple(nodes)) if isinstance(n, Var))


def remove_dead_finals(stmts: tuple[Stmt, ...], after: frozenset[str]) -> tuple[tuple[Stmt, ...], frozenset[str]]:
    """Remove the FINAL assignments to scalars that are not read later.

    ``after``: the scalars that are live after ``stmts``. Returns the statements and the scalars live before them.
    """
    kept: list[Stmt] = []
    for stmt in reversed(stmts):
        match stmt:
            case Assign(Var(name), value) if stmt.name == FINAL and name not in after:
                continue
            case Assign(Var(name), value):
                after = (after - {name}) | scalars_in(value)
            case Assign(target, value):
                after |= scalars_in(target, value)
            case Loop(_, lo, hi, body):
                body, before = _repeated(body, after)
                after |= before | scalars_in(lo, hi)
                stmt = replace(stmt, body=body)
            case While(cond, body):
                body, before = _repeated(body, after | scalars_in(cond))
                after |= before | scalars_in(cond)
                stmt = replace(stmt, body=body)
            case If(cond, then, other):
                then, before_then = remove_dead_finals(then, after)
                other, before_other = remove_dead_finals(other, after)
                after = before_then | before_other | scalars_in(cond)
                stmt = replace(stmt, then=then, other=other)
        kept.append(stmt)
    return tuple(reversed(kept)), after


def _repeated(body: tuple[Stmt, ...], after: frozenset[str]) -> tuple[tuple[Stmt, ...], frozenset[str]]:
    """Return a body that may run again: what is live before it is live after it too."""
    while True:
        new, before = remove_dead_finals(body, after)
        if before <= after:
            return new, before
        after |= before


def remove_empty_conditions(stmts: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Remove conditions with two empty branches; they have no effect."""

    def rule(node: Node) -> tuple[Node, ...] | None:
        return () if isinstance(node, If) and not node.then and not node.other else None

    return rewrite(rule, stmts)


@dataclass(slots=True)
class _Namer:
    """A name is the user's where nothing else has it: parameters come first, then loops, then locals."""

    used: set[str]
    renamed: dict[str, str]

    def fresh(self, wanted: str, avoid: Iterable[str]) -> str:
        names = {*self.used, *avoid}
        count, name = 1, wanted
        while name in names:
            count += 1
            name = f"{wanted}_{count}"
        return name

    def loops(self, stmts: tuple[Stmt, ...], around: tuple[str, ...]) -> None:
        for stmt in stmts:
            match stmt:
                case Loop(var, _, _, body):
                    self.renamed[var] = self.fresh(base(var), around)
                    self.loops(body, (*around, self.renamed[var]))
                case While(_, body):
                    self.loops(body, around)
                case If(_, then, other):
                    self.loops((*then, *other), around)


@dataclass(frozen=True, slots=True)
class NamedCodelet:
    """Statements and locals under the user's names.

    ``of_text`` has the names in the text of the locals that stand there, ``renamed`` the names of all variables, by
    those that they had before.
    """

    stmts: tuple[Stmt, ...]
    locals: tuple[Local, ...]
    of_text: Mapping[str, str]
    renamed: Mapping[str, str]


def restore_names(
    stmts: tuple[Stmt, ...], locals_: Mapping[str, Local], params: Iterable[str], hidden: Collection[str]
) -> NamedCodelet:
    """Return the statements and their locals under the user's names; those ``hidden`` are not in the text."""
    used = {n.name if isinstance(n, Var) else n.array for n in walk(stmts) if isinstance(n, Var | Load)}
    namer = _Namer(set(params), {})
    # loops choose first, so that directives reach them by the user's names
    namer.loops(stmts, ())
    loops = set(namer.renamed.values())
    for name in (n for n in locals_ if n in used):
        namer.renamed[name] = namer.fresh(base(name), loops)
        namer.used.add(namer.renamed[name])

    def rule(node: Node) -> Node | None:
        match node:
            case Var(name) if name in namer.renamed:
                return replace(node, name=namer.renamed[name])
            case Load(array) if array in namer.renamed:
                return replace(node, array=namer.renamed[array])
            case Loop(var):
                own = tuple(namer.renamed[name] for name in node.private_arrays if name in used)
                return replace(node, var=namer.renamed[var], private_arrays=own)
        return None

    kept = tuple(replace(local, name=namer.renamed[name]) for name, local in locals_.items() if name in used)
    written = (n for n in locals_ if n in used and n not in hidden and re.fullmatch(r"\w+#(?:\d+|table)", n))
    own = {namer.renamed[name]: base(name) for name in written}
    return NamedCodelet(rewrite(rule, stmts), kept, own, namer.renamed)


@dataclass(slots=True)
class _Numberer:
    loops: int = 0
    statements: int = 0

    def block(self, stmts: tuple[Stmt, ...], around: tuple[Expr, ...]) -> tuple[Stmt, ...]:
        return tuple(self.stmt(stmt, around) for stmt in stmts)

    def stmt(self, stmt: Stmt, around: tuple[Expr, ...]) -> Stmt:
        match stmt:
            case Assign():
                self.statements += 1
                return replace(stmt, name=f"S{self.statements - 1}", instance=around)
            case Loop(var, _, _, body):
                self.loops += 1
                number = self.loops
                return replace(stmt, body=self.block(body, (*around, Var(var, stmt.dtype))), number=number)
            case While(_, body):
                self.loops += 1
                number = self.loops
                return replace(stmt, body=self.block(body, around), number=number)
            case If(_, then, other):
                return replace(stmt, then=self.block(then, around), other=self.block(other, around))


def number_loops(stmts: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Assign numbers from 1 to the loops, and names S0, S1, ... to the statements, in textual order.

    Each statement also gets the variables of the loops around it as its instance.
    """
    return _Numberer().block(stmts, ())


def array_direction(name: str, stmts: tuple[Stmt, ...]) -> Literal["in", "out", "inout"]:
    """Return whether the statements only read an array, only write it, or do both."""
    writes = sum(isinstance(n, Assign) and isinstance(n.target, Load) and n.target.array == name for n in walk(stmts))
    mentions = sum(isinstance(n, Load) and n.array == name for n in walk(stmts))
    if not writes:
        return "in"
    return "out" if mentions == writes else "inout"
