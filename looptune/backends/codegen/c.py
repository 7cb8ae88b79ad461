"""A kernel in C, in any dialect, with C's types and conversions written explicitly.

    for (unsigned int k = 0; k < 512; k += 4) {
        C_r = C_r + A[i * 512 + k] * B[k * m + j];
    }

Counters and indices of arrays are unsigned 32-bit, as in ``numba_cuda/writer``; a value that may be negative has 64
signed bits. An integer operation that may overflow uses unsigned operands, which wrap. ``close_braces`` closes the
blocks.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from looptune.backends.codegen.c_expressions import LEVEL, CValues
from looptune.backends.codegen.kernel import kernel_lines
from looptune.backends.codegen.persistent import persistent_lines
from looptune.ir.def_use import continuing_condition
from looptune.ir.intervals import never_negative
from looptune.ir.nodes import SHORT_FLOATS, Assign, Binary, Const, Expr, If, Load, Loop, Stmt, Var, While, promoted_type
from looptune.ir.rewrite import walk
from looptune.lower.signature import half_scalars, scalar_type
from looptune.lower.team import exchanged_names

if TYPE_CHECKING:
    from looptune.backends.codegen.writer import Within
    from looptune.lower.plan import FinishedPlan, Kernel, Plan

WIDTH = 110
"""Of a line of parameters."""


class CWriter(CValues):
    """A writer of one dialect of C; ``functions`` are the helpers that the kernels written so far call, by name."""

    leave = "return;"
    block_flag: ClassVar[str] = ""
    """What a kernel declares for ``any_thread``."""
    contraction_pragma: ClassVar[str] = ""
    """What a kernel opens with whose products are not to be contracted, where that is no matter of each product."""

    def __init__(self, plan: FinishedPlan, unsigned: Iterable[str] = ()) -> None:
        self.plan = plan
        self.half_parameters = half_scalars(plan)
        self.counters = set(unsigned)
        self.nonnegative = set(unsigned)
        self.most = {}
        self.kinds: dict[str, str] = dict.fromkeys(unsigned, "uint32")
        self.functions: dict[str, str] = {}
        self.assigned: dict[str, str] = {}
        self.asks = False

    @abstractmethod
    def opening(self, kernel: Kernel) -> str:
        """Return the head of a kernel up to its parameters."""

    @abstractmethod
    def array_parameter(self, dtype: str, name: str, constant: bool, restrict: bool) -> str:
        """Return the declaration of an array parameter.

        ``restrict``: while the kernel runs, the array changes through this name only.
        """

    def kernel(self, kernel: Kernel) -> str:
        """Return the complete text of a kernel."""
        kinds = {name: scalar_type(self.plan, name) for name in kernel.scalars}
        writes = kernel.writes
        exchanged = (
            writes if kernel.steps else exchanged_names(kernel.team.phases) if kernel.team is not None else set()
        )
        arrays = [self._array(a, a not in writes, a in exchanged) for a in kernel.arrays]
        scalars = [f"{self.types[kind]} {self.name(name)}" for name, kind in kinds.items()]
        body = persistent_lines(self.plan, kernel, self, self._body) if kernel.steps else self._body(kernel)
        head = list_lines(f"{self.opening(kernel)}(", [*arrays, *scalars])
        return "\n".join(close_braces([head, "{", *body, ""])) + "\n"

    def _array(self, name: str, constant: bool, exchanged: bool) -> str:
        # What other threads write is read after they have met: a compiler must not think that nobody can have.
        restrict = constant or not exchanged
        return self.array_parameter(self.plan.array(name).dtype, self.name(name), constant, restrict)

    def _body(self, kernel: Kernel) -> Iterator[str]:
        """Yield what a block does, after the variables of a thread."""
        kinds = {name: scalar_type(self.plan, name) for name in kernel.scalars}
        self.kinds = dict(kinds)
        self.assigned, self.asks = {}, False
        body = list(kernel_lines(self.plan, kernel, self))
        words = set(re.findall(r"\w+", "\n".join(body)))
        scalar = (v for v in kernel.locals if not v.shape and self.name(v.name) in words)
        variables = self.assigned | {v.name: v.dtype for v in scalar}
        own = {name: dtype for name, dtype in variables.items() if name not in kinds and name not in self.predeclared}
        flag = [f"    {self.block_flag}"] if self.asks and self.block_flag else []
        apart = [f"    {self.contraction_pragma}"] if self.contraction_pragma and kernel.no_contraction else []
        yield from (*apart, *flag, *self._declared(own), *body)

    def _declared(self, own: Mapping[str, str]) -> Iterator[str]:
        """Yield the thread's own variables, those of a type in a line."""
        for dtype in dict.fromkeys(own.values()):
            names = ", ".join(self.name(n) for n, d in own.items() if d == dtype)
            yield f"    {self.types[promoted_type(dtype)]} {names};"

    def declare(self, kind: str, name: str, value: str, *, fits: bool = False) -> str:
        return f"{self.types['int32' if kind == 'bool' else promoted_type(kind)]} {name} = {value};"

    def set(self, name: str, value: str, kind: str = "") -> str:
        return f"{name} = {value};"

    def store(self, array: str, place: str, value: str) -> str:
        return f"{array}[{place}] = {value};"

    def scope(self, indent: str) -> tuple[tuple[str, ...], str]:
        return (f"{indent}{{",), indent + "    "

    def if_(self, condition: str) -> str:
        return f"if ({condition}) {{"

    def else_(self) -> str:
        return "else {"

    def while_(self, condition: str) -> str:
        return f"while ({condition}) {{"

    def both(self, *conditions: str) -> str:
        return " && ".join(c for c in conditions if c)

    def either(self, *conditions: str) -> str:
        return " || ".join(conditions)

    def negated(self, condition: str) -> str:
        return f"!{condition}"

    def quotient(self, a: str, b: str) -> str:
        return f"{a} / {b}"

    def select(self, condition: str, a: str, b: str) -> str:
        return f"{condition} ? {a} : {b}"

    def zero(self, dtype: str) -> str:
        return "0"

    def unsigned(self, value: str) -> str:
        return value

    def nothing(self, indent: str) -> Iterator[str]:
        return iter(())

    def bind(self, var: str, unsigned: bool, loop: Loop | None = None) -> None:
        super().bind(var, unsigned, loop)
        self.kinds[var] = "uint32" if unsigned else "int64"

    def unbind(self, var: str) -> None:
        super().unbind(var)
        self.kinds.pop(var, None)

    def statement(self, stmt: Stmt, indent: str) -> Iterator[str]:
        match stmt:
            case Assign(Var(name, dtype), value) if name in self.values:
                yield indent + self.declare(dtype, name, self.value(value), fits=True)
            case Assign(target, value):
                if isinstance(target, Var):
                    self.assigned[target.name] = target.dtype
                yield f"{indent}{self.assignment(target, value)}"
            case Loop():
                yield from self.loop(stmt, indent)
            case If(cond, then, other):
                yield indent + self.if_(self.condition(cond))
                yield from self.block(then, indent + "    ")
                if other:
                    yield indent + self.else_()
                    yield from self.block(other, indent + "    ")
            case While(cond, body):
                yield indent + self.while_(self.condition(cond))
                yield from self.block(body, indent + "    ")

    def assignment(self, target: Var | Load, value: Expr) -> str:
        place = self.element(target) if isinstance(target, Load) else self.name(target.name)
        if isinstance(target, Load) and target.dtype in SHORT_FLOATS:
            return f"{place} = {self.as_half(value)};"
        match value:
            case Binary("+" | "-" | "*" | "/" as op, lhs, rhs) if lhs == target and "float" in value.dtype:
                return f"{place} {op}= {self.value(rhs)};"
        return f"{place} = {self.value(value)};"

    def loop(
        self, loop: Loop, indent: str, lane: str = "", lanes: int = 1, within: Within | None = None
    ) -> Iterator[str]:
        var, unsigned = self.name(loop.var), self.counts_unsigned(loop, lanes)
        kind = self.types["uint32" if unsigned else "int64"]
        begins, ends = f"{var} = {self.start(loop, lane, unsigned)}", self.limit(loop, unsigned)
        if not isinstance(loop.hi, (Const, Var)):
            begins, ends = f"{begins}, {var}__end = {ends}", f"{var}__end"
        self.bind(loop.var, unsigned, loop)
        following = f"{var} = {ends}" if lane and self.runs_once(loop, lanes) else f"{var} += {loop.step * lanes}"
        yield f"{indent}for ({kind} {begins}; {var} < {ends}; {following}) {{"
        on = continuing_condition(loop) if within is None and not lane else None
        if on is not None:
            yield f"{indent}    if (!({self.condition(on)})) break;"
        yield from within(indent + "    ") if within else self.block(loop.body, indent + "    ")
        self.unbind(loop.var)

    def range_of(self, loop: Loop) -> tuple[str, str, str]:
        unsigned = self.counts_unsigned(loop)
        kind = "uint32" if unsigned else "int64"
        return kind, self.start(loop, "", unsigned), self.limit(loop, unsigned)

    def start(self, loop: Loop, counter: str, unsigned: bool) -> str:
        """Return the value of the variable after ``counter`` steps; "" means none."""
        wide = counter if unsigned or loop.step == 1 else self.cast("int64", counter)
        scaled = counter if loop.step == 1 else f"{wide} * {loop.step}"
        if counter and loop.lo == Const(0, loop.dtype):
            return scaled
        least = LEVEL["+"] if counter else 0
        lo = self.unsigned_index(loop.lo, least) if unsigned else self.wide(loop.lo, least)
        return f"{lo} + {scaled}" if counter else lo

    def limit(self, loop: Loop, unsigned: bool) -> str:
        level = LEVEL["<"] + 1
        if not unsigned:
            return self.wide(loop.hi, level)
        if never_negative(loop.hi, self.nonnegative):
            return self.unsigned_index(loop.hi, level)
        return self.cast("uint32", self.least("max", "int64", self.wide(loop.lo), self.wide(loop.hi)))


def list_lines(head: str, items: Sequence[str]) -> str:
    """Return ``head`` and the items of the list that it opens, in lines of at most WIDTH characters.

    >>> list_lines("f(", ["int a", "int b"])
    'f(int a, int b)'
    """
    lines = [head]
    for k, item in enumerate(items):
        text = item + (", " if k < len(items) - 1 else ")")
        if len(lines[-1].rpartition("\n")[2]) + len(text) > WIDTH + 1:
            lines[-1] = lines[-1].rstrip()
            lines.append("    ")
        lines[-1] += text
    return "\n".join(lines) if items else f"{head})"


def close_braces(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines with every block closed; a line that ends with a brace opens a block, and indentation ends it.

    >>> list(close_braces(["if (a) {", "    b;", "else {", "    c;", "d;"]))
    ['if (a) {', '    b;', '} else {', '    c;', '}', 'd;']
    """
    opened: list[str] = []
    for line in lines:
        indent = line[: len(line) - len(line.lstrip())]
        while opened and len(opened[-1]) > len(indent):
            yield opened.pop() + "}"
        if opened and len(opened[-1]) == len(indent):
            opened.pop()
            if line.lstrip().startswith("else"):
                opened.append(indent)
                yield f"{indent}}} {line.lstrip()}"
                continue
            yield indent + "}"
        if line.endswith("{"):
            opened.append(indent)
        if line:
            yield line
    yield from (indent + "}" for indent in reversed(opened))


def reads_double(plan: Plan) -> bool:
    """Return whether a kernel of the plan uses a 64-bit float."""
    nodes = (n for kernel in plan.kernels for n in walk((kernel.loops, kernel.body)))
    arrays = (plan.array(name).dtype for kernel in plan.kernels for name in kernel.arrays)
    return "float64" in arrays or any(getattr(n, "dtype", "") == "float64" for n in nodes)
