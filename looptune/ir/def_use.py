"""Uses and definitions of locals: the smallest block that writes a local before it reads it on every pass.

For an array this is the body of the innermost loop around all its uses each iteration of which has its own copy. A
local declared in such a block is private to each iteration of the loops around it, and to each thread.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from looptune.ir.nodes import (
    Array,
    Assign,
    Codelet,
    Const,
    Expr,
    If,
    Load,
    Local,
    Loop,
    Scalar,
    Stmt,
    Unary,
    Var,
    While,
)
from looptune.ir.rewrite import conjuncts, has_load, walk, walk_stmts
from looptune.ir.simplify import is_integer


def referenced_names(stmts: Iterable[Stmt]) -> set[str]:
    """Return every scalar and array named in the statements, loop variables included."""
    found: set[str] = set()
    for node in walk(tuple(stmts)):
        if isinstance(node, Var):
            found.add(node.name)
        elif isinstance(node, Load):
            found.add(node.array)
        elif isinstance(node, Loop):
            found.add(node.var)
    return found


def declared_names(codelet: Codelet) -> set[str]:
    """Return the names of the codelet's parameters, locals and loop variables."""
    loops = {f.var for f in walk_stmts(codelet.body) if isinstance(f, Loop)}
    return {v.name for v in (*codelet.params, *codelet.locals)} | loops


def integer_parameters(codelet: Codelet) -> list[str]:
    """Return the names of the parameters that are integers, in the order of the declaration."""
    return [p.name for p in codelet.params if isinstance(p, Scalar) and is_integer(p.dtype)]


def take_name(name: str, taken: set[str]) -> str:
    """Return ``name``, or the first of ``name1``, ``name2``, ... that is not taken, and add it to ``taken``."""
    free = next(c for k in range(len(taken) + 1) if (c := f"{name}{k or ''}") not in taken)
    taken.add(free)
    return free


def target_name(target: Var | Load) -> str:
    """Return the scalar or array that an assignment writes."""
    return target.name if isinstance(target, Var) else target.array


def written_names(stmts: Iterable[Stmt]) -> set[str]:
    """Return the scalars and arrays the statements assign."""
    return {target_name(n.target) for n in walk_stmts(tuple(stmts)) if isinstance(n, Assign)}


def continuing_condition(loop: Loop) -> Expr | None:
    """Return the condition of scalars without which neither this iteration nor a later one does anything, or None.

    It is the condition around the whole body, which the body itself changes: a loop of one thread may end there.

        for (j = 0; j < m; j++) if (on) { …; if (c) on = 0; }
    """
    match loop.body:
        case (If(cond, then, ()),) if loop.mode != "parallel":
            names = names_in(cond)
            scalars = not has_load(cond)
            return cond if scalars and loop.var not in names and names & written_names(then) else None
    return None


def share_conditions(stmts: Iterable[Stmt]) -> tuple[Stmt, ...]:
    """Merge neighbouring statements under the same condition, unless one of them changes it.

    if (n > 0) x[0] = 1;  if (n > 0) x[1] = 1;     ==>     if (n > 0) { x[0] = 1; x[1] = 1; }
    """
    groups: list[list[Stmt]] = []
    for stmt in stmts:
        if groups and _share_a_condition(groups[-1][-1], stmt):
            groups[-1].append(stmt)
        else:
            groups.append([stmt])
    return tuple(group[0] if len(group) == 1 else _under_one_condition(group) for group in groups)


def _share_a_condition(first: Stmt, then: Stmt) -> bool:
    """Both stand under one condition on scalars that ``first`` does not assign."""
    match first, then:
        case If(cond, body, ()), If(same, _, ()) if cond == same:
            return not has_load(cond) and not names_in(cond) & written_names(body)
    return False


def _under_one_condition(group: Sequence[Stmt]) -> If:
    ifs = [s for s in group if isinstance(s, If)]
    return replace(ifs[0], then=share_conditions([s for one in ifs for s in one.then]))


def assigned_targets(stmts: Iterable[Stmt]) -> set[Var | Load]:
    """Return the scalars and elements that the statements assign, as they are written."""
    return {n.target for n in walk_stmts(tuple(stmts)) if isinstance(n, Assign)}


def restrict_reductions(loop: Loop, body: tuple[Stmt, ...]) -> Loop:
    """Return the loop with fewer statements in its body.

    Its reductions are restricted to what is still assigned there.
    """
    made = assigned_targets(body)
    return replace(loop, body=body, reductions=tuple(r for r in loop.reductions if r.target in made))


def read_names(stmts: Iterable[Stmt]) -> set[str]:
    """Return the scalars and arrays whose value the statements use."""
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


def affected_names(stmts: tuple[Stmt, ...], names: Iterable[str]) -> set[str]:
    """Return the names, and those of all scalars and arrays whose values may depend on theirs, in whatever order."""
    found, before = set(names), -1
    while len(found) > before:
        before = len(found)
        for stmt in walk_stmts(stmts):
            match stmt:
                case Assign(target):
                    uses = read_names((stmt,))
                    found |= {target_name(target)} if uses & found else set()
                case Loop(body=body) | While(body=body):
                    found |= written_names(body) if _decided_by(stmt, found) else set()
                case If(_, then, other):
                    found |= written_names((*then, *other)) if _decided_by(stmt, found) else set()
    return found


def _decided_by(stmt: Loop | While | If, names: set[str]) -> bool:
    """Return whether the values of the names decide what the statement runs."""
    condition = (stmt.lo, stmt.hi) if isinstance(stmt, Loop) else stmt.cond
    return not names.isdisjoint(names_in(condition))


def names_in(expr: object) -> set[str]:
    """Return the names of the variables and arrays in the expression."""
    return {n.name if isinstance(n, Var) else n.array for n in walk(expr) if isinstance(n, (Var, Load))}


MOST_OWN_BYTES = 4096
"""Of a local array that every thread has for itself: so much memory times all the threads a GPU runs is 1 GB."""


def private_bytes(local: Local) -> int | None:
    """Return the size of a local array, or None where it is not constant.

    >>> private_bytes(Local("h", "float32", (Const(3), Const(5))))
    60
    """
    total = 1 if local.dtype == "bool" else int(local.dtype.lstrip("uintfloa")) // 8
    for extent in local.shape:
        if not isinstance(extent, Const):
            return None
        total *= int(extent.value)
    return total


def can_be_private(local: Local) -> bool:
    """Tell whether a local array may have a copy in each thread."""
    size = private_bytes(local) if local.shape else None
    return size is not None and size <= MOST_OWN_BYTES


def privatizable_arrays(body: Iterable[Stmt], arrays: Iterable[str], around: Iterable[str] = ()) -> set[str]:
    """Return the ``arrays`` that ``body`` uses only inside loops that own them.

    The arrays ``around`` are owned by a loop around the body.
    """
    left = set(arrays) & referenced_names(body)
    return left - (_outside_owners(tuple(body)) - set(around)) if left else left


def _outside_owners(body: tuple[Stmt, ...]) -> set[str]:
    """Return the names that are used outside the loops that own them."""
    found: set[str] = set()
    for stmt in body:
        match stmt:
            case Loop(_, lo, hi, inner):
                found |= names_in((lo, hi)) | (_outside_owners(inner) - set(stmt.private_arrays))
            case While(cond, inner):
                found |= names_in(cond) | _outside_owners(inner)
            case If(cond, then, other):
                found |= names_in(cond) | _outside_owners((*then, *other))
            case Assign():
                found |= referenced_names((stmt,))
    return found


def is_dead_store(assign: Assign, loop: Loop) -> bool:
    """Return whether only the last iteration of ``loop`` makes the final value of ``assign``, and none reads it.

    This holds if the target does not vary with the loop and is not read in it.

    >>> from looptune.ir.nodes import Binary, Const
    >>> i, t, s = Var("i"), Var("t"), Var("s")
    >>> last, total = Assign(t, i), Assign(s, Binary("+", s, i))
    >>> [is_dead_store(s, Loop("i", Const(0), Var("n"), (s,))) for s in (last, total)]
    [True, False]
    """
    changed = {loop.var} | written_names(loop.body)
    index = assign.target.index if isinstance(assign.target, Load) else ()
    return not names_in(index) & changed and target_name(assign.target) not in read_names(loop.body)


def is_defined_before_use(block: tuple[Stmt, ...], name: str) -> bool:
    """Return whether ``block`` refers to scalar ``name`` and every pass that reads it assigns it before.

    >>> from looptune.ir.nodes import Const
    >>> t, n = Var("t"), Var("n")
    >>> maybe = Loop("i", Const(0), n, (Assign(t, Const(1)),))
    >>> is_defined_before_use((maybe, maybe), "t"), is_defined_before_use((maybe, Assign(n, t)), "t")
    (True, False)
    """
    return name not in upward_exposed_uses(block) and name in referenced_names(block)


def upward_exposed_uses(block: tuple[Stmt, ...]) -> set[str]:
    """Return the names that ``block`` may read before it is sure to have assigned them.

    What is assigned under a condition is sure to have a value under the same condition later, as copies that ``jam``
    makes of ``t = e; use(t)`` have: ``if (c) t = e; ... if (c) use(t)``.
    """
    return _first_uses(block, {})[0]


Conditional = dict[frozenset[Expr], frozenset[str]]
"""The names that are sure to have a value wherever all of some conditions hold."""


def _first_uses(block: tuple[Stmt, ...], assigned: Conditional) -> tuple[set[str], Conditional]:
    """Return the names that may be read first, and those that have a value afterwards.

    ``assigned`` are those that have a value before.
    """
    first_read: set[str] = set()
    for stmt in block:
        written = assigned.get(frozenset(), frozenset())
        kept = _unchanged(assigned, stmt)
        match stmt:
            case Assign(target, value):
                index = target.index if isinstance(target, Load) else ()
                first_read |= names_in((value, index)) - written
                assigned = _with_names(kept, (), {target.name} if isinstance(target, Var) else set())
            case Loop(var, lo, hi, body):
                outside = {c: names for c, names in kept.items() if not c or var not in names_in(tuple(c))}
                first_read |= (names_in((lo, hi)) | _first_uses(body, outside)[0]) - written
                assigned = kept
            case If(cond, then, other):
                first_read |= names_in(cond) - written
                assigned = kept
                surely: list[frozenset[str]] = []
                for holds, branch in ((conjuncts(cond), then), ([Unary("!", cond)], other)):
                    held = _assuming(kept, holds)
                    reads, after = _first_uses(branch, held)
                    first_read |= reads
                    surely.append(after.get(frozenset(), frozenset()))
                    for conditions, names in after.items():
                        new = names - held.get(conditions, frozenset())
                        if new and not names_in((*holds, *conditions)) & written_names((stmt,)):
                            assigned = _with_names(assigned, (*holds, *conditions), new)
                assigned = _with_names(assigned, (), surely[0] & surely[1])
            case While(cond, body):
                first_read |= (names_in(cond) | _first_uses(body, kept)[0]) - written
                assigned = kept
    return first_read, assigned


def _unchanged(assigned: Conditional, stmt: Stmt) -> Conditional:
    """Return what is assigned under conditions that the statement does not change."""
    if not any(assigned):
        return assigned
    changed = written_names((stmt,))
    return {c: names for c, names in assigned.items() if not c or not names_in(tuple(c)) & changed}


def _assuming(assigned: Conditional, holds: Iterable[Expr]) -> Conditional:
    """Return what has a value where some of the conditions hold."""
    known, found = frozenset(holds), Conditional()
    for conditions, names in assigned.items():
        found[conditions - known] = found.get(conditions - known, frozenset()) | names
    return found


def _with_names(assigned: Conditional, conditions: Iterable[Expr], names: Collection[str]) -> Conditional:
    """Return ``assigned`` and that these names have a value under these conditions."""
    if not names:
        return assigned
    under = frozenset(conditions)
    return {**assigned, under: assigned.get(under, frozenset()).union(names)}


def locals_declared_in(block: tuple[Stmt, ...], candidates: set[str]) -> set[str]:
    """Return the ``candidates``, all private to ``block``, that belong into no smaller block inside."""
    inside = [(s, referenced_names((s,))) for s in block] if candidates else []
    users = {name: [s for s, used in inside if name in used] for name in candidates}
    return {name for name, where in users.items() if len(where) != 1 or not _fits(where, name)}


def _fits(users: list[Stmt], name: str) -> bool:
    match users[0]:
        case Loop(_, lo, hi, body):
            return name not in names_in((lo, hi)) and (
                is_defined_before_use(body, name) or bool(privatizable_arrays(users, {name}))
            )
        case If(cond, then, other):
            inside = [b for b in (then, other) if name in referenced_names(b)]
            private = all(is_defined_before_use(b, name) or bool(privatizable_arrays(b, {name})) for b in inside)
            return name not in names_in(cond) and private
        case _:
            return False


def stride_parameters(array: Array | Local) -> set[str]:
    """Return the parameters that the strides of an array are computed from: every extent but the first."""
    return {n.name for n in walk(tuple(e for e in array.shape[1:] if e is not None)) if isinstance(n, Var)}
