"""A finished tree next to the codelet it was made from: every assignment in it is a copy of an original one.

    for i in 0..n/2: { S0(2*i); S0(2*i + 1) }     S0_0: { [i] -> S0[2i] : 0 <= i < n/2 }
                                                  S0_1: { [i] -> S0[2i + 1] : 0 <= i < n/2 }

The map comes from ``Assign.at``, which every rewriting carries along. ``Unprovable`` says what stops the comparison.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import islpy as isl

from looptune.ir import Assign, Bin, Call, Cast, Codelet, Const, Expr, Load, Loop, Node, Scalar, Select, Un, Var, While
from looptune.poly.domain import Statement
from looptune.poly.model import Model, build
from looptune.rewrite import rewrite, substitute, walk
from looptune.simplify import is_integer


class Unprovable(Exception):
    """The comparison cannot be made; never leaves ``poly``."""


@dataclass(frozen=True, slots=True, eq=False)
class Copies:
    """``of``: the original statement of each copy. ``at``: { copy[iteration] -> original[iteration] : it runs }

    ``whole``: every assignment is a copy of an original one.
    """

    original: Model
    finished: Model
    of: Mapping[str, str]
    at: Mapping[str, isl.Map]
    whole: bool = True

    def named(self, statement: str) -> list[str]:
        return [c for c, s in self.of.items() if s == statement]

    def between(self, first: str, dependence: isl.Map, then: str) -> isl.Map:
        """{ first copy[iteration] -> then copy[iteration] } of a map of the original iterations"""
        return self.at[first].apply_range(dependence).apply_range(self.at[then].reverse())

    def back(self, first: str, between: isl.Map, then: str) -> isl.Map:
        """{ original[iteration] -> original[iteration] } of a map of two copies' iterations"""
        return self.at[first].reverse().apply_range(between).apply_range(self.at[then])


def compare(original: Codelet, finished: Codelet, sizes: Mapping[str, int]) -> Copies:
    """Both as models, with the parameters in ``sizes`` as constants."""
    given = (p for p in original.params if isinstance(p, Scalar) and is_integer(p.dtype) and p.name in sizes)
    env: dict[str, Expr] = {p.name: Const(sizes[p.name], p.dtype) for p in given}
    before = build(_baked(original, env))
    of: dict[str, str] = {}
    after = build(_numbered(_baked(finished, env), of))
    for model in (before, after):
        if any(not s.exact for s in model.statements.values()):
            what = model.unknown[0] if model.unknown else "when a statement runs"
            raise Unprovable(f"{what}")
    mine = {c: s for c, s in of.items() if s in before.statements}
    return Copies(before, after, mine, {c: _at(before, after, c, s) for c, s in mine.items()}, len(mine) == len(of))


def _baked(codelet: Codelet, env: Mapping[str, Expr]) -> Codelet:
    assigned = {n.target.name for n in walk(codelet.body) if isinstance(n, Assign) and isinstance(n.target, Var)}
    known = {n: v for n, v in env.items() if n not in assigned}
    baked: Codelet = substitute(codelet, known)
    return replace(baked, params=tuple(p for p in baked.params if p.name not in known))


def _numbered(codelet: Codelet, of: dict[str, str]) -> Codelet:
    """Every assignment with a name of its own; ``of`` gets what it was called."""

    def rule(n: Node) -> Node | None:
        match n:
            case Assign(name=name):
                of[f"{name}_{len(of)}"] = name
                return replace(n, name=next(reversed(of)))
        return None

    return replace(codelet, body=rewrite(rule, codelet.body))


def _at(before: Model, after: Model, copy: str, statement: str) -> isl.Map:
    s, c = before.statements[statement], after.statements[copy]
    if any(isinstance(f, While) for f in (*s.loops, *c.loops)):
        raise Unprovable("a while loop cannot be analysed")
    at = [after.space.nest.affine(e, c.dims) for e in c.assign.at]
    if None in at or len(at) != len(s.dims):
        raise Unprovable(f"which iteration of {statement} a copy runs is not affine")
    everywhere = isl.Map(f"{after.space.prefix}{{ {after.space.instance(c)} -> {s.name}[{', '.join(map(str, at))}] }}")
    return everywhere.intersect_domain(after.space.domain(copy))


def same_meaning(copies: Copies, copy: str) -> bool:
    """The copy computes what the original does in that iteration: same operations, same elements, same integers."""
    c, s = copies.finished.statements[copy], copies.original.statements[copies.of[copy]]
    env = {f.var: e for f, e in zip(s.loops, c.assign.at, strict=True) if isinstance(f, Loop)}
    target, value = substitute((s.assign.target, s.assign.value), env)
    return _same(copies, c, target, c.assign.target) and _same(copies, c, value, c.assign.value)


def _same(copies: Copies, c: Statement, a: Expr, b: Expr) -> bool:
    if a == b or _equal_integers(copies, c, a, b):
        return True
    match a, b:
        case Load(array, index, _), Load(array2, index2, _):
            return array == array2 and all(_same(copies, c, x, y) for x, y in zip(index, index2, strict=True))
        case Var(name, dtype), Var(name2, dtype2):
            own = ((copies.original.codelet, name), (copies.finished.codelet, name2))
            return dtype == dtype2 and all(any(v.name == n for v in codelet.locals) for codelet, n in own)
        case Bin(op), Bin(op2) if op == op2:
            return _same(copies, c, a.lhs, b.lhs) and _same(copies, c, a.rhs, b.rhs)
        case (Un(op, x), Un(op2, y)) | (Cast(op, x), Cast(op2, y)):
            return op == op2 and _same(copies, c, x, y)
        case Call(fn, args, dtype), Call(fn2, args2, dtype2):
            same = fn == fn2 and dtype == dtype2 and len(args) == len(args2)
            return same and all(_same(copies, c, x, y) for x, y in zip(args, args2, strict=True))
        case Select(), Select():
            parts = ((a.cond, b.cond), (a.then, b.then), (a.other, b.other))
            return all(_same(copies, c, x, y) for x, y in parts)
    return False


def _equal_integers(copies: Copies, c: Statement, a: Expr, b: Expr) -> bool:
    space = copies.finished.space
    texts = [space.nest.affine(e, c.dims) if is_integer(e.dtype) else None for e in (a, b)]
    if None in texts:
        return False
    differ = isl.Set(f"{space.prefix}{{ {space.instance(c)} : {texts[0]} != {texts[1]} }}")
    return differ.intersect(space.domain(c.name)).is_empty()
