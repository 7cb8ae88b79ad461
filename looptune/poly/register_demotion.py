"""Register demotion: replace registers by the array elements that they hold, and check that holding changes nothing.

    C_r = C[i][j]                                  load    a copy of no original assignment
    for k: C_r += A[i][k] * B[k][j]       ==>      for k: C[i][j] += A[i][k] * B[k][j]
    C[i][j] = C_r                                  store   where the loop assigns the register

    m_r = 0                                        an original, which assigns the register before anything uses it
    for i: m_r += A[i][j]                 ==>      m[j] = 0; for i: m[j] += A[i][j]
    m[j] = m_r                                     store   nothing assigns the register after it

This is correct if the register is used nowhere else, its index does not change in the loop, nothing in the loop
accesses the element in another way while one of the two writes, and the register is loaded (or stored) exactly when the
loop uses (or writes) it: load and store may be under a condition. Nested registers are replaced from the outermost
inwards; until all are checked, each is an array of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import takewhile

import islpy as isl

from looptune.ir.def_use import names_in, written_names
from looptune.ir.nodes import Assign, Codelet, Expr, If, Load, Loop, Node, Stmt, Var, While
from looptune.ir.rewrite import has_load, rewrite, walk, walk_stmts
from looptune.poly.access import Access, accesses, memory
from looptune.poly.condition_instances import separate_conditions
from looptune.poly.dependence import conflict
from looptune.poly.domain import Statement, scan
from looptune.poly.instance_maps import Unprovable
from looptune.poly.isl_objects import Space

_MOVE = "_move"
"""What the names of loads and stores begin with; the originals are called S0, S1, ..."""


class RegisterMismatch(Exception):
    """A register does not do what its element would; never leaves ``poly``."""


@dataclass(frozen=True, slots=True)
class _Register:
    """``load`` and ``store`` name the assignments around the loop, ``inside`` those in it, ``depth`` its loops around.

    ``array`` holds the element outside; ``scalar``: it is a local of no dimension. A ``store`` of "" is none.
    ``first_assignment``: what is called the load is an original assignment, and one of those inside.
    """

    name: str
    array: str
    index: tuple[Expr, ...]
    scalar: bool
    load: str
    store: str
    inside: frozenset[str]
    depth: int
    first_assignment: bool = False


def demote_registers(codelet: Codelet) -> Codelet:
    """Return the codelet with every register replaced by its array element.

    Raises RegisterMismatch if that changes the result.
    """
    if all(s.name for s in walk_stmts(codelet.body) if isinstance(s, Assign)):
        return codelet
    called: dict[str, str] = {}
    named = _named(codelet.body, called)
    loaded = {s.target.name for s in walk_stmts(named) if isinstance(s, Assign) and isinstance(s.target, Var)
              and not called[s.name]}  # fmt: skip
    opened = _Opening({v.name for v in codelet.locals if not v.shape}, _uses(codelet.body), loaded)
    body = opened.block(named, 0)
    if not opened.registers:
        return codelet
    _check(replace(codelet, body=body), opened.registers)
    for move in (s for r in opened.registers for s in ("" if r.first_assignment else r.load, r.store) if s):
        del called[move]
    return replace(codelet, body=_restored(body, called, {r.name: r for r in opened.registers}))


def _named(body: tuple[Stmt, ...], called: dict[str, str]) -> tuple[Stmt, ...]:
    """Every assignment with a name of its own; ``called`` gets what it was, "" where it is no original's copy."""

    def rule(n: Node) -> Node | None:
        match n:
            case Assign(name=name):
                own = f"{name if name else _MOVE}_{len(called)}"
                called[own] = name
                return replace(n, name=own)
        return None

    return rewrite(rule, body)


def _uses(body: tuple[Stmt, ...]) -> Mapping[str, int]:
    found: dict[str, int] = {}
    for n in walk(body):
        if isinstance(n, Var):
            found[n.name] = found.get(n.name, 0) + 1
    return found


@dataclass(slots=True)
class _Opening:
    """Takes registers out of a tree: their elements become elements of arrays of the registers' names."""

    locals: set[str]
    uses: Mapping[str, int]
    loaded: set[str]
    """Those that a move fills."""
    registers: list[_Register] = field(default_factory=list)
    stores: set[str] = field(default_factory=set)

    def block(self, body: tuple[Stmt, ...], depth: int) -> tuple[Stmt, ...]:
        out: list[Stmt] = []
        for k, stmt in enumerate(body):
            match stmt:
                case Assign(Load() as element, Var(r), name=name) if name.startswith(_MOVE) and r in self.locals:
                    body = body if r in self.loaded else self.without_first_assigned(body, k, r, element, depth)
        for k, stmt in enumerate(body):
            match stmt:
                case Loop() as loop:
                    for load in self.loads(body[:k]):
                        loop = self.opened(load, loop, body[k + 1 :], depth)
                    out.append(replace(loop, body=self.block(loop.body, depth + 1)))
                case While(_, inner):
                    out.append(replace(stmt, body=self.block(inner, depth + 1)))
                case If(_, then, other):
                    yes, no = (self.block(b, depth) for b in (then, other))
                    out.append(replace(stmt, then=yes, other=no))
                case Assign():
                    out.append(stmt)
        return tuple(out)

    def loads(self, before: tuple[Stmt, ...]) -> list[Assign]:
        """Return the assignments right before a loop that fill a register, and empty none of a loop before."""
        found: list[Assign] = []
        for stmt in reversed(before):
            moves = _moves_in(stmt)
            if not moves or not all(self.fills(m) for m in moves):
                break
            found += reversed(moves)
        return found

    def fills(self, move: Assign) -> bool:
        match move:
            case Assign(Var(r), Load() | Var(), name=name):
                return r in self.locals and name not in self.stores
        return False

    def without_first_assigned(
        self, body: tuple[Stmt, ...], at: int, name: str, element: Load, depth: int
    ) -> tuple[Stmt, ...]:
        """Return the block without a register that one of its statements assigns first and the one ``at`` stores."""
        uses = [sum(isinstance(n, Var) and n.name == name for n in walk(s)) for s in body]
        first = next(k for k, count in enumerate(uses) if count)
        begin, store = body[first], body[at]
        assert isinstance(store, Assign)
        if not isinstance(begin, Assign) or begin.target != store.value or name in names_in(begin.value):
            raise RegisterMismatch(f"the register {name} is used before it is assigned")
        if self.uses[name] != sum(uses):
            raise RegisterMismatch(f"the register {name} is used outside the block it is for")
        if name in written_names(body[at + 1 :]):
            raise RegisterMismatch(f"the register {name} is assigned after it is stored")
        last = max(k for k, count in enumerate(uses) if count)
        between = tuple(s for s in body[first : last + 1] if s is not store)
        if names_in(element.index) & (
            {f.var for f in walk_stmts(between) if isinstance(f, Loop)} | written_names(between)
        ):
            raise RegisterMismatch(f"the index of the element in the register {name} changes before it is stored")
        held = Load(name, element.index, element.dtype)
        inside = frozenset(s.name for s in walk_stmts(between) if isinstance(s, Assign))
        self.stores.add(store.name)
        self.registers.append(
            _Register(
                name, element.array, element.index, False, begin.name, store.name, inside, depth, first_assignment=True
            )
        )
        return tuple(
            s if s is store else rewrite(lambda n: held if isinstance(n, Var) and n.name == name else None, s)
            for s in body
        )

    def opened(self, load: Assign, loop: Loop, after: tuple[Stmt, ...], depth: int) -> Loop:
        name, element = load.target, load.value
        assert isinstance(name, Var)
        assert isinstance(element, (Load, Var))
        store = _store(after, name.name, element)
        self.stores |= {store.name} if store is not None else set()
        here = sum(isinstance(n, Var) and n.name == name.name for n in walk(loop))
        if self.uses[name.name] != here + 1 + (store is not None):
            raise RegisterMismatch(f"the register {name.name} is used outside the loop it is for")
        scalar, index = isinstance(element, Var), () if isinstance(element, Var) else element.index
        changing = {f.var for f in walk_stmts(loop) if isinstance(f, Loop)} | written_names(loop.body)
        if names_in(index) & changing:
            raise RegisterMismatch(f"the index of the element in the register {name.name} changes in its loop")
        array = element.name if isinstance(element, Var) else element.array
        held = Load(name.name, index, name.dtype)
        inside = frozenset(s.name for s in walk_stmts(loop) if isinstance(s, Assign))
        self.registers.append(_Register(
            name.name, array, index, scalar, load.name, store.name if store is not None else "", inside, depth
        ))  # fmt: skip
        return rewrite(lambda n: held if isinstance(n, Var) and n.name == name.name else None, loop)


def _moves_in(stmt: Stmt) -> tuple[Assign, ...]:
    """Return the loads and stores that the statement is or, under a condition, consists of.

    None where it is another.
    """
    match stmt:
        case Assign(name=name) if name.startswith(_MOVE):
            return (stmt,)
        case If(cond, then, ()) if not has_load(cond):
            inside = [_moves_in(s) for s in then]
            return tuple(m for mine in inside for m in mine) if all(inside) else ()
    return ()


def _store(after: tuple[Stmt, ...], register: str, element: Load | Var) -> Assign | None:
    """Return the assignment right after the loop that puts the register back into the element."""
    for moves in takewhile(bool, map(_moves_in, after)):
        for move in moves:
            if move.target == element and isinstance(move.value, Var) and move.value.name == register:
                return move
    return None


def _check(codelet: Codelet, registers: Iterable[_Register]) -> None:
    nest = separate_conditions(scan(codelet))
    unknown = next(
        (s.unknown for s in nest.statements.values() if s.unknown is not None and not s.unknown.condition), None
    )
    if unknown is not None:
        raise Unprovable(str(unknown))
    storage = memory(codelet)
    space = Space(nest, {s.name: accesses(s, nest, storage) for s in nest.statements.values()})
    for r in registers:
        inside = {s.name for s in nest.statements.values() if s.name in r.inside or _asked_in(r, s)}
        written_in = {s for s in inside for a in space.accesses[s] if a.array == r.name and a.write}
        used_in = {s for s in inside for a in space.accesses[s] if a.array == r.name}
        if written_in and not r.store:
            raise RegisterMismatch(f"the register {r.name} is assigned and never stored")
        _covered(space, r, (r.load,), used_in, "is loaded where it is not used")
        _covered(space, r, used_in, (r.load,), "is used where it is not loaded")
        if r.store:
            _covered(space, r, (r.store,), written_in, "is stored where it is not assigned")
            _covered(space, r, written_in, (r.store,), "is assigned where it is not stored")
        # The element; what conditions and subscripts read comes after it.
        load = space.accesses[r.store][0] if r.first_assignment else space.accesses[r.load][1]
        for a in (a for s in sorted(inside) for a in space.accesses[s] if a.array == r.array):
            if (written_in or a.write) and _meets(space, r, load, a):
                raise RegisterMismatch(f"{a.text} at {a.span} touches the element that is in the register {r.name}")


def _asked_in(r: _Register, s: Statement) -> bool:
    """Tell whether a condition on data is evaluated in the register's loop, not before it."""
    return s.is_condition in r.inside and len(s.loops) > r.depth


def _covered(space: Space, r: _Register, made: Iterable[str], by: Iterable[str], what: str) -> None:
    """Whenever one of those ``made`` runs, one of the others does in the same iteration of the loops around.

    Or may run: what is stored where data decide against it is what was there, and nobody else is at work on it.
    """
    others = [_around(space, s, r.depth) for s in by]
    if any(not reduce(isl.Set.subtract, others, _around(space, s, r.depth)).is_empty() for s in made):
        raise RegisterMismatch(f"the register {r.name} {what}")


def _around(space: Space, statement: str, depth: int) -> isl.Set:
    """Return { [iteration of the outermost ``depth`` loops] : the statement runs, or may run }."""
    domain = space.domain(statement)
    inner = domain.dim(isl.dim_type.set) - depth
    return domain.project_out(isl.dim_type.set, depth, inner).reset_tuple_id()


def _meets(space: Space, r: _Register, load: Access, a: Access) -> bool:
    """Tell whether the access is of the element that was loaded in the same iteration of the loops around."""
    same = conflict(space, load, a)
    for d in range(r.depth):
        same = same.equate(isl.dim_type.in_, d, isl.dim_type.out, d)
    if not same.is_empty() and (None in a.index or None in load.index):
        raise Unprovable(f"{a.text} at {a.span} may be the element in the register {r.name}")
    return not same.is_empty()


def _restored(
    body: tuple[Stmt, ...], called: Mapping[str, str], registers: Mapping[str, _Register]
) -> tuple[Stmt, ...]:
    """Return the assignments ``called`` something, by that, each register's element being where it is outside."""

    def rule(n: Node) -> Node | tuple[Node, ...] | None:
        match n:
            case If(_, (), ()):
                return ()
            case Assign(name=name):
                return replace(n, name=called[name]) if name in called else ()
            case Load(array, index, dtype) if array in registers:
                r = registers[array]
                while r.array in registers:
                    r = registers[r.array]
                return Var(r.array, dtype) if r.scalar else Load(r.array, index, dtype, span=n.span)
        return None

    return rewrite(rule, body)
