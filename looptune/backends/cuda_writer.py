"""Statements and expressions of a kernel, as Numba compiles them for a GPU.

Loops are ``while`` loops with unsigned 32-bit counters and arrays are flat with unsigned 32-bit indices, because NVVM
then unrolls and schedules them as nvcc does (signed or 64-bit indices cost up to three times on a matrix product). A
value that may be negative keeps 64 signed bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, groupby

from looptune.backends.cuda_team import Strided, Within
from looptune.backends.repeated import PLACE, once
from looptune.backends.text import HELPERS, LEVEL, enclosed, ident, never_negative
from looptune.ir import Assign, Bin, Const, Expr, Load, Loop, Stmt, Var
from looptune.plans import Plan
from looptune.simplify import add, mul

HOST = "host_"
"""What the names of helpers open with that the launching function calls."""


class CudaWriter(Strided):
    """``unsigned`` are the variables that hold a uint32."""

    def __init__(self, plan: Plan, unsigned: set[str]) -> None:
        super().__init__(unsigned)
        self.plan = plan
        self.unsigned = set(unsigned)
        self.tiles: frozenset[str] = frozenset()
        self.made = 0
        self.taken: frozenset[str] = frozenset()

    def element(self, load: Load) -> str:
        if load.array in self.tiles:
            return f"{load.array}[{self.unsigned_index(load.index[0])}]"
        return f"{ident(load.array)}[{self.unsigned_index(self.place(load))}]"

    def place(self, load: Load) -> Expr:
        """Where an element is in its array, in elements; a single subscript says that."""
        if len(load.index) == 1:
            return load.index[0]
        array = self.plan.array(load.array)
        flat: Expr = load.index[0] if load.index else Const(0)
        for i, n in zip(load.index[1:], array.shape[1:], strict=True):
            assert n is not None, f"{load.array}: an inner extent is always declared"
            flat = add(mul(flat, n), i)
        return flat

    def block(self, body: tuple[Stmt, ...], indent: str) -> Iterator[str]:
        """Runs of assignments with what they share computed once."""
        held: list[str] = []
        for _, run in groupby(body, lambda s: isinstance(s, Assign)):
            for stmt in once(tuple(run), self.place, self.fresh):
                match stmt:
                    case Assign(Var(name), place) if name.endswith(PLACE):
                        yield f"{indent}{name} = {self.unsigned_index(place)}"
                        self.bind(name, True)
                        held.append(name)
                    case _:
                        yield from self.statement(stmt, indent)
        for name in held:
            self.unbind(name)
        if not body:
            yield f"{indent}pass"

    def fresh(self, ending: str) -> str:
        self.made = next(k for k in count(self.made + 1) if f"v{k}{ending}" not in self.taken)
        return f"v{self.made}{ending}"

    def unsigned_index(self, e: Expr) -> str:
        match e:
            case Const(n):
                return str(int(n))
            case Var(name) if name in self.unsigned:
                return ident(name)
        return f"uint32({self.index(e)})"

    def index(self, e: Expr, level: int = 0) -> str:
        """``e`` modulo 2**32: sums and products need no sign."""
        match e:
            case Const(n):
                return str(int(n))
            case Var(name):
                return ident(name)
            case Bin("+" | "-" | "*" as op, lhs, rhs):
                own = LEVEL[op]
                return enclosed(f"{self.index(lhs, own)} {op} {self.index(rhs, own + 1)}", own, level)
        return self.bound(e, level)

    def wide_variable(self, name: str) -> str:
        return f"int64({ident(name)})" if name in self.unsigned else ident(name)

    def loop(
        self, loop: Loop, indent: str, lane: str = "", lanes: int = 1, within: Within | None = None
    ) -> Iterator[str]:
        var = ident(loop.var)
        unsigned = never_negative(loop.lo, self.nonnegative)
        kind = "uint32" if unsigned else "int64"
        yield f"{indent}{var} = {kind}({self.start(loop, lane)})"
        end = self.limit(loop, unsigned)
        if not isinstance(loop.hi, (Const, Var)):
            yield f"{indent}{var}__end = {end}"
            end = f"{var}__end"
        self.bind(loop.var, unsigned)
        yield f"{indent}while {var} < {end}:"
        yield from within(indent + "    ") if within else self.block(loop.body, indent + "    ")
        yield f"{indent}    {var} = {kind}({var} + {loop.step * lanes})"
        self.unbind(loop.var)

    def range_of(self, loop: Loop) -> tuple[str, str, str]:
        unsigned = never_negative(loop.lo, self.nonnegative)
        kind = "uint32" if unsigned else "int64"
        return kind, f"{kind}({self.bound(loop.lo)})", self.limit(loop, unsigned)

    def start(self, loop: Loop, counter: str) -> str:
        """The value of the variable after ``counter`` steps, "" being none."""
        if not counter:
            return self.bound(loop.lo)
        scaled = counter if loop.step == 1 else f"{counter} * {loop.step}"
        return scaled if loop.lo == Const(0, loop.dtype) else f"{self.bound(loop.lo, LEVEL['+'])} + {scaled}"

    def limit(self, loop: Loop, unsigned: bool) -> str:
        """The upper bound; one that may be negative is raised to the lower one before it becomes unsigned."""
        if not unsigned:
            return f"int64({self.bound(loop.hi)})"
        if never_negative(loop.hi, self.nonnegative):
            return self.unsigned_index(loop.hi) if not isinstance(loop.hi, Const) else f"uint32({self.bound(loop.hi)})"
        return f"uint32(max({self.bound(loop.lo)}, {self.bound(loop.hi)}))"

    def bind(self, var: str, unsigned: bool) -> None:
        if unsigned:
            self.unsigned.add(var)
            self.nonnegative.add(var)

    def unbind(self, var: str) -> None:
        self.unsigned.discard(var)
        self.nonnegative.discard(var)

    def condition(self, e: Expr) -> str:
        match e:
            case Bin("<" | "<=" | ">" | ">=" | "==" | "!=" as op, lhs, rhs) if self.same_sign(lhs) and self.same_sign(
                rhs
            ):
                return f"{self.unsigned_index(lhs)} {op} {self.unsigned_index(rhs)}"
        return super().condition(e)

    def same_sign(self, e: Expr) -> bool:
        """A size, a counter or a constant that an unsigned comparison may use as it is."""
        return (isinstance(e, Var) and e.name in self.unsigned) or (
            isinstance(e, Const) and e.dtype == "int32" and e.value >= 0
        )


class HostWriter(CudaWriter):
    """Sizes, bounds and conditions in plain Python: a device function cannot be called there."""

    def helper(self, name: str) -> str:
        return HOST + super().helper(name)


def host_helper(name: str) -> str:
    return HELPERS[name].replace(name, HOST + name)
