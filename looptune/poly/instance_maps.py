"""Relate a finished tree to the codelet it was made from: every assignment in it is a copy of an original one.

    for i in 0..n/2: { S0(2*i); S0(2*i + 1) }     S0_0: { [i] -> S0[2i] : 0 <= i < n/2 }
                                                  S0_1: { [i] -> S0[2i + 1] : 0 <= i < n/2 }

The map comes from ``Assign.instance``, which every rewriting preserves. ``Unprovable`` says what prevents the
comparison. If data decide whether an assignment runs, its copies evaluate the same conditions; that these have the same
values follows from the order of the evaluations, which are compared as statements are, except for how often they run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import islpy as isl

from looptune.ir.c_printer import expression_text
from looptune.ir.def_use import declared_names
from looptune.ir.nodes import Array, Assign, Codelet, Const, Expr, Load, Node, Scalar, Var, While
from looptune.ir.rewrite import rewrite, substitute, walk
from looptune.ir.simplify import is_integer
from looptune.poly.condition_instances import condition_instance_name, has_own_statement
from looptune.poly.parameter_values import with_local_parameters
from looptune.poly.scop import Scop, build
from looptune.poly.statement_match import Names, StatementMatcher, copies_element

if TYPE_CHECKING:
    from looptune.poly.data_conditions import DataCondition
    from looptune.poly.domain import Statement


class Unprovable(Exception):
    """The comparison cannot be made; this exception never leaves ``poly``."""


@dataclass(frozen=True, slots=True, eq=False)
class InstanceMaps:
    """The instances of the copies of each statement.

    ``of``: the original statement of each copy. ``at``: { copy[iteration] -> original[iteration] : it runs }.

    ``original_conditions``: the original's evaluation of a condition for each of a copy's, which have an ``at`` too.
    ``names``: those of the locals that a copy or a condition reads, None if it computes something else; ``mismatches``
    are the copies whose conditions differ. ``all_copies``: every assignment is a copy of an original one, or one of the
    ``moves``, which give a local of the finished tree the value of the same element of another one.
    """

    original: Scop
    finished: Scop
    of: Mapping[str, str]
    original_conditions: Mapping[str, str]
    at: Mapping[str, isl.Map]
    names: Mapping[str, Names | None]
    mismatches: frozenset[str]
    all_copies: bool = True
    moves: frozenset[str] = frozenset()

    def original_of(self, name: str) -> str:
        return self.of[name] if name in self.of else self.original_conditions[name]

    def copies_of(self, statement: str) -> list[str]:
        """Return the copies of a statement, or the evaluations that correspond to the evaluation of a condition."""
        return [c for c, s in (*self.of.items(), *self.original_conditions.items()) if s == statement]

    def to_copies(self, first: str, dependence: isl.Map, then: str) -> isl.Map:
        """Return { first copy[iteration] -> then copy[iteration] } of a map of the original iterations."""
        return self.at[first].apply_range(dependence).apply_range(self.at[then].reverse())

    def to_original(self, first: str, between: isl.Map, then: str) -> isl.Map:
        """Return { original[iteration] -> original[iteration] } of a map of two copies' iterations."""
        return self.at[first].reverse().apply_range(between).apply_range(self.at[then])


def compare(original: Codelet, finished: Codelet, sizes: Mapping[str, int]) -> InstanceMaps:
    """Return the models of both codelets, with the parameters in ``sizes`` as constants, and the maps between them.

    Raises Unprovable if a part of either cannot be analysed.
    """
    original, finished = _with_local_parameters(with_sizes(original, sizes), with_sizes(finished, sizes))
    before = build(original, asked_apart=True)
    of: dict[str, str] = {}
    after = build(_numbered(finished, of), asked_apart=True)
    for unknown in (s.unknown for m in (before, after) for s in m.statements.values()):
        if unknown is not None and not unknown.condition:
            raise Unprovable(str(unknown))
    mine = {c: s for c, s in of.items() if s in before.statements}
    made = _Comparing(before, after)
    for c, s in mine.items():
        made.add(before.statements[s], after.statements[c])
    moves = frozenset(c for c in of if c not in mine and copies_element(after, after.statements[c]))
    return InstanceMaps(
        before,
        after,
        mine,
        made.original_conditions,
        made.at,
        made.names,
        frozenset(made.mismatches),
        len(mine) + len(moves) == len(of),
        moves,
    )


def _with_local_parameters(original: Codelet, finished: Codelet) -> tuple[Codelet, Codelet]:
    """Return both codelets with those parameter arrays as locals of which the finished one has copies of its own.

    Their values are then compared, and not the order of the accesses to them.
    """
    own = {v.name for v in finished.locals if v.shape} - {v.name for v in original.locals}
    if not own:
        return original, finished
    named = {n.name: array_names(n) for n in walk(original.body) if isinstance(n, Assign)}
    held: set[str] = set()
    for n in (n for n in walk(finished.body) if isinstance(n, Assign)):
        mine = array_names(n)
        if mine & own:
            held |= named[n.name] - mine if n.name in named else mine
    arrays = {p.name: p for p in original.params if isinstance(p, Array) and p.name in held}
    if any(None in p.shape for p in arrays.values()):
        raise Unprovable("the extent of an array that the tree has copies of is not declared")
    taken = declared_names(original) | declared_names(finished)
    return with_local_parameters(original, arrays, taken), with_local_parameters(finished, arrays, taken)


@dataclass(slots=True)
class _Comparing:
    """Fills in what ``InstanceMaps`` holds."""

    before: Scop
    after: Scop
    original_conditions: dict[str, str] = field(default_factory=dict)
    at: dict[str, isl.Map] = field(default_factory=dict)
    names: dict[str, Names | None] = field(default_factory=dict)
    mismatches: set[str] = field(default_factory=set)

    def add(self, s: Statement, c: Statement) -> None:
        self.at[c.name] = _at(self.before, self.after, c.name, s.name)
        alike = StatementMatcher(self.before, self.after, s, c)
        target, value = alike.names(s.assign.target, c.assign.target), alike.names(s.assign.value, c.assign.value)
        read = None if target is None or value is None else value | _read(target, c.assign.target)
        found = self.conditions(alike)
        self.mismatches |= {c.name} if found is None else set()
        for k, m, names in found if found is not None else ():
            if not has_own_statement(c, m):
                read = None if read is None else read | names
                continue
            mine, theirs = condition_instance_name(c, m), condition_instance_name(s, k)
            self.original_conditions[mine], self.names[mine] = theirs, names
            self.at[mine] = self.condition_map(self.after.statements[mine], c, s, self.before.statements[theirs])
        self.names[c.name] = read

    def conditions(self, alike: StatementMatcher) -> list[tuple[int, int, Names]] | None:
        """Return, by number, the original's conditions on data with the copy's equal ones, and the names in them.

        Conditions that follow from the copy's iterations are left out. Return None if the two have different ones.
        """
        s, c, asked = alike.original, alike.copy, list(alike.matched_conditions())
        found: list[tuple[int, int, Names]] = []
        for m, ((k, part, wanted), mine) in enumerate(zip(asked, c.data_conditions, strict=False)):
            names = alike.same(part, mine.cond)
            if names is not None and wanted == mine.value:
                found.append((k, m, names))
        if not len(found) == len(asked) == len(c.data_conditions):
            if any(not depends_on_data(self.before, a) for a in (*s.data_conditions, *c.data_conditions)):
                raise Unprovable(str(s.unknown if s.unknown is not None else c.unknown))
            return None
        for k, m, _ in found:
            if has_own_statement(s, k) != has_own_statement(c, m):
                condition = expression_text(s.data_conditions[k].full_condition)
                raise Unprovable(f"condition {condition} cannot be analysed, apart from what it decides")
        return found

    def condition_map(self, mine: Statement, c: Statement, s: Statement, theirs: Statement) -> isl.Map:
        """Return { the copy's evaluation[iteration] -> the original's[iteration] : it decides on the same }."""
        (outer, inner) = (
            isl.Map(f"{space.prefix}{{ {space.instance(a)} -> {space.instance(b)} }}")
            for space, a, b in ((self.after.space, mine, c), (self.before.space, theirs, s))
        )
        return outer.apply_range(self.at[c.name]).apply_range(inner.reverse())


def depends_on_data(original: Scop, a: DataCondition) -> bool:
    """Tell whether the condition may be true or false in one iteration at one size.

    No rewriting can then have decided it.
    """
    named = {v.name for v in original.codelet.locals} - original.space.nest.known.keys()
    return any(
        isinstance(n, Load) or (isinstance(n, Var) and (not is_integer(n.dtype) or n.name in named))
        for n in walk(a.cond)
    )


def _read(names: Names, target: Var | Load) -> Names:
    """Those that say which element is assigned: that a local is assigned does not read it."""
    return frozenset() if isinstance(target, Var) else names


def with_sizes(codelet: Codelet, sizes: Mapping[str, int]) -> Codelet:
    """Return the codelet with the integer parameters in ``sizes`` as constants, but for those that it assigns."""
    assigned = {n.target.name for n in walk(codelet.body) if isinstance(n, Assign) and isinstance(n.target, Var)}
    given = (p for p in codelet.params if isinstance(p, Scalar) and is_integer(p.dtype) and p.name in sizes)
    known: dict[str, Expr] = {p.name: Const(sizes[p.name], p.dtype) for p in given if p.name not in assigned}
    constant = substitute(codelet, known)
    return replace(constant, params=tuple(p for p in constant.params if p.name not in known))


def array_names(n: Assign) -> set[str]:
    """Return the arrays that an assignment reads and writes."""
    return {e.array for e in walk(n) if isinstance(e, Load)}


def _numbered(codelet: Codelet, of: dict[str, str]) -> Codelet:
    """Every assignment with a name of its own; ``of`` gets what it was called."""

    def rule(n: Node) -> Node | None:
        match n:
            case Assign(name=name):
                of[f"{name}_{len(of)}"] = name
                return replace(n, name=next(reversed(of)))
        return None

    return replace(codelet, body=rewrite(rule, codelet.body))


def _at(before: Scop, after: Scop, copy: str, statement: str) -> isl.Map:
    s, c = before.statements[statement], after.statements[copy]
    if any(isinstance(f, While) for f in (*s.loops, *c.loops)):
        raise Unprovable("a while loop cannot be analysed")
    at = [after.space.nest.affine(e, c.dims) for e in c.assign.instance]
    if None in at or len(at) != len(s.dims):
        raise Unprovable(f"which iteration of {statement} a copy runs is not affine")
    everywhere = isl.Map(f"{after.space.prefix}{{ {after.space.instance(c)} -> {s.name}[{', '.join(map(str, at))}] }}")
    return everywhere.intersect_domain(after.space.domain(copy))
