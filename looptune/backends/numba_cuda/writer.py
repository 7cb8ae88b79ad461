"""Statements and expressions of a kernel, as Numba compiles them for a GPU.

Loops are ``while`` loops with unsigned 32-bit counters and arrays are flat with unsigned 32-bit indices, because NVVM
then unrolls and schedules them as nvcc does (signed or 64-bit indices cost up to three times on a matrix product).
Constants and loop counters of a thread are added to such an index in 64 bits, see ``lower.addresses``. A value that may
be negative has 64 signed bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

from looptune.backends.codegen import grid_barrier, matrix_ops, memory_ops
from looptune.backends.codegen.python import HELPERS, LEVEL, SPELLED, UNLIMITED, Writer, ident, numba_type, parenthesise
from looptune.backends.codegen.writer import KernelWriter, TensorCoreWriter, Within
from looptune.backends.numba_cuda import uncontracted_products
from looptune.ir.def_use import continuing_condition
from looptune.ir.intervals import never_negative
from looptune.ir.nodes import HALF, Binary, Const, Expr, Load, Loop, Stmt, Var, promoted_type
from looptune.lower.fp_contraction import is_product
from looptune.lower.signature import half_scalars
from looptune.lower.tiles import WIDE
from looptune.lower.warp_tiles import TILES

if TYPE_CHECKING:
    from looptune.backends.codegen.matrix_ops import FragmentLoad, StepProduct
    from looptune.lower.plan import Dimension, FinishedPlan
    from looptune.lower.warp_tiles import WarpTiles

HOST = "host_"
"""What the names of helpers open with that the launching function calls."""


class NumbaSpelling(TensorCoreWriter):
    """The syntax of Numba's Python for a GPU."""

    barrier = "cuda.syncthreads()"
    leave = "return"

    def name(self, name: str) -> str:
        return ident(name)

    def aligned(self, arrays: Sequence[str]) -> tuple[str, ...]:
        chosen = [a for a in arrays if a in self.renamed.values()]
        return (f"{memory_ops.ALIGNED}()", *(f"{memory_ops.ALIGNED_ARRAY}({a})" for a in chosen))

    def thread(self, dimension: Dimension) -> str:
        return self.coordinates.get(f"thread {dimension}", f"cuda.threadIdx.{dimension}")

    def block_number(self, dimension: Dimension, kind: str) -> str:
        return self.coordinates.get(f"block {dimension}", f"cuda.blockIdx.{dimension}")

    def declare(self, kind: str, name: str, value: str, *, fits: bool = False) -> str:
        return self.set(name, value, "" if fits else promoted_type(kind))

    def set(self, name: str, value: str, kind: str = "") -> str:
        return f"{name} = {kind}({value})" if kind else f"{name} = {value}"

    def store(self, array: str, place: str, value: str) -> str:
        return f"{array}[{place}] = {value}"

    def shared(self, name: str, count: int, dtype: str, alignment: int = 0) -> str:
        aligned = f", alignment={alignment}" if alignment else ""
        return f"{name} = cuda.shared.array({count}, {numba_type(dtype)}{aligned})"

    def open_dynamic_shared(self) -> tuple[str, ...]:
        self.shared_bytes = 0
        return ()

    def dynamic_part(self, name: str, first: int, count: int, dtype: str) -> str:
        return f"{name} = cuda.shared.array(0, {numba_type(dtype)}, alignment={WIDE})[{first}:{first + count}]"

    def local_array(self, name: str, count: int, dtype: str) -> str:
        return f"{name} = cuda.local.array({count}, {numba_type(dtype)})"

    def scope(self, indent: str) -> tuple[tuple[str, ...], str]:
        return (), indent

    def if_(self, condition: str) -> str:
        return f"if {condition}:"

    def else_(self) -> str:
        return "else:"

    def while_(self, condition: str) -> str:
        return f"while {condition}:"

    def block_any(self, condition: str) -> str:
        return f"cuda.syncthreads_or(int32({condition}))"

    def both(self, *conditions: str) -> str:
        return " and ".join(c for c in conditions if c)

    def either(self, *conditions: str) -> str:
        return " or ".join(conditions)

    def negated(self, condition: str) -> str:
        return f"not {condition}"

    def quotient(self, a: str, b: str) -> str:
        return f"{a} // {b}"

    def select(self, condition: str, a: str, b: str) -> str:
        return f"{a} if {condition} else {b}"

    def zero(self, dtype: str) -> str:
        return f"{numba_type(dtype)}(0)"

    def unsigned(self, value: str) -> str:
        return f"uint32({value})"

    def copied(self, width: int, to: tuple[str, str], source: tuple[str, str]) -> str:
        return f"{memory_ops.COPY}({', '.join((*to, *source))})"

    def copy_async(self, width: int, to: tuple[str, str], source: tuple[str, str], there: Sequence[str]) -> str:
        every = " & ".join(f"({c})" for c in there) or "True"  # not "and", which is a branch
        return f"{memory_ops.copy(width)}({', '.join((*to, *source, every))})"

    def commit_group(self) -> tuple[str, ...]:
        return (f"{memory_ops.BEGIN}()",)

    def wait_group(self, groups: int) -> tuple[str, ...]:
        return (f"{memory_ops.wait_group_name(groups)}()",)

    def dynamic_shared(self, name: str, dtype: str) -> str:
        return f"{name} = cuda.shared.array(0, {numba_type(dtype)}, alignment={WIDE})"

    def clear_sums(self, sums: str, count: int, dtype: str) -> str:
        return f"{matrix_ops.clear_name(count, dtype)}({sums})"

    def load_fragments(self, load: FragmentLoad, to: str, place: str) -> str:
        return f"{load.name}({to}, {TILES}, uint32({place}))"

    def multiply_step(self, product: StepProduct, sums: str, left: str, right: str) -> str:
        return f"{product.name}({sums}, {left}, {right})"

    def gather_sums(self, sums: str, strip: str, count: int) -> str:
        return f"{matrix_ops.gather_name(count)}({sums}, {strip})"

    def store_sums(self, tiles: WarpTiles, sums: str, place: str) -> str:
        return f"{matrix_ops.store_name(tiles)}({sums}, {TILES}, {place})"

    def choose_array(self, name: str, dtype: str, condition: str, a: str, b: str) -> str:
        return f"{name} = {self.select(condition, a, b)}"

    def lane_value(self, name: str, by: int) -> str:
        return f"{grid_barrier.LANES[by > 0]}({name})"

    @property
    def grid_width(self) -> str:
        return "uint32(cuda.gridDim.x)"

    def grid_barrier(self, arrived: str, met: str) -> str:
        return f"{met} = {grid_barrier.MEET}({arrived}, {met})"

    def grid_barrier_exit(self, arrived: str, met: str) -> str:
        return f"{grid_barrier.LEAVE}({arrived}, {met})"

    def nothing(self, indent: str) -> Iterator[str]:
        yield f"{indent}pass"


class CudaWriter(Writer, NumbaSpelling):
    """Writer of Numba's Python for GPUs."""

    minima = True
    spelled: ClassVar = {**SPELLED, "fma": "cuda.fma({0}, {1}, {2})", "remainder": "math.remainder({0}, {1})"}

    def __init__(self, plan: FinishedPlan, unsigned: set[str]) -> None:
        Writer.__init__(self, unsigned)
        self.plan = plan
        self.half_parameters = half_scalars(plan)
        self.counters = set(unsigned)
        self.most = {}

    def block(self, body: tuple[Stmt, ...], indent: str) -> Iterator[str]:
        return KernelWriter.block(self, body, indent)

    def to_half(self, kind: str, text: str, dtype: str = "float32") -> str:
        return f"{kind}({text})" if kind == HALF else super().to_half(kind, text, dtype)

    def from_half(self, kind: str, text: str) -> str:
        return f"float32({text})" if kind == HALF else super().from_half(kind, text)

    def value(self, e: Expr, exact: bool = False, level: int = 0) -> str:
        if self.no_contraction and isinstance(e, Binary) and is_product(e):
            return f"{uncontracted_products.PRODUCT}({self.value(e.lhs)}, {self.value(e.rhs)})"
        return super().value(e, exact, level)

    def element(self, load: Load) -> str:
        if load.array in self.tiles:
            return f"{load.array}[{self.global_index(load.index[0])}]"
        (place,) = load.index
        return f"{self.renamed.get(load.array) or ident(load.array)}[{self.global_index(place)}]"

    def long(self, e: Expr) -> str:
        return self.wide_index(e) if self.plan.wide_indices else f"uint64({self.unsigned_index(e)})"

    def wide_index(self, e: Expr) -> str:
        return f"uint64({self.bound(e)})"

    def unsigned_index(self, e: Expr) -> str:
        match e:
            case Const(n):
                return str(int(n))
            case Var(name) if name in self.counters:
                return ident(name)
        return f"uint32({self.index(e)})"

    def index(self, e: Expr, level: int = 0) -> str:
        """Return ``e`` modulo 2**32: sums and products need no sign."""
        match e:
            case Const(n):
                return str(int(n))
            case Var(name, dtype):
                return f"uint32({ident(name)})" if dtype == "uint64" and name not in self.counters else ident(name)
            case Binary("+" | "-" | "*" as op, lhs, rhs):
                own = LEVEL[op]
                return parenthesise(f"{self.index(lhs, own)} {op} {self.index(rhs, own + 1)}", own, level)
        return self.bound(e, level)

    def wide_variable(self, name: str, dtype: str) -> str:
        unsigned = name in self.counters or dtype.startswith("u")
        return f"int64({ident(name)})" if unsigned else ident(name)

    def loop(
        self, loop: Loop, indent: str, lane: str = "", lanes: int = 1, within: Within | None = None
    ) -> Iterator[str]:
        var = ident(loop.var)
        unsigned = self.counts_unsigned(loop, lanes)
        kind = "uint32" if unsigned else "int64"
        yield f"{indent}{var} = {kind}({self.start(loop, lane)})"
        end = self.limit(loop, unsigned)
        if not isinstance(loop.hi, (Const, Var)):
            yield f"{indent}{var}__end = {end}"
            end = f"{var}__end"
        self.bind(loop.var, unsigned, loop)
        yield f"{indent}while {var} < {end}:"
        on = continuing_condition(loop) if within is None and not lane else None
        if on is not None:
            yield f"{indent}    if not ({self.condition(on)}): break"
        yield from within(indent + "    ") if within else self.block(loop.body, indent + "    ")
        once = bool(lane) and self.runs_once(loop, lanes)
        yield f"{indent}    {var} = " + (end if once else f"{kind}({var} + {loop.step * lanes})")
        self.unbind(loop.var)

    def range_of(self, loop: Loop) -> tuple[str, str, str]:
        unsigned = self.counts_unsigned(loop)
        kind = "uint32" if unsigned else "int64"
        return kind, f"{kind}({self.bound(loop.lo)})", self.limit(loop, unsigned)

    def start(self, loop: Loop, counter: str) -> str:
        """Return the value of the variable after ``counter`` steps; "" means none."""
        if not counter:
            return self.bound(loop.lo)
        scaled = counter if loop.step == 1 else f"{counter} * {loop.step}"
        return scaled if loop.lo == Const(0, loop.dtype) else f"{self.bound(loop.lo, LEVEL['+'])} + {scaled}"

    def limit(self, loop: Loop, unsigned: bool) -> str:
        if not unsigned:
            return f"int64({self.bound(loop.hi)})"
        if never_negative(loop.hi, self.nonnegative):
            return self.unsigned_index(loop.hi) if not isinstance(loop.hi, Const) else f"uint32({self.bound(loop.hi)})"
        return f"uint32(max({self.bound(loop.lo)}, {self.bound(loop.hi)}))"

    def condition(self, e: Expr) -> str:
        match e:
            case Binary("<" | "<=" | ">" | ">=" | "==" | "!=" as op, lhs, rhs) if self.same_sign(
                lhs
            ) and self.same_sign(rhs):
                return f"{self.unsigned_index(lhs)} {op} {self.unsigned_index(rhs)}"
        return Writer.condition(self, e)


class HostWriter(CudaWriter):
    """Writes sizes, bounds and conditions in plain Python, which cannot call device functions."""

    def helper(self, name: str) -> str:
        return HOST + super().helper(name)


def host_helper(name: str) -> str:
    """Return the definition of a helper for the host."""
    return UNLIMITED.get(name, HELPERS[name]).replace(name, HOST + name)
