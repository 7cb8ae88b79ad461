"""The statements of a thread that keeps the elements that it owns through a loop.

A_0_0__kept, A_0_1__kept     the elements of A that the thread holds in registers
A_held__kept[...]            those of its last rows, in shared memory
operand1__kept[...]          what all threads of a block read along one dimension: gathered once in each iteration

The conditions of an assignment are affine in the place. For all elements of a thread together, they are evaluated at
the corners of its rectangle: where none can hold nothing is done, and where all hold no element evaluates one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import count
from typing import TYPE_CHECKING, TypeGuard

from looptune.ir.def_use import names_in
from looptune.ir.intervals import affine_terms
from looptune.ir.nodes import Assign, Binary, Call, Cast, Const, Expr, If, Load, Loop, Node, Select, Stmt, Unary, Var
from looptune.ir.rewrite import conjunction, disjunction, has_load, map_children, rewrite, substitute, walk
from looptune.ir.simplify import add, div, mod, mul
from looptune.lower.passes.resident_tiling import keep_resident
from looptune.lower.passes.temporal_tile_bodies import every
from looptune.lower.resident_tiles import (
    FLAT_THREAD,
    NOW,
    OwnedStatement,
    ResidentBody,
    ResidentTile,
    SharedArray,
    corner,
    home,
    is_own,
    operand_name,
    place,
    stride,
)
from looptune.lower.temporal_tiles import POINT, Cell, thread_number

if TYPE_CHECKING:
    from looptune.lower.plan import Kernel, Plan


def allocate_resident(kernel: Kernel, plan: Plan) -> Kernel:
    """Return the kernel with the elements that its threads keep as locals; others as they are."""
    if kernel.resident is None:
        return kernel
    whole = keep_resident(kernel.resident.loop, plan.codelet)
    scalars = {v.name: v.dtype for v in plan.device_locals if not v.shape}

    def rule(n: Node) -> Node | None:
        return Load(n.name, (Const(0),), n.dtype) if isinstance(n, Var) and n.name in scalars else None

    statements = tuple(replace(s, value=rewrite(rule, s.value)) for s in whole.statements)
    whole = replace(whole, statements=statements)
    return replace(kernel, resident=whole, locals=(*kernel.locals, *whole.registers(plan.codelet)))


def make_resident_bodies(kernel: Kernel, plan: Plan) -> Kernel:
    """Return a kernel that keeps elements with what its threads do; others as they are."""
    if kernel.resident is None:
        return kernel
    return replace(kernel, resident_body=_Bodies(kernel.resident, plan).body())


MOST_FLAGS = 16
"""Elements along a dimension whose conditions are bits of one number."""
EachCell = Callable[[Cell], tuple[Stmt, ...]]
"""The statements for one of a thread's elements."""


@dataclass(slots=True)
class _Operand:
    """What the threads of a block read along ``dimension`` (None: of one place), and where it is needed."""

    name: str
    dtype: str
    value: Expr
    dimension: int | None
    guards: list[tuple[Expr, ...]] = field(default_factory=list)


class _Bodies:
    def __init__(self, whole: ResidentTile, plan: Plan) -> None:
        self.whole, self.plan = whole, plan
        self.rank = len(whole.extents)
        self.operands: dict[Expr, _Operand] = {}
        self.read: dict[tuple[int | None, int], dict[Var, Load]] = {}
        self.numbers = count()
        self.names = [place(d).name for d in range(self.rank)]

    def body(self) -> ResidentBody:
        compute = tuple(s for statement in self.whole.statements for s in self.computed(statement))
        gather = tuple(self.gathered())
        shared = [SharedArray(o.name, o.dtype, 1 if o.dimension is None else self.whole.shape[o.dimension])
                  for o in self.operands.values()]  # fmt: skip
        rows = self.whole.shared * self.whole.columns * self.whole.block_threads
        shared += [
            SharedArray(self.whole.shared_name(a), self.plan.array(a).dtype, rows) for a in self.whole.arrays if rows
        ]
        return ResidentBody(
            tuple(shared), self.all("load"), gather, compute, tuple(self.exchanged()), self.all("store")
        )

    # -- cells -----------------------------------------------------------------------------------------------------

    def at(self, cell: Cell) -> tuple[Expr, ...]:
        """Return the place of one of the thread's elements."""
        return tuple(self.along(d, n) for d, n in enumerate(cell[2 - self.rank :]))

    def along(self, d: int, n: int) -> Expr:
        apart: Expr = stride(d) if self.whole.cyclic else Const(self.whole.element_stride(d))
        return add(home(d), mul(Const(n), apart)) if n else home(d)

    def number(self, d: int, n: int) -> Expr:
        """Return the number of one of the thread's elements among those of the block along a dimension."""
        return add(
            mul(Var(thread_number(self.whole.along[d])), Const(self.whole.thread_stride(d))),
            Const(n * self.whole.element_stride(d)),
        )

    def element(self, array: str, cell: Cell) -> Var | Load:
        """Return the register of one of the thread's elements, or its place in shared memory."""
        dtype, name = self.plan.array(array).dtype, self.whole.register(array, cell)
        if name is not None:
            return Var(name, dtype)
        whole = self.whole
        number = (cell[0] - (whole.rows - whole.shared)) * whole.columns + cell[1]
        return Load(whole.shared_name(array), (add(FLAT_THREAD, Const(number * whole.block_threads)),), dtype)

    def inside(self, array: str) -> tuple[Expr, ...]:
        """Return the conditions that a place is inside the array."""
        shape = self.plan.array(array).shape
        return tuple(Binary("<", place(d), n) for d, n in enumerate(shape) if n is not None)

    def all(self, what: str) -> tuple[Stmt, ...]:
        """Return the loads or the stores of all elements."""
        spare = dict(self.whole.spares)
        out: list[Stmt] = []
        for array in self.whole.arrays:

            def each(cell: Cell, array: str = array) -> tuple[Stmt, ...]:
                held = self.element(array, cell)
                if what == "load":
                    return (Assign(held, Load(array, self.at(cell), held.dtype)),)
                return (Assign(Load(spare[array], self.at(cell), held.dtype), held),)

            out += self.where(self.inside(array), each)
        return tuple(out)

    # -- statements ------------------------------------------------------------------------------------------------

    def computed(self, statement: OwnedStatement) -> tuple[Stmt, ...]:
        """Return an assignment for all elements of the thread that it writes."""
        conditions = tuple(map(self.now, statement.conditions))
        value = self.now(statement.value)

        def each(cell: Cell) -> tuple[Stmt, ...]:
            return (Assign(self.element(statement.array, cell), self.value(value, cell, conditions)),)

        return self.where(conditions, each)

    def now(self, e: Expr, ahead: int = 0) -> Expr:
        """Return an expression in the int that holds the iteration, or one ``ahead`` of it."""
        return substitute(e, {self.whole.loop.var: add(NOW, Const(ahead)) if ahead else NOW})

    def value(self, e: Expr, cell: Cell, conditions: tuple[Expr, ...]) -> Expr:
        """Return a value for one of the thread's elements: registers, operands, and elements of memory."""
        env = dict(zip(self.names, self.at(cell), strict=True))

        def visit(n: Node) -> Node:
            if self.is_operand(n):
                return self.operand(n, cell, conditions)
            match n:
                case Load(array) if array in self.whole.arrays and is_own(n):
                    return self.element(array, cell)
                case Var(name) if name in env:
                    return env[name]
            return map_children(visit, n)

        made = visit(e)
        assert isinstance(made, Expr), "an expression stays one"
        return made

    def is_operand(self, n: Node) -> TypeGuard[Expr]:
        """Return whether all threads along a dimension read the expression, and may evaluate all of it."""
        loads = {x for x in walk(n) if isinstance(x, Load)}
        along = names_in(n) & set(self.names)
        several = self.rank > 1 or not along
        own = any(x.array in self.whole.arrays and is_own(x) for x in loads)
        return bool(loads) and several and len(along) < 2 and not own and loads <= set(_surely_loaded(n))

    def operand(self, e: Expr, cell: Cell, conditions: tuple[Expr, ...]) -> Var:
        d = next((k for k, name in enumerate(self.names) if name in names_in(e)), None)
        if e not in self.operands:
            self.operands[e] = _Operand(operand_name(len(self.operands)), e.dtype, e, d)
        made = self.operands[e]
        others = {name for k, name in enumerate(self.names) if k != d}
        guard = tuple(c for c in conditions if not names_in(c) & others)
        if guard not in made.guards:
            made.guards.append(guard)
        number: Expr = Const(0) if d is None else self.number(d, cell[2 - self.rank :][d])
        n = 0 if d is None else cell[2 - self.rank :][d]
        held = Var(operand_name(list(self.operands).index(e), n), made.dtype)
        self.read.setdefault((d, n), {})[held] = Load(made.name, (number,), made.dtype)
        return held

    def gathered(self) -> Iterator[Stmt]:
        """Yield what fills the operands of an iteration; what is along different dimensions, other threads fill."""
        threads, before = self.whole.block_threads, 0
        for d in (None, *range(self.rank)):
            mine = [o for o in self.operands.values() if o.dimension == d]
            if not mine:
                continue
            number, count = Var(f"number{d}{POINT}"), 1 if d is None else self.whole.shape[d]
            at: Expr = number if d is None else add(corner(d), number)
            if d is not None and self.whole.cyclic:
                n = Const(self.whole.threads[d])
                at = add(add(corner(d), mod(number, n)), mul(div(number, n), stride(d)))
            first: Expr = FLAT_THREAD
            if before % threads:
                first = mod(add(FLAT_THREAD, Const(threads - before % threads)), Const(threads))
            yield Loop(number.name, first, Const(count), tuple(self.filled(mine, number, at)), threads, "sequential")
            before += count

    def filled(self, operands: Sequence[_Operand], number: Expr, at: Expr) -> Iterator[Stmt]:
        """Yield what fills one element of each operand: first all that is loaded, which takes longest."""
        d = operands[0].dimension
        env = {} if d is None else {place(d).name: at}
        plain = (n for o in operands for n in walk(o.value) if isinstance(n, Load) and not has_load(n.index))
        held = {n: Var(f"read{next(self.numbers)}{POINT}", n.dtype) for n in dict.fromkeys(plain)}
        for load, v in held.items():
            yield Assign(v, Const(0, v.dtype))
            yield from under(tuple(substitute(c, env) for c in self.within(load)), (Assign(v, substitute(load, env)),))
        for o in operands:
            made: Expr = rewrite(lambda n: held.get(n) if isinstance(n, Load) else None, o.value)
            guards = () if () in o.guards else self.any_of(o.guards)
            asked = tuple(substitute(c, env) for c in (*self.within(made), *guards))
            yield from under(asked, (Assign(Load(o.name, (number,), o.dtype), substitute(made, env)),))

    def any_of(self, guards: Sequence[tuple[Expr, ...]]) -> tuple[Expr, ...]:
        return (disjunction(map(conjunction, guards)),)

    def within(self, e: Expr) -> tuple[Expr, ...]:
        """Return the conditions that all elements of an expression are inside their arrays."""
        found: list[Expr] = []
        for n in (n for n in walk(e) if isinstance(n, Load)):
            for at, extent in zip(n.index, self.plan.array(n.array).shape or (Const(1),), strict=True):
                if not isinstance(at, Const):
                    found.append(Binary(">=", at, Const(0)))
                found += [Binary("<", at, extent)] if extent is not None else []
        return tuple(dict.fromkeys(found))

    # -- exchange --------------------------------------------------------------------------------------------------

    def exchanged(self) -> Iterator[Stmt]:
        """Yield the stores of what other threads read in the next iteration."""
        spare = dict(self.whole.spares)
        for some in self.whole.exchanged:
            conditions = tuple(self.now(c, self.whole.loop.step) for c in some.conditions)

            def each(cell: Cell, array: str = some.array) -> tuple[Stmt, ...]:
                held = self.element(array, cell)
                return (Assign(Load(spare[array], self.at(cell), held.dtype), held),)

            yield from self.where((*conditions, *self.inside(some.array)), each)

    # -- conditions ------------------------------------------------------------------------------------------------

    def where(self, conditions: Sequence[Expr], each: EachCell) -> tuple[Stmt, ...]:
        """Return ``each`` element of the thread whose place satisfies the conditions.

        If a condition along a dimension is an equality, it is evaluated before the others.
        """
        asked = list(dict.fromkeys(conditions))
        some = tuple(dict.fromkeys(ends[0] for c in asked if (ends := self.ends(c)) is not None))
        free = tuple(c for c in asked if not names_in(c) & set(self.names))
        left = [c for c in asked if c not in free]
        decided = {self.along_one(c) for c in asked if isinstance(c, Binary) and c.op == "=="}
        equal = [d for d, name in enumerate(self.names) if name in decided]
        self.read = {}
        if self.rank == 1:
            chosen = self.nested((0,), {}, left, each)
        elif equal:
            chosen = self.flagged((equal[0], 1 - equal[0]), left, each)
        else:
            chosen = self.most_rows(left, each)
        return under((*some, *(c for c in free if c not in some)), (*self.reads(None), *chosen))

    def along_one(self, c: Expr) -> str:
        """Return the name of the place on which alone a condition depends, or ""."""
        names = names_in(c) & set(self.names)
        return min(names) if len(names) == 1 else ""

    def most_rows(self, asked: list[Expr], each: EachCell) -> tuple[Stmt, ...]:
        """Return ``each`` element; where all rows of a thread are asked for, they evaluate no condition.

        Then columns decide first, on which the lanes of a warp mostly agree. The rows of a warp are the same: where
        only some of them are asked for, which in each iteration few warps have, rows decide first.
        """
        rows = [c for c in asked if self.along_one(c) == self.names[0]]
        ends = [self.ends(c) for c in rows]
        inside = [end[1] for end in ends if end is not None and end[1] is not None]
        some = self.flagged((0, 1), asked, each)
        if len(inside) < len(rows):
            return some
        every = self.nested((1, 0), {}, [c for c in asked if c not in rows], each)
        every = (*self.reads(0), *every)
        return (If(conjunction(inside), every, some),) if inside else every

    def flagged(self, order: Sequence[int], asked: list[Expr], each: EachCell) -> tuple[Stmt, ...]:
        """Return ``each`` element; what is asked along the last dimension of ``order`` are bits of one number."""
        last, inner = order[-1], self.names[order[-1]]
        alone = [c for c in asked if self.along_one(c) == inner]
        if not alone or self.whole.each[last] > MOST_FLAGS:
            plain = self.nested(order, {}, asked, each)
            return (*self.reads(last), *plain)
        flags = Var(f"within{next(self.numbers)}{POINT}")
        bits = [Binary("<<", every(substitute(c, {inner: self.along(last, n)}) for c in alone), Const(n))
                for n in range(self.whole.each[last])]  # fmt: skip
        made = Assign(flags, reduce(lambda a, b: Binary("|", a, b), bits))
        chosen = self.nested(order, {}, [c for c in asked if c not in alone], each, flags)
        return (*self.reads(last), made, *chosen)

    def reads(self, d: int | None, n: int | None = None) -> Iterator[Stmt]:
        """Yield what puts operands along a dimension in registers: that of one element, or of all."""
        return (
            Assign(v, e) for (k, m), held in self.read.items() for v, e in held.items() if k == d and n in (None, m)
        )

    def nested(
        self, order: Sequence[int], chosen: dict[int, int], asked: Sequence[Expr], each: EachCell,
        flags: Var | None = None,
    ) -> tuple[Stmt, ...]:  # fmt: skip
        """Return ``each`` element, one dimension after the other; ``flags``: those along the last one that are asked.

        The elements that are read along the last dimension are in registers.
        """
        if not order:
            return each((chosen.get(self.rank - 2, 0), chosen[self.rank - 1]))
        d, *rest = order
        out: list[Stmt] = []
        for n in range(self.whole.each[d]):
            now = {**chosen, d: n}
            env = {self.names[k]: self.along(k, v) for k, v in now.items()}
            left = {self.names[k] for k in rest}
            here = [substitute(c, env) for c in asked if not names_in(c) & left]
            if flags is not None and not rest:
                here.append(Binary("!=", Binary("&", flags, Const(1 << n)), Const(0)))
            inside = self.nested(rest, now, [c for c in asked if names_in(c) & left], each, flags)
            ahead = tuple(self.reads(d, n)) if rest or self.rank == 1 else ()
            out += under(tuple(here), (*ahead, *inside))
        return tuple(out)

    def ends(self, c: Expr) -> tuple[Expr, Expr | None] | None:
        """Return whether a condition may hold for an element of the thread, and whether it holds for all.

        Return None if the condition is not a comparison that is affine in the place of the element.
        """
        match c:
            case Binary("<" | "<=" | ">" | ">=" | "==" as op, lhs, rhs):
                terms, _ = affine_terms(Binary("-", lhs, rhs))
            case _:
                return None
        own = {t.name: k for t, k in terms.items() if isinstance(t, Var) and t.name in self.names}
        if any(names_in(t) & set(self.names) for t in terms if not (isinstance(t, Var) and t.name in self.names)):
            return None
        last = {name: self.along(d, self.whole.each[d] - 1) for d, name in enumerate(self.names)}
        first = {name: home(d) for d, name in enumerate(self.names)}
        least = {name: first[name] if k > 0 else last[name] for name, k in own.items()}
        most = {name: last[name] if k > 0 else first[name] for name, k in own.items()}
        if op == "==":
            return Binary("&&", substitute(Binary("<=", lhs, rhs), least), substitute(Binary(">=", lhs, rhs), most)), (
                c if not own else None
            )
        below = op in ("<", "<=")
        return substitute(c, least if below else most), substitute(c, most if below else least)


def _surely_loaded(n: Node) -> Iterator[Load]:
    """Yield the elements that are loaded whatever the values are."""
    match n:
        case Load(index=index):
            yield n
            yield from (x for e in index for x in _surely_loaded(e))
        case Select(cond):
            yield from _surely_loaded(cond)
        case Binary("&&" | "||", lhs):
            yield from _surely_loaded(lhs)
        case Binary(_, lhs, rhs):
            yield from (*_surely_loaded(lhs), *_surely_loaded(rhs))
        case Unary(_, arg) | Cast(_, arg):
            yield from _surely_loaded(arg)
        case Call(_, args):
            yield from (x for e in args for x in _surely_loaded(e))


def under(conditions: tuple[Expr, ...], body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Return the statements under conditions, if there are any."""
    return (If(conjunction(conditions), body),) if conditions and body else body
