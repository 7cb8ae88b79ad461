"""The parts of a kernel's text, in any language: the code generators call a writer line by line.

    writer.declare("uint32", "slot", "a + b")     slot = uint32(a + b)         unsigned int slot = a + b;
    writer.if_("slot < 8")                        if slot < 8:                 if (slot < 8) {
    writer.set("slot", "slot + 4", "uint32")      slot = uint32(slot + 4)      slot = slot + 4;

Indentation determines the blocks; for a language with braces, they are closed by indentation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from looptune.ir.intervals import most_iterations, never_negative
from looptune.ir.nodes import Assign, Const, Expr, Load, Loop, Stmt, Var
from looptune.lower.addresses import address_parts
from looptune.lower.known_values import greatest
from looptune.lower.tiles import WIDE

if TYPE_CHECKING:
    from looptune.backends.codegen.matrix_ops import FragmentLoad, StepProduct
    from looptune.lower.plan import Dimension, FinishedPlan
    from looptune.lower.warp_tiles import WarpTiles

Within = Callable[[str], Iterator[str]]
"""The lines of a block at an indentation."""
MAX_THREADS = 1024
"""Threads per block, on every GPU since compute capability 2.0."""


class TargetSyntax(ABC):
    """The syntax of a language: the lines of a kernel, and the operators between their parts."""

    barrier: ClassVar[str]
    leave: str
    """What a thread without an iteration does."""
    coordinates: Mapping[str, str] = MappingProxyType({})
    """Variables with "thread x", "block y", ...: where a block takes the part of others, after one another."""

    @abstractmethod
    def name(self, name: str) -> str:
        """Return a name of the C program as one of the language that shadows nothing."""

    @abstractmethod
    def thread(self, dimension: Dimension) -> str:
        """Return the number of the thread in its block."""

    @abstractmethod
    def block_number(self, dimension: Dimension, kind: str) -> str:
        """Return the number of the block in the grid, in the type ``kind`` in which it is used."""

    @abstractmethod
    def declare(self, kind: str, name: str, value: str, *, fits: bool = False) -> str:
        """Return the declaration of a variable of the type ``kind`` ("bool" for a truth value).

        ``fits``: the value has that type.
        """

    @abstractmethod
    def set(self, name: str, value: str, kind: str = "") -> str:
        """Return the assignment of a value to a variable, converted to ``kind`` if the language would not do so."""

    @abstractmethod
    def store(self, array: str, place: str, value: str) -> str: ...

    @abstractmethod
    def shared(self, name: str, count: int, dtype: str, alignment: int = 0) -> str:
        """Return the declaration of an array that the threads of a block share, aligned to ``alignment`` bytes."""

    shared_bytes: int | None = None
    """The bytes of dynamic shared memory that the arrays of a kernel have so far; None: each is declared by itself."""

    def open_dynamic_shared(self) -> tuple[str, ...]:
        """Return what stands before arrays that are parts of the memory that a launch asks for, where it can."""
        return ()

    def shared_array(self, name: str, count: int, dtype: str) -> str:
        """Return the declaration of an array that the threads of a block share, which may be dynamic."""
        if self.shared_bytes is None:
            return self.shared(name, count, dtype)
        size = np.dtype(dtype).itemsize
        first = -(-self.shared_bytes // WIDE) * WIDE // size
        self.shared_bytes = (first + count) * size
        return self.dynamic_part(name, first, count, dtype)

    def dynamic_part(self, name: str, first: int, count: int, dtype: str) -> str:
        """Return the declaration of an array that begins at element ``first`` of the dynamic shared memory."""
        raise AssertionError("the target has no dynamic shared memory")

    @abstractmethod
    def local_array(self, name: str, count: int, dtype: str) -> str:
        """Return the declaration of an array of which each thread has a copy."""

    def aligned(self, arrays: Sequence[str]) -> tuple[str, ...]:
        """Return the statement that these arrays begin at multiples of 16 bytes, or nothing where none is needed."""
        return ()

    @abstractmethod
    def scope(self, indent: str) -> tuple[tuple[str, ...], str]:
        """Return the line that opens a block for new variables, and the indentation in it."""

    @abstractmethod
    def if_(self, condition: str) -> str: ...

    @abstractmethod
    def else_(self) -> str: ...

    @abstractmethod
    def while_(self, condition: str) -> str: ...

    @abstractmethod
    def block_any(self, condition: str) -> str:
        """Return whether the condition holds for a thread of the block; it is a barrier of all threads."""

    @abstractmethod
    def both(self, *conditions: str) -> str: ...

    @abstractmethod
    def either(self, *conditions: str) -> str: ...

    @abstractmethod
    def negated(self, condition: str) -> str:
        """Return the negation of ``condition``, an operand, in parentheses if it is an expression."""

    @abstractmethod
    def quotient(self, a: str, b: str) -> str:
        """Return the quotient of two numbers that are not negative."""

    @abstractmethod
    def select(self, condition: str, a: str, b: str) -> str: ...

    @abstractmethod
    def zero(self, dtype: str) -> str: ...

    @abstractmethod
    def unsigned(self, value: str) -> str:
        """Return the value as a uint32."""

    @abstractmethod
    def copied(self, width: int, to: tuple[str, str], source: tuple[str, str]) -> str:
        """Return the copy of ``width`` bytes from an element of an array to one of another."""

    @abstractmethod
    def copy_async(self, width: int, to: tuple[str, str], source: tuple[str, str], there: Sequence[str]) -> str:
        """Return the asynchronous copy of the bytes; zeros if one of the conditions ``there`` does not hold."""

    @abstractmethod
    def commit_group(self) -> tuple[str, ...]:
        """Return the statement that groups the copies started since the last call."""

    @abstractmethod
    def wait_group(self, groups: int) -> tuple[str, ...]:
        """Return the lines that wait until at most ``groups`` groups of copies have not arrived."""

    @abstractmethod
    def choose_array(self, name: str, dtype: str, condition: str, a: str, b: str) -> str:
        """Return the declaration of a variable that is the array ``a`` if the condition holds, and else ``b``."""

    @abstractmethod
    def lane_value(self, name: str, by: int) -> str:
        """Return the value of a variable in the lane ``by`` further in the warp; any value where there is none."""

    @property
    @abstractmethod
    def grid_width(self) -> str:
        """Return the number of blocks of the grid along x, as a uint32."""

    @abstractmethod
    def grid_barrier(self, arrived: str, met: str) -> str:
        """Return a barrier of all blocks of the grid, after which each sees what all have written.

        ``arrived``: the counter that they share; ``met``: the number of arrivals before, which it increases.
        """

    @abstractmethod
    def grid_barrier_exit(self, arrived: str, met: str) -> str:
        """Return the statement by which the block leaves the grid barrier.

        The last block resets the counter to zero.
        """


class KernelWriter(TargetSyntax):
    """Writes statements and expressions.

    ``counters`` are the variables that hold a uint32, and ``nonnegative`` those that are never negative at the place
    written.
    """

    plan: FinishedPlan
    counters: set[str]
    nonnegative: set[str]
    most: dict[str, int]
    """Upper bounds of variables of loops."""
    kinds: dict[str, str]
    """What variables are declared as where that is not their type: C asks for it."""
    tiles: frozenset[str] = frozenset()
    """The arrays in shared memory, which have one subscript."""
    no_contraction: bool = False
    """Products of floats are written so that no compiler contracts them with a sum."""
    positions: frozenset[str] = frozenset()
    """Variables that are set once, to places in arrays: they hold a uint32, or an int64 where indices are wide."""
    values: frozenset[str] = frozenset()
    """Other variables that are set once."""
    predeclared: frozenset[str] = frozenset()
    """Variables of a persistent kernel that are declared before its steps."""
    renamed: Mapping[str, str] = MappingProxyType({})
    """Arrays with the variables that hold them, where these hold one array or another."""

    @abstractmethod
    def statement(self, stmt: Stmt, indent: str) -> Iterator[str]: ...

    @abstractmethod
    def loop(
        self, loop: Loop, indent: str, lane: str = "", lanes: int = 1, within: Within | None = None
    ) -> Iterator[str]:
        """Yield a loop of which a thread runs every ``lanes``-th iteration, from number ``lane``.

        ``within`` writes the body, if it is not written unchanged.
        """

    @abstractmethod
    def range_of(self, loop: Loop) -> tuple[str, str, str]:
        """Return the variable's type, its first value and its end, as text."""

    @abstractmethod
    def limit(self, loop: Loop, unsigned: bool) -> str:
        """Return the upper bound. One that may be negative is raised to the lower bound before it becomes unsigned."""

    @abstractmethod
    def bound(self, e: Expr, level: int = 0) -> str:
        """Return ``e`` as a number that does not wrap."""

    @abstractmethod
    def condition(self, e: Expr) -> str:
        """Return ``e`` as a condition, of which only the truth matters."""

    @abstractmethod
    def unsigned_index(self, e: Expr) -> str:
        """Return ``e`` as a uint32."""

    @abstractmethod
    def long(self, e: Expr) -> str:
        """Return ``e``, which fits 32 bits unless indices are wide, in 64 unsigned bits."""

    @abstractmethod
    def wide_index(self, e: Expr) -> str:
        """Return ``e``, which may exceed 32 bits, as an index of an array."""

    def counts_unsigned(self, loop: Loop, together: int = MAX_THREADS) -> bool:
        """Return whether the variable of a loop is held in a uint32; else it is in an int64.

        ``together``: the threads that run the loop, each of which takes as many steps at a time.
        """
        end = max(self.greatest(loop.lo), self.greatest(loop.hi)) + loop.step * together - 1
        return never_negative(loop.lo, self.nonnegative) and end < 2**32

    @staticmethod
    def runs_once(loop: Loop, lanes: int) -> bool:
        """Return whether each of so many lanes has one iteration of the loop at most.

        The text then sets the variable to its end, so that a compiler moves what it computes out of loops around.
        """
        most = most_iterations(loop)
        return most is not None and most <= lanes

    def greatest(self, e: Expr) -> int:
        """Return an upper bound of an integer."""
        return greatest(e, self.most, self.nonnegative)

    def global_index(self, e: Expr) -> str:
        """Return ``e`` as an index of an array in global memory."""
        parts = address_parts(e)
        if parts is None:
            return self.wide_index(e) if self.plan.wide_indices else self.unsigned_index(e)
        base, counted, constant = parts
        sums = [] if base == Const(0) else [self.long(base)]
        sums += [self.long(v) + (f" * {self.long(Const(k))}" if k > 1 else "") for v, k in counted]
        if constant > 0 or not sums:
            sums.append(self.long(Const(constant)))
        least = f" - {self.long(Const(-constant))}" if constant < 0 else ""
        return " + ".join(sums) + least

    @abstractmethod
    def element(self, load: Load) -> str: ...

    @abstractmethod
    def nothing(self, indent: str) -> Iterator[str]:
        """Yield an empty body."""

    def block(self, body: tuple[Stmt, ...], indent: str) -> Iterator[str]:
        """Yield statements; a variable that is set once is known until their end."""
        held: list[str] = []
        for stmt in body:
            match stmt:
                case Assign(Var(name), place) if name in self.positions and self.plan.wide_indices:
                    yield indent + self.declare("int64", name, self.bound(place))
                    self.bind(name, False)
                    held.append(name)
                case Assign(Var(name), place) if name in self.positions:
                    yield indent + self.declare("uint32", name, self.unsigned_index(place), fits=True)
                    self.bind(name, True)
                    held.append(name)
                case Assign(Var(name), value) if name in self.values:
                    yield from self.statement(stmt, indent)
                    if never_negative(value, self.nonnegative):
                        self.nonnegative.add(name)
                        held.append(name)
                case _:
                    yield from self.statement(stmt, indent)
        for name in held:
            self.unbind(name)
        if not body:
            yield from self.nothing(indent)

    def bind(self, var: str, unsigned: bool, loop: Loop | None = None) -> None:
        """Record that a variable begins to exist: that of ``loop``, if there is one."""
        if loop is not None:
            self.most[var] = self.greatest(loop.hi) - 1
        if unsigned:
            self.counters.add(var)
        if unsigned or (loop is not None and never_negative(loop.lo, self.nonnegative)):
            self.nonnegative.add(var)

    def unbind(self, var: str) -> None:
        self.counters.discard(var)
        self.nonnegative.discard(var)
        self.most.pop(var, None)

    def same_sign(self, e: Expr) -> bool:
        """Tell whether an unsigned comparison may use the expression unchanged.

        It is a size, a counter or a constant.
        """
        return (isinstance(e, Var) and e.name in self.counters) or (
            isinstance(e, Const) and e.dtype == "int32" and e.value >= 0
        )


class TensorCoreWriter(KernelWriter):
    """Writes kernels for devices with tensor cores as well."""

    @abstractmethod
    def dynamic_shared(self, name: str, dtype: str) -> str:
        """Return the declaration of the shared array whose size the launch says."""

    @abstractmethod
    def clear_sums(self, sums: str, count: int, dtype: str) -> str:
        """Return the statement that sets the sums of a lane to zero."""

    @abstractmethod
    def load_fragments(self, load: FragmentLoad, to: str, place: str) -> str:
        """Return the statement that loads what a lane holds of a factor from the strips, from ``place`` on."""

    @abstractmethod
    def multiply_step(self, product: StepProduct, sums: str, left: str, right: str) -> str:
        """Return the statement that adds the product of what the lanes of a warp hold to sums."""

    @abstractmethod
    def gather_sums(self, sums: str, strip: str, count: int) -> str:
        """Return the statement that adds the sums of a strip to others, and sets them to zero."""

    @abstractmethod
    def store_sums(self, tiles: WarpTiles, sums: str, place: str) -> str:
        """Return the statement that stores the sums of a lane to shared memory."""
