"""IR to the Python that Numba compiles, shared by the Numba backends.

An integer expression has two readings. As a *value* it is C's: every operation wraps in its dtype. As an *index* or a
bound it is a number of iterations or an index of an array, which by C's rules does not overflow: it is computed in the
machine's widest integers, without wrapping.
"""

from __future__ import annotations

import keyword
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from looptune.backends.codegen import half
from looptune.core.short_floats import BFLOAT, rounded
from looptune.ir.c_printer import decimal
from looptune.ir.intervals import never_negative
from looptune.ir.nodes import (
    HALF,
    SHORT_FLOATS,
    Assign,
    Binary,
    Call,
    Cast,
    Const,
    Expr,
    If,
    Load,
    Loop,
    Select,
    Stmt,
    Unary,
    Var,
    While,
)
from looptune.ir.rewrite import walk
from looptune.ir.simplify import as_min_max, is_integer, widens
from looptune.lower.plan import HostIf, HostLoop, HostWhile, Launch, Plan, Step, kernels_in

DTYPES = (
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64",
)  # fmt: skip

HELPERS = {
    "c_div": """\
def c_div(a, b):
    q = int64(uint64(abs(a)) // uint64(abs(b)))
    return q if (a < 0) == (b < 0) else -q
""",
    "c_mod": """\
def c_mod(a, b):
    r = int64(uint64(abs(a)) % uint64(abs(b)))
    return r if a >= 0 else -r
""",
    "c_round": """\
def c_round(x):
    if not abs(x) < 4503599627370496.0:
        return x
    whole = float64(int64(x))
    return math.copysign(abs(whole) + 1.0 if abs(x - whole) >= 0.5 else whole, x)
""",
    "c_cbrt": """\
def c_cbrt(x):
    return math.copysign(math.pow(abs(x), 1.0 / 3.0), x)
""",
    "c_fmin": """\
def c_fmin(a, b):
    return b if a != a or b < a else a
""",
    "c_fmax": """\
def c_fmax(a, b):
    return b if a != a or b > a else a
""",
    "c_rint": """\
def c_rint(x):
    if not abs(x) < 4503599627370496.0:
        return x
    return math.copysign((abs(float64(x)) + 4503599627370496.0) - 4503599627370496.0, x)
""",
    "c_remainder": """\
def c_remainder(x, y):
    size, rest = abs(float64(y)), abs(float64(x))
    if not rest < math.inf or not size > 0.0:
        return math.nan
    if size < 8e307:
        rest = rest % (size + size)
    if size < 5e-308 and rest + rest > size:
        rest -= size
        if rest + rest >= size:
            rest -= size
    elif 5e-308 <= size < math.inf and rest > 0.5 * size:
        rest -= size
        if rest >= 0.5 * size:
            rest -= size
    return -rest if math.copysign(1.0, x) < 0.0 else rest
""",
    "c_logb": """\
def c_logb(x):
    if x == 0.0 or not abs(x) < math.inf:
        return -math.inf if x == 0.0 else abs(float64(x))
    return float64(math.frexp(float64(x))[1] - 1)
""",
    "c_ilogb": """\
def c_ilogb(x):
    if x == 0.0 or not abs(x) < math.inf:
        return int32(2147483647) if abs(x) == math.inf else int32(-2147483648)
    return int32(math.frexp(x)[1] - 1)
""",
    "c_popcount": """\
def c_popcount(x):
    x = x - ((x >> uint64(1)) & uint64(0x5555555555555555))
    x = (x & uint64(0x3333333333333333)) + ((x >> uint64(2)) & uint64(0x3333333333333333))
    x = (x + (x >> uint64(4))) & uint64(0x0F0F0F0F0F0F0F0F)
    return int32(((x * uint64(0x0101010101010101)) >> uint64(56)) & uint64(127))
""",
    "c_clz": """\
def c_clz(x):
    zeros = int32(64)
    while x != uint64(0):
        x = x >> uint64(1)
        zeros -= int32(1)
    return zeros
""",
    **half.PYTHON,
}
"""C operations that Python spells otherwise, emitted into a module where it needs them. The absolute value of the least
int64 has 63 zeros, as an unsigned number too."""

UNLIMITED = {
    "c_div": """\
def c_div(a, b):
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q
""",
    "c_mod": """\
def c_mod(a, b):
    r = abs(a) % abs(b)
    return r if a >= 0 else -r
""",
}
"""The same for Python's own integers."""

SPELLED = {
    "fabs": "abs({0})", "abs": "abs({0})", "exp2": "math.pow(2.0, {0})", "fma": "({0}) * ({1}) + ({2})",
    "exp10": "math.pow(10.0, {0})", "tgamma": "math.gamma({0})", "ldexp": "math.ldexp({0}, {1})",
}  # fmt: skip
HELPED = {
    "fmin": "c_fmin", "fmax": "c_fmax", "round": "c_round", "cbrt": "c_cbrt", "rint": "c_rint",
    "remainder": "c_remainder", "logb": "c_logb", "ilogb": "c_ilogb", "popcount": "c_popcount", "clz": "c_clz",
}  # fmt: skip
"""Functions of math.h, and the helpers that compute them."""

_RESERVED = frozenset({
    *keyword.kwlist, *DTYPES, *SHORT_FLOATS, "boolean", "bool", *HELPERS, "cuda", "math", "njit", "prange", "range",
    "abs", "min", "max", "np", "numba",
    "stream", "cores", "print", "len", "int", "float", "uintp", "start", "stop", "grid", "trips", "chunks", "chunk",
    "first", "last", "dict", "OPTIONS", "lane", "slot", "live", "ir", "types", "intrinsic", "product_apart",
    "copy_16_bytes",
    "copy_16_bytes_ahead", "copy_8_bytes_ahead", "copy_4_bytes_ahead", "begin_copies",
    *(f"await_copies_{groups}" for groups in range(4)),
    "launch", "new", "config", "count_block", "blocks_arrived", "all_blocks_meet", "block_leaves", "blocks_at_once",
    "read_flag", "told", "void", "sharer", "Unaliased", "Compiler",
    *(f"{of}_{name}" for of in ("host", "extent") for name in HELPERS),
})  # fmt: skip

SHARE = "__share"
"""What the name of the function ends with that gives the iterations of a CPU's kernel to cores."""

ADDRESSES = "addresses__"
"""The array of the addresses of a CPU's kernels."""

INDEX = "__index"
"""What the name of an unsigned subscript ends with that a CPU's kernels compute once in a loop."""

MADE = (
    ADDRESSES,
    INDEX,
    "__end",
    "__team",
    SHARE,
    "__swizzle",
    "__step",
    "met__",
    "block__",
    "blocks__",
    "thread__x",
    "thread__y",
)
"""What the names of variables end with that are made here."""


_SIGNED = ("int8", "int16", "int32", "int64")

LEVEL = {"|": 1, "^": 2, "&": 3, "<<": 4, ">>": 4, "+": 5, "-": 5, "*": 6, "/": 6, "%": 6}
UNARY, ATOM = 7, 8
"""How tightly Python's operators bind."""


def numba_type(dtype: str) -> str:
    """Return Numba's name of a type as it is in memory; it has no bfloat16, which is its 16 bits."""
    return {"bool": "boolean", BFLOAT: "uint16"}.get(dtype, dtype)


def numpy_type(dtype: str) -> str:
    """Return NumPy's name of that type; versions before 2 have no ``np.bool``."""
    return {"bool": "bool_"}.get(dtype, numba_type(dtype))


def imported_types(plan: Plan) -> tuple[str, ...]:
    """Return the names of types that a module imports from Numba."""
    variables = (*plan.codelet.params, *plan.codelet.locals)
    nodes = (n for k in kernels_in(plan.steps) for n in walk((k.loops, k.body)))
    given = any(getattr(n, "dtype", "") == "bool" for n in (*variables, *nodes))
    return (*DTYPES, "boolean") if given else DTYPES


def uses_half(plan: Plan) -> bool:
    """Tell whether a module needs the 16-bit float, which Numba has among its types alone."""
    variables = (*plan.codelet.params, *plan.codelet.locals)
    nodes = (n for k in kernels_in(plan.steps) for n in walk((k.loops, k.body)))
    return any(getattr(n, "dtype", "") == HALF for n in (*variables, *nodes))


def ident(name: str) -> str:
    """Return a C name as a Python name that shadows nothing; different C names remain different."""
    return f"{name}_" if name.rstrip("_") in _RESERVED or name.endswith(MADE) else name


class Writer(ABC):
    """Writes statements and expressions; ``nonnegative`` are the variables proved not to be negative at that place."""

    spelled: ClassVar[Mapping[str, str]] = SPELLED
    half_parameters: Mapping[str, str] = MappingProxyType({})
    """Scalars that are floats of 16 bits, with their types; they are passed as floats that need not be rounded yet."""
    minima: ClassVar[bool] = False
    """``min`` and ``max`` of floats are one instruction, which passes over a NaN."""

    def __init__(self, nonnegative: Collection[str] = ()) -> None:
        self.nonnegative = set(nonnegative)
        self.used: set[str] = set()

    @abstractmethod
    def element(self, load: Load) -> str: ...

    @abstractmethod
    def loop(self, loop: Loop, indent: str) -> Iterator[str]: ...

    def block(self, body: tuple[Stmt, ...], indent: str) -> Iterator[str]:
        if not body:
            yield f"{indent}pass"
        for stmt in body:
            yield from self.statement(stmt, indent)

    def statement(self, stmt: Stmt, indent: str) -> Iterator[str]:
        match stmt:
            case Assign(Var(name), value):
                yield f"{indent}{ident(name)} = {self.value(value, exact=True)}"
            case Assign(Load() as target, value):
                stored = self.as_half(value) if target.dtype in SHORT_FLOATS else self.value(value)
                yield f"{indent}{self.element(target)} = {stored}"
            case Loop():
                yield from self.loop(stmt, indent)
            case If(cond, then, other):
                yield f"{indent}if {self.condition(cond)}:"
                yield from self.block(then, indent + "    ")
                if other:
                    yield f"{indent}else:"
                    yield from self.block(other, indent + "    ")
            case While(cond, body):
                yield f"{indent}while {self.condition(cond)}:"
                yield from self.block(body, indent + "    ")

    def condition(self, e: Expr) -> str:
        """Return ``e`` as a condition, of which only the truth matters."""
        match e:
            case Binary("&&" | "||" as op, lhs, rhs):
                return f"({self.condition(lhs)} {'and' if op == '&&' else 'or'} {self.condition(rhs)})"
            case Binary("<" | "<=" | ">" | ">=" | "==" | "!=" as op, lhs, rhs):
                return f"{self.operand(lhs)} {op} {self.operand(rhs)}"
            case Unary("!", arg):
                return f"not ({self.condition(arg)})"
        return f"{self.value(e)} != 0"

    def operand(self, e: Expr) -> str:
        """Return one side of a comparison: as a bound if it cannot overflow, else as a value."""
        return self.bound(e) if self.plain(e) else self.value(e)

    def plain(self, e: Expr) -> bool:
        """Return whether ``e`` consists of sizes, loop variables and constants, so that it does not overflow."""
        match e:
            case Const(_, dtype):
                return is_integer(dtype)
            case Var(_, dtype):
                return dtype in ("int32", "int64") and is_integer(dtype)
            case Binary("+" | "-" | "*" | "/" | "%" | "min" | "max", lhs, rhs):
                return self.plain(lhs) and self.plain(rhs)
        return False

    def value(self, e: Expr, exact: bool = False, level: int = 0) -> str:
        """Return ``e`` with C's value; ``exact``: in exactly its dtype, since a variable takes its type from it."""
        match e:
            case Const() | Var() | Load() | Cast() if e.dtype in SHORT_FLOATS:
                return self.half_value(e)
            case Const():
                return literal(e, exact)
            case Var(name, dtype):
                # The variable of a loop is an int64, beside which Numba makes a uint64 a float64.
                makes = dtype == "uint64" or (exact and is_integer(dtype))
                return f"{numba_type(dtype)}({ident(name)})" if makes else ident(name)
            case Load():
                return self.element(e)
            case Cast("bool", arg):
                return f"boolean({self.condition(arg)})"
            case Cast("float32", arg) if arg.dtype in SHORT_FLOATS:
                return self.value(arg)
            case Cast(dtype, arg):
                return f"{dtype}({self.value(arg)})"
            case Select(no_nans=True) if self.minima and (found := as_min_max(e)) is not None:
                op, a, b = found
                return f"{op}({self.value(a, True)}, {self.value(b, True)})"
            case Select(cond, then, other):
                return f"({self.value(then, exact)} if {self.condition(cond)} else {self.value(other, exact)})"
            case Call(fn, args, dtype):
                return self.call(fn, [self.value(a) for a in args], dtype)
            case Unary("-" | "~" as op, arg):
                # A loop variable may be held in an unsigned type here, in which it has no negative.
                text = f"{op}{self.value(arg, isinstance(arg, Var), level=UNARY)}"
                return f"{e.dtype}({text})" if is_integer(e.dtype) else parenthesise(text, UNARY, level)
            case Unary("!") | Binary("<" | "<=" | ">" | ">=" | "==" | "!=" | "&&" | "||"):
                return f"int32({self.condition(e)})"
            case Binary(op, lhs, rhs):
                own = LEVEL.get(op, 0)
                text, own = self.binary(op, self.value(lhs, level=own), self.value(rhs, level=own + 1), lhs, rhs)
                return f"{e.dtype}({text})" if is_integer(e.dtype) else parenthesise(text, own, level)
        raise AssertionError(f"no Python for {e}")

    def as_half(self, e: Expr) -> str:
        """Return ``e``, a float of 16 bits, in the type in which it is stored."""
        match e:
            case Load():
                return self.element(e)
            case Cast("bfloat16", arg) if is_integer(arg.dtype):
                # A float does not hold each integer that does not exceed the type.
                return self.to_half(e.dtype, f"float64({self.value(arg)})", "float64")
            case Cast(arg=arg) if is_integer(arg.dtype):
                return self.to_half(e.dtype, f"float32({self.value(arg)})")
            case Cast(arg=arg):
                return self.to_half(e.dtype, self.value(arg, exact=True), arg.dtype)
            case Var(name) if name in self.half_parameters:
                return self.to_half(e.dtype, ident(name))
        return self.to_half(e.dtype, self.value(e))

    def half_value(self, e: Expr) -> str:
        """Return ``e``, a float of 16 bits, as the float that it is computed with."""
        match e:
            case Const(value):
                return literal(Const(rounded(value, e.dtype), "float32"), True)
            case Var(name) if name not in self.half_parameters:
                return ident(name)
        return self.from_half(e.dtype, self.as_half(e))

    def to_half(self, kind: str, text: str, dtype: str = "float32") -> str:
        """Return a value of a float type, rounded once to the float of 16 bits ``kind`` in which it is stored."""
        functions = half.CONVERSIONS[kind]
        name = functions.from_double if dtype == "float64" else functions.from_float
        self.used.update(half.needed_in_python(name))
        return f"{name}({text})"

    def from_half(self, kind: str, text: str) -> str:
        """Return what is stored in the float of 16 bits ``kind`` as a float."""
        name = half.CONVERSIONS[kind].to_float
        self.used.update(half.needed_in_python(name))
        return f"{name}({text})"

    def binary(self, op: str, a: str, b: str, lhs: Expr, rhs: Expr) -> tuple[str, int]:
        """Return the text of ``lhs op rhs``, and how strongly it binds.

        The operands ``a`` and ``b`` bind as ``op`` requires.
        """
        if op in ("min", "max"):
            return f"{op}({a}, {b})", ATOM
        if op in ("/", "%") and is_integer(lhs.dtype):
            if never_negative(lhs, self.nonnegative) and never_negative(rhs, self.nonnegative):
                return f"{a} {'//' if op == '/' else '%'} {b}", LEVEL[op]
            return f"{self.helper('c_div' if op == '/' else 'c_mod')}({self.wide(a)}, {self.wide(b)})", ATOM
        return f"{a} {op} {b}", LEVEL[op]

    def wide(self, text: str) -> str:
        return f"int64({text})"

    def helper(self, name: str) -> str:
        self.used.add(name)
        return name

    def call(self, fn: str, args: list[str], dtype: str) -> str:
        if fn in self.spelled:
            return f"{dtype}({self.spelled[fn].format(*args)})"
        name = self.helper(HELPED[fn]) if fn in HELPED else f"math.{fn}"
        return f"{dtype}({name}({', '.join(args)}))"

    def bound(self, e: Expr, level: int = 0) -> str:
        """Return ``e`` as a number that does not wrap."""
        match e:
            case Const(value):
                return str(int(value))
            case Var(name, dtype):
                return self.wide_variable(name, dtype)
            case Cast(dtype, arg) if widens(dtype, arg.dtype) or self.preserves_value(dtype, arg):
                return self.bound(arg, level)
            case Binary("+" | "-" | "*" | "/" | "%" | "min" | "max" as op, lhs, rhs) if lhs.dtype in _SIGNED:
                own = LEVEL.get(op, 0)
                text, own = self.binary(op, self.bound(lhs, own), self.bound(rhs, own + 1), lhs, rhs)
                return parenthesise(text, own, level)
            case Unary("-", arg) if arg.dtype in _SIGNED:
                return parenthesise(f"-{self.bound(arg, UNARY)}", UNARY, level)
            case Select(cond, then, other):
                return f"({self.bound(then)} if {self.condition(cond)} else {self.bound(other)})"
            case Cast("int64"):
                return self.value(e)
        return self.wide(self.value(e))

    def preserves_value(self, dtype: str, arg: Expr) -> bool:
        """Tell whether a cast of ``arg`` to the unsigned ``dtype`` preserves its value."""
        return dtype.startswith("u") and widens(dtype[1:], arg.dtype) and never_negative(arg, self.nonnegative)

    def wide_variable(self, name: str, dtype: str) -> str:
        """Return the variable in 64 signed bits, since a difference of two unsigned ones would wrap."""
        return f"int64({ident(name)})" if dtype.startswith("u") else ident(name)


Launched = Callable[[Launch | HostLoop, str, Step | None], Iterator[str]]
"""The lines of a launch, or of a persistent loop, at an indentation; with the step directly before it, if any."""


@dataclass(frozen=True, slots=True)
class HostText:
    """Writes the loops and conditions around launches.

    ``read`` returns the text of a flag in device memory; ``opening`` are the first lines of every loop's body.
    """

    writer: Writer
    launched: Launched
    read: Callable[[str], str]
    opening: Sequence[str] = ()

    def steps(self, steps: tuple[Step, ...], indent: str) -> Iterator[str]:
        """Yield the lines of the steps."""
        if not steps:
            yield f"{indent}pass"
        for before, step in zip((None, *steps), steps, strict=False):
            match step:
                case HostLoop(var, lo, hi, stride, body) if not step.blocks_per_sm:
                    bounds = f"{self.writer.bound(lo)}, {self.writer.bound(hi)}, {stride}"
                    yield f"{indent}for {ident(var)} in range({bounds}):"
                    yield from self.body(body, indent + "    ")
                case HostWhile(flag, _, body):
                    yield f"{indent}while {self.read(flag)}:"
                    yield from self.body(body, indent + "    ")
                case Launch() | HostLoop():
                    yield from self.launched(step, indent, before)
                case HostIf(_, then, _, flag, ends=True):
                    yield f"{indent}if not {self.read(flag)}:"
                    yield f"{indent}    break"
                    yield from self.steps(then, indent)
                case HostIf(cond, then, other, flag):
                    yield f"{indent}if {self.read(flag) if flag else self.writer.condition(cond)}:"
                    yield from self.steps(then, indent + "    ")
                    yield f"{indent}else:"
                    yield from self.steps(other, indent + "    ")

    def body(self, body: tuple[Step, ...], indent: str) -> Iterator[str]:
        """Yield the lines of a loop's body."""
        yield from (f"{indent}{line}" for line in self.opening)
        yield from self.steps(body, indent)


def parenthesise(text: str, own: int, level: int) -> str:
    """Return ``text`` in parentheses if its operator, of precedence ``own``, binds less tightly than ``level``."""
    return f"({text})" if own < level else text


def literal(c: Const, exact: bool) -> str:
    """Return a constant as text.

    Its type is written out where a variable takes it, and where it decides the type of a result: with an int64, which a
    plain number is, Numba converts a uint64 to a float64.
    """
    if c.dtype == "float64":
        return _float(c)
    number = _float(c) if c.dtype == "float32" else str(int(c.value))
    return f"{numba_type(c.dtype)}({number})" if exact or c.dtype in ("float32", "uint64", "bool") else number


def _float(c: Const) -> str:
    with np.errstate(over="ignore"):
        value = float(np.dtype(c.dtype).type(c.value))
    if value != value:
        return "math.nan"
    if value in (float("inf"), float("-inf")):
        return "math.inf" if value > 0 else "(-math.inf)"
    return decimal(c)
