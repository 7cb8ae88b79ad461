"""A band: loops that each stand directly in the one before, treated as one perfect nest.

    for i in A:                    for i in A:
      S(i)                           for j in B:
      for j in B:         ==>          if (j == first) S(i)
        T(i, j)                        T(i, j)
      U(i)                             if (j == last)  U(i)

A statement beside a loop is sunk into it. If that loop may have no iterations, it gets one for the statement, and the
original body gets a condition that excludes this iteration.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from looptune.ir.def_use import names_in, written_names
from looptune.ir.nodes import Binary, Const, Expr, If, Loop, Stmt, Var
from looptune.ir.rewrite import conjunction, renaming, rewrite, walk
from looptune.ir.simplify import add, div, max_of, mul, sub
from looptune.poly.loop_bounds import bounded_nest, can_be_bounded, iteration_conditions
from looptune.poly.scop import Order, SchedulePiece, name
from looptune.schedule.directives.base import DirectiveSite, fresh_name, restrict_schedule, statement_names


@dataclass(frozen=True, slots=True)
class SunkStatement:
    """A statement of loop ``level`` of the band, to be run in the first (or last) iteration of the loops inside."""

    stmt: Stmt
    level: int
    first: bool


@dataclass(frozen=True, slots=True)
class Band:
    """Loops nested directly in each other, with the body of the perfect nest that they become.

    ``loops`` are listed outermost first; those in ``never_empty`` run in every iteration of the loops around them.
    """

    site: DirectiveSite
    loops: tuple[Loop, ...]
    body: tuple[SunkStatement, ...]
    never_empty: frozenset[str]

    @staticmethod
    def of(site: DirectiveSite, names: Sequence[str]) -> Band:
        """Return the loops at ``site`` and below it that have these names, as far as they are nested in each other."""
        loop, loops = site.loop, [site.loop]
        before: list[SunkStatement] = []
        after: list[SunkStatement] = []
        while len(loops) < len(names):
            inner = [s for s in loop.body if isinstance(s, Loop) and s.var in names]
            if len(inner) != 1:
                break
            at = next(k for k, s in enumerate(loop.body) if s is inner[0])
            level = len(loops) - 1
            beside = _renamed(loop.body, frozenset(names), site.used_names)
            before += [SunkStatement(s, level, True) for s in beside[:at]]
            after = [SunkStatement(s, level, False) for s in beside[at + 1 :]] + after
            loop = inner[0]
            loops.append(loop)
        core = [SunkStatement(s, len(loops) - 1, True) for s in loop.body]
        body = (*before, *core, *after)
        # Inside an iteration that is run for a sunk statement alone, nothing is known of the loops further in.
        highest = min((s.level for s in body), default=0)
        empty = next((k for k, f in enumerate(loops) if k > highest and f.number not in site.nonempty), len(loops))
        return Band(site, tuple(loops), body, frozenset(f.var for f in loops[:empty]))

    @property
    def rectangular(self) -> bool:
        """Return whether no bound depends on a loop of the band."""
        return not names_in(tuple((f.lo, f.hi) for f in self.loops)) & {f.var for f in self.loops}

    @property
    def perfect(self) -> bool:
        return all(s.level == len(self.loops) - 1 for s in self.body)

    @property
    def sink_targets(self) -> tuple[Loop, ...]:
        """Return the loops that statements are sunk into; these carry the dependences of the statements."""
        return self.loops[1 + min((s.level for s in self.body), default=len(self.loops)) :]

    @property
    def analysable(self) -> bool:
        return can_be_bounded(self.site.loop_context, self.loops)

    def assigned(self) -> tuple[str, Loop] | None:
        """Return a variable that a sunk statement assigns, and the loop whose bounds need it."""
        for k, loop in enumerate(self.loops):
            beside = [s.stmt for s in self.body if s.level < k]
            found = names_in((loop.lo, loop.hi)) & written_names(beside)
            if found:
                return min(found), loop
        return None

    def order(self) -> dict[str, tuple[tuple[SchedulePiece, Mapping[str, str], int], ...]]:
        """Return the pieces of each statement.

        Each piece has the value of every loop variable and its position in the body.
        """
        place = {n: k for k, sunk in enumerate(self.body) for n in statement_names(sunk.stmt)}
        mine: Order = restrict_schedule(self.site.order, place)
        return {n: tuple((p, self._values(p, self.body[place[n]]), place[n]) for p in ps) for n, ps in mine.items()}

    def inner_times(self, piece: SchedulePiece, place: int) -> tuple[str, ...]:
        """Return the entries of the new time after those of the band's loops.

        The position in the body, then the old ones.

        In an ``if`` each statement has a place of its own.
        """
        entry = self.site.depth + 2 * self.body[place].level + 1
        first, ahead = self._places(place)[0], sum(b - a for a, b in map(self._places, range(place)))
        return (str(ahead + int(piece.time[entry]) - first), *piece.time[entry + 1 :])

    def _places(self, place: int) -> tuple[int, int]:
        """Return the places in the text of what stands in one statement of the body: from, and up to."""
        sunk = self.body[place]
        entry = self.site.depth + 2 * sunk.level + 1
        taken = [
            int(p.time[entry])
            for ps in restrict_schedule(self.site.order, statement_names(sunk.stmt)).values()
            for p in ps
        ]
        return min(taken, default=0), max(taken, default=-1) + 1

    def _values(self, piece: SchedulePiece, sunk: SunkStatement) -> Mapping[str, str]:
        values: dict[str, str] = {}
        for d, loop in enumerate(self.loops):
            own = piece.time[self.site.depth + 2 * d] if d <= sunk.level else None
            end = self._end(loop, sunk.first)
            values[name(loop.var)] = self.site.bound(end, piece, values) if own is None else own
        return {f.var: values[name(f.var)] for f in self.loops}

    def _end(self, loop: Loop, first: bool) -> Expr:
        if first:
            return loop.lo
        return _last(loop) if loop.var in self.never_empty else max_of(loop.lo, _last(loop))

    def guards(self, sunk: SunkStatement) -> tuple[Expr, ...]:
        """Return the conditions under which the statement runs in an iteration of the band."""
        own = tuple(c for f in self.loops[: sunk.level + 1] for c in iteration_conditions(f))
        return (*own, *self._at_end(sunk))

    def _at_end(self, sunk: SunkStatement) -> tuple[Expr, ...]:
        beyond = self.loops[sunk.level + 1 :]
        return tuple(Binary("==", Var(f.var, f.dtype), self._end(f, sunk.first)) for f in beyond)

    def reorder(self, names: Sequence[str]) -> Stmt:
        """Return the nest with its loops in the order of ``names``; its bounds must be analysable."""
        named = {f.var: f for f in self.loops}
        if self.rectangular:
            loops = [replace(self.at_least_one_iteration(named[v]), private_arrays=self.own(named[v])) for v in names]
            return self.around(loops, self.guarded_body())
        found = bounded_nest(self.site.loop_context, [named[v] for v in names], self.groups())
        body = self.guarded_body({(s.level, s.first): found.remaining_conditions(self.guards(s)) for s in self.body})
        loops = [replace(f, body=named[f.var].body, private_arrays=self.own(named[f.var])) for f in found.loops]
        return self.around(loops, body)

    def groups(self) -> list[tuple[Expr, ...]]:
        """Return the conditions of all the iterations in which a statement runs."""
        return list({(s.level, s.first): self.guards(s) for s in self.body}.values())

    def at_least_one_iteration(self, loop: Loop) -> Loop:
        """Return the loop with at least one iteration, if a sunk statement may need it."""
        if loop.var in self.never_empty:
            return loop
        return replace(loop, hi=max_of(loop.hi, add(loop.lo, Const(1, loop.dtype))))

    def own(self, loop: Loop) -> tuple[str, ...]:
        """Return the private arrays of a loop of the band that remain private when the loop is moved inside others.

        If the band is not perfect, only the innermost loop keeps its private arrays: a sunk statement may write an
        array that is read in all iterations of the inner loops, and these may be outside the loop after the reordering.
        """
        return loop.private_arrays if self.perfect or loop is self.loops[-1] else ()

    @staticmethod
    def around(loops: Sequence[Loop], body: tuple[Stmt, ...]) -> Stmt:
        for loop in reversed(loops):
            body = (replace(loop, body=body),)
        return body[0]

    def guarded_body(self, asked: Mapping[tuple[int, bool], tuple[Expr, ...]] | None = None) -> tuple[Stmt, ...]:
        """Return the body, with each statement under its conditions ``asked``.

        Neighbours with equal conditions share an ``if``.
        """
        out: list[tuple[tuple[Expr, ...], list[Stmt]]] = []
        for s in self.body:
            conditions = self._extended_left(s) if asked is None else asked[s.level, s.first]
            if out and out[-1][0] == conditions:
                out[-1][1].append(s.stmt)
            else:
                out.append((conditions, [s.stmt]))
        return tuple(t for cs, stmts in out for t in ((If(conjunction(cs), tuple(stmts)),) if cs else stmts))

    def _extended_left(self, sunk: SunkStatement) -> tuple[Expr, ...]:
        """Return the conditions that remain in loops that were extended for sunk statements."""
        own = (f for f in self.loops[: sunk.level + 1] if f.var not in self.never_empty)
        return (*(Binary("<", Var(f.var, f.dtype), f.hi) for f in own), *self._at_end(sunk))


def _renamed(body: tuple[Stmt, ...], names: Collection[str], taken: Collection[str]) -> tuple[Stmt, ...]:
    """Return the loops called ``names`` in what is sunk into loops of these names under others."""
    inner = {f.var: f.dtype for f in walk(body) if isinstance(f, Loop) and f.var in names}
    other: dict[str, str] = {}
    for var in inner:
        other[var] = fresh_name(var, {*taken, *names, *other.values()})
    return rewrite(renaming(other), body)


def depending(loops: Sequence[Loop]) -> str:
    """Return the first of the loops whose bounds depend on another one, as a clause of a message."""
    names = {f.var for f in loops}
    bound = next(f for f in loops if names_in((f.lo, f.hi)) & names)
    return f"the bounds of loop {bound.var} depend on loop {min(names_in((bound.lo, bound.hi)) & names)}"


def loops_in(loop: Loop) -> list[str]:
    """Return the variables of the loop and of the loops in it."""
    return [f.var for f in walk(loop) if isinstance(f, Loop)]


def _last(loop: Loop) -> Expr:
    """Return the value of the loop variable in the last iteration of a loop that runs."""
    one = Const(1, loop.dtype)
    if loop.step == 1:
        return sub(loop.hi, one)
    step = Const(loop.step, loop.dtype)
    return add(loop.lo, mul(div(sub(sub(loop.hi, one), loop.lo), step), step))
