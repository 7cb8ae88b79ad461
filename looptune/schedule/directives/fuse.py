"""Fuse: merge a loop with its next sibling loops.

    for i in 0..n: S(i)             for i in 0..n+1:
    for k in 0..n: T(k)     ==>       if (i < n)  S(i)
                                      if (i >= 1) T(i - 1)       where T(k) needs S(k + 1): shifted by one

Loops with equal trip counts are fused trip by trip; others are fused at equal values of their variables, over the union
of their ranges, with a condition for each. A later loop is shifted by the smallest number of iterations that makes the
fusion legal. Statements between the loops are moved before or after them.

Legal when: no dependence is reversed. Gain: values of one loop are used by the next in a cache or in registers, and
there are fewer kernels. Cost: registers and conditions; a parallel loop may become sequential.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import groupby
from typing import ClassVar, Self

from looptune.core.errors import DirectiveError, IllegalTransform
from looptune.core.source import location
from looptune.ir.def_use import names_in, written_names
from looptune.ir.nodes import Binary, Const, Directive, Expr, If, Load, Loop, Stmt, Var
from looptune.ir.rewrite import conjunction, renaming, rewrite, substitute, walk
from looptune.ir.simplify import add, max_of, min_of, sub
from looptune.poly.scop import Order, SchedulePiece
from looptune.schedule.directives.base import (
    DirectiveSite,
    Example,
    NewSchedule,
    Rewrite,
    Transform,
    fresh_name,
    positive,
    restrict_schedule,
    statement_names,
)

MOST_SHIFTS = 64
"""So many are tried beyond the one that the dependences on arrays ask for."""


@dataclass(frozen=True, slots=True)
class _Member:
    """One of the loops: its iteration ``v`` runs at ``v + move + shift`` of the fused loop."""

    loop: Loop
    move: Expr
    shift: int = 0

    @property
    def offset(self) -> Expr:
        return add(self.move, Const(self.shift, self.loop.dtype))

    @property
    def lo(self) -> Expr:
        return add(self.loop.lo, self.offset)

    @property
    def hi(self) -> Expr:
        return add(self.loop.hi, self.offset)


@dataclass(frozen=True, slots=True)
class _Run:
    """The loops, the statements between them that go ``before`` and ``after``, and how many statements that is."""

    members: tuple[_Member, ...]
    before: tuple[Stmt, ...]
    after: tuple[Stmt, ...]
    width: int


@dataclass(frozen=True)
class Fuse(Transform):
    name: ClassVar = "fuse"
    syntax: ClassVar = "fuse [N]"
    stage: ClassVar = "join"

    count: int = 2

    @classmethod
    def parse(cls, directive: Directive) -> Self:
        match directive.args:
            case ():
                return cls(span=directive.span)
            case (arg,):
                count = positive(arg, "number of loops")
                if count < 2:
                    raise DirectiveError("fuse takes at least two loops", arg.span)
                return cls(count, span=directive.span)
        raise DirectiveError(f"fuse takes one number (syntax: {cls.syntax})", directive.args[1].span)

    def schedule(self, site: DirectiveSite) -> NewSchedule | None:
        run = self._run(site)
        return _reorder(site, run, len(run.members))

    def apply(self, site: DirectiveSite) -> Rewrite:
        run = self._run(site)
        members = run.members
        lo = _end([m.lo for m in members], site, first=True)
        hi = _end([m.hi for m in members], site, first=False)
        body = _merged([(_condition(m, lo, hi, site), _body(m, site)) for m in members])
        fused = replace(site.loop, lo=lo, hi=hi, body=body)
        return Rewrite(
            (*run.before, fused, *run.after),
            replaced_statements=run.width,
            fused_loops=tuple(m.loop for m in members[1:]),
        )

    def _run(self, site: DirectiveSite) -> _Run:
        """With the smallest shifts that are legal; without, where none is, for the refusal."""
        found = self._placed(site, self._block(site))
        plain = found
        for k in range(1, len(found.members)):
            shifted = _shifted(site, found, k)
            if shifted is None:
                return plain
            found = shifted
        return found

    def _block(self, site: DirectiveSite) -> tuple[Stmt, ...]:
        """Return the statements from the first of the loops to the last."""
        block = _from(site.loop, site.block)
        loops = [k for k, s in enumerate(block) if isinstance(s, Loop)]
        if len(loops) < self.count:
            more = len(loops) - 1
            there = f"only {more} loop{'s' * (more > 1)} after" if more else "no loop after"
            raise site.refuse(f"fuse {self.count}: {there} loop {site.loop.var} in its block")
        return block[: loops[self.count - 1] + 1]

    def _placed(self, site: DirectiveSite, block: tuple[Stmt, ...]) -> _Run:
        """Move each statement between two loops before all of them where that is legal, else after all of them.

        IllegalTransform at a statement that can go to neither side.
        """
        edges = site.queries.graph(_names(block), site.depth - 1, site.order, frozenset()).before

        def needs(s: Stmt, t: Stmt) -> bool:
            return any((a, b) in edges for a in statement_names(s) for b in statement_names(t))

        before: list[Stmt] = []
        after: list[Stmt] = []
        for k, stmt in enumerate(block):
            if isinstance(stmt, Loop):
                continue
            stay = [s for s in block[:k] if isinstance(s, Loop)] + after
            if not any(needs(s, stmt) for s in stay):
                before.append(stmt)
            elif not any(needs(stmt, s) for s in block[k + 1 :] if isinstance(s, Loop)):
                after.append(stmt)
            else:
                first = next(s for s in stay if needs(s, stmt))
                last = next(s for s in block[k + 1 :] if needs(stmt, s))
                raise IllegalTransform(
                    f"fuse is illegal: the statement of line {stmt.span.line} depends on a loop before it, "
                    "and a loop after it depends on the statement",
                    stmt.span,
                    (_between(first, stmt, last),),
                )
        loops = [s for s in block if isinstance(s, Loop)]
        self._check(site, loops, after)
        return _Run(tuple(_aligned(site, f) for f in loops), tuple(before), tuple(after), len(block))

    def _check(self, site: DirectiveSite, loops: Sequence[Loop], after: Sequence[Stmt]) -> None:
        first = loops[0]
        for k, f in enumerate(loops):
            if (f.step, f.dtype) != (first.step, first.dtype):
                what = f"steps by {f.step}, loop {first.var} by {first.step}"
                types = f"counts in {f.dtype}, loop {first.var} in {first.dtype}"
                raise site.refuse(f"fuse: loop {f.var} {what if f.step != first.step else types}")
            changed = names_in((f.lo, f.hi)) & written_names((*loops[:k], *after))
            if changed:
                raise site.refuse(f"fuse: a loop before loop {f.var} assigns {min(changed)}, which bounds it")


def _from(loop: Loop, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Return the loop and the statements after it in its own block, which is ``body`` or a branch in it."""
    for k, stmt in enumerate(body):
        match stmt:
            case If(_, then, other) if any(n is loop for n in walk(stmt)):
                return _from(loop, then if any(n is loop for n in walk(then)) else other)
            case _ if stmt is loop:
                return body[k:]
    raise AssertionError("the loop stands in the body")


def _between(first: Stmt, stmt: Stmt, last: Stmt) -> str:
    """Return the note that names the statements between which ``stmt`` must stay."""
    before, here, after = (location(s.span, stmt.span) for s in (first, stmt, last))
    return f"{before} must run before {here}, and that before {after}"


def _names(block: Sequence[Stmt]) -> frozenset[str]:
    return frozenset(n for s in block for n in statement_names(s))


def _aligned(site: DirectiveSite, loop: Loop) -> _Member:
    """Return whether the loops are fused trip by trip: with equal trip counts, or if equal values would not meet."""
    first, none = site.loop, Const(0, loop.dtype)
    apart = sub(first.lo, loop.lo)
    equal = site.loop_context.holds(sub(loop.hi, loop.lo), "=", sub(first.hi, first.lo))
    in_step = loop.step == 1 or (isinstance(apart, Const) and int(apart.value) % loop.step == 0)
    return _Member(loop, apart if equal or not in_step else none)


def _shifted(site: DirectiveSite, run: _Run, k: int) -> _Run | None:
    """Return the run with member ``k`` shifted as little as is legal after those before it.

    None where nothing is.
    """
    if site.queries.judge(_reorder(site, run, k + 1), site.order) is None:
        return run
    first = frozenset(n for m in run.members[:k] for n in statement_names(m.loop))
    then = statement_names(run.members[k].loop)
    order = _reorder(site, run, k + 1).order
    least, most = (site.queries.fusion_shift(first, then, site.depth, order, memory) for memory in (False, True))
    if least is None:
        return None
    step = site.loop.step
    least = -(-least // step) * step
    last = least if most is None else min(-(-most // step) * step, least + MOST_SHIFTS * step)
    for shift in range(least, last + 1, step):
        members = (*run.members[:k], replace(run.members[k], shift=shift), *run.members[k + 1 :])
        found = replace(run, members=members)
        if site.queries.judge(_reorder(site, found, k + 1), site.order) is None:
            return found
    return None


def _reorder(site: DirectiveSite, run: _Run, count: int) -> NewSchedule:
    """Return the order with the first ``count`` members fused and the others after them."""
    p, order = site.depth, site.order
    names = [_names(run.before), *(statement_names(m.loop) for m in run.members), _names(run.after)]
    place = min(int(q.time[p - 1]) for block in names for n in block for q in order[n])
    new: dict[str, tuple[SchedulePiece, ...]] = {}
    for stmt in run.before:
        place = _put(new, site, statement_names(stmt), place)
    inner = 0
    for k, member in enumerate(run.members):
        mine = restrict_schedule(order, statement_names(member.loop))
        if k >= count:
            place += 1
            new |= {n: tuple(_at(q, p - 1, str(place)) for q in qs) for n, qs in mine.items()}
            continue
        new |= {n: tuple(_fused(q, site, member, place, inner) for q in qs) for n, qs in mine.items()}
        inner += 1 + max((int(q.time[p + 1]) for qs in mine.values() for q in qs), default=0)
    place += 1
    for stmt in run.after:
        place = _put(new, site, statement_names(stmt), place)
    return NewSchedule(new, p + 2)


def _put(new: dict[str, tuple[SchedulePiece, ...]], site: DirectiveSite, names: frozenset[str], place: int) -> int:
    """Put the statements, as they follow each other, at ``place``; the next free one."""
    mine: Order = restrict_schedule(site.order, names)
    entry = site.depth - 1
    places = [int(q.time[entry]) for qs in mine.values() for q in qs]
    if not places:
        return place
    move = place - min(places)
    new |= {n: tuple(_at(q, entry, str(int(q.time[entry]) + move)) for q in qs) for n, qs in mine.items()}
    return place + 1 + max(places) - min(places)


def _at(piece: SchedulePiece, entry: int, value: str) -> SchedulePiece:
    return replace(piece, time=(*piece.time[:entry], value, *piece.time[entry + 1 :]))


def _fused(piece: SchedulePiece, site: DirectiveSite, member: _Member, place: int, inner: int) -> SchedulePiece:
    p = site.depth
    offset = member.offset
    at = piece.time[p]
    if offset != Const(0, offset.dtype):
        at = f"({at} + {site.bound(offset, piece)})"
    return SchedulePiece(
        (*piece.time[: p - 1], str(place), at, str(int(piece.time[p + 1]) + inner), *piece.time[p + 2 :]), piece.when
    )


def _end(ends: Sequence[Expr], site: DirectiveSite, *, first: bool) -> Expr:
    """Return the least (or greatest) of the bounds: one of them where that is known to be it."""
    best = (e for e in ends if all(site.loop_context.holds(e, "<=" if first else ">=", other) for other in ends))
    known = next(best, None)
    return reduce(min_of if first else max_of, ends) if known is None else known


def _condition(member: _Member, lo: Expr, hi: Expr, site: DirectiveSite) -> Expr | None:
    """Return the condition under which the member runs, where the fused loop has other values too."""
    var = Var(site.loop.var, site.loop.dtype)
    found: list[Expr] = []
    if not site.loop_context.holds(member.lo, "=", lo):
        found.append(Binary(">=", var, member.lo))
    if not site.loop_context.holds(member.hi, "=", hi):
        found.append(Binary("<", var, member.hi))
    return conjunction(found) if found else None


def _merged(parts: Sequence[tuple[Expr | None, tuple[Stmt, ...]]]) -> tuple[Stmt, ...]:
    """Return the parts under their conditions.

    Neighbours with equal conditions share an ``if``; a condition on loops alone is moved into them, so that they remain
    siblings.
    """
    out: list[Stmt] = []
    for cond, group in groupby(parts, key=lambda part: part[0]):
        body = tuple(s for _, stmts in group for s in stmts)
        if cond is None:
            out += body
        elif all(isinstance(s, Loop) and _may_run(s, cond) for s in body):
            out += (replace(s, body=(If(cond, s.body),)) for s in body if isinstance(s, Loop))
        else:
            out.append(If(cond, body))
    return tuple(out)


def _may_run(loop: Loop, cond: Expr) -> bool:
    """Return whether the bounds can be computed whatever ``cond`` is, and nothing in the loop changes them."""
    plain = not any(isinstance(n, Load) or (isinstance(n, Binary) and n.op in "/%") for n in walk((loop.lo, loop.hi)))
    return plain and not names_in(cond) & (written_names(loop.body) | {loop.var})


def _body(member: _Member, site: DirectiveSite) -> tuple[Stmt, ...]:
    """Return the member's statements in terms of the fused loop's variable.

    A loop in it with that name takes the member's.
    """
    var, own, body = site.loop.var, member.loop.var, member.loop.body
    value = sub(Var(var, site.loop.dtype), member.offset)
    if value == Var(own, site.loop.dtype):
        return body
    if all(f.var != var for f in walk(body) if isinstance(f, Loop)):
        return substitute(body, {own: value})
    aside = fresh_name(var, site.used_names)
    body = substitute(rewrite(renaming({var: aside}), body), {own: value})
    return rewrite(renaming({aside: own}), body)


_PAIR = """\
for (int i = 0; i < n; i++)
    B[i] = 2 * A[i];
  for (int k = 0; k < n; k++)
    A[k] = B[k] + 1;"""
_AHEAD = """\
for (int i = 0; i < n; i++)
    B[i] = 2 * A[i];
  for (int k = 0; k < n - 1; k++)
    A[k] = B[k + 1];"""
_TURNED = """\
for (int i = 0; i < n; i++)
    B[i] = A[i];
  for (int j = 0; j < n; j++)
    for (int i = 0; i < m; i++)
      D[j][i] = B[j] + E[i];"""
_ALL = """\
for (int i = 0; i < n; i++)
    B[0] += A[i];
  for (int k = 0; k < n; k++)
    A[k] = B[0];"""
_THREE = """\
for (int i = 0; i < n; i++)
    B[i] = 0;
  E[0] = 1;
  for (int k = 1; k < n; k++)
    B[k] += A[k];
  for (int l = 1; l < n; l++)
    A[l - 1] = B[l];"""

Fuse.examples = {
    "fuse": Example(_PAIR, """\
for (int i = 0; i < n; i++) {
  B[i] = 2 * A[i];
  A[i] = B[i] + 1;
}"""),
    "fuse 2": Example(_AHEAD, """\
for (int i = 0; i < n; i++) {
  B[i] = 2 * A[i];
  if (i >= 1) {
    A[i - 1] = B[i];
  }
}"""),
    "fuse 3": Example(_THREE, """\
E[0] = 1;
for (int i = 0; i < n; i++) {
  B[i] = 0;
  if (i >= 1) {
    B[i] += A[i];
    A[i - 1] = B[i];
  }
}"""),
    "FUSE 2": Example(_TURNED, """\
for (int i = 0; i < n; i++) {
  B[i] = A[i];
  for (int j = 0; j < m; j++) {
    D[i][j] = B[i] + E[j];
  }
}"""),
    "Fuse": Example(_ALL, refused="iteration (i=1) of line"),
}  # fmt: skip
