"""Where a local lives: the smallest block that writes it before reading it on every pass.

A local declared in such a block is private to each iteration of the loops around it, and to each thread.
"""

from __future__ import annotations

from collections.abc import Iterable

from looptune.ir import Assign, If, Load, Loop, Stmt, Var, While
from looptune.rewrite import walk, walk_stmts


def names(stmts: Iterable[Stmt]) -> set[str]:
    """Every scalar and array named in the statements, loop variables included."""
    found: set[str] = set()
    for node in walk(tuple(stmts)):
        match node:
            case Var(name) | Load(name):
                found.add(name)
            case Loop(var):
                found.add(var)
    return found


def written(stmts: Iterable[Stmt]) -> set[str]:
    """The scalars and arrays the statements assign."""
    return {_target(n) for n in walk_stmts(tuple(stmts)) if isinstance(n, Assign)}


def read(stmts: Iterable[Stmt]) -> set[str]:
    """The scalars and arrays whose value the statements use."""
    found: set[str] = set()
    for node in walk(tuple(stmts)):
        match node:
            case Assign(Var(_), value):
                found |= names_in(value)
            case Assign(Load(_, index), value):
                found |= names_in(value) | names_in(index)
            case Loop(_, lo, hi):
                found |= names_in((lo, hi))
            case If(cond) | While(cond):
                found |= names_in(cond)
    return found


def names_in(expr: object) -> set[str]:
    return {n.name if isinstance(n, Var) else n.array for n in walk(expr) if isinstance(n, (Var, Load))}


def _target(assign: Assign) -> str:
    return assign.target.name if isinstance(assign.target, Var) else assign.target.array


def begins_with_write(block: tuple[Stmt, ...], name: str) -> bool:
    """Every pass over ``block`` assigns scalar ``name`` before it reads it."""
    for k, stmt in enumerate(block):
        if name not in names((stmt,)):
            continue
        match stmt:
            case Assign(target, value):
                index = target.index if isinstance(target, Load) else ()
                return name not in names_in((value, index)) and target == Var(name, target.dtype)
            case Loop(_, lo, hi, body):
                if name in names_in((lo, hi)):
                    return False
                return begins_with_write(body, name) and name not in names(block[k + 1 :])
            case If(cond, then, other):
                inside = [b for b in (then, other) if name in names(b)]
                whole = len(inside) == 2 or name not in names(block[k + 1 :])
                return name not in names_in(cond) and whole and all(begins_with_write(b, name) for b in inside)
            case While():
                return False
    return False


def declared(block: tuple[Stmt, ...], candidates: set[str]) -> set[str]:
    """Of the ``candidates``, all private to ``block``, those whose smallest block is this one, not one inside."""
    return {name for name in candidates if not _fits_inside(block, name)}


def _fits_inside(block: tuple[Stmt, ...], name: str) -> bool:
    users = [s for s in block if name in names((s,))]
    if len(users) != 1:
        return False
    match users[0]:
        case Loop(_, lo, hi, body):
            return name not in names_in((lo, hi)) and begins_with_write(body, name)
        case If(cond, then, other):
            inside = [b for b in (then, other) if name in names(b)]
            return name not in names_in(cond) and all(begins_with_write(b, name) for b in inside)
        case _:
            return False
